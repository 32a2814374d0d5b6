"""Programs that were built with version 1.0 of the library run with this one: abi_1.txt holds for its headers.
(COMPATIBILITY of stacksnap(3) promises that.)"""
# ctest: release-only

import os
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = os.environ["SOURCE"]
HEADERS = ("stacksnap.h", "stacksnap/record.h", "stacksnap/trace.h")


def assertions(text):
    """abi_1.txt as C."""
    text = re.sub(r"^#.*\n", "", text, flags=re.M).replace("\n\t", " ")
    yield "#include <stddef.h>"
    yield from ("#include <%s>" % name for name in HEADERS)
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "struct" and ": " in rest:
            name, members = rest.split(": ")
            for member, offset, size in (each.split() for each in members.split(", ")):
                yield '_Static_assert(offsetof(struct %s, %s) == %s, "");' % (name, member, offset)
                yield '_Static_assert(sizeof(((struct %s *)0)->%s) == %s, "");' % (name, member, size)
        elif kind == "size":
            yield '_Static_assert(sizeof(struct %s) == %s, "");' % tuple(rest.split())
        elif kind == "values:":
            yield from ('_Static_assert(%s == %s, "");' % tuple(each.split()) for each in rest.split(", "))
        else:
            # It is declared already, and has the same type.
            name = re.search(r"\b(ss_\w+)\(", line)[1]
            yield "void *address_of_%s = (void *)%s;\n%s;" % (name, name, line)


class Abi(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.top)
        self.include = self.top + "/include"
        shutil.copytree(SOURCE + "/include", self.include)
        with open(SOURCE + "/tests/library/abi_1.txt", encoding="utf-8") as file:
            self.lines = list(assertions(file.read()))
        with open(self.top + "/abi.c", "w", encoding="utf-8") as file:
            file.write("\n".join(self.lines) + "\n")

    def compile(self):
        return subprocess.run([os.environ["CC"], "-fsyntax-only", "-I", self.include, self.top + "/abi.c"],
                              stderr=subprocess.PIPE, text=True, check=False, timeout=60).stderr

    def change(self, pattern, by):
        path = self.include + "/stacksnap.h"
        with open(SOURCE + "/include/stacksnap.h", encoding="utf-8") as file:
            text, count = re.subn(pattern, by, file.read(), count=1, flags=re.M)
        self.assertEqual(count, 1)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return self.compile()

    def test_promise(self):
        self.assertGreater(len(self.lines), 1000)
        self.assertEqual(self.compile(), "")

    def test_it_can_fail(self):
        for pattern, by, error in (
                (r"^struct ss_frame \{", r"struct ss_frame {\n int more;", "static assertion failed"),
                (r"^\tSS_FRAME_PYTHON,", "SS_FRAME_NEW, SS_FRAME_PYTHON,", "static assertion failed"),
                (r"^SS_API const char \*ss_version\(void\);", "", "ss_version"),
                (r"^SS_API const char \*ss_version\(void\);", "SS_API const char *ss_version(int i);",
                 "conflicting types")):
            with self.subTest(by):
                self.assertIn(error, self.change(pattern, by))

    def test_what_may_grow(self):
        self.assertEqual(self.change(r"^(struct ss_frame \{(?:.*\n)*?)\};", r"\1 int more;\n};"), "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
