// Sequelize: sync, alter of what is there, associations, transactions, bulk writes with duplicates.
import assert from "node:assert/strict";
import { DataTypes, Op, Sequelize } from "sequelize";
import { withDatabase } from "./database.js";

await withDatabase("clients_sequelize", async (settings) => {
  const orm = new Sequelize({ dialect: "mysql", logging: false, timezone: "+00:00", ...settings, username: settings.user });
  const define = (more = {}) => orm.define("person", {
    name: { type: DataTypes.STRING(40), allowNull: false, unique: "by_name" },
    born: DataTypes.DATEONLY,
    seen: DataTypes.DATE(3),
    living: { type: DataTypes.BOOLEAN, defaultValue: true },
    fee: DataTypes.DECIMAL(12, 3),
    notes: DataTypes.JSON,
    size: DataTypes.ENUM("small", "large"),
    picture: DataTypes.BLOB,
    code: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4 },
    count: DataTypes.INTEGER.UNSIGNED,
    ...more,
  }, { indexes: [{ fields: ["born", "fee"] }] });
  let Person = define();
  const Book = orm.define("book", { title: DataTypes.TEXT }, { timestamps: false });
  Person.hasMany(Book, { foreignKey: { name: "personId", allowNull: false }, onDelete: "CASCADE" });
  Book.belongsTo(Person);
  await orm.sync({ force: true });
  const ada = await Person.create({ name: "Ada – 漢字 😀", born: "1815-12-10", seen: new Date("2024-02-29T12:30:00.125Z"), fee: "12.345", notes: { a: [1, null] },
    size: "large", picture: Buffer.from([0, 255]), count: 4294967295 });
  await Book.bulkCreate([{ title: "One", personId: ada.id }, { title: "Two", personId: ada.id }]);
  const found = await Person.findOne({ where: { name: { [Op.like]: "Ada%" }, fee: { [Op.between]: [1, 20] } }, include: Book, order: [[Book, "id", "DESC"]] });
  assert.deepEqual([found.born, found.seen.toISOString(), found.living, found.fee, found.notes, found.size, [...found.picture], found.count, found.books.map((book) => book.title)],
    ["1815-12-10", "2024-02-29T12:30:00.125Z", true, "12.345", { a: [1, null] }, "large", [0, 255], 4294967295, ["Two", "One"]]);
  await Person.bulkCreate([{ name: "Ada – 漢字 😀", count: 7 }, { name: "Bo", count: 1 }], { updateOnDuplicate: ["count"] });
  assert.deepEqual((await Person.findAll({ order: ["id"] })).map((one) => one.count), [7, 1]);
  const [made, isNew] = await Person.findOrCreate({ where: { name: "Bo" }, defaults: { count: 5 } });
  assert.deepEqual([made.count, isNew], [1, false]);
  await Person.increment("count", { by: 2, where: { name: "Bo" } });
  const total = await Person.findAll({ attributes: ["size", [orm.fn("SUM", orm.col("count")), "total"]], group: ["size"], raw: true, order: ["size"] });
  assert.deepEqual(total, [{ size: null, total: "3" }, { size: "large", total: "7" }]);
  await assert.rejects(orm.transaction(async (transaction) => {
    await Person.destroy({ where: {}, transaction });
    throw new Error("changed its mind");
  }), /changed its mind/);
  assert.equal(await Person.count(), 2);
  await assert.rejects(Person.create({ name: "Bo" }), { name: "SequelizeUniqueConstraintError" });
  await assert.rejects(Book.create({ title: "None", personId: 99 }), { name: "SequelizeForeignKeyConstraintError" });
  // A later model over the same tables.
  Person = define({ email: { type: DataTypes.STRING(80), defaultValue: "none" }, name: { type: DataTypes.STRING(60), allowNull: false } });
  await Person.sync({ alter: true });
  const columns = await orm.getQueryInterface().describeTable("people");
  assert.deepEqual([columns.email.type, columns.email.defaultValue, columns.name.type, columns.id.primaryKey, columns.id.autoIncrement], ["VARCHAR(80)", "none", "VARCHAR(60)", true, true]);
  const indexes = (await orm.getQueryInterface().showIndex("people")).map((index) => [index.name, index.unique, index.fields.map((field) => field.attribute)]);
  assert.deepEqual(indexes, [["PRIMARY", true, ["id"]], ["by_name", true, ["name"]], ["people_born_fee", false, ["born", "fee"]]]);
  const keys = await orm.getQueryInterface().getForeignKeyReferencesForTable("books");
  assert.deepEqual(keys.map((key) => [key.columnName, key.referencedTableName, key.referencedColumnName]), [["personId", "people", "id"]]);
  await Person.destroy({ where: { name: "Bo" } });
  await orm.drop();
  assert.deepEqual(await orm.getQueryInterface().showAllTables(), []);
  await orm.close();
});
console.log("  Sequelize: sync, alter, associations, transactions");
