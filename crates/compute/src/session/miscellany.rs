//! Small parts of statements (expressions of `SET` and `KILL`), and the protocol's commands that are
//! not statements.

use firn_sql::catalog::notation::identifier;
use firn_sql::error::{Result, SqlError};
use firn_sql::grammar;
use firn_sql::grammar::ast::{Expr, Statement};
use firn_sql::types::{Datum, SqlType};
use firn_wire::{FieldDefinition, Replies, WireError};

use super::SqlSession;
use super::execution::{Arguments, Gathered};
use crate::columns;

type Answered = std::result::Result<(), WireError>;

impl SqlSession {
    /// The value of an expression outside a query.
    ///
    /// # Errors
    /// Errors of binding and evaluation.
    pub(super) fn evaluate(&mut self, expression: &Expr) -> Result<(Datum, SqlType)> {
        let arguments = Arguments::default();
        let plan = self.plan(&Statement::Do(vec![expression.clone()]), &arguments)?;
        let mut sink = Gathered::new(self.settings.presentation.time_zone.clone());
        let kept = std::mem::take(&mut self.conditions);
        let ran = self.execute(&plan, &arguments, &mut sink);
        self.conditions = kept;
        ran?;
        let value = sink.rows.pop().and_then(|mut row| row.pop()).unwrap_or(Datum::Null);
        let ty = sink.types.pop().unwrap_or_else(SqlType::null);
        Ok((value, ty))
    }

    pub(super) fn evaluate_number(&mut self, expression: &Expr) -> Result<u64> {
        match self.evaluate(expression)?.0 {
            Datum::Int(number) => {
                u64::try_from(number).map_err(|_| SqlError::new(1210, "Incorrect arguments"))
            }
            Datum::UInt(number) => Ok(number),
            _ => Err(SqlError::new(1210, "Incorrect arguments")),
        }
    }

    pub(super) fn evaluate_text(&mut self, expression: &Expr) -> Result<String> {
        Ok(self.evaluate(expression)?.0.plain_text())
    }

    /// `COM_STMT_CLOSE`
    pub(crate) fn forget_numbered(&mut self, number: u32) {
        crate::status::count(&self.facts.status.closes);
        self.state.connection.numbered.remove(&number);
    }

    /// OK to a command that is not a statement.
    pub(crate) fn answer_plainly(&mut self, replies: &mut Replies<'_>) -> Answered {
        self.conditions.clear();
        self.answer_ok(replies)
    }

    /// The line of `COM_STATISTICS`.
    pub(crate) fn statistics_line(&self) -> String {
        let status = self.instance.totals();
        let uptime = self.instance.uptime_seconds();
        let questions = status.questions;
        format!(
            "Uptime: {uptime}  Threads: {}  Questions: {questions}  Slow queries: {}  Opens: 0  Flush \
             tables: 0  Open tables: 0  Queries per second avg: {:.3}",
            self.connections.len(),
            status.slow_queries,
            questions as f64 / uptime.max(1) as f64,
        )
    }

    /// `COM_FIELD_LIST`
    ///
    /// # Errors
    /// 1146 if the table does not exist.
    pub(crate) fn fields_of(
        &mut self,
        table: &[u8],
        pattern: &[u8],
    ) -> Result<Vec<FieldDefinition>> {
        let table = String::from_utf8_lossy(table);
        let text = format!("SELECT * FROM {} LIMIT 0", identifier(&table));
        let parsed = grammar::parse(&text, grammar::Mode::default())?;
        let plan = self.plan(&parsed.statement, &Arguments::default())?;
        let (schema, name) = (self.state.connection.schema.as_deref().unwrap_or(""), &*table);
        self.refuse_unseen(schema, name)?;
        let firn_sql::plan::StatementPlan::Query(query) = &plan.plan.statement else {
            return Ok(Vec::new());
        };
        let collation = firn_sql::collation::get(firn_format::value::CollationId(45));
        let pattern = match pattern {
            b"" => b"%".as_slice(),
            pattern => pattern,
        };
        let pattern = firn_sql::collation::LikePattern::new(collation, pattern, Some('\\'));
        let results = self.settings.presentation.collation;
        let wanted = query.columns.iter().filter(|column| pattern.matches(column.name.as_bytes()));
        Ok(wanted
            .map(|column| FieldDefinition {
                column: columns::definition(column, results),
                default: None,
            })
            .collect())
    }
}
