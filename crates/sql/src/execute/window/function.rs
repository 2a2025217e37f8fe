//! The window functions.

use std::ops::Range;

use crate::error::{Result, SqlError};
use crate::expression::AggregateCall;
use crate::logical::{WindowCall, WindowFunction};
use crate::types::{Datum, SqlType};

use super::super::Execution;
use super::super::aggregate::Accumulator;
use super::super::memory::Reservation;
use super::Partition;

/// A function running over a partition. An aggregate continues from its last frame as long as the
/// frame only grows.
pub(super) struct Running {
    frame: Range<usize>,
    accumulator: Option<Accumulator>,
    value: Option<Datum>,
    held: Option<Reservation>,
}

impl Running {
    pub(super) fn new(call: &WindowCall) -> Running {
        let accumulator = match &call.function {
            WindowFunction::Aggregate(aggregate) => Some(Accumulator::new(aggregate)),
            _ => None,
        };
        Running { frame: 0..0, accumulator, value: None, held: None }
    }

    /// The function's value for a row; its arguments begin at `place`.
    pub(super) fn value(
        &mut self,
        call: &WindowCall,
        place: usize,
        partition: &Partition,
        row: usize,
        frame: Range<usize>,
        execution: &Execution<'_>,
    ) -> Result<Datum> {
        let count = partition.rows.len();
        let (first_peer, after_peers, group) = partition.peers[row];
        let (first_peer, after_peers) = (first_peer as usize, after_peers as usize);
        let argument = |row: usize, number: usize| -> Result<Datum> {
            Ok(partition.rows.get(row)?[place + number].clone())
        };
        let in_frame = |at: Option<usize>| {
            at.filter(|at| frame.contains(at)).map_or(Ok(Datum::Null), |at| argument(at, 0))
        };
        let number = |number: usize| count_of(number as u64, &call.ty);
        Ok(match &call.function {
            WindowFunction::RowNumber => number(row + 1),
            WindowFunction::Rank => number(first_peer + 1),
            WindowFunction::DenseRank => number(group as usize + 1),
            WindowFunction::PercentRank if count == 1 => Datum::Double(0.0),
            WindowFunction::PercentRank => Datum::Double(first_peer as f64 / (count - 1) as f64),
            WindowFunction::CumulativeDistribution => {
                Datum::Double(after_peers as f64 / count as f64)
            }
            WindowFunction::Ntile => match argument(row, 0)? {
                Datum::Null => Datum::Null,
                tiles => number(ntile(positive(&tiles, "ntile")?, row, count)),
            },
            WindowFunction::Lag | WindowFunction::Lead => {
                let offset = match call.arguments.len() {
                    1 => 1,
                    _ => offset(&argument(row, 1)?)?,
                };
                let is_lag = matches!(call.function, WindowFunction::Lag);
                let at = if is_lag { row.checked_sub(offset) } else { row.checked_add(offset) };
                match at.filter(|at| *at < count) {
                    Some(at) => argument(at, 0)?,
                    None if call.arguments.len() > 2 => argument(row, 2)?,
                    None => Datum::Null,
                }
            }
            WindowFunction::FirstValue => in_frame(Some(frame.start))?,
            WindowFunction::LastValue => in_frame(frame.end.checked_sub(1))?,
            WindowFunction::NthValue => match argument(row, 1)? {
                Datum::Null => Datum::Null,
                nth => in_frame(frame.start.checked_add(positive(&nth, "nth_value")? - 1))?,
            },
            WindowFunction::Aggregate(aggregate) => {
                self.aggregate(aggregate, place, partition, frame, execution)?
            }
        })
    }

    fn aggregate(
        &mut self,
        call: &AggregateCall,
        place: usize,
        partition: &Partition,
        frame: Range<usize>,
        execution: &Execution<'_>,
    ) -> Result<Datum> {
        if let Some(value) = self.value.as_ref().filter(|_| frame == self.frame) {
            return Ok(value.clone());
        }
        let held = self.held.get_or_insert_with(|| execution.memory().reservation());
        let grows = frame.start == self.frame.start && frame.end >= self.frame.end;
        if !grows || self.accumulator.is_none() {
            held.clear();
            self.accumulator = Some(Accumulator::new(call));
            self.frame = frame.start..frame.start;
        }
        let Some(accumulator) = &mut self.accumulator else { return Ok(Datum::Null) };
        for row in self.frame.end..frame.end {
            execution.check_cancelled()?;
            let row = partition.rows.get(row)?;
            let (arguments, rest) = row[place..].split_at(call.arguments.len());
            accumulator.add(call, arguments, &rest[..call.order.len()], held, execution)?;
        }
        let value = accumulator.clone().finish(call, execution.context)?;
        self.frame = frame;
        self.value = Some(value.clone());
        Ok(value)
    }
}

/// A count as a value of a type.
fn count_of(number: u64, ty: &SqlType) -> Datum {
    if ty.kind.is_unsigned() { Datum::UInt(number) } else { Datum::Int(number as i64) }
}

/// The tile of a row: the first tiles have one row more if rows are left over.
fn ntile(tiles: usize, row: usize, count: usize) -> usize {
    let (size, larger) = (count / tiles, count % tiles);
    let in_larger = larger * (size + 1);
    match row < in_larger {
        true => row / (size + 1) + 1,
        false => larger + (row - in_larger) / size.max(1) + 1,
    }
}

fn positive(value: &Datum, function: &str) -> Result<usize> {
    let number = match value {
        Datum::Int(number) => usize::try_from(*number).ok(),
        Datum::UInt(number) => usize::try_from(*number).ok(),
        _ => None,
    };
    number.filter(|number| *number > 0).ok_or_else(|| incorrect(function))
}

fn offset(value: &Datum) -> Result<usize> {
    let number = match value {
        Datum::Int(number) => usize::try_from(*number).ok(),
        Datum::UInt(number) => usize::try_from(*number).ok(),
        _ => None,
    };
    number.ok_or_else(|| incorrect("lag"))
}

fn incorrect(function: &str) -> SqlError {
    SqlError::new(1210, format!("Incorrect arguments to {function}"))
}
