//! Carries changes of a table over to its copy while the table is being copied.
//!
//! ```text
//!   snapshot 1  ── all rows ──► new table
//!   snapshot 2  ── what differs from 1, by primary key ──► new table        writers go on
//!   …           until that is little
//!   snapshot n  ── what differs from n−1 ──► new table                      writers wait
//! ```
//!
//! Leaves that have not changed between two snapshots are skipped (see [`super::seen_leaves`]). The
//! last comparison therefore reads what was written since the previous one, and looks once at each
//! other leaf.
//!
//! A row that differs is deleted and written again, all deletions first, so rows that have
//! exchanged unique values do not conflict in the new table.
//!
//! Invariant: between two calls the new table has the rows of the last snapshot.

use firn_api::rows::{Fetched, HeldLeaves, ReadMode, RowContent, Scan, ScanOptions, Transaction};
use firn_base::TableId;
use firn_format::key::KeyRange;
use firn_sql_types::error::Result;

use super::alter::table_changed;
use super::copy::{Copy, full_scan, snapshot};
use super::from_rows;
use super::seen_leaves::SeenLeaves;

/// The most changes that are carried over while writers wait.
const FEW_CHANGES: usize = 1_000;
/// The most rows that are compared while writers wait: those of recently written leaves.
const FEW_ROWS: usize = 50_000;
/// How often changes are carried over beside writers. Clients that write faster than that wait in
/// the end.
const MAX_ROUNDS: usize = 8;

pub(super) struct Follower<'a> {
    copy: &'a Copy<'a>,
    /// Sees the old table's rows as the new table has them.
    before: Box<dyn Transaction>,
    /// Where it sees them.
    seen: SeenLeaves,
}

/// A primary key whose row differs between two snapshots.
pub(super) struct Changed {
    pub(super) key: Box<[u8]>,
    /// The earlier one has it.
    pub(super) was: bool,
    /// The later one has it.
    pub(super) is: bool,
}

impl<'a> Follower<'a> {
    /// The copy has the rows that `before` sees, and has `seen` in these leaves.
    pub(super) fn new(
        copy: &'a Copy<'a>,
        before: Box<dyn Transaction>,
        seen: SeenLeaves,
    ) -> Follower<'a> {
        Follower { copy, before, seen }
    }

    /// Carries changes over until little is left to compare and to carry over.
    ///
    /// # Errors
    /// Rows that do not fit the new table, a cancelled statement, and errors of the node.
    pub(super) fn catch_up(&mut self) -> Result<()> {
        for _ in 0..MAX_ROUNDS {
            let (compared, changed) = self.carry_over()?;
            if changed <= FEW_CHANGES && compared <= FEW_ROWS {
                break;
            }
        }
        Ok(())
    }

    /// Carries over the changes up to now; returns how many rows were compared, and how many of
    /// them had changed.
    ///
    /// # Errors
    /// As [`Follower::catch_up`].
    pub(super) fn carry_over(&mut self) -> Result<(usize, usize)> {
        let mut now = snapshot(self.copy.context)?;
        let old = self.copy.old.id;
        let check = || self.copy.context.check_cancelled();
        let differences = differences(old, &self.seen, &mut *self.before, &mut *now, &check)?;
        let Differences { changes, seen, compared } = differences;
        let mut writer = self.copy.writer();
        for change in changes.iter().filter(|change| change.was) {
            writer.delete(&change.key)?;
        }
        let from = now.table_for_read(old).map_err(from_rows)?;
        let mut payload = Vec::new();
        for (change, row) in changes.iter().filter(|change| change.is).zip(1..) {
            if !now
                .get(&from, &change.key, ReadMode::Consistent, &mut payload)
                .map_err(from_rows)?
            {
                return Err(table_changed());
            }
            writer.insert(&self.copy.values(&*now, &from, &payload, row)?)?;
        }
        writer.commit()?;
        (self.before, self.seen) = (now, seen);
        Ok((compared, changes.len()))
    }
}

/// The difference between two snapshots of a table.
pub(super) struct Differences {
    /// The rows that the later one sees differently.
    pub(super) changes: Vec<Changed>,
    /// The leaves in which the later one sees its rows.
    pub(super) seen: SeenLeaves,
    /// Rows of the later one that were not skipped.
    pub(super) compared: usize,
}

/// Compares what `now` sees with what `before` has seen in leaves that are `known`.
///
/// # Errors
/// Errors of `check_cancelled` and of the node.
pub(super) fn differences(
    table: TableId,
    known: &SeenLeaves,
    before: &mut dyn Transaction,
    now: &mut dyn Transaction,
    check_cancelled: &dyn Fn() -> Result<()>,
) -> Result<Differences> {
    let reference = now.table_for_read(table).map_err(from_rows)?;
    let mut later = full_scan(now, &reference)?;
    let (mut changes, mut seen, mut compared) = (Vec::new(), SeenLeaves::default(), 0);
    let mut gap = Gap::at(table, Vec::new());
    let mut next_place = 0;
    // The place of the leaf that was named last; none if it is unknown.
    let mut named: Option<Option<usize>> = None;
    loop {
        let asked = named.take();
        let held = match asked {
            None => HeldLeaves::Unknown,
            Some(None) => HeldLeaves::No,
            Some(Some(place)) => HeldLeaves::Leaves(known.held_from(place)),
        };
        match later.fetch_unless_held(now, held).map_err(from_rows)? {
            Fetched::Next(leaf) => named = Some(known.place(leaf)),
            Fetched::Rows(leaf) => {
                seen.push_batch(leaf, &*later);
                compared += later.len();
                for number in 0..later.len() {
                    let row = later.row(number);
                    let RowContent::Payload(payload) = row.content else {
                        return Err(table_changed());
                    };
                    gap.meet(row.key, payload, before, &mut changes)?;
                }
            }
            Fetched::Held(count) => {
                let first = asked.flatten().ok_or_else(table_changed)?;
                if gap.has_rows || first != next_place || !known.follows(first) {
                    gap.pass(Some(known.first_key(first)), before, &mut changes)?;
                }
                next_place = first + count;
                seen.push_known(known, first..next_place);
                gap = Gap::at(table, key_after(known.last_key(next_place - 1)));
            }
            Fetched::End => {
                gap.pass(None, before, &mut changes)?;
                return Ok(Differences { changes, seen, compared });
            }
        }
        check_cancelled()?;
    }
}

/// The least key that is greater.
fn key_after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// A part of the table whose rows have to be compared, from a key on.
struct Gap {
    table: TableId,
    start: Vec<u8>,
    /// The rows of the earlier snapshot, once they are needed.
    earlier: Option<Cursor>,
    /// The later snapshot has rows here.
    has_rows: bool,
}

impl Gap {
    fn at(table: TableId, start: Vec<u8>) -> Gap {
        Gap { table, start, earlier: None, has_rows: false }
    }

    /// The next row of the later snapshot.
    fn meet(
        &mut self,
        key: &[u8],
        payload: &[u8],
        before: &mut dyn Transaction,
        changes: &mut Vec<Changed>,
    ) -> Result<()> {
        self.has_rows = true;
        let earlier = self.pass(Some(key), before, changes)?;
        let was = match earlier.row()? {
            Some((old_key, old_payload)) if old_key == key => {
                let is_same = old_payload == payload;
                earlier.at += 1;
                if is_same {
                    return Ok(());
                }
                true
            }
            _ => false,
        };
        changes.push(Changed { key: key.into(), was, is: true });
        Ok(())
    }

    /// Rows of the earlier snapshot that come before a key were deleted.
    fn pass(
        &mut self,
        end: Option<&[u8]>,
        before: &mut dyn Transaction,
        changes: &mut Vec<Changed>,
    ) -> Result<&mut Cursor> {
        let earlier = match &mut self.earlier {
            Some(earlier) => earlier,
            none => none.insert(Cursor::from(self.table, std::mem::take(&mut self.start), before)?),
        };
        loop {
            earlier.fill(before)?;
            match earlier.row()? {
                Some((key, _)) if end.is_none_or(|end| key < end) => {
                    changes.push(Changed { key: key.into(), was: true, is: false });
                    earlier.at += 1;
                }
                _ => return Ok(earlier),
            }
        }
    }
}

/// A place in a scan of the old table.
struct Cursor {
    scan: Box<dyn Scan>,
    /// In the scan's current batch.
    at: usize,
    ended: bool,
}

impl Cursor {
    fn from(table: TableId, start: Vec<u8>, trx: &mut dyn Transaction) -> Result<Cursor> {
        let table = trx.table_for_read(table).map_err(from_rows)?;
        let options = ScanOptions { range: KeyRange { start, end: None }, ..ScanOptions::all() };
        let scan = trx.scan(&table, &options).map_err(from_rows)?;
        Ok(Cursor { scan, at: 0, ended: false })
    }

    /// Moves on until the place is a row's, or the end.
    fn fill(&mut self, trx: &mut dyn Transaction) -> Result<()> {
        while !self.ended && self.at == self.scan.len() {
            self.ended = !self.scan.fetch(trx).map_err(from_rows)?;
            self.at = 0;
        }
        Ok(())
    }

    /// Key and bytes of the row at the place; `None` at the end.
    fn row(&self) -> Result<Option<(&[u8], &[u8])>> {
        if self.ended {
            return Ok(None);
        }
        let row = self.scan.row(self.at);
        match row.content {
            RowContent::Payload(payload) => Ok(Some((row.key, payload))),
            RowContent::Columns(_) => Err(table_changed()),
        }
    }
}
