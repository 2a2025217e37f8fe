"""Differences between MySQL and MariaDB that are no fault of Firn's: each rule says which side is whose, and why.

A rule is asked about a difference in its smallest form, so that it cannot hide another one in the same query.
"""

import re


def folded(outcome):
    return sorted(str(row).casefold() for row in outcome) if isinstance(outcome, tuple) else outcome


def loose(outcome):
    """Values with numbers as numbers, whatever type the column has, and those cut to four digits."""
    def value(one):
        try:
            return f"{float(one):.3g}"
        except (TypeError, ValueError):
            return str(one)
    return sorted(str([value(one) for one in row]) for row in outcome) if isinstance(outcome, tuple) else outcome


def without_negative_zero(outcome):
    return str(outcome).replace("'-0'", "'0'")


def has(pattern):
    return lambda text, firn, mariadb: bool(re.search(pattern, text))


# Name, reason, and whether it holds: of the text and both outcomes (rows, or the number of an
# error).
RULES = [
    (
        "TIMEDIFF at its limit",
        "what is beyond 838:59:59 is that in MySQL, and has the arguments' fraction behind it in MariaDB",
        lambda text, firn, mariadb: bool(re.search(r"TIMEDIFF\(.*(TIMESTAMP'|\.(m|d|u|b|w|c\d)\b)|838:59:59", text))
        or "TIME_FORMAT(" in text and "838:59:59" in str(mariadb),
    ),
    (
        "casts to fewer digits of a fraction",
        "MySQL rounds (23:59:59.999 is 24:00:00), MariaDB cuts",
        has(r"CAST\(.* AS (TIME|DATE|SIGNED|DATETIME(\(1\))?)\)|FROM_UNIXTIME"),
    ),
    (
        "one of several equal texts",
        "a case-insensitive column has several texts for one value, and each system shows another of them",
        lambda text, firn, mariadb: ".k" in text and folded(firn) == folded(mariadb),
    ),
    (
        "digits of doubles",
        "MariaDB gives PERCENT_RANK, CUME_DIST, deviations and means of whole doubles a fixed number of digits, MySQL all of them",
        lambda text, firn, mariadb: bool(re.search(r"PERCENT_RANK|CUME_DIST|STD|VAR|AVG\((DISTINCT )?(FLOOR|CEIL)", text))
        and (loose(firn) == loose(mariadb) or "ORDER BY 1" in text or ".w" in text)
        or bool(re.search(r"(FLOOR|CEILING)\(.* / ", text))
        or bool(re.search(r"(SUM|AVG)\(.*\.f\b", text)) and loose(firn) == loose(mariadb),
    ),
    ("REPLACE by NULL", "NULL in MySQL; MariaDB keeps a text in which nothing was found", has(r"REPLACE\(")),
    (
        "sums of quotients",
        "a group in a temporary table rounds each quotient to the digits that it shows, one in order does not",
        lambda text, firn, mariadb: bool(re.search(r"(SUM|AVG)\(.* / ", text)) and loose(firn) == loose(mariadb),
    ),
    ("ORD of four bytes", "MariaDB keeps it in an INT where it is stored between", has(r"ORD\(")),
    ("UNIX_TIMESTAMP after 2038", "MySQL goes on to the year 3001", has(r"UNIX_TIMESTAMP\(")),
    (
        "MAX and MIN of ENUM",
        "by its texts in MySQL, by its numbers in MariaDB, where < ANY and its like are made of them too",
        has(r"(MAX|MIN)\((\w+\.)?(e|c\d)\)|\.e [<>]=? (ANY|ALL) \(SELECT \w+\.e\b"),
    ),
    (
        "texts looked for in an ENUM with NULL",
        "UNKNOWN if it is no member; MariaDB looks at the index only and says no",
        has(r"IN \(SELECT \w+\.e\b"),
    ),
    (
        "texts of decimals as numbers",
        "MariaDB takes CAST(0.9999 AS CHAR) for 1",
        has(r"CAST\(\w+\.(n|w) AS CHAR"),
    ),
    ("no time with a sign", "a literal keeps it in MariaDB", has("TIME'-00:00:00'")),
    ("subqueries over groups with ROLLUP", "the group's column is NULL in them, MariaDB gives its last value", has("SELECT .*SELECT .*ROLLUP")),
    (
        "constants of a derived table in an outer join",
        "MariaDB forgets that they are NULL where nothing was joined",
        lambda text, firn, mariadb: " JOIN " in text
        and bool(re.search(r"\(SELECT ([^()]*, )?(NULL|-?[0-9']|TIME|DATE|TRUE)", text)),
    ),
    (
        "<> ALL of what holds NULL",
        "never true; MariaDB finds rows",
        has(r"(<> ALL|NOT IN) \(SELECT"),
    ),
    ("TIME_TO_SEC", "an integer in MySQL, with the fraction in MariaDB", has("TIME_TO_SEC")),
    (
        "negative zero",
        "a remainder of DECIMALs can be -0.0 in MariaDB, which is not equal to 0 there; a double that is shows no sign",
        lambda text, firn, mariadb: " % " in text or "'-0'" in str(firn) or without_negative_zero(firn) == without_negative_zero(mariadb),
    ),
    (
        "ROUND to more digits than there are",
        "since 8.0.21 MySQL keeps the scale of the argument",
        has(r"(ROUND|TRUNCATE)\("),
    ),
    (
        "LEAST and GREATEST of texts as numbers",
        "MariaDB compares the arguments as numbers where a number is asked for",
        has(r"(LEAST|GREATEST)\("),
    ),
    (
        "DISTINCT of constants with a limit",
        "MariaDB stops at the first row and forgets the offset",
        has(r"SELECT DISTINCT .* LIMIT"),
    ),
    (
        "what MariaDB lacks",
        "1235: subqueries of rows inside of others",
        lambda text, firn, mariadb: mariadb == 1235,
    ),
    (
        "rows compared across an outer join",
        "(a, b) < (c, NULL) is true if a < c; MariaDB makes an inner join of such an outer one",
        has(r" JOIN .*\([^()]+, [^()]+\) (=|<>|<|<=|>|>=) \([^()]+, [^()]+\)"),
    ),
    (
        "NULL among the arguments of FIELD, INTERVAL, ELT and MAKE_SET",
        "that does not make the result NULL; MariaDB makes an inner join of an outer one, and sets NULL's bit",
        lambda text, firn, mariadb: bool(re.search(r"(FIELD|INTERVAL|ELT)\(", text)) and " JOIN " in text or "MAKE_SET(" in text,
    ),
    (
        "quotients of YEARWEEK, HOUR and ASCII",
        "MariaDB gives them too few digits before the point, where they are stored between",
        has(r"AVG\((DISTINCT )?(YEARWEEK|HOUR|ASCII)\(|(YEARWEEK|HOUR)\(.* / "),
    ),
    ("ANY and ALL of NULL that are UNKNOWN", "MariaDB says that they are not", has(r"(ANY|ALL) \(SELECT NULL .* IS UNKNOWN")),
    (
        "DISTINCT in the total of groups by a unique key",
        "MariaDB forgets it, since each group has one row",
        has(r"\(DISTINCT .*GROUP BY \S*id WITH ROLLUP"),
    ),
    (
        "bytes that are no text in a column of texts",
        "MariaDB puts a question mark for each",
        lambda text, firn, mariadb: "UNHEX(" in text and "?" in str(mariadb),
    ),
    (
        "bits of decimals beyond 64",
        "MySQL takes the greatest number with a sign, MariaDB the greatest without, and ~ of such a choice as it is",
        has(r"(BIT_COUNT\(|[~&|^]|<<|>>)"),
    ),
    (
        "a row with NULL looked for among rows",
        "UNKNOWN where a part is equal and the other one NULL; MariaDB says no",
        has(r"\([^()]+, [^()]+\) (NOT )?IN \(SELECT"),
    ),
    (
        "columns that are not grouped in the totals of ROLLUP",
        "NULL for what is grouped, anything for the rest; MariaDB gives the last row's",
        lambda text, firn, mariadb: "WITH ROLLUP" in text and not re.search(r"(SUM|AVG|COUNT|MIN|MAX|CONCAT)\(", text),
    ),
    (
        "integers by an index beside texts and fractions",
        "'1e2' is 100, and nothing is 1.25; MariaDB looks for the integer at the head of the text, and for 1",
        has(r"\.(i|s|id|u|b) = \w+\.[ckv]\b|\d\.\d+ = \w+\.(i|s|id|u|b)\b|\.(i|s|id|u|b) = -?\d+\.\d+|\d\.\d+ IN \(SELECT"),
    ),
    (
        "= and <=> of the same columns",
        "MariaDB forgets the first",
        has(r"\((\w+\.\w+) = (\w+\.\w+)\) (AND|WHERE) \((\2 <=> \1|\1 <=> \2)\)"),
    ),
    (
        "IN of a subquery OR NULL",
        "MariaDB finds fewer rows than without OR NULL",
        has(r" IN \(SELECT .*\) OR NULL"),
    ),
    (
        "types of a chain of set operations",
        "UNION's sides have one type, and each EXCEPT and INTERSECT its own; MariaDB gives all sides one",
        has(r"(EXCEPT|INTERSECT) .*UNION|UNION .*(EXCEPT|INTERSECT)"),
    ),
    (
        "an aggregate of nothing",
        "NULL, which nothing is found in, and no comparison with it is true; MariaDB says otherwise of both where it knows so early",
        has(r"IN \(SELECT (MAX|MIN|SUM|AVG)\(.* WHERE NULL\)|\bt4\b.* HAVING \((MAX|MIN|SUM|AVG)\("),
    ),
    ("NULLIF of aggregates", "MariaDB compares with the last row, not with the group", has(r"NULLIF\(.*(COUNT|MAX|MIN|SUM|AVG)\(")),
    ("rows that are UNKNOWN", "MariaDB ends a comparison of rows at the first NULL", has(r", [^()]+\)\) IS UNKNOWN")),
    (
        "IN between two subqueries",
        "MariaDB finds nothing where a subquery's one value is looked for in another one's groups",
        has(r"\(\(SELECT [^()]*(\(\S*\)[^()]*)*\) (NOT )?IN \(SELECT "),
    ),
    (
        "types of NULL",
        "where a part of an expression is always NULL, MariaDB takes it for a text",
        lambda text, firn, mariadb: "NULL" in text and loose(firn) == loose(mariadb) or "_VALUE(NULL)" in text,
    ),
    (
        "what a plan need not work out",
        "1690, a value out of range, or 1242, a second row: one system works out what the other does not need",
        lambda text, firn, mariadb: any(code in (firn, mariadb) for code in (1690, 1242)),
    ),
]

