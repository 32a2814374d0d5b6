"""The installation is usable: the example is built from an installed prefix, as any other
program, with the shared and the static library."""
# ctest: release-only

import glob
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest

SOURCE = os.environ["SOURCE"]
EXAMPLE = os.path.join(SOURCE, "tests/example/snapshot.c")


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60, **options)
    if done.returncode != 0:
        raise AssertionError("%s: %d\n%s" % (command, done.returncode, done.stdout))
    return done.stdout


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.top)
        cls.prefix = os.path.join(cls.top, "a prefix")
        run(["cmake", "--install", os.environ["BUILD"], "--prefix", cls.prefix])
        cls.libdir = os.path.dirname(os.path.dirname(
            glob.glob(cls.prefix + "/lib*/**/stacksnap.pc", recursive=True)[0]))
        cls.environment = dict(os.environ, PKG_CONFIG_PATH=cls.libdir + "/pkgconfig",
                               LD_LIBRARY_PATH=cls.libdir)

    def build(self, *options, flags="--libs"):
        """Lets the shell split the output of pkg-config, as makefiles do."""
        program = os.path.join(self.top, "example")
        command = 'eval "%s \'%s\' -o \'%s\' %s $(pkg-config --cflags %s stacksnap)"' % (
            os.environ["CC"], EXAMPLE, program, " ".join(options), flags)
        run(["sh", "-ec", command], env=self.environment)
        return program

    def check(self, program):
        """It prints what the tool prints."""
        with subprocess.Popen(["sleep", "100"]) as target:
            try:
                while not read("/proc/%d/syscall" % target.pid).startswith("230 "):
                    time.sleep(0.01)  # until clock_nanosleep(2)
                texts = [run([*words, str(target.pid)], env=self.environment)
                         for words in ([self.prefix + "/bin/stacksnap"], [program])]
            finally:
                target.kill()
        self.assertIn("nanosleep", texts[0])
        # Which package has the names only the tool finds out.
        texts = [text.split("\n\nmissing: names in")[0].rstrip() for text in texts]
        texts = [re.sub(r"\d+:\d+:[\d.]+|\d+(\.\d+)? m?s\b", "TIME", text) for text in texts]
        self.assertEqual(texts[0], texts[1])

    def test_shared(self):
        program = self.build()
        self.assertIn("libstacksnap.so.1", run(["readelf", "-d", program]))
        self.check(program)

    def test_static_library(self):
        hidden = [path for path in glob.glob(self.libdir + "/libstacksnap.so*")]
        for path in hidden:
            os.rename(path, path + ".away")
        try:
            self.check(self.build(flags="--libs --static"))
        except AssertionError as error:
            if "cannot find -l" in str(error):
                self.skipTest("a static library is missing: %s" % error)
            raise
        finally:
            for path in hidden:
                os.rename(path + ".away", path)

    def test_cplusplus(self):
        """The headers need no other header, in C++ as well."""
        include = os.path.join(self.prefix, "include")
        for name in ("stacksnap.h", "stacksnap/record.h", "stacksnap/trace.h"):
            for compiler, language in ((os.environ["CC"], "c"), ("c++", "c++")):
                run([compiler, "-x", language, "-Wall", "-Wextra", "-Werror", "-pedantic",
                     "-I", include, "-fsyntax-only", os.path.join(include, name)])

    def test_version(self):
        version = run(["pkg-config", "--modversion", "stacksnap"], env=self.environment)
        version_text = run([self.prefix + "/bin/stacksnap", "--version"])
        self.assertIn(version.strip(), version_text)
        for page in glob.glob(SOURCE + "/man/*.[135]"):
            self.assertIn('"stacksnap %s"' % version.strip(), read(page).split("\n")[0], page)

    def test_files(self):
        """All manual pages, and a completion for each shell."""
        pages = {os.path.basename(path) for path in glob.glob(SOURCE + "/man/*.[135]")}
        found = {os.path.basename(path) for path in
                 glob.glob(self.prefix + "/share/man/man[135]/*")}
        self.assertEqual(found, pages)
        for path in ("bash-completion/completions/stacksnap",
                     "zsh/site-functions/_stacksnap",
                     "fish/vendor_completions.d/stacksnap.fish"):
            self.assertGreater(os.path.getsize(self.prefix + "/share/" + path), 100)
        for name in ("LICENSE", "licences.md"):
            self.assertTrue(os.path.exists(self.prefix + "/share/doc/stacksnap/" + name), name)
        run(["bash", "-n", self.prefix + "/share/bash-completion/completions/stacksnap"])

    def test_components(self):
        """Each file belongs to one component; a tool without the library works."""
        files = {}
        for name in ("tool", "library", "dev", "licence"):
            prefix = os.path.join(self.top, name)
            run(["cmake", "--install", os.environ["BUILD"], "--prefix", prefix, "--component", name])
            files[name] = {os.path.relpath(os.path.join(directory, file), prefix)
                           for directory, _, names in os.walk(prefix) for file in names}
        everything = {os.path.relpath(os.path.join(directory, file), self.prefix)
                      for directory, _, names in os.walk(self.prefix) for file in names}
        self.assertEqual(sorted(path for paths in files.values() for path in paths), sorted(everything))
        self.assertTrue(all(".so." in path for path in files["library"]), files["library"])
        self.assertFalse({path for path in files["dev"] if not re.search(
            r"\.(h|a|so|pc|3)$", path)})
        self.assertIn("stacksnap", run([self.top + "/tool/bin/stacksnap", "--version"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
