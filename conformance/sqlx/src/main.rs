//! sqlx against Firn: prepared statements, types both ways, transactions, errors, large values,
//! TLS, accounts, migrations.

use std::error::Error;
use std::fmt::Debug;
use std::str::FromStr;
use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use serde_json::json;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::mysql::types::{MySqlTime, MySqlTimeSign};
use sqlx::mysql::{
    MySqlConnectOptions, MySqlConnection, MySqlDatabaseError, MySqlPool, MySqlPoolOptions,
    MySqlRow, MySqlSslMode,
};
use sqlx::types::{
    BigDecimal, chrono::DateTime, chrono::NaiveDate, chrono::NaiveDateTime, chrono::Utc,
};
use sqlx::{
    AssertSqlSafe, Column, ConnectOptions, Connection, Executor, MySql, Row, SqlSafeStr, SqlStr,
    Statement, TypeInfo, raw_sql,
};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const KINDS: &str = "tiny, utiny, small, medium, normal, big, ubig, single, real8, exact, year, day, span, moment, stamp, doc, \
    words, raw, truth, kind, some, bits, short_text, fixed";

fn sql(text: impl Into<String>) -> SqlStr {
    AssertSqlSafe(text.into()).into_sql_str()
}

fn options(port: u16) -> MySqlConnectOptions {
    MySqlConnectOptions::new()
        .host("127.0.0.1")
        .port(port)
        .username("root")
        .database("clients_sqlx")
}

/// The values of a row of `kinds`, in the order of its columns.
#[derive(Clone, Debug, PartialEq)]
struct Kinds {
    integers: (i8, u8, i16, i32, i32, i64, u64),
    floats: (f32, f64),
    exact: BigDecimal,
    year: u16,
    day: NaiveDate,
    span: MySqlTime,
    moment: NaiveDateTime,
    stamp: DateTime<Utc>,
    doc: serde_json::Value,
    words: String,
    raw: Vec<u8>,
    truth: bool,
    kind: String,
    some: String,
    bits: u64,
    short_text: String,
    fixed: Vec<u8>,
}

impl Kinds {
    fn example() -> Outcome<Self> {
        let day = NaiveDate::from_ymd_opt(2024, 2, 29).ok_or("no such day")?;
        let moment = day.and_hms_micro_opt(23, 59, 59, 999_999).ok_or("no such time")?;
        Ok(Self {
            integers: (-128, 255, -32768, -8_388_608, i32::MAX, i64::MIN, u64::MAX),
            floats: (0.5, -f64::MAX),
            exact: BigDecimal::from_str("-123456789012345678901234567890.0123456789")?,
            year: 2155,
            day,
            span: MySqlTime::new(MySqlTimeSign::Negative, 838, 59, 58, 999_999)?,
            moment,
            stamp: moment.and_utc(),
            doc: json!({"a": [1, 2.5, null, "😀"]}),
            words: "naïve – 漢字 😀".to_owned(),
            raw: [0, 1, 0xff, b'\'', b'\\'].repeat(2000),
            truth: true,
            kind: "y".to_owned(),
            some: "a,c".to_owned(),
            bits: 0b1_0110_0111,
            short_text: "short".to_owned(),
            fixed: vec![1, 2, 0, 0],
        })
    }

    async fn write(self, db: &mut MySqlConnection) -> Outcome<u64> {
        let marks = vec!["?"; KINDS.split(',').count()].join(", ");
        let (tiny, utiny, small, medium, normal, big, ubig) = self.integers;
        let written = sqlx::query(sql(format!("INSERT INTO kinds ({KINDS}) VALUES ({marks})")))
            .bind(tiny)
            .bind(utiny)
            .bind(small)
            .bind(medium)
            .bind(normal)
            .bind(big)
            .bind(ubig)
            .bind(self.floats.0)
            .bind(self.floats.1)
            .bind(self.exact)
            .bind(self.year)
            .bind(self.day)
            .bind(self.span)
            .bind(self.moment)
            .bind(self.stamp)
            .bind(self.doc)
            .bind(self.words)
            .bind(self.raw)
            .bind(self.truth)
            .bind(self.kind)
            .bind(self.some)
            .bind(self.bits)
            .bind(self.short_text)
            .bind(self.fixed)
            .execute(db)
            .await?;
        assert_eq!(written.rows_affected(), 1);
        Ok(written.last_insert_id())
    }

    fn read(row: &MySqlRow) -> Outcome<Self> {
        Ok(Self {
            integers: (
                row.try_get("tiny")?,
                row.try_get("utiny")?,
                row.try_get("small")?,
                row.try_get("medium")?,
                row.try_get("normal")?,
                row.try_get("big")?,
                row.try_get("ubig")?,
            ),
            floats: (row.try_get("single")?, row.try_get("real8")?),
            exact: row.try_get("exact")?,
            year: row.try_get("year")?,
            day: row.try_get("day")?,
            span: row.try_get("span")?,
            moment: row.try_get("moment")?,
            stamp: row.try_get("stamp")?,
            doc: row.try_get("doc")?,
            words: row.try_get("words")?,
            raw: row.try_get("raw")?,
            truth: row.try_get("truth")?,
            kind: row.try_get("kind")?,
            some: row.try_get("some")?,
            bits: row.try_get("bits")?,
            short_text: row.try_get("short_text")?,
            fixed: row.try_get("fixed")?,
        })
    }
}

async fn types_both_ways(db: &mut MySqlConnection) -> Outcome {
    db.execute(
        "CREATE TABLE kinds (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, tiny TINYINT, utiny TINYINT UNSIGNED, small SMALLINT,
            medium MEDIUMINT, normal INT, big BIGINT, ubig BIGINT UNSIGNED, single FLOAT, real8 DOUBLE, exact DECIMAL(40, 10),
            year YEAR, day DATE, span TIME(6), moment DATETIME(6), stamp TIMESTAMP(6) NULL, doc JSON, words VARCHAR(100),
            raw LONGBLOB, truth BOOLEAN, kind ENUM('x', 'y'), some SET('a', 'b', 'c'), bits BIT(9), short_text TINYTEXT,
            fixed BINARY(4))",
    )
    .await?;
    let example = Kinds::example()?;
    let id = example.clone().write(db).await?;
    assert_eq!(id, 1);
    let select = format!("SELECT {KINDS} FROM kinds WHERE id = 1");
    let by_binary = sqlx::query(sql(select.clone())).fetch_one(&mut *db).await?;
    assert_eq!(Kinds::read(&by_binary)?, example, "by the binary protocol");
    let by_text = raw_sql(sql(select)).fetch_one(&mut *db).await?;
    assert_eq!(Kinds::read(&by_text)?, example, "by text");
    let types: Vec<_> =
        by_binary.columns().iter().map(|column| column.type_info().name()).collect();
    let expected = [
        "TINYINT",
        "TINYINT UNSIGNED",
        "SMALLINT",
        "MEDIUMINT",
        "INT",
        "BIGINT",
        "BIGINT UNSIGNED",
        "FLOAT",
        "DOUBLE",
        "DECIMAL",
        "YEAR",
        "DATE",
        "TIME",
        "DATETIME",
        "TIMESTAMP",
        "JSON",
        "VARCHAR",
        "BLOB",
        "BOOLEAN",
        "ENUM",
        "CHAR",
        "BIT",
        "TEXT",
        "BINARY",
    ];
    assert_eq!(types, expected);
    nulls(db).await
}

async fn nulls(db: &mut MySqlConnection) -> Outcome {
    sqlx::query("INSERT INTO kinds (id, words, big) VALUES (?, ?, ?)")
        .bind(2)
        .bind(None::<String>)
        .bind(None::<i64>)
        .execute(&mut *db)
        .await?;
    for row in [
        sqlx::query("SELECT words, big, moment FROM kinds WHERE id = ?")
            .bind(2)
            .fetch_one(&mut *db)
            .await?,
        raw_sql("SELECT words, big, moment FROM kinds WHERE id = 2").fetch_one(&mut *db).await?,
    ] {
        let found: (Option<String>, Option<i64>, Option<NaiveDateTime>) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        assert_eq!(found, (None, None, None));
    }
    Ok(())
}

/// What the macros of sqlx rely on while a program is compiled: parameters counted, types and names
/// of columns known.
async fn prepared(db: &mut MySqlConnection) -> Outcome {
    let statement = db
        .prepare(
            "SELECT id, words AS text, COUNT(*) OVER () AS n FROM kinds WHERE id = ? OR big < ?"
                .into_sql_str(),
        )
        .await?;
    assert_eq!(statement.parameters().and_then(|parameters| parameters.right()), Some(2));
    let columns: Vec<_> = statement
        .columns()
        .iter()
        .map(|column| (column.name(), column.type_info().name()))
        .collect();
    assert_eq!(columns, [("id", "BIGINT UNSIGNED"), ("text", "VARCHAR"), ("n", "BIGINT")]);
    for id in 1..=300_u64 {
        let found: Option<u64> = sqlx::query_scalar("SELECT id FROM kinds WHERE id = ?")
            .bind(id)
            .fetch_optional(&mut *db)
            .await?;
        assert_eq!(found, (id <= 2).then_some(id));
        // More texts than are kept prepared: the first ones are closed.
        let other: i64 = sqlx::query_scalar(sql(format!("SELECT ? + {id}")))
            .bind(1_i64)
            .fetch_one(&mut *db)
            .await?;
        assert_eq!(other, i64::try_from(id)? + 1);
    }
    let many = "WITH RECURSIVE n AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM n WHERE n < 1000) SELECT n FROM n";
    let mut rows = sqlx::query_scalar::<_, i64>(many).fetch(&mut *db);
    let mut sum = 0;
    while let Some(number) = rows.try_next().await? {
        sum += number;
    }
    drop(rows);
    assert_eq!(sum, 500_500);
    let results = raw_sql("SELECT 1; SET @x = 2; SELECT @x AS two").fetch_all(&mut *db).await?;
    assert_eq!(results.len(), 2);
    Ok(())
}

async fn amount(pool: &MySqlPool) -> Outcome<i32> {
    Ok(sqlx::query_scalar("SELECT amount FROM account WHERE id = 1").fetch_one(pool).await?)
}

async fn transactions(pool: &MySqlPool) -> Outcome {
    pool.execute("CREATE TABLE account (id INT PRIMARY KEY, amount INT NOT NULL)").await?;
    let written = sqlx::query("INSERT INTO account VALUES (?, ?), (2, 0)")
        .bind(1)
        .bind(10)
        .execute(pool)
        .await?;
    assert_eq!(written.rows_affected(), 2);
    let raise =
        || sqlx::query("UPDATE account SET amount = amount + ? WHERE id = ?").bind(5).bind(1);
    let mut transaction = pool.begin().await?;
    raise().execute(&mut *transaction).await?;
    assert_eq!(amount(pool).await?, 10, "what is not committed is seen");
    transaction.rollback().await?;
    let mut dropped = pool.begin().await?;
    raise().execute(&mut *dropped).await?;
    drop(dropped);
    let mut outer = pool.begin().await?;
    raise().execute(&mut *outer).await?;
    let mut inner = outer.begin().await?;
    raise().execute(&mut *inner).await?;
    inner.rollback().await?;
    outer.commit().await?;
    assert_eq!(amount(pool).await?, 15, "a savepoint's rollback takes its own change alone");
    let mut reader = pool.begin_with("START TRANSACTION READ ONLY").await?;
    refused(1792, "25006", raise().execute(&mut *reader).await);
    reader.rollback().await?;
    let began = Instant::now();
    let slow =
        tokio::time::timeout(Duration::from_millis(100), sqlx::query("DO SLEEP(1)").execute(pool))
            .await;
    assert!(slow.is_err() && began.elapsed() < Duration::from_millis(900));
    assert_eq!(amount(pool).await?, 15);
    Ok(())
}

fn refused<T: Debug>(number: u16, state: &str, answer: Result<T, sqlx::Error>) {
    let refusal = answer.expect_err("refused");
    let Some(refusal) = refusal.as_database_error() else {
        panic!("{refusal} in place of error {number}")
    };
    let refusal = refusal.downcast_ref::<MySqlDatabaseError>();
    assert_eq!((refusal.number(), refusal.code()), (number, Some(state)), "{}", refusal.message());
}

async fn errors(pool: &MySqlPool) -> Outcome {
    let taken =
        sqlx::query("INSERT INTO account VALUES (?, ?)").bind(1).bind(1).execute(pool).await;
    assert!(taken.as_ref().is_err_and(|error| {
        error.as_database_error().is_some_and(|error| error.is_unique_violation())
    }));
    refused(1062, "23000", taken);
    refused(1146, "42S02", sqlx::query("SELECT * FROM missing").fetch_all(pool).await);
    refused(1064, "42000", sqlx::query("SELEC 1").execute(pool).await);
    refused(1064, "42000", pool.execute("SELEC 1").await);
    refused(1054, "42S22", sqlx::query("SELECT missing FROM account").fetch_all(pool).await);
    refused(
        1048,
        "23000",
        sqlx::query("INSERT INTO account VALUES (3, ?)").bind(None::<i32>).execute(pool).await,
    );
    refused(
        1406,
        "22001",
        sqlx::query("INSERT INTO kinds (words) VALUES (?)")
            .bind("x".repeat(101))
            .execute(pool)
            .await,
    );
    // After the first rows: the connection has to be of use again.
    pool.execute("SET SESSION cte_max_recursion_depth = 10").await?;
    let endless =
        "WITH RECURSIVE n AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM n) SELECT n FROM n";
    assert!(sqlx::query(endless).fetch_all(pool).await.is_err());
    assert_eq!(amount(pool).await?, 15);
    Ok(())
}

/// Values that need several packets of 16 MiB, each way and by each protocol.
async fn large(db: &mut MySqlConnection) -> Outcome {
    db.execute("CREATE TABLE large (id INT PRIMARY KEY, content LONGBLOB)").await?;
    let content = b"0123456789abcdef\0".repeat(1 << 20);
    sqlx::query("INSERT INTO large VALUES (1, ?)").bind(&content[..]).execute(&mut *db).await?;
    let digits = "30313233343536373839616263646566".to_owned() + "00";
    raw_sql(sql(format!("INSERT INTO large VALUES (2, X'{}')", digits.repeat(1 << 20))))
        .execute(&mut *db)
        .await?;
    // Not in the first column: there sqlx takes the length of more than 16 MiB in a text row for
    // the end of the result.
    for select in
        ["SELECT id, content FROM large WHERE id = 1", "SELECT id, content FROM large WHERE id = 2"]
    {
        for row in [
            sqlx::query(select).fetch_one(&mut *db).await?,
            raw_sql(select).fetch_one(&mut *db).await?,
        ] {
            assert!(row.try_get::<&[u8], _>(1)? == content, "{select}");
        }
    }
    Ok(())
}

async fn accounts(db: &mut MySqlConnection, port: u16) -> Outcome {
    raw_sql(
        "DROP USER IF EXISTS ferris@'%', old_ferris@'%';
        CREATE USER ferris@'%' IDENTIFIED WITH caching_sha2_password BY 'sésame';
        GRANT SELECT ON clients_sqlx.* TO ferris@'%';
        CREATE USER old_ferris@'%' IDENTIFIED WITH mysql_native_password BY 'sésame';
        GRANT SELECT ON clients_sqlx.* TO old_ferris@'%'",
    )
    .execute(&mut *db)
    .await?;
    for name in ["ferris", "old_ferris"] {
        // First the full exchange, by the server's public key and then within TLS, later the fast
        // one.
        for mode in [
            MySqlSslMode::Disabled,
            MySqlSslMode::Required,
            MySqlSslMode::Preferred,
            MySqlSslMode::Disabled,
        ] {
            let encrypted = !matches!(mode, MySqlSslMode::Disabled);
            let named = options(port).username(name).ssl_mode(mode);
            refused(1045, "28000", named.clone().password("wrong").connect().await.map(drop));
            let mut reader = named.password("sésame").connect().await?;
            let cipher =
                sqlx::query("SHOW STATUS LIKE 'Ssl_cipher'").fetch_one(&mut reader).await?;
            assert_eq!(!cipher.try_get::<String, _>(1)?.is_empty(), encrypted);
            let found: i32 = sqlx::query_scalar("SELECT amount FROM account WHERE id = ?")
                .bind(1)
                .fetch_one(&mut reader)
                .await?;
            assert_eq!(found, 15);
            refused(1142, "42000", sqlx::query("DELETE FROM account").execute(&mut reader).await);
            reader.close().await?;
        }
    }
    Ok(())
}

async fn migrations(pool: &MySqlPool) -> Outcome {
    let step = |version, text: &'static str| {
        Migration::new(
            version,
            "step".into(),
            MigrationType::ReversibleUp,
            text.into_sql_str(),
            false,
        )
    };
    let back = Migration::new(
        2,
        "step".into(),
        MigrationType::ReversibleDown,
        "DROP TABLE second".into_sql_str(),
        false,
    );
    let migrator = Migrator::with_migrations(vec![
        step(1, "CREATE TABLE first (id INT PRIMARY KEY); INSERT INTO first VALUES (1)"),
        step(2, "CREATE TABLE second (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES first (id))"),
        back,
    ]);
    migrator.run(pool).await?;
    migrator.run(pool).await?;
    migrator.undo(pool, 1).await?;
    refused(1146, "42S02", sqlx::query("SELECT * FROM second").fetch_all(pool).await);
    let done: Vec<(i64, bool)> =
        sqlx::query_as("SELECT version, success FROM _sqlx_migrations").fetch_all(pool).await?;
    assert_eq!(done, [(1, true)]);
    Ok(())
}

fn passed(part: &str) {
    println!("  {part}: ok");
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let port = std::env::args().nth(1).ok_or("usage: sqlx_smoke PORT")?.parse()?;
    let url = format!("mysql://root@127.0.0.1:{port}/clients_sqlx");
    <MySql as sqlx::migrate::MigrateDatabase>::drop_database(&url).await?;
    <MySql as sqlx::migrate::MigrateDatabase>::create_database(&url).await?;
    assert!(<MySql as sqlx::migrate::MigrateDatabase>::database_exists(&url).await?);
    let mut db = options(port).connect().await?;
    db.ping().await?;
    let pool = MySqlPoolOptions::new().max_connections(3).connect_with(options(port)).await?;
    types_both_ways(&mut db).await?;
    passed("types_both_ways");
    prepared(&mut db).await?;
    passed("prepared");
    transactions(&pool).await?;
    passed("transactions");
    errors(&pool).await?;
    passed("errors");
    large(&mut db).await?;
    passed("large");
    accounts(&mut db, port).await?;
    passed("accounts");
    migrations(&pool).await?;
    passed("migrations");
    pool.close().await;
    db.close().await?;
    Ok(())
}
