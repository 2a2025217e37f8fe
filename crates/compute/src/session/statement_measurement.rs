//! Measures each statement: its counters, and whether it is logged.

use std::sync::atomic::{AtomicU64, Ordering};

use firn_sql::catalog::notation::{literal_text, quoted};
use firn_sql::execute::RowCounts;
use firn_sql::grammar::{self, LiteralKind};
use firn_sql::plan::PlanShape;
use firn_sql::types::hexadecimal::hexadecimal_digits;
use firn_sql::types::{Datum, EvaluationContext, SqlType};
use firn_wire::{ConnectionControl, WireError};

use super::answers::Answered;
use super::arguments::Arguments;
use super::connection::ConnectionState;
use super::runner::StatementRunner;
use super::settings::Settings;
use super::transaction::Transactions;
use crate::instance::Instance;
use crate::logs::{SlowEntry, Who, is_administrative};
use crate::plan_cache::CachedPlan;
use crate::session_facts::Facts;
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

    /// Adds it to the session's counters.
    fn count(&self, status: &Status) {
        let (rows, shape) = (&self.rows, &self.shape);
        add_some(&status.rows_sent, self.rows_sent);
        add_some(&status.handler_read_key, rows.points);
        add_some(&status.handler_read_first, rows.scans);
        add_some(&status.handler_read_next, rows.by_index);
        add_some(&status.handler_read_rnd_next, rows.by_full_scan);
        add_some(&status.handler_write, rows.inserted);
        add_some(&status.handler_update, rows.updated);
        add_some(&status.handler_delete, rows.deleted);
        add_some(&status.sort_rows, rows.sorted);
        add_some(&status.sort_merge_passes, rows.sort_runs);
        add_some(&status.select_scan, shape.scans);
        add_some(&status.select_range, shape.ranges);
        add_some(&status.select_full_join, shape.full_joins);
        add_some(&status.select_full_range_join, shape.range_joins);
        add_some(&status.sort_scan, shape.sorted_scans);
        add_some(&status.sort_range, shape.sorted_ranges);
        add_some(&status.created_tmp_tables, shape.temporary_tables);
    }

    fn class(&self) -> StatementClass {
        match self.class {
            Some(kind) if kind.writes() => StatementClass::Write,
            Some(_) => StatementClass::Read,
            None => StatementClass::Other,
        }
    }
}

/// Adds to a counter what short statements leave at zero.
#[inline]
fn add_some(counter: &AtomicU64, more: u64) {
    if more > 0 {
        add(counter, more);
    }
}

/// Counts and logs the statements of a session.
pub(super) struct StatementMeasurement<'s> {
    instance: &'s Instance,
    facts: &'s Facts,
    control: &'s ConnectionControl,
    settings: &'s Settings,
    connection: &'s ConnectionState,
    transactions: &'s mut Transactions,
    evaluation: &'s mut EvaluationContext,
    measured: &'s mut Measured,
}

impl<'s> StatementMeasurement<'s> {
    #[inline]
    pub(super) fn of(runner: &'s mut StatementRunner) -> StatementMeasurement<'s> {
        let StatementRunner { instance, facts, control, settings, transactions, .. } = runner;
        let StatementRunner { evaluation, measured, state, .. } = runner;
        StatementMeasurement {
            instance,
            facts,
            control,
            settings,
            connection: &state.connection,
            transactions,
            evaluation,
            measured,
        }
    }
}

impl StatementMeasurement<'_> {
    /// A statement begins; returns its start, in microseconds of wall time.
    pub(super) fn begin(&mut self, text: &str, arguments: Option<&Arguments>) -> u64 {
        self.facts.begin_statement(text);
        count(&self.facts.status.questions);
        *self.measured = Measured::default();
        let now = self.instance.facts.environment.clock.wall_time_us();
        self.evaluation.statement_time_us =
            self.settings.fixed_time_us.unwrap_or(i64::try_from(now).unwrap_or(i64::MAX));
        if self.instance.logs.wants_all() {
            let shown = arguments.and_then(|arguments| self.with_values(text, arguments));
            let command = if arguments.is_some() { "Execute" } else { "Query" };
            let shown = shown.as_deref().unwrap_or(text);
            self.instance.logs.general(now, self.facts.id, command, shown);
        }
        now
    }

    /// A statement has ended that began at `began_us`.
    pub(super) fn end(
        &mut self,
        began_us: u64,
        text: &str,
        arguments: Option<&Arguments>,
        done: &Answered,
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
        count_ended(self.transactions, &self.facts.status);
        let is_slow = took_us >= self.settings.long_query_us;
        if is_slow || self.is_unindexed() {
            let shown = arguments.and_then(|arguments| self.with_values(text, arguments));
            self.note_slow(is_slow, began_us, took_us, shown.as_deref().unwrap_or(text), code);
        }
    }

    /// The text of a prepared statement with its values in place of the parameters; `None` if the
    /// parameters cannot be found in the text.
    fn with_values(&self, text: &str, arguments: &Arguments) -> Option<String> {
        let mut normalised = grammar::Normalised::default();
        if !grammar::normalise(text, self.settings.grammar_mode(), &mut normalised) {
            return None;
        }
        let (mut shown, mut at) = (String::with_capacity(text.len()), 0);
        let literals = normalised.literals().iter();
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

    /// Whether the statement is logged because it reads a table whole.
    #[inline]
    fn is_unindexed(&self) -> bool {
        self.instance.logs.wants_unindexed() && self.measured.shape.reads_whole_tables()
    }

    fn note_slow(&self, is_slow: bool, began_us: u64, took_us: u64, text: &str, error: u16) {
        if is_slow {
            count(&self.facts.status.slow_queries);
        }
        let least = self.connection.variables.known("min_examined_row_limit").number();
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
            schema: self.connection.schema.as_deref(),
            statement: text,
        });
    }
}

/// Counts the transactions that have ended since the last time.
pub(super) fn count_ended(transactions: &mut Transactions, status: &Status) {
    let ended = std::mem::take(&mut transactions.ended);
    for (counter, more) in
        [(&status.handler_commit, ended.commits), (&status.handler_rollback, ended.rollbacks)]
    {
        if more > 0 {
            add(counter, more);
        }
    }
}

/// A session begins in this schema, for the general log.
pub(super) fn note_login(instance: &Instance, facts: &Facts, schema: Option<&str>) {
    if !instance.logs.wants_all() {
        return;
    }
    let schema = schema.unwrap_or("");
    let way = match facts.host.as_str() {
        "localhost" => "Socket",
        _ => "TCP/IP",
    };
    let argument = format!("{}@{} on {schema} using {way}", facts.user, facts.host);
    note(instance, facts, "Connect", &argument);
}

/// A session ends, for the general log.
pub(super) fn note_logout(instance: &Instance, facts: &Facts) {
    if instance.logs.wants_all() {
        note(instance, facts, "Quit", "");
    }
}

fn note(instance: &Instance, facts: &Facts, command: &str, argument: &str) {
    let now = instance.facts.environment.clock.wall_time_us();
    instance.logs.general(now, facts.id, command, argument);
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
