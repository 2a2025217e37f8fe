//! `MIN` and `MAX`.

use std::any::Any;
use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryBuilder, PrimitiveArray};
use arrow::datatypes::{Decimal128Type, Float64Type, Int64Type, UInt64Type};
use firn_format::value::CollationId;
use firn_sql::collation::{self, Collation};

use super::{Accumulator, same};
use crate::stop_reason::Result;
use crate::value::Physical;

/// An accumulator for values of a layout.
pub(super) fn accumulator(
    physical: Physical,
    is_max: bool,
    collation: Option<CollationId>,
) -> Box<dyn Accumulator> {
    match physical {
        Physical::UInt => Box::new(Numbers::<UInt64Type>::new(is_max, physical, Ord::cmp)),
        Physical::Double => {
            let order = |one: &f64, other: &f64| (one + 0.0).total_cmp(&(other + 0.0));
            Box::new(Numbers::<Float64Type>::new(is_max, physical, order))
        }
        Physical::Decimal(_) => {
            Box::new(Numbers::<Decimal128Type>::new(is_max, physical, Ord::cmp))
        }
        Physical::Bytes => Box::new(Texts {
            better: better(is_max),
            collation: collation::get(collation.unwrap_or(CollationId::BINARY)),
            best: Vec::new(),
            size_bytes: 0,
        }),
        _ => Box::new(Numbers::<Int64Type>::new(is_max, physical, Ord::cmp)),
    }
}

fn better(is_max: bool) -> Ordering {
    if is_max { Ordering::Greater } else { Ordering::Less }
}

type Order<T> = fn(&T, &T) -> Ordering;

struct Numbers<T: ArrowPrimitiveType> {
    better: Ordering,
    order: Order<T::Native>,
    physical: Physical,
    best: Vec<Option<T::Native>>,
}

impl<T: ArrowPrimitiveType> Numbers<T> {
    fn new(is_max: bool, physical: Physical, order: Order<T::Native>) -> Numbers<T> {
        Numbers { better: better(is_max), order, physical, best: Vec::new() }
    }

    fn take(&mut self, group: usize, number: T::Native) {
        let best = &mut self.best[group];
        match best {
            Some(known) if (self.order)(&number, known) != self.better => {}
            _ => *best = Some(number),
        }
    }
}

impl<T: ArrowPrimitiveType> Accumulator for Numbers<T> {
    fn add(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.best.resize(total, None);
        let numbers = values[0].as_primitive::<T>();
        for (row, &group) in groups.iter().enumerate() {
            if numbers.is_valid(row) {
                self.take(group, numbers.value(row));
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn Any>, groups: &[usize], total: usize) -> Result<()> {
        self.best.resize(total, None);
        let other = same::<Numbers<T>>(other)?;
        for (best, &group) in other.best.iter().zip(groups) {
            if let Some(number) = best {
                self.take(group, *number);
            }
        }
        Ok(())
    }

    fn finish(&mut self, total: usize) -> Result<ArrayRef> {
        self.best.resize(total, None);
        let numbers: PrimitiveArray<T> = std::mem::take(&mut self.best).into_iter().collect();
        Ok(Arc::new(numbers.with_data_type(self.physical.data_type())))
    }

    fn size_bytes(&self) -> usize {
        self.best.capacity() * size_of::<Option<T::Native>>()
    }
}

struct Texts {
    better: Ordering,
    collation: &'static Collation,
    best: Vec<Option<Box<[u8]>>>,
    size_bytes: usize,
}

impl Texts {
    fn take(&mut self, group: usize, text: &[u8]) {
        let best = &mut self.best[group];
        if best.as_ref().is_none_or(|known| self.collation.compare(text, known) == self.better) {
            self.size_bytes += text.len();
            *best = Some(text.into());
        }
    }
}

impl Accumulator for Texts {
    fn add(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.best.resize(total, None);
        let texts = values[0].as_binary::<i32>();
        for (row, &group) in groups.iter().enumerate() {
            if texts.is_valid(row) {
                self.take(group, texts.value(row));
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn Any>, groups: &[usize], total: usize) -> Result<()> {
        self.best.resize(total, None);
        let other = same::<Texts>(other)?;
        for (best, &group) in other.best.iter().zip(groups) {
            if let Some(text) = best {
                self.take(group, text);
            }
        }
        Ok(())
    }

    fn finish(&mut self, total: usize) -> Result<ArrayRef> {
        self.best.resize(total, None);
        let mut out = BinaryBuilder::new();
        for best in std::mem::take(&mut self.best) {
            out.append_option(best);
        }
        Ok(Arc::new(out.finish()))
    }

    fn size_bytes(&self) -> usize {
        self.size_bytes + self.best.capacity() * 16
    }
}
