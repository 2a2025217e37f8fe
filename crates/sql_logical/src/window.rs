//! Window functions and their frames.

use crate::expression::{AggregateCall, Expression, Slot};
use firn_sql_types::SqlType;

#[derive(Debug)]
pub struct WindowCall {
    pub function: WindowFunction,
    pub arguments: Vec<Expression>,
    /// Where the result goes.
    pub output: Slot,
    pub ty: SqlType,
}

#[derive(Debug)]
pub enum WindowFunction {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    /// `CUME_DIST`
    CumulativeDistribution,
    Ntile,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
    /// An aggregate over the frame.
    Aggregate(AggregateCall),
}

/// The rows around a row that a window function looks at.
#[derive(Debug, Clone)]
pub struct WindowFrame {
    /// `ROWS` or `RANGE`.
    pub rows: bool,
    pub start: FrameBound,
    pub end: FrameBound,
}

/// An end of a window frame.
#[derive(Debug, Clone)]
pub enum FrameBound {
    UnboundedPreceding,
    /// `n PRECEDING`; for `RANGE`, the expression `order key − n`.
    Preceding(Expression),
    CurrentRow,
    /// `n FOLLOWING`; for `RANGE`, the expression `order key + n`.
    Following(Expression),
    UnboundedFollowing,
}
