//! Plans of statements over a small shop, and the results of running them.

mod answers;
mod database;
mod errors;
mod growth;
mod ways;

use database::Database;

/// Customers, their orders, the lines of orders.
fn shop() -> Database {
    let database = Database::new(&[
        ("customer", 1000.0),
        ("orders", 10_000.0),
        ("line", 50_000.0),
        ("country", 50.0),
    ]);
    database.ddl(
        "CREATE TABLE customer (id INT PRIMARY KEY, name VARCHAR(50) NOT NULL, country CHAR(2), \
           born DATE, KEY by_name (name), KEY by_country (country, born));
         CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, customer INT NOT NULL, \
           placed DATETIME NOT NULL, total DECIMAL(10,2), state VARCHAR(10), \
           KEY by_customer (customer, placed), KEY by_placed (placed));
         CREATE TABLE line (orders BIGINT, number INT, product INT, amount INT NOT NULL, \
           PRIMARY KEY (orders, number), UNIQUE KEY by_product (product, orders, number));
         CREATE TABLE country (code CHAR(2) PRIMARY KEY, name VARCHAR(50))",
    );
    database
}
