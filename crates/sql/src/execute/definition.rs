//! Binding and evaluation for DDL: expressions over the columns of a table, columns of queries.

use std::sync::Arc;

use crate::bind::{
    BoundRowExpression, bind_check, bind_row_expression, kept_type, query_columns,
    would_be_updatable,
};
use crate::catalog::SessionCatalog;
use crate::catalog::ddl::{ExpressionBinder, QueryColumn, RowExpression};
use crate::catalog::model::{CheckModel, TableModel};
use crate::error::Result;
use crate::expression::volatility::volatile_function;
use crate::grammar::ast::Query;
use crate::logical::{PlanContext, VariableTypes};
use crate::types::{Datum, EvaluationContext, SqlType};

use super::DetachedExpression;

/// Binds expressions of definitions for a session.
pub struct DefinitionBinder<'a> {
    catalog: &'a Arc<SessionCatalog>,
    evaluation: &'a EvaluationContext,
    variables: &'a dyn VariableTypes,
}

impl<'a> DefinitionBinder<'a> {
    /// A binder that sees what the session sees.
    #[must_use]
    pub fn new(
        catalog: &'a Arc<SessionCatalog>,
        evaluation: &'a EvaluationContext,
        variables: &'a dyn VariableTypes,
    ) -> DefinitionBinder<'a> {
        DefinitionBinder { catalog, evaluation, variables }
    }

    fn detached(&self, bound: BoundRowExpression) -> Box<dyn RowExpression> {
        let BoundRowExpression { expression, columns: slots, frame_slots } = bound;
        let columns = slots.iter().map(|(ordinal, _)| *ordinal).collect();
        let volatile = volatile_function(&expression);
        let catalog = Arc::clone(self.catalog);
        let inner = DetachedExpression::new(catalog, expression, slots, frame_slots);
        Box::new(BoundExpression { inner, columns, volatile })
    }
}

/// An expression over the columns of one table.
struct BoundExpression {
    inner: DetachedExpression,
    columns: Vec<u16>,
    volatile: Option<&'static str>,
}

impl RowExpression for BoundExpression {
    fn ty(&self) -> &SqlType {
        self.inner.ty()
    }

    fn volatile_function(&self) -> Option<&'static str> {
        self.volatile
    }

    fn columns(&self) -> &[u16] {
        &self.columns
    }

    fn evaluate(&self, row: &[Datum], evaluation: &EvaluationContext) -> Result<Datum> {
        self.inner.evaluate(row, evaluation)
    }
}

impl ExpressionBinder for DefinitionBinder<'_> {
    fn bind(&self, table: &Arc<TableModel>, text: &str) -> Result<Box<dyn RowExpression>> {
        let context = PlanContext::new(self.catalog, None, self.evaluation);
        Ok(self.detached(bind_row_expression(table, text, &context)?))
    }

    fn bind_check(
        &self,
        table: &Arc<TableModel>,
        check: &CheckModel,
    ) -> Result<Box<dyn RowExpression>> {
        let context = PlanContext::new(self.catalog, None, self.evaluation);
        Ok(self.detached(bind_check(table, check, &context)?))
    }

    fn is_updatable(&self, query: &Query, schema: &str) -> Result<bool> {
        let context = PlanContext::new(self.catalog, Some(schema), self.evaluation);
        would_be_updatable(query, &context)
    }

    fn query_columns(&self, query: &Query, schema: &str) -> Result<Vec<QueryColumn>> {
        let mut context = PlanContext::new(self.catalog, Some(schema), self.evaluation);
        context.variables = self.variables;
        let columns = query_columns(query, &context)?;
        let column = |column: crate::logical::OutputColumn| {
            let origin = column.origin.as_ref().and_then(|origin| {
                let found = self.catalog.table(&origin.schema, &origin.original_table).ok()?;
                let ordinal = found.column(&origin.original_name)?.ordinal;
                Some((found, ordinal))
            });
            let (kind, width) = kept_type(&column);
            let told = column.display.and_then(|display| display.nullable);
            let nullable = told.unwrap_or(column.value.ty.nullable);
            let ty = SqlType { kind, nullable, ..column.value.ty };
            QueryColumn { name: column.name.to_string(), ty, width, origin }
        };
        Ok(columns.into_iter().map(column).collect())
    }
}
