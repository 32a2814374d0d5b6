"""The cache of names: the same snapshot with and without, and who may put what into it."""
# ctest: quick

import json
import os
import shutil
import stat
import subprocess
import tempfile

from harness import TARGETS, EndToEnd, for_everyone, main, task_states, wait_until

FRAMES = ("symbol", "offset", "file", "line", "column", "inlined")


class Cache(EndToEnd):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="stacksnap-cache-")
        self.addCleanup(shutil.rmtree, self.home)
        self.path = os.path.join(self.home, "stacksnap")

    def look(self, pid, *arguments, home=None, **options):
        """The frames of all threads, and what was said."""
        environment = dict(os.environ, XDG_CACHE_HOME=home or self.home)
        result = self.run_tool("-v", "-f", "json", *arguments, pid, env=environment, **options)
        snapshot = json.loads(result.stdout)
        return [[{key: frame[key] for key in FRAMES} for frame in thread["frames"]]
                for thread in snapshot["threads"]], result.stderr.decode()

    def entries(self):
        return sorted(os.listdir(self.path)) if os.path.exists(self.path) else []

    def entry_of(self, program):
        inode = "-%x-" % os.stat(program).st_ino
        return [os.path.join(self.path, name) for name in self.entries() if inode in name]

    def copy(self, name, change=None):
        """A copy of a target, in which bytes may be replaced."""
        path = os.path.join(self.home, name + "-" + str(len(os.listdir(self.home))))
        with open(os.path.join(TARGETS, name), "rb") as file:
            program = file.read()
        if change:
            self.assertIn(change[0], program)
            program = program.replace(*change)
        with open(path, "wb") as file:
            file.write(program)
        os.chmod(path, 0o755)
        return path

    def test_same_names(self):
        target = self.start("cplusplus")
        expected, _ = self.look(target.pid, "--no-cache")
        self.assertEqual(self.entries(), [])
        for _ in range(3):
            self.assertEqual(self.look(target.pid)[0], expected)
            self.assertEqual(len(self.entry_of(os.path.join(TARGETS, "cplusplus"))), 1)
        before = {name: os.stat(os.path.join(self.path, name)).st_mtime_ns
                  for name in self.entries()}
        self.look(target.pid)
        self.assertEqual({name: os.stat(os.path.join(self.path, name)).st_mtime_ns
                          for name in self.entries()}, before)
        for flags in (["--no-inlines"], ["--no-source"], ["--no-inlines", "--no-source"]):
            plain, _ = self.look(target.pid, "--no-cache", *flags)
            for _ in range(2):
                self.assertEqual(self.look(target.pid, *flags)[0], plain)
        self.assertEqual(self.look(target.pid)[0], expected)

    def test_package(self):
        """The package that has missing names is found once, and then in the cache."""
        if not os.path.exists("/var/lib/dpkg/status"):
            self.skipTest("no packages of Debian")
        target = self.start_command(["sh", "-c", "echo ready; exec sleep 600"])
        wait_until(lambda: "sleep" in os.readlink("/proc/%d/exe" % target.pid)
                   and set(task_states(target.pid).values()) == {"S"},
                   "sleep")
        environment = dict(os.environ, XDG_CACHE_HOME=self.home)

        def advice(*arguments):
            result = self.run_tool(*arguments, target.pid, env=environment)
            lines = result.stdout.decode().splitlines()
            return [line for line in lines if line.startswith("missing:")], lines

        expected, shown = advice("--no-cache")
        if not expected:
            self.skipTest("there are debug symbols of sleep")
        self.assertIn("install coreutils-dbgsym", expected[0], shown)
        for _ in range(2):
            self.assertEqual(advice()[0], expected)
            path, = self.entry_of("/bin/sleep")
            with open(path, "rb") as file:
                self.assertIn(b"coreutils-dbgsym", file.read())

    def test_private(self):
        os.chmod(self.home, 0o755)
        self.look(self.start("cplusplus").pid)
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o700)
        for name in self.entries():
            self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.path, name)).st_mode), 0o600)

    def test_damaged(self):
        """A damaged file is ignored and written again."""
        target = self.start("cplusplus")
        expected, _ = self.look(target.pid)
        path, = self.entry_of(os.path.join(TARGETS, "cplusplus"))
        with open(path, "rb") as file:
            whole = file.read()
        for damaged in (b"", whole[:20], whole[:-1], whole + b"\0", bytes(len(whole)),
                        whole.replace(b"run_", b"sun_"), b"\xff" * 5000):
            with open(path, "wb") as file:
                file.write(damaged)
            self.assertEqual(self.look(target.pid)[0], expected)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), whole)

    def test_claimed_build_id(self):
        """A file that claims the build-id of another one has a cache file of its own."""
        honest = self.copy("cplusplus")
        hostile = self.copy("cplusplus", (b"run_template", b"bad_template"))
        for first, second in ((honest, hostile), (hostile, honest)):
            shutil.rmtree(self.path, ignore_errors=True)
            found = []
            for program in (first, second, first, second):
                pid = self.start_command([program]).pid
                names = {frame["symbol"] for thread in self.look(pid)[0] for frame in thread}
                expected = "bad_template()" if program == hostile else "run_template()"
                self.assertIn(expected, names)
                self.assertEqual(len({"bad_template()", "run_template()"} & names), 1)
            self.assertEqual(len(self.entry_of(first) + self.entry_of(second)), 2)

    def test_changed_in_place(self):
        """The same inode, size and time of modification."""
        program = self.copy("cplusplus")
        before = os.stat(program)
        target = self.start_command([program])
        self.look(target.pid)
        target.kill()
        with open(program, "r+b") as file:
            changed = file.read().replace(b"run_template", b"new_template")
            file.seek(0)
            file.write(changed)
        os.utime(program, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assertEqual(os.stat(program).st_mtime_ns, before.st_mtime_ns)
        names = {frame["symbol"] for thread in self.look(self.start_command([program]).pid)[0]
                 for frame in thread}
        self.assertIn("new_template()", names)

    def test_refused_directories(self):
        """Without a safe directory there is no cache, and the snapshot is the same."""
        target = self.start("cplusplus")
        expected, _ = self.look(target.pid, "--no-cache")

        def refused(home, reason):
            frames, said = self.look(target.pid, home=home)
            self.assertEqual(frames, expected)
            self.assertRegex(said, "names are not cached: .*" + reason)
            self.assertEqual(self.entries(), [])

        os.mkdir(self.path, 0o700)
        os.chmod(self.path, 0o750)
        refused(self.home, "other users")
        os.chmod(self.path, 0o700)
        os.chmod(self.home, 0o777)
        refused(self.home, "other users")
        os.chmod(self.home, 0o700)
        link = self.home + "/link"
        os.symlink(self.home, link)
        refused(link, "")
        refused("/nonexistent/cache", "No such file")
        if os.geteuid() == 0:
            for path in (self.home, self.path):
                os.chown(path, 65534, 65534)
                refused(self.home, "belongs to another user")
                os.chown(path, 0, 0)
            os.chown(self.home, 65534, 65534)
            refused(os.path.join(self.home, ".cache"), "a directory of another user")
            self.assertFalse(os.path.exists(os.path.join(self.home, ".cache")))

    def test_relative_path_does_not_count(self):
        environment = dict(os.environ, XDG_CACHE_HOME="relative", HOME=self.home)
        self.run_tool(self.start("cplusplus").pid, env=environment, cwd=self.home)
        self.assertTrue(os.listdir(os.path.join(self.home, ".cache", "stacksnap")))
        self.assertFalse(os.path.exists(os.path.join(self.home, "relative")))

    def test_owners_are_apart(self):
        """What processes of one user contain is not used for those of another."""
        if os.geteuid() != 0:
            self.skipTest("only root can start a process of another user")
        os.chmod(self.home, 0o755)
        program = for_everyone(os.path.join(TARGETS, "cplusplus"))
        for owner in (0, 65534):
            command = ["setpriv", "--reuid=%d" % owner, "--clear-groups", program]
            self.look(self.start_command(command).pid)
        self.assertEqual({name.split("-")[0] for name in self.entries()
                          if "-%x-" % os.stat(program).st_ino in name}, {"0", "fffe"})

    def test_new_debug_file(self):
        """A debug file that was installed since is used at once."""
        stripped = self.copy("cplusplus")
        debug = os.path.join(self.home, "debug")
        subprocess.run(["objcopy", "--only-keep-debug", stripped, stripped + ".debug"],
                       check=True)
        subprocess.run(["strip", stripped], check=True)
        pid = self.start_command([stripped]).pid
        build_id = subprocess.run(["readelf", "-n", stripped], stdout=subprocess.PIPE,
                                  check=True, text=True).stdout.split("Build ID: ")[1].split()[0]
        below = os.path.join(debug, ".build-id", build_id[:2])
        os.makedirs(below)

        def lines():
            return sum(frame["line"] is not None for thread in
                       self.look(pid, "--debug-dir=" + debug)[0] for frame in thread)

        first = lines()
        self.assertEqual(lines(), first)
        os.rename(stripped + ".debug", os.path.join(below, build_id[2:] + ".debug"))
        second = lines()
        self.assertGreater(second, first)
        self.assertEqual(lines(), second)

    def test_hang(self):
        target = self.start("cplusplus")
        environment = dict(os.environ, XDG_CACHE_HOME=self.home)
        command = ["hang", "--for=100ms", str(target.pid)]
        for _ in range(2):
            self.run_tool(*command, env=environment, status=(0, 4))
            self.assertEqual(len(self.entry_of(os.path.join(TARGETS, "cplusplus"))), 1)


if __name__ == "__main__":
    main()
