"""The child that interprets captures and recordings crashes, hangs, or is stopped. The
output is as complete as possible, and reports what is missing. The faults are real: strace
sends a signal to the child when it enters a system call that the parent does not make.
"""
# ctest: long-without-sanitizers

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import (EndToEnd, LIMIT_S, STACKSNAP, TARGETS, for_everyone, main, read_text,
                     wait_until)

# AddressSanitizer handles SIGSEGV itself, and its leak check does not work under strace.
SIGNAL = "SIGILL" if os.environ.get("SANITIZED") else "SIGSEGV"
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
FORMATS = ("text", "gdb", "eu", "folded", "json")


def children(pid):
    """The child processes of all threads of a process; none if it has ended."""
    try:
        tids = os.listdir("/proc/%d/task" % pid)
    except FileNotFoundError:
        return []
    return [int(child) for tid in tids
            for child in read_text("/proc/%d/task/%s/children" % (pid, tid)).split()]


def start_of_nobody(test):
    return test.start_command(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                               for_everyone(os.path.join(TARGETS, "threads")), "3", "2"])


def can_inject():
    command = ["strace", "-f", "-o", "/dev/null", "-e", "trace=none", "true"]
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              timeout=LIMIT_S).returncode == 0
    except FileNotFoundError:
        return False


@unittest.skipUnless(can_inject(), "strace cannot attach")
@unittest.skipUnless(os.geteuid() == 0, "without privileges the parent uses openat2, too")
class Failures(EndToEnd):
    def run_injected(self, fault, *words, status=1):
        command = ["strace", "-f", "-o", "/dev/null", "-e", "inject=" + fault, STACKSNAP]
        result = subprocess.run(command + [str(word) for word in words], timeout=LIMIT_S * 2,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=ENVIRONMENT)
        self.assertEqual(result.returncode, status, result.stderr.decode())
        return result.stdout.decode(), result.stderr.decode()

    def start_threads(self):
        return self.start("threads", 3, 2)

    def assert_reported(self, text, stderr, pattern):
        # without a module's unwind information, lines about guessed frames follow
        self.assertRegex(stderr, "(?m)" + pattern)
        self.assertRegex(stderr, "^stacksnap: ")
        document = json.loads(text)
        self.assertRegex(document["problem"], pattern)
        return document

    def assert_stacks_whole(self, document, whole, named):
        """All frames are present; those of modules that were not skipped have names."""
        self.assertEqual(len(document["threads"]), len(whole.threads))
        for thread in document["threads"]:
            self.assertIn(thread["end"], ("root", "guessed"))  # without tables of libc
            then = [frame for frame in whole.thread(thread["tid"])["frames"]
                    if not frame["inlined"]]
            now = [frame for frame in thread["frames"] if not frame["inlined"]]
            self.assertEqual([frame["offset"] for frame in now],
                             [frame["offset"] for frame in then])
            for frame, other in zip(now, then):
                path = document["modules"][frame["module"]]["path"]
                self.assertEqual(frame["symbol"], other["symbol"] if named(path) else None)

    def test_one_module(self):
        """The debug file of libc is opened with openat2(). That of the program is not: the
        program has symbols of its own."""
        target = self.start_threads()
        whole = self.snap(target.pid)
        self.assertIsNone(whole.data["problem"])
        text, stderr = self.run_injected("openat2:signal=%s" % SIGNAL, "-f", "json", target.pid)
        document = self.assert_reported(
            text, stderr, r"the analysis of libc.so.6 crashed \(%s\) during symbolization, "
            r"module skipped$" % SIGNAL)
        self.assert_stacks_whole(document, whole, lambda path: "libc.so" not in path)
        self.assert_free(target.pid)

    def test_many_modules(self):
        """Three modules are skipped one by one; then all names are omitted."""
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        for index in range(6):
            name = "/libchain_%d.so" % index
            subprocess.run(["strip", "-o", directory + name, TARGETS + "/chain" + name],
                           check=True)
        target = self.start("dlchain", 6, directory)
        whole = self.snap(target.pid)
        text, stderr = self.run_injected("openat2:signal=%s" % SIGNAL, "-f", "json", target.pid)
        document = self.assert_reported(
            text, stderr, r"(the analysis of \S+ crashed \(%s\) during symbolization, module "
            r"skipped; ){3}the analysis crashed .*; names are missing$" % SIGNAL)
        self.assert_stacks_whole(document, whole, lambda path: False)
        text, _ = self.run_injected("openat2:signal=%s" % SIGNAL, target.pid)
        self.assertIn("; names are missing\n", text)
        self.assertRegex(text, r"#1  libchain_5.so\+0x\w+ \[\w{40}\]\n")

    def test_everything(self):
        """Every attempt crashes before it interprets anything."""
        target = self.start_threads()
        places = {thread["tid"]: thread["frames"][0]["pc"]
                  for thread in self.snap(target.pid, "--no-inlines").threads}
        for form in FORMATS:
            with self.subTest(form=form):
                text, stderr = self.run_injected("capset:signal=%s" % SIGNAL, "-f", form,
                                                 target.pid)
                self.assertRegex(stderr, r"crashed \(%s\) during unwinding; .*only the "
                                 r"innermost frame of each thread is shown" % SIGNAL)
                if form == "text":
                    self.assertIn("only the innermost frame of each thread is shown", text)
                    self.assertIn("it could not be unwound", text)
                if form != "json":
                    self.assertIn("libc.so.6+0x", text)
                    continue
                document = json.loads(text)
                self.assertEqual({thread["tid"]: [frame["pc"] for frame in thread["frames"]]
                                  for thread in document["threads"]},
                                 {tid: [place] for tid, place in places.items()})
                self.assertEqual({thread["end"] for thread in document["threads"]}, {"frames"})
        self.assert_free(target.pid)

    def test_hangs(self):
        """A stopped child never ends; it is killed after the time limit."""
        target = self.start_threads()
        # With sanitizers, a second is not enough for the second attempt beside other tests.
        limit = "--interpret-timeout=%d" % (5 if "SANITIZED" in os.environ else 1)
        text, stderr = self.run_injected("openat2:signal=SIGSTOP", limit, "-f", "json",
                                         target.pid)
        document = self.assert_reported(text, stderr, r"the analysis of libc.so.6 timed out "
                                    r"during symbolization, module skipped$")
        self.assertLessEqual({thread["end"] for thread in document["threads"]},
                             {"root", "guessed"})

    def test_slow(self):
        """The parent looks after a child that takes longer than usual."""
        target = self.start_threads()
        for words in ((), ("-c", "2", "--interval=1ms")):
            self.run_injected("openat2:delay_enter=500000", *words, target.pid, status=0)

    def test_several_targets(self):
        """Each target has its own child; the documents are separate."""
        targets = [self.start_threads() for _ in range(2)]
        text, _ = self.run_injected("capset:signal=%s" % SIGNAL, "-f", "json",
                                    *[target.pid for target in targets])
        documents = [json.loads(line) for line in text.splitlines()]
        self.assertEqual([document["process"]["pid"] for document in documents],
                         [target.pid for target in targets])

    def test_no_child(self):
        """If no child can be created, no module is read: that would need privileges."""
        target = self.start_threads()
        text, _ = self.run_injected("clone:error=EAGAIN", "-f", "json", target.pid)
        document = json.loads(text)
        self.assertIn("could not be started; only the innermost frame", document["problem"])
        for thread in document["threads"]:
            self.assertEqual([frame["symbol"] for frame in thread["frames"]], [None])
        self.assert_free(target.pid)

    def test_no_memory_files(self):
        target = self.start_threads()
        text, _ = self.run_injected("memfd_create:error=ENOSYS", "-f", "json", target.pid,
                                    status=0)
        self.assertIsNone(json.loads(text)["problem"])

    def test_no_filter(self):
        """Without seccomp and Landlock the other restrictions apply."""
        target = self.start_threads()
        text, stderr = self.run_injected("seccomp,landlock_create_ruleset:error=ENOSYS", "-v",
                                         "-f", "json", target.pid, status=0)
        self.assertIn("the kernel refused part of the sandbox", stderr)
        self.assertIsNone(json.loads(text)["problem"])

    def test_nothing(self):
        """Without a user of its own either, it does nothing for a process of another user."""
        target = start_of_nobody(self)
        calls = "setresuid,seccomp,landlock_create_ruleset:error=EPERM"
        text, stderr = self.run_injected(calls, "-v", "-f", "json", target.pid)
        problem = ("the analysis cannot be confined: the kernel refuses Landlock, seccomp and a user "
                   "of its own; only the innermost frame of each thread is shown")
        self.assertIn(problem, stderr)
        document = json.loads(text)
        self.assertEqual(document["problem"], problem)
        self.assertGreater(len(document["threads"]), 3)
        for thread in document["threads"]:
            self.assertEqual([frame["symbol"] for frame in thread["frames"]], [None])
        text, _ = self.run_injected(calls, "-f", "json", self.start_threads().pid, status=0)
        self.assertIsNone(json.loads(text)["problem"])

    def test_hang(self):
        """The same retries as those of snap."""
        target = self.start_threads()
        text, stderr = self.run_injected("openat2:signal=%s" % SIGNAL, "hang", "--for=100ms",
                                         "--json", target.pid, status=0)
        self.assertRegex(stderr, r"the analysis of libc.so.6 crashed \(%s\) during "
                         r"symbolization, module skipped\n$" % SIGNAL)
        self.assertEqual(json.loads(text)["verdict"], "idle")
        text, stderr = self.run_injected("capset:signal=%s" % SIGNAL, "hang", "--for=100ms",
                                         target.pid, status=2)
        self.assertEqual(text, "")
        self.assertRegex(stderr, r"the analysis crashed \(%s\) during unwinding" % SIGNAL)
        self.assert_free(target.pid)

    def record(self, target):
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        path = os.path.join(directory, "recording")
        self.run_tool("record", "-d", "1", "-o", path, target.pid)
        return path

    def test_report(self):
        recording = self.record(self.start_threads())
        whole = self.run_tool("report", "-f", "folded", recording, status=(0, 1)).stdout.decode()
        self.assertIn("target_wait", whole)
        text, stderr = self.run_injected("openat2:signal=%s" % SIGNAL, "report", "-f",
                                         "folded", recording)
        self.assertRegex(stderr, r"the analysis of \S+ crashed \(%s\) during symbolization, "
                         r"module skipped" % SIGNAL)
        self.assertEqual(text.count("\n"), whole.count("\n"))
        text, stderr = self.run_injected("capset:signal=%s" % SIGNAL, "report", recording,
                                         status=2)
        self.assertEqual(text, "")
        self.assertRegex(stderr, r"the analysis crashed \(%s\)" % SIGNAL)

    def status_of_child(self, *words):
        """/proc/PID/status of the child, which is stopped when it opens a file."""
        process = subprocess.Popen(
            ["strace", "-f", "-o", "/dev/null", "-e", "inject=openat2:signal=SIGSTOP",
             STACKSNAP, *map(str, words)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        self.addCleanup(process.wait)
        self.addCleanup(lambda: [os.kill(tool, signal.SIGKILL)
                                 for tool in children(process.pid)])
        found = []

        def find():
            found[:] = [status for tool in children(process.pid)
                        for child in children(tool)
                        for status in [read_text("/proc/%d/status" % child)]
                        if re.search(r"^Seccomp:\t2$", status, re.M)]
            return found
        wait_until(find, "a confined child of " + " ".join(map(str, words)))
        return dict(line.split(":\t", 1) for line in found[0].splitlines() if ":\t" in line)

    def test_rights(self):
        """Checks the rights of the child of each command that interprets."""
        target = self.start_threads()
        recording = self.record(target)
        for words in ((target.pid,), ("hang", "--for=100ms", target.pid),
                      ("report", recording)):
            with self.subTest(words=words):
                status = self.status_of_child(*words)
                for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                    self.assertEqual(int(status[name], 16), 0, name)
                self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))


class Rights(EndToEnd):
    def test_stopped_child(self):
        """The user of the process may signal the child, which is continued."""
        target = self.start("threads", 3, 2)
        # LeakSanitizer waits for a child of its own.
        options = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        for _ in range(5):
            process = subprocess.Popen([STACKSNAP, "--no-cache", str(target.pid)],
                                       env=dict(os.environ, ASAN_OPTIONS=options),
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            self.addCleanup(process.kill)
            stopped = set()
            while process.poll() is None and len(stopped) < 2:
                with contextlib.suppress(OSError):  # it has ended
                    for child in set(children(process.pid)) - stopped:
                        os.kill(child, signal.SIGSTOP)
                        stopped.add(child)
            out, err = process.communicate(timeout=LIMIT_S)
            self.assertEqual((process.returncode, err), (0, b""), out)

    def run_killing(self, kill, *words, **options):
        """Runs the tool; kill is called for each child of it, again and again."""
        process = subprocess.Popen([STACKSNAP, *map(str, words)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT,
                                   **options)
        self.addCleanup(process.kill)
        while process.poll() is None:
            for child in children(process.pid):
                with contextlib.suppress(OSError):  # it has ended
                    if re.search(r"^Seccomp:\t2$", read_text("/proc/%d/status" % child), re.M):
                        kill(process, child)
        out, err = process.communicate(timeout=LIMIT_S)
        return process.returncode, out.decode(), err.decode()

    @unittest.skipUnless(os.geteuid() == 0, "only root can capture a process of another user")
    def test_signals_of_the_user_of_the_process(self):
        """The user of the process cannot signal the child."""
        target = start_of_nobody(self)
        refused = []

        def kill(_, child):
            pid = os.fork()
            if pid == 0:
                try:
                    os.setresuid(65534, 65534, 65534)
                    os.kill(child, signal.SIGKILL)
                    os._exit(0)
                except PermissionError:
                    os._exit(1)
                except OSError:
                    os._exit(2)
            refused.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        commands = (("--no-cache", target.pid), ("heap", target.pid), ("record", "-d1s", target.pid),
                    ("hang", "--for=100ms", target.pid))
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        for words in commands:
            with self.subTest(words=words):
                del refused[:]
                while 1 not in refused:  # the child may end before
                    status, _, err = self.run_killing(kill, *words, cwd=directory)
                    self.assertEqual(status, 0, err)
                    self.assertNotIn(0, refused)

    def test_killed_child(self):
        """One that is killed, by root or because memory ran out, is replaced; no module is blamed."""
        target = self.start("threads", 3, 2)
        killed = set()

        def kill_first(process, child):
            if process not in killed:
                os.kill(child, signal.SIGKILL)
                killed.add(process)
        for words in (("-f", "json", "--no-cache", target.pid), ("heap", target.pid)):
            count = len(killed)
            while len(killed) == count:
                status, out, err = self.run_killing(kill_first, *words)
                self.assertEqual((status, err), (0, ""))
        status, out, err = self.run_killing(lambda _, child: os.kill(child, signal.SIGKILL),
                                            "-f", "json", "--no-cache", target.pid)
        self.assertEqual(status, 1)
        self.assertRegex(err, r"the analysis was killed from outside \(SIGKILL\) during")
        self.assertNotIn("libc", err)
        self.assertEqual(len(json.loads(out)["threads"]), len(os.listdir("/proc/%d/task" % target.pid)))
        self.assert_free(target.pid)

    def test_killed_child_of_watch(self):
        """hang --watch goes on at the next interval."""
        target = self.start("threads", 3, 2)
        process = subprocess.Popen(
            [STACKSNAP, "hang", "--watch", "--for=50ms", "--interval=50ms", "--no-cache",
             str(target.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, env=ENVIRONMENT)
        self.addCleanup(process.kill)
        os.set_blocking(process.stderr.fileno(), False)
        text = b""
        while text.count(b"will retry after the interval\n") < 2:
            for child in children(process.pid):
                with contextlib.suppress(OSError):
                    os.kill(child, signal.SIGKILL)
            text += process.stderr.read() or b""
            self.assertIsNone(process.poll(), text)
        self.assertIn(b"was killed from outside (SIGKILL)", text)
        target.kill()
        self.assertEqual(process.wait(LIMIT_S), 0)

    @unittest.skipUnless(os.geteuid() == 0, "only root can capture a process of another user")
    def test_sysroot_of_the_process(self):
        """/proc/PID/root is opened before privileges are dropped."""
        target = self.start("threads", 3, 2)
        snapshot = self.snap(target.pid, "--sysroot=/proc/%d/root" % target.pid)
        self.assertIn("target_wait", {frame["symbol"] for thread in snapshot.threads
                                      for frame in thread["frames"]})
        self.assertIsNone(snapshot.data["problem"])

    @unittest.skipUnless(os.geteuid() == 0, "only root may read files of another user")
    def test_report_of_private_modules(self):
        """The child has no capabilities: the parent opens the files for it."""
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        program = os.path.join(directory, "threads")
        shutil.copy(os.path.join(TARGETS, "threads"), program)
        os.chmod(directory, 0o700)
        os.chown(directory, 65534, 65534)
        recording = os.path.join(directory, "recording")
        target = self.start_command([program, "1", "1"])
        self.run_tool("record", "-d", "1", "-o", recording, target.pid)
        text = self.run_tool("report", "-f", "folded", recording, status=(0, 1)).stdout.decode()
        self.assertIn("target_wait", text)


if __name__ == "__main__":
    main()
