//! The parameters of a plan: values with types, and what a plan depends on of them.

use std::borrow::Cow;

use firn_sql::grammar::LiteralValue;
use firn_sql::types::{Datum, Decimal, SqlType, TypeKind};

use super::settings::Settings;

/// Parameters for which a plan was found or made.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) values: Vec<Datum>,
    pub(super) types: Vec<SqlType>,
}

impl Arguments {
    pub(super) fn push(&mut self, (value, ty): (Datum, SqlType)) {
        self.values.push(value);
        self.types.push(ty);
    }

    /// Forgets the parameters; the memory stays.
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.types.clear();
    }
}

/// A lifted literal as a value with its type. The types have no lengths, so literals of all lengths
/// share a plan. `None` for a placeholder.
pub(super) fn literal_value(
    literal: LiteralValue<'_>,
    collation: firn_format::value::CollationId,
) -> Option<(Datum, SqlType)> {
    let (value, ty) = match literal {
        LiteralValue::Integer(number) => (Datum::Int(number), SqlType::bigint()),
        LiteralValue::Decimal(text) => return Some(number_value(text)),
        LiteralValue::Float(number) => (Datum::Double(number), SqlType::double()),
        LiteralValue::Text(text) => {
            let ty = SqlType::varchar(LONGEST_LITERAL, collation);
            let value = match text {
                Cow::Borrowed(text) => Datum::text(text),
                Cow::Owned(text) => Datum::text(text),
            };
            (value, ty)
        }
        LiteralValue::Bytes(bytes) => (Datum::text(bytes), SqlType::varbinary(LONGEST_LITERAL)),
        LiteralValue::Parameter => return None,
    };
    Some((value, ty.not_null()))
}

/// An exact number as written, with its type; all with the same digits after the point share a
/// type.
pub(super) fn number_value(text: &str) -> (Datum, SqlType) {
    match Decimal::parse(text) {
        Some(number) => {
            let ty = SqlType::decimal_of_scale(number.scale());
            (Datum::Decimal(number), ty.not_null())
        }
        None => (Datum::Double(text.parse().unwrap_or(0.0)), SqlType::double().not_null()),
    }
}

/// Writes the key of a text for the plan cache: everything that its plan depends on besides the
/// definitions.
pub(super) fn write_key(
    key: &mut Vec<u8>,
    text: &str,
    schema: Option<&str>,
    settings: &Settings,
    arguments: &Arguments,
) {
    key.clear();
    key.extend_from_slice(text.as_bytes());
    key.push(0);
    key.extend_from_slice(schema.unwrap_or("").as_bytes());
    key.push(0);
    key.extend_from_slice(&settings.sql_mode.0.to_le_bytes());
    key.extend_from_slice(&settings.connection_collation.0.to_le_bytes());
    let results = settings.presentation.collation.map_or(0, |collation| collation.0);
    key.extend_from_slice(&results.to_le_bytes());
    key.push(settings.div_precision_increment);
    key.push(settings.executor.map_or(0, |executor| executor as u8 + 1));
    key.extend_from_slice(&settings.analytic_cost.to_le_bytes());
    for ty in &arguments.types {
        write_tag(&ty.kind, key);
    }
}

/// The part of a parameter's type on which a plan depends.
pub(super) fn write_tag(kind: &TypeKind, out: &mut Vec<u8>) {
    let tag = match kind {
        TypeKind::Null => 0,
        TypeKind::Integer { unsigned: false, .. } => 1,
        TypeKind::Integer { unsigned: true, .. } => 2,
        TypeKind::Float | TypeKind::Double => 3,
        TypeKind::Decimal { scale, .. } => {
            out.push(4);
            *scale
        }
        TypeKind::Date => 5,
        TypeKind::Time { .. } => 6,
        TypeKind::DateTime { .. } | TypeKind::Timestamp { .. } => 7,
        TypeKind::Binary { .. } | TypeKind::Varbinary { .. } | TypeKind::Blob { .. } => 8,
        TypeKind::Json => 9,
        _ => 10,
    };
    out.push(tag);
}

/// The length in the types of lifted strings.
const LONGEST_LITERAL: u32 = 65_535;
