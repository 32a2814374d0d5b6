"""The situations of the table in docs/how-we-know.md (tests/survive/situations.py), each with
stacksnap: complete stacks, right names, and an unchanged process."""
# ctest: long-with-sanitizers timeout=600

import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "survive"))

from harness import main, task_states, wait_until  # noqa: E402
from judge import OURS, judge  # noqa: E402
import codes  # noqa: E402,F401: adds to ALL
import rights  # noqa: E402,F401: likewise
from situations import ALL  # noqa: E402
from subjects import Lab, Unavailable  # noqa: E402


class Situations(unittest.TestCase):
    maxDiff = None

    def check(self, wanted):
        with Lab() as lab:
            try:
                for subject in wanted.make(lab):
                    verdict = judge(OURS, subject, 60)
                    self.assertTrue(verdict.right, verdict)
                    self.assertIn(verdict.run.status, wanted.status, verdict)
                    self.assertEqual(verdict.refused, bool(subject.message), verdict)
                    if subject.message:
                        self.assertRegex(verdict.message, subject.message, verdict)
                    if verdict.run.status:
                        self.assertIn("stacksnap: ", verdict.run.stderr)
                    if subject.stopped:
                        self.wakes(subject)
            except Unavailable as reason:
                self.skipTest(str(reason))

    def wakes(self, subject):
        """Checks that the process is still stopped, and that SIGCONT continues it."""
        os.kill(subject.pid, signal.SIGCONT)
        wait_until(lambda: set(task_states(subject.pid).values()) <= set("SR"), "SIGCONT")


def add_test(wanted):
    def test(self):
        self.check(wanted)

    test.__doc__ = wanted.title
    setattr(Situations, "test_" + wanted.name, test)


for each in ALL:
    add_test(each)


if __name__ == "__main__":
    main()
