// mysql2 while another node begins to write: PORT,PORT… COMMAND…. The command asks for the switch.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import mysql from "mysql2/promise";

const ports = process.argv[2].split(",").map(Number);
const [command, ...options] = process.argv.slice(3);
const rounds = 2;

const connect = (port, database) => mysql.createConnection({ host: "127.0.0.1", port, user: "root", database });

async function value(db, text) {
  const [[row]] = await db.query({ sql: text, rowsAsArray: true });
  return Number(row[0]);
}

async function begin(port, at) {
  const db = await connect(port, "switches_node");
  await db.query("SET @mine = 'kept', SESSION lock_wait_timeout = 7");
  const mine = await db.prepare("SELECT CONCAT(@mine, ?) AS word, @@lock_wait_timeout AS seconds");
  await db.query("CREATE TEMPORARY TABLE own (n INT PRIMARY KEY)");
  await db.query("INSERT INTO own VALUES (1)");
  assert.equal(await value(db, `SELECT GET_LOCK('node ${at}', 0)`), 1);
  const number = await value(db, "SELECT CONNECTION_ID()");
  await db.beginTransaction();
  await db.execute("INSERT INTO own VALUES (?)", [2]);
  await db.execute("INSERT INTO account VALUES (?, 1)", [at]);
  await db.query("SAVEPOINT here");
  await db.execute("UPDATE account SET amount = 2 WHERE id = ?", [at]);
  return { db, mine, number, at };
}

async function goOn({ db, mine, number, at }, other) {
  const [[row]] = await mine.execute(["!"]);
  assert.deepEqual([row.word, Number(row.seconds)], ["kept!", 7]);
  assert.equal(await value(db, "SELECT SUM(n) FROM own"), 3);
  assert.equal(await value(db, "SELECT CONNECTION_ID()"), number);
  assert.equal(await value(other, `SELECT GET_LOCK('node ${at}', 0)`), 0);
  await db.query("ROLLBACK TO SAVEPOINT here");
  await db.commit();
  assert.equal(await value(other, `SELECT amount FROM account WHERE id = ${at}`), 1);
  assert.equal(await value(db, `SELECT RELEASE_LOCK('node ${at}')`), 1);
  await db.end();
}

const other = await connect(ports[0]);
await other.query("DROP DATABASE IF EXISTS switches_node");
await other.query("CREATE DATABASE switches_node");
await other.query("USE switches_node");
await other.query("CREATE TABLE account (id INT PRIMARY KEY, amount INT NOT NULL)");
for (let round = 0; round < rounds; round += 1) {
  const sessions = [];
  for (const [number, port] of ports.entries()) sessions.push(await begin(port, 10 * round + number));
  execFileSync(command, options, { stdio: ["ignore", "ignore", "inherit"] });
  for (const session of sessions) await goOn(session, other);
}
await other.end();
console.log("  mysql2: ok");
