//! The results of running plans.

use expect_test::{Expect, expect};

use super::database::Database;
use super::shop;

fn filled() -> Database {
    let mut database = shop();
    for statement in [
        "INSERT INTO country VALUES ('ch', 'Switzerland'), ('de', 'Germany'), ('fr', 'France')",
        "INSERT INTO customer VALUES (1, 'Ada', 'ch', '1990-05-01'), (2, 'Bob', 'de', '1985-01-31'), \
         (3, 'Cid', NULL, NULL), (4, 'Dora', 'ch', '2001-12-24')",
        "INSERT INTO orders (customer, placed, total, state) VALUES (1, '2024-01-01 10:00', 12.50, 'new'), \
         (1, '2024-01-02 11:00', 7.25, 'paid'), (2, '2024-02-01', 100, 'new'), (4, '2024-03-01', NULL, 'paid')",
        "INSERT INTO line VALUES (1, 1, 10, 2), (1, 2, 11, 1), (2, 1, 10, 5), (3, 1, 12, 9)",
    ] {
        assert_eq!(database.run(statement), "", "{statement}");
    }
    database
}

fn check(statements: &[&str], expected: Expect) {
    let mut database = filled();
    let mut all = String::new();
    for statement in statements {
        all += &format!("{statement}\n");
        for row in database.run(statement).lines() {
            all += &format!("    {row}\n");
        }
    }
    expected.assert_eq(&all);
}

#[test]
fn single_tables() {
    check(
        &[
            "SELECT id, name FROM customer WHERE id = 2",
            "SELECT name FROM customer WHERE id IN (4, 1, 9) ORDER BY name DESC",
            "SELECT name FROM customer WHERE born >= '1990-01-01' ORDER BY born",
            "SELECT name FROM customer WHERE country = 'CH' ORDER BY 1",
            "SELECT name FROM customer WHERE country IS NULL",
            "SELECT name FROM customer WHERE country <=> NULL",
            "SELECT id FROM customer WHERE name LIKE 'D%'",
            "SELECT id + 1 AS next, UPPER(name) FROM customer ORDER BY next DESC LIMIT 2 OFFSET 1",
            "SELECT id FROM orders WHERE total > 10 AND state = 'new'",
            "SELECT COUNT(*), COUNT(total), SUM(total), AVG(total), MIN(placed), MAX(id) FROM orders",
            "SELECT customer, COUNT(*) c FROM orders GROUP BY customer HAVING c > 1",
            "SELECT state, GROUP_CONCAT(id ORDER BY id DESC SEPARATOR '-') FROM orders GROUP BY state ORDER BY state",
            "SELECT DISTINCT state FROM orders ORDER BY state",
            "SELECT CASE WHEN id < 3 THEN 'few' ELSE 'many' END, IFNULL(country, '?') FROM customer ORDER BY id",
            "SELECT COUNT(*) FROM line WHERE (orders, number) > (1, 1)",
            "SELECT MAX(placed) FROM orders WHERE customer = 1",
            "SELECT 1 + 1, 'a', NULL IS NULL, 7 DIV 2, DATE '2024-02-28' + INTERVAL 2 DAY",
            "SELECT state, COUNT(*) FROM orders GROUP BY state WITH ROLLUP",
        ],
        expect![[r#"
            SELECT id, name FROM customer WHERE id = 2
                2 Bob
            SELECT name FROM customer WHERE id IN (4, 1, 9) ORDER BY name DESC
                Dora
                Ada
            SELECT name FROM customer WHERE born >= '1990-01-01' ORDER BY born
                Ada
                Dora
            SELECT name FROM customer WHERE country = 'CH' ORDER BY 1
                Ada
                Dora
            SELECT name FROM customer WHERE country IS NULL
                Cid
            SELECT name FROM customer WHERE country <=> NULL
                Cid
            SELECT id FROM customer WHERE name LIKE 'D%'
                4
            SELECT id + 1 AS next, UPPER(name) FROM customer ORDER BY next DESC LIMIT 2 OFFSET 1
                4 CID
                3 BOB
            SELECT id FROM orders WHERE total > 10 AND state = 'new'
                1
                3
            SELECT COUNT(*), COUNT(total), SUM(total), AVG(total), MIN(placed), MAX(id) FROM orders
                4 3 119.75 39.916667 2024-01-01 10:00:00 4
            SELECT customer, COUNT(*) c FROM orders GROUP BY customer HAVING c > 1
                1 2
            SELECT state, GROUP_CONCAT(id ORDER BY id DESC SEPARATOR '-') FROM orders GROUP BY state ORDER BY state
                new 3-1
                paid 4-2
            SELECT DISTINCT state FROM orders ORDER BY state
                new
                paid
            SELECT CASE WHEN id < 3 THEN 'few' ELSE 'many' END, IFNULL(country, '?') FROM customer ORDER BY id
                few ch
                few de
                many ?
                many ch
            SELECT COUNT(*) FROM line WHERE (orders, number) > (1, 1)
                3
            SELECT MAX(placed) FROM orders WHERE customer = 1
                2024-01-02 11:00:00
            SELECT 1 + 1, 'a', NULL IS NULL, 7 DIV 2, DATE '2024-02-28' + INTERVAL 2 DAY
                2 a 1 3 2024-03-01
            SELECT state, COUNT(*) FROM orders GROUP BY state WITH ROLLUP
                new 2
                paid 2
                NULL 4
        "#]],
    );
}

#[test]
fn columns_outside_groups_have_any_value_where_the_mode_allows_it() {
    let mut database = filled();
    let statement = "SELECT country, name FROM customer WHERE id < 3 GROUP BY country ORDER BY 1";
    assert!(database.run(statement).starts_with("1055"));
    database.set_mode(crate::types::SqlMode::NONE);
    assert_eq!(database.run(statement), "ch Ada\nde Bob");
}

#[test]
fn several_tables() {
    check(
        &[
            "SELECT c.name, o.id FROM customer c JOIN orders o ON o.customer = c.id ORDER BY o.id",
            "SELECT c.name, o.id FROM customer c LEFT JOIN orders o ON o.customer = c.id ORDER BY c.id, o.id",
            "SELECT c.name, k.name FROM country k RIGHT JOIN customer c ON k.code = c.country ORDER BY c.id",
            "SELECT name FROM customer c LEFT JOIN orders o ON o.customer = c.id WHERE o.id IS NULL",
            "SELECT a.name, b.name FROM customer a JOIN customer b USING (country) WHERE a.id < b.id",
            "SELECT c.name, SUM(l.amount) FROM customer c, orders o, line l \
             WHERE o.customer = c.id AND l.orders = o.id GROUP BY c.id ORDER BY 2 DESC",
            "SELECT name FROM customer WHERE id IN (SELECT customer FROM orders WHERE total > 10) ORDER BY id",
            "SELECT name FROM customer WHERE id NOT IN (SELECT customer FROM orders)",
            "SELECT name FROM customer c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND o.state = 'paid') ORDER BY 1",
            "SELECT name FROM customer c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)",
            "SELECT name, (SELECT COUNT(*) FROM orders o WHERE o.customer = c.id) FROM customer c ORDER BY id",
            "SELECT name FROM customer WHERE id > ALL (SELECT customer FROM orders WHERE state = 'new')",
            "SELECT s FROM (SELECT customer, SUM(total) s FROM orders GROUP BY customer) t WHERE customer = 1",
            "SELECT t.name, x.n FROM customer t, LATERAL (SELECT COUNT(*) n FROM orders o WHERE o.customer = t.id) x ORDER BY t.id",
            "SELECT id FROM customer WHERE id < 3 UNION SELECT id FROM orders ORDER BY id DESC",
            "SELECT id FROM orders EXCEPT SELECT id FROM customer WHERE id < 3",
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT SUM(i) FROM n",
            "WITH a AS (SELECT customer c, COUNT(*) n FROM orders GROUP BY customer) SELECT x.c FROM a x JOIN a y ON x.n = y.n AND x.c < y.c",
            "SELECT id, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY id DESC) r, SUM(total) OVER () FROM orders ORDER BY id",
            "VALUES ROW(1, 'a'), ROW(2, 'b')",
            "TABLE country",
        ],
        expect![[r#"
            SELECT c.name, o.id FROM customer c JOIN orders o ON o.customer = c.id ORDER BY o.id
                Ada 1
                Ada 2
                Bob 3
                Dora 4
            SELECT c.name, o.id FROM customer c LEFT JOIN orders o ON o.customer = c.id ORDER BY c.id, o.id
                Ada 1
                Ada 2
                Bob 3
                Cid NULL
                Dora 4
            SELECT c.name, k.name FROM country k RIGHT JOIN customer c ON k.code = c.country ORDER BY c.id
                Ada Switzerland
                Bob Germany
                Cid NULL
                Dora Switzerland
            SELECT name FROM customer c LEFT JOIN orders o ON o.customer = c.id WHERE o.id IS NULL
                Cid
            SELECT a.name, b.name FROM customer a JOIN customer b USING (country) WHERE a.id < b.id
                Ada Dora
            SELECT c.name, SUM(l.amount) FROM customer c, orders o, line l WHERE o.customer = c.id AND l.orders = o.id GROUP BY c.id ORDER BY 2 DESC
                Bob 9
                Ada 8
            SELECT name FROM customer WHERE id IN (SELECT customer FROM orders WHERE total > 10) ORDER BY id
                Ada
                Bob
            SELECT name FROM customer WHERE id NOT IN (SELECT customer FROM orders)
                Cid
            SELECT name FROM customer c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND o.state = 'paid') ORDER BY 1
                Ada
                Dora
            SELECT name FROM customer c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)
                Cid
            SELECT name, (SELECT COUNT(*) FROM orders o WHERE o.customer = c.id) FROM customer c ORDER BY id
                Ada 2
                Bob 1
                Cid 0
                Dora 1
            SELECT name FROM customer WHERE id > ALL (SELECT customer FROM orders WHERE state = 'new')
                Cid
                Dora
            SELECT s FROM (SELECT customer, SUM(total) s FROM orders GROUP BY customer) t WHERE customer = 1
                19.75
            SELECT t.name, x.n FROM customer t, LATERAL (SELECT COUNT(*) n FROM orders o WHERE o.customer = t.id) x ORDER BY t.id
                Ada 2
                Bob 1
                Cid 0
                Dora 1
            SELECT id FROM customer WHERE id < 3 UNION SELECT id FROM orders ORDER BY id DESC
                4
                3
                2
                1
            SELECT id FROM orders EXCEPT SELECT id FROM customer WHERE id < 3
                3
                4
            WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT SUM(i) FROM n
                10
            WITH a AS (SELECT customer c, COUNT(*) n FROM orders GROUP BY customer) SELECT x.c FROM a x JOIN a y ON x.n = y.n AND x.c < y.c
                2
            SELECT id, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY id DESC) r, SUM(total) OVER () FROM orders ORDER BY id
                1 2 119.75
                2 1 119.75
                3 1 119.75
                4 1 119.75
            VALUES ROW(1, 'a'), ROW(2, 'b')
                1 a
                2 b
            TABLE country
                ch Switzerland
                de Germany
                fr France
        "#]],
    );
}

#[test]
fn writes() {
    check(
        &[
            "UPDATE customer SET name = CONCAT(name, '!'), country = 'fr' WHERE id = 1",
            "SELECT * FROM customer WHERE id = 1",
            "UPDATE orders o JOIN customer c ON c.id = o.customer SET o.state = c.name WHERE c.country = 'ch'",
            "SELECT id, state FROM orders ORDER BY id",
            "INSERT INTO country VALUES ('ch', 'Suisse') AS n ON DUPLICATE KEY UPDATE name = CONCAT(country.name, '/', n.name)",
            "INSERT INTO country (code, name) VALUES ('de', 'x') ON DUPLICATE KEY UPDATE name = CONCAT(VALUES(name), code)",
            "REPLACE INTO country VALUES ('fr', 'Frankreich')",
            "SELECT * FROM country ORDER BY code",
            "DELETE FROM orders WHERE total > 50",
            "DELETE l FROM line l LEFT JOIN orders o ON o.id = l.orders WHERE o.id IS NULL",
            "SELECT orders, number FROM line",
            "INSERT INTO customer (id, name) SELECT id + 10, name FROM customer WHERE id < 3",
            "SELECT id, name FROM customer ORDER BY id",
            "DELETE FROM customer ORDER BY id DESC LIMIT 2",
            "SELECT COUNT(*) FROM customer",
            "UPDATE customer SET id = id + 1 ORDER BY id DESC",
            "SELECT GROUP_CONCAT(id) FROM customer",
        ],
        expect![[r#"
            UPDATE customer SET name = CONCAT(name, '!'), country = 'fr' WHERE id = 1
            SELECT * FROM customer WHERE id = 1
                1 Ada! fr 1990-05-01
            UPDATE orders o JOIN customer c ON c.id = o.customer SET o.state = c.name WHERE c.country = 'ch'
            SELECT id, state FROM orders ORDER BY id
                1 new
                2 paid
                3 new
                4 Dora
            INSERT INTO country VALUES ('ch', 'Suisse') AS n ON DUPLICATE KEY UPDATE name = CONCAT(country.name, '/', n.name)
            INSERT INTO country (code, name) VALUES ('de', 'x') ON DUPLICATE KEY UPDATE name = CONCAT(VALUES(name), code)
            REPLACE INTO country VALUES ('fr', 'Frankreich')
            SELECT * FROM country ORDER BY code
                ch Switzerland/Suisse
                de xde
                fr Frankreich
            DELETE FROM orders WHERE total > 50
            DELETE l FROM line l LEFT JOIN orders o ON o.id = l.orders WHERE o.id IS NULL
            SELECT orders, number FROM line
                1 1
                2 1
                1 2
            INSERT INTO customer (id, name) SELECT id + 10, name FROM customer WHERE id < 3
            SELECT id, name FROM customer ORDER BY id
                1 Ada!
                2 Bob
                3 Cid
                4 Dora
                11 Ada!
                12 Bob
            DELETE FROM customer ORDER BY id DESC LIMIT 2
            SELECT COUNT(*) FROM customer
                4
            UPDATE customer SET id = id + 1 ORDER BY id DESC
            SELECT GROUP_CONCAT(id) FROM customer
                2,3,4,5
        "#]],
    );
}

#[test]
fn disjunctions_over_tables() {
    check(
        &[
            "SELECT c.name, o.id FROM orders o, customer c WHERE (c.id = o.customer AND c.name = 'Ada' AND o.total > 10) OR (c.id = o.customer AND c.name = 'Bob' AND o.total > 9) ORDER BY 2",
            "SELECT c.name, o.id FROM orders o, customer c WHERE (c.id = o.customer AND c.name = 'Ada') OR c.id = o.customer ORDER BY 2",
            "SELECT c.name, o.id FROM orders o LEFT JOIN customer c ON (c.id = o.customer AND c.name = 'Ada') OR (c.id = o.customer AND o.total IS NULL) ORDER BY 2",
            "SELECT c.name, o.id FROM orders o, customer c WHERE (c.country = 'fr' AND o.total > 1) OR (c.country IS NULL AND o.total = 100)",
        ],
        expect![[r#"
            SELECT c.name, o.id FROM orders o, customer c WHERE (c.id = o.customer AND c.name = 'Ada' AND o.total > 10) OR (c.id = o.customer AND c.name = 'Bob' AND o.total > 9) ORDER BY 2
                Ada 1
                Bob 3
            SELECT c.name, o.id FROM orders o, customer c WHERE (c.id = o.customer AND c.name = 'Ada') OR c.id = o.customer ORDER BY 2
                Ada 1
                Ada 2
                Bob 3
                Dora 4
            SELECT c.name, o.id FROM orders o LEFT JOIN customer c ON (c.id = o.customer AND c.name = 'Ada') OR (c.id = o.customer AND o.total IS NULL) ORDER BY 2
                Ada 1
                Ada 2
                NULL 3
                Dora 4
            SELECT c.name, o.id FROM orders o, customer c WHERE (c.country = 'fr' AND o.total > 1) OR (c.country IS NULL AND o.total = 100)
                Cid 3
        "#]],
    );
}
