//! Trees as text.

use super::super::ast::Statement;
use super::super::{Mode, parse, parse_expression, render, render_query};
use super::{DML, statements};
use expect_test::expect;

fn rendered(text: &str) -> String {
    render(&parse_expression(text, Mode::default()).unwrap())
}

#[test]
fn operators_stand_in_parentheses_and_names_in_backquotes() {
    let texts = [
        "a + b * 2 > f(x) AND NOT c",
        "t.`x``y` LIKE 'a\\'b\\\\' ESCAPE '|'",
        "- - a",
        "-1",
        "NOW() - INTERVAL 1 DAY_HOUR",
        "a -> '$.x' ->> '$.y'",
        "(a, b) IN ((1, 2))",
        "CAST(a AS CHAR(3) CHARACTER SET latin1)",
        "CASE a WHEN 1 THEN 'x' ELSE NULL END",
        "_latin1'a' COLLATE latin1_bin",
        "@a := @@global.x",
        "@'a\0b'",
        "EXISTS (SELECT a, 1 FROM t u JOIN v USING (id))",
        "COUNT(DISTINCT a)",
    ];
    let lines: Vec<_> = texts
        .iter()
        .filter_map(|text| parse_expression(text, Mode::default()).ok())
        .map(|expr| render(&expr))
        .collect();
    expect![[r#"
        (((`a` + (`b` * 2)) > f(`x`)) and (not `c`))
        (`t`.`x``y` like 'a''b\\' escape '|')
        (-((-(`a`))))
        (-1)
        (NOW() - interval 1 day_hour)
        ((`a`,`b`) in ((1,2)))
        cast(`a` as char(3) character set `latin1`)
        (case `a` when 1 then 'x' else null end)
        (_latin1 'a' collate `latin1_bin`)
        (@`a` := @@global.`x`)
        @'a\0b'
        exists(select `a`,1 from `t` `u` join `v` using (`id`))
        COUNT(distinct `a`)"#]]
    .assert_eq(&lines.join("\n"));
}

/// Queries parse back; rendering the result gives the same text.
#[test]
fn queries_render_to_themselves() {
    let mut count = 0;
    for text in statements(DML) {
        let Ok(Statement::Select(select)) =
            parse(text, Mode::default()).map(|parsed| parsed.statement)
        else {
            continue;
        };
        let once = render_query(&select.query);
        let again = parse(&once, Mode::default());
        let again = again.unwrap_or_else(|error| panic!("{text}\n{once}\n{error}"));
        let Statement::Select(again) = again.statement else { panic!("{once}") };
        assert_eq!(render_query(&again.query), once, "{text}");
        count += 1;
    }
    assert!(count > 100, "{count}");
}

#[test]
fn a_minus_before_a_minus_is_no_comment() {
    assert_eq!(rendered("-(-1)"), rendered(&rendered("-(-1)")));
}

#[test]
fn no_part_of_a_system_variables_name_has_a_point() {
    let refused = parse_expression("@@`.H`.H", Mode::default()).unwrap_err();
    assert_eq!(refused.code, 1193);
}
