//! MySQL's types and values during evaluation; errors and warnings as clients get them; and the
//! limits ([`watch`]) of a statement that is parsed, bound and planned.
//!
//! ```text
//!   ValueRef (a row) ──from_value_ref──► Datum ──cast, compare, add──► Datum ──to_stored──► Value
//!                                          ▲
//!                        its meaning: SqlType, known when the statement is bound
//! ```
//!
//! Invariants:
//! * a datum's variant follows from its type (see [`datum`]), or it is NULL;
//! * nothing here reads a clock, a zone or a mode except through [`context::EvaluationContext`];
//! * every executor evaluates through this crate, so a statement has one meaning.

pub mod byte_string;
pub mod calendar;
pub mod cast;
pub mod collate;
pub mod compare;
pub mod context;
pub mod datum;
pub mod decimal;
pub mod display;
pub mod display_length;
pub mod error;
pub mod hexadecimal;
pub mod json;
pub mod metadata;
pub mod moment_text;
pub mod number_text;
pub mod random_sequences;
pub mod session_facts;
pub mod sort_key;
pub mod sql_mode;
pub mod sql_type;
pub mod storage_form;
pub mod temporal;
#[cfg(test)]
mod tests;
pub mod time_zone;
pub mod type_display;
pub mod unify;
pub mod variable_form;
pub mod watch;

pub use byte_string::ByteString;
pub use cast::{Target, assign, cast, implicit_default};
pub use compare::{ComparisonKind, comparison_kind};
pub use context::{EvaluationContext, StatementKind};
pub use datum::Datum;
pub use decimal::Decimal;
pub use display::Display;
pub use json::JsonValue;
pub use sort_key::write_sort_key;
pub use sql_mode::SqlMode;
pub use sql_type::{
    Before, Coercibility, IntWidth, Members, SqlType, TypeKind, WorkedOut, WrittenBytes,
};
pub use time_zone::TimeZone;
pub use unify::unify;
