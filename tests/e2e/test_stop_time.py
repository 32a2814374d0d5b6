"""The stop times that the tool reports are those that a clock in the target sees, also if signals
arrive all the time: an attached thread stands still from its next signal on.
STACKSNAP_TRIES=8000 tries it with up to that many threads."""
# ctest: serial release-only tries=8000

import os
import re
import subprocess
import time
import unittest
from statistics import median

from harness import EndToEnd, LIMIT_S, STACKSNAP, main, read_text

CLOCKS = 30
SETS = 4
TRIES = 7
PERIOD_NS = 1000 * 1000
# A clock that stood still for less than this may have waited for something else.
STILL_NS = 3 * 1000 * 1000
THREADS = [n for n in (300, 3000, 8000)
           if n <= int(os.environ.get("STACKSNAP_TRIES", "3000"))]
# Where all threads were attached before the first was interrupted, the median was 0.25 to 0.5.
# Where threads that were late were released in another round, it was 1.3 to 2.8.
RATIO = 0.9
RATE = 199
# From the interrupt until a thread has stopped, and from the release until it runs: these are
# included in what is told of a recording, where stops are short.
AROUND_NS = 50 * 1000
# Without the right to use perf events
BLIND = ("setpriv", "--bounding-set=-perfmon,-sys_admin")


class StopTime(EndToEnd):
    def inside(self, gaps, begin_ns, end_ns):
        """How long any clock stood still: the union of their gaps. Clocks have a real-time
        priority, so that none waits for a CPU before it stops or after its release; where they
        must not have it, most of that wait comes at the end of a gap. The beginning is known to
        a period of the clock."""
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
        for threads in THREADS:
            with self.subTest(threads=threads):
                self.check(threads)

    def check(self, threads):
        found = []
        for _ in range(SETS):
            found.append(self.ratios(threads))
            if found[-1] and RATIO <= median(found[-1]) <= 1 / RATIO:
                return
        self.fail("told / seen inside: %s" % found)

    def stood_still(self, target, meter):
        """How long a thread that spins neither ran nor waited for a CPU since its start, but for
        a constant, in nanoseconds: the time on a CPU is that of the process, whose other
        threads sleep."""
        on_cpu_ns = time.clock_gettime_ns((~target.pid << 3) | 2)  # CPUCLOCK_SCHED
        waited_ns = int(read_text("/proc/%d/schedstat" % meter).split()[1])
        return time.monotonic_ns() - on_cpu_ns - waited_ns

    def stolen_ns(self):
        """For how long the host has taken CPUs away, which is no time on a CPU for the scheduler."""
        return int(read_text("/proc/stat").split()[8]) * 10**9 // os.sysconf("SC_CLK_TCK")

    def record(self, target, meter):
        """What a recording says that threads were stopped, how often, what the scheduler says,
        and how much of that the host may have taken."""
        before_ns = self.stood_still(target, meter)
        stolen_ns = self.stolen_ns()
        # Where the kernel samples running threads, none is stopped.
        result = subprocess.run([*BLIND, STACKSNAP, "record", "--duration=1s", "--rate=%d" % RATE,
                                 "-o", "-", str(target.pid)], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=LIMIT_S)
        inside_ns = self.stood_still(target, meter) - before_ns
        text = result.stderr.decode()
        found = re.search(r"stopped ([\d,]+) times, for ([\d.]+) (ms|s) in total", text)
        self.assertTrue(found, text)
        told_ns = float(found[2]) * {"ms": 1e6, "s": 1e9}[found[3]]
        return told_ns, int(found[1].replace(",", "")), inside_ns, self.stolen_ns() - stolen_ns

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to drop a right")
    def test_record(self):
        """A recording tells the sum of its short stops."""
        target = self.start("pause_meter", 50, settle=False)
        meter = next(tid for tid in map(int, os.listdir("/proc/%d/task" % target.pid))
                     if read_text("/proc/%d/comm" % tid) == "meter\n")
        found = []
        for _ in range(SETS):
            found.append(self.record(target, meter))
            told_ns, stops, inside_ns, stolen_ns = found[-1]
            around_ns = stops * AROUND_NS
            if stops > RATE / 2 and (told_ns - around_ns <= inside_ns <=
                                     told_ns / RATIO + stolen_ns):
                return
        self.fail("told, stops, seen by the scheduler, stolen: %s" % found)


if __name__ == "__main__":
    main()
