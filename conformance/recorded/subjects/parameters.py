"""Statements prepared in the binary protocol, executed with values of several types."""

import struct

import pymysql

DATABASE = "parameters"
PREPARE, EXECUTE, CLOSE = 0x16, 0x17, 0x19
LONGLONG, DOUBLE, VAR_STRING, NULL = 8, 5, 253, 6


def encoded(value):
    """A value's type and bytes."""
    if value is None:
        return NULL, b""
    if isinstance(value, int):
        return LONGLONG, struct.pack("<q", value)
    if isinstance(value, float):
        return DOUBLE, struct.pack("<d", value)
    return VAR_STRING, bytes([len(value)]) + value.encode()


def execute(connection, statement, values):
    """What a prepared statement answers: the bytes of its rows, `ok` or an error."""
    try:
        connection._execute_command(PREPARE, statement)
        head = connection._read_packet()
        head.advance(1)
        number, columns, parameters = head.read_struct("<IHH")
        for count in (parameters, columns):
            if count:
                # Definitions, and the packet that ends them.
                for _ in range(count + 1):
                    connection._read_packet()
        payload = struct.pack("<IBI", number, 0, 1)
        if parameters:
            nulls = sum(1 << place for place, value in enumerate(values) if value is None)
            payload += nulls.to_bytes((parameters + 7) // 8, "little") + b"\1"
            payload += b"".join(struct.pack("<H", encoded(value)[0]) for value in values)
            payload += b"".join(encoded(value)[1] for value in values)
        connection._execute_command(EXECUTE, payload)
        head = connection._read_packet()
        answer = "ok"
        if not head.is_ok_packet():
            count = head.read_length_encoded_integer()
            for _ in range(count + 1):
                connection._read_packet()
            rows = []
            while not (packet := connection._read_packet()).is_eof_packet():
                rows.append(packet.get_all_data()[1:].hex(" "))
            answer = "\n".join(rows) or "no rows"
        connection._execute_command(CLOSE, struct.pack("<I", number))
        # This command has no answer.
        connection._next_seq_id = 0
        return answer
    except pymysql.MySQLError as error:
        return "error " + " ".join(str(part) for part in error.args)


STATEMENTS = [
    # LIMIT takes whole numbers, and the number that a text begins with.
    *(("SELECT id FROM t ORDER BY id LIMIT ?", [value]) for value in [2, "2", "1.7", "x", 2.0, 1.6, -1, None]),
    ("SELECT id FROM t ORDER BY id LIMIT ? OFFSET ?", ["1", 1]),
    ("SELECT id FROM t ORDER BY id LIMIT ? OFFSET ?", ["1", 1.0]),
    ("UPDATE t SET s = ? ORDER BY id LIMIT ?", ["z", "1"]),
    ("DELETE FROM t WHERE id > ? LIMIT ?", [2, "1"]),
    ("TABLE t LIMIT ?", [1]),
    # Statements of which no plan is made.
    ("SET @x = ?", ["it's \\ 2"]),
    ("SELECT @x", []),
    ("SET @a = ?, @b = ? + 1", [1, 2]),
    ("SELECT @a, @b", []),
    ("SET SESSION sort_buffer_size = ?", [100000]),
    ("SELECT @@sort_buffer_size", []),
    ("DO ? + 1", [1]),
    ("DO SLEEP(?)", [0]),
    ("SHOW VARIABLES WHERE Variable_name = ?", ["autocommit"]),
    ("SHOW COLUMNS FROM t WHERE Field = ?", ["id"]),
    ("SHOW TABLES WHERE Tables_in_parameters = ?", ["t"]),
    ("CREATE TABLE q SELECT ? AS a, ? + 1 AS b", [2, 3]),
    ("SELECT CONCAT(a, '|', b) FROM q", []),
    ("SELECT id FROM t WHERE id = ? INTO @y", [2]),
    ("SELECT @y + 0", []),
    ("SELECT ? INTO @z", [4]),
    ("SELECT @z", []),
    # LIKE … ESCAPE ?
    *(("SELECT id FROM t WHERE s LIKE ? ESCAPE ?", ["z|%" if mark == "|" else "z%", mark]) for mark in ["|", "", None, "ab"]),
    # Queries without tables, rows, common tables.
    ("VALUES ROW(?, 1)", [5]),
    ("WITH c AS (SELECT ? AS a) SELECT a + ? FROM c", [1, 2]),
    ("SELECT ? = ?", ["a", "A"]),
    # Where there may be none.
    ("KILL QUERY ?", [9999999]),
    ("CREATE VIEW w AS SELECT ?", [1]),
]  # fmt: skip


def cases(server):
    connection = server.connect()
    cursor = connection.cursor()
    for statement in [
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE}",
        f"USE {DATABASE}",
        "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(20))",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    ]:
        cursor.execute(statement)
    for statement, values in STATEMENTS:
        written = statement.replace("Tables_in_parameters", f"Tables_in_{DATABASE}")
        yield f"{statement} {values}", execute(connection, written, values)
    cursor.execute(f"DROP DATABASE {DATABASE}")
