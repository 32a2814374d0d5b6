"""stacksnap run: the stacks of a command that a signal ends, or that takes too long; and that
nothing else about the command changes."""
# ctest: long-with-sanitizers slow timeout=600

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from harness import (EndToEnd, LIMIT_S, Snapshot, STACKSNAP, TARGETS, for_everyone, main, read_text,
                     status_field, task_states, wait_until)

SIGNALS = os.path.join(TARGETS, "fatal_signals")
CRASH = os.path.join(TARGETS, "crash")
NOBODY = 65534
PC, REGISTERS = {"x86_64": ("rip", 17), "aarch64": ("pc", 33)}[os.uname().machine]


class Report:
    """One line of JSON, as Snapshot has it."""

    def __init__(self, line):
        self.data = json.loads(line)
        self.modules = self.data["modules"]
        self.threads = self.data["threads"]
        self.crash = self.data["capture"]["crash"]

    thread = Snapshot.thread
    module = Snapshot.module
    frames = Snapshot.frames

    def names(self, tid=None):
        thread = self.thread(tid or self.crash["tid"])
        return [re.sub(r"\(.*", "", frame["symbol"] or "?") for frame in self.frames(thread)]


class Run(EndToEnd):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="stacksnap-run-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.reports = os.path.join(self.directory, "reports")

    def run_command(self, *command, arguments=(), status=(0,), **options):
        """Runs a command; returns the result and its reports."""
        path = os.path.join(tempfile.mkdtemp(dir=self.directory), "reports")
        result = self.run_tool("run", "-f", "json", "-o", path, *arguments, "--", *command,
                               status=status, cwd=self.directory, **options)
        text = read_text(path) if os.path.exists(path) else ""
        return result, [Report(line) for line in text.splitlines()]

    def crash(self, how, status):
        result, reports = self.run_command(SIGNALS, how, status=(status,))
        self.assertEqual(len(reports), 1, result.stderr)
        self.assertTrue(reports[0].data["capture"]["consistent"], reports[0].data["capture"])
        return reports[0]

    def assert_begins(self, report, *expected):
        self.assertEqual(report.names()[:len(expected)], list(expected), report.names())
        self.assertEqual(report.thread(report.crash["tid"])["end"], "root", report.names())


class Crashes(Run):
    def test_null_pointer(self):
        result, reports = self.run_command(CRASH, "segv", status=(-signal.SIGSEGV,))
        self.assertEqual(len(reports), 1, result.stderr)
        crash = reports[0].crash
        self.assertEqual((crash["name"], crash["code"], crash["address"]),
                         ("SIGSEGV", 1, "0x10"), crash)
        self.assertEqual(crash["signature"], "read_address", crash)
        self.assert_begins(reports[0], "read_address", "fail", "main")
        self.assertEqual(len(reports[0].threads), 3)
        first = reports[0].thread(crash["tid"])["frames"][0]
        self.assertEqual((len(crash["registers"]), crash["registers"][PC]),
                         (REGISTERS, first["pc"]), crash)
        # the locks are those of that moment, too
        waits = [thread["wait"] for thread in reports[0].threads if thread["wait"]]
        self.assertEqual([(wait["kind"], wait["owner_tid"]) for wait in waits],
                         [("mutex", crash["tid"])] * 2, waits)

    def test_overflow_with_handler(self):
        """The handler, on an alternate stack, restores the default and raises again."""
        report = self.crash("overflow", -signal.SIGSEGV)
        names = report.names()
        self.assertIn("raise_again", names[:8], names[:9])
        self.assertEqual(names[20:30], ["recurse"] * 10, names[:30])

    def test_ways(self):
        for how, number, frames in (
                ("double_free", signal.SIGABRT, ("fail_double_free", "main")),
                ("assertion", signal.SIGABRT, ("fail_assertion", "main")),
                ("exception", signal.SIGABRT, ("fail_exception", "main")),
                ("mapping", signal.SIGBUS, ("fail_mapping", "main")),
                ("filter", signal.SIGSYS, ("syscall", "fail_filter", "main")),
                ("reraise", signal.SIGABRT, ("read_null", "fail_reraise", "main")),
                ("handler", signal.SIGSEGV, ("fail_handler", "main")),
                ("malloc", signal.SIGSEGV, ("read_null", "fail_malloc", "main")),
                ("thread", signal.SIGSEGV, ("read_null", "fail_thread", "target_thread_main")),
                ("vfork", signal.SIGSEGV, ("read_null", "fail_vfork", "main")),
                ("fork", signal.SIGSEGV, ("read_null", "fail_fork", "main"))):
            with self.subTest(how):
                # vfork and fork: the parent sees its child die, and exits with 0
                report = self.crash(how, 0 if how.endswith("fork") else -number)
                self.assertEqual(report.crash["signal"], number, report.crash)
                names = report.names()
                at = names.index(frames[0]) if frames[0] in names else 0
                self.assertEqual(tuple(names[at:at + len(frames)]), frames, names)
                if frames[0] in ("read_null", "fail_mapping") and how != "reraise":
                    self.assertEqual(at, 0, names)  # the faulting frame is first

    def test_many_threads(self):
        report = self.crash("many", -signal.SIGSEGV)
        self.assertEqual(len(report.threads), 501)
        self.assertEqual({thread["end"] for thread in report.threads}, {"root"})

    def test_routine(self):
        """Signals that a process handles or ignores are no crashes."""
        for how in ("recovers", "ignored"):
            result, reports = self.run_command(SIGNALS, how)
            self.assertEqual((len(reports), result.stderr), (0, b""), how)

    def test_descendant(self):
        result, reports = self.run_command(
            "bash", "-c", "bash -c 'kill -ABRT $$'; (kill -SEGV $BASHPID); exit 5", status=(5,))
        self.assertEqual([report.crash["name"] for report in reports], ["SIGABRT", "SIGSEGV"],
                         result.stderr)
        self.assertIn("kill", reports[0].names()[0])

    def test_pipeline(self):
        """SIGPIPE ends a command whose output nobody reads: that is no crash."""
        result, reports = self.run_command("sh", "-c", "yes | head -n 1")
        self.assertEqual((result.stdout, result.stderr, len(reports)), (b"y\n", b"", 0))

    def test_interrupted_shell(self):
        """A shell that Ctrl-C has ended ends itself by that signal."""
        result, reports = self.run_command("sh", "-c", "kill -INT $$; sleep 1",
                                           status=(-signal.SIGINT,))
        self.assertEqual((result.stderr, len(reports)), (b"", 0))

    def test_terminated(self):
        """Who sent the signal is said."""
        result, reports = self.run_command("sh", "-c", "sleep 60 & kill $!; wait $!",
                                           status=(128 + signal.SIGTERM,))
        self.assertEqual([report.crash["name"] for report in reports], ["SIGTERM"], result.stderr)
        self.assertGreater(reports[0].crash["sender"], 0, reports[0].crash)

    def test_python_functions(self):
        """Of the thread that crashes, of one that runs, and of one that sleeps."""
        python = os.path.realpath("/usr/bin/python3")
        if not os.path.exists(python):
            self.skipTest("there is no Debian python3")
        code = ("import ctypes, threading, time\n"
                "started = threading.Event()\n"
                "def sleeper(): time.sleep(99)\n"
                "def runner():\n"
                "    started.set()\n"
                "    while True: pass\n"
                "def inner(): ctypes.string_at(0)\n"
                "def outer(): inner()\n"
                "for function in sleeper, runner:\n"
                "    threading.Thread(target=function, daemon=True).start()\n"
                "started.wait()\n"
                "outer()\n")
        result, reports = self.run_command(python, "-c", code, status=(-signal.SIGSEGV,))
        self.assertEqual(len(reports), 1, result.stderr)
        found = [[frame["symbol"] for frame in thread["frames"] if frame["kind"] == "python"]
                 for thread in reports[0].data["threads"]]
        self.assertEqual(found[0], ["string_at", "inner", "outer", "<module>"], found)
        self.assertEqual({names[0] for names in found[1:]}, {"sleeper", "runner"}, found)

    def test_text(self):
        result = self.run_tool("run", "-v", "--", CRASH, "segv", status=(-signal.SIGSEGV,),
                               cwd=self.directory)
        text = result.stderr.decode()
        self.assertEqual(result.stdout, b"")
        self.assertIn("killed by SIGSEGV in thread", text)
        self.assertIn("no memory is mapped at 0x10", text)
        self.assertRegex(text, r"\nrip [0-9a-f]{16}\n")
        self.assertRegex(text, r"signature: read_address \[[0-9a-f]{32}\]")
        self.assertLess(text.index("read_address+"), text.index("fail+"))


class Runtimes(Run):
    def test_java(self):
        """A JVM turns faults into exceptions; only its own abort is a crash."""
        java = shutil.which("java")
        if not java:
            self.skipTest("no java")
        path = os.path.join(self.directory, "Faults.java")
        with open(path, "w", encoding="ascii") as file:
            file.write("public class Faults { public static void main(String[] a) { int n = 0;"
                       "Object[] o = new Object[1]; for (int i = 0; i < 200000; i++)"
                       "try { n += o[0].hashCode(); } catch (NullPointerException e) { n++; }"
                       "System.out.println(n); } }")
        result, reports = self.run_command(java, path)
        self.assertEqual((result.stdout, result.stderr, len(reports)), (b"200000\n", b"", 0))

    def test_go(self):
        go = shutil.which("go")
        if not go:
            self.skipTest("no go")
        with open(os.path.join(self.directory, "main.go"), "w", encoding="ascii") as file:
            file.write("package main\nimport \"os\"\nfunc deref(p *int) int { return *p }\n"
                       "func try() { defer func() { recover() }(); deref(nil) }\n"
                       "func main() { for i := 0; i < 1000; i++ { try() }\n"
                       "if len(os.Args) > 1 { deref(nil) } }\n")
        program = os.path.join(self.directory, "faults")
        subprocess.run([go, "build", "-gcflags=-l", "-o", program, "main.go"],
                       cwd=self.directory, check=True, timeout=LIMIT_S,
                       env=dict(os.environ, GO111MODULE="off"))
        result, reports = self.run_command(program)
        self.assertEqual((result.stderr, len(reports)), (b"", 0))
        result, reports = self.run_command(program, "crash", status=(-signal.SIGABRT,),
                                           env=dict(os.environ, GOTRACEBACK="crash"))
        self.assertEqual([report.crash["name"] for report in reports], ["SIGABRT"],
                         result.stderr)
        names = reports[0].names()
        self.assertIn("main.deref", names, names)
        self.assertLess(names.index("runtime.gopanic"), names.index("main.deref"), names)
        goroutines = reports[0].data.get("goroutines")
        self.assertTrue(goroutines, reports[0].data.keys())
        self.assertIn("running", [goroutine["status"] for goroutine in goroutines], goroutines)
        self.assertIn("waiting", [goroutine["status"] for goroutine in goroutines], goroutines)


class TimeLimit(Run):
    def test_tree(self):
        """The whole tree is shown, with its deadlock, and ended."""
        deadlock = os.path.join(TARGETS, "deadlock")
        marker = "sleep 7654"
        result, reports = self.run_command(
            "sh", "-c", "%s & sleep 9 | %s; wait" % (marker, deadlock),
            arguments=["--timeout=1s"], status=(124,))
        self.assertIn("time limit of 1 s", result.stderr.decode())
        names = sorted(report.data["process"]["name"] for report in reports)
        self.assertEqual([name for name in names if name != "sh"],
                         ["deadlock", "sleep", "sleep"], names)
        stuck = [report for report in reports if report.data["process"]["name"] == "deadlock"][0]
        self.assertEqual(len(stuck.data["deadlocks"]), 1, stuck.data["deadlocks"])
        for report in reports:
            wait_until(lambda pid=report.data["process"]["pid"]:
                       status_field(pid, "State") is None, "its end")

    def test_killed(self):
        """Processes that ignore SIGTERM get SIGKILL."""
        result, reports = self.run_command(
            "bash", "-c", "trap '' TERM; while :; do sleep 0.1; done",
            arguments=["--timeout=500ms", "--kill-after=500ms"], status=(124,))
        self.assertIn("bash", [report.data["process"]["name"] for report in reports],
                      result.stderr)

    def test_cleanup(self):
        """A handler of SIGTERM runs, and the process gets the time."""
        result, _ = self.run_command(
            "bash", "-c", "trap 'sleep 0.5; echo cleaned up; exit 3' TERM; while :; do sleep 0.1;"
            "done", arguments=["--timeout=500ms"], status=(124,))
        self.assertEqual(result.stdout, b"cleaned up\n", result.stderr)

    def test_in_time(self):
        result, reports = self.run_command("true", arguments=["--timeout=60"])
        self.assertEqual((result.stderr, len(reports)), (b"", 0))

    def test_not_traced(self):
        result, reports = self.run_command(
            "grep", "TracerPid", "/proc/self/status", arguments=["--no-crashes"])
        self.assertEqual((result.stdout, len(reports)), (b"TracerPid:\t0\n", 0))
        result, reports = self.run_command("sleep", "60", status=(124,),
                                           arguments=["--no-crashes", "--timeout=300ms"])
        self.assertEqual([report.data["process"]["name"] for report in reports], ["sleep"],
                         result.stderr)


    def test_refused(self):
        """Where nothing may be traced, one line says so, and the command runs all the same."""
        result = subprocess.run([os.path.join(TARGETS, "deny_syscalls"), "101",  # ptrace
                                 STACKSNAP, "run", "--timeout=60", "--", "sh", "-c", "exit 7"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S,
                                env=dict(os.environ, ASAN_OPTIONS=os.environ.get(
                                    "ASAN_OPTIONS", "") + ":detect_leaks=0"))  # it would have to ptrace
        self.assertEqual((result.returncode, result.stdout), (7, b""), result.stderr)
        self.assertIn(b"crashes are not seen: tracing the command: Operation not permitted",
                      result.stderr)
        self.assertIn(b"kernel.yama.ptrace_scope above 1", result.stderr)

    @unittest.skipIf(os.geteuid() != 0 or not shutil.which("setpriv"), "cannot drop privileges")
    def test_without_rights(self):
        """A user without any capability."""
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o755)
            tool = shutil.copy(STACKSNAP, directory)
            os.chmod(tool, 0o755)
            result = subprocess.run(
                ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs",
                 "--inh-caps=-all", "--bounding-set=-all", tool, "run", "-f", "json", "--",
                 "/bin/sh", "-c", "kill -SEGV $$"], stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, cwd="/", timeout=LIMIT_S)
        self.assertEqual(result.returncode, -signal.SIGSEGV, result.stderr)
        report = Report(result.stderr.decode())
        self.assertEqual(report.crash["name"], "SIGSEGV", result.stderr)
        self.assertEqual(report.thread(report.crash["tid"])["end"], "root", result.stderr)


class Transparent(Run):
    def test_status(self):
        for command, status in ((("true",), 0), (("sh", "-c", "exit 7"), 7),
                                (("sh", "-c", "kill -9 $$"), -signal.SIGKILL)):
            result, reports = self.run_command(*command, status=(status,))
            self.assertEqual((result.stderr, len(reports)), (b"", 0), command)
        for command, status in (("/nonexistent", 127), ("/etc/passwd", 126)):
            result, _ = self.run_command(command, status=(status,))
            self.assertIn("cannot execute '%s'" % command, result.stderr.decode())
        self.run_tool("run", status=(64,))

    def test_streams(self):
        result = subprocess.run([STACKSNAP, "run", "--", "sh", "-c", "cat; echo err >&2"],
                                input=b"in", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                timeout=LIMIT_S)
        self.assertEqual((result.stdout, result.stderr), (b"in", b"err\n"))

    def state_of_child(self, *prefix):
        """What a process inherits: signals, limits, environment, descriptors, process group."""
        script = ("import os, resource, signal;"
                  "print(sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))),"
                  "[n for n in range(1, 65) if n not in (32, 33) and"
                  " signal.getsignal(n) == signal.SIG_IGN],"
                  "[resource.getrlimit(n) for n in range(16)], sorted(os.environ.items()),"
                  "sorted(os.listdir('/proc/self/fd')), os.getcwd(), os.nice(0))")

        def prepare():
            signal.pthread_sigmask(signal.SIG_SETMASK, [signal.SIGUSR2])
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        return subprocess.run([*prefix, sys.executable, "-c", script], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, timeout=LIMIT_S, preexec_fn=prepare,
                              env={"A": "b", "PATH": os.environ["PATH"]}, check=True,
                              cwd=self.directory).stdout

    def test_inherited(self):
        self.assertEqual(self.state_of_child(STACKSNAP, "run", "--"), self.state_of_child())

    def begin(self, *command, **options):
        process = subprocess.Popen([STACKSNAP, "run", "--", *command], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    COUNTER = ("import os, signal, sys, time\n"
               "got = []\n"
               "signal.signal(signal.SIGTERM, lambda *_: got.append(1))\n"
               "print('ready', os.getpid(), flush=True)\n"
               "while not got: time.sleep(0.01)\n"
               "time.sleep(0.3)\n"
               "print(len(got))\n")

    def test_signal_is_forwarded(self):
        """A signal that is sent to stacksnap alone, or to the process group, reaches the command
        once."""
        for send in (os.kill, os.killpg):
            process = self.begin(sys.executable, "-c", self.COUNTER, start_new_session=True)
            self.assertIn(b"ready", process.stdout.readline())
            send(process.pid, signal.SIGTERM)
            output, errors = process.communicate(timeout=LIMIT_S)
            self.assertEqual((output, errors, process.returncode), (b"1\n", b"", 0), send)

    def test_stopped_and_continued(self):
        """The command runs after any number of stops. Some hundred continuations in, one came
        between two calls of stacksnap, and the command stayed stopped."""
        process = self.begin(sys.executable, "-c", self.COUNTER)
        pid = int(process.stdout.readline().split()[1])
        for i in range(1000):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.0005 + i % 10 * 0.0001)
            os.kill(pid, signal.SIGCONT)
            time.sleep(i % 7 * 0.0001)
        os.kill(pid, signal.SIGTERM)
        output, errors = process.communicate(timeout=LIMIT_S)
        self.assertEqual((output, errors, process.returncode), (b"1\n", b"", 0))

    def test_ignored_signals_interrupt_nothing(self):
        """A traced process is woken by signals that it ignores; its calls do not return EINTR."""
        # C is the only place where a call without a time limit shows EINTR
        script = ("import ctypes, os, signal, subprocess, sys, threading, time\n"
                  "libc = ctypes.CDLL(None, use_errno=True)\n"
                  "reading, writing = os.pipe()\n"
                  "fd = libc.epoll_create1(0)\n"
                  "event = ctypes.create_string_buffer(b'\\1\\0\\0\\0' + bytes(8), 12)\n"
                  "assert libc.epoll_ctl(fd, 1, reading, event) == 0\n"
                  "child = os.fork()\n"
                  "if child == 0:\n"
                  "    for i in range(5):\n"
                  "        time.sleep(0.1)\n"
                  "        os.kill(os.getppid(), signal.SIGWINCH)\n"
                  "    time.sleep(0.1); os.write(writing, b'x'); os._exit(0)\n"
                  "n = libc.epoll_wait(fd, ctypes.create_string_buffer(12), 1, -1)\n"
                  "print(n, ctypes.get_errno())\n")
        result, _ = self.run_command(sys.executable, "-c", script)
        self.assertEqual(result.stdout, b"1 0\n", result.stderr)

    def test_killed_supervisor(self):
        """When stacksnap is killed, the command runs on, and its signals are not lost."""
        for _ in range(5):
            process = self.begin(sys.executable, "-c", self.COUNTER)
            pid = int(process.stdout.readline().split()[1])
            process.kill()
            process.wait(LIMIT_S)
            os.kill(pid, signal.SIGTERM)
            self.assertEqual(process.stdout.readline(), b"1\n")
            wait_until(lambda pid=pid: status_field(pid, "State") in (None, "Z (zombie)"),
                       "its end")

    def test_set_user_id(self):
        """A program keeps the rights that its file gives, although a user without rights traces
        what starts it."""
        if os.geteuid() != 0:
            self.skipTest("needs root, to make a set-user-ID program")
        os.chmod(self.directory, 0o755)
        program = os.path.join(self.directory, "who")
        shutil.copy(shutil.which("id"), program)
        os.chmod(program, 0o4755)
        if os.statvfs(program).f_flag & os.ST_NOSUID:
            self.skipTest("nosuid")
        tool = for_everyone(STACKSNAP)

        def become():
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        for command in ([program, "-u"], ["sh", "-c", "%s -u; %s -ru" % (program, program)],
                        ["sh", "-c", "cd %s; ./who -u" % self.directory]):
            result = self.run_tool("run", "--", *command, tool=tool, preexec_fn=become, cwd="/")
            self.assertEqual(result.stdout.split()[0], b"0", result)
            self.assertIn(result.stdout.split()[-1], (b"0", b"%d" % NOBODY))
        # the crashes of the other processes are seen all the same
        result = self.run_tool("run", "--", "bash", "-c", "%s; kill -SEGV $$" % program,
                               tool=tool, preexec_fn=become, cwd="/", status=(-signal.SIGSEGV,))
        self.assertIn(b"euid=0", result.stdout)
        self.assertIn(b"killed by SIGSEGV", result.stderr)

    def test_debugger(self):
        """A debugger can trace its own children."""
        if not shutil.which("strace"):
            self.skipTest("no strace")
        result, _ = self.run_command("strace", "-o", "/dev/stdout", "-e", "trace=exit_group",
                                     "sh", "-c", "true")
        self.assertIn(b"exit_group(0)", result.stdout, result.stderr)

    @unittest.skipIf(os.geteuid() != 0, "needs root, for namespaces")
    def test_first_process(self):
        """As the first process of a pid namespace: orphans are reaped, status and signals work,
        and a crash of the command is seen."""
        self.need_namespaces()
        result = subprocess.run(
            ["unshare", "--pid", "--fork", "--mount-proc", STACKSNAP, "run", "--", "bash", "-c",
             "(sleep 0.1 &); sleep 0.5; ps -e -o stat= | grep -c Z; kill -ABRT $$"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S)
        self.assertEqual((result.returncode, result.stdout), (128 + signal.SIGABRT, b"0\n"),
                         result.stderr)
        self.assertIn(b"killed by SIGABRT", result.stderr)


class Terminal(Run):
    """A shell with job control, and a terminal."""

    SHELL = r"""
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execvp(sys.argv[1], sys.argv[1:])
while True:
    _, status = os.waitpid(pid, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpgrp())
    if not os.WIFSTOPPED(status):
        break
    print("stopped", os.WSTOPSIG(status), flush=True)
    sys.stdin.readline()
    os.tcsetpgrp(0, pid)
    os.killpg(pid, signal.SIGCONT)
print("signal", os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, "status",
      os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0, flush=True)
"""

    def begin(self, *command):
        try:
            pid, self.fd = pty.fork()
        except OSError as error:
            self.skipTest("no pseudoterminal: %s" % error)
        if pid == 0:
            os.execv(sys.executable, [sys.executable, "-c", self.SHELL, STACKSNAP, "run", "--",
                                      *command])
        self.text = ""
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.close, self.fd)
        self.addCleanup(os.kill, pid, signal.SIGKILL)

    def expect(self, word):
        deadline = time.monotonic() + LIMIT_S
        while word not in self.text:
            left = deadline - time.monotonic()
            self.assertTrue(left > 0 and select.select([self.fd], [], [], left)[0],
                            "no '%s': %r" % (word, self.text))
            try:
                self.text += os.read(self.fd, 4096).decode("utf-8", "replace")
            except OSError:
                self.fail("no '%s': %r" % (word, self.text))
        self.text = self.text[self.text.index(word) + len(word):]

    def test_interrupt(self):
        """Ctrl-C reaches the command once; the shell sees a program that SIGINT has ended."""
        self.begin(sys.executable, "-c", "import signal, time\n"
                   "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
                   "print('ready', flush=True)\ntime.sleep(60)\n")
        self.expect("ready")
        os.write(self.fd, b"\x03")
        self.expect("signal 2 status 0")

    def test_interrupt_handled(self):
        self.begin(sys.executable, "-c", "import signal, time\ngot = []\n"
                   "signal.signal(signal.SIGINT, lambda *_: got.append(1))\n"
                   "print('ready', flush=True)\nwhile not got: time.sleep(0.01)\n"
                   "time.sleep(0.3)\nprint('got', len(got))\nraise SystemExit(3)\n")
        self.expect("ready")
        os.write(self.fd, b"\x03")
        self.expect("got 1\r\n")
        self.expect("signal 0 status 3")

    def test_stop(self):
        """Ctrl-Z stops the command and stacksnap; fg continues both, as often as wanted."""
        self.begin(sys.executable, "-c", "import os, sys\nprint('ready', flush=True)\n"
                   "while True:\n    line = sys.stdin.readline()\n"
                   "    if not line.strip(): continue\n"
                   "    print('echo', line.strip(), flush=True)\n"
                   "    if line.strip() == 'end': break\n")
        self.expect("ready")
        for i in range(3):
            os.write(self.fd, b"\x1a")
            self.expect("stopped 20")
            os.write(self.fd, b"go on\n")
            time.sleep(0.1)
            os.write(self.fd, b"word%d\n" % i)
            self.expect("echo word%d" % i)
        os.write(self.fd, b"end\n")
        self.expect("signal 0 status 0")


if __name__ == "__main__":
    main()
