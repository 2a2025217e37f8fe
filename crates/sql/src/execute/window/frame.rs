//! Which rows of its partition are in a row's frame.

use std::cmp::Ordering;
use std::ops::Range;

use crate::error::{Result, SqlError};
use crate::expression::Expression;
use crate::logical::FrameBound;
use crate::plan::WindowPlan;
use crate::types::{Datum, comparison_kind};

use super::{Partition, Places};

/// How frames are determined.
pub(super) struct Frames<'w> {
    pub(super) plan: &'w WindowPlan,
    pub(super) places: &'w Places,
    pub(super) partition: &'w Partition,
}

/// The expression of a bound.
pub(super) fn expression(bound: &FrameBound) -> Option<&Expression> {
    match bound {
        FrameBound::Preceding(expression) | FrameBound::Following(expression) => Some(expression),
        _ => None,
    }
}

impl Frames<'_> {
    /// The frame of a row.
    pub(super) fn of(&self, row: usize) -> Result<Range<usize>> {
        let count = self.partition.rows.len();
        let frame = &self.plan.frame;
        let (start, end) = if frame.rows {
            let start = self.row_bound(row, &frame.start, self.places.start_bound)?;
            let end = self.row_bound(row, &frame.end, self.places.end_bound)?;
            (start, end.map(|end| end + 1))
        } else {
            let start = self.range_start(row, &frame.start)?;
            (Some(start as i128), Some(self.range_end(row, &frame.end)? as i128))
        };
        let clamp = |at: i128| at.clamp(0, count as i128) as usize;
        let start = start.map_or(0, clamp);
        let end = end.map_or(count, clamp);
        Ok(start..end.max(start))
    }

    /// The row that a bound of `ROWS` names; `None` for the partition's own bound.
    fn row_bound(&self, row: usize, bound: &FrameBound, place: usize) -> Result<Option<i128>> {
        let offset = || offset_of(&self.partition.rows.get(row)?[place]);
        Ok(match bound {
            FrameBound::UnboundedPreceding | FrameBound::UnboundedFollowing => None,
            FrameBound::CurrentRow => Some(row as i128),
            FrameBound::Preceding(_) => Some(row as i128 - offset()?),
            FrameBound::Following(_) => Some(row as i128 + offset()?),
        })
    }

    fn range_start(&self, row: usize, bound: &FrameBound) -> Result<usize> {
        Ok(match bound {
            FrameBound::UnboundedPreceding => 0,
            FrameBound::UnboundedFollowing => self.partition.rows.len(),
            FrameBound::CurrentRow => self.partition.peers[row].0 as usize,
            FrameBound::Preceding(limit) | FrameBound::Following(limit) => self
                .first_from(row, limit, self.places.start_bound, Ordering::is_lt)?
                .unwrap_or(self.partition.peers[row].0 as usize),
        })
    }

    fn range_end(&self, row: usize, bound: &FrameBound) -> Result<usize> {
        Ok(match bound {
            FrameBound::UnboundedPreceding => 0,
            FrameBound::UnboundedFollowing => self.partition.rows.len(),
            FrameBound::CurrentRow => self.partition.peers[row].1 as usize,
            FrameBound::Preceding(limit) | FrameBound::Following(limit) => self
                .first_from(row, limit, self.places.end_bound, Ordering::is_le)?
                .unwrap_or(self.partition.peers[row].1 as usize),
        })
    }

    /// The first row whose order value is not `before` the row's limit; `None` if the limit is
    /// NULL, as beside a NULL.
    fn first_from(
        &self,
        row: usize,
        limit: &Expression,
        place: usize,
        before: fn(Ordering) -> bool,
    ) -> Result<Option<usize>> {
        let Some(key) = self.plan.order.first() else { return Ok(None) };
        let rows = &self.partition.rows;
        let present = rows.get(row)?;
        let wanted = &present[place];
        if wanted.is_null() {
            return Ok(None);
        }
        let kind = comparison_kind(&key.expression.ty, &limit.ty, "RANGE")?;
        let is_before = |value: &Datum| {
            // NULL comes first, or last if the order is descending.
            let ordering = kind.compare(value, wanted).unwrap_or(Ordering::Less);
            before(if key.descending { ordering.reverse() } else { ordering })
        };
        let (mut low, mut high) = (0, rows.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match is_before(&rows.get(middle)?[self.places.order]) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(Some(low))
    }
}

fn offset_of(value: &Datum) -> Result<i128> {
    match value {
        Datum::Int(number) if *number >= 0 => Ok((*number).into()),
        Datum::UInt(number) => Ok((*number).into()),
        _ => Err(SqlError::new(
            3586,
            "Window '<unnamed window>': frame start or end is negative, NULL or of non-integral type",
        )),
    }
}
