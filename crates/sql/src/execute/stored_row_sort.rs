//! `ORDER BY` and `DISTINCT` over a few rows of one table, sorted as their stored bytes.
//!
//! ```text
//!   SELECT DISTINCT c FROM t WHERE id BETWEEN ? AND ? ORDER BY c
//!
//!   rows  │ bytes │ bytes │ bytes │      copied out of the scan's batches, one after the other
//!   order  (head, start, end) …        head: the first 63 bits of the first key
//!            └─ sorted by head; rows with the same head are compared in full
//! ```
//!
//! Used for a sort of bare columns over a scan without conditions, with or without `DISTINCT` of
//! those columns and `LIMIT`. No row is decoded into values, and most keys are never computed
//! beyond their head. Rows larger than [`MOST_BYTES`] in total are sorted in the general way from
//! the beginning, which can spill to disk.

use std::cmp::Ordering;

use firn_api::rows::{ReadMode, TableRef};
use firn_format::value::ValueRef;
use smallvec::SmallVec;

use crate::collation::{self, Collation};
use crate::error::Result;
use crate::expression::{Expression, ExpressionKind, Slot, SortKey};
use crate::plan::{NodeKind, QueryPlan, ScanPlan};
use crate::types::compare::own_kind;
use crate::types::{ComparisonKind, SqlType};

use super::Execution;
use super::cursor::Cursor;
use super::sink::ResultSink;
use super::stored_row_results::{Direct, Readers};

/// The most bytes that are sorted this way.
const MOST_BYTES: usize = 1 << 20;
/// In a head, set in every value that is not NULL.
const NOT_NULL: u64 = 1 << 63;

/// A query whose rows are sorted as bytes.
pub(crate) struct ShortSort<'p> {
    direct: Direct<'p>,
    keys: SmallVec<[Key; 2]>,
    distinct: bool,
}

/// A sort column.
struct Key {
    ordinal: usize,
    order: Order,
    descending: bool,
}

/// How a column's values are ordered.
#[derive(Clone, Copy)]
enum Order {
    Integer,
    Text(&'static Collation),
}

/// A row in the order of its key.
#[derive(Clone, Copy)]
struct Entry {
    head: u64,
    start: u32,
    end: u32,
}

/// This way of running a query, if it is possible.
pub(crate) fn short_sort(query: &QueryPlan) -> Option<ShortSort<'_>> {
    let (sort, offset, count) = match &query.root.kind {
        NodeKind::Limit { input, offset, count, count_all: false } => {
            (&**input, offset.as_ref(), count.as_ref())
        }
        _ => (&query.root, None, None),
    };
    let NodeKind::Sort { input, keys, .. } = &sort.kind else { return None };
    let (scan, distinct) = match &input.kind {
        NodeKind::Distinct { input, slots, .. } => (&**input, Some(slots)),
        _ => (&**input, None),
    };
    let NodeKind::Scan(scan) = &scan.kind else { return None };
    if scan.mode != ReadMode::Consistent || scan.covered || scan.row_payload.is_some() {
        return None;
    }
    if distinct.is_some_and(|slots| !sorts_by_all(keys, slots)) {
        return None;
    }
    let keys = keys.iter().map(|key| Key::new(key, scan)).collect::<Option<_>>()?;
    let direct = Direct::new(query, scan, offset, count)?;
    Some(ShortSort { direct, keys, distinct: distinct.is_some() })
}

/// Whether the order puts rows that are equal in these slots side by side.
fn sorts_by_all(keys: &[SortKey], slots: &[(Slot, SqlType)]) -> bool {
    let sorts_by = |slot: Slot| keys.iter().any(|key| slot_of(&key.expression) == Some(slot));
    let is_distinct = |key: &SortKey| {
        slot_of(&key.expression).is_some_and(|slot| slots.iter().any(|(other, _)| *other == slot))
    };
    slots.iter().all(|(slot, _)| sorts_by(*slot)) && keys.iter().all(is_distinct)
}

fn slot_of(expression: &Expression) -> Option<Slot> {
    match expression.kind {
        ExpressionKind::Slot(slot) => Some(slot),
        _ => None,
    }
}

impl Key {
    fn new(key: &SortKey, scan: &ScanPlan) -> Option<Key> {
        let slot = slot_of(&key.expression)?;
        let (ordinal, _) = scan.slots.iter().find(|(_, filled)| *filled == slot)?;
        let ty = &scan.table.by_ordinal(*ordinal)?.ty;
        let order = match own_kind(ty) {
            ComparisonKind::Integer if ty.kind.is_integer() => Order::Integer,
            ComparisonKind::Text(id) => Order::Text(collation::get(id)),
            _ => return None,
        };
        Some(Key { ordinal: usize::from(*ordinal), order, descending: key.descending })
    }

    /// The first part of the key, as a number that orders as the key does; if two are equal, the
    /// order is undecided.
    fn head(&self, value: ValueRef<'_>, scratch: &mut Vec<u8>) -> u64 {
        let word = match (value, self.order) {
            (ValueRef::Int(number), _) => number as u64 ^ 1 << 63,
            (ValueRef::UInt(number), _) => number,
            (ValueRef::Bytes(text), Order::Text(collation)) => {
                collation.sort_key_head(text, scratch)
            }
            _ => 0,
        };
        let head = if value.is_null() { 0 } else { NOT_NULL | word >> 1 };
        if self.descending { !head } else { head }
    }

    fn compare(&self, one: ValueRef<'_>, other: ValueRef<'_>) -> Ordering {
        let ordering = match (one, other, self.order) {
            (ValueRef::Int(one), ValueRef::Int(other), _) => one.cmp(&other),
            (ValueRef::UInt(one), ValueRef::UInt(other), _) => one.cmp(&other),
            (ValueRef::Bytes(one), ValueRef::Bytes(other), Order::Text(collation)) => {
                collation.compare(one, other)
            }
            (one, other, _) => other.is_null().cmp(&one.is_null()),
        };
        if self.descending { ordering.reverse() } else { ordering }
    }
}

impl ShortSort<'_> {
    /// Passes the rows to the sink; returns their number. `None`, and nothing passed on, if they
    /// must be sorted in the general way.
    pub(crate) fn run(
        &self,
        execution: &mut Execution<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Option<u64>> {
        let mut bytes = std::mem::take(&mut execution.workspace.scratch.rows);
        bytes.clear();
        let given = self.run_in(&mut bytes, execution, sink);
        if bytes.capacity() <= MOST_BYTES {
            execution.workspace.scratch.rows = bytes;
        }
        given
    }

    fn run_in(
        &self,
        bytes: &mut Vec<u8>,
        execution: &mut Execution<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Option<u64>> {
        let (skip, count) = self.direct.bounds(execution)?;
        let mut held = execution.memory().reservation();
        let mut cursor = Cursor::new(self.direct.scan);
        cursor.open(execution)?;
        let mut entries: SmallVec<[Entry; 128]> = SmallVec::new();
        let mut scratch = std::mem::take(&mut execution.workspace.scratch.key);
        while count > 0 && cursor.advance(execution)? {
            let Some((batch, table)) = cursor.take_batch(&mut execution.measures.rows) else {
                return Ok(None);
            };
            let size_bytes = batch.bytes.len() + size_of_val(batch.spans);
            if bytes.len() + size_bytes > MOST_BYTES || !held.grow(size_bytes) {
                return Ok(None);
            }
            let layout = &table.layout().row;
            let readers: Readers =
                self.keys.iter().map(|key| layout.column_reader(key.ordinal)).collect();
            for span in batch.spans {
                let row = batch.row(*span);
                let Some(head) = self.head(&readers, row, &mut scratch) else { return Ok(None) };
                let start = bytes.len() as u32;
                bytes.extend_from_slice(row);
                entries.push(Entry { head, start, end: bytes.len() as u32 });
            }
        }
        execution.workspace.scratch.key = scratch;
        let Some(table) = cursor.table() else { return Ok(Some(0)) };
        execution.measures.rows.sorted += entries.len() as u64;
        self.sort(&mut entries, bytes, table);
        self.give(&entries, bytes, table, (skip, count), execution, sink).map(Some)
    }

    /// The head of a row's first key; `None` if a key is not in the row's bytes.
    fn head(&self, readers: &Readers, row: &[u8], scratch: &mut Vec<u8>) -> Option<u64> {
        let mut head = None;
        for (key, reader) in self.keys.iter().zip(readers) {
            let value = reader.as_ref()?.read(row)?;
            head.get_or_insert_with(|| key.head(value, scratch));
        }
        head
    }

    fn sort(&self, entries: &mut [Entry], bytes: &[u8], table: &TableRef) {
        entries.sort_unstable_by(|one, other| {
            let by_head = one.head.cmp(&other.head);
            by_head
                .then_with(|| self.compare(one, other, bytes, table))
                .then_with(|| one.start.cmp(&other.start))
        });
    }

    /// Compares two rows by all keys. Values that could be read once can be read again.
    fn compare(&self, one: &Entry, other: &Entry, bytes: &[u8], table: &TableRef) -> Ordering {
        let (one, other) = (row_of(one, bytes), row_of(other, bytes));
        let mut orders = self.keys.iter().map(|key| {
            let reader = table.layout().row.column_reader(key.ordinal);
            let value = |row| reader.and_then(|reader| reader.read(row)).unwrap_or(ValueRef::Null);
            key.compare(value(one), value(other))
        });
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    fn give(
        &self,
        entries: &[Entry],
        bytes: &[u8],
        table: &TableRef,
        (skip, count): (u64, u64),
        execution: &mut Execution<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<u64> {
        let readers = self.direct.readers(table);
        let mut given = 0;
        let mut skipped = 0;
        let mut before: Option<&Entry> = None;
        for entry in entries {
            let is_same = |before: &Entry| {
                before.head == entry.head && self.compare(before, entry, bytes, table).is_eq()
            };
            if self.distinct && before.is_some_and(is_same) {
                continue;
            }
            before = Some(entry);
            if skipped < skip {
                skipped += 1;
                continue;
            }
            let (transaction, overflow) =
                (&*execution.data.transaction, &mut execution.workspace.scratch.overflow);
            let row = row_of(entry, bytes);
            self.direct.emit_row(&readers, row, table, transaction, overflow, sink)?;
            given += 1;
            if given == count {
                break;
            }
        }
        Ok(given)
    }
}

fn row_of<'b>(entry: &Entry, bytes: &'b [u8]) -> &'b [u8] {
    &bytes[entry.start as usize..entry.end as usize]
}
