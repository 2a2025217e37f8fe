//! How long the values of expressions are for clients, and how many digits they have after the
//! point.
//!
//! ```text
//!   a (INT, 11 characters) + 1 (2 characters, its sign included)   LONGLONG, 12 characters
//!   MAX(f) of FLOAT(7,2)                                           FLOAT, 7 characters, 2 decimals
//! ```
//!
//! Slots are looked up in [`Displays`]: a slot that is not there follows its type.

mod call;
mod choice;
mod kept;
mod known;
pub(super) mod nullable;
mod text;

pub(crate) use choice::common_display;
pub use kept::kept_type;
pub(crate) use kept::stored_column;
pub(crate) use known::Displays;

use firn_sql_catalog::model::ColumnModel;
use firn_sql_functions::AggregateFunction;
use firn_sql_grammar::ast::{Expr, Value};
use firn_sql_logical::expression::{Expression, ExpressionKind, Slot, Subquery, SubqueryKind};
use firn_sql_logical::{PlanContext, WindowFunction};
use firn_sql_types::decimal::{MAX_PRECISION, MAX_SCALE};
use firn_sql_types::metadata::{NOT_FIXED_DECIMALS, type_code};
use firn_sql_types::{Coercibility, Datum, Display, SqlType, TypeKind};

use super::coerce::is_written_cast;
use super::{Frame, Typing, literal};

/// A truth value.
pub(crate) const TRUTH_CHARS: u32 = 1;
/// Digits after the point of a system variable that is a double.
const SYSTEM_VARIABLE_DECIMALS: u8 = 6;

/// A table column, where its definition says more than its type.
#[must_use]
pub(crate) fn of_model(column: &ColumnModel) -> Option<Display> {
    let is_plain = column.display_width.is_none()
        && column.display_decimals.is_none()
        && !column.zerofill
        && column.unsigned == column.ty.kind.is_unsigned();
    if is_plain {
        return None;
    }
    let of_type = Display::of_column(&column.ty);
    let has_width = matches!(
        column.ty.kind,
        TypeKind::Integer { .. } | TypeKind::Float | TypeKind::Double | TypeKind::Year
    );
    let width = column.display_width.filter(|_| has_width);
    Some(Display {
        length: width.map_or(of_type.length, u32::from),
        operand_length: None,
        decimals: column.display_decimals.unwrap_or(of_type.decimals),
        unsigned: column.unsigned || of_type.unsigned,
        zerofill: column.zerofill || of_type.zerofill,
        stored: false,
        nullable: None,
        type_code: None,
        keeps_type: false,
    })
}

/// The values of an expression.
pub(crate) fn display(typing: &Typing<'_>, expression: &Expression) -> Display {
    let ty = &expression.ty;
    match &expression.kind {
        ExpressionKind::Literal(datum) => {
            ty.before.get().map_or_else(|| of_literal(datum, ty), |before| before.shown)
        }
        ExpressionKind::Slot(slot) | ExpressionKind::Kept(slot) => {
            let known = typing.displays.of_slot(*slot);
            known.unwrap_or_else(|| Display::of_column(ty).as_expression())
        }
        ExpressionKind::Call { function, arguments } => match ty.before.get() {
            // Under a longer type, a text is as long as it was.
            Some(before) => before.shown,
            None => call::of_call(typing, function.name, arguments, ty),
        },
        ExpressionKind::Case { branches, otherwise } => {
            let values = branches.iter().map(|(_, value)| value);
            choice::of_choice(typing, values.chain(otherwise.as_deref()), ty)
        }
        ExpressionKind::Coalesce(list) => choice::of_choice(typing, list.iter(), ty),
        ExpressionKind::Keep { value, .. } | ExpressionKind::AssignVariable { value, .. } => {
            display(typing, value).as_expression()
        }
        ExpressionKind::Subquery(subquery) => of_subquery(&typing.displays, subquery, ty),
        ExpressionKind::SystemVariable { name, .. } => of_system_variable(typing, name, ty),
        ExpressionKind::Compare { .. }
        | ExpressionKind::And(_)
        | ExpressionKind::Or(_)
        | ExpressionKind::Xor(_)
        | ExpressionKind::Not(_)
        | ExpressionKind::Is { .. }
        | ExpressionKind::InList { .. }
        | ExpressionKind::Like { .. } => Display::integer(ty, TRUTH_CHARS),
        ExpressionKind::Cast(operand) => of_cast(typing, operand, ty),
        ExpressionKind::UserVariable(_)
        | ExpressionKind::Parameter(_)
        | ExpressionKind::Row(_)
        | ExpressionKind::Unresolved(_) => Display::of_expression(ty),
    }
}

/// A cast to text without a written length is as long as its operand.
fn of_cast(typing: &Typing<'_>, operand: &Expression, ty: &SqlType) -> Display {
    let of_type = Display::of_expression(ty);
    // A double with fixed digits becomes text through an exact number.
    let operand = match &operand.kind {
        ExpressionKind::Cast(inner)
            if matches!(inner.ty.kind, TypeKind::Float | TypeKind::Double)
                && matches!(operand.ty.kind, TypeKind::Decimal { .. })
                && !is_written_cast(operand) =>
        {
            inner
        }
        _ => operand,
    };
    if let TypeKind::Binary { .. } = ty.kind {
        return Display { type_code: Some(type_code::VAR_STRING), ..of_type };
    }
    let is_chosen =
        matches!(operand.kind, ExpressionKind::Case { .. } | ExpressionKind::Coalesce(_));
    if is_chosen
        && matches!((&ty.kind, &operand.ty.kind), (TypeKind::Blob { .. }, TypeKind::Text { .. }))
    {
        let bytes = operand.ty.charset().map_or(1, |charset| charset.max_character_bytes());
        return Display { length: of_type.length / bytes * bytes, ..of_type };
    }
    let has_own_length = match ty.kind {
        TypeKind::Varchar { max_chars: length, .. } | TypeKind::Varbinary { max_bytes: length } => {
            length == operand.ty.max_text_chars() || length == operand.ty.max_text_bytes()
        }
        _ => false,
    };
    let is_of_bits = matches!(operand.ty.kind, TypeKind::Bit { .. }) && ty.kind.is_text();
    if !has_own_length || operand.ty.kind == TypeKind::Json || is_of_bits {
        return of_type;
    }
    let (from, shown) = shown_operand(typing, operand);
    let bytes = match ty.kind.is_binary() {
        true => from.charset().map_or(1, |charset| charset.max_character_bytes()),
        false => 1,
    };
    let shown = if ty.kind.is_binary() { shown } else { shown.as_text_of(from) };
    let length = match from.kind == TypeKind::Json && ty.kind.is_text() {
        // What was a document before has the length of a text now.
        true => shown.length.min(of_type.length),
        false => shown.length.saturating_mul(bytes),
    };
    // The longest texts have a whole number of characters, but for those of columns.
    let own_bytes = from.charset().map_or(1, |charset| charset.max_character_bytes());
    let is_column = matches!(operand.kind, ExpressionKind::Slot(_));
    if ty.kind.is_text() && ty.charset() != from.charset() && !is_column {
        return Display { length: length.min(u32::MAX / own_bytes), ..of_type };
    }
    let is_longest = length == u32::MAX && ty.kind.is_binary() && operand.ty.kind.is_text();
    match is_longest && !matches!(operand.kind, ExpressionKind::Slot(_)) {
        true => Display { length: u32::MAX / bytes * bytes, ..of_type },
        false => Display { length, ..of_type },
    }
}

/// The type of the column behind a slot, whatever the slot is used as.
fn column_kind(frame: &Frame, slot: Slot) -> Option<&TypeKind> {
    frame.table_column(slot).map(|column| &column.ty.kind)
}

/// The display of an operand before it was cast to what the operation wants.
pub(super) fn shown_operand<'e>(
    typing: &Typing<'_>,
    expression: &'e Expression,
) -> (&'e SqlType, Display) {
    if let Some(text) = chosen_text(expression) {
        return shown_operand(typing, text);
    }
    if let ExpressionKind::Cast(inner) = &expression.kind
        && !is_written_cast(expression)
        && !is_surely_written_text(inner, &expression.ty)
        && is_implied(&inner.ty, &expression.ty)
    {
        if let Some(text) = chosen_text(inner) {
            return shown_operand(typing, text);
        }
        let shown = shown_operand(typing, inner);
        // A double with fixed digits becomes a text first.
        return match inner.number_behind_text() {
            Some(number) if number.ty.kind == shown.0.kind => shown,
            _ => (&inner.ty, shown.1),
        };
    }
    if matches!(expression.kind, ExpressionKind::Literal(_))
        && let Some(before) = expression.ty.before.get()
    {
        return (&before.operand.0, before.operand.1);
    }
    if let Some(number) = expression.number_behind_text() {
        return match number.ty.kind {
            TypeKind::Float | TypeKind::Double => shown_operand(typing, number),
            // The digits of a zero-filled column are those of a number.
            _ => (&number.ty, display(typing, expression)),
        };
    }
    let display = display(typing, expression);
    match (&expression.kind, &expression.ty.kind) {
        // The width of the type matters, not that of the definition, even if the column is used
        // as a wider type.
        (
            ExpressionKind::Slot(slot),
            TypeKind::Integer { .. }
            | TypeKind::Decimal { .. }
            | TypeKind::Text { .. }
            | TypeKind::Blob { .. }
            | TypeKind::Varchar { .. }
            | TypeKind::Varbinary { .. },
        ) => {
            let kind = column_kind(&typing.frame, *slot);
            let own = kind.map(|kind| SqlType::new(kind.clone()));
            let display = match own {
                Some(own) => Display::of_column(&own).as_expression(),
                None if display.operand_length.is_some() => display.as_operand(),
                None => display,
            };
            (&expression.ty, display)
        }
        _ => (&expression.ty, display),
    }
}

/// The text that `GREATEST` and `LEAST` choose, where it is read as a date: its number is a text's.
fn chosen_text(date: &Expression) -> Option<&Expression> {
    let ExpressionKind::Cast(text) = &date.kind else { return None };
    let ExpressionKind::Call { function, .. } = &text.kind else { return None };
    let is_chosen = matches!(function.name, "GREATEST" | "LEAST") && text.ty.kind.is_string();
    (is_chosen && date.ty.kind.has_date()).then_some(text)
}

/// The type of an exact number without its digits after the point: MySQL makes it a `BIGINT` if the
/// digits that clients see of the operand fit into one.
pub(crate) fn whole_type(typing: &Typing<'_>, arguments: &[Expression], ty: SqlType) -> SqlType {
    const LONGEST_BIGINT_DIGITS: u8 = 18;
    match arguments {
        [number] if matches!(number.ty.kind, TypeKind::Decimal { .. }) => {
            match call::whole_digits(&shown_operand(typing, number)) {
                ..=LONGEST_BIGINT_DIGITS => SqlType::bigint(),
                digits => SqlType::decimal(digits, 0),
            }
            .with_nullable(ty.nullable)
        }
        _ => ty,
    }
}

/// The display of an operand before any cast.
pub(super) fn written<'e>(
    typing: &Typing<'_>,
    expression: &'e Expression,
) -> (&'e SqlType, Display) {
    match &expression.kind {
        ExpressionKind::Cast(inner) => match (&inner.kind, inner.ty.before.get()) {
            (ExpressionKind::Literal(_), Some(before)) if before.written.0.kind.is_binary() => {
                (&before.written.0, before.written.1)
            }
            _ => shown_operand(typing, inner),
        },
        ExpressionKind::Literal(_) => match expression.ty.before.get() {
            Some(before) => (&before.written.0, before.written.1),
            None => shown_operand(typing, expression),
        },
        _ => shown_operand(typing, expression),
    }
}

/// The display of an item of a select list; how it is written may say more.
pub(crate) fn display_of_item(typing: &Typing<'_>, expr: &Expr, value: &Expression) -> Display {
    let display = display(typing, value);
    let literal = match expr {
        Expr::Value(literal) => literal,
        Expr::UnaryOp { expr: operand, .. } => match &**operand {
            Expr::Value(literal @ Value::Number(digits)) if digits.starts_with('.') => literal,
            _ => return display,
        },
        Expr::Function(function)
            if ["IFNULL", "PI"].iter().any(|name| function.name.eq_ignore_ascii_case(name)) =>
        {
            return Display { keeps_type: true, ..display };
        }
        _ => return display,
    };
    match literal {
        Value::Boolean(_) => Display { length: TRUTH_CHARS, ..display },
        // Such a literal is told of like a column.
        Value::Hexadecimal(_) => Display { unsigned: true, ..display.as_stored() },
        Value::Bits(_) => display.as_stored(),
        Value::Number(digits) if value.ty.kind == TypeKind::Double => {
            Display { length: digits.len() as u32, ..display }
        }
        // The zero that is not written does not count.
        Value::Number(digits) if digits.starts_with('.') => {
            Display { length: display.length.saturating_sub(1), ..display }
        }
        _ => display,
    }
}

/// What clients see of a value that a temporary table has kept: whole numbers are of one of two
/// types.
pub(crate) fn from_temporary_table(display: Display, ty: &SqlType) -> Display {
    let is_whole = matches!(ty.kind, TypeKind::Integer { .. } | TypeKind::Year);
    if !display.stored || !is_whole {
        return display;
    }
    let is_short = display.length <= kept::FEW_DIGITS;
    let code = if is_short { type_code::LONG } else { type_code::LONGLONG };
    Display { type_code: Some(code), zerofill: false, ..display }
}

fn of_subquery(displays: &Displays, subquery: &Subquery, ty: &SqlType) -> Display {
    match &subquery.kind {
        SubqueryKind::Scalar => {
            let column = displays.of_subquery(subquery.number);
            column.unwrap_or_else(|| Display::of_column(ty)).as_expression()
        }
        _ => Display::integer(ty, TRUTH_CHARS),
    }
}

/// The result of an aggregate.
pub(crate) fn of_aggregate(
    typing: &Typing<'_>,
    function: AggregateFunction,
    arguments: &[Expression],
    ty: &SqlType,
) -> Display {
    let worked_out = Display::of_expression(ty);
    let Some(argument) = arguments.first() else { return worked_out };
    let (of, display) = shown_operand(typing, argument);
    match function {
        AggregateFunction::BitAnd | AggregateFunction::BitOr | AggregateFunction::BitXor
            if ty.kind.is_binary() =>
        {
            // Room for one more byte, and told of like a column of numbers.
            let length = display.length.saturating_add(1);
            let type_code = Some(type_code::VAR_STRING);
            let nullable = Some(false);
            Display { length, unsigned: true, type_code, nullable, ..worked_out.as_stored() }
        }
        AggregateFunction::Min | AggregateFunction::Max | AggregateFunction::AnyValue => {
            // Nothing but a written cast makes bytes of an argument.
            let (of, display) = match (&argument.kind, literal::written_bytes(argument)) {
                (ExpressionKind::Cast(_) | ExpressionKind::Literal(_), None)
                    if argument.ty.kind.is_binary() =>
                {
                    (&argument.ty, self::display(typing, argument))
                }
                _ => (of, display),
            };
            let is_long = matches!(of.kind, TypeKind::Text { .. } | TypeKind::Blob { .. });
            let code = match &of.kind {
                kind if kind.is_enum_or_set() => Some(type_code::STRING),
                _ if is_long && matches!(argument.kind, ExpressionKind::Slot(_)) => {
                    Some(type_code::BLOB)
                }
                _ => None,
            };
            let type_code = code.or(display.type_code);
            let display = match function {
                AggregateFunction::AnyValue => of_any_value(typing, of, argument, display),
                _ => display,
            };
            let shown = match literal::written_bytes(argument) {
                Some(_) if function != AggregateFunction::AnyValue => display.as_stored(),
                _ => display.as_expression(),
            };
            Display { nullable: None, type_code, ..shown }
        }
        AggregateFunction::Sum => of_sum(of, display, ty),
        AggregateFunction::Average => of_average(typing.context, of, display, ty),
        AggregateFunction::GroupConcat => {
            let bytes = typing.context.evaluation.group_concat_max_length_bytes;
            let character_bytes = ty.charset().map_or(1, |charset| charset.max_character_bytes());
            let length = bytes.saturating_mul(character_bytes.into());
            Display { length: length.min(u32::MAX.into()) as u32, ..worked_out }
        }
        _ => worked_out,
    }
}

/// The number of a column in `ANY_VALUE`: with the width of its type, and room for a sign.
fn of_any_value(
    typing: &Typing<'_>,
    of: &SqlType,
    argument: &Expression,
    display: Display,
) -> Display {
    let ExpressionKind::Slot(slot) = argument.kind else {
        let is_exact = matches!(of.kind, TypeKind::Decimal { .. });
        let length = display.length + u32::from(is_exact && display.unsigned);
        let unsigned = display.unsigned && !is_exact && !of.kind.is_binary();
        return Display { length, unsigned, ..display };
    };
    let column = typing.frame.table_column(slot);
    let is_zero_filled = display.zerofill || column.is_some_and(|column| column.zerofill);
    match of.kind {
        TypeKind::Float | TypeKind::Double if display.decimals == NOT_FIXED_DECIMALS => {
            Display { length: Display::of_expression(of).length, ..display }
        }
        TypeKind::Decimal { .. } => {
            let length = display.length + u32::from(display.unsigned);
            Display { length, unsigned: false, zerofill: false, ..display }
        }
        TypeKind::Integer { .. } if is_zero_filled => {
            Display { length: Display::of_column(of).length, ..display }
        }
        _ => display,
    }
}

/// The result of a window function: MySQL stores it in a temporary table.
pub(crate) fn of_window(
    typing: &Typing<'_>,
    function: &WindowFunction,
    arguments: &[Expression],
    ty: &SqlType,
) -> Display {
    let display = match function {
        WindowFunction::Aggregate(call) => of_aggregate(typing, call.function, &call.arguments, ty),
        WindowFunction::Lag | WindowFunction::Lead => {
            let values = arguments.iter().take(1).chain(arguments.get(2));
            let nullable = arguments.len() < 3
                || values.clone().any(|value| nullable::shown_nullable(typing, value));
            let shown = choice::of_choice(typing, values, ty);
            Display { nullable: Some(nullable), ..shown }
        }
        WindowFunction::FirstValue | WindowFunction::LastValue | WindowFunction::NthValue => {
            let argument = arguments.first().map(|argument| shown_operand(typing, argument).1);
            let display = argument.unwrap_or_else(|| Display::of_expression(ty));
            Display { nullable: None, ..display }
        }
        _ => Display::of_expression(ty),
    };
    display.as_stored()
}

fn of_sum(of: &SqlType, display: Display, ty: &SqlType) -> Display {
    match (&ty.kind, display.decimals) {
        (TypeKind::Decimal { .. }, scale) => {
            let precision = display.precision(&of.kind).saturating_add(22).min(65);
            Display::exact(ty, precision, scale)
        }
        _ if is_without_digits(of, &display) => Display::of_expression(ty),
        (_, NOT_FIXED_DECIMALS) => Display::of_expression(ty),
        (_, decimals) => fixed_double(ty, decimals),
    }
}

fn of_average(context: &PlanContext<'_>, of: &SqlType, display: Display, ty: &SqlType) -> Display {
    let more = context.evaluation.div_precision_increment;
    match (&ty.kind, display.decimals) {
        (TypeKind::Decimal { .. }, scale) => {
            let precision = display.precision(&of.kind).saturating_add(more).min(65);
            Display::exact(ty, precision, scale.saturating_add(more).min(30))
        }
        _ if is_without_digits(of, &display) => Display::of_expression(ty),
        (_, NOT_FIXED_DECIMALS) => Display::of_expression(ty),
        (_, decimals) => fixed_double(ty, decimals.saturating_add(more)),
    }
}

/// Whether the digits after the point of a number made of a value are unknown: of a text, a
/// document, and a column of a temporary table that is only NULL.
pub(super) fn is_without_digits(of: &SqlType, display: &Display) -> bool {
    match of.kind {
        TypeKind::Json => true,
        TypeKind::Null => display.stored,
        _ => of.kind.is_string(),
    }
}

/// A double of `decimals` digits after the point.
fn fixed_double(ty: &SqlType, decimals: u8) -> Display {
    const DIGITS_AND_SIGNS: u32 = 17;
    let length = DIGITS_AND_SIGNS + u32::from(decimals);
    Display { length, decimals, ..Display::of_expression(ty) }
}

fn of_literal(datum: &Datum, ty: &SqlType) -> Display {
    let digits = |number: u64| number.checked_ilog10().unwrap_or(0) + 1;
    match datum {
        Datum::Int(number) if matches!(ty.kind, TypeKind::Integer { .. }) => {
            Display::integer(ty, digits(number.unsigned_abs()) + 1)
        }
        Datum::UInt(number) if matches!(ty.kind, TypeKind::Integer { .. }) => {
            Display::integer(ty, digits(*number))
        }
        Datum::Decimal(number) if matches!(ty.kind, TypeKind::Decimal { .. }) => {
            let text = number.to_string();
            let whole = text.trim_start_matches('-').split('.').next().map_or(0, str::len);
            let scale = ty.kind.scale();
            let most = if scale > MAX_SCALE { u8::MAX } else { MAX_PRECISION };
            Display::exact(ty, (whole as u8).saturating_add(scale).min(most), scale)
        }
        _ => Display::of_expression(ty),
    }
}

fn of_system_variable(typing: &Typing<'_>, name: &str, ty: &SqlType) -> Display {
    match &ty.kind {
        TypeKind::Double => {
            Display { decimals: SYSTEM_VARIABLE_DECIMALS, ..Display::of_expression(ty) }
        }
        _ if typing.context.variables.is_switch(name) => Display::integer(ty, TRUTH_CHARS),
        _ => Display::of_expression(ty),
    }
}

/// Whether a cast of a number or a time to text was written in the statement; a cast added for an
/// operation has its operand's coercibility.
fn is_written_text(operand: &Expression, to: &SqlType) -> bool {
    let kind = &operand.ty.kind;
    (kind.is_numeric() || kind.is_temporal() || *kind == TypeKind::Null)
        && to.kind.is_string()
        && to.coercibility == Coercibility::Implicit
}

/// As [`is_written_text`], unless the operand is a written cast too, or a choice: a cast that is
/// added to these looks like one that is written. Names and documents become shorter texts only by
/// a written cast.
pub(super) fn is_surely_written_text(operand: &Expression, to: &SqlType) -> bool {
    let from = &operand.ty;
    let longest = match from.kind {
        TypeKind::Json => u32::MAX / 4,
        ref kind if kind.is_enum_or_set() => from.max_text_chars(),
        _ => 0,
    };
    let is_cut = to.kind.is_text() && to.max_text_chars() < longest;
    is_cut || from.coercibility != Coercibility::Implicit && is_written_text(operand, to)
}

/// Whether an operation asks its operands for a cast from one type to the other.
fn is_implied(from: &SqlType, to: &SqlType) -> bool {
    let is_number = |ty: &SqlType| ty.kind.is_numeric();
    match &to.kind {
        kind if kind.is_numeric() && from.kind == TypeKind::Null => true,
        TypeKind::Float => is_number(from),
        TypeKind::Double | TypeKind::Decimal { .. } => is_number(from) || from.kind.is_temporal(),
        TypeKind::Integer { .. } => from.kind.is_integer() || from.kind.is_temporal(),
        TypeKind::Text { .. } | TypeKind::Blob { .. } => true,
        // Only a written cast has this type.
        TypeKind::Binary { .. } => false,
        TypeKind::Varbinary { .. } => {
            !from.kind.is_binary() || matches!(from.kind, TypeKind::Binary { .. })
        }
        kind if kind.is_string() => !from.kind.is_string(),
        _ => from.kind == to.kind,
    }
}
