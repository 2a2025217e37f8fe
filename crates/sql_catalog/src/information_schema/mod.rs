//! Tables whose rows are generated from the catalog and from the session layer.
//!
//! ```text
//!   find("information_schema", "columns") ──► MadeUp { columns, fill } ──► rows
//!                                                        └─ listed(context, hints): visible rows
//! ```
//!
//! Names and types of columns are MySQL 8's. Names of schemas and tables compare by their bytes,
//! names of columns and constraints case-insensitively.

mod cluster;
mod columns;
mod empty;
mod keys;
mod listing;
mod monitors;
mod performance;
mod server;
mod tables;
#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

use firn_format::value::CollationId;
use firn_sql_types::error::Result;
use firn_sql_types::{Datum, IntWidth, SqlType, TypeKind};
use rustc_hash::FxHashMap;

pub(super) use columns::model_of;

use super::virtual_schemas::proper_schema;
use super::virtual_table::{EmitRow, VirtualColumn, VirtualContext, VirtualTable};

/// `utf8mb3_general_ci`
const FOLDED: CollationId = CollationId(33);
/// `utf8mb3_bin`
const EXACT: CollationId = CollationId(83);

/// A virtual table by its name, in any case.
#[must_use]
pub fn find(schema: &str, name: &str) -> Option<Arc<dyn VirtualTable>> {
    let schema = proper_schema(schema)?;
    REGISTRY.by_name.get(&(schema, name.to_ascii_lowercase())).map(|at| table(*at))
}

/// Whether a table is one of `performance_schema` that never has a row: truncating it is a no-op.
#[must_use]
pub fn is_empty_monitor(schema: &str, name: &str) -> bool {
    proper_schema(schema) == Some("performance_schema") && monitors::is_empty(name)
}

/// The virtual tables of a schema, in order of their names.
pub fn tables_of(schema: &str) -> impl Iterator<Item = Arc<dyn VirtualTable>> {
    let schema = proper_schema(schema);
    let tables = REGISTRY.tables.iter().enumerate();
    tables.filter(move |(_, table)| Some(table.schema) == schema).map(|(at, _)| table(at))
}

fn table(at: usize) -> Arc<dyn VirtualTable> {
    Arc::clone(&REGISTRY.tables[at]) as Arc<dyn VirtualTable>
}

struct Registry {
    tables: Vec<Arc<MadeUp>>,
    by_name: FxHashMap<(&'static str, String), usize>,
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let mut tables: Vec<MadeUp> = Vec::new();
    tables.extend(tables::all());
    tables.extend(columns::all());
    tables.extend(keys::all());
    tables.extend(server::all());
    tables.extend(cluster::all());
    tables.extend(performance::all());
    tables.extend(empty::all());
    tables.extend(monitors::all());
    tables.sort_by_key(|table| (table.schema, table.name));
    let names = tables.iter().enumerate();
    let by_name =
        names.map(|(at, table)| ((table.schema, table.name.to_ascii_lowercase()), at)).collect();
    Registry { tables: tables.into_iter().map(Arc::new).collect(), by_name }
});

/// Emits the rows of a table.
type Fill = fn(&VirtualContext<'_>, &Hints<'_>, EmitRow<'_>) -> Result<()>;

/// A table with the function that generates its rows.
struct MadeUp {
    schema: &'static str,
    name: &'static str,
    columns: Vec<VirtualColumn>,
    hinted: Vec<u16>,
    fill: Fill,
}

impl std::fmt::Debug for MadeUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

impl VirtualTable for MadeUp {
    fn schema(&self) -> &'static str {
        self.schema
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn columns(&self) -> &[VirtualColumn] {
        &self.columns
    }

    fn rows(
        &self,
        context: &VirtualContext<'_>,
        hints: &[(u16, Datum)],
        emit: EmitRow<'_>,
    ) -> Result<()> {
        (self.fill)(context, &Hints { columns: &self.columns, hints }, emit)
    }

    fn hinted_columns(&self) -> &[u16] {
        &self.hinted
    }
}

/// What is known of the wanted rows.
struct Hints<'a> {
    columns: &'a [VirtualColumn],
    hints: &'a [(u16, Datum)],
}

impl<'a> Hints<'a> {
    /// The text that a column must have.
    fn text(&self, column: &str) -> Option<&'a str> {
        let number = self.columns.iter().position(|own| own.name == column)?;
        let (_, datum) = self.hints.iter().find(|(hinted, _)| usize::from(*hinted) == number)?;
        match datum {
            Datum::Text(text) => text.as_str(),
            _ => None,
        }
    }
}

/// A table of `information_schema`; hints help for `hinted` columns.
fn schema_table(
    name: &'static str,
    columns: Vec<VirtualColumn>,
    hinted: &[&str],
    fill: Fill,
) -> MadeUp {
    let number = |name: &&str| columns.iter().position(|own| own.name == *name);
    let hinted = hinted.iter().filter_map(number).map(|number| number as u16).collect();
    MadeUp { schema: "information_schema", name, columns, hinted, fill }
}

/// A case-insensitive text column.
fn text(name: &'static str, max_chars: u32) -> VirtualColumn {
    VirtualColumn { name, ty: column_type(TypeKind::Varchar { max_chars, collation: FOLDED }) }
}

/// The name of a schema or table.
fn exact(name: &'static str) -> VirtualColumn {
    let kind = TypeKind::Varchar { max_chars: 64, collation: EXACT };
    VirtualColumn { name, ty: column_type(kind).not_null() }
}

fn long_text(name: &'static str) -> VirtualColumn {
    let kind = TypeKind::Text { max_bytes: u32::MAX, collation: FOLDED };
    VirtualColumn { name, ty: column_type(kind) }
}

fn number(name: &'static str) -> VirtualColumn {
    VirtualColumn { name, ty: SqlType::bigint_unsigned() }
}

fn signed(name: &'static str) -> VirtualColumn {
    VirtualColumn { name, ty: SqlType::bigint() }
}

fn int(name: &'static str) -> VirtualColumn {
    let kind = TypeKind::Integer { width: IntWidth::Four, unsigned: false };
    VirtualColumn { name, ty: SqlType::new(kind) }
}

fn moment(name: &'static str) -> VirtualColumn {
    VirtualColumn { name, ty: SqlType::new(TypeKind::DateTime { fsp: 0 }) }
}

fn column_type(kind: TypeKind) -> SqlType {
    SqlType::of_column(kind, true)
}

/// A text, or NULL.
fn maybe_text<T: AsRef<str>>(text: Option<T>) -> Datum {
    text.map_or(Datum::Null, |text| Datum::text(text.as_ref()))
}

/// A number, or NULL.
fn maybe_number(number: impl Into<Option<u64>>) -> Datum {
    number.into().map_or(Datum::Null, Datum::UInt)
}

fn yes_or_no(truth: bool) -> Datum {
    Datum::text(if truth { "YES" } else { "NO" })
}

/// `def`, the only catalog.
fn def() -> Datum {
    Datum::text("def")
}
