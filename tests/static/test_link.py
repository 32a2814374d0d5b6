"""What the static binary is linked from: docs/licences.md names it, and the build knows what can
be position independent."""
# ctest: release-only

import os
import re
import subprocess
import tempfile
import unittest

SOURCE = os.environ["SOURCE"]
STATIC = os.environ["STATIC"]


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True, text=True,
                          timeout=120).stdout


def archives():
    """The archives that a member was taken from."""
    with open(STATIC + ".map", encoding="utf-8") as file:
        text = file.read().split("Discarded input sections")[0]
    return set(re.findall(r"^(/\S+\.a)\(", text, re.M))


class Licences(unittest.TestCase):
    def test_all_are_named(self):
        with open(os.path.join(SOURCE, "docs", "licences.md"), encoding="utf-8") as file:
            named = set(re.findall(r"`(lib\w[\w-]*\.a)`", file.read()))
        linked = {os.path.basename(path) for path in archives()}
        self.assertLessEqual({"libc.a", "libdw.a", "libunwind.a"}, linked)
        self.assertEqual(linked - named, set())
        # These depend on how elfutils was built.
        self.assertLessEqual(named - linked, {"libbz2.a", "libeu.a"})


class Link(unittest.TestCase):
    def test_position_independence(self):
        """The configuration says whether Debian's libunwind.a permits it, as its relocations do."""
        with tempfile.TemporaryDirectory() as directory:
            text = run("cmake", "-S", SOURCE, "-B", directory, "-G", "Ninja", "-DSS_STATIC=ON", "-DSS_TESTS=OFF")
            with open(directory + "/build.ninja", encoding="utf-8") as file:
                rule = re.search(r"^build static/stacksnap.*?\n\n", file.read(), re.M | re.S)[0]
            library = re.search(r"\S+/libunwind-generic\.a", rule)[0]
        absolute = "R_X86_64_32" in run("readelf", "-rW", library)
        self.assertEqual("not position independent" in text.replace("\n  ", " "), absolute, text)
        self.assertEqual("-static-pie" in rule, not absolute)

    def test_debug_file(self):
        """It is apart, and belongs to the binary."""
        self.assertNotIn(".debug_info", run("readelf", "-SW", STATIC))
        self.assertIn(".debug_info", run("readelf", "-SW", STATIC + ".debug"))
        ids = [re.search("Build ID: .*", run("readelf", "-n", path))[0] for path in (STATIC, STATIC + ".debug")]
        self.assertEqual(ids[0], ids[1])
        self.assertIn(ids[0].split()[-1], run(STATIC, "--version"))

    def test_no_loader(self):
        with subprocess.Popen(["sleep", "100"]) as target:
            try:
                done = subprocess.run([STATIC, "--debuginfod", str(target.pid)], stderr=subprocess.PIPE, text=True,
                                      env=dict(os.environ, DEBUGINFOD_URLS="http://127.0.0.1:1"), timeout=60,
                                      check=False)
            finally:
                target.kill()
        self.assertEqual(done.returncode, 2)
        self.assertIn("this static binary cannot load libdebuginfod.so.1", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
