//! The seam to an engine that works on columns: how it is called, and what it may use of the row
//! executor.
//!
//! ```text
//!   session ──run──► VectorisedEngine ──RowSource────► operators of the row executor, row by row
//!                          │         ──RowEvaluator──► expressions over rows of the engine's own
//!                          │         ──ScanWays──────► which keys a scan visits
//!                          └─ Declined: the row executor runs the statement instead
//! ```
//!
//! Whether an engine runs a statement is decided with its plan. While nothing of the result has
//! been sent, the engine may still decline, if it turns out to have no exact answer (a number
//! beyond its columns, a warning, an error of an expression that the row executor might never have
//! evaluated, too little memory): the row executor, which defines the semantics, then runs the
//! statement.

use firn_api::rows::TableRef;
use firn_format::key::KeyRange;

use crate::error::Result;
use crate::expression::{Expression, Slot};
use crate::plan::{Access, PlanNode, PreparedPlan, ScanPlan};
use crate::types::Datum;

use super::operator::{Input, build};
use super::{Execution, Outcome, ResultSink, access, limit};

pub use super::aggregate::Accumulator;
pub use super::detached_evaluation::RowEvaluator;

/// An engine that runs queries over columns.
pub trait VectorisedEngine: Send + Sync {
    /// Whether the engine can run this statement, as far as its plan says. Called when the plan is
    /// made.
    ///
    /// # Errors
    /// Why it does not.
    fn check(&self, plan: &PreparedPlan) -> std::result::Result<(), Unsupported>;

    /// Runs a query whose plan [`VectorisedEngine::check`] has accepted, in a transaction whose
    /// reads take no locks. Blocks.
    ///
    /// # Errors
    /// The error with which the statement ends.
    fn run(
        &self,
        plan: &PreparedPlan,
        execution: &mut Execution<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Attempt>;
}

/// Why a statement is left to the row executor, as text for `EXPLAIN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported(pub String);

/// The result of giving a statement to an engine.
#[derive(Debug)]
pub enum Attempt {
    Done(Outcome),
    /// Nothing was sent; the row executor has to run it.
    Declined(Unsupported),
}

/// A part of a plan that the row executor runs.
pub struct RowSource<'p> {
    root: Input<'p>,
}

impl<'p> RowSource<'p> {
    /// The operators of a part of a plan; call [`RowSource::open`] first.
    #[must_use]
    pub fn new(node: &'p PlanNode, execution: &Execution<'_>) -> RowSource<'p> {
        RowSource { root: build(node, execution) }
    }

    /// Begins with the first row; slots of the operators to the left are filled.
    ///
    /// # Errors
    /// Errors of the operators.
    pub fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.root.open(execution)
    }

    /// Fills the slots with the next row's values; false if there is none.
    ///
    /// # Errors
    /// Errors of the operators.
    pub fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        self.root.next(execution)
    }
}

impl Execution<'_> {
    #[must_use]
    pub fn value(&self, slot: Slot) -> &Datum {
        self.frame.get(slot)
    }

    pub fn put(&mut self, slot: Slot, value: Datum) {
        self.frame.set(slot, value);
    }

    /// The plan that is executed.
    #[must_use]
    pub fn plan(&self) -> &PreparedPlan {
        self.plan
    }

    /// The value of a `LIMIT` or `OFFSET`.
    ///
    /// # Errors
    /// 1210 if it is not a count.
    pub fn row_count(&mut self, expression: &Expression) -> Result<u64> {
        limit::row_count(expression, self)
    }
}

/// The keys that a scan visits, for the engine's own readers.
pub struct ScanWays {
    pub table: TableRef,
    /// Index and range, in the order of the scan; an index of `None` is the clustered one.
    pub ranges: Vec<(Option<usize>, KeyRange)>,
}

/// The ranges that a scan visits. `None`: it looks up single rows, or may visit a row twice.
///
/// # Errors
/// Errors of evaluating the ranges, and [`Execution`]'s refusal of a table that has changed.
pub fn scan_ways(plan: &ScanPlan, execution: &mut Execution<'_>) -> Result<Option<ScanWays>> {
    if matches!(plan.access, Access::Union(_)) {
        return Ok(None);
    }
    let table = execution.table(&plan.table, false)?;
    let mut steps = Vec::new();
    access::steps(plan, &table, execution, &mut steps)?;
    let range = |(index, step)| match step {
        access::Step::Range(range) => Some((index, range)),
        access::Step::Point(_) => None,
    };
    let ranges: Option<Vec<_>> = steps.into_iter().rev().map(range).collect();
    Ok(ranges.map(|ranges| ScanWays { table, ranges }))
}

/// All rows of a scan's table, whatever access path the plan uses.
///
/// # Errors
/// As [`scan_ways`].
pub fn full_scan(plan: &ScanPlan, execution: &mut Execution<'_>) -> Result<ScanWays> {
    let table = execution.table(&plan.table, false)?;
    Ok(ScanWays { table, ranges: vec![(None, KeyRange::all())] })
}
