//! Prepared statements: those of the binary protocol, and `PREPARE`, `EXECUTE`, `DEALLOCATE`.
//!
//! ```text
//!   prepare   text ─► statement, number of parameters, columns as far as they are known
//!   execute   see [`super::prepared_execution`]
//! ```

use std::sync::Arc;

use firn_base::memory;
use firn_sql::error::{Result, SqlError};
use firn_sql::execute::SessionState;
use firn_sql::grammar::ast::{MaintenanceOperation, PrepareSource, Show, Statement};
use firn_sql::grammar::{self, LiteralKind};
use firn_sql::plan::StatementPlan;
use firn_sql::types::{Datum, SqlType};
use firn_wire::{ColumnDefinition, EncodedColumns, Execution, Prepared, Replies};
use rustc_hash::FxHashMap;

use super::answers::{Answered, wire_error};
use super::arguments::Arguments;
use super::document::WrittenStatement;
use super::handler::Handlers;
use super::hinted_variables::{BeforeHints, may_have_hints};
use super::parameters;
use super::planning::ParameterSource;
use super::prepared_execution::{LastPlan, PlanBuffers, PreparedExecution, takes_parameters};
use super::runner::StatementRunner;
use super::show::{ShowStatements, shown_columns};
use crate::columns;
use crate::status::{Command, count};

/// The longest text of an unknown parameter, in characters.
const UNKNOWN_CHARS: u32 = 16_383;

/// The prepared statements of a session, and memory that their executions reuse.
#[derive(Default)]
pub(super) struct PreparedStatements {
    /// Statements of the binary protocol by their number.
    pub(super) numbered: FxHashMap<u32, Box<PreparedStatement>>,
    /// Statements by their name in `PREPARE`, in lower case.
    pub(super) named: FxHashMap<String, PreparedStatement>,
    /// Counts statements that were prepared or dropped.
    pub(super) changes: u64,
    arguments: Arguments,
    buffers: PlanBuffers,
}

/// A prepared statement of a session.
pub(super) struct PreparedStatement {
    pub(super) text: Arc<str>,
    /// The mode in which the text was parsed.
    mode: grammar::Mode,
    pub(super) statement: Statement,
    /// The statement's literals that are not in its tree.
    pub(super) long_texts: grammar::LongTexts,
    pub(super) parameter_count: usize,
    /// Whether it is run as a text with its values written in: it is not a planned statement, or a
    /// plan depends on a value.
    pub(super) is_written_out: bool,
    /// Its key in the plan cache if that is not its text.
    pub(super) key_text: Option<Box<str>>,
    may_have_hints: bool,
    /// The numbers of the parameters that are row counts of `LIMIT`.
    row_counts: Vec<usize>,
    /// The plan of the last execution.
    pub(super) last: Option<LastPlan>,
}

impl PreparedStatement {
    /// Prepares a text.
    ///
    /// # Errors
    /// Errors of the grammar; 1295 for statements that cannot be prepared.
    pub(super) fn new(
        runner: &StatementRunner,
        text: &str,
        mode: grammar::Mode,
    ) -> Result<PreparedStatement> {
        count(&runner.facts.status.texts_parsed);
        let parsed = grammar::parse_apart(text, mode, &runner.watch(true))?;
        if !may_be_prepared(&parsed.statement) {
            return Err(not_preparable());
        }
        if parsed.parameter_count > 0 {
            refuse_parameters(&parsed.statement)?;
        }
        let placeholders = match parsed.parameter_count {
            0 => grammar::Placeholders::default(),
            _ => grammar::placeholders(text, mode),
        };
        let is_written_out = parsed.parameter_count > 0
            && (!takes_parameters(&parsed.statement) || placeholders.in_escape);
        let mut normalised = grammar::Normalised::default();
        let is_plain = grammar::normalise(text, mode, &mut normalised)
            && normalised.literals().iter().all(|one| one.kind == LiteralKind::Parameter);
        Ok(PreparedStatement {
            text: text.into(),
            mode,
            statement: parsed.statement,
            long_texts: parsed.long_texts,
            parameter_count: parsed.parameter_count as usize,
            is_written_out,
            may_have_hints: may_have_hints(text),
            row_counts: placeholders.row_counts,
            key_text: is_plain.then(|| normalised.text().into()),
            last: None,
        })
    }

    /// As [`StatementRunner::begin_hints`], for one execution.
    #[inline]
    pub(super) fn begin_hints(&self, runner: &mut StatementRunner) -> Option<Box<BeforeHints>> {
        if self.may_have_hints { runner.begin_hints(&self.text) } else { None }
    }

    /// The stored parts; the rest is made again from them.
    pub(super) fn written(&self) -> WrittenStatement {
        WrittenStatement { text: self.text.to_string(), mode: self.mode }
    }

    /// The result columns of the statement, and the types of its parameters.
    fn known_columns(
        &self,
        runner: &mut StatementRunner,
    ) -> Result<(EncodedColumns, Vec<Option<SqlType>>)> {
        runner.rights.refresh()?;
        let none = EncodedColumns::new(&[]);
        match &self.statement {
            Statement::Select(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_) => {
                let client = ParameterSource::Client;
                let planned = runner.with_long_texts(self.long_texts.clone(), |runner| {
                    runner.plan_described(&self.statement, &Arguments::default(), client)
                });
                let (plan, types) = planned?;
                runner.rights.check_needs(&plan.needs)?;
                let results = runner.settings.presentation.collation;
                runner.state.diagnostics.conditions.extend_from_slice(&plan.plan.conditions);
                let is_into =
                    matches!(&self.statement, Statement::Select(select) if select.into.is_some());
                let columns = match &plan.plan.statement {
                    StatementPlan::Query(query) if !is_into => {
                        columns::encode_prepared(&query.columns, results)
                    }
                    _ => none,
                };
                Ok((columns, types))
            }
            Statement::Show(show) => Ok((ShowStatements { runner }.columns(show)?, Vec::new())),
            Statement::Describe { table, column } => {
                let show = shown_columns(table, column.as_deref());
                Ok((ShowStatements { runner }.columns(&show)?, Vec::new()))
            }
            _ => Ok((none, Vec::new())),
        }
    }
}

/// Prepares and runs statements of the binary protocol in a session.
pub(super) struct NumberedStatements<'s> {
    pub(super) runner: &'s mut StatementRunner,
    pub(super) handlers: &'s mut Handlers,
    pub(super) prepared: &'s mut PreparedStatements,
}

impl NumberedStatements<'_> {
    /// `COM_STMT_PREPARE`
    ///
    /// # Errors
    /// Errors of the grammar and of binding.
    pub(super) fn prepare(&mut self, number: u32, text: &[u8]) -> Result<Prepared> {
        let runner = &mut *self.runner;
        runner.facts.status.count_command(Command::StmtPrepare);
        let _promise = memory::ask(2 * text.len())?;
        let text = runner.settings.decode(text)?;
        runner.catch_up(&text)?;
        runner.state.diagnostics.clear();
        let prepared = PreparedStatement::new(runner, &text, runner.settings.grammar_mode())?;
        let (columns, types) = prepared.known_columns(runner)?;
        let results = runner.settings.presentation.collation;
        let warnings = runner.state.diagnostics.told();
        let unknown = SqlType::varchar(UNKNOWN_CHARS, runner.settings.connection_collation);
        let parameter = |number: usize| {
            let ty = types.get(number).and_then(Option::as_ref).unwrap_or(&unknown);
            columns::parameter(ty, results)
        };
        let parameters: Vec<ColumnDefinition> =
            (0..prepared.parameter_count).map(parameter).collect();
        self.prepared.numbered.insert(number, Box::new(prepared));
        self.prepared.changes += 1;
        Ok(Prepared { parameters: EncodedColumns::new(&parameters), columns, warnings })
    }

    /// `COM_STMT_EXECUTE`
    pub(super) fn execute(
        &mut self,
        execution: Execution<'_>,
        replies: &mut Replies<'_>,
    ) -> Answered {
        self.runner.facts.status.count_command(Command::StmtExecute);
        let PreparedStatements { numbered, arguments, buffers, .. } = &mut *self.prepared;
        let Some(prepared) = numbered.get_mut(&execution.statement) else {
            let number = execution.statement;
            let why = format!(
                "Unknown prepared statement handler ({number}) given to mysqld_stmt_execute"
            );
            return Err(wire_error(SqlError::new(1243, why)));
        };
        let (runner, handlers) = (&mut *self.runner, &mut *self.handlers);
        let done = match parameters::add_given(&runner.settings, execution.parameters, arguments) {
            Ok(()) => PreparedExecution { runner, handlers, prepared, arguments, buffers }
                .run_measured(replies),
            Err(error) => Err(wire_error(error)),
        };
        arguments.clear();
        done
    }
}

/// Runs `PREPARE`, `EXECUTE` and `DEALLOCATE PREPARE` in a session.
pub(super) struct NamedStatements<'s> {
    pub(super) runner: &'s mut StatementRunner,
    pub(super) handlers: &'s mut Handlers,
    pub(super) prepared: &'s mut PreparedStatements,
}

impl NamedStatements<'_> {
    /// `PREPARE … FROM`
    ///
    /// # Errors
    /// Errors of the grammar and of binding.
    pub(super) fn run_prepare(&mut self, name: &str, source: &PrepareSource) -> Result<()> {
        let runner = &mut *self.runner;
        let text = match source {
            PrepareSource::Text(text) => text.clone(),
            PrepareSource::Variable(variable) => {
                match runner.state.user_variable(&variable.to_lowercase())? {
                    Datum::Text(text) => String::from_utf8_lossy(&text).into_owned(),
                    _ => "NULL".to_owned(),
                }
            }
        };
        self.prepared.changes += 1;
        self.prepared.named.remove(&name.to_lowercase());
        let prepared = PreparedStatement::new(runner, &text, runner.settings.grammar_mode())?;
        prepared.known_columns(runner)?;
        self.prepared.named.insert(name.to_lowercase(), prepared);
        Ok(())
    }

    /// `EXECUTE … USING`
    pub(super) fn run_named(
        &mut self,
        name: &str,
        using: &[String],
        replies: &mut Replies<'_>,
    ) -> Answered {
        let PreparedStatements { named, buffers, .. } = &mut *self.prepared;
        let Some(prepared) = named.get_mut(&name.to_lowercase()) else {
            return Err(wire_error(unknown_name(name, "EXECUTE")));
        };
        let mut arguments = Arguments::default();
        for variable in using {
            let user_variables = &self.runner.state.connection.user_variables;
            let found = user_variables.get(variable.to_lowercase().as_str());
            arguments.push(found.cloned().unwrap_or((Datum::Null, SqlType::null())));
        }
        // The protocol's own execution takes a text for a row count, this one does not.
        let is_text =
            |number: &usize| matches!(arguments.values.get(*number), Some(Datum::Text(_)));
        if prepared.row_counts.iter().any(is_text) {
            let error = SqlError::new(1210, "Incorrect arguments to EXECUTE");
            return Err(self.runner.refused(error));
        }
        let (runner, handlers) = (&mut *self.runner, &mut *self.handlers);
        let hinted = prepared.begin_hints(runner);
        let mut execution =
            PreparedExecution { runner, handlers, prepared, arguments: &arguments, buffers };
        let done = execution.run(replies);
        execution.runner.end_hints(hinted);
        done
    }

    /// `DEALLOCATE PREPARE`
    ///
    /// # Errors
    /// 1243 if there is none with that name.
    pub(super) fn run_deallocate(&mut self, name: &str) -> Result<()> {
        self.prepared.changes += 1;
        match self.prepared.named.remove(&name.to_lowercase()) {
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

/// The error for a statement that cannot be prepared.
pub(super) fn not_preparable() -> SqlError {
    SqlError::new(1295, "This command is not supported in the prepared statement protocol yet")
}

fn unknown_name(name: &str, given_to: &str) -> SqlError {
    let why = format!("Unknown prepared statement handler ({name}) given to {given_to}");
    SqlError::new(1243, why)
}
