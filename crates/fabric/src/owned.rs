//! A region on the owner's side, which uses the words directly.

use std::sync::Arc;

#[cfg(not(feature = "shuttle"))]
use crate::mapping::Mapping;
use crate::words::AtomicU64;

/// Clones are the same region.
#[derive(Debug, Clone)]
pub struct OwnedRegion(Memory);

#[derive(Debug, Clone)]
enum Memory {
    Heap(Arc<[AtomicU64]>),
    #[cfg(not(feature = "shuttle"))]
    Shared(Arc<Mapping>),
}

impl OwnedRegion {
    /// A region of zeros that no peer can reach.
    #[must_use]
    pub fn unregistered(length_words: usize) -> OwnedRegion {
        OwnedRegion(Memory::Heap((0..length_words).map(|_| AtomicU64::new(0)).collect()))
    }

    #[cfg(not(feature = "shuttle"))]
    pub(crate) fn shared(mapping: Arc<Mapping>) -> OwnedRegion {
        OwnedRegion(Memory::Shared(mapping))
    }

    #[inline]
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        match &self.0 {
            Memory::Heap(words) => words,
            #[cfg(not(feature = "shuttle"))]
            Memory::Shared(mapping) => mapping.words(),
        }
    }

    /// The memory that other processes may reach: the header, then the words. `None` if the region
    /// is of this process alone.
    #[cfg(not(feature = "shuttle"))]
    #[must_use]
    pub fn memory(&self) -> Option<&[AtomicU64]> {
        match &self.0 {
            Memory::Heap(_) => None,
            Memory::Shared(mapping) => Some(mapping.all_words()),
        }
    }
}
