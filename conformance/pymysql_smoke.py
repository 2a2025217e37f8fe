"""PyMySQL against Firn: types both ways, transactions, errors, large values, TLS, LOAD DATA LOCAL."""

import datetime
import decimal
import ssl
import sys
import tempfile

import pymysql

PORT = int(sys.argv[1])


def connect(**options):
    return pymysql.connect(host="127.0.0.1", port=PORT, user="root", local_infile=True, **options)


def types_both_ways(connection):
    cursor = connection.cursor()
    cursor.execute(
        """CREATE TABLE kinds (
            id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, tiny TINYINT, small SMALLINT UNSIGNED, medium MEDIUMINT,
            plain INT, big BIGINT, single FLOAT, exact DECIMAL(30, 10), real8 DOUBLE, bits BIT(12), fixed CHAR(5),
            words VARCHAR(100), long_words LONGTEXT, raw VARBINARY(20), huge LONGBLOB, day DATE, span TIME(3),
            moment DATETIME(6), stamp TIMESTAMP(6) NULL, since YEAR, one ENUM('x', 'y'), some SET('a', 'b', 'c'),
            doc JSON)"""
    )
    row = (
        -128, 65535, -8388608, 2147483647, -(2**63), 0.5, decimal.Decimal("12345678901234567890.0123456789"),
        2.5e300, b"\x0a\xbc", "abc", "naïve – 漢字 😀", "x" * 300_000, b"\x00\xff'\"\\", bytes(range(256)) * 4096,
        datetime.date(2024, 2, 29), datetime.timedelta(hours=100, milliseconds=250),
        datetime.datetime(2024, 2, 29, 23, 59, 59, 999999), datetime.datetime(2030, 1, 1, 0, 0, 0, 1), 2155, "y",
        "a,c", '{"a": [1, 2.5, null, "z"]}',
    )
    columns = (
        "tiny, small, medium, plain, big, single, exact, real8, bits, fixed, words, long_words, raw, huge, day, span, "
        "moment, stamp, since, one, some, doc"
    )
    marks = ", ".join(["%s"] * len(row))
    cursor.execute(f"INSERT INTO kinds ({columns}) VALUES ({marks})", row)
    assert cursor.lastrowid == 1, cursor.lastrowid
    cursor.execute(f"INSERT INTO kinds ({columns}) VALUES ({marks})", (None,) * len(row))
    connection.commit()
    cursor.execute(f"SELECT {columns} FROM kinds ORDER BY id")
    found, nulls = cursor.fetchall()
    for name, want, have in zip(columns.split(", "), row, found):
        assert want == have, f"{name}: {want!r:.80} came back as {have!r:.80}"
    assert nulls == (None,) * len(row)


def transactions(connection):
    other = connect(database="clients")
    cursor, seen = connection.cursor(), other.cursor()
    cursor.execute("CREATE TABLE account (id INT PRIMARY KEY, amount INT NOT NULL CHECK (amount >= 0))")
    cursor.execute("INSERT INTO account VALUES (1, 10), (2, 0)")
    connection.commit()
    connection.begin()
    cursor.execute("UPDATE account SET amount = amount - 4 WHERE id = 1")
    seen.execute("SELECT amount FROM account WHERE id = 1")
    assert seen.fetchone() == (10,)
    other.commit()
    cursor.execute("SAVEPOINT here")
    cursor.execute("UPDATE account SET amount = amount + 4 WHERE id = 2")
    cursor.execute("ROLLBACK TO here")
    connection.commit()
    seen.execute("SELECT id, amount FROM account ORDER BY id")
    assert seen.fetchall() == ((1, 6), (2, 0))
    other.close()


def errors(connection):
    cursor = connection.cursor()

    def refused(code, text, arguments=None):
        try:
            cursor.execute(text, arguments)
        except pymysql.MySQLError as error:
            assert error.args[0] == code, (text, error)
        else:
            raise AssertionError(f"{text} was not refused")

    refused(1064, "SELEC 1")
    refused(1146, "SELECT * FROM nothing")
    refused(1054, "SELECT nothing FROM account")
    refused(1062, "INSERT INTO account VALUES (1, 1)")
    refused(3819, "INSERT INTO account VALUES (3, -1)")
    refused(1406, "INSERT INTO kinds (fixed) VALUES (%s)", ("too long",))
    refused(1264, "INSERT INTO kinds (tiny) VALUES (300)")
    refused(1048, "INSERT INTO account VALUES (4, NULL)")
    refused(1049, "USE nowhere")
    connection.rollback()
    cursor.execute("SELECT 1")
    assert cursor.fetchone() == (1,)


def tls_and_accounts(connection):
    cursor = connection.cursor()
    cursor.execute("CREATE USER reader@'%' IDENTIFIED BY 'sesame'")
    cursor.execute("GRANT SELECT ON clients.account TO reader@'%'")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader = pymysql.connect(
        host="127.0.0.1", port=PORT, user="reader", password="sesame", database="clients", ssl=context
    )
    rows = reader.cursor()
    rows.execute("SELECT COUNT(*) FROM account")
    assert rows.fetchone() == (2,)
    try:
        rows.execute("DELETE FROM account")
        raise AssertionError("a reader could delete")
    except pymysql.MySQLError as error:
        assert error.args[0] == 1142, error
    reader.close()
    try:
        pymysql.connect(host="127.0.0.1", port=PORT, user="reader", password="wrong", ssl=context)
        raise AssertionError("a wrong password was taken")
    except pymysql.MySQLError as error:
        assert error.args[0] == 1045, error


def load_data(connection):
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE loaded (id INT PRIMARY KEY, name VARCHAR(30), price DECIMAL(9, 2))")
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.writelines(f'{number},"name, {number}",{number}.25\n' for number in range(5000))
        file.flush()
        cursor.execute(
            f"LOAD DATA LOCAL INFILE '{file.name}' INTO TABLE loaded FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"'"
        )
    assert cursor.rowcount == 5000, cursor.rowcount
    connection.commit()
    cursor.execute("SELECT COUNT(*), SUM(price), MAX(name) FROM loaded")
    assert cursor.fetchone() == (5000, decimal.Decimal("12498750.00"), "name, 999")


def main():
    first = connect()
    first.cursor().execute("DROP DATABASE IF EXISTS clients")
    first.cursor().execute("CREATE DATABASE clients")
    first.close()
    connection = connect(database="clients")
    for check in (types_both_ways, transactions, errors, tls_and_accounts, load_data):
        check(connection)
        print(f"  {check.__name__}: ok")
    connection.close()


main()
