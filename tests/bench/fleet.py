"""How long the queries of share/sql take for a fleet: fleet.py PID PROCESSES...

The rows of a process are taken twice. They are repeated for so many hosts, with a host, a snapshot and an
address of its own each, as two batches; in one of 1,000 a thread has the stack of another one. ClickHouse
and DuckDB load them, and answer each query; the second of two runs counts. Needs SOURCE, STACKSNAP and
BUILD as the tests have them."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests/report"))

import databases  # noqa: E402

PART = 1000  # processes for one insertion
DUCK = databases.DUCK.replace("const results = [];", "const results = [Date.now() - begin];").replace(
    "const connection", "const begin = Date.now();\n  const connection", 1).replace(
    "    results.push(", "    await connection.runAndReadAll(text);\n    const from = Date.now();\n"
    "    results.push(").replace(".getRowsJson());", ".getRowsJson() && Date.now() - from);")


def take(pid, batch):
    text = subprocess.run([os.environ["STACKSNAP"], "-f", "rows", "--batch=" + batch, pid], check=False,
                          stdout=subprocess.PIPE).stdout
    rows = [json.loads(line) for line in text.splitlines()]
    shared = [row for row in rows if row["table"] in ("stacks", "frames")]
    return shared, [row for row in rows if row["table"] not in ("stacks", "frames")]


def process(own, number):
    """The rows of one host."""
    stacks = [row["stack"] for row in own if row["table"] == "threads"]
    for row in own:
        row = dict(row, host="host%06d" % number, snapshot="%s/%d" % (row["snapshot"], number))
        if row["table"] == "threads" and row["wait_key"]:
            row["wait_key"] += "/%d" % number
        if row["table"] == "threads" and number % 1000 == 7 and row["stack"] == stacks[0]:
            row["stack"] = stacks[-1]
        yield json.dumps(row, separators=(",", ":"))


def parts(pid, count):
    for batch in "before", "after":
        shared, own = take(pid, batch)
        for begin in range(0, count, PART):
            lines = [json.dumps(row) for row in shared]
            for number in range(begin, min(begin + PART, count)):
                lines += process(own, number)
            yield ("\n".join(lines) + "\n").encode()
        time.sleep(1.1)  # another second, another batch


class Fleet(unittest.TestCase):
    def measure(self, pid, count):
        server = databases.ClickHouse(self)
        directory = self.enterContext(tempfile.TemporaryDirectory())
        size, load = 0, 0
        with open(os.path.join(directory, "rows.ndjson"), "wb") as file:
            for part in parts(pid, count):
                begin = time.monotonic()
                server.insert(part)
                load += time.monotonic() - begin
                size += file.write(part)
        threads = server.rows("SELECT count() FROM threads")[0][0]
        print("%d processes in two batches, %s threads, %d MB" % (count, threads, size >> 20), flush=True)
        times = []
        for name in databases.QUERIES:
            for _ in range(2):
                begin = time.monotonic()
                server.rows(databases.read(databases.query_path(name)))
                taken = time.monotonic() - begin
            times.append(taken)
        show("ClickHouse", load, times)
        databases.DUCK = DUCK
        databases.LIMIT_S = 600
        load, *times = databases_times(self, directory)
        show("DuckDB", load / 1000, [each / 1000 for each in times])


def databases_times(test, directory):
    plain, databases.plain = databases.plain, lambda rows: rows
    try:
        return databases.duckdb(test, directory + "/rows.ndjson",
                                [databases.query_path(name) for name in databases.QUERIES])
    finally:
        databases.plain = plain


def show(name, load, times):
    print("  %-10s load %.1f s, " % (name, load) +
          ", ".join("%s %.3f s" % pair for pair in zip(databases.QUERIES, times)), flush=True)


def main():
    pid, *counts = sys.argv[1:]
    for count in counts:
        test = Fleet()
        try:
            test.measure(pid, int(count))
        finally:
            test.doCleanups()


if __name__ == "__main__":
    main()
