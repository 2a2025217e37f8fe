"""Functions' arguments at their edges, and unlike types in CASE: rows, warnings and the definition of the first column,
in strict mode. What random expressions (`conformance/random_queries/`) found."""

DATABASE = "edge_arguments"

# Expressions over the table `e`.
EXPRESSIONS = [
    # Two columns' collations together have the binary one of their character set.
    "COALESCE(v9, vg)", "CONCAT(v9, vg)", "IF(id, v9, vg)",
    # Lengths of texts.
    "REPLACE(v9, 'a', 'bcd')", "REPLACE(v9, 'abc', 'b')", "REPLACE(v9, 'abc', 'bcdefg')", "REPLACE(lt, 'abc', 'bcdef')", "REPLACE(bn, 'abc', 'bcdef')",
    "WEIGHT_STRING(it)", "WEIGHT_STRING(da)", "WEIGHT_STRING(bn)", "HEX(WEIGHT_STRING(240229))", "FROM_BASE64(it)", "FROM_BASE64(v9)", "FROM_BASE64(dc)",
    "EXPORT_SET(it, v9, lt)", "EXPORT_SET(it, bn, v9)", "TO_BASE64(lt)", "TO_BASE64(js)", "SPACE(-4)", "SPACE(NULL)", "CONCAT_WS('ab', bn, v9)",
    "CONCAT(dm)", "LTRIM(dm)", "CONVERT(dm USING utf8mb4)", "CONCAT(fm)",
    # Literals of bytes are described as columns.
    "0x41", "b'101'", "_binary'ab'", "'a' COLLATE utf8mb4_general_ci", "1 COLLATE utf8mb4_general_ci",
    # Dates and times as numbers.
    "- t3", "- da", "- dt", "ABS(t3)", "ABS(dt)", "TIME'-01:02:03.5' * 64", "SUM(TIME'-01:02:03.5')", "NULL + dt", "NULL % da",
    "it DIV '5'", "it DIV 'abc'", "da DIV ''", "it DIV NULL",
    # Constants that were worked out may be NULL to clients.
    "CAST('1.5' AS JSON) = '%'", "(1, 2) = (JSON_ARRAY(), 2)", "CAST(2 AS CHAR) = 'a'", "(1, 2) = (1, 2)",
    "MIN(lt)", "BIT_AND(vn)",
    # Unlike types in CASE: by the operand's and the value's classes.
    "CASE y WHEN js THEN 1 END", "CASE it WHEN js THEN 1 END", "CASE 2 WHEN da THEN 1 END", "CASE v9 WHEN da THEN 1 END", "CASE da WHEN v9 THEN 1 END",
    "CASE 0x41 WHEN 65 THEN 1 END", "CASE vn WHEN DATE'9999-12-31' THEN 1 END", "CASE js WHEN v9 THEN 1 END",
    # Truth values become documents.
    "CAST(TRUE AS JSON)", "CAST((it = 1) AS JSON)", "CAST((it IS NULL) AS JSON)", "CAST(1 AS JSON)", "JSON_ARRAY(STRCMP(v9, 'a'))", "JSON_ARRAY(v9 REGEXP 'a')",
    # Weeks and seconds.
    "WEEK(DATE'2024-02-29', NULL)", "YEARWEEK(da, NULL)", "UNIX_TIMESTAMP(TIMESTAMP'1970-01-01 00:00:00.125')", "UNIX_TIMESTAMP(TIMESTAMP'1970-01-01 00:00:01.125')",
    "SHA2(NULL, 3)", "SHA2('a', NULL)", "SHA2(NULL, 256)",
]
AMOUNTS = [
    ("9223372036854775807", "SECOND_MICROSECOND"), ("18446744073709551615", "SECOND_MICROSECOND"), ("922337203685477580", "SECOND_MICROSECOND"),
    ("9223372036854775808", "HOUR_MINUTE"), ("-9223372036854775808", "HOUR_MINUTE"), ("99999999999999999999.5", "YEAR_MONTH"), ("'1-2-3'", "YEAR_MONTH"), ("''", "YEAR_MONTH"),
    ("''", "DAY"), ("' '", "SECOND"), ("x'41'", "DAY_HOUR"), ("x'31'", "DAY_HOUR"), ("x'31'", "DAY"), ("1e300", "DAY_HOUR"), ("1e20", "SECOND"), ("99999999999999999999.5", "DAY"),
    ("99999999999999999999.5", "SECOND"), ("-99999999999999999999.5", "YEAR"), ("0.0000005", "SECOND"), ("1.6420925", "SECOND"), ("1.64209199e0", "SECOND"),
    ("CAST('1.5' AS JSON)", "SECOND"),
]


def statements():
    for expression in EXPRESSIONS:
        yield f"SELECT {expression} FROM e"
    for amount, unit in AMOUNTS:
        for start in ("'2020-01-01'", "DATE'2020-01-01'", "TIME'12:00:00'"):
            yield f"SELECT DATE_ADD({start}, INTERVAL {amount} {unit})"
    # The date is read first.
    yield from ["SELECT DATE_ADD('abc', INTERVAL NULL DAY)", "SELECT TIMESTAMPADD(DAY, NULL, 'abc')", "SELECT DATE_SUB(x'FF', INTERVAL '2024-02-29' DAY_HOUR)"]


def answer(connection, statement):
    """The definition of the first column, the rows, and the warnings."""
    cursor = connection.cursor()
    try:
        cursor.execute(statement)
    except Exception as error:
        return "error " + " ".join(str(part) for part in error.args)
    field = cursor._result.fields[0]
    lines = [f"type {field.type_code} charset {field.charsetnr} length {field.length} decimals {field.scale} flags {field.flags}"]
    for row in cursor.fetchall():
        value = row[0].decode("utf8", "backslashreplace") if isinstance(row[0], bytes) else row[0]
        lines.append(repr(value) if value is None or not value.isprintable() else value)
    cursor.execute("SHOW WARNINGS")
    lines += [f"{level} {code}" for level, code in sorted({(level, int(code)) for level, code, _ in cursor.fetchall()})]
    return "\n".join(lines)


def cases(server):
    connection = server.connect()
    cursor = connection.cursor()
    for statement in (f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}"):
        cursor.execute(statement)
    cursor.execute(
        "SET sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', timestamp = 1700000000, "
        "NAMES utf8mb4 COLLATE utf8mb4_bin"
    )
    cursor.execute(
        "CREATE TABLE e (id INT PRIMARY KEY, it INT, y YEAR, dc DECIMAL(10,3), fm FLOAT(7,3), dm DOUBLE(10,2), da DATE, t3 TIME(3), dt DATETIME(6), "
        "v9 VARCHAR(20) COLLATE utf8mb4_0900_ai_ci, vg VARCHAR(20) COLLATE utf8mb4_general_ci, lt LONGTEXT, bn BINARY(4), vn VARBINARY(10), js JSON) "
        "DEFAULT COLLATE utf8mb4_0900_ai_ci"
    )
    cursor.execute(
        "INSERT INTO e VALUES (1, 7, 2024, 1.25, 0.1, 0.005, '2024-02-29', '-00:00:00.125', '2024-02-29 12:30:00.999999', 'Ab', '2024-02-29', 'abc', 'ab', '12', '2024'), "
        "(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    )
    for statement in statements():
        yield statement, answer(connection, statement)
    cursor.execute(f"DROP DATABASE {DATABASE}")
