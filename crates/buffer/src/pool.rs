//! The pool itself: its parts, its start and end, and its statistics.

use std::sync::{Arc, Weak};

use firn_api::{ImageSource, LocalImages, PageStore, PageTier};
use firn_base::task::TaskHandle;
use firn_base::{Environment, Lsn, PageId, SpaceId};
use firn_format::page::{PAGE_SIZE, PageBuf};

use crate::clock::Clock;
use crate::frame::{Frame, OwnedFrame};
use crate::free_frames::FreeFrames;
use crate::memory::image::ImageBudget;
use crate::memory::slots::{FrameMemory, PageSlot};
use crate::operation_limits::{Allowance, PINS_PER_TURN, Turn};
use crate::pending_loads::Flights;
use crate::read_point::ReadPoint;
use crate::signals::Signals;
use crate::statistics::{Counter, Counters, PoolStatistics};
use crate::sync::Mutex;
use crate::translation::Translation;

/// The fewest frames that a pool has, whatever its budget.
pub const MIN_FRAMES: usize = if cfg!(feature = "shuttle") { 4 } else { 32 };
/// One part in this many of the budget is kept for published images.
const IMAGE_SHARE: usize = 16;
const MIN_IMAGES: usize = 4;

/// Returns the end of the durable log. Does not block.
pub type DurableLsn = Arc<dyn Fn() -> Lsn + Send + Sync>;
/// Returns the end of the log that this node has written, durable or not. Does not block.
pub type LogEnd = Arc<dyn Fn() -> Lsn + Send + Sync>;
/// Asks for the log to become durable up to a position soon. Does not block.
pub type RequestDurable = Arc<dyn Fn(Lsn) + Send + Sync>;

/// The settings of a pool.
#[derive(Clone)]
pub struct BufferPoolOptions {
    /// The budget for pages, published images and their bookkeeping together. The table from page
    /// to frame comes on top: four bytes per page that was ever cached.
    pub budget_bytes: usize,
    /// Tasks that read ahead, each with one call of the page store in progress; 0:
    /// [`BufferPool::prefetch`] does nothing.
    pub prefetch_tasks: usize,
    /// Whether a task keeps a stock of free frames. Without it every load makes its own room.
    pub clean_ahead: bool,
    /// Called when no page can be evicted until the log is durable up to this position. Without it,
    /// the pool waits for the log writer to get there.
    pub request_durable: Option<RequestDurable>,
    /// No page that a load brings may be later than this. Without it, nobody looks.
    pub log_end: Option<LogEnd>,
}

impl BufferPoolOptions {
    /// The usual settings within `budget_bytes`.
    #[must_use]
    pub fn with_budget(budget_bytes: usize) -> BufferPoolOptions {
        BufferPoolOptions {
            budget_bytes,
            prefetch_tasks: 4,
            clean_ahead: true,
            request_durable: None,
            log_end: None,
        }
    }

    fn image_count(&self) -> usize {
        (self.budget_bytes / IMAGE_SHARE / PAGE_SIZE).max(MIN_IMAGES)
    }

    fn frame_count(&self) -> usize {
        let bookkeeping_bytes = size_of::<Frame>() + size_of::<OwnedFrame>();
        let for_frames = self.budget_bytes.saturating_sub(self.image_count() * PAGE_SIZE);
        (for_frames / (PAGE_SIZE + bookkeeping_bytes)).max(MIN_FRAMES)
    }
}

/// The pages that a node has in memory. See the crate documentation.
pub struct BufferPool {
    pub(crate) store: Arc<dyn PageStore>,
    /// How the store takes dirty pages; without it, only the log brings changes there.
    pub(crate) local_images: Option<Arc<dyn LocalImages>>,
    /// Learns of pages that come, change and go.
    pub(crate) tier: Option<Arc<dyn PageTier>>,
    pub(crate) durable: DurableLsn,
    pub(crate) read_point: ReadPoint,
    pub(crate) request_durable: Option<RequestDurable>,
    pub(crate) log_end: Option<LogEnd>,
    pub(crate) translation: Translation,
    frames: Box<[Frame]>,
    pub(crate) free: FreeFrames,
    pub(crate) clock: Clock,
    pub(crate) flights: Flights,
    pub(crate) images: Arc<ImageBudget>,
    pub(crate) counters: Counters,
    pub(crate) signals: Arc<Signals>,
    pub(crate) tasks: Mutex<Vec<Box<dyn TaskHandle>>>,
    prefetching: bool,
    pub(crate) turns: Allowance,
    /// Frames reserved for new pages.
    pub(crate) reserved: Allowance,
    /// Frames without memory, see [`BufferPool::withhold`].
    withheld: Mutex<Vec<OwnedFrame>>,
    /// Present until the pool is dropped.
    memory: Option<FrameMemory>,
}

impl BufferPool {
    /// Makes a pool that shows the newest version of every page, registers it with `store` as a
    /// source of newer images if the store wants any, and starts the pool's tasks. They end when
    /// the pool is dropped or shut down.
    ///
    /// # Panics
    /// If there is no address space for the budget.
    #[must_use]
    pub fn new(
        env: Environment,
        store: Arc<dyn PageStore>,
        durable: DurableLsn,
        options: BufferPoolOptions,
    ) -> Arc<BufferPool> {
        let pool = BufferPool::with_read_point(store, durable, ReadPoint::Newest, &options);
        if let Some(images) = &pool.local_images {
            images.attach(Arc::new(CachedImages(Arc::downgrade(&pool))));
        }
        pool.start_tasks(&env, &options);
        pool
    }

    pub(crate) fn with_read_point(
        store: Arc<dyn PageStore>,
        durable: DurableLsn,
        read_point: ReadPoint,
        options: &BufferPoolOptions,
    ) -> Arc<BufferPool> {
        let count = options.frame_count();
        let (memory, slots) = FrameMemory::map(count);
        let local_images = match read_point {
            ReadPoint::Newest => Arc::clone(&store).local_images(),
            // The store has no use for an image older than the newest.
            ReadPoint::Applied(_) => None,
        };
        Arc::new(BufferPool {
            flights: Flights::new(durable()),
            tier: Arc::clone(&store).tier(),
            store,
            local_images,
            durable,
            read_point,
            request_durable: options.request_durable.clone(),
            log_end: options.log_end.clone(),
            translation: Translation::new(),
            frames: (0..count).map(|_| Frame::owned()).collect(),
            free: FreeFrames::new(slots),
            clock: Clock::new(count),
            images: ImageBudget::new(options.image_count()),
            counters: Counters::new(),
            signals: Arc::new(Signals::default()),
            tasks: Mutex::new(Vec::new()),
            prefetching: options.prefetch_tasks > 0,
            turns: Allowance::new(count / 2 / PINS_PER_TURN),
            reserved: Allowance::new(count / 4),
            withheld: Mutex::new(Vec::new()),
            memory: Some(memory),
        })
    }

    /// Stops the pool's tasks and waits until they have ended. Pages stay readable. Called with no
    /// guard held, and not by a task of the pool.
    pub fn shutdown(&self) {
        self.signals.stop();
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            task.join();
        }
    }

    /// Waits until few enough operations keep pages pinned. Called with no guard held and no page
    /// pinned; one turn per thread.
    pub fn turn(&self) -> Turn<'_> {
        Turn::take(&self.turns)
    }

    /// How many pages the pool can hold.
    #[must_use]
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Whether `page` is cached at this moment. A hint.
    #[must_use]
    pub fn contains(&self, page: PageId) -> bool {
        self.frame_of(page).is_some_and(|(_, frame)| frame.caches(page))
    }

    /// Shrinks the pool to `bytes` less than its budget, because other parts of the process need
    /// the memory. Pages are evicted and their memory returns to the operating system, as far as
    /// that is possible at once; the caller calls again for the rest. Half of the pool stays in any
    /// case. Memory that is no longer withheld is used for pages again. Returns the bytes withheld
    /// now. Called with no guard held, by one thread.
    pub fn withhold(&self, bytes: usize) -> usize {
        let most = self.frames.len().saturating_sub((self.frames.len() / 2).max(MIN_FRAMES));
        let target = bytes.div_ceil(PAGE_SIZE).min(most);
        loop {
            let withheld = self.withheld.lock().len();
            if withheld > target {
                let surplus = self.withheld.lock().split_off(target);
                surplus.into_iter().for_each(|frame| self.free.push(frame));
            }
            if withheld >= target {
                return target * PAGE_SIZE;
            }
            let Ok(mut frame) = self.try_take_frame() else { return withheld * PAGE_SIZE };
            frame.slot.release_memory();
            self.withheld.lock().push(frame);
        }
    }

    /// The bytes that [`BufferPool::withhold`] keeps from being used.
    #[must_use]
    pub fn withheld_bytes(&self) -> usize {
        self.withheld.lock().len() * PAGE_SIZE
    }

    /// Bytes that pages, published images and bookkeeping use now.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        let used = self.frames.len() - self.free.count() - self.withheld.lock().len();
        used * PAGE_SIZE
            + self.frames.len() * (size_of::<Frame>() + size_of::<OwnedFrame>())
            + self.images.live() * PAGE_SIZE
            + self.translation.size_bytes()
    }

    /// Counts since the pool was started.
    #[must_use]
    pub fn statistics(&self) -> PoolStatistics {
        self.counters.read()
    }

    /// Reports that `page` was changed elsewhere, in a durable log group that ends at `lsn`. An
    /// older cached version is dropped, and a load in progress begins again: guards taken after
    /// this call show the page as of `lsn` or later. A pool at an applied position does nothing
    /// until that position includes the change. Waits for the page's latch; called with no guard
    /// held.
    pub fn invalidate(&self, page: PageId, lsn: Lsn) {
        if !self.read_point.includes(lsn) {
            return;
        }
        self.flights.note_dropped(page, lsn);
        self.flights.require(page, lsn);
        if let Some((number, mut latch)) = self.latch_exclusive(page)
            && self.frame(number).lsn() < lsn
        {
            self.drop_page(number, page, &mut latch);
            self.counters.count(Counter::Invalidations);
        }
    }

    /// Drops every cached page of `space` without offering it. The space is being dropped, the
    /// record of the drop is in the log, and no operation uses its pages any more. Waits for
    /// latches; called with no guard held.
    pub fn discard_space(&self, space: SpaceId) {
        self.signals.forget_prefetches(space);
        self.flights.supersede_space(space);
        for (page, _) in self.translation.pages_of(space) {
            if let Some((number, mut latch)) = self.latch_exclusive(page) {
                self.drop_page(number, page, &mut latch);
            }
        }
        self.translation.release(space);
    }

    pub(crate) fn is_prefetching(&self) -> bool {
        self.prefetching
    }

    pub(crate) fn frame(&self, number: u32) -> &Frame {
        &self.frames[number as usize]
    }

    /// The frame that probably caches `page` (rule 2).
    pub(crate) fn frame_of(&self, page: PageId) -> Option<(u32, &Frame)> {
        let number = self.translation.lookup(page)?;
        Some((number, self.frames.get(number as usize)?))
    }

    fn copy_if_durable(&self, page: PageId, into: &mut PageBuf) -> bool {
        let Some((_, frame)) = self.frame_of(page) else { return false };
        let Some(latch) = frame.latch.try_read() else { return false };
        let Some(content) = latch.as_deref().filter(|_| frame.caches(page)) else { return false };
        let lsn = frame.lsn();
        if lsn > (self.durable)() {
            return false;
        }
        into.bytes_mut().copy_from_slice(content.bytes());
        // If the image were lost on its way, the store would find the version in its log: rule 8.
        frame.note_stored(lsn);
        true
    }
}

impl Drop for BufferPool {
    fn drop(&mut self) {
        self.signals.stop();
        let mut slots: Vec<PageSlot> = self.free.take_all();
        slots.extend(self.withheld.lock().drain(..).map(|frame| frame.slot));
        slots.extend(self.frames.iter().filter_map(|frame| frame.latch.write().take()));
        // A slot is missing only if a thread panicked while it owned a frame; the mapping then
        // stays.
        if let Some(memory) = self.memory.take().filter(|_| slots.len() == self.frames.len()) {
            memory.unmap(slots);
        }
    }
}

/// Through this the page store asks for newer images; does not keep the pool alive.
struct CachedImages(Weak<BufferPool>);

impl ImageSource for CachedImages {
    fn copy_image(&self, page: PageId, into: &mut PageBuf) -> bool {
        self.0.upgrade().is_some_and(|pool| pool.copy_if_durable(page, into))
    }
}

#[cfg(test)]
mod tests;
