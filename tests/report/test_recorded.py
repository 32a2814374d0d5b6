"""A real program, recorded and reported: the system's python3, which hashes for a while and
then sleeps."""
# ctest: quick

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from parsers import parse_folded, parse_perf  # noqa: E402
from recordings import ReportTest, main  # noqa: E402

PYTHON = "/usr/bin/python3"
PROGRAM = """
import hashlib, threading, time
def work():
    end = time.process_time() + 0.4
    while time.process_time() < end:
        hashlib.sha256(b"x" * 100_000).digest()
threads = [threading.Thread(target=work) for _ in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


class Recorded(ReportTest):
    @classmethod
    def setUpClass(cls):
        if not os.access(PYTHON, os.X_OK):
            raise unittest.SkipTest(PYTHON + " is missing")
        super().setUpClass()

    def test_python(self):
        path = self.path("python.rec")
        self.run_tool("record", "-r", 99, "-o", path, "--", PYTHON, "-c", PROGRAM,
                      status=(0, 1))
        data = json.loads(self.report("-f", "json", path, status=(0, 1)).stdout)
        samples = sum(sample["count"] for sample in data["samples"])
        self.assertGreater(samples, 10)
        self.assertGreaterEqual(len(data["threads"]), 3)
        paths = [module["path"] for module in data["modules"]]
        self.assertTrue(any("libcrypto" in path or "_sha" in path for path in paths), paths)
        running = [sample for sample in data["samples"] if sample["state"] == "R"]
        self.assertTrue(running)
        for name, parse in (("folded", parse_folded), ("perf", parse_perf)):
            text = self.report("-f", name, path, status=(0, 1)).stdout.decode()
            counts = parse(text).values()
            self.assertEqual(sum(c if name == "folded" else len(c) for c in counts), samples)
        text = self.report(path, status=(0, 1)).stdout.decode()
        self.assertIn("\nBlocking system calls\n", text)
        self.assertRegex(text, r"\n +\d+\.\d % +\d+\.\d %  \S*(sha256|SHA256|crypto)")


if __name__ == "__main__":
    main()
