//! `DELETE`.

use firn_sql_grammar::ast;
use firn_sql_logical::{BoundDelete, NeededPrivilege, RelationId};
use firn_sql_types::error::{Result, SqlError};

use super::scope::Scope;
use super::{Binder, cte, from, hints, target, update};

/// Binds a `DELETE`.
///
/// # Errors
/// The errors of its parts.
pub(super) fn delete(binder: &mut Binder<'_>, delete: &ast::Delete) -> Result<BoundDelete> {
    if let Some(with) = &delete.with {
        cte::name_common_tables(&mut binder.names, with)?;
    }
    binder.block.hints = hints::block_hints(binder, &delete.hints);
    binder.names.scopes.push(Scope::default());
    let bound = delete_in_scope(binder, delete);
    binder.names.scopes.pop();
    bound
}

fn delete_in_scope(binder: &mut Binder<'_>, delete: &ast::Delete) -> Result<BoundDelete> {
    if delete.targets.is_empty() {
        binder.uses.wanted = NeededPrivilege::Delete;
    }
    let from = from::from(binder, &delete.tables);
    binder.uses.wanted = NeededPrivilege::Select;
    let from = from?;
    binder.names.innermost().shown = from.shown;
    let mut relations: Vec<RelationId> = Vec::new();
    if delete.targets.is_empty() {
        relations.push(target::target_of(binder, 0, "DELETE")?);
    }
    for target in &delete.targets {
        let table = binder.names.innermost().table_named(target.schema.as_deref(), &target.name);
        let table = table.ok_or_else(|| {
            SqlError::new(1109, format!("Unknown table '{}' in MULTI DELETE", target.name))
        })?;
        relations.push(target::target_of(binder, table, "DELETE")?);
    }
    for relation in &relations {
        let table = binder.typing.frame.table_of(*relation)?.id;
        binder.uses.written.push(table);
    }
    let block =
        update::written_block(binder, from.tree, from.conditions, delete.selection.as_ref())?;
    let count = if delete.targets.is_empty() { 1 } else { 2 };
    let (order, limit) =
        update::written_order(binder, &delete.order_by, delete.limit.as_ref(), count)?;
    let targets = relations
        .into_iter()
        .map(|relation| update::write_target(binder, relation, Vec::new()))
        .collect::<Result<Vec<_>>>()?;
    Ok(BoundDelete { block, order, limit, targets, ignore: delete.ignore })
}
