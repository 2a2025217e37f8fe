//! The protocol's commands that are not statements.

use firn_sql::catalog::notation::identifier;
use firn_sql::error::Result;
use firn_sql::grammar;
use firn_wire::{FieldDefinition, Replies, WireError};

use super::SqlSession;
use super::execution::Arguments;
use crate::columns;

type Answered = std::result::Result<(), WireError>;

impl SqlSession {
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
        self.rights.refuse_unseen(&self.catalog, schema, name)?;
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
