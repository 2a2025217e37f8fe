//! The candidates for the word at the cursor.
//!
//! ```text
//!   SELECT i.na▮ FROM item i   columns of item, because i is its alias
//!   SELECT * FROM sh▮          tables of the current schema, and schemas
//!   SELECT * FROM shop.▮       tables of shop
//!   USE ▮                      schemas
//!   SEL▮                       keywords, functions, columns of the tables that the statement names
//! ```

use super::names::Known;
use super::words::{self, Kind};

/// Words that completion offers and that are highlighted as keywords.
const KEYWORDS: &str = "ADD ALL ALTER ANALYZE AND AS ASC AUTO_INCREMENT BEGIN BETWEEN BIGINT BINARY BLOB BY CASCADE \
    CASE CHAR CHECK COLLATE COLUMN COMMIT CONSTRAINT CREATE CROSS CURRENT_TIMESTAMP DATABASE DATABASES DATE DATETIME \
    DECIMAL DEFAULT DELETE DESC DESCRIBE DISTINCT DO DOUBLE DROP DUPLICATE ELSE END ENGINE EXCEPT EXISTS EXPLAIN FALSE \
    FLOAT FLUSH FOR FOREIGN FROM FULL GRANT GROUP HAVING IF IGNORE IN INDEX INNER INSERT INT INTEGER INTERSECT INTERVAL \
    INTO IS JOIN JSON KEY KEYS KILL LATERAL LEFT LIKE LIMIT LOAD LOCK MODIFY NATURAL NOT NOWAIT NULL OFFSET ON OR ORDER \
    OUTER OVER PARTITION PREPARE PRIMARY PROCESSLIST READ RECURSIVE REFERENCES REGEXP RENAME REPLACE REVOKE RIGHT \
    ROLLBACK ROW ROWS SAVEPOINT SCHEMA SELECT SET SHARE SHOW SKIP SMALLINT START STATUS STRAIGHT_JOIN TABLE TABLES \
    TEMPORARY TEXT THEN TIME TIMESTAMP TINYINT TO TRANSACTION TRUE TRUNCATE UNION UNIQUE UNLOCK UNSIGNED UPDATE USE \
    USING VALUES VARBINARY VARCHAR VARIABLES VIEW WARNINGS WHEN WHERE WINDOW WITH WRITE XA";

/// Functions over rows.
const AGGREGATES: &str = "AVG BIT_AND BIT_OR BIT_XOR COUNT CUME_DIST DENSE_RANK FIRST_VALUE GROUP_CONCAT JSON_ARRAYAGG \
    JSON_OBJECTAGG LAG LAST_VALUE LEAD MAX MIN NTH_VALUE NTILE PERCENT_RANK RANK ROW_NUMBER STDDEV SUM VARIANCE";

/// Words before the name of a table.
const BEFORE_TABLES: [&str; 8] =
    ["FROM", "JOIN", "INTO", "UPDATE", "TABLE", "DESCRIBE", "DESC", "REFERENCES"];

/// Whether a word is highlighted as a keyword.
pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.split_ascii_whitespace().any(|known| known.eq_ignore_ascii_case(word))
}

/// Where the word at the cursor begins, and its candidates, sorted.
pub(crate) fn candidates(line: &str, at: usize, known: &Known) -> (usize, Vec<String>) {
    let before = &line[..at];
    let start = before
        .rfind(|character| !words::is_name(character))
        .map_or(0, |sign| sign + before[sign..].chars().next().map_or(1, char::len_utf8));
    let (head, prefix) = before.split_at(start);
    let mut found = match head.strip_suffix('.') {
        Some(head) => after_dot(head, line, known),
        None => alone(head, line, prefix, known),
    };
    let matches = |name: &String| {
        name.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix))
    };
    found.retain(matches);
    found.sort_unstable_by_key(|name| name.to_lowercase());
    found.dedup();
    (start, found)
}

/// Candidates after `name.`: columns of a table or alias, tables of a schema.
fn after_dot(head: &str, line: &str, known: &Known) -> Vec<String> {
    let pieces: Vec<_> = words::pieces(head).collect();
    let Some((_, range)) = pieces.last() else { return Vec::new() };
    let name = head[range.clone()].trim_matches('`');
    let table = mentioned(line).into_iter().find(|(_, alias)| alias.eq_ignore_ascii_case(name));
    let table = table.map_or(name.to_owned(), |(table, _)| table);
    let columns = columns_of(&table, known);
    let tables = known.tables.iter().filter(|(schema, _)| schema == name);
    columns.chain(tables.map(|(_, table)| table.clone())).collect()
}

/// Candidates for a word without a qualifier.
fn alone(head: &str, line: &str, prefix: &str, known: &Known) -> Vec<String> {
    let last = words::pieces(head).last().map(|(_, range)| head[range].to_ascii_uppercase());
    let last = last.as_deref().unwrap_or("");
    let schemas = known.schemas.iter().cloned();
    if matches!(last, "USE" | "DATABASE" | "SCHEMA") {
        return schemas.collect();
    }
    let current = known.tables.iter().filter(|(schema, _)| Some(schema) == known.current.as_ref());
    let tables = current.map(|(_, table)| table.clone());
    if BEFORE_TABLES.contains(&last) || head.starts_with('\\') {
        return tables.chain(schemas).collect();
    }
    let mut found: Vec<String> = Vec::new();
    for (table, alias) in mentioned(line) {
        found.extend(columns_of(&table, known));
        found.push(alias);
    }
    if found.is_empty() {
        // Before the tables are typed, columns of the current schema are the likely ones.
        let here = known.columns.iter().filter(|one| Some(&one.0) == known.current.as_ref());
        found.extend(here.map(|(_, _, column)| column.clone()));
    }
    if prefix.is_empty() {
        return found;
    }
    let is_lower = prefix.chars().all(|character| !character.is_ascii_uppercase());
    let cased = |word: &str| if is_lower { word.to_ascii_lowercase() } else { word.to_owned() };
    found.extend(KEYWORDS.split_ascii_whitespace().map(cased));
    let functions = firn_sql_functions::all().map(|function| function.name);
    let functions = functions.chain(AGGREGATES.split_ascii_whitespace());
    found.extend(functions.filter(|name| name.starts_with(words::is_name)).map(cased));
    found.extend(tables);
    found
}

fn columns_of<'k>(table: &str, known: &'k Known) -> impl Iterator<Item = String> + use<'k> {
    let table = table.to_owned();
    let is_it = move |one: &&(String, String, String)| one.1.eq_ignore_ascii_case(&table);
    known.columns.iter().filter(is_it).map(|(_, _, column)| column.clone())
}

/// The tables that a statement names, each with its alias, or with its name if it has none.
fn mentioned(line: &str) -> Vec<(String, String)> {
    let pieces: Vec<(Kind, &str)> =
        words::pieces(line).map(|(kind, range)| (kind, &line[range])).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < pieces.len() {
        let word = pieces[at].1.to_ascii_uppercase();
        at += 1;
        if BEFORE_TABLES.contains(&word.as_str()) {
            at = take_tables(&pieces, at, &mut found);
        }
    }
    found
}

/// Adds the tables of `a.b AS c, d e` to `found`; returns where the list ends.
fn take_tables(pieces: &[(Kind, &str)], mut at: usize, found: &mut Vec<(String, String)>) -> usize {
    let name_at = |at: usize| match pieces.get(at) {
        Some((Kind::Name, name)) => Some(name.trim_matches('`')),
        Some((Kind::Word, name)) if !is_keyword(name) => Some(*name),
        _ => None,
    };
    let is = |at: usize, text: &str| {
        pieces.get(at).is_some_and(|(_, piece)| piece.eq_ignore_ascii_case(text))
    };
    while let Some(mut table) = name_at(at) {
        at += 1;
        if is(at, ".")
            && let Some(inner) = name_at(at + 1)
        {
            table = inner;
            at += 2;
        }
        if is(at, "AS") {
            at += 1;
        }
        let mut alias = table;
        if let Some(given) = name_at(at) {
            alias = given;
            at += 1;
        }
        found.push((table.to_owned(), alias.to_owned()));
        if !is(at, ",") {
            break;
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        let column =
            |table: &str, name: &str| ("shop".to_owned(), table.to_owned(), name.to_owned());
        Known {
            schemas: vec!["shop".to_owned(), "stock".to_owned()],
            columns: vec![
                column("item", "id"),
                column("item", "name"),
                column("sale", "item_id"),
                column("sale", "name"),
            ],
            tables: vec![
                ("shop".to_owned(), "item".to_owned()),
                ("shop".to_owned(), "sale".to_owned()),
                ("stock".to_owned(), "bin".to_owned()),
            ],
            current: Some("shop".to_owned()),
        }
    }

    /// The candidates at `▮`.
    fn complete(text: &str) -> Vec<String> {
        let at = text.find('▮').unwrap();
        candidates(&text.replace('▮', ""), at, &known()).1
    }

    #[test]
    fn names_fit_their_place() {
        assert_eq!(complete("SELECT i.na▮ FROM item AS i"), ["name"]);
        assert_eq!(complete("SELECT s.▮ FROM item i JOIN shop.sale s"), ["item_id", "name"]);
        assert_eq!(complete("SELECT * FROM s▮"), ["sale", "shop", "stock"]);
        assert_eq!(complete("SELECT * FROM stock.▮"), ["bin"]);
        assert_eq!(complete("use s▮"), ["shop", "stock"]);
        assert_eq!(complete("SELECT item_▮ FROM sale"), ["item_id"]);
        assert_eq!(complete("SELECT item_▮"), ["item_id"]);
    }

    #[test]
    fn keywords_take_the_case_that_is_typed() {
        assert_eq!(complete("SELE▮"), ["SELECT"]);
        assert!(complete("select coun▮").contains(&"count".to_owned()));
    }
}
