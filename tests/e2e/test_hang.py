"""stacksnap hang: verdicts on processes that are stuck, busy, idle or moving, and --watch."""
# ctest: long-with-sanitizers

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from harness import (EndToEnd, STACKSNAP, TARGETS, UnopenedFifo, all_sleep,
                     libc_has_debug_file, main, task_states, wait_until)

FOR = "--for=300ms"
SOURCE = os.environ.get("SOURCE", ".")
EX_USAGE = 64


def switches(pid):
    """How often the threads of a process were scheduled, in total."""
    total = 0
    for tid in task_states(pid):
        with open("/proc/%d/task/%d/schedstat" % (pid, tid)) as file:
            total += int(file.read().split()[2])
    return total


def runs(pid):
    """How often the main thread was scheduled."""
    with open("/proc/%d/schedstat" % pid) as file:
        return int(file.read().split()[2])


class Verdicts(EndToEnd):
    def judge(self, pid, verdict, *options):
        """The report as JSON; the verdict decides the exit status."""
        status = {"deadlock": 3, "stuck": 4, "blocked": 4}.get(verdict, 0)
        result = self.run_tool("hang", FOR, "--json", *options, pid, status=(status,))
        report = json.loads(result.stdout)
        self.assertEqual(report["schema"], "stacksnap-hang/1")
        process = report["process"]
        self.assertEqual((process["pid"], process["inner_pid"]), (pid, pid))
        for thread in report["threads"]:
            self.assertEqual(thread["inner_tid"], thread["tid"])
        self.assertEqual(report["verdict"], verdict)
        self.assertGreater(report["elapsed_ns"], 0)
        self.assert_free(pid)
        return report

    def thread(self, report, name):
        found = [thread for thread in report["threads"] if thread["name"] == name]
        self.assertEqual(len(found), 1, report["threads"])
        return found[0]


class Hang(Verdicts):
    def test_deadlock(self):
        target = self.start("deadlock", "normal", 2, 1)
        report = self.judge(target.pid, "deadlock")
        tids = [self.thread(report, "locker-%d" % i)["tid"] for i in range(2)]
        self.assertEqual([sorted(d["tids"]) for d in report["deadlocks"]], [sorted(tids)])
        for name in ("locker-0", "locker-1", "behind-0"):
            thread = self.thread(report, name)
            self.assertEqual((thread["stuck"], thread["movement"]), (True, "none"))
        self.assertFalse(self.thread(report, "deadlock")["stuck"])

    def test_text(self):
        target = self.start("deadlock", "normal", 2, 1)
        text = self.run_tool("hang", FOR, "-v", target.pid, status=(3,)).stdout.decode()
        self.assertRegex(text, r"^deadlock, pid \d+: deadlock\nobserved for .*, 4 threads, CPU "
                         r"time .* context switches\n\nDEADLOCK: 2 threads")
        self.assertRegex(text, r"\n3 threads stuck: .*\n  \d+ \(locker-0\)\n    waits for mutex ")
        self.assertRegex(text, r"\n1 thread idle: did not run\n  \d+ \(deadlock\)\n")

    def test_equal_threads(self):
        """Those with the same stack that wait for the same lock are one in text; JSON has all."""
        target = self.start("deadlock", "normal", 2, 12)
        text = self.run_tool("hang", FOR, target.pid, status=(3,)).stdout.decode()
        self.assertRegex(text, r"\n14 threads stuck: .*\n  12 threads: behind-\* .*\n"
                         r"    wait for mutex .*, held by \d+ \(locker-\d\) \[futex\]\n"
                         r"    in take .*\n    called from wait_behind .*\n"
                         r"  \d+ \(locker-0\)\n    waits for mutex ")
        data = json.loads(self.run_tool("hang", FOR, "-f", "json", target.pid, status=(3,)).stdout)
        self.assertEqual(sum(t["name"].startswith("behind-") for t in data["threads"]), 12, text)

    def test_no_thread_is_scheduled(self):
        target = self.start("threads", 4, 3)
        before = switches(target.pid)
        self.judge(target.pid, "idle")
        self.assertEqual(switches(target.pid), before)

    def test_time_limits_without_a_stop(self):
        """What is left of a time limit is read several times: no such thread is scheduled or interrupted."""
        target = self.start("lockwaits")
        before = switches(target.pid)
        data = json.loads(self.run_tool("hang", FOR, "--json", target.pid, status=None).stdout)
        for name in ("wants-timed", "timed-cond", "clock-cond", "timed-futex"):
            self.assertTrue(self.thread(data, name)["wait_data"]["timed"], data)
        self.assertEqual(switches(target.pid), before)

    def test_ended_time_limits_without_a_stop(self):
        """Nor is one stopped whose limit ends again and again, but for the first and the last capture of all
        threads, which stop what has run meanwhile: two to three switches. With stops there were ten."""
        threads, hangs, most = 16, 5, 6
        target = self.start("timed_waits", threads, 2)
        for _ in range(hangs):
            self.run_tool("hang", FOR, target.pid, status=None)
        waits, switched = map(int, target.finish()[1].split())
        self.assertGreater(waits, 1000)
        self.assertLess(switched - waits, threads * hangs * most)

    def test_stuck_behind_a_sleeper(self):
        """A thread that sleeps in poll holds the only mutex."""
        target = self.start("deadlock", "errorcheck", 1, 2)
        report = self.judge(target.pid, "stuck")
        self.assertEqual(report["deadlocks"], [])
        self.assertEqual(report["blockers"], [
            {"tid": self.thread(report, "locker-0")["tid"], "waiting": 2, "locks": 1}])
        self.assertTrue(self.thread(report, "behind-0")["stuck"])
        self.assertFalse(self.thread(report, "locker-0")["stuck"])

    def test_idle(self):
        """Pools in poll, sleep, condition variables and read are idle."""
        report = self.judge(self.start("threads", 3, 2).pid, "idle")
        self.assertEqual({thread["movement"] for thread in report["threads"]}, {"none"})
        self.assertFalse(report["closed"])

    def test_busy(self):
        report = self.judge(self.start("busy", 2, 3).pid, "busy", "--mode=auto")
        for i in range(2):
            thread = self.thread(report, "busy-%d" % i)
            self.assertEqual((thread["movement"], thread["stuck"]), ("busy", False))
            self.assertEqual(thread["within"], "spin")
            self.assertGreaterEqual(thread["samples"], 2)

    def test_moving(self):
        target = self.start("ring", 3)
        for _ in range(20):  # each snapshot may find it in the same place
            report = json.loads(self.run_tool("hang", FOR, "--json", target.pid).stdout)
            movements = {thread["movement"] for thread in report["threads"]}
            if "moves" in movements:
                self.assertEqual(report["verdict"], "moving")
                return
        self.fail("no thread of the ring moves: %s" % movements)

    def test_held_up(self):
        """What waits for an answer comes before what moves: it may be what holds up the program. What waits
        for a connection or the next request does not."""
        program = ("import select, socket, threading, time\n"
                   "listener = socket.create_server(('127.0.0.1', 0))\n"
                   "def ask():\n"
                   "    socket.create_connection(listener.getsockname()).recv(1)\n"
                   "def tick():\n"
                   "    while True:\n"
                   "        time.sleep(0.01)\n"
                   "        select.select([], [], [], 0.01)\n"
                   "def serve(): listener.accept()[0].recv(1)\n"
                   "for each in serve, serve, ask, tick, tick, tick, tick:\n"
                   "    threading.Thread(target=each).start()\n"
                   "print('ready', flush=True)\n"
                   "input()\n")
        target = self.start_command([sys.executable, "-c", program])
        for _ in range(20):
            text = self.run_tool("hang", FOR, target.pid).stdout.decode()
            # The last of what it did when it began may be within the first observation.
            if ": moving\n" in text and "\n2 threads waiting" in text:
                break
        self.assertRegex(text, r"(?s)^python3[^\n]*: moving\n.*\n2 threads waiting: did not run\n"
                               r".*\n  \d+ \(Thread-3 \(ask\)\)\n"
                               r"    waits for input from fd \d+, TCP connection [^\n]*\n"
                               r"    in ask at <string>:4\n.*\n\d threads? moving\n")

    def test_woken_repeatedly(self):
        """A thread that only wakes up and sleeps again is neither stuck nor moving."""
        program = ("import time\n"
                   "print('ready', flush=True)\n"
                   "while True:\n"
                   "    time.sleep(0.02)\n")
        target = self.start_command([sys.executable, "-c", program])
        for _ in range(20):  # it may be found running, and get no CPU for most of the time
            report = json.loads(self.run_tool("hang", FOR, "--json", target.pid).stdout)
            thread, = report["threads"]
            if thread["movement"] == "woken" and thread["voluntary"] > 2:
                break
        self.assertEqual((thread["movement"], thread["stuck"], report["verdict"]),
                         ("woken", False, "idle"), report)
        self.assertGreater(thread["voluntary"], 2, report)

    def test_python_busy(self):
        """The function that a Python thread never left, and not the interpreter's."""
        program = ("def step(n):\n"
                   "    return sum(i * i for i in range(n))\n"
                   "def serve():\n"
                   "    print('ready', flush=True)\n"
                   "    while True:\n"
                   "        step(1000)\n"
                   "serve()\n")
        target = self.start_command([sys.executable, "-c", program])
        reports = []

        def names_function():
            result = self.run_tool("hang", FOR, "--json", target.pid, status=None)
            reports.append(json.loads(result.stdout)["threads"][0])
            return reports[-1]["within"] in ("serve", "step") and reports[-1]["samples"] > 1
        try:
            wait_until(names_function, "the function is named")
        except AssertionError as error:
            raise AssertionError(f"{error}: {reports}") from error
        self.assert_free(target.pid)


class Pools(Verdicts):
    """A thread that holds a lock and waits for the next connection or job is idle, and so are
    those that wait for the lock to do the same."""

    def stuck(self, report):
        return sorted(thread["name"] for thread in report["threads"] if thread["stuck"])

    def test_leader_and_followers(self):
        for kind in ("accept", "epoll", "job", "datagram"):
            with self.subTest(kind):
                report = self.judge(self.start("pools", kind).pid, "idle")
                self.assertEqual(report["blockers"][0]["waiting"], 2)

    def test_without_names(self):
        """The same functions are recognised by their addresses."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "pools")
            subprocess.run(["strip", "-o", path, os.path.join(TARGETS, "pools")], check=True)
            target = self.start_command([path, "accept"])
            wait_until(lambda: set(task_states(target.pid).values()) == {"S"}, "all to sleep")
            self.judge(target.pid, "idle")

    def table(self, text):
        """A file of functions that wait, as options."""
        file = tempfile.NamedTemporaryFile("w", suffix=".waits")
        self.addCleanup(file.close)
        file.write(text)
        file.flush()
        return "--wait-functions=" + file.name

    def test_known_functions(self):
        """What functions of a program wait for can be told in a file."""
        target = self.start("pools", "job", 0)
        report = self.judge(target.pid, "idle")
        self.assertEqual(report["application_locks"], [])
        table = self.table("lock wait_for_job a job of mine\n")
        report = self.judge(target.pid, "blocked", table)
        leader = self.thread(report, "leader")
        self.assertEqual((leader["blocked"], leader["stuck"]), (True, False))
        self.assertTrue(leader["wait"].startswith("an application lock: wait_for_job, through "
                                                  "condition variable"), leader["wait"])
        self.assertEqual([leader["wait_data"][key] for key in (
            "purpose", "purpose_function", "purpose_description")],
            ["lock", "wait_for_job", "a job of mine"])
        lock, = report["application_locks"]
        self.assertEqual((lock["function"], lock["description"], lock["waiting"]),
                         ("wait_for_job", "a job of mine", 1))
        self.judge(target.pid, "blocked", table, "--no-demangle")
        text = self.run_tool(table, target.pid).stdout.decode()
        self.assertIn("\n1 thread waits for an application lock: wait_for_job (a job of mine)\n",
                      text)
        graph = self.run_tool("-f", "dot", table, target.pid).stdout.decode()
        self.assertIn('lock0 [shape=ellipse, label="wait_for_job\\na job of mine"]', graph)
        self.assertIn('waiters0 [label="1 thread"];\n\twaiters0 -> lock0;', graph)
        # an outer function that is idle outweighs the inner one; a later file the one before
        self.judge(target.pid, "idle", table, self.table("idle serve\n"))
        self.judge(target.pid, "idle", table, self.table("event wait_*\n"))

    def test_idle_functions(self):
        """A thread that waits for a lock in a function that is known to be idle is idle."""
        self.judge(self.start("pools", "answer").pid, "idle", self.table("idle wait_for_turn\n"))

    def test_bad_table(self):
        for text, message in (("lok f\n", b"line 1: unknown kind"), ("lock\n", b"missing"),
                              ("#\nlock *\n", b"line 2: this would match")):
            result = self.run_tool("hang", self.table(text), os.getpid(), status=(EX_USAGE,))
            self.assertIn(message, result.stderr)
        self.run_tool("hang", "--wait-functions=/nonexistent", os.getpid(), status=(EX_USAGE,))

    def test_config(self):
        """A file of the user counts; one that cannot be used is only warned of."""
        target = self.start("pools", "job", 0)
        with tempfile.TemporaryDirectory() as directory:
            os.mkdir(os.path.join(directory, "stacksnap"))
            path = os.path.join(directory, "stacksnap", "wait-functions")
            environment = dict(os.environ, XDG_CONFIG_HOME=directory)
            for text, status, message in (("lock wait_for_job\n", 4, b""),
                                          ("lock\n", 0, b"line 1")):
                with open(path, "w") as file:
                    file.write(text)
                result = self.run_tool("hang", FOR, target.pid, status=(status,),
                                       env=environment)
                self.assertIn(message, result.stderr)
            os.unlink(path)
            fifo = UnopenedFifo(self, path)
            result = self.run_tool("hang", FOR, target.pid, env=environment)
            self.assertTrue(fifo.was_left_alone(), result)

    def test_processes(self):
        target = self.start("pools", "processes")
        pids = [int(line.split()[1]) for line in target.lines if line.startswith("process ")]
        self.assertEqual(len(pids), 3)
        for pid in pids:
            self.judge(pid, "idle")

    def test_holder_of_another_kind(self):
        """The answer of a peer may never come; and a thread that would wake the holder waits for
        the lock itself."""
        report = self.judge(self.start("pools", "answer").pid, "stuck")
        self.assertEqual(self.stuck(report), ["follower-0", "follower-1"])
        report = self.judge(self.start("pools", "inverted").pid, "stuck")
        self.assertEqual(self.stuck(report), ["follower-0"])

    def test_rust(self):
        """A Rust mutex does not record its owner."""
        if not shutil.which("rustc"):
            self.skipTest("rustc is not installed")
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "rustpool")
            subprocess.run(["rustc", "-O", "-g", os.path.join(SOURCE, "targets", "rustpool.rs"),
                            "-o", path], check=True, stdout=subprocess.DEVNULL)
            target = self.start_command([path])
            report = self.judge(target.pid, "idle")
            kinds = [thread["wait_kind"] for thread in report["threads"]]
            self.assertEqual(kinds.count("mutex"), 3, kinds)
            self.check_folded(target.pid)

    def check_folded(self, pid):
        """Of the library's frames the text has the function that the program called, and no others."""
        text = self.run_tool("-a", pid).stdout.decode()
        self.assertRegex(text, r"#0 +\[\d+ runtime frames\]\n +#\d+ +std::sync::[^\n]*Mutex[^\n]*lock[^\n]*\n"
                               r" +#\d+ +rustpool::worker[^\n]*\n")
        self.assertNotIn("std::panicking", text)
        self.assertNotIn("start_thread", text)
        text = self.run_tool("-a", "--native", pid).stdout.decode()
        self.assertIn("std::panicking", text)
        self.assertIn("start_thread", text)
        self.assertNotIn("runtime frames", text)

    def test_rust_locks(self):
        """Two threads in a deadlock, which the main thread, waiting for connections, did not cause."""
        if not shutil.which("rustc"):
            self.skipTest("rustc is not installed")
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "rustdeadlock")
            subprocess.run(["rustc", "-O", os.path.join(SOURCE, "targets", "rustdeadlock.rs"),
                            "-o", path], check=True, stdout=subprocess.DEVNULL)
            target = self.start_command([path])
            wait_until(lambda: set(task_states(target.pid).values()) == {"S"}, "all to sleep")
            report = self.judge(target.pid, "stuck")
            self.assertEqual([thread["stuck"] for thread in report["threads"]],
                             [False, True, True], report)

    def test_python_rlock(self):
        """An RLock names its owner; the main thread waits for connections, or runs while our stops are
        no activity of the others."""
        program = ("import socket, threading\n"
                   "a, b = threading.RLock(), threading.RLock()\n"
                   "both = threading.Barrier(3)\n"
                   "def take(x, y):\n"
                   "    with x:\n"
                   "        both.wait()\n"
                   "        y.acquire()\n"
                   "[threading.Thread(target=take, args=p).start() for p in ((a, b), (b, a))]\n"
                   "server = socket.create_server(('127.0.0.1', 0))\n"
                   "both.wait()\n"
                   "print('ready', flush=True)\n"
                   "%s\n")
        for main, last, options in (("server.accept()", "S", ()),
                                    ("while True: sum(range(1000))", "R", ["--mode=stop"])):
            target = self.start_command([sys.executable, "-c", program % main])
            wait_until(lambda: sorted(task_states(target.pid).values()) == sorted([last, "S", "S"]),
                       "the others to sleep")
            report = None

            def is_deadlock():
                # A thread that was stopped has to get a CPU before it waits again.
                nonlocal report
                report = json.loads(self.run_tool("hang", FOR, "--json", *options, target.pid,
                                                  status=(0, 3, 4)).stdout)
                return (report["verdict"] == "deadlock" and target.pid ==
                        sum(thread["tid"] for thread in report["threads"] if not thread["stuck"]))
            try:
                wait_until(is_deadlock, "a deadlock")
            except AssertionError as error:
                raise AssertionError("%s: %s" % (error, report)) from error
            target.kill()

    def test_handled_signal(self):
        """A program that waits for a signal which it handles is idle."""
        program = ("import signal, threading\n"
                   "done = threading.Event()\n"
                   "%s"
                   "print('ready', flush=True)\n"
                   "done.wait()\n")
        handler = "signal.signal(signal.SIGTERM, lambda *_: done.set())\n"
        for words, verdict in ((handler, "idle"), ("", "stuck")):
            target = self.start_command([sys.executable, "-c", program % words])
            wait_until(lambda: task_states(target.pid)[target.pid] == "S", "it to wait")
            report = self.judge(target.pid, verdict)
            self.assertEqual(report["closed"], verdict == "stuck")
            self.assertEqual(signal.SIGTERM in report["process"]["handled_signals"],
                             verdict == "idle")


class Handlers(Verdicts):
    def test_lock_below_a_handler(self):
        """The frames that a signal interrupted show that the thread itself holds the lock."""
        if not libc_has_debug_file():
            self.skipTest("the libc has no debug file: install libc6-dbg")
        target = self.start("handler_lock")
        report = self.judge(target.pid, "deadlock")
        victim = self.thread(report, "victim")
        self.assertEqual([d["tids"] for d in report["deadlocks"]], [[victim["tid"]]])
        wait = victim["wait_data"]
        self.assertEqual((wait["lock"], wait["owner_tid"], wait["self_owned"]),
                         ("libc", victim["tid"], True))
        text = self.run_tool("hang", FOR, target.pid, status=(3,)).stdout.decode()
        self.assertIn("\nDEADLOCK: a thread waits for a lock that it holds:\n", text)


class Forks(Verdicts):
    def test_lock_of_the_parent(self):
        """fork() copies a lock, but not the thread that holds it."""
        target = self.start("forked_lock")
        child = target.fact("child")
        wait = self.judge(child, "stuck")["threads"][0]["wait_data"]
        holder, = [tid for tid in task_states(target.pid) if tid != target.pid]
        self.assertEqual((wait["owner_unknown"], wait["owner_unknown_tid"],
                          wait["owner_unknown_pid"], wait["owner_tid"]),
                         ("in-parent", holder, target.pid, None))
        self.assertIn("owner unknown: thread %d, which took it, belongs to the parent process, and "
                      "held it at the fork (stacksnap %d)" % (holder, target.pid), wait["text"])


class Watch(EndToEnd):
    def watch(self, *arguments):
        tool = subprocess.Popen([STACKSNAP, "hang", "--for=50ms", "--watch", "--interval=10ms",
                                 *map(str, arguments)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(tool.stdout.close)
        self.addCleanup(tool.stderr.close)
        self.addCleanup(tool.wait)
        self.addCleanup(tool.kill)
        return tool

    def lines(self, path):
        if not os.path.exists(path):
            return []
        with open(path) as file:
            return file.read().splitlines()

    def test_command_runs_once_for_each_hang(self):
        with tempfile.TemporaryDirectory() as directory:
            log = os.path.join(directory, "log")
            pid_file = os.path.join(directory, "pid")
            tool = self.watch("--pid-file=" + pid_file, "--exec=echo $STACKSNAP_VERDICT "
                              "$STACKSNAP_PID >> " + log)
            for expected in (1, 2):  # the service is started a second time
                target = self.start("deadlock", "normal", 2, 0)
                with open(pid_file, "w") as file:
                    file.write("%d\n" % target.pid)
                wait_until(lambda: len(self.lines(log)) == expected, "the command to run")
                self.assertEqual(self.lines(log)[-1], "deadlock %d" % target.pid)
                before = runs(tool.pid)
                wait_until(lambda: runs(tool.pid) > before + 50, "it to poll a few more times")
                self.assertEqual(len(self.lines(log)), expected)
                target.kill()

    def test_ends_with_the_process(self):
        target = self.start("deadlock", "normal", 2, 0)
        with tempfile.TemporaryDirectory() as directory:
            log = os.path.join(directory, "log")
            tool = self.watch("--exec=echo >> " + log, target.pid)
            wait_until(lambda: self.lines(log), "the command to run")
            target.kill()
            output, _ = tool.communicate(timeout=60)
        self.assertEqual(tool.returncode, 3)
        self.assertEqual(output.count(b"DEADLOCK: 2 threads"), 1)

    def test_wrong_usage(self):
        pid = os.getpid()
        for words in ((), (pid, "--watch", "--pid-file=x"), (pid, "--watch", pid),
                      (pid, "--cgroup=a"), (pid, "--at=1970-01-02 00:00"), (pid, "--at=x"),
                      (pid, "--for=0"),
                      (pid, "--for=soon"), (pid, "-f", "gdb"), (pid, "-t", "1"),
                      (pid, "--no-waits"),
                      (pid, "--interval=")):
            with self.subTest(words=words):
                self.run_tool("hang", *words, status=(EX_USAGE,))
        self.run_tool("hang", "--pid-file=/nonexistent/pid", status=(2,))


if __name__ == "__main__":
    main()
