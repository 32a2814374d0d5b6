"""stacksnap trace --alloc: estimates of programs that allocate known amounts at known places,
with several allocators. Debian packages: libjemalloc2, libtcmalloc-minimal4, libmimalloc2.0,
musl-tools."""
# ctest: serial timeout=300 long-with-sanitizers

import glob
import json
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import EndToEnd, LIMIT_S, STACKSNAP, for_everyone, main, read_text, wait_until

MIB, PAGE = 1 << 20, os.sysconf("SC_PAGESIZE")
UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30}
SIZE = r"([0-9.]+) (bytes|KiB|MiB|GiB)"
SITE = re.compile(r"^ *%s new, \+- %s \([0-9,]+ samples?\); held %s, \+- %s$" %
                  (SIZE, SIZE, SIZE, SIZE))
# Few enough samples for the buffers of the kernel, if this machine is busy.
SMALL, LARGE, CHURN = 48, 48, 160
LEAKED = 48


def size_of(number, unit):
    return float(number) * UNITS[unit]


def children_of(pid):
    return read_text("/proc/%d/task/%d/children" % (pid, pid)).split()


@unittest.skipUnless(os.geteuid() == 0, "only root may trace")
class Alloc(EndToEnd):
    def trace(self, pid, *arguments, prefix=()):
        """Begins a trace; returns once it sees page faults."""
        process = subprocess.Popen([*prefix, STACKSNAP, "trace", "--alloc", *arguments, str(pid)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        self.addCleanup(process.communicate)

        def is_attached():
            if process.poll() is not None:
                out, err = process.communicate()
                if b"not permitted" in err:
                    self.skipTest(err.decode())
                raise AssertionError("%r %r" % (out, err))
            try:
                links = [os.readlink(path) for path in glob.glob("/proc/%d/fd/*" % process.pid)]
            except OSError:
                return False
            # A descriptor for each CPU, and one for each CPU and thread; then it polls.
            return (sum("perf_event" in link for link in links) >= 2 and
                    "poll" in read_text("/proc/%d/wchan" % process.pid))

        wait_until(is_attached, "the trace to begin")
        return process

    def end(self, process):
        process.send_signal(2)
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, "%r %r" % (out, err))
        return out

    def sites(self, text, functions=("leak_small", "leak_large", "churn")):
        """For each function: new bytes, their error, held bytes, their error; all stacks of a
        function summed, errors in squares."""
        sums = {}
        for block in text.split("\n\n")[1:]:
            lines = block.splitlines()
            match = SITE.match(lines[0])
            if not match:
                continue
            groups = match.groups()
            sizes = [size_of(groups[i], groups[i + 1]) for i in range(0, 8, 2)]
            for name in functions:
                if re.search(r"^    #[0-9]+ +%s\b" % name, block, re.M):
                    total = sums.setdefault(name, [0, 0, 0, 0])
                    total[0] += sizes[0]
                    total[1] += sizes[1] ** 2
                    total[2] += sizes[2]
                    total[3] += sizes[3] ** 2
        return {name: (a, b ** 0.5, c, d ** 0.5) for name, (a, b, c, d) in sums.items()}

    def allocate(self, target, *arguments):
        """What is traced while the target allocates."""
        process = self.trace(target.pid, *arguments)
        children = children_of(process.pid)
        target.process.stdin.write(b"go\n")
        self.assertEqual(target.process.stdout.readline(), b"done\n")
        # The child that unwinds has read symbols, which memory that grows does not change.
        self.assertEqual(children_of(process.pid), children)
        data = self.end(process)
        self.assert_free(target.pid)
        return data

    def check(self, *arguments, text=True, **options):
        target = self.start("grows", SMALL, LARGE, CHURN, settle=True, **options)
        data = self.allocate(target, *arguments)
        return (data.decode(), self.sites(data.decode())) if text else data

    def assert_close(self, sites, name, mib, text, own=1.0):
        """own: how much more the allocator itself may need."""
        new, error = sites[name][:2]
        self.assertGreaterEqual(new, mib * MIB - error, text)
        self.assertLessEqual(new, mib * MIB * own + error, text)

    def test_glibc(self):
        text, sites = self.check()
        self.assert_close(sites, "leak_small", SMALL, text, own=1.05)  # 1,008 of 1,000 bytes
        self.assert_close(sites, "leak_large", LARGE, text, own=1.05)
        self.assert_close(sites, "churn", CHURN, text)
        for name, mib in (("leak_small", SMALL), ("leak_large", LARGE)):
            _, _, held, error = sites[name]
            self.assertGreaterEqual(held, mib * MIB - error, text)
        self.assertLess(sites["churn"][2], sites["churn"][0] / 2, text)
        self.assertRegex(text.splitlines()[0], r"^[0-9.]+ MiB of new memory in .*, of which it "
                         r"holds [0-9.]+ MiB; each sample stands for 508 KiB; up to "
                         r"[0-9.]+ [KM]iB more may be missing from the samples$")

    def test_huge_pages(self):
        """Where they are always used, a warning says that the sizes are too low, unless the process
        does without them."""
        setting = "/sys/kernel/mm/transparent_hugepage/enabled"
        directory = tempfile.mkdtemp(prefix="stacksnap-")
        self.addCleanup(shutil.rmtree, directory)
        for text in ("[always] madvise never\n", "always [madvise] never\n"):
            made_up = os.path.join(directory, "enabled")
            with open(made_up, "w", encoding="ascii") as file:
                file.write(text)
            prefix = ("unshare", "--mount", "sh", "-c", "mount --bind %s %s && exec \"$@\"" %
                      (made_up, setting), "sh")
            if subprocess.run([*prefix, "true"], stderr=subprocess.DEVNULL, timeout=LIMIT_S).returncode:
                self.skipTest("cannot mount")
            for target, possible in ((self.start("grows", 1, 1, 1), False), (self.start("threads", 1, 1), True)):
                process = self.trace(target.pid, prefix=prefix)
                process.send_signal(2)
                errors = process.communicate(timeout=LIMIT_S)[1].decode()
                self.assertEqual("transparent huge pages are always used" in errors,
                                 possible and text.startswith("["), errors)

    def test_in_step(self):
        """Two functions that touch 64 pages each in turns: samples of 128 pages would all be of
        one of them. And threads that touch less than a sample are counted."""
        cycles, threads, pages = 800, 50, 60
        target = self.start("touches", cycles, threads)
        text = self.allocate(target, "--rows=1000").decode()
        sites = self.sites(text, ("touch_first", "touch_second"))
        for name in "touch_first", "touch_second":
            self.assertIn(name, sites, text)
            self.assertLess(abs(sites[name][0] - cycles * 64 * PAGE), cycles * 64 * PAGE / 4, text)
        match = re.search("; up to %s more may be missing from the samples$" % SIZE, text.splitlines()[0])
        self.assertTrue(match, text)
        self.assertGreaterEqual(size_of(*match.groups()), threads * pages * PAGE, text)

    def test_leaks(self):
        text, sites = self.check("--leaks", "--rows=3")
        blocks = text.split("\n\n")
        shown = [block for block in blocks if SITE.match(block.splitlines()[0])]
        self.assertLessEqual(len(shown), 3, text)
        self.assertIn("leak_small", "".join(shown), text)
        self.assertIn("leak_large", "".join(shown), text)

    def test_allocators(self):
        found = 0
        for name in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"):
            paths = glob.glob("/usr/lib/*/%s*" % name)
            if not paths:
                continue
            found += 1
            with self.subTest(name):
                text, sites = self.check(env={**os.environ, "LD_PRELOAD": paths[0]})
                self.assert_close(sites, "leak_small", SMALL, text, own=1.25)
                self.assert_close(sites, "leak_large", LARGE, text, own=1.25)
                self.assert_close(sites, "churn", CHURN, text)
        if not found:
            self.skipTest("no other allocator is installed")

    def test_cplusplus_and_break(self):
        """Objects, strings and sbrk(); memory that is used again is not growth."""
        target = self.start("leaks", LEAKED, LEAKED, LEAKED, 8 * LEAKED, settle=True)
        text = self.allocate(target, "--leaks", "--rows=100").decode()
        names = {"leak_objects": 1.2, "leak_strings": 1.1, "leak_break": 1.0}
        sites = self.sites(text, tuple(names) + ("reuse",))
        for name, own in names.items():
            self.assertIn(name, sites, text)
            self.assert_close(sites, name, LEAKED, text, own)
            self.assertGreaterEqual(sites[name][2], LEAKED * MIB - sites[name][3], text)
        self.assertLess(sites.get("reuse", [0])[0], 4 * MIB, text)
        self.assertIn("operator new(unsigned long)", text)

    def test_musl(self):
        compiler = shutil.which("musl-gcc")
        if not compiler:
            self.skipTest("musl-gcc is missing: install musl-tools")
        directory = tempfile.mkdtemp(prefix="stacksnap-musl-")
        self.addCleanup(shutil.rmtree, directory)
        path = os.path.join(directory, "grows")
        sources = os.path.join(os.environ.get("SOURCE", "."), "targets")
        subprocess.run([compiler, "-O2", "-g", "-D_GNU_SOURCE", "-fno-optimize-sibling-calls", "-o",
                        path, os.path.join(sources, "grows.c"), os.path.join(sources, "target.c")],
                       check=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S)
        target = self.start_command([path, str(SMALL), str(LARGE), str(CHURN)])
        text = self.allocate(target).decode()
        sites = self.sites(text)
        self.assert_close(sites, "leak_small", SMALL, text, own=1.25)
        self.assert_close(sites, "leak_large", LARGE, text, own=1.25)
        self.assert_close(sites, "churn", CHURN, text)

    def test_json(self):
        document = json.loads(self.check("-f", "json", text=False))
        self.assertEqual(document["schema"], "stacksnap-growth/1")
        self.assertEqual((document["process_ended"], document["lost"]), (False, 0), document)
        self.assertEqual(sum(stack["new"]["samples"] for stack in document["stacks"]),
                         document["new"]["samples"], document)
        found = 0
        for stack in document["stacks"]:
            self.assertEqual(stack["new"]["bytes"],
                             stack["new"]["samples"] * document["sample_bytes"], document)
            self.assertLessEqual(stack["held"]["samples"], stack["new"]["samples"], document)
            if any(frame["symbol"] == "leak_large" for frame in stack["frames"]):
                found += stack["new"]["bytes"]
                self.assertEqual(stack["end"], "root", document)
        self.assertLess(abs(found - LARGE * MIB), LARGE * MIB / 3, document)

    def test_json_in_a_file(self):
        """-f and -o mean what they mean in other commands; -o alone makes a recording."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "growth.json")
            self.assertEqual(self.check("--json", "-o", path, text=False), b"")
            with open(path, encoding="utf-8") as file:
                self.assertEqual(json.load(file)["schema"], "stacksnap-growth/1")

    def test_recording(self):
        directory = tempfile.mkdtemp(prefix="stacksnap-")
        self.addCleanup(shutil.rmtree, directory)
        path = os.path.join(directory, "growth.rec")
        self.assertEqual(self.check("-o", path, text=False), b"")
        done = self.run_tool("report", "-f", "folded", path)
        text = done.stdout.decode()
        hits = {}
        for line in text.splitlines():
            stack, count = line.rsplit(" ", 1)
            for name in ("leak_small", "leak_large", "churn"):
                if name in stack.split(";"):
                    hits[name] = hits.get(name, 0) + int(count)
        for name, mib in (("leak_small", SMALL), ("leak_large", LARGE), ("churn", CHURN)):
            self.assertLess(abs(hits[name] * (512 << 10) - mib * MIB), mib * MIB / 3, text)
        self.assertIn("page fault, 1 of ", self.run_tool("report", path).stdout.decode())

    def test_folded(self):
        text, _ = self.check("-f", "folded")
        weights = {}
        for line in text.splitlines():
            stack, weight = line.rsplit(" ", 1)
            for name in ("leak_small", "leak_large", "churn"):
                if name in stack.split(";"):
                    weights[name] = weights.get(name, 0) + int(weight)
        for name, mib in (("leak_small", SMALL), ("leak_large", LARGE), ("churn", CHURN)):
            self.assertLess(abs(weights[name] - mib * MIB), mib * MIB / 3, text)

    @unittest.skipUnless(shutil.which("go"), "no go tool pprof")
    def test_pprof(self):
        """As pprof itself reads it."""
        data = self.check("-f", "pprof", text=False)
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            for index, names in (("alloc_space", ("leak_small", "leak_large", "churn")),
                                 ("inuse_space", ("leak_small", "leak_large"))):
                done = subprocess.run(
                    ["go", "tool", "pprof", "-top", "-cum", "-unit=MB", "-symbolize=none",
                     "-nodecount=500", "-sample_index=" + index, file.name],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S,
                    env={**os.environ, "HOME": "/nonexistent", "PPROF_TMPDIR": "/tmp"})
                self.assertEqual(done.returncode, 0, done.stderr)
                for name in names:
                    match = re.search(r"([0-9.]+)MB +[0-9.]+%% +%s$" % name, done.stdout, re.M)
                    self.assertTrue(match, done.stdout)
                    mib = {"leak_small": SMALL, "leak_large": LARGE, "churn": CHURN}[name]
                    self.assertLess(abs(float(match.group(1)) - mib), mib / 3, done.stdout)

    def test_without_rights(self):
        if int(read_text("/proc/sys/kernel/perf_event_paranoid")) < 1:
            self.skipTest("perf_event_paranoid allows perf events to everybody")
        nobody = pwd.getpwnam("nobody")

        def become_nobody():
            os.setgroups([])
            os.setgid(nobody.pw_gid)
            os.setuid(nobody.pw_uid)

        target = self.start_command([for_everyone(os.path.join(os.environ["TARGETS"], "grows"))],
                                    preexec_fn=become_nobody)
        done = subprocess.run([for_everyone(STACKSNAP), "trace", "--alloc", str(target.pid)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=LIMIT_S, preexec_fn=become_nobody)
        self.assertEqual(done.returncode, 2, done)
        self.assertRegex(done.stderr.decode(), "(?s)needs CAP_PERFMON.*sudo")

    def test_refused(self):
        for arguments in (("--alloc", "-p", "malloc"), ("--leaks", "-p", "malloc"),
                          ("--alloc", "--scope"), ("--alloc", "-f", "html"), ("--rows=3",),
                          ("--alloc", "--rows=3", "-f", "json"), ("--alloc", "--rows=3", "-o", "x.rec"),
                          ("--alloc=0",), ("--alloc", "--leaks", "-o", "/tmp/x.rec")):
            done = self.run_tool("trace", *arguments, os.getpid(), status=(64,))
            expected = b"--rows" if "--rows=3" in arguments else \
                b"--leaks" if "-o" in arguments else \
                b"known formats" if "html" in arguments else b"--alloc"
            self.assertIn(expected, done.stderr, arguments)


if __name__ == "__main__":
    main()
