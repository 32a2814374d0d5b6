#!/usr/bin/env python3
"""
Measures snapshots by stacksnap, eu-stack and gdb, and the bare sequence of system calls
(floor.c), in turn in one run, on targets with known threads and on real programs.

Environment: STACKSNAP (the tool), TARGETS (the directory of pause_meter and busy), BUILD
(the build directory, for floor and measure, which are compiled if they are missing).
Everything has a time limit, and every child is killed at the end.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from statistics import median

import compare
import programs
import tables
import tools

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
HELPERS = ("floor", "measure")
GRACE_S = 10  # beyond its share of time, for a third round
NOISE_WINDOW_NS = 2_000_000_000  # no baseline window is longer


def parse_options():
    parser = argparse.ArgumentParser(description="Measure the cost of snapshots.")
    parser.add_argument("--rounds", type=int, help="runs of stacksnap on each program (default: 25)")
    parser.add_argument("--quick", action="store_true", help="take less than two minutes")
    parser.add_argument("--json", metavar="FILE", help="file for the results (default: build/bench.json)")
    parser.add_argument("--only", metavar="WORD", action="append",
                        help="only programs whose kind contains WORD; may be repeated")
    parser.add_argument("--skip", metavar="TOOL", action="append", default=[],
                        help="skip a tool; may be repeated")
    parser.add_argument("--shield", action="store_true",
                        help="raise the priority of the targets")
    parser.add_argument("--limit", type=int, metavar="SECONDS",
                        help="time limit for one run of a tool (default: 90)")
    parser.add_argument("--total", type=int, metavar="SECONDS",
                        help="start nothing new after this time (default: 480)")
    options = parser.parse_args()
    options.rounds = options.rounds or (10 if options.quick else 25)
    options.limit = options.limit or (10 if options.quick else 90)
    options.total = options.total or (90 if options.quick else 480)
    return options


def place():
    """The paths of the build, the tool and the targets."""
    build = os.environ.get("BUILD") or os.path.join(ROOT, "build")
    stacksnap = os.environ.get("STACKSNAP") or os.path.join(build, "stacksnap")
    targets = os.environ.get("TARGETS") or os.path.join(build, "targets")
    return build, os.path.abspath(stacksnap), targets


def helpers(build, directory):
    """The directory of floor and measure, compiled there if the build has none."""
    for found in (os.path.join(build, "tests", "bench"), build):
        if all(os.path.exists(os.path.join(found, name)) for name in HELPERS):
            return found
    for name in HELPERS:
        subprocess.run([os.environ.get("CC", "cc"), "-std=gnu17", "-D_GNU_SOURCE", "-O2",
                        "-o", os.path.join(directory, name),
                        os.path.join(HERE, name + ".c")], check=True)
    return directory


def all_cases(targets, quick):
    """(kind, number of blocked threads or None, constructor)"""
    depths = {1: (10,), 100: (10, 100), 1000: (10,)} if quick else \
        {count: (10, 100) for count in (1, 10, 100, 1000)}
    cases = [(f"meter-{count}x{depth}", count,
              partial(programs.PauseMeter, targets, count, depth))
             for count in depths for depth in depths[count]]
    cases += [("mariadb", None, programs.MariaDB), ("node", None, programs.Node),
              ("python", None, programs.Python)]
    return cases + [(f"busy-{count}", None, partial(programs.Busy, targets, count))
                    for count in ((20,) if quick else (20, 200))]


def rounds_of(tool, runs, budget_s, limit_s):
    """Whether tool gets another round; slow tools get fewer."""
    if not runs:
        return True
    spent = sum(run["wall_ns"] for run in runs) / 1e9
    last = runs[-1]
    if last["timed_out"] or "error" in last or last["wall_ns"] / 1e9 > limit_s / 2:
        return False
    return len(runs) < tool.rounds and spent < budget_s


def measure(program, runner, every, deadline, options):
    """Runs all tools in turn, round after round, until deadline; also measures the noise."""
    runs = {tool.name: [] for tool in every}
    noise = []
    budget_s = 1.5 if options.quick else 5
    runner.patience_s = 2 if options.quick else 8
    for turn in range(max(tool.rounds for tool in every)):
        wanted = [tool for tool in every
                  if rounds_of(tool, runs[tool.name], budget_s, options.limit)]
        for tool in wanted:
            runs[tool.name].append(runner.once(tool, program))
        first = runs[every[0].name]
        if program.meter and wanted:
            window = median(run["wall_ns"] for run in first)
            noise.append(runner.nothing(program, min(window, NOISE_WINDOW_NS)))
        late_s = time.monotonic() - deadline
        if not wanted or late_s > GRACE_S or (late_s > 0 and turn >= 2):
            break
    return runs, noise


def names_of(program, runner, stacksnap):
    def shown(command):
        runner.run(command + [str(program.pid)])
        return compare.parse_eu(runner.text())

    ours = [stacksnap, "--format=eu"]
    awake = program.awake()
    before = shown(ours)
    theirs = shown(["eu-stack", "-p"])
    after = shown(ours)
    awake |= program.awake()
    return compare.compare(before, theirs, after, awake)


def case_result(kind, blocked, program, every, runs, noise):
    result = {"kind": kind, "blocked": blocked, "title": program.title,
              "threads": program.threads(), "order": [tool.name for tool in every],
              "tools": {name: tables.summary(found) for name, found in runs.items()},
              "over_limit_s": {}, "errors": {}, "runs": runs}
    for name, found in runs.items():
        if found and found[-1]["timed_out"]:
            result["over_limit_s"][name] = round(found[-1]["wall_ns"] / 1e9)
        if found and "error" in found[-1]:
            result["errors"][name] = found[-1]["error"]
    if noise:
        result["noise"] = {"median": median(noise), "max": max(noise)}
    return result


def run_case(case, runner, every, stacksnap, deadline, options):
    kind, blocked, start = case
    with start() as program:
        if options.shield:
            program.shield()
        runs, noise = measure(program, runner, every, deadline, options)
        result = case_result(kind, blocked, program, every, runs, noise)
        if not kind.startswith("busy") and "eu-stack" in runs and "stacksnap" in runs:
            result["names"] = names_of(program, runner, stacksnap)
        return result


def run_cases(cases, runner, every, stacksnap, options):
    """Each case gets an equal share of the remaining time."""
    end, results = time.monotonic() + options.total, []
    for index, case in enumerate(cases):
        left_s = end - time.monotonic()
        if left_s < 0:
            print(f"bench: {case[0]} skipped: no time left", file=sys.stderr)
            continue
        print(f"bench: {case[0]}", file=sys.stderr, flush=True)
        deadline = time.monotonic() + left_s / (len(cases) - index)
        try:
            results.append(run_case(case, runner, every, stacksnap, deadline, options))
        except programs.Unavailable as reason:
            print(f"bench: {case[0]} skipped: {reason}", file=sys.stderr)
    return results


def usable(tool):
    return shutil.which(tool.command[0]) is not None


def choose_tools(everything, options):
    chosen = [tool for tool in everything if tool.name.strip() not in options.skip]
    for tool in chosen:
        if not usable(tool):
            print(f"bench: {tool.name.strip()} skipped: no {tool.command[0]}",
                  file=sys.stderr)
    return [tool for tool in chosen if usable(tool)]


def write(path, everything):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(everything, file, indent=1)
    print(f"\nwritten to {path}")


def main():
    options = parse_options()
    build, stacksnap, targets = place()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        binaries = helpers(build, directory)
        runner = tools.Runner(binaries, directory, options.limit)
        every = choose_tools(tools.all_tools(stacksnap, binaries, options.rounds,
                                             1 if options.quick else 3), options)
        cases = [case for case in all_cases(targets, options.quick)
                 if not options.only or any(word in case[0] for word in options.only)]
        results = run_cases(cases, runner, every, stacksnap, options)
    found = tables.goals(results)
    print(tables.render_table(results))
    print()
    print(tables.render_goals(found))
    write(options.json or os.path.join(ROOT, "build", "bench.json"),
          {"schema": "stacksnap-bench/1", "cpus": os.cpu_count(),
           "kernel": os.uname().release, "shielded": options.shield,
           "cases": results, "goals": found})
    return 0 if results else 2


if __name__ == "__main__":
    sys.exit(main())
