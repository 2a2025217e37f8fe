#!/usr/bin/env python3
"""How long statements go on after KILL QUERY, and after their client has gone.

    scripts/kill-latency.py PORT [ROUNDS [NAME…]]

Makes the database `kill_latency` on the server at 127.0.0.1:PORT (user root, no password), runs each statement below
ROUNDS times (5) by a client in a process of its own, and ends it at a random moment: by KILL QUERY, then by killing the
client. Prints the milliseconds until the server's list of processes says that nobody works on it any more. Statements that
ended by themselves before are marked `-`. Those that write are shown and not judged: what they have written is rolled
back within that time. Needs PyMySQL.
"""

import multiprocessing
import os
import signal
import random
import sys
import time

import pymysql

ROWS = 300_000

ROW = "SET firn_executor = 'ROW'"
COLUMNS = "SET firn_executor = 'VECTORISED'"

# name: what the session does first, and the statement
STATEMENTS = {
    "sleep": ("", "SELECT SLEEP(100)"),
    "lock wait": ("", "UPDATE locked SET v = 1"),
    "user lock": ("", "SELECT GET_LOCK('held', 100)"),
    "row scan": (ROW, "SELECT COUNT(*) FROM t a WHERE MD5(CONCAT(s, MD5(s), MD5(v))) < '0'"),
    "row nested loop": (ROW, "SELECT COUNT(*) FROM t a, t b WHERE a.v < b.v"),
    "row hash join": (ROW, "SELECT COUNT(*) FROM t a JOIN t b ON a.v % 1000 = b.v % 1000"),
    "row sort": (ROW, "SELECT a.s, a.v FROM t a, (SELECT 1 FROM t LIMIT 10) b ORDER BY a.s, a.v DESC LIMIT 1 OFFSET 2500000"),
    "row group": (ROW, "SELECT a.v, b.id, COUNT(*) FROM t a, (SELECT id FROM t LIMIT 20) b GROUP BY 1, 2 ORDER BY 3 LIMIT 1"),
    "row distinct": (ROW, "SELECT COUNT(*) FROM (SELECT DISTINCT a.v, b.id FROM t a, (SELECT id FROM t LIMIT 20) b) c"),
    "row union": (ROW, "SELECT COUNT(*) FROM (SELECT v, id FROM t UNION SELECT v + 1, id FROM t UNION SELECT v + 2, id FROM t UNION SELECT id, v FROM t) c"),
    "row window": (ROW, "SELECT MAX(n) FROM (SELECT SUM(a.v) OVER (PARTITION BY a.v % 7 ORDER BY a.s) n FROM t a, (SELECT 1 FROM t LIMIT 10) b) c"),
    "row group_concat": ("SET firn_executor = 'ROW', group_concat_max_len = 1000000", "SELECT LENGTH(GROUP_CONCAT(a.s, b.s ORDER BY a.v)) FROM t a, (SELECT s FROM t LIMIT 10) b"),
    "row recursion": ("SET firn_executor = 'ROW', cte_max_recursion_depth = 4000000000", "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 1000000000) SELECT COUNT(*) FROM r"),
    "column scan": (COLUMNS, "SELECT COUNT(*) FROM t a WHERE MD5(CONCAT(s, MD5(s), MD5(v))) < '0'"),
    "column hash join": (COLUMNS, "SELECT COUNT(*), MAX(CONCAT(a.s, b.s)) FROM t a JOIN t b ON a.v % 1000 = b.v % 1000"),
    "column cross join": (COLUMNS, "SELECT COUNT(*) FROM t a, t b WHERE a.v < b.v"),
    "column sort": (COLUMNS, "SELECT a.s, a.v FROM t a, (SELECT 1 FROM t LIMIT 10) b ORDER BY a.s, a.v DESC LIMIT 1 OFFSET 2500000"),
    "column group": (COLUMNS, "SELECT a.v, b.id, COUNT(*) FROM t a, (SELECT id FROM t LIMIT 20) b GROUP BY 1, 2 ORDER BY 3 LIMIT 1"),
    "column union": (COLUMNS, "SELECT COUNT(*) FROM (SELECT v, id FROM t UNION SELECT v + 1, id FROM t UNION SELECT v + 2, id FROM t UNION SELECT id, v FROM t) c"),
    "column window": (COLUMNS, "SELECT MAX(n) FROM (SELECT SUM(a.v) OVER (PARTITION BY a.v % 7 ORDER BY a.s) n FROM t a, (SELECT 1 FROM t LIMIT 10) b) c"),
    "large result": ("", "SELECT a.*, b.* FROM t a, t b"),
    "create index": ("", "CREATE INDEX by_text ON t (s, v)"),
    "alter table": ("", "ALTER TABLE t MODIFY v BIGINT"),
    "check table": ("", "CHECK TABLE t, t, t, t"),
    "analyze table": ("", "ANALYZE TABLE t, t, t, t"),
    "insert select": ("", "INSERT INTO copy SELECT a.id * 10 + b.n, a.v, a.s FROM t a, (SELECT id n FROM t LIMIT 9) b"),
    "update": ("", "UPDATE t SET v = v + 1, s = REVERSE(s)"),
    "delete": ("", "DELETE FROM t"),
}
WRITES = ("insert select", "update", "delete")


def connect(port, **more):
    more.setdefault("database", "kill_latency")
    return pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True, ssl_disabled=True, **more)


def prepare(port):
    connection = connect(port, database=None)
    cursor = connection.cursor()
    for statement in (
        "DROP DATABASE IF EXISTS kill_latency",
        "CREATE DATABASE kill_latency",
        "USE kill_latency",
        "SET cte_max_recursion_depth = 4000000",
        "CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(60))",
        "CREATE TABLE copy LIKE t",
        "CREATE TABLE locked (id INT PRIMARY KEY, v INT)",
        "INSERT INTO locked VALUES (1, 0)",
        f"INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})"
        " SELECT i, (i * 7919) % 1000003, CONCAT(MD5(i), REPEAT('x', i % 25)) FROM n",
    ):
        cursor.execute(statement)
    connection.close()


def client(port, first, statement, pipe):
    """Runs a statement and throws its rows away; says its connection's number first."""
    connection = connect(port, cursorclass=pymysql.cursors.SSCursor)
    cursor = connection.cursor()
    if first:
        cursor.execute(first)
    pipe.send(connection.thread_id())
    try:
        cursor.execute(statement)
        # Rows are not taken apart: the client is not to be what is measured.
        while connection._rfile.read(1 << 20):
            pass
    except pymysql.err.Error:
        pass
    signal.pause()


def command_of(watcher, number):
    watcher.execute(f"SELECT command FROM information_schema.processlist WHERE id = {number}")
    found = watcher.fetchone()
    return found[0] if found else None


def latency_ms(port, watcher, way, first, statement):
    """How long the statement went on after it was to end; None if it had ended before."""
    mine, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=client, args=(port, first, statement, theirs), daemon=True)
    process.start()
    number = mine.recv()
    time.sleep(random.uniform(0.02, 1.0))
    is_running = command_of(watcher, number) == "Query"
    began = time.monotonic()
    if way == "KILL":
        watcher.execute(f"KILL QUERY {number}")
    else:
        os.kill(process.pid, signal.SIGKILL)
    while command_of(watcher, number) == "Query":
        assert time.monotonic() - began < 60, f"{statement}: goes on for a minute"
    took = (time.monotonic() - began) * 1000
    process.kill()
    process.join()
    while command_of(watcher, number):
        time.sleep(0.005)
    return took if is_running else None


def shown(times):
    return " ".join("-".rjust(6) if time is None else f"{time:6.1f}" for time in times)


def main():
    port = int(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    names = sys.argv[3:] or list(STATEMENTS)
    random.seed(7)
    prepare(port)
    holder = connect(port)
    with holder.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE locked SET v = 2")
        cursor.execute("SELECT GET_LOCK('held', 1)")
    watcher = connect(port).cursor()
    late = []
    for name in names:
        first, statement = STATEMENTS[name]
        for way in ("KILL", "gone"):
            times = [latency_ms(port, watcher, way, first, statement) for _ in range(rounds)]
            print(f"{name:18} {way}  {shown(times)}", flush=True)
            if name not in WRITES:
                late += [(name, way, took) for took in times if took is not None and took > 100]
    print(f"above 100 ms: {len(late)}")
    for name, way, took in late:
        print(f"  {name}, {way}: {took:.0f} ms")


main()
