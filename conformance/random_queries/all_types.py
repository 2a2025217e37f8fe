"""A table with a column of each type, filled with values at their edges."""

TABLE = "o1"

# Name, SQL type, what it is taken for, and literals.
COLUMNS = [
    ("ti", "TINYINT", "number", ["-128", "0", "7", "127"]),
    ("tu", "TINYINT UNSIGNED", "number", ["0", "1", "200", "255"]),
    ("tb", "BOOLEAN", "number", ["0", "1"]),
    ("si", "SMALLINT", "number", ["-32768", "-1", "12", "32767"]),
    ("mu", "MEDIUMINT UNSIGNED", "number", ["0", "16777215", "20"]),
    ("it", "INT", "number", ["-2147483648", "-3", "0", "1", "20240229", "2147483647"]),
    ("iz", "INT(6) UNSIGNED ZEROFILL", "number", ["0", "42", "1234567", "4294967295"]),
    ("bi", "BIGINT", "number", ["-9223372036854775808", "-1", "20240229123000", "9007199254740993", "9223372036854775807"]),
    ("bu", "BIGINT UNSIGNED", "number", ["0", "5", "9223372036854775808", "18446744073709551615"]),
    ("de", "DECIMAL(10,3)", "number", ["-1234567.891", "-0.5", "0", "1.250", "99.999"]),
    ("dz", "DECIMAL(8,2) ZEROFILL", "number", ["0", "3.5", "999999.99"]),
    ("dw", "DECIMAL(65,30)", "number", ["-0.000000000000000000000000000001", "12345678901234567890123456789012345.5", "1"]),
    ("fl", "FLOAT", "number", ["-0.1", "0", "1.5", "16777217", "1e20", "3.4e38"]),
    ("fm", "FLOAT(7,3)", "number", ["0.1", "1234.5678", "-9.9999"]),
    ("db", "DOUBLE", "number", ["-1e-5", "0", "0.1", "123456789.125", "1e15", "1e300"]),
    ("dm", "DOUBLE(10,2)", "number", ["0.005", "99999.999", "-1.5"]),
    ("ye", "YEAR", "number", ["0", "1901", "1999", "2024", "2155"]),
    ("b1", "BIT(1)", "number", ["0", "1"]),
    ("b9", "BIT(9)", "number", ["0", "65", "b'101000001'"]),
    ("bl", "BIT(64)", "number", ["0", "1", "18446744073709551615"]),
    ("en", "ENUM('b','a','','10','Ö')", "text", ["'a'", "'b'", "''", "'10'", "'Ö'"]),
    ("st", "SET('x','y','10','z')", "text", ["''", "'x'", "'x,z'", "'10'", "'x,y,10,z'"]),
    ("da", "DATE", "temporal", ["'1000-01-01'", "'1999-12-31'", "'2024-02-29'", "'9999-12-31'"]),
    ("t0", "TIME", "temporal", ["'-838:59:59'", "'-00:00:01'", "'00:00:00'", "'12:30:45'", "'838:59:59'"]),
    ("t3", "TIME(3)", "temporal", ["'-00:00:00.125'", "'10:11:12.999'", "'24:00:00'"]),
    ("d0", "DATETIME", "temporal", ["'1970-01-01 00:00:00'", "'2024-02-29 12:30:00'", "'9999-12-31 23:59:59'"]),
    ("d6", "DATETIME(6)", "temporal", ["'2024-02-29 12:30:00.999999'", "'2000-01-01 00:00:00.000001'", "'1000-01-01 00:00:00'"]),
    ("ts", "TIMESTAMP(2) NULL", "temporal", ["'1970-01-01 00:00:01'", "'2024-02-29 12:30:00.55'", "'2038-01-19 03:14:07'"]),
    ("ch", "CHAR(5)", "text", ["''", "'a'", "'A '", "'abcde'", "'12'"]),
    ("vc", "VARCHAR(20) COLLATE utf8mb4_general_ci", "text", ["''", "'a'", "'Ab '", "'12abc'", "'2024-02-29'", "'12:30'", "'漢字'", "'1e2'"]),
    ("vb", "VARCHAR(20) COLLATE utf8mb4_bin", "text", ["''", "'b'", "' 7'", "'-3.7e1x'", "'😀x'", "'20240229'", "'0x41'"]),
    ("v9", "VARCHAR(20) COLLATE utf8mb4_0900_ai_ci", "text", ["''", "'á'", "'a '", "'ß'", "'[1, 2]'", "'true'"]),
    ("vl", "VARCHAR(10) CHARACTER SET latin1", "text", ["''", "'é'", "'x,y'", "'10'"]),
    ("bn", "BINARY(4)", "text", ["''", "'ab'", "0xFF00", "'12'"]),
    ("vn", "VARBINARY(10)", "text", ["''", "'Ab'", "0x00FF41", "'2024-02-29'"]),
    ("bb", "BLOB", "text", ["''", "'abc'", "0xC3A9", "'99999999999999999999'"]),
    ("tx", "TEXT", "text", ["''", "'Hello World'", "'1.5e3'", "'a,b,10'", "'2024-02-30'"]),
    ("lt", "LONGTEXT COLLATE utf8mb4_general_ci", "text", ["''", "'zz'", "'NULL'", "'[1]'"]),
    ("js", "JSON", "json", ["'null'", "'1'", "'-1.5'", "'\"a\"'", "'[]'", "'[1, \"x\", null]'", "'{\"a\": 1, \"b\": [true, 2]}'", "'true'"]),
]
ROWS = 24


def statements(random):
    columns = ", ".join(f"{name} {kind}" for name, kind, _, _ in COLUMNS)
    yield f"CREATE TABLE {TABLE} (id INT NOT NULL PRIMARY KEY, {columns}, KEY (it), KEY (vc), KEY (d0), KEY (ye), KEY (de)) DEFAULT COLLATE utf8mb4_0900_ai_ci"
    for row in range(ROWS):
        values = [random.choice(literals) if random.random() > 0.12 else "NULL" for _, _, _, literals in COLUMNS]
        yield f"INSERT INTO {TABLE} VALUES ({row + 1}, {', '.join(values)})"
