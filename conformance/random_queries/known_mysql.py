"""Differences between Firn and MySQL that are no fault of Firn's: each rule says why.

A rule is asked about a difference in its smallest form, so that it cannot hide another one in the same query.
"""

import re


def folded(outcome):
    return sorted(str(row).casefold() for row in outcome) if isinstance(outcome, tuple) else outcome


def has(pattern):
    return lambda text, firn, mysql: bool(re.search(pattern, text))


# Name, reason, and whether it holds: of the text and both outcomes (rows, or the number of an error).
RULES = [
    (
        "one of several equal texts",
        "a case-insensitive column has several texts for one value: which is shown, and which comes first, depends on the plan",
        lambda text, firn, mysql: ".k" in text and folded(firn) == folded(mysql),
    ),
    (
        "constants of a derived table in an outer join",
        "MySQL forgets that they are NULL where nothing was joined",
        lambda text, firn, mysql: " JOIN " in text and bool(re.search(r"\(SELECT ([^()]*, )?(NULL|-?[0-9']|TIME|DATE|TRUE)", text)),
    ),
    (
        "rows compared across an outer join",
        "(a, b) < (c, NULL) is true if a < c; MySQL makes an inner join of such an outer one",
        has(r" JOIN .*\([^()]+, [^()]+\) (=|<>|<|<=|>|>=) \([^()]+, [^()]+\)"),
    ),
    (
        "documents in BETWEEN, GREATEST and LEAST",
        "MySQL compares them as texts or doubles there, and warns (1235) that documents are not supported yet",
        has(r"(BETWEEN|GREATEST\(|LEAST\().*(\bjs?\b|JSON)|(\bjs?\b|JSON\w*\().* BETWEEN"),
    ),
    (
        "COUNT(DISTINCT) of a subquery without rows",
        "that is NULL, which does not count; MySQL counts it",
        has(r"COUNT\(DISTINCT \(SELECT"),
    ),
    (
        "MAX and MIN of ENUM",
        "by the texts of its members; where MySQL takes them from an index or a temporary table, by their numbers",
        has(r"(MAX|MIN)\((\w+\.)?(e|en|st|c\d)\)"),
    ),
    (
        "REPEAT of a subquery's value",
        "MySQL repeats what the row before has left in the subquery's buffer",
        has(r"REPEAT\(\(SELECT "),
    ),
    (
        "children of a row that IGNORE leaves as it is",
        "MySQL has already changed them when the parent's new key turns out to be taken",
        has(r"^UPDATE IGNORE .*\b(w1\b.*SET (y\.)?a|y\.a|x\.a|a) = |^INSERT IGNORE INTO w1 .* ON DUPLICATE KEY UPDATE .*\ba = "),
    ),
    (
        "rows that a cascade deletes first",
        "they do not count as deleted; which of two tables' rows MySQL deletes first is its plan's business",
        has(r"^DELETE x, y FROM w[13] AS x (LEFT )?JOIN w[13] AS y ON "),
    ),
    (
        "NULL into a table on the inner side of an outer join",
        "its columns may be NULL while it is joined: MySQL says 'Data truncated' (1265) of it, not that it cannot be NULL (1048)",
        has(r"^UPDATE .* LEFT JOIN .* SET .*\by\.(id|k|n|u|c|v) = NULL"),
    ),
    (
        "dates of an update of several tables",
        "MySQL stores them into a temporary table and then from there, where a zero date is out of range (1264) once more",
        has(r"^UPDATE IGNORE .* JOIN .* SET .*\b[xy]\.[dt] = "),
    ),
    (
        "digits after the point of a chosen number",
        "SELECT shows those of all the values that one is chosen of; MySQL stores those of the chosen one into a text, and none of a product that is 0",
        has(r"^(UPDATE|INSERT) .*\b(b|v|k|o) = ((IFNULL|GREATEST|LEAST|NULLIF)\(|\([xy]?\.?c \*)"),
    ),
    (
        "what a plan need not work out",
        "1690, a value out of range, or 1242, a second row: one system works out what the other does not need",
        lambda text, firn, mysql: text.startswith(("SELECT", "WITH", "(")) and any(code in (firn, mysql) for code in (1690, 1242)),
    ),
]
