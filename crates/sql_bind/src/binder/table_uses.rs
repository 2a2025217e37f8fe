//! The tables that a statement names, and its uses of their columns: the input of privilege checks
//! and `LOCK TABLES`.
//!
//! ```text
//!   UPDATE t SET a = b WHERE c = 1      t: UPDATE; its columns: SELECT {b, c}, UPDATE {a}
//!   SELECT x FROM v                     v: SELECT; t behind it: SELECT, of v's definer
//! ```
//!
//! A statement first needs privileges on its tables; a privilege on some column is enough. The
//! columns are checked after that.

use std::sync::Arc;

use firn_api::rows::ReadMode;
use rustc_hash::FxHashSet;

use firn_base::TableId;
use firn_sql_catalog::SessionCatalog;
use firn_sql_catalog::model::{TableKind, TableModel};
use firn_sql_logical::{
    BoundBody, DuplicatePolicy, NamedTable, NeedOf, NeededPrivilege, PlanNeed, PlannedLock,
    RelationId, RelationSource, ViewUser,
};
use firn_sql_types::error::Result;

use super::{Frame, ViewStack};

/// Columns in the order in which the statement reaches them: the error names the first forbidden
/// one.
#[derive(Debug, Default)]
struct Columns {
    in_order: Vec<Arc<str>>,
    known: FxHashSet<Arc<str>>,
}

impl Columns {
    fn insert(&mut self, column: &Arc<str>) {
        if self.known.insert(Arc::clone(column)) {
            self.in_order.push(Arc::clone(column));
        }
    }
}

/// A table or view that the statement names.
#[derive(Debug)]
pub(crate) struct NamedUse {
    pub(crate) table: NamedTable,
    reads: Columns,
    /// The columns that a `*` stood for.
    reads_by_star: Columns,
    /// What is written, by privilege.
    writes: Vec<(NeededPrivilege, Columns)>,
    /// The privileges needed on the table itself.
    wanted: Vec<NeededPrivilege>,
    /// Its rows are locked as for a change.
    is_locked: bool,
    /// It is the session's own temporary table, which needs no privileges.
    is_temporary: bool,
    /// The view through which it is used, and the user whose privileges count.
    through: Option<Arc<ViewUser>>,
    /// It is inside a view.
    is_inner: bool,
    /// It is a view: writes to it go to the table behind it.
    is_view: bool,
}

/// What a statement does with tables by their names.
pub(crate) struct TableUses {
    /// Tables and views that were looked up, including those behind views: the statement locks
    /// them.
    used: Vec<Arc<TableModel>>,
    /// Tables named by the statement, which its session must be allowed to read.
    named: Vec<NamedUse>,
    /// The privilege that the statement needs on the tables that are named next.
    pub(crate) wanted: NeededPrivilege,
    /// Tables that must not be read, because the statement writes them.
    pub(crate) written: Vec<TableId>,
    /// A `*` is being replaced by columns.
    pub(crate) is_star: bool,
}

impl Default for TableUses {
    fn default() -> TableUses {
        TableUses {
            used: Vec::new(),
            named: Vec::new(),
            wanted: NeededPrivilege::Select,
            written: Vec::new(),
            is_star: false,
        }
    }
}

impl TableUses {
    /// Notes a table of the statement; returns its number among the named tables. `is_inner`: a
    /// query is around its name.
    pub(crate) fn name_table(
        &mut self,
        table: NamedTable,
        model: Option<&TableModel>,
        views: &ViewStack,
        is_inner: bool,
    ) -> usize {
        self.named.push(NamedUse {
            table,
            reads: Columns::default(),
            reads_by_star: Columns::default(),
            writes: Vec::new(),
            wanted: vec![match views.is_outermost() && !is_inner {
                true => self.wanted,
                false => NeededPrivilege::Select,
            }],
            is_locked: false,
            is_temporary: model.is_some_and(|model| model.kind == TableKind::Temporary),
            through: views.user().cloned(),
            is_inner: !views.is_outermost(),
            is_view: model.is_some_and(|model| model.view().is_some()),
        });
        self.named.len() - 1
    }

    /// A table or view is looked up for the statement, under any name.
    pub(crate) fn use_table(&mut self, model: &Arc<TableModel>) {
        if !self.used.iter().any(|used| used.id == model.id) {
            self.used.push(Arc::clone(model));
        }
    }

    /// Whether all tables and views of the statement are stored, and none is a temporary table of
    /// the session.
    pub(crate) fn are_stored_only(&self, frame: &Frame) -> bool {
        let is_stored = |model: &Arc<TableModel>| model.kind != TableKind::Temporary;
        self.used.iter().all(is_stored)
            && frame.relations.iter().all(|relation| match &relation.source {
                RelationSource::Table(model) => is_stored(model),
                RelationSource::Virtual(_) => false,
                _ => true,
            })
    }

    /// A column of a named table is read.
    pub(crate) fn note_read(&mut self, named: Option<usize>, column: &Arc<str>) {
        let Some(named) = named.map(|named| &mut self.named[named]) else { return };
        match self.is_star {
            true => named.reads_by_star.insert(column),
            false => named.reads.insert(column),
        }
    }

    /// Rows of a named table are locked as for a change.
    pub(crate) fn note_locked(&mut self, named: Option<usize>) {
        if let Some(named) = named {
            self.named[named].is_locked = true;
        }
    }

    /// Rows of a named table, or values of its column, are written to the stored table `behind`
    /// it.
    pub(crate) fn note_write(
        &mut self,
        frame: &Frame,
        named: Option<usize>,
        privilege: NeededPrivilege,
        column: Option<&Arc<str>>,
        behind: Option<(RelationId, u16)>,
    ) {
        let Some(number) = named else { return };
        let one = &mut self.named[number];
        one.table.writes = true;
        one.add_write(privilege, column.cloned());
        let Some((relation, ordinal)) = behind.filter(|_| one.is_view) else { return };
        let Ok(model) = frame.table_of(relation) else { return };
        let column = column.and_then(|_| model.by_ordinal(ordinal)).map(|one| one.name.clone());
        let same = |one: &NamedUse| {
            one.is_inner && one.table.schema == model.schema && one.table.table == model.name
        };
        if let Some(inner) = self.named.iter_mut().find(|one| same(one)) {
            inner.add_write(privilege, column);
        }
    }

    /// A privilege on the named table itself, besides those for its columns.
    pub(crate) fn note_wanted(&mut self, named: usize, wanted: &[NeededPrivilege]) {
        self.named[named].wanted = wanted.to_vec();
    }

    /// The privileges that the statement needs.
    pub(crate) fn needs(&self) -> Vec<PlanNeed> {
        let mut needs: Vec<PlanNeed> = Vec::new();
        for need in self.named.iter().flat_map(NamedUse::needs) {
            if !needs.contains(&need) {
                needs.push(need);
            }
        }
        needs
    }

    /// The tables that `LOCK TABLES` checks.
    pub(crate) fn named_tables(&self) -> Vec<NamedTable> {
        let outer = self.named.iter().filter(|one| !one.is_inner);
        outer.map(|one| one.table.clone()).collect()
    }

    /// The metadata locks that an execution holds.
    ///
    /// # Errors
    /// 1712 if stored options are damaged.
    pub(crate) fn locks(
        &self,
        frame: &Frame,
        catalog: &SessionCatalog,
        statement: &BoundBody,
    ) -> Result<Vec<PlannedLock>> {
        let mut locks = Locks::default();
        self.used.iter().for_each(|model| locks.add(model, false));
        for relation in &frame.relations {
            let writes = relation.mode != ReadMode::Consistent || relation.row_slots.is_some();
            if let RelationSource::Table(model) = &relation.source
                && writes
            {
                locks.add(model, true);
            }
        }
        locks.add_written(catalog, statement)?;
        locks.list.sort_by_key(|lock| lock.model.id);
        Ok(locks.list)
    }
}

/// The locks that were collected so far.
#[derive(Default)]
struct Locks {
    list: Vec<PlannedLock>,
}

impl Locks {
    fn add(&mut self, model: &Arc<TableModel>, writes: bool) {
        if model.kind == TableKind::Temporary {
            return;
        }
        match self.list.iter_mut().find(|lock| lock.model.id == model.id) {
            Some(lock) => lock.writes |= writes,
            None => self.list.push(PlannedLock { model: Arc::clone(model), writes }),
        }
    }

    /// The tables that a statement writes, with their parents, and with the children that the
    /// change of a parent reads or changes.
    fn add_written(&mut self, catalog: &SessionCatalog, statement: &BoundBody) -> Result<()> {
        let mut written: Vec<Arc<TableModel>> = statement.written().cloned().collect();
        let shared = catalog.shared();
        let is_plain_insert = matches!(statement, BoundBody::Insert(insert) if matches!(insert.duplicates, DuplicatePolicy::Refuse));
        let mut next = 0;
        while let Some(model) = written.get(next).cloned() {
            self.add(&model, true);
            for key in &model.foreign_keys {
                if let Some(parent) = shared.find_table(&key.parent_schema, &key.parent_table)? {
                    self.add(&parent, false);
                }
            }
            next += 1;
            if is_plain_insert {
                continue;
            }
            for reference in shared.referencing(&model.schema, &model.name)?.iter() {
                let (child, key) = (&reference.child, reference.foreign_key());
                let changes = key.on_delete.cascades() || key.on_update.cascades();
                match changes && !written.iter().any(|other| other.id == child.id) {
                    true => written.push(Arc::clone(child)),
                    false => self.add(child, false),
                }
            }
        }
        Ok(())
    }
}

impl NamedUse {
    fn add_write(&mut self, privilege: NeededPrivilege, column: Option<Arc<str>>) {
        match self.writes.iter_mut().find(|(of, _)| *of == privilege) {
            Some((_, columns)) => column.iter().for_each(|column| columns.insert(column)),
            None => {
                let mut columns = Columns::default();
                column.iter().for_each(|column| columns.insert(column));
                self.writes.push((privilege, columns));
            }
        }
    }

    /// The privileges on the table itself, then those on its columns.
    fn needs(&self) -> Vec<PlanNeed> {
        let need = |of, privilege, columns: &[Arc<str>]| PlanNeed {
            of,
            privilege,
            schema: Arc::clone(&self.table.schema),
            table: Arc::clone(&self.table.table),
            columns: columns.to_vec(),
            through: self.through.clone(),
        };
        if self.is_temporary {
            return Vec::new();
        }
        let mut needs: Vec<PlanNeed> =
            self.wanted.iter().map(|privilege| need(NeedOf::Table, *privilege, &[])).collect();
        if self.is_locked {
            needs.push(need(NeedOf::LockedTable, NeededPrivilege::Update, &[]));
        }
        let written = |of: &NeededPrivilege| self.writes.iter().any(|(other, _)| other == of);
        for privilege in [NeededPrivilege::Insert, NeededPrivilege::Delete] {
            if written(&privilege) && !self.wanted.contains(&privilege) {
                needs.push(need(NeedOf::Table, privilege, &[]));
            }
        }
        let by_star = &self.reads_by_star.in_order;
        if !by_star.is_empty() {
            needs.push(need(NeedOf::AllColumns, NeededPrivilege::Select, by_star));
        }
        if !self.reads.in_order.is_empty() {
            needs.push(need(NeedOf::Columns, NeededPrivilege::Select, &self.reads.in_order));
        }
        let columns = self.writes.iter().filter(|(_, columns)| !columns.in_order.is_empty());
        needs.extend(columns.map(|(of, columns)| need(NeedOf::Columns, *of, &columns.in_order)));
        needs
    }
}
