//! The access paths that plans choose.

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
        expect![[r#"
            SELECT name FROM customer WHERE id = 5
            -> Single-row index lookup on customer using PRIMARY (id=5)  (cost=2.50 rows=1)

            SELECT name FROM customer WHERE id = '5'
            -> Single-row index lookup on customer using PRIMARY (id=5)  (cost=2.50 rows=1)

            SELECT name FROM customer WHERE id IN (1, 2, 3)
            -> Index range scan on customer using PRIMARY over (id=1 or id=2 or id=3)  (cost=7.50 rows=3)

            SELECT name FROM customer WHERE id BETWEEN 10 AND 20
            -> Index range scan on customer using PRIMARY over (id>=10, id<=20)  (cost=113 rows=111)

            SELECT name FROM customer WHERE id > 10 AND id < 20 AND name <> 'x'
            -> Index range scan on customer using PRIMARY over (id>10, id<20), filter (customer.name <> 'x')  (cost=113 rows=100.00)

            SELECT id FROM customer WHERE name = 'Ada'
            -> Covering index range scan on customer using by_name over (name='Ada')  (cost=7.50 rows=10)

            SELECT * FROM customer WHERE name = 5
            -> Table scan on customer, filter (cast(customer.name as double) = 5)  (cost=1002 rows=100)

            SELECT id FROM customer WHERE name LIKE 'Ad%'
            -> Covering index range scan on customer using by_name over (name>='Ad', name<='Ad􏿿􏿿􏿿􏿿􏿿􏿿􏿿􏿿'), filter (customer.name like 'Ad%')  (cost=68.17 rows=111)

            SELECT id FROM customer WHERE country = 'ch' AND born >= '1990-01-01'
            -> Covering index range scan on customer using by_country over (country='ch', born>='1990-01-01 00:00:00.000000')  (cost=21.50 rows=33.33)

            SELECT id FROM customer WHERE country IS NULL
            -> Covering index range scan on customer using by_country over (country=NULL)  (cost=61.50 rows=100)

            SELECT * FROM customer WHERE id = 1 OR name = 'Ada'
            -> Union of [Single-row index lookup on customer using PRIMARY (id=1); Index range scan on customer using by_name over (name='Ada')], filter ((customer.id = 1) or (customer.name = 'Ada'))  (cost=37.40 rows=10.99)

            SELECT * FROM line WHERE (orders, number) > (5, 3)
            -> Index range scan on line using PRIMARY over (orders>5 or orders=5, number>3), filter ((line.orders > 5) or ((line.orders = 5) and (line.number > 3)))  (cost=16905 rows=5687)

            SELECT * FROM line WHERE orders = 5 AND number IN (1, 2)
            -> Index range scan on line using PRIMARY over (orders=5, number=1 or orders=5, number=2)  (cost=5 rows=2)

        "#]],
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
        expect![[r#"
            SELECT * FROM customer ORDER BY id
            -> Table scan on customer  (cost=1002 rows=1000)

            SELECT * FROM customer ORDER BY id DESC LIMIT 3
            -> Limit: 3 row(s)  (cost=3.00 rows=3)
                -> Table scan on customer (reverse)  (cost=1002 rows=1000)

            SELECT * FROM orders WHERE customer = 3 ORDER BY placed DESC LIMIT 1
            -> Limit: 1 row(s)  (cost=3.00 rows=1)
                -> Index range scan on orders using by_customer over (customer=3) (reverse)  (cost=950 rows=316)

            SELECT * FROM orders ORDER BY total LIMIT 5
            -> Limit: 5 row(s)  (cost=29933 rows=5)
                -> Sort: orders.total, limit 5  (cost=29933 rows=10000)
                    -> Table scan on orders  (cost=10002 rows=10000)

            SELECT MAX(placed) FROM orders
            -> Aggregate: max(orders.placed)  (cost=1.60 rows=1)
                -> Limit: 1 row(s)  (cost=1 rows=1)
                    -> Covering index scan on orders using by_placed (reverse)  (cost=6002 rows=10000)

            SELECT MIN(placed) FROM orders WHERE customer = 4
            -> Aggregate: min(orders.placed)  (cost=1.60 rows=1)
                -> Limit: 1 row(s)  (cost=1 rows=1)
                    -> Covering index range scan on orders using by_customer over (customer=4)  (cost=191 rows=316)

            SELECT COUNT(*) FROM orders
            -> Aggregate: count(*)  (cost=12002 rows=1)
                -> Covering index scan on orders using by_customer  (cost=6002 rows=10000)

            SELECT customer, COUNT(*) FROM orders GROUP BY customer
            -> Group aggregate by orders.customer: count(*)  (cost=8002 rows=100)
                -> Covering index scan on orders using by_customer  (cost=6002 rows=10000)

            SELECT state, SUM(total) FROM orders GROUP BY state ORDER BY state
            -> Sort: orders.state  (cost=16101 rows=100)
                -> Hash aggregate by orders.state: sum(orders.total)  (cost=16002 rows=100)
                    -> Table scan on orders  (cost=10002 rows=10000)

        "#]],
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
        expect![[r#"
            SELECT c.name, o.total FROM orders o JOIN customer c ON c.id = o.customer WHERE o.id = 7
            -> Nested loop inner join  (cost=5 rows=1)
                -> Single-row index lookup on o using PRIMARY (id=7)  (cost=2.50 rows=1)
                -> Single-row index lookup on c using PRIMARY (id=o.customer)  (cost=2.50 rows=1)

            SELECT c.name, COUNT(*) FROM customer c JOIN orders o ON o.customer = c.id WHERE c.country = 'ch' GROUP BY c.id
            -> Hash aggregate by c.id: count(*), any_value(c.name)  (cost=11123 rows=31.62)
                -> Hash inner join (o.customer = c.id)  (cost=10523 rows=1000)
                    -> Covering index scan on o using by_customer  (cost=6002 rows=10000)
                    -> Index range scan on c using by_country over (country='ch')  (cost=302 rows=100)

            SELECT * FROM customer c LEFT JOIN country k ON k.code = c.country
            -> Hash left join (c.country = k.code)  (cost=1623 rows=1000)
                -> Table scan on c  (cost=1002 rows=1000)
                -> Table scan on k  (cost=102 rows=100)

            SELECT * FROM customer c LEFT JOIN orders o ON o.customer = c.id WHERE o.total > 5
            -> Hash inner join (o.customer = c.id)  (cost=13870 rows=3333)
                -> Table scan on o, filter (o.total > 5)  (cost=10002 rows=3333)
                -> Table scan on c  (cost=1002 rows=1000)

            SELECT * FROM line l, orders o, customer c WHERE l.orders = o.id AND o.customer = c.id AND c.id = 9
            -> Hash inner join (l.orders = o.id)  (cost=71492 rows=1581)
                -> Nested loop inner join  (cost=50004 rows=50000)
                    -> Single-row index lookup on c using PRIMARY (id=9)  (cost=2.50 rows=1)
                    -> Table scan on l  (cost=50002 rows=50000)
                -> Index range scan on o using by_customer over (customer=9)  (cost=950 rows=316)

            SELECT * FROM customer a, customer b WHERE a.born = b.born
            -> Hash inner join (a.born = b.born)  (cost=13603 rows=100000)
                -> Table scan on a  (cost=1002 rows=1000)
                -> Table scan on b  (cost=1002 rows=1000)

        "#]],
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
            "SELECT id FROM orders o WHERE total > (SELECT AVG(total) FROM orders p WHERE p.customer = o.customer) AND NOT EXISTS (SELECT * FROM customer c WHERE c.id = o.customer AND c.country <> 'ch')",
            "SELECT * FROM (SELECT customer, SUM(total) s FROM orders GROUP BY customer) t WHERE customer = 5 AND s > 3",
            "SELECT * FROM (SELECT * FROM customer WHERE born > '2000-01-01') t WHERE id < 5",
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT * FROM n",
        ],
        expect![[r#"
            SELECT * FROM customer WHERE id IN (SELECT customer FROM orders WHERE total > 100)
            -> Hash semijoin (customer.id = orders.customer)  (cost=15403 rows=1000)
                -> Table scan on customer  (cost=1002 rows=1000)
                -> Table scan on orders, filter (orders.total > 100)  (cost=10002 rows=3333)

            SELECT * FROM customer c WHERE EXISTS (SELECT * FROM orders o WHERE o.customer = c.id)
            -> Hash semijoin (c.id = o.customer)  (cost=23403 rows=1000)
                -> Table scan on c  (cost=1002 rows=1000)
                -> Table scan on o  (cost=10002 rows=10000)

            SELECT * FROM customer c WHERE NOT EXISTS (SELECT * FROM orders o WHERE o.customer = c.id)
            -> Hash antijoin (c.id = o.customer)  (cost=23403 rows=100.00)
                -> Table scan on c  (cost=1002 rows=1000)
                -> Table scan on o  (cost=10002 rows=10000)

            SELECT name, (SELECT MAX(placed) FROM orders o WHERE o.customer = c.id) FROM customer c
            -> Covering index scan on c using by_name  (cost=602 rows=1000)
            -> Select (subquery in projection; dependent)
                -> Aggregate: max(o.placed)  (cost=1.60 rows=1)
                    -> Limit: 1 row(s)  (cost=1 rows=1)
                        -> Covering index range scan on o using by_customer over (customer=c.id) (reverse)  (cost=191 rows=316)

            SELECT * FROM customer WHERE id NOT IN (SELECT customer FROM orders)
            -> Nested loop antijoin  (cost=11756 rows=100.00)
                -> Table scan on customer  (cost=1002 rows=1000)
                -> Covering index range scan on orders using by_customer over (customer=customer.id)  (cost=191 rows=316)

            SELECT id FROM orders o WHERE total > (SELECT AVG(total) FROM orders p WHERE p.customer = o.customer) AND NOT EXISTS (SELECT * FROM customer c WHERE c.id = o.customer AND c.country <> 'ch')
            -> Filter: (o.total > (subquery))  (cost=13416 rows=333)
                -> Hash antijoin (o.customer = c.id)  (cost=13416 rows=333)
                    -> Table scan on o  (cost=10002 rows=10000)
                    -> Table scan on c, filter (c.country <> 'ch')  (cost=1002 rows=900)
            -> Select (subquery in condition; dependent)
                -> Aggregate: avg(p.total)  (cost=1140 rows=1)
                    -> Index range scan on p using by_customer over (customer=o.customer)  (cost=950 rows=316)

            SELECT * FROM (SELECT customer, SUM(total) s FROM orders GROUP BY customer) t WHERE customer = 5 AND s > 3
            -> Filter: (s > 3) and (customer = 5)  (cost=1013 rows=0.01)
                -> Derived table  (cost=1013 rows=0.20)
                    -> Filter: (sum(orders.total) > 3)  (cost=1013 rows=5.93)
                        -> Group aggregate by orders.customer: sum(orders.total)  (cost=1013 rows=17.78)
                            -> Index range scan on orders using by_customer over (customer=5)  (cost=950 rows=316)

            SELECT * FROM (SELECT * FROM customer WHERE born > '2000-01-01') t WHERE id < 5
            -> Index range scan on customer using PRIMARY over (id>NULL, id<5), filter (customer.born > '2000-01-01 00:00:00.000000')  (cost=335 rows=111)

            WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT * FROM n
            -> Table scan on common table 0  (cost=10 rows=10)
                -> Materialize recursive
                    -> Rows fetched before execution  (cost=0 rows=1)
                    -> Repeat until convergence
                        -> Filter: (#0 < 5)  (cost=10 rows=1.11)
                            -> Table scan on common table 0  (cost=10 rows=3.33)

        "#]],
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
        expect![[r#"
            INSERT INTO customer (id, name) VALUES (1, 'Ada'), (2, DEFAULT)
            -> Insert into customer
                -> Values: 2 row(s)  (cost=2 rows=2)

            INSERT INTO customer (id, name) SELECT id + 1000, name FROM customer
            -> Insert into customer
                -> Table scan on common table 0  (cost=602 rows=1000)
                    -> Materialize
                        -> Covering index scan on customer using by_name  (cost=602 rows=1000)

            UPDATE customer SET name = 'Bob' WHERE id = 4
            -> Update customer (immediate)
                -> Single-row index lookup on customer using PRIMARY (id=4), locking  (cost=5.50 rows=1)

            UPDATE customer SET name = 'Bob' WHERE name = 'Ada'
            -> Update customer (gathered)
                -> Index range scan on customer using by_name over (name='Ada'), locking  (cost=61.50 rows=10)

            UPDATE orders SET total = total + 1 WHERE customer = 5 ORDER BY placed LIMIT 2
            -> Update orders (immediate)
                -> Limit: 2 row(s)  (cost=12.01 rows=2)
                    -> Index range scan on orders using by_customer over (customer=5), locking  (cost=1899 rows=316)

            UPDATE orders o JOIN customer c ON c.id = o.customer SET o.state = c.name WHERE c.id = 1
            -> Update orders (gathered)
                -> Nested loop inner join  (cost=1901 rows=316)
                    -> Single-row index lookup on c using PRIMARY (id=1)  (cost=2.50 rows=1)
                    -> Index range scan on o using by_customer over (customer=1), locking  (cost=1899 rows=316)

            DELETE FROM line WHERE orders = 5
            -> Delete from line (immediate)
                -> Index range scan on line using PRIMARY over (orders=5), locking  (cost=2830 rows=707)

            DELETE l FROM line l JOIN orders o ON o.id = l.orders WHERE o.customer = 3
            -> Delete from line (gathered)
                -> Hash inner join (l.orders = o.id)  (cost=220730 rows=1581)
                    -> Table scan on l, locking  (cost=200002 rows=50000)
                    -> Covering index range scan on o using by_customer over (customer=3)  (cost=191 rows=316)

        "#]],
    );
}

#[test]
fn disjunctions_say_something_of_each_table() {
    check(
        &[
            "SELECT COUNT(*) FROM orders o, customer c WHERE (c.id = o.customer AND c.name = 'Ada' AND o.total > 5) OR (c.id = o.customer AND c.name = 'Bob' AND o.total > 9)",
            "SELECT COUNT(*) FROM orders o, customer c WHERE (c.id = o.customer AND c.name = 'Ada') OR c.id = o.customer",
            "SELECT COUNT(*) FROM orders o, customer c WHERE c.id = o.customer AND (c.name = 'Ada' OR o.total > 5)",
            "SELECT COUNT(*) FROM orders o, customer c WHERE (c.name = 'Ada' AND o.id = 7) OR (c.name = 'Bob' AND RAND() < 0.5)",
        ],
        expect![[r#"
            SELECT COUNT(*) FROM orders o, customer c WHERE (c.id = o.customer AND c.name = 'Ada' AND o.total > 5) OR (c.id = o.customer AND c.name = 'Bob' AND o.total > 9)
            -> Aggregate: count(*)  (cost=12263 rows=1)
                -> Hash inner join (o.customer = c.id), extra (((c.name = 'Ada') and (o.total > 5)) or ((c.name = 'Bob') and (o.total > 9)))  (cost=12263 rows=0.74)
                    -> Table scan on o, filter ((o.total > 5) or (o.total > 9))  (cost=10002 rows=5556)
                    -> Covering index range scan on c using by_name over (name='Ada' or name='Bob'), filter ((c.name = 'Ada') or (c.name = 'Bob'))  (cost=15 rows=20)

            SELECT COUNT(*) FROM orders o, customer c WHERE (c.id = o.customer AND c.name = 'Ada') OR c.id = o.customer
            -> Aggregate: count(*)  (cost=18803 rows=1)
                -> Hash inner join (o.customer = c.id)  (cost=12803 rows=10000)
                    -> Covering index scan on o using by_customer  (cost=6002 rows=10000)
                    -> Covering index scan on c using by_name  (cost=602 rows=1000)

            SELECT COUNT(*) FROM orders o, customer c WHERE c.id = o.customer AND (c.name = 'Ada' OR o.total > 5)
            -> Aggregate: count(*)  (cost=18183 rows=1)
                -> Hash inner join (o.customer = c.id), extra ((c.name = 'Ada') or (o.total > 5))  (cost=16143 rows=3400)
                    -> Table scan on o  (cost=10002 rows=10000)
                    -> Covering index scan on c using by_name  (cost=602 rows=1000)

            SELECT COUNT(*) FROM orders o, customer c WHERE (c.name = 'Ada' AND o.id = 7) OR (c.name = 'Bob' AND RAND() < 0.5)
            -> Aggregate: count(*)  (cost=124046 rows=1)
                -> Nested loop inner join  (cost=120045 rows=6669)
                    -> Covering index range scan on c using by_name over (name='Ada' or name='Bob'), filter ((c.name = 'Ada') or (c.name = 'Bob'))  (cost=15 rows=20)
                    -> Covering index scan on o using by_customer, filter (((c.name = 'Ada') and (o.id = 7)) or ((c.name = 'Bob') and (rand() < 0.5)))  (cost=6002 rows=333)

        "#]],
    );
}
