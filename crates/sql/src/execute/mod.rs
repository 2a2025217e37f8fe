//! The row executor: runs a plan in a transaction, row by row.
//!
//! ```text
//!   PreparedPlan ──run──► Query   operators ─► expressions ─► ResultSink (operator, scan, join, …)
//!                   │         └─ bare columns of one table: bytes ─► sink  (direct, short_sort)
//!                   └───► Insert, Update, Delete ─► Transaction                  (write)
//! ```
//!
//! Rules:
//! * a statement that fails leaves nothing behind: writes are rolled back to a savepoint, unless
//!   the node has ended the transaction;
//! * an operator reserves the memory it keeps in the statement's [`MemoryBudget`]; beyond that,
//!   rows go to disk or the statement ends with error 1041;
//! * each loop over rows checks the flag that cancels the statement (1317);
//! * no lock or latch of this process is held here: the node blocks inside its own calls.

mod access;
mod aggregate;
mod background_free;
mod common_table;
mod counters;
mod cursor;
mod data_access;
mod definition;
mod derived;
mod detached_evaluation;
mod distinct;
pub mod error;
mod execution;
mod expression_frame;
mod frame;
mod interruption;
mod join;
pub(crate) mod json_table;
mod limit;
mod literal_rows;
mod memory;
mod operator;
mod partition;
mod row_key;
mod row_operators;
mod scan;
mod seen;
mod set_operation;
mod sink;
mod sort;
mod spill;
mod stored_row_results;
mod stored_row_sort;
pub(crate) mod subquery;
#[cfg(test)]
mod tests;
pub(crate) mod values;
pub mod vectorised;
mod virtual_scan;
mod window;
mod workspace;
mod write;

use crate::error::Result;
use crate::plan::{NodeKind, PreparedPlan, QueryPlan, StatementPlan};
use crate::types::Datum;

pub use background_free::free;
pub use counters::{Measures, RowCounts};
pub use data_access::DataAccess;
pub use definition::DefinitionBinder;
pub use detached_evaluation::DetachedExpression;
pub use execution::{Execution, ExecutionContext, Limits, SessionState};
pub use firn_sql_evaluation::{Evaluate, Operand};
pub use frame::Frame;
pub use interruption::Interruption;
pub use literal_rows::GivenRows;
pub use memory::{DEFAULT_LIMIT_BYTES, MemoryBudget, Reservation};
pub use sink::ResultSink;
pub use workspace::{Scratch, Workspace};

/// The outcome of a statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rows that were written; for a query, rows returned.
    pub affected: u64,
    /// Rows that an `UPDATE` matched, changed or not (for `CLIENT_FOUND_ROWS`).
    pub found: u64,
    /// The OK packet's `AUTO_INCREMENT` value: 0 if there is none.
    pub last_insert_id: u64,
    /// The result of `LAST_INSERT_ID()` from now on; `None`: unchanged.
    pub session_last_insert_id: Option<u64>,
    /// Conditions left.
    pub warnings: u64,
    /// `Records: 3  Duplicates: 0  Warnings: 0`; empty if there is nothing to say.
    pub info: String,
}

/// Runs a plan. Rows of a query go to `sink`; a statement that writes does not call it. Blocks.
///
/// # Errors
/// Errors of the evaluation and the node. The statement has then left nothing behind, or the node
/// has ended the whole transaction (1213).
pub fn run(
    plan: &PreparedPlan,
    execution: &mut Execution<'_>,
    sink: &mut dyn ResultSink,
) -> Result<Outcome> {
    let mut outcome = match &plan.statement {
        StatementPlan::Query(query) => run_query(query, execution, sink)?,
        StatementPlan::Insert(insert) => {
            write::atomically(execution, |execution| write::insert(insert, execution))?
        }
        StatementPlan::Update(update) => {
            write::atomically(execution, |execution| write::update(update, execution))?
        }
        StatementPlan::Delete(delete) => {
            write::atomically(execution, |execution| write::delete(delete, execution))?
        }
    };
    plan.statement.written().for_each(|table| table.statistics.note_written(outcome.affected));
    outcome.warnings = execution.context.warning_count();
    Ok(outcome)
}

/// Answers a query's rows.
fn run_query(
    query: &QueryPlan,
    execution: &mut Execution<'_>,
    sink: &mut dyn ResultSink,
) -> Result<Outcome> {
    sink.columns(&query.columns)?;
    let given = match run_directly(query, execution, sink)? {
        Some(given) => given,
        None => run_operators(query, execution, sink)?,
    };
    execution.found_rows.get_or_insert(given);
    Ok(Outcome { affected: given, found: given, ..Outcome::default() })
}

/// Returns the rows of a query without decoding them into values; `None` if they must be decoded.
fn run_directly(
    query: &QueryPlan,
    execution: &mut Execution<'_>,
    sink: &mut dyn ResultSink,
) -> Result<Option<u64>> {
    if execution.measures.operators.is_some() {
        return Ok(None);
    }
    if let Some(direct) = stored_row_results::direct(query) {
        return direct.run(execution, sink).map(Some);
    }
    match stored_row_sort::short_sort(query) {
        Some(sort) => sort.run(execution, sink),
        None => Ok(None),
    }
}

fn run_operators(
    query: &QueryPlan,
    execution: &mut Execution<'_>,
    sink: &mut dyn ResultSink,
) -> Result<u64> {
    let is_limited = matches!(query.root.kind, NodeKind::Limit { .. });
    let limit = if is_limited { u64::MAX } else { execution.limits.select_rows };
    let mut root = operator::build(&query.root, execution);
    root.open(execution)?;
    let mut given = 0;
    while given < limit && root.next(execution)? {
        execution.check_cancelled()?;
        sink.begin_row()?;
        for column in &query.columns {
            let operand = column.value.operand(execution)?;
            let value = column.value.of(&operand, execution)?;
            match column.value.fits_as_text(value, execution.context)? {
                true => sink.datum(value, &column.value.ty)?,
                false => sink.datum(&Datum::Null, &column.value.ty)?,
            }
        }
        sink.end_row()?;
        given += 1;
    }
    Ok(given)
}
