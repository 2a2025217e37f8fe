//! `SET`: system variables, user variables, `SET NAMES`, `SET TRANSACTION`.

use std::sync::Arc;

use firn_sql::collation::Charset;
use firn_sql::error::{Result, SqlError};
use firn_sql::execute::SessionState;
use firn_sql::execute::error::from_rows;
use firn_sql::grammar::ast::{
    AccessMode, Expr, SetItem, SetTransaction, SetValue, TransactionScope, VariableScope,
};
use firn_sql::types::{Datum, SqlMode};

use super::runner::StatementRunner;
use super::settings::{self, charset, exchanged, isolation, isolation_name};
use super::transaction::NextTransaction;
use crate::variables::{self, Kind, Setting};

/// Session variables that affect other sessions or stored data.
const RESTRICTED: [&str; 8] = [
    "sql_log_bin",
    "binlog_format",
    "binlog_row_image",
    "binlog_rows_query_log_events",
    "gtid_next",
    "pseudo_thread_id",
    "sql_require_primary_key",
    "internal_tmp_mem_storage_engine",
];

/// Runs `SET` statements in a session.
pub(super) struct SetStatements<'s> {
    pub(super) runner: &'s mut StatementRunner,
}

impl SetStatements<'_> {
    /// `SET`: all items, in order; the first refused one ends it.
    ///
    /// # Errors
    /// 1193 for unknown variables, 1231 and 1232 for values, 1227 without the privilege.
    pub(super) fn run_set(&mut self, items: &[SetItem]) -> Result<()> {
        for item in items {
            match item {
                SetItem::UserVariable { name, value } => {
                    let (datum, ty) = self.runner.evaluate(value)?;
                    self.runner.state.set_user_variable(&name.to_lowercase(), datum, &ty);
                }
                SetItem::SystemVariable { scope, name, value } => {
                    self.set_variable(*scope, &name.to_ascii_lowercase(), value)?;
                }
                SetItem::Names { charset, collation } => {
                    self.set_names(charset.as_deref(), collation.as_deref())?;
                }
                SetItem::CharacterSet(charset) => self.set_character_set(charset.as_deref())?,
            }
        }
        Ok(())
    }

    fn set_variable(&mut self, scope: VariableScope, name: &str, value: &SetValue) -> Result<()> {
        let name = canonical(name);
        let given = self.setting_of(name, value)?;
        let given = given.map(|given| named_value(name, given)).transpose()?;
        if let ("sql_mode", Some(Setting::Text(modes))) = (name, &given) {
            self.warn_of_modes(modes);
        }
        if let Some(Setting::Text(text)) = &given
            && scope != VariableScope::Session
        {
            self.may_set_globals()?;
            self.runner.instance.log_directories.judge(name, text)?;
        }
        match scope {
            VariableScope::Session => self.set_session_variable(name, given.as_ref()),
            VariableScope::Global => self.set_global_variable(name, given.as_ref()),
            VariableScope::Persist => {
                self.set_global_variable(name, given.as_ref())?;
                let kept = self.runner.instance.variables.get(name).unwrap_or(Setting::Null);
                self.runner.instance.persisted.keep(name, &kept).map_err(from_rows)
            }
            VariableScope::PersistOnly => {
                self.may_set_globals()?;
                let (kept, _) = self.runner.instance.variables.checked(name, given.as_ref())?;
                self.runner.instance.persisted.keep(name, &kept).map_err(from_rows)
            }
        }
    }

    /// Warnings 3135 and 3090 for modes that later versions join with others, or drop.
    fn warn_of_modes(&self, modes: &str) {
        const MERGED: &str = "'NO_ZERO_DATE', 'NO_ZERO_IN_DATE' and 'ERROR_FOR_DIVISION_BY_ZERO' \
                              sql modes should be used with strict mode. They will be merged with \
                              strict mode in a future release.";
        const DROPPED: &str = "Changing sql mode 'PAD_CHAR_TO_FULL_LENGTH' is deprecated. It will \
                               be removed in a future release.";
        let Ok(mode) = SqlMode::parse(modes) else { return };
        let merged =
            [SqlMode::NO_ZERO_DATE, SqlMode::NO_ZERO_IN_DATE, SqlMode::ERROR_FOR_DIVISION_BY_ZERO];
        let whole = if mode.is_strict() { merged.len() } else { 0 };
        if merged.iter().filter(|one| mode.contains(**one)).count() != whole {
            self.runner.evaluation.warn(3135, || MERGED.to_owned());
        }
        if mode.contains(SqlMode::PAD_CHAR_TO_FULL_LENGTH) {
            self.runner.evaluation.warn(3090, || DROPPED.to_owned());
        }
    }

    /// The value as given; `None` for `DEFAULT`.
    fn setting_of(&mut self, name: &str, value: &SetValue) -> Result<Option<Setting>> {
        let definition = variables::find(name)
            .ok_or_else(|| SqlError::new(1193, format!("Unknown system variable '{name}'")))?;
        Ok(match value {
            SetValue::Default => None,
            SetValue::Word(word) => Some(Setting::text(word)),
            // A bare name is a word here, whatever it would be elsewhere.
            SetValue::Value(Expr::Identifier(word)) => Some(Setting::text(word)),
            SetValue::Value(value) => {
                let (datum, _) = self.runner.evaluate(value)?;
                Some(setting(&datum, definition.kind))
            }
        })
    }

    fn set_session_variable(&mut self, name: &str, given: Option<&Setting>) -> Result<()> {
        self.refuse_within_transaction(name)?;
        if RESTRICTED.contains(&name) {
            self.runner.rights.require_one_of(
                &["SUPER", "SYSTEM_VARIABLES_ADMIN", "SESSION_VARIABLES_ADMIN"],
                "SUPER, SYSTEM_VARIABLES_ADMIN or SESSION_VARIABLES_ADMIN",
            )?;
        }
        let before = self.runner.state.connection.variables.clone();
        let moved = self.runner.state.connection.variables.set(
            name,
            given,
            &self.runner.instance.variables,
        )?;
        if moved {
            let shown = given.cloned().unwrap_or(Setting::Null);
            self.runner
                .evaluation
                .warn(1292, || format!("Truncated incorrect {name} value: '{shown}'"));
        }
        if let Err(error) = self.follow(name) {
            self.runner.state.connection.variables = before;
            self.runner.settings_changed()?;
            return Err(error);
        }
        self.runner.state.note_variable(name);
        Ok(())
    }

    /// Applies the effects of a changed variable.
    fn follow(&mut self, name: &str) -> Result<()> {
        let text = |set: &Self, name| {
            set.runner.state.connection.variables.known(name).as_text().to_owned()
        };
        match name {
            "collation_connection" => {
                let collation = firn_sql::collation::get(settings::collation(&text(self, name))?);
                let charset = Setting::text(collation.charset.name());
                self.runner.state.connection.variables.install("character_set_connection", charset);
            }
            "character_set_connection" => {
                let charset = charset(&text(self, name))?;
                self.install_collation(charset);
            }
            "transaction_isolation" | "tx_isolation" => {
                let value = self.runner.state.connection.variables.known(name).clone();
                self.runner
                    .state
                    .connection
                    .variables
                    .install("transaction_isolation", value.clone());
                self.runner.state.connection.variables.install("tx_isolation", value);
            }
            "transaction_read_only" | "tx_read_only" => {
                let value = self.runner.state.connection.variables.known(name).clone();
                self.runner
                    .state
                    .connection
                    .variables
                    .install("transaction_read_only", value.clone());
                self.runner.state.connection.variables.install("tx_read_only", value);
            }
            "last_insert_id" | "identity" => {
                let value = self.runner.state.connection.variables.known(name).number();
                self.runner.facts.last_insert_id.store(value, std::sync::atomic::Ordering::Relaxed);
            }
            "insert_id" => {
                let value = self.runner.state.connection.variables.known(name).number();
                self.runner.facts.insert_id.store(value, std::sync::atomic::Ordering::Relaxed);
            }
            _ => {}
        }
        let autocommit = self.runner.settings.autocommit;
        self.runner.settings_changed()?;
        if name == "autocommit" && !autocommit && self.runner.settings.autocommit {
            self.runner.transactions.commit()?;
        }
        Ok(())
    }

    /// The level of a transaction cannot change while it runs.
    fn refuse_within_transaction(&self, name: &str) -> Result<()> {
        let is_its = matches!(name, "transaction_isolation" | "tx_isolation");
        if is_its && self.runner.transactions.xa.is_some() {
            return Err(self.runner.transactions.wrong_xa_state());
        }
        Ok(())
    }

    fn set_global_variable(&mut self, name: &str, given: Option<&Setting>) -> Result<()> {
        self.may_set_globals()?;
        let variables = &self.runner.instance.variables;
        let (value, moved) = variables.checked(name, given)?;
        // A new session must be able to begin with it.
        settings::Settings::of(&variables.session_with(name, &value))?;
        self.runner.instance.set_global(name, &value)?;
        // `super_read_only` implies `read_only`, and switching off `read_only` switches off
        // `super_read_only`.
        let follows =
            match (name, self.runner.instance.variables.get(name).is_some_and(|on| on.is_on())) {
                ("super_read_only", true) => Some(("read_only", 1)),
                ("read_only", false) => Some(("super_read_only", 0)),
                _ => None,
            };
        if let Some((other, value)) = follows {
            self.runner.instance.set_global(other, &Setting::Number(value))?;
        }
        if moved {
            let shown = given.cloned().unwrap_or(Setting::Null);
            self.runner
                .evaluation
                .warn(1292, || format!("Truncated incorrect {name} value: '{shown}'"));
        }
        Ok(())
    }

    fn may_set_globals(&self) -> Result<()> {
        self.runner
            .rights
            .require_one_of(&["SUPER", "SYSTEM_VARIABLES_ADMIN"], "SUPER or SYSTEM_VARIABLES_ADMIN")
    }

    /// `RESET PERSIST`
    ///
    /// # Errors
    /// 3615 for a variable that is not persisted, 1227 without the privilege.
    pub(super) fn reset_persist(&mut self, if_exists: bool, variable: Option<&str>) -> Result<()> {
        self.may_set_globals()?;
        let kept = self.runner.instance.persisted.load().map_err(from_rows)?;
        let name = variable.map(str::to_ascii_lowercase);
        if let Some(name) = &name
            && !kept.iter().any(|(other, _)| other == name)
        {
            let why = format!("Variable {name} does not exist in persisted config file");
            if if_exists {
                self.runner.evaluation.warn(3615, || why);
                return Ok(());
            }
            return Err(SqlError::new(3615, why));
        }
        let names = kept.iter().map(|(name, _)| name.as_str());
        let gone = names.filter(|one| name.as_deref().is_none_or(|name| name == *one));
        self.runner.instance.persisted.forget(gone).map_err(from_rows)
    }

    fn set_names(&mut self, name: Option<&str>, collation: Option<&str>) -> Result<()> {
        let set = exchanged("character_set_client", name.unwrap_or("utf8mb4"))?;
        for variable in
            ["character_set_client", "character_set_results", "character_set_connection"]
        {
            self.runner.state.connection.variables.install(variable, Setting::text(set.name()));
            self.runner.state.note_variable(variable);
        }
        match collation {
            Some(name) => {
                let found = firn_sql::collation::get(settings::collation(name)?);
                if found.charset != set {
                    let why = format!(
                        "COLLATION '{name}' is not valid for CHARACTER SET '{}'",
                        set.name()
                    );
                    return Err(SqlError::new(1253, why));
                }
                let name = Setting::text(found.name);
                self.runner.state.connection.variables.install("collation_connection", name);
                self.runner.state.connection.variables.install_results_collation(found.id);
            }
            None => self.install_collation(set),
        }
        self.runner.settings_changed()
    }

    fn set_character_set(&mut self, name: Option<&str>) -> Result<()> {
        let set = exchanged("character_set_client", name.unwrap_or("utf8mb4"))?;
        for variable in ["character_set_client", "character_set_results"] {
            self.runner.state.connection.variables.install(variable, Setting::text(set.name()));
        }
        let database = self.runner.state.connection.variables.known("collation_database").clone();
        let found = firn_sql::collation::get(settings::collation(database.as_text())?);
        self.runner.state.connection.variables.install("collation_connection", database);
        let connection = Setting::text(found.charset.name());
        self.runner.state.connection.variables.install("character_set_connection", connection);
        self.runner.settings_changed()
    }

    fn install_collation(&mut self, set: Charset) {
        let collation = firn_sql::collation::get(set.default_collation());
        self.runner
            .state
            .connection
            .variables
            .install("collation_connection", Setting::text(collation.name));
        self.runner
            .state
            .connection
            .variables
            .install("character_set_connection", Setting::text(set.name()));
    }

    /// `SET TRANSACTION`
    ///
    /// # Errors
    /// 1568 for the next transaction while one runs, and as for variables.
    pub(super) fn run_set_transaction(&mut self, set: &SetTransaction) -> Result<()> {
        let level = set.isolation.map(isolation_name);
        let read_only = set.access.map(|access| access == AccessMode::ReadOnly);
        if set.scope == TransactionScope::Next {
            if self.runner.transactions.is_lasting() {
                let why = "Transaction characteristics can't be changed while a transaction is in progress";
                return Err(SqlError::new(1568, why));
            }
            let before = self.runner.transactions.next;
            self.runner.transactions.next = NextTransaction {
                isolation: level.as_deref().map(isolation).or(before.isolation),
                read_only: read_only.or(before.read_only),
            };
            return Ok(());
        }
        let mut set_one = |name: &str, value: Setting| match set.scope {
            TransactionScope::Global => self.set_global_variable(name, Some(&value)),
            _ => self.set_session_variable(name, Some(&value)),
        };
        if let Some(level) = level {
            set_one("transaction_isolation", Setting::Text(level))?;
        }
        if let Some(read_only) = read_only {
            set_one("transaction_read_only", Setting::Number(i64::from(read_only)))?;
        }
        Ok(())
    }
}

/// The canonical name of a variable.
fn canonical(name: &str) -> &str {
    match name {
        "storage_engine" => "default_storage_engine",
        "sql_log_update" => "sql_log_bin",
        other => other,
    }
}

/// A SQL value as a setting.
fn setting(datum: &Datum, kind: Kind) -> Setting {
    match datum {
        Datum::Null => Setting::Null,
        Datum::Int(number) => Setting::Number(*number),
        Datum::UInt(number) => match i64::try_from(*number) {
            Ok(number) => Setting::Number(number),
            Err(_) => Setting::Unsigned(*number),
        },
        Datum::Double(number) => Setting::Real(*number),
        Datum::Decimal(number) if matches!(kind, Kind::Real { .. }) => {
            Setting::Real(number.to_string().parse().unwrap_or(0.0))
        }
        Datum::Text(text) => Setting::Text(Arc::from(&*String::from_utf8_lossy(text))),
        other => Setting::text(&other.plain_text()),
    }
}

/// Variables whose values are names, given by number or by name.
pub(super) fn named_value(name: &str, given: Setting) -> Result<Setting> {
    use firn_sql::collation;
    let by_number = |number: i64| {
        u16::try_from(number)
            .ok()
            .and_then(|id| collation::by_id(firn_format::value::CollationId(id)))
    };
    Ok(match (name, &given) {
        ("sql_mode", Setting::Number(bits)) => {
            const BITS: i64 = 1 << 33;
            if !(0..BITS).contains(bits) {
                let why = format!("Variable 'sql_mode' can't be set to the value of '{bits}'");
                return Err(SqlError::new(1231, why));
            }
            // A bit of old versions that means nothing.
            const UNUSED: u64 = 1 << 4;
            let unknown = *bits as u64 & !(SqlMode::ALL.0 | UNUSED);
            if unknown != 0 {
                let why = format!("sql_mode=0x{unknown:08x} is not supported.");
                return Err(SqlError::new(3899, why));
            }
            Setting::text(&SqlMode(*bits as u64).to_string())
        }
        ("sql_mode", Setting::Text(names)) => {
            let mode = SqlMode::parse(names).map_err(|name| {
                let why = format!("Variable 'sql_mode' can't be set to the value of '{name}'");
                SqlError::new(1231, why)
            })?;
            Setting::text(&mode.to_string())
        }
        (name, Setting::Text(text)) if name.starts_with("character_set_") => {
            Setting::text(charset(text)?.name())
        }
        (name, Setting::Text(text)) if name.starts_with("collation_") => {
            Setting::text(firn_sql::collation::get(settings::collation(text)?).name)
        }
        (name, Setting::Number(number)) if name.starts_with("collation_") => {
            let unknown = || SqlError::new(1273, format!("Unknown collation: '{number}'"));
            Setting::text(by_number(*number).ok_or_else(unknown)?.name)
        }
        _ => given,
    })
}
