"""The child process of stacksnap record that unwinds: it has no privileges, only it reads the
files of modules, and the recording continues when it is killed, hangs or crashes."""
# ctest: long

import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

from harness import (EndToEnd, LIMIT_S, STACKSNAP, main, read_text, status_field, wait_until)
from recording import Recording, ZSTD, count_samples

TIMEOUT_S = 5  # of a request, in the recorder


def can_trace():
    try:
        return subprocess.run(["strace", "-o", "/dev/null", "true"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=LIMIT_S).returncode == 0
    except FileNotFoundError:
        return False


def children(pid):
    """All of them but the stop guard."""
    found = [int(child) for task in os.listdir("/proc/%d/task" % pid)
             for child in read_text("/proc/%d/task/%s/children" % (pid, task)).split()]
    return [child for child in found
            if read_text("/proc/%d/comm" % child).strip() != "ss-stop-guard"]


def the_child(pid):
    """There is another one while it opens the files of modules."""
    found = []

    def is_alone():
        found[:] = children(pid)
        return len(found) == 1
    wait_until(is_alone, "a single child")
    return found[0]


def waits_for_answer(pid):
    """Whether a thread stays in recvfrom(2). (At each tick the kernel answers, too.)"""
    for _ in range(5):
        if not any(read_text("/proc/%d/task/%s/syscall" % (pid, task)).startswith("45 ")
                   for task in os.listdir("/proc/%d/task" % pid)):
            return False
        time.sleep(0.01)
    return True


SANITIZED = bool(os.environ.get("SANITIZED"))


@unittest.skipUnless(ZSTD, "libzstd cannot be loaded")
class Unwinder(EndToEnd):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, "recording")
        self.log = os.path.join(directory.name, "strace")

    def start_recording(self, pid, *options, tool=()):
        command = [*tool, STACKSNAP, "record", "-o", self.path, *options, str(pid)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL)

        def end():
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=LIMIT_S)
        self.addCleanup(end)
        wait_until(lambda: self.count() > 0, "samples")
        return process

    def count(self):
        return count_samples(self.path)

    def wait_for_more(self, limit_s=LIMIT_S):
        before = self.count()
        wait_until(lambda: self.count() > before + 10, "more samples", limit_s)

    def finish(self, process, status):
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=LIMIT_S)
        stderr = stderr.decode("utf-8", "replace")
        self.assertEqual(process.returncode, status, stderr)
        return stderr

    def report(self):
        result = self.run_tool("report", "-f", "json", self.path, status=(0, 1))
        return json.loads(result.stdout)

    def assert_loss_is_said(self, stderr, pattern):
        self.assertRegex(stderr, pattern)
        self.assertRegex(stderr, r"[1-9]\d* ticks? lost")
        data = Recording(self.path)
        self.assertGreater(data.summary["lost"], 0)
        self.assertRegex(data.summary["loss"], pattern)
        self.assertTrue(any(re.search(pattern, note) for note in self.report()["notes"]))

    def start_busy(self):
        """Starts a target whose threads run, so that every tick needs the unwinder."""
        return self.start("busy", 2, settle=False)

    def test_rights(self):
        target = self.start_busy()
        process = self.start_recording(target.pid)
        child = the_child(process.pid)
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            if name == "CapBnd" and os.geteuid() != 0:
                continue  # to lower it takes a capability
            self.assertEqual(int(status_field(child, name), 16), 0, name)
        self.assertEqual(status_field(child, "NoNewPrivs"), "1")
        self.assertEqual(status_field(child, "Seccomp"), "2")
        if os.geteuid() == 0:
            for fd in os.listdir("/proc/%d/fd" % child):
                where = os.readlink("/proc/%d/fd/%s" % (child, fd))
                self.assertNotIn(self.path, where)
                self.assertNotIn("/proc", where)
        stderr = self.finish(process, 0)
        self.assertNotIn("lost", stderr)
        self.assertFalse(os.path.exists("/proc/%d" % child))
        self.assert_free(target.pid)

    def test_child_ends_with_its_recorder(self):
        target = self.start_busy()
        process = self.start_recording(target.pid)
        child = the_child(process.pid)
        process.kill()
        process.wait(LIMIT_S)
        wait_until(lambda: not os.path.exists("/proc/%d" % child) or
                   status_field(child, "State").startswith("Z"), "the child to end")
        self.assert_free(target.pid)

    def test_killed(self):
        target = self.start_busy()
        process = self.start_recording(target.pid)
        for _ in range(2):
            child = the_child(process.pid)
            os.kill(child, signal.SIGKILL)
            wait_until(lambda: children(process.pid) not in ([child], []), "another child")
            self.wait_for_more()
        stderr = self.finish(process, 1)
        self.assert_loss_is_said(stderr, r"the child process was killed from outside \(SIGKILL\)")
        self.assertNotIn("skipped", stderr)
        self.assertLessEqual({sample["end"] for sample in Recording(self.path).samples
                              if not sample["reason"]},
                             {"root", "not-stopped", "runnable"})
        self.assert_free(target.pid)

    def test_stopped(self):
        """A child that never answers: it is killed, and the target does not wait for it."""
        target = self.start_busy()
        process = self.start_recording(target.pid)
        child = the_child(process.pid)
        os.kill(child, signal.SIGSTOP)
        wait_until(lambda: waits_for_answer(process.pid), "the recorder to wait")
        begin = time.monotonic()
        while time.monotonic() < begin + TIMEOUT_S / 2:
            self.assert_free(target.pid)
        wait_until(lambda: children(process.pid) not in ([child], []), "another child",
                   LIMIT_S + TIMEOUT_S)
        self.wait_for_more()
        self.assert_loss_is_said(self.finish(process, 1), "the child process timed out")

    def reads(self, pid, path):
        """How often the child reads a file for the first stacks."""
        process = self.start_recording(pid, tool=["strace", "-f", "-o", self.log, "-P", path,
                                                  "-e", "trace=pread64"])
        self.wait_for_more()
        recorder = the_child(process.pid)
        os.kill(recorder, signal.SIGINT)
        process.communicate(timeout=LIMIT_S)
        os.unlink(self.path)
        with open(self.log, encoding="latin-1") as file:
            return sum("pread64(" in line and int(line.split()[0]) != recorder
                       for line in file)

    @unittest.skipIf(SANITIZED, "a crash is a finding of the sanitizer")
    @unittest.skipUnless(can_trace(), "strace cannot trace here")
    def test_module_that_crashes_it(self):
        """Reading the file of the program is fatal: the file is skipped, all others are
        read."""
        target = self.start("threads")
        path = os.readlink("/proc/%d/exe" % target.pid)
        reads = self.reads(target.pid, path)
        fault = "inject=pread64:signal=SIGSEGV:when=%d" % reads
        process = self.start_recording(target.pid, tool=["strace", "-f", "-o", "/dev/null",
                                                         "-P", path, "-e", fault])
        self.wait_for_more()
        recorder = the_child(process.pid)
        os.kill(recorder, signal.SIGINT)
        _, stderr = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 1, stderr)
        self.assert_loss_is_said(stderr.decode(), r"the child process crashed \(SIGSEGV\) "
                                 r"during unwinding of threads, whose unwind information is skipped from then on")
        frames = {(module.path, module.bias) for sample in Recording(self.path).samples
                  for module, _, _, _ in sample["frames"] if module}
        self.assertEqual(len(frames), 2)  # of the program and of libc
        self.assert_free(target.pid)

    @unittest.skipIf(SANITIZED, "a crash is a finding of the sanitizer")
    @unittest.skipUnless(can_trace(), "strace cannot trace here")
    def test_every_child_crashes(self):
        """Then no more children are started, and each thread has its innermost frame only."""
        target = self.start("threads")
        process = self.start_recording(
            target.pid, "-r", "200", tool=["strace", "-f", "-o", "/dev/null", "-e",
                                           "inject=recvmsg:signal=SIGSEGV"])
        self.wait_for_more()
        recorder = the_child(process.pid)
        self.assertEqual(children(recorder), [])
        os.kill(recorder, signal.SIGINT)
        _, stderr = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 1, stderr)
        self.assert_loss_is_said(stderr.decode(), "only the innermost frame of each thread")
        for sample in Recording(self.path).samples:
            self.assertEqual(sample["end"], "frames")
            self.assertEqual(len(sample["frames"]), 1)
            self.assertTrue(sample["frames"][0][0].path.startswith("/"))

    @unittest.skipUnless(can_trace(), "strace cannot trace here")
    def test_the_recorder_reads_no_module(self):
        """Neither by read(2) nor by mmap(2); the child does. (The recorder receives them
        opened, from another child.)"""
        target = self.start("threads")
        maps = read_text("/proc/%d/maps" % target.pid)
        paths = set(re.findall(r" r-xp .* (/.+)$", maps, re.M))
        process = self.start_recording(
            target.pid, tool=["strace", "-f", "-y", "-o", self.log, "-e",
                              "trace=read,pread64,readv,preadv,mmap,socketpair,recvmsg"])
        self.wait_for_more()
        recorder = the_child(process.pid)
        os.kill(recorder, signal.SIGINT)
        process.communicate(timeout=LIMIT_S)
        with open(self.log, encoding="latin-1") as file:
            lines = file.read().splitlines()
        begin = next(i for i, line in enumerate(lines) if "socketpair(" in line)
        confined = {line.split()[0] for line in lines if "recvmsg(0<" in line}
        self.assertEqual(len(confined), 1)
        reading = {"child": set(), "recorder": set()}
        for line in lines[begin:]:
            if "recvmsg" in line:
                continue
            who = "child" if line.split()[0] in confined else "recorder"
            reading[who] |= {path for path in paths if "<%s>" % path in line}
        self.assertEqual(reading["recorder"], set())
        self.assertEqual(reading["child"], paths)


if __name__ == "__main__":
    main()
