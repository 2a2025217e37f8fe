//! The values of system variables.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use firn_format::value::CollationId;
use firn_sql::collation::{self, Charset};
use firn_sql::error::{Result, SqlError};
use parking_lot::{Mutex, RwLock};

use super::table::{DEFINITIONS, position};
use super::{Definition, Scope, Setting};

/// The variable for the character set of results.
const RESULTS: &str = "character_set_results";

/// One value for each definition, by its index.
type Values = Vec<Setting>;

/// The global values of a server at one moment.
#[derive(Debug, Clone)]
pub struct KeptGlobals(Arc<Values>);

#[derive(Debug)]
pub struct GlobalVariables {
    values: RwLock<Arc<Values>>,
    /// The versions of values that the server's compute nodes share, by the variables' indexes.
    shared: Mutex<BTreeMap<usize, u64>>,
}

impl Default for GlobalVariables {
    fn default() -> GlobalVariables {
        let values = DEFINITIONS.iter().map(|definition| definition.initial()).collect();
        GlobalVariables { values: RwLock::new(Arc::new(values)), shared: Mutex::default() }
    }
}

impl GlobalVariables {
    /// A global value; `None` if there is no such variable.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Setting> {
        position(name).map(|at| self.values.read()[at].clone())
    }

    /// Sets a variable that clients cannot set, such as the port; or a value from the
    /// configuration.
    ///
    /// # Panics
    /// If there is no such variable.
    pub fn install(&self, name: &str, value: Setting) {
        let at = position(name).expect("the caller names a variable of the table");
        Arc::make_mut(&mut self.values.write())[at] = value;
    }

    /// All values, for a server that goes on after a pause.
    #[must_use]
    pub(crate) fn kept(&self) -> KeptGlobals {
        KeptGlobals(Arc::clone(&self.values.read()))
    }

    /// Goes on with the values of before a pause.
    pub(crate) fn go_on_with(&self, KeptGlobals(values): KeptGlobals) {
        *self.values.write() = values;
    }

    /// Takes over a value that was set on a compute node of the server. Returns whether it was
    /// newer than the last one set, and so counts.
    pub(crate) fn take_over(&self, name: &str, value: Setting, version: u64) -> bool {
        let Some(at) = position(name) else { return false };
        let mut shared = self.shared.lock();
        let last = shared.entry(at).or_default();
        if *last >= version {
            return false;
        }
        *last = version;
        Arc::make_mut(&mut self.values.write())[at] = value;
        true
    }

    /// A value as `SET GLOBAL` sets it, and whether it was moved to a bound.
    ///
    /// # Errors
    /// 1193 for an unknown variable, 1228 for a session-only one, 1238 for a read-only one, and
    /// errors of [`Definition::check`].
    pub fn checked(&self, name: &str, value: Option<&Setting>) -> Result<(Setting, bool)> {
        let (_, definition) = settable(name)?;
        if definition.scope == Scope::Session {
            let why = format!(
                "Variable '{name}' is a SESSION variable and can't be used with SET GLOBAL"
            );
            return Err(SqlError::new(1228, why));
        }
        match value {
            Some(value) => definition.check(value),
            None => Ok((definition.initial(), false)),
        }
    }

    /// The values with which a new session would begin if a variable had this value.
    ///
    /// # Panics
    /// If there is no such variable.
    #[must_use]
    pub(crate) fn session_with(&self, name: &str, value: &Setting) -> SessionVariables {
        let mut session = self.session();
        session.install(name, value.clone());
        session
    }

    /// The values with which a new session begins.
    #[must_use]
    pub fn session(&self) -> SessionVariables {
        let base = Arc::clone(&self.values.read());
        SessionVariables { base, own: BTreeMap::new(), results_collation: None, changes: 0 }
    }
}

/// The values of a session.
#[derive(Debug, Clone)]
pub struct SessionVariables {
    base: Arc<Values>,
    own: BTreeMap<usize, Setting>,
    /// The collation that was set together with `character_set_results`, by `SET NAMES` or the
    /// handshake.
    results_collation: Option<CollationId>,
    changes: u64,
}

impl SessionVariables {
    /// A number that changes with every change of a value.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// The session's value; for a variable without one, the global value.
    ///
    /// # Errors
    /// 1193 for an unknown variable.
    pub fn get(&self, name: &str, global: &GlobalVariables) -> Result<Setting> {
        let at = position(name).ok_or_else(|| unknown(name))?;
        if DEFINITIONS[at].scope == Scope::Global {
            return Ok(global.values.read()[at].clone());
        }
        Ok(self.own.get(&at).unwrap_or(&self.base[at]).clone())
    }

    /// A value that the session is known to have.
    ///
    /// # Panics
    /// If there is no such variable.
    #[must_use]
    pub fn known(&self, name: &str) -> &Setting {
        let at = position(name).expect("the caller names a variable of the table");
        self.own.get(&at).unwrap_or(&self.base[at])
    }

    /// `SET SESSION`; `None` takes the global value. Returns whether the value was moved to a
    /// bound.
    ///
    /// # Errors
    /// 1193 for an unknown variable, 1229 for a global-only one, 1238 for a read-only one, and
    /// errors of [`Definition::check`].
    pub fn set(
        &mut self,
        name: &str,
        value: Option<&Setting>,
        global: &GlobalVariables,
    ) -> Result<bool> {
        let (at, definition) = settable(name)?;
        if definition.scope == Scope::Global {
            let why =
                format!("Variable '{name}' is a GLOBAL variable and should be set with SET GLOBAL");
            return Err(SqlError::new(1229, why));
        }
        let (value, moved) = match value {
            Some(value) => definition.check(value)?,
            None => (global.values.read()[at].clone(), false),
        };
        if name == RESULTS {
            self.results_collation = None;
        }
        self.own.insert(at, value);
        self.changes += 1;
        Ok(moved)
    }

    /// Sets a value that does not come from a client's `SET`.
    ///
    /// # Panics
    /// If there is no such variable.
    pub fn install(&mut self, name: &str, value: Setting) {
        let at = position(name).expect("the caller names a variable of the table");
        if name == RESULTS {
            self.results_collation = None;
        }
        self.own.insert(at, value);
        self.changes += 1;
    }

    /// Whether the session has begun with other values than the built-in ones.
    pub(crate) fn has_own_beginning(&self) -> bool {
        let values = DEFINITIONS.iter().zip(self.base.iter().zip(built_in().iter()));
        values
            .filter(|(definition, _)| definition.scope != Scope::Global)
            .any(|(_, (value, built_in))| value != built_in)
    }

    /// The session has begun with the built-in values; what it has set itself stays.
    pub(crate) fn begin_with_built_in(&mut self) {
        self.base = Arc::clone(built_in());
        self.changes += 1;
    }

    /// All values are the built-in ones.
    pub(crate) fn begin_again(&mut self) {
        self.begin_with_built_in();
        self.own.clear();
        self.results_collation = None;
    }

    /// The values, by name, that are not the built-in ones.
    pub(crate) fn different_from_built_in(&self) -> BTreeMap<String, Setting> {
        let built_in = built_in();
        let of_sessions =
            (0..DEFINITIONS.len()).filter(|at| DEFINITIONS[*at].scope != Scope::Global);
        let values = of_sessions.map(|at| (at, self.own.get(&at).unwrap_or(&self.base[at])));
        let different = values.filter(|(at, value)| **value != built_in[*at]);
        different.map(|(at, value)| (DEFINITIONS[at].name.to_owned(), value.clone())).collect()
    }

    /// The collation that was set together with `character_set_results`, if that has not been set
    /// since.
    pub(crate) fn own_results_collation(&self) -> Option<CollationId> {
        self.results_collation
    }

    /// Takes over a value that a session of this server had.
    ///
    /// # Errors
    /// 1193 for a variable that no longer exists.
    pub(crate) fn take_over(&mut self, name: &str, value: Setting) -> Result<()> {
        let at = position(name).ok_or_else(|| unknown(name))?;
        if name == RESULTS {
            self.results_collation = None;
        }
        self.own.insert(at, value);
        self.changes += 1;
        Ok(())
    }

    /// Sets the collation that clients see for texts until `character_set_results` is set again.
    pub fn install_results_collation(&mut self, collation: CollationId) {
        self.results_collation = Some(collation);
        self.changes += 1;
    }

    /// The collation that clients see for texts in `charset`.
    #[must_use]
    pub fn results_collation(&self, charset: Charset) -> CollationId {
        let of_charset = |id: &CollationId| collation::get(*id).charset == charset;
        self.results_collation.filter(of_charset).unwrap_or_else(|| charset.default_collation())
    }
}

/// The values of a server on which nothing was set.
fn built_in() -> &'static Arc<Values> {
    static BUILT_IN: LazyLock<Arc<Values>> =
        LazyLock::new(|| Arc::clone(&GlobalVariables::default().values.into_inner()));
    &BUILT_IN
}

fn settable(name: &str) -> Result<(usize, &'static Definition)> {
    let at = position(name).ok_or_else(|| unknown(name))?;
    let definition = DEFINITIONS[at];
    if definition.read_only {
        return Err(SqlError::new(1238, format!("Variable '{name}' is a read only variable")));
    }
    Ok((at, definition))
}

fn unknown(name: &str) -> SqlError {
    SqlError::new(1193, format!("Unknown system variable '{name}'"))
}
