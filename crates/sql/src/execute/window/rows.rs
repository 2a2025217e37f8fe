//! The rows of a partition: in memory while they fit, then on disk, from which they are read in
//! pieces.
//!
//! ```text
//!   rows 0 … 63 │ 64 … 127 │ …     the place of each piece is known; the pieces read last are kept
//! ```

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;

use crate::error::Result;
use crate::types::Datum;

use super::super::Execution;
use super::super::background_free::Bulk;
use super::super::memory::{Reservation, size_of_values};
use super::super::spill::{SpillFile, SpillReader};

const PIECE_ROWS: usize = 64;
/// Pieces in the cache: a few places of a partition are read in turn.
const PIECES: usize = 8;

type Piece = Arc<[Box<[Datum]>]>;

#[derive(Default)]
pub(super) struct Rows {
    memory: Bulk<Vec<Box<[Datum]>>>,
    disk: Option<OnDisk>,
    count: usize,
}

struct OnDisk {
    /// Until all rows are there.
    file: Option<SpillFile>,
    reader: Option<RefCell<SpillReader>>,
    /// Where each piece begins.
    places: Vec<u64>,
    /// The pieces read last, the most recent at the end.
    pieces: RefCell<Vec<(usize, Piece)>>,
}

pub(super) enum RowRef<'r> {
    Memory(&'r [Datum]),
    Disk(Piece, usize),
}

impl Deref for RowRef<'_> {
    type Target = [Datum];

    fn deref(&self) -> &[Datum] {
        match self {
            RowRef::Memory(row) => row,
            RowRef::Disk(piece, number) => &piece[*number],
        }
    }
}

impl Rows {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn push(
        &mut self,
        row: Box<[Datum]>,
        held: &mut Reservation,
        execution: &Execution<'_>,
    ) -> Result<()> {
        self.count += 1;
        if let Some(disk) = &mut self.disk {
            return disk.push(&row);
        }
        // As much again is needed for the numbers kept of each row.
        if execution.memory().used_bytes() < execution.memory().limit_bytes() / 2
            && held.grow(size_of_values(&row) + 64)
        {
            self.memory.push(row);
            return Ok(());
        }
        let file = Some(execution.workspace.create_spill_file()?);
        let (places, pieces) = (Vec::new(), RefCell::default());
        let mut disk = OnDisk { file, reader: None, places, pieces };
        self.memory.iter().try_for_each(|row| disk.push(row))?;
        disk.push(&row)?;
        self.memory.discard();
        held.clear();
        self.disk = Some(disk);
        Ok(())
    }

    /// All rows are added; they can be read from now on.
    pub(super) fn complete(&mut self) -> Result<()> {
        if let Some(disk) = &mut self.disk
            && let Some(file) = disk.file.take()
        {
            disk.reader = Some(RefCell::new(file.into_reader()?));
        }
        Ok(())
    }

    /// A row by its number.
    ///
    /// # Panics
    /// If there is no row with that number.
    pub(super) fn get(&self, number: usize) -> Result<RowRef<'_>> {
        match &self.disk {
            None => Ok(RowRef::Memory(&self.memory[number])),
            Some(disk) => Ok(RowRef::Disk(disk.piece(number / PIECE_ROWS)?, number % PIECE_ROWS)),
        }
    }
}

impl OnDisk {
    fn push(&mut self, row: &[Datum]) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if file.rows() % PIECE_ROWS as u64 == 0 {
            self.places.push(file.end());
        }
        file.append(row)
    }

    fn piece(&self, number: usize) -> Result<Piece> {
        let mut pieces = self.pieces.borrow_mut();
        if let Some(at) = pieces.iter().rposition(|(kept, _)| *kept == number) {
            if at + 1 < pieces.len() {
                let used = pieces.remove(at);
                pieces.push(used);
            }
            return Ok(Arc::clone(&pieces[pieces.len() - 1].1));
        }
        let piece = self.read(self.places[number])?;
        if pieces.len() == PIECES {
            pieces.remove(0);
        }
        pieces.push((number, Arc::clone(&piece)));
        Ok(piece)
    }

    fn read(&self, place: u64) -> Result<Piece> {
        let Some(reader) = &self.reader else { return Ok(Arc::default()) };
        let mut reader = reader.borrow_mut();
        reader.seek(place)?;
        let (mut rows, mut row) = (Vec::with_capacity(PIECE_ROWS), Vec::new());
        while rows.len() < PIECE_ROWS && reader.next(&mut row)? {
            rows.push(row.as_slice().into());
        }
        Ok(rows.into())
    }
}
