//! `INSERT … VALUES` of many rows of literals, as `mysqldump` writes them: one plan, whatever the
//! number of rows, which is run with the values from the text.

use firn_base::memory;
use firn_sql::error::Result;
use firn_sql::execute::GivenRows;
use firn_sql::grammar::{self, LiteralRows, LiteralValue};
use firn_sql::plan::StatementPlan;
use firn_sql::types::{Datum, EvaluationContext, SqlType};
use firn_wire::{Replies, WireError};
use std::sync::Arc;

use super::SqlSession;
use super::execution::{Arguments, NoRows, literal_value};
use crate::plan_cache::CachedPlan;
use crate::status::count;
use firn_format::value::CollationId;

type Answered = std::result::Result<(), WireError>;

/// Shorter texts have few rows: their plans are found by the whole text.
const SHORTEST_TEXT_BYTES: usize = 512;

/// Runs such statements in a session.
pub(super) struct RowStatements<'s> {
    pub(super) session: &'s mut SqlSession,
}

impl RowStatements<'_> {
    /// Runs a text that inserts rows of literals. `None`: it does not, or has to be parsed as a
    /// whole.
    pub(super) fn try_rows(&mut self, text: &str, replies: &mut Replies<'_>) -> Option<Answered> {
        if text.len() < SHORTEST_TEXT_BYTES {
            return None;
        }
        let mut rows = std::mem::take(&mut self.session.buffers.literal_rows);
        let answered = match grammar::literal_rows(text, self.session.grammar_mode(), &mut rows) {
            true => self.run_rows(text, &rows, replies),
            false => None,
        };
        rows.shrink();
        self.session.buffers.literal_rows = rows;
        answered
    }

    fn run_rows(
        &mut self,
        text: &str,
        rows: &LiteralRows,
        replies: &mut Replies<'_>,
    ) -> Option<Answered> {
        if self.session.rights.refresh().is_err()
            || self.session.rights.sandboxed
            || !self.session.shares_plans()
        {
            return None;
        }
        let plan = self.rows_plan(text, rows)?;
        let collation = self.session.settings.connection_collation;
        let mut given = TextRows {
            text,
            mode: self.session.grammar_mode(),
            rows,
            collation,
            next: 0,
            row: Vec::new(),
        };
        self.session.conditions.clear();
        Some(self.run_given(&plan, &mut given, replies))
    }

    /// The plan for one such row; `None` if there is none, which planning the whole statement will
    /// report.
    fn rows_plan(&mut self, text: &str, rows: &LiteralRows) -> Option<Arc<CachedPlan>> {
        let mut template = String::new();
        rows.template(text, &mut template);
        let arguments = Arguments {
            values: vec![Datum::Null; rows.columns()],
            types: vec![SqlType::null(); rows.columns()],
        };
        template.push('\u{1}');
        self.session.write_key_of(&template, &arguments);
        template.pop();
        let found = self
            .session
            .instance
            .plans
            .get(&self.session.buffers.key, self.session.catalog.shared());
        let plan = match found {
            Some(plan) => {
                count(&self.session.facts.status.plan_cache_hits);
                plan
            }
            None => self.make_rows_plan(&template, &arguments)?,
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

    fn make_rows_plan(&mut self, template: &str, arguments: &Arguments) -> Option<Arc<CachedPlan>> {
        let parsed = self.session.parse(template, false).ok()?;
        let plan = Arc::new(self.session.plan(&parsed.statement, arguments).ok()?);
        count(&self.session.facts.status.plan_cache_misses);
        if plan.plan.is_cacheable {
            self.session.instance.plans.put(&self.session.buffers.key, Arc::clone(&plan));
        }
        Some(plan)
    }

    /// Runs a plan that inserts given rows, and sends the answer.
    fn run_given(
        &mut self,
        plan: &CachedPlan,
        rows: &mut dyn GivenRows,
        replies: &mut Replies<'_>,
    ) -> Answered {
        self.session.note_plan(plan);
        let counts_found = replies.counts_found_rows();
        match self.session.execute_given(plan, &Arguments::default(), Some(rows), &mut NoRows) {
            Ok(outcome) => self.session.answer_written(plan.kind, &outcome, counts_found, replies),
            Err(error) => Err(self.session.refused(error)),
        }
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
