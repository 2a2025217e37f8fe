//! Function calls, including those with their own grammar, and the types of `CAST`.

use firn_sql_types::error::{Result, SqlError};

use super::super::ast::{
    Arguments, CastType, Digits, Expr, Function, Interval, NullTreatment, SearchMode, TrimSide,
    Window, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec,
};
use super::super::keywords;
use super::super::lexer::Kind;
use super::super::node_builders::{function, text};
use super::{Parser, expression, query};

/// Whether the word here may be a function's name.
pub(super) fn is_function(parser: &Parser<'_>) -> bool {
    let word = parser.text_of(parser.token(0));
    !keywords::is_reserved(word) || keywords::is_reserved_function(word) || parser.is("CONVERT")
}

/// A word and the contents of its parentheses.
#[inline(never)]
pub(super) fn function_call(parser: &mut Parser<'_>) -> Result<Expr> {
    let name = parser.upper();
    let written = parser.name_of_current();
    match name.as_str() {
        "CAST" => parser.parens(cast_arguments),
        "CONVERT" => parser.parens(convert_arguments),
        "EXTRACT" => parser.parens(extract_arguments),
        "TRIM" => parser.parens(trim_arguments),
        "SUBSTRING" | "SUBSTR" | "MID" => {
            parser.parens(|parser| substring_arguments(parser, &written))
        }
        "POSITION" => parser.parens(position_arguments),
        "DATE_ADD" | "ADDDATE" | "DATE_SUB" | "SUBDATE" => {
            parser.parens(|parser| date_arguments(parser, &name))
        }
        "TIMESTAMPADD" => parser.parens(timestamp_add_arguments),
        "TIMESTAMPDIFF" => parser.parens(|parser| timestamp_difference_arguments(parser, &written)),
        "GET_FORMAT" => parser.parens(|parser| get_format_arguments(parser, &written)),
        "CHAR" => parser.parens(|parser| char_arguments(parser, &written)),
        "WEIGHT_STRING" => parser.parens(|parser| weight_string_arguments(parser, &written)),
        _ => arguments_of(parser, None, written),
    }
}

/// `CURRENT_TIMESTAMP` and others that need no parentheses.
pub(super) fn bare_function(parser: &mut Parser<'_>) -> Result<Expr> {
    let name = parser.name_of_current();
    Ok(function(&name, Vec::new()))
}

/// `(…)` after a function's name, and what may follow.
#[inline(never)]
pub(super) fn arguments_of(
    parser: &mut Parser<'_>,
    schema: Option<String>,
    name: String,
) -> Result<Expr> {
    let mut function = parser.parens(|parser| argument_list(parser, schema, name))?;
    parser.accept_all(&["FROM", "FIRST"]);
    function.null_treatment = null_treatment(parser)?;
    if parser.accept("OVER") {
        function.over = Some(Box::new(match parser.kind() {
            Kind::LeftParen => Window::Spec(window_specification(parser)?),
            _ => Window::Named(parser.ident()?),
        }));
    }
    Ok(Expr::Function(function))
}

fn null_treatment(parser: &mut Parser<'_>) -> Result<Option<NullTreatment>> {
    if parser.accept_all(&["RESPECT", "NULLS"]) {
        Ok(Some(NullTreatment::RespectNulls))
    } else if parser.accept_all(&["IGNORE", "NULLS"]) {
        Ok(Some(NullTreatment::IgnoreNulls))
    } else {
        Ok(None)
    }
}

fn argument_list(
    parser: &mut Parser<'_>,
    schema: Option<String>,
    name: String,
) -> Result<Function> {
    let distinct = parser.accept_any(&["DISTINCT", "ALL"]) == Some("DISTINCT");
    let arguments = if parser.kind() == Kind::Star && parser.kind_at(1) == Kind::RightParen {
        parser.at += 1;
        Arguments::Wildcard
    } else if parser.kind() != Kind::RightParen {
        Arguments::List(parser.list(expression::expression)?)
    } else {
        Arguments::List(Vec::new())
    };
    let mut function = Function { schema, distinct, ..Function::plain(name, arguments) };
    argument_clauses(parser, &mut function)?;
    Ok(function)
}

#[inline(never)]
fn argument_clauses(parser: &mut Parser<'_>, function: &mut Function) -> Result<()> {
    if parser.is("ORDER") {
        function.order_by = query::order_by(parser)?;
    }
    if parser.accept("SEPARATOR") {
        function.separator = Some(parser.string()?);
    }
    if parser.accept("RETURNING") {
        function.returning = Some(cast_type(parser)?.0);
    }
    parser.accept_all(&["NULL", "ON", "EMPTY"]);
    parser.accept_all(&["NULL", "ON", "ERROR"]);
    Ok(())
}

#[inline(never)]
fn cast_arguments(parser: &mut Parser<'_>) -> Result<Expr> {
    let mut expr = expression::expression(parser)?;
    if parser.accept_all(&["AT", "TIME", "ZONE"]) {
        parser.accept("INTERVAL");
        expr = Expr::AtTimeZone { expr: Box::new(expr), zone: parser.string()? };
    }
    parser.expect("AS")?;
    let (to, charset) = cast_type(parser)?;
    let array = parser.accept("ARRAY");
    Ok(Expr::Cast { is_binary_prefix: false, expr: Box::new(expr), to, charset, array })
}

#[inline(never)]
fn convert_arguments(parser: &mut Parser<'_>) -> Result<Expr> {
    let expr = expression::expression(parser)?;
    if parser.accept("USING") {
        return converted_to_charset(parser, expr);
    }
    parser.need(Kind::Comma)?;
    let (to, charset) = cast_type(parser)?;
    Ok(cast(expr, to, charset))
}

fn converted_to_charset(parser: &mut Parser<'_>, expr: Expr) -> Result<Expr> {
    let charset = parser.word_or_text()?.to_ascii_lowercase();
    Ok(Expr::Convert { expr: Box::new(expr), charset })
}

/// A type of `CAST`, and the character set of its text.
#[inline(never)]
pub(super) fn cast_type(parser: &mut Parser<'_>) -> Result<(CastType, Option<String>)> {
    let word = parser.upper();
    if parser.kind() != Kind::Word {
        return parser.error();
    }
    parser.at += 1;
    let plain = |data_type| Ok((data_type, None));
    match word.as_str() {
        "SIGNED" | "UNSIGNED" => {
            let _ = parser.accept_any(&["INTEGER", "INT"]);
            plain(if word == "SIGNED" { CastType::Signed } else { CastType::Unsigned })
        }
        "BINARY" => plain(CastType::Binary(length(parser)?)),
        "CHAR" | "CHARACTER" | "NCHAR" => cast_text_type(parser, &word),
        "NATIONAL" => {
            parser.expect_any(&["CHAR", "CHARACTER"])?;
            cast_text_type(parser, "NCHAR")
        }
        "DATE" => plain(CastType::Date),
        "DATETIME" => plain(CastType::Datetime(length(parser)?)),
        "TIME" => plain(CastType::Time(length(parser)?)),
        "YEAR" => plain(CastType::Year),
        "POINT" | "LINESTRING" | "POLYGON" | "MULTIPOINT" | "MULTILINESTRING" | "MULTIPOLYGON"
        | "GEOMETRYCOLLECTION" => plain(CastType::Geometry(word)),
        "DECIMAL" | "DEC" => plain(CastType::Decimal(digits(parser)?)),
        "FLOAT" => plain(CastType::Float(digits(parser)?)),
        "DOUBLE" => {
            parser.accept("PRECISION");
            plain(CastType::Double)
        }
        "REAL" => plain(CastType::Double),
        "JSON" => plain(CastType::Json),
        _ => {
            parser.at -= 1;
            parser.error()
        }
    }
}

fn cast_text_type(parser: &mut Parser<'_>, word: &str) -> Result<(CastType, Option<String>)> {
    let length = length(parser)?;
    let national = word == "NCHAR";
    let mut charset = national.then(|| "utf8mb3".to_owned());
    if parser.charset_words() {
        charset = Some(parser.word_or_text()?.to_ascii_lowercase());
    } else if parser.accept("ASCII") {
        charset = Some("latin1".to_owned());
    } else if parser.accept("UNICODE") {
        charset = Some("ucs2".to_owned());
    } else if parser.accept("BYTE") {
        charset = Some("binary".to_owned());
    }
    parser.accept("BINARY");
    let data_type = match national {
        true => CastType::NationalChar(length),
        false => CastType::Char(length),
    };
    Ok((data_type, charset))
}

/// `(n)`, if present.
fn length(parser: &mut Parser<'_>) -> Result<Option<u64>> {
    if parser.kind() != Kind::LeftParen {
        return Ok(None);
    }
    parser.parens(Parser::integer).map(Some)
}

fn digits(parser: &mut Parser<'_>) -> Result<Digits> {
    if parser.kind() != Kind::LeftParen {
        return Ok(Digits::Default);
    }
    parser.parens(|parser| {
        let precision = parser.integer()?;
        match parser.take(Kind::Comma) {
            true => Ok(Digits::PrecisionAndScale(precision, parser.integer()?)),
            false => Ok(Digits::Precision(precision)),
        }
    })
}

#[inline(never)]
fn extract_arguments(parser: &mut Parser<'_>) -> Result<Expr> {
    let unit = expression::unit(parser)?;
    parser.expect("FROM")?;
    Ok(Expr::Extract { unit, expr: Box::new(expression::expression(parser)?) })
}

#[inline(never)]
fn trim_arguments(parser: &mut Parser<'_>) -> Result<Expr> {
    let side = parser.accept_any(&["BOTH", "LEADING", "TRAILING"]).map(|word| match word {
        "BOTH" => TrimSide::Both,
        "LEADING" => TrimSide::Leading,
        _ => TrimSide::Trailing,
    });
    let mut what = None;
    let mut from = side.is_some() && parser.accept("FROM");
    let mut expr = expression::expression(parser)?;
    if !from && parser.accept("FROM") {
        from = true;
        what = Some(Box::new(std::mem::replace(&mut expr, Expr::Tuple(Vec::new()))));
        expr = expression::expression(parser)?;
    }
    if side.is_some() && !from {
        return parser.error();
    }
    Ok(Expr::Trim { side, what, expr: Box::new(expr) })
}

/// Also `SUBSTRING(x FROM y FOR z)`, which has the same meaning as with commas.
#[inline(never)]
fn substring_arguments(parser: &mut Parser<'_>, name: &str) -> Result<Expr> {
    let mut arguments = vec![expression::expression(parser)?];
    if parser.accept("FROM") {
        arguments.push(expression::expression(parser)?);
        if parser.accept("FOR") {
            arguments.push(expression::expression(parser)?);
        }
    }
    while parser.take(Kind::Comma) {
        arguments.push(expression::expression(parser)?);
    }
    Ok(function(name, arguments))
}

/// `POSITION(a IN b)` is `LOCATE(a, b)`. The needle contains no `IN` outside parentheses.
#[inline(never)]
fn position_arguments(parser: &mut Parser<'_>) -> Result<Expr> {
    let needle = expression::bit_expression(parser)?;
    parser.expect("IN")?;
    Ok(function("locate", vec![needle, expression::expression(parser)?]))
}

/// A date and an interval, or a number of days.
#[inline(never)]
fn date_arguments(parser: &mut Parser<'_>, name: &str) -> Result<Expr> {
    let date = expression::expression(parser)?;
    parser.need(Kind::Comma)?;
    let is_days = matches!(name, "ADDDATE" | "SUBDATE") && !expression::is_interval(parser);
    let interval = if is_days {
        interval(expression::expression(parser)?, "DAY")
    } else {
        expression::interval(parser)?
    };
    let name = if name.contains("ADD") { "date_add" } else { "date_sub" };
    Ok(function(name, vec![date, interval]))
}

/// `TIMESTAMPADD(unit, n, x)` is `DATE_ADD(x, INTERVAL n unit)`.
#[inline(never)]
fn timestamp_add_arguments(parser: &mut Parser<'_>) -> Result<Expr> {
    let unit = expression::unit(parser)?;
    parser.need(Kind::Comma)?;
    let count = expression::expression(parser)?;
    parser.need(Kind::Comma)?;
    Ok(function("date_add", vec![expression::expression(parser)?, interval(count, unit)]))
}

#[inline(never)]
fn timestamp_difference_arguments(parser: &mut Parser<'_>, name: &str) -> Result<Expr> {
    let unit = Expr::Unit(expression::unit(parser)?);
    parser.need(Kind::Comma)?;
    let from = expression::expression(parser)?;
    parser.need(Kind::Comma)?;
    Ok(function(name, vec![unit, from, expression::expression(parser)?]))
}

#[inline(never)]
fn get_format_arguments(parser: &mut Parser<'_>, name: &str) -> Result<Expr> {
    let kind = match parser.kind() {
        // As it is rendered.
        Kind::Text => parser.string()?,
        _ => match parser.expect_any(&["DATE", "TIME", "DATETIME", "TIMESTAMP"])? {
            "TIMESTAMP" => "DATETIME".to_owned(),
            kind => kind.to_owned(),
        },
    };
    parser.need(Kind::Comma)?;
    Ok(function(name, vec![text(kind), expression::expression(parser)?]))
}

#[inline(never)]
fn char_arguments(parser: &mut Parser<'_>, name: &str) -> Result<Expr> {
    let codes = function(name, parser.list(expression::expression)?);
    if parser.accept("USING") { converted_to_charset(parser, codes) } else { Ok(codes) }
}

#[inline(never)]
fn weight_string_arguments(parser: &mut Parser<'_>, name: &str) -> Result<Expr> {
    let mut expr = expression::expression(parser)?;
    if parser.accept("AS") {
        let (to, charset) = cast_type(parser)?;
        expr = cast(expr, to, charset);
    }
    Ok(function(name, vec![expr]))
}

#[inline(never)]
pub(super) fn match_against(parser: &mut Parser<'_>) -> Result<Expr> {
    let columns = match parser.kind() {
        Kind::LeftParen => parser.parens_list(column_reference)?,
        _ => parser.list(column_reference)?,
    };
    parser.expect("AGAINST")?;
    parser.need(Kind::LeftParen)?;
    let Expr::Value(value) = parser.in_tree(expression::bit_expression)? else {
        return Err(SqlError::not_supported("AGAINST an expression"));
    };
    let mode = search_modifier(parser)?;
    parser.need(Kind::RightParen)?;
    Ok(Expr::MatchAgainst { columns, value, mode })
}

fn column_reference(parser: &mut Parser<'_>) -> Result<Vec<String>> {
    let mut parts = vec![parser.ident()?];
    while parser.take(Kind::Dot) {
        parts.push(parser.any_ident()?);
    }
    Ok(parts)
}

fn search_modifier(parser: &mut Parser<'_>) -> Result<Option<SearchMode>> {
    if parser.accept_all(&["IN", "NATURAL", "LANGUAGE", "MODE"]) {
        return Ok(Some(match parser.accept_all(&["WITH", "QUERY", "EXPANSION"]) {
            true => SearchMode::NaturalLanguageWithExpansion,
            false => SearchMode::NaturalLanguage,
        }));
    }
    if parser.accept_all(&["IN", "BOOLEAN", "MODE"]) {
        return Ok(Some(SearchMode::Boolean));
    }
    let expansion = parser.accept_all(&["WITH", "QUERY", "EXPANSION"]);
    Ok(expansion.then_some(SearchMode::WithExpansion))
}

/// `(… PARTITION BY … ORDER BY … ROWS …)`.
#[inline(never)]
pub(super) fn window_specification(parser: &mut Parser<'_>) -> Result<WindowSpec> {
    parser.parens(|parser| {
        let named = parser.is_ident_at(0) && !parser.are(&["PARTITION", "BY"]);
        let name = if named { Some(parser.ident()?) } else { None };
        let partition_by = match parser.accept_all(&["PARTITION", "BY"]) {
            true => parser.list(expression::expression)?,
            false => Vec::new(),
        };
        let order_by = if parser.is("ORDER") { query::order_by(parser)? } else { Vec::new() };
        let frame = window_frame(parser)?;
        Ok(WindowSpec { name, partition_by, order_by, frame })
    })
}

fn window_frame(parser: &mut Parser<'_>) -> Result<Option<WindowFrame>> {
    let units = match parser.accept_any(&["ROWS", "RANGE", "GROUPS"]) {
        Some("ROWS") => WindowFrameUnits::Rows,
        Some("RANGE") => WindowFrameUnits::Range,
        Some(_) => WindowFrameUnits::Groups,
        None => return Ok(None),
    };
    let between = parser.accept("BETWEEN");
    let start = window_bound(parser)?;
    let end = if between {
        parser.expect("AND")?;
        Some(window_bound(parser)?)
    } else {
        None
    };
    Ok(Some(WindowFrame { units, start, end }))
}

fn window_bound(parser: &mut Parser<'_>) -> Result<WindowFrameBound> {
    if parser.accept_all(&["CURRENT", "ROW"]) {
        return Ok(WindowFrameBound::CurrentRow);
    }
    let distance = if parser.accept("UNBOUNDED") {
        None
    } else if expression::is_interval(parser) {
        Some(Box::new(expression::interval(parser)?))
    } else {
        Some(Box::new(expression::bit_expression(parser)?))
    };
    Ok(match parser.expect_any(&["PRECEDING", "FOLLOWING"])? {
        "PRECEDING" => WindowFrameBound::Preceding(distance),
        _ => WindowFrameBound::Following(distance),
    })
}

fn interval(value: Expr, unit: &'static str) -> Expr {
    Expr::Interval(Interval { value: Box::new(value), unit })
}

/// `BINARY x`
pub(super) fn binary_prefix(expr: Expr) -> Expr {
    let to = CastType::Binary(None);
    let expr = Box::new(expr);
    Expr::Cast { is_binary_prefix: true, expr, to, charset: None, array: false }
}

fn cast(expr: Expr, to: CastType, charset: Option<String>) -> Expr {
    Expr::Cast { is_binary_prefix: false, expr: Box::new(expr), to, charset, array: false }
}
