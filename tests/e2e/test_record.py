"""stacksnap record: what it samples, how it affects the target, how it ends, and what remains
if it is killed or the disk is full. recording.py, which reads the files, is written from the
manual page alone."""
# ctest: long-with-sanitizers

import functools
import itertools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from harness import (EndToEnd, LIMIT_S, STACKSNAP, TARGETS, main, read_text, status_field,
                     task_states, wait_until)
from recording import Recording, ZSTD, count_samples, read_growing


@functools.lru_cache(maxsize=None)
def build_id_of(path):
    """As readelf(1) shows it, or None."""
    notes = subprocess.run(["readelf", "-n", path], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, timeout=LIMIT_S, text=True).stdout
    found = re.search(r"Build ID: ([0-9a-f]+)", notes)
    return found and found.group(1)


@functools.lru_cache(maxsize=None)
def symbols(path):
    """(address, size, name) of the functions of a target."""
    output = subprocess.run(["readelf", "-W", "-s", path], stdout=subprocess.PIPE, check=True,
                            text=True).stdout
    found = re.findall(r"^ *\d+: (\w+) +(\d+) FUNC +\w+ +\w+ +\w+ (\S+)$", output, re.M)
    return [(int(address, 16), int(size), name) for address, size, name in found]


def names_in(sample, path, table):
    """The names of the frames that are in that file."""
    names = []
    for module, value, flags, _ in sample["frames"]:
        if module and module.path == path:
            place = value - (1 if flags & 2 else 0)
            names += [name for address, size, name in table
                      if address <= place < address + size][:1]
    return names


@unittest.skipUnless(ZSTD, "libzstd cannot be loaded")
class Record(EndToEnd):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.path = os.path.join(self.directory.name, "recording")

    def record(self, *arguments, status=(0,), seconds="0.3", **options):
        """Records for a while."""
        time = ["--duration=%dms" % (float(seconds) * 1000)] if seconds else []
        result = self.run_tool("record", *time, "-o", self.path, *arguments, status=status,
                               **options)
        return result.stderr.decode("utf-8", "replace")

    def start_recording(self, *arguments, tool=(STACKSNAP,), **options):
        """Starts a recording in the background; the cleanup ends it."""
        command = list(tool) + ["record", "-o", self.path] + [str(word) for word in arguments]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, **options)

        def end():
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=LIMIT_S)
        self.addCleanup(end)
        return process

    def finish(self, process, number=signal.SIGINT):
        process.send_signal(number)
        _, stderr = process.communicate(timeout=LIMIT_S)
        return stderr.decode("utf-8", "replace")

    def read(self):
        recording = Recording(self.path)
        for index, sample in enumerate(recording.samples):
            self.assertEqual(sample["sequence"], recording.samples[0]["sequence"] + index)
        return recording

    def has_samples(self, more_than=0):
        """Whether the file, which is still being written, has so many samples."""
        return count_samples(self.path) > more_than

    def assert_whole(self, recording, reason):
        self.assertIsNotNone(recording.summary)
        self.assertEqual(recording.summary["reason"], reason)
        self.assertEqual(recording.summary["ticks"], recording.ticks)
        self.assertEqual(recording.summary["samples"], len(recording.samples))
        self.assertEqual(recording.summary["missed"], recording.missed)
        self.assertEqual(recording.summary["stopped"], recording.stopped)

    def test_blocked_threads(self):
        """All are sampled at each tick, none is stopped, and their stacks are right."""
        target = self.start("threads")
        text = self.record(target.pid)
        self.assert_free(target.pid)
        recording = self.read()
        self.assert_whole(recording, 2)
        tids = set(task_states(target.pid))
        self.assertEqual({sample["tid"] for sample in recording.samples}, tids)
        self.assertEqual(len(recording.samples), len(tids) * recording.ticks)
        self.assertEqual(recording.summary["thread_stops"], 0)
        self.assertIn("no thread was stopped", text)
        path = os.path.join(TARGETS, "threads")
        table = symbols(path)
        for sample in recording.samples:
            self.assertEqual(sample["end"], "root")
            names = names_in(sample, path, table)
            if sample["tid"] == target.pid:
                self.assertEqual(names[:2], ["target_wait", "main"])
            else:
                self.assertEqual(names[-2:], ["thread_routine", "target_thread_main"])
        # Each was read once and repeated ever since.
        self.assertEqual(sum(not sample["repeated"] for sample in recording.samples),
                         len(tids))
        self.assertLess(os.path.getsize(self.path), 8 * len(recording.samples))

    def test_register_of_a_blocked_thread(self):
        """A thread whose stack needs a register that only a stop provides is stopped once."""
        target = self.start("realigned")
        process = self.start_recording("-r", 200, target.pid)
        wait_until(lambda: self.has_samples(100), "samples")
        self.finish(process)
        self.assert_free(target.pid)
        recording = self.read()
        ends = [sample["end"] for sample in recording.samples
                if sample["thread"].name == "aligned"]
        self.assertEqual(ends[0], "register")
        self.assertEqual(set(ends[-5:]), {"root"})
        # once more where it did not get its CPU back in time; not at each tick
        self.assertLess(recording.summary["thread_stops"], recording.ticks // 10)

    def test_running_threads(self):
        """Without perf events they are stopped."""
        target = self.start("busy", 2, settle=False)
        tool = [STACKSNAP]
        if os.geteuid() == 0:
            tool = ["setpriv", "--bounding-set=-perfmon,-sys_admin", STACKSNAP]
        process = self.start_recording("-r", 200, "--state=R", target.pid, tool=tool)

        def has_stack():
            growing = read_growing(self.path)
            return growing and any(sample["end"] == "root" for sample in growing.samples)
        wait_until(has_stack, "a thread that was stopped in time")
        text = self.finish(process)
        self.assertEqual(process.returncode, 0, text)
        self.assertIn("running threads were stopped, and modules polled", text)
        self.assert_free(target.pid)
        recording = self.read()
        self.assert_whole(recording, 1)
        self.assertEqual({sample["state"] for sample in recording.samples}, {"R"})
        self.assertEqual(recording.segments[0][3], 5000000)
        cpu = sum(sample["cpu_us"] for sample in recording.samples)
        self.assertGreater(cpu, 0)
        self.assertLessEqual(cpu, recording.summary["duration"] // 1000 * os.cpu_count())
        self.assertGreater(recording.summary["thread_stops"], 0, text)
        self.assertRegex(text, r"threads were stopped [\d,]+ times?, for .* ms in total")

    def test_no_thread_is_missed(self):
        """A token is passed around slowly. A thread that has passed it on has run since, and
        must be captured again. Without samples of the CPUs, and with them: then one that is on a
        CPU without getting on, because the host has taken that CPU away, is seen to sleep, and a
        run of which the kernel counts no time may be missed (thread_list.h)."""
        target = self.start("ring", 120)
        self.record_token(target, [STACKSNAP], lambda turns: 2 + turns // 20)
        if os.geteuid() == 0:
            os.unlink(self.path)
            self.record_token(target, ["setpriv", "--bounding-set=-perfmon,-sys_admin", STACKSNAP],
                              lambda turns: 0)

    def record_token(self, target, tool, allowed):
        process = self.start_recording("-r", 1000, target.pid, tool=tool)
        wait_until(lambda: self.has_samples(120 * 300), "samples")
        self.finish(process)
        turns, missed = self.follow_token(self.read())
        self.assertGreater(turns, 1)  # far fewer than idle, on a loaded machine
        self.assertLessEqual(len(missed), allowed(turns), (tool[0], turns, missed))

    def follow_token(self, recording):
        """How often another thread was seen asleep with the token, and which threads still had it
        then: tid, and at which tick they were captured with it."""
        path = os.path.join(TARGETS, "ring")
        table = symbols(path)
        seen = {}  # when each thread was captured, and had the token
        last = (-1, None)  # when which thread was seen to have it last, before this tick
        ticks = itertools.groupby(recording.samples, lambda sample: sample["tick"])
        turns, missed = 0, set()
        for tick, samples in ticks:
            newest = last
            for sample in samples:
                tid = sample["tid"]
                if sample["repeated"]:
                    if seen.get(tid, last[0]) < last[0] and last[1] != tid:
                        missed.add((tid, seen[tid]))
                    continue
                seen.pop(tid, None)
                # One that runs had it at the time of the tick, which may be long ago.
                if sample["state"] == "S" and "hold" in names_in(sample, path, table):
                    seen[tid] = tick
                    newest = (tick, tid)
            turns += newest != last
            last = newest
        return turns, missed

    def test_selection(self):
        target = self.start("threads")
        tids = sorted(task_states(target.pid))
        self.record("-t", tids[1], "-t", "poll-", "--max-frames=2", target.pid)
        recording = self.read()
        names = {sample["thread"].name for sample in recording.samples}
        self.assertTrue(names and all(name.startswith("poll-") or name ==
                                      recording.samples[0]["thread"].name for name in names))
        self.assertEqual({len(sample["frames"]) for sample in recording.samples}, {2})
        self.assertEqual({sample["end"] for sample in recording.samples}, {"frames"})
        os.unlink(self.path)
        self.record("--state=D", target.pid, status=(2,))
        self.assertEqual(self.read().samples, [])

    def test_deep_stack_is_truncated(self):
        target = self.start("deep")
        self.record("--max-stack=4", target.pid)
        self.assertIn("limit", {sample["end"] for sample in self.read().samples})

    def test_ends_by_signal(self):
        target = self.start("threads")
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start_recording(target.pid)
            wait_until(self.has_samples, "samples")
            text = self.finish(process, number)
            self.assertEqual(process.returncode, 0, text)
            self.assertIn("stopped, " + self.path, text)
            self.assert_whole(self.read(), 1)
            self.assert_free(target.pid)
            os.unlink(self.path)

    def test_ends_with_target(self):
        target = self.start("threads")
        process = self.start_recording(target.pid)
        wait_until(self.has_samples, "samples")
        self.assertEqual(target.finish()[0], 0)
        process.wait(LIMIT_S)
        recording = self.read()
        self.assert_whole(recording, 3)
        self.assertTrue(all(thread.end for thread in recording.threads))
        self.assertTrue(all(module.end for module in recording.modules))

    def test_killed(self):
        """The target continues, and the file can be read up to its last complete chunk."""
        target = self.start("busy", 2, settle=False)
        for _ in range(2):
            process = self.start_recording("-r", 1000, target.pid)
            wait_until(self.has_samples, "samples")
            process.kill()
            process.wait(LIMIT_S)
            self.assert_free(target.pid)
            recording = self.read()
            self.assertIsNone(recording.summary)
            self.assertTrue(recording.samples)
            result = self.run_tool("report", self.path, status=(0, 1))
            self.assertIn("no end", (result.stdout + result.stderr).decode())
            os.unlink(self.path)

    def test_full_disk(self):
        """RLIMIT_FSIZE: chunks that were written before remain (one a second, about 12,000
        bytes)."""
        target = self.start("busy", 2, settle=False)

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
        process = self.start_recording("-r", 1000, target.pid, preexec_fn=limit,
                                       restore_signals=False)
        _, stderr = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 1, stderr)
        self.assertIn("writing the recording", stderr.decode())
        self.assert_free(target.pid)
        recording = self.read()
        self.assertTrue(recording.samples)
        self.assertFalse(recording.cut, "it ends with a whole chunk")
        self.assertIsNone(recording.summary)

    @unittest.skipUnless(os.geteuid() == 0, "mounting needs root")
    def test_full_tmpfs(self):
        target = self.start("busy", 2, settle=False)
        script = 'mount -t tmpfs -o size=20k none "$1" && "$2" record -r 1000 -o "$1/r" "$3"; ' \
                 'status=$?; cp "$1/r" "$4"; exit $status'
        result = subprocess.run(
            ["unshare", "-m", "sh", "-c", script, "sh", self.directory.name, STACKSNAP,
             str(target.pid), "/proc/self/fd/1"], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=LIMIT_S)
        if b"mount" in result.stderr or b"unshare" in result.stderr:
            self.skipTest("tmpfs cannot be mounted: %r" % result.stderr)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(b"No space left on device", result.stderr)
        with open(self.path, "wb") as file:
            file.write(result.stdout)
        recording = self.read()
        self.assertTrue(recording.samples)
        self.assertFalse(recording.cut)

    def test_last(self):
        """Old segments are dropped, sequence numbers continue, and the file is a complete recording
        at any time."""
        target = self.start("threads")
        process = self.start_recording("--last=400ms", "-r", 500, target.pid)
        wait_until(lambda: self.has_samples() and self.read().samples[0]["sequence"] > 0,
                   "something to be dropped")
        self.finish(process)
        recording = self.read()
        self.assertEqual(recording.summary["reason"], 1)
        self.assertGreater(recording.samples[0]["sequence"], 0)
        self.assertLess(len(recording.samples), recording.summary["samples"])
        span = recording.samples[-1]["monotonic"] - recording.samples[0]["monotonic"]
        self.assertGreaterEqual(span, 300000000)
        self.assertEqual(os.listdir(self.directory.name), ["recording"])

    def test_last_that_cannot_be_dropped(self):
        """The directory was removed: this is reported once, and the recording continues."""
        directory = os.path.join(self.directory.name, "gone")
        os.mkdir(directory)
        self.path, path = os.path.join(directory, "recording"), self.path
        target = self.start("threads")
        process = self.start_recording("--last=1s", "-r", 500, target.pid)
        wait_until(self.has_samples, "samples")
        os.rename(self.path, path)
        os.rmdir(directory)
        self.path = path
        threads = len(task_states(target.pid))
        wait_until(lambda: self.has_samples(1000 * threads), "more than is to be kept")
        text = self.finish(process)
        self.assertEqual(text.count("samples older than --last cannot be dropped"), 1, text)
        self.assertIn("No such file or directory", text)
        self.assert_whole(self.read(), 1)

    def test_command(self):
        """Sampled from its first instruction, before its C library is loaded."""
        text = self.record("-r", 1000, "--", "sh", "-c", "exit 3", seconds=None,
                           status=(3,))
        self.assertIn("the process has ended", text)
        recording = self.read()
        self.assert_whole(recording, 3)
        self.assertEqual(recording.processes[0].executable,
                         os.path.realpath("/bin/sh"))
        outer = [sample["frames"][-1] for sample in recording.samples[:1]]
        self.assertTrue(outer[0][0].path.startswith("/"), outer)

    def test_status_of_command(self):
        """As of a shell: that of the command, if it has failed; else that of the recording."""
        for script, status in (("exit 0", 0), ("exit 1", 1), ("exit 77", 77),
                               ("kill -9 $$", 137), ("kill -TERM $$", 143)):
            with self.subTest(script=script):
                self.record("--", "sh", "-c", script, seconds=None, status=(status,))
                os.unlink(self.path)

    def test_no_such_command(self):
        text = self.record("--", "/nonexistent/program", status=(127,), seconds=None)
        self.assertIn("/nonexistent/program", text)
        self.assertFalse(os.path.exists(self.path))

    def test_command_continues(self):
        text = self.record("--", "sh", "-c", "exec sleep 1000 >/dev/null 2>&1")
        pid = int(re.search(r"process (\d+) is still running", text).group(1))
        try:
            self.assert_free(pid)
        finally:
            os.kill(pid, signal.SIGKILL)

    def test_children_with_few_descriptors(self):
        """Further ones are left out; those that are recorded are so until the end."""
        target = self.start_command(["/bin/sh", "-c", "i=0; while [ $i -lt 16 ]; do sleep 60 & "
                                     "i=$((i+1)); done; echo ready; read line; kill $(jobs -p)"])
        text = self.record("--children", "-r", 50, target.pid, preexec_fn=lambda:
                           resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)))
        recording = self.read()
        pids = {process.pid for process in recording.processes}
        self.assertTrue(1 < len(pids) < 17, (text, pids))
        self.assertIn("some children were not recorded", text)
        last = {sample["pid"] for sample in recording.samples
                if sample["tick"] == recording.samples[-1]["tick"]}
        self.assertEqual(last, pids, text)

    def test_child_of_vfork(self):
        """It shares the memory of its parent until it calls execve(2)."""
        script = ("import subprocess, sys\n"
                  "child = subprocess.Popen(sys.argv[1:], stdin=0, stdout=1)\n"
                  "sys.exit(child.wait())\n")
        for _ in range(2):
            target = self.start_command(["/usr/bin/python3", "-c", "import sys\n"
                                         "print('ready', flush=True)\n"
                                         "sys.stdin.readline()\n" + script,
                                         os.path.join(TARGETS, "threads"), "1", "1"])
            process = self.start_recording("--children", "-r", 1000, target.pid)
            wait_until(self.has_samples, "the recording")
            target.process.stdin.write(b"\n")
            wait_until(lambda: any(each.name == "threads" for each in self.read().processes) and
                       any(sample["thread"].name == "poll-0" and len(sample["frames"]) > 2
                           for sample in self.read().samples), "the stack of the child")
            process.send_signal(signal.SIGINT)
            process.wait(LIMIT_S)
            recording = self.read()
            table = symbols(os.path.join(TARGETS, "threads"))
            stacks = [names_in(sample, os.path.join(os.path.realpath(TARGETS), "threads"), table)
                      for sample in recording.samples if sample["thread"].name == "poll-0"]
            self.assertIn("wait_in_poll", stacks[-1])
            target.finish()
            os.unlink(self.path)

    def test_new_stacks(self):
        """The memory map is read once a second: a stack that was mapped since is captured again."""
        target = self.start("new_stacks", settle=False)
        table = symbols(os.path.join(TARGETS, "new_stacks"))
        path = os.path.join(os.path.realpath(TARGETS), "new_stacks")
        process = self.start_recording("-r", 200, target.pid)
        wait_until(self.has_samples, "the recording")
        ends = []

        def is_known(seen):
            samples = [sample for sample in read_growing(self.path).samples
                       if sample["thread"].name == "new_stacks"]
            ends[:] = [(sample["state"], len(sample["frames"])) for sample in samples]
            return len(samples) > seen and "read_there" in names_in(samples[-1], path, table)

        for _ in range(3):
            seen = len([sample for sample in self.read().samples
                        if sample["thread"].name == "new_stacks"])
            target.process.stdin.write(b"\n")
            # The file has the samples until a second ago.
            try:
                wait_until(functools.partial(is_known, seen + 250), "the new stack", 20)
            except AssertionError:
                self.fail("the stack is not known: %s" %
                          [(end, len(list(same))) for end, same in itertools.groupby(ends)])
        process.send_signal(signal.SIGINT)
        process.wait(LIMIT_S)
        target.finish()

    def test_children_that_are_waited_for(self):
        """The end of a child that is attached must be reported to its parent at once, not when the
        recorder ends, which waits for the parent."""
        script = ("import subprocess\n"
                  "for i in range(24):\n"
                  "    child = subprocess.Popen(['/bin/sh', '-c', 'i=0; while [ $i -lt 20000 ];"
                  " do i=$((i+1)); done'])\n"
                  "    if i % 2:\n"
                  "        child.wait()\n")
        for _ in range(3):
            text = self.record("-r", 999, "--children", "--", sys.executable, "-c", script,
                               seconds=None)
            self.assertIn("the process has ended", text)
            os.unlink(self.path)

    def test_exec(self):
        """Each program is a process of its own, with its own modules."""
        target = self.start("exec_loop", settle=False)
        process = self.start_recording("-r", 1000, target.pid)
        wait_until(lambda: self.has_samples() and len(self.read().processes) > 2,
                   "a few programs")
        self.finish(process)
        recording = self.read()
        for sample in recording.samples:
            for module, _, _, _ in sample["frames"]:
                self.assertTrue(module is None or module.key[0] == sample["thread"].process.key)
        begins = {process.key: process.begin for process in recording.processes}
        for module in recording.modules:
            self.assertGreaterEqual(module.begin, begins[module.key[0]], (module.path, begins))

    def test_threads_without_pause(self):
        """Threads are still created, and sampled."""
        target = self.start("churn", 2)
        process = self.start_recording("-r", 1000, target.pid)
        wait_until(lambda: self.has_samples(200), "samples")
        text = self.finish(process)
        self.assertEqual(process.returncode, 0, text)
        self.assert_free(target.pid)
        recording = self.read()
        self.assert_whole(recording, 1)
        seen = len({sample["tid"] for sample in recording.samples})
        self.assertGreater(seen, 3)
        status, output = target.finish()
        self.assertEqual(status, 0)
        # Not starved: many more were made than there were ticks.
        made = int(output.split()[-1])
        self.assertGreater(made, recording.ticks)

    def test_timer_of_a_kilohertz(self):
        """No signal is lost, and they arrive during the recording."""
        target = self.start("timer", settle=False)
        process = self.start_recording("-r", 500, target.pid)
        wait_until(lambda: self.has_samples(500), "samples")
        text = self.finish(process)
        self.assertEqual(process.returncode, 0, text)
        self.assert_free(target.pid)
        recording = self.read()
        span = recording.samples[-1]["monotonic"] - recording.samples[0]["monotonic"]
        status, output = target.finish()
        self.assertEqual(status, 0)
        handled, expired = [int(word) for word in output.split()[1:]]
        self.assertGreaterEqual(expired, span // 1000000)
        self.assertGreater(handled, expired // 10)

    def test_modules_change_places(self):
        """An address is in B, then in D, which has taken the place of B; then B is elsewhere."""
        self.take_places([STACKSNAP])

    @unittest.skipIf(os.uname().machine != "x86_64", "system calls by their numbers")
    def test_modules_change_places_on_an_old_kernel(self):
        """Without PROCMAP_QUERY: ioctl(2) is refused."""
        self.take_places([os.path.join(TARGETS, "deny_syscalls"), "16", STACKSNAP])

    def test_modules_at_full_speed(self):
        """Modules are loaded and unloaded between ticks and during them: each frame is in the module
        that was mapped."""
        target = self.start("modules", "fast", settle=False)
        process = self.start_recording("-r", 1000, target.pid)
        wait_until(lambda: self.has_samples(800), "samples")
        self.finish(process)
        executable = os.path.join(TARGETS, "modules")
        turns = {"b": 0, "d": 0}
        for sample in self.read().samples:
            callers = names_in(sample, executable, symbols(executable))
            for name in turns:
                path = os.path.join(TARGETS, "module_%s.so" % name)
                if names_in(sample, path, symbols(path)):
                    self.assertIn("run_" + name, callers, sample)
                    turns[name] += 1
        self.assertTrue(all(turns.values()), turns)

    def test_modules_at_full_speed_on_cpu(self):
        """A sample of a CPU is compared with a later memory map: what was mapped in between is seen by
        the kernel's reports. (One whose report is late is not.)"""
        target = self.start("modules", "fast", settle=False)
        process = self.start_recording("--on-cpu", "-r", 1000, target.pid)
        wait_until(lambda: self.has_samples(800), "samples")
        text = self.finish(process)
        if "no thread was stopped" not in text:
            self.skipTest("perf events are not allowed: " + text)
        executable = os.path.join(TARGETS, "modules")
        right, wrong = 0, []
        for sample in self.read().samples:
            callers = names_in(sample, executable, symbols(executable))
            for name in "bd":
                path = os.path.join(TARGETS, "module_%s.so" % name)
                if not names_in(sample, path, symbols(path)):
                    continue
                if "run_" + name in callers:
                    right += 1
                elif callers:
                    wrong.append(sample)
        self.assertGreater(right, 0)
        self.assertLess(len(wrong), 3 + right / 20, (right, wrong[:3]))

    def take_places(self, tool):
        target = self.start("modules")
        process = self.start_recording("-r", 200, target.pid, tool=tool)
        addresses, counts = [], []
        for step in (1, 2, 3):
            addresses.append(int(re.search(r"step %d (\w+)" % step,
                                           "\n".join(target.lines)).group(1), 16))
            count = [0]

            def seen():
                now = count_samples(self.path)
                count[0] = count[0] or now
                return now > count[0] + 20
            wait_until(seen, "samples of step %d" % step)
            if step < 3:
                target.process.stdin.write(b"\n")
                target._read_until(b"ready\n")
        self.finish(process)
        recording = self.read()
        paths = {name: os.path.join(TARGETS, "module_%s.so" % name) for name in "bd"}
        steps = {}
        for sample in recording.samples:
            for module, value, flags, _ in sample["frames"]:
                name = module and {path: key for key, path in paths.items()}.get(module.path)
                if not name:
                    continue
                self.assertLessEqual(module.begin, sample["monotonic"])
                if module.end:
                    self.assertLessEqual(sample["monotonic"], module.end)
                address = value + module.bias
                place = value - (1 if flags & 2 else 0)
                symbol = {n for a, size, n in symbols(paths[name]) if a <= place < a + size}
                self.assertEqual(symbol, {"plugin_" + name})
                steps.setdefault((name, module.base), []).append(address)
        self.assertEqual(sorted(name for name, _ in steps), ["b", "b", "d"])
        if addresses[0] != addresses[1]:
            self.skipTest("the loader put D elsewhere: %x %x" % tuple(addresses[:2]))
        bases = {name: [base for other, base in steps if other == name] for name in "bd"}
        self.assertIn(bases["d"][0], bases["b"])
        self.assertEqual(len(set(bases["b"])), 2)
        self.check_report_of_places(paths)

    def check_report_of_places(self, paths):
        """The report names all three in order, and when each was loaded."""
        data = json.loads(self.run_tool("report", "-f", "json", self.path,
                                        status=(0, 1)).stdout)
        seen = []
        for sample in sorted(data["samples"], key=lambda sample: sample["tick"]):
            call = sample["call"]
            while call is not None:
                call, frame = data["calls"][call]
                name = data["frames"][frame]["name"]
                if name.startswith("plugin_") and seen[-1:] != [name]:
                    seen.append(name)
        self.assertEqual(seen, ["plugin_b", "plugin_d", "plugin_b"])
        lives = [(os.path.basename(path), life["loaded_ns"], life["unloaded_ns"])
                 for life in data["lifetimes"]
                 for path in [data["modules"][life["module"]]["path"]] if path in paths.values()]
        names, loaded, unloaded = zip(*lives)
        self.assertEqual(names, ("module_b.so", "module_d.so", "module_b.so"))
        self.assertLess(loaded[0], unloaded[0])
        self.assertLessEqual(unloaded[0], loaded[1])
        self.assertLess(loaded[1], loaded[2])

    def test_modules_follow(self):
        target = self.start("modules")
        process = subprocess.Popen([STACKSNAP, "modules", "--follow", str(target.pid)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: process.poll() is None and process.kill())

        def line_of(sign, name):
            for line in process.stdout:
                if line.split()[1] == sign and line.strip().endswith(name):
                    return line
            raise AssertionError("no %s %s: %s" % (sign, name, process.stderr.read()))
        loaded = line_of("+", "module_b.so")
        target.process.stdin.write(b"\n")
        target._read_until(b"ready\n")
        unloaded = line_of("-", "module_b.so")
        self.assertEqual(loaded.split()[2:], unloaded.split()[2:])
        line_of("+", "module_d.so")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0)
        self.assert_free(target.pid)
        listed = self.run_tool("modules", target.pid).stdout.decode()
        self.assertIn("libc", listed)
        self.assertIn("module_d.so", listed)

    def list_modules(self, pid, *before):
        """Returns path and build-id of each module. before: words before the command."""
        output = subprocess.run([*before, STACKSNAP, "modules", str(pid)], timeout=LIMIT_S,
                                stdout=subprocess.PIPE, check=True, text=True).stdout
        self.assert_free(pid)
        rows = [line.split(None, 3) for line in output.splitlines()]
        return {path: build_id for _, _, build_id, path in rows}

    def check_build_ids(self, found):
        files = [path for path in found if path.startswith("/")]
        self.assertGreaterEqual(len(files), 3, found)  # program, loader, libc
        for path in files:
            self.assertEqual(found[path], build_id_of(path) or "-", path)

    @unittest.skipIf(os.uname().machine != "x86_64", "system calls by their numbers")
    def test_build_ids_on_an_old_kernel(self):
        """Without PROCMAP_QUERY: ioctl(2) is refused."""
        target = self.start("modules")
        refuse_ioctl = (os.path.join(TARGETS, "deny_syscalls"), "16")
        found = self.list_modules(target.pid, *refuse_ioctl)
        self.check_build_ids(found)
        self.assertEqual(found, self.list_modules(target.pid))

    @unittest.skipIf(os.environ.get("SANITIZED"), "the leak checker needs a clone(2) of its own")
    @unittest.skipIf(os.uname().machine != "x86_64", "system calls by their numbers")
    def test_build_ids_without_a_child(self):
        """Without ioctl(2) and fork(2): the modules are listed, without build-ids of files."""
        target = self.start("modules")
        refuse = (os.path.join(TARGETS, "deny_syscalls"), "16,56,57,435")
        found = self.list_modules(target.pid, *refuse)
        self.assertEqual(found.keys(), self.list_modules(target.pid).keys())
        self.assertEqual({build_id for path, build_id in found.items() if path.startswith("/")},
                         {"-"})

    def test_long_build_id(self):
        """PROCMAP_QUERY reports build-ids of up to 20 bytes only."""
        directory = tempfile.mkdtemp(prefix="stacksnap-build-id-")
        self.addCleanup(shutil.rmtree, directory)
        path = os.path.join(directory, "program")
        with open(path + ".c", "w", encoding="utf-8") as file:
            file.write("#include <unistd.h>\n"
                       "int main(void) { char c; write(1, \"ready\\n\", 6);"
                       " return read(0, &c, 1) < 0; }\n")
        build_id = bytes(range(1, 33)).hex()
        command = [os.environ.get("CC", "cc"), "-Wl,--build-id=0x" + build_id, "-o", path,
                   path + ".c"]
        if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          timeout=LIMIT_S).returncode or build_id_of(path) != build_id:
            self.skipTest("the linker makes no build-id of 32 bytes")
        found = self.list_modules(self.start_command([path]).pid)
        self.assertEqual(found[path], build_id)
        self.check_build_ids(found)

    @unittest.skipIf(os.uname().machine != "x86_64", "system calls by their numbers")
    def test_refused_sandbox(self):
        """capset(2) is refused: --verbose says that the sandbox lacks a part."""
        target = self.start("modules")
        text = "the kernel refused part of the sandbox"
        for refused, expected in (("126", True), ("16", False)):
            path = self.path + refused
            result = subprocess.run(
                [os.path.join(TARGETS, "deny_syscalls"), refused, STACKSNAP, "record", "-v",
                 "-d", "300ms", "-o", path, str(target.pid)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S, text=True)
            self.addCleanup(os.remove, path)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(text in result.stderr, expected, result.stderr)

    def test_refused(self):
        self.run_tool("record", "-o", self.path, 2 ** 22 + 1, status=(2,))
        self.assertFalse(os.path.exists(self.path))
        for words in (["--rate=0", 1], ["--duration=x", 1], ["--last=0", 1], [], [1, 2],
                      [1, "--", "true"]):
            self.run_tool("record", "-o", self.path, *words, status=(64,))


if __name__ == "__main__":
    main()
