//! Function calls: conditional forms with their own nodes, aggregates, windows, and the rest.

use firn_format::value::CollationId;
use firn_sql_functions as functions;
use firn_sql_grammar::ast::{Arguments, BinaryOperator, Expr, Function, UnaryOperator, Value};
use firn_sql_logical::PlanContext;
use firn_sql_logical::expression::{CompareOperator, Expression, ExpressionKind, IsTest};
use firn_sql_types::collate::comparison_collation;
use firn_sql_types::decimal::Rounding;
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::json::JsonValue;
use firn_sql_types::metadata::NOT_FIXED_DECIMALS;
use firn_sql_types::{Before, Coercibility, Datum, Decimal, IntWidth, SqlType, TypeKind};

use super::cast::typed_null;
use super::merge::is_large;
use super::{
    Binder, Typing, aggregate, cast, coerce, display, documents, expression_builders, expressions,
    held, insert, literal, predicate, window,
};

pub(crate) fn function(binder: &mut Binder<'_>, function: &Function) -> Result<Expression> {
    let name = function.name.to_ascii_uppercase();
    if function.over.is_some() {
        return window::window_call(binder, &name, function);
    }
    if let Some(aggregate) = super::aggregate::named(&name) {
        return aggregate::aggregate(binder, aggregate, function);
    }
    if super::window::is_window_only(&name) {
        return Err(SqlError::new(
            3579,
            format!("Window function '{}' requires OVER clause", name.to_lowercase()),
        ));
    }
    match name.as_str() {
        "VALUES" => insert::values_function(binder, function),
        "DEFAULT" => insert::default_function(binder, function),
        "ANY_VALUE" => any_value(binder, function),
        "GROUPING" => grouping_function(binder, function),
        "DATE_ADD" | "DATE_SUB" | "ADDDATE" | "SUBDATE" => date_function(binder, &name, function),
        "JSON_VALUE" => json_value_function(binder, function),
        _ => {
            let mut arguments = arguments(binder, function)?;
            if takes_documents(&name) {
                let written = argument_expressions(function)?;
                // The name of a member is a text, and a document no truth value.
                let is_name = |at: usize| match name.as_str() {
                    "JSON_OBJECT" => at.is_multiple_of(2),
                    "JSON_ARRAY" => false,
                    _ => at == 0,
                };
                let pairs = arguments.into_iter().zip(written).enumerate();
                arguments = pairs
                    .map(|(at, (one, written))| match is_name(at) {
                        true => Ok(one),
                        false => {
                            let value = documents::with_own_digits(json_truth(one, written));
                            let value = documents::within_document(value);
                            expression_builders::with_plain_zeros(&mut binder.typing, value)
                        }
                    })
                    .collect::<Result<_>>()?;
            }
            if name == "NULLIF" && arguments.len() == 2 {
                let written = argument_expressions(function)?;
                let right = arguments.remove(1);
                let right = predicate::beside_document(&arguments[0], right, written[1]);
                arguments.push(right);
            }
            let arguments = documents::with_documents(&mut binder.typing, &name, arguments)?;
            let arguments = with_numbers_of_bytes(binder.typing.context, &name, arguments)?;
            let arguments = match name.as_str() {
                "STRCMP" => constants_as_stored(&mut binder.typing, arguments)?,
                _ => arguments,
            };
            named_call(&mut binder.typing, &name, arguments)
        }
    }
}

/// `JSON_VALUE(document, path RETURNING type)`: the call has that type.
fn json_value_function(binder: &mut Binder<'_>, function: &Function) -> Result<Expression> {
    let arguments = arguments(binder, function)?;
    let path = argument_expressions(function)?.get(1).copied();
    let is_written_path = |path: &Expr| {
        matches!(path, Expr::Value(Value::Text(_) | Value::Parameter(_)) | Expr::Introduced { .. })
    };
    if let Some(path) = path.filter(|path| !is_written_path(path)) {
        return Err(SqlError::syntax(&firn_sql_grammar::render(path), 1));
    }
    if let Some(document) = arguments.first()
        && (is_number_or_time(document) || document.ty.kind.is_enum_or_set())
    {
        return Err(SqlError::new(
            3146,
            "Invalid data type for JSON data in argument 1 to function json_value; a JSON string \
             or JSON type is required.",
        ));
    }
    let arguments = documents::with_documents(&mut binder.typing, "JSON_VALUE", arguments)?;
    let returned = match &function.returning {
        Some(data_type) => {
            let document = typed_null(SqlType::new(TypeKind::Json));
            Some(cast::explicit_cast(&mut binder.typing, document, data_type, None)?.ty)
        }
        None => None,
    };
    let Some(json_value) = functions::find("JSON_VALUE") else {
        return expression_builders::call(&mut binder.typing, "JSON_VALUE", arguments);
    };
    let mut call = expression_builders::unfolded_call(&mut binder.typing, json_value, arguments)?;
    call.ty = returned.unwrap_or(call.ty).with_nullable(true);
    Ok(coerce::fold(&binder.typing, call))
}

/// Whether an expression is a text that was made of numbers or times alone.
fn is_text_of_numbers(expression: &Expression) -> bool {
    let is_made = match &expression.kind {
        ExpressionKind::Call { function, .. } => {
            !function.name.starts_with("REGEXP_") && function.name != "QUOTE"
        }
        ExpressionKind::Case { .. } | ExpressionKind::Coalesce(_) => true,
        _ => false,
    };
    let ty = &expression.ty;
    is_made && ty.kind.is_text() && ty.coercibility == Coercibility::Numeric
}

/// The first value of `NULLIF`: a constant beside a column that stores it as a whole number, a date
/// or a time is what the column would store.
fn constant_as_compared(
    context: &PlanContext<'_>,
    constant: Expression,
    test: &Expression,
) -> Expression {
    const WHOLE_CHARS: u32 = 22;
    let ExpressionKind::Compare { sides, .. } = &test.kind else { return constant };
    let [left, right] = &**sides;
    let ExpressionKind::Slot(_) = compared_column(right).kind else { return constant };
    let column = &compared_column(right).ty;
    let is_large = matches!(column.kind, TypeKind::Integer { width: IntWidth::Eight, .. });
    let is_stored = is_large
        || matches!(column.kind, TypeKind::Year | TypeKind::Time { .. })
        || column.kind.has_date() && constant.ty.kind.is_numeric();
    let ExpressionKind::Literal(written) = &constant.kind else { return constant };
    let stored = match (&left.kind, written) {
        (ExpressionKind::Literal(stored), _) if left.ty.kind == column.kind => Some(stored.clone()),
        (_, Datum::Text(text)) if is_large && constant.ty.kind.is_text() => {
            whole_number_of(text, column)
        }
        (_, Datum::Text(_)) if is_large => {
            match literal::as_number(context, constant.clone()).kind {
                ExpressionKind::Literal(Datum::UInt(number)) => stored_whole(number.into(), column),
                _ => None,
            }
        }
        _ => None,
    };
    let is_plain = constant.ty.kind == column.kind;
    let Some(stored) = stored.filter(|stored| is_stored && !is_plain && !stored.is_null()) else {
        return constant;
    };
    let ty = SqlType::new(column.kind.clone());
    let before = match ty.kind.is_temporal() {
        true => Before::default(),
        false => expression_builders::worked_out(&ty, WHOLE_CHARS, true),
    };
    Expression { kind: ExpressionKind::Literal(stored), ty: SqlType { before, ..ty } }
}

/// A side of a comparison before it was converted for it.
fn compared_column(side: &Expression) -> &Expression {
    match &side.kind {
        ExpressionKind::Cast(inner) if side.ty.coercibility != Coercibility::Implicit => inner,
        _ => side,
    }
}

/// The whole number at the start of a text, if a column of a type stores it; what follows it is
/// left out, but for a fraction.
fn whole_number_of(text: &[u8], column: &SqlType) -> Option<Datum> {
    let number = Decimal::parse_prefix(text).number;
    let whole = number.round(0, Rounding::Truncate).filter(|whole| *whole == number)?;
    stored_whole(whole.to_i128()?, column)
}

fn stored_whole(whole: i128, column: &SqlType) -> Option<Datum> {
    match column.kind.is_unsigned() {
        true => u64::try_from(whole).ok().map(Datum::UInt),
        false => i64::try_from(whole).ok().map(Datum::Int),
    }
}

fn named_call(
    typing: &mut Typing<'_>,
    name: &str,
    mut arguments: Vec<Expression>,
) -> Result<Expression> {
    match (name, arguments.len()) {
        ("IF", 3) => {
            let otherwise = arguments.pop();
            let value = arguments.pop().unwrap_or_else(expression_builders::null);
            let test = arguments.pop().unwrap_or_else(expression_builders::null);
            let test = expressions::test_of(typing, test)?;
            predicate::case_of(typing, vec![test], vec![value], otherwise)
        }
        ("IFNULL" | "COALESCE", 1..) if name == "COALESCE" || arguments.len() == 2 => {
            let nullable = arguments.iter().all(|one| one.ty.nullable);
            let (list, ty) = coerce::unified(typing, arguments, &name.to_lowercase())?;
            let kind = ExpressionKind::Coalesce(list);
            Ok(Expression { kind, ty: ty.with_nullable(nullable) })
        }
        ("NULLIF", 2) => {
            let two = arguments.pop().unwrap_or_else(expression_builders::null);
            let one = arguments.pop().unwrap_or_else(expression_builders::null);
            let (first, one) = if is_large(&one) {
                predicate::for_two(&mut typing.frame, one)
            } else {
                (one.clone(), one)
            };
            let two = literal::number_beside(typing.context, two, &first.ty);
            let first = literal::number_beside(typing.context, first, &two.ty);
            let binds_weaker = one.ty.coercibility == Coercibility::Coercible
                && (two.ty.coercibility == Coercibility::Implicit || two.ty.kind.is_binary());
            let collation = comparison_collation(&first.ty, &two.ty, "=").ok();
            let are_texts = first.ty.kind.is_string() && two.ty.kind.is_string();
            let test = coerce::compare(typing, CompareOperator::Equal, first, two)?;
            let one = constant_as_compared(typing.context, one, &test);
            let one = match binds_weaker {
                true => under_common_collation(typing, one, collation.filter(|_| are_texts)),
                false => one,
            };
            // The names of an ENUM are texts from here on, and sort as texts.
            let one = match one.ty.kind.is_enum_or_set() {
                true => coerce::unified(typing, vec![one], "nullif")?.0.remove(0),
                false => one,
            };
            // Bytes of a written cast are no column of so many.
            let ty = documents::within_document(one.clone()).ty.with_nullable(true);
            let branches = vec![(test, typed_null(ty.clone()))];
            let kind = ExpressionKind::Case { branches, otherwise: Some(Box::new(one)) };
            Ok(Expression { kind, ty })
        }
        ("ISNULL", 1) => {
            let operand = arguments.remove(0);
            Ok(expression_builders::is(operand, IsTest::Null, false))
        }
        ("TIME", 1) => {
            // Of such a column, TIME rounds.
            let seconds = arguments.remove(0);
            let decimals = match seconds.kind {
                ExpressionKind::Slot(slot) => coerce::fixed_decimals(&typing.frame, slot),
                _ => None,
            };
            let seconds = match decimals {
                Some(decimals) => coerce::with_fixed_decimals(seconds, decimals),
                None => seconds,
            };
            expression_builders::call(typing, name, vec![seconds])
        }
        ("TIMESTAMP" | "SEC_TO_TIME" | "FROM_UNIXTIME" | "UNIX_TIMESTAMP", 1) | ("MAKETIME", 3) => {
            let arguments = arguments.into_iter();
            let cut = arguments.map(|argument| coerce::cut_to_definition(typing, argument, 0));
            let arguments = cut.collect::<Result<_>>()?;
            expression_builders::call(typing, name, arguments)
        }
        ("ADDTIME" | "SUBTIME", 2) if arguments[0].ty.kind.is_temporal() => {
            let span = std::mem::replace(&mut arguments[1], expression_builders::null());
            arguments[1] = coerce::cut_to_definition(typing, span, 0)?;
            expression_builders::call(typing, name, arguments)
        }
        // For a column of documents, MySQL reports bytes, though their text is utf8mb4.
        // Beside a date, a text that is none is refused, though the two are compared as texts.
        // A number beside a column of dates is the date that the column would store.
        ("STRCMP", 2) if arguments.iter().any(|one| one.ty.kind.is_temporal()) => {
            coerce::compare(
                typing,
                CompareOperator::Equal,
                arguments[0].clone(),
                arguments[1].clone(),
            )?;
            let right = arguments.remove(1);
            let left = held::number_as_held(typing, arguments.remove(0), &right)?;
            let right = held::number_as_held(typing, right, &left)?;
            expression_builders::call(typing, name, vec![left, right])
        }
        // The number of written bytes is not read in another base.
        ("CONV", 3) if is_number_of_bytes(&arguments[0]) => {
            if matches!(arguments[1].kind, ExpressionKind::Literal(Datum::Int(2..=36))) {
                arguments[1] = expression_builders::integer(10);
            }
            expression_builders::call(typing, name, arguments)
        }
        ("TIMESTAMPADD", 3) => {
            let moment = arguments[2].clone();
            let count = std::mem::replace(&mut arguments[1], expression_builders::null());
            let count = coerce::cut_to_definition(typing, count, moment.ty.kind.fsp())?;
            let count = match &arguments[0].kind {
                ExpressionKind::Literal(unit) => {
                    let unit = unit.plain_text();
                    cast::quiet_count(typing, count, &unit)
                }
                _ => count,
            };
            arguments[1] = cast::count_for_moment(typing, &moment, count)?;
            expression_builders::call(typing, name, arguments)
        }
        ("CHARSET" | "COLLATION", 1) if is_document_column(&arguments[0]) => {
            expression_builders::call(typing, name, vec![typed_null(SqlType::varbinary(0))])
        }
        // The text of bits binds like a column's.
        ("COERCIBILITY", 1)
            if matches!(arguments[0].ty.kind, TypeKind::Bit { .. })
                && matches!(arguments[0].kind, ExpressionKind::Slot(_)) =>
        {
            let ty = arguments[0].ty.clone().with_coercibility(Coercibility::Implicit);
            expression_builders::call(typing, name, vec![typed_null(ty)])
        }
        // A number or a date that is cast is one whether it is constant or not.
        ("COERCIBILITY", 1)
            if matches!(arguments[0].kind, ExpressionKind::Literal(_))
                && is_number_or_time(&arguments[0])
                && arguments[0].ty.coercibility == Coercibility::Implicit =>
        {
            let ty = arguments[0].ty.clone().with_coercibility(Coercibility::Numeric);
            expression_builders::call(typing, name, vec![typed_null(ty)])
        }
        // Of these the type alone counts: the argument is not worked out, and does not warn.
        ("CHARSET" | "COLLATION" | "COERCIBILITY", 1) if is_worked_out(&arguments[0]) => {
            let ty = arguments[0].ty.clone();
            // A written cast is no column.
            let is_cast = matches!(arguments[0].kind, ExpressionKind::Cast(_));
            let ty = match is_cast && (ty.kind.is_numeric() || ty.kind.is_temporal()) {
                true => ty.with_coercibility(Coercibility::Numeric),
                false if is_text_of_numbers(&arguments[0]) => {
                    ty.with_coercibility(Coercibility::Coercible)
                }
                false => ty,
            };
            expression_builders::call(typing, name, vec![typed_null(ty)])
        }
        // Neither a number nor a date is a document, whatever its value.
        ("JSON_VALID", 1) if is_number_or_time(&arguments[0]) && is_worked_out(&arguments[0]) => {
            let ty = arguments[0].ty.clone();
            expression_builders::call(typing, name, vec![typed_null(ty)])
        }
        ("WEIGHT_STRING", 1) if has_no_weights(&arguments[0].ty.kind) => {
            let mut null = typed_null(arguments[0].ty.clone());
            null.ty.before = coerce::before(typing, &arguments[0]);
            expression_builders::call(typing, name, vec![null])
        }
        ("GREATEST" | "LEAST", 2..) => expression_builders::call(typing, name, arguments),
        ("IF" | "IFNULL" | "NULLIF" | "ISNULL" | "COALESCE", _) => Err(SqlError::new(
            1582,
            format!("Incorrect parameter count in the call to native function '{name}'"),
        )),
        _ => expression_builders::call(typing, name, arguments),
    }
}

/// A literal as the first value of `NULLIF`, under the collation with which it was compared; bytes
/// beside it make it bytes.
fn under_common_collation(
    typing: &mut Typing<'_>,
    one: Expression,
    collation: Option<CollationId>,
) -> Expression {
    let collation = collation.filter(|id| one.ty.kind.is_text() && one.ty.collation() != Some(*id));
    let ty = match collation {
        None => return one,
        Some(CollationId::BINARY) => SqlType::varbinary(one.ty.max_text_bytes()),
        Some(collation) => SqlType::varchar(one.ty.max_text_chars(), collation),
    };
    let ty = ty.with_nullable(one.ty.nullable).with_coercibility(one.ty.coercibility);
    coerce::cast_to(typing, one, ty)
}

/// Whether a number was written as bytes.
fn is_number_of_bytes(argument: &Expression) -> bool {
    let before = argument.ty.before.get();
    argument.ty.kind.is_integer() && before.is_some_and(|before| before.written.0.kind.is_binary())
}

fn is_number_or_time(argument: &Expression) -> bool {
    argument.ty.kind.is_numeric() || argument.ty.kind.is_temporal()
}

/// The arguments of `STRCMP`: as any comparison, it reads a constant beside a column of `BIGINT` or
/// `YEAR`, or a date or document beside one of times, as the column would store it.
fn constants_as_stored(
    typing: &mut Typing<'_>,
    mut arguments: Vec<Expression>,
) -> Result<Vec<Expression>> {
    if let [left, right] = arguments.as_mut_slice() {
        let stores = |column: &Expression, value: &Expression| match column.ty.kind {
            TypeKind::Year => true,
            TypeKind::Time { .. } => value.ty.kind.is_numeric(),
            _ => false,
        };
        let take = |side: &mut Expression| std::mem::replace(side, expression_builders::null());
        *left = held::document_beside(typing.context, take(left), right);
        *right = held::document_beside(typing.context, take(right), left);
        if stores(right, left) {
            *left = held::as_held(typing, take(left), right, held::Beside::Value)?;
        } else if stores(left, right) {
            *right = held::as_held(typing, take(right), left, held::Beside::Value)?;
        }
    }
    let columns: Vec<Option<SqlType>> = arguments
        .iter()
        .map(|side| match (&side.kind, &side.ty.kind) {
            (
                ExpressionKind::Slot(_),
                TypeKind::Integer { width: IntWidth::Eight, .. } | TypeKind::Time { .. },
            ) => Some(side.ty.clone()),
            _ => None,
        })
        .collect();
    let stored = arguments.into_iter().enumerate().map(|(at, value)| {
        let is_constant = matches!(&value.kind, ExpressionKind::Literal(datum) if !datum.is_null());
        let of = &value.ty.kind;
        let is_read = of.is_text() || of.is_temporal();
        match columns.get(1 - at.min(1)).and_then(Option::as_ref).filter(|_| is_constant) {
            Some(column) if column.kind.is_integer() && is_read => {
                coerce::cast_to(typing, value, SqlType::bigint())
            }
            Some(column) if column.kind.is_temporal() && of.has_date() => {
                coerce::cast_to(typing, value, column.clone())
            }
            _ => value,
        }
    });
    Ok(stored.collect())
}

/// The arguments; hexadecimal and bit literals are numbers where the function wants numbers.
fn with_numbers_of_bytes(
    context: &PlanContext<'_>,
    name: &str,
    arguments: Vec<Expression>,
) -> Result<Vec<Expression>> {
    if !arguments.iter().any(|one| literal::written_bytes(one).is_some()) {
        return Ok(arguments);
    }
    let wants_number = number_arguments(context, name, &arguments)?;
    let pairs = arguments.into_iter().zip(wants_number);
    Ok(pairs
        .map(|(one, wants)| match (wants, name) {
            (_, "MOD") => literal::as_operand(context, one),
            (true, _) => literal::as_number(context, one),
            (false, _) => one,
        })
        .collect())
}

/// Which arguments a function takes as numbers.
fn number_arguments(
    context: &PlanContext<'_>,
    name: &str,
    arguments: &[Expression],
) -> Result<Vec<bool>> {
    match name {
        "IF" => Ok((0..arguments.len()).map(|at| at == 0).collect()),
        // The values of these are bytes, and some are doubles of another kind.
        "NULLIF" | "GREATEST" | "LEAST" => Ok(vec![false; arguments.len()]),
        "ABS" | "FLOOR" | "CEILING" | "CEIL" | "ROUND" | "TRUNCATE" | "FORMAT" => {
            Ok((0..arguments.len()).map(|at| at > 0).collect())
        }
        _ => {
            let wanted = expression_builders::wanted_types(context, name, arguments)?;
            Ok(wanted.into_iter().map(|ty| ty.kind.is_numeric()).collect())
        }
    }
}

/// The arguments of a plain call.
pub(crate) fn arguments(binder: &mut Binder<'_>, function: &Function) -> Result<Vec<Expression>> {
    let list = argument_expressions(function)?;
    list.into_iter().map(|argument| expressions::bind_single(binder, argument)).collect()
}

fn date_function(binder: &mut Binder<'_>, name: &str, function: &Function) -> Result<Expression> {
    let minus = name.ends_with("SUB") || name == "SUBDATE";
    match argument_expressions(function)?.as_slice() {
        [date, Expr::Interval(interval)] => {
            let date = expressions::bind_single(binder, date)?;
            cast::date_arithmetic(binder, date, interval, minus)
        }
        _ => {
            let arguments = arguments(binder, function)?;
            expression_builders::call(&mut binder.typing, name, arguments)
        }
    }
}

/// `ANY_VALUE(x)`: the columns it reads need not depend on the groups.
fn any_value(binder: &mut Binder<'_>, function: &Function) -> Result<Expression> {
    let mut arguments = arguments(binder, function)?;
    if arguments.len() != 1 {
        return expression_builders::call(&mut binder.typing, "ANY_VALUE", arguments);
    }
    let mut value = arguments.remove(0);
    let is_written = value.ty.before.get().is_some_and(|before| !before.nullable);
    let is_fixed = display::display(&binder.typing, &value).decimals != NOT_FIXED_DECIMALS;
    if is_written && value.ty.kind == TypeKind::Double && !is_fixed {
        // As long as any double.
        value.ty.before = Before::default();
    }
    firn_sql_logical::expression::visit::add_reads(
        &value,
        &mut binder.names.innermost().any_values,
    );
    any_value_of(&mut binder.typing, value)
}

/// The value under a call of `ANY_VALUE` where it is described otherwise than the value alone, or
/// where its number is another one: that of a text, which does not warn. Elsewhere it is the value.
fn any_value_of(typing: &mut Typing<'_>, value: Expression) -> Result<Expression> {
    let Some(function) = functions::find("ANY_VALUE") else { return Ok(value) };
    let is_text = value.ty.kind.is_string() || value.ty.kind == TypeKind::Json;
    let own = display::display(typing, &value).as_expression();
    let mut call = expression_builders::unfolded_call(typing, function, vec![value.clone()])?;
    call.ty.nullable = value.ty.nullable;
    let is_shown_otherwise =
        matches!(value.kind, ExpressionKind::Slot(_)) && display::display(typing, &call) != own;
    Ok(if is_text || is_shown_otherwise { call } else { value })
}

/// `GROUPING(a)`: whether a group is rolled up; several arguments make a bit mask.
fn grouping_function(binder: &mut Binder<'_>, function: &Function) -> Result<Expression> {
    let arguments = arguments(binder, function)?;
    let scope = binder.names.innermost();
    let Some(slots) = scope.grouping_slots.clone() else {
        return Err(SqlError::new(3626, "GROUPING function is only allowed with WITH ROLLUP"));
    };
    let mut sum: Option<Expression> = None;
    for argument in arguments {
        let groups = &binder.names.innermost().groups;
        let place = groups.iter().position(|(slot, value)| {
            firn_sql_logical::expression::equivalence::same_expression(value, &argument)
                || matches!(argument.kind, ExpressionKind::Slot(other) if other == *slot)
        });
        let place = place.ok_or_else(|| {
            SqlError::new(3625, "Argument #0 of GROUPING function is not in GROUP BY")
        })?;
        let bit = expression_builders::slot(slots[place], SqlType::bigint().not_null());
        sum = Some(match sum {
            None => bit,
            Some(before) => {
                let shifted = expression_builders::call(
                    &mut binder.typing,
                    "*",
                    vec![before, expression_builders::integer(2)],
                )?;
                expression_builders::call(&mut binder.typing, "+", vec![shifted, bit])?
            }
        });
    }
    Ok(sum.unwrap_or_else(|| expression_builders::integer(0)))
}

/// Numbers with digits after the point: `WEIGHT_STRING` of them is NULL.
fn has_no_weights(kind: &TypeKind) -> bool {
    matches!(kind, TypeKind::Double | TypeKind::Float | TypeKind::Decimal { .. })
}

/// Whether an argument is more than a column or a constant.
fn is_worked_out(expression: &Expression) -> bool {
    !matches!(
        expression.kind,
        ExpressionKind::Slot(_) | ExpressionKind::Literal(_) | ExpressionKind::Parameter(_)
    )
}

fn is_document_column(expression: &Expression) -> bool {
    matches!(expression.kind, ExpressionKind::Slot(_)) && expression.ty.kind == TypeKind::Json
}

/// Functions that make documents of their arguments; truth values become `true` and `false`.
fn takes_documents(name: &str) -> bool {
    matches!(
        name,
        "JSON_ARRAY"
            | "JSON_OBJECT"
            | "JSON_SET"
            | "JSON_INSERT"
            | "JSON_REPLACE"
            | "JSON_ARRAY_APPEND"
            | "JSON_ARRAY_INSERT"
    )
}

/// Functions of truth values, which are `true` and `false` in documents. A string comparison is
/// one.
const TRUTH_FUNCTIONS: &[&str] = &[
    "REGEXP_LIKE",
    "STRCMP",
    "SOUNDS LIKE",
    "ISNULL",
    "IS_IPV4",
    "IS_IPV6",
    "IS_IPV4_COMPAT",
    "IS_IPV4_MAPPED",
    "IS_UUID",
    "JSON_CONTAINS",
    "JSON_CONTAINS_PATH",
    "JSON_OVERLAPS",
    "JSON_SCHEMA_VALID",
    "JSON_VALID",
    "MEMBER OF",
];

/// A truth value as a document; other values stay.
pub(super) fn json_truth(value: Expression, written: &Expr) -> Expression {
    let json = SqlType::new(TypeKind::Json);
    let of =
        |truth| expression_builders::literal(Datum::from(JsonValue::Bool(truth)), json.clone());
    match (written, &value.kind) {
        (Expr::Value(Value::Boolean(truth)), _) => of(*truth),
        (Expr::Value(_), _) => value,
        (_, ExpressionKind::Literal(Datum::Int(number))) if is_condition(written) => {
            of(*number != 0)
        }
        (_, ExpressionKind::Literal(_)) => value,
        _ if is_tested(&value) || is_condition(written) => document_of_truth(value),
        _ => value,
    }
}

/// Whether an expression is a truth value, or the result of a function that MySQL takes for one.
fn is_tested(value: &Expression) -> bool {
    let is_truth = |name| TRUTH_FUNCTIONS.contains(&name);
    expression_builders::is_truth(value)
        || matches!(&value.kind, ExpressionKind::Call { function, .. } if is_truth(function.name))
}

/// Whether the written expression is a truth value.
fn is_condition(written: &Expr) -> bool {
    match written {
        Expr::BinaryOp { op, .. } => {
            super::expressions::comparison_operator(*op).is_some()
                || matches!(op, BinaryOperator::And | BinaryOperator::Or | BinaryOperator::Xor)
        }
        Expr::UnaryOp { op, .. } => matches!(op, UnaryOperator::Not | UnaryOperator::BangNot),
        Expr::Is { .. }
        | Expr::InList { .. }
        | Expr::InSubquery { .. }
        | Expr::Quantified { .. }
        | Expr::Exists(_)
        | Expr::MemberOf { .. }
        | Expr::Between { .. }
        | Expr::Like { .. }
        | Expr::Regexp { .. } => true,
        Expr::Function(function) if function.schema.is_none() => {
            let known = functions::find(&function.name.to_ascii_uppercase());
            function.name.eq_ignore_ascii_case("ISNULL")
                || known.is_some_and(|known| TRUTH_FUNCTIONS.contains(&known.name))
        }
        _ => false,
    }
}

fn document_of_truth(value: Expression) -> Expression {
    let function = functions::find("DOCUMENT OF TRUTH").expect("it is one of the functions");
    let ty = SqlType::new(TypeKind::Json).with_nullable(true);
    Expression { kind: ExpressionKind::Call { function, arguments: vec![value] }, ty }
}

/// The arguments of a call that are expressions.
pub(crate) fn argument_expressions(function: &Function) -> Result<Vec<&Expr>> {
    match &function.arguments {
        Arguments::List(list) => Ok(list.iter().collect()),
        Arguments::Wildcard => Err(SqlError::not_supported("this argument")),
    }
}
