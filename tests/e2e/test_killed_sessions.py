"""A series, a recording, top and trace --alloc are killed with SIGKILL, or one of their child
processes is, at random moments. The process continues and no call of it returns EINTR; no process
of the tool is left, and nothing in the kernel.

STACKSNAP_TRIES=60 kills that often each, STACKSNAP_SEED=N selects other moments."""
# ctest: release-only timeout=300 tries=60

import ctypes
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "survive"))

from harness import (EndToEnd, LIMIT_S, STACKSNAP, main, open_terminal, read_text, wait_until)  # noqa: E402
from fates import seeded, tries  # noqa: E402
from killing import is_free  # noqa: E402

KINDS = {
    "series": ["--no-cache", "--interval=5ms"],
    "record": ["record", "-r", "999", "-o", "recording"],
    "on-cpu": ["record", "--on-cpu", "-r", "999", "-o", "recording"],
    "top": ["top", "-r", "499"],
    "alloc": ["trace", "--alloc=4096"],
}
RECORDERS = ("record", "on-cpu", "top")  # they load programs into the kernel, for Python
PYTHON = """
import sys, threading
end = threading.Event()
def square(n):
    return sum(i * i for i in range(n))
def work(n):
    while not end.wait(n % 7 / 1000):
        square(n)
for n in range(100, 140):
    threading.Thread(target=work, args=(n,)).start()
print("ready", flush=True)
sys.stdin.read()
end.set()
"""
SYS_BPF = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
PROGRAM_NEXT, MAP_NEXT = 11, 12
FIRST_S, LATER_S = 0.04, 0.4  # half of the kills are in the first capture


def running(path):
    """The processes of this program that have not ended."""
    pids = []
    for link in glob.glob("/proc/[0-9]*/exe"):
        try:
            if os.readlink(link) == path:
                pids.append(int(link.split("/")[2]))
        except OSError:
            pass
    return pids


def loaded():
    """The programs and maps in the kernel: none that may not be listed."""
    libc = ctypes.CDLL(None)
    found = set()
    for command in (PROGRAM_NEXT, MAP_NEXT):
        attributes = (ctypes.c_uint32 * 32)()  # after the first element, the kernel writes the next id
        while libc.syscall(SYS_BPF, command, attributes, ctypes.sizeof(attributes)) == 0:
            attributes[0] = attributes[1]
            found.add((command, attributes[0]))
    return found


def cpu_ticks(pid):
    text = read_text("/proc/%d/stat" % pid)
    return sum(map(int, text[text.rindex(")"):].split()[12:14]))


class KilledSessions(EndToEnd):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        self.tool = shutil.copy(STACKSNAP, self.directory)  # a program of its own
        self.generator = seeded()
        self.loaded = loaded()
        self.addCleanup(self.kill_all)

    def kill_all(self):
        for pid in running(self.tool):
            os.kill(pid, signal.SIGKILL)

    def begin(self, kind, pid):
        """Starts the tool; top needs a terminal."""
        main_end, other_end = open_terminal(self)
        tool = subprocess.Popen([self.tool, *KINDS[kind], str(pid)], stdin=other_end,
                                stdout=other_end if kind == "top" else subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, cwd=self.directory,
                                env={**os.environ, "TERM": "xterm"}, start_new_session=True)
        os.close(other_end)
        return tool, main_end

    def shoot(self, kind, pid):
        """Kills the tool or one of its children. Returns what was killed."""
        tool, terminal = self.begin(kind, pid)
        span_s = self.generator.choice((FIRST_S, LATER_S))
        time.sleep(self.generator.uniform(0, span_s))  # a random moment
        found = running(self.tool)
        if kind == "series" and self.generator.random() < 0.5:
            tool.send_signal(signal.SIGINT)  # then a child interprets what was captured
            while found == [tool.pid]:
                found = running(self.tool)
        children = [pid for pid in found if pid != tool.pid]
        victim = self.generator.choice(children) if children and self.generator.random() < 0.5 else tool.pid
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:  # a child that had ended
            pass
        if victim != tool.pid:
            time.sleep(self.generator.uniform(0, FIRST_S))  # likewise
            tool.send_signal(signal.SIGINT)
        try:
            status = tool.wait(LIMIT_S)
        finally:
            os.close(terminal)
        if victim != tool.pid:
            self.assertIn(status, (0, 1, 2, -signal.SIGINT), kind)
        wait_until(lambda: not running(self.tool), "the processes of %s to end" % kind)
        self.assertTrue(is_free(pid, LIMIT_S), "%s left the process stopped or traced" % kind)
        for name in os.listdir(self.directory):
            if name.startswith("recording"):
                os.unlink(os.path.join(self.directory, name))
        self.check_kernel(kind)
        return "the tool" if victim == tool.pid else "a child"

    def check_kernel(self, kind):
        """Programs that other tests have loaded by now will be gone, too."""
        left = loaded() - self.loaded
        wait_until(lambda: not left & loaded(), "the programs of %s to be unloaded" % kind)

    def check(self, kind):
        sleeps = self.start("eintr")
        runs = self.start("busy", 4, 20, settle=False)
        python = self.start_command([sys.executable, "-c", PYTHON])
        targets = (sleeps, runs, python) if kind in RECORDERS else (sleeps, runs)
        killed = {}
        for _ in range(tries(2)):
            for target in targets:
                what = self.shoot(kind, target.pid)
                killed[what] = killed.get(what, 0) + 1
            ticks = cpu_ticks(python.pid)
            wait_until(lambda: cpu_ticks(python.pid) > ticks, "Python to run on")
        self.assertEqual(python.finish()[0], 0)
        status, output = sleeps.finish()
        self.assertEqual(status, 0, output)
        for line in output.splitlines():
            name, eintrs, others, limit = line.split()
            if limit != "missing":
                self.assertEqual((name, eintrs, others), (name, "0", "0"), killed)
        print(kind, killed, file=sys.stderr)
        if tries(2) >= 60:  # of a few, all may be the tool
            self.assertEqual(set(killed), {"the tool", "a child"})


def add_test(kind):
    setattr(KilledSessions, "test_" + kind.replace("-", "_"), lambda self: self.check(kind))


for each in KINDS:
    add_test(each)


if __name__ == "__main__":
    main()
