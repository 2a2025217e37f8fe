//! Answers that are made here and not by a plan: a few rows, or OK.

use std::sync::Arc;

use firn_sql::catalog::virtual_table_metadata::{self, ReportedColumns};
use firn_sql::collation::LikePattern;
use firn_sql::error::Result;
use firn_sql::execute::ResultSink;
use firn_sql::expression::{Expression, ExpressionKind};
use firn_sql::plan::OutputColumn;
use firn_sql::types::{Datum, SqlType};
use firn_wire::{Completion, Replies, SessionChange, WireError};

use super::SqlSession;
use super::statement_view::Change;
use crate::columns;
use crate::wire_rows::WireSink;

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

impl SqlSession {
    /// Sends rows.
    pub(super) fn answer_table(
        &mut self,
        table: &Table,
        replies: &mut Replies<'_>,
    ) -> std::result::Result<(), WireError> {
        let results = self.settings.presentation.collation;
        let encoded = table.shown.map(|shown| {
            columns::encode_reported(&table.output_columns(), &shown.answered, results)
        });
        let mut sink = WireSink::new(replies, &self.settings.presentation, encoded.as_ref());
        if let Err(error) = send(table, &mut sink) {
            return Err(sink.into_broken().unwrap_or_else(|| super::wire_error(error)));
        }
        let status = self.status();
        sink.finish(&Completion { status, warnings: self.warning_count(), ..Completion::default() })
    }

    /// Answers a statement without rows.
    pub(super) fn answer_ok(
        &mut self,
        replies: &mut Replies<'_>,
    ) -> std::result::Result<(), WireError> {
        self.answer_affected(0, 0, "", replies)
    }

    /// Answers a statement that wrote.
    pub(super) fn answer_affected(
        &mut self,
        affected_rows: u64,
        last_insert_id: u64,
        info: &str,
        replies: &mut Replies<'_>,
    ) -> std::result::Result<(), WireError> {
        let changes = std::mem::take(&mut self.state.changes);
        let told_changes: Vec<SessionChange<'_>> = match replies.tracks_session() {
            true => changes.iter().map(told_change).collect(),
            false => Vec::new(),
        };
        replies.ok(&Completion {
            affected_rows,
            last_insert_id,
            status: self.status(),
            warnings: self.warning_count(),
            info,
            changes: &told_changes,
        })
    }
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
