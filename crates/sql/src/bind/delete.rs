//! `DELETE`.

use crate::error::{Result, SqlError};
use crate::grammar::ast;
use crate::logical::{BoundDelete, NeededPrivilege, RelationId};

use super::Binder;
use super::scope::Scope;

impl Binder<'_> {
    /// Binds a `DELETE`.
    ///
    /// # Errors
    /// The errors of its parts.
    pub fn delete(&mut self, delete: &ast::Delete) -> Result<BoundDelete> {
        if let Some(with) = &delete.with {
            self.name_common_tables(with)?;
        }
        self.block_hints = self.block_hints(&delete.hints);
        self.scopes.push(Scope::default());
        let bound = self.delete_in_scope(delete);
        self.scopes.pop();
        bound
    }

    fn delete_in_scope(&mut self, delete: &ast::Delete) -> Result<BoundDelete> {
        if delete.targets.is_empty() {
            self.wanted = NeededPrivilege::Delete;
        }
        let from = self.from(&delete.tables);
        self.wanted = NeededPrivilege::Select;
        let from = from?;
        self.scope().shown = from.shown;
        let mut relations: Vec<RelationId> = Vec::new();
        if delete.targets.is_empty() {
            relations.push(self.target_of(0, "DELETE")?);
        }
        for target in &delete.targets {
            let table = self.scope().table_named(target.schema.as_deref(), &target.name);
            let table = table.ok_or_else(|| {
                SqlError::new(1109, format!("Unknown table '{}' in MULTI DELETE", target.name))
            })?;
            relations.push(self.target_of(table, "DELETE")?);
        }
        for relation in &relations {
            let table = self.model_of(*relation)?.id;
            self.written.push(table);
        }
        let block = self.written_block(from.tree, from.conditions, delete.selection.as_ref())?;
        let count = if delete.targets.is_empty() { 1 } else { 2 };
        let (order, limit) = self.written_order(&delete.order_by, delete.limit.as_ref(), count)?;
        let targets = relations
            .into_iter()
            .map(|relation| self.write_target(relation, Vec::new()))
            .collect::<Result<Vec<_>>>()?;
        Ok(BoundDelete { block, order, limit, targets, ignore: delete.ignore })
    }
}
