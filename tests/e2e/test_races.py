"""Processes that fork, execute, exit, stop or are killed during their snapshot: they end as
they would have without it, no stack is wrong, and the tool ends.

STACKSNAP_TRIES=1000 tries each that often, STACKSNAP_SEED=N at other moments."""
# ctest: release-only timeout=600 tries=1000

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "survive"))

from harness import MODES, STACKSNAP, main  # noqa: E402
from fates import FATES, OWN, meet, seeded, tries, wrong_stacks  # noqa: E402
from subjects import Lab  # noqa: E402


class Races(unittest.TestCase):
    maxDiff = None

    def meet_often(self, fate, mode, count):
        # so that who waits for a thread that never stops is seen to hang
        command = [STACKSNAP, "-f", "json", "--no-source", "--timeout=600000",
                   "--mode=" + mode]
        generator = seeded()
        met = 0
        # on a busy machine a try may miss: the process is released before it notices
        for number in range(20 * count):
            with Lab() as lab:
                outcome = meet(lab, fate, command, generator)
            self.check(outcome, (number, outcome, outcome.run))
            met += not outcome.missed
            if met == count:
                return
        if count > 1:
            self.assertGreater(met, 0, "nothing was tried")

    def check(self, outcome, told):
        self.assertTrue(outcome.right, told)
        self.assertIn(outcome.run.returncode, (0, 1, 2), told)
        if outcome.run.returncode == 2:
            self.assertEqual(outcome.run.stdout, b"", told)
            self.assertRegex(outcome.run.stderr, b"^stacksnap: ", told)
        else:
            self.assertEqual(wrong_stacks(json.loads(outcome.run.stdout)), [], told)


def add_test(fate):
    # what is shot at sleeps, and is not attached to in mode auto
    modes = MODES + ("auto",) if fate in OWN else MODES

    def test(self):
        for mode in modes:
            with self.subTest(mode=mode):
                self.meet_often(fate, mode, tries(1 if mode == "live" else 4))

    setattr(Races, "test_" + fate, test)


for each in FATES:
    add_test(each)


if __name__ == "__main__":
    main()
