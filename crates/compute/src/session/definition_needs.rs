//! The privileges that changes of definitions need.

use firn_sql::catalog::{SessionCatalog, ddl};
use firn_sql::grammar::ast::{self, Statement, TableName};

use super::connection::ConnectionState;
use super::rights::Rights;
use super::runner::StatementRunner;
use crate::accounts::Privilege;
use crate::accounts::need::Need;

/// Finds the privileges that a session needs.
pub(super) struct DefinitionNeeds<'s> {
    connection: &'s ConnectionState,
    catalog: &'s SessionCatalog,
    rights: &'s Rights,
}

impl<'s> DefinitionNeeds<'s> {
    pub(super) fn of(runner: &'s StatementRunner) -> DefinitionNeeds<'s> {
        let StatementRunner { state, catalog, rights, .. } = runner;
        DefinitionNeeds { connection: &state.connection, catalog, rights }
    }

    /// The privileges that a statement needs. The session may change its own temporary tables.
    pub(super) fn of_statement(&self, statement: &Statement) -> Vec<Need> {
        let mut needs = self.needs_by_names(statement);
        if self.catalog.temporary_version() > 0 && !ddl::is_temporary(statement) {
            needs.retain(|need| match (&need.schema, &need.table) {
                (Some(schema), Some(table)) => {
                    !matches!(self.catalog.temporary_table(schema, table), Ok(Some(_)))
                }
                _ => true,
            });
        }
        needs
    }

    fn needs_by_names(&self, statement: &Statement) -> Vec<Need> {
        let on = |privilege, table| self.on_table(privilege, table);
        match statement {
            Statement::CreateDatabase(create) => {
                vec![Need::on_schema(Privilege::CREATE, &create.name)]
            }
            Statement::AlterDatabase(alter) => {
                let name = alter.name.as_deref().or(self.connection.schema.as_deref());
                let name = name.unwrap_or("");
                vec![Need::on_schema(Privilege::ALTER, name)]
            }
            Statement::DropDatabase { name, .. } => vec![Need::on_schema(Privilege::DROP, name)],
            Statement::CreateTable(create) if create.temporary => {
                vec![Need::on_schema(
                    Privilege::CREATE_TEMPORARY_TABLES,
                    &self.connection.schema_of(&create.table),
                )]
            }
            Statement::CreateTable(create) => {
                let mut needs = vec![on(Privilege::CREATE, &create.table)];
                needs.extend(create.source.iter().map(|_| on(Privilege::INSERT, &create.table)));
                let parents = create.elements.iter().filter_map(|element| match element {
                    ast::TableElement::ForeignKey(key) => Some(&key.references.table),
                    _ => None,
                });
                needs.extend(parents.map(|parent| self.on_parent(&create.table, parent)));
                needs
            }
            Statement::CreateTableLike { temporary, table, like, .. } => {
                let create = match temporary {
                    true => Need::on_schema(
                        Privilege::CREATE_TEMPORARY_TABLES,
                        &self.connection.schema_of(table),
                    ),
                    false => on(Privilege::CREATE, table),
                };
                vec![create, on(Privilege::SELECT, like)]
            }
            Statement::AlterTable(alter) => self.needs_of_alter(alter),
            Statement::DropTable { temporary: false, tables, .. } => {
                tables.iter().map(|table| on(Privilege::DROP, table)).collect()
            }
            Statement::RenameTable(pairs) => pairs
                .iter()
                .flat_map(|(old, new)| {
                    [
                        on(Privilege::ALTER, old),
                        on(Privilege::DROP, old),
                        on(Privilege::CREATE, new),
                        on(Privilege::INSERT, new),
                    ]
                })
                .collect(),
            Statement::Truncate(table) => vec![on(Privilege::DROP, table)],
            Statement::CreateIndex { table, .. } | Statement::DropIndex { table, .. } => {
                vec![on(Privilege::INDEX, table)]
            }
            Statement::CreateView(create) => {
                let replaces = create.or_replace || create.alter;
                let own = on(Privilege::CREATE_VIEW, &create.view);
                // Missing privileges are reported one by one.
                match replaces && own.is_met(&self.rights.grants) {
                    true => vec![on(Privilege::DROP, &create.view)],
                    false => vec![own],
                }
            }
            Statement::DropView { views, .. } => {
                views.iter().map(|view| on(Privilege::DROP, view)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn needs_of_alter(&self, alter: &ast::AlterTable) -> Vec<Need> {
        let mut needs = vec![self.on_table(Privilege::ALTER, &alter.table)];
        for action in &alter.actions {
            match action {
                ast::AlterAction::RenameTable(to) => {
                    needs.push(self.on_table(Privilege::DROP, &alter.table));
                    needs.push(self.on_table(Privilege::CREATE, to));
                    needs.push(self.on_table(Privilege::INSERT, to));
                }
                ast::AlterAction::AddForeignKey(key) => {
                    needs.push(self.on_parent(&alter.table, &key.references.table));
                }
                _ => {}
            }
        }
        needs
    }

    /// A foreign key's parent is in its child's schema unless given; its error names the schema.
    fn on_parent(&self, child: &TableName, parent: &TableName) -> Need {
        let schema = parent.schema.clone().unwrap_or_else(|| self.connection.schema_of(child));
        Need::on_table(Privilege::REFERENCES, &schema, &parent.name)
    }

    fn on_table(&self, privilege: Privilege, table: &TableName) -> Need {
        Need::on_table(privilege, &self.connection.schema_of(table), &table.name)
    }
}
