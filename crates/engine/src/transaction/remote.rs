//! Transactions of another node, read only through its regions. A read-only node decides with them
//! which versions it sees, and keeps these versions from being purged (papers 000 §4.2, 003 §III).
//!
//! ```text
//!   peer                                              owner's regions
//!   open: D ← durable commits ─────────────────────►  timestamps
//!         place ← D, then read the announcement ────► snapshots      (the protocol of `snapshots`)
//!   outcome(trx): slot, then the overflow's bucket ─► transaction-table, transaction-overflow-n
//!   durable_lsn ────────────────────────────────────► durable-lsn
//! ```
//!
//! A peer sees only *durable* commits: a commit that the owner has not synced yet may be lost in a
//! failover, so no other node may see it. The owner purges only up to durable commits too. So
//! `horizon ≤ announced ≤ durable commits` at all times, and a peer's new snapshot is never older
//! than the announced horizon.
//!
//! Each call costs one round trip, because a slot and the size of the overflow are read in one
//! batch. A transaction that the owner has offloaded costs a second one.

mod places;

use std::sync::Arc;

use firn_base::{Cts, Lsn, TrxId};
use firn_fabric::{Batch, FabricError, Peer, Region};

use self::places::{Place, Places};
use super::commit_order;
use super::snapshots;
use super::table::overflow::{
    self, BUCKET_WORDS, COMMIT_LSN, ENTRY_WORDS, HEADER_WORDS, ID, OUTCOME, bucket_start,
    segment_name,
};
use super::table::{self, Entry, Outcome, SLOT_WORDS, active, committing, moving};
use crate::log::{DURABLE_REGION, EPOCH_WORD};
use crate::sync::{Mutex, spin};

/// The transactions of one owner, as a peer sees them. Ends with the owner's epoch.
pub struct RemoteTransactions {
    peer: Arc<dyn Peer>,
    table: Arc<dyn Region>,
    timestamps: Arc<dyn Region>,
    snapshots: Arc<dyn Region>,
    durable_lsn: Arc<dyn Region>,
    places: Arc<Places>,
    overflow: Mutex<Vec<Arc<dyn Region>>>,
    /// Where the overflow's counters lie in the table's region, after a power of two of slots.
    header_start: usize,
}

/// A peer's open snapshot. The owner purges no version that it sees.
pub struct RemoteSnapshot {
    place: Place,
    cts: Cts,
}

impl RemoteTransactions {
    /// Connects to the regions of an owner. Blocks.
    ///
    /// # Errors
    /// If the owner cannot be reached, or does not have the regions.
    pub fn connect(peer: Arc<dyn Peer>) -> Result<RemoteTransactions, FabricError> {
        let table = peer.connect(table::REGION)?;
        let header_start = table.length_words().saturating_sub(HEADER_WORDS);
        let slots = header_start / SLOT_WORDS;
        if !slots.is_power_of_two() {
            return Err(FabricError::Incompatible {
                owner: table::REGION.to_owned(),
                reason: format!("a table of {slots} slots, which is no power of two"),
            });
        }
        let snapshots = peer.connect(snapshots::REGION)?;
        Ok(RemoteTransactions {
            timestamps: peer.connect(commit_order::REGION)?,
            durable_lsn: peer.connect(DURABLE_REGION)?,
            places: Places::connect(Arc::clone(&snapshots))?,
            snapshots,
            overflow: Mutex::new(Vec::new()),
            header_start,
            table,
            peer,
        })
    }

    /// The timestamp up to which all commits are durable, and so visible to peers. Blocks for a
    /// round trip.
    ///
    /// # Errors
    /// If the owner cannot be reached.
    pub fn durable_commits(&self) -> Result<Cts, FabricError> {
        let mut word = [0];
        self.timestamps.read(commit_order::DURABLE_WORD, &mut word)?;
        Ok(Cts(word[0]))
    }

    /// The end of the owner's durable log. What a participant has prepared is safe once this is at
    /// or above the position that it reported. Blocks for a round trip.
    ///
    /// # Errors
    /// If the owner cannot be reached.
    pub fn durable_lsn(&self) -> Result<Lsn, FabricError> {
        let mut word = [0];
        self.durable_lsn.read(0, &mut word)?;
        Ok(Lsn(word[0]))
    }

    /// The epoch in which the owner writes its log. Blocks for a round trip.
    ///
    /// # Errors
    /// If the owner cannot be reached.
    pub fn log_epoch(&self) -> Result<u64, FabricError> {
        let mut word = [0];
        self.durable_lsn.read(EPOCH_WORD, &mut word)?;
        Ok(word[0])
    }

    /// What a snapshot that is taken at the owner sees; its commits may not be durable yet. Blocks
    /// for a round trip.
    ///
    /// # Errors
    /// If the owner cannot be reached.
    pub fn visible(&self) -> Result<Cts, FabricError> {
        let mut word = [0];
        self.timestamps.read(commit_order::MAX_COMMITTED_WORD, &mut word)?;
        Ok(Cts(word[0]))
    }

    /// The last timestamp that was handed out to a commit. Blocks for a round trip.
    ///
    /// # Errors
    /// If the owner cannot be reached.
    pub fn last_handed_out(&self) -> Result<Cts, FabricError> {
        let mut word = [0];
        self.timestamps.read(commit_order::LAST_WORD, &mut word)?;
        Ok(Cts(word[0]))
    }

    /// The timestamp below which no snapshot is open. Blocks for a round trip.
    ///
    /// # Errors
    /// If the owner cannot be reached.
    pub fn horizon(&self) -> Result<Cts, FabricError> {
        let mut word = [0];
        self.snapshots.read(snapshots::HORIZON_WORD, &mut word)?;
        Ok(Cts(word[0]))
    }

    /// The outcome of `trx`. Blocks for one or two round trips.
    ///
    /// # Errors
    /// If the owner cannot be reached.
    pub fn outcome(&self, trx: TrxId) -> Result<Outcome, FabricError> {
        // A slot that was never used has this id.
        if trx == TrxId::NONE {
            return Ok(Outcome::Settled);
        }
        let slots = self.header_start / SLOT_WORDS;
        let start = (trx.0 as usize & (slots - 1)) * SLOT_WORDS;
        let mut batch = Batch::new();
        // The words are read in the order that the table's rules require.
        let slot = batch.read(start, COMMIT_LSN + 1);
        let again = batch.read(start + ID, 1);
        let header = batch.read(self.header_start, HEADER_WORDS);
        let answers = self.table.run(batch)?;
        let slot = answers.words(slot);
        if slot[ID] == trx.0 && answers.word(again) == trx.0 {
            return Ok(Entry { outcome: slot[OUTCOME], commit_lsn: slot[COMMIT_LSN] }.outcome());
        }
        let header = answers.words(header);
        if header[overflow::COUNT] == 0 {
            return Ok(Outcome::Settled);
        }
        loop {
            match self.overflowed(trx, header[overflow::SEGMENTS] as usize)? {
                Some(outcome) => return Ok(outcome),
                None => spin(),
            }
        }
    }

    /// The outcome of a transaction that has no slot. `None` while the owner is offloading it.
    fn overflowed(&self, trx: TrxId, segments: usize) -> Result<Option<Outcome>, FabricError> {
        for segment in self.segments(segments)? {
            let start = bucket_start(trx, segment.length_words());
            let mut batch = Batch::new();
            let bucket = batch.read(start, BUCKET_WORDS);
            let again = batch.read(start, BUCKET_WORDS);
            let answers = segment.run(batch)?;
            let entries = answers.words(bucket).chunks_exact(ENTRY_WORDS);
            let again = answers.words(again).chunks_exact(ENTRY_WORDS);
            if let Some((entry, again)) = entries.zip(again).find(|(entry, _)| entry[ID] == trx.0) {
                let found = Entry { outcome: entry[OUTCOME], commit_lsn: entry[COMMIT_LSN] };
                // The slot was reused in the meantime, so every snapshot sees the transaction.
                let is_its = again[ID] == trx.0;
                let outcome = if is_its { found.outcome() } else { Outcome::Settled };
                return Ok((!is_its || !found.is_moving()).then_some(outcome));
            }
        }
        Ok(Some(Outcome::Settled))
    }

    /// Sets a prepared transaction to COMMITTING, as
    /// [`TransactionSystem::set_committing`](super::TransactionSystem::set_committing) does at the
    /// owner. Returns the lowest timestamp that the coordinator may choose; `None` if the
    /// transaction has ended. Blocks for a few round trips.
    ///
    /// # Errors
    /// If the owner cannot be reached. The transaction may be COMMITTING then; the call may be
    /// repeated.
    pub fn set_committing(&self, trx: TrxId) -> Result<Option<Cts>, FabricError> {
        loop {
            let found = match self.set_slot_committing(trx)? {
                Err(segments) => self.set_overflowed_committing(trx, segments)?,
                Ok(found) => Some(found),
            };
            match found {
                Some(outcome) if outcome == moving(trx) => spin(),
                Some(outcome) if outcome == active(trx) || outcome == committing(trx) => {
                    // Only now: a snapshot that has met the transaction as ACTIVE was handed out
                    // before.
                    return Ok(Some(Cts(self.last_handed_out()?.0 + 1)));
                }
                _ => return Ok(None),
            }
        }
    }

    /// Sets the slot of `trx` from ACTIVE to COMMITTING. Returns its former outcome, or the number
    /// of the overflow's segments if `trx` has no slot.
    fn set_slot_committing(&self, trx: TrxId) -> Result<Result<u64, usize>, FabricError> {
        let slots = self.header_start / SLOT_WORDS;
        let start = (trx.0 as usize & (slots - 1)) * SLOT_WORDS;
        let mut batch = Batch::new();
        let found = batch.compare_and_swap(start + OUTCOME, active(trx), committing(trx));
        // The outcome of a transaction that was rolled back stays behind in its slot.
        let id = batch.read(start + ID, 1);
        let header = batch.read(self.header_start, HEADER_WORDS);
        let answers = self.table.submit(batch).wait(self.table.timeout())?;
        Ok(match answers.word(id) == trx.0 {
            true => Ok(answers.word(found)),
            false => Err(answers.words(header)[overflow::SEGMENTS] as usize),
        })
    }

    /// The same for a transaction that has lost its slot. `None` if it is not in the table.
    fn set_overflowed_committing(
        &self,
        trx: TrxId,
        segments: usize,
    ) -> Result<Option<u64>, FabricError> {
        for segment in self.segments(segments)? {
            let start = bucket_start(trx, segment.length_words());
            let mut bucket = [0; BUCKET_WORDS];
            segment.read(start, &mut bucket)?;
            let mut entries = bucket.chunks_exact(ENTRY_WORDS);
            let Some(place) = entries.position(|entry| entry[ID] == trx.0) else { continue };
            let entry = start + place * ENTRY_WORDS;
            let mut batch = Batch::new();
            let found = batch.compare_and_swap(entry + OUTCOME, active(trx), committing(trx));
            let id = batch.read(entry + ID, 1);
            let answers = segment.submit(batch).wait(segment.timeout())?;
            return Ok((answers.word(id) == trx.0).then(|| answers.word(found)));
        }
        Ok(None)
    }

    /// The first regions of the overflow. Connects to new ones.
    fn segments(&self, count: usize) -> Result<Vec<Arc<dyn Region>>, FabricError> {
        let known = self.overflow.lock().clone();
        let more = known.len()..count.max(known.len());
        let more: Vec<_> = more
            .map(|number| self.peer.connect(&segment_name(number)))
            .collect::<Result<_, _>>()?;
        let all = [known, more].concat();
        let mut kept = self.overflow.lock();
        if kept.len() < all.len() {
            kept.clone_from(&all);
        }
        Ok(all)
    }

    /// Opens a snapshot of all durable commits. `None` if all places of peers are taken. Blocks for
    /// a few round trips.
    ///
    /// # Errors
    /// If the owner cannot be reached. A place that was taken is given back, by a later call if
    /// need be.
    pub fn open(&self) -> Result<Option<RemoteSnapshot>, FabricError> {
        let Some(place) = self.places.take()? else { return Ok(None) };
        let mut snapshot = RemoteSnapshot { place, cts: Cts(0) };
        // The newest snapshot that is not older than the announced horizon. Nothing is purged until
        // it is registered.
        loop {
            let cts = self.durable_commits()?;
            let announced = snapshot.place.register(cts)?;
            if announced <= cts {
                snapshot.cts = cts;
                return Ok(Some(snapshot));
            }
        }
    }

    /// Whether a snapshot sees the changes of `trx`. `None` while the transaction is COMMITTING:
    /// ask again.
    ///
    /// # Errors
    /// If the owner cannot be reached.
    pub fn sees(&self, snapshot: &RemoteSnapshot, trx: TrxId) -> Result<Option<bool>, FabricError> {
        Ok(match self.outcome(trx)? {
            Outcome::Active => Some(false),
            Outcome::Committing => None,
            Outcome::Committed(cts, _) => Some(cts <= snapshot.cts),
            Outcome::Settled => Some(true),
        })
    }
}

impl RemoteSnapshot {
    /// The snapshot sees all commits up to this timestamp.
    #[must_use]
    pub fn cts(&self) -> Cts {
        self.cts
    }

    /// Advances the snapshot to `cts`. The owner may then purge versions that only older snapshots
    /// see. Never goes back. Blocks for a round trip.
    ///
    /// # Errors
    /// If the owner cannot be reached. It may have advanced the snapshot, so do not read with an
    /// older one any more.
    pub fn advance(&mut self, cts: Cts) -> Result<(), FabricError> {
        if cts > self.cts {
            self.cts = cts;
            self.place.register(cts)?;
        }
        Ok(())
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
