//! Views: their bodies, bound as if they stood in the query.

use std::sync::Arc;

use crate::catalog::model::{TableModel, ViewAlgorithm};
use crate::error::{Result, SqlError};
use crate::grammar::{self, ast::Statement};

use super::Binder;
use super::from::FromItem;
use super::logical::Query;

impl Binder<'_> {
    /// A view as a table of the innermost scope.
    pub(crate) fn view(
        &mut self,
        table: &Arc<TableModel>,
        alias: Arc<str>,
        null_supplied: bool,
    ) -> Result<FromItem> {
        let query = self.view_query(table)?;
        let names: Vec<Arc<str>> =
            table.shown_columns().map(|column| column.name.clone()).collect();
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let is_apart =
            table.view().is_some_and(|view| view.algorithm == ViewAlgorithm::TemporaryTable);
        let before = self.block_hints.no_merge;
        self.block_hints.no_merge |= is_apart;
        let placed = self.place_query(query, alias, &names, false, null_supplied);
        self.block_hints.no_merge = before;
        let placed = placed.map_err(|_| invalid(table))?;
        if let Some(scope_table) = self.scope().tables.last_mut() {
            scope_table.schema = Some(table.schema.clone());
            scope_table.original = table.name.clone();
        }
        Ok(placed)
    }

    /// The body of a view, bound where no name of the statement is seen.
    pub(crate) fn view_query(&mut self, table: &TableModel) -> Result<Query> {
        let view = table.view().ok_or_else(|| invalid(table))?;
        let parsed =
            grammar::parse(&view.body, grammar::Mode::default()).map_err(|_| invalid(table))?;
        let Statement::Select(select) = parsed.statement else { return Err(invalid(table)) };
        let schema = self.schema.replace(view.schema.clone());
        let scopes = std::mem::take(&mut self.scopes);
        let names = std::mem::take(&mut self.common_names);
        self.definer_views += usize::from(view.security_definer);
        let bound = self.deeper(|binder| binder.query(&select.query));
        self.definer_views -= usize::from(view.security_definer);
        self.schema = schema;
        self.scopes = scopes;
        self.common_names = names;
        bound.map_err(|error| match error.code {
            1054 | 1146 | 1049 | 1305 => invalid(table),
            _ => error,
        })
    }
}

fn invalid(table: &TableModel) -> SqlError {
    let message = format!(
        "View '{}.{}' references invalid table(s) or column(s) or function(s) or definer/invoker of view \
         lack rights to use them",
        table.schema, table.name
    );
    SqlError::new(1356, message)
}
