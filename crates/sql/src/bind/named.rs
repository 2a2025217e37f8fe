//! Tables that a statement names, and what it does with their columns: what privileges and `LOCK TABLES`
//! judge.
//!
//! ```text
//!   UPDATE t SET a = b WHERE c = 1      t: reads {b, c}, writes UPDATE {a}
//! ```
//!
//! What stands in views with the rights of their definers is not looked at: the view is.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::catalog::model::TableModel;
use crate::plan::{NamedTable, NeededPrivilege, PlanNeed};

use super::Binder;
use super::logical::RelationId;

/// A table or view that the statement names.
#[derive(Debug)]
pub(crate) struct NamedUse {
    pub(crate) table: NamedTable,
    /// Columns that are read.
    reads: BTreeSet<Arc<str>>,
    /// They are read by `*`.
    reads_whole: bool,
    /// What is written, by privilege.
    writes: Vec<(NeededPrivilege, BTreeSet<Arc<str>>)>,
    /// The columns that are inserted are not named.
    writes_whole: bool,
    /// Nothing but a target of rows.
    is_only_target: bool,
    /// It stands in a view.
    is_inner: bool,
    /// It is a view with the rights of who uses it: these are needed on what is behind it as well.
    is_invoker_view: bool,
}

impl Binder<'_> {
    /// Notes a table of the statement. `None` inside views with the rights of their definers.
    pub(crate) fn name_table(
        &mut self,
        schema: &Arc<str>,
        table: &str,
        alias: &Arc<str>,
        model: Option<&TableModel>,
    ) -> Option<usize> {
        if self.definer_views > 0 {
            return None;
        }
        let (schema, alias) = (Arc::clone(schema), Arc::clone(alias));
        let view = model.and_then(TableModel::view);
        self.named.push(NamedUse {
            table: NamedTable { schema, table: table.into(), alias, writes: false },
            reads: BTreeSet::new(),
            reads_whole: false,
            writes: Vec::new(),
            writes_whole: false,
            is_only_target: false,
            is_inner: !self.conditions_within.is_empty(),
            is_invoker_view: view.is_some_and(|view| !view.security_definer),
        });
        Some(self.named.len() - 1)
    }

    /// A column of a named table is read.
    pub(crate) fn note_read(&mut self, named: Option<usize>, column: &Arc<str>) {
        if let Some(named) = named {
            self.named[named].reads.insert(Arc::clone(column));
        }
    }

    /// All columns of a named table are read, by `*`.
    pub(crate) fn note_whole_read(&mut self, named: Option<usize>) {
        if let Some(named) = named {
            self.named[named].reads_whole = true;
        }
    }

    /// Rows of a named table, or values of its column, are written to the stored table `behind` it.
    pub(crate) fn note_write(
        &mut self,
        named: Option<usize>,
        privilege: NeededPrivilege,
        column: Option<&Arc<str>>,
        behind: Option<(RelationId, u16)>,
    ) {
        let Some(number) = named else { return };
        let one = &mut self.named[number];
        one.table.writes = true;
        one.add_write(privilege, column.cloned());
        let inner = behind.filter(|_| one.is_invoker_view);
        let Some((relation, ordinal)) = inner else { return };
        let Ok(model) = self.model_of(relation) else { return };
        let column = column.and_then(|_| model.by_ordinal(ordinal)).map(|one| one.name.clone());
        let same = |one: &NamedUse| {
            one.is_inner && one.table.schema == model.schema && one.table.table == model.name
        };
        if let Some(inner) = self.named.iter_mut().find(|one| same(one)) {
            inner.add_write(privilege, column);
        }
    }

    /// The table is named as the target of rows, and not to be read.
    pub(crate) fn note_only_target(&mut self, named: Option<usize>, whole: bool) {
        if let Some(named) = named {
            self.named[named].is_only_target = true;
            self.named[named].writes_whole = whole;
        }
    }

    /// What the statement needs to be allowed.
    pub(crate) fn needs(&self) -> Vec<PlanNeed> {
        let mut needs: Vec<PlanNeed> = self.named.iter().flat_map(NamedUse::needs).collect();
        needs.sort();
        needs.dedup();
        needs
    }

    /// The tables that `LOCK TABLES` judges.
    pub(crate) fn named_tables(&self) -> Vec<NamedTable> {
        let outer = self.named.iter().filter(|one| !one.is_inner);
        outer.map(|one| one.table.clone()).collect()
    }
}

impl NamedUse {
    fn add_write(&mut self, privilege: NeededPrivilege, column: Option<Arc<str>>) {
        match self.writes.iter_mut().find(|(of, _)| *of == privilege) {
            Some((_, columns)) => columns.extend(column),
            None => self.writes.push((privilege, column.into_iter().collect())),
        }
    }

    /// What is changed without a look at it need not be readable.
    fn needs(&self) -> impl Iterator<Item = PlanNeed> {
        let need = |privilege, columns: &BTreeSet<Arc<str>>, whole| PlanNeed {
            privilege,
            schema: Arc::clone(&self.table.schema),
            table: Arc::clone(&self.table.table),
            columns: columns.iter().cloned().collect(),
            whole,
        };
        let is_blind = (self.is_only_target || !self.writes.is_empty()) && self.reads.is_empty();
        let read =
            (!is_blind).then(|| need(NeededPrivilege::Select, &self.reads, self.reads_whole));
        let writes = self.writes.iter();
        let writes = writes.map(|(of, columns)| need(*of, columns, self.writes_whole));
        read.into_iter().chain(writes).collect::<Vec<_>>().into_iter()
    }
}
