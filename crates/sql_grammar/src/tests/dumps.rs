//! The trees of tricky forms.

use super::super::ast::{SelectItem, SetExpr, Statement};
use super::super::{Mode, parse, parse_expression, render};
use expect_test::{Expect, expect};

/// Each expression with the parentheses that the tree has.
fn shapes(texts: &[&str], mode: Mode, expected: &Expect) {
    let lines: Vec<_> = texts
        .iter()
        .map(|text| match parse_expression(text, mode) {
            Ok(expr) => format!("{text}\n    {}", render(&expr)),
            Err(error) => format!("{text}\n    {}", error.message),
        })
        .collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn operators_bind_as_mysql_says() {
    let texts = [
        "a OR b XOR c AND NOT d = e",
        "a || b && c",
        "NOT a = b IS NULL",
        "NOT a IN (1) AND b",
        "! a = b",
        "a = b = c",
        "a = b <=> c IS TRUE",
        "a BETWEEN b AND c AND d",
        "a BETWEEN 1 AND 2 OR b",
        "a LIKE b AND c",
        "a NOT LIKE b | c",
        "a = b IN (1)",
        "a | b & c << d + e * f ^ g",
        "a - b - c",
        "a DIV b MOD c % d",
        "- a ^ b",
        "- a + b",
        "~a + - + b",
        "BINARY a = 'x'",
        "a COLLATE utf8mb4_bin = b",
        "- a COLLATE utf8mb4_bin",
        "a + INTERVAL 1 DAY - INTERVAL b + 1 HOUR",
        "INTERVAL 1 DAY + a",
        "@a := b = c OR d",
        "1 + @a := 2 + 3",
        "a IS NULL IS NOT NULL IS TRUE",
        "a SOUNDS LIKE b",
        "a MEMBER OF (b) AND c",
        "a NOT REGEXP b || c",
        "CASE a = b WHEN c OR d THEN e END + 1",
        "a > ALL (SELECT 1) AND b",
        "MOD(a, b) MOD c",
        "a.b.c = 1",
        "COUNT (*)",
        "a IN (b, c) = d",
    ];
    shapes(
        &texts,
        Mode::default(),
        &expect![[r#"
        a OR b XOR c AND NOT d = e
            (`a` or (`b` xor (`c` and (not (`d` = `e`)))))
        a || b && c
            (`a` or (`b` and `c`))
        NOT a = b IS NULL
            (not ((`a` = `b`) is null))
        NOT a IN (1) AND b
            ((not (`a` in (1))) and `b`)
        ! a = b
            ((!`a`) = `b`)
        a = b = c
            ((`a` = `b`) = `c`)
        a = b <=> c IS TRUE
            (((`a` = `b`) <=> `c`) is true)
        a BETWEEN b AND c AND d
            ((`a` between `b` and `c`) and `d`)
        a BETWEEN 1 AND 2 OR b
            ((`a` between 1 and 2) or `b`)
        a LIKE b AND c
            ((`a` like `b`) and `c`)
        a NOT LIKE b | c
            (`a` not like (`b` | `c`))
        a = b IN (1)
            (`a` = (`b` in (1)))
        a | b & c << d + e * f ^ g
            (`a` | (`b` & (`c` << (`d` + (`e` * (`f` ^ `g`))))))
        a - b - c
            ((`a` - `b`) - `c`)
        a DIV b MOD c % d
            (((`a` div `b`) % `c`) % `d`)
        - a ^ b
            ((-(`a`)) ^ `b`)
        - a + b
            ((-(`a`)) + `b`)
        ~a + - + b
            ((~`a`) + (-((+`b`))))
        BINARY a = 'x'
            (cast(`a` as binary) = 'x')
        a COLLATE utf8mb4_bin = b
            ((`a` collate `utf8mb4_bin`) = `b`)
        - a COLLATE utf8mb4_bin
            (-((`a` collate `utf8mb4_bin`)))
        a + INTERVAL 1 DAY - INTERVAL b + 1 HOUR
            ((`a` + interval 1 day) - interval (`b` + 1) hour)
        INTERVAL 1 DAY + a
            (interval 1 day + `a`)
        @a := b = c OR d
            (@`a` := ((`b` = `c`) or `d`))
        1 + @a := 2 + 3
            (1 + (@`a` := (2 + 3)))
        a IS NULL IS NOT NULL IS TRUE
            (((`a` is null) is not null) is true)
        a SOUNDS LIKE b
            (soundex(`a`) = soundex(`b`))
        a MEMBER OF (b) AND c
            ((`a` member of (`b`)) and `c`)
        a NOT REGEXP b || c
            ((`a` not regexp `b`) or `c`)
        CASE a = b WHEN c OR d THEN e END + 1
            ((case (`a` = `b`) when (`c` or `d`) then `e` end) + 1)
        a > ALL (SELECT 1) AND b
            ((`a` > all (select 1)) and `b`)
        MOD(a, b) MOD c
            (MOD(`a`,`b`) % `c`)
        a.b.c = 1
            (`a`.`b`.`c` = 1)
        COUNT (*)
            COUNT(*)
        a IN (b, c) = d
            ((`a` in (`b`,`c`)) = `d`)"#]],
    );
}

#[test]
fn modes_change_what_a_text_says() {
    let pipes = Mode { pipes_as_concat: true, ..Mode::default() };
    shapes(
        &["a || b = c", "a || b ^ c", "- a || b"],
        pipes,
        &expect![[r#"
        a || b = c
            ((`a` || `b`) = `c`)
        a || b ^ c
            ((`a` || `b`) ^ `c`)
        - a || b
            ((-(`a`)) || `b`)"#]],
    );
    let high = Mode { high_not_precedence: true, ..Mode::default() };
    shapes(
        &["NOT a = b", "1 = NOT a", "NOT a BETWEEN 1 AND 2"],
        high,
        &expect![[r#"
        NOT a = b
            ((not `a`) = `b`)
        1 = NOT a
            (1 = (not `a`))
        NOT a BETWEEN 1 AND 2
            ((not `a`) between 1 and 2)"#]],
    );
    let ansi = Mode { ansi_quotes: true, no_backslash_escapes: true, ..Mode::default() };
    shapes(
        &["\"a\" = 'b\\'", "\"a\"\"b\".c"],
        ansi,
        &expect![[r#"
        "a" = 'b\'
            (`a` = 'b\\')
        "a""b".c
            `a"b`.`c`"#]],
    );
}

#[test]
fn forms_with_a_grammar_of_their_own_become_plain_ones() {
    let texts = [
        "SUBSTRING(a FROM 1 FOR 2)",
        "POSITION(a IN b)",
        "ADDDATE(a, 3)",
        "SUBDATE(a, INTERVAL 1 WEEK)",
        "TIMESTAMPADD(SQL_TSI_MONTH, 1, a)",
        "TIMESTAMPDIFF(DAY, a, b)",
        "CHAR(65 USING utf8mb4)",
        "GET_FORMAT(TIMESTAMP, 'ISO')",
        "CONVERT(a, DECIMAL(4, 1))",
        "N'x'",
        "0xabc",
        "INTERVAL(1, 2)",
        "CURRENT_TIMESTAMP",
        "{fn UCASE(a)}",
        "(SELECT 1)",
        "((SELECT 1) UNION (SELECT 2) LIMIT 1)",
        "'a' \"b\" 'c'",
        "'50\\%\\_\\x'",
    ];
    shapes(
        &texts,
        Mode::default(),
        &expect![[r#"
        SUBSTRING(a FROM 1 FOR 2)
            SUBSTRING(`a`,1,2)
        POSITION(a IN b)
            locate(`a`,`b`)
        ADDDATE(a, 3)
            date_add(`a`,interval 3 day)
        SUBDATE(a, INTERVAL 1 WEEK)
            date_sub(`a`,interval 1 week)
        TIMESTAMPADD(SQL_TSI_MONTH, 1, a)
            date_add(`a`,interval 1 month)
        TIMESTAMPDIFF(DAY, a, b)
            TIMESTAMPDIFF(DAY,`a`,`b`)
        CHAR(65 USING utf8mb4)
            convert(CHAR(65) using `utf8mb4`)
        GET_FORMAT(TIMESTAMP, 'ISO')
            GET_FORMAT('DATETIME','ISO')
        CONVERT(a, DECIMAL(4, 1))
            cast(`a` as decimal(4,1))
        N'x'
            _utf8mb3 'x'
        0xabc
            x'0ABC'
        INTERVAL(1, 2)
            INTERVAL(1,2)
        CURRENT_TIMESTAMP
            CURRENT_TIMESTAMP()
        {fn UCASE(a)}
            UCASE(`a`)
        (SELECT 1)
            (select 1)
        ((SELECT 1) UNION (SELECT 2) LIMIT 1)
            ((select 1 AS `1`) union (select 2 AS `2`) limit 1)
        'a' "b" 'c'
            'abc'
        '50\%\_\x'
            '50\\%\\_x'"#]],
    );
}

/// Tables and joins of `SELECT * FROM …`.
#[test]
fn joins_nest_as_mysql_nests_them() {
    let texts = [
        "a JOIN b JOIN c ON x ON y",
        "a JOIN b JOIN c ON x",
        "a LEFT JOIN b LEFT JOIN c ON x ON y JOIN d",
        "a LEFT JOIN (b, c) ON x, d",
        "((a JOIN b) JOIN c)",
        "(((a)))",
        "((SELECT 1) x JOIN ((SELECT 2) UNION (SELECT 3)) y)",
        "a NATURAL LEFT JOIN b STRAIGHT_JOIN c ON x",
    ];
    let lines: Vec<_> = texts
        .iter()
        .map(|text| {
            let parsed = parse(&format!("SELECT * FROM {text}"), Mode::default()).unwrap();
            let Statement::Select(select) = parsed.statement else { panic!("{text}") };
            format!("{text}\n    {}", &super::super::render_query(&select.query)[14..])
        })
        .collect();
    expect![[r#"
        a JOIN b JOIN c ON x ON y
            `a` join (`b` join `c` on `x`) on `y`
        a JOIN b JOIN c ON x
            `a` join `b` join `c` on `x`
        a LEFT JOIN b LEFT JOIN c ON x ON y JOIN d
            `a` left join (`b` left join `c` on `x`) on `y` join `d`
        a LEFT JOIN (b, c) ON x, d
            `a` left join (`b` join `c`) on `x`,`d`
        ((a JOIN b) JOIN c)
            ((`a` join `b`) join `c`)
        (((a)))
            `a`
        ((SELECT 1) x JOIN ((SELECT 2) UNION (SELECT 3)) y)
            ((select 1 AS `1`) `x` join ((select 2 AS `2`) union (select 3 AS `3`)) `y`)
        a NATURAL LEFT JOIN b STRAIGHT_JOIN c ON x
            `a` natural left join `b` straight_join `c` on `x`"#]]
    .assert_eq(&lines.join("\n"));
}

fn dump(text: &str) -> String {
    format!("{:#?}", parse(text, Mode::default()).unwrap().statement)
}

#[test]
fn a_table_with_most_of_what_there_is() {
    let text = "CREATE TABLE d.t (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, \
                n DECIMAL(10,2) DEFAULT -1.5, s VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_bin, \
                g INT AS (id + 1) STORED, PRIMARY KEY (id), UNIQUE KEY u (s(3) DESC, (n + 1)), \
                CONSTRAINT f FOREIGN KEY (n) REFERENCES p (m) ON DELETE CASCADE, CHECK (n > 0)) \
                ENGINE=InnoDB DEFAULT CHARSET=utf8mb4";
    expect![[r#"
        CreateTable(
            CreateTable {
                temporary: false,
                if_not_exists: false,
                table: TableName {
                    schema: Some(
                        "d",
                    ),
                    name: "t",
                },
                elements: [
                    Column(
                        ColumnDefinition {
                            name: "id",
                            column_type: Integer(
                                Big,
                                None,
                                NumberAttributes {
                                    unsigned: true,
                                    zerofill: false,
                                },
                            ),
                            nullable: Some(
                                false,
                            ),
                            default: None,
                            on_update_now: None,
                            auto_increment: true,
                            primary_key: false,
                            unique: false,
                            generated: None,
                            visible: None,
                            comment: None,
                            checks: [],
                            references: None,
                            srid: None,
                            ignored: [],
                            deprecated: [],
                        },
                    ),
                    Column(
                        ColumnDefinition {
                            name: "n",
                            column_type: Decimal(
                                Some(
                                    10,
                                ),
                                Some(
                                    2,
                                ),
                                NumberAttributes {
                                    unsigned: false,
                                    zerofill: false,
                                },
                            ),
                            nullable: None,
                            default: Some(
                                Literal(
                                    UnaryOp {
                                        op: Minus,
                                        expr: Value(
                                            Number(
                                                "1.5",
                                            ),
                                        ),
                                    },
                                ),
                            ),
                            on_update_now: None,
                            auto_increment: false,
                            primary_key: false,
                            unique: false,
                            generated: None,
                            visible: None,
                            comment: None,
                            checks: [],
                            references: None,
                            srid: None,
                            ignored: [],
                            deprecated: [],
                        },
                    ),
                    Column(
                        ColumnDefinition {
                            name: "s",
                            column_type: Varchar(
                                9,
                                TextAttributes {
                                    charset: Some(
                                        "latin1",
                                    ),
                                    collation: Some(
                                        "latin1_bin",
                                    ),
                                    binary: false,
                                },
                            ),
                            nullable: None,
                            default: None,
                            on_update_now: None,
                            auto_increment: false,
                            primary_key: false,
                            unique: false,
                            generated: None,
                            visible: None,
                            comment: None,
                            checks: [],
                            references: None,
                            srid: None,
                            ignored: [],
                            deprecated: [],
                        },
                    ),
                    Column(
                        ColumnDefinition {
                            name: "g",
                            column_type: Integer(
                                Int,
                                None,
                                NumberAttributes {
                                    unsigned: false,
                                    zerofill: false,
                                },
                            ),
                            nullable: None,
                            default: None,
                            on_update_now: None,
                            auto_increment: false,
                            primary_key: false,
                            unique: false,
                            generated: Some(
                                Generated {
                                    expression: BinaryOp {
                                        left: Identifier(
                                            "id",
                                        ),
                                        op: Plus,
                                        right: Value(
                                            Number(
                                                "1",
                                            ),
                                        ),
                                    },
                                    stored: true,
                                },
                            ),
                            visible: None,
                            comment: None,
                            checks: [],
                            references: None,
                            srid: None,
                            ignored: [],
                            deprecated: [],
                        },
                    ),
                    Index(
                        IndexDefinition {
                            kind: Primary,
                            name: None,
                            if_not_exists: false,
                            algorithm: None,
                            parts: [
                                KeyPart {
                                    source: Column {
                                        name: "id",
                                        prefix_length: None,
                                    },
                                    descending: false,
                                },
                            ],
                            visible: None,
                            comment: None,
                            parser: None,
                            ignored: [],
                        },
                    ),
                    Index(
                        IndexDefinition {
                            kind: Unique,
                            name: Some(
                                "u",
                            ),
                            if_not_exists: false,
                            algorithm: None,
                            parts: [
                                KeyPart {
                                    source: Column {
                                        name: "s",
                                        prefix_length: Some(
                                            3,
                                        ),
                                    },
                                    descending: true,
                                },
                                KeyPart {
                                    source: Expression(
                                        BinaryOp {
                                            left: Identifier(
                                                "n",
                                            ),
                                            op: Plus,
                                            right: Value(
                                                Number(
                                                    "1",
                                                ),
                                            ),
                                        },
                                    ),
                                    descending: false,
                                },
                            ],
                            visible: None,
                            comment: None,
                            parser: None,
                            ignored: [],
                        },
                    ),
                    ForeignKey(
                        ForeignKey {
                            name: Some(
                                "f",
                            ),
                            columns: [
                                "n",
                            ],
                            references: References {
                                table: TableName {
                                    schema: None,
                                    name: "p",
                                },
                                columns: [
                                    "m",
                                ],
                                on_delete: Some(
                                    Cascade,
                                ),
                                on_update: None,
                            },
                        },
                    ),
                    Check(
                        Check {
                            name: None,
                            expression: BinaryOp {
                                left: Identifier(
                                    "n",
                                ),
                                op: Gt,
                                right: Value(
                                    Number(
                                        "0",
                                    ),
                                ),
                            },
                            enforced: true,
                        },
                    ),
                ],
                options: [
                    Engine(
                        "InnoDB",
                    ),
                    Charset(
                        "utf8mb4",
                    ),
                ],
                partitioning: None,
                source: None,
            },
        )"#]]
    .assert_eq(&dump(text));
}

#[test]
fn changes_of_several_tables() {
    expect![[r#"
        Delete(
            Delete {
                with: None,
                low_priority: false,
                quick: false,
                ignore: false,
                targets: [
                    TableName {
                        schema: None,
                        name: "a",
                    },
                    TableName {
                        schema: Some(
                            "d",
                        ),
                        name: "b",
                    },
                ],
                tables: [
                    TableWithJoins {
                        relation: Table {
                            name: TableName {
                                schema: None,
                                name: "a",
                            },
                            alias: None,
                            partitions: [],
                            index_hints: [],
                        },
                        joins: [
                            Join {
                                relation: Table {
                                    name: TableName {
                                        schema: Some(
                                            "d",
                                        ),
                                        name: "b",
                                    },
                                    alias: None,
                                    partitions: [],
                                    index_hints: [],
                                },
                                kind: Inner,
                                constraint: None,
                            },
                        ],
                    },
                ],
                selection: Some(
                    BinaryOp {
                        left: CompoundIdentifier(
                            [
                                "a",
                                "x",
                            ],
                        ),
                        op: Eq,
                        right: CompoundIdentifier(
                            [
                                "b",
                                "x",
                            ],
                        ),
                    },
                ),
                order_by: [],
                limit: None,
                hints: [],
            },
        )"#]]
    .assert_eq(&dump("DELETE a, d.b FROM a JOIN d.b WHERE a.x = b.x"));
}

#[test]
fn columns_are_named_after_their_text() {
    let text = "SELECT a, t.b, a + 1, 'x', COUNT( * ), @v, 1 AS one, (SELECT 2), NULL FROM t";
    let Statement::Select(select) = parse(text, Mode::default()).unwrap().statement else {
        panic!("no query");
    };
    let SetExpr::Select(select) = *select.query.body else { panic!("no select") };
    let names: Vec<_> = select
        .projection
        .iter()
        .map(|item| match item {
            SelectItem::NamedAfterText { name, .. } => format!("true{name}"),
            SelectItem::Aliased { alias, .. } => format!("false{alias}"),
            SelectItem::Unnamed(expr) => render(expr).replace('`', ""),
            other => panic!("{other:?}"),
        })
        .collect();
    expect![[r#"
        a
        t.b
        truea + 1
        truex
        trueCOUNT( * )
        true@v
        falseone
        true(SELECT 2)
        trueNULL"#]]
    .assert_eq(&names.join("\n"));
}
