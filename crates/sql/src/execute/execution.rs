//! One execution of a statement: the parts that operators and expressions share.
//!
//! ```text
//!   session ──► Execution { frame, data, interruption, workspace, measures, … }
//!                    │         └──► operators, expressions
//!                    └── Scratch: frame and buffers, taken from the session and returned to it
//! ```

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use firn_api::rows::{DatabaseNode, TableRef, Transaction};

use crate::catalog::model::TableModel;
use crate::catalog::{SessionCatalog, SessionTables};
use crate::error::Result;
use crate::plan::PreparedPlan;
use crate::types::{Datum, EvaluationContext, SqlType};

use super::common_table::CommonTables;
use super::counters::Measures;
use super::data_access::DataAccess;
use super::frame::Frame;
use super::interruption::Interruption;
use super::literal_rows::GivenRows;
use super::memory::MemoryBudget;
use super::subquery::Answers;
use super::workspace::{Scratch, Workspace};

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

/// One execution of a statement: its parts, each with a subject. What operators and expressions
/// share is here; what one of them keeps for itself is in the operator.
pub struct Execution<'a> {
    pub(crate) plan: &'a PreparedPlan,
    /// Modes, time zone, warnings.
    pub context: &'a EvaluationContext,
    pub session: &'a mut dyn SessionState,
    /// The session's settings.
    pub limits: Limits,
    /// The values that expressions read.
    pub frame: Frame<'a>,
    /// The transaction, and the tables that it sees.
    pub data: DataAccess<'a>,
    /// Whether the statement may continue.
    pub interruption: Interruption<'a>,
    /// Memory, and where to put what has no room in it.
    pub workspace: Workspace,
    /// Counts of rows and of operators.
    pub measures: Measures<'a>,
    /// Results that are read more than once.
    pub(crate) kept: KeptResults,
    /// The rows that an `INSERT` inserts instead of its one row of parameters.
    pub given: Option<&'a mut dyn GivenRows>,
    /// Rows that a query would have returned without its limit, for `FOUND_ROWS()`.
    pub found_rows: Option<u64>,
}

/// Results of subqueries and common tables.
#[derive(Default)]
pub(crate) struct KeptResults {
    pub(crate) answers: Answers,
    pub(crate) common_tables: CommonTables,
}

/// The required parts of an execution.
pub struct ExecutionContext<'a> {
    /// See [`Frame::parameters`].
    pub parameters: &'a [Datum],
    /// See [`DataAccess::transaction`].
    pub transaction: &'a mut dyn Transaction,
    /// See [`DataAccess::node`].
    pub node: &'a dyn DatabaseNode,
    /// See [`Execution::context`].
    pub context: &'a EvaluationContext,
    /// See [`DataAccess::catalog`].
    pub catalog: &'a SessionCatalog,
    /// See [`Execution::session`].
    pub session: &'a mut dyn SessionState,
    /// See [`Interruption::cancelled`].
    pub cancelled: &'a AtomicBool,
}

impl<'a> Execution<'a> {
    /// An execution of `plan`.
    #[must_use]
    pub fn new(
        plan: &'a PreparedPlan,
        context: ExecutionContext<'a>,
        scratch: Box<Scratch>,
    ) -> Execution<'a> {
        let mut workspace = Workspace::new(scratch);
        let slots = workspace.take_frame(plan.frame_slots as usize);
        Execution {
            plan,
            context: context.context,
            session: context.session,
            limits: Limits::default(),
            frame: Frame::new(slots, context.parameters),
            data: DataAccess::new(context.transaction, context.node, context.catalog),
            interruption: Interruption::new(context.cancelled),
            workspace,
            measures: Measures::default(),
            kept: KeptResults::default(),
            given: None,
            found_rows: None,
        }
    }

    /// Ends the execution, and returns what the next one can reuse.
    #[must_use]
    #[inline]
    pub fn into_scratch(self) -> Box<Scratch> {
        self.workspace.into_scratch(self.frame.slots)
    }

    #[must_use]
    pub fn memory(&self) -> &MemoryBudget {
        self.workspace.memory()
    }

    /// As [`Interruption::check`].
    ///
    /// # Errors
    /// 1317 if it was cancelled, 3024 if it has run for too long.
    #[inline]
    pub fn check_cancelled(&self) -> Result<()> {
        self.interruption.check()
    }

    /// As [`DataAccess::planned_table`], with the plan's definitions.
    #[inline]
    pub(crate) fn planned_table<'t>(&mut self, model: &'t TableModel) -> Option<&'t TableRef> {
        self.data.planned_table(model, self.plan.validity.version())
    }

    /// Whether no foreign key refers to a table that the plan writes.
    pub(crate) fn has_no_children(&self) -> bool {
        !self.plan.writes_parents
            && self.plan.validity.version() == self.data.catalog.definitions_version()
    }

    /// As [`DataAccess::table`], with the plan's definitions.
    ///
    /// # Errors
    /// As [`DataAccess::table`].
    pub(crate) fn table(&mut self, model: &TableModel, write: bool) -> Result<TableRef> {
        self.data.table(model, write, self.plan.validity.version())
    }

    /// The value of a system variable, as it was when the statement first read it.
    ///
    /// # Errors
    /// As [`SessionState::system_variable`].
    pub(crate) fn system_variable(&mut self, name: &Arc<str>, global: bool) -> Result<Datum> {
        self.frame.system_variable(&*self.session, name, global)
    }
}
