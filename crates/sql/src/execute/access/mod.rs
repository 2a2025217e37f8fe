//! Values as keys of an index: the keys that a scan has to visit.
//!
//! ```text
//!   c TINYINT, index (c)       c = 7      key of 7               c = 300    nothing
//!                              c > 6.5    from behind 6          c < 300    all that are not NULL
//! ```
//!
//! A value that the column cannot hold equals nothing. It lies between two values that the column
//! can hold, or outside all of them ([`Fit`]): bounds move there.

mod column_domain;
mod filter;
mod sent;

use crate::execute::Evaluate;
use std::ops::Bound;

use firn_api::rows::TableRef;
use firn_format::definition::IndexKind;
use firn_format::key::{KeyLayout, KeyPart, KeyRange};
use firn_format::value::ValueRef;
use smallvec::SmallVec;

use crate::error::{Result, SqlError};
use crate::expression::{Expression, ExpressionKind};
use crate::plan::{Access, RangePlan, ScanPlan};
use crate::types::Datum;

use super::Execution;
use super::cursor::is_backward;
use super::error::from_key;

pub(crate) use column_domain::{Fit, Fitted, fit};
pub(crate) use filter::{NodeFilter, node_filter};
pub(crate) use sent::sent;

/// A part of a scan's access path.
pub(crate) enum Step {
    /// The one row with this full key of a unique index.
    Point(Vec<u8>),
    /// The rows with these keys.
    Range(KeyRange),
}

impl Step {
    /// Whether it is a point.
    pub(crate) fn is_point(&self) -> bool {
        matches!(self, Step::Point(_))
    }
}

/// An index of a plan.
struct Index<'t> {
    /// Its number; `None` for the clustered one.
    number: Option<usize>,
    layout: &'t KeyLayout,
    unique: bool,
}

fn index(table: &TableRef, number: Option<usize>) -> Result<Index<'_>> {
    let (definition, layout) = (table.definition(), table.layout());
    let clustered = Index { number: None, layout: &layout.clustered, unique: true };
    let Some(number) = number else { return Ok(clustered) };
    let missing = || SqlError::new(1176, "The plan uses an index that the table does not have");
    let index = definition.indexes.get(number).ok_or_else(missing)?;
    if index.kind == IndexKind::Clustered {
        return Ok(clustered);
    }
    let secondary = layout.secondary.iter().find(|(id, _)| *id == index.index_id);
    let (_, secondary) = secondary.ok_or_else(missing)?;
    let unique = secondary.is_unique();
    Ok(Index { number: Some(number), layout: secondary.key(), unique })
}

/// Appends the steps of a plan's access path to `steps`, the first one last.
pub(crate) fn steps(
    plan: &ScanPlan,
    table: &TableRef,
    execution: &mut Execution<'_>,
    steps: &mut Vec<(Option<usize>, Step)>,
) -> Result<()> {
    access_steps(plan, &plan.access, table, execution, steps)
}

fn access_steps(
    plan: &ScanPlan,
    access: &Access,
    table: &TableRef,
    execution: &mut Execution<'_>,
    steps: &mut Vec<(Option<usize>, Step)>,
) -> Result<()> {
    match access {
        Access::Full { index: number } => {
            let index = index(table, *number)?;
            steps.push((index.number, Step::Range(KeyRange::all())));
        }
        Access::Point { index: number, key } => {
            let index = index(table, *number)?;
            let mut bytes = Vec::new();
            if point_key(plan, table, index.layout, key, execution, &mut bytes)? {
                steps.push((index.number, Step::Point(bytes)));
            }
        }
        Access::Ranges { index: number, ranges } => {
            let index = index(table, *number)?;
            range_steps(plan, ranges, table, &index, execution, steps)?;
        }
        Access::Union(ways) => {
            for way in ways {
                access_steps(plan, way, table, execution, steps)?;
            }
        }
    }
    Ok(())
}

/// Writes the key of a point of the clustered index to `key`; false if no row can have it.
pub(crate) fn clustered_point(
    plan: &ScanPlan,
    table: &TableRef,
    values: &[Expression],
    execution: &mut Execution<'_>,
    key: &mut Vec<u8>,
) -> Result<bool> {
    key.clear();
    point_key(plan, table, &table.layout().clustered, values, execution, key)
}

fn point_key(
    plan: &ScanPlan,
    table: &TableRef,
    layout: &KeyLayout,
    values: &[Expression],
    execution: &mut Execution<'_>,
    key: &mut Vec<u8>,
) -> Result<bool> {
    if let ([value], [part]) = (values, layout.parts()) {
        // The most common access to a row: no array of values.
        let operand = value.operand(execution)?;
        let datum = value.of(&operand, execution)?;
        let Fit::Exact(fitted) = fit_part(plan, part, value, datum, execution)? else {
            return Ok(false);
        };
        let written = layout.encode_parts(&[fitted.as_ref()], table.collations(), key);
        return written.map(|()| true).map_err(from_key);
    }
    let datums = evaluate_all(values, execution)?;
    let Some(fitted) = fit_all(plan, layout, values, &datums, &[], execution)? else {
        return Ok(false);
    };
    let fitted: SmallVec<[ValueRef<'_>; 4]> = fitted.iter().map(Fitted::as_ref).collect();
    layout.encode_parts(&fitted, table.collations(), key).map_err(from_key)?;
    Ok(true)
}

fn evaluate_all(
    values: &[Expression],
    execution: &mut Execution<'_>,
) -> Result<SmallVec<[Datum; 4]>> {
    values.iter().map(|value| value.evaluate(execution)).collect()
}

fn fit_part<'a>(
    plan: &'a ScanPlan,
    part: &KeyPart,
    value: &Expression,
    datum: &'a Datum,
    execution: &Execution<'_>,
) -> Result<Fit<'a>> {
    if let Datum::Null = datum {
        return Ok(Fit::Never);
    }
    let column = plan.table.by_ordinal(part.column);
    let column =
        column.ok_or_else(|| SqlError::new(1105, "Unknown error: a key without a column"))?;
    fit(datum, &value.ty, &column.ty, part.column_type, execution.context)
}

/// The values of the first parts as their columns hold them; `None` if no row can have them. A NULL
/// is a value where `null_safe` says so.
fn fit_all<'a>(
    plan: &'a ScanPlan,
    layout: &KeyLayout,
    values: &[Expression],
    datums: &'a [Datum],
    null_safe: &[bool],
    execution: &Execution<'_>,
) -> Result<Option<SmallVec<[Fitted<'a>; 4]>>> {
    let mut all = SmallVec::new();
    for (number, (value, datum)) in values.iter().zip(datums).enumerate() {
        let Some(part) = layout.parts().get(number) else {
            return Err(SqlError::new(1105, "Unknown error: a key with too many values"));
        };
        if datum.is_null() && part.nullable && null_safe.get(number) == Some(&true) {
            all.push(Fitted::Value(ValueRef::Null));
            continue;
        }
        match fit_part(plan, part, value, datum, execution)? {
            Fit::Exact(fitted) => all.push(fitted),
            _ => return Ok(None),
        }
    }
    Ok(Some(all))
}

fn range_steps(
    plan: &ScanPlan,
    ranges: &[RangePlan],
    table: &TableRef,
    index: &Index<'_>,
    execution: &mut Execution<'_>,
    steps: &mut Vec<(Option<usize>, Step)>,
) -> Result<()> {
    let mut found: SmallVec<[(KeyRange, bool); 2]> = SmallVec::new();
    for range in ranges {
        if let Some((keys, is_point)) = key_range(plan, range, table, index, execution)?
            && !keys.is_empty()
        {
            found.push((keys, is_point));
        }
    }
    if found.len() > 1 {
        found = merged(found);
    }
    let step = |(range, is_point): (KeyRange, bool)| {
        let step = if is_point { Step::Point(range.start) } else { Step::Range(range) };
        (index.number, step)
    };
    if is_backward(plan.direction) {
        steps.extend(found.into_iter().map(step));
    } else {
        steps.extend(found.into_iter().rev().map(step));
    }
    Ok(())
}

/// Ranges in ascending order; overlapping ones are merged.
fn merged(mut ranges: SmallVec<[(KeyRange, bool); 2]>) -> SmallVec<[(KeyRange, bool); 2]> {
    ranges.sort_by(|(one, _), (other, _)| one.start.cmp(&other.start));
    let mut merged: SmallVec<[(KeyRange, bool); 2]> = SmallVec::new();
    for (range, is_point) in ranges {
        match merged.last_mut() {
            Some((last, last_is_point)) if overlaps(last, &range) => {
                let same = *last == range;
                *last_is_point = *last_is_point && is_point && same;
                if last.end.is_some() && (range.end.is_none() || range.end > last.end) {
                    last.end = range.end;
                }
            }
            _ => merged.push((range, is_point)),
        }
    }
    merged
}

/// Whether a range that does not begin earlier begins before the other ends.
fn overlaps(first: &KeyRange, second: &KeyRange) -> bool {
    first.end.as_ref().is_none_or(|end| second.start < *end)
}

/// The keys of a range, and whether they are one full key of a unique index; `None` if there are
/// none.
fn key_range(
    plan: &ScanPlan,
    range: &RangePlan,
    table: &TableRef,
    index: &Index<'_>,
    execution: &mut Execution<'_>,
) -> Result<Option<(KeyRange, bool)>> {
    let layout = index.layout;
    let equal = evaluate_all(&range.equal, execution)?;
    let lower = range.lower.as_ref().map(|(value, _)| value.evaluate(execution)).transpose()?;
    let upper = range.upper.as_ref().map(|(value, _)| value.evaluate(execution)).transpose()?;
    let fitted = fit_all(plan, layout, &range.equal, &equal, &range.null_safe, execution)?;
    let Some(fitted) = fitted else { return Ok(None) };
    let values: SmallVec<[ValueRef<'_>; 4]> = fitted.iter().map(Fitted::as_ref).collect();
    let bounds = match layout.parts().get(equal.len()) {
        Some(part) if lower.is_some() || upper.is_some() => {
            let lower = range.lower.as_ref().zip(lower.as_ref());
            let upper = range.upper.as_ref().zip(upper.as_ref());
            let lower = lower_bound(plan, part, lower, execution)?;
            let Some((lower, upper)) = lower.zip(upper_bound(plan, part, upper, execution)?) else {
                return Ok(None);
            };
            (lower, upper)
        }
        _ => (Bound::Unbounded, Bound::Unbounded),
    };
    let keys = layout.range(
        &values,
        bounds.0.as_ref().map(Fitted::as_ref),
        bounds.1.as_ref().map(Fitted::as_ref),
        table.collations(),
    );
    let is_point = index.unique
        && values.len() == layout.parts().len()
        && values.iter().all(|value| !value.is_null())
        && layout.parts().iter().all(|part| part.prefix_length.is_none());
    Ok(Some((keys.map_err(from_key)?, is_point)))
}

type PlannedBound<'a> = Option<(&'a (Expression, bool), &'a Datum)>;

/// Where a part's values begin; `None` if no value is in the range.
fn lower_bound<'a>(
    plan: &'a ScanPlan,
    part: &KeyPart,
    bound: PlannedBound<'a>,
    execution: &Execution<'_>,
) -> Result<Option<Bound<Fitted<'a>>>> {
    let all = match part.nullable {
        true => Bound::Excluded(Fitted::Value(ValueRef::Null)),
        false => Bound::Unbounded,
    };
    let Some(((value, inclusive), datum)) = bound else { return Ok(Some(all)) };
    if matches!(value.kind, ExpressionKind::Literal(Datum::Null)) && !*inclusive {
        return Ok(Some(all)); // IS NOT NULL
    }
    Ok(match fit_part(plan, part, value, datum, execution)? {
        Fit::Exact(value) if *inclusive => Some(Bound::Included(value)),
        Fit::Exact(value) | Fit::Above(value) => Some(Bound::Excluded(value)),
        Fit::BelowAll => Some(all),
        Fit::AboveAll | Fit::Never => None,
    })
}

/// Where a part's values end; `None` if no value is in the range.
fn upper_bound<'a>(
    plan: &'a ScanPlan,
    part: &KeyPart,
    bound: PlannedBound<'a>,
    execution: &Execution<'_>,
) -> Result<Option<Bound<Fitted<'a>>>> {
    let Some(((value, inclusive), datum)) = bound else { return Ok(Some(Bound::Unbounded)) };
    Ok(match fit_part(plan, part, value, datum, execution)? {
        Fit::Exact(value) if !*inclusive => Some(Bound::Excluded(value)),
        Fit::Exact(value) | Fit::Above(value) => Some(Bound::Included(value)),
        Fit::AboveAll => Some(Bound::Unbounded),
        Fit::BelowAll | Fit::Never => None,
    })
}
