//! `FORMAT`: numbers in the style of a locale; and sizes with their units.

use firn_sql_types::decimal::{MAX_SCALE, Rounding};
use firn_sql_types::error::Result;
use firn_sql_types::{Datum, SqlType};

use crate::arguments::{decimal, double, int, text};
use crate::arithmetic::{Domain, domain};
use crate::numeric::round_double;
use crate::signature::{self, Want, fixed, number_type};
use crate::{Call, Function, ResolveContext, Signature, lenient, strict};

pub(super) const FUNCTIONS: &[Function] = &[
    lenient!("FORMAT", 2..=3, resolve_format, format).in_order(&[1, 0]).needing(is_first_known),
    strict!("FORMAT_BYTES", 1..=1, [Double] => signature::system_text::<11>, |a: &[Datum], _: &Call<'_>| {
        Ok(Datum::text(scaled(double(&a[0]), 1024.0, BYTE_UNITS, "bytes", 4)))
    }),
    strict!("FORMAT_PICO_TIME", 1..=1, [Double] => signature::system_text::<11>, |a: &[Datum], _: &Call<'_>| {
        Ok(Datum::text(pico_time(double(&a[0]))))
    }),
];

const BYTE_UNITS: &[&str] = &["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// How a locale writes numbers.
struct Locale {
    point: &'static str,
    separator: &'static str,
    /// Digits of the groups, from the point on; the last is repeated.
    groups: &'static [usize],
}

const ENGLISH: Locale = Locale { point: ".", separator: ",", groups: &[3] };
const GERMAN: Locale = Locale { point: ",", separator: ".", groups: &[3] };
const INDIAN: Locale = Locale { point: ".", separator: ",", groups: &[3, 2] };
const PLAIN_COMMA: Locale = Locale { point: ",", separator: "", groups: &[] };
const PLAIN_POINT: Locale = Locale { point: ".", separator: "", groups: &[] };
const SPACED: Locale = Locale { point: ",", separator: " ", groups: &[3] };
const SWISS: Locale = Locale { point: ".", separator: "'", groups: &[3] };
const SWISS_COMMA: Locale = Locale { point: ",", separator: "'", groups: &[3] };

/// The locales, each kind with its names.
const LOCALES: &[(&Locale, &[&str])] = &[
    (
        &ENGLISH,
        &[
            "en_US", "en_GB", "en_AU", "en_CA", "en_NZ", "en_PH", "en_ZA", "en_ZW", "ar_AE",
            "ar_BH", "ar_EG", "ar_IQ", "ar_JO", "ar_KW", "ar_LB", "ar_LY", "ar_OM", "ar_QA",
            "ar_SD", "ar_SY", "ar_YE", "es_DO", "es_GT", "es_HN", "es_MX", "es_NI", "es_PA",
            "es_PE", "es_PR", "es_SV", "es_US", "he_IL", "ja_JP", "ko_KR", "mn_MN", "ms_MY",
            "th_TH", "ur_PK", "zh_CN", "zh_HK", "zh_TW", "sq_AL", "gu_IN", "rm_CH",
        ],
    ),
    (&INDIAN, &["en_IN", "hi_IN", "ta_IN", "te_IN"]),
    (
        &GERMAN,
        &[
            "de_DE", "de_BE", "de_LU", "be_BY", "da_DK", "es_AR", "es_BO", "es_CL", "es_CO",
            "es_CR", "es_EC", "es_PY", "es_UY", "es_VE", "fo_FO", "hu_HU", "id_ID", "is_IS",
            "lt_LT", "mk_MK", "nb_NO", "no_NO", "ro_RO", "ru_UA", "sv_FI", "tr_TR", "vi_VN",
        ],
    ),
    (&SPACED, &["cs_CZ", "et_EE", "fi_FI", "lv_LV", "ru_RU", "sk_SK", "sv_SE", "uk_UA"]),
    (
        &PLAIN_COMMA,
        &[
            "bg_BG", "ca_ES", "de_AT", "el_GR", "es_ES", "eu_ES", "fr_BE", "fr_CA", "fr_CH",
            "fr_FR", "fr_LU", "gl_ES", "hr_HR", "it_IT", "nl_BE", "nl_NL", "pl_PL", "pt_BR",
            "pt_PT", "sl_SI",
        ],
    ),
    (&PLAIN_POINT, &["ar_DZ", "ar_IN", "ar_MA", "ar_SA", "ar_TN", "sr_RS"]),
    (&SWISS, &["de_CH"]),
    (&SWISS_COMMA, &["it_CH"]),
];

fn locale(name: &str, call: &Call<'_>) -> &'static Locale {
    let named =
        |(_, names): &&(&Locale, &[&str])| names.iter().any(|n| n.eq_ignore_ascii_case(name));
    if let Some((locale, _)) = LOCALES.iter().find(named) {
        return locale;
    }
    call.context.warn(1649, || format!("Unknown locale: '{name}'"));
    &ENGLISH
}

fn resolve_format(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let exact = domain(&number_type(&types[0]).kind) != Domain::Double;
    let number = if exact { Want::Number } else { Want::Double };
    fixed(types, context, &[number, Want::Int, Want::Text], signature::text::<100>)
}

/// Whether the digits after the point, which are evaluated first, are not NULL.
fn is_first_known(before: &[Datum]) -> bool {
    before.first().is_none_or(|first| !first.is_null())
}

fn format(arguments: &[Datum], call: &Call<'_>) -> Result<Datum> {
    if arguments[..2].iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    // MySQL reads the lower 32 bits of the number of digits.
    let decimals = (int(&arguments[1]) as i32).clamp(0, MAX_SCALE.into());
    let digits = fixed_digits(&arguments[0], decimals as u8);
    let locale = match arguments.get(2) {
        None | Some(Datum::Null) => &ENGLISH,
        Some(name) => locale(&text(name), call),
    };
    Ok(Datum::text(grouped(&digits, locale)))
}

fn fixed_digits(number: &Datum, decimals: u8) -> String {
    if let Datum::Double(number) = number {
        let rounded = round_double(*number, decimals.into(), Rounding::HalfUp);
        return shortest_digits(rounded, usize::from(decimals));
    }
    let number = decimal(number);
    number.round(decimals.into(), Rounding::HalfUp).unwrap_or(number).to_string()
}

/// A number without an exponent: its shortest digits, filled with zeros. A number that was rounded
/// to `decimals` has no more digits after the point.
fn shortest_digits(number: f64, decimals: usize) -> String {
    // `{}` writes the shortest digits, without an exponent.
    let shortest = number.to_string();
    let written = shortest.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let point = if written == 0 && decimals > 0 { "." } else { "" };
    match decimals.checked_sub(written) {
        Some(missing) => format!("{shortest}{point}{:0<missing$}", ""),
        None => format!("{number:.decimals$}"),
    }
}

fn grouped(number: &str, locale: &Locale) -> String {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", number),
    };
    let (mut integer, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut groups = Vec::new();
    let mut sizes = locale.groups.iter().copied();
    let mut size = sizes.next().unwrap_or(usize::MAX);
    while integer.len() > size {
        let (rest, group) = integer.split_at(integer.len() - size);
        groups.push(group);
        integer = rest;
        size = sizes.next().unwrap_or(size);
    }
    groups.push(integer);
    groups.reverse();
    let point = if fraction.is_empty() { "" } else { locale.point };
    format!("{sign}{}{point}{fraction}", groups.join(locale.separator))
}

fn scaled(number: f64, factor: f64, units: &[&str], unit: &str, width: usize) -> String {
    let mut scaled = number;
    let mut chosen = None;
    for larger in units {
        if scaled.abs() < factor {
            break;
        }
        scaled /= factor;
        chosen = Some(larger);
    }
    match chosen {
        // Below the first unit there is nothing after the point, and 0 has no sign.
        None => format!("{:>width$} {unit}", number.trunc() + 0.0),
        Some(chosen) => format!("{} {chosen}", short_number(scaled)),
    }
}

/// A number with two digits after the point; a large one with an exponent.
fn short_number(number: f64) -> String {
    if number.abs() < 100_000.0 {
        return format!("{number:.2}");
    }
    let text = format!("{number:.2e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{digits}e+{exponent:0>2}")
}

fn pico_time(picoseconds: f64) -> String {
    const UNITS: [(f64, &str); 7] = [
        (86_400e12, "d"),
        (3_600e12, "h"),
        (60e12, "min"),
        (1e12, "s"),
        (1e9, "ms"),
        (1e6, "us"),
        (1e3, "ns"),
    ];
    match UNITS.iter().find(|(unit, _)| picoseconds.abs() >= *unit) {
        None => format!("{:>3} ps", picoseconds.trunc() + 0.0),
        Some((unit, name)) => format!("{} {name}", short_number(picoseconds / unit)),
    }
}
