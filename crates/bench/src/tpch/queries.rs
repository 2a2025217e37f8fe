//! The 22 queries with their validation parameters (TPC-H 2.4), in the SQL that MySQL, MariaDB,
//! DuckDB and PostgreSQL share. Where the order of the specification leaves ties, no key is added:
//! checks compare such rows as sets.

/// The queries in the order of their numbers, from 1.
const TEXTS: [&str; 22] = [
    include_str!("queries/q01.sql"),
    include_str!("queries/q02.sql"),
    include_str!("queries/q03.sql"),
    include_str!("queries/q04.sql"),
    include_str!("queries/q05.sql"),
    include_str!("queries/q06.sql"),
    include_str!("queries/q07.sql"),
    include_str!("queries/q08.sql"),
    include_str!("queries/q09.sql"),
    include_str!("queries/q10.sql"),
    include_str!("queries/q11.sql"),
    include_str!("queries/q12.sql"),
    include_str!("queries/q13.sql"),
    include_str!("queries/q14.sql"),
    include_str!("queries/q15.sql"),
    include_str!("queries/q16.sql"),
    include_str!("queries/q17.sql"),
    include_str!("queries/q18.sql"),
    include_str!("queries/q19.sql"),
    include_str!("queries/q20.sql"),
    include_str!("queries/q21.sql"),
    include_str!("queries/q22.sql"),
];

/// The statements for a scale factor, which query 11 depends on.
pub(crate) fn queries(scale: f64) -> Vec<String> {
    let fraction = format!("{:.10}", 0.0001 / scale);
    TEXTS.iter().map(|text| text.trim_end().replace("{fraction}", &fraction)).collect()
}
