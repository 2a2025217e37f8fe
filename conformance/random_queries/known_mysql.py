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
]
