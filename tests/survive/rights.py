"""Situations in which a tool lacks privileges or does not support the process.
tests/e2e/test_bad_input.py tests the same in more detail."""

import os

from situations import MAIN, descent, situation
from subjects import Subject, Unavailable, require, wait_until
from harness import TARGETS, task_states
from i386_target import compile_i386

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


def threads(lab, prefix, message=None):
    """A process of root with sleeping threads."""
    if os.geteuid() != 0:
        raise Unavailable("only root can drop privileges")
    require("setpriv")
    return Subject(lab.start("threads", 1, 3), {
        **{kind + "-0": descent(kind, 3) for kind in KINDS}, "threads": MAIN},
        prefix=prefix, message=message)


@situation("a process of another user", status=(2, ))
def another_user(lab):
    yield threads(lab, NOBODY, r"belongs to another user .*hint: sudo stacksnap PID")


@situation("a process of the same user that is not dumpable", status=(2, ))
def not_dumpable(lab):
    if os.geteuid() != 0:
        raise Unavailable("only root can become another user")
    target = lab.start_file(*NOBODY, "/usr/bin/python3", "-c", NOT_DUMPABLE, settle=False)
    wait_until(lambda: set(task_states(target.pid).values()) == {"S"}, "it to read")
    yield Subject(target, {target.pid: ["main"]}, prefix=NOBODY,
                  message=r"is not dumpable.*hint: sudo stacksnap PID")


@situation("root without the capability `SYS_PTRACE`, as in a container", status=(2, ))
def no_capability(lab):
    yield threads(lab, UNCAPABLE, r"root without CAP_SYS_PTRACE.*--cap-add SYS_PTRACE")


@situation("a seccomp filter denies the tool `process_vm_readv`")
def denied_reading(lab):
    yield threads(lab, [os.path.join(TARGETS, "deny_syscalls"), "310"])


@situation("a seccomp filter denies the tool `ptrace`; all threads sleep")
def denied_tracing(lab):
    # LeakSanitizer also needs ptrace
    no_leaks = "ASAN_OPTIONS=%s:detect_leaks=0" % os.environ.get("ASAN_OPTIONS", "")
    yield threads(lab, ["env", no_leaks, os.path.join(TARGETS, "deny_syscalls"), "101"])


@situation("a 32-bit program")
def foreign(lab):
    path = compile_i386(lab.directory, "threads")
    if not path:
        raise Unavailable("cannot compile 32-bit programs: install gcc-12-multilib")
    target = lab.start_file(path, "1", "3", settle=False)  # its calls have other numbers
    wait_until(lambda: set(task_states(target.pid).values()) == {"S"}, "its threads to sleep")
    yield Subject(target, {
        **{kind + "-0": descent(kind, 3) for kind in KINDS}, "threads": MAIN})
