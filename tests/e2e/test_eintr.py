"""No blocking call of the target returns because of a snapshot or a recording, not even one
that has a time limit: threads whose call would end are read without a stop, in every mode."""
# ctest: tries=1000 timeout=600 release-only

import os
import signal
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "survive"))

from harness import EndToEnd, Snapshot, main, task_states, wait_until  # noqa: E402
from stop_and_go import extra_returns  # noqa: E402

# Threads wake each other up, and wait in epoll_wait() without a time limit. Prints how many of these calls
# were made, and how many ended with EINTR.
IN_TURN = """
import ctypes, errno, os, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
class Event(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("events", ctypes.c_uint32), ("data", ctypes.c_uint64)]
ended, calls, eintrs = [], [], []
def take_turns(own, other):
    epoll, event = libc.epoll_create1(0), Event(1, 0)
    libc.epoll_ctl(epoll, 1, own, ctypes.byref(event))
    while not ended:
        calls.append(1)
        if libc.epoll_wait(epoll, ctypes.byref(event), 1, -1) < 0:
            eintrs.append(ctypes.get_errno() == errno.EINTR)
            continue
        os.read(own, 8)
        sum(i * i for i in range(200))
        os.write(other, b"1" + bytes(7))
for _ in range(10):
    one, other = libc.eventfd(0, 0), libc.eventfd(1, 0)
    threading.Thread(target=take_turns, args=(one, other), daemon=True).start()
    threading.Thread(target=take_turns, args=(other, one), daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
ended.append(1)
print(len(calls), len(eintrs), flush=True)
os._exit(0)
"""
HOG = "print('ready', flush=True)\nwhile True: pass"

TRIES = int(os.environ.get("STACKSNAP_TRIES", "25"))
HOGGED = "5s" if "STACKSNAP_TRIES" in os.environ else "2s"


class Interruptions(EndToEnd):
    def count_returns(self, *options):
        """Calls that returned while snapshots were taken: name to (EINTRs, other returns);
        and the number of stacks that were not whole, by name."""
        target = self.start("eintr")
        partial = {}
        for _ in range(TRIES):
            snapshot = Snapshot(self.run_tool("--raw", "-f", "json", *options, target.pid,
                                              status=(0, 1)))
            for thread in snapshot.threads:
                if thread["end"] != "root":
                    partial[thread["name"]] = partial.get(thread["name"], 0) + 1
        return self.finish(target), partial

    def count_returns_of_a_stop(self, tries):
        """The same where a signal stops all threads, and then they go on."""
        target = self.start("eintr")
        os.kill(target.pid, signal.SIGSTOP)
        wait_until(lambda: set(task_states(target.pid).values()) == {"T"}, "the threads to stop")
        for _ in range(tries):
            snapshot = Snapshot(self.run_tool("--raw", "-f", "json", target.pid))
            self.assertEqual({thread["end"] for thread in snapshot.threads}, {"root"})
            self.assertNotIn(0, [thread["stopped_ns"] for thread in snapshot.threads])
        self.assertEqual(set(task_states(target.pid).values()), {"T"})
        os.kill(target.pid, signal.SIGCONT)
        wait_until(lambda: "T" not in task_states(target.pid).values(), "the threads to go on")
        return self.finish(target)

    def finish(self, target):
        status, output = target.finish()
        self.assertEqual(status, 0)
        calls = [line.split() for line in output.splitlines()]
        self.assertGreater(len([1 for call in calls if call[3] == "infinite"]), 40)
        self.assertGreater(len([1 for call in calls if call[3] == "finite"]), 8)
        return {name: (int(eintrs), int(others)) for name, eintrs, others, kind in calls
                if kind != "missing" and (eintrs, others) != ("0", "0")}

    def test_threads_that_get_no_cpu(self):
        """A thread that was running may sleep when it is interrupted. It then wakes up, and if it gets no
        CPU for a while, the tool does not leave it alone with that interrupt."""
        target = self.start_command([sys.executable, "-c", IN_TURN])
        for _ in range(4 * os.cpu_count()):
            self.start_command([sys.executable, "-c", HOG])
        with tempfile.TemporaryDirectory() as directory:
            self.run_tool("record", "-r", "199", "-d", HOGGED, "-o",
                          os.path.join(directory, "recording"), target.pid)
        status, output = target.finish()
        calls, eintrs = map(int, output.split())
        self.assertGreater(calls, 100)
        self.assertEqual((status, eintrs), (0, 0), output)

    def test_default_mode(self):
        returned, partial = self.count_returns()
        self.assertEqual(returned, {})
        self.assertEqual(partial, {})

    def test_stopped_by_a_signal(self):
        """The registers of such threads are read in every call: the signal has interrupted it already, and
        it returns what it would have returned."""
        self.assertEqual(self.count_returns_of_a_stop(5), self.count_returns_of_a_stop(0))

    def test_stopped_and_continued_meanwhile(self):
        """Beside others that compute, a thread may go on between the moment when it is seen stopped and the
        interrupt, and be in its call again: of the calls that are looked at, one in 500 at most."""
        for mode in ("auto", "stop", "live"):
            with self.subTest(mode=mode):
                whole = []

                def runs(pid, mode=mode, whole=whole):
                    for _ in range(TRIES):
                        text = self.run_tool("--raw", "-f", "json", "--mode=" + mode, pid, status=(0, 1))
                        whole.append(all(thread["frames"] for thread in Snapshot(text).threads))
                        yield text
                extra = extra_returns(runs)
                self.assertGreater(sum(whole), TRIES // 2)
                self.assertGreater(len(extra), 60)
                more = {name: count for name, count in extra.items() if count}
                self.assertLessEqual(sum(more.values()), TRIES * len(extra) // 500, more)

    def test_no_stop(self):
        returned, _ = self.count_returns("--mode=no-stop")
        self.assertEqual(returned, {})

    def test_modes_that_stop(self):
        for mode in ("stop", "live"):
            with self.subTest(mode=mode):
                returned, _ = self.count_returns("--mode=" + mode)
                self.assertEqual(returned, {})

    def test_record(self):
        target = self.start("eintr")
        with tempfile.TemporaryDirectory() as directory:
            self.run_tool("record", "-r", "199", "-d", "2s", "-o",
                          os.path.join(directory, "recording"), target.pid)
        self.assertEqual(self.finish(target), {})


class FileSystem(EndToEnd):
    """A read of a file of a FUSE file system, see targets/fuse_read.c."""

    def start_reader(self):
        if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
            self.skipTest("mounting a FUSE file system needs root and /dev/fuse")
        self.need_namespaces()
        return self.start("fuse_read")

    def test_read(self):
        for mode in ("stop", "live", "auto", "no-stop"):
            with self.subTest(mode=mode):
                target = self.start_reader()
                for _ in range(TRIES):
                    snapshot = Snapshot(self.run_tool("--raw", "-f", "json", "--mode=" + mode,
                                                      target.pid, status=(0, 1)))
                    self.assertEqual(snapshot.thread("reader")["end"], "root")
                self.assertEqual(target.finish(), (0, "0 0\n"))

    def test_record(self):
        target = self.start_reader()
        with tempfile.TemporaryDirectory() as directory:
            self.run_tool("record", "-r", "199", "-d", "1s", "-o",
                          os.path.join(directory, "recording"), target.pid)
        self.assertEqual(target.finish(), (0, "0 0\n"))


if __name__ == "__main__":
    main()
