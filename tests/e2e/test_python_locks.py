"""Locks of Python: who holds a threading.Lock or RLock, and deadlocks of them. The owner of a Lock
is known only in a with statement; programs that release it there must not be taken for owners.

Debian packages: python3. PYTHONS: more interpreters, separated by colons."""

import ast
import json
import re
import time

from harness import EndToEnd, all_sleep, main, task_switches, wait_until
from test_python import interpreters

START = """
import contextlib, queue, socket, sys, threading, time
Lock = threading.Lock
threads = {}
def start(name, function, *arguments):
    begun = threading.Event()
    def run():
        threads[name] = threading.get_native_id()
        begun.set()
        function(*arguments)
    threading.Thread(target=run, daemon=True).start()
    begun.wait()
def in_with(x, y, both):
    with x:
        both.wait()
        with y:
            pass
def in_call(x, y, both):
    x.acquire()
    both.wait()
    y.acquire()
def pair(name, kind, function):
    a, b, both = kind(), kind(), threading.Barrier(2)
    start(name + "-1", function, a, b, both)
    start(name + "-2", function, b, a, both)
def locked():
    lock = Lock()
    lock.acquire()
    return lock
def serve():
    print(threads, flush=True)
    print("ready", flush=True)
    server = socket.create_server(("127.0.0.1", 0))
    server.accept()
"""

DEADLOCKS = """
def again(lock):
    with lock:
        with lock:
            pass
def nested(outer, x, y, both):
    with outer, x:
        try:
            raise ValueError
        except ValueError:
            with open("/dev/null"):
                both.wait()
                queue_of[y].put(1)
pair("with", Lock, in_with)
pair("with-rlock", threading.RLock, in_with)
pair("rlock", threading.RLock, in_call)
start("self", again, Lock())
# The lock of a queue, below functions of the library
jobs, lock, both = queue.Queue(), Lock(), threading.Barrier(2)
queue_of = {"jobs": jobs}
start("queue-1", nested, Lock(), lock, "jobs", both)
start("queue-2", in_with, jobs.mutex, lock, both)
# The end of a thread
def joins(name, other, both):
    objects[name] = threading.current_thread()
    both.wait()
    objects[other].join()
def joins_in_with(lock, both):
    both.wait()
    with lock:
        both.wait()
        objects["flush"].join()
def flushes(lock, both):
    objects["flush"] = threading.current_thread()
    both.wait()
    both.wait()
    with lock:
        pass
objects, lock, both = {}, Lock(), threading.Barrier(2)
start("join-1", joins, "join-1", "join-2", both)
start("join-2", joins, "join-2", "join-1", both)
both = threading.Barrier(2)
start("stop", joins_in_with, lock, both)
start("flush", flushes, lock, both)
serve()
"""

TIMED = """
def timed(x, y, both):
    with x:
        both.wait()
        y.acquire(timeout=1000)
pair("timed", Lock, timed)
serve()
"""

# Threads of a library, which are older than those of Python
NATIVE = """
import ctypes
libc = ctypes.CDLL(None)
semaphore = ctypes.create_string_buffer(32)
libc.sem_init(semaphore, 0, 0)
for _ in range(300):
    assert libc.pthread_create(ctypes.byref(ctypes.c_ulong()), None, libc.sem_wait, semaphore) == 0
threads.update(("native-%d" % i, -i) for i in range(300))
""" + TIMED

# Each of these threads waits for a lock that no thread owns of which that can be known.
NONE = """
hidden = locked()
def wait_for(lock):
    with lock:
        pass
# A condition releases the lock of the with statement around it.
def waits(lock, condition):
    with lock:
        condition.wait()
def takes(lock, taken):
    lock.acquire()
    taken.set()
    hidden.acquire()
lock, taken = Lock(), threading.Event()
condition = threading.Condition(lock)
start("waits", waits, lock, condition)
while not condition._waiters:
    time.sleep(0.001)
start("takes", takes, lock, taken)
taken.wait()
start("condition-waits", wait_for, lock)
# The frame itself releases it, or a context manager of the program.
def releases(lock, other, both):
    with lock:
        lock.release()
        both.wait()
        other.acquire()
@contextlib.contextmanager
def unlocked(lock):
    lock.release()
    yield
    lock.acquire()
def leaves(lock, other, both):
    with lock:
        with unlocked(lock):
            both.wait()
            with other:
                pass
for name, function in (("releases", releases), ("leaves", leaves)):
    lock, other, both = Lock(), locked(), threading.Barrier(2)
    start(name, function, lock, other, both)
    both.wait()
    lock.acquire() # this thread has it
    start(name + "-waits", wait_for, lock)
# An object of the program releases it and acquires it again, at once or in functions that return.
class Unlocked:
    def __init__(self, lock):
        self.lock = lock
    def __enter__(self):
        self.lock.release()
    def __exit__(self, *_):
        self.lock.acquire()
    unlock = __enter__
    relock = __exit__
    def again(self):
        self.lock.__enter__()
def in_object(lock, entered, go):
    with lock:
        with Unlocked(lock):
            entered.set()
            go.wait()
def in_functions(lock, entered, go):
    with lock:
        unlocked = Unlocked(lock)
        unlocked.unlock()
        entered.set()
        go.wait()
        unlocked.relock()
def in_enter(lock, entered, go):
    with lock:
        unlocked = Unlocked(lock)
        unlocked.unlock()
        entered.set()
        go.wait()
        unlocked.again()
def in_itself(lock, entered, go):
    with lock:
        Unlocked(lock).unlock()
        entered.set()
        go.wait()
        lock.acquire()
for function in (in_object, in_functions, in_enter, in_itself):
    lock, entered, go = Lock(), threading.Event(), threading.Event()
    start(function.__name__ + "-waits", function, lock, entered, go)
    entered.wait()
    lock.acquire()
    go.set()
# Tracing puts its own instructions in place of some, here of the inner statement.
def traced(fail, lock, other, entered):
    with lock:
        if fail:
            raise ValueError
        with Unlocked(lock):
            entered.set()
            other.acquire()
if hasattr(sys, "monitoring"):
    sys.monitoring.use_tool_id(0, "test")
    sys.monitoring.register_callback(0, sys.monitoring.events.LINE,
                                     lambda *_: sys.monitoring.DISABLE)
    sys.monitoring.set_local_events(0, traced.__code__, sys.monitoring.events.LINE)
lock, entered = Lock(), threading.Event()
try:
    traced(True, lock, None, None)
except ValueError:
    pass
start("traced", traced, False, lock, locked(), entered)
entered.wait()
lock.acquire()
start("traced-waits", wait_for, lock)
# The with statement has ended: its words are still where they were.
def ended(x, y, z, go):
    with x:
        with y:
            with z:
                pass
    try:
        with z:
            raise ValueError
    except ValueError:
        pass
    go.set()
    hidden.acquire()
x, y, z, go = Lock(), Lock(), Lock(), threading.Event()
start("ended", ended, x, y, z, go)
go.wait()
for name, lock in (("x", x), ("y", y), ("z", z)):
    lock.acquire()
    start(name + "-waits", wait_for, lock)
# A signal, and jobs
start("signal", locked().acquire)
start("jobs", queue.Queue().get)
# An RLock that a condition released
condition = threading.Condition()
def waits_inside():
    with condition:
        condition.wait()
start("condition-rlock", waits_inside)
serve()
"""

# Functions with the largest tables that are read, of which each entry leads to another one
HOSTILE = """
def entry(start, size, target):
    return b"".join(bytes((0x40 | n >> 6, n & 63)) for n in (start, size, target)) + bytes(1)
source = "def f(n, lock):\\n if n: return f(n - 1, lock)\\n lock.acquire()\\n" + " n = 1\\n" * 1600
exec(source)
chain = b"".join(entry(3000 + i, 1, 3001 + i) for i in range(62)) + entry(0, 2900, 3000)
f.__code__ = f.__code__.replace(co_exceptiontable=bytes(65536 - len(chain)) + chain)
def holds(lock, taken):
    with lock:
        taken.set()
        locked().acquire()
lock, taken = Lock(), threading.Event()
start("holds", holds, lock, taken)
taken.wait()
for i in range(30):
    start("%d-waits" % i, f, 250, lock)
serve()
"""


class PythonLocks(EndToEnd):
    def judge(self, python, program, status):
        """The report of hang, and its threads by their names in the program."""
        process = self.start_command([python, "-c", START + program])
        names = {tid: name for name, tid in ast.literal_eval(process.lines[0]).items()}
        before = None

        def rests():
            nonlocal before
            now = task_switches(process.pid)
            same = now == before and all_sleep(process.pid, len(names) + 1)
            before = now
            time.sleep(0.1)
            return same
        wait_until(rests, "all threads to wait")
        report = json.loads(self.run_tool("hang", "--for=300ms", "--json", process.pid,
                                          status=(status,)).stdout)
        self.assert_free(process.pid)
        return report, {names.get(thread["tid"], "main"): thread
                        for thread in report["threads"]}

    def test_deadlocks(self):
        for python in interpreters():
            with self.subTest(python=python):
                report, threads = self.judge(python, DEADLOCKS, 3)
                note = json.dumps(report, indent=1)
                tids = {name: thread["tid"] for name, thread in threads.items()}
                for first, second, lock in (
                        ("with-1", "with-2", "python-lock"),
                        ("with-rlock-1", "with-rlock-2", "python-rlock"),
                        ("rlock-1", "rlock-2", "python-rlock"), ("self", "self", "python-lock"),
                        ("queue-1", "queue-2", "python-lock"), ("join-1", "join-2", "thread"),
                        ("stop", "flush", None)):
                    for name, owner in ((first, second), (second, first)):
                        wait = threads[name]["wait_data"]
                        self.assertEqual(wait["owner_tid"], tids[owner], (name, note))
                        self.assertIn(lock, (wait["lock"], None), (name, note))
                self.assertEqual(sorted(len(d["tids"]) for d in report["deadlocks"]),
                                 [1, 2, 2, 2, 2, 2, 2], note)
                self.assertEqual(threads["stop"]["wait_data"]["kind"], "join", note)
                self.assertEqual(threads["flush"]["wait_data"]["kind"], "mutex", note)
                self.assertEqual({d["timed"] for d in report["deadlocks"]}, {False}, note)
                self.assertFalse(threads["main"]["stuck"], note)

    def test_none(self):
        for python in interpreters():
            with self.subTest(python=python):
                report, threads = self.judge(python, NONE, 0)
                note = json.dumps(report, indent=1)
                self.assertEqual(report["deadlocks"], [], note)
                self.assertGreater(len(threads), 13, note)
                for name, thread in threads.items():
                    wait = thread["wait_data"]
                    self.assertIsNone(wait and wait.get("owner_tid"), (name, note))
                waits = [thread["wait_data"] for name, thread in threads.items()
                         if name.endswith("-waits")]
                self.assertEqual({wait["lock"] for wait in waits}, {"python-lock"}, note)

    def test_hostile(self):
        for python in interpreters():
            with self.subTest(python=python):
                if not re.search(r"3\.1[1-3]", python):
                    continue
                report, threads = self.judge(python, HOSTILE, 0)
                note = json.dumps(report, indent=1)
                wait = threads["1-waits"]["wait_data"]
                self.assertEqual(wait["lock"], "python-lock", note)
                # The work has a limit, beyond which no owner is named.
                self.assertIsNone(wait["owner_tid"], note)

    def test_timed(self):
        for python in interpreters():
            with self.subTest(python=python):
                report, _ = self.judge(python, NATIVE, 4)
                self.assertEqual([d["timed"] for d in report["deadlocks"]], [True],
                                 json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
