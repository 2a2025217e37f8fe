"""`LOAD DATA LOCAL`: what becomes of lines that do not fit, with the warnings; and of lines that end in unusual ways."""

import os
import tempfile

SETUP = [
    "DROP DATABASE IF EXISTS recorded_loads",
    "CREATE DATABASE recorded_loads",
    "USE recorded_loads",
    "CREATE TABLE plain (a INT, b VARCHAR(5), c DATE)",
    "CREATE TABLE strict_ones (a INT NOT NULL, b VARCHAR(5) NOT NULL DEFAULT 'd', c DECIMAL(4,1) NOT NULL)",
    "CREATE TABLE keyed (a INT PRIMARY KEY, b INT UNIQUE)",
    "CREATE TABLE numbered (id INT PRIMARY KEY AUTO_INCREMENT, a INT UNSIGNED, CHECK (a < 100))",
    "CREATE TABLE typed (y YEAR, e ENUM('a','b'), s SET('x','y'), j JSON, t TIME, d DATETIME, f FLOAT, n BIT(3))",
]

# Table, what stands behind its name, and the file.
FIXED_WIDTHS = ("plain", "FIELDS TERMINATED BY '' ENCLOSED BY ''", "1          ab   2020-01-02\n2          c    2020-01-03\n")
NO_DOCUMENT = ("typed", "", "20\ta\tx\t{bad\t1\t2020-01-02\t1\t1\n")
LOADS = [
    ("plain", "", "1\tab\t2020-01-02\n2\tcd\t2020-01-03\n"),
    ("plain", "", "1\tab\t2020-01-02\n2\tcd\t2020-01-03"),
    ("plain", "", ""),
    ("plain", "", "\n"),
    ("plain", "", "\n\n1\n"),
    ("plain", "", "1\n2\tx\n3\ty\t2020-01-02\n"),
    ("plain", "", "1\tab\t2020-01-02\tmore\n2\tcd\t2020-01-02\tmore\tand more\n"),
    ("plain", "", "x\tab\t2020-01-02\n1x\tab\t2020-01-02\n99999999999\tab\t2020-01-02\n 7 \tab\t2020-01-02\n\tab\t\n"),
    ("plain", "", "1\tabcdefgh\t2020-01-02\n2\tab\t2020-02-30\n3\tab\tnever\n4\tab\t0000-00-00\n"),
    ("plain", "", "\\N\t\\N\t\\N\nNULL\tNULL\tNULL\n"),
    ("plain", "", "1\ta\\tb\t2020-01-02\n2\ta\\\nb\t2020-01-02\n3\ta\\\\b\t2020-01-02\n4\ta\\qb\t2020-01-02\n"),
    ("plain", "", "1\tab\t2020-01-02\r\n2\tcd\t2020-01-03\r\n"),
    ("plain", "LINES TERMINATED BY '\\r\\n'", "1\tab\t2020-01-02\r\n2\tcd\t2020-01-03\r\n"),
    ("plain", "LINES TERMINATED BY '\\r\\n'", "1\tab\t2020-01-02\r\n2\tcd\t2020-01-03"),
    ("plain", "LINES TERMINATED BY '|'", "1\tab\t2020-01-02|2\tcd\t2020-01-03|"),
    ("plain", "LINES TERMINATED BY '|'", "1\tab\t2020-01-02|2\tcd\t2020-01-03|\n"),
    ("plain", "LINES STARTING BY 'row:'", "row:1\tab\nnothing\nx row:2\tcd\n"),
    ("plain", "IGNORE 1 LINES", "a\tb\tc\n1\tab\t2020-01-02\n"),
    ("plain", "IGNORE 5 LINES", "a\tb\tc\n1\tab\t2020-01-02\n"),
    ("plain", "FIELDS TERMINATED BY ','", "1,ab,2020-01-02\n2,cd,2020-01-02,\n3,cd,2020-01-02,,\n"),
    ("plain", "FIELDS TERMINATED BY ',' LINES TERMINATED BY ',\\n'", "1,ab,2020-01-02,\n2,cd,2020-01-03,\n"),
    ("plain", "FIELDS TERMINATED BY ','", "1,ab\n,,\n"),
    ("plain", "FIELDS TERMINATED BY ',' ENCLOSED BY '\"'", '"1","a,b","2020-01-02"\n2,"a""b",2020-01-02\n"3","ab","2020-01-02"x\n'),
    ("plain", "FIELDS TERMINATED BY ',' ENCLOSED BY '\"'", '"1","ab","2020-01-02"\n"2","a\nb","2020-01-02"\n"3","ab\n'),
    ("plain", "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"'", '1,"NULL",NULL\n2,NULL,"NULL"\n'),
    ("plain", "FIELDS TERMINATED BY ',' ESCAPED BY ''", "1,a\\b,2020-01-02\n2,\\N,\\N\n3,NULL,NULL\n"),
    FIXED_WIDTHS,
    ("plain", "FIELDS TERMINATED BY '--'", "1--a-b--2020-01-02\n2-----2020-01-02\n"),
    ("plain", "(a)", "1\tab\n2\n"),
    ("plain", "(c, a)", "2020-01-02\t1\n"),
    ("plain", "(a, @b) SET b = UPPER(@b), c = '2021-01-01'", "1\tab\n2\t\\N\n3\n"),
    ("plain", "(@a, @b) SET a = @a + 1", "1\tab\nx\tcd\n"),
    ("plain", "(a, a)", "1\t2\n"),
    ("plain", "(a, nothing)", "1\t2\n"),
    ("plain", "CHARACTER SET latin1", "1\t\u00e4\t2020-01-02\n"),
    ("strict_ones", "", "1\tab\t1.5\n\\N\t\\N\t\\N\n2\n3\tx\n"),
    ("strict_ones", "", "1\tab\t1.55\n2\tab\t1234.5\n3\tab\tx\n4\tab\t\n"),
    ("strict_ones", "(a)", "1\n2\n"),
    ("strict_ones", "(b)", "x\n"),
    ("keyed", "", "1\t1\n1\t2\n2\t1\n3\t3\n"),
    ("keyed", "REPLACE", "1\t1\n1\t2\n2\t1\n3\t3\n"),
    ("keyed", "IGNORE", "1\t1\n1\t2\n2\t1\n3\t3\n"),
    ("keyed", "", "\\N\t1\n\t2\n"),
    ("numbered", "(a)", "1\n2\n-1\n"),
    ("numbered", "(a)", "1\n200\n3\n"),
    ("numbered", "", "5\t1\n\\N\t2\n0\t3\n\t4\n"),
    ("typed", "", "2020\ta\tx,y\t[1]\t10:11:12\t2020-01-02 03:04:05\t1.5\t\\0\n"),
    ("typed", "", "20\tA\ty,x\t{}\t1:2\t2020-1-2\t1e3\t7\n1800\tc\tz\t\"x\"\t900:00:00\t2020-01-02 30:00:00\tx\t12345\n"),
    NO_DOCUMENT,
    ("typed", "", "\t\t\t{}\t\t\t\t\n"),
    ("typed", "", "0\t1\t3\tnull\t10\t20200102030405\t-1\t\n"),
]


def cases(server):
    connection = server.connect(local_infile=True)
    cursor = connection.cursor()
    for statement in SETUP:
        cursor.execute(statement)
    cursor.execute("SELECT @@global.local_infile")
    before = cursor.fetchone()[0]
    cursor.execute("SET GLOBAL local_infile = 1")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        for mode in ["STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE", ""]:
            cursor.execute(f"SET sql_mode = '{mode}'")
            for table, options, text in LOADS:
                cursor.execute(f"TRUNCATE {table}")
                with open(path, "w", encoding="utf8", newline="") as file:
                    file.write(text)
                statement = f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE {table} {options}"
                if options in ("REPLACE", "IGNORE"):
                    statement = f"LOAD DATA LOCAL INFILE '{path}' {options} INTO TABLE {table}"
                answer = server.answer(connection, statement)
                cursor.execute("SHOW WARNINGS")
                warnings = [f"{level} {code} {message!r}" for level, code, message in cursor.fetchall()]
                rows = server.answer(connection, f"SELECT * FROM {table}")
                strict = "strict" if mode else "lenient"
                yield f"{strict}: {table} {options} {text!r}", "\n".join([answer, *warnings, rows])
    cursor.execute(f"SET GLOBAL local_infile = {before}")
    cursor.execute("DROP DATABASE recorded_loads")


KNOWN = {
    f"{mode}: {table} {options} {text!r}": reason
    for mode in ("strict", "lenient")
    for (table, options, text), reason in [
        (FIXED_WIDTHS, "a column without a field is NULL if it can be, as with any other format"),
        (NO_DOCUMENT, "the message names the column without its table, and is the only one"),
    ]
}
