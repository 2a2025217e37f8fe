//! Rows on disk, split by their keys so that equal keys are in one part.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::error::{ErrorKind, Result, SqlError};
use crate::types::Datum;

use super::Execution;
use super::spill::{SpillFile, SpillReader};

/// How many parts there are.
pub(crate) const PARTS: usize = 16;
/// How often the rows of a part are split again before the statement fails.
const MOST_LEVELS: u32 = 6;

/// Rows that are being split.
pub(crate) struct Partitions {
    level: u32,
    files: Vec<SpillFile>,
}

impl Partitions {
    /// Parts without rows; each level splits by different bits.
    ///
    /// # Errors
    /// 1041 if rows have been split too often: their keys are all the same, or memory is far too
    /// small.
    pub(crate) fn new(level: u32, execution: &Execution<'_>) -> Result<Partitions> {
        if level >= MOST_LEVELS {
            let message = "Out of memory; the statement's limit is too small";
            return Err(SqlError::of_kind(ErrorKind::OutOfMemory, 1041, message));
        }
        let files = (0..PARTS).map(|_| execution.workspace.create_spill_file());
        Ok(Partitions { level, files: files.collect::<Result<_>>()? })
    }

    /// The part that a key belongs to.
    pub(crate) fn part_of(&self, key: &[u8]) -> usize {
        let mut hasher = FxHasher::default();
        hasher.write_u32(self.level.wrapping_add(1).wrapping_mul(0x9e37_79b9));
        hasher.write(key);
        // The low bits of this hash are its worst.
        (hasher.finish() >> 40) as usize % PARTS
    }

    /// Adds a row with its key.
    pub(crate) fn add(
        &mut self,
        key: &[u8],
        row: &[Datum],
        execution: &Execution<'_>,
    ) -> Result<()> {
        execution.check_cancelled()?;
        let part = self.part_of(key);
        self.files[part].append(row)
    }

    /// The parts, in their order.
    pub(crate) fn into_all_readers(self) -> Result<Vec<PartitionReader>> {
        let level = self.level;
        let readers = self.files.into_iter();
        readers.map(|file| Ok(PartitionReader { level, reader: file.into_reader()? })).collect()
    }

    /// The parts that have rows.
    pub(crate) fn into_readers(mut self) -> Result<Vec<PartitionReader>> {
        self.files.retain(|file| file.rows() > 0);
        self.into_all_readers()
    }
}

/// Reads a part.
pub(crate) struct PartitionReader {
    level: u32,
    reader: SpillReader,
}

impl PartitionReader {
    /// How often its rows have been split before.
    pub(crate) fn level(&self) -> u32 {
        self.level
    }

    /// A reader of the same rows, from the beginning.
    pub(crate) fn again(&self) -> PartitionReader {
        PartitionReader { level: self.level, reader: self.reader.again() }
    }

    /// The error of a part whose rows differ from those that were written.
    pub(crate) fn damaged(&self) -> SqlError {
        self.reader.damaged()
    }

    /// Replaces `row` by the next row; false at the end.
    pub(crate) fn next(&mut self, row: &mut Vec<Datum>) -> Result<bool> {
        self.reader.next(row)
    }
}
