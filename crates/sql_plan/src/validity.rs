//! How long a plan is valid: as long as its tables stay as they were when it was made.
//!
//! ```text
//!   node's definitions  17 ──── 18: a temporary table elsewhere ──── 19: ALTER of a plan's table
//!   plan made at        17
//!   asked at 17         one comparison
//!   asked at 18         looks at its tables: unchanged, so it holds at 18 from now on
//!   asked at 19         a table has another version: planned again
//! ```
//!
//! Invariant: the version is read before the tables are looked at, and a look-up of a table waits
//! while a change of the table commits. A plan found valid at a version therefore has the
//! definitions of that version, whatever happens meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};

use firn_sql_catalog::Catalog;
use firn_sql_catalog::model::TableKind;
use firn_sql_logical::{BoundStatement, PlannedLock};
use firn_sql_types::error::Result;

use super::PreparedPlan;

/// The version of the node's definitions up to which a plan is valid.
#[derive(Debug)]
pub struct Validity {
    version: AtomicU64,
    /// Whether the versions of its tables decide alone; otherwise the plan is valid for one version
    /// of the node.
    by_table: bool,
}

impl Validity {
    /// A plan that is valid for one version of the node's definitions.
    #[must_use]
    pub fn at(version: u64) -> Validity {
        Validity { version: AtomicU64::new(version), by_table: false }
    }

    /// The validity of a bound statement's plan. It depends on more than its tables' versions in
    /// two cases. First, if it names temporary tables, whose versions its locks do not have, or
    /// virtual tables, which a stored table of the same name would hide. Second, if foreign keys
    /// lead from or to a table that it writes, so that its locks depend on tables that it does not
    /// name.
    pub(super) fn of(bound: &BoundStatement) -> Validity {
        let has_all_parents =
            |lock: &PlannedLock| !lock.writes || lock.model.foreign_keys.is_empty();
        let by_table = !bound.writes_parents
            && bound.uses_stored_tables_only
            && bound.body.written().all(|table| table.kind != TableKind::Temporary)
            && bound.locks.iter().all(has_all_parents);
        Validity { version: AtomicU64::new(bound.definitions_version), by_table }
    }

    /// The last version at which the plan was found valid.
    #[must_use]
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }
}

impl PreparedPlan {
    /// Whether the plan is valid with the current definitions. Costs a comparison unless a
    /// definition has changed since the last call.
    #[must_use]
    #[inline]
    pub fn holds_in(&self, catalog: &Catalog) -> bool {
        let version = catalog.definitions_version();
        self.validity.version() == version || self.is_unchanged(catalog, version)
    }

    #[cold]
    fn is_unchanged(&self, catalog: &Catalog, version: u64) -> bool {
        let has_no_children = || -> Result<bool> {
            for table in self.statement.written() {
                if !catalog.referencing(&table.schema, &table.name)?.is_empty() {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        let holds = self.validity.by_table
            && self.locks.iter().all(|lock| lock.is_unchanged(catalog))
            && has_no_children().unwrap_or(false);
        if holds {
            self.validity.version.fetch_max(version, Ordering::Relaxed);
        }
        holds
    }
}
