"""Python functions in the stacks: equal to those that faulthandler, a part of CPython, prints at the
same moment, frame by frame; in all modes; and native frames with a reason where that is not
possible.

Debian packages: python3, python3-greenlet, binutils. PYTHONS: more interpreters, separated by colons; MOMENTS: how many
moments are compared for each (default: 10)."""
# ctest: long-with-sanitizers

import collections
import ctypes
import glob
import json
import os
import re
import signal
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time
import unittest

import harness
import recording
from harness import snapshot_of as snapshot
from test_on_cpu import may_sample_cpus

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.path.join(HERE, "python_target.py")
TGKILL = {"x86_64": 234, "aarch64": 131}[os.uname().machine]
MOMENTS = int(os.environ.get("MOMENTS", "10"))


# A thread that calls C by ctypes.PyDLL keeps the GIL.
GIL = """
import ctypes, threading, time
def hold():
    print(threading.get_native_id(), flush=True)
    ctypes.PyDLL(None).sleep(1000)
def work():
    while True:
        time.sleep(0.001)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
threading.Thread(target=hold, daemon=True).start()
time.sleep(1000)
"""


# Threads with odd names: their ids and names, then the names change.
NAMES = """
import json, threading, sys
event = threading.Event()
names = ["worker-3", "two\\nlines\\x1b[31m", "Gr\\u00fc\\u00dfe \\u65e5\\u672c \\U0001f40d", "x" * 10000, "",
         "a name of more than 15 bytes"]
threads = [threading.Thread(target=event.wait, daemon=True) for _ in names]
for thread, name in zip(threads, names):
    thread.start()
    thread.name = name
def enumerate_threads():
    print(json.dumps({t.native_id: [t.ident, t.name] for t in threading.enumerate()}), flush=True)
enumerate_threads()
sys.stdin.readline()
threads[0].name = "renamed"
enumerate_threads()
sys.stdin.readline()
"""


# The main thread keeps the GIL in a call into C that waits for a mutex; its owner wants the GIL.
GIL_DEADLOCK = """
import ctypes, threading
libc, keeping = ctypes.CDLL(None), ctypes.PyDLL(None)
mutex = ctypes.create_string_buffer(64)
locked = threading.Event()
def first():
    libc.pthread_mutex_lock(mutex)
    locked.set()
    libc.usleep(100000)
threading.Thread(target=first, daemon=True).start()
locked.wait()
keeping.pthread_mutex_lock(mutex)
"""

# The same with sqlite3 as Debian has it: a statement holds the mutex of its connection while it
# calls a Python function; create_function() waits for that mutex and keeps the GIL.
SQLITE_DEADLOCK = """
import sqlite3, threading, time
db = sqlite3.connect(":memory:", check_same_thread=False)
called = threading.Event()
def first():
    called.set()
    time.sleep(0.1)
    return 1
db.create_function("first", 0, first)
threading.Thread(target=lambda: db.execute("select first()").fetchall(), daemon=True).start()
called.wait()
db.create_function("other", 0, lambda: 2)
"""


# Functions that call others through builtins and special methods, and through C of other modules.
BETWEEN = """
import ctypes, time
def inner(_):
    time.sleep(1000)
def keyed():
    sorted([1], key=inner)
callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda _: keyed() or 0)
class Calls:
    def __call__(self):
        callback(1)
def outer():
    Calls()()
outer()
"""

# A program in C that executes Python.
EMBED = r"""
#include <Python.h>
int main(void)
{
	Py_Initialize();
	return PyRun_SimpleString("import time\ndef inner():\n time.sleep(1000)\n"
				  "def outer():\n inner()\nouter()\n");
}
"""

# Deep recursion: of Python, through functions in C, or of generators. Prints the calls above the
# innermost one, as Python has them. Arguments: which, and how deep.
DEEP = """
import json, sys, threading, time
kind, depth = sys.argv[1], int(sys.argv[2])
sys.setrecursionlimit(50000)
threading.stack_size(512 << 20)

def deepest():
    frames, frame = [], sys._getframe(1)
    while frame:
        frames.append([frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name])
        frame = frame.f_back
    print(json.dumps(frames), flush=True)
    time.sleep(1000)

def python(n):
    return deepest() if n == 0 else python(n - 1)

def c(n):
    return deepest() if n == 0 else list(map(c, [n - 1]))

def generator(n):
    yield deepest() if n == 0 else next(generator(n - 1))

run = {"python": python, "c": c, "generator": lambda n: next(generator(n))}[kind]
threading.Thread(target=run, args=(depth,), daemon=True).start()
time.sleep(1000)
"""

# Each thread executes code of two interpreters.
INTERPRETERS = """
import threading
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters

CODE = "import time\\ndef inner():\\n time.sleep(1000)\\ndef calls():\\n inner()\\ncalls()"

def outer():
    interpreters.run_string(interpreters.create(), CODE)

def deeper():
    outer()

threading.Thread(target=deeper, daemon=True).start()
outer()
"""

# A greenlet that another one has begun below a function of C. Then greenlets that take turns.
GREENLETS = """
import json, sys, time
import greenlet

def inner(n):
    if n:
        return inner(n - 1)
    frames, frame = [], sys._getframe()
    while frame:
        frames.append([frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name])
        frame = frame.f_back
    print(json.dumps(frames[1:]), flush=True)
    if sys.argv[1] == "sleep":
        time.sleep(1000)
    while True:
        sum(range(100))

def first(_):
    inner(3)

def second():
    for _ in map(greenlet.greenlet(first).switch, [()]):
        pass

def outermost():
    greenlet.greenlet(second).switch()

def turn():
    main = greenlet.getcurrent().parent
    while True:
        main.switch()

def nested(n):
    return nested(n - 1) if n else turn()

def frames_of(frame):
    frames = []
    while frame:
        frames.append([frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name])
        frame = frame.f_back
    return frames

def give_up(*_):
    main.switch()

def in_c(n):
    return in_c(n - 1) if n else list(map(give_up, [1]))

def suspend():
    # Of a class of its own, below functions of C; one that has ended, and one that has not begun
    class Special(greenlet.greenlet):
        pass
    keep = [Special(in_c) for _ in range(2)] + [greenlet.greenlet(give_up) for _ in range(2)]
    for number, other in enumerate(keep):
        other.switch(*[number + 3] if number < 2 else [])
    ended, new = greenlet.greenlet(len), greenlet.greenlet(len)
    ended.switch("")
    def report():
        found = [("main greenlet", frames_of(main.gr_frame))]
        for other in keep + second_ones:
            frames = frames_of(other.gr_frame)
            found.append((frames[-1][2], frames))
        print(json.dumps(found), flush=True)
        time.sleep(1000)
    def second():
        main.switch()
    second_ones = [greenlet.greenlet(second) for _ in range(3)]
    for other in second_ones:
        other.switch()
    greenlet.greenlet(report).switch()

if sys.argv[1] == "suspend":
    main = greenlet.getcurrent()
    suspend()
elif sys.argv[1] == "switch":
    print("null", flush=True)
    others = [greenlet.greenlet(nested) for _ in range(5)]
    while True:
        for n, other in enumerate(others):
            other.switch(n)
outermost()
"""

# Threads begin and end all the time.
SHORT_LIVED = """
import threading
def leaf(n):
    total = 0
    for i in range(n):
        total += i
def work():
    leaf(3000)
def start():
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("ready", flush=True)
while True:
    start()
"""


# Threads in a generator that calls others, and a main thread that never runs.
RECORDED = """
import threading, time

def leaf(n):
    total = 0
    for i in range(n):
        total += i * i
    return total

def middle(n):
    return leaf(n) + leaf(n // 2)

def count(n):
    for i in range(n):
        yield middle(i)

def work():
    while True:
        for _ in count(60):
            pass
        time.sleep(0.002)

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
time.sleep(1000)
"""


# With -X perf each function is called by a trampoline of its own, which a perf map names.
TRAMPOLINES = """
import json, re, threading, time

def first(n):
    return second(n - 1) if n else last()

def second(n):
    sorted([3, 1, 2], key=lambda value: -value)
    return first(n - 1) if n else last()

def count(n):
    for i in range(n):
        yield i * i

def last():
    return sum(value for value in count(20))

class Worker:
    @property
    def result(self):
        return first(12)
    def work(self):
        while True:
            self.result
            json.loads(json.dumps({"a": [1, 2, 3]}))
            re.sub("(a+)b", lambda match: match.group(1).upper(), "aab" * 20)
            time.sleep(0.0002)

def sleep(n):
    return sleep(n - 1) if n else time.sleep(1000)

for _ in range(2):
    threading.Thread(target=Worker().work, daemon=True).start()
print("ready", flush=True)
sleep(30)
"""


def interpreters():
    """Those that the tool knows: CPython 3.8 to 3.14."""
    named = os.environ.get("PYTHONS")
    for path in named.split(":") if named else ["/usr/bin/python3"]:
        if os.path.exists(path):
            yield os.path.realpath(path)


class Program:
    def __init__(self, test, python, what):
        self.directory = tempfile.TemporaryDirectory(prefix="stacksnap-")
        test.addCleanup(self.directory.cleanup)
        self.dump_path = os.path.join(self.directory.name, "dump")
        self.process = subprocess.Popen([python, TARGET, self.dump_path, what],
                                        stdout=subprocess.PIPE, text=True)
        test.addCleanup(self.stop)
        self.pid = self.process.pid
        self.threads = {}  # the thread ids of faulthandler: tid
        self.read = 0
        for line in self.process.stdout:
            if line == "ready\n":
                break
            ident, tid, _ = line.split(None, 2)
            self.threads[int(ident, 16)] = int(tid)

    def stop(self):
        self.process.kill()
        self.process.stdout.close()
        self.process.wait()

    def pause(self):
        os.kill(self.pid, signal.SIGSTOP)
        harness.wait_until(lambda: set(harness.task_states(self.pid).values()) == {"T"},
                           "the program stops")

    def dump_and_resume(self):
        """What faulthandler prints before the main thread goes on: frames by tid."""
        # To the main thread: the kernel would choose any of those that are stopped.
        ctypes.CDLL(None).syscall(ctypes.c_long(TGKILL), self.pid, self.pid, signal.SIGUSR1)
        os.kill(self.pid, signal.SIGCONT)
        text = ""

        def is_whole():
            nonlocal text
            with open(self.dump_path, encoding="ascii") as file:
                file.seek(self.read)
                text = file.read()
            # The main thread is the last one.
            return re.search(r"^Current thread .*\n(  .*\n)+", text, re.M) and \
                "in <module>" in text.rsplit("\n", 2)[-2]
        try:
            harness.wait_until(is_whole, "faulthandler prints")
        except AssertionError as error:
            raise AssertionError(f"{error}: {text} {self.process.poll()} "
                                 f"{harness.task_states(self.pid)}") from error
        self.read += len(text)
        frames = {}
        for line in text.splitlines():
            header = re.match(r"(?:Current thread|Thread) 0x([0-9a-f]+)", line)
            frame = re.match(r'  File "(.*)", line (\d+|\?\?\?) in (.*)', line)
            if header:
                current = frames.setdefault(self.threads[int(header.group(1), 16)], [])
            elif frame and frame.group(1) != "<shim>":  # which 3.12.1 prints
                line = 0 if frame.group(2) == "???" else int(frame.group(2))
                current.append((frame.group(1), line, frame.group(3)))
        return frames


def sys_version():
    """That of Debian's interpreter."""
    return int(subprocess.run(["/usr/bin/python3", "-c", "import sys; print(sys.hexversion)"],
                              capture_output=True, text=True, check=True).stdout)


CYCLE = """
import sys, threading
limit = float(sys.argv[1])
a, b, both = threading.RLock(), threading.RLock(), threading.Barrier(3)
def take(first, second):
    with first:
        both.wait()
        while not second.acquire(timeout=limit): pass
threads = [threading.Thread(target=take, args=order) for order in ((a, b), (b, a))]
for thread in threads: thread.start()
both.wait()
print(*(thread.native_id for thread in threads), flush=True)
"""

REPLACED = """
import ctypes, sys, time
def f_1000():
    end = time.perf_counter() + 0.004
    while time.perf_counter() < end:
        pass
code = f_1000.__code__
name = id(getattr(code, "co_qualname", code.co_name)) + sys.getsizeof("") - 1
for number in range(1000, 9999):
    ctypes.memmove(name, b"f_%d" % number, 6)
    f_1000()
"""


# 50 threads, of which each wakes another one and waits, as in a server under load: most of them have run
# between two ticks, and many while their stacks are copied. All do so at the same depth.
SERVER = """
import os, threading
pipes = [os.pipe() for i in range(50)]
def wait(i):
    os.read(pipes[i][0], 1)
def work(i, depth):
    if depth:
        return work(i, depth - 1)
    while True:
        wait(i)
        sum(range(300))
        os.write(pipes[(i + 1) % 50][1], b"x")
for i in range(50):
    threading.Thread(target=work, args=(i, 20), daemon=True).start()
for i in range(0, 50, 10):
    os.write(pipes[i][1], b"x")
print("ready", flush=True)
threading.Event().wait()
"""


DEEP_COMPUTING = """
def compute():
    print("ready", flush=True)
    while True:
        sum(range(1000))
def deep(n):
    deep(n - 1) if n else compute()
deep(950)
"""


def recorded_chains(path, *options):
    """Yields tid, frames (innermost first) and number of the samples of a recording."""
    done = subprocess.run([harness.STACKSNAP, "report", "-f", "json", *options, path],
                          capture_output=True, text=True, timeout=harness.LIMIT_S, check=False)
    report = json.loads(done.stdout)
    for sample in report["samples"]:
        frames, call = [], sample["call"]
        while call is not None:
            call, frame = report["calls"][call]
            frames.append(report["frames"][frame])
        yield report["threads"][sample["thread"]]["tid"], frames, sample["count"]


def escaped(name):
    """As faulthandler writes it."""
    return name.encode("ascii", "backslashreplace").decode()


def python_frames(thread):
    """Without the qualification: faulthandler has the plain name."""
    return [(escaped(frame["file"]), frame["line"] or 0, escaped(frame["symbol"].split(".")[-1]))
            for frame in thread["frames"] if frame["kind"] == "python"]


class Python(unittest.TestCase):
    def compare(self, thread, expected, python):
        found = python_frames(thread)
        # faulthandler stops after 100.
        if found[:len(expected)] != expected or (len(expected) < 100 and
                                                 len(found) != len(expected)):
            self.fail(f"{python}, thread {thread['tid']}: found\n"
                      + "\n".join(map(str, found)) + "\nexpected\n"
                      + "\n".join(map(str, expected)) + "\n"
                      + str(thread["native_reason"]) + "\n"
                      + "\n".join(str(f["symbol"]) for f in thread["frames"]))

    def compare_moments(self, python, what, mode):
        program = Program(self, python, what)
        reasons = 0
        for moment in range(MOMENTS):
            time.sleep(0.001 * (moment % 7))  # another moment; none is waited for
            program.pause()
            threads = snapshot(program.pid, "--mode=" + mode)["threads"]
            expected = program.dump_and_resume()
            self.assertEqual(len(threads), len(expected))
            for thread in threads:
                if thread["native_reason"] or thread["end"] != "root":
                    reasons += 1
                    print(python, mode, what, thread["tid"], thread["native_reason"],
                          thread["end"], thread["reason"])
                    self.assertEqual(python_frames(thread), [])
                    continue
                self.compare(thread, expected[thread["tid"]], python)
        print(f"{python} {what} {mode}: {MOMENTS} moments, {reasons} threads without frames")
        # A moment between two instructions at which the interpreter's data do not agree
        self.assertLessEqual(reasons, MOMENTS // 10 + 1)

    def test_moments(self):
        """At any moment, the frames of all threads are those of faulthandler."""
        for python in interpreters():
            for mode in ("auto", "stop"):
                with self.subTest(python=python, mode=mode):
                    self.compare_moments(python, "work", mode)

    def test_asyncio(self):
        """Coroutines, whose frames are not on the interpreter's stack."""
        for python in interpreters():
            with self.subTest(python=python):
                self.compare_moments(python, "asyncio", "auto")

    def test_blocked(self):
        """Threads in known calls are not stopped, in any mode that copies stacks."""
        for python in interpreters():
            for mode in ("auto", "stop", "no-stop"):
                with self.subTest(python=python, mode=mode):
                    program = Program(self, python, "sleep")
                    harness.wait_until(
                        lambda: set(harness.task_states(program.pid).values()) == {"S"},
                        "all threads sleep")
                    taken = snapshot(program.pid, "--mode=" + mode)
                    if mode != "stop":
                        self.assertEqual(taken["capture"]["threads_stopped"], 0, taken)
                    expected = program.dump_and_resume()
                    for thread in taken["threads"]:
                        self.assertIsNone(thread["native_reason"], taken)
                        self.compare(thread, expected[thread["tid"]], python)

    def test_gil(self):
        """Threads that wait for the GIL, and the one that holds it in a call into C."""
        for python in interpreters():
            with self.subTest(python=python):
                process = subprocess.Popen([python, "-c", GIL], stdout=subprocess.PIPE, text=True)
                self.addCleanup(process.wait)
                self.addCleanup(process.stdout.close)
                self.addCleanup(process.kill)
                holder = int(process.stdout.readline())
                taken = {}

                def all_wait():
                    nonlocal taken
                    taken = snapshot(process.pid)
                    owners = [thread["wait"]["owner_tid"] for thread in taken["threads"]
                              if thread["wait"] and thread["wait"].get("lock") == "python-gil"]
                    # Others may just have been woken.
                    return owners.count(holder) >= 2 and set(owners) <= {holder, None}
                try:
                    harness.wait_until(all_wait, "threads wait for the GIL")
                except AssertionError as error:
                    raise AssertionError(f"{error}: {json.dumps(taken, indent=1)}") from error

    def test_gil_deadlock(self):
        """A thread that keeps the GIL waits for a mutex, and the owner of the mutex for the GIL."""
        for python in interpreters():
            for program, lock in ((GIL_DEADLOCK, "mutex"),
                                  (SQLITE_DEADLOCK, "recursive mutex")):
                with self.subTest(python=python, lock=lock):
                    process = subprocess.Popen([python, "-c", program])
                    self.addCleanup(process.wait)
                    self.addCleanup(process.kill)
                    taken = {}

                    def is_deadlock():
                        nonlocal taken
                        taken = snapshot(process.pid)
                        return taken["deadlocks"]
                    try:
                        harness.wait_until(is_deadlock, "a deadlock")
                    except AssertionError as error:
                        raise AssertionError(f"{error}: {json.dumps(taken, indent=1)}") from error
                    self.assertEqual([d["timed"] for d in taken["deadlocks"]], [False], taken)
                    text = ""

                    # A thread that waits for the GIL wakes up at times.
                    def hang_says_so():
                        nonlocal text
                        done = subprocess.run([harness.STACKSNAP, "hang", "--for=200ms",
                                               str(process.pid)], capture_output=True, text=True,
                                              timeout=harness.LIMIT_S, check=False)
                        text = done.stdout + done.stderr
                        return done.returncode == 3
                    try:
                        harness.wait_until(hang_says_so, "a deadlock")
                    except AssertionError as error:
                        raise AssertionError(f"{error}: {text}") from error
                    self.assertRegex(text, rf"waits for {lock} at 0x\w+, held by (\d+) .*\n"
                                     r"(    .*\n)*    holds the GIL\n"
                                     rf"  \1 .*waits for the GIL, held by {process.pid} \(\w+"
                                     r"[.\w]*\)\n    in (<\w+>|first) at ")

    def test_cycles(self):
        """Of a cycle of locks, the owners are known whichever threads are shown; with time limits in
        loops, too, and then its threads are stuck."""
        for python in interpreters():
            for limit in ("-1", "0.05"):
                with self.subTest(python=python, limit=limit):
                    process = self.start(python, CYCLE, limit)
                    pay, refund = map(int, process.stdout.readline().split())
                    text = ""

                    def is_known(*words):
                        nonlocal text
                        done = subprocess.run([harness.STACKSNAP, *words], capture_output=True, text=True,
                                              timeout=harness.LIMIT_S, check=False)
                        text = done.stdout + done.stderr
                        self.assertNotIn("being taken or released", text)
                        return (done.returncode, "2 threads wait for each other in a cycle" in text,
                                "DEADLOCK" in text) == wanted
                    endless = limit == "-1"
                    try:
                        for words in ([f"--thread={refund}", f"{process.pid}"], [f"{process.pid}/{pay}"],
                                      ["--state=R", f"{process.pid}"]):
                            wanted = (0, True, endless)
                            harness.wait_until(lambda: is_known(*words), str(words))
                        wanted = (3 if endless else 4, True, endless)
                        harness.wait_until(lambda: is_known("hang", "--for=1s", str(process.pid)), "hang")
                    except AssertionError as error:
                        raise AssertionError(f"{error}: {text}") from error

    def start(self, python, program, *arguments, options=()):
        process = subprocess.Popen([python, *options, "-c", program, *arguments],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        return process

    def test_deep(self):
        """10,000 calls, as Python itself counts them: in a list, in C, and in generators."""
        for python in interpreters():
            version = int(subprocess.run([python, "-c", "import sys; print(sys.hexversion)"],
                                         capture_output=True, text=True, check=True).stdout)
            for kind in ("python", "c", "generator"):
                with self.subTest(python=python, kind=kind):
                    # From 3.12 on, calls through C have a limit of their own.
                    limited = version >= 0x030c0000 and kind != "python"
                    depth = 700 if limited else 10000
                    process = self.start(python, DEEP, kind, str(depth))
                    expected = json.loads(process.stdout.readline())
                    self.assertGreater(len(expected), depth)
                    harness.wait_until(lambda: set(harness.task_states(process.pid).values()) ==
                                       {"S"}, "it sleeps")
                    thread = max(snapshot(process.pid)["threads"],
                                 key=lambda thread: len(thread["frames"]))
                    found = [list(frame) for frame in python_frames(thread)]
                    summary = (thread["end"], thread["reason"], thread["native_reason"],
                               len(found), len(expected))
                    self.assertEqual(found[:1], [["<string>", 13, "deepest"]], summary)
                    self.assertTrue(found[1:] == expected, (summary, found[:20], expected[:20]))
                    few, = [other for other in snapshot(process.pid, "-n", "12")["threads"]
                            if other["tid"] == thread["tid"]]
                    calls = [list(frame) for frame in python_frames(few)]
                    self.assertEqual(calls, found[:len(calls)], few)
                    outer = [frame for frame in few["all_frames"] if not frame["inlined"]]
                    self.assertEqual((len(outer), few["end"], few["native_reason"], bool(calls)),
                                     (12, "frames", None, True), few)

    def test_deep_running(self):
        """A thread that runs: its frames are copied while it stands still."""
        program = ("import sys\nsys.setrecursionlimit(50000)\ndef down(n):\n"
                   "    if n: return down(n - 1)\n    print('ready', flush=True)\n"
                   "    while True: pass\ndown(9999)\n")
        process = self.start(sys.executable, program)
        self.assertEqual(process.stdout.readline(), "ready\n")
        for _ in range(20):  # on a machine with much to do, it may stop late
            thread = snapshot(process.pid)["threads"][0]
            if not thread["native_reason"]:
                break
        found = python_frames(thread)
        self.assertEqual(len(found), 10001, (thread["native_reason"], found[:3]))
        self.assertEqual({tuple(frame) for frame in found[1:-1]}, {("<string>", 4, "down")})

    def test_interpreters(self):
        """Calls of two interpreters on one stack; up to 3.10 native frames, and a reason."""
        inner = [("inner", 3), ("calls", 5), ("<module>", 6), ("outer", 11)]
        main, thread = inner + [("<module>", 17)], inner + [("deeper", 14)]
        for python in interpreters():
            with self.subTest(python=python):
                process = self.start(python, INTERPRETERS)
                taken = {}

                def are_asleep():
                    nonlocal taken
                    taken = snapshot(process.pid)
                    # Up to 3.10, time.sleep() calls select().
                    return [(thread["wait"] or {}).get("syscall") in (
                        "clock_nanosleep", "select", "pselect6")
                            for thread in taken["threads"]] == [True, True]
                try:
                    harness.wait_until(are_asleep, "both threads sleep")
                except AssertionError as error:
                    raise AssertionError(f"{error}: {json.dumps(taken)}") from error
                for found in taken["threads"]:
                    frames = [(frame["symbol"], frame["line"]) for frame in found["frames"]
                              if frame["kind"] == "python"]
                    if found["native_reason"]:
                        self.assertRegex(python, r"3\.(8|9|10)", found)
                        self.assertEqual(frames, [], found)
                    elif found["tid"] == process.pid:
                        self.assertEqual(frames, main, found)
                    else:
                        self.assertEqual(frames[:5], thread, found)
                        self.assertEqual(len(frames), 8, found)

    def begin_greenlets(self, how):
        """With Debian's greenlet. Returns the program and what it says of its functions."""
        python = "/usr/bin/python3"
        if subprocess.run([python, "-c", "import greenlet"], check=False,
                          stderr=subprocess.DEVNULL).returncode:
            self.skipTest("greenlet is missing (python3-greenlet)")
        program = subprocess.Popen([python, "-c", GREENLETS, how], stdout=subprocess.PIPE,
                                   text=True)
        self.addCleanup(program.wait)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.kill)
        return program, json.loads(program.stdout.readline())

    def test_greenlets(self):
        """The functions of the current greenlet, and no native frames of others further out."""
        for how in ("sleep", "run"):
            with self.subTest(how=how):
                program, expected = self.begin_greenlets(how)
                thread = snapshot(program.pid)["threads"][0]
                found = [list(frame) for frame in python_frames(thread)]
                self.assertEqual(found[1:], expected, thread)
                self.assertEqual((thread["end"], thread["native_reason"]), ("root", None), thread)
                symbols = [str(frame["symbol"]) for frame in thread["frames"]]
                self.assertNotIn("Py_BytesMain", symbols)
                self.assertFalse([s for s in symbols if "EvalFrameDefault" in s], symbols)
                native = snapshot(program.pid, "--native")["threads"][0]
                symbols = [str(frame["symbol"]) for frame in native["frames"]]
                self.assertTrue([s for s in symbols if "EvalFrameDefault" in s], symbols)
                self.assertNotIn("Py_BytesMain", symbols)

    def test_suspended_greenlets(self):
        """Each has the functions that greenlet itself has of it."""
        program = self.begin_greenlets("suspend")
        expected = sorted((name, [tuple(frame) for frame in frames]) for name, frames in program[1])
        taken = snapshot(program[0].pid)
        found = sorted((task["name"].rsplit(".", 1)[-1], [tuple(frame) for frame in python_frames(task)])
                       for task in taken["tasks"])
        self.assertEqual(found, expected)
        for task in taken["tasks"]:
            self.assertEqual((task["greenlet"], task["status"], task["wait_reason"], task["tid"]),
                             (True, "waiting", "suspended", program[0].pid), task)
        self.assertEqual((taken["tasks_unread"], taken["tasks_problem"]), (0, None))
        text = subprocess.run([harness.STACKSNAP, str(program[0].pid)], capture_output=True,
                              text=True, check=True, timeout=harness.LIMIT_S).stdout
        self.assertIn("\n8 greenlets in 5 groups\n", text)
        self.assertIn(f"\n3 greenlets, suspended, of thread {program[0].pid}: suspend.<locals>.second\n", text)
        with tempfile.TemporaryDirectory(prefix="stacksnap-") as directory:
            self.check_recorded_greenlets(program[0].pid, os.path.join(directory, "recording"))

    def check_recorded_greenlets(self, pid, path):
        """A recording says the same of them."""
        def run(*arguments):
            return subprocess.run([harness.STACKSNAP, *arguments], capture_output=True, text=True,
                                  check=True, timeout=harness.LIMIT_S).stdout
        run("-f", "recording", "-o", path, str(pid))
        self.assertEqual({task["greenlet"] for task in recording.Recording(path).tasks}, {True})
        text = run("diff", path, path)
        self.assertIn("\nunchanged: 3 greenlets, suspended, of thread ", text)
        text = run("report", path)
        self.assertIn("greenlet (suspended)", text)
        self.assertNotIn("task (", text)

    def test_switching_greenlets(self):
        """At any moment the functions are those of one greenlet, or there is a reason."""
        program, _ = self.begin_greenlets("switch")
        with tempfile.TemporaryDirectory(prefix="stacksnap-") as directory:
            path = os.path.join(directory, "recording")
            subprocess.run([harness.STACKSNAP, "record", "--duration=1s", "--rate=400", "-o", path,
                            str(program.pid)], capture_output=True, check=True,
                           timeout=harness.LIMIT_S)
            chains = collections.Counter()
            for _, frames, count in recorded_chains(path):
                chains[tuple(frame["name"] for frame in frames
                             if frame["kind"] == "python")] += count
        correct = {("turn",) + ("nested",) * (n + 1) for n in range(5)} | {("<module>",), ()}
        self.assertLessEqual(set(chains), correct, chains)
        self.assertLess({("<module>",), ("turn", "nested")}, set(chains))

    def test_short_lived(self):
        """Every stack of a thread that begins or ends is one that the program has."""
        # _remove: threading._dangling forgets a thread that is freed
        main = r"^(<module>(;start(;[\w.<>]+)*|;WeakSet\.__init__\.<locals>\._remove)?)?$"
        other = r"^((Thread\.)?_bootstrap(;(Thread\.)?_bootstrap_inner" \
            r"(;(Thread\.)?run(;work(;leaf)?)?|;[\w.<>]+(;[\w.<>]+)*)?)?)?$"
        def functions(chains):
            return {name for chain in chains for name in chain.split(";")}

        for python in interpreters():
            with self.subTest(python=python):
                process = self.start(python, SHORT_LIVED)
                self.assertEqual(process.stdout.readline(), "ready\n")
                seen = {}
                lost = 0
                for attempt in range(100):
                    if attempt >= 20 and {"start", "work"} <= functions(seen):
                        break
                    for thread in snapshot(process.pid)["threads"]:
                        chain = ";".join(frame["symbol"] for frame in reversed(thread["frames"])
                                         if frame["kind"] == "python")
                        self.assertRegex(chain, main if thread["tid"] == process.pid else other,
                                         thread)
                        if "leaf" in chain or "work" in chain:
                            self.assertNotEqual(thread["tid"], process.pid, thread)
                        # The main thread is behind those that end, in the interpreter's list.
                        lost += thread["tid"] == process.pid and \
                            thread["native_reason"] == "they were not found"
                        seen[chain] = seen.get(chain, 0) + 1
                print(python, seen, lost)
                self.assertLess(lost, 4, seen)
                self.assertLessEqual({"start", "work"}, functions(seen), seen)

    def test_places(self):
        """hang says what the program called, and where: also without a list of the threads."""
        program = Program(self, next(interpreters()), "sleep")
        harness.wait_until(lambda: set(harness.task_states(program.pid).values()) == {"S"},
                           "all threads sleep")
        source = harness.read_text(TARGET).splitlines()
        place = re.escape("%s:%d" % (
            TARGET, source.index("            yield self.queue.get()") + 1))
        for options in ([], ["-a"]):
            done = subprocess.run([harness.STACKSNAP, "hang", "--for=200ms", "-v", *options,
                                   str(program.pid)], capture_output=True, text=True,
                                  timeout=harness.LIMIT_S, check=False)
            text = done.stdout + done.stderr
            # Before 3.11, names are not qualified.
            self.assertRegex(text, r"\n  waits in (Queue\.)?get, called at " + place)
            self.assertNotRegex(text, r"(in|called from) _?Py")

    def test_waits_in(self):
        """JSON has the function that the program called, and the place of the call, as fields."""
        for python in interpreters():
            with self.subTest(python=python):
                program = Program(self, python, "sleep")
                harness.wait_until(lambda: set(harness.task_states(program.pid).values()) == {"S"},
                                   "all threads sleep")
                source = [line.strip() for line in harness.read_text(TARGET).splitlines()]
                expected = {(function, caller, TARGET, source.index(line) + 1)
                            for function, caller, line in (
                                ("get", "items", "yield self.queue.get()"),
                                ("wait", "recurse", "return then()"))}
                hang = subprocess.run([harness.STACKSNAP, "hang", "--json", "--for=200ms",
                                       str(program.pid)], capture_output=True, text=True,
                                      timeout=harness.LIMIT_S, check=False).stdout
                for taken in (snapshot(program.pid), json.loads(hang)):
                    places = [thread["waits_in"] for thread in taken["threads"]]
                    found = {(place["function"].split(".")[-1], place["caller"].split(".")[-1],
                              place["file"], place["line"]) for place in places if place}
                    self.assertLessEqual(expected, found, taken)
                text = subprocess.run([harness.STACKSNAP, "-a", str(program.pid)],
                                      capture_output=True, text=True, check=False,
                                      timeout=harness.LIMIT_S).stdout
                for function, _, file, line in expected:
                    place = rf".*{re.escape(os.path.basename(file))}:{line}\n"
                    self.assertRegex(text, r"\n  waits? in (\w+\.)*" + function + ", called at " + place)
                # A stopped thread waits for SIGCONT, wherever it is.
                os.kill(program.pid, signal.SIGSTOP)
                harness.wait_until(lambda: set(harness.task_states(program.pid).values()) == {"T"},
                                   "all threads stop")
                stopped = snapshot(program.pid)["threads"]
                os.kill(program.pid, signal.SIGCONT)
                self.assertEqual({str(thread["waits_in"]) for thread in stopped}, {"None"})

    def test_native(self):
        """--native shows both, and the functions are in front of the loop that executes them."""
        program = Program(self, sys.executable if not list(interpreters())
                          else next(interpreters()), "sleep")
        thread = snapshot(program.pid, "--native")["threads"][0]
        symbols = [frame["symbol"] for frame in thread["frames"]]
        self.assertIn("main", symbols, symbols)
        after = thread["frames"][symbols.index("<module>") + 1]
        self.assertEqual(after["kind"], "native", symbols)
        thread = snapshot(program.pid)["threads"][0]
        self.assertNotIn("_PyEval_EvalFrameDefault",
                         [frame["symbol"] for frame in thread["frames"]])

    def test_between_functions(self):
        """CPython's own native frames between two functions are left out, and those of an extension module
        and of a library are not; --native shows all, and a report does the same."""
        for python in interpreters():
            program = self.start(python, BETWEEN)
            harness.wait_until(lambda: "clock_nanosleep" in json.dumps(snapshot(program.pid)) or
                               "select" in json.dumps(snapshot(program.pid)), "it sleeps")
            shown, every = (self.between(snapshot(program.pid, *options))
                            for options in ([], ["--native"]))
            own = [frame for frame in every if re.search(r"/(lib)?python3[^/]*$", frame[1])]
            loops = [frame for frame in own if frame[0].startswith("_PyEval_EvalFrameDefault")]
            self.assertEqual(shown, [frame for frame in every if frame not in own])
            self.assertGreater(len(own), len(loops), every)
            self.assertTrue([path for _, path in shown if "_ctypes" in path], shown)
            self.assertTrue([path for _, path in shown if "libffi" in path], shown)
            self.assertEqual([name.split(".")[-1] for name, path in shown if not path],
                             ["keyed", "<lambda>", "__call__", "outer"], shown)
            with tempfile.TemporaryDirectory(prefix="stacksnap-") as directory:
                path = os.path.join(directory, "recording")
                subprocess.run([harness.STACKSNAP, "-f", "recording", "-o", path, "-n", "0",
                                str(program.pid)], check=False, timeout=harness.LIMIT_S)
                for options in [], ["--native"]:
                    text = subprocess.run([harness.STACKSNAP, "report", "-f", "folded", *options,
                                           path], capture_output=True, text=True, check=False,
                                          timeout=harness.LIMIT_S).stdout
                    middle = re.search(r"outer[^;]*;(.*);[^;]*inner", text).group(1)
                    glue = [frame for frame in own if frame not in loops]
                    self.assertEqual(glue[0][0] in middle, bool(options), (own, text))

    def between(self, taken):
        """The frames between the innermost function and the outermost one: (name, module)."""
        frames = taken["threads"][0]["frames"]
        places = [at for at, frame in enumerate(frames) if frame["kind"] == "python"]
        modules = {None: ""}
        modules.update((at, module["path"]) for at, module in enumerate(taken["modules"]))
        return [(str(frame["symbol"]), modules[frame["module"]])
                for frame in frames[places[0] + 1:places[-1]]]

    def test_linked_statically(self):
        """A program of another name that has the interpreter in it and does not export it: found by its
        section; a stripped one does not say its version before 3.13."""
        config = sysconfig.get_config_var("LIBPL")
        archive = os.path.join(config, "libpython%d.%d.a" % sys.version_info[:2])
        if not os.path.exists(archive):
            self.skipTest("needs libpython3-dev")
        flags = " ".join(sysconfig.get_config_var(name) or "" for name in
                         ("LIBS", "SYSLIBS", "MODLIBS")).split()
        with tempfile.TemporaryDirectory(prefix="stacksnap-") as directory:
            source, program = (os.path.join(directory, name) for name in ("embed.c", "service"))
            with open(source, "w", encoding="ascii") as file:
                file.write(EMBED)
            subprocess.run([os.environ["CC"], "-no-pie", "-I", sysconfig.get_path("include"), source, "-o",
                            program, archive, *flags, "-lexpat", "-lz", "-lm"], check=True)
            names = [frame["symbol"] for frame in self.embedded(program)["frames"]
                     if frame["kind"] == "python"]
            self.assertEqual(names, ["inner", "outer", "<module>"])
            subprocess.run(["strip", "-o", program + "d", program], check=True)
            thread = self.embedded(program + "d")
            kinds = {frame["kind"] for frame in thread["frames"]}
            if sys.version_info >= (3, 13):
                self.assertIn("python", kinds)
            else:
                self.assertEqual((kinds, thread["native_reason"]),
                                 ({"native"}, "CPython: its version is not known"))

    def embedded(self, program):
        """The main thread of a program when it sleeps."""
        process = subprocess.Popen([program])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        harness.wait_until(lambda: "clock_nanosleep" in json.dumps(snapshot(process.pid)),
                           "the program to sleep")
        return snapshot(process.pid)["threads"][0]

    def test_unknown_version(self):
        """A later version has other structures: native frames, and a reason. This one is made from
        Debian's, with another number where the tool finds it."""
        with open("/usr/bin/python3", "rb") as file:
            data = bytearray(file.read())
        symbols = subprocess.run(["nm", "-D", "/usr/bin/python3"], capture_output=True, text=True,
                                 check=True).stdout
        address = int(re.search(r"^(\w+) \w Py_Version$", symbols, re.M).group(1), 16)
        table, = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        for at in range(table, table + size * count, size):
            kind, _, offset, start, _, length = struct.unpack_from("<IIQQQQ", data, at)
            if kind == 1 and start <= address < start + length:  # PT_LOAD
                place = offset + address - start
        self.assertEqual(struct.unpack_from("<I", data, place)[0], sys_version())
        struct.pack_into("<I", data, place, 0x030f00f0)
        with tempfile.TemporaryDirectory(prefix="stacksnap-") as directory:
            path = os.path.join(directory, "python3.15")
            with open(path, "wb") as file:
                file.write(data)
            os.chmod(path, 0o755)
            process = subprocess.Popen([path, "-c", "import time; time.sleep(1000)"],
                                       env={**os.environ, "PYTHONHOME": "/usr"})
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            harness.wait_until(lambda: "clock_nanosleep" in json.dumps(snapshot(process.pid)),
                               "it sleeps")
            taken = snapshot(process.pid)
            thread, = taken["threads"]
            self.assertEqual(thread["native_reason"],
                             "CPython 3.15.0: this version is not known", taken)
            self.assertEqual(python_frames(thread), [], taken)
            self.assertIn("Py_RunMain", [frame["symbol"] for frame in thread["frames"]], taken)
            self.assertEqual(taken["runtimes"],
                             [{"kind": "python", "version": "CPython 3.15.0",
                               "problem": "CPython 3.15.0: this version is not known"}])
            done = subprocess.run([harness.STACKSNAP, str(process.pid)], capture_output=True,
                                  text=True, timeout=harness.LIMIT_S, check=False)
            self.assertEqual(done.stdout.count("this version is not known"), 1, done.stdout)
            self.assertIn("\nmissing: functions of the program (CPython 3.15.0: ", done.stdout)

    def test_names(self):
        """Threads have the names that threading.enumerate() lists; one that is empty says nothing."""
        for python in interpreters():
            with self.subTest(python=python):
                process = subprocess.Popen([python, "-c", NAMES], stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE, text=True)
                self.addCleanup(process.communicate)
                self.addCleanup(process.kill)
                for _ in range(2):
                    wanted = json.loads(process.stdout.readline())
                    threads = snapshot(process.pid)["threads"]
                    self.assertEqual(
                        {str(t["tid"]): [t["runtime_id"], t["name"]] for t in threads},
                        {tid: [ident, name[:255] or os.path.basename(python)[:15]]
                         for tid, (ident, name) in wanted.items()})
                    self.assertEqual({t["comm"] for t in threads},
                                     {os.path.basename(python)[:15]})
                    last = threads[-1]
                    if last["name"] != last["comm"]:  # by the name that is shown
                        chosen = snapshot(process.pid, "-t", "^%s$" % re.escape(last["name"]))
                        self.assertIn(last["tid"], [t["tid"] for t in chosen["threads"]])
                        self.assertEqual({t["name"] for t in chosen["threads"]}, {last["name"]})
                    self.assertEqual(harness.recorded_names(process.pid),
                                     {t["tid"]: t["name"] for t in threads})
                    process.stdin.write("\n")
                    process.stdin.flush()

    def test_recorded_snapshot(self):
        """Functions travel with a recording, which a report needs nothing else for; --native shows
        the evaluation loops, too."""
        program = Program(self, next(interpreters()), "sleep")
        path = os.path.join(program.directory.name, "snapshot.rec")
        subprocess.run([harness.STACKSNAP, "-f", "recording", "-o", path, str(program.pid)],
                       timeout=harness.LIMIT_S, check=True)
        expected = [python_frames(thread) for thread in snapshot(program.pid)["threads"]]
        program.stop()
        for options in ([], ["--native"]):
            done = subprocess.run([harness.STACKSNAP, "report", "-f", "json", *options, path],
                                  capture_output=True, text=True, timeout=harness.LIMIT_S,
                                  check=False)
            report = json.loads(done.stdout)
            found = []
            for sample in report["samples"]:
                frames, call = [], sample["call"]
                while call is not None:
                    call, frame = report["calls"][call]
                    frames.append(dict(report["frames"][frame],
                                       symbol=report["frames"][frame]["name"]))
                found.append(python_frames({"frames": frames}))
                self.assertEqual("_PyEval_EvalFrameDefault" in [f["symbol"] for f in frames],
                                 bool(options), frames)
            self.assertEqual(sorted(found), sorted(expected), done.stdout + done.stderr)

    def test_recording(self):
        """In a recording, every Python stack is a chain of calls that the program has, with lines of
        their functions; also of generators, and of a thread that never runs. The report needs
        neither the process nor the source."""
        for python in interpreters():
            with self.subTest(python=python), \
                    tempfile.TemporaryDirectory(prefix="stacksnap-") as directory:
                self.record_calls(python, directory)

    def test_recording_of_a_server(self):
        """Threads that run many times between two ticks have their functions, and few are stopped:
        those that run at the tick, not those that ran while others were copied."""
        with tempfile.TemporaryDirectory(prefix="stacksnap-") as directory:
            path = os.path.join(directory, "python.rec")
            with subprocess.Popen([next(interpreters()), "-c", SERVER],
                                  stdout=subprocess.PIPE, text=True) as process:
                try:
                    self.assertEqual(process.stdout.readline(), "ready\n")
                    done = subprocess.run([harness.STACKSNAP, "record", "-d", "2", "-o", path,
                                           str(process.pid)], capture_output=True, text=True,
                                          timeout=harness.LIMIT_S, check=True)
                finally:
                    process.kill()
            whole = others = 0
            for tid, frames, count in recorded_chains(path):
                calls = [frame["name"] for frame in frames if frame.get("kind") == "python"]
                if tid == process.pid:
                    continue
                if calls.count("work") == 21:
                    whole += count
                else:
                    others += count
        ticks, stops = [int(re.search(text, done.stderr).group(1).replace(",", ""))
                        for text in (r"([\d,]+) ticks?,", r"stopped ([\d,]+) time")]
        text = (whole, others, ticks, stops, done.stderr)
        self.assertGreater(whole, 0, text)
        # The first tick has no plan for the memory of functions.
        self.assertLess(others, 0.15 * whole + 100, text)
        self.assertLess(stops, 8 * ticks + 20, text)

    def with_trampolines(self):
        """The interpreters that know perf's trampolines; Debian 12 has none, pyenv may have some."""
        pyenv = os.path.expanduser("~/.pyenv/versions/3.1[2-9].*/bin/python3")
        found = [python for python in {*interpreters(), *map(os.path.realpath, glob.glob(pyenv))}
                 if subprocess.run([python, "-X", "perf", "-c", "import sys; "
                                    "sys.exit(not sys.is_stack_trampoline_active())"],
                                   stderr=subprocess.DEVNULL, check=False).returncode == 0]
        if not found:
            self.skipTest("no CPython from 3.12 on, in PYTHONS or of pyenv")
        return found

    def test_trampolines(self):
        """Native stacks with trampolines are whole and certain, and functions stand for them."""
        for python in self.with_trampolines():
            program = self.start(python, TRAMPOLINES, options=("-X", "perf"))
            harness.wait_until(lambda: "clock_nanosleep" in json.dumps(
                snapshot(program.pid, "-t", str(program.pid))), "it sleeps")
            for options in [], ["--native"], ["--mode=no-stop"]:
                for _ in range(8):  # a snapshot may say that memory could not be read
                    thread = snapshot(program.pid, "-t", str(program.pid), *options)["threads"][0]
                    if not thread["native_reason"]:
                        break
                text = (python, options, thread)
                self.assertEqual(thread["end"], "root", text)
                self.assertNotIn("return-address", [frame["source"] for frame in thread["frames"]], text)
                names = [frame["symbol"] for frame in thread["frames"]]
                self.assertEqual([name for name in names if name in ("sleep", "<module>")],
                                 31 * ["sleep"] + ["<module>"], text)
                stubs = [name for name in names if name and name.startswith("py::")]
                self.assertEqual(len(stubs), 32 if "--native" in options else 0, text)

    def test_moments_of_trampolines(self):
        """The functions that were copied at a sample are those of its native stack, which trampolines
        name: the innermost may be called and not begun yet, or has ended."""
        modes = [(), ("--on-cpu",)] if may_sample_cpus() and harness.may_load_programs() else [()]
        for python, options in ((python, mode) for python in self.with_trampolines() for mode in modes):
            program = self.start(python, TRAMPOLINES, options=("-X", "perf"))
            counts = collections.Counter()
            for _ in range(12):  # on a busy machine there are few samples
                if counts["equal"] <= 100:
                    self.count_trampolines(program.pid, options, counts)
            print(python, options, counts)
            self.assertGreater(counts["equal"], 20, (python, options, counts))
            self.assertLess(counts["about to begin"] + counts["not copied"], 0.5 * counts["equal"],
                            (python, options, counts))

    def count_trampolines(self, pid, options, counts):
        with tempfile.TemporaryDirectory(prefix="stacksnap-") as directory:
            path = os.path.join(directory, "python.rec")
            subprocess.run([harness.STACKSNAP, "record", "-r", "400", "-d", "1", "-o", path, *options,
                            str(pid)], capture_output=True, timeout=harness.LIMIT_S, check=True)
            for _, frames, count in recorded_chains(path, "--native"):
                stubs = [frame["name"][len("py::"):].rsplit(":", 1)[0] for frame in frames
                         if frame["name"].startswith("py::")]
                calls = [frame["name"] for frame in frames if frame["kind"] == "python"]
                if stubs and calls:
                    self.assertIn(calls, (stubs, stubs[1:]), (options, frames))
                    counts["equal" if calls == stubs else "about to begin"] += count
                elif stubs:
                    counts["not copied"] += count

    @unittest.skipUnless(os.geteuid() == 0 and harness.makes_namespaces(), "makes no pid namespace")
    def test_recording_in_a_pid_namespace(self):
        """As in a container: a thread state has the id of its thread in there."""
        modes = [(), ("--on-cpu",)] if may_sample_cpus() and harness.may_load_programs() else [()]
        command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", next(interpreters()), "-c",
                   SERVER]
        for options in modes:
            with tempfile.TemporaryDirectory(prefix="stacksnap-") as directory:
                path = os.path.join(directory, "python.rec")
                with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                    try:
                        self.assertEqual(process.stdout.readline(), "ready\n")
                        pid = int(harness.read_text("/proc/%d/task/%d/children" % (process.pid, process.pid)))
                        done = subprocess.run([harness.STACKSNAP, "record", "-d", "2", "-o", path, *options,
                                               str(pid)], capture_output=True, text=True,
                                              timeout=harness.LIMIT_S, check=True)
                    finally:
                        process.kill()
                counts = collections.Counter()
                tids = set()
                for tid, frames, count in recorded_chains(path):
                    calls = [frame["name"] for frame in frames if frame.get("kind") == "python"]
                    if tid != pid:
                        counts["work" in calls] += count
                        tids.add(tid)
            # With --on-cpu, it is the first sample of a thread that tells its id.
            first = len(tids) if options else 0
            self.assertGreater(counts[True], 2 * (counts[False] - first),
                               (options, counts, first, done.stderr))

    def test_recording_of_deep_functions(self):
        """A thread that computes as deep as Python permits by default: its samples have all of its
        functions, or none where the recording thins itself, since reading them takes long."""
        with tempfile.TemporaryDirectory(prefix="stacksnap-") as directory:
            path = os.path.join(directory, "python.rec")
            with subprocess.Popen([next(interpreters()), "-c", DEEP_COMPUTING], stdout=subprocess.PIPE,
                                  text=True) as process:
                try:
                    self.assertEqual(process.stdout.readline(), "ready\n")
                    done = subprocess.run([harness.STACKSNAP, "record", "-d", "1", "-o", path,
                                           str(process.pid)], capture_output=True, text=True,
                                          timeout=harness.LIMIT_S, check=True)
                finally:
                    process.kill()
            depths = collections.Counter()
            for _, frames, count in recorded_chains(path):
                depths[sum(frame.get("name") == "deep" for frame in frames)] += count
        self.assertGreater(depths[951], 2, (depths, done.stderr))
        if "at most 1 % of its time" in done.stderr:
            self.assertEqual(depths[951] + depths[0], depths.total(), (depths, done.stderr))
        else:
            self.assertGreater(depths[951], depths.total() / 2, (depths, done.stderr))

    def test_recording_of_replaced_functions(self):
        """A new function may have the addresses of one that is gone, with all its objects. Here
        the name is changed in place: what was read for an earlier sample does not count."""
        with tempfile.TemporaryDirectory(prefix="stacksnap-") as directory:
            path = os.path.join(directory, "python.rec")
            with subprocess.Popen([next(interpreters()), "-c", REPLACED],
                                  stdout=subprocess.DEVNULL) as process:
                try:
                    subprocess.run([harness.STACKSNAP, "record", "-d", "2", "-o", path,
                                    str(process.pid)], capture_output=True,
                                   timeout=harness.LIMIT_S, check=True)
                finally:
                    process.kill()
            found = []
            for sample in recording.Recording(path).samples:
                calls = [frame[3] for frame in sample["frames"]
                         if isinstance(frame[3], recording.Call)]
                found += [int(call.function[2:]) for call in calls
                          if call.function.startswith("f_")]
        self.assertEqual(found, sorted(found))
        self.assertGreater(len(set(found)), 5, found)

    def test_recorded_innermost(self):
        """What the interpreter does for a function is that function, and what called the first one is
        not shown; a library that it calls is. --native shows all."""
        python = next(interpreters())
        for work, inner in (("sorted(data, key=abs)", "^busy$"), ("zlib.compress(text)", "libz|deflate")):
            program = self.start(python, "import zlib\ndata = list(range(20000))\ntext = bytes(2 << 20)\n"
                                 "def busy():\n    while True:\n        %s\n"
                                 "print('ready', flush=True)\nbusy()\n" % work)
            self.assertEqual(program.stdout.readline(), "ready\n")
            with tempfile.TemporaryDirectory(prefix="stacksnap-") as directory:
                path = os.path.join(directory, "recording")
                subprocess.run([harness.STACKSNAP, "record", "-d", "1", "-o", path, str(program.pid)],
                               capture_output=True, timeout=harness.LIMIT_S, check=True)
                ends = {}
                for options in [], ["--native"]:
                    for _, frames, count in recorded_chains(path, *options):
                        if "python" in [frame["kind"] for frame in frames]:
                            key = (bool(options), frames[0]["name"], frames[-1]["name"])
                            ends[key] = ends.get(key, 0) + count
            self.assertEqual({last for native, _, last in ends if not native}, {"<module>"}, ends)
            self.assertNotIn("<module>", {last for native, _, last in ends if native}, ends)
            most = max((count, first) for (native, first, _), count in ends.items() if not native)
            self.assertRegex(most[1], inner, ends)

    def record_calls(self, python, directory):
        source = os.path.join(directory, "recorded.py")
        with open(source, "w", encoding="ascii") as file:
            file.write(RECORDED)
        path = os.path.join(directory, "python.rec")
        process = subprocess.Popen([python, source], stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual(process.stdout.readline(), "ready\n")
            subprocess.run([harness.STACKSNAP, "record", "-d", "2", "-o", path, str(process.pid)],
                           capture_output=True, timeout=harness.LIMIT_S, check=True)
        finally:
            process.kill()
            process.stdout.close()
            process.wait()
        os.unlink(source)
        ranges = {}  # function: its lines
        name = "<module>"
        for number, line in enumerate(RECORDED.splitlines(), 1):
            if line.startswith("def "):
                name = line[4:line.index("(")]
            elif line and not line.startswith(" "):
                name = "<module>"
            ranges.setdefault(name, set()).add(number)
        chains, native = {}, {}
        for tid, frames, count in recorded_chains(path):
            if frames and frames[-1]["name"].startswith("["):
                continue  # it ran, and could not be read
            calls = [frame for frame in frames if frame["file"] == source]
            for frame in calls:
                self.assertEqual(frame["kind"], "python", frame)
                self.assertIn(frame["line"], ranges[frame["name"]], frame)
            chain = ";".join(frame["name"] for frame in reversed(calls))
            counts = chains if chain else native
            key = (tid == process.pid, chain)
            counts[key] = counts.get(key, 0) + count
        print(python, chains, native)
        for main, chain in chains:
            self.assertRegex(chain, "^<module>$" if main else
                             "^work(;(count(;middle(;leaf)?)?|Thread.*))?$", chains)
        self.assertTrue(any(not main for main, _ in chains), (chains, native))
        self.assertTrue(any(main for main, _ in chains), (chains, native))
        self.assertIn((False, "work;count;middle;leaf"), chains, (chains, native))
        # Threads that woke up while their calls were copied; more of them on a busy machine
        self.assertLess(sum(native.values()), sum(chains.values()) / 2, (chains, native))


if __name__ == "__main__":
    unittest.main(verbosity=2)
