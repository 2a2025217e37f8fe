//! Subqueries in the place of values and conditions.

use firn_sql_types::ComparisonKind;

use super::{CompareOperator, Expression, Slot};

/// A subquery in an expression.
#[derive(Debug)]
pub struct Subquery {
    /// Its number among the subqueries of the statement.
    pub number: usize,
    pub kind: SubqueryKind,
    /// Slots of outer queries that it reads as written; its plan may read fewer.
    pub outer_slots: Vec<Slot>,
}

/// The use of a subquery.
#[derive(Debug)]
pub enum SubqueryKind {
    /// Its single value; NULL without rows, error 1242 with more than one.
    Scalar,
    /// `(operands) operator (subquery)` with its single row: NULL without rows, error 1242 with
    /// more than one.
    Row(ComparedRow),
    /// Whether it has rows.
    Exists {
        /// `NOT EXISTS`.
        negated: bool,
    },
    /// `operand operator ANY|ALL (subquery)`; `IN` is `= ANY`, `NOT IN` is `<> ALL`.
    Quantified {
        /// The left side of the comparison with each row.
        compared: ComparedRow,
        /// `ALL` instead of `ANY`.
        all: bool,
    },
}

impl SubqueryKind {
    /// The left side of the comparison with the subquery's rows.
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

/// The left side of a comparison with a subquery's rows.
#[derive(Debug)]
pub struct ComparedRow {
    /// The values; several for rows.
    pub operands: Vec<Expression>,
    pub operator: CompareOperator,
    /// The type of comparison of each pair.
    pub kinds: Vec<ComparisonKind>,
}
