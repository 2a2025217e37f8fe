//! Periods: months written as `YYYYMM` or `YYMM`.

use firn_sql_types::Datum;
use firn_sql_types::error::Result;

use crate::arguments::{incorrect_arguments, int};
use crate::signature::bigint;
use crate::{Call, Function, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    strict!("PERIOD_ADD", 2..=2, [Int] => bigint, |a: &[Datum], _: &Call<'_>| {
        let months = months(&a[0], "period_add")?.wrapping_add(int(&a[1]));
        Ok(Datum::Int(period(months.cast_unsigned())))
    }),
    strict!("PERIOD_DIFF", 2..=2, [Int] => bigint, |a: &[Datum], _: &Call<'_>| {
        Ok(Datum::Int(months(&a[0], "period_diff")? - months(&a[1], "period_diff")?))
    }),
];

/// Months since the beginning of the year 0; error 1210 for an invalid period.
fn months(datum: &Datum, function: &str) -> Result<i64> {
    let period = int(datum);
    let (year, month) = (period / 100, period % 100);
    if period <= 0 || !(1..=12).contains(&month) {
        return Err(incorrect_arguments(function));
    }
    let year = match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        _ => year,
    };
    Ok(year.saturating_mul(12).saturating_add(month - 1))
}

/// The period of a month. What does not fit wraps, as MySQL's whole numbers do.
fn period(months: u64) -> i64 {
    if months == 0 {
        return 0;
    }
    let year = match months / 12 {
        year @ 0..=69 => year + 2000,
        year @ 70..=99 => year + 1900,
        year => year,
    };
    year.wrapping_mul(100).wrapping_add(months % 12 + 1).cast_signed()
}
