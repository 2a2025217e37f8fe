//! The memory of a statement, the buffers that it reuses, and its temporary files.

use std::sync::OnceLock;

use firn_base::disk::{SpillArea, SpillDirectory};

use crate::error::{ErrorKind, Result, SqlError};
use crate::types::Datum;

use super::memory::MemoryBudget;
use super::spill::SpillFile;

/// What a session keeps for its next execution, so that short statements allocate nothing.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) frame: Vec<Datum>,
    pub(crate) key: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    pub(crate) overflow: Vec<u8>,
    /// Rows that are sorted as bytes.
    pub(crate) rows: Vec<u8>,
    pub(crate) memory: MemoryBudget,
}

/// Where an execution keeps what it works on.
pub struct Workspace {
    pub(crate) scratch: Box<Scratch>,
    /// Where operators put rows for which they have no memory; without it they fail with 1041.
    pub spill: Option<SpillDirectory>,
    /// The statement's share of it, once it is needed.
    area: OnceLock<SpillArea>,
}

impl Workspace {
    pub(crate) fn new(scratch: Box<Scratch>) -> Workspace {
        Workspace { scratch, spill: None, area: OnceLock::new() }
    }

    /// Takes the buffer of the frame: this many slots of NULL.
    pub(crate) fn take_frame(&mut self, slots: usize) -> Vec<Datum> {
        let mut frame = std::mem::take(&mut self.scratch.frame);
        frame.clear();
        frame.resize_with(slots, || Datum::Null);
        frame
    }

    /// What the next execution can reuse.
    pub(crate) fn into_scratch(self, mut frame: Vec<Datum>) -> Box<Scratch> {
        frame.clear();
        let mut scratch = self.scratch;
        scratch.frame = frame;
        scratch
    }

    pub(crate) fn memory(&self) -> &MemoryBudget {
        &self.scratch.memory
    }

    /// Where the statement spills, in whichever executor, if there is a place.
    #[must_use]
    pub fn spill_area(&self) -> Option<&SpillArea> {
        self.spill.as_ref().map(|spill| self.area.get_or_init(|| spill.of_statement()))
    }

    /// A file for rows for which there is no memory.
    ///
    /// # Errors
    /// 1041 if the session has no place for such files; 1 if it cannot be created.
    pub(crate) fn create_spill_file(&self) -> Result<SpillFile> {
        match self.spill_area() {
            Some(area) => SpillFile::create(area),
            None => {
                let message = "Out of memory, and there is no place for temporary files";
                Err(SqlError::of_kind(ErrorKind::OutOfMemory, 1041, message))
            }
        }
    }
}
