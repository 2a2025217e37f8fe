//! The column metadata that clients see for `information_schema` and for `SHOW` statements: that of
//! MySQL's dictionary, however Firn computes the values.
//!
//! ```text
//!   information_schema/definitions.txt  TABLES          ENGINE 253 64 31 0 text -
//!   show/definitions.txt                SHOW DATABASES  253 64 0 1081 text - schemata …
//! ```
//!
//! Both files are recorded from MySQL. A column that is not in them is described by its type.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

/// What clients see of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedType {
    /// See [`type_code`](firn_sql_types::metadata::type_code).
    pub type_code: u8,
    /// The longest text in characters, or in bytes if it is not text.
    pub length: u32,
    /// Digits after the point.
    pub decimals: u8,
    /// See [`flag`](firn_sql_types::metadata::flag).
    pub flags: u16,
    /// Whether it is sent in the client's character set.
    pub is_text: bool,
}

/// A column of `information_schema`.
#[derive(Debug, Clone, Copy)]
pub struct DictionaryColumn {
    pub ty: ReportedType,
    /// The schema and table of origin; `None`: the column is computed.
    pub of: Option<(&'static str, &'static str)>,
}

/// A column of a statement's result, also for the prepared statement.
#[derive(Debug, Clone, Copy)]
pub struct ReportedColumn {
    pub ty: ReportedType,
    /// The schema of origin; may be empty, like the others.
    pub schema: &'static str,
    /// The table's own name.
    pub original_table: &'static str,
    /// What the table is called.
    pub table: &'static str,
    /// The column's own name; `None`: the displayed name.
    pub original_name: Option<&'static str>,
}

/// The columns of a `SHOW` statement.
#[derive(Debug, Default)]
pub struct ReportedColumns {
    /// In a result.
    pub answered: Vec<ReportedColumn>,
    /// When it is prepared.
    pub prepared: Vec<ReportedColumn>,
}

static DICTIONARY: LazyLock<FxHashMap<(&str, &str), DictionaryColumn>> = LazyLock::new(|| {
    let mut table = "";
    let mut columns = FxHashMap::default();
    for line in lines(include_str!("information_schema/definitions.txt")) {
        let Some(line) = line.strip_prefix("  ") else {
            table = line;
            continue;
        };
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        if let Some(ty) = told_type(&mut words) {
            let of = words.next().and_then(|of| of.split_once('.'));
            columns.insert((table, name), DictionaryColumn { ty, of });
        }
    }
    columns
});

static SHOWN: LazyLock<FxHashMap<&str, ReportedColumns>> = LazyLock::new(|| {
    let mut statement = "";
    let mut found: FxHashMap<&str, ReportedColumns> = FxHashMap::default();
    for line in lines(include_str!("show/definitions.txt")) {
        let Some(line) = line.strip_prefix("  ") else {
            statement = line;
            continue;
        };
        let columns = found.entry(statement).or_default();
        let (answered, prepared) = line.split_once(" / ").unwrap_or((line, line));
        columns.answered.extend(told_column(answered));
        columns.prepared.extend(told_column(prepared));
    }
    found
});

/// A column of a table of `information_schema`; both names as they are written there.
#[must_use]
pub fn dictionary_column(table: &str, column: &str) -> Option<DictionaryColumn> {
    DICTIONARY.get(&(table, column)).copied()
}

/// The columns of a `SHOW` statement, such as `SHOW COLUMNS`.
#[must_use]
pub fn shown(statement: &str) -> Option<&'static ReportedColumns> {
    SHOWN.get(statement)
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.starts_with('#'))
}

fn told_type<'w>(words: &mut impl Iterator<Item = &'w str>) -> Option<ReportedType> {
    Some(ReportedType {
        type_code: words.next()?.parse().ok()?,
        length: words.next()?.parse().ok()?,
        decimals: words.next()?.parse().ok()?,
        flags: u16::from_str_radix(words.next()?, 16).ok()?,
        is_text: words.next()? == "text",
    })
}

fn told_column(text: &'static str) -> Option<ReportedColumn> {
    let mut words = text.split(' ');
    let ty = told_type(&mut words)?;
    let mut name = || words.next().map(|name| if name == "-" { "" } else { name });
    let (schema, original_table, table) = (name()?, name()?, name()?);
    let original_name = Some(name()?).filter(|name| *name != "=");
    Some(ReportedColumn { ty, schema, original_table, table, original_name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_was_recorded_is_read() {
        let count = |text: &str| text.lines().filter(|line| line.starts_with("  ")).count();
        assert_eq!(DICTIONARY.len(), count(include_str!("information_schema/definitions.txt")));
        let columns = SHOWN.values().map(|columns| columns.answered.len());
        assert_eq!(columns.sum::<usize>(), count(include_str!("show/definitions.txt")));
        assert!(SHOWN.values().all(|columns| columns.answered.len() == columns.prepared.len()));
        let engine = dictionary_column("TABLES", "ENGINE").map(|column| column.ty.length);
        assert_eq!(engine, Some(64));
    }
}
