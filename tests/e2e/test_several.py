"""Several processes at once: how they are selected, what happens to those that cannot be shown,
hang and record of several."""
# ctest: long-with-sanitizers

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from harness import EndToEnd, TARGETS, main, read_text, reads_stdin, wait_until

GONE = 2 ** 22 + 1  # above the largest pid


def children(pid):
    return [int(word) for word in read_text("/proc/%d/task/%d/children" % (pid, pid)).split()]


class Several(EndToEnd):
    def setUp(self):
        super().setUp()
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        self.name = "nap-%d" % os.getpid()
        self.program = os.path.join(self.directory, self.name)
        shutil.copy(shutil.which("sleep"), self.program)

    def nap(self):
        process = subprocess.Popen([self.program, "1000"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_until(lambda: read_text("/proc/%d/comm" % process.pid) == self.name + "\n",
                   "it to start")
        return process.pid

    def pids(self, *arguments, status=(0,)):
        result = self.run_tool("-f", "json", *arguments, status=status)
        return [json.loads(line)["process"]["pid"] for line in result.stdout.splitlines()]

    def test_names_and_lists(self):
        pids = [self.nap(), self.nap()]
        self.assertEqual(self.pids("--name=^%s$" % self.name), pids)
        self.assertEqual(self.pids(*reversed(pids)), list(reversed(pids)))
        self.assertEqual(self.pids(pids[1], "--name=" + self.name), [pids[1], pids[0]])

    def test_job(self):
        """A process and what it has started under the same name are one job."""
        shell = os.path.join(self.directory, "job-%d" % os.getpid())
        shutil.copy(shutil.which("sh"), shell)
        process = subprocess.Popen([shell, "-c", "(sleep 1000; :) & (sleep 1000; :) & wait; :"],
                                   start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(os.killpg, process.pid, signal.SIGKILL)

        def execute(pids):
            """Until then they have the name of the shell."""
            return pids and all(read_text("/proc/%d/comm" % pid) == "sleep\n" for pid in pids)

        wait_until(lambda: len(children(process.pid)) == 2 and
                   all(execute(children(child)) for child in children(process.pid)), "them to start")
        name = os.path.basename(shell)
        self.assertEqual(self.pids(name), [process.pid] + sorted(children(process.pid)))
        other = subprocess.Popen([shell, "-c", "sleep 1000; :"], start_new_session=True)
        self.addCleanup(other.wait)
        self.addCleanup(os.killpg, other.pid, signal.SIGKILL)
        wait_until(lambda: execute(children(other.pid)), "it to start")
        result = self.run_tool(name, status=(2,))
        self.assertIn(b"4 processes are named", result.stderr)

    def test_tree(self):
        shell = subprocess.Popen(["sh", "-c", "(%s 1000 & %s 1000 & wait) & wait; :" %
                                  (self.program, self.program)], start_new_session=True)
        self.addCleanup(shell.wait)
        self.addCleanup(os.killpg, shell.pid, signal.SIGKILL)
        wait_until(lambda: len([1 for child in children(shell.pid)
                                for _ in children(child)]) == 2, "them to start")
        child, = children(shell.pid)
        self.assertEqual(self.pids("--tree", shell.pid),
                         [shell.pid, child] + sorted(children(child)))

    def test_cgroup(self):
        pid = self.nap()
        lines = [line.split(":", 2)[2] for line in
                 read_text("/proc/self/cgroup").splitlines()]
        path = next((line for line in lines if line != "/"), None)
        if not path or ".." in path:
            self.skipTest("this process is in no cgroup")
        result = self.run_tool("modules", pid)
        self.assertIn(b"libc", result.stdout)
        for options in (("--cgroup=" + path,), ("--cgroup=" + path + "/",)):
            # other tests start and end processes there
            self.assertIn(pid, self.pids("--mode=no-stop", "--timeout=200", *options,
                                         status=(0, 1)))
        result = self.run_tool("--cgroup=/no-such-cgroup", status=(2,))
        self.assertIn(b"no process is in the cgroup /no-such-cgroup", result.stderr)

    def test_pid_files(self):
        pids = [self.nap(), self.nap()]
        files = [os.path.join(self.directory, "pid%d" % i) for i in range(2)]
        for path, pid in zip(files, pids):
            with open(path, "w") as file:
                file.write("%d\n" % pid)
        self.assertEqual(self.pids(*("--pid-file=" + path for path in files)), pids)
        with open(files[0], "w"):
            pass
        result = self.run_tool("-f", "json", "--pid-file=" + files[0], status=(2,))
        self.assertIn(b"there is no pid in " + files[0].encode(), result.stderr)
        os.remove(files[0])
        result = self.run_tool("-f", "json", *("--pid-file=" + path for path in files),
                               status=(1,))
        self.assertIn(b"there is no file " + files[0].encode(), result.stderr)
        self.assertEqual(json.loads(result.stdout)["process"]["pid"], pids[1])

    def test_merged(self):
        """Equal stacks of several processes are one group; each process has its command line."""
        targets = [self.start("deadlock") for _ in range(3)]
        other = self.nap()
        text = self.run_tool(other, GONE, *(target.pid for target in targets),
                             status=(1,)).stdout.decode()
        self.assertRegex(text, r"^4 processes, 1[0-9] threads, ")
        for target in targets:
            self.assertRegex(text, r"\n +%d [^\n]*/deadlock\n" % target.pid)
            self.assertIn("\nin deadlock, pid %d:\nDEADLOCK: 2 threads wait for each other in a "
                          "cycle" % target.pid, text)
        self.assertRegex(text, r"\n +%d %s 1000\n" % (other, re.escape(self.program)))
        self.assertRegex(text, r"\n6 threads in 3 of 4 processes, sleeping: locker-\* \d+")
        self.assertRegex(text, r"\n3 threads in 3 of 4 processes, sleeping: behind-0 \d+")
        self.assertEqual(text.count("take_next"), 2 * 3 + 1, text)
        apart = self.run_tool("--no-group", *(target.pid for target in targets)).stdout.decode()
        self.assertEqual(apart.count("\ndeadlock, pid"), 2, apart)

    def test_deadlock_of_several(self):
        """A cycle through several processes is shown once."""
        directory = self.enterContext(tempfile.TemporaryDirectory())
        target = self.start("processes", "mutex", directory, settle=False)
        child = target.fact("child-pid")
        for pid in (target.pid, child):
            wait_until(lambda: read_text("/proc/%d/syscall" % pid).startswith("202 "), "futex")
        for words in ((target.pid, child), ("--tree", target.pid)):
            for _ in range(20):  # on a busy machine threads may be on the way back to their calls
                text = self.run_tool(*words, status=(0, 1)).stdout.decode()
                if "DEADLOCK" in text:
                    break
            self.assertEqual(text.count("DEADLOCK: 2 threads of several processes"), 1, text)

    @unittest.skipUnless(os.geteuid() == 0, "only root starts processes of others")
    def test_owners(self):
        """Processes of different owners are interpreted apart."""
        pids = [self.nap()]
        os.chmod(self.directory, 0o755)
        other = subprocess.Popen(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                  self.program, "1001"])
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        wait_until(lambda: read_text("/proc/%d/comm" % other.pid) == self.name + "\n", "exec")
        pids += [self.nap(), other.pid]
        text = self.run_tool(*pids).stdout.decode()
        self.assertRegex(text, r"^2 processes, 2 threads")
        self.assertRegex(text, r"\n%s, pid %d, " % (self.name, other.pid))

    def test_gone(self):
        """The others are shown."""
        pid = self.nap()
        result = self.run_tool(GONE, pid, status=(1,))
        self.assertIn(b"there is no process %d" % GONE, result.stderr)
        self.assertIn(b"pid %d," % pid, result.stdout)
        self.run_tool(GONE, GONE + 1, status=(2,))

    def test_at(self):
        pid = self.nap()
        at = time.time() + 1
        snapshot = json.loads(self.run_tool("-f", "json", "--at=@%.3f" % at, pid).stdout)
        self.assertGreaterEqual(snapshot["capture"]["time_ns"], int(at * 1000) * 1000000)

    def test_hang(self):
        """Each has a report, in the order of the arguments; the worst status counts."""
        first = self.nap()
        locked = self.start("deadlock")
        last = self.nap()
        pids = [first, locked.pid, last]
        result = self.run_tool("hang", "--for=200ms", "-f", "json", *pids, status=(3,))
        reports = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual([(report["process"]["pid"], report["verdict"]) for report in reports],
                         list(zip(pids, ("idle", "deadlock", "idle"))))
        result = self.run_tool("hang", "--for=100ms", *pids, status=(3,))
        self.assertRegex(result.stdout.decode(), r"^deadlock, pid %d: deadlock\n(?s:.*)\n\n2 processes are idle: "
                         r"%d \(%s\), %d \(%s\)\n$" % (locked.pid, first, self.name, last, self.name))
        result = self.run_tool("hang", "--for=100ms", first, GONE, last, status=(1,))
        self.assertRegex(result.stdout.decode(), "^2 processes are idle: ")
        self.assertIn(b"there is no process %d" % GONE, result.stderr)

    def test_hang_missing(self):
        """Which names are missing is said once, below all reports; a file of its own has a line of its own."""
        program = os.path.join(self.directory, "stripped")
        subprocess.run(["strip", "-o", program, os.path.join(TARGETS, "deadlock")], check=True)
        pids = [self.start_command([program]).pid, self.nap(), self.start_command([program]).pid]
        for pid in pids[::2]:
            wait_until(lambda: reads_stdin(pid), "it to wait")
        expected = r"\nmissing: names in [^;]*\bstripped \([^()\n]+\)(, [^;]*)?, or use --debuginfod\n$"
        pattern = os.path.join(self.directory, "%p")
        self.run_tool("hang", "--for=100ms", "-o", pattern, *pids, status=(3,))
        for pid in pids[::2]:
            self.assertRegex(read_text(os.path.join(self.directory, str(pid))), expected)
        text = self.run_tool("hang", "--for=100ms", *pids, status=(3,)).stdout.decode()
        self.assertEqual(text.count(": deadlock\n"), 2, text)
        self.assertRegex(text, r"\n\n1 process is idle: [^\n]*\n" + expected)
        self.assertEqual((text.count("missing:"), text.count(" stripped (")), (1, 1), text)

    def test_record(self):
        """Each gets a file of its own."""
        pids = [self.nap(), self.nap()]
        pattern = os.path.join(self.directory, "%p.rec")
        self.run_tool("record", "-d", "300ms", "-o", pattern, "--name=" + self.name)
        for pid in pids:
            result = self.run_tool("report", os.path.join(self.directory, "%d.rec" % pid))
            self.assertRegex(result.stdout.decode(), r"%s.*\b%d\b" % (re.escape(self.name), pid))
        result = self.run_tool("record", "-d", "300ms", "-o", os.path.join(self.directory, "x"),
                               *pids, status=(64,))
        self.assertIn(b"use -o FILE%p", result.stderr)


if __name__ == "__main__":
    main()
