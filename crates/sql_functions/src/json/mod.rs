//! JSON documents: reading, changing, making and comparing them.
//!
//! ```text
//!   document argument   JSON as it is; text is parsed (error 3141)
//!   value argument      JSON as it is; text becomes a JSON string
//!   path argument       text in the language of `path`
//! ```

mod build;
mod change;
mod contain;
mod merge;
mod path;
mod read;
mod schema;
mod search;
mod value;

use crate::Function;

pub use path::Path;
pub use value::json_value;

pub(super) const FAMILIES: &[&[Function]] = &[
    build::FUNCTIONS,
    change::FUNCTIONS,
    contain::FUNCTIONS,
    merge::FUNCTIONS,
    read::FUNCTIONS,
    schema::FUNCTIONS,
    search::FUNCTIONS,
];
