"""Random queries and writes to Firn and to MySQL or MariaDB over the same data:
`python3 conformance/random_queries --firn PORT --mysql PORT`.

Rows are compared as a bag (in order where the query has one). MySQL's are compared to the last digit, and so are errors,
column definitions, warnings, and what writes leave in their tables. A difference that no rule of `known_*.py` explains is
cut to its smallest form and printed, once for each shape; the status is 1 if there was one.
"""

import argparse
import collections
import os
import random
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import compare  # noqa: E402
import known  # noqa: E402
import schema  # noqa: E402
import tree  # noqa: E402
from expressions import ExpressionGenerator  # noqa: E402
from generate import Generator  # noqa: E402
from server import Server  # noqa: E402
from writes import Write, WriteGenerator  # noqa: E402

GENERATORS = {"queries": Generator, "expressions": ExpressionGenerator, "writes": WriteGenerator}


class Comparison:
    def __init__(self, firn, other, rule):
        self.firn, self.other, self.rule = firn, other, rule

    def answers(self, query):
        return [query.ask(server) if isinstance(query, Write) else server.answer(query.sql()) for server in (self.firn, self.other)]

    def differing(self, query, answers):
        return self.rule.differing(*answers, bool(query.order), query.sql())

    def smallest(self, query, aspect, answers):
        """Cut as long as it differs in the same way: an error on the one side stays one."""
        fails = [answer.failure for answer in answers]

        def holds(smaller):
            found = self.answers(smaller)
            return [answer.failure for answer in found] == fails and self.differing(smaller, found) == aspect
        return tree.smallest(query, holds)


def shape(text):
    """A query's form without names and values: differences of one shape are most often one defect."""
    text = re.sub(r"'(''|[^'])*'", "''", text)
    text = re.sub(r"\b[qotwx]\d+(\.\w+)?\b", "_", text)
    return re.sub(r"-?\b\d[\d.e]*\b", "0", text)


def arguments():
    parser = argparse.ArgumentParser(prog="random_queries", description=__doc__.split("\n")[0])
    parser.add_argument("--firn", type=int, required=True, help="its port on the loopback")
    partner = parser.add_mutually_exclusive_group(required=True)
    partner.add_argument("--mysql", type=int, help="its port on the loopback")
    partner.add_argument("--mariadb", type=int, help="its port on the loopback")
    parser.add_argument("--restart", metavar="COMMAND", help="starts the partner again when a query has crashed it; that query is left out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--from", type=int, default=0, dest="first", help="the number of the first query")
    parser.add_argument("--only", type=int, help="the one query of this number")
    parser.add_argument("--kinds", default="queries,expressions,writes", help="of queries, of which each number has one")
    parser.add_argument("--aspects", default=",".join(compare.ASPECTS), help="what is compared with MySQL")
    parser.add_argument("--database", default="random_queries")
    parser.add_argument("--stop-after", type=int, default=1_000_000, help="differences")
    return parser.parse_args()


def main():
    options = arguments()
    name = "MySQL" if options.mysql else "MariaDB"
    firn = Server(options.firn, "Firn", options.database)
    other = Server(options.mysql or options.mariadb, name, options.database, options.restart)
    kinds = options.kinds.split(",") if options.mysql else ["queries"]
    for server in (firn, other):
        schema.fill(server.connection, options.database, random.Random(options.seed), name == "MySQL")
        server.use()
    comparison = Comparison(firn, other, compare.Strictly(options.aspects.split(",")) if options.mysql else compare.Loosely())
    began = time.monotonic()
    explained, shapes, failed, errors = collections.Counter(), collections.Counter(), 0, 0
    numbers = range(options.first, options.count) if options.only is None else [options.only]
    for number in numbers:
        # Each query has a seed of its own, so that one can be asked again alone.
        kind = kinds[number % len(kinds)]
        query = GENERATORS[kind](random.Random(f"{options.seed}/{number}")).query()
        answers = comparison.answers(query)
        errors += isinstance(answers[1].failure, int)
        aspect = comparison.differing(query, answers)
        if aspect is None:
            continue
        small = comparison.smallest(query, aspect, answers)
        answers = comparison.answers(small)
        text = small.sql()
        rule = known.explained(name, aspect, text, *answers)
        if rule:
            explained[rule] += 1
            continue
        failed += 1
        form = f"{aspect} {[answer.failure for answer in answers]} {shape(text)}"
        shapes[form] += 1
        if shapes[form] == 1:
            print(f"{aspect} of query {number} of seed {options.seed}:\n  {text}", flush=True)
            print(f"  Firn    {compare.shown(aspect, *answers)}\n  {name:<7} {compare.shown(aspect, *reversed(answers))}", flush=True)
        if failed >= options.stop_after:
            break
    for rule, count in explained.most_common():
        print(f"explained by '{rule}': {count}")
    for text in other.crashed_by:
        print(f"{name} crashed, and was started again, at\n  {text}")
    seconds = time.monotonic() - began
    print(f"{len(numbers)} queries of seed {options.seed} in {seconds:.0f} s: {failed} differences of {len(shapes)} shapes unexplained, "
          f"{sum(explained.values())} explained, {errors} refused by {name}")
    sys.exit(1 if failed else 0)


main()
