"""Which privilege, at which level, lets an account run a statement, and how the others are refused.

An account for each privilege at each level (and for some privileges together, roles and none) runs each
statement. A case is a statement; its answer has a line for each thing that happened, with the accounts
to which it happened. The largest group is called `otherwise`.
"""

import functools
import re

SCHEMA = "privileges"
USER = "privileges_user"
GLOBAL, ON_SCHEMA, TABLE, COLUMN = "global", "schema", "table", "column"

EVERYWHERE = (
    "SELECT INSERT UPDATE DELETE CREATE DROP REFERENCES INDEX ALTER CREATE_VIEW SHOW_VIEW TRIGGER GRANT_OPTION"
).split()
IN_SCHEMAS = "CREATE_TEMPORARY_TABLES LOCK_TABLES EXECUTE CREATE_ROUTINE ALTER_ROUTINE EVENT".split()
ONLY_GLOBAL = (
    "RELOAD SHUTDOWN PROCESS FILE SHOW_DATABASES SUPER REPLICATION_SLAVE REPLICATION_CLIENT CREATE_USER "
    "CREATE_TABLESPACE CREATE_ROLE DROP_ROLE"
).split()
DYNAMIC = (
    "ALLOW_NONEXISTENT_DEFINER APPLICATION_PASSWORD_ADMIN BACKUP_ADMIN CONNECTION_ADMIN FLUSH_OPTIMIZER_COSTS "
    "FLUSH_PRIVILEGES FLUSH_STATUS FLUSH_TABLES FLUSH_USER_RESOURCES ROLE_ADMIN SESSION_VARIABLES_ADMIN "
    "SET_ANY_DEFINER SYSTEM_USER SYSTEM_VARIABLES_ADMIN XA_RECOVER_ADMIN"
).split()
# Privileges that statements need together; all of them global.
TOGETHER = [
    "SELECT+INSERT",
    "SELECT+UPDATE",
    "SELECT+DELETE",
    "SELECT+LOCK TABLES",
    "SELECT+SHOW VIEW",
    "SELECT+CREATE",
    "SELECT+CREATE VIEW",
    "SELECT+CREATE VIEW+DROP",
    "SELECT+CREATE VIEW+SET_ANY_DEFINER",
    "SELECT+CREATE VIEW+SET_ANY_DEFINER+ALLOW_NONEXISTENT_DEFINER",
    "SELECT+CREATE VIEW+SET_ANY_DEFINER+SYSTEM_USER",
    "SELECT+CREATE+INSERT",
    "SELECT+CREATE+REFERENCES",
    "CREATE VIEW+DROP",
    "INSERT+UPDATE",
    "INSERT+DELETE",
    "DROP+CREATE",
    "ALTER+DROP",
    "ALTER+INSERT+CREATE",
    "ALTER+INSERT+CREATE+DROP",
    "ALTER+REFERENCES",
    "CREATE USER+SYSTEM_USER",
    "CREATE USER+SELECT",
    "CREATE ROLE+ROLE_ADMIN",
    "CREATE USER+ROLE_ADMIN",
    "CONNECTION_ADMIN+SYSTEM_USER",
    "FLUSH_TABLES+LOCK TABLES+SELECT",
    "RELOAD+LOCK TABLES+SELECT",
    "BACKUP_ADMIN+SELECT",
    "SUPER+SELECT",
    "FILE+SELECT",
    "GRANT OPTION+SELECT",
]
STRICTER = "stricter than MySQL, which leaves a column of the table unasked"
NO_FILES = "files are refused by secure_file_priv, which says so otherwise"
# Why Firn answers otherwise.
KNOWN = {
    "SELECT x.a FROM t AS x JOIN u USING (id)": STRICTER,
    "UPDATE t AS x JOIN u AS y USING (id) SET x.a = y.a": STRICTER,
    "SELECT a FROM w": STRICTER,
    "INSERT INTO w (id, a) VALUES (2, 2)": "rows that are written through a view have to be readable",
    "UPDATE w SET a = 1": "rows that are written through a view have to be readable",
    "DELETE FROM w": "rows that are written through a view have to be readable",
    "SELECT nothing FROM t": "who has some column is told that there is no such one",
    "SHOW BINARY LOGS": "there are no binary logs, which is no error",
    "CHECKSUM TABLE t": "not there yet",
    "RESET PERSIST IF EXISTS max_connect_errors": "needs what SET PERSIST needs",
    "SELECT 1 INTO OUTFILE '/nothing/at/all'": NO_FILES,
    "LOAD DATA INFILE '/nothing/at/all' INTO TABLE t": NO_FILES,
}

OBJECTS = ["t", "u", "v", "w", "n"]

# What runs as root before everything else.
SETUP = [
    f"DROP DATABASE IF EXISTS {SCHEMA}",
    f"DROP DATABASE IF EXISTS {SCHEMA}_new",
    f"CREATE DATABASE {SCHEMA}",
    f"CREATE TABLE {SCHEMA}.t (id INT PRIMARY KEY, a INT, b INT)",
    f"CREATE TABLE {SCHEMA}.u (id INT PRIMARY KEY, a INT, INDEX i (a))",
    f"CREATE TABLE {SCHEMA}.hidden (id INT PRIMARY KEY, a INT)",
    f"CREATE TABLE {SCHEMA}.n (a INT)",
    f"INSERT INTO {SCHEMA}.t VALUES (1, 1, 1)",
    f"INSERT INTO {SCHEMA}.u VALUES (1, 1)",
]
DEFINERS = {
    "whole": "SELECT ON {0}.*",
    "table": "SELECT ON {0}.t",
    "column": "SELECT (a) ON {0}.t",
    "powerless": "INSERT ON {0}.t",
    "by_role": None,
    "gone": "SELECT ON *.*",
}


def views():
    """Views, by their definers' rights."""
    yield f"CREATE VIEW {SCHEMA}.v AS SELECT id, a FROM {SCHEMA}.t"
    yield f"CREATE SQL SECURITY INVOKER VIEW {SCHEMA}.w AS SELECT id, a FROM {SCHEMA}.t"
    for name in DEFINERS:
        yield f"CREATE DEFINER = privileges_{name}@'%' VIEW {SCHEMA}.v_{name} AS SELECT a FROM {SCHEMA}.t"


def quiet(server, connection, statements):
    """Runs statements that have to go well."""
    for statement in statements:
        answer = server.answer(connection, statement)
        assert not answer.startswith("error"), f"{statement}: {answer}"


def drop_accounts(server, root):
    names = server.answer(root, f"SELECT user FROM mysql.user WHERE user LIKE 'privileges\\_%'")
    for name in names.split("\n"):
        if name != "no rows":
            server.answer(root, f"DROP USER {name}@'%'")


def set_up(server, root):
    drop_accounts(server, root)
    quiet(server, root, SETUP)
    for name, grant in DEFINERS.items():
        quiet(server, root, [f"CREATE USER privileges_{name}@'%'"])
        if grant:
            quiet(server, root, [f"GRANT {grant.format(SCHEMA)} TO privileges_{name}@'%'"])
    quiet(server, root, [
        "CREATE ROLE privileges_role, privileges_free",
        f"GRANT SELECT ON {SCHEMA}.t TO privileges_role",
        "GRANT privileges_role TO privileges_by_role@'%'",
        "SET DEFAULT ROLE privileges_role TO privileges_by_role@'%'",
        "CREATE USER privileges_plain@'%'",
        "CREATE USER privileges_system@'%'",
        "GRANT SYSTEM_USER ON *.* TO privileges_system@'%'",
    ])
    quiet(server, root, views())
    quiet(server, root, ["DROP USER privileges_gone@'%'"])


def accounts():
    """Label, and the statements that give its account what it may do."""
    yield "nothing", []
    for level, names in [
        (GLOBAL, EVERYWHERE + IN_SCHEMAS + ONLY_GLOBAL + DYNAMIC),
        (ON_SCHEMA, EVERYWHERE + IN_SCHEMAS),
        (TABLE, EVERYWHERE),
        (COLUMN, ["SELECT", "INSERT", "UPDATE", "REFERENCES"]),
    ]:
        for name in names:
            name = name if name in DYNAMIC else name.replace("_", " ")
            if level == GLOBAL:
                grants = [f"GRANT {name} ON *.* TO {USER}"]
            elif level == ON_SCHEMA:
                grants = [f"GRANT {name} ON {SCHEMA}.* TO {USER}"]
            elif level == TABLE:
                grants = [f"GRANT {name} ON {SCHEMA}.{table} TO {USER}" for table in OBJECTS]
            else:
                grants = [f"GRANT {name} (a) ON {SCHEMA}.{table} TO {USER}" for table in "tuvw"]
            yield (name, level), grants
    for names in TOGETHER:
        yield names, [f"GRANT {names.replace('+', ', ')} ON *.* TO {USER}"]
    yield "a role that is on", [f"GRANT privileges_role TO {USER}", f"SET DEFAULT ROLE ALL TO {USER}"]
    yield "a role that is off", [f"GRANT privileges_role TO {USER}"]


WRITES = re.compile("^(INSERT|REPLACE|UPDATE|DELETE)|(FOR UPDATE|SHARE|SHARE MODE|INTO OUTFILE.*)$")

NEW_TABLE = ["DROP TABLE IF EXISTS n"]
NEW_VIEW = ["DROP VIEW IF EXISTS n"]
NEW_SCHEMA = [f"DROP DATABASE IF EXISTS {SCHEMA}_new"]
OLD_TABLE = [
    "DROP TABLE IF EXISTS n", "DROP TABLE IF EXISTS u",
    "CREATE TABLE u (id INT PRIMARY KEY, a INT, INDEX i (a))", "INSERT INTO u VALUES (1, 1)",
]
OLD_VIEW = ["CREATE OR REPLACE VIEW v AS SELECT id, a FROM t"]
PLAIN = [
    "DROP USER IF EXISTS privileges_new", "DROP USER IF EXISTS privileges_plain",
    "CREATE USER privileges_plain",
]
SYSTEM = [
    "DROP USER IF EXISTS privileges_system", "CREATE USER privileges_system",
    "GRANT SYSTEM_USER ON *.* TO privileges_system",
]
FREE = ["DROP ROLE IF EXISTS privileges_free", "CREATE ROLE privileges_free"]
# What the account itself has to run after a success, by the statement's beginning.
LEFT = {
    "LOCK TABLES": "UNLOCK TABLES",
    "FLUSH TABLES": "UNLOCK TABLES",
    "LOCK INSTANCE": "UNLOCK INSTANCE",
    "HANDLER t": "HANDLER t CLOSE",
    "HANDLER hidden": "HANDLER hidden CLOSE",
    "SET ROLE": "SET ROLE DEFAULT",
    "CREATE TEMPORARY TABLE": "DROP TEMPORARY TABLE IF EXISTS privileges.n",
}
UNGRANTED = ["REVOKE IF EXISTS ALL PRIVILEGES, GRANT OPTION FROM privileges_plain IGNORE UNKNOWN USER"]

# Statements that leave nothing behind, or rolled back.
PLAINLY = """
SELECT 1
SELECT a FROM t
SELECT b FROM t
SELECT * FROM t
SELECT COUNT(*) FROM t
SELECT 1 FROM t
SELECT x.a FROM t AS x JOIN u USING (id)
SELECT a FROM u WHERE a IN (SELECT a FROM t)
SELECT a FROM t FOR UPDATE
SELECT a FROM t FOR SHARE
SELECT a FROM t LOCK IN SHARE MODE
SELECT a FROM t AS x FOR UPDATE OF x
SELECT nothing FROM t
SELECT a FROM hidden
SELECT a FROM missing
SELECT a FROM nowhere.missing
SELECT a FROM mysql.nothing
SELECT user FROM mysql.user LIMIT 0
SELECT a FROM v
SELECT a FROM w
SELECT a FROM v_whole
SELECT a FROM v_table
SELECT a FROM v_column
SELECT a FROM v_powerless
SELECT a FROM v_by_role
SELECT a FROM v_gone
WITH c AS (SELECT a FROM t) SELECT * FROM c
SELECT a FROM t UNION SELECT a FROM u
TABLE u
INSERT INTO t VALUES (2, 2, 2)
INSERT INTO t (id, a) VALUES (2, 2)
INSERT INTO t (a) VALUES (2)
INSERT INTO t (id) SELECT id + 10 FROM u
INSERT INTO t (id, a) VALUES (1, 1) ON DUPLICATE KEY UPDATE b = 5
INSERT INTO t (nothing) VALUES (1)
INSERT INTO missing VALUES (1)
INSERT INTO v (id, a) VALUES (2, 2)
INSERT INTO w (id, a) VALUES (2, 2)
REPLACE INTO t VALUES (1, 1, 1)
UPDATE t SET a = 1
UPDATE t SET b = 1
UPDATE t SET a = 1 WHERE a = 1
UPDATE t SET a = b
UPDATE t AS x JOIN u AS y USING (id) SET x.a = y.a
UPDATE t SET nothing = 1
UPDATE missing SET a = 1
UPDATE v SET a = 1
UPDATE w SET a = 1
DELETE FROM t
DELETE FROM t WHERE a = 1
DELETE FROM missing
DELETE FROM v
DELETE FROM w
EXPLAIN SELECT a FROM t
EXPLAIN SELECT a FROM v
EXPLAIN SELECT a FROM missing
EXPLAIN UPDATE t SET a = 1
EXPLAIN DELETE FROM t
EXPLAIN INSERT INTO t VALUES (2, 2, 2)
DESCRIBE t
DESCRIBE v
DESCRIBE hidden
DESCRIBE missing
DESCRIBE nowhere.missing
SHOW COLUMNS FROM t
SHOW COLUMNS FROM v
SHOW FULL COLUMNS FROM hidden
SHOW INDEX FROM t
SHOW INDEX FROM missing
SHOW CREATE TABLE t
SHOW CREATE TABLE hidden
SHOW CREATE TABLE missing
SHOW CREATE TABLE v
SHOW CREATE VIEW v
SHOW CREATE VIEW w
SHOW CREATE VIEW missing
SHOW CREATE DATABASE privileges
SHOW CREATE DATABASE nowhere
SHOW TABLES FROM privileges
SHOW TABLES FROM mysql LIKE 'x'
SHOW TABLES FROM nowhere
SHOW TABLE STATUS FROM privileges LIKE 'x'
SHOW TABLE STATUS FROM nowhere
SHOW TRIGGERS FROM privileges
SHOW EVENTS FROM privileges
SHOW GRANTS
SHOW GRANTS FOR privileges_plain
SHOW GRANTS FOR privileges_missing
SHOW CREATE USER privileges_plain
SHOW CREATE USER privileges_missing
SHOW ENGINE INNODB STATUS
SHOW PROCESSLIST
SHOW STATUS LIKE 'x'
SHOW VARIABLES LIKE 'x'
SHOW BINARY LOG STATUS
SHOW BINARY LOGS
SHOW REPLICA STATUS
SHOW REPLICAS
SHOW DATABASES LIKE 'x'
CHECK TABLE t
CHECK TABLE missing
ANALYZE TABLE t
ANALYZE TABLE missing
OPTIMIZE TABLE u
REPAIR TABLE u
CHECKSUM TABLE t
HANDLER t OPEN
HANDLER hidden OPEN
HANDLER missing OPEN
KILL 4000000000
KILL QUERY 4000000000
SET SESSION sort_buffer_size = 300000
SET SESSION binlog_format = 'ROW'
SET SESSION sql_log_bin = 1
SET GLOBAL max_connect_errors = 100
SET GLOBAL general_log_file = DEFAULT
SET PERSIST max_connect_errors = 100
RESET PERSIST IF EXISTS max_connect_errors
SET ROLE NONE
SET ROLE privileges_free
SELECT LOAD_FILE('/nothing')
SELECT 1 INTO OUTFILE '/nothing/at/all'
SELECT a FROM t INTO @a
LOAD DATA INFILE '/nothing/at/all' INTO TABLE t
XA RECOVER
LOCK INSTANCE FOR BACKUP
FLUSH TABLES
FLUSH TABLES t
FLUSH TABLES t WITH READ LOCK
FLUSH TABLES missing WITH READ LOCK
FLUSH TABLES t FOR EXPORT
FLUSH TABLES WITH READ LOCK
FLUSH STATUS
FLUSH PRIVILEGES
FLUSH USER_RESOURCES
FLUSH OPTIMIZER_COSTS
FLUSH LOGS
FLUSH GENERAL LOGS
LOCK TABLES t READ
LOCK TABLES t WRITE
LOCK TABLES v READ
LOCK TABLES missing READ
LOCK TABLES hidden WRITE
PREPARE s FROM 'SELECT a FROM t'
PREPARE s FROM 'UPDATE t SET a = 1'
PREPARE s FROM 'DROP TABLE hidden'
DO (SELECT MAX(a) FROM t)
SET @x = (SELECT MAX(a) FROM t)
USE privileges
USE mysql
USE nowhere
GRANT SELECT ON privileges.t TO privileges_missing
DROP TABLE missing
DROP TABLE nowhere.missing
DROP TABLE IF EXISTS missing
DROP VIEW missing
DROP VIEW IF EXISTS missing
DROP DATABASE nowhere
DROP DATABASE IF EXISTS nowhere
ALTER TABLE missing ADD COLUMN z INT
ALTER TABLE t DROP COLUMN nothing
TRUNCATE TABLE missing
RENAME TABLE missing TO n
CREATE INDEX i ON missing (a)
CREATE TABLE t (a INT)
CREATE TABLE IF NOT EXISTS t (a INT)
CREATE TABLE n LIKE missing
CREATE VIEW v AS SELECT 1
DROP USER privileges_missing
ALTER USER privileges_missing ACCOUNT LOCK
""".strip().split("\n")

# What root has to run after each success.
UNDONE = {
    "CREATE TABLE n (a INT)": NEW_TABLE,
    "CREATE TABLE n AS SELECT a FROM t": NEW_TABLE,
    "CREATE TABLE n LIKE t": NEW_TABLE,
    "CREATE TABLE n (a INT, FOREIGN KEY (a) REFERENCES t (id))": NEW_TABLE,
    "CREATE TABLE nowhere.n (a INT)": [],
    "CREATE TEMPORARY TABLE n (a INT)": [],
    "CREATE TEMPORARY TABLE n AS SELECT a FROM t": [],
    "CREATE VIEW n AS SELECT 1 AS a": NEW_VIEW,
    "CREATE VIEW n AS SELECT a FROM t": NEW_VIEW,
    "CREATE VIEW n AS SELECT * FROM t": NEW_VIEW,
    "CREATE VIEW n AS SELECT a FROM t WHERE b = 1": NEW_VIEW,
    "CREATE VIEW n AS SELECT COUNT(*) FROM t": NEW_VIEW,
    "CREATE VIEW n AS SELECT a + b AS c FROM t": NEW_VIEW,
    "CREATE VIEW n AS SELECT (SELECT MAX(a) FROM t) AS a": NEW_VIEW,
    "CREATE VIEW n AS SELECT a FROM hidden": NEW_VIEW,
    "CREATE VIEW n AS SELECT a FROM missing": NEW_VIEW,
    "CREATE VIEW n AS SELECT a FROM v": NEW_VIEW,
    "CREATE VIEW n AS SELECT authentication_string FROM mysql.user": NEW_VIEW,
    "CREATE OR REPLACE VIEW v AS SELECT a FROM t": OLD_VIEW,
    "CREATE OR REPLACE VIEW n AS SELECT a FROM t": NEW_VIEW,
    "ALTER VIEW v AS SELECT a FROM t": OLD_VIEW,
    "ALTER VIEW v_whole AS SELECT a FROM t": [
        f"CREATE OR REPLACE DEFINER = privileges_whole VIEW v_whole AS SELECT a FROM t",
    ],
    "CREATE DEFINER = root@localhost VIEW n AS SELECT 1 AS a": NEW_VIEW,
    "CREATE DEFINER = privileges_plain VIEW n AS SELECT 1 AS a": NEW_VIEW,
    "CREATE DEFINER = privileges_plain SQL SECURITY INVOKER VIEW n AS SELECT 1 AS a": NEW_VIEW,
    "CREATE DEFINER = privileges_system VIEW n AS SELECT 1 AS a": NEW_VIEW,
    "CREATE DEFINER = privileges_missing VIEW n AS SELECT 1 AS a": NEW_VIEW,
    "CREATE DEFINER = CURRENT_USER VIEW n AS SELECT 1 AS a": NEW_VIEW,
    "DROP VIEW v": OLD_VIEW,
    "DROP TABLE u": OLD_TABLE,
    "DROP TABLE IF EXISTS u": OLD_TABLE,
    "TRUNCATE TABLE u": OLD_TABLE,
    "ALTER TABLE u ADD COLUMN c INT": OLD_TABLE,
    "ALTER TABLE u RENAME TO n": OLD_TABLE,
    "ALTER TABLE u ADD INDEX j (a)": OLD_TABLE,
    "ALTER TABLE u ADD FOREIGN KEY (a) REFERENCES t (id)": OLD_TABLE,
    "CREATE INDEX j ON u (a)": OLD_TABLE,
    "DROP INDEX i ON u": OLD_TABLE,
    "RENAME TABLE u TO n": OLD_TABLE,
    "CREATE DATABASE privileges_new": NEW_SCHEMA,
    "CREATE DATABASE privileges": [],
    "CREATE DATABASE IF NOT EXISTS privileges": [],
    "ALTER DATABASE privileges CHARACTER SET utf8mb4": [],
    "CREATE USER privileges_new": PLAIN,
    "CREATE USER privileges_plain": PLAIN,
    "ALTER USER privileges_plain IDENTIFIED BY 'x'": PLAIN,
    "ALTER USER privileges_plain ACCOUNT LOCK": PLAIN,
    "ALTER USER privileges_plain PASSWORD EXPIRE": PLAIN,
    "ALTER USER privileges_plain DEFAULT ROLE NONE": PLAIN,
    "SET PASSWORD FOR privileges_plain = 'x'": PLAIN,
    "DROP USER privileges_plain": PLAIN,
    "RENAME USER privileges_plain TO privileges_new": PLAIN,
    "DROP ROLE privileges_plain": PLAIN,
    "ALTER USER privileges_system IDENTIFIED BY 'x'": SYSTEM,
    "SET PASSWORD FOR privileges_system = 'x'": SYSTEM,
    "DROP USER privileges_system": SYSTEM,
    "DROP ROLE privileges_system": SYSTEM,
    "RENAME USER privileges_system TO privileges_new": SYSTEM + PLAIN,
    "REVOKE ALL PRIVILEGES, GRANT OPTION FROM privileges_system": SYSTEM,
    "REVOKE SELECT ON *.* FROM privileges_system": SYSTEM,
    "GRANT SELECT ON *.* TO privileges_system": SYSTEM,
    "CREATE ROLE privileges_new": PLAIN,
    "DROP ROLE privileges_free": FREE,
    "DROP USER privileges_free": FREE,
    "GRANT privileges_free TO privileges_plain": ["REVOKE privileges_free FROM privileges_plain"],
    "REVOKE privileges_free FROM privileges_plain": [],
    "SET DEFAULT ROLE NONE TO privileges_plain": [],
    "GRANT SELECT ON *.* TO privileges_plain": UNGRANTED,
    "GRANT SELECT ON privileges.* TO privileges_plain": UNGRANTED,
    "GRANT SELECT ON privileges.t TO privileges_plain": UNGRANTED,
    "GRANT SELECT (a) ON privileges.t TO privileges_plain": UNGRANTED,
    "GRANT SYSTEM_USER ON *.* TO privileges_plain": UNGRANTED,
    "REVOKE SELECT ON privileges.t FROM privileges_plain": [],
    "REVOKE ALL PRIVILEGES, GRANT OPTION FROM privileges_plain": [],
}

# Statements whose rows say what an account may know of.
SHOWN = [
    "SHOW DATABASES LIKE 'privileges%'",
    "SHOW TABLES WHERE Tables_in_privileges IN ('t', 'hidden', 'v')",
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'privileges' "
    "AND table_name IN ('t', 'hidden', 'v') ORDER BY table_name",
    "SELECT column_name, privileges FROM information_schema.columns WHERE table_schema = 'privileges' "
    "AND table_name = 't' ORDER BY ordinal_position",
    "SELECT column_name, column_default IS NULL FROM information_schema.columns WHERE table_schema = 'privileges' "
    "AND table_name = 'hidden' ORDER BY ordinal_position",
    "SELECT index_name FROM information_schema.statistics WHERE table_schema = 'privileges' "
    "AND table_name IN ('t', 'hidden')",
    "SELECT table_name, constraint_name FROM information_schema.table_constraints "
    "WHERE table_schema = 'privileges' AND table_name IN ('t', 'hidden')",
    "SELECT table_name, column_name FROM information_schema.key_column_usage "
    "WHERE table_schema = 'privileges' AND table_name IN ('t', 'hidden')",
    "SELECT table_name, view_definition <> '' FROM information_schema.views "
    "WHERE table_schema = 'privileges' AND table_name = 'v'",
    "SELECT COUNT(*) > 1 FROM information_schema.user_privileges WHERE grantee NOT LIKE '%privileges\\_user%'",
    "SELECT COUNT(*) > 0 FROM information_schema.schema_privileges WHERE grantee NOT LIKE '%privileges\\_user%'",
    "SELECT COUNT(*) > 0 FROM information_schema.processlist WHERE user <> 'privileges_user'",
]


def run(server, connection, statement):
    """What comes of a statement: `ok`, or its error; the rows of the statements that are about rows."""
    answer = server.answer(connection, qualified(statement))
    if answer.startswith("error"):
        return re.sub(r"(['`])(privileges_user)\1@\1[^'`]*\1", "ACCOUNT", answer[len("error "):])
    if statement in SHOWN:
        return answer.replace("\n", " | ").replace("\t", " ")
    # Maintenance answers its errors as rows.
    fault = re.search(r"\tError\t(.*)", answer)
    if fault:
        return re.sub(r"'privileges_user'@'[^']*'", "ACCOUNT", fault.group(1))
    return "ok"


def run_all(server, root):
    """What comes of each statement for the account that is there now."""
    connection = server.connect(USER)
    for statement in PLAINLY + list(UNDONE) + SHOWN:
        writes = WRITES.search(statement) is not None
        if writes:
            server.answer(connection, "BEGIN")
        answer = run(server, connection, statement)
        if writes:
            server.answer(connection, "ROLLBACK")
        for beginning, undo in LEFT.items():
            if answer == "ok" and statement.startswith(beginning):
                server.answer(connection, undo)
        if statement.startswith("USE"):
            connection.close()
            connection = server.connect(USER)
        if answer == "ok":
            quiet(server, root, UNDONE.get(statement, []))
        yield statement, answer
    connection.close()


# Where a statement names a table; not the index of CREATE INDEX, nor an alias.
NAMES = re.compile(
    r"\b(FROM|JOIN|INTO|UPDATE|TABLE|TABLES|VIEW|EXISTS|DESCRIBE|ON|LIKE|TO|REFERENCES|HANDLER)"
    r" (t|u|v|w|n|hidden|missing|v_\w+)\b"
)


@functools.cache
def qualified(statement):
    """The statement with the schema before its tables."""
    if statement in SHOWN and not statement.startswith("SHOW TABLES"):
        return statement
    statement = statement.replace("SHOW TABLES WHERE", f"SHOW TABLES FROM {SCHEMA} WHERE")
    return NAMES.sub(lambda found: f"{found[1]} {SCHEMA}.{found[2]}", statement)


def named(labels):
    """Accounts in one line, the levels of a privilege together.

    Privileges together are left out where one of them alone fares the same.
    """
    levels, others = {}, []
    for label in labels:
        if isinstance(label, tuple):
            levels.setdefault(label[0], []).append(label[1])
        elif not any(GLOBAL in levels.get(name, []) for name in label.split("+")):
            others.append(label)
    parts = [f"{name} ({', '.join(on)})" if on != [GLOBAL] else name for name, on in levels.items()]
    return "; ".join(parts + others)


def cases(server):
    root = server.connect()
    set_up(server, root)
    quiet(server, root, [f"USE {SCHEMA}"])
    happened = {}
    for label, grants in accounts():
        quiet(server, root, [f"DROP USER IF EXISTS {USER}", f"CREATE USER {USER}"])
        quiet(server, root, ["CREATE TABLE IF NOT EXISTS n (a INT)"])
        quiet(server, root, grants)
        quiet(server, root, NEW_TABLE)
        for statement, answer in run_all(server, root):
            happened.setdefault(statement, {}).setdefault(answer, []).append(label)
    quiet(server, root, [f"DROP DATABASE {SCHEMA}"])
    drop_accounts(server, root)
    for statement, answers in happened.items():
        largest = max(answers, key=lambda answer: len(answers[answer]))
        lines = [
            f"{answer}: {'otherwise' if answer == largest else named(labels)}"
            for answer, labels in sorted(answers.items(), key=lambda one: (one[0] != "ok", one[0]))
        ]
        yield statement, "\n".join(lines)
