//! Expressions as text.

use super::super::build::{OWN_MARK, VARIABLE_MARK};
use super::{name, query, quoted, separated};
use sqlparser::ast::{
    BinaryOperator, CharacterLength, DataType, DateTimeField, DuplicateTreatment, ExactNumberInfo,
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, Ident,
    NullTreatment, ObjectName, OrderByExpr, SearchModifier, SelectItem, SetExpr, TrimWhereField,
    UnaryOperator, Value, WindowFrame, WindowFrameBound, WindowSpec, WindowType,
};
use std::fmt::Write;

pub(super) fn expression(expr: &Expr, out: &mut String) {
    match expr {
        Expr::Identifier(ident) => identifier(ident, out),
        Expr::CompoundIdentifier(parts) => compound(parts, out),
        Expr::Value(literal) => value(&literal.value, out),
        Expr::Prefixed { prefix, value } => {
            out.push_str(&prefix.value);
            out.push(' ');
            expression(value, out);
        }
        Expr::TypedString(typed) => {
            let word = match typed.data_type {
                DataType::Date => "date",
                DataType::Time(..) => "time",
                _ => "timestamp",
            };
            out.push_str(word);
            value(&typed.value.value, out);
        }
        Expr::UnaryOp { op, expr } => unary(op, expr, out),
        Expr::BinaryOp { left, op, right } => binary(left, op, right, out),
        Expr::Function(call) => function(call, out),
        Expr::Nested(inner) => expression(inner, out),
        Expr::Tuple(items) if items.len() == 1 => {
            out.push_str("row");
            list(items, out);
        }
        Expr::Tuple(items) => list(items, out),
        Expr::Subquery(inner) => subquery(inner, out),
        Expr::Exists { subquery: inner, negated } => {
            out.push_str(if *negated { "(not exists" } else { "exists" });
            subquery(inner, out);
            out.push_str(if *negated { ")" } else { "" });
        }
        Expr::Interval(interval) => {
            out.push_str("interval ");
            expression(&interval.value, out);
            out.push(' ');
            if let Some(unit) = &interval.leading_field {
                field(unit, out);
            }
        }
        Expr::Collate { expr, collation } => {
            out.push('(');
            expression(expr, out);
            out.push_str(" collate ");
            object_name(collation, out);
            out.push(')');
        }
        Expr::Case { operand, conditions, else_result, .. } => {
            out.push_str("(case");
            if let Some(operand) = operand {
                out.push(' ');
                expression(operand, out);
            }
            for when in conditions {
                out.push_str(" when ");
                expression(&when.condition, out);
                out.push_str(" then ");
                expression(&when.result, out);
            }
            if let Some(result) = else_result {
                out.push_str(" else ");
                expression(result, out);
            }
            out.push_str(" end)");
        }
        other => predicate(other, out),
    }
}

/// Predicates: what stands between or after operands and is no plain operator.
fn predicate(expr: &Expr, out: &mut String) {
    let not = |negated: &bool| if *negated { "not " } else { "" };
    match expr {
        Expr::IsNull(inner) => postfix(inner, "is null", out),
        Expr::IsNotNull(inner) => postfix(inner, "is not null", out),
        Expr::IsTrue(inner) => postfix(inner, "is true", out),
        Expr::IsNotTrue(inner) => postfix(inner, "is not true", out),
        Expr::IsFalse(inner) => postfix(inner, "is false", out),
        Expr::IsNotFalse(inner) => postfix(inner, "is not false", out),
        Expr::IsUnknown(inner) => postfix(inner, "is unknown", out),
        Expr::IsNotUnknown(inner) => postfix(inner, "is not unknown", out),
        Expr::Like { negated, expr, pattern, escape_char, .. } => {
            opened(expr, not(negated), "like ", pattern, out);
            if let Some(escape) = escape_char {
                out.push_str(" escape ");
                value(&escape.value, out);
            }
            out.push(')');
        }
        Expr::RLike { negated, expr, pattern, .. } => {
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
        Expr::MemberOf(member) => {
            out.push('(');
            expression(&member.value, out);
            out.push_str(" member of (");
            expression(&member.array, out);
            out.push_str("))");
        }
        Expr::AnyOp { left, compare_op, right, .. } => {
            quantified(left, compare_op, "any", right, out);
        }
        Expr::AllOp { left, compare_op, right } => quantified(left, compare_op, "all", right, out),
        other => special_function(other, out),
    }
}

/// Functions with a grammar of their own.
fn special_function(expr: &Expr, out: &mut String) {
    match expr {
        Expr::Cast { expr, data_type: kind, array, .. } => {
            out.push_str("cast(");
            expression(expr, out);
            out.push_str(" as ");
            data_type(kind, out);
            out.push_str(if *array { " array)" } else { ")" });
        }
        Expr::Convert { expr, data_type: kind, charset, .. } => {
            let (begin, between) = match kind {
                Some(_) => ("cast(", " as "),
                None => ("convert(", " using "),
            };
            out.push_str(begin);
            expression(expr, out);
            out.push_str(between);
            if let Some(kind) = kind {
                data_type(kind, out);
                out.push_str(" character set ");
            }
            if let Some(charset) = charset {
                object_name(charset, out);
            }
            out.push(')');
        }
        Expr::AtTimeZone { timestamp, time_zone } => {
            expression(timestamp, out);
            out.push_str(" at time zone ");
            expression(time_zone, out);
        }
        Expr::Extract { field: unit, expr, .. } => {
            out.push_str("extract(");
            field(unit, out);
            out.push_str(" from ");
            expression(expr, out);
            out.push(')');
        }
        Expr::Trim { trim_where, trim_what, expr, .. } => {
            out.push_str("trim(");
            out.push_str(match trim_where {
                Some(TrimWhereField::Both) => "both ",
                Some(TrimWhereField::Leading) => "leading ",
                Some(TrimWhereField::Trailing) => "trailing ",
                None => "",
            });
            if let Some(what) = trim_what {
                expression(what, out);
                out.push(' ');
            }
            if trim_where.is_some() || trim_what.is_some() {
                out.push_str("from ");
            }
            expression(expr, out);
            out.push(')');
        }
        Expr::MatchAgainst { columns, match_value, opt_search_modifier } => {
            out.push_str("match (");
            separated(columns, ",", out, object_name);
            out.push_str(") against (");
            value(&match_value.value, out);
            out.push_str(match opt_search_modifier {
                Some(SearchModifier::InNaturalLanguageMode) => " in natural language mode",
                Some(SearchModifier::InNaturalLanguageModeWithQueryExpansion) => {
                    " in natural language mode with query expansion"
                }
                Some(SearchModifier::InBooleanMode) => " in boolean mode",
                Some(SearchModifier::WithQueryExpansion) => " with query expansion",
                None => "",
            });
            out.push(')');
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

fn identifier(ident: &Ident, out: &mut String) {
    match ident.quote_style {
        Some(VARIABLE_MARK) => {
            out.push('@');
            // A name between backticks cannot hold it, a quoted one can.
            let is_quoted = ident.value.contains('\0');
            if is_quoted { quoted(&ident.value, out) } else { name(&ident.value, out) }
        }
        Some(OWN_MARK) => out.push_str(&ident.value),
        _ => name(&ident.value, out),
    }
}

fn compound(parts: &[Ident], out: &mut String) {
    let [scope, variable] = parts else { return separated(parts, ".", out, identifier) };
    if scope.quote_style != Some(VARIABLE_MARK) {
        return separated(parts, ".", out, identifier);
    }
    out.push_str("@@");
    if !scope.value.is_empty() {
        out.push_str(&scope.value);
        out.push('.');
    }
    separated(&variable.value.split('.').collect::<Vec<_>>(), ".", out, |part, out| {
        name(part, out);
    });
}

pub(super) fn object_name(object: &ObjectName, out: &mut String) {
    let parts: Vec<_> = object.0.iter().filter_map(|part| part.as_ident()).collect();
    separated(&parts, ".", out, |part, out| name(&part.value, out));
}

pub(super) fn value(literal: &Value, out: &mut String) {
    match literal {
        Value::Number(number, _) => out.push_str(number),
        Value::SingleQuotedString(text) => quoted(text, out),
        Value::HexStringLiteral(digits) => {
            let _ = write!(out, "x'{digits}'");
        }
        Value::SingleQuotedByteStringLiteral(digits) => {
            let _ = write!(out, "b'{digits}'");
        }
        Value::Boolean(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Null => out.push_str("null"),
        Value::Placeholder(_) => out.push('?'),
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

fn unary(op: &UnaryOperator, inner: &Expr, out: &mut String) {
    out.push_str(match op {
        UnaryOperator::Not => "(not ",
        UnaryOperator::BangNot => "(!",
        UnaryOperator::Minus => "(-",
        UnaryOperator::Plus => "(+",
        _ => "(~",
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

fn binary(left: &Expr, op: &BinaryOperator, right: &Expr, out: &mut String) {
    if matches!(op, BinaryOperator::Arrow | BinaryOperator::LongArrow) {
        expression(left, out);
        out.push_str(if matches!(op, BinaryOperator::Arrow) { "->" } else { "->>" });
        return expression(right, out);
    }
    out.push('(');
    expression(left, out);
    let _ = write!(out, " {} ", operator(op));
    expression(right, out);
    out.push(')');
}

fn operator(op: &BinaryOperator) -> &'static str {
    match op {
        BinaryOperator::Or => "or",
        BinaryOperator::Xor => "xor",
        BinaryOperator::And => "and",
        BinaryOperator::Eq => "=",
        BinaryOperator::Spaceship => "<=>",
        BinaryOperator::NotEq => "<>",
        BinaryOperator::Lt => "<",
        BinaryOperator::LtEq => "<=",
        BinaryOperator::Gt => ">",
        BinaryOperator::GtEq => ">=",
        BinaryOperator::BitwiseOr => "|",
        BinaryOperator::BitwiseAnd => "&",
        BinaryOperator::BitwiseXor => "^",
        BinaryOperator::PGBitwiseShiftLeft => "<<",
        BinaryOperator::PGBitwiseShiftRight => ">>",
        BinaryOperator::Plus => "+",
        BinaryOperator::Minus => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::Modulo => "%",
        BinaryOperator::MyIntegerDivide => "div",
        BinaryOperator::Assignment => ":=",
        _ => "||",
    }
}

fn postfix(inner: &Expr, words: &str, out: &mut String) {
    out.push('(');
    expression(inner, out);
    let _ = write!(out, " {words})");
}

/// `(left [not ]word right`, without what closes it.
fn opened(left: &Expr, not: &str, word: &str, right: &Expr, out: &mut String) {
    out.push('(');
    expression(left, out);
    let _ = write!(out, " {not}{word}");
    expression(right, out);
}

fn quantified(left: &Expr, op: &BinaryOperator, word: &str, right: &Expr, out: &mut String) {
    out.push('(');
    expression(left, out);
    let _ = write!(out, " {} {word} ", operator(op));
    expression(right, out);
    out.push(')');
}

fn list(items: &[Expr], out: &mut String) {
    out.push('(');
    separated(items, ",", out, expression);
    out.push(')');
}

/// Nobody can name the items of a subquery that is a value: those without an alias stay without
/// one, whose text may be longer than a name can be.
fn subquery(inner: &sqlparser::ast::Query, out: &mut String) {
    out.push('(');
    match inner.order_by {
        None => {
            let mut inner = inner.clone();
            without_own_names(&mut inner.body);
            query::query(&inner, out);
        }
        Some(_) => query::query(inner, out),
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
                if let SelectItem::ExprWithAlias { expr, alias } = item
                    && super::super::is_own_name(alias)
                {
                    *item = SelectItem::UnnamedExpr(expr.clone());
                }
            }
        }
        _ => {}
    }
}

fn field(unit: &DateTimeField, out: &mut String) {
    match unit {
        DateTimeField::Custom(unit) => out.push_str(&unit.value.to_ascii_lowercase()),
        DateTimeField::Week(_) => out.push_str("week"),
        unit => out.push_str(&unit.to_string().to_ascii_lowercase()),
    }
}

fn function(call: &Function, out: &mut String) {
    function_name(&call.name, out);
    out.push('(');
    if let FunctionArguments::List(arguments) = &call.args {
        if arguments.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
            out.push_str("distinct ");
        }
        separated(&arguments.args, ",", out, argument);
        for clause in &arguments.clauses {
            argument_clause(clause, out);
        }
    }
    out.push(')');
    match call.null_treatment {
        Some(NullTreatment::RespectNulls) => out.push_str(" respect nulls"),
        Some(NullTreatment::IgnoreNulls) => out.push_str(" ignore nulls"),
        None => {}
    }
    match &call.over {
        Some(WindowType::WindowSpec(spec)) => {
            out.push_str(" over ");
            window(spec, out);
        }
        Some(WindowType::NamedWindow(window)) => {
            out.push_str(" over ");
            name(&window.value, out);
        }
        None => {}
    }
}

/// A function's own name stands without quotes, which would make it another function's, unless it
/// could not be read so.
fn function_name(function: &ObjectName, out: &mut String) {
    match function.0.as_slice() {
        [only] => match only.as_ident() {
            Some(ident) if is_plain(&ident.value) => out.push_str(&ident.value),
            _ => object_name(function, out),
        },
        _ => object_name(function, out),
    }
}

fn is_plain(word: &str) -> bool {
    let bytes = word.as_bytes();
    !bytes.is_empty()
        && !bytes[0].is_ascii_digit()
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        && (!super::super::words::is_reserved(word)
            || super::super::words::is_reserved_function(word))
}

fn argument(argument: &FunctionArg, out: &mut String) {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => expression(expr, out),
        FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => out.push('*'),
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

fn argument_clause(clause: &FunctionArgumentClause, out: &mut String) {
    match clause {
        FunctionArgumentClause::OrderBy(order) => {
            out.push_str(" order by ");
            separated(order, ",", out, ordered);
        }
        FunctionArgumentClause::Separator(separator) => {
            out.push_str(" separator ");
            value(&separator.value, out);
        }
        FunctionArgumentClause::JsonReturningClause(returning) => {
            out.push_str(" returning ");
            data_type(&returning.data_type, out);
        }
        other => {
            let _ = write!(out, " {other}");
        }
    }
}

pub(super) fn ordered(item: &OrderByExpr, out: &mut String) {
    expression(&item.expr, out);
    match item.options.asc {
        Some(true) => out.push_str(" asc"),
        Some(false) => out.push_str(" desc"),
        None => {}
    }
}

pub(super) fn window(spec: &WindowSpec, out: &mut String) {
    out.push('(');
    if let Some(window) = &spec.window_name {
        name(&window.value, out);
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
    if let Some(frame) = &spec.window_frame {
        window_frame(frame, out);
    }
    out.push(')');
}

fn window_frame(frame: &WindowFrame, out: &mut String) {
    out.push_str(&frame.units.to_string().to_ascii_lowercase());
    match &frame.end_bound {
        Some(end) => {
            out.push_str(" between ");
            window_bound(&frame.start_bound, out);
            out.push_str(" and ");
            window_bound(end, out);
        }
        None => {
            out.push(' ');
            window_bound(&frame.start_bound, out);
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
fn data_type(kind: &DataType, out: &mut String) {
    let digits = |info: &ExactNumberInfo| match info {
        ExactNumberInfo::None => String::new(),
        ExactNumberInfo::Precision(precision) => format!("({precision})"),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => format!("({precision},{scale})"),
    };
    let length = |length: &Option<u64>| length.map_or(String::new(), |n| format!("({n})"));
    let _ = match kind {
        DataType::Signed => write!(out, "signed"),
        DataType::Unsigned => write!(out, "unsigned"),
        DataType::Binary(n) => write!(out, "binary{}", length(n)),
        DataType::Char(Some(CharacterLength::IntegerLength { length, .. }))
        | DataType::Nvarchar(Some(CharacterLength::IntegerLength { length, .. })) => {
            write!(out, "char({length})")
        }
        DataType::Char(_) | DataType::Nvarchar(_) => write!(out, "char"),
        DataType::Decimal(info) => write!(out, "decimal{}", digits(info)),
        DataType::Float(info) => write!(out, "float{}", digits(info)),
        DataType::Double(_) => write!(out, "double"),
        DataType::Date => write!(out, "date"),
        DataType::Time(n, _) => write!(out, "time{}", length(n)),
        DataType::Datetime(n) => write!(out, "datetime{}", length(n)),
        DataType::JSON => write!(out, "json"),
        DataType::Custom(object, _) => {
            let parts: Vec<_> = object.0.iter().filter_map(|part| part.as_ident()).collect();
            separated(&parts, ".", out, |part, out| out.push_str(&part.value));
            Ok(())
        }
        other => write!(out, "{other}"),
    };
}

/// The type of a `JSON_TABLE` column, which is kept as its text.
pub(super) fn column_type(kind: &DataType, out: &mut String) {
    data_type(kind, out);
}
