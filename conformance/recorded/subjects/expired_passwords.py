"""What a session may do whose password has expired, and which clients get one."""

import pymysql
from pymysql.constants import CLIENT

STATEMENTS = [
    "SELECT 1",
    "SELECT @@version_comment",
    "SET @a = 1",
    "SET SESSION autocommit = 1",
    "SET NAMES utf8mb4",
    "SET GLOBAL max_connections = 100",
    "SHOW VARIABLES LIKE 'autocommit'",
    "SHOW GRANTS",
    "SHOW WARNINGS",
    "USE mysql",
    "BEGIN",
    "COMMIT",
    "DO 1",
    "CREATE DATABASE expired_nothing",
    "PREPARE s FROM 'SELECT 1'",
    "EXECUTE s",
    "DEALLOCATE PREPARE s",
    "KILL QUERY 1000000",
    "ALTER USER other_expired IDENTIFIED BY 'x'",
    "ALTER USER expired ACCOUNT LOCK",
    "ALTER USER expired PASSWORD EXPIRE NEVER",
    "SET PASSWORD FOR other_expired = 'x'",
    "SET ROLE NONE",
    "FLUSH PRIVILEGES",
    "LOCK TABLES nothing READ",
    "SIGNAL SQLSTATE '45000'",
    "SELECT",
]
# Ways to end it.
ENDS = [
    "ALTER USER USER() IDENTIFIED BY 'new'",
    "ALTER USER expired IDENTIFIED BY 'new'",
    "ALTER USER CURRENT_USER() IDENTIFIED BY 'new'",
    "SET PASSWORD = 'new'",
    "SET PASSWORD FOR expired = 'new'",
]

KNOWN = {
    "SET PASSWORD FOR other_expired = 'x'": "refused as well, by the privilege that is lacking for others' accounts",
    "LOCK TABLES nothing READ": "MySQL looks for the database first",
}


def cases(server):
    root = server.connect()
    for name in ("expired", "other_expired"):
        server.answer(root, f"DROP USER IF EXISTS {name}")
        assert server.answer(root, f"CREATE USER {name} IDENTIFIED WITH caching_sha2_password BY 'old' PASSWORD EXPIRE") == "ok 0"
    yield "connect without the capability", attempt(server, 0)
    yield "connect with the capability", attempt(server, CLIENT.HANDLE_EXPIRED_PASSWORDS)
    session = connection(server, CLIENT.HANDLE_EXPIRED_PASSWORDS)
    for statement in STATEMENTS:
        yield statement, server.answer(session, statement).split("; check ")[0]
    for end in ENDS:
        server.answer(root, "ALTER USER expired IDENTIFIED BY 'old' PASSWORD EXPIRE")
        session = connection(server, CLIENT.HANDLE_EXPIRED_PASSWORDS)
        yield end, "\n".join(server.answer(session, statement) for statement in ("SELECT 1", end, "SELECT 2"))
    for policy in ("PASSWORD EXPIRE DEFAULT", "PASSWORD EXPIRE NEVER", "PASSWORD EXPIRE INTERVAL 1 DAY"):
        server.answer(root, f"ALTER USER expired IDENTIFIED BY 'old' {policy}")
        yield policy, attempt(server, 0)
    for name in ("expired", "other_expired"):
        server.answer(root, f"DROP USER {name}")


class Silent(pymysql.connections.Connection):
    """A connection that sends nothing at its beginning, which would be refused."""

    def set_character_set(self, charset, collation=None):
        pass


def connection(server, flags):
    return Silent(host="127.0.0.1", port=server.port, user="expired", password="old", autocommit=None, conv={}, client_flag=flags)


def attempt(server, flags):
    try:
        connection(server, flags).close()
    except pymysql.MySQLError as error:
        return f"error {error.args[0]}"
    return "connected"
