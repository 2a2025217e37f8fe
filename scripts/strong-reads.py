#!/usr/bin/env python3
"""What strong reads at replicas cost, and what each part of them brings.

    scripts/strong-reads.py FIRN parts [--replicas 1] [--threads 16,64] [--loads uniform,pareto]
    scripts/strong-reads.py FIRN peers [--threads 16,64] [--loads uniform,uniform+single]

parts: starts a cluster with that number of replicas with the binary FIRN, and runs sysbench's
read_only at the replicas, once for each part that is switched on. Beside it runs read_write at the
node that writes, at the same rate each time. peers: runs strong reads of the cluster, of Galera
with wsrep_sync_wait=1 and of PostgreSQL with remote_apply (the scripts of PEERS start those) in
turns. Both print a table of medians: reads a second, their median latency and the 95th percentile
in ms, transactions a second at the writer, and the processor time of the replicas for a read in
microseconds.

A load is a distribution of sysbench's (uniform, pareto, special, gaussian), in transactions of 14
reads; with "+single", such as uniform+single, each read stands by itself.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

TABLES, ROWS = 4, 20000
# What is added, one after the other, to a read that waits for all log up to the newest timestamp.
PARTS = {
    "stale": ("STALE", "ON", "ON", "ON"),
    "strong": ("STRONG", "ON", "ON", "ON"),
    "read wait": ("STRONG", "OFF", "OFF", "OFF"),
    "+ shared timestamps": ("STRONG", "ON", "OFF", "OFF"),
    "+ waits by page": ("STRONG", "ON", "ON", "OFF"),
}
READS_EACH = 14
# What transactions of the writer may get, and do again.
IGNORED = ["--mysql-ignore-errors=1213,1020,1205"]


class Server:
    """Where sysbench connects: the node that writes, and those that read."""

    def __init__(self, writer, readers, driver="mysql", options=(), processes=()):
        self.writer, self.readers, self.driver = writer, readers, driver
        self.options, self.processes = list(options), processes

    def sysbench(self, port, workload, threads, seconds, command, *more):
        user = "postgres" if self.driver == "pgsql" else "root"
        driver = self.driver
        return ["sysbench", f"oltp_{workload}", f"--db-driver={driver}",
                f"--{driver}-host=127.0.0.1", f"--{driver}-port={port}", f"--{driver}-user={user}",
                f"--{driver}-db=sbtest",
                f"--tables={TABLES}", f"--table-size={ROWS}", f"--threads={threads}",
                f"--time={seconds}", *self.options, *more, command]

    def prepare(self):
        subprocess.run(self.sysbench(self.writer, "read_write", 1, 0, "prepare"), check=True,
                       stdout=subprocess.DEVNULL)
        time.sleep(3)

    def measure(self, threads, load, rate, seconds):
        """Reads a second, their median and 95th percentile in ms, commits a second beside them,
        and microseconds of the replicas' processors for a read."""
        keys, _, single = load.partition("+")
        keys = f"--rand-type={keys}"
        write = self.sysbench(self.writer, "read_write", 8, seconds + 1, "run", keys,
                              f"--rate={rate}")
        writing = subprocess.Popen(write, stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        each = max(1, threads // len(self.readers))
        more = [keys, "--histogram=on"] + (["--skip-trx=on"] if single else [])
        before = processor_us(self.processes)
        reading = [subprocess.Popen(
            self.sysbench(port, "read_only", each, seconds, "run", *more),
            stdout=subprocess.PIPE, text=True) for port in self.readers]
        reads, buckets = 0.0, {}
        for one in reading:
            text = one.communicate()[0]
            reads += READS_EACH * transactions(text)
            for value, count in re.findall(r"^\s*([\d.]+) \|\**\s*(\d+)$", text, re.M):
                buckets[float(value)] = buckets.get(float(value), 0) + int(count)
        spent = processor_us(self.processes) - before
        commits = transactions(writing.communicate()[0])
        return (reads, share(buckets, 0.5), share(buckets, 0.95), commits,
                spent / max(1, reads * seconds))


def processor_us(processes):
    """What processes have taken of processors so far, in microseconds."""
    ticks = 0
    for process in processes:
        with open(f"/proc/{process}/stat") as file:
            ticks += sum(map(int, file.read().rpartition(")")[2].split()[11:13]))
    return ticks * 1_000_000 // os.sysconf("SC_CLK_TCK")


def transactions(text):
    found = re.search(r"transactions:\s+\d+\s+\(([\d.]+) per sec", text)
    if not found:
        print(text, file=sys.stderr)
        return 0.0
    return float(found[1])


def share(buckets, part):
    left = part * sum(buckets.values())
    for value in sorted(buckets):
        left -= buckets[value]
        if left <= 0:
            return value
    return 0.0


def client(port, statement, check=True, **options):
    command = ["mariadb", "--skip-ssl", "-h127.0.0.1", f"-P{port}", "-uroot", "-e", statement]
    return subprocess.run(command, check=check, **options)


class Cluster:
    """A cluster of FIRN in a temporary directory, until the block ends."""

    def __init__(self, firn, replicas):
        self.firn, self.replicas = firn, replicas

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory()
        directory = self.directory.name
        self.process = subprocess.Popen(
            [self.firn, "cluster", "start", "--dir", directory, "--separate", "--replicas",
             str(self.replicas), "--buffer-pool", "256M"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            time.sleep(0.5)
            status = subprocess.run([self.firn, "cluster", "status", "--dir", directory],
                                    capture_output=True, text=True).stdout
            leader = re.search(r"^(\S+) +127\.0\.0\.1:.* leads, ", status, re.M)
            if leader and status.count(" behind, ") == self.replicas:
                break
            if self.process.poll() is not None:
                sys.exit("the cluster has ended")
        with open(os.path.join(directory, "cluster.toml"), "rb") as file:
            nodes = tomllib.load(file)["node"]
        ports = {node["name"]: node["client_address"].split(":")[1]
                 for node in nodes if "client_address" in node}
        readers = [port for name, port in ports.items() if name.startswith("replica")]
        writer = ports[leader[1]]
        for port in [writer, *readers]:
            while client(port, "SELECT 1", check=False, capture_output=True).returncode:
                time.sleep(0.3)
        client(writer, "CREATE DATABASE sbtest")
        processes = subprocess.run(
            ["pgrep", "-f", "--", f"--node-name replica-[0-9]+ --data-dir {directory}/"],
            capture_output=True, text=True).stdout.split()
        self.server = Server(writer, readers, options=IGNORED, processes=processes)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.directory.cleanup()

    def use(self, part):
        consistency, shared, by_page, tail = PARTS[part]
        for port in self.server.readers:
            client(port, f"SET GLOBAL firn_read_consistency = '{consistency}', "
                         f"GLOBAL firn_shared_timestamps = {shared}, "
                         f"GLOBAL firn_waits_by_page = {by_page}, GLOBAL firn_log_tail = {tail}")


def table(columns, rows, found, first):
    print("| " + first + " | " + " | ".join(columns) + " |")
    print("|" + "---|" * (len(columns) + 1))
    for row in rows:
        cells = []
        for column in columns:
            rounds = found.get((row, column), [])
            figures = [statistics.median(values) for values in zip(*rounds)]
            shown = "{:,.0f}, {:.1f}, {:.1f}, {:,.0f}, {:.0f}"
            cells.append(shown.format(*figures) if figures else "")
        print(f"| {row} | " + " | ".join(cells) + " |")
    print(flush=True)


def ratios(columns, rows, found, top, bottom):
    """For each row, the median over rounds of the ratio of two columns: reads, median latency."""
    for row in rows:
        pairs = list(zip(found.get((row, top), []), found.get((row, bottom), [])))
        for what, place in (("reads", 0), ("median latency", 1), ("commits", 3),
                            ("processor time", 4)):
            values = sorted(a[place] / b[place] for a, b in pairs if b[place])
            if values:
                print(f"{row}: {what}, {top} / {bottom} {statistics.median(values):.3f} "
                      f"({values[0]:.2f}–{values[-1]:.2f})")


def parts(arguments):
    with Cluster(arguments.firn, arguments.replicas) as cluster:
        cluster.server.prepare()
        found, rows = {}, []
        for load in arguments.loads.split(","):
            for threads in arguments.threads.split(","):
                row = f"{load}, {threads} threads"
                rows.append(row)
                for number in range(arguments.rounds):
                    order = list(PARTS) if number % 2 == 0 else list(PARTS)[::-1]
                    for part in order:
                        cluster.use(part)
                        one = cluster.server.measure(int(threads), load, arguments.rate,
                                                     arguments.seconds)
                        found.setdefault((row, part), []).append(one)
                        print(row, number, part, *(f"{value:.2f}" for value in one),
                              file=sys.stderr, flush=True)
    print(f"{arguments.replicas} replicas, writes limited to {arguments.rate}/s\n\n"
          "reads/s, median ms, 95th ms, commits/s, us/read\n")
    table(list(PARTS), rows, found, "load")
    for top, bottom in (("strong", "stale"), ("strong", "read wait")):
        ratios(list(PARTS), rows, found, top, bottom)


def peers(arguments):
    environment = dict(os.environ, APPLY="1")
    for script in ("start-galera.sh", "start-postgres-quorum.sh"):
        subprocess.run([os.path.join(arguments.peers, script)], check=True, env=environment,
                       stdout=sys.stderr)
    try:
        for port in (13420, 13421):
            client(port, "SET GLOBAL wsrep_sync_wait = 1")
        with Cluster(arguments.firn, 1) as cluster:
            servers = {"Firn": cluster.server,
                       "Galera": Server(13420, [13421],
                                        options=IGNORED),
                       "PostgreSQL": Server(13440, [13441], "pgsql")}
            found, rows = {}, []
            for server in servers.values():
                server.prepare()
            for load in arguments.loads.split(","):
                for threads in arguments.threads.split(","):
                    row = f"{load}, {threads} threads"
                    rows.append(row)
                    for number in range(arguments.rounds):
                        names = list(servers)
                        for name in names[number % 3:] + names[:number % 3]:
                            one = servers[name].measure(int(threads), load, arguments.rate,
                                                        arguments.seconds)
                            found.setdefault((row, name), []).append(one)
                            print(row, number, name, *(f"{value:.2f}" for value in one),
                                  file=sys.stderr, flush=True)
        print("reads/s, median ms, 95th ms, commits/s, us/read of Firn\n")
        table(list(servers), rows, found, "load")
        for peer in ("Galera", "PostgreSQL"):
            ratios(list(servers), rows, found, "Firn", peer)
    finally:
        for name in ("galera", "postgres-quorum"):
            subprocess.run([os.path.join(arguments.peers, "stop.sh"), name], stdout=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("firn")
    parser.add_argument("what", choices=["parts", "peers"])
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--threads", default="16,64")
    parser.add_argument("--loads", default="uniform,pareto,uniform+single,pareto+single")
    parser.add_argument("--rate", type=int, default=100,
                        help="transactions a second of the writer's 8 connections; 0: all that go")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", default="../shared/bench",
                        help="the directory of the peers' scripts")
    arguments = parser.parse_args()
    parts(arguments) if arguments.what == "parts" else peers(arguments)


if __name__ == "__main__":
    main()
