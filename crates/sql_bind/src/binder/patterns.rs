//! Texts beside patterns: `LIKE` and `REGEXP`.
//!
//! ```text
//!   t LIKE 'a|%' ESCAPE '|'     both sides as texts of one collation
//!   t REGEXP p                  REGEXP_LIKE(t, p)
//! ```

use firn_sql_grammar::ast::{Expr, Value};
use firn_sql_logical::PlanContext;
use firn_sql_logical::expression::{Expression, ExpressionKind};
use firn_sql_types::collate::{among_several, comparison_collation};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{ComparisonKind, SqlMode, SqlType};

use super::coerce::refuse_no_text;
use super::predicate::as_text;
use super::{Binder, coerce, expression_builders, expressions, held};

pub(crate) fn like(
    binder: &mut Binder<'_>,
    text: &Expr,
    pattern: &Expr,
    escape: Option<&Value>,
    negated: bool,
) -> Result<Expression> {
    let text = expressions::bind_single(binder, text)?;
    let pattern = expressions::bind_single(binder, pattern)?;
    let count = if escape.is_some() { 3 } else { 2 };
    let escape = escape_character(binder.typing.context, escape)?;
    let (text, pattern) = (as_text(&mut binder.typing, text), as_text(&mut binder.typing, pattern));
    let collation = comparison_collation(&text.ty, &pattern.ty, "like").map_err(|error| {
        let of_escape = SqlType::varchar(1, binder.typing.context.evaluation.connection_collation);
        among_several(error, &[text.ty.clone(), pattern.ty.clone(), of_escape], count, "like")
    })?;
    let kind = ComparisonKind::Text(collation);
    for side in [&text, &pattern] {
        refuse_no_text(kind, side)?;
        held::suppose_text(&mut binder.typing, kind, side)?;
    }
    let [text, pattern] = [text, pattern].map(|side| {
        let ty = kind.operand_type(&side.ty);
        coerce::cast_to(&mut binder.typing, side, ty)
    });
    let nullable = text.ty.nullable || pattern.ty.nullable;
    let kind = ExpressionKind::Like {
        text: Box::new(text),
        pattern: Box::new(pattern),
        collation,
        escape,
        negated,
    };
    Ok(Expression { kind, ty: SqlType::boolean().with_nullable(nullable) })
}

fn escape_character(context: &PlanContext<'_>, escape: Option<&Value>) -> Result<Option<char>> {
    let mode = context.evaluation.sql_mode;
    let Some(escape) = escape else {
        return Ok((!mode.contains(SqlMode::NO_BACKSLASH_ESCAPES)).then_some('\\'));
    };
    let wrong = || SqlError::new(1210, "Incorrect arguments to ESCAPE");
    let text = match escape {
        Value::Text(text) => text,
        // An unknown or NULL value counts as if it were not written.
        Value::Parameter(_) | Value::LongText(_) | Value::Null => {
            return Ok((!mode.contains(SqlMode::NO_BACKSLASH_ESCAPES)).then_some('\\'));
        }
        _ => return Err(wrong()),
    };
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (first, None) => Ok(first),
        _ => Err(wrong()),
    }
}

pub(crate) fn regexp(
    binder: &mut Binder<'_>,
    text: &Expr,
    pattern: &Expr,
    negated: bool,
) -> Result<Expression> {
    let arguments =
        vec![expressions::bind_single(binder, text)?, expressions::bind_single(binder, pattern)?];
    let matches = expression_builders::call(&mut binder.typing, "REGEXP_LIKE", arguments)?;
    Ok(if negated { expression_builders::not(matches) } else { matches })
}
