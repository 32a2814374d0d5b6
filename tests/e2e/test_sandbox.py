"""What interprets a capture dies, hangs, or is stopped: the stacks are shown nevertheless, as
far as they can be had, and what is missing is said. The faults are real: strace sends a
signal to the child as it enters a system call that the parent does not make.
"""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

from harness import EndToEnd, LIMIT_S, STACKSNAP, TARGETS, main

# AddressSanitizer answers a SIGSEGV itself; and its search for leaks is no friend of strace.
SIGNAL = "SIGILL" if os.environ.get("SANITIZED") else "SIGSEGV"
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
FORMATS = ("text", "gdb", "eu", "folded", "json")


def can_inject():
    command = ["strace", "-f", "-o", "/dev/null", "-e", "trace=none", "true"]
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              timeout=LIMIT_S).returncode == 0
    except FileNotFoundError:
        return False


@unittest.skipUnless(can_inject(), "strace cannot trace here")
@unittest.skipUnless(os.geteuid() == 0, "without privileges the parent, too, uses openat2")
class Deaths(EndToEnd):
    def run_injected(self, fault, *words, status=1):
        command = ["strace", "-f", "-o", "/dev/null", "-e", "inject=" + fault, STACKSNAP]
        result = subprocess.run(command + [str(word) for word in words], timeout=LIMIT_S * 2,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=ENVIRONMENT)
        self.assertEqual(result.returncode, status, result.stderr.decode())
        return result.stdout.decode(), result.stderr.decode()

    def start_threads(self):
        return self.start("threads", 3, 2)

    def assert_told(self, text, stderr, pattern):
        self.assertRegex(stderr, pattern)
        self.assertRegex(stderr, "^stacksnap: ")
        document = json.loads(text)
        self.assertRegex(document["problem"], pattern)
        return document

    def assert_stacks_whole(self, document, whole, named):
        """All frames are there; those of modules that were not left out have their names."""
        self.assertEqual(len(document["threads"]), len(whole.threads))
        for thread in document["threads"]:
            self.assertEqual(thread["end"], "root")
            then = [frame for frame in whole.thread(thread["tid"])["frames"]
                    if not frame["inlined"]]
            now = [frame for frame in thread["frames"] if not frame["inlined"]]
            self.assertEqual([frame["offset"] for frame in now],
                             [frame["offset"] for frame in then])
            for frame, other in zip(now, then):
                path = document["modules"][frame["module"]]["path"]
                self.assertEqual(frame["symbol"], other["symbol"] if named(path) else None)

    def test_one_module(self):
        """The debug file of libc is looked for with openat2(), that of the program is not,
        since it has symbols of its own."""
        target = self.start_threads()
        whole = self.snap(target.pid)
        self.assertIsNone(whole.data["problem"])
        text, stderr = self.run_injected("openat2:signal=%s" % SIGNAL, "-f", "json", target.pid)
        document = self.assert_told(
            text, stderr, r"what reads libc.so.6 crashed \(%s\) while looking up names; it was "
            r"left out$" % SIGNAL)
        self.assert_stacks_whole(document, whole, lambda path: "libc.so" not in path)
        self.assert_free(target.pid)

    def test_many_modules(self):
        """More than are left out one by one: then there are no names at all."""
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        for index in range(6):
            name = "/libchain_%d.so" % index
            subprocess.run(["strip", "-o", directory + name, TARGETS + "/chain" + name],
                           check=True)
        target = self.start("dlchain", 6, directory)
        whole = self.snap(target.pid)
        text, stderr = self.run_injected("openat2:signal=%s" % SIGNAL, "-f", "json", target.pid)
        document = self.assert_told(
            text, stderr, r"(what reads \S+ crashed \(%s\) while looking up names; it was left "
            r"out; ){3}what interprets the copy crashed .*; there are no names$" % SIGNAL)
        self.assert_stacks_whole(document, whole, lambda path: False)
        text, _ = self.run_injected("openat2:signal=%s" % SIGNAL, target.pid)
        self.assertIn("; there are no names\n", text)
        self.assertRegex(text, r"#1  libchain_5.so\+0x\w+ \[\w{40}\]\n")

    def test_everything(self):
        """Fatal before anything was interpreted."""
        target = self.start_threads()
        places = {thread["tid"]: thread["frames"][0]["pc"]
                  for thread in self.snap(target.pid, "--no-inlines").threads}
        for form in FORMATS:
            with self.subTest(form=form):
                text, stderr = self.run_injected("capset:signal=%s" % SIGNAL, "-f", form,
                                                 target.pid)
                self.assertRegex(stderr, r"crashed \(%s\) while unwinding; .*only the place "
                                 r"where each thread stood is known" % SIGNAL)
                if form == "text":
                    self.assertIn("only the place where each thread stood is known", text)
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
        """A child that is stopped is as one that never gets to an end."""
        target = self.start_threads()
        text, stderr = self.run_injected("openat2:signal=SIGSTOP", "--interpret-timeout=1",
                                         "-f", "json", target.pid)
        document = self.assert_told(text, stderr, r"what reads libc.so.6 was not done after "
                                    r"\d+ ms while looking up names; it was left out$")
        self.assertEqual({thread["end"] for thread in document["threads"]}, {"root"})

    def test_several_targets(self):
        """Each has a child of its own, and the documents stay apart."""
        targets = [self.start_threads() for _ in range(2)]
        text, _ = self.run_injected("capset:signal=%s" % SIGNAL, "-f", "json",
                                    *[target.pid for target in targets])
        documents = [json.loads(line) for line in text.splitlines()]
        self.assertEqual([document["process"]["pid"] for document in documents],
                         [target.pid for target in targets])

    def test_no_child(self):
        """Where there can be none all is done in one process, and -v says so."""
        target = self.start_threads()
        text, stderr = self.run_injected("memfd_create:error=ENOSYS", "-v", "-f", "json",
                                         target.pid, status=0)
        self.assertIn("without a sandbox", stderr)
        document = json.loads(text)
        self.assertIsNone(document["problem"])
        self.assertIn("target_wait", {frame["symbol"] for thread in document["threads"]
                                      for frame in thread["frames"]})

    def test_no_filter(self):
        """Without seccomp and Landlock the rest is done."""
        target = self.start_threads()
        text, stderr = self.run_injected("seccomp,landlock_create_ruleset:error=ENOSYS", "-v",
                                         "-f", "json", target.pid, status=0)
        self.assertIn("the kernel refused a part of the sandbox", stderr)
        self.assertIsNone(json.loads(text)["problem"])


class Rights(EndToEnd):
    @unittest.skipUnless(os.geteuid() == 0, "only root can look at a process of another user")
    def test_sysroot_of_the_process(self):
        """/proc/PID/root can be opened with rights only: before they are given up."""
        target = self.start("threads", 3, 2)
        snapshot = self.snap(target.pid, "--sysroot=/proc/%d/root" % target.pid)
        self.assertIn("target_wait", {frame["symbol"] for thread in snapshot.threads
                                      for frame in thread["frames"]})
        self.assertIsNone(snapshot.data["problem"])


if __name__ == "__main__":
    main()
