"""What the end-to-end tests share: targets that are always killed at the end, snapshots of
them, and the comparison of stacks with those in the top comment of the target.

Debian packages: python3, g++, libc6-dev, binutils, xz-utils (the targets); elfutils, gdb, strace,
util-linux (setpriv), nodejs, mariadb-server. With libc6-dbg more names are compared.

Environment: STACKSNAP is the tool, TARGETS the directory of the built targets. Nothing here
waits without a time limit, and no test looks at how long anything took.
"""

import atexit
import base64
import ctypes
import functools
import glob
import gzip
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
    """The file, or a copy if other users cannot access it, as below /root."""
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
READ = {"x86_64": "0", "aarch64": "63"}[os.uname().machine]  # the number of read(2)
# For one step; generous, because build machines are slow and shared.
LIMIT_S = int(os.environ.get("LIMIT_S", "60"))

# Takes a CPU from all others but for a twentieth of the time, and ends by itself after a minute.
HOG = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
print("ready", flush=True)
end = time.monotonic() + 60
while time.monotonic() < end:
    pass
"""


class Library:
    """At most `most` frames of libc or another library. Any name matches, except those that are
    elsewhere in the same expected stack."""

    def __init__(self, most=4):
        self.most = most


class Named:
    """A frame of a library with one of these names; without a name if the library has
    neither a symbol nor a separate debug file."""

    def __init__(self, *names):
        self.names = {canonical(name) for name in names}


class AnyOf:
    """A frame with one of these names; None: without a name."""

    def __init__(self, *names):
        self.names = {canonical(name) for name in names}


def canonical(name):
    """Removes what depends on the build of a libc: versions, __GI_, leading underscores, and
    suffixes of parts of functions."""
    if name is None:
        return None
    name = re.sub(r"@.*$", "", name)
    name = re.sub(r"( \[clone [^]]*\]|\.(cold|constprop|part|isra)(\.\d+)?)+$", "", name)
    name = re.sub(r"^(__GI_)?_*(libc_)?", "", name)
    # the exported name and the source name of the same function
    return {"start_main_impl": "start_main", "syscall_cancel_arch_end": "syscall_cancel_arch",
            "thread_start": "clone", "kernel_rt_sigreturn": "restore_rt"}.get(name, name)


def has_debug_file(module):
    build_id = module and module["build_id"]
    return bool(build_id) and os.path.exists(
        "/usr/lib/debug/.build-id/%s/%s.debug" % (build_id[:2], build_id[2:]))


@functools.lru_cache(maxsize=None)
def libc_has_debug_file():
    """Whether the debug file of the libc is installed. Without it, functions of the libc that
    are not exported have no names, and some waits cannot be recognised."""
    found = re.search(r" (/\S+/libc[.-]\S*)$", read_text("/proc/self/maps"), re.M)
    if not found:
        return False
    notes = subprocess.run(["readelf", "-n", found.group(1)], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True).stdout
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)
    return bool(build_id) and has_debug_file({"build_id": build_id.group(1)})


def open_terminal(test):
    """A pair of descriptors of a pseudoterminal; skips the test if there is no devpts."""
    try:
        return os.openpty()
    except OSError as error:
        return test.skipTest("no pseudoterminal: %s" % error)


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
    """The state letter of each thread, which follows the last ')'."""
    states = {}
    for path in glob.glob("/proc/%d/task/*/stat" % pid):
        text = read_text(path)
        if text:
            states[int(path.split("/")[4])] = text[text.rindex(")") + 2]
    return states


def task_switches(pid):
    """The state and the numbers of context switches of each thread."""
    fields = ("State:", "voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:")
    return {path.split("/")[4]: [line.split()[1] for line in read_text(path).splitlines()
                                 if line.startswith(fields)]
            for path in glob.glob("/proc/%d/task/*/status" % pid)}


def all_sleep(pid, count):
    """Whether a process has that many threads, and all of them sleep at one moment. One reading
    does not show that: threads that hand a lock to one another may each be seen asleep."""
    before = task_switches(pid)
    return (len(before) == count and all(fields[:1] == ["S"] for fields in before.values()) and
            task_switches(pid) == before)


def wait_until(condition, what, limit_s=LIMIT_S):
    """Polls a condition of another process, because nothing signals it: the longer that takes, the
    less often."""
    start = time.monotonic()
    while not condition():
        waited = time.monotonic() - start
        if waited > limit_s:
            raise AssertionError("timeout while waiting for " + what)
        time.sleep(min(0.002 + waited / 20, 0.05))


def reads_stdin(pid):
    """Whether a thread sleeps in read(0, ...), system call 0."""
    return any(read_text(path).startswith(READ + " 0x0 ")
               for path in glob.glob("/proc/%d/task/*/syscall" % pid))


@functools.lru_cache(maxsize=None)
def makes_namespaces():
    """Whether unshare(1) can make mount and pid namespaces: not in a chroot whose root directory
    is no mount point."""
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"],
                          stderr=subprocess.DEVNULL, timeout=LIMIT_S).returncode == 0


class UnopenedFifo:
    """A FIFO whose writer waits until somebody opens it for reading, which nobody may do."""

    def __init__(self, test, path):
        self.path = path
        os.mkfifo(path)
        self.writer = subprocess.Popen(["sh", "-c", 'echo whole >"$0"', path])
        test.addCleanup(self.writer.wait, LIMIT_S)
        test.addCleanup(self.writer.kill)
        pid = self.writer.pid
        wait_until(lambda: read_text("/proc/%d/comm" % pid) == "sh\n" and
                   task_states(pid)[pid] == "S", "the writer to wait")

    def was_left_alone(self):
        """Whether the writer still waits: then it writes as soon as this opens the FIFO."""
        reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self.writer.wait(LIMIT_S)
        text = os.read(reader, 10)
        os.close(reader)
        return text == b"whole\n"


class Target:
    """A program that has printed "ready"."""

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
        raise AssertionError("%s printed no %s: %s" % (self.command, word, self.lines))

    def finish(self):
        """Closes its stdin; returns its exit status and its last output."""
        output, _ = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, output.decode("utf-8", "replace")

    def kill(self):
        """SIGKILL also ends stopped processes."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(LIMIT_S)
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                stream.close()


# The functions that glibc has since 2.41 below each call that can be cancelled
CANCELLATION = [] if tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split("."))) < (2, 41) else [
    "syscall_cancel_arch", "internal_syscall_cancel", "syscall_cancel"]


class Snapshot:
    """The JSON of one run of the tool."""

    def __init__(self, result):
        self.status = result.returncode
        self.stderr = result.stderr.decode("utf-8", "replace")
        self.data = json.loads(result.stdout)
        self.modules = self.data["modules"]
        self.threads = self.data["threads"]
        for thread in self.threads:
            thread["all_frames"] = thread["frames"]
            thread["frames"] = thread["frames"] and [frame for frame in thread["frames"] if canonical(
                frame["symbol"]) not in CANCELLATION]

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
        """Omits inlined calls outside of the sources of targets."""
        return [frame for frame in thread["frames"]
                if not frame["inlined"] or "/targets/" in (frame["file"] or "")]



def may_load_programs():
    """Whether bpf(2) is allowed: programs that copy memory with the samples of the CPUs."""
    attributes = (ctypes.c_uint32 * 32)(2, 4, 8, 1)  # an array with one element
    libc = ctypes.CDLL(None, use_errno=True)
    number = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
    fd = libc.syscall(number, 0, attributes, ctypes.sizeof(attributes))
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def snapshot_of(pid, *options):
    """The document, whatever the status."""
    done = subprocess.run([STACKSNAP, "-f", "json", "-n", "0", *options, str(pid)],
                          capture_output=True, timeout=LIMIT_S, check=False)
    if not done.stdout:
        raise AssertionError(f"no output, status {done.returncode}: {done.stderr.decode()}")
    return Snapshot(done).data


def report_stacks(path, *options):
    """Of the samples of a recording: the thread, the frames from the innermost one on, the count."""
    done = subprocess.run([STACKSNAP, "report", "-f", "json", *options, path], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=LIMIT_S, check=False)
    if done.returncode not in (0, 1):
        raise AssertionError(done.stderr.decode())
    report = json.loads(done.stdout)
    found = []
    for sample in report["samples"]:
        frames, call = [], sample["call"]
        while call is not None:
            call, frame = report["calls"][call]
            frames.append(report["frames"][frame])
        found.append((report["threads"][sample["thread"]], frames, sample["count"]))
    return found


def recorded_names(pid):
    """The names of the threads of a process in a recording, by tid."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "recording")
        subprocess.run([STACKSNAP, "record", "-d", "300ms", "-o", path, str(pid)], timeout=LIMIT_S,
                       capture_output=True, check=True)
        done = subprocess.run([STACKSNAP, "report", "--json", path], timeout=LIMIT_S, capture_output=True,
                              check=False)
        return {thread["tid"]: thread["name"] for thread in json.loads(done.stdout)["threads"]}


def report_formats(path):
    """The text of each format of reports; that of pprof and the data of html decompressed."""
    for name in ("text", "html", "folded", "speedscope", "pprof", "perf", "json"):
        done = subprocess.run([STACKSNAP, "report", "-f", name, "-o", "-", path],
                              stdout=subprocess.PIPE, timeout=LIMIT_S, check=False)
        data = done.stdout
        if name == "html":
            data = base64.b64decode(re.search(rb'id="data"[^>]*>([^<]*)', data).group(1))
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        yield name, data.decode("utf-8", "replace")


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
        """Starts a target. With settle, waits until the thread that printed "ready" reads
        stdin."""
        command = [os.path.join(TARGETS, name)] + [str(word) for word in arguments]
        target = self.start_command(command, **options)
        if settle:
            wait_until(lambda: reads_stdin(target.pid), name + " to wait")
        return target

    def need_namespaces(self):
        if os.geteuid() != 0:
            self.skipTest("only root can create mount and pid namespaces")
        if not makes_namespaces():
            self.skipTest("mount and pid namespaces cannot be made here (in a chroot)")

    def start_command(self, command, **options):
        target = Target(command, **options)
        self.addCleanup(target.kill)
        return target

    def run_tool(self, *arguments, status=(0,), tool=STACKSNAP, **options):
        """Runs the tool with these arguments; its exit status must be one of status."""
        command = [tool] + [str(word) for word in arguments]
        options.setdefault("stdin", subprocess.DEVNULL)
        result = subprocess.run(command, timeout=LIMIT_S, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **options)
        if status is not None:
            self.assertIn(result.returncode, status, "%s\n%s\n%s" % (
                command, result.stdout.decode("utf-8", "replace")[:4000],
                result.stderr.decode("utf-8", "replace")[:4000]))
        return result

    def snap(self, pid, *arguments, mode=None, status=(0,), timeout_ms=20000):
        """A snapshot as JSON; afterwards nothing may be traced or stopped."""
        words = ["-f", "json", "--timeout=%d" % timeout_ms]
        if mode:
            words.append("--mode=" + mode)
        snapshot = Snapshot(self.run_tool(*words, *arguments, pid, status=status))
        if mode:
            self.assertEqual(snapshot.data["capture"]["mode"], mode)
        self.assert_free(pid)
        return snapshot

    def assert_free(self, pid, stopped=False):
        """The process has no tracer, and no thread is stopped; with stopped, all threads still
        are."""
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
