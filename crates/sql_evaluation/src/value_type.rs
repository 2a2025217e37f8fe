//! Types as messages have them.

use firn_api::rows::expression::{ComparedBy, Comparison, Test, ValueKind, ValueType};
use firn_format::value::{CollationId, DecimalType, IntWidth};
use firn_sql_collation as collation;
use firn_sql_logical::expression::{CompareOperator, IsTest};
use firn_sql_types::decimal::MAX_SCALE;
use firn_sql_types::{Coercibility, ComparisonKind, SqlType, TypeKind};

/// Digits of a fraction of a second, at most.
const MOST_FRACTION_DIGITS: u8 = 6;

/// A type for a message; `None` for the types whose values depend on the session (TIMESTAMP), on
/// names that the node does not know (ENUM, SET), or that have no exact stored form here.
pub(crate) fn sent_type(ty: &SqlType) -> Option<ValueType> {
    let kind = match &ty.kind {
        TypeKind::Null => ValueKind::Null,
        TypeKind::Integer { width, unsigned } => {
            ValueKind::Integer { bytes: width.bytes() as u8, is_unsigned: *unsigned }
        }
        // Literals may have more digits after the point than anything that is stored.
        TypeKind::Decimal { scale, .. } if *scale > MAX_SCALE => return None,
        TypeKind::Decimal { precision, scale, unsigned } => {
            ValueKind::Decimal { precision: *precision, scale: *scale, is_unsigned: *unsigned }
        }
        TypeKind::Float => ValueKind::Float,
        TypeKind::Double => ValueKind::Double,
        TypeKind::Char { max_chars, collation } => {
            ValueKind::Char { max_chars: *max_chars, collation: collation.0 }
        }
        TypeKind::Varchar { max_chars, collation } => {
            ValueKind::Varchar { max_chars: *max_chars, collation: collation.0 }
        }
        TypeKind::Text { max_bytes, collation } => {
            ValueKind::Text { max_bytes: *max_bytes, collation: collation.0 }
        }
        TypeKind::Binary { max_bytes } => ValueKind::Binary { max_bytes: *max_bytes },
        TypeKind::Varbinary { max_bytes } => ValueKind::Varbinary { max_bytes: *max_bytes },
        TypeKind::Blob { max_bytes } => ValueKind::Blob { max_bytes: *max_bytes },
        TypeKind::Date => ValueKind::Date,
        TypeKind::Time { fsp } => ValueKind::Time { fsp: *fsp },
        TypeKind::DateTime { fsp } => ValueKind::DateTime { fsp: *fsp },
        TypeKind::Bit { .. }
        | TypeKind::Year
        | TypeKind::Timestamp { .. }
        | TypeKind::Enum { .. }
        | TypeKind::Set { .. }
        | TypeKind::Json
        | TypeKind::Geometry => return None,
    };
    let collation_rank = ty.coercibility.code();
    Some(ValueType { kind, is_nullable: ty.nullable, collation_rank })
}

/// The type in a message, which is untrusted; `None` if there is no such type.
pub(crate) fn received_type(ty: &ValueType) -> Option<SqlType> {
    let kind = match ty.kind {
        ValueKind::Null => TypeKind::Null,
        ValueKind::Integer { bytes, is_unsigned } => {
            let width = IntWidth::of_bytes(bytes.into())?;
            TypeKind::Integer { width, unsigned: is_unsigned }
        }
        ValueKind::Decimal { precision, scale, is_unsigned } => {
            DecimalType::new(precision, scale)?;
            TypeKind::Decimal { precision, scale, unsigned: is_unsigned }
        }
        ValueKind::Float => TypeKind::Float,
        ValueKind::Double => TypeKind::Double,
        ValueKind::Char { max_chars, collation } => {
            TypeKind::Char { max_chars, collation: known_collation(collation)? }
        }
        ValueKind::Varchar { max_chars, collation } => {
            TypeKind::Varchar { max_chars, collation: known_collation(collation)? }
        }
        ValueKind::Text { max_bytes, collation } => {
            TypeKind::Text { max_bytes, collation: known_collation(collation)? }
        }
        ValueKind::Binary { max_bytes } => TypeKind::Binary { max_bytes },
        ValueKind::Varbinary { max_bytes } => TypeKind::Varbinary { max_bytes },
        ValueKind::Blob { max_bytes } => TypeKind::Blob { max_bytes },
        ValueKind::Date => TypeKind::Date,
        ValueKind::Time { fsp } => TypeKind::Time { fsp: known_fsp(fsp)? },
        ValueKind::DateTime { fsp } => TypeKind::DateTime { fsp: known_fsp(fsp)? },
    };
    let coercibility = Coercibility::of_code(ty.collation_rank)?;
    Some(SqlType::new(kind).with_nullable(ty.is_nullable).with_coercibility(coercibility))
}

fn known_fsp(fsp: u8) -> Option<u8> {
    (fsp <= MOST_FRACTION_DIGITS).then_some(fsp)
}

/// A collation that this version has.
pub(crate) fn known_collation(number: u16) -> Option<CollationId> {
    let id = CollationId(number);
    collation::by_id(id).map(|_| id)
}

pub(crate) fn sent_comparison(kind: ComparisonKind) -> Option<ComparedBy> {
    Some(match kind {
        ComparisonKind::Integer => ComparedBy::Integer,
        ComparisonKind::Decimal => ComparedBy::Decimal,
        ComparisonKind::Double => ComparedBy::Double,
        ComparisonKind::Text(collation) => ComparedBy::Text(collation.0),
        ComparisonKind::DateTime => ComparedBy::DateTime,
        ComparisonKind::Time => ComparedBy::Time,
        ComparisonKind::Json => return None,
    })
}

pub(crate) fn received_comparison(by: ComparedBy) -> Option<ComparisonKind> {
    Some(match by {
        ComparedBy::Integer => ComparisonKind::Integer,
        ComparedBy::Decimal => ComparisonKind::Decimal,
        ComparedBy::Double => ComparisonKind::Double,
        ComparedBy::Text(collation) => ComparisonKind::Text(known_collation(collation)?),
        ComparedBy::DateTime => ComparisonKind::DateTime,
        ComparedBy::Time => ComparisonKind::Time,
    })
}

/// Operators of SQL and those of messages.
const OPERATORS: [(CompareOperator, Comparison); 7] = [
    (CompareOperator::Equal, Comparison::Equal),
    (CompareOperator::NullSafeEqual, Comparison::NullSafeEqual),
    (CompareOperator::NotEqual, Comparison::NotEqual),
    (CompareOperator::Less, Comparison::Less),
    (CompareOperator::LessOrEqual, Comparison::LessOrEqual),
    (CompareOperator::Greater, Comparison::Greater),
    (CompareOperator::GreaterOrEqual, Comparison::GreaterOrEqual),
];

pub(crate) fn sent_operator(operator: CompareOperator) -> Option<Comparison> {
    OPERATORS.iter().find(|(own, _)| *own == operator).map(|(_, sent)| *sent)
}

pub(crate) fn received_operator(operator: Comparison) -> Option<CompareOperator> {
    OPERATORS.iter().find(|(_, sent)| *sent == operator).map(|(own, _)| *own)
}

pub(crate) fn sent_test(test: IsTest) -> Test {
    match test {
        IsTest::Null => Test::Null,
        IsTest::True => Test::True,
        IsTest::False => Test::False,
    }
}

pub(crate) fn received_test(test: Test) -> IsTest {
    match test {
        Test::Null => IsTest::Null,
        Test::True => IsTest::True,
        Test::False => IsTest::False,
    }
}
