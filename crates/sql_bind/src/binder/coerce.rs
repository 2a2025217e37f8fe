//! Casts, comparisons of mixed types, and common types.
//!
//! ```text
//!   int_col = '5'            Compare(Integer, int_col, 5)
//!   varchar_col = 5          Compare(Double, Cast(varchar_col → DOUBLE), 5)
//!   date_col >= '2024-01-01' Compare(DateTime, date_col, 2024-01-01 00:00:00)
//! ```
//!
//! Constants are converted once, here, so that a column stays bare and its index usable.

use firn_format::value::CollationId;
use firn_sql_collation::{self as collation, Charset};
use firn_sql_functions as functions;
use firn_sql_logical::expression::{CompareOperator, Expression, ExpressionKind, Slot, fold};
use firn_sql_types::collate::{has_all, refuse_unclear_collation};
use firn_sql_types::decimal::{MAX_PRECISION, MAX_SCALE};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::metadata::NOT_FIXED_DECIMALS;
use firn_sql_types::{
    Before, Coercibility, ComparisonKind, Datum, IntWidth, SqlType, TypeKind, WorkedOut,
    compare::comparison_kind, unify::unify,
};

use super::held::Beside;
use super::mean::unrounded;
use super::{Frame, Typing, display, expression_builders, held, literal, parameter};
use crate::binder::display::nullable;

/// The most digits of a fraction of a second.
const SECOND_DIGITS: u8 = 6;

/// The expression as a value of a type.
pub(crate) fn cast_to(typing: &mut Typing<'_>, expression: Expression, ty: SqlType) -> Expression {
    // A cast takes its behaviour from its type: CAST('hello' AS CHAR(2)) stays a cast in a
    // longer text.
    let is_cast = matches!(expression.kind, ExpressionKind::Cast(_));
    let expression = match ty.kind.is_numeric() {
        true => literal::as_number(typing.context, expression),
        false => expression,
    };
    if is_written_cast(&expression) && expression.ty.kind == ty.kind {
        return expression;
    }
    // The difference of two such numbers may be out of range.
    let is_checked = matches!(expression.kind, ExpressionKind::Call { .. })
        && matches!(expression.ty.kind, TypeKind::Decimal { unsigned: true, .. });
    if expression.ty.kind == ty.kind
        || !is_cast && !is_checked && is_same_representation(&expression.ty.kind, &ty.kind)
    {
        return retyped_literal(typing, expression, ty);
    }
    if let ExpressionKind::Literal(Datum::Null) = expression.kind {
        let before = before(typing, &expression);
        return Expression { kind: expression.kind, ty: SqlType { nullable: true, before, ..ty } };
    }
    let nullable = ty.nullable || expression.ty.nullable;
    let expression = match &ty.kind {
        kind if kind.is_numeric() => as_chosen(typing, expression),
        kind if kind.is_string() || kind.is_temporal() && *kind != TypeKind::Year => {
            number_of_year(typing, expression)
        }
        _ => expression,
    };
    let expression = zero_filled(typing, expression, &ty);
    if expression.ty.kind == ty.kind {
        return Expression { ty: retyped(expression.ty, ty), kind: expression.kind };
    }
    if matches!(expression.kind, ExpressionKind::Case { .. })
        && expression.ty.kind.is_numeric()
        && ty.kind.is_string()
    {
        return cast_choice(typing, expression, ty);
    }
    let expression = match ty.kind.is_integer() {
        true => {
            let expression = whole_seconds(typing, expression);
            in_integers(typing, expression, &ty)
        }
        false => expression,
    };
    let expression = if ty.kind.is_numeric() { unrounded(expression) } else { expression };
    let expression = match expression.ty.kind {
        // The text of bits is what their bytes are.
        TypeKind::Bit { .. } if ty.kind.is_text() && !is_cast => {
            let bytes = SqlType::varbinary(expression.ty.max_text_chars());
            let bytes = bytes.with_nullable(expression.ty.nullable);
            Expression { kind: ExpressionKind::Cast(Box::new(expression)), ty: bytes }
        }
        _ => expression,
    };
    let has_fewer_characters = |from: &SqlType| {
        let (Some(from), Some(to)) = (from.charset(), ty.charset()) else { return false };
        from != to && !to.is_all_of_unicode()
    };
    let is_decoded = expression.ty.kind.is_binary()
        || expression.ty.kind.is_text() && has_fewer_characters(&expression.ty);
    if is_decoded && ty.kind.is_text() {
        return decoded(typing, expression, ty.with_nullable(nullable));
    }
    let is_temporal = expression.ty.kind.is_temporal();
    let cast = Expression {
        kind: ExpressionKind::Cast(Box::new(expression)),
        ty: ty.with_nullable(nullable),
    };
    match cast.ty.kind {
        // A number with digits after the point has its length in its value.
        TypeKind::Decimal { .. } if !is_temporal => fold_exact(typing, cast),
        _ => fold(typing, cast),
    }
}

/// A constant as an exact number; what was written stays known.
fn fold_exact(typing: &Typing<'_>, cast: Expression) -> Expression {
    let written = display::written(typing, &cast);
    let written = (written.0.clone(), written.1);
    let nullable = nullable::shown_nullable(typing, &cast);
    let inner = match &cast.kind {
        ExpressionKind::Cast(inner) => inner.ty.before.get().map(|_| before(typing, &cast)),
        _ => None,
    };
    let mut folded = fold::fold(cast, typing.context.evaluation, &typing.context.conditions);
    if matches!(folded.kind, ExpressionKind::Literal(_)) && folded.ty.before.get().is_none() {
        let shown = display::display(typing, &folded);
        let operand = (folded.ty.clone(), shown);
        let known = WorkedOut { shown, nullable, operand, written, bytes: None, is_quiet: false };
        // What was worked out before keeps the digits that it had.
        folded.ty.before = inner.unwrap_or_else(|| Before::of(known));
    }
    folded
}

/// Bytes, or the text of another character set, as text. Bytes that are not valid in the character
/// set are an error, and so are characters that it has not; an explicit conversion returns NULL or
/// question marks.
fn decoded(typing: &Typing<'_>, bytes: Expression, ty: SqlType) -> Expression {
    let kind = match functions::find("DECODED") {
        Some(function) => ExpressionKind::Call { function, arguments: vec![bytes] },
        None => ExpressionKind::Cast(Box::new(bytes)),
    };
    fold(typing, Expression { kind, ty })
}

/// The expression under a wider type of the same values. A text keeps its length: that of a literal
/// is written, and that of a call is what clients see of it.
fn retyped_literal(typing: &Typing<'_>, expression: Expression, ty: SqlType) -> Expression {
    let is_text = match &expression.kind {
        ExpressionKind::Literal(datum) => matches!(datum, Datum::Text(_)),
        ExpressionKind::Call { .. } => expression.ty.kind.is_string() && ty.kind.is_string(),
        _ => false,
    };
    let before = match expression.ty.before.get() {
        None if is_text && expression.ty.kind != ty.kind => before(typing, &expression),
        _ => expression.ty.before.clone(),
    };
    // A written cast to a date or a time stays one: it may be NULL.
    let ty = match expression.kind {
        ExpressionKind::Cast(_) if ty.kind.is_temporal() => {
            ty.with_coercibility(expression.ty.coercibility)
        }
        _ => ty,
    };
    let ty = SqlType { before, ..retyped(expression.ty, ty) };
    Expression { ty, kind: expression.kind }
}

/// If `CASE` or `IF` chooses a number, its text is the text of the chosen value before
/// conversion to the common type.
fn cast_choice(typing: &mut Typing<'_>, choice: Expression, ty: SqlType) -> Expression {
    let ExpressionKind::Case { branches, otherwise } = choice.kind else { return choice };
    let nullable = ty.nullable || choice.ty.nullable;
    let mut text = |value: Expression| {
        let is_plain_null = value.ty.before.get().is_none();
        if let (ExpressionKind::Literal(Datum::Null), true) = (&value.kind, is_plain_null) {
            return Expression { kind: value.kind, ty: ty.clone().with_nullable(true) };
        }
        let value = match value.kind {
            ExpressionKind::Cast(inner)
                if value.ty.coercibility != Coercibility::Implicit
                    && inner.ty.kind.is_numeric() =>
            {
                *inner
            }
            kind => Expression { kind, ty: value.ty },
        };
        cast_to(typing, value, ty.clone())
    };
    let branches = branches.into_iter().map(|(test, value)| (test, text(value))).collect();
    let otherwise = otherwise.map(|value| Box::new(text(*value)));
    let kind = ExpressionKind::Case { branches, otherwise };
    Expression { kind, ty: ty.with_nullable(nullable) }
}

/// A year that is not a column's is a number where a date, a time or a text is wanted.
pub(super) fn number_of_year(typing: &mut Typing<'_>, expression: Expression) -> Expression {
    let is_number = match expression.kind {
        ExpressionKind::Slot(slot) => typing.frame.table_column(slot).is_none(),
        ExpressionKind::Literal(Datum::Null) => false,
        _ => true,
    };
    if expression.ty.kind != TypeKind::Year || !is_number {
        return expression;
    }
    let kind = TypeKind::Integer { width: IntWidth::Two, unsigned: true };
    let ty = SqlType::new(kind)
        .with_nullable(expression.ty.nullable)
        .with_coercibility(Coercibility::Numeric);
    fold(typing, Expression { kind: ExpressionKind::Cast(Box::new(expression)), ty })
}

/// A column of `FLOAT(M,D)` or `DOUBLE(M,D)` that is read as seconds: with the digits of its
/// definition, or as many as the moment beside it has, `fsp`; the others are cut off.
pub(super) fn cut_to_definition(
    typing: &mut Typing<'_>,
    expression: Expression,
    fsp: u8,
) -> Result<Expression> {
    let ExpressionKind::Slot(slot) = expression.kind else { return Ok(expression) };
    let Some(decimals) = fixed_decimals(&typing.frame, slot) else { return Ok(expression) };
    let decimals = decimals.max(fsp);
    if decimals >= SECOND_DIGITS {
        return Ok(expression);
    }
    let digits = expression_builders::integer(decimals.into());
    let cut = expression_builders::call(typing, "TRUNCATE", vec![expression, digits])?;
    Ok(with_fixed_decimals(cut, decimals))
}

/// The text that `GREATEST` and `LEAST` make of a date or a time beside other values, where a
/// number is wanted: of a date, its number; of a time, that of the numbers of all values.
fn as_chosen(typing: &mut Typing<'_>, expression: Expression) -> Expression {
    let ExpressionKind::Call { function, arguments } = &expression.kind else { return expression };
    if !matches!(function.name, "GREATEST" | "LEAST") {
        return expression;
    }
    if matches!(expression.ty.kind, TypeKind::Text { .. } | TypeKind::Blob { .. }) {
        // A long text is read as any other text.
        return expression;
    }
    let types = arguments.iter().map(|argument| &argument.ty);
    if let Some(date) = functions::date_beside_others(types, &expression.ty) {
        return cast_to(typing, expression, date.with_nullable(true));
    }
    let is_time = |argument: &Expression| {
        matches!(display::written(typing, argument).0.kind, TypeKind::Time { .. })
    };
    match expression.ty.kind.is_string() && arguments.iter().any(is_time) {
        true => chosen_number(typing, expression),
        false => expression,
    }
}

/// `GREATEST` or `LEAST` of the numbers of its values.
fn chosen_number(typing: &mut Typing<'_>, choice: Expression) -> Expression {
    const DOUBLE_CHARS: u32 = 23;
    let plain = choice.clone();
    let ExpressionKind::Call { function, arguments } = choice.kind else { return plain };
    let numbers = arguments.into_iter().map(|one| {
        let ty = display::written(typing, &one).0.clone();
        let written = match one.kind {
            ExpressionKind::Cast(inner)
                if one.ty.coercibility != Coercibility::Implicit
                    || inner.ty.kind.is_enum_or_set() =>
            {
                *inner
            }
            // The text of a time that is written.
            ExpressionKind::Literal(_) if ty.kind.is_temporal() => cast_to(typing, one, ty),
            kind => Expression { kind, ty: one.ty },
        };
        let wanted = SqlType::double().with_nullable(written.ty.nullable);
        cast_to(typing, written, wanted)
    });
    let numbers = numbers.collect();
    let Ok(mut number) = expression_builders::call_function(typing, function, numbers) else {
        return plain;
    };
    number.ty.before = expression_builders::worked_out(&number.ty, DOUBLE_CHARS, true);
    number
}

/// `UNIX_TIMESTAMP` truncates to whole seconds where an integer is wanted; it does not round.
pub(super) fn whole_seconds(typing: &mut Typing<'_>, expression: Expression) -> Expression {
    match &expression.kind {
        ExpressionKind::Call { function, .. }
            if function.name == "UNIX_TIMESTAMP" && !expression.ty.kind.is_integer() =>
        {
            let plain = expression.clone();
            expression_builders::call(typing, "FLOOR", vec![expression]).unwrap_or(plain)
        }
        _ => expression,
    }
}

/// A double that was worked out where an integer is wanted: error 1690 if it is none. The double of
/// a column or of a literal becomes the end of the range.
pub(super) fn in_integers(
    typing: &mut Typing<'_>,
    expression: Expression,
    to: &SqlType,
) -> Expression {
    let is_worked_out = match &expression.kind {
        ExpressionKind::Call { function, .. } => function.name != "ANY_VALUE",
        ExpressionKind::Cast(_) => is_written_cast(&expression),
        ExpressionKind::Coalesce(_) => true,
        _ => false,
    };
    let is_double = matches!(expression.ty.kind, TypeKind::Float | TypeKind::Double);
    if !is_worked_out || !is_double || !matches!(to.kind, TypeKind::Integer { .. }) {
        return expression;
    }
    let plain = expression.clone();
    expression_builders::call(typing, "WHOLE", vec![expression]).unwrap_or(plain)
}

/// A number as it is displayed when it becomes text: a column with its zeros if it is `ZEROFILL`, a
/// double with its digits after the point if their number is fixed, as that of `FLOAT(M,D)`.
pub(super) fn zero_filled(
    typing: &mut Typing<'_>,
    expression: Expression,
    ty: &SqlType,
) -> Expression {
    if !ty.kind.is_string() || !expression.ty.kind.is_numeric() {
        return expression;
    }
    if matches!(expression.ty.kind, TypeKind::Float | TypeKind::Double) {
        let decimals = match expression.kind {
            ExpressionKind::Slot(slot) => fixed_decimals(&typing.frame, slot),
            _ => Some(display::display(typing, &expression).decimals),
        };
        return match decimals {
            Some(decimals) if decimals < NOT_FIXED_DECIMALS => {
                let plain = expression.clone();
                let arguments = vec![expression, expression_builders::integer(decimals.into())];
                expression_builders::call(typing, "FIXED DOUBLE", arguments).unwrap_or(plain)
            }
            // The first `FLOAT` that is not NULL has the digits of a `DOUBLE`.
            _ if matches!(expression.kind, ExpressionKind::Coalesce(_)) => {
                let ty = SqlType { kind: TypeKind::Double, ..expression.ty };
                Expression { kind: expression.kind, ty }
            }
            _ => expression,
        };
    }
    let ExpressionKind::Slot(slot) = expression.kind else { return expression };
    let Some(width) = zero_filled_width(&typing.frame, slot) else { return expression };
    let collation = typing.context.evaluation.connection_collation;
    let text = SqlType::varchar(expression.ty.max_text_chars().max(width), collation)
        .with_nullable(expression.ty.nullable)
        .with_coercibility(expression.ty.coercibility);
    let shown = expression.clone();
    let kind = ExpressionKind::Cast(Box::new(expression));
    let arguments = vec![Expression { kind, ty: text }, expression_builders::integer(width.into())];
    expression_builders::call(typing, "ZEROFILL", arguments).unwrap_or(shown)
}

/// The digits after the point of a column of `FLOAT(M,D)` or `DOUBLE(M,D)`.
pub(super) fn fixed_decimals(frame: &Frame, slot: Slot) -> Option<u8> {
    let column = frame.table_column(slot)?;
    let is_floating = matches!(column.ty.kind, TypeKind::Float | TypeKind::Double);
    let fits = column.display_width? <= MAX_PRECISION.into();
    column.display_decimals.filter(|decimals| is_floating && fits && *decimals <= MAX_SCALE)
}

/// A number with a fixed number of digits after the point, as an exact number.
pub(super) fn with_fixed_decimals(number: Expression, decimals: u8) -> Expression {
    let ty = SqlType::decimal(MAX_PRECISION, decimals)
        .with_nullable(number.ty.nullable)
        .with_coercibility(number.ty.coercibility);
    Expression { kind: ExpressionKind::Cast(Box::new(number)), ty }
}

/// Whether an expression is a column whose numbers are filled with zeros.
pub(super) fn is_zero_filled(frame: &Frame, expression: &Expression) -> bool {
    match expression.kind {
        ExpressionKind::Slot(slot) => zero_filled_width(frame, slot).is_some(),
        _ => false,
    }
}

/// The display width of a zero-filled column.
fn zero_filled_width(frame: &Frame, slot: Slot) -> Option<u32> {
    let column = frame.table_column(slot)?;
    let digits = match column.ty.kind {
        TypeKind::Decimal { precision, scale, .. } => u32::from(precision) + u32::from(scale > 0),
        TypeKind::Integer { .. } => {
            column.display_width.map_or(column.ty.max_text_chars(), u32::from)
        }
        _ => u32::from(column.display_width?),
    };
    column.zerofill.then_some(digits)
}

/// A constant's value, if the expression is one.
pub(crate) fn fold(typing: &Typing<'_>, expression: Expression) -> Expression {
    let is_constant = match &expression.kind {
        ExpressionKind::Call { arguments, .. } => arguments.iter().all(is_literal),
        ExpressionKind::Cast(inner) => is_literal(inner),
        _ => false,
    };
    if !is_constant {
        return expression;
    }
    let before = before(typing, &expression);
    let mut folded = fold::fold(expression, typing.context.evaluation, &typing.context.conditions);
    if is_literal(&folded) {
        folded.ty.before = before;
    }
    folded
}

/// The properties to keep of an expression that becomes a constant.
pub(super) fn before(typing: &Typing<'_>, expression: &Expression) -> Before {
    let (operand, shown) = display::shown_operand(typing, expression);
    let (written, shown_written) = display::written(typing, expression);
    Before::of(WorkedOut {
        shown: display::display(typing, expression),
        nullable: nullable::shown_nullable(typing, expression),
        operand: (operand.clone(), shown),
        written: (written.clone(), shown_written),
        bytes: None,
        is_quiet: expression.is_quiet_text(),
    })
}

/// `left operator right` of single values, with the conversions that it needs.
///
/// # Errors
/// 1267 if texts have no common collation, 1525 for an invalid date literal beside dates.
pub(crate) fn compare(
    typing: &mut Typing<'_>,
    operator: CompareOperator,
    left: Expression,
    right: Expression,
) -> Result<Expression> {
    let left = held::date_beside_date(typing, left, &right)?;
    let right = held::date_beside_date(typing, right, &left)?;
    let left = exact_beside(typing, left, &right);
    let right = exact_beside(typing, right, &left);
    refuse_unclear_collation(&left.ty, &right.ty, operator.text())?;
    compare_leniently(typing, operator, left, right)
}

/// A constant text beside an exact number that is no constant: it is one too. Others are compared
/// as doubles.
fn exact_beside(typing: &mut Typing<'_>, value: Expression, other: &Expression) -> Expression {
    let is_constant =
        matches!(other.kind, ExpressionKind::Literal(_) | ExpressionKind::Parameter(_));
    if !matches!(other.ty.kind, TypeKind::Decimal { .. }) || is_constant || !value.ty.kind.is_text()
    {
        return value;
    }
    let scale = match &value.kind {
        ExpressionKind::Literal(Datum::Text(text)) => digits_after_point(text),
        ExpressionKind::Parameter(_) => MAX_SCALE,
        ExpressionKind::Call { .. }
            if fold::constant_value(&value, typing.context.evaluation).is_some() =>
        {
            MAX_SCALE
        }
        _ => return value,
    };
    let nullable = value.ty.nullable;
    cast_to(typing, value, SqlType::decimal_of_scale(scale).with_nullable(nullable))
}

/// The digits after the point of a number that is written as a text.
fn digits_after_point(text: &[u8]) -> u8 {
    if text.iter().any(|byte| matches!(byte, b'e' | b'E')) {
        return MAX_SCALE;
    }
    let fraction = text.iter().skip_while(|byte| **byte != b'.').skip(1);
    let digits = fraction.take_while(|byte| byte.is_ascii_digit()).count();
    digits.min(MAX_SCALE.into()) as u8
}

/// As [`compare`], for the values at one place of two rows of which one is before the other.
///
/// # Errors
/// As [`compare`].
pub(crate) fn compare_in_rows(
    typing: &mut Typing<'_>,
    operator: CompareOperator,
    left: Expression,
    right: Expression,
) -> Result<Expression> {
    let left = held::date_beside_date(typing, left, &right)?;
    let right = held::date_beside_date(typing, right, &left)?;
    compare_beside(typing, operator, left, right, Beside::Row)
}

/// As [`compare`], for a literal that may not be a date: it then becomes a zero date,
/// with a warning.
///
/// # Errors
/// 1267
pub(crate) fn compare_leniently(
    typing: &mut Typing<'_>,
    operator: CompareOperator,
    left: Expression,
    right: Expression,
) -> Result<Expression> {
    compare_beside(typing, operator, left, right, Beside::Value)
}

/// As [`compare_leniently`], for a value that is compared with several: a column of dates does not
/// read a number beside it as it would store it, nor does one of times cut the digits of a text.
///
/// # Errors
/// 1267
pub(crate) fn compare_in_list(
    typing: &mut Typing<'_>,
    operator: CompareOperator,
    left: Expression,
    right: Expression,
) -> Result<Expression> {
    let is_number = |side: &Expression| side.ty.kind.is_numeric();
    let is_time = |side: &Expression| matches!(side.ty.kind, TypeKind::Time { .. });
    let beside = match left.ty.kind.has_date() && is_number(&right)
        || is_number(&left) && right.ty.kind.has_date()
        || is_time(&left) && (right.ty.kind.is_text() || is_number(&right))
    {
        true => Beside::List,
        false => Beside::Value,
    };
    compare_beside(typing, operator, left, right, beside)
}

fn compare_beside(
    typing: &mut Typing<'_>,
    operator: CompareOperator,
    left: Expression,
    right: Expression,
    beside: Beside,
) -> Result<Expression> {
    let is_null_safe = operator == CompareOperator::NullSafeEqual;
    let is_shown_nullable = !is_null_safe
        && [&left, &right]
            .into_iter()
            .any(|side| is_literal(side) && nullable::shown_nullable(typing, side));
    let (kind, left, right) = comparable_beside(typing, operator, left, right, beside)?;
    // What stands before a NULL is evaluated, and may warn.
    let is_unread = |side: &Expression| {
        matches!(side.kind, ExpressionKind::Slot(_) | ExpressionKind::Literal(_))
    };
    if !is_null_safe && (is_null(&left) || is_null(&right) && is_unread(&left)) {
        return Ok(expression_builders::truth(None, true));
    }
    let nullable = !is_null_safe && (left.ty.nullable || right.ty.nullable);
    if let (ExpressionKind::Literal(one), ExpressionKind::Literal(two)) = (&left.kind, &right.kind)
    {
        let mut truth = compare_literals(operator, kind, one, two, nullable);
        truth.ty.before =
            expression_builders::worked_out(&truth.ty, display::TRUTH_CHARS, is_shown_nullable);
        return Ok(truth);
    }
    Ok(Expression {
        kind: ExpressionKind::Compare { operator, kind, sides: Box::new([left, right]) },
        ty: SqlType::boolean().with_nullable(nullable),
    })
}

/// `left = right` of values that are compared as documents, whatever their types.
pub(crate) fn equal_documents(
    typing: &mut Typing<'_>,
    left: Expression,
    right: Expression,
) -> Result<Expression> {
    let kind = ComparisonKind::Json;
    if [&left, &right].into_iter().any(is_null) {
        return Ok(expression_builders::truth(None, true));
    }
    let [left, right] = [left, right].map(|side| {
        let side = document_of_bytes(typing, side);
        let wanted = kind.operand_type(&side.ty);
        cast_to(typing, side, wanted)
    });
    let nullable = left.ty.nullable || right.ty.nullable;
    let operator = CompareOperator::Equal;
    let sides = Box::new([left, right]);
    Ok(Expression {
        kind: ExpressionKind::Compare { operator, kind, sides },
        ty: SqlType::boolean().with_nullable(nullable),
    })
}

/// The type in which two expressions are compared; both are converted for it.
///
/// # Errors
/// 1267
pub(crate) fn comparable(
    typing: &mut Typing<'_>,
    operator: CompareOperator,
    left: Expression,
    right: Expression,
) -> Result<(ComparisonKind, Expression, Expression)> {
    comparable_beside(typing, operator, left, right, Beside::Value)
}

/// As [`comparable`], for a value on the left that is searched in a list of which the right one is
/// an item.
///
/// # Errors
/// 1267
pub(crate) fn comparable_with_item(
    typing: &mut Typing<'_>,
    left: Expression,
    item: Expression,
) -> Result<(ComparisonKind, Expression, Expression)> {
    comparable_beside(typing, CompareOperator::Equal, left, item, Beside::List)
}

fn comparable_beside(
    typing: &mut Typing<'_>,
    operator: CompareOperator,
    left: Expression,
    right: Expression,
    beside: Beside,
) -> Result<(ComparisonKind, Expression, Expression)> {
    let (left, right) = parameter::inferred_pair(typing.context, left, right);
    let left = held::whole_as_written(typing, left, &right);
    let right = held::whole_as_written(typing, right, &left);
    let (left, right) = match beside {
        Beside::Value => {
            let left = held::document_beside(typing.context, left, &right);
            let right = held::document_beside(typing.context, right, &left);
            (left, right)
        }
        Beside::List | Beside::Row => (left, right),
    };
    let left = held::as_held(typing, as_column(left, &right, operator), &right, beside)?;
    let right = held::as_held(typing, as_column(right, &left, operator), &left, beside)?;
    let kind = comparison_kind(&left.ty, &right.ty, operator.text())?;
    let (left, right) = match kind {
        ComparisonKind::DateTime => {
            (held::date_of_text(typing, left)?, held::date_of_text(typing, right)?)
        }
        ComparisonKind::Json => (document_of_bytes(typing, left), document_of_bytes(typing, right)),
        _ => (left, right),
    };
    for side in [&left, &right] {
        held::suppose_text(typing, kind, side)?;
    }
    let (left, right) = (as_text_of(typing, kind, left)?, as_text_of(typing, kind, right)?);
    let (wanted_left, wanted_right) = (kind.operand_type(&left.ty), kind.operand_type(&right.ty));
    let (left, right) = (cast_to(typing, left, wanted_left), cast_to(typing, right, wanted_right));
    Ok((kind, unrounded(left), unrounded(right)))
}

/// Bytes and bits beside a document: they sort above all other documents, and are neither text
/// nor number.
fn document_of_bytes(typing: &Typing<'_>, side: Expression) -> Expression {
    let is_bytes = side.ty.kind.is_binary() || matches!(side.ty.kind, TypeKind::Bit { .. });
    if !is_bytes {
        return side;
    }
    let ty = SqlType::new(TypeKind::Json).with_nullable(side.ty.nullable);
    fold(typing, Expression { kind: ExpressionKind::Cast(Box::new(side)), ty })
}

/// Several expressions converted to their common type.
///
/// # Errors
/// 1267
pub(crate) fn unified(
    typing: &mut Typing<'_>,
    list: Vec<Expression>,
    operation: &str,
) -> Result<(Vec<Expression>, SqlType)> {
    let list = parameter::inferred_list(typing.context, list, None)?;
    let types: Vec<SqlType> = list.iter().map(|one| one.ty.clone()).collect();
    let ty = unify(&types, typing.context.evaluation.connection_collation, operation)?;
    let list = list.into_iter().map(|one| {
        // Numbers and times keep theirs, as in any cast that nobody wrote.
        let is_text = one.ty.kind.is_string() || one.ty.kind.is_enum_or_set();
        let coercibility = if is_text { ty.coercibility } else { Coercibility::Numeric };
        let wanted = ty.clone().with_nullable(one.ty.nullable).with_coercibility(coercibility);
        // A text that is written keeps its length. Bytes keep what they are as a number.
        let written = (is_literal(&one) && one.ty.kind.is_text()).then(|| before(typing, &one));
        let mut cast = cast_to(typing, one, wanted);
        if let Some(written) = written.filter(|_| is_literal(&cast)) {
            cast.ty.before = written;
        }
        cast
    });
    Ok((list.collect(), ty))
}

/// A side of a comparison as text: bytes that bind no stronger than the text beside them are read
/// as text, with error 3854 where they are none.
fn as_text_of(typing: &Typing<'_>, kind: ComparisonKind, side: Expression) -> Result<Expression> {
    refuse_no_text(kind, &side)?;
    let ComparisonKind::Text(collation) = kind else { return Ok(side) };
    let is_worked_out =
        side.ty.kind.is_binary() && !matches!(side.kind, ExpressionKind::Literal(_));
    if collation == CollationId::BINARY || !is_worked_out {
        return Ok(side);
    }
    let text = SqlType::varchar(side.ty.max_text_chars(), collation)
        .with_nullable(side.ty.nullable)
        .with_coercibility(side.ty.coercibility);
    Ok(decoded(typing, side, text))
}

/// Error 3854 for a constant beside text that has no such text in its character set: bytes that are
/// no text, or characters that the set has not.
pub(super) fn refuse_no_text(kind: ComparisonKind, side: &Expression) -> Result<()> {
    let (ComparisonKind::Text(id), ExpressionKind::Literal(Datum::Text(bytes))) =
        (kind, &side.kind)
    else {
        return Ok(());
    };
    let charset = collation::get(id).charset;
    let is_text = match side.ty.charset() {
        _ if charset == Charset::Binary => true,
        Some(Charset::Binary) => charset.decode(bytes).is_some(),
        Some(own) if own != charset => has_all(charset, bytes),
        _ => true,
    };
    match is_text {
        true => Ok(()),
        false => Err(SqlError::cannot_convert(bytes, charset.name())),
    }
}

fn is_literal(expression: &Expression) -> bool {
    matches!(expression.kind, ExpressionKind::Literal(_))
}

fn is_null(expression: &Expression) -> bool {
    matches!(expression.kind, ExpressionKind::Literal(Datum::Null))
}

fn compare_literals(
    operator: CompareOperator,
    kind: ComparisonKind,
    one: &Datum,
    two: &Datum,
    nullable: bool,
) -> Expression {
    let truth = match (one.is_null(), two.is_null(), operator) {
        (true, true, CompareOperator::NullSafeEqual) => Some(true),
        (true, _, CompareOperator::NullSafeEqual) | (_, true, CompareOperator::NullSafeEqual) => {
            Some(false)
        }
        _ => kind.compare(one, two).map(|ordering| operator.holds(ordering)),
    };
    expression_builders::truth(truth, nullable)
}

/// Text beside a column, converted to a value that the column holds where the result is the same: a
/// whole number beside integers (exact, unlike a double), the number of a name beside an enum.
fn as_column(value: Expression, other: &Expression, operator: CompareOperator) -> Expression {
    let ExpressionKind::Literal(Datum::Text(text)) = &value.kind else { return value };
    if !matches!(other.kind, ExpressionKind::Slot(_)) || !value.ty.kind.is_text() {
        return value;
    }
    if other.ty.kind.is_integer() {
        let Some(text) = std::str::from_utf8(text).ok().map(str::trim) else { return value };
        let large =
            |number| expression_builders::literal(Datum::UInt(number), SqlType::bigint_unsigned());
        let number = text.parse().ok().map(expression_builders::integer);
        let number = match other.ty.kind.is_unsigned() {
            true => number.or_else(|| text.parse().ok().map(large)),
            false => number,
        };
        return number.unwrap_or(value);
    }
    let is_equality = matches!(
        operator,
        CompareOperator::Equal | CompareOperator::NotEqual | CompareOperator::NullSafeEqual
    );
    match &other.ty.kind {
        TypeKind::Enum { members, collation } if is_equality => {
            let collation = firn_sql_collation::get(*collation);
            let mut names = members.names().iter();
            let ordinal = names.position(|name| collation.equal(name.as_bytes(), text));
            let number = |place: usize| Datum::UInt(place as u64 + 1);
            ordinal.map_or(value.clone(), |place| {
                expression_builders::literal(number(place), SqlType::bigint_unsigned())
            })
        }
        _ => value,
    }
}

/// Whether values of one type are values of the other without a change.
fn is_same_representation(from: &TypeKind, to: &TypeKind) -> bool {
    match (from, to) {
        (
            TypeKind::Integer { unsigned: one, width: narrow },
            TypeKind::Integer { unsigned: two, width: wide },
        ) => one == two && narrow.bytes() <= wide.bytes(),
        (TypeKind::Float, TypeKind::Double) => true,
        (
            TypeKind::Decimal { precision: few, scale: one, .. },
            TypeKind::Decimal { precision: many, scale: two, unsigned: false },
        ) => few <= many && one == two,
        (
            TypeKind::Char { collation: one, max_chars: few }
            | TypeKind::Varchar { collation: one, max_chars: few },
            TypeKind::Varchar { collation: two, max_chars: many },
        ) => one == two && few <= many,
        (from, TypeKind::Text { collation, .. }) if from.is_text() => {
            from.collation() == Some(*collation)
        }
        (TypeKind::Varbinary { max_bytes: few }, TypeKind::Varbinary { max_bytes: many }) => {
            few <= many
        }
        (from, TypeKind::Blob { .. }) if from.is_binary() => true,
        _ => false,
    }
}

/// Whether an expression is a cast to a number written in the statement; casts added for an
/// operation have the coercibility of numbers.
pub(super) fn is_written_cast(expression: &Expression) -> bool {
    let ty = &expression.ty;
    let is_cast = matches!(expression.kind, ExpressionKind::Cast(_));
    is_cast && ty.kind.is_numeric() && ty.coercibility == Coercibility::Implicit
}

fn retyped(from: SqlType, to: SqlType) -> SqlType {
    SqlType { kind: to.kind, coercibility: to.coercibility, ..from }
}
