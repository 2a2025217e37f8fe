"""Values of unlike types beside each other: dates beside texts and numbers, years that are no
columns, bits and bytes beside texts, texts as exact numbers; and how long their texts are told
to be. An answer has the rows, the column definitions and the warnings.
"""

from inputs.unlike_values import EXPRESSIONS, QUERIES

SETUP = [
    "DROP DATABASE IF EXISTS recorded_unlike_values",
    "CREATE DATABASE recorded_unlike_values",
    "USE recorded_unlike_values",
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin, sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', timestamp = 1700000000",
    "CREATE TABLE t (id INT PRIMARY KEY, i INT, it INT, ti TINYINT, tu TINYINT UNSIGNED, mu MEDIUMINT UNSIGNED, iz INT(6) UNSIGNED ZEROFILL, bi BIGINT,"
    " bu BIGINT UNSIGNED, de DECIMAL(10,2), dz DECIMAL(8,2) ZEROFILL, dw DECIMAL(65,30), fl FLOAT, f FLOAT(7,3), fm FLOAT(7,3), dd DOUBLE, db DOUBLE,"
    " dm DOUBLE(10,2), y YEAR, ye YEAR, b BIT(9), b1 BIT(1), b9 BIT(9), bl BIT(64), e ENUM('b', '2024-01-01'), en ENUM('a', '10'), st SET('x', 'y', '10'),"
    " d DATE, da DATE, m DATETIME, d0 DATETIME, m6 DATETIME(6), d6 DATETIME(6), h TIME, t0 TIME, t3 TIME(3), ts TIMESTAMP NULL, ch CHAR(5), v VARCHAR(20),"
    " vc VARCHAR(20) COLLATE utf8mb4_general_ci, vb VARCHAR(20) COLLATE utf8mb4_bin, v9 VARCHAR(20), vl VARCHAR(10) CHARACTER SET latin1, bn BINARY(4),"
    " vn VARBINARY(10), bb BLOB, tx TEXT, lt LONGTEXT COLLATE utf8mb4_general_ci, j JSON, js JSON)",
    "INSERT INTO t VALUES (1, 5, -3, 7, 200, 20, 42, -1, 5, 20240229, 3.5, 1, 1.5, 1.5, 0.1, 1.5, 0.1, -1.5, 2024, 2024, 5, 1, 65, 1, 1, 1, 'x',"
    " '2024-02-29', '2024-02-29', '2024-02-29 12:30:00', '2024-02-29 12:30:00', '2024-02-29 12:30:00.5', '2024-02-29 12:30:00.999999', '12:30:45', '12:30:45',"
    " '10:11:12.999', '2024-02-29 12:30:00', 'a', 'abc', 'a', 'abc', 'a', 'é', 'ab', 'ab', 'a', 'a', 'zz', '\"2024-02-29\"', '[1, \"x\", null]'),"
    " (2, 20240229, 20240229, 0, 255, 16777215, 1234567, 20240229123000, 18446744073709551615, 1.25, 20, 0.5, 16777217, 12.25, -9.9999, 20240229, 1e15, 99999.999,"
    " 1999, 0, 321, 0, 321, 0x80, 2, 2, 'x,10', '1999-12-31', '1999-12-31', '1970-01-01', '1970-01-01', '1970-01-01', '2000-01-01 00:00:00.000001', '-10:00:00', '-00:00:01',"
    " '-00:00:00.125', '1970-01-01 00:00:01', '1x', '2024-02-29', '1x', '2024-02-29', '1x', 'x,y', 'é', '1x', '1x', '1x', '1x', '1', '\"a\"'),"
    " (3, -128, 0, -128, 0, 0, 0, 0, 0, 991231, 0, 0, 0, -1.5, 1234.5678, -1.5, 0, 0, 0, 1901, 0, 0, 0, 0, 1, 1, '', '1000-01-01', '1000-01-01', '9999-12-31 23:59:59',"
    " '9999-12-31 23:59:59', '9999-12-31 23:59:59', '1000-01-01', '00:00:00', '838:59:59', '24:00:00', NULL, '', '', '', '24-2-29', '', '10', '12', '12', '12', '12', '',"
    " '[1]', 'true')",
    "INSERT INTO t (id) VALUES (4)",
]


NO_DATE = "MySQL has a value of its own for what is no date, shows it as the year 16383, and takes texts beside moments now as such and now as none"
KNOWN = {f"SELECT {one} FROM t ORDER BY id": NO_DATE for one in ("greatest(d, 'abc')", "least(m6, v)", "cast(greatest(d, v) as time)")}


def cases(server):
    connection = server.connect()
    for statement in SETUP:
        assert server.answer(connection, statement).startswith("ok"), statement
    for statement in [f"SELECT {one} FROM t ORDER BY id" for one in EXPRESSIONS] + QUERIES:
        yield statement, server.answer_with_definitions(connection, statement)
