//! `SHOW` and `DESCRIBE` of what the session itself knows; the rest is the catalog's.

use std::sync::Arc;

use firn_sql::catalog::session::SessionTables;
use firn_sql::catalog::show::{self, ShowAnswer, ShowContext};
use firn_sql::catalog::virtual_table_metadata::{self, ReportedColumns};
use firn_sql::error::{Condition, Level, Result, SqlError, from_rows};
use firn_sql::grammar::ast::{Show, ShowCreate, ShowFilter};
use firn_sql::grammar::{self, ast};
use firn_sql::plan::StatementPlan;
use firn_sql::types::{Datum, SqlType};
use firn_wire::{EncodedColumns, Replies};

use super::account::AccountStatements;
use super::answers::{Answered, Answers, Table, text_type};
use super::arguments::Arguments;
use super::runner::StatementRunner;
use super::statement_view::State;
use crate::accounts::Privilege;
use crate::accounts::need::{Need, is_open, table_denied};
use crate::columns;
use crate::plan_cache::CachedPlan;

/// The statement equivalent to `DESCRIBE`.
pub(super) fn shown_columns(table: &ast::TableName, column: Option<&str>) -> Show {
    let filter = column.map(|column| ShowFilter::Like(column.to_owned()));
    Show::Columns { extended: false, full: false, table: table.clone(), filter }
}

/// The statement whose columns clients see for a `SHOW`.
fn section(show: &Show) -> Option<&'static str> {
    Some(match show {
        Show::Databases(_) => "SHOW DATABASES",
        Show::Tables { .. } => "SHOW TABLES",
        Show::Columns { full: true, .. } => "SHOW FULL COLUMNS",
        Show::Columns { .. } => "SHOW COLUMNS",
        Show::Indexes { .. } => "SHOW INDEX",
        Show::TableStatus { .. } => "SHOW TABLE STATUS",
        Show::OpenTables { .. } => "SHOW OPEN TABLES",
        Show::Create(ShowCreate::Table(_)) => "SHOW CREATE TABLE",
        Show::Create(ShowCreate::View(_)) => "SHOW CREATE VIEW",
        Show::Create(ShowCreate::Database { .. }) => "SHOW CREATE DATABASE",
        Show::Variables { .. } => "SHOW VARIABLES",
        Show::Status { .. } => "SHOW STATUS",
        Show::Warnings(_) | Show::Errors(_) => "SHOW WARNINGS",
        Show::WarningCount | Show::ErrorCount => "SHOW COUNT",
        Show::Processlist { .. } => "SHOW PROCESSLIST",
        Show::Engines => "SHOW ENGINES",
        Show::Engine { .. } => "SHOW ENGINE",
        Show::CharacterSets(_) => "SHOW CHARACTER SET",
        Show::Collations(_) => "SHOW COLLATION",
        Show::Privileges => "SHOW PRIVILEGES",
        Show::Plugins => "SHOW PLUGINS",
        Show::Triggers { .. } => "SHOW TRIGGERS",
        Show::Events { .. } => "SHOW EVENTS",
        Show::ProcedureStatus(_) | Show::FunctionStatus(_) => "SHOW ROUTINES",
        _ => return None,
    })
}

/// How a `SHOW` is answered.
enum Way {
    Rows(Table),
    Query(String),
}

/// Runs `SHOW` and `DESCRIBE` in a session.
pub(super) struct ShowStatements<'s> {
    pub(super) runner: &'s mut StatementRunner,
}

impl ShowStatements<'_> {
    /// `SHOW`
    pub(super) fn run_show(&mut self, show: &Show, replies: &mut Replies<'_>) -> Answered {
        let shown = section(show).and_then(virtual_table_metadata::shown);
        match Showing::of(self.runner).way(show) {
            Ok(Way::Rows(table)) => {
                Answers::of(self.runner).table(&Table { shown, ..table }, replies)
            }
            Ok(Way::Query(text)) => self.run_own_query(&text, shown, replies),
            Err(error) => Err(self.runner.refused(error)),
        }
    }

    /// Runs a query into which a statement was rewritten.
    fn run_own_query(
        &mut self,
        text: &str,
        shown: Option<&'static ReportedColumns>,
        replies: &mut Replies<'_>,
    ) -> Answered {
        match self.own_plan(text) {
            Ok(mut plan) => {
                // The statement was allowed; its source shows only what the reader may see.
                plan.needs.clear();
                plan.command = None;
                if let (Some(shown), StatementPlan::Query(query)) = (shown, &plan.plan.statement) {
                    let results = self.runner.settings.presentation.collation;
                    let columns =
                        columns::encode_reported(&query.columns, &shown.answered, results);
                    plan.columns = Some(columns);
                }
                self.runner.run_plan(&plan, &Arguments::default(), replies)
            }
            Err(error) => Err(self.runner.refused(error)),
        }
    }

    fn own_plan(&self, text: &str) -> Result<CachedPlan> {
        let parsed = grammar::parse(text, grammar::Mode::default())?;
        self.runner.plan(&parsed.statement, &Arguments::default())
    }

    /// The result columns of a prepared `SHOW`.
    ///
    /// # Errors
    /// What the statement would be refused for.
    pub(super) fn columns(&mut self, show: &Show) -> Result<EncodedColumns> {
        let shown = section(show).and_then(virtual_table_metadata::shown);
        let reported = shown.map_or(&[][..], |shown| &shown.prepared);
        let results = self.runner.settings.presentation.collation;
        match Showing::of(self.runner).way(show)? {
            Way::Rows(table) => {
                Ok(columns::encode_reported(&table.output_columns(), reported, results))
            }
            Way::Query(text) => Ok(match &self.own_plan(&text)?.plan.statement {
                StatementPlan::Query(query) => {
                    columns::encode_reported(&query.columns, reported, results)
                }
                _ => EncodedColumns::new(&[]),
            }),
        }
    }
}

/// Finds the answers of `SHOW` statements.
struct Showing<'s> {
    accounts: AccountStatements<'s>,
    state: &'s State,
}

impl<'s> Showing<'s> {
    fn of(runner: &'s mut StatementRunner) -> Showing<'s> {
        let StatementRunner { rights, state, catalog, facts, instance, .. } = runner;
        state.grants = Arc::clone(&rights.grants);
        let connection = &state.connection;
        let accounts = AccountStatements { rights, connection, catalog, facts, instance };
        Showing { accounts, state }
    }

    /// Refuses what the session may not see. Only a user with privileges on a table learns whether
    /// it exists; lists of names are open to all, as in MySQL.
    fn may_show(&self, show: &Show) -> Result<()> {
        let table_schema = |table: &ast::TableName| self.accounts.connection.schema_of(table);
        match show {
            Show::Columns { table, .. } | Show::Indexes { table, .. } => {
                let schema = table_schema(table);
                if !is_open(&schema) && self.accounts.catalog.relation(&schema, &table.name).is_ok()
                {
                    self.accounts.rights.refuse_unseen(
                        self.accounts.catalog,
                        &schema,
                        &table.name,
                    )?;
                }
                Ok(())
            }
            Show::Create(ShowCreate::Table(table)) => {
                self.may_show_table(&table_schema(table), &table.name)
            }
            Show::Create(ShowCreate::View(view)) => {
                let schema = table_schema(view);
                self.accounts.rights.require(&[Need::on_table(
                    Privilege::SELECT,
                    &schema,
                    &view.name,
                )])?;
                self.accounts.catalog.relation(&schema, &view.name)?;
                self.accounts.rights.require(&[Need::on_table(
                    Privilege::SHOW_VIEW,
                    &schema,
                    &view.name,
                )])
            }
            Show::Create(ShowCreate::Database { name, .. }) => self.may_use(name),
            Show::Tables { schema, .. }
            | Show::TableStatus { schema, .. }
            | Show::Triggers { schema, .. } => match self.shown_schema(schema.as_deref())? {
                Some(schema)
                    if !is_open(schema) && !self.accounts.rights.grants.lists_schema(schema) =>
                {
                    Err(self.accounts.rights.schema_denied(schema))
                }
                _ => Ok(()),
            },
            Show::Events { schema, .. } => match self.shown_schema(schema.as_deref())? {
                Some(schema) => {
                    self.accounts.rights.require(&[Need::on_schema(Privilege::EVENT, schema)])
                }
                None => Ok(()),
            },
            Show::BinaryLogs | Show::BinaryLogStatus | Show::ReplicaStatus => self
                .accounts
                .rights
                .require_one_of(&["SUPER", "REPLICATION CLIENT"], "SUPER, REPLICATION CLIENT"),
            Show::Replicas | Show::BinlogEvents => {
                self.accounts.rights.require_one_of(&["REPLICATION SLAVE"], "REPLICATION SLAVE")
            }
            _ => Ok(()),
        }
    }

    /// The schema to list, if it exists.
    fn shown_schema<'n>(&'n self, named: Option<&'n str>) -> Result<Option<&'n str>> {
        match named.or(self.state.connection.schema.as_deref()) {
            Some(schema) if self.accounts.catalog.has_schema(schema)? => Ok(Some(schema)),
            _ => Ok(None),
        }
    }

    fn may_use(&self, schema: &str) -> Result<()> {
        match is_open(schema) || self.accounts.rights.grants.uses_schema(schema) {
            true => Ok(()),
            false => Err(self.accounts.rights.schema_denied(schema)),
        }
    }

    fn may_show_table(&self, schema: &str, table: &str) -> Result<()> {
        let is_temporary =
            matches!(self.accounts.catalog.temporary_table(schema, table), Ok(Some(_)));
        if is_open(schema) || is_temporary {
            return Ok(());
        }
        if !self.accounts.rights.grants.defines_table(schema, table) {
            return Err(table_denied("SHOW", table, &self.accounts.rights.who()));
        }
        match self.accounts.catalog.find_table(schema, table)? {
            Some(view) if view.view().is_some() => {
                self.accounts.rights.require(&[Need::on_table(Privilege::SHOW_VIEW, schema, table)])
            }
            _ => Ok(()),
        }
    }

    fn way(&self, show: &Show) -> Result<Way> {
        self.may_show(show)?;
        Ok(match show {
            Show::Variables { global, filter } => {
                let rows = self.state.variables(*global);
                let table = if *global { "global_variables" } else { "session_variables" };
                pairs("Variable_name", "Value", rows, filter.as_ref(), table)
            }
            Show::Status { global, filter } => {
                let rows = self.state.status(*global);
                let table = if *global { "global_status" } else { "session_status" };
                pairs("Variable_name", "Value", rows, filter.as_ref(), table)
            }
            Show::Processlist { full } => Way::Rows(self.show_processes(*full)),
            Show::Warnings(limit) => {
                Way::Rows(conditions(&self.state.diagnostics.conditions, *limit, |_| true))
            }
            Show::Errors(limit) => {
                Way::Rows(conditions(&self.state.diagnostics.conditions, *limit, |level| {
                    level == Level::Error
                }))
            }
            Show::WarningCount => Way::Rows(one_number(
                "@@session.warning_count",
                self.state.diagnostics.conditions.len(),
            )),
            Show::ErrorCount => {
                Way::Rows(one_number("@@session.error_count", self.state.diagnostics.errors()))
            }
            Show::Grants { account, using } => {
                Way::Rows(self.accounts.show_grants(account.as_ref(), using)?)
            }
            Show::Create(ShowCreate::User(account)) => {
                Way::Rows(self.accounts.show_create_user(account)?)
            }
            Show::Engine { name, what } => Way::Rows(self.show_engine(name.as_deref(), what)?),
            Show::Privileges => Way::Rows(privileges()),
            Show::Profiles => Way::Rows(Table::of_text(&["Query_ID", "Duration", "Query"])),
            Show::Profile => Way::Rows(Table::of_text(&["Status", "Duration"])),
            other => self.show_of_catalog(other)?,
        })
    }

    fn show_of_catalog(&self, show: &Show) -> Result<Way> {
        let context = ShowContext {
            catalog: self.accounts.catalog,
            current_schema: self.state.connection.schema.as_deref(),
        };
        Ok(match show::rewrite(&context, show)? {
            ShowAnswer::Rows { columns, rows } => {
                Way::Rows(Table { columns, rows, ..Table::default() })
            }
            ShowAnswer::Query(text) => Way::Query(text),
            ShowAnswer::Session => return Err(SqlError::not_supported("this SHOW")),
        })
    }

    fn show_processes(&self, full: bool) -> Table {
        let number = SqlType::bigint();
        let text = text_type;
        let columns = [
            ("Id", number.clone()),
            ("User", text()),
            ("Host", text()),
            ("db", text()),
            ("Command", text()),
            ("Time", number),
            ("State", text()),
            ("Info", text()),
        ];
        let columns = columns.map(|(name, ty)| (name.to_owned(), ty)).into();
        let some =
            |value: Option<String>| value.map_or(Datum::Null, |text| Datum::text(text.as_bytes()));
        let row = |process: firn_sql::catalog::session::Process| {
            let info = process.info.map(|info| match full {
                true => info,
                false => info.chars().take(100).collect(),
            });
            vec![
                Datum::Int(process.id as i64),
                Datum::text(process.user.as_bytes()),
                Datum::text(process.host.as_bytes()),
                some(process.schema),
                Datum::text(process.command.as_bytes()),
                Datum::Int(process.time_s as i64),
                Datum::text(process.state.as_bytes()),
                some(info),
            ]
        };
        let rows = self.state.processes().into_iter().map(row).collect();
        Table { columns, rows, ..Table::default() }
    }

    fn show_engine(&self, name: Option<&str>, what: &str) -> Result<Table> {
        if let Some(name) = name
            && !["innodb", "firn"].iter().any(|known| known.eq_ignore_ascii_case(name))
        {
            return Err(SqlError::new(1286, format!("Unknown storage engine '{name}'")));
        }
        if !self.accounts.rights.grants.global.contains(Privilege::PROCESS) {
            let why = "Access denied; you need (at least one of) the PROCESS privilege(s) for this operation";
            return Err(SqlError::new(1227, why));
        }
        let mut table = Table::of_text(&["Type", "Name", "Status"]);
        if what == "STATUS" {
            let text = self.accounts.instance.node.status_text().map_err(from_rows)?;
            table.push_text(&["InnoDB", "", &text]);
        }
        Ok(table)
    }
}

/// Name and value: as rows if there is at most a pattern, otherwise as a query.
fn pairs(
    name: &str,
    value: &str,
    rows: Vec<(String, String)>,
    filter: Option<&ShowFilter>,
    table: &str,
) -> Way {
    if let Some(ShowFilter::Where(condition)) = filter {
        let condition = grammar::render(condition);
        return Way::Query(format!(
            "SELECT * FROM (SELECT VARIABLE_NAME AS `{name}`, VARIABLE_VALUE AS `{value}` \
             FROM performance_schema.{table}) AS shown WHERE {condition}"
        ));
    }
    let mut answer = Table::of_text(&[name, value]);
    for (name, value) in rows {
        answer.push_text(&[&name, &value]);
    }
    if let Some(ShowFilter::Like(pattern)) = filter {
        answer.keep_like(pattern);
    }
    Way::Rows(answer)
}

fn conditions(
    conditions: &[Condition],
    limit: Option<(u64, u64)>,
    wanted: impl Fn(Level) -> bool,
) -> Table {
    let columns = [("Level", text_type()), ("Code", SqlType::bigint()), ("Message", text_type())];
    let columns = columns.map(|(name, ty)| (name.to_owned(), ty)).into();
    let (offset, count) = limit.unwrap_or((0, u64::MAX));
    let at = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let shown = conditions.iter().filter(|condition| wanted(condition.level));
    let shown = shown.skip(at(offset)).take(at(count));
    let rows = shown.map(|condition| {
        let level = match condition.level {
            Level::Note => "Note",
            Level::Warning => "Warning",
            Level::Error => "Error",
        };
        vec![
            Datum::text(level.as_bytes()),
            Datum::Int(i64::from(condition.code)),
            Datum::text(condition.message.as_bytes()),
        ]
    });
    Table { columns, rows: rows.collect(), ..Table::default() }
}

fn one_number(name: &str, number: usize) -> Table {
    Table {
        columns: vec![(name.to_owned(), SqlType::bigint())],
        rows: vec![vec![Datum::Int(number as i64)]],
        ..Table::default()
    }
}

fn privileges() -> Table {
    let mut table = Table::of_text(&["Privilege", "Context", "Comment"]);
    for privilege in Privilege::ALL {
        table.push_text(&[privilege.name, "Server Admin", ""]);
    }
    table
}
