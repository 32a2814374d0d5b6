#!/usr/bin/env python3
"""
Measures the cost of recordings: programs with running and blocked threads, alone and with a
recorder, an eu-stack loop and a gdb loop, in turn. Measured is how long the running threads
actually ran, as they see it: per second (which includes the tool's use of the CPUs), and per
second of their CPU time (the cost of stops and of entering and leaving them).

Environment: STACKSNAP and BUILD, as for bench.py.
"""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from functools import partial
from statistics import median

from programs import BUILD, HERE, STACKSNAP

ROUNDS, WINDOW_S = 3, 5
OWN, CONTROL = "stacksnap record", "a loop that uses as much CPU"
TICKS = 1e9 / os.sysconf("SC_CLK_TCK")

# title, threads (0: a Python server), running, rate, other busy processes, and limits in percent: the slowdown per
# CPU time of the running threads, and missed ticks, which begin after the first listing of all
# threads. (With more running threads than CPUs the tool's own CPU time slows them as well; this is
# shown, too.)
CPUS = os.cpu_count() or 1
CASES = [
    ("1,000 threads, 10 run, 99 Hz", 1000, 10, 99, 0, 1.0, 5),
    ("1,000 threads, 10 run, 99 Hz, %d other busy processes" % (3 * CPUS), 1000, 10, 99,
     3 * CPUS, None, 5),
    ("1,000 threads, 1 runs, 99 Hz", 1000, 1, 99, 0, 1.0, 2.5),
    ("100 threads, 1 runs, 1,000 Hz", 100, 1, 1000, 0, None, 2.0),
    ("100 threads, 0 run, 1,000 Hz", 100, 0, 1000, 0, None, 2.0),
    ("Python server, 50 threads, 99 Hz", 0, 1, 99, 0, None, 5),
]


class Work:
    def __init__(self, directory, threads, running):
        self.path = os.path.join(directory, "ran")
        self.running = running
        program = os.path.join(BUILD, "tests/bench/work")
        self.process = subprocess.Popen([program, self.path, str(threads), str(running)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"ready\n"
        self.pid = self.process.pid

    def ran(self):
        with open(self.path, "rb") as file:
            return sum(struct.unpack("<%dQ" % self.running, file.read(8 * self.running)))

    def cpu_s(self):
        with open("/proc/%d/stat" % self.pid, encoding="latin-1") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * TICKS / 1e9

    def measure(self, seconds=WINDOW_S):
        """The time for which the threads ran, per second of the clock and of CPU time."""
        begin = time.monotonic(), self.ran(), self.cpu_s()
        time.sleep(seconds)
        end = time.monotonic(), self.ran(), self.cpu_s()
        done = end[1] - begin[1]
        cpu = end[2] - begin[2]
        return done / (end[0] - begin[0]), done / cpu if cpu else 0

    def end(self):
        self.process.kill()
        self.process.wait()


class Server(Work):
    """Of a Python server, the requests count instead of the time. With more than one CPU, it and its
    client have the first one, so that the recorder's own CPU time slows nothing."""

    def __init__(self, directory):  # pylint: disable=super-init-not-called
        self.path = os.path.join(directory, "served")
        self.running = 1
        pin = ["taskset", "-c", "0"] if CPUS > 1 and shutil.which("taskset") else []
        self.process = subprocess.Popen(pin + [sys.executable,
                                               os.path.join(HERE, "python_server.py"), self.path],
                                        stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"ready\n"
        self.pid = self.process.pid


def recorder(pid, rate, directory):
    path = os.path.join(directory, "recording-%d" % time.monotonic_ns())
    return [STACKSNAP, "record", "-r", str(rate), "-o", path, str(pid)]


def perf(graph, pid, rate, directory):
    """On-CPU samples; "dwarf": with copies of stacks, for programs without frame pointers."""
    return ["perf", "record", "-q", "--call-graph", graph, "-e", "cpu-clock", "-F", str(rate),
            "-p", str(pid), "-o", os.path.join(directory, "perf.data")]


def loop(command):
    return ["sh", "-c", "while :; do %s >/dev/null 2>&1; done" % command]


def beside(command, work):
    """Measures while a command runs. Returns also its messages and its share of a CPU."""
    before = os.times()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, start_new_session=True)
    begin = time.monotonic()
    measured = work.measure()
    os.killpg(process.pid, 9 if command[0] == "sh" else 2)
    _, stderr = process.communicate()
    after = os.times()
    cpu = (after.children_user + after.children_system - before.children_user -
           before.children_system)
    return measured, stderr.decode(), cpu / (time.monotonic() - begin)


def spin(share):
    """Uses as much of a CPU as the recorder does, and does nothing to the program: processors that
    share a core, a cache or a host slow each other."""
    return [sys.executable, "-c", """
import time
while True:
    begin = time.perf_counter()
    while time.perf_counter() - begin < %f:
        pass
    time.sleep(%f)
""" % (0.01 * min(share, 1), 0.01 * max(1 - share, 0))]


def slowdown(alone, with_it):
    return 100 * (1 - with_it / alone) if alone else 0


def numbers(stderr):
    words = stderr.replace(",", "").split()
    found = {"ticks": 0, "missed;": 0, "samples": 0}
    for before, word in zip(words, words[1:]):
        if word in found and before.isdigit():
            found[word] = int(before)
    return found


def tools(running):
    """Yields names, and functions that make the commands."""
    yield OWN, recorder
    if shutil.which("eu-stack"):
        yield "eu-stack, in a loop", lambda pid, *_: loop("eu-stack -p %d" % pid)
    if shutil.which("gdb"):
        yield "gdb, in a loop", lambda pid, *_: loop(
            "gdb -p %d -batch -ex 'thread apply all bt'" % pid)
    if running and shutil.which("perf"):
        yield "perf record -g", partial(perf, "fp")
        yield "perf record, dwarf", partial(perf, "dwarf")


def run_tool(name, make, threads, running, rate, directory):
    # new, because some tools leave it stopped
    work = Work(directory, threads, running) if threads else Server(directory)
    alone, with_it, cpus, counts = [], [], [], []
    try:
        for _ in range(ROUNDS if name in (OWN, CONTROL) else 1):
            alone.append(work.measure())
            measured, stderr, cpu = beside(make(work.pid, rate, directory), work)
            with_it.append(measured)
            cpus.append(cpu)
            counts.append(numbers(stderr))
    finally:
        work.end()
    missed = sum(count["missed;"] for count in counts)
    due = missed + sum(count["ticks"] for count in counts)
    clock, cpu_time = [slowdown(median(run[i] for run in alone),
                                median(run[i] for run in with_it)) for i in (0, 1)]
    return {"slowdown_percent": clock, "slowdown_cpu_percent": cpu_time,
            "cpu_share": median(cpus), "missed_percent": 100 * missed / due if due else None}


def run_case(title, threads, running, rate, others, allowed, may_miss, directory):
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(others)]
    try:
        result = {"case": title,
                  "tools": {name: run_tool(name, make, threads, running, rate, directory)
                            for name, make in tools(running)}}
        if not threads:
            share = result["tools"][OWN]["cpu_share"]
            result["tools"][CONTROL] = run_tool(CONTROL, lambda *_: spin(share), threads, running,
                                                rate, directory)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    own = result["tools"][OWN]
    result["met"] = ((allowed is None or own["slowdown_cpu_percent"] <= allowed) and
                     own["missed_percent"] <= may_miss)
    return result


def show(result):
    print("\n%s: %s" % (result["case"], "met" if result["met"] else "NOT MET"))
    for name, found in result["tools"].items():
        missed = found["missed_percent"]
        print("  %-28s slower by %6.2f %% (for its CPU time %6.2f %%), takes %5.1f %% of a CPU%s"
              % (name, found["slowdown_percent"], found["slowdown_cpu_percent"],
                 100 * found["cpu_share"],
                 "" if missed is None else ", %.1f %% of ticks missed" % missed))


def main():
    results = []
    with tempfile.TemporaryDirectory() as directory:
        for case in CASES:
            results.append(run_case(*case, directory))
            show(results[-1])
    with open(os.path.join(BUILD, "bench-record.json"), "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
    return 0 if all(result["met"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
