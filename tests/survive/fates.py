"""
Processes that fork, execute, exit or are killed while a tool looks at them
(targets/fates.c), just after the tool has attached, so that few tries miss it.
"""

import os
import random
import signal
import subprocess

from subjects import wait_until
from harness import LIMIT_S, task_states

# How the process ends, as subprocess reports it: its exit status, or minus a signal.
OWN = {"exit": 17, "abort": -signal.SIGABRT, "fault": -signal.SIGSEGV, "leave": 18,
       "fork": 18, "exec": 18}
SHOT = {number.name: -number for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV)}
STOPPED = ("SIGSTOP", "SIGCONT")
FATES = list(OWN) + list(SHOT) + list(STOPPED)
MISSED = 18

# Functions of the target that may be above fate_routine; static ones may be inlined.
TOPS = {"watch", "is_traced", "now_ns", "stdin_has_ended", "meet_exit", "meet_fault",
        "meet_fork", "meet_exec", "meet_nothing", "target_block"}
CHAINS = (["main", "target_init"], ["main", "target_wait"],
          ["main", "after_exec", "target_wait"],
          ["target_thread_main", "sleeper_routine", "target_block"])


class Outcome:
    """status: of the process. wanted: the right one. run: of the tool."""

    def __init__(self, wanted, status, run, hung, shot=True):
        self.wanted = wanted
        self.status = status
        self.run = run
        self.hung = hung
        self.missed = status == MISSED and (status != wanted or not shot)

    @property
    def right(self):
        return not self.hung and (self.missed or self.status == self.wanted)

    def __repr__(self):
        return "status %s, expected %s, tool hung: %s" % (self.status, self.wanted, self.hung)


def delay_us(generator):
    """Mostly during the freeze, sometimes long after it."""
    return int(10 ** generator.uniform(0, 3.7))


def run_tool(command, limit_s):
    """The result, and whether the tool had to be killed."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    try:
        output, errors = process.communicate(timeout=limit_s)
        hung = False
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        hung = True
    return subprocess.CompletedProcess(command, process.returncode, output, errors), hung


def meet(lab, fate, command, generator, limit_s=LIMIT_S):
    """Runs the command once on a new process, whose pid is appended."""
    delay = delay_us(generator)
    if fate in OWN:
        target = lab.start("fates", fate, delay, settle=False)
        run, hung = run_tool(command + [str(target.pid)], limit_s)
        return Outcome(OWN[fate], finish(target), run, hung)
    return shoot(lab, fate, command, delay, limit_s)


def shoot(lab, fate, command, delay, limit_s):
    target = lab.start("fates", "wait", 0)
    number = getattr(signal, fate)
    if number == signal.SIGCONT:
        os.kill(target.pid, signal.SIGSTOP)
        wait_until(lambda: set(task_states(target.pid).values()) == {"T"}, "it to stop")
    shooter = lab.start("fates", "shoot", target.pid, target.pid, int(number), delay,
                        settle=False)
    run, hung = run_tool(command + [str(target.pid)], limit_s)
    shot = "shot" in shooter.finish()[1]
    wanted = SHOT.get(fate, MISSED)
    if shot and fate == "SIGSTOP" and not reaches(target, "T"):
        wanted = "stopped"
    if shot and fate == "SIGCONT" and not reaches(target, "S"):
        wanted = "running"
    if fate in STOPPED:
        os.kill(target.pid, signal.SIGCONT)
    return Outcome(wanted, finish(target), run, hung, shot)


def reaches(target, state):
    try:
        wait_until(lambda: set(task_states(target.pid).values()) == {state}, "state " + state, LIMIT_S / 6)
    except AssertionError:
        return False
    return True


def finish(target):
    """The exit status, at the latest at the end of its standard input. None: it does not
    end, as a process that a tool has left stopped."""
    try:
        return target.finish()[0]
    except subprocess.TimeoutExpired:
        return None


def wrong_stacks(document):
    """Threads of a snapshot of fates with an impossible chain of its own functions."""
    found = []
    own = [index for index, module in enumerate(document["modules"])
           if os.path.basename(module["path"]) == "fates"]
    kinds = set()
    for thread in document["threads"]:
        names = [frame["symbol"] for frame in reversed(thread["frames"])
                 if frame["module"] in own and not frame["inlined"]]
        names = [name for name in names if name != "_start"]
        if names and names[-1] is None:
            names.pop()  # an entry of the PLT
        if names[:2] == ["target_thread_main", "fate_routine"]:
            right = set(names[2:]) <= TOPS
        else:
            right = any(names == chain[:len(names)] for chain in CHAINS)
        if thread["end"] != "root":
            right = set(names) <= TOPS.union(["fate_routine"], *CHAINS)
        if not right:
            found.append((thread["name"], thread["end"], names))
        kinds.update({"after_exec", "target_thread_main"}.intersection(names))
    if len(kinds) == 2:
        found.append("two programs in one snapshot")
    return found


def tries(default):
    """How often each is tried: STACKSNAP_TRIES, or this default."""
    return int(os.environ.get("STACKSNAP_TRIES", default))


def seeded():
    return random.Random(int(os.environ.get("STACKSNAP_SEED", "1")))
