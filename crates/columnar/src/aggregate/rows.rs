//! All other functions: an accumulator of the row executor for each group.

use std::any::Any;
use std::sync::Arc;

use arrow::array::ArrayRef;
use firn_sql::execute::Reservation;
use firn_sql::execute::vectorised::Accumulator as RowAccumulator;
use firn_sql::expression::AggregateCall;
use firn_sql::types::Datum;

use super::Accumulator;
use crate::scope::Scope;
use crate::stop_reason::{Result, declined};
use crate::value::Physical;

/// An accumulator of the row executor for each group.
pub(super) struct Rows {
    call: Arc<AggregateCall>,
    /// Where the arguments end and the keys of the order begin.
    arguments: usize,
    layouts: Vec<Physical>,
    physical: Physical,
    scope: Arc<Scope>,
    groups: Vec<RowAccumulator>,
    held: Reservation,
}

impl Rows {
    pub(super) fn new(
        call: &Arc<AggregateCall>,
        arguments: usize,
        columns: &[(usize, Physical)],
        physical: Physical,
        scope: &Arc<Scope>,
    ) -> Rows {
        Rows {
            call: Arc::clone(call),
            arguments,
            layouts: columns.iter().map(|(_, physical)| *physical).collect(),
            physical,
            scope: Arc::clone(scope),
            groups: Vec::new(),
            held: scope.memory.reservation(),
        }
    }

    fn resize(&mut self, total: usize) {
        self.groups.resize_with(total, || RowAccumulator::new(&self.call));
    }
}

impl Accumulator for Rows {
    fn add(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.resize(total);
        let Rows { call, arguments, layouts, scope, groups: accumulators, held, .. } = self;
        let mut row: Vec<Datum> = Vec::with_capacity(values.len());
        scope.with_frame(|execution| {
            for (number, &group) in groups.iter().enumerate() {
                row.clear();
                let each = values.iter().zip(&*layouts);
                row.extend(each.map(|(column, layout)| layout.datum(&**column, number)));
                let (arguments, order) = row.split_at(*arguments);
                accumulators[group].add(call, arguments, order, held, execution)?;
            }
            Ok(())
        })
    }

    fn merge(&mut self, _: Box<dyn Any>, _: &[usize], _: usize) -> Result<()> {
        declined("an aggregate function cannot be put together from parts")
    }

    fn finish(&mut self, total: usize) -> Result<ArrayRef> {
        self.resize(total);
        let (call, groups) = (&self.call, std::mem::take(&mut self.groups));
        let values = self.scope.with_frame(|execution| {
            let context = execution.context;
            groups
                .into_iter()
                .map(|group| group.finish(call, context))
                .collect::<std::result::Result<Vec<_>, _>>()
        })?;
        let mut builder = self.physical.builder(total);
        for value in &values {
            builder.append(value)?;
        }
        Ok(builder.finish())
    }

    fn size_bytes(&self) -> usize {
        self.groups.capacity() * 128
    }
}
