//! Statements without their literals.

use super::super::{
    LiteralKind, LiteralValue, Mode, Normalised, Parsed, normalise, parse, parse_lifted,
};
use super::{DML, statements};
use expect_test::expect;
use firn_sql_types::error::Result;
use firn_sql_types::watch::Watch;

/// The remaining text and the literals; or that the statement is refused.
fn lifted(text: &str) -> String {
    let mut out = Normalised::default();
    if !normalise(text, Mode::default(), &mut out) {
        return format!("{text}\n  refused");
    }
    let literals: Vec<_> = out.literals().iter().map(|literal| literal.written(text)).collect();
    format!("{}\n  {}", out.text(), literals.join(" | ")).trim_end().to_owned()
}

#[test]
fn only_values_are_lifted() {
    let texts = [
        "SELECT c FROM sbtest1 WHERE id=12345",
        "SELECT c, 1, 'x', f(2) FROM t WHERE a = 'it''s' AND b > 1.5 OR c < 1e3 AND d = 0xFF",
        "SELECT a FROM t WHERE a = ? AND b = 3 LIMIT 10, 20",
        "SELECT a, value, 5 FROM t GROUP BY 1, a + 2 HAVING COUNT(*) > 3 ORDER BY 1 LIMIT 4",
        "SELECT SUM(c) FROM t WHERE id BETWEEN 1 AND 100 AND k IN (1, 2, 3)",
        "SELECT a FROM t WHERE 1 = 1 AND b = 2",
        "SELECT a FROM t WHERE d > NOW(6) - INTERVAL 3 DAY AND ROUND(x, 2) = 4 AND e = DATE '2020-01-01'",
        "SELECT a FROM t WHERE x = (SELECT MAX(y) + 1 FROM u WHERE z = 5) AND w = _latin1'q'",
        "SELECT a FROM t WHERE a LIKE 'x%' ESCAPE '|' AND j->'$.k' = 7",
        "INSERT INTO t (a, b) VALUES (1, 'x', NOW(), NULL, -2), (3, b'1', 4) ON DUPLICATE KEY UPDATE b = VALUES(b) + 5",
        "UPDATE t SET a = a + 1, b = 'y' WHERE id = 7 ORDER BY 1 LIMIT 1",
        "DELETE FROM `t` WHERE `a` = 1 AND `b` IN ('x')",
        "REPLACE INTO t SET a = 1",
        "INSERT INTO t SELECT 1, a FROM u WHERE b = 2",
        "/* app */ SELECT a /* b */ FROM t -- c\n WHERE d = 1; -- e",
        "SELECT /*+ NO_INDEX(t) */ a FROM t WHERE b = 1",
        "SELECT a FROM t WHERE b = 'x' 'y'",
        "SELECT /*! a */ b FROM t",
        "SELECT 1; SELECT 2",
        "SHOW TABLES",
        "SELECT a FROM t WHERE b = 'x",
        "SELECT a FROM t WHERE b = 123456789012345678901",
    ];
    let lines: Vec<_> = texts.iter().map(|text| lifted(text)).collect();
    expect![[r#"
        SELECT c FROM sbtest1 WHERE id=?
          12345
        SELECT c, 1, 'x', f(2) FROM t WHERE a = ? AND b > ? OR c < ? AND d = 0xFF
          'it''s' | 1.5 | 1e3
        SELECT a FROM t WHERE a = ? AND b = ? LIMIT ?, ?
          ? | 3 | 10 | 20
        SELECT a, value, 5 FROM t GROUP BY 1, a + 2 HAVING COUNT(*) > ? ORDER BY 1 LIMIT ?
          3 | 4
        SELECT SUM(c) FROM t WHERE id BETWEEN ? AND ? AND k IN (?, ?, ?)
          1 | 100 | 1 | 2 | 3
        SELECT a FROM t WHERE 1 = 1 AND b = ?
          2
        SELECT a FROM t WHERE d > NOW(6) - INTERVAL 3 DAY AND ROUND(x, 2) = ? AND e = DATE '2020-01-01'
          4
        SELECT a FROM t WHERE x = (SELECT MAX(y) + 1 FROM u WHERE z = ?) AND w = _latin1'q'
          5
        SELECT a FROM t WHERE a LIKE ? ESCAPE '|' AND j->'$.k' = ?
          'x%' | 7
        INSERT INTO t (a, b) VALUES (?, ?, NOW(), NULL, -?), (?, b'1', ?) ON DUPLICATE KEY UPDATE b = VALUES(b) + ?
          1 | 'x' | 2 | 3 | 4 | 5
        UPDATE t SET a = a + ?, b = ? WHERE id = ? ORDER BY 1 LIMIT ?
          1 | 'y' | 7 | 1
        DELETE FROM `t` WHERE `a` = ? AND `b` IN (?)
          1 | 'x'
        REPLACE INTO t SET a = ?
          1
        INSERT INTO t SELECT 1, a FROM u WHERE b = ?
          2
        SELECT a /* b */ FROM t WHERE d = ?
          1
        SELECT /*+ NO_INDEX(t) */ a FROM t WHERE b = ?
          1
        SELECT a FROM t WHERE b = 'x' 'y'
          refused
        SELECT /*! a */ b FROM t
          refused
        SELECT 1; SELECT 2
          refused
        SHOW TABLES
          refused
        SELECT a FROM t WHERE b = 'x
          refused
        SELECT a FROM t WHERE b = 123456789012345678901"#]].assert_eq(&lines.join("\n"));
}

#[test]
fn values_are_what_the_text_says() {
    let text = "DELETE FROM t WHERE a = 12 AND b = 1.50 AND c = 2e2 AND d = 'a\\n''b' \
                AND e = 0x41400000000000000414";
    let mut out = Normalised::default();
    assert!(normalise(text, Mode::default(), &mut out));
    let values: Vec<_> =
        out.literals().iter().map(|literal| literal.value(text, Mode::default())).collect();
    let expected = [
        LiteralValue::Integer(12),
        LiteralValue::Decimal("1.50"),
        LiteralValue::Float(200.0),
        LiteralValue::Text("a\n'b".into()),
        LiteralValue::Bytes(vec![0x41, 0x40, 0, 0, 0, 0, 0, 0, 0x04, 0x14]),
    ];
    assert_eq!(values, expected);
}

#[test]
fn a_parameter_and_a_literal_of_its_kind_share_a_key() {
    let key = |text: &str, bound: LiteralKind| {
        let mut out = Normalised::default();
        assert!(normalise(text, Mode::default(), &mut out));
        out.key(|_| bound)
    };
    let literal = key("SELECT c FROM t WHERE id = 17", LiteralKind::Text);
    assert_eq!(key("SELECT c FROM t WHERE id = ?", LiteralKind::Integer), literal);
    assert_ne!(key("SELECT c FROM t WHERE id = ?", LiteralKind::Text), literal);
    assert_eq!(key("SELECT c FROM t WHERE id = 4", LiteralKind::Text), literal);
    assert_ne!(key("SELECT c FROM t WHERE id = 'x'", LiteralKind::Text), literal);
}

fn parse_normalised(text: &str) -> Result<Parsed> {
    let mut out = Normalised::default();
    assert!(normalise(text, Mode::default(), &mut out), "{text}");
    parse_lifted(text, Mode::default(), out.literals(), &Watch::default())
}

#[test]
fn a_literal_that_the_grammar_needs_is_not_lifted() {
    let text = "SELECT a FROM t WHERE b = 1 INTO OUTFILE 'f' CHARACTER SET 'utf8mb4'";
    let parsed = parse_normalised(text).unwrap();
    assert_eq!(parsed, parse(text, Mode::default()).unwrap());
    assert_eq!(parsed.parameter_count, 0);
}

#[test]
fn errors_and_names_show_the_literals() {
    let text = "SELECT a FROM t WHERE b = 17\n AND c = 'x' 5 LIMIT 1";
    let refused = parse_normalised(text).unwrap_err();
    assert!(refused.message.contains("near '5 LIMIT 1' at line 2"), "{refused}");
    for count in ["'x'", "1.5", "2e0", "3 OFFSET '4'"] {
        let text = format!("SELECT a FROM t WHERE b = 1 LIMIT {count}");
        assert_eq!(
            parse_normalised(&text).unwrap_err(),
            parse(&text, Mode::default()).unwrap_err()
        );
    }
    let parsed = parse_normalised("SELECT (SELECT a FROM t WHERE b = 17) FROM t").unwrap();
    assert!(parsed.names_show_parameters);
    let tree = format!("{:?}", parsed.statement);
    assert!(tree.contains(r#"name: "(SELECT a FROM t WHERE b = 17)""#), "{tree}");
}

/// With the literals put back in place of their parameters, the tree is the one of the whole text.
#[test]
fn literals_put_back_give_the_tree_of_the_text() {
    let mut out = Normalised::default();
    let mut lifted = 0;
    for text in statements(DML) {
        if !normalise(text, Mode::default(), &mut out) || text.contains('?') {
            continue;
        }
        let whole = format!("{:?}", parse(text, Mode::default()).unwrap().statement);
        let parsed = parse_lifted(text, Mode::default(), out.literals(), &Watch::default());
        let parsed = parsed.unwrap_or_else(|error| panic!("{text}\n{error}"));
        assert_eq!(parsed.parameter_count as usize, out.literals().len());
        let mut tree = format!("{:?}", parsed.statement);
        for (index, literal) in out.literals().iter().enumerate() {
            let written = literal.written(text);
            let value = match literal.kind {
                LiteralKind::Text => format!(
                    "Text({:?})",
                    match literal.value(text, Mode::default()) {
                        LiteralValue::Text(text) => text.into_owned(),
                        other => panic!("{other:?}"),
                    }
                ),
                LiteralKind::Hex => continue,
                _ => format!("Number({written:?})"),
            };
            tree = tree.replace(&format!("Parameter({index})"), &value);
            lifted += 1;
        }
        if !out.literals().iter().any(|literal| literal.kind == LiteralKind::Hex) {
            assert_eq!(tree, whole, "{text}\n{}", out.text());
        }
    }
    assert!(lifted > 50, "{lifted}");
}
