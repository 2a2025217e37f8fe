//! Regions within one process: the embedded default, without any transport.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::region::{FabricError, Region};
use crate::words::{AtomicU64, Ordering};

/// A region in the hands of its owner, who uses the words directly.
#[derive(Debug, Clone)]
pub struct OwnedRegion {
    words: Arc<[AtomicU64]>,
}

impl OwnedRegion {
    /// A region of zeros that no peer can reach; register one with [`InProcessFabric::register`].
    #[must_use]
    pub fn unregistered(length_words: usize) -> OwnedRegion {
        OwnedRegion { words: (0..length_words).map(|_| AtomicU64::new(0)).collect() }
    }

    /// The words.
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        &self.words
    }

    fn range(&self, start: usize, length: usize) -> Result<&[AtomicU64], FabricError> {
        let end = start.saturating_add(length);
        self.words.get(start..end).ok_or(FabricError::OutOfBounds {
            start,
            end,
            length: self.words.len(),
        })
    }
}

impl Region for OwnedRegion {
    fn length_words(&self) -> usize {
        self.words.len()
    }

    fn read(&self, start: usize, into: &mut [u64]) -> Result<(), FabricError> {
        for (word, slot) in self.range(start, into.len())?.iter().zip(into) {
            *slot = word.load(Ordering::Acquire);
        }
        Ok(())
    }

    fn write(&self, start: usize, words: &[u64]) -> Result<(), FabricError> {
        for (slot, word) in self.range(start, words.len())?.iter().zip(words) {
            slot.store(*word, Ordering::Release);
        }
        Ok(())
    }

    fn compare_and_swap(&self, word: usize, expected: u64, new: u64) -> Result<u64, FabricError> {
        let slot = &self.range(word, 1)?[0];
        let swapped = slot.compare_exchange(expected, new, Ordering::AcqRel, Ordering::Acquire);
        Ok(swapped.unwrap_or_else(|found| found))
    }

    fn fetch_add(&self, word: usize, amount: u64) -> Result<u64, FabricError> {
        Ok(self.range(word, 1)?[0].fetch_add(amount, Ordering::AcqRel))
    }
}

/// The regions of one process, by name.
#[derive(Debug, Default)]
pub struct InProcessFabric {
    regions: Mutex<HashMap<String, OwnedRegion>>,
}

impl InProcessFabric {
    /// No regions.
    #[must_use]
    pub fn new() -> InProcessFabric {
        InProcessFabric::default()
    }

    /// Makes a region of zeros that peers can reach by `name`.
    ///
    /// # Errors
    /// [`FabricError::Registered`].
    pub fn register(&self, name: &str, length_words: usize) -> Result<OwnedRegion, FabricError> {
        let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        if regions.contains_key(name) {
            return Err(FabricError::Registered(name.to_owned()));
        }
        let region = OwnedRegion::unregistered(length_words);
        regions.insert(name.to_owned(), region.clone());
        Ok(region)
    }

    /// A peer's handle on the region `name`.
    ///
    /// # Errors
    /// [`FabricError::Unknown`].
    pub fn connect(&self, name: &str) -> Result<Arc<dyn Region>, FabricError> {
        let regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        let region = regions.get(name).ok_or_else(|| FabricError::Unknown(name.to_owned()))?;
        Ok(Arc::new(region.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_sees_what_the_owner_writes() {
        let fabric = InProcessFabric::new();
        let owner = fabric.register("timestamps", 2).unwrap();
        let peer = fabric.connect("timestamps").unwrap();
        owner.words()[1].store(7, Ordering::Release);
        let mut words = [0; 2];
        peer.read(0, &mut words).unwrap();
        assert_eq!(words, [0, 7]);
        assert_eq!(peer.fetch_add(1, 3).unwrap(), 7);
        assert_eq!(peer.compare_and_swap(1, 9, 1).unwrap(), 10);
        assert_eq!(peer.compare_and_swap(1, 10, 1).unwrap(), 10);
        assert_eq!(owner.words()[1].load(Ordering::Acquire), 1);
    }

    #[test]
    fn names_and_bounds_are_checked() {
        let fabric = InProcessFabric::new();
        fabric.register("a", 1).unwrap();
        assert!(matches!(fabric.register("a", 1), Err(FabricError::Registered(_))));
        assert!(matches!(fabric.connect("b"), Err(FabricError::Unknown(_))));
        let peer = fabric.connect("a").unwrap();
        assert!(peer.read(1, &mut [0]).is_err());
        assert!(peer.write(usize::MAX, &[0]).is_err());
    }
}
