// An empty database, and what the smokes share.
import mysql from "mysql2/promise";

export const port = Number(process.argv[2]);
export const settings = (database) => ({ host: "127.0.0.1", port, user: "root", password: "", database });

export async function withDatabase(name, work) {
  const admin = await mysql.createConnection({ host: "127.0.0.1", port, user: "root" });
  await admin.query(`DROP DATABASE IF EXISTS ${name}`);
  await admin.query(`CREATE DATABASE ${name}`);
  await work(settings(name), admin);
  await admin.query(`DROP DATABASE ${name}`);
  await admin.end();
}
