//! Character sets and collations by their names in statements.

use firn_format::value::CollationId;
use firn_sql_collation::{self as collation, Charset};
use firn_sql_types::error::{Result, SqlError};

/// A character set by its name.
///
/// # Errors
/// 1115 if it does not exist.
pub fn charset_named(name: &str) -> Result<Charset> {
    let unknown = || SqlError::new(1115, format!("Unknown character set: '{name}'"));
    Charset::by_name(name).ok_or_else(unknown)
}

/// A collation by its name.
///
/// # Errors
/// 1273 if it does not exist.
pub fn collation_named(name: &str) -> Result<&'static collation::Collation> {
    collation::by_name(name)
        .ok_or_else(|| SqlError::new(1273, format!("Unknown collation: '{name}'")))
}

/// The combined meaning of `CHARACTER SET` and `COLLATE`; `None` if neither is given.
///
/// # Errors
/// 1115, 1273 for unknown names; 1253 if they do not match.
pub fn resolve(charset: Option<&str>, collation: Option<&str>) -> Result<Option<CollationId>> {
    let charset = charset.map(charset_named).transpose()?;
    let Some(collation) = collation else {
        return Ok(charset.map(Charset::default_collation));
    };
    let collation = collation_named(collation)?;
    match charset {
        Some(charset) if charset != collation.charset => Err(SqlError::new(
            1253,
            format!(
                "COLLATION '{}' is not valid for CHARACTER SET '{}'",
                collation.name,
                charset.name()
            ),
        )),
        _ => Ok(Some(collation.id)),
    }
}

/// The collation of a character set that compares code points.
#[must_use]
pub(super) fn binary_collation(charset: Charset) -> CollationId {
    let name = match charset {
        Charset::Binary => "binary".to_owned(),
        charset => format!("{}_bin", charset.name()),
    };
    collation::by_name(&name).map_or(charset.default_collation(), |collation| collation.id)
}
