#!/usr/bin/env python3
"""Asks PostgreSQL the queries that `firn bench tpch export DIR` wrote, over the rows beside them, and says how long each took.

    firn bench tpch export --scale 1 DIR
    scripts/tpch-postgres.py DIR PORT [PASSES]        127.0.0.1, user postgres without a password; database tpch is made again, unless
    TPCH_KEEP is set

The rows are loaded by COPY, then the indexes are made and the tables analysed, as `firn bench tpch prepare` does it.
"""

import glob
import os
import re
import statistics
import subprocess
import sys
import time


def psql(port, database, script):
    """Runs a script in one session and answers what it printed."""
    command = ["psql", "-h127.0.0.1", f"-p{port}", "-Upostgres", "-XqAt", "-vON_ERROR_STOP=1", database]
    done = subprocess.run(command, input=script, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout


def prepare(directory, port):
    psql(port, "postgres", "DROP DATABASE IF EXISTS tpch;\nCREATE DATABASE tpch;\n")
    schema = open(os.path.join(directory, "schema.sql")).read()
    psql(port, "tpch", schema)
    began = time.monotonic()
    for table in re.findall(r"CREATE TABLE (\w+)", schema):
        path = os.path.join(directory, table + ".csv")
        psql(port, "tpch", f"\\copy {table} FROM '{path}' (DELIMITER '|')\n")
    loaded = time.monotonic()
    psql(port, "tpch", open(os.path.join(directory, "indexes.sql")).read() + "ANALYZE;\n")
    print(f"loaded in {loaded - began:.1f} s, indexes and statistics in {time.monotonic() - loaded:.1f} s", flush=True)


def ask(directory, port):
    """Seconds of each query, by its number."""
    took = {}
    for path in sorted(glob.glob(os.path.join(directory, "q*.sql"))):
        text = open(path).read().rstrip().rstrip(";")
        shown = psql(port, "tpch", f"\\timing on\n\\o /dev/null\n{text};\n")
        took[int(re.search(r"q(\d+)\.sql$", path).group(1))] = float(re.search(r"Time: ([\d.]+) ms", shown).group(1)) / 1000
    return took


def main(directory, port, passes):
    if not os.environ.get("TPCH_KEEP"):
        prepare(directory, port)
    rounds = []
    for number in range(passes):
        rounds.append(ask(directory, port))
        print(f"pass {number + 1}: {sum(rounds[-1].values()):.2f} s", flush=True)
    for query in rounds[0]:
        print(f"Q{query}\t{statistics.median(took[query] for took in rounds):.3f} s")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) == 4 else 1)
