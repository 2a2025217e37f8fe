//! A database node with a catalog, and DDL over it, for this crate's tests.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use firn_api::Incarnation;
use firn_api::rows::DatabaseNode;
use firn_base::clock::Clock;
use firn_sql_grammar as grammar;
use firn_sql_types::error::Result;
use firn_sql_types::{EvaluationContext, SqlType};
use firn_test_node::NodeSupport;

use crate::Catalog;
use crate::ddl::{DdlContext, DdlOutcome, ExpressionBinder, QueryColumn, execute};
use crate::session::SessionCatalog;

/// An empty node that lives as long as this does.
pub(crate) struct TestNode {
    pub(crate) node: Arc<dyn DatabaseNode>,
    support: NodeSupport,
}

impl TestNode {
    pub(crate) fn new() -> TestNode {
        let (support, node) = NodeSupport::open();
        TestNode { node: Arc::new(node), support }
    }

    /// What a session of the compute node `owner` sees.
    pub(crate) fn session_catalog(&self, owner: Incarnation) -> SessionCatalog {
        SessionCatalog::new(Arc::new(Catalog::new(Arc::clone(&self.node), owner)), 1)
    }

    /// How many snapshots are open.
    pub(crate) fn open_snapshots(&self) -> usize {
        self.support.open_snapshots()
    }
}

/// Runs a DDL statement of a session in the schema `test`.
pub(crate) fn run_ddl(
    catalog: &SessionCatalog,
    evaluation: &EvaluationContext,
    expressions: &dyn ExpressionBinder,
    text: &str,
) -> Result<DdlOutcome> {
    run_ddl_at(&firn_base::clock::SystemClock, catalog, evaluation, expressions, text)
}

/// As [`run_ddl`], at the time of this clock.
pub(crate) fn run_ddl_at(
    clock: &dyn Clock,
    catalog: &SessionCatalog,
    evaluation: &EvaluationContext,
    expressions: &dyn ExpressionBinder,
    text: &str,
) -> Result<DdlOutcome> {
    let statement = grammar::parse(text, grammar::Mode::default()).unwrap().statement;
    let context = DdlContext {
        catalog,
        clock,
        current_schema: Some("test"),
        evaluation,
        account: "root@localhost",
        lock_wait_timeout: Duration::from_millis(500),
        foreign_key_checks: true,
        require_primary_key: false,
        innodb_strict_mode: true,
        restrict_fk_on_non_standard_key: true,
        expressions,
        progress: &|_| true,
        changes: &|| Ok(()),
        locks: &catalog.shared().node().metadata_locks().open(),
        cancelled: &Arc::default(),
        is_waiting: &AtomicBool::new(false),
    };
    execute(&context, &statement)
}

/// Columns of whole numbers, as a binder of views reports them.
pub(crate) fn number_columns(names: &[&str]) -> Vec<QueryColumn> {
    let column = |name: &&str| QueryColumn {
        name: (*name).to_owned(),
        ty: SqlType::bigint(),
        width: None,
        origin: None,
    };
    names.iter().map(column).collect()
}
