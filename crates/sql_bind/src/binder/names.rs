//! The names that are visible where the binder is: scopes, common tables, the schema, the clause.

use std::sync::Arc;

use firn_sql_grammar::ast::TableName;
use firn_sql_types::error::{Result, SqlError};

use super::cte::CommonTableName;
use super::scope::{Clause, Scope};

/// What names mean at the place that is being bound.
pub(crate) struct Names {
    /// Scopes, the innermost last.
    pub(crate) scopes: Vec<Scope>,
    /// The names defined by `WITH`, the innermost last.
    pub(crate) common: Vec<CommonTableName>,
    /// The schema of unqualified names; inside a view, the view's schema.
    pub(crate) schema: Option<Arc<str>>,
    /// The clause that is being bound.
    pub(crate) clause: Clause,
    /// The check constraint whose condition is being bound.
    pub(crate) check: Option<Arc<str>>,
}

/// Names that a view's body does not see.
pub(crate) struct HiddenNames {
    scopes: Vec<Scope>,
    common: Vec<CommonTableName>,
    schema: Option<Arc<str>>,
}

impl Names {
    /// No tables; unqualified names belong to `schema`.
    pub(crate) fn new(schema: Option<&str>) -> Names {
        Names {
            scopes: Vec::new(),
            common: Vec::new(),
            schema: schema.map(Arc::from),
            clause: Clause::FieldList,
            check: None,
        }
    }

    /// The innermost scope.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn innermost(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("a query block is being bound")
    }

    /// The schema of a table's name.
    ///
    /// # Errors
    /// 1046 if the name has none and the session neither.
    pub(crate) fn schema_of(&self, name: &TableName) -> Result<Arc<str>> {
        match &name.schema {
            Some(schema) => Ok(schema.as_str().into()),
            None => self.schema.clone().ok_or_else(|| SqlError::new(1046, "No database selected")),
        }
    }

    /// Hides all names and makes a view's schema that of unqualified ones.
    pub(crate) fn hide(&mut self, schema: Arc<str>) -> HiddenNames {
        HiddenNames {
            scopes: std::mem::take(&mut self.scopes),
            common: std::mem::take(&mut self.common),
            schema: self.schema.replace(schema),
        }
    }

    /// The end of [`Names::hide`].
    pub(crate) fn show(&mut self, hidden: HiddenNames) {
        self.scopes = hidden.scopes;
        self.common = hidden.common;
        self.schema = hidden.schema;
    }
}
