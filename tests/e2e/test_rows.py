"""Format rows: tables, ids that are equal in all processes and on all hosts, keys of waits,
labels, and rows for processes that cannot be captured."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile

from harness import EndToEnd, main, read_text, wait_until

GONE = 2 ** 22 + 1  # above the largest pid
COLUMNS = {
    "snapshots": "snapshot batch host pid time_ns boot_id start process exe labels consistent "
                 "stopped_ns threads verdict problem",
    "threads": "snapshot batch host pid tid thread state end stack samples wait wait_text wait_key "
               "owner_pid owner_tid deadlock stuck",
    "stacks": "stack frames",
    "frames": "frame names sources module",
}
PEER = """
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.recv(1)
"""


def waits_in(pid, call):
    return read_text("/proc/%d/syscall" % pid).startswith(str(call) + " ")


class Rows(EndToEnd):
    def rows(self, *arguments, status=(0,)):
        self.result = self.run_tool(*arguments, "-f", "rows", status=status)
        rows = [json.loads(line) for line in self.result.stdout.splitlines()]
        for row in rows:
            self.assertEqual(list(row)[1:], COLUMNS[row["table"]].split())
            self.assertNotIn(None, row.values())
        return rows

    def table(self, rows, name):
        return [row for row in rows if row["table"] == name]

    def test_tables(self):
        """They say what JSON says; the row of the snapshot is the last one."""
        target = self.start("deadlock")
        rows = self.rows(target.pid, "--batch=x", "--label=a=b", "--label=c=d=e")
        snapshot = self.snap(target.pid)
        self.assertEqual([row["table"] for row in rows].index("snapshots"), len(rows) - 1)
        last = rows[-1]
        self.assertEqual((last["batch"], last["pid"], last["labels"], last["problem"]),
                         ("x", target.pid, ["a=b", "c=d=e"], ""))
        stat = read_text("/proc/%d/stat" % target.pid)
        self.assertEqual(last["start"], int(stat[stat.rindex(")"):].split()[20]))
        self.assertEqual(last["boot_id"], read_text("/proc/sys/kernel/random/boot_id").strip())
        threads = self.table(rows, "threads")
        self.assertEqual(last["threads"], len(threads))
        stacks = {row["stack"]: row["frames"] for row in self.table(rows, "stacks")}
        frames = {row["frame"]: row for row in self.table(rows, "frames")}
        self.assertEqual(len(stacks), len(self.table(rows, "stacks")))
        modules = snapshot.data["modules"]
        for row, thread in zip(threads, snapshot.threads):
            self.assertEqual((row["snapshot"], row["batch"], row["tid"], row["end"]),
                             (last["snapshot"], "x", thread["tid"], thread["end"]))
            outer = [frame for frame in reversed(thread["all_frames"])]
            self.assertEqual(
                stacks[row["stack"]],
                ["%s+%s" % (modules[frame["module"]]["build_id"], frame["lookup_offset"])
                 for frame in outer if not frame["inlined"]])
            self.assertEqual([name for frame in stacks[row["stack"]]
                              for name in frames[frame]["names"]],
                             [frame["symbol"] for frame in outer if frame["symbol"]])
            wait = thread["wait"]
            self.assertEqual(row["wait"], wait["kind"])
            self.assertEqual(row["owner_tid"], wait.get("owner_tid") or 0)
            self.assertEqual(row["deadlock"], int(thread["name"].startswith("locker")))
        self.assertRegex(str(self.table(self.rows("--raw", target.pid), "frames")), r"'names': \[\]")

    def test_equal_stacks(self):
        """In two processes with different addresses, on two hosts; and the order counts."""
        targets = [self.start("deadlock") for _ in range(2)]
        here = self.rows(targets[0].pid)
        there = self.rows(targets[1].pid)
        if os.geteuid() == 0:
            result = subprocess.run(["unshare", "-u", "sh", "-c", "hostname elsewhere && exec \"$0\" "
                                     "-f rows %d" % targets[1].pid, os.environ["STACKSNAP"]],
                                    stdout=subprocess.PIPE, check=False)
            if result.returncode == 0:
                there = [json.loads(line) for line in result.stdout.splitlines()]
                self.assertEqual(there[-1]["host"], "elsewhere")

        def stacks(rows):
            return [(row["thread"], row["stack"]) for row in self.table(rows, "threads")
                    if row["thread"] != "deadlock"]  # it may run
        self.assertEqual(stacks(here), stacks(there), (here, there))
        self.assertEqual(len({stack for _, stack in stacks(here)}), 2)
        self.assertNotEqual(here[-1]["snapshot"], there[-1]["snapshot"])

    def test_hang(self):
        target = self.start("deadlock")
        rows = self.rows("hang", "--for=200ms", target.pid, status=(3,))
        self.assertEqual(rows[-1]["verdict"], "deadlock")
        self.assertEqual(sorted(row["thread"] for row in self.table(rows, "threads")
                                if row["stuck"]), ["behind-0", "locker-0", "locker-1"])

    def test_failures(self):
        """A process that cannot be captured has a row that says why."""
        rows = self.rows(os.getpid(), GONE, status=(1,))
        self.assertEqual([(row["pid"], row["threads"] > 0, row["problem"]) for row in
                          self.table(rows, "snapshots")],
                         [(os.getpid(), True, ""),
                          (GONE, False, "there is no process %d" % GONE)])
        self.assertEqual(len({row["batch"] for row in self.table(rows, "snapshots")}), 1)

    def test_environment(self):
        environment = {"RANK": "7", "EMPTY": "", "XRANK": "8", "PATH": os.environ["PATH"]}
        process = subprocess.Popen(["sleep", "1000"], env=environment)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_until(lambda: waits_in(process.pid, 230) or waits_in(process.pid, 35), "it to sleep")
        rows = self.rows(process.pid, "--env=RANK", "--env=NONE", "--env=EMPTY")
        self.assertEqual(rows[-1]["labels"], ["RANK=7", "EMPTY="])

    def test_keys(self):
        """Both ends of a connection and of a pipe have the same key."""
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        client = subprocess.Popen([sys.executable, "-c", PEER, str(server.getsockname()[1])])
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        connection, address = server.accept()
        reader = subprocess.Popen([sys.executable, "-c", "import socket; socket.socket("
                                   "fileno=%d).recv(1)" % connection.fileno()],
                                  pass_fds=(connection.fileno(),))
        self.addCleanup(reader.wait)
        self.addCleanup(reader.kill)
        connection.close()
        for process in (client, reader):
            wait_until(lambda: waits_in(process.pid, 45), "it to receive")  # recvfrom
        keys = [row["wait_key"] for row in self.table(self.rows(client.pid, reader.pid), "threads")]
        self.assertEqual(keys[0], keys[1])
        self.assertRegex(keys[0], r"^tcp:[0-9a-f-]{36}/127\.0\.0\.1:\d+-127\.0\.0\.1:\d+$")
        self.assertIn("127.0.0.1:%d" % address[1], keys[0])
        pipe = os.pipe()
        cats = [subprocess.Popen(["cat"], stdin=pipe[0], stdout=subprocess.DEVNULL)
                for _ in range(2)]
        for cat in cats:
            self.addCleanup(cat.wait)
            self.addCleanup(cat.kill)
            wait_until(lambda: waits_in(cat.pid, 0), "it to read")
        os.close(pipe[0])
        rows = self.table(self.rows(*(cat.pid for cat in cats)), "threads")
        self.assertEqual(rows[0]["wait_key"], rows[1]["wait_key"])
        self.assertRegex(rows[0]["wait_key"], r"^pipe:[0-9a-f-]{36}/\[\d+\]$")
        if "perhaps others" not in rows[0]["wait_text"]:  # there are too many to search
            self.assertEqual(rows[0]["owner_pid"], os.getpid(), rows[0])
        os.close(pipe[1])

    def test_core(self):
        """The rows of a core file have the stacks of the process."""
        target = self.start("deadlock")
        live = self.rows(target.pid)
        core = self.make_core(target.pid)
        if core:
            rows = self.rows("core", core)
            self.assertEqual([row["stack"] for row in self.table(rows, "threads")],
                             [row["stack"] for row in self.table(live, "threads")])

    def make_core(self, pid):
        """By gcore(1) of gdb; None if there is none."""
        if not shutil.which("gcore"):
            return None
        directory = self.enterContext(tempfile.TemporaryDirectory())
        done = subprocess.run(["gcore", "-o", directory + "/core", str(pid)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        path = "%s/core.%d" % (directory, pid)
        return path if done.returncode == 0 and os.path.exists(path) else None

    def test_wrong_usage(self):
        for words in (["--label=x"], ["--label==x"], ["--env="], ["--env=A=B"]):
            with self.subTest(words=words):
                self.run_tool(*words, os.getpid(), status=(64,))


if __name__ == "__main__":
    main()
