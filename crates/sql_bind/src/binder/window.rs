//! Window functions.
//!
//! ```text
//!   RANK() OVER w, SUM(a) OVER w … WINDOW w AS (PARTITION BY b ORDER BY c)
//!     one window with two calls; each writes a slot
//! ```

use firn_sql_grammar::ast::{
    Expr, Function, Window as WrittenWindow, WindowFrame as WrittenFrame, WindowFrameBound,
    WindowFrameUnits, WindowSpec,
};
use firn_sql_logical::expression::equivalence::{same_expression, same_list};
use firn_sql_logical::expression::{AggregateCall, Expression, SortKey};
use firn_sql_logical::{FrameBound, Window, WindowCall, WindowFrame, WindowFunction};
use firn_sql_types::SqlType;
use firn_sql_types::error::{Result, SqlError};

use super::scope::Clause;
use super::{
    Binder, Names, Typing, aggregate, cast, coerce, display, expression_builders, expressions,
    function,
};

/// Whether a function requires a window.
#[must_use]
pub(crate) fn is_window_only(name: &str) -> bool {
    matches!(
        name,
        "ROW_NUMBER"
            | "RANK"
            | "DENSE_RANK"
            | "PERCENT_RANK"
            | "CUME_DIST"
            | "NTILE"
            | "LAG"
            | "LEAD"
            | "FIRST_VALUE"
            | "LAST_VALUE"
            | "NTH_VALUE"
    )
}

/// A call with `OVER`, as the slot of its result.
pub(crate) fn window_call(
    binder: &mut Binder<'_>,
    name: &str,
    function: &Function,
) -> Result<Expression> {
    if !binder.names.innermost().allows_windows {
        let message = format!(
            "You cannot use the window function '{}' in this context.",
            name.to_lowercase()
        );
        return Err(SqlError::new(3593, message));
    }
    let window = match function.over.as_deref() {
        Some(WrittenWindow::Named(name)) => named_window(binder, name)?,
        Some(WrittenWindow::Spec(spec)) => window_of(binder, spec)?,
        None => return Err(SqlError::not_supported("OVER without a window")),
    };
    let (of, arguments, ty) = window_function(binder, name, function)?;
    let output = binder.typing.frame.new_slot(None);
    let of = match of {
        WindowFunction::Aggregate(call) => {
            WindowFunction::Aggregate(AggregateCall { output, ..call })
        }
        of => of,
    };
    let display = display::of_window(&binder.typing, &of, &arguments, &ty);
    binder.typing.displays.set_slot(output, display);
    let call = WindowCall { function: of, arguments, output, ty: ty.clone() };
    keep_window(&mut binder.names, window, call);
    Ok(expression_builders::slot(output, ty))
}

fn keep_window(names: &mut Names, window: Window, call: WindowCall) {
    let windows = &mut names.innermost().windows;
    match windows.iter_mut().find(|other| same_window(other, &window)) {
        Some(present) => present.calls.push(call),
        None => windows.push(Window { calls: vec![call], ..window }),
    }
}

fn window_function(
    binder: &mut Binder<'_>,
    name: &str,
    function: &Function,
) -> Result<(WindowFunction, Vec<Expression>, SqlType)> {
    if let Some(aggregate) = super::aggregate::named(name) {
        let call = aggregate::aggregate_call(binder, aggregate, function)?;
        if call.distinct {
            return Err(SqlError::not_supported("<window function>(DISTINCT ..)"));
        }
        let ty = call.ty.clone();
        return Ok((WindowFunction::Aggregate(call), Vec::new(), ty));
    }
    let mut arguments = function::arguments(binder, function)?;
    // In another row's place, the names of an ENUM are texts, and sort as texts.
    if arguments.first().is_some_and(|value| value.ty.kind.is_enum_or_set()) {
        let value = arguments.remove(0);
        let value = coerce::unified(&mut binder.typing, vec![value], "window")?.0.remove(0);
        arguments.insert(0, value);
    }
    let number = SqlType::bigint_unsigned().not_null();
    let (of, ty, wanted) = match name {
        "ROW_NUMBER" => (WindowFunction::RowNumber, number, 0..=0),
        "RANK" => (WindowFunction::Rank, number, 0..=0),
        "DENSE_RANK" => (WindowFunction::DenseRank, number, 0..=0),
        "PERCENT_RANK" => (WindowFunction::PercentRank, SqlType::double().not_null(), 0..=0),
        "CUME_DIST" => {
            (WindowFunction::CumulativeDistribution, SqlType::double().not_null(), 0..=0)
        }
        "NTILE" => (WindowFunction::Ntile, number, 1..=1),
        "LAG" | "LEAD" => return shifted(&mut binder.typing, name == "LAG", arguments),
        "FIRST_VALUE" => (WindowFunction::FirstValue, first_type(&arguments), 1..=1),
        "LAST_VALUE" => (WindowFunction::LastValue, first_type(&arguments), 1..=1),
        "NTH_VALUE" => (WindowFunction::NthValue, first_type(&arguments), 2..=2),
        _ => return Err(SqlError::not_supported(&format!("{name} as a window function"))),
    };
    if !wanted.contains(&arguments.len()) {
        return Err(SqlError::syntax(")", 1));
    }
    Ok((of, arguments, ty))
}

fn shifted(
    typing: &mut Typing<'_>,
    is_lag: bool,
    mut arguments: Vec<Expression>,
) -> Result<(WindowFunction, Vec<Expression>, SqlType)> {
    if !(1..=3).contains(&arguments.len()) {
        return Err(SqlError::syntax(")", 1));
    }
    let of = if is_lag { WindowFunction::Lag } else { WindowFunction::Lead };
    let mut ty = first_type(&arguments);
    if arguments.len() == 3 {
        let otherwise = arguments.pop().unwrap_or_else(expression_builders::null);
        let value = arguments.remove(0);
        let (mut both, common) = coerce::unified(typing, vec![value, otherwise], "lag")?;
        ty = common.with_nullable(true);
        let otherwise = both.pop().unwrap_or_else(expression_builders::null);
        let value = both.pop().unwrap_or_else(expression_builders::null);
        arguments.insert(0, value);
        arguments.push(otherwise);
    }
    Ok((of, arguments, ty))
}

fn named_window(binder: &mut Binder<'_>, name: &str) -> Result<Window> {
    let spec = named_spec(&mut binder.names, name)?;
    window_of(binder, &spec)
}

fn named_spec(names: &mut Names, name: &str) -> Result<WindowSpec> {
    let windows = &names.innermost().named_windows;
    let found = windows.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
    found
        .map(|(_, spec)| spec.clone())
        .ok_or_else(|| SqlError::new(3579, format!("Window name '{name}' is not defined.")))
}

fn window_of(binder: &mut Binder<'_>, spec: &WindowSpec) -> Result<Window> {
    let mut spec = spec.clone();
    let mut names = 0;
    while let Some(name) = spec.name.take() {
        names += 1;
        if names > 64 {
            return Err(SqlError::new(
                3580,
                "There is a circularity in the window dependency graph.",
            ));
        }
        let base = named_spec(&mut binder.names, &name)?;
        if spec.partition_by.is_empty() {
            spec.partition_by = base.partition_by;
        }
        if spec.order_by.is_empty() {
            spec.order_by = base.order_by;
        }
        if spec.frame.is_none() {
            spec.frame = base.frame;
        }
        spec.name = base.name;
    }
    binder.in_clause(Clause::Window, |binder| bind_window(binder, &spec))
}

fn bind_window(binder: &mut Binder<'_>, spec: &WindowSpec) -> Result<Window> {
    binder.names.innermost().allows_windows = false;
    let bound = bind_window_parts(binder, spec);
    binder.names.innermost().allows_windows = true;
    bound
}

fn bind_window_parts(binder: &mut Binder<'_>, spec: &WindowSpec) -> Result<Window> {
    let mut partition = Vec::with_capacity(spec.partition_by.len());
    for expr in &spec.partition_by {
        partition.push(expressions::bind_single(binder, expr)?);
    }
    let mut order = Vec::with_capacity(spec.order_by.len());
    for key in &spec.order_by {
        let expression = expressions::bind_single(binder, &key.expr)?;
        order.push(SortKey { expression, descending: key.ascending == Some(false) });
    }
    let frame = frame(binder, spec.frame.as_ref(), &order)?;
    Ok(Window { partition, order, frame, calls: Vec::new() })
}

fn frame(
    binder: &mut Binder<'_>,
    frame: Option<&WrittenFrame>,
    order: &[SortKey],
) -> Result<WindowFrame> {
    let Some(frame) = frame else {
        let end = match order.is_empty() {
            true => FrameBound::UnboundedFollowing,
            false => FrameBound::CurrentRow,
        };
        return Ok(WindowFrame { rows: false, start: FrameBound::UnboundedPreceding, end });
    };
    let rows = match frame.units {
        WindowFrameUnits::Rows => true,
        WindowFrameUnits::Range => false,
        WindowFrameUnits::Groups => return Err(SqlError::not_supported("GROUPS")),
    };
    let start = bound(binder, &frame.start, rows, order)?;
    let end = match &frame.end {
        Some(end) => bound(binder, end, rows, order)?,
        None => FrameBound::CurrentRow,
    };
    let wrong_start = matches!(start, FrameBound::UnboundedFollowing);
    let wrong_end = matches!(end, FrameBound::UnboundedPreceding);
    if wrong_start {
        return Err(SqlError::new(
            3584,
            "Window '<unnamed window>': frame start cannot be UNBOUNDED FOLLOWING.",
        ));
    }
    if wrong_end {
        return Err(SqlError::new(
            3585,
            "Window '<unnamed window>': frame end cannot be UNBOUNDED PRECEDING.",
        ));
    }
    Ok(WindowFrame { rows, start, end })
}

fn bound(
    binder: &mut Binder<'_>,
    bound: &WindowFrameBound,
    rows: bool,
    order: &[SortKey],
) -> Result<FrameBound> {
    Ok(match bound {
        WindowFrameBound::CurrentRow => FrameBound::CurrentRow,
        WindowFrameBound::Preceding(None) => FrameBound::UnboundedPreceding,
        WindowFrameBound::Following(None) => FrameBound::UnboundedFollowing,
        WindowFrameBound::Preceding(Some(distance)) => {
            FrameBound::Preceding(frame_distance(binder, distance, rows, order, true)?)
        }
        WindowFrameBound::Following(Some(distance)) => {
            FrameBound::Following(frame_distance(binder, distance, rows, order, false)?)
        }
    })
}

/// A number of rows; for `RANGE`, the order key moved by the distance, downwards if the order
/// is descending.
fn frame_distance(
    binder: &mut Binder<'_>,
    distance: &Expr,
    rows: bool,
    order: &[SortKey],
    is_preceding: bool,
) -> Result<Expression> {
    if rows {
        return expressions::bind_single(binder, distance);
    }
    let [key] = order else {
        return Err(SqlError::new(
            3587,
            "Window '<unnamed window>' with RANGE N PRECEDING/FOLLOWING frame requires exactly one \
             ORDER BY expression, of numeric or temporal type",
        ));
    };
    let minus = is_preceding != key.descending;
    let moved = match distance {
        Expr::Interval(interval) => {
            cast::date_arithmetic(binder, key.expression.clone(), interval, minus)?
        }
        distance => {
            let distance = expressions::bind_single(binder, distance)?;
            let sign = if minus { "-" } else { "+" };
            expression_builders::call(
                &mut binder.typing,
                sign,
                vec![key.expression.clone(), distance],
            )?
        }
    };
    Ok(moved)
}

fn first_type(arguments: &[Expression]) -> SqlType {
    arguments.first().map_or_else(SqlType::null, |first| first.ty.clone()).with_nullable(true)
}

fn same_window(one: &Window, other: &Window) -> bool {
    let same_keys = one.order.len() == other.order.len()
        && one.order.iter().zip(&other.order).all(|(a, b)| {
            a.descending == b.descending && same_expression(&a.expression, &b.expression)
        });
    same_keys && same_list(&one.partition, &other.partition) && same_frame(&one.frame, &other.frame)
}

fn same_frame(one: &WindowFrame, other: &WindowFrame) -> bool {
    one.rows == other.rows
        && same_bound(&one.start, &other.start)
        && same_bound(&one.end, &other.end)
}

fn same_bound(one: &FrameBound, other: &FrameBound) -> bool {
    match (one, other) {
        (FrameBound::Preceding(one), FrameBound::Preceding(other))
        | (FrameBound::Following(one), FrameBound::Following(other)) => same_expression(one, other),
        (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}
