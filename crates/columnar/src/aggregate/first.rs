//! The first value of each group.

use std::any::Any;

use arrow::array::{Array, ArrayRef};
use arrow::compute;

use super::{Accumulator, same};
use crate::stop_reason::Result;
use crate::value::Physical;

/// Keeps the first values as columns: those of one batch together.
pub(super) struct First {
    physical: Physical,
    parts: Vec<ArrayRef>,
    groups: usize,
}

impl First {
    pub(super) fn new(physical: Physical) -> First {
        First { physical, parts: Vec::new(), groups: 0 }
    }

    /// Appends the values of the rows that begin groups; groups are numbered as they appear.
    fn append(&mut self, column: &ArrayRef, groups: &[usize], total: usize) -> Result<()> {
        if total == self.groups {
            return Ok(());
        }
        let mut rows = Vec::with_capacity(total - self.groups);
        for (row, &group) in groups.iter().enumerate() {
            if group == self.groups {
                rows.push(row as u32);
                self.groups += 1;
            }
        }
        self.parts.push(compute::take(column, &arrow::array::UInt32Array::from(rows), None)?);
        Ok(())
    }
}

impl Accumulator for First {
    fn add(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.append(&values[0], groups, total)
    }

    fn merge(&mut self, other: Box<dyn Any>, groups: &[usize], total: usize) -> Result<()> {
        let mut other = same::<First>(other)?;
        let column = other.finish(groups.len())?;
        self.append(&column, groups, total)
    }

    fn finish(&mut self, total: usize) -> Result<ArrayRef> {
        let empty = self.physical.builder(0).finish();
        let mut parts: Vec<&dyn Array> = self.parts.iter().map(|part| &**part).collect();
        parts.push(&*empty);
        let column = compute::concat(&parts)?;
        // Without `GROUP BY` there is one group even without rows.
        if column.len() < total {
            let nulls =
                self.physical.repeated(&firn_sql::types::Datum::Null, total - column.len())?;
            return Ok(compute::concat(&[&*column, &*nulls])?);
        }
        Ok(column)
    }

    fn size_bytes(&self) -> usize {
        self.parts.iter().map(|part| part.get_array_memory_size()).sum()
    }
}
