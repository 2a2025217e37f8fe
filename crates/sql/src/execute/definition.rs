//! What DDL needs of binding and evaluation: expressions over the columns of a table, columns of queries.

use std::sync::Arc;

use sqlparser::ast::Query;

use crate::bind::{Binder, would_be_updatable};
use crate::bind::logical::RelationSource;
use crate::bind::scope::{Scope, ShownColumn};
use crate::catalog::SessionCatalog;
use crate::catalog::ddl::{ExpressionBinder, QueryColumn, RowExpression};
use crate::catalog::model::TableModel;
use crate::error::Result;
use crate::grammar::{self, ast::Select, ast::Statement};
use crate::plan::{PlanContext, StatementPlan, plan_statement};
use crate::types::{Datum, EvaluationContext, SqlType};

use super::DetachedExpression;

/// Binds expressions of definitions for a session.
pub struct DefinitionBinder<'a> {
    catalog: &'a Arc<SessionCatalog>,
    evaluation: &'a EvaluationContext,
}

impl<'a> DefinitionBinder<'a> {
    /// A binder that sees what the session sees.
    #[must_use]
    pub fn new(
        catalog: &'a Arc<SessionCatalog>,
        evaluation: &'a EvaluationContext,
    ) -> DefinitionBinder<'a> {
        DefinitionBinder { catalog, evaluation }
    }
}

/// An expression over the columns of one table.
struct BoundExpression {
    inner: DetachedExpression,
    columns: Vec<u16>,
}

impl RowExpression for BoundExpression {
    fn ty(&self) -> &SqlType {
        self.inner.ty()
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
        let parsed = grammar::parse_expression(text, grammar::Mode::default())?;
        let context = PlanContext::new(self.catalog, None, self.evaluation);
        let mut binder = Binder::new(&context);
        let source = RelationSource::Table(Arc::clone(table));
        let relation = binder.add_relation(source, Arc::clone(&table.name));
        let row = binder.row_table(table, relation, Arc::clone(&table.name));
        let shown = (0..row.columns.len()).map(|column| ShownColumn { table: 0, column }).collect();
        binder.scopes.push(Scope { tables: vec![row], shown, ..Scope::default() });
        let expression = binder.bind_single(&parsed)?;
        let slots = binder.row_slots(relation);
        let columns = slots.iter().map(|(ordinal, _)| *ordinal).collect();
        let frame = u32::try_from(binder.owners.len()).unwrap_or(u32::MAX);
        let catalog = Arc::clone(self.catalog);
        let inner = DetachedExpression::new(catalog, expression, slots, frame);
        Ok(Box::new(BoundExpression { inner, columns }))
    }

    fn is_updatable(&self, query: &Query, schema: &str) -> Result<bool> {
        let context = PlanContext::new(self.catalog, Some(schema), self.evaluation);
        would_be_updatable(query, &context)
    }

    fn query_columns(&self, query: &Query, schema: &str) -> Result<Vec<QueryColumn>> {
        let context = PlanContext::new(self.catalog, Some(schema), self.evaluation);
        let select = Select { query: query.clone(), into: None };
        let plan = plan_statement(&Statement::Select(Box::new(select)), &context)?;
        let StatementPlan::Query(query) = plan.statement else { return Ok(Vec::new()) };
        let column = |column: crate::plan::OutputColumn| {
            let origin = column.origin.as_ref().and_then(|origin| {
                let found = self.catalog.table(&origin.schema, &origin.original_table).ok()?;
                let ordinal = found.column(&origin.original_name)?.ordinal;
                Some((found, ordinal))
            });
            QueryColumn { name: column.name.to_string(), ty: column.value.ty, origin }
        };
        Ok(query.columns.into_iter().map(column).collect())
    }
}
