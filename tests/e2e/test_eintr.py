"""No blocking call of the target returns because of a snapshot or a recording, not even one
that has a time limit: threads whose call would end are read without a stop, in every mode."""
# ctest: serial tries=1000 timeout=600 release-only

import os
import tempfile

from harness import EndToEnd, Snapshot, main

TRIES = int(os.environ.get("STACKSNAP_TRIES", "25"))


class Interruptions(EndToEnd):
    def count_returns(self, *options):
        """Calls that returned while snapshots were taken: name to (EINTRs, other returns);
        and the number of stacks that were not whole, by name."""
        target = self.start("eintr")
        partial = {}
        for _ in range(TRIES):
            snapshot = Snapshot(self.run_tool("--raw", "-f", "json", *options, target.pid,
                                              status=(0, 1)))
            for thread in snapshot.threads:
                if thread["end"] != "root":
                    partial[thread["name"]] = partial.get(thread["name"], 0) + 1
        return self.finish(target), partial

    def finish(self, target):
        status, output = target.finish()
        self.assertEqual(status, 0)
        calls = [line.split() for line in output.splitlines()]
        self.assertGreater(len([1 for call in calls if call[3] == "infinite"]), 40)
        self.assertGreater(len([1 for call in calls if call[3] == "finite"]), 8)
        return {name: (int(eintrs), int(others)) for name, eintrs, others, kind in calls
                if kind != "missing" and (eintrs, others) != ("0", "0")}

    def test_default_mode(self):
        returned, partial = self.count_returns()
        self.assertEqual(returned, {})
        self.assertEqual(partial, {})

    def test_no_stop(self):
        returned, _ = self.count_returns("--mode=no-stop")
        self.assertEqual(returned, {})

    def test_modes_that_stop(self):
        for mode in ("stop", "live"):
            with self.subTest(mode=mode):
                returned, _ = self.count_returns("--mode=" + mode)
                self.assertEqual(returned, {})

    def test_record(self):
        target = self.start("eintr")
        with tempfile.TemporaryDirectory() as directory:
            self.run_tool("record", "-r", "199", "-d", "2s", "-o",
                          os.path.join(directory, "recording"), target.pid)
        self.assertEqual(self.finish(target), {})


class FileSystem(EndToEnd):
    """A read of a file of a FUSE file system, see targets/fuse_read.c."""

    def start_reader(self):
        if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
            self.skipTest("mounting a FUSE file system needs root and /dev/fuse")
        self.need_namespaces()
        return self.start("fuse_read")

    def test_read(self):
        for mode in ("stop", "live", "auto", "no-stop"):
            with self.subTest(mode=mode):
                target = self.start_reader()
                for _ in range(TRIES):
                    snapshot = Snapshot(self.run_tool("-f", "json", "--mode=" + mode,
                                                      target.pid, status=(0, 1)))
                    self.assertEqual(snapshot.thread("reader")["end"], "root")
                self.assertEqual(target.finish(), (0, "0 0\n"))

    def test_record(self):
        target = self.start_reader()
        with tempfile.TemporaryDirectory() as directory:
            self.run_tool("record", "-r", "199", "-d", "1s", "-o",
                          os.path.join(directory, "recording"), target.pid)
        self.assertEqual(target.finish(), (0, "0 0\n"))


if __name__ == "__main__":
    main()
