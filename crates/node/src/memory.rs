//! The memory of a node: its limit, its parts, and which part gives way.
//!
//! ```text
//!   budget ├─── buffer pool ───────┤ columns │ log buffer │ images │ log index │ everything else ┤
//!                      ◄── the pool gives way when the others need more ──
//! ```
//!
//! A [`MemoryPlan`] sets the limits of the parts that have one. The parts that grow with the data
//! or the load (the page map, locks, sorts, memory kept by the allocator) have none. So a task
//! watches how much memory the process takes. While the budget is exceeded, it has the buffer pool
//! give up frames, down to half of the pool.

#![allow(clippy::disallowed_methods, reason = "files and sockets of the user who runs the binary")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_api::report::MemoryReport;
use firn_base::Environment;
use firn_base::event::Event;
use firn_base::memory::{self, Keeper};
use firn_base::task::TaskHandle;
use firn_buffer::BufferPool;
use firn_engine::Engine;
use firn_format::page::PAGE_SIZE;
use parking_lot::Mutex;

use crate::allocator;
use crate::options::NodeOptions;

const MEBIBYTE: u64 = 1 << 20;
/// The size of each other part is that of the pool divided by this, within the part's limits.
const SHARE: u64 = 16;
/// The size of the column cache is that of the pool divided by this. The columns that TPC-H's 22
/// queries use take a seventh of a pool that has all of its pages.
const COLUMN_SHARE: u64 = 6;
/// Memory for the transaction table, threads, a small page map and lock table, and the program:
/// once both executors have run, the system keeps 34 MiB of its file in memory.
const REST_BYTES: u64 = 48 * MEBIBYTE;
/// Memory for statements and sessions is that of the pool divided by this, at least
/// [`LEAST_STATEMENT_BYTES`]. In addition, half of the pool gives way to them.
const STATEMENT_SHARE: u64 = 8;
const LEAST_STATEMENT_BYTES: u64 = 32 * MEBIBYTE;
const MOST_STATEMENT_BYTES: u64 = 1024 * MEBIBYTE;
/// How often memory that the allocator keeps is given back to the system.
const TRIM_INTERVAL: Duration = Duration::from_secs(2);
/// The allocator may keep the budget divided by this, at most [`MOST_KEPT_BYTES`].
const KEPT_SHARE: u64 = 16;
const MOST_KEPT_BYTES: u64 = 32 * MEBIBYTE;
/// The distance between giving way and taking back is the budget divided by this.
const SLACK_SHARE: u64 = 64;
/// How often a node checks the memory of its process.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// The memory of a node, divided into its parts, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryPlan {
    /// The whole process.
    pub budget_bytes: u64,
    /// Pages, with their frames' overhead.
    pub buffer_pool_bytes: u64,
    pub log_buffer_bytes: u64,
    /// Page images that wait to be written.
    pub page_queue_bytes: u64,
    /// Indexes of log segments that stay cached after they were read.
    pub log_index_cache_bytes: u64,
    /// Columns that are kept between analytic statements.
    pub column_cache_bytes: u64,
}

impl MemoryPlan {
    /// The budget of a node with a buffer pool of this size.
    #[must_use]
    pub fn for_pool(buffer_pool_bytes: u64) -> MemoryPlan {
        let share = buffer_pool_bytes / SHARE;
        let log_buffer = share.clamp(MEBIBYTE, 16 * MEBIBYTE);
        // The largest power of two that is not above it.
        let log_buffer_bytes = 1 << log_buffer.ilog2();
        let page_queue_bytes = share.clamp(2 * MEBIBYTE, 16 * MEBIBYTE);
        let log_index_cache_bytes = share.clamp(2 * MEBIBYTE, 64 * MEBIBYTE);
        // The writers of log and pages hold half as much again.
        let buffers = (log_buffer_bytes + page_queue_bytes) * 3 / 2;
        let column_cache_bytes = buffer_pool_bytes / COLUMN_SHARE;
        let statements = (buffer_pool_bytes / STATEMENT_SHARE)
            .clamp(LEAST_STATEMENT_BYTES, MOST_STATEMENT_BYTES);
        let beside_pool =
            buffers + log_index_cache_bytes + column_cache_bytes + REST_BYTES + share + statements;
        let budget_bytes = buffer_pool_bytes + beside_pool;
        MemoryPlan {
            budget_bytes,
            buffer_pool_bytes,
            log_buffer_bytes,
            page_queue_bytes,
            log_index_cache_bytes,
            column_cache_bytes,
        }
    }

    /// The largest buffer pool within a budget.
    #[must_use]
    pub fn within(budget_bytes: u64) -> MemoryPlan {
        // The other parts grow with the pool.
        let (mut fits, mut exceeds) = (0, budget_bytes);
        while exceeds - fits > MEBIBYTE {
            let pool = fits.midpoint(exceeds);
            match MemoryPlan::for_pool(pool).budget_bytes <= budget_bytes {
                true => fits = pool,
                false => exceeds = pool,
            }
        }
        MemoryPlan { budget_bytes, ..MemoryPlan::for_pool(fits) }
    }

    /// A plan for a pool of this size within this budget. The column cache gets what is left.
    #[must_use]
    pub fn of(buffer_pool_bytes: u64, budget_bytes: u64) -> MemoryPlan {
        let plan = MemoryPlan::for_pool(buffer_pool_bytes);
        let room = budget_bytes.saturating_sub(plan.least_bytes());
        let column_cache_bytes = plan.column_cache_bytes.min(room);
        MemoryPlan { budget_bytes, column_cache_bytes, ..plan }
    }

    /// The budget that the plan's pool needs without a column cache.
    #[must_use]
    pub fn least_bytes(&self) -> u64 {
        self.budget_bytes - self.column_cache_bytes
    }

    /// The limit of all parts beside the buffer pool.
    #[must_use]
    pub fn beside_bytes(&self) -> u64 {
        self.budget_bytes - self.buffer_pool_bytes
    }

    /// Sets the limits of a node's parts.
    pub fn apply(&self, options: &mut NodeOptions) {
        options.memory_budget_bytes = Some(self.budget_bytes);
        options.engine.buffer_pool_bytes = self.buffer_pool_bytes as usize;
        options.engine.log.buffer_bytes = self.log_buffer_bytes as usize;
        options.storage.log.index_cache_bytes = self.log_index_cache_bytes as usize;
        let pages = &mut options.storage.pages;
        pages.queue_bytes = self.page_queue_bytes as usize;
        // While one batch is written, the queue fills up again.
        pages.batch_pages = pages.batch_pages.min(pages.queue_bytes / PAGE_SIZE / 2).max(1);
    }
}

/// The memory that the parts of a node take, of which `storage` says its own.
pub(crate) fn report(
    engine: &Engine,
    storage: MemoryReport,
    governor: &Governor,
    column_cache: u64,
) -> MemoryReport {
    let (pages, system) = (engine.system().pages(), engine.system());
    MemoryReport {
        budget: governor.budget_bytes.unwrap_or(0),
        resident: resident_bytes().unwrap_or(0),
        withheld: pages.pool.withheld_bytes() as u64,
        buffer_pool: pages.pool.resident_bytes() as u64,
        log_buffer: pages.log.memory_bytes() + storage.log_buffer,
        transactions: system.memory_bytes(),
        locks: system.locks().memory_bytes(),
        column_cache,
        promised: memory::promised_bytes(),
        refusals: governor.refusals(),
        ..storage
    }
}

/// Resident memory of the process, in bytes; `None` if the system does not report it.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Keeps the process within its budget.
pub(crate) struct Governor {
    budget_bytes: Option<u64>,
    signals: Arc<Signals>,
    pressure: Option<Arc<Pressure>>,
    keeper: Option<Arc<dyn Keeper>>,
    task: Mutex<Option<Box<dyn TaskHandle>>>,
}

#[derive(Default)]
struct Signals {
    stopping: AtomicBool,
    wake: Event,
}

impl Governor {
    /// Starts to watch if there is a budget.
    pub(crate) fn start(
        environment: &Environment,
        pool: &Arc<BufferPool>,
        budget_bytes: Option<u64>,
    ) -> Governor {
        let signals = Arc::<Signals>::default();
        let pressure = budget_bytes.map(|budget_bytes| {
            let (withholding, refusals) = (Mutex::new(()), AtomicU64::new(0));
            Arc::new(Pressure { pool: Arc::clone(pool), budget_bytes, withholding, refusals })
        });
        let task = pressure.clone().map(|pressure| {
            let signals = Arc::clone(&signals);
            environment.spawner.spawn("memory", Box::new(move || watch(&signals, &pressure)))
        });
        budget_bytes.into_iter().for_each(allocator::limit_kept);
        let keeper = pressure.clone().map(|pressure| pressure as Arc<dyn Keeper>);
        keeper.iter().for_each(|keeper| memory::install(Arc::clone(keeper)));
        Governor { budget_bytes, signals, pressure, keeper, task: Mutex::new(task) }
    }

    fn refusals(&self) -> u64 {
        self.pressure.as_ref().map_or(0, |one| one.refusals.load(Ordering::Relaxed))
    }

    /// Ends the watching task.
    pub(crate) fn stop(&self) {
        self.keeper.iter().for_each(memory::uninstall);
        self.signals.stopping.store(true, Ordering::Release);
        self.signals.wake.notify_all();
        let task = self.task.lock().take();
        if let Some(task) = task {
            task.join();
        }
    }
}

impl Drop for Governor {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The memory of the process, its budget, and the pool that gives way.
struct Pressure {
    pool: Arc<BufferPool>,
    budget_bytes: u64,
    /// Held while the pool's withheld memory is changed.
    withholding: Mutex<()>,
    refusals: AtomicU64,
}

impl Pressure {
    /// The pool's size when all frames that it may fill are full.
    fn pool_bytes(&self) -> u64 {
        let frames = self.pool.frame_count() * PAGE_SIZE;
        let filled_bytes = frames.saturating_sub(self.pool.withheld_bytes());
        self.pool.resident_bytes().max(filled_bytes) as u64
    }

    /// How far the process would exceed its budget with `more_bytes` more, and how much of that the
    /// pool cannot give up: it keeps half of its size, which it may not have filled yet.
    fn excess(&self, more_bytes: u64) -> (u64, u64) {
        let Some(resident) = resident_bytes() else { return (0, 0) };
        let pool_bytes = self.pool_bytes();
        let least_pool_bytes = (self.pool.frame_count() * PAGE_SIZE / 2) as u64;
        let others = resident.saturating_sub(self.pool.resident_bytes() as u64) + more_bytes;
        (
            (others + pool_bytes).saturating_sub(self.budget_bytes),
            (others + least_pool_bytes).saturating_sub(self.budget_bytes),
        )
    }

    /// Has the pool give up memory, or take back what it gave up.
    fn balance(&self) {
        let _one = self.withholding.lock();
        let Some(resident) = resident_bytes() else { return };
        let room_of_pool = self.pool_bytes().saturating_sub(self.pool.resident_bytes() as u64);
        let taken = resident + room_of_pool + memory::promised_bytes();
        if taken > self.budget_bytes {
            allocator::release_free_memory();
        }
        let withheld = self.pool.withheld_bytes() as u64;
        self.pool.withhold(to_withhold(taken, withheld, self.budget_bytes));
    }
}

impl Keeper for Pressure {
    fn has_room(&self, size_bytes: u64, promised_bytes: u64) -> bool {
        let more_bytes = size_bytes.saturating_add(promised_bytes);
        if self.excess(more_bytes) == (0, 0) {
            return true;
        }
        let _one = self.withholding.lock();
        allocator::release_free_memory();
        let (mut excess, mut beyond_pool) = self.excess(more_bytes);
        if beyond_pool > 0 {
            memory::release_caches();
            allocator::release_free_memory();
            (excess, beyond_pool) = self.excess(more_bytes);
        }
        if beyond_pool == 0 && excess > 0 {
            let withheld = self.pool.withheld_bytes() + excess as usize;
            self.pool.withhold(withheld + (self.budget_bytes / SLACK_SHARE) as usize);
        }
        let has_room = self.excess(more_bytes) == (0, 0);
        if !has_room {
            self.refusals.fetch_add(1, Ordering::Relaxed);
        }
        has_room
    }
}

fn watch(signals: &Signals, pressure: &Pressure) {
    let is_stopping = || signals.stopping.load(Ordering::Acquire);
    let looks_per_trim = (TRIM_INTERVAL.as_millis() / LOOK_INTERVAL.as_millis()) as u64;
    let kept_bytes = (pressure.budget_bytes / KEPT_SHARE).min(MOST_KEPT_BYTES);
    let mut least_bytes = u64::MAX;
    for look in 1u64.. {
        if signals.wake.wait_until(Some(LOOK_INTERVAL), is_stopping) {
            return;
        }
        pressure.balance();
        let beside_pool =
            |resident: u64| resident.saturating_sub(pressure.pool.resident_bytes() as u64);
        let Some(resident) = resident_bytes() else { continue };
        least_bytes = least_bytes.min(beside_pool(resident));
        if look % looks_per_trim == 0 && beside_pool(resident) > least_bytes + kept_bytes {
            allocator::release_free_memory();
        }
    }
}

/// How much the pool should give up if the process takes `resident` while `withheld` is given up.
fn to_withhold(resident: u64, withheld: u64, budget: u64) -> usize {
    // Without slack between the two limits, pages would be dropped and read in turn for nothing.
    let slack = budget / SLACK_SHARE;
    let wanted = if resident > budget {
        withheld + (resident - budget) + slack
    } else {
        withheld.saturating_sub((budget - resident).saturating_sub(2 * slack))
    };
    usize::try_from(wanted).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_divided_without_a_rest_below_nothing() {
        for mebibytes in [72, 100, 256, 1024, 65536, 1 << 20] {
            let budget = mebibytes * MEBIBYTE;
            let plan = MemoryPlan::within(budget);
            assert_eq!(plan.budget_bytes, budget);
            let needs = MemoryPlan::for_pool(plan.buffer_pool_bytes);
            assert!(needs.budget_bytes <= budget.max(needs.beside_bytes()), "{plan:?} {needs:?}");
            assert!(plan.log_buffer_bytes.is_power_of_two());
        }
        assert!(MemoryPlan::within(1024 * MEBIBYTE).buffer_pool_bytes > 640 * MEBIBYTE);
        // A budget that leaves nothing for columns is valid.
        let pool = MemoryPlan::for_pool(512 * MEBIBYTE);
        let least = MemoryPlan::of(512 * MEBIBYTE, pool.least_bytes());
        assert_eq!(
            (least.column_cache_bytes, least.beside_bytes()),
            (0, pool.least_bytes() - (512 << 20))
        );
        assert_eq!(
            MemoryPlan::of(512 * MEBIBYTE, 1 << 40).column_cache_bytes,
            pool.column_cache_bytes
        );
    }

    #[test]
    fn the_pool_gives_way_and_takes_back() {
        let budget = 64 * MEBIBYTE;
        assert_eq!(to_withhold(60 * MEBIBYTE, 0, budget), 0);
        assert_eq!(to_withhold(70 * MEBIBYTE, 0, budget) as u64, 7 * MEBIBYTE);
        assert_eq!(to_withhold(63 * MEBIBYTE, 7 * MEBIBYTE, budget) as u64, 7 * MEBIBYTE);
        assert_eq!(to_withhold(58 * MEBIBYTE, 7 * MEBIBYTE, budget) as u64, 3 * MEBIBYTE);
    }
}
