//! `UNION`, `INTERSECT`, `EXCEPT`.
//!
//! ```text
//!   SELECT a FROM t UNION ALL SELECT b FROM u UNION ALL SELECT 1      one operation of three sides
//!   columns: the common types of the sides; names: those of the first side
//! ```

use firn_sql_catalog::model::same_name;
use firn_sql_grammar::ast::{Expr, LockClause, OrderByExpr, SetExpr, SetOperator};
use firn_sql_logical::expression::{Expression, ExpressionKind, SortKey};
use firn_sql_logical::{Body, OutputColumn, Query, SetOperation};
use firn_sql_types::decimal::MAX_SCALE;
use firn_sql_types::error::{ErrorKind, Result, SqlError};
use firn_sql_types::metadata::type_code;
use firn_sql_types::{Coercibility, Datum, Display, SqlType, TypeKind, unify::unify};

use super::aggregate::{positional, unknown_position};
use super::display::common_display;
use super::scope::{Clause, ColumnSource, Scope, ScopeColumn, ScopeTable, ShownColumn};
use super::{Binder, Frame, Typing, coerce, expression_builders, expressions, query};

pub(crate) fn set_operation(
    binder: &mut Binder<'_>,
    left: &SetExpr,
    op: SetOperator,
    all: bool,
    right: &SetExpr,
    locks: &[LockClause],
) -> Result<Query> {
    let operation = match op {
        SetOperator::Union => SetOperation::Union,
        SetOperator::Intersect => SetOperation::Intersect,
        SetOperator::Except => SetOperation::Except,
    };
    let mut sides = Vec::new();
    flatten(binder, left, op, all, &[], &mut sides)?;
    // A locking clause after the whole query belongs to the last side.
    flatten(binder, right, op, all, locks, &mut sides)?;
    united(&mut binder.typing, operation, all, sides)
}

/// The sides of `a UNION b UNION c`, all of one kind.
fn flatten(
    binder: &mut Binder<'_>,
    body: &SetExpr,
    op: SetOperator,
    all: bool,
    locks: &[LockClause],
    into: &mut Vec<Query>,
) -> Result<()> {
    match body {
        SetExpr::SetOperation { left, op: inner, all: keeps_all, right }
            if *inner == op && *keeps_all == all && op == SetOperator::Union =>
        {
            flatten(binder, left, op, all, &[], into)?;
            flatten(binder, right, op, all, locks, into)?;
        }
        _ => into.push(query::bind_body(binder, body, &[], locks)?),
    }
    Ok(())
}

/// The display of exact numbers that are cut to the digits after the point that a column has.
pub(crate) fn of_cut_numbers(display: Display) -> Display {
    let cut = display.decimals.saturating_sub(MAX_SCALE);
    Display { length: display.length - u32::from(cut), decimals: display.decimals - cut, ..display }
}

/// The rows of one query as those of a set, so that they can be ordered and limited again.
pub(crate) fn set_of(typing: &mut Typing<'_>, inputs: Vec<Query>) -> Result<Query> {
    united(typing, SetOperation::Union, true, inputs)
}

/// The `ENUM` or `SET` that nothing but NULL stands beside: it stays one.
fn only_name(sides: &[SqlType]) -> Option<&SqlType> {
    let mut known = sides.iter().filter(|side| side.kind != TypeKind::Null);
    let name = known.next().filter(|side| side.kind.is_enum_or_set())?;
    (known.next().is_none() && sides.len() > 1).then_some(name)
}

/// Queries united, their columns cast to the common types.
pub(crate) fn united(
    typing: &mut Typing<'_>,
    operation: SetOperation,
    all: bool,
    inputs: Vec<Query>,
) -> Result<Query> {
    let width = inputs.first().map_or(0, |first| first.columns.len());
    if inputs.iter().any(|input| input.columns.len() != width) {
        return Err(SqlError::new(
            1222,
            "The used SELECT statements have a different number of columns",
        ));
    }
    let mut types = Vec::with_capacity(width);
    let mut displays = Vec::with_capacity(width);
    for number in 0..width {
        let own: Vec<SqlType> =
            inputs.iter().map(|input| type_of_side(&input.columns[number].value)).collect();
        let sides = with_digits_of_bits(own.clone());
        let ty = match only_name(&sides) {
            Some(name) => name.clone().with_nullable(true),
            None => unify(&sides, typing.context.evaluation.connection_collation, "UNION")?,
        };
        let is_cut = ty.kind.scale() > MAX_SCALE;
        let ty = ty.as_column();
        // The columns of a set have to be comparable.
        let has_none = sides.iter().any(|side| side.coercibility == Coercibility::None);
        if ty.kind.is_text() && ty.coercibility == Coercibility::None && !has_none {
            let message = "Illegal mix of collations for operation 'UNION'";
            return Err(SqlError::of_kind(ErrorKind::IllegalMix, 1271, message));
        }
        let shown: Vec<(&SqlType, Display)> = inputs
            .iter()
            .map(|input| &input.columns[number])
            .map(|column| (&column.value, column.display))
            .zip(&own)
            .map(|((value, display), of)| {
                let display = display.or_else(|| match value.kind {
                    ExpressionKind::Slot(slot) => typing.displays.of_slot(slot),
                    _ => None,
                });
                let display = display.unwrap_or_else(|| Display::of_column(of));
                (of, of_type_alone(&typing.frame, value, (of, &ty), display))
            })
            .collect();
        let mut sides = shown.iter().map(|(ty, display)| display.nullable.unwrap_or(ty.nullable));
        let nullable = match operation {
            // The rows are those of the left side.
            SetOperation::Except => sides.next().unwrap_or(true),
            SetOperation::Intersect => sides.all(|nullable| nullable),
            SetOperation::Union => sides.any(|nullable| nullable),
        };
        let display = common_display(&shown, &ty).as_stored();
        let display = if is_cut { of_cut_numbers(display) } else { display };
        let display = Display { nullable: Some(nullable), ..display };
        let ty = short_text(ty, &shown, display);
        // A BINARY column is filled up with zeros, unless bits are among the values.
        let has_bits = shown.iter().any(|(side, _)| matches!(side.kind, TypeKind::Bit { .. }));
        let ty = match (&ty.kind, display.type_code) {
            (TypeKind::Varbinary { .. }, Some(type_code::STRING)) if !has_bits => {
                SqlType { kind: TypeKind::Binary { max_bytes: display.length }, ..ty }
            }
            _ => ty,
        };
        displays.push(display);
        types.push(ty);
    }
    let names: Vec<_> = inputs.first().map_or_else(Vec::new, |first| {
        first.columns.iter().map(|column| column.name.clone()).collect()
    });
    let widths: Vec<u32> = displays.iter().map(|display| display.length).collect();
    let cast = |input| cast_columns(typing, input, &types, &widths);
    let inputs = inputs.into_iter().map(cast).collect();
    let slots: Vec<_> = types.into_iter().map(|ty| (typing.frame.new_slot(None), ty)).collect();
    let columns = slots.iter().zip(names).zip(displays);
    let columns = columns.map(|(((slot, ty), name), display)| OutputColumn {
        value: expression_builders::slot(*slot, ty.clone()),
        name,
        origin: None,
        display: Some(display),
    });
    Ok(Query {
        columns: columns.collect(),
        body: Body::SetOperation { operation, all, inputs, slots },
        order: Vec::new(),
        offset: None,
        limit: None,
        count_all: false,
    })
}

/// A query with its columns cast. Columns of a plain union are cast in its sides, so that rows
/// are compared after the cast. `widths`: how long the columns are for clients, if that is known.
pub(crate) fn cast_columns(
    typing: &mut Typing<'_>,
    mut query: Query,
    types: &[SqlType],
    widths: &[u32],
) -> Query {
    let is_plain = query.order.is_empty() && query.limit.is_none() && query.offset.is_none();
    if let Body::SetOperation { operation: SetOperation::Union, inputs, slots, .. } =
        &mut query.body
        && is_plain
    {
        let sides = std::mem::take(inputs).into_iter();
        *inputs = sides.map(|side| cast_columns(typing, side, types, widths)).collect();
        for ((column, slot), ty) in query.columns.iter_mut().zip(slots).zip(types) {
            slot.1 = ty.clone().with_nullable(slot.1.nullable);
            column.value = expression_builders::slot(slot.0, slot.1.clone());
        }
        return query;
    }
    for (number, (column, ty)) in query.columns.iter_mut().zip(types).enumerate() {
        let width = widths.get(number).copied().unwrap_or(ty.max_text_chars());
        let value = column.value.clone();
        let is_text = ty.kind.is_string() || ty.kind == TypeKind::Json;
        let value =
            match is_text.then(|| expression_builders::with_plain_zeros(typing, value.clone())) {
                Some(Ok(plain)) => plain,
                _ => value,
            };
        let value = as_stored_number(typing, value, ty, width);
        let wanted = ty.clone().with_nullable(value.ty.nullable);
        column.value = coerce::cast_to(typing, value, wanted);
    }
    query
}

/// A text that is long by its type alone: none of the sides is, and it has few characters.
fn short_text(ty: SqlType, sides: &[(&SqlType, Display)], display: Display) -> SqlType {
    const LONGEST_SHORT_BYTES: u32 = 65_535;
    let is_long = |(side, _): &(&SqlType, Display)| {
        let kind = &side.kind;
        matches!(
            kind,
            TypeKind::Text { .. } | TypeKind::Blob { .. } | TypeKind::Json | TypeKind::Geometry
        )
    };
    let bytes = ty.charset().map_or(1, |charset| charset.max_character_bytes());
    if sides.iter().any(is_long) || display.length.saturating_mul(bytes) > LONGEST_SHORT_BYTES {
        return ty;
    }
    let kind = match ty.kind {
        TypeKind::Text { collation, .. } => {
            TypeKind::Varchar { max_chars: display.length, collation }
        }
        TypeKind::Blob { .. } => TypeKind::Varbinary { max_bytes: display.length },
        kind => kind,
    };
    SqlType { kind, ..ty }
}

/// The type of one side of a set. A cast to `BINARY(n)` counts as `VARBINARY(n)`.
fn type_of_side(value: &Expression) -> SqlType {
    match (&value.kind, &value.ty.kind) {
        (ExpressionKind::Cast(_), TypeKind::Binary { max_bytes }) => {
            SqlType { kind: TypeKind::Varbinary { max_bytes: *max_bytes }, ..value.ty.clone() }
        }
        _ => value.ty.clone(),
    }
}

/// What clients see of a column as one side of a set: a number has the width of its type, whatever
/// its definition says. The types are that of the side and the common one.
fn of_type_alone(
    frame: &Frame,
    value: &Expression,
    (ty, common): (&SqlType, &SqlType),
    display: Display,
) -> Display {
    let is_number = matches!(ty.kind, TypeKind::Integer { .. } | TypeKind::Decimal { .. });
    let column = match value.kind {
        ExpressionKind::Slot(slot) => frame.table_column(slot),
        _ => None,
    };
    let is_zero_filled = display.zerofill || column.is_some_and(|column| column.zerofill);
    if !is_number || column.is_none() || !display.stored && !is_zero_filled {
        return display;
    }
    match &ty.kind {
        TypeKind::Decimal { .. }
            if is_zero_filled && matches!(common.kind, TypeKind::Decimal { .. }) =>
        {
            let length = display.length + u32::from(display.unsigned);
            Display { length, unsigned: false, zerofill: false, ..display }
        }
        TypeKind::Decimal { .. } => display,
        _ => Display { nullable: display.nullable, ..Display::of_column(ty) },
    }
}

/// The types of sides; bits beside values that are no numbers are as long as their numbers.
fn with_digits_of_bits(sides: Vec<SqlType>) -> Vec<SqlType> {
    let is_bits = |ty: &SqlType| matches!(ty.kind, TypeKind::Bit { .. });
    if sides.iter().all(|ty| is_bits(ty) || ty.kind.is_numeric() || ty.kind == TypeKind::Null) {
        return sides;
    }
    let digits = |ty: SqlType| match is_bits(&ty) {
        true => SqlType::varbinary(LONGEST_NUMBER_CHARS)
            .with_nullable(ty.nullable)
            .with_coercibility(Coercibility::Implicit),
        false => ty,
    };
    sides.into_iter().map(digits).collect()
}

/// Digits of the largest `BIGINT UNSIGNED`.
const LONGEST_NUMBER_CHARS: u32 = 20;

/// A column of bits, years, doubles or zero-filled numbers beside texts: MySQL stores the number as
/// text of at most `width` characters, without what its definition adds.
fn as_stored_number(
    typing: &mut Typing<'_>,
    value: Expression,
    to: &SqlType,
    width: u32,
) -> Expression {
    let nullable = value.ty.nullable;
    if let TypeKind::Binary { max_bytes } = to.kind {
        // The zero bytes stand behind the number.
        let text = SqlType::varbinary(max_bytes).with_coercibility(to.coercibility);
        let kind = match as_stored_number(typing, value.clone(), &text, width) {
            stored if stored.ty.kind.is_binary() => ExpressionKind::Cast(Box::new(stored)),
            _ => return value,
        };
        return Expression { kind, ty: to.clone().with_nullable(nullable) };
    }
    let is_call = matches!(value.kind, ExpressionKind::Call { .. });
    if matches!(value.ty.kind, TypeKind::Time { .. }) && is_call && to.kind.is_string() {
        // A separate cast keeps the digits of the type.
        let ty = value.ty.clone();
        return Expression { kind: ExpressionKind::Cast(Box::new(value)), ty };
    }
    if !matches!(to.kind, TypeKind::Varchar { .. } | TypeKind::Varbinary { .. }) {
        return value;
    }
    let number = match value.ty.kind {
        TypeKind::Bit { .. } | TypeKind::Year => SqlType::bigint_unsigned(),
        TypeKind::Integer { .. } | TypeKind::Decimal { .. } => value.ty.clone(),
        TypeKind::Float | TypeKind::Double => {
            let arguments = vec![value.clone(), expression_builders::integer(width.into())];
            return match expression_builders::call(typing, "STORED DOUBLE", arguments) {
                Ok(text) => Expression { ty: to.clone().with_nullable(nullable), ..text },
                Err(_) => value,
            };
        }
        _ => return value,
    };
    let number = number.with_nullable(nullable).with_coercibility(value.ty.coercibility);
    let kind = match value.ty.kind == number.kind {
        true => value.kind,
        false => ExpressionKind::Cast(Box::new(value)),
    };
    let number = Expression { kind, ty: number };
    match &number.kind {
        ExpressionKind::Slot(_) | ExpressionKind::Case { .. } if is_of_zeros(&number) => {
            // A separate cast keeps the zeros away.
            let ty = to.clone().with_nullable(nullable);
            Expression { kind: ExpressionKind::Cast(Box::new(number)), ty }
        }
        _ => coerce::cast_to(typing, number, to.clone().with_nullable(nullable)),
    }
}

/// Whether the zeros in front of a number, where a column has them, would get into its text.
fn is_of_zeros(number: &Expression) -> bool {
    match &number.kind {
        ExpressionKind::Slot(_) => true,
        ExpressionKind::Case { branches, otherwise } => {
            let is_null =
                |value: &Expression| matches!(value.kind, ExpressionKind::Literal(Datum::Null));
            // A chosen exact number has its own digits after the point; NULLIF chooses nothing.
            otherwise.is_some() && branches.iter().all(|(_, value)| is_null(value))
                || number.ty.kind.is_integer()
        }
        _ => false,
    }
}

/// `ORDER BY` after a set: by its columns' names, positions, or expressions of them.
pub(crate) fn order_set(
    binder: &mut Binder<'_>,
    mut query: Query,
    order: &[OrderByExpr],
) -> Result<Query> {
    if order.is_empty() {
        return Ok(query);
    }
    let columns = query.columns.iter().map(|column| ScopeColumn {
        name: column.name.clone(),
        ty: column.value.ty.clone(),
        source: ColumnSource::Expression(column.value.clone()),
        invisible: false,
        reported: None,
    });
    let table = ScopeTable {
        alias: "".into(),
        schema: None,
        original: "".into(),
        columns: columns.collect(),
        nullable: false,
        model: None,
        checks: Vec::new(),
        named: None,
    };
    let shown = (0..query.columns.len()).map(|column| ShownColumn { table: 0, column });
    let scope = Scope { shown: shown.collect(), tables: vec![table], ..Scope::default() };
    binder.names.scopes.push(scope);
    let keys = binder.in_clause(Clause::OrderBy, |binder| set_keys(binder, &query.columns, order));
    binder.names.scopes.pop();
    query.order = keys?;
    Ok(query)
}

fn set_keys(
    binder: &mut Binder<'_>,
    columns: &[OutputColumn],
    order: &[OrderByExpr],
) -> Result<Vec<SortKey>> {
    let keys = order.iter().map(|key| {
        let expression: Expression = match (positional(&key.expr), &key.expr) {
            (Some(place), _) => {
                let column = columns.get(place.wrapping_sub(1));
                column.ok_or_else(|| unknown_position(place, "order clause"))?.value.clone()
            }
            (None, Expr::Identifier(name)) => {
                let found = columns.iter().find(|column| same_name(&column.name, name));
                match found {
                    Some(column) => column.value.clone(),
                    None => expressions::bind_single(binder, &key.expr)?,
                }
            }
            (None, Expr::CompoundIdentifier(parts)) if parts.len() > 1 => {
                let table = &parts[parts.len() - 2];
                let message = format!(
                    "Table '{table}' from one of the SELECTs cannot be used in global ORDER clause"
                );
                return Err(SqlError::new(1250, message));
            }
            (None, expr) => expressions::bind_single(binder, expr)?,
        };
        Ok(SortKey { expression, descending: key.ascending == Some(false) })
    });
    keys.collect()
}
