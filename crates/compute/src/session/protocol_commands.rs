//! The protocol's commands that are not statements.

use firn_sql::catalog::notation::identifier;
use firn_sql::collation::LikePattern;
use firn_sql::error::Result;
use firn_sql::grammar;
use firn_sql::plan::StatementPlan;
use firn_wire::{Connections, FieldDefinition};

use super::arguments::Arguments;
use super::runner::StatementRunner;
use crate::columns;
use crate::instance::Instance;

/// The line of `COM_STATISTICS`.
pub(super) fn statistics_line(instance: &Instance, connections: &Connections) -> String {
    let status = instance.totals();
    let uptime = instance.uptime_seconds();
    let questions = status.questions;
    format!(
        "Uptime: {uptime}  Threads: {}  Questions: {questions}  Slow queries: {}  Opens: 0  Flush \
         tables: 0  Open tables: 0  Queries per second avg: {:.3}",
        connections.len(),
        status.slow_queries,
        questions as f64 / uptime.max(1) as f64,
    )
}

/// `COM_FIELD_LIST`
///
/// # Errors
/// 1146 if the table does not exist.
pub(super) fn fields_of(
    runner: &StatementRunner,
    table: &[u8],
    pattern: &[u8],
) -> Result<Vec<FieldDefinition>> {
    let table = String::from_utf8_lossy(table);
    let text = format!("SELECT * FROM {} LIMIT 0", identifier(&table));
    let parsed = grammar::parse(&text, grammar::Mode::default())?;
    let plan = runner.plan(&parsed.statement, &Arguments::default())?;
    let schema = runner.state.connection.schema.as_deref().unwrap_or("");
    runner.rights.refuse_unseen(&runner.catalog, schema, &table)?;
    let StatementPlan::Query(query) = &plan.plan.statement else { return Ok(Vec::new()) };
    let collation = firn_sql::collation::get(firn_format::value::CollationId(45));
    let pattern = match pattern {
        b"" => b"%".as_slice(),
        pattern => pattern,
    };
    let pattern = LikePattern::new(collation, pattern, Some('\\'));
    let results = runner.settings.presentation.collation;
    let wanted = query.columns.iter().filter(|column| pattern.matches(column.name.as_bytes()));
    Ok(wanted
        .map(|column| FieldDefinition {
            column: columns::definition(column, results),
            default: None,
        })
        .collect())
}
