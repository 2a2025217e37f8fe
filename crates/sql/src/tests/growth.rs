//! How the work of parsing, binding and planning grows with a statement, counted in steps and not
//! by a clock: families of statements at one size and at twice that size.

use super::{Database, shop};
use crate::error::Result;
use crate::grammar;
use crate::logical::PlanContext;
use crate::prepare::plan_statement;
use crate::watch::Watch;

/// Runs a test on a stack like that of a session.
fn with_session_stack(test: fn()) {
    use firn_base::task::{Spawner, ThreadSpawner};
    assert!(ThreadSpawner.spawn("test", Box::new(test)).join(), "the test has failed");
}

/// Steps and allocated bytes of parsing and planning a statement, or its error.
fn work(database: &Database, text: &str) -> Result<(u64, u64)> {
    let watch = Watch::default().with_memory(256 << 20);
    let statement = grammar::parse_watched(text, grammar::Mode::default(), &watch)?.statement;
    let parsed = watch.step_count();
    let context = PlanContext { watch, ..database.context() };
    plan_statement(&statement, &context)?;
    let watch = &context.watch;
    Ok((watch.step_count().max(parsed), watch.held_bytes()))
}

fn joined(count: usize, separator: &str, piece: impl Fn(usize) -> String) -> String {
    (0..count).map(piece).collect::<Vec<_>>().join(separator)
}

/// A text with `begin` and `end` around it, repeated this many times.
fn nested(count: usize, begin: &str, middle: &str, end: &str) -> String {
    format!("{}{middle}{}", begin.repeat(count), end.repeat(count))
}

/// Common tables, each of which uses the previous one twice.
fn doubling(count: usize, body: impl Fn(&str) -> String) -> String {
    let tables = joined(count, ", ", |number| match number {
        0 => "c0 AS (SELECT id AS x FROM customer)".to_owned(),
        _ => format!("c{number} AS ({})", body(&format!("c{}", number - 1))),
    });
    format!("WITH {tables} SELECT COUNT(*) FROM c{}", count - 1)
}

type Family = (&'static str, usize, fn(usize) -> String);

/// Families, each with a size large enough to show growth that is too fast.
const FAMILIES: &[Family] = &[
    ("OR of one column", 2_000, |n| {
        let tests = joined(n, " OR ", |i| format!("id = {i}"));
        format!("SELECT name FROM customer WHERE {tests}")
    }),
    ("OR of two columns", 2_000, |n| {
        let tests = joined(n, " OR ", |i| format!("id = {i} AND name = 'n{i}'"));
        format!("SELECT name FROM customer WHERE {tests}")
    }),
    ("AND", 2_000, |n| {
        let tests = joined(n, " AND ", |i| format!("id <> {i}"));
        format!("SELECT name FROM customer WHERE {tests}")
    }),
    ("AND of ORs", 500, |n| {
        let tests = joined(n, " AND ", |i| format!("(id = {i} OR name = 'n{i}')"));
        format!("SELECT name FROM customer WHERE {tests}")
    }),
    ("IN list", 5_000, |n| {
        format!("SELECT name FROM customer WHERE id IN ({})", joined(n, ",", |i| i.to_string()))
    }),
    ("IN list of rows", 2_000, |n| {
        let rows = joined(n, ",", |i| format!("({i}, 'n{i}')"));
        format!("SELECT name FROM customer WHERE (id, name) IN ({rows})")
    }),
    ("sum", 400, |n| format!("SELECT {} FROM customer", joined(n, " + ", |_| "id".to_owned()))),
    ("XOR", 400, |n| format!("SELECT {} FROM customer", joined(n, " XOR ", |_| "id".to_owned()))),
    ("CASE with an operand", 2_000, |n| {
        let arms = joined(n, " ", |i| format!("WHEN {i} THEN {i}"));
        format!("SELECT CASE id {arms} END FROM customer")
    }),
    ("CASE with a long operand", 400, |n| {
        let operand = joined(n, " + ", |_| "id".to_owned());
        let arms = joined(n, " ", |i| format!("WHEN {i} THEN {i}"));
        format!("SELECT CASE {operand} {arms} END FROM customer")
    }),
    ("UNION ALL", 1_000, |n| joined(n, " UNION ALL ", |i| format!("SELECT {i}"))),
    ("UNION", 1_000, |n| joined(n, " UNION ", |i| format!("SELECT {i}"))),
    ("VALUES", 2_000, |n| format!("VALUES {}", joined(n, ", ", |i| format!("ROW({i}, {i})")))),
    ("INSERT", 2_000, |n| {
        let rows = joined(n, ", ", |i| format!("('c{i}', 'x')"));
        format!("INSERT INTO country VALUES {rows}")
    }),
    ("select list", 1_000, |n| {
        format!("SELECT {} FROM customer", joined(n, ", ", |i| format!("id + {i}")))
    }),
    ("subqueries in the select list", 200, |n| {
        let list = joined(n, ", ", |i| format!("(SELECT name FROM country WHERE code = 'x{i}')"));
        format!("SELECT {list} FROM customer")
    }),
    ("nested IN subqueries", 15, |n| {
        nested(n, "SELECT id FROM customer WHERE id IN (", "SELECT 1", ")")
    }),
    ("nested NOT EXISTS", 15, |n| {
        nested(n, "SELECT id FROM customer WHERE NOT EXISTS (", "SELECT 1", ")")
    }),
    ("nested derived tables", 15, |n| {
        nested(n, "SELECT id + id AS id FROM (", "SELECT id FROM customer", ") d")
    }),
    ("nested BETWEEN", 60, |n| {
        let test = nested(n, "(", "id", " BETWEEN 0 AND 1)");
        format!("SELECT {test} FROM customer")
    }),
    ("nested CASE", 30, |n| {
        let test = nested(n, "(CASE ", "id", " WHEN 0 THEN 1 WHEN 1 THEN 2 END)");
        format!("SELECT {test} FROM customer")
    }),
    ("nested NULLIF", 60, |n| {
        let test = nested(n, "NULLIF(", "id", ", 1)");
        format!("SELECT {test} FROM customer")
    }),
    ("nested row comparisons", 60, |n| {
        let test = nested(n, "((", "id", ", 2) < (1, 2))");
        format!("SELECT {test} FROM customer")
    }),
    ("doubling common tables", 30, |n| {
        doubling(n, |before| format!("SELECT a.x FROM {before} a, {before} b"))
    }),
    ("doubling unions", 15, |n| {
        doubling(n, |before| format!("SELECT x FROM {before} UNION SELECT x FROM {before}"))
    }),
];

#[test]
fn work_and_memory_grow_no_faster_than_the_statement() {
    with_session_stack(|| {
        let database = shop();
        let mut wrong = Vec::new();
        for (name, size, family) in FAMILIES {
            let (once, twice) =
                match (work(&database, &family(*size)), work(&database, &family(2 * size))) {
                    (Ok(once), Ok(twice)) => (once, twice),
                    (once, twice) => {
                        wrong.push(format!("{name}: {once:?} -> {twice:?}"));
                        continue;
                    }
                };
            // Nesting may make it quadratic in the depth, which the limits on depth keep small.
            let most = if *size <= 60 { 4.5 } else { 2.5 };
            let growth = |one: u64, two: u64| two as f64 / one.max(1) as f64;
            let (steps, bytes) = (growth(once.0, twice.0), growth(once.1, twice.1));
            if steps > most || bytes > most {
                wrong.push(format!("{name}: {once:?} -> {twice:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}

#[test]
fn what_is_too_much_is_refused_in_mysqls_words() {
    with_session_stack(|| {
        let database = shop();
        for number in 0..10 {
            let before = match number {
                0 => "customer".to_owned(),
                _ => format!("v{}", number - 1),
            };
            database.ddl(&format!(
                "CREATE VIEW v{number} AS SELECT a.id FROM {before} a JOIN {before} b ON a.id = b.id"
            ));
        }
        let tables = |count| joined(count, ", ", |i| format!("customer t{i}"));
        let long = 100_000;
        for (text, code) in [
            (format!("SELECT 1 FROM {}", tables(61)), 0),
            (format!("SELECT 1 FROM {}", tables(62)), 1116),
            (nested(63, "SELECT (", "SELECT 1", ")"), 0),
            (nested(64, "SELECT (", "SELECT 1", ")"), 1473),
            ("SELECT COUNT(*) FROM v8".to_owned(), 0),
            ("SELECT COUNT(*) FROM v9 a JOIN v9 b ON a.id = b.id".to_owned(), 4169),
            (format!("SELECT {}", nested(long, "(", "1", ")")), 1436),
            (format!("SELECT {}", nested(long, "NOT ", "1", "")), 1436),
            (format!("SELECT {}", nested(long, "ABS(", "1", ")")), 1436),
            (format!("SELECT {}", joined(long, "+", |_| "1".to_owned())), 1436),
            (format!("SELECT {}", joined(long, " XOR ", |_| "1".to_owned())), 0),
        ] {
            let answered = work(&database, &text).err().map_or(0, |error| error.code);
            assert_eq!(answered, code, "{}", &text[..text.len().min(80)]);
        }
    });
}

#[test]
fn a_statement_ends_while_it_is_parsed_and_while_it_is_planned() {
    let database = shop();
    let cancelled = std::sync::atomic::AtomicBool::new(true);
    let text = format!("SELECT {}", joined(10_000, ", ", |i| format!("{i} AS c{i}")));
    let mode = grammar::Mode::default();
    let parsed = grammar::parse_watched(&text, mode, &Watch::new(&cancelled));
    assert_eq!(parsed.unwrap_err().code, 1317);
    let statement = grammar::parse(&text, mode).unwrap().statement;
    let watch = Watch::new(&cancelled);
    let context = PlanContext { watch, ..database.context() };
    assert_eq!(plan_statement(&statement, &context).unwrap_err().code, 1317);
    let watch = Watch::default().with_memory(256 << 10);
    let context = PlanContext { watch, ..database.context() };
    assert_eq!(plan_statement(&statement, &context).unwrap_err().code, 1041);
}
