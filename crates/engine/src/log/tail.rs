//! The newest log in the writer's memory, for replicas (003 §4.3: log shipment by one-sided RDMA).
//!
//! ```text
//!   log store takes groups ──► ring of the last bytes ◄── copy [from, to) ── replica
//!
//!      kept                    durable      written
//!   ── ─┴───── in the ring ───────┴────────────┴──► later log
//!                from ──── to
//!
//!   owner: raise kept ─► store the words ─► raise written
//!   peer:  durable ─► written ─► the words ─► kept:   good if kept ≤ from and to ≤ written
//! ```
//!
//! Invariants:
//!
//! 1. A position of the log has one place in the ring. Words below `kept` may be those of later
//!    log.
//! 2. A peer gets durable log alone. What the log store has taken may still be lost.
//!
//! Why no torn group passes. The owner raises `kept` before it stores a word in the place of an
//! older one, and stores each word with release. The reads of a batch happen in their order. So a
//! peer that has read one of the newer words reads the raised `kept` afterwards, and drops what it
//! has copied. `written` is raised after the words, and the durable position after that, so a peer
//! that has read these finds the words.
//!
//! Departures from 003. The paper's writer writes its log buffer into the memory of each replica by
//! RDMA, with a thread for each. On one machine that would be a copy for each replica by the
//! writer; here the writer makes one copy, and replicas read it when they need it. The log buffer
//! itself is not read: it is zeroed behind the log store, and holds log that is not durable. The
//! paper's two positions of a replica's buffer, *start* and *written*, are `kept` and `written`.

use std::sync::Arc;

use firn_api::{LogPiece, PageFilter, TailRead, WriterError};
use firn_base::Lsn;
use firn_fabric::{Batch, Fabric, FabricError, OwnedRegion, Peer, Region};
use firn_format::redo::group::MAX_GROUP_BYTES;

use crate::log::DURABLE_REGION;
use crate::sync::Ordering;

/// The name of the region.
const REGION: &str = "log-tail";
const WORD_BYTES: u64 = 8;
/// Word of the region: where the log in the ring begins.
const KEPT_WORD: usize = 0;
/// Word of the region, on another cache line: where it ends.
const WRITTEN_WORD: usize = 8;
/// The first word of the ring.
const RING_START: usize = 16;

/// The ring of a node that writes.
pub(crate) struct LogTail {
    region: OwnedRegion,
}

/// The ring of another node.
pub(crate) struct RemoteLogTail {
    region: Arc<dyn Region>,
    durable: Arc<dyn Region>,
    /// A fault on purpose: what was overwritten meanwhile passes.
    #[cfg(test)]
    pub(crate) ignores_kept: bool,
}

/// The ring's word for a position of the log.
fn place_of(position: u64, ring_words: usize) -> usize {
    (position / WORD_BYTES % ring_words as u64) as usize
}

impl LogTail {
    /// A ring of `bytes` that other nodes can reach. The log ends at `end`. `None` without bytes.
    ///
    /// # Errors
    /// If the fabric has no memory for it.
    pub(crate) fn register(
        fabric: &dyn Fabric,
        end: Lsn,
        bytes: usize,
    ) -> Result<Option<LogTail>, FabricError> {
        let ring_words = bytes / WORD_BYTES as usize;
        if ring_words == 0 {
            return Ok(None);
        }
        let region = fabric.register(REGION, RING_START + ring_words)?;
        region.words()[KEPT_WORD].store(end.0, Ordering::SeqCst);
        region.words()[WRITTEN_WORD].store(end.0, Ordering::SeqCst);
        Ok(Some(LogTail { region }))
    }

    /// The size of the region in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.region.words().len() as u64 * WORD_BYTES
    }

    /// Stores log that continues what was stored before. One call at a time, before the log store
    /// makes it durable.
    pub(crate) fn store(&self, start: Lsn, log: &[u8]) {
        let (header, ring) = self.region.words().split_at(RING_START);
        let end = start.advance(log.len() as u64);
        let oldest = end.0.saturating_sub(ring.len() as u64 * WORD_BYTES);
        let kept = oldest.max(header[KEPT_WORD].load(Ordering::Relaxed));
        header[KEPT_WORD].store(kept, Ordering::SeqCst);
        // More log than the ring holds.
        let skipped = kept.saturating_sub(start.0);
        let (words, _) = log[skipped as usize..].as_chunks::<{ WORD_BYTES as usize }>();
        let first = place_of(start.0 + skipped, ring.len());
        for (place, word) in ring[first..].iter().chain(ring).zip(words) {
            place.store(u64::from_le_bytes(*word), Ordering::Release);
        }
        header[WRITTEN_WORD].store(end.0, Ordering::SeqCst);
    }
}

/// The length of the whole groups at the beginning of `log`.
fn whole_groups(log: &[u8]) -> usize {
    let mut end = 0;
    while let Some(length) = first_length(&log[end..])
        && log.len() - end >= length
    {
        end += length;
    }
    end
}

/// The length that the first group says it has, if that is possible.
fn first_length(log: &[u8]) -> Option<usize> {
    let length = u32::from_le_bytes(*log.first_chunk()?) as usize;
    let is_possible =
        length > 0 && length.is_multiple_of(WORD_BYTES as usize) && length <= MAX_GROUP_BYTES;
    is_possible.then_some(length)
}

fn unreachable(error: &dyn std::fmt::Display) -> WriterError {
    WriterError::Unreachable { reason: format!("its newest log cannot be read: {error}") }
}

impl RemoteLogTail {
    /// Connects to the ring of an owner. Blocks.
    ///
    /// # Errors
    /// [`FabricError::Unknown`] if the owner has none, or it cannot be reached.
    pub(crate) fn connect(peer: &dyn Peer) -> Result<RemoteLogTail, FabricError> {
        let region = peer.connect(REGION)?;
        if region.length_words() <= RING_START {
            return Err(FabricError::Incompatible {
                owner: REGION.to_owned(),
                reason: format!("{} words have no room for log", region.length_words()),
            });
        }
        let durable = peer.connect(DURABLE_REGION)?;
        Ok(RemoteLogTail {
            region,
            durable,
            #[cfg(test)]
            ignores_kept: false,
        })
    }

    fn ring_words(&self) -> usize {
        self.region.length_words() - RING_START
    }

    fn durable(&self) -> Result<Lsn, FabricError> {
        let mut word = [0];
        self.durable.read(0, &mut word)?;
        Ok(Lsn(word[0]))
    }

    /// The log `from..from + bytes`, if the ring has it.
    fn copy(&self, from: Lsn, bytes: usize) -> Result<Option<Vec<u8>>, FabricError> {
        let (words, ring) = (bytes / WORD_BYTES as usize, self.ring_words());
        if words > ring {
            return Ok(None);
        }
        let first = place_of(from.0, ring);
        let before_end = words.min(ring - first);
        let mut batch = Batch::new();
        let written = batch.read(WRITTEN_WORD, 1);
        let front = batch.read(RING_START + first, before_end);
        let back = batch.read(RING_START, words - before_end);
        let kept = batch.read(KEPT_WORD, 1);
        let answers = self.region.run(batch)?;
        let is_kept = answers.word(kept) <= from.0;
        #[cfg(test)]
        let is_kept = is_kept || self.ignores_kept;
        if !is_kept || answers.word(written) < from.0 + bytes as u64 {
            return Ok(None);
        }
        let mut log = Vec::with_capacity(bytes);
        for word in answers.words(front).iter().chain(answers.words(back)) {
            log.extend_from_slice(&word.to_le_bytes());
        }
        Ok(Some(log))
    }

    /// Whole groups from `from` on, of `bytes` that are durable.
    fn groups(
        &self,
        from: Lsn,
        bytes: usize,
        most_bytes: usize,
    ) -> Result<Option<Vec<u8>>, FabricError> {
        let most_bytes = (most_bytes / WORD_BYTES as usize).max(1) * WORD_BYTES as usize;
        let Some(mut log) = self.copy(from, bytes.min(most_bytes))? else { return Ok(None) };
        let mut whole = whole_groups(&log);
        if whole == 0
            && let Some(length) = first_length(&log).filter(|length| *length <= bytes)
        {
            let Some(longer) = self.copy(from, length)? else { return Ok(None) };
            (log, whole) = (longer, length);
        }
        log.truncate(whole);
        Ok(Some(log))
    }
}

impl firn_api::LogTail for RemoteLogTail {
    fn read(&self, from: Lsn, most_bytes: usize) -> Result<TailRead, WriterError> {
        let durable = self.durable().map_err(|error| unreachable(&error))?;
        if durable <= from {
            return Ok(TailRead::Nothing);
        }
        let bytes = usize::try_from(durable.since(from)).unwrap_or(usize::MAX);
        let groups = self.groups(from, bytes, most_bytes);
        let Some(log) = groups.map_err(|error| unreachable(&error))? else {
            return Ok(TailRead::Overwritten);
        };
        if log.is_empty() {
            return Err(unreachable(&format_args!("no group begins at {from}")));
        }
        let piece = LogPiece::new(from, log, &PageFilter::All);
        piece.map(TailRead::Piece).map_err(|(at, damage)| {
            unreachable(&format_args!("the group at {at} is damaged: {damage}"))
        })
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod interleavings;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
