//! The rows of virtual tables over a node.

use std::sync::Arc;

use expect_test::expect;
use firn_api::Incarnation;
use firn_sql_grammar::ast::Query;
use firn_sql_types::EvaluationContext;
use firn_sql_types::error::{Result, SqlError};

use crate::ddl::{ExpressionBinder, QueryColumn, RowExpression};
use crate::model::{CheckModel, TableModel};
use crate::notation::literal_text;
use crate::session::{NoSessionTables, SessionCatalog};
use crate::test_support::{TestNode, number_columns, run_ddl};
use crate::virtual_schemas::VIRTUAL_SCHEMAS;
use crate::virtual_table::BoundViews;

use super::*;

struct NoExpressions;

impl ExpressionBinder for NoExpressions {
    fn bind(&self, _table: &Arc<TableModel>, text: &str) -> Result<Box<dyn RowExpression>> {
        Err(SqlError::not_supported(text))
    }

    fn bind_check(
        &self,
        _table: &Arc<TableModel>,
        check: &CheckModel,
    ) -> Result<Box<dyn RowExpression>> {
        Err(SqlError::not_supported(&check.text))
    }

    fn is_updatable(&self, _: &Query, _: &str) -> Result<bool> {
        Ok(true)
    }

    fn query_columns(&self, _query: &Query, _schema: &str) -> Result<Vec<QueryColumn>> {
        Ok(number_columns(&["one"]))
    }
}

impl BoundViews for NoExpressions {
    fn is_updatable(&self, _: &Arc<TableModel>, _: &VirtualContext<'_>) -> bool {
        true
    }
}

struct Session {
    _node: TestNode,
    catalog: SessionCatalog,
    evaluation: EvaluationContext,
}

impl Session {
    fn new(statements: &[&str]) -> Session {
        let node = TestNode::new();
        let catalog = node.session_catalog(Incarnation::default());
        let session = Session { _node: node, catalog, evaluation: EvaluationContext::default() };
        statements.iter().for_each(|text| session.run(text));
        session
    }

    fn run(&self, text: &str) {
        run_ddl(&self.catalog, &self.evaluation, &NoExpressions, text).unwrap();
    }

    /// The wanted columns of a table's rows; every row must have the table's columns.
    fn rows(&self, table: &str, hints: &[(&str, &str)], wanted: &[&str]) -> String {
        let table = find("information_schema", table).unwrap();
        let columns = table.columns();
        let number =
            |name: &str| columns.iter().position(|own| own.name == name).expect("a column");
        let hints: Vec<(u16, Datum)> = hints
            .iter()
            .map(|(column, value)| (number(column) as u16, Datum::text(*value)))
            .collect();
        let context = VirtualContext {
            catalog: &self.catalog,
            session: &NoSessionTables,
            evaluation: &self.evaluation,
            views: &NoExpressions,
        };
        let mut text = String::new();
        let mut emit = |row: &[Datum]| {
            assert_eq!(row.len(), columns.len(), "{table:?}");
            let shown = wanted.iter().map(|name| {
                let number = number(name);
                literal_text(&row[number], &columns[number].ty)
            });
            text.push_str(&shown.collect::<Vec<_>>().join(" | "));
            text.push('\n');
            Ok(true)
        };
        table.rows(&context, &hints, &mut emit).unwrap();
        text
    }
}

fn session() -> Session {
    Session::new(&[
        "CREATE DATABASE test",
        "CREATE DATABASE other COLLATE latin1_bin",
        "CREATE TABLE p (id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT, code CHAR(3) UNIQUE) COMMENT 'parents'",
        "CREATE TABLE c (
            id BIGINT, p INT UNSIGNED, name VARCHAR(20) NOT NULL DEFAULT 'x', price DECIMAL(8,2),
            made DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3), kind ENUM('a','bb') COLLATE utf8mb4_bin,
            PRIMARY KEY (id, name), KEY by_name (name(5) DESC), FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE
        )",
        "CREATE VIEW v AS SELECT 1 AS one",
    ])
}

#[test]
fn tables_columns_keys_and_constraints_are_listed() {
    let session = session();
    let in_test = [("TABLE_SCHEMA", "test")];
    let tables = session.rows(
        "TABLES",
        &in_test,
        &[
            "TABLE_NAME",
            "TABLE_TYPE",
            "ENGINE",
            "TABLE_ROWS",
            "AUTO_INCREMENT",
            "TABLE_COLLATION",
            "TABLE_COMMENT",
        ],
    );
    expect![[r#"
        c | BASE TABLE | InnoDB | 0 | NULL | utf8mb4_0900_ai_ci | 
        p | BASE TABLE | InnoDB | 0 | 1 | utf8mb4_0900_ai_ci | parents
        v | VIEW | NULL | NULL | NULL | NULL | VIEW
    "#]]
    .assert_eq(&tables);
    let columns = session.rows(
        "COLUMNS",
        &in_test,
        &[
            "TABLE_NAME",
            "COLUMN_NAME",
            "ORDINAL_POSITION",
            "COLUMN_DEFAULT",
            "IS_NULLABLE",
            "COLUMN_TYPE",
            "CHARACTER_MAXIMUM_LENGTH",
            "NUMERIC_PRECISION",
            "DATETIME_PRECISION",
            "COLLATION_NAME",
            "COLUMN_KEY",
            "EXTRA",
        ],
    );
    expect![[r#"
        c | id | 1 | NULL | NO | bigint | NULL | 19 | NULL | NULL | PRI | 
        c | p | 2 | NULL | YES | int unsigned | NULL | 10 | NULL | NULL | MUL | 
        c | name | 3 | x | NO | varchar(20) | 20 | NULL | NULL | utf8mb4_0900_ai_ci | PRI | 
        c | price | 4 | NULL | YES | decimal(8,2) | NULL | 8 | NULL | NULL |  | 
        c | made | 5 | CURRENT_TIMESTAMP(3) | YES | datetime(3) | NULL | NULL | 3 | NULL |  | DEFAULT_GENERATED
        c | kind | 6 | NULL | YES | enum('a','bb') | 2 | NULL | NULL | utf8mb4_bin |  | 
        p | id | 1 | NULL | NO | int unsigned | NULL | 10 | NULL | NULL | PRI | auto_increment
        p | code | 2 | NULL | YES | char(3) | 3 | NULL | NULL | utf8mb4_0900_ai_ci | UNI | 
        v | one | 1 | NULL | YES | bigint | NULL | 19 | NULL | NULL |  | 
    "#]].assert_eq(&columns);
    let statistics = session.rows(
        "STATISTICS",
        &[("TABLE_SCHEMA", "test"), ("TABLE_NAME", "c")],
        &[
            "INDEX_NAME",
            "NON_UNIQUE",
            "SEQ_IN_INDEX",
            "COLUMN_NAME",
            "COLLATION",
            "SUB_PART",
            "NULLABLE",
        ],
    );
    expect![[r#"
        PRIMARY | 0 | 1 | id | A | NULL | 
        PRIMARY | 0 | 2 | name | A | NULL | 
        by_name | 1 | 1 | name | D | 5 | 
        p | 1 | 1 | p | A | NULL | YES
    "#]]
    .assert_eq(&statistics);
    let usage = session.rows(
        "KEY_COLUMN_USAGE",
        &in_test,
        &[
            "TABLE_NAME",
            "CONSTRAINT_NAME",
            "COLUMN_NAME",
            "ORDINAL_POSITION",
            "REFERENCED_TABLE_NAME",
            "REFERENCED_COLUMN_NAME",
        ],
    );
    expect![[r#"
        c | PRIMARY | id | 1 | NULL | NULL
        c | PRIMARY | name | 2 | NULL | NULL
        c | c_ibfk_1 | p | 1 | p | id
        p | PRIMARY | id | 1 | NULL | NULL
        p | code | code | 1 | NULL | NULL
    "#]]
    .assert_eq(&usage);
    let references = session.rows(
        "REFERENTIAL_CONSTRAINTS",
        &[],
        &["CONSTRAINT_NAME", "UNIQUE_CONSTRAINT_NAME", "UPDATE_RULE", "DELETE_RULE"],
    );
    expect![[r#"
        c_ibfk_1 | PRIMARY | NO ACTION | CASCADE
    "#]]
    .assert_eq(&references);
    let schemata = session.rows("SCHEMATA", &[], &["SCHEMA_NAME", "DEFAULT_COLLATION_NAME"]);
    expect![[r#"
        information_schema | utf8mb3_general_ci
        mysql | utf8mb4_0900_ai_ci
        other | latin1_bin
        performance_schema | utf8mb4_0900_ai_ci
        sys | utf8mb4_0900_ai_ci
        test | utf8mb4_0900_ai_ci
    "#]]
    .assert_eq(&schemata);
}

#[test]
fn every_table_has_rows_of_its_columns_and_may_be_stopped() {
    let session = session();
    for schema in VIRTUAL_SCHEMAS {
        for table in tables_of(schema) {
            let context = VirtualContext {
                catalog: &session.catalog,
                session: &NoSessionTables,
                evaluation: &session.evaluation,
                views: &NoExpressions,
            };
            let mut emit = |row: &[Datum]| {
                assert_eq!(row.len(), table.columns().len(), "{table:?}");
                for (datum, column) in row.iter().zip(table.columns()) {
                    assert!(
                        !datum.is_null() || column.ty.nullable,
                        "{table:?}.{} is NULL",
                        column.name
                    );
                }
                Ok(true)
            };
            table.rows(&context, &[], &mut emit).unwrap();
            let mut count = 0;
            let mut emit = |_: &[Datum]| {
                count += 1;
                Ok(false)
            };
            table.rows(&context, &[], &mut emit).unwrap();
            assert!(count <= 1, "{table:?}");
        }
    }
}
