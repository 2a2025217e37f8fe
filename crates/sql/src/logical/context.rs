//! What a statement is planned with.

use std::cell::{Cell, RefCell};

use firn_format::value::CollationId;

use crate::catalog::SessionCatalog;
use crate::error::{Condition, Result};
use crate::types::{Datum, EvaluationContext, Octets, SqlType};
use crate::watch::Watch;

use super::PlanNeed;

/// The types of the session's variables.
pub trait VariableTypes {
    /// The type of a system variable; `name` is in lower case.
    ///
    /// # Errors
    /// 1193 if there is none of this name.
    fn system(&self, name: &str, global: bool) -> Result<SqlType>;
    /// The type of a user variable's value; `name` is in lower case and without `@`.
    fn user(&self, name: &str) -> SqlType;
}

/// Variables of which nothing is known: all are text.
#[derive(Debug, Clone, Copy, Default)]
pub struct UntypedVariables;

impl VariableTypes for UntypedVariables {
    fn system(&self, _name: &str, _global: bool) -> Result<SqlType> {
        Ok(SqlType::varchar(1024, CollationId(255)))
    }

    fn user(&self, _name: &str) -> SqlType {
        SqlType::varchar(16_383, CollationId(255))
    }
}

/// What a statement is planned with.
pub struct PlanContext<'a> {
    /// The definitions that the session sees.
    pub catalog: &'a SessionCatalog,
    /// The current schema.
    pub schema: Option<&'a str>,
    /// The session's modes, collation and time zone.
    pub evaluation: &'a EvaluationContext,
    /// String literals that are held apart from the statement's tree.
    pub long_texts: &'a [Octets],
    /// The types of parameters by number; those beyond its end are text.
    pub parameters: &'a [SqlType],
    /// Their values, if the statement is planned for an execution: estimates depend on them, and
    /// how they are compared with dates and times ([`Premise`](super::Premise)).
    pub parameter_values: &'a [Datum],
    /// By number: what binding has found of parameters whose types are not known.
    pub parameter_types: RefCell<Vec<Option<SqlType>>>,
    /// The types of variables.
    pub variables: &'a dyn VariableTypes,
    /// Warnings of planning, such as unknown hints.
    pub conditions: RefCell<Vec<Condition>>,
    /// What a statement that could not be planned needs to be allowed on the tables that it named
    /// until then.
    pub needs_of_refused: RefCell<Vec<PlanNeed>>,
    /// The executor that a hint names.
    pub executor: Cell<Option<Executor>>,
    /// What binding and planning may take.
    pub watch: Watch<'a>,
}

/// Who runs a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    /// Row by row.
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
            parameter_types: RefCell::default(),
            variables: &UntypedVariables,
            conditions: RefCell::default(),
            needs_of_refused: RefCell::default(),
            executor: Cell::new(None),
            watch: Watch::default(),
        }
    }
}
