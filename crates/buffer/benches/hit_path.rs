//! The cost of a page access when the page is cached, in nanoseconds of processor time, so that a
//! busy machine does not distort it: `cargo bench -p firn-buffer`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use firn_api::{PageLease, PageRead, PageStore, PageStoreError, PageVersion};
use firn_base::{Environment, Lsn, PageId, PageNo, SpaceId};
use firn_buffer::{BufferPool, BufferPoolOptions, pin_epoch};
use firn_format::page::{PageBuf, PageKind};

const PAGES: u32 = 4096;
const ROUNDS: u32 = 3_000_000;

/// Returns every page, as an inner node.
struct EndlessPages;

impl PageStore for EndlessPages {
    fn read(
        &self,
        page: PageId,
        _: PageRead,
        into: &mut PageBuf,
    ) -> Result<PageVersion, PageStoreError> {
        into.format(page, PageKind::TreeInner);
        Ok(PageVersion { lsn: into.lsn(), as_of: Lsn::MAX })
    }

    fn hold(&self, _: &str, _: Lsn) -> Result<Arc<dyn PageLease>, PageStoreError> {
        unreachable!("the pool shows the newest versions")
    }

    fn applied_lsn(&self, _: PageId) -> Lsn {
        Lsn::MAX
    }

    fn spaces(&self) -> Vec<SpaceId> {
        Vec::new()
    }
}

fn page(number: u32) -> PageId {
    PageId::new(SpaceId(1), PageNo(number))
}

fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn measure(what: &str, rounds: u32, mut step: impl FnMut(u32)) {
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let start = processor_time();
        (0..rounds).for_each(&mut step);
        best = best.min(processor_time() - start);
    }
    let nanoseconds = best.as_secs_f64() * 1e9 / f64::from(rounds);
    println!("{what:<40} {nanoseconds:>9.1} ns");
}

fn main() {
    let env = Environment::system();
    let pool_of = |budget_bytes| {
        let options = BufferPoolOptions::with_budget(budget_bytes);
        BufferPool::new(env.clone(), Arc::new(EndlessPages), Arc::new(|| Lsn::MAX), options)
    };
    let pool: Arc<BufferPool> = pool_of(256 << 20);
    for number in 0..PAGES {
        drop(pool.load(page(number)));
    }
    let spread = |round: u32| page(round.wrapping_mul(0x9e37_79b1) % PAGES);
    measure("shared, one page", ROUNDS, |_| {
        black_box(&*pool.shared(black_box(page(7))).expect("cached"));
    });
    measure("shared, 4096 pages", ROUNDS, |round| {
        black_box(&*pool.shared(spread(round)).expect("cached"));
    });
    measure("exclusive, one page", ROUNDS, |_| {
        black_box(&*pool.exclusive(black_box(page(7))).expect("cached"));
    });
    measure("optimistic with epoch pin, 256 pages", ROUNDS, |round| {
        let epoch = pin_epoch();
        let id = page(spread(round).page_no.0 % 256);
        black_box(pool.optimistic(id, &epoch).expect("cached").map(|image| image.lsn()));
    });
    measure("change of a published inner node", 100_000, |_| {
        let mut guard = pool.exclusive(page(7)).expect("cached");
        guard.page_mut().set_flags(1);
    });
    let small = pool_of(16 << 20);
    measure("load with eviction of a clean page", 200_000, |round| {
        drop(black_box(small.load(page(round))));
    });
    println!("{:?}", pool.statistics());
    println!("{:?}", small.statistics());
    pool.shutdown();
    small.shutdown();
}
