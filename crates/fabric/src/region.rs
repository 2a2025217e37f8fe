//! The seams: what an owner needs of a fabric, and what a peer can do with another node's region.

use std::sync::Arc;
use std::time::Duration;

use crate::batch::{Batch, Completion};
use crate::owned::OwnedRegion;

/// Which life of its owner a region belongs to: an owner that starts again has a higher one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl std::fmt::Display for Epoch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Why a one-sided access did not happen, or may not have happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FabricError {
    /// No such region is registered.
    #[error("no region named {0} is registered")]
    Unknown(String),
    /// The name is taken.
    #[error("a region named {0} is already registered")]
    Registered(String),
    /// The access goes beyond the region's end. No operation of its batch was done.
    #[error("words {start}..{end} are beyond the end of a region of {length} words")]
    OutOfBounds {
        /// First word.
        start: usize,
        /// One past the last word.
        end: usize,
        length: usize,
    },
    /// The owner's epoch has ended: connect again, to whatever it has registered since.
    #[error("epoch {epoch} of the region's owner has ended")]
    Stale {
        /// The epoch that the peer had connected to.
        epoch: Epoch,
    },
    /// The owner cannot be reached. Operations that were under way may or may not have been done.
    #[error("the owner of the regions at {owner} cannot be reached: {reason}")]
    Unreachable {
        owner: String,
        /// The transport's reason.
        reason: String,
    },
    /// The time ran out. Operations that were under way may still be done.
    #[error("one-sided access took longer than {timeout:?}")]
    TimedOut {
        /// How long the peer was willing to wait.
        timeout: Duration,
    },
    /// The owner speaks another version of the fabric's protocol, or none.
    #[error("{owner} does not serve regions in a form that this process knows: {reason}")]
    Incompatible { owner: String, reason: String },
}

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
    /// The region's length in words.
    fn length_words(&self) -> usize;

    /// The epoch that the region belongs to.
    fn epoch(&self) -> Epoch;

    /// How long [`Region::read`] and the other calls for one act wait.
    fn timeout(&self) -> Duration;

    /// Submits a batch. Never blocks; the completion reports that all of the batch was done, or an
    /// error.
    fn submit(&self, batch: Batch) -> Completion;

    /// Reads the words from `start` in ascending order. Blocks for a round trip.
    ///
    /// # Errors
    /// All of [`FabricError`] that concern an access.
    fn read(&self, start: usize, into: &mut [u64]) -> Result<(), FabricError> {
        let mut batch = Batch::new();
        let words = batch.read(start, into.len());
        into.copy_from_slice(self.submit(batch).wait(self.timeout())?.words(words));
        Ok(())
    }

    /// Reads bytes from the word `start` on, the low byte of each word first. Blocks for a round
    /// trip.
    ///
    /// # Errors
    /// As [`Region::read`].
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
    /// As [`Region::read`].
    fn write(&self, start: usize, words: &[u64]) -> Result<(), FabricError> {
        let mut batch = Batch::new();
        batch.write(start, words.to_vec());
        self.submit(batch).wait(self.timeout()).map(drop)
    }

    /// Writes bytes as [`Region::read_bytes`] reads them; the last word is filled up with zeros.
    ///
    /// # Errors
    /// As [`Region::read`].
    fn write_bytes(&self, start: usize, bytes: &[u8]) -> Result<(), FabricError> {
        let mut batch = Batch::new();
        batch.write_bytes(start, bytes);
        self.submit(batch).wait(self.timeout()).map(drop)
    }

    /// Writes `new` if the word equals `expected`; returns the word's former value. Blocks for a
    /// round trip.
    ///
    /// # Errors
    /// As [`Region::read`].
    fn compare_and_swap(&self, word: usize, expected: u64, new: u64) -> Result<u64, FabricError> {
        let mut batch = Batch::new();
        let found = batch.compare_and_swap(word, expected, new);
        Ok(self.submit(batch).wait(self.timeout())?.word(found))
    }

    /// Adds to a word; returns its former value. Blocks for a round trip.
    ///
    /// # Errors
    /// As [`Region::read`].
    fn fetch_add(&self, word: usize, amount: u64) -> Result<u64, FabricError> {
        let mut batch = Batch::new();
        let found = batch.fetch_add(word, amount);
        Ok(self.submit(batch).wait(self.timeout())?.word(found))
    }
}
