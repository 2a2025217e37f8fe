//! Expressions as text that is kept in definitions: names in backticks, every operator in parentheses,
//! words in small letters, as MySQL shows them.
//!
//! ```text
//!   a + 1 > b AND name LIKE 'x%'   ──►   (((`a` + 1) > `b`) and (`name` like _utf8mb4'x%'))
//! ```
//!
//! Invariant: what is printed parses to the same expression again, in every `sql_mode`.

use sqlparser::ast::{
    BinaryOperator, CharacterLength, DataType, DateTimeField, ExactNumberInfo, Expr, Function,
    FunctionArg, FunctionArgExpr, FunctionArguments, Ident, SearchModifier, TrimWhereField,
    UnaryOperator, Value,
};

use super::super::type_text::{identifier, quoted};

/// The text of an expression.
#[must_use]
pub fn expression_text(expression: &Expr) -> String {
    let mut text = String::new();
    write(expression, &mut text);
    text
}

fn list(expressions: &[Expr]) -> String {
    expressions.iter().map(expression_text).collect::<Vec<_>>().join(",")
}

fn write(expression: &Expr, out: &mut String) {
    let text = expression_text;
    let not = |negated: bool| if negated { "not " } else { "" };
    let written = match expression {
        Expr::Identifier(name) => name_text(name),
        Expr::CompoundIdentifier(parts) => {
            parts.iter().map(name_text).collect::<Vec<_>>().join(".")
        }
        Expr::Value(value) => value_text(&value.value),
        Expr::Nested(inner) => text(inner),
        Expr::Prefixed { prefix, value } => prefixed(&prefix.value, value),
        Expr::TypedString(typed) => {
            format!("{}{}", type_word(&typed.data_type), plain_value(&typed.value.value))
        }
        Expr::BinaryOp { left, op, right } => binary(left, op, right),
        Expr::UnaryOp { op, expr } => unary(*op, expr),
        Expr::IsNull(inner) => format!("({} is null)", text(inner)),
        Expr::IsNotNull(inner) => format!("({} is not null)", text(inner)),
        Expr::IsTrue(inner) => format!("({} is true)", text(inner)),
        Expr::IsNotTrue(inner) => format!("({} is not true)", text(inner)),
        Expr::IsFalse(inner) => format!("({} is false)", text(inner)),
        Expr::IsNotFalse(inner) => format!("({} is not false)", text(inner)),
        Expr::IsUnknown(inner) => format!("({} is unknown)", text(inner)),
        Expr::IsNotUnknown(inner) => format!("({} is not unknown)", text(inner)),
        Expr::InList { expr, list: items, negated } => {
            format!("({} {}in ({}))", text(expr), not(*negated), list(items))
        }
        Expr::Between { expr, negated, low, high } => {
            let (low, high) = (text(low), text(high));
            format!("({} {}between {low} and {high})", text(expr), not(*negated))
        }
        Expr::Like { negated, expr, pattern, escape_char, .. } => {
            let escape = escape_char.as_ref().map(|escape| plain_value(&escape.value));
            let escape = escape.map_or(String::new(), |escape| format!(" escape {escape}"));
            format!("({} {}like {}{escape})", text(expr), not(*negated), text(pattern))
        }
        Expr::RLike { negated, expr, pattern, .. } => {
            format!("({} {}regexp {})", text(expr), not(*negated), text(pattern))
        }
        Expr::MemberOf(member) => {
            format!("{} member of ({})", text(&member.value), text(&member.array))
        }
        Expr::Collate { expr, collation } => format!("({} collate {collation})", text(expr)),
        Expr::Tuple(items) => format!("({})", list(items)),
        Expr::Case { operand, conditions, else_result, .. } => {
            let mut case = "(case ".to_owned();
            if let Some(operand) = operand {
                case.push_str(&format!("{} ", text(operand)));
            }
            for when in conditions {
                let (condition, result) = (text(&when.condition), text(&when.result));
                case.push_str(&format!("when {condition} then {result} "));
            }
            if let Some(otherwise) = else_result {
                case.push_str(&format!("else {} ", text(otherwise)));
            }
            case + "end)"
        }
        Expr::Cast { expr, data_type, array, .. } => {
            let array = if *array { " array" } else { "" };
            format!("cast({} as {}{array})", text(expr), cast_type(data_type, None))
        }
        Expr::Convert { expr, data_type, charset, .. } => {
            let charset = charset.as_ref().map(ToString::to_string).unwrap_or_default();
            match data_type {
                Some(data_type) => {
                    format!("cast({} as {})", text(expr), cast_type(data_type, Some(&charset)))
                }
                None => format!("convert({} using {charset})", text(expr)),
            }
        }
        Expr::Interval(interval) => {
            format!("interval {} {}", text(&interval.value), unit(interval.leading_field.as_ref()))
        }
        Expr::Extract { field, expr, .. } => {
            format!("extract({} from {})", unit(Some(field)), text(expr))
        }
        Expr::Trim { trim_where, trim_what, expr, .. } => {
            trim(trim_where.as_ref(), trim_what.as_deref(), expr)
        }
        Expr::Function(function) => call(function),
        Expr::MatchAgainst { columns, match_value, opt_search_modifier } => {
            let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
            let modifier = opt_search_modifier.as_ref().map_or("", search_modifier);
            let value = plain_value(&match_value.value);
            format!("match ({}) against ({value}{modifier})", columns.join(","))
        }
        // Queries and what only they hold: not allowed in what is kept as text.
        other => other.to_string(),
    };
    out.push_str(&written);
}

fn search_modifier(modifier: &SearchModifier) -> &'static str {
    match modifier {
        SearchModifier::InNaturalLanguageMode => " in natural language mode",
        SearchModifier::InNaturalLanguageModeWithQueryExpansion => {
            " in natural language mode with query expansion"
        }
        SearchModifier::InBooleanMode => " in boolean mode",
        SearchModifier::WithQueryExpansion => " with query expansion",
    }
}

/// A column; a variable (marked `@`); or a unit (marked `%`).
fn name_text(name: &Ident) -> String {
    match name.quote_style {
        Some('@') => format!("@{}", identifier(&name.value)),
        Some('%') => name.value.to_lowercase(),
        _ => identifier(&name.value),
    }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::SingleQuotedString(text) => format!("_utf8mb4{}", quoted(text)),
        other => plain_value(other),
    }
}

fn plain_value(value: &Value) -> String {
    match value {
        Value::SingleQuotedString(text) => quoted(text),
        Value::HexStringLiteral(digits) => format!("0x{}", digits.to_lowercase()),
        Value::SingleQuotedByteStringLiteral(digits) => format!("b'{digits}'"),
        Value::Boolean(truth) => truth.to_string(),
        Value::Null => "NULL".to_owned(),
        Value::Number(digits, _) => digits.clone(),
        other => other.to_string(),
    }
}

fn prefixed(prefix: &str, value: &Expr) -> String {
    match value {
        Expr::Value(value) => format!("{prefix}{}", plain_value(&value.value)),
        other => format!("{prefix}{}", expression_text(other)),
    }
}

fn type_word(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Date => "DATE",
        DataType::Time(..) => "TIME",
        _ => "TIMESTAMP",
    }
}

fn binary(left: &Expr, op: &BinaryOperator, right: &Expr) -> String {
    let (left, right) = (expression_text(left), expression_text(right));
    match op {
        BinaryOperator::Arrow => return format!("json_extract({left},{right})"),
        BinaryOperator::LongArrow => {
            return format!("json_unquote(json_extract({left},{right}))");
        }
        BinaryOperator::StringConcat => return format!("concat({left},{right})"),
        BinaryOperator::Assignment => return format!("({left} := {right})"),
        _ => {}
    }
    let symbol = match op {
        BinaryOperator::And => "and",
        BinaryOperator::Or => "or",
        BinaryOperator::Xor => "xor",
        BinaryOperator::NotEq => "<>",
        BinaryOperator::Spaceship => "<=>",
        BinaryOperator::MyIntegerDivide => "DIV",
        BinaryOperator::PGBitwiseShiftLeft => "<<",
        BinaryOperator::PGBitwiseShiftRight => ">>",
        other => return format!("({left} {other} {right})"),
    };
    format!("({left} {symbol} {right})")
}

fn unary(op: UnaryOperator, inner: &Expr) -> String {
    let text = expression_text(inner);
    let is_number = matches!(inner, Expr::Value(value) if matches!(value.value, Value::Number(..)));
    match op {
        UnaryOperator::Minus if is_number => format!("-{text}"),
        UnaryOperator::Minus => format!("-({text})"),
        UnaryOperator::Plus => text,
        UnaryOperator::BitwiseNot => format!("~({text})"),
        UnaryOperator::Not | UnaryOperator::BangNot => format!("(not({text}))"),
        other => format!("{other}({text})"),
    }
}

fn trim(place: Option<&TrimWhereField>, what: Option<&Expr>, from: &Expr) -> String {
    let place = match place {
        Some(TrimWhereField::Both) => "both ",
        Some(TrimWhereField::Leading) => "leading ",
        Some(TrimWhereField::Trailing) => "trailing ",
        None => "",
    };
    let what = what.map_or(String::new(), |what| format!("{} ", expression_text(what)));
    let from_word = if place.is_empty() && what.is_empty() { "" } else { "from " };
    format!("trim({place}{what}{from_word}{})", expression_text(from))
}

fn call(function: &Function) -> String {
    let name: Vec<String> = function
        .name
        .0
        .iter()
        .filter_map(|part| part.as_ident())
        .map(|part| part.value.to_lowercase())
        .collect();
    let name = name.join(".");
    let arguments = match &function.args {
        FunctionArguments::List(arguments) => &arguments.args,
        _ => return format!("{name}()"),
    };
    let arguments: Vec<String> = arguments.iter().map(argument).collect();
    format!("{name}({})", arguments.join(","))
}

fn argument(argument: &FunctionArg) -> String {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => expression_text(expression),
        other => other.to_string(),
    }
}

fn unit(field: Option<&DateTimeField>) -> String {
    match field {
        Some(DateTimeField::Custom(name)) => name.value.to_lowercase(),
        Some(other) => other.to_string().to_lowercase(),
        None => "second".to_owned(),
    }
}

fn cast_type(data_type: &DataType, charset: Option<&str>) -> String {
    let length = |length: Option<u64>| length.map_or(String::new(), |length| format!("({length})"));
    match data_type {
        DataType::Signed => "signed".to_owned(),
        DataType::Unsigned => "unsigned".to_owned(),
        DataType::Binary(bytes) => format!("char{} charset binary", length(*bytes)),
        DataType::Char(characters) => {
            let characters = match characters {
                Some(CharacterLength::IntegerLength { length, .. }) => Some(*length),
                _ => None,
            };
            let charset = charset.map_or(String::new(), |charset| format!(" charset {charset}"));
            format!("char{}{charset}", length(characters))
        }
        DataType::Date => "date".to_owned(),
        DataType::Datetime(fsp) => format!("datetime{}", length(*fsp)),
        DataType::Time(fsp, _) => format!("time{}", length(*fsp)),
        DataType::Decimal(digits) => match digits {
            ExactNumberInfo::None => "decimal(10,0)".to_owned(),
            ExactNumberInfo::Precision(precision) => format!("decimal({precision},0)"),
            ExactNumberInfo::PrecisionAndScale(precision, scale) => {
                format!("decimal({precision},{scale})")
            }
        },
        DataType::Float(ExactNumberInfo::Precision(precision)) => format!("float({precision})"),
        DataType::Float(_) => "float".to_owned(),
        DataType::Double(_) => "double".to_owned(),
        DataType::JSON => "json".to_owned(),
        other => other.to_string().to_lowercase(),
    }
}
