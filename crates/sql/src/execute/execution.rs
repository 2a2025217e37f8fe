//! One execution of a statement: its frame, its parameters, its transaction, and what operators
//! keep between calls.
//!
//! ```text
//!   session ──► Execution { frame, parameters, transaction, … } ──► operators, expressions
//!                    └── Scratch: frame and buffers, taken from the session and returned to it
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use firn_api::rows::{DatabaseNode, RowsResult, TableRef, Transaction};
use firn_base::TableId;
use firn_base::clock::Clock;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::catalog::model::TableModel;
use crate::catalog::{SessionCatalog, SessionTables};
use crate::error::{ErrorKind, Result, SqlError};
use crate::expression::Slot;
use crate::plan::{Counters, PreparedPlan};
use crate::types::{Datum, EvaluationContext, SqlType};

use super::common_table::CommonTables;
use super::counters::RowCounts;
use super::known_patterns::KnownPatterns;
use super::literal_rows::GivenRows;
use super::memory::MemoryBudget;
use super::spill::{SpillDirectory, SpillFile};
use super::subquery::Answers;

/// What an execution needs from its session.
pub trait SessionState {
    /// `@name`: NULL if it was never set. The name is in lower case.
    fn user_variable(&self, name: &str) -> Result<Datum>;
    /// `@name := value`
    fn set_user_variable(&mut self, name: &str, value: Datum, ty: &SqlType);
    /// `@@name`.
    ///
    /// # Errors
    /// 1193 if there is no such variable.
    fn system_variable(&self, name: &str, global: bool) -> Result<Datum>;
    /// The content of virtual tables about sessions.
    fn tables(&self) -> &dyn SessionTables;
}

/// Numeric session settings that statements obey.
#[derive(Debug, Clone)]
pub struct Limits {
    /// `sql_select_limit`: the most rows that a query returns.
    pub select_rows: u64,
    /// `cte_max_recursion_depth`
    pub recursion_depth: u64,
    pub foreign_key_checks: bool,
    pub auto_increment_increment: u64,
    pub auto_increment_offset: u64,
    /// `firn_column_cache`: whether columns are kept between statements, and kept ones are used.
    pub uses_column_cache: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            select_rows: u64::MAX,
            recursion_depth: 1000,
            foreign_key_checks: true,
            auto_increment_increment: 1,
            auto_increment_offset: 1,
            uses_column_cache: true,
        }
    }
}

/// What a session keeps for its next execution, so that short statements allocate nothing.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) frame: Vec<Datum>,
    pub(crate) key: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    pub(crate) overflow: Vec<u8>,
    /// Rows that are sorted as bytes.
    pub(crate) rows: Vec<u8>,
    pub(crate) memory: MemoryBudget,
}

/// One execution of a statement.
pub struct Execution<'a> {
    pub(crate) plan: &'a PreparedPlan,
    /// The values of the statement's slots.
    pub(crate) frame: Vec<Datum>,
    /// The values of placeholders and of lifted literals.
    pub parameters: &'a [Datum],
    /// The transaction in which the statement runs.
    pub transaction: &'a mut dyn Transaction,
    /// The node of the transaction.
    pub node: &'a dyn DatabaseNode,
    /// Modes, time zone, warnings.
    pub context: &'a EvaluationContext,
    /// The definitions that the session sees.
    pub catalog: &'a SessionCatalog,
    pub session: &'a mut dyn SessionState,
    /// Set by other threads to cancel the statement.
    pub cancelled: &'a AtomicBool,
    /// The rows that an `INSERT` inserts instead of its one row of parameters.
    pub given: Option<&'a mut dyn GivenRows>,
    /// The session's settings.
    pub limits: Limits,
    /// Where operators put rows for which they have no memory; without it they fail with 1041.
    pub spill: Option<SpillDirectory>,
    /// The clock of counters.
    pub clock: Option<&'a dyn Clock>,
    /// The deadline of the statement, on the monotonic clock.
    pub deadline: Option<(&'a dyn Clock, std::time::Duration)>,
    /// Operator counts for `EXPLAIN ANALYZE`; `None` otherwise.
    pub counters: Option<Counters>,
    /// The requests to the node so far.
    pub rows: RowCounts,
    /// Whether locking scans take one row at a time, because changing a row may change the
    /// following ones.
    pub(crate) scans_row_by_row: bool,
    /// See [`DatabaseNode::is_remote`].
    pub(crate) is_remote: bool,
    /// Rows that a query would have returned without its limit, for `FOUND_ROWS()`.
    pub found_rows: Option<u64>,
    pub(crate) scratch: Box<Scratch>,
    pub(crate) answers: Answers,
    pub(crate) common_tables: CommonTables,
    pub(crate) patterns: KnownPatterns,
    system_variables: FxHashMap<(Arc<str>, bool), Datum>,
    tables: SmallVec<[(TableId, bool, TableRef); 2]>,
}

/// The required parts of an execution.
pub struct ExecutionContext<'a> {
    /// See [`Execution::parameters`].
    pub parameters: &'a [Datum],
    /// See [`Execution::transaction`].
    pub transaction: &'a mut dyn Transaction,
    /// See [`Execution::node`].
    pub node: &'a dyn DatabaseNode,
    /// See [`Execution::context`].
    pub context: &'a EvaluationContext,
    /// See [`Execution::catalog`].
    pub catalog: &'a SessionCatalog,
    /// See [`Execution::session`].
    pub session: &'a mut dyn SessionState,
    /// See [`Execution::cancelled`].
    pub cancelled: &'a AtomicBool,
}

impl<'a> Execution<'a> {
    /// An execution of `plan`.
    #[must_use]
    pub fn new(
        plan: &'a PreparedPlan,
        context: ExecutionContext<'a>,
        mut scratch: Box<Scratch>,
    ) -> Execution<'a> {
        let mut frame = std::mem::take(&mut scratch.frame);
        frame.clear();
        frame.resize_with(plan.frame_slots as usize, || Datum::Null);
        let ExecutionContext {
            parameters,
            transaction,
            node,
            context,
            catalog,
            session,
            cancelled,
        } = context;
        Execution {
            plan,
            frame,
            parameters,
            transaction,
            node,
            context,
            catalog,
            session,
            cancelled,
            given: None,
            limits: Limits::default(),
            spill: None,
            clock: None,
            deadline: None,
            counters: None,
            rows: RowCounts::default(),
            scans_row_by_row: false,
            is_remote: node.is_remote(),
            found_rows: None,
            scratch,
            answers: Answers::default(),
            common_tables: CommonTables::default(),
            patterns: KnownPatterns::default(),
            system_variables: FxHashMap::default(),
            tables: SmallVec::new(),
        }
    }

    /// Ends the execution, and returns what the next one can reuse.
    #[must_use]
    pub fn into_scratch(self) -> Box<Scratch> {
        let mut scratch = self.scratch;
        scratch.frame = self.frame;
        scratch.frame.clear();
        scratch
    }

    /// The statement's memory.
    #[must_use]
    pub fn memory(&self) -> &MemoryBudget {
        &self.scratch.memory
    }

    /// Checks whether the statement may continue.
    ///
    /// # Errors
    /// 1317 if it was cancelled, 3024 if it has run for too long.
    #[inline]
    pub fn check_cancelled(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(SqlError::interrupted());
        }
        match self.deadline {
            Some((clock, deadline)) if clock.monotonic() >= deadline => {
                Err(SqlError::out_of_time())
            }
            _ => Ok(()),
        }
    }

    /// The plan's table for a model, if it is valid for consistent reads of this transaction.
    #[inline]
    pub(crate) fn planned_table<'t>(&mut self, model: &'t TableModel) -> Option<&'t TableRef> {
        let version = self.plan.validity.version();
        self.transaction.is_current(&model.table, version).then_some(&model.table)
    }

    /// Whether no foreign key refers to a table that the plan writes.
    pub(crate) fn has_no_children(&self) -> bool {
        !self.plan.writes_parents
            && self.plan.validity.version() == self.catalog.definitions_version()
    }

    /// The table of a model in this transaction, for consistent reads or for writes and locking
    /// reads.
    ///
    /// # Errors
    /// 1412 if the table is no longer the one that the plan was made for; locks that were not
    /// granted.
    pub(crate) fn table(&mut self, model: &TableModel, write: bool) -> Result<TableRef> {
        let known =
            |(id, writes, _): &&(TableId, bool, TableRef)| *id == model.id && *writes == write;
        if let Some((_, _, table)) = self.tables.iter().find(known) {
            return Ok(table.clone());
        }
        if !write && let Some(table) = self.planned_table(model) {
            return Ok(table.clone());
        }
        let table = match write {
            true => self.table_for_write(model),
            false => self.transaction.table_for_read(model.id),
        };
        let table = table.map_err(super::error::from_rows)?;
        if table.definition().schema_version != model.table.definition().schema_version {
            let message = "Table definition has changed, please retry transaction";
            return Err(SqlError::new(1412, message));
        }
        self.tables.push((model.id, write, table.clone()));
        Ok(table)
    }

    fn table_for_write(&mut self, model: &TableModel) -> RowsResult<TableRef> {
        let version = self.plan.validity.version();
        match self.transaction.lock_current(&model.table, version)? {
            true => Ok(model.table.clone()),
            false => self.transaction.table_for_write(model.id),
        }
    }

    /// Puts a value in a slot.
    #[inline]
    pub(crate) fn set(&mut self, slot: Slot, value: Datum) {
        self.frame[slot.0 as usize] = value;
    }

    /// The value of a slot.
    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> &Datum {
        &self.frame[slot.0 as usize]
    }

    /// Copies of slots' values.
    pub(crate) fn save(&self, slots: &[Slot]) -> Box<[Datum]> {
        slots.iter().map(|slot| self.get(*slot).clone()).collect()
    }

    /// Puts values back in slots.
    pub(crate) fn restore(&mut self, slots: &[Slot], values: impl IntoIterator<Item = Datum>) {
        for (slot, value) in slots.iter().zip(values) {
            self.set(*slot, value);
        }
    }

    /// A file for rows for which there is no memory.
    ///
    /// # Errors
    /// 1041 if the session has no place for such files; 1 if it cannot be created.
    pub(crate) fn create_spill_file(&self) -> Result<SpillFile> {
        match &self.spill {
            Some(directory) => directory.create(),
            None => {
                let message = "Out of memory, and there is no place for temporary files";
                Err(SqlError::of_kind(ErrorKind::OutOfMemory, 1041, message))
            }
        }
    }

    /// The value of a system variable, as it was when the statement first read it.
    pub(crate) fn system_variable(&mut self, name: &Arc<str>, global: bool) -> Result<Datum> {
        let key = (name.clone(), global);
        if let Some(value) = self.system_variables.get(&key) {
            return Ok(value.clone());
        }
        let value = self.session.system_variable(name, global)?;
        self.system_variables.insert(key, value.clone());
        Ok(value)
    }
}
