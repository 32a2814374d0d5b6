# ctest: tries=300 long-without-sanitizers
"""Sandboxed children that were taken over (tests/hostile): whatever they send, write or do, the
parent neither crashes nor hangs, and says what is missing; what they request is refused.
STACKSNAP_TRIES=N runs each command N times."""

import concurrent.futures
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from harness import EndToEnd, LIMIT_S, STACKSNAP, TARGETS, for_everyone, main

HOSTILE = os.path.join(os.environ["BUILD"], "tests", "hostile", "hostile_child")
DENY = os.path.join(TARGETS, "deny_syscalls")
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
LANDLOCK = "444"  # landlock_create_ruleset(2)
TRIES = int(os.environ.get("STACKSNAP_TRIES", "1"))
AT_ONCE = min(TRIES, 4)
# Of a failed assertion, a sanitizer, the library's own checks, or libc's. A child that records may
# print "AddressSanitizer:DEADLYSIGNAL"; its report goes elsewhere.
CRASHED = re.compile("Sanitizer: |runtime error|Assertion|malloc\\(|free\\(")
PYTHON = """
import threading
def wait():
    while True: sum(range(100))
threading.Thread(target=wait, daemon=True).start()
print("ready", flush=True)
input()
"""


class HostileChild(EndToEnd):
    def setUp(self):
        super().setUp()
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)

    def run_hostile(self, mode, *words, prefix=(), tool=HOSTILE, directory=None):
        result = subprocess.run(
            [*prefix, tool, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=LIMIT_S * 4, cwd=directory or self.directory,
            env=dict(os.environ, SS_HOSTILE=mode))
        return result.returncode, result.stderr.decode("utf-8", "replace")

    def try_once(self, seed, words, targets, status):
        with tempfile.TemporaryDirectory(dir=self.directory) as directory:
            code, err = self.run_hostile("random:%d" % seed, *words, directory=directory)
        self.assertIn(code, status, err)
        self.assertIsNone(CRASHED.search(err), err)
        if code == 2 and words[0] != "report":  # that may be what the child says
            self.assertRegex(err, "stacksnap: .")
        for target in targets:
            self.assert_free(target.pid)

    def try_all(self, *words, targets=([],) * AT_ONCE, status=(0, 1, 2, 3, 4)):
        """targets: for each run that goes on at the same time, the processes of its command."""
        def try_some(first):
            pids = [target.pid for target in targets[first]]
            for seed in range(first, TRIES, AT_ONCE):
                try:
                    self.try_once(seed, [*words, *pids], targets[first], status)
                except (AssertionError, subprocess.TimeoutExpired) as error:
                    raise AssertionError("%s, seed %d: %s" % (words, seed, error)) from error
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for result in [pool.submit(try_some, first) for first in range(AT_ONCE)]:
                with self.subTest(words=words):
                    result.result()

    def record(self, target):
        path = os.path.join(self.directory, "recording")
        self.run_tool("record", "-d", "500ms", "-o", path, target.pid, status=(0, 1))
        return path

    def test_process(self):
        """Commands that look at a process."""
        native = [[self.start("threads", 3, 2)] for _ in range(AT_ONCE)]
        python = [[self.start_command([sys.executable, "-c", PYTHON])] for _ in range(AT_ONCE)]
        for words in (("-f", "json"), ("hang", "--for=50ms"), ("heap",),
                      ("record", "-d", "100ms", "-r", "200"), ("record", "--on-cpu", "-d", "100ms"),
                      ("diff", "--after=50ms"), ("-c", "3", "--interval=20ms"),
                      ("-c", "2", "--interval=20ms", "-f", "folded"), ("top", "--once"),
                      ("trace", "-d", "100ms", "--stack", "-p", "write"), ("modules",)):
            for targets in (native, python):
                self.try_all(*words, targets=targets)

    def test_processes(self):
        targets = [[self.start("threads", 2, 2) for _ in range(3)] for _ in range(AT_ONCE)]
        self.try_all(targets=targets)
        self.try_all("hang", "--for=50ms", targets=targets)

    def test_files(self):
        """Commands that read files."""
        recording = self.record(self.start("threads", 3, 2))
        self.try_all("report", recording)
        self.try_all("report", "-f", "pprof", recording)
        self.try_all("diff", recording, recording)
        self.try_all("names", "0123456789abcdef+0x1000")

    def test_crash(self):
        """The tool ends as the program has ended."""
        self.try_all("run", os.path.join(TARGETS, "crash"), "segv", status=(-signal.SIGSEGV,))

    def copy_program(self, name, mode=0o600):
        path = os.path.join(self.directory, name)
        shutil.copy("/bin/true", path)
        os.chmod(path, mode)
        return path

    def assert_request(self, key, path, given, *words):
        target = self.start("threads", 1, 2)
        code, err = self.run_hostile("request:" + key, "--no-cache", *words, target.pid)
        self.assertEqual(code, 0, err)
        self.assertEqual("got inode %d\n" % os.stat(path).st_ino in err, given, err)

    @unittest.skipUnless(os.geteuid() == 0, "without privileges there is nothing to be got")
    def test_requested_files(self):
        """A child gets those files only that it knows: never a core dump."""
        path = self.copy_program("secret")
        notes = subprocess.run(["readelf", "-n", path], stdout=subprocess.PIPE, check=True).stdout
        build_id = re.search(rb"Build ID: (\w+)", notes)[1].decode()
        self.assert_request("Pb%s %s" % (build_id, path), path, True)
        self.assert_request("Pb%s %s" % (build_id[:-1] + "x", path), path, False)
        self.assert_request("Pb00 " + path, path, False)
        self.assert_request("Pc00000000 " + path, path, False)
        self.assert_request("Pg%032x %s" % (0, path), path, False)
        self.assert_request("P" + path, path, False)
        self.assert_request("P " + path, path, False)
        self.assert_request("Rb%s %s" % (build_id, path), path, False)  # without --sysroot
        self.assert_request("Rb%s /secret" % build_id, path, True, "--sysroot=" + self.directory)
        self.assert_request("M" + build_id, path, False)  # without --debuginfod
        for core in (4, 0xfe00):  # ET_CORE
            with open(path, "r+b") as file:
                file.seek(16)
                file.write(core.to_bytes(2, "little"))
            self.assert_request("Pb%s %s" % (build_id, path), path, False)

    def test_memory_of_others(self):
        """A child cannot open the memory of another process of its user, with and without Landlock."""
        other = self.start("threads", 1, 2)
        for prefix in ((), (DENY, LANDLOCK)):
            target = self.start("threads", 1, 2)
            code, err = self.run_hostile("open:/proc/%d/mem" % other.pid, target.pid, prefix=prefix)
            self.assertEqual((code, err), (0, "could not open it\n"))
        if os.geteuid() != 0:
            return
        tool = for_everyone(HOSTILE)
        other, target = (self.start_command([*NOBODY, for_everyone(os.path.join(TARGETS, "threads")),
                                             "1", "2"]) for _ in range(2))
        os.chmod(self.directory, 0o777)
        for rights in ([], NOBODY):
            for prefix in ((), (for_everyone(DENY), LANDLOCK)):
                code, err = self.run_hostile("open:/proc/%d/mem" % other.pid, "--no-cache", target.pid,
                                             prefix=[*rights, *prefix], tool=tool)
                self.assertEqual((code, err), (0, "could not open it\n"), (rights, prefix))

    def test_names_without_landlock(self):
        """The parent opens the files for a child that may open none."""
        program = os.path.join(self.directory, "program")
        subprocess.run(["objcopy", "--only-keep-debug", os.path.join(TARGETS, "threads"),
                        program + ".debug"], check=True)
        subprocess.run(["objcopy", "--strip-all", "--add-gnu-debuglink=" + program + ".debug",
                        os.path.join(TARGETS, "threads"), program], check=True)
        os.chmod(self.directory, 0o755)
        prefix = NOBODY if os.geteuid() == 0 else []
        target = self.start_command([*prefix, program, "1", "2"])
        result = subprocess.run([*prefix, for_everyone(DENY), LANDLOCK, for_everyone(STACKSNAP), "-a",
                                 "--no-cache", str(target.pid)], stdout=subprocess.PIPE, check=True,
                                timeout=LIMIT_S)
        self.assertIn(b"target_wait", result.stdout)


if __name__ == "__main__":
    main()
