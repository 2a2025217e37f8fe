//! `LOAD DATA`: lines of a file as rows, inserted by one plan.
//!
//! ```text
//!   file ─► lines of fields ─► rows of INSERT … VALUES (?, …)         one execution for all lines
//!                          └─► user variables, and                    line by line,
//!                              INSERT … VALUES (?, expression)        with SET or @variables
//! ```

#![allow(clippy::disallowed_types, reason = "files of users, which are no part of the database")]

mod fields;
mod lines;

use std::fmt::Write;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use firn_sql::catalog::model::TableModel;
use firn_sql::catalog::notation::identifier;
use firn_sql::collation::Charset;
use firn_sql::error::{Result, SqlError};
use firn_sql::execute::{GivenRows, SessionState};
use firn_sql::grammar::{
    self, ast::LoadData, ast::LoadTarget, ast::OnConflict, ast::ValueOrDefault,
};
use firn_sql::plan::StatementPlan;
use firn_sql::types::{Datum, SqlType, cast};
use firn_wire::{Replies, WireError};

use super::answers::{Answered, Answers};
use super::arguments::Arguments;
use super::outfile::secure_path;
use super::runner::StatementRunner;
use super::sinks::NoRows;
use crate::accounts::Privilege;
use crate::accounts::need::Need;
use crate::columns;
use crate::plan_cache::CachedPlan;
use fields::{FieldReader, Line};
use lines::LineRows;

/// The longest field that is accepted.
const LONGEST_FIELD_BYTES: usize = 1 << 30;
/// Bytes that are read from the file at once.
const READ_BYTES: usize = 1 << 18;

#[derive(Default)]
struct Totals {
    records: u64,
    affected: u64,
    skipped: u64,
}

/// Runs `LOAD DATA` in a session.
pub(super) struct LoadStatements<'s> {
    pub(super) runner: &'s mut StatementRunner,
}

impl LoadStatements<'_> {
    pub(super) fn run_load_data(&mut self, load: &LoadData, replies: &mut Replies<'_>) -> Answered {
        let loaded = match load.local {
            true => self.load_from_client(&without_refusals(load), replies)?,
            false => self.load_from_server(load),
        };
        match loaded {
            Ok(totals) => {
                let warnings = self.runner.state.diagnostics.conditions.len();
                let info = format!(
                    "Records: {}  Deleted: 0  Skipped: {}  Warnings: {warnings}",
                    totals.records, totals.skipped
                );
                Answers::of(self.runner).affected(totals.affected, 0, &info, replies)
            }
            Err(error) => Err(self.runner.refused(error)),
        }
    }

    fn load_from_client(
        &mut self,
        load: &LoadData,
        replies: &mut Replies<'_>,
    ) -> std::result::Result<Result<Totals>, WireError> {
        if !self.runner.instance.variables.get("local_infile").is_some_and(|on| on.is_on()) {
            let why = "Loading local data is disabled; this must be enabled on both the client and server sides";
            return Ok(Err(SqlError::new(3948, why)));
        }
        let schema = load
            .table
            .schema
            .as_deref()
            .or(self.runner.state.connection.schema.as_deref())
            .unwrap_or("");
        let need = Need::on_table(Privilege::INSERT, schema, &load.table.name);
        if let Err(error) = self.runner.rights.require(&[need]) {
            return Ok(Err(error));
        }
        let file = replies.local_infile(load.path.as_bytes())?;
        Ok(self.load(load, file.until(Arc::clone(self.runner.facts.cancelled.flag()))))
    }

    fn load_from_server(&mut self, load: &LoadData) -> Result<Totals> {
        let path = secure_path(&self.runner.rights, &self.runner.instance, &load.path, true)?;
        let schema = load
            .table
            .schema
            .as_deref()
            .or(self.runner.state.connection.schema.as_deref())
            .unwrap_or("");
        let needs = [Need::on_table(Privilege::INSERT, schema, &load.table.name)];
        self.runner.rights.require(&needs)?;
        let file = std::fs::File::open(&path).map_err(|error| {
            SqlError::new(29, format!("File '{}' not found ({error})", path.display()))
        })?;
        self.load(load, file)
    }

    /// Loads the file. The work of a failed statement is undone before `file` is dropped: a client
    /// may take a long time to send the rest of it.
    fn load(&mut self, load: &LoadData, mut file: impl Read) -> Result<Totals> {
        let charset = match load.charset.as_deref() {
            Some(name) => super::settings::charset_of_file(name)?,
            None => Charset::Utf8mb4,
        };
        let lasting = self.runner.transactions.is_lasting();
        if !lasting {
            // All batches belong to one statement, so they are in one transaction.
            let StatementRunner { instance, transactions, settings, facts, .. } = self.runner;
            transactions.begin(&*instance.node, settings, facts, true, None)?;
        }
        let savepoint = self.runner.transactions.open.as_ref().map(|open| open.inner.savepoint());
        let mut loaded = self.load_lines(load, &mut file, charset);
        if loaded.is_err() && self.runner.facts.is_cancelled() {
            loaded = Err(SqlError::interrupted());
        }
        match (&loaded, lasting) {
            (Ok(_), true) => {}
            (Ok(_), false) => self.runner.transactions.commit()?,
            (Err(_), false) => self.runner.transactions.roll_back_quietly(),
            (Err(_), true) => {
                if let (Some(open), Some(savepoint)) =
                    (&mut self.runner.transactions.open, savepoint)
                {
                    open.inner
                        .rollback_to(savepoint)
                        .map_err(firn_sql::execute::error::from_rows)?;
                }
            }
        }
        loaded
    }

    fn load_lines(&mut self, load: &LoadData, file: impl Read, charset: Charset) -> Result<Totals> {
        let input = BufReader::with_capacity(READ_BYTES, file);
        let loader = self.loader(load)?;
        let widths = loader.widths()?;
        let mut reader = FieldReader::new(input, &load.format, &widths, LONGEST_FIELD_BYTES);
        let mut line = Line::default();
        for _ in 0..load.ignore_lines {
            if !reader.read_line(&mut line).map_err(reading)? {
                break;
            }
        }
        let ignores = load.on_conflict == OnConflict::Ignore;
        let is_strict = self.runner.settings.sql_mode.is_strict() && !ignores;
        let ty = SqlType::varchar(65_535, self.runner.settings.connection_collation);
        let mut rows = LineRows {
            reader,
            line,
            charset,
            ty,
            is_strict,
            to_columns: loader.targets.iter().map(is_column).collect(),
            read: 0,
        };
        match self.load_plan(&loader)? {
            Some(plan) => self.load_at_once(&plan, &mut rows),
            None => self.load_one_by_one(&loader, &mut rows),
        }
    }

    /// The plan for all lines; `None` if the inserted rows are more than their fields.
    fn load_plan(&mut self, loader: &Loader<'_>) -> Result<Option<CachedPlan>> {
        if !is_plain(loader) {
            return Ok(None);
        }
        let ty = SqlType::varchar(65_535, self.runner.settings.connection_collation);
        let values = vec![Datum::Null; loader.targets.len()];
        let arguments = Arguments { types: vec![ty; values.len()], values };
        let parsed = grammar::parse(&loader.statement(), grammar::Mode::default())?;
        let plan = self.runner.plan(&parsed.statement, &arguments)?;
        let takes_rows =
            matches!(&plan.plan.statement, StatementPlan::Insert(insert) if insert.takes_rows());
        Ok(takes_rows.then_some(plan))
    }

    fn load_at_once(
        &mut self,
        plan: &CachedPlan,
        rows: &mut LineRows<impl BufRead>,
    ) -> Result<Totals> {
        let arguments = Arguments::default();
        let outcome = self.runner.execute_given(plan, &arguments, Some(rows), &mut NoRows)?;
        let (records, affected) = (rows.read, outcome.affected);
        Ok(Totals { records, affected, skipped: records.saturating_sub(affected) })
    }

    fn load_one_by_one(
        &mut self,
        loader: &Loader<'_>,
        rows: &mut LineRows<impl BufRead>,
    ) -> Result<Totals> {
        let text = loader.statement();
        let mut totals = Totals::default();
        let mut kept: Option<CachedPlan> = None;
        while rows.advance(&self.runner.evaluation)? {
            let mut arguments = Arguments::default();
            for (number, target) in loader.targets.iter().enumerate() {
                let value = rows.take(number);
                match target {
                    LoadTarget::Column(_) if loader.comes_again[number] => {}
                    LoadTarget::Column(name) => {
                        let missing = rows.is_missing(number).then(|| loader.default_of(name));
                        let given = || (value, rows.ty.clone());
                        let (value, ty) = missing.flatten().unwrap_or_else(given);
                        arguments.values.push(value);
                        arguments.types.push(ty);
                    }
                    LoadTarget::Variable(name) => {
                        self.runner.state.set_user_variable(&name.to_lowercase(), value, &rows.ty);
                    }
                }
            }
            let plan = match kept.take() {
                Some(plan) => plan,
                None => {
                    let parsed = grammar::parse(&text, grammar::Mode::default())?;
                    self.runner.plan(&parsed.statement, &arguments)?
                }
            };
            let outcome = self.runner.execute(&plan, &arguments, &mut NoRows)?;
            rows.check_length(&self.runner.evaluation)?;
            kept = plan.plan.is_cacheable.then_some(plan);
            totals.records += 1;
            totals.affected += outcome.affected;
            totals.skipped += 1_u64.saturating_sub(outcome.affected);
        }
        Ok(totals)
    }

    /// Where the fields go: to all columns if the statement does not list any.
    fn loader<'a>(&self, load: &'a LoadData) -> Result<Loader<'a>> {
        let schema =
            load.table.schema.as_deref().or(self.runner.state.connection.schema.as_deref());
        let schema = schema.ok_or_else(|| SqlError::new(1046, "No database selected"))?;
        let table = self.runner.catalog.table(schema, &load.table.name)?;
        let targets = match load.targets.is_empty() {
            true => {
                let given = table.visible_columns().filter(|column| column.generated.is_none());
                given.map(|column| LoadTarget::Column(column.name.to_string())).collect()
            }
            false => load.targets.clone(),
        };
        let comes_again = (0..targets.len()).map(|number| comes_again(&targets, number)).collect();
        Ok(Loader { load, table, targets, comes_again })
    }
}

/// How the rows of a file become rows of a table.
struct Loader<'a> {
    load: &'a LoadData,
    table: Arc<TableModel>,
    targets: Vec<LoadTarget>,
    /// For each target: whether a later field goes to the same column. The last one counts.
    comes_again: Vec<bool>,
}

impl Loader<'_> {
    /// The statement that inserts a row.
    fn statement(&self) -> String {
        let verb = match self.load.on_conflict {
            OnConflict::Replace => "REPLACE",
            OnConflict::Ignore => "INSERT IGNORE",
            _ => "INSERT",
        };
        let mut text = format!("{verb} INTO ");
        if let Some(schema) = &self.load.table.schema {
            let _ = write!(text, "{}.", identifier(schema));
        }
        text.push_str(&identifier(&self.load.table.name));
        let columns = self.columns();
        let set = self.load.set.iter().map(|one| identifier(&one.column.column));
        let all: Vec<String> = columns.iter().map(|name| identifier(name)).chain(set).collect();
        let _ = write!(text, " ({}) VALUES ", all.join(","));
        let values = columns.iter().map(|_| "?".to_owned());
        let set = self.load.set.iter().map(|one| match &one.value {
            ValueOrDefault::Value(value) => grammar::render(value),
            ValueOrDefault::Default => "DEFAULT".to_owned(),
        });
        let _ = write!(text, "({})", values.chain(set).collect::<Vec<_>>().join(","));
        text
    }

    fn columns(&self) -> Vec<&str> {
        let targets = self.targets.iter().zip(&self.comes_again);
        targets
            .filter_map(|(target, comes_again)| match target {
                LoadTarget::Column(name) if !comes_again => Some(name.as_str()),
                _ => None,
            })
            .collect()
    }

    /// What a column that cannot be NULL gets from a line without a field for it.
    fn default_of(&self, name: &str) -> Option<(Datum, SqlType)> {
        let column = self.table.column(name)?;
        let has_zero = !column.ty.nullable && !column.auto_increment;
        has_zero.then(|| (cast::implicit_default(&column.ty), column.ty.clone()))
    }

    /// The bytes of each field, if the format has no marks: those that clients are told of the
    /// column.
    ///
    /// # Errors
    /// 1409 if a field goes to a variable, 1054 for an unknown column.
    fn widths(&self) -> Result<Vec<usize>> {
        if !fields::has_fixed_widths(&self.load.format) {
            return Ok(Vec::new());
        }
        let width = |target: &LoadTarget| match target {
            LoadTarget::Column(name) => {
                let column = self.table.column(name);
                let column = column.ok_or_else(|| SqlError::unknown_column(name, "field list"))?;
                Ok(columns::length_bytes(&column.ty) as usize)
            }
            LoadTarget::Variable(_) => Err(SqlError::new(
                1409,
                "Can't load value from file with fixed size rows to variable",
            )),
        };
        self.targets.iter().map(width).collect()
    }
}

/// Whether every field goes to a column unchanged.
fn is_plain(loader: &Loader<'_>) -> bool {
    let has_columns_alone = loader.targets.iter().all(is_column);
    loader.load.set.is_empty() && has_columns_alone && !loader.comes_again.contains(&true)
}

/// Whether a later field goes to the column of a target.
fn comes_again(targets: &[LoadTarget], number: usize) -> bool {
    let LoadTarget::Column(name) = &targets[number] else { return false };
    targets[number + 1..].iter().any(|later| match later {
        LoadTarget::Column(later) => later.eq_ignore_ascii_case(name),
        LoadTarget::Variable(_) => false,
    })
}

fn is_column(target: &LoadTarget) -> bool {
    matches!(target, LoadTarget::Column(_))
}

/// The statement for a client's own file: the server cannot stop it from being sent, so errors
/// become warnings, as with `IGNORE`.
fn without_refusals(load: &LoadData) -> LoadData {
    let on_conflict = match load.on_conflict {
        OnConflict::Replace => OnConflict::Replace,
        _ => OnConflict::Ignore,
    };
    LoadData { on_conflict, ..load.clone() }
}

fn reading(error: std::io::Error) -> SqlError {
    SqlError::new(2, format!("Error reading the file: {error}"))
}
