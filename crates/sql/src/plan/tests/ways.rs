//! Which ways plans take.

use expect_test::{Expect, expect};

use super::shop;

fn check(statements: &[&str], expected: Expect) {
    let database = shop();
    let mut all = String::new();
    for statement in statements {
        all += &format!("{statement}\n{}\n", database.tree(statement));
    }
    expected.assert_eq(&all);
}

#[test]
fn rows_are_found_by_keys() {
    check(
        &[
            "SELECT name FROM customer WHERE id = 5",
            "SELECT name FROM customer WHERE id = '5'",
            "SELECT name FROM customer WHERE id IN (1, 2, 3)",
            "SELECT name FROM customer WHERE id BETWEEN 10 AND 20",
            "SELECT name FROM customer WHERE id > 10 AND id < 20 AND name <> 'x'",
            "SELECT id FROM customer WHERE name = 'Ada'",
            "SELECT * FROM customer WHERE name = 5",
            "SELECT id FROM customer WHERE name LIKE 'Ad%'",
            "SELECT id FROM customer WHERE country = 'ch' AND born >= '1990-01-01'",
            "SELECT id FROM customer WHERE country IS NULL",
            "SELECT * FROM customer WHERE id = 1 OR name = 'Ada'",
            "SELECT * FROM line WHERE (orders, number) > (5, 3)",
            "SELECT * FROM line WHERE orders = 5 AND number IN (1, 2)",
        ],
        expect![[""]],
    );
}

#[test]
fn indexes_give_order() {
    check(
        &[
            "SELECT * FROM customer ORDER BY id",
            "SELECT * FROM customer ORDER BY id DESC LIMIT 3",
            "SELECT * FROM orders WHERE customer = 3 ORDER BY placed DESC LIMIT 1",
            "SELECT * FROM orders ORDER BY total LIMIT 5",
            "SELECT MAX(placed) FROM orders",
            "SELECT MIN(placed) FROM orders WHERE customer = 4",
            "SELECT COUNT(*) FROM orders",
            "SELECT customer, COUNT(*) FROM orders GROUP BY customer",
            "SELECT state, SUM(total) FROM orders GROUP BY state ORDER BY state",
        ],
        expect![[""]],
    );
}

#[test]
fn joins_are_ordered() {
    check(
        &[
            "SELECT c.name, o.total FROM orders o JOIN customer c ON c.id = o.customer WHERE o.id = 7",
            "SELECT c.name, COUNT(*) FROM customer c JOIN orders o ON o.customer = c.id \
             WHERE c.country = 'ch' GROUP BY c.id",
            "SELECT * FROM customer c LEFT JOIN country k ON k.code = c.country",
            "SELECT * FROM customer c LEFT JOIN orders o ON o.customer = c.id WHERE o.total > 5",
            "SELECT * FROM line l, orders o, customer c WHERE l.orders = o.id AND o.customer = c.id \
             AND c.id = 9",
            "SELECT * FROM customer a, customer b WHERE a.born = b.born",
        ],
        expect![[""]],
    );
}

#[test]
fn subqueries_become_joins() {
    check(
        &[
            "SELECT * FROM customer WHERE id IN (SELECT customer FROM orders WHERE total > 100)",
            "SELECT * FROM customer c WHERE EXISTS (SELECT * FROM orders o WHERE o.customer = c.id)",
            "SELECT * FROM customer c WHERE NOT EXISTS (SELECT * FROM orders o WHERE o.customer = c.id)",
            "SELECT name, (SELECT MAX(placed) FROM orders o WHERE o.customer = c.id) FROM customer c",
            "SELECT * FROM customer WHERE id NOT IN (SELECT customer FROM orders)",
            "SELECT * FROM (SELECT customer, SUM(total) s FROM orders GROUP BY customer) t WHERE customer = 5 AND s > 3",
            "SELECT * FROM (SELECT * FROM customer WHERE born > '2000-01-01') t WHERE id < 5",
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT * FROM n",
        ],
        expect![[""]],
    );
}

#[test]
fn writes_find_their_rows() {
    check(
        &[
            "INSERT INTO customer (id, name) VALUES (1, 'Ada'), (2, DEFAULT)",
            "INSERT INTO customer (id, name) SELECT id + 1000, name FROM customer",
            "UPDATE customer SET name = 'Bob' WHERE id = 4",
            "UPDATE customer SET name = 'Bob' WHERE name = 'Ada'",
            "UPDATE orders SET total = total + 1 WHERE customer = 5 ORDER BY placed LIMIT 2",
            "UPDATE orders o JOIN customer c ON c.id = o.customer SET o.state = c.name WHERE c.id = 1",
            "DELETE FROM line WHERE orders = 5",
            "DELETE l FROM line l JOIN orders o ON o.id = l.orders WHERE o.customer = 3",
        ],
        expect![[""]],
    );
}
