// knex: schema builder, migrations with their lock, queries, transactions, merges.
import assert from "node:assert/strict";
import path from "node:path";
import knex from "knex";
import { withDatabase } from "./database.js";

await withDatabase("clients_knex", async (settings) => {
  const db = knex({ client: "mysql2", connection: { ...settings, timezone: "Z" }, migrations: { directory: path.join(import.meta.dirname, "knex") } });
  assert.equal((await db.migrate.latest())[1].length, 2);
  assert.equal((await db.migrate.latest())[1].length, 0);
  const [id] = await db("person").insert({ name: "Ada – 漢字 😀", fee: "12.345", notes: JSON.stringify({ a: 1 }), alive: true });
  await db("book").insert([{ title: "One", person_id: id }, { title: "Two", person_id: id }]);
  await db("person").insert([{ name: "Ada – 漢字 😀", fee: 1 }, { name: "Bo", fee: 2 }]).onConflict("name").merge(["fee"]);
  await db("person").insert({ name: "Bo", fee: 3 }).onConflict("name").ignore();
  assert.deepEqual(await db("person").orderBy("id").pluck("fee"), ["1.000", "2.000"]);
  const joined = await db("person as p").leftJoin("book as b", "b.person_id", "p.id").groupBy("p.id", "p.name").orderBy("p.id").select("p.name").count({ books: "b.id" }).max({ last: "b.title" });
  assert.deepEqual(joined.map((row) => [row.books, row.last]), [[2, "Two"], [0, null]]);
  const page = await db.with("few", db("book").select("id", "title")).select("*").from("few").whereIn("title", ["One", "Two"]).orderBy("id", "desc").limit(1).offset(1).first();
  assert.equal(page.title, "One");
  assert.equal(await db("person").where("name", "Bo").increment("fee", 1.5), 1);
  await assert.rejects(db.transaction(async (trx) => {
    await trx("book").del();
    throw new Error("changed its mind");
  }), /changed its mind/);
  await db.transaction(async (trx) => {
    await trx("person").where({ id }).forUpdate().first();
    const inner = await trx.transaction();
    await inner("book").where({ title: "Two" }).update({ title: "Three" });
    await inner.rollback();
  });
  assert.deepEqual(await db("book").orderBy("id").pluck("title"), ["One", "Two"]);
  const columns = await db("person").columnInfo();
  assert.deepEqual([columns.name, columns.email], [
    { defaultValue: null, type: "varchar", maxLength: 60, nullable: false }, { defaultValue: "none", type: "varchar", maxLength: 80, nullable: true }]);
  assert.ok(await db.schema.hasTable("book") && await db.schema.hasColumn("person", "email"));
  await assert.rejects(db("book").insert({ title: "None", person_id: 99 }), { errno: 1452 });
  await db.migrate.rollback(undefined, true);
  assert.equal(await db.schema.hasTable("person"), false);
  await db.destroy();
});
console.log("  knex: migrations, queries, merges, transactions");
