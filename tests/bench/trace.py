#!/usr/bin/env python3
"""
Measures what a hit of a probe costs the thread that calls the function, in CPU time: stacksnap trace,
perf record with a probe of perf probe, bpftrace (which only counts), and gdb with a breakpoint, in
turn. Needs root.

Environment: STACKSNAP and BUILD, as for bench.py.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from statistics import median

from programs import BUILD, STACKSNAP

TRACED = os.path.join(BUILD, "targets/traced")
ROUNDS, HITS, HITS_GDB, GOAL = 5, 500000, 2000, 1.2
TICKS = os.sysconf("SC_CLK_TCK")
PROBE = "stacksnap_bench:checkpoint"


class Traced:
    """A program that calls checkpoint() as often as it is told."""

    def __init__(self):
        self.process = subprocess.Popen([TRACED], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"ready\n"
        self.pid = self.process.pid

    def cpu_s(self):
        with open("/proc/%d/stat" % self.pid, encoding="latin-1") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def tell(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == b"done\n"

    def text(self):
        """A hash of its code, which a probe changes."""
        self.process.stdin.write(b"text\n")
        self.process.stdin.flush()
        lines = [self.process.stdout.readline()]
        while lines[-1] != b"done\n":
            lines.append(self.process.stdout.readline())
        return lines[:-1]

    def measure(self, hits):
        """Nanoseconds for each call: CPU time, and time of the clock."""
        cpu, clock = self.cpu_s(), time.monotonic()
        self.tell("many 1 %d" % hits)
        return (1e9 * (self.cpu_s() - cpu) / hits, 1e9 * (time.monotonic() - clock) / hits)

    def end(self):
        self.process.kill()
        self.process.wait()


def tools(directory):
    """Names, commands by pid, and how many hits to measure."""
    yield ("stacksnap trace", lambda pid: [
        STACKSNAP, "trace", str(pid), "-p", "checkpoint", "-o",
        os.path.join(directory, "trace-%d" % time.monotonic_ns())], HITS)
    if shutil.which("perf"):
        yield ("perf record", lambda pid: [
            "perf", "record", "-q", "-e", PROBE, "-p", str(pid), "-o",
            os.path.join(directory, "perf.data")], HITS)
    if shutil.which("bpftrace"):
        yield ("bpftrace, count", lambda pid: [
            "bpftrace", "-p", str(pid), "-e", "uprobe:%s:checkpoint { @ = count(); }" % TRACED],
            HITS)
    if shutil.which("gdb"):
        yield ("gdb", lambda pid: [
            "gdb", "-q", "-nx", "-p", str(pid), "-batch", "-ex", "set pagination off", "-ex",
            "break checkpoint", "-ex", "ignore 1 1000000000", "-ex", "continue"], HITS_GDB)


def with_tool(target, command, hits):
    """Measures once the tool has set its breakpoint."""
    before = target.text()
    # GDB reads commands at the end of its input.
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, start_new_session=True)
    try:
        end = time.monotonic() + 60
        while target.text() == before:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("%s sets no probe: %s" % (command[0],
                                                             process.stderr.read(2000)))
            time.sleep(0.05)
        target.measure(min(hits, 1000))
        return target.measure(hits)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def probe_of_perf():
    """Defines the event of perf probe."""
    subprocess.run(["perf", "probe", "-q", "-x", TRACED, "--add",
                    "stacksnap_bench:checkpoint=checkpoint"], check=True)


def run(directory):
    found = {}
    for _ in range(ROUNDS):
        for name, make, hits in tools(directory):
            if name == "gdb" and "gdb" in found:
                continue  # takes long
            target = Traced()
            try:
                alone = target.measure(HITS)
                beside = with_tool(target, make(target.pid), hits)
            finally:
                target.end()
            # A thread that gdb stops takes no CPU time meanwhile.
            at = 1 if name == "gdb" else 0
            found.setdefault(name, []).append(beside[at] - alone[at])
    return {name: median(values) for name, values in found.items()}


def main():
    has_perf = shutil.which("perf")
    if os.geteuid() != 0:
        sys.exit("bench trace: needs root")
    if has_perf:
        probe_of_perf()
    try:
        with tempfile.TemporaryDirectory() as directory:
            found = run(directory)
    finally:
        if has_perf:
            subprocess.run(["perf", "probe", "-q", "--del", PROBE], check=False)
    for name, cost in found.items():
        print("%-16s %10.0f ns for each hit" % (name, cost))
    met = True
    if has_perf:
        ratio = found["stacksnap trace"] / found["perf record"]
        met = ratio <= GOAL
        print("stacksnap takes %.2f times the time of perf: %s" % (
            ratio, "met" if met else "NOT MET, the goal is %.1f" % GOAL))
    with open(os.path.join(BUILD, "bench-trace.json"), "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
