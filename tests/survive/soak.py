"""
A busy MariaDB server with its own client, and stacksnap ten times per second in every other
interval: the cost in throughput, and whether anything breaks.

./dev soak [--seconds=N] [-- [--interval=S] [--clients=N] [--nice=N] [--snap WORD]...]

The server counts the queries of the client in alternating intervals (with, without, without,
with, ...). Each pair of adjacent intervals gives one ratio. Printed are their geometric mean
(half as fast and twice as fast are equally far from 1), two standard errors to both sides, the
quartiles, and the CPU time of the snapshots: where the load leaves no processor idle, the server
cannot have that time. Exit status 1: an error of the server, the client or stacksnap, or a
throughput that is certainly below 99 %.
"""

import argparse
import math
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))

from programs import (end_with_parent, mariadb_connect, packet, receive,  # noqa: E402
                      require)

STACKSNAP = os.environ["STACKSNAP"]
RATE_HZ = 10
WANTED = 0.99
START_S = 60
CREATE = ("CREATE TABLE soak (id INT AUTO_INCREMENT PRIMARY KEY, number INT, word VARCHAR(64), "
          "KEY (number))")
QUERIES = ("INSERT INTO soak (number, word) VALUES (RAND() * 10000, UUID());"
           "SELECT COUNT(*), MAX(word) FROM soak WHERE number BETWEEN 100 AND 120;"
           "UPDATE soak SET number = number + 1 WHERE id = 1 + RAND() * 100;"
           "DELETE FROM soak ORDER BY id LIMIT 1")


class Server:
    def __init__(self, directory):
        self.log = os.path.join(directory, "error.log")
        self.socket = os.path.join(directory, "socket")
        common = ["--no-defaults", "--user=root",
                  "--datadir=" + os.path.join(directory, "data")]
        subprocess.run([require("mariadb-install-db"), *common, "--skip-test-db", "--force",
                        "--auth-root-authentication-method=normal"], check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=START_S)
        # the disk must not limit the throughput
        self.process = subprocess.Popen(
            [require("mariadbd"), *common, "--skip-networking", "--skip-grant-tables",
             "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M",
             "--socket=" + self.socket, "--log-error=" + self.log,
             "--pid-file=" + os.path.join(directory, "pid")],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=end_with_parent)
        self.connection = self.connect()

    def connect(self):
        deadline = time.monotonic() + START_S
        while True:
            try:
                return mariadb_connect(self.socket)
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.05)

    def questions(self):
        """The number of queries that it has answered (text protocol, one row)."""
        packet(self.connection, b"\x03SHOW GLOBAL STATUS LIKE 'Questions'", 0)
        columns = receive(self.connection)[0]
        for _ in range(columns + 1):
            receive(self.connection)
        row = receive(self.connection)
        receive(self.connection)
        return int(re.search(rb"(\d+)$", row).group(1))

    def errors(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return [line.rstrip() for line in file if "[ERROR]" in line or "signal" in line]

    def end(self):
        """Terminates it as users do; returns its exit status."""
        self.process.terminate()
        return self.process.wait(START_S)


class Client:
    """mariadb-slap, which sends queries until it is killed."""

    def __init__(self, server, clients):
        slap = shutil.which("mariadb-slap") or require("mysqlslap")
        self.process = subprocess.Popen(
            [slap, "--no-defaults", "--user=root", "--socket=" + server.socket,
             "--create=" + CREATE, "--query=" + QUERIES, "--delimiter=;",
             "--concurrency=%d" % clients, "--number-of-queries=2000000000", "--silent"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            preexec_fn=end_with_parent)

    def end(self):
        """Its error messages, or that it has exited by itself."""
        early = self.process.poll()
        self.process.kill()
        words = self.process.communicate(timeout=START_S)[1].decode("utf-8", "replace")
        return words.strip() or (None if early is None else "ended, status %d" % early)


class Snapper:
    def __init__(self, pid, nice, words):
        self.command = ["nice", "-n", str(nice), STACKSNAP, *words, str(pid)]
        self.statuses = {}
        self.complaints = []
        self.stopped_ms = []
        self.seconds = 0
        self.cpu_s = 0

    def take(self):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = subprocess.run(self.command, stdin=subprocess.DEVNULL, timeout=START_S,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.cpu_s += after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        status = result.returncode
        self.statuses[status] = self.statuses.get(status, 0) + 1
        text = result.stdout.decode("utf-8", "replace")
        found = re.search(r"paused ([\d.]+) ms(?: \([^)]*running ones at most ([\d.]+) ms)?|no thread was paused", text)
        if status not in (0, 1) or not found:
            self.complaints.append("status %d: %s" % (
                status, result.stderr.decode("utf-8", "replace")[:300]))
        elif found.group(1):
            self.stopped_ms.append(float(found.group(2) or found.group(1)))

    def take_until(self, end):
        """Takes snapshots at the rate until end."""
        due = begin = time.monotonic()
        while due < end:
            time.sleep(max(0, due - time.monotonic()))
            self.take()
            due = max(due + 1 / RATE_HZ, time.monotonic())
        time.sleep(max(0, end - time.monotonic()))
        self.seconds += time.monotonic() - begin


def measure(server, snapper, interval_s, with_us):
    """Queries per second in one interval."""
    begin, count = time.monotonic(), server.questions()
    if with_us:
        snapper.take_until(begin + interval_s)
    else:
        time.sleep(interval_s)
    return (server.questions() - count) / (time.monotonic() - begin)


def alternate(server, client, snapper, arguments):
    """Ratios of adjacent intervals: with, without, without, with, and so on."""
    ratios = []
    end = time.monotonic() + arguments.seconds
    while (time.monotonic() < end or len(ratios) < 2) and client.process.poll() is None:
        order = (True, False) if len(ratios) % 2 == 0 else (False, True)
        rates = {with_us: measure(server, snapper, arguments.interval, with_us)
                 for with_us in order}
        ratios.append(rates[True] / rates[False])
        print("%4d: %6.0f a second, without %6.0f: %.3f" % (
            len(ratios), rates[True], rates[False], ratios[-1]), file=sys.stderr, flush=True)
    return ratios


def bounds(ratios):
    """The geometric mean, and two standard errors below and above it."""
    logarithms = [math.log(ratio) for ratio in ratios]
    mean = statistics.mean(logarithms)
    error = statistics.stdev(logarithms) / len(ratios) ** 0.5
    return math.exp(mean), math.exp(mean - 2 * error), math.exp(mean + 2 * error)


def verdict(low, high):
    """Whether the throughput is enough; None: undecided."""
    if high < WANTED:
        return False
    return True if low >= WANTED else None


def report(ratios, snapper):
    mean, low, high = bounds(ratios)
    print("throughput with snapshots: %.2f %% of that without, %.2f to %.2f (quartiles %.1f, "
          "%.1f, %.1f), %d pairs" % (
              100 * mean, 100 * low, 100 * high,
              *(100 * value for value in statistics.quantiles(ratios, n=4)), len(ratios)))
    enough = verdict(low, high)
    print("99 % or more: " + {True: "yes", False: "no", None: "undecided: too few pairs or "
                              "too much other load (--seconds)"}[enough])
    count = sum(snapper.statuses.values())
    print("snapshots: %d, %.1f a second, by exit status %s; each took %.1f ms of CPU time, "
          "%.2f %% of all %d processors" % (
              count, count / snapper.seconds, snapper.statuses, 1000 * snapper.cpu_s / count,
              100 * snapper.cpu_s / snapper.seconds / os.cpu_count(), os.cpu_count()))
    if snapper.stopped_ms:
        print("running threads stopped for %.2f ms (median), %.2f at most" % (
            statistics.median(snapper.stopped_ms), max(snapper.stopped_ms)))
    return enough


def parse():
    parser = argparse.ArgumentParser(description="Take snapshots of a MariaDB server under load.")
    parser.add_argument("--seconds", type=float, default=180, help="total length of all intervals (default: 180)")
    parser.add_argument("--interval", type=float, default=2, help="length of an interval in seconds (default: 2)")
    parser.add_argument("--clients", type=int, default=8, help="number of connections (default: 8)")
    parser.add_argument("--nice", type=int, default=0, help="nice value of stacksnap (default: 0)")
    parser.add_argument("--snap", action="append", help="an option for stacksnap; may be repeated")
    return parser.parse_args()


def main():
    arguments = parse()
    directory = tempfile.mkdtemp(prefix="stacksnap-soak-")
    try:
        server = Server(directory)
        client = Client(server, arguments.clients)
        time.sleep(3)  # until its caches and threads are idle
        snapper = Snapper(server.process.pid, arguments.nice, arguments.snap or ["--no-source"])
        ratios = alternate(server, client, snapper, arguments)
        complaint = client.end()
        status = server.end()
        faults = server.errors() + snapper.complaints
        faults += ["client: " + complaint] if complaint else []
        faults += ["the server's exit status is %d" % status] if status else []
        enough = report(ratios, snapper)
        print("faults: %s" % ("\n  ".join(faults) or "none"))
        sys.exit(1 if faults or enough is False else 0)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
