//! `EXPLAIN`: plans for human readers.
//!
//! ```text
//!   Traditional   a row for each table, with MySQL's columns
//!   Tree          the operators, one below the other; with ANALYZE what each did
//!   Json          the tree as a document
//! ```

mod expression;
mod json;
mod names;
mod table;
mod tree;

use std::fmt;

use super::{Counters, PreparedPlan};

pub use table::{ExplainRow, TABLE_COLUMNS};

/// A plan's rows for the traditional format.
#[must_use]
pub fn explain_table(plan: &PreparedPlan) -> Vec<ExplainRow> {
    table::rows(plan)
}

/// A plan as a tree of operators; with counters, also what each did.
#[must_use]
pub fn explain_tree(plan: &PreparedPlan, counters: Option<&Counters>) -> String {
    tree::text(plan, counters)
}

/// A plan as a JSON document.
#[must_use]
pub fn explain_json(plan: &PreparedPlan) -> String {
    json::document(plan)
}

impl fmt::Display for PreparedPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&explain_tree(self, None))
    }
}
