import { sql } from "drizzle-orm";
import { bigint, boolean, date, datetime, decimal, index, int, json, mysqlEnum, mysqlTable, text, timestamp, uniqueIndex, varchar } from "drizzle-orm/mysql-core";

export const person = mysqlTable("person", {
  id: int().autoincrement().primaryKey(),
  name: varchar({ length: 40 }).notNull(),
  born: date({ mode: "string" }),
  seen: datetime({ fsp: 3, mode: "string" }),
  living: boolean().default(true).notNull(),
  fee: decimal({ precision: 12, scale: 3 }).default("1.500"),
  notes: json(),
  size: mysqlEnum(["small", "large"]).default("small"),
  made: timestamp().default(sql`(now())`).notNull(),
}, (table) => [uniqueIndex("by_name").on(table.name), index("by_born").on(table.born, table.fee)]);

export const book = mysqlTable("book", {
  id: bigint({ mode: "number" }).autoincrement().primaryKey(),
  title: text().notNull(),
  personId: int("person_id").notNull().references(() => person.id, { onDelete: "cascade" }),
});
