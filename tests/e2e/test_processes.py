"""Waits that lead to other processes: chains and cycles through several of them.
targets/processes.c."""
# ctest: long-with-sanitizers

import ctypes
import glob
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from harness import EndToEnd, HOG, main, makes_namespaces, read_text, task_states, wait_until

FOR = "--for=200ms"
TRIES = 20
BLOCKED = re.compile(r"^(0|73|202) ")  # read, flock, futex


def blocked(pid):
    return BLOCKED.match(read_text("/proc/%d/syscall" % pid)) is not None


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


# Opens a FIFO for writing, and gets no CPU any more as soon as the reader has opened it.
LATE_WRITER = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[2])})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
print("ready", flush=True)
os.open(sys.argv[1], os.O_WRONLY)
os.read(0, 1)
"""


# Programs that wait for their children, which wait for them: (program, processes of the cycle).
SUBPROCESSES = {
    "a filter that is not read": ("p = Popen(['cat'], stdin=PIPE, stdout=PIPE)\n"
                                  "p.stdin.write(b'x' * 1000000)", 2),
    "stderr that is not read": ("p = Popen(['sh', '-c', 'cat /dev/zero >&2; :'], stdout=PIPE, "
                                "stderr=PIPE)\np.stdout.read()", 3),
    "wait before read": ("Popen(['cat', '/dev/zero'], stdout=PIPE).wait()", 2),
    "a shell between them": ("Popen(['sh', '-c', 'cat /dev/zero; :'], stdout=PIPE).wait()", 3),
    "TCP": ("s = socket.create_server(('127.0.0.1', 0))\n"
            "c = socket.create_connection(s.getsockname())\n"
            "a, _ = s.accept()\n"
            "own, other = (a, c) if os.fork() == 0 else (c, a)\n"
            "other.close()\ns.close()\n"
            "own.sendall(bytes(100000000))", 2),
    # Whoever else has the other end may go on.
    "a pipe with another reader": ("ends = os.pipe()\n"
                                   "Popen(['sleep', '1000'], stdin=ends[0])\n"
                                   "Popen(['cat', '/dev/zero'], stdout=ends[1]).wait()", 0),
}


class Processes(EndToEnd):
    def test_subprocesses(self):
        for title, (program, count) in SUBPROCESSES.items():
            with self.subTest(title):
                process = subprocess.Popen(
                    [sys.executable, "-c", "import os, socket\nfrom subprocess import *\n" + program],
                    start_new_session=True, stderr=subprocess.DEVNULL)
                self.addCleanup(process.wait)
                self.addCleanup(os.killpg, process.pid, signal.SIGKILL)
                wait_until(lambda: set(task_states(process.pid).values()) == {"S"} and
                           read_text("/proc/%d/task/%d/children" % (process.pid, process.pid)),
                           "it to wait")
                for _ in range(TRIES):
                    hang = self.run_tool("hang", FOR, "--json", process.pid, status=(0, 1, 3, 4))
                    if (hang.returncode == 3) == bool(count):
                        break
                data = json.loads(hang.stdout)
                self.assertEqual([len(cycle["members"]) for cycle in data["cycles"]], [count] * bool(count),
                                 data)
                self.assertEqual(hang.returncode == 3, bool(count), data)

    def begin(self, kind):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        target = self.start("processes", kind, directory, settle=False)
        child = target.fact("child-pid")
        wait_until(lambda: blocked(target.pid) and blocked(child), "both to wait")
        return target.pid, child, directory

    def snap_waiting(self, pid, mode):
        """On a busy machine it takes several attempts until threads are back in their calls."""
        for _ in range(TRIES):
            snapshot = self.snap(pid, mode=mode, status=(0, 1))
            if snapshot.data["cycles"] or "perhaps others" in str(snapshot.threads):
                break
        return snapshot

    def test_own_descriptors(self):
        """What stacksnap has inherited from its caller is not shown, unless nobody else has
        it."""
        read_end, write_end = os.pipe()
        self.addCleanup(os.close, write_end)
        reader = subprocess.Popen(["cat"], stdin=read_end, stdout=subprocess.DEVNULL)
        self.addCleanup(reader.wait)
        self.addCleanup(reader.kill)
        os.close(read_end)
        wait_until(lambda: blocked(reader.pid), "cat to read")
        result = self.run_tool("-f", "json", reader.pid, pass_fds=(write_end,))
        wait = json.loads(result.stdout)["threads"][0]["wait"]
        self.assertEqual([peer["pid"] for peer in wait["descriptor"]["peers"]], [os.getpid()],
                         wait)

    def cycle(self, kind, text):
        """Each of two processes waits for the other: seen from both, in each mode."""
        first, second, directory = self.begin(kind)
        for pid in (first, second):
            for mode in ("stop", "auto", "no-stop"):
                with self.subTest(kind=kind, mode=mode, child=pid == second):
                    snapshot = self.snap_waiting(pid, mode)
                    self.assertEqual(snapshot.data["deadlocks"], [])
                    if "perhaps others" in str(snapshot.threads):
                        # there are too many processes to search all of them in time
                        self.assertEqual(snapshot.data["cycles"], [])
                        continue
                    self.assertEqual(len(snapshot.data["cycles"]), 1, snapshot.data)
                    members = snapshot.data["cycles"][0]["members"]
                    self.assertEqual(sorted(member["pid"] for member in members),
                                     sorted((first, second)))
                    for member in members:
                        other = first if member["pid"] == second else second
                        self.assertEqual(member["tid"], member["pid"])
                        self.assertRegex(member["wait"], text % (
                            {"other": other, "directory": re.escape(directory)}))
        return first, second

    def test_cycles(self):
        held = r", held by %(other)d \(processes(-b)?\)( of another process)?"
        for kind, text in (
                ("flock", r"^an exclusive lock on fd \d+, %(directory)s/[ab]" + held + "$"),
                ("mutex", r"^mutex at 0x[0-9a-f]+" + held + "$"),
                ("robust", r"^robust mutex at 0x[0-9a-f]+" + held + "$"),
                ("rwlock", r"^write access to rwlock at 0x[0-9a-f]+" +
                 held.replace("held by", "held for writing by") + "$"),
                ("pipes", r"^input from fd \d+, pipe, written by %(other)d ")):
            self.cycle(kind, text)

    def test_text(self):
        first, second, _ = self.begin("mutex")
        text = self.run_tool(first).stdout.decode()
        self.assertRegex(text, r"\n\nDEADLOCK: 2 threads of several processes wait for "
                         r"each other in a cycle:\n"
                         r"  %d \(processes\) waits for mutex at 0x[0-9a-f]+, held by %d "
                         r"\(processes-b\) of another process\n    in take at [^\n]*\n"
                         r"    called from wait_next at [^\n]*\n    holds mutex at 0x[0-9a-f]+\n"
                         r"  %d \(processes-b\) waits for mutex at 0x[0-9a-f]+, held by %d "
                         % (first, second, second, first))
        self.assertRegex(text, r"\n    %d \(processes-b\) waits for mutex at " % second)
        graph = self.run_tool("-f", "dot", first).stdout.decode()
        for one, other in ((first, second), (second, first)):
            self.assertRegex(graph, r'\n\tt%d -> t%d \[label="mutex at 0x[^\n]*color=red\];\n'
                             % (one, other))
            self.assertEqual(graph.count("\n\tt%d [label=" % one), 1)

    def test_hang(self):
        first, _, _ = self.begin("flock")
        result = self.run_tool("hang", FOR, "--json", first, status=(3,))
        report = json.loads(result.stdout)
        self.assertEqual(report["verdict"], "deadlock")
        self.assertEqual(len(report["cycles"]), 1)
        self.assertTrue(report["threads"][0]["stuck"])
        self.assert_free(first)

    @unittest.skipUnless(os.geteuid() == 0, "only root makes a pid namespace")
    def test_of_another_pid_namespace(self):
        """The thread waits for a lock whose owner has tid 1, has that tid itself, and is not
        the owner."""
        target = self.start("processes", "foreign", settle=False)
        pid = target.fact("child-pid")
        wait_until(lambda: blocked(pid), "it to wait")
        for mode in ("stop", "no-stop"):
            snapshot = self.snap(pid, mode=mode)
            self.assertEqual([thread["inner_tid"] for thread in snapshot.threads], [1])
            self.assertEqual((snapshot.data["deadlocks"], snapshot.data["cycles"]), ([], []))
            wait = snapshot.threads[0]["wait"]
            self.assertIsNone(wait["owner_tid"])
            self.assertEqual((wait["owner_unknown"], wait["owner_unknown_tid"]),
                             ("ambiguous-tid", 1))

    def test_several_threads(self):
        """A file lock belongs to a process: another thread of it may release it."""
        first, second, _ = self.begin("several")
        for pid in (first, second):
            for _ in range(TRIES):  # until it is back in /proc/locks
                snapshot = self.snap(pid, mode="stop")
                self.assertEqual(snapshot.data["cycles"], [])
                text = snapshot.thread(pid)["wait"]["text"]
                if "held by " in text:
                    break
            self.assertRegex(text, "held by ")
        # with one selected thread it is not known what the others do
        snapshot = self.snap(first, "-t", first, mode="stop")
        self.assertEqual((len(snapshot.threads), snapshot.data["cycles"]), (1, []))
        self.run_tool("hang", FOR, first, status=(4,))

    def test_other_process_is_not_disturbed(self):
        """The snapshot does not wake up the other process."""
        first, second, _ = self.begin("mutex")

        def runs():
            return read_text("/proc/%d/schedstat" % second).split()[2]

        before = runs()
        snapshot = self.snap_waiting(first, "stop")
        self.assertEqual(len(snapshot.data["cycles"]), 1)
        self.assertEqual(runs(), before)

    def test_chain(self):
        """wants-lock waits for holds-lock, which waits for a pipe, whose writer waits for a
        file lock, whose holder waits for nobody."""
        first, second, directory = self.begin("chain")
        for mode in ("stop", "no-stop"):
            for _ in range(TRIES):  # until it is back in its read
                snapshot = self.snap(first, mode=mode, status=(0, 1))
                if "written by" in snapshot.thread("processes")["wait"]["text"]:
                    break
            holder = snapshot.thread("holds-lock")
            self.assertEqual(snapshot.data["cycles"], [])
            self.assertEqual(snapshot.thread("wants-lock")["wait"]["owner_tid"],
                             holder["tid"])
            self.assertEqual(snapshot.data["blockers"], [
                {"tid": holder["tid"], "waiting": 1, "locks": 1}])
            self.assertEqual([(hop["pid"], hop["name"], hop["wait_kind"])
                              for hop in holder["wait"]["chain"]],
                             [(second, "processes-b", "file-lock"),
                              (holder["wait"]["chain"][-1]["pid"], "processes-c", "signal")])
            self.assertRegex(
                holder["wait"]["beyond"],
                r"^%d \(processes-b\) waits for an exclusive lock on fd \d+, %s/b, held by "
                r"(\d+) \(processes-c\); \1 \(processes-c\) waits for a signal$"
                % (second, re.escape(directory)))
            # its stdin is a pipe of this test
            self.assertRegex(snapshot.thread("processes")["wait"]["text"],
                             ", written by %d " % os.getpid())
        text = self.run_tool(first).stdout.decode()
        self.assertRegex(text, r"\n1 thread waits, through 1 lock, for thread \d+ "
                         r"\(holds-lock\), which waits for input from fd \d+, pipe, written "
                         r"by %d \(processes-b\)(?:, perhaps others)?; %d \(processes-b\) waits for an exclusive "
                         r"lock on " % (second, second))

    def test_chain_in_the_graph(self):
        first, second, _ = self.begin("chain")
        graph = self.run_tool("-f", "dot", first).stdout.decode()
        self.assertRegex(graph, r'\\nholds-lock\\ninput from fd [^"]*\\n%d \(processes-b\) waits '
                         r'for an exclusive lock' % second)

    def pipeline(self, *words):
        """Starts sleep | cat; returns the pids of both."""
        shell = self.start_command(["sh", "-c", 'echo ready; "$@" 1000 | cat', "sh", *words])
        path = "/proc/%d/task/%d/children" % (shell.pid, shell.pid)
        wait_until(lambda: len(read_text(path).split()) == 2, "both to begin")
        pids = [int(word) for word in read_text(path).split()]
        for pid in pids:
            self.addCleanup(kill, pid)
        for pid, name in zip(pids, ("sleep", "cat")):
            wait_until(lambda: read_text("/proc/%d/comm" % pid) == name + "\n", name)
        wait_until(lambda: blocked(pids[1]), "cat to wait")
        return pids

    def cat(self, script, *words):
        """Returns the wait of the cat that this shell executes, and the children of the
        shell."""
        shell = self.start_command([*words, "sh", "-c", "echo ready; " + script])
        wait_until(lambda: read_text("/proc/%d/comm" % shell.pid) == "cat\n" and
                   blocked(shell.pid), "cat to wait")
        path = "/proc/%d/task/%d/children" % (shell.pid, shell.pid)
        children = [int(word) for word in read_text(path).split()]
        for pid in children:
            self.addCleanup(kill, pid)
            # The kernel lets cat read as soon as the other end is being opened.
            wait_until(lambda: read_text("/proc/%d/comm" % pid) == "sleep\n", "sleep to begin")
        return self.snap(shell.pid, mode="stop").threads[0]["wait"]["text"], children

    def test_fifo_with_two_names(self):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        one = os.path.join(directory, "o" * 200, "one" * 60)
        other = os.path.join(directory, "two")
        os.mkdir(os.path.dirname(one))
        os.mkfifo(one)
        os.link(one, other)
        text, (writer,) = self.cat("sleep 1000 > %s & exec cat %s" % (other, one))
        self.assertRegex(text, r"^input from fd 3, pipe %s, written by %d \(sleep\)"
                         "(?:, perhaps others)?$" % (one, writer))

    @unittest.skipUnless(os.geteuid() == 0 and os.cpu_count() > 1, "needs root and two CPUs")
    def test_fifo_that_is_being_opened(self):
        """The call that opens the other end has not returned: no process has a descriptor of it, but
        one has it open."""
        cpus = os.sched_getaffinity(0)
        path = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "pipe")
        os.mkfifo(path)
        writer = self.start_command([sys.executable, "-c", LATE_WRITER, path, str(max(cpus))])
        wait_until(lambda: read_text("/proc/%d/syscall" % writer.pid).startswith("257 "), "it to open")
        self.start_command([sys.executable, "-c", HOG, str(max(cpus))])
        self.addCleanup(os.sched_setaffinity, 0, cpus)
        os.sched_setaffinity(0, cpus - {max(cpus)})  # the tool's, too
        reader = subprocess.Popen(["cat", path], stdout=subprocess.DEVNULL)
        self.addCleanup(reader.wait)
        self.addCleanup(reader.kill)
        wait_until(lambda: blocked(reader.pid), "cat to read")
        text = self.snap(reader.pid, mode="no-stop").threads[0]["wait"]["text"]
        self.assertRegex(text, "^input from fd 3, pipe %s(?:, written by %d .*)?$" % (path, writer.pid))

    def test_fifo_of_another_mount_namespace(self):
        """There the same path is another FIFO."""
        self.need_namespaces()
        directory = self.enterContext(tempfile.TemporaryDirectory())
        path = os.path.join(directory, "pipe")
        os.mkfifo(path)
        other = os.open(path, os.O_RDWR)
        self.addCleanup(os.close, other)
        text, (writer,) = self.cat(
            "mount -t tmpfs none %s && mkfifo %s && { sleep 1000 > %s & exec cat %s; }"
            % (directory, path, path, path), "unshare", "-m")
        # in a chroot the path is the one outside
        self.assertRegex(text, r"^input from fd 3, pipe \S*%s, written by %d \(sleep\)(?:, perhaps "
                         "others)?$" % (path, writer))

    def test_too_many_descriptors(self):
        """The output says that no process has the other end open only if all were searched."""
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        count = min(most - 100, 30000)
        program = ("import os, resource\n"
                   "resource.setrlimit(resource.RLIMIT_NOFILE, (%d, %d))\n"
                   "null = os.open('/dev/null', os.O_RDONLY)\n"
                   "for _ in range(%d): os.dup(null)\n"
                   "ends = os.pipe()\n"
                   "print('ready', flush=True)\n"
                   "os.read(ends[0], 1)\n" % (most, most, count))
        target = self.start_command([sys.executable, "-c", program])
        wait_until(lambda: blocked(target.pid), "it to wait")
        thread, = self.snap(target.pid, mode="stop").threads
        self.assertRegex(thread["wait"]["text"], r"^input from fd \d+, pipe(?:, written by the same "
                         r"process(?:, perhaps others)?)?$")

    def test_both_ends_and_others(self):
        """The process itself has the other end, and so has its child."""
        program = ("import os, signal\n"
                   "ends = os.pipe()\n"
                   "child = os.fork()\n"
                   "if child == 0: signal.pause()\n"
                   "print('child-pid', child)\n"
                   "print('ready', flush=True)\n"
                   "os.read(ends[0], 1)\n")
        target = self.start_command([sys.executable, "-c", program])
        child = target.fact("child-pid")
        self.addCleanup(kill, child)
        wait_until(lambda: blocked(target.pid), "it to wait")
        thread, = self.snap(target.pid, mode="stop").threads
        self.assertRegex(thread["wait"]["text"], r", pipe, written by the same process, "
                         r"(%d \(python3?[.\d]*\)|perhaps others)" % child)

    def test_lock_of_a_shell(self):
        """flock(1) took the lock and has ended; the holder is the process that has the file
        open."""
        directory = self.enterContext(tempfile.TemporaryDirectory())
        path = os.path.join(directory, "lock")
        if os.geteuid() == 0 and makes_namespaces():  # a lock on another file with the same path, in a namespace
            self.start_command(
                ["unshare", "-m", "sh", "-c", "mount -t tmpfs none %s && exec 9>%s && flock 9 && "
                 "echo ready && exec sleep 1000" % (directory, path)])
        shell = self.start_command(["sh", "-c", "exec 9>%s; flock 9; echo ready; exec sleep 1000"
                                    % path])
        waiter = subprocess.Popen(["flock", path, "true"])
        self.addCleanup(waiter.wait)
        self.addCleanup(waiter.kill)
        wait_until(lambda: blocked(waiter.pid), "it to wait")
        for mode in ("stop", "no-stop"):
            wait = self.snap(waiter.pid, mode=mode).threads[0]["wait"]
            self.assertRegex(wait["text"], r"held by %d \((sh|sleep)\)$" % shell.pid)
            self.assertEqual(wait["owner_pid"], shell.pid)

    def test_only_child(self):
        shell = self.start_command(["sh", "-c", "echo ready; sleep 1000; :"])
        path = "/proc/%d/task/%d/children" % (shell.pid, shell.pid)
        wait_until(lambda: read_text(path), "the child")
        child = int(read_text(path).split()[0])
        self.addCleanup(kill, child)
        wait_until(lambda: read_text("/proc/%d/comm" % child) == "sleep\n" and
                   read_text("/proc/%d/syscall" % child)[:1].isdigit(), "it to sleep")
        wait = self.snap(shell.pid, mode="stop").threads[0]["wait"]
        self.assertEqual(wait["text"], "any child process: %d (sleep, sleeping)" % child)
        self.assertEqual(wait["beyond"], "%d (sleep) waits for 16 min to pass" % child)

    def hang(self, pid, verdict, *patterns):
        """The verdict and the exit status of an observation, and what its text must have."""
        status = {"deadlock": 3, "stuck": 4, "blocked": 4}.get(verdict, 0)
        result = self.run_tool("hang", "--for=500ms", pid, status=(0, 3, 4))
        text = result.stdout.decode()
        self.assertRegex(text, r"^\S+, pid %d: %s\b" % (pid, verdict))
        self.assertEqual(result.returncode, status, text)
        for pattern in patterns:
            self.assertRegex(text, pattern)

    def python(self, source):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        process = self.start_command(
            [sys.executable, "-c", "import os, signal, socket, subprocess, sys, time\n"
             "def ready(): print('ready', flush=True)\nos.chdir(%r)\n%s" % (directory, source)])
        time.sleep(0.3)
        return process.pid

    def test_any_child(self):
        """A shell waits for any of two children, which wait for each other's children."""
        directory = self.enterContext(tempfile.TemporaryDirectory())
        shell = subprocess.Popen(
            ["sh", "-c", "flock a sh -c 'sleep 0.3; flock b true' & "
             "flock b sh -c 'sleep 0.3; flock a true' & wait"], cwd=directory, start_new_session=True)
        self.addCleanup(shell.wait)
        self.addCleanup(os.killpg, shell.pid, signal.SIGKILL)

        def waiting():
            names = [read_text("/proc/%s/comm" % pid) for pid in self.descendants(shell.pid)]
            return names.count("flock\n") == 4
        wait_until(waiting, "the locks")
        for _ in range(TRIES):
            result = self.run_tool("hang", "--for=500ms", shell.pid, status=(0, 4))
            if result.returncode == 4:
                break
        self.assertRegex(result.stdout.decode(), r"pid \d+: stuck\n(?s:.*)DEADLOCK: \d threads of several")

    def descendants(self, pid):
        found = []
        for path in glob.glob("/proc/%d/task/*/children" % pid):
            for child in read_text(path).split():
                found += [child] + self.descendants(int(child))
        return found

    def test_stopped_child(self):
        pid = self.python("p = subprocess.Popen(['sleep', '1000']); os.kill(p.pid, signal.SIGSTOP); "
                          "ready(); p.wait()")
        child = int(self.descendants(pid)[0])
        self.addCleanup(kill, child)
        self.hang(pid, "stuck", "SIGCONT")
        os.kill(child, signal.SIGCONT)
        self.hang(pid, "idle")

    def test_fifo_without_another_end(self):
        """Who writes is stuck; who reads may wait for work."""
        for flags, verdict, other in (("O_WRONLY", "stuck", "reading"), ("O_RDONLY", "idle", "writing")):
            with self.subTest(flags):
                pid = self.python("os.mkfifo('f'); ready(); os.open('f', os.%s)" % flags)
                self.hang(pid, verdict, "another process to open FIFO f for " + other)

    def test_full_backlog(self):
        pid = self.python("l = socket.socket(socket.AF_UNIX); l.bind('s'); l.listen(0)\n"
                          "p = os.fork()\n"
                          "if not p: signal.pause()\n"
                          "l.close(); a, b = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)\n"
                          "a.connect('s'); ready(); b.connect('s')")
        child = int(self.descendants(pid)[0])
        self.addCleanup(kill, child)
        # The search among all processes has a limit of CPU time.
        pattern = re.compile(r"%d \(\S+\) to accept fd \d, UNIX socket s\b" % child)
        wait_until(lambda: pattern.search(self.run_tool("-a", pid).stdout.decode()), "the listener")
        self.hang(pid, "stuck", r"waits for .*to accept fd \d, UNIX socket s\b")

    def test_full_tcp_backlog(self):
        """Also that of a socket for all addresses, of IPv6 and IPv4. It is no alarm: the kernel gives up after minutes."""
        for family, address in (("AF_INET", "127.0.0.1"), ("AF_INET", "0.0.0.0"), ("AF_INET6", "::")):
            with self.subTest(address):
                pid = self.python("l = socket.socket(socket.%s); l.bind((%r, 0)); l.listen(0)\n"
                                  "to = ('127.0.0.1', l.getsockname()[1])\n"
                                  "p = os.fork()\n"
                                  "if not p: signal.pause()\n"
                                  "l.close(); a, b = socket.socket(), socket.socket()\n"
                                  "a.connect(to); ready(); b.connect(to)" % (family, address))
                child = int(self.descendants(pid)[0])
                self.addCleanup(kill, child)
                pattern = re.compile(r"waits for %d \(\S+\) to accept fd \d, TCP connection" % child)
                wait_until(lambda: pattern.search(self.run_tool("-a", pid).stdout.decode()), "the listener")
                self.hang(pid, "idle", pattern.pattern)

    def test_mixed_sockets(self):
        """Each is described, also behind a UNIX socket."""
        pid = self.python("import select\n"
                          "l = socket.create_server(('127.0.0.1', 0))\n"
                          "def connect(): return socket.create_connection(l.getsockname())\n"
                          "all = [l, connect(), *socket.socketpair(), connect(), connect(), connect()]\n"
                          "e = select.epoll()\n"
                          "for s in all[:3] + all[4:]: e.register(s, select.EPOLLIN if s is not l else 0)\n"
                          "ready(); e.poll()")
        text = self.snap(pid).threads[0]["wait"]["text"]
        self.assertEqual(text.count("TCP connection"), 4, text)

    def test_semaphore(self):
        """Who changed it last probably has it."""
        pid = self.python("import ctypes, struct\n"
                          "libc = ctypes.CDLL(None)\n"
                          "s = libc.semget(0, 1, 0o600)\n"
                          "def change(n): libc.semop(s, struct.pack('Hhh', 0, n, 0), 1)\n"
                          "change(1)\n"
                          "if not os.fork(): change(-1); ready(); signal.pause()\n"
                          "time.sleep(0.2); change(-1)")
        child = int(self.descendants(pid)[0])
        self.addCleanup(kill, child)
        wait_until(lambda: read_text("/proc/%d/syscall" % pid).startswith(("65 ", "220 ")), "it to wait")
        wait = self.snap(pid).threads[0]["wait"]
        self.addCleanup(ctypes.CDLL(None).semctl, wait["ipc_id"], 0, 0)  # IPC_RMID
        self.assertEqual(wait["operator_pid"], child)
        self.assertIn("probably held by %d " % child, wait["text"])

    def test_database(self):
        """SQLite tries again and again; the kernel's table of locks has who has locked the database."""
        begin = "import sqlite3; d = sqlite3.connect('db', timeout=1000, isolation_level=None); "
        pid = self.python(begin + "d.execute('create table t (i)')\n"
                          "if not os.fork():\n    " + begin + "d.execute('begin immediate'); ready(); signal.pause()\n"
                          "time.sleep(0.3); d.execute('insert into t values (1)')")
        child = int(self.descendants(pid)[0])
        self.addCleanup(kill, child)
        time.sleep(1)
        result = self.run_tool("hang", "--for=1s", pid, status=(0, 4))
        if b"libsqlite3" not in self.run_tool("modules", pid).stdout:
            self.skipTest("SQLite is no library")
        self.assertRegex(result.stdout.decode(), r"pid \d+: blocked\n(?s:.*)SQLite(?s:.*)held by (process )?%d " % child)

    def test_own_pipe(self):
        """Nobody else can empty it; but a signal handler can."""
        pid = self.python("r, w = os.pipe(); ready(); os.write(w, bytes(100000))")
        self.hang(pid, "stuck")
        pid = self.python("signal.signal(signal.SIGUSR1, print); r, w = os.pipe(); ready(); os.read(r, 1)")
        self.hang(pid, "idle")

    def test_watched_own_pipe(self):
        """As test_own_pipe; but others may be watched, too, or others may have the pipe."""
        watch = "ready(); select.select([r], [], [])"
        for source, verdict in ((watch, "stuck"),
                                ("p = select.poll(); p.register(r, select.POLLIN); ready(); p.poll()", "stuck"),
                                ("ready(); select.select([r], [], [], 1000)", "idle"),
                                ("signal.signal(signal.SIGUSR1, print); " + watch, "idle"),
                                ("s, t = socket.socketpair(); ready(); select.select([r, s], [], [])", "idle"),
                                ("p = subprocess.Popen(['sleep', '1000'], pass_fds=[w]); " + watch, "idle")):
            with self.subTest(source):
                pid = self.python("import select; r, w = os.pipe(); " + source)
                for child in self.descendants(pid):
                    self.addCleanup(kill, int(child))
                self.hang(pid, verdict)

    def test_other_users(self):
        """The waits of processes of other users are not shown, not even to root."""
        sleep, cat = self.pipeline("sleep")
        wait = self.snap(cat, mode="stop").threads[0]["wait"]
        self.assertEqual(wait["beyond"], "%d (sleep) waits for 16 min to pass" % sleep)
        if os.geteuid() != 0:
            self.skipTest("only root can start a process of another user")
        sleep, cat = self.pipeline("setpriv", "--reuid=65534", "--clear-groups", "sleep")
        wait = self.snap(cat, mode="stop").threads[0]["wait"]
        self.assertRegex(wait["text"], ", pipe, written by %d " % sleep)
        self.assertIsNone(wait["beyond"])


if __name__ == "__main__":
    main()
