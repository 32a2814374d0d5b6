"""Many recordings: directories, standard input, recordings that follow one another in a file, and
ten thousand of them with few descriptors and little memory."""
# ctest: long release-only

import json
import os
import resource
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from recordings import STACKSNAP, ReportTest, main  # noqa: E402
from recording import XXH, ZSTD  # noqa: E402
from test_specification import (START, WALL, chunk, definitions, header, number,  # noqa: E402
                                numbers, signed, text)

FILES = 10000
DESCRIPTORS = 1024
KIB_EACH = 6  # of memory; most is the process, its threads and what their stacks are in
KIB_BASE = 64 << 10


def recording(host, delay=0):
    segment = chunk(b"SEGM", numbers(0, START, WALL + delay, 10_000_000, 0) + text(b"x86_64") +
                    text(host.encode()) + text(b"stacksnap"))
    return header() + segment + recording.rest


class Many(ReportTest):
    def setUp(self):
        if not (ZSTD and XXH):
            self.skipTest("libzstd or libxxhash cannot be loaded")
        tick = bytes([0]) + number(0) + bytes([3 | (1 | 2 | 4) << 3]) + numbers(0, 0) + b"S"
        samples = chunk(b"SMPL", numbers(0, 1, 1, START) + signed(WALL - START) +
                        numbers(0, 0, 0) + tick)
        recording.rest = (chunk(b"DEFS", definitions(b"/opt/shop", b"12" * 20), packed=True) +
                          samples + chunk(b"SUMM", numbers(1, 1, 0, 0, 0, 0, 0, 2)))

    def write(self, name, *parts):
        path = self.path(os.path.join(self.id(), name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"".join(parts))
        return path

    def hosts(self, *arguments, status=(1,), **options):
        """The hosts of the recordings in a report, in its order, and what it warns of. The module is
        missing, which is a reason for status 1."""
        self.result = self.report("-f", "json", *arguments, status=status, **options)
        data = json.loads(self.result.stdout)
        return [recording["host"] for recording in data["recordings"]]

    def test_directory(self):
        """Recordings in a directory and those below, by time; other files do not matter."""
        top = os.path.dirname(self.write("b.ss", recording("second", 10)))
        self.write("sub/dir/a.ss", recording("third", 20))
        self.write("z.ss", recording("first"))
        self.write("crash.json", b"{}")
        self.write("empty", b"")
        self.write(".hidden", recording("hidden"))
        self.write(".git/x.ss", recording("hidden"))
        os.symlink(os.path.join(top, "b.ss"), os.path.join(top, "latest.ss"))
        self.assertEqual(self.hosts(top), ["first", "second", "third"])
        self.assertEqual(self.hosts(top, os.path.join(top, "z.ss")),
                         ["first", "first", "second", "third"])
        os.mkdir(os.path.join(top, "nothing"))
        nothing = os.path.join(top, "nothing")
        self.assertIn(b"neither recordings nor crash reports",
                      self.report(nothing, status=(2,)).stderr)
        self.assertIn(b"no recordings", self.report(nothing, nothing, status=(2,)).stderr)

    def test_concatenated(self):
        """Also if one was cut or damaged: it is named, and the others are whole."""
        one = recording("a")
        path = self.write("two.ss", one, recording("b", 10))
        self.assertEqual(self.hosts(path), ["a", "b"])
        self.assertNotIn(b"two.ss (", self.result.stderr)
        damaged = one[:-150] + bytes([one[-150] ^ 1]) + one[-149:]
        for broken in (one[:-10], one[:-100], damaged):
            path = self.write("broken.ss", one, broken, recording("c", 10))
            self.assertEqual(self.hosts(path), ["a", "a", "c"])
            self.assertIn(b"broken.ss (2): ", self.result.stderr)
            self.assertNotIn(b"broken.ss (3): ", self.result.stderr)
            self.assertNotIn(b"broken.ss: ", self.result.stderr)
        path = self.write("garbage.ss", one, b"something else")
        self.assertEqual(self.hosts(path), ["a"])
        self.assertIn(b"garbage.ss: ", self.result.stderr)

    def test_false_beginnings(self):
        """The search behind damage reads everything once."""
        def lower():
            resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
        path = self.write("false.ss", recording("a")[:-10], header()[:8] * (2 << 20),
                          recording("b", 10))
        self.assertEqual(self.hosts(path, preexec_fn=lower), ["a", "b"])

    def test_standard_input(self):
        """A pipe and a file; the report is that of the file."""
        both = recording("a") + recording("b", 10)
        path = self.write("both.ss", both)
        report = [STACKSNAP, "report", "-f", "folded", "-"]

        def folded(**options):
            return subprocess.run(report, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                                  check=False, **options)
        expected = self.report("-f", "folded", path, status=(1,)).stdout
        self.assertTrue(expected)
        self.assertEqual(folded(input=both).stdout, expected)
        self.assertIn(b"it is not a recording", folded(input=b"hello").stderr)
        self.assertIn(b"the file is empty", folded(input=b"").stderr)
        with open(path, "rb") as file:
            self.assertEqual(folded(stdin=file).stdout, expected)

    def test_ten_thousand(self):
        """Each host is there once, whether its file stayed open or was copied."""
        for i in range(FILES):
            path = self.write("host%05d.ss" % i, recording("host%05d" % i, i))

        def lower():
            resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        with open(self.path("ten-thousand.json"), "wb") as out:
            done = subprocess.run([STACKSNAP, "report", "-f", "json", os.path.dirname(path)],
                                  stdout=out, stderr=subprocess.PIPE, timeout=300,
                                  preexec_fn=lower, check=False)
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        self.assertEqual(done.returncode, 1, done.stderr[:2000])
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr[:2000])
        with open(self.path("ten-thousand.json"), "rb") as file:
            recordings = json.load(file)["recordings"]
        self.assertEqual([r["host"] for r in recordings], ["host%05d" % i for i in range(FILES)])
        if most > before:
            self.assertLess(most, KIB_BASE + FILES * KIB_EACH)


if __name__ == "__main__":
    main()
