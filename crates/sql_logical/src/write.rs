//! What statements that write do with rows, in bound form.

use std::sync::Arc;

use crate::expression::{Expression, Slot};
use firn_sql_catalog::model::TableModel;

/// A value for a column.
#[derive(Debug)]
pub struct Assignment {
    /// The column's ordinal.
    pub ordinal: u16,
    /// Its value, of any type: the executor stores it by MySQL's rules for assignment. `None` is
    /// `DEFAULT`.
    pub value: Option<Expression>,
}

/// A condition that a row must meet to be written.
#[derive(Debug)]
pub struct RowCheck {
    pub of: CheckedBy,
    /// Over the slots of the row.
    pub condition: Expression,
}

/// The origin of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckedBy {
    /// A `CHECK` of the table, by its name: the condition must not be false.
    Constraint(Arc<str>),
    /// A view `WITH CHECK OPTION`, by its schema and name: the condition must be true.
    View(Arc<str>),
}

/// What an `INSERT` does with a duplicate key.
#[derive(Debug)]
pub enum DuplicatePolicy {
    /// Error 1062.
    Refuse,
    /// `REPLACE`: the old rows are deleted first.
    Replace,
    /// `ON DUPLICATE KEY UPDATE`, over the slots of `old_row` and `new_row`.
    Update(Vec<Assignment>),
}

/// A table that an `UPDATE` or `DELETE` changes.
#[derive(Debug)]
pub struct WriteTarget {
    pub table: Arc<TableModel>,
    /// The slot for the bytes of the row's primary key, which says which row is changed.
    pub row_key: Slot,
    /// The slot for the bytes of the row as it was read.
    pub row_payload: Slot,
    pub assignments: Vec<Assignment>,
    /// Whether an assignment reads what earlier ones have set: in a single-table `UPDATE`, and in
    /// the first table of a join. For all others, MySQL keeps the values until the join is done.
    pub in_turn: bool,
    /// Whether the join may return rows without a row of the table. MySQL treats the columns as
    /// nullable until it stores: NULL is then bad data in them.
    pub may_be_absent: bool,
    /// Slots of the row's columns, for assignments, generated columns and checks.
    pub row: Vec<(u16, Slot)>,
    /// Generated columns in the order of dependence.
    pub generated: Vec<(u16, Expression)>,
    /// In the order in which they are evaluated.
    pub checks: Vec<RowCheck>,
}

impl WriteTarget {
    /// Whether an update may change a column.
    #[must_use]
    pub fn changes_column(&self, ordinal: u16) -> bool {
        let follows = self
            .table
            .by_ordinal(ordinal)
            .is_some_and(|column| column.on_update_now.is_some() || column.generated.is_some());
        follows || self.assignments.iter().any(|one| one.ordinal == ordinal)
    }
}
