//! Answers to clients: rows that are made here and not by a plan, OK, or an error.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_sql::catalog::virtual_table_metadata::{self, ReportedColumns};
use firn_sql::collation::LikePattern;
use firn_sql::error::{Result, SqlError};
use firn_sql::execute::{Outcome, ResultSink};
use firn_sql::expression::{Expression, ExpressionKind};
use firn_sql::plan::OutputColumn;
use firn_sql::types::{Datum, EvaluationContext, SqlMode, SqlType};
use firn_wire::{Completion, Replies, ServerError, SessionChange, Status, WireError};

use super::runner::StatementRunner;
use super::settings::Settings;
use super::statement_view::{Change, State};
use super::transaction::Transactions;
use crate::columns;
use crate::session_facts::Facts;
use crate::statement_kind::StatementKind;
use crate::wire_rows::WireSink;

/// How a statement was answered.
pub(super) type Answered = std::result::Result<(), WireError>;

/// A few rows, known at once.
#[derive(Debug, Default, Clone)]
pub(crate) struct Table {
    pub(crate) columns: Vec<(String, SqlType)>,
    pub(crate) rows: Vec<Vec<Datum>>,
    /// What clients see of the columns instead of what their types say.
    pub(crate) shown: Option<&'static ReportedColumns>,
}

impl Table {
    /// A table whose columns are text.
    pub(crate) fn of_text(columns: &[&str]) -> Table {
        let column = |name: &&str| ((*name).to_owned(), text_type());
        Table { columns: columns.iter().map(column).collect(), ..Table::default() }
    }

    /// Describes its columns as those of a `SHOW` statement.
    pub(crate) fn shown_as(self, statement: &str) -> Table {
        Table { shown: virtual_table_metadata::shown(statement), ..self }
    }

    /// Adds a row of texts.
    pub(crate) fn push_text(&mut self, row: &[&str]) {
        self.rows.push(row.iter().map(|text| Datum::text(text.as_bytes())).collect());
    }

    /// Keeps the rows whose first column is `LIKE` a pattern.
    pub(crate) fn keep_like(&mut self, pattern: &str) {
        let collation = firn_sql::collation::get(firn_format::value::CollationId(45));
        let pattern = LikePattern::new(collation, pattern.as_bytes(), Some('\\'));
        self.rows.retain(|row| {
            row.first().and_then(Datum::as_bytes).is_some_and(|name| pattern.matches(name))
        });
    }

    /// The columns as a plan would have them.
    pub(crate) fn output_columns(&self) -> Vec<OutputColumn> {
        let column = |(name, ty): &(String, SqlType)| OutputColumn {
            value: Expression { kind: ExpressionKind::Literal(Datum::Null), ty: ty.clone() },
            name: Arc::from(name.as_str()),
            origin: None,
            display: None,
        };
        self.columns.iter().map(column).collect()
    }
}

pub(crate) fn text_type() -> SqlType {
    SqlType::varchar(1024, firn_format::value::CollationId(255))
}

pub(super) struct Answers<'s> {
    settings: &'s Settings,
    transactions: &'s Transactions,
    state: &'s mut State,
    evaluation: &'s EvaluationContext,
    facts: &'s Facts,
}

impl<'s> Answers<'s> {
    #[inline]
    pub(super) fn of(runner: &'s mut StatementRunner) -> Answers<'s> {
        let StatementRunner { settings, transactions, state, evaluation, facts, .. } = runner;
        Answers { settings, transactions, state, evaluation, facts }
    }
}

impl Answers<'_> {
    /// Sends rows.
    pub(super) fn table(&self, table: &Table, replies: &mut Replies<'_>) -> Answered {
        let results = self.settings.presentation.collation;
        let encoded = table.shown.map(|shown| {
            columns::encode_reported(&table.output_columns(), &shown.answered, results)
        });
        let mut sink = WireSink::new(replies, &self.settings.presentation, encoded.as_ref());
        if let Err(error) = send(table, &mut sink) {
            return Err(sink.into_broken().unwrap_or_else(|| wire_error(error)));
        }
        sink.finish(&self.completion())
    }

    /// What follows rows.
    pub(super) fn completion(&self) -> Completion<'static> {
        let status = status(self.settings, self.transactions);
        Completion { status, warnings: self.state.diagnostics.told(), ..Completion::default() }
    }

    /// Answers a statement without rows.
    pub(super) fn ok(&mut self, replies: &mut Replies<'_>) -> Answered {
        self.affected(0, 0, "", replies)
    }

    /// Answers a statement that wrote.
    pub(super) fn affected(
        &mut self,
        affected_rows: u64,
        last_insert_id: u64,
        info: &str,
        replies: &mut Replies<'_>,
    ) -> Answered {
        let changes = &self.state.changes;
        let told_changes: Vec<SessionChange<'_>> = match replies.tracks_session() {
            true => changes.iter().map(told_change).collect(),
            false => Vec::new(),
        };
        let sent = replies.ok(&Completion {
            affected_rows,
            last_insert_id,
            info,
            changes: &told_changes,
            ..self.completion()
        });
        self.state.changes.clear();
        sent
    }

    /// Answers a statement that was planned and wrote.
    pub(super) fn written(
        &mut self,
        kind: StatementKind,
        outcome: &Outcome,
        counts_found: bool,
        replies: &mut Replies<'_>,
    ) -> Answered {
        let found = counts_found && kind == StatementKind::Update;
        let affected = match kind.writes() {
            true if found => outcome.found,
            true => outcome.affected,
            false => 0,
        };
        self.facts.row_count.store(affected as i64, Ordering::Relaxed);
        self.affected(affected, outcome.last_insert_id, &outcome.info, replies)
    }

    /// OK, or the error.
    pub(super) fn done(&mut self, done: Result<()>, replies: &mut Replies<'_>) -> Answered {
        match done {
            Ok(()) => {
                self.state.diagnostics.keep(self.evaluation);
                self.state.diagnostics.count();
                self.facts.row_count.store(0, Ordering::Relaxed);
                self.ok(replies)
            }
            Err(error) => Err(self.refused(error)),
        }
    }

    /// Rows or OK, or the error.
    pub(super) fn optional_table(
        &mut self,
        done: Result<Option<Table>>,
        replies: &mut Replies<'_>,
    ) -> Answered {
        match done {
            Ok(Some(table)) => self.table(&table, replies),
            Ok(None) => self.done(Ok(()), replies),
            Err(error) => Err(self.refused(error)),
        }
    }

    fn refused(&mut self, error: SqlError) -> WireError {
        self.state.diagnostics.keep_error(self.evaluation, &error);
        wire_error(error)
    }
}

/// The status for OK packets.
pub(super) fn status(settings: &Settings, transactions: &Transactions) -> Status {
    let mut status = Status::empty();
    status.set(Status::AUTOCOMMIT, settings.autocommit);
    if let Some(open) = &transactions.open {
        status.set(Status::IN_TRANSACTION, open.lasting);
        status.set(Status::IN_TRANSACTION_READONLY, open.lasting && open.read_only);
    }
    let escapes = settings.sql_mode.contains(SqlMode::NO_BACKSLASH_ESCAPES);
    status.set(Status::NO_BACKSLASH_ESCAPES, escapes);
    status
}

/// An error of SQL in the wire's form.
pub(crate) fn wire_error(error: SqlError) -> WireError {
    WireError::Refused(ServerError::new(error.code, &error.state, error.message))
}

fn told_change(change: &Change) -> SessionChange<'_> {
    match change {
        Change::Variable(name, value) => {
            SessionChange::SystemVariable { name, value: value.as_bytes() }
        }
        Change::Schema(schema) => SessionChange::Schema(schema),
    }
}

fn send(table: &Table, sink: &mut WireSink<'_, '_, '_>) -> Result<()> {
    sink.columns(&table.output_columns())?;
    for row in &table.rows {
        sink.begin_row()?;
        for (value, (_, ty)) in row.iter().zip(&table.columns) {
            sink.datum(value, ty)?;
        }
        sink.end_row()?;
    }
    Ok(())
}
