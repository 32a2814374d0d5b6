"""Java methods in the stacks: equal to those that jstack, a part of the JDK, prints before and after,
frame by frame; of threads that run, in a process that is stopped, and in tomcat. Deadlocks of
monitors.

Debian packages: default-jdk-headless, tomcat10, python3-jpype. JAVAS: more JDKs, separated by colons, such as the
packages of Debian unstable, unpacked (docs/how-we-know.md); MOMENTS: how many moments of threads that run
are looked at for each (default: 4)."""
# ctest: real release-only tries=20

import atexit
import collections
import functools
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import harness
import recording
from harness import LIMIT_S, EndToEnd, describe, main, wait_until
from test_on_cpu import may_sample_cpus

HERE = os.path.dirname(os.path.abspath(__file__))
MOMENTS = int(os.environ.get("MOMENTS", os.environ.get("STACKSNAP_TRIES", "4")))
KNOWN = (8, 11, 17, 21, 25, 26)
MODES = {
    "mixed": [],
    "interpreted": ["-Xint"],
    "C1": ["-XX:TieredStopAtLevel=1", "-Xcomp"],
    "C2": ["-XX:-TieredCompilation", "-Xcomp"],
}


# Python calls Java, which calls Python, which calls Java.
PYTHON = """
import jpype, jpype.imports
jpype.startJVM("-Djava.class.path=/usr/share/java/org.jpype.jar", convertStrings=False)
from java.lang import Thread
from java.util import Arrays, Comparator

@jpype.JImplements(Comparator)
class Both:
    @jpype.JOverride
    def compare(self, a, b):
        Thread.sleep(1000000)
        return 0
    @jpype.JOverride
    def equals(self, other):
        return False

def outer():
    values = jpype.JArray(jpype.java.lang.Object)(3)
    Arrays.sort(values, Both())

print("ready", flush=True)
outer()
"""


def jdks():
    """Those that the tool knows."""
    named = os.environ.get("JAVAS")
    java = shutil.which("java")
    for path in named.split(":") if named else [java and os.path.realpath(java)[:-len("/bin/java")]]:
        if path and os.path.exists(path + "/bin/jstack") and version_of(path) in KNOWN:
            yield path


@functools.lru_cache(maxsize=None)
def version_of(jdk):
    text = subprocess.run([jdk + "/bin/java", "-version"], check=True, timeout=LIMIT_S,
                          stderr=subprocess.PIPE).stderr.decode()
    return int(re.search(r'version "(?:1\.)?(\d+)', text).group(1))


def normalize(name):
    """Up to JDK 11, jstack shows an anonymous class with an address or a hash, which is not part of
    its name. Later, it is, with or without zeros."""
    return re.sub(r"(\$\$Lambda\$\d+|LambdaForm\$[A-Z]\w*)/(0x)?[0-9a-f]+", r"\1",
                  re.sub("/0x0*", "/0x", name))


def methods(thread):
    """The methods of a thread of a snapshot, as jstack writes them."""
    found = []
    for frame in thread["frames"]:
        if frame["kind"] != "java":
            continue
        source = frame["file"] or "Unknown Source"
        if frame["line"]:
            source += ":%d" % frame["line"]
        found.append((normalize(frame["symbol"]), source))
    return found


def jstack(jdk, pid):
    """tid: methods"""
    text = subprocess.run([jdk + "/bin/jstack", str(pid)], check=True, timeout=LIMIT_S,
                          stdout=subprocess.PIPE).stdout.decode()
    threads = {}
    for line in text.splitlines():
        match = re.match(r'"(.*)" .* nid=(0x[0-9a-f]+|\d+) ', line)
        if match:
            threads[int(match.group(2), 0)] = frames = []
        match = re.match(r"\s+at (?:[a-z.]+@[^/(]*/)?(.*)\((?:.*/)?(.*)\)$", line)
        if match:
            frames.append((normalize(match.group(1)), match.group(2)))
    return threads


def jstack_names(jdk, pid):
    """tid: name, id, whether it is a daemon, priority; the last three only of Java threads"""
    text = subprocess.run([jdk + "/bin/jstack", str(pid)], check=True, timeout=LIMIT_S,
                          stdout=subprocess.PIPE).stdout.decode("utf-8", "replace")
    return {int(m.group(5), 0): (m.group(1), int(m.group(2)) if m.group(2) else None,
                                 bool(m.group(3)), int(m.group(4)) if m.group(4) else None)
            for m in re.finditer(r'^"(.*?)" (?:#(\d+) )?(?:\[\d+\] )?(daemon )?(?:prio=(\d+) )?'
                                 r'os_prio=.*? nid=(\w+)', text, re.M | re.S)}


def set_version(pid, version):
    """Changes the version that the tables of libjvm.so lead to."""
    with open("/proc/%d/maps" % pid, encoding="utf-8") as file:
        base, path = next((int(line.split("-")[0], 16), line.split()[5]) for line in file
                          if line.endswith("/libjvm.so\n"))
    symbols = subprocess.run(["nm", "-D", path], check=True, stdout=subprocess.PIPE).stdout.decode()
    address, = re.findall(r"^(\w+) \w gHotSpotVMStructs\b", symbols, re.M)
    with open("/proc/%d/mem" % pid, "r+b", buffering=0) as memory:
        def read(at, size):
            memory.seek(at)
            return memory.read(size)

        def text(at):
            return read(at, 64).split(b"\0")[0] if at else b""
        at, = struct.unpack("<Q", read(base + int(address, 16), 8))
        while True:
            kind, field, _, _, _, place = struct.unpack("<QQQQQQ", read(at, 48))
            if text(field) == b"_vm_major_version":
                memory.seek(place)
                memory.write(struct.pack("<i", version))
                return
            assert kind, "there is such a field"
            at += 48


def run_counts(pid):
    """tid: how often it has been put on a CPU"""
    counts = {}
    for tid in harness.task_states(pid):
        fields = harness.read_text("/proc/%d/task/%d/schedstat" % (pid, tid)).split()
        counts[tid] = fields[2] if len(fields) > 2 else None
    return counts


def equal(found, wanted):
    """Native methods have a file, too, which jstack does not print."""
    return [name for name, _ in found] == [name for name, _ in wanted] and all(
        theirs in (ours, "Native Method") for (_, ours), (_, theirs) in zip(found, wanted))


@functools.lru_cache(maxsize=None)
def classes(release):
    """The directory of the target's classes."""
    directory = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, directory)
    os.chmod(directory, 0o755)
    compilers = [path for path in jdks() if version_of(path) >= 17]
    compiler = compilers[0] + "/bin/javac" if compilers else "javac"
    subprocess.run([compiler, "-Xlint:-options", "--release", release, "-d", directory,
                    HERE + "/JavaTarget.java"], check=True, timeout=2 * LIMIT_S)
    return directory


def java_command(jdk, what, *options):
    return [jdk + "/bin/java", "-Xmx64m", "-XX:+UseSerialGC", *options, "-cp",
            classes("17" if version_of(jdk) >= 17 else "8"), "JavaTarget", what]


class Java(EndToEnd):
    def setUp(self):
        self.jdks = list(jdks())
        if not self.jdks:
            self.skipTest("no JDK that is known: install default-jdk-headless")
        self.directory = self.enterContext(tempfile.TemporaryDirectory())

    def start_java(self, jdk, what, *options):
        return self.start_command(java_command(jdk, what, *options))

    @classmethod
    @functools.lru_cache(maxsize=None)
    def share_java(cls, jdk, what):
        """A target that the tests of a class look at one after the other."""
        target = harness.Target(java_command(jdk, what))
        cls.addClassCleanup(target.kill)
        return target

    def compare(self, jdk, pid, needed):
        """Compares each thread that jstack shows in the same place before and after, and that has
        not run meanwhile."""
        runs = run_counts(pid)
        before = jstack(jdk, pid)
        snapshot = self.snap(pid, "-n", "0", status=(0, 1))  # 1: a thread has just begun or ended
        after = jstack(jdk, pid)
        runs_after = run_counts(pid)
        compared = set()
        for thread in snapshot.threads:
            wanted = before.get(thread["tid"])
            if not wanted or wanted != after.get(thread["tid"]) or \
                    runs.get(thread["tid"]) != runs_after.get(thread["tid"]):
                continue
            self.assertTrue(equal(methods(thread), wanted), "%s\n%s\njstack:\n%s" % (
                jdk, describe(snapshot, thread),
                "\n".join("%s %s" % frame for frame in wanted)))
            self.assertEqual(thread["end"], "root", describe(snapshot, thread))
            compared.add(thread["name"])
        self.assertLessEqual(needed, compared, before)
        return snapshot


class Standing(Java):
    def test_jstack(self):
        for jdk in self.jdks:
            for mode, options in MODES.items():
                # The others take seconds to start, and are for `JAVAS=... MOMENTS=...`.
                if mode == "C2" and "JAVAS" not in os.environ:
                    continue
                with self.subTest(jdk=jdk, mode=mode):
                    target = self.share_java(jdk, "stand") if mode == "mixed" else \
                        self.start_java(jdk, "stand", *options)
                    snapshot = self.compare(jdk, target.pid, {
                        "deep", "inlined", "sleeps", "holds", "waits", "sorts",
                        "reflects", "has-lock", "locks", "Finalizer"})
                    self.check_owner(target.pid)
                    if mode == "mixed":
                        self.check_inlined(snapshot)

    def test_names(self):
        """Names, ids, priorities and daemons are those that jstack shows."""
        for jdk in self.jdks:
            for options in ([], ["-XX:-UseCompressedOops"], ["-XX:-UseCompressedClassPointers"],
                            ["-XX:-CompactStrings"]):
                if options == ["-XX:-CompactStrings"] and version_of(jdk) < 9:
                    continue
                with self.subTest(jdk=jdk, options=options):
                    target = self.start_java(jdk, "names", *options)
                    wanted = jstack_names(jdk, target.pid)
                    threads = self.snap(target.pid, "-n", "0", status=(0, 1)).threads
                    self.check_names(threads, wanted)
                    names = harness.recorded_names(target.pid)
                    for thread in threads:  # compilers come and go
                        self.assertEqual(names.get(thread["tid"], thread["name"]), thread["name"])
                    self.assertLessEqual({tid for tid in wanted if wanted[tid][1] is not None}, set(names))

    def test_unknown_version(self):
        """The version in the memory of a JVM is changed to one that there is not."""
        for jdk in self.jdks:
            with self.subTest(jdk=jdk):
                target = self.start_java(jdk, "names")
                set_version(target.pid, 99)
                snapshot = self.snap(target.pid, "-n", "0", status=(0, 1))
                reason = snapshot.data["runtimes"][0]["problem"]
                self.assertRegex(reason, r"^HotSpot 99\..*: this version is not known$")
                self.assertIn(reason, {t["native_reason"] for t in snapshot.threads})
                text = self.run_tool(target.pid, status=(0, 1)).stdout.decode()
                self.assertEqual(text.count(reason), 1, text)
                self.assertIn("\nmissing: functions of the program (" + reason, text)

    def check_names(self, threads, wanted):
        compared = set()
        for thread in threads:
            name, number, daemon, priority = wanted.get(thread["tid"], (None, None, None, None))
            if number is None:  # not a Java thread
                self.assertEqual(thread["name"], thread["comm"])
                continue
            found = (thread["name"], thread["runtime_id"], thread["daemon"], thread["priority"])
            self.assertEqual(found, (name[:255] or thread["comm"], number, daemon, priority))
            compared.add(name)
        self.assertLessEqual({"main", "two\nlines\033[31m", "Gr\u00fc\u00dfe", "\u65e5\u672c", "x" * 10000, "",
                              "a name of more than 15 bytes"}, compared)

    def check_owner(self, pid):
        """Up to JDK 17 a thread that waits for a monitor wakes at times, and then nothing is sure."""
        for _ in range(10):
            snapshot = self.snap(pid, "-n", "0", status=(0, 1))
            wait = snapshot.thread("enters")["wait"]
            if wait["owner_tid"] is not None:
                break
        self.assertEqual((wait["kind"], wait["lock"], wait["owner_tid"]),
                         ("mutex", "java-monitor", snapshot.thread("holds")["tid"]),
                         describe(snapshot, snapshot.thread("enters")))

    def check_inlined(self, snapshot):
        thread = snapshot.thread("deep")
        frames = [frame for frame in thread["frames"] if frame["kind"] == "java"]
        self.assertEqual(len([f for f in frames if f["symbol"] == "JavaTarget.descend"]), 301,
                         describe(snapshot, thread))

    def test_stopped(self):
        """jstack needs the cooperation of the VM, which a stopped process cannot give."""
        target = self.share_java(self.jdks[0], "stand")
        before = jstack(self.jdks[0], target.pid)
        os.kill(target.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, target.pid, signal.SIGCONT)
        wait_until(lambda: set(harness.task_states(target.pid).values()) <= set("TZX"), "the stop")
        snapshot = harness.Snapshot(self.run_tool("-f", "json", "-n", "0", target.pid))
        for name in ("deep", "inlined", "waits", "reflects"):
            thread = snapshot.thread(name)
            self.assertTrue(equal(methods(thread), before[thread["tid"]]),
                            describe(snapshot, thread))
        self.assert_free(target.pid, stopped=True)

    def test_vm_operations(self):
        """A collection is no obstacle, nor a safepoint that a thread does not reach: then jstack gets
        no answer."""
        for what, function in (("safepoint", "SafepointSynchronize::"), ("collects", "Mark")):
            with self.subTest(what):
                target = self.start_java(self.jdks[0], what)
                if what == "safepoint":
                    harness.wait_until(lambda: self.is_within(target.pid, function), function)
                for _ in range(50):
                    snapshot = self.snap(target.pid, "-n", "0", status=(0, 1))
                    if self.in_operation(snapshot, function):
                        break
                else:
                    self.fail(describe(snapshot, snapshot.thread("VM Thread")))
                thread = snapshot.thread("deep")
                names = [name for name, _ in methods(thread)]
                self.assertEqual(names.count("JavaTarget.descend"), 31, describe(snapshot, thread))
                if what == "safepoint":
                    thread = snapshot.thread("spins")
                    if thread["end"] == "root" and not thread["native_reason"]:
                        self.assertIn("JavaTarget.spin", [name for name, _ in methods(thread)],
                                      describe(snapshot, thread))
                    thread = snapshot.thread("asks")
                    self.assertIn("java.lang.System.gc", [name for name, _ in methods(thread)],
                                  describe(snapshot, thread))
                    with self.assertRaises(subprocess.TimeoutExpired):
                        subprocess.run([self.jdks[0] + "/bin/jstack", str(target.pid)], timeout=2,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       check=False)
                target.kill()

    def in_operation(self, snapshot, function):
        return any(function in (frame["symbol"] or "")
                   for frame in snapshot.thread("VM Thread")["frames"])

    def is_within(self, pid, function):
        return self.in_operation(self.snap(pid, "-n", "0", status=(0, 1)), function)

    def test_virtual(self):
        """Those that are on a thread are on its stack, above what runs it."""
        known = [jdk for jdk in self.jdks if version_of(jdk) >= 21]
        if not known:
            self.skipTest("no JDK 21 or later in JAVAS")
        for jdk in known:
            with self.subTest(jdk=jdk):
                target = self.start_java(jdk, "virtual")
                wanted = ["JavaTarget.work"] + ["JavaTarget.nap"] * (version_of(jdk) < 24)
                for name in wanted:
                    for _ in range(20):
                        snapshot = self.snap(target.pid, "-n", "0", status=(0, 1))
                        stacks = [[method for method, _ in methods(thread)]
                                  for thread in snapshot.threads]
                        found = [stack for stack in stacks if name in stack]
                        if found:
                            break
                    text = "\n".join(describe(snapshot, t) for t in snapshot.threads)
                    self.assertEqual(len(found), 1, text)
                    self.assertEqual(
                        [method for method in found[0] if method in (
                            name, "java.lang.VirtualThread.run",
                            "jdk.internal.vm.Continuation.enterSpecial",
                            "java.util.concurrent.ForkJoinWorkerThread.run")],
                        [name, "java.lang.VirtualThread.run",
                         "jdk.internal.vm.Continuation.enterSpecial",
                         "java.util.concurrent.ForkJoinWorkerThread.run"], text)
                target.kill()

    def test_text(self):
        target = self.share_java(self.jdks[0], "stand")
        text = self.run_tool("-a", target.pid).stdout.decode()
        self.assertRegex(text, r"\n  #\d+ +JavaTarget\.enter at JavaTarget\.java:\d+ \[java\]\n")
        self.assertRegex(text, r"\n  #\d+ +java\.lang\.Thread\.run at .*\n  #\d+ +\[\d+ native frames\]\n")
        self.assertNotIn("call_stub", text)
        self.assertNotIn("native frames only", text)
        text = self.run_tool("-a", "-i", "10ms", "-c", "2", target.pid, status=(0, 1)).stdout.decode()
        self.assertRegex(text, r"\n  #\d+ +JavaTarget\.enter at JavaTarget\.java:\d+ \[java\]\n")
        text = self.run_tool("-a", "--native", target.pid).stdout.decode()
        self.assertRegex(text, r"JavaTarget\.enter at JavaTarget\.java:\d+ \[java\]\n"
                         r"  #\d+ +\[jit\]\+0x[0-9a-f]+\n")
        self.assertRegex(text, r"\n  #\d+ +call_stub\+0x[0-9a-f]+ \(\[jit\]\)\n")

    def test_deadlock(self):
        for jdk in self.jdks:
            with self.subTest(jdk=jdk):
                target = self.start_java(jdk, "deadlock")
                for _ in range(10):
                    # 0: in its first second, a thread of JDK 17 wakes more often.
                    result = self.run_tool("hang", "--for=1s", "--json", target.pid,
                                           status=(0, 3, 4))
                    # A thread may wake in the moment of the capture, in JDK 17 every second.
                    if result.returncode == 3:
                        break
                text = result.stdout.decode()
                self.assertEqual(result.returncode, 3, text)
                self.assertIn('"java-monitor"', text)
                self.assertIn("java-ab", text)
                self.check_places(target.pid)
                target.kill()

    def check_places(self, pid):
        """Where the members of the cycle wait: in Java, and not in the VM."""
        for _ in range(10):  # see above
            text = self.run_tool(pid).stdout.decode()
            if "DEADLOCK" in text:
                break
        lines = harness.read_text(HERE + "/JavaTarget.java").splitlines()
        # The interpreter has the next instruction, which jstack shows, too.
        line = lines.index("\t\t\tsynchronized (second) {") + 1
        for name in ("java-ab", "java-ba"):
            self.assertRegex(text, r"\(%s\) waits for Java monitor at [^\n]*\n"
                             r"    in JavaTarget\.take at JavaTarget\.java:(?:%d|%d)\n"
                             r"    called from JavaTarget\.lambda\$deadlock\$\d+ at "
                             r"JavaTarget\.java:\d+\n    holds " % (name, line, line + 1))

    def test_locks(self):
        """Locks of java.util.concurrent have owners, as jstack says, and deadlocks."""
        for jdk in self.jdks:
            for options in (["-XX:+UseSerialGC"], ["-XX:+UseG1GC", "-XX:-UseCompressedOops"],
                            ["-XX:+UseG1GC", "-XX:+UseCompactObjectHeaders"]):
                if version_of(jdk) < 25 and "-XX:+UseCompactObjectHeaders" in options:
                    continue
                with self.subTest(jdk=jdk, options=options):
                    self.check_locks(jdk, options)

    def test_ends(self):
        """Threads that wait for each other's end, or for classes that they initialise."""
        for jdk in self.jdks:
            with self.subTest(jdk=jdk):
                target = self.start_java(jdk, "ends")
                snapshot = self.snap(target.pid, "-n", "0", status=(0, 1))
                names = {thread["tid"]: thread["name"] for thread in snapshot.threads}
                found = {name: (wait["kind"], wait["timed"], names.get(wait["owner_tid"]))
                         for name in ("joins-0", "joins-1", "limited", "notified")
                         for wait in [snapshot.thread(name)["wait"]]}
                self.assertEqual(found, {"joins-0": ("join", False, "joins-1"),
                                         "joins-1": ("join", False, "joins-0"),
                                         "limited": ("join", True, "joins-0"),
                                         "notified": ("condvar", False, None)})
                self.check_deadlock(target, "joins-0", "joins-1")
                target = self.start_java(jdk, "classes")
                self.check_deadlock(target, "first", "second")

    def check_deadlock(self, target, *names):
        text = self.run_tool("hang", "--for=300ms", target.pid, status=(3,)).stdout.decode()
        self.assertRegex(text, r"\nDEADLOCK: 2 threads wait")
        for name in names:
            self.assertRegex(text, r"\n  \d+ \(%s\) waits for " % name)
        target.kill()

    def check_locks(self, jdk, options):
        target = self.start_java(jdk, "locks", "-XX:-UseSerialGC", *options)
        snapshot = self.snap(target.pid, "-n", "0", status=(0, 1))
        owners = {}
        for name in ("lock-ab", "lock-ba", "reads", "tries", "awaits", "excludes", "permits"):
            wait = snapshot.thread(name)["wait"]
            owner = [t["name"] for t in snapshot.threads if t["tid"] == wait["owner_tid"]]
            owners[name] = (wait["lock"], wait["timed"], owner)
        self.assertEqual(owners, {
            "lock-ab": ("java-lock", False, ["lock-ba"]),
            "lock-ba": ("java-lock", False, ["lock-ab"]),
            "reads": ("java-lock", False, ["writes"]),
            "tries": ("java-lock", True, ["lock-ab"]),
            "awaits": ("condvar", False, []),
            "excludes": ("condvar", False, []),
            "permits": ("condvar", False, []),
        })
        result = self.run_tool("hang", "--for=300ms", target.pid, status=(3,))
        text = result.stdout.decode()
        self.assertRegex(text, r"DEADLOCK: 2 threads.*\n +\d+ \(lock-(ab|ba)\) waits for Java lock at "
                         r"0x[0-9a-f]+, held by \d+ \(lock-(ab|ba)\)\n")
        # A reader of a lock is not recorded, nor who holds a permit: both are only waits.
        self.assertRegex(text, r"\d+ \(excludes\)\n    waits for an application lock: java\.util\."
                         r"concurrent\.locks\.ReentrantReadWriteLock\$WriteLock\.lock")
        self.assertNotRegex(text, r"\((excludes|permits)\) waits for Java lock")
        # They are those of the whole process, whichever threads are shown.
        for words in (("--thread=lock-ba",), ("--thread=tries",), ("--state=R",)):
            text = self.run_tool(*words, target.pid, status=(0, 1)).stdout.decode()
            self.assertIn("\nDEADLOCK: 2 threads wait for each other", text, words)
        dump = subprocess.run([jdk + "/bin/jstack", "-l", str(target.pid)], timeout=LIMIT_S,
                              stdout=subprocess.PIPE, check=True).stdout.decode()
        for waiter, owner in (("lock-ab", "lock-ba"), ("lock-ba", "lock-ab")):
            self.assertRegex(dump, '"%s":\n  waiting for ownable synchronizer .*\n'
                             '  which is held by "%s"' % (waiter, owner))
        target.kill()

    def test_moves(self):
        """A collector that moves objects while threads run: the owner is the right one, or none."""
        wanted = {"lock-ab": "lock-ba", "lock-ba": "lock-ab", "reads": "writes", "tries": "lock-ab",
                  "java-ab": "java-ba", "java-ba": "java-ab"}
        known = [jdk for jdk in self.jdks if version_of(jdk) >= 21]
        if not known:
            self.skipTest("no JDK 21 or later in JAVAS")
        for jdk in known:
            with self.subTest(jdk=jdk):
                target = self.start_java(jdk, "moves", "-XX:-UseSerialGC", "-XX:+UseZGC",
                                         *["-XX:+ZGenerational"] * (version_of(jdk) < 23))
                right = collections.Counter()
                for _ in range(MOMENTS):
                    snapshot = self.snap(target.pid, "-n", "0", status=(0, 1))
                    for thread in snapshot.threads:
                        wait = thread["wait"] or {}
                        if not (wait.get("lock") or "").startswith("java-"):
                            continue
                        owner = [t["name"] for t in snapshot.threads
                                 if t["tid"] == wait["owner_tid"]]
                        self.assertIn(owner, ([], [wanted.get(thread["name"])]),
                                      describe(snapshot, thread))
                        right[thread["name"]] += len(owner)
                self.assertGreaterEqual(min(right[name] for name in wanted), MOMENTS // 4, right)
                target.kill()

    def test_recording(self):
        """The methods of threads that stand still are as jstack says."""
        for jdk in self.jdks:
            with self.subTest(jdk=jdk):
                target = self.share_java(jdk, "stand")
                before = jstack(jdk, target.pid)
                path = os.path.join(self.directory, "stand")
                self.run_tool("record", "-d", "1", "-o", path, target.pid)
                after = jstack(jdk, target.pid)
                self.check_standing(path, {tid: frames for tid, frames in before.items()
                                           if after.get(tid) == frames})
                os.unlink(path)

    def check_standing(self, path, wanted):
        compared = set()
        for thread, frames, _ in harness.report_stacks(path):
            for frame in frames:
                frame["symbol"] = frame["name"]
            found = methods({"frames": frames})
            if thread["tid"] not in wanted or not wanted[thread["tid"]] or not found:
                continue
            self.assertTrue(equal(found, wanted[thread["tid"]]),
                            "%s: %s\njstack: %s" % (thread, found, wanted[thread["tid"]]))
            compared.add(thread["name"])
        self.assertLessEqual({"deep", "inlined", "sleeps", "waits", "sorts", "reflects", "locks"},
                             compared, wanted)

    def test_lock(self):
        """What the program called to get a lock; no function of the VM says who may hold it."""
        target = self.share_java(self.jdks[0], "stand")
        text = self.run_tool(target.pid).stdout.decode()
        self.assertRegex(text, r"1 thread waits, through 1 lock, for thread \d+ \(has-lock\)")
        self.assertRegex(text, r": locks \d+\n  waits for Java lock [^\n]*\(has-lock\)[^\n]*\n"
                         r"  waits in java\.util\.concurrent\.locks\.ReentrantLock\.lock, called at "
                         r"JavaTarget\.java:\d+\n")
        self.assertRegex(text, r"\d+ threads of the runtime; -a shows them\n")
        self.assertNotIn("JavaCalls", text)
        self.assertNotIn("call_stub", text)

    def test_python(self):
        """A thread that executes Python and Java has the functions of both, in their order."""
        if subprocess.run(["/usr/bin/python3", "-c", "import jpype"], check=False,
                          stderr=subprocess.DEVNULL).returncode:
            self.skipTest("JPype is missing (python3-jpype)")
        target = self.start_command(["/usr/bin/python3", "-c", PYTHON])
        wanted = ["java.lang.Thread.sleep", "Both.compare", "java.util.Arrays.sort", "outer",
                  "<module>"]
        thread = {}

        def sleeps():
            nonlocal thread
            thread = self.snap(target.pid, status=(0, 1)).thread(target.pid)
            return "java.lang.Thread.sleep" in [frame["symbol"] for frame in thread["frames"]]
        wait_until(sleeps, "the call of sleep")
        found = [frame["symbol"] for frame in thread["frames"]
                 if frame["kind"] in ("python", "java")]
        self.assertEqual([name for name in found if name in wanted], wanted, thread)
        self.assertEqual([found[0], found[-1]], [wanted[0], wanted[-1]], thread)

    def test_tomcat(self):
        """A server that nobody here wrote, under load: what stands still is as jstack says, and
        nothing is left without names."""
        home = "/usr/share/tomcat10"
        if not os.path.exists(home + "/bin/catalina.sh"):
            self.skipTest("tomcat is missing: install tomcat10")
        base = self.directory
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        for name in ("conf", "logs", "temp", "webapps/ROOT", "work"):
            os.makedirs(os.path.join(base, name))
        with open(base + "/conf/server.xml", "w") as file:
            file.write('<Server port="-1"><Service name="Catalina"><Connector port="%d" '
                       'address="127.0.0.1"/><Engine name="Catalina" defaultHost="localhost">'
                       '<Host name="localhost" appBase="webapps"/></Engine></Service></Server>' % port)
        with open(base + "/webapps/ROOT/index.html", "w") as file:
            file.write("hello\n")
        shutil.copy("/etc/tomcat10/web.xml", base + "/conf/web.xml")
        log = base + "/log"
        with open(log, "w") as output:
            process = subprocess.Popen(
                [self.jdks[0] + "/bin/java", "-Xmx256m", "-cp",
                 home + "/bin/bootstrap.jar:" + home + "/bin/tomcat-juli.jar",
                 "-Dcatalina.home=" + home, "-Dcatalina.base=" + base,
                 "-Djava.io.tmpdir=" + base + "/temp", "org.apache.catalina.startup.Bootstrap",
                 "start"], stdout=output, stderr=output)
        self.addCleanup(process.wait, LIMIT_S)
        self.addCleanup(process.kill)
        wait_until(lambda: "Server startup in" in harness.read_text(log), "tomcat")
        load = subprocess.Popen(
            [sys.executable, "-c", "import urllib.request\nwhile True:\n urllib.request.urlopen("
             "'http://127.0.0.1:%d/').read()" % port], stderr=subprocess.DEVNULL)
        self.addCleanup(load.wait, LIMIT_S)
        self.addCleanup(load.kill)
        urllib.request.urlopen("http://127.0.0.1:%d/" % port).read()
        for _ in range(MOMENTS // 4):
            snapshot = self.compare(self.jdks[0], process.pid, {"Finalizer"})
            whole = [t for t in snapshot.threads if methods(t) and not t["native_reason"]]
            self.assertGreater(len(whole), 10)


class Running(Java):
    def test_running(self):
        """Whatever the instruction at which a thread is stopped, its methods are a possible stack of
        the program, from the outermost one on."""
        for jdk in self.jdks:
            for mode in ("mixed", "interpreted"):
                with self.subTest(jdk=jdk, mode=mode):
                    target = self.share_java(jdk, "busy") if mode == "mixed" else \
                        self.start_java(jdk, "busy", *MODES[mode])
                    reasons = collections.Counter()
                    for _ in range(MOMENTS):
                        snapshot = self.snap(target.pid, "-n", "0", status=(0, 1))
                        for name in ("busy-0", "busy-1"):
                            thread = snapshot.thread(name)
                            reasons[thread["native_reason"]] += 1
                            if not thread["native_reason"] and thread["end"] == "root":
                                self.check_possible(snapshot, thread)
                    self.assertGreaterEqual(reasons[None], 2 * MOMENTS * 3 // 4, reasons)

    def check_possible(self, snapshot, thread):
        names = [name for name, _ in methods(thread)]
        self.check_possible_names(names, describe(snapshot, thread))

    def check_possible_names(self, names, text):
        if not names:
            return
        own = [name for name in names if name.startswith("JavaTarget.")]
        calls = [name for name in own if name in ("JavaTarget.even", "JavaTarget.odd")]
        self.assertEqual(names[-1], "java.lang.Thread.run", text)
        if not own:  # it begins
            self.assertLessEqual(len(names), 2, text)
            return
        self.assertTrue(own[-1].startswith("JavaTarget.lambda$start$"), text)
        self.assertFalse([a for a, b in zip(calls, calls[1:]) if a == b], text)
        self.assertTrue(not calls or calls[-1] == "JavaTarget.even", text)
        if "JavaTarget.leaf" in own:
            self.assertIn(own[own.index("JavaTarget.leaf") + 1],
                          ("JavaTarget.even", "JavaTarget.odd"), text)

    def test_recording(self):
        """The methods of threads that run are a possible stack; the report needs neither the process
        nor the classes."""
        for jdk in self.jdks:
            with self.subTest(jdk=jdk):
                target = self.start_java(jdk, "busy")
                path = os.path.join(self.directory, "busy")
                self.run_tool("record", "-d", "1", "-o", path, target.pid)
                target.kill()
                self.check_busy(path)
                os.unlink(path)

    @unittest.skipUnless(may_sample_cpus(), "perf events are not allowed")
    def test_recording_without_stops(self):
        """The stacks that the kernel copies are enough for methods: no thread is stopped for them."""
        for jdk in self.jdks:
            for options in ((), ("--on-cpu", )):
                with self.subTest(jdk=jdk, options=options):
                    target = self.share_java(jdk, "busy")
                    path = os.path.join(self.directory, "busy")
                    self.run_tool("record", "-d", "1", "-o", path, *options, target.pid)
                    self.check_busy(path)
                    found = recording.Recording(path)
                    running = sum(sample["state"] == "R" for sample in found.samples)
                    self.assertLess(found.summary["thread_stops"], running // 4 + 10,
                                    found.summary)
                    os.unlink(path)

    def check_busy(self, path):
        named = native = 0
        for thread, frames, count in harness.report_stacks(path):
            if not thread["name"].startswith("busy-") or len(frames) == 1:
                continue
            for frame in frames:
                frame["symbol"] = frame["name"]
            shown = {"tid": thread["tid"], "frames": frames}
            if not methods(shown):
                native += count
                continue
            named += count
            names = [frame["name"] for frame in frames]
            if "call_stub" in names:
                self.check_possible_names([name for name, _ in methods(shown)], "\n".join(names))
            else:
                native += count
        self.assertGreater(named, 4 * native)
        for name, text in harness.report_formats(path):
            self.assertTrue("JavaTarget.even" in text, name)


if __name__ == "__main__":
    main()
