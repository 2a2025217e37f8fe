"""Differences between MySQL 8 and MariaDB that are no fault of Firn's: each rule says which side is whose, and why.

A rule is asked about a difference in its smallest form, so that it cannot hide another one in the same query.
"""

import re


def function(*names):
    pattern = re.compile(r"\b(" + "|".join(names) + r")\s*\(")
    return lambda text, firn, mariadb: bool(pattern.search(text))


# Name, reason, and whether it holds: of the text and both outcomes (rows, or the number of an error).
RULES = [
    (
        "TIMEDIFF at its limit",
        "what is beyond 838:59:59 is that in MySQL, and 838:59:59.999 with the arguments' fraction in MariaDB",
        lambda text, firn, mariadb: "838:59:59" in str(firn) and "838:59:59.9" in str(mariadb),
    ),
    (
        "casts to fewer digits of a fraction",
        "MySQL rounds (23:59:59.999 is 24:00:00), MariaDB cuts",
        lambda text, firn, mariadb: bool(re.search(r"CAST\(.* AS (TIME|DATETIME(\(1\))?)\)", text)),
    ),
    (
        "one of several equal texts",
        "a case-insensitive column has several texts for one value, and each system shows another of them",
        lambda text, firn, mariadb: ".k" in text and folded(firn) == folded(mariadb),
    ),
]


def folded(outcome):
    return sorted(str(row).casefold() for row in outcome) if isinstance(outcome, tuple) else outcome


def explained(text, firn, mariadb):
    """The name of the rule that explains a difference, or None."""
    for name, _, holds in RULES:
        if holds(text, firn, mariadb):
            return name
    return None
