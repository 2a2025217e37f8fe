//! `UPDATE` and `DELETE`: the rows they change, and whether these are collected before the first
//! change.

use firn_sql_logical::expression::Slot;
use firn_sql_logical::{BoundDelete, BoundUpdate, JoinTree, Relation, RelationSource};
use firn_sql_types::error::Result;

use super::Optimiser;
use crate::visit::{SlotSet, add_all_reads, for_each_input};
use crate::{Access, DeletePlan, NodeKind, PlanNode, UpdatePlan, WriteTarget};

impl Optimiser<'_> {
    pub(crate) fn plan_update(&mut self, update: BoundUpdate) -> Result<UpdatePlan> {
        let BoundUpdate { block, order, limit, mut targets, ignore } = update;
        let relations = block.from.as_ref().map_or(0, JoinTree::count);
        let source = self.plan_source(block, order, limit, &targets)?;
        for target in &mut targets {
            target.in_turn = relations <= 1 || self.is_changed_while_joining(&source, target);
        }
        let gather_first = relations > 1 || self.moves_rows(&source, &targets);
        Ok(UpdatePlan { source, targets, ignore, gather_first })
    }

    pub(crate) fn plan_delete(&mut self, delete: BoundDelete) -> Result<DeletePlan> {
        let BoundDelete { block, order, limit, targets, ignore } = delete;
        let joined = block.from.as_ref().map_or(0, JoinTree::count);
        let source = self.plan_source(block, order, limit, &targets)?;
        let gather_first = joined > 1 || targets.iter().any(|target| self.is_read_twice(target));
        Ok(DeletePlan { source, targets, ignore, gather_first })
    }

    /// Whether the changes may move rows in the index through which they are found, or a subquery
    /// reads the table.
    fn moves_rows(&self, source: &PlanNode, targets: &[WriteTarget]) -> bool {
        targets.iter().any(|target| self.is_read_twice(target) || moves(source, target))
    }

    /// Whether MySQL changes the rows of a target while it joins: the table is read first and once,
    /// and no condition reads the assigned columns.
    fn is_changed_while_joining(&self, source: &PlanNode, target: &WriteTarget) -> bool {
        let mut reads = SlotSet::default();
        add_all_reads(source, &mut reads);
        let is_set = |ordinal: u16| {
            target.assignments.iter().any(|assignment| assignment.ordinal == ordinal)
        };
        let mut row = target.row.iter();
        first_row_key(source) == Some(target.row_key)
            && !self.is_read_twice(target)
            && !row.any(|(ordinal, slot)| is_set(*ordinal) && reads.contains(*slot))
    }

    /// Whether the statement names a target's table more than once.
    fn is_read_twice(&self, target: &WriteTarget) -> bool {
        let same = |relation: &&Relation| matches!(&relation.source, RelationSource::Table(table) if table.id == target.table.id);
        self.relations.iter().filter(same).count() > 1
    }
}

/// The row key slot of the table that a plan reads first.
fn first_row_key(node: &PlanNode) -> Option<Slot> {
    if let NodeKind::Scan(scan) = &node.kind {
        return scan.row_key;
    }
    let mut first = None;
    for_each_input(node, &mut |input| {
        first.get_or_insert_with(|| first_row_key(input));
    });
    first.flatten()
}

fn moves(node: &PlanNode, target: &WriteTarget) -> bool {
    if let NodeKind::Scan(scan) = &node.kind
        && scan.row_key == Some(target.row_key)
    {
        return changes_way(&scan.access, target);
    }
    let mut found = false;
    for_each_input(node, &mut |input| found = found || moves(input, target));
    found
}

fn changes_way(access: &Access, target: &WriteTarget) -> bool {
    let index = match access {
        Access::Point { .. } => return false,
        Access::Full { index } | Access::Ranges { index, .. } => *index,
        Access::Union(parts) => return parts.iter().any(|part| changes_way(part, target)),
    };
    let index = match index {
        Some(number) => target.table.index_numbered(number),
        None => target.table.primary_key(),
    };
    index.is_some_and(|index| index.parts.iter().any(|part| target.changes_column(part.ordinal)))
}
