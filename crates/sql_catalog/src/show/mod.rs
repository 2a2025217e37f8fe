//! `SHOW` and `DESCRIBE` of what is in the catalog.
//!
//! ```text
//!   SHOW TABLES LIKE 'a%'  ──rewrite──►  SELECT TABLE_NAME AS `Tables_in_test (a%)`
//!                                        FROM information_schema.TABLES WHERE …
//!   SHOW CREATE TABLE t    ──rewrite──►  its row
//! ```
//!
//! A statement that lists becomes a query over virtual tables, whose text the session runs like any
//! other (parsed in the grammar's default mode, whatever `sql_mode` says). `WHERE` is put around
//! it, so that it refers to the displayed columns. The session layer answers for its own objects
//! (`VARIABLES`, `STATUS`, `GRANTS`, `WARNINGS` and others).

pub mod create;
mod listing;
#[cfg(test)]
mod tests;

use firn_sql_grammar::ast::{Show, ShowCreate, TableName};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{Datum, SqlType};

use super::lookup::unknown_schema;
use super::options::DEFAULT_COLLATION;
use super::relation::Relation;
use super::session::SessionCatalog;

/// How a `SHOW` is answered.
#[derive(Debug, Clone, PartialEq)]
pub enum ShowAnswer {
    Rows {
        /// Names and types of the columns.
        columns: Vec<(String, SqlType)>,
        rows: Vec<Vec<Datum>>,
    },
    /// The result of this query.
    Query(String),
    /// By the session layer.
    Session,
}

#[derive(Clone, Copy)]
pub struct ShowContext<'a> {
    /// The definitions that the session sees.
    pub catalog: &'a SessionCatalog,
    pub current_schema: Option<&'a str>,
}

/// How a `SHOW` is answered.
///
/// # Errors
/// 1046 without a current schema where one is needed, 1049 and 1146 for missing objects.
pub fn rewrite(context: &ShowContext<'_>, show: &Show) -> Result<ShowAnswer> {
    match show {
        Show::Create(create) => show_create(context, create),
        Show::Variables { .. }
        | Show::Status { .. }
        | Show::Processlist { .. }
        | Show::Warnings(_)
        | Show::WarningCount
        | Show::Errors(_)
        | Show::ErrorCount
        | Show::Grants { .. }
        | Show::Privileges
        | Show::Engine { .. }
        | Show::Profiles
        | Show::Profile => Ok(ShowAnswer::Session),
        Show::BinaryLogs
        | Show::BinaryLogStatus
        | Show::BinlogEvents
        | Show::Replicas
        | Show::ReplicaStatus => Ok(no_replication(show)),
        listing => listing::query(context, listing).map(ShowAnswer::Query),
    }
}

/// `DESCRIBE t`, `DESCRIBE t column`.
///
/// # Errors
/// As [`rewrite`].
pub fn describe(
    context: &ShowContext<'_>,
    table: &TableName,
    column: Option<&str>,
) -> Result<ShowAnswer> {
    let filter = column.map(|pattern| firn_sql_grammar::ast::ShowFilter::Like(pattern.to_owned()));
    let show = Show::Columns { extended: false, full: false, table: table.clone(), filter };
    rewrite(context, &show)
}

impl<'a> ShowContext<'a> {
    /// The schema that the statement refers to.
    fn schema(&self, named: Option<&str>) -> Result<String> {
        let schema = named.or(self.current_schema);
        let schema = schema.ok_or_else(|| SqlError::new(1046, "No database selected"))?;
        if !self.catalog.has_schema(schema)? {
            return Err(unknown_schema(schema));
        }
        Ok(super::virtual_schemas::proper_schema(schema).unwrap_or(schema).to_owned())
    }

    /// The relation that the statement refers to, with its schema.
    fn relation(&self, table: &TableName) -> Result<(String, Relation)> {
        let schema = self.schema(table.schema.as_deref())?;
        let relation = self.catalog.relation(&schema, &table.name)?;
        Ok((schema, relation))
    }
}

fn no_replication(show: &Show) -> ShowAnswer {
    let names: &[&str] = match show {
        Show::BinaryLogs => &["Log_name", "File_size", "Encrypted"],
        Show::BinaryLogStatus => {
            &["File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB", "Executed_Gtid_Set"]
        }
        Show::BinlogEvents => {
            &["Log_name", "Pos", "Event_type", "Server_id", "End_log_pos", "Info"]
        }
        Show::Replicas => &["Server_Id", "Host", "Port", "Source_Id", "Replica_UUID"],
        _ => &["Replica_IO_State", "Source_Host", "Source_User", "Source_Port"],
    };
    let columns = names.iter().map(|name| ((*name).to_owned(), text_type())).collect();
    ShowAnswer::Rows { columns, rows: Vec::new() }
}

fn text_type() -> SqlType {
    SqlType::varchar(1024, DEFAULT_COLLATION)
}

fn one_row(columns: &[(&str, String)]) -> ShowAnswer {
    ShowAnswer::Rows {
        columns: columns.iter().map(|(name, _)| ((*name).to_owned(), text_type())).collect(),
        rows: vec![columns.iter().map(|(_, value)| Datum::text(value.as_str())).collect()],
    }
}

fn show_create(context: &ShowContext<'_>, create: &ShowCreate) -> Result<ShowAnswer> {
    match create {
        ShowCreate::Database { name, if_not_exists } => {
            let schema = context.schema(Some(name))?;
            let options = context.catalog.shared().schema(&schema).unwrap_or_default();
            let text = create::schema_text(&schema, &options, *if_not_exists);
            Ok(one_row(&[("Database", schema), ("Create Database", text)]))
        }
        ShowCreate::Table(name) => show_create_table(context, name),
        ShowCreate::View(name) => match context.relation(name)?.1 {
            Relation::Table(table) if table.view().is_some() => {
                Ok(create_view_row(context, &table))
            }
            _ => {
                let schema = context.schema(name.schema.as_deref())?;
                Err(SqlError::new(1347, format!("'{schema}.{}' is not VIEW", name.name)))
            }
        },
        ShowCreate::Procedure(name) => Err(missing_routine("PROCEDURE", name)),
        ShowCreate::Function(name) => Err(missing_routine("FUNCTION", name)),
        ShowCreate::Trigger(_) => Err(SqlError::new(1360, "Trigger does not exist")),
        ShowCreate::Event(name) => {
            Err(SqlError::new(1539, format!("Unknown event '{}'", name.name)))
        }
        ShowCreate::User(_) => Ok(ShowAnswer::Session),
    }
}

fn missing_routine(kind: &str, name: &TableName) -> SqlError {
    SqlError::new(1305, format!("{kind} {} does not exist", name.name))
}

fn show_create_table(context: &ShowContext<'_>, name: &TableName) -> Result<ShowAnswer> {
    match context.relation(name)?.1 {
        Relation::Table(table) if table.view().is_some() => Ok(create_view_row(context, &table)),
        Relation::Table(table) => {
            let node = context.catalog.shared().node();
            let next =
                table.auto_increment.and_then(|_| node.next_auto_increment(&table.table).ok());
            let text = create::table_text(&table, next);
            Ok(one_row(&[("Table", table.name.to_string()), ("Create Table", text)]))
        }
        Relation::Virtual(table) => {
            let text = create::virtual_table_text(&*table);
            Ok(one_row(&[("Table", table.name().to_owned()), ("Create Table", text)]))
        }
    }
}

fn create_view_row(context: &ShowContext<'_>, table: &super::model::TableModel) -> ShowAnswer {
    let text = match table.view() {
        Some(view) => create::view_text(table, view, context.current_schema),
        None => String::new(),
    };
    one_row(&[
        ("View", table.name.to_string()),
        ("Create View", text),
        ("character_set_client", "utf8mb4".to_owned()),
        ("collation_connection", "utf8mb4_0900_ai_ci".to_owned()),
    ])
}
