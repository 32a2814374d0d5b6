"""Tools that are killed while they hold a process (SIGKILL: they cannot clean up)."""

import os
import signal
import subprocess
import time

from harness import LIMIT_S, status_field, task_states, wait_until


def is_free(pid, limit_s):
    """Whether nobody holds the process and no thread of it is stopped, soon."""
    try:
        wait_until(lambda: status_field(pid, "TracerPid") == "0" and
                   not set(task_states(pid).values()) & set("tT"), "it", limit_s)
    except AssertionError:
        return False
    return True


def duration_s(command):
    """Of a run that nobody disturbs."""
    begin = time.monotonic()
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        pass
    return time.monotonic() - begin


def kill_at_random(command, pid, count, generator):
    """Starts the command so often, and kills it at any moment of its run. A signal is sent
    to the process each time. How often it was left stopped, and was woken then."""
    whole_s = duration_s(command + [str(pid)])
    left = 0
    for _ in range(count):
        tool = subprocess.Popen(command + [str(pid)], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        moment = generator.uniform(0, whole_s)
        time.sleep(moment / 2)  # moments to try, nothing that is waited for
        os.kill(pid, signal.SIGRTMIN)
        time.sleep(moment / 2)
        tool.kill()
        tool.wait(LIMIT_S)
        if not is_free(pid, 1):
            left += 1
            os.kill(pid, signal.SIGCONT)
            is_free(pid, 1)
    return left
