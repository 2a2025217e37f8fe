"""Records from MySQL what clients are told of the columns of `information_schema` and of statements that show:
`python3 scripts/dictionary-definitions.py --port 13402`, with an account that may do everything."""

import argparse
import pathlib
import sys

import pymysql
from pymysql.protocol import FieldDescriptorPacket

CATALOG = pathlib.Path(__file__).parent.parent / "crates/sql/src/catalog"
DATABASE = "dictionary_definitions"
PREPARE, CLOSE = 0x16, 0x19
BINARY = 63
SHOWN = {
    "SHOW DATABASES": "SHOW DATABASES",
    "SHOW TABLES": "SHOW FULL TABLES",
    "SHOW COLUMNS": "SHOW COLUMNS FROM k",
    "SHOW FULL COLUMNS": "SHOW FULL COLUMNS FROM k",
    "SHOW INDEX": "SHOW INDEX FROM k",
    "SHOW TABLE STATUS": "SHOW TABLE STATUS",
    "SHOW OPEN TABLES": "SHOW OPEN TABLES",
    "SHOW CREATE TABLE": "SHOW CREATE TABLE k",
    "SHOW CREATE VIEW": "SHOW CREATE VIEW v",
    "SHOW CREATE DATABASE": f"SHOW CREATE DATABASE {DATABASE}",
    "SHOW VARIABLES": "SHOW VARIABLES LIKE 'autocommit'",
    "SHOW STATUS": "SHOW STATUS LIKE 'Uptime'",
    "SHOW WARNINGS": "SHOW WARNINGS",
    "SHOW COUNT": "SHOW COUNT(*) WARNINGS",
    "SHOW PROCESSLIST": "SHOW PROCESSLIST",
    "SHOW ENGINES": "SHOW ENGINES",
    "SHOW ENGINE": "SHOW ENGINE INNODB STATUS",
    "SHOW CHARACTER SET": "SHOW CHARACTER SET",
    "SHOW COLLATION": "SHOW COLLATION",
    "SHOW PRIVILEGES": "SHOW PRIVILEGES",
    "SHOW PLUGINS": "SHOW PLUGINS",
    "SHOW TRIGGERS": "SHOW TRIGGERS",
    "SHOW EVENTS": "SHOW EVENTS",
    "SHOW ROUTINES": "SHOW PROCEDURE STATUS",
    "CHECK TABLE": "CHECK TABLE k",
    "CHECKSUM TABLE": "CHECKSUM TABLE k",
    "EXPLAIN": "EXPLAIN FORMAT=JSON SELECT * FROM k",
    "EXPLAIN TRADITIONAL": "EXPLAIN FORMAT=TRADITIONAL SELECT * FROM k",
}  # fmt: skip


def columns(connection, count):
    return [FieldDescriptorPacket(connection._read_packet().get_all_data(), "utf8") for _ in range(count)]


def answered(connection, statement):
    connection._execute_command(0x03, statement)
    found = columns(connection, connection._read_packet().read_length_encoded_integer())
    ends = 0
    while ends < 2:
        ends += connection._read_packet().is_eof_packet()
    return found


def prepared(connection, statement):
    try:
        connection._execute_command(PREPARE, statement)
        head = connection._read_packet()
    except pymysql.MySQLError:
        # Some statements cannot be prepared.
        return []
    head.advance(1)
    number, count, _ = head.read_struct("<IHH")
    found = columns(connection, count)
    if count:
        connection._read_packet()
    connection._execute_command(CLOSE, number.to_bytes(4, "little"))
    connection._next_seq_id = 0
    return found


def described(column):
    """Type byte, characters (bytes of what is no text), decimals, flags, and whether it is text."""
    is_text = column.charsetnr != BINARY
    length = -(-column.length // 4) if is_text else column.length
    return f"{column.type_code} {length} {column.scale} {column.flags:x} {'text' if is_text else 'bytes'}"


def place(column):
    own = "=" if column.org_name == column.name else column.org_name
    names = (column.db, column.org_table, column.table_name, own)
    return " ".join((name.decode() if isinstance(name, bytes) else name) or "-" for name in names)


def information_schema(connection, cursor):
    cursor.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'information_schema' ORDER BY 1")
    for (table,) in cursor.fetchall():
        yield table
        for column in answered(connection, f"SELECT * FROM information_schema.{table} LIMIT 0"):
            of = f"{column.db.decode()}.{column.org_table}" if column.db else "-"
            yield f"  {column.name} {described(column)} {of}"


def shown(connection):
    for name, statement in SHOWN.items():
        answer, plan = answered(connection, statement), prepared(connection, statement)
        yield name
        for one, other in zip(answer, plan if len(plan) == len(answer) else answer, strict=True):
            yield f"  {described(one)} {place(one)} / {described(other)} {place(other)}"


def write(path, title, lines):
    path.write_text(f"# {title}\n# Recorded by scripts/dictionary-definitions.py.\n" + "".join(f"{line}\n" for line in lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    connection = pymysql.connect(host="127.0.0.1", port=parser.parse_args().port, user="root", autocommit=True, charset="utf8mb4")
    cursor = connection.cursor()
    for statement in [
        f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}",
        "CREATE TABLE k (a INT PRIMARY KEY)", "CREATE VIEW v AS SELECT a FROM k", "SET NAMES utf8mb4", "SET sql_mode = ''",
    ]:
        cursor.execute(statement)
    write(CATALOG / "information_schema/definitions.txt",
          "By table: column, type byte, characters or bytes, decimals, flags, what its values are, and of which table they are; `-`: they are worked out.",
          information_schema(connection, cursor))
    write(CATALOG / "show/definitions.txt",
          "By statement and column, in a result and when it is prepared: as in information_schema's, then schema, table, alias, and the column's own name; `=`: as it is shown.",
          shown(connection))
    cursor.execute(f"DROP DATABASE {DATABASE}")


sys.exit(main())
