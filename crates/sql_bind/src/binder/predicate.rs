//! Comparisons of rows, `IN`, `BETWEEN`, `CASE`.
//!
//! ```text
//!   (a, b) = (1, 2)     a = 1 AND b = 2
//!   (a, b) > (1, 2)     a > 1 OR (a = 1 AND b > 2)
//!   a BETWEEN x AND y   a >= x AND a <= y
//! ```

use firn_format::value::CollationId;

use firn_sql_functions::Volatility;
use firn_sql_grammar::ast::{CaseWhen, Expr};
use firn_sql_logical::PlanContext;
use firn_sql_logical::expression::volatility::is_row_dependent;
use firn_sql_logical::expression::{
    self, CompareOperator, Expression, ExpressionKind, IsTest, fold, visit,
};
use firn_sql_types::collate::{among_several, common_collation, comparison_collation};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{Coercibility, ComparisonKind, Datum, IntWidth, SqlType, TypeKind};

use super::function::json_truth;
use super::merge::is_large;
use super::{
    Binder, Frame, Typing, coerce, expression_builders, expressions, held, literal, parameter,
    subquery,
};

/// `left operator right`, also for rows.
pub(crate) fn comparison(
    binder: &mut Binder<'_>,
    left: &Expr,
    operator: CompareOperator,
    right: &Expr,
) -> Result<Expression> {
    if let Some(answer) = subquery::row_subquery_comparison(binder, left, operator, right)? {
        return Ok(answer);
    }
    let (one, two) =
        (subquery::bind_operand(binder, left)?, subquery::bind_operand(binder, right)?);
    let one_type = one.ty.clone();
    let one = literal::number_beside(binder.typing.context, one, &two.ty);
    let two = literal::number_beside(binder.typing.context, two, &one_type);
    let two = beside_document(&one, two, right);
    let one = beside_document(&two, one, left);
    let (one, two) = rows_beside_documents(one, two, left, right);
    let two = held::day_beside_date(&mut binder.typing, two, &one)?;
    let one = held::day_beside_date(&mut binder.typing, one, &two)?;
    compare_any(&mut binder.typing, operator, one, two)
}

/// The values of two rows, each as [`beside_document`] has it beside its counterpart.
fn rows_beside_documents(
    one: Expression,
    two: Expression,
    left: &Expr,
    right: &Expr,
) -> (Expression, Expression) {
    match (one.kind, two.kind, left, right) {
        (
            ExpressionKind::Row(ones),
            ExpressionKind::Row(twos),
            Expr::Tuple(lefts),
            Expr::Tuple(rights),
        ) if ones.len() == twos.len()
            && lefts.len() == ones.len()
            && rights.len() == twos.len() =>
        {
            let written = lefts.iter().zip(rights);
            let pairs = ones.into_iter().zip(twos).zip(written);
            let pairs = pairs.map(|((one, two), (left, right))| {
                let two = beside_document(&one, two, right);
                (beside_document(&two, one, left), two)
            });
            let (ones, twos) = pairs.unzip();
            let row = |list, ty| Expression { kind: ExpressionKind::Row(list), ty };
            (row(ones, one.ty), row(twos, two.ty))
        }
        (kind, other, ..) => {
            (Expression { kind, ty: one.ty }, Expression { kind: other, ty: two.ty })
        }
    }
}

/// `left operator right` of values or rows.
pub(crate) fn compare_any(
    typing: &mut Typing<'_>,
    operator: CompareOperator,
    left: Expression,
    right: Expression,
) -> Result<Expression> {
    match (left.kind, right.kind) {
        (ExpressionKind::Row(left), ExpressionKind::Row(right)) => {
            compare_rows(typing, operator, left, right)
        }
        (ExpressionKind::Row(row), _) | (_, ExpressionKind::Row(row)) => {
            Err(wrong_columns(row.len()))
        }
        (one, two) => {
            let left = Expression { kind: one, ty: left.ty };
            let right = Expression { kind: two, ty: right.ty };
            coerce::compare(typing, operator, left, right)
        }
    }
}

fn compare_rows(
    typing: &mut Typing<'_>,
    operator: CompareOperator,
    left: Vec<Expression>,
    right: Vec<Expression>,
) -> Result<Expression> {
    if left.len() != right.len() {
        return Err(wrong_columns(left.len()));
    }
    let pairs = left.into_iter().zip(right);
    match operator {
        CompareOperator::Equal | CompareOperator::NullSafeEqual => {
            let all = pairs.map(|(one, two)| compare_any(typing, operator, one, two));
            Ok(expression::and(all.collect::<Result<_>>()?))
        }
        CompareOperator::NotEqual => {
            let any = pairs.map(|(one, two)| compare_any(typing, operator, one, two));
            Ok(expression::or(any.collect::<Result<_>>()?))
        }
        _ => compare_lexically(typing, operator, pairs.collect()),
    }
}

fn compare_lexically(
    typing: &mut Typing<'_>,
    operator: CompareOperator,
    mut pairs: Vec<(Expression, Expression)>,
) -> Result<Expression> {
    let strict = match operator {
        CompareOperator::LessOrEqual => CompareOperator::Less,
        CompareOperator::GreaterOrEqual => CompareOperator::Greater,
        strict => strict,
    };
    // MySQL evaluates the constants of both rows, even if the values before them decide.
    for constant in pairs.iter().flat_map(|(left, right)| [left, right]) {
        let told = fold::warnings_of_constant(constant, typing.context.evaluation)?;
        typing.context.conditions.borrow_mut().extend(told);
    }
    let Some((left, right)) = pairs.pop() else { return Err(wrong_columns(0)) };
    let mut answer = compare_in_rows(typing, operator, left, right)?;
    while let Some((left, right)) = pairs.pop() {
        let (left, left_again) = for_several(&mut typing.frame, left);
        let (right, right_again) = for_several(&mut typing.frame, right);
        let before = compare_in_rows(typing, strict, left, right)?;
        let equal = compare_in_rows(typing, CompareOperator::Equal, left_again, right_again)?;
        let both = match is_bare(&answer) {
            true => vec![equal, answer],
            // A first value that is NULL decides, so that the others do not warn.
            false => {
                let is_equal = expression_builders::is(equal.clone(), IsTest::True, false);
                vec![equal, is_equal, answer]
            }
        };
        answer = expression::or(vec![before, expression::and(both)]);
    }
    Ok(answer)
}

/// The values at one place of two rows, of which one is before the other; rows at that place too.
fn compare_in_rows(
    typing: &mut Typing<'_>,
    operator: CompareOperator,
    left: Expression,
    right: Expression,
) -> Result<Expression> {
    let is_row = |side: &Expression| matches!(side.kind, ExpressionKind::Row(_));
    match is_row(&left) || is_row(&right) {
        true => compare_any(typing, operator, left, right),
        false => coerce::compare_in_rows(typing, operator, left, right),
    }
}

/// Whether a condition compares only columns and constants as they are.
fn is_bare(condition: &Expression) -> bool {
    let is_bare_side = |side: &Expression| {
        matches!(
            side.kind,
            ExpressionKind::Slot(_) | ExpressionKind::Literal(_) | ExpressionKind::Parameter(_)
        )
    };
    match &condition.kind {
        ExpressionKind::Literal(_) => true,
        ExpressionKind::Compare { sides, .. } => sides.iter().all(is_bare_side),
        ExpressionKind::And(list) | ExpressionKind::Or(list) => list.iter().all(is_bare),
        _ => false,
    }
}

pub(crate) fn in_list(
    binder: &mut Binder<'_>,
    operand: &Expr,
    list: &[Expr],
    negated: bool,
) -> Result<Expression> {
    let written_operand = operand;
    let operand = subquery::bind_operand(binder, operand)?;
    let items = expressions::bind_all(binder, list)?;
    let operand = match items.iter().find(|item| item.ty.kind == TypeKind::Json) {
        Some(document) => beside_document(document, operand, written_operand),
        None => operand,
    };
    let items = items.into_iter().zip(list);
    let list = items.map(|(item, written)| {
        let item = literal::number_beside(binder.typing.context, item, &operand.ty);
        beside_document(&operand, item, written)
    });
    let list = list.collect();
    if let ExpressionKind::Row(_) = operand.kind {
        return in_any(&mut binder.typing, operand, list, negated);
    }
    let three = types_of_three(&operand, &list);
    let count = list.len() + 1;
    in_singles(&mut binder.typing, operand, list, negated)
        .map_err(|error| among_several(error, &three, count, " IN "))
}

/// `IN` for values that are not rows.
fn in_singles(
    typing: &mut Typing<'_>,
    operand: Expression,
    list: Vec<Expression>,
    negated: bool,
) -> Result<Expression> {
    let list = list.into_iter().map(expression_builders::single).collect::<Result<Vec<_>>>()?;
    if let [_] = list.as_slice() {
        let operator = if negated { CompareOperator::NotEqual } else { CompareOperator::Equal };
        let only = list.into_iter().next().unwrap_or_else(expression_builders::null);
        return coerce::compare(typing, operator, operand, only);
    }
    one_collation(&operand, &list, "in")?;
    let list = beside_whole(typing, &operand, list);
    held::warn_of_numbers(typing, &operand.ty.kind, &list);
    if operand.ty.kind == TypeKind::Json && list.iter().any(|item| item.ty.kind.is_string()) {
        return in_any(typing, operand, list, negated);
    }
    if is_literal_beside_dates(&operand, &list) {
        return any_equal(typing, operand, list, negated, equal_leniently);
    }
    if are_moments(&operand, &list) {
        let operand = moment(typing, operand)?;
        let list = list.into_iter().map(|item| moment(typing, item)).collect::<Result<_>>()?;
        return in_values(typing, operand, list, negated);
    }
    if are_times(typing.context, &operand, &list) {
        return in_times(typing, operand, list, negated);
    }
    if !matches!(operand.ty.kind, TypeKind::Json | TypeKind::Null)
        && list.iter().any(|item| item.ty.kind == TypeKind::Json)
    {
        // The first item decides how all are compared.
        let as_documents = list.first().is_some_and(|first| {
            first.ty.kind == TypeKind::Json || matches!(first.kind, ExpressionKind::Literal(_))
        });
        let equal = if as_documents { coerce::equal_documents } else { equal_by_class };
        return any_equal(typing, operand, list, negated, equal);
    }
    if are_unlike(&operand, &list) {
        return any_equal(typing, operand, list, negated, equal_by_class);
    }
    let operand = beside_all(typing, operand, &list, "in")?;
    in_values(typing, operand, list, negated)
}

/// The items of a list in which a whole number is searched. If all of them are texts that are
/// written, they are read as whole numbers too.
fn beside_whole(
    typing: &mut Typing<'_>,
    operand: &Expression,
    list: Vec<Expression>,
) -> Vec<Expression> {
    let is_literal = |one: &Expression| matches!(one.kind, ExpressionKind::Literal(_));
    let is_whole = is_literal(operand) && matches!(operand.ty.kind, TypeKind::Integer { .. });
    if !is_whole || !list.iter().all(|item| is_literal(item) && item.ty.kind.is_text()) {
        return list;
    }
    let read = |item: Expression| {
        let nullable = item.ty.nullable;
        coerce::cast_to(typing, item, SqlType::bigint().with_nullable(nullable))
    };
    list.into_iter().map(read).collect()
}

/// Whether a time is searched among texts, or a text among times: all are compared as times then.
/// A column of times beside constants that it could store needs nothing for it.
fn are_times(context: &PlanContext<'_>, operand: &Expression, list: &[Expression]) -> bool {
    let is_time = |one: &Expression| matches!(one.ty.kind, TypeKind::Time { .. });
    let is_plain = |one: &Expression| {
        let kind = &one.ty.kind;
        let is_other = matches!(kind, TypeKind::Null | TypeKind::Geometry | TypeKind::Json);
        class(&one.ty) == Class::Text && !is_other
    };
    let stores_all = matches!(operand.kind, ExpressionKind::Slot(_))
        && list.iter().all(|one| is_time(one) || held::is_time(context, one));
    match is_time(operand) {
        true => {
            let has_document = list.iter().any(|one| one.ty.kind == TypeKind::Json);
            !stores_all && !has_document && list.iter().any(|one| is_plain(one) && !is_time(one))
        }
        false => {
            is_plain(operand)
                && !operand.ty.kind.has_date()
                && list.iter().any(is_time)
                && list.iter().all(|one| is_plain(one) && !one.ty.kind.has_date())
        }
    }
}

/// `IN` for what [`are_times`].
fn in_times(
    typing: &mut Typing<'_>,
    operand: Expression,
    list: Vec<Expression>,
    negated: bool,
) -> Result<Expression> {
    let are_plain =
        list.iter().all(|one| one.ty.kind == TypeKind::Null || class(&one.ty) == Class::Text);
    if !are_plain {
        return any_equal(typing, operand, list, negated, equal_by_class);
    }
    let in_constants = list.iter().all(is_constant);
    let operand = time_of_value(typing, operand, false)?;
    let list = list.into_iter().map(|item| time_of_value(typing, item, in_constants));
    let list = list.collect::<Result<Vec<_>>>()?;
    in_values(typing, operand, list, negated)
}

/// A value that is compared with a time: a moment has one, and of anything else the text is read as
/// far as it is one. `in_constants`: it is an item of a list of constants.
fn time_of_value(
    typing: &mut Typing<'_>,
    value: Expression,
    in_constants: bool,
) -> Result<Expression> {
    let value = match value.kind {
        ExpressionKind::Parameter(_) => held::as_written(typing, value),
        _ => value,
    };
    match value.ty.kind {
        TypeKind::Null | TypeKind::Time { .. } => Ok(value),
        TypeKind::DateTime { fsp } | TypeKind::Timestamp { fsp } => {
            let ty = SqlType::new(TypeKind::Time { fsp }).with_nullable(value.ty.nullable);
            Ok(coerce::cast_to(typing, value, ty))
        }
        _ => {
            let arguments =
                vec![as_text(typing, value), expression_builders::integer(in_constants.into())];
            expression_builders::call(typing, "TIME OF TEXT", arguments)
        }
    }
}

/// Whether a text or a time is searched in a list that has a date and is not constant: all of them
/// are compared as dates then, and what is no date is the zero date.
fn are_moments(operand: &Expression, list: &[Expression]) -> bool {
    let is_plain =
        |one: &Expression| one.ty.kind != TypeKind::Json && class(&one.ty) == Class::Text;
    let has_date = list.iter().any(|item| item.ty.kind.has_date());
    has_date
        && !operand.ty.kind.has_date()
        && !list.iter().all(is_constant)
        && is_plain(operand)
        && list.iter().all(is_plain)
}

/// Whether a literal text is searched in a constant list that has a date: it need not be one.
fn is_literal_beside_dates(operand: &Expression, list: &[Expression]) -> bool {
    matches!(operand.kind, ExpressionKind::Literal(_))
        && operand.ty.kind.is_string()
        && list.iter().all(is_constant)
        && list.iter().any(|item| item.ty.kind.has_date())
        && list.iter().all(|item| class(&item.ty) == Class::Text)
}

fn equal_leniently(
    typing: &mut Typing<'_>,
    operand: Expression,
    item: Expression,
) -> Result<Expression> {
    coerce::compare_leniently(typing, CompareOperator::Equal, operand, item)
}

/// A value among dates that are compared with each other: a text that is no date is the zero date.
fn moment(typing: &mut Typing<'_>, value: Expression) -> Result<Expression> {
    let value = match value.ty.kind {
        TypeKind::Json => as_text(typing, value),
        _ => value,
    };
    match &value.ty.kind {
        TypeKind::Null => Ok(value),
        TypeKind::Time { fsp } => {
            let ty =
                SqlType::new(TypeKind::DateTime { fsp: *fsp }).with_nullable(value.ty.nullable);
            Ok(coerce::cast_to(typing, value, ty))
        }
        kind if kind.has_date() => Ok(value),
        _ => held::date_of_text(typing, value),
    }
}

/// Whether the items of a list are compared with the operand in several ways. A document among them
/// is compared as one, and a column of numbers as `=` does, so that its index stays usable.
fn are_unlike(operand: &Expression, list: &[Expression]) -> bool {
    let of = &operand.ty;
    if matches!(of.kind, TypeKind::Json | TypeKind::Null) {
        return false;
    }
    let mut known = list.iter().filter(|item| item.ty.kind != TypeKind::Null);
    let has_document = known.clone().any(|item| item.ty.kind == TypeKind::Json);
    let is_number = matches!(operand.kind, ExpressionKind::Slot(_)) && of.kind.is_numeric();
    if has_document || is_number {
        return false;
    }
    let pair = |item: &Expression| {
        let one = class(&item.ty);
        if one == class(of) { one } else { Class::Double }
    };
    let first = known.next().map(pair);
    known.any(|item| Some(pair(item)) != first)
}

/// All items compared in one way, if they have the same comparison; otherwise an `OR` of
/// comparisons.
fn in_values(
    typing: &mut Typing<'_>,
    operand: Expression,
    list: Vec<Expression>,
    negated: bool,
) -> Result<Expression> {
    let mut kind: Option<ComparisonKind> = None;
    let mut items = Vec::with_capacity(list.len());
    let mut operand = operand;
    // In a list, a two-digit year is that number.
    operand = number_of_year(operand);
    let list = match is_constant(&operand) {
        true => list.into_iter().map(number_of_year).collect(),
        false => list,
    };
    let mut left = operand.clone();
    for item in &list {
        if matches!(item.kind, ExpressionKind::Literal(Datum::Null)) {
            items.push(item.clone());
            continue;
        }
        let compared = coerce::comparable_with_item(typing, operand.clone(), item.clone());
        let (this, this_left, item) = compared?;
        let is_same_left = kind.is_none() || left.ty.kind == this_left.ty.kind;
        if kind.is_some_and(|kind| kind != this) || !is_same_left {
            return in_any(typing, operand, list, negated);
        }
        kind = Some(this);
        left = this_left;
        items.push(item);
    }
    let kind = kind.unwrap_or_else(|| firn_sql_types::compare::own_kind(&operand.ty));
    if kind == ComparisonKind::Integer && !items.iter().all(is_constant) {
        (left, items) = (as_bits(typing, left), all_as_bits(typing, items));
    }
    let nullable = left.ty.nullable || items.iter().any(|item| item.ty.nullable);
    Ok(Expression {
        kind: ExpressionKind::InList { operand: Box::new(left), list: items, kind, negated },
        ty: SqlType::boolean().with_nullable(nullable),
    })
}

/// An `OR` of comparisons, each in its own way; also for rows.
fn in_any(
    typing: &mut Typing<'_>,
    operand: Expression,
    list: Vec<Expression>,
    negated: bool,
) -> Result<Expression> {
    any_equal(typing, operand, list, negated, |typing, operand, item| {
        let is_number_beside = |one: &Expression, other: &Expression| {
            one.ty.kind.is_temporal() && other.ty.kind.is_numeric()
        };
        // A number in a list is not read as a column of dates or times would store it.
        match is_number_beside(&operand, &item) || is_number_beside(&item, &operand) {
            true => coerce::compare_in_list(typing, CompareOperator::Equal, operand, item),
            false => compare_any(typing, CompareOperator::Equal, operand, item),
        }
    })
}

/// An `OR` of what `equal` makes of the operand and each item.
fn any_equal(
    typing: &mut Typing<'_>,
    operand: Expression,
    list: Vec<Expression>,
    negated: bool,
    equal: fn(&mut Typing<'_>, Expression, Expression) -> Result<Expression>,
) -> Result<Expression> {
    let (first, again) = for_several(&mut typing.frame, operand);
    let mut first = Some(first);
    let any = list
        .into_iter()
        .map(|item| {
            typing.context.watch.step()?;
            let operand = first.take().unwrap_or_else(|| again.clone());
            let (operand, item) = both_as_bits(typing, operand, item);
            equal(typing, operand, item)
        })
        .collect::<Result<Vec<_>>>()?;
    let any = expression::or(any);
    Ok(if negated { expressions::negated(any) } else { any })
}

pub(crate) fn between(
    binder: &mut Binder<'_>,
    operand: &Expr,
    negated: bool,
    low: &Expr,
    high: &Expr,
) -> Result<Expression> {
    let operand = expressions::bind_single(binder, operand)?;
    let ends: [Result<Expression>; 2] = [low, high].map(|end| {
        let bound = expressions::bind_single(binder, end)?;
        Ok(literal::number_beside(binder.typing.context, bound, &operand.ty))
    });
    let [low, high] = ends;
    let list = vec![operand, low?, high?];
    let mut list = parameter::inferred_list(binder.typing.context, list, None)?.into_iter();
    let mut next = || list.next().unwrap_or_else(expression_builders::null);
    let (operand, ends) = (next(), [next(), next()]);
    let three = types_of_three(&operand, &ends);
    between_ends(&mut binder.typing, operand, ends, negated)
        .map_err(|error| among_several(error, &three, 3, "between"))
}

fn between_ends(
    typing: &mut Typing<'_>,
    operand: Expression,
    ends: [Expression; 2],
    negated: bool,
) -> Result<Expression> {
    if !ends.iter().any(|end| end.ty.kind.is_numeric()) {
        one_collation(&operand, &ends, "between")?;
    }
    let (operand, ends) = of_one_domain(typing, operand, ends)?;
    let ends = if is_constant(&operand) { ends.map(number_of_year) } else { ends };
    // A column of times stores no constant that stands between its times: the texts are compared.
    let is_text = is_constant(&operand) && operand.ty.kind.is_text();
    let ends = ends.map(|end| match (&end.kind, &end.ty.kind) {
        (ExpressionKind::Slot(_), TypeKind::Time { .. }) if is_text => as_text(typing, end),
        _ => end,
    });
    let operand = beside_all(typing, operand, &ends, "between")?;
    let [low, high] = ends;
    let (first, again) = for_two(&mut typing.frame, operand);
    let is_kept = matches!(first.kind, ExpressionKind::Keep { .. });
    let from = coerce::compare_leniently(typing, CompareOperator::GreaterOrEqual, first, low)?;
    let to = coerce::compare_leniently(typing, CompareOperator::LessOrEqual, again, high)?;
    let mut both = and_whole(typing, from, to)?;
    if is_kept {
        // In one piece, so that the two sides stay together and in order.
        let ty = both.ty.clone();
        both = Expression { kind: ExpressionKind::Coalesce(vec![both]), ty };
    }
    Ok(if negated { expressions::negated(both) } else { both })
}

/// `from AND to`; where the upper bound has to be worked out for each row, it is worked out even if
/// the lower one has decided, as in MySQL: it may warn. Neither an index nor the vectorised engine
/// knows such a condition, so it is made only where it can matter.
fn and_whole(typing: &mut Typing<'_>, from: Expression, to: Expression) -> Result<Expression> {
    let is_worked_out = match &to.kind {
        ExpressionKind::Compare { sides, .. } => {
            let bound = &sides[1];
            !matches!(bound.kind, ExpressionKind::Slot(_)) && !is_constant(bound) && may_warn(bound)
        }
        _ => false,
    };
    if !is_worked_out {
        return Ok(expression::and(vec![from, to]));
    }
    let both = expression_builders::call(typing, "BOTH", vec![from, to])?;
    // A truth value as any other.
    let ty = both.ty.clone();
    Ok(Expression { kind: ExpressionKind::And(vec![both]), ty })
}

/// Whether an expression may warn, or differs between rows. One of numbers and dates without
/// division does neither.
fn may_warn(expression: &Expression) -> bool {
    visit::any(expression, &|one| match &one.kind {
        ExpressionKind::Literal(_) | ExpressionKind::Parameter(_) => {
            !one.ty.kind.is_numeric() && !one.ty.kind.is_temporal()
        }
        ExpressionKind::Call { function, .. } => {
            function.volatility != Volatility::Pure || matches!(function.name, "/" | "DIV" | "%")
        }
        ExpressionKind::Cast(_) => false,
        _ => true,
    })
}

/// The operand and the bounds of a `BETWEEN`, which is one comparison of three values: a text
/// or a date between a number and something else is a number, and beside a date, a text or a time
/// is a date.
fn of_one_domain(
    typing: &mut Typing<'_>,
    operand: Expression,
    ends: [Expression; 2],
) -> Result<(Expression, [Expression; 2])> {
    let [low, high] = ends;
    let is_number = |one: &Expression| one.ty.kind.is_numeric();
    let is_plain = |one: &Expression| {
        one.ty.kind.is_string() || one.ty.kind.is_temporal() || one.ty.kind.is_enum_or_set()
    };
    let ranges_over_column = matches!(operand.kind, ExpressionKind::Slot(_))
        && operand.ty.kind.is_temporal()
        && is_constant(&low)
        && is_constant(&high);
    let one_number = is_number(&low) && is_plain(&high) || is_plain(&low) && is_number(&high);
    if is_plain(&operand) && one_number && !ranges_over_column {
        for bound in [&low, &high] {
            // A column of dates warns of a number that it would not store.
            if is_constant(bound) {
                held::number_as_held(typing, bound.clone(), &operand)?;
            }
        }
        let mut as_double = |one: Expression| {
            let ty = SqlType::double().with_nullable(one.ty.nullable);
            coerce::cast_to(typing, one, ty)
        };
        return Ok((as_double(operand), [as_double(low), as_double(high)]));
    }
    if is_number(&operand) && is_constant(&operand) {
        // A constant is not read as a date for the sake of a column that bounds it.
        let (low, high) = (number_of_moment(typing, low), number_of_moment(typing, high));
        return Ok((operand, [low, high]));
    }
    let all = [&operand, &low, &high];
    let any = |test: fn(&TypeKind) -> bool| all.iter().any(|one| test(&one.ty.kind));
    let is_text = |kind: &TypeKind| !kind.is_temporal();
    let are_plain = all.iter().all(|one| is_plain(one) || one.ty.kind == TypeKind::Json);
    if are_plain && any(TypeKind::has_date) && any(is_text) {
        let (low, high) = (moment(typing, low)?, moment(typing, high)?);
        return Ok((moment(typing, operand)?, [low, high]));
    }
    Ok((operand, [low, high]))
}

/// A year as a number, beside which a number of two digits is no year.
fn number_of_year(year: Expression) -> Expression {
    if year.ty.kind != TypeKind::Year {
        return year;
    }
    let kind = TypeKind::Integer { width: IntWidth::Two, unsigned: true };
    let ty = SqlType { kind, ..year.ty.clone() };
    match year.kind {
        // What is cast may be no year.
        ExpressionKind::Cast(_) => Expression { kind: ExpressionKind::Cast(Box::new(year)), ty },
        kind => Expression { kind, ty },
    }
}

/// The number of a column of dates or times.
fn number_of_moment(typing: &mut Typing<'_>, bound: Expression) -> Expression {
    const MOMENT_DIGITS: u8 = 14;
    if !matches!(bound.kind, ExpressionKind::Slot(_)) || !bound.ty.kind.is_temporal() {
        return bound;
    }
    let ty = match bound.ty.kind.fsp() {
        0 => SqlType::bigint(),
        fsp => SqlType::decimal(MOMENT_DIGITS + fsp, fsp),
    };
    let nullable = bound.ty.nullable;
    coerce::cast_to(typing, bound, ty.with_nullable(nullable))
}

/// A text with a collation, with the same coercibility as its own.
fn under(typing: &mut Typing<'_>, side: Expression, collation: CollationId) -> Expression {
    if side.ty.collation() == Some(collation) {
        return side;
    }
    let ty = match collation {
        // Bytes are compared, whatever the text's collation.
        CollationId::BINARY => {
            SqlType::new(TypeKind::Varbinary { max_bytes: side.ty.max_text_bytes() })
        }
        _ => SqlType::varchar(side.ty.max_text_chars(), collation),
    };
    let ty = ty.with_nullable(side.ty.nullable).with_coercibility(side.ty.coercibility);
    coerce::cast_to(typing, side, ty)
}

/// A text with the collation in which it is compared with each of several texts: one collation
/// for all pairs.
fn beside_all(
    typing: &mut Typing<'_>,
    operand: Expression,
    others: &[Expression],
    operation: &str,
) -> Result<Expression> {
    let is_text = |one: &Expression| one.ty.kind.is_string() || one.ty.kind.is_enum_or_set();
    if !is_text(&operand) || !others.iter().all(is_text) {
        return Ok(operand);
    }
    let types = std::iter::once(&operand).chain(others).map(|one| &one.ty);
    let Some(collation) = common_collation(types, operation)? else { return Ok(operand) };
    let of_pair = |other: &Expression| comparison_collation(&operand.ty, &other.ty, operation).ok();
    if others.iter().all(|one| of_pair(one) == Some(collation)) {
        return Ok(operand);
    }
    let mut operand = under(typing, operand, collation);
    operand.ty.coercibility = Coercibility::Explicit;
    Ok(operand)
}

/// Refuses texts that have no common collation, though dates beside them may decide how they are
/// compared. Beside a number, each is one.
fn one_collation(operand: &Expression, others: &[Expression], operation: &str) -> Result<()> {
    let is_text = |one: &Expression| {
        let is_other = matches!(one.ty.kind, TypeKind::Null | TypeKind::Geometry | TypeKind::Json);
        class(&one.ty) == Class::Text && !is_other
    };
    if !is_text(operand) || !others.iter().any(is_text) {
        return Ok(());
    }
    let texts = std::iter::once(operand).chain(others).map(|one| &one.ty);
    let texts = texts.filter(|ty| ty.kind.is_string() || ty.kind.is_enum_or_set());
    common_collation(texts, operation).map(drop)
}

/// The value as text, as it is written.
pub(crate) fn as_text(typing: &mut Typing<'_>, expression: Expression) -> Expression {
    if expression.ty.kind.is_string() {
        return expression;
    }
    if let TypeKind::Bit { .. } = expression.ty.kind {
        let ty = SqlType::varbinary(expression.ty.max_text_chars())
            .with_nullable(expression.ty.nullable)
            .with_coercibility(Coercibility::Implicit);
        return coerce::cast_to(typing, expression, ty);
    }
    let collation =
        expression.ty.collation().unwrap_or(typing.context.evaluation.connection_collation);
    // A number binds like one, also if a cast to it is written.
    let coercibility = match expression.ty.kind.is_numeric() {
        true => Coercibility::Numeric,
        false => expression.ty.coercibility,
    };
    let ty = SqlType::varchar(expression.ty.max_text_chars(), collation)
        .with_nullable(expression.ty.nullable)
        .with_coercibility(coercibility);
    coerce::cast_to(typing, expression, ty)
}

pub(crate) fn case(
    binder: &mut Binder<'_>,
    operand: Option<&Expr>,
    conditions: &[CaseWhen],
    otherwise: Option<&Expr>,
) -> Result<Expression> {
    let operand = operand.map(|operand| expressions::bind_single(binder, operand)).transpose()?;
    let (mut operand, again) = match operand {
        Some(operand) => {
            let (first, again) = for_two(&mut binder.typing.frame, operand);
            (Some(first), Some(again))
        }
        None => (None, None),
    };
    let mut tests = Vec::with_capacity(conditions.len());
    let mut values = Vec::with_capacity(conditions.len() + 1);
    for CaseWhen { condition: written, result } in conditions {
        tests.push(match operand.take().or_else(|| again.clone()) {
            Some(operand) => {
                let bound = expressions::bind(binder, written)?;
                let context = binder.typing.context;
                let condition = literal::number_beside(context, bound, &operand.ty);
                let operand = literal::number_beside(context, operand, &condition.ty);
                case_test(&mut binder.typing, operand, condition)?
            }
            None => expressions::test(binder, written)?,
        });
        values.push(expressions::bind_single(binder, result)?);
    }
    let otherwise =
        otherwise.map(|otherwise| expressions::bind_single(binder, otherwise)).transpose()?;
    case_of(&mut binder.typing, tests, values, otherwise)
}

/// `CASE operand WHEN value`: beside dates, a value that is not a date is equal to none.
fn case_test(
    typing: &mut Typing<'_>,
    operand: Expression,
    value: Expression,
) -> Result<Expression> {
    match (&operand.kind, &value.kind) {
        (ExpressionKind::Row(_), _) | (_, ExpressionKind::Row(_)) => {
            compare_any(typing, CompareOperator::Equal, operand, value)
        }
        _ => {
            let (operand, value) = both_as_bits(typing, operand, value);
            equal_by_class(typing, operand, value)
        }
    }
}

/// What MySQL sorts types into where it compares one value with several.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Text,
    Exact,
    Double,
}

fn class(ty: &SqlType) -> Class {
    match ty.kind {
        TypeKind::Float | TypeKind::Double => Class::Double,
        ref kind if kind.is_numeric() || *kind == TypeKind::Year => Class::Exact,
        TypeKind::Bit { .. } => Class::Exact,
        _ => Class::Text,
    }
}

/// `operand = value` in `CASE` and in lists of unlike types: unlike classes are compared as
/// doubles, beside a time all other values are times, and a date, a document or a text is a text
/// beside another one unless the operand is a date.
fn equal_by_class(
    typing: &mut Typing<'_>,
    operand: Expression,
    value: Expression,
) -> Result<Expression> {
    let is_known = |one: &Expression| {
        !matches!(one.ty.kind, TypeKind::Null | TypeKind::Geometry)
            && !matches!(one.kind, ExpressionKind::Parameter(_))
    };
    let known = is_known(&operand) && is_known(&value);
    let (operand, value) = match (class(&operand.ty), class(&value.ty)) {
        _ if !known => (operand, value),
        // A document is read as the date that its text may be.
        (Class::Text, Class::Text)
            if operand.ty.kind.has_date() && value.ty.kind == TypeKind::Json =>
        {
            let text = as_text(typing, value);
            (operand, text)
        }
        (Class::Text, Class::Text)
            if matches!(operand.ty.kind, TypeKind::Time { .. })
                && !(matches!(operand.kind, ExpressionKind::Slot(_))
                    && held::is_time(typing.context, &value)) =>
        {
            let time = time_of_value(typing, value, false)?;
            (operand, time)
        }
        (Class::Text, Class::Text) if operand.ty.kind.is_temporal() => (operand, value),
        (Class::Text, Class::Text) if operand.ty.kind == value.ty.kind => (operand, value),
        (Class::Text, Class::Text) => (as_text(typing, operand), as_text(typing, value)),
        (one, other) if one != other => {
            let mut double = |one: Expression| {
                let ty = SqlType::double().with_nullable(one.ty.nullable);
                coerce::cast_to(typing, one, ty)
            };
            (double(operand), double(value))
        }
        _ => (operand, value),
    };
    coerce::compare_in_list(typing, CompareOperator::Equal, operand, value)
}

/// An integer as `CASE`, and `IN` with a list that is not constant, compare it: by its 64 bits,
/// so -1 is equal to the largest unsigned number.
fn as_bits(typing: &mut Typing<'_>, integer: Expression) -> Expression {
    let is_large = matches!(
        integer.ty.kind,
        TypeKind::Integer { width: IntWidth::Eight, unsigned: true } | TypeKind::Bit { .. }
    );
    match is_large {
        true => {
            let ty = SqlType::bigint().with_nullable(integer.ty.nullable);
            coerce::cast_to(typing, integer, ty)
        }
        false => integer,
    }
}

/// As [`as_bits`], for both sides of a comparison; values that are not integers stay as
/// they are.
fn both_as_bits(
    typing: &mut Typing<'_>,
    left: Expression,
    right: Expression,
) -> (Expression, Expression) {
    match left.ty.kind.is_integer() && right.ty.kind.is_integer() {
        true => (as_bits(typing, left), as_bits(typing, right)),
        false => (left, right),
    }
}

fn all_as_bits(typing: &mut Typing<'_>, integers: Vec<Expression>) -> Vec<Expression> {
    integers.into_iter().map(|one| as_bits(typing, one)).collect()
}

/// An operand that an expression uses in several places, the first of which is always evaluated
/// before the others. An operand whose value may change between evaluations is kept, and so is
/// a large one.
pub(crate) fn for_two(frame: &mut Frame, operand: Expression) -> (Expression, Expression) {
    if !is_row_dependent(&operand) && !is_large(&operand) {
        return (operand.clone(), operand);
    }
    let (slot, ty) = (frame.new_slot(None), operand.ty.clone());
    let kept = Expression { kind: ExpressionKind::Kept(slot), ty: ty.clone() };
    let kind = ExpressionKind::Keep { slot, value: Box::new(operand) };
    (Expression { kind, ty }, kept)
}

/// As [`for_two`], also for rows.
fn for_several(frame: &mut Frame, operand: Expression) -> (Expression, Expression) {
    match operand.kind {
        ExpressionKind::Row(list) => {
            let (first, again) = list.into_iter().map(|one| for_several(frame, one)).unzip();
            let row = |list| Expression { kind: ExpressionKind::Row(list), ty: SqlType::null() };
            (row(first), row(again))
        }
        kind => {
            let operand = Expression { kind, ty: operand.ty };
            if is_large(&operand) { for_two(frame, operand) } else { (operand.clone(), operand) }
        }
    }
}

/// The value of the first true test.
pub(crate) fn case_of(
    typing: &mut Typing<'_>,
    tests: Vec<Expression>,
    mut values: Vec<Expression>,
    otherwise: Option<Expression>,
) -> Result<Expression> {
    let has_otherwise = otherwise.is_some();
    values.extend(otherwise);
    let (mut values, ty) = coerce::unified(typing, values, "case")?;
    let otherwise = if has_otherwise { values.pop().map(Box::new) } else { None };
    let nullable = ty.nullable || !has_otherwise;
    let branches = tests.into_iter().zip(values).collect();
    Ok(Expression {
        kind: ExpressionKind::Case { branches, otherwise },
        ty: ty.with_nullable(nullable),
    })
}

/// A value to be compared with another one: beside a document, a truth value is a document too, not
/// a number.
pub(super) fn beside_document(other: &Expression, value: Expression, written: &Expr) -> Expression {
    match other.ty.kind == TypeKind::Json && value.ty.kind != TypeKind::Json {
        true => json_truth(value, written),
        false => value,
    }
}

fn is_constant(expression: &Expression) -> bool {
    matches!(expression.kind, ExpressionKind::Literal(_) | ExpressionKind::Parameter(_))
}

/// The types of three operands, for a message; nothing for other numbers of operands.
fn types_of_three(operand: &Expression, others: &[Expression]) -> Vec<SqlType> {
    match others {
        [one, other] => vec![operand.ty.clone(), one.ty.clone(), other.ty.clone()],
        _ => Vec::new(),
    }
}

/// Error 1241.
pub(crate) fn wrong_columns(count: usize) -> SqlError {
    SqlError::new(1241, format!("Operand should contain {count} column(s)"))
}
