//! What is refused, and with which message.

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
    expect![[r#"
        SELECT nothing FROM customer
            1054: Unknown column 'nothing' in 'field list'
        SELECT name FROM customer WHERE customer.nothing = 1
            1054: Unknown column 'customer.nothing' in 'where clause'
        SELECT name FROM customer ORDER BY nothing
            1054: Unknown column 'nothing' in 'order clause'
        SELECT name FROM customer GROUP BY nothing
            1054: Unknown column 'nothing' in 'group statement'
        SELECT name FROM customer HAVING nothing > 1
            1054: Unknown column 'nothing' in 'having clause'
        SELECT id FROM customer, orders
            1052: Column 'id' in field list is ambiguous
        SELECT x.* FROM customer
            1051: Unknown table 'x'
        SELECT * FROM nowhere
            1146: Table 'test.nowhere' doesn't exist
        SELECT * FROM other.t
            1049: Unknown database 'other'
        SELECT *
            1096: No tables used
        SELECT 1 FROM customer, customer
            1066: Not unique table/alias: 'customer'
        SELECT name, COUNT(*) FROM customer
            1140: In aggregated query without GROUP BY, expression #1 of SELECT list contains nonaggregated column 'test.customer.name'; this is incompatible with sql_mode=only_full_group_by
        SELECT name, COUNT(*) FROM customer GROUP BY country
            1055: Expression #1 of SELECT list is not in GROUP BY clause and contains nonaggregated column 'test.customer.name' which is not functionally dependent on columns in GROUP BY clause; this is incompatible with sql_mode=only_full_group_by
        SELECT name FROM customer WHERE COUNT(*) > 1
            1111: Invalid use of group function
        SELECT (SELECT id, name FROM customer)
            1241: Operand should contain 1 column(s)
        SELECT id FROM customer WHERE (id, name) = 1
            1241: Operand should contain 2 column(s)
        SELECT id FROM customer UNION SELECT id, name FROM customer
            1222: The used SELECT statements have a different number of columns
        SELECT id, id FROM customer ORDER BY 3
            1054: Unknown column '3' in 'order clause'
        SELECT * FROM (SELECT id, id FROM customer) t
            1060: Duplicate column name 'id'
        SELECT nosuch(1)
            1305: FUNCTION test.NOSUCH does not exist
        SELECT ABS()
            1582: Incorrect parameter count in the call to native function 'ABS'
        SELECT ROW_NUMBER() FROM customer
            3579: Window function 'row_number' requires OVER clause
        SELECT id FROM customer WHERE ROW_NUMBER() OVER () = 1
            3593: You cannot use the window function 'row_number' in this context.
        SELECT DISTINCT name FROM customer ORDER BY born
            3065: Expression #1 of ORDER BY clause is not in SELECT list, references column 'test.customer.born' which is not in SELECT list; this is incompatible with DISTINCT
        SELECT * FROM customer USE INDEX (nothing)
            1176: Key 'nothing' doesn't exist in table 'customer'
        INSERT INTO customer (id, nothing) VALUES (1, 2)
            1054: Unknown column 'nothing' in 'field list'
        INSERT INTO customer (id, id) VALUES (1, 2)
            1110: Column 'id' specified twice
        INSERT INTO customer (id, name) VALUES (1)
            1136: Column count doesn't match value count at row 1
        INSERT INTO customer (id, name) SELECT 1
            1136: Column count doesn't match value count at row 1
        UPDATE customer SET nothing = 1
            1054: Unknown column 'nothing' in 'field list'
        UPDATE totals SET s = 1
            1288: The target table totals of the UPDATE is not updatable
        INSERT INTO totals VALUES (1, 2)
            1471: The target table totals of the INSERT is not insertable-into
        DELETE nothing FROM customer
            1109: Unknown table 'nothing' in MULTI DELETE
        SELECT name COLLATE utf8mb4_bin = name COLLATE utf8mb4_0900_ai_ci FROM customer
            1267: Illegal mix of collations (utf8mb4_bin,EXPLICIT) and (utf8mb4_0900_ai_ci,EXPLICIT) for operation '='
        SELECT name COLLATE nosuch FROM customer
            1273: Unknown collation: 'nosuch'
    "#]].assert_eq(&all);
}

#[test]
fn a_table_of_a_node_that_cannot_be_reached_is_not_unknown() {
    let database = shop();
    database.is_lost.store(true, std::sync::atomic::Ordering::Relaxed);
    let refused = database.plan("SELECT id FROM customer").unwrap_err();
    assert_eq!((refused.code, refused.ends_transaction()), (1429, true), "{refused}");
    assert_eq!(database.catalog.has_schema("test").unwrap_err().code, 1429);
    assert_eq!(database.catalog.schemas().unwrap_err().code, 1429);
    database.is_lost.store(false, std::sync::atomic::Ordering::Relaxed);
    database.plan("SELECT id FROM customer").unwrap();
}
