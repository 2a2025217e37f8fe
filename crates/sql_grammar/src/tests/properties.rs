//! Properties of any text.

use super::super::{Mode, Normalised, normalise, parse, parse_expression, render, split};
use super::{DDL, DML, SESSION, statements};
use proptest::prelude::*;

fn mode() -> impl Strategy<Value = Mode> {
    any::<[bool; 5]>().prop_map(|flags| Mode {
        ansi_quotes: flags[0],
        pipes_as_concat: flags[1],
        no_backslash_escapes: flags[2],
        high_not_precedence: flags[3],
        ignore_space: flags[4],
    })
}

/// Words and marks in any order.
fn soup() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "SELECT", "FROM", "WHERE", "a", "t", "(", ")", ",", ".", "*", "+", "-", "=", "1", "'x'",
        "`q`", "@v", "@@g", "?", "NOT", "IN", "AND", "OR", "BETWEEN", "LIKE", "INTERVAL", "DAY",
        "CASE", "WHEN", "THEN", "END", "INSERT", "INTO", "VALUES", "UPDATE", "SET", "DELETE",
        "CREATE", "TABLE", "INT", "ALTER", "ADD", "SHOW", "GRANT", "ON", "TO", "/*", "*/", "/*!",
        "--", ";", "JOIN", "UNION", "ORDER", "BY", "LIMIT", "CAST", "AS", "{", "}", "\\N", "0x",
        "x'4", "_utf8mb4", "->", ":=", "é", "\"", "'", "DATE", "ROW", "WITH", "EXISTS",
    ]);
    prop::collection::vec((words, prop::sample::select(vec!["", " ", " "])), 0..40)
        .prop_map(|parts| parts.into_iter().flat_map(|(word, gap)| [word, gap]).collect())
}

/// A valid statement, cut and joined with another.
fn spliced() -> impl Strategy<Value = String> {
    let all: Vec<_> = [DML, DDL, SESSION].into_iter().flat_map(statements).collect();
    let one = prop::sample::select(all);
    (one.clone(), one, any::<prop::sample::Index>(), any::<prop::sample::Index>()).prop_map(
        |(first, second, a, b)| {
            let cut = |text: &str, index: prop::sample::Index| {
                let ends: Vec<_> = text.char_indices().map(|(at, _)| at).collect();
                ends[index.index(ends.len())]
            };
            format!("{}{}", &first[..cut(first, a)], &second[cut(second, b)..])
        },
    )
}

fn read(text: &str, mode: Mode) {
    let _ = parse(text, mode);
    let mut out = Normalised::default();
    if normalise(text, mode, &mut out)
        && let (Ok(whole), Ok(parsed)) = (parse(text, mode), parse(out.text(), mode))
    {
        assert_eq!(parsed.parameter_count as usize, out.literals().len());
        assert!(whole.parameter_count <= parsed.parameter_count);
    }
    for part in split(text, mode) {
        let _ = parse(part, mode);
    }
}

/// Expressions, as text whose operators are in parentheses.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "[a-z]{1,3}".prop_map(|name| format!("`{name}`")),
        any::<u32>().prop_map(|number| number.to_string()),
        "[ -~é\\n]{0,6}".prop_map(|text: String| {
            format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
        }),
        Just("null".to_owned()),
        Just("@v".to_owned()),
        Just("@@global.x".to_owned()),
        Just("DATE'2020-01-01'".to_owned()),
    ];
    leaf.prop_recursive(6, 64, 4, |inner| {
        let operators = prop::sample::select(vec![
            "+",
            "-",
            "*",
            "/",
            "%",
            "DIV",
            "MOD",
            "=",
            "<=>",
            "<",
            "AND",
            "OR",
            "XOR",
            "|",
            "&",
            "^",
            "<<",
            ">>",
            "LIKE",
            "REGEXP",
            "NOT LIKE",
            "SOUNDS LIKE",
            "||",
            "&&",
        ]);
        prop_oneof![
            (inner.clone(), operators, inner.clone())
                .prop_map(|(left, op, right)| format!("({left}) {op} ({right})")),
            (prop::sample::select(vec!["-", "+", "~", "!", "NOT ", "BINARY "]), inner.clone())
                .prop_map(|(op, operand)| format!("{op}({operand})")),
            (inner.clone(), prop::sample::select(vec![" IS NULL", " IS NOT TRUE", " IS UNKNOWN"]))
                .prop_map(|(operand, op)| format!("({operand}){op}")),
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("f({})", items.join(","))),
            (inner.clone(), prop::collection::vec(inner.clone(), 1..3))
                .prop_map(|(left, items)| format!("({left}) NOT IN ({})", items.join(","))),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("CASE {a} WHEN {b} THEN {c} END")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("({a}) BETWEEN ({b}) AND ({c})")),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| format!("({a}) + INTERVAL ({b}) DAY_SECOND")),
            inner.clone().prop_map(|a| format!("CAST({a} AS CHAR(3) CHARACTER SET utf8mb4)")),
            inner.clone().prop_map(|a| format!("EXTRACT(YEAR FROM {a})")),
            inner.prop_map(|a| format!("({a}) COLLATE utf8mb4_bin")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_text_makes_it_panic(text in any::<String>(), mode in mode()) {
        read(&text, mode);
    }

    #[test]
    fn no_words_make_it_panic(text in soup(), mode in mode()) {
        read(&text, mode);
    }

    #[test]
    fn no_statements_cut_and_joined_make_it_panic(text in spliced(), mode in mode()) {
        read(&text, mode);
    }

    #[test]
    fn what_is_rendered_parses_to_the_same(text in expression()) {
        // `BINARY x` is rendered as the equivalent cast.
        let text = text.replace("BINARY ", "- ");
        let tree = parse_expression(&text, Mode::default()).unwrap();
        let rendered = render(&tree);
        let again = parse_expression(&rendered, Mode::default());
        prop_assert_eq!(again.as_ref(), Ok(&tree), "{}\n{}", text, rendered);
    }
}
