//! Checks that each row of a table has its index entries, and each entry its row. `firn admin
//! check` and `CHECK TABLE` both use it.
//!
//! ```text
//!   rows ────► the entries that they ought to have ─┐
//!                                                   ├─ added up, index by index: the same?
//!   index ───► the entries that it has ─────────────┘       no: each row looks for its entry,
//!                                                                each entry for its row
//! ```
//!
//! Everything is read by the transaction's snapshot, so writes may continue meanwhile. If two rows
//! have one value in a unique index, the check reports that a row lacks its entry.

use std::hash::{DefaultHasher, Hash, Hasher};

use firn_api::rows::Fetched;
use firn_base::IndexId;
use firn_format::definition::IndexState;
use firn_format::key::SecondaryLayout;

use super::Problems;
use crate::error::EngineError;
use crate::table::{SecondaryIndex, Table};
use crate::transaction::{Cursor, Direction, KeyRange, ReadMode, RecordReader};

/// A checksum of a set of entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    entries: u64,
    hash: u64,
}

impl Sum {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        let mut hasher = DefaultHasher::new();
        (key, value).hash(&mut hasher);
        self.hash = self.hash.wrapping_add(hasher.finish());
        self.entries += 1;
    }
}

type Index<'t> = (&'t SecondaryIndex, &'t SecondaryLayout);

/// Compares a table's rows with the entries of its indexes. Returns the number of entries. Blocks
/// for I/O.
///
/// # Errors
/// A cancelled transaction, or an error of the page store. Damage is not an error: it is added to
/// `problems`.
pub(crate) fn check(
    trx: &mut impl RecordReader,
    table: &Table,
    problems: &mut Problems,
) -> Result<u64, EngineError> {
    let mut checked = 0;
    let indexes: Vec<Index<'_>> = table
        .secondary_with_layout()
        .filter(|(index, _)| index.state == IndexState::Ready)
        .filter(|(index, _)| table.check_ready(trx, index, ReadMode::Consistent).is_ok())
        .collect();
    let of_rows = match sum_rows(trx, table, &indexes) {
        Ok(sums) => sums,
        Err(error) => return damage(error, table.clustered(), problems),
    };
    for (index, of_rows) in indexes.into_iter().zip(of_rows) {
        let mut of_entries = Sum::default();
        let summed = for_each(trx, index.0.id, |_, key, value| {
            of_entries.add(key, value);
            Ok(())
        });
        if let Err(error) = summed {
            damage(error, index.0.id, problems)?;
            continue;
        }
        checked += of_entries.entries;
        if of_entries != of_rows {
            let found = find_differences(trx, table, index, problems);
            found.or_else(|error| damage(error, index.0.id, problems).map(|_| ()))?;
        }
    }
    Ok(checked)
}

/// Reports an error as a problem of the tree. Errors that end the transaction stay errors.
fn damage(error: EngineError, tree: IndexId, problems: &mut Problems) -> Result<u64, EngineError> {
    match error {
        EngineError::Lock(_) | EngineError::TransactionEnded => Err(error),
        damage => {
            problems.add(tree.root(), damage.to_string());
            Ok(0)
        }
    }
}

/// Sums up the entries that the rows require, index by index.
fn sum_rows(
    trx: &mut impl RecordReader,
    table: &Table,
    indexes: &[Index<'_>],
) -> Result<Vec<Sum>, EngineError> {
    let mut sums = vec![Sum::default(); indexes.len()];
    for_each(trx, table.clustered(), |trx, key, payload| {
        for (sum, (_, layout)) in sums.iter_mut().zip(indexes) {
            let entry = table.entry(trx.snapshot_reader(), layout, key, payload)?;
            sum.add(&entry.key, &entry.value);
        }
        Ok(())
    })?;
    Ok(sums)
}

/// Reports each row that lacks an entry and each entry that has no row.
fn find_differences(
    trx: &mut impl RecordReader,
    table: &Table,
    (index, layout): Index<'_>,
    problems: &mut Problems,
) -> Result<(), EngineError> {
    let name = &table.secondary_definition(index).name;
    let mut found = Vec::new();
    for_each(trx, table.clustered(), |trx, key, payload| {
        let entry = table.entry(trx.snapshot_reader(), layout, key, payload)?;
        found.clear();
        let is_there = trx.get(index.id, &entry.key, ReadMode::Consistent, &mut found)?;
        if !is_there || found != entry.value {
            let what = format!("index {name} lacks the entry {:02x?}", entry.key);
            problems.add(index.id.root(), what);
        }
        Ok(())
    })?;
    for_each(trx, index.id, |trx, key, value| {
        found.clear();
        let has_row = match layout.primary_key(key, value) {
            Ok(primary_key) => {
                trx.get(table.clustered(), primary_key, ReadMode::Consistent, &mut found)? && {
                    let entry = table.entry(trx.snapshot_reader(), layout, primary_key, &found)?;
                    entry.key == key && entry.value == value
                }
            }
            Err(_) => false,
        };
        if !has_row {
            let what = format!("index {name} has the entry {key:02x?}, which no row has");
            problems.add(index.id.root(), what);
        }
        Ok(())
    })
}

fn for_each<T: RecordReader>(
    trx: &mut T,
    tree: IndexId,
    mut visit: impl FnMut(&mut T, &[u8], &[u8]) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward, ReadMode::Consistent);
    while trx.fetch(&mut cursor, None)? != Fetched::End {
        for (key, value) in cursor.rows() {
            visit(trx, key, value)?;
        }
    }
    Ok(())
}
