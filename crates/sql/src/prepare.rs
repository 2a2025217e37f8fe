//! From statements to plans.
//!
//! ```text
//!   Statement ──bind──► BoundStatement ──plan──► PreparedPlan
//! ```

use crate::bind::bind_statement;
use crate::error::Result;
use crate::grammar::ast::Statement;
use crate::logical::PlanContext;
use crate::plan::{PreparedPlan, plan_bound};

/// Plans a statement that reads or writes rows.
///
/// # Errors
/// MySQL's errors for names, types and forms; 1235 for other statements and for unsupported
/// features.
pub fn plan_statement(statement: &Statement, context: &PlanContext<'_>) -> Result<PreparedPlan> {
    plan_bound(bind_statement(statement, context)?, context)
}
