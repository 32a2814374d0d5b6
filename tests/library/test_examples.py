"""The examples (tests/example): what they print is true, and they use every public function."""

import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests", "e2e"))
import tracefs  # pylint: disable=wrong-import-position

SOURCE = os.environ["SOURCE"]
TARGETS = os.environ["TARGETS"]
STACKSNAP = os.environ["STACKSNAP"]
EXAMPLES = os.path.join(os.environ["BUILD"], "tests", "example")
LIMIT_S = 120


def run(*command, status=0):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=LIMIT_S, check=False)
    if done.returncode != status:
        raise AssertionError("%s: %d\n%s\n%s" % (command, done.returncode, done.stdout,
                                                 done.stderr))
    return done.stdout


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)


class Examples(unittest.TestCase):
    def start(self, *command):
        target = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(target.communicate)
        self.addCleanup(target.kill)
        while "ready" not in target.stdout.readline():
            pass
        self.target = target
        return str(target.pid)

    def nest(self):
        self.target.stdin.write("nest\n" * 50)
        self.target.stdin.flush()

    def example(self, name, *arguments, kinds=("static", "shared"), **options):
        return [run(os.path.join(EXAMPLES, "example_%s_%s" % (name, kind)), *arguments, **options)
                for kind in kinds]

    def test_snapshot(self):
        """In thirty lines what the tool prints."""
        self.assertLessEqual(len(read("tests/example/snapshot.c").splitlines()), 30)
        pid = self.start(os.path.join(TARGETS, "threads"), "3", "2")
        texts = [run(STACKSNAP, pid), *self.example("snapshot", pid)]
        self.assertIn("target_wait", texts[0])
        texts = [re.sub(r"\d+:\d+:[\d.]+", "TIME", text) for text in texts]
        self.assertEqual(texts[1:], texts[:1] * 2)

    def test_no_process(self):
        self.example("snapshot", "0", status=1)

    def test_steps(self):
        for text in self.example("snapshot_child"):
            self.assertRegex(text, r"(?s)wait_for_parent\+.*child_main\+.*main\+")
            self.assertIn("ends at: root", text)

    def test_waits(self):
        pid = self.start(os.path.join(TARGETS, "deadlock"))
        for text in self.example("waits", pid):
            self.assertIn("deadlock of 2 threads", text)
            self.assertRegex(text, r"waits: mutex, mutex at 0x\w+, held by thread \d+")

    def test_record(self):
        pid = self.start(os.path.join(TARGETS, "busy"), "1")
        for kind in ("static", "shared"):
            with tempfile.TemporaryDirectory() as top:
                recording, snapshot = os.path.join(top, "recording"), os.path.join(top, "snapshot")
                [text] = self.example("record", pid, recording, snapshot, kinds=[kind])
                self.assertGreater(int(re.match(r"\d+", text)[0]), 10)
                self.assertRegex(text, r"(?m)^loaded .*/busy$")
                self.assertIn("process busy", text)
                self.assertIn("main", run(STACKSNAP, "report", "-f", "folded", snapshot))

    def test_trace(self):
        if not tracefs.mount():
            self.skipTest("needs root, and tracefs with uprobe_events")
        if not os.path.exists(os.path.join(EXAMPLES, "example_trace_static")):
            self.skipTest("built without traces")
        pid = self.start(os.path.join(TARGETS, "traced"))
        for kind in ("static", "shared"):
            ended = threading.Event()

            def nest():
                while not ended.wait(0.3):
                    self.nest()

            thread = threading.Thread(target=nest)
            thread.start()
            try:
                [text] = self.example("trace", pid, "outer", kinds=[kind])
            finally:
                ended.set()
                thread.join()
            self.assertRegex(text, r"(?m)^outer called by main$")
            self.assertRegex(text, r"(?m)^outer took \d+ us$")

    def test_all_functions(self):
        """Each public function is used."""
        code = "".join(read("tests/example", name)
                       for name in os.listdir(os.path.join(SOURCE, "tests/example"))
                       if name.endswith(".c"))
        headers = [read("include", name) for name in ("stacksnap.h", "stacksnap/record.h",
                                                      "stacksnap/trace.h")]
        functions = re.findall(r"^SS_API [^;(]*?\b(ss_\w+)\(", "".join(headers), re.M)
        self.assertEqual([name for name in functions
                          if not re.search(r"\b%s\b" % name, code)], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
