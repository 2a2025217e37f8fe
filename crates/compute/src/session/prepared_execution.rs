//! Executions of prepared statements.
//!
//! ```text
//!   values ─► types ─┬─ as last time, nothing has changed ─► the same plan
//!                    └─ otherwise ─► plan cache ─► a new plan
//! ```

use std::sync::Arc;

use firn_sql::error::{Result, SqlError};
use firn_sql::grammar;
use firn_sql::grammar::ast::Statement;
use firn_wire::Replies;

use super::answers::{Answered, wire_error};
use super::arguments::{Arguments, write_key, write_tag};
use super::handler::Handlers;
use super::parameters::written_value;
use super::prepared::PreparedStatement;
use super::runner::StatementRunner;
use super::statement::Statements;
use super::statement_measurement::StatementMeasurement;
use crate::plan_cache::{CachedPlan, LONGEST_KEY_BYTES};
use crate::status::count;

/// A plan and the conditions under which it is valid.
pub(super) struct LastPlan {
    plan: Arc<CachedPlan>,
    /// The kinds of the parameters' types.
    tags: Vec<u8>,
    /// The version of the session's temporary tables.
    temporary_version: u64,
    /// See [`StatementRunner::epoch`].
    epoch: u64,
}

/// Memory for looking up plans, which executions reuse.
#[derive(Default)]
pub(super) struct PlanBuffers {
    key: Vec<u8>,
    tags: Vec<u8>,
}

/// One execution of a prepared statement.
pub(super) struct PreparedExecution<'s> {
    pub(super) runner: &'s mut StatementRunner,
    pub(super) handlers: &'s mut Handlers,
    pub(super) prepared: &'s mut PreparedStatement,
    pub(super) arguments: &'s Arguments,
    pub(super) buffers: &'s mut PlanBuffers,
}

impl PreparedExecution<'_> {
    /// Runs the statement as a whole command: counts and times it.
    pub(super) fn run_measured(&mut self, replies: &mut Replies<'_>) -> Answered {
        self.handlers.yield_wanted(&*self.runner.transactions.metadata);
        let began =
            StatementMeasurement::of(self.runner).begin(&self.prepared.text, Some(self.arguments));
        let hinted = self.prepared.begin_hints(self.runner);
        let done = match self.runner.catch_up(&self.prepared.text) {
            Ok(()) => self.run_until_current(replies),
            Err(error) => Err(self.runner.refused(error)),
        };
        self.runner.end_hints(hinted);
        let text = &self.prepared.text;
        StatementMeasurement::of(self.runner).end(began, text, Some(self.arguments), &done);
        done
    }

    /// Runs the statement again as long as its plan was not valid any more when its tables were
    /// locked.
    fn run_until_current(&mut self, replies: &mut Replies<'_>) -> Answered {
        loop {
            self.runner.plan_is_stale = false;
            self.runner.rights.count_use().map_err(wire_error)?;
            let done = self.run(replies);
            if done.is_ok() || !self.runner.plan_is_stale || self.runner.facts.is_cancelled() {
                return done;
            }
            self.prepared.last = None;
        }
    }

    /// Runs the statement, and sends the answer.
    pub(super) fn run(&mut self, replies: &mut Replies<'_>) -> Answered {
        if self.arguments.values.len() != self.prepared.parameter_count {
            return Err(wire_error(SqlError::new(1210, "Incorrect arguments to EXECUTE")));
        }
        if self.prepared.is_written_out {
            return self.run_written_out(replies);
        }
        if !takes_parameters(&self.prepared.statement) {
            let statement = &self.prepared.statement;
            let handlers = &mut *self.handlers;
            let long_texts = self.prepared.long_texts.clone();
            return self.runner.with_long_texts(long_texts, |runner| {
                Statements { runner, handlers, prepared: None }.run(statement, None, replies)
            });
        }
        self.runner.state.diagnostics.clear();
        self.runner.tell_hints();
        let found = self.runner.rights.refresh().and_then(|()| self.find_last());
        let last = match found {
            Ok(()) => self.prepared.last.as_ref().expect("just found"),
            Err(error) => return Err(self.runner.refused(error)),
        };
        let answered = self.runner.run_plan(&last.plan, self.arguments, replies);
        if !last.plan.plan.is_cacheable {
            self.prepared.last = None;
        }
        answered
    }

    /// Runs a statement as a text with the values in place of its parameters.
    fn run_written_out(&mut self, replies: &mut Replies<'_>) -> Answered {
        let text = &*self.prepared.text;
        let mode = self.runner.settings.grammar_mode();
        let places = grammar::placeholders(text, mode).places;
        let (mut whole, mut at) = (String::with_capacity(text.len()), 0);
        let values = self.arguments.values.iter().zip(&self.arguments.types);
        for (place, (value, ty)) in places.iter().zip(values) {
            whole.push_str(&text[at..place.start]);
            whole.push_str(&written_value(value, ty, !mode.no_backslash_escapes));
            at = place.end;
        }
        whole.push_str(&text[at..]);
        match self.runner.parse(&whole, &[]) {
            Ok(parsed) => {
                let (runner, handlers) = (&mut *self.runner, &mut *self.handlers);
                Statements { runner, handlers, prepared: None }.run_parsed(parsed, None, replies)
            }
            Err(error) => Err(self.runner.refused(error)),
        }
    }

    /// Makes the plan of the last execution one for this execution, if it is not.
    fn find_last(&mut self) -> Result<()> {
        let runner = &*self.runner;
        let temporary_version = runner.catalog.temporary_version();
        let tags = &mut self.buffers.tags;
        tags.clear();
        self.arguments.types.iter().for_each(|ty| write_tag(&ty.kind, tags));
        let holds = |last: &LastPlan| {
            last.epoch == runner.epoch
                && last.temporary_version == temporary_version
                && last.tags == *tags
                && last.plan.holds(runner.catalog.shared(), &runner.instance.plans)
                && last.plan.plan.holds_for(&self.arguments.values, &runner.evaluation)
        };
        if self.prepared.last.as_ref().is_some_and(holds) {
            return Ok(());
        }
        let epoch = runner.epoch;
        let plan = self.find_plan()?;
        let tags = self.buffers.tags.clone();
        self.prepared.last = Some(LastPlan { plan, tags, temporary_version, epoch });
        Ok(())
    }

    fn find_plan(&mut self) -> Result<Arc<CachedPlan>> {
        let text_bytes = self.prepared.text.len();
        let may_share = self.runner.shares_plans() && text_bytes <= LONGEST_KEY_BYTES;
        if may_share {
            self.write_key();
            let runner = &*self.runner;
            let found = runner.instance.plans.get(&self.buffers.key, runner.catalog.shared());
            let holds = |plan: &Arc<CachedPlan>| {
                plan.plan.holds_for(&self.arguments.values, &runner.evaluation)
            };
            if let Some(plan) = found.filter(holds) {
                count(&runner.facts.status.plan_cache_hits);
                return Ok(plan);
            }
        }
        count(&self.runner.facts.status.plan_cache_misses);
        let (statement, arguments) = (&self.prepared.statement, self.arguments);
        let long_texts = self.prepared.long_texts.clone();
        let planned =
            self.runner.with_long_texts(long_texts, |runner| runner.plan(statement, arguments));
        let plan = Arc::new(planned?);
        if may_share && plan.plan.is_cacheable {
            self.runner.instance.plans.put(&self.buffers.key, Arc::clone(&plan));
        }
        Ok(plan)
    }

    /// Writes the statement's key in the plan cache. An unnormalised text has a mark before it.
    fn write_key(&mut self) {
        let marked;
        let text = match &self.prepared.key_text {
            Some(text) => text,
            None => {
                marked = format!("\u{1}{}", self.prepared.text);
                marked.as_str()
            }
        };
        let schema = self.runner.state.connection.schema.as_deref();
        write_key(&mut self.buffers.key, text, schema, &self.runner.settings, self.arguments);
    }
}

/// Whether the statement is planned, and so can have parameters.
pub(super) fn takes_parameters(statement: &Statement) -> bool {
    match statement {
        Statement::Select(select) => select.into.is_none(),
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => true,
        _ => false,
    }
}
