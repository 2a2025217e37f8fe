//! `COUNT`.

use std::any::Any;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array};

use super::{Accumulator, same};
use crate::stop_reason::Result;

/// Counts the rows that have no NULL among the arguments.
#[derive(Default)]
pub(super) struct Count {
    counts: Vec<i64>,
}

impl Accumulator for Count {
    fn add(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.counts.resize(total, 0);
        if values.iter().all(|column| column.null_count() == 0) {
            groups.iter().for_each(|&group| self.counts[group] += 1);
            return Ok(());
        }
        for (row, &group) in groups.iter().enumerate() {
            self.counts[group] += i64::from(values.iter().all(|column| column.is_valid(row)));
        }
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn Any>, groups: &[usize], total: usize) -> Result<()> {
        self.counts.resize(total, 0);
        let other = same::<Count>(other)?;
        for (count, &group) in other.counts.iter().zip(groups) {
            self.counts[group] += count;
        }
        Ok(())
    }

    fn finish(&mut self, total: usize) -> Result<ArrayRef> {
        self.counts.resize(total, 0);
        Ok(Arc::new(Int64Array::from(std::mem::take(&mut self.counts))))
    }

    fn size_bytes(&self) -> usize {
        self.counts.capacity() * 8
    }
}
