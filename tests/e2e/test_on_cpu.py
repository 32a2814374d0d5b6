"""stacksnap record --on-cpu: the samples are what was on a CPU at the tick. The two functions
of bursts have a known share, and perf records the same process at the same time. With
STACKSNAP_TRIES set, for longer."""
# ctest: serial timeout=600 release-only tries=1

import os
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import EndToEnd, LIMIT_S, STACKSNAP, TARGETS, main, task_states
from recording import Recording, ZSTD
from test_record import names_in, symbols

POINTS = 5
LONG = "STACKSNAP_TRIES" in os.environ
# (Hz, seconds, microseconds of a burst)
BURSTS = ([(rate, seconds, burst_us) for rate, seconds in ((99, 8), (999, 3))
           for burst_us in (30, 100, 300, 3000)] if "STACKSNAP_TRIES" in os.environ else
          [(99, 4, 300), (999, 1.5, 30), (999, 1.5, 3000)])
PERF = shutil.which("perf")


def may_sample_cpus():
    """Whether perf_event_open(2) is allowed for all processes of a CPU."""
    if not PERF:
        return os.geteuid() == 0
    with tempfile.TemporaryDirectory() as directory:
        result = subprocess.run([PERF, "record", "-q", "-a", "-e", "cpu-clock", "-o",
                                 os.path.join(directory, "data"), "true"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                timeout=LIMIT_S)
    return result.returncode == 0


@unittest.skipUnless(ZSTD, "libzstd cannot be loaded")
@unittest.skipUnless(may_sample_cpus(), "perf events are not allowed")
class OnCpu(EndToEnd):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.path = os.path.join(self.directory.name, "recording")
        self.perf_path = os.path.join(self.directory.name, "perf.data")

    def record(self, pid, rate, seconds, *options, with_perf=True):
        """stacksnap and perf at the same time. Returns the recording."""
        perf = None
        if os.path.exists(self.path):
            os.unlink(self.path)
        if PERF and with_perf:
            perf = subprocess.Popen([PERF, "record", "-q", "-e", "cpu-clock", "-F", str(rate),
                                     "-p", str(pid), "-o", self.perf_path, "sleep",
                                     str(seconds)],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.text = self.run_tool("record", "--on-cpu", "-r", rate,
                                  "--duration=%dms" % (seconds * 1000), "-o", self.path,
                                  *options, pid).stderr.decode()
        if perf:
            perf.wait(LIMIT_S)
        return Recording(self.path)

    def reported_shares(self):
        """Of the work of bursts, and of CPU time that is in no sample, in a report."""
        work = unsampled = total = 0
        for line in self.run_tool("report", "-f", "folded", self.path,
                                  status=(0, 1)).stdout.decode().splitlines():
            stack, count = line.rsplit(" ", 1)
            total += int(count)
            work += int(count) if re.search("(few|many)_rounds", stack) else 0
            unsampled += int(count) if stack.endswith("[not sampled]") else 0
        return 100 * work / total, 100 * unsampled / total

    def perf_shares(self):
        """The samples of each function, in percent of all, as perf sees them."""
        text = subprocess.run([PERF, "report", "-i", self.perf_path, "--stdio", "--no-children",
                               "--sort=symbol"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=LIMIT_S).stdout.decode()
        return {name: float(share) for share, name in
                re.findall(r"^ *([\d.]+)% +\[[.k]\] (\S+)", text, re.M)}

    def shares(self, recording, path, table):
        """The same of a recording; None: in the kernel or a library."""
        counts = {}
        for sample in recording.samples:
            module = sample["frames"][0][0] if sample["frames"] else None
            names = names_in(sample, path, table)
            inner = names[0] if module and module.path == path and names else None
            counts[inner] = counts.get(inner, 0) + 1
        total = sum(counts.values())
        return {name: 100 * count / total for name, count in counts.items()}

    def check(self, rate, burst_us, seconds):
        target = self.start("bursts", burst_us, 100, 2, settle=False)
        path = os.path.join(TARGETS, "bursts")
        recording = self.record(target.pid, rate, seconds)
        self.assert_free(target.pid)
        shares = self.shares(recording, path, symbols(path))
        few, many = shares.get("few_rounds", 0), shares.get("many_rounds", 0)
        # A share of the samples varies by chance: twice the standard deviation of 30 %.
        chance = 200 * (0.3 * 0.7 / len(recording.samples)) ** 0.5
        note = "%d Hz, %d us: %s" % (rate, burst_us, shares)
        self.assertLess(abs(100 * few / (few + many) - 30), POINTS + chance, note)
        self.assertEqual({sample["end"] for sample in recording.samples}, {"root"}, note)
        self.assertEqual({sample["state"] for sample in recording.samples}, {"R"})
        self.assertEqual(recording.summary["thread_stops"], 0)
        self.assertEqual(recording.scope, 1)
        if PERF:
            perf = self.perf_shares()
            work = perf.get("few_rounds", 0) + perf.get("many_rounds", 0)
            note += "; perf: %.1f" % work
            # perf's events belong to threads and begin anew with each time on a CPU: it
            # attributes more to the switch of threads.
            self.assertGreater(few + many, work - POINTS - chance, note)
        # The clock does not interrupt switches of threads. A report adds the CPU time that is in
        # no sample, so the share is the one that the program knows.
        share, unsampled = self.reported_shares()
        numbers = re.search(r"cpu (\d+) rounds (\d+)", target.finish()[1])
        truth = 100 * int(numbers.group(2)) / int(numbers.group(1))
        note += "; report: %.1f, [not sampled] %.1f, in truth %.1f" % (share, unsampled, truth)
        self.assertLess(abs(share - truth), POINTS + 300 / len(recording.samples) ** 0.5, note)
        if os.environ.get("STACKSNAP_VERBOSE"):
            print(note)

    def test_bursts(self):
        for rate, seconds, burst_us in BURSTS:
            with self.subTest(rate=rate, burst_us=burst_us):
                self.check(rate, burst_us, seconds)

    def test_cpu_time(self):
        """The samples say how much CPU time there was."""
        target = self.start("bursts", 300, 300, 1, settle=False)
        recording = self.record(target.pid, 999, 2, with_perf=False)
        cpu_us = sum(sample["cpu_us"] for sample in recording.samples)
        share = cpu_us / 1e6 / (recording.summary["duration"] / 1e9)
        ticks = len(recording.samples) / recording.ticks
        self.assertLess(abs(ticks - share), 0.1, (ticks, share))

    def test_recorder_takes_time(self):
        """On a CPU that is always busy the recorder takes its time from the target, too, not only
        from what runs between the ticks: the samples stand for as much time as the scheduler
        counted."""
        target = self.start_command(["taskset", "-c", "0", os.path.join(TARGETS, "busy"), "2"])
        recording = self.record(target.pid, 999, 3, with_perf=False)
        cpu_s = sum(sample["cpu_us"] for sample in recording.samples) / 1e6
        sampled_s = len(recording.samples) / 999
        self.assertLess(abs(sampled_s / cpu_s - 1), 0.05 + 2 / len(recording.samples) ** 0.5,
                        (sampled_s, cpu_s, len(recording.samples)))

    def test_waiting_for_a_cpu(self):
        """More threads than a CPU can run: most of the time they wait for it."""
        target = self.start_command(["taskset", "-c", "0", os.path.join(TARGETS, "busy"), "4"])
        self.run_tool("record", "-r", 99, "--duration=2s", "-o", self.path, target.pid)
        recording = Recording(self.path)
        self.assertEqual(recording.scope, 0)
        ran = sum(sample["cpu_us"] for sample in recording.samples)
        waited = sum(sample["ready_us"] for sample in recording.samples)
        self.assertGreater(waited, 2 * ran)
        text = self.run_tool("report", self.path, status=(0, 1)).stdout.decode()
        shares = [float(re.search(r"([\d.]+) %     " + what, text).group(1))
                  for what in ("on a CPU", "waiting for a CPU")]
        running = float(re.search(r"([\d.]+) %  R  running", text).group(1))
        self.assertAlmostEqual(sum(shares), running, delta=0.3)
        self.assertAlmostEqual(shares[1] / running, waited / (ran + waited), delta=0.1)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to drop a right")
    def test_without_perf(self):
        """Without perf events running threads are stopped. One that sleeps by then has no stack:
        what it waits for is not what it did on the CPU."""
        target = self.start("bursts", 100, 100, 1, settle=False)
        result = subprocess.run(["setpriv", "--bounding-set=-perfmon,-sys_admin", STACKSNAP,
                                 "record", "--on-cpu", "-r", "500", "--duration=2s", "-o",
                                 self.path, str(target.pid)], timeout=LIMIT_S,
                                stderr=subprocess.PIPE)
        self.assertIn("perf events are not available", result.stderr.decode())
        recording = Recording(self.path)
        self.assertEqual(recording.scope, 2)
        path = os.path.join(TARGETS, "bursts")
        shares = self.shares(recording, path, symbols(path))
        self.assertEqual({sample["state"] for sample in recording.samples}, {"R"})
        ends = [sample["end"] for sample in recording.samples]
        waits = [sample for sample in recording.samples
                 if sample["end"] == "root" and sample["call"] >= 0]
        self.assertLess(len(waits), len(ends) / 10, shares)
        self.assertIn("went to sleep", " ".join(sample["reason"] or ""
                                               for sample in recording.samples))
        text = self.run_tool("report", self.path, status=(0, 1)).stdout.decode()
        self.assertIn("no perf events", text.splitlines()[0])

    def test_threads_that_sleep(self):
        """They are not recorded, and not stopped: the profile is empty, which is no error."""
        target = self.start("threads")
        self.run_tool("record", "--on-cpu", "--duration=300ms", "-o", self.path, target.pid)
        recording = Recording(self.path)
        self.assertEqual(recording.samples, [])
        self.assertGreater(recording.ticks, 10)
        for form in "text", "json", "folded", "html", "speedscope", "pprof", "perf", "rows":
            done = self.run_tool("report", "-f", form, self.path)
            self.assertEqual(done.stderr.decode(),
                             "stacksnap: no recorded thread was on a CPU at any tick\n", form)
        done = self.run_tool("report", "--diff", self.path, self.path, status=(2,))
        self.assertIn("has no samples to compare", done.stderr.decode())
        os.unlink(self.path)
        done = self.run_tool("record", "--on-cpu", "-t", "nosuch", "--duration=300ms", "-o", self.path,
                             target.pid, status=(2,))
        self.assertIn("the selection matched no thread", done.stderr.decode())

    def test_new_threads(self):
        """Threads that live for less than a tick are sampled as well, with a stack."""
        self.run_tool("record", "--on-cpu", "-r", 999, "-o", self.path, "--",
                      os.path.join(TARGETS, "short_lived"), 20000, status=(7,))
        samples = Recording(self.path).samples
        self.assertGreater(len({sample["tid"] for sample in samples}), 10)
        self.assertIn("root", {sample["end"] for sample in samples})

    def test_selection(self):
        target = self.start("busy", 2, settle=False)
        tid = max(task_states(target.pid))
        self.run_tool("record", "--on-cpu", "-t", tid, "--duration=1s", "-o", self.path,
                      target.pid)
        self.assertEqual({sample["tid"] for sample in Recording(self.path).samples}, {tid})

    def test_deep_stack(self):
        """A stack larger than the kernel copies is cut, and says so."""
        target = self.start("busy", 1, 8000, settle=False)
        recording = self.record(target.pid, 99, 1, "--max-frames=0", with_perf=False)
        self.assertEqual({sample["end"] for sample in recording.samples}, {"limit"})

    def test_command(self):
        result = subprocess.run([STACKSNAP, "record", "--on-cpu", "-r", "999", "-o", self.path,
                                 "--", "sh", "-c", "i=0; while [ $i -lt 200000 ]; do "
                                 "i=$((i+1)); done"], timeout=LIMIT_S,
                                stderr=subprocess.PIPE)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertGreater(len(Recording(self.path).samples), 10)


if __name__ == "__main__":
    main()
