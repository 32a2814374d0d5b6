"""Targets that cannot be captured, or only in part: the messages, the exit status, and the
state of the target afterwards, which must not change."""
# ctest: long-with-sanitizers

import json
import os
import subprocess
import tempfile
import unittest

from harness import (EndToEnd, LIMIT_S, MAIN_STACK, MODES, Named, Snapshot, STACKSNAP, TARGETS,
                     THREAD_END, canonical, for_everyone, main, read_text, status_field,
                     task_states, wait_until)

BLOCKED = [Named("poll"), "target_block"]
THREADS = os.path.join(TARGETS, "threads")
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
          "--inh-caps=-all", "--bounding-set=-all"]
UNCAPABLE = ["setpriv", "--inh-caps=-all", "--bounding-set=-sys_ptrace"]


def kernel_thread():
    """Finds a kernel thread by its flag PF_KTHREAD. Containers have none."""
    for name in sorted(filter(str.isdigit, os.listdir("/proc")), key=int):
        text = read_text("/proc/%s/stat" % name)
        if text and int(text[text.rindex(")") + 2:].split()[6]) & 0x00200000:
            return int(name)
    return None


class Refused(EndToEnd):
    def listed(self, pid, pattern, prefix):
        """Prints the cause, names and states of the threads, but no stacks; exit status 2."""
        for mode in MODES + ("no-stop", "auto"):
            with self.subTest(mode=mode):
                result = subprocess.run(
                    list(prefix) + [STACKSNAP, "-f", "json", "--mode=" + mode, str(pid)],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, timeout=LIMIT_S)
                snapshot = Snapshot(result)
                self.assertEqual(snapshot.status, 2, snapshot.stderr)
                self.assertRegex(snapshot.stderr.splitlines()[0], pattern)
                self.assertIn("hint: ", snapshot.stderr.splitlines()[1])
                self.assertEqual(snapshot.data["capture"]["threads_stopped"], 0)
                self.assertEqual({t["tid"]: t["state"] for t in snapshot.threads},
                                 task_states(pid))
                for thread in snapshot.threads:
                    self.assertEqual((thread["frames"], thread["end"]), ([], "denied"))
                    self.assertEqual(thread["name"], read_text(
                        "/proc/%d/task/%d/comm" % (pid, thread["tid"])).rstrip("\n"))

    def refused(self, pid, pattern, words=(), prefix=()):
        """Prints nothing on stdout and the cause in the first line of stderr; exit status 2."""
        for mode in MODES:
            with self.subTest(mode=mode):
                result = subprocess.run(
                    list(prefix) + [STACKSNAP, "--mode=" + mode] + list(words) + [str(pid)],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, timeout=LIMIT_S)
                text = result.stderr.decode()
                self.assertEqual((result.returncode, result.stdout), (2, b""), text)
                self.assertRegex(text.splitlines()[0], pattern)

    def test_no_such_process(self):
        child = subprocess.Popen(["true"])
        child.wait(LIMIT_S)
        self.refused(child.pid, r"no process %d" % child.pid)

    def test_kernel_thread(self):
        pid = kernel_thread()
        if pid is None:
            self.skipTest("no kernel thread is visible from this pid namespace")
        self.refused(pid, "kernel thread")

    def test_itself(self):
        """The pid stays the same when the shell calls exec."""
        for mode in MODES:
            with self.subTest(mode=mode):
                result = subprocess.run(
                    ["sh", "-c", 'exec "$0" --mode=%s $$' % mode, STACKSNAP],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, timeout=LIMIT_S)
                self.assertEqual(result.returncode, 2)
                self.assertRegex(result.stderr.decode(), "itself|own")

    def test_zombie(self):
        target = self.start("zombie")
        self.refused(target.fact("zombie"), "zombie")
        self.assertEqual(target.finish()[0], 0)

    def test_parent_of_a_zombie(self):
        target = self.start("zombie")
        for mode in MODES:
            with self.subTest(mode=mode):
                self.assert_stack(self.snap(target.pid, mode=mode), "zombie", MAIN_STACK)

    def trace(self, target, command, name):
        tracer = subprocess.Popen([str(target.pid) if word == "PID" else word
                                   for word in command], stdin=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (tracer.stdin.close(), tracer.wait(LIMIT_S)))
        self.addCleanup(tracer.kill)
        # wait for all threads: until then stacksnap could attach to some of them
        wait_until(lambda: all(status_field(tid, "TracerPid") == str(tracer.pid)
                               for tid in task_states(target.pid)), name + " to trace")
        return tracer

    def traced(self, command, name):
        """The target cannot be stopped. Sleeping threads are read, and no state changes."""
        target = self.start("threads", 1, 1)
        tracer = self.trace(target, command, name)
        rest = "t" if name == "gdb" else "S"
        wait_until(lambda: set(task_states(target.pid).values()) == {rest},
                   "rest under " + name)
        states = task_states(target.pid)
        for mode in ("stop", "live", "no-stop", "auto"):
            with self.subTest(mode=mode):
                snapshot = Snapshot(self.run_tool("-f", "json", "--mode=" + mode,
                                                  target.pid))
                self.assertEqual(snapshot.data["capture"]["threads_stopped"], 0)
                self.assert_stack(snapshot, "threads", MAIN_STACK)
                for thread in snapshot.threads:
                    self.assertEqual((thread["end"], thread["stopped_ns"]), ("root", 0))
                    self.assertIn("traced by %d (%s)" % (tracer.pid, name),
                                  thread["reason"])
                self.assertEqual(task_states(target.pid), states)
        self.assertEqual(status_field(target.pid, "TracerPid"), str(tracer.pid))

    def test_traced_by_strace(self):
        self.traced(["strace", "-f", "-o", "/dev/null", "-p", "PID"], "strace")

    def test_traced_by_gdb(self):
        self.traced(["gdb", "-nx", "-q", "-p", "PID"], "gdb")

    def test_traced_and_running(self):
        """A running thread with another tracer cannot be read; the reason names the tracer."""
        target = self.start("busy", 2, 3)
        tracer = self.trace(target, ["strace", "-f", "-o", "/dev/null", "-p", "PID"],
                            "strace")
        wait_until(lambda: sorted(task_states(target.pid).values()) == ["R", "R", "S"],
                   "the target to run again")
        for mode in ("stop", "auto", "no-stop"):
            with self.subTest(mode=mode):
                reported = set()
                for _ in range(50):  # while it waits for a CPU it can be read
                    snapshot = Snapshot(self.run_tool("-f", "json", "--mode=" + mode,
                                                      target.pid, status=(0, 1)))
                    self.assert_stack(snapshot, "busy", MAIN_STACK)
                    for name in ("busy-0", "busy-1"):
                        thread = snapshot.thread(name)
                        self.assertIn("traced by %d (strace)" % tracer.pid, thread["reason"])
                        self.assertEqual(thread["stopped_ns"], 0)
                        if thread["frames"]:
                            self.assertEqual(thread["frames"][0]["symbol"], "spin")
                            continue
                        self.assertEqual(thread["end"],
                                         "running" if mode == "no-stop" else "traced")
                        self.assertEqual(snapshot.status, 1)
                        reported.add(name)
                    if len(reported) == 2:
                        break
                self.assertEqual(len(reported), 2)

    @unittest.skipIf(os.geteuid() != 0, "only root can become another user")
    def test_another_user(self):
        target = self.start("threads", 1, 1)
        self.listed(target.pid, "another user", NOBODY)
        self.assert_free(target.pid)
        for words in (("-c", "2", "-i", "100ms"), ("diff", "--after=100ms"),
                      ("hang", "--for=100ms"), ("top", "--once")):
            with self.subTest(words=words):
                result = subprocess.run(
                    NOBODY + [for_everyone(STACKSNAP), *words, str(target.pid)],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    timeout=LIMIT_S)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(result.stderr.decode().count("another user"), 1, result.stderr)
                self.assertIn("[denied]", result.stdout.decode())
                for tid in task_states(target.pid):
                    self.assertIn(str(tid), result.stdout.decode())

    @unittest.skipIf(os.geteuid() != 0, "only root can become another user")
    def test_not_dumpable(self):
        """The same user, but the process is not dumpable."""
        target = self.start_command(
            NOBODY + ["/usr/bin/python3", "-c", "import ctypes, sys\n"
                      "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n"  # PR_SET_DUMPABLE
                      "print('ready', flush=True); sys.stdin.read()"])
        self.listed(target.pid, "not dumpable", NOBODY)

    @unittest.skipIf(os.geteuid() != 0, "only root can give up capabilities")
    def test_root_without_the_capability(self):
        """As in a container: root cannot access a process with more capabilities."""
        target = self.start("threads", 1, 1)
        self.listed(target.pid, "root without CAP_SYS_PTRACE", UNCAPABLE)
        self.assert_free(target.pid)

    @unittest.skipIf(os.geteuid() != 0, "only root can give capabilities to a process")
    def test_more_capabilities(self):
        """The same user, but the process has a capability that the user lacks."""
        target = self.start_command(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
             "--inh-caps=+net_bind_service", "--ambient-caps=+net_bind_service",
             os.path.join(TARGETS, "threads"), "1", "1"])
        self.listed(target.pid, "more capabilities", NOBODY)
        self.assert_free(target.pid)

    def filtered(self, target, calls, *words, status=(0,)):
        """Runs stacksnap with a seccomp filter that refuses these calls, as in a container."""
        result = subprocess.run(
            [os.path.join(TARGETS, "deny_syscalls"), calls, STACKSNAP, "-f", "json",
             *words, str(target.pid)], stdin=subprocess.DEVNULL, timeout=LIMIT_S,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(os.environ, # the leak checker needs ptrace, too
                     ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"))
        if result.returncode == 77:
            self.skipTest("seccomp filters are not supported")
        self.assertIn(result.returncode, status, result.stderr)
        return Snapshot(result)

    @unittest.skipIf(os.uname().machine != "x86_64", "system calls by their numbers")
    def test_process_vm_readv_refused(self):
        """Memory is read through /proc/PID/mem instead."""
        target = self.start("threads", 2, 5)
        for mode in MODES + ("no-stop", "auto"):
            with self.subTest(mode=mode):
                snapshot = self.filtered(target, "310", "--mode=" + mode)
                self.assert_stack(snapshot, "threads", MAIN_STACK)
                self.assertEqual({thread["end"] for thread in snapshot.threads}, {"root"})

    @unittest.skipIf(os.uname().machine != "x86_64", "system calls by their numbers")
    def test_ptrace_refused(self):
        """No thread can be stopped; sleeping threads are read."""
        target = self.start("busy", 1, 3)
        for mode in ("stop", "auto"):
            with self.subTest(mode=mode):
                snapshot = self.filtered(target, "101", "--mode=" + mode, status=(1,))
                self.assert_stack(snapshot, "busy", MAIN_STACK)
                running = snapshot.thread("busy-0")
                self.assertEqual((running["end"], running["frames"]), ("denied", []))
                self.assertIn("attached", running["reason"])
        target = self.start("threads", 1, 1)
        snapshot = self.filtered(target, "101,310", "--mode=stop")
        self.assertEqual(snapshot.data["capture"]["threads_stopped"], 0)
        for thread in snapshot.threads:
            self.assertEqual(thread["end"], "root")
            self.assertIn("read without stopping it", thread["reason"])

    @unittest.skipIf(os.uname().machine != "x86_64", "system calls by their numbers")
    def test_other_calls_refused(self):
        """The snapshot is whole: there is another way for each of these calls."""
        target = self.start("threads", 1, 3)
        for calls in ("247", "61,247", "7,271", "435", "7,61,247,271,435", "46", "53", "319", "436",
                      "437", "138"):
            for mode in ("auto", "stop", "no-stop"):
                with self.subTest(calls=calls, mode=mode):
                    snapshot = self.filtered(target, calls, "--mode=" + mode)
                    self.assertEqual(len(snapshot.threads), 6)
                    self.assertEqual({thread["end"] for thread in snapshot.threads}, {"root"})
                    self.assertIsNone(snapshot.data["problem"])
                    self.assert_stack(snapshot, "threads", MAIN_STACK)
                    self.assert_free(target.pid)

    @unittest.skipIf(os.uname().machine != "x86_64", "system calls by their numbers")
    def test_threads_that_end_without_waitid(self):
        """They are reaped: otherwise an exec in their process would wait for the tool."""
        target = self.start("churn", settle=False)
        for _ in range(5):
            snapshot = self.filtered(target, "247", "--mode=stop", status=(0, 1))
            self.assertGreater(len(snapshot.threads), 1)
            self.assert_free(target.pid)

    @unittest.skipIf(os.uname().machine != "x86_64", "system calls by their numbers")
    def test_record_with_calls_refused(self):
        target = self.start("threads", 1, 3)
        for calls in ("247", "435", "61,247,271,435"):
            with self.subTest(calls=calls), tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, "recording")
                result = subprocess.run(
                    [os.path.join(TARGETS, "deny_syscalls"), calls, STACKSNAP, "record", "-d",
                     "300ms", "-o", path, str(target.pid)], stdin=subprocess.DEVNULL,
                    timeout=LIMIT_S, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    env=dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") +
                             ":detect_leaks=0"))
                self.assertEqual(result.returncode, 0, result.stderr)
                report = self.run_tool("report", "-f", "json", path, status=(0, 1))
                self.assertEqual(len(json.loads(report.stdout)["threads"]), 6)

    @unittest.skipIf(os.uname().machine != "x86_64", "system calls by their numbers")
    def test_threads_cannot_be_listed(self):
        target = self.start("threads", 1, 3)
        for words in ((), ("hang", "--for=100ms"), ("record", "-d", "100ms", "-o", "/dev/null"),
                      ("modules",)):
            with self.subTest(words=words):
                result = subprocess.run(
                    [os.path.join(TARGETS, "deny_syscalls"), "217", STACKSNAP, *words,
                     str(target.pid)], stdin=subprocess.DEVNULL, timeout=LIMIT_S,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                self.assertEqual(result.returncode, 2)
                self.assertIn(b"cannot list the threads of process %d: Operation not permitted"
                              % target.pid, result.stderr)
                self.assertIn(b"getdents64", result.stderr)

    def test_few_descriptors(self):
        """Either all is shown, or the limit is named as the reason. (With fewer the tool
        cannot be loaded.)"""
        target = self.start("threads", 1, 3)
        for limit in range(5, 36):
            with self.subTest(limit=limit):
                result = subprocess.run(
                    ["prlimit", "--nofile=%d:%d" % (limit, limit), STACKSNAP, "-f", "json",
                     str(target.pid)], stdin=subprocess.DEVNULL, timeout=LIMIT_S,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                if b"shared librar" in result.stderr:
                    continue
                if result.returncode == 2:
                    self.assertEqual(result.stdout, b"")
                    self.assertRegex(result.stderr, b"[Tt]oo many open files")
                    self.assertNotRegex(result.stderr, b"ended|there is no process")
                    continue
                snapshot = Snapshot(result)
                self.assertEqual(len(snapshot.threads), 6)
                whole = {frame["symbol"] is not None and thread["end"] == "root"
                         for thread in snapshot.threads for frame in thread["frames"]}
                if whole != {True}:
                    self.assertRegex(snapshot.stderr + str(snapshot.data["problem"]),
                                     "too many open files|could not be started")

    @unittest.skipIf(os.geteuid() != 0, "only root can make users")
    def test_the_same_user(self):
        """Nothing is denied, unless Yama restricts ptrace."""
        if read_text("/proc/sys/kernel/yama/ptrace_scope").strip() not in ("", "0"):
            self.skipTest("Yama restricts ptrace")
        target = self.start_command(NOBODY + [for_everyone(THREADS), "1", "1"])
        result = subprocess.run(NOBODY + [for_everyone(STACKSNAP), "-f", "json", str(target.pid)],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, timeout=LIMIT_S)
        snapshot = Snapshot(result)
        self.assertEqual(snapshot.status, 0, snapshot.stderr)
        self.assert_stack(snapshot, "threads", MAIN_STACK)

    @unittest.skipIf(os.geteuid() != 0, "only root can become another user")
    def test_one_of_two_is_denied(self):
        target = self.start("threads", 1, 1)
        own = self.start_command(NOBODY + [for_everyone(THREADS), "1", "1"])
        result = subprocess.run(NOBODY + [for_everyone(STACKSNAP), str(target.pid), str(own.pid)],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, timeout=LIMIT_S)
        self.assertEqual(result.returncode, 1)
        text = result.stdout.decode()
        self.assertIn("[denied]", text)
        self.assertIn("target_wait", text)


class Changing(EndToEnd):
    """Processes that end, call exec or create threads during the capture."""

    def snap_any(self, pid, mode):
        """Any documented exit status is accepted; a failure has a message."""
        result = self.run_tool("-f", "json", "--mode=" + mode, pid, status=(0, 1, 2))
        if result.returncode == 2:
            self.assertEqual(result.stdout, b"")
        if result.returncode:
            self.assertRegex(result.stderr.decode(), r"^stacksnap: ")
        return result

    def test_ends_during_capture(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                for round_number in range(20):
                    target = self.start("short_lived", 20 * round_number,
                                        settle=False)
                    self.snap_any(target.pid, mode)
                    self.assertEqual(target.finish()[0], 7)

    def test_exec_during_capture(self):
        target = self.start("exec_loop", settle=False)
        for mode in MODES:
            with self.subTest(mode=mode):
                for _ in range(10):
                    self.snap_any(target.pid, mode)
        self.assertEqual(target.finish()[0], 5)

    def test_threads_come_and_go(self):
        """Threads captured before their first instruction have complete stacks and a reason."""
        target = self.start("churn", 4)
        for mode in MODES:
            with self.subTest(mode=mode):
                new = lost = 0
                for _ in range(25):
                    snapshot = self.snap(target.pid, mode=mode, status=(0, 1))
                    self.assert_stack(snapshot, "churn", MAIN_STACK)
                    for index in range(4):
                        thread = snapshot.thread(target.fact("maker-%d" % index))
                        names = [canonical(f["symbol"]) for f in snapshot.frames(thread)]
                        if thread["end"] == "root":
                            self.assertIn("make", names)
                    for thread in snapshot.threads:
                        self.assertTrue(thread["frames"] or thread["end"] != "root")
                        self.assertTrue(thread["state"])
                        if len(thread["frames"]) == 1:
                            new += thread["reason"] is not None
                            lost += thread["end"] == "no-unwind-info"
                # a thread that has executed one or two instructions cannot be unwound
                self.assertLess(10 * lost, new + 20)
                self.assertGreater(new, lost)
        status, output = target.finish()
        self.assertEqual(status, 0)
        self.assertRegex(output, r"^made \d+")


class UnusualTargets(EndToEnd):
    def test_zombie_leader(self):
        target = self.start("zombie_leader")
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode)
                self.assert_stack(snapshot, "worker",
                                  BLOCKED + ["worker_routine"] + THREAD_END)
                self.assert_stack(snapshot, "last", [
                    Named("read"), "target_wait", "last_routine"] + THREAD_END)
                leader = snapshot.thread(target.pid)
                self.assertEqual((leader["state"], leader["frames"]), ("Z", []))
                # Its stack no longer exists, so nothing is missing; the reason says so.
                self.assertEqual(leader["end"], "root")
                self.assertIn("has ended", leader["reason"])
        self.assertEqual(target.finish()[0], 6)

    def test_kernel_worker(self):
        """It is listed without a stack: it runs in the kernel only."""
        target = self.start("kernel_worker")
        if "no io_uring" in target.lines:
            self.skipTest("io_uring is not available")
        name = "iou-wrk-%d" % target.pid
        wait_until(lambda: name in [read_text("/proc/%d/task/%d/comm" % (target.pid, tid)).strip()
                                    for tid in task_states(target.pid)], "the worker")
        for mode in (*MODES, "auto", "no-stop"):
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode)
                worker = snapshot.thread(name)
                self.assertEqual((worker["frames"], worker["end"]), ([], "root"))
                self.assertRegex(worker["reason"], "^kernel worker ")
                self.assertEqual(worker["wait"]["text"], "work (it is a kernel worker thread)")
                self.assertIsNone(worker["wait"]["syscall"])
                self.assertTrue(worker["kernel_stack"] or os.geteuid())
                # Not at once if the other thread has to wait for a CPU until it stops.
                wait_until(lambda mode=mode: self.snap(target.pid, mode=mode).data["capture"][
                    "consistent"], "an atomic snapshot")
        report = json.loads(self.run_tool("hang", "--for=200ms", "--json", target.pid).stdout)
        self.assertEqual(report["verdict"], "idle")

    def test_vfork_parent(self):
        """A thread in state D does not stop. It must not delay the other threads or stacksnap."""
        target = self.start("vfork_parent", 3)
        for mode in MODES + ("auto", "no-stop"):
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode, timeout_ms=2000,
                                     status=(0, 1))
                for index in range(3):
                    self.assert_stack(snapshot, "other-%d" % index,
                                      BLOCKED + ["other_routine"] + THREAD_END)
                self.assert_stack(snapshot, "vfork_parent", MAIN_STACK)
                thread = snapshot.thread(target.fact("vforker"))
                self.assertEqual(thread["state"], "D")
                self.assertIn("uninterruptible", thread["reason"])
                if os.geteuid() == 0 and os.path.exists("/proc/self/stack"):
                    self.assertTrue(any("clone" in line or "fork" in line
                                        for line in thread["kernel_stack"]),
                                    thread["kernel_stack"])
                    self.assertRegex(thread["wchan"] or "", "clone|fork")
                if snapshot.status == 1:
                    self.assertRegex(snapshot.stderr, str(thread["tid"]))
        self.assertEqual(target.finish()[0], 0)

    def test_memory_that_does_not_answer(self):
        """Reading such a page never returns, since the thread that handles the fault is stopped.
        If it was never accessed, the stack is complete without it; if it had a frame, the stack
        does not look complete."""
        try:
            target = self.start("userfault")
        except AssertionError as reason:
            self.skipTest("no userfaultfd: %s" % reason)
        for mode in MODES + ("auto",):
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode, timeout_ms=500, status=(1,))
                self.assert_stack(snapshot, "worker", BLOCKED + ["worker_routine"]
                                  + THREAD_END)
                thread = self.assert_stack(snapshot, "evicted", BLOCKED + ["evicted_routine"],
                                           end="unreadable")
                self.assertIn("not in memory", thread["reason"])
                self.assertLess(snapshot.data["capture"]["stopped_ns"], 500_000_000)
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "recording")
            self.run_tool("record", "-d", "300ms", "-o", path, target.pid)
            self.assert_free(target.pid)
            report = self.run_tool("report", path, status=(0, 1)).stdout.decode()
            self.assertIn("worker_routine", report)
        self.assertEqual(target.finish()[0], 0)

    def test_moving_stack(self):
        """The stack pointer is in memory that was mapped after the memory map was read."""
        try:
            target = self.start("moving_stack", settle=False)
        except AssertionError as reason:
            self.skipTest("no userfaultfd: %s" % reason)
        for mode in MODES + ("auto",):
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode, timeout_ms=500, status=(0, 1))
                thread = snapshot.thread("computes")
                # On a busy machine it may not stop in time.
                self.assertIn(thread["end"], ("unreadable", "not-stopped", "runnable"))
                self.assertLess(snapshot.data["capture"]["stopped_ns"], 1_000_000_000)
        self.assertEqual(target.finish()[0], 0)

    def test_hostile_names(self):
        target = self.start("names")
        names = {}
        for line in target.lines:
            tid, _, text = line.partition(" ")
            names[int(tid)] = bytes.fromhex(text)
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode)
                for tid, name in names.items():
                    thread = self.assert_stack(snapshot, tid,
                                               BLOCKED + ["thread_routine"] + THREAD_END)
                    self.assertEqual(thread["state"], "S", name)
                    if name.isascii() and name.decode().isprintable():
                        self.assertEqual(thread["name"], name.decode())
            for form in ("text", "gdb", "eu", "folded", "json"):
                with self.subTest(mode=mode, form=form):
                    text = self.run_tool("-f", form, "--mode=" + mode,
                                         target.pid).stdout.decode("utf-8")
                    # no C0 and C1 controls and no DEL, except newlines
                    self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
                    if form == "folded":
                        for line in text.splitlines():
                            self.assertRegex(line, r"^names;[^;]*;.*;[^;]+ \d+$")


if __name__ == "__main__":
    main()
