"""
The situations of the table in docs/how-we-know.md, in its order. Each creates one or more
subjects in a Lab; every tool gets new ones. The subject says what a tool must show
(subjects.py), and judge.py judges it.

tests/e2e/test_situations.py runs all of them with stacksnap. "./dev peers" also runs the
other tools and writes the table.
"""

import os
import re
import shutil
import signal
import subprocess

from subjects import (Subject, TARGETS, Unavailable, blow_up, chroot_into, make_root, require,
                      require_namespaces, pivot_into, task_states, wait_until)
from harness import LIMIT_S, read_text

BLOCKED = ["target_block"]
MAIN = ["target_wait", "main"]
SWAPPED = ["target_block", "right_inner", "right_outer", "worker_routine",
           "target_thread_main"]
SWAPPED_LIBRARY = ["target_block", "right_deeper", "right_deep"] + SWAPPED[1:]
WRONG = r"\bwrong_"

ALL = []


class Situation:
    def __init__(self, title, make, status, limit_s):
        self.title = title
        self.make = make  # make(lab) yields its subjects
        self.status = status  # of stacksnap
        self.limit_s = limit_s  # for other tools
        self.name = make.__name__


def situation(title, status=(0,), limit_s=10):
    def add(make):
        ALL.append(Situation(title, make, status, limit_s))
        return make

    return add


@situation("a thread in uninterruptible sleep (parent of a `vfork`) beside others",
           status=(0, 1))
def vfork_parent(lab):
    target = lab.start("vfork_parent", 3)
    yield Subject(target, {"vforker": ["run_vfork", "target_thread_main"],
                           "other-.*": BLOCKED + ["other_routine", "target_thread_main"],
                           "vfork_parent": MAIN})


@situation("the main thread has exited, others run")
def zombie_leader(lab):
    target = lab.start("zombie_leader")
    yield Subject(target, {"worker": BLOCKED + ["worker_routine", "target_thread_main"],
                           "last": ["target_wait", "last_routine", "target_thread_main"]})


@situation("stopped by `SIGSTOP`, `SIGTSTP`, `SIGTTIN`, `SIGTTOU`: still stopped afterwards")
def group_stop(lab):
    for number in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        # its own process group, with a parent in the session: terminal signals do not stop
        # an orphaned process group
        target = lab.start("fates", "wait", preexec_fn=os.setpgrp)
        os.kill(target.pid, number)
        wait_until(lambda: set(task_states(target.pid).values()) == {"T"}, "the stop")
        yield Subject(target, {"sleeper-.*": BLOCKED + ["sleeper_routine"], "fates": MAIN},
                      stopped=True)


@situation("thousands of threads created per second", status=(0, 1), limit_s=30)
def churn(lab):
    target = lab.start("churn", 3)
    # in pthread_create, pthread_join or make; only their callers are certain
    yield Subject(target, {"churn": MAIN})


def descent(kind, depth):
    return (["wait_in_" + kind] + ["descend_odd" if i % 2 else "descend_even"
                                   for i in range(depth)] +
            ["thread_routine", "target_thread_main"])


@situation("5,000 threads", limit_s=300)
def five_thousand_threads(lab):
    target = lab.start("threads", 1000, 6)
    kinds = ("poll", "nanosleep", "cond", "futex", "read")
    yield Subject(target, {**{kind + r"-\d+": descent(kind, 6) for kind in kinds},
                           "threads": MAIN})


@situation("its executable was deleted")
def deleted_executable(lab):
    program = lab.copy("swap_right", "program")
    target = lab.start_file(program)
    os.unlink(program)
    yield Subject(target, {"worker": SWAPPED, "program": MAIN}, WRONG)


@situation("another build is at the path of its executable")
def replaced_executable(lab):
    target = lab.start_file(lab.copy("swap_right", "program"))
    lab.replace("swap_wrong", "program")
    yield Subject(target, {"worker": SWAPPED, "program": MAIN}, WRONG)


@situation("a library was deleted, or replaced by another build")
def changed_library(lab):
    program = os.path.join(TARGETS, "swap_right")
    for place in ("deleted.so", "replaced.so"):
        library = lab.copy("libswap_right.so", place)
        target = lab.start_file(program, library)
        if place == "deleted.so":
            os.unlink(library)
        else:
            lab.replace("libswap_wrong.so", place)
        yield Subject(target, {"worker": SWAPPED_LIBRARY, "swap_right": MAIN}, WRONG)


@situation("its executable is a memfd")
def memfd_executable(lab):
    fd = os.memfd_create("program", 0)
    lab.callback(os.close, fd)
    with open(os.path.join(TARGETS, "swap_right"), "rb") as file:
        os.write(fd, file.read())
    target = lab.start_file("/proc/self/fd/%d" % fd, pass_fds=(fd,))
    yield Subject(target, {"worker": SWAPPED}, WRONG)


def in_another_root(lab, enter):
    """Outside of this root directory the same paths refer to the wrong files."""
    require_namespaces()
    program = lab.copy("swap_wrong", "program")
    library = lab.copy("libswap_wrong.so", "library.so")
    root = lab.path("root")
    make_root(root, os.path.join(TARGETS, "swap_right"), {
        program: os.path.join(TARGETS, "swap_right"),
        library: os.path.join(TARGETS, "libswap_right.so")})
    target = lab.start_file(program, library, preexec_fn=enter(root))
    return Subject(target, {"worker": SWAPPED_LIBRARY, "program": MAIN}, WRONG)


@situation("another mount namespace (`pivot_root`), other files at the same paths")
def mount_namespace(lab):
    yield in_another_root(lab, pivot_into)


@situation("`chroot`, other files at the same paths")
def changed_root(lab):
    yield in_another_root(lab, chroot_into)


def only_child(pid):
    def children():
        return read_text("/proc/%d/task/%d/children" % (pid, pid)).split()

    wait_until(lambda: len(children()) == 1, "the child of %d" % pid)
    return int(children()[0])


@situation("a pid namespace")
def pid_namespace(lab):
    require_namespaces()
    target = lab.start_file(require("unshare"), "--pid", "--fork", "--kill-child", "--mount-proc",
                            os.path.join(TARGETS, "swap_right"), settle=False)
    yield Subject(target, {"worker": SWAPPED, "swap_right": MAIN}, WRONG,
                  pid=only_child(target.pid))


@situation("a user namespace")
def user_namespace(lab):
    command = [require("unshare"), "--user", "--map-root-user"]
    if subprocess.run(command + ["true"], stderr=subprocess.DEVNULL,
                      timeout=LIMIT_S).returncode:
        raise Unavailable("user namespaces cannot be made here (in a chroot, or by a sysctl)")
    target = lab.start_file(*command, os.path.join(TARGETS, "swap_right"))
    yield Subject(target, {"worker": SWAPPED, "swap_right": MAIN}, WRONG)


@situation("30,000 memory areas", limit_s=60)
def many_areas(lab):
    target = lab.start("areas", 30000)
    yield Subject(target, {"worker": BLOCKED + ["worker_routine"], "areas": MAIN})


def chain_of_copies(lab, count):
    """That many libraries, each with a name and an inode of its own."""
    os.mkdir(lab.path("chain"))
    for index in range(count):
        shutil.copyfile(os.path.join(TARGETS, "chain", "libchain_%d.so" % (index % 200)),
                        lab.path("chain", "libchain_%d.so" % index))
    return lab.start("dlchain", count, lab.path("chain"))


@situation("2,000 modules, a frame in each", limit_s=120)
def many_modules(lab):
    target = chain_of_copies(lab, 2000)
    yield Subject(target, {
        "chain": ["chain_%d" % (index % 200) for index in reversed(range(2000))] +
                 ["thread_routine", "target_thread_main"], "dlchain": MAIN})


@situation("an executable of 1 GiB")
def huge_executable(lab):
    program = lab.copy("swap_right", "program")
    blow_up(program, 1 << 30)
    target = lab.start_file(program)
    yield Subject(target, {"worker": SWAPPED, "program": MAIN}, WRONG)


@situation("a template's name of 200 KB", limit_s=60)
def long_names(lab):
    target = lab.start("long_names")
    whole = re.compile(r"hold<pair_of_many_types<.{200000,}>")
    yield Subject(target, {"worker": ["target_block", whole, re.compile("worker_routine")],
                           "long_names": MAIN})
