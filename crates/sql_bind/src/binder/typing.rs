//! What the rules of types ask: the session, the slots, and what clients see of them.
//!
//! Casts, comparisons, function calls and displays work on expressions whose names are resolved.
//! They take a [`Typing`] and see no scope and no table by its name.

use firn_sql_logical::PlanContext;
use firn_sql_logical::expression::{Expression, visit};
use firn_sql_types::error::Result;

use super::{Displays, Frame, PlanFacts};

/// The statement as the rules of types see it.
pub(crate) struct Typing<'a> {
    /// The context for which the statement is planned.
    pub(crate) context: &'a PlanContext<'a>,
    /// The slots that expressions read.
    pub(crate) frame: Frame,
    /// What clients see of slots and subqueries.
    pub(crate) displays: Displays,
    /// What the plan will depend on.
    pub(crate) facts: PlanFacts,
    /// Whether the statement writes rows, and refuses values that do not fit.
    pub(crate) writing: Writing,
}

/// What a statement does with the values that it makes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Writing {
    pub(crate) writes: bool,
    /// It adjusts values that do not fit.
    pub(crate) ignores: bool,
}

impl<'a> Typing<'a> {
    /// A statement without tables.
    pub(crate) fn new(context: &'a PlanContext<'a>) -> Typing<'a> {
        Typing {
            context,
            frame: Frame::default(),
            displays: Displays::default(),
            facts: PlanFacts::default(),
            writing: Writing::default(),
        }
    }

    /// Counts the memory of an expression that is copied.
    ///
    /// # Errors
    /// 1041 and 4169 if the statement holds or does more than it may.
    pub(crate) fn hold(&self, expression: &Expression) -> Result<()> {
        let (nodes, size_bytes) = visit::size_of_expression(expression);
        self.context.watch.steps(nodes)?;
        self.context.watch.hold(size_bytes)
    }

    /// Whether a value that does not fit is an error.
    pub(crate) fn refuses_unfit(&self) -> bool {
        let Writing { writes, ignores } = self.writing;
        writes && !ignores && self.context.evaluation.sql_mode.is_strict()
    }
}
