"""stacksnap core --handler: a report from the headers of a dump and from the process that is
held."""
# ctest: slow timeout=300 tries=1

import contextlib
import fcntl
import glob
import json
import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import unittest

from harness import (EndToEnd, LIMIT_S, STACKSNAP, Snapshot, TARGETS, Target, main, read_text,
                     reads_stdin, wait_until)

CRASH = os.path.join(TARGETS, "crash")
PLACE = "/var/lib" if os.geteuid() == 0 else os.path.expanduser("~")
DENY = os.path.join(TARGETS, "deny_syscalls")
USER = 65534
JOURNAL = "/run/systemd/journal/socket"


class Report(Snapshot):
    def __init__(self, path):
        self.path = path
        with open(path, encoding="utf-8") as file:
            self.data = json.load(file)
        self.modules = self.data["modules"]
        self.threads = self.data["threads"]
        stacks = {thread["stack_id"]: thread["frames"] for thread in self.threads
                  if thread["frames"] is not None}
        for thread in self.threads:  # equal stacks are written once
            thread["frames"] = stacks[thread["stack_id"]]
        self.crash = self.data["capture"]["crash"]

    def names(self, thread):
        return [frame["symbol"] for frame in self.frames(thread)]


class Handler(EndToEnd):
    def setUp(self):
        # below directories that only root can write to
        self.directory = tempfile.mkdtemp(prefix="sh-", dir=PLACE)
        self.addCleanup(shutil.rmtree, self.directory)
        self.reports = os.path.join(self.directory, "reports")

    def paths(self):
        return sorted(glob.glob(os.path.join(self.reports, "crash-*.json")))

    def is_written(self, path):
        try:
            return bool(Report(path).threads)
        except ValueError:
            return False

    def write(self, name, content=b"", user=os.geteuid(), time=None):
        """A file in the directory of reports."""
        os.makedirs(self.reports, 0o755, exist_ok=True)
        path = os.path.join(self.reports, name)
        with open(path, "wb") as file:
            file.write(content)
        os.chown(path, user, -1)
        if time is not None:
            os.utime(path, (time, time))
        return path

    def can_read(self, user, path):
        return subprocess.run(["setpriv", "--reuid=%d" % user, "--regid=%d" % user,
                               "--clear-groups", "cat", path], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=LIMIT_S).returncode == 0

    def wait_for_reports(self, count):
        wait_until(lambda: len(self.paths()) >= count and
                   all(self.is_written(path) for path in self.paths()), "%d reports" % count)
        self.assertEqual(len(self.paths()), count)
        return [Report(path) for path in self.paths()]


def order_like_kernel(path):
    """Moves the notes of a core file of gcore in front of the memory, where the kernel has
    them."""
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack_from("<H", data, 56)[0] * 56
    begin = struct.unpack_from("<Q", data, 32)[0]
    headers = [list(struct.unpack_from("<IIQQQQQQ", data, begin + at))
               for at in range(0, size, 56)]
    headers.sort(key=lambda header: header[0] != 4)
    parts = []
    offset = 64 + size
    for header in headers:
        parts.append(data[header[2]:header[2] + header[5]])
        header[2] = offset
        offset += len(parts[-1])
    elf = bytearray(data[:64])
    struct.pack_into("<QQ", elf, 32, 64, 0)  # e_phoff, e_shoff
    struct.pack_into("<HHH", elf, 58, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(elf + b"".join(struct.pack("<IIQQQQQQ", *header) for header in headers))
        file.write(b"".join(parts))


def dump_core(directory, pid):
    path = os.path.join(directory, "core")
    subprocess.run(["gcore", "-o", path, str(pid)], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, timeout=LIMIT_S)
    path += ".%d" % pid
    order_like_kernel(path)
    return path


@unittest.skipIf(not shutil.which("gcore"), "no gcore")
class Process(Handler):
    """As if the kernel had a dump of a running process. The handler changes nothing in it, and
    most tests share it."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.mkdtemp(prefix="sh-", dir=PLACE)
        cls.addClassCleanup(shutil.rmtree, directory)
        cls.target = Target([CRASH, "stop"])
        cls.addClassCleanup(cls.target.kill)
        wait_until(lambda: reads_stdin(cls.target.pid), "the target to wait")
        cls.core = dump_core(directory, cls.target.pid)

    def handle(self, *options, now=1700000000, protected=1, status=0, prefix=(), pidfd="",
               **more):
        """Runs the handler with a pipe into which the core file is written; returns how much of it
        was read."""
        reading, writing = os.pipe()
        command = [*prefix, STACKSNAP, "core", "--handler", "--directory=" + self.reports, *options,
                   str(self.target.pid), str(self.target.pid), "11", str(now), str(protected), pidfd]
        process = subprocess.Popen(command, stdin=reading, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **more)
        os.close(reading)
        done = 0
        with open(self.core, "rb") as file:
            try:
                while part := file.read(4096):
                    done += os.write(writing, part)
            except BrokenPipeError:
                pass
        os.close(writing)
        output, errors = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, status, errors)
        self.output, self.errors = output, errors
        return done

    def test_report(self):
        done = self.handle()
        # all but the headers stayed in the pipe
        self.assertLess(done, os.path.getsize(self.core) - 100000)
        report, = self.wait_for_reports(1)
        self.assertEqual(os.path.basename(report.path),
                         "crash-crash-%d-%d-1700000000.json" % (os.getuid(), self.target.pid))
        self.assertLess(os.path.getsize(report.path), 64 * 1024)
        thread = report.thread(self.target.pid)
        self.assertIn("main", report.names(thread))
        self.assertEqual(thread["end"], "root", report.names(thread))
        waiting = [thread["wait"] for thread in report.threads if "waiter" in
                   report.names(thread)]
        self.assertEqual([(wait["kind"], wait["owner_tid"]) for wait in waiting],
                         [("mutex", self.target.pid)] * 2)
        self.assert_like_the_dump(report)

    def test_private(self):
        os.chmod(self.directory, 0o755)
        self.handle()
        report, = self.wait_for_reports(1)
        self.assertEqual(stat.S_IMODE(os.stat(report.path).st_mode), 0o600)
        self.assertEqual(os.stat(report.path).st_uid, os.geteuid())
        self.assertEqual(stat.S_IMODE(os.stat(self.reports).st_mode) & 0o066, 0)

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_owner(self):
        """The owner of the process can read the report and change nothing: size and time are what
        the handler looks at."""
        os.chmod(self.directory, 0o755)
        program = os.path.join(self.directory, "crash")
        shutil.copy(CRASH, program)
        self.target = self.start_command(["setpriv", "--reuid=%d" % USER, "--regid=%d" % USER,
                                          "--clear-groups", program, "stop"])
        self.core = dump_core(self.directory, self.target.pid)
        self.handle()
        report, = self.wait_for_reports(1)
        self.assertIn("-%d-" % USER, os.path.basename(report.path))
        self.assertEqual(os.stat(report.path).st_uid, 0)
        wait_until(lambda: self.can_read(USER, report.path), "the access control list")
        self.assertFalse(self.can_read(USER - 1, report.path))

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_forged_files(self):
        """Files that a user owns neither count nor go, whatever their names, times and sizes."""
        forged = [self.write("crash-a-%d-%d-1.json" % (user, index), user=USER, time=4000000000)
                  for user in (0, USER) for index in range(10)]
        os.truncate(forged[0], 4 << 30)
        old = self.write("crash-old-0-1-1.json", b"{}", time=1000)
        os.link(old, self.write("crash-linked-0-1-1.json") + ".too")
        for now in range(2):
            self.handle("--rate=2", now=now)
            wait_until(lambda: self.can_see("-%d.json" % now), "the report")
        for path in forged + [old]:
            self.assertTrue(os.path.exists(path), path)

    def can_see(self, end):
        name = "-%d%s" % (self.target.pid, end)
        return any(path.endswith(name) and self.is_written(path) for path in self.paths())

    def test_foreign_directory(self):
        """Only root can write to the directory and to all above it, and none is a link."""
        os.mkdir(self.reports)
        for mode, where in ((0o777, self.reports), (0o777, self.directory),
                            (0o1777, self.directory)):
            before = stat.S_IMODE(os.stat(where).st_mode)
            os.chmod(where, mode)
            self.handle(status=2)
            self.assertIn(b"others may write to it", self.errors)
            os.chmod(where, before)
        reports = self.reports
        link = os.path.join(self.directory, "link")
        for to, path in ((reports, link), (self.directory, os.path.join(link, "reports"))):
            os.symlink(to, link)
            self.reports = path
            self.handle(status=2)
            self.assertIn(b"is a symbolic link", self.errors)
            os.unlink(link)
        self.reports = reports
        self.assertEqual(self.paths(), [])

    def test_quota(self):
        """The oldest reports of the user are removed first; all others stay."""
        user = os.getuid()
        names = ["crash-old-%d-%d-1.json" % (user, index) for index in range(4)]
        for index, name in enumerate(names):  # an eighth of 1 MiB is his
            self.write(name, bytes(36 * 1024), time=1000 + index)
        others = ["crash-x-4711-%d-1.json" % index for index in range(3)]
        for name in others:
            self.write(name, bytes(36 * 1024), time=1)
        self.write("notes", bytes(10 << 20))
        self.handle("--quota=1")
        wait_until(lambda: not os.path.exists(os.path.join(self.reports, names[0])), "the quota")
        left = os.listdir(self.reports)
        kept = [name for name in names if name in left]
        self.assertEqual(kept, names[len(names) - len(kept):])
        self.assertGreater(len(kept), 0)
        self.assertLessEqual(set(others) | {"notes"}, set(left))

    def test_slots(self):
        """Only so many handlers write at once, whatever they have written; the report of the
        directory says how many crashes were refused."""
        self.handle()
        self.wait_for_reports(1)
        path = os.path.join(self.reports, ".handler")
        with open(path, "r+b") as file:
            # l_type, l_whence, l_start, l_len, l_pid of all slots
            lock = struct.pack("hhxxxxqqixxxx", fcntl.F_WRLCK, 0, 1, 16, 0)
            wait_until(lambda: self.try_lock(file, lock), "the end of the first handler")
            for now in range(2):
                self.handle(now=now, status=2)
                self.assertIn(b"are being written", self.errors)
        self.handle(now=2)
        self.wait_for_reports(2)
        self.assertIn(b"2 crashes without a report",
                      self.run_tool("report", self.reports, status=(0, 1)).stdout)

    def try_lock(self, file, lock):
        try:
            fcntl.fcntl(file, 37, lock)  # F_OFD_SETLK
            return True
        except BlockingIOError:
            return False

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_forged_report(self):
        """A directory of the handler is reported without what users put or wrote there."""
        self.handle()
        self.wait_for_reports(1)  # not of a crash: gcore has no signal
        content = json.dumps({"schema": "stacksnap-snapshot/1", "process": {"name": "sshd"},
                              "capture": {"crash": {"name": "SIGSEGV"}}}).encode()
        self.write("crash-sshd-0-1-1.json", content)
        self.write("crash-sshd-0-2-1.json", content, user=USER)
        self.write("other.json", content)
        groups = json.loads(self.run_tool("report", "-f", "json", self.reports,
                                          status=(1,)).stdout)
        self.assertEqual((groups["crashes"], groups["skipped"], groups["foreign"],
                          groups["refused"]), (1, 1, 2, 0))
        self.assertIn(b"2 files skipped: not written by the handler",
                      self.run_tool("report", self.reports, status=(1,)).stdout)

    def test_reused_pid(self):
        """The number of the process is that of another one by now. The descriptor from the kernel
        says so, also where none can be opened."""
        gone = subprocess.Popen(["true"])
        pidfd = os.pidfd_open(gone.pid)
        self.addCleanup(os.close, pidfd)
        gone.wait()
        for prefix in ((), (DENY, "434")):
            self.handle(status=2, prefix=prefix, pidfd=str(pidfd), pass_fds=(pidfd,))
            self.assertIn(b"was killed before it was copied", self.errors)
        self.assertEqual(self.paths(), [])

    def test_no_descriptor(self):
        """Without a descriptor, a process that has started before the handler is the right one."""
        self.handle(prefix=(DENY, "434"))
        report, = self.wait_for_reports(1)
        self.assertIn("main", report.names(report.thread(self.target.pid)))

    def test_younger_process(self):
        """Without a descriptor, a process that has not started before the handler may be another
        one: only what is in the dump is read, and shown to root."""
        begin, go = os.pipe()
        reading, writing = os.pipe()
        handler = subprocess.Popen(
            ["sh", "-c", "read pid <&%d; exec \"$@\" $pid $pid 11 1700000000 1 ''" % begin, "sh",
             DENY, "434", STACKSNAP, "core", "--handler", "--directory=" + self.reports],
            stdin=reading, pass_fds=(begin,), stderr=subprocess.DEVNULL)
        os.close(begin)
        os.close(reading)
        self.target = self.start("crash", "stop")
        self.core = dump_core(self.directory, self.target.pid)
        os.write(go, b"%d\n" % self.target.pid)
        os.close(go)
        with open(self.core, "rb") as file, open(writing, "wb") as pipe:
            with contextlib.suppress(BrokenPipeError):
                shutil.copyfileobj(file, pipe)
        self.assertEqual(handler.wait(LIMIT_S), 0)
        report, = self.wait_for_reports(1)
        self.assert_like_the_dump(report)
        self.assertIn("-65534-", os.path.basename(report.path))

    @unittest.skipIf(os.geteuid() != 0, "only root can give up a capability alone")
    def test_memory_that_cannot_be_read(self):
        """As with Yama's ptrace_scope 3: the handler reads the whole dump instead."""
        without = ("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace")
        copy = os.path.join(self.directory, "copy")
        commands = ("cat > %s" % copy, "head -c 1000 > %s" % copy, "exec <&-; exec sleep 1")
        for now, options in enumerate([[]] + [["--forward=" + words] for words in commands]):
            with self.subTest(options=options):
                done = self.handle(*options, now=now, prefix=without)
                self.assertEqual(done, os.path.getsize(self.core))
                wait_until(lambda now=now: self.can_see("-%d.json" % now), "the report")
                self.assert_like_the_dump(Report(self.paths()[now]))
                if "cat" in str(options):
                    self.assertEqual(os.path.getsize(copy), os.path.getsize(self.core))

    @unittest.skipIf("SANITIZED" in os.environ, "4,000 threads")
    def test_many_stacks(self):
        """More of a dump than may be copied is left out, and there is a report."""
        code = ("import os, threading\n"
                "threading.stack_size(1 << 16)\n"
                "lock = threading.Lock()\n"
                "lock.acquire()\n"
                "for _ in range(4000): threading.Thread(target=lock.acquire, daemon=True).start()\n"
                "print('ready', flush=True)\n"
                "os.read(0, 1)\n"
                "os._exit(0)\n")
        self.target = self.start_command([sys.executable, "-c", code])
        self.core = dump_core(self.directory, self.target.pid)
        self.handle(prefix=("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"))
        report, = self.wait_for_reports(1)
        self.assertGreater(len(report.thread(self.target.pid)["frames"]), 2)
        # The report has a limit of its own. Equal stacks are written once.
        self.assertGreater(len(report.threads), 1000)

    def test_dump_that_ends_early(self):
        """What there is of it is shown."""
        with open(self.core, "rb") as file:
            data = file.read()
        self.core = os.path.join(self.directory, "cut")
        with open(self.core, "wb") as file:
            file.write(data[:len(data) // 3])
        self.handle(prefix=("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"))
        report, = self.wait_for_reports(1)
        self.assertEqual(len(report.threads), 3)
        for thread in report.threads:
            self.assertTrue(thread["frames"] and thread["incomplete"], thread)

    def assert_like_the_dump(self, report):
        whole = Snapshot(self.run_tool("core", "-f", "json", self.core, status=(0, 1)))
        self.assertGreater(len(whole.threads), 2)
        for thread in whole.threads:
            self.assertEqual(report.names(report.thread(thread["tid"])),
                             [frame["symbol"] for frame in thread["all_frames"]
                              if not frame["inlined"] or "/targets/" in (frame["file"] or "")])

    def test_rate(self):
        for now in range(2):
            self.handle("--rate=2", now=now)
            self.wait_for_reports(now + 1)
        for now in range(2, 4):
            self.handle("--rate=2", now=now, status=2)
        self.wait_for_reports(2)

    @unittest.skipIf(os.geteuid() != 0 or os.path.exists(os.path.dirname(JOURNAL)),
                     "there is a journal, or only root can make one")
    def test_rate_in_journal(self):
        """A crash without a report is in the journal, with the name of the program."""
        self.handle("--rate=1")
        self.wait_for_reports(1)
        os.makedirs(os.path.dirname(JOURNAL))
        self.addCleanup(shutil.rmtree, os.path.dirname(JOURNAL))
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
            journal.bind(JOURNAL)
            journal.settimeout(LIMIT_S)
            self.handle("--rate=1", now=1700000001, status=2)
            entry = journal.recv(65536).decode()
        self.assertIn("MESSAGE=Process %d (crash) " % self.target.pid, entry)
        self.assertIn("there is no report: there were 1 of user %d in the last minute" % os.getuid(), entry)
        self.assertIn("COREDUMP_COMM=crash\n", entry)

    def test_forward(self):
        """Another handler gets the dump whole, and the arguments."""
        copy = os.path.join(self.directory, "copy")
        done = self.handle("--forward=cat > %s; echo $1 $3 > %s.words" % (copy, copy))
        self.assertEqual(done, os.path.getsize(self.core))
        with open(copy, "rb") as one, open(self.core, "rb") as other:
            self.assertTrue(one.read() == other.read(), "the copy is different")
        self.assertEqual(read_text(copy + ".words"), "%d 11\n" % self.target.pid)
        self.wait_for_reports(1)

    if "STACKSNAP_TRIES" in os.environ:  # takes a minute
        def test_stalled_handler(self):
            """The process is released if another handler does not read, or does not end."""
            for command in ("exec sleep 99", "cat > /dev/null; exec sleep 99"):
                self.handle("--forward=exec >/dev/null 2>&1; " + command, status=2)
                self.assertIn(b"made no progress for 30 s", self.errors)

    def test_not_a_dump(self):
        self.core = STACKSNAP
        self.handle(status=2)
        self.assertEqual(self.paths(), [])
        result = self.run_tool("core", "--handler", status=(2,))
        self.assertIn(b"--handler is for the kernel", result.stderr)

    @unittest.skipIf(os.geteuid() != 0 or os.path.exists(os.path.dirname(JOURNAL)),
                     "there is a journal, or only root can make one")
    def test_journal(self):
        os.makedirs(os.path.dirname(JOURNAL))
        self.addCleanup(shutil.rmtree, os.path.dirname(JOURNAL))
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
            journal.bind(JOURNAL)
            journal.settimeout(LIMIT_S)
            self.handle()
            entry = journal.recv(65536).decode()
        fields = dict(line.split("=", 1) for line in entry.splitlines())
        self.assertEqual((fields["COREDUMP_PID"], fields["COREDUMP_SIGNAL"],
                          fields["COREDUMP_COMM"], fields["COREDUMP_EXE"]),
                         (str(self.target.pid), "11", "crash", CRASH), entry)
        self.assertEqual([fields["STACKSNAP_REPORT"]], self.paths(), entry)

    @unittest.skipIf(os.geteuid() != 0 or os.path.exists(os.path.dirname(JOURNAL)),
                     "there is a journal, or only root can make one")
    def test_journal_fields(self):
        """A newline in a message begins no other field."""
        os.makedirs(os.path.dirname(JOURNAL))
        self.addCleanup(shutil.rmtree, os.path.dirname(JOURNAL))
        self.reports = os.path.join(self.directory, "no\nCOREDUMP_UID=4711", "reports")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
            journal.bind(JOURNAL)
            journal.settimeout(LIMIT_S)
            self.handle(status=2)
            entry = journal.recv(65536).decode()
        self.assertIn("there is no report: ", entry)
        self.assertIn("no COREDUMP_UID=4711", entry)
        self.assertNotIn("\nCOREDUMP_UID=4711", entry)


if __name__ == "__main__":
    main()
