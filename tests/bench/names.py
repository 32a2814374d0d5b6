#!/usr/bin/env python3
"""
Measures what names, lines and inlined calls take: the first snapshot, with an empty cache of
names, and a later one. Beside it eu-stack, and the bare sequence of system calls (floor.c). The
commands run in turn; CPU time, with that of child processes, and wall time are medians.

The large C++ program is made of copies of large.cc with other names, of which only the first one
runs: the linker drops parts of the others. Building it takes about a minute.

Environment: STACKSNAP and BUILD, as for bench.py; ROUNDS; COPIES of large.cc (default: 90, with
which the program has 400 MB).
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from statistics import median

import programs
from programs import BUILD, HERE, STACKSNAP

ROUNDS = int(os.environ.get("ROUNDS") or 15)
COPIES = int(os.environ.get("COPIES") or 90)
SLOW_ROUNDS = 3
NAMES = ("--no-source", "--no-inlines")

MAIN = """
#include <pthread.h>
#include <stdio.h>
int work_0(int);
static void *first(void *data) { work_0(40); return data; }
static void *second(void *data) { work_0(20); return data; }
int main(void)
{
	pthread_t threads[2];
	if (pthread_create(&threads[0], 0, first, 0) || pthread_create(&threads[1], 0, second, 0))
		return 1;
	puts("ready");
	fflush(stdout);
	return pthread_join(threads[0], 0);
}
"""


class Large(programs.Program):
    """A C++ program with hundreds of megabytes of debug information."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="bench-large-")
        try:
            path = self.build()
            size = os.stat(path).st_size / 1e6
            super().__init__("C++ program of %.0f MB" % size, [path])
        except BaseException:
            shutil.rmtree(self.directory, ignore_errors=True)
            raise
        time.sleep(1)  # until both threads wait

    def build(self):
        def run(*command):
            subprocess.run(command, cwd=self.directory, check=True)

        run("g++", "-std=c++17", "-g", "-O1", "-c", os.path.join(HERE, "large.cc"), "-o",
            "part.o")
        listing = subprocess.run(["nm", "--defined-only", "-g", "part.o"], check=True,
                                 cwd=self.directory, stdout=subprocess.PIPE, text=True).stdout
        symbols = [line.split()[-1] for line in listing.splitlines()]
        for copy in range(COPIES):
            with open(os.path.join(self.directory, "renamed"), "w", encoding="ascii") as file:
                for symbol in symbols:
                    file.write("%s %s_%d\n" % (symbol, symbol, copy))
            run("objcopy", "--redefine-syms=renamed", "part.o", "part-%d.o" % copy)
        with open(os.path.join(self.directory, "main.c"), "w", encoding="ascii") as file:
            file.write(MAIN)
        run("gcc", "-g", "-c", "main.c", "-o", "main.o")
        run("g++", "main.o", *["part-%d.o" % copy for copy in range(COPIES)], "-o", "large")
        return os.path.join(self.directory, "large")

    def end(self):
        super().end()
        shutil.rmtree(self.directory, ignore_errors=True)


def run_once(command, cache):
    """Milliseconds of CPU time and of wall time."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL,
                               env=dict(os.environ, XDG_CACHE_HOME=cache))
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise programs.Unavailable("%s fails with status %d" % (command[0], process.returncode))
    return 1e3 * (usage.ru_utime + usage.ru_stime), 1e3 * (time.monotonic() - begin)


def measure(program):
    """(cpu, wall) of each way, by its name."""
    pid = str(program.pid)
    found = {}
    for turn in range(ROUNDS):
        for name, command in (("all", [STACKSNAP]), ("names only", [STACKSNAP, *NAMES])):
            with tempfile.TemporaryDirectory() as cache:
                found.setdefault(name + ", first", []).append(run_once([*command, pid], cache))
                found.setdefault(name + ", later", []).append(run_once([*command, pid], cache))
        floor = os.path.join(BUILD, "tests", "bench", "floor")
        found.setdefault("bare sequence", []).append(run_once([floor, pid], "/"))
        if turn < SLOW_ROUNDS and shutil.which("eu-stack"):
            for name, command in (("eu-stack", ["eu-stack", "-p"]),
                                  ("eu-stack -s -i", ["eu-stack", "-s", "-i", "-p"])):
                found.setdefault(name, []).append(run_once([*command, pid], "/"))
    return {name: [median(run[i] for run in runs) for i in range(2)]
            for name, runs in found.items()}


def main():
    results = []
    for start in (programs.MariaDB, programs.Python, programs.Node, Large):
        try:
            with start() as program:
                found = {"case": program.title, "threads": program.threads(),
                         "ms": measure(program)}
        except (programs.Unavailable, subprocess.CalledProcessError, OSError) as reason:
            print("skipped: %s" % reason, file=sys.stderr)
            continue
        results.append(found)
        print("%s, %d threads" % (found["case"], found["threads"]))
        for name, (cpu, wall) in found["ms"].items():
            print("  %-20s CPU %8.1f ms, wall %8.1f ms" % (name, cpu, wall), flush=True)
    with open(os.path.join(BUILD, "bench-names.json"), "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
    return 0 if results else 2


if __name__ == "__main__":
    sys.exit(main())
