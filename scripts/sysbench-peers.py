#!/usr/bin/env python3
"""Runs sysbench against Firn, MariaDB and PostgreSQL in turns, and prints the tables of docs/performance.md.

    scripts/sysbench-peers.py PORT MARIADB_PORT POSTGRES_PORT --connections 8 [--figure FILE]

All servers are on 127.0.0.1: user root without a password, and user postgres. The tables are made
again: 4 of 250,000 rows. Each round takes the servers in another order. The figure is a result file
for `firn bench plot`, such as docs/figures/sysbench-8.json; its values are replaced.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys

SYSTEMS = ["Firn", "MariaDB", "PostgreSQL"]
WORKLOADS = {
    "point select, prepared": ("oltp_point_select", []),
    "point select, text": ("oltp_point_select", ["--db-ps-mode=disable"]),
    "read only": ("oltp_read_only", []),
    "read write": ("oltp_read_write", []),
    "write only": ("oltp_write_only", []),
    "insert": ("oltp_insert", []),
    "update index": ("oltp_update_index", []),
    "update non-index": ("oltp_update_non_index", []),
    "delete": ("oltp_delete", []),
    "bulk insert": ("bulk_insert", []),
}


class Server:
    def __init__(self, system, port):
        self.system, self.port = system, port

    def options(self, database):
        if self.system == "PostgreSQL":
            return ["--db-driver=pgsql", "--pgsql-host=127.0.0.1", f"--pgsql-port={self.port}",
                    "--pgsql-user=postgres", f"--pgsql-db={database}"]
        return ["--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={self.port}", "--mysql-user=root",
                f"--mysql-db={database}", "--mysql-ssl=off", "--mysql-ignore-errors=1213,1020,1205,1062"]

    def make_database(self, name):
        again = [f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}"]
        for statement in again:
            if self.system == "PostgreSQL":
                command = ["psql", "-h127.0.0.1", f"-p{self.port}", "-Upostgres", "-Xqc", statement]
            else:
                command = ["mariadb", "-h127.0.0.1", f"-P{self.port}", "-uroot", "--skip-ssl", "-e", statement]
            subprocess.run(command, check=True)

    def sysbench(self, workload, database, options):
        command = ["sysbench", workload, *self.options(database), "--percentile=99", *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def prepare(self):
        self.make_database("sbtest")
        self.sysbench("oltp_common", "sbtest", [*shape(), "--threads=2", "prepare"])

    def prepare_bulk(self, connections):
        """Each run inserts the same keys."""
        self.make_database("sbbulk")
        self.sysbench("bulk_insert", "sbbulk", [f"--threads={connections}", "prepare"])

    def measure(self, name, connections, seconds):
        """Events a second, and the 99th percentile of their latency in ms."""
        workload, options = WORKLOADS[name]
        database, tables = "sbtest", shape()
        if workload == "bulk_insert":
            database, tables = "sbbulk", []
            self.prepare_bulk(connections)
        said = self.sysbench(workload, database, [*tables, *options, f"--threads={connections}", f"--time={seconds}", "run"])
        number = lambda pattern: float(re.search(pattern + r"\s+([0-9.]+)", said).group(1))
        return number("total number of events:") / number("total time:"), number("99th percentile:")


def shape():
    return ["--tables=4", "--table-size=250000"]


def against(values, peer):
    ratios = [ours / theirs for ours, theirs in zip(values[0], values[peer])]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ports", type=int, nargs=3, metavar="PORT")
    parser.add_argument("--connections", type=int, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--figure")
    return parser.parse_args()


def main():
    given = arguments()
    connections = given.connections
    servers = [Server(system, port) for system, port in zip(SYSTEMS, given.ports)]
    for server in servers:
        server.prepare()
    latencies, medians = [], {}
    print(f"| {connections} connections | Firn, 1/s | MariaDB | PostgreSQL | Firn / MariaDB | Firn / PostgreSQL |\n|---|---|---|---|---|---|")
    for name in WORKLOADS:
        rates, tails = [[], [], []], [[], [], []]
        for turn in range(given.rounds):
            for place in range(len(servers)):
                place = (place + turn) % len(servers)
                rate, tail = servers[place].measure(name, connections, given.seconds)
                rates[place].append(rate)
                tails[place].append(tail)
        medians[name] = [round(statistics.median(each)) for each in rates]
        cells = " | ".join(f"{rate:,}" for rate in medians[name])
        print(f"| {name} | {cells} | {against(rates, 1)} | {against(rates, 2)} |", flush=True)
        latencies.append((name, ", ".join(f"{statistics.median(each):.3g}" for each in tails)))
    print(f"\nP99 in ms; each cell is Firn, MariaDB, PostgreSQL:\n\n| workload | {connections} connections |\n|---|---|")
    for name, cell in latencies:
        print(f"| {name} | {cell} |")
    if given.figure:
        write_figure(given.figure, medians)


def write_figure(path, medians):
    with open(path, encoding="utf-8") as file:
        figure = json.load(file)
    commit = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=True)
    figure["commit"] = commit.stdout.strip()
    head = ",\n".join(f'  "{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in figure.items() if key != "rows")
    rows = ",\n".join(f'    {{ "name": "{name}", "values": {values} }}' for name, values in medians.items())
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'{{\n{head},\n  "rows": [\n{rows}\n  ]\n}}\n')


main()
