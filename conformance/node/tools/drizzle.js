// drizzle: push of a schema by drizzle-kit, pull of what is there, queries, upserts, transactions.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { count, desc, eq, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/mysql2";
import mysql from "mysql2/promise";
import { withDatabase } from "./database.js";
import { book, person } from "./drizzle.schema.js";

const directory = import.meta.dirname;

function kit(command, settings, ...more) {
  const output = mkdtempSync(path.join(os.tmpdir(), "drizzle-"));
  const url = `mysql://root@127.0.0.1:${settings.port}/${settings.database}`;
  const config = path.join(output, "drizzle.config.json");
  writeFileSync(config, JSON.stringify({ dialect: "mysql", schema: path.join(directory, "drizzle.schema.js"), out: path.relative(directory, path.join(output, "out")), dbCredentials: { url } }));
  try {
    const said = execFileSync(process.execPath, [path.join(directory, "node_modules/drizzle-kit/bin.cjs"), command, `--config=${path.relative(directory, config)}`, ...more],
      { cwd: directory, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
    return [said, command === "pull" ? readFileSync(path.join(output, "out", "schema.ts"), "utf8") : ""];
  } catch (error) {
    throw new Error(`drizzle-kit ${command}: ${error.stdout ?? error} ${error.stderr ?? ""}`);
  } finally {
    rmSync(output, { recursive: true });
  }
}

await withDatabase("clients_drizzle", async (settings) => {
  kit("push", settings, "--force");
  const [, pulled] = kit("pull", settings);
  for (const wanted of [/int\(\)\.autoincrement\(\)\.notNull\(\)/, /varchar\(\{ length: 40 \}\)\.notNull\(\)/, /references\(\(\) => person\.id/, /decimal\(\{ precision: 12, scale: 3 \}\)/, /mysqlEnum\(\['small','large'\]\)/, /by_born/]) {
    assert.match(pulled, wanted);
  }
  const pool = mysql.createPool({ ...settings, timezone: "Z" });
  const db = drizzle({ client: pool });
  const [{ id }] = await db.insert(person).values({ name: "Ada – 漢字 😀", born: "1815-12-10", seen: "2024-02-29 12:30:00.125", notes: { a: [1, null] }, size: "large" }).$returningId();
  await db.insert(book).values([{ title: "One", personId: id }, { title: "Two", personId: id }]);
  const [found] = await db.select({ name: person.name, born: person.born, seen: person.seen, living: person.living, fee: person.fee, notes: person.notes, size: person.size }).from(person).where(eq(person.id, id));
  assert.deepEqual(found, { name: "Ada – 漢字 😀", born: "1815-12-10", seen: "2024-02-29 12:30:00.125", living: true, fee: "1.500", notes: { a: [1, null] }, size: "large" });
  await db.insert(person).values([{ name: "Ada – 漢字 😀" }, { name: "Bo" }]).onDuplicateKeyUpdate({ set: { fee: sql`values(${person.fee}) + 1` } });
  const books = await db.select({ name: person.name, fee: person.fee, books: count(book.id) }).from(person).leftJoin(book, eq(book.personId, person.id)).groupBy(person.id).orderBy(desc(person.id));
  assert.deepEqual(books, [{ name: "Bo", fee: "1.500", books: 0 }, { name: "Ada – 漢字 😀", fee: "2.500", books: 2 }]);
  await assert.rejects(db.transaction(async (tx) => {
    await tx.delete(book);
    tx.rollback();
  }));
  assert.equal(await db.$count(book), 2);
  const [changed] = await db.update(person).set({ living: false }).where(eq(person.name, "Bo"));
  assert.equal(changed.affectedRows, 1);
  await pool.end();
});
console.log("  drizzle: push, pull, queries, upserts");
