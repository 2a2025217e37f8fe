use firn_format::value::DecimalType;
use num_bigint::{BigInt, BigUint};
use proptest::prelude::*;

use super::*;

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).unwrap_or_else(|| panic!("no decimal: {text}"))
}

#[test]
fn texts_are_read_and_printed() {
    for (text, printed) in [
        ("0", "0"),
        ("-0.00", "0.00"),
        ("00012.50", "12.50"),
        (".5", "0.5"),
        ("5.", "5"),
        ("-1e3", "-1000"),
        ("1.25e1", "12.5"),
        ("125e-3", "0.125"),
        ("1e-40", "0.0000000000000000000000000000000000000001"),
        (
            "99999999999999999999999999999999999999999999999999999999999999999",
            "99999999999999999999999999999999999999999999999999999999999999999",
        ),
        ("0.1234567890123456789012345678905", "0.1234567890123456789012345678905"),
        // Nine groups of nine digits, one of them before the point; the rest is cut off.
        (
            "0.9999999999999999999999999999999999999999999999999999999999999999999999999",
            "0.999999999999999999999999999999999999999999999999999999999999999999999999",
        ),
        ("1e-80", "0.000000000000000000000000000000000000000000000000000000000000000000000000"),
        (
            "99999999999999999999999999999999999999999999999999999999999999999.99999999999",
            "99999999999999999999999999999999999999999999999999999999999999999.999999999",
        ),
    ] {
        assert_eq!(decimal(text).to_string(), printed, "{text}");
    }
    for text in ["", "abc", "1x", "-", ".", "1e99"] {
        assert_eq!(Decimal::parse(text), None, "{text}");
    }
}

#[test]
fn a_prefix_is_a_number() {
    let parsed = |text: &str| {
        let parsed = Decimal::parse_prefix(text.as_bytes());
        (parsed.number.to_string(), parsed.length_bytes)
    };
    assert_eq!(parsed(" 12.5abc"), ("12.5".into(), 5));
    assert_eq!(parsed("1e"), ("1".into(), 1));
    assert_eq!(parsed("1e+x"), ("1".into(), 1));
    assert_eq!(parsed("abc"), ("0".into(), 0));
    assert_eq!(parsed("."), ("0".into(), 0));
}

#[test]
fn rounding_is_half_away_from_zero() {
    let round = |text, digits, rounding| decimal(text).round(digits, rounding).unwrap().to_string();
    assert_eq!(round("2.5", 0, Rounding::HalfUp), "3");
    assert_eq!(round("-2.5", 0, Rounding::HalfUp), "-3");
    assert_eq!(round("2.4999", 0, Rounding::HalfUp), "2");
    assert_eq!(round("1.005", 2, Rounding::HalfUp), "1.01");
    assert_eq!(round("-1.9", 0, Rounding::Truncate), "-1");
    assert_eq!(round("-1.1", 0, Rounding::Floor), "-2");
    assert_eq!(round("1.1", 0, Rounding::Ceiling), "2");
    assert_eq!(round("-0.4", 0, Rounding::HalfUp), "0");
    assert_eq!(round("155", -1, Rounding::HalfUp), "160");
    assert_eq!(round("155", -3, Rounding::HalfUp), "0");
    assert_eq!(round("1.5", 3, Rounding::HalfUp), "1.500");
    assert_eq!(round("5", -100, Rounding::HalfUp), "0");
}

#[test]
fn division_is_exact_to_its_scale() {
    let divide = |a, b, scale| {
        decimal(a).divide(&decimal(b), scale, Rounding::HalfUp).map(|quotient| quotient.to_string())
    };
    assert_eq!(divide("1", "3", 4).as_deref(), Some("0.3333"));
    assert_eq!(divide("2", "3", 4).as_deref(), Some("0.6667"));
    assert_eq!(divide("-10", "4", 1).as_deref(), Some("-2.5"));
    assert_eq!(divide("1.00", "0.0003", 2).as_deref(), Some("3333.33"));
    assert_eq!(divide("1", "0", 4), None);
    let remainder = |a, b| decimal(a).remainder(&decimal(b)).map(|rest| rest.to_string());
    assert_eq!(remainder("-5.5", "2").as_deref(), Some("-1.5"));
    assert_eq!(remainder("5", "-0.3").as_deref(), Some("0.2"));
}

#[test]
fn doubles_come_by_their_shortest_text() {
    assert_eq!(Decimal::from_double(0.1).unwrap().to_string(), "0.1");
    assert_eq!(Decimal::from_double(1e20).unwrap().to_string(), "100000000000000000000");
    assert_eq!(Decimal::from_double(-1.5e-3).unwrap().to_string(), "-0.0015");
    assert_eq!(Decimal::from_double(1e80), None);
    assert_eq!(decimal("0.1").to_double(), 0.1);
    assert_eq!(decimal("-123456789012345678901234567890.5").to_double(), -1.2345678901234568e29);
}

#[test]
fn digits_are_counted() {
    assert_eq!((decimal("0.015").digits(), decimal("0.015").integer_digits()), (2, 0));
    assert_eq!((decimal("120.5").digits(), decimal("120.5").integer_digits()), (4, 3));
    assert_eq!(Decimal::ZERO.digits(), 0);
    assert!(decimal("99.99").fits(4, 2));
    assert!(!decimal("100.0").fits(4, 2));
}

fn any_decimal() -> impl Strategy<Value = Decimal> {
    let digits = prop_oneof![3 => "[0-9]{1,12}", 1 => "[0-9]{13,45}"];
    (any::<bool>(), digits, "[0-9]{0,20}").prop_map(|(negative, integer, fraction)| {
        decimal(&format!("{}{integer}.{fraction}", if negative { "-" } else { "" }))
    })
}

/// The number times `10^scale`.
fn model(number: &Decimal, scale: u32) -> BigInt {
    let digits = number.to_string().replace('.', "");
    let unscaled: BigInt = digits.parse().unwrap();
    unscaled * BigInt::from(10).pow(scale - u32::from(number.scale()))
}

#[test]
fn a_word_of_a_quotient_that_was_guessed_too_large_is_corrected() {
    let dividend = [3, 0, 1 << 63, 0, 0, 0, 0, 0];
    let (quotient, remainder) = wide::divide(&dividend, &[1, 0, 1 << 61, 0]);
    assert_eq!((quotient, remainder), ([3, 0, 0, 0, 0, 0, 0, 0], [0, 0, 1 << 61, 0]));
}

/// A word, often one at which a digit of a long division is guessed wrong.
fn word() -> impl Strategy<Value = u64> {
    let extremes = [0, 1, 1 << 63, (1 << 63) - 1, u64::MAX - 1, u64::MAX];
    prop_oneof![prop::sample::select(extremes.to_vec()), any::<u64>()]
}

fn number(words: &[u64]) -> BigUint {
    BigUint::from_bytes_le(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn long_division_agrees_with_big_integers(
        dividend in prop::array::uniform8(word()), divisor in prop::array::uniform4(word()),
        length in 1_usize..=4
    ) {
        let divisor = std::array::from_fn(|at| if at < length { divisor[at] } else { 0 });
        prop_assume!(divisor != [0; 4]);
        let (quotient, remainder) = wide::divide(&dividend, &divisor);
        prop_assert_eq!(number(&quotient), number(&dividend) / number(&divisor));
        prop_assert_eq!(number(&remainder), number(&dividend) % number(&divisor));
    }

    #[test]
    fn it_calculates_as_big_integers_do(a in any_decimal(), b in any_decimal()) {
        let (x, y) = (model(&a, 40), model(&b, 40));
        prop_assert_eq!(a.add(&b).map(|sum| model(&sum, 40)), Some(&x + &y));
        prop_assert_eq!(a.subtract(&b).map(|difference| model(&difference, 40)), Some(&x - &y));
        prop_assert_eq!(a.cmp(&b), x.cmp(&y));
        if let Some(rest) = a.remainder(&b) {
            prop_assert_eq!(model(&rest, 40), x % y);
        } else {
            prop_assert!(b.is_zero());
        }
    }

    #[test]
    fn products_and_quotients_are_rounded_once(a in any_decimal(), b in any_decimal(), scale in 0_u8..=30) {
        let (x, y) = (model(&a, 40), model(&b, 40));
        if let Some(product) = a.multiply(&b) {
            let exact = &x * &y;
            let error = model(&product, 40) * BigInt::from(10).pow(40) - exact;
            prop_assert!(error.magnitude() * 2_u32 <= BigInt::from(10).pow(50).magnitude().clone());
        }
        if let Some(quotient) = a.divide(&b, scale, Rounding::HalfUp) {
            // |quotient * y - x| <= |y| / 2 units of the last digit
            let error = model(&quotient, 40) * &y - x * BigInt::from(10).pow(40);
            let unit = BigInt::from(10).pow(40 - u32::from(scale));
            prop_assert!(error.magnitude() * 2_u32 <= y.magnitude() * unit.magnitude());
        }
    }

    #[test]
    fn rounding_equals_the_models(a in any_decimal(), digits in 0_i32..20) {
        let rounded = a.round(digits, Rounding::HalfUp).unwrap();
        let unit = BigInt::from(10).pow(40 - digits as u32);
        let x = model(&a, 40);
        let half = &unit / 2 * if a.is_negative() { -1 } else { 1 };
        prop_assert_eq!(model(&rounded, 40), (x + half) / &unit * &unit);
    }

    #[test]
    fn sort_keys_order_as_numbers_do(a in any_decimal(), b in any_decimal(), extra in 0_i32..5) {
        let key = |number: &Decimal| {
            let mut key = Vec::new();
            number.write_sort_key(&mut key);
            key
        };
        prop_assert_eq!(key(&a).cmp(&key(&b)), a.cmp(&b));
        let same = a.round(i32::from(a.scale()) + extra, Rounding::Truncate).unwrap();
        prop_assert_eq!(key(&a), key(&same));
    }

    #[test]
    fn the_stored_form_comes_back(a in any_decimal(), precision in 1_u8..=65, scale in 0_u8..=30) {
        let Some(digits) = DecimalType::new(precision.max(scale), scale) else { return Ok(()) };
        let rounded = a.round(scale.into(), Rounding::HalfUp).unwrap();
        match rounded.to_stored(digits) {
            Some(encoded) => prop_assert_eq!(Decimal::from_stored(digits, &encoded), Ok(rounded)),
            None => prop_assert!(!rounded.fits(digits.precision(), scale)),
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in proptest::collection::vec(any::<u8>(), 0..40), digits in "[-+.eE0-9]{0,90}") {
        let _ = Decimal::parse_prefix(&text);
        let _ = Decimal::parse_prefix(digits.as_bytes());
    }

    #[test]
    fn doubles_come_back(number in -1e60..1e60_f64) {
        let exact = Decimal::from_double(number).unwrap();
        if number.abs() > 1e-10 {
            prop_assert_eq!(exact.to_double(), number);
        }
    }
}

/// The order of keys is that of the numbers, also of those with many zeros after the point.
#[test]
fn sort_keys_of_small_numbers_are_in_order() {
    let zeros = |count: usize, digits: &str| decimal(&format!("0.{}{digits}", "0".repeat(count)));
    let mut numbers = vec![decimal("0"), decimal("1"), decimal("12345678901234567890")];
    for count in [0, 1, 28, 29, 30, 31, 32, 60, 71] {
        numbers.push(zeros(count, "1"));
        if count < 71 {
            numbers.push(zeros(count, "15"));
        }
    }
    numbers.extend(numbers.clone().iter().map(Decimal::negate));
    numbers.sort();
    let keys = numbers.iter().map(|number| {
        let mut key = Vec::new();
        number.write_sort_key(&mut key);
        key
    });
    let keys: Vec<_> = keys.collect();
    assert!(keys.is_sorted());
    let equal = |pair: &[Decimal]| pair[0] == pair[1];
    for (pair, keys) in numbers.windows(2).zip(keys.windows(2)) {
        assert_eq!(equal(pair), keys[0] == keys[1], "{pair:?}");
    }
}

#[test]
fn products_and_quotients_have_at_most_thirty_digits_after_the_point() {
    let long = decimal(&format!("0.{}", "9".repeat(72)));
    assert_eq!(long.multiply(&long).unwrap().to_string(), "1.000000000000000000000000000000");
    let tiny = decimal(&format!("0.{}1", "0".repeat(71)));
    assert_eq!(tiny.multiply(&tiny).unwrap().to_string(), format!("0.{}", "0".repeat(30)));
    assert_eq!(tiny.divide(&tiny, 4, Rounding::Truncate).unwrap().to_string(), "1.0000");
    let large = decimal(&"9".repeat(60));
    assert!(long.divide(&large, 30, Rounding::HalfUp).unwrap().is_zero());
    let sum = large.add(&long).unwrap().to_string();
    assert_eq!(sum, format!("{}.{}", "9".repeat(60), "9".repeat(15)));
}
