"""The programs that the bench attaches to. They are idle when it begins."""

import ctypes
import mmap
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("BUILD") or os.path.join(ROOT, "build/release")
STACKSNAP = os.environ.get("STACKSNAP") or os.path.join(BUILD, "stacksnap")
PR_SET_PDEATHSIG = 1
READY_S = 60

libc = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """This program cannot be started here; the reason is the message."""


def end_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def require(name):
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if not path:
        raise Unavailable(f"{name} is not installed")
    return path


class Program:
    """A child process that is killed at the end of a with block."""

    meter = None
    running = 0  # number of threads that always run

    def __init__(self, title, command, ready=b"ready"):
        self.title = title
        if not os.access(command[0], os.X_OK):
            raise Unavailable(f"there is no {command[0]}")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=end_with_parent)
        self.pid = self.process.pid
        if ready:
            self.await_line(ready)

    def await_line(self, wanted):
        for line in self.process.stdout:
            if line.strip() == wanted:
                return
        self.end()
        raise Unavailable(f"{self.title} ended before it was ready")

    def threads(self):
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def awake(self):
        """The threads that are running now."""
        found = set()
        for tid in os.listdir(f"/proc/{self.pid}/task"):
            try:
                with open(f"/proc/{self.pid}/task/{tid}/stat", "rb") as file:
                    if file.read().rpartition(b")")[2].split()[0] == b"R":
                        found.add(int(tid))
            except OSError:
                pass  # it ended
        return found

    def shield(self):
        """
        Raises its scheduling weight far above that of other load. Because it leads a session,
        the weight of its autogroup counts, if there are autogroups.
        """
        os.setpriority(os.PRIO_PROCESS, self.pid, -19)
        try:
            with open(f"/proc/{self.pid}/autogroup", "w", encoding="ascii") as file:
                file.write("-19")
        except OSError:
            pass  # a kernel without autogroups

    def resume(self):
        """Continues the process: a killed tracer may have left it stopped."""
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


class Meter:
    """The shared mapping of pause_meter; targets/pause_meter.h has its layout."""

    MAGIC = b"SSPAUSE1"
    RESET_WANTED, RESET_DONE, MAX_GAP, NOW = 32, 36, 40, 72
    SIZE = 592

    def __init__(self, path):
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), self.SIZE)
        if self.memory[:8] != self.MAGIC:
            raise Unavailable("the mapping of the pause meter has another layout")

    def number(self, offset, code="<Q"):
        return struct.unpack_from(code, self.memory, offset)[0]

    def until(self, condition):
        deadline = time.monotonic() + 10
        while not condition():
            if time.monotonic() > deadline:
                raise Unavailable("the pause meter does not run")
            time.sleep(0.0005)

    def reset(self):
        wanted = (self.number(self.RESET_DONE, "<I") + 1) & 0xFFFFFFFF
        struct.pack_into("<I", self.memory, self.RESET_WANTED, wanted)
        self.until(lambda: self.number(self.RESET_DONE, "<I") == wanted)

    def max_gap_ns(self):
        """The longest gap since the reset, without gaps that end after this call."""
        now = time.monotonic_ns()
        self.until(lambda: self.number(self.NOW) > now)
        return self.number(self.MAX_GAP)


class PauseMeter(Program):
    running = 1

    def __init__(self, directory, threads, depth):
        with tempfile.NamedTemporaryFile(prefix="pause-meter-") as file:
            super().__init__(f"pause meter, {threads:,} threads x depth {depth}",
                             [os.path.join(directory, "pause_meter"), str(threads),
                              str(depth), file.name])
            self.meter = Meter(file.name)


class Busy(Program):
    def __init__(self, directory, threads):
        self.running = threads
        super().__init__(f"{threads} busy threads",
                         [os.path.join(directory, "busy"), str(threads), "10"])


NODE = """
const { Worker } = require("worker_threads");
const http = require("http");
const source = `require("worker_threads").parentPort.on("message", () => {});
                require("worker_threads").parentPort.postMessage("up");`;
let left = 4;
for (let i = 0; i < 4; i++)
    new Worker(source, { eval: true }).on("message", () => {
        if (--left == 0)
            http.createServer(() => {}).listen(0, "127.0.0.1",
                                               () => console.log("ready"));
    });
"""


class Node(Program):
    def __init__(self):
        super().__init__("node, 4 workers", [require("node"), "-e", NODE])


PYTHON = """
import queue, threading, time
nothing, lock, arrived = queue.Queue(), threading.Lock(), threading.Barrier(21)
def descend(left, wait):
    if left:
        return descend(left - 1, wait)
    arrived.wait()
    wait()
waits = [nothing.get, lock.acquire, lambda: time.sleep(100000)]
lock.acquire()
for i in range(20):
    threading.Thread(target=descend, args=(10, waits[i % 3]), daemon=True).start()
arrived.wait()
print("ready", flush=True)
time.sleep(100000)
"""


class Python(Program):
    def __init__(self):
        # no wrapper script: the pid must be that of the interpreter
        python = "/usr/bin/python3"
        if not os.path.exists(python):
            python = os.path.realpath(sys.executable)
        super().__init__("python3, 20 threads", [python, "-c", PYTHON])
        time.sleep(0.3)


def packet(connection, payload, sequence):
    connection.sendall(struct.pack("<I", len(payload))[:3] + bytes([sequence]) + payload)


def take(connection, size):
    """Receives size bytes. MSG_WAITALL does not wait on a socket with a timeout."""
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise OSError("the server has closed the connection")
        data += piece
    return data


def receive(connection):
    return take(connection, int.from_bytes(take(connection, 4)[:3], "little"))


def mariadb_connect(path):
    """Opens a session as root, on a server without grant tables."""
    protocol_41_and_secure = 0x0200 | 0x8000
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(10)
    connection.connect(path)
    receive(connection)
    packet(connection, struct.pack("<IIB23x", protocol_41_and_secure, 1 << 24, 33) +
           b"root\0" + b"\0", 1)
    answer = receive(connection)
    if answer[:1] != b"\0":
        raise Unavailable("MariaDB refuses a connection")
    return connection


class MariaDB(Program):
    CONNECTIONS = 50

    def __init__(self):
        server = require("mariadbd")
        self.directory = tempfile.mkdtemp(prefix="bench-mariadb-")
        self.sessions = []
        self.process = None
        data = os.path.join(self.directory, "data")
        path = os.path.join(self.directory, "socket")
        try:
            subprocess.run(
                [require("mariadb-install-db"), "--no-defaults", "--user=root",
                 f"--datadir={data}", "--skip-test-db", "--force",
                 "--auth-root-authentication-method=normal"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
                timeout=READY_S)
            super().__init__(
                f"MariaDB, {self.CONNECTIONS} connections",
                [server, "--no-defaults", "--user=root", f"--datadir={data}",
                 f"--socket={path}", "--skip-networking", "--skip-grant-tables",
                 f"--pid-file={self.directory}/pid"], ready=None)
            self.connect(path)
        except (subprocess.SubprocessError, OSError) as error:
            self.end()
            raise Unavailable(f"MariaDB does not start: {error}") from error
        except Unavailable:
            self.end()
            raise

    def connect(self, path):
        deadline = time.monotonic() + READY_S
        while not self.sessions:
            try:
                self.sessions.append(mariadb_connect(path))
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.05)
        while len(self.sessions) < self.CONNECTIONS:
            self.sessions.append(mariadb_connect(path))
        for session in self.sessions[::2]:
            packet(session, b"\x03" + b"SELECT SLEEP(100000)", 0)
        time.sleep(1)  # until its own threads are idle

    def end(self):
        if self.process:
            super().end()
        for session in self.sessions:
            session.close()
        shutil.rmtree(self.directory, ignore_errors=True)
