"""mysqlclient (MySQLdb, over the C library) against Firn: types both ways, transactions, errors, large values, TLS."""

import datetime
import decimal
import sys

import MySQLdb
import MySQLdb.cursors

PORT = int(sys.argv[1])
DATABASE = "clients_mysqlclient"


def connect(user="root", password="", database=DATABASE, **options):
    return MySQLdb.connect(
        host="127.0.0.1", port=PORT, user=user, passwd=password, db=database, charset="utf8mb4", use_unicode=True, **options
    )


def types_both_ways(connection):
    cursor = connection.cursor()
    cursor.execute(
        """CREATE TABLE kinds (
            id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, tiny TINYINT, big BIGINT, ubig BIGINT UNSIGNED, single FLOAT,
            exact DECIMAL(40, 10), real8 DOUBLE, bits BIT(12), words VARCHAR(100), raw LONGBLOB, day DATE, span TIME(6),
            moment DATETIME(6), since YEAR, one ENUM('x', 'y'), doc JSON)"""
    )
    row = (
        -128, -(2**63), 2**64 - 1, 0.5, decimal.Decimal("-123456789012345678901234567890.0123456789"), 2.5e300,
        b"\x0a\xbc", "naïve – 漢字 😀", bytes(range(256)) * 40, datetime.date(2024, 2, 29),
        datetime.timedelta(hours=837, seconds=5), datetime.datetime(2024, 2, 29, 23, 59, 59, 999999), 2155, "y",
        '{"a": [1, 2.5, null, "😀"]}',
    )
    columns = "tiny, big, ubig, single, exact, real8, bits, words, raw, day, span, moment, since, one, doc"
    marks = ", ".join(["%s"] * len(row))
    cursor.execute(f"INSERT INTO kinds ({columns}) VALUES ({marks})", row)
    assert cursor.lastrowid == 1, cursor.lastrowid
    cursor.execute(f"INSERT INTO kinds ({columns}) VALUES ({marks})", (None,) * len(row))
    connection.commit()
    for kind in (MySQLdb.cursors.Cursor, MySQLdb.cursors.SSCursor):
        cursor = connection.cursor(kind)
        cursor.execute(f"SELECT {columns} FROM kinds ORDER BY id")
        found, nulls = cursor.fetchall()
        for name, want, have in zip(columns.split(", "), row, found):
            assert want == have, f"{name}: {want!r:.80} came back as {have!r:.80}"
        assert nulls == (None,) * len(row)
        cursor.close()
    cursor = connection.cursor()
    cursor.executemany("INSERT INTO kinds (tiny, words) VALUES (%s, %s)", [(number % 100, "x" * number) for number in range(100)])
    assert cursor.rowcount == 100, cursor.rowcount
    connection.rollback()


def transactions(connection):
    other = connect()
    cursor, seen = connection.cursor(), other.cursor()
    cursor.execute("CREATE TABLE account (id INT PRIMARY KEY, amount INT NOT NULL)")
    cursor.execute("INSERT INTO account VALUES (1, 10), (2, 0)")
    connection.commit()
    cursor.execute("UPDATE account SET amount = 15 WHERE id = 1")
    seen.execute("SELECT amount FROM account WHERE id = 1")
    assert seen.fetchone() == (10,)
    connection.rollback()
    cursor.execute("SELECT amount FROM account WHERE id = 1")
    assert cursor.fetchone() == (10,)
    other.close()


def errors(connection):
    cursor = connection.cursor()
    for code, kind, text in (
        (1062, MySQLdb.IntegrityError, "INSERT INTO account VALUES (1, 1)"),
        (1146, MySQLdb.ProgrammingError, "SELECT * FROM missing"),
        (1064, MySQLdb.ProgrammingError, "SELEC 1"),
        (1054, MySQLdb.OperationalError, "SELECT missing FROM account"),
        (1264, MySQLdb.DataError, "INSERT INTO kinds (tiny) VALUES (300)"),
    ):
        try:
            cursor.execute(text)
        except MySQLdb.Error as error:
            assert error.args[0] == code and isinstance(error, kind), (text, error)
        else:
            raise AssertionError(f"{text} was not refused")
    connection.rollback()


def large(connection):
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE large (id INT PRIMARY KEY, content LONGBLOB)")
    # The C library refuses texts over its own 16 MiB and a bit, so that the value grows at the
    # server.
    content = bytes(range(256)) * (16 << 10)
    cursor.execute("INSERT INTO large VALUES (1, %s)", (content,))
    cursor.execute("UPDATE large SET content = CONCAT(content, content, content, content, content)")
    cursor.execute("SELECT content FROM large")
    assert cursor.fetchone() == (content * 5,)


def accounts(connection):
    cursor = connection.cursor()
    cursor.execute("DROP USER IF EXISTS reader_c@'%', old_reader_c@'%'")
    cursor.execute("CREATE USER reader_c@'%' IDENTIFIED WITH caching_sha2_password BY 'sésame'")
    cursor.execute("CREATE USER old_reader_c@'%' IDENTIFIED WITH mysql_native_password BY 'sésame'")
    cursor.execute(f"GRANT SELECT ON {DATABASE}.* TO reader_c@'%', old_reader_c@'%'")
    for user in ("reader_c", "old_reader_c"):
        reader = connect(user, "sésame", ssl={"cipher": "AES256-GCM-SHA384"})
        rows = reader.cursor()
        rows.execute("SHOW STATUS LIKE 'Ssl_version'")
        assert rows.fetchone()[1].startswith("TLSv1."), "no TLS"
        try:
            rows.execute("DELETE FROM account")
            raise AssertionError("a reader could delete")
        except MySQLdb.OperationalError as error:
            assert error.args[0] == 1142, error
        reader.close()
        try:
            connect(user, "wrong", ssl={"cipher": "AES256-GCM-SHA384"})
            raise AssertionError("a wrong password was taken")
        except MySQLdb.OperationalError as error:
            assert error.args[0] == 1045, error


def main():
    first = connect(database="")
    first.cursor().execute(f"DROP DATABASE IF EXISTS {DATABASE}")
    first.cursor().execute(f"CREATE DATABASE {DATABASE}")
    first.close()
    connection = connect()
    for check in (types_both_ways, transactions, errors, large, accounts):
        check(connection)
        print(f"  {check.__name__}: ok")
    connection.close()


main()
