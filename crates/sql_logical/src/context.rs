//! The context for planning a statement.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use firn_format::value::CollationId;

use firn_sql_catalog::SessionCatalog;
use firn_sql_types::error::{Condition, Result};
use firn_sql_types::watch::Watch;
use firn_sql_types::{ByteString, Datum, EvaluationContext, SqlType};

use super::PlanNeed;

/// The types of the session's variables.
pub trait VariableTypes {
    /// The type of a system variable; `name` is in lower case.
    ///
    /// # Errors
    /// 1193 if there is no variable with this name.
    fn system(&self, name: &str, global: bool) -> Result<SqlType>;
    /// Whether a system variable is on or off; `name` is in lower case.
    fn is_switch(&self, name: &str) -> bool;
    /// The type of a user variable; `name` is in lower case and without `@`. `None` if it was never
    /// set.
    fn user(&self, name: &str) -> Option<SqlType>;
}

/// Unknown variables: all are text.
#[derive(Debug, Clone, Copy, Default)]
pub struct UntypedVariables;

impl VariableTypes for UntypedVariables {
    fn system(&self, _name: &str, _global: bool) -> Result<SqlType> {
        Ok(SqlType::varchar(1024, CollationId(255)))
    }

    fn is_switch(&self, _name: &str) -> bool {
        false
    }

    fn user(&self, _name: &str) -> Option<SqlType> {
        None
    }
}

/// The context for planning a statement.
pub struct PlanContext<'a> {
    /// The definitions that the session sees.
    pub catalog: &'a SessionCatalog,
    /// The current schema.
    pub schema: Option<&'a str>,
    /// The session's modes, collation and time zone.
    pub evaluation: &'a EvaluationContext,
    /// String literals stored apart from the statement's tree.
    pub long_texts: &'a [ByteString],
    /// The types of parameters by number; parameters beyond its end are text.
    pub parameters: &'a [SqlType],
    /// Their values, if the statement is planned for an execution. Estimates depend on them, and so
    /// do comparisons with dates and times ([`Premise`](super::Premise)).
    pub parameter_values: &'a [Datum],
    /// The parameters are literals of the statement's text. One whose value a column beside it
    /// cannot store becomes a literal again, so that it is judged as the text says.
    pub parameters_are_literals: bool,
    /// By number: what the binder has found out about parameters of unknown types.
    pub parameter_types: RefCell<Vec<Option<SqlType>>>,
    pub variables: &'a dyn VariableTypes,
    /// The user variables that the statement sets, as far as it is bound.
    pub assigned_variables: RefCell<Vec<Arc<str>>>,
    /// Warnings of planning, such as unknown hints.
    pub conditions: RefCell<Vec<Condition>>,
    /// The privileges that a statement that could not be planned needs on the tables it had named
    /// until then.
    pub needs_of_refused: RefCell<Vec<PlanNeed>>,
    /// The executor named by a hint.
    pub executor: Cell<Option<Executor>>,
    /// The limits of binding and planning.
    pub watch: Watch<'a>,
}

/// The executor of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    Row,
    /// Over columns.
    Vectorised,
}

impl<'a> PlanContext<'a> {
    /// A context without parameters.
    #[must_use]
    pub fn new(
        catalog: &'a SessionCatalog,
        schema: Option<&'a str>,
        evaluation: &'a EvaluationContext,
    ) -> PlanContext<'a> {
        PlanContext {
            catalog,
            schema,
            evaluation,
            long_texts: &[],
            parameters: &[],
            parameter_values: &[],
            parameters_are_literals: false,
            parameter_types: RefCell::default(),
            variables: &UntypedVariables,
            assigned_variables: RefCell::default(),
            conditions: RefCell::default(),
            needs_of_refused: RefCell::default(),
            executor: Cell::new(None),
            watch: Watch::default(),
        }
    }
}
