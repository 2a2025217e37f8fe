"""`ALTER TABLE`: how many rows it says it has copied, and what it warns of."""

SETUP = [
    "DROP DATABASE IF EXISTS recorded_alterations",
    "CREATE DATABASE recorded_alterations",
    "USE recorded_alterations",
    "CREATE TABLE parent (id INT PRIMARY KEY)",
    "INSERT INTO parent VALUES (1), (2), (3)",
    "CREATE TABLE al (id INT, a INT, b VARCHAR(5), c VARCHAR(5) CHARACTER SET latin1)",
    "INSERT INTO al VALUES (1, 1, 'a', 'b'), (2, 2, 'b', 'c'), (3, 3, 'c', 'd')",
]

ALTERATIONS = """
ADD k INT
ADD d INT NOT NULL DEFAULT 3
DROP k
MODIFY a BIGINT
MODIFY a INT NOT NULL
MODIFY a INT
MODIFY b VARCHAR(10)
MODIFY b CHAR(10)
MODIFY b VARCHAR(10)
ADD INDEX i (a)
DROP INDEX i
ADD UNIQUE u (b)
ENGINE=InnoDB
FORCE
RENAME COLUMN a TO aa
CHANGE aa a INT
ALTER a SET DEFAULT 5
COMMENT 'x'
AUTO_INCREMENT=5
CONVERT TO CHARACTER SET latin1
DEFAULT CHARACTER SET latin1
CONVERT TO CHARACTER SET utf8mb4
ORDER BY id
ADD PRIMARY KEY (id)
DROP PRIMARY KEY, ADD PRIMARY KEY (id, a)
ORDER BY id
DROP PRIMARY KEY
ADD n INT AUTO_INCREMENT PRIMARY KEY
MODIFY n INT AUTO_INCREMENT FIRST
DROP n
MODIFY id BIGINT
ADD PRIMARY KEY (id)
MODIFY id BIGINT AUTO_INCREMENT
ADD e INT, ADD INDEX (e)
DROP e
ADD g INT AS (id + 1)
MODIFY g INT AS (id + 2)
ADD h INT AS (id + 1) STORED
MODIFY h INT AS (id + 2) STORED
DROP h
ADD FOREIGN KEY (a) REFERENCES parent (id)
DROP FOREIGN KEY al_ibfk_1
ADD CONSTRAINT ck CHECK (id > 0) NOT ENFORCED
ALTER CHECK ck ENFORCED
ALTER CHECK ck NOT ENFORCED
DROP CHECK ck
ADD CHECK (a > 0)
ADD z INT CHECK (z > 0)
ADD y INT DEFAULT (1 + 1)
ADD j JSON DEFAULT (JSON_ARRAY())
ADD t TIMESTAMP DEFAULT CURRENT_TIMESTAMP
ALTER y SET DEFAULT (2 + 2)
MODIFY y INT COMMENT 'a'
MODIFY y INT UNSIGNED
ADD m ENUM('a', 'b')
MODIFY m ENUM('a', 'b', 'c')
MODIFY m ENUM('b', 'a', 'c')
ADD INDEX i1 (a), ADD INDEX i2 (a)
ADD k INT FIRST, ALGORITHM=COPY
ADD l INT, LOCK=NONE
DROP l, ALGORITHM=INPLACE
ROW_FORMAT=COMPACT
DISABLE KEYS
RENAME TO al2
""".strip().split("\n")


def cases(server):
    connection = server.connect()
    for statement in SETUP:
        server.answer(connection, statement)
    for number, alteration in enumerate(ALTERATIONS):
        # A change may stand in the list several times.
        yield f"{number} ALTER TABLE al {alteration}", told(server, connection, f"ALTER TABLE al {alteration}")
    yield "ALTER TABLE al2", told(server, connection, "ALTER TABLE al2")


def told(server, connection, statement):
    """The answer, the text that goes with it, and the warnings."""
    answer = server.answer(connection, statement)
    message = connection._result.message if not answer.startswith("error") else b""
    text = message if isinstance(message, str) else (message or b"").decode("utf8", "replace")
    text = text[text.find("Records"):] if "Records" in text else ""
    return f"{answer} {text}\n{server.answer(connection, 'SHOW WARNINGS')}"
