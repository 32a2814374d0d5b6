"""Core dumps to a program, as systemd-coredump gets them. Needs root, because it sets
/proc/sys/kernel/core_pattern; whatever becomes of the caller, it is reset."""

import fcntl
import os
import subprocess
import sys
import time

from harness import LIMIT_S, read_text, wait_until
from subjects import Unavailable

PATTERN = "/proc/sys/kernel/core_pattern"
LOCK = "/run/stacksnap-core-pattern"  # two at once would restore each other's pattern

# Gets the pid and the dump; of other processes it takes nothing. "go" lets it read.
READER = """#!/bin/sh
cd %s || exit
[ "$1" = "$(/bin/cat pid)" ] || exit
echo > started
until [ -e go ]; do /bin/sleep 0.05; done
/usr/bin/wc -c > counting
/bin/mv counting size
"""

# Much more than a pipe holds, and a second thread.
DUMP_BYTES = 16 << 20
PROGRAM = """
import os, signal, threading
signal.signal(signal.SIGINT, signal.SIG_DFL)
memory = os.urandom(%d)
threading.Thread(target=signal.pause, daemon=True).start()
os.write(1, b"ready\\n")
os.read(0, 1)
os.abort()
""" % DUMP_BYTES

# Its stdin ends with the caller.
GUARD = "cat > /dev/null; printf '%%s' \"$1\" > %s" % PATTERN


class Dumps:
    """The dumps of processes that begin() makes, until the end of the Lab."""

    def __init__(self, lab):
        self.lab = lab
        if not os.access(PATTERN, os.W_OK):
            raise Unavailable("cannot write " + PATTERN)
        os.chmod(lab.directory, 0o755)
        reader = lab.path("reader")
        with open(reader, "w", encoding="utf-8") as file:
            file.write(READER % lab.directory)
        os.chmod(reader, 0o755)
        # Until the guard, which inherits it, has ended.
        lock = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        guard = subprocess.Popen(["sh", "-c", GUARD, "guard", read_text(PATTERN).strip()],
                                 stdin=subprocess.PIPE, start_new_session=True,
                                 pass_fds=[lock])
        os.close(lock)
        lab.callback(guard.wait, LIMIT_S)
        lab.callback(guard.stdin.close)
        try:
            with open(PATTERN, "w", encoding="utf-8") as file:
                file.write("|%s %%P" % reader)
        except OSError as error:
            raise Unavailable("%s: %s" % (PATTERN, error)) from error

    def begin(self):
        """A process whose dump nobody reads yet."""
        for name in ("started", "go", "size"):
            if os.path.exists(self.lab.path(name)):
                os.unlink(self.lab.path(name))
        target = self.lab.start_file(sys.executable, "-c", PROGRAM, settle=False)
        with open(self.lab.path("pid"), "w", encoding="utf-8") as file:
            file.write(str(target.pid))
        os.write(target.process.stdin.fileno(), b"\n")
        end = time.monotonic() + 5
        while not os.path.exists(self.lab.path("started")):
            if time.monotonic() > end:
                raise Unavailable("the kernel does not start the program of core_pattern here")
            time.sleep(0.02)
        return target

    def size(self, target):
        """What the reader got."""
        with open(self.lab.path("go"), "w", encoding="utf-8"):
            pass
        wait_until(lambda: os.path.exists(self.lab.path("size")), "the core dump to end")
        target.process.wait(LIMIT_S)
        return int(read_text(self.lab.path("size")))
