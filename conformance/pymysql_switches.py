"""PyMySQL while another node begins to write: PORT,PORT… COMMAND…. The command asks for the switch."""

import subprocess
import sys

import pymysql

PORTS = [int(port) for port in sys.argv[1].split(",")]
SWITCH = sys.argv[2:]
ROUNDS = 2


def connect(port, **options):
    return pymysql.connect(host="127.0.0.1", port=port, user="root", **options)


def value(connection, text):
    cursor = connection.cursor()
    cursor.execute(text)
    row = cursor.fetchone()
    return row[0] if len(row) == 1 else row


def run(connection, *texts):
    for text in texts:
        connection.cursor().execute(text)


def begin(port, at):
    connection = connect(port, database="switches_pymysql")
    run(
        connection,
        "SET @mine = 'kept', SESSION lock_wait_timeout = 7",
        "PREPARE mine FROM 'SELECT CONCAT(@mine, ?), @@lock_wait_timeout'",
        "CREATE TEMPORARY TABLE own (n INT PRIMARY KEY)",
        "INSERT INTO own VALUES (1)",
    )
    connection.commit()
    assert value(connection, f"SELECT GET_LOCK('pymysql {at}', 0)") == 1
    number = value(connection, "SELECT CONNECTION_ID()")
    connection.begin()
    run(
        connection,
        "INSERT INTO own VALUES (2)",
        f"INSERT INTO account VALUES ({at}, 1)",
        "SAVEPOINT here",
        f"UPDATE account SET amount = 2 WHERE id = {at}",
    )
    return connection, number


def go_on(connection, number, at, other):
    run(connection, "SET @mark = '!'")
    assert value(connection, "EXECUTE mine USING @mark") == ("kept!", 7)
    assert value(connection, "SELECT SUM(n) FROM own") == 3
    assert value(connection, "SELECT CONNECTION_ID()") == number
    assert value(other, f"SELECT GET_LOCK('pymysql {at}', 0)") == 0
    run(connection, "ROLLBACK TO SAVEPOINT here")
    connection.commit()
    assert value(other, f"SELECT amount FROM account WHERE id = {at}") == 1
    assert value(connection, f"SELECT RELEASE_LOCK('pymysql {at}')") == 1
    connection.close()


def main():
    other = connect(PORTS[0], autocommit=True)
    run(
        other,
        "DROP DATABASE IF EXISTS switches_pymysql",
        "CREATE DATABASE switches_pymysql",
        "USE switches_pymysql",
        "CREATE TABLE account (id INT PRIMARY KEY, amount INT NOT NULL)",
    )
    for round_number in range(ROUNDS):
        sessions = []
        for number, port in enumerate(PORTS):
            at = 10 * round_number + number
            sessions.append((*begin(port, at), at))
        subprocess.run(SWITCH, check=True, stdout=subprocess.DEVNULL)
        for session in sessions:
            go_on(*session, other)
    print("  pymysql: ok")


main()
