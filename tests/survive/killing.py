"""Tools that are killed by SIGKILL while they trace a process, and cannot clean up."""

import os
import signal
import subprocess
import time

from harness import LIMIT_S, status_field, task_states, wait_until


def is_free(pid, limit_s):
    """Whether, before long, the process has no tracer and no stopped thread."""
    try:
        wait_until(lambda: status_field(pid, "TracerPid") == "0" and
                   not set(task_states(pid).values()) & set("tT"), "the process to run", limit_s)
    except AssertionError:
        return False
    return True


def duration_s(command):
    """The duration of an undisturbed run."""
    begin = time.monotonic()
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        pass
    return time.monotonic() - begin


def kill_at_random(command, pid, count, generator):
    """Runs the command count times and kills it at a random moment, after sending a signal to
    the process. Returns how often the process was left stopped and had to be resumed."""
    whole_s = duration_s(command + [str(pid)])
    left = 0
    for _ in range(count):
        tool = subprocess.Popen(command + [str(pid)], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        moment = generator.uniform(0, whole_s)
        time.sleep(moment / 2)  # a random moment, not synchronisation
        os.kill(pid, signal.SIGRTMIN)
        time.sleep(moment / 2)
        tool.kill()
        tool.wait(LIMIT_S)
        if not is_free(pid, 1):
            left += 1
            os.kill(pid, signal.SIGCONT)
            is_free(pid, 1)
    return left
