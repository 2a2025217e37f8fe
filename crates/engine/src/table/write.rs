//! Inserts, updates and deletes of rows with all their entries.
//!
//! ```text
//!   update of row 7, column b of (a, b, c), indexes over a and over b
//!     clustered      7 → row         new version
//!     over a         –               untouched, no column of it has changed
//!     over b         old entry       deleted
//!                    new entry       inserted
//! ```

use firn_base::IndexId;
use firn_format::definition::IndexState;
use firn_format::key::{IndexEntry, KeyLayout, SecondaryLayout};
use firn_format::row::{ColumnValue, OverflowReference};
use firn_format::tree::MAX_ENTRY_BYTES;
use firn_format::undo::RECORD_VERSION_BYTES;
use firn_format::value::ValueRef;
use smallvec::SmallVec;

use crate::error::EngineError;
use crate::table::{SecondaryIndex, Table, WriteBuffers, overflow};
use crate::transaction::{ReadMode, ReadTransaction, Transaction, WaitPolicy};

/// The cells of a row, one for each ordinal.
type Cells<'a> = SmallVec<[ColumnValue<'a>; 16]>;
/// The values of a row. Out-of-line values are fetched as far as they are needed.
type Values<'a> = SmallVec<[ValueRef<'a>; 16]>;
/// Values that were fetched from overflow pages, by ordinal.
type Fetched = Vec<(u16, Vec<u8>)>;

impl Table {
    /// Inserts a row, given a value for each ordinal. Ignores the values of dropped columns and of
    /// the hidden row id. Blocks for locks and I/O.
    ///
    /// # Errors
    /// [`EngineError::DuplicateKey`] with the index that has the values already,
    /// [`EngineError::Row`] and [`EngineError::Key`] for values that do not fit, locks that were
    /// not granted, or an error of the page store or the log. The insert then has no effect, unless
    /// the whole transaction was rolled back.
    pub fn insert(
        &self,
        trx: &mut Transaction,
        row: &[ValueRef<'_>],
        buffers: &mut WriteBuffers,
    ) -> Result<(), EngineError> {
        all_or_nothing(trx, |trx| self.insert_row(trx, row, buffers))
    }

    /// Inserts rows, given a value for each ordinal, row after row. Rows in the order of the
    /// primary key cost far less this way than one by one. Blocks for locks and I/O.
    ///
    /// # Errors
    /// As [`Table::insert`]; no row is inserted then. The error does not say which row was refused.
    pub fn insert_rows(
        &self,
        trx: &mut Transaction,
        values: &[ValueRef<'_>],
        buffers: &mut WriteBuffers,
    ) -> Result<(), EngineError> {
        all_or_nothing(trx, |trx| self.insert_runs(trx, values, buffers))
    }

    fn insert_runs(
        &self,
        trx: &mut Transaction,
        values: &[ValueRef<'_>],
        buffers: &mut WriteBuffers,
    ) -> Result<(), EngineError> {
        let width = self.definition.columns.len();
        assert!(values.len().is_multiple_of(width), "rows have a value for each ordinal");
        let WriteBuffers { key, payload, entry, rows, entries, .. } = buffers;
        rows.clear();
        for row in values.chunks_exact(width) {
            self.encode_row(trx, row, key, payload)?;
            rows.push(key, payload);
        }
        trx.insert_run(self.clustered, rows)?;
        for (index, layout) in self.secondary_with_layout() {
            entries.clear();
            for (number, row) in values.chunks_exact(width).enumerate() {
                layout.write_entry(row, rows.key(number), self.collations(), entry)?;
                entries.push(&entry.key, &entry.value);
            }
            entries.sort();
            trx.insert_run(index.id, entries)?;
        }
        Ok(())
    }

    fn insert_row(
        &self,
        trx: &mut Transaction,
        row: &[ValueRef<'_>],
        buffers: &mut WriteBuffers,
    ) -> Result<(), EngineError> {
        let WriteBuffers { key, payload, entry, .. } = buffers;
        self.encode_row(trx, row, key, payload)?;
        trx.insert(self.clustered, key, payload)?;
        for (index, layout) in self.secondary_with_layout() {
            layout.write_entry(row, key, self.collations(), entry)?;
            trx.insert(index.id, &entry.key, &entry.value)?;
        }
        Ok(())
    }

    /// The key and the bytes of a new row, with a new row id if the table has a hidden column.
    fn encode_row(
        &self,
        trx: &mut Transaction,
        row: &[ValueRef<'_>],
        key: &mut Vec<u8>,
        payload: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        let numbered = self.with_row_id(row)?;
        let row = numbered.as_deref().unwrap_or(row);
        key.clear();
        self.layout.clustered.encode_row(row, self.collations(), key)?;
        let cells: Cells<'_> = row.iter().map(|value| ColumnValue::Inline(*value)).collect();
        self.encode_payload(trx, cells, key.len(), payload)
    }

    /// The row with a new row id. `None` if the row stays as it is: the table has no hidden column,
    /// or the row is a copy of another table's row and has an id, which the counter then skips.
    fn with_row_id<'a>(&self, row: &[ValueRef<'a>]) -> Result<Option<Values<'a>>, EngineError> {
        let Some(column) = self.row_id_column.filter(|column| *column < row.len()) else {
            return Ok(None);
        };
        if let ValueRef::UInt(number) = row[column] {
            self.sequences().row_id.pass(number)?;
            return Ok(None);
        }
        let mut row = Values::from_slice(row);
        row[column] = ValueRef::UInt(self.next_row_id()?);
        Ok(Some(row))
    }

    fn next_row_id(&self) -> Result<u64, EngineError> {
        self.sequences().row_id.take(1)
    }

    /// The row's bytes. Values that make the row too long are written to overflow pages first.
    fn encode_payload(
        &self,
        trx: &mut Transaction,
        mut cells: Cells<'_>,
        key_bytes: usize,
        payload: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        let max_row_bytes = MAX_ENTRY_BYTES.saturating_sub(RECORD_VERSION_BYTES + key_bytes);
        let plan = self.layout.row.plan(&cells, max_row_bytes)?;
        for ordinal in &plan.externalise {
            let cell = &mut cells[usize::from(*ordinal)];
            if let ColumnValue::Inline(ValueRef::Bytes(bytes)) = *cell {
                *cell = ColumnValue::Overflow(overflow::write(trx, self.space(), bytes)?);
            }
        }
        payload.clear();
        Ok(self.layout.row.encode_into(&cells, payload)?)
    }

    /// Deletes the row with this primary key. False if the row does not exist. Blocks for locks and
    /// I/O.
    ///
    /// # Errors
    /// Locks that were not granted, a conflict with the snapshot, or an error of the page store or
    /// the log.
    pub fn delete(
        &self,
        trx: &mut Transaction,
        key: &[u8],
        buffers: &mut WriteBuffers,
    ) -> Result<bool, EngineError> {
        let mut old = std::mem::take(&mut buffers.old);
        let found = trx.get(self.clustered, key, ReadMode::Update(WaitPolicy::Wait), &mut old);
        let deleted = match found {
            Ok(true) => self.delete_row(trx, key, &old, buffers).map(|()| true),
            other => other,
        };
        buffers.old = old;
        deleted
    }

    /// Deletes a row that the transaction has read as `payload` with [`ReadMode::Update`] (rule 3).
    /// Blocks for locks and I/O.
    ///
    /// # Errors
    /// As [`Table::delete`].
    pub fn delete_row(
        &self,
        trx: &mut Transaction,
        key: &[u8],
        payload: &[u8],
        buffers: &mut WriteBuffers,
    ) -> Result<(), EngineError> {
        all_or_nothing(trx, |trx| self.delete_parts(trx, key, payload, buffers))
    }

    fn delete_parts(
        &self,
        trx: &mut Transaction,
        key: &[u8],
        payload: &[u8],
        buffers: &mut WriteBuffers,
    ) -> Result<(), EngineError> {
        let cells = self.cells(payload)?;
        if !trx.remove(self.clustered, key, payload)? {
            return Err(self.not_as_read());
        }
        if !self.secondary.is_empty() {
            let fetched = self.fetch(trx, &cells)?;
            let values = values_of(&cells, &fetched);
            for (index, layout) in self.secondary_with_layout() {
                layout.write_entry(&values, key, self.collations(), &mut buffers.entry)?;
                self.take_entry(trx, index, &buffers.entry.key)?;
            }
        }
        self.give_up_chains(trx, payload, &[])
    }

    /// Changes columns of the row with this primary key, given as pairs of ordinal and value. False
    /// if the row does not exist. Blocks for locks and I/O.
    ///
    /// # Errors
    /// As [`Table::insert`], and a conflict with the snapshot.
    pub fn update(
        &self,
        trx: &mut Transaction,
        key: &[u8],
        changes: &[(usize, ValueRef<'_>)],
        buffers: &mut WriteBuffers,
    ) -> Result<bool, EngineError> {
        let mut old = std::mem::take(&mut buffers.old);
        let found = trx.get(self.clustered, key, ReadMode::Update(WaitPolicy::Wait), &mut old);
        let updated = match found {
            Ok(true) => self.update_columns(trx, key, &old, changes, buffers).map(|()| true),
            other => other,
        };
        buffers.old = old;
        updated
    }

    /// Changes columns of a row that the transaction has read as `payload` with
    /// [`ReadMode::Update`] (rule 3). Blocks for locks and I/O.
    ///
    /// # Errors
    /// As [`Table::update`].
    pub fn update_columns(
        &self,
        trx: &mut Transaction,
        key: &[u8],
        payload: &[u8],
        changes: &[(usize, ValueRef<'_>)],
        buffers: &mut WriteBuffers,
    ) -> Result<(), EngineError> {
        let mut cells = self.cells(payload)?;
        for (ordinal, value) in changes {
            let cell = cells.get_mut(*ordinal);
            *cell.ok_or(firn_format::row::RowError::NoSuchColumn(*ordinal))? =
                ColumnValue::Inline(*value);
        }
        all_or_nothing(trx, |trx| self.update_parts(trx, key, payload, cells, buffers))
    }

    fn update_parts(
        &self,
        trx: &mut Transaction,
        key: &[u8],
        payload: &[u8],
        new: Cells<'_>,
        buffers: &mut WriteBuffers,
    ) -> Result<(), EngineError> {
        let old = self.cells(payload)?;
        let changed = |ordinal: u16| old[usize::from(ordinal)] != new[usize::from(ordinal)];
        let touches = |layout: &KeyLayout| layout.parts().iter().any(|part| changed(part.column));
        let moves = touches(&self.layout.clustered);
        let concerns = |layout: &SecondaryLayout| moves || touches(layout.key());
        let is_indexed = moves || self.layout.secondary.iter().any(|(_, layout)| concerns(layout));

        // The values that entries need are fetched before the cells are replaced by references.
        let (fetched_old, fetched_new) = match is_indexed {
            true => (self.fetch(trx, &old)?, self.fetch(trx, &new)?),
            false => (Fetched::new(), Fetched::new()),
        };
        let (old_values, new_values) =
            (values_of(&old, &fetched_old), values_of(&new, &fetched_new));
        buffers.new_key.clear();
        match moves {
            true => self.layout.clustered.encode_row(
                &new_values,
                self.collations(),
                &mut buffers.new_key,
            )?,
            false => buffers.new_key.extend_from_slice(key),
        }
        self.encode_payload(trx, new.clone(), buffers.new_key.len(), &mut buffers.payload)?;
        self.replace_row(trx, key, payload, buffers)?;
        for (index, layout) in self.secondary_with_layout() {
            if concerns(layout) {
                layout.write_entry(&old_values, key, self.collations(), &mut buffers.entry)?;
                let new_key = std::mem::take(&mut buffers.new_key);
                let written = layout.write_entry(
                    &new_values,
                    &new_key,
                    self.collations(),
                    &mut buffers.new_entry,
                );
                buffers.new_key = new_key;
                written?;
                self.replace_entry(trx, index, buffers)?;
            }
        }
        let payload_now = std::mem::take(&mut buffers.payload);
        let kept = self.references(&payload_now);
        buffers.payload = payload_now;
        self.give_up_chains(trx, payload, &kept?)
    }

    fn replace_row(
        &self,
        trx: &mut Transaction,
        key: &[u8],
        payload: &[u8],
        buffers: &WriteBuffers,
    ) -> Result<(), EngineError> {
        let found = if key == buffers.new_key {
            trx.replace(self.clustered, key, payload, &buffers.payload)?
        } else {
            let found = trx.remove(self.clustered, key, payload)?;
            trx.insert(self.clustered, &buffers.new_key, &buffers.payload)?;
            found
        };
        if found { Ok(()) } else { Err(self.not_as_read()) }
    }

    fn replace_entry(
        &self,
        trx: &mut Transaction,
        index: &SecondaryIndex,
        buffers: &WriteBuffers,
    ) -> Result<(), EngineError> {
        let (old, new) = (&buffers.entry, &buffers.new_entry);
        if old == new {
            return Ok(());
        }
        if old.key == new.key && trx.update(index.id, &new.key, &new.value)? {
            return Ok(());
        }
        if old.key != new.key {
            self.take_entry(trx, index, &old.key)?;
        }
        trx.insert(index.id, &new.key, &new.value)
    }

    /// Deletes an entry (rule 5).
    fn take_entry(
        &self,
        trx: &mut Transaction,
        index: &SecondaryIndex,
        key: &[u8],
    ) -> Result<(), EngineError> {
        if !trx.delete(index.id, key)? && index.state == IndexState::Ready {
            return Err(self.missing_entry(index.id));
        }
        Ok(())
    }

    fn missing_entry(&self, index: IndexId) -> EngineError {
        let name = self.definition.indexes.iter().find(|other| other.index_id == index);
        let name = name.map_or("", |index| index.name.as_str());
        EngineError::Corrupt {
            page: index.root(),
            what: format!(
                "index {name} of table {} lacks the entry of a row",
                self.definition.name
            ),
        }
    }

    fn not_as_read(&self) -> EngineError {
        EngineError::Invalid(format!(
            "a row of table {} has changed since the statement has read it",
            self.definition.name
        ))
    }

    /// All cells of a row.
    fn cells<'a>(&'a self, payload: &'a [u8]) -> Result<Cells<'a>, EngineError> {
        let view = self.view(payload)?;
        view.columns().collect::<Result<_, _>>().map_err(|error| self.row_error(error))
    }

    /// Fetches the out-of-line values that entries need.
    fn fetch(
        &self,
        trx: &ReadTransaction,
        cells: &[ColumnValue<'_>],
    ) -> Result<Fetched, EngineError> {
        let mut fetched = Fetched::new();
        for (ordinal, cell) in (0..).zip(cells) {
            let ColumnValue::Overflow(reference) = *cell else { continue };
            let Some(bytes) = self.indexed_bytes(ordinal) else { continue };
            let mut value = Vec::new();
            overflow::read(trx.versions().pages(), self.space(), reference, 0..bytes, &mut value)?;
            fetched.push((ordinal, value));
        }
        Ok(fetched)
    }

    /// The entry of a row in an index.
    pub(crate) fn entry(
        &self,
        trx: &ReadTransaction,
        layout: &SecondaryLayout,
        key: &[u8],
        payload: &[u8],
    ) -> Result<IndexEntry, EngineError> {
        let cells = self.cells(payload)?;
        let fetched = self.fetch(trx, &cells)?;
        let values = values_of(&cells, &fetched);
        Ok(layout.entry(&values, key, self.collations())?)
    }

    /// The most bytes of a column's value that an entry can need; `None` if no index has the
    /// column.
    fn indexed_bytes(&self, ordinal: u16) -> Option<u64> {
        let secondary = self.layout.secondary.iter().map(|(_, layout)| layout.key());
        let layouts = secondary.chain([&self.layout.clustered]);
        let parts = layouts.flat_map(KeyLayout::parts).filter(|part| part.column == ordinal);
        parts.map(|part| part.prefix_length.map_or(u64::MAX, prefix_bytes)).max()
    }

    /// Releases the chains that the row of `payload` refers to, except for those in `kept`.
    fn give_up_chains(
        &self,
        trx: &mut Transaction,
        payload: &[u8],
        kept: &[OverflowReference],
    ) -> Result<(), EngineError> {
        for reference in self.references(payload)? {
            if !kept.contains(&reference) {
                overflow::give_up(trx, self.space(), reference)?;
            }
        }
        Ok(())
    }

    /// The chains that a row refers to, those of dropped columns included.
    pub(crate) fn references(
        &self,
        payload: &[u8],
    ) -> Result<SmallVec<[OverflowReference; 4]>, EngineError> {
        let references = self.view(payload)?.overflow_references();
        references.collect::<Result<_, _>>().map_err(|error| self.row_error(error))
    }
}

/// The most bytes that `characters` of text can take, in any character set.
fn prefix_bytes(characters: u32) -> u64 {
    u64::from(characters) * 4
}

/// The values of cells. An out-of-line value that was not fetched becomes NULL; no entry needs it.
fn values_of<'a>(cells: &[ColumnValue<'a>], fetched: &'a Fetched) -> Values<'a> {
    let mut values: Values<'a> =
        cells.iter().map(|cell| cell.inline().unwrap_or(ValueRef::Null)).collect();
    for (ordinal, bytes) in fetched {
        values[usize::from(*ordinal)] = ValueRef::Bytes(bytes);
    }
    values
}

/// Runs an operation. If it fails, rolls its changes back (rule 2).
fn all_or_nothing(
    trx: &mut Transaction,
    operation: impl FnOnce(&mut Transaction) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let savepoint = trx.savepoint();
    let Err(error) = operation(trx) else { return Ok(()) };
    match trx.rollback_to(savepoint) {
        // A transaction that broke a deadlock was rolled back completely.
        Ok(()) | Err(EngineError::TransactionEnded) => Err(error),
        Err(fatal) => Err(fatal),
    }
}
