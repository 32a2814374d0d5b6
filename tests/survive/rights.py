"""Situations in which a tool has fewer rights than it would need, or is not made for the
process. tests/e2e/test_bad_input.py looks at the same more closely."""

import os
import subprocess

from situations import MAIN, descent, situation
from subjects import Subject, Unavailable, need, wait_until
from harness import LIMIT_S, TARGETS, task_states
from test_wrecked import PROGRAM_32

KINDS = ("poll", "nanosleep", "cond", "futex", "read")
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
          "--inh-caps=-all", "--bounding-set=-all"]
UNCAPABLE = ["setpriv", "--inh-caps=-all", "--bounding-set=-sys_ptrace"]
NOT_DUMPABLE = """
import ctypes, sys
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
print("ready", flush=True)
sys.stdin.read()
"""


def threads(lab, prefix, says=None):
    """A process of root's with threads that sleep."""
    if os.geteuid() != 0:
        raise Unavailable("only root can give up rights")
    need("setpriv")
    return Subject(lab.start("threads", 1, 3), {
        **{kind + "-0": descent(kind, 3) for kind in KINDS}, "threads": MAIN},
        prefix=prefix, says=says)


@situation("a process of another user", status=(2, ))
def another_user(lab):
    yield threads(lab, NOBODY, r"belongs to another user .*remedy: sudo stacksnap PID")


@situation("one that is not dumpable, for its own user", status=(2, ))
def not_dumpable(lab):
    if os.geteuid() != 0:
        raise Unavailable("only root can become another user")
    target = lab.start_file(*NOBODY, "/usr/bin/python3", "-c", NOT_DUMPABLE, settle=False)
    wait_until(lambda: set(task_states(target.pid).values()) == {"S"}, "it to read")
    yield Subject(target, {target.pid: ["main"]}, prefix=NOBODY,
                  says=r"is not dumpable.*remedy: sudo stacksnap PID")


@situation("root without the capability `SYS_PTRACE`, as in a container", status=(2, ))
def no_capability(lab):
    yield threads(lab, UNCAPABLE, r"root without the capability.*--cap-add SYS_PTRACE")


@situation("a seccomp filter refuses the tool `process_vm_readv`")
def refused_reading(lab):
    yield threads(lab, [os.path.join(TARGETS, "refuse"), "310"])


@situation("a seccomp filter refuses the tool `ptrace`; all threads sleep")
def refused_tracing(lab):
    # the leak checker's ptrace is refused, too
    no_leaks = "ASAN_OPTIONS=%s:detect_leaks=0" % os.environ.get("ASAN_OPTIONS", "")
    yield threads(lab, ["env", no_leaks, os.path.join(TARGETS, "refuse"), "101"])


@situation("a 32-bit program", status=(2, ))
def foreign(lab):
    path = lab.path("program")
    with open(path + ".c", "w", encoding="utf-8") as file:
        file.write(PROGRAM_32)
    if subprocess.run([os.environ.get("CC", "cc"), "-m32", "-o", path, path + ".c"],
                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                      timeout=LIMIT_S).returncode:
        raise Unavailable("no 32-bit programs can be made: install libc6-dev-i386")
    target = lab.start_file(path, settle=False)  # its system calls have other numbers
    wait_until(lambda: set(task_states(target.pid).values()) == {"S"}, "it to read")
    yield Subject(target, {target.pid: ["main"]}, says="runs a 32-bit program")
