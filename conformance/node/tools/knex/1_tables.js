export async function up(knex) {
  await knex.schema.createTable("person", (table) => {
    table.increments();
    table.string("name", 40).notNullable().unique();
    table.decimal("fee", 12, 3).defaultTo(0).index();
    table.json("notes");
    table.boolean("living").defaultTo(true);
    table.enu("size", ["small", "large"]);
    table.timestamps(true, true);
  });
  await knex.schema.createTable("book", (table) => {
    table.bigIncrements();
    table.text("title");
    table.integer("person_id").unsigned().notNullable().references("id").inTable("person").onDelete("CASCADE");
    table.index(["person_id"], "by_person");
  });
}

export async function down(knex) {
  await knex.schema.dropTable("book").dropTable("person");
}
