"""A process to look at and the calls that each of its threads must show. A Lab owns its
files and mounts and removes them."""

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

from harness import (TARGETS, Target, makes_namespaces, read_text, reads_stdin, task_states,  # noqa: E402
                     wait_until)

CLONE_NEWNS = 0x20000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
SYS_PIVOT_ROOT = 155  # x86-64

libc = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """The situation cannot be created here; the reason is the message."""


class Subject:
    """
    A process to look at. chains: maps a thread's name (a pattern) or id to names of
    functions, innermost first, that must be consecutive somewhere in its stack; each is a
    string or a compiled pattern. wrong: a pattern of names that must not appear.
    stopped: a signal has stopped it. pid: if it is not that of target. prefix: the command
    that starts the tool. message: a pattern of stacksnap's message if it cannot read the
    stacks.
    """

    def __init__(self, target, chains, wrong=None, stopped=False, pid=None, prefix=(),
                 message=None):
        self.target = target
        self.pid = pid or target.pid
        self.prefix = list(prefix)
        self.message = message
        self.wrong = re.compile(wrong) if wrong else None
        self.stopped = stopped
        self.threads = {}
        for tid in task_states(self.pid):
            name = read_text("/proc/%d/task/%d/comm" % (self.pid, tid)).rstrip("\n")
            for wanted, chain in chains.items():
                if wanted == tid or (isinstance(wanted, str) and re.fullmatch(wanted, name)):
                    self.threads[tid] = chain
        if len(self.threads) < len(chains):
            raise AssertionError("expected threads %s, found only %s" % (
                list(chains), sorted(self.threads)))

    def states(self):
        return set(task_states(self.pid).values())


class Lab(contextlib.ExitStack):
    """What a situation creates; removed at the end of a with block."""

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
        """Starts a built target; settle: waits until one of its threads reads stdin."""
        return self.start_file(os.path.join(TARGETS, name), *arguments, settle=settle,
                               **options)

    def start_file(self, *command, settle=True, **options):
        target = Target([str(word) for word in command], **options)
        self.callback(target.kill)
        if settle:
            wait_until(lambda: reads_stdin(target.pid), "%s to wait" % (command,))
        return target

    def copy(self, name, *place):
        """Copies a built file into the directory, as a new file."""
        path = self.path(*place)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(os.path.join(TARGETS, name), path)
        return path

    def replace(self, name, *place):
        """Replaces a file by rename, as package managers do."""
        new = self.copy(name, *(place[:-1] + (place[-1] + ".new",)))
        os.rename(new, self.path(*place))

    def run(self, command):
        """Starts another program, such as a tracer of the target."""
        process = subprocess.Popen(command, stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.callback(process.wait)
        self.callback(process.kill)
        self.callback(process.stdin.close)
        return process


def require_namespaces():
    if os.geteuid() != 0:
        raise Unavailable("only root can create mount and pid namespaces")
    if not makes_namespaces():
        raise Unavailable("mount and pid namespaces cannot be made here (in a chroot)")


def require(program):
    if not shutil.which(program):
        raise Unavailable("%s is not installed" % program)
    return program


def must(result):
    if result != 0:
        errnum = ctypes.get_errno()
        raise OSError(errnum, os.strerror(errnum))


def own_mounts(root):
    """Creates a mount namespace with /proc below root, in a child before its exec."""
    must(libc.unshare(CLONE_NEWNS))
    must(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))
    must(libc.mount(root, root, None, MS_BIND | MS_REC, None))
    must(libc.mount(b"proc", root + b"/proc", b"proc", 0, None))


def pivot_into(root):
    """For preexec_fn: makes root the root directory and unmounts the old one."""
    root = os.fsencode(root)

    def enter():
        own_mounts(root)
        os.chdir(root)
        # mounts the new root over the old one and then unmounts the old one
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
    """The libraries that it is loaded with, including the dynamic linker."""
    text = subprocess.run(["ldd", program], stdout=subprocess.PIPE, check=True,
                          text=True).stdout
    return re.findall(r"(/\S+) \(0x", text)


def make_root(root, program, files):
    """Creates a root directory with the libraries of program and files (path: source)."""
    os.makedirs(os.path.join(root, "proc"))
    for library in libraries_of(program):
        files = {**files, library: library}
    for path, source in files.items():
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        shutil.copy(source, root + path)


def blow_up(path, size):
    """Moves what is not loaded (symbols, section headers) behind offset size, so that the
    file becomes large and sparse."""
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
