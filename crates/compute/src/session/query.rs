//! Texts of clients: one statement or several, run one after the other.
//!
//! ```text
//!   text ─normalise─► key, literals ─► cached plan ───────────► run
//!                        └─miss─► parse, plan with literals as parameters ─► run
//! ```
//!
//! A text is normalised, parsed and planned once.

use firn_base::memory;
use firn_sql::error::{ErrorKind, SqlError};
use firn_sql::grammar;
use firn_wire::{Query, Replies};

use super::answers::{Answered, Answers, wire_error};
use super::arguments::{literal_value, write_key};
use super::handler::Handlers;
use super::lifted_text::LiftedText;
use super::planning::tell_conditions;
use super::prepared::PreparedStatements;
use super::rows::RowStatements;
use super::runner::StatementRunner;
use super::statement::Statements;
use super::statement_measurement::StatementMeasurement;
use super::text_buffers::TextBuffers;
use crate::status::count;

/// Buffers larger than this are not kept.
const KEPT_TEXT_BYTES: usize = 64 << 10;

/// Runs texts in a session.
pub(super) struct TextStatements<'s> {
    pub(super) runner: &'s mut StatementRunner,
    pub(super) buffers: &'s mut TextBuffers,
    pub(super) handlers: &'s mut Handlers,
    pub(super) prepared: &'s mut PreparedStatements,
}

impl TextStatements<'_> {
    /// Runs a text. See [`firn_wire::Session::query`].
    pub(super) fn run_query(&mut self, query: Query<'_>, replies: &mut Replies<'_>) -> Answered {
        let text = self.runner.settings.decode(query.text).map_err(wire_error)?;
        if !query.multi_statements {
            return self.run_text(&text, replies);
        }
        let mode = self.runner.settings.grammar_mode();
        let mut rest = grammar::split(&text, mode).peekable();
        if rest.peek().is_none() {
            return Err(wire_error(SqlError::new(1065, "Query was empty")));
        }
        while let Some(statement) = rest.next() {
            replies.set_more_results(rest.peek().is_some());
            self.run_text(statement, replies)?;
            self.runner.cutting.is_possible = false;
            if self.runner.control.ends_after_answer() {
                break;
            }
        }
        Ok(())
    }

    /// Runs one statement, counts and times it.
    fn run_text(&mut self, text: &str, replies: &mut Replies<'_>) -> Answered {
        self.handlers.yield_wanted(&*self.runner.transactions.metadata);
        let began = StatementMeasurement::of(self.runner).begin(text, None);
        let counted = self.runner.rights.count_use();
        let hinted = self.runner.begin_hints(text);
        let done = match counted.and_then(|()| self.runner.catch_up(text)) {
            Ok(()) => self.run_until_current(text, replies),
            Err(error) => Err(wire_error(error)),
        };
        self.runner.end_hints(hinted);
        StatementMeasurement::of(self.runner).end(began, text, None, &done);
        if text.len() > KEPT_TEXT_BYTES {
            self.buffers.shrink();
        }
        done
    }

    /// Runs a statement again as long as its plan was not valid any more when its tables were
    /// locked.
    fn run_until_current(&mut self, text: &str, replies: &mut Replies<'_>) -> Answered {
        loop {
            self.runner.plan_is_stale = false;
            let rows = RowStatements { runner: self.runner, buffers: self.buffers };
            let done = rows.try_rows(text, replies);
            let done = done.unwrap_or_else(|| self.run_one(text, replies));
            if done.is_ok() || !self.runner.plan_is_stale || self.runner.facts.is_cancelled() {
                return done;
            }
        }
    }

    /// Runs a statement by its text: with a plan from the cache, or else with a new one.
    fn run_one(&mut self, text: &str, replies: &mut Replies<'_>) -> Answered {
        let is_lifted = self.lift_literals(text);
        let recent = if is_lifted { self.run_recent(replies) } else { None };
        let answered = recent.unwrap_or_else(|| self.parse_and_run(text, is_lifted, replies));
        self.buffers.literals.clear();
        answered
    }

    /// Lifts the literals out of a text whose plan may be in the cache, and writes its key. False:
    /// the text is not one that is cached, or its literals have to be in its tree.
    fn lift_literals(&mut self, text: &str) -> bool {
        let (runner, buffers) = (&mut *self.runner, &mut *self.buffers);
        count(&runner.facts.status.texts_normalised);
        let mode = runner.settings.grammar_mode();
        if !grammar::normalise(text, mode, &mut buffers.normalised) {
            return false;
        }
        if runner.rights.refresh().is_err() || runner.rights.sandboxed || !runner.shares_plans() {
            return false;
        }
        // Without memory for them, the statement is planned in full, which reports the error.
        let lifted = |literal: &grammar::Literal| literal.range().len();
        let lifted_bytes = buffers.normalised.literals().iter().map(lifted).sum();
        let Ok(_promise) = memory::ask(lifted_bytes) else { return false };
        buffers.literals.clear();
        for literal in buffers.normalised.literals() {
            let collation = runner.settings.connection_collation;
            match literal_value(literal.value(text, mode), collation) {
                Some(literal) => buffers.literals.push(literal),
                // A text that is run directly cannot have placeholders.
                None => return false,
            }
        }
        let TextBuffers { key, normalised, literals, .. } = buffers;
        let schema = runner.state.connection.schema.as_deref();
        write_key(key, normalised.text(), schema, &runner.settings, literals);
        true
    }

    /// Runs the plan for the text's key, if there is one.
    fn run_recent(&mut self, replies: &mut Replies<'_>) -> Option<Answered> {
        let runner = &mut *self.runner;
        let TextBuffers { recent, key, literals, .. } = self.buffers;
        let plan = recent.find(key, runner.catalog.shared(), &runner.instance.plans);
        let plan = plan.filter(|plan| plan.plan.holds_for(&literals.values, &runner.evaluation))?;
        count(&runner.facts.status.plan_cache_hits);
        runner.state.diagnostics.clear();
        runner.tell_hints();
        tell_conditions(&runner.evaluation, plan);
        Some(runner.run_plan(plan, literals, replies))
    }

    /// Parses the statement and executes it. `is_lifted`: with its literals as parameters.
    fn parse_and_run(
        &mut self,
        text: &str,
        is_lifted: bool,
        replies: &mut Replies<'_>,
    ) -> Answered {
        let TextBuffers { normalised, literals, key, .. } = &*self.buffers;
        let lifted = if is_lifted { normalised.literals() } else { &[] };
        let parsed = match self.runner.parse(text, lifted) {
            Ok(parsed) => parsed,
            Err(error) if error.kind == ErrorKind::EmptyQuery && is_comment(text) => {
                return Answers::of(self.runner).ok(replies);
            }
            Err(error) => {
                self.runner.evaluation.take_conditions();
                self.runner.state.diagnostics.clear();
                return Err(self.runner.refused(error));
            }
        };
        let parameter_count = parsed.parameter_count as usize;
        // The grammar has left all of them in the tree if it needs one there.
        let is_lifted = is_lifted && literals.values.len() == parameter_count;
        if parameter_count > 0 && !is_lifted {
            self.runner.state.diagnostics.clear();
            return Err(self.runner.refused(SqlError::syntax("?", 1)));
        }
        let names_show_literals = parsed.names_show_parameters;
        let lifted = is_lifted.then_some(LiftedText { text, literals, key, names_show_literals });
        let (runner, handlers) = (&mut *self.runner, &mut *self.handlers);
        let prepared = Some(&mut *self.prepared);
        Statements { runner, handlers, prepared }.run_parsed(parsed, lifted, replies)
    }
}

/// Whether a text without a statement has at least a comment.
fn is_comment(text: &str) -> bool {
    let text = text.trim_start();
    !text.is_empty() && !text.starts_with(';')
}
