"""stacksnap record where perf events are allowed: running threads are sampled by the kernel instead
of being stopped, and the kernel reports which modules a process loads."""
# ctest: processors=2 long-with-sanitizers

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from harness import EndToEnd, LIMIT_S, STACKSNAP, TARGETS, main, may_load_programs, wait_until
from recording import Call, Recording, ZSTD, count_samples, read_growing
from test_on_cpu import may_sample_cpus
from test_record import names_in, symbols


# Argument: how long it works and sleeps, in seconds.
MOMENTS = """
import sys, time
span = float(sys.argv[1])
def work():
    end = time.perf_counter() + span
    while time.perf_counter() < end:
        pass
def moment(depth):
    return moment(depth - 1) if depth else work()
print("ready", flush=True)
while True:
    moment(10)
    time.sleep(span)
"""
MOMENTS_OF_JAVASCRIPT = """
const span = Number(process.argv[1]) * 1000;
const cell = new Int32Array(new SharedArrayBuffer(4));
console.log("ready");
for (;;) {
  const end = process.hrtime.bigint() + BigInt(Math.round(span * 1e6));
  while (process.hrtime.bigint() < end);
  Atomics.wait(cell, 0, 0, span);
}
"""
CHAIN = ["work"] + 11 * ["moment"] + ["<module>"]


def read_times(pid):
    """On a CPU, and runnable without one, in nanoseconds."""
    with open("/proc/%d/schedstat" % pid) as file:
        return [int(field) for field in file.read().split()[:2]]


@unittest.skipUnless(ZSTD, "libzstd cannot be loaded")
@unittest.skipUnless(may_sample_cpus(), "perf events are not allowed")
class ByKernel(EndToEnd):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.path = os.path.join(self.directory.name, "recording")

    def start_recording(self, pid, *arguments, tool=(STACKSNAP,)):
        process = subprocess.Popen([*tool, "record", "-o", self.path, *arguments, str(pid)],
                                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)

        def end():
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=LIMIT_S)
        self.addCleanup(end)
        return process

    def has_samples(self, count):
        return count_samples(self.path) > count

    def has_ticks(self, count):
        growing = read_growing(self.path)
        return growing and growing.ticks > count

    def count_ends(self, end):
        """The samples of running threads whose stacks have that end."""
        growing = read_growing(self.path)
        return sum(sample["end"] == end and sample["state"] == "R"
                   for sample in growing.samples) if growing else 0

    def finish(self, process):
        process.send_signal(signal.SIGINT)
        text = process.communicate(timeout=LIMIT_S)[1].decode()
        self.assertEqual(process.returncode, 0, text)
        return text, Recording(self.path)

    def test_threads_that_wait_for_a_cpu(self):
        """Four threads compute on one CPU: they are not stopped, and have stacks, where each was
        preempted."""
        target = self.start_command(["taskset", "-c", "0", os.path.join(TARGETS, "busy"), "4"])
        process = self.start_recording(target.pid, "-r", "200")
        wait_until(lambda: self.has_samples(5 * 200), "samples")
        text, recording = self.finish(process)
        self.assert_free(target.pid)
        self.assertIn("the kernel sampled running threads", text)
        running = [sample for sample in recording.samples if sample["state"] == "R"]
        ends = [sample["end"] for sample in running]
        counts = text, {end: ends.count(end) for end in set(ends)}
        self.assertGreater(len(running), len(recording.samples) // 2, counts)
        self.assertLess(recording.summary["thread_stops"], len(running) // 20, counts)
        # Until each has left the CPU once, it has none, which takes long on a busy machine.
        self.assertGreater(ends.count("root"), len(ends) // 4, counts)
        self.assertLessEqual(set(ends), {"root", "running", "runnable", "not-stopped", "unreadable"},
                             counts)
        path = os.path.join(TARGETS, "busy")
        table = symbols(path)
        for sample in running:
            if sample["end"] == "root":
                self.assertIn("target_thread_main", names_in(sample, path, table), sample)

    def test_many_threads_that_wait_for_a_cpu(self):
        """More than are sampled when they leave a CPU: those that wait for one are not stopped, which
        made each of them stand still until the recorder had a CPU, and ticks wait for all."""
        target = self.start_command(["taskset", "-c", "0", os.path.join(TARGETS, "lively"),
                                     "160", "500", "100000"])
        process = self.start_recording(target.pid, "-r", "50")
        wait_until(lambda: self.has_samples(161 * 5), "samples")
        text, recording = self.finish(process)
        self.assert_free(target.pid)
        self.assertIn("have no stack: a thread is stopped for at most", text)
        self.assertLess(recording.summary["thread_stops"], len(recording.samples) // 50, text)

    def test_moments_of_python(self):
        """A program that runs for 0.1 ms and sleeps for 0.1 ms, in turn: it has gone to sleep when it
        could be stopped for its functions. It is seen to run about as often as it does, and the
        functions are those of the tick, copied by the kernel; without the right for that, native
        frames and a reason."""
        tools = [([STACKSNAP], may_load_programs())]
        if os.geteuid() == 0:
            tools.append((["setpriv", "--bounding-set=-bpf,-sys_admin", STACKSNAP], False))
        for tool, has_functions in tools:
            with self.subTest(tool=tool[0]):
                target = self.start_command([sys.executable, "-c", MOMENTS, "100e-6"])
                recording, least, most = self.record_moments(target, tool)
                running = sum(sample["state"] == "R" for sample in recording.samples)
                seen = running / len(recording.samples)
                self.assertGreater(seen, least / 2, (least, most))
                if has_functions:  # otherwise by stops, of what runs when they come
                    self.assertLess(seen, 1.3 * most, (least, most))
                self.check_moments(recording, has_functions)
                target.kill()

    def test_threads_that_slept_at_the_tick(self):
        """A thread that runs when it is read, and slept at the tick, is not seen to run: otherwise bursts
        of 0.3 ms were seen a third too often."""
        if not may_load_programs():
            self.skipTest("bpf(2) is not allowed")
        programs = [[sys.executable, "-c", MOMENTS]]
        if shutil.which("node"):
            programs.append(["node", "-e", MOMENTS_OF_JAVASCRIPT])
        for program in programs:
            with self.subTest(program=program[0]):
                target = self.start_command([*program, "300e-6"])
                recording, least, most = self.record_moments(target, [STACKSNAP], 500)
                states = [sample["state"] for sample in recording.samples
                          if sample["tid"] == target.pid]
                seen = states.count("R") / len(states)
                note = seen, least, most, recording.summary
                self.assertGreater(seen, 0.7 * least, note)
                # Three and a half standard deviations of 500 samples
                self.assertLess(seen, most + 0.078, note)
                target.kill()

    def check_moments(self, recording, has_functions):
        whole = other = native = without_reason = 0
        for sample in recording.samples:
            if sample["state"] != "R" or sample["end"] != "root":
                continue
            calls = [frame[3].function for frame in sample["frames"] if isinstance(frame[3], Call)]
            native += not calls
            without_reason += not calls and not sample["reason"]
            whole += calls == CHAIN
            other += bool(calls) and calls != CHAIN
            if calls:
                self.assertEqual(calls, CHAIN[len(CHAIN) - len(calls):])
        counts = whole, other, native, without_reason
        if has_functions:
            self.assertGreater(whole, 10 * native, counts)
        else:
            self.assertGreater(native, 0, counts)
        self.assertEqual(without_reason, 0, counts)

    def test_functions_on_cpu(self):
        """record --on-cpu has the functions of Python."""
        if not may_load_programs():
            self.skipTest("bpf(2) is not allowed")
        target = self.start_command([sys.executable, "-c", MOMENTS, "100e-6"])
        process = self.start_recording(target.pid, "-r", "400", "--on-cpu")
        wait_until(lambda: self.has_samples(300), "samples")
        text, recording = self.finish(process)
        self.assertEqual(recording.summary["thread_stops"], 0, text)
        self.check_moments(recording, True)

    def record_moments(self, target, tool, count=400):
        """A recording of so many samples, and the shares of the time in which the program was on a CPU, and also in which it
        was or waited for one: while it waits it may be seen to sleep."""
        if os.path.exists(self.path):
            os.unlink(self.path)
        process = self.start_recording(target.pid, "-r", "99", tool=tool)
        wait_until(lambda: self.has_samples(10), "samples")
        before = time.monotonic_ns(), read_times(target.pid)
        wait_until(lambda: self.has_ticks(count), "samples")
        after = time.monotonic_ns(), read_times(target.pid)
        recording = self.finish(process)[1]
        times = [b - a for a, b in zip(before[1], after[1])]
        return recording, *(time / (after[0] - before[0]) for time in (times[0], sum(times)))

    def test_handler_on_another_stack(self):
        """The kernel copies the alternate stack only: a stop copies also the one that the handler
        was entered from."""
        target = self.start("busy_handler")
        process = self.start_recording(target.pid, "-r", "100")
        # A thread that waits for a CPU does not stop, so a busy machine has other ends, too.
        wait_until(lambda: self.count_ends("root") > 40, "whole stacks")
        text, recording = self.finish(process)
        self.assert_free(target.pid)
        self.assertIn("the kernel sampled running threads", text)
        running = [sample for sample in recording.samples if sample["state"] == "R"]
        ends = {sample["end"] for sample in running}
        self.assertLessEqual(ends, {"root", "running", "runnable", "not-stopped"}, text)
        path = os.path.join(TARGETS, "busy_handler")
        table = symbols(path)
        for sample in running:
            if sample["end"] == "root":
                self.assertIn("raise_signal", names_in(sample, path, table), sample)

    def test_open_files(self):
        """Each thread costs one descriptor, not one each time that it has run."""
        target = self.start("lively", 40, settle=False)
        process = self.start_recording(target.pid, "-r", "200")
        wait_until(lambda: self.has_samples(41 * 100), "samples")
        count = len(os.listdir("/proc/%d/fd" % process.pid))
        text, _ = self.finish(process)
        self.assertLess(count, 40 + 150, text)

    def test_few_descriptors(self):
        """No thread is missing where the tool may open few files."""
        target = self.start_command(["taskset", "-c", "0", os.path.join(TARGETS, "busy"), "30"])
        process = self.start_recording(target.pid, "-r", "50",
                                       tool=("prlimit", "--nofile=64:64", STACKSNAP))
        wait_until(lambda: self.has_samples(31 * 100), "samples")
        text, recording = self.finish(process)
        self.assert_free(target.pid)
        last = recording.samples[-1]["monotonic"]
        tids = {sample["tid"] for sample in recording.samples if sample["monotonic"] == last}
        self.assertEqual(len(tids), 31, (text, len({s["tid"] for s in recording.samples})))
        self.assertEqual(sum(thread.end != 0 for thread in recording.threads), 0, text)

    def test_few_descriptors_for_events(self):
        """Without room for the events, threads are stopped, and the summary says why."""
        target = self.start("busy", "2")
        process = self.start_recording(target.pid, "-r", "50",
                                       tool=("prlimit", "--nofile=26:26", STACKSNAP))
        wait_until(lambda: self.has_samples(2 * 50), "samples")
        text, recording = self.finish(process)
        self.assert_free(target.pid)
        self.assertIn("limit of open files", text)

    def test_modules_between_ticks(self):
        """Modules that are loaded and unloaded all the time: they have the kernel's times, also those
        that came and went between two ticks."""
        target = self.start("modules", "fast", settle=False)
        process = self.start_recording(target.pid, "-r", "10")
        wait_until(lambda: self.has_samples(10), "samples")
        text, recording = self.finish(process)
        self.assertIn("reported loads of modules", text)
        ticks = sorted({sample["monotonic"] for sample in recording.samples})
        plugins = [module for module in recording.modules
                   if os.path.basename(module.path) in ("module_b.so", "module_d.so")]
        note = text, ticks, [(module.path, module.begin, module.end) for module in plugins]
        dated = [module for module in plugins if module.begin not in ticks]
        self.assertGreater(len(dated), len(ticks) // 2, note)
        # More than one between two ticks.
        between = [sum(begin < module.begin < end for module in dated)
                   for begin, end in zip(ticks, ticks[1:])]
        self.assertGreater(max(between), 1, note)
        for module in plugins:
            if module.end:
                self.assertLessEqual(module.begin, module.end, note)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to drop a right")
    def test_without_the_right(self):
        """Modules are polled, and the summary says so."""
        target = self.start("modules", "fast", settle=False)
        process = self.start_recording(target.pid, "-r", "10",
                                       tool=("setpriv", "--bounding-set=-perfmon,-sys_admin",
                                             STACKSNAP))
        wait_until(lambda: self.has_samples(5), "samples")
        text, recording = self.finish(process)
        self.assertIn("perf events are not available", text)
        self.assertIn("modules polled", text)
        self.assertLess(len(recording.modules), 10 + 4 * recording.ticks, text)


if __name__ == "__main__":
    main()
