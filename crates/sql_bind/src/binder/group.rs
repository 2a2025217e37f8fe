//! What grouping requires of the expressions above it.
//!
//! ```text
//!   SELECT a + 1, COUNT(*) FROM t GROUP BY a + 1     a + 1 → the group's slot
//!   SELECT n FROM t GROUP BY id                      n depends on the key: ANY_VALUE(n) → n's slot
//!   SELECT n FROM t GROUP BY a                       1055, or ANY_VALUE where the mode is off
//! ```
//!
//! Dependence: a column is determined by the groups, by constants or determined columns that it is
//! equal to, and by a determined key of its table.

use firn_sql_functions::AggregateFunction;
use firn_sql_logical::expression::equivalence::same_expression;
use firn_sql_logical::expression::visit::{SlotSet, for_each_operand_mut, reads};
use firn_sql_logical::expression::{
    AggregateCall, CompareOperator, Expression, ExpressionKind, Slot, SortKey,
};
use firn_sql_logical::{
    Block, Grouping, JoinKind, JoinTree, OutputColumn, RelationId, RelationSource, Window,
    WindowFunction,
};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{SqlMode, SqlType};

use super::{Binder, Frame, Names, expression_builders};

/// Makes the expressions above the groups read the groups' slots, and adds the columns that
/// depend on the groups.
pub(crate) fn regroup(
    binder: &mut Binder<'_>,
    block: &mut Block,
    grouping: &mut Grouping,
    columns: &mut [OutputColumn],
    order: &mut [SortKey],
) -> Result<()> {
    let groups = grouping.groups.clone();
    columns.iter_mut().for_each(|column| replace(&mut column.value, &groups));
    block.having.iter_mut().for_each(|one| replace(one, &groups));
    order.iter_mut().for_each(|key| replace(&mut key.expression, &groups));
    let mut windows = std::mem::take(&mut binder.names.innermost().windows);
    windows.iter_mut().for_each(|window| replace_in_window(window, &groups));
    let local = local_slots(&binder.typing.frame, block);
    let determined = determined(&binder.typing.frame, block, grouping, &local);
    for (number, column) in columns.iter().enumerate() {
        depend(binder, &column.value, "SELECT list", number, grouping, &local, &determined)?;
    }
    for (number, one) in block.having.iter().enumerate() {
        depend(binder, one, "HAVING clause", number, grouping, &local, &determined)?;
    }
    for (number, key) in order.iter().enumerate() {
        depend(binder, &key.expression, "ORDER BY clause", number, grouping, &local, &determined)?;
    }
    for window in &windows {
        for (number, one) in expressions_of(window).into_iter().enumerate() {
            depend(binder, one, "SELECT list", number, grouping, &local, &determined)?;
        }
    }
    binder.names.innermost().windows = windows;
    Ok(())
}

/// The slots of the block's own tables.
fn local_slots(frame: &Frame, block: &Block) -> SlotSet {
    let relations = block.from.as_ref().map(JoinTree::relations).unwrap_or_default();
    let slots = relations.iter().flat_map(|relation| &frame.relation(*relation).slots);
    slots.flatten().copied().collect()
}

/// Adds the columns that an expression reads and that are not groups.
fn depend(
    binder: &mut Binder<'_>,
    expression: &Expression,
    clause: &str,
    number: usize,
    grouping: &mut Grouping,
    local: &SlotSet,
    determined: &SlotSet,
) -> Result<()> {
    let strict = binder.typing.context.evaluation.sql_mode.contains(SqlMode::ONLY_FULL_GROUP_BY);
    for slot in reads(expression).intersection(local).iter() {
        let is_there = grouping.groups.iter().any(|(group, _)| *group == slot)
            || grouping.aggregates.iter().any(|call| call.output == slot);
        if is_there {
            continue;
        }
        let is_any = binder.names.innermost().any_values.contains(slot);
        if strict && !is_any && !determined.contains(slot) {
            return Err(not_grouped(
                &binder.names,
                &binder.typing.frame,
                slot,
                clause,
                number,
                grouping.groups.is_empty(),
            ));
        }
        let ty = slot_type(&binder.names, &binder.typing.frame, slot);
        grouping.aggregates.push(AggregateCall {
            function: AggregateFunction::AnyValue,
            arguments: vec![expression_builders::slot(slot, ty.clone())],
            distinct: false,
            order: Vec::new(),
            separator: std::sync::Arc::from(&b""[..]),
            output: slot,
            ty: ty.with_nullable(true),
        });
    }
    Ok(())
}

fn not_grouped(
    names: &Names,
    frame: &Frame,
    slot: Slot,
    clause: &str,
    number: usize,
    is_ungrouped: bool,
) -> SqlError {
    let (column, number) = (slot_name(names, frame, slot), number + 1);
    if is_ungrouped {
        let message = format!(
            "In aggregated query without GROUP BY, expression #{number} of {clause} contains \
             nonaggregated column '{column}'; this is incompatible with sql_mode=only_full_group_by"
        );
        return SqlError::new(1140, message);
    }
    let message = format!(
        "Expression #{number} of {clause} is not in GROUP BY clause and contains nonaggregated column \
         '{column}' which is not functionally dependent on columns in GROUP BY clause; this is \
         incompatible with sql_mode=only_full_group_by"
    );
    SqlError::new(1055, message)
}

/// `schema.table.column` of a slot.
pub(crate) fn slot_name(names: &Names, frame: &Frame, slot: Slot) -> String {
    let Some(owner) = frame.owner(slot) else { return "?".to_owned() };
    let relation = frame.relation(owner);
    let column = relation.slots.iter().position(|other| *other == Some(slot));
    match (&relation.source, column) {
        (RelationSource::Table(table), Some(ordinal)) => {
            let column = table.by_ordinal(ordinal as u16);
            let name = column.map_or("?", |column| &*column.name);
            format!("{}.{}.{name}", table.schema, relation.alias)
        }
        (_, Some(number)) => {
            let in_scopes = names.scopes.iter().flat_map(|scope| &scope.tables);
            let table = in_scopes.into_iter().find(|table| table.alias == relation.alias);
            let column = table.and_then(|table| table.columns.get(number));
            format!("{}.{}", relation.alias, column.map_or("?", |column| &*column.name))
        }
        _ => relation.alias.to_string(),
    }
}

pub(crate) fn slot_type(names: &Names, frame: &Frame, slot: Slot) -> SqlType {
    let Some(owner) = frame.owner(slot) else { return SqlType::null() };
    let relation = frame.relation(owner);
    let place = relation.slots.iter().position(|other| *other == Some(slot)).unwrap_or(0);
    let of_table = match &relation.source {
        RelationSource::Table(table) => {
            table.by_ordinal(place as u16).map(|column| column.ty.clone())
        }
        RelationSource::Virtual(table) => {
            table.columns().get(place).map(|column| column.ty.clone())
        }
        _ => None,
    };
    let in_scope = || {
        let tables = names.scopes.iter().rev().flat_map(|scope| &scope.tables);
        let mut columns = tables.flat_map(|table| &table.columns);
        columns.find_map(|column| match &column.source {
            super::scope::ColumnSource::Relation(relation, other)
                if *relation == owner && usize::from(*other) == place =>
            {
                Some(column.ty.clone())
            }
            _ => None,
        })
    };
    of_table.or_else(in_scope).unwrap_or_else(SqlType::null)
}

/// The slots whose values follow from the groups.
fn determined(frame: &Frame, block: &Block, grouping: &Grouping, local: &SlotSet) -> SlotSet {
    let mut known: SlotSet = grouping
        .groups
        .iter()
        .filter_map(|(slot, value)| matches!(value.kind, ExpressionKind::Slot(_)).then_some(*slot))
        .collect();
    let mut equalities = Vec::new();
    block.conditions.iter().for_each(|one| add_equality(one, local, &mut equalities));
    if let Some(tree) = &block.from {
        add_tree(tree, local, &mut equalities);
    }
    let relations = block.from.as_ref().map(JoinTree::relations).unwrap_or_default();
    loop {
        let before = known.clone();
        for (slot, by) in &equalities {
            if by.is_subset(&known) {
                known.insert(*slot);
            }
        }
        relations.iter().for_each(|relation| add_by_key(frame, *relation, &mut known));
        if known == before {
            return known;
        }
    }
}

/// All columns of a table with a determined key.
fn add_by_key(frame: &Frame, relation: RelationId, known: &mut SlotSet) {
    let relation = frame.relation(relation);
    let RelationSource::Table(table) = &relation.source else { return };
    let is_known = |ordinal: u16| {
        let slot = relation.slots.get(usize::from(ordinal)).copied().flatten();
        slot.is_some_and(|slot| known.contains(slot))
    };
    let is_key = |index: &firn_sql_catalog::model::IndexModel| {
        index.unique
            && index.parts.iter().all(|part| {
                let nullable =
                    table.by_ordinal(part.ordinal).is_none_or(|column| column.ty.nullable);
                part.prefix.is_none() && !nullable && is_known(part.ordinal)
            })
    };
    if table.indexes.iter().any(is_key) {
        relation.slots.iter().flatten().for_each(|slot| known.insert(*slot));
    }
}

/// `slot = expression`: the slot is determined by the columns that the expression reads.
fn add_equality(condition: &Expression, local: &SlotSet, into: &mut Vec<(Slot, SlotSet)>) {
    match &condition.kind {
        ExpressionKind::And(list) => list.iter().for_each(|one| add_equality(one, local, into)),
        ExpressionKind::Compare { operator: CompareOperator::Equal, sides, .. } => {
            let [left, right] = &**sides;
            for (one, two) in [(left, right), (right, left)] {
                if let ExpressionKind::Slot(slot) = one.kind {
                    into.push((slot, reads(two).intersection(local)));
                }
            }
        }
        _ => {}
    }
}

fn add_tree(tree: &JoinTree, local: &SlotSet, into: &mut Vec<(Slot, SlotSet)>) {
    if let JoinTree::Join { kind: JoinKind::Inner | JoinKind::Left, left, right, conditions } = tree
    {
        conditions.iter().for_each(|one| add_equality(one, local, into));
        add_tree(left, local, into);
        add_tree(right, local, into);
    }
}

/// Replaces grouping expressions by the groups' slots.
fn replace(expression: &mut Expression, groups: &[(Slot, Expression)]) {
    let group = groups.iter().find(|(_, value)| same_expression(value, expression));
    if let Some((slot, value)) = group {
        *expression = expression_builders::slot(*slot, value.ty.clone().with_nullable(true));
        return;
    }
    for_each_operand_mut(expression, &mut |operand| replace(operand, groups));
}

fn replace_in_window(window: &mut Window, groups: &[(Slot, Expression)]) {
    window.partition.iter_mut().for_each(|one| replace(one, groups));
    window.order.iter_mut().for_each(|key| replace(&mut key.expression, groups));
    for call in &mut window.calls {
        call.arguments.iter_mut().for_each(|one| replace(one, groups));
        if let WindowFunction::Aggregate(aggregate) = &mut call.function {
            aggregate.arguments.iter_mut().for_each(|one| replace(one, groups));
        }
    }
}

fn expressions_of(window: &Window) -> Vec<&Expression> {
    let mut all: Vec<&Expression> = window.partition.iter().collect();
    all.extend(window.order.iter().map(|key| &key.expression));
    for call in &window.calls {
        all.extend(&call.arguments);
        if let WindowFunction::Aggregate(aggregate) = &call.function {
            all.extend(&aggregate.arguments);
        }
    }
    all
}
