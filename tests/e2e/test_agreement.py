"""Every command says the same of one thread: what it waits for, on which object, who owns it, whether
it is in a deadlock, and which functions it is in. Programs that stand still are looked at by a
snapshot, a series, hang, diff, a recording and its report, top, a core file, and several processes at
once. STACKSNAP_TRIES: all situations; otherwise a part of them."""
# ctest: long-with-sanitizers slow timeout=900 tries=1

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from harness import EndToEnd, LIMIT_S, TARGETS, main

ALL = "STACKSNAP_TRIES" in os.environ
# A core file has no file descriptors and no other processes. But it has all memory: also that in which
# the C library keeps its own locks.
CORE_KEYS = ("kind", "syscall", "lock", "address", "symbol", "owner_tid")
# Targets that move, end, or need a tracer of their own are left out.
TARGET_COMMANDS = [
    ("threads",), ("lockwaits",), ("deadlock", "normal"), ("deadlock", "pi"), ("pools", "accept"),
    ("pools", "inverted"), ("processes", "pipes", "DIRECTORY"), ("processes", "mutex", "DIRECTORY"),
    ("sighandler",), ("other_stack",),
    ("cplusplus",), ("deep",), ("noreturn",), ("long_names",), ("cpplocks",), ("heap",),
    ("realigned",), ("threads_fp",), ("threads_static",), ("threads_stripped",), ("threads_nopie",),
    ("deadlock", "adaptive"), ("deadlock", "robust"), ("deadlock", "shared"), ("deadlock", "c11"),
    ("deadlock", "timed"), ("deadlock", "globals"), ("deadlock", "normal", "1"),
    ("deadlock", "normal", "5", "3"), ("pools", "epoll"), ("pools", "job"), ("pools", "datagram"),
    ("pools", "answer"), ("waits", "DIRECTORY"), ("processes", "flock", "DIRECTORY"),
    ("processes", "robust", "DIRECTORY"), ("processes", "rwlock", "DIRECTORY"),
    ("processes", "chain", "DIRECTORY"),
]
SHORT = 10  # of these, in CI
LEFT = re.compile(r", (with a time limit|[^,]* left)\b")
TIME = re.compile(r"\b\d[\d.]* (ns|us|ms|s|min|h|days?)\b")
CUT = re.compile(r"(at least )?\b\d+ (fds|more)\b")
START = "import threading, queue, sys, socket\nready = threading.Barrier(3)\n"
STAY = "ready.wait()\nprint('ready', flush=True)\nsys.stdin.read()\n"
RUN = "for i in range(2): threading.Thread(target=run, args=(i,), daemon=True).start()\n" + STAY
PYTHON = {
    "locks": START + "a, b = threading.RLock(), threading.RLock()\n"
             "def run(i):\n    with (a, b)[i]:\n        ready.wait()\n        (b, a)[i].acquire()\n"
             + RUN,
    "asyncio": "import asyncio, sys, threading\n"
               "async def sleeps():\n    await asyncio.sleep(1e6)\n"
               "async def everything():\n"
               "    tasks = [asyncio.create_task(sleeps()) for _ in range(3)]\n"
               "    await asyncio.sleep(0.1)\n    print('ready', flush=True)\n"
               "    await asyncio.gather(*tasks)\nasyncio.run(everything())\n",
    "queue": START + "q = queue.Queue()\ndef run(i):\n    ready.wait()\n    q.get()\n" + RUN,
    "lock": START + "a = threading.Lock()\na.acquire()\n"
            "def run(i):\n    ready.wait()\n    a.acquire()\n" + RUN,
    "condition": START + "c = threading.Condition()\n"
                 "def run(i):\n    ready.wait()\n    with c: c.wait()\n" + RUN,
    "event": START + "e = threading.Event()\ndef run(i):\n    ready.wait()\n    e.wait(1e5)\n" + RUN,
    "join": START + "def stay():\n    threading.Event().wait()\n"
            "t = threading.Thread(target=stay, daemon=True)\nt.start()\n"
            "def run(i):\n    ready.wait()\n    t.join()\n" + RUN,
    "socket": START + "s = socket.create_server(('127.0.0.1', 0))\n"
              "def run(i):\n    ready.wait()\n    s.accept()\n" + RUN,
}
NODE = {
    "timer": "console.log('ready'); setTimeout(() => {}, 1e8)",
    "server": "require('net').createServer().listen(0, '127.0.0.1', () => console.log('ready'))",
}
JAVA = """
public class Stay {
    static final Object a = new Object(), b = new Object();
    static final java.util.concurrent.CountDownLatch both = new java.util.concurrent.CountDownLatch(2);
    static void take(Object x, Object y) {
        synchronized (x) {
            both.countDown();
            try { both.await(); } catch (InterruptedException e) { }
            synchronized (y) { }
        }
    }
    public static void main(String[] arguments) throws Exception {
        new Thread(() -> take(a, b), "first").start();
        new Thread(() -> take(b, a), "second").start();
        new Thread(() -> java.util.concurrent.locks.LockSupport.park(), "parked").start();
        both.await();
        Thread.sleep(300);
        System.out.println("ready");
        System.in.read();
    }
}
"""
GO = """package main

import ("fmt"; "os"; "sync"; "time")

func main() {
	var lock sync.Mutex
	lock.Lock()
	channel := make(chan int)
	go func() { lock.Lock() }()
	go func() { <-channel }()
	time.Sleep(100 * time.Millisecond)
	fmt.Println("ready")
	os.Stdin.Read(make([]byte, 1))
}
"""
# Programs from packages, which stand still without work. They print nothing, or anything.
REAL = {
    "sleep": ["sleep", "1000"],
    "cat": ["cat"],
    "tail": ["tail", "-f", "/dev/null"],
    "shell": ["sh", "-c", "sleep 1000; true"],
    "perl": ["perl", "-e", "<STDIN>"],
    "ruby": ["ruby", "-e", "Thread.new { Queue.new.pop }; STDIN.read"],
    "sbcl": ["sbcl", "--noinform", "--eval", "(sleep 1000)"],
    "memcached": ["memcached", "-u", "root", "-l", "127.0.0.1", "-p", "0", "-s", "DIRECTORY/socket"],
    "redis": ["redis-server", "--port", "0", "--unixsocket", "DIRECTORY/socket", "--save", "",
              "--hz", "1"],
    "haproxy": ["haproxy", "-db", "-f", "DIRECTORY/haproxy.cfg"],
}
HAPROXY = ("global\n  nbthread 2\ndefaults\n  mode http\n  timeout connect 1h\n"
           "  timeout client 1h\n  timeout server 1h\n"
           "frontend f\n  bind unix@DIRECTORY/socket\n")
WAIT_KEYS = ("kind", "syscall", "lock", "address", "symbol", "owner_tid", "owner_pid",
             "owner_unknown", "fd", "purpose", "purpose_function", "timed")


def facts(wait):
    return wait and {key: wait.get(key) for key in WAIT_KEYS}


def lasting(text):
    """The text without times, which pass, and without what a recording leaves out of long lists."""
    text = TIME.sub("some time", LEFT.sub("", text))
    return CUT.sub("many", text)


def functions(frames):
    return [frame.get("symbol") for frame in frames]


def cycles(data):
    """Those of the process, and those with others."""
    return (sorted(sorted(deadlock["tids"]) for deadlock in data["deadlocks"]),
            sorted(sorted((member["pid"], member["tid"]) for member in cycle["members"])
                   for cycle in data["cycles"]))


def deadlocked(data):
    """The threads of the process that are part of a deadlock."""
    own, others = cycles(data)
    return sorted([tid for cycle in own for tid in cycle] +
                  [tid for cycle in others for pid, tid in cycle if pid == data["process"]["pid"]])


class Agreement(EndToEnd):
    def read(self, *arguments):
        result = self.run_tool(*arguments, status=(0, 1, 3, 4))
        return [json.loads(line) for line in result.stdout.decode().splitlines() if line]

    def recorded(self, pid):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "recording")
            self.run_tool("-f", "recording", "-o", path, pid, status=(0, 1))
            return {"report": json.loads(self.run_tool("report", "-f", "json", path,
                                                       status=(0, 1)).stdout),
                    "rows of a recording": self.rows("report", path),
                    "text of a recording": self.text("report", path)}

    def text(self, *arguments):
        return self.run_tool(*arguments, status=(0, 1)).stdout.decode()

    def rows(self, *arguments):
        """Those of threads, but for the moment: its number, and the time that is left."""
        return [dict(row, snapshot=None, batch=None, wait_text=lasting(row["wait_text"]))
                for row in self.read(*arguments[:-1], "-f", "rows", arguments[-1])
                if row["table"] == "threads"]

    def dumped(self, pid):
        """A snapshot of a core file that gdb writes. None: it cannot."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "core")
            subprocess.run(["gdb", "--nx", "--batch", "-iex", "set debuginfod enabled off", "-p",
                            str(pid), "-ex", "gcore " + path], stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_S,
                           check=False)
            return self.read("core", "-f", "json", path)[0] if os.path.exists(path) else None

    def compare_core(self, first, core):
        by_tid = {thread["tid"]: thread for thread in core["threads"]}
        for thread in first["threads"]:
            other = by_tid[thread["tid"]]
            self.assertEqual(functions(other["frames"]), functions(thread["frames"]),
                             ("core", thread["tid"]))
            wait = thread["wait"]
            if wait and wait.get("lock"):
                elsewhere = wait["lock"] in ("libc", "stream") or wait["owner_pid"]
                keys = CORE_KEYS[:-1 if elsewhere else None]
                self.assertEqual({key: other["wait"].get(key) for key in keys},
                                 {key: wait.get(key) for key in keys}, ("core", thread["tid"]))
        self.assertEqual(cycles(core)[0], cycles(first)[0], "core")  # it is of one process

    def compare_top(self, pid, hang):
        """The screen has the sentences that hang has, but for the time that is left: it is not read
        while a wait is recorded."""
        result = self.run_tool("top", "--once", "--rows=1000", pid, status=(0, 1))
        screen = result.stdout.decode()
        texts = {str(thread["tid"]): thread["wait"] for thread in hang["threads"]
                 if thread["wait"]}
        shown = re.findall(r"^ *1 +(?:in a deadlock|blocked) +.*? (\d+) waits for (.*)$", screen, re.M)
        for tid, text in shown:
            if tid in texts:
                self.assertIn(lasting(text), lasting(texts[tid]), ("top", tid, screen))
        self.assertLessEqual({str(tid) for tid in deadlocked(hang)}, {tid for tid, _ in shown}, screen)

    def still(self, snapshot, names):
        return [(facts(thread["wait"]), functions(thread["frames"]))
                for thread in snapshot["threads"] if not names or thread["name"] in names]

    def compare(self, pid, dump, names):
        """Twice: of a program that moved in between, nothing is known."""
        first, = self.read("-f", "json", pid)
        seen = {
            "series": self.read("-c", "2", "-i", "20ms", "--each", "-f", "json", pid)[-1],
            "hang": self.read("hang", "--for=200ms", "-f", "json", pid)[0],
            "diff": self.read("diff", "--after=50ms", "-f", "json", pid)[0],
            "merged": self.read("-c", "2", "-i", "20ms", "-f", "json", pid)[0],
            "rows": self.rows(pid),
            **self.recorded(pid),
        }
        core = self.dumped(pid) if dump else None
        last, = self.read("-f", "json", pid)
        if self.still(first, names) != self.still(last, names):
            return False
        for thread in first["threads"]:
            if not names or thread["name"] in names:
                self.compare_thread(thread, seen)
        for command in ("series", "hang", "merged"):
            self.assertEqual(cycles(seen[command]), cycles(first), command)
            if not names:
                self.assertEqual(seen[command]["blockers"], first["blockers"], command)
        waits = seen["report"]["waits"]
        self.assertEqual(sorted(seen["report"]["threads"][wait["thread"]]["tid"]
                                for wait in waits if wait["deadlock"]), deadlocked(first))
        self.assertEqual("DEADLOCK" in seen["text of a recording"], "DEADLOCK" in self.text(pid))
        if core:
            self.compare_core(first, core)
        if deadlocked(first) or first["blockers"]:
            self.compare_top(pid, seen["hang"])
        return True

    def compare_thread(self, thread, seen):
        tid = thread["tid"]
        by_tid = {command: {other["tid"]: other for other in seen[command]["threads"]}
                  for command in ("series", "hang", "diff")}
        self.assertEqual(facts(by_tid["series"][tid]["wait"]), facts(thread["wait"]), tid)
        self.assertEqual(facts(by_tid["hang"][tid]["wait_data"]), facts(thread["wait"]), tid)
        self.assertEqual(by_tid["hang"][tid]["wait"],
                         thread["wait"] and by_tid["hang"][tid]["wait_data"]["text"], tid)
        self.assertEqual(facts(by_tid["diff"][tid]["wait"]), facts(thread["wait"]), tid)
        for command in ("series", "diff"):
            self.assertEqual(functions(by_tid[command][tid]["frames"]),
                             functions(thread["frames"]), (command, tid))
        if thread["wait"]:  # others move
            self.compare_rows(thread, by_tid["series"][tid], seen)
        waits = [wait for wait in seen["report"]["waits"]
                 if seen["report"]["threads"][wait["thread"]]["tid"] == tid]
        self.assertEqual([facts(wait["data"]) for wait in waits],
                         [facts(thread["wait"])] if thread["wait"] else [], tid)
        for wait in waits:
            self.assertEqual(lasting(wait["text"]), lasting(thread["wait"]["text"]), tid)

    def compare_rows(self, thread, other, seen):
        """How a stack ends, which diff and hang do not say."""
        for key in ("end", "reason"):
            self.assertEqual(other[key], thread[key], (key, thread["tid"]))
        rows = [row for row in seen["rows of a recording"] if row["tid"] == thread["tid"]]
        self.assertEqual([row["end"] for row in rows], [thread["end"]], thread["tid"])
        self.assertEqual(rows, [row for row in seen["rows"] if row["tid"] == thread["tid"]])

    def compare_program(self, target, dump=True, names=(), tries=3):
        """names: of threads that stand still while others wake up now and then. Also one that waits may
        run for a moment, in which a command finds it; what is wrong is so each time."""
        for left in reversed(range(tries)):
            try:
                if self.compare(target.pid, dump, names):
                    return
            except AssertionError:
                if left == 0:
                    raise
        self.fail("it never stood still")

    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)

    def words(self, words):
        return [word.replace("DIRECTORY", self.directory) for word in words]

    def test_targets(self):
        compared = 0
        for name, *words in TARGET_COMMANDS[:None if ALL else SHORT]:
            if not os.access(os.path.join(TARGETS, name), os.X_OK):
                continue
            with self.subTest(target=name, words=words):
                target = self.start(name, *self.words(words), settle=False)
                self.compare_program(target)
                target.kill()
                compared += 1
        self.assertGreater(compared, 8)

    def test_python(self):
        for name, program in list(PYTHON.items())[:None if ALL else 2]:
            with self.subTest(program=name):
                target = self.start_command([sys.executable, "-c", program])
                self.compare_program(target)
                target.kill()

    def test_node(self):
        if not shutil.which("node"):
            self.skipTest("node is not installed")
        for name, program in list(NODE.items())[:None if ALL else 1]:
            with self.subTest(program=name):
                self.compare_program(self.start_command(["node", "-e", program]))

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_java(self):
        if not shutil.which("javac"):
            self.skipTest("javac is not installed")
        subprocess.run(["javac", self.write("Stay.java", JAVA)], check=True)
        target = self.start_command(["java", "-cp", self.directory, "Stay"])
        # gdb stops at each signal with which the JVM looks after itself. A thread that waits for a monitor
        # wakes up at growing intervals, up to a second, and looks at it. While it does, nobody knows who
        # owns it.
        self.compare_program(target, dump=False, names=("first", "second", "parked"), tries=5)

    def test_go(self):
        if not shutil.which("go"):
            self.skipTest("go is not installed")
        path = os.path.join(self.directory, "stay")
        subprocess.run(["go", "build", "-o", path, self.write("stay.go", GO)], check=True)
        self.compare_program(self.start_command([path]))

    @unittest.skipUnless(ALL, "a part of ./dev test --all")
    def test_real(self):
        self.write("haproxy.cfg", HAPROXY.replace("DIRECTORY", self.directory))
        for name, words in REAL.items():
            if not shutil.which(words[0]):
                continue
            with self.subTest(program=name), subprocess.Popen(
                    self.words(words), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL) as target:
                try:
                    time.sleep(1)
                    self.assertIsNone(target.poll(), "it has ended")
                    self.compare_program(target)
                finally:
                    target.kill()

    def test_several(self):
        """Merged or apart, the text of several processes has the waits of each."""
        targets = [self.start("lockwaits", settle=False) for _ in range(2)]
        alone = [self.read("-f", "json", target.pid)[0] for target in targets]
        together = self.read("-f", "json", *(target.pid for target in targets))
        for one, other in zip(alone, together):
            self.assertEqual([facts(thread["wait"]) for thread in one["threads"]],
                             [facts(thread["wait"]) for thread in other["threads"]])
            self.assertEqual(cycles(one), cycles(other))
        text = self.run_tool("-a", *(target.pid for target in targets), status=(0, 1))
        for thread in alone[0]["threads"]:
            symbol = thread["wait"] and thread["wait"].get("symbol")
            if symbol:
                self.assertIn(symbol, text.stdout.decode())


if __name__ == "__main__":
    main()
