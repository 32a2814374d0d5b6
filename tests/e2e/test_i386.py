"""Programs of 32 bits (i386), which a tool of 64 bits reads."""

import os
import shutil
import tempfile
import unittest

from core_dump import CoreDump
from harness import EndToEnd, Snapshot, canonical, main
from i386_target import compile_i386

PLACE = None
CALLS = 40  # of the EINTR target, at least
MODES = ("auto", "stop", "no-stop")
KINDS = {"accept": "accept", "receive-tcp": "receive", "read-pipe": "read", "poll-two": "poll",
         "select": "select", "epoll": "epoll", "sleep": "sleep", "sleep-until": "sleep",
         "child": "child", "flock": "file-lock", "fcntl": "file-lock", "sigwait": "signal",
         "pause": "signal", "semop": "ipc", "message": "ipc", "open-fifo": "other"}


def setUpModule():
    global PLACE
    PLACE = tempfile.mkdtemp(prefix="stacksnap-i386-")
    if not compile_i386(PLACE, "crash"):
        shutil.rmtree(PLACE)
        raise unittest.SkipTest("no 32-bit programs can be made: install gcc-12-multilib")


def tearDownModule():
    shutil.rmtree(PLACE)


def program(name, *flags):
    path = os.path.join(PLACE, name)
    if not os.path.exists(path):
        path = compile_i386(PLACE, name, *flags)
    assert path, "%s cannot be compiled with 32 bits" % name
    return path


def names(thread):
    return [canonical(frame["symbol"]) for frame in thread["frames"] if frame["symbol"]]


class Cores(CoreDump):
    def core(self, *arguments):
        return Snapshot(self.run_tool("core", "-f", "json", *arguments))

    def test_fault(self):
        snapshot = self.core(self.dump(program("crash"), "segv"))
        crash = snapshot.data["capture"]["crash"]
        pid = snapshot.data["process"]["pid"]
        self.assertEqual((crash["name"], crash["tid"], crash["code"], crash["address"]),
                         ("SIGSEGV", pid, 1, "0x10"))
        self.assertEqual(names(snapshot.thread(pid))[:3], ["read_address", "fail", "main"])

    def test_waits(self):
        snapshot = self.core(self.dump(program("crash"), "abort"))
        pid = snapshot.data["process"]["pid"]
        waiters = [thread for thread in snapshot.threads if thread["wait"]]
        self.assertEqual(len(waiters), 2)
        for thread in waiters:
            self.assertEqual(thread["wait"]["kind"], "mutex")
            self.assertEqual(thread["wait"]["symbol"], "stock")
            self.assertEqual(thread["wait"]["owner_tid"], pid)
        self.assertIn("abort", names(snapshot.thread(pid)))
        self.assertIn("fail", names(snapshot.thread(pid)))


class Live(EndToEnd):
    def snap(self, target, *options, status=(0,)):
        return Snapshot(self.run_tool("-f", "json", *options, target.pid, status=status))

    def test_deadlock(self):
        """Stacks to their roots, owners of mutexes, and the cycle, in every mode."""
        for kind in ("normal", "errorcheck", "recursive", "shared", "timed"):
            target = self.start_command([program("deadlock"), kind])
            for mode in MODES:
                with self.subTest(kind=kind, mode=mode):
                    snapshot = self.snap(target, "--mode=" + mode)
                    by_name = {thread["name"]: thread for thread in snapshot.threads}
                    one, other = by_name["locker-0"], by_name["locker-1"]
                    self.assertEqual([thread["end"] for thread in snapshot.threads],
                                     ["root"] * len(snapshot.threads))
                    self.assertEqual(one["wait"]["owner_tid"], other["tid"])
                    self.assertEqual(other["wait"]["owner_tid"], one["tid"])
                    self.assertEqual(len(snapshot.data["deadlocks"]), 1)
                    self.assertEqual(
                        [name for name in names(one) if name in
                         ("take", "take_next", "hold_and_wait", "target_thread_main")],
                        ["take", "take_next", "hold_and_wait", "target_thread_main"])
            self.assert_free(target.pid)
            target.finish()

    def test_mode_live(self):
        target = self.start_command([program("deadlock"), "normal"])
        result = self.run_tool("--mode=live", target.pid, status=(2,))
        self.assertIn("runs a program of i386", result.stderr.decode())
        self.assertEqual(target.finish()[0], 0)

    def test_record(self):
        target = self.start_command([program("deadlock"), "normal"])
        path = os.path.join(PLACE, "recording")
        self.run_tool("record", "-d", "300ms", "-o", path, target.pid)
        text = self.run_tool("report", path).stdout.decode()
        self.assertIn("take (deadlock)", text)
        self.assertIn("futex", text)
        self.assertEqual(target.finish()[0], 0)

    def test_commands_that_refuse(self):
        target = self.start_command([program("deadlock"), "normal"])
        for command in (["heap"], ["trace", "--alloc", "-d", "100ms"]):
            result = self.run_tool(*command, target.pid, status=(2,))
            self.assertIn("i386", result.stderr.decode())
        self.assertEqual(target.finish()[0], 0)

    def test_run(self):
        text = self.run_tool("run", "--", program("crash"), "segv",
                             status=None).stderr.decode()
        self.assertIn("killed by SIGSEGV", text)
        self.assertIn("read_address", text)

    def test_waits(self):
        """What socketcall(2) and ipc(2) stand for."""
        directory = tempfile.mkdtemp(dir=PLACE)
        target = self.start_command([program("waits"), directory])
        for mode in MODES:
            snapshot = self.snap(target, "--mode=" + mode)
            waits = {thread["name"]: thread["wait"] for thread in snapshot.threads}
            self.assertEqual({thread["end"] for thread in snapshot.threads}, {"root"})
            for name, kind in KINDS.items():
                self.assertEqual(waits[name]["kind"], kind, name)
            for name in ("accept", "receive-tcp", "read-pipe", "flock"):
                self.assertEqual(waits[name]["fd"], target.fact("fd-" + name))
            self.assertEqual(waits["semop"]["ipc_id"], target.fact("id-semop"))
            self.assertEqual(waits["message"]["ipc_id"], target.fact("id-message"))
            self.assertLess(abs(waits["sleep"]["timeout_ns"] - 3600e9), 600e9)
        target.finish()

    def test_interruptions(self):
        """No call returns because of a snapshot."""
        for mode in MODES:
            with self.subTest(mode=mode):
                target = self.start_command([program("eintr")])
                for _ in range(5):
                    self.snap(target, "--mode=" + mode)
                status, output = target.finish()
                calls = [line.split() for line in output.splitlines()]
                self.assertEqual(status, 0)
                self.assertGreater(len(calls), CALLS)
                self.assertEqual([call for call in calls if call[3] != "missing" and
                                  call[1:3] != ["0", "0"]], [])

    def test_signal_handler(self):
        """Frames of both kinds, of handlers with and without SA_SIGINFO."""
        target = self.start_command([program("sighandler")])
        for mode in MODES:
            snapshot = self.snap(target, "--mode=" + mode)
            self.assertEqual({thread["end"] for thread in snapshot.threads}, {"root"})
            self.assertTrue([thread for thread in snapshot.threads
                             if any(frame["signal_frame"] for frame in thread["frames"])])
        target.finish()


if __name__ == "__main__":
    main()
