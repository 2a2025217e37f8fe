//! DDL over a node: statements in, `SHOW CREATE` and errors out.

use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use firn_api::Incarnation;
use firn_api::rows::{IsolationLevel, ReadMode, Transaction, WaitPolicy};
use firn_base::clock::Clock;
use firn_format::value::{Value, ValueRef};
use firn_sql_grammar as grammar;
use firn_sql_grammar::ast::{BinaryOperator, Expr, Query};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{Datum, EvaluationContext, SqlType};

use crate::Catalog;
use crate::model::{CheckModel, TableModel};
use crate::session::SessionCatalog;
use crate::show::create::table_text;
use crate::test_support::{TestNode, number_columns, run_ddl, run_ddl_at};

use super::follow::differences;
use super::seen_leaves::SeenLeaves;
use super::{DdlOutcome, ExpressionBinder, QueryColumn, RowExpression};

/// Knows columns, whole numbers, `+`, `>` and `<`.
struct TestBinder;

struct TestExpression {
    table: Arc<TableModel>,
    expression: Expr,
    ty: SqlType,
    columns: Vec<u16>,
}

impl ExpressionBinder for TestBinder {
    fn bind(&self, table: &Arc<TableModel>, text: &str) -> Result<Box<dyn RowExpression>> {
        let expression = grammar::parse_expression(text, grammar::Mode::default())?;
        let mut columns = Vec::new();
        collect(table, &expression, &mut columns)?;
        let ty = SqlType::bigint();
        Ok(Box::new(TestExpression { table: Arc::clone(table), expression, ty, columns }))
    }

    fn bind_check(
        &self,
        table: &Arc<TableModel>,
        check: &CheckModel,
    ) -> Result<Box<dyn RowExpression>> {
        self.bind(table, &check.text).map_err(|_| SqlError::new(3820, "unknown"))
    }

    fn is_updatable(&self, _: &Query, _: &str) -> Result<bool> {
        Ok(true)
    }

    fn query_columns(&self, _query: &Query, _schema: &str) -> Result<Vec<QueryColumn>> {
        Ok(number_columns(&["one", "two"]))
    }
}

fn collect(table: &TableModel, expression: &Expr, columns: &mut Vec<u16>) -> Result<()> {
    match expression {
        Expr::Identifier(name) => {
            let unknown = || SqlError::unknown_column(name, "field list");
            columns.push(table.column(name).ok_or_else(unknown)?.ordinal);
            Ok(())
        }
        Expr::BinaryOp { left, right, .. } => {
            collect(table, left, columns)?;
            collect(table, right, columns)
        }
        _ => Ok(()),
    }
}

impl RowExpression for TestExpression {
    fn ty(&self) -> &SqlType {
        &self.ty
    }

    fn volatile_function(&self) -> Option<&'static str> {
        None
    }

    fn columns(&self) -> &[u16] {
        &self.columns
    }

    fn evaluate(&self, row: &[Datum], _evaluation: &EvaluationContext) -> Result<Datum> {
        Ok(number(&self.table, &self.expression, row).map_or(Datum::Null, Datum::Int))
    }
}

fn number(table: &TableModel, expression: &Expr, row: &[Datum]) -> Option<i64> {
    match expression {
        Expr::Identifier(name) => match &row[usize::from(table.column(name)?.ordinal)] {
            Datum::Int(number) => Some(*number),
            _ => None,
        },
        Expr::BinaryOp { left, op, right } => {
            let (left, right) = (number(table, left, row)?, number(table, right, row)?);
            Some(match op {
                BinaryOperator::Plus => left + right,
                BinaryOperator::Gt => (left > right).into(),
                BinaryOperator::Lt => (left < right).into(),
                other => panic!("{other:?}"),
            })
        }
        Expr::Value(_) => grammar::render(expression).parse().ok(),
        other => panic!("{other:?}"),
    }
}

struct Session {
    catalog: SessionCatalog,
    evaluation: EvaluationContext,
    node: Arc<TestNode>,
}

impl Session {
    fn new() -> Session {
        let session = Session::of(Arc::new(TestNode::new()), Incarnation::default());
        session.run("CREATE DATABASE test").unwrap();
        session
    }

    /// A session of the compute node `owner`.
    fn of(node: Arc<TestNode>, owner: Incarnation) -> Session {
        let catalog = node.session_catalog(owner);
        Session { catalog, evaluation: EvaluationContext::default(), node }
    }

    fn run(&self, text: &str) -> Result<DdlOutcome> {
        run_ddl(&self.catalog, &self.evaluation, &TestBinder, text)
    }

    #[track_caller]
    fn ok(&self, text: &str) {
        if let Err(error) = self.run(text) {
            panic!("{text}: {} {error}", error.code);
        }
    }

    #[track_caller]
    fn refuses(&self, text: &str, code: u16) {
        match self.run(text) {
            Ok(_) => panic!("{text}: done"),
            Err(error) => assert_eq!(error.code, code, "{text}: {error}"),
        }
    }

    fn table(&self, name: &str) -> Arc<TableModel> {
        self.catalog.table("test", name).unwrap()
    }

    fn shown(&self, name: &str) -> String {
        let table = self.table(name);
        let next =
            table.auto_increment.map(|_| self.node.node.next_auto_increment(&table.table).unwrap());
        table_text(&table, next)
    }

    #[track_caller]
    fn shows(&self, name: &str, expected: &Expect) {
        expected.assert_eq(&self.shown(name));
    }

    /// The displayed definition creates the same table again.
    fn round_trips(&self, name: &str) {
        let shown = self.shown(name);
        self.ok(&format!("DROP TABLE {name}"));
        self.ok(&shown);
        assert_eq!(self.shown(name), shown);
    }

    fn insert(&self, name: &str, rows: &[&[Value]]) {
        let table = self.table(name);
        let mut trx = self.node.node.begin(IsolationLevel::ReadCommitted).unwrap();
        let reference = trx.table_for_write(table.id).unwrap();
        for row in rows {
            let mut values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
            values.resize(table.ordinals(), ValueRef::Null);
            trx.insert(&reference, &values).unwrap();
        }
        trx.commit().unwrap();
    }

    fn delete(&self, name: &str, primary_key: &[Value]) {
        let table = self.table(name);
        let mut trx = self.node.node.begin(IsolationLevel::ReadCommitted).unwrap();
        let reference = trx.table_for_write(table.id).unwrap();
        let values: Vec<ValueRef<'_>> = primary_key.iter().map(Value::as_ref).collect();
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        let layout = &reference.layout().clustered;
        layout.encode_parts(&values, reference.collations(), &mut key).unwrap();
        let mode = ReadMode::Update(WaitPolicy::Wait);
        assert!(trx.get(&reference, &key, mode, &mut payload).unwrap());
        trx.delete(&reference, &key, &payload).unwrap();
        trx.commit().unwrap();
    }

    /// The rows in primary key order, columns as users see them.
    fn rows(&self, name: &str) -> String {
        let table = self.table(name);
        let mut trx = self.node.node.begin(IsolationLevel::ReadCommitted).unwrap();
        let mut other = self.node.node.begin(IsolationLevel::ReadCommitted).unwrap();
        let reference = trx.table_for_read(table.id).unwrap();
        other.open_snapshot();
        let mut scan = super::copy::full_scan(&mut *trx, &reference).unwrap();
        let mut rows = Vec::new();
        while scan.fetch(&mut *trx).unwrap() {
            for number in 0..scan.len() {
                let firn_api::rows::RowContent::Payload(payload) = scan.row(number).content else {
                    panic!();
                };
                let view =
                    firn_format::row::RowView::parse(&reference.layout().row, payload).unwrap();
                let texts: Vec<String> = table
                    .shown_columns()
                    .map(|column| {
                        let value =
                            super::copy::read(&*other, &reference, &view, column.ordinal).unwrap();
                        let zone = &self.evaluation.time_zone;
                        let datum =
                            Datum::from_value_ref(value.as_ref(), &column.ty, zone).unwrap();
                        crate::notation::literal_text(&datum, &column.ty)
                    })
                    .collect();
                rows.push(texts.join(" "));
            }
        }
        rows.join("; ")
    }
}

/// A clock that somebody else sets.
struct SetClock(u64);

impl Clock for SetClock {
    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0)
    }

    fn wall_time_ms(&self) -> u64 {
        self.0
    }
}

#[test]
fn tables_and_views_are_created_at_the_time_of_the_environment() {
    let session = Session::new();
    for (text, name) in [("CREATE TABLE t (a INT)", "t"), ("CREATE VIEW v AS SELECT 1", "v")] {
        let Session { catalog, evaluation, .. } = &session;
        run_ddl_at(&SetClock(1_234_567), catalog, evaluation, &TestBinder, text).unwrap();
        assert_eq!(session.table(name).created_us, 1_234_567_000, "{text}");
    }
}

fn int(number: i64) -> Value {
    Value::Int(number)
}

fn text(text: &str) -> Value {
    Value::Bytes(text.as_bytes().into())
}

#[test]
fn a_table_is_shown_as_mysql_shows_it_and_made_again_from_that() {
    let session = Session::new();
    session.ok(
        "CREATE TABLE p (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, k INT, KEY (k)) AUTO_INCREMENT=7",
    );
    session.ok(
        "CREATE TABLE t (
            id BIGINT NOT NULL AUTO_INCREMENT, name VARCHAR(40) NOT NULL DEFAULT 'x''y' COMMENT 'it''s',
            flag TINYINT(1) DEFAULT 1, amount DECIMAL(10,2) UNSIGNED DEFAULT '0.50', f FLOAT(7,3), d DOUBLE,
            body MEDIUMTEXT, raw VARBINARY(16), bits BIT(9) DEFAULT b'101',
            made TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
            seen DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3), day DATE DEFAULT '2020-02-29', y YEAR,
            e ENUM('a','b,c') DEFAULT 'a', s SET('x','y') DEFAULT 'x,y', j JSON,
            c CHAR(3) CHARACTER SET latin1, b VARCHAR(5) COLLATE utf8mb4_bin, z INT(5) ZEROFILL,
            g INT AS (z + 1) VIRTUAL, hidden INT INVISIBLE, parent INT UNSIGNED,
            PRIMARY KEY (id), UNIQUE (name), KEY part (body(10), name DESC), KEY ((hidden + 2)),
            CONSTRAINT fk FOREIGN KEY (parent) REFERENCES p (id) ON DELETE CASCADE,
            CHECK (z > 0), CONSTRAINT named CHECK (amount > 1) NOT ENFORCED
        ) COMMENT='all of it' ROW_FORMAT=DYNAMIC",
    );
    session.shows("t", &expect![[r#"
        CREATE TABLE `t` (
          `id` bigint NOT NULL AUTO_INCREMENT,
          `name` varchar(40) NOT NULL DEFAULT 'x''y' COMMENT 'it''s',
          `flag` tinyint(1) DEFAULT '1',
          `amount` decimal(10,2) unsigned DEFAULT '0.50',
          `f` float(7,3) DEFAULT NULL,
          `d` double DEFAULT NULL,
          `body` mediumtext,
          `raw` varbinary(16) DEFAULT NULL,
          `bits` bit(9) DEFAULT b'101',
          `made` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
          `seen` datetime(3) DEFAULT CURRENT_TIMESTAMP(3),
          `day` date DEFAULT '2020-02-29',
          `y` year DEFAULT NULL,
          `e` enum('a','b,c') DEFAULT 'a',
          `s` set('x','y') DEFAULT 'x,y',
          `j` json DEFAULT NULL,
          `c` char(3) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL,
          `b` varchar(5) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL,
          `z` int(5) unsigned zerofill DEFAULT NULL,
          `g` int GENERATED ALWAYS AS ((`z` + 1)) VIRTUAL,
          `hidden` int DEFAULT NULL /*!80023 INVISIBLE */,
          `parent` int unsigned DEFAULT NULL,
          PRIMARY KEY (`id`),
          UNIQUE KEY `name` (`name`),
          KEY `part` (`body`(10),`name` DESC),
          KEY `functional_index` (((`hidden` + 2))),
          KEY `fk` (`parent`),
          CONSTRAINT `fk` FOREIGN KEY (`parent`) REFERENCES `p` (`id`) ON DELETE CASCADE,
          CONSTRAINT `t_chk_1` CHECK ((`z` > 0)),
          CONSTRAINT `named` CHECK ((`amount` > 1)) /*!80016 NOT ENFORCED */
        ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci ROW_FORMAT=DYNAMIC COMMENT='all of it'"#]]);
    session.shows(
        "p",
        &expect![[r#"
        CREATE TABLE `p` (
          `id` int unsigned NOT NULL AUTO_INCREMENT,
          `k` int DEFAULT NULL,
          PRIMARY KEY (`id`),
          KEY `k` (`k`)
        ) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci"#]],
    );
    session.round_trips("t");
}

#[test]
fn what_cannot_be_a_table_is_refused() {
    let session = Session::new();
    session.ok("CREATE TABLE there (a INT PRIMARY KEY, b INT)");
    let long = "x".repeat(65);
    for (text, code) in [
        ("CREATE TABLE there (a INT)", 1050),
        ("CREATE TABLE nowhere.t (a INT)", 1049),
        ("CREATE TABLE t (a INT, A INT)", 1060),
        ("CREATE TABLE t (a INT, KEY k (a), KEY k (a))", 1061),
        ("CREATE TABLE t (a INT, KEY (b))", 1072),
        ("CREATE TABLE t (a INT, KEY (a, a))", 1060),
        ("CREATE TABLE t (a TEXT, KEY (a))", 1170),
        ("CREATE TABLE t (a INT, KEY (a(3)))", 1089),
        ("CREATE TABLE t (a VARCHAR(10), KEY (a(11)))", 1089),
        ("CREATE TABLE t (a VARCHAR(800), KEY (a))", 1071),
        ("CREATE TABLE t (a INT PRIMARY KEY, b INT PRIMARY KEY)", 1068),
        ("CREATE TABLE t (a INT NULL, PRIMARY KEY (a))", 1171),
        ("CREATE TABLE t (a INT AUTO_INCREMENT)", 1075),
        ("CREATE TABLE t (a INT AUTO_INCREMENT, b INT AUTO_INCREMENT, KEY (a), KEY (b))", 1075),
        ("CREATE TABLE t (a VARCHAR(5) AUTO_INCREMENT PRIMARY KEY)", 1063),
        ("CREATE TABLE t (a INT DEFAULT 'x')", 1067),
        ("CREATE TABLE t (a INT NOT NULL DEFAULT NULL)", 1067),
        ("CREATE TABLE t (a TINYINT DEFAULT 300)", 1067),
        ("CREATE TABLE t (a DATE DEFAULT '2020-02-30')", 1067),
        ("CREATE TABLE t (a VARCHAR(2) DEFAULT 'abc')", 1067),
        ("CREATE TABLE t (a INT DEFAULT CURRENT_TIMESTAMP)", 1067),
        ("CREATE TABLE t (a TEXT DEFAULT 'x')", 1101),
        ("CREATE TABLE t (a VARCHAR(20000))", 1074),
        ("CREATE TABLE t (a CHAR(256))", 1074),
        ("CREATE TABLE t (a DECIMAL(70,2))", 1426),
        ("CREATE TABLE t (a DECIMAL(5,31))", 1425),
        ("CREATE TABLE t (a DECIMAL(2,5))", 1427),
        ("CREATE TABLE t (a VARCHAR(16383), b VARCHAR(10))", 1118),
        ("CREATE TABLE t (a ENUM('x','X'))", 1291),
        ("CREATE TABLE t (a INT) CHARACTER SET nonsense", 1115),
        ("CREATE TABLE t (a INT) COLLATE nonsense", 1273),
        ("CREATE TABLE t (a CHAR(1) CHARACTER SET latin1 COLLATE utf8mb4_bin)", 1253),
        ("CREATE TABLE t (a INT) ENGINE=nonsense", 1286),
        ("CREATE TABLE t (a INT, CHECK (b > 1))", 3820),
        ("CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES missing (b))", 1824),
        ("CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES there (c))", 3734),
        ("CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES there (b))", 1822),
        ("CREATE TABLE t (a BIGINT, FOREIGN KEY (a) REFERENCES there (a))", 3780),
        (
            "CREATE TABLE t (a INT NOT NULL, FOREIGN KEY (a) REFERENCES there (a) ON DELETE SET NULL)",
            1830,
        ),
        ("CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, CHECK (a > 1))", 3818),
        ("CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b INT AS (a + 1))", 3109),
        ("CREATE TABLE t (a INT AS (b + 1), b INT AS (2 + 1))", 3107),
        ("CREATE TABLE information_schema.t (a INT)", 1044),
        ("ALTER TABLE missing ADD a INT", 1146),
        ("DROP TABLE missing", 1051),
        ("DROP DATABASE missing", 1008),
        ("CREATE DATABASE test", 1007),
    ] {
        session.refuses(text, code);
    }
    session.refuses(&format!("CREATE TABLE t (`{long}` INT)"), 1059);
    session.refuses(&format!("CREATE TABLE `{long}` (a INT)"), 1059);
    assert!(session.catalog.shared().find_table("test", "t").unwrap().is_none());
}

#[test]
fn what_changes_no_row_is_changed_in_place() {
    let session = Session::new();
    session.ok("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10), b INT, e ENUM('x','y'))");
    session.insert(
        "t",
        &[
            &[int(1), text("one"), int(10), Value::UInt(1)],
            &[int(2), text("two"), Value::Null, Value::UInt(2)],
        ],
    );
    let id = session.table("t").id;
    for text in [
        "ALTER TABLE t ADD c INT NOT NULL DEFAULT 5, ADD d DATE AFTER id",
        "ALTER TABLE t DROP b",
        "ALTER TABLE t MODIFY a VARCHAR(40) COMMENT 'wider', MODIFY e ENUM('x','y','z')",
        "ALTER TABLE t RENAME COLUMN a TO name, ALTER c SET DEFAULT 6",
        "ALTER TABLE t ADD UNIQUE u (name), ADD KEY (c)",
        "ALTER TABLE t RENAME INDEX u TO v, ALTER INDEX c INVISIBLE",
        "ALTER TABLE t ADD CHECK (c > 4), COMMENT 'altered', RENAME TO u",
        "ALTER TABLE u DROP INDEX c, ADD INDEX c (c, name)",
        "CREATE INDEX i ON u (d)",
        "DROP INDEX i ON u",
        "ALTER TABLE u MODIFY c INT NOT NULL DEFAULT 6 FIRST",
    ] {
        session.ok(text);
    }
    assert_eq!(session.table("u").id, id, "the rows were not written again");
    session.shows(
        "u",
        &expect![[r#"
            CREATE TABLE `u` (
              `c` int NOT NULL DEFAULT '6',
              `id` int NOT NULL,
              `d` date DEFAULT NULL,
              `name` varchar(40) DEFAULT NULL COMMENT 'wider',
              `e` enum('x','y','z') DEFAULT NULL,
              PRIMARY KEY (`id`),
              UNIQUE KEY `v` (`name`),
              KEY `c` (`c`,`name`),
              CONSTRAINT `u_chk_1` CHECK ((`c` > 4))
            ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci COMMENT='altered'"#]],
    );
    assert_eq!(session.rows("u"), "5 1 NULL one x; 5 2 NULL two y");
    for (text, code) in [
        ("ALTER TABLE u ADD CHECK (c > 5)", 3819),
        ("ALTER TABLE u DROP missing", 1091),
        ("ALTER TABLE u DROP INDEX missing", 1091),
        ("ALTER TABLE u DROP c", 0),
        ("ALTER TABLE u MODIFY missing INT", 1054),
        ("ALTER TABLE u ADD name INT", 1060),
        ("ALTER TABLE u ADD x INT, ALGORITHM=INSTANT", 0),
        ("ALTER TABLE u ADD KEY (x), ALGORITHM=INSTANT", 1845),
        ("ALTER TABLE u MODIFY x BIGINT, ALGORITHM=INPLACE", 1846),
        ("ALTER TABLE u MODIFY x BIGINT, LOCK=NONE", 1846),
    ] {
        match code {
            0 => session.ok(text),
            code => session.refuses(text, code),
        }
    }
}

#[test]
fn what_changes_rows_copies_them() {
    let session = Session::new();
    session.ok("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(10), b INT)");
    session.insert("t", &[&[int(1), text("10"), int(7)], &[int(5), text("20"), Value::Null]]);
    let table = session.table("t");
    session.node.node.pass_auto_increment(&table.table, 5).unwrap();
    for text in [
        "ALTER TABLE t MODIFY a BIGINT",
        "ALTER TABLE t ADD g INT AS (b + 1) STORED, ADD x INT NOT NULL DEFAULT (a + 1) FIRST",
    ] {
        session.ok(text);
    }
    assert_eq!(session.rows("t"), "11 1 10 7 8; 21 5 20 NULL NULL");
    session.shows(
        "t",
        &expect![[r#"
            CREATE TABLE `t` (
              `x` int NOT NULL DEFAULT ((`a` + 1)),
              `id` int NOT NULL AUTO_INCREMENT,
              `a` bigint DEFAULT NULL,
              `b` int DEFAULT NULL,
              `g` int GENERATED ALWAYS AS ((`b` + 1)) STORED,
              PRIMARY KEY (`id`)
            ) ENGINE=InnoDB AUTO_INCREMENT=6 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci"#]],
    );
    session.refuses("ALTER TABLE t MODIFY b INT NOT NULL", 1138);
    session.refuses("ALTER TABLE t MODIFY x TINYINT UNSIGNED, MODIFY a DECIMAL(1,0)", 1264);
    session.refuses("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (b)", 1075);
    session.ok("ALTER TABLE t MODIFY id INT NOT NULL, DROP PRIMARY KEY, ADD PRIMARY KEY (x)");
    session.refuses("ALTER TABLE t ADD c INT NOT NULL DEFAULT 1, ADD UNIQUE (c)", 1062);
    assert_eq!(session.rows("t"), "11 1 10 7 8; 21 5 20 NULL NULL");
    let names = session.node.node.tables_of("test").unwrap().unwrap();
    assert_eq!(names.len(), 1, "failed copies leave nothing");
}

#[test]
fn a_snapshot_from_before_a_copy_is_refused_the_new_table() {
    let session = Session::new();
    session.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT)");
    session.insert("t", &[&[int(1), int(2)]]);
    let mut trx = session.node.node.begin(IsolationLevel::RepeatableRead).unwrap();
    trx.open_snapshot();
    session.ok("ALTER TABLE t MODIFY a BIGINT");
    let refused = trx.table_for_read(session.table("t").id).map(|_| ()).unwrap_err();
    assert_eq!(refused.mysql_code(), 1412);
}

#[test]
fn foreign_keys_hold_tables_columns_and_indexes_together() {
    let session = Session::new();
    session.ok("CREATE TABLE p (id INT PRIMARY KEY, code INT, UNIQUE (code))");
    session.ok("CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (code))");
    let shared = session.catalog.shared();
    assert_eq!(shared.referencing("test", "p").unwrap().len(), 1);
    for (text, code) in [
        ("DROP TABLE p", 3730),
        ("TRUNCATE TABLE p", 1701),
        ("ALTER TABLE p DROP INDEX code", 1553),
        ("ALTER TABLE p DROP code", 1829),
        ("ALTER TABLE c DROP p", 1828),
        ("ALTER TABLE c DROP INDEX p", 1553),
    ] {
        session.refuses(text, code);
    }
    session.ok("ALTER TABLE p RENAME COLUMN code TO number, RENAME TO q");
    session.ok("ALTER TABLE c ADD KEY both_columns (p, id)");
    session.shows(
        "c",
        &expect![[r#"
        CREATE TABLE `c` (
          `id` int NOT NULL,
          `p` int DEFAULT NULL,
          PRIMARY KEY (`id`),
          KEY `both_columns` (`p`,`id`),
          CONSTRAINT `c_ibfk_1` FOREIGN KEY (`p`) REFERENCES `q` (`number`)
        ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci"#]],
    );
    session.ok("ALTER TABLE c DROP FOREIGN KEY c_ibfk_1");
    session.insert("q", &[&[int(1), int(2)]]);
    session.insert("c", &[&[int(1), int(2)], &[int(2), Value::Null]]);
    session.ok("ALTER TABLE c ADD CONSTRAINT again FOREIGN KEY (p) REFERENCES q (number)");
    session.insert("c", &[&[int(3), int(9)]]);
    session.ok("ALTER TABLE c DROP FOREIGN KEY again");
    session.refuses("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES q (number)", 1452);
    session.ok("DROP TABLE q, c");
}

#[test]
fn temporary_tables_shadow_others_and_go_with_the_session() {
    let session = Session::new();
    session.ok("CREATE TABLE t (a INT)");
    session.ok("CREATE TEMPORARY TABLE t (b INT PRIMARY KEY)");
    assert!(session.table("t").column("b").is_some());
    session.insert("t", &[&[int(4)]]);
    session.ok("ALTER TABLE t MODIFY b BIGINT");
    assert_eq!(session.rows("t"), "4");
    session.ok("ALTER TABLE t RENAME TO u");
    assert!(session.table("t").column("a").is_some());
    assert_eq!(session.rows("u"), "4");
    assert!(session.catalog.shared().find_table("test", "u").unwrap().is_none());
    session.catalog.drop_temporary_tables().unwrap();
    session.refuses("DROP TABLE u", 1051);
    assert_eq!(session.node.node.schemas().unwrap().len(), 1);
}

#[test]
fn tables_exchange_names_and_views_have_them_too() {
    let session = Session::new();
    session.ok("CREATE TABLE a (x INT)");
    session.ok("CREATE TABLE b (y INT)");
    session.ok("RENAME TABLE a TO c, b TO a, c TO b");
    assert!(session.table("b").column("x").is_some());
    session.ok("CREATE VIEW v (p, q) AS SELECT 1, 2");
    session.refuses("CREATE VIEW v AS SELECT 1, 2", 1050);
    session.refuses("CREATE TABLE v (a INT)", 1050);
    session.refuses("DROP TABLE v", 1051);
    session.refuses("DROP VIEW a", 1347);
    session.ok("CREATE OR REPLACE VIEW v AS SELECT 1, 2");
    let view = session.table("v");
    let names: Vec<&str> = view.shown_columns().map(|column| &*column.name).collect();
    assert_eq!(names, ["one", "two"]);
    session.ok("DROP VIEW v");
    session.ok("CREATE TABLE l LIKE a");
    session.ok("CREATE TABLE s (two INT PRIMARY KEY) AS SELECT 1");
    let columns = session.table("s");
    let names: Vec<&str> = columns.shown_columns().map(|column| &*column.name).collect();
    assert_eq!(names, ["one", "two"], "a column of both parts stands where the query has it");
    session.ok("DROP DATABASE test");
}

#[test]
fn columns_that_came_and_went_do_not_pile_up() {
    let session = Session::new();
    session.ok("CREATE TABLE t (id INT PRIMARY KEY)");
    for _ in 0..60 {
        session.ok("ALTER TABLE t ADD COLUMN c INT");
        session.ok("ALTER TABLE t DROP COLUMN c");
    }
    let columns = session.table("t").table.definition().columns.len();
    assert!(columns <= 20, "{columns} columns");
}

#[test]
fn instant_changes_end_where_mysql_ends_them() {
    let session = Session::new();
    session.ok("CREATE TABLE t (id INT PRIMARY KEY)");
    session.ok("ALTER TABLE t ADD COLUMN c INT, ALGORITHM=INSTANT");
    for _ in 0..127 {
        session.ok("ALTER TABLE t DROP COLUMN c, ALGORITHM=INSTANT");
        session.ok("ALTER TABLE t ADD COLUMN c INT, ALGORITHM=INSTANT");
    }
    session.refuses("ALTER TABLE t DROP COLUMN c, ALGORITHM=INSTANT", 4092);
    session.ok("ALTER TABLE t RENAME COLUMN c TO d, ALGORITHM=INSTANT");
    session.ok("ALTER TABLE t DROP COLUMN d");
    session.ok("ALTER TABLE t ADD COLUMN c INT, ALGORITHM=INSTANT");
}

/// What is stored of temporary tables and unfinished copies: `schema.table`.
fn left_over(node: &dyn firn_api::rows::DatabaseNode) -> Vec<String> {
    let mut found = Vec::new();
    for schema in node.schemas().unwrap() {
        for table in node.tables_of(&schema).unwrap().unwrap_or_default() {
            let name = format!("{schema}.{}", table.definition().name);
            if name.contains('#') {
                found.push(name);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn temporary_tables_and_copies_are_removed_by_their_owner() {
    let session = Session::new();
    session.run("CREATE TABLE t (a INT PRIMARY KEY)").unwrap();
    let node = Arc::clone(&session.node.node);
    let owners = [(1, 10), (1, 11), (2, 20)].map(|(node, start)| Incarnation { node, start });
    let mut kept = Vec::new();
    for owner in owners {
        let other = Session::of(Arc::clone(&session.node), owner);
        other.run("CREATE TEMPORARY TABLE t (b INT)").unwrap();
        let mut copy = node.table_named("test", "t").unwrap().unwrap().definition().clone();
        copy.name = crate::lookup::copy_name(owner, copy.table_id, 1);
        let mut definitions = node.change_definitions().unwrap();
        definitions.create_table(copy).unwrap();
        definitions.commit().unwrap();
        kept.push(other);
    }
    assert_eq!(left_over(&*node).len(), 6);
    let me = owners[1];
    let catalog = Catalog::new(Arc::clone(&node), me);
    catalog.remove_leftovers(&|owner| owner.node == me.node && owner != me, &[]).unwrap();
    let left = left_over(&*node);
    assert_eq!(left.len(), 4, "{left:?}");
    assert!(left.iter().all(|name| !name.contains(&owners[0].to_string())), "{left:?}");
    assert!(kept[1].catalog.table("test", "t").is_ok());
}

/// What a copy's last comparison reads does not grow with the table.
#[test]
fn leaves_that_have_not_changed_are_not_compared_again() {
    const ROWS: i64 = 20_000;
    let session = Session::new();
    session.ok("CREATE TABLE t (a BIGINT PRIMARY KEY, b VARCHAR(100))");
    let padding = text(&"x".repeat(80));
    let rows: Vec<[Value; 2]> = (0..ROWS).map(|a| [int(2 * a), padding.clone()]).collect();
    let rows: Vec<&[Value]> = rows.iter().map(|row| &row[..]).collect();
    session.insert("t", &rows);
    let table = session.table("t").id;
    let snapshot = || {
        let mut trx = session.node.node.begin(IsolationLevel::RepeatableRead).unwrap();
        trx.open_snapshot();
        trx
    };
    let compare = |known: &SeenLeaves, before: &mut dyn Transaction, now: &mut dyn Transaction| {
        differences(table, known, before, now, &|| Ok(())).unwrap()
    };
    let (mut first, mut second) = (snapshot(), snapshot());
    let all = compare(&SeenLeaves::default(), &mut *first, &mut *second);
    assert_eq!((all.compared, all.changes.len()), (ROWS as usize, 0));
    let mut third = snapshot();
    let none = compare(&all.seen, &mut *second, &mut *third);
    assert_eq!((none.compared, none.changes.len()), (0, 0));
    // Two more rows, one before all others and one among them, and one fewer.
    session.insert("t", &[&[int(-1), padding.clone()], &[int(20_001), padding.clone()]]);
    session.delete("t", &[int(2 * ROWS - 2)]);
    let mut fourth = snapshot();
    let some = compare(&none.seen, &mut *third, &mut *fourth);
    assert!(some.compared < 1_000, "{}", some.compared);
    let kinds: Vec<(bool, bool)> = some.changes.iter().map(|one| (one.was, one.is)).collect();
    assert_eq!(kinds, [(false, true), (false, true), (true, false)]);
}

/// What a change of a small table costs does not grow with the columns that the table once had:
/// each of them would be in its definition and in the layouts of its rows.
#[test]
fn former_columns_of_a_small_table_do_not_pile_up() {
    let session = Session::new();
    session.ok("CREATE TABLE t (a BIGINT PRIMARY KEY)");
    session.insert("t", &[&[int(1)]]);
    let mut most = (0, 0);
    for _ in 0..400 {
        session.ok("ALTER TABLE t ADD COLUMN b BIGINT");
        session.ok("ALTER TABLE t DROP COLUMN b");
        let table = session.table("t");
        let definition = table.table.definition();
        most.0 = most.0.max(definition.columns.len());
        most.1 = most.1.max(definition.row_version.0);
    }
    assert!(most.0 <= 40 && most.1 <= 40, "{most:?} columns and row versions");
}
