//! Whole statements.

use firn_sql_catalog::SessionCatalog;
use firn_sql_grammar::ast::Statement;
use firn_sql_logical::{BoundBody, BoundStatement, PlanContext};
use firn_sql_types::error::{Result, SqlError};

use super::{Binder, delete, insert, query, update};

/// Binds a statement that reads or writes rows.
///
/// # Errors
/// MySQL's errors for names, types and forms; 1235 for other statements and for unsupported
/// features.
pub fn bind_statement(statement: &Statement, context: &PlanContext<'_>) -> Result<BoundStatement> {
    let definitions_version = context.catalog.definitions_version();
    let mut binder = Binder::new(context);
    binder.typing.writing.writes = !matches!(statement, Statement::Select(_) | Statement::Do(_));
    binder.typing.writing.ignores = match statement {
        Statement::Insert(insert) => insert.ignore,
        Statement::Update(update) => update.ignore,
        Statement::Delete(delete) => delete.ignore,
        _ => false,
    };
    let body = bind_body(&mut binder, statement).inspect_err(|_| {
        // A session without privileges on the tables named so far gets that error, and not the
        // details.
        context.needs_of_refused.replace(binder.uses.needs());
    })?;
    Ok(BoundStatement {
        needs: binder.uses.needs(),
        tables: binder.uses.named_tables(),
        locks: binder.uses.locks(&binder.typing.frame, context.catalog, &body)?,
        uses_stored_tables_only: binder.uses.are_stored_only(&binder.typing.frame),
        writes_parents: writes_parents(&body, context.catalog)?,
        body,
        parts: binder.parts.into_list(),
        slots: binder.typing.frame.width(),
        relations: binder.typing.frame.relations,
        definitions_version,
        max_execution_time_ms: binder.typing.facts.max_execution_time_ms,
        is_cacheable: binder.typing.facts.is_cacheable && !is_into(statement),
        premises: binder.typing.facts.premises,
        is_repeatable: binder.typing.facts.is_repeatable,
    })
}

fn bind_body(binder: &mut Binder<'_>, statement: &Statement) -> Result<BoundBody> {
    Ok(match statement {
        Statement::Select(select) => BoundBody::Query(query::query(binder, &select.query)?),
        Statement::Insert(insert) => BoundBody::Insert(insert::insert(binder, insert)?),
        Statement::Update(update) => BoundBody::Update(update::update(binder, update)?),
        Statement::Delete(delete) => BoundBody::Delete(delete::delete(binder, delete)?),
        Statement::Do(expressions) => {
            let values = expressions.iter().map(|expr| binder.bind_alone(expr));
            BoundBody::Expressions(values.collect::<Result<Vec<_>>>()?)
        }
        _ => return Err(SqlError::not_supported("a plan of this statement")),
    })
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
