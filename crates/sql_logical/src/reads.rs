//! The slots that a bound query reads and fills.

use crate::expression::visit::{SlotSet, add_aggregate_reads, add_key_reads, add_reads};
use crate::expression::{Expression, Slot};

use super::{
    Block, Body, FrameBound, JoinTree, Query, Relation, RelationId, RelationSource, Window,
    WindowFunction,
};

/// The slots of outer queries that a query reads. The reads of a common table are left out: it is
/// evaluated by itself.
#[must_use]
pub fn outer_slots(query: &Query, relations: &[Relation]) -> Vec<Slot> {
    let mut walk = Walk { relations, read: SlotSet::default(), filled: SlotSet::default() };
    walk.query(query);
    walk.read.difference(&walk.filled).iter().collect()
}

struct Walk<'r> {
    relations: &'r [Relation],
    read: SlotSet,
    filled: SlotSet,
}

impl Walk<'_> {
    fn query(&mut self, query: &Query) {
        self.reads(query.columns.iter().map(|column| &column.value));
        add_key_reads(&query.order, &mut self.read);
        self.reads(query.limit.iter().chain(&query.offset));
        match &query.body {
            Body::Select(block) => self.block(block),
            Body::Values { rows, slots } => {
                self.reads(rows.iter().flatten());
                self.fills(slots);
            }
            Body::SetOperation { inputs, slots, .. } => {
                inputs.iter().for_each(|input| self.query(input));
                self.fills(slots.iter().map(|(slot, _)| slot));
            }
        }
    }

    fn block(&mut self, block: &Block) {
        if let Some(tree) = &block.from {
            self.tree(tree);
        }
        self.reads(block.conditions.iter().chain(&block.having));
        if let Some(grouping) = &block.grouping {
            self.outputs(&grouping.groups);
            for call in &grouping.aggregates {
                add_aggregate_reads(call, &mut self.read);
                self.filled.insert(call.output);
            }
            self.fills(grouping.rollup.iter().flatten());
        }
        block.windows.iter().for_each(|window| self.window(window));
        self.outputs(&block.computed);
        for (slot, _) in block.distinct.iter().flatten() {
            self.read.insert(*slot);
        }
    }

    fn tree(&mut self, tree: &JoinTree) {
        match tree {
            JoinTree::Relation(relation) => self.relation(*relation),
            JoinTree::Join { left, right, conditions, .. } => {
                self.tree(left);
                self.tree(right);
                self.reads(conditions);
            }
        }
    }

    fn relation(&mut self, relation: RelationId) {
        let relations = self.relations;
        let relation = &relations[relation.0];
        match &relation.source {
            RelationSource::Derived { query: Some(query), .. } => self.query(query),
            RelationSource::JsonTable(Some(table)) => {
                self.reads([&table.document]);
                self.fills(&table.slots);
            }
            _ => {}
        }
        self.fills(relation.slots.iter().flatten());
        if let Some((key, payload)) = &relation.row_slots {
            self.fills([key, payload]);
        }
    }

    fn window(&mut self, window: &Window) {
        self.reads(&window.partition);
        add_key_reads(&window.order, &mut self.read);
        for bound in [&window.frame.start, &window.frame.end] {
            if let FrameBound::Preceding(value) | FrameBound::Following(value) = bound {
                self.reads([value]);
            }
        }
        for call in &window.calls {
            self.reads(&call.arguments);
            if let WindowFunction::Aggregate(aggregate) = &call.function {
                add_aggregate_reads(aggregate, &mut self.read);
            }
            self.filled.insert(call.output);
        }
    }

    fn outputs(&mut self, outputs: &[(Slot, Expression)]) {
        self.reads(outputs.iter().map(|(_, value)| value));
        self.fills(outputs.iter().map(|(slot, _)| slot));
    }

    fn reads<'e>(&mut self, expressions: impl IntoIterator<Item = &'e Expression>) {
        expressions.into_iter().for_each(|one| add_reads(one, &mut self.read));
    }

    fn fills<'s>(&mut self, slots: impl IntoIterator<Item = &'s Slot>) {
        slots.into_iter().for_each(|slot| self.filled.insert(*slot));
    }
}
