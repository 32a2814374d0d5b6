#!/usr/bin/env python3
"""
Measures reports: of a minute of MariaDB at 99 Hz, idle and with queries. Shows the file size
per sample and, for each format, the time of stacksnap report (the minimum of a few runs, since
the machine may be shared) and its memory.

Environment: as for bench.py; RECORD_S, the length of the recording in seconds.
"""

import itertools
import os
import re
import subprocess
import sys
import tempfile
import threading

from programs import MariaDB, Unavailable, packet, receive

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("BUILD") or os.path.join(HERE, "../../build/release")
STACKSNAP = os.environ.get("STACKSNAP") or os.path.join(BUILD, "stacksnap")
RECORD_S = int(os.environ.get("RECORD_S", "60"))
RUNS, ANSWER_S, GOAL_S, GOAL_BYTES = 5, 60, 1.0, 8
FORMATS = ("text", "folded", "json", "html", "speedscope", "pprof", "perf")
BUSY = 8  # sessions with queries
QUERIES = [
    b"SELECT COUNT(*) FROM information_schema.collations",
    b"SELECT SUM(CRC32(seq)) FROM mysql.seq_1_to_20000",
    b"SELECT a.seq, MD5(a.seq) FROM mysql.seq_1_to_3000 a ORDER BY MD5(a.seq) LIMIT 10",
    b"SELECT COUNT(*) FROM mysql.seq_1_to_300 a JOIN mysql.seq_1_to_300 b ON a.seq < b.seq",
    b"SHOW GLOBAL STATUS",
    b"SELECT REGEXP_REPLACE(REPEAT('abc', 2000), 'b', 'x')",
    b"DO SLEEP(0.02)",
]


class Load:
    """Sessions that send queries until the end of a with block."""

    def __init__(self, sessions):
        self.over = False
        self.threads = [threading.Thread(target=self.ask, args=(session, i))
                        for i, session in enumerate(sessions)]

    def ask(self, session, first):
        session.settimeout(ANSWER_S)
        for query in itertools.islice(itertools.cycle(QUERIES), first, None):
            if self.over:
                return
            packet(session, b"\x03" + query, 0)
            self.drain(session)

    @staticmethod
    def drain(session):
        """Reads to the end of an answer: an OK, an error, or the second EOF."""
        body = receive(session)
        if body[:1] in (b"\x00", b"\xff"):
            return
        ends = 0
        while ends < 2:
            body = receive(session)
            if body[:1] == b"\xff":
                return
            ends += body[:1] == b"\xfe" and len(body) < 9

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        for thread in self.threads:
            thread.join()


def record(server, path):
    result = subprocess.run([STACKSNAP, "record", "-d", "%ds" % RECORD_S, "-o", path,
                             str(server.process.pid)], stderr=subprocess.PIPE, text=True,
                            check=True)
    samples = int(re.search(r"([\d,]+) samples?,", result.stderr).group(1).replace(",", ""))
    size = os.path.getsize(path)
    print(result.stderr.strip())
    print("  %.2f bytes a sample (%d or less): %s" % (
        size / samples, GOAL_BYTES, "MET" if size / samples <= GOAL_BYTES else "NOT MET"))


def view(path, name):
    """Seconds without disk access, and peak memory in KiB; or None: the result is too large."""
    best, memory = float("inf"), 0
    for _ in range(RUNS):
        process = subprocess.Popen(
            [STACKSNAP, "report", "-v", "-f", name, path], stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        messages = process.stderr.read()
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        found = re.search(r"read and symbolized in ([\d.]+) ms, written in ([\d.]+) ms",
                          messages)
        if "the result is larger than" in messages:
            return None
        assert found, messages
        seconds = sum(float(part) for part in found.groups()) / 1000
        best, memory = min(best, seconds), max(memory, usage.ru_maxrss)
    return best, memory


def case(server, title, directory):
    path = os.path.join(directory, "recording of %s" % title)
    print("%d s of MariaDB at 99 Hz, %s" % (RECORD_S, title))
    record(server, path)
    for name in FORMATS:
        measured = view(path, name)
        if measured is None:
            print("  %-11s the result is too large, as the tool says" % name)
            continue
        seconds, memory = measured
        print("  %-11s %7.3f s  %6.1f MiB   %s" % (
            name, seconds, memory / 1024,
            "below a second: " + ("MET" if seconds < GOAL_S else "NOT MET")))


def main():
    with tempfile.TemporaryDirectory() as directory:
        try:
            with MariaDB() as server:
                case(server, "idle", directory)
                with Load(server.sessions[1::2][:BUSY]):
                    case(server, "%d sessions with queries" % BUSY, directory)
        except Unavailable as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
