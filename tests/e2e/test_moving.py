"""Calls that move data run most of their time. A thread in one of them is not stopped, so the
call moves all that it was asked to. See targets/moving.c."""
# ctest: tries=200 timeout=900 release-only

import os
import shutil
import subprocess
import tempfile

from harness import LIMIT_S, STACKSNAP, TARGETS, EndToEnd, Snapshot, main, read_text

TRIES = int(os.environ.get("STACKSNAP_TRIES", "10"))
RATE = 199
RECORD_S = max(0.5, TRIES / RATE)
# Those that sleep, and those that do not.
FEW_CALLS = ("write_pipe", "send", "getrandom", "copy_range")
CALLS = FEW_CALLS
if "STACKSNAP_TRIES" in os.environ:
    CALLS += ("writev", "recv_all", "read_zero", "sendfile")
CAP_SYS_ADMIN = 1 << 21
# Root without the right to sample CPUs; and without any samples (perf_event_open is refused).
BLIND = ("setpriv", "--bounding-set=-perfmon,-sys_admin")
NO_PERF = (os.path.join(TARGETS, "deny_syscalls"), "298")


class Calls(EndToEnd):
    def setUp(self):
        rights = int(read_text("/proc/self/status").split("CapEff:")[1].split()[0], 16)
        if not rights & CAP_SYS_ADMIN:
            self.skipTest("to see where a running thread is needs CAP_SYS_ADMIN")

    def assert_few(self, cuts, tries):
        """Before threads were looked at, 60 to 100 % of all snapshots cut a call short. A
        thread that begins its call right after the look is still stopped in it."""
        self.assertLessEqual(sum(cuts.values()), max(3, tries * 2 // 100), cuts)

    def finish(self, target):
        status, output = target.finish()
        self.assertEqual(status, 0)
        calls, cuts, errors = map(int, output.split())
        self.assertGreater(calls, 0)
        self.assertEqual(errors, 0)
        return cuts

    def take(self, prefix, *words):
        command = [*prefix, STACKSNAP, *map(str, words)]
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, timeout=LIMIT_S)
        self.assertIn(result.returncode, (0, 1), (command, result.stderr))
        return result

    def snapshots(self, mode, prefix=(), calls=CALLS, tries=TRIES):
        """Returns how many stacks were whole."""
        cuts = {}
        whole = 0
        for name in calls:
            target = self.start("moving", name)
            for _ in range(tries):
                snapshot = Snapshot(self.take(prefix, "-f", "json", "--mode=" + mode, target.pid))
                thread = snapshot.thread(name)
                symbols = [frame["symbol"] for frame in thread["frames"]]
                if thread["end"] == "root":
                    whole += 1
                    self.assertIn("thread_routine", symbols)
                    self.assertIn("target_thread_main", symbols)
                else:
                    self.assertIn(thread["end"], ("runnable", "running", "not-stopped"))
            cuts[name] = self.finish(target)
        self.assert_few(cuts, tries * len(calls))
        return whole

    def records(self, prefix=(), calls=CALLS):
        cuts = {}
        for name in calls:
            target = self.start("moving", name)
            with tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, "recording")
                self.take(prefix, "record", "-d", "%dms" % (RECORD_S * 1000), "-r", RATE, "-o", path,
                          target.pid)
                text = self.run_tool("report", "-f", "folded", path, status=(0, 1)).stdout
            if not prefix:
                self.assertIn(b"thread_routine;call_" + name.encode(), text)
            cuts[name] = self.finish(target)
        self.assert_few(cuts, RECORD_S * RATE * len(calls))


class Moving(Calls):
    def test_stop(self):
        whole = self.snapshots("stop", calls=FEW_CALLS)
        # Without a stack: it got no processor while it was looked at.
        self.assertGreater(whole, TRIES * len(FEW_CALLS) * 3 // 4)

    def test_auto(self):
        whole = self.snapshots("auto")
        self.assertGreater(whole, TRIES * len(CALLS) * 3 // 4)

    def test_record(self):
        self.records()


class Blind(Calls):
    """Without the right to sample CPUs. A thread that is hardly ever in user space is not
    stopped; before, a third to all of the snapshots cut a call short."""

    def setUp(self):
        super().setUp()
        if not shutil.which("setpriv"):
            self.skipTest("setpriv is missing")
        if int(read_text("/proc/sys/kernel/perf_event_paranoid")) > 2:
            self.skipTest("kernel.perf_event_paranoid forbids to sample threads")

    def test_auto(self):
        self.snapshots("auto", BLIND, FEW_CALLS, TRIES // 2)

    def test_record(self):
        self.records(BLIND, FEW_CALLS)

    def test_computing(self):
        """A thread that computes has a stack all the same, with and without samples."""
        target = self.start("busy", 3, 5)
        for prefix in (BLIND, NO_PERF):
            with self.subTest(prefix=prefix):
                result = self.take(prefix, "-f", "json", "--timeout=10000", target.pid)
                snapshot = Snapshot(result)
                for index in range(3):
                    self.assertEqual(snapshot.thread("busy-%d" % index)["end"], "root",
                                     (snapshot.threads, result.stderr))


if __name__ == "__main__":
    main()
