"""Random writes: duplicates, IGNORE, several tables, one table through two aliases. Each runs in a transaction that is
rolled back after its tables were read, so that every write meets the same rows.
"""

import dataclasses

from server import SQL_MODE
from tree import Expression

ANY = "any"
VALUE = "value"

TABLES = {
    "w1": "CREATE TABLE w1 (id INT NOT NULL PRIMARY KEY, a INT, b VARCHAR(6) COLLATE utf8mb4_general_ci, c DECIMAL(5,2) NOT NULL DEFAULT 1.5, d DATE, "
          "e ENUM('low','mid','high'), g INT AS (a + 1) STORED, UNIQUE KEY (a), KEY (b, c), KEY (g))",
    "w2": "CREATE TABLE w2 (k VARCHAR(4) COLLATE utf8mb4_general_ci NOT NULL, n SMALLINT NOT NULL DEFAULT 0, x DOUBLE, u TINYINT UNSIGNED NOT NULL, y YEAR, "
          "s SET('p','q','r'), PRIMARY KEY (k, n), UNIQUE KEY (u))",
    "w3": "CREATE TABLE w3 (id INT NOT NULL PRIMARY KEY, r INT, q INT, v VARCHAR(8) NOT NULL DEFAULT 'v', t DATETIME(1), z INT(4) ZEROFILL, h VARCHAR(20) AS (CONCAT(v, '-', q)) VIRTUAL, "
          "KEY (h), CONSTRAINT to_w1 FOREIGN KEY (r) REFERENCES w1 (a) ON DELETE CASCADE ON UPDATE CASCADE, CHECK (q IS NULL OR q < 1000))",
    "w4": "CREATE TABLE w4 (a INT, j JSON, f FLOAT, l BIT(5), m TIME(2), o VARBINARY(3), KEY (a), KEY (o))",
}
# Columns that can be written.
COLUMNS = {
    "w1": ["id", "a", "b", "c", "d", "e"], "w2": ["k", "n", "x", "u", "y", "s"], "w3": ["id", "r", "q", "v", "t", "z"],
    "w4": ["a", "j", "f", "l", "m", "o"],
}
KEYS = {"w1": ["id"], "w2": ["k", "n"], "w3": ["id"], "w4": []}
FITTING = {
    "id": ["1", "2", "3", "5", "8", "11", "20"], "a": ["1", "2", "3", "4", "7", "10", "-1", "NULL"], "b": ["'x'", "'X'", "'abc'", "''", "'é'", "NULL"],
    "c": ["0", "1.5", "-2.25", "999.99"], "d": ["'2024-02-29'", "'1999-12-31'", "NULL", "20240101"], "e": ["'low'", "'HIGH'", "2", "NULL"],
    "k": ["'a'", "'A'", "'b'", "'zz'"], "n": ["0", "1", "2", "-7"], "x": ["0", "0.1", "-1e10", "NULL"], "u": ["1", "2", "3", "4", "9", "255"], "y": ["2024", "'99'", "0", "70", "NULL"],
    "s": ["'p'", "'q,p'", "''", "5", "NULL"], "r": ["1", "2", "3", "NULL", "77"], "q": ["1", "5", "NULL", "1000"], "v": ["'v'", "'w '", "''"], "t": ["'2024-02-29 12:00:00.55'", "'2024-01-01'", "NULL"],
    "z": ["7", "12345", "NULL"], "j": ["'[1]'", "'{{}}'", "'null'", "NULL", "JSON_ARRAY(1, 2)"], "f": ["0.05", "1234.56", "-1", "NULL"], "l": ["0", "b'10101'", "31", "NULL"],
    "m": ["'12:30:00.005'", "'-1:00'", "123", "NULL"], "o": ["'ab'", "x'00FF'", "''", "NULL"],
}
# What fits into few columns: errors where the mode is strict, warnings and other values where it is
# not.
UNFITTING = ["'1x'", "''", "'abcdefghijk'", "-1", "300", "99999999999", "1.555", "1e40", "'2024-02-30'", "'0000-00-00'", "x'FF'", "NULL", "'a'", "TRUE", "DATE'2024-05-06'", "TIME'10:11:12'", "DEFAULT"]
ROWS = {"w1": 9, "w2": 6, "w3": 10, "w4": 7}


def statements(random):
    """The tables and their rows; a row that its table refuses is left out by every server."""
    for table, definition in TABLES.items():
        yield definition + " DEFAULT COLLATE utf8mb4_0900_ai_ci"
        for row in range(ROWS[table]):
            values = [random.choice(FITTING[column]).replace("{{}}", "{}") for column in COLUMNS[table]]
            if "id" in KEYS[table]:
                values[0] = str(row + 1)
            yield f"INSERT IGNORE INTO {table} ({', '.join(COLUMNS[table])}) VALUES ({', '.join(values)})"


@dataclasses.dataclass
class Record:
    arguments: list

    def sql(self):
        return "(" + ", ".join(argument.sql() for argument in self.arguments) + ")"

    def lists(self):
        return [("arguments", self.arguments)]


@dataclasses.dataclass
class Assignment:
    column: str
    arguments: list

    def sql(self):
        return f"{self.column} = {self.arguments[0].sql()}"

    def lists(self):
        return [("arguments", self.arguments)]


@dataclasses.dataclass
class Write:
    """A statement that changes tables: what stands before its lists, and between them."""

    head: str
    mode: str
    records: list = dataclasses.field(default_factory=list)
    tail: str = ""
    duplicates: str = ""
    updates: list = dataclasses.field(default_factory=list)
    assignments: list = dataclasses.field(default_factory=list)
    where: list = dataclasses.field(default_factory=list)
    end: str = ""
    order: list = dataclasses.field(default_factory=list)

    def sql(self):
        text = self.head
        if self.records:
            text += " VALUES " + ", ".join(record.sql() for record in self.records)
        text += self.tail
        if self.updates:
            text += " ON DUPLICATE KEY UPDATE " + ", ".join(update.sql() for update in self.updates)
        if self.assignments:
            text += " SET " + ", ".join(assignment.sql() for assignment in self.assignments)
        return text + "".join(f" WHERE {where.sql()}" for where in self.where) + self.end

    def lists(self):
        return [("records", self.records), ("updates", self.updates), ("assignments", self.assignments), ("where", self.where)]

    def ask(self, server):
        """Its answer, and what it leaves."""
        server.answer(f"SET SESSION sql_mode = '{self.mode}'", False)
        server.answer("START TRANSACTION", False)
        answer = server.answer(self.sql())
        answer.contents = {}
        for table in TABLES:
            answer.contents[table] = tuple(sorted(server.answer(f"SELECT * FROM {table}", False).rows, key=str))
        server.answer("ROLLBACK", False)
        server.answer(f"SET SESSION sql_mode = '{SQL_MODE}'", False)
        return answer


class WriteGenerator:
    def __init__(self, random):
        self.random = random

    def chance(self, of):
        return self.random.random() < of

    def constant(self, column):
        pick = self.random.choice
        return Expression(VALUE, pick(UNFITTING) if self.chance(0.12) else pick(FITTING[column]))

    def value(self, column, scope):
        """What a column is set to: of other columns of the row, or a constant."""
        pick = self.random.choice
        if self.chance(0.4) or not scope:
            return self.constant(column)
        own = pick(scope)
        template = pick(["{}", "({} + 1)", "({} + {})", "(- {})", "IFNULL({}, {})", "CONCAT({}, 'x')", "({} * 10)", "NULLIF({}, {})", "LEFT({}, 2)", "GREATEST({}, {})"])
        others = [Expression(ANY, own), Expression(ANY, pick(scope)) if self.chance(0.6) else self.constant(column)]
        # DEFAULT stands alone.
        others = [Expression(ANY, "1") if one.template == "DEFAULT" else one for one in others]
        return Expression(VALUE, template, others[: template.count("{}")])

    def condition(self, scope):
        pick = self.random.choice
        column = pick(scope)
        name = column.split(".")[-1]
        constants = [Expression(ANY, pick(FITTING[name])) for _ in range(2)]
        template = pick(["({} = {})", "({} > {})", "({} <> {})", "({} IN ({}, {}))", "({} BETWEEN {} AND {})", "({} IS NOT NULL)", "({} <= {})"])
        return Expression("truth", template, ([Expression(ANY, column)] + constants)[: template.count("{}")])

    def mode(self):
        return self.random.choice(["STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION", "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION", "NO_ENGINE_SUBSTITUTION", "TRADITIONAL", "STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE"])

    def query(self):
        return self.random.choice([self.insert, self.insert, self.insert_select, self.update, self.update_joined, self.delete])()

    def columns(self, table):
        columns = [column for column in COLUMNS[table] if column in KEYS[table] or self.chance(0.6)]
        return columns or COLUMNS[table][:1]

    def updates(self, table, columns):
        """Of ON DUPLICATE KEY UPDATE: own columns, the values of the refused row, constants."""
        updates = []
        for column in self.random.sample(COLUMNS[table], self.random.choice([1, 1, 2])):
            given = self.random.choice(columns)
            value = Expression(VALUE, f"VALUES({given})") if self.chance(0.4) else self.value(column, COLUMNS[table])
            updates.append(Assignment(column, [value]))
        return updates

    def insert(self):
        table = self.random.choice(list(TABLES))
        columns = self.columns(table)
        verb = self.random.choice(["INSERT", "INSERT IGNORE", "REPLACE", "INSERT"])
        records = [Record([self.constant(column) for column in columns]) for _ in range(self.random.choice([1, 1, 2, 3]))]
        write = Write(f"{verb} INTO {table} ({', '.join(columns)})", self.mode(), records)
        if verb != "REPLACE" and self.chance(0.5):
            write.updates = self.updates(table, columns)
        return write

    def insert_select(self):
        table, other = self.random.choice(list(TABLES)), self.random.choice(["w1", "w2", "w3"])
        columns = self.columns(table)
        verb = self.random.choice(["INSERT", "INSERT IGNORE", "REPLACE", "INSERT"])
        scope = [f"o.{column}" for column in COLUMNS[other]]
        values = []
        for column in columns:
            fitting = f"o.{column}" if f"o.{column}" in scope else self.random.choice(scope)
            values.append(fitting if self.chance(0.4) else self.constant(column).template.replace("DEFAULT", "NULL").replace("{{}}", "{}"))
        keys = ", ".join(f"o.{key}" for key in KEYS[other])
        tail = f" SELECT {', '.join(values)} FROM {other} AS o WHERE {self.condition(scope).sql()} ORDER BY {keys}"
        if self.chance(0.4):
            tail += " LIMIT 3"
        write = Write(f"{verb} INTO {table} ({', '.join(columns)})", self.mode(), tail=tail)
        if verb != "REPLACE" and self.chance(0.6):
            write.updates = [update for update in self.updates(table, columns)]
            for update in write.updates:
                # Names of both tables would be ambiguous.
                for argument in [*update.arguments, *update.arguments[0].arguments]:
                    if argument.template in COLUMNS[table]:
                        argument.template = f"{table}.{argument.template}"
                if self.chance(0.3):
                    update.arguments = [Expression(VALUE, self.random.choice(scope))]
                update.column = f"{table}.{update.column}"
        return write

    def assignments(self, table, scope, prefix):
        chosen = self.random.sample(COLUMNS[table], self.random.choice([1, 1, 2, 3]))
        return [Assignment(prefix + column, [self.value(column, scope)]) for column in chosen]

    def update(self):
        table = self.random.choice(list(TABLES))
        ignore = self.random.choice(["", "", " IGNORE"])
        order = f" ORDER BY {', '.join(key + self.random.choice(['', ' DESC']) for key in KEYS[table])}" if KEYS[table] else ""
        # Rows change in the order of a key, so that the same one of two takes a unique value
        # first at each server.
        if order and self.chance(0.3):
            order += " LIMIT 2"
        where = [self.condition(COLUMNS[table])] if self.chance(0.7) else []
        return Write(f"UPDATE{ignore} {table}", self.mode(), assignments=self.assignments(table, COLUMNS[table], ""), where=where, end=order)

    def joined(self):
        """Two tables or one through two aliases, each row of which meets one of the other at most."""
        return self.random.choice([
            ("w1", "w1", "x.id = y.id"), ("w1", "w1", "x.id = y.a"), ("w3", "w1", "x.r = y.a AND x.id = y.id"), ("w1", "w3", "x.id = y.id"),
            ("w2", "w2", "x.u = y.u"), ("w3", "w3", "x.id = y.id"), ("w1", "w2", "x.a = y.u"), ("w2", "w1", "y.id = x.u"),
        ])

    def update_joined(self):
        first, second, on = self.joined()
        join = self.random.choice(["JOIN", "JOIN", "LEFT JOIN"])
        scope = [f"x.{column}" for column in COLUMNS[first]] + [f"y.{column}" for column in COLUMNS[second]]
        changes = []
        if self.chance(0.8):
            changes += self.assignments(first, scope, "x.")
        if not changes or self.chance(0.6):
            changes += self.assignments(second, scope, "y.")
        where = [self.condition(scope)] if self.chance(0.6) else []
        ignore = self.random.choice(["", "", "", " IGNORE"])
        return Write(f"UPDATE{ignore} {first} AS x {join} {second} AS y ON {on}", self.mode(), assignments=changes, where=where)

    def delete(self):
        if self.chance(0.5):
            table = self.random.choice(list(TABLES))
            where = [self.condition(COLUMNS[table])] if self.chance(0.8) else []
            order = f" ORDER BY {', '.join(KEYS[table])} LIMIT 2" if KEYS[table] and self.chance(0.3) else ""
            return Write(f"DELETE FROM {table}", self.mode(), where=where, end=order)
        first, second, on = self.joined()
        scope = [f"x.{column}" for column in COLUMNS[first]] + [f"y.{column}" for column in COLUMNS[second]]
        targets = self.random.choice(["x", "y", "x, y"])
        where = [self.condition(scope)] if self.chance(0.7) else []
        return Write(f"DELETE {targets} FROM {first} AS x {self.random.choice(['JOIN', 'LEFT JOIN'])} {second} AS y ON {on}", self.mode(), where=where)
