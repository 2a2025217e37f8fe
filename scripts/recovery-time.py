#!/usr/bin/env python3
"""When another node answers after the one that writes was killed, and page nodes are far behind.

    scripts/recovery-time.py FIRN [--log 1.2] [--rounds 3] [--away] [--dir DIR]

Starts a cluster of two database nodes, a logger and two page nodes with the binary FIRN, and has
eight clients insert rows of 60,000 bytes until the log has that many GiB. Then it kills the process
that writes with SIGKILL, and asks the other database node for a row until it answers. With --away,
the page nodes are stopped while the rows are inserted, and go on at the moment of the kill: then no
page node has received any of the log. Prints, for each round, how much log each page node had not
applied, and the seconds from the kill until the other engine is opened, the first row is read, and
the first commit is acknowledged.
"""

import argparse
import os
import re
import signal
import subprocess
import tempfile
import threading
import time

import pymysql

CLIENTS, ROW_BYTES = 8, 60_000
PATIENCE = 120


class Cluster:
    """A running `firn cluster start --separate`."""

    def __init__(self, firn, directory):
        self.firn, self.directory, self.log = firn, directory, directory + ".log"
        command = [firn, "cluster", "start", "--dir", directory, "--separate", "--buffer-pool", "3G"]
        with open(self.log, "w") as log:
            self.parent = subprocess.Popen(command, stdout=log, stderr=log)
        while not self.ports():
            time.sleep(0.1)

    def ports(self):
        """The ports of clients, by the names of the nodes."""
        try:
            with open(self.directory + "/cluster.toml") as file:
                nodes = file.read().split("[[node]]")[1:]
        except FileNotFoundError:
            return {}
        found = {re.search(r'name = "(.*)"', node)[1]:
                 re.search(r'client_address = ".*:(\d+)"', node) for node in nodes}
        return {name: int(port[1]) for name, port in found.items() if port}

    def processes(self):
        """The processes of the nodes, by their names."""
        found = {}
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{process}/cmdline") as file:
                    words = file.read().split("\0")
            except OSError:
                continue
            if "--data-dir" in words:
                directory = words[words.index("--data-dir") + 1]
                if os.path.dirname(directory) == self.directory:
                    found[os.path.basename(directory)] = int(process)
        return found

    def connect(self, ports):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for port in ports:
                try:
                    return pymysql.connect(host="127.0.0.1", port=port, user="root",
                                           autocommit=True, read_timeout=PATIENCE)
                except pymysql.Error:
                    time.sleep(0.005)
        raise SystemExit("nobody answers; " + self.log)

    def run(self, statement, ports=None):
        """The rows of a statement, which is repeated until it is answered."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                with self.connect(ports or self.ports().values()) as connection:
                    cursor = connection.cursor()
                    cursor.execute(statement)
                    return cursor.fetchall()
            except pymysql.Error:
                if time.monotonic() > end:
                    raise
                time.sleep(0.005)

    def status(self):
        command = [self.firn, "cluster", "status", "--dir", self.directory]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def end(self):
        self.parent.send_signal(signal.SIGINT)
        self.parent.wait()


def load(cluster, log_bytes):
    """Inserts rows until there is that much log. Returns a key that is there."""
    done, stop = [0] * CLIENTS, threading.Event()

    def insert(client):
        with cluster.connect(cluster.ports().values()) as connection:
            cursor = connection.cursor()
            while not stop.is_set():
                key = done[client] * CLIENTS + client
                text = f"{key:010}" * (ROW_BYTES // 10)
                cursor.execute(f"INSERT INTO r.t VALUES ({key}, '{text}', {key % 1000})")
                done[client] += 1

    clients = [threading.Thread(target=insert, args=(client,)) for client in range(CLIENTS)]
    for client in clients:
        client.start()
    while sum(done) * ROW_BYTES < log_bytes and all(client.is_alive() for client in clients):
        time.sleep(0.2)
    stop.set()
    for client in clients:
        client.join()
    return (min(done) - 1) * CLIENTS


def measure(firn, directory, log_bytes, is_away):
    cluster = Cluster(firn, directory)
    try:
        cluster.run("CREATE DATABASE r")
        cluster.run("CREATE TABLE r.t (id BIGINT PRIMARY KEY, v LONGTEXT, w INT, KEY (w))")
        pages = [process for name, process in cluster.processes().items() if "pages" in name]
        if is_away:
            for process in pages:
                os.kill(process, signal.SIGSTOP)
        key = load(cluster, log_bytes)
        behind = "all" if is_away else ", ".join(
            f"{int(size) >> 20} MiB" for size in
            re.findall(r"^pages-\S+.*-\s+-\s+-\s+(\d+)", cluster.status(), re.M))
        return behind, kill(cluster, leader_of(cluster), key, pages)
    finally:
        cluster.end()


def leader_of(cluster):
    """The node that writes, without a question to the page nodes."""
    with open(cluster.log) as file:
        return re.findall(r"firn: (\S+) answers clients", file.read())[-1]


def kill(cluster, writer, key, pages):
    """Seconds until the other engine is opened, a row is read, and a commit is acknowledged."""
    size_before = os.path.getsize(cluster.log)
    others = [port for name, port in cluster.ports().items() if name != writer]
    began = time.monotonic()
    os.kill(cluster.processes()[writer], signal.SIGKILL)
    for process in pages:
        os.kill(process, signal.SIGCONT)
    opens = []

    def watch():
        while not opens and time.monotonic() < began + PATIENCE:
            with open(cluster.log) as file:
                file.seek(size_before)
                if "opens its engine" in file.read():
                    opens.append(time.monotonic() - began)
            time.sleep(0.005)

    watching = threading.Thread(target=watch)
    watching.start()
    assert cluster.run(f"SELECT w FROM r.t WHERE id = {key}", others) == ((key % 1000,),)
    read = time.monotonic() - began
    cluster.run(f"INSERT INTO r.t VALUES (-{key + 1}, 'x', 1)", others)
    commit = time.monotonic() - began
    watching.join()
    return opens[0], read, commit


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("firn", metavar="FIRN")
    parser.add_argument("--log", type=float, default=1.2, help="GiB of log")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--away", action="store_true", help="stop the page nodes meanwhile")
    parser.add_argument("--dir", help="where the clusters are made, and removed afterwards")
    options = parser.parse_args()
    print("| not applied | engine is opened | first read | first commit |\n|---|---|---|---|")
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory(dir=options.dir) as directory:
            behind, seconds = measure(os.path.abspath(options.firn), directory + "/cluster",
                                      options.log * (1 << 30), options.away)
        times = " | ".join(f"{value:.2f} s" for value in seconds)
        print(f"| {behind} | {times} |", flush=True)


main()
