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

use firn_sql_logical::expression::{Expression, ExpressionKind};
use firn_sql_types::error::Result;
use firn_sql_types::{SqlType, TypeKind};

use super::{Typing, expression_builders, literal};

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
