//! The values of functions and operators.

use firn_sql_functions::AggregateFunction;
use firn_sql_logical::PlanContext;
use firn_sql_logical::expression::{Expression, ExpressionKind};
use firn_sql_types::decimal::{MAX_PRECISION, MAX_SCALE};
use firn_sql_types::metadata::{NOT_FIXED_DECIMALS, type_code};
use firn_sql_types::{Coercibility, Datum, Display, SqlType, TypeKind};

use super::super::{Typing, literal, mean};
use super::choice;
use super::{fixed_double, text};
use crate::binder::coerce::is_written_cast;
use crate::binder::display;

/// The length that such functions report at most if they repeat a text.
const LONGEST_MADE_CHARS: u32 = 16_777_216;

/// Digits of the seconds since 1970 up to the year 3001.
const SECONDS_DIGITS: u8 = 11;

/// Characters of a moment and of a time, without a fraction of a second.
const MOMENT_CHARS: u32 = 19;
const TIME_CHARS: u32 = 10;
/// The most digits of a fraction of a second.
const SECOND_DIGITS: u8 = 6;

/// Characters of a double that has no fixed digits after the point.
const LONGEST_DOUBLE_CHARS: u32 = 22;

/// The most digits reported for an integer quotient.
const LONGEST_QUOTIENT_DIGITS: u32 = 21;

/// Digits of numbers returned by functions, with their signs, if they differ from those of a
/// `BIGINT`.
const INTEGER_CHARS: &[(u32, &[&str])] = &[
    (
        1,
        &[
            "REGEXP_LIKE",
            "IS_IPV4",
            "IS_IPV6",
            "IS_IPV4_COMPAT",
            "IS_IPV4_MAPPED",
            "IS_UUID",
            "GET_LOCK",
            "RELEASE_LOCK",
            "IS_FREE_LOCK",
            "BENCHMARK",
            "JSON_OVERLAPS",
            "MEMBER OF",
            "SOUNDS LIKE",
        ],
    ),
    (2, &["STRCMP", "DAYOFWEEK", "WEEKDAY", "QUARTER"]),
    (3, &["MONTH", "DAYOFMONTH", "WEEK", "WEEKOFYEAR", "MINUTE", "SECOND"]),
    (4, &["ASCII", "DAYOFYEAR", "HOUR"]),
    (7, &["YEARWEEK"]),
    (8, &["TO_DAYS"]),
    (9, &["DATEDIFF"]),
    (10, &["CRC32", "COERCIBILITY", "TIME_TO_SEC"]),
    (
        11,
        &[
            "LENGTH",
            "CHAR_LENGTH",
            "BIT_LENGTH",
            "LOCATE",
            "INSTR",
            "FIELD",
            "FIND_IN_SET",
            "UNCOMPRESSED_LENGTH",
        ],
    ),
];

/// The characters of the result of `EXTRACT`, by unit.
const EXTRACTED_CHARS: &[(u32, &[&str])] = &[
    (2, &["QUARTER"]),
    (3, &["MONTH", "WEEK", "DAY", "MINUTE", "SECOND"]),
    (4, &["HOUR"]),
    (5, &["YEAR", "MINUTE_SECOND"]),
    (6, &["HOUR_MINUTE"]),
    (7, &["MICROSECOND", "YEAR_MONTH"]),
    (8, &["HOUR_SECOND"]),
    (9, &["DAY_HOUR", "SECOND_MICROSECOND"]),
    (11, &["DAY_MINUTE", "MINUTE_MICROSECOND"]),
    (13, &["DAY_SECOND"]),
    (14, &["HOUR_MICROSECOND"]),
    (20, &["DAY_MICROSECOND"]),
];

/// `GREATEST` and `LEAST`: with room for a time or a moment, with all digits of a second that one
/// of the values has, where one of them makes texts of the others.
fn of_extreme(typing: &Typing<'_>, arguments: &[Expression], ty: &SqlType) -> Display {
    let values: Vec<(SqlType, Display)> =
        arguments.iter().map(|argument| choice::operand(typing, argument)).collect();
    let values: Vec<(&SqlType, Display)> =
        values.iter().map(|(of, display)| (of, *display)).collect();
    let common = choice::with_code(typing, arguments.iter(), &values, ty);
    let is_moment = |kind: &TypeKind| kind.has_date() && *kind != TypeKind::Date;
    let any = |test: fn(&TypeKind) -> bool| values.iter().any(|(of, _)| test(&of.kind));
    let has_date = any(TypeKind::has_date);
    let chars = match () {
        () if !ty.kind.is_string() => return common,
        () if any(is_moment) => MOMENT_CHARS,
        () if has_date => return common,
        () if any(|kind| matches!(kind, TypeKind::Time { .. })) => TIME_CHARS,
        () => return common,
    };
    let digits = arguments.iter().zip(&values).map(|(argument, (of, shown))| match of.kind {
        TypeKind::Float | TypeKind::Double if shown.decimals != NOT_FIXED_DECIMALS => {
            shown.decimals.min(SECOND_DIGITS).into()
        }
        _ => digits_of(argument, of, has_date),
    });
    let digits = digits.max().unwrap_or(0);
    let chars = chars + digits + u32::from(digits > 0);
    let type_code = common.type_code.filter(|code| *code != type_code::STRING);
    Display { length: common.length.max(chars), type_code, ..common }
}

/// The digits of a second that a value has beside a moment or a time; those of a text that is none
/// are unknown.
fn digits_of(argument: &Expression, of: &SqlType, has_date: bool) -> u32 {
    match (&argument.kind, &of.kind) {
        (_, kind) if kind.is_temporal() => kind.fsp().into(),
        _ if literal::written_bytes(argument).is_some() => 0,
        (_, TypeKind::Decimal { scale, .. }) => (*scale).min(SECOND_DIGITS).into(),
        (_, kind) if kind.is_integer() || matches!(kind, TypeKind::Null | TypeKind::Year) => 0,
        (ExpressionKind::Literal(Datum::Text(text)), kind) if kind.is_text() => {
            let digits = |byte: &&u8| byte.is_ascii_digit();
            if text.iter().filter(digits).count() < if has_date { 2 } else { 1 } {
                return SECOND_DIGITS.into();
            }
            let fraction = text.iter().skip_while(|byte| **byte != b'.').skip(1);
            (fraction.take_while(digits).count() as u32).min(SECOND_DIGITS.into())
        }
        _ => SECOND_DIGITS.into(),
    }
}

pub(super) fn of_call(
    typing: &Typing<'_>,
    name: &str,
    arguments: &[Expression],
    ty: &SqlType,
) -> Display {
    let values: Vec<(&SqlType, Display)> =
        arguments.iter().map(|argument| display::shown_operand(typing, argument)).collect();
    match (name, values.as_slice()) {
        ("+" | "-" | "*" | "%", [left, right]) => of_arithmetic(name, left, right, ty),
        ("/", [left, right]) => of_quotient(typing.context, left, right, ty),
        ("DIV", [_, _]) => {
            let [left, right] = [0, 1].map(|at| of_divided(typing, &arguments[at]));
            of_whole_quotient(&left, &right, ty)
        }
        ("NEG", [one]) => of_negative(one, ty),
        (mean::SHOWN | "WHOLE", [(_, display)]) => *display,
        // Bytes count as characters, and characters as they are.
        ("DECODED", [(_, display)]) => {
            Display { length: display.length, ..Display::of_expression(ty) }
        }
        ("ABS", [one]) => {
            let shown = of_same(one, ty);
            // Bits are a signed number.
            let (written, of_written) = display::written(typing, &arguments[0]);
            let is_signed = written.kind.is_binary() && !of_written.unsigned;
            Display { unsigned: shown.unsigned && !is_signed, ..shown }
        }
        ("ROUND" | "TRUNCATE", [one, ..]) if is_exact(ty) => {
            let is_null = arguments.get(1).is_some_and(|one| text::is_constant_null(typing, one));
            let digits = match arguments.get(1) {
                Some(digits) if !is_null => text::constant_integer(typing, digits),
                _ => Some(0),
            };
            let shown = of_rounded(name, one, digits, ty);
            // To NULL digits: none is left.
            match is_null {
                true => {
                    let before = shown.precision(&ty.kind).saturating_sub(ty.kind.scale());
                    Display::exact(ty, before, 0)
                }
                false => shown,
            }
        }
        ("FLOOR" | "CEILING", [one]) if is_exact(ty) => Display::exact(ty, whole_digits(one), 0),
        ("UNIX_TIMESTAMP", _) if is_exact(ty) => {
            let scale = ty.kind.scale();
            Display::exact(ty, SECONDS_DIGITS + scale, scale)
        }
        ("ANY_VALUE", [_]) => {
            display::of_aggregate(typing, AggregateFunction::AnyValue, arguments, ty)
        }
        ("GREATEST" | "LEAST", _) => of_extreme(typing, arguments, ty),
        ("CURTIME" | "UTC_TIME", _) => {
            // Without a sign, and with two digits for hours.
            let of_type = Display::of_expression(ty);
            Display { length: of_type.length.saturating_sub(2), ..of_type }
        }
        ("PI", _) => Display { length: 8, decimals: 6, ..Display::of_expression(ty) },
        ("EXTRACT", _) => {
            let unit = match arguments.first().map(|unit| &unit.kind) {
                Some(ExpressionKind::Literal(unit)) => {
                    unit.as_bytes().and_then(|unit| std::str::from_utf8(unit).ok())
                }
                _ => None,
            };
            let unit = unit.unwrap_or_default().to_ascii_uppercase();
            let length = chars_of(EXTRACTED_CHARS, &unit);
            length.map_or_else(|| Display::of_expression(ty), |chars| Display::integer(ty, chars))
        }
        ("JSON_PRETTY", _) => {
            let of_type = Display::of_expression(ty);
            Display { length: of_type.length.min(LONGEST_MADE_CHARS), ..of_type }
        }
        ("CONCAT" | "||", _) if ty.kind.is_string() => made(of_concatenation(&values, 0, ty), ty),
        ("CONCAT_WS", [separator, texts @ ..]) => {
            let times = texts.len().saturating_sub(1) as u32;
            let separators = match (&separator.0.kind, separator.1.decimals) {
                (TypeKind::Double, NOT_FIXED_DECIMALS) => LONGEST_DOUBLE_CHARS,
                _ => text::length_in(separator, ty),
            };
            let separators = separators.saturating_mul(times);
            made(of_concatenation(texts, separators, ty), ty)
        }
        (
            "COMPRESS" | "UNCOMPRESS" | "INSERT" | "QUOTE" | "FROM_BASE64" | "TO_BASE64"
            | "REPLACE" | "EXPORT_SET",
            _,
        ) => {
            let of_type = Display::of_expression(ty);
            let texts = if name.ends_with("BASE64") { values } else { as_texts(&values) };
            let length = text::length(typing, name, arguments, &texts, ty);
            made(Display { length: length.unwrap_or(of_type.length), ..of_type }, ty)
        }
        ("SPACE", _) if text::is_null_or_negative(typing, &arguments[0]) => Display {
            length: 0,
            type_code: Some(type_code::VAR_STRING),
            ..Display::of_expression(ty)
        },
        ("REPEAT" | "SPACE" | "LPAD" | "RPAD", _) => {
            let of_type = Display::of_expression(ty);
            let texts = values.first().map(|(of, shown)| shown.as_text_of(of).length);
            let chars = text::repeated(typing, name, texts.unwrap_or(1), arguments, ty);
            Display { length: chars.unwrap_or_else(|| longest_padded(&values, ty)), ..of_type }
        }
        ("REGEXP_REPLACE", _) => Display { length: longest_made(ty), ..Display::of_expression(ty) },
        ("<<" | ">>" | "~" | "&" | "|" | "^", [one, others @ ..]) if ty.kind.is_binary() => {
            let of_pair = others.iter().filter(|_| matches!(name, "&" | "|" | "^"));
            let length = of_pair.map(|other| other.1.length).fold(one.1.length, u32::max);
            Display { length, ..Display::of_expression(ty) }
        }
        _ if ty.kind.is_string() => {
            let of_type = Display::of_expression(ty);
            let texts = if name == "UNHEX" { values } else { as_texts(&values) };
            let length = text::length(typing, name, arguments, &texts, ty);
            Display { length: length.unwrap_or(of_type.length), ..of_type }
        }
        // Two digits and a sign, though the text has two characters.
        ("INTERVAL", _) => Display { operand_length: Some(3), ..Display::integer(ty, 2) },
        _ if matches!(ty.kind, TypeKind::Integer { .. }) => {
            Display::integer(ty, chars_of(INTEGER_CHARS, name).unwrap_or(21))
        }
        _ => Display::of_expression(ty),
    }
}

/// Operands as the texts that they become.
fn as_texts<'e>(values: &[(&'e SqlType, Display)]) -> Vec<(&'e SqlType, Display)> {
    values.iter().map(|(of, shown)| (*of, shown.as_text_of(of))).collect()
}

fn of_quotient(
    context: &PlanContext<'_>,
    (left, of_left): &(&SqlType, Display),
    (_, of_right): &(&SqlType, Display),
    ty: &SqlType,
) -> Display {
    let more = context.evaluation.div_precision_increment;
    if !is_exact(ty) {
        let decimals = of_left.decimals.max(of_right.decimals);
        if decimals.saturating_add(more) >= NOT_FIXED_DECIMALS {
            return Display::of_expression(ty);
        }
        let fixed = fixed_double(ty, decimals + more);
        let before = of_left.length.saturating_sub(of_left.decimals.into());
        let length = fixed.length.min(before + u32::from(fixed.decimals));
        return Display { length, ..fixed };
    }
    let precision = of_left.precision(&left.kind);
    let precision = precision.saturating_add(of_right.decimals).saturating_add(more).min(65);
    let scale = ty.kind.scale();
    let exact = Display::exact(ty, precision.max(scale), scale);
    match of_left.unsigned && of_right.unsigned {
        true => Display { length: exact.length - 1, unsigned: true, ..exact },
        false => exact,
    }
}

/// A text put together from others has at most this many bytes.
fn made(display: Display, ty: &SqlType) -> Display {
    Display { length: display.length.min(longest_made(ty)), ..display }
}

/// The longest text that MySQL reports where it counts bytes.
pub(super) fn longest_made(ty: &SqlType) -> u32 {
    let character_bytes = ty.charset().map_or(1, |charset| charset.max_character_bytes());
    LONGEST_MADE_CHARS / character_bytes
}

/// The longest text that is filled up: MySQL counts the characters that its first argument's
/// character set could have, with the bytes of the result's.
fn longest_padded(values: &[(&SqlType, Display)], ty: &SqlType) -> u32 {
    let bytes = |ty: &SqlType| ty.charset().map_or(1, |charset| charset.max_character_bytes());
    match values {
        [(first, _), _, ..] if first.kind.is_text() && bytes(first) < bytes(ty) => {
            LONGEST_MADE_CHARS / bytes(ty) * bytes(first)
        }
        _ => LONGEST_MADE_CHARS,
    }
}

fn is_exact(ty: &SqlType) -> bool {
    matches!(ty.kind, TypeKind::Decimal { .. })
}

/// The digits that MySQL counts before the point of an exact number: one for the point too.
pub(super) fn whole_digits((of, display): &(&SqlType, Display)) -> u8 {
    let before = display.precision(&of.kind).saturating_sub(display.decimals);
    before + u8::from(display.decimals > 0)
}

/// A number with fewer digits after the point: rounding may add one digit before the point.
fn of_rounded(
    name: &str,
    (of, display): &(&SqlType, Display),
    wanted: Option<i64>,
    ty: &SqlType,
) -> Display {
    let (scale, kept) = (display.decimals, ty.kind.scale());
    let carries =
        name == "ROUND" && wanted.is_some_and(|wanted| wanted <= 0 || wanted < i64::from(scale));
    let before = display.precision(&of.kind).saturating_sub(scale);
    Display::exact(ty, (before + u8::from(carries) + kept).min(65), kept)
}

fn chars_of(table: &[(u32, &[&str])], name: &str) -> Option<u32> {
    table.iter().find(|(_, names)| names.contains(&name)).map(|(chars, _)| *chars)
}

fn of_arithmetic(
    name: &str,
    (left, of_left): &(&SqlType, Display),
    (right, of_right): &(&SqlType, Display),
    ty: &SqlType,
) -> Display {
    if ty.kind == TypeKind::Double {
        let unsigned = name == "%" && of_left.unsigned;
        return Display { unsigned, ..of_doubles([(*left, of_left), (*right, of_right)], ty) };
    }
    let (p, s) = (of_left.precision(&left.kind), digits_after(left, of_left));
    let (q, t) = (of_right.precision(&right.kind), digits_after(right, of_right));
    let (precision, scale) = match name {
        "*" => (p.saturating_add(q), s.saturating_add(t)),
        "%" => (p.max(q), s.max(t)),
        _ => {
            let before = p.saturating_sub(s).max(q.saturating_sub(t));
            (before.saturating_add(s.max(t)).saturating_add(1), s.max(t))
        }
    };
    match &ty.kind {
        TypeKind::Decimal { scale, .. } => {
            let most = match name {
                // More digits than there may be.
                "+" | "-" => u8::MAX,
                _ if *scale > MAX_SCALE => u8::MAX,
                _ => MAX_PRECISION,
            };
            let exact = Display::exact(ty, precision.min(most), *scale);
            let unsigned = if name == "%" { of_left.unsigned } else { exact.unsigned };
            // Under NO_UNSIGNED_SUBTRACTION, there is no room for the sign that a difference has.
            let has_no_room = name == "-" && of_left.unsigned && of_right.unsigned && !unsigned;
            Display { unsigned, length: exact.length - u32::from(has_no_room), ..exact }
        }
        // A remainder has room for a sign, whether it has one or not.
        _ if name == "%" => Display::integer(ty, u32::from(precision.max(scale)) + 1),
        _ => {
            let sign = u32::from(!ty.kind.is_unsigned());
            Display::integer(ty, u32::from(precision.min(MAX_PRECISION)) + sign)
        }
    }
}

/// MySQL sizes an integer quotient for division by the smallest number that the divisor's digits
/// allow.
fn of_whole_quotient(
    (left, of_left): &(&SqlType, Display),
    (right, of_right): &(&SqlType, Display),
    ty: &SqlType,
) -> Display {
    let is_double = left.kind == TypeKind::Double && of_left.decimals == NOT_FIXED_DECIMALS;
    let digits = match left.kind.is_numeric() || left.kind.is_temporal() {
        true if is_double => Display::of_expression(left).length,
        true if left.kind == TypeKind::Double => LONGEST_DOUBLE_CHARS,
        true if left.kind == TypeKind::Float => of_left.length,
        true => u32::from(of_left.precision(&left.kind)),
        false => of_left.length,
    };
    let before_point = digits.saturating_sub(u32::from(digits_after(left, of_left)));
    // All characters of a text or a double could be after the point.
    let more = match right.kind.is_numeric() || right.kind.is_temporal() {
        _ if right.kind == TypeKind::Null => 0,
        true if of_right.decimals != NOT_FIXED_DECIMALS => of_right.decimals.into(),
        _ => of_right.as_text_of(right).length,
    };
    let digits = before_point.saturating_add(more).min(LONGEST_QUOTIENT_DIGITS);
    Display::integer(ty, (digits + u32::from(!ty.kind.is_unsigned())).max(1))
}

fn digits_after(ty: &SqlType, display: &Display) -> u8 {
    match ty.kind.is_temporal() {
        true => ty.kind.fsp(),
        false if display.decimals == NOT_FIXED_DECIMALS && !is_exact(ty) => 0,
        false => display.decimals,
    }
}

/// Doubles keep the digits of their operands if both have fixed ones.
fn of_doubles(sides: [(&SqlType, &Display); 2], ty: &SqlType) -> Display {
    let decimals = sides.map(|(of, display)| match of.kind.is_numeric() || of.kind.is_temporal() {
        true => display.decimals,
        false if of.kind == TypeKind::Null && !display.stored => 0,
        false => NOT_FIXED_DECIMALS,
    });
    match decimals[0].max(decimals[1]) {
        NOT_FIXED_DECIMALS.. => Display::of_expression(ty),
        most => {
            let before = |at: usize| sides[at].1.length.saturating_sub(decimals[at].into());
            let length = before(0).max(before(1)) + u32::from(most);
            Display { length, decimals: most, ..Display::of_expression(ty) }
        }
    }
}

fn of_negative((of, display): &(&SqlType, Display), ty: &SqlType) -> Display {
    match &ty.kind {
        TypeKind::Integer { .. } if of.kind.is_numeric() => {
            let has_no_sign = display.unsigned || display.length == display::TRUTH_CHARS;
            Display::integer(ty, display.length + u32::from(has_no_sign))
        }
        TypeKind::Decimal { .. } => {
            Display::exact(ty, display.precision(&of.kind), ty.kind.scale())
        }
        TypeKind::Double if of.kind.is_temporal() => fixed_double(ty, of.kind.fsp()),
        TypeKind::Double if display.decimals != NOT_FIXED_DECIMALS => {
            fixed_double(ty, display.decimals)
        }
        _ => Display::of_expression(ty),
    }
}

/// An operand of `DIV`: an exact number with the digits to which it was cast.
fn of_divided<'e>(typing: &'e Typing<'_>, argument: &'e Expression) -> (&'e SqlType, Display) {
    let ty = &argument.ty;
    if let Some(double) = written_double(argument) {
        return (&double.ty, Display::of_expression(&double.ty));
    }
    if let ExpressionKind::Slot(slot) = argument.kind
        && let Some(column) = typing.frame.table_column(slot)
        && column.ty.kind == TypeKind::Float
    {
        return (&column.ty, display::display(typing, argument));
    }
    let is_cast = matches!(argument.kind, ExpressionKind::Cast(_) | ExpressionKind::Literal(_));
    match ty.kind {
        _ if !is_cast || ty.coercibility != Coercibility::Implicit => {
            display::written(typing, argument)
        }
        TypeKind::Decimal { .. } => (ty, display::display(typing, argument)),
        TypeKind::Integer { .. } => (ty, Display::of_expression(ty)),
        _ => display::written(typing, argument),
    }
}

/// A written cast to a double, whatever it was cast to afterwards.
fn written_double(argument: &Expression) -> Option<&Expression> {
    let is_double = matches!(argument.ty.kind, TypeKind::Float | TypeKind::Double);
    match &argument.kind {
        ExpressionKind::Cast(_) if is_double && is_written_cast(argument) => Some(argument),
        ExpressionKind::Cast(inner) => written_double(inner),
        // A cast of a constant.
        ExpressionKind::Literal(_) => {
            (is_double && argument.ty.coercibility == Coercibility::Implicit).then_some(argument)
        }
        _ => None,
    }
}

fn of_same((of, display): &(&SqlType, Display), ty: &SqlType) -> Display {
    match &ty.kind {
        TypeKind::Integer { .. } if of.kind.is_numeric() => Display::integer(ty, display.length),
        TypeKind::Decimal { .. } => {
            Display::exact(ty, display.precision(&of.kind), ty.kind.scale())
        }
        TypeKind::Double if of.kind.is_temporal() => fixed_double(ty, of.kind.fsp()),
        TypeKind::Double if display.decimals != NOT_FIXED_DECIMALS => {
            Display { unsigned: display.unsigned, ..fixed_double(ty, display.decimals) }
        }
        TypeKind::Double if of.kind == TypeKind::Double => {
            Display { unsigned: display.unsigned, ..Display::of_expression(ty) }
        }
        _ => Display::of_expression(ty),
    }
}

/// Concatenated texts.
fn of_concatenation(values: &[(&SqlType, Display)], more: u32, ty: &SqlType) -> Display {
    let lengths = values.iter().map(|(of, display)| match &of.kind {
        // The width of a column of doubles.
        TypeKind::Float | TypeKind::Double => display.as_text_of(of).length,
        // Bytes beside characters count as many as those characters may have.
        _ if ty.kind.is_binary() => {
            let bytes = of.charset().map_or(1, |charset| charset.max_character_bytes());
            display.length.saturating_mul(bytes)
        }
        _ => display.length,
    });
    let length = lengths.fold(more, u32::saturating_add);
    Display { length, ..Display::of_expression(ty) }
}
