"""What a case is, and how it is started.

A case is a program, a title, and the truth about it, which was written before anybody looked at what
stacksnap says. A hang has regular expressions of what must be told (who waits, for what, who holds
it), and of what must not; a healthy program has none, and is a false alarm if it is called stuck.

To add a case: append to a family's file. Most families have a function that takes the source text.
The program prints "ready" when it is about to hang; then the runner waits until its threads stand
still. A line "fact NAME VALUE" before it defines {NAME} for the expressions; {pid} is the process."""

import ctypes
import fcntl
import glob
import hashlib
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))

from harness import LIMIT_S, read_text, task_states, task_switches, wait_until  # noqa: E402,F401

PATH = os.environ["PATH"] + ":/usr/sbin:/sbin:/usr/local/sbin"
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
SCRATCH = os.environ.get("VERDICTS_SCRATCH") or "/tmp/stacksnap-verdicts-%d" % os.getuid()
DEADLOCK, ALARM = "deadlock", "alarm"  # the exit status is 3; it is 3 or 4
ALL = []


class Unavailable(Exception):
    """A program that the case needs is not installed."""


class Case:
    def __init__(self, family, title, truth, start, expect=(), never=(), alarm=None, healthy=False,
                 still=True):
        self.family, self.title, self.truth, self.start = family, title, truth, start
        self.expect = [expect] if isinstance(expect, str) else list(expect)
        self.never = [never] if isinstance(never, str) else list(never)
        self.alarm = alarm      # what can be proven or shown
        self.healthy = healthy
        self.still = still      # wait until nothing moves
        if not healthy and not alarm:
            self.never.append(r"DEADLOCK")
        ALL.append(self)


def hang(family, title, truth, start, expect, **options):
    return Case(family, title, truth, start, expect, **options)


def healthy(title, start, still=False):
    return Case("healthy", title, "", start, healthy=True, still=still)


def descendants(pid):
    parents = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        text = read_text(path)
        if text:
            parents.setdefault(int(text.rsplit(")", 1)[1].split()[1]), []).append(
                int(path.split("/")[2]))
    found, left = [], [pid]
    while left:
        for child in parents.get(left.pop(), []):
            found.append(child)
            left.append(child)
    return found


def children(pid):
    return [int(word) for path in glob.glob("/proc/%d/task/*/children" % pid)
            for word in read_text(path).split()]


def find(name):
    found = name if "/" in name and os.path.exists(name) else shutil.which(name, path=PATH)
    if not found:
        raise Unavailable(name + " is not installed")
    return found


def built(name, text, *command):
    """The path of a program. The command compiles {source} to {program}, once for each text."""
    base, _, suffix = name.partition(".")
    key = hashlib.sha1((text + repr(command)).encode()).hexdigest()[:12]
    directory = os.path.join(SCRATCH, base + "-" + key)
    program = os.path.join(directory, base)
    source = os.path.join(directory, name)
    if os.path.exists(os.path.join(directory, "done")):
        return program
    os.makedirs(directory, exist_ok=True)
    lock = os.open(directory, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)  # several cases need the same program
    if os.path.exists(os.path.join(directory, "done")):
        return program
    failed = read_text(os.path.join(directory, "failed"))
    if failed:
        raise AssertionError(failed)
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    names = {"source": source, "program": program, "directory": directory}
    done = subprocess.run([find(command[0])] + [word.format(**names) for word in command[1:]],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, cwd=directory,
                          timeout=10 * LIMIT_S, check=False)
    if done.returncode:
        with open(os.path.join(directory, "failed"), "w", encoding="utf-8") as file:
            file.write("%s: %s" % (source, done.stdout[:4000]))
        raise AssertionError(read_text(file.name))
    with open(os.path.join(directory, "done"), "w", encoding="utf-8"):
        pass
    return program


class Lab:
    """Where a case runs: a directory, and processes, which all end with it."""

    def __init__(self):
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans become ours
        self.directory = tempfile.mkdtemp(prefix="verdict-", dir="/tmp")
        os.chmod(self.directory, 0o755)
        self.facts = {}
        self.logs = 0
        self.keep = []   # what must stay open

    def __enter__(self):
        return self

    def __exit__(self, *_):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            left = descendants(os.getpid())
            if not left:
                break
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                pass
            time.sleep(0.01)
        for line in read_text("/proc/self/mounts").splitlines():
            if line.split()[1].startswith(self.directory + "/"):
                ctypes.CDLL(None).umount2(line.split()[1].encode(), 2)  # MNT_DETACH
        shutil.rmtree(self.directory, ignore_errors=True)

    def path(self, name, text=None):
        path = os.path.join(self.directory, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def port(self):
        with socket.create_server(("127.0.0.1", 0)) as one:
            return one.getsockname()[1]

    def fifo(self, name="fifo"):
        path = self.path(name)
        if not os.path.exists(path):
            os.mkfifo(path)
        return path

    def run(self, *words, ready="ready", **options):
        """Starts a program, and waits until it has printed that line."""
        self.logs += 1
        log = self.path("log%d" % self.logs, "")
        env = dict(os.environ, PATH=PATH, HOME=self.directory, LC_ALL="C.UTF-8",
                   PYTHONDONTWRITEBYTECODE="1", **options.pop("env", {}))
        options.setdefault("stdin", subprocess.PIPE)
        with open(log, "w", encoding="utf-8") as file:
            process = subprocess.Popen([find(words[0])] + [str(word) for word in words[1:]],
                                       stdout=file, stderr=subprocess.STDOUT, env=env,
                                       cwd=options.pop("cwd", self.directory),
                                       start_new_session=True, **options)
        process.log = log
        self.keep.append(process)
        if ready is not None:
            self.await_text(process, ready)
        return process

    def await_text(self, process, ready):
        def printed():
            if process.poll() is not None:
                raise AssertionError("ended with %s: %s" % (
                    process.returncode, read_text(process.log)[-1500:]))
            return re.search(ready, read_text(process.log), re.M)
        wait_until(printed, "%r: %s" % (ready, read_text(process.log)[-500:]))
        self.read_facts()

    def read_facts(self):
        for process in self.keep:
            for name, value in re.findall(r"^fact (\w+) (\S+)$", read_text(getattr(process, "log", "")), re.M):
                self.facts[name] = value

    def shell(self, script, ready=None, **options):
        return self.run("sh", "-c", script, ready=ready, **options)

    def command(self, *words, **options):
        """Runs a command to its end; returns its output."""
        done = subprocess.run([find(words[0])] + [str(word) for word in words[1:]],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=2 * LIMIT_S,
                              check=False, **{"cwd": self.directory, **options})
        if done.returncode:
            raise AssertionError("%s: %s" % (shlex.join(words), done.stdout[-1500:]))
        return done.stdout


def child_named(pid, name):
    """Waits for a process, or a descendant, whose name begins with that; returns its pid."""
    found = []

    def there():
        found[:] = [one for one in [pid] + descendants(pid)
                    if read_text("/proc/%d/comm" % one).startswith(name)]
        return found
    wait_until(there, "a process " + name)
    return min(found)


def stands_still(pid, limit_s=20):
    """Waits until hardly any thread of a process has run for a quarter of a second: timers of
    runtimes do."""
    deadline = time.monotonic() + limit_s
    before = task_switches(pid)
    while time.monotonic() < deadline:
        time.sleep(0.25)
        after = task_switches(pid)
        moved = [tid for tid in after if after[tid] != before.get(tid)]
        running = [tid for tid in after if after[tid][:1] == ["R"]]
        if not running and len(moved) <= len(after) // 4 and set(after) == set(before):
            return True
        before = after
    return False
