// mysql2 against Firn: prepared statements, types both ways, transactions, errors, large values, TLS, accounts.
import assert from "node:assert/strict";
import mysql from "mysql2/promise";

const port = Number(process.argv[2]);
const open = (options = {}) =>
  mysql.createConnection({
    host: "127.0.0.1", port, user: "root", database: "clients_node", timezone: "Z", supportBigNumbers: true,
    bigNumberStrings: true, ...options,
  });

const columns = "tiny, small, big, ubig, single, real8, exact, day, span, moment, doc, words, raw, truth, kind";

async function typesBothWays(db) {
  await db.query(`CREATE TABLE kinds (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, tiny TINYINT, small SMALLINT UNSIGNED,
    big BIGINT, ubig BIGINT UNSIGNED, single FLOAT, real8 DOUBLE, exact DECIMAL(40, 10), day DATE, span TIME(6),
    moment DATETIME(6), doc JSON, words VARCHAR(100), raw LONGBLOB, truth BOOLEAN, kind ENUM('x', 'y'))`);
  const row = [
    -128, 65535, "-9223372036854775808", "18446744073709551615", 0.5, -1.7976931348623157e308,
    "-123456789012345678901234567890.0123456789", new Date("2024-02-29T00:00:00Z"), "-838:59:58.999999",
    new Date("2024-02-29T23:59:59.999Z"), { a: [1, 2.5, null, "😀"] }, "naïve – 漢字 😀",
    Buffer.from(Array.from({ length: 10000 }, (_, at) => at & 255)), 1, "y",
  ];
  const marks = row.map(() => "?").join(", ");
  const sent = row.map((value) => (value?.a ? JSON.stringify(value) : value));
  for (const way of ["query", "execute"]) {
    const [written] = await db[way](`INSERT INTO kinds (${columns}) VALUES (${marks})`, sent);
    assert.equal(written.affectedRows, 1);
    assert.ok(written.insertId > 0);
    for (const back of ["query", "execute"]) {
      const [[found]] = await db[back](`SELECT ${columns} FROM kinds WHERE id = ?`, [written.insertId]);
      assert.deepEqual(Object.values(found), row, `${way}, ${back}`);
    }
    const [nulls] = await db[way](`INSERT INTO kinds (${columns}) VALUES (${marks})`, row.map(() => null));
    for (const back of ["query", "execute"]) {
      const [[found]] = await db[back](`SELECT ${columns} FROM kinds WHERE id = ?`, [nulls.insertId]);
      assert.deepEqual(Object.values(found), row.map(() => null));
    }
  }
  const [found] = await db.query("SELECT id FROM kinds WHERE tiny IN (?) AND words LIKE ?", [[1, -128], "%漢%"]);
  assert.equal(found.length, 2);
}

async function transactions(db) {
  const other = await open();
  const amount = async (by) => (await by.query("SELECT amount FROM account WHERE id = 1"))[0][0].amount;
  await db.query("CREATE TABLE account (id INT PRIMARY KEY, amount INT NOT NULL)");
  await db.query("INSERT INTO account VALUES ?", [[[1, 10], [2, 0]]]);
  await db.beginTransaction();
  await db.execute("UPDATE account SET amount = amount + ? WHERE id = ?", [5, 1]);
  assert.equal(await amount(db), 15);
  assert.equal(await amount(other), 10);
  await db.rollback();
  assert.equal(await amount(db), 10);
  await db.beginTransaction();
  await db.query("UPDATE account SET amount = 11 WHERE id = 1");
  await db.commit();
  assert.equal(await amount(other), 11);
  await other.end();
}

async function refused(code, state, action) {
  await assert.rejects(action, (error) => {
    assert.deepEqual([error.errno, error.sqlState], [code, state], error.message);
    return true;
  });
}

async function errors(db) {
  await refused(1062, "23000", () => db.execute("INSERT INTO account VALUES (?, ?)", [1, 1]));
  await refused(1146, "42S02", () => db.query("SELECT * FROM missing"));
  await refused(1064, "42000", () => db.query("SELEC 1"));
  await refused(1054, "42S22", () => db.execute("SELECT missing FROM account"));
  await refused(1406, "22001", () => db.execute("INSERT INTO kinds (words) VALUES (?)", ["x".repeat(101)]));
}

async function large(db) {
  await db.query("CREATE TABLE large (id INT PRIMARY KEY, content LONGBLOB)");
  const content = Buffer.alloc(17 << 20, "0123456789abcdef\0\\'");
  for (const [id, way] of [[1, "query"], [2, "execute"]]) {
    await db[way]("INSERT INTO large VALUES (?, ?)", [id, content]);
    for (const back of ["query", "execute"]) {
      const [[found]] = await db[back]("SELECT content FROM large WHERE id = ?", [id]);
      assert.ok(content.equals(found.content), `${way}, ${back}`);
    }
  }
}

async function accounts(db) {
  await db.query("DROP USER IF EXISTS 'noder'@'%', 'writer'@'%'");
  await db.query("CREATE USER 'writer'@'%' IDENTIFIED BY 'open'");
  await db.query("GRANT ALL ON clients_node.* TO 'writer'@'%'");
  await db.query("CREATE USER 'noder'@'%' IDENTIFIED WITH caching_sha2_password BY 'sésame'");
  await db.query("GRANT SELECT ON clients_node.* TO 'noder'@'%'");
  for (const options of [{}, { ssl: { rejectUnauthorized: false } }, { compress: true }, {}]) {
    const reader = await open({ user: "noder", password: "sésame", ...options });
    const [[cipher]] = await reader.query("SHOW STATUS LIKE 'Ssl_cipher'");
    assert.equal(cipher.Value !== "", options.ssl !== undefined);
    await refused(1142, "42000", () => reader.query("DELETE FROM account"));
    await reader.changeUser({ user: "writer", password: "open", database: "clients_node" });
    await reader.query("UPDATE account SET amount = amount WHERE id = 1");
    await reader.end();
    await refused(1045, "28000", () => open({ user: "noder", password: "wrong", ...options }));
  }
}

async function manyResults() {
  const db = await open({ multipleStatements: true });
  const [results] = await db.query("SELECT 1 AS one; SET @x = 2; SELECT @x AS two, amount FROM account ORDER BY id");
  assert.deepEqual(results[0], [{ one: "1" }]);
  assert.equal(results[2].length, 2);
  let count = 0;
  const text = "WITH RECURSIVE n AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM n WHERE n < 1000) SELECT n FROM n";
  for await (const row of db.connection.query(text).stream()) count += row.n > 0;
  assert.equal(count, 1000);
  await db.end();
}

const first = await open({ database: undefined });
await first.query("DROP DATABASE IF EXISTS clients_node");
await first.query("CREATE DATABASE clients_node");
await first.end();
const db = await open();
for (const part of [typesBothWays, transactions, errors, large, accounts, manyResults]) {
  await part(db);
  console.log(`  ${part.name}: ok`);
}
await db.end();
