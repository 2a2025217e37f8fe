//! How a column converts a value that is assigned to it.

use crate::execute::Evaluate;
use std::cell::RefCell;

use firn_format::value::DateTime;
use smallvec::SmallVec;

use crate::catalog::model::{ColumnModel, DefaultValue};
use crate::error::{Result, SqlError};
use crate::expression::{Expression, ExpressionKind};
use crate::types::cast::{self, Source, Target};
use crate::types::{Datum, EvaluationContext, SqlMode, SqlType, StatementKind, TypeKind};

use super::super::Execution;

/// What is known of an assigned value.
#[derive(Clone, Copy)]
pub(super) struct Assigned<'t> {
    pub(super) ty: &'t SqlType,
    pub(super) source: Source,
}

impl<'t> Assigned<'t> {
    /// A value of an expression over the row that is written.
    pub(super) fn expression(expression: &'t Expression) -> Assigned<'t> {
        let source = match &expression.kind {
            ExpressionKind::Slot(_) | ExpressionKind::Kept(_) => Source::Column,
            ExpressionKind::Coalesce(_) | ExpressionKind::Case { .. } => Source::Choice,
            ExpressionKind::Call { function, .. }
                if matches!(function.name, "NULLIF" | "GREATEST" | "LEAST") =>
            {
                Source::Choice
            }
            _ => Source::Expression,
        };
        Assigned { ty: &expression.ty, source }
    }

    /// A value of a type that is not a column's.
    pub(super) fn of_type(ty: &'t SqlType) -> Assigned<'t> {
        Assigned { ty, source: Source::Expression }
    }
}

/// A value converted as the column's assignment requires.
pub(super) fn assign(
    value: &Datum,
    from: Assigned<'_>,
    column: &ColumnModel,
    row_number: u64,
    execution: &Execution<'_>,
) -> Result<Datum> {
    let (ty, name, Assigned { ty: from, source }) = (&column.ty, &column.name, from);
    let target = Target { ty, column: name, row: row_number, ctx: execution.context, source };
    cast::assign_within(value, from, target, column.float_limits())
}

/// The value of an expression over the row, converted for a column.
pub(super) fn assign_expression(
    expression: &Expression,
    column: &ColumnModel,
    row_number: u64,
    execution: &mut Execution<'_>,
) -> Result<Datum> {
    let value = expression.evaluate(execution)?;
    assign(&value, Assigned::expression(expression), column, row_number, execution)
}

/// As [`assign`], for a value that is not needed afterwards.
pub(super) fn assign_owned(
    value: Datum,
    from: Assigned<'_>,
    column: &ColumnModel,
    row_number: u64,
    execution: &Execution<'_>,
) -> Result<Datum> {
    match cast::is_stored_as_it_is(&value, from.ty, &column.ty) {
        true => Ok(value),
        false => assign(&value, from, column, row_number, execution),
    }
}

/// What happens to NULL in a column that cannot be NULL, where bad values are adjusted.
#[derive(Clone, Copy)]
pub(super) enum Nulls<'n> {
    /// It is refused all the same.
    Refused,
    /// A warning for each row.
    Each,
    /// The same, as for data that do not fit: for a table that an outer join may leave out.
    BadData,
    /// A warning for each row that the column has its default, as for rows of a file.
    OfFile,
    /// A warning once for each column; these were warned about.
    Once(&'n RefCell<SmallVec<[u16; 4]>>),
}

impl Nulls<'_> {
    /// The value for the column.
    ///
    /// # Errors
    /// 1048 if it is refused, or bad values are; 1265 for bad data.
    pub(super) fn value(
        self,
        column: &ColumnModel,
        row_number: u64,
        execution: &Execution<'_>,
    ) -> Result<Datum> {
        if let Nulls::Refused = self {
            let message = format!("Column '{}' cannot be null", column.name);
            return Err(SqlError::row_refused(1048, message));
        }
        if let Nulls::OfFile = self {
            return null_of_file(column, row_number, execution);
        }
        if let Nulls::BadData = self {
            let (name, context) = (&column.name, execution.context);
            context.bad_value(1265, || {
                format!("Data truncated for column '{name}' at row {row_number}")
            })?;
            return Ok(cast::implicit_default(&column.ty));
        }
        if let Nulls::Once(warned) = self
            && warned.borrow().contains(&column.ordinal)
        {
            return Ok(cast::implicit_default(&column.ty));
        }
        let from = Assigned::of_type(&column.ty);
        let value = assign(&Datum::Null, from, column, row_number, execution)?;
        if let Nulls::Once(warned) = self {
            warned.borrow_mut().push(column.ordinal);
        }
        Ok(value)
    }
}

/// NULL in a file, for a column that cannot be NULL.
///
/// # Errors
/// 1263 in a strict statement.
fn null_of_file(column: &ColumnModel, row_number: u64, execution: &Execution<'_>) -> Result<Datum> {
    if !matches!(column.ty.kind, TypeKind::Timestamp { .. }) {
        execution.context.bad_value(1263, || {
            let name = &column.name;
            format!(
                "Column set to default value; NULL supplied to NOT NULL column '{name}' at row \
                 {row_number}"
            )
        })?;
    }
    value_of_missing(column, execution)
}

/// The value of a column for which a line of a file has no field.
///
/// # Errors
/// As [`now`].
pub(super) fn value_of_missing(column: &ColumnModel, execution: &Execution<'_>) -> Result<Datum> {
    match column.ty.kind {
        _ if column.ty.nullable => Ok(Datum::Null),
        TypeKind::Timestamp { fsp } => now(fsp, &column.ty, execution.context),
        // No member, though a column that is not given has the first one.
        TypeKind::Enum { .. } => Ok(Datum::UInt(0)),
        _ => Ok(cast::implicit_default(&column.ty)),
    }
}

/// Whether a column that is not given has no value.
pub(super) fn lacks_default(column: &ColumnModel) -> bool {
    matches!(column.default, DefaultValue::None) && !column.ty.nullable
}

/// Whether bad values are adjusted, with warnings, instead of refused.
pub(super) fn adjusts(execution: &Execution<'_>) -> bool {
    let context = execution.context;
    context.statement_kind == StatementKind::WriteIgnore || !context.sql_mode.is_strict()
}

/// The value of a column that the statement does not set.
///
/// # Errors
/// 1364 if it has no default.
pub(super) fn default_of(column: &ColumnModel, execution: &Execution<'_>) -> Result<Datum> {
    default_with(column, true, execution)
}

/// As [`default_of`]. If `warns` is false, a missing default causes no warning.
///
/// # Errors
/// As [`default_of`].
pub(super) fn default_with(
    column: &ColumnModel,
    warns: bool,
    execution: &Execution<'_>,
) -> Result<Datum> {
    match &column.default {
        DefaultValue::Null => Ok(Datum::Null),
        DefaultValue::Literal(value) => Ok(literal_default(value, &column.ty, execution.context)),
        DefaultValue::CurrentTimestamp { fsp } => now(*fsp, &column.ty, execution.context),
        // The planner passes these as expressions; a DEFAULT that it did not foresee has none.
        DefaultValue::Expression(_) | DefaultValue::None => {
            missing_default(column, warns, execution)
        }
    }
}

fn missing_default(column: &ColumnModel, warns: bool, execution: &Execution<'_>) -> Result<Datum> {
    // The first member is the default of an ENUM that cannot be NULL.
    if matches!(column.ty.kind, TypeKind::Enum { .. }) && !column.ty.nullable {
        return Ok(Datum::UInt(1));
    }
    let message = || format!("Field '{}' doesn't have a default value", column.name);
    if !adjusts(execution) {
        return Err(SqlError::row_refused(1364, message()));
    }
    if warns {
        execution.context.warn(1364, message);
    }
    if column.ty.nullable { Ok(Datum::Null) } else { Ok(cast::implicit_default(&column.ty)) }
}

/// A timestamp's default is stored in UTC.
fn literal_default(value: &Datum, ty: &SqlType, context: &EvaluationContext) -> Datum {
    match (&ty.kind, value) {
        (TypeKind::Timestamp { .. }, Datum::DateTime(packed)) if *packed != 0 => {
            let utc = DateTime::unpack(*packed);
            let local = crate::types::calendar::unix_us(utc)
                .and_then(|instant| context.time_zone.to_local(instant));
            local.map_or_else(|| value.clone(), Datum::from)
        }
        _ => value.clone(),
    }
}

/// The statement's time with this many digits of a fraction, as a value of a column.
///
/// # Errors
/// If the statement runs in a year beyond 9999.
pub(super) fn now(fsp: u8, ty: &SqlType, context: &EvaluationContext) -> Result<Datum> {
    let step = 10_i64.pow(6 - u32::from(fsp.min(6)));
    let instant = context.statement_time_us - context.statement_time_us.rem_euclid(step);
    let local = context.time_zone.to_local(instant);
    let local = local.ok_or_else(|| SqlError::new(1292, "Incorrect datetime value"))?;
    Ok(match ty.kind {
        TypeKind::Date => Datum::from(local.date),
        _ => Datum::from(local),
    })
}

/// Whether a value of the `AUTO_INCREMENT` column asks for the next number.
pub(super) fn asks_for_next(value: &Datum, context: &EvaluationContext) -> bool {
    let zero = match value {
        Datum::Null => return true,
        Datum::Int(number) => *number == 0,
        Datum::UInt(number) => *number == 0,
        Datum::Double(number) => *number == 0.0,
        _ => false,
    };
    zero && !context.sql_mode.contains(SqlMode::NO_AUTO_VALUE_ON_ZERO)
}
