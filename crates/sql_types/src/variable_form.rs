//! What a user variable keeps: a number of the widest type of its kind, or a text.
//!
//! ```text
//!   SET @a = DATE'2024-02-29'     '2024-02-29', a text in latin1: @a + 1 is 2025
//!   SET @a = 2.50                 DECIMAL(65,30), whose text is still 2.50
//! ```

use firn_format::value::CollationId;

use super::cast::{cast, text_of};
use super::context::EvaluationContext;
use super::datum::Datum;
use super::decimal::{MAX_PRECISION, MAX_SCALE};
use super::error::Result;
use super::sql_type::{Coercibility, SqlType, TypeKind};

/// The longest text of a variable, in characters or bytes.
pub const LONGEST: u32 = 16_777_215;
/// `latin1_swedish_ci`, in which moments become texts.
const MOMENT_COLLATION: CollationId = CollationId(8);
/// `utf8mb4_bin`
const DOCUMENT_COLLATION: CollationId = CollationId(46);

impl SqlType {
    /// The type of a variable that was set to a value of this type, which is not NULL.
    #[must_use]
    pub fn as_variable(&self) -> SqlType {
        let ty = match &self.kind {
            TypeKind::Bit { .. } | TypeKind::Integer { unsigned: true, .. } => {
                SqlType::bigint_unsigned()
            }
            TypeKind::Integer { .. } | TypeKind::Year => SqlType::bigint(),
            TypeKind::Decimal { .. } => SqlType::decimal(MAX_PRECISION, MAX_SCALE),
            TypeKind::Float | TypeKind::Double => SqlType::double(),
            TypeKind::Null
            | TypeKind::Binary { .. }
            | TypeKind::Varbinary { .. }
            | TypeKind::Blob { .. }
            | TypeKind::Geometry => SqlType::varbinary(LONGEST),
            TypeKind::Json => SqlType::varchar(LONGEST, DOCUMENT_COLLATION),
            kind => SqlType::varchar(LONGEST, kind.collation().unwrap_or(MOMENT_COLLATION)),
        };
        ty.with_nullable(self.nullable).with_coercibility(Coercibility::Implicit)
    }
}

/// The value of a type as a variable of [`SqlType::as_variable`] keeps it.
#[must_use]
pub fn variable_form(value: Datum, ty: &SqlType) -> Datum {
    match (value, &ty.kind) {
        (Datum::Null, _) => Datum::Null,
        (Datum::UInt(year), TypeKind::Year) => Datum::Int(year as i64),
        (value, kind) if kind.is_numeric() => value,
        (value @ Datum::Text(_), _) => value,
        (value, _) => Datum::Text(text_of(&value, ty)),
    }
}

/// A variable's value as the type that the statement was bound with: an assignment in the same
/// statement may have given it another one.
///
/// # Errors
/// As [`cast`].
pub fn read_as(value: Datum, to: &SqlType, context: &EvaluationContext) -> Result<Datum> {
    let from = match (&value, &to.kind) {
        (Datum::Null, _)
        | (Datum::Int(_), TypeKind::Integer { unsigned: false, .. })
        | (Datum::UInt(_), TypeKind::Integer { unsigned: true, .. })
        | (Datum::Double(_), TypeKind::Double)
        | (Datum::Decimal(_), TypeKind::Decimal { .. }) => return Ok(value),
        (Datum::Text(_), kind) if kind.is_string() => return Ok(value),
        (Datum::Int(_), _) => SqlType::bigint(),
        (Datum::UInt(_), _) => SqlType::bigint_unsigned(),
        (Datum::Double(_), _) => SqlType::double(),
        (Datum::Decimal(number), _) => SqlType::decimal(MAX_PRECISION, number.scale()),
        (_, _) => SqlType::varchar(LONGEST, context.connection_collation),
    };
    cast(&value, &from, to, context)
}

#[cfg(test)]
mod tests {
    use firn_format::value::Date;

    use super::*;

    #[test]
    fn moments_are_texts_in_latin1() {
        let ty = SqlType::new(TypeKind::Date);
        let date = Date { year: 2024, month: 2, day: 29 };
        assert_eq!(variable_form(Datum::Date(date.pack()), &ty), Datum::text(&b"2024-02-29"[..]));
        assert_eq!(ty.as_variable().kind, SqlType::varchar(LONGEST, MOMENT_COLLATION).kind);
    }

    #[test]
    fn numbers_are_the_widest_of_their_kind() {
        let year = SqlType::new(TypeKind::Year);
        assert_eq!(variable_form(Datum::UInt(2024), &year), Datum::Int(2024));
        assert_eq!(year.as_variable().kind, SqlType::bigint().kind);
        assert_eq!(SqlType::decimal(3, 2).as_variable().kind, SqlType::decimal(65, 30).kind);
    }
}
