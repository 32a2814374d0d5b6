#!/usr/bin/env python3
"""
Two builds of stacksnap, side by side in one run: what has changed between them.

    ./dev bench -- --against=OLD            what a snapshot costs
    ./dev bench -- record --against=OLD     what recording costs

Each round runs both builds, in alternating order, on the same process. A ratio is the median
over the rounds of new / old: whatever else the machine does hits both halves of a pair alike.

Recording: CPU time for each tick, of the recorder and of every process that it starts, with
1,000 threads of which 10 run. The first tick, which lists all threads and reads the unwind
tables, is part of it; longer recordings (--seconds) dilute it.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from functools import partial
from statistics import median

import programs
import record
import tools

COLUMNS = (("pause_ns", "pause ms", 1e6), ("freeze_ns", "freeze ms", 1e6),
           ("wall_ns", "wall ms", 1e6), ("cpu_ns", "CPU ms", 1e6),
           ("max_rss_kb", "memory MiB", 1024))
RECORDED = (("cpu_per_tick_us", "CPU us per tick", 1), ("missed_percent", "% missed", 1),
            ("slowdown_cpu_percent", "% slowdown", 1), ("max_rss_kb", "memory MiB", 1024))


def parse_options():
    parser = argparse.ArgumentParser(description="Compare two builds of stacksnap.")
    parser.add_argument("what", nargs="?", choices=("snapshots", "record"),
                        default="snapshots")
    parser.add_argument("--against", metavar="OLD", required=True,
                        help="the stacksnap to compare with")
    parser.add_argument("--rounds", type=int, help="pairs of runs (default: 25; record: 7)")
    parser.add_argument("--only", metavar="WORD", action="append",
                        help="only programs whose kind contains WORD; may be repeated")
    parser.add_argument("--seconds", type=int, default=5,
                        help="record: length of each recording (default: 5)")
    parser.add_argument("--rate", type=int, default=99,
                        help="record: ticks per second (default: 99)")
    options = parser.parse_args()
    options.rounds = options.rounds or (7 if options.what == "record" else 25)
    if not os.access(options.against, os.X_OK):
        parser.error("%s is not a program" % options.against)
    return options


def alternate(rounds, measure_new, measure_old):
    """Pairs (new, old); each build goes first in every other round."""
    pairs = []
    for turn in range(rounds):
        if turn % 2:
            old = measure_old()
            pairs.append((measure_new(), old))
        else:
            new = measure_new()
            pairs.append((new, measure_old()))
    return pairs


def compare(pairs, columns):
    """{column: (median new, median old, median ratio)} of the pairs that have it."""
    found = {}
    for key, _, unit in columns:
        both = [(new[key], old[key]) for new, old in pairs if key in new and key in old]
        ratios = [new / old for new, old in both if old > 0 and not key.endswith("_percent")]
        if both:
            found[key] = (median(new for new, _ in both) / unit,
                          median(old for _, old in both) / unit,
                          median(ratios) if ratios else None)
    return found


def show(title, found, columns):
    print(title)
    for key, name, _ in columns:
        if key in found:
            new, old, ratio = found[key]
            print("  %-18s new %10.3f   old %10.3f   %s" % (
                name, new, old, "-" if ratio is None else "%.2fx" % ratio), flush=True)


# Snapshots -------------------------------------------------------------------------------

def snapshot_tools(binary):
    """As users run it, and with everything stopped, whatever the default mode is."""
    stop = [binary, "--mode=stop"]
    return [tools.Tool("default", [binary], expected=(0, 1)),
            tools.Tool("--mode=stop", stop, expected=(0, 1)),
            tools.Tool("--mode=stop --format=json", stop + ["--format=json"],
                       parse=tools.parse_stacksnap, expected=(0, 1))]


def compare_snapshots(case, runner, options, new_binary):
    kind, start = case
    with start() as program:
        runner.patience_s = 8
        results = {}
        for new, old in zip(snapshot_tools(new_binary), snapshot_tools(options.against)):
            pairs = alternate(options.rounds, partial(runner.once, new, program),
                              partial(runner.once, old, program))
            errors = {run["error"] for pair in pairs for run in pair if "error" in run}
            for error in errors:
                print("  %s: %s" % (new.name, error), file=sys.stderr)
            found = compare(pairs, COLUMNS)
            show("%s, %s" % (program.title, new.name), found, COLUMNS)
            results[new.name] = found
        return {"kind": kind, "tools": results}


def snapshots(options, stacksnap, targets, binaries, directory):
    cases = [("meter-%d" % count, partial(programs.PauseMeter, targets, count, 10))
             for count in (10, 100, 1000)]
    cases += [("busy-20", partial(programs.Busy, targets, 20)),
              ("mariadb", programs.MariaDB), ("node", programs.Node),
              ("python", programs.Python)]
    runner = tools.Runner(binaries, directory, 30)
    results = []
    for case in cases:
        if options.only and not any(word in case[0] for word in options.only):
            continue
        try:
            results.append(compare_snapshots(case, runner, options, stacksnap))
        except programs.Unavailable as reason:
            print("%s skipped: %s" % (case[0], reason), file=sys.stderr)
    return results


# Recordings ------------------------------------------------------------------------------

def record_once(binary, work, options, directory):
    path = os.path.join(directory, "recording")
    if os.path.exists(path):
        os.unlink(path)
    alone = work.measure(1)
    process = subprocess.Popen(
        [binary, "record", "-r", str(options.rate), "-o", path, str(work.pid)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    beside = work.measure(options.seconds)
    process.send_signal(signal.SIGINT)
    stderr = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    cpu_s = usage.ru_utime + usage.ru_stime  # includes the children it waited for
    counts = record.numbers(stderr)
    if process.returncode not in (0, 1) or not counts["ticks"]:
        raise SystemExit("%s record failed: %s" % (binary, stderr))
    return {"cpu_per_tick_us": 1e6 * cpu_s / counts["ticks"], "max_rss_kb": usage.ru_maxrss,
            "missed_percent": 100 * counts["missed;"] / (counts["missed;"] + counts["ticks"]),
            "slowdown_cpu_percent": record.slowdown(alone[1], beside[1])}


def recordings(options, stacksnap, directory):
    results = []
    for threads, running in ((1000, 10), (1000, 0), (100, 1)):
        work = record.Work(directory, threads, running)
        try:
            pairs = alternate(options.rounds,
                              partial(record_once, stacksnap, work, options, directory),
                              partial(record_once, options.against, work, options, directory))
        finally:
            work.end()
        found = compare(pairs, RECORDED)
        show("%d threads, %d run, %d Hz, %d x %d s" % (
            threads, running, options.rate, options.rounds, options.seconds), found, RECORDED)
        results.append({"threads": threads, "running": running, "found": found})
    return results


def main():
    options = parse_options()
    build = os.environ.get("BUILD") or record.BUILD
    stacksnap = os.environ.get("STACKSNAP") or os.path.join(build, "stacksnap")
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        if options.what == "record":
            results = recordings(options, stacksnap, directory)
        else:
            results = snapshots(options, stacksnap, os.path.join(build, "targets"),
                                os.path.join(build, "tests", "bench"), directory)
    path = os.path.join(build, "bench-against-%s.json" % options.what)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"new": stacksnap, "old": options.against, "results": results}, file,
                  indent=1)
    print("written to " + path)


if __name__ == "__main__":
    sys.exit(main())
