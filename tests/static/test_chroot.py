"""The static binary works in an empty root directory that has only /proc."""
# ctest: release-only

import json
import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import unittest

STACKSNAP = os.environ["STACKSNAP"]
STATIC = os.environ["STATIC"]
THREADS = os.path.join(os.environ["TARGETS"], "threads")
MEBIBYTE = 1 << 20

# Runs in a new mount namespace. If / is not a mount point, because the test itself runs in a
# chroot, mounts may propagate out of that namespace: therefore they are unmounted.
INSIDE = """
mount -t proc proc "$1/proc" || exit 99
chroot "$@"
status=$?
umount "$1/proc"
exit "$status"
"""


def unshare():
    for command in (["unshare", "--mount"],
                    ["unshare", "--mount", "--propagation", "unchanged"]):
        if subprocess.run(command + ["true"], stderr=subprocess.DEVNULL).returncode == 0:
            return command
    raise AssertionError("unshare: no mount namespace can be made")


def own_frames(document):
    """Per thread name the frames in the target's own file, which do not depend on other
    files. (Its path differs if the test itself runs in a chroot.)"""
    own = [i for i, module in enumerate(document["modules"])
           if os.path.basename(module["path"]) == "threads"]
    return {thread["name"]: [(frame["offset"], frame["symbol"], frame["line"])
                             for frame in thread["frames"] if frame["module"] in own]
            for thread in document["threads"]}


class Alone(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        os.mkdir(self.root + "/proc")
        shutil.copy(STATIC, self.root + "/stacksnap")
        self.target = subprocess.Popen([THREADS], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.target.wait)
        self.addCleanup(self.target.kill)
        self.addCleanup(self.target.stdin.close)
        self.addCleanup(self.target.stdout.close)
        for line in self.target.stdout:
            if line == "ready\n":
                break

    def chroot(self, *arguments):
        return subprocess.run(unshare() + ["sh", "-c", INSIDE, "sh", self.root, "/stacksnap",
                                           *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60)

    def test_snapshot(self):
        done = self.chroot("--format=json", str(self.target.pid))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        inside = json.loads(done.stdout)
        outside = json.loads(subprocess.run([STACKSNAP, "--format=json", str(self.target.pid)],
                                            stdout=subprocess.PIPE, check=True,
                                            timeout=60).stdout)
        self.assertEqual(own_frames(inside), own_frames(outside))
        self.assertEqual(len(inside["threads"]), 11)
        names = {frame["symbol"] for thread in inside["threads"] for frame in thread["frames"]}
        self.assertLessEqual({"wait_in_poll", "descend_odd", "target_wait", "main"}, names)
        self.assertEqual({thread["end"] for thread in inside["threads"]}, {"root"})

    def test_text_and_live(self):
        done = self.chroot("-a", "--mode=live", str(self.target.pid))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("wait_in_read", done.stdout)

    def test_denial_is_explained_there_too(self):
        done = self.chroot("1999999999")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no process 1999999999", done.stderr)

    def test_nothing_else_was_there(self):
        self.assertEqual(sorted(os.listdir(self.root)), ["proc", "stacksnap"])
        self.assertEqual(os.listdir(self.root + "/proc"), [])


class Binary(unittest.TestCase):
    def test_size(self):
        self.assertLess(os.path.getsize(STATIC), 8 * MEBIBYTE)
        self.assertTrue(os.stat(STATIC).st_mode & stat.S_IXUSR)

    def test_kind(self):
        """Position independent (ET_DYN), without an interpreter (PT_INTERP)."""
        with open(STATIC, "rb") as file:
            header = file.read(64)
            kind, = struct.unpack_from("<H", header, 16)
            table, = struct.unpack_from("<Q", header, 32)
            size, count = struct.unpack_from("<HH", header, 54)
            file.seek(table)
            types = {struct.unpack_from("<I", file.read(size))[0] for _ in range(count)}
        self.assertEqual(kind, 3, "not position independent")
        self.assertNotIn(3, types, "it has an interpreter")


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("chroot and mount are for root only")
        sys.exit(77)
    unittest.main(verbosity=2)
