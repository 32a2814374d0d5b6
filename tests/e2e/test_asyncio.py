"""Asyncio tasks: names, coroutines with lines, and what they wait for are those that asyncio and the
coroutines themselves have at the same moment.

Debian packages: python3. PYTHONS: more interpreters, separated by colons; MOMENTS: how many moments
are compared for each (default: 30)."""
# ctest: long-with-sanitizers

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import harness
import recording
from test_python import interpreters, snapshot

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.path.join(HERE, "asyncio_target.py")
MOMENTS = int(os.environ.get("MOMENTS", "30"))


class Program:
    def __init__(self, test, python, what):
        self.process = subprocess.Popen([python, TARGET, what], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1)
        test.addCleanup(self.stop)
        self.pid = self.process.pid
        assert self.process.stdout.readline() == "ready\n"

    def stop(self):
        self.process.kill()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def wait_for_call(self, number):
        """Until the main thread is in a system call with that number."""
        def is_there():
            return harness.read_text(f"/proc/{self.pid}/syscall").split()[0] == str(number)
        harness.wait_until(is_there, f"it is in system call {number}")


def text_of(*arguments, command=None):
    done = subprocess.run([harness.STACKSNAP, *([command] if command else []), *map(str, arguments)],
                          capture_output=True, text=True, timeout=harness.LIMIT_S, check=False)
    return done.stdout + done.stderr, done.returncode


def waits_between(pid):
    """Until diff waits for the second snapshot: it does so for longer than anything else."""
    seen = [None, 0]

    def is_still():
        text = harness.read_text(f"/proc/{pid}/status")
        switches = re.findall(r"ctxt_switches:\s*(\d+)", text)
        if switches != seen[0] or "State:\tS" not in text:
            seen[:] = switches, time.monotonic()
        return time.monotonic() - seen[1] > 0.4
    harness.wait_until(is_still, "the first snapshot")


def sleeping(test, python, what):
    """A program whose event loop sleeps."""
    program = Program(test, python, what)
    harness.wait_until(lambda: harness.task_states(program.pid)[program.pid] == "S", "it sleeps")
    return program


def awaited_by(task):
    """Not the task that holds a lock, which the target does not know."""
    of_lock = task["frames"] and task["frames"][0]["symbol"] == "Lock.acquire"
    return [] if of_lock else task["awaited_tasks"]


def described(taken):
    """As the target describes its tasks."""
    tasks = taken["tasks"]
    return {task["name"]: {
        "name": task["name"],
        "status": task["status"],
        "wait_reason": task["wait_reason"],
        "awaited": sorted(tasks[index]["name"] for index in awaited_by(task)),
        "frames": [[frame["symbol"], frame["file"], frame["line"] or 0]
                   for frame in task["frames"]],
    } for task in tasks}


class Asyncio(unittest.TestCase):
    def compare(self, taken, expected, python):
        found = described(taken)
        expected = {task["name"]: task for task in expected}
        if found != expected:
            self.fail(f"{python}: found\n{json.dumps(found, indent=1)}\nexpected\n"
                      f"{json.dumps(expected, indent=1)}\n"
                      + "\n".join(f"{name}: {found.get(name)}\n   {expected.get(name)}"
                                  for name in sorted(set(found) | set(expected))
                                  if found.get(name) != expected.get(name))
                      + json.dumps({key: taken[key] for key in taken if key.startswith("tasks_")}))

    def test_moments(self):
        """While a task runs, in a read() that the test ends."""
        for python in interpreters():
            with self.subTest(python=python):
                program = Program(self, python, "moments")
                statuses = {}
                for _ in range(MOMENTS):
                    program.wait_for_call(0)
                    taken = snapshot(program.pid)
                    program.process.stdin.write("x")
                    program.process.stdin.flush()
                    expected = json.loads(program.process.stdout.readline())
                    self.compare(taken, expected, python)
                    for task in taken["tasks"]:
                        statuses[task["status"]] = statuses.get(task["status"], 0) + 1
                        if task["status"] == "running":
                            self.assertEqual(task["tid"], program.pid, task)
                print(python, MOMENTS, "moments", statuses)
                self.assertEqual(set(statuses), {"runnable", "waiting", "running"})

    def test_idle(self):
        """While the event loop sleeps; nothing is stopped for it."""
        for python in interpreters():
            with self.subTest(python=python):
                program = sleeping(self, python, "idle")
                taken = snapshot(program.pid)
                self.assertEqual(taken["capture"]["threads_stopped"], 0, taken)
                os.kill(program.pid, signal.SIGUSR1)
                self.compare(taken, json.loads(program.process.stdout.readline()), python)
                text, status = text_of(program.pid)
                self.assertEqual(status, 0, text)
                self.assertRegex(text, r"\n2 tasks, waiting for Queue, event loop of thread "
                                 rf"{program.pid}: Task-2, Task-3\n  #0  .*\bget at .*queues\.py:\d+ "
                                 r"\[python\]\n  #1  queues at .*asyncio_target\.py:\d+")
                self.assertRegex(text, r"\n1 task, waiting for task Task-\d+, event loop")
                text, _ = text_of(program.pid, "--tasks=1")
                self.assertRegex(text, r"\n\d+ more tasks in \d+ groups; --tasks=all shows them\n")
                text, _ = text_of(program.pid, "--tasks=0")
                self.assertNotIn("asyncio task", text)

    def test_busy(self):
        """Tasks run all the time, on a process that is not stopped for them: what is shown was so;
        the others are counted."""
        for python in interpreters():
            with self.subTest(python=python):
                program = Program(self, python, "busy")
                compared = 0
                for _ in range(30):
                    taken = snapshot(program.pid)
                    found = described(taken)
                    if not taken["threads"][0]["frames"]:
                        continue  # it waits for a CPU, and nothing is known of its program
                    compared += 1
                    for task in found.values():
                        # Queues of which nobody takes anything
                        if task["name"] in ("Task-2", "Task-3"):
                            self.assertIn([frame[0].split(".")[-1] for frame in task["frames"]],
                                          (["get", "queues"],), taken)
                        self.assertTrue(task["frames"], taken)
                        self.assertIn(task["frames"][-1][0], (
                            "main", "queues", "forever", "tick", "leaf", "nested", "consume"), task)
                    # A task that is about to begin or end cannot be read.
                    missing = taken["tasks_changed"] + taken["tasks_unread"]
                    print(python, len(found), "tasks,", missing, "missing", flush=True)
                    self.assertGreater(len(found) + missing, 3, json.dumps(taken))
                    if compared == 3:
                        break
                self.assertGreater(compared, 0, json.dumps(taken))

    def test_crowd(self):
        """Each task that lives longer than the snapshot is shown or counted."""
        for python in interpreters():
            with self.subTest(python=python):
                program = Program(self, python, "crowd")
                for _ in range(30):
                    taken = snapshot(program.pid)
                    if taken["threads"][0]["frames"]:
                        break  # or it waits for a CPU, and nothing is known of its program
                outer = [task["frames"][-1]["symbol"] for task in taken["tasks"]]
                counts = {name: outer.count(name) for name in sorted(set(outer))}
                missing = taken["tasks_changed"] + taken["tasks_unread"]
                print(python, counts, missing, "missing", flush=True)
                note = (counts, missing, taken["threads"], taken["tasks_problem"])
                self.assertEqual(counts.get("stands"), 2000, note)
                busy = counts.get("runs", 0) + counts.get("makes", 0)
                self.assertGreaterEqual(busy + missing, 41, note)

    def test_each(self):
        """Each snapshot of a series has its tasks."""
        for python in interpreters():
            with self.subTest(python=python):
                program = sleeping(self, python, "idle")
                series = ["-i", "10ms", "-c", "3", program.pid]
                text, status = text_of("--each", "--tasks=all", "--format=json", *series)
                taken = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
                self.assertEqual((len(taken), status), (3, 0), text)
                os.kill(program.pid, signal.SIGUSR1)
                expected = json.loads(program.process.stdout.readline())
                for one in taken:
                    self.compare(one, expected, python)
                text, _ = text_of("--each", "--tasks=1", *series)
                self.assertEqual(len(re.findall(r"\n\d+ asyncio tasks in \d groups\n", text)), 3,
                                 text)
                text, _ = text_of("--each", *series)
                self.assertNotIn("asyncio task", text)

    def test_merged(self):
        """How many tasks of each group are in how many snapshots."""
        for python in interpreters():
            with self.subTest(python=python):
                program = sleeping(self, python, "idle")
                series = ["-i", "10ms", "-c", "3", program.pid]
                text, status = text_of("--tasks=all", "--format=json", *series)
                self.assertEqual(status, 0, text)
                taken = json.loads(text)
                os.kill(program.pid, signal.SIGUSR1)
                expected = json.loads(program.process.stdout.readline())
                self.assertEqual([capture["tasks"] for capture in taken["captures"]],
                                 [len(expected)] * 3, text)
                found = {}
                for group in taken["tasks"]:
                    self.assertEqual((group["snapshots"], group["least"], group["most"]),
                                     (3, len(group["names"]), len(group["names"])), group)
                    for name in group["names"]:
                        found[name] = [group["status"], [[frame["symbol"], frame["file"],
                                                          frame["line"]] for frame in group["frames"]]]
                self.assertEqual(found, {task["name"]: [task["status"], task["frames"]]
                                         for task in expected}, text)
                text, _ = text_of("--tasks=all", *series)
                self.assertRegex(text, r"\n\d asyncio tasks; \d groups\n")
                self.assertRegex(text, r"\nin all snapshots: 2 tasks, waiting for Queue, event loop "
                                 rf"of thread {program.pid}: Task-2, Task-3\n  #0  .*\bget at ")
                text, _ = text_of(*series)
                self.assertNotIn("asyncio task", text)

    def test_diff(self):
        """What became of the tasks of the first snapshot, while a task waited for a byte; and that
        nothing changes without one."""
        changes = {"stays": "unchanged", "moves": "moved", "begins": "new", "ends": "gone",
                   "blocks": "moved"}
        for python in interpreters():
            with self.subTest(python=python):
                program = sleeping(self, python, "step")
                same = json.loads(text_of("--after=10ms", "-f", "json", program.pid,
                                          command="diff")[0])
                self.assertEqual({task["name"]: task["change"] for task in same["tasks"]},
                                 {name: "unchanged" for name in ("stays", "moves", "ends",
                                                                 "blocks", "Task-1")}, same)
                tool = subprocess.Popen([harness.STACKSNAP, "diff", "--after=2s", str(program.pid)],
                                        stdout=subprocess.PIPE, text=True)
                waits_between(tool.pid)
                program.process.stdin.write("x")
                program.process.stdin.flush()
                self.assertEqual(program.process.stdout.readline(), "stepped\n")
                text = tool.communicate(timeout=harness.LIMIT_S)[0]
                self.assertRegex(text, r"\n5 asyncio tasks: 2 unchanged, 2 moved, 1 new, 1 gone\n")
                for name, change in changes.items():
                    self.assertRegex(text, rf"\n{change}: 1 task, .*: {name}\n")
                self.assertRegex(text, r"\nmoved: 1 task, waiting for Event, .*: moves\n"
                                 r"    was in .*\bhere at .*\n    is in .*\bthere at .*\n"
                                 r"    both below moves at ")
                self.assertRegex(text, r"\nmoved: 1 task, running, on thread \d+, was waiting for Event: blocks\n")
                text, _ = text_of("--after=10ms", "--tasks=0", program.pid, command="diff")
                self.assertNotIn("asyncio task", text)

    def test_recorded(self):
        """A recording of a snapshot has the tasks, and diff compares those of two."""
        for python in interpreters():
            with self.subTest(python=python), tempfile.TemporaryDirectory() as directory:
                before, after, without, deadlock = (
                    os.path.join(directory, name)
                    for name in ("before", "after", "without", "deadlock"))
                program = sleeping(self, python, "step")
                taken = snapshot(program.pid)
                text_of("-f", "recording", "-o", before, program.pid)
                recorded = recording.Recording(before)
                self.assertEqual([(listed["changed"], listed["unread"], listed["problem"])
                                  for listed in recorded.coverage], [(0, 0, None)])
                names = [task["name"] for task in recorded.tasks]
                self.assertEqual(
                    [(task["name"], hex(task["id"]), task["status"], task["wait_reason"],
                      task["thread"].tid, [names[number] for number in task["awaited"]],
                      [(call.function, call.file, call.line) for *_, call in task["frames"]])
                     for task in recorded.tasks],
                    [(task["name"], task["address"], task["status"], task["wait_reason"],
                      task["tid"], [names[number] for number in task["awaited_tasks"]],
                      [(frame["symbol"], frame["file"], frame["line"]) for frame in task["frames"]])
                     for task in taken["tasks"]])
                program.process.stdin.write("x")
                program.process.stdin.flush()
                self.assertEqual(program.process.stdout.readline(), "stepped\n")
                harness.wait_until(lambda: harness.task_states(program.pid)[program.pid] == "S",
                                   "it waits")
                text_of("-f", "recording", "-o", after, program.pid)
                text, status = text_of(before, after, command="diff")
                self.assertEqual(status, 0, text)
                self.assertRegex(text, r"\n5 asyncio tasks: 2 unchanged, 2 moved, 1 new, 1 gone\n")
                self.assertRegex(text, r"\ngone: 1 task, waiting for Event, .*: ends\n")
                folded, _ = text_of(before, "-f", "folded", command="report")
                for name in ("moves", "ends", "blocks"):
                    self.assertRegex(folded, rf"(?m);task_\(waiting_for_Future\);{name};here;(Event\.)?wait 1$")
                text, _ = text_of(before, command="report")
                self.assertIn("\n6 samples of 1 thread and 5 tasks\n", text)
                self.assertRegex(text, r"task \(waiting for Future\) moves\b")
                text, _ = text_of("--diff", before, after, command="report")
                self.assertRegex(text, r"Threads, by their last samples: 2 unchanged, 2 moved, 1 new, 2 gone")
                both = json.loads(text_of(before, after, "-f", "json", command="report")[0])
                self.assertEqual(sorted(thread["task"] for thread in both["threads"] if thread["task"]),
                                 ["Task-1", "begins", "blocks", "ends", "moves", "stays"])
                self.assertEqual([thread["tid"] for thread in both["threads"] if not thread["task"]],
                                 [program.pid], both["threads"])
                text_of("-f", "recording", "--tasks=0", "-o", without, program.pid)
                text, _ = text_of(before, without, command="diff")
                self.assertIn("\nasyncio tasks are not compared: they were not read in the second "
                              "snapshot\n", text)
                other = sleeping(self, python, "deadlock")
                text, status = text_of("-i", "10ms", "-c", "2", "--tasks=all", "-f", "recording",
                                       "-o", deadlock, other.pid)
                self.assertEqual(status, 0, text)
                text, _ = text_of(deadlock, command="diff")
                self.assertIn("\ndeadlock of tasks: first waits for second, which waits for third, "
                              "which waits for first\n", text)
                text, _ = text_of(before, deadlock, command="diff")
                self.assertIn("\nasyncio tasks are not compared: the snapshots are of two "
                              "processes\n", text)

    def test_deadlock(self):
        for python in interpreters():
            with self.subTest(python=python):
                program = sleeping(self, python, "deadlock")
                text, _ = text_of(program.pid)
                self.assertIn("deadlock of tasks: first waits for second, which waits for third, "
                              "which waits for first\n", text)
                text, status = text_of(program.pid, "--for=200ms", command="hang")
                self.assertEqual(status, 4, text)
                self.assertIn("blocked\n", text.splitlines(True)[0])
                self.assertIn("\ndeadlock of tasks: first waits for second, which waits for "
                              "third, which waits for first\n", text)
                tasks = snapshot(program.pid)["tasks"]
                cycle = {task["name"]: tasks[task["cycle_next"]]["name"] for task in tasks
                         if task["cycle_next"] is not None}
                self.assertEqual(cycle, {"first": "second", "second": "third", "third": "first"})

    def test_locks(self):
        """Who holds the lock; which tasks wait for ever. Other programs are in tests/verdicts."""
        for python in interpreters():
            with self.subTest(python=python):
                program = sleeping(self, python, "locks")
                tasks = {task["name"]: task for task in snapshot(program.pid)["tasks"]}
                names = [task["name"] for task in snapshot(program.pid)["tasks"]]
                if "3.14" in python:
                    self.skipTest("not known")
                found = {name: (task["object"], [names[i] for i in task["awaited_tasks"]],
                                task["endless"])
                         for name, task in tasks.items() if task["object"]}
                self.assertLessEqual({
                    "pay": ("Lock", ["refund"], "object"),
                    "refund": ("Lock", ["pay"], "object"),
                    "twice": ("Lock", ["twice"], "object"),
                    "sixth": ("Lock", ["fifth"], None),
                    "queue_of_its_own": ("Queue", [], "object"),
                    "there": ("Event", [], None)}.items(), found.items())
                self.assertEqual(found["fifth"][1:], ([], None), found)
                self.assertEqual({name: names[task["cycle_next"]] for name, task in tasks.items()
                                  if task["cycle_next"] is not None},
                                 {"pay": "refund", "refund": "pay", "twice": "twice"})
                text, status = text_of(program.pid, "--for=200ms", "--tasks=all", command="hang")
                self.assertEqual(status, 4, text)
                self.assertIn("deadlock of tasks: pay waits for a Lock, held by refund, which waits "
                              "for a Lock, held by pay\n", text)
                self.assertIn("deadlock of tasks: twice waits for a Lock that it holds itself\n", text)
                self.assertIn("\n4 tasks wait for ever, as only ", text)
                self.assertRegex(text, r"waiting for Lock, held by task fifth, .*: sixth\n")

    def test_several_processes(self):
        """Their stacks are merged; a deadlock is found in each."""
        python = next(interpreters())
        deadlock, idle = sleeping(self, python, "deadlock"), sleeping(self, python, "idle")
        text, _ = text_of(deadlock.pid, idle.pid)
        self.assertRegex(text, rf"\nin \S+, pid {deadlock.pid}:\n\s*deadlock of tasks: first waits for ")
        self.assertRegex(text, r"\n\d+ asyncio tasks; --tasks=all shows them, and each process separately\n")
        text, _ = text_of("--tasks=all", deadlock.pid, idle.pid)
        self.assertEqual(len(re.findall(r"\n\d+ asyncio tasks in ", text)), 2, text)
        text, _ = text_of("--tasks=0", deadlock.pid, idle.pid)
        self.assertNotIn("asyncio task", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
