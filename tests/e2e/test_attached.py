"""Being attached for a moment must not affect a process: the signals that it sends itself, and the
programs that it executes."""
# ctest: release-only

import os
import shutil
import subprocess
import tempfile
import unittest

from harness import EndToEnd, LIMIT_S, STACKSNAP, TARGETS, for_everyone, main

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


class ForgedSignals(EndToEnd):
    def test_no_signal_is_lost(self):
        """A stop for a signal is told from our stop by the wait status. The si_code of a
        signal may be anything."""
        for mode in ("auto", "stop"):
            with self.subTest(mode=mode):
                target = self.start("forged_signals")
                for _ in range(5):
                    self.snap(target.pid, mode=mode, status=(0, 1))
                status, output = target.finish()
                counts = dict(line.split() for line in output.splitlines())
                self.assertEqual((status, counts["sent"]), (0, counts["received"]))


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class SetUserId(EndToEnd):
    """A program that gains privileges from its file; stacksnap has none."""

    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        os.chmod(self.directory, 0o777)
        self.plain, self.program = (
            shutil.copy(os.path.join(TARGETS, "set_uid"), os.path.join(self.directory, name))
            for name in ("plain", "program"))
        os.chmod(self.plain, 0o755)
        os.chmod(self.program, 0o4755)
        self.tool = NOBODY + [for_everyone(STACKSNAP)]

    def record(self, *arguments):
        return subprocess.run([*self.tool, "record", "-o", os.path.join(self.directory, "%p-%t"),
                               *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=LIMIT_S)

    def test_of_a_child(self):
        """No child is attached between fork and execve."""
        target = self.start_command([*NOBODY, self.plain, "children", self.program])
        result = self.record("--children", "-r", "499", "-d", "3s", str(target.pid))
        self.assertEqual(result.returncode, 0, result.stderr)
        lost, executions = map(int, target.finish()[1].split()[1:])
        self.assertGreater(executions, 30)
        self.assertEqual(lost, 0)

    def test_program_is_not_started(self):
        """With a tracer, the kernel would start it without its privileges."""
        for words in ([self.program, "check"],
                      ["sh", "-c", "exit 3"], [self.plain, "check"]):
            result = self.record("--", *words)
            refused = words[0] == self.program
            self.assertEqual(b"set-user-ID" in result.stderr, refused, result.stderr)
            self.assertEqual(result.returncode == 2, refused, result.stderr)
        self.assertIn(b"hint: start it, then: sudo stacksnap record PID",
                      self.record("--", self.program).stderr)


if __name__ == "__main__":
    main()
