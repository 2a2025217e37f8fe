//! The value that a column of dates, times, years, large integers or texts would store for a
//! constant that it is compared with.
//!
//! ```text
//!   date_column = 240229               2024-02-29
//!   datetime_column < 20240229         2024-02-29 00:00:00
//!   time_column = 240229101112         10:11:12
//!   year_column = 5,  year_column = '5'      2005
//!   bigint_column = '5'                5; not of a number with more digits than a double has
//!   latin1_column = 'é'                'é'; not of '漢', which latin1 does not have
//! ```
//!
//! MySQL stores such a constant into the column before it compares. A constant that cannot be
//! stored unchanged has no such value, and is compared by its own type.

use firn_format::value::{Date, DateTime, IntWidth};

use crate::collate::has_all;
use crate::context::EvaluationContext;
use crate::datum::Datum;
use crate::sql_mode::SqlMode;
use crate::sql_type::{SqlType, TypeKind};
use crate::temporal::parse::{self, DateRules};
use crate::temporal::round::round_time;

use super::temporal::{read_date_time, read_time};
use super::to_double;

/// Digits of a text that is read as a whole year.
const YEAR_DIGITS: usize = 4;

/// What a column stores for a constant; `None` if it would warn, store zeros, or if it is not such
/// a column.
#[must_use]
pub fn held(
    constant: &Datum,
    from: &SqlType,
    column: &SqlType,
    ctx: &EvaluationContext,
) -> Option<Datum> {
    match &column.kind {
        TypeKind::Date => date_time(constant, from, ctx).map(|value| Datum::from(value.date)),
        TypeKind::DateTime { .. } | TypeKind::Timestamp { .. } => {
            date_time(constant, from, ctx).map(Datum::from)
        }
        // Not by its bits as a signed number.
        TypeKind::Time { .. } if matches!(constant, Datum::UInt(n) if *n > i64::MAX as u64) => None,
        TypeKind::Time { fsp } => {
            let parsed = read_time(constant, from, ctx);
            let truncate = ctx.sql_mode.contains(SqlMode::TIME_TRUNCATE_FRACTIONAL);
            let value = parsed.value.filter(|_| parsed.fault.is_none())?;
            Some(Datum::from(round_time(value, *fsp, truncate)))
        }
        TypeKind::Year => year(constant, from, ctx).map(Datum::UInt),
        TypeKind::Integer { width: IntWidth::Eight, .. } => {
            let text = constant.as_bytes()?;
            (!is_large_whole(text)).then(|| constant.clone())
        }
        TypeKind::Varchar { collation, .. } => {
            let charset = firn_sql_collation::get(*collation).charset;
            has_all(charset, constant.as_bytes()?).then(|| constant.clone())
        }
        _ => None,
    }
}

/// Whether a text is a whole number that a double may not have exactly.
fn is_large_whole(text: &[u8]) -> bool {
    const EXACT_DIGITS: usize = 15;
    let text = text.trim_ascii();
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    digits.len() > EXACT_DIGITS && digits.iter().all(u8::is_ascii_digit)
}

/// Whether a text contains a date, possibly followed by something else.
#[must_use]
pub fn is_readable_date(text: &Datum, from: &SqlType, ctx: &EvaluationContext) -> bool {
    read_date_time(text, from, DateRules::from_mode(ctx.sql_mode), ctx).value.is_some()
}

fn date_time(constant: &Datum, from: &SqlType, ctx: &EvaluationContext) -> Option<DateTime> {
    let is_text = constant.as_bytes().is_some();
    let parsed = read_date_time(constant, from, DateRules::from_mode(ctx.sql_mode), ctx);
    let is_zero = |value: &DateTime| value.date == Date::default();
    parsed.value.filter(|value| parsed.fault.is_none() && (is_text || !is_zero(value)))
}

fn year(constant: &Datum, from: &SqlType, ctx: &EvaluationContext) -> Option<u64> {
    if let Some(text) = constant.as_bytes() {
        let text = text.trim_ascii();
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&text[..digits]).ok()?.parse::<i64>().ok()?;
        return parse::year_from_number(number, text.len() != YEAR_DIGITS);
    }
    match constant {
        Datum::Date(packed) => return Some(Date::unpack(*packed).year.into()),
        Datum::DateTime(packed) => return Some(DateTime::unpack(*packed).date.year.into()),
        // A time has the year of the statement.
        Datum::Time(_) => {
            let now = ctx.time_zone.to_local(ctx.statement_time_us)?;
            return Some(now.date.year.into());
        }
        _ if !from.kind.is_numeric() => return None,
        _ => {}
    }
    let number = to_double(constant, from, ctx).ok()?;
    let whole = number.round();
    let is_year = number >= 0.0 && (0.0..=9_999.0).contains(&whole);
    is_year.then_some(whole as i64).and_then(|whole| parse::year_from_number(whole, false))
}
