//! A peer's places in the owner's registry of snapshots: taking them, changing them, and giving
//! them back when the owner could not be reached in between.
//!
//! ```text
//!   take       FREE ──► token            compare and swap: the place is this peer's
//!   register   token ──► snapshot        … and its content too, so nothing happens to a place that
//!   give back  snapshot ──► FREE         the owner has given to another peer
//! ```
//!
//! After an error it is unknown whether a swap was done. So a peer remembers every value that the
//! word may have, and the next swap tries each of them. Batches of a region happen in their order,
//! so a late swap cannot undo a later one. A token is unique: the peer's number, which the owner's
//! region counts, and a number of this peer's. What could not be given back is given back with the
//! next place that is taken. If the peer never comes back, the owner frees its places
//! ([`Snapshots::forget_peer`]).
//!
//! [`Snapshots::forget_peer`]: crate::transaction::snapshots::Snapshots::forget_peer

use std::sync::Arc;

use firn_base::Cts;
use firn_fabric::{Batch, FabricError, Region};

use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::transaction::snapshots::{self, FREE, PEER_PLACES, UNSETTLED};

/// Bits of a token for the number of a place's use; the bits above are the peer's number.
const USE_BITS: u32 = 32;

/// The places of one peer.
pub(super) struct Places {
    region: Arc<dyn Region>,
    next_token: AtomicU64,
    /// Places that could not be given back.
    owed: Mutex<Vec<Held>>,
}

/// A word of the region that this peer may have.
struct Held {
    word: usize,
    /// What the word contains, if it is this peer's.
    values: Vec<u64>,
}

/// A place of this peer. Dropping it gives it back.
pub(super) struct Place {
    places: Arc<Places>,
    held: Held,
}

impl Places {
    /// Gets a number for this peer. Blocks for a round trip.
    ///
    /// # Errors
    /// If the owner cannot be reached.
    pub(super) fn connect(region: Arc<dyn Region>) -> Result<Arc<Places>, FabricError> {
        let peer = region.fetch_add(snapshots::PEERS_WORD, 1)?;
        let next_token = AtomicU64::new(UNSETTLED | peer << USE_BITS);
        Ok(Arc::new(Places { region, next_token, owed: Mutex::new(Vec::new()) }))
    }

    /// Takes a place for a snapshot that may have any age. `None` if none is free. Blocks for a
    /// round trip for each place that is taken already.
    ///
    /// # Errors
    /// If the owner cannot be reached.
    pub(super) fn take(self: &Arc<Places>) -> Result<Option<Place>, FabricError> {
        self.give_back_owed()?;
        for number in 0..PEER_PLACES {
            let token = self.next_token.fetch_add(1, Ordering::Relaxed);
            let held = Held { word: snapshots::peer_word(number), values: vec![token] };
            match self.region.compare_and_swap(held.word, FREE, token) {
                Ok(FREE) => return Ok(Some(Place { places: Arc::clone(self), held })),
                Ok(_) => {}
                Err(error) => {
                    self.owed.lock().push(held);
                    return Err(error);
                }
            }
        }
        Ok(None)
    }

    /// Replaces whatever value of this peer the word has; returns whether it had one, and the
    /// announced horizon after that.
    fn replace(&self, held: &Held, new: u64) -> Result<(bool, Cts), FabricError> {
        let mut batch = Batch::new();
        let swaps: Vec<_> = held
            .values
            .iter()
            .map(|value| (batch.compare_and_swap(held.word, *value, new), *value))
            .collect();
        let announced = batch.read(snapshots::ANNOUNCED_WORD, 1);
        let answers = self.region.submit(batch).wait(self.region.timeout())?;
        let was_held = swaps.into_iter().any(|(found, value)| answers.word(found) == value);
        Ok((was_held, Cts(answers.word(announced))))
    }

    fn give_back(&self, held: Held) -> Result<(), FabricError> {
        match self.replace(&held, FREE) {
            Ok(_) => Ok(()),
            // The places have ended with the owner's epoch.
            Err(FabricError::Stale { .. }) => Ok(()),
            Err(error) => {
                self.owed.lock().push(held);
                Err(error)
            }
        }
    }

    fn give_back_owed(&self) -> Result<(), FabricError> {
        let owed = std::mem::take(&mut *self.owed.lock());
        let mut outcome = Ok(());
        for held in owed {
            outcome = outcome.and(self.give_back(held));
        }
        outcome
    }
}

impl Place {
    /// Enters a snapshot into the place; returns the announced horizon after that. Blocks for a
    /// round trip.
    ///
    /// # Errors
    /// If the owner cannot be reached, or has given the place away.
    pub(super) fn register(&mut self, snapshot: Cts) -> Result<Cts, FabricError> {
        let new = snapshots::registered(snapshot);
        // The last of them is tried last, and finds what the others have written.
        self.held.values.retain(|value| *value != new);
        self.held.values.push(new);
        let (was_held, announced) = self.places.replace(&self.held, new)?;
        if !was_held {
            let reason = "it has given this peer's snapshot up".to_owned();
            return Err(FabricError::Unreachable { owner: snapshots::REGION.to_owned(), reason });
        }
        self.held.values = vec![new];
        Ok(announced)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let nothing = Held { word: self.held.word, values: Vec::new() };
        // After an error the place is owed.
        let _ = self.places.give_back(std::mem::replace(&mut self.held, nothing));
    }
}
