"""A signal of the terminal (Ctrl-Z) stops stacksnap while it records or takes snapshots: no
thread of the target stays stopped, and stacksnap continues after SIGCONT.

STACKSNAP_TRIES=1000 tries that many moments."""
# ctest: release-only timeout=300 tries=200

import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "survive"))

from harness import EndToEnd, LIMIT_S, STACKSNAP, main, task_states, wait_until  # noqa: E402
from fates import seeded, tries  # noqa: E402


def is_stopped(pid):
    """Whether all of its threads are stopped, or it has ended."""
    return all(state in "TZX" for state in task_states(pid).values())


class JobControl(EndToEnd):
    def begin(self, *arguments):
        """Starts the tool in a process group of its own, as a shell does: a terminal signals
        the whole group."""
        process = subprocess.Popen([STACKSNAP, *map(str, arguments)], preexec_fn=os.setpgrp,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def left_stopped(self, target, process, number):
        """Whether a thread of the target is stopped while the tool is."""
        os.killpg(process.pid, number)
        wait_until(lambda: is_stopped(process.pid), "the tool to stop")
        left = any(state in "tT" for state in task_states(target.pid).values())
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGCONT)
        return left

    def test_record(self):
        target = self.start("busy", 8, 50)
        moments = seeded()
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "recording")
            process = self.begin("record", "-o", path, target.pid)
            wait_until(lambda: os.path.exists(path) and os.path.getsize(path) > 0, "a recording")
            for number in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
                left = 0
                for _ in range(tries(25)):
                    time.sleep(moments.uniform(0.01, 0.05))
                    left += self.left_stopped(target, process, number)
                self.assertEqual(left, 0, number)
            size = os.path.getsize(path)
            wait_until(lambda: os.path.getsize(path) > size, "the recording to go on")
            self.stop_by_force(target, process, moments)
            process.send_signal(signal.SIGINT)
            # The guard may end another tick, and stop the recorder after the last SIGCONT.
            wait_until(lambda: process.send_signal(signal.SIGCONT) or process.poll() is not None,
                       "the recording to end")
            self.assertEqual(process.returncode, 0, process.stderr.read())
            self.run_tool("report", path)  # missed ticks are a note
        self.assert_free(target.pid)

    def stop_by_force(self, target, process, moments):
        """SIGSTOP may stop the recorder in the middle of a tick: its guard ends the tick, and
        then the recorder stays stopped."""
        def held():
            return any(state in "tT" for state in task_states(target.pid).values())

        rescued = 0
        for _ in range(tries(25)):
            time.sleep(moments.uniform(0.01, 0.05))
            process.send_signal(signal.SIGSTOP)
            wait_until(lambda: is_stopped(process.pid), "the tool to stop")
            if held():
                rescued += 1
                wait_until(lambda: not held(), "the target to go on")
                wait_until(lambda: is_stopped(process.pid), "the tool to stop again")
            process.send_signal(signal.SIGCONT)
        print("%d ticks were ended by the guard" % rescued, file=sys.stderr)

    def test_snap(self):
        target = self.start("busy", 8, 50)
        moments = seeded()
        left = 0
        for _ in range(tries(25)):
            process = self.begin("--mode=stop", "--raw", "--timeout=20000", target.pid)
            time.sleep(moments.uniform(0.0, 0.02))
            left += self.left_stopped(target, process, signal.SIGTSTP)
            self.assertEqual(process.wait(LIMIT_S), 0, process.stderr.read())
        self.assertEqual(left, 0)
        self.assert_free(target.pid)


if __name__ == "__main__":
    main()
