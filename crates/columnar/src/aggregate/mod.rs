//! Aggregate functions over groups.
//!
//! ```text
//!   values of a batch, group of each row ──add──► accumulator of all groups ──finish──► a column
//!                                                  ▲ merge: that of another task
//! ```
//!
//! Types and rounding are MySQL's. A function without an accumulator here uses the row executor's,
//! one for each group ([`rows`]).

mod count;
mod extreme;
mod first;
mod rows;
mod sum;

use std::any::Any;
use std::sync::Arc;

use arrow::array::ArrayRef;
use firn_sql::expression::AggregateCall;
use firn_sql::functions::AggregateFunction;

use crate::scope::Scope;
use crate::stop_reason::Result;
use crate::value::Physical;

/// The state of a function for all groups.
pub(crate) trait Accumulator: Any + Send {
    /// Adds rows; there are `total` groups by now.
    fn add(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> Result<()>;
    /// Merges another accumulator of the same call, whose groups are `groups` here.
    fn merge(&mut self, other: Box<dyn Any>, groups: &[usize], total: usize) -> Result<()>;
    /// The values of all groups.
    fn finish(&mut self, total: usize) -> Result<ArrayRef>;
    /// Approximate memory.
    fn size_bytes(&self) -> usize;
}

/// A call of an aggregate function over columns.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) kind: CallKind,
    /// The columns of its arguments, and their layouts.
    pub(crate) arguments: Vec<(usize, Physical)>,
    /// The layout of the result.
    pub(crate) physical: Physical,
}

/// The function of a call.
#[derive(Debug, Clone)]
pub(crate) enum CallKind {
    /// The first value of each group.
    First,
    /// A function of SQL. The number is the count of its arguments; the keys of its order follow
    /// them.
    Function(Arc<AggregateCall>, usize, Arc<Scope>),
}

impl Call {
    pub(crate) fn accumulator(&self) -> Box<dyn Accumulator> {
        let (call, arguments, scope) = match &self.kind {
            CallKind::First => return Box::new(first::First::new(self.physical)),
            CallKind::Function(call, arguments, scope) => (call, *arguments, scope),
        };
        let is_plain = !call.distinct || self.is_extreme();
        let argument = self.arguments.first().map(|(_, physical)| *physical);
        match (call.function, argument) {
            (AggregateFunction::CountRows, _) => Box::new(count::Count::default()),
            (AggregateFunction::Count, _) if is_plain => Box::new(count::Count::default()),
            (AggregateFunction::AnyValue, Some(_)) => Box::new(first::First::new(self.physical)),
            (AggregateFunction::Sum | AggregateFunction::Average, Some(argument))
                if is_plain && sum::Sum::takes(argument, self.physical) =>
            {
                Box::new(sum::Sum::new(call, argument, self.physical))
            }
            (AggregateFunction::Min | AggregateFunction::Max, Some(argument))
                if argument == self.physical =>
            {
                let collation = call.arguments[0].ty.collation();
                let is_max = call.function == AggregateFunction::Max;
                extreme::accumulator(argument, is_max, collation)
            }
            _ => Box::new(rows::Rows::new(call, arguments, &self.arguments, self.physical, scope)),
        }
    }

    /// Whether the groups of several tasks may be merged afterwards.
    pub(crate) fn can_merge(&self) -> bool {
        let CallKind::Function(call, ..) = &self.kind else { return true };
        let is_double = |(_, physical): &(usize, Physical)| {
            matches!(physical, Physical::Double | Physical::Bytes)
        };
        match call.function {
            AggregateFunction::CountRows | AggregateFunction::AnyValue => true,
            AggregateFunction::Count => !call.distinct,
            // Sums of doubles depend on their order.
            AggregateFunction::Sum | AggregateFunction::Average => {
                !call.distinct && !self.arguments.iter().any(is_double)
            }
            AggregateFunction::Min | AggregateFunction::Max => {
                self.arguments.first().is_some_and(|(_, physical)| *physical == self.physical)
            }
            _ => false,
        }
    }

    /// Whether the result does not depend on the order of rows.
    pub(crate) fn ignores_order(&self) -> bool {
        let CallKind::Function(call, ..) = &self.kind else { return true };
        let is_count = call.function == AggregateFunction::Count;
        is_count || self.can_merge()
    }

    fn is_extreme(&self) -> bool {
        let CallKind::Function(call, ..) = &self.kind else { return false };
        matches!(call.function, AggregateFunction::Min | AggregateFunction::Max)
    }
}

/// The other accumulator, which is of the same kind.
fn same<T: 'static>(other: Box<dyn Any>) -> Result<Box<T>> {
    other.downcast::<T>().map_err(|_| {
        crate::stop_reason::Stop::Declined("accumulators differ between tasks".to_owned())
    })
}
