//! Properties of every function, whatever its arguments.

use std::sync::Arc;

use firn_sql_types::{
    Datum, Decimal, EvaluationContext, IntWidth, JsonValue, Members, SqlType, TypeKind,
};
use proptest::prelude::*;

use super::super::all;
use super::harness::{Value, call};
use firn_format::value::{CollationId, Date, DateTime, Time};

const PACKET_BYTES: u64 = 1 << 16;

fn context() -> EvaluationContext {
    EvaluationContext {
        max_allowed_packet_bytes: PACKET_BYTES,
        statement_time_us: 1_700_000_000_123_456,
        ..EvaluationContext::default()
    }
}

fn value(datum: Datum, kind: TypeKind, literal: bool) -> Value {
    let nullable = datum.is_null();
    Value { datum, ty: SqlType::new(kind).with_nullable(nullable), literal }
}

fn integer(unsigned: bool) -> TypeKind {
    TypeKind::Integer { width: IntWidth::Eight, unsigned }
}

fn numbers() -> impl Strategy<Value = Value> {
    let edges =
        prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(0), Just(-1), -100..100_i64, any::<i64>()];
    let unsigned = prop_oneof![Just(u64::MAX), Just(1 << 63), 0..100_u64, any::<u64>()];
    let double = prop_oneof![
        Just(f64::MAX),
        Just(f64::MIN),
        Just(f64::MIN_POSITIVE),
        Just(-0.0),
        -100.0..100.0,
        prop::num::f64::NORMAL
    ];
    let decimal = prop_oneof![
        Just(Decimal::max(65, 30)),
        Just(Decimal::max(65, 0).negate()),
        Just(Decimal::ZERO),
        (any::<i64>(), 0..=30_u8).prop_map(|(n, scale)| Decimal::from_unscaled(n.into(), scale))
    ];
    prop_oneof![
        (edges, any::<bool>()).prop_map(|(n, l)| value(Datum::Int(n), integer(false), l)),
        (unsigned, any::<bool>()).prop_map(|(n, l)| value(Datum::UInt(n), integer(true), l)),
        (double, any::<bool>()).prop_map(|(n, l)| value(Datum::Double(n), TypeKind::Double, l)),
        (decimal, any::<bool>()).prop_map(|(n, l)| {
            let precision = n.integer_digits() + n.scale();
            let kind = TypeKind::Decimal {
                precision: precision.max(1),
                scale: n.scale(),
                unsigned: false,
            };
            value(Datum::Decimal(n), kind, l)
        }),
        any::<u64>().prop_map(|bits| value(Datum::UInt(bits), TypeKind::Bit { bits: 64 }, false)),
        (1901..=2155_u64).prop_map(|year| value(Datum::UInt(year), TypeKind::Year, false)),
    ]
}

fn texts() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        ".{0,12}",
        "[-0-9.: ]{0,20}",
        "[0-9]{1,4}-[0-9]{1,2}-[0-9]{1,2}( [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\\.[0-9]{1,7})?)?",
        "-?[0-9]{1,30}(\\.[0-9]{1,30})?(e-?[0-9]{1,3})?",
        "\\$(\\.[a-c]|\\[[0-9]\\]|\\[last-[0-9]\\]|\\*\\*|\\[\\*\\]|\\.\\*|\\[[0-9] to [0-9]\\]){0,4}",
        "[\\[\\]{}\":,a-c0-9 ]{0,16}",
        "(%[a-zA-Z%] ?){0,8}",
        "[()a-c*+?|.\\[\\]{}0-9^$\\\\-]{0,10}",
        prop::sample::select(vec![
            "DAY",
            "YEAR_MONTH",
            "DAY_MICROSECOND",
            "SECOND",
            "HOUR",
            "one",
            "all",
            "utf8mb4",
            "latin1",
            "utf8mb4_bin",
            "{\"a\": [1, {\"b\": \"c\"}]}",
            "[1, 2, [3]]",
            "+02:00",
            "Europe/Zurich",
            "DATE",
            "EUR",
            "ci",
            "de_DE",
            "3 10:00:00",
            "é→x",
        ])
        .prop_map(str::to_owned),
    ];
    let collation = prop::sample::select(vec![255, 45, 46, 8, 33, 309]);
    let text = (text, collation, any::<bool>()).prop_map(|(text, collation, literal)| {
        let max_chars = text.chars().count() as u32;
        let kind = TypeKind::Varchar { max_chars, collation: CollationId(collation) };
        value(Datum::text(text), kind, literal)
    });
    let bytes = prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| {
        let kind = TypeKind::Varbinary { max_bytes: bytes.len() as u32 };
        value(Datum::text(bytes), kind, false)
    });
    prop_oneof![4 => text, 1 => bytes]
}

fn moments() -> impl Strategy<Value = Value> {
    let date = (0..=9999_u16, 0..=12_u8, 0..=31_u8).prop_map(|(year, month, day)| Date {
        year,
        month,
        day,
    });
    let moment = (date, 0..24_u8, 0..60_u8, 0..60_u8, 0..1_000_000_u32).prop_map(
        |(date, hour, minute, second, microsecond)| DateTime {
            date,
            hour,
            minute,
            second,
            microsecond,
        },
    );
    let time = (any::<bool>(), 0..=838_u16, 0..60_u8, 0..60_u8, 0..1_000_000_u32).prop_map(
        |(negative, hours, minutes, seconds, microseconds)| Time {
            negative,
            hours,
            minutes,
            seconds,
            microseconds,
        },
    );
    prop_oneof![
        moment.clone().prop_map(|m| value(m.date.into(), TypeKind::Date, false)),
        moment.prop_map(|m| value(m.into(), TypeKind::DateTime { fsp: 6 }, false)),
        time.prop_map(|t| value(t.into(), TypeKind::Time { fsp: 6 }, false)),
    ]
}

fn others() -> impl Strategy<Value = Value> {
    let json = prop::sample::select(vec![
        "null",
        "true",
        "1.5",
        "\"x\"",
        "[1, [2, 3], {\"a\": null}]",
        "{\"a\": {\"b\": [1]}, \"c\": \"x\"}",
    ])
    .prop_map(|text| JsonValue::parse(text).unwrap());
    prop_oneof![
        json.prop_map(|json| value(json.into(), TypeKind::Json, false)),
        (0..=2_u64).prop_map(|ordinal| {
            let members = Arc::new(Members::new(["a", "b"]));
            value(
                Datum::UInt(ordinal),
                TypeKind::Enum { members, collation: CollationId(255) },
                false,
            )
        }),
        Just(value(Datum::Null, TypeKind::Null, true)),
        Just(value(Datum::Null, integer(false), false)),
    ]
}

fn values() -> impl Strategy<Value = Value> {
    prop_oneof![3 => numbers(), 4 => texts(), 2 => moments(), 1 => others()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// No panic; values of the promised type (the harness checks that) and no longer than a packet.
    #[test]
    fn functions_answer_any_arguments(arguments in prop::collection::vec(values(), 7)) {
        let context = context();
        for function in all() {
            let (least, most) = (*function.arguments.start(), *function.arguments.end());
            for count in least..=most.min(least + 3).min(arguments.len()) {
                let Ok(answer) = call(function.name, &arguments[..count], &context) else { continue };
                if let Datum::Text(octets) = &answer.datum {
                    prop_assert!(octets.len() as u64 <= PACKET_BYTES, "{} is too long", function.name);
                }
            }
        }
    }
}

/// Arguments with which a strict function is called; one of them is then NULL.
#[test]
fn strict_functions_give_null_for_null() {
    let context = context();
    let text = || {
        value(
            Datum::text("1"),
            TypeKind::Varchar { max_chars: 1, collation: CollationId(255) },
            false,
        )
    };
    for function in all().filter(|function| function.strict) {
        let count = *function.arguments.start();
        for null_at in 0..count {
            let mut arguments: Vec<Value> = (0..count).map(|_| text()).collect();
            arguments[null_at].datum = Datum::Null;
            arguments[null_at].ty = arguments[null_at].ty.clone().with_nullable(true);
            if let Ok(answer) = call(function.name, &arguments, &context) {
                assert!(answer.datum.is_null(), "{}", function.name);
            }
        }
    }
}
