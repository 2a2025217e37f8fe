//! Memory that processes of one machine share: a header, then a region's words.
//!
//! ```text
//!   offset  0           8        16     24               32     4096
//!           "FnRegion"  version  epoch  length in words  ended  words
//! ```
//!
//! The memory is an unnamed file, sealed at its length, so that no process can cut it while another
//! one uses it. `docs/formats/shared-region.md` describes it for other programs.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use crate::epoch::Epoch;
use crate::header::{
    ENDED_WORD, EPOCH_WORD, HEADER_BYTES, Header, HeaderError, LENGTH_WORD, MAGIC, MAGIC_WORD,
    USED_WORDS, VERSION, VERSION_WORD,
};

/// A mapped region, of the owner or of a peer. Dropping it unmaps the memory.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<c_void>,
    length_words: usize,
    descriptor: OwnedFd,
}

// SAFETY: the mapping is plain memory that belongs to no thread.
unsafe impl Send for Mapping {}
// SAFETY: all access goes through atomics.
unsafe impl Sync for Mapping {}

/// Why a mapping was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MappingError {
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error("the memory's length differs from the region's header, or the memory is not sealed")]
    Length,
    #[error(transparent)]
    System(#[from] io::Error),
}

fn size_of_region(length_words: usize) -> io::Result<usize> {
    let words = length_words.checked_mul(size_of::<u64>());
    let size = words.and_then(|bytes| bytes.checked_add(HEADER_BYTES));
    size.ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

impl Mapping {
    /// Memory for a new region of zeros.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn create(name: &str, length_words: usize, epoch: Epoch) -> io::Result<Mapping> {
        let bytes = size_of_region(length_words)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let descriptor = rustix::fs::memfd_create(name, flags)?;
        rustix::fs::ftruncate(&descriptor, bytes as u64)?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&descriptor, seals)?;
        let mapping = Mapping::map(descriptor, length_words)?;
        let header = mapping.header();
        header[MAGIC_WORD].store(u64::from_le_bytes(MAGIC), Ordering::Relaxed);
        header[VERSION_WORD].store(VERSION, Ordering::Relaxed);
        header[EPOCH_WORD].store(epoch.0, Ordering::Relaxed);
        header[LENGTH_WORD].store(length_words as u64, Ordering::Release);
        Ok(mapping)
    }

    /// Maps a region that another process has passed.
    ///
    /// # Errors
    /// Why the memory is not a region of this version.
    pub(crate) fn open(descriptor: OwnedFd) -> Result<Mapping, MappingError> {
        let bytes = rustix::fs::fstat(&descriptor).map_err(io::Error::from)?.st_size;
        let words = usize::try_from(bytes).ok().and_then(|bytes| bytes.checked_sub(HEADER_BYTES));
        let words = words.ok_or(MappingError::Length)?;
        // Memory that its owner could cut would end this process at the next access.
        let seals = rustix::fs::fcntl_get_seals(&descriptor).map_err(io::Error::from)?;
        if !seals.contains(SealFlags::SHRINK) || words % size_of::<u64>() != 0 {
            return Err(MappingError::Length);
        }
        let mapping = Mapping::map(descriptor, words / size_of::<u64>())?;
        let words = std::array::from_fn::<_, USED_WORDS, _>(|word| {
            mapping.header()[word].load(Ordering::Acquire)
        });
        match Header::parse(&words)?.length_words == mapping.length_words as u64 {
            true => Ok(mapping),
            false => Err(MappingError::Length),
        }
    }

    fn map(descriptor: OwnedFd, length_words: usize) -> io::Result<Mapping> {
        let bytes = size_of_region(length_words)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses overlaps no existing memory.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes,
                protection,
                MapFlags::SHARED,
                &descriptor,
                0,
            )
        }?;
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, length_words, descriptor })
    }

    /// The header, then the region's words.
    pub(crate) fn all_words(&self) -> &[AtomicU64] {
        let length = HEADER_BYTES / size_of::<u64>() + self.length_words;
        // SAFETY: the mapping holds `length` words, is page-aligned, initialised with zeros, sealed
        // against being cut, and lives as long as `self`. Every process accesses it through atomics
        // alone.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast::<AtomicU64>(), length) }
    }

    fn header(&self) -> &[AtomicU64] {
        &self.all_words()[..HEADER_BYTES / size_of::<u64>()]
    }

    #[inline]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        &self.all_words()[HEADER_BYTES / size_of::<u64>()..]
    }

    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.header()[EPOCH_WORD].load(Ordering::Acquire))
    }

    /// Marks the region: the owner's epoch has ended.
    pub(crate) fn end(&self) {
        self.header()[ENDED_WORD].store(1, Ordering::Release);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.header()[ENDED_WORD].load(Ordering::Acquire) != 0
    }
}

impl AsFd for Mapping {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let bytes = HEADER_BYTES + self.length_words * size_of::<u64>();
        // SAFETY: this is the whole mapping, and no borrow of its words exists any more.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr(), bytes) };
        debug_assert!(unmapped.is_ok(), "a mapping can be unmapped");
    }
}
