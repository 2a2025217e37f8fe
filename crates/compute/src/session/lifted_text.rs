//! Statements whose texts were parsed with their literals as parameters, and those without.
//!
//! The literals are parameters of the plan even if the plan cannot be kept for other literals. Only
//! a statement that was refused is parsed and planned once more, as written: its error speaks of
//! the literals.

use std::sync::Arc;

use firn_sql::error::{ErrorKind, Result, SqlError};
use firn_sql::grammar::ast::Statement;
use firn_wire::Replies;

use super::answers::Answered;
use super::arguments::Arguments;
use super::planning::{ParameterSource, tell_conditions};
use super::runner::StatementRunner;
use super::select_into::SelectIntoStatements;
use crate::plan_cache::CachedPlan;
use crate::status::count;

/// A text that was parsed with its literals as parameters.
#[derive(Clone, Copy)]
pub(super) struct LiftedText<'t> {
    pub(super) text: &'t str,
    pub(super) literals: &'t Arguments,
    /// The key of its plan in the cache.
    pub(super) key: &'t [u8],
    /// Whether a column's name has a literal's text: the plan is not one for other literals.
    pub(super) names_show_literals: bool,
}

/// Plans and runs a statement that was just parsed.
pub(super) fn run_planned(
    runner: &mut StatementRunner,
    statement: &Statement,
    lifted: Option<LiftedText<'_>>,
    replies: &mut Replies<'_>,
) -> Answered {
    count(&runner.facts.status.plan_cache_misses);
    let none = Arguments::default();
    let planned = match lifted {
        Some(lifted) => plan_lifted(runner, statement, lifted, &none),
        None => runner.plan(statement, &none).map(|plan| (Arc::new(plan), &none)),
    };
    let (plan, arguments) = match planned {
        Ok(planned) => planned,
        Err(error) => return Err(runner.refused(error)),
    };
    tell_conditions(&runner.evaluation, &plan);
    match statement {
        Statement::Select(select) if select.into.is_some() => {
            SelectIntoStatements { runner }.run(select, &plan, arguments, replies)
        }
        _ => runner.run_plan(&plan, arguments, replies),
    }
}

/// A plan for a statement and its literals, cached for the next time if possible. With `none` if
/// the statement was planned as written.
fn plan_lifted<'t>(
    runner: &mut StatementRunner,
    statement: &Statement,
    lifted: LiftedText<'t>,
    none: &'t Arguments,
) -> Result<(Arc<CachedPlan>, &'t Arguments)> {
    let LiftedText { text, literals, key, names_show_literals } = lifted;
    let plan = match runner.plan_described(statement, literals, ParameterSource::Literals) {
        Ok((plan, _)) => Arc::new(plan),
        Err(error) if literals.values.is_empty() || is_limit(&error) => return Err(error),
        Err(_) => return Ok((plan_as_written(runner, text)?, none)),
    };
    if plan.plan.is_cacheable && !names_show_literals {
        runner.instance.plans.put(key, Arc::clone(&plan));
    }
    Ok((plan, literals))
}

/// Plans a statement that was refused with its literals as parameters. The error should speak of
/// the literals, and a few forms take literals only.
#[cold]
fn plan_as_written(runner: &mut StatementRunner, text: &str) -> Result<Arc<CachedPlan>> {
    let parsed = runner.parse(text, &[])?;
    runner.long_texts = parsed.long_texts;
    Ok(Arc::new(runner.plan(&parsed.statement, &Arguments::default())?))
}

/// Whether a statement was cancelled or exceeds its limits: planning it again would cost as much.
fn is_limit(error: &SqlError) -> bool {
    use ErrorKind::{Interrupted, OutOfMemory, TooComplex};
    matches!(error.kind, OutOfMemory | Interrupted | TooComplex)
}
