//! What a query block gets from the clause around it, and its hints.

use firn_sql_grammar::ast::LockClause;

use super::hints::BlockHints;
use super::scope::Scope;

/// Requests to the block that is bound next, and the hints of the one that is being bound.
#[derive(Default)]
pub(crate) struct BlockContext {
    /// `NO_MERGE` and join order hints, for the block that is being bound.
    pub(crate) hints: BlockHints,
    /// Locking clauses after the parentheses of the query that is bound next.
    pub(crate) inherited_locks: Vec<LockClause>,
    /// Only whether the next block has rows matters.
    pub(crate) tests_rows: bool,
    /// The scope of the next block must be kept.
    pub(crate) keeps_source: bool,
    /// The scope of the query whose rows are inserted.
    pub(crate) source_scope: Option<Scope>,
}
