"""The wait of each thread, as data and in words. targets/waits.c has a thread in each kind
of wait, and prints the descriptors, ports and processes that are involved."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import harness

MODES = ("stop", "live", "no-stop", "auto")


class Waits(harness.EndToEnd):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.target = self.start("waits", self.directory)
        self.child = self.target.fact("child-pid")

    def fd(self, word):
        return self.target.fact("fd-" + word)

    def port(self, word):
        return self.target.fact("port-" + word)

    def expected(self):
        """For each thread: kind, system call, text, and file descriptor."""
        fd, port, child, path = self.fd, self.port, self.child, self.directory
        named_child = "%d (waits-child)" % child
        nothing = None
        return {
            "read-pipe": ("read", "read", "input from fd %d, pipe, written by the same process"
                          % fd("read-pipe"), fd("read-pipe")),
            "read-child": ("read", "read", "input from fd %d, pipe, written by %s"
                           % (fd("read-child"), named_child), fd("read-child")),
            "read-fifo": ("read", "read", "input from fd %d, pipe %s/fifo, also open in the same process"
                          % (fd("read-fifo"), path), fd("read-fifo")),
            "read-event": ("read", "read", "input from fd %d, eventfd" % fd("read-event"),
                           fd("read-event")),
            "read-timer": ("read", "read", re.compile(
                r"input from fd %d, timerfd, (59|60) min left, then every 2 s"
                % fd("read-timer")), fd("read-timer")),
            "read-signal": ("read", "read", "input from fd %d, signalfd for HUP and USR1"
                            % fd("read-signal"), fd("read-signal")),
            "read-inotify": ("read", "read", "input from fd %d, inotify with 1 watch"
                             % fd("read-inotify"), fd("read-inotify")),
            "write-pipe": ("write", "write", "room to write to fd %d, pipe, read by the same process"
                           % fd("write-pipe"), fd("write-pipe")),
            "open-fifo": ("other", "openat", "another process to open FIFO %s/no-writer for writing" % path, nothing),
            "accept": ("accept", "accept",
                       "a connection to fd %d, TCP socket listening on 127.0.0.1:%d"
                       % (fd("accept"), port("accept")), fd("accept")),
            "accept-unix": ("accept", "accept",
                            "a connection to fd %d, UNIX socket listening on @waits-%d"
                            % (fd("accept-unix"), self.target.pid), fd("accept-unix")),
            "receive-tcp": ("receive", "recvfrom", "input from fd %d, TCP connection "
                            "127.0.0.1:%d to 127.0.0.1:%d (established)"
                            % (fd("receive-tcp"), port("receive-tcp-here"),
                               port("receive-tcp-there")), fd("receive-tcp")),
            "receive-udp": ("receive", "recvfrom", "input from fd %d, UDP socket 127.0.0.1:%d"
                            % (fd("receive-udp"), port("receive-udp")), fd("receive-udp")),
            "receive-unix": ("receive", "recvfrom",
                             "input from fd %d, UNIX socket, connected to the same process"
                             % fd("receive-unix"), fd("receive-unix")),
            "poll-time": ("poll", "poll", "60 min to pass", nothing),
            "poll-two": ("poll", "poll", "input from any of 2 fds: %d (eventfd), "
                         "%d (pipe, written by the same process)"
                         % (fd("poll-two-event"), fd("poll-two-pipe")), nothing),
            "poll-many": ("poll", "poll", re.compile(
                r"input from any of 3000 fds: \d+ \(eventfd\), .* and 2992 more"), nothing),
            "poll-pidfd": ("poll", "poll", "input from fd %d, pidfd of %s"
                           % (fd("poll-pidfd"), named_child), fd("poll-pidfd")),
            # the kernel writes what is left where it was given the time
            "select": ("select", "pselect6", re.compile(
                "input from fd %d, eventfd, for at most (59|60) min" % fd("select")),
                       fd("select")),
            "epoll": ("epoll", "epoll_wait", "an event on epoll fd %d, which watches 2 fds: "
                      "%d (TCP socket listening on 127.0.0.1:%d), %d (eventfd)"
                      % (fd("epoll"), fd("epoll-listener"), port("epoll"), fd("epoll-event")),
                      fd("epoll")),
            "sleep": ("sleep", "clock_nanosleep", "60 min to pass", nothing),
            "sleep-until": ("sleep", "clock_nanosleep",
                            re.compile("the remaining (59|60) min to pass"), nothing),
            "child": ("child", "wait4", "child process %d (waits-child, sleeping)" % child,
                      nothing),
            "child-any": ("child", "waitid",
                          "any child process: %d (waits-child, sleeping)" % child, nothing),
            "flock": ("file-lock", "flock", "an exclusive lock on fd %d, %s/file, held by %s"
                      % (fd("flock"), path, named_child), fd("flock")),
            "fcntl": ("file-lock", "fcntl", "an exclusive lock on bytes 12 to 16 of fd %d, "
                      "%s/file, held by %s" % (fd("fcntl"), path, named_child), fd("fcntl")),
            "sigwait": ("signal", "rt_sigtimedwait",
                        "one of the signals USR2 and %d" % signal.SIGRTMIN, nothing),
            "pause": ("signal", "pause", "a signal", nothing),
            "semop": ("ipc", "semtimedop", "System V semaphore set %d: number 0 to reach 1"
                      % self.target.fact("id-semop"), nothing),
            "message": ("ipc", "msgrcv", "a message in System V queue %d"
                        % self.target.fact("id-message"), nothing),
        }

    def snap_waiting(self, mode=None):
        """Descriptors are known only for threads that are back in their calls. On a busy
        machine that may take several attempts."""
        for _ in range(20):
            snapshot = self.snap(self.target.pid, mode=mode, status=(0, 1))
            waits = [thread["wait"] for thread in snapshot.threads]
            if all(wait and (wait["fd"] is None or wait["object"]) for wait in waits) and all(
                    "(" in snapshot.thread(name)["wait"]["text"]
                    for name in ("poll-two", "poll-many")):
                break
        return snapshot

    def check(self, snapshot):
        for name, (kind, call, text, fd) in self.expected().items():
            with self.subTest(name):
                wait = snapshot.thread(name)["wait"]
                self.assertIsNotNone(wait)
                self.assertEqual((wait["kind"], wait["syscall"], wait["fd"]),
                                 (kind, call, fd), wait)
                # on a slow machine not all processes are searched in time
                actual = wait["text"].replace(", perhaps others", "")
                if isinstance(text, str):
                    self.assertEqual(actual, text)
                else:
                    self.assertIsNotNone(text.fullmatch(actual), (actual, text.pattern))

    def test_modes(self):
        """Twice each: after a stop, calls with a time limit are in restart_syscall."""
        for mode in MODES * 2:
            with self.subTest(mode):
                snapshot = self.snap_waiting(mode)
                self.check(snapshot)
                main = snapshot.thread(self.target.pid)["wait"]
                self.assertEqual((main["kind"], main["fd"]), ("read", 0))

    def test_times(self):
        for mode in MODES:
            snapshot = self.snap_waiting(mode)
            hour = 3600 * 10 ** 9
            for name in ("sleep", "poll-time"):
                wait = snapshot.thread(name)["wait"]
                self.assertEqual((wait["timeout_ns"], wait["left_ns"]), (hour, None), name)
            wait = snapshot.thread("sleep-until")["wait"]
            self.assertIsNone(wait["timeout_ns"])
            self.assertTrue(hour - 600 * 10 ** 9 < wait["left_ns"] <= hour, wait)

    def test_owners(self):
        snapshot = self.snap_waiting()
        for name in ("flock", "fcntl", "child"):
            wait = snapshot.thread(name)["wait"]
            self.assertEqual((wait["owner_pid"], wait["owner_tid"]), (self.child, None), name)
        self.assertIn("pipe, written by %d (waits-child)" % self.child,
                      snapshot.thread("read-child")["wait"]["object"])

    def test_data(self):
        """Everything that the sentences say is also there as data."""
        fd = self.fd
        snapshot = self.snap_waiting()

        def wait(name):
            return snapshot.thread(name)["wait"]

        def peers(descriptor):
            return [(peer["pid"], peer["name"], peer["same"]) for peer in descriptor["peers"]]

        def has(data, **members):
            self.assertEqual({name: data[name] for name in members}, members)

        child = (self.child, "waits-child", False)
        own = (self.target.pid, "waits", True)
        pipe = wait("read-child")["descriptor"]
        has(pipe, kind="pipe", flags=pipe["flags"] & ~3)
        self.assertIn(child, peers(pipe))
        self.assertEqual(peers(wait("read-pipe")["descriptor"])[0][::2], own[::2])
        has(wait("read-fifo")["descriptor"], kind="pipe", name=self.directory + "/fifo")
        has(wait("read-signal")["descriptor"], kind="signalfd",
            signals=[signal.SIGHUP, signal.SIGUSR1])
        timer = wait("read-timer")["descriptor"]
        has(timer, kind="timerfd", timer_interval_ns=2 * 10 ** 9)
        self.assertTrue(3000 < timer["timer_left_ns"] / 10 ** 9 <= 3600)
        has(wait("read-inotify")["descriptor"], kind="inotify", watch_count=1)
        has(wait("accept")["descriptor"], kind="socket", protocol="TCP", listening=True,
            local={"address": "127.0.0.1", "port": self.port("accept")}, remote=None)
        has(wait("accept-unix")["descriptor"], listening=True,
            path="@waits-%d" % self.target.pid)
        has(wait("receive-tcp")["descriptor"], tcp_state=1,
            remote={"address": "127.0.0.1", "port": self.port("receive-tcp-there")})
        self.assertIn(child, peers(wait("poll-pidfd")["descriptor"]))
        two = wait("poll-two")
        self.assertEqual([(one["fd"], one["input"], one["output"], one["descriptor"]["kind"])
                          for one in two["fds"]],
                         [(fd("poll-two-event"), True, False, "eventfd"),
                          (fd("poll-two-pipe"), True, False, "pipe")])
        self.assertTrue(two["fds_complete"])
        self.assertEqual(len(wait("poll-many")["fds"]), 3000)
        has(wait("poll-time"), fds=[], timed=True)
        self.assertEqual([one["fd"] for one in wait("epoll")["descriptor"]["watches"]],
                         [fd("epoll-listener"), fd("epoll-event")])
        has(wait("child"), child_scope="pid", owner_process="waits-child", timed=False)
        has(wait("child-any"), child_scope="any", children_total=1)
        self.assertEqual(wait("child-any")["children"][0]["pid"], self.child)
        has(wait("flock"), access="exclusive", range=None, owner_process="waits-child")
        has(wait("fcntl"), access="exclusive", range=[12, 16], self_owned=False)
        has(wait("sigwait"), signals=[signal.SIGUSR2, signal.SIGRTMIN])
        has(wait("pause"), signals=None)
        has(wait("semop"), ipc="semaphore", ipc_id=self.target.fact("id-semop"), semaphore=0,
            semaphore_change=-1)
        has(wait("message"), ipc="receive", ipc_id=self.target.fact("id-message"))
        has(wait("open-fifo"), path=self.directory + "/no-writer")

    def test_text(self):
        wanted = ["  waits for %s [%s]\n" % (words, call)
                  for _, call, words, _ in self.expected().values() if isinstance(words, str)]
        for _ in range(20):  # as in snap_waiting()
            result = self.run_tool("-a", self.target.pid)
            text = result.stdout.decode().replace(", perhaps others", "")
            if all(line in text for line in wanted):
                break
        for line in wanted:
            self.assertIn(line, text)


class TimeLimits(harness.EndToEnd):
    # None: there is a limit, but it is not shown how long it is
    LIMITED = dict.fromkeys(
        ("nanosleep", "clock_nanosleep", "epoll_timed", "epoll_pw_timed", "epoll_pw2_timed",
         "semop_timed", "sigwait_timed", "io_gete_timed", "poll_timed", "select_timed",
         "futex_timed", "pselect_const", "ppoll_const", "nanosleep_rem", "clock_nano_rem"),
        "timeout_ns")
    LIMITED.update(mq_timed="left_ns", uring_timed=None)

    def test_every_call(self):
        """Each blocking call, with and without a time limit."""
        week = 7 * 24 * 3600 * 10 ** 9
        target = self.start("eintr")
        for mode in ("auto", "no-stop"):
            for thread in self.snap(target.pid, mode=mode, status=(0, 1)).threads:
                wait, name = thread["wait"], thread["name"]
                if not wait or name == "eintr":
                    continue
                with self.subTest(name, mode=mode):
                    self.assertEqual(wait["timed"], name in self.LIMITED, wait)
                    known = {key for key in ("timeout_ns", "left_ns") if wait[key] is not None}
                    self.assertEqual(known, {self.LIMITED.get(name)} - {None}, wait)
                    for key in known:
                        self.assertTrue(week - 3600 * 10 ** 9 < wait[key] <= week, wait)
                    if known == {"timeout_ns"}:
                        self.assertEqual(wait["timeout_ns"], week)
                        self.assertRegex(wait["text"], "(for at most |^)7 days")
                    elif wait["timed"]:
                        self.assertRegex(wait["text"], ", (6 days left|with a time limit)$")


class Restarted(harness.EndToEnd):
    def test_calls_made_by_syscall(self):
        """After a stop they are in restart_syscall, and no code on the stack has their number."""
        program = ("import ctypes, sys\n"
                   "libc = ctypes.CDLL(None)\n"
                   "word = ctypes.c_int(0)\n"
                   "time = (ctypes.c_long * 2)(1000, 0)\n"
                   "print('ready', flush=True)\n"
                   "if sys.argv[1] == 'futex':\n"
                   "    libc.syscall(202, ctypes.byref(word), 128, 0, time, 0, 0)\n"
                   "libc.syscall(7, 0, 0, 1000000)\n")
        for name, number, text in (("futex", 202, "^futex at .*, for at most 16 min$"),
                                   ("poll", 7, "^16 min to pass$")):
            target = self.start_command([sys.executable, "-c", program, name])
            harness.wait_until(lambda: harness.read_text(
                "/proc/%d/syscall" % target.pid).startswith("%d " % number), "it to wait")
            self.snap(target.pid, mode="stop")
            harness.wait_until(lambda: harness.read_text(
                "/proc/%d/syscall" % target.pid).startswith("219 "), "it to go on")
            for mode in ("no-stop", "stop"):
                with self.subTest(call=name, mode=mode):
                    thread, = self.snap(target.pid, mode=mode, status=(0, 1)).threads
                    self.assertRegex(thread["wait"]["text"], text)
            target.kill()


class Stopped(harness.EndToEnd):
    def test_sigstop(self):
        target = self.start("threads", 1, 2)
        os.kill(target.pid, signal.SIGSTOP)
        harness.wait_until(lambda: set(harness.task_states(target.pid).values()) == {"T"},
                           "all to stop")
        result = self.run_tool("-f", "json", "--mode=no-stop", target.pid, status=(0, 1))
        for thread in harness.Snapshot(result).threads:
            self.assertEqual(thread["wait"]["kind"], "stopped")
            self.assertEqual(thread["wait"]["text"], "SIGCONT (it is stopped by a signal)")
        os.kill(target.pid, signal.SIGCONT)

    def test_tracer(self):
        target = self.start("threads", 1, 2)
        tracer = subprocess.Popen(["gdb", "-q", "-nx", "-p", str(target.pid)],
                                  stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(tracer.wait)
        self.addCleanup(tracer.kill)
        harness.wait_until(lambda: set(harness.task_states(target.pid).values()) == {"t"},
                           "the debugger to hold it")
        result = self.run_tool("-f", "json", "--mode=no-stop", target.pid, status=(0, 1))
        for thread in harness.Snapshot(result).threads:
            wait = thread["wait"]
            self.assertEqual(wait["kind"], "ptrace")
            self.assertEqual(wait["owner_pid"], tracer.pid)
            self.assertEqual(wait["text"], "its tracer %d (gdb) to resume it" % tracer.pid)

    def test_vfork(self):
        target = self.start("vfork_parent", 1)
        for mode in MODES:
            snapshot = self.snap(target.pid, mode=mode, status=(0, 1))
            wait = snapshot.thread("vforker")["wait"]
            self.assertEqual((wait["kind"], wait["syscall"]), ("child", "vfork"))
            self.assertRegex(wait["text"], r"^its vfork child to call exec or exit: "
                             r"\d+ \(vforker, (sleeping|running)\)$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
