use std::cmp::Ordering;
use std::ops::Bound;

use expect_test::expect;
use proptest::prelude::*;

use crate::value::{CollationId, DecimalType, IntWidth, Value, ValueRef};

use super::*;

const INT: ColumnType = ColumnType::Int(IntWidth::Four);
const BIGINT: ColumnType = ColumnType::Int(IntWidth::Eight);
const BYTES: ColumnType = ColumnType::Varbinary { max_bytes: 100 };
const TEXT: ColumnType = ColumnType::Varchar { max_chars: 100, collation: CollationId(255) };

/// Letters compare without case; nothing else is special.
struct IgnoreCase;

impl CollationKeys for IgnoreCase {
    fn write_sort_key(&self, _collation: CollationId, text: &[u8], out: &mut Vec<u8>) {
        out.extend(text.iter().map(u8::to_ascii_uppercase));
    }
}

fn key_layout(parts: &[KeyPart]) -> KeyLayout {
    KeyLayout::new(parts.to_vec()).expect("a possible key")
}

fn key(layout: &KeyLayout, values: &[ValueRef<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    layout.encode_parts(values, &IgnoreCase, &mut bytes).expect("values of the key");
    bytes
}

#[test]
fn keys_have_the_documented_bytes() {
    let decimal = DecimalType::new(5, 2).expect("a possible type");
    let mut one = vec![0; decimal.encoded_length()];
    decimal.pack_i128(-150, &mut one).expect("fits");
    let nullable_int = KeyPart::ascending(0, INT, true);
    let text = KeyPart::ascending(0, TEXT, false);
    let double = KeyPart::ascending(0, ColumnType::Double, false);
    let cases: [(&str, KeyPart, ValueRef<'_>); 15] = [
        ("int 7", KeyPart::ascending(0, INT, false), ValueRef::Int(7)),
        ("int -1 desc", KeyPart::ascending(0, INT, false).descending(), ValueRef::Int(-1)),
        ("int null 7", nullable_int, ValueRef::Int(7)),
        ("int null NULL", nullable_int, ValueRef::Null),
        ("int null 7 desc", nullable_int.descending(), ValueRef::Int(7)),
        ("int null NULL desc", nullable_int.descending(), ValueRef::Null),
        ("double -0", double, ValueRef::Double(-0.0)),
        ("double -1", double, ValueRef::Double(-1.0)),
        (
            "decimal -1.50",
            KeyPart::ascending(0, ColumnType::Decimal(decimal), false),
            ValueRef::Decimal(&one),
        ),
        ("bytes 'a' 00", KeyPart::ascending(0, BYTES, false), ValueRef::Bytes(b"a\0")),
        (
            "bytes empty desc",
            KeyPart::ascending(0, BYTES, false).descending(),
            ValueRef::Bytes(b""),
        ),
        ("bytes(2) 'abc'", KeyPart::ascending(0, BYTES, false).prefix(2), ValueRef::Bytes(b"abc")),
        ("text 'ab'", text, ValueRef::Bytes(b"ab")),
        ("text 'ab' desc", text.descending(), ValueRef::Bytes(b"ab")),
        ("text(2) 'äßc'", text.prefix(2), ValueRef::Bytes("äßc".as_bytes())),
    ];
    let mut listing = String::new();
    for (name, part, value) in cases {
        let bytes = key(&key_layout(&[part]), &[value]);
        listing += &format!("{name:20} {bytes:02x?}\n");
    }
    expect![[r#"
        int 7                [80, 00, 00, 07]
        int -1 desc          [80, 00, 00, 00]
        int null 7           [01, 80, 00, 00, 07]
        int null NULL        [00]
        int null 7 desc      [fe, 7f, ff, ff, f8]
        int null NULL desc   [ff]
        double -0            [80, 00, 00, 00, 00, 00, 00, 00]
        double -1            [40, 0f, ff, ff, ff, ff, ff, ff]
        decimal -1.50        [7f, fe, cd]
        bytes 'a' 00         [61, 00, ff, 00, 00]
        bytes empty desc     [ff, ff]
        bytes(2) 'abc'       [61, 62, 00, 00]
        text 'ab'            [41, 42, 00, 00]
        text 'ab' desc       [be, bd, ff, ff]
        text(2) 'äßc'        [c3, a4, c3, 9f, 00, 00]
    "#]]
    .assert_eq(&listing);
}

#[test]
fn misuse_is_refused() {
    assert_eq!(KeyLayout::new(vec![]), Err(KeyError::InvalidLayout("a key without parts")));
    let prefix_of_int = KeyLayout::new(vec![KeyPart::ascending(0, INT, false).prefix(2)]);
    assert!(matches!(prefix_of_int, Err(KeyError::InvalidLayout(_))));

    let layout = key_layout(&[KeyPart::ascending(1, INT, false)]);
    let mut out = Vec::new();
    let mut encode = |values: &[ValueRef<'_>]| layout.encode_row(values, &IgnoreCase, &mut out);
    let too_few = KeyError::WrongValueCount { given: 1, parts: 1 };
    assert_eq!(encode(&[ValueRef::Int(1)]), Err(too_few));
    let null = KeyError::NullInNotNull { part: 0 };
    assert_eq!(encode(&[ValueRef::Int(1), ValueRef::Null]), Err(null));
    let error = ValueError::Mismatch(INT);
    let mismatch = encode(&[ValueRef::Int(1), ValueRef::UInt(1)]);
    assert_eq!(mismatch, Err(KeyError::Value { part: 0, error }));
    let too_many = layout.encode_parts(&[ValueRef::Int(1); 2], &IgnoreCase, &mut out);
    assert_eq!(too_many, Err(KeyError::WrongValueCount { given: 2, parts: 1 }));
}

#[test]
fn text_compares_as_its_collation_says_and_is_not_read_back() {
    let layout =
        key_layout(&[KeyPart::ascending(0, TEXT, false), KeyPart::ascending(1, INT, false)]);
    let upper = key(&layout, &[ValueRef::Bytes(b"FIRN"), ValueRef::Int(1)]);
    let lower = key(&layout, &[ValueRef::Bytes(b"firn"), ValueRef::Int(1)]);
    assert_eq!(upper, lower);
    let decoded = layout.decode(&lower, &IgnoreCase);
    assert_eq!(decoded, Ok(vec![None, Some(Value::Int(1))]));
    let decoded = layout.decode(&lower, &BinaryCollation).expect("a key");
    assert_eq!(decoded[0], Some(Value::Bytes((*b"FIRN").into())));
    assert!(!layout.is_invertible(0, &IgnoreCase) && layout.is_invertible(1, &IgnoreCase));
}

#[test]
fn ranges_hold_what_the_condition_says() {
    let ints = key_layout(&[KeyPart::ascending(0, INT, false), KeyPart::ascending(1, INT, true)]);
    let descending = key_layout(&[
        KeyPart::ascending(0, INT, false),
        KeyPart::ascending(1, INT, true).descending(),
    ]);
    let bounds = |n: i64| [Bound::Included(ValueRef::Int(n)), Bound::Excluded(ValueRef::Int(n))];
    let lowers =
        [vec![Bound::Unbounded, Bound::Excluded(ValueRef::Null)], bounds(2).to_vec()].concat();
    let uppers =
        [vec![Bound::Unbounded, Bound::Included(ValueRef::Null)], bounds(4).to_vec()].concat();
    let rank = |value: ValueRef<'_>| if let ValueRef::Int(n) = value { n } else { -1 };
    for layout in [&ints, &descending] {
        for (&lower, &upper) in lowers.iter().flat_map(|l| uppers.iter().map(move |u| (l, u))) {
            let range = layout.range(&[ValueRef::Int(7)], lower, upper, &IgnoreCase);
            let range = range.expect("a range");
            let bounds = (map_bound(lower, rank), map_bound(upper, rank));
            for first in [6, 7, 8] {
                for second in -1..6 {
                    let value = if second < 0 { ValueRef::Null } else { ValueRef::Int(second) };
                    let bytes = key(layout, &[ValueRef::Int(first), value]);
                    let expected = first == 7 && std::ops::RangeBounds::contains(&bounds, &second);
                    assert_eq!(range.contains(&bytes), expected, "{first} {second} {bounds:?}");
                }
            }
        }
    }
}

fn map_bound(bound: Bound<ValueRef<'_>>, rank: impl Fn(ValueRef<'_>) -> i64) -> Bound<i64> {
    match bound {
        Bound::Included(value) => Bound::Included(rank(value)),
        Bound::Excluded(value) => Bound::Excluded(rank(value)),
        Bound::Unbounded => Bound::Unbounded,
    }
}

#[test]
fn a_range_over_a_prefix_part_holds_values_that_differ_behind_it() {
    let layout = key_layout(&[KeyPart::ascending(0, BYTES, false).prefix(2)]);
    let abz = ValueRef::Bytes(b"abz");
    for (lower, upper) in
        [(Bound::Excluded(abz), Bound::Unbounded), (Bound::Unbounded, Bound::Excluded(abz))]
    {
        let range = layout.range(&[], lower, upper, &IgnoreCase).expect("a range");
        assert!(range.contains(&key(&layout, &[ValueRef::Bytes(b"abb")])));
    }
}

#[test]
fn successors_and_empty_ranges() {
    assert_eq!(prefix_successor(b"ab"), Some(b"ac".to_vec()));
    assert_eq!(prefix_successor(&[1, 0xff, 0xff]), Some(vec![2]));
    assert_eq!(prefix_successor(&[0xff, 0xff]), None);
    assert_eq!(prefix_successor(&[]), None);
    assert!(!KeyRange::all().is_empty() && KeyRange::all().contains(b""));
    let layout = key_layout(&[KeyPart::ascending(0, INT, false)]);
    let above_all = Bound::Excluded(ValueRef::Int(i32::MAX.into()));
    let range = layout.range(&[], above_all, Bound::Unbounded, &IgnoreCase).expect("a range");
    assert!(range.is_empty());
    let no_part = layout.range(&[ValueRef::Int(1)], above_all, Bound::Unbounded, &IgnoreCase);
    assert_eq!(no_part, Err(KeyError::WrongValueCount { given: 2, parts: 1 }));
}

fn secondary(unique: bool, primary: &KeyLayout) -> SecondaryLayout {
    let parts = [KeyPart::ascending(1, INT, true), KeyPart::ascending(2, TEXT, true)];
    SecondaryLayout::new(key_layout(&parts), unique, primary)
}

#[test]
fn secondary_entries_lead_to_their_primary_key() {
    let by_int = key_layout(&[KeyPart::ascending(0, BIGINT, false)]);
    let by_bytes = key_layout(&[KeyPart::ascending(0, BYTES, false)]);
    let primaries = [(by_int, ValueRef::Int(42)), (by_bytes, ValueRef::Bytes(b"4\x002"))];
    for (primary, id) in &primaries {
        let whole = [*id, ValueRef::Int(7), ValueRef::Bytes(b"snow")];
        let with_null = [*id, ValueRef::Int(7), ValueRef::Null];
        let primary_key = key(primary, &[*id]);
        for (unique, row, in_value) in [
            (true, &whole, true),
            (true, &with_null, false),
            (false, &whole, false),
            (false, &with_null, false),
        ] {
            let layout = secondary(unique, primary);
            let entry = layout.entry(row, &primary_key, &IgnoreCase).expect("a row");
            let parts = key(layout.key(), &row[1..]);
            let (suffix, value) =
                if in_value { (&[][..], &primary_key[..]) } else { (&primary_key[..], &[][..]) };
            assert_eq!(entry.key, [&parts, suffix].concat());
            assert_eq!(entry.value, value);
            let found = layout.primary_key(&entry.key, &entry.value);
            assert_eq!(found, Ok(&primary_key[..]));
        }
    }
}

/// The order that MySQL gives two values of one type.
fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Less,
        (_, Value::Null) => Ordering::Greater,
        (Value::Int(a), Value::Int(b)) | (Value::Temporal(a), Value::Temporal(b)) => a.cmp(b),
        (Value::UInt(a), Value::UInt(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b).expect("numbers"),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b).expect("numbers"),
        (Value::Decimal(a), Value::Decimal(b)) => decimal_number(a).cmp(&decimal_number(b)),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        _ => unreachable!("values of one type"),
    }
}

const DECIMAL_DIGITS: (u8, u8) = (15, 4);

fn decimal_type() -> DecimalType {
    DecimalType::new(DECIMAL_DIGITS.0, DECIMAL_DIGITS.1).expect("a possible type")
}

fn decimal_number(bytes: &[u8]) -> i128 {
    decimal_type().unpack_i128(bytes).expect("a decimal")
}

fn compare_text(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Bytes(a), Value::Bytes(b)) => a.to_ascii_uppercase().cmp(&b.to_ascii_uppercase()),
        _ => compare(a, b),
    }
}

fn any_decimal() -> impl Strategy<Value = Value> {
    prop_oneof![-20_000_i64..20_000, -999_999_999_999_999_i64..=999_999_999_999_999].prop_map(
        |number| {
            let mut bytes = vec![0; decimal_type().encoded_length()];
            decimal_type().pack_i128(number.into(), &mut bytes).expect("fits");
            Value::Decimal(bytes.into())
        },
    )
}

/// Short strings over few bytes, so that prefixes and zeros are frequent.
fn any_bytes() -> impl Strategy<Value = Value> {
    let byte = prop::sample::select(vec![0, 1, b'A', b'a', 0xfe, 0xff]);
    prop::collection::vec(byte, 0..6).prop_map(|bytes| Value::Bytes(bytes.into()))
}

/// A type with a strategy for its values that makes equal and close ones frequent.
fn any_type() -> impl Strategy<Value = (ColumnType, BoxedStrategy<Value>)> {
    let ints = prop_oneof![-3_i64..3, any::<i64>()].prop_map(Value::Int);
    let doubles = prop_oneof![
        Just(0.0),
        Just(-0.0),
        Just(f64::INFINITY),
        prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::NEGATIVE,
    ];
    let floats = prop::num::f32::NORMAL | prop::num::f32::ZERO | prop::num::f32::NEGATIVE;
    let times = prop_oneof![-3_i64..3, -3_020_399_999_999_i64..3_020_399_999_999];
    let days = 0_i64..5_000_000;
    prop::sample::select(vec![
        (BIGINT, ints.boxed()),
        (ColumnType::Int(IntWidth::Three), (-300_i64..300).prop_map(Value::Int).boxed()),
        (ColumnType::UInt(IntWidth::Eight), any::<u64>().prop_map(Value::UInt).boxed()),
        (ColumnType::Bit { bits: 12 }, (0_u64..4096).prop_map(Value::UInt).boxed()),
        (ColumnType::Year, (1901_u64..2155).prop_map(Value::UInt).boxed()),
        (ColumnType::Double, doubles.prop_map(Value::Double).boxed()),
        (ColumnType::Float, floats.prop_map(Value::Float).boxed()),
        (ColumnType::Decimal(decimal_type()), any_decimal().boxed()),
        (ColumnType::Time { fsp: 6 }, times.prop_map(Value::Temporal).boxed()),
        (ColumnType::Date, days.prop_map(Value::Temporal).boxed()),
        (BYTES, any_bytes().boxed()),
        (TEXT, any_bytes().boxed()),
    ])
}

/// Key parts, each with two values.
fn any_keys() -> impl Strategy<Value = Vec<(KeyPart, Value, Value)>> {
    let part = (any_type(), any::<(bool, bool)>()).prop_flat_map(
        |((column_type, values), (nullable, descending))| {
            let part = KeyPart::ascending(0, column_type, nullable);
            let part = if descending { part.descending() } else { part };
            let nulls = if nullable { 1 } else { 0 };
            let value = prop_oneof![nulls => Just(Value::Null), 3 => values];
            let pair = prop_oneof![
                1 => value.clone().prop_map(|value| (value.clone(), value)),
                2 => (value.clone(), value),
            ];
            pair.prop_map(move |(a, b)| (part, a, b))
        },
    );
    prop::collection::vec(part, 1..5)
}

fn split(keys: &[(KeyPart, Value, Value)]) -> (KeyLayout, Vec<ValueRef<'_>>, Vec<ValueRef<'_>>) {
    let layout = KeyLayout::new(keys.iter().map(|(part, _, _)| *part).collect());
    let first = keys.iter().map(|(_, a, _)| a.as_ref()).collect();
    let second = keys.iter().map(|(_, _, b)| b.as_ref()).collect();
    (layout.expect("a possible key"), first, second)
}

/// Compares the two values of a part, whichever way it is ordered.
fn compare_values((part, a, b): &(KeyPart, Value, Value)) -> Ordering {
    if part.column_type == TEXT { compare_text(a, b) } else { compare(a, b) }
}

/// Compares two keys part by part.
fn compare_keys(keys: &[(KeyPart, Value, Value)]) -> Ordering {
    let order = |key: &(KeyPart, Value, Value)| match key.0.direction {
        Direction::Ascending => compare_values(key),
        Direction::Descending => compare_values(key).reverse(),
    };
    keys.iter().map(order).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn keys_order_as_values(keys in any_keys()) {
        let (layout, first, second) = split(&keys);
        let (first, second) = (key(&layout, &first), key(&layout, &second));
        prop_assert_eq!(first.cmp(&second), compare_keys(&keys));
        prop_assert!(first == second || !first.starts_with(&second));
        prop_assert!(first == second || !second.starts_with(&first));
    }

    #[test]
    fn ranges_agree_with_comparison(
        keys in any_keys(), part in any::<prop::sample::Index>(), inclusive in any::<bool>()
    ) {
        let (layout, bounds, values) = split(&keys);
        let part = part.index(keys.len());
        let bound = |value| if inclusive { Bound::Included(value) } else { Bound::Excluded(value) };
        let bound = bound(bounds[part]);
        let equal = &bounds[..part];
        let above = layout.range(equal, bound, Bound::Unbounded, &IgnoreCase).expect("a range");
        let below = layout.range(equal, Bound::Unbounded, bound, &IgnoreCase).expect("a range");
        let same = layout.range(&bounds[..=part], Bound::Unbounded, Bound::Unbounded, &IgnoreCase);

        let in_prefix = compare_keys(&keys[..part]).is_eq();
        let at_part = compare_values(&keys[part]).reverse();
        let bytes = key(&layout, &values);
        let at_bound = inclusive && at_part.is_eq();
        prop_assert_eq!(above.contains(&bytes), in_prefix && (at_part.is_gt() || at_bound));
        prop_assert_eq!(below.contains(&bytes), in_prefix && (at_part.is_lt() || at_bound));
        prop_assert_eq!(same.expect("a range").contains(&bytes), in_prefix && at_part.is_eq());
    }

    #[test]
    fn keys_are_cut_and_read_back(
        keys in any_keys(), suffix in prop::collection::vec(any::<u8>(), 0..8)
    ) {
        let (layout, values, _) = split(&keys);
        let mut bytes = key(&layout, &values);
        let length = bytes.len();
        prop_assert!(layout.fixed_length().is_none_or(|fixed| fixed == length));
        bytes.extend(&suffix);
        prop_assert_eq!(layout.parts_length(&bytes, keys.len()), Ok(length));
        for (part, (given, read)) in
            keys.iter().zip(layout.decode(&bytes, &IgnoreCase).expect("a key")).enumerate()
        {
            let (part_layout, value, _) = given;
            prop_assert_eq!(read.is_some(), part_layout.column_type != TEXT || value.is_null());
            if let Some(read) = read {
                prop_assert_eq!(compare(&read, value), Ordering::Equal, "part {}", part);
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        keys in any_keys(),
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        change in any::<(prop::sample::Index, u8)>(),
    ) {
        let (layout, values, _) = split(&keys);
        let mut damaged = key(&layout, &values);
        let at = change.0.index(damaged.len());
        damaged[at] = change.1;
        let secondary = SecondaryLayout::new(layout.clone(), true, &layout);
        for bytes in [&damaged[..], &damaged[..at], &bytes] {
            let _ = layout.decode(bytes, &BinaryCollation);
            let _ = layout.parts_length(bytes, keys.len());
            let _ = secondary.primary_key(bytes, &[]);
        }
    }
}

/// `cargo test --release -p firn-format key_timing -- --ignored --nocapture` prints nanoseconds.
#[test]
#[ignore = "a measurement"]
#[allow(clippy::disallowed_methods)]
fn key_timing() {
    use std::hint::black_box;
    use std::time::Instant;

    const ROUNDS: u32 = 250_000;
    let int = key_layout(&[KeyPart::ascending(0, INT, false)]);
    let pair = key_layout(&[KeyPart::ascending(1, INT, true), KeyPart::ascending(2, TEXT, false)]);
    let row = [ValueRef::Int(1), ValueRef::Int(2), ValueRef::Bytes(&[b'c'; 30])];
    let time = |name: &str, round: &mut dyn FnMut()| {
        let batch = |_| {
            let start = Instant::now();
            (0..ROUNDS).for_each(|_| round());
            start.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
        };
        let best = (0..20).map(batch).fold(f64::MAX, f64::min);
        println!("{name}: {best:.1} ns");
    };
    let mut bytes = Vec::new();
    for (name, layout) in [("int", &int), ("int null, varchar of 30", &pair)] {
        time(&format!("encode {name}"), &mut || {
            bytes.clear();
            let row = black_box(&row);
            layout.encode_row(row, &BinaryCollation, &mut bytes).expect("values of the key");
        });
        let parts = layout.parts().len();
        time(&format!("cut {name}"), &mut || {
            black_box(layout.parts_length(black_box(&bytes), parts)).expect("a key");
        });
    }
}
