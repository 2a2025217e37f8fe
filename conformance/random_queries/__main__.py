"""Random queries to Firn and MariaDB over the same data: `python3 conformance/random_queries --firn PORT --mariadb PORT`.

Rows are compared as a bag (in order where the query has one), numbers as numbers: the two systems show different scales
of a DECIMAL. Each difference that no rule of `known.py` explains is cut to its smallest form and printed; the status
is 1 if there was one.
"""

import argparse
import collections
import datetime
import decimal
import os
import random
import sys
import time

import pymysql

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import known  # noqa: E402
import schema  # noqa: E402
import tree  # noqa: E402
from generate import Generator  # noqa: E402

DATABASE = "random_queries"
# MariaDB's error for a statement that takes too long: it has no answer to compare with.
OUT_OF_TIME = 1969
# Strict. ONLY_FULL_GROUP_BY is for Firn alone, where it keeps smaller queries from having several answers.
SESSION = "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', group_concat_max_len = 1000000, NAMES utf8mb4 COLLATE utf8mb4_bin"


class Server:
    def __init__(self, port, name):
        self.port, self.name = port, name
        self.connect()

    def connect(self):
        # Values come as texts of the server, so that nothing is lost on the way.
        self.connection = pymysql.connect(
            host="127.0.0.1", port=self.port, user="root", charset="utf8mb4", read_timeout=30, autocommit=True,
            conv={kind: from_server for kind, from_server in CONVERSIONS.items()},
        )
        self.connection.cursor().execute(SESSION)
        if self.name == "Firn":
            self.connection.cursor().execute("SET SESSION sql_mode = CONCAT(@@sql_mode, ',ONLY_FULL_GROUP_BY')")
        else:
            # It takes a subquery's answer for another row whose values are equal in *their* collation, not in the subquery's.
            self.connection.cursor().execute("SET SESSION optimizer_switch = 'subquery_cache=off', max_statement_time = 20")

    def use(self):
        self.connection.select_db(DATABASE)

    def outcome(self, text):
        """Rows, or the number of an error."""
        try:
            cursor = self.connection.cursor()
            cursor.execute(text)
            return cursor.fetchall()
        except pymysql.MySQLError as error:
            code = error.args[0]
            if code in (0, 2006, 2013):
                self.connect()
                self.use()
            return code
        except Exception as error:  # What the client itself cannot read.
            self.connect()
            self.use()
            return f"{type(error).__name__}: {error}"


FIELD = pymysql.constants.FIELD_TYPE
CONVERSIONS = {
    kind: decimal.Decimal
    for kind in (FIELD.DECIMAL, FIELD.NEWDECIMAL, FIELD.TINY, FIELD.SHORT, FIELD.LONG, FIELD.LONGLONG, FIELD.INT24)
}
CONVERSIONS |= {FIELD.FLOAT: float, FIELD.DOUBLE: float}
CONVERSIONS |= {type(None): pymysql.converters.escape_None, int: pymysql.converters.escape_int, str: pymysql.converters.escape_string,
                float: pymysql.converters.escape_float}
CONVERSIONS = {**pymysql.converters.encoders, **CONVERSIONS}


def plain(value):
    """A value as it is compared: numbers without their scale, texts without spaces at their end."""
    if isinstance(value, bytes):
        value = value.decode("utf8", "backslashreplace")
    if isinstance(value, str):
        value = value.rstrip(" ")
        whole, dot, fraction = value.rpartition(".")
        # A time with more zeros behind the point is the same time.
        if dot and fraction.isdigit() and whole[-3:-2] == ":":
            value = value.rstrip("0").rstrip(".")
        return value
    if isinstance(value, decimal.Decimal):
        return float(value)
    return value


def equal_values(one, other, tolerance):
    if isinstance(one, float) and isinstance(other, float):
        return one == other or abs(one - other) <= tolerance * max(abs(one), abs(other), 1e-3)
    return one == other


def same(firn, mariadb, is_ordered, tolerance=1e-9):
    if mariadb == OUT_OF_TIME:
        return True
    fails = [isinstance(outcome, (int, str)) for outcome in (firn, mariadb)]
    if any(fails):
        # Both refuse: what with, depends on which part is looked at first.
        return all(fails)
    if len(firn) != len(mariadb):
        return False
    one = [tuple(map(plain, row)) for row in firn]
    other = [tuple(map(plain, row)) for row in mariadb]
    if one == other:
        return True
    if not is_ordered:
        # What is the same to the last digit goes away first: then near numbers have only each other left.
        left, right = collections.Counter(one), collections.Counter(other)

        def key(row):
            return [(value is None, type(value).__name__, float(f"{value:.6g}") if isinstance(value, float) else value) for value in row]
        one = sorted((left - right).elements(), key=key)
        other = sorted((right - left).elements(), key=key)
    return all(
        equal_values(a, b, tolerance) for left, right in zip(one, other) for a, b in zip(left, right)
    )


def shown(outcome, other):
    """Its rows that the other has not, a few of them."""
    if isinstance(outcome, (int, str)):
        return f"error {outcome}"
    if isinstance(other, (int, str)):
        other = ()
    theirs = collections.Counter(tuple(map(plain, row)) for row in other)
    own = collections.Counter(tuple(map(plain, row)) for row in outcome)
    rows = [", ".join("NULL" if value is None else repr(value) for value in row) for row in (own - theirs)]
    return f"{len(outcome)} rows, of its own: " + (" | ".join(rows[:6]) or "only their order")


def refusals(*outcomes):
    """The errors among outcomes."""
    return [outcome if isinstance(outcome, (int, str)) else None for outcome in outcomes]


class Comparison:
    def __init__(self, firn, mariadb):
        self.firn, self.mariadb = firn, mariadb

    def outcomes(self, query):
        text = query.sql()
        return text, self.firn.outcome(text), self.mariadb.outcome(text)

    def differ(self, query):
        _, firn, mariadb = self.outcomes(query)
        return not same(firn, mariadb, bool(query.order))

    def differ_in(self, query, fails):
        """As `differ`, and in the same way: an error on the one side stays one."""
        _, firn, mariadb = self.outcomes(query)
        return refusals(firn, mariadb) == fails and not same(firn, mariadb, bool(query.order))

    def smallest(self, query):
        _, firn, mariadb = self.outcomes(query)
        fails = refusals(firn, mariadb)
        return tree.smallest(query, lambda smaller: self.differ_in(smaller, fails))


def arguments():
    parser = argparse.ArgumentParser(prog="random_queries", description=__doc__.split("\n")[0])
    parser.add_argument("--firn", type=int, required=True, help="its port on the loopback")
    parser.add_argument("--mariadb", type=int, required=True, help="its port on the loopback")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--only", type=int, help="the one query of this number")
    parser.add_argument("--stop-after", type=int, default=1_000_000, help="differences")
    return parser.parse_args()


def main():
    options = arguments()
    servers = [Server(options.firn, "Firn"), Server(options.mariadb, "MariaDB")]
    for server in servers:
        schema.fill(server.connection, DATABASE, random.Random(options.seed))
        server.use()
    comparison = Comparison(*servers)
    began = time.monotonic()
    explained, failed, errors = collections.Counter(), 0, 0
    numbers = range(options.count) if options.only is None else [options.only]
    for number in numbers:
        # Each query has a seed of its own, so that one can be asked again alone.
        query = Generator(random.Random(f"{options.seed}/{number}")).query()
        text, firn, mariadb = comparison.outcomes(query)
        errors += isinstance(mariadb, int)
        if same(firn, mariadb, bool(query.order)):
            continue
        small = comparison.smallest(query)
        text, firn, mariadb = comparison.outcomes(small)
        rule = known.explained(text, firn, mariadb)
        if rule:
            explained[rule] += 1
            continue
        failed += 1
        print(f"query {number} of seed {options.seed}:\n  {text}\n  Firn    {shown(firn, mariadb)}\n  MariaDB {shown(mariadb, firn)}", flush=True)
        if failed >= options.stop_after:
            break
    for rule, count in explained.most_common():
        print(f"explained by '{rule}': {count}")
    seconds = time.monotonic() - began
    print(f"{len(numbers)} queries of seed {options.seed} in {seconds:.0f} s: {failed} differences unexplained, "
          f"{sum(explained.values())} explained, {errors} refused by MariaDB")
    sys.exit(1 if failed else 0)


main()
