"""Real programs: python3, node and mariadbd with hundreds of threads. The process is stopped
(SIGSTOP), so that every tool sees the same stacks, and ours are compared with eu-stack's:
every thread, every frame, its pc and its name. Only the differences in REASONS are accepted.
"""
# ctest: long-with-sanitizers real

import os
import re
import shutil
import signal
import struct
import subprocess

from harness import (EndToEnd, LIMIT_S, MODES, main, task_states, wait_until)
from mariadb import Connection, MariaDbServer

FRAME = re.compile(r"^#(\d+)\s+(0x[0-9a-f]+)(?: - 1)? ?(.*)$")


def parse(text):
    """{tid: [(pc, name)]}, from eu-stack's layout."""
    stacks, stack = {}, None
    for line in text.splitlines():
        thread = re.match(r"^TID (\d+):", line)
        frame = FRAME.match(line)
        if thread:
            stack = stacks.setdefault(int(thread.group(1)), [])
        elif frame:
            stack.append((int(frame.group(2), 16), frame.group(3)))
    return stacks


def unnamed(name):
    """stacksnap prints module+0xoffset where eu-stack prints no name."""
    return not name or re.search(r"\+0x[0-9a-f]+$", name) is not None


# Each: a pattern of eu-stack's name and one of ours, and why ours is right. Both patterns
# must match the whole name of a frame at the same pc.
REASONS = []


def same_name(theirs, ours):
    """stacksnap omits the version of a symbol: __libc_start_main@@GLIBC_2.34."""
    theirs = re.sub(r"@.*$", "", theirs) if theirs else theirs
    if theirs == ours or (not theirs and unnamed(ours)):
        return True
    return any(re.fullmatch(one, theirs) and re.fullmatch(other, ours)
               for one, other, _ in REASONS)


# By so much our address of a call that will be made again is beyond that of a stopped thread's registers.
BEYOND = 4 if os.uname().machine == "aarch64" else 0


class Real(EndToEnd):
    def setUp(self):
        if not shutil.which("eu-stack"):
            self.skipTest("eu-stack is missing: install elfutils")

    def settle(self, pid, least):
        """Waits until it has that many threads and all of them sleep, in five checks in a
        row."""
        quiet = 0

        def still():
            nonlocal quiet
            states = list(task_states(pid).values())
            quiet = quiet + 1 if len(states) >= least and set(states) <= {"S"} else 0
            return quiet >= 5

        wait_until(still, "all threads of %d to sleep" % pid)

    def compare(self, pid, least):
        self.settle(pid, least)
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: set(task_states(pid).values()) == {"T"}, "the stop")
        tids = set(task_states(pid))
        ours = {mode: parse(self.run_tool("-f", "eu", "-n", 0, "--timeout=20000",
                                          "--native", "--mode=" + mode, pid).stdout.decode())
                for mode in MODES}
        self.assertEqual(set(task_states(pid).values()), {"T"})
        # last, because it may change the state of the process
        theirs = parse(subprocess.run(["eu-stack", "-n", "0", "-p", str(pid)],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL,
                                      timeout=2 * LIMIT_S).stdout.decode())
        os.kill(pid, signal.SIGCONT)
        self.assertGreaterEqual(len(tids), least)
        for mode in MODES:
            with self.subTest(mode=mode):
                self.assertEqual(set(ours[mode]), tids)
                self.assertEqual(self.differences(theirs, ours[mode]), [])
        return ours["stop"]

    def differences(self, theirs, ours):
        found = []
        for tid, stack in theirs.items():
            mine = [frame for frame in ours.get(tid, []) if frame[0] != 0]  # no Python functions
            if not mine and stack and stack[0][0] == 0:
                continue  # a worker of io_uring, which has no registers
            for index in range(max(len(stack), len(mine))):
                left = stack[index] if index < len(stack) else None
                right = mine[index] if index < len(mine) else None
                beyond = BEYOND if index == 0 else 0
                if (left is None or right is None or right[0] not in (left[0], left[0] + beyond) or
                        not same_name(left[1], right[1])):
                    found.append("thread %d frame %d of %d and %d: eu-stack has %s, "
                                 "we have %s" % (tid, index, len(stack), len(mine),
                                                 show(left), show(right)))
                    break
        return found[:20]


def show(frame):
    return "nothing" if frame is None else "%#x %r" % frame


PYTHON = """
import select, socket, subprocess, sys, threading, time
lock = threading.Lock()
lock.acquire()
left, right = socket.socketpair()
def deep(depth, wait):
    if depth:
        # through C: sorted() calls back
        return sorted([1, 2], key=lambda _: deep(depth - 1, wait))
    wait()
waits = [lock.acquire, lambda: time.sleep(100000), lambda: left.recv(1),
         lambda: select.select([left], [], []), threading.Event().wait,
         threading.Barrier(99).wait]
for wait in waits:
    for depth in (0, 3, 20):
        threading.Thread(target=deep, args=(depth, wait), daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""

# Workers of both kinds: in the event loop, and blocked below compiled and interpreted
# JavaScript, which has no unwind tables.
NODE = """
const { Worker } = require('worker_threads');
const idle = `
	require('worker_threads').parentPort.postMessage('up');
	setTimeout(() => {}, 1e9);
`;
const blocked = `
	const cell = new Int32Array(new SharedArrayBuffer(4));
	function wait(depth) {
		if (depth === 0)
			return Atomics.wait(cell, 0, 0);
		return [depth].map(() => wait(depth - 1))[0];
	}
	require('worker_threads').parentPort.postMessage('up');
	wait(20);
`;
let up = 0;
for (const code of [idle, idle, blocked, blocked])
	new Worker(code, { eval: true }).on('message', () => {
		if (++up === 4)
			console.log('ready');
	});
process.stdin.on('end', () => process.exit(0)).resume();
"""


class Python(Real):
    def test_python(self):
        target = self.start_command(["/usr/bin/python3", "-c", PYTHON])
        self.compare(target.pid, 19)


class Node(Real):
    def test_node(self):
        node = shutil.which("node")
        if not node:
            self.skipTest("node is missing: install nodejs")
        target = self.start_command([node, "-e", NODE])
        ours = self.compare(target.pid, 11)
        depths = sorted(len(stack) for stack in ours.values())
        # two of them are below twenty calls of map(), each with a function
        self.assertGreater(depths[-2], 40)


class Go(EndToEnd):
    def test_stripped(self):
        """A Go program without a symbol table: the runtime has names for its functions."""
        fzf = shutil.which("fzf")
        if not fzf:
            self.skipTest("fzf is missing: install fzf")
        process = subprocess.Popen([fzf, "--filter", "x"], stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdin.close)

        found = []

        def reads():
            snapshot = self.snap(process.pid, mode="stop", status=(0, 1))
            found[:] = [thread for thread in snapshot.threads if thread["wait"] and
                        thread["wait"]["text"].startswith("input from fd 0, pipe")]
            return found
        wait_until(reads, "it to read")
        reader, = found
        names = [frame["symbol"] for frame in reader["frames"]]
        for name in ("syscall.Syscall", "internal/poll.(*FD).Read", "os.(*File).Read",
                     "os.(*File).Read", "runtime.goexit"):
            self.assertIn(name, names)
        self.assertNotIn(None, names)
        order = [names.index(name) for name in ("syscall.Syscall", "os.(*File).Read",
                                                "runtime.goexit")]
        self.assertEqual((order, names[-1]), (sorted(order), "runtime.goexit"))
        self.check_calls(fzf, reader["frames"])

    def check_calls(self, path, frames):
        """The code of each frame calls the next inner one, including the innermost frame, which
        has no frame pointer of its own."""
        with open(path, "rb") as file:
            image = file.read()
        headers, = struct.unpack_from("<Q", image, 32)
        count, = struct.unpack_from("<H", image, 56)
        segments = [struct.unpack_from("<IIQQQQ", image, headers + 56 * i) for i in range(count)]

        def read(address, size):
            for kind, _, offset, start, _, length in segments:
                if kind == 1 and start <= address < start + length:
                    return image[offset + address - start:][:size]
            return b""
        direct = []
        frames = [frame for frame in frames if not frame["inlined"]]
        for i, (callee, caller) in enumerate(zip(frames, frames[1:])):
            at = int(caller["offset"], 16)
            code = read(at - 5, 5)
            if code[:1] == b"\xe8":
                direct.append(i)
                self.assertEqual(at + struct.unpack("<i", code[1:])[0],
                                 int(callee["offset"], 16) - callee["symbol_offset"], caller)
        self.assertEqual(direct[0], 0)
        self.assertGreater(len(direct), 3)


class MariaDb(MariaDbServer, Real):
    CONNECTIONS = 200

    def test_mariadb(self):
        """Half of the connections idle, half in a query."""
        process = self.start_server()
        connections = [Connection(self.path) for _ in range(self.CONNECTIONS)]
        for connection in connections:
            self.addCleanup(connection.socket.close)
        for connection in connections[::2]:
            connection.query("select sleep(100000)")
        ours = self.compare(process.pid, self.CONNECTIONS)
        sleeping = [stack for stack in ours.values()
                    if any("Item_func_sleep::val_int" in name for _, name in stack)]
        if any("do_command" in name for stack in ours.values() for _, name in stack):
            # a server with symbols
            self.assertEqual(len(sleeping), self.CONNECTIONS / 2)


if __name__ == "__main__":
    main()
