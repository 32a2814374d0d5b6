"""What being attached for a moment does to a process: to the signals that it sends itself, to
children that it creates in that moment, and to programs that it executes."""
# ctest: serial

import os
import subprocess
import tempfile

from harness import EndToEnd, LIMIT_S, MODES, STACKSNAP, main


class ForgedSignals(EndToEnd):
    def test_no_signal_is_lost(self):
        """A stop for a signal is told from our stop by the wait status. The si_code of a
        signal may be anything."""
        for mode in MODES + ("auto",):
            with self.subTest(mode=mode):
                target = self.start("forged_signals")
                for _ in range(60):
                    self.snap(target.pid, mode=mode, status=(0, 1))
                status, output = target.finish()
                counts = dict(line.split() for line in output.splitlines())
                self.assertEqual((status, counts["sent"]), (0, counts["received"]))


class AttachedChildren(EndToEnd):
    def test_they_run_on(self):
        """A recording lasts longer than the target: none of its children waits for the end
        of the recording."""
        target = self.start("clone_ptrace")
        with tempfile.TemporaryDirectory() as directory:
            recorder = subprocess.Popen(
                [STACKSNAP, "record", "-r", "199", "-o", os.path.join(directory, "recording"),
                 str(target.pid)], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                self.assertEqual(target.finish(), (0, "children 3000\n"))
            finally:
                recorder.kill()
                recorder.wait(LIMIT_S)


if __name__ == "__main__":
    main()
