//! What is refused, and in which words.

use expect_test::expect;

use super::shop;

#[test]
fn names_and_forms_are_refused() {
    let database = shop();
    database.ddl(
        "CREATE VIEW totals AS SELECT customer, SUM(total) AS s FROM orders GROUP BY customer",
    );
    let mut all = String::new();
    for statement in [
        "SELECT nothing FROM customer",
        "SELECT name FROM customer WHERE customer.nothing = 1",
        "SELECT name FROM customer ORDER BY nothing",
        "SELECT name FROM customer GROUP BY nothing",
        "SELECT name FROM customer HAVING nothing > 1",
        "SELECT id FROM customer, orders",
        "SELECT x.* FROM customer",
        "SELECT * FROM nowhere",
        "SELECT * FROM other.t",
        "SELECT *",
        "SELECT 1 FROM customer, customer",
        "SELECT name, COUNT(*) FROM customer",
        "SELECT name, COUNT(*) FROM customer GROUP BY country",
        "SELECT name FROM customer WHERE COUNT(*) > 1",
        "SELECT (SELECT id, name FROM customer)",
        "SELECT id FROM customer WHERE (id, name) = 1",
        "SELECT id FROM customer UNION SELECT id, name FROM customer",
        "SELECT id, id FROM customer ORDER BY 3",
        "SELECT * FROM (SELECT id, id FROM customer) t",
        "SELECT nosuch(1)",
        "SELECT ABS()",
        "SELECT ROW_NUMBER() FROM customer",
        "SELECT id FROM customer WHERE ROW_NUMBER() OVER () = 1",
        "SELECT DISTINCT name FROM customer ORDER BY born",
        "SELECT * FROM customer USE INDEX (nothing)",
        "INSERT INTO customer (id, nothing) VALUES (1, 2)",
        "INSERT INTO customer (id, id) VALUES (1, 2)",
        "INSERT INTO customer (id, name) VALUES (1)",
        "INSERT INTO customer (id, name) SELECT 1",
        "UPDATE customer SET nothing = 1",
        "UPDATE totals SET s = 1",
        "INSERT INTO totals VALUES (1, 2)",
        "DELETE nothing FROM customer",
        "SELECT name COLLATE utf8mb4_bin = name COLLATE utf8mb4_0900_ai_ci FROM customer",
        "SELECT name COLLATE nosuch FROM customer",
    ] {
        all += &format!("{statement}\n    {}", database.tree(statement));
    }
    expect![[""]].assert_eq(&all);
}
