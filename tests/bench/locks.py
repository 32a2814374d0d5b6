#!/usr/bin/env python3
"""
Measures what reading locks adds to a freeze: programs whose threads all wait for a mutex, and
MariaDB, with wait analysis and without (--no-waits), in turn. stacksnap measures the freeze
itself, from the first interrupt to the last release.

Environment: STACKSNAP and BUILD, as for bench.py; ROUNDS, the number of pairs for each program.
"""

import json
import os
import subprocess
import sys
from statistics import median

import programs
from programs import BUILD, STACKSNAP

ROUNDS = int(os.environ.get("ROUNDS") or 200)
ALLOWED_PERCENT = 10


def waiting(count):
    target = os.path.join(BUILD, "targets", "deadlock")
    return programs.Program("%d threads waiting for a mutex" % count,
                            [target, "normal", "2", str(count - 2)])


def freeze_ns(pid, *options):
    words = [STACKSNAP, "-f", "json", "--raw", "-n", "1", *options, str(pid)]
    result = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, timeout=60)
    return json.loads(result.stdout)["capture"]["stopped_ns"]


def run_case(program):
    with_locks, without = [], []
    for turn in range(ROUNDS):
        order = ((with_locks, ()), (without, ("--no-waits",)))
        for found, options in order if turn % 2 else order[::-1]:
            found.append(freeze_ns(program.pid, *options))
    return {"case": program.title, "threads": program.threads(), "rounds": ROUNDS,
            "with_ns": median(with_locks), "without_ns": median(without),
            "more_percent": 100 * (median(with_locks) / median(without) - 1),
            "lowest_percent": 100 * (min(with_locks) / min(without) - 1)}


def main():
    results = []
    for start in (lambda: waiting(100), lambda: waiting(1000), programs.MariaDB):
        try:
            with start() as program:
                results.append(run_case(program))
        except programs.Unavailable as reason:
            print("skipped: %s" % reason, file=sys.stderr)
            continue
        found = results[-1]
        print("%-44s freeze %8.3f ms, without locks %8.3f ms: %+.1f %% (lowest: %+.1f %%)"
              % ("%s, %d threads" % (found["case"], found["threads"]),
                 found["with_ns"] / 1e6, found["without_ns"] / 1e6, found["more_percent"],
                 found["lowest_percent"]), flush=True)
    with open(os.path.join(BUILD, "bench-locks.json"), "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
    return 0 if all(found["more_percent"] <= ALLOWED_PERCENT for found in results) else 1


if __name__ == "__main__":
    sys.exit(main())
