"""stacksnap names: frames of rows get names, from local files and from a debuginfod server, after
the binaries are gone. Debian package: libdebuginfod1."""

import ctypes
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from file_server import Server  # noqa: E402
from recordings import LIMIT_S, STACKSNAP, ReportTest, main  # noqa: E402


class Names(ReportTest):
    def names(self, *words, text=None, status=0, environment=None):
        result = subprocess.run([STACKSNAP, "names", *words], input=text, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, timeout=LIMIT_S, check=False,
                                env=environment)
        self.assertEqual(result.returncode, status, result)
        self.message = result.stderr.decode()
        return [json.loads(line) for line in result.stdout.splitlines()]

    def frame(self, name="hash", build_id=None):
        return "%s+%#x" % (build_id or self.build_id, self.at[name])

    def test_path(self):
        frame = self.frame()
        rows = self.names(text=("%s\t%s\n" % (frame, self.library)).encode())
        self.assertEqual([(row["table"], row["frame"], row["names"][0], row["module"])
                          for row in rows], [("frames", frame, "shop_hash", self.library)])

    def test_another_build(self):
        other = "00" + self.build_id[2:]
        rows = self.names(text=("%s\t%s\n%s\t%s\n" % (
            self.frame(build_id=other), self.library, self.frame(), self.library)).encode(),
            status=1)
        self.assertEqual([row["frame"] for row in rows], [self.frame()])
        self.assertIn("1 of 2 frames have no name", self.message)

    def test_debuginfod(self):
        """With the binaries gone."""
        try:
            ctypes.CDLL("libdebuginfod.so.1")
        except OSError as error:
            self.skipTest(str(error))
        with open(self.library, "rb") as file:
            server = Server({"/buildid/%s/debuginfo" % self.build_id: file.read()})
        self.addCleanup(server.close)
        cache = self.path("cache")
        os.makedirs(cache, exist_ok=True)
        environment = dict(os.environ, DEBUGINFOD_URLS=server.url, HOME=cache,
                           DEBUGINFOD_CACHE_PATH=cache, no_proxy="*")
        self.assertEqual(self.names(self.frame(), status=2, environment=environment), [])
        self.assertEqual(server.asked, [])
        rows = self.names("--debuginfod", self.frame(), environment=environment)
        self.assertEqual([row["names"][0] for row in rows], ["shop_hash"])

    def test_wrong_input(self):
        for words in (["x"], ["12+34"], ["123+0x1"], ["+0x1"], ["12+0x"], ["12+0x1g"],
                      ["12+0x11111111111111111"], ["zz+0x1"]):
            with self.subTest(words=words):
                self.assertEqual(self.names(*words, status=2), [])
        self.assertEqual(self.names("--raw", status=64), [])
        self.assertEqual(self.names(text=b""), [])


if __name__ == "__main__":
    main()
