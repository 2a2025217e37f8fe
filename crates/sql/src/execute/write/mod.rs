//! Statements that write: `INSERT`, `REPLACE`, `UPDATE`, `DELETE`.
//!
//! ```text
//!   source rows ─► values (defaults, casts, generated, checks) ─► Transaction ─► foreign keys
//! ```
//!
//! Rules:
//! 1. a statement is all or nothing: a savepoint before its first write, to which a failure rolls
//!    back;
//! 2. a row's foreign keys are checked after the row was written, so that a row may refer to
//!    itself;
//! 3. with `IGNORE`, a row that fails is left out, with a warning; what it wrote is undone first.

mod assign;
mod batch;
mod change;
mod delete;
mod duplicate;
mod foreign_key;
mod insert;
mod numbers;
mod pending;
mod point;
mod reread;
mod row;
mod update;

use crate::error::{ErrorKind, Result, SqlError};

use super::error::from_rows;
use super::{Execution, Outcome};

pub(crate) use delete::delete;
pub(crate) use insert::insert;
pub(crate) use update::update;

/// Runs the work of a statement, and undoes it if it fails (rule 1).
pub(crate) fn atomically(
    execution: &mut Execution<'_>,
    statement: impl FnOnce(&mut Execution<'_>) -> Result<Outcome>,
) -> Result<Outcome> {
    let before = execution.data.transaction.savepoint();
    let done = statement(execution);
    if let Err(error) = &done
        && !error.ends_transaction()
    {
        execution.data.transaction.rollback_to(before).map_err(from_rows)?;
    }
    done
}

/// Whether `IGNORE` leaves out a row that failed in this way, instead of ending the statement.
fn is_ignorable(error: &SqlError) -> bool {
    matches!(error.kind, ErrorKind::DuplicateKey | ErrorKind::RowRefused)
}
