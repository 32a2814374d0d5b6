"""The table of disturbances in docs/how-we-know.md with a few tries: what must not disturb a process does not. In
the default mode that includes every call that sleeps."""
# ctest: timeout=900 tries=300 release-only

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "survive"))

from harness import main  # noqa: E402
from disturbances import MODES, ROWS, Unavailable  # noqa: E402
from fates import tries  # noqa: E402


# Without STACKSNAP_TRIES. The others are these with a pause or in turn (hang, top), stop nothing
# (no-stop, trace --alloc), or are in e2e/harmless (live).
QUICK = {"auto", "stop", "series", "record"}
# These have tests of their own, with more tries of snapshots and recordings: test_eintr.py,
# test_seccomp.py, test_job_control.py, test_races.py, test_killed.py, test_killed_sessions.py.
ELSEWHERE = {"calls", "timed_calls", "fuse_read", "seccomp_kill", "seccomp_kill_mixed",
             "seccomp_errno", "seccomp_errno_mixed", "job_control", "fate", "killed"}


class Survive(unittest.TestCase):
    maxDiff = None

    def modes(self, row):
        wanted = QUICK
        if "STACKSNAP_TRIES" in os.environ:
            wanted = row.zero
        elif row.name in ELSEWHERE:
            wanted = {"series"}
        return [mode for mode in MODES if mode.name in wanted & row.zero]

    def check(self, row):
        for mode in self.modes(row):
            with self.subTest(mode=mode.name):
                result = row.measure(mode, tries(3))
                counts = result if isinstance(result, dict) else {"": result}
                self.assertEqual({key: value for key, value in counts.items() if value}, {})


def add_test(row):
    def test(self):
        try:
            self.check(row)
        except Unavailable as reason:
            self.skipTest(str(reason))

    test.__doc__ = row.title
    setattr(Survive, "test_" + row.name, test)


for each in ROWS:
    add_test(each)


if __name__ == "__main__":
    main()
