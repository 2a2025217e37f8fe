//! The values that clients bind to the parameters of prepared statements.

use firn_format::value as stored;
use firn_sql::catalog::notation::literal_text;
use firn_sql::error::Result;
use firn_sql::types::hexadecimal::hexadecimal_digits;
use firn_sql::types::{Datum, SqlType, TypeKind};
use firn_wire::Parameter;

use super::arguments::{Arguments, number_value};
use super::settings::Settings;

/// Adds the values of a binary execution.
///
/// # Errors
/// 1300 for invalid text, 1041 without memory.
pub(super) fn add_given(
    settings: &Settings,
    parameters: &[Parameter<'_>],
    arguments: &mut Arguments,
) -> Result<()> {
    for parameter in parameters {
        arguments.push(parameter_value(settings, parameter)?);
    }
    Ok(())
}

fn parameter_value(settings: &Settings, parameter: &Parameter<'_>) -> Result<(Datum, SqlType)> {
    let of_kind = |kind| SqlType::new(kind).not_null();
    Ok(match *parameter {
        Parameter::Null => (Datum::Null, SqlType::null()),
        Parameter::Int(number) => (Datum::Int(number), SqlType::bigint().not_null()),
        Parameter::UInt(number) => (Datum::UInt(number), SqlType::bigint_unsigned().not_null()),
        Parameter::Float(number) => {
            (Datum::Double(f64::from(number)), SqlType::double().not_null())
        }
        Parameter::Double(number) => (Datum::Double(number), SqlType::double().not_null()),
        Parameter::Decimal(text) => number_value(std::str::from_utf8(text).unwrap_or("0")),
        // Bytes that are invalid in the client's character set can only be meant for binary
        // columns.
        Parameter::Text(bytes) if !settings.is_client_text(bytes) => {
            (Datum::try_text(bytes)?, SqlType::varbinary(65_535).not_null())
        }
        Parameter::Text(text) => {
            let text = settings.decode(text)?;
            let ty = SqlType::varchar(65_535, settings.connection_collation);
            (Datum::try_text(text.as_bytes())?, ty.not_null())
        }
        Parameter::Bytes(bytes) => (Datum::try_text(bytes)?, SqlType::varbinary(65_535).not_null()),
        Parameter::Date(date) => (Datum::Date(packed_date(date).pack()), of_kind(TypeKind::Date)),
        Parameter::DateTime(value) => {
            let packed = stored::DateTime {
                date: packed_date(value.date),
                hour: value.hour,
                minute: value.minute,
                second: value.second,
                microsecond: value.microsecond,
            };
            (Datum::DateTime(packed.pack()), of_kind(TypeKind::DateTime { fsp: 6 }))
        }
        Parameter::Time(value) => {
            let packed = stored::Time {
                negative: value.negative,
                hours: u16::try_from(value.hours).unwrap_or(u16::MAX),
                minutes: value.minute,
                seconds: value.second,
                microseconds: value.microsecond,
            };
            (Datum::Time(packed.pack()), of_kind(TypeKind::Time { fsp: 6 }))
        }
    })
}

fn packed_date(date: firn_wire::Date) -> stored::Date {
    stored::Date { year: date.year, month: date.month, day: date.day }
}

/// A value as written in a statement, so that it keeps its type there.
pub(super) fn written_value(value: &Datum, ty: &SqlType, escapes: bool) -> String {
    let text = |text: &str| {
        let text = text.replace('\'', "''");
        if escapes { text.replace('\\', "\\\\") } else { text }
    };
    match value {
        Datum::Text(bytes) => match (bytes.as_str(), ty.kind.is_binary()) {
            (Some(written), false) => format!("'{}'", text(written)),
            _ => format!("x'{}'", hexadecimal_digits(bytes)),
        },
        Datum::Double(number) if number.is_finite() => format!("{number:e}"),
        Datum::Date(_) | Datum::Time(_) | Datum::DateTime(_) => {
            let written = literal_text(value, ty);
            let name = match value {
                // Zeros are not dates as literals.
                _ if !matches!(value, Datum::Time(_)) && written.contains("-00") => "",
                Datum::Date(_) => "DATE",
                Datum::Time(_) => "TIME",
                _ => "TIMESTAMP",
            };
            format!("{name}'{written}'")
        }
        _ => literal_text(value, ty),
    }
}
