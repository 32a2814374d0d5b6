"""What the end-to-end tests share: targets that are always ended, snapshots of them, and
the comparison of a stack with the one that its target's first comment promises.

Debian packages: python3, g++, libc6-dev, binutils, xz-utils (the targets); elfutils, gdb, strace,
util-linux (setpriv), nodejs, mariadb-server. With libc6-dbg more names are compared.

Environment: STACKSNAP is the tool, TARGETS the directory of the built targets. Nothing here
waits without a time limit, and no test looks at how long anything took.
"""

import atexit
import functools
import glob
import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

STACKSNAP = os.environ.get("STACKSNAP", "stacksnap")
TARGETS = os.environ.get("TARGETS", ".")


@functools.lru_cache(maxsize=None)
def for_everyone(path):
    """The file, or where other users cannot reach it (below /root) a copy that they can."""
    above = os.path.realpath(path)
    while above != "/":
        above = os.path.dirname(above)
        if not os.stat(above).st_mode & 0o001:
            directory = tempfile.mkdtemp(prefix="stacksnap-")
            atexit.register(shutil.rmtree, directory)
            os.chmod(directory, 0o755)
            return shutil.copy(path, directory)
    return path

MODES = ("stop", "live")
LIMIT_S = 60  # for one step; generous, because build machines are slow and shared


class Library:
    """Frames of the libc or another library: between 0 and most of them, whatever their
    names; never one of the names that the same expected stack says elsewhere."""

    def __init__(self, most=4):
        self.most = most


class Named:
    """A library's frame with one of these names, or none where the library has neither a
    symbol for it nor a separate debug file."""

    def __init__(self, *names):
        self.names = {canonical(name) for name in names}


class AnyOf:
    """A frame with one of these names; None is a frame that has no name."""

    def __init__(self, *names):
        self.names = {canonical(name) for name in names}


def canonical(name):
    """Without what depends on how a libc was built: versions, __GI_, leading underscores,
    and the endings that a compiler gives to parts of functions."""
    if name is None:
        return None
    name = re.sub(r"@.*$", "", name)
    name = re.sub(r"( \[clone [^]]*\]|\.(cold|constprop|part|isra)(\.\d+)?)+$", "", name)
    name = re.sub(r"^(__GI_)?_*(libc_)?", "", name)
    # one function under two names: the exported one, and that of its source
    return {"start_main_impl": "start_main"}.get(name, name)


def has_debug_file(module):
    build_id = module and module["build_id"]
    return bool(build_id) and os.path.exists(
        "/usr/lib/debug/.build-id/%s/%s.debug" % (build_id[:2], build_id[2:]))


THREAD_END = ["target_thread_main", Named("start_thread"), Named("clone3", "clone")]
MAIN_STACK = [Library(1), "target_wait", "main", Named("__libc_start_call_main"),
              Named("__libc_start_main", "__libc_start_main_impl"), "_start"]


def read_text(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def status_field(pid, field):
    match = re.search(r"^%s:\s*(.*)$" % field, read_text("/proc/%d/status" % pid), re.M)
    return match.group(1) if match else None


def task_states(pid):
    """The state letter of each thread; parsed from the last ')' on."""
    states = {}
    for path in glob.glob("/proc/%d/task/*/stat" % pid):
        text = read_text(path)
        if text:
            states[int(path.split("/")[4])] = text[text.rindex(")") + 2]
    return states


def wait_until(condition, what, limit_s=LIMIT_S):
    """Polls; for conditions of other processes, which nothing reports to us."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain for: " + what)
        time.sleep(0.002)


def reads_stdin(pid):
    """Whether a thread sleeps in read(0, ...), system call 0."""
    return any(read_text(path).startswith("0 0x0 ")
               for path in glob.glob("/proc/%d/task/*/syscall" % pid))


class Target:
    """A program that has said "ready"."""

    def __init__(self, command, ready=b"ready\n", **options):
        self.command = command
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, bufsize=0, **options)
        self.pid = self.process.pid
        self.lines = []
        self.rest = b""
        try:
            self._read_until(ready)
        except BaseException:
            self.kill()
            raise

    def _read_until(self, ready):
        deadline = time.monotonic() + LIMIT_S
        text = b""
        while not text.endswith(ready):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise AssertionError("%s is never ready" % self.command)
            byte = self.process.stdout.read(4096)
            if not byte:
                raise AssertionError("%s ended: %r" % (self.command, text))
            text += byte
        self.lines = text[:-len(ready)].decode("utf-8", "replace").splitlines()

    def fact(self, word):
        """The number in the line "word NUMBER" before "ready"."""
        for line in self.lines:
            if line.startswith(word + " "):
                return int(line.split()[1])
        raise AssertionError("%s said no %s: %s" % (self.command, word, self.lines))

    def finish(self):
        """Closes its stdin; returns its exit status and what it wrote at the end."""
        output, _ = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, output.decode("utf-8", "replace")

    def kill(self):
        """Whatever it is: SIGKILL wakes stopped processes too."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(LIMIT_S)
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                stream.close()


class Snapshot:
    """The JSON of one run of the tool."""

    def __init__(self, result):
        self.status = result.returncode
        self.stderr = result.stderr.decode("utf-8", "replace")
        self.data = json.loads(result.stdout.decode("utf-8"))
        self.modules = self.data["modules"]
        self.threads = self.data["threads"]

    def thread(self, key):
        """By tid or by name."""
        field = "tid" if isinstance(key, int) else "name"
        found = [thread for thread in self.threads if thread[field] == key]
        if len(found) != 1:
            raise AssertionError("%d threads have the %s %r; there are %s" % (
                len(found), field, key, [(t["tid"], t["name"]) for t in self.threads]))
        return found[0]

    def module(self, frame):
        return None if frame["module"] is None else self.modules[frame["module"]]

    def frames(self, thread):
        """Without inlined calls that are not in a target's own source."""
        return [frame for frame in thread["frames"]
                if not frame["inlined"] or "/targets/" in (frame["file"] or "")]


def describe(snapshot, thread):
    lines = []
    for index, frame in enumerate(snapshot.frames(thread)):
        module = snapshot.module(frame)
        lines.append("  #%d %s%s%s (%s+%s)" % (
            index, frame["symbol"], " [inlined]" if frame["inlined"] else "",
            " [signal]" if frame["signal_frame"] else "",
            os.path.basename(module["path"]) if module else frame["area"],
            frame["offset"] or frame["pc"]))
    lines.append("  end: %s (%s)" % (thread["end"], thread["reason"]))
    return "\n".join(lines)


def frame_matches(snapshot, frame, wanted):
    name = canonical(frame["symbol"])
    if isinstance(wanted, Named):
        module = snapshot.module(frame)
        return name in wanted.names or (
            name is None and module is not None and not has_debug_file(module))
    if isinstance(wanted, AnyOf):
        return name in wanted.names
    return name == canonical(wanted)


def stack_matches(snapshot, frames, expected):
    own = {canonical(wanted) for wanted in expected if isinstance(wanted, str)}

    def match(at, step):
        while step < len(expected):
            wanted = expected[step]
            if isinstance(wanted, Library):
                for taken in range(wanted.most + 1):
                    if match(at + taken, step + 1):
                        return True
                    if at + taken >= len(frames) or (
                            canonical(frames[at + taken]["symbol"]) in own):
                        return False
                return False
            if at >= len(frames) or not frame_matches(snapshot, frames[at], wanted):
                return False
            at, step = at + 1, step + 1
        return at == len(frames)

    return match(0, 0)


class EndToEnd(unittest.TestCase):
    maxDiff = None

    def start(self, name, *arguments, settle=True, **options):
        """Starts a target; settle: until the thread that said "ready" waits for stdin."""
        command = [os.path.join(TARGETS, name)] + [str(word) for word in arguments]
        target = self.start_command(command, **options)
        if settle:
            wait_until(lambda: reads_stdin(target.pid), name + " to wait")
        return target

    def start_command(self, command, **options):
        target = Target(command, **options)
        self.addCleanup(target.kill)
        return target

    def run_tool(self, *arguments, status=(0,), **options):
        """Runs the tool with these words; its exit status must be one of those."""
        command = [STACKSNAP] + [str(word) for word in arguments]
        options.setdefault("stdin", subprocess.DEVNULL)
        result = subprocess.run(command, timeout=LIMIT_S, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **options)
        if status is not None:
            self.assertIn(result.returncode, status, "%s\n%s\n%s" % (
                command, result.stdout.decode("utf-8", "replace")[:4000],
                result.stderr.decode("utf-8", "replace")[:4000]))
        return result

    def snap(self, pid, *arguments, mode=None, status=(0,), timeout_ms=20000):
        """A snapshot as JSON; the process must be as free afterwards as before."""
        words = ["-f", "json", "--timeout=%d" % timeout_ms]
        if mode:
            words.append("--mode=" + mode)
        snapshot = Snapshot(self.run_tool(*words, *arguments, pid, status=status))
        if mode:
            self.assertEqual(snapshot.data["capture"]["mode"], mode)
        self.assert_free(pid)
        return snapshot

    def assert_free(self, pid, stopped=False):
        """Nobody traces it, and no thread is stopped (or each, where it was before)."""
        self.assertIn(status_field(pid, "TracerPid"), ("0", None))
        for tid, state in task_states(pid).items():
            if stopped:
                self.assertIn(state, "TZX", "thread %d was woken" % tid)
            else:
                self.assertNotIn(state, "tT", "thread %d was left stopped" % tid)

    def assert_stack(self, snapshot, key, expected, end="root"):
        thread = snapshot.thread(key)
        names = [step if isinstance(step, (str, type(None))) else
                 "%s%s" % (type(step).__name__, sorted(map(str, getattr(step, "names", []))))
                 for step in expected]
        if not stack_matches(snapshot, snapshot.frames(thread), expected):
            self.fail("thread %s: expected %s, got\n%s" % (
                key, names if len(names) < 60 else names[:30] + ["..."] + names[-10:],
                describe(snapshot, thread)[:6000]))
        self.assertEqual(thread["end"], end, describe(snapshot, thread)[:6000])
        return thread


def main():
    unittest.main(verbosity=2)
