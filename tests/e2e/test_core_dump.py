"""A core dump in progress is not disturbed: the thread that writes it is neither attached nor
interrupted, so that the program at the other end of the pipe gets all of it. Needs root, because
it sets /proc/sys/kernel/core_pattern for a few seconds."""
# ctest: serial timeout=600

import os
import subprocess
import sys
import tempfile
import time
import unittest

from harness import LIMIT_S, EndToEnd, Snapshot, main, read_text, wait_until

PATTERN = "/proc/sys/kernel/core_pattern"

# Gets the pid and the dump; of other processes it takes nothing. "go" lets it read.
READER = """#!/bin/sh
cd %s || exit
[ "$1" = "$(/bin/cat pid)" ] || exit
echo > started
until [ -e go ]; do /bin/sleep 0.05; done
/usr/bin/wc -c > counting
/bin/mv counting size
"""

# 40 MB that do not repeat, and a second thread.
PROGRAM = """
import os, signal, threading
signal.signal(signal.SIGINT, signal.SIG_DFL)
memory = os.urandom(40 << 20)
threading.Thread(target=signal.pause, daemon=True).start()
os.write(1, b"ready\\n")
os.read(0, 1)
os.abort()
"""

# Whatever becomes of the test, its end is the end of this one's stdin.
GUARD = "cat > /dev/null; printf '%%s' \"$1\" > %s" % PATTERN


@unittest.skipUnless(os.access(PATTERN, os.W_OK), "cannot write " + PATTERN)
class CoreDump(EndToEnd):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        os.chmod(self.directory, 0o755)

    def path(self, name):
        return os.path.join(self.directory, name)

    def set_pattern(self, pattern):
        before = read_text(PATTERN).strip()
        guard = subprocess.Popen(["sh", "-c", GUARD, "guard", before],
                                 stdin=subprocess.PIPE, start_new_session=True)

        def restore():
            guard.stdin.close()
            guard.wait(LIMIT_S)

        self.addCleanup(restore)
        try:
            with open(PATTERN, "w") as file:
                file.write(pattern)
        except OSError as error:
            self.skipTest("%s: %s" % (PATTERN, error))

    def begin_dump(self):
        """A process whose dump nobody reads yet."""
        for name in ("started", "go", "size"):
            if os.path.exists(self.path(name)):
                os.unlink(self.path(name))
        target = self.start_command([sys.executable, "-c", PROGRAM])
        with open(self.path("pid"), "w") as file:
            file.write(str(target.pid))
        os.write(target.process.stdin.fileno(), b"\n")
        end = time.monotonic() + 5
        while not os.path.exists(self.path("started")):
            if time.monotonic() > end:
                self.skipTest("the kernel does not start the program of core_pattern here")
            time.sleep(0.02)
        return target

    def size(self, target):
        """What the reader got."""
        with open(self.path("go"), "w"):
            pass
        wait_until(lambda: os.path.exists(self.path("size")), "the core dump to end")
        target.process.wait(LIMIT_S)
        return int(read_text(self.path("size")))

    def test_dump_is_whole(self):
        reader = self.path("reader")
        with open(reader, "w") as file:
            file.write(READER % self.directory)
        os.chmod(reader, 0o755)
        self.set_pattern("|%s %%P" % reader)
        whole = self.size(self.begin_dump())
        self.assertGreater(whole, 40 << 20)
        for mode in ("stop", "auto", "live", "no-stop"):
            with self.subTest(mode=mode):
                target = self.begin_dump()
                for _ in range(5):
                    snapshot = Snapshot(self.run_tool("-f", "json", "--mode=" + mode,
                                                      target.pid, status=(0, 1)))
                    self.assertEqual(snapshot.data["capture"]["mode"], "no-stop")
                    self.assertEqual([t["stopped_ns"] for t in snapshot.threads
                                      if t["stopped_ns"]], [])
                    if mode != "no-stop":
                        self.assertIn("dumping core", str(snapshot.threads))
                self.assertGreater(self.size(target), whole * 0.99)
        for command in (["record", "-d", "1s", "-o", self.path("recording")],
                        ["hang", "-d", "1s"]):
            with self.subTest(command=command[0]):
                target = self.begin_dump()
                self.run_tool(*command, target.pid, status=None)
                self.assertGreater(self.size(target), whole * 0.99)


if __name__ == "__main__":
    main()
