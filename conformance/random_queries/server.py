"""A server that is asked: rows as texts, errors by number, column definitions and warnings."""

import dataclasses
import re
import subprocess

import pymysql

SQL_MODE = "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION,ONLY_FULL_GROUP_BY"
# Strict. The same for all, but for what `PARTNER` adds.
SESSION = [
    f"SET SESSION sql_mode = '{SQL_MODE}', time_zone = '+00:00', timestamp = 1700000000, "
    "group_concat_max_len = 1000000, NAMES utf8mb4 COLLATE utf8mb4_bin",
]
PARTNER = {
    "Firn": [],
    "MySQL": ["SET SESSION max_execution_time = 20000"],
    # ONLY_FULL_GROUP_BY keeps smaller queries from having several answers; MariaDB knows a rougher
    # one. It takes a subquery's answer for another row whose values are equal in *their* collation,
    # not in the subquery's.
    "MariaDB": [
        "SET SESSION sql_mode = REPLACE(@@sql_mode, 'ONLY_FULL_GROUP_BY', '')",
        "SET SESSION optimizer_switch = 'subquery_cache=off', max_statement_time = 20",
    ],
}
# Errors of a statement that takes too long: there is no answer to compare with.
OUT_OF_TIME = (1969, 3024)
# The connection is gone.
LOST = (0, 2006, 2013)
REFUSED = 2003


@dataclasses.dataclass
class Answer:
    """What came back. `failure` is the number of an error, or what the client could not read."""

    rows: tuple = ()
    failure: object = None
    columns: tuple = ()
    warnings: tuple = ()
    # Rows that a write says it has changed, and the text that goes with it.
    affected: int = 0
    information: str = ""

    @property
    def outcome(self):
        return self.rows if self.failure is None else self.failure


def definition(field):
    """A column definition, without the database's name."""
    return (field.name, field.type_code, field.charsetnr, field.length, field.scale, field.flags,
            field.table_name, field.org_table, field.org_name)


def information(message):
    """What goes with the rows that were changed. Of warnings it says whether there were any, as `Server.warnings` does."""
    text = message.decode("utf8", "replace") if isinstance(message, bytes) else message or ""
    return re.sub(r"Warnings: [1-9]\d*", "Warnings: some", text[text.find("R"):] if "R" in text else text)


class Server:
    """A server on the loopback. `restart` is a command that starts it again if a statement has crashed it."""

    def __init__(self, port, name, database, restart=None):
        self.port, self.name, self.database, self.restart = port, name, database, restart
        self.crashed_by = []
        self.connect()

    def connect(self):
        # Values come as texts of the server, so that nothing is lost on the way.
        self.connection = pymysql.connect(
            host="127.0.0.1", port=self.port, user="root", charset="utf8mb4", read_timeout=30, autocommit=True,
            conv=dict(pymysql.converters.encoders),
        )
        cursor = self.connection.cursor()
        for statement in SESSION + PARTNER[self.name]:
            cursor.execute(statement)

    def use(self):
        self.connection.select_db(self.database)

    def reconnect(self, text):
        try:
            self.connect()
        except pymysql.OperationalError as error:
            if error.args[0] != REFUSED or not self.restart:
                raise
            self.crashed_by.append(text)
            subprocess.run(self.restart, shell=True, check=True, stdout=subprocess.DEVNULL)
            self.connect()
        self.use()

    def answer(self, text, with_warnings=True):
        try:
            cursor = self.connection.cursor()
            cursor.execute(text)
            result = cursor._result
            columns = tuple(definition(field) for field in result.fields) if result.has_next is not None and result.field_count else ()
            answer = Answer(tuple(cursor.fetchall()), None, columns, (), result.affected_rows or 0, information(result.message))
            if with_warnings and result.warning_count:
                answer.warnings = self.warnings()
            return answer
        except pymysql.MySQLError as error:
            code = error.args[0]
            if code in LOST:
                self.reconnect(text)
            return Answer(failure=code)
        except Exception as error:  # What the client itself cannot read.
            self.reconnect(text)
            return Answer(failure=f"{type(error).__name__}: {error}")

    def warnings(self):
        """Levels and numbers, each once: how often one comes depends on the plan."""
        cursor = self.connection.cursor()
        cursor.execute("SHOW WARNINGS")
        return tuple(sorted({(level, int(code)) for level, code, _ in cursor.fetchall()}))
