//! Comparison: the type in which two values are compared, and how.
//!
//! ```text
//!                integer   decimal   double    text      date/datetime  time      JSON
//!   integer      Integer   Decimal   Double    Double    Integer *      Integer * Json
//!   decimal                Decimal   Double    Double    Decimal        Decimal   Json
//!   double                           Double    Double    Double         Double    Json
//!   text                                       Text      DateTime       Text *    Json
//!   date/datetime                                        DateTime       DateTime  Json
//!   time                                                                Time      Json
//!   * Decimal when the date or time has a fraction of a second; a constant beside a
//!     column of times is a time if it can be one
//! ```
//!
//! A year beside a date is a date. Enums and sets are integers beside numbers and texts beside
//! everything else. The binder casts both sides to [`ComparisonKind::operand_type`]; datums are
//! then compared without looking at types again.

use std::borrow::Cow;
use std::cmp::Ordering;

use firn_format::value::CollationId;
use firn_sql_collation::{self as collation, Charset};

use crate::error::Result;

use super::collate::comparison_collation;
use super::datum::Datum;
use super::decimal::Decimal;
use super::display_length::LONGEST_TEXT;
use super::json::JsonValue;
use super::sql_type::{Coercibility, SqlType, TypeKind};

/// The type in which two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ComparisonKind {
    /// As integers, signed or unsigned.
    Integer,
    /// As exact numbers.
    Decimal,
    Double,
    /// As texts under a collation; `binary` for bytes.
    Text(CollationId),
    /// As dates with a time.
    DateTime,
    Time,
    Json,
}

/// The collation of JSON's strings.
const UTF8MB4_BIN: CollationId = CollationId(46);
/// Bits of a packed datetime below its date.
const TIME_OF_DAY_BITS: u32 = 37;

/// The type in which values of two types are compared.
///
/// # Errors
/// 1267 if no collation applies to both texts; `operation` names the comparison, such as `=`.
pub fn comparison_kind(a: &SqlType, b: &SqlType, operation: &str) -> Result<ComparisonKind> {
    let (left, right) = (&a.kind, &b.kind);
    Ok(match (family(left, right), family(right, left)) {
        (Family::Null, Family::Null) => ComparisonKind::Text(CollationId::BINARY),
        (Family::Null, _) => return comparison_kind(b, b, operation),
        (_, Family::Null) => return comparison_kind(a, a, operation),
        (Family::Json, _) | (_, Family::Json) => ComparisonKind::Json,
        (Family::Text, Family::Text) => {
            ComparisonKind::Text(comparison_collation(a, b, operation)?)
        }
        (Family::Text, Family::Time) => ComparisonKind::Text(own_collation(a)),
        (Family::Time, Family::Text) => ComparisonKind::Text(own_collation(b)),
        (Family::Time, Family::Time) => ComparisonKind::Time,
        (Family::Date | Family::Time | Family::Text, Family::Date | Family::Time)
        | (Family::Date, Family::Text) => ComparisonKind::DateTime,
        (Family::Text | Family::Double, _) | (_, Family::Text | Family::Double) => {
            ComparisonKind::Double
        }
        (Family::Integer, Family::Integer) => ComparisonKind::Integer,
        _ if left.scale() == 0
            && right.scale() == 0
            && !left.is_decimal()
            && !right.is_decimal() =>
        {
            ComparisonKind::Integer
        }
        _ => ComparisonKind::Decimal,
    })
}

fn own_collation(text: &SqlType) -> CollationId {
    text.collation().unwrap_or(CollationId::BINARY)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Null,
    Integer,
    Decimal,
    Double,
    Text,
    Date,
    Time,
    Json,
}

/// The family of a kind beside another.
fn family(kind: &TypeKind, other: &TypeKind) -> Family {
    match kind {
        TypeKind::Null => Family::Null,
        // Not beside TIMESTAMP, which has no incomplete dates.
        TypeKind::Year if matches!(other, TypeKind::Date | TypeKind::DateTime { .. }) => {
            Family::Date
        }
        TypeKind::Integer { .. } | TypeKind::Bit { .. } | TypeKind::Year => Family::Integer,
        TypeKind::Enum { .. } | TypeKind::Set { .. } if other.is_numeric() => Family::Integer,
        TypeKind::Decimal { .. } => Family::Decimal,
        TypeKind::Float | TypeKind::Double => Family::Double,
        TypeKind::Date | TypeKind::DateTime { .. } | TypeKind::Timestamp { .. } => Family::Date,
        TypeKind::Time { .. } => Family::Time,
        TypeKind::Json => Family::Json,
        _ => Family::Text,
    }
}

impl TypeKind {
    fn is_decimal(&self) -> bool {
        matches!(self, TypeKind::Decimal { .. })
    }
}

impl ComparisonKind {
    /// The type to which a side is cast before the comparison; its own if no cast is needed.
    #[must_use]
    pub fn operand_type(self, side: &SqlType) -> SqlType {
        if self.takes(&side.kind) {
            return side.clone();
        }
        let kind = match self {
            ComparisonKind::Integer => SqlType::bigint_or_unsigned(side.kind.is_unsigned()).kind,
            ComparisonKind::Decimal => SqlType::decimal_of_scale(side.kind.scale().max(6)).kind,
            ComparisonKind::Double => TypeKind::Double,
            ComparisonKind::Text(CollationId::BINARY) => {
                TypeKind::Varbinary { max_bytes: side.max_text_bytes() }
            }
            ComparisonKind::Text(collation) => {
                TypeKind::Varchar { max_chars: side.max_text_chars(), collation }
            }
            ComparisonKind::DateTime => TypeKind::DateTime { fsp: 6 },
            ComparisonKind::Time => TypeKind::Time { fsp: 6 },
            ComparisonKind::Json => {
                TypeKind::Varchar { max_chars: side.max_text_chars(), collation: UTF8MB4_BIN }
            }
        };
        // A value that is not a date or time becomes NULL as one.
        let nullable = side.nullable || kind.is_temporal();
        SqlType::new(kind).with_nullable(nullable).with_coercibility(side.coercibility)
    }

    /// Whether values of a kind are compared unchanged. Bytes beside Unicode texts are: they need
    /// not be valid characters.
    fn takes(self, kind: &TypeKind) -> bool {
        match self {
            ComparisonKind::Integer => kind.is_integer() || kind.is_enum_or_set(),
            ComparisonKind::Decimal => {
                kind.is_integer() || kind.is_decimal() || kind.is_enum_or_set()
            }
            ComparisonKind::Double => kind.is_numeric() || kind.is_enum_or_set(),
            ComparisonKind::Text(collation) => {
                kind.is_string() && !is_recoded(kind, collation) || *kind == TypeKind::Geometry
            }
            ComparisonKind::DateTime => kind.has_date(),
            ComparisonKind::Time => matches!(kind, TypeKind::Time { .. }),
            // Values that are not JSON are compared as JSON scalars.
            ComparisonKind::Json => !kind.is_enum_or_set(),
        }
    }

    /// Compares two values that have been cast to the operands' types; `None` if one is NULL.
    #[inline]
    #[must_use]
    pub fn compare(self, a: &Datum, b: &Datum) -> Option<Ordering> {
        match (a, b) {
            (Datum::Null, _) | (_, Datum::Null) => None,
            (Datum::Int(a), Datum::Int(b)) => Some(a.cmp(b)),
            (Datum::Text(a), Datum::Text(b)) => Some(self.compare_texts(a, b)),
            _ => Some(self.compare_others(a, b)),
        }
    }

    fn compare_texts(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            ComparisonKind::Text(collation) => collation::get(collation).compare(a, b),
            _ => a.cmp(b),
        }
    }

    fn compare_others(self, a: &Datum, b: &Datum) -> Ordering {
        match (a, b) {
            (Datum::Json(a), Datum::Json(b)) => a.compare(b),
            _ if self == ComparisonKind::Json => json_of(a).compare(&json_of(b)),
            (Datum::Time(a), Datum::Time(b)) => a.cmp(b),
            (Datum::Date(_) | Datum::DateTime(_), Datum::Date(_) | Datum::DateTime(_)) => {
                date_time_of(a).cmp(&date_time_of(b))
            }
            (Datum::Double(a), Datum::Double(b)) => compare_doubles(*a, *b),
            _ if self == ComparisonKind::Double => compare_doubles(double_of(a), double_of(b)),
            (Datum::Int(_) | Datum::UInt(_), Datum::Int(_) | Datum::UInt(_)) => {
                integer_of(a).cmp(&integer_of(b))
            }
            (Datum::Double(_), _) | (_, Datum::Double(_)) => {
                compare_doubles(double_of(a), double_of(b))
            }
            _ => decimal_of(a).cmp(&decimal_of(b)),
        }
    }
}

impl SqlType {
    /// `BIGINT`, signed or unsigned.
    #[must_use]
    pub fn bigint_or_unsigned(unsigned: bool) -> SqlType {
        if unsigned { SqlType::bigint_unsigned() } else { SqlType::bigint() }
    }

    /// Text of any length.
    #[must_use]
    pub fn long_text(collation: CollationId) -> SqlType {
        let kind = TypeKind::Text { max_bytes: LONGEST_TEXT, collation };
        SqlType::new(kind).with_coercibility(Coercibility::Coercible)
    }
}

/// Compares two values of one type, NULL below all; for sorting without keys.
#[must_use]
pub fn compare_values(ty: &SqlType, a: &Datum, b: &Datum) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Less,
        (false, true) => return Ordering::Greater,
        (false, false) => {}
    }
    own_kind(ty).compare(a, b).unwrap_or(Ordering::Equal)
}

/// The type in which values of one type are compared with each other. Enums and sets are compared
/// by number.
#[must_use]
pub fn own_kind(ty: &SqlType) -> ComparisonKind {
    match &ty.kind {
        TypeKind::Enum { .. } | TypeKind::Set { .. } => ComparisonKind::Integer,
        kind if kind.is_integer() => ComparisonKind::Integer,
        TypeKind::Decimal { .. } => ComparisonKind::Decimal,
        TypeKind::Float | TypeKind::Double => ComparisonKind::Double,
        TypeKind::Time { .. } => ComparisonKind::Time,
        TypeKind::Json => ComparisonKind::Json,
        kind if kind.has_date() => ComparisonKind::DateTime,
        kind => ComparisonKind::Text(kind.collation().unwrap_or(CollationId::BINARY)),
    }
}

pub(super) fn date_time_of(datum: &Datum) -> i64 {
    match datum {
        Datum::Date(packed) => packed << TIME_OF_DAY_BITS,
        Datum::DateTime(packed) => *packed,
        _ => 0,
    }
}

/// A value as a JSON scalar.
pub(super) fn json_of(datum: &Datum) -> Cow<'_, JsonValue> {
    Cow::Owned(match datum {
        Datum::Json(json) => return Cow::Borrowed(json),
        Datum::Null => JsonValue::Null,
        Datum::Int(number) => JsonValue::Int(*number),
        Datum::UInt(number) => JsonValue::UInt(*number),
        Datum::Double(number) => JsonValue::Double(*number),
        Datum::Decimal(number) => JsonValue::Decimal(*number),
        Datum::Text(text) => JsonValue::string(text.to_str_lossy()),
        Datum::Date(packed) => JsonValue::Date(*packed),
        Datum::Time(packed) => JsonValue::Time(*packed),
        Datum::DateTime(packed) => JsonValue::DateTime(*packed),
    })
}

fn integer_of(datum: &Datum) -> i128 {
    match datum {
        Datum::Int(number) => (*number).into(),
        Datum::UInt(number) => (*number).into(),
        _ => 0,
    }
}

pub(super) fn double_of(datum: &Datum) -> f64 {
    match datum {
        Datum::Int(number) => *number as f64,
        Datum::UInt(number) => *number as f64,
        Datum::Double(number) => *number,
        Datum::Decimal(number) => number.to_double(),
        _ => 0.0,
    }
}

pub(super) fn decimal_of(datum: &Datum) -> Decimal {
    match datum {
        Datum::Int(number) => Decimal::from(*number),
        Datum::UInt(number) => Decimal::from(*number),
        Datum::Decimal(number) => *number,
        _ => Decimal::ZERO,
    }
}

/// Both zeros are equal.
fn compare_doubles(a: f64, b: f64) -> Ordering {
    (a + 0.0).total_cmp(&(b + 0.0))
}

/// Whether the bytes mean different characters than the UTF-8 of a value's own form: a text in
/// another character set used as bytes, or bytes used as such a text.
fn is_recoded(from: &TypeKind, to: CollationId) -> bool {
    let charset = |id: CollationId| collation::get(id).charset;
    match (from.collation().map(charset), charset(to)) {
        (Some(text), Charset::Binary) | (Some(Charset::Binary), text) => !text.holds_own_bytes(),
        _ => false,
    }
}
