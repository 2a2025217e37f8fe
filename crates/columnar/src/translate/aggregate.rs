//! Groups and distinct rows.

use std::sync::Arc;

use datafusion_physical_plan::ExecutionPlan;
use firn_sql::expression::{AggregateCall, Expression, Slot};
use firn_sql::plan::PlanNode;
use firn_sql::plan::visit::{self, SlotSet};
use firn_sql::types::SqlType;

use super::sort::{key_output, sorted_by};
use super::{Relation, Translator, Way, single};
use crate::aggregate::{Call, CallKind};
use crate::expression::Kernel;
use crate::operator::{HashAggregate, Output, SortedAggregate, Stage};
use crate::stop_reason::{Result, declined};
use crate::value::{Field, Physical};

/// The columns below a hash table of groups, while they are being collected.
#[derive(Default)]
struct Columns {
    outputs: Vec<Output>,
    calls: Vec<Call>,
    /// The output fields, and the hash table's column or call for each.
    fields: Vec<(Field, Place)>,
    /// Values whose first occurrence in each group is kept.
    firsts: Vec<(Field, Kernel)>,
}

/// The place of a field in the hash table.
enum Place {
    Key(usize),
    Call(usize),
}

impl<'p> Translator<'p, '_, '_> {
    pub(super) fn aggregate(
        &mut self,
        input: &'p PlanNode,
        groups: &'p [(Slot, Expression)],
        aggregates: &'p [AggregateCall],
        rows: f64,
        needed: &SlotSet,
    ) -> Result<Relation> {
        let mut below = visit::reads_of(groups.iter().map(|(_, value)| value));
        for call in aggregates.iter().filter(|call| needed.contains(call.output)) {
            visit::add_aggregate_reads(call, &mut below);
        }
        let input = self.node(input, &below)?;
        let mut columns = Columns::default();
        for (slot, value) in groups {
            let kernel = self.compiler(&input.fields).compile(value)?;
            let again = self.compiler(&input.fields).compile(value)?;
            let field = Field::new(*slot, &value.ty)?;
            columns.key(field, kernel, again, needed.contains(*slot));
        }
        let keys = columns.outputs.len();
        columns.take_firsts();
        for call in aggregates.iter().filter(|call| needed.contains(call.output)) {
            self.call(call, &input.fields, &mut columns)?;
        }
        self.grouped(columns, input, keys, rows)
    }

    fn call(&mut self, call: &AggregateCall, below: &[Field], columns: &mut Columns) -> Result<()> {
        let order = call.order.iter().map(|key| &key.expression);
        let mut arguments = Vec::new();
        for value in call.arguments.iter().chain(order) {
            let kernel = self.compiler(below).compile(value)?;
            let physical = kernel.physical();
            if physical != Physical::of(&value.ty)? {
                return declined("an argument is laid out otherwise than its type says");
            }
            arguments.push((columns.column(Output::Value(kernel)), physical));
        }
        let field = Field::new(call.output, &call.ty)?;
        let ends = call.arguments.len();
        let kind = CallKind::Function(Arc::new(call.clone()), ends, Arc::clone(&self.scope));
        columns.call(field, kind, arguments);
        Ok(())
    }

    pub(super) fn distinct(
        &mut self,
        input: &'p PlanNode,
        slots: &'p [(Slot, SqlType)],
        rows: f64,
        needed: &SlotSet,
    ) -> Result<Relation> {
        let mut below: SlotSet = slots.iter().map(|(slot, _)| *slot).collect();
        below.extend(needed);
        let input = self.node(input, &below)?;
        let mut keys = Vec::new();
        for (slot, ty) in slots {
            let at = input.fields.iter().position(|field| field.slot == *slot);
            let Some(at) = at else { return declined("a distinct slot is not filled") };
            keys.push((*slot, Kernel::Column(at, input.fields[at].physical), ty.clone()));
        }
        self.distinct_over(input, keys, needed, rows)
    }

    /// Each combination of the keys once, with the first values of other slots that are needed.
    pub(super) fn distinct_over(
        &mut self,
        input: Relation,
        keys: Vec<(Slot, Kernel, SqlType)>,
        needed: &SlotSet,
        rows: f64,
    ) -> Result<Relation> {
        let mut columns = Columns::default();
        for (slot, kernel, ty) in keys {
            let Kernel::Column(number, physical) = kernel else {
                return declined("a distinct value is no column");
            };
            let field = Field { slot, ty, physical };
            columns.key(field, kernel, Kernel::Column(number, physical), true);
        }
        let keys = columns.outputs.len();
        let known: SlotSet = columns.fields.iter().map(|(field, _)| field.slot).collect();
        let firsts: SlotSet = columns.firsts.iter().map(|(field, _)| field.slot).collect();
        for (number, field) in input.fields.iter().enumerate() {
            let is_more = needed.contains(field.slot)
                && !known.contains(field.slot)
                && !firsts.contains(field.slot);
            if is_more {
                columns.firsts.push((field.clone(), Kernel::Column(number, field.physical)));
            }
        }
        columns.take_firsts();
        self.grouped(columns, input, keys, rows)
    }

    /// The groups of a relation by the first `keys` columns.
    fn grouped(
        &self,
        columns: Columns,
        input: Relation,
        keys: usize,
        rows: f64,
    ) -> Result<Relation> {
        if self.way == Way::Memory || keys == 0 {
            return Ok(columns.finish(input, keys, Way::Memory, rows));
        }
        if self.ordered || !columns.calls.iter().all(Call::ignores_order) {
            return declined("sorting would disturb an order that counts");
        }
        Ok(columns.finish(input, keys, Way::Disk, rows))
    }
}

impl Columns {
    fn column(&mut self, output: Output) -> usize {
        self.outputs.push(output);
        self.outputs.len() - 1
    }

    fn call(&mut self, field: Field, kind: CallKind, arguments: Vec<(usize, Physical)>) {
        let physical = field.physical;
        self.fields.push((field, Place::Call(self.calls.len())));
        self.calls.push(Call { kind, arguments, physical });
    }

    /// A key of the groups; if it represents several values, the first one is shown.
    fn key(&mut self, field: Field, kernel: Kernel, again: Kernel, is_needed: bool) {
        let output = key_output(kernel, &field.ty);
        let is_value = matches!(output, Output::Value(_));
        let number = self.column(output);
        match (is_needed, is_value) {
            (false, _) => {}
            (true, true) => self.fields.push((field, Place::Key(number))),
            (true, false) => self.firsts.push((field, again)),
        }
    }

    /// Adds the columns of first values, which come after all keys.
    fn take_firsts(&mut self) {
        for (field, kernel) in std::mem::take(&mut self.firsts) {
            let physical = field.physical;
            let number = self.column(Output::Value(kernel));
            self.call(field, CallKind::First, vec![(number, physical)]);
        }
    }

    fn finish(self, input: Relation, keys: usize, way: Way, rows: f64) -> Relation {
        let can_merge = way == Way::Memory && self.calls.iter().all(Call::can_merge);
        let below = if can_merge { input.plan } else { single(input.plan) };
        let staged = Arc::new(Stage::new(below, Vec::new(), self.outputs));
        let grouped: Arc<dyn ExecutionPlan> = match way {
            Way::Memory => Arc::new(HashAggregate::new(staged, keys, self.calls)),
            Way::Disk => {
                Arc::new(SortedAggregate::new(sorted_by(staged, 0..keys), keys, self.calls))
            }
        };
        let (mut fields, mut outputs) = (Vec::new(), Vec::new());
        for (field, place) in self.fields {
            let number = match place {
                Place::Key(number) => number,
                Place::Call(number) => keys + number,
            };
            outputs.push(Output::Value(Kernel::Column(number, field.physical)));
            fields.push(field);
        }
        let plan = Arc::new(Stage::new(grouped, Vec::new(), outputs));
        Relation { plan, fields, rows }
    }
}
