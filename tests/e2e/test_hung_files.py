"""The program lies on a file system whose server does not answer any more: nothing that
stacksnap waits for may be blocked by it, since not even SIGKILL ends such a wait. See
targets/hungfuse.c. A child that is blocked is abandoned; it ends with the file system."""
# ctest: long-with-sanitizers

import ctypes
import errno
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import (EndToEnd, Snapshot, TARGETS, has_debug_file, main, read_text,
                     task_states, wait_until)

PROBLEM = "its file system does not respond"


def blocked_tools():
    """The processes of stacksnap that are in state D."""
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        text = read_text(path)
        if re.search(r"\(stacksnap\) D ", text):
            found.append(int(text.split()[0]))
    return found


@unittest.skipUnless(os.geteuid() == 0, "only root may mount")
class HungFiles(EndToEnd):
    def mount(self, program="threads"):
        """Starts the server; returns the path of the program on its file system."""
        directory = tempfile.mkdtemp()
        self.addCleanup(os.rmdir, directory)
        try:
            self.server = self.start("hungfuse", directory, os.path.join(TARGETS, program),
                                     settle=False)
        except FileNotFoundError:
            self.skipTest("this system has no linux/fuse.h")
        refused = [line for line in self.server.lines if line.startswith("refused")]
        if refused:
            self.skipTest("cannot mount FUSE: " + refused[0])
        self.addCleanup(subprocess.run, ["umount", "-l", directory], stderr=subprocess.DEVNULL)
        self.addCleanup(self.server.kill)
        return os.path.join(directory, "program")

    def command(self, word):
        self.server.process.stdin.write(word.encode() + b"\n")
        self.assertEqual(self.server.process.stdout.readline(), word.encode() + b"\n")

    def ignored(self):
        self.server.process.stdin.write(b"count\n")
        return int(self.server.process.stdout.readline())

    def start_program(self):
        self.path = self.mount()
        return self.start_command([self.path, "1", "3"])

    def module(self, modules):
        found = [module for module in modules if module["path"] == self.path]
        self.assertEqual(len(found), 1)
        return found[0]

    def assert_nameless(self, data):
        self.assertEqual(self.module(data["modules"])["problem"], PROBLEM)
        own = data["modules"].index(self.module(data["modules"]))
        frames = [frame for thread in data["threads"] for frame in thread["frames"]]
        self.assertTrue([frame for frame in frames if frame["module"] == own])
        self.assertEqual({frame["symbol"] for frame in frames if frame["module"] == own},
                         {None})
        self.assertIn("read", {(frame["symbol"] or "").strip("_").replace("GI___libc_", "")
                               for frame in frames})

    def test_wait(self):
        """Who waits for the server is stuck: the mount and the server are named."""
        for words in (("cat",), ("ls", "-l")):
            with self.subTest(words[0]):
                path = self.mount()
                self.command("hang")
                process = subprocess.Popen([*words, path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                self.addCleanup(process.wait)
                self.addCleanup(self.server.kill)
                wait_until(lambda: "fuse" in read_text("/proc/%d/stack" % process.pid), "the call")
                text = self.run_tool("hang", "--for=300ms", process.pid, status=(4,)).stdout
                self.assertIn(b"pid %d: stuck" % process.pid, text)
                wait = self.snap(process.pid, status=(0, 1)).threads[0]["wait"]
                self.assertEqual((wait["mount"], wait["owner_pid"]),
                                 (os.path.dirname(path), self.server.pid), wait)

    def test_server_answers(self):
        """Names and lines are those of the same program on another file system."""
        target = self.start_program()
        other = self.start("threads", 1, 3)
        stacks = []
        for pid in (target.pid, other.pid):
            snapshot = self.snap(pid)
            stacks.append([[(frame["symbol"], frame["line"]) for frame in thread["frames"]]
                           for thread in snapshot.threads])
        self.assertEqual(stacks[0], stacks[1])
        self.assertNotIn(None, [name for name, _ in stacks[0][0]])

    def test_server_does_not_answer(self):
        for word in ("hang", "reads"):
            with self.subTest(word=word):
                target = self.start_program()
                self.command(word)
                result = self.run_tool("-f", "json", target.pid, status=(1,))
                snapshot = Snapshot(result)
                self.assert_nameless(snapshot.data)
                self.assertIn("%s: %s; its functions have no names" % (self.path, PROBLEM),
                              snapshot.stderr)
                self.assertGreater(self.ignored(), 0)
                self.assert_free(target.pid)
                target.kill()
                self.server.kill()
                wait_until(lambda: not blocked_tools(), "abandoned children to end")

    def test_below_overlay(self):
        """As below the images of some container runtimes."""
        lower = os.path.dirname(self.mount())
        other = tempfile.mkdtemp()
        self.addCleanup(os.rmdir, other)
        subprocess.run(["mount", "-t", "tmpfs", "none", other], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", other])
        merged, upper, work = (os.path.join(other, name) for name in ("merged", "upper", "work"))
        for path in (merged, upper, work):
            os.mkdir(path)
        result = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", "lowerdir=%s,upperdir=%s,"
                                 "workdir=%s" % (lower, upper, work), merged],
                                stderr=subprocess.PIPE)
        if result.returncode:
            self.skipTest("no overlay above FUSE: %s" % result.stderr)
        self.addCleanup(subprocess.run, ["umount", "-l", merged])
        target = self.start_command([os.path.join(merged, "program"), "1", "3"])
        for word in ("reads", "hang"):
            with self.subTest(word=word):
                self.command(word)
                snapshot = Snapshot(self.run_tool("-f", "json", target.pid, status=(1,)))
                self.assertEqual(len(snapshot.threads), 6)
                self.assertIn(PROBLEM, snapshot.stderr)
                names = {frame["symbol"] for thread in snapshot.threads
                         for frame in thread["frames"]}
                self.assertNotIn("target_wait", names)
                self.assertIn("read", {(name or "").strip("_").replace("GI___libc_", "")
                                       for name in names})
                self.assert_free(target.pid)

    def test_one_try(self):
        """All that is captured of a process later does without that file system at once."""
        target = self.start_program()
        self.command("hang")
        before = set(blocked_tools())
        result = self.run_tool("hang", "--for=300ms", "--json", target.pid)
        self.assertEqual(json.loads(result.stdout)["verdict"], "idle")
        self.assertIn(PROBLEM, result.stderr.decode())
        self.assertLessEqual(len(set(blocked_tools()) - before), 1)

    def test_the_tool_can_be_killed(self):
        """The process that was started is never in state D."""
        target = self.start_program()
        self.command("hang")
        tool = subprocess.Popen([os.environ["STACKSNAP"], str(target.pid)],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(tool.kill)
        wait_until(lambda: self.ignored() > 0, "a request")
        tool.kill()
        tool.wait(30)
        self.assert_free(target.pid)

    def test_modules(self):
        target = self.start_program()
        self.command("hang")
        result = self.run_tool("modules", target.pid)
        self.assertIn("%s: %s" % (self.path, PROBLEM), result.stderr.decode())
        self.assertRegex(result.stdout.decode(), r" - +%s\n" % re.escape(self.path))
        self.assertRegex(result.stdout.decode(), r"[0-9a-f]{40} +/\S*libc")

    def record(self, target):
        directory = tempfile.mkdtemp()
        path = os.path.join(directory, "recording")
        self.addCleanup(os.rmdir, directory)
        self.addCleanup(os.unlink, path)
        self.run_tool("record", "-d", "300ms", "-o", path, target.pid)
        return path

    def report(self, recording):
        result = self.run_tool("report", "-f", "json", recording, status=(0, 1))
        return json.loads(result.stdout)

    def test_record(self):
        target = self.start_program()
        self.command("hang")
        data = self.report(self.record(target))
        self.assertEqual(self.module(data["modules"])["problem"], PROBLEM)
        self.assertIn("libc.so", "".join(module["path"] for module in data["modules"]))

    def test_report(self):
        """It was recorded before, so that its build-id is known: the file is looked for."""
        target = self.start_program()
        recording = self.record(target)
        self.assertIsNone(self.module(self.report(recording)["modules"])["problem"])
        self.command("hang")
        data = self.report(recording)
        names = {frame.get("function", frame.get("name")) for frame in data["frames"]}
        self.assertNotIn("target_wait", names)
        self.assertIn("analysis of program timed out during symbolization, module skipped",
                      json.dumps(data))
        if has_debug_file({"build_id": self.libc(data)["build_id"]}):
            self.assertIn("__libc_start_call_main", names)

    def libc(self, data):
        return [module for module in data["modules"] if "libc.so" in module["path"]][0]


class Listener:
    """Decides about each open of some files, and does not answer. Of fanotify(7)."""

    def __init__(self, test, paths):
        libc = ctypes.CDLL(None, use_errno=True)
        content, cloexec, add, open_perm = 4, 1, 1, ctypes.c_uint64(0x10000)
        self.fd = libc.fanotify_init(content | cloexec, os.O_RDONLY)
        if self.fd < 0:
            test.skipTest("fanotify: " + errno.errorcode[ctypes.get_errno()])
        test.addCleanup(self.close)
        for path in paths:
            if libc.fanotify_mark(self.fd, add, open_perm, -100, path.encode()) != 0:
                test.skipTest("fanotify: " + errno.errorcode[ctypes.get_errno()])

    def close(self):
        """The kernel permits what it waits for."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1


@unittest.skipUnless(os.geteuid() == 0, "only root may decide about opens")
class Permission(EndToEnd):
    def copy_program(self, parent):
        directory = tempfile.mkdtemp(dir=parent)
        self.addCleanup(shutil.rmtree, directory)
        return shutil.copy(os.path.join(TARGETS, "threads"), directory)

    def check(self, path, problems):
        """The module has no names; the others have, and all stacks are whole."""
        target = self.start_command([path, "1", "3"])
        listener = Listener(self, [path])
        # LeakSanitizer waits for all threads, also for one that is blocked.
        sanitizer = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        snapshot = Snapshot(self.run_tool("-f", "json", target.pid, status=(0, 1),
                                          env=dict(os.environ, ASAN_OPTIONS=sanitizer)))
        note = json.dumps(snapshot.data, indent=1) + snapshot.stderr
        module, = [m for m in snapshot.modules if m["path"] == path]
        self.assertIn(module["problem"], problems, note)
        self.assertIn(module["problem"], snapshot.stderr, note)
        self.assertEqual(len(snapshot.threads), 6, note)
        names = {frame["symbol"] for thread in snapshot.threads for frame in thread["frames"]}
        self.assertIn("read", {(name or "").strip("_").replace("GI___libc_", "")
                               for name in names}, note)
        self.assert_free(target.pid)
        listener.close()
        self.assertIn("target_wait", str(self.snap(target.pid).threads))
        wait_until(lambda: not blocked_tools(), "abandoned children to end")
        return snapshot, note

    def test_on_disk(self):
        path = self.copy_program(os.environ.get("BUILD"))
        snapshot, note = self.check(path, {
            "a program that decides whether it may be opened (fanotify) does not answer", PROBLEM})
        if PROBLEM not in snapshot.stderr:  # the unwind tables are in memory
            self.assertEqual({thread["end"] for thread in snapshot.threads}, {"root"}, note)

    def test_wait(self):
        path = self.copy_program(None)
        listener = Listener(self, [path])
        target = subprocess.Popen(["cat", path], stdout=subprocess.DEVNULL)
        self.addCleanup(target.wait)
        self.addCleanup(listener.close)
        wait_until(lambda: task_states(target.pid) == {target.pid: "D"}, "cat to open it")
        wait = self.snap(target.pid, status=(0, 1)).threads[0]["wait"]
        self.assertTrue(wait["fanotify"], wait)
        self.assertIn(path + " to be opened, which another program has to permit (fanotify)",
                      wait["text"], wait)

    def test_in_memory(self):
        directory = tempfile.mkdtemp()
        self.addCleanup(os.rmdir, directory)
        subprocess.run(["mount", "-t", "tmpfs", "none", directory], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", directory])
        self.check(self.copy_program(directory), {PROBLEM})


if __name__ == "__main__":
    main()
