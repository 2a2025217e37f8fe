"""Literals as MySQL reads and shows them."""

STATEMENTS = [
    "SELECT 1, -1, 1.50, 1e3, 'a', NULL, TRUE, x'41', b'1000001', DATE'2024-02-29'",
    "SELECT 'it''s', \"it's\", 'a' 'b', _latin1 x'E9', N'n'",
    "SELECT DATE'2023-02-29'",
]


def cases(server):
    connection = server.connect()
    for statement in STATEMENTS:
        yield statement, server.answer(connection, statement)
