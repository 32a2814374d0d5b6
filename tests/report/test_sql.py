"""The queries of share/sql over the rows of a made-up fleet, two batches of it: ClickHouse, DuckDB
and a slow program give the same answers. Rows that arrive twice count once, and snapshots that
arrived in part not at all."""
# ctest: real release-only

import collections
import json
import os
import tempfile
import unittest

import databases

HOSTS = 60
FUNCTIONS = {"a1": ["main"], "a2": ["serve"], "a3": ["work", "inlined"], "b1": ["poll"],
             "b2": ["lock"], "b3": [], "b4": ["exchange"]}
STACKS = {"idle": ["a1", "a2", "b1"], "busy": ["a1", "a2", "a3"], "stuck": ["a1", "a3", "b2"],
          "none": ["a1", "b3"], "peer": ["a1", "b4"]}


def frame(name):
    return "%040x+0x%s" % (ord(name[0]), name[1])


def name_of(frame_name):
    return " > ".join(FUNCTIONS[frame_name]) or "libx.so+0x%s" % frame_name[1]


def names_of(stack):
    return " > ".join(name_of(name) for name in STACKS[stack])


def snapshot(batch, time_ns, host, pid, threads, labels=(), ran=False):
    """The rows of one process. threads: (stack, wait, key, owner pid, owner tid). ran: of a recording
    in which the first one also ran."""
    key = "boot/%d/%d" % (pid, time_ns)
    for name, functions in FUNCTIONS.items():
        yield {"table": "frames", "frame": frame(name), "names": functions,
               "sources": ["x.c:1"] * len(functions), "module": "/usr/lib/libx.so"}
    for stack, frames in STACKS.items():
        yield {"table": "stacks", "stack": stack, "frames": [frame(name) for name in frames]}
    rows = [(tid, "S", *thread) for tid, thread in enumerate(threads, pid)]
    if ran:
        rows.insert(0, (pid, "R", threads[0][0], "", "", *threads[0][3:]))
    for tid, state, stack, wait, wait_key, owner_pid, owner_tid in rows:
        yield {"table": "threads", "snapshot": key, "batch": batch, "host": host, "pid": pid,
               "tid": tid, "thread": "t", "state": state, "end": "root", "stack": stack,
               "samples": 1, "wait": wait, "wait_text": "%s of %d" % (wait, tid),
               "wait_key": wait_key, "owner_pid": owner_pid, "owner_tid": owner_tid,
               "deadlock": 0, "stuck": 0}
    yield {"table": "snapshots", "snapshot": key, "batch": batch, "host": host, "pid": pid,
           "time_ns": time_ns, "boot_id": "boot", "start": 1, "process": "p", "exe": "/p",
           "labels": list(labels), "consistent": 1, "stopped_ns": 0, "threads": len(rows),
           "verdict": "", "problem": "" if threads else "denied"}


def fleet(batch, now_ns, broken):
    """Rows by host."""
    for number in range(HOSTS):
        host = "h%02d" % number
        pid = 1000 + 10 * number
        threads = [("idle", "poll", "", 0, 0)] * 3 + [("busy", "", "", 0, 0)]
        if number == broken:
            threads[1:3] = [("stuck", "mutex", "futex:x", pid, pid + 3)] * 2
        if number in (7, 8):
            threads.append(("peer", "receive", "tcp:10.0.0.7:1-10.0.0.8:2", 0, 0))
        if number == 20:
            threads[0] = ("none", "read", "", 4711, 0)  # a process that is not in the batch
        if number == 30:
            threads = []
        yield list(snapshot(batch, now_ns + number, host, pid, threads,
                            ["x=y", "SLURM_PROCID=%d" % number] if number % 2 else [],
                            threads and (number % 3 == 0 or number == 20)))


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


class Slow:
    """The same questions, answered in the most obvious way."""

    def __init__(self, rows):
        self.snapshots = {row["snapshot"]: row for row in rows if row["table"] == "snapshots"}
        self.threads = [row for row in rows if row["table"] == "threads" and row["batch"] == "two"]
        self.before = [row for row in rows if row["table"] == "threads" and row["batch"] == "one"]

    def by_stack(self, threads):
        groups = collections.defaultdict(list)
        for row in threads:
            groups[row["stack"]].append(row)
        return groups

    def rank(self, row):
        for label in self.snapshots[row["snapshot"]]["labels"]:
            if label.startswith("SLURM_PROCID="):
                return label.split("=")[1]
        return "%s/%d" % (row["host"], row["pid"])

    @staticmethod
    def count(rows, column):
        return len({row[column] for row in rows})

    @staticmethod
    def once(rows):
        """Of each thread one row."""
        return list({(row["snapshot"], row["tid"]): row for row in rows}.values())

    def count_threads(self, rows):
        return len(self.once(rows))

    def groups(self):
        return sorted(([self.count_threads(rows), self.count(rows, "snapshot"), self.count(rows, "host"),
                        min(row["host"] for row in rows), max(row["wait"] for row in rows),
                        names_of(stack)] for stack, rows in self.by_stack(self.threads).items()),
                      key=lambda row: (-row[0], row[-1]))

    def odd(self):
        processes = sum(row["batch"] == "two" for row in self.snapshots.values())
        result = []
        for stack, rows in self.by_stack(self.threads).items():
            count = self.count(rows, "snapshot")
            if count == 1 or count * 20 <= processes:
                result += [[count, row["host"], row["pid"], self.rank(row), row["tid"],
                            row["thread"], max(r["wait_text"] for r in rows if
                                               (r["snapshot"], r["tid"]) == (row["snapshot"], row["tid"])),
                            names_of(stack)]
                           for row in self.once(rows)]
        return sorted(result, key=lambda row: (row[0], row[1], row[2], row[4]))

    def tree(self):
        nodes = collections.defaultdict(list)
        for row in self.threads:
            names = [name_of(name) for name in STACKS[row["stack"]]]
            for depth in range(1, len(names) + 1):
                nodes[" > ".join(names[:depth]), depth, names[depth - 1]].append(row)
        return [[*key, self.count_threads(rows), self.count(rows, "host"), self.count(rows, "snapshot"),
                 sorted({self.rank(row) for row in rows})]
                for key, rows in sorted(nodes.items())]

    def blockers(self):
        owners = collections.Counter(
            (row["host"], row["owner_pid"], row["owner_tid"] or row["owner_pid"])
            for row in self.once(row for row in self.threads if row["owner_pid"]))
        by_id = {(row["host"], row["pid"], row["tid"]): row for row in self.threads}
        result = []
        for key, waiting in owners.items():
            row = by_id.get(key)
            result.append(["owner", *key, waiting, "", row["wait_text"] if row else "",
                           names_of(row["stack"]) if row else ""])
        keys = collections.defaultdict(list)
        for row in self.threads:
            keys[row["wait_key"]].append(row)
        for key, rows in keys.items():
            if key and self.count(rows, "snapshot") > 1:
                result += [["key", row["host"], row["pid"], row["tid"], self.count_threads(rows) - 1, key,
                            row["wait_text"], names_of(row["stack"])] for row in rows]
        return sorted(result, key=lambda row: (-row[4], row[0], row[1], row[2], row[3]))

    def difference(self):
        before, after = self.by_stack(self.before), self.by_stack(self.threads)
        result = []
        for stack in set(before) | set(after):
            old, new = before[stack], after[stack]
            counts = [self.count_threads(rows) for rows in (old, new)]
            if counts[0] != counts[1]:
                result.append([*counts, self.count(old, "snapshot"), self.count(new, "snapshot"),
                               names_of(stack)])
        return sorted(result, key=lambda row: row[-1])


class Queries(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        second = 10 ** 9
        cls.whole = [rows for batch, now, broken in (("one", 100, -1), ("two", 200, 42))
                     for rows in fleet(batch, now * second, broken)]
        cut = list(snapshot("two", 201 * second, "cut", 9000, [("stuck", "mutex", "", 0, 0)] * 4))
        cls.parts = [b"".join(map(lines, cls.whole[i:i + 20]))
                     for i in range(0, len(cls.whole), 20)]
        cls.parts += cls.parts[2:5]  # sent again after a failure
        cls.at_line_end = lines(cut[:-2])
        cls.within_line = lines(cut)[:-7]
        # the last row came, a row before is missing
        lost = list(snapshot("two", 202 * second, "lost", 9100, [("stuck", "mutex", "", 0, 0)] * 4))
        cls.lost = lines(lost[:-2] + lost[-1:])
        slow = Slow([row for rows in cls.whole for row in rows])
        cls.expected = {name: databases.plain(getattr(slow, name)()) for name in databases.QUERIES}

    def check(self, results):
        for name, rows in zip(databases.QUERIES, results):
            with self.subTest(query=name):
                self.assertGreater(len(rows), 1)
                self.assertEqual(rows, self.expected[name])

    def test_clickhouse(self):
        server = databases.ClickHouse(self)
        for part in self.parts + [self.at_line_end, self.lost]:
            server.insert(part)
        with self.assertRaises(AssertionError):  # and the server says so
            server.insert(self.within_line)
        self.check([server.rows(databases.read(databases.query_path(name)))
                    for name in databases.QUERIES])
        self.assertEqual(server.rows("SELECT host, pid FROM incomplete ORDER BY host"),
                         [["cut", "9000"], ["lost", "9100"]])
        self.assertEqual(server.rows("SELECT * FROM unnamed"), [[frame("b3"), "/usr/lib/libx.so"]])
        server.insert(lines([{"table": "frames", "frame": frame("b3"), "names": ["found"],
                              "sources": [""], "module": ""}]))
        self.assertEqual(server.rows("SELECT * FROM unnamed"), [])
        self.assertEqual(server.rows("SELECT names FROM stack_names WHERE stack = 'none'"),
                         [["main > found"]])

    def test_duckdb(self):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        for number, part in enumerate(self.parts + [self.within_line, self.lost]):
            with open(os.path.join(directory, "%d.ndjson" % number), "wb") as file:
                file.write(part)
        paths = [databases.query_path(name) for name in databases.QUERIES]
        *results, incomplete, unnamed = databases.duckdb(
            self, directory + "/*.ndjson", paths + [
                "SELECT host, pid FROM incomplete ORDER BY host", "SELECT * FROM unnamed"])
        self.check(results)
        self.assertEqual(incomplete, [["cut", "9000"], ["lost", "9100"]])
        self.assertEqual(unnamed, [[frame("b3"), "/usr/lib/libx.so"]])


if __name__ == "__main__":
    unittest.main(verbosity=2)
