//! A frame: the place of one cached page, with its latch and the pool's bookkeeping for the page.
//!
//! ```text
//!   owned  ──install──►  caching page P  ──evict / discard──►  owned
//!   pins = CLAIMED       pins = 0, 1, …                        (free list, reservation or loader)
//!   slot with owner      slot under the latch
//! ```
//!
//! Rules 1–4 of the crate's README.

use firn_base::{Lsn, PageId, PageNo, SpaceId};

use crate::memory::image::ImageSlot;
use crate::memory::slots::PageSlot;
use crate::sync::{
    AtomicU8, AtomicU32, AtomicU64, Ordering, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

/// No page: the value of [`Frame::page`] in a frame that caches none.
const NO_PAGE: u64 = PageId::new(SpaceId(u32::MAX), PageNo::NONE).to_u64();
/// The frame has an owner, or a thread is about to evict its page: no thread may pin it.
const CLAIMED: u32 = u32::MAX;
/// The clock passes a page this often before it is evicted.
const MAX_REFERENCE: u8 = 3;

/// How an operation uses a page, which decides how long the page is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// The page is likely to be wanted again.
    #[default]
    Normal,
    /// One pass over many pages: a page that only scans use is evicted first.
    Scan,
}

/// Shared latch on a frame; the slot exists as long as the frame caches a page.
pub(crate) type SharedLatch<'a> = RwLockReadGuard<'a, Option<PageSlot>>;
/// Exclusive latch on a frame.
pub(crate) type ExclusiveLatch<'a> = RwLockWriteGuard<'a, Option<PageSlot>>;

/// One cache line.
#[cfg_attr(not(feature = "shuttle"), repr(align(64)))]
pub(crate) struct Frame {
    pub(crate) latch: RwLock<Option<PageSlot>>,
    page: AtomicU64,
    version: AtomicU64,
    lsn: AtomicU64,
    stored_lsn: AtomicU64,
    pub(crate) image: ImageSlot,
    pins: AtomicU32,
    reference: AtomicU8,
}

/// A frame that caches nothing, and its bytes. Its owner may fill the bytes without a latch (rule
/// 4).
pub(crate) struct OwnedFrame {
    pub(crate) number: u32,
    pub(crate) slot: PageSlot,
}

/// What an owned frame becomes.
pub(crate) struct Install {
    pub(crate) page: PageId,
    pub(crate) stored_lsn: Lsn,
    pub(crate) pins: u32,
    pub(crate) access: Access,
}

impl Frame {
    /// A frame whose slot has an owner.
    pub(crate) fn owned() -> Frame {
        Frame {
            latch: RwLock::new(None),
            page: AtomicU64::new(NO_PAGE),
            version: AtomicU64::new(0),
            lsn: AtomicU64::new(0),
            stored_lsn: AtomicU64::new(0),
            image: ImageSlot::empty(),
            pins: AtomicU32::new(CLAIMED),
            reference: AtomicU8::new(0),
        }
    }

    /// The cached page. Stable under the latch or a pin.
    pub(crate) fn page(&self) -> Option<PageId> {
        let word = self.page.load(Ordering::Acquire);
        (word != NO_PAGE).then(|| PageId::from_u64(word))
    }

    /// Whether `page` is cached here. Stable under the latch or a pin.
    pub(crate) fn caches(&self, page: PageId) -> bool {
        self.page.load(Ordering::Acquire) == page.to_u64()
    }

    /// Counts the changes of the frame's content; never goes back.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Marks the content as about to differ from every earlier image. Under the exclusive latch.
    pub(crate) fn bump_version(&self) -> u64 {
        let version = self.version.load(Ordering::Relaxed) + 1;
        self.version.store(version, Ordering::Release);
        version
    }

    /// The end of the last log group that changed the page.
    pub(crate) fn lsn(&self) -> Lsn {
        Lsn(self.lsn.load(Ordering::Acquire))
    }

    /// Under the exclusive latch.
    pub(crate) fn set_lsn(&self, lsn: Lsn) {
        self.lsn.store(lsn.0, Ordering::Release);
    }

    /// The newest version that the page store is known to have.
    pub(crate) fn stored_lsn(&self) -> Lsn {
        Lsn(self.stored_lsn.load(Ordering::Acquire))
    }

    /// The page store has, or was handed, the version `lsn`. Under the latch.
    pub(crate) fn note_stored(&self, lsn: Lsn) {
        self.stored_lsn.fetch_max(lsn.0, Ordering::AcqRel);
    }

    /// Keeps the page here until [`Frame::unpin`]; false if the frame is claimed (rule 3).
    pub(crate) fn try_pin(&self) -> bool {
        let mut pins = self.pins.load(Ordering::Relaxed);
        while pins != CLAIMED {
            match self.pins.compare_exchange_weak(
                pins,
                pins + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => pins = now,
            }
        }
        false
    }

    pub(crate) fn unpin(&self) {
        let before = self.pins.fetch_sub(1, Ordering::Release);
        debug_assert!(before != 0 && before != CLAIMED, "a pin is ended once");
    }

    /// Claims the frame for eviction if no thread has pinned it (rule 3).
    pub(crate) fn try_claim(&self) -> bool {
        self.pins.compare_exchange(0, CLAIMED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    pub(crate) fn unclaim(&self) {
        self.pins.store(0, Ordering::Release);
    }

    /// Whether the frame is neither pinned nor claimed. A hint.
    pub(crate) fn looks_evictable(&self) -> bool {
        self.pins.load(Ordering::Relaxed) == 0
    }

    /// Counts a use of the page. Writes only until the count is full.
    pub(crate) fn touch(&self, access: Access) {
        let reference = self.reference.load(Ordering::Relaxed);
        if access == Access::Normal && reference < MAX_REFERENCE {
            self.reference.store(reference + 1, Ordering::Relaxed);
        }
    }

    /// Whether only scans used the page since the clock last passed.
    pub(crate) fn is_cold(&self) -> bool {
        self.reference.load(Ordering::Relaxed) == 0
    }

    /// The clock passes. True if the page was unused for long enough to be evicted.
    pub(crate) fn grow_cold(&self) -> bool {
        let reference = self.reference.load(Ordering::Relaxed);
        if reference > 0 {
            self.reference.store(reference - 1, Ordering::Relaxed);
        }
        reference == 0
    }

    /// Puts a slot in place, so that the frame caches a page. The caller owned the frame. The latch
    /// waits at most for a thread that is about to notice that it came to the wrong frame (rule 2).
    pub(crate) fn install(&self, slot: PageSlot, install: &Install) -> ExclusiveLatch<'_> {
        let mut latch = self.latch.write();
        let lsn = slot.lsn();
        let previous = latch.replace(slot);
        assert!(previous.is_none(), "an owned frame has no slot");
        self.set_lsn(lsn);
        self.stored_lsn.store(install.stored_lsn.0, Ordering::Release);
        self.bump_version();
        self.reference.store(u8::from(install.access == Access::Normal), Ordering::Relaxed);
        self.page.store(install.page.to_u64(), Ordering::Release);
        self.pins.store(install.pins, Ordering::Release);
        latch
    }

    /// The page is no longer cached here. Under the exclusive latch; the caller takes the slot.
    pub(crate) fn forget_page(&self) {
        self.page.store(NO_PAGE, Ordering::Release);
        self.bump_version();
        if !self.image.is_empty() {
            let epoch = crossbeam_epoch::pin();
            if self.image.replace(None, &epoch) {
                epoch.flush();
            }
        }
    }
}
