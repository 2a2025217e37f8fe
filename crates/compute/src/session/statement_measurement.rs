//! Measures each statement: its counters, and whether it is logged.

use std::sync::atomic::Ordering;

use firn_sql::catalog::notation::{literal_text, quoted};
use firn_sql::execute::RowCounts;
use firn_sql::grammar::{self, LiteralKind};
use firn_sql::plan::PlanShape;
use firn_sql::types::hexadecimal::hexadecimal_digits;
use firn_sql::types::{Datum, SqlType};
use firn_wire::WireError;

use super::SqlSession;
use super::execution::Arguments;
use crate::logs::{SlowEntry, Who, is_administrative};
use crate::plan_cache::CachedPlan;
use crate::statement_kind::StatementKind;
use crate::status::{StatementClass, Status, add, count};

/// The counts of a statement so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Measured {
    pub(super) rows: RowCounts,
    pub(super) rows_sent: u64,
    shape: PlanShape,
    class: Option<StatementKind>,
}

impl Measured {
    /// A plan is run for it.
    #[inline]
    pub(super) fn plan(&mut self, plan: &CachedPlan) {
        self.shape = plan.shape;
        self.class = Some(plan.kind);
    }

    /// Adds it to the session's counters. Counters that short statements leave at zero are not
    /// written.
    fn count(&self, status: &Status) {
        let (rows, shape) = (&self.rows, &self.shape);
        let counts = [
            (&status.rows_sent, self.rows_sent),
            (&status.handler_read_key, rows.points),
            (&status.handler_read_first, rows.scans),
            (&status.handler_read_next, rows.by_index),
            (&status.handler_read_rnd_next, rows.by_full_scan),
            (&status.handler_write, rows.inserted),
            (&status.handler_update, rows.updated),
            (&status.handler_delete, rows.deleted),
            (&status.sort_rows, rows.sorted),
            (&status.sort_merge_passes, rows.sort_runs),
            (&status.select_scan, shape.scans),
            (&status.select_range, shape.ranges),
            (&status.select_full_join, shape.full_joins),
            (&status.select_full_range_join, shape.range_joins),
            (&status.sort_scan, shape.sorted_scans),
            (&status.sort_range, shape.sorted_ranges),
            (&status.created_tmp_tables, shape.temporary_tables),
        ];
        for (counter, more) in counts {
            if more > 0 {
                add(counter, more);
            }
        }
    }

    fn class(&self) -> StatementClass {
        match self.class {
            Some(kind) if kind.writes() => StatementClass::Write,
            Some(_) => StatementClass::Read,
            None => StatementClass::Other,
        }
    }
}

impl SqlSession {
    /// A statement begins; returns its start, in microseconds of wall time.
    pub(super) fn statement_begins(&mut self, text: &str, arguments: Option<&Arguments>) -> u64 {
        self.facts.begin_statement(text);
        if !self.handlers.is_empty() {
            self.yield_handlers();
        }
        count(&self.facts.status.questions);
        self.measured = Measured::default();
        let now = self.instance.facts.environment.clock.wall_time_us();
        self.evaluation.statement_time_us =
            self.settings.fixed_time_us.unwrap_or(i64::try_from(now).unwrap_or(i64::MAX));
        if self.instance.logs.wants_all() {
            let shown = arguments.and_then(|arguments| self.with_values(text, arguments));
            let command = if arguments.is_some() { "Execute" } else { "Query" };
            self.instance.logs.general(
                now,
                self.facts.id,
                command,
                shown.as_deref().unwrap_or(text),
            );
        }
        now
    }

    /// A statement has ended that began at `began_us`.
    pub(super) fn statement_ends(
        &mut self,
        began_us: u64,
        text: &str,
        arguments: Option<&Arguments>,
        done: &std::result::Result<(), WireError>,
    ) {
        let mut code = 0;
        if let Err(WireError::Refused(error)) = done {
            code = error.code;
            count(&self.facts.status.errors);
            self.facts.row_count.store(-1, Ordering::Relaxed);
            let message = crate::logs::secrets::masked(&error.message);
            tracing::debug!(code, %message, "statement refused");
        }
        self.facts.end_statement();
        let now = self.instance.facts.environment.clock.wall_time_us();
        let took_us = now.saturating_sub(began_us);
        self.measured.count(&self.facts.status);
        self.facts.status.count_duration(self.measured.class(), took_us);
        self.count_ended();
        let is_slow = took_us >= self.settings.long_query_us;
        if is_slow || self.is_unindexed() {
            let shown = arguments.and_then(|arguments| self.with_values(text, arguments));
            self.note_slow(is_slow, began_us, took_us, shown.as_deref().unwrap_or(text), code);
        }
    }

    /// The text of a prepared statement with its values in place of the parameters; `None` if the
    /// parameters cannot be found in the text.
    fn with_values(&mut self, text: &str, arguments: &Arguments) -> Option<String> {
        if !grammar::normalise(text, self.grammar_mode(), &mut self.buffers.normalised) {
            return None;
        }
        let (mut shown, mut at) = (String::with_capacity(text.len()), 0);
        let literals = self.buffers.normalised.literals().iter();
        let parameters = literals.filter(|literal| literal.kind == LiteralKind::Parameter);
        for (parameter, value) in parameters.zip(arguments.values.iter().zip(&arguments.types)) {
            let place = parameter.range();
            shown.push_str(&text[at..place.start]);
            shown.push_str(&shown_value(value.0, value.1));
            at = place.end;
        }
        shown.push_str(&text[at..]);
        Some(shown)
    }

    /// Counts the transactions that have ended since the last time.
    fn count_ended(&mut self) {
        let ended = std::mem::take(&mut self.transactions.ended);
        let status = &self.facts.status;
        for (counter, more) in
            [(&status.handler_commit, ended.commits), (&status.handler_rollback, ended.rollbacks)]
        {
            if more > 0 {
                add(counter, more);
            }
        }
    }

    /// Whether the statement is logged because it reads a table whole.
    #[inline]
    fn is_unindexed(&self) -> bool {
        self.instance.logs.wants_unindexed() && self.measured.shape.reads_whole_tables()
    }

    fn note_slow(&mut self, is_slow: bool, began_us: u64, took_us: u64, text: &str, error: u16) {
        if is_slow {
            count(&self.facts.status.slow_queries);
        }
        let least = self.state.connection.variables.known("min_examined_row_limit").number();
        if !self.instance.logs.wants_slow() || self.measured.rows.examined() < least {
            return;
        }
        let is_on = |name| self.instance.variables.get(name).is_some_and(|value| value.is_on());
        if is_administrative(text) && !is_on("log_slow_admin_statements") {
            return;
        }
        self.instance.logs.slow(&SlowEntry {
            who: Who {
                connection: self.facts.id,
                account: &self.facts.account.user,
                user: &self.facts.user,
                host: &self.facts.host,
            },
            began_us,
            took_us,
            rows_sent: self.measured.rows_sent,
            rows: self.measured.rows,
            shape: self.measured.shape,
            error,
            traffic: self.control.traffic(),
            schema: self.state.connection.schema.as_deref(),
            statement: text,
        });
    }

    /// The session begins, for the general log.
    pub(super) fn note_login(&self) {
        if !self.instance.logs.wants_all() {
            return;
        }
        let schema = self.state.connection.schema.as_deref().unwrap_or("");
        let way = match self.facts.host.as_str() {
            "localhost" => "Socket",
            _ => "TCP/IP",
        };
        let argument = format!("{}@{} on {schema} using {way}", self.facts.user, self.facts.host);
        self.note("Connect", &argument);
    }

    /// The session ends, for the general log.
    pub(super) fn note_logout(&mut self) {
        self.count_ended();
        if self.instance.logs.wants_all() {
            self.note("Quit", "");
        }
    }

    fn note(&self, command: &str, argument: &str) {
        let now = self.instance.facts.environment.clock.wall_time_us();
        self.instance.logs.general(now, self.facts.id, command, argument);
    }

    /// `FLUSH` of objects other than tables that have an effect here.
    pub(super) fn flush_other(&mut self, what: &str) {
        if what == "USER_RESOURCES" {
            self.instance.usage.forget_hours();
        }
        let is_status = what == "STATUS";
        let is_logs = what.ends_with("LOGS");
        if !is_status && !is_logs {
            return;
        }
        match is_status {
            true => self.instance.flush_status(&self.facts, &self.connections),
            false => self.instance.logs.reopen(),
        }
    }
}

/// Characters of a value that logs show.
const SHOWN_CHARS: usize = 1000;

/// A value for logs: as it would be written in a statement, with long ones cut.
fn shown_value(value: &Datum, ty: &SqlType) -> String {
    match value {
        Datum::Text(bytes) => match bytes.as_str() {
            Some(text) => quoted(&cut(text)),
            None => {
                let shown = &bytes[..bytes.len().min(SHOWN_CHARS / 2)];
                format!("x'{}'", hexadecimal_digits(shown))
            }
        },
        Datum::Date(_) | Datum::Time(_) | Datum::DateTime(_) | Datum::Json(_) => {
            quoted(&cut(&literal_text(value, ty)))
        }
        _ => literal_text(value, ty),
    }
}

fn cut(text: &str) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]).into(),
        None => text.into(),
    }
}
