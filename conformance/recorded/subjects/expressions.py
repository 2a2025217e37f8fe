"""Expressions over columns and constants of unlike types, with their warnings: what random ones found."""

DATABASE = "recorded_expressions"

STATEMENTS = [
    # One domain for the three values of BETWEEN.
    "SELECT id, tx BETWEEN vc AND it, vc NOT BETWEEN tx AND it, it BETWEEN '1' AND vc, vc BETWEEN t AND da FROM e ORDER BY id",
    "SELECT id FROM e WHERE vc BETWEEN 'a' AND 5 ORDER BY id",
    # Documents as conditions, and as arguments that are none.
    "SELECT IF(js, 1, 2), CASE WHEN js THEN 1 ELSE 2 END FROM e ORDER BY id", "SELECT js AND 1, NOT js FROM e ORDER BY id",
    "SELECT JSON_OVERLAPS('x', DATE'2020-01-01')", "SELECT JSON_OVERLAPS('1', DATE'2020-01-01')", "SELECT JSON_DEPTH(5)",
    "SELECT CHARSET(js), COLLATION(js), CHARSET(JSON_ARRAY()) FROM e LIMIT 1", "SELECT CAST('\"a\"' AS JSON) & 2",
    # Casts.
    "SELECT CAST(2 AS DATE), CAST(0 AS DATE), CAST(100 AS DATE), CAST(2.0 AS DATE), CAST(2e0 AS DATE)", "SELECT CAST(99 AS DATE)",
    "SELECT CAST('' AS YEAR), CAST('abc' AS YEAR), CAST('12' AS YEAR), CAST(0 AS YEAR), CAST('2024-01-01' AS YEAR)",
    "SELECT CAST('1e2' AS TIME), CAST('12e' AS TIME), CAST('1E+2' AS TIME), CAST('12:30e5' AS TIME), CAST('1 02' AS TIME)",
    "SELECT CASE DATE'2020-01-01' WHEN 'null' THEN 1 ELSE 2 END",
    # Bytes where text is wanted.
    "SELECT vc = x'FF' FROM e", "SELECT x'C381' IN (vc) FROM e ORDER BY id", "SELECT REPLACE('a', 'b', x'FF')", "SELECT REPLACE(1, 2, x'FF')",
    "SELECT LPAD(TRUE, 30, x'FF')", "SELECT HEX(CONCAT('a', x'FF'))", "SELECT INSERT(vc, -4, -1, x'FF') FROM e LIMIT 1", "SELECT CONVERT(x'FF' USING utf8mb4)",
    # What is to go.
    "SELECT ! 1", "SELECT BINARY 'a'", "SELECT CAST('a' AS NCHAR(2))", "SELECT ! 1, ! 0",
    # Dates beyond all dates.
    "SELECT DATE_ADD(TIMESTAMP'9999-12-31 10:00:00', INTERVAL 1 DAY)", "SELECT DATE_ADD('9999-12-31', INTERVAL 1 DAY)",
    # Digits.
    "SELECT f, d, z, zi, y FROM e ORDER BY id", "SELECT PI(), PI() + 0, YEAR('0005-01-01'), CAST(0 AS YEAR)",
    "SELECT TRUNCATE(0.125, id), ROUND(1.5, id) FROM e ORDER BY id", "SELECT DATE_FORMAT(da, ''), TIME_FORMAT(t, ''), FROM_UNIXTIME(1, '') FROM e LIMIT 1",
    "SELECT CONV('12z', 10, 16), CONV('zz', 36, 10), CONV('', 10, 2)", "SELECT BIN('abc')",
    # The day of a time.
    "SELECT DATE(x), CAST(x AS DATE), LAST_DAY(x), TO_DAYS(x), WEEKDAY(x), DATE(CAST(x AS DATETIME)), TO_SECONDS(x), EXTRACT(DAY FROM x) FROM "
    "(SELECT TIME'23:59:59' AS x UNION ALL SELECT TIME'24:00:00' UNION ALL SELECT TIME'30:00:00' UNION ALL SELECT TIME'-00:00:01' UNION ALL SELECT TIME'-25:00:00' "
    "UNION ALL SELECT TIME'838:59:59') v",
    # Integers by their bits.
    "SELECT CASE -1 WHEN 18446744073709551615 THEN 1 ELSE 0 END, CASE 18446744073709551615 WHEN 1e0 THEN 3 WHEN -1 THEN 4 END, -1 IN (18446744073709551615, 1), "
    "-1 IN (~0, 5), NULLIF(-1, 18446744073709551615)",
    "SELECT it, it - 1 IN (~it, CAST(it + 5 AS UNSIGNED)), (~it) IN (-6, -1), (~it) IN (-6, it), ~it IN (-it - 1, 0.5), CASE ~it WHEN -it - 1 THEN 1 ELSE 0 END FROM e ORDER BY id",
    # Names by their numbers, and a year is its first day.
    "SELECT CAST(y AS DATE), TO_DAYS(y), y = da, y < da, MONTH(y), CAST(y AS TIME), TIMESTAMP(y) FROM e ORDER BY id",
    "SELECT n, n BETWEEN 'HIGH' AND 2, n BETWEEN 2 AND '3', n BETWEEN '1' AND 2, 2 BETWEEN n AND '3' FROM e ORDER BY id",
    # JSON_VALUE by the type that it returns.
    "SELECT JSON_VALUE('{\"a\": \"12\"}', '$.a' RETURNING SIGNED), JSON_VALUE('[1.5]', '$[0]' RETURNING SIGNED), JSON_VALUE('[1]', '$' RETURNING SIGNED), "
    "JSON_VALUE('[\"x\"]', '$[0]' RETURNING SIGNED), JSON_VALUE('[1.678]', '$[0]' RETURNING DECIMAL(4,2)), JSON_VALUE('[12345.6]', '$[0]' RETURNING DECIMAL(4,2)), "
    "JSON_VALUE('[\"abc\"]', '$[0]' RETURNING CHAR(2)), JSON_VALUE('[[1]]', '$[0]' RETURNING JSON), JSON_VALUE('[1]', '$'), JSON_VALUE('[\"2020-01-01\"]', '$[0]' RETURNING DATE)",
    "SELECT JSON_VALUE('x', '$.a')", "SELECT JSON_VALUE(1, '$')", "SELECT JSON_VALUE(js, '$[0]' RETURNING SIGNED) FROM e ORDER BY id",
    # Whole numbers of texts and doubles of columns.
    "SELECT tx & 1, ~tx, CAST(tx AS FLOAT), tx DIV 2 FROM e ORDER BY id", "SELECT CAST(tx AS SIGNED) FROM e ORDER BY id", "SELECT 'x1' DIV 2, '1x' DIV 2",
    "SELECT NULL + 'ab', NULL * 'ab', NULL / 'ab'", "SELECT NULL XOR CAST('ab' AS SIGNED)",
    "SELECT TIMESTAMPADD(QUARTER, 1431655766, '2024-01-01')", "SELECT TIMESTAMPADD(WEEK, 613566755, '2024-01-01')", "SELECT DATE_ADD('2024-01-01', INTERVAL tx MINUTE) FROM e ORDER BY id",
    # Numbers of fixed digits as texts, times of moments, bits as bytes.
    "SELECT CONCAT(f), CONCAT(d), LENGTH(d), CAST(f AS CHAR) FROM e ORDER BY id",
    "SELECT ADDTIME('10:00:00', TIMESTAMP'2024-01-01 01:00:00'), ADDTIME('10:00:00', DATE'2024-01-01'), TIMESTAMP('2024-01-01', TIMESTAMP'2024-01-01 01:00:00')",
    "SELECT HEX(COALESCE(b, 'x')), b < js, js < x'41' FROM e ORDER BY id", "SELECT CONVERT_TZ('1970-01-01 00:00:00.999', '+00:00', '+05:30')",
    "SELECT ROUND(TIME'10:11:12.5'), FLOOR(DATE'2024-02-29'), ABS(t), - da FROM e ORDER BY id", "SELECT FORMAT_BYTES(1.73), FORMAT_BYTES(-1.5), FORMAT_PICO_TIME(1.7)",
    "SELECT vc IN (tx COLLATE utf8mb4_general_ci, tx COLLATE utf8mb4_bin) FROM e", "SELECT vc IN (u, 'a') FROM e", "SELECT vc IN (u, 'a', 'b') FROM e", "SELECT vc BETWEEN u AND 'a' FROM e",
    # The size of documents, and the weights of values.
    "SELECT JSON_STORAGE_SIZE('null'), JSON_STORAGE_SIZE('70000'), JSON_STORAGE_SIZE('3000000000'), JSON_STORAGE_SIZE('{\"a\": 1, \"b\": [true, 2]}'), "
    "JSON_STORAGE_SIZE(JSON_ARRAY(12.50)), JSON_STORAGE_SIZE(CAST(DATE'2020-01-01' AS JSON)), JSON_STORAGE_SIZE(JSON_ARRAY(REPEAT('a', 70000), 70000, JSON_ARRAY(70000)))",
    "SELECT JSON_STORAGE_SIZE(js) FROM e ORDER BY id",
    "SELECT HEX(WEIGHT_STRING(it)), HEX(WEIGHT_STRING(da)), HEX(WEIGHT_STRING(t)), HEX(WEIGHT_STRING(d)), HEX(WEIGHT_STRING(y)), HEX(WEIGHT_STRING(js)) FROM e ORDER BY id",
    "SELECT HEX(WEIGHT_STRING('a\u00e9 ' COLLATE utf8mb4_bin)), HEX(WEIGHT_STRING('a\u00e9\u00df' COLLATE utf8mb4_general_ci)), HEX(WEIGHT_STRING(CONVERT('a\u00e9' USING latin1))), "
    "HEX(WEIGHT_STRING(x'FF41')), HEX(WEIGHT_STRING('a\u00e9' COLLATE utf8mb4_0900_bin))",
]


def cases(server):
    connection = server.connect()
    cursor = connection.cursor()
    cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
    cursor.execute(f"CREATE DATABASE {DATABASE}")
    cursor.execute(f"USE {DATABASE}")
    cursor.execute("SET sql_mode = 'STRICT_TRANS_TABLES', time_zone = '+00:00', timestamp = 1700000000")
    cursor.execute(
        "CREATE TABLE e (id INT PRIMARY KEY, it INT, tx TEXT, vc VARCHAR(20), da DATE, t TIME, js JSON, f FLOAT(7,3), "
        "d DOUBLE(10,2), z DECIMAL(8,2) ZEROFILL, zi INT(6) ZEROFILL, y YEAR, n ENUM('low','mid','high'), b BIT(9), "
        "u VARCHAR(20) COLLATE utf8mb4_general_ci)"
    )
    cursor.execute(
        "INSERT INTO e VALUES (1, 0, 'Hello', 'á', '2024-02-29', '12:30:45', '[1]', 0.1, 0.005, 3.5, 42, 0, 'low', 65, 'a'), "
        "(2, 5, '1.5e3', '12abc', '1999-12-31', '-00:00:01', '-1.5', 1234.5678, 99999.999, 0, 0, 2024, 'mid', 0, 'b'), "
        "(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    )
    for statement in STATEMENTS:
        # Twice: a plan that is kept says the same.
        answers = [server.answer(connection, statement) + "\n" + server.answer(connection, "SHOW WARNINGS") for _ in range(2)]
        assert answers[0] == answers[1] or server.port is None, f"{statement}: {answers}"
        yield statement, answers[0]
    cursor.execute(f"DROP DATABASE {DATABASE}")


KNOWN = {
    **dict.fromkeys(
        [
            "SELECT id, tx BETWEEN vc AND it, vc NOT BETWEEN tx AND it, it BETWEEN '1' AND vc, vc BETWEEN t AND da FROM e ORDER BY id",
            "SELECT IF(js, 1, 2), CASE WHEN js THEN 1 ELSE 2 END FROM e ORDER BY id", "SELECT CAST('\"a\"' AS JSON) & 2",
        ],
        "warnings of conversions name no column in Firn",
    ),
    "SELECT id FROM e WHERE vc BETWEEN 'a' AND 5 ORDER BY id": "Firn warns of texts that are no numbers, MySQL says nothing of them here",
    "SELECT CASE DATE'2020-01-01' WHEN 'null' THEN 1 ELSE 2 END": "the constant is compared as a date and time in Firn",
}
