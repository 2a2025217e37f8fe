//! Which executor runs a statement: the row executor, or the vectorised engine (002 §VI-B).
//!
//! ```text
//!   hint ─► firn_executor ─► cost against firn_analytic_cost
//!     and the engine has a way to run it; otherwise the row executor
//! ```
//!
//! The row executor runs statements that write or lock. It also runs whatever the engine begins and
//! gives up before anything was sent.

use firn_sql::error::Result;
use firn_sql::execute::vectorised::{Attempt, Unsupported, VectorisedEngine};
use firn_sql::execute::{self, Execution, Outcome, ResultSink};
use firn_sql::plan::{Executor, PreparedPlan, StatementPlan};

use super::settings::Settings;
use crate::instance::Instance;
use crate::status::{Status, count};

/// The engine for a statement.
///
/// # Errors
/// Why the row executor runs it.
pub(super) fn engine_for<'i>(
    plan: &PreparedPlan,
    instance: &'i Instance,
    settings: &Settings,
) -> std::result::Result<&'i dyn VectorisedEngine, Unsupported> {
    let left = |why: &str| Err(Unsupported(why.to_owned()));
    let Some(engine) = &instance.vectorised else { return left("there is no vectorised engine") };
    if !matches!(plan.statement, StatementPlan::Query(_)) {
        return left("it is no query");
    }
    match plan.executor.or(settings.executor) {
        Some(Executor::Row) => return left("it was asked for"),
        Some(Executor::Vectorised) => {}
        None if plan.cost < settings.analytic_cost as f64 => {
            return left("its cost is below firn_analytic_cost");
        }
        None => {}
    }
    engine.check(plan)?;
    Ok(&**engine)
}

/// The remark of `EXPLAIN` about it.
pub(super) fn explained(plan: &PreparedPlan, instance: &Instance, settings: &Settings) -> String {
    match engine_for(plan, instance, settings) {
        Ok(_) => "Executor: vectorised".to_owned(),
        Err(why) => format!("Executor: row ({})", why.0),
    }
}

/// Runs a statement. Blocks.
///
/// # Errors
/// As [`execute::run`].
pub(super) fn run(
    plan: &PreparedPlan,
    instance: &Instance,
    settings: &Settings,
    status: &Status,
    execution: &mut Execution<'_>,
    sink: &mut dyn ResultSink,
) -> Result<Outcome> {
    // Only the row executor counts the work of each operator.
    if execution.counters.is_none()
        && let Ok(engine) = engine_for(plan, instance, settings)
    {
        let told = execution.context.warning_count();
        match engine.run(plan, execution, sink)? {
            Attempt::Done(outcome) => {
                count(&status.vectorised_queries);
                return Ok(outcome);
            }
            Attempt::Declined(why) => {
                tracing::debug!(why = why.0, "a statement is left to the row executor");
                count(&status.vectorised_declined);
                execution.context.forget_conditions_after(told);
            }
        }
    }
    execute::run(plan, execution, sink)
}
