"""stacksnap diff: of a process, of two recordings, and of one."""
# ctest: real

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from harness import EndToEnd, LIMIT_S, main, task_states, wait_until


# Two threads stay where they are, the main thread goes through a hundred functions.
PYTHON = """
import threading, time
steps = {}
for i in range(100):
    exec("def step_%d(): time.sleep(0.01)" % i, globals(), steps)
def stays_here():
    threading.Event().wait()
def walk():
    while True:
        for step in steps.values():
            step()
for _ in range(2):
    threading.Thread(target=stays_here, daemon=True).start()
print("ready", flush=True)
walk()
"""


class Diff(EndToEnd):
    def diff(self, *arguments, status=(0,)):
        result = self.run_tool("diff", "-f", "json", *arguments, status=status)
        data = json.loads(result.stdout)
        self.assertEqual(data["schema"], "stacksnap-diff/1")
        for change in ("unchanged", "moved", "new", "gone"):
            self.assertEqual(data[change],
                             sum(t["change"] == change for t in data["threads"]), data)
        return data

    def threads(self, data):
        return {thread["name"]: thread for thread in data["threads"]}

    def record(self, pid, name):
        path = os.path.join(self.directory, name)
        self.run_tool("-f", "recording", "-o", path, pid)
        return path

    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory())

    def check_deadlock(self, data, live):
        """Blocked threads come first."""
        self.assertEqual((data["moved"], data["new"], data["gone"]), (0, 0, 0), data)
        self.assertTrue(data["same_process"])
        first = data["threads"][:2]
        self.assertEqual({t["name"] for t in first}, {"locker-0", "locker-1"}, data)
        for thread in first:
            self.assertEqual((thread["change"], thread["blocked"]), ("unchanged", True))
            self.assertEqual(thread["wait"]["kind"], "mutex")
            self.assertEqual(thread["common_frames"], len(thread["frames"]))
            self.assertIn("take_next", [frame["symbol"] for frame in thread["frames"]])
            if live:
                self.assertEqual(thread["progress"]["movement"], "none", thread)
            else:
                self.assertIsNone(thread["progress"])

    def test_blocked(self):
        target = self.start("deadlock", "normal")
        self.check_deadlock(self.diff("--after=50ms", target.pid), True)
        self.assert_free(target.pid)
        before = self.record(target.pid, "before.rec")
        after = self.record(target.pid, "after.rec")
        self.check_deadlock(self.diff(before, after), False)
        text = self.run_tool("diff", "--after=50ms", target.pid).stdout.decode()
        self.assertRegex(text, r"(?s)^before: deadlock, pid .*\nafter: deadlock, .*"
                         r"\n\d unchanged, 0 moved, 0 new, 0 gone; .* apart\n"
                         r".*DEADLOCK.*\nunchanged and blocked: 3 threads\n"
                         r"  \d+ \(locker-0\), sleeping, has not run\n"
                         r"    waits for mutex .*, held by \d+ \(locker-1\)")

    def test_equal_threads(self):
        """Those with the same stack that wait for the same lock are one in text; JSON has all."""
        target = self.start("deadlock", "normal", 2, 12)
        data = self.diff("--after=50ms", target.pid)
        behind = sorted(t["tid"] for t in data["threads"] if t["name"].startswith("behind-"))
        self.assertEqual(len(behind), 12, data)
        text = self.run_tool("diff", "--after=50ms", target.pid).stdout.decode()
        self.assertRegex(text, r"\nunchanged and blocked: 14 threads\n"
                         r"  12 threads, sleeping, have not run: behind-\* %d[-,].*\n"
                         r"    wait for mutex .*, held by \d+ \(locker-\d\) \[futex\]\n"
                         r"    in take .*\n    called from wait_behind .*\n"
                         r"  \d+ \(locker-0\), sleeping, has not run\n" % behind[0])
        verbose = self.run_tool("diff", "--after=50ms", "-v", target.pid).stdout.decode()
        self.assertEqual(verbose.count("wait_behind"), 1, verbose)

    def test_series(self):
        """Of one recording the first and last tick."""
        target = self.start("deadlock", "normal")
        path = os.path.join(self.directory, "series.rec")
        self.run_tool("-i", "5ms", "-c", "3", "-f", "recording", "-o", path, target.pid)
        data = self.diff(path)
        self.check_deadlock(data, False)
        self.assertGreater(data["after"]["time_ns"], data["before"]["time_ns"])

    def test_moved(self):
        """The main thread returns from one function of a plugin and calls another one."""
        target = self.start("modules", settle=False)
        before = self.record(target.pid, "before.rec")
        target.process.stdin.write(b"\n")
        target._read_until(b"ready\n")
        data = self.diff(before, self.record(target.pid, "after.rec"))
        thread, = data["threads"]
        self.assertEqual(thread["change"], "moved", data)
        self.assertIn("plugin_b", [f["symbol"] for f in thread["frames_before"]])
        self.assertIn("plugin_d", [f["symbol"] for f in thread["frames"]])
        self.assertLess(0, thread["common_frames"])
        text = self.run_tool("diff", before, os.path.join(self.directory, "after.rec"))
        self.assertRegex(text.stdout.decode(), r"(?s)\nmoved: 1 thread\n.*"
                         r"    was in .*plugin_b.*\n    is in .*plugin_d.*\n    both below ")

    def test_new_and_gone(self):
        """Two processes: threads are matched by name."""
        few = self.start("busy", 2, 3, settle=False)
        many = self.start("busy", 3, 3, settle=False)
        a = self.record(few.pid, "few.rec")
        b = self.record(many.pid, "many.rec")
        data = self.diff(a, b)
        self.assertFalse(data["same_process"])
        threads = self.threads(data)
        self.assertEqual((data["new"], data["gone"]), (1, 0), data)
        self.assertEqual(threads["busy-2"]["change"], "new", data)
        self.assertEqual((threads["busy-2"]["tid_before"], threads["busy-2"]["frames_before"]),
                         (None, None))
        back = self.threads(self.diff(b, a))
        self.assertEqual(back["busy-2"]["change"], "gone")
        self.assertIsNone(back["busy-2"]["frames"])
        self.assertNotEqual(threads["busy-1"]["tid"], threads["busy-1"]["tid_before"])
        text = self.run_tool("diff", a, b).stdout.decode()
        self.assertIn("two processes", text)
        self.assertRegex(text, r"(?m)^new: 1 thread\n  \d+ \(busy-2\), running$")

    def test_refused(self):
        target = self.start("deadlock", "normal")
        path = self.record(target.pid, "one.rec")
        self.assertIn(b"only one snapshot", self.run_tool("diff", path, status=(2,)).stderr)
        text = os.path.join(self.directory, "text")
        with open(text, "w") as file:
            file.write("{}\n")
        self.assertIn(b"text", self.run_tool("diff", path, text, status=(2,)).stderr)
        with open(path, "rb") as file:
            whole = file.read()
        with open(text, "wb") as file:
            file.write(whole[:len(whole) // 2])
        self.run_tool("diff", path, text, status=(1, 2))
        for words in ((), (path, path, path), ("--after=1s",), ("-t", "1", path, path),
                      ("--after=1s", path, path)):
            self.run_tool("diff", *words, status=(64,))
        self.run_tool("diff", os.path.join(self.directory, "missing"), status=(64,))
        result = self.run_tool("diff", "--native", path, path, status=(64,))
        self.assertIn(b"cannot be used with recordings", result.stderr)

    def test_python(self):
        """Which of its functions a thread was in, and is in: it goes through a hundred of them,
        and the others stay."""
        target = self.start_command([sys.executable, "-c", PYTHON])
        for _ in range(20): # by chance, it was in the same one, or ran on before it was read
            text = self.run_tool("diff", "-a", "--after=50ms", target.pid,
                                 status=(0, 1)).stdout.decode()
            moved = re.search(r"was in .* step_(\d+) at .*\n    is in .* step_(\d+) at .*\n"
                              r"    both below walk at <string>:\d+", text)
            if moved:
                break
        self.assertTrue(moved, text)
        self.assertNotEqual(moved.group(1), moved.group(2), text)
        self.assertRegex(text, r"unchanged and idle: 2 threads\n(.*\n)*.*stays_here", text)
        data = self.diff("--after=10ms", target.pid, status=(0, 1))
        self.assertEqual(len(data["threads"]), 3, data)
        for thread in data["threads"]:
            if thread["tid"] != target.pid:
                self.assertIn("python", {frame["kind"] for frame in thread["frames"]}, data)

    def test_redis(self):
        """A command that sleeps in the server: the main thread moves."""
        if not shutil.which("redis-server") or not shutil.which("redis-cli"):
            self.skipTest("redis is missing")
        path = os.path.join(self.directory, "socket")
        server = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir",
             self.directory, "--enable-debug-command", "yes"], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait, LIMIT_S)
        self.addCleanup(server.kill)
        wait_until(lambda: os.path.exists(path), "redis-server")
        wait_until(lambda: set(task_states(server.pid).values()) == {"S"}, "it to be idle")
        before = self.record(server.pid, "before.rec")
        client = subprocess.Popen(["redis-cli", "-s", path, "debug", "sleep", "600"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(client.wait, LIMIT_S)
        self.addCleanup(client.kill)

        def sleeps():
            with open("/proc/%d/syscall" % server.pid) as file:
                return file.read().split()[0] in ("35", "230")  # nanosleep

        wait_until(sleeps, "the command")
        data = self.diff(before, self.record(server.pid, "after.rec"))
        moved, = [t for t in data["threads"] if t["change"] == "moved"]
        self.assertEqual(moved["tid"], server.pid, data)
        self.assertIn("epoll_wait", [f["symbol"] for f in moved["frames_before"]])
        self.assertIn("debugCommand", [f["symbol"] for f in moved["frames"]], moved)
        self.assertGreater(moved["common_frames"], 2)
        self.assertEqual(data["unchanged"], len(data["threads"]) - 1)


if __name__ == "__main__":
    main()
