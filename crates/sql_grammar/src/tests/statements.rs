//! Tables of accepted statements, and of refused texts.

use firn_sql_types::error::SqlError;
use firn_sql_types::watch::Watch;

use super::super::ast::{SelectItem, SetExpr, Statement};
use super::super::{Mode, Parsed, parse, parse_apart};
use super::{DDL, DML, SESSION, statements};

#[track_caller]
fn takes_all(file: &'static str) {
    let refused: Vec<_> = statements(file)
        .filter_map(|text| parse(text, Mode::default()).err().map(|error| (text, error.message)))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn definitions_are_taken() {
    takes_all(DDL);
}

#[test]
fn statements_of_session_server_and_accounts_are_taken() {
    takes_all(SESSION);
}

#[test]
fn reads_and_changes_of_rows_are_taken() {
    takes_all(DML);
}

/// Each text is followed by MySQL's text after `near`, and the line.
#[test]
fn what_is_no_statement_is_refused_where_it_goes_wrong() {
    let mut lines = include_str!("refused.txt").lines();
    let mut wrong = Vec::new();
    while let (Some(text), Some(expected)) = (lines.next(), lines.next()) {
        let (near, line) = expected.strip_prefix("=> ").unwrap().rsplit_once(' ').unwrap();
        let expected = format!("use near {near} at line {line}");
        let text = text.replace("\\n", "\n");
        match parse(&text, Mode::default()) {
            Err(error) if error.code == 1064 && error.message.ends_with(&expected) => {}
            Err(error) => wrong.push((text, expected, error.message)),
            Ok(parsed) => wrong.push((text, expected, format!("{:?}", parsed.statement))),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn refusal(text: &str) -> SqlError {
    parse(text, Mode::default()).unwrap_err()
}

#[test]
fn a_text_without_a_statement_is_an_empty_query() {
    for text in ["", "  ", ";", "-- nothing", "/* nothing */ ;"] {
        assert_eq!(refusal(text).code, 1065, "{text}");
    }
}

#[test]
fn a_derived_table_needs_a_name() {
    assert_eq!(refusal("SELECT * FROM (SELECT 1)").code, 1248);
}

#[test]
fn stored_programs_are_named_and_refused_later() {
    let text = "CREATE DEFINER=`a`@`b` PROCEDURE p() BEGIN SELECT 1; END";
    let parsed = parse(text, Mode::default()).unwrap();
    assert_eq!(parsed.statement, Statement::Unsupported { what: "CREATE PROCEDURE" });
}

#[test]
fn parameters_are_counted() {
    let text = "INSERT INTO t VALUES (?, ?) ON DUPLICATE KEY UPDATE a = ?, b = '?' -- ?";
    assert_eq!(parse(text, Mode::default()).unwrap().parameter_count, 3);
    let text = "WITH c AS (SELECT ?) SELECT * FROM c WHERE a = ? LIMIT ?";
    assert_eq!(parse(text, Mode::default()).unwrap().parameter_count, 3);
}

#[test]
fn nesting_is_refused_before_the_stack_ends() {
    super::with_session_stack(refuses_nesting);
}

fn refuses_nesting() {
    for (begin, middle, end) in [
        ("(1 + ", "1", ")"),
        ("-", "1", ""),
        ("NOT ", "1", ""),
        ("f(", "1", ")"),
        ("CASE WHEN ", "1", " THEN 1 END"),
        ("(SELECT ", "1", ")"),
        ("EXISTS (SELECT * FROM t WHERE ", "1", ")"),
        ("(SELECT * FROM (SELECT ", "1", ") d)"),
    ] {
        let depth = 100_000;
        let text = format!("SELECT {}{middle}{}", begin.repeat(depth), end.repeat(depth));
        assert_eq!(refusal(&text).code, 1436, "{begin}");
        let depth = if begin.contains("SELECT") { 30 } else { 300 };
        let text = format!("SELECT {}{middle}{}", begin.repeat(depth), end.repeat(depth));
        parse(&text, Mode::default()).unwrap();
    }
    for (begin, middle, end) in [
        ("SELECT * FROM t WHERE ", "1", ""),
        ("SELECT * FROM t WHERE ", "a, b", " = (1, 2)"),
        ("SELECT * FROM t WHERE 1 + ", "SELECT 1", " = 2"),
        ("SELECT * FROM t WHERE 1 IN ", "SELECT 1", ""),
        ("SELECT * FROM t WHERE ", "a = 1 OR ((b))", " AND c"),
        ("", "SELECT 1", " UNION SELECT 2"),
    ] {
        let nested = |depth: usize| {
            let text = format!("{begin}{}{middle}{}{end}", "(".repeat(depth), ")".repeat(depth));
            parse(&text, Mode::default()).map(|parsed| format!("{:?}", parsed.statement))
        };
        assert_eq!(nested(50_000).unwrap(), nested(1).unwrap(), "{begin}{middle}{end}");
        assert_eq!(nested(100_000).unwrap_err().code, 1436, "{begin}{middle}{end}");
    }
    for (begin, opens) in
        [("SELECT * FROM ", "("), ("SELECT ", "("), ("", "("), ("SELECT * FROM ", "{ OJ ")]
    {
        let text = format!("{begin}{}", opens.repeat(100_000));
        assert!(matches!(refusal(&text).code, 1064 | 1436));
    }
}

/// As deep as MySQL 9.7 takes them, with its default memory for parsing and its default stack:
/// chains of `AND` and `OR`, and `NOT`, 10,000 levels, and other operators 2,000.
#[test]
fn conditions_nest_as_deeply_as_in_mysql() {
    super::with_session_stack(nests_conditions);
}

fn nests_conditions() {
    for (begin, end, depth) in [
        ("(a AND ", ")", 12_000),
        ("(a OR ", ")", 12_000),
        ("(a XOR ", ")", 12_000),
        ("(", " AND a)", 12_000),
        ("(a AND (b OR ", "))", 1_400),
        ("NOT ", "", 12_000),
        ("NOT (", ")", 12_000),
        ("(a AND NOT (b OR c OR ", "))", 700),
        ("(1 + ", ")", 2_000),
        ("(1 = ", ")", 2_000),
        ("((", ") IS NULL)", 1_300),
        ("(a BETWEEN 0 AND ", ")", 1_700),
    ] {
        let text = format!("SELECT {}b{}", begin.repeat(depth), end.repeat(depth));
        parse(&text, Mode::default()).unwrap_or_else(|error| panic!("{begin}: {error}"));
    }
}

/// Chains in the parentheses of a chain of the same operator join it; nothing else does.
#[test]
fn chains_join_chains_of_the_same_operator() {
    let tree = |text: &str| {
        let parsed = parse(&format!("SELECT * FROM t WHERE {text}"), Mode::default()).unwrap();
        format!("{:?}", parsed.statement)
    };
    for (one, other) in [
        ("a AND (b AND c)", "a AND b AND c"),
        ("(a OR b) OR (c OR (d OR e))", "a OR b OR c OR d OR e"),
        ("((a XOR b)) XOR c", "a XOR b XOR c"),
        ("(a AND b)", "a AND b"),
        ("NOT NOT NOT a", "NOT a"),
        ("NOT (NOT (NOT (NOT (a OR b))))", "NOT (NOT (a OR b))"),
        ("NOT a = b AND c", "(NOT (a = b)) AND c"),
        ("a OR b AND NOT c XOR d", "a OR ((b AND (NOT c)) XOR d)"),
        ("(a) = b AND (c, d) = (1, 2)", "((a) = (b)) AND ((c, d) = (1, 2))"),
        ("(a) IN (1) AND (b) IS NULL", "(a IN (1)) AND (b IS NULL)"),
        ("((SELECT 1) UNION SELECT 2) AND a", "(((SELECT 1) UNION SELECT 2)) AND (a)"),
        ("(a OR b) COLLATE c AND d", "((a OR b) COLLATE c) AND d"),
        ("(a BETWEEN b AND c) AND d", "a BETWEEN b AND c AND d"),
    ] {
        assert_eq!(tree(one), tree(other), "{one}");
    }
    for (one, other) in [
        ("a AND (b OR c)", "a AND b OR c"),
        ("NOT (a AND b)", "NOT a AND b"),
        ("NOT NOT a", "a"),
        ("(a AND b) = c", "a AND b = c"),
    ] {
        assert_ne!(tree(one), tree(other), "{one}");
    }
    for text in ["(a AND b", "a AND", "(a) b AND c", "NOT", "() AND a", "(a AND) b"] {
        assert_eq!(refusal(&format!("SELECT * FROM t WHERE {text}")).code, 1064, "{text}");
    }
}

#[test]
fn long_chains_are_shallow_or_refused() {
    super::with_session_stack(refuses_long_chains);
}

fn refuses_long_chains() {
    let chain = |operator: &str, length: usize| {
        let operands = vec!["a = 1"; length].join(operator);
        parse(&format!("SELECT * FROM t WHERE {operands}"), Mode::default())
    };
    chain(" OR ", 20_000).unwrap();
    chain(" AND ", 20_000).unwrap();
    chain(" XOR ", 20_000).unwrap();
    assert!(chain(" + ", 20_000).is_err());
    let numbers = vec!["1"; 20_000].join(", ");
    parse(&format!("SELECT * FROM t WHERE a IN ({numbers})"), Mode::default()).unwrap();
    let sum = vec!["1"; 2_900].join(" + ");
    parse(&format!("SELECT {sum}"), Mode::default()).unwrap();
    let unions = vec!["SELECT 1"; 5_000].join(" UNION ALL ");
    parse(&unions, Mode::default()).unwrap();
    let mixed = vec!["SELECT 1 UNION SELECT 2"; 5_000].join(" UNION ALL ");
    assert_eq!(refusal(&mixed).code, 1436);
    let joins = vec!["t"; 50_000].join(" JOIN ");
    assert!(parse(&format!("SELECT * FROM {joins}"), Mode::default()).is_err());
}

#[test]
fn a_column_is_named_after_its_text_up_to_255_bytes() {
    let name = |text: &str| {
        let parsed = parse(text, Mode::default()).unwrap();
        let Statement::Select(select) = parsed.statement else { panic!() };
        let SetExpr::Select(select) = *select.query.body else { panic!() };
        let (SelectItem::NamedAfterText { name, .. } | SelectItem::Aliased { alias: name, .. }) =
            &select.projection[0]
        else {
            panic!()
        };
        (name.clone(), parsed.names_show_parameters)
    };
    assert_eq!(name("SELECT '\\n  x'").0, "x");
    assert_eq!(name(&format!("SELECT '{}'", "x".repeat(17_000_000))).0, "x".repeat(255));
    assert_eq!(name(&format!("SELECT '{}'", "é".repeat(300))).0, "é".repeat(127));
    assert_eq!(
        name("SELECT (SELECT a FROM t LIMIT ?)"),
        ("(SELECT a FROM t LIMIT ?)".into(), true)
    );
    assert!(!name("SELECT (SELECT a FROM t LIMIT ?) AS b").1);
    assert!(!name("SELECT a + 1 FROM t WHERE b = ?").1);
}

#[test]
fn long_strings_are_held_apart_where_plans_are_made() {
    let long = "it''s ".repeat(20_000);
    let apart = |text: String| parse_apart(&text, Mode::default(), &Watch::default()).unwrap();
    let plain = |text: &str| parse(text, Mode::default()).unwrap();
    let parsed = apart(format!("SELECT '{long}', 'a', LENGTH('{long}')"));
    let said = long.replace("''", "'");
    assert_eq!(parsed.long_texts, [said.as_str().into(), said.as_str().into()]);
    assert_eq!(parsed.parameter_count, 0);
    // Names do not show it.
    let names = |parsed: &Parsed| match &parsed.statement {
        Statement::Select(select) => format!("{:?}", select.query.body).matches("it's").count(),
        _ => 0,
    };
    assert!(names(&parsed) < 100, "{}", names(&parsed));
    // Joined strings, and those that are more than a value, are in the tree; so are all of other
    // statements.
    for text in [
        format!("SELECT '{long}' 'a'"),
        format!("SELECT 'a' LIKE 'b' ESCAPE '{long}'"),
        format!("CREATE TABLE t (a INT COMMENT '{long}')"),
        format!("CREATE VIEW v AS SELECT '{long}'"),
    ] {
        assert_eq!(apart(text.clone()), plain(&text));
    }
}
