//! `HANDLER`: a table read row by row in the order of an index, from a place that the session
//! keeps.
//!
//! ```text
//!   HANDLER t OPEN            HANDLER t READ i >= (5)       the first row from there on
//!                             HANDLER t READ i NEXT         the row after the last one
//!
//!   READ i NEXT, last row (a = 5, id = 7)  ──►
//!     SELECT … WHERE a > 5 OR a <=> 5 AND id > 7 ORDER BY a, id LIMIT 1
//! ```
//!
//! Each read is a separate query, so it sees what any query of the session's transaction would see.
//! A place consists of the values of the index's columns and of the primary key, which makes it
//! unique: a table without a primary key can be read only by unique indexes.

use std::fmt::Write;
use std::sync::Arc;

use firn_api::rows::{LockDuration, MetadataContext, MetadataLock};
use firn_base::TableId;
use firn_sql::catalog::model::{IndexModel, TableKind, TableModel};
use firn_sql::catalog::notation::identifier;
use firn_sql::error::{Result, SqlError};
use firn_sql::grammar;
use firn_sql::grammar::ast::{
    BinaryOperator, Expr, Handler, HandlerPosition, HandlerRead, TableName,
};
use firn_sql::types::{Datum, SqlType};
use firn_wire::Replies;

use super::answers::{Answered, Answers, Table};
use super::arguments::Arguments;
use super::definition_locks::DefinitionLocks;
use super::document::{Read, decode_text, encode_value};
use super::runner::StatementRunner;
use super::sinks::Gathered;
use crate::accounts::Privilege;
use crate::accounts::need::Need;
use crate::belongings::WrittenHandler;

/// The tables that a session's `HANDLER` statements have open.
#[derive(Default)]
pub(super) struct Handlers {
    open: Vec<OpenHandler>,
}

impl Handlers {
    /// Whether no table is open.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Closes all; the caller releases the locks.
    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    /// Written down for the session that goes on elsewhere; none is open here any more.
    pub(super) fn leave(&mut self) -> Vec<WrittenHandler> {
        let value = |(value, ty): &(Datum, SqlType)| encode_value(value, ty).to_string();
        let place = |place: Place| (place.index, place.values.iter().map(value).collect());
        let written = std::mem::take(&mut self.open).into_iter().map(|open| WrittenHandler {
            alias: open.alias,
            schema: open.schema,
            table: open.table,
            place: open.place.map(place),
            locked: open.locked,
        });
        written.collect()
    }

    /// Those that a session has left, which holds their definitions again.
    ///
    /// # Errors
    /// If a value cannot be read.
    pub(super) fn take(left: Vec<WrittenHandler>) -> Read<Handlers> {
        let place = |(index, values): (_, Vec<String>)| {
            let values = values.iter().map(|text| decode_text(text)).collect::<Read<_>>()?;
            Ok(Place { index, values })
        };
        let open = left.into_iter().map(|one| {
            let WrittenHandler { alias, schema, table, locked, .. } = one;
            Ok(OpenHandler {
                alias,
                schema,
                table,
                place: one.place.map(place).transpose()?,
                locked,
            })
        });
        Ok(Handlers { open: open.collect::<Read<_>>()? })
    }

    /// Releases the definitions of tables that other sessions wait for.
    #[inline]
    pub(super) fn yield_wanted(&mut self, metadata: &dyn MetadataContext) {
        for open in &mut self.open {
            if let Some(table) = open.locked.take_if(|table| metadata.is_wanted(*table)) {
                metadata.release_explicit(Some(table));
            }
        }
    }

    fn find(&self, alias: &str) -> Option<usize> {
        self.open.iter().position(|open| open.alias.eq_ignore_ascii_case(alias))
    }
}

/// A table that is open for reading.
#[derive(Debug, Clone)]
struct OpenHandler {
    /// Its name in statements.
    alias: String,
    schema: String,
    table: String,
    place: Option<Place>,
    /// The table whose definition it holds.
    locked: Option<TableId>,
}

/// The row that was read last.
#[derive(Debug, Clone)]
struct Place {
    /// The index by which it was read; `None` for the table's own order.
    index: Option<String>,
    /// The values of the columns that define the order.
    values: Vec<(Datum, SqlType)>,
}

struct OrderColumn {
    name: String,
    descending: bool,
}

/// A query under construction: its text, and the values of its placeholders.
#[derive(Default)]
struct Draft {
    text: String,
    arguments: Arguments,
}

/// A value that a column is compared with.
enum Bound<'v> {
    Value(&'v (Datum, SqlType)),
    Written(String),
}

/// Runs `HANDLER` statements in a session.
pub(super) struct HandlerStatements<'s> {
    pub(super) runner: &'s mut StatementRunner,
    pub(super) handlers: &'s mut Handlers,
}

impl HandlerStatements<'_> {
    /// Executes a `HANDLER` statement, and sends the answer.
    pub(super) fn run_handler(&mut self, handler: &Handler, replies: &mut Replies<'_>) -> Answered {
        let done = match handler {
            Handler::Open { table, alias } => {
                self.open_handler(table, alias.as_deref()).map(|()| None)
            }
            Handler::Close(alias) => self.close_handler(alias).map(|()| None),
            Handler::Read(read) => self.read_handler(read).map(Some),
        };
        match done {
            Ok(Some(table)) => Answers::of(self.runner).table(&table, replies),
            Ok(None) => Answers::of(self.runner).ok(replies),
            Err(error) => Err(self.runner.refused(error)),
        }
    }

    fn open_handler(&mut self, table: &TableName, alias: Option<&str>) -> Result<()> {
        let schema = self.runner.state.connection.schema_of(table);
        self.runner.rights.require(&[Need::on_table(Privilege::SELECT, &schema, &table.name)])?;
        let model = self.runner.catalog.table(&schema, &table.name)?;
        if !model.has_rows() {
            let name = format!("{schema}.{}", table.name);
            return Err(SqlError::new(1347, format!("'{name}' is not BASE TABLE")));
        }
        let alias = alias.unwrap_or(&table.name).to_owned();
        if self.handlers.find(&alias).is_some() {
            return Err(SqlError::new(1066, format!("Not unique table/alias: '{alias}'")));
        }
        let is_stored = model.kind != TableKind::Temporary;
        let locked = is_stored.then_some(model.id);
        if let Some(table) = locked {
            let (shared, explicit) = (MetadataLock::Shared, LockDuration::Explicit);
            DefinitionLocks::of(self.runner).acquire(table, shared, explicit)?;
        }
        let table = table.name.clone();
        self.handlers.open.push(OpenHandler { alias, schema, table, place: None, locked });
        Ok(())
    }

    fn close_handler(&mut self, alias: &str) -> Result<()> {
        let at = self.find_handler(alias)?;
        let closed = self.handlers.open.remove(at);
        let is_shared = self.handlers.open.iter().any(|open| open.locked == closed.locked);
        if let Some(table) = closed.locked.filter(|_| !is_shared) {
            self.runner.transactions.metadata.release_explicit(Some(table));
        }
        Ok(())
    }

    fn find_handler(&self, alias: &str) -> Result<usize> {
        let found = self.handlers.find(alias);
        found.ok_or_else(|| SqlError::new(1109, format!("Unknown table '{alias}' in HANDLER")))
    }

    fn read_handler(&mut self, read: &HandlerRead) -> Result<Table> {
        let at = self.find_handler(&read.table.name)?;
        let open = self.handlers.open[at].clone();
        let model = self.runner.catalog.table(&open.schema, &open.table)?;
        let index = read.index.as_deref().map(|name| index_of(&model, name, &open.alias));
        let index = index.transpose()?;
        let order = order_of(&model, index)?;
        let draft = draft(&open, &model, &order, read)?;
        let mode = grammar::Mode::default();
        let parsed = grammar::parse(&draft.text, mode)?;
        let plan = self.runner.plan(&parsed.statement, &draft.arguments)?;
        let mut sink = Gathered::new(self.runner.settings.presentation.time_zone.clone());
        self.runner.execute(&plan, &draft.arguments, &mut sink)?;
        if let Some(last) = sink.rows.last() {
            let values = last.iter().cloned().zip(sink.types.iter().cloned());
            let values = values.take(order.len()).collect();
            self.handlers.open[at].place = Some(Place { index: read.index.clone(), values });
        }
        Ok(shown(sink, order.len()))
    }
}

/// The rows for the client, without the columns of the order, which come first.
fn shown(sink: Gathered, hidden: usize) -> Table {
    let columns = sink.names.into_iter().zip(sink.types).skip(hidden).collect();
    let without = |mut row: Vec<Datum>| row.split_off(hidden);
    let rows = sink.rows.into_iter().map(without).collect();
    Table { columns, rows, ..Table::default() }
}

fn index_of<'m>(model: &'m TableModel, name: &str, alias: &str) -> Result<&'m IndexModel> {
    model.index(name).ok_or_else(|| {
        SqlError::new(1176, format!("Key '{name}' doesn't exist in table '{alias}'"))
    })
}

/// The columns that order the rows; enough that no two rows have the same values in them.
fn order_of(model: &Arc<TableModel>, index: Option<&IndexModel>) -> Result<Vec<OrderColumn>> {
    let primary = model.primary_key();
    let mut order: Vec<OrderColumn> = Vec::new();
    for part in index.into_iter().chain(primary).flat_map(|index| &index.parts) {
        let Some(column) = model.by_ordinal(part.ordinal) else { continue };
        if part.prefix.is_some() || column.hidden {
            return Err(SqlError::not_supported("HANDLER by an index of parts of columns"));
        }
        if !order.iter().any(|other| *other.name == *column.name) {
            let name = column.name.to_string();
            order.push(OrderColumn { name, descending: part.descending });
        }
    }
    let is_unique = index.is_some_and(|index| index.unique);
    match primary.is_some() || is_unique {
        true => Ok(order),
        false => Err(SqlError::not_supported("HANDLER of a table without a primary key")),
    }
}

/// The query of a read.
fn draft(
    open: &OpenHandler,
    model: &TableModel,
    order: &[OrderColumn],
    read: &HandlerRead,
) -> Result<Draft> {
    let mut draft = Draft::default();
    let hidden = order.iter().map(|column| &*column.name);
    let shown = model.visible_columns().map(|column| &*column.name);
    let columns: Vec<String> = hidden.chain(shown).map(identifier).collect();
    let (schema, table) = (identifier(&open.schema), identifier(&open.table));
    let (columns, alias) = (columns.join(", "), identifier(&open.alias));
    draft.push(&format!("SELECT {columns} FROM {schema}.{table} AS {alias}"));
    if let Some(index) = &read.index {
        draft.push(&format!(" FORCE INDEX ({})", identifier(index)));
    }
    draft.push(" WHERE (");
    let backwards = draft.position(open, order, read)?;
    draft.push(")");
    if let Some(selection) = &read.selection {
        draft.push(&format!(" AND ({})", grammar::render(selection)));
    }
    draft.push(" ORDER BY ");
    for (number, column) in order.iter().enumerate() {
        let comma = if number == 0 { "" } else { ", " };
        let way = if column.descending == backwards { "" } else { " DESC" };
        draft.push(&format!("{comma}{}{way}", identifier(&column.name)));
    }
    let count =
        |expr: Option<&Expr>, otherwise: &str| expr.map_or(otherwise.to_owned(), grammar::render);
    let (limit, offset) = (count(read.limit.as_ref(), "1"), count(read.offset.as_ref(), "0"));
    draft.push(&format!(" LIMIT {limit} OFFSET {offset}"));
    Ok(draft)
}

impl Draft {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// The condition for rows in the statement's position; and whether they come backwards.
    fn position(
        &mut self,
        open: &OpenHandler,
        order: &[OrderColumn],
        read: &HandlerRead,
    ) -> Result<bool> {
        let place = open.place.as_ref().filter(|place| {
            let names = (&place.index, &read.index);
            match names {
                (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
                (None, None) => place.values.len() == order.len(),
                _ => false,
            }
        });
        match (&read.position, place) {
            (HandlerPosition::Key { comparison, values }, _) => {
                return self.key(comparison, values, order);
            }
            (HandlerPosition::Next, Some(place)) => self.beyond(place, order, false),
            (HandlerPosition::Previous, Some(place)) => self.beyond(place, order, true),
            _ => self.push("TRUE"),
        }
        Ok(matches!(read.position, HandlerPosition::Previous | HandlerPosition::Last))
    }

    fn beyond(&mut self, place: &Place, order: &[OrderColumn], backwards: bool) {
        let bounds: Vec<Bound<'_>> = place.values.iter().map(Bound::Value).collect();
        self.side(order, &bounds, backwards);
    }

    fn key(
        &mut self,
        comparison: &BinaryOperator,
        values: &[Expr],
        order: &[OrderColumn],
    ) -> Result<bool> {
        if values.len() > order.len() {
            let most = order.len();
            return Err(SqlError::new(
                1070,
                format!("Too many key parts specified; max {most} parts allowed"),
            ));
        }
        let bounds: Vec<Bound<'_>> =
            values.iter().map(|value| Bound::Written(grammar::render(value))).collect();
        let order = &order[..values.len()];
        let backwards = matches!(comparison, BinaryOperator::Lt | BinaryOperator::LtEq);
        let is_equal_too =
            matches!(comparison, BinaryOperator::Eq | BinaryOperator::GtEq | BinaryOperator::LtEq);
        if *comparison != BinaryOperator::Eq {
            self.side(order, &bounds, backwards);
        }
        if is_equal_too {
            self.push(if *comparison == BinaryOperator::Eq { "" } else { " OR " });
            self.equal(order, &bounds);
        }
        Ok(backwards)
    }

    /// Rows after the bounds, or before them.
    fn side(&mut self, order: &[OrderColumn], bounds: &[Bound<'_>], backwards: bool) {
        for (number, (column, bound)) in order.iter().zip(bounds).enumerate() {
            self.push(if number == 0 { "(" } else { " OR (" });
            if number > 0 {
                self.equal(&order[..number], &bounds[..number]);
                self.push(" AND ");
            }
            let name = identifier(&column.name);
            match (backwards == column.descending, bound.is_null()) {
                (true, true) => self.push(&format!("{name} IS NOT NULL")),
                (true, false) => {
                    self.push(&format!("{name} > "));
                    self.bound(bound);
                }
                // NULL is the least.
                (false, true) => self.push("FALSE"),
                (false, false) => {
                    self.push(&format!("({name} IS NULL OR {name} < "));
                    self.bound(bound);
                    self.push(")");
                }
            }
            self.push(")");
        }
    }

    fn equal(&mut self, order: &[OrderColumn], bounds: &[Bound<'_>]) {
        for (number, (column, bound)) in order.iter().zip(bounds).enumerate() {
            let and = if number == 0 { "" } else { " AND " };
            // Writing to a String cannot fail.
            let _ = write!(self.text, "{and}{} <=> ", identifier(&column.name));
            self.bound(bound);
        }
    }

    fn bound(&mut self, bound: &Bound<'_>) {
        match bound {
            Bound::Written(text) => self.push(text),
            Bound::Value((value, ty)) => {
                self.push("?");
                self.arguments.values.push(value.clone());
                self.arguments.types.push(ty.clone());
            }
        }
    }
}

impl Bound<'_> {
    fn is_null(&self) -> bool {
        match self {
            Bound::Value((value, _)) => value.is_null(),
            Bound::Written(text) => text.eq_ignore_ascii_case("NULL"),
        }
    }
}
