"""
What each mode does to processes that do not bear it easily: programs in targets/ that count
what went wrong with them, one row or a few of the table in docs/how-we-know.md each.

To add one: a target that prints its counts at the end, and a row() here. If a mode must not
disturb it, tests/e2e/test_survive.py checks that.
"""

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

import fates
import killing
import stop_and_go
from dumps import Dumps
from harness import (LIMIT_S, STACKSNAP, TARGETS, for_everyone, read_text, status_field,
                     task_states, wait_until)
from subjects import Lab, Unavailable, require_namespaces  # noqa: F401: for users of this module

HERE = os.path.dirname(os.path.abspath(__file__))
RATE = 199  # of recordings
TRIES_PER_HANG = 5
SECONDS_OF_TOP = 2
SESSION = 100  # tries with one process
RUN_LIMIT_S = 5 * LIMIT_S  # of a run with that many
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
BLIND = ["setpriv", "--bounding-set=-perfmon,-sys_admin"]


class Mode:
    """A way to look at a process. Of a number of tries, each is a snapshot; a recording has
    as many ticks, a series as many snapshots, trace --alloc as many periods of a recording, and
    each verdict of hang counts as TRIES_PER_HANG. top --once always takes SECONDS_OF_TOP.
    at_once: tries in one run."""

    def __init__(self, name, title, arguments, at_once=1):
        self.name = name
        self.title = title
        self.arguments = arguments
        self.at_once = at_once
        self.runs = self.refused = 0

    def command(self, directory, tries=1, tool=STACKSNAP):
        """Without the pid."""
        words = [tool] + self.arguments
        if self.name in ("record", "alloc"):
            words += ["-d", "%dms" % max(300, tries * 1000 // RATE)]
        if self.name == "record":
            words += ["-o", os.path.join(directory, "recording-%p-%t")]
        if self.name == "series":
            words += ["--count=%d" % max(2, tries)]
        return words

    def look(self, pid, tries, prefix=(), tool=STACKSNAP, options=()):
        """Yields after each run of the tool. A run without a result is no harm, but counted."""
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o777)
            while tries > 0:
                count = min(tries, self.at_once)
                result = run([*prefix, *self.command(directory, count, tool), *options,
                              str(pid)])
                assert result.returncode in (0, 1, 2, 3, 4), result
                self.runs += 1
                self.refused += result.returncode == 2
                for name in os.listdir(directory):
                    os.unlink(os.path.join(directory, name))
                tries -= count
                yield

    def __repr__(self):
        return self.name


def snap(mode, title):
    return Mode(mode, title, ["--raw", "-f", "json", "--mode=" + mode])


MODES = [snap("auto", "default"), snap("no-stop", "`no-stop`"), snap("stop", "`stop`"),
         snap("live", "`live`"),
         Mode("series", "series", ["--raw", "-f", "json", "--interval=10ms"], SESSION),
         Mode("record", "`record`", ["record", "-r", str(RATE)], SESSION),
         Mode("top", "`top`", ["top", "--once", "-r", str(RATE)], SECONDS_OF_TOP * RATE),
         Mode("alloc", "`trace --alloc`", ["trace", "--alloc=4096", "-f", "json"], SESSION),
         Mode("hang", "`hang`", ["hang", "--raw", "--for=200ms"], TRIES_PER_HANG)]


def run(command):
    """It is killed, and releases the process, if it takes too long."""
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, timeout=RUN_LIMIT_S, check=False)


class Row:
    """zero: the modes that must not disturb it, see below. measure(mode, tries): returns
    {label: disturbances}, or their number."""

    def __init__(self, name, title, zero, measure):
        self.name = name
        self.title = title
        self.zero = zero
        self.measure = measure


ROWS = []
ALL = {mode.name for mode in MODES}
SLEEPS = ALL - {"stop", "live"}  # these two stop what sleeps
SOME = {"no-stop"}


def row(title, zero=frozenset(ALL), name=None):
    """A row whose measure is the decorated function."""
    def add(measure):
        ROWS.append(Row(name or measure.__name__, title, zero, measure))
        return measure
    return add


def sessions(tries):
    while tries > 0:
        yield min(tries, SESSION)
        tries -= SESSION


def numbers(text):
    """The numbers after the first word of the last line."""
    lines = text.splitlines()
    return [int(word) for word in re.findall(r"-?\d+", lines[-1])] if lines else []


def finish(target):
    """What the target printed at its end; None if it was killed or never ends."""
    try:
        status, output = target.finish()
    except subprocess.TimeoutExpired:
        return None
    return output if status >= 0 else None


def watched(mode, tries, count, *command, settle=True, prefix=()):
    """Looks at a target; count(output) is the number of disturbances. A target that has been
    killed, or hangs, is one."""
    total = 0
    for part in sessions(tries):
        with Lab() as lab:
            target = lab.start(*command, settle=settle)
            for _ in mode.look(target.pid, part, prefix):
                if target.process.poll() is not None:
                    break
            if target.process.poll() == 77:
                raise Unavailable(command[0])
            output = finish(target)
            total += 1 if output is None else count(output)
    return total


# Calls that sleep ----------------------------------------------------------------------------

def count_eintr(kind):
    def measure(mode, tries):
        result = {}
        for part in sessions(tries):
            with Lab() as lab:
                target = lab.start("eintr")
                for _ in mode.look(target.pid, part):
                    pass
                for line in (finish(target) or "").splitlines():
                    name, eintrs, others, what = line.split()
                    if what == kind:
                        result[name] = result.get(name, 0) + int(eintrs) + int(others)
        return result
    return measure


row("a call without a time limit returns", name="calls")(count_eintr("infinite"))
row("a call with a time limit returns before it", name="timed_calls")(count_eintr("finite"))


@row("`SIGSTOP` and `SIGCONT` all the time: a call returns oftener than by these alone")
def stop_and_go_calls(mode, tries):
    result = {}
    for part in sessions(tries):
        for name, number in stop_and_go.extra_returns(lambda pid, part=part: mode.look(pid, part)).items():
            result[name] = result.get(name, 0) + number
    return result


@row("Python, with threads that compute: a call of the C library that sleeps returns")
def python_calls(mode, tries):
    result = {}
    for part in sessions(tries):
        with Lab() as lab:
            target = lab.start_file(sys.executable, os.path.join(HERE, "python_calls.py"), settle=False)
            for _ in mode.look(target.pid, part):
                pass
            for name in (finish(target) or "returned unknown").split()[1:]:
                result[name] = result.get(name, 0) + 1
    return result or {"": 0}


@row("a read of a file of a FUSE file system returns")
def fuse_read(mode, tries):
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        raise Unavailable("needs root and /dev/fuse")
    require_namespaces()
    return watched(mode, tries, lambda output: sum(numbers(output)), "fuse_read")


def moving(call):
    def measure(mode, tries):
        return watched(mode, tries, lambda output: sum(numbers(output)[1:]), "moving", call)
    return measure


for call, text in (("write_pipe", "`write` to a pipe"), ("send", "`send`"), ("getrandom", "`getrandom`"),
                   ("copy_range", "`copy_file_range`")):
    row("a running %s of a megabyte or more returns a part" % text, SOME, "moving_" + call)(
        moving(call))


@row("a running call that moves a megabyte or more returns a part, without `CAP_PERFMON`", SOME, "moving_blind")
def moving_blind(mode, tries):
    if os.geteuid() != 0:
        raise Unavailable("needs root, to drop a right")
    return {call: watched(mode, tries, lambda output: sum(numbers(output)[1:]), "moving", call,
                          prefix=BLIND)
            for call in ("write_pipe", "send", "getrandom", "copy_range")}


def filtered(*arguments):
    """Failed calls, by name, of threads under a seccomp filter. A process that the filter kills
    is one; another takes its place."""
    def measure(mode, tries):
        result = {"killed": 0}
        for part in sessions(tries):
            with Lab() as lab:
                target = lab.start("seccomp", *arguments, settle=False)
                for _ in mode.look(target.pid, part):
                    if target.process.poll() is not None:
                        result["killed"] += 1
                        target = lab.start("seccomp", *arguments, settle=False)
                for line in (finish(target) or "").splitlines():
                    name, errors, _ = line.split()
                    result[name] = result.get(name, 0) + int(errors)
        return result
    return measure


for action, text in (("kill", "kills the process"), ("errno", "fails")):
    row("a seccomp filter allows the call, but `restart_syscall` " + text,
        name="seccomp_" + action)(filtered(action))
    row("threads compute every other millisecond, and `restart_syscall` " + text,
        name="seccomp_%s_mixed" % action)(filtered(action, "mixed"))
row("a call that a seccomp supervisor emulates is made twice", SOME, "seccomp_notify")(filtered("notify"))


# Signals -------------------------------------------------------------------------------------

@row("1,000 queued signals per second: lost")
def signals(mode, tries):
    lost = 0
    for part in sessions(tries):
        with Lab() as lab:
            target = lab.start("sigcount")
            sender = subprocess.Popen([sys.executable, "-c", SENDER, str(target.pid)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in mode.look(target.pid, part):
                pass
            sent = int(sender.communicate("", LIMIT_S)[0])
            wait_until(lambda pid=target.pid: not int(status_field(pid, "ShdPnd") or "0", 16),
                       "the signals to arrive")
            received = numbers(finish(target) or "")
            lost += sent - received[-1] if received else 1
    return lost


SENDER = """
import os, select, signal, sys
sent = 0
while not select.select([0], [], [], 0.001)[0]:
    os.kill(int(sys.argv[1]), signal.SIGRTMIN)
    sent += 1
print(sent)
"""


@row("signals with the `si_code` of a ptrace stop: lost")
def forged_signals(mode, tries):
    def count(output):
        sent, received = (int(line.split()[1]) for line in output.splitlines())
        return sent - received
    return watched(mode, tries, count, "forged_signals")


@row("`SIGSTOP`, `SIGTSTP`: the process is not left as it was, or not continued by `SIGCONT`")
def group_stop(mode, tries):
    wrong = 0
    for number in (signal.SIGSTOP, signal.SIGTSTP):
        with Lab() as lab:
            target = lab.start("threads", 2, 3, preexec_fn=os.setpgrp)
            os.kill(target.pid, number)
            wait_until(lambda pid=target.pid: set(task_states(pid).values()) == {"T"}, "the stop")
            for _ in mode.look(target.pid, tries // 2):
                wrong += not fates.reaches(target, "T")
            os.kill(target.pid, signal.SIGCONT)
            wrong += not fates.reaches(target, "S")
            wrong += finish(target) is None
    return wrong


@row("Ctrl-Z on stacksnap leaves a thread stopped")
def job_control(mode, tries):
    left = 0
    generator = random.Random(7)
    with Lab() as lab:
        target = lab.start("busy", 8, 50)
        for _ in range(tries):
            tool = subprocess.Popen([*mode.command(lab.directory, SESSION), str(target.pid)],
                                    preexec_fn=os.setpgrp, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(generator.uniform(0, 0.05))  # a random moment
            os.killpg(tool.pid, signal.SIGTSTP)
            wait_until(lambda pid=tool.pid: set(task_states(pid).values()) <= set("TZX"),
                       "the tool to stop")
            left += bool(set(task_states(target.pid).values()) & set("tT"))
            os.killpg(tool.pid, signal.SIGKILL)
            tool.wait(LIMIT_S)
    return left


# Processes that end, fork and execute ----------------------------------------------------------

@row("it exits, crashes, forks, executes or is killed meanwhile: ends otherwise, or stays stopped")
def fate(mode, tries):
    generator = random.Random(7)
    wrong = 0
    for what in fates.FATES:
        for _ in range(-(-tries // len(fates.FATES))):
            with Lab() as lab:
                outcome = fates.meet(lab, what, mode.command(lab.directory), generator)
                wrong += not outcome.right
    return {"": wrong}


@row("a storm of exec: the program ends otherwise")
def exec_storm(mode, tries):
    wrong = 0
    for part in sessions(tries):
        with Lab() as lab:
            target = lab.start("exec_loop", settle=False)
            for _ in mode.look(target.pid, part):
                pass
            wrong += target.finish()[0] != 5
    return wrong


@row("a storm of threads: the program ends otherwise")
def thread_storm(mode, tries):
    return watched(mode, tries, lambda output: not re.search(r"made [1-9]", output), "churn",
                   settle=False)


@row("children that `CLONE_PTRACE` attaches stay stopped")
def clone_ptrace(mode, tries):
    children = min(20000, 2000 + 200 * tries)
    return watched(mode, tries, lambda output: 0, "clone_ptrace", children, settle=False)


def set_uid(what, *options):
    """Executions without the rights of the file, by an unprivileged user whose processes
    another unprivileged stacksnap looks at."""
    def measure(mode, tries):
        if os.geteuid() != 0:
            raise Unavailable("needs root")
        lost = 0
        for part in sessions(tries):
            with Lab() as lab:
                os.chmod(lab.directory, 0o755)
                plain, privileged = lab.copy("set_uid", "plain"), lab.copy("set_uid", "set_uid")
                os.chmod(plain, 0o755)
                os.chmod(privileged, 0o4755)
                target = lab.start_file(*NOBODY, plain, what, privileged, settle=False)
                more = options if mode.name == "record" else ()
                for _ in mode.look(target.pid, part, NOBODY, for_everyone(STACKSNAP), more):
                    pass
                lost += numbers(finish(target) or "lost 1 1")[0]
        return lost
    return measure


row("a child executes a set-user-ID program, which gets no rights (stacksnap is unprivileged)",
    name="set_uid_child")(set_uid("children", "--children"))
row("the process itself executes a set-user-ID program, which gets no rights", SOME, "set_uid_itself")(set_uid("itself"))


# Others ----------------------------------------------------------------------------------------

@row("a core dump in progress is truncated")
def core_dump(mode, tries):
    with Lab() as lab:
        dumps = Dumps(lab)
        whole = dumps.size(dumps.begin())
        truncated = 0
        for part in sessions(tries):
            target = dumps.begin()
            for _ in mode.look(target.pid, part):
                pass
            truncated += dumps.size(target) < whole * 0.99
        return truncated


@row("memory that a userfaultfd serves: the tool hangs, or leaves the process stopped")
def userfault(mode, tries):
    return watched(mode, tries, lambda output: 0, "userfault")


@row("restartable sequences (rseq): lost additions")
def rseq(mode, tries):
    if not os.path.exists(os.path.join(TARGETS, "rseq")):
        raise Unavailable("this libc has no rseq")
    return watched(mode, tries, lambda output: numbers(output)[0], "rseq")


@row("a process that uses ptrace: unexpected results")
def tracer(mode, tries):
    return watched(mode, tries, lambda output: numbers(output)[0], "tracer", settle=False)


@row("the child of a process that uses ptrace: unexpected results")
def traced(mode, tries):
    wrong = 0
    for part in sessions(tries):
        with Lab() as lab:
            target = lab.start("tracer", settle=False)
            for _ in mode.look(target.fact("child"), part):
                pass
            wrong += (numbers(finish(target) or "") or [1])[0]
    return wrong


def shots(mode, tries, directory, pid):
    """Runs of the tool that are killed at a random moment."""
    command = [*mode.command(directory, SESSION), str(pid)]
    generator = random.Random(7)
    whole_s = min(killing.duration_s(command), 0.5)
    for _ in range(tries):
        tool = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        time.sleep(generator.uniform(0, whole_s))  # a random moment
        yield
        tool.kill()
        tool.wait(LIMIT_S)


@row("stacksnap is killed: the process stays stopped, or a signal is lost")
def killed(mode, tries):
    with Lab() as lab:
        target = lab.start("sigcount")
        left = sent = 0
        for _ in shots(mode, tries, lab.directory, target.pid):
            os.kill(target.pid, signal.SIGRTMIN)
            sent += 1
            left += sent > 1 and not killing.is_free(target.pid, LIMIT_S)
        wait_until(lambda: killing.is_free(target.pid, LIMIT_S), "the process to run")
        return left + sent - (numbers(finish(target) or "") or [0])[-1]


@row("stacksnap is killed: a call without a time limit returns", SLEEPS)
def killed_calls(mode, tries):
    with Lab() as lab:
        target = lab.start("eintr")
        for _ in shots(mode, tries, lab.directory, target.pid):
            pass
        lines = [line.split() for line in (finish(target) or "").splitlines()]
        return sum(int(eintrs) + int(others) for _, eintrs, others, kind in lines
                   if kind == "infinite")
