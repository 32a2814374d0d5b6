"""What a situation starts: a process, the calls that each of its threads stands in, and
what it takes to end it. Places that are left behind (files, mounts) belong to a Lab."""

import contextlib
import ctypes
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

from harness import (TARGETS, Target, read_text, reads_stdin, task_states,  # noqa: E402
                     wait_until)

CLONE_NEWNS = 0x20000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
SYS_PIVOT_ROOT = 155  # x86-64

libc = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """The situation cannot be made here, and why."""


class Subject:
    """
    A process to look at. chains: for a thread's name (a pattern) or id the names of its
    functions, innermost first, as they must follow each other somewhere in its stack; each
    is a string or a compiled pattern. wrong: a pattern of names that must not appear.
    stopped: it is stopped by a signal. pid: if it is not that of target. prefix: what the
    tool is started by. says: a pattern of what stacksnap must say where it may not, or
    cannot, read the stacks.
    """

    def __init__(self, target, chains, wrong=None, stopped=False, pid=None, prefix=(),
                 says=None):
        self.target = target
        self.pid = pid or target.pid
        self.prefix = list(prefix)
        self.says = says
        self.wrong = re.compile(wrong) if wrong else None
        self.stopped = stopped
        self.threads = {}
        for tid in task_states(self.pid):
            name = read_text("/proc/%d/task/%d/comm" % (self.pid, tid)).rstrip("\n")
            for wanted, chain in chains.items():
                if wanted == tid or (isinstance(wanted, str) and re.fullmatch(wanted, name)):
                    self.threads[tid] = chain
        if len(self.threads) < len(chains):
            raise AssertionError("of the threads %s only these are there: %s" % (
                list(chains), sorted(self.threads)))

    def states(self):
        return set(task_states(self.pid).values())


class Lab(contextlib.ExitStack):
    """What one situation makes, and removes at the end of a with block."""

    def __init__(self):
        super().__init__()
        self.directory = None

    def __enter__(self):
        super().__enter__()
        self.directory = tempfile.mkdtemp(prefix="stacksnap-survive-")
        self.callback(shutil.rmtree, self.directory, ignore_errors=True)
        return self

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def start(self, name, *arguments, settle=True, **options):
        """One of the built targets; settle: until a thread of it waits for stdin."""
        return self.start_file(os.path.join(TARGETS, name), *arguments, settle=settle,
                               **options)

    def start_file(self, *command, settle=True, **options):
        target = Target([str(word) for word in command], **options)
        self.callback(target.kill)
        if settle:
            wait_until(lambda: reads_stdin(target.pid), "%s to wait" % (command,))
        return target

    def copy(self, name, *place):
        """A built file, at a place in here; as cp does, so that it is a new file."""
        path = self.path(*place)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(os.path.join(TARGETS, name), path)
        return path

    def replace(self, name, *place):
        """Another file at that path, as a package manager does it: under the old name."""
        new = self.copy(name, *(place[:-1] + (place[-1] + ".new",)))
        os.rename(new, self.path(*place))

    def run(self, command):
        """A program that goes on beside the target, such as a tracer of it."""
        process = subprocess.Popen(command, stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.callback(process.wait)
        self.callback(process.kill)
        self.callback(process.stdin.close)
        return process


def need_root():
    if os.geteuid() != 0:
        raise Unavailable("mount namespaces are for root only")


def need(program):
    if not shutil.which(program):
        raise Unavailable("%s is not installed" % program)
    return program


def must(result):
    if result != 0:
        errnum = ctypes.get_errno()
        raise OSError(errnum, os.strerror(errnum))


def own_mounts(root):
    """A mount namespace with /proc below root. For a child, before its exec."""
    must(libc.unshare(CLONE_NEWNS))
    must(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))
    must(libc.mount(root, root, None, MS_BIND | MS_REC, None))
    must(libc.mount(b"proc", root + b"/proc", b"proc", 0, None))


def pivot_into(root):
    """For preexec_fn: nothing of the old root is left."""
    root = os.fsencode(root)

    def enter():
        own_mounts(root)
        os.chdir(root)
        # the new root over the old one, and the old one away from under it
        must(libc.syscall(SYS_PIVOT_ROOT, b".", b"."))
        must(libc.umount2(b".", MNT_DETACH))
        os.chdir("/")

    return enter


def chroot_into(root):
    root = os.fsencode(root)

    def enter():
        own_mounts(root)
        os.chroot(root)
        os.chdir("/")

    return enter


def libraries_of(program):
    """The files that it is loaded with, the loader among them."""
    text = subprocess.run(["ldd", program], stdout=subprocess.PIPE, check=True,
                          text=True).stdout
    return re.findall(r"(/\S+) \(0x", text)


def make_root(root, program, files):
    """A root directory for program with its libraries, and with files (path: source)."""
    os.makedirs(os.path.join(root, "proc"))
    for library in libraries_of(program):
        files = {**files, library: library}
    for path, source in files.items():
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        shutil.copy(source, root + path)


def blow_up(path, size):
    """Moves what is not loaded (symbols, section headers) to the end of a sparse file of
    more than that size."""
    with open(path, "r+b") as file:
        data = bytearray(file.read())
        table, = struct.unpack_from("<Q", data, 40)
        entry, count = struct.unpack_from("<HH", data, 58)
        headers = [table + entry * index for index in range(count)]
        loose = [at for at in headers if struct.unpack_from("<QQQ", data, at + 8)[0] & 2 == 0
                 and struct.unpack_from("<I", data, at + 4)[0] != 0]
        first = min(struct.unpack_from("<Q", data, at + 24)[0] for at in loose)
        for at in loose:
            offset, = struct.unpack_from("<Q", data, at + 24)
            struct.pack_into("<Q", data, at + 24, offset - first + size)
        struct.pack_into("<Q", data, 40, table - first + size)
        file.seek(0)
        file.write(data[:first])
        file.truncate()
        file.seek(size)
        file.write(data[first:])
