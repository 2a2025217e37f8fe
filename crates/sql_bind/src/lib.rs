//! From parsed statements to queries with resolved names: the binder.

mod binder;

pub use binder::{
    BoundRowExpression, bind_check, bind_row_expression, bind_statement, is_updatable, kept_type,
    query_columns, would_be_updatable,
};
