//! Names of schemas, tables and columns, for completion.
//!
//! They are read at the first completion, over another connection, and again after a statement that
//! changes definitions. A prompt without completion costs the server nothing.

use std::cell::{Cell, Ref, RefCell};

use mysql::prelude::Queryable;

use super::connection;
use super::options::Target;

/// Columns beyond this number are not completed.
const MOST_COLUMNS: usize = 50_000;

/// The names of a server's definitions.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) schemas: Vec<String>,
    /// Schema, table and column of each.
    pub(crate) columns: Vec<(String, String, String)>,
    /// Schema and table of each.
    pub(crate) tables: Vec<(String, String)>,
    pub(crate) current: Option<String>,
}

/// The names, which are read when they are needed.
pub(crate) struct Names {
    target: RefCell<Target>,
    known: RefCell<Known>,
    is_known: Cell<bool>,
}

impl Names {
    pub(crate) fn new(target: &Target) -> Names {
        Names {
            target: RefCell::new(target.clone()),
            known: RefCell::default(),
            is_known: Cell::new(false),
        }
    }

    /// Has the names read again before the next use.
    pub(crate) fn forget(&self) {
        self.is_known.set(false);
    }

    /// Sets the prompt's current schema.
    pub(crate) fn set_current(&self, schema: Option<&str>) {
        self.target.borrow_mut().schema = schema.map(str::to_owned);
    }

    /// The names; those that cannot be read are left out.
    pub(crate) fn get(&self) -> Ref<'_, Known> {
        if !self.is_known.replace(true)
            && let Ok(known) = read(&mut self.target.borrow_mut())
        {
            *self.known.borrow_mut() = known;
        }
        self.known.borrow()
    }
}

fn read(target: &mut Target) -> Result<Known, super::ClientError> {
    let current = target.schema.clone();
    let mut connection = connection::connect(target)?;
    let schemas = connection
        .query("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY SCHEMA_NAME")?;
    let tables = connection.query(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES ORDER BY TABLE_SCHEMA, TABLE_NAME",
    )?;
    let columns = connection.query(format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS \
         WHERE TABLE_SCHEMA NOT IN ('performance_schema', 'sys') \
         ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION LIMIT {MOST_COLUMNS}"
    ))?;
    Ok(Known { schemas, columns, tables, current })
}
