//! Filters, computed columns, queries in `FROM`, unions.

use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion_physical_plan::ExecutionPlan;
use firn_sql::expression::{Expression, Slot};
use firn_sql::plan::visit::{self, SlotSet};
use firn_sql::plan::{NodeKind, PlanNode, QueryPlan, SetOperation};
use firn_sql::types::SqlType;

use super::{Relation, SlotTypes, Translator, kept, single};
use crate::batch::batch_of;
use crate::expression::Kernel;
use crate::operator::{Batches, Output, Sequence, Stage, schema_of};
use crate::session_sources::Work;
use crate::stop_reason::{Result, Stop, declined};
use crate::value::Field;

/// One row without columns.
pub(super) fn one_row() -> Relation {
    let schema = schema_of(&[]);
    let batch = batch_of(Arc::clone(&schema), Vec::new(), 1);
    let batches: Vec<RecordBatch> = batch.into_iter().collect();
    Relation { plan: Arc::new(Batches::new(schema, batches)), fields: Vec::new(), rows: 1.0 }
}

impl<'p> Translator<'p, '_, '_> {
    pub(super) fn filter(
        &mut self,
        input: &'p PlanNode,
        conditions: &'p [Expression],
        node: &PlanNode,
        needed: &SlotSet,
    ) -> Result<Relation> {
        let mut below = visit::reads_of(conditions);
        below.extend(needed);
        let input = self.node(input, &below)?;
        self.answer_subqueries(conditions)?;
        let compiled = self.compiler(&input.fields).compile_all(conditions);
        let (fields, outputs) = kept(&input.fields, needed);
        match compiled {
            Ok(conditions) => {
                let plan = Arc::new(Stage::new(input.plan, conditions, outputs));
                Ok(Relation { plan, fields, rows: node.rows })
            }
            Err(Stop::Declined(_)) => {
                Ok(self.session_work(input, fields, Work::Filter(conditions), node.rows))
            }
            Err(stop) => Err(stop),
        }
    }

    pub(super) fn compute(
        &mut self,
        input: &'p PlanNode,
        computed: &'p [(Slot, Expression)],
        needed: &SlotSet,
    ) -> Result<Relation> {
        let mut below = visit::reads_of(computed.iter().map(|(_, value)| value));
        below.extend(needed);
        let input = self.node(input, &below)?;
        self.answer_subqueries(computed.iter().map(|(_, value)| value))?;
        // A computed column may replace a slot of the input.
        let mut passed = needed.clone();
        computed.iter().for_each(|(slot, _)| passed.remove(*slot));
        let (mut fields, mut outputs) = kept(&input.fields, &passed);
        let mut compiled = Vec::new();
        let wanted = computed.iter().filter(|(slot, _)| needed.contains(*slot));
        for (slot, value) in wanted.clone() {
            fields.push(Field::new(*slot, &value.ty)?);
            compiled.push(value);
        }
        // The session evaluates an output that reads another one, since it does so in order.
        let own: SlotSet = computed.iter().map(|(slot, _)| *slot).collect();
        let reads = visit::reads_of(computed.iter().map(|(_, value)| value));
        let rows = input.rows;
        let kernels = match own.is_disjoint(&reads) {
            true => self.project(&input.fields, &compiled),
            false => declined("computed columns read each other"),
        };
        match kernels {
            Ok(kernels) => {
                outputs.extend(kernels);
                let plan = Arc::new(Stage::new(input.plan, Vec::new(), outputs));
                Ok(Relation { plan, fields, rows })
            }
            Err(Stop::Declined(_)) => {
                Ok(self.session_work(input, fields, Work::Compute(computed), rows))
            }
            Err(stop) => Err(stop),
        }
    }

    pub(super) fn derived(
        &mut self,
        query: &'p QueryPlan,
        slots: &[Option<Slot>],
        needed: &SlotSet,
    ) -> Result<Relation> {
        let wanted = query.columns.iter().zip(slots);
        let wanted = wanted.filter_map(|(column, slot)| Some((&column.value, (*slot)?)));
        let (values, slots): (Vec<&Expression>, Vec<Slot>) =
            wanted.filter(|(_, slot)| needed.contains(*slot)).unzip();
        let input = self.node(&query.root, &visit::reads_of(values.iter().copied()))?;
        let outputs = self.project(&input.fields, &values)?;
        let fields = slots.iter().zip(&values).map(|(slot, value)| Field::new(*slot, &value.ty));
        let fields = fields.collect::<Result<Vec<_>>>()?;
        let plan = Arc::new(Stage::new(input.plan, Vec::new(), outputs));
        Ok(Relation { plan, fields, rows: input.rows })
    }

    pub(super) fn common_table(
        &mut self,
        number: usize,
        slots: &[(u16, Slot)],
        needed: &SlotSet,
    ) -> Result<Relation> {
        let Some(table) = self.plan.common_tables.get(number) else {
            return declined("there is no such common table");
        };
        if table.recursive.is_some() || !table.outer_slots.is_empty() {
            return declined("a recursive common table works on rows");
        }
        let batches = match self.common.get(&number) {
            Some(batches) => batches.clone(),
            None => {
                let batches = Arc::new(self.collect(&table.query)?.0);
                self.common.insert(number, Arc::clone(&batches));
                batches
            }
        };
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for (column, slot) in slots.iter().filter(|(_, slot)| needed.contains(*slot)) {
            let ty = &table.query.columns[usize::from(*column)].value.ty;
            fields.push(Field::new(*slot, ty)?);
            columns.push(usize::from(*column));
        }
        let schema = schema_of(&fields);
        let project = |batch: &RecordBatch| {
            let columns = columns.iter().map(|&column| batch.column(column).clone()).collect();
            batch_of(Arc::clone(&schema), columns, batch.num_rows())
        };
        let batches = batches.iter().map(project).collect::<Result<Vec<_>>>()?;
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        Ok(Relation { plan: Arc::new(Batches::new(schema, batches)), fields, rows: rows as f64 })
    }

    pub(super) fn union(
        &mut self,
        operation: SetOperation,
        all: bool,
        inputs: &'p [QueryPlan],
        slots: &'p [(Slot, SqlType)],
        rows: f64,
    ) -> Result<Relation> {
        if operation != SetOperation::Union {
            return declined("INTERSECT and EXCEPT work on rows");
        }
        let fields = slots.iter().map(|(slot, ty)| Field::new(*slot, ty));
        let fields = fields.collect::<Result<Vec<_>>>()?;
        let mut plans: Vec<Arc<dyn ExecutionPlan>> = Vec::with_capacity(inputs.len());
        for query in inputs {
            let values: Vec<&Expression> =
                query.columns.iter().map(|column| &column.value).collect();
            let input = self.node(&query.root, &visit::reads_of(values.iter().copied()))?;
            let outputs = self.project(&input.fields, &values)?;
            let same = |(output, field): (&Output, &Field)| output.physical() == field.physical;
            if !outputs.iter().zip(&fields).all(same) {
                return declined("the sides of a union differ in their layouts");
            }
            plans.push(single(Arc::new(Stage::new(input.plan, Vec::new(), outputs))));
        }
        let plan = Arc::new(Sequence::new(schema_of(&fields), plans));
        let relation = Relation { plan, fields, rows };
        if all {
            return Ok(relation);
        }
        let keys: Vec<(Slot, Kernel, SqlType)> = relation
            .fields
            .iter()
            .enumerate()
            .map(|(number, field)| {
                (field.slot, Kernel::Column(number, field.physical), field.ty.clone())
            })
            .collect();
        self.distinct_over(relation, keys, &SlotSet::default(), rows)
    }
}

/// The types of the slots that a node and all below it fill, as far as they are known.
pub(super) fn slot_types(node: &PlanNode) -> SlotTypes {
    let mut types = SlotTypes::default();
    add_types(node, &mut types);
    types
}

fn add_types(node: &PlanNode, types: &mut SlotTypes) {
    visit::for_each_input(node, &mut |input| add_types(input, types));
    match &node.kind {
        NodeKind::Scan(scan) => {
            for (ordinal, slot) in &scan.slots {
                if let Some(column) = scan.table.by_ordinal(*ordinal) {
                    types.insert(*slot, column.ty.clone());
                }
            }
        }
        NodeKind::Values { rows, slots } => {
            // Rows may have several types; the columns with one type are known.
            for (number, slot) in slots.iter().enumerate() {
                let mut each = rows.iter().filter_map(|row| row.get(number)).map(|value| &value.ty);
                if let Some(first) = each.next()
                    && each.all(|ty| ty.kind == first.kind)
                {
                    types.insert(*slot, first.clone());
                }
            }
        }
        NodeKind::Derived { query, slots, .. } => {
            for (column, slot) in query.columns.iter().zip(slots) {
                if let Some(slot) = slot {
                    types.insert(*slot, column.value.ty.clone());
                }
            }
        }
        NodeKind::Compute { outputs, .. } => {
            types.extend(outputs.iter().map(|(slot, value)| (*slot, value.ty.clone())));
        }
        NodeKind::Aggregate { groups, aggregates, rollup, .. } => {
            types.extend(groups.iter().map(|(slot, value)| (*slot, value.ty.clone())));
            types.extend(aggregates.iter().map(|call| (call.output, call.ty.clone())));
            types.extend(rollup.iter().flatten().map(|slot| (*slot, SqlType::boolean())));
        }
        NodeKind::Window(window) => {
            types.extend(window.calls.iter().map(|call| (call.output, call.ty.clone())));
        }
        NodeKind::SetOperation { slots, .. } | NodeKind::Distinct { slots, .. } => {
            types.extend(slots.iter().cloned());
        }
        _ => {}
    }
}
