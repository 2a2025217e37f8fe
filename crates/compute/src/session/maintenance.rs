//! `ANALYZE`, `CHECK`, `OPTIMIZE`, `REPAIR` and `CHECKSUM TABLE`.

use std::sync::Arc;

use firn_api::rows::IsolationLevel;
use firn_sql::catalog::analyze::analyze_table;
use firn_sql::catalog::model::TableModel;
use firn_sql::catalog::notation::identifier;
use firn_sql::error::{ErrorKind, Result, SqlError};
use firn_sql::execute::error::from_rows;
use firn_sql::grammar;
use firn_sql::grammar::ast::{MaintenanceOperation, TableMaintenance, TableName};
use firn_sql::types::Datum;
use firn_wire::Replies;

use super::answers::{Answered, Answers, Table};
use super::arguments::Arguments;
use super::runner::StatementRunner;
use super::sinks::Gathered;
use crate::accounts::Privilege;
use crate::accounts::need::Need;

/// Runs statements that check and tidy tables in a session.
pub(super) struct MaintenanceStatements<'s> {
    pub(super) runner: &'s mut StatementRunner,
}

impl MaintenanceStatements<'_> {
    /// `ANALYZE`, `CHECK`, `OPTIMIZE`, `REPAIR`, `CHECKSUM TABLE`.
    pub(super) fn run_maintenance(
        &mut self,
        work: &TableMaintenance,
        replies: &mut Replies<'_>,
    ) -> Answered {
        let operation = match work.operation {
            MaintenanceOperation::Analyze => "analyze",
            MaintenanceOperation::Check => "check",
            MaintenanceOperation::Checksum => "checksum",
            MaintenanceOperation::Optimize => "optimize",
            MaintenanceOperation::Repair => "repair",
        };
        let allowed = self.may_maintain(work);
        let committed = allowed.and_then(|()| self.runner.transactions.commit());
        if let Err(error) = committed {
            return Err(self.runner.refused(error));
        }
        let mut answer =
            Table::of_text(&["Table", "Op", "Msg_type", "Msg_text"]).shown_as("CHECK TABLE");
        for table in &work.tables {
            let schema = self.runner.state.connection.schema_of(table);
            let shown = format!("{schema}.{}", table.name);
            match self.maintain(work.operation, &schema, table) {
                Ok(lines) => {
                    for (kind, text) in lines {
                        answer.push_text(&[&shown, operation, kind, &text]);
                    }
                }
                Err(error) if error.kind == ErrorKind::Interrupted => {
                    return Err(self.runner.refused(error));
                }
                Err(error) => {
                    answer.push_text(&[&shown, operation, "Error", &error.message]);
                    answer.push_text(&[&shown, operation, "status", "Operation failed"]);
                }
            }
        }
        Answers::of(self.runner).table(&answer, replies)
    }

    fn may_maintain(&self, work: &TableMaintenance) -> Result<()> {
        for table in &work.tables {
            let needed: &[Privilege] = match work.operation {
                MaintenanceOperation::Check => {
                    self.runner.rights.refuse_unseen(
                        &self.runner.catalog,
                        &self.runner.state.connection.schema_of(table),
                        &table.name,
                    )?;
                    &[]
                }
                MaintenanceOperation::Checksum => &[Privilege::SELECT],
                _ => &[Privilege::SELECT, Privilege::INSERT],
            };
            let schema = self.runner.state.connection.schema_of(table);
            let need = |one: &Privilege| Need::on_table(*one, &schema, &table.name);
            let needs: Vec<Need> = needed.iter().map(need).collect();
            self.runner.rights.require(&needs)?;
        }
        Ok(())
    }

    fn maintain(
        &mut self,
        operation: MaintenanceOperation,
        schema: &str,
        table: &TableName,
    ) -> Result<Vec<(&'static str, String)>> {
        let sound = || vec![("status", "OK".to_owned())];
        let model = self.runner.catalog.table(schema, &table.name)?;
        match operation {
            MaintenanceOperation::Analyze | MaintenanceOperation::Optimize => {
                let facts = Arc::clone(&self.runner.facts);
                let go_on = move || !facts.is_cancelled();
                analyze_table(
                    self.runner.catalog.shared(),
                    &model,
                    &self.runner.evaluation,
                    &go_on,
                )?;
                self.runner.instance.statistics_gathered(model.id);
                Ok(sound())
            }
            MaintenanceOperation::Check if model.view().is_none() => {
                let problems = self.check_entries(&model)?;
                if problems.is_empty() {
                    return Ok(sound());
                }
                let problems = problems.into_iter().map(|problem| ("Error", problem));
                Ok(problems.chain([("error", "Corrupt".to_owned())]).collect())
            }
            MaintenanceOperation::Check => {
                let text = format!(
                    "SELECT COUNT(*) FROM {}.{}",
                    identifier(schema),
                    identifier(&table.name)
                );
                self.gather(&text)?;
                Ok(sound())
            }
            MaintenanceOperation::Repair => {
                let refusal = "The storage engine for the table doesn't support repair";
                Ok(vec![("note", refusal.to_owned())])
            }
            MaintenanceOperation::Checksum => Err(SqlError::not_supported("CHECKSUM TABLE")),
        }
    }

    /// What is wrong with a table's indexes, by a snapshot of now. Others may write meanwhile, and
    /// change the definition: what the snapshot sees stays. Nothing is locked, so that a node which
    /// follows the log checks its tables, too.
    fn check_entries(&self, model: &TableModel) -> Result<Vec<String>> {
        let begun = self.runner.instance.node.begin(IsolationLevel::RepeatableRead);
        let mut transaction = begun.map_err(from_rows)?;
        transaction.set_cancelled(&self.runner.facts.cancelled);
        let table = transaction.table_for_read(model.id);
        let problems = table.and_then(|table| transaction.check_table(&table));
        problems.map_err(from_rows)
    }

    /// The rows of a query into which a statement was rewritten.
    fn gather(&mut self, text: &str) -> Result<Vec<Vec<Datum>>> {
        let parsed = grammar::parse(text, grammar::Mode::default())?;
        let arguments = Arguments::default();
        let mut plan = self.runner.plan(&parsed.statement, &arguments)?;
        // The statement was allowed.
        plan.needs.clear();
        let time_zone = self.runner.settings.presentation.time_zone.clone();
        let mut sink = Gathered::new(time_zone);
        self.runner.execute(&plan, &arguments, &mut sink)?;
        Ok(sink.rows)
    }
}
