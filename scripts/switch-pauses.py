#!/usr/bin/env python3
"""How long clients of a proxy wait while another node begins to write, again and again.

    scripts/switch-pauses.py FIRN [SWITCHES [CLIENTS]]        needs PyMySQL

Starts a cluster of three nodes and a proxy with the binary FIRN in a temporary directory. Each
client runs transactions of a read and a write of its own row without a pause; any error is told.
A switch's pause is the longest transaction that was open from the order until 300 ms after the
command has said that it is done.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pymysql

PATIENCE_SECONDS = 60


def retry(attempt):
    """What `attempt` answers once it does not fail."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return attempt()
        except (OSError, AttributeError, pymysql.MySQLError):
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


class Cluster:
    def __init__(self, binary):
        self.binary = binary
        self.directory = tempfile.mkdtemp()
        start = [binary, "cluster", "start", "--dir", self.directory, "--nodes", "3", "--proxies", "1", "--buffer-pool", "256M"]
        self.process = subprocess.Popen(start, stdout=subprocess.DEVNULL)
        self.port = retry(self.port_of_proxy)

    def port_of_proxy(self):
        with open(os.path.join(self.directory, "cluster.toml")) as layout:
            found = re.search(r'name = "proxy-1".*?client_address = "127.0.0.1:(\d+)"', layout.read(), re.S)
        return int(found.group(1))

    def connect(self):
        return retry(lambda: pymysql.connect(host="127.0.0.1", port=self.port, user="root", autocommit=True))

    def switch(self):
        """Has another node write. An order right after the last one is refused, because that is not known to be over yet."""
        while True:
            done = subprocess.run([self.binary, "cluster", "switch", "--dir", self.directory], capture_output=True, text=True)
            if "is under way" not in done.stderr:
                return done.returncode == 0 or print(done.stderr.strip())

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        shutil.rmtree(self.directory)


class Client(threading.Thread):
    def __init__(self, cluster, row, stop):
        super().__init__()
        self.connection, self.row, self.stop = cluster.connect(), row, stop
        self.transactions, self.errors = [], []

    def run(self):
        cursor = self.connection.cursor()
        while not self.stop.is_set():
            began = time.monotonic()
            try:
                cursor.execute("BEGIN")
                cursor.execute("SELECT v FROM pauses.t WHERE n = %s", (self.row,))
                cursor.execute("UPDATE pauses.t SET v = v + 1 WHERE n = %s", (self.row,))
                cursor.execute("COMMIT")
                self.transactions.append((began, time.monotonic()))
            except pymysql.MySQLError as error:
                self.errors.append(error)
                return

    def longest(self, begin, end):
        """The longest of its transactions that were open between two times, in milliseconds."""
        recent = list(self.transactions[-2000:])
        return max((1000 * (ended - began) for began, ended in recent if ended >= begin and began <= end), default=0)


def share(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def measure(cluster, switches, clients):
    cursor = cluster.connect().cursor()
    cursor.execute("CREATE DATABASE pauses")
    cursor.execute("CREATE TABLE pauses.t (n BIGINT PRIMARY KEY, v BIGINT)")
    cursor.executemany("INSERT INTO pauses.t VALUES (%s, 0)", [(row,) for row in range(clients)])
    stop = threading.Event()
    running = [Client(cluster, row, stop) for row in range(clients)]
    for client in running:
        client.start()
    pauses = []
    for _ in range(switches):
        begin = time.monotonic()
        cluster.switch()
        end = time.monotonic() + 0.3
        time.sleep(0.5)
        pauses.append(max(client.longest(begin, end) for client in running))
    stop.set()
    for client in running:
        client.join()
    cursor.execute("SELECT SUM(v) FROM pauses.t")
    stored = int(cursor.fetchone()[0])
    acknowledged = sum(len(client.transactions) for client in running)
    errors = [error for client in running for error in client.errors]
    usual = [1000 * (ended - began) for client in running for began, ended in client.transactions]
    print(f"{switches} switches, {clients} clients: {acknowledged} transactions acknowledged, {stored} stored, {len(errors)} errors {errors[:3]}")
    print(f"longest transaction of a switch: median {share(pauses, 0.5):.0f} ms, P90 {share(pauses, 0.9):.0f}, P99 {share(pauses, 0.99):.0f}; any transaction: median {share(usual, 0.5):.1f} ms")


def main():
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    switches = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    clients = int(sys.argv[3]) if len(sys.argv) > 3 else 16
    cluster = Cluster(sys.argv[1])
    try:
        measure(cluster, switches, clients)
    finally:
        cluster.end()


main()
