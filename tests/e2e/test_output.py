"""A file named by --output appears when it is complete, or not at all, whenever the tool is
killed."""

import json
import os
import random
import signal
import subprocess
import tempfile
import time

from harness import LIMIT_S, STACKSNAP, EndToEnd, main

TRIES = 12


class Output(EndToEnd):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, "out")
        self.random = random.Random(1)

    def command(self, *arguments):
        return [STACKSNAP] + [str(word) for word in arguments] + ["-o", self.path]

    def run_killed(self, command, number, delay):
        """Whether it was killed in time. Then there is nothing; otherwise the whole document."""
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(delay)
        process.send_signal(number)
        _, errors = process.communicate(timeout=LIMIT_S)
        files = os.listdir(os.path.dirname(self.path))
        what = "%s after %.4f s: status %d, files %s, %s" % (
            command, delay, process.returncode, files, errors)
        if files:
            self.assertEqual(files, ["out"], what)
            with open(self.path, encoding="utf-8") as file:
                try:
                    json.load(file)
                except ValueError as error:
                    self.fail("%s: %s" % (what, error))
            os.unlink(self.path)
        return process.returncode < 0

    def check(self, *arguments):
        command = self.command(*arguments)
        begin = time.monotonic()
        subprocess.run(command, check=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL)
        duration = time.monotonic() - begin
        os.unlink(self.path)
        killed = 0
        for i in range(TRIES):
            number = signal.SIGTERM if i % 2 else signal.SIGINT
            killed += self.run_killed(command, number, self.random.uniform(0, duration))
        self.assertGreater(killed, 0, "the tool was never killed in time")

    def test_snap(self):
        self.check("-f", "json", self.start("deep", 300).pid)

    def test_report(self):
        target = self.start("deep", 300)
        with tempfile.TemporaryDirectory() as directory:
            recording = os.path.join(directory, "r")
            self.run_tool("-f", "recording", "-o", recording, target.pid)
            self.check("report", "-f", "json", recording)

    def test_existing(self):
        target = self.start("threads", 2)
        self.run_tool("-o", self.path, target.pid)
        with open(self.path, encoding="utf-8") as file:
            before = file.read()
        result = self.run_tool("-o", self.path, target.pid, status=(2,))
        self.assertIn(b"already exists", result.stderr)
        with open(self.path, encoding="utf-8") as file:
            self.assertEqual(file.read(), before)
        self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o600)


if __name__ == "__main__":
    main()
