"""Runs a tool on a subject and judges the result, by the same rules for every tool."""

import os
import re
import signal
import subprocess
import time

from subjects import task_states
from harness import STACKSNAP, canonical

EU_FRAME = re.compile(r"^#\d+\s+0x[0-9a-f]+(?: - 1)? ?(.*)$")
GDB_FRAME = re.compile(r"^#\d+\s+(?:0x[0-9a-f]+ in )?(.*?) \(.*$")
RIGHT = "right"  # whole stacks, right names, and the process as before


def parse_eu(text):
    stacks, stack = {}, None
    for line in text.splitlines():
        thread = re.match(r"^TID (\d+):", line)
        frame = EU_FRAME.match(line)
        if thread:
            stack = stacks.setdefault(int(thread.group(1)), [])
        elif frame and stack is not None:
            stack.append(frame.group(1))
    return stacks


def parse_gdb(text):
    """Names of templates contain parentheses: the last " (" begins the arguments."""
    stacks, stack = {}, None
    for line in text.splitlines():
        thread = re.match(r"^Thread \d+ \((?:Thread \S+ \(LWP (\d+)\)|LWP (\d+)|process (\d+))",
                          line)
        frame = GDB_FRAME.match(line)
        if thread:
            tid = next(number for number in thread.groups() if number)
            stack = stacks.setdefault(int(tid), [])
        elif frame and stack is not None:
            stack.append(frame.group(1))
    return stacks


class Tool:
    def __init__(self, name, command, parse):
        self.name = name
        self.command = command
        self.parse = parse

    def start(self, pid, prefix):
        return subprocess.Popen(prefix + self.command + [str(pid)], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)


OURS = Tool("stacksnap", [STACKSNAP, "-f", "eu", "-n", "0", "--timeout=20000"], parse_eu)
# more than its default of 256 frames, but not endless for a stack with a cycle
EU_STACK = Tool("eu-stack", ["eu-stack", "-n", "4096", "-p"], parse_eu)
GDB = Tool("gdb", ["gdb", "-batch", "-nx", "-iex", "set debuginfod enabled off",
                   "-ex", "thread apply all bt", "-p"], parse_gdb)


class Run:
    """One run of a tool: what it printed, and whether it had to be killed."""

    def __init__(self, tool, pid, limit_s, prefix=()):
        begin = time.monotonic()
        process = tool.start(pid, list(prefix))
        self.hung = False
        try:
            output, errors = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            self.hung = True
            process.kill()
            output, errors = process.communicate()
        self.seconds = time.monotonic() - begin
        self.status = process.returncode
        self.stdout = output.decode("utf-8", "replace")
        self.stderr = errors.decode("utf-8", "replace")
        self.stacks = tool.parse(self.stdout)


def same(name, wanted):
    if isinstance(wanted, str):
        return canonical(name) == canonical(wanted)
    return wanted.search(name) is not None


def has_chain(stack, chain):
    """Whether these names are consecutive somewhere in the stack."""
    return any(all(same(name, wanted) for name, wanted in zip(stack[at:], chain))
               for at in range(len(stack) - len(chain) + 1))


def is_unnamed(stack, chain):
    """Whether the chain may be there, but without names."""
    return (len(stack) >= len(chain) and not has_chain(stack, chain) and
            sum(name in ("", "??") for name in stack) >= len(chain))


def quoted(run, pid):
    """The first lines of a tool's messages, without its own name and the pid."""
    text = re.sub(r"\b%d\b" % pid, "PID", run.stderr)
    lines = [re.sub(r"^(stacksnap|eu-stack): ", "", line.strip())
             for line in text.splitlines() if line.strip()]
    words = lines[:1] + [line for line in lines[1:2] if line.startswith("hint: ")]
    return "; ".join("`%s`" % line.replace("|", "/") for line in words) or "nothing"


class Verdict:
    """The result of one run on one subject."""

    def __init__(self, subject, run):
        self.run = run
        self.expected = len(subject.threads)
        self.whole = sum(has_chain(run.stacks.get(tid, []), chain)
                         for tid, chain in subject.threads.items())
        self.unnamed = sum(is_unnamed(run.stacks.get(tid, []), chain)
                           for tid, chain in subject.threads.items())
        self.refused = bool(subject.message) and not any(run.stacks.values())
        self.listed = self.refused and set(subject.threads) <= set(run.stacks)
        self.message = quoted(run, subject.pid) if self.refused else None
        self.wrong = sorted({name for stack in run.stacks.values() for name in stack
                             if subject.wrong and subject.wrong.search(name)})
        self.left = self._left(subject)

    def _left(self, subject):
        """How the tool left the process, if its state has changed. A second is allowed for
        recovery: what a killed tracer held then runs again, or never will."""
        deadline = time.monotonic() + 1
        while True:
            states = set(task_states(subject.pid).values()) - set("ZX")
            if not states:
                return "ended"
            if subject.stopped and states == {"T"}:
                return None
            if not subject.stopped and not states & set("tT"):
                return None
            if time.monotonic() > deadline:
                return "running" if subject.stopped else "stopped"
            time.sleep(0.01)

    @property
    def right(self):
        return (not self.run.hung and not self.wrong and not self.left and
                (self.refused or self.whole == self.expected))

    def text(self):
        """A cell of the table."""
        words = []
        if self.run.hung:
            words.append("nothing in %.0f s" % self.run.seconds if not self.run.stacks else
                         "not ready in %.0f s" % self.run.seconds)
        elif self.wrong:
            words.append("**wrong names**")
        elif self.refused:
            words.append("says " + self.message.split("; ")[0] +
                         (", lists the threads" if self.listed else ""))
        elif self.whole == self.expected:
            words.append(RIGHT)
        elif not self.run.stacks:
            words.append("nothing")
        elif self.whole == 0 and self.unnamed == self.expected:
            words.append("no names")
        else:
            words.append("%d of %d whole" % (self.whole, self.expected))
        if self.run.seconds >= 2 and not self.run.hung:
            words.append("in %.0f s" % self.run.seconds)
        if self.left:
            words.append("**the process was left %s**" % self.left)
        return ", ".join(words)

    def __repr__(self):
        return "%s (status %s, %d of %d whole, wrong %s)\n%s\n%s" % (
            self.text(), self.run.status, self.whole, self.expected, self.wrong,
            self.run.stdout[:6000], self.run.stderr[:2000])


def judge(tool, subject, limit_s):
    return Verdict(subject, Run(tool, subject.pid, limit_s, subject.prefix))


def resume(subject):
    """Resumes a process that a tool may have left stopped."""
    if not subject.stopped:
        try:
            os.kill(subject.pid, signal.SIGCONT)
        except ProcessLookupError:
            pass
