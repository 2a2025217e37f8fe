//! The place of each column in each row version. Built once for a table definition, then shared.

use crate::value::{ColumnType, DecimalType, Value, ValueError, ValueRef, fixed};

use super::{MAX_ROW_BYTES, RowError};

/// Counts the changes to the set of a table's columns since the table was last written as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowVersion(pub u16);

/// The properties of a column that the row codec needs.
#[derive(Clone, Debug, PartialEq)]
pub struct RowColumn {
    pub column_type: ColumnType,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// The first version whose rows hold the column.
    pub added_in: RowVersion,
    /// The first version whose rows no longer hold it.
    pub dropped_in: Option<RowVersion>,
    /// The value in rows that are older than the column.
    pub default: Value,
}

impl RowColumn {
    /// A column that has been there from the beginning.
    #[must_use]
    pub fn new(column_type: ColumnType, nullable: bool) -> RowColumn {
        RowColumn {
            column_type,
            nullable,
            added_in: RowVersion(0),
            dropped_in: None,
            default: Value::Null,
        }
    }

    fn is_in(&self, version: RowVersion) -> bool {
        self.added_in <= version && self.dropped_in.is_none_or(|dropped| version < dropped)
    }
}

/// The placement of a column in rows of one version.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Absent,
    /// Offset from the start of the row, and length in bytes.
    Fixed {
        offset: u16,
        length: u8,
    },
    /// The variable column of this number.
    Variable {
        index: u16,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) place: Place,
    pub(super) column_type: ColumnType,
    /// The column's bit in the null bitmap, if it may be NULL.
    pub(super) null_bit: Option<u16>,
}

/// The placement of all columns in rows of `first_version` and of later versions, up to the next
/// generation.
#[derive(Debug)]
pub(super) struct Generation {
    pub(super) first_version: RowVersion,
    /// One for each ordinal.
    pub(super) slots: Box<[Slot]>,
    pub(super) variable_columns: usize,
    /// Where the table of end offsets begins, from the start of the row.
    pub(super) offsets_start: usize,
    /// Where the variable part begins.
    pub(super) data_start: usize,
}

/// The placement of a table's columns in rows of every version.
#[derive(Debug)]
pub struct RowLayout {
    version: RowVersion,
    pub(super) columns: Box<[RowColumn]>,
    /// Ascending by version, the first of version 0; the last is the current one.
    generations: Box<[Generation]>,
}

/// Bytes of the version tag.
pub(super) const VERSION_LENGTH: usize = 2;
/// Bytes of an end offset.
pub(super) const END_OFFSET_LENGTH: usize = 2;

impl RowLayout {
    /// The most columns, dropped ones included. Of live ones a row rarely has room for as many.
    pub const MAX_COLUMNS: usize = 4096;

    /// The layout of a table whose new rows have this `version`.
    ///
    /// # Errors
    /// [`RowError::InvalidLayout`] when a column's versions contradict each other or there are more
    /// than [`RowLayout::MAX_COLUMNS`], [`RowError::NullInNotNull`] when an added column that is
    /// not nullable has no default, [`RowError::TooLarge`] when not even empty values fit a row,
    /// and [`RowError::Value`] for impossible column types and defaults.
    pub fn new(version: RowVersion, columns: Vec<RowColumn>) -> Result<RowLayout, RowError> {
        if columns.len() > Self::MAX_COLUMNS {
            return Err(RowError::InvalidLayout("too many columns"));
        }
        for (ordinal, column) in columns.iter().enumerate() {
            check_column(version, ordinal, column)?;
        }
        let mut starts: Vec<RowVersion> = vec![RowVersion(0)];
        starts.extend(columns.iter().map(|column| column.added_in));
        starts.extend(columns.iter().filter_map(|column| column.dropped_in));
        starts.sort_unstable();
        starts.dedup();
        let generations = starts.into_iter().map(|start| Generation::new(start, &columns));
        let generations = generations.collect::<Result<_, _>>()?;
        Ok(RowLayout { version, columns: columns.into(), generations })
    }

    /// The version that new rows are written under.
    #[must_use]
    pub fn version(&self) -> RowVersion {
        self.version
    }

    /// All columns by ordinal, dropped ones included.
    #[must_use]
    pub fn columns(&self) -> &[RowColumn] {
        &self.columns
    }

    pub(super) fn current(&self) -> &Generation {
        &self.generations[self.generations.len() - 1]
    }

    pub(super) fn generation(&self, row: RowVersion) -> Result<&Generation, RowError> {
        if row == self.version {
            return Ok(self.current());
        }
        if row > self.version {
            return Err(RowError::NewerVersion { row, layout: self.version });
        }
        let after = self.generations.partition_point(|generation| generation.first_version <= row);
        Ok(&self.generations[after - 1])
    }
}

fn check_column(version: RowVersion, ordinal: usize, column: &RowColumn) -> Result<(), RowError> {
    let at_column = |error| RowError::Value { ordinal, error };
    column.column_type.check().map_err(at_column)?;
    check_default(column.column_type, column.default.as_ref()).map_err(at_column)?;
    if column.added_in > version || column.dropped_in.is_some_and(|dropped| dropped > version) {
        return Err(RowError::InvalidLayout("a column of a version yet to come"));
    }
    if column.dropped_in.is_some_and(|dropped| dropped <= column.added_in) {
        return Err(RowError::InvalidLayout("a column dropped before it was added"));
    }
    let live = column.dropped_in.is_none();
    if live && !column.nullable && column.added_in > RowVersion(0) && column.default.is_null() {
        return Err(RowError::NullInNotNull(ordinal));
    }
    Ok(())
}

fn check_default(column_type: ColumnType, default: ValueRef<'_>) -> Result<(), ValueError> {
    match (column_type.fixed_length(), default) {
        (_, ValueRef::Null) | (None, ValueRef::Bytes(_)) => Ok(()),
        (None, _) => Err(ValueError::Mismatch(column_type)),
        (Some(length), _) => {
            let mut stored = [0; DecimalType::MAX_ENCODED_LENGTH];
            fixed::write(column_type, default, &mut stored[..length])
        }
    }
}

impl Generation {
    fn new(first_version: RowVersion, columns: &[RowColumn]) -> Result<Generation, RowError> {
        let present = || columns.iter().filter(|column| column.is_in(first_version));
        let nullable_columns = present().filter(|column| column.nullable).count();
        let fixed_start = VERSION_LENGTH + nullable_columns.div_ceil(8);
        let fixed_bytes: usize = present().filter_map(|c| c.column_type.fixed_length()).sum();
        let variable_columns = present().filter(|c| c.column_type.fixed_length().is_none()).count();
        let offsets_start = fixed_start + fixed_bytes;
        let data_start = offsets_start + variable_columns * END_OFFSET_LENGTH;
        if data_start > MAX_ROW_BYTES {
            return Err(RowError::TooLarge { row_bytes: data_start });
        }
        let slots = place(first_version, columns, fixed_start);
        Ok(Generation { first_version, slots, variable_columns, offsets_start, data_start })
    }
}

/// Assigns offsets and null bits in the order of the ordinals. The caller has checked that the sum
/// of all widths is small, so `u16` holds every offset; the longest fixed-width value is a decimal
/// of 32 bytes.
fn place(version: RowVersion, columns: &[RowColumn], fixed_start: usize) -> Box<[Slot]> {
    let mut offset = fixed_start as u16;
    let mut index = 0;
    let mut null_bits = 0..;
    let slot = |column: &RowColumn| {
        let column_type = column.column_type;
        if !column.is_in(version) {
            return Slot { place: Place::Absent, column_type, null_bit: None };
        }
        let null_bit = if column.nullable { null_bits.next() } else { None };
        let place = match column_type.fixed_length() {
            Some(length) => {
                offset += length as u16;
                Place::Fixed { offset: offset - length as u16, length: length as u8 }
            }
            None => {
                index += 1;
                Place::Variable { index: index - 1 }
            }
        };
        Slot { place, column_type, null_bit }
    };
    columns.iter().map(slot).collect()
}
