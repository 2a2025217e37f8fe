//! The table references of a statement, and the slots in which their columns are.
//!
//! ```text
//!   SELECT n FROM t WHERE id = 5      relation 0: t, slots [id → 0, n → 1]      owners [0, 0]
//! ```
//!
//! A column gets its slot when it is first read. A slot without an owner holds what the statement
//! computes.

use std::sync::Arc;

use firn_api::rows::{ReadMode, WaitPolicy};
use firn_sql_catalog::model::{ColumnModel, TableModel};
use firn_sql_logical::expression::Slot;
use firn_sql_logical::{IndexHints, Relation, RelationId, RelationSource};
use firn_sql_types::error::{Result, SqlError};

/// The table references and the slots of a statement.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    /// The table references, in the order in which they were bound.
    pub(crate) relations: Vec<Relation>,
    /// By slot: its table reference.
    owners: Vec<Option<RelationId>>,
}

impl Frame {
    /// Adds a table reference that is read in a snapshot and has no slots yet.
    pub(crate) fn add_relation(&mut self, source: RelationSource, alias: Arc<str>) -> RelationId {
        self.relations.push(Relation {
            source,
            alias,
            slots: Vec::new(),
            mode: ReadMode::Consistent,
            hints: IndexHints::default(),
            row_slots: None,
        });
        RelationId(self.relations.len() - 1)
    }

    pub(crate) fn relation(&self, RelationId(number): RelationId) -> &Relation {
        &self.relations[number]
    }

    pub(crate) fn relation_mut(&mut self, RelationId(number): RelationId) -> &mut Relation {
        &mut self.relations[number]
    }

    /// The number of slots.
    pub(crate) fn width(&self) -> usize {
        self.owners.len()
    }

    /// The table reference that fills a slot; `None` if the statement computes it.
    pub(crate) fn owner(&self, slot: Slot) -> Option<RelationId> {
        self.owners.get(slot.0 as usize).copied().flatten()
    }

    pub(crate) fn new_slot(&mut self, owner: Option<RelationId>) -> Slot {
        let slot = Slot(u32::try_from(self.owners.len()).expect("fewer slots than 2^32"));
        self.owners.push(owner);
        slot
    }

    /// The slot of a relation's column.
    pub(crate) fn relation_slot(&mut self, relation: RelationId, number: u16) -> Slot {
        let number = usize::from(number);
        let slots = &mut self.relation_mut(relation).slots;
        if slots.len() <= number {
            slots.resize(number + 1, None);
        }
        if let Some(slot) = slots[number] {
            return slot;
        }
        let slot = self.new_slot(Some(relation));
        self.relation_mut(relation).slots[number] = Some(slot);
        slot
    }

    /// The table reference that fills a slot, and the slot's place among its columns.
    pub(crate) fn place_of(&self, slot: Slot) -> Option<(RelationId, u16)> {
        let relation = self.owner(slot)?;
        let slots = &self.relation(relation).slots;
        let place = slots.iter().position(|other| *other == Some(slot))?;
        Some((relation, u16::try_from(place).ok()?))
    }

    /// The column of a stored table that a slot holds.
    pub(crate) fn table_column(&self, slot: Slot) -> Option<&ColumnModel> {
        let (relation, ordinal) = self.place_of(slot)?;
        let RelationSource::Table(table) = &self.relation(relation).source else { return None };
        table.by_ordinal(ordinal)
    }

    /// The definition of a table reference that is a stored table.
    ///
    /// # Errors
    /// 1235 for any other table reference, which cannot be written.
    pub(crate) fn table_of(&self, relation: RelationId) -> Result<Arc<TableModel>> {
        match &self.relation(relation).source {
            RelationSource::Table(table) => Ok(Arc::clone(table)),
            _ => Err(SqlError::not_supported("writing to what is no table")),
        }
    }

    /// Locks and keeps the rows of a table reference, so that they can be changed. Returns the
    /// slots of the row's key and of its bytes.
    pub(crate) fn make_target(&mut self, relation: RelationId) -> (Slot, Slot) {
        if let Some(slots) = self.relation(relation).row_slots {
            return slots;
        }
        let slots = (self.new_slot(Some(relation)), self.new_slot(Some(relation)));
        let target = self.relation_mut(relation);
        target.row_slots = Some(slots);
        target.mode = ReadMode::Update(WaitPolicy::Wait);
        slots
    }

    /// The columns of a table reference that have slots.
    pub(crate) fn row_slots(&self, relation: RelationId) -> Vec<(u16, Slot)> {
        let slots = self.relation(relation).slots.iter().zip(0_u16..);
        slots.filter_map(|(slot, ordinal)| Some((ordinal, (*slot)?))).collect()
    }
}
