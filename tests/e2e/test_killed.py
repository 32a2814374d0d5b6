"""The tool is killed with SIGKILL: at each of its calls that touch the process, one after the
other, and at random moments. The process continues, and loses no signal.

STACKSNAP_TRIES=1000 tries that many random moments, STACKSNAP_SEED=N selects others."""
# ctest: release-only timeout=600 tries=1000

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "survive"))

from harness import (EndToEnd, LIMIT_S, MAIN_STACK, MODES, STACKSNAP, main,  # noqa: E402
                     status_field, wait_until)
from fates import seeded, tries  # noqa: E402
from killing import is_free, kill_at_random  # noqa: E402

CALLS = ("ptrace", "process_vm_readv")


def no_signal_waits(pid):
    return not any(int(status_field(pid, field), 16) for field in ("SigPnd", "ShdPnd"))


class Killed(EndToEnd):
    def counted(self, target, sent):
        """Checks that it received all signals that were sent to it, and continues."""
        self.assert_stack(self.snap(target.pid), "sigcount", MAIN_STACK)
        wait_until(lambda: no_signal_waits(target.pid), "the signals to arrive")
        self.assertEqual(target.finish(), (42, "signals %d\n" % sent))

    def strace(self, pid, mode, *options):
        with tempfile.NamedTemporaryFile() as trace:
            command = ["strace", "-f", "-qq", "-o", trace.name, *options, STACKSNAP,
                       "--raw", "--mode=" + mode, str(pid)]
            result = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=LIMIT_S,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return result.returncode, trace.read().decode("utf-8", "replace")

    def calls(self, pid, mode, call):
        """Returns the largest number of these calls that one thread makes."""
        _, text = self.strace(pid, mode, "-e", "trace=" + call)
        made = [line.split()[0] for line in text.splitlines()
                if re.match(r"\d+ +%s\(" % call, line)]
        return max(map(made.count, made), default=0)

    def test_at_each_call(self):
        """The tool is killed at its n-th call, just after the process was sent a signal."""
        if not shutil.which("strace"):
            self.skipTest("strace is missing")
        for mode in MODES:
            for call in CALLS:
                with self.subTest(mode=mode, call=call):
                    target = self.start("sigcount")
                    count = self.calls(target.pid, mode, call)
                    self.assertGreater(count, 0)
                    step = 1 if mode == "stop" else 1 + count // 12
                    killed = sent = 0
                    for number in range(1, count + 1, step):
                        os.kill(target.pid, signal.SIGRTMIN)
                        sent += 1
                        status, _ = self.strace(
                            target.pid, mode, "-e", "trace=" + call, "-e",
                            "inject=%s:signal=KILL:when=%d" % (call, number))
                        killed += status == -signal.SIGKILL
                        self.assertTrue(is_free(target.pid, LIMIT_S), number)
                    # a call that polls is not always made that often
                    self.assertGreater(killed, sent // 4)
                    self.counted(target, sent)

    def test_at_random_moments(self):
        for mode in MODES + ("auto",):
            with self.subTest(mode=mode):
                target = self.start("sigcount")
                count = tries(15 if mode == "live" else 40)
                self.assertEqual(0, kill_at_random([STACKSNAP, "--mode=" + mode], target.pid,
                                                   count, seeded()))
                self.counted(target, count)


if __name__ == "__main__":
    main()
