//! `SHOW CREATE TABLE`, `VIEW` and `DATABASE`, in MySQL 8's layout, which clients parse.

use std::fmt::Write as _;

use firn_sql_collation as collation;
use firn_sql_types::{Datum, TypeKind};

use super::super::definition_text::{foreign_key_text, value_text};
use super::super::model::{
    ColumnModel, DefaultValue, IndexModel, SpecialIndex, TableKind, TableModel, ViewAlgorithm,
    ViewModel,
};
use super::super::notation::{current_timestamp, hex, identifier, identifiers, quoted};
use super::super::options::SchemaOptions;
use super::super::type_text;
use super::super::virtual_table::VirtualTable;

/// `CREATE TABLE …`; `next_auto_increment` is the counter's next value, if there is a counter.
#[must_use]
pub fn table_text(table: &TableModel, next_auto_increment: Option<u64>) -> String {
    let temporary = if table.kind == TableKind::Temporary { "TEMPORARY " } else { "" };
    let mut text = format!("CREATE {temporary}TABLE {} (\n", identifier(&table.name));
    let mut lines: Vec<String> =
        table.shown_columns().map(|column| column_text(table, column)).collect();
    lines.extend(table.indexes.iter().map(|index| index_text(table, index)));
    // By name, as MySQL lists them and as tools that compare two tables expect.
    let mut foreign_keys: Vec<_> = table.foreign_keys.iter().collect();
    foreign_keys.sort_by_key(|key| key.name.to_lowercase());
    let foreign_keys = foreign_keys.into_iter();
    lines.extend(foreign_keys.map(|key| foreign_key_text(key, &table.columns, &table.schema)));
    lines.extend(table.checks.iter().map(|check| {
        let enforced = if check.enforced { "" } else { " /*!80016 NOT ENFORCED */" };
        format!("CONSTRAINT {} CHECK ({}){enforced}", identifier(&check.name), check.text)
    }));
    for (at, line) in lines.iter().enumerate() {
        text.push_str(if at == 0 { "  " } else { ",\n  " });
        text.push_str(line);
    }
    text.push_str("\n)");
    text.push_str(&options_text(table, next_auto_increment));
    text
}

fn options_text(table: &TableModel, next_auto_increment: Option<u64>) -> String {
    let mut text = " ENGINE=InnoDB".to_owned();
    if let Some(next) = next_auto_increment.filter(|next| *next > 1) {
        let _ = write!(text, " AUTO_INCREMENT={next}");
    }
    let collation = collation::get(table.collation);
    let _ = write!(text, " DEFAULT CHARSET={}", collation.charset.name());
    if is_collation_shown(collation) {
        let _ = write!(text, " COLLATE={}", collation.name);
    }
    for (name, value) in &table.other_options {
        let _ = write!(text, " {name}={value}");
    }
    if !table.row_format.is_empty() {
        let _ = write!(text, " ROW_FORMAT={}", table.row_format);
    }
    if !table.comment.is_empty() {
        let _ = write!(text, " COMMENT={}", quoted(&table.comment));
    }
    text
}

/// MySQL names the collation of a table if it is not its character set's default, and always for
/// `utf8mb4`.
fn is_collation_shown(collation: &collation::Collation) -> bool {
    !collation.is_default() || collation.charset == collation::Charset::Utf8mb4
}

fn column_text(table: &TableModel, column: &ColumnModel) -> String {
    let mut text = format!("{} {}", identifier(&column.name), type_text::full(column));
    text.push_str(&collation_text(table, column));
    if let Some(generated) = &column.generated {
        let kind = if generated.stored { "STORED" } else { "VIRTUAL" };
        let _ = write!(text, " GENERATED ALWAYS AS ({}) {kind}", generated.text);
    }
    if !column.ty.nullable {
        text.push_str(" NOT NULL");
    } else if matches!(column.ty.kind, TypeKind::Timestamp { .. }) {
        text.push_str(" NULL");
    }
    match &column.default {
        DefaultValue::None => {}
        DefaultValue::Null if has_no_default_clause(&column.ty.kind) => {}
        DefaultValue::Null => text.push_str(" DEFAULT NULL"),
        default => {
            let _ = write!(text, " DEFAULT {}", default_clause(default, column));
        }
    }
    if let Some(fsp) = column.on_update_now {
        let _ = write!(text, " ON UPDATE {}", current_timestamp(fsp));
    }
    if column.auto_increment {
        text.push_str(" AUTO_INCREMENT");
    }
    if !column.comment.is_empty() {
        let _ = write!(text, " COMMENT {}", quoted(&column.comment));
    }
    if column.invisible {
        text.push_str(" /*!80023 INVISIBLE */");
    }
    text
}

/// Long values have no `DEFAULT` in MySQL, so it shows none if the default is NULL.
fn has_no_default_clause(kind: &TypeKind) -> bool {
    matches!(kind, TypeKind::Text { .. } | TypeKind::Blob { .. })
}

fn collation_text(table: &TableModel, column: &ColumnModel) -> String {
    let Some((charset, name)) = type_text::charset_and_collation(&column.ty.kind) else {
        return String::new();
    };
    let of_table = collation::get(table.collation);
    if of_table.name == name {
        return String::new();
    }
    format!(" CHARACTER SET {charset} COLLATE {name}")
}

/// The text after `DEFAULT` in a definition.
fn default_clause(default: &DefaultValue, column: &ColumnModel) -> String {
    match default {
        DefaultValue::None => String::new(),
        DefaultValue::Null => "NULL".to_owned(),
        DefaultValue::Expression(text) => format!("({text})"),
        DefaultValue::CurrentTimestamp { fsp } => current_timestamp(*fsp),
        DefaultValue::Literal(datum) => match (&column.ty.kind, datum) {
            (TypeKind::Bit { .. }, Datum::UInt(bits)) => format!("b'{bits:b}'"),
            (kind, Datum::Text(bytes)) if kind.is_binary() => match bytes.as_str() {
                Some(text) => quoted(text.trim_end_matches('\0')),
                None => hex(bytes),
            },
            _ => quoted(&value_text(datum, column)),
        },
    }
}

fn index_text(table: &TableModel, index: &IndexModel) -> String {
    let parts: Vec<String> = index
        .parts
        .iter()
        .map(|part| {
            let Some(column) = table.by_ordinal(part.ordinal) else { return String::new() };
            let mut text = match &column.generated {
                Some(generated) if column.hidden => format!("({})", generated.text),
                _ => identifier(&column.name),
            };
            if let Some(prefix) = part.prefix.filter(|_| index.special.is_none()) {
                let _ = write!(text, "({prefix})");
            }
            if part.descending {
                text.push_str(" DESC");
            }
            text
        })
        .collect();
    let kind = match index {
        _ if index.primary => "PRIMARY KEY".to_owned(),
        IndexModel { special: Some(SpecialIndex::FullText), .. } => {
            format!("FULLTEXT KEY {}", identifier(&index.name))
        }
        IndexModel { special: Some(SpecialIndex::Spatial), .. } => {
            format!("SPATIAL KEY {}", identifier(&index.name))
        }
        _ if index.unique => format!("UNIQUE KEY {}", identifier(&index.name)),
        _ => format!("KEY {}", identifier(&index.name)),
    };
    let mut text = format!("{kind} ({})", parts.join(","));
    if let Some(using) = &index.using {
        let _ = write!(text, " USING {using}");
    }
    if !index.comment.is_empty() {
        let _ = write!(text, " COMMENT {}", quoted(&index.comment));
    }
    if !index.visible {
        text.push_str(" /*!80000 INVISIBLE */");
    }
    text
}

/// `CREATE ALGORITHM=… VIEW …`
#[must_use]
pub fn view_text(table: &TableModel, view: &ViewModel, current_schema: Option<&str>) -> String {
    let algorithm = match view.algorithm {
        ViewAlgorithm::Undefined => "UNDEFINED",
        ViewAlgorithm::Merge => "MERGE",
        ViewAlgorithm::TemporaryTable => "TEMPTABLE",
    };
    let security = if view.security_definer { "DEFINER" } else { "INVOKER" };
    let name = match current_schema == Some(&*table.schema) {
        true => identifier(&table.name),
        false => format!("{}.{}", identifier(&table.schema), identifier(&table.name)),
    };
    let columns = identifiers(table.shown_columns().map(|column| &*column.name));
    format!(
        "CREATE ALGORITHM={algorithm} DEFINER={} SQL SECURITY {security} VIEW {name} ({columns}) AS {}{}",
        definer_text(&view.definer),
        view.body,
        check_option_text(view)
    )
}

fn check_option_text(view: &ViewModel) -> &'static str {
    use super::super::model::CheckOption;
    match view.check_option {
        CheckOption::None => "",
        CheckOption::Local => " WITH LOCAL CHECK OPTION",
        CheckOption::Cascaded => " WITH CASCADED CHECK OPTION",
    }
}

/// `` `user`@`host` ``
fn definer_text(account: &str) -> String {
    let (user, host) = account.rsplit_once('@').unwrap_or((account, "%"));
    format!("{}@{}", identifier(user), identifier(host))
}

/// `CREATE TEMPORARY TABLE …`, as MySQL shows virtual tables.
#[must_use]
pub fn virtual_table_text(table: &dyn VirtualTable) -> String {
    let mut text = format!("CREATE TEMPORARY TABLE {} (\n", identifier(table.name()));
    for (at, column) in table.columns().iter().enumerate() {
        let model = super::super::information_schema::model_of(column, at as u16 + 1);
        let null = if column.ty.nullable { "" } else { " NOT NULL" };
        let comma = if at == 0 { "" } else { ",\n" };
        let ty = type_text::full(&model);
        let _ = write!(text, "{comma}  {} {ty}{null}", identifier(column.name));
    }
    text.push_str("\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb3");
    text
}

/// `CREATE DATABASE …`
#[must_use]
pub fn schema_text(name: &str, options: &SchemaOptions, if_not_exists: bool) -> String {
    let condition = if if_not_exists { "/*!32312 IF NOT EXISTS*/ " } else { "" };
    let collation = collation::get(options.collation);
    let shown = match is_collation_shown(collation) {
        true => format!(" COLLATE {}", collation.name),
        false => String::new(),
    };
    let read_only = if options.read_only { " /* READ ONLY=1 */" } else { "" };
    format!(
        "CREATE DATABASE {condition}{} /*!40100 DEFAULT CHARACTER SET {}{shown} */ \
         /*!80016 DEFAULT ENCRYPTION='N' */{read_only}",
        identifier(name),
        collation.charset.name()
    )
}
