"""Threads in each call that sleeps, while another process sends them SIGSTOP and SIGCONT all the time. A
thread may be in a call again that must not be interrupted when the tool reaches one that it saw stopped."""

import subprocess
import sys

from harness import LIMIT_S
from subjects import Lab

STOPS = 5  # without the tool

# Until the end of its input; then prints how often it stopped the process.
STORM = """
import os, random, select, signal, sys, time
pid, stops, generator = int(sys.argv[1]), 0, random.Random(7)
def wait_for(states):
    found = None
    while not found or found - states:
        found = set()
        for tid in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/stat" % (pid, tid)) as file:
                found.add(file.read().rsplit(")", 1)[1].split()[0])
        time.sleep(0.001)
while stops < int(sys.argv[2]) or not select.select([0], [], [], 0)[0]:
    os.kill(pid, signal.SIGSTOP)
    wait_for({"T", "t"})
    time.sleep(generator.uniform(0, 0.02))
    os.kill(pid, signal.SIGCONT)
    wait_for({"S"})
    stops += 1
print(stops)
"""


def count(runs):
    """How often each call returned EINTR and how often otherwise, by name, and how often the process was
    stopped meanwhile. runs(pid) yields after each run of the tool."""
    with Lab() as lab:
        target = lab.start("eintr")
        storm = subprocess.Popen([sys.executable, "-c", STORM, str(target.pid), str(STOPS)],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in runs(target.pid):
            pass
        stops = int(storm.communicate("", LIMIT_S)[0])
        calls = [line.split() for line in target.finish()[1].splitlines()]
    return {call[0]: (int(call[1]), int(call[2])) for call in calls if call[3] != "missing"}, stops


def excess(number, stops, alone, alone_stops):
    """A signal ends a call each time, or never."""
    return max(0, number - (stops if alone >= alone_stops else alone))


def extra_returns(runs):
    """How much oftener each call returned than by the signals alone, with EINTR and otherwise."""
    alone, alone_stops = count(lambda pid: ())
    returned, stops = count(runs)
    return {name: sum(excess(number, stops, without, alone_stops)
                      for number, without in zip(numbers, alone.get(name, (0, 0))))
            for name, numbers in returned.items()}
