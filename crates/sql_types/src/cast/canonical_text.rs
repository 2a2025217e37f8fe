//! Texts as programs write them: those of most literals and most files to be loaded.
//!
//! ```text
//!   INT           -?[0-9]{1,18}             that the column can hold
//!   DECIMAL(p,s)  -?[0-9]+(\.[0-9]+)?       up to 18 digits, none to be rounded
//!   DATE          [0-9]{4}-[0-9]{2}-[0-9]{2}                          on the calendar, not year 0
//!   DATETIME      [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}
//! ```
//!
//! For a text that is read here, the general way of [`super::assign`] returns the same and has no
//! warning. Everything else is left to it.

use firn_format::value::{Date, DateTime};

use crate::calendar::days_in_month;
use crate::datum::Datum;
use crate::decimal::Decimal;
use crate::sql_type::TypeKind;

/// This many digits always fit in 64 bits.
const MOST_DIGITS: usize = 18;

/// What a column of this kind stores for a text; `None`: the text is not a plain one.
pub(super) fn read(text: &[u8], kind: &TypeKind) -> Option<Datum> {
    match *kind {
        TypeKind::Integer { width, unsigned } => {
            let number = integer(text)?;
            let bits = width.bytes() as u32 * 8;
            match unsigned {
                true => {
                    let number = u64::try_from(number).ok()?;
                    (number.leading_zeros() >= 64 - bits).then_some(Datum::UInt(number))
                }
                false => {
                    let unused = 64 - bits;
                    ((number << unused) >> unused == number).then_some(Datum::Int(number))
                }
            }
        }
        TypeKind::Decimal { precision, scale, unsigned: false } => decimal(text, precision, scale),
        TypeKind::Date => date(text).map(Datum::from),
        TypeKind::DateTime { .. } => date_time(text).map(Datum::from),
        _ => None,
    }
}

fn integer(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', digits @ ..] => Some(-natural(digits)?),
        digits => natural(digits),
    }
}

fn natural(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > MOST_DIGITS {
        return None;
    }
    digits.iter().try_fold(0_i64, |number, byte| Some(number * 10 + i64::from(digit(*byte)?)))
}

fn digit(byte: u8) -> Option<u8> {
    Some(byte.wrapping_sub(b'0')).filter(|digit| *digit < 10)
}

fn decimal(text: &[u8], precision: u8, scale: u8) -> Option<Datum> {
    let (is_negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let point = text.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = match point {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (text, &[][..]),
    };
    let missing_digits = usize::from(scale).checked_sub(fraction.len())?;
    let is_whole = whole.len() <= usize::from(precision - scale);
    if !is_whole
        || whole.len() + usize::from(scale) > MOST_DIGITS
        || point.is_some() == fraction.is_empty()
    {
        return None;
    }
    let fraction = if fraction.is_empty() { 0 } else { natural(fraction)? };
    let power = |digits: usize| 10_i64.pow(digits as u32);
    let unscaled = natural(whole)? * power(usize::from(scale)) + fraction * power(missing_digits);
    let unscaled = if is_negative { -unscaled } else { unscaled };
    Some(Datum::Decimal(Decimal::from_unscaled(unscaled.into(), scale)))
}

fn two_digits(text: &[u8]) -> Option<u8> {
    let [tens, ones] = *text.first_chunk()?;
    Some(digit(tens)? * 10 + digit(ones)?)
}

fn date(text: &[u8]) -> Option<Date> {
    let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = *<&[u8; 10]>::try_from(text).ok()? else {
        return None;
    };
    let year = u16::from(two_digits(&[y0, y1])?) * 100 + u16::from(two_digits(&[y2, y3])?);
    let (month, day) = (two_digits(&[m0, m1])?, two_digits(&[d0, d1])?);
    let is_day = year > 0 && day > 0 && day <= days_in_month(year, month);
    is_day.then_some(Date { year, month, day })
}

fn date_time(text: &[u8]) -> Option<DateTime> {
    let (day, time) = text.split_at_checked(10)?;
    let [b' ', h0, h1, b':', m0, m1, b':', s0, s1] = *<&[u8; 9]>::try_from(time).ok()? else {
        return None;
    };
    let (hour, minute) = (two_digits(&[h0, h1])?, two_digits(&[m0, m1])?);
    let second = two_digits(&[s0, s1])?;
    let is_time = hour < 24 && minute < 60 && second < 60;
    let time = DateTime { date: date(day)?, hour, minute, second, microsecond: 0 };
    is_time.then_some(time)
}

#[cfg(test)]
mod tests {
    use firn_format::value::{CollationId, IntWidth};
    use proptest::prelude::*;

    use super::super::assign::{Source, Target, assign_any};
    use super::*;
    use crate::{EvaluationContext, SqlType, StatementKind};

    fn kinds() -> Vec<TypeKind> {
        let widths = [IntWidth::One, IntWidth::Two, IntWidth::Four, IntWidth::Eight];
        let integer = |unsigned| move |width| TypeKind::Integer { width, unsigned };
        let decimal = |(precision, scale)| TypeKind::Decimal { precision, scale, unsigned: false };
        let mut kinds: Vec<TypeKind> = widths.into_iter().map(integer(false)).collect();
        kinds.extend(widths.into_iter().map(integer(true)));
        kinds.extend([(12, 2), (5, 5), (18, 0), (30, 10), (65, 30)].map(decimal));
        kinds.extend([
            TypeKind::Date,
            TypeKind::DateTime { fsp: 0 },
            TypeKind::DateTime { fsp: 6 },
        ]);
        kinds
    }

    #[test]
    fn plain_texts_are_read() {
        let is_read = |text: &str| {
            let read = kinds().iter().filter(|kind| read(text.as_bytes(), kind).is_some()).count();
            (text.to_owned(), read)
        };
        let texts = ["17", "-300", "1.25", "0.1", "1998-02-28", "2024-02-29 23:59:59"];
        let counts: Vec<usize> = texts.map(|text| is_read(text).1).to_vec();
        assert_eq!(counts, [11, 6, 2, 2, 1, 2]);
        let others =
            ["", "-", "+1", " 1", "1 ", "1.", ".5", "1e3", "2023-02-29", "0000-01-01", "1998-2-8"];
        assert_eq!(others.map(|text| is_read(text).1), [0; 11]);
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_the_long_way_says(
            text in prop_oneof![
                "-?[0-9]{1,20}",
                "-?[0-9]{0,12}\\.[0-9]{0,12}",
                "[0-9]{4}-[01][0-9]-[0-3][0-9]",
                "[0-9]{4}-0[0-9]-[0-2][0-9] [0-2][0-9]:[0-6][0-9]:[0-6][0-9]",
                "[-0-9. :]{0,20}",
            ],
        ) {
            let context =
                EvaluationContext { statement_kind: StatementKind::Write, ..EvaluationContext::default() };
            let from = SqlType::varchar(100, CollationId(255));
            for kind in kinds() {
                if let Some(found) = read(text.as_bytes(), &kind) {
                    let ty = SqlType::new(kind);
                    let source = Source::Expression;
                    let target = Target { ty: &ty, column: "c", row: 1, ctx: &context, source };
                    let expected = assign_any(&Datum::text(text.as_str()), &from, target);
                    prop_assert_eq!(Ok(format!("{found:?}")), expected.map(|datum| format!("{datum:?}")));
                    prop_assert_eq!(context.warning_count(), 0);
                }
            }
        }
    }
}
