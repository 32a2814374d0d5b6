"""The stop times that the tool reports are those that a clock in the target sees, also if signals
arrive all the time: an attached thread stands still from its next signal on."""
# ctest: serial release-only

import time
from statistics import median

from harness import EndToEnd, main

CLOCKS = 30
SETS = 4
TRIES = 7
PERIOD_NS = 1000 * 1000
# A clock that stood still for less than this may have waited for something else.
STILL_NS = 3 * 1000 * 1000
# The least ratio by number of threads: with many, the last to stop may have no clock. (The first
# and the last in the list have one.)
# Where all threads were attached before the first was interrupted, the median was 0.25 to 0.5.
RATIOS = {1000: 0.85, 3000: 0.65}


class StopTime(EndToEnd):
    def inside(self, gaps, begin_ns, end_ns):
        """How long any clock stood still: the union of their gaps. The time in which a clock was
        runnable and waited for a CPU, which the tool cannot see, comes at the end of a gap. The
        beginning is known to a period of the clock."""
        still = []
        for _, gap_begin_ns, gap_end_ns, waited_ns in gaps:
            first_ns, last_ns = gap_begin_ns + PERIOD_NS // 2, gap_end_ns - waited_ns
            if begin_ns <= first_ns and last_ns <= end_ns and last_ns - first_ns >= STILL_NS:
                still.append((first_ns, last_ns))
        total_ns, until_ns = 0, 0
        for first_ns, last_ns in sorted(still):
            total_ns += max(0, last_ns - max(first_ns, until_ns))
            until_ns = max(until_ns, last_ns)
        return total_ns

    def ratios(self, threads):
        """What snapshots say, as parts of what the target saw."""
        target = self.start("signal_clock", threads, CLOCKS, settle=False)
        attempts = []
        for _ in range(TRIES):
            begin_ns = time.monotonic_ns()
            # 1: a thread that cannot be stopped without harm at that moment is not.
            snapshot = self.snap(target.pid, mode="stop", timeout_ms=10000, status=(0, 1))
            attempts.append((begin_ns, time.monotonic_ns(), snapshot.data["capture"]["stopped_ns"]))
        _, text = target.finish()
        gaps = [tuple(map(int, line.split()[1:])) for line in text.splitlines()]
        found = []
        for begin_ns, end_ns, told_ns in attempts:
            inside_ns = self.inside(gaps, begin_ns, end_ns)
            if inside_ns:
                found.append(told_ns / inside_ns)
        return found

    def test_snapshot(self):
        """On a busy machine one of several sets of attempts must agree."""
        for threads, ratio in RATIOS.items():
            with self.subTest(threads=threads):
                self.check(threads, ratio)

    def check(self, threads, ratio):
        found = []
        for _ in range(SETS):
            found.append(self.ratios(threads))
            if found[-1] and ratio <= median(found[-1]) <= 1 / ratio:
                return
        self.fail("told / seen inside: %s" % found)


if __name__ == "__main__":
    main()
