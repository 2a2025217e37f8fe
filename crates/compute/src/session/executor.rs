//! Which executor runs a statement: the row executor, or the vectorised engine (002 §VI-B).
//!
//! ```text
//!   hint ─► firn_executor ─► cost against firn_analytic_cost ─► has the engine operators for it?
//! ```
//!
//! The choice is made with the plan and is part of it: the settings that it depends on are in the
//! plan cache's key, and `EXPLAIN` shows it with its reason. Two facts are known only when the
//! statement runs, and leave it to the row executor before anything is read: the transaction's
//! reads lock, or each operator's work is counted.
//!
//! The engine may still give a statement up before anything was sent; the reasons are few
//! (`docs/decisions/2026-11-24-the-plan-names-its-executor.md`).

use firn_api::rows::IsolationLevel;
use firn_sql::error::Result;
use firn_sql::execute::vectorised::{Attempt, Unsupported};
use firn_sql::execute::{self, Execution, Outcome, ResultSink};
use firn_sql::plan::{Executor, PreparedPlan, StatementPlan};

use super::settings::Settings;
use crate::instance::Instance;
use crate::plan_cache::ChosenExecutor;
use crate::status::{Status, count};

/// Chooses the executor of a plan that was just made.
pub(super) fn choose(
    plan: &PreparedPlan,
    instance: &Instance,
    settings: &Settings,
) -> ChosenExecutor {
    let row = |why: &str| ChosenExecutor::Row(Unsupported(why.to_owned()));
    let Some(engine) = &instance.vectorised else { return row("there is no vectorised engine") };
    if !matches!(plan.statement, StatementPlan::Query(_)) {
        return row("it is no query");
    }
    match plan.executor.or(settings.executor) {
        Some(Executor::Row) => return row("it was asked for"),
        Some(Executor::Vectorised) => {}
        None if plan.cost < settings.analytic_cost as f64 => {
            return row("its cost is below firn_analytic_cost");
        }
        None => {}
    }
    match engine.check(plan) {
        Ok(()) => ChosenExecutor::Vectorised,
        Err(why) => ChosenExecutor::Row(why),
    }
}

/// The remark of `EXPLAIN` about it.
pub(super) fn explained(chosen: &ChosenExecutor) -> String {
    match chosen {
        ChosenExecutor::Vectorised => "Executor: vectorised".to_owned(),
        ChosenExecutor::Row(why) => format!("Executor: row ({})", why.0),
    }
}

/// Runs a statement with the executor of its plan. Blocks.
///
/// # Errors
/// As [`execute::run`].
pub(super) fn run(
    plan: &PreparedPlan,
    chosen: &ChosenExecutor,
    instance: &Instance,
    status: &Status,
    execution: &mut Execution<'_>,
    sink: &mut dyn ResultSink,
) -> Result<Outcome> {
    let is_vectorised = matches!(chosen, ChosenExecutor::Vectorised)
        && execution.measures.operators.is_none()
        && execution.data.transaction.isolation() != IsolationLevel::Serializable;
    if let Some(engine) = instance.vectorised.as_ref().filter(|_| is_vectorised) {
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
