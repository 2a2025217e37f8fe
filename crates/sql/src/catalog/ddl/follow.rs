//! Carries over to a copy of a table what is written to the table while it is copied.
//!
//! ```text
//!   snapshot 1  ── all rows ──► new table
//!   snapshot 2  ── what differs from 1, by primary key ──► new table        writers go on
//!   …           until that is little
//!   snapshot n  ── what differs from n−1 ──► new table                      writers wait
//! ```
//!
//! A row that differs is deleted and written again, all deletions first: rows that have exchanged unique
//! values do not meet in the new table.
//!
//! Invariant: between two calls the new table has the rows of the last snapshot.

use std::cmp::Ordering;

use firn_api::rows::{ReadMode, RowContent, Scan, Transaction};

use crate::error::Result;

use super::alter::table_changed;
use super::copy::{Copy, full_scan, snapshot};
use super::from_rows;

/// So few changes are carried over while writers wait.
const FEW_CHANGES: usize = 1_000;
/// How often changes are carried over beside writers: who writes faster than they are must wait in the end.
const MAX_ROUNDS: usize = 8;

/// See the module's page.
pub(super) struct Follower<'a> {
    copy: &'a Copy<'a>,
    /// Sees the old table's rows as the new table has them.
    before: Box<dyn Transaction>,
}

/// A primary key whose row differs between two snapshots.
struct Changed {
    key: Box<[u8]>,
    /// The earlier one has it.
    was: bool,
    /// The later one has it.
    is: bool,
}

impl<'a> Follower<'a> {
    /// The copy has the rows that `before` sees.
    pub(super) fn new(copy: &'a Copy<'a>, before: Box<dyn Transaction>) -> Follower<'a> {
        Follower { copy, before }
    }

    /// Carries changes over until they are few.
    ///
    /// # Errors
    /// Rows that do not fit the new table, a cancelled statement, and what the node answers.
    pub(super) fn catch_up(&mut self) -> Result<()> {
        for _ in 0..MAX_ROUNDS {
            if self.carry_over()? <= FEW_CHANGES {
                break;
            }
        }
        Ok(())
    }

    /// Carries over what has changed up to now; answers how many rows.
    ///
    /// # Errors
    /// As [`Follower::catch_up`].
    pub(super) fn carry_over(&mut self) -> Result<usize> {
        let mut now = snapshot(self.copy.context)?;
        let changes = self.changes(&mut *now)?;
        let mut writer = self.copy.writer();
        for change in changes.iter().filter(|change| change.was) {
            writer.delete(&change.key)?;
        }
        let from = now.table_for_read(self.copy.old.id).map_err(from_rows)?;
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
        self.before = now;
        Ok(changes.len())
    }

    /// The rows that `now` does not see as the new table has them.
    fn changes(&mut self, now: &mut dyn Transaction) -> Result<Vec<Changed>> {
        let mut earlier = Cursor::over(self.copy, &mut *self.before)?;
        let mut later = Cursor::over(self.copy, now)?;
        let mut changes = Vec::new();
        loop {
            earlier.fill(&mut *self.before)?;
            later.fill(now)?;
            let (before, after) = (earlier.row()?, later.row()?);
            let order = match (before, after) {
                (None, None) => return Ok(changes),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((a, _)), Some((b, _))) => a.cmp(b),
            };
            let (was, is) = (order.is_le(), order.is_ge());
            let differs = order.is_ne() || before.map(|row| row.1) != after.map(|row| row.1);
            if differs && let Some((key, _)) = if was { before } else { after } {
                changes.push(Changed { key: key.into(), was, is });
            }
            earlier.at += usize::from(was);
            later.at += usize::from(is);
            if earlier.at == earlier.scan.len() {
                self.copy.context.check_cancelled()?;
            }
        }
    }
}

/// A place in a scan of the old table.
struct Cursor {
    scan: Box<dyn Scan>,
    /// In the scan's present batch.
    at: usize,
    ended: bool,
}

impl Cursor {
    fn over(copy: &Copy<'_>, trx: &mut dyn Transaction) -> Result<Cursor> {
        let table = trx.table_for_read(copy.old.id).map_err(from_rows)?;
        let scan = full_scan(trx, &table)?;
        Ok(Cursor { scan, at: 0, ended: false })
    }

    /// Sees to it that the place is a row's, or the end.
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
