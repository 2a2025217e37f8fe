// TypeORM: synchronize, synchronize again without a change, a changed entity, relations, upserts, migrations.
import "reflect-metadata";
import assert from "node:assert/strict";
import { DataSource, EntitySchema } from "typeorm";
import { withDatabase } from "./database.js";

const person = (more = {}) => new EntitySchema({
  name: "Person", tableName: "person",
  columns: {
    id: { type: "int", primary: true, generated: true, unsigned: true },
    name: { type: "varchar", length: 40, unique: true },
    born: { type: "date", nullable: true },
    seen: { type: "datetime", precision: 3, default: () => "CURRENT_TIMESTAMP(3)" },
    living: { type: "boolean", default: true },
    fee: { type: "decimal", precision: 12, scale: 3, default: 1.5 },
    score: { type: "double", nullable: true },
    notes: { type: "json", nullable: true },
    size: { type: "enum", enum: ["small", "large"], default: "small" },
    tags: { type: "set", enum: ["a", "b", "c"], nullable: true },
    picture: { type: "varbinary", length: 20, nullable: true },
    twice: { type: "decimal", precision: 13, scale: 3, asExpression: "`fee` * 2", generatedType: "STORED", nullable: true },
    made: { type: "timestamp", createDate: true },
    changed: { type: "timestamp", updateDate: true },
    version: { type: "int", version: true },
    ...more,
  },
  indices: [{ name: "by_born", columns: ["born", "fee"] }],
  checks: [{ name: "fee_is_small", expression: "`fee` < 1000000" }],
  relations: { books: { type: "one-to-many", target: "Book", inverseSide: "person" } },
});
const book = new EntitySchema({
  name: "Book", tableName: "book",
  columns: { id: { type: "bigint", primary: true, generated: true }, title: { type: "text" } },
  relations: {
    person: { type: "many-to-one", target: "Person", inverseSide: "books", onDelete: "CASCADE", nullable: false },
    prizes: { type: "many-to-many", target: "Prize", joinTable: true },
  },
});
const prize = new EntitySchema({ name: "Prize", tableName: "prize", columns: { id: { type: "varchar", length: 36, primary: true, generated: "uuid" }, name: { type: "varchar" } } });

class AddColumn1700000000000 {
  name = "AddColumn1700000000000";
  async up(runner) {
    await runner.query("ALTER TABLE prize ADD year YEAR NULL");
  }
  async down(runner) {
    await runner.dropColumn("prize", "year");
  }
}

await withDatabase("clients_typeorm", async (settings) => {
  const open = (entities, more = {}) => new DataSource({ type: "mysql", timezone: "Z", ...settings, username: settings.user, entities, ...more }).initialize();
  let source = await open([person(), book, prize], { synchronize: true });
  const pending = async () => (await source.driver.createSchemaBuilder().log()).upQueries.map((query) => query.query);
  assert.deepEqual(await pending(), []);
  const people = source.getRepository("Person");
  const ada = await people.save({ name: "Ada – 漢字 😀", born: "1815-12-10", fee: "12.345", score: 0.1, notes: { a: [1, null] }, size: "large", tags: ["a", "c"], picture: Buffer.from([0, 255]) });
  const hugo = await source.getRepository("Prize").save({ name: "Hugo" });
  await source.getRepository("Book").save([{ title: "One", person: ada, prizes: [hugo] }, { title: "Two", person: ada, prizes: [] }]);
  const found = await people.findOne({ where: { name: ada.name }, relations: { books: { prizes: true } }, order: { books: { id: "DESC" } } });
  assert.deepEqual([found.born, found.living, found.fee, found.score, found.notes, found.size, found.tags, [...found.picture], found.twice, found.version, found.books.map((one) => [one.title, one.prizes.length])],
    ["1815-12-10", true, "12.345", 0.1, { a: [1, null] }, "large", ["a", "c"], [0, 255], "24.690", 1, [["Two", 0], ["One", 1]]]);
  found.fee = "13.000";
  assert.equal((await people.save(found)).version, 2);
  await people.upsert([{ name: ada.name, score: 7 }, { name: "Bo", score: 1 }], ["name"]);
  assert.deepEqual((await people.find({ order: { id: "ASC" }, select: { name: true, score: true } })).map((one) => one.score), [7, 1]);
  const [rows, count] = await people.createQueryBuilder("p").leftJoinAndSelect("p.books", "b").where("p.score > :low", { low: 0 }).orderBy("p.score").skip(0).take(1).getManyAndCount();
  assert.deepEqual([rows.map((one) => one.name), count], [["Bo"], 2]);
  const sums = await people.createQueryBuilder("p").select("p.size", "size").addSelect("SUM(p.score)", "total").groupBy("p.size").orderBy("p.size").getRawMany();
  assert.deepEqual(sums, [{ size: "small", total: 1 }, { size: "large", total: 7 }]);
  await assert.rejects(source.transaction(async (manager) => {
    await manager.createQueryBuilder().delete().from("Book").execute();
    throw new Error("changed its mind");
  }), /changed its mind/);
  assert.equal(await source.getRepository("Book").count(), 2);
  await source.destroy();
  source = await open([person({ email: { type: "varchar", length: 80, nullable: true } }), book, prize],
    { migrations: [AddColumn1700000000000] });
  const changes = await pending();
  assert.ok(changes.some((query) => /ADD `email` varchar\(80\) NULL/.test(query)), changes.join("\n"));
  await source.synchronize();
  assert.deepEqual(await pending(), []);
  assert.equal((await source.runMigrations()).length, 1);
  assert.equal((await source.runMigrations()).length, 0);
  await source.undoLastMigration();
  await source.dropDatabase();
  await source.destroy();
  await withoutTables(settings);
});

async function withoutTables(settings) {
  const source = await new DataSource({ type: "mysql", ...settings, username: settings.user, entities: [] }).initialize();
  await source.query(`CREATE DATABASE IF NOT EXISTS ${settings.database}`);
  assert.deepEqual(await source.query("SELECT table_name FROM information_schema.tables WHERE table_schema = ?", [settings.database]), []);
  await source.destroy();
}
console.log("  TypeORM: synchronize, relations, upserts, migrations");
