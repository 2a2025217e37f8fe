//! Prepared statements: those of the binary protocol, and `PREPARE`, `EXECUTE`, `DEALLOCATE`.
//!
//! ```text
//!   prepare   text ─► statement, number of parameters, columns as far as they are known
//!   execute   values ─► types ─┬─ as last time, nothing has changed ─► the same plan
//!                              └─ otherwise ─► plan cache ─► a new plan
//! ```

use std::sync::Arc;

use firn_base::memory;
use firn_format::value as stored;
use firn_sql::catalog::notation::literal_text;
use firn_sql::error::{Result, SqlError};
use firn_sql::execute::SessionState;
use firn_sql::grammar::ast::{MaintenanceOperation, PrepareSource, Show, Statement};
use firn_sql::grammar::{self, LiteralKind};
use firn_sql::plan::StatementPlan;
use firn_sql::types::hexadecimal::hexadecimal_digits;
use firn_sql::types::{Datum, SqlType, TypeKind};
use firn_wire::{
    ColumnDefinition, EncodedColumns, Execution, Parameter, Prepared, Replies, WireError,
};

use super::document::WrittenStatement;
use super::execution::{Arguments, ParameterSource, number_value, write_tag};
use super::show::shown_columns;
use super::{SqlSession, wire_error};
use crate::columns;
use crate::plan_cache::{CachedPlan, LONGEST_KEY_BYTES};
use crate::status::{Command, count};

/// The longest text of an unknown parameter, in characters.
const UNKNOWN_CHARS: u32 = 16_383;

type Answered = std::result::Result<(), WireError>;

/// A prepared statement of a session.
pub(super) struct PreparedStatement {
    text: Arc<str>,
    /// The mode in which the text was parsed.
    mode: grammar::Mode,
    statement: Arc<Statement>,
    /// The statement's literals that are not in its tree.
    long_texts: grammar::LongTexts,
    parameter_count: usize,
    /// Whether it is run as a text with its values written in: it is not a planned statement, or a
    /// plan depends on a value.
    is_written_out: bool,
    /// Its key in the plan cache if that is not its text.
    key_text: Option<Box<str>>,
    /// The plan of the last execution.
    last: Option<LastPlan>,
}

/// A plan and the conditions under which it is valid.
struct LastPlan {
    plan: Arc<CachedPlan>,
    /// The kinds of the parameters' types.
    tags: Vec<u8>,
    /// The version of the session's temporary tables.
    temporary_version: u64,
    /// See [`SqlSession::epoch`].
    epoch: u64,
}

impl PreparedStatement {
    /// The stored parts; the rest is made again from them.
    pub(super) fn written(&self) -> WrittenStatement {
        WrittenStatement { text: self.text.to_string(), mode: self.mode }
    }
}

/// Prepares, runs and closes the prepared statements of a session.
pub(crate) struct PreparedStatements<'s> {
    pub(crate) session: &'s mut SqlSession,
}

impl PreparedStatements<'_> {
    pub(super) fn take_apart(
        &mut self,
        text: &str,
        mode: grammar::Mode,
    ) -> Result<PreparedStatement> {
        count(&self.session.facts.status.texts_parsed);
        let parsed = grammar::parse_apart(text, mode, &self.session.watch(true))?;
        if !may_be_prepared(&parsed.statement) {
            let why = "This command is not supported in the prepared statement protocol yet";
            return Err(SqlError::new(1295, why));
        }
        if parsed.parameter_count > 0 {
            refuse_parameters(&parsed.statement)?;
        }
        let is_written_out = parsed.parameter_count > 0
            && (!takes_parameters(&parsed.statement)
                || grammar::placeholders(text, mode).in_escape);
        let is_plain = grammar::normalise(text, mode, &mut self.session.buffers.normalised)
            && self
                .session
                .buffers
                .normalised
                .literals()
                .iter()
                .all(|one| one.kind == LiteralKind::Parameter);
        let key_text = is_plain.then(|| self.session.buffers.normalised.text().into());
        Ok(PreparedStatement {
            text: text.into(),
            mode,
            statement: Arc::new(parsed.statement),
            long_texts: parsed.long_texts,
            parameter_count: parsed.parameter_count as usize,
            is_written_out,
            key_text,
            last: None,
        })
    }

    /// `COM_STMT_PREPARE`
    ///
    /// # Errors
    /// Errors of the grammar and of binding.
    pub(crate) fn prepare_numbered(&mut self, number: u32, text: &[u8]) -> Result<Prepared> {
        self.session.facts.status.count_command(Command::StmtPrepare);
        let _promise = memory::ask(2 * text.len())?;
        let text = self.session.decode(text)?;
        self.session.conditions.clear();
        let prepared = self.take_apart(&text, self.session.grammar_mode())?;
        let (columns, types) = self.known_columns(&prepared)?;
        let results = self.session.settings.presentation.collation;
        let warnings = self.session.warning_count();
        let unknown = SqlType::varchar(UNKNOWN_CHARS, self.session.settings.connection_collation);
        let parameter = |number: usize| {
            let ty = types.get(number).and_then(Option::as_ref).unwrap_or(&unknown);
            columns::parameter(ty, results)
        };
        let parameters: Vec<ColumnDefinition> =
            (0..prepared.parameter_count).map(parameter).collect();
        self.session.state.connection.numbered.insert(number, Some(Box::new(prepared)));
        Ok(Prepared { parameters: EncodedColumns::new(&parameters), columns, warnings })
    }

    /// The result columns of a statement, and the types of its parameters.
    fn known_columns(
        &mut self,
        prepared: &PreparedStatement,
    ) -> Result<(EncodedColumns, Vec<Option<SqlType>>)> {
        self.session.rights.refresh()?;
        let none = EncodedColumns::new(&[]);
        match &*prepared.statement {
            Statement::Select(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_) => {
                let arguments = Arguments::default();
                let outer = self.lend_long_texts(prepared);
                let planned = self.session.plan_described(
                    &prepared.statement,
                    &arguments,
                    ParameterSource::Client,
                );
                self.session.buffers.long_texts = outer;
                let (plan, types) = planned?;
                self.session.rights.check_needs(&plan.needs)?;
                let results = self.session.settings.presentation.collation;
                self.session.conditions.extend_from_slice(&plan.plan.conditions);
                let is_into = matches!(&*prepared.statement, Statement::Select(select) if select.into.is_some());
                let columns = match &plan.plan.statement {
                    StatementPlan::Query(query) if !is_into => {
                        columns::encode_prepared(&query.columns, results)
                    }
                    _ => none,
                };
                Ok((columns, types))
            }
            Statement::Show(show) => Ok((self.session.show_columns(show)?, Vec::new())),
            Statement::Describe { table, column } => {
                let show = shown_columns(table, column.as_deref());
                Ok((self.session.show_columns(&show)?, Vec::new()))
            }
            _ => Ok((none, Vec::new())),
        }
    }

    /// `COM_STMT_EXECUTE`
    pub(crate) fn execute_numbered(
        &mut self,
        execution: Execution<'_>,
        replies: &mut Replies<'_>,
    ) -> Answered {
        self.session.facts.status.count_command(Command::StmtExecute);
        let place = self.session.state.connection.numbered.get_mut(&execution.statement);
        let Some(mut prepared) = place.and_then(Option::take) else {
            let number = execution.statement;
            let why = format!(
                "Unknown prepared statement handler ({number}) given to mysqld_stmt_execute"
            );
            return Err(wire_error(SqlError::new(1243, why)));
        };
        let mut arguments = std::mem::take(&mut self.session.buffers.arguments);
        let done = match self.given_arguments(execution.parameters, &mut arguments) {
            Ok(()) => self.run_prepared(&mut prepared, &arguments, replies),
            Err(error) => Err(wire_error(error)),
        };
        self.session.keep_arguments(arguments);
        if let Some(place) = self.session.state.connection.numbered.get_mut(&execution.statement) {
            *place = Some(prepared);
        }
        done
    }

    fn given_arguments(
        &self,
        parameters: &[Parameter<'_>],
        arguments: &mut Arguments,
    ) -> Result<()> {
        for parameter in parameters {
            let (value, ty) = self.parameter_value(parameter)?;
            arguments.values.push(value);
            arguments.types.push(ty);
        }
        Ok(())
    }

    fn parameter_value(&self, parameter: &Parameter<'_>) -> Result<(Datum, SqlType)> {
        let of_kind = |kind| SqlType::new(kind).not_null();
        Ok(match *parameter {
            Parameter::Null => (Datum::Null, SqlType::null()),
            Parameter::Int(number) => (Datum::Int(number), SqlType::bigint().not_null()),
            Parameter::UInt(number) => (Datum::UInt(number), SqlType::bigint_unsigned().not_null()),
            Parameter::Float(number) => {
                (Datum::Double(f64::from(number)), SqlType::double().not_null())
            }
            Parameter::Double(number) => (Datum::Double(number), SqlType::double().not_null()),
            Parameter::Decimal(text) => number_value(std::str::from_utf8(text).unwrap_or("0")),
            // Bytes that are invalid in the client's character set can only be meant for binary
            // columns.
            Parameter::Text(bytes) if !self.session.is_client_text(bytes) => {
                (Datum::try_text(bytes)?, SqlType::varbinary(65_535).not_null())
            }
            Parameter::Text(text) => {
                let text = self.session.decode(text)?;
                let ty = SqlType::varchar(65_535, self.session.settings.connection_collation);
                (Datum::try_text(text.as_bytes())?, ty.not_null())
            }
            Parameter::Bytes(bytes) => {
                (Datum::try_text(bytes)?, SqlType::varbinary(65_535).not_null())
            }
            Parameter::Date(date) => {
                (Datum::Date(packed_date(date).pack()), of_kind(TypeKind::Date))
            }
            Parameter::DateTime(value) => {
                let packed = stored::DateTime {
                    date: packed_date(value.date),
                    hour: value.hour,
                    minute: value.minute,
                    second: value.second,
                    microsecond: value.microsecond,
                };
                (Datum::DateTime(packed.pack()), of_kind(TypeKind::DateTime { fsp: 6 }))
            }
            Parameter::Time(value) => {
                let packed = stored::Time {
                    negative: value.negative,
                    hours: u16::try_from(value.hours).unwrap_or(u16::MAX),
                    minutes: value.minute,
                    seconds: value.second,
                    microseconds: value.microsecond,
                };
                (Datum::Time(packed.pack()), of_kind(TypeKind::Time { fsp: 6 }))
            }
        })
    }

    fn run_prepared(
        &mut self,
        prepared: &mut PreparedStatement,
        arguments: &Arguments,
        replies: &mut Replies<'_>,
    ) -> Answered {
        let text = Arc::clone(&prepared.text);
        let began = self.session.statement_begins(&text, Some(arguments));
        let done = loop {
            self.session.plan_is_stale = false;
            let done = match self.session.rights.count_use() {
                Ok(()) => self.run_prepared_now(prepared, arguments, replies),
                Err(error) => Err(wire_error(error)),
            };
            if done.is_ok() || !self.session.plan_is_stale || self.session.facts.is_cancelled() {
                break done;
            }
            prepared.last = None;
        };
        self.session.statement_ends(began, &text, Some(arguments), &done);
        done
    }

    fn run_prepared_now(
        &mut self,
        prepared: &mut PreparedStatement,
        arguments: &Arguments,
        replies: &mut Replies<'_>,
    ) -> Answered {
        if arguments.values.len() != prepared.parameter_count {
            return Err(wire_error(SqlError::new(1210, "Incorrect arguments to EXECUTE")));
        }
        if prepared.is_written_out {
            return self.run_written_out(&prepared.text, arguments, replies);
        }
        if !takes_parameters(&prepared.statement) {
            let statement = Arc::clone(&prepared.statement);
            let outer = self.lend_long_texts(prepared);
            let done = self.session.run_statement(&statement, None, replies);
            self.session.buffers.long_texts = outer;
            return done;
        }
        self.session.conditions.clear();
        let plan = self.session.rights.refresh().and_then(|()| self.plan_of(prepared, arguments));
        match plan {
            Ok(last) => {
                // Taken out and put back: all sessions share its reference count.
                let answered = self.session.run_plan(&last.plan, arguments, replies);
                prepared.last = last.plan.plan.is_cacheable.then_some(last);
                answered
            }
            Err(error) => {
                self.session.keep_error(&error);
                Err(wire_error(error))
            }
        }
    }

    /// Runs a statement as a text with the values in place of its parameters.
    fn run_written_out(
        &mut self,
        text: &str,
        arguments: &Arguments,
        replies: &mut Replies<'_>,
    ) -> Answered {
        let mode = self.session.grammar_mode();
        let places = grammar::placeholders(text, mode).places;
        let (mut whole, mut at) = (String::with_capacity(text.len()), 0);
        for (place, value) in places.iter().zip(arguments.values.iter().zip(&arguments.types)) {
            whole.push_str(&text[at..place.start]);
            whole.push_str(&written_value(value.0, value.1, !mode.no_backslash_escapes));
            at = place.end;
        }
        whole.push_str(&text[at..]);
        match self.session.parse(&whole, false) {
            Ok(parsed) => self.session.run_parsed(parsed, None, replies),
            Err(error) => {
                self.session.keep_error(&error);
                Err(wire_error(error))
            }
        }
    }

    /// The plan for an execution: that of the last one, which is taken out of the statement, if it
    /// is valid.
    fn plan_of(
        &mut self,
        prepared: &mut PreparedStatement,
        arguments: &Arguments,
    ) -> Result<LastPlan> {
        let temporary_version = self.session.catalog.temporary_version();
        let tags = &mut self.session.buffers.tags;
        tags.clear();
        arguments.types.iter().for_each(|ty| write_tag(&ty.kind, tags));
        let holds = |last: &mut LastPlan| {
            last.epoch == self.session.epoch
                && last.temporary_version == temporary_version
                && last.tags == *tags
                && last.plan.holds(self.session.catalog.shared(), &self.session.instance.plans)
                && last.plan.plan.holds_for(&arguments.values, &self.session.evaluation)
        };
        if let Some(last) = prepared.last.take_if(holds) {
            return Ok(last);
        }
        let plan = self.find_plan(prepared, arguments)?;
        let (tags, epoch) = (self.session.buffers.tags.clone(), self.session.epoch);
        Ok(LastPlan { plan, tags, temporary_version, epoch })
    }

    fn find_plan(
        &mut self,
        prepared: &PreparedStatement,
        arguments: &Arguments,
    ) -> Result<Arc<CachedPlan>> {
        let may_share = self.session.shares_plans() && prepared.text.len() <= LONGEST_KEY_BYTES;
        if may_share {
            self.write_prepared_key(prepared, arguments);
            let found = self
                .session
                .instance
                .plans
                .get(&self.session.buffers.key, self.session.catalog.shared());
            let holds = |plan: &Arc<CachedPlan>| {
                plan.plan.holds_for(&arguments.values, &self.session.evaluation)
            };
            if let Some(plan) = found.filter(holds) {
                count(&self.session.facts.status.plan_cache_hits);
                return Ok(plan);
            }
        }
        count(&self.session.facts.status.plan_cache_misses);
        let outer = self.lend_long_texts(prepared);
        let planned = self.session.plan(&prepared.statement, arguments);
        self.session.buffers.long_texts = outer;
        let plan = Arc::new(planned?);
        if may_share && plan.plan.is_cacheable {
            self.write_prepared_key(prepared, arguments);
            self.session.instance.plans.put(&self.session.buffers.key, Arc::clone(&plan));
        }
        Ok(plan)
    }

    /// The key of the plan cache for a prepared statement. An unnormalised text has a mark before
    /// it.
    fn write_prepared_key(&mut self, prepared: &PreparedStatement, arguments: &Arguments) {
        match &prepared.key_text {
            Some(text) => self.session.write_key_of(text, arguments),
            None => self.session.write_key_of(&format!("\u{1}{}", prepared.text), arguments),
        }
    }

    /// Makes the statement's long literals available for planning; returns those of another
    /// statement that were there.
    fn lend_long_texts(&mut self, prepared: &PreparedStatement) -> grammar::LongTexts {
        std::mem::replace(&mut self.session.buffers.long_texts, prepared.long_texts.clone())
    }

    /// `PREPARE … FROM`
    ///
    /// # Errors
    /// Errors of the grammar and of binding.
    pub(super) fn run_prepare(&mut self, name: &str, source: &PrepareSource) -> Result<()> {
        let text = match source {
            PrepareSource::Text(text) => text.clone(),
            PrepareSource::Variable(variable) => {
                match self.session.state.user_variable(&variable.to_lowercase())? {
                    Datum::Text(text) => String::from_utf8_lossy(&text).into_owned(),
                    _ => "NULL".to_owned(),
                }
            }
        };
        self.session.state.connection.named.remove(&name.to_lowercase());
        let prepared = self.take_apart(&text, self.session.grammar_mode())?;
        self.known_columns(&prepared)?;
        self.session.state.connection.named.insert(name.to_lowercase(), prepared);
        Ok(())
    }

    /// `EXECUTE … USING`
    pub(super) fn run_named(
        &mut self,
        name: &str,
        using: &[String],
        replies: &mut Replies<'_>,
    ) -> Answered {
        let key = name.to_lowercase();
        let Some(mut prepared) = self.session.state.connection.named.remove(&key) else {
            return Err(wire_error(unknown_name(name, "EXECUTE")));
        };
        let mut arguments = Arguments::default();
        for variable in using {
            let found =
                self.session.state.connection.user_variables.get(variable.to_lowercase().as_str());
            let (value, ty) = found.cloned().unwrap_or((Datum::Null, SqlType::null()));
            arguments.values.push(value);
            arguments.types.push(ty);
        }
        let done = self.run_prepared_now(&mut prepared, &arguments, replies);
        self.session.state.connection.named.insert(key, prepared);
        done
    }

    /// `DEALLOCATE PREPARE`
    ///
    /// # Errors
    /// 1243 if there is none with that name.
    pub(super) fn run_deallocate(&mut self, name: &str) -> Result<()> {
        match self.session.state.connection.named.remove(&name.to_lowercase()) {
            Some(_) => Ok(()),
            None => Err(unknown_name(name, "DEALLOCATE PREPARE")),
        }
    }
}

/// Whether MySQL prepares a statement: not if it is about prepared ones, or about the result of the
/// last one.
fn may_be_prepared(statement: &Statement) -> bool {
    match statement {
        Statement::Prepare { .. } | Statement::Execute { .. } | Statement::Deallocate(_) => false,
        Statement::Show(show) => !matches!(
            **show,
            Show::Warnings(_) | Show::Errors(_) | Show::WarningCount | Show::ErrorCount
        ),
        Statement::TableMaintenance(work) => work.operation != MaintenanceOperation::Check,
        _ => true,
    }
}

/// Whether the statement is planned, and so can have parameters.
fn takes_parameters(statement: &Statement) -> bool {
    match statement {
        Statement::Select(select) => select.into.is_none(),
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => true,
        _ => false,
    }
}

/// Refuses parameters where MySQL accepts none.
fn refuse_parameters(statement: &Statement) -> Result<()> {
    match statement {
        Statement::CreateView(_) => {
            Err(SqlError::new(1351, "View's SELECT contains a variable or parameter"))
        }
        Statement::Kill { .. } => {
            Err(SqlError::new(6413, "Dynamic parameters can only be used in DML statements."))
        }
        _ => Ok(()),
    }
}

/// A value as written in a statement, so that it keeps its type there.
fn written_value(value: &Datum, ty: &SqlType, escapes: bool) -> String {
    let text = |text: &str| {
        let text = text.replace('\'', "''");
        if escapes { text.replace('\\', "\\\\") } else { text }
    };
    match value {
        Datum::Text(bytes) => match (bytes.as_str(), ty.kind.is_binary()) {
            (Some(written), false) => format!("'{}'", text(written)),
            _ => format!("x'{}'", hexadecimal_digits(bytes)),
        },
        Datum::Double(number) if number.is_finite() => format!("{number:e}"),
        Datum::Date(_) | Datum::Time(_) | Datum::DateTime(_) => {
            let written = literal_text(value, ty);
            let name = match value {
                // Zeros are not dates as literals.
                _ if !matches!(value, Datum::Time(_)) && written.contains("-00") => "",
                Datum::Date(_) => "DATE",
                Datum::Time(_) => "TIME",
                _ => "TIMESTAMP",
            };
            format!("{name}'{written}'")
        }
        _ => literal_text(value, ty),
    }
}

fn unknown_name(name: &str, given_to: &str) -> SqlError {
    let why = format!("Unknown prepared statement handler ({name}) given to {given_to}");
    SqlError::new(1243, why)
}

fn packed_date(date: firn_wire::Date) -> stored::Date {
    stored::Date { year: date.year, month: date.month, day: date.day }
}
