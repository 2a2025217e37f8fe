"""Column definitions of results and parameters, in the text and the binary protocol, and the columns
that CREATE TABLE … SELECT makes of the same expressions."""

import pymysql
from pymysql.protocol import FieldDescriptorPacket

from inputs import column_definitions as given

DATABASE = "column_definitions"
PREPARE, CLOSE = 0x16, 0x19
# Expressions of one CREATE TABLE … SELECT.
CREATED_AT_ONCE = 25
FLAGS = [
    "NOT_NULL", "PRIMARY", "UNIQUE", "MULTIPLE", "BLOB", "UNSIGNED", "ZEROFILL", "BINARY", "ENUM",
    "AUTO_INCREMENT", "TIMESTAMP", "SET", "NO_DEFAULT", "ON_UPDATE", "PART_KEY", "NUM",
]  # fmt: skip
TYPES = {
    0: "DECIMAL", 1: "TINY", 2: "SHORT", 3: "LONG", 4: "FLOAT", 5: "DOUBLE", 6: "NULL",
    7: "TIMESTAMP", 8: "LONGLONG", 9: "INT24", 10: "DATE", 11: "TIME", 12: "DATETIME", 13: "YEAR",
    15: "VARCHAR", 16: "BIT", 242: "VECTOR", 245: "JSON", 246: "NEWDECIMAL", 249: "TINY_BLOB",
    250: "MEDIUM_BLOB", 251: "LONG_BLOB", 252: "BLOB", 253: "VAR_STRING", 254: "STRING",
    255: "GEOMETRY",
}  # fmt: skip


def described(packet):
    """A column definition in one line."""
    field = FieldDescriptorPacket(packet.get_all_data(), "utf8")
    flags = [name for bit, name in enumerate(FLAGS) if field.flags >> bit & 1]
    origin = ""
    if field.org_table or field.table_name or field.db:
        schema = "own" if field.db.decode() == DATABASE else field.db.decode()
        origin = f" of {schema}.{field.org_table}.{field.org_name} as {field.table_name}"
    return (
        f"{TYPES.get(field.type_code, field.type_code)}({field.length},{field.scale})"
        f" charset {field.charsetnr} {' '.join(flags) or '-'} `{field.name}`{origin}"
    )


def text_protocol(connection, statement):
    """The column definitions of a statement's first result."""
    cursor = connection.cursor()
    try:
        connection._execute_command(0x03, statement)
        head = connection._read_packet()
        if head.is_ok_packet():
            return ["no columns"]
        count = head.read_length_encoded_integer()
        columns = [described(connection._read_packet()) for _ in range(count)]
        ends = 0
        while ends < 2:
            ends += connection._read_packet().is_eof_packet()
        return columns
    except pymysql.MySQLError as error:
        return ["error " + " ".join(str(part) for part in error.args)]
    finally:
        cursor.close()


def prepared(connection, statement):
    """The definitions of parameters and of columns that PREPARE of the binary protocol answers."""
    try:
        connection._execute_command(PREPARE, statement)
        head = connection._read_packet()
    except pymysql.MySQLError as error:
        return [], ["error " + " ".join(str(part) for part in error.args)]
    head.advance(1)
    number, columns, parameters = head.read_struct("<IHH")
    answers = []
    for count in (parameters, columns):
        answers.append([described(connection._read_packet()) for _ in range(count)])
        if count:
            connection._read_packet()
    connection._execute_command(CLOSE, number.to_bytes(4, "little"))
    # This command has no answer.
    connection._next_seq_id = 0
    return answers


def made(server, connection, expressions):
    """Columns of CREATE TABLE … SELECT, by expression; of some at once, or one by one if one is refused."""
    columns = {}
    for first in range(0, len(expressions), CREATED_AT_ONCE):
        some = expressions[first : first + CREATED_AT_ONCE]
        answer = made_at_once(server, connection, some)
        if len(answer) != len(some):
            answer = [made_at_once(server, connection, [each])[0] for each in some]
        columns.update(zip(some, answer, strict=True))
    return columns


def made_at_once(server, connection, expressions):
    connection.cursor().execute("DROP TABLE IF EXISTS made")
    items = ", ".join(f"{each} AS c{number}" for number, each in enumerate(expressions))
    answer = server.answer(connection, f"CREATE TABLE made SELECT {items} FROM t")
    if not answer.startswith("ok"):
        return [answer]
    listed = server.answer(
        connection,
        "SELECT CONCAT_WS(' ', column_type, collation_name, IF(is_nullable = 'YES', 'NULL',"
        " 'NOT NULL'), CONCAT('DEFAULT ', QUOTE(column_default)))"
        " FROM information_schema.columns WHERE table_schema = DATABASE()"
        " AND table_name = 'made' ORDER BY ordinal_position",
    )
    return listed.split("\n")


def cases(server):
    connection = server.connect()
    cursor = connection.cursor()
    cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
    cursor.execute(f"CREATE DATABASE {DATABASE} DEFAULT CHARACTER SET utf8mb4")
    cursor.execute(f"USE {DATABASE}")
    cursor.execute("SET sql_mode = '', time_zone = '+00:00', NAMES utf8mb4")
    for statement in given.SETUP:
        cursor.execute(statement)
    columns = made(server, connection, given.EXPRESSIONS)
    for expression in given.EXPRESSIONS:
        statement = f"SELECT {expression} AS c FROM t"
        _, answer = prepared(connection, statement)
        answer = text_protocol(connection, statement) + [f"prepared {each}" for each in answer]
        if len(answer) == 2 and answer[1] == f"prepared {answer[0]}":
            answer.pop()
        yield expression, "\n".join([*answer, f"made {columns[expression]}"])
    for statement in given.STATEMENTS:
        _, answer = prepared(connection, statement)
        text = text_protocol(connection, statement)
        if text != answer:
            text += [f"prepared {each}" for each in answer]
        yield statement, "\n".join(text)
    for statement in given.PARAMETERS:
        parameters, answer = prepared(connection, statement)
        parameters = [f"parameter {each}" for each in parameters]
        yield f"PREPARE {statement}", "\n".join(parameters + answer)
    cursor.execute(f"DROP DATABASE {DATABASE}")


KNOWN = given.KNOWN
