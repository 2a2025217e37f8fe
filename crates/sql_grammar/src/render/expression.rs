//! Expressions as text.

use std::fmt::Write;

use super::super::ast::{
    Arguments, BinaryOperator, CastType, Digits, Expr, Function, NullTreatment, OrderByExpr, Query,
    SearchMode, SelectItem, SetExpr, TrimSide, TruthTest, TypedStringKind, UnaryOperator, Value,
    Window, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec,
};
use super::{name, query, quoted, separated};

pub(super) fn expression(expr: &Expr, out: &mut String) {
    match expr {
        Expr::Identifier(column) => name(column, out),
        Expr::CompoundIdentifier(parts) => path(parts, out),
        Expr::UserVariable(variable) => user_variable(variable, out),
        Expr::SystemVariable { scope, name } => system_variable(scope, name, out),
        Expr::Value(literal) => value(literal, out),
        Expr::Introduced { charset, value: literal } => {
            out.push_str(charset);
            out.push(' ');
            value(literal, out);
        }
        Expr::TypedString { kind, text } => {
            out.push_str(match kind {
                TypedStringKind::Date => "date",
                TypedStringKind::Time => "time",
                TypedStringKind::Timestamp => "timestamp",
            });
            quoted(text, out);
        }
        Expr::Unit(unit) => out.push_str(unit),
        Expr::UnaryOp { op, expr } => unary(*op, expr, out),
        Expr::BinaryOp { left, op, right } => binary(left, *op, right, out),
        Expr::Function(call) => function(call, out),
        Expr::Tuple(items) if items.len() == 1 => {
            out.push_str("row");
            list(items, out);
        }
        Expr::Tuple(items) => list(items, out),
        Expr::Subquery(inner) => subquery(inner, out),
        Expr::Exists(inner) => {
            out.push_str("exists");
            subquery(inner, out);
        }
        Expr::Interval(interval) => {
            out.push_str("interval ");
            expression(&interval.value, out);
            out.push(' ');
            out.push_str(&interval.unit.to_ascii_lowercase());
        }
        Expr::Collate { expr, collation } => {
            out.push('(');
            expression(expr, out);
            out.push_str(" collate ");
            name(collation, out);
            out.push(')');
        }
        Expr::Case { operand, branches, otherwise } => {
            out.push_str("(case");
            if let Some(operand) = operand {
                out.push(' ');
                expression(operand, out);
            }
            for when in branches {
                out.push_str(" when ");
                expression(&when.condition, out);
                out.push_str(" then ");
                expression(&when.result, out);
            }
            if let Some(result) = otherwise {
                out.push_str(" else ");
                expression(result, out);
            }
            out.push_str(" end)");
        }
        other => predicate(other, out),
    }
}

/// Predicates: forms between or after operands that are not plain operators.
fn predicate(expr: &Expr, out: &mut String) {
    let not = |negated: &bool| if *negated { "not " } else { "" };
    match expr {
        Expr::Is { expr, test, negated } => {
            out.push('(');
            expression(expr, out);
            let word = match test {
                TruthTest::Null => "null",
                TruthTest::True => "true",
                TruthTest::False => "false",
                TruthTest::Unknown => "unknown",
            };
            let _ = write!(out, " is {}{word})", not(negated));
        }
        Expr::Like { negated, expr, pattern, escape } => {
            opened(expr, not(negated), "like ", pattern, out);
            if let Some(escape) = escape {
                out.push_str(" escape ");
                value(escape, out);
            }
            out.push(')');
        }
        Expr::Regexp { negated, expr, pattern } => {
            opened(expr, not(negated), "regexp ", pattern, out);
            out.push(')');
        }
        Expr::Between { expr, negated, low, high } => {
            opened(expr, not(negated), "between ", low, out);
            out.push_str(" and ");
            expression(high, out);
            out.push(')');
        }
        Expr::InList { expr, list: items, negated } => {
            out.push('(');
            expression(expr, out);
            let _ = write!(out, " {}in ", not(negated));
            list(items, out);
            out.push(')');
        }
        Expr::InSubquery { expr, subquery: inner, negated } => {
            out.push('(');
            expression(expr, out);
            let _ = write!(out, " {}in ", not(negated));
            subquery(inner, out);
            out.push(')');
        }
        Expr::MemberOf { value, array } => {
            out.push('(');
            expression(value, out);
            out.push_str(" member of (");
            expression(array, out);
            out.push_str("))");
        }
        Expr::Quantified { left, op, all, subquery: inner } => {
            out.push('(');
            expression(left, out);
            let _ = write!(out, " {} {} ", op.text(), if *all { "all" } else { "any" });
            subquery(inner, out);
            out.push(')');
        }
        other => special_function(other, out),
    }
}

/// Functions with their own grammar.
fn special_function(expr: &Expr, out: &mut String) {
    match expr {
        Expr::Cast { expr, to, charset, array, .. } => {
            out.push_str("cast(");
            expression(expr, out);
            out.push_str(" as ");
            cast_type(to, out);
            if let Some(charset) = charset {
                out.push_str(" character set ");
                name(charset, out);
            }
            out.push_str(if *array { " array)" } else { ")" });
        }
        Expr::Convert { expr, charset } => {
            out.push_str("convert(");
            expression(expr, out);
            out.push_str(" using ");
            name(charset, out);
            out.push(')');
        }
        Expr::AtTimeZone { expr, zone } => {
            expression(expr, out);
            out.push_str(" at time zone ");
            quoted(zone, out);
        }
        Expr::Extract { unit, expr } => {
            let _ = write!(out, "extract({} from ", unit.to_ascii_lowercase());
            expression(expr, out);
            out.push(')');
        }
        Expr::Trim { side, what, expr } => {
            out.push_str("trim(");
            out.push_str(match side {
                Some(TrimSide::Both) => "both ",
                Some(TrimSide::Leading) => "leading ",
                Some(TrimSide::Trailing) => "trailing ",
                None => "",
            });
            if let Some(what) = what {
                expression(what, out);
                out.push(' ');
            }
            if side.is_some() || what.is_some() {
                out.push_str("from ");
            }
            expression(expr, out);
            out.push(')');
        }
        Expr::MatchAgainst { columns, value: searched, mode } => {
            out.push_str("match (");
            separated(columns, ",", out, |parts, out| path(parts, out));
            out.push_str(") against (");
            value(searched, out);
            out.push_str(match mode {
                Some(SearchMode::NaturalLanguage) => " in natural language mode",
                Some(SearchMode::NaturalLanguageWithExpansion) => {
                    " in natural language mode with query expansion"
                }
                Some(SearchMode::Boolean) => " in boolean mode",
                Some(SearchMode::WithExpansion) => " with query expansion",
                None => "",
            });
            out.push(')');
        }
        _ => {}
    }
}

fn path(parts: &[String], out: &mut String) {
    separated(parts, ".", out, |part, out| name(part, out));
}

fn user_variable(variable: &str, out: &mut String) {
    out.push('@');
    // A name between backticks cannot contain it, a quoted one can.
    let is_quoted = variable.contains('\0');
    if is_quoted { quoted(variable, out) } else { name(variable, out) }
}

fn system_variable(scope: &str, variable: &str, out: &mut String) {
    out.push_str("@@");
    if !scope.is_empty() {
        out.push_str(scope);
        out.push('.');
    }
    separated(&variable.split('.').collect::<Vec<_>>(), ".", out, |part, out| name(part, out));
}

pub(super) fn value(literal: &Value, out: &mut String) {
    match literal {
        Value::Number(number) => out.push_str(number),
        Value::Text(text) => quoted(text, out),
        Value::Hexadecimal(digits) => {
            let _ = write!(out, "x'{digits}'");
        }
        Value::Bits(digits) => {
            let _ = write!(out, "b'{digits}'");
        }
        Value::Boolean(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Null => out.push_str("null"),
        Value::Parameter(_) | Value::LongText(_) => out.push('?'),
    }
}

fn unary(op: UnaryOperator, inner: &Expr, out: &mut String) {
    out.push_str(match op {
        UnaryOperator::Not => "(not ",
        UnaryOperator::BangNot => "(!",
        UnaryOperator::Minus => "(-",
        UnaryOperator::Plus => "(+",
        UnaryOperator::BitwiseNot => "(~",
    });
    // `--1` would begin a comment if a blank followed it.
    if matches!(op, UnaryOperator::Minus) && !matches!(inner, Expr::Value(_)) {
        out.push('(');
        expression(inner, out);
        out.push(')');
    } else {
        expression(inner, out);
    }
    out.push(')');
}

fn binary(left: &Expr, op: BinaryOperator, right: &Expr, out: &mut String) {
    if matches!(op, BinaryOperator::Arrow | BinaryOperator::LongArrow) {
        expression(left, out);
        out.push_str(op.text());
        return expression(right, out);
    }
    out.push('(');
    expression(left, out);
    let _ = write!(out, " {} ", op.text());
    expression(right, out);
    out.push(')');
}

/// `(left [not ]word right`, without the closing part.
fn opened(left: &Expr, not: &str, word: &str, right: &Expr, out: &mut String) {
    out.push('(');
    expression(left, out);
    let _ = write!(out, " {not}{word}");
    expression(right, out);
}

fn list(items: &[Expr], out: &mut String) {
    out.push('(');
    separated(items, ",", out, expression);
    out.push(')');
}

/// No name refers to the items of a subquery that is a value: those without an alias get none,
/// because their text may be longer than a name can be.
fn subquery(inner: &Query, out: &mut String) {
    out.push('(');
    match inner.order_by.is_empty() {
        true => {
            let mut inner = inner.clone();
            without_own_names(&mut inner.body);
            query::query(&inner, out);
        }
        false => query::query(inner, out),
    }
    out.push(')');
}

fn without_own_names(body: &mut SetExpr) {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            without_own_names(left);
            without_own_names(right);
        }
        SetExpr::Select(select) if select.having.is_none() => {
            for item in &mut select.projection {
                if let SelectItem::NamedAfterText { expr, .. } = item {
                    *item = SelectItem::Unnamed(expr.clone());
                }
            }
        }
        _ => {}
    }
}

fn function(call: &Function, out: &mut String) {
    function_name(call, out);
    out.push_str(if call.distinct { "(distinct " } else { "(" });
    match &call.arguments {
        Arguments::Wildcard => out.push('*'),
        Arguments::List(arguments) => separated(arguments, ",", out, expression),
    }
    argument_clauses(call, out);
    out.push(')');
    match call.null_treatment {
        Some(NullTreatment::RespectNulls) => out.push_str(" respect nulls"),
        Some(NullTreatment::IgnoreNulls) => out.push_str(" ignore nulls"),
        None => {}
    }
    match call.over.as_deref() {
        Some(Window::Spec(spec)) => {
            out.push_str(" over ");
            window(spec, out);
        }
        Some(Window::Named(window)) => {
            out.push_str(" over ");
            name(window, out);
        }
        None => {}
    }
}

/// A function's own name is written without quotes, which would make it another function's, unless
/// it could not be parsed so.
fn function_name(function: &Function, out: &mut String) {
    match &function.schema {
        None if is_plain(&function.name) => out.push_str(&function.name),
        None => name(&function.name, out),
        Some(schema) => {
            name(schema, out);
            out.push('.');
            name(&function.name, out);
        }
    }
}

fn is_plain(word: &str) -> bool {
    let bytes = word.as_bytes();
    !bytes.is_empty()
        && !bytes[0].is_ascii_digit()
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        && (!super::super::keywords::is_reserved(word)
            || super::super::keywords::is_reserved_function(word))
}

fn argument_clauses(call: &Function, out: &mut String) {
    if !call.order_by.is_empty() {
        out.push_str(" order by ");
        separated(&call.order_by, ",", out, ordered);
    }
    if let Some(separator) = &call.separator {
        out.push_str(" separator ");
        quoted(separator, out);
    }
    if let Some(returning) = &call.returning {
        out.push_str(" returning ");
        cast_type(returning, out);
    }
}

pub(super) fn ordered(item: &OrderByExpr, out: &mut String) {
    expression(&item.expr, out);
    match item.ascending {
        Some(true) => out.push_str(" asc"),
        Some(false) => out.push_str(" desc"),
        None => {}
    }
}

pub(super) fn window(spec: &WindowSpec, out: &mut String) {
    out.push('(');
    if let Some(window) = &spec.name {
        name(window, out);
        out.push(' ');
    }
    if !spec.partition_by.is_empty() {
        out.push_str("partition by ");
        separated(&spec.partition_by, ",", out, expression);
        out.push(' ');
    }
    if !spec.order_by.is_empty() {
        out.push_str("order by ");
        separated(&spec.order_by, ",", out, ordered);
        out.push(' ');
    }
    if let Some(frame) = &spec.frame {
        window_frame(frame, out);
    }
    out.push(')');
}

fn window_frame(frame: &WindowFrame, out: &mut String) {
    out.push_str(match frame.units {
        WindowFrameUnits::Rows => "rows",
        WindowFrameUnits::Range => "range",
        WindowFrameUnits::Groups => "groups",
    });
    match &frame.end {
        Some(end) => {
            out.push_str(" between ");
            window_bound(&frame.start, out);
            out.push_str(" and ");
            window_bound(end, out);
        }
        None => {
            out.push(' ');
            window_bound(&frame.start, out);
        }
    }
}

fn window_bound(bound: &WindowFrameBound, out: &mut String) {
    let (distance, word) = match bound {
        WindowFrameBound::CurrentRow => return out.push_str("current row"),
        WindowFrameBound::Preceding(distance) => (distance, " preceding"),
        WindowFrameBound::Following(distance) => (distance, " following"),
    };
    match distance {
        Some(distance) => expression(distance, out),
        None => out.push_str("unbounded"),
    }
    out.push_str(word);
}

/// A type of `CAST`.
fn cast_type(kind: &CastType, out: &mut String) {
    let digits = |digits: &Digits| match digits {
        Digits::Default => String::new(),
        Digits::Precision(precision) => format!("({precision})"),
        Digits::PrecisionAndScale(precision, scale) => format!("({precision},{scale})"),
    };
    let length = |length: &Option<u64>| length.map_or(String::new(), |n| format!("({n})"));
    let _ = match kind {
        CastType::Signed => write!(out, "signed"),
        CastType::Unsigned => write!(out, "unsigned"),
        CastType::Binary(n) => write!(out, "binary{}", length(n)),
        CastType::Char(n) | CastType::NationalChar(n) => write!(out, "char{}", length(n)),
        CastType::Decimal(written) => write!(out, "decimal{}", digits(written)),
        CastType::Float(written) => write!(out, "float{}", digits(written)),
        CastType::Double => write!(out, "double"),
        CastType::Date => write!(out, "date"),
        CastType::Time(n) => write!(out, "time{}", length(n)),
        CastType::Datetime(n) => write!(out, "datetime{}", length(n)),
        CastType::Year => write!(out, "YEAR"),
        CastType::Json => write!(out, "json"),
        CastType::Geometry(word) => write!(out, "{word}"),
    };
}
