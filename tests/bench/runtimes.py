#!/usr/bin/env python3
"""
Measures what a snapshot of a Java, Go, JavaScript or Python program costs, by stacksnap and by
the tools that people use instead, in turn in one run: wall time, and the longest pause that the
program saw. One thread of each program reads the clock all the time and prints each gap; the row
"nothing" has the gaps of as long a time without any tool, as others use the machine, too.

Environment: STACKSNAP and BUILD, as for bench.py; ROUNDS, the number of runs of stacksnap
(default: 15; a third of it for the others).
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from statistics import median

from programs import BUILD, STACKSNAP, Program, Unavailable, end_with_parent, require

ROUNDS = int(os.environ.get("ROUNDS") or 15)
LIMIT_S = 120

JAVA = """
import java.util.concurrent.locks.LockSupport;
public class Meter {
    static void descend(int depth) {
        if (depth == 0)
            for (;;)
                LockSupport.park();
        descend(depth - 1);
    }
    public static void main(String[] words) throws Exception {
        for (int i = 0; i < 50; i++)
            new Thread(() -> descend(50)).start();
        Thread.sleep(1000);
        System.out.println("ready");
        long last = System.nanoTime();
        for (;;) {
            long now = System.nanoTime();
            if (now - last > 20000) {
                System.out.println(last + " " + now);
                now = System.nanoTime();
            }
            last = now;
        }
    }
}
"""

GO = """
package main
import ("fmt"; "os"; "syscall"; "time"; "unsafe")
func now() int64 {
    var t syscall.Timespec
    syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&t)), 0)
    return t.Sec*1000000000 + t.Nsec
}
func descend(depth int) {
    if depth == 0 {
        <-make(chan int)
    }
    descend(depth - 1)
}
func main() {
    for i := 0; i < 1000; i++ {
        go descend(10)
    }
    time.Sleep(time.Second)
    fmt.Println("ready")
    last := now()
    for {
        at := now()
        if at-last > 20000 {
            fmt.Fprintln(os.Stdout, last, at)
            at = now()
        }
        last = at
    }
}
"""

NODE = """
const { Worker } = require("worker_threads");
const fs = require("fs");
for (let i = 0; i < 4; i++)
    new Worker('Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)', { eval: true });
function descend(depth) {
    if (depth > 0)
        return descend(depth - 1);
    fs.writeSync(1, "ready\\n");
    let last = process.hrtime.bigint();
    for (;;) {
        let now = process.hrtime.bigint();
        if (now - last > 100000n) {
            fs.writeSync(1, last + " " + now + "\\n");
            now = process.hrtime.bigint();
        }
        last = now;
    }
}
setTimeout(() => descend(50), 1000);
"""

PYTHON = """
import threading, time
def descend(depth):
    if depth:
        return descend(depth - 1)
    threading.Event().wait()
for _ in range(50):
    threading.Thread(target=descend, args=(50,), daemon=True).start()
time.sleep(1)
print("ready", flush=True)
last = time.monotonic_ns()
while True:
    now = time.monotonic_ns()
    if now - last > 20000:
        print(last, now, flush=True)
        now = time.monotonic_ns()
    last = now
"""


class Metered(Program):
    """A program that prints the beginning and the end of each gap, in ns of CLOCK_MONOTONIC."""

    running = 1

    def __init__(self, title, command):
        super().__init__(title, command)
        self.gaps = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            first, _, last = line.partition(b" ")
            self.gaps.append((int(first), int(last)))

    def longest_ns(self, start, end):
        """The part of the longest gap that lies between two times."""
        time.sleep(0.02)  # for what it prints after the end
        return max((min(b, end) - max(a, start) for a, b in list(self.gaps)
                    if a < end and b > start), default=0)


def java(directory):
    with open(directory + "/Meter.java", "w", encoding="ascii") as file:
        file.write(JAVA)
    subprocess.run([require("javac"), "-d", directory, directory + "/Meter.java"], check=True)
    return Metered("Java, 50 threads of 50 methods",
                   [os.path.realpath(require("java")), "-Xmx256m", "-cp", directory, "Meter"])


def go(directory):
    with open(directory + "/meter.go", "w", encoding="ascii") as file:
        file.write(GO)
    subprocess.run([require("go"), "build", "-o", "meter", "meter.go"], cwd=directory, check=True,
                   env=dict(os.environ, GO111MODULE="off", GOFLAGS="", GOCACHE=directory + "/c"))
    return Metered("Go, 1,000 goroutines", [directory + "/meter"])


def node(_directory):
    return Metered("node, 4 workers", [require("node"), "-e", NODE])


def python(_directory):
    path = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    return Metered("Python, 50 threads of 50 functions", [os.path.realpath(path), "-c", PYTHON])


GDB = ["gdb", "-batch", "-nx", "-iex", "set debuginfod enabled off", "-ex",
       "thread apply all bt", "-p"]
TOOLS = [
    ("stacksnap", [STACKSNAP, "-n", "0"], None),
    ("jstack", ["jstack"], "Java"),
    ("py-spy", ["py-spy", "dump", "--pid"], "Python"),
    ("eu-stack", ["eu-stack", "-p"], None),
    ("gdb", GDB, None),
]


def run_once(command, program, wait_ns):
    """(wall, pause) in ns; without a command, waits."""
    start = time.monotonic_ns()
    if command:
        subprocess.run(command + [str(program.pid)], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_S,
                       check=False, preexec_fn=end_with_parent)
    else:
        time.sleep(wait_ns / 1e9)
    end = time.monotonic_ns()
    return end - start, program.longest_ns(start, end)


def run_case(program):
    tools = [(name, command) for name, command, only in TOOLS
             if shutil.which(command[0]) and (not only or program.title.startswith(only))]
    tools.insert(1, ("nothing", None))
    wall_ns = 0
    runs = {name: [] for name, _ in tools}
    for turn in range(ROUNDS):
        for name, command in tools:
            if turn % 3 == 0 or name in ("nothing", "stacksnap"):
                runs[name].append(run_once(command, program, wall_ns))
                wall_ns = runs["stacksnap"][-1][0]
    ours = median(wall for wall, _ in runs["stacksnap"])
    return {"case": program.title, "threads": program.threads(), "tools": {
        name: {"runs": len(found), "wall_ns": median(wall for wall, _ in found),
               "times": median(wall for wall, _ in found) / ours,
               "pause_ns": median(pause for _, pause in found),
               "longest_ns": max(pause for _, pause in found)}
        for name, found in runs.items()}}


def show(result):
    print("\n%s (%d threads)" % (result["case"], result["threads"]))
    print("%-10s %5s %10s %7s %12s %12s" % ("", "runs", "wall ms", "times", "pause ms", "longest ms"))
    for name, found in result["tools"].items():
        wall = ("-", "-") if name == "nothing" else (
            "%.1f" % (found["wall_ns"] / 1e6), "%.1f" % found["times"])
        print("%-10s %5d %10s %7s %12.3f %12.3f" % (
            name, found["runs"], *wall, found["pause_ns"] / 1e6, found["longest_ns"] / 1e6),
            flush=True)


def main():
    results = []
    for start in (java, go, node, python):
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o755)
            try:
                with start(directory) as program:
                    program.shield()
                    results.append(run_case(program))
            except Unavailable as reason:
                print("skipped: %s" % reason, file=sys.stderr)
                continue
        show(results[-1])
    with open(os.path.join(BUILD, "bench-runtimes.json"), "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
