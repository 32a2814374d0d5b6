"""A core dump in progress is not disturbed: the thread that writes it is neither attached nor
interrupted, so that the program at the other end of the pipe gets all of it. Needs root, because
it sets /proc/sys/kernel/core_pattern for a few seconds."""
# ctest: serial timeout=600 long-with-sanitizers

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "survive"))

from dumps import DUMP_BYTES, Dumps  # noqa: E402
from harness import EndToEnd, Snapshot, main  # noqa: E402
from subjects import Lab, Unavailable  # noqa: E402


class CoreDump(EndToEnd):
    def setUp(self):
        self.lab = self.enterContext(Lab())
        try:
            self.dumps = Dumps(self.lab)
            self.whole = self.dumps.size(self.dumps.begin())
        except Unavailable as reason:
            self.skipTest(str(reason))

    def test_dump_is_whole(self):
        self.assertGreater(self.whole, DUMP_BYTES)
        for mode in ("stop", "auto", "live", "no-stop"):
            with self.subTest(mode=mode):
                target = self.dumps.begin()
                for _ in range(5):
                    snapshot = Snapshot(self.run_tool("-f", "json", "--mode=" + mode,
                                                      target.pid, status=(0, 1)))
                    self.assertEqual(snapshot.data["capture"]["mode"], "no-stop")
                    self.assertEqual([t["stopped_ns"] for t in snapshot.threads
                                      if t["stopped_ns"]], [])
                    if mode != "no-stop":
                        self.assertIn("dumping core", str(snapshot.threads))
                self.assertGreater(self.dumps.size(target), self.whole * 0.99)
        for command in (["record", "-d", "1s", "-o", self.lab.path("recording")],
                        ["hang", "-d", "1s"]):
            with self.subTest(command=command[0]):
                target = self.dumps.begin()
                self.run_tool(*command, target.pid, status=None)
                self.assertGreater(self.dumps.size(target), self.whole * 0.99)


if __name__ == "__main__":
    main()
