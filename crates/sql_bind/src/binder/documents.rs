//! Arguments of JSON functions that have to be documents.
//!
//! ```text
//!   JSON_TYPE(5)                     error 3146, whatever the value
//!   JSON_TYPE(x'FF')                 error 3144, unless the value is NULL
//!   JSON_MERGE_PATCH('[', 5)         error 3141: the first argument is read before the second
//! ```
//!
//! A call that raises the error stands in the place of such an argument, so that the arguments are
//! refused in the order in which they are written, and only if the function is evaluated.
//!
//! Documents that are read as dates or times are read by their text where a function has passed
//! them on:
//!
//! ```text
//!   HOUR(j)                          the time that the document is, warning 3156 if it is none
//!   HOUR(IFNULL(j, k))               the time of its text, warning 1292 if it is none
//!   HOUR(IF(x, j, 'abc'))            as HOUR(j), though a text is chosen
//! ```

use firn_sql_functions::Function;
use firn_sql_logical::expression::{Expression, ExpressionKind};
use firn_sql_types::decimal::Rounding;
use firn_sql_types::error::Result;
use firn_sql_types::{Datum, SqlType, TypeKind};

use super::cast::typed_null;
use super::{Typing, coerce, expression_builders, literal, predicate};

/// Characters of a moment with all digits of its second.
const MOMENT_CHARS: u32 = 26;

/// The places of a function's documents among its arguments, of which there are `count`.
fn places(name: &str, count: usize) -> std::ops::Range<usize> {
    match name {
        "JSON_MERGE_PRESERVE" | "JSON_MERGE" | "JSON_MERGE_PATCH" => 0..count,
        "JSON_CONTAINS" | "JSON_OVERLAPS" => 0..count.min(2),
        "MEMBER OF" => count.min(1)..count.min(2),
        "JSON_EXTRACT" | "JSON_VALUE" | "JSON_KEYS" | "JSON_LENGTH" | "JSON_DEPTH"
        | "JSON_TYPE" | "JSON_CONTAINS_PATH" | "JSON_SET" | "JSON_INSERT" | "JSON_REPLACE"
        | "JSON_REMOVE" | "JSON_SEARCH" | "JSON_ARRAY_APPEND" | "JSON_ARRAY_INSERT"
        | "JSON_PRETTY" | "JSON_STORAGE_SIZE" => 0..count.min(1),
        _ => 0..0,
    }
}

/// The arguments; those that have to be documents and never are one are calls that raise the error.
pub(super) fn with_documents(
    typing: &mut Typing<'_>,
    name: &str,
    mut arguments: Vec<Expression>,
) -> Result<Vec<Expression>> {
    let places = places(name, arguments.len());
    let Some(last) = places.clone().rev().find(|at| refusal(&arguments[*at]).is_some()) else {
        return Ok(arguments);
    };
    for at in places.take_while(|at| *at <= last) {
        let read = refusal(&arguments[at]).or_else(|| {
            // A text is read before what follows it is refused.
            arguments[at].ty.kind.is_text().then_some("DOCUMENT OF TEXT")
        });
        let Some(read) = read else { continue };
        let argument = std::mem::replace(&mut arguments[at], expression_builders::null());
        let function = literal::literal_text(typing.context, &name.to_lowercase())?;
        let number = expression_builders::integer(at as i64 + 1);
        let parts = match read {
            "NO DOCUMENT" => vec![number, function],
            "BYTES NO DOCUMENT" => vec![argument],
            _ => vec![argument, number, function],
        };
        arguments[at] = expression_builders::call(typing, read, parts)?;
    }
    Ok(arguments)
}

/// A value that becomes part of a document. A cast to `BINARY(n)` counts as `VARBINARY(n)`.
pub(super) fn within_document(value: Expression) -> Expression {
    let max_bytes = match (&value.kind, &value.ty.kind) {
        (ExpressionKind::Cast(_), TypeKind::Binary { max_bytes }) => *max_bytes,
        _ => return value,
    };
    let ty = SqlType { kind: TypeKind::Varbinary { max_bytes }, ..value.ty.clone() };
    Expression { kind: ExpressionKind::Cast(Box::new(value)), ty }
}

/// The arguments of a function: those that it reads as dates or times, each as MySQL reads it.
pub(super) fn read_as_moments(
    typing: &mut Typing<'_>,
    function: &Function,
    mut arguments: Vec<Expression>,
) -> Result<Vec<Expression>> {
    for at in 0..arguments.len() {
        if !is_document_or_choice(&arguments[at]) {
            continue;
        }
        let mut documents = arguments.clone();
        documents[at] = typed_null(SqlType::new(TypeKind::Json));
        let wanted = expression_builders::wanted_types(typing.context, function.name, &documents)?;
        let is_number = function.name == "UNIX_TIMESTAMP";
        let wanted = match wanted.get(at).map(|ty| &ty.kind) {
            _ if is_number => moment(),
            Some(kind) if kind.is_temporal() => kind.clone(),
            _ => continue,
        };
        let argument = std::mem::replace(&mut arguments[at], expression_builders::null());
        let is_document = argument.ty.kind == TypeKind::Json;
        arguments[at] = match function.name {
            "TIMEDIFF" | "TIME_FORMAT" if is_document => predicate::as_text(typing, argument),
            "TIMEDIFF" | "TIME_FORMAT" => argument,
            _ if is_number
                && is_document
                && matches!(argument.kind, ExpressionKind::Case { .. }) =>
            {
                coerce::cast_to(typing, argument, SqlType::new(wanted).with_nullable(true))
            }
            _ => read_as_moment(typing, argument, &wanted),
        };
    }
    Ok(arguments)
}

/// A value that is read as a date or time of a kind.
pub(super) fn read_as_moment(
    typing: &mut Typing<'_>,
    value: Expression,
    wanted: &TypeKind,
) -> Expression {
    let is_passed_on = match &value.kind {
        ExpressionKind::Coalesce(_) => true,
        ExpressionKind::Call { function, .. } => function.name == "ANY_VALUE",
        _ => false,
    };
    match value.kind {
        _ if is_passed_on && value.ty.kind == TypeKind::Json => predicate::as_text(typing, value),
        ExpressionKind::Case { branches, otherwise } if value.ty.kind.is_string() => {
            let kind = match value.ty.kind {
                TypeKind::Varchar { max_chars, collation } => {
                    TypeKind::Varchar { max_chars: max_chars.max(MOMENT_CHARS), collation }
                }
                kind => kind,
            };
            let ty = SqlType { kind, ..value.ty };
            let read = |value| moment_of_branch(value, wanted, &ty);
            let branches = branches.into_iter().map(|(test, value)| (test, read(value))).collect();
            let otherwise = otherwise.map(|value| Box::new(read(*value)));
            Expression { kind: ExpressionKind::Case { branches, otherwise }, ty }
        }
        kind => Expression { kind, ty: value.ty },
    }
}

/// A value that `CASE` or `IF` chooses, of a text type: a document is read before it becomes text,
/// and so is a time where a date is wanted, or a date where a time is.
fn moment_of_branch(value: Expression, wanted: &TypeKind, ty: &SqlType) -> Expression {
    let own = match &value.kind {
        ExpressionKind::Cast(inner) => inner.ty.kind.clone(),
        ExpressionKind::Literal(Datum::Text(_)) => match value.ty.before.get() {
            Some(before) => before.written.0.kind.clone(),
            None => return value,
        },
        _ => return value,
    };
    let is_read = match own {
        TypeKind::Json => true,
        TypeKind::Time { .. } => wanted.has_date(),
        TypeKind::Date => !wanted.has_date(),
        _ => false,
    };
    if !is_read {
        return value;
    }
    let cast = |value, ty: SqlType| Expression {
        kind: ExpressionKind::Cast(Box::new(value)),
        ty: ty.with_nullable(true),
    };
    let own = match value.kind {
        ExpressionKind::Cast(inner) => *inner,
        // A constant that has become text.
        kind => cast(Expression { kind, ty: value.ty }, SqlType::new(own)),
    };
    let wanted = match wanted {
        TypeKind::Time { .. } => wanted.clone(),
        _ => moment(),
    };
    cast(cast(own, SqlType::new(wanted)), ty.clone())
}

/// Whether an argument is a document, or a text that may be chosen among documents and times.
fn is_document_or_choice(argument: &Expression) -> bool {
    let is_choice = matches!(argument.kind, ExpressionKind::Case { .. });
    argument.ty.kind == TypeKind::Json || is_choice && argument.ty.kind.is_string()
}

fn moment() -> TypeKind {
    TypeKind::DateTime { fsp: 6 }
}

/// An exact number that becomes a document, chosen among values of which some are whole numbers:
/// these have no digits after the point.
pub(super) fn with_own_digits(mut value: Expression) -> Expression {
    if !matches!(value.ty.kind, TypeKind::Decimal { .. }) {
        return value;
    }
    let chosen: Vec<&mut Expression> = match &mut value.kind {
        ExpressionKind::Case { branches, otherwise } => {
            let values = branches.iter_mut().map(|(_, value)| value);
            values.chain(otherwise.as_deref_mut()).collect()
        }
        ExpressionKind::Coalesce(list) => list.iter_mut().collect(),
        _ => Vec::new(),
    };
    for one in chosen {
        let whole = whole_number(std::mem::replace(one, expression_builders::null()));
        *one = whole;
    }
    value
}

fn whole_number(value: Expression) -> Expression {
    const DIGITS: u8 = 20;
    let is_whole = |ty: &SqlType| ty.kind.is_integer() || ty.kind == TypeKind::Year;
    let kind = SqlType::decimal(DIGITS, 0).kind;
    match value.kind {
        ExpressionKind::Cast(inner) if is_whole(&inner.ty) => {
            Expression { kind: ExpressionKind::Cast(inner), ty: SqlType { kind, ..value.ty } }
        }
        ExpressionKind::Literal(Datum::Decimal(number))
            if value.ty.before.get().is_some_and(|before| is_whole(&before.written.0)) =>
        {
            let whole = number.round(0, Rounding::HalfUp).unwrap_or(number);
            expression_builders::literal(whole.into(), SqlType { kind, ..value.ty })
        }
        kind => with_own_digits(Expression { kind, ty: value.ty }),
    }
}

/// The call that refuses an argument which is no document, whatever it is worth.
fn refusal(argument: &Expression) -> Option<&'static str> {
    match &argument.kind {
        ExpressionKind::Parameter(_) if !argument.ty.kind.is_binary() => return None,
        ExpressionKind::Call { function, .. } if function.name.ends_with("DOCUMENT") => {
            return None;
        }
        _ => {}
    }
    match &argument.ty.kind {
        kind if kind.is_binary() => Some("BYTES NO DOCUMENT"),
        kind if kind.is_string() || kind.is_enum_or_set() => None,
        TypeKind::Json | TypeKind::Null | TypeKind::Geometry => None,
        _ => Some("NO DOCUMENT"),
    }
}
