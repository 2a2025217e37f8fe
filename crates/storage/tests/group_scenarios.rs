//! Bad days of a replicated log: leaders that die, members that are cut off, slow, full or away,
//! and two members that believe to lead. Each story runs under several seeds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_api::log_store::conformance::Appender;
use firn_api::{LogEpoch, LogError, LogStore, WriterEpoch};
use firn_base::{Lsn, PageId, PageNo, SpaceId, task};
use firn_consensus::{Index, MemberId, Saved};
use firn_format::redo::GroupBuilder;
use firn_testing::group_log::{GroupCluster, GroupSettings};
use firn_testing::simulation::{World, for_each_seed};

/// A group of one record.
fn group(number: u32, length: usize) -> Vec<u8> {
    let mut builder = GroupBuilder::new();
    let pattern = number.to_le_bytes();
    let page = PageId::new(SpaceId(1), PageNo(number % 50));
    builder.push(1, page, |body| body.extend(pattern.iter().cycle().take(length)));
    builder.finish().to_vec()
}

/// A group of three that runs, and what was appended and is durable.
struct Story {
    cluster: GroupCluster,
    acknowledged: Vec<u8>,
    number: u32,
}

impl Story {
    fn new(world: &World, settings: GroupSettings) -> Story {
        let cluster = GroupCluster::new(world, settings);
        cluster.start_all();
        Story { cluster, acknowledged: Vec::new(), number: 0 }
    }

    fn of_three(world: &World) -> Story {
        let random = world.random();
        Story::new(
            world,
            GroupSettings {
                max_sync: Duration::from_micros(*random.pick(&[50, 500, 3_000])),
                recent_bytes: *random.pick(&[0, 1 << 20]),
                ..GroupSettings::new(3)
            },
        )
    }

    /// Opens the log at a member that leads. Everything that was acknowledged is there.
    fn open(&mut self, id: u64) -> Appender {
        let store = self.cluster.store(id).expect("it runs");
        let log = Appender::open(&*store, WriterEpoch::Next).expect("it leads");
        let kept = read_all(&*store);
        assert!(kept.starts_with(&self.acknowledged), "acknowledged log is lost");
        // What was never acknowledged may be there all the same, and is durable from now on.
        self.acknowledged = kept;
        assert_eq!(log.tail.end, self.end());
        log
    }

    fn end(&self) -> Lsn {
        Lsn::FIRST.advance(self.acknowledged.len() as u64)
    }

    fn commit(&mut self, log: &Appender, count: u32) {
        for _ in 0..count {
            self.number += 1;
            let group = group(self.number, 700);
            log.commit(&group).expect("nothing ends this writer");
            self.acknowledged.extend_from_slice(&group);
        }
    }

    /// A writer at a member, if it leads and a majority answers. Returns the highest epoch that any
    /// writer has had.
    fn write_if_it_leads(&mut self, id: u64, highest: LogEpoch) -> LogEpoch {
        let store = self.cluster.store(id).expect("it runs");
        // The story's own task commits, and nobody else would end the stall.
        self.cluster.disk(id).set_stalled(false);
        let Ok(log) = Appender::open(&*store, WriterEpoch::Next) else { return highest };
        assert!(log.tail.epoch > highest, "an epoch was handed out twice, or a stale one");
        let kept = read_all(&*store);
        assert!(kept.starts_with(&self.acknowledged), "acknowledged log is lost");
        self.acknowledged = kept;
        for _ in 0..3 {
            self.number += 1;
            let group = group(self.number, 700);
            let end = log.append(&group);
            if log.writer.wait_durable(end).is_err() {
                break;
            }
            self.acknowledged.extend_from_slice(&group);
        }
        log.tail.epoch
    }

    /// Waits until all members that run have the same durable log, and compares their disks.
    fn agree(&self) {
        let stores = || self.cluster.ids().filter_map(|id| self.cluster.store(id));
        let has_all = || stores().all(|store| store.durable_lsn() >= self.end());
        for _ in 0..5_000 {
            if has_all() {
                break;
            }
            task::sleep(Duration::from_millis(2));
        }
        let each: Vec<Lsn> = stores().map(|store| store.durable_lsn()).collect();
        assert!(has_all(), "a member stays behind {}: {each:?}", self.end());
        for store in stores() {
            let from = store.truncated_lsn().since(Lsn::FIRST) as usize;
            assert!(read_all(&*store).starts_with(&self.acknowledged[from..]), "the logs differ");
        }
        let disks: Vec<Saved> =
            self.cluster.ids().map(|id| self.cluster.disk(id).synced()).collect();
        for pair in disks.windows(2) {
            same_entries(&pair[0], &pair[1]);
        }
    }
}

/// Compares the entries that both keep.
fn same_entries(one: &Saved, other: &Saved) {
    let after = one.base.index.max(other.base.index);
    let until = Index(one.durable.0.min(other.durable.0));
    let of = |saved: &Saved| {
        let kept = saved.entries.iter().filter(|entry| entry.index > after && entry.index <= until);
        kept.cloned().collect::<Vec<_>>()
    };
    assert_eq!(of(one), of(other), "two members have different durable entries");
}

fn read_all(store: &dyn LogStore) -> Vec<u8> {
    let (mut bytes, mut position) = (Vec::new(), store.truncated_lsn());
    while position < store.durable_lsn() {
        position = store.read(position, 5_000, &mut bytes).expect("kept log can be read");
    }
    bytes
}

#[test]
fn another_member_goes_on_when_the_leader_dies() {
    for_each_seed(0..6, |world| {
        let mut story = Story::of_three(world);
        story.cluster.lead_at(1);
        let log = story.open(1);
        story.commit(&log, 20);
        // Some log is under way.
        log.writer.submit(log.append(&group(1_000, 300)));
        drop(log);
        story.cluster.crash(1);
        let leader = story.cluster.wait_for_leader_but(1);
        let log = story.open(leader);
        story.commit(&log, 5);
        story.cluster.start(1);
        story.commit(&log, 5);
        story.agree();
    });
}

#[test]
fn a_minority_is_not_waited_for() {
    for_each_seed(0..6, |world| {
        let mut story = Story::of_three(world);
        story.cluster.lead_at(1);
        let log = story.open(1);
        for gone in [2, 3] {
            match world.random().below(3) {
                0 => story.cluster.cut([gone]),
                1 => story.cluster.disk(gone).set_stalled(true),
                _ => story.cluster.crash(gone),
            }
            for _ in 0..20 {
                let before = task::monotonic();
                story.commit(&log, 1);
                let took = task::monotonic() - before;
                // Two syncs, a round trip, and what is simulated besides.
                assert!(took < Duration::from_millis(15), "a commit took {took:?}");
            }
            story.cluster.heal();
            story.cluster.start(gone);
            story.agree();
        }
    });
}

#[test]
fn a_member_that_was_away_catches_up_from_files_or_from_a_later_base() {
    for_each_seed(0..6, |world| {
        let mut story = Story::of_three(world);
        story.cluster.lead_at(1);
        let log = story.open(1);
        story.commit(&log, 3);
        story.cluster.crash(3);
        story.commit(&log, 60);
        story.cluster.start(3);
        story.agree();
        story.cluster.crash(3);
        story.commit(&log, 60);
        // What it lacks is gone everywhere: it goes on from a base, with pages from elsewhere.
        let durable = story.end();
        for id in [1, 2] {
            let store = story.cluster.store(id).expect("it runs");
            store.let_go(durable);
        }
        let kept = story.cluster.store(1).expect("it runs");
        while kept.truncated_lsn() < Lsn(durable.0 - 2_000) {
            story.commit(&log, 1);
            task::sleep(Duration::from_millis(2));
        }
        story.cluster.start(3);
        story.commit(&log, 3);
        story.agree();
        let late = story.cluster.store(3).expect("it runs");
        assert!(late.truncated_lsn() > Lsn::FIRST, "it has log that was let go");
    });
}

#[test]
fn of_two_that_believe_to_lead_one_makes_log_durable() {
    for_each_seed(0..6, |world| {
        let mut story = Story::of_three(world);
        story.cluster.lead_at(1);
        let old = story.open(1);
        story.commit(&old, 5);
        story.cluster.cut([1]);
        let late = old.append(&group(2_000, 900));
        old.writer.submit(late);
        let leader = story.cluster.wait_for_leader_but(1);
        let before = story.end();
        let new = story.open(leader);
        let kept_late = story.end() > before;
        story.commit(&new, 5);
        let silent = old.writer.wait_durable(late).expect_err("nobody answers it");
        assert!(matches!(silent, LogError::Unavailable { .. }), "{silent:?}");
        assert_eq!(old.durable(), before, "the older writer goes on");
        story.cluster.heal();
        match old.wait(late).expect_err("it is fenced") {
            LogError::Fenced { by } => assert!(by >= new.tail.epoch),
            error => panic!("{error:?} instead of: fenced"),
        }
        assert!(!kept_late, "what nobody received is in the log");
        story.commit(&new, 5);
        // The log of the older writer is thrown away at its own member, too.
        story.agree();
    });
}

#[test]
fn a_published_lease_is_over_before_another_member_leads() {
    for_each_seed(0..40, |world| {
        let story = Story::of_three(world);
        story.cluster.lead_at(1);
        let store = story.cluster.store(1).expect("it runs");
        let term = store.leads().expect("it leads");
        let until = Arc::new(AtomicU64::new(0));
        let told = Arc::clone(&until);
        let tell = move |end: Duration| told.store(end.as_nanos() as u64, Ordering::SeqCst);
        store.publish_lease(term, Box::new(tell));
        let holds = || Duration::from_nanos(until.load(Ordering::SeqCst)) > task::monotonic();
        let is_first = (0..1_000).any(|_| {
            task::sleep(Duration::from_millis(1));
            holds()
        });
        assert!(is_first, "a leader whose group answers has a lease");
        for _ in 0..100 {
            task::sleep(Duration::from_millis(10));
            assert!(holds(), "it keeps the lease while the group answers");
        }
        // It does not hear of the next leader, so nothing but its lease tells it.
        if *world.random().pick(&[true, false]) {
            store.hand_over(MemberId(2)).expect("it may lead");
            task::sleep(Duration::from_micros(world.random().below(4_000)));
        }
        story.cluster.cut([1]);
        let leads = |id| {
            let leads = story.cluster.store(id).expect("it runs").leads();
            leads.is_some_and(|newer| newer > term)
        };
        let is_replaced = (0..50_000).any(|_| {
            task::sleep(Duration::from_micros(200));
            let is_replaced = leads(2) || leads(3);
            assert!(!(is_replaced && holds()), "two members are sure to lead");
            is_replaced
        });
        assert!(is_replaced, "nobody else is elected");
        store.withdraw_lease();
        assert!(!holds());
    });
}

#[test]
fn a_leader_whose_disk_is_full_steps_back() {
    for_each_seed(0..6, |world| {
        let mut story = Story::of_three(world);
        story.cluster.lead_at(1);
        let log = story.open(1);
        story.commit(&log, 5);
        story.cluster.disk(1).set_full(true);
        let late = log.append(&group(3_000, 100));
        log.writer.submit(late);
        match log.wait(late).expect_err("another one leads") {
            LogError::NotLeader { hint: Some(hint) } => assert!(hint == "log-2" || hint == "log-3"),
            error => panic!("{error:?} instead of: another one leads"),
        }
        let leader = story.cluster.wait_for_leader_but(1);
        let log = story.open(leader);
        story.commit(&log, 10);
        story.cluster.heal();
        story.commit(&log, 1);
        story.agree();
    });
}

#[test]
fn a_power_cut_of_all_loses_nothing() {
    for_each_seed(0..6, |world| {
        let mut story = Story::of_three(world);
        for _ in 0..4 {
            story.cluster.start_all();
            let leader = story.cluster.wait_for_leader_but(0);
            let log = story.open(leader);
            story.commit(&log, 4);
            log.writer.submit(log.append(&group(4_000, 500)));
            drop(log);
            story.cluster.crash_all();
        }
        story.cluster.start_all();
        let leader = story.cluster.wait_for_leader_but(0);
        drop(story.open(leader));
        story.agree();
    });
}

#[test]
fn rounds_need_not_wait_for_the_ones_before() {
    for_each_seed(0..3, |world| {
        let mut story = Story::new(
            world,
            GroupSettings { max_sync: Duration::from_micros(100), ..GroupSettings::new(3) },
        );
        story.cluster.lead_at(1);
        let log = story.open(1);
        // A round trip of four milliseconds.
        let way = Duration::from_millis(2);
        world.network().set_faults(firn_testing::simulation::LinkFaults {
            delay: way..=way,
            ..Default::default()
        });
        let before = task::monotonic();
        let mut last = Lsn(0);
        for number in 0..30 {
            last = log.append(&group(number, 500));
            log.writer.submit(last);
            task::sleep(Duration::from_micros(300));
        }
        log.wait(last).expect("nothing ends this writer");
        let took = task::monotonic() - before;
        // One after the other, the thirty would take 120 milliseconds.
        assert!(took < Duration::from_millis(25), "they took {took:?}");
    });
}

/// Members of equal priority come and go, and the leader writes.
#[test]
fn whoever_opens_has_a_higher_epoch_and_all_that_was_acknowledged() {
    for_each_seed(0..10, |world| {
        let settings = GroupSettings { priority_step: 0, ..GroupSettings::new(3) };
        let mut story = Story::new(world, settings);
        let random = world.random();
        let mut highest = LogEpoch(0);
        for _ in 0..16 {
            let any = random.between(1, 3);
            match random.below(8) {
                0 => story.cluster.cut([any]),
                1 => story.cluster.cut([1, 2, 3]),
                2 => story.cluster.crash(any),
                3 => story.cluster.disk(any).set_stalled(true),
                4 => story.cluster.heal(),
                5 => story.cluster.start_all(),
                _ => {
                    story.cluster.heal();
                    story.cluster.start_all();
                }
            }
            task::sleep(Duration::from_micros(random.below(150_000)));
            let leader =
                *random.pick(&[story.cluster.leader(), story.cluster.store(any).map(|_| any)]);
            if let Some(leader) = leader {
                highest = story.write_if_it_leads(leader, highest);
            }
        }
        story.cluster.heal();
        story.cluster.start_all();
        let leader = story.cluster.wait_for_leader_but(0);
        story.cluster.lead_at(leader);
        let log = story.open(leader);
        assert!(log.tail.epoch > highest, "an epoch was handed out twice");
        story.commit(&log, 1);
        story.agree();
    });
}

/// A leader that nobody reaches believes in itself for up to two elections' times, and another one
/// is elected before that.
#[test]
fn a_member_that_only_believes_to_lead_is_not_opened() {
    let seen = Arc::new(AtomicU64::new(0));
    let total = Arc::clone(&seen);
    for_each_seed(0..30, move |world| {
        let settings = GroupSettings { priority_step: 0, ..GroupSettings::new(3) };
        let story = Story::new(world, settings);
        let old = story.cluster.wait_for_leader_but(0);
        task::sleep(Duration::from_micros(world.random().below(60_000)));
        let old = story.cluster.leader().unwrap_or(old);
        if world.random().chance(0.3) {
            story.cluster.process(old).expect("it runs").pause();
        } else {
            story.cluster.cut([old]);
        }
        story.cluster.wait_for_leader_but(old);
        let store = story.cluster.store(old).expect("it runs");
        total.fetch_add(u64::from(store.leads().is_some()), Ordering::SeqCst);
        let opened = Appender::open(&*store, WriterEpoch::Next);
        assert!(opened.is_err(), "a member was opened while another one leads");
    });
    let seen = seen.load(Ordering::SeqCst);
    assert!(seen > 0, "no member believed to lead beside another one");
}
