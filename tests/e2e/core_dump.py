"""Runs commands that a signal ends, and finds the core files that the kernel writes."""

import glob
import os
import re
import resource
import shutil
import subprocess
import tempfile

from harness import EndToEnd, LIMIT_S, TARGETS, read_text


def eu_stack(core, program, frames=0):
    """The program counters of each thread, as eu-stack finds them. frames: of each; 0: all."""
    text = subprocess.run(["eu-stack", "-n", str(frames), "--core=" + core,
                           "--executable=" + program], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, timeout=LIMIT_S, text=True).stdout
    stacks, counters = {}, []
    for line in text.splitlines():
        thread = re.match(r"TID (\d+):", line)
        frame = re.match(r"#\d+ +0x([0-9a-f]+)", line)
        if thread:
            stacks[int(thread.group(1))] = counters = []
        elif frame:
            counters.append(int(frame.group(1), 16))
    return stacks


class CoreDump(EndToEnd):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="stacksnap-core-")
        self.addCleanup(shutil.rmtree, self.directory)

    def dump(self, *command, environment=None, may_live=False):
        """Runs a command that a signal ends (may_live: or a child of it); returns its core
        file."""
        pattern = read_text("/proc/sys/kernel/core_pattern").strip()
        if pattern.startswith(("|", "@")) or pattern == "":
            self.skipTest("core files go to a program: core_pattern is '%s'" % pattern)
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        if hard != resource.RLIM_INFINITY:
            self.skipTest("the limit of core files (ulimit -Hc) is %d" % hard)
        place = tempfile.mkdtemp(dir=self.directory)
        process = subprocess.Popen(
            command, cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=environment and {**os.environ, **environment},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)))
        self.addCleanup(process.kill)
        process.wait(LIMIT_S)
        if not may_live:
            self.assertLess(process.returncode, 0)
        directory = os.path.join(place, os.path.dirname(pattern))
        found = glob.glob(os.path.join(place, "core*"))
        found = found or [path for path in glob.glob(os.path.join(directory, "*"))
                          if str(process.pid) in os.path.basename(path)]
        if len(found) != 1:
            self.skipTest("the kernel wrote no core file that can be found (core_pattern '%s')"
                          % pattern)
        path = os.path.join(place, "the.core")
        os.rename(found[0], path)
        return path

    def crash(self, how):
        return self.dump(os.path.join(TARGETS, "crash"), how)
