"""Real programs: python3, node and mariadbd with hundreds of threads. The process is stopped
(SIGSTOP), so that every tool sees the same stacks, and ours are compared with eu-stack's:
every thread, every frame, its pc and its name. What may differ is in REASONS, and nothing
else.
"""
# ctest: timeout=240

import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile

from harness import (EndToEnd, LIMIT_S, MODES, main, task_states, wait_until)

FRAME = re.compile(r"^#(\d+)\s+(0x[0-9a-f]+)(?: - 1)? ?(.*)$")


def parse(text):
    """tid: [(pc, name)], of eu-stack's layout."""
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
    """Ours says module+0xoffset where eu-stack says nothing."""
    return not name or re.search(r"\+0x[0-9a-f]+$", name) is not None


# Each: a pattern of eu-stack's name and one of ours, and why ours is right. Both patterns
# must match the whole name of a frame at the same pc.
REASONS = []


def same_name(theirs, ours):
    if theirs == ours or (not theirs and unnamed(ours)):
        return True
    return any(re.fullmatch(one, theirs) and re.fullmatch(other, ours)
               for one, other, _ in REASONS)


class Real(EndToEnd):
    def setUp(self):
        if not shutil.which("eu-stack"):
            self.skipTest("eu-stack is missing: install elfutils")

    def settle(self, pid, least):
        """Until it has that many threads, and all of them sleep, five looks in a row."""
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
                                          "--mode=" + mode, pid).stdout.decode())
                for mode in MODES}
        self.assertEqual(set(task_states(pid).values()), {"T"})
        # last: it may leave the process otherwise than it was
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
            mine = ours.get(tid, [])
            for index in range(max(len(stack), len(mine))):
                left = stack[index] if index < len(stack) else None
                right = mine[index] if index < len(mine) else None
                if (left is None or right is None or left[0] != right[0] or
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
        # two of them went through twenty calls of map() with a function in each
        self.assertGreater(depths[-2], 40)


class Connection:
    """A client of the server's protocol, version 10: no more than is needed to stay."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT_S)
        self.socket.connect(path)
        self._packet()  # the greeting
        protocol_41, secure_connection, plugin_auth = 0x200, 0x8000, 0x80000
        self._send(1, struct.pack("<IIB23x", protocol_41 | secure_connection | plugin_auth,
                                  1 << 24, 33) + b"root\0\0mysql_native_password\0")
        answer = self._packet()
        if answer[:1] != b"\0":
            raise AssertionError("the server refuses: %r" % answer)

    def _packet(self):
        header = self._exactly(4)
        return self._exactly(int.from_bytes(header[:3], "little"))

    def _exactly(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise AssertionError("the server has closed the connection")
            data += part
        return data

    def _send(self, number, payload):
        self.socket.sendall(struct.pack("<I", len(payload))[:3] + bytes([number]) + payload)

    def query(self, text):
        """Does not wait for the answer."""
        self._send(0, b"\x03" + text.encode())


class MariaDb(Real):
    CONNECTIONS = 200

    def setUp(self):
        super().setUp()
        self.server = shutil.which("mariadbd", path=os.environ["PATH"] + ":/usr/sbin")
        self.install = shutil.which("mariadb-install-db")
        if not self.server or not self.install:
            self.skipTest("mariadbd is missing: install mariadb-server")
        self.directory = tempfile.mkdtemp(prefix="stacksnap-mariadb-")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def start_server(self):
        data = os.path.join(self.directory, "data")
        common = ["--no-defaults", "--datadir=" + data]
        if os.geteuid() == 0:
            common.append("--user=root")
        subprocess.run([self.install] + common + ["--auth-root-authentication-method=normal",
                                                  "--skip-test-db", "--force"],
                       check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=2 * LIMIT_S)
        self.path = os.path.join(self.directory, "socket")
        log = open(os.path.join(self.directory, "log"), "wb")
        self.addCleanup(log.close)
        process = subprocess.Popen(
            [self.server] + common + [
                "--skip-networking", "--skip-grant-tables", "--socket=" + self.path,
                "--pid-file=" + os.path.join(self.directory, "pid"),
                "--max-connections=500", "--innodb-buffer-pool-size=16M"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(process.wait, LIMIT_S)
        self.addCleanup(process.kill)
        wait_until(lambda: self.answers(process), "mariadbd")
        return process

    def answers(self, process):
        if process.poll() is not None:
            with open(os.path.join(self.directory, "log"), errors="replace") as file:
                raise AssertionError("mariadbd ended: " + file.read()[-2000:])
        try:
            Connection(self.path).socket.close()
        except OSError:
            return False
        return True

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
