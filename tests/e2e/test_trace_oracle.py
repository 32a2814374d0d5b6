"""The stacks of stacksnap trace are those of perf: both observe the same calls at the same time, in a
program of ours and in MariaDB, whose functions are named as in its C++ source. perf unwinds its
copies of the stacks by DWARF."""

# ctest: real release-only timeout=300

import collections
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import tracefs
from harness import EndToEnd, LIMIT_S, STACKSNAP, main, read_text, wait_until
from mariadb import Connection, MariaDbServer

PAGE = 4096
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class Oracle(EndToEnd):
    def setUp(self):
        super().setUp()
        if not tracefs.mount():
            self.skipTest("needs root, and tracefs with uprobe_events")
        if not shutil.which("perf"):
            self.skipTest("perf is missing: install linux-perf")
        self.work = tempfile.mkdtemp(prefix="stacksnap-oracle-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)

    def begin_perf(self, pid, program, address):
        """Records the calls of the function at an address; returns when the probe is set."""
        event = "stacksnap_test_%d:entry" % os.getpid()
        self.addCleanup(subprocess.run, ["perf", "probe", "-q", "--del", event], **QUIET)
        subprocess.run(["perf", "probe", "-q", "-x", program, "--add", "%s=%s" % (event, address)],
                       check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       timeout=LIMIT_S)
        self.data = os.path.join(self.work, "perf.data")
        control, acknowledged = (os.path.join(self.work, name) for name in ("control", "ack"))
        os.mkfifo(control)
        os.mkfifo(acknowledged)
        perf = subprocess.Popen(
            ["perf", "record", "-q", "--call-graph", "dwarf,16384", "-e", event, "-p", str(pid),
             "-D", "-1", "--control", "fifo:%s,%s" % (control, acknowledged), "-o", self.data],
            **QUIET)
        self.addCleanup(perf.wait)
        self.addCleanup(perf.kill)
        with open(control, "w", encoding="ascii") as file:
            file.write("enable\n")
        with open(acknowledged, encoding="ascii") as file:
            self.assertIn("ack", file.readline())
        return perf

    def end_perf(self, perf):
        """How often each stack was hit: addresses of frames in their pages, innermost first. What
        perf subtracts from an address depends on its version."""
        perf.send_signal(signal.SIGINT)
        perf.wait(LIMIT_S)
        text = subprocess.run(["perf", "script", "-i", self.data, "--no-inline", "-F", "ip"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=4 * LIMIT_S,
                              check=True).stdout.decode()
        stacks = collections.Counter()
        for block in text.split("\n\n"):
            addresses = [int(line, 16) % PAGE
                         for line in re.findall(r"^\s+([0-9a-f]+)", block, re.M)]
            if addresses:
                stacks[tuple(addresses)] += 1
        return stacks

    def begin_trace(self, pid, function):
        path = os.path.join(self.work, "trace")
        with open(path, "wb") as out:
            process = subprocess.Popen([STACKSNAP, "trace", str(pid), "-f", "json", "--stack", "-p",
                                        function], stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_until(lambda: '"begin"' in read_text(path) or process.poll() is not None, "trace")
        return process, path

    def end_trace(self, process, path):
        """Likewise; and the names of the innermost functions."""
        process.send_signal(signal.SIGINT)
        process.wait(LIMIT_S)
        events = [json.loads(line) for line in read_text(path).splitlines()]
        self.assertEqual(events[-1].get("lost"), 0, events[-1])
        known, names, stacks = {}, set(), collections.Counter()
        for event in events:
            if event["event"] == "stack":
                self.assertEqual(event["end"], "root", event)
                frames = [frame for frame in event["frames"] if not frame["inlined"]]
                # perf moves return addresses back by a byte, into the call.
                known[event["stack"]] = tuple(
                    (int(frame["pc"], 16) - (1 if number else 0)) % PAGE
                    for number, frame in enumerate(frames))
                names.add(event["frames"][0]["symbol"])
            elif event["event"] == "hit":
                stacks[known[event["stack"]]] += 1
        return stacks, names

    def compare(self, pid, program, function, calls):
        """Both observe calls(); returns the number of hits."""
        listed = self.run_tool("trace", pid, "--list", "-p", function).stdout.decode()
        lines = listed.splitlines()
        self.assertEqual(len(lines), 1, listed)
        perf = self.begin_perf(pid, program, lines[0].split()[0])
        trace = self.begin_trace(pid, function)
        calls()
        ours, names = self.end_trace(*trace)
        theirs = self.end_perf(perf)
        self.assertTrue(ours, read_text(trace[1]))
        self.assertEqual(ours, theirs, "\nours:\n%s\nperf's:\n%s" % (
            "\n".join(map(str, ours.items())), "\n".join(map(str, theirs.items()))))
        return sum(ours.values()), names


class OwnProgram(Oracle):
    def test_stacks(self):
        target = self.start("traced")

        def calls():
            for line in b"many 3 5\n", b"name\n":
                target.process.stdin.write(line)
                self.assertEqual(target.process.stdout.readline(), b"done\n")

        hits, _ = self.compare(target.pid, os.path.join(os.environ["TARGETS"], "traced"),
                               "checkpoint", calls)
        self.assertEqual(hits, 16)


class MariaDb(MariaDbServer, Oracle):
    def test_stacks_and_counts(self):
        server = self.start_server()
        connection = Connection(self.path)
        self.addCleanup(connection.socket.close)

        def calls():
            for number in range(11):
                self.assertEqual(connection.rows("SELECT %d" % number), [[str(number)]])

        hits, names = self.compare(server.pid, self.server, "dispatch_command", calls)
        self.assertEqual(hits, 11)
        self.assertTrue(all(name.startswith("dispatch_command(") for name in names), names)


if __name__ == "__main__":
    main()
