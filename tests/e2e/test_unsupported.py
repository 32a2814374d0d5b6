"""Languages whose functions are not known: one line says so, and JSON.

Debian packages: perl, ruby."""

import os
import shutil
import tempfile

from harness import EndToEnd, main

PROGRAMS = {
    "Perl": ["perl", "-e", '$| = 1; print "ready\n"; sub work { sleep 1000 } work()'],
    "Ruby": ["ruby", "-e", '$stdout.sync = true; puts "ready"; def work; sleep 1000; end; work'],
}


class Unsupported(EndToEnd):
    def test_line(self):
        for language, command in PROGRAMS.items():
            if not shutil.which(command[0]):
                continue
            with self.subTest(language=language):
                process = self.start_command(command)
                self.check(process.pid, language + "( [0-9.]+)?")

    def check(self, pid, language):
        text = self.run_tool(pid, status=(0, 1)).stdout.decode()
        self.assertRegex(text, r"\nmissing: functions of the program \(%s is not supported: "
                         "only those of the interpreter are shown" % language)
        snapshot = self.snap(pid, status=(0, 1))
        runtime, = snapshot.data["runtimes"]
        self.assertRegex(runtime["version"], "^%s$" % language)
        self.assertEqual(snapshot.thread(pid)["native_reason"], runtime["problem"])

    def test_version(self):
        """Of an interpreter the name of its file tells the version. One that is supported has a symbol
        that tells more; without it, it is no interpreter."""
        with tempfile.TemporaryDirectory() as directory:
            for name, version in (("python2.7", "CPython 2.7"), ("python3.6", "CPython 3.6"),
                                  ("pypy3.9", "PyPy 3.9"), ("php8.2", "PHP 8.2"), ("perl", "Perl"),
                                  ("python3.12", None), ("python", None), ("pythonic2.7", None)):
                with self.subTest(name=name):
                    path = os.path.join(directory, name)
                    shutil.copy("/bin/sh", path)
                    process = self.start_command([path, "-c", "echo ready; read line"])
                    if version:
                        self.check(process.pid, version)
                    else:
                        self.assertEqual(self.snap(process.pid, status=(0, 1)).data["runtimes"], [])

    def test_none(self):
        """Programs of no such language."""
        process = self.start_command(["sh", "-c", "echo ready; exec sleep 1000"])
        self.assertEqual(self.snap(process.pid, status=(0, 1)).data["runtimes"], [])


if __name__ == "__main__":
    main()
