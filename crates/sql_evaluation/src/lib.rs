//! The values of bound expressions, wherever they are evaluated.
//!
//! ```text
//!   Expression ──Evaluate──► Datum       over a Frame: a statement's execution, or …
//!       │ sent_expression
//!       ▼
//!   api::rows::Expression ──PureEvaluator──► a frame of one row at a database node
//! ```
//!
//! There is one evaluation ([`Evaluate`]), and one list of what may be sent to a node
//! ([`purity`]): what depends on the row alone. What depends on the session, and what has no form
//! in the message, is evaluated by the statement. What may raise an error or a warning is sent; if
//! it does raise one, the node does not know the result, and the statement evaluates the row.

mod evaluate;
mod frame;
mod known_patterns;
mod purity;
mod received;
mod sent;
#[cfg(test)]
mod tests;
mod value_type;

pub use evaluate::{Evaluate, Operand, compare_datums, compare_tuples, truth_of};
pub use frame::Frame;
pub use known_patterns::KnownPatterns;
pub use received::PureEvaluator;
pub use sent::{Given, sent_expression};
