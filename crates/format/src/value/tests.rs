use expect_test::expect;
use proptest::prelude::*;

use super::*;

fn decimal_type(precision: u8, scale: u8) -> DecimalType {
    DecimalType::new(precision, scale).expect("a possible type")
}

fn stored(column_type: ColumnType, value: ValueRef<'_>) -> Result<Vec<u8>, ValueError> {
    let mut bytes = vec![0; column_type.fixed_length().expect("a fixed type")];
    fixed::write(column_type, value, &mut bytes).map(|()| bytes)
}

#[test]
fn fixed_values_are_stored_as_documented() {
    let date = Date { year: 2026, month: 11, day: 21 };
    let moment = DateTime { date, hour: 13, minute: 14, second: 15, microsecond: 160_000 };
    let span = Time { negative: true, hours: 1, minutes: 0, seconds: 0, microseconds: 500_000 };
    let decimal = |unscaled| {
        let mut encoded = vec![0; decimal_type(12, 4).encoded_length()];
        decimal_type(12, 4).pack_i128(unscaled, &mut encoded).expect("fits");
        Value::Decimal(encoded.into())
    };
    let decimal_column = ColumnType::Decimal(decimal_type(12, 4));
    let cases: [(&str, ColumnType, Value); 14] = [
        ("tinyint -1", ColumnType::Int(IntWidth::One), Value::Int(-1)),
        ("mediumint 5", ColumnType::Int(IntWidth::Three), Value::Int(5)),
        ("bigint min", ColumnType::Int(IntWidth::Eight), Value::Int(i64::MIN)),
        ("int unsigned 7", ColumnType::UInt(IntWidth::Four), Value::UInt(7)),
        ("decimal", decimal_column, decimal(123_456_789_012)),
        ("decimal < 0", decimal_column, decimal(-123_456_789_012)),
        ("double 1", ColumnType::Double, Value::Double(1.0)),
        ("bit(10)", ColumnType::Bit { bits: 10 }, Value::UInt(0x3ff)),
        ("date", ColumnType::Date, Value::Temporal(date.pack())),
        ("time(1)", ColumnType::Time { fsp: 1 }, Value::Temporal(span.pack())),
        ("datetime(2)", ColumnType::DateTime { fsp: 2 }, Value::Temporal(moment.pack())),
        ("timestamp", ColumnType::Timestamp { fsp: 0 }, Value::Temporal(1_000_000)),
        ("year 2026", ColumnType::Year, Value::UInt(2026)),
        ("enum", ColumnType::Enum { members: 3 }, Value::UInt(3)),
    ];
    let mut text = String::new();
    for (name, column_type, value) in cases {
        let bytes = stored(column_type, value.as_ref()).expect("a value of the type");
        assert_eq!(fixed::read(column_type, &bytes), Ok(value.as_ref()), "{name}");
        text += &format!("{name:15} {bytes:02x?}\n");
    }
    expect![[r#"
        tinyint -1      [7f]
        mediumint 5     [80, 00, 05]
        bigint min      [00, 00, 00, 00, 00, 00, 00, 00]
        int unsigned 7  [00, 00, 00, 07]
        decimal         [80, bc, 61, 4e, 23, 34]
        decimal < 0     [7f, 43, 9e, b1, dc, cb]
        double 1        [3f, f0, 00, 00, 00, 00, 00, 00]
        bit(10)         [03, ff]
        date            [0f, d5, 75]
        time(1)         [7f, f1, ef, 32]
        datetime(2)     [1f, aa, ea, d3, 8f, 10]
        timestamp       [00, 00, 00, 00, 01]
        year 2026       [7e]
        enum            [00, 03]
    "#]]
    .assert_eq(&text);
}

#[test]
fn values_out_of_range_are_refused() {
    let cases = [
        (ColumnType::Int(IntWidth::One), ValueRef::Int(128)),
        (ColumnType::Int(IntWidth::Three), ValueRef::Int(-(1 << 23) - 1)),
        (ColumnType::Int(IntWidth::Four), ValueRef::Int(i64::MAX)),
        (ColumnType::Int(IntWidth::Four), ValueRef::Int(i64::MIN)),
        (ColumnType::UInt(IntWidth::Three), ValueRef::UInt(1 << 24)),
        (ColumnType::UInt(IntWidth::Four), ValueRef::UInt(1 << 32)),
        (ColumnType::Bit { bits: 3 }, ValueRef::UInt(8)),
        (ColumnType::Set { members: 9 }, ValueRef::UInt(1 << 9)),
        (ColumnType::Enum { members: 3 }, ValueRef::UInt(4)),
        (ColumnType::Year, ValueRef::UInt(1900)),
        (ColumnType::Year, ValueRef::UInt(2156)),
        (ColumnType::Date, ValueRef::Temporal(-1)),
        (ColumnType::Timestamp { fsp: 0 }, ValueRef::Temporal(1)),
        (ColumnType::DateTime { fsp: 6 }, ValueRef::Temporal(1_000_000)),
        (ColumnType::Time { fsp: 6 }, ValueRef::Temporal(i64::MIN)),
        (ColumnType::Decimal(decimal_type(5, 2)), ValueRef::Decimal(&[0])),
    ];
    for (column_type, value) in cases {
        let refused = stored(column_type, value);
        assert_eq!(refused, Err(ValueError::OutOfRange(column_type)), "{value:?}");
    }
    let mismatch = stored(ColumnType::Date, ValueRef::Bytes(b"2026-11-21"));
    assert_eq!(mismatch, Err(ValueError::Mismatch(ColumnType::Date)));
}

#[test]
fn impossible_types_are_refused() {
    for column_type in [
        ColumnType::Bit { bits: 0 },
        ColumnType::Bit { bits: 65 },
        ColumnType::Set { members: 65 },
        ColumnType::DateTime { fsp: 7 },
    ] {
        assert_eq!(column_type.check(), Err(ValueError::InvalidType(column_type)));
    }
    assert_eq!(DecimalType::new(66, 0), None);
    assert_eq!(DecimalType::new(5, 6), None);
}

/// The stored form of a number with these digits.
fn packed(decimal_type: DecimalType, negative: bool, digits: &[u8]) -> Result<Vec<u8>, ValueError> {
    let mut encoded = vec![0; decimal_type.encoded_length()];
    decimal_type.pack_digits(negative, digits, &mut encoded).map(|()| encoded)
}

/// The sign and the digits of a stored form.
fn unpacked(decimal_type: DecimalType, encoded: &[u8]) -> Result<(bool, Vec<u8>), ValueError> {
    let mut digits = vec![0; usize::from(decimal_type.precision())];
    decimal_type.unpack_digits(encoded, &mut digits).map(|negative| (negative, digits))
}

#[test]
fn digits_that_the_type_does_not_have_are_refused() {
    let price = decimal_type(6, 2);
    let out_of_range = Err(ValueError::OutOfRange(ColumnType::Decimal(price)));
    assert_eq!(packed(price, false, &[1; 5]), out_of_range);
    assert_eq!(packed(price, false, &[10; 6]), out_of_range);
}

#[test]
fn a_decimal_group_beyond_its_digits_is_corrupt() {
    let one_digit = decimal_type(1, 0);
    let corrupt = Err(ValueError::Corrupt(ColumnType::Decimal(one_digit)));
    assert_eq!(unpacked(one_digit, &[0x8a]), corrupt);
    assert_eq!(unpacked(one_digit, &[]), corrupt);
}

#[test]
fn no_decimal_is_longer_than_the_maximum() {
    let types = (1..=65).flat_map(|p| (0..=30).filter_map(move |s| DecimalType::new(p, s)));
    let longest = types.map(DecimalType::encoded_length).max();
    assert!(longest <= Some(DecimalType::MAX_ENCODED_LENGTH), "{longest:?}");
}

prop_compose! {
    fn any_decimal_type()(precision in 1_u8..=65)(
        precision in Just(precision),
        scale in 0..=precision.min(30),
    ) -> DecimalType {
        decimal_type(precision, scale)
    }
}

fn digits(precision: u8) -> impl Strategy<Value = Vec<u8>> {
    // Leading zeros make numbers of all sizes.
    (prop::collection::vec(0_u8..10, usize::from(precision)), 0..=usize::from(precision)).prop_map(
        |(mut digits, zeros)| {
            digits[..zeros].fill(0);
            digits
        },
    )
}

proptest! {
    #[test]
    fn decimals_survive_and_order_as_their_digits(
        (decimal_type, a, b, signs) in any_decimal_type().prop_flat_map(|t| {
            (Just(t), digits(t.precision()), digits(t.precision()), any::<(bool, bool)>())
        })
    ) {
        let (first, second) =
            (packed(decimal_type, signs.0, &a).unwrap(), packed(decimal_type, signs.1, &b).unwrap());
        let is_negative = |sign, digits: &[u8]| sign && digits.iter().any(|digit| *digit != 0);
        let (minus_a, minus_b) = (is_negative(signs.0, &a), is_negative(signs.1, &b));
        prop_assert_eq!(unpacked(decimal_type, &first), Ok((minus_a, a.clone())));
        let by_value = match (minus_a, minus_b) {
            (false, false) => a.cmp(&b),
            (true, true) => b.cmp(&a),
            (first, second) => second.cmp(&first),
        };
        prop_assert_eq!(first.cmp(&second), by_value);
    }

    #[test]
    fn decimals_agree_with_integers(
        (decimal_type, digits, negative) in (1_u8..=38, 0_u8..=30).prop_flat_map(|(p, s)| {
            (Just(decimal_type(p, s.min(p))), digits(p), any::<bool>())
        })
    ) {
        let magnitude = digits.iter().fold(0_i128, |sum, &digit| sum * 10 + i128::from(digit));
        let unscaled = if negative { -magnitude } else { magnitude };
        let mut encoded = vec![0; decimal_type.encoded_length()];
        decimal_type.pack_i128(unscaled, &mut encoded).expect("fits");
        prop_assert_eq!(packed(decimal_type, negative, &digits), Ok(encoded.clone()));
        prop_assert_eq!(decimal_type.unpack_i128(&encoded), Ok(unscaled));
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused(
        decimal_type in any_decimal_type(), bytes in prop::collection::vec(any::<u8>(), 0..40)
    ) {
        let head = &bytes[..bytes.len().min(decimal_type.encoded_length())];
        for bytes in [&bytes, head] {
            if let Ok((negative, digits)) = unpacked(decimal_type, bytes) {
                let again = packed(decimal_type, negative, &digits).unwrap();
                prop_assert_eq!(unpacked(decimal_type, &again), Ok((negative, digits)));
            }
        }
    }

    #[test]
    fn datetimes_survive(
        (year, month, day) in (0_u16..10_000, 0_u8..=12, 0_u8..=31),
        (hour, minute, second) in (0_u8..24, 0_u8..60, 0_u8..60),
        microsecond in 0_u32..1_000_000,
    ) {
        let date = Date { year, month, day };
        let moment = DateTime { date, hour, minute, second, microsecond };
        prop_assert_eq!(Date::unpack(date.pack()), date);
        prop_assert_eq!(DateTime::unpack(moment.pack()), moment);
    }

    #[test]
    fn times_survive(packed in -3_020_399_999_999_i64..=3_020_399_999_999) {
        prop_assert_eq!(Time::unpack(packed).pack(), packed);
    }
}
