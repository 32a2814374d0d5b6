"""Modes auto and no-stop do not touch blocked threads. A snapshot that claims to be atomic must
be, and a thread that is not stopped must not be affected."""
# ctest: long-with-sanitizers

import os
import platform
import re
import shutil
import statistics
import subprocess
import tempfile

from harness import (EndToEnd, LIMIT_S, Library, MAIN_STACK, Named, STACKSNAP, THREAD_END, main,
                     read_text)

SCHEDSTAT = os.path.exists("/proc/self/schedstat")


def run_counts(pid):
    """How often each thread was put on a CPU."""
    return {tid: read_text("/proc/%d/task/%s/schedstat" % (pid, tid)).split()[2]
            for tid in os.listdir("/proc/%d/task" % pid)}


class Untouched(EndToEnd):
    def test_sleepers_are_not_woken(self):
        if not SCHEDSTAT:
            self.skipTest("this kernel does not count (CONFIG_SCHED_INFO)")
        target = self.start("threads", 4, 10)
        before = run_counts(target.pid)
        for mode in ("auto", "no-stop"):
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode)
                capture = snapshot.data["capture"]
                self.assertEqual((capture["threads_stopped"], capture["stopped_ns"]), (0, 0))
                self.assertTrue(capture["consistent"])
                self.assertEqual(len(snapshot.threads), 21)
                self.assert_stack(snapshot, "threads", MAIN_STACK)
                for thread in snapshot.threads:
                    self.assertEqual((thread["end"], thread["stopped_ns"]), ("root", 0))
                self.assertEqual(run_counts(target.pid), before)

    def test_only_running_threads_are_stopped(self):
        if not SCHEDSTAT:
            self.skipTest("this kernel does not count (CONFIG_SCHED_INFO)")
        target = self.start("pause_meter", 20, 10)
        meter = None
        for _ in range(20):
            snapshot = self.snap(target.pid, mode="auto")
            meter = self.assert_stack(snapshot, "meter", [
                Library(4), "measure", "thread_routine"] + THREAD_END)
            for index in range(20):
                thread = self.assert_stack(
                    snapshot, "blocked-%d" % index,
                    [Named("poll"), "target_block"] + ["descend"] * 10 +
                    ["block_routine"] + THREAD_END)
                self.assertEqual(thread["stopped_ns"], 0)
            self.assertGreater(meter["stopped_ns"], 0)
            self.assertEqual(snapshot.data["capture"]["threads_stopped"], 1)


class Lively(EndToEnd):
    def stops(self, pid, mode):
        """How many stops of threads the tool has ended, some of the same thread perhaps."""
        with tempfile.NamedTemporaryFile() as trace:
            subprocess.run(["strace", "-f", "-qq", "-e", "trace=ptrace", "-o", trace.name, STACKSNAP,
                            "--raw", "--mode=" + mode, str(pid)], stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_S)
            return len(re.findall(r"PTRACE_DETACH.* = 0$", trace.read().decode(), re.M))

    def test_no_more_stops_than_in_mode_stop(self):
        """Threads that wake up during each freeze are not stopped again and again."""
        if not SCHEDSTAT or not shutil.which("strace"):
            self.skipTest("no schedstat, or no strace")
        target = self.start("lively")
        wanted = statistics.median(self.stops(target.pid, "stop") for _ in range(5))
        self.assertGreaterEqual(wanted, 33)
        self.assertLessEqual(statistics.median(self.stops(target.pid, "auto") for _ in range(15)),
                             wanted)


class Completed(EndToEnd):
    """Stacks that need a register that is known only after a stop."""

    def check(self, name, *arguments):
        """Exactly the threads whose stack needs it are stopped, and continue as they would have.
        Returns how many."""
        target = self.start(name, *arguments)
        stopped = self.snap(target.pid, mode="stop")
        snapshot = self.snap(target.pid, mode="auto")
        self.assertTrue(snapshot.data["capture"]["consistent"])
        for thread in snapshot.threads:
            other = stopped.thread(thread["tid"])
            self.assertEqual([f["pc"] for f in thread["frames"]],
                             [f["pc"] for f in other["frames"]])
            self.assertEqual((thread["end"], thread["reason"]), ("root", None))
        unwhole = self.snap(target.pid, mode="no-stop", status=(0, 1))
        if SCHEDSTAT:
            needing = {t["tid"] for t in unwhole.threads if t["end"] == "register"}
            self.assertEqual(needing, {t["tid"] for t in snapshot.threads
                                       if t["stopped_ns"] > 0})
        return snapshot

    def test_stack_that_is_realigned(self):
        snapshot = self.check("realigned")
        self.assertGreater(snapshot.thread("aligned")["stopped_ns"], 0)

    def test_frame_pointers(self):
        """They are found without a stop (test_frame_pointers.py), but in a small frame with a
        seventh argument."""
        snapshot = self.check("threads_fp", 2, 5)
        self.assert_stack(snapshot, "threads_fp", MAIN_STACK)
        if platform.machine() == "x86_64" and SCHEDSTAT:
            stopped = {t["name"] for t in snapshot.threads if t["stopped_ns"] > 0}
            self.assertLessEqual(stopped, {"futex-0", "futex-1"})

    def test_without_unwind_information(self):
        """No frame is guessed if a stop can provide the frame pointer."""
        target = self.start("threads_nocfi", 2, 5)
        stopped = self.snap(target.pid, mode="stop", status=(0, 1))
        snapshot = self.snap(target.pid, mode="auto", status=(0, 1))
        for thread in snapshot.threads:
            other = stopped.thread(thread["tid"])
            self.assertEqual([(f["pc"], f["source"]) for f in thread["frames"]],
                             [(f["pc"], f["source"]) for f in other["frames"]])


class OneMoment(EndToEnd):
    def holders(self, snapshot):
        return [thread["tid"] for thread in snapshot.threads
                if any(frame["symbol"] == "hold" for frame in thread["frames"])]

    def test_a_token_is_not_seen_twice(self):
        """Of many running threads, at most one holds the token at any moment."""
        target = self.start("ring", 30, settle=False)
        for mode in ("auto", "no-stop", "stop"):
            with self.subTest(mode=mode):
                one_moment = 0
                for _ in range(60):
                    snapshot = self.snap(target.pid, "--no-inlines", "--no-source",
                                         mode=mode, status=(0, 1))
                    if not snapshot.data["capture"]["consistent"]:
                        continue
                    one_moment += 1
                    self.assertLessEqual(len(self.holders(snapshot)), 1)
                if mode != "no-stop":
                    self.assertGreater(one_moment, 0)


if __name__ == "__main__":
    main()
