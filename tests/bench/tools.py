"""The tools that are compared, and the cost of one run."""

import json
import os
import subprocess
import time

from programs import end_with_parent


class Tool:
    """
    name: of the row. command: the pid is appended. rounds: runs per program.
    parse: extracts the tool's own measurements from its output.
    """

    def __init__(self, name, command, rounds=1, parse=None, expected=(0,), whole=True):
        self.name = name
        self.command = command
        self.rounds = rounds
        self.parse = parse
        self.expected = expected
        self.whole = whole  # prints all stacks, so that wall time is comparable


def parse_floor(text):
    found = json.loads(text)
    return {"freeze_ns": found["freeze_ns"], "threads": found["threads"]}


def parse_stacksnap(text):
    found = json.loads(text)
    capture = found["capture"]
    result = {"freeze_ns": capture["stopped_ns"], "threads": len(found["threads"])}
    if capture.get("running_stopped_ns") is not None:
        result["running_ns"] = capture["running_stopped_ns"]
    return result


def all_tools(stacksnap, binaries, rounds, slow_rounds):
    floor = os.path.join(binaries, "floor")
    return [
        Tool("stacksnap", [stacksnap], rounds, expected=(0, 1)),
        Tool("  no cache", [stacksnap, "--no-cache"], rounds, expected=(0, 1)),
        Tool("  names only", [stacksnap, "--format=eu", "--no-source", "--no-inlines"],
             rounds, expected=(0, 1)),
        Tool("  json", [stacksnap, "--format=json"], rounds, parse_stacksnap, (0, 1)),
        Tool("floor at FIFO", [floor, "-f", "1"], rounds, parse_floor, whole=False),
        Tool("floor, batched", [floor, "-b", "-f", "1"], rounds, parse_floor,
             whole=False),
        Tool("floor", [floor], rounds, parse_floor, whole=False),
        Tool("eu-stack", ["eu-stack", "-p"], max(3, rounds // 2)),
        Tool("gdb", ["gdb", "-batch", "-nx", "-iex", "set debuginfod enabled off",
                     "-ex", "thread apply all bt", "-p"], slow_rounds),
    ]


def others_running():
    """The number of runnable threads of the machine, except this one."""
    with open("/proc/stat", encoding="ascii") as file:
        for line in file:
            if line.startswith("procs_running "):
                return int(line.split()[1]) - 1
    return 0


class Runner:
    """
    Runs tools through the launcher "measure"; their output goes to one file. Waits briefly
    for a moment when nothing else runs on the machine, because competing load would be
    measured as well.
    """

    STEP_S = 0.005

    def __init__(self, binaries, directory, limit_s):
        self.measure = os.path.join(binaries, "measure")
        self.output = os.path.join(directory, "output")
        self.limit_s = limit_s
        self.patience_s = 0

    def await_quiet(self, program):
        """Whether only the program itself runs; waits for up to patience_s in all."""
        while True:
            if max(others_running(), others_running()) <= program.running:
                return True
            if self.patience_s <= 0:
                return False
            self.patience_s -= self.STEP_S
            time.sleep(self.STEP_S)

    def run(self, command):
        launched = subprocess.run(
            [self.measure, str(self.limit_s), self.output] + command,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, check=True, timeout=self.limit_s + 30, preexec_fn=end_with_parent)
        cost = json.loads(launched.stdout)
        cost["wall_ns"] = cost.pop("end_ns") - cost.pop("start_ns")
        cost["stderr"] = launched.stderr.strip()[-300:]
        return cost

    def text(self):
        with open(self.output, encoding="utf-8", errors="replace") as file:
            return file.read()

    def once(self, tool, program):
        """Runs tool once on program; includes the pause that the program saw."""
        quiet = self.await_quiet(program)
        if program.meter:
            program.meter.reset()
        result = self.run(tool.command + [str(program.pid)])
        if program.meter and not result["timed_out"]:
            result["pause_ns"] = program.meter.max_gap_ns()
        result["quiet"] = quiet and others_running() <= program.running
        if result["timed_out"]:
            program.resume()
        elif result["status"] not in tool.expected:
            result["error"] = f"exit status {result['status']}: {result['stderr']}"
        elif tool.parse:
            result.update(tool.parse(self.text()))
        return result

    def nothing(self, program, window_ns):
        """The noise: the longest gap in such a window without any tool."""
        self.await_quiet(program)
        program.meter.reset()
        time.sleep(window_ns / 1e9)
        return program.meter.max_gap_ns()
