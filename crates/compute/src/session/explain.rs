//! `EXPLAIN`: a statement's plan, and the executor that would run it.

use firn_sql::error::{Condition, Level, Result, SqlError};
use firn_sql::grammar::ast::{Explain, ExplainFormat, ExplainTarget};
use firn_sql::plan::{Counters, ExplainRow, explain_json, explain_table, explain_tree};
use firn_sql::types::{Datum, SqlType};
use firn_wire::Replies;

use super::answers::{Answered, Answers, Table, text_type};
use super::arguments::Arguments;
use super::executor;
use super::runner::StatementRunner;
use super::sinks::NoRows;
use crate::accounts::Privilege;
use crate::plan_cache::CachedPlan;

/// Runs `EXPLAIN` in a session.
pub(super) struct ExplainStatements<'s> {
    pub(super) runner: &'s mut StatementRunner,
}

impl ExplainStatements<'_> {
    /// `EXPLAIN`
    pub(super) fn run(&mut self, wanted: &Explain, replies: &mut Replies<'_>) -> Answered {
        let explained = self.explain(wanted);
        match explained {
            Ok(table) => Answers::of(self.runner).table(&table, replies),
            Err(error) => Err(self.runner.refused(error)),
        }
    }

    fn explain(&mut self, wanted: &Explain) -> Result<Table> {
        let statement = match &wanted.target {
            ExplainTarget::Statement(statement) => statement,
            ExplainTarget::Connection(_) => {
                return Err(SqlError::not_supported("EXPLAIN FOR CONNECTION"));
            }
        };
        let arguments = Arguments::default();
        let plan = self.runner.plan(statement, &arguments)?;
        self.runner.state.diagnostics.conditions.extend_from_slice(&plan.plan.conditions);
        self.may_explain(&plan)?;
        let executor = executor::explained(&plan.executor);
        if wanted.analyze {
            let executor = "Executor: row (it counts what each operator does)";
            let counters = self.execute_counted(&plan, &arguments)?;
            let mut table = Table::of_text(&["EXPLAIN"]).shown_as("EXPLAIN");
            let tree = explain_tree(&plan.plan, Some(&counters));
            table.push_text(&[&with_executor(&tree, executor)]);
            return Ok(table);
        }
        let chosen =
            || match self.runner.state.connection.variables.known("explain_format").as_text() {
                "JSON" => ExplainFormat::Json,
                "TREE" => ExplainFormat::Tree,
                _ => ExplainFormat::Traditional,
            };
        match wanted.format.unwrap_or_else(chosen) {
            ExplainFormat::Traditional => {
                let level = Level::Note;
                self.runner.state.diagnostics.conditions.push(Condition {
                    level,
                    code: 1003,
                    message: executor,
                });
                Ok(explained_rows(explain_table(&plan.plan)))
            }
            ExplainFormat::Tree => {
                let mut table = Table::of_text(&["EXPLAIN"]).shown_as("EXPLAIN");
                let tree = explain_tree(&plan.plan, None);
                table.push_text(&[&with_executor(&tree, &executor)]);
                Ok(table)
            }
            ExplainFormat::Json => {
                let mut table = Table::of_text(&["EXPLAIN"]).shown_as("EXPLAIN");
                let said = format!("{{\n  \"executor\": {},", serde_json::json!(executor));
                table.push_text(&[&explain_json(&plan.plan).replacen('{', &said, 1)]);
                Ok(table)
            }
        }
    }

    /// A user who asks how a statement is executed must be allowed to run it, and to look into its
    /// views.
    fn may_explain(&mut self, plan: &CachedPlan) -> Result<()> {
        self.runner.rights.check_needs(&plan.needs)?;
        for named in &plan.plan.tables {
            let Ok(Some(table)) = self.runner.catalog.find_table(&named.schema, &named.table)
            else {
                continue;
            };
            let given = self.runner.rights.grants.on_table(&named.schema, &named.table);
            if table.view().is_some() && !given.contains(Privilege::SHOW_VIEW) {
                let why = "EXPLAIN/SHOW can not be issued; lacking privileges for underlying table";
                return Err(SqlError::new(1345, why));
            }
        }
        Ok(())
    }

    fn execute_counted(&mut self, plan: &CachedPlan, arguments: &Arguments) -> Result<Counters> {
        self.runner.state.counts = true;
        let ran = self.runner.execute(plan, arguments, &mut NoRows);
        self.runner.state.counts = false;
        ran?;
        Ok(self.runner.state.counters.take().unwrap_or_default())
    }
}

/// A tree with a line at the end that names the executor.
fn with_executor(tree: &str, executor: &str) -> String {
    format!("{}\n{executor}\n", tree.trim_end_matches('\n'))
}

/// The rows of a traditional `EXPLAIN`.
fn explained_rows(rows: Vec<ExplainRow>) -> Table {
    let number = SqlType::bigint_unsigned;
    let columns = [
        ("id", number()),
        ("select_type", text_type()),
        ("table", text_type()),
        ("partitions", text_type()),
        ("type", text_type()),
        ("possible_keys", text_type()),
        ("key", text_type()),
        ("key_len", text_type()),
        ("ref", text_type()),
        ("rows", number()),
        ("filtered", SqlType::double()),
        ("Extra", text_type()),
    ];
    let text = |text: Option<&str>| text.map_or(Datum::Null, |text| Datum::text(text.as_bytes()));
    let row = |row: ExplainRow| {
        vec![
            row.id.map_or(Datum::Null, Datum::UInt),
            text(Some(row.select_type)),
            text(row.table.as_deref()),
            Datum::Null,
            text(row.access),
            text(row.possible_keys.as_deref()),
            text(row.key.as_deref()),
            text(row.key_length.as_deref()),
            text(row.reference.as_deref()),
            row.rows.map_or(Datum::Null, Datum::UInt),
            row.filtered.map_or(Datum::Null, Datum::Double),
            text(row.extra.as_deref()),
        ]
    };
    Table {
        columns: columns.map(|(name, ty)| (name.to_owned(), ty)).into(),
        rows: rows.into_iter().map(row).collect(),
        ..Table::default()
    }
    .shown_as("EXPLAIN TRADITIONAL")
}
