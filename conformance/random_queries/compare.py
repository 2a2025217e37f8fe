"""When two answers are the same, and what differs if not."""

import collections
import re

from server import LOST, OUT_OF_TIME

FLOATING = (4, 5)
# The partner has run out of time, or has crashed: there is nothing to compare with.
NO_ANSWER = OUT_OF_TIME + LOST
# What may differ, and what each is compared by. Rows come first: without them the rest says little.
ASPECTS = ("rows", "affected", "contents", "metadata", "warnings")


def number(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def loosely(value):
    """A value as MariaDB's are compared: numbers without their scale, texts without spaces at their end."""
    if isinstance(value, bytes):
        value = value.decode("utf8", "backslashreplace")
    if value is None:
        return None
    if number(value) is not None and not value.isalpha():
        return number(value)
    value = value.rstrip(" ")
    whole, dot, fraction = value.rpartition(".")
    # A time with more zeros behind the point is the same time.
    if dot and fraction.isdigit() and whole[-3:-2] == ":":
        value = value.rstrip("0").rstrip(".")
    return value


def near(one, other, tolerance):
    return one == other or abs(one - other) <= tolerance * max(abs(one), abs(other), 1e-3)


# Types and flags of the protocol.
INTEGERS, NUMBERS, TEXTS, LONG_TEXTS = (1, 2, 3, 8, 9, 13), (1, 2, 3, 4, 5, 8, 9, 13, 246), (247, 252, 253, 254), (249, 250, 251, 252)
NULL, LONGLONG, BLOB, VAR_STRING = 6, 8, 252, 253
LONGEST_KEPT_CHARACTERS, BINARY = 512, 63
KEY_FLAGS, BLOB_FLAG, BINARY_FLAG, DEFAULT_FLAG = 2 | 4 | 8 | 512 | 16384, 16, 128, 4096
# What MySQL may keep in a temporary table on the way, or in none: its plan decides.
MAY_BE_KEPT = re.compile(r"ORDER BY|GROUP BY|DISTINCT|OVER \(|UNION|INTERSECT|EXCEPT|WITH|(FROM|JOIN) \(SELECT")
DERIVED = re.compile(r"WITH|(FROM|JOIN) \(SELECT")


def kept(column, is_derived):
    """A column definition as a temporary table would have it: without keys, and with the name of its own column."""
    name, kind, charset, length, scale, flags, table, original_table, original_name = column
    flags &= ~KEY_FLAGS
    if kind in NUMBERS:
        flags &= ~BINARY_FLAG
    if is_derived:
        original_table = original_name = ""
    if not original_table:
        original_name = ""
        flags &= ~(DEFAULT_FLAG | BLOB_FLAG)
        # Long texts that are worked out are told of in bytes or in characters, and are no VARCHAR
        # there.
        longest = LONGEST_KEPT_CHARACTERS * (1 if charset == BINARY else 4)
        kind = BLOB if kind in TEXTS and length > longest else kind
        length = 0 if kind in LONG_TEXTS else length
        kind = LONGLONG if kind in INTEGERS else BLOB if kind in LONG_TEXTS else VAR_STRING if kind in (NULL, *TEXTS) else kind
        scale = 0 if kind in TEXTS else scale
    return name, kind, charset, length, scale, flags, table, original_table, original_name


def same_columns(one, other, text):
    if one == other:
        return True
    is_derived = bool(DERIVED.search(text))
    may_be_kept = MAY_BE_KEPT.search(text) and len(one) == len(other)
    return bool(may_be_kept) and all(
        kept(left, is_derived) == kept(right, is_derived) for left, right in zip(one, other)
    )


class Strictly:
    """All that MySQL says has to be said: values as texts to the last digit, doubles to a tolerance."""

    def __init__(self, aspects):
        self.aspects = aspects

    def differing(self, firn, other, is_ordered, text):
        """The first aspect in which two answers differ, or None."""
        if other.failure in NO_ANSWER:
            return None
        if firn.failure is not None or other.failure is not None:
            return "rows" if firn.failure != other.failure else None
        floats = [column[1] in FLOATING for column in other.columns]
        for aspect in self.aspects:
            if aspect == "rows":
                same = same_rows(firn.rows, other.rows, is_ordered, floats)
            elif aspect == "affected":
                same = (firn.affected, firn.information) == (other.affected, other.information) or other.columns
            elif aspect == "contents":
                same = getattr(firn, "contents", None) == getattr(other, "contents", None)
            elif aspect == "metadata":
                same = same_columns(firn.columns, other.columns, text)
            else:
                same = firn.warnings == other.warnings
            if not same:
                return aspect
        return None


def same_rows(one, other, is_ordered, floats):
    if len(one) != len(other):
        return False
    if one == other:
        return True
    if not is_ordered:
        # What is the same to the last digit goes away first: then near numbers have only each other
        # left.
        left, right = collections.Counter(one), collections.Counter(other)

        def key(row):
            return [(value is None, f"{number(value):.6g}" if is_float and number(value) is not None else str(value))
                    for value, is_float in zip(row, floats)]
        one = sorted((left - right).elements(), key=key)
        other = sorted((right - left).elements(), key=key)
    for left, right in zip(one, other):
        for a, b, is_float in zip(left, right, floats):
            if a == b:
                continue
            if not is_float or number(a) is None or number(b) is None or not near(number(a), number(b), 1e-9):
                return False
    return True


class Loosely:
    """Rows alone, numbers as numbers: the two systems show different scales of a DECIMAL."""

    def differing(self, firn, other, is_ordered, _text):
        if other.failure in NO_ANSWER:
            return None
        fails = [answer.failure is not None for answer in (firn, other)]
        if any(fails):
            # Both refuse: what with, depends on which part is looked at first.
            return None if all(fails) else "rows"
        one = [tuple(map(loosely, row)) for row in firn.rows]
        two = [tuple(map(loosely, row)) for row in other.rows]
        return None if self.same(one, two, is_ordered) else "rows"

    @staticmethod
    def same(one, other, is_ordered):
        if len(one) != len(other):
            return False
        if not is_ordered:
            left, right = collections.Counter(one), collections.Counter(other)

            def key(row):
                return [(value is None, type(value).__name__, float(f"{value:.6g}") if isinstance(value, float) else value) for value in row]
            one = sorted((left - right).elements(), key=key)
            other = sorted((right - left).elements(), key=key)
        return all(
            a == b or isinstance(a, float) and isinstance(b, float) and near(a, b, 1e-9)
            for left, right in zip(one, other) for a, b in zip(left, right)
        )


def only_in(one, other):
    theirs, own = collections.Counter(other), collections.Counter(one)
    rows = [", ".join("NULL" if value is None else repr(value) for value in row) for row in (own - theirs).elements()]
    return " | ".join(rows[:4]) or "only their order"


def shown(aspect, answer, other):
    """What an answer says in an aspect, as far as the other one does not."""
    if answer.failure is not None:
        return f"error {answer.failure}"
    if aspect == "rows":
        return f"{len(answer.rows)} rows, of its own: {only_in(answer.rows, other.rows)}"
    if aspect == "contents":
        return "; ".join(
            f"{table}: {only_in(rows, other.contents.get(table, ()))}"
            for table, rows in answer.contents.items() if rows != other.contents.get(table)
        )
    if aspect == "metadata":
        return " | ".join(str(column) for column, theirs in zip(answer.columns, other.columns or [()] * 99) if column != theirs)
    if aspect == "warnings":
        return ", ".join(f"{level} {code}" for level, code in answer.warnings) or "none"
    return f"{answer.affected} rows, {answer.information}"
