#!/usr/bin/env python3
"""
What two builds of stacksnap print about the same processes: everything but times and counters
must be equal.

    ./dev bench -- outputs --against=OLD [--only=WORD]

Each command and format is run by both builds, one after the other, on programs of targets/ and,
if they are installed, on Python, node, Java, Go and MariaDB. A difference that a second pair of
runs does not have is a thread that moved, and does not count.
"""

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
import time

COMMANDS = (
    ("text", ["{pid}"]), ("all", ["-a", "{pid}"]), ("verbose", ["-a", "-v", "{pid}"]),
    ("json", ["-f", "json", "{pid}"]), ("gdb", ["-f", "gdb", "{pid}"]),
    ("eu", ["-f", "eu", "{pid}"]), ("folded", ["-f", "folded", "{pid}"]),
    ("dot", ["-f", "dot", "{pid}"]), ("rows", ["-f", "rows", "{pid}"]),
    ("raw", ["--raw", "{pid}"]), ("native", ["--native", "-a", "{pid}"]),
    ("stop", ["--mode=stop", "{pid}"]), ("no-stop", ["--mode=no-stop", "{pid}"]),
    ("no-waits", ["--no-waits", "{pid}"]), ("no-group", ["--no-group", "{pid}"]),
    ("few", ["--max-frames=2", "{pid}"]),
    ("series", ["-c", "3", "-i", "100ms", "{pid}"]),
    ("series-json", ["-c", "3", "-i", "100ms", "-f", "json", "{pid}"]),
    ("series-each", ["-c", "2", "-i", "100ms", "--each", "{pid}"]),
    ("series-pprof", ["-c", "2", "-i", "100ms", "-f", "folded", "{pid}"]),
    ("hang", ["hang", "--for=300ms", "{pid}"]),
    ("hang-json", ["hang", "--for=300ms", "--json", "{pid}"]),
    ("diff", ["diff", "--after=300ms", "{pid}"]),
    ("diff-json", ["diff", "--after=300ms", "-f", "json", "{pid}"]),
    ("recording", ["-f", "recording", "-o", "{out}", "{pid}"]),
    ("minidump", ["-f", "minidump", "-o", "{out}", "{pid}"]),
)
# What may differ between two runs.
VARIABLE = (
    (r'"(time_ns|time|stopped_ns|stopped_us|running_stopped_ns|copied_bytes|elapsed_ns|run_ns|'
     r'ready_ns|runs|voluntary|forced|left_ns|threads_stopped|timer_left_ns|read_ns|samples|'
     r'begin_ns|end_ns|monotonic_ns|waiting_ns|duration_ns)": ?-?[0-9.]+', r'"\1": N'),
    (r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+Z?", "TIME"),
    (r"[0-9.,]+ (ns|us|µs|ms|s|min|h|KiB|MiB|bytes|B)\b", r"N \1"),
    (r"(woken|switches|times|run) [0-9]+|[0-9]+ (times|switches)", "N times"),
    # The tool itself: its output goes to a pipe of the process that the program waits for.
    (r"written by [0-9]+ \([^)]*\)(, perhaps others)?", "written by TOOL"),
)


def start(command, ready=True):
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    if ready:
        line = process.stdout.readline()
        if b"ready" not in line:
            process.kill()
            raise RuntimeError("%s printed %r" % (command, line))
    else:
        time.sleep(2)
    return process


def programs(directory, word):
    """(name, command, whether it says that it is ready) of what is there."""
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        if os.path.isfile(path) and os.access(path, os.X_OK) and "." not in name:
            yield name, [path], True
    for name, command in (
            ("python", ["python3", "-c", "import threading,time\n"
                        "lock=threading.Lock(); lock.acquire()\n"
                        "[threading.Thread(target=lock.acquire).start() for i in range(4)]\n"
                        "print('ready', flush=True)\ntime.sleep(1000)"]),
            ("node", ["node", "-e", "console.log('ready');setTimeout(()=>{}, 1e6)"])):
        yield name, command, True


def members(line):
    """A line; of a JSON document the members, sorted, because their order has no meaning."""
    try:
        return json.dumps(json.loads(re.sub(r"\bN\b", "0", line)), indent=0,
                          sort_keys=True).splitlines() if line[:1] == "{" else [line]
    except ValueError:
        return [line]


def normal(text):
    for pattern, replacement in VARIABLE:
        text = re.sub(pattern, replacement, text)
    return [part for line in text.splitlines() for part in members(line)]


def run(tool, arguments, pid):
    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "out")
        command = [tool] + [a.format(pid=pid, out=out) for a in arguments]
        try:
            result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                                    timeout=60, errors="replace", text=True)
        except subprocess.TimeoutExpired:
            return ["timeout"]
        lines = ["status %d" % result.returncode] + normal(result.stdout) + \
            ["stderr:"] + normal(result.stderr)
        if os.path.exists(out):
            with open(out, "rb") as file:
                head = file.read(4)
            if "recording" in arguments:
                shown = subprocess.run([tool, "report", out], capture_output=True, text=True,
                                       errors="replace", timeout=60, check=False)
                lines += normal(shown.stdout.replace(directory, ""))
            lines.append("%r, %d KiB" % (head, os.path.getsize(out) // 8192 * 8))
        return lines


def compare(old, new, name, pid, only):
    failed = 0
    for what, arguments in COMMANDS:
        if only and not any(word in what or word in name for word in only):
            continue
        for _ in range(3):
            before, after = run(old, arguments, pid), run(new, arguments, pid)
            if before == after:
                break
        else:
            again = run(old, arguments, pid)
            if again != before and sorted(again) != sorted(before):
                print("%s, %s: changes by itself" % (name, what))
                continue
            failed += 1
            print("%s, %s:" % (name, what))
            for line in list(difflib.unified_diff(before, after, "old", "new", n=1,
                                                  lineterm=""))[:24]:
                print("    " + line[:220])
            sys.stdout.flush()
    return failed


def main():
    parser = argparse.ArgumentParser(description="Compare what two builds print.")
    parser.add_argument("--against", required=True, metavar="OLD")
    parser.add_argument("--only", action="append", metavar="WORD")
    parser.add_argument("--program", action="append", metavar="NAME")
    options = parser.parse_args()
    new, directory = os.environ["STACKSNAP"], os.environ["TARGETS"]
    failed = count = 0
    for name, command, ready in programs(directory, options.only):
        if options.program and name not in options.program:
            continue
        try:
            process = start(command, ready)
        except (RuntimeError, OSError) as error:
            print("%s: left out: %s" % (name, error))
            continue
        try:
            time.sleep(0.3)
            failed += compare(options.against, new, name, process.pid, options.only)
            count += 1
        finally:
            process.kill()
            process.wait()
    print("%d programs, %d differences" % (count, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
