"""stacksnap core --install: the kernel starts the handler, where core_pattern may be changed."""
# ctest: slow serial timeout=300 long-with-sanitizers

import ctypes
import fcntl
import glob
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import unittest

from core_dump import CoreDump
from harness import LIMIT_S, STACKSNAP, TARGETS, main, read_text, wait_until
from test_core_handler import CRASH, JOURNAL, Handler, Report

PATTERN = "/proc/sys/kernel/core_pattern"
BOOT = "/etc/sysctl.d/60-stacksnap.conf"
SYSCTL = shutil.which("systemd-sysctl", path="/usr/lib/systemd:/lib/systemd")
SANITIZED = "SANITIZED" in os.environ
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18


def setUpModule():
    """This process and its children have a directory of their own in place of that of the file, which
    nothing leaves behind."""
    if os.geteuid() != 0 or not os.access(PATTERN, os.W_OK):
        return
    os.makedirs(os.path.dirname(BOOT), exist_ok=True)
    libc = ctypes.CDLL(None, use_errno=True)
    if (libc.unshare(CLONE_NEWNS) != 0 or
            libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0 or
            libc.mount(b"none", os.path.dirname(BOOT).encode(), b"tmpfs", 0, None) != 0):
        raise unittest.SkipTest("no mount namespace: " + os.strerror(ctypes.get_errno()))


@unittest.skipIf(os.geteuid() != 0 or not os.access(PATTERN, os.W_OK),
                 "core_pattern cannot be changed")
class Kernel(Handler, CoreDump):
    def setUp(self):
        Handler.setUp(self)
        before = read_text(PATTERN)
        limit = read_text("/proc/sys/kernel/core_pipe_limit")
        self.before = before.strip()
        # The kernel starts it in the root directory of the first process.
        if "/" not in {line.split()[4] for line in read_text("/proc/self/mountinfo").splitlines()}:
            self.skipTest("the root directory is no mount point: this is a chroot")
        program = os.path.join(self.directory, "s")  # a core_pattern has 127 bytes
        shutil.copy(STACKSNAP, program)
        self.program = program
        self.reports = os.path.join(self.directory, "r")

        def restore():
            for path, text in ((PATTERN, before), ("/proc/sys/kernel/core_pipe_limit", limit)):
                with open(path, "w", encoding="ascii") as file:
                    file.write(text)
        self.addCleanup(restore)
        self.limit = limit.strip()

    def install(self, *options):
        try:
            result = subprocess.run([self.program, "core", "--install",
                                     "--directory=" + self.reports, *options],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    timeout=LIMIT_S)
        except OSError as error:
            self.skipTest(str(error))
        if result.returncode != 0:
            self.skipTest(result.stderr.decode())
        return result.stdout.decode()

    def uninstall(self):
        subprocess.run([self.program, "core", "--uninstall"], check=True,
                       stdout=subprocess.DEVNULL, timeout=LIMIT_S)
        self.assertEqual(read_text(PATTERN).strip(), self.before)
        self.assertEqual(read_text("/proc/sys/kernel/core_pipe_limit").strip(), self.limit)

    def crash(self, *command, number):
        process = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, timeout=LIMIT_S, cwd=self.directory,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE,
                                                                       (0, 0)))
        self.assertEqual(process.returncode, -number)

    def test_crashes(self):
        shown = self.install()
        try:
            self.assertIn("now:  %s\n" % self.before, shown)
            self.assertIn("then: |%s core --handler" % self.program, shown)
            self.crash(CRASH, "segv", number=signal.SIGSEGV)
            self.crash(CRASH, "abort", number=signal.SIGABRT)
            # 20 GiB: a dump would be that large
            self.crash(sys.executable, "-c", "import ctypes, mmap, os\n"
                       "m = mmap.mmap(-1, 20 << 30, mmap.MAP_SHARED | 0x4000)\n"
                       "for at in range(0, 20 << 30, 1 << 28): m[at] = 1\n"
                       "ctypes.string_at(0)", number=signal.SIGSEGV)
        finally:
            self.uninstall()
        reports = {report.data["process"]["name"] + report.crash["name"]: report
                   for report in self.wait_for_reports(3)}
        self.assertEqual(len(reports), 3, list(reports))
        crash = reports["crashSIGSEGV"]
        self.assertEqual((crash.crash["address"], crash.crash["signature"]),
                         ("0x10", "read_address"), crash.crash)
        self.assertEqual(crash.names(crash.thread(crash.crash["tid"]))[:3],
                         ["read_address", "fail", "main"])
        self.assertEqual([thread["wait"]["kind"] for thread in crash.threads if thread["wait"]],
                         ["mutex", "mutex"])

    def set_pattern(self, text):
        with open(PATTERN, "w", encoding="ascii") as file:
            file.write(text)

    def test_boot(self):
        """A file sets it at each boot, and remembers what was there before."""
        shown = self.install("--dry-run", "--rate=3")
        self.assertEqual(read_text(PATTERN).strip(), self.before)
        self.assertFalse(os.path.exists(BOOT))
        self.assertFalse(os.path.exists(self.reports))
        self.assertIn(" --rate=3 %P %I", shown)
        self.assertNotIn("--dry-run", shown)
        self.install("--rate=3")
        pattern = read_text(PATTERN)
        later = BOOT.replace("60-", "61-")
        try:
            self.assertEqual(os.stat(BOOT).st_mode & 0o777, 0o644)
            if SYSCTL:  # what systemd does at boot
                self.set_pattern("core")
                subprocess.run([SYSCTL, BOOT], check=True, timeout=LIMIT_S)
                self.assertEqual(read_text(PATTERN), pattern)
            with open(later, "w", encoding="ascii") as file:
                file.write("# nothing\n -kernel/core_pattern = core\n")
            again = subprocess.run([self.program, "core", "--install",
                                    "--directory=" + self.reports], check=True, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   timeout=LIMIT_S)
            self.assertIn("stacksnap: %s sets core_pattern too" % later, again.stderr)
        finally:
            if os.path.exists(later):
                os.unlink(later)
            self.uninstall()
        self.assertFalse(os.path.exists(BOOT))

    def test_refused(self):
        """Settings that cannot be made leave no file, or the one that was there."""
        for before in (None, "# another\n"):
            with self.subTest(before=before):
                if before:
                    with open(BOOT, "w", encoding="ascii") as file:
                        file.write(before)
                command = "mount -o bind,ro /proc/sys /proc/sys && exec \"$@\""
                result = subprocess.run(["unshare", "--mount", "sh", "-c", command, "sh", self.program,
                                         "core", "--install", "--directory=" + self.reports],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        timeout=LIMIT_S)
                self.assertEqual(result.returncode, 2, result)
                self.assertIn("cannot write /proc/sys/kernel/core_pipe_limit: Read-only file system",
                              result.stderr)
                self.assertEqual(os.listdir(os.path.dirname(BOOT)),
                                 [os.path.basename(BOOT)] if before else [])
                self.assertEqual(read_text(PATTERN).strip(), self.before)
        self.assertEqual(read_text(BOOT), "# another\n")
        os.unlink(BOOT)

    def test_hidden_files(self):
        """A file that another directory hides is not read at boot."""
        directory = "/run/sysctl.d"
        made = not os.path.isdir(directory)
        os.makedirs(directory, exist_ok=True)
        later = os.path.join(directory, "99-stacksnap-test.conf")
        hides = os.path.join(os.path.dirname(BOOT), os.path.basename(later))
        try:
            with open(later, "w", encoding="ascii") as file:
                file.write("kernel.core_pattern=core\n")
            for hidden in (False, True):
                if hidden:
                    os.symlink("/dev/null", hides)
                result = subprocess.run([self.program, "core", "--install", "--directory=" + self.reports],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        check=True, timeout=LIMIT_S)
                self.assertEqual(later in result.stderr, not hidden, result.stderr)
        finally:
            os.unlink(later)
            if os.path.islink(hides):
                os.unlink(hides)
            if made:
                os.rmdir(directory)
            self.uninstall()

    def test_taken_over(self):
        """The handler of another program stays."""
        self.install()
        other = "|/usr/lib/systemd/systemd-coredump %P %u"
        self.set_pattern(other)
        shown = subprocess.run([self.program, "core", "--uninstall"], check=True, text=True,
                               stdout=subprocess.PIPE, timeout=LIMIT_S).stdout
        self.assertIn("now:  %s\n  stays: another program has set it" % other, shown)
        self.assertEqual(read_text(PATTERN).strip(), other)
        self.assertFalse(os.path.exists(BOOT))
        again = subprocess.run([self.program, "core", "--uninstall"], text=True,
                               stderr=subprocess.PIPE, timeout=LIMIT_S)
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("stacksnap is not the handler: core_pattern is '%s'" % other, again.stderr)

    def test_options(self):
        """The handler gets the options of --install."""
        self.install()
        shown = self.install("-f", "text", "--quota=1", "--rate=1")
        try:
            self.assertIn(" -f text --quota=1 --rate=1 %P %I %s %t %d %F\n", shown)
            self.crash(CRASH, "segv", number=signal.SIGSEGV)
            pattern = os.path.join(self.reports, "crash-*")
            wait_until(lambda: glob.glob(pattern), "a report")
            self.crash(CRASH, "segv", number=signal.SIGSEGV)
        finally:
            self.uninstall()  # what was there before the first one
        report, = glob.glob(pattern)
        self.assertTrue(report.endswith(".text"), report)
        wait_until(lambda: "read_address" in read_text(report), "the names in " + report)

    def test_size(self):
        """Equal stacks are written once; and the rest is cut, or has only the thread that
        crashed."""
        for name, threads in (("json", 100), ("minidump", 2)):
            self.install("-f", name, *(["--quota=1"] if threads > 10 else []))
            try:
                target = self.start("threads", threads, 40)
                os.kill(target.pid, signal.SIGSEGV)
                pattern = os.path.join(self.reports, "crash-threads-*." + name)
                wait_until(lambda: glob.glob(pattern), "the report")
            finally:
                self.uninstall()
        report, = self.wait_for_reports(1)
        self.assertLess(os.path.getsize(report.path), 1 << 17)
        self.assertGreater(report.data["left_out"], 0)
        self.assertIn("main", report.names(report.thread(report.crash["tid"])))

    def test_container(self):
        """Files are those of the container. They are read as its user, or as nobody if that is
        root: not with the rights of this machine's root."""
        root = os.path.join(self.directory, "containers", "root")
        program = os.path.join(TARGETS, "crash_paths")
        libraries = subprocess.run(["ldd", program], stdout=subprocess.PIPE, timeout=LIMIT_S,
                                   text=True, check=True).stdout
        for path in [program] + re.findall(r"(/\S+) \(0x", libraries):
            os.makedirs(root + os.path.dirname(path), exist_ok=True)
            shutil.copy(path, root + path)
        os.chmod(os.path.dirname(root), 0o700)  # as of container runtimes
        os.chmod(self.directory, 0o711)
        inside = os.path.join(root, "app")
        os.rename(root + program, inside)

        def enter(uid):
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.chroot(root)
            os.chdir("/")
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        found = []
        self.install()
        try:
            for uid, mode in ((4711, 0o755), (0, 0o755), (0, 0o700)):
                os.chmod(inside, mode)
                process = subprocess.run(["/app", "1"], preexec_fn=lambda uid=uid: enter(uid),
                                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL, timeout=LIMIT_S)
                self.assertEqual(process.returncode, -signal.SIGSEGV)
                report = max(self.wait_for_reports(len(found) + 1),
                             key=lambda report: os.stat(report.path).st_mtime_ns)
                thread = report.thread(report.crash["tid"])
                found.append((self.can_read(4711, report.path), report.names(thread)[0]))
        finally:
            self.uninstall()
        self.assertEqual(found, [(True, "end_address"), (False, "end_address"), (False, None)])

    def commands(self):
        """Programs with runtimes that crash: name, signal, kind and functions of its own frames,
        command. With sanitizers two of them: fuzz/hotspot and fuzz/goroutines have the readers of the
        others."""
        python = os.path.realpath("/usr/bin/python3")
        if os.path.exists(python):  # larger than what is copied at most
            yield ("python", signal.SIGSEGV, "python",
                   ["string_at", "inner", "outer", "<module>"],
                   [python, "-c", "import ctypes\nx = b'x' * (100 << 20)\n"
                    "def inner(): ctypes.string_at(0)\ndef outer(): inner()\nouter()"])
        if shutil.which("java") and not SANITIZED:
            source = os.path.join(self.directory, "Crash.java")
            with open(source, "w", encoding="ascii") as file:
                file.write("class Crash {\n  static void act() throws Exception {\n"
                           "    var f = sun.misc.Unsafe.class.getDeclaredField(\"theUnsafe\");\n"
                           "    f.setAccessible(true);\n"
                           "    ((sun.misc.Unsafe) f.get(null)).putAddress(16, 1);\n  }\n"
                           "  public static void main(String[] a) throws Exception { act(); }\n}")
            yield ("java", signal.SIGABRT, "java", ["Crash.act", "Crash.main"],
                   ["java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:+CreateCoredumpOnCrash",
                    "-XX:ErrorFile=/dev/null", source])
        if shutil.which("node"):
            yield ("node", signal.SIGABRT, "javascript", ["inner", "outer"],
                   ["node", "-e", "function inner() { process.abort(); }\n"
                    "function outer() { inner(); }\nouter();"])
        program = os.path.join(self.directory, "goroutines")
        if shutil.which("go") and not SANITIZED:
            subprocess.run(["go", "build", "-o", program,
                            os.path.join(os.environ["SOURCE"], "targets", "goroutines.go")],
                           check=True, timeout=10 * LIMIT_S)
            yield ("goroutines", signal.SIGABRT, "native",
                   ["main.(*node).read", "main.fail", "main.main"],
                   ["env", "GOTRACEBACK=crash", program, "crash"])

    def test_same_crash(self):
        """It has the same signature and the same hash of its stack whatever reports it."""
        for name, number, kind, functions, command in self.commands():
            with self.subTest(program=name):
                path = os.path.join(self.directory, name + ".json")
                subprocess.run([STACKSNAP, "run", "-f", "json", "-o", path, "--", *command],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, timeout=LIMIT_S, cwd=self.directory)
                found = [Report(path)]
                core = self.dump(*command)
                for native in ((), ("--native",)):
                    with open(path, "wb") as file:
                        file.write(self.run_tool("core", "-f", "json", *native, core,
                                                 status=(0, 1)).stdout)
                    found.append(Report(path))
                known = set(self.paths())
                self.install()
                try:
                    self.crash(*command, number=number)
                finally:
                    self.uninstall()
                self.wait_for_reports(len(known) + 1)
                found += [Report(path) for path in self.paths() if path not in known]
                shown = [(report.crash, [(frame["kind"], frame["symbol"]) for frame in
                                         report.thread(report.crash["tid"])["frames"]])
                         for report in found]
                for key in ("stack_hash", "signature"):
                    self.assertEqual(len({crash[key] for crash, _ in shown}), 1, shown)
                if name == "goroutines":
                    for report in found:
                        self.assertIn("runtime.gopark", [
                            frame["symbol"] for group in report.data["goroutines"]
                            if group["status"] == "waiting" for frame in group["frames"]],
                            report.data.get("goroutines_problem"))
                if name == "python":  # named only with debug symbols of Python
                    self.assertRegex(found[0].crash["signature"],
                                     r"strlen\w* \| (string_at|_ctypes\.[\w.-]+\+0x[0-9a-f]+)$")
                for _, frames in shown:
                    names = [symbol for frame, symbol in frames if frame == kind]
                    rest = iter(names)
                    self.assertTrue(all(function in rest for function in functions), shown)

    def test_other_handler(self):
        """It gets the arguments of the kernel, also the descriptor of the process."""
        words = os.path.join(self.directory, "w")
        other = os.path.join(self.directory, "o")
        with open(other, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\ncat > /dev/null\n"
                       "sed -n \"s/^Pid:/$1 $3/p\" /proc/self/fdinfo/$6 > %s\n" % words)
        os.chmod(other, 0o755)
        self.install("--forward=" + other)
        try:
            self.crash(CRASH, "segv", number=signal.SIGSEGV)
        finally:
            self.uninstall()
        report, = self.wait_for_reports(1)
        wait_until(lambda: os.path.exists(words), "the other handler")
        if tuple(int(part) for part in os.uname().release.split(".")[:2]) >= (6, 16):
            pid = str(report.data["process"]["pid"])
            wait_until(lambda: read_text(words).split() == [pid, "11", pid], "the pidfd")

    @unittest.skipIf(os.path.exists(os.path.dirname(JOURNAL)), "there is a journal")
    def test_slow_memory(self):
        """Memory that nobody provides, since the threads that would do so are about to end: the
        process is released, and the handler leaves nothing behind."""
        code = ("import ctypes, fcntl, mmap, os, struct, threading, time\n"
                "libc = ctypes.CDLL(None)\n"
                "uffd = libc.syscall(323, os.O_CLOEXEC)\n"
                "assert uffd >= 0\n"
                "fcntl.ioctl(uffd, 0xc018aa3f, struct.pack('<QQQ', 0xaa, 0, 0))\n"
                "area = mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
                "at = ctypes.addressof(ctypes.c_char.from_buffer(area))\n"
                "fcntl.ioctl(uffd, 0xc020aa00, struct.pack('<QQQQ', at, 1 << 20, 1, 0))\n"
                "thread = threading.Thread(target=libc.syscall, daemon=True,\n"
                "                          args=(34, ctypes.c_void_p(at + 8192)))\n"
                "thread.start()\n"
                "while not open('/proc/self/task/%d/syscall' %\n"
                "               thread.native_id).read().startswith('34 '): time.sleep(0.01)\n"
                "ctypes.string_at(0)\n")
        os.makedirs(os.path.dirname(JOURNAL))
        self.addCleanup(shutil.rmtree, os.path.dirname(JOURNAL))
        self.install()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
            journal.bind(JOURNAL)
            journal.settimeout(LIMIT_S)
            try:
                self.crash(sys.executable, "-c", code, number=signal.SIGSEGV)
            finally:
                self.uninstall()
            wait_until(lambda: b"the process was not copied in 5 s" in journal.recv(65536),
                       "the message")
        wait_until(lambda: not any(self.is_handler(pid) for pid in os.listdir("/proc")),
                   "the end of the handler")
        self.assertEqual(self.paths(), [])

    def is_handler(self, pid):
        try:
            return pid.isdigit() and os.readlink("/proc/%s/exe" % pid) == self.program
        except OSError:
            return False


if __name__ == "__main__":
    main()
