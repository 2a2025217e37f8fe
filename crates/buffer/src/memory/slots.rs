//! One mapping that holds the bytes of every frame, handed out as page slots.
//!
//! ```text
//!   mapping  ├ slot 0 ┼ slot 1 ┼ slot 2 ┼ … ┤  16 KiB each, zero and untouched until first written
//! ```
//!
//! A [`PageSlot`] is the only way to the bytes of its part of the mapping, and there is one slot
//! per part: the owner of the slot owns the bytes, as with a `Box<PageBuf>`. The mapping is
//! unmapped only in exchange for all of its slots.

use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use firn_format::page::{PAGE_SIZE, PageBuf};
use rustix::mm::{Advice, MapFlags, ProtFlags};

/// Mappings begin at a multiple of this, so that the kernel can back them with huge pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The mapping under the slots of one pool. Dropping it leaks the mapping; [`FrameMemory::unmap`]
/// frees it.
pub(crate) struct FrameMemory {
    start: NonNull<c_void>,
    mapped_bytes: usize,
    slot_count: usize,
}

// SAFETY: the mapping is plain memory that belongs to no thread; `FrameMemory` itself only unmaps
// it.
unsafe impl Send for FrameMemory {}
// SAFETY: as above; a shared `FrameMemory` gives access to nothing.
unsafe impl Sync for FrameMemory {}

/// Exclusive ownership of the bytes of one page in a pool's mapping.
pub(crate) struct PageSlot {
    page: NonNull<PageBuf>,
}

// SAFETY: a slot is the unique owner of its bytes, like a `Box<PageBuf>`, and `PageBuf` is `Send +
// Sync`.
unsafe impl Send for PageSlot {}
// SAFETY: as above; through `&PageSlot` the bytes are only read.
unsafe impl Sync for PageSlot {}

impl FrameMemory {
    /// Maps room for `count` pages and cuts it into slots.
    ///
    /// # Panics
    /// If the operating system has no address space for it.
    pub(crate) fn map(count: usize) -> (FrameMemory, Vec<PageSlot>) {
        let mapped_bytes = count * PAGE_SIZE + HUGE_PAGE_BYTES;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches nothing
        // that exists.
        let start = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                mapped_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        };
        let start = start
            .unwrap_or_else(|error| panic!("cannot map {mapped_bytes} bytes of memory: {error}"));
        // SAFETY: the range is the mapping just made. Refusal costs speed only.
        let _ = unsafe { rustix::mm::madvise(start, mapped_bytes, Advice::LinuxHugepage) };
        let aligned = start.map_addr(|address| address.next_multiple_of(HUGE_PAGE_BYTES));
        let first = NonNull::new(aligned.cast::<PageBuf>()).expect("a mapping is not at address 0");
        let slot = |index| {
            // SAFETY: the mapping has room for `count` pages behind its first multiple of a huge
            // page, and every index is used once, so that no two slots share bytes. Zeros are a
            // valid `PageBuf`.
            PageSlot { page: unsafe { first.add(index) } }
        };
        let slots = (0..count).map(slot).collect();
        let start = NonNull::new(start).expect("a mapping is not at address 0");
        (FrameMemory { start, mapped_bytes, slot_count: count }, slots)
    }

    /// Returns the memory to the operating system.
    ///
    /// # Panics
    /// If `slots` are not all slots of the mapping; the mapping then stays.
    pub(crate) fn unmap(self, slots: Vec<PageSlot>) {
        let end = self.start.as_ptr().addr() + self.mapped_bytes;
        let ours =
            |slot: &PageSlot| (self.start.as_ptr().addr()..end).contains(&slot.page.addr().get());
        assert!(slots.len() == self.slot_count && slots.iter().all(ours), "a page slot is missing");
        drop(slots);
        // SAFETY: the mapping was made with this length, and every slot into it has just been given
        // up. A failure would leak address space, nothing else.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr(), self.mapped_bytes) };
    }
}

impl PageSlot {
    /// Returns the slot's memory to the operating system. The bytes read as zeros, and take memory
    /// again once they are written.
    pub(crate) fn release_memory(&mut self) {
        let start = self.page.as_ptr().cast::<c_void>();
        // SAFETY: the slot owns these bytes, which are whole pages of the machine within the
        // mapping, and is borrowed mutably; zeros are a valid `PageBuf`. Refusal costs memory only.
        let _ = unsafe { rustix::mm::madvise(start, PAGE_SIZE, Advice::LinuxDontNeed) };
    }
}

impl Deref for PageSlot {
    type Target = PageBuf;

    fn deref(&self) -> &PageBuf {
        // SAFETY: the slot owns these bytes (see `map`) and is borrowed.
        unsafe { self.page.as_ref() }
    }
}

impl DerefMut for PageSlot {
    fn deref_mut(&mut self) -> &mut PageBuf {
        // SAFETY: the slot owns these bytes (see `map`) and is borrowed mutably.
        unsafe { self.page.as_mut() }
    }
}
