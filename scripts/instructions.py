#!/usr/bin/env python3
"""Instructions that the server runs for a statement, counted by callgrind: a figure that a busy machine does not change.

    scripts/instructions.py BINARY [BINARY] [--events 300] [--keep DIR]

Each binary makes a table of 20,000 rows in a temporary directory, reads its statistics, and is started again under valgrind,
where one connection of sysbench runs each kind of statement. Printed are thousands of instructions for each statement, the
connection's beginning shared out among them, and with two binaries the ratio of the first to the second. `--keep` leaves a
file for each kind there, for `callgrind_annotate`. Needs sysbench, mariadb's client and valgrind.

Background tasks that run by the clock count too, some fifty times as often as they would at full speed.
"""

import argparse
import ctypes
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

RANGES = ["point-selects", "simple-ranges", "sum-ranges", "order-ranges", "distinct-ranges"]
KINDS = {
    "point select": ["oltp_point_select"],
    **{name: ["oltp_read_only", "--skip-trx=on", *(f"--{other}={int(other == name)}" for other in RANGES)] for name in RANGES[1:]},
    "read only": ["oltp_read_only"],
    "update non-index": ["oltp_update_non_index"],
    "update index": ["oltp_update_index"],
    "insert": ["oltp_insert"],
}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
SYSCALL_PRCTL, PR_GET_AUXV, EINVAL = 157, 0x41555856, 22


def refuse_auxiliary_vector():
    """Lets prctl(PR_GET_AUXV) fail: through it rustix finds the kernel's vdso, which valgrind does not map."""
    load, jump_if_equal, answer = 0x20, 0x15, 0x06
    filters = [
        (load, 0, 0, 0), (jump_if_equal, 0, 3, SYSCALL_PRCTL),
        (load, 0, 0, 16), (jump_if_equal, 0, 1, PR_GET_AUXV),
        (answer, 0, 0, 0x00050000 | EINVAL), (answer, 0, 0, 0x7FFF0000),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in filters))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(filters), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program):
        raise OSError(ctypes.get_errno(), "seccomp")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    def __init__(self, binary, directory, under=()):
        self.port = free_port()
        command = [*under, binary, "start", "--data-dir", directory, "--listen", f"127.0.0.1:{self.port}"]
        log = open(directory + ".log", "a")
        self.process = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=refuse_auxiliary_vector if under else None)
        for _ in range(300):
            if self.process.poll() is not None:
                sys.exit(f"{binary} did not start: see {directory}.log")
            if not self.sql("SELECT 1", check=False).returncode:
                return
            time.sleep(0.2)
        sys.exit(f"{binary} does not answer: see {directory}.log")

    def sql(self, text, check=True):
        client = ["mariadb", "--no-defaults", "-h", "127.0.0.1", "-P", str(self.port), "-u", "root", "-e", text]
        return subprocess.run(client, check=check, capture_output=True)

    def sysbench(self, script, *options):
        subprocess.run(["sysbench", script, "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={self.port}", "--mysql-user=root",
                        "--mysql-db=sbtest", "--tables=1", "--table-size=20000", "--threads=1", "--rand-seed=7", *options],
                       check=True, stdout=subprocess.DEVNULL)

    def control(self, *words):
        subprocess.run(["callgrind_control", *words, str(self.process.pid)], check=True, capture_output=True)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def count(binary, directory, events, keep):
    """Instructions a statement, by kind."""
    server = Server(binary, directory)
    server.sql("CREATE DATABASE sbtest")
    server.sysbench("oltp_read_only", "prepare")
    server.sql("ANALYZE TABLE sbtest.sbtest1")
    # Until then the task that reads statistics has been there.
    server.sysbench("oltp_read_only", "--time=8", "run")
    server.end()
    files = keep or directory + ".counts"
    os.makedirs(files, exist_ok=True)
    server = Server(binary, directory, ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={files}/part"])
    counts = {}
    for part, (name, (script, *options)) in enumerate(KINDS.items(), 1):
        server.sysbench(script, *options, "--time=0", "--events=50", "run")
        server.control("-z")
        server.control("--instr=on")
        server.sysbench(script, *options, "--time=0", f"--events={events}", "run")
        server.control("--instr=off")
        server.control("--dump")
        with open(f"{files}/part.{part}") as written:
            counts[name] = int(re.findall(r"^totals: (\d+)", written.read(), re.MULTILINE)[-1]) / events
        os.rename(f"{files}/part.{part}", f"{files}/{name.replace(' ', '-')}.callgrind")
    server.end()
    return counts


def main():
    parser = argparse.ArgumentParser(prog="instructions.py", description=__doc__.split("\n")[0])
    parser.add_argument("binaries", nargs="+", metavar="BINARY")
    parser.add_argument("--events", type=int, default=300, help="statements of each kind")
    parser.add_argument("--keep", help="a directory for callgrind's files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        columns = []
        for number, binary in enumerate(options.binaries[:2]):
            keep = options.keep and os.path.join(options.keep, str(number + 1))
            columns.append(count(os.path.abspath(binary), f"{work}/{number}", options.events, keep))
    for name in KINDS:
        figures = [column[name] / 1000 for column in columns]
        ratio = f"{figures[0] / figures[1]:8.2f}" if len(figures) > 1 else ""
        print(f"{name:<18}" + "".join(f"{figure:10.1f}" for figure in figures) + ratio)


main()
