//! `LOAD DATA`: lines of a file as rows, inserted in batches by one plan.
//!
//! ```text
//!   file ─► lines of fields ─► parameters of INSERT … VALUES (?, …), (?, …), …   100 rows at a time
//!                          └─► user variables, and INSERT … SELECT ?, expression   with SET or @variables
//! ```

mod fields;

use std::fmt::Write;
use std::io::{BufReader, Read};

use firn_sql::catalog::type_text::identifier;
use firn_sql::collation::Charset;
use firn_sql::error::{Result, SqlError};
use firn_sql::execute::SessionState;
use firn_sql::grammar::{
    self, ast::LoadData, ast::LoadTarget, ast::OnConflict, ast::ValueOrDefault,
};
use firn_sql::types::{Datum, SqlType};
use firn_wire::{Replies, WireError};

use super::execution::{Arguments, NoRows};
use super::{SqlSession, told};
use crate::accounts::Privilege;
use crate::plan_cache::CachedPlan;
use crate::privileges::{self, Need};
use fields::{Field, FieldReader};

type Answered = std::result::Result<(), WireError>;

/// Rows in one execution of the plan.
const BATCH_ROWS: usize = 100;
/// The longest field that is taken.
const LONGEST_FIELD_BYTES: usize = 1 << 30;
/// Bytes that are read from the file at once.
const READ_BYTES: usize = 1 << 18;

/// What has come of it so far.
#[derive(Default)]
struct Totals {
    records: u64,
    affected: u64,
    skipped: u64,
}

impl SqlSession {
    pub(super) fn run_load_data(&mut self, load: &LoadData, replies: &mut Replies<'_>) -> Answered {
        let loaded = match load.local {
            true => self.load_from_client(load, replies)?,
            false => self.load_from_server(load),
        };
        match loaded {
            Ok(totals) => {
                let warnings = self.conditions.len();
                let info = format!(
                    "Records: {}  Deleted: 0  Skipped: {}  Warnings: {warnings}",
                    totals.records, totals.skipped
                );
                self.answer_affected(totals.affected, 0, &info, replies)
            }
            Err(error) => {
                self.keep_error(&error);
                Err(told(error))
            }
        }
    }

    fn load_from_client(
        &mut self,
        load: &LoadData,
        replies: &mut Replies<'_>,
    ) -> std::result::Result<Result<Totals>, WireError> {
        if !self.instance.variables.get("local_infile").is_some_and(|on| on.is_on()) {
            let why = "Loading local data is disabled; this must be enabled on both the client and server sides";
            return Ok(Err(SqlError::new(3948, why)));
        }
        let schema = load.table.schema.as_deref().or(self.state.schema.as_deref()).unwrap_or("");
        let need = Need::on_table(Privilege::INSERT, schema, &load.table.name);
        if let Err(error) =
            privileges::check(&[need], &self.grants, &self.account.name, &self.facts.host)
        {
            return Ok(Err(error));
        }
        let file = replies.local_infile(load.path.as_bytes())?;
        Ok(self.load(load, file))
    }

    fn load_from_server(&mut self, load: &LoadData) -> Result<Totals> {
        let path = self.secure_path(&load.path, true)?;
        let schema = load.table.schema.as_deref().or(self.state.schema.as_deref()).unwrap_or("");
        let needs = [Need::on_table(Privilege::INSERT, schema, &load.table.name)];
        privileges::check(&needs, &self.grants, &self.account.name, &self.facts.host)?;
        let file = std::fs::File::open(&path).map_err(|error| {
            SqlError::new(29, format!("File '{}' not found ({error})", path.display()))
        })?;
        self.load(load, file)
    }

    fn load(&mut self, load: &LoadData, file: impl Read) -> Result<Totals> {
        let charset = match load.charset.as_deref() {
            Some(name) => super::settings::charset(name)?,
            None => Charset::Utf8mb4,
        };
        let lasting = self.transactions.is_lasting();
        if !lasting {
            // All batches are one statement's, so they are one transaction's.
            let node = std::sync::Arc::clone(&self.instance.node);
            self.transactions.begin(&*node, &self.settings, &self.facts, true, None)?;
        }
        let savepoint = self.transactions.open.as_ref().map(|open| open.inner.savepoint());
        let loaded = self.load_batches(load, file, charset);
        match (&loaded, lasting) {
            (Ok(_), true) => {}
            (Ok(_), false) => self.transactions.commit()?,
            (Err(_), false) => self.transactions.roll_back_quietly(),
            (Err(_), true) => {
                if let (Some(open), Some(savepoint)) = (&mut self.transactions.open, savepoint) {
                    open.inner
                        .rollback_to(savepoint)
                        .map_err(firn_sql::execute::error::from_rows)?;
                }
            }
        }
        loaded
    }

    fn load_batches(
        &mut self,
        load: &LoadData,
        file: impl Read,
        charset: Charset,
    ) -> Result<Totals> {
        let input = BufReader::with_capacity(READ_BYTES, file);
        let mut reader = FieldReader::new(input, &load.format, LONGEST_FIELD_BYTES);
        let mut fields = Vec::new();
        for _ in 0..load.ignore_lines {
            if !reader.read_line(&mut fields).map_err(reading)? {
                break;
            }
        }
        let batch_rows = if is_plain(load) { BATCH_ROWS } else { 1 };
        let targets = self.load_targets(load)?;
        let mut loader = Loader { load, targets, whole: None, batch_rows };
        let mut totals = Totals::default();
        let mut rows: Vec<Vec<Field>> = Vec::with_capacity(batch_rows);
        loop {
            let more = reader.read_line(&mut fields).map_err(reading)?;
            if more {
                decode(&mut fields, charset)?;
                rows.push(std::mem::take(&mut fields));
            }
            if rows.len() == batch_rows || !more && !rows.is_empty() {
                self.load_batch(&mut loader, &mut rows, &mut totals)?;
            }
            if !more {
                return Ok(totals);
            }
        }
    }

    /// Where the fields go, all columns if the statement does not say.
    fn load_targets(&self, load: &LoadData) -> Result<Vec<LoadTarget>> {
        if !load.targets.is_empty() {
            return Ok(load.targets.clone());
        }
        let schema = load.table.schema.as_deref().or(self.state.schema.as_deref());
        let schema = schema.ok_or_else(|| SqlError::new(1046, "No database selected"))?;
        let table = self.catalog.table(schema, &load.table.name)?;
        let given = table.visible_columns().filter(|column| column.generated.is_none());
        Ok(given.map(|column| LoadTarget::Column(column.name.to_string())).collect())
    }

    fn load_batch(
        &mut self,
        loader: &mut Loader<'_>,
        rows: &mut Vec<Vec<Field>>,
        totals: &mut Totals,
    ) -> Result<()> {
        let mut arguments = Arguments::default();
        let ty = SqlType::varchar(65_535, self.settings.connection_collation);
        for row in rows.iter_mut() {
            self.check_fields(loader, row, totals.records)?;
            for (number, target) in loader.targets.iter().enumerate() {
                let field = row.get_mut(number).and_then(Option::take);
                let value = field.map_or(Datum::Null, |bytes| Datum::text(bytes.as_slice()));
                match target {
                    LoadTarget::Column(_) => {
                        arguments.values.push(value);
                        arguments.types.push(ty.clone());
                    }
                    LoadTarget::Variable(name) => {
                        self.state.set_user_variable(&name.to_lowercase(), &value, &ty);
                    }
                }
            }
            totals.records += 1;
        }
        let count = rows.len();
        rows.clear();
        let plan = match loader.whole.take() {
            Some(plan) if count == loader.batch_rows => plan,
            _ => self.load_plan(loader, count, &arguments)?,
        };
        let outcome = self.execute(&plan, &arguments, &mut NoRows)?;
        if count == loader.batch_rows && plan.plan.is_cacheable {
            loader.whole = Some(plan);
        }
        totals.affected += outcome.affected;
        totals.skipped += (count as u64).saturating_sub(outcome.affected);
        Ok(())
    }

    /// Lines that are too short or too long.
    fn check_fields(&self, loader: &Loader<'_>, row: &[Field], record: u64) -> Result<()> {
        let (given, wanted) = (row.len(), loader.targets.len());
        let row = record + 1;
        let ignores = loader.load.on_conflict == OnConflict::Ignore;
        let strict = self.settings.sql_mode.is_strict() && !ignores;
        let (code, message) = match given {
            given if given < wanted => {
                (1261, format!("Row {row} doesn't contain data for all columns"))
            }
            given if given > wanted => (
                1262,
                format!(
                    "Row {row} was truncated; it contained more data than there were input columns"
                ),
            ),
            _ => return Ok(()),
        };
        if strict {
            return Err(SqlError::new(code, message));
        }
        self.evaluation.warn(code, || message);
        Ok(())
    }

    fn load_plan(
        &mut self,
        loader: &Loader<'_>,
        rows: usize,
        arguments: &Arguments,
    ) -> Result<CachedPlan> {
        let text = loader.statement(rows);
        let parsed = grammar::parse(&text, grammar::Mode::default())?;
        self.plan(&parsed.statement, arguments)
    }
}

/// How the rows of a file become rows of a table.
struct Loader<'a> {
    load: &'a LoadData,
    targets: Vec<LoadTarget>,
    /// The plan of a whole batch.
    whole: Option<CachedPlan>,
    batch_rows: usize,
}

impl Loader<'_> {
    /// The statement that inserts so many rows.
    fn statement(&self, rows: usize) -> String {
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
        let row = format!("({})", values.chain(set).collect::<Vec<_>>().join(","));
        text.push_str(&vec![row; rows].join(","));
        text
    }

    fn columns(&self) -> Vec<&str> {
        self.targets
            .iter()
            .filter_map(|target| match target {
                LoadTarget::Column(name) => Some(name.as_str()),
                LoadTarget::Variable(_) => None,
            })
            .collect()
    }
}

/// Whether every field goes to a column as it is.
fn is_plain(load: &LoadData) -> bool {
    let is_column = |target: &LoadTarget| matches!(target, LoadTarget::Column(_));
    load.set.is_empty() && load.targets.iter().all(is_column)
}

fn decode(fields: &mut [Field], charset: Charset) -> Result<()> {
    if charset.is_unicode() || charset == Charset::Binary {
        return Ok(());
    }
    for field in fields.iter_mut().flatten() {
        let decoded = charset.decode(field).ok_or_else(|| {
            SqlError::new(1300, format!("Invalid {} character string", charset.name()))
        })?;
        *field = decoded.into_owned();
    }
    Ok(())
}

fn reading(error: std::io::Error) -> SqlError {
    SqlError::new(2, format!("Error reading the file: {error}"))
}
