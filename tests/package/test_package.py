"""What ./dev package makes: twice the same from two directories, and each package, installed in a fresh
tree, takes a snapshot of a process."""
# ctest: long release-only serial timeout=3600

import glob
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

SOURCE = os.environ["SOURCE"]
TARGETS = os.environ["TARGETS"]
EPOCH = "1700000000"


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                          check=False, **{"timeout": 1800, **options})
    if done.returncode != 0:
        raise AssertionError("%s: %d\n%s%s" % (command, done.returncode, done.stdout[-4000:], done.stderr[-8000:]))
    return done.stdout


def read(path, mode="r"):
    with open(path, mode) as file:
        return file.read()


def copy(directory):
    if os.path.exists(SOURCE + "/.git"):
        names = run("git", "-C", SOURCE, "ls-files", "-z").split("\0")[:-1]
        for name in names:
            os.makedirs(os.path.dirname(os.path.join(directory, name)), exist_ok=True)
            shutil.copy2(os.path.join(SOURCE, name), os.path.join(directory, name))
    else:
        shutil.copytree(SOURCE, directory, ignore=lambda path, _: ["build"] if path == SOURCE else [])


def packages(directory):
    os.makedirs(directory + "/build")
    os.symlink(SOURCE + "/build/aarch64", directory + "/build/aarch64")
    run("python3", directory + "/packaging/package.py", directory + "/out", SOURCE + "/build/libunwind/prefix",
        env=dict(os.environ, SOURCE_DATE_EPOCH=EPOCH))
    return directory + "/out"


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not os.path.exists(SOURCE + "/build/aarch64/root"):
            raise unittest.SkipTest("nothing to build for aarch64 with: run ./dev package")
        top = tempfile.mkdtemp(prefix="stacksnap-package.")
        cls.addClassCleanup(shutil.rmtree, top)
        cls.top = top
        for name in ("one", "another-directory"):
            copy(os.path.join(top, name))
        cls.out = packages(top + "/one")

    def setUp(self):
        self.tree = tempfile.mkdtemp(dir=self.top)

    def find(self, pattern):
        found = glob.glob(os.path.join(self.out, pattern))
        self.assertEqual(len(found), 1, (pattern, found))
        return found[0]

    def check(self, program, documents=None):
        """It sees a deadlock, and all licences are there."""
        with subprocess.Popen([TARGETS + "/deadlock", "globals"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as target:
            try:
                self.assertEqual(target.stdout.readline(), "ready\n")
                text = run(program, str(target.pid), timeout=60)
            finally:
                target.kill()
        self.assertIn("DEADLOCK: 2 threads", text)
        self.assertIn("first_then_second", text)
        if documents:
            self.assertIn("MIT License", read(documents + "/LICENSE"))
            texts = read(documents + "/third-party")
            for word in ("libunwind", "libjansson-dev", "libc6-dev", "libdw-dev", "GNU LESSER GENERAL PUBLIC"):
                self.assertIn(word, texts)

    def test_reproducible(self):
        other = packages(self.top + "/another-directory")
        self.addCleanup(shutil.rmtree, os.path.dirname(other))
        names = sorted(name for name in os.listdir(self.out) if name != "work")
        self.assertEqual(names, sorted(name for name in os.listdir(other) if name != "work"))
        self.assertEqual(len(names), 16, names)
        for name in names:
            with self.subTest(name):
                self.assertTrue(read(os.path.join(self.out, name), "rb") == read(os.path.join(other, name), "rb"))

    def test_sums(self):
        run("sha256sum", "--strict", "-c", "SHA256SUMS", cwd=self.out)

    def test_tarball(self):
        run("tar", "-xzf", self.find("*-linux-x86_64.tar.gz"), "-C", self.tree, "--strip-components=1")
        self.check(self.tree + "/bin/stacksnap", self.tree + "/share/doc/stacksnap")
        run("tar", "-xzf", self.find("*-x86_64-debug.tar.gz"), "-C", self.tree)
        build_id = re.search("build-id: (.*)", run(self.tree + "/bin/stacksnap", "--version"))[1]
        debug = "%s/lib/debug/.build-id/%s/%s.debug" % (self.tree, build_id[:2], build_id[2:])
        self.assertIn(build_id, run("readelf", "-n", debug))
        self.assertIn("main.c", run("readelf", "--debug-dump=info", "--dwarf-depth=1", debug))

    def test_deb(self):
        debs = glob.glob(self.out + "/*.deb")
        self.assertEqual(len(debs), 5)
        for part in ("info", "updates"):
            os.makedirs(self.tree + "/var/lib/dpkg/" + part)
        for file in ("status", "available"):
            open(self.tree + "/var/lib/dpkg/" + file, "w").close()
        run("dpkg", "--root=" + self.tree, "--force-depends", "--force-script-chrootless", "--install", *debs)
        usr = self.tree + "/usr"
        self.check(usr + "/bin/stacksnap")
        self.assertIn("Permission is hereby granted", read(usr + "/share/doc/stacksnap/copyright"))
        build_id = re.search("build-id: (.*)", run(usr + "/bin/stacksnap", "--version"))[1]
        self.assertTrue(os.path.exists("%s/lib/debug/.build-id/%s/%s.debug" % (usr, build_id[:2], build_id[2:])))
        # A program with the library.
        libraries = usr + "/lib/x86_64-linux-gnu"
        flags = run("pkg-config", "--cflags", "--libs", "stacksnap",
                    env=dict(os.environ, PKG_CONFIG_PATH=libraries + "/pkgconfig")).split()
        run("cc", SOURCE + "/tests/example/snapshot.c", "-o", self.tree + "/example", *flags)
        self.assertIn("libstacksnap.so.1", run("readelf", "-d", self.tree + "/example"))
        shown = run("env", "LD_LIBRARY_PATH=" + libraries, self.tree + "/example", str(os.getpid()))
        self.assertIn("main thread", shown)
        # All that they depend on can be had.
        run("apt-get", "--simulate", "install", *debs)

    def test_rpm(self):
        package = self.find("*.x86_64.rpm")
        self.assertIn("/usr/share/man/man1/stacksnap.1", run("rpm", "-qlp", package))
        requires = run("rpm", "-qp", "--requires", package).split("\n")
        self.assertEqual([line for line in requires if line and not line.startswith("rpmlib(")], [])
        run("rpm", "--root", self.tree, "--dbpath", "/db", "--force-debian", "--nodeps", "-i", package)
        self.check(self.tree + "/usr/bin/stacksnap", self.tree + "/usr/share/doc/stacksnap")

    def test_npm(self):
        run("npm", "install", "--offline", "--no-audit", "--no-fund", "--prefix", self.tree, self.find("*.tgz"),
            cwd=self.tree)
        self.check(self.tree + "/node_modules/.bin/stacksnap", self.tree + "/node_modules/stacksnap")

    def test_wheel(self):
        run("/usr/bin/python3", "-m", "venv", "--system-site-packages", self.tree)
        run(self.tree + "/bin/pip", "install", "--no-index", self.find("*_x86_64.whl"))
        self.check(self.tree + "/bin/stacksnap", glob.glob(self.tree + "/lib/*/*/stacksnap-*/licenses")[0])
        # The plugin of pytest.
        with open(self.tree + "/test_slow.py", "w", encoding="utf-8") as file:
            file.write("import time\ndef test_that_is_slow():\n    time.sleep(3)\ndef test_fast():\n    pass\n")
        done = subprocess.run([self.tree + "/bin/python", "-m", "pytest", "-p", "no:cacheprovider",
                               "--stacksnap-timeout=1", self.tree + "/test_slow.py"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"stacksnap: \S*::test_that_is_slow is slow\n")
        self.assertIn("test_that_is_slow at ", done.stdout)
        self.assertNotIn("test_fast is slow", done.stdout)

    def test_image(self):
        version = run(self.out + "/work/tree-x86_64/bin/stacksnap", "--version").split()[1]
        image = "oci-archive:%s:localhost/stacksnap:%s" % (self.find("*-oci.tar"), version)
        about = json.loads(run("skopeo", "inspect", image))
        self.assertEqual((about["Architecture"], about["Os"]), ("amd64", "linux"))
        run("skopeo", "copy", image, "dir:" + self.tree + "/image")
        manifest = json.loads(read(self.tree + "/image/manifest.json"))
        layer, = manifest["layers"]
        with tarfile.open(self.tree + "/image/" + layer["digest"].split(":")[1]) as archive:
            archive.extractall(self.tree + "/root")
        config = json.loads(read(self.tree + "/image/" + manifest["config"]["digest"].split(":")[1]))
        program, = config["config"]["Entrypoint"]
        self.check(self.tree + "/root" + program, self.tree + "/root/usr/share/doc/stacksnap")
        self.assertRegex(run("chroot", self.tree + "/root", program, "--version"), r"^stacksnap \d")

    def test_aarch64(self):
        run("tar", "-xzf", self.find("*-linux-aarch64.tar.gz"), "-C", self.tree, "--strip-components=1")
        programs = [self.tree + "/bin/stacksnap"]
        run("npm", "install", "--offline", "--no-audit", "--no-fund", "--prefix", self.tree, self.find("*.tgz"),
            cwd=self.tree)
        programs.append(self.tree + "/node_modules/stacksnap/bin/stacksnap-aarch64")
        run("rpm", "--root", self.tree, "--dbpath", "/db", "--force-debian", "--nodeps", "--ignorearch", "-i",
            self.find("*.aarch64.rpm"))
        programs.append(self.tree + "/usr/bin/stacksnap")
        shutil.unpack_archive(self.find("*_aarch64.whl"), self.tree + "/wheel", "zip")
        programs += glob.glob(self.tree + "/wheel/*.data/scripts/stacksnap")
        about = json.loads(run("skopeo", "inspect", "--override-arch=arm64", "oci-archive:" + self.find("*-oci.tar")))
        self.assertEqual(about["Architecture"], "arm64")
        run("skopeo", "copy", "--override-arch=arm64", "oci-archive:" + self.find("*-oci.tar"), "dir:" + self.tree + "/image")
        layer, = json.loads(read(self.tree + "/image/manifest.json"))["layers"]
        run("tar", "-xzf", self.tree + "/image/" + layer["digest"].split(":")[1], "-C", self.tree, "usr/bin/stacksnap")
        programs.append(self.tree + "/usr/bin/stacksnap")
        self.assertEqual(len(programs), 5)
        for program in programs:
            os.chmod(program, 0o755)  # zipfile keeps no modes
            self.assertRegex(run("qemu-aarch64-static", program, "--version"), r"^stacksnap \d")
        self.assertIn("libunwind", read(self.tree + "/share/doc/stacksnap/third-party"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
