//! Rows of tables that are generated when they are read.

use crate::execute::Evaluate;
use std::sync::Arc;

use crate::bind;
use crate::catalog::model::TableModel;
use crate::catalog::virtual_table::{BoundViews, VirtualContext, VirtualTable};
use crate::error::Result;
use crate::expression::{Expression, Slot};
use crate::types::Datum;

use super::Execution;
use super::memory::{Reservation, size_of_values};
use super::operator::Operator;

/// Reads a virtual table: all its rows at once, because generating them holds its sources.
pub(crate) struct VirtualScan<'p> {
    table: &'p dyn VirtualTable,
    slots: &'p [(u16, Slot)],
    hints: &'p [(u16, Expression)],
    rows: std::vec::IntoIter<Box<[Datum]>>,
    held: Option<Reservation>,
}

impl<'p> VirtualScan<'p> {
    pub(crate) fn new(
        table: &'p dyn VirtualTable,
        slots: &'p [(u16, Slot)],
        hints: &'p [(u16, Expression)],
    ) -> VirtualScan<'p> {
        VirtualScan { table, slots, hints, rows: Vec::new().into_iter(), held: None }
    }
}

/// Views are examined by binding them.
struct Binding;

impl BoundViews for Binding {
    fn is_updatable(&self, view: &Arc<TableModel>, context: &VirtualContext<'_>) -> bool {
        bind::is_updatable(view, context.catalog, context.evaluation)
    }
}

impl Operator for VirtualScan<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        let hints =
            self.hints.iter().map(|(column, value)| Ok((*column, value.evaluate(execution)?)));
        let hints: Vec<(u16, Datum)> = hints.collect::<Result<_>>()?;
        let mut held = execution.memory().reservation();
        let mut rows: Vec<Box<[Datum]>> = Vec::new();
        let context = VirtualContext {
            catalog: execution.data.catalog,
            session: execution.session.tables(),
            evaluation: execution.context,
            views: &Binding,
        };
        self.table.rows(&context, &hints, &mut |row| {
            execution.check_cancelled()?;
            let wanted = self.slots.iter().map(|(column, _)| row[usize::from(*column)].clone());
            let wanted: Box<[Datum]> = wanted.collect();
            held.require(size_of_values(&wanted))?;
            rows.push(wanted);
            Ok(true)
        })?;
        self.rows = rows.into_iter();
        self.held = Some(held);
        Ok(())
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        let Some(row) = self.rows.next() else { return Ok(false) };
        for ((_, slot), value) in self.slots.iter().zip(row) {
            execution.frame.set(*slot, value);
        }
        Ok(true)
    }
}
