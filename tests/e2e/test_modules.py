"""stacksnap modules --follow: where perf events are allowed, the kernel reports loads, so that
a module is seen that came and went between two looks."""

import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import EndToEnd, LIMIT_S, STACKSNAP, for_everyone, read_text, wait_until

# Loads a library and unloads it at once, as often as a line says.
LOADER = """
import _ctypes, sys
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        _ctypes.dlclose(_ctypes.dlopen(sys.argv[1], 2))
    print("done", flush=True)
"""
LOADS = 50
PYTHON = "/usr/bin/python3"  # that every user may execute


@unittest.skipUnless(os.access(PYTHON, os.X_OK), "needs Debian's python3")
class ModulesTest(EndToEnd):
    def library(self):
        """A library that nothing else has loaded."""
        directory = tempfile.mkdtemp(prefix="stacksnap-")
        self.addCleanup(shutil.rmtree, directory)
        os.chmod(directory, 0o755)
        path = os.path.join(directory, "libcame.so")
        shutil.copy(os.path.join(os.environ["TARGETS"], "chain", "libchain_0.so"), path)
        os.chmod(path, 0o755)
        return path

    def follow(self, user=None):
        """Returns what was printed about the library that came and went, and the errors."""
        change = (lambda: (os.setgid(user.pw_gid), os.setuid(user.pw_uid))) if user else None
        library = self.library()
        target = subprocess.Popen([PYTHON, "-c", LOADER, library],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  preexec_fn=change)
        self.addCleanup(target.stdin.close)
        self.addCleanup(target.stdout.close)
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        self.assertEqual(target.stdout.readline(), b"ready\n")
        out, errors = library + ".out", library + ".errors"
        with open(out, "wb") as out_file, open(errors, "wb") as errors_file:
            process = subprocess.Popen(
                [for_everyone(STACKSNAP) if user else STACKSNAP, "modules", "--follow",
                 str(target.pid)], stdout=out_file, stderr=errors_file, preexec_fn=change)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_until(lambda: "libc.so" in read_text(out) and "noticed" in read_text(errors),
                   "the list of modules")
        target.stdin.write(b"%d\n" % LOADS)
        target.stdin.flush()
        self.assertEqual(target.stdout.readline(), b"done\n")
        target.kill()
        process.wait(LIMIT_S)
        self.assertEqual(process.returncode, 0, read_text(errors))
        lines = [line for line in read_text(out).splitlines() if line.endswith(library)]
        return library, lines, read_text(errors)

    def test_loads_between_two_looks(self):
        library, lines, errors = self.follow()
        if "not available" in errors:
            self.skipTest(errors)
        self.assertIn("the kernel reports loads with their times", errors)
        signs = "".join(line.split()[1] for line in lines)
        self.assertEqual(signs.count("+"), LOADS, lines)
        self.assertEqual(signs.count("-"), LOADS, lines)
        text = subprocess.run(["readelf", "-n", library], stdout=subprocess.PIPE, check=True,
                              text=True).stdout
        build_id = re.search(r"Build ID: ([0-9a-f]+)", text).group(1)
        self.assertEqual({line.split()[4] for line in lines}, {build_id}, lines)
        times = [line.split()[0] for line in lines if line.split()[1] == "+"]
        self.assertEqual(times, sorted(times))

    def test_without_rights(self):
        if int(read_text("/proc/sys/kernel/perf_event_paranoid")) <= 0:
            self.skipTest("everybody may use perf events")
        _, _, errors = self.follow(pwd.getpwnam("nobody"))
        self.assertIn("perf events are not available", errors)


if __name__ == "__main__":
    unittest.main(verbosity=2)
