//! Window functions.
//!
//! ```text
//!   input ─► sorted by PARTITION BY, ORDER BY ─► one partition in memory ─► rows with functions
//!
//!   a row:  kept slots │ arguments of the calls │ bounds of the frame │ first order value │ keys
//! ```
//!
//! A partition that does not fit in the statement's memory is on disk ([`rows`]). Three numbers for
//! each of its rows stay in memory and have to fit.

mod frame;
mod function;
mod rows;

use crate::error::Result;
use crate::execute::Evaluate;
use crate::expression::Expression;
use crate::logical::{WindowCall, WindowFunction};
use crate::plan::WindowPlan;
use crate::types::{Datum, write_sort_key};

use super::Execution;
use super::memory::Reservation;
use super::operator::{Input, Operator};
use super::sort::{Sorted, Sorter, write_keys};

use frame::Frames;
use function::Running;
use rows::Rows;

/// Evaluates window functions.
pub(crate) struct Window<'p> {
    input: Input<'p>,
    plan: &'p WindowPlan,
    /// Where the parts of a row begin.
    places: Places,
    sorted: Option<Sorted>,
    partition: Partition,
    /// The row that belongs to the next partition.
    ahead: Option<Box<[Datum]>>,
    /// The next row of the partition.
    next: usize,
    running: Vec<Running>,
    held: Option<Reservation>,
}

/// Where the parts of a row begin.
#[derive(Clone)]
pub(super) struct Places {
    /// The arguments of each call.
    pub(super) calls: Vec<usize>,
    /// The frame's bounds that are expressions: first start, then end.
    pub(super) start_bound: usize,
    pub(super) end_bound: usize,
    /// The first value of the order.
    pub(super) order: usize,
    partition_key: usize,
    order_key: usize,
}

/// The rows of one partition, in order.
#[derive(Default)]
pub(super) struct Partition {
    rows: Rows,
    /// For each row, where its peers begin and end, and the number of their group.
    pub(super) peers: Vec<(u32, u32, u32)>,
}

/// The arguments of a call, and of the aggregate in it.
pub(super) fn arguments_of(call: &WindowCall) -> Vec<&Expression> {
    match &call.function {
        WindowFunction::Aggregate(aggregate) => {
            let order = aggregate.order.iter().map(|key| &key.expression);
            aggregate.arguments.iter().chain(order).collect()
        }
        _ => call.arguments.iter().collect(),
    }
}

impl<'p> Window<'p> {
    pub(crate) fn new(input: Input<'p>, plan: &'p WindowPlan) -> Window<'p> {
        let mut at = plan.keep.len();
        let mut place = |width: usize| {
            at += width;
            at - width
        };
        let calls = plan.calls.iter().map(|call| place(arguments_of(call).len())).collect();
        let places = Places {
            calls,
            start_bound: place(1),
            end_bound: place(1),
            order: place(1),
            partition_key: place(1),
            order_key: place(1),
        };
        Window {
            input,
            plan,
            places,
            sorted: None,
            partition: Partition::default(),
            ahead: None,
            next: 0,
            running: Vec::new(),
            held: None,
        }
    }

    /// The current row as it is kept, and its key.
    fn row(&self, key: &mut Vec<u8>, execution: &mut Execution<'_>) -> Result<Box<[Datum]>> {
        let mut row: Vec<Datum> = execution.frame.save(&self.plan.keep).into();
        for call in &self.plan.calls {
            for argument in arguments_of(call) {
                row.push(argument.evaluate(execution)?);
            }
        }
        for bound in [&self.plan.frame.start, &self.plan.frame.end] {
            let bound = frame::expression(bound);
            row.push(bound.map_or(Ok(Datum::Null), |bound| bound.evaluate(execution))?);
        }
        let order = self.plan.order.first();
        row.push(order.map_or(Ok(Datum::Null), |key| key.expression.evaluate(execution))?);
        key.clear();
        for expression in &self.plan.partition {
            let operand = expression.operand(execution)?;
            write_sort_key(expression.of(&operand, execution)?, &expression.ty, false, key);
        }
        let partition_bytes = key.len();
        write_keys(&self.plan.order, execution, key)?;
        row.push(Datum::text(&key[..partition_bytes]));
        row.push(Datum::text(&key[partition_bytes..]));
        Ok(row.into())
    }

    /// Loads the next partition; false if there is none.
    fn load(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        let held = self.held.get_or_insert_with(|| execution.memory().reservation());
        held.clear();
        self.partition = Partition::default();
        self.next = 0;
        let Some(sorted) = &mut self.sorted else { return Ok(false) };
        let first = match self.ahead.take() {
            Some(first) => Some(first),
            None => sorted.next()?,
        };
        let Some(first) = first else { return Ok(false) };
        let key = first[self.places.partition_key].clone();
        self.partition.rows.push(first, held, execution)?;
        while let Some(row) = sorted.next()? {
            execution.check_cancelled()?;
            if row[self.places.partition_key] != key {
                self.ahead = Some(row);
                break;
            }
            self.partition.rows.push(row, held, execution)?;
        }
        self.partition.rows.complete()?;
        held.require(self.partition.rows.len() * size_of::<(u32, u32, u32)>())?;
        self.partition.find_peers(self.places.order_key, execution)?;
        self.running = self.plan.calls.iter().map(Running::new).collect();
        Ok(true)
    }
}

impl Partition {
    fn find_peers(&mut self, order_key: usize, execution: &Execution<'_>) -> Result<()> {
        let (rows, mut start, mut group) = (&self.rows, 0, 0_u32);
        while start < rows.len() {
            let key = rows.get(start)?[order_key].clone();
            let mut end = start + 1;
            while end < rows.len() && rows.get(end)?[order_key] == key {
                execution.check_cancelled()?;
                end += 1;
            }
            let peers = (start as u32, end as u32, group);
            self.peers.extend(std::iter::repeat_n(peers, end - start));
            start = end;
            group += 1;
        }
        Ok(())
    }
}

impl Operator for Window<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.partition = Partition::default();
        self.ahead = None;
        self.next = 0;
        let mut sorter = Sorter::new(None, execution);
        self.input.open(execution)?;
        let mut key = Vec::new();
        while self.input.next(execution)? {
            execution.check_cancelled()?;
            let row = self.row(&mut key, execution)?;
            sorter.add(&key, execution, || row)?;
        }
        self.sorted = Some(sorter.finish()?);
        Ok(())
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        if self.next == self.partition.rows.len() && !self.load(execution)? {
            return Ok(false);
        }
        let number = self.next;
        self.next += 1;
        let frames = Frames { plan: self.plan, places: &self.places, partition: &self.partition };
        let frame = frames.of(number)?;
        for ((call, place), running) in
            self.plan.calls.iter().zip(&self.places.calls).zip(&mut self.running)
        {
            execution.check_cancelled()?;
            let value =
                running.value(call, *place, &self.partition, number, frame.clone(), execution)?;
            execution.frame.set(call.output, value);
        }
        let row = self.partition.rows.get(number)?;
        for (slot, value) in self.plan.keep.iter().zip(row.iter().cloned()) {
            // A function's own output may be among the slots that are read above.
            if !self.plan.calls.iter().any(|call| call.output == *slot) {
                execution.frame.set(*slot, value);
            }
        }
        Ok(true)
    }
}
