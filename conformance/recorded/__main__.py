"""Compares a server's answers with those recorded from MySQL, or records them.

See README.md beside this file.
"""

import argparse
import difflib
import importlib
import pathlib
import re
import sys

import pymysql

SUBJECTS = pathlib.Path(__file__).parent / "subjects"
sys.path.insert(0, str(SUBJECTS))


class Server:
    """A server under test, reached as root without a password."""

    def __init__(self, port):
        self.port = port

    def connect(self, user="root", **options):
        """Opens a connection in autocommit mode; values arrive as the server's own text."""
        # Versions of the client ask for different collations.
        return pymysql.connect(
            host="127.0.0.1", port=self.port, user=user, autocommit=True, conv={},
            init_command="SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci", **options
        )  # fmt: skip

    @staticmethod
    def answer(connection, statement):
        """Runs a statement: its rows, its affected rows, or its error, as text."""
        cursor = connection.cursor()
        try:
            affected = cursor.execute(statement)
        except pymysql.MySQLError as error:
            return "error " + " ".join(str(part) for part in error.args)
        if cursor.description is None:
            return f"ok {affected}"
        rows = ["\t".join(as_text(value) for value in row) for row in cursor.fetchall()]
        return "\n".join(rows) or "no rows"

    def answer_with_definitions(self, connection, statement):
        """As `answer`, with the column definitions and the warnings; errors by their numbers."""
        answer = self.answer(connection, statement)
        lines = [answer]
        if not answer.startswith("error"):
            fields = getattr(connection._result, "fields", ())
            lines += [f"{one.type_code} {one.charsetnr} {one.length} {one.scale} {one.flags}" for one in fields]
        cursor = connection.cursor()
        cursor.execute("SHOW WARNINGS")
        # Texts differ in how they name an expression.
        lines += sorted({f"{level} {code}" for level, code, _ in cursor.fetchall()})
        return re.sub(r"(error \d+) .*", r"\1", "\n".join(lines))


def as_text(value):
    """A value in one line; bytes that are not UTF-8 are escaped."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        value = value.decode("utf8", "backslashreplace")
    return str(value).replace("\n", "\\n")


def recorded(path):
    """The cases of a recording. A case's line starts with `> `, the lines of its answer with two spaces."""
    cases, lines = {}, None
    for line in path.read_text().splitlines():
        if line.startswith("> "):
            lines = cases.setdefault(line[2:], [])
        else:
            lines.append(line[2:])
    return {case: "\n".join(lines) for case, lines in cases.items()}


def record(subject, server):
    """Writes a subject's answers beside it."""
    module = importlib.import_module(subject)
    seen = set()
    with open(SUBJECTS / f"{subject}.expected", "w") as file:
        for case, answer in module.cases(server):
            assert case not in seen and "\n" not in case, f"a case is one line and unique: {case}"
            seen.add(case)
            file.write(f"> {case}\n")
            file.writelines(f"  {line}\n" for line in answer.split("\n"))
    print(f"{subject}: {len(seen)} cases recorded")


def compare(subject, server):
    """Prints each case whose answer differs; returns how many faults there are."""
    module = importlib.import_module(subject)
    known = getattr(module, "KNOWN", {})
    expected, faults, compared = recorded(SUBJECTS / f"{subject}.expected"), 0, set()
    for case, answer in module.cases(server):
        compared.add(case)
        wanted = expected.get(case, "(not recorded)")
        if case in known:
            if answer == wanted:
                faults += 1
                print(f"{subject}: no longer differs, remove it from KNOWN: {case}")
        elif answer != wanted:
            faults += 1
            print(f"{subject}: {case}")
            lines = difflib.unified_diff(
                wanted.split("\n"), answer.split("\n"), "MySQL", "here", lineterm="", n=0
            )
            print("\n".join(f"    {line[:300]}" for line in list(lines)[2:]))
    for case in expected.keys() - compared:
        faults += 1
        print(f"{subject}: recorded, but no longer a case: {case}")
    print(f"{subject}: {len(compared)} cases, {faults} faults, {len(known)} known differences")
    return faults


def main():
    parser = argparse.ArgumentParser(prog="recorded", description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, required=True, help="the server's, on the loopback")
    parser.add_argument("--record", action="store_true", help="write the answers, from MySQL")
    parser.add_argument("subject", nargs="*", help="all of them by default")
    options = parser.parse_args()
    server = Server(options.port)
    subjects = options.subject or sorted(path.stem for path in SUBJECTS.glob("*.py"))
    if options.record:
        for subject in subjects:
            record(subject, server)
        return
    sys.exit(1 if sum([compare(subject, server) for subject in subjects]) else 0)


main()
