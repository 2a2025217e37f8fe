#!/usr/bin/env python3
"""Has DuckDB answer the queries that `firn bench tpch export DIR` wrote, over the rows beside them.

    pip install duckdb
    firn bench tpch export --scale 0.1 DIR
    scripts/tpch-answers.py DIR answers.json
    firn bench tpch check --scale 0.1 --answers answers.json --url …
"""

import glob
import json
import os
import re
import sys

import duckdb


def main(directory, output):
    database = duckdb.connect()
    schema = open(os.path.join(directory, "schema.sql")).read()
    for statement in schema.split(";"):
        if statement.strip():
            database.execute(statement)
    for table in re.findall(r"CREATE TABLE (\w+)", schema):
        path = os.path.join(directory, table + ".csv")
        database.execute(f"COPY {table} FROM '{path}' (DELIMITER '|', HEADER false, QUOTE '', ESCAPE '')")
    answers = {}
    for path in sorted(glob.glob(os.path.join(directory, "q*.sql"))):
        number = int(re.search(r"q(\d+)\.sql$", path).group(1))
        rows = database.execute(open(path).read()).fetchall()
        answers[number] = [[None if cell is None else str(cell) for cell in row] for row in rows]
    with open(output, "w") as file:
        json.dump(answers, file)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
