//! Range cursors.
//!
//! A cursor stores the key at which it continues, not a position in a page, so splits and merges
//! between two batches do not matter. A batch holds rows of one leaf, copied with the leaf latched.
//! Versions that the reader does not see are replaced by older ones after the latch was released.
//! If the caller still has what it derived from the rows of an unchanged leaf, the cursor skips
//! that leaf.
//!
//! ```text
//!   forward:  leaf a…f returns b c e, continues at f
//!   backward: before f returns e c b, continues before a
//! ```

use std::ops::{Bound, Range, RangeBounds};

use firn_api::rows::{
    Direction, Fetched, HeldLeaves, IsolationLevel, LeafVersion, ReadMode, RowBatch, RowSpan,
    WaitPolicy,
};
use firn_base::{IndexId, PageNo, TrxId};
use firn_format::page::PAGE_SIZE;
use firn_format::tree::TreePage;
use firn_format::undo::RecordVersion;

use crate::error::EngineError;
use crate::lock::{LockMode, LockTarget, Outcome as LockOutcome, Wait};
use crate::pages::Restart;
use crate::transaction::handle::Transaction;
use crate::transaction::read::{Locking, LockingRead, no_version};
use crate::transaction::read_transaction::ReadTransaction;
use crate::transaction::write::WriteGuard;
use crate::tree::Target;
use crate::tree::prefetch::Ahead;

/// The keys that a cursor visits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    pub low: Bound<Vec<u8>>,
    pub high: Bound<Vec<u8>>,
}

impl KeyRange {
    #[must_use]
    pub fn all() -> KeyRange {
        KeyRange { low: Bound::Unbounded, high: Bound::Unbounded }
    }

    fn has(&self, key: &[u8]) -> bool {
        let (low, high) = (self.low.as_ref(), self.high.as_ref());
        let range = (low.map(Vec::as_slice), high.map(Vec::as_slice));
        RangeBounds::<[u8]>::contains(&range, key)
    }
}

#[derive(Debug)]
pub struct Cursor {
    index: IndexId,
    range: KeyRange,
    direction: Direction,
    mode: ReadMode,
    next: Next,
    limit: usize,
    /// The value up to which `limit` grows.
    last_limit: usize,
    batch: Batch,
    is_begun: bool,
    ahead: ReadAhead,
}

/// How far the leaves after the cursor are being fetched.
#[derive(Debug, Default)]
struct ReadAhead {
    /// Batches so far. Short scans do not read ahead.
    batches: u32,
    /// The key at which the cursor fetches more leaves, and the key of the first of them.
    asked: Option<(Vec<u8>, Vec<u8>)>,
    is_over: bool,
}

/// Rows that were copied from one leaf.
#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    rows: Vec<RowSpan>,
    unseen: Vec<Unseen>,
    content: Content,
}

/// How much of its leaf a batch contains.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Some of the rows that the reader sees; or the caller did not ask.
    #[default]
    Part,
    /// All rows, and every later snapshot sees the same ones.
    Leaf(LeafVersion),
    /// None: the caller has the rows of this many leaves.
    Held(usize),
}

/// The result of reading the next leaf.
enum Look {
    /// The batch has rows, or leaves were skipped.
    Next(Next),
    /// The next batch would be the whole leaf, and the caller may have its rows.
    Named(LeafVersion),
}

/// A leaf whose slots are all part of the scan.
struct WholeLeaf {
    version: LeafVersion,
    right: PageNo,
    /// Where the cursor continues after the leaf.
    next: Next,
}

/// A row whose newest version the reader does not see.
#[derive(Debug)]
struct Unseen {
    row: usize,
    version: RecordVersion,
}

/// The most rows in a cursor's first batch. Later batches are larger, so that short scans copy
/// little.
const FIRST_LIMIT: usize = 16;
/// The factor by which each batch is larger than the one before.
const LIMIT_GROWTH: usize = 8;
const LAST_LIMIT: usize = 1024;
/// Batches after which a cursor reads ahead.
const AHEAD_AFTER: u32 = 3;
/// Leaves that are fetched with one request. Another request of this size is in progress while the
/// cursor reads these leaves.
const AHEAD_LEAVES: usize = 32;
/// One request fetches at most one part in this many of the pool.
const AHEAD_SHARE: usize = 32;

impl Batch {
    fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
        self.unseen.clear();
        self.content = Content::Part;
    }

    #[inline]
    fn push(&mut self, prefix: &[u8], suffix: &[u8], payload: &[u8]) {
        let start = self.bytes.len();
        let row_bytes = prefix.len() + suffix.len() + payload.len();
        if self.bytes.capacity() - start < row_bytes {
            self.make_room(row_bytes);
        }
        self.bytes.extend_from_slice(prefix);
        self.bytes.extend_from_slice(suffix);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(payload);
        self.rows.push(RowSpan {
            key_start: start as u32,
            key_end: middle as u32,
            row_start: middle as u32,
            row_end: self.bytes.len() as u32,
        });
    }

    /// Reserves room for this row, and for the expected rows if they have the same length. Growing
    /// step by step would copy the rows again and again.
    #[cold]
    fn make_room(&mut self, row_bytes: usize) {
        let to_come = (self.rows.capacity() - self.rows.len()).max(1);
        self.bytes.reserve((to_come * row_bytes).min(PAGE_SIZE).max(row_bytes));
    }

    fn view(&self) -> RowBatch<'_> {
        RowBatch { bytes: &self.bytes, spans: &self.rows }
    }
}

/// Where the next batch begins; `None` at the end.
type Next = Option<Bound<Vec<u8>>>;

/// Where the locking read of a leaf has stopped.
enum Stopped {
    /// At the leaf's end, the range's end or the batch's limit.
    Full { next: Next },
    /// At a record that another transaction has locked.
    Locked { at: Vec<u8>, wait: Wait },
}

fn version_of(leaf: &TreePage<'_>) -> LeafVersion {
    let page = leaf.page();
    LeafVersion { stream: page.log_stream(), page: leaf.page_id(), lsn: page.lsn() }
}

impl Cursor {
    /// A cursor over `range` of a tree. Reads nothing yet.
    #[must_use]
    pub fn new(index: IndexId, range: KeyRange, direction: Direction, mode: ReadMode) -> Cursor {
        let next = match direction {
            Direction::Forward => range.low.clone(),
            Direction::Backward => range.high.clone(),
        };
        Cursor {
            index,
            range,
            direction,
            mode,
            next: Some(next),
            limit: FIRST_LIMIT,
            last_limit: LAST_LIMIT,
            batch: Batch::default(),
            is_begun: false,
            ahead: ReadAhead::default(),
        }
    }

    /// Limits batches to `rows`. A locking cursor locks all rows of a batch at once.
    #[must_use]
    pub fn with_batches_of(mut self, rows: usize) -> Cursor {
        self.last_limit = self.last_limit.min(rows.max(1));
        self.limit = self.limit.min(self.last_limit);
        self
    }

    pub(super) fn mode(&self) -> ReadMode {
        self.mode
    }

    /// The rows of the current batch: key and payload.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        (0..self.batch.rows.len()).map(|number| self.row(number))
    }

    /// The current batch as it lies in memory.
    #[must_use]
    pub fn batch(&self) -> RowBatch<'_> {
        self.batch.view()
    }

    /// A row of the current batch: key and payload.
    ///
    /// # Panics
    /// If the batch has fewer rows.
    #[must_use]
    #[inline]
    pub fn row(&self, number: usize) -> (&[u8], &[u8]) {
        let batch = self.batch.view();
        let span = batch.spans[number];
        (batch.key(span), batch.row(span))
    }

    /// Fetches the next batch, which has at least one row. False at the end. Blocks for locks and
    /// I/O.
    ///
    /// # Errors
    /// A lock that was not granted, a conflict with the snapshot, an error of the page store, or
    /// [`crate::lock::LockError::Cancelled`].
    pub fn fetch(&mut self, trx: &mut Transaction) -> Result<bool, EngineError> {
        Ok(self.fetch_next(trx, None)? != Fetched::End)
    }

    /// Like [`Cursor::fetch`], but skips leaves whose rows the caller has; see
    /// [`firn_api::rows::Scan::fetch_unless_held`]. Locking reads name no leaf.
    ///
    /// # Errors
    /// As [`Cursor::fetch`].
    pub fn fetch_unless_held(
        &mut self,
        trx: &mut Transaction,
        held: HeldLeaves<'_>,
    ) -> Result<Fetched, EngineError> {
        self.fetch_next(trx, Some(held))
    }

    pub(super) fn fetch_next(
        &mut self,
        trx: &mut Transaction,
        held: Option<HeldLeaves<'_>>,
    ) -> Result<Fetched, EngineError> {
        match self.mode.lock(trx.isolation) {
            None => self.fetch_consistent(trx, held),
            Some((mode, policy)) => self.fetch_locking(trx, mode, policy),
        }
    }

    /// Like [`Cursor::fetch_unless_held`], but reads from the transaction's snapshot, whatever the
    /// cursor's mode is.
    ///
    /// # Errors
    /// An error of the page store, or [`crate::lock::LockError::Cancelled`].
    pub(crate) fn fetch_consistent(
        &mut self,
        trx: &mut ReadTransaction,
        mut held: Option<HeldLeaves<'_>>,
    ) -> Result<Fetched, EngineError> {
        trx.check_open()?;
        trx.check_cancelled()?;
        trx.ensure_snapshot();
        if !std::mem::replace(&mut self.is_begun, true) {
            trx.keep_range(self.index, &self.range);
        }
        while let Some(from) = self.next.take() {
            self.batch.clear();
            self.next = match self.look(trx, &from, held)? {
                Look::Next(next) => next,
                Look::Named(leaf) => {
                    self.next = Some(from);
                    return Ok(Fetched::Next(leaf));
                }
            };
            self.replace_unseen(trx)?;
            self.read_ahead(trx);
            if let Content::Held(leaves) = self.batch.content {
                return Ok(Fetched::Held(leaves));
            }
            if let Some(rows) = self.take_rows() {
                return Ok(rows);
            }
            // The caller's answer was about a leaf that had no rows.
            if let Some(HeldLeaves::Leaves(_)) = held {
                held = Some(HeldLeaves::Unknown);
            }
            trx.check_cancelled()?;
        }
        Ok(Fetched::End)
    }

    fn fetch_locking(
        &mut self,
        trx: &mut Transaction,
        mode: LockMode,
        policy: WaitPolicy,
    ) -> Result<Fetched, EngineError> {
        trx.check_open()?;
        trx.check_cancelled()?;
        trx.ensure_writer()?;
        if !std::mem::replace(&mut self.is_begun, true) {
            trx.keep_range(self.index, &self.range);
            self.lock_range(trx, mode)?;
        }
        while let Some(from) = self.next.take() {
            self.batch.clear();
            let stopped = self.look_locking(trx, &from, mode, policy)?;
            self.proceed(trx, stopped)?;
            self.read_ahead(trx);
            if let Some(rows) = self.take_rows() {
                return Ok(rows);
            }
            trx.check_cancelled()?;
        }
        Ok(Fetched::End)
    }

    /// Takes the rows of the current batch, if it has any. The next batch may be larger.
    fn take_rows(&mut self) -> Option<Fetched> {
        if self.batch.rows.is_empty() {
            return None;
        }
        self.limit = (self.limit * LIMIT_GROWTH).min(self.last_limit);
        Some(Fetched::Rows(match self.batch.content {
            Content::Leaf(leaf) => Some(leaf),
            Content::Part | Content::Held(_) => None,
        }))
    }

    /// Reads the next leaf, unless the caller has its rows.
    fn look(
        &mut self,
        trx: &ReadTransaction,
        from: &Bound<Vec<u8>>,
        held: Option<HeldLeaves<'_>>,
    ) -> Result<Look, EngineError> {
        match held {
            Some(HeldLeaves::Unknown) => {
                if let Some(front) = self.whole_leaf(trx, from)? {
                    return Ok(Look::Named(front.version));
                }
            }
            Some(HeldLeaves::Leaves(leaves)) => {
                if let Some(front) = self.whole_leaf(trx, from)?
                    && leaves.first() == Some(&front.version)
                {
                    // The reader may have seen commits that are not durable yet.
                    trx.note_observed_all();
                    self.batch.clear();
                    return Ok(Look::Next(self.pass_over(trx, leaves, front)));
                }
            }
            Some(HeldLeaves::No) | None => {}
        }
        self.look_consistent(trx, from, held.is_some()).map(Look::Next)
    }

    /// Starts to fetch the leaves after the next one, unless the scan is short.
    fn read_ahead(&mut self, trx: &ReadTransaction) {
        let (Direction::Forward, Some(Bound::Included(at))) = (self.direction, &self.next) else {
            return;
        };
        self.ahead.batches += 1;
        if self.ahead.is_over || self.ahead.batches < AHEAD_AFTER {
            return;
        }
        let from = match &self.ahead.asked {
            Some((border, _)) if at < border => return,
            Some((_, next)) => next.max(at),
            None => at,
        };
        let forest = trx.versions().forest();
        // At most two requests are ahead of the cursor, so that their pages are not evicted before
        // the cursor gets there.
        let count = AHEAD_LEAVES.min(forest.pages().pool.frame_count() / AHEAD_SHARE).max(1);
        self.ahead.asked = match forest.tree(self.index).prefetch_leaves(from, count) {
            Ahead::From(next) if self.range.has(&next) => Some((from.clone(), next)),
            Ahead::From(_) | Ahead::End => {
                self.ahead.is_over = true;
                None
            }
            Ahead::Unknown => None,
        };
    }

    /// Locks the range itself under SERIALIZABLE, so that no record appears in it.
    fn lock_range(&self, trx: &mut Transaction, mode: LockMode) -> Result<(), EngineError> {
        if trx.isolation != IsolationLevel::Serializable {
            return Ok(());
        }
        let owner = trx.ensure_writer()?;
        let target = LockTarget::Range {
            index: self.index,
            low: self.range.low.as_ref().map(Vec::as_slice),
            high: self.range.high.as_ref().map(Vec::as_slice),
        };
        match trx.system.locks().request(owner, target, mode) {
            LockOutcome::Granted | LockOutcome::Held => Ok(()),
            LockOutcome::Queued(wait) => trx.wait(wait),
        }
    }

    fn proceed(&mut self, trx: &mut Transaction, stopped: Stopped) -> Result<(), EngineError> {
        match stopped {
            Stopped::Full { next } => {
                self.next = next;
                Ok(())
            }
            Stopped::Locked { at, wait } => {
                self.next = Some(Bound::Included(at));
                // The rows before the locked one are locked already and stay in the batch.
                trx.wait(wait)
            }
        }
    }

    /// Replaces versions that the reader does not see by the ones that it does.
    fn replace_unseen(&mut self, trx: &ReadTransaction) -> Result<(), EngineError> {
        if self.batch.unseen.is_empty() {
            return Ok(());
        }
        let reader = trx.reader();
        let mut gone = vec![false; self.batch.rows.len()];
        for unseen in std::mem::take(&mut self.batch.unseen) {
            let row = &self.batch.rows[unseen.row];
            let mut payload = self.batch.view().row(*row).to_vec();
            let found = trx.versions().older_version(&reader, unseen.version, &mut payload)?;
            gone[unseen.row] = found.is_none_or(|version| version.deleted);
            let start = self.batch.bytes.len();
            self.batch.bytes.extend_from_slice(&payload);
            let row = &mut self.batch.rows[unseen.row];
            (row.row_start, row.row_end) = (start as u32, self.batch.bytes.len() as u32);
        }
        let mut gone = gone.into_iter();
        self.batch.rows.retain(|_| !gone.next().unwrap_or(false));
        Ok(())
    }

    fn target<'k>(&self, from: &'k Bound<Vec<u8>>) -> Target<'k> {
        match (self.direction, from) {
            (Direction::Forward, Bound::Unbounded) => Target::At(&[]),
            (Direction::Backward, Bound::Unbounded) => Target::Last,
            (Direction::Backward, Bound::Excluded(key)) if !key.is_empty() => Target::Before(key),
            (_, Bound::Included(key) | Bound::Excluded(key)) => Target::At(key),
        }
    }

    /// The slots of the leaf that the cursor reads next, in its order.
    fn slots(&self, leaf: &TreePage<'_>, from: &Bound<Vec<u8>>) -> Range<usize> {
        let count = leaf.slot_count();
        match (self.direction, from) {
            (_, Bound::Unbounded) => 0..count,
            (Direction::Forward, Bound::Included(key)) => leaf.lower_bound(key)..count,
            (Direction::Forward, Bound::Excluded(key)) => match leaf.search(key) {
                Ok(slot) => slot + 1..count,
                Err(slot) => slot..count,
            },
            (Direction::Backward, Bound::Excluded(key)) => 0..leaf.lower_bound(key),
            (Direction::Backward, Bound::Included(key)) => match leaf.search(key) {
                Ok(slot) => 0..slot + 1,
                Err(slot) => 0..slot,
            },
        }
    }

    /// Where to continue after the leaf's end.
    fn behind(&self, leaf: &TreePage<'_>) -> Next {
        match self.direction {
            Direction::Forward => leaf.high_fence().map(|high| Bound::Included(high.to_vec())),
            Direction::Backward => {
                let low = leaf.low_fence();
                (!low.is_empty()).then(|| Bound::Excluded(low.to_vec()))
            }
        }
    }

    /// Calls `visit` for the leaf's records in the cursor's order until it breaks, the batch is
    /// full or the range ends.
    fn walk<'p>(
        &self,
        leaf: &TreePage<'p>,
        from: &Bound<Vec<u8>>,
        batch: &mut Batch,
        mut visit: impl FnMut(&mut Batch, usize, &[u8]) -> Result<Option<Stopped>, Restart>,
    ) -> Result<Stopped, Restart> {
        let mut slots = self.slots(leaf, from);
        let mut key = Vec::new();
        loop {
            let slot = match self.direction {
                Direction::Forward => slots.next(),
                Direction::Backward => slots.next_back(),
            };
            let Some(slot) = slot else { break };
            leaf.key_into(slot, &mut key);
            if !self.range.has(&key) {
                return Ok(Stopped::Full { next: None });
            }
            if batch.rows.len() == self.limit {
                return Ok(Stopped::Full { next: Some(Bound::Included(key)) });
            }
            if let Some(stopped) = visit(batch, slot, &key)? {
                return Ok(stopped);
            }
        }
        Ok(Stopped::Full { next: self.next_behind(leaf) })
    }

    /// The slots of the leaf that the cursor reads next and that are in the range, and whether the
    /// range ends within the leaf.
    fn slots_within(&self, leaf: &TreePage<'_>, from: &Bound<Vec<u8>>) -> (Range<usize>, bool) {
        let slots = self.slots(leaf, from);
        match (self.direction, &self.range.high, &self.range.low) {
            (Direction::Forward, Bound::Included(high) | Bound::Excluded(high), _)
                if leaf.high_fence().is_none_or(|fence| fence > &high[..]) =>
            {
                let end = match (leaf.search(high), &self.range.high) {
                    (Ok(slot), Bound::Included(_)) => slot + 1,
                    (Ok(slot) | Err(slot), _) => slot,
                };
                (slots.start..end.max(slots.start), end < leaf.slot_count())
            }
            (Direction::Backward, _, Bound::Included(low) | Bound::Excluded(low))
                if leaf.low_fence() <= &low[..] =>
            {
                let start = match (leaf.search(low), &self.range.low) {
                    (Ok(slot), Bound::Excluded(_)) => slot + 1,
                    (Ok(slot) | Err(slot), _) => slot,
                };
                (start.min(slots.end)..slots.end, start > 0)
            }
            _ => (slots, false),
        }
    }

    /// Calls `visit` for the leaf's records in these slots, in the cursor's order, until the batch
    /// has `limit` rows. [`Cursor::slots_within`] returned the slots and whether the range ends
    /// with them, so the range's end is not compared with each key.
    fn walk_within(
        &self,
        leaf: &TreePage<'_>,
        (mut slots, is_end): (Range<usize>, bool),
        limit: usize,
        batch: &mut Batch,
        mut visit: impl FnMut(&mut Batch, usize) -> Result<(), Restart>,
    ) -> Result<Next, Restart> {
        let is_forward = self.direction == Direction::Forward;
        batch.rows.reserve(slots.len().min(limit));
        while let Some(slot) = if is_forward { slots.next() } else { slots.next_back() } {
            if batch.rows.len() == limit {
                return Ok(Some(Bound::Included(leaf.key(slot))));
            }
            visit(batch, slot)?;
        }
        Ok(self.next_behind(leaf).filter(|_| !is_end))
    }

    /// Where to continue after the leaf's end, if the range extends beyond it.
    fn next_behind(&self, leaf: &TreePage<'_>) -> Next {
        self.behind(leaf).filter(|next| self.goes_on(next))
    }

    /// Whether the range has keys beyond a leaf's end.
    fn goes_on(&self, next: &Bound<Vec<u8>>) -> bool {
        match (self.direction, next, &self.range.high, &self.range.low) {
            (Direction::Forward, Bound::Included(at), Bound::Included(high), _) => at <= high,
            (Direction::Forward, Bound::Included(at), Bound::Excluded(high), _) => at < high,
            (
                Direction::Backward,
                Bound::Excluded(at),
                _,
                Bound::Included(low) | Bound::Excluded(low),
            ) => at > low,
            _ => true,
        }
    }

    /// Copies the rows of the next leaf that the reader sees. With `whole`, copies all of them,
    /// because the caller keeps them under the leaf's version.
    fn look_consistent(
        &mut self,
        trx: &ReadTransaction,
        from: &Bound<Vec<u8>>,
        whole: bool,
    ) -> Result<Next, EngineError> {
        let (versions, reader) = (trx.versions(), trx.reader());
        let mut batch = std::mem::take(&mut self.batch);
        let next = trx.read_leaf(self.index, self.target(from), |leaf| {
            batch.clear();
            let within = self.slots_within(leaf, from);
            let mut limit = self.limit;
            if whole && self.is_whole(leaf, &within.0) {
                limit = usize::MAX;
                // No other reader sees what this transaction has written.
                if !trx.has_written() {
                    batch.content = Content::Leaf(version_of(leaf));
                }
            }
            let mut visible = TrxId::NONE;
            self.walk_within(leaf, within, limit, &mut batch, |batch, slot| {
                let (suffix, value) = leaf.suffix_and_value(slot);
                let Some((version, payload)) = RecordVersion::parse(value) else {
                    return Err(no_version(leaf.page_id()));
                };
                // A transaction that is visible once is visible in the whole batch, and
                // neighbouring rows often have the same writer.
                let sees = version.trx == visible || versions.sees(&reader, version.trx)?;
                if sees {
                    visible = version.trx;
                    if version.deleted {
                        return Ok(());
                    }
                } else {
                    batch.content = Content::Part;
                    batch.unseen.push(Unseen { row: batch.rows.len(), version });
                }
                batch.push(leaf.prefix(), suffix, payload);
                Ok(())
            })
        });
        self.batch = batch;
        next
    }

    /// The next leaf, if the scan reads all of it.
    fn whole_leaf(
        &self,
        trx: &ReadTransaction,
        from: &Bound<Vec<u8>>,
    ) -> Result<Option<WholeLeaf>, EngineError> {
        trx.read_leaf(self.index, self.target(from), |leaf| {
            let (slots, is_end) = self.slots_within(leaf, from);
            Ok(self.is_whole(leaf, &slots).then(|| WholeLeaf {
                version: version_of(leaf),
                right: leaf.right(),
                next: self.next_behind(leaf).filter(|_| !is_end),
            }))
        })
    }

    /// Whether these slots are all slots of the leaf, read in ascending order.
    fn is_whole(&self, leaf: &TreePage<'_>, slots: &Range<usize>) -> bool {
        slots.len() == leaf.slot_count() && self.direction == Direction::Forward
    }

    /// Skips the leaves that the caller has after the first one, as long as they are cached,
    /// unchanged, adjacent and completely in the range. Returns where the cursor continues.
    ///
    /// Each leaf is checked alone. In an unchanged leaf the reader sees the same rows at every
    /// moment of its snapshot, and the leaf's link names the next leaf.
    fn pass_over(&mut self, trx: &ReadTransaction, held: &[LeafVersion], front: WholeLeaf) -> Next {
        let WholeLeaf { mut right, mut next, .. } = front;
        let pool = &trx.versions().pages().pool;
        let mut passed = 1;
        for version in held.iter().skip(1) {
            if next.is_none() || right != version.page.page_no {
                break;
            }
            trx.look_behind();
            let Ok(guard) = pool.shared(version.page) else { break };
            let Ok(leaf) = TreePage::new(&guard) else { break };
            let is_unchanged = version_of(&leaf) == *version && trx.covers(version.page);
            if !is_unchanged || !self.has_up_to(leaf.high_fence()) {
                break;
            }
            (right, next) = (leaf.right(), self.next_behind(&leaf));
            passed += 1;
        }
        self.batch.content = Content::Held(passed);
        next
    }

    /// Whether the range contains all keys below a leaf's high fence.
    fn has_up_to(&self, fence: Option<&[u8]>) -> bool {
        match (&self.range.high, fence) {
            (Bound::Unbounded, _) => true,
            (Bound::Included(high) | Bound::Excluded(high), Some(fence)) => fence <= &high[..],
            (_, None) => false,
        }
    }

    fn look_locking(
        &mut self,
        trx: &Transaction,
        from: &Bound<Vec<u8>>,
        mode: LockMode,
        policy: WaitPolicy,
    ) -> Result<Stopped, EngineError> {
        let system = &trx.system;
        let mut batch = std::mem::take(&mut self.batch);
        let stopped = system.forest().tree(self.index).read(self.target(from), |leaf| {
            batch.clear();
            self.walk(leaf, from, &mut batch, |batch, slot, key| {
                let value = leaf.value(slot);
                let Some((version, payload)) = RecordVersion::parse(value) else {
                    return Err(no_version(leaf.page_id()));
                };
                let guard = WriteGuard { mode, ..trx.write_guard(self.index, key) };
                let locking =
                    system.lock_record(Some(value), &guard, policy, trx.cancelled.as_ref());
                if let Err(Restart::Fail(EngineError::WriteConflict)) = &locking {
                    trx.reads.note_conflict(&guard);
                }
                let locking = locking?;
                trx.note_observed(guard.observed.get());
                match locking {
                    Locking::Locked if !version.deleted => {
                        batch.push(leaf.prefix(), leaf.suffix(slot), payload);
                    }
                    Locking::Locked | Locking::Skip => {}
                    Locking::Wait(wait) => {
                        return Ok(Some(Stopped::Locked { at: key.to_vec(), wait }));
                    }
                }
                Ok(None)
            })
        });
        self.batch = batch;
        stopped
    }
}
