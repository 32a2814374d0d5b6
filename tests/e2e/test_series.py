"""stacksnap --interval and --count: several snapshots of a process, merged or apart, as text, as
JSON and as a profile. STACKSNAP_TRIES: how often one is interrupted while it reads much."""
# ctest: real long-with-sanitizers tries=100

import collections
import glob
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

from harness import (EndToEnd, LIMIT_S, STACKSNAP, main, read_text, reads_stdin, wait_until)

TRIES = int(os.environ.get("STACKSNAP_TRIES", "1"))

# Three threads wait in functions of their own, and the main thread runs. SIGUSR1 dumps them all.
PYTHON = """
import faulthandler, signal, sys, threading
def leaf():
    event.wait()
def inner(depth):
    return inner(depth - 1) if depth else leaf()
def spin():
    for _ in range(1000):
        pass
def busy():
    while True:
        spin()
def dump(*_):
    faulthandler.dump_traceback(out, all_threads=True)
    out.write("end of dump")
    out.flush()
out = open(sys.argv[1], "w")
event = threading.Event()
signal.signal(signal.SIGUSR1, dump)
lock = threading.RLock()
lock.acquire()
threading.Thread(target=lambda: lock.acquire(), daemon=True).start()
for _ in range(3):
    threading.Thread(target=inner, args=(5,), daemon=True).start()
print("ready", flush=True)
busy()
"""

# Threads with large stacks: some stay where they are, and the others run all the time, so that each
# snapshot reads their functions again.
DEEP = """
import sys, threading, time
sys.setrecursionlimit(3000)
def down(depth, then):
    if depth:
        return down(depth - 1, then)
    arrived.release()
    then()
def stays():
    threading.Event().wait()
def moves():
    while True:
        time.sleep(0.05)
arrived = threading.Semaphore(0)
threading.stack_size(32 << 20)
for then in [stays] * 10 + [moves] * 30:
    threading.Thread(target=down, args=(1500, then), daemon=True).start()
for _ in range(40):
    arrived.acquire()
print("ready", flush=True)
down(0, stays)
"""

MOVES = """
import sys, threading, queue
def waits_here(own):
    if own.get() == "move":
        waits_there(own)
def waits_there(own):
    own.get()
def serve(own):
    waits_here(own)
def waits_for_lock():
    with lock:
        queues["last"] = queue.SimpleQueue()
        queues["last"].get()
def begin(name, *call):
    threading.Thread(target=call[0], args=call[1:], daemon=True, name=name).start()
lock = threading.RLock()
queues = {str(i): queue.SimpleQueue() for i in range(6)}
for name, own in list(queues.items()):
    begin("here-" + name, serve, own)
def owns():
    with lock:
        queues["own"].get()
queues["own"] = queue.SimpleQueue()
begin("owns", owns)
while lock.acquire(blocking=False):
    lock.release()
for _ in range(2):
    begin("waits", waits_for_lock)
print("ready", flush=True)
while True:
    word, name = sys.stdin.readline().split()
    queues[name].put(word)
    print(word, flush=True)
"""


def switches(pid):
    """How often the threads of a process have given up a CPU."""
    return sum(map(int, re.findall(r"^voluntary_ctxt_switches:\s*(\d+)",
                                   read_text("/proc/%d/status" % pid), re.M)))


class Series(EndToEnd):
    def series(self, pid, *arguments, status=(0,)):
        result = self.run_tool("-f", "json", *arguments, pid, status=status)
        self.assert_free(pid)
        return json.loads(result.stdout)

    def begin(self, pid, *arguments):
        """Runs the tool until it is interrupted; returns when it has taken some snapshots."""
        tool = subprocess.Popen([STACKSNAP, *arguments, str(pid)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        self.addCleanup(lambda: (tool.poll() is None and tool.kill(), tool.communicate()))
        self.wait_for_snapshots(tool)
        return tool

    def wait_for_snapshots(self, tool, count=200):
        """Each snapshot needs a thread that captures, and a wait until the next one."""
        before = switches(tool.pid)
        wait_until(lambda: tool.poll() is not None or switches(tool.pid) > before + count,
                   "some snapshots")
        if tool.poll() is not None:
            self.fail("the tool ended: %r" % (tool.communicate(),))

    def end(self, tool, number=signal.SIGINT, status=(0,)):
        tool.send_signal(number)
        out, err = tool.communicate(timeout=LIMIT_S)
        self.assertIn(tool.returncode, status, (err, out[:2000]))
        return out.decode(), err.decode()

    def check_sums(self, data, count):
        """Each thread has one stack in each snapshot."""
        self.assertEqual(data["schema"], "stacksnap-series/1")
        self.assertEqual(len(data["captures"]), count)
        self.assertEqual(sum(stack["times"] for stack in data["stacks"]),
                         sum(capture["threads"] for capture in data["captures"]), data)
        for stack in data["stacks"]:
            self.assertEqual(sum(stack["states"].values()), stack["times"], stack)
            self.assertEqual(sum(thread["snapshots"] for thread in stack["threads"]),
                             stack["times"], stack)
            self.assertLessEqual(stack["snapshots"], count)
            self.assertGreaterEqual(stack["times"], stack["snapshots"])

    def test_files(self):
        """The files of a process are opened once, not for each snapshot."""
        target = self.start("deadlock", "normal", settle=False)
        result = self.run_tool("-f", "json", "-i", "10ms", "-c", "60", target.pid,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE,
                                                                     (64, 64)))
        data = json.loads(result.stdout)
        self.check_sums(data, 60)
        self.assertEqual(result.stderr, b"")
        for stack in data["stacks"]:
            self.assertTrue(all(frame["symbol"] for frame in stack["frames"]), stack)

    def test_deadlock(self):
        """Blocked threads have one stack in all snapshots, and come first."""
        target = self.start("deadlock", "normal", settle=False)
        data = self.series(target.pid, "-i", "10ms", "-c", "4")
        self.check_sums(data, 4)
        self.assertEqual(len(data["deadlocks"]), 1)
        first = data["stacks"][0]
        self.assertEqual((first["snapshots"], first["times"]), (4, 8), first)
        self.assertEqual({(t["name"], t["snapshots"]) for t in first["threads"]},
                         {("locker-0", 4), ("locker-1", 4)})
        self.assertEqual(first["threads"][0]["wait"]["kind"], "mutex")
        self.assertIn("take_next", [frame["symbol"] for frame in first["frames"]])
        text = self.run_tool("-i", "10ms", "-c", "4", target.pid).stdout.decode()
        self.assertRegex(text, r"(?m)^4 snapshots in .*, \d threads; ")
        self.assertIn("DEADLOCK", text)
        self.assertRegex(text, r"(?m)^in all snapshots, 8 times: 2 threads, sleeping: "
                         r"locker-\* \d+,\d+\n  1 waits for mutex")

    def test_running_threads(self):
        """Places in a function do not count: a loop is one stack."""
        target = self.start("busy", 2, 3, settle=False)
        data = self.series(target.pid, "--interval=10ms", "--count=5")
        self.check_sums(data, 5)
        spinning = [stack for stack in data["stacks"]
                    if stack["frames"] and stack["frames"][0]["symbol"] == "spin"]
        self.assertEqual(len(spinning), 1, data["stacks"])
        self.assertTrue(spinning[0]["frames"][0]["module"].endswith("/busy"))

    def test_selection(self):
        target = self.start("busy", 2, 3, settle=False)
        data = self.series(target.pid, "-c", "3", "-i", "5ms", "-t", "^busy-1$")
        self.check_sums(data, 3)
        self.assertEqual({t["name"] for stack in data["stacks"] for t in stack["threads"]},
                         {"busy-1"})
        result = self.run_tool("-c", "3", "-i", "5ms", "-t", "nobody", target.pid, status=(2,))
        self.assertIn(b"in 3 snapshots", result.stderr)

    def test_each(self):
        target = self.start("deadlock", "normal", settle=False)
        lines = self.run_tool("-f", "json", "-i", "5ms", "-c", "3", "--each",
                              target.pid).stdout.decode().splitlines()
        snapshots = [json.loads(line) for line in lines]
        self.assertEqual([data["schema"] for data in snapshots],
                         ["stacksnap-snapshot/1"] * 3)
        times = [data["capture"]["time_ns"] for data in snapshots]
        self.assertEqual(times, sorted(times))
        for data in snapshots:
            self.assertEqual(len(data["deadlocks"]), 1)
        text = self.run_tool("-f", "gdb", "-i", "5ms", "-c", "3", "--each", target.pid)
        self.assertEqual(text.stdout.count(b"Thread 1 "), 3, text.stdout.decode())

    def test_formats(self):
        """A series is a recording with a tick for each snapshot, and so a profile."""
        target = self.start("deadlock", "normal", settle=False)
        threads = len(self.snap(target.pid).threads)
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "series.rec")
            series = ("-i", "5ms", "-c", "4")
            self.run_tool(*series, "-f", "recording", "-o", path, target.pid)
            report = json.loads(self.run_tool("report", "-f", "json", path).stdout)
            self.assertEqual(sum(row["count"] for row in report["samples"]), 4 * threads)
            folded = self.run_tool("report", "-f", "folded", path).stdout
            self.assertEqual(sorted(self.run_tool(*series, "-f", "folded",
                                                  target.pid).stdout.splitlines()),
                             sorted(folded.splitlines()))
            self.assertIn(b"take_next", folded)
            for name, begin in (("html", b"<!DOCTYPE html>"), ("speedscope", b"{"),
                                ("perf", b"deadlock"), ("pprof", b"\x1f\x8b")):
                out = os.path.join(directory, "%p." + name)
                self.run_tool(*series, "-f", name, "-o", out, target.pid)
                with open(os.path.join(directory, "%d.%s" % (target.pid, name)), "rb") as f:
                    self.assertEqual(f.read(len(begin)).lower(), begin.lower())
        for words in (("-f", "gdb", "-c", "2"), ("--each",), ("-c", "0"),
                      ("-c", "2", "--each", "-f", "recording", "-o", "/dev/null/x")):
            self.run_tool(*words, target.pid, status=(64,))
        self.run_tool("-c", "2", target.pid, target.pid, status=(64,))
        result = self.run_tool("-c", "2", "--tasks=5", "-f", "folded", target.pid, status=(64,))
        self.assertIn(b"--tasks cannot be used with merged snapshots", result.stderr)
        self.run_tool("-c", "2", "-i", "5ms", "--goroutines=0", target.pid)

    def test_interrupted(self):
        target = self.start("deadlock", "normal", settle=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            tool = self.begin(target.pid, "-i", "5ms", "-f", "json")
            out, err = self.end(tool, number)
            data = json.loads(out)
            self.assertGreater(len(data["captures"]), 1, err)
            self.check_sums(data, len(data["captures"]))
        self.assert_free(target.pid)

    def test_interrupted_while_reading(self):
        """Reading the functions of large stacks takes long: the series ends before, with the snapshots
        that are whole."""
        target = self.start_command([sys.executable, "-c", DEEP])
        calls = "/proc/%d/task/*/syscall" % target.pid
        wait_until(lambda: sum(read_text(path).startswith("202 ") for path in glob.glob(calls)) >= 11,
                   "the threads that stay")
        moments = random.Random(5)
        whole = 0
        for _ in range(TRIES):
            tool = subprocess.Popen([STACKSNAP, "-n", "0", "-i", "1ms", "-f", "json", str(target.pid)],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            with self.assertRaises(subprocess.TimeoutExpired):
                tool.communicate(timeout=moments.uniform(0.3, 3))
            tool.send_signal(signal.SIGINT)
            out, err = tool.communicate(timeout=LIMIT_S)
            self.assert_free(target.pid)
            if tool.returncode == 2:
                self.assertEqual(out, b"")
                self.assertIn(b"interrupted before the first snapshot was complete", err)
                continue
            self.assertIn(tool.returncode, (0, 1), err)
            data = json.loads(out)
            self.check_sums(data, len(data["captures"]))
            stays = 0
            for stack in data["stacks"]:
                symbols = [frame["symbol"] for frame in stack["frames"]]
                if (stack["last"] == len(data["captures"]) - 1 and "stays" in symbols and
                        symbols.count("down") == 1501):
                    stays += len(stack["threads"])
            self.assertEqual(stays, 10, data["captures"])
            whole += 1
        print(whole, "of", TRIES, "have snapshots")

    def test_process_ends(self):
        target = self.start("deadlock", "normal", settle=False)
        tool = self.begin(target.pid, "-i", "5ms", "-f", "json")
        target.kill()
        out, err = tool.communicate(timeout=LIMIT_S)
        data = json.loads(out)
        self.assertGreater(len(data["captures"]), 1, err)
        self.assertRegex(err.decode(), r"after \d+ snapshots: ")

    def test_modules_change(self):
        """Snapshots share the files of modules, but not those of other modules that are
        loaded at the same address later."""
        target = self.start("modules", settle=False)

        def step():
            target.process.stdin.write(b"\n")
            target._read_until(b"ready\n")

        tool = self.begin(target.pid, "-i", "5ms", "-f", "json")
        for _ in range(2):
            step()
            self.wait_for_snapshots(tool)
        # On a busy machine it may wait for a CPU, in the middle of a load, and not stop in time.
        data = json.loads(self.end(tool, status=(0, 1))[0])
        found = {(frame["symbol"], os.path.basename(frame["module"]))
                 for stack in data["stacks"] for frame in stack["frames"]
                 if frame["symbol"] and frame["symbol"].startswith("plugin_")}
        self.assertEqual({name for name, _ in found}, {"plugin_b", "plugin_d"}, data)
        self.assertEqual(len(found), 2, found)

    def start_workers(self):
        """The target, when all of its threads wait."""
        target = self.start("one_moves", settle=False)
        directory = "/proc/%d/task" % target.pid

        def all_wait():
            calls = [read_text("%s/%s/syscall" % (directory, tid)).split()[0]
                     for tid in os.listdir(directory)]
            return len(calls) == 51 and set(calls) <= {"0", "202"}

        wait_until(all_wait, "50 threads")
        return target

    def command(self, target, *words):
        """Returns whether the target could carry it out."""
        line = " ".join(str(word) for word in words)
        target.process.stdin.write(line.encode() + b"\n")
        target.process.stdin.flush()
        answer = target.process.stdout.readline().decode().strip()
        self.assertIn(answer, (words[0], "no"), line)
        return answer == words[0]

    def watch(self, target, steps, count=12):
        """All snapshots of a series, during which the target carries out commands."""
        tool = self.begin(target.pid, "-i", "10ms", "--each", "-f", "json")
        for words in steps:
            if not self.command(target, *words):
                self.skipTest("%r is not possible here" % (words,))
            self.wait_for_snapshots(tool, count)
        # a thread may be met on its way, with an incomplete stack
        snapshots = [json.loads(line)
                     for line in self.end(tool, status=(0, 1))[0].splitlines()]
        self.assertGreater(len(snapshots), len(steps))
        return snapshots

    def histories(self, snapshots):
        """For each id of a thread: the functions of the target on its stack, outermost first,
        without repetitions."""
        found = {}
        for snapshot in snapshots:
            for thread in snapshot["threads"]:
                names = tuple(frame["symbol"] for frame in reversed(thread["frames"])
                              if (frame["symbol"] or "").startswith(("serve", "waits_")))
                history = found.setdefault(thread["tid"], [])
                if not history or history[-1] != names:
                    history.append(names)
        return found

    def test_one_moves(self):
        """Threads that have not run since the last snapshot are not read again, and not stopped
        for registers that are known; what others have changed is seen."""
        target = self.start_workers()
        tids = {thread["name"]: thread["tid"] for thread in self.snap(target.pid).threads}
        snapshots = self.watch(target, [("move", 7), ("name", 8, "other"), ("own", 3),
                                        ("move", 12)])
        expected = {}
        for i in range(1, 50):
            room = ("serve", "waits_in_room") if i % 2 else ("serve",)
            expected[tids["here-%d" % i]] = [room + ("waits_here",)]
            if i in (7, 12):
                expected[tids["here-%d" % i]].append(room + ("waits_there",))
        expected[tids["here-0"]] = [("serve", "waits_for_mutex")]
        found = self.histories(snapshots)
        found.pop(target.pid)
        moved = (tids["here-7"], tids["here-12"])
        for tid in moved:
            found[tid] = [found[tid][0], found[tid][-1]]
        self.assertEqual(found, expected)
        ends = {(thread["end"], thread["reason"]) for snapshot in snapshots
                for thread in snapshot["threads"] if thread["tid"] not in (target.pid, *moved)}
        self.assertEqual(ends, {("root", None)})

        def values(tid, name):
            found = [name(thread) for snapshot in snapshots
                     for thread in snapshot["threads"] if thread["tid"] == tid]
            return [value for i, value in enumerate(found) if i == 0 or found[i - 1] != value]

        self.assertEqual(values(tids["here-8"], lambda thread: thread["name"]),
                         ["here-8", "other"])
        self.assertEqual(values(tids["here-0"], lambda thread: thread["wait"]["owner_tid"]),
                         [target.pid, tids["here-3"]])
        stops = [snapshot["capture"]["threads_stopped"] for snapshot in snapshots]
        self.assertGreaterEqual(stops[0], 25, stops)
        self.assertEqual(min(stops), 0, stops)

    def test_other_processor(self):
        """A thread that returned from its stop on another processor is where it was."""
        cpus = os.sched_getaffinity(0)
        if len(cpus) < 2:
            self.skipTest("there is one processor only")
        target = self.start_workers()
        for tid in os.listdir("/proc/%d/task" % target.pid):
            last = int(read_text("/proc/%s/stat" % tid).rsplit(")", 1)[1].split()[36])
            os.sched_setaffinity(int(tid), cpus - {last})
        result = self.run_tool("-i", "200ms", "-c", "3", "--each", "-f", "json", target.pid,
                               status=(0, 1))
        stops = [json.loads(line)["capture"]["threads_stopped"]
                 for line in result.stdout.splitlines()]
        self.assertGreaterEqual(stops[0], 25, stops)
        # one may be met on its way back
        self.assertLess(stops[1], 10, stops)

    def test_waits(self):
        """Waits of threads that have not run are the same in each snapshot as in a single one.
        Other processes are read for the last one only ("beyond"), and searched for it
        ("peers_complete")."""
        directory = self.enterContext(tempfile.TemporaryDirectory())
        target = self.start("waits", directory, settle=False)

        def waits(data):
            found = {}
            for thread in data["threads"]:
                wait = json.dumps({key: value for key, value in (thread["wait"] or {}).items()
                                   if key not in ("left_ns", "chain", "beyond")}, indent=1)
                wait = wait.replace(", perhaps others", "")
                wait = re.sub(r'"peers_complete": \w+', '"peers_complete"', wait)
                wait = re.sub(r'"(timer_left_ns|left_ns)": \d+|[\d.]+ \w+ left', "left", wait)
                found[thread["tid"]] = (thread["name"], [frame["symbol"] for frame
                                                        in thread["frames"]], wait)
            return found

        single = waits(json.loads(self.run_tool("-f", "json", target.pid, status=(0, 1)).stdout))
        result = self.run_tool("-f", "json", "--each", "-i", "10ms", "-c", "5", target.pid,
                               status=(0, 1))
        for line in result.stdout.splitlines():
            snapshot = json.loads(line)
            found = waits(snapshot)
            for tid, wait in single.items():
                self.assertEqual(found.get(tid), wait, snapshot["capture"])

    def test_system_calls(self):
        """Later snapshots open no files of threads that have not run, and confirm who has the
        other end of a pipe without a search of all processes. The first one searches, and the last
        one again, since it shows cycles."""
        if not shutil.which("strace"):
            self.skipTest("strace is missing")
        target = self.start_workers()
        with tempfile.NamedTemporaryFile() as trace:
            result = subprocess.run(
                ["strace", "-f", "-qq", "-e", "trace=openat,timer_create", "-o", trace.name,
                 STACKSNAP, "-f", "json", "--each", "-i", "10ms", "-c", "8", str(target.pid)],
                stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False)
            calls = trace.read().decode(errors="replace")
        snapshots = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual(len(snapshots), 8, result)
        pipes = [thread["wait"]["descriptor"] for snapshot in snapshots
                 for thread in snapshot["threads"] if thread["tid"] == target.pid]
        peers = [[peer["pid"] for peer in pipe["peers"]] for pipe in pipes]
        self.assertEqual(peers[:-1], [peers[0]] * 7)
        # a search that exceeds its budget of CPU time says so
        for pipe, found in ((pipes[0], peers[0]), (pipes[-1], peers[-1])):
            if pipe["peers_complete"]:
                self.assertEqual(found, [os.getpid()], pipes)
        self.assertFalse(any(pipe["peers_complete"] for pipe in pipes[1:-1]), pipes)
        # each capture has a timer; threads may be met on their way back from the first one
        opened = [re.findall(r'openat\(.*?"(.*?)"', part)
                  for part in re.split(r"timer_create\(", calls)[1:]]
        searches = [paths.count("%d/fd" % target.pid) for paths in opened]
        self.assertGreater(searches[-1], 0, opened)
        self.assertEqual(sum(searches[2:-1]), 0, opened)
        of_threads = [sum(re.match(r"\d+/", path) is not None for path in paths)
                      for paths in opened]
        self.assertGreater(of_threads[0], 150, opened)
        self.assertLess(min(of_threads[1:-1]), 25, opened)

    def test_reused_id(self):
        """A thread that has got the id of one that has ended is another thread."""
        if os.geteuid() != 0:
            self.skipTest("only root can choose the id of a thread")
        target = self.start_workers()
        tids = {thread["name"]: thread["tid"] for thread in self.snap(target.pid).threads}
        found = self.histories(self.watch(target, [("move", 2), ("reuse", 11), ("reuse", 14)]))
        self.assertEqual(found[tids["here-11"]][0], ("serve", "waits_in_room", "waits_here"))
        self.assertEqual(found[tids["here-11"]][-1], ("serve_again", "waits_here"))
        self.assertEqual(found[tids["here-14"]][0], ("serve", "waits_here"))
        self.assertEqual(found[tids["here-14"]][-1], ("serve_again", "waits_here"))
        self.assertEqual(found[tids["here-13"]], [("serve", "waits_in_room", "waits_here")])

    def serve_redis(self):
        program = shutil.which("redis-server")
        if not program:
            self.skipTest("redis-server is missing")
        directory = self.enterContext(tempfile.TemporaryDirectory())
        path = os.path.join(directory, "socket")
        process = subprocess.Popen([program, "--port", "0", "--unixsocket", path, "--save", "",
                                    "--dir", directory], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait, LIMIT_S)
        self.addCleanup(process.terminate)
        # Its threads begin after it has made its socket.
        wait_until(lambda: os.path.exists(path) and sum(
            read_text(name).startswith("bio_")
            for name in glob.glob("/proc/%d/task/*/comm" % process.pid)) >= 3, program)
        return process

    def python_chains(self, data):
        """By tid: the Python functions of each stack, outermost first, and how often it was
        seen."""
        chains = {}
        for stack in data["stacks"]:
            chain = [frame["symbol"].split(".")[-1] for frame in reversed(stack["frames"])
                     if frame["kind"] == "python"]
            for thread in stack["threads"]:
                chains.setdefault(thread["tid"], []).append((chain, thread["snapshots"]))
        return chains

    def test_python(self):
        """The functions of threads that wait and of one that runs, in each snapshot, as
        faulthandler says; merged, apart, and as a profile."""
        directory = self.enterContext(tempfile.TemporaryDirectory())
        dump = os.path.join(directory, "dump")
        target = self.start_command([sys.executable, "-c", PYTHON, dump])
        os.kill(target.pid, signal.SIGUSR1)
        wait_until(lambda: "end of dump" in read_text(dump), "a dump")
        waiting = [line.split()[-1] for line in read_text(dump).split("Current thread")[0].split(
            "\n\n")[0].splitlines() if "File " in line][::-1]
        self.assertEqual(waiting[-3:], ["leaf", "wait", "wait"], read_text(dump))
        data = self.series(target.pid, "-i", "20ms", "-c", "5", status=(0, 1))
        chains = self.python_chains(data)
        main = chains.pop(target.pid)
        blocked = waiting[:waiting.index("inner")] + ["<lambda>"]
        self.assertEqual(sorted([[(blocked, 5)], *[[(waiting, 5)]] * 3]), sorted(chains.values()),
                         data)
        if sys.version_info < (3, 14):
            self.assertIn("python-rlock", json.dumps(data))
        self.assertTrue({tuple(chain) for chain, _ in main if chain} <=
                        {("<module>", "busy", "spin"), ("<module>", "busy")}, main)
        self.assertTrue(any(chain for chain, _ in main), data)
        text = self.run_tool("-a", "-i", "10ms", "-c", "2", "--each", target.pid,
                             status=(0, 1)).stdout.decode()
        self.assertEqual(text.count(" leaf at <string>:4 [python]"), 2, text)
        folded = self.run_tool("-i", "10ms", "-c", "3", "-f", "folded", target.pid,
                               status=(0, 1)).stdout.decode()
        counts = re.findall(r"(?m);Thread-\d+[^;]*;.*inner;inner;leaf;.* (\d+)$", folded)
        self.assertEqual(sum(map(int, counts)), 9, folded)
        native = self.run_tool("-i", "10ms", "-c", "2", "--native", target.pid,
                               status=(0, 1)).stdout.decode()
        self.assertIn("_PyEval_EvalFrameDefault", native)

    def test_late_python(self):
        """The first snapshot is taken before the interpreter is loaded, others before it is used: no stack
        leads to its file."""
        libraries = glob.glob("/usr/lib/*/libpython3.*.so.1.0")
        if not libraries:
            self.skipTest("there is no shared library of Python")
        target = self.start("late_python", libraries[0])
        tool = self.begin(target.pid, "-i", "10ms", "-f", "json")
        target.process.stdin.write(b"\n")
        target.process.stdin.flush()
        target._read_until(b"loaded\n")
        self.wait_for_snapshots(tool)
        target.process.stdin.write(b"\n")
        target.process.stdin.flush()
        wait_until(lambda: "libpython" in read_text(f"/proc/{target.pid}/maps") and
                   reads_stdin(target.pid), "Python to wait")
        self.wait_for_snapshots(tool, 60)
        data = json.loads(self.end(tool, status=(0, 1))[0])
        chains = self.python_chains(data)[target.pid]
        self.assertIn(["<module>", "waits_in_python"], [chain for chain, _ in chains], data)
        self.assertIn([], [chain for chain, _ in chains], data)

    def test_python_moves(self):
        """Of threads that have not run the functions of before are shown, of the others new ones; and
        the owner of a lock for which a thread has waited all the time."""
        target = self.start_command([sys.executable, "-c", MOVES])
        snapshots = self.watch(target, [("move", 3), ("leave", "own"), ("move", 5)],
                               count=300)
        found = {}
        owners = {}
        for snapshot in snapshots:
            for thread in snapshot["threads"]:
                names = tuple(frame["symbol"] for frame in reversed(thread["frames"])
                              if frame["kind"] == "python" and
                              frame["symbol"].startswith(("serve", "waits_", "owns")))
                if thread["native_reason"] or not names:
                    continue  # it was met on its way
                history = found.setdefault(thread["tid"], [])
                if not history or history[-1] != names:
                    history.append(names)
                owner = (thread["wait"] or {}).get("owner_tid")
                if owner and thread["wait"]["lock"] == "python-rlock":
                    seen = owners.setdefault(thread["tid"], [])
                    if not seen or seen[-1] != owner:
                        seen.append(owner)
        ends = collections.Counter(history[-1] for history in found.values())
        self.assertEqual(ends[("serve", "waits_here")], 4, found)
        self.assertEqual(ends[("serve", "waits_here", "waits_there")], 2, found)
        self.assertEqual(ends[("waits_for_lock",)], 2, found)
        if sys.version_info >= (3, 14):
            return
        # The one that waited on: first for "owns", then for the other one
        last = [seen for seen in owners.values() if len(seen) == 2]
        self.assertEqual(len(last), 1, owners)
        self.assertEqual([found[owner] for owner in last[0]],
                         [[("owns",)], [("waits_for_lock",)]], (owners, found))

    def test_redis(self):
        """A real program, and what its snapshots cost: a later capture usually takes a fifth of
        the first one, which is completed."""
        server = self.serve_redis()
        result = self.run_tool("-v", "-a", "-i", "20ms", "-c", "20", "--no-cache", server.pid)
        text, err = result.stdout.decode(), result.stderr.decode()
        self.assertRegex(text, r"(?m)^20 snapshots in ")
        self.assertRegex(text, r"(?m)^in all snapshots, \d+ times: \d threads, sleeping: bio_")
        self.assertIn("epoll_wait", text)
        match = re.search(r"CPU time: ([\d.]+) ms for the first capture, ([\d.]+) ms for "
                          r"each later one", err)
        self.assertTrue(match, err)
        if not os.environ.get("SANITIZED"):
            self.assertLess(float(match.group(2)), float(match.group(1)), err)


if __name__ == "__main__":
    main()
