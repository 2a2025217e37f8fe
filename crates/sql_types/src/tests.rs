//! Properties across the types: comparison and keys, unification, storing, text of numbers, zones.

use std::cmp::Ordering;
use std::sync::Arc;

use firn_format::value::{CollationId, Value};
use proptest::prelude::*;

use super::collate::merge_collations;
use super::compare::{compare_values, own_kind};
use super::metadata::{flag, type_code};
use super::number_text::{double_to_text, float_to_text, parse_double_prefix};
use super::sort_key::write_comparison_key;
use super::*;

const AI_CI: CollationId = CollationId(255);
const GENERAL_CI: CollationId = CollationId(45);
const BIN: CollationId = CollationId(46);

fn unsigned_int(width: IntWidth) -> SqlType {
    SqlType::new(TypeKind::Integer { width, unsigned: true })
}

fn kinds() -> Vec<SqlType> {
    let members = Arc::new(Members::new(["a", "b", "c"]));
    [
        TypeKind::Integer { width: IntWidth::Eight, unsigned: false },
        TypeKind::Integer { width: IntWidth::Eight, unsigned: true },
        TypeKind::Decimal { precision: 30, scale: 10, unsigned: false },
        TypeKind::Double,
        TypeKind::Varchar { max_chars: 10, collation: AI_CI },
        TypeKind::Varchar { max_chars: 10, collation: GENERAL_CI },
        TypeKind::Varbinary { max_bytes: 10 },
        TypeKind::Date,
        TypeKind::Time { fsp: 6 },
        TypeKind::DateTime { fsp: 6 },
        TypeKind::Enum { members, collation: AI_CI },
        TypeKind::Json,
        TypeKind::Bit { bits: 64 },
    ]
    .into_iter()
    .map(SqlType::new)
    .collect()
}

fn value_of(ty: &SqlType) -> BoxedStrategy<Datum> {
    let value = match &ty.kind {
        TypeKind::Integer { unsigned: false, .. } => any::<i64>().prop_map(Datum::Int).boxed(),
        TypeKind::Enum { .. } => (0..4_u64).prop_map(Datum::UInt).boxed(),
        TypeKind::Integer { .. } | TypeKind::Bit { .. } => {
            any::<u64>().prop_map(Datum::UInt).boxed()
        }
        TypeKind::Decimal { .. } => (-1000..1000_i128, 0..3_u8)
            .prop_map(|(unscaled, scale)| Datum::Decimal(Decimal::from_unscaled(unscaled, scale)))
            .boxed(),
        TypeKind::Double => prop_oneof![-10.0..10.0_f64, Just(-0.0), Just(0.0), Just(f64::MAX)]
            .prop_map(Datum::Double)
            .boxed(),
        TypeKind::Varbinary { .. } => {
            proptest::collection::vec(0..3_u8, 0..4).prop_map(Datum::text).boxed()
        }
        TypeKind::Date => (0..5_000_000_i64).prop_map(Datum::Date).boxed(),
        TypeKind::Time { .. } => (-10_000_000..10_000_000_i64).prop_map(Datum::Time).boxed(),
        TypeKind::DateTime { .. } => (0..1_i64 << 60).prop_map(Datum::DateTime).boxed(),
        TypeKind::Json => super::json::tests::any_json().prop_map(Datum::from).boxed(),
        _ => "[a-bA-Bä \t]{0,4}".prop_map(Datum::text).boxed(),
    };
    prop_oneof![1 => Just(Datum::Null), 9 => value].boxed()
}

fn key(datum: &Datum, ty: &SqlType, descending: bool) -> Vec<u8> {
    let mut key = Vec::new();
    write_sort_key(datum, ty, descending, &mut key);
    key
}

fn pair() -> impl Strategy<Value = (SqlType, Datum, Datum)> {
    proptest::sample::select(kinds()).prop_flat_map(|ty| {
        let (a, b) = (value_of(&ty), value_of(&ty));
        (Just(ty), a, b)
    })
}

proptest! {
    #[test]
    fn sort_keys_order_as_values_do((ty, a, b) in pair()) {
        let order = compare_values(&ty, &a, &b);
        prop_assert_eq!(key(&a, &ty, false).cmp(&key(&b, &ty, false)), order);
        prop_assert_eq!(key(&a, &ty, true).cmp(&key(&b, &ty, true)), order.reverse());
    }

    #[test]
    fn no_key_begins_another((ty, a, b) in pair()) {
        let (a, b) = (key(&a, &ty, false), key(&b, &ty, false));
        prop_assert!(a == b || !a.starts_with(&b));
    }

    #[test]
    fn equal_values_have_equal_comparison_keys((ty, a, b) in pair()) {
        let kind = own_kind(&ty);
        let key = |datum| {
            let mut key = Vec::new();
            write_comparison_key(datum, kind, &mut key);
            key
        };
        let equal = compare_values(&ty, &a, &b).is_eq();
        prop_assert_eq!(key(&a) == key(&b), equal);
    }

    #[test]
    fn integers_of_both_signs_have_keys_of_one_order(a in any::<i64>(), b in any::<u64>(), small in -2..2_i64) {
        let datums = [Datum::Int(a), Datum::UInt(b), Datum::Int(small), Datum::UInt(1)];
        let key = |datum: &Datum| {
            let mut key = Vec::new();
            write_comparison_key(datum, ComparisonKind::Integer, &mut key);
            key
        };
        for (x, y) in datums.iter().flat_map(|x| datums.iter().map(move |y| (x, y))) {
            prop_assert_eq!(Some(key(x).cmp(&key(y))), ComparisonKind::Integer.compare(x, y));
        }
    }

    #[test]
    fn stored_values_come_back((ty, a, _) in pair()) {
        let zone = TimeZone::parse("Europe/Zurich").unwrap();
        let Ok(stored) = a.to_stored(&ty, &zone) else { return Ok(()) };
        let back = Datum::from_value_ref(stored.as_ref(), &ty, &zone).unwrap();
        prop_assert_eq!(compare_values(&ty, &a, &back), Ordering::Equal);
    }

    #[test]
    fn timestamps_come_back_in_any_zone(timestamp_us in 1_000_000..2_147_483_647_999_999_i64) {
        for name in ["SYSTEM", "+05:30", "Asia/Kathmandu", "-11:00"] {
            let zone = TimeZone::parse(name).unwrap();
            let local = zone.to_local(timestamp_us).unwrap();
            prop_assert_eq!(zone.to_timestamp_us(local), Some(timestamp_us), "{}", name);
        }
    }

    #[test]
    fn doubles_read_back_what_they_print(bits in any::<u64>()) {
        let number = f64::from_bits(bits);
        if number.is_finite() {
            let text = double_to_text(number);
            let parsed = parse_double_prefix(&text);
            prop_assert_eq!((parsed.number, parsed.length_bytes), (number, text.len()));
        }
    }
}

#[test]
fn numbers_print_as_in_mysql() {
    let double = |number| double_to_text(number).to_str_lossy().into_owned();
    for (number, text) in [
        (0.1, "0.1"),
        (1e15, "1e15"),
        (1e14, "100000000000000"),
        (123456789012345680.0, "1.2345678901234568e17"),
        (0.000001, "0.000001"),
        (1e-15, "0.000000000000001"),
        (1e-16, "1e-16"),
        (-1.5e300, "-1.5e300"),
        (1.0, "1"),
        (1e20, "1e20"),
    ] {
        assert_eq!(double(number), text);
    }
    let float = |number: f32| float_to_text(number.into()).to_str_lossy().into_owned();
    assert_eq!(float(1.234_567_9), "1.23457");
    assert_eq!(float(16_777_216.0), "16777200");
    assert_eq!(float(0.1), "0.1");
    assert_eq!(float(1e10), "10000000000");
}

#[test]
fn comparisons_are_of_the_kind_that_mysql_takes() {
    let kind = |a: &SqlType, b: &SqlType| comparison_kind(a, b, "=").unwrap();
    let [
        int,
        unsigned,
        decimal,
        double,
        text,
        _,
        bytes,
        date,
        time,
        date_time,
        enumeration,
        json,
        _,
    ] = &kinds()[..]
    else {
        panic!("the list of kinds")
    };
    assert_eq!(kind(int, unsigned), ComparisonKind::Integer);
    assert_eq!(kind(int, decimal), ComparisonKind::Decimal);
    assert_eq!(kind(int, text), ComparisonKind::Double);
    assert_eq!(kind(decimal, double), ComparisonKind::Double);
    assert_eq!(kind(text, date), ComparisonKind::DateTime);
    assert_eq!(kind(date, date_time), ComparisonKind::DateTime);
    assert_eq!(kind(date, time), ComparisonKind::DateTime);
    assert_eq!(kind(time, text), ComparisonKind::Text(AI_CI));
    assert_eq!(kind(date, int), ComparisonKind::Integer);
    assert_eq!(kind(date_time, int), ComparisonKind::Decimal);
    assert_eq!(kind(enumeration, int), ComparisonKind::Integer);
    assert_eq!(kind(enumeration, text), ComparisonKind::Text(AI_CI));
    assert_eq!(kind(text, bytes), ComparisonKind::Text(CollationId::BINARY));
    assert_eq!(kind(json, text), ComparisonKind::Json);
    assert_eq!(kind(&SqlType::null(), date), ComparisonKind::DateTime);
}

#[test]
fn numbers_of_different_kinds_compare_by_value() {
    let compare = |kind: ComparisonKind, a: Datum, b: Datum| kind.compare(&a, &b).unwrap();
    let integer = ComparisonKind::Integer;
    assert_eq!(compare(integer, Datum::Int(-1), Datum::UInt(u64::MAX)), Ordering::Less);
    let exact = Datum::Decimal(Decimal::parse("1.0").unwrap());
    assert_eq!(compare(ComparisonKind::Decimal, Datum::Int(1), exact.clone()), Ordering::Equal);
    assert_eq!(compare(ComparisonKind::Double, exact, Datum::Double(1.5)), Ordering::Less);
    let document = Datum::from(JsonValue::string("a"));
    assert_eq!(compare(ComparisonKind::Json, document, Datum::text("a")), Ordering::Equal);
}

#[test]
fn the_stronger_collation_decides() {
    let column = |collation| SqlType::of_column(SqlType::varchar(5, collation).kind, true);
    let literal = |collation| SqlType::varchar(5, collation);
    let explicit = |collation| literal(collation).with_coercibility(Coercibility::Explicit);
    let merged = |a: SqlType, b: SqlType| merge_collations([&a, &b], "=").map_err(|e| e.message);
    let decided = |collation, coercibility| Ok(Some((collation, coercibility)));
    assert_eq!(
        merged(column(GENERAL_CI), literal(AI_CI)),
        decided(GENERAL_CI, Coercibility::Implicit)
    );
    assert_eq!(merged(column(GENERAL_CI), column(BIN)), decided(BIN, Coercibility::Implicit));
    assert_eq!(merged(column(GENERAL_CI), explicit(BIN)), decided(BIN, Coercibility::Explicit));
    assert_eq!(
        merged(column(CollationId(8)), column(AI_CI)),
        decided(AI_CI, Coercibility::Implicit)
    );
    assert_eq!(
        merged(column(CollationId(8)), literal(AI_CI)),
        decided(CollationId(8), Coercibility::Implicit)
    );
    assert_eq!(
        merged(SqlType::varbinary(1), literal(AI_CI)),
        decided(CollationId(63), Coercibility::Coercible)
    );
    assert_eq!(
        merged(explicit(AI_CI), explicit(GENERAL_CI)),
        Err("Illegal mix of collations (utf8mb4_0900_ai_ci,EXPLICIT) and \
             (utf8mb4_general_ci,EXPLICIT) for operation '='"
            .to_owned())
    );
    let error = comparison_kind(&column(AI_CI), &column(GENERAL_CI), "=").unwrap_err();
    assert_eq!(
        error.message,
        "Illegal mix of collations (utf8mb4_0900_ai_ci,IMPLICIT) and \
         (utf8mb4_general_ci,IMPLICIT) for operation '='"
    );
}

#[test]
fn types_are_unified() {
    let unified = |types: &[SqlType]| unify(types, AI_CI, "UNION").unwrap().kind.definition();
    let int = || SqlType::new(TypeKind::Integer { width: IntWidth::Four, unsigned: false });
    assert_eq!(unified(&[int(), SqlType::bigint()]), "bigint");
    assert_eq!(unified(&[int(), unsigned_int(IntWidth::Four)]), "bigint");
    assert_eq!(unified(&[SqlType::bigint(), SqlType::bigint_unsigned()]), "decimal(20,0)");
    assert_eq!(unified(&[int(), SqlType::decimal(5, 2)]), "decimal(12,2)");
    assert_eq!(unified(&[SqlType::double(), SqlType::decimal(5, 2)]), "double");
    assert_eq!(unified(&[SqlType::null(), int()]), "int");
    assert_eq!(unified(&[SqlType::varchar(3, AI_CI), int()]), "varchar(11)");
    assert_eq!(
        unified(&[SqlType::new(TypeKind::Date), SqlType::new(TypeKind::DateTime { fsp: 3 })]),
        "datetime(3)"
    );
    assert_eq!(unified(&[SqlType::new(TypeKind::Date), SqlType::varchar(3, AI_CI)]), "varchar(10)");
    assert_eq!(unified(&[SqlType::long_text(AI_CI), SqlType::varchar(3, AI_CI)]), "longtext");
    assert_eq!(unified(&[SqlType::varbinary(4), SqlType::varchar(3, AI_CI)]), "varbinary(12)");
    assert_eq!(unified(&[]), "null");
}

#[test]
fn clients_are_told_of_types() {
    let of = |ty: SqlType| ty.shown_as(&Display::of_expression(&ty), Some(AI_CI));
    let int = of(SqlType::boolean().not_null());
    assert_eq!((int.type_code, int.length_bytes, int.collation.0), (type_code::LONGLONG, 21, 63));
    assert_eq!(int.flags & flag::NOT_NULL, flag::NOT_NULL);
    let text = of(SqlType::varchar(10, CollationId(8)));
    assert_eq!(
        (text.type_code, text.length_bytes, text.collation),
        (type_code::VAR_STRING, 40, AI_CI)
    );
    let decimal = of(SqlType::decimal(10, 2));
    assert_eq!(
        (decimal.type_code, decimal.length_bytes, decimal.decimals),
        (type_code::NEWDECIMAL, 12, 2)
    );
    let blob = SqlType::new(TypeKind::Blob { max_bytes: 65_535 });
    let blob = blob.shown_as(&Display::of_column(&blob), Some(AI_CI));
    assert_eq!((blob.type_code, blob.flags & flag::BLOB), (type_code::BLOB, flag::BLOB));
}

#[test]
fn timestamps_are_stored_in_utc() {
    let zone = TimeZone::parse("+02:00").unwrap();
    let ty = SqlType::new(TypeKind::Timestamp { fsp: 0 });
    let local =
        temporal::parse::parse_date_time(b"1970-01-01 02:00:01", temporal::DateRules::LENIENT);
    let datum = Datum::from(local.value.unwrap().date_time);
    assert_eq!(datum.to_stored(&ty, &zone), Ok(Value::Temporal(1_000_000)));
    assert_eq!(Datum::DateTime(0).to_stored(&ty, &zone), Ok(Value::Temporal(0)));
}

#[test]
fn zones_have_names_and_offsets() {
    assert_eq!(TimeZone::parse("europe/zurich").unwrap().name(), "Europe/Zurich");
    assert_eq!(TimeZone::parse("+14:00").unwrap().name(), "+14:00");
    assert!(TimeZone::parse("+14:01").is_none());
    assert!(TimeZone::parse("-14:00").is_none());
    assert!(TimeZone::parse("Mars/Olympus").is_none());
}

#[test]
fn conditions_are_counted_beyond_the_limit() {
    let ctx = EvaluationContext { max_error_count: 2, ..EvaluationContext::default() };
    (0..5).for_each(|number| ctx.warn(1292, || number.to_string()));
    assert_eq!(ctx.warning_count(), 5);
    assert_eq!(ctx.take_conditions().len(), 2);
    assert_eq!(ctx.warning_count(), 0);
}

#[test]
fn modes_are_named() {
    let mode = SqlMode::parse("strict_trans_tables, NO_ZERO_DATE").unwrap();
    assert_eq!(mode.to_string(), "STRICT_TRANS_TABLES,NO_ZERO_DATE");
    assert!(mode.is_strict());
    assert_eq!(SqlMode::parse("BOGUS"), Err("BOGUS".to_owned()));
    assert_eq!(
        SqlMode::DEFAULT.to_string(),
        "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,\
         ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
    );
}

#[test]
fn messages_show_doubles_as_results_do() {
    assert_eq!(Datum::Double(1e20).plain_text(), "1e20");
    assert_eq!(Datum::Double(-0.5).plain_text(), "-0.5");
}

#[test]
fn codes_of_coercibilities_are_as_their_format_has_them() {
    let codes = [
        (Coercibility::Explicit, 0),
        (Coercibility::None, 1),
        (Coercibility::Implicit, 2),
        (Coercibility::SystemConstant, 3),
        (Coercibility::Coercible, 4),
        (Coercibility::Numeric, 5),
        (Coercibility::Ignorable, 6),
    ];
    for (coercibility, code) in codes {
        assert_eq!(coercibility.code(), code);
        assert_eq!(Coercibility::of_code(code), Some(coercibility));
    }
    assert_eq!(Coercibility::of_code(7), None);
}
