//! Expressions over batches.
//!
//! ```text
//!   Expression ──compile──► Kernel ──evaluate──► a column
//!                              │   └──truth────► true, false, NULL for each row
//!                              └─ Rows: the row executor's evaluation, where there is no kernel
//! ```
//!
//! Expressions that read no slot, including uncorrelated subqueries, are evaluated by the session
//! before the run. Kernels may evaluate more rows than SQL requires; if that ends in an error, the
//! attempt is abandoned.

mod arithmetic;
mod compare;
mod compile;
mod physical;
mod rows;
mod text;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Datum as ArrowDatum, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::compute;
use arrow::datatypes::{Decimal128Type, Float64Type, Int64Type, UInt64Type};
use firn_sql::types::Datum;

use crate::stop_reason::{Result, declined};
use crate::value::Physical;

pub(crate) use arithmetic::Arithmetic;
pub(crate) use compare::{Comparison, common, negate_zero_away};
pub(crate) use compile::{Compiler, needs_session};
pub(crate) use physical::{KernelExpression, column};
pub(crate) use rows::Rows;
pub(crate) use text::{TextTest, weights};

/// An expression, ready for batches.
#[derive(Debug)]
pub(crate) enum Kernel {
    /// A column of the batch.
    Column(usize, Physical),
    /// A value, and itself as a column of one row.
    Constant(Datum, Physical, ArrayRef),
    Compare(Box<Comparison>),
    Text(Box<TextTest>),
    And(Vec<Kernel>),
    Or(Vec<Kernel>),
    Not(Box<Kernel>),
    /// `IS [NOT] NULL`
    IsNull(Box<Kernel>, bool),
    Arithmetic(Box<Arithmetic>),
    /// From one layout to another.
    Convert(Box<Kernel>, Physical),
    /// A part of a date or of a datetime: the bits of `mask`, after a shift to the right.
    DatePart {
        operand: Box<Kernel>,
        shift: u32,
        mask: i64,
        physical: Physical,
    },
    /// Conditions with values, and the value if none is true.
    Case {
        branches: Vec<(Kernel, Kernel)>,
        otherwise: Option<Box<Kernel>>,
        physical: Physical,
    },
    Rows(Box<Rows>),
}

/// A column, or one value for all rows.
pub(crate) struct Operand {
    pub(crate) array: ArrayRef,
    pub(crate) is_scalar: bool,
}

impl ArrowDatum for Operand {
    fn get(&self) -> (&dyn Array, bool) {
        (&*self.array, self.is_scalar)
    }
}

impl Kernel {
    pub(crate) fn constant(datum: Datum, physical: Physical) -> Result<Kernel> {
        let array = physical.single(&datum)?;
        Ok(Kernel::Constant(datum, physical, array))
    }

    /// The layout of the value.
    pub(crate) fn physical(&self) -> Physical {
        match self {
            Kernel::Column(_, physical)
            | Kernel::Constant(_, physical, _)
            | Kernel::Convert(_, physical)
            | Kernel::DatePart { physical, .. }
            | Kernel::Case { physical, .. } => *physical,
            Kernel::Arithmetic(arithmetic) => arithmetic.physical,
            Kernel::Rows(rows) => rows.physical,
            _ => Physical::Int,
        }
    }

    /// Whether it is fast and neither fails nor warns, so that it may be evaluated for rows that do
    /// not need it.
    pub(crate) fn is_cheap(&self) -> bool {
        match self {
            Kernel::Column(..) | Kernel::Constant(..) => true,
            Kernel::Compare(comparison) => {
                comparison.left.is_cheap() && comparison.right.is_cheap()
            }
            Kernel::And(list) | Kernel::Or(list) => list.iter().all(Kernel::is_cheap),
            Kernel::Not(one) | Kernel::IsNull(one, _) => one.is_cheap(),
            Kernel::Convert(one, _) => one.is_cheap(),
            Kernel::DatePart { operand, .. } => operand.is_cheap(),
            Kernel::Text(test) => test.operand.is_cheap(),
            Kernel::Arithmetic(_) | Kernel::Case { .. } | Kernel::Rows(_) => false,
        }
    }

    /// The value as an operand of a kernel of the library.
    pub(crate) fn operand(&self, batch: &RecordBatch) -> Result<Operand> {
        Ok(match self {
            Kernel::Constant(_, _, array) => Operand { array: array.clone(), is_scalar: true },
            _ => Operand { array: self.evaluate(batch)?, is_scalar: false },
        })
    }

    /// The value for each row.
    pub(crate) fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        match self {
            Kernel::Column(number, _) => Ok(batch.column(*number).clone()),
            Kernel::Constant(datum, physical, _) => physical.repeated(datum, batch.num_rows()),
            Kernel::Arithmetic(arithmetic) => arithmetic.evaluate(batch),
            Kernel::Convert(operand, to) => {
                compare::convert(&operand.evaluate(batch)?, operand.physical(), *to)
            }
            Kernel::DatePart { operand, shift, mask, physical } => {
                let packed = operand.evaluate(batch)?;
                let packed = packed.as_primitive::<Int64Type>();
                Ok(match physical {
                    Physical::UInt => std::sync::Arc::new(
                        packed.unary::<_, UInt64Type>(|date| (date >> shift & mask) as u64),
                    ),
                    _ => std::sync::Arc::new(
                        packed.unary::<_, Int64Type>(|date| date >> shift & mask),
                    ),
                })
            }
            Kernel::Case { branches, otherwise, physical } => {
                case(branches, otherwise.as_deref(), *physical, batch)
            }
            Kernel::Rows(rows) => rows.evaluate(batch),
            _ => {
                let truth = self.truth(batch)?;
                Ok(compute::cast(&truth, &arrow::datatypes::DataType::Int64)?)
            }
        }
    }

    /// The truth for each row.
    pub(crate) fn truth(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        match self {
            Kernel::Compare(comparison) => comparison.truth(batch),
            Kernel::Text(test) => test.truth(batch),
            Kernel::And(list) => connect(list, batch, true),
            Kernel::Or(list) => connect(list, batch, false),
            Kernel::Not(one) => Ok(compute::not(&one.truth(batch)?)?),
            Kernel::IsNull(one, negated) => {
                let array = one.evaluate(batch)?;
                Ok(if *negated { compute::is_not_null(&array)? } else { compute::is_null(&array)? })
            }
            Kernel::Rows(rows) => rows.truth(batch),
            _ => truth_of(&self.evaluate(batch)?, self.physical()),
        }
    }
}

/// `AND` (`neutral` is true) or `OR`. Expensive operands are evaluated only for rows that are
/// undecided.
fn connect(list: &[Kernel], batch: &RecordBatch, neutral: bool) -> Result<BooleanArray> {
    let mut so_far: Option<BooleanArray> = None;
    for kernel in list {
        let Some(known) = so_far else {
            so_far = Some(kernel.truth(batch)?);
            continue;
        };
        let next = if kernel.is_cheap() {
            kernel.truth(batch)?
        } else {
            // Open are the rows that are not decided: for AND all but the false ones.
            let decided = |row: usize| known.is_valid(row) && known.value(row) != neutral;
            let open = BooleanBuffer::collect_bool(known.len(), |row| !decided(row));
            selected(kernel, batch, &BooleanArray::new(open, None), neutral)?
        };
        so_far = Some(if neutral {
            compute::and_kleene(&known, &next)?
        } else {
            compute::or_kleene(&known, &next)?
        });
    }
    Ok(so_far.unwrap_or_else(|| BooleanArray::from(vec![neutral; batch.num_rows()])))
}

/// The truth of the chosen rows; `default` for the others.
fn selected(
    kernel: &Kernel,
    batch: &RecordBatch,
    chosen: &BooleanArray,
    default: bool,
) -> Result<BooleanArray> {
    let count = chosen.true_count();
    if count == batch.num_rows() {
        return kernel.truth(batch);
    }
    if count == 0 {
        return Ok(BooleanArray::from(vec![default; batch.num_rows()]));
    }
    let truth = kernel.truth(&compute::filter_record_batch(batch, chosen)?)?;
    let mut next = 0;
    let mut out = Vec::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        if chosen.value(row) {
            out.push(truth.is_valid(next).then(|| truth.value(next)));
            next += 1;
        } else {
            out.push(Some(default));
        }
    }
    Ok(BooleanArray::from(out))
}

fn case(
    branches: &[(Kernel, Kernel)],
    otherwise: Option<&Kernel>,
    physical: Physical,
    batch: &RecordBatch,
) -> Result<ArrayRef> {
    let rows = batch.num_rows();
    // For each row, the column below from which it takes its value, and the place there.
    let mut taken = vec![(0_usize, 0_usize); rows];
    let mut columns: Vec<ArrayRef> = vec![physical.single(&Datum::Null)?];
    let mut open: Vec<u32> = (0..rows as u32).collect();
    for (condition, value) in branches {
        if open.is_empty() {
            break;
        }
        let part = take(batch, &open)?;
        let truth = condition.truth(&part)?;
        let holds = |at: usize| truth.is_valid(at) && truth.value(at);
        let hits: Vec<u32> = (0..open.len()).filter(|&at| holds(at)).map(|at| open[at]).collect();
        place(value, batch, &hits, &mut taken, &mut columns)?;
        open = (0..open.len()).filter(|&at| !holds(at)).map(|at| open[at]).collect();
    }
    if let Some(value) = otherwise {
        place(value, batch, &open, &mut taken, &mut columns)?;
    }
    let columns: Vec<&dyn Array> = columns.iter().map(|column| &**column).collect();
    Ok(compute::interleave(&columns, &taken)?)
}

fn take(batch: &RecordBatch, rows: &[u32]) -> Result<RecordBatch> {
    if rows.len() == batch.num_rows() {
        return Ok(batch.clone());
    }
    Ok(compute::take_record_batch(batch, &arrow::array::UInt32Array::from(rows.to_vec()))?)
}

fn place(
    value: &Kernel,
    batch: &RecordBatch,
    rows: &[u32],
    taken: &mut [(usize, usize)],
    columns: &mut Vec<ArrayRef>,
) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let number = columns.len();
    match value {
        Kernel::Constant(_, _, array) => {
            columns.push(array.clone());
            rows.iter().for_each(|&row| taken[row as usize] = (number, 0));
        }
        Kernel::Column(column, _) => {
            columns.push(batch.column(*column).clone());
            rows.iter().for_each(|&row| taken[row as usize] = (number, row as usize));
        }
        _ => {
            columns.push(value.evaluate(&take(batch, rows)?)?);
            rows.iter().enumerate().for_each(|(at, &row)| taken[row as usize] = (number, at));
        }
    }
    Ok(())
}

/// Numbers and dates as truth values.
fn truth_of(array: &ArrayRef, physical: Physical) -> Result<BooleanArray> {
    let nulls = array.nulls().cloned();
    let rows = array.len();
    let buffer = match physical {
        Physical::Int | Physical::Date | Physical::Time | Physical::DateTime => {
            let array = array.as_primitive::<Int64Type>();
            BooleanBuffer::collect_bool(rows, |row| array.value(row) != 0)
        }
        Physical::UInt => {
            let array = array.as_primitive::<UInt64Type>();
            BooleanBuffer::collect_bool(rows, |row| array.value(row) != 0)
        }
        Physical::Double => {
            let array = array.as_primitive::<Float64Type>();
            BooleanBuffer::collect_bool(rows, |row| array.value(row) != 0.0)
        }
        Physical::Decimal(_) => {
            let array = array.as_primitive::<Decimal128Type>();
            BooleanBuffer::collect_bool(rows, |row| array.value(row) != 0)
        }
        Physical::Bytes => return declined("text is asked for its truth"),
    };
    Ok(BooleanArray::new(buffer, nulls))
}
