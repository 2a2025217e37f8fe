//! The session state that statements read and change while they run: variables, and the content of
//! virtual tables.

use std::sync::Arc;

use firn_format::value::CollationId;
use firn_sql::catalog::session::{Process, SessionTables};
use firn_sql::error::{Result, SqlError};
use firn_sql::execute::SessionState;
use firn_sql::plan::Counters;
use firn_sql::plan::VariableTypes;
use firn_sql::types::decimal::{MAX_SCALE, Rounding};
use firn_sql::types::variable_form::variable_form;
use firn_sql::types::{Datum, SqlType};
use firn_wire::{Connections, TlsInformation};

use super::connection::ConnectionState;
use super::diagnostics::Diagnostics;
use crate::accounts::need::is_open;
use crate::accounts::{Grants, Privilege};
use crate::instance::Instance;
use crate::server_figures::server_figures;
use crate::session_facts::Facts;
use crate::variables::{self, SessionVariables, Setting};

/// The longest text of a system variable, in characters.
const SYSTEM_TEXT_CHARS: u32 = 21_845;
/// `utf8mb3_general_ci`
const SYSTEM_TEXT_COLLATION: CollationId = CollationId(33);

/// A change that the client may want to learn with the next OK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Variable(&'static str, String),
    Schema(Arc<str>),
}

pub(crate) struct State {
    instance: Arc<Instance>,
    facts: Arc<Facts>,
    connections: Arc<Connections>,
    tls: Option<TlsInformation>,
    /// The part that can move elsewhere.
    pub(crate) connection: ConnectionState,
    pub(crate) grants: Arc<Grants>,
    /// The conditions of the last statement.
    pub(crate) diagnostics: Diagnostics,
    pub(crate) changes: Vec<Change>,
    /// The next execution is counted, for `EXPLAIN ANALYZE`.
    pub(crate) counts: bool,
    pub(crate) counters: Option<Counters>,
}

impl State {
    pub(crate) fn new(
        instance: Arc<Instance>,
        facts: Arc<Facts>,
        connections: Arc<Connections>,
        variables: SessionVariables,
        tls: Option<TlsInformation>,
    ) -> State {
        State {
            instance,
            facts,
            connections,
            tls,
            connection: ConnectionState::new(variables),
            grants: Arc::new(Grants::default()),
            diagnostics: Diagnostics::default(),
            changes: Vec::new(),
            counts: false,
            counters: None,
        }
    }

    pub(crate) fn reset(&mut self, variables: SessionVariables) {
        self.connection.reset(variables);
        self.diagnostics.clear();
        self.changes.clear();
    }

    /// All connections of the server.
    pub(crate) fn connections(&self) -> &Connections {
        &self.connections
    }

    pub(crate) fn note_schema(&mut self) {
        if let Some(schema) = &self.connection.schema {
            self.changes.push(Change::Schema(Arc::clone(schema)));
        }
    }

    /// Remembers that a variable tracked by the client was set.
    pub(crate) fn note_variable(&mut self, name: &str) {
        let followed = self.connection.variables.known("session_track_system_variables").as_text();
        let is_followed =
            followed == "*" || followed.split(',').any(|one| one.trim().eq_ignore_ascii_case(name));
        if let Some(definition) = variables::find(name).filter(|_| is_followed) {
            let shown = definition.shown(self.connection.variables.known(name));
            self.changes.push(Change::Variable(definition.name, shown));
        }
    }

    /// A session's value, also for computed variables.
    pub(crate) fn value(&self, name: &str, global: bool) -> Result<Setting> {
        use std::sync::atomic::Ordering::Relaxed;
        let number = |number: u64| Setting::Number(i64::try_from(number).unwrap_or(i64::MAX));
        Ok(match name {
            "last_insert_id" | "identity" if !global => {
                number(self.facts.last_insert_id.load(Relaxed))
            }
            "insert_id" if !global => number(self.facts.insert_id.load(Relaxed)),
            "warning_count" => number(self.diagnostics.warning_count),
            "error_count" => number(self.diagnostics.error_count),
            "timestamp" if self.connection.variables.known(name) == &Setting::Real(0.0) => {
                let now = self.instance.facts.environment.clock.wall_time_us();
                Setting::Real(now as f64 / 1e6)
            }
            _ if global => {
                let unknown = || SqlError::new(1193, format!("Unknown system variable '{name}'"));
                self.instance.variables.get(name).ok_or_else(unknown)?
            }
            _ => self.connection.variables.get(name, &self.instance.variables)?,
        })
    }
}

/// A setting as a SQL value.
pub(crate) fn datum_of(setting: &Setting, ty: &SqlType) -> Datum {
    match setting {
        Setting::Number(number) if ty.kind.is_unsigned() => Datum::UInt(number.unsigned_abs()),
        Setting::Null => Datum::Null,
        Setting::Number(number) => Datum::Int(*number),
        Setting::Unsigned(number) => Datum::UInt(*number),
        Setting::Real(number) => Datum::Double(*number),
        Setting::Text(text) => Datum::text(text.as_bytes()),
    }
}

impl SessionState for State {
    fn user_variable(&self, name: &str) -> Result<Datum> {
        self.connection
            .user_variables
            .get(name)
            .map_or(Ok(Datum::Null), |(value, _)| value.try_clone())
    }

    fn set_user_variable(&mut self, name: &str, value: Datum, ty: &SqlType) {
        let value = match value {
            // A variable has as many digits after the point as a column.
            Datum::Decimal(number) if number.scale() > MAX_SCALE => {
                let rounded = number.round(MAX_SCALE.into(), Rounding::HalfUp);
                Datum::Decimal(rounded.unwrap_or(number))
            }
            value => value,
        };
        let value = variable_form(value, ty);
        self.connection.user_variables.insert(name.into(), (value, ty.as_variable()));
        self.connection.changes += 1;
    }

    fn system_variable(&self, name: &str, global: bool) -> Result<Datum> {
        Ok(datum_of(&self.value(name, global)?, &self.system(name, global)?))
    }

    fn tables(&self) -> &dyn SessionTables {
        self
    }
}

impl VariableTypes for State {
    fn system(&self, name: &str, _global: bool) -> Result<SqlType> {
        let unknown = || SqlError::new(1193, format!("Unknown system variable '{name}'"));
        let definition = variables::find(name).ok_or_else(unknown)?;
        Ok(match definition.kind {
            variables::Kind::Switch => SqlType::bigint(),
            variables::Kind::Number { least, .. } if least >= 0 => SqlType::bigint_unsigned(),
            variables::Kind::Number { .. } => SqlType::bigint(),
            variables::Kind::Real { .. } => SqlType::double(),
            _ => SqlType::varchar(SYSTEM_TEXT_CHARS, SYSTEM_TEXT_COLLATION),
        })
    }

    fn is_switch(&self, name: &str) -> bool {
        variables::find(name).is_some_and(|found| found.kind == variables::Kind::Switch)
    }

    fn user(&self, name: &str) -> Option<SqlType> {
        self.connection.user_variables.get(name).map(|(_, ty)| ty.clone())
    }
}

impl SessionTables for State {
    fn variables(&self, global: bool) -> Vec<(String, String)> {
        let shown = |definition: &&'static variables::Definition| {
            let is_there = !(global && definition.scope == variables::Scope::Session);
            let value = is_there.then(|| self.value(definition.name, global).ok()).flatten()?;
            Some((definition.name.to_owned(), definition.shown(&value)))
        };
        variables::DEFINITIONS.iter().filter_map(shown).collect()
    }

    fn status(&self, global: bool) -> Vec<(String, String)> {
        let counts = self.facts.status.read();
        let traffic = || {
            let id = u32::try_from(self.facts.id).ok()?;
            Some(self.connections.get(id)?.traffic())
        };
        let own = (!global).then(|| (&counts, traffic().unwrap_or_default()));
        let figures = server_figures(&self.instance, &self.connections, own);
        let shown = figures.iter().filter(|figure| !figure.name.is_empty());
        let mut rows: Vec<(String, String)> =
            shown.map(|figure| (figure.name.to_owned(), figure.value.to_string())).collect();
        let tls = self.tls.as_ref().filter(|_| !global);
        // As OpenSSL calls it.
        let cipher = tls.map(|tls| tls.cipher.replace("TLS13_", "TLS_")).unwrap_or_default();
        let version = tls.map(|tls| tls.version.to_owned()).unwrap_or_default();
        rows.extend([
            ("Ssl_cipher".to_owned(), cipher),
            ("Ssl_version".to_owned(), version),
            ("Compression".to_owned(), "OFF".to_owned()),
        ]);
        rows.sort_unstable();
        rows
    }

    fn processes(&self) -> Vec<Process> {
        let sees_all = self.grants.global.contains(Privilege::PROCESS);
        let own = &self.facts.account;
        let is_own =
            |process: &Process| process.account.0 == own.user && process.account.1 == own.host;
        let mut list = self.instance.server.processes();
        list.retain(|process| sees_all || is_own(process));
        list
    }

    fn account(&self) -> String {
        self.facts.account.to_string()
    }

    fn sees_schema(&self, schema: &str) -> bool {
        is_open(schema) || self.grants.sees_schema(schema)
    }

    fn sees_table(&self, schema: &str, table: &str) -> bool {
        is_open(schema) || self.grants.sees_table(schema, table)
    }

    fn privileges_on_column(&self, schema: &str, table: &str, column: &str) -> String {
        match is_open(schema) {
            true => "select".to_owned(),
            false => self.grants.shown_on_column(schema, table, column),
        }
    }

    fn reads_view(&self, schema: &str, view: &str) -> bool {
        let given = self.grants.on_table(schema, view);
        given.contains(Privilege::SELECT) && given.contains(Privilege::SHOW_VIEW)
    }

    fn rows(&self, schema: &str, table: &str) -> Vec<Vec<Datum>> {
        super::tables::rows(&self.instance, &self.facts.account, &self.grants, schema, table)
    }
}
