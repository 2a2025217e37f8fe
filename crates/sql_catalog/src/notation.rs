//! Values and names in MySQL's notation.
//!
//! ```text
//!   1.50  ──literal_text──► 1.50     it's ──quoted──► 'it''s'     t`1 ──identifier──► `t``1`
//! ```

use firn_format::value::{Date, DateTime, Time};
use firn_sql_types::hexadecimal::hexadecimal_digits;
use firn_sql_types::temporal::format;
use firn_sql_types::{Datum, SqlType, TypeKind, number_text};

/// The text form of a value of a type.
#[must_use]
pub fn literal_text(datum: &Datum, ty: &SqlType) -> String {
    let fsp = ty.kind.fsp();
    match (datum, &ty.kind) {
        (Datum::Null, _) => "NULL".to_owned(),
        (Datum::UInt(ordinal), TypeKind::Enum { members, .. }) => {
            members.name_of(*ordinal).to_owned()
        }
        (Datum::UInt(bits), TypeKind::Set { members, .. }) => members.names_of(*bits),
        (Datum::UInt(year), TypeKind::Year) => format!("{year:04}"),
        (Datum::Int(number), _) => number.to_string(),
        (Datum::UInt(number), _) => number.to_string(),
        (Datum::Double(number), TypeKind::Float) => {
            number_text::float_to_text(*number).to_str_lossy().into_owned()
        }
        (Datum::Double(number), _) => {
            number_text::double_to_text(*number).to_str_lossy().into_owned()
        }
        (Datum::Decimal(number), _) => number.to_string(),
        (Datum::Text(text), _) => text.to_str_lossy().into_owned(),
        (Datum::Date(packed), _) => format::date_text(Date::unpack(*packed)),
        (Datum::Time(packed), _) => format::time_text(Time::unpack(*packed), fsp),
        (Datum::DateTime(packed), _) => format::date_time_text(DateTime::unpack(*packed), fsp),
        (Datum::Json(json), _) => json.to_text(),
    }
}

/// A text in single quotes, as MySQL prints members and comments.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for character in text.chars() {
        match character {
            '\'' => quoted.push_str("''"),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\0' => quoted.push_str("\\0"),
            '\x1a' => quoted.push_str("\\Z"),
            other => quoted.push(other),
        }
    }
    quoted.push('\'');
    quoted
}

/// A name in backticks.
#[must_use]
pub fn identifier(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Names in backticks, separated by commas.
pub fn identifiers<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(identifier).collect::<Vec<_>>().join(",")
}

pub(crate) fn current_timestamp(fsp: u8) -> String {
    if fsp == 0 { "CURRENT_TIMESTAMP".to_owned() } else { format!("CURRENT_TIMESTAMP({fsp})") }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    format!("0x{}", hexadecimal_digits(bytes))
}
