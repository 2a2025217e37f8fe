//! Look-up of schemas and tables: a node's dictionary, with models cached while they are valid.
//!
//! ```text
//!   table("test", "t") ──► node.table_named ──► (id, version) in `models`? ──► Arc<TableModel>
//!                                                   └─ no: built, kept
//! ```
//!
//! Rule: no lock is held during a call to the node.

use std::sync::Arc;

use firn_api::Incarnation;
use firn_api::rows::{DatabaseNode, TableRef};
use firn_base::TableId;
use firn_sql_types::error::{ErrorKind, Result, SqlError, from_rows};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;

use super::model::{ReferencingKey, TableKind, TableModel};
use super::options::SchemaOptions;

/// Schemas with this prefix are namespaces of temporary tables. The owner follows, then the
/// session: see [`temporary_schema`].
pub(super) use firn_api::rows::SESSION_SCHEMA_PREFIX as TEMPORARY_SCHEMA_PREFIX;
/// Tables with this prefix are the new form of a table that is being copied. The owner follows, see
/// [`copy_name`].
pub(super) const COPY_PREFIX: &str = "#sql-";

/// The schema of a session's temporary tables: `#temporary-OWNER-SESSION`.
pub(super) fn temporary_schema(owner: Incarnation, session: u64) -> String {
    format!("{TEMPORARY_SCHEMA_PREFIX}{owner}-{session}")
}

/// The name of an unfinished copy of a table: `#sql-OWNER-TABLE-VERSION`.
pub(super) fn copy_name(owner: Incarnation, table: TableId, version: u64) -> String {
    format!("{COPY_PREFIX}{owner}-{}-{version}", table.0)
}

/// The compute node that owns a schema of temporary tables or an unfinished copy, from its name.
pub(super) fn owner_of(name: &str) -> Option<Incarnation> {
    let rest =
        name.strip_prefix(TEMPORARY_SCHEMA_PREFIX).or_else(|| name.strip_prefix(COPY_PREFIX))?;
    let (node, rest) = rest.split_once('-')?;
    let (start, _) = rest.split_once('-')?;
    format!("{node}-{start}").parse().ok()
}

/// Schemas and tables of a node, shared by all sessions.
pub struct Catalog {
    node: Arc<dyn DatabaseNode>,
    /// The compute node whose sessions use the catalog.
    owner: Incarnation,
    models: RwLock<FxHashMap<TableId, Arc<TableModel>>>,
    references: Mutex<Option<References>>,
}

/// Foreign keys by schema and name of their parent tables.
type ReferencesByParent = FxHashMap<(Arc<str>, Arc<str>), Arc<[ReferencingKey]>>;

/// Foreign keys by their parents, at a version of the definitions.
#[derive(Clone)]
struct References {
    version: u64,
    by_parent: Arc<ReferencesByParent>,
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog").finish_non_exhaustive()
    }
}

impl Catalog {
    /// The catalog of a database node, for the sessions of the compute node `owner`. Temporary
    /// tables and copies carry the owner in their names.
    #[must_use]
    pub fn new(node: Arc<dyn DatabaseNode>, owner: Incarnation) -> Catalog {
        Catalog { node, owner, models: RwLock::default(), references: Mutex::default() }
    }

    /// The compute node whose sessions use the catalog.
    #[must_use]
    pub fn owner(&self) -> Incarnation {
        self.owner
    }

    #[must_use]
    pub fn node(&self) -> &Arc<dyn DatabaseNode> {
        &self.node
    }

    /// See [`DatabaseNode::definitions_version`]: read it before looking names up.
    #[must_use]
    pub fn definitions_version(&self) -> u64 {
        self.node.definitions_version()
    }

    /// The names of the schemas that users see, sorted; those of virtual tables are included only
    /// if they are also stored.
    ///
    /// # Errors
    /// Errors of the node, as for all look-ups.
    pub fn schemas(&self) -> Result<Vec<Box<str>>> {
        let mut names = self.node.schemas().map_err(from_rows)?;
        names.retain(|name| !name.starts_with(TEMPORARY_SCHEMA_PREFIX));
        Ok(names)
    }

    /// Whether there is a stored schema of this name.
    ///
    /// # Errors
    /// Errors of the node.
    pub fn has_schema(&self, schema: &str) -> Result<bool> {
        if schema.starts_with(TEMPORARY_SCHEMA_PREFIX) {
            return Ok(false);
        }
        Ok(self.node.schema_options(schema).map_err(from_rows)?.is_some())
    }

    /// The properties of a schema.
    ///
    /// # Errors
    /// 1049 if it does not exist.
    pub fn schema(&self, schema: &str) -> Result<SchemaOptions> {
        let options = self.node.schema_options(schema).map_err(from_rows)?;
        SchemaOptions::decode(&options.ok_or_else(|| unknown_schema(schema))?)
    }

    /// A stored table or view by its name. Waits while DDL on it commits.
    ///
    /// # Errors
    /// 1146 if it does not exist, 1712 if its options are damaged.
    pub fn table(&self, schema: &str, name: &str) -> Result<Arc<TableModel>> {
        self.find_table(schema, name)?.ok_or_else(|| no_such_table(schema, name))
    }

    /// A stored table or view by its name, if there is one.
    ///
    /// # Errors
    /// 1712 if its options are damaged.
    pub fn find_table(&self, schema: &str, name: &str) -> Result<Option<Arc<TableModel>>> {
        let found = self.node.table_named(schema, name).map_err(from_rows)?;
        found.map(|table| self.model(table)).transpose()
    }

    /// A table by its identity, including temporary ones.
    ///
    /// # Errors
    /// 1712 if its options are damaged.
    pub fn table_by_id(&self, id: TableId) -> Result<Option<Arc<TableModel>>> {
        let found = self.node.table(id).map_err(from_rows)?;
        found.map(|table| self.model(table)).transpose()
    }

    /// The tables and views of a schema, sorted by name.
    ///
    /// # Errors
    /// 1049 if there is no such schema, 1712 if options are damaged.
    pub fn tables_of(&self, schema: &str) -> Result<Vec<Arc<TableModel>>> {
        self.find_tables_of(schema)?.ok_or_else(|| unknown_schema(schema))
    }

    /// The tables and views of a schema, sorted by name, if there is such a schema.
    ///
    /// # Errors
    /// 1712 if options are damaged.
    pub fn find_tables_of(&self, schema: &str) -> Result<Option<Vec<Arc<TableModel>>>> {
        let tables = self.node.tables_of(schema).map_err(from_rows)?;
        let shown = |table: &TableRef| !table.definition().name.starts_with(COPY_PREFIX);
        let models = |tables: Vec<TableRef>| {
            tables.into_iter().filter(shown).map(|table| self.model(table)).collect()
        };
        tables.map(models).transpose()
    }

    /// The model of a table that was looked up.
    ///
    /// # Errors
    /// 1712 if its options are damaged.
    pub fn model(&self, table: TableRef) -> Result<Arc<TableModel>> {
        let (id, version) = (table.definition().table_id, table.definition().schema_version);
        let of_version =
            |model: &&Arc<TableModel>| model.table.definition().schema_version == version;
        if let Some(model) = self.models.read().get(&id).filter(of_version) {
            return Ok(Arc::clone(model));
        }
        let model = Arc::new(TableModel::from_table(&self.node, table)?);
        let mut models = self.models.write();
        if let Some(before) = models.get(&id) {
            model.statistics.take_over(&before.statistics);
        }
        models.insert(id, Arc::clone(&model));
        Ok(model)
    }

    /// Tables whose statistics are stale, see [`super::statistics::TableStatistics::is_stale`].
    /// Tables that were not used since the start are not included.
    #[must_use]
    pub fn stale_tables(&self) -> Vec<Arc<TableModel>> {
        let mut models: Vec<_> = self.models.read().values().cloned().collect();
        models.retain(|model| {
            model.kind == TableKind::Base
                && !model.schema.starts_with(TEMPORARY_SCHEMA_PREFIX)
                && model.statistics.is_stale()
        });
        models
    }

    /// Statistics that were gathered elsewhere are read before the table's next use.
    pub fn forget_statistics(&self, table: TableId) {
        if let Some(model) = self.models.read().get(&table) {
            model.statistics.forget_gathered();
        }
    }

    /// Drops the models of tables that are gone.
    pub(super) fn forget_dropped(&self) {
        let known: Vec<TableId> = self.models.read().keys().copied().collect();
        // Tables that cannot be looked up now stay.
        let gone = known.into_iter().filter(|id| matches!(self.node.table(*id), Ok(None)));
        let gone: Vec<TableId> = gone.collect();
        let mut models = self.models.write();
        gone.iter().for_each(|id| drop(models.remove(id)));
    }

    /// The foreign keys whose parent is a table.
    ///
    /// # Errors
    /// 1712 if a table's options are damaged.
    pub fn referencing(&self, schema: &str, name: &str) -> Result<Arc<[ReferencingKey]>> {
        let references = self.references()?;
        let found = references.by_parent.get(&(Arc::from(schema), Arc::from(name)));
        Ok(found.cloned().unwrap_or_default())
    }

    fn references(&self) -> Result<References> {
        let version = self.definitions_version();
        let kept = self.references.lock().clone();
        if let Some(kept) = kept.filter(|kept| kept.version == version) {
            return Ok(kept);
        }
        let references = References { version, by_parent: Arc::new(self.all_references()?) };
        *self.references.lock() = Some(references.clone());
        Ok(references)
    }

    fn all_references(&self) -> Result<ReferencesByParent> {
        let mut by_parent: FxHashMap<_, Vec<ReferencingKey>> = FxHashMap::default();
        for schema in self.schemas()? {
            // A schema that is dropped meanwhile has no tables.
            for child in self.find_tables_of(&schema)?.unwrap_or_default() {
                for (key, foreign_key) in child.foreign_keys.iter().enumerate() {
                    let parent = (
                        Arc::clone(&foreign_key.parent_schema),
                        Arc::clone(&foreign_key.parent_table),
                    );
                    let reference = ReferencingKey { child: Arc::clone(&child), key };
                    by_parent.entry(parent).or_default().push(reference);
                }
            }
        }
        Ok(by_parent.into_iter().map(|(parent, keys)| (parent, keys.into())).collect())
    }
}

/// `Table 'db.t' doesn't exist`
#[must_use]
pub fn no_such_table(schema: &str, name: &str) -> SqlError {
    let message = format!("Table '{schema}.{name}' doesn't exist");
    SqlError::of_kind(ErrorKind::UnknownName, 1146, message)
}

/// `Unknown database 'db'`
#[must_use]
pub fn unknown_schema(schema: &str) -> SqlError {
    SqlError::of_kind(ErrorKind::UnknownName, 1049, format!("Unknown database '{schema}'"))
}
