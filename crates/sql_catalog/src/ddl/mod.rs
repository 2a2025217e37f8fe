//! Changes of definitions: `CREATE`, `ALTER`, `DROP`, `RENAME` and `TRUNCATE`.
//!
//! ```text
//!   statement ──► draft (the new table) ──► checks ──► api::rows::Definitions ──► commit
//!                                                                  all of it, or nothing
//! ```
//!
//! Names are looked up first, and the node looks again when it locks: the faster statement wins,
//! the other one gets the node's error. The layers above bind and evaluate expressions, through
//! [`ExpressionBinder`].

mod alter;
mod alter_actions;
mod charset;
mod check;
mod column;
mod copied_rows;
mod copy;
mod create;
mod default;
mod deprecated;
mod difference;
mod drop;
mod follow;
mod foreign_key;
mod index;
mod locks;
mod rename;
mod row_size;
mod schema;
mod seen_leaves;
mod table_builder;
#[cfg(test)]
mod tests;
mod validate;
mod values;
mod view;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use firn_api::rows::{BuildProgress, Cancellation, Definitions, MetadataContext, RowsResult};
use firn_base::clock::Clock;
use firn_sql_grammar::ast::{self, Expr, Query, Statement};
pub(super) use firn_sql_types::error::from_rows;
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{Datum, EvaluationContext, SqlType};

use super::lookup::no_such_table;
use super::model::{CheckModel, TableKind, TableModel};
use super::session::SessionCatalog;
use table_builder::TableDraft;

pub use charset::{charset_named, collation_named, resolve as resolve_collation};
pub use column::kind as column_kind;
pub use firn_sql_grammar::render_unqualified as expression_text;

/// What DDL needs from the layers above: the meaning of expressions and queries.
pub trait ExpressionBinder {
    /// Binds an expression (as text, see [`expression_text`]) over the columns of a table.
    ///
    /// # Errors
    /// Unknown names and incompatible types.
    fn bind(&self, table: &Arc<TableModel>, text: &str) -> Result<Box<dyn RowExpression>>;

    /// As [`ExpressionBinder::bind`], for the condition of a check constraint, which errors name.
    ///
    /// # Errors
    /// 3820 for unknown columns, incompatible types.
    fn bind_check(
        &self,
        table: &Arc<TableModel>,
        check: &CheckModel,
    ) -> Result<Box<dyn RowExpression>>;

    /// The columns of a query; names without a schema are in `schema`.
    ///
    /// # Errors
    /// Unknown names and incompatible types.
    fn query_columns(&self, query: &Query, schema: &str) -> Result<Vec<QueryColumn>>;

    /// Whether rows could be changed through a view of this query.
    ///
    /// # Errors
    /// Errors of names and types.
    fn is_updatable(&self, query: &Query, schema: &str) -> Result<bool>;
}

/// An expression over the columns of one table.
pub trait RowExpression {
    /// The type of its values.
    fn ty(&self) -> &SqlType;
    /// The name of a function in it whose value does not depend on the row alone.
    fn volatile_function(&self) -> Option<&'static str>;
    /// The ordinals of the columns that it reads.
    fn columns(&self) -> &[u16];
    /// Its value; `row` has a value for each ordinal.
    ///
    /// # Errors
    /// Errors of the evaluation.
    fn evaluate(&self, row: &[Datum], evaluation: &EvaluationContext) -> Result<Datum>;
}

/// A column of a query's result.
#[derive(Debug, Clone)]
pub struct QueryColumn {
    /// Its name or alias.
    pub name: String,
    pub ty: SqlType,
    /// The width and the digits after the point of a `DOUBLE` with fixed digits.
    pub width: Option<(u16, u8)>,
    /// The table and ordinal of the column, if it is a plain column.
    pub origin: Option<(Arc<TableModel>, u16)>,
}

/// The context of a DDL statement.
#[derive(Clone, Copy)]
pub struct DdlContext<'a> {
    /// The definitions that the session sees.
    pub catalog: &'a SessionCatalog,
    /// When things are made.
    pub clock: &'a dyn Clock,
    pub current_schema: Option<&'a str>,
    /// Modes, time zone and time of the statement; receives notes and warnings.
    pub evaluation: &'a EvaluationContext,
    /// `user@host`.
    pub account: &'a str,
    /// The longest wait for a lock on a table.
    pub lock_wait_timeout: Duration,
    /// The session's metadata locks.
    pub locks: &'a Arc<dyn MetadataContext>,
    /// The flag with which others cancel the statement.
    pub cancelled: &'a Arc<Cancellation>,
    /// Whether it waits for a lock on a definition now.
    pub is_waiting: &'a AtomicBool,
    pub foreign_key_checks: bool,
    /// `sql_require_primary_key`
    pub require_primary_key: bool,
    pub innodb_strict_mode: bool,
    pub restrict_fk_on_non_standard_key: bool,
    /// Binding and evaluation.
    pub expressions: &'a dyn ExpressionBinder,
    /// Called with the progress of long work; false ends the statement.
    pub progress: &'a dyn Fn(BuildProgress) -> bool,
    /// Called before each change of what is stored; the statement ends with its error. What fails
    /// before the first call has done nothing.
    pub changes: &'a dyn Fn() -> Result<()>,
}

/// The result of a DDL statement.
#[derive(Debug)]
pub enum DdlOutcome {
    Done {
        /// The row count for the client: rows that were copied.
        affected: u64,
        /// `Records: 3  Duplicates: 0  Warnings: 0`, or nothing.
        info: String,
    },
    /// The table exists and is empty; the query's rows have to be inserted. If that fails, the
    /// table must be dropped.
    CreateTableAs(Box<CreateTableAs>),
}

/// The remaining work of `CREATE TABLE … AS SELECT`.
#[derive(Debug)]
pub struct CreateTableAs {
    /// The new table.
    pub table: Arc<TableModel>,
    /// The ordinals for the query's columns, in order.
    pub columns: Vec<u16>,
    /// The action for rows whose keys already exist.
    pub on_conflict: ast::OnConflict,
    pub query: Query,
}

impl DdlOutcome {
    fn done() -> DdlOutcome {
        DdlOutcome::Done { affected: 0, info: String::new() }
    }

    fn altered(context: &DdlContext<'_>, affected: u64) -> DdlOutcome {
        let warnings = context.evaluation.warning_count();
        let info = format!("Records: {affected}  Duplicates: 0  Warnings: {warnings}");
        DdlOutcome::Done { affected, info }
    }
}

/// Whether [`execute`] handles a statement. All except those on temporary tables commit the
/// session's transaction first.
#[must_use]
pub fn is_ddl(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::CreateDatabase(_)
            | Statement::AlterDatabase(_)
            | Statement::DropDatabase { .. }
            | Statement::CreateTable(_)
            | Statement::CreateTableLike { .. }
            | Statement::AlterTable(_)
            | Statement::DropTable { .. }
            | Statement::RenameTable(_)
            | Statement::Truncate(_)
            | Statement::CreateIndex { .. }
            | Statement::DropIndex { .. }
            | Statement::CreateView(_)
            | Statement::DropView { .. }
            | Statement::DropProgram { .. }
    )
}

/// Whether a statement touches only temporary tables, so that it does not commit the transaction.
#[must_use]
pub fn is_temporary(statement: &Statement) -> bool {
    match statement {
        Statement::CreateTable(create) => create.temporary,
        Statement::CreateTableLike { temporary, .. } | Statement::DropTable { temporary, .. } => {
            *temporary
        }
        _ => false,
    }
}

/// Executes a DDL statement. Blocks for locks, and while rows have to be read.
///
/// # Errors
/// What MySQL refuses, locks that were not granted, and errors of the node. Nothing is changed
/// then.
pub fn execute(context: &DdlContext<'_>, statement: &Statement) -> Result<DdlOutcome> {
    let outcome = match statement {
        Statement::CreateDatabase(create) => schema::create(context, create),
        Statement::AlterDatabase(change) => schema::alter(context, change),
        Statement::DropDatabase { if_exists, name } => schema::drop(context, *if_exists, name),
        Statement::CreateTable(create) => create::create_table(context, create),
        Statement::CreateTableLike { temporary, if_not_exists, table, like } => {
            create::create_table_like(context, *temporary, *if_not_exists, table, like)
        }
        Statement::AlterTable(change) => alter::alter_table(context, change),
        Statement::DropTable { temporary, if_exists, tables } => {
            drop::drop_tables(context, *temporary, *if_exists, tables)
        }
        Statement::RenameTable(pairs) => rename::rename_tables(context, pairs),
        Statement::Truncate(table) => drop::truncate(context, table),
        Statement::CreateIndex { table, index } => alter::alter_table(
            context,
            &alter_with(table, ast::AlterAction::AddIndex(index.clone())),
        ),
        Statement::DropIndex { table, name } => {
            let action = match name.eq_ignore_ascii_case("PRIMARY") {
                true => ast::AlterAction::DropPrimaryKey,
                false => ast::AlterAction::DropIndex(name.clone()),
            };
            alter::alter_table(context, &alter_with(table, action))
        }
        Statement::CreateView(create) => view::create(context, create),
        Statement::DropView { if_exists, views } => view::drop(context, *if_exists, views),
        Statement::DropProgram { kind, if_exists, name } => {
            drop_program(context, kind, *if_exists, name)
        }
        _ => Err(SqlError::not_supported("a statement that is no DDL here")),
    };
    context.catalog.shared().forget_dropped();
    outcome
}

/// There are no stored programs: at best, there is no error.
fn drop_program(
    context: &DdlContext<'_>,
    kind: &str,
    if_exists: bool,
    name: &ast::TableName,
) -> Result<DdlOutcome> {
    let (schema, own) = (context.schema_of(name)?, &name.name);
    let (code, message) = match (kind, if_exists) {
        ("TRIGGER", _) => (1360, "Trigger does not exist".to_owned()),
        ("EVENT", true) => (1305, format!("Event {own} does not exist")),
        ("EVENT", false) => (1539, format!("Unknown event '{own}'")),
        _ => (1305, format!("{kind} {schema}.{own} does not exist")),
    };
    if !if_exists {
        return Err(SqlError::new(code, message));
    }
    context.evaluation.note(code, || message.clone());
    Ok(DdlOutcome::done())
}

fn alter_with(table: &ast::TableName, action: ast::AlterAction) -> ast::AlterTable {
    ast::AlterTable { table: table.clone(), actions: vec![action], algorithm: None, lock: None }
}

impl<'a> DdlContext<'a> {
    /// The schema of a name.
    fn schema_of<'n>(&self, table: &'n ast::TableName) -> Result<&'n str>
    where
        'a: 'n,
    {
        let named = table.schema.as_deref().or(self.current_schema);
        named.ok_or_else(|| SqlError::new(1046, "No database selected"))
    }

    /// The table or view with a name.
    fn table(&self, table: &ast::TableName) -> Result<Arc<TableModel>> {
        let schema = self.schema_of(table)?;
        match self.catalog.find_table(schema, &table.name)? {
            Some(table) => Ok(table),
            None if !self.catalog.has_schema(schema)? => Err(super::lookup::unknown_schema(schema)),
            None => Err(no_such_table(schema, &table.name)),
        }
    }

    /// The table with a name; a view is refused.
    fn base_table(&self, table: &ast::TableName) -> Result<Arc<TableModel>> {
        let table = self.table(table)?;
        if table.view().is_some() {
            let message = format!("'{}.{}' is not BASE TABLE", table.schema, table.name);
            return Err(SqlError::new(1347, message));
        }
        Ok(table)
    }

    /// A change of definitions that waits for locks as the session's settings say.
    fn definitions(&self) -> Result<Change<'a>> {
        (self.changes)()?;
        let mut change = self.clean_up()?;
        change.set_cancelled(self.cancelled);
        Ok(change)
    }

    /// A change of definitions that undoes what a statement has left behind; it continues even if
    /// the statement was cancelled.
    fn clean_up(&self) -> Result<Change<'a>> {
        let node = self.catalog.shared().node();
        let mut definitions = node.change_definitions().map_err(from_rows)?;
        definitions.set_lock_wait_timeout(self.lock_wait_timeout);
        definitions.set_metadata_context(Arc::clone(self.locks));
        Ok(Change { definitions, cancelled: self.cancelled })
    }

    /// A model of a table that does not exist yet, for binding expressions.
    fn draft_model(&self, draft: &TableDraft) -> Result<Arc<TableModel>> {
        super::build::model_of_definition(
            self.catalog.shared().node(),
            draft.renumbered().definition()?,
        )
        .map(Arc::new)
    }

    /// The type of an expression over the columns of a draft.
    fn expression_type(&self, draft: &TableDraft, expression: &Expr) -> Result<SqlType> {
        let model = self.draft_model(draft)?;
        let bound = self.expressions.bind(&model, &expression_text(expression))?;
        Ok(bound.ty().clone())
    }
}

/// A statement's change of definitions.
struct Change<'a> {
    definitions: Box<dyn Definitions>,
    cancelled: &'a Cancellation,
}

impl Change<'_> {
    /// See [`Definitions::commit`].
    fn commit(self) -> RowsResult<()> {
        self.cancelled.while_confirming(|| self.definitions.commit())
    }
}

impl Deref for Change<'_> {
    type Target = dyn Definitions;

    fn deref(&self) -> &Self::Target {
        &*self.definitions
    }
}

impl DerefMut for Change<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.definitions
    }
}

const MAX_IDENTIFIER_CHARACTERS: usize = 64;

/// `Identifier name '…' is too long`
fn check_identifier(name: &str) -> Result<()> {
    if name.chars().count() > MAX_IDENTIFIER_CHARACTERS {
        return Err(SqlError::new(1059, format!("Identifier name '{name}' is too long")));
    }
    Ok(())
}

/// Sets a table's counter to `start`, unless it is already past it.
fn set_auto_increment(context: &DdlContext<'_>, table: &TableModel, start: u64) -> Result<()> {
    if start > 1 && table.auto_increment.is_some() {
        let node = context.catalog.shared().node();
        node.pass_auto_increment(&table.table, start - 1).map_err(from_rows)?;
    }
    Ok(())
}

/// The name of a table in messages of `DROP` and others: `db.t`.
fn full_name(table: &TableModel) -> String {
    format!("{}.{}", table.schema, table.name)
}

fn is_temporary_table(table: &TableModel) -> bool {
    table.kind == TableKind::Temporary
}
