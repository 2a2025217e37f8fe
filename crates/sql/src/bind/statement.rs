//! Whole statements.

use crate::catalog::SessionCatalog;
use crate::error::{Result, SqlError};
use crate::grammar::ast::Statement;
use crate::logical::{BoundBody, BoundStatement, PlanContext};

use super::Binder;

/// Binds a statement that reads or writes rows.
///
/// # Errors
/// MySQL's errors for names, types and forms; 1235 for other statements and for unsupported
/// features.
pub fn bind_statement(statement: &Statement, context: &PlanContext<'_>) -> Result<BoundStatement> {
    let definitions_version = context.catalog.definitions_version();
    let mut binder = Binder::new(context);
    binder.writes = !matches!(statement, Statement::Select(_) | Statement::Do(_));
    binder.ignores = match statement {
        Statement::Insert(insert) => insert.ignore,
        Statement::Update(update) => update.ignore,
        Statement::Delete(delete) => delete.ignore,
        _ => false,
    };
    let body = binder.statement(statement).inspect_err(|_| {
        // A session without privileges on the tables named so far gets that error, and not the
        // details.
        context.needs_of_refused.replace(binder.needs());
    })?;
    Ok(BoundStatement {
        needs: binder.needs(),
        tables: binder.named_tables(),
        locks: binder.table_locks(&body)?,
        uses_stored_tables_only: binder.uses_stored_tables_only(),
        writes_parents: writes_parents(&body, context.catalog)?,
        body,
        parts: binder.parts,
        relations: binder.relations,
        slots: binder.owners.len(),
        definitions_version,
        max_execution_time_ms: binder.max_execution_time_ms,
        is_cacheable: binder.is_cacheable && !is_into(statement),
        premises: binder.premises,
        is_repeatable: binder.is_repeatable,
    })
}

impl Binder<'_> {
    fn statement(&mut self, statement: &Statement) -> Result<BoundBody> {
        Ok(match statement {
            Statement::Select(select) => BoundBody::Query(self.query(&select.query)?),
            Statement::Insert(insert) => BoundBody::Insert(self.insert(insert)?),
            Statement::Update(update) => BoundBody::Update(self.update(update)?),
            Statement::Delete(delete) => BoundBody::Delete(self.delete(delete)?),
            Statement::Do(expressions) => {
                let values = expressions.iter().map(|expr| self.bind_alone(expr));
                BoundBody::Expressions(values.collect::<Result<Vec<_>>>()?)
            }
            _ => return Err(SqlError::not_supported("a plan of this statement")),
        })
    }
}

fn writes_parents(body: &BoundBody, catalog: &SessionCatalog) -> Result<bool> {
    for table in body.written() {
        let references = catalog.shared().referencing(&table.schema, &table.name)?;
        if !references.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the rows go into variables: the plan does not record it, so it is not a plan for the
/// same text.
fn is_into(statement: &Statement) -> bool {
    matches!(statement, Statement::Select(select) if select.into.is_some())
}
