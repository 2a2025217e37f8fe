//! The values of `firn_read_consistency`: what a read on a replica must have seen.

use std::time::Duration;

use firn_api::rows::ReadConsistency;
use firn_base::Cts;
use firn_sql::error::{Result, SqlError};

/// The name of the variable.
pub(crate) const VARIABLE: &str = "firn_read_consistency";

/// The consistency of this name; `strong` is what STRONG means, and `position` what SESSION waits
/// for.
///
/// # Errors
/// 1231
pub(crate) fn parse(text: &str, strong: ReadConsistency, position: Cts) -> Result<ReadConsistency> {
    let upper = text.trim().to_ascii_uppercase();
    Ok(match &*upper {
        "STRONG" => strong,
        "SESSION" => ReadConsistency::Position(position),
        "STALE" => ReadConsistency::Stale,
        bounded => {
            let age = bounded.strip_prefix("BOUNDED(").and_then(|rest| rest.strip_suffix(')'));
            let age = age.and_then(|age| age.trim().parse().ok()).ok_or_else(|| invalid(text))?;
            ReadConsistency::Bounded(Duration::from_millis(age))
        }
    })
}

/// Whether there is a consistency of this name.
///
/// # Errors
/// 1231
pub(crate) fn check(text: &str) -> Result<()> {
    parse(text, ReadConsistency::Stale, Cts(0)).map(drop)
}

fn invalid(text: &str) -> SqlError {
    let message = format!(
        "Variable '{VARIABLE}' can't be set to the value of '{text}': it is STRONG, SESSION, \
         BOUNDED(milliseconds) or STALE"
    );
    SqlError::new(1231, message)
}
