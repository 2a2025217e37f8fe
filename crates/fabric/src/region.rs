//! The seams: how an owner makes regions, and what a peer can do with another node's regions.

use std::sync::Arc;
use std::time::Duration;

use crate::batch::{Answers, Batch, Completion};
use crate::epoch::Epoch;
use crate::error::FabricError;
use crate::owned::OwnedRegion;

/// The owner's side: makes regions that peers can reach.
pub trait Fabric: Send + Sync {
    /// Makes a region of zeros that peers can reach by `name`.
    ///
    /// # Errors
    /// [`FabricError::Registered`]; [`FabricError::Unreachable`] if there is no memory for it.
    fn register(&self, name: &str, length_words: usize) -> Result<OwnedRegion, FabricError>;

    /// The epoch of all regions that this owner registers.
    fn epoch(&self) -> Epoch;
}

/// The peer's side: all regions of one owner.
pub trait Peer: Send + Sync {
    /// A handle on the region `name`. May block for a round trip.
    ///
    /// # Errors
    /// [`FabricError::Unknown`], [`FabricError::Stale`], [`FabricError::Unreachable`],
    /// [`FabricError::TimedOut`].
    fn connect(&self, name: &str) -> Result<Arc<dyn Region>, FabricError>;
}

/// A region from a peer's side.
pub trait Region: Send + Sync {
    fn length_words(&self) -> usize;

    /// The epoch that the region belongs to.
    fn epoch(&self) -> Epoch;

    /// Whether batches end when they are submitted, without a message: a latch may be held during
    /// one.
    fn is_at_hand(&self) -> bool {
        true
    }

    /// How long [`Region::read`] and the other calls for one act wait.
    fn timeout(&self) -> Duration;

    /// Submits a batch. Does not wait for the owner, only for room on a full way to it; the
    /// completion reports that all of the batch was done, or an error. Batches of one region happen
    /// in the order of their submission: after a batch was done, no earlier one happens any more,
    /// whatever was reported for it.
    fn submit(&self, batch: Batch) -> Completion;

    /// Submits a batch and waits for its end. Blocks for a round trip.
    ///
    /// # Errors
    /// All of [`FabricError`] that concern an access.
    fn run(&self, batch: Batch) -> Result<Answers, FabricError> {
        self.submit(batch).wait(self.timeout())
    }

    /// Reads the words from `start` in ascending order. Blocks for a round trip.
    ///
    /// # Errors
    /// As [`Region::run`].
    fn read(&self, start: usize, into: &mut [u64]) -> Result<(), FabricError> {
        let mut batch = Batch::new();
        let words = batch.read(start, into.len());
        into.copy_from_slice(self.run(batch)?.words(words));
        Ok(())
    }

    /// Reads bytes from the word `start` on, the low byte of each word first. Blocks for a round
    /// trip.
    ///
    /// # Errors
    /// As [`Region::run`].
    fn read_bytes(&self, start: usize, into: &mut [u8]) -> Result<(), FabricError> {
        let mut words = vec![0; into.len().div_ceil(size_of::<u64>())];
        self.read(start, &mut words)?;
        for (bytes, word) in into.chunks_mut(size_of::<u64>()).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
        }
        Ok(())
    }

    /// Writes the words from `start` in ascending order. Blocks for a round trip.
    ///
    /// # Errors
    /// As [`Region::run`].
    fn write(&self, start: usize, words: &[u64]) -> Result<(), FabricError> {
        let mut batch = Batch::new();
        batch.write(start, words.to_vec());
        self.run(batch).map(drop)
    }

    /// Writes bytes as [`Region::read_bytes`] reads them; the last word is padded with zeros.
    ///
    /// # Errors
    /// As [`Region::run`].
    fn write_bytes(&self, start: usize, bytes: &[u8]) -> Result<(), FabricError> {
        let mut batch = Batch::new();
        batch.write_bytes(start, bytes);
        self.run(batch).map(drop)
    }

    /// Writes `new` if the word equals `expected`; returns the word's former value. Blocks for a
    /// round trip.
    ///
    /// # Errors
    /// As [`Region::run`].
    fn compare_and_swap(&self, word: usize, expected: u64, new: u64) -> Result<u64, FabricError> {
        let mut batch = Batch::new();
        let found = batch.compare_and_swap(word, expected, new);
        Ok(self.run(batch)?.word(found))
    }

    /// Adds to a word; returns its former value. Blocks for a round trip.
    ///
    /// # Errors
    /// As [`Region::run`].
    fn fetch_add(&self, word: usize, amount: u64) -> Result<u64, FabricError> {
        let mut batch = Batch::new();
        let found = batch.fetch_add(word, amount);
        Ok(self.run(batch)?.word(found))
    }
}
