"""stacksnap top in a pseudoterminal, whose screen a small model keeps: what it shows, keys,
sizes, and that nothing of it stays in the terminal, however it ends."""
# ctest: timeout=300 long-with-sanitizers

import errno
import fcntl
import glob
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

from harness import EndToEnd, LIMIT_S, STACKSNAP, TARGETS, main, open_terminal, read_text, wait_until

SEQUENCE = re.compile(rb"\x1b\[([?]?)([0-9;]*)([A-Za-z])")


class Screen:
    """What a terminal would show: only the sequences that the tool may use are known."""

    def __init__(self, lines, columns):
        self.modes = {}
        self.cells = {}  # (line, column): character
        self.colored = False
        self.pending = b""
        self.resized = False
        self.resize(lines, columns)
        self.at = [0, 0]

    def resize(self, lines, columns):
        """What was written for the size of before may still arrive."""
        self.lines, self.columns = lines, columns
        self.resized = True

    def text(self):
        rows = []
        for line in range(self.lines):
            row = [self.cells.get((line, column), " ") for column in range(self.columns)]
            rows.append("".join(row).rstrip())
        return "\n".join(rows)

    def clear(self, line, column):
        for key in [key for key in self.cells if key[0] == line and key[1] >= column]:
            del self.cells[key]

    def sequence(self, private, numbers, letter):
        values = [int(value or 0) for value in numbers.split(b";")]
        if private:
            assert letter in b"hl", (private, numbers, letter)
            self.modes[values[0]] = letter == b"h"
        elif letter == b"H":
            self.at = [max(values[0], 1) - 1, (values[1] if len(values) > 1 else 1) - 1]
        elif letter == b"K":
            self.clear(*self.at)
        elif letter == b"J":
            first = self.at[0] + 1
            if values[0] == 2:
                first = 0
            else:
                self.clear(*self.at)
            for line in range(first, self.lines):
                self.clear(line, 0)
        elif letter == b"m":
            self.colored |= values != [0]
        else:
            raise AssertionError("unknown sequence: ESC [ %r %r" % (numbers, letter))

    def feed(self, data):
        data = self.pending + data
        self.pending = b""
        while data:
            if data[:1] == b"\x1b":
                match = SEQUENCE.match(data)
                if not match:
                    assert len(data) < 16, "unknown sequence: %r" % data[:32]
                    self.pending = data
                    return
                self.sequence(*match.groups())
                data = data[match.end():]
                continue
            byte, data = data[:1], data[1:]
            if byte == b"\r":
                self.at[1] = 0
            elif byte == b"\n":
                assert self.at[0] + 1 < self.lines or not self.modes.get(1049) or \
                    self.resized, "the screen scrolls:\n" + self.text()
                self.at[0] += 1
            else:
                assert byte >= b" ", "control character %r" % byte
                if self.at[1] < self.columns:  # without wrapping
                    self.cells[tuple(self.at)] = byte.decode("latin-1")
                    self.at[1] += 1


class Session:
    """The tool in a terminal of its own."""

    def __init__(self, test, *arguments, lines=24, columns=80, **environment):
        self.master, slave = open_terminal(test)
        self.slave = slave
        test.addCleanup(os.close, self.master)
        test.addCleanup(os.close, slave)
        self.screen = Screen(lines, columns)
        self.set_size(lines, columns)
        self.screen.resized = False
        self.before = termios.tcgetattr(slave)
        self.errors = tempfile.TemporaryFile()
        test.addCleanup(self.errors.close)

        def become_leader():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.directory = tempfile.mkdtemp()
        test.addCleanup(shutil.rmtree, self.directory)
        variables = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        self.process = subprocess.Popen(
            [STACKSNAP, "top", *map(str, arguments)], stdin=slave, stdout=slave,
            stderr=self.errors, preexec_fn=become_leader, cwd=self.directory,
            env={**variables, "TERM": "xterm", **environment})
        test.addCleanup(self.process.wait)
        test.addCleanup(lambda: self.process.poll() is None and self.process.kill())

    def set_size(self, lines, columns):
        self.screen.resize(lines, columns)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, timeout_s=0.05):
        readable, _, _ = select.select([self.master], [], [], timeout_s)
        if not readable:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return False
        self.screen.feed(data)
        return bool(data)

    def messages(self):
        self.errors.seek(0)
        return self.errors.read().decode("utf-8", "replace")

    def expect(self, pattern):
        """Waits until the screen contains a text."""
        deadline = time.monotonic() + LIMIT_S
        while not re.search(pattern, self.screen.text(), re.M):
            if self.process.poll() is not None or time.monotonic() > deadline:
                while self.read():
                    pass
                raise AssertionError("no %r (status %s):\n%s\n%s" % (
                    pattern, self.process.poll(), self.screen.text(), self.messages()))
            self.read()
        self.screen.resized = False
        return self.screen.text()

    def press(self, keys):
        os.write(self.master, keys.encode())

    def end(self):
        """Waits for its end; returns the status."""
        deadline = time.monotonic() + LIMIT_S
        while self.process.poll() is None:
            if time.monotonic() > deadline:
                raise AssertionError("it does not end:\n%s\n%s" % (
                    self.screen.text(), self.messages()))
            self.read()
        while self.read():
            pass
        return self.process.returncode


class Top(EndToEnd):
    def assert_restored(self, session):
        self.assertEqual(termios.tcgetattr(session.slave), session.before)
        message = "%s\n%s" % (session.screen.modes, session.messages())
        self.assertEqual({mode: session.screen.modes.get(mode) for mode in (1049, 25, 7)},
                         {1049: False, 25: True, 7: True}, message)

    def text(self, *arguments, **options):
        done = self.run_tool(*arguments, **options)
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
        return done

    def begin(self, target, *arguments, **options):
        return Session(self, *arguments, target.pid, **options)

    def test_shows_functions_and_threads(self):
        """busy: each of its threads spins in spin(), which descend() has called."""
        target = self.start("busy", "2", "3")
        session = self.begin(target, lines=40, columns=120)
        text = session.expect(r"^ +[0-9.]+ +[0-9.]+  spin \(busy\)")
        self.assertRegex(text, r"^busy %d: 3 threads, [0-9]+ running, CPU " % target.pid)
        own, total = map(float, re.search(r"^ +([0-9.]+) +([0-9.]+)  spin ", text, re.M).groups())
        self.assertGreater(own, 0, text)
        self.assertGreaterEqual(total, own, text)
        self.assertRegex(text, r"(?m)^ +0\.0 +[0-9.]+  descend \(busy\)")
        text = session.expect(r"^ +[0-9.]+  R +[0-9]+  busy-0 +spin \(busy\)")
        self.assertTrue(session.screen.colored)
        session.press("q")
        self.assertEqual(session.end(), 0, session.messages())
        self.assert_restored(session)
        self.assert_free(target.pid)

    def test_waits_and_owners(self):
        target = self.start("lockwaits")
        session = self.begin(target, lines=60, columns=300)
        tids = {read_text(path + "/comm").strip(): os.path.basename(path)
                for path in glob.glob("/proc/%d/task/*" % target.pid)}
        session.expect(r"^ +[0-9]+  blocked +wants-mutex %s (and [0-9]+ more wait|waits) for mutex "
                       r"held_lock .*held by %s \(reads-pipe\)"
                       % (tids["wants-mutex"], tids["reads-pipe"]))
        self.assertRegex(session.screen.text(), r"(?m)^ +1  in a deadlock +join-a .*join-b")
        session.press("?")
        session.expect("f functions, t threads, w waits")
        session.press("w/wants-write\r")
        text = session.expect(r"filter: wants-write")
        session.expect(r"\A.*\nCOUNT  WAIT.*\n(.*wants-write.*\n)+\n")
        session.press("q")
        self.assertEqual(session.end(), 0, session.messages())
        self.assert_restored(session)

    def test_keys(self):
        target = self.start("busy", "2", "3")
        session = self.begin(target, lines=30, columns=100)
        session.expect("spin")
        for key, name in (("2", "total"), ("3", "state"), ("4", "name"), ("1", "own")):
            session.press(key)
            session.expect("sort: " + name)
        self.assertNotIn("target_wait", session.screen.text())
        session.press("i")  # the main thread sleeps
        session.expect(r"target_wait \(busy\)")
        session.expect("i idle: on")
        session.press("t")
        session.expect(r"\A.*\n  CPU %")
        session.press("f")
        session.expect(r"\A.*\n  OWN %")
        session.press("/DESC")
        session.expect("^filter: DESC_")
        session.press("\x7f\x7f\r")
        text = session.expect(r"filter: DE\b")
        self.assertIn("descend", text)
        session.expect(r"\A.*\n.*\n(.*descend.*\n)+\n")
        session.press("/\x1b")
        session.expect("thread_routine")
        session.press("\x1b[B")  # down: one row less
        session.expect(r"\A.*\n  OWN %.*\n(?!.* spin )")
        session.press("\x1b[A")
        session.expect(r" spin ")
        session.press(" ")
        text = session.expect(r"snapshot written to stacksnap-[0-9]+-[0-9T]+\.txt")
        paths = glob.glob(session.directory + "/stacksnap-%d-*.txt" % target.pid)
        self.assertEqual(len(paths), 1, os.listdir(session.directory))
        self.assertIn("snapshot written to " + os.path.basename(paths[0]), text)
        text = read_text(paths[0])
        self.assertIn("descend", text)
        session.press("q")
        self.assertEqual(session.end(), 0, session.messages())
        self.assert_restored(session)

    def test_sizes(self):
        target = self.start("lockwaits")
        session = self.begin(target, "--idle", lines=10, columns=40)
        session.expect("OWN %")
        for lines, columns in ((100, 300), (24, 80), (10, 40), (2, 20), (1, 1), (50, 150)):
            session.set_size(lines, columns)
            # The status line is the last one.
            session.expect(r"(?:.*\n){%d}q" % (lines - 1))
        session.expect("CPU %")
        session.press("q")
        self.assertEqual(session.end(), 0, session.messages())
        self.assert_restored(session)

    def test_tmux(self):
        """A terminal that others have written; it is resized, and clean afterwards."""
        if not shutil.which("tmux"):
            self.skipTest("tmux is missing: install tmux")
        target = self.start("busy", "1")
        directory = tempfile.mkdtemp(prefix="stacksnap-", dir="/tmp")
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)

        def tmux(*arguments):
            done = subprocess.run(
                ["tmux", "-S", os.path.join(directory, "socket"), "-f", "/dev/null", *arguments],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                timeout=LIMIT_S, cwd=directory)
            return done.stdout.decode("utf-8", "replace")

        def shows(pattern):
            return re.search(pattern, tmux("capture-pane", "-p"), re.M)

        self.addCleanup(tmux, "kill-server")
        text = tmux("new-session", "-d", "-x", "100", "-y", "30", "sh", "-c",
                    'echo before; "$@"; echo status $?; exec sleep 1000', "sh", STACKSNAP, "top",
                    str(target.pid))
        self.assertEqual(text, "")
        for columns, lines in ((100, 30), (40, 10), (300, 100)):
            tmux("resize-window", "-x", str(columns), "-y", str(lines))
            wait_until(lambda: shows(r"^ +[0-9.]+ +[0-9.]+  spin \(busy\)") and
                       shows(r"\A(.*\n){%d}q quit" % (lines - 1)),
                       "%d x %d in tmux" % (columns, lines))
        tmux("send-keys", "q")
        wait_until(lambda: shows("^status 0"), "the end")
        text = tmux("capture-pane", "-p")
        self.assertEqual(text.split(), ["before", "status", "0"], text)

    def test_no_colors(self):
        target = self.start("busy", "1")
        for arguments, environment in (((), {"NO_COLOR": "1"}), (("--color=never",), {})):
            session = self.begin(target, *arguments, **environment)
            session.expect("spin")
            session.press("q")
            self.assertEqual(session.end(), 0, session.messages())
            self.assertFalse(session.screen.colored)
            self.assert_restored(session)

    def test_ends(self):
        """By a signal, Ctrl-C, and the end of the process."""
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, None):
            target = self.start("busy", "1")
            session = self.begin(target)
            session.expect("spin")
            if number is None:
                session.press("\x03")
            else:
                os.kill(session.process.pid, number)
            self.assertEqual(session.end(), 0, session.messages())
            self.assert_restored(session)
            self.assert_free(target.pid)
            target.kill()
        target = self.start("busy", "1")
        session = self.begin(target)
        session.expect("spin")
        target.kill()
        self.assertEqual(session.end(), 0, session.messages())
        self.assertIn("process %d has ended" % target.pid, session.messages())
        self.assert_restored(session)

    def test_killed(self):
        """What it has started ends with it, and the terminal is restored."""
        self.kill_when(lambda session: session.expect("spin"))

    def test_killed_without_recorder(self):
        """There is none during a snapshot."""
        def take(session):
            session.expect("spin")
            session.press(" ")
            session.expect("snapshot")
        self.kill_when(take)

    def kill_when(self, wait):
        target = self.start("busy", "1")
        session = self.begin(target)
        wait(session)
        session.process.kill()
        session.end()
        self.assert_free(target.pid)
        wait_until(lambda: not any(
            "stacksnap\0top\0%d\0" % target.pid in read_text(path).replace(STACKSNAP, "stacksnap")
            for path in glob.glob("/proc/[0-9]*/cmdline")), "the recorder to end")

        def is_restored():  # what was written may come late
            session.read()
            return session.screen.modes.get(1049) is False
        wait_until(is_restored, "the terminal to be restored")
        while session.read():
            pass
        self.assert_restored(session)

    def test_suspended(self):
        """Ctrl-Z gives the terminal back, fg continues."""
        target = self.start("busy", "1")
        session = self.begin(target)
        session.expect("spin")
        os.kill(session.process.pid, signal.SIGTSTP)

        def is_stopped():  # which it is some time after it has restored the terminal
            session.read()
            return read_text("/proc/%d/stat" % session.process.pid).split(") ")[1][0] == "T"
        wait_until(is_stopped, "top to stop")
        while session.read():
            pass
        self.assert_restored(session)
        session.screen.cells.clear()
        os.kill(session.process.pid, signal.SIGCONT)
        session.expect("spin")
        self.assertTrue(session.screen.modes[1049])
        session.press("q")
        self.assertEqual(session.end(), 0, session.messages())
        self.assert_restored(session)

    def test_hostile_names(self):
        """A thread whose name would clear the screen: the model refuses unknown sequences."""
        target = self.start("lockwaits", "\x1b[2J\x1b]0;x\x07")
        session = self.begin(target, "--idle", lines=60, columns=200)
        session.expect(r"reads-pipe|\\x1b\[2J")
        session.expect(r"\\x1b\[2J\\x1b\]0;x")
        session.press("q")
        self.assertEqual(session.end(), 0, session.messages())

    def test_once(self):
        target = self.start("busy", "2", "3")
        done = self.text("top", "--once", "--rate=50", "--rows=3", target.pid)
        rows = done.stdout.splitlines()
        at = [i for i, row in enumerate(rows) if row.startswith("  OWN %")]
        threads = [i for i, row in enumerate(rows) if row.startswith("  CPU %")]
        self.assertEqual((at, threads[0] - at[0]), ([1], 4), done.stdout)
        self.assertIn("spin (busy)", rows[2])
        rate = int(re.search(r"([0-9]+) samples/s", rows[0]).group(1))
        self.assertLessEqual(rate, 60, done.stdout)
        done = self.text("top", "--once", "--sort=total", "--filter=routine", target.pid)
        self.assertIn("thread_routine", done.stdout)
        self.assertNotIn("spin", done.stdout.replace("busy-", ""))
        done = self.text("top", "--once", "--filter=routinely", target.pid)
        self.assertIn("\nno function, thread or wait contains the filter\n", done.stdout)
        # Also where a filter of a container refuses memfd_create(2), number 319 on x86-64.
        deny = [os.path.join(TARGETS, "deny_syscalls"), "319"] if os.uname().machine == "x86_64" else []
        done = subprocess.run([*deny, STACKSNAP, "top", "--once", "--idle", "--sort=name",
                               str(target.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=LIMIT_S, text=True)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("target_wait (busy)", done.stdout)

    def test_names_of_the_runtime(self):
        """Threads have the names that threading.Thread was given, in both tables."""
        program = ("import threading, time\n"
                   "def crunch():\n    while True: sum(range(1000))\n"
                   "for i in range(2):\n"
                   "    threading.Thread(target=crunch, name='cruncher %d' % i, daemon=True).start()\n"
                   "print(flush=True)\ntime.sleep(1000)\n")
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE,
                              text=True) as process:
            self.addCleanup(process.kill)
            process.stdout.readline()
            done = self.text("top", "--once", "--idle", process.pid)
            process.kill()
        for name in ("cruncher 0", "cruncher 1"):
            self.assertRegex(done.stdout, r"(?m)^ +[0-9.]+  . +[0-9]+  %s +\w" % name)
        self.assertNotRegex(done.stdout, r"(?m)^ +[0-9.]+  . +[0-9]+  python3 ")

    def test_once_until_the_end_of_the_process(self):
        target = self.start("busy", "1")
        process = subprocess.Popen([STACKSNAP, "top", "--once", str(target.pid)],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: process.poll() is None and process.kill())

        def recorder():
            """Whether a child has opened files of the process."""
            children = read_text("/proc/%d/task/%d/children" % (process.pid, process.pid))
            for path in (path for pid in children.split() for path in
                         glob.glob("/proc/%s/fd/*" % pid)):
                try:
                    if os.readlink(path).startswith("/proc/%d/" % target.pid):
                        return True
                except OSError:
                    pass
            return False

        def run_ns():
            return sum(int(read_text(path).split()[0])
                       for path in glob.glob("/proc/%d/task/*/schedstat" % target.pid))

        wait_until(lambda: process.poll() is not None or recorder(), "the recorder")
        if process.poll() is not None:
            self.skipTest("the recorder began too late")
        # It goes on while the program that prints waits.
        process.send_signal(signal.SIGSTOP)
        child = read_text("/proc/%d/task/%d/children" % (process.pid, process.pid)).split()[0]
        begin_ns = run_ns()
        wait_until(lambda: run_ns() > begin_ns + 500000000, "half a second of CPU time")
        target.kill()
        wait_until(lambda: ") Z" in read_text("/proc/%s/stat" % child), "the end of the recorder")
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual((process.returncode, err),
                         (0, "stacksnap: process %d has ended\n" % target.pid), out)
        self.assertIn("spin", out)

    def test_refused(self):
        target = self.start("busy", "1")
        done = self.text("top", target.pid, status=(2,))
        self.assertIn("not a terminal", done.stderr)
        self.assertIn("--once", done.stderr)
        for arguments in (("--sort=x",), ("--rate=0",), ("--rows=0",), ()):
            pid = (target.pid,) if arguments else ()
            self.run_tool("top", *arguments, *pid, status=(64,))
        self.run_tool("top", "--once", 1 << 22, status=(2,))


if __name__ == "__main__":
    main()
