"""The headers and the shared library have the same public functions."""
# ctest: release-only

import os
import re
import subprocess
import unittest

SOURCE = os.environ["SOURCE"]
LIBRARY = os.path.join(os.environ["BUILD"], "libstacksnap.so")
VERSION = "STACKSNAP_1"


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


def headers():
    return "".join(read("include/" + name) for name in
                   ("stacksnap.h", "stacksnap/record.h", "stacksnap/trace.h"))


class Symbols(unittest.TestCase):
    def setUp(self):
        self.header = sorted(re.findall(r"^SS_API [^;(]*?\b(ss_\w+)\(",
                                        headers(), re.M))

    def test_every_declaration_is_marked(self):
        text = re.sub(r"/\*.*?\*/", "", headers(), flags=re.S)
        declared = re.findall(r"^(?!typedef)\w[^;{}]*?\b(ss_\w+)\([^;{}]*\);", text, re.M)
        self.assertEqual(sorted(declared), self.header)

    def test_library(self):
        exported = [line.split()[-1] for line in
                    run("nm", "-D", "--defined-only", "--with-symbol-versions",
                        LIBRARY).splitlines()]
        wanted = [name + "@@" + VERSION for name in self.header] + [VERSION]
        exported = [re.sub(r"^%s(@@.*)?$" % VERSION, VERSION, name) for name in exported]
        self.assertEqual(sorted(exported), sorted(wanted))

    def test_soname(self):
        self.assertRegex(run("readelf", "-d", LIBRARY), r"SONAME.*\[libstacksnap\.so\.1\]")


if __name__ == "__main__":
    unittest.main(verbosity=2)
