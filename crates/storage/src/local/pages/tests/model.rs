//! Random histories against a model that remembers every version of every page.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    /// A group that changes these pages.
    Change(Vec<u32>),
    /// A change that the indexer has not reached yet.
    ChangeUnindexed(u32),
    Offer(u32),
    Round,
    Settle,
    ReadLatest(u32),
    /// A read at this fraction of the log.
    ReadAsOf(u32, f64),
    Wait(u64),
    DropSpace(u32),
    /// After some syncs that succeed, this many fail.
    FailSyncs(u32, u32),
    FillDisk(bool),
    Restart(u64, usize),
}

const PAGES: u32 = 24;

fn step() -> impl Strategy<Value = Step> {
    let number = 0..PAGES;
    prop_oneof![
        8 => proptest::collection::vec(number.clone(), 1..5).prop_map(Step::Change),
        2 => number.clone().prop_map(Step::ChangeUnindexed),
        6 => number.clone().prop_map(Step::Offer),
        6 => Just(Step::Round),
        1 => Just(Step::Settle),
        4 => number.clone().prop_map(Step::ReadLatest),
        6 => (number, 0.0..1.0).prop_map(|(number, at)| Step::ReadAsOf(number, at)),
        3 => (0u64..4000).prop_map(Step::Wait),
        1 => (0u32..3).prop_map(Step::DropSpace),
        2 => (0u32..4, 1u32..4).prop_map(|(good, failing)| Step::FailSyncs(good, failing)),
        1 => any::<bool>().prop_map(Step::FillDisk),
        1 => (any::<u64>(), 1usize..5).prop_map(|(seed, told)| Step::Restart(seed, told)),
    ]
}

/// Pages are spread over three spaces; a dropped space is followed by one with a new id.
struct Run {
    store: Store,
    generations: [u32; 3],
    value: u64,
    /// The durable position at each time.
    durable: Vec<(u64, Lsn)>,
}

impl Run {
    fn page(&self, number: u32) -> PageId {
        let space = number % 3;
        page(1 + space + 3 * self.generations[space as usize], number)
    }

    fn take(&mut self, step: &Step) {
        self.value += 1;
        match step {
            Step::Change(numbers) => {
                let mut pages: Vec<PageId> = numbers.iter().map(|n| self.page(*n)).collect();
                pages.sort();
                pages.dedup();
                self.store.change(&pages, self.value);
            }
            Step::ChangeUnindexed(number) => {
                self.store.change_unindexed(self.page(*number), self.value);
            }
            Step::Offer(number) => {
                let page = self.page(*number);
                if self.store.versions.contains_key(&page) {
                    self.store.offer(page);
                }
            }
            Step::Round => drop(self.store.round()),
            Step::Settle => self.settle(),
            Step::ReadLatest(number) => self.store.check_latest(self.page(*number)),
            Step::ReadAsOf(number, at) => self.read_as_of(*number, *at),
            Step::Wait(ms) => drop(self.store.clock.0.fetch_add(*ms, Ordering::Relaxed)),
            Step::DropSpace(space) => {
                let generation = &mut self.generations[*space as usize];
                self.store.drop_space(SpaceId(1 + space + 3 * *generation));
                *generation += 1;
            }
            Step::FailSyncs(good, failing) => {
                let faults = &self.store.disk.faults;
                faults.good_syncs.store(*good, Ordering::Relaxed);
                faults.failing_syncs.store(*failing, Ordering::Relaxed);
            }
            Step::FillDisk(is_full) => {
                let capacity = if *is_full { 0 } else { u64::MAX };
                self.store.disk.faults.capacity.store(capacity, Ordering::Relaxed);
            }
            Step::Restart(seed, told) => self.store.restart(&SplitMix::new(*seed), *told),
        }
        let now = self.store.clock.0.load(Ordering::Relaxed);
        self.durable.push((now, self.store.log.durable_lsn()));
    }

    fn settle(&mut self) {
        let faults = &self.store.disk.faults;
        faults.failing_syncs.store(0, Ordering::Relaxed);
        faults.capacity.store(u64::MAX, Ordering::Relaxed);
        self.store.log.tell();
        self.store.settle();
    }

    fn read_as_of(&self, number: u32, at: f64) {
        let durable = self.store.log.durable_lsn();
        let span = (durable.0 - Lsn::FIRST.0) / 8;
        let wanted = Lsn(Lsn::FIRST.0 + (span as f64 * at) as u64 * 8);
        for generation in 0..=self.generations[(number % 3) as usize] {
            let page = page(1 + number % 3 + 3 * generation, number);
            self.store.check_as_of(page, wanted);
            if wanted >= self.promised_from() {
                let found = self.store.read(page, PageRead::AsOf(wanted));
                assert_same(page, &found, self.store.expected(page, wanted));
            }
        }
    }

    /// The promise of the window: a position that was durable one window ago can be read.
    fn promised_from(&self) -> Lsn {
        let now = self.store.clock.0.load(Ordering::Relaxed);
        let window = self.store.options.history_window_ms;
        if window == 0 {
            return self.store.log.durable_lsn();
        }
        let is_in_window = |(time, _): &&(u64, Lsn)| time + window > now;
        self.durable.iter().find(is_in_window).map_or(Lsn::MAX, |(_, lsn)| *lsn)
    }
}

fn run(history_window_ms: u64, steps: &[Step]) {
    let store = Store::new(PageStoreOptions { history_window_ms, ..small_options() });
    let mut run = Run { store, generations: [0; 3], value: 0, durable: Vec::new() };
    steps.iter().for_each(|step| run.take(step));
    run.settle();
    run.store.check_all();
    assert_eq!(run.store.pages.status().queued_bytes, 0);
    if history_window_ms == 0 {
        let live =
            run.store.versions.keys().filter(|page| !run.store.dropped.contains_key(&page.space));
        let status = run.store.pages.status();
        assert_eq!(status.slots - status.free_slots, live.count() as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn without_a_window(steps in proptest::collection::vec(step(), 1..150)) {
        run(0, &steps);
    }

    #[test]
    fn with_a_window(steps in proptest::collection::vec(step(), 1..150)) {
        run(5_000, &steps);
    }
}
