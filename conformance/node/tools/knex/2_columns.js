export async function up(knex) {
  await knex.schema.alterTable("person", (table) => {
    table.string("email", 80).defaultTo("none").after("name");
    table.string("name", 60).notNullable().alter();
    table.renameColumn("living", "alive");
  });
  await knex.schema.createView("readers", (view) => {
    view.columns(["name"]);
    view.as(knex("person").select("name"));
  });
}

export async function down(knex) {
  await knex.schema.dropView("readers");
  await knex.schema.alterTable("person", (table) => {
    table.dropColumn("email");
    table.renameColumn("alive", "living");
  });
}
