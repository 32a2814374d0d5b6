"""What threads wait for in recordings: objects, owners and keys, as in a snapshot; both ends of a
connection; descriptors that become other connections; owners in another pid namespace."""
# ctest: long-with-sanitizers

import contextlib
import gzip
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile

import recording
from harness import LIMIT_S, STACKSNAP, TARGETS, EndToEnd, main, read_text, reads_stdin, wait_until

# Connects, and again after each byte. Each connection has the same descriptor.
CLIENT = """
import socket, sys
print("ready", flush=True)
while True:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as s:
        s.recv(1)
"""
# Waits for a pipe and for another one in turn.
POLLS = """
import ctypes, os, struct
fds = [os.pipe()[0] for _ in range(2)]
print("first", fds[0])
print("second", fds[1])
print("ready", flush=True)
polled = ctypes.create_string_buffer(8)
while True:
    for fd in fds:
        struct.pack_into("=ihh", polled, 0, fd, 1, 0)
        ctypes.CDLL(None).poll(polled, ctypes.c_ulong(1), 250)
"""
PEER = "import socket; s = socket.socket(fileno=0); print('ready', flush=True); s.recv(1)"


def plain(text):
    """Without limits of time, and without names of variables: the recorder does not read them."""
    text = re.sub(r", (for at most|with a time limit|[^,]* left).*", "", text)
    return re.sub(r" \w+(\+0x\w+)? \((0x\w+)\)", r" at \2", text)


class RecordedWaits(EndToEnd):
    def setUp(self):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        self.path = os.path.join(directory, "recording")

    def record(self, *arguments):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self.run_tool("record", "-d", "1s", "-o", self.path, *arguments)

    def threads(self, *arguments):
        """Rows by the name of the thread."""
        output = self.run_tool(*arguments, "-f", "rows", status=(0, 1)).stdout
        rows = map(json.loads, output.splitlines())
        return {row["thread"]: row for row in rows if row["table"] == "threads"}

    def recorded(self):
        return self.threads("report", self.path)

    def test_as_in_a_snapshot(self):
        target = self.start("lockwaits")
        snapshot = self.threads(target.pid)
        self.record(target.pid)
        rows = self.recorded()
        self.assertEqual(rows.keys(), snapshot.keys())
        for name, expected in snapshot.items():
            with self.subTest(thread=name):
                row = rows[name]
                columns = ["wait", "wait_key", "stack"]
                # Owners that a thread pointer, the stacks of other threads, or a search of all
                # processes tell: snapshots know more.
                if name not in ("writes-stream", "once-second", "lockwaits"):
                    columns += ["owner_pid", "owner_tid"]
                self.assertEqual([row[c] for c in columns], [expected[c] for c in columns],
                                 (row, expected))
                if name.startswith(("wants", "nobody", "join")):
                    self.assertEqual(plain(row["wait_text"]), plain(expected["wait_text"]))
        holder = snapshot["reads-pipe"]["tid"]
        text = self.run_tool("report", self.path, status=(0, 1)).stdout.decode()
        self.assertRegex(text, r"futex 0x\w+, _*(GI_+)?pthread_mutex_lock in wait_mutex "
                               r"\(lockwaits\), held by reads-pipe %d: wants-mutex" % holder)
        self.assertRegex(text, r"read fd \d+ \(pipe, written by the same process")
        report = json.loads(self.run_tool("report", "-f", "json", self.path, status=(0, 1)).stdout)
        details = {report["threads"][sample["thread"]]["name"]:
                   report["wait_details"][sample["wait_detail"]] for sample in report["samples"]
                   if sample["wait_detail"] is not None}
        self.assertEqual(details["wants-mutex"]["kind"], "mutex", details)
        self.assertEqual(details["wants-mutex"]["data"]["owner_tid"], holder, details)
        self.assertEqual(plain(details["wants-mutex"]["text"]),
                         plain(rows["wants-mutex"]["wait_text"]), details)
        pprof = gzip.decompress(self.run_tool("report", "-f", "pprof", self.path,
                                              status=(0, 1)).stdout)
        for label in ("reads-pipe %d" % holder, rows["wants-mutex"]["wait_key"],
                      rows["wants-mutex"]["wait_text"]):
            self.assertIn(label.encode(), pprof)

    def test_many_threads(self):
        """Waits are looked up some at a tick: those of 100 threads are known before long."""
        target = self.start("threads", 100, 1)
        recorder = self.start_recording(target.pid)
        wait_until(lambda: self.missing() == 0, "the waits of all threads")
        self.finish(recorder)

    def missing(self):
        """How many rows have no wait; -1: there is no recording yet."""
        output = self.run_tool("report", "-f", "rows", self.path, status=None).stdout
        rows = [row for row in map(json.loads, output.splitlines()) if row["table"] == "threads"]
        return sum(not row["wait"] for row in rows) if len(rows) > 100 else -1

    def start_recording(self, pid):
        recorder = subprocess.Popen([STACKSNAP, "record", "-o", self.path, str(pid)],
                                    stderr=subprocess.DEVNULL)
        self.addCleanup(recorder.wait)
        self.addCleanup(recorder.kill)
        return recorder

    def finish(self, recorder):
        recorder.send_signal(signal.SIGINT)
        self.assertEqual(recorder.wait(LIMIT_S), 0)

    def test_both_ends_and_another_connection(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            client = self.start_command([sys.executable, "-c", CLIENT, str(port)])
            first, address = server.accept()
            recorder = self.start_recording(client.pid)
            self.wait_for_key(address, port)
            first.send(b"x")
            second, other = server.accept()
            self.wait_for_key(other, port)
            self.finish(recorder)
            keys = self.keys()
            self.assertEqual(len(keys), 2, keys)
            with subprocess.Popen([sys.executable, "-c", PEER], stdin=second,
                                  stdout=subprocess.PIPE) as peer:
                peer.stdout.readline()
                wait_until(lambda: read_text("/proc/%d/syscall" % peer.pid).startswith("45 "),
                           "the peer to wait")
                self.record(peer.pid)
                peer.kill()
            row, = self.recorded().values()
            self.assertTrue(any(key.startswith(row["wait_key"]) for key in keys), (row, keys))
            first.close()
            second.close()

    def keys(self):
        """Of all samples that have been written, perhaps with a digit that follows."""
        pprof = self.run_tool("report", "-f", "pprof", self.path, status=None).stdout
        text = gzip.decompress(pprof) if pprof else b""
        return {key.decode() for key in re.findall(rb"tcp:[-0-9a-f]+/[.:0-9]+-[.:0-9]+", text)}

    def wait_for_key(self, address, port):
        ends = sorted(["127.0.0.1:%d" % address[1], "127.0.0.1:%d" % port])
        wait_until(lambda: any("-".join(ends) in key for key in self.keys()),
                   "the connection %s" % ends)

    def test_polled_in_turn(self):
        """The same address, with other descriptors."""
        target = self.start_command([sys.executable, "-c", POLLS])
        fds = {target.fact("first"), target.fact("second")}
        recorder = self.start_recording(target.pid)

        def polled():
            growing = recording.read_growing(self.path)
            return {sample["wait"].nested(32).signed(1) for sample in growing.samples
                    if sample["wait"]} if growing else set()
        wait_until(lambda: len(polled()) == 2, "both descriptors")
        self.finish(recorder)
        self.assertEqual(polled(), fds)

    def test_name_is_escaped(self):
        """The name of a file adds no line to the report, and cannot control the terminal."""
        path = os.path.join(os.path.dirname(self.path), "\x1b[2J\nforged")
        os.mkfifo(path)
        with open(path, "r+b", buffering=0) as fifo:
            target = subprocess.Popen(["cat"], stdin=fifo, stdout=subprocess.DEVNULL)
            self.addCleanup(target.wait)
            self.addCleanup(target.kill)
            wait_until(lambda: reads_stdin(target.pid), "the target to wait")
            self.record(target.pid)
        text = self.run_tool("report", self.path, status=(0, 1)).stdout.decode()
        self.assertIn("/\\x1b[2J\\x0aforged", text)

    def test_pid_namespace(self):
        self.need_namespaces()
        outer = self.start_command(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
                                    os.path.join(TARGETS, "deadlock")])
        pid, = map(int, read_text("/proc/%d/task/%d/children" % (outer.pid, outer.pid)).split())
        wait_until(lambda: reads_stdin(pid), "the target to wait")
        snapshot = self.threads(pid)
        self.record(pid)
        owners = {name: row["owner_tid"] for name, row in self.recorded().items()}
        self.assertEqual(owners, {name: row["owner_tid"] for name, row in snapshot.items()})
        self.assertTrue(any(owners.values()), owners)

    def test_format(self):
        """As the manual page says, by a reader that knows only that."""
        target = self.start("deadlock")
        self.record(target.pid)
        samples = recording.Recording(self.path).samples
        waits = [s["wait"] for s in samples if s["thread"].name.startswith("locker")]
        self.assertTrue(any(waits), samples[:3])
        self.assertEqual({(wait.number(1), wait.number(11) > 0, wait.number(20) > 0)
                          for wait in waits if wait}, {(2, True, True)})


if __name__ == "__main__":
    main()
