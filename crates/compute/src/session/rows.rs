//! `INSERT … VALUES` of many rows of literals, as `mysqldump` writes them: one plan, whatever the
//! number of rows, which is run with the values from the text.

use firn_base::memory;
use firn_sql::error::Result;
use firn_sql::execute::GivenRows;
use firn_sql::grammar::{self, LiteralRows, LiteralValue};
use firn_sql::plan::StatementPlan;
use firn_sql::types::{Datum, EvaluationContext, SqlType};
use firn_wire::Replies;
use std::sync::Arc;

use super::answers::{Answered, Answers};
use super::arguments::{Arguments, literal_value, write_key};
use super::runner::StatementRunner;
use super::sinks::NoRows;
use super::text_buffers::TextBuffers;
use crate::plan_cache::CachedPlan;
use crate::status::count;
use firn_format::value::CollationId;

/// Shorter texts have few rows: their plans are found by the whole text.
const SHORTEST_TEXT_BYTES: usize = 512;

/// Runs such statements in a session.
pub(super) struct RowStatements<'s> {
    pub(super) runner: &'s mut StatementRunner,
    pub(super) buffers: &'s mut TextBuffers,
}

impl RowStatements<'_> {
    /// Runs a text that inserts rows of literals. `None`: it does not, or has to be parsed as a
    /// whole.
    pub(super) fn try_rows(self, text: &str, replies: &mut Replies<'_>) -> Option<Answered> {
        if text.len() < SHORTEST_TEXT_BYTES {
            return None;
        }
        let RowStatements { runner, buffers } = self;
        let TextBuffers { literal_rows, key, .. } = buffers;
        let mode = runner.settings.grammar_mode();
        let answered = match grammar::literal_rows(text, mode, literal_rows) {
            true => run_rows(runner, key, text, literal_rows, replies),
            false => None,
        };
        literal_rows.shrink();
        answered
    }
}

fn run_rows(
    runner: &mut StatementRunner,
    key: &mut Vec<u8>,
    text: &str,
    rows: &LiteralRows,
    replies: &mut Replies<'_>,
) -> Option<Answered> {
    if runner.rights.refresh().is_err() || runner.rights.sandboxed || !runner.shares_plans() {
        return None;
    }
    let plan = rows_plan(runner, key, text, rows)?;
    let collation = runner.settings.connection_collation;
    let mode = runner.settings.grammar_mode();
    let mut given = TextRows { text, mode, rows, collation, next: 0, row: Vec::new() };
    runner.state.diagnostics.clear();
    runner.tell_hints();
    Some(run_given(runner, &plan, &mut given, replies))
}

/// The plan for one such row; `None` if there is none, which planning the whole statement will
/// report.
fn rows_plan(
    runner: &StatementRunner,
    key: &mut Vec<u8>,
    text: &str,
    rows: &LiteralRows,
) -> Option<Arc<CachedPlan>> {
    let mut template = String::new();
    rows.template(text, &mut template);
    let arguments = Arguments {
        values: vec![Datum::Null; rows.columns()],
        types: vec![SqlType::null(); rows.columns()],
    };
    template.push('\u{1}');
    let schema = runner.state.connection.schema.as_deref();
    write_key(key, &template, schema, &runner.settings, &arguments);
    template.pop();
    let plan = match runner.instance.plans.get(key, runner.catalog.shared()) {
        Some(plan) => {
            count(&runner.facts.status.plan_cache_hits);
            plan
        }
        None => make_rows_plan(runner, key, &template, &arguments)?,
    };
    let StatementPlan::Insert(insert) = &plan.plan.statement else { return None };
    let is_number = |column: usize| {
        let model =
            insert.columns.get(column).and_then(|ordinal| insert.table.by_ordinal(*ordinal));
        model.is_none_or(|model| !model.ty.kind.is_text() && !model.ty.kind.is_binary())
    };
    let depends = |column: usize| rows.has_short_hex(column) && is_number(column);
    (insert.takes_rows() && !(0..rows.columns()).any(depends)).then_some(plan)
}

fn make_rows_plan(
    runner: &StatementRunner,
    key: &[u8],
    template: &str,
    arguments: &Arguments,
) -> Option<Arc<CachedPlan>> {
    let parsed = runner.parse(template, &[]).ok()?;
    let plan = Arc::new(runner.plan(&parsed.statement, arguments).ok()?);
    count(&runner.facts.status.plan_cache_misses);
    if plan.plan.is_cacheable {
        runner.instance.plans.put(key, Arc::clone(&plan));
    }
    Some(plan)
}

/// Runs a plan that inserts given rows, and sends the answer.
fn run_given(
    runner: &mut StatementRunner,
    plan: &CachedPlan,
    rows: &mut dyn GivenRows,
    replies: &mut Replies<'_>,
) -> Answered {
    runner.note_plan(plan);
    let counts_found = replies.counts_found_rows();
    match runner.execute_whole(plan, &Arguments::default(), Some(rows), &mut NoRows) {
        Ok(outcome) => Answers::of(runner).written(plan.kind, &outcome, counts_found, replies),
        Err(error) => Err(runner.refused(error)),
    }
}

struct TextRows<'t> {
    text: &'t str,
    mode: grammar::Mode,
    rows: &'t LiteralRows,
    collation: CollationId,
    next: usize,
    /// The current one.
    row: Vec<(Datum, SqlType)>,
}

impl GivenRows for TextRows<'_> {
    fn advance(&mut self, _: &EvaluationContext) -> Result<bool> {
        if self.next == self.rows.len() {
            return Ok(false);
        }
        self.row.clear();
        for column in 0..self.rows.columns() {
            let literal = self.rows.value(self.text, self.mode, self.next, column);
            let _promise = match &literal {
                Some(LiteralValue::Text(text)) => Some(memory::ask(text.len())?),
                _ => None,
            };
            let value = literal.and_then(|literal| literal_value(literal, self.collation));
            self.row.push(value.unwrap_or_else(|| (Datum::Null, SqlType::null())));
        }
        self.next += 1;
        Ok(true)
    }

    fn take(&mut self, column: usize) -> Datum {
        std::mem::take(&mut self.row[column].0)
    }

    fn ty(&self, column: usize) -> &SqlType {
        &self.row[column].1
    }

    fn count(&self) -> u64 {
        self.rows.len() as u64
    }

    fn rewind(&mut self) -> bool {
        self.next = 0;
        true
    }
}
