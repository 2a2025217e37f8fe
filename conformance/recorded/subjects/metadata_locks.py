"""Which statements wait for which others, and what ends the waits.

A case is a story: statements of sessions, in order. `a: BEGIN` runs in session a. The answer has a line for
each statement: its answer, or `waits`, and when a waiting statement ends a line for that.
"""

import concurrent.futures
import queue
import threading

# A statement that has not answered by then waits.
PATIENCE_S = 0.6
# Stories run side by side: they wait most of the time.
STORIES_AT_ONCE = 8

SETUP = [
    "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
    "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
    "CREATE TABLE other (id INT PRIMARY KEY, v INT)",
    "INSERT INTO other VALUES (1, 1), (2, 2)",
    "CREATE VIEW w AS SELECT id, v FROM t",
]

# What session a does first, and how it lets go.
HOLDERS = [
    (["BEGIN", "SELECT v FROM t WHERE id = 1"], "COMMIT"),
    (["BEGIN", "INSERT INTO t VALUES (100, 1)"], "ROLLBACK"),
    (["BEGIN", "SELECT v FROM t WHERE id = 1 FOR UPDATE"], "COMMIT"),
    (["BEGIN", "SELECT v FROM w WHERE id = 1"], "COMMIT"),
    (["LOCK TABLES t READ"], "UNLOCK TABLES"),
    (["LOCK TABLES t WRITE"], "UNLOCK TABLES"),
    (["FLUSH TABLES t WITH READ LOCK"], "UNLOCK TABLES"),
    (["FLUSH TABLES WITH READ LOCK"], "UNLOCK TABLES"),
    (["HANDLER t OPEN"], "HANDLER t CLOSE"),
]

CONTENDERS = [
    "SELECT v FROM t WHERE id = 2",
    "SELECT v FROM t WHERE id = 2 FOR UPDATE",
    "SELECT v FROM w WHERE id = 2",
    "INSERT INTO t VALUES (50, 1)",
    "UPDATE other, t SET other.v = t.v WHERE other.id = t.id AND t.id = 2",
    "ALTER TABLE t ADD COLUMN c INT",
    "ALTER TABLE t MODIFY v BIGINT",
    "ALTER TABLE t ADD INDEX (v)",
    "ALTER TABLE t RENAME TO s",
    "CREATE INDEX i ON t (v)",
    "DROP TABLE t",
    "TRUNCATE TABLE t",
    "RENAME TABLE t TO s",
    "CREATE OR REPLACE VIEW w AS SELECT id FROM t",
    "DROP VIEW w",
    "CREATE TABLE s LIKE t",
    "CREATE TABLE s AS SELECT * FROM t WHERE id = 2",
    "LOCK TABLES t READ",
    "LOCK TABLES t WRITE",
    "DESCRIBE t",
    "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 't'",
]

STORIES = [
    # A waiting change of the definition goes before those who come later.
    "a: BEGIN | a: SELECT v FROM t WHERE id = 1 | b: ALTER TABLE t ADD COLUMN c INT"
    " | c: SELECT v FROM t WHERE id = 1 | a: COMMIT | c: SELECT c FROM t WHERE id = 1",
    "a: BEGIN | a: SELECT v FROM t WHERE id = 1 | b: DROP TABLE t | c: SELECT v FROM t WHERE id = 1 | a: COMMIT",
    "a: BEGIN | a: SELECT v FROM t WHERE id = 1 | b: LOCK TABLES t WRITE | c: SELECT v FROM t WHERE id = 1"
    " | a: COMMIT | b: UNLOCK TABLES",
    "a: LOCK TABLES t READ | b: INSERT INTO t VALUES (9, 9) | c: SELECT v FROM t WHERE id = 1 | a: UNLOCK TABLES",
    # What a transaction has locked it has for its own further statements.
    "a: BEGIN | a: SELECT v FROM t WHERE id = 1 | b: DROP TABLE t | a: SELECT v FROM t WHERE id = 2 | a: COMMIT",
    # A stronger lock waits behind the change, which waits for the weaker one.
    "a: BEGIN | a: SELECT v FROM t WHERE id = 1 | b: ALTER TABLE t ADD COLUMN c INT"
    " | a: UPDATE t SET v = 5 WHERE id = 1 | a: COMMIT | a: SELECT v FROM t WHERE id = 1",
    # Two tables in both orders.
    "a: BEGIN | a: SELECT v FROM t WHERE id = 1 | b: BEGIN | b: SELECT v FROM other WHERE id = 1"
    " | c: DROP TABLE other | a: SELECT v FROM other WHERE id = 1 | b: COMMIT | a: COMMIT",
    "a: BEGIN | a: INSERT INTO t VALUES (9, 9) | b: RENAME TABLE other TO o, t TO s"
    " | a: SELECT v FROM other WHERE id = 1 | a: COMMIT | a: SELECT v FROM t WHERE id = 9",
    # Statements of their own that give way.
    "a: BEGIN | a: SELECT v FROM t WHERE id = 1 | b: RENAME TABLE t TO s, other TO t | c: SELECT v FROM other WHERE id = 1"
    " | a: COMMIT | c: SELECT COUNT(*) FROM t",
    # How long they wait.
    "a: BEGIN | a: SELECT v FROM t WHERE id = 1 | b: SET lock_wait_timeout = 1 | b: DROP TABLE t"
    " | b: SELECT SLEEP(1) | a: COMMIT",
    "a: LOCK TABLES t WRITE | b: SET lock_wait_timeout = 1 | b: SELECT v FROM t | b: SELECT SLEEP(1) | a: UNLOCK TABLES",
    "a: LOCK TABLES t WRITE | b: SET lock_wait_timeout = 1 | b: LOCK TABLES t READ | b: SELECT SLEEP(1) | a: UNLOCK TABLES",
    "a: LOCK TABLES t WRITE | b: SET max_execution_time = 900 | b: SELECT v FROM t | b: SELECT 1 | a: UNLOCK TABLES",
    "a: BEGIN | a: UPDATE t SET v = 9 WHERE id = 1 | b: BEGIN | b: SET innodb_lock_wait_timeout = 1"
    " | b: UPDATE t SET v = 8 WHERE id = 1 | b: SELECT SLEEP(1) | a: ROLLBACK | b: ROLLBACK",
    # Statements that fail, and savepoints.
    "a: BEGIN | a: SELECT nothing FROM t | b: DROP TABLE t | a: COMMIT",
    "a: BEGIN | a: INSERT INTO t VALUES (1, 1) | b: DROP TABLE t | a: COMMIT",
    "a: SET autocommit = 0 | a: SELECT v FROM t WHERE id = 1 | b: DROP TABLE t | a: COMMIT",
    # LOCK TABLES and changes of definitions by the same session.
    "a: LOCK TABLES t WRITE | a: ALTER TABLE t ADD COLUMN c INT | b: SELECT c FROM t WHERE id = 1 | a: UNLOCK TABLES",
    "a: LOCK TABLES t WRITE | a: ALTER TABLE t MODIFY v BIGINT | b: SELECT v FROM t WHERE id = 1 | a: UNLOCK TABLES",
    "a: LOCK TABLES t WRITE | a: DROP TABLE t | b: SELECT v FROM t WHERE id = 1 | a: UNLOCK TABLES",
    "a: LOCK TABLES t READ | a: ALTER TABLE t ADD COLUMN c INT | a: INSERT INTO t VALUES (9, 9) | a: UNLOCK TABLES",
    "a: LOCK TABLES t READ, other WRITE | b: SELECT v FROM other WHERE id = 1 | a: BEGIN | a: COMMIT",
    # Temporary tables are nobody else's.
    "a: CREATE TEMPORARY TABLE p (id INT PRIMARY KEY) | a: BEGIN | a: INSERT INTO p VALUES (1)"
    " | a: DROP TEMPORARY TABLE p | a: COMMIT | a: SELECT * FROM p",
    "a: CREATE TEMPORARY TABLE p (id INT PRIMARY KEY) | a: BEGIN | a: INSERT INTO p VALUES (1)"
    " | a: DROP TEMPORARY TABLE p | a: ROLLBACK | a: INSERT INTO t VALUES (9, 9)",
    # Prepared transactions keep their locks.
    "a: XA START 'metadata' | a: INSERT INTO t VALUES (9, 9) | a: XA END 'metadata' | a: XA PREPARE 'metadata'"
    " | b: ALTER TABLE t ADD COLUMN c INT | c: XA COMMIT 'metadata' | b: SELECT c FROM t WHERE id = 9",
    # Statements that are prepared or in plans follow the definition.
    "a: PREPARE p FROM 'SELECT * FROM t WHERE id = 1' | a: EXECUTE p | b: ALTER TABLE t ADD COLUMN c INT DEFAULT 7 | a: EXECUTE p",
    # Handlers give way when their session does something.
    "a: HANDLER t OPEN | b: ALTER TABLE t ADD COLUMN c INT | a: SELECT 1 | a: HANDLER t CLOSE",
    # Foreign keys lock both sides.
    "a: CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id)) | a: BEGIN"
    " | a: INSERT INTO child VALUES (1, 1) | b: ALTER TABLE t ADD COLUMN c INT | a: COMMIT",
    "a: CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id) ON DELETE CASCADE) | a: BEGIN"
    " | a: DELETE FROM t WHERE id = 1 | b: ALTER TABLE child ADD COLUMN c INT | a: COMMIT",
    "a: BEGIN | a: SELECT v FROM t WHERE id = 1"
    " | b: CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id)) | a: COMMIT",
    # Copies of a table while it is read and written.
    "a: BEGIN | a: SELECT v FROM t WHERE id = 1 | b: ALTER TABLE t MODIFY v BIGINT | c: INSERT INTO t VALUES (9, 9) | a: COMMIT",
    # A locking clause behind a set is its last query's.
    "a: BEGIN | a: SELECT v FROM other WHERE id = 1 UNION SELECT v FROM t WHERE id = 1 FOR UPDATE"
    " | b: UPDATE t SET v = 9 WHERE id = 1 | c: UPDATE other SET v = 9 WHERE id = 1 | a: COMMIT",
    "a: BEGIN | a: (SELECT v FROM t WHERE id = 1 LIMIT 1) FOR UPDATE | b: UPDATE t SET v = 9 WHERE id = 1 | a: COMMIT",
    "a: SELECT v FROM t UNION SELECT v FROM other FOR UPDATE OF t",
    "a: (SELECT v FROM t FOR SHARE) LIMIT 1 FOR UPDATE",
    # The whole schema.
    "a: BEGIN | a: SELECT v FROM t WHERE id = 1 | b: DROP DATABASE this | a: COMMIT",
]


class Session:
    """A connection whose statements run in a thread of its own."""

    def __init__(self, server, schema):
        self.server, self.connection = server, server.connect(database=schema)
        self.statements, self.answers = queue.Queue(), queue.Queue()
        self.waits = False
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while (statement := self.statements.get()) is not None:
            self.answers.put(self.server.answer(self.connection, statement).replace("\n", " / "))
        self.connection.close()

    def take(self, patience_s):
        """The answer of the statement that runs, if it comes in time."""
        try:
            answer = self.answers.get(timeout=patience_s)
        except queue.Empty:
            return None
        self.waits = False
        return answer


def tell(server, number, story):
    """Runs a story in a schema of its own; the lines of its answer."""
    schema = f"metadata_locks_{number}"
    admin = server.connect()
    for statement in [f"DROP DATABASE IF EXISTS {schema}", f"CREATE DATABASE {schema}", f"USE {schema}", *SETUP]:
        answer = server.answer(admin, statement)
        assert answer.startswith("ok"), (statement, answer)
    sessions, lines = {}, []
    for step in story.split(" | "):
        name, statement = step.split(": ", 1)
        statement = statement.replace("DATABASE this", f"DATABASE {schema}")
        session = sessions.get(name) or sessions.setdefault(name, Session(server, schema))
        if session.waits:
            answer = session.take(10)
            lines.append(f"{name} then {answer}")
        session.statements.put(statement)
        session.waits = True
        answer = session.take(PATIENCE_S)
        lines.append(f"{name} {answer or 'waits'}")
        # Whom it has let go on.
        for other, waiting in sorted(sessions.items()):
            if other != name and waiting.waits:
                answer = waiting.take(PATIENCE_S)
                lines += [f"{other} then {answer}"] if answer else []
    for name, session in sorted(sessions.items()):
        if session.waits:
            lines.append(f"{name} then {session.take(10) or 'waits for ever'}")
        session.statements.put(None)
    server.answer(admin, f"DROP DATABASE IF EXISTS {schema}")
    admin.close()
    return "\n".join(lines).replace(schema, "this")


def stories():
    yield from STORIES
    for first, last in HOLDERS:
        for contender in CONTENDERS:
            steps = [f"a: {statement}" for statement in first]
            yield " | ".join([*steps, f"b: {contender}", f"a: {last}"])


def cases(server):
    told = list(stories())
    # Whoever holds everything would hold up other stories.
    apart = [story for story in told if "FLUSH TABLES WITH" in story]
    beside = [story for story in told if story not in apart]
    with concurrent.futures.ThreadPoolExecutor(STORIES_AT_ONCE) as pool:
        answers = pool.map(lambda one: tell(server, *one), enumerate(beside))
        yield from zip(beside, answers)
    for number, story in enumerate(apart):
        yield story, tell(server, number, story)


VIEW_READS_DEFINITIONS = "CREATE VIEW reads definitions alone, which LOCK TABLES does not change"
ONLY_WRITTEN_TABLES = "an UPDATE of several tables locks for writing those alone that it writes"
KNOWN = {
    "a: BEGIN | a: SELECT nothing FROM t | b: DROP TABLE t | a: COMMIT": "a statement that cannot be bound locks nothing",
    "a: LOCK TABLES t WRITE | b: CREATE OR REPLACE VIEW w AS SELECT id FROM t | a: UNLOCK TABLES": VIEW_READS_DEFINITIONS,
    "a: LOCK TABLES t READ | b: UPDATE other, t SET other.v = t.v WHERE other.id = t.id AND t.id = 2"
    " | a: UNLOCK TABLES": ONLY_WRITTEN_TABLES,
    "a: FLUSH TABLES t WITH READ LOCK | b: UPDATE other, t SET other.v = t.v WHERE other.id = t.id AND t.id = 2"
    " | a: UNLOCK TABLES": ONLY_WRITTEN_TABLES,
}
