//! Small expressions, made the same way everywhere.

use firn_sql_functions::{
    self as functions, Call, Function, ResolveContext, Signature, Volatility,
};
use firn_sql_logical::PlanContext;
use firn_sql_logical::expression::{
    CompareOperator, Expression, ExpressionKind, IsTest, Slot, fold, visit, volatility,
};
use firn_sql_types::error::{Condition, ErrorKind, Level, Result, SqlError};
use firn_sql_types::{Before, ComparisonKind, Datum, Display, SqlType, TypeKind, WorkedOut};

use super::display::TRUTH_CHARS;
use super::{Typing, coerce, display, documents, mean, parameter};

#[must_use]
pub(crate) fn literal(datum: Datum, ty: SqlType) -> Expression {
    let ty = SqlType { nullable: datum.is_null(), before: Before::default(), ..ty };
    Expression { kind: ExpressionKind::Literal(datum), ty }
}

/// A truth value known before any row is read; `nullable`: whether it could have been NULL.
#[must_use]
pub(crate) fn truth(truth: Option<bool>, nullable: bool) -> Expression {
    let mut truth = literal(Datum::from_bool(truth), SqlType::boolean());
    truth.ty.before = worked_out(&truth.ty, TRUTH_CHARS, nullable);
    truth
}

/// What clients see of a constant number of at most `length` characters.
pub(crate) fn worked_out(ty: &SqlType, length: u32, nullable: bool) -> Before {
    let shown = Display { length, ..Display::of_expression(ty) };
    let operand = (ty.clone(), shown);
    Before::of(WorkedOut {
        shown,
        nullable,
        operand: operand.clone(),
        written: operand,
        bytes: None,
        is_quiet: false,
    })
}

#[must_use]
pub(crate) fn integer(number: i64) -> Expression {
    literal(Datum::Int(number), SqlType::bigint())
}

#[must_use]
pub(crate) fn null() -> Expression {
    literal(Datum::Null, SqlType::null())
}

#[must_use]
pub(crate) fn slot(slot: Slot, ty: SqlType) -> Expression {
    Expression { kind: ExpressionKind::Slot(slot), ty }
}

/// `NOT x`
#[must_use]
pub(crate) fn not(operand: Expression) -> Expression {
    let ty = SqlType::boolean().with_nullable(operand.ty.nullable);
    match operand.kind {
        ExpressionKind::Literal(Datum::Int(number)) => {
            let before = operand.ty.before.get().map(|before| before.nullable);
            truth(Some(number == 0), before.unwrap_or(ty.nullable))
        }
        ExpressionKind::Is { operand, test, negated } => {
            Expression { kind: ExpressionKind::Is { operand, test, negated: !negated }, ty }
        }
        _ => Expression { kind: ExpressionKind::Not(Box::new(operand)), ty },
    }
}

/// `x IS [NOT] …`
#[must_use]
pub(crate) fn is(operand: Expression, test: IsTest, negated: bool) -> Expression {
    let ty = SqlType::boolean().not_null();
    if test == IsTest::Null
        && let Some(sides) = nullable_sides(&operand)
    {
        let tests = sides.into_iter().map(|side| is(side.clone(), IsTest::Null, false)).collect();
        let is_null = firn_sql_logical::expression::or(tests);
        return if negated { not(is_null) } else { is_null };
    }
    if test == IsTest::Null && !operand.ty.nullable && is_without_effect(&operand) {
        return truth(Some(negated), false);
    }
    Expression { kind: ExpressionKind::Is { operand: Box::new(operand), test, negated }, ty }
}

/// The operands of a comparison, a `XOR` or a `NOT`, of which one has to be NULL so that it is
/// NULL: MySQL asks them alone, as they are written, so that no conversion warns. What is no date
/// is NULL beside dates.
fn nullable_sides(operand: &Expression) -> Option<Vec<&Expression>> {
    let sides: Vec<&Expression> = match &operand.kind {
        ExpressionKind::Compare { operator, kind, sides }
            if *operator != CompareOperator::NullSafeEqual
                && !matches!(kind, ComparisonKind::DateTime | ComparisonKind::Time) =>
        {
            sides.iter().collect()
        }
        ExpressionKind::Xor(sides) => sides.iter().collect(),
        ExpressionKind::Not(inner) => vec![&**inner],
        _ => return None,
    };
    let is_one = |side: &&Expression| !matches!(side.kind, ExpressionKind::Row(_));
    sides.iter().all(is_one).then(|| sides.into_iter().map(unconverted).collect())
}

/// A side of a comparison before it was converted for it.
fn unconverted(side: &Expression) -> &Expression {
    match &side.kind {
        ExpressionKind::Cast(inner) => unconverted(inner),
        ExpressionKind::Call { function, arguments }
            if matches!(function.name, "DATE OF TEXT" | "DAY OF TEXT" | "TIME OF TEXT") =>
        {
            arguments.first().map_or(side, unconverted)
        }
        _ => side,
    }
}

/// Whether it does not matter if an expression is evaluated: MySQL does not where it cannot be
/// NULL.
fn is_without_effect(expression: &Expression) -> bool {
    !visit::any(expression, &|one| match &one.kind {
        // What was worked out could have been NULL.
        ExpressionKind::Literal(_) => one.ty.before.get().is_some_and(|before| before.nullable),
        ExpressionKind::Slot(_) | ExpressionKind::Cast(_) => false,
        ExpressionKind::Call { function, .. } => {
            function.volatility != Volatility::Pure
                || !matches!(function.name, "+" | "-" | "*" | "NEG" | "FIELD" | "INTERVAL")
        }
        _ => !is_truth(one),
    })
}

/// The operator that is true exactly where `operator` is false.
#[must_use]
pub(crate) fn opposite(operator: CompareOperator) -> Option<CompareOperator> {
    Some(match operator {
        CompareOperator::Equal => CompareOperator::NotEqual,
        CompareOperator::NotEqual => CompareOperator::Equal,
        CompareOperator::Less => CompareOperator::GreaterOrEqual,
        CompareOperator::LessOrEqual => CompareOperator::Greater,
        CompareOperator::Greater => CompareOperator::LessOrEqual,
        CompareOperator::GreaterOrEqual => CompareOperator::Less,
        CompareOperator::NullSafeEqual => return None,
    })
}

/// Whether an expression is already a truth value.
#[must_use]
pub(crate) fn is_truth(expression: &Expression) -> bool {
    matches!(
        expression.kind,
        ExpressionKind::Compare { .. }
            | ExpressionKind::And(_)
            | ExpressionKind::Or(_)
            | ExpressionKind::Xor(_)
            | ExpressionKind::Not(_)
            | ExpressionKind::Is { .. }
            | ExpressionKind::InList { .. }
            | ExpressionKind::Like { .. }
    )
}

/// A call of a function by its name.
///
/// # Errors
/// 1305 if it does not exist, 1582 for a wrong number of arguments, and type errors.
pub(crate) fn call(
    typing: &mut Typing<'_>,
    name: &str,
    arguments: Vec<Expression>,
) -> Result<Expression> {
    let Some(function) = functions::find(name) else {
        let schema = typing.context.schema.map(|schema| format!("{schema}."));
        let message = format!("FUNCTION {}{name} does not exist", schema.unwrap_or_default());
        return Err(SqlError::of_kind(ErrorKind::UnknownName, 1305, message));
    };
    call_function(typing, function, arguments)
}

/// A value that becomes a document, or the text of a stored column: an exact number that was worked
/// out to 0 loses its digits after the point, for that is the 0 that MySQL's arithmetic gives.
///
/// # Errors
/// As [`call`].
pub(super) fn with_plain_zeros(
    typing: &mut Typing<'_>,
    mut value: Expression,
) -> Result<Expression> {
    if !matches!(value.ty.kind, TypeKind::Decimal { .. }) {
        return Ok(value);
    }
    if is_worked_out_number(&value) {
        return call(typing, "PLAIN ZERO", vec![value]);
    }
    let within = match &mut value.kind {
        ExpressionKind::Case { branches, otherwise } => {
            let values = branches.iter_mut().map(|(_, value)| value);
            values.chain(otherwise.as_deref_mut()).collect()
        }
        ExpressionKind::Coalesce(list) => list.iter_mut().collect(),
        _ => Vec::new(),
    };
    for inner in within {
        let plain = with_plain_zeros(typing, std::mem::replace(inner, null()))?;
        *inner = plain;
    }
    Ok(value)
}

/// Whether an exact number is the result of arithmetic, or a constant that was.
fn is_worked_out_number(value: &Expression) -> bool {
    match &value.kind {
        ExpressionKind::Call { function, arguments } => match function.name {
            "+" | "-" | "*" | "/" | "%" => true,
            "NEG" | "ABS" => arguments.iter().all(is_worked_out_number),
            _ => false,
        },
        ExpressionKind::Cast(inner) => {
            !coerce::is_written_cast(value)
                && matches!(inner.ty.kind, TypeKind::Decimal { .. })
                && is_worked_out_number(inner)
        }
        _ => false,
    }
}

/// A call of a function.
///
/// # Errors
/// As [`call`].
pub(crate) fn call_function(
    typing: &mut Typing<'_>,
    function: &'static Function,
    arguments: Vec<Expression>,
) -> Result<Expression> {
    let call = unfolded_call(typing, function, arguments)?;
    Ok(coerce::fold(typing, call))
}

/// A call of a function, even if all of its arguments are constant.
///
/// # Errors
/// As [`call`].
pub(super) fn unfolded_call(
    typing: &mut Typing<'_>,
    function: &'static Function,
    arguments: Vec<Expression>,
) -> Result<Expression> {
    function.check_arity(arguments.len())?;
    typing.facts.is_repeatable &= !volatility::acts(function);
    let arguments = arguments.into_iter().map(single);
    let arguments = arguments.collect::<Result<Vec<_>>>()?;
    let arguments = inferred_arguments(typing.context, function, arguments)?;
    let arguments = documents::read_as_moments(typing, function, arguments)?;
    let signature = signature(typing.context, function, &arguments)?;
    let arguments: Vec<Expression> = match function.name {
        "GREATEST" | "LEAST" | "DATE OF YEAR" => arguments,
        _ => arguments.into_iter().map(|one| coerce::number_of_year(typing, one)).collect(),
    };
    let wanted = signature.arguments.into_iter();
    let arguments = arguments.into_iter().zip(wanted).map(|(one, ty)| match ty.kind {
        // A year that became a number stays one.
        TypeKind::Year if one.ty.kind.is_integer() => one,
        _ => coerce::cast_to(typing, one, ty),
    });
    let mut arguments: Vec<Expression> = arguments.collect();
    if mean::takes_all_digits(function.name) {
        arguments = arguments.into_iter().map(mean::unrounded).collect();
    }
    if !function.name.starts_with("TRIM") && function.name != "SUBSTRING_INDEX" {
        refuse_no_text(typing.context, &arguments)?;
    }
    warn_of_shape(typing.context, function, &arguments)?;
    let mut ty = match function.name {
        "FLOOR" | "CEILING" => display::whole_type(typing, &arguments, signature.result),
        _ => signature.result,
    };
    ty.nullable &= !is_never_null(function.name, arguments.len());
    ty.before = Before::default();
    Ok(Expression { kind: ExpressionKind::Call { function, arguments }, ty })
}

/// Error 3854 for a constant that has no text in the character set of the call's arguments, even if
/// the call would not evaluate it.
fn refuse_no_text(context: &PlanContext<'_>, arguments: &[Expression]) -> Result<()> {
    for argument in arguments {
        let ExpressionKind::Call { function, arguments: bytes } = &argument.kind else { continue };
        let [Expression { kind: ExpressionKind::Literal(constant), ty }] = bytes.as_slice() else {
            continue;
        };
        if function.name == "DECODED" && ty.kind.is_text() && !constant.is_null() {
            let call = Call { context: context.evaluation, arguments: &[ty], result: &argument.ty };
            (function.evaluate)(std::slice::from_ref(constant), &call)?;
        }
    }
    Ok(())
}

/// Warns of constants that are read for the type of a call, whether the call is evaluated or not,
/// and fails if they do.
fn warn_of_shape(
    context: &PlanContext<'_>,
    function: &Function,
    arguments: &[Expression],
) -> Result<()> {
    let lengths: &[usize] = match function.name {
        "SPACE" => &[0],
        "LEFT" | "RIGHT" | "REPEAT" | "LPAD" | "RPAD" => &[1],
        "SUBSTRING" => &[1, 2],
        _ => &[],
    };
    for argument in lengths.iter().filter_map(|at| arguments.get(*at)) {
        let told = fold::warnings_of_constant(argument, context.evaluation)?;
        context.conditions.borrow_mut().extend(told);
    }
    if let ("SHA2", [_, bits]) = (function.name, arguments)
        && let Some(Datum::Int(bits)) = fold::constant_value(bits, context.evaluation)
        && !matches!(bits, 0 | 224 | 256 | 384 | 512)
    {
        let message = "Incorrect parameters in the call to native function 'sha2'".to_owned();
        let condition = Condition { level: Level::Warning, code: 1583, message };
        context.conditions.borrow_mut().push(condition);
    }
    Ok(())
}

/// The arguments; unknown parameters get the types that the function takes.
fn inferred_arguments(
    context: &PlanContext<'_>,
    function: &Function,
    arguments: Vec<Expression>,
) -> Result<Vec<Expression>> {
    if !arguments.iter().any(|one| parameter::is_unknown(context, one)) {
        return Ok(arguments);
    }
    match function.name {
        "+" | "-" | "*" | "/" | "%" | "DIV" => {
            return parameter::inferred_list(context, arguments, Some(&SqlType::double()));
        }
        "GREATEST" | "LEAST" => return parameter::inferred_list(context, arguments, None),
        "&" | "|" | "^" => {
            return parameter::inferred_list(context, arguments, Some(&parameter::bytes()));
        }
        _ => {}
    }
    let mut wanted = signature(context, function, &arguments)?.arguments;
    for (place, ty) in parameter::wanted(function.name) {
        if let Some(known) = wanted.get_mut(place) {
            *known = ty;
        }
    }
    let pairs = arguments.into_iter().zip(wanted);
    Ok(pairs.map(|(one, wanted)| parameter::inferred(context, one, &wanted)).collect())
}

/// The function's result for arguments of these types.
fn signature(
    context: &PlanContext<'_>,
    function: &Function,
    arguments: &[Expression],
) -> Result<Signature> {
    let types: Vec<SqlType> = arguments.iter().map(|one| one.ty.clone()).collect();
    let constants: Vec<Option<Datum>> = arguments.iter().map(constant_of).collect();
    let evaluation = context.evaluation;
    let context = ResolveContext {
        sql_mode: evaluation.sql_mode,
        connection_collation: evaluation.connection_collation,
        div_precision_increment: evaluation.div_precision_increment,
        constants: &constants,
    };
    (function.resolve)(&types, &context)
}

/// The types to which a function's arguments are cast; their own types if the name is not a
/// function's, or if there are too many or too few.
///
/// # Errors
/// As [`call`].
pub(crate) fn wanted_types(
    context: &PlanContext<'_>,
    name: &str,
    arguments: &[Expression],
) -> Result<Vec<SqlType>> {
    match functions::find(name) {
        Some(function) if function.check_arity(arguments.len()).is_ok() => {
            signature(context, function, arguments).map(|signature| signature.arguments)
        }
        _ => Ok(arguments.iter().map(|argument| argument.ty.clone()).collect()),
    }
}

/// Refuses a row where a single value is required.
///
/// # Errors
/// 1241
pub(crate) fn single(expression: Expression) -> Result<Expression> {
    match &expression.kind {
        ExpressionKind::Row(_) => Err(SqlError::new(1241, "Operand should contain 1 column(s)")),
        _ => Ok(expression),
    }
}

/// The expression as a condition: numbers are compared with 0, text becomes a number first.
pub(crate) fn condition(typing: &mut Typing<'_>, expression: Expression) -> Result<Expression> {
    let expression = parameter::inferred(typing.context, single(expression)?, &SqlType::boolean());
    if is_truth(&expression) || expression.ty.kind.is_numeric() {
        return Ok(mean::unrounded(expression));
    }
    match expression.ty.kind {
        TypeKind::Null => Ok(expression),
        // A document is true unless it is the number 0.
        TypeKind::Json => {
            coerce::compare(typing, CompareOperator::NotEqual, expression, integer(0))
        }
        _ => {
            let nullable = expression.ty.nullable;
            Ok(coerce::cast_to(typing, expression, SqlType::double().with_nullable(nullable)))
        }
    }
}

pub(super) fn constant_of(expression: &Expression) -> Option<Datum> {
    match &expression.kind {
        ExpressionKind::Literal(datum) => Some(datum.clone()),
        _ => None,
    }
}

/// Whether a function never returns NULL, whatever its arguments.
pub(crate) fn is_never_null(name: &str, arguments: usize) -> bool {
    match name {
        "LAST_INSERT_ID" => arguments == 0,
        _ => matches!(
            name,
            "FIELD"
                | "INTERVAL"
                | "COERCIBILITY"
                | "CHAR"
                | "UUID"
                | "UUID_SHORT"
                | "USER"
                | "CURRENT_USER"
                | "VERSION"
                | "CHARSET"
                | "COLLATION"
                | "CONNECTION_ID"
                | "ROW_COUNT"
                | "FOUND_ROWS"
                | "CURRENT_ROLE"
                | "RELEASE_ALL_LOCKS"
                | "SLEEP"
                | "RANDOM_BYTES"
        ),
    }
}
