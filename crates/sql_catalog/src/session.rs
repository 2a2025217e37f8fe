//! What a session sees: the shared catalog, hidden by its own temporary tables.
//!
//! ```text
//!   find_table("test", "t")    temporary t? ──► stored t?      relation: ──► virtual t? ──► 1146
//! ```
//!
//! A temporary table is stored in its session's schema, `#temporary-OWNER-7`, under a number; its
//! options have the name that the session uses. OWNER is the life of the compute node that runs the
//! session. The schema is dropped with the session. If the compute node ends first, another one or
//! its next start removes the schema ([`Catalog::remove_leftovers`]), unless the session goes on
//! there: then it keeps the schema, with the name that it has ([`TemporaryNamespace`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use firn_api::server::Process;
use firn_base::TableId;
use firn_sql_types::Datum;
use firn_sql_types::error::Result;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use super::lookup::{Catalog, no_such_table, temporary_schema, unknown_schema};
use super::model::TableModel;
use super::virtual_schemas::{VIRTUAL_SCHEMAS, proper_schema};

/// Information of the layer above that virtual tables show.
pub trait SessionTables {
    /// System variables by name, sorted.
    fn variables(&self, global: bool) -> Vec<(String, String)>;
    /// Status counters by name, sorted.
    fn status(&self, global: bool) -> Vec<(String, String)>;
    /// The connections that the user may see.
    fn processes(&self) -> Vec<Process>;
    /// `user@host` of the session.
    fn account(&self) -> String;
    /// Whether the user may see a schema.
    fn sees_schema(&self, schema: &str) -> bool;
    /// Whether the user may see a table.
    fn sees_table(&self, schema: &str, table: &str) -> bool;
    /// The user's privileges on a column, as `information_schema` lists them; a user without any
    /// may not see it.
    fn privileges_on_column(&self, schema: &str, table: &str, column: &str) -> String;
    /// Whether the user may read the definition of a view.
    fn reads_view(&self, schema: &str, view: &str) -> bool;
    /// The rows of other tables that belong to the session layer: `(schema, table)` such as
    /// `("information_schema", "USER_PRIVILEGES")`, in the order of the table's columns.
    fn rows(&self, schema: &str, table: &str) -> Vec<Vec<Datum>>;
}

/// A session layer that knows nothing and hides nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSessionTables;

impl SessionTables for NoSessionTables {
    fn variables(&self, _global: bool) -> Vec<(String, String)> {
        Vec::new()
    }
    fn status(&self, _global: bool) -> Vec<(String, String)> {
        Vec::new()
    }
    fn processes(&self) -> Vec<Process> {
        Vec::new()
    }
    fn account(&self) -> String {
        "root@localhost".to_owned()
    }
    fn sees_schema(&self, _schema: &str) -> bool {
        true
    }
    fn sees_table(&self, _schema: &str, _table: &str) -> bool {
        true
    }
    fn privileges_on_column(&self, _schema: &str, _table: &str, _column: &str) -> String {
        "select,insert,update,references".to_owned()
    }
    fn reads_view(&self, _schema: &str, _view: &str) -> bool {
        true
    }
    fn rows(&self, _schema: &str, _table: &str) -> Vec<Vec<Datum>> {
        Vec::new()
    }
}

/// Where a session's temporary tables are, for the session that goes on with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemporaryNamespace {
    /// The schema in which they are stored.
    pub schema: String,
    /// The number that the next one has as its name there.
    pub next: u64,
    /// Schema and name as the session sees them, and the table.
    pub tables: Vec<(String, String, TableId)>,
}

/// A session's temporary tables by schema and name.
type TemporaryTables = FxHashMap<(Box<str>, Box<str>), TableId>;

/// The definitions as a session sees them.
#[derive(Debug)]
pub struct SessionCatalog {
    shared: Arc<Catalog>,
    namespace: RwLock<Arc<str>>,
    temporary: RwLock<TemporaryTables>,
    temporary_version: AtomicU64,
    next_temporary: AtomicU64,
}

impl SessionCatalog {
    /// The view of a session. No other open session of the catalog's owner has its number.
    #[must_use]
    pub fn new(shared: Arc<Catalog>, session: u64) -> SessionCatalog {
        SessionCatalog {
            namespace: RwLock::new(temporary_schema(shared.owner(), session).into()),
            shared,
            temporary: RwLock::default(),
            temporary_version: AtomicU64::new(0),
            next_temporary: AtomicU64::new(1),
        }
    }

    /// The catalog that all sessions share.
    #[must_use]
    pub fn shared(&self) -> &Arc<Catalog> {
        &self.shared
    }

    /// See [`Catalog::definitions_version`].
    #[must_use]
    pub fn definitions_version(&self) -> u64 {
        self.shared.definitions_version()
    }

    /// Changes when a temporary table is created or dropped: earlier plans of this session may
    /// refer to other tables. 0 while there was none, so that shared plans stay valid.
    #[must_use]
    pub fn temporary_version(&self) -> u64 {
        self.temporary_version.load(Ordering::Relaxed)
    }

    /// A temporary or stored table or view.
    ///
    /// # Errors
    /// As [`SessionCatalog::relation`], which finds virtual tables too.
    pub fn table(&self, schema: &str, name: &str) -> Result<Arc<TableModel>> {
        if let Some(table) = self.find_table(schema, name)? {
            return Ok(table);
        }
        Err(if self.has_schema(schema)? {
            no_such_table(schema, name)
        } else {
            unknown_schema(schema)
        })
    }

    /// A temporary or stored table or view, if there is one.
    ///
    /// # Errors
    /// 1712 if its options are damaged.
    pub fn find_table(&self, schema: &str, name: &str) -> Result<Option<Arc<TableModel>>> {
        match self.temporary_table(schema, name)? {
            Some(table) => Ok(Some(table)),
            None => self.shared.find_table(schema, name),
        }
    }

    /// A temporary table.
    ///
    /// # Errors
    /// 1712 if its options are damaged.
    pub fn temporary_table(&self, schema: &str, name: &str) -> Result<Option<Arc<TableModel>>> {
        if self.temporary_version() == 0 {
            return Ok(None);
        }
        let id = self.temporary.read().get(&(schema.into(), name.into())).copied();
        id.map_or(Ok(None), |id| self.shared.table_by_id(id))
    }

    /// Whether there is a schema with this name, stored or virtual.
    ///
    /// # Errors
    /// Errors of the node.
    pub fn has_schema(&self, schema: &str) -> Result<bool> {
        Ok(proper_schema(schema).is_some() || self.shared.has_schema(schema)?)
    }

    /// The names of all schemas, stored or virtual, sorted.
    ///
    /// # Errors
    /// Errors of the node.
    pub fn schemas(&self) -> Result<Vec<Box<str>>> {
        let mut names = self.shared.schemas()?;
        names.extend(VIRTUAL_SCHEMAS.iter().map(|name| Box::from(*name)));
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// The schema in which the session's temporary tables are stored.
    pub(super) fn namespace(&self) -> Arc<str> {
        Arc::clone(&self.namespace.read())
    }

    /// A name for a temporary table in its namespace.
    pub(super) fn next_temporary_number(&self) -> u64 {
        self.next_temporary.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn put_temporary(&self, schema: &str, name: &str, id: TableId) {
        self.temporary.write().insert((schema.into(), name.into()), id);
        self.temporary_version.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn remove_temporary(&self, schema: &str, name: &str) {
        self.temporary.write().remove(&(schema.into(), name.into()));
        self.temporary_version.fetch_add(1, Ordering::Relaxed);
    }

    /// The temporary tables: schema and name as the session sees them, and the table.
    #[must_use]
    pub fn temporary_tables(&self) -> Vec<(String, String, TableId)> {
        let temporary = self.temporary.read();
        let mut tables: Vec<_> = temporary
            .iter()
            .map(|((schema, name), id)| (schema.to_string(), name.to_string(), *id))
            .collect();
        tables.sort();
        tables
    }

    /// Forgets the temporary tables without dropping them, for the session that goes on with them;
    /// `None` if there are none.
    pub fn leave_temporary_tables(&self) -> Option<TemporaryNamespace> {
        if !self.has_temporary_tables() {
            return None;
        }
        let left = TemporaryNamespace {
            schema: self.namespace().to_string(),
            next: self.next_temporary.load(Ordering::Relaxed),
            tables: self.temporary_tables(),
        };
        self.clear_temporary();
        Some(left)
    }

    /// Goes on with the temporary tables that a session has left, in a session that has none. Their
    /// definitions stay as they are, so that open transactions see them.
    ///
    /// # Errors
    /// 1146 if one of them is not there any more; the session has none of them then.
    pub fn take_temporary_tables(&self, left: &TemporaryNamespace) -> Result<()> {
        for (schema, name, id) in &left.tables {
            if self.shared.table_by_id(*id)?.is_none() {
                return Err(no_such_table(schema, name));
            }
        }
        *self.namespace.write() = left.schema.as_str().into();
        self.next_temporary.store(left.next, Ordering::Relaxed);
        left.tables.iter().for_each(|(schema, name, id)| self.put_temporary(schema, name, *id));
        Ok(())
    }

    pub(super) fn has_temporary_tables(&self) -> bool {
        !self.temporary.read().is_empty()
    }

    pub(super) fn clear_temporary(&self) {
        self.temporary.write().clear();
        self.temporary_version.fetch_add(1, Ordering::Relaxed);
    }
}
