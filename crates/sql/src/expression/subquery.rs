//! Subqueries where values and conditions stand.

use crate::types::ComparisonKind;

use super::{CompareOperator, Expression, Slot};

/// A subquery in an expression.
#[derive(Debug)]
pub struct Subquery {
    /// Its number among the subqueries of the statement.
    pub number: usize,
    /// What is asked of it.
    pub kind: SubqueryKind,
    /// Slots of outer queries that it reads as it is written; its plan may read fewer.
    pub outer_slots: Vec<Slot>,
}

/// What is asked of a subquery.
#[derive(Debug)]
pub enum SubqueryKind {
    /// Its one value; NULL without rows, error 1242 with more than one.
    Scalar,
    /// `(operands) operator (subquery)` with its one row: NULL without rows, error 1242 with more
    /// than one.
    Row(ComparedRow),
    /// Whether it has rows.
    Exists {
        /// `NOT EXISTS`.
        negated: bool,
    },
    /// `operand operator ANY|ALL (subquery)`; `IN` is `= ANY`, `NOT IN` is `<> ALL`.
    Quantified {
        /// What each row is compared with.
        compared: ComparedRow,
        /// `ALL` instead of `ANY`.
        all: bool,
    },
}

impl SubqueryKind {
    /// What the subquery's rows are compared with.
    #[must_use]
    pub fn compared(&self) -> Option<&ComparedRow> {
        match self {
            SubqueryKind::Row(compared) | SubqueryKind::Quantified { compared, .. } => {
                Some(compared)
            }
            SubqueryKind::Scalar | SubqueryKind::Exists { .. } => None,
        }
    }
}

/// What stands on the left of a subquery's rows.
#[derive(Debug)]
pub struct ComparedRow {
    /// The values; several for rows.
    pub operands: Vec<Expression>,
    /// The comparison.
    pub operator: CompareOperator,
    /// What each pair is compared as.
    pub kinds: Vec<ComparisonKind>,
}
