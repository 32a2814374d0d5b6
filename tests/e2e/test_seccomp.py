"""Threads under a seccomp filter: no stop makes them call restart_syscall, which the filter
answers by killing the process or with EPERM, and no call that a supervisor emulates is made
twice. See targets/seccomp.c."""
# ctest: tries=1000 timeout=600 release-only

import os
import tempfile

from harness import EndToEnd, Snapshot, main

TRIES = int(os.environ.get("STACKSNAP_TRIES", "12"))
WAITS = ["clock_nanosleep", "futex", "nanosleep", "poll"]


class Seccomp(EndToEnd):
    def finish(self, target):
        status, output = target.finish()
        self.assertEqual(status, 0)
        calls = {}
        for line in output.splitlines():
            name, errors, count = line.split()
            calls[name] = (int(errors), int(count))
        return calls

    def assert_no_error(self, target, names):
        calls = self.finish(target)
        self.assertEqual(sorted(calls), names)
        for name, (errors, count) in calls.items():
            self.assertEqual(errors, 0, f"{errors} of {count} calls of {name} failed")
            self.assertGreater(count, 0)

    def take(self, target, *options, tries=TRIES):
        for _ in range(tries):
            snapshot = Snapshot(self.run_tool("--raw", "-f", "json", *options, target.pid,
                                              status=(0, 1)))
            self.assertGreater(len(snapshot.threads), 1)

    def test_waits(self):
        """All threads sleep in their calls nearly all the time."""
        for action in ("kill", "errno"):
            for mode in ("stop", "auto", "live"):
                with self.subTest(action=action, mode=mode):
                    target = self.start("seccomp", action)
                    self.take(target, f"--mode={mode}")
                    self.assert_no_error(target, WAITS)

    def test_waits_and_computing(self):
        """Running threads are stopped, some of them just after they have entered their call."""
        for action in ("kill", "errno"):
            for mode in ("stop", "auto"):
                with self.subTest(action=action, mode=mode):
                    target = self.start("seccomp", action, "mixed", settle=False)
                    self.take(target, f"--mode={mode}")
                    self.assert_no_error(target, WAITS)

    def test_running_threads_are_stopped(self):
        """A filter does not prevent the stop of a running thread."""
        target = self.start("seccomp", "kill", "mixed", settle=False)
        stopped = 0
        for _ in range(20):
            result = Snapshot(self.run_tool("--raw", "-f", "json", "--mode=stop", target.pid,
                                            status=(0, 1)))
            stopped += sum(thread["stopped_ns"] > 0 for thread in result.threads)
        self.assertGreater(stopped, 0)
        self.assert_no_error(target, WAITS)

    def test_stacks_are_whole(self):
        target = self.start("seccomp", "kill")
        for mode in ("stop", "auto"):
            snapshot = self.snap(target.pid, mode=mode)
            for name in WAITS:
                thread = snapshot.thread(name)
                self.assertEqual(thread["end"], "root")
                self.assertIn("target_thread_main",
                              [frame["symbol"] for frame in thread["frames"]])
        self.assert_no_error(target, WAITS)

    def test_record(self):
        for options in ((), ("mixed",)):
            with self.subTest(options=options):
                target = self.start("seccomp", "kill", *options, settle=False)
                with tempfile.TemporaryDirectory() as directory:
                    self.run_tool("record", "-r", "499", "-d", "1500ms", "-o",
                                  os.path.join(directory, "recording"), target.pid)
                self.assert_no_error(target, WAITS)

    def test_emulated_call(self):
        """A call that is handed over between the last look at its thread and the stop is made
        twice (CAVEATS of stacksnap.1). Without the look, it would be every second one."""
        for mode in ("stop", "auto"):
            with self.subTest(mode=mode):
                target = self.start("seccomp", "notify", settle=False)
                self.take(target, f"--mode={mode}")
                calls = self.finish(target)
                self.assertEqual(sorted(calls), ["mkdir"])
                errors, count = calls["mkdir"]
                self.assertGreater(count, 0)
                self.assertLessEqual(errors, max(2, 1 + TRIES // 50), f"{count} calls")


if __name__ == "__main__":
    main()
