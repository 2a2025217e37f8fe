//! How deep and how often a statement may nest queries.

use firn_sql_types::error::{ErrorKind, Result, SqlError};
use firn_sql_types::watch::{Recursion, nest};

/// How deep queries and views may nest.
const DEEPEST: usize = 63;
/// How often a statement may name views and common tables; nested ones count each time.
const MOST_EXPANSIONS: usize = 2_000;

/// The queries around the place that is being bound.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    /// How many views and subqueries are being bound.
    depth: usize,
    /// How many views and common tables were bound.
    expansions: usize,
}

impl Nesting {
    /// Whether the place is inside no view and no subquery.
    pub(crate) fn is_outermost(&self) -> bool {
        self.depth == 0
    }

    /// Checks that queries do not nest too deep.
    ///
    /// # Errors
    /// 1473
    pub(crate) fn check_depth(&self) -> Result<()> {
        if self.depth < DEEPEST {
            return Ok(());
        }
        Err(SqlError::new(1473, "Too high level of nesting for select"))
    }

    /// Begins a query inside another.
    ///
    /// # Errors
    /// 1436 if the stack is used up.
    pub(crate) fn enter(&mut self) -> Result<()> {
        nest(Recursion::Bind)?;
        self.depth += 1;
        Ok(())
    }

    /// The end of [`Nesting::enter`].
    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Counts a view or common table that is bound at each use.
    ///
    /// # Errors
    /// 4169
    pub(crate) fn expand(&mut self, what: &str) -> Result<()> {
        self.expansions += 1;
        if self.expansions <= MOST_EXPANSIONS {
            return Ok(());
        }
        let message =
            format!("{what} expansion exceeded an implementation limit. Simplify the query.");
        Err(SqlError::of_kind(ErrorKind::TooComplex, 4169, message))
    }
}
