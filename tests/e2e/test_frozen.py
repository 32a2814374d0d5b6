"""A process that a cgroup of version 2 keeps from running: its snapshot is complete, and names
the cgroup that froze it."""

import os
import subprocess

from harness import EndToEnd, STACKSNAP, main, read_text, wait_until

MODES = ("stop", "live", "no-stop", "auto")
MOUNTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
ODD = "stacksnap \x1b[31m%d" % os.getpid()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Frozen(EndToEnd):
    def setUp(self):
        """Creates two nested cgroups, the inner one with an unusual name."""
        mount = next((path for path in MOUNTS
                      if os.path.exists(os.path.join(path, "cgroup.controllers"))), None)
        if not mount:
            self.skipTest("no cgroup2 is mounted")
        self.path = "/stacksnap-test-%d" % os.getpid()
        self.outer = mount + self.path
        self.inner = os.path.join(self.outer, ODD)
        for path in (self.outer, self.inner):
            try:
                os.mkdir(path)
            except OSError as error:
                self.skipTest("no cgroup can be made in %s: %s" % (mount, error))
            self.addCleanup(self.remove, path)
        if not os.path.exists(os.path.join(self.outer, "cgroup.freeze")):
            self.skipTest("this kernel has no cgroup.freeze")
        self.target = self.start("threads", 2, 3)
        write(os.path.join(self.inner, "cgroup.procs"), str(self.target.pid))
        if not read_text("/proc/%d/cgroup" % self.target.pid).endswith(
                "0::%s/%s\n" % (self.path, ODD)):
            self.skipTest("we are in a cgroup namespace that shows other paths")

    def remove(self, path):
        """A process leaves its cgroup some time after it was killed."""
        wait_until(lambda: "populated 0" in read_text(os.path.join(path, "cgroup.events")),
                   path + " to be empty")
        os.rmdir(path)

    def freeze(self, path, freeze=True):
        write(os.path.join(path, "cgroup.freeze"), str(int(freeze)))
        wait_until(lambda: "frozen %d" % freeze in
                   read_text(os.path.join(self.inner, "cgroup.events")), "the freezer")

    def frozen(self, *arguments):
        return self.snap(self.target.pid, *arguments).data["process"]["frozen"]

    def test_by_its_own_cgroup(self):
        self.assertIsNone(self.frozen())
        self.freeze(self.inner)
        path = "%s/%s" % (self.path, ODD)
        for mode in MODES:
            snapshot = self.snap(self.target.pid, mode=mode)
            self.assertEqual(snapshot.data["process"]["frozen"], path)
            self.assertEqual({thread["end"] for thread in snapshot.threads}, {"root"})
        text = self.run_tool(self.target.pid).stdout.decode()
        self.assertIn(", atomic\nfrozen by the cgroup %s: no thread runs until it is thawed\n\n"
                      % path.replace("\x1b", "\\x1b"), text)
        self.assertIn("frozen 1", read_text(os.path.join(self.inner, "cgroup.events")))
        self.freeze(self.inner, False)
        self.assertIsNone(self.frozen())
        self.assertNotIn("frozen", self.run_tool(self.target.pid).stdout.decode())

    def test_by_an_ancestor(self):
        """The output names the ancestor, which is the one to thaw."""
        self.freeze(self.outer)
        self.assertEqual(self.frozen(), self.path)
        self.freeze(self.inner)
        self.assertEqual(self.frozen(), "%s/%s" % (self.path, ODD))

    def test_hang(self):
        self.freeze(self.outer)
        line = "frozen by the cgroup %s: no thread runs until it is thawed\n" % self.path
        self.assertIn(line, self.run_tool("hang", "--for=200ms", self.target.pid,
                                          status=(0, 3, 4)).stdout.decode())

    def test_from_another_namespace(self):
        """There the path of the cgroup is not visible, or is that of another cgroup."""
        beside = os.path.join(self.outer, "beside")
        other = os.path.join(os.path.dirname(self.outer), ODD)
        for path in (beside, other):
            os.mkdir(path)
            self.addCleanup(self.remove, path)
        write(os.path.join(other, "cgroup.freeze"), "1")
        self.freeze(self.inner)
        for place in (beside, self.outer):
            command = ["sh", "-c", 'echo $$ >"$1/cgroup.procs" && shift && exec unshare -C "$@"',
                       "sh", place, STACKSNAP, str(self.target.pid)]
            result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    timeout=60, check=False)
            if b"unshare" in result.stderr:
                self.skipTest("no cgroup namespace can be made")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertNotIn(b"frozen", result.stdout)


if __name__ == "__main__":
    main()
