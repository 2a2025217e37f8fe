#!/usr/bin/env python3
"""What it costs that commits wait for a standby far away.

    scripts/distant-standby.py FIRN [--round-trips 0,2,30] [--connections 1,64,256,512] [--seconds 20]

Starts a cluster of three nodes in three zones with the binary FIRN: one that writes, a synchronous
standby, and a logger. Each node is reached by the others through a relay of this script that holds
each message back for half of the round trip. So 0 ms has the relays, too, and the figures differ by
the distance alone. Each round runs single-row updates (sysbench's update_non_index) with that
number of connections at each distance in turn; the medians of the rounds are printed.
"""

import argparse
import asyncio
import collections
import json
import os
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

NODES = [
    ("node-1", "main", '"database", "log", "pages", "control"'),
    ("standby-1", "standby", '"database", "log", "pages", "control"'),
    ("logger-1", "witness", '"log", "control"'),
]
POOL = "512M"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Distance:
    """The time that a message takes in one direction; may change while relays run."""

    def __init__(self):
        self.seconds = 0.0


async def pump(reader, writer, distance):
    """Passes bytes on in their order, each piece after the time that the distance takes."""
    pieces = collections.deque()
    arrived = asyncio.Event()

    async def deliver():
        while True:
            while not pieces:
                arrived.clear()
                await arrived.wait()
            left = pieces[0][0] - time.monotonic()
            if left > 0:
                await asyncio.sleep(left)
            # What has come meanwhile goes along.
            while pieces and pieces[0][0] <= time.monotonic():
                _, data = pieces.popleft()
                if data is None:
                    writer.close()
                    return
                writer.write(data)
            await writer.drain()

    def send(data):
        pieces.append((time.monotonic() + distance.seconds, data))
        arrived.set()

    delivery = asyncio.create_task(deliver())
    try:
        while data := await reader.read(1 << 18):
            send(data)
    except OSError:
        pass
    send(None)
    try:
        await delivery
    except OSError:
        pass


async def relay(listen, to, distance):
    async def serve(reader, writer):
        try:
            other_reader, other_writer = await asyncio.open_connection("127.0.0.1", to)
        except OSError:
            writer.close()
            return
        for one in (writer, other_writer):
            one.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.gather(
            pump(reader, other_writer, distance), pump(other_reader, writer, distance)
        )

    server = await asyncio.start_server(serve, "127.0.0.1", listen)
    await server.serve_forever()


def run_relays(pairs, distance):
    async def all_of_them():
        await asyncio.gather(*(relay(listen, to, distance) for listen, to in pairs))

    # select() waits for microseconds, epoll for whole milliseconds.
    loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
    threading.Thread(target=loop.run_until_complete, args=(all_of_them(),), daemon=True).start()


def echo(listen):
    """Answers each message with itself."""
    server = socket.create_server(("127.0.0.1", listen))
    while True:
        connection, _ = server.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := connection.recv(4096):
            connection.sendall(data)


def measured_round_trip(port):
    """The median time of a message and its answer through a relay, in ms."""
    times = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(50):
            began = time.monotonic()
            connection.sendall(bytes(200))
            left = 200
            while left:
                left -= len(connection.recv(left))
            times.append(time.monotonic() - began)
    return statistics.median(times) * 1000


class Cluster:
    def __init__(self, firn, directory, distance):
        self.firn, self.directory, self.processes = firn, directory, []
        ports = free_ports(3 * len(NODES) + 2)
        relayed, real, clients = ports[:3], ports[3:6], ports[6:9]
        self.echo = ports[9]
        threading.Thread(target=echo, args=(ports[10],), daemon=True).start()
        run_relays([*zip(relayed, real), (self.echo, ports[10])], distance)
        self.layout = os.path.join(directory, "cluster.toml")
        with open(self.layout, "w") as file:
            file.write(f'cluster = "{os.urandom(16).hex()}"\n')
            for number, (name, zone, roles) in enumerate(NODES, 1):
                file.write(f'\n[[node]]\nnumber = {number}\nname = "{name}"\nzone = "{zone}"\n')
                file.write(f'address = "127.0.0.1:{relayed[number - 1]}"\nroles = [{roles}]\n')
                if "database" in roles:
                    file.write(f'client_address = "127.0.0.1:{clients[number - 1]}"\n')
        self.client = clients[0]
        for number, (name, _, _) in enumerate(NODES):
            command = [firn, "start", "--cluster-layout", self.layout, "--node-name", name]
            command += ["--data-dir", os.path.join(directory, name), "--buffer-pool", POOL]
            command += ["--cluster-listen", f"127.0.0.1:{real[number]}"]
            log = open(os.path.join(directory, f"{name}.log"), "w")
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log))

    def run(self, *arguments):
        command = [self.firn, "cluster", *arguments, "--layout", self.layout]
        return subprocess.run(command, capture_output=True, text=True)

    def wait_until_main_writes(self):
        for _ in range(600):
            status = self.run("status").stdout
            if "zone main: writes" in status:
                return
            if "zone standby: writes" in status:
                self.run("switch", "node-1")
            time.sleep(0.2)
        sys.exit(f"node-1 does not write:\n{status}")

    def close(self):
        for process in self.processes:
            process.send_signal(signal.SIGINT)
        for process in self.processes:
            process.wait()


def bench(firn, port, connections, seconds, *words):
    """Updates a second and their median latency in ms."""
    report = tempfile.NamedTemporaryFile(suffix=".json")
    command = [firn, "bench", "sysbench", "--url", f"mysql://root@127.0.0.1:{port}/sysbench"]
    command += ["--shapes", "oltp_update_non_index", "--tables", "4", "--table-size", "50000"]
    command += ["--connections", str(connections), "--seconds", str(seconds), "--warm-up", "3"]
    command += ["--json", report.name, *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    report = json.loads(report.read())["reports"][0] if words[0] == "run" else {}
    windows = report.get("course") or [{"transactions/s": 0, "P50 ms": 0}]
    middle = lambda name: statistics.median(window[name] for window in windows)
    return middle("transactions/s"), middle("P50 ms")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("firn")
    parser.add_argument("--round-trips", default="0,2,30", help="in ms")
    parser.add_argument("--connections", default="1,64,256,512")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    trips = [float(one) for one in arguments.round_trips.split(",")]
    connections = [int(one) for one in arguments.connections.split(",")]
    distance, found, trips_found = Distance(), {}, {}
    with tempfile.TemporaryDirectory() as directory:
        cluster = Cluster(arguments.firn, directory, distance)
        try:
            cluster.wait_until_main_writes()
            bench(arguments.firn, cluster.client, 8, 1, "prepare")
            for _ in range(arguments.rounds):
                for count in connections:
                    for trip in trips:
                        distance.seconds = trip / 2000
                        time.sleep(2)
                        cluster.wait_until_main_writes()
                        trips_found.setdefault(trip, []).append(measured_round_trip(cluster.echo))
                        measured = bench(
                            arguments.firn, cluster.client, count, arguments.seconds, "run"
                        )
                        found.setdefault((count, trip), []).append(measured)
                        print(f"{count} connections, {trip:g} ms: {measured}", file=sys.stderr)
        finally:
            distance.seconds = 0
            cluster.close()
    for trip in trips:
        median = statistics.median(trips_found[trip])
        print(f"A message and its answer take {median:.2f} ms where {trip:g} ms were asked for.")
    print()
    print_table(found, connections, trips)


def print_table(found, connections, trips):
    print("| connections | round trip, ms | updates/s | of the first | P50, ms | more than the first, ms |")
    print("|---:|---:|---:|---:|---:|---:|")
    for count in connections:
        first = None
        for trip in trips:
            rounds = found[(count, trip)]
            speed = statistics.median(speed for speed, _ in rounds)
            latency = statistics.median(latency for _, latency in rounds)
            first = first or (speed, latency)
            share, more = speed / first[0], latency - first[1]
            print(f"| {count} | {trip:g} | {speed:,.0f} | {share:.2f} | {latency:.2f} | {more:.2f} |")


if __name__ == "__main__":
    main()
