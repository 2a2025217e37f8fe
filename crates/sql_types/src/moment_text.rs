//! Texts that functions such as `ADDTIME` and `DATE_ADD` make of dates, times and moments.
//!
//! ```text
//!   ADDTIME('10:11:12', 1) + 0             101113: the number of the time, not of its text
//!   DATE_ADD('2024-02-29', INTERVAL 1 DAY) + 0     20240301
//!   YEAR(ADDTIME('10:11:12', 1))           the year of today
//! ```

use crate::datum::Datum;
use crate::sql_type::{Coercibility, SqlType, TypeKind};
use crate::temporal::DateRules;
use crate::temporal::parse::{parse_date_time, parse_time};

const MAX_FRACTION_DIGITS: u8 = 6;

impl SqlType {
    /// Whether values are texts that a function made of dates, times or moments. Such a text is the
    /// only `CHAR` that is not a column's.
    #[must_use]
    pub fn is_text_of_moment(&self) -> bool {
        matches!(self.kind, TypeKind::Char { .. }) && self.coercibility == Coercibility::Coercible
    }
}

/// The date, time or moment of such a text, and its type.
#[must_use]
pub fn moment_of_text(text: &[u8]) -> Option<(Datum, SqlType)> {
    if let Some(time) = time_of_text(text) {
        return Some((time, SqlType::new(TypeKind::Time { fsp: MAX_FRACTION_DIGITS })));
    }
    let written = parse_date_time(text, DateRules::LENIENT).value?;
    Some(match written.has_time {
        true => {
            let kind = TypeKind::DateTime { fsp: MAX_FRACTION_DIGITS };
            (written.date_time.into(), SqlType::new(kind))
        }
        false => (written.date_time.date.into(), SqlType::new(TypeKind::Date)),
    })
}

/// As [`moment_of_text`], for a value of such a type; `None` for any other value.
#[must_use]
pub fn made_moment(datum: &Datum, ty: &SqlType) -> Option<(Datum, SqlType)> {
    match datum {
        Datum::Text(text) if ty.is_text_of_moment() => moment_of_text(text),
        _ => None,
    }
}

/// The time of such a text; `None` for one that has a date.
#[must_use]
pub fn time_of_text(text: &[u8]) -> Option<Datum> {
    let behind_sign = text.strip_prefix(b"-").unwrap_or(text);
    if behind_sign.contains(&b'-') {
        return None;
    }
    parse_time(text, DateRules::LENIENT).value.map(Datum::from)
}
