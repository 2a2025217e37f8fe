//! What is refused before it takes too much time, memory or stack to plan.

use super::{Database, shop};
use crate::error::Result;
use crate::grammar;
use crate::plan::{PlanContext, plan_statement};
use crate::test_support::with_session_stack;
use crate::watch::Watch;

/// Parses and plans a statement.
fn work(database: &Database, text: &str) -> Result<()> {
    let watch = Watch::default().with_memory(256 << 20);
    let statement = grammar::parse_watched(text, grammar::Mode::default(), &watch)?.statement;
    let context = PlanContext { watch, ..database.context() };
    plan_statement(&statement, &context)?;
    Ok(())
}

fn joined(count: usize, separator: &str, piece: impl Fn(usize) -> String) -> String {
    (0..count).map(piece).collect::<Vec<_>>().join(separator)
}

/// What `begin` and `end` make of a text when they are put around it so many times.
fn nested(count: usize, begin: &str, middle: &str, end: &str) -> String {
    format!("{}{middle}{}", begin.repeat(count), end.repeat(count))
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
            (format!("SELECT {}", joined(long, " XOR ", |_| "1".to_owned())), 1436),
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
