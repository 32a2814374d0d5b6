"""Locks: what a thread waits for, and who provably holds it. lockwaits, deadlock."""
# ctest: long-with-sanitizers

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from harness import (EndToEnd, HOG, LIMIT_S, STACKSNAP, TARGETS, main, open_terminal, read_text,
                     reads_stdin, task_states, wait_until)
from recording import Recording

# In mode no-stop thread pointers are not known: joins are found by id, stream owners are not.
EVERY_MODE = ("stop", "live", "no-stop")
MODE_OPTIONS = {"no-stop": {"status": (0, 1)}}

TORN_TRIES = 40

# thread: kind, a pattern over the text, the owner or None
WAITS = {
    "wants-mutex": ("mutex", r"^mutex held_lock \(0x[0-9a-f]+\), held by", "reads-pipe"),
    "wants-timed": ("mutex", r"^mutex held_lock .*, 6 days left$", "reads-pipe"),
    "wants-behind": ("mutex", r"^mutex second_lock ", "wants-mutex"),
    "wants-read": ("rwlock", r"^read access to rwlock held_shared .*, held for writing by \d+ ",
                   "reads-pipe"),
    "wants-write": ("rwlock", r"^write access to rwlock held_shared .*, held for writing by \d+ ",
                    "reads-pipe"),
    "wants-read-held": ("rwlock", r"^write access to rwlock read_shared .*held by 1 reader, "
                        r"owner unknown: the lock does not identify its readers$", None),
    "nobody-signals": ("condvar", r"^condition variable lonely_cond \(", None),
    "timed-cond": ("condvar", r"^condition variable timed_cond .*, 6 days left$", None),
    "clock-cond": ("condvar", r"^condition variable clock_cond .*, 6 days left$", None),
    "sem-waiter": ("semaphore", r"^semaphore empty_sem .*, value 0$", None),
    "barrier-waiter": ("barrier", r"^barrier wide_barrier .*1 of 3 threads arrived$", None),
    "joins-reader": ("join", r"^thread \d+ \(reads-pipe\)", "reads-pipe"),
    "join-a": ("join", r"^thread \d+ \(join-b\)", "join-b"),
    "join-b": ("join", r"^thread \d+ \(join-a\)", "join-a"),
    "once-second": ("once", r"^pthread_once once \(", "once-first"),
    "ended-lock": ("mutex", r"^mutex ended_lock .*owner unknown: thread \d+, which took it, "
                   r"has ended", None),
    "writes-stream": ("mutex", r"^lock of a stdio stream at 0x", "locks-stream"),
}


class LockCase(EndToEnd):
    def tid(self, snapshot, name):
        return snapshot.thread(name)["tid"] if name else None

    def check_waits(self, snapshot, waits):
        for name, (kind, pattern, owner) in waits.items():
            wait = snapshot.thread(name)["wait"]
            with self.subTest(thread=name, mode=snapshot.data["capture"]["mode"]):
                self.assertEqual(wait["kind"], kind, wait)
                self.assertRegex(wait["text"], pattern)
                self.assertEqual(wait["owner_tid"], self.tid(snapshot, owner), wait)
                self.assertEqual(wait["syscall"], "futex")
                self.assertRegex(wait["address"], "^0x[0-9a-f]+$")


class Locks(LockCase):
    def test_every_wait(self):
        target = self.start("lockwaits")
        for mode in EVERY_MODE:
            snapshot = self.snap(target.pid, mode=mode, **MODE_OPTIONS.get(mode, {}))
            waits = dict(WAITS)
            if mode == "live":  # without registers of frames
                waits["once-second"] = waits["once-second"][:2] + (None,)
            self.check_waits(snapshot, waits)
            for name in ("lockwaits", "reads-pipe", "once-first"):
                self.assertIsNone((snapshot.thread(name)["wait"] or {}).get("owner_tid"))
        self.assertEqual(target.finish()[0], 0)

    def test_data(self):
        """Everything that the sentences say is also there as data."""
        snapshot = self.snap(self.start("lockwaits").pid, mode="stop")

        def check(name, **members):
            wait = snapshot.thread(name)["wait"]
            with self.subTest(thread=name):
                self.assertEqual({member: wait[member] for member in members}, members)

        check("wants-mutex", lock="mutex", symbol="held_lock", symbol_offset=0, access=None,
              owner_name="reads-pipe", owner_process=None, self_owned=False, timed=False)
        check("wants-timed", lock="mutex", timed=True)
        check("wants-read", lock="rwlock", access="shared", owner_access="exclusive", readers=0)
        check("wants-write", access="exclusive", owner_access="exclusive")
        check("wants-read-held", access="exclusive", owner_access="shared", readers=1,
              owner_unknown="readers", owner_unknown_tid=None)
        check("nobody-signals", lock="condvar", symbol="lonely_cond", timed=False)
        check("sem-waiter", lock="semaphore", value=0)
        check("barrier-waiter", lock="barrier", arrived=1, needed=3)
        check("join-a", lock="thread", owner_name="join-b")
        check("once-second", lock="once", owner_name="once-first", owner_unknown=None)
        check("ended-lock", lock="mutex", owner_unknown="gone")
        check("writes-stream", lock="stream", symbol=None, owner_name="locks-stream")
        check("ended-pi", lock="pi-mutex", owner_unknown="refused", address=None)
        self.assertIn("mutex_lock", snapshot.thread("wants-mutex")["wait"]["function"])

    def test_stream_of_new_glibc(self):
        """Since glibc 2.41, who holds the lock of a stream once has a recursion count of 0."""
        target = self.start("lockwaits", "reads-pipe", "from-zero")
        for mode in EVERY_MODE:
            snapshot = self.snap(target.pid, mode=mode, **MODE_OPTIONS.get(mode, {}))
            with self.subTest(mode=mode):
                self.check_waits(snapshot, {"writes-stream": WAITS["writes-stream"]})

    def test_pi_mutex_whose_owner_has_ended(self):
        """The kernel refuses it, and the C library waits forever."""
        snapshot = self.snap(self.start("lockwaits").pid, mode="stop")
        wait = snapshot.thread("ended-pi")["wait"]
        self.assertEqual((wait["kind"], wait["owner_tid"]), ("mutex", None))
        self.assertRegex(wait["text"], "^PI mutex that the kernel refused .* forever$")

    def check_time_limits(self, waits):
        week = 7 * 24 * 3600 * 10 ** 9
        for wait in waits:
            self.assertEqual((wait["timed"], wait["timeout_ns"]), (True, None), wait)
            self.assertTrue(week - 3600 * 10 ** 9 < wait["left_ns"] <= week, wait)

    def test_time_limits(self):
        """For a limit that is a point in time, of either clock, the remaining time is shown; a
        duration is shown as it was passed."""
        for mode in EVERY_MODE:
            snapshot = self.snap(self.start("lockwaits").pid, mode=mode,
                                 **MODE_OPTIONS.get(mode, {}))
            self.check_time_limits([snapshot.thread(name)["wait"]
                                    for name in ("wants-timed", "timed-cond", "clock-cond")])
            wait = snapshot.thread("timed-futex")["wait"]
            self.assertEqual((wait["kind"], wait["timed"], wait["timeout_ns"], wait["left_ns"]),
                             ("futex", True, 3600 * 10 ** 9, None), wait)
            self.assertRegex(wait["text"],
                             r"^futex timed_word \(0x\w+\), for at most 60 min$")
            wait = snapshot.thread("wants-mutex")["wait"]
            self.assertEqual((wait["timed"], wait["timeout_ns"], wait["left_ns"]),
                             (False, None, None))

    def test_clock_of_another_time_namespace(self):
        """The time left on a clock of that namespace is not known."""
        command = ["unshare", "--time", "--monotonic=86400", "--fork", "--kill-child"]
        if subprocess.run([*command, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("no time namespace can be made")
        outer = self.start_command([*command, os.path.join(TARGETS, "lockwaits")])
        pid, = map(int, read_text("/proc/%d/task/%d/children" % (outer.pid, outer.pid)).split())
        wait_until(lambda: reads_stdin(pid), "the target to wait")
        snapshot = self.snap(pid)
        self.check_time_limits([snapshot.thread("timed-cond")["wait"]])
        wait = snapshot.thread("clock-cond")["wait"]
        self.assertEqual((wait["timed"], wait["timeout_ns"], wait["left_ns"]), (True, None, None))
        self.assertIn(", with a time limit", wait["text"])

    def test_time_limits_in_recordings(self):
        target = self.start("lockwaits")
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "snapshot")
            self.run_tool("-f", "recording", "-o", path, target.pid)
            recording = Recording(path)
            report = json.loads(self.run_tool("report", "-f", "json", path).stdout)
        reported = {report["threads"][wait["thread"]]["name"]: dict(wait, **wait["data"])
                    for wait in report["waits"]}
        self.check_time_limits([reported["wants-timed"]])
        # the same, read as the manual page says
        self.assertEqual(len(recording.waits), len(reported))
        for wait in recording.waits:
            data = reported[wait.thread.name]
            self.assertEqual((bool(wait.number(5)), wait.signed(6), wait.signed(7)),
                             (data["timed"], *(-1 if data[key] is None else data[key]
                                               for key in ("timeout_ns", "left_ns"))))

    def test_restarted_timed_waits(self):
        """After a stop they are in restart_syscall, and are recognised nevertheless."""
        target = self.start("lockwaits")
        for _ in range(3):
            self.check_waits(self.snap(target.pid, mode="stop"),
                             {name: WAITS[name] for name in ("wants-timed", "timed-cond", "clock-cond")})

    def test_without_names(self):
        """Without symbols on the stack no type of lock and no owner is claimed."""
        target = self.start("lockwaits")
        snapshot = self.snap(target.pid, "--raw", mode="stop")
        for name in WAITS:
            wait = snapshot.thread(name)["wait"]
            if wait is None:  # a restarted wait could be any call
                continue
            self.assertEqual((wait["kind"], wait["owner_tid"]), ("futex", None), name)
            self.assertEqual(wait["owner_unknown"], "no-symbols", wait)

    def test_kinds_of_mutexes(self):
        for kind, words in (("normal", "mutex"), ("adaptive", "mutex"), ("shared", "mutex"),
                            ("c11", "mutex"), ("errorcheck", "error-checking mutex"),
                            ("recursive", "recursive mutex"), ("robust", "robust mutex")):
            target = self.start("deadlock", kind)
            snapshot = self.snap(target.pid, mode="stop")
            pattern = r"^%s (c11_)?mutexes%s \(.*, held by" % (
                re.escape(words), "%s")
            self.check_waits(snapshot, {
                "locker-0": ("mutex", pattern % r"\+0x28", "locker-1"),
                "locker-1": ("mutex", pattern % "", "locker-0"),
                "behind-0": ("mutex", pattern % "", "locker-0"),
            })
            target.kill()

    def test_pi_mutex_that_was_refused(self):
        """The kernel refuses to close the cycle, and glibc waits forever."""
        for _ in range(10):  # both may be refused if they come at the same time
            target = self.start("deadlock", "pi")
            snapshot = self.snap(target.pid, mode="stop")
            lockers = [snapshot.thread("locker-%d" % i) for i in range(2)]
            if any(locker["wait"]["owner_tid"] for locker in lockers):
                break
            target.kill()
        lockers.sort(key=lambda thread: thread["wait"]["owner_tid"] or 0)
        refused, waiting = lockers
        self.assertRegex(refused["wait"]["text"], "^PI mutex that the kernel refused .* forever$")
        self.assertRegex(waiting["wait"]["text"], r"^PI mutex mutexes(\+0x28)? .* held by")
        self.assertEqual(waiting["wait"]["owner_tid"], refused["tid"])
        self.assertIn(snapshot.thread("behind-0")["wait"]["owner_tid"],
                      [thread["tid"] for thread in lockers])

    def test_cplusplus(self):
        snapshot = self.snap(self.start("cpplocks").pid, mode="stop")
        self.check_waits(snapshot, {
            "first": ("mutex", r"^mutex app::two .*, held by", "second"),
            "second": ("rwlock", r"^read access to rwlock app::shared .*, held ", "first"),
            "signalled": ("condvar", r"^condition variable app::signalled \(", None),
            "once-second": ("once", r"^pthread_once app::once \(0x\w+\), executed by", "once-first"),
            "static-second": ("once", r"^the initialization of guard variable for use_static\(\)::slow "
                              r"\(0x\w+\), executed by", "static-first"),
        })
        self.assertEqual(
            sorted(snapshot.thread(tid)["name"] for tid in
                   snapshot.data["deadlocks"][0]["tids"]), ["first", "second"])
        # where each was taken: what guards it lies in that function's frame
        for name, holder in (("first", "second"), ("second", "first")):
            frames = snapshot.thread(holder)["frames"]
            self.assertEqual([frames[owner["frame"]]["symbol"] for owner in
                              snapshot.thread(name)["wait"]["owner_frames"]],
                             [holder + "_routine(void*)"])

    def test_where_it_was_taken_in_text(self):
        text = self.run_tool(self.start("cpplocks").pid).stdout.decode()
        for name in ("first", "second"):
            self.assertRegex(text, r"    holds [^,\n]*\n    referred to by %s_routine\(void\*\) at "
                             r"\S*cpplocks.cc:\d+\n" % name)


SOURCE = os.environ.get("SOURCE", ".")


def line_after(path, start, text):
    """Returns the number of the first line with this text after the beginning of a function."""
    with open(path) as file:
        lines = file.read().splitlines()
    begin = next(i for i, line in enumerate(lines) if start in line)
    return next(i for i in range(begin, len(lines)) if text in lines[i]) + 1


class OtherLibraries(LockCase):
    """Programs that are built here, if their compilers are installed."""

    def build(self, name, *command):
        if not shutil.which(command[0]):
            self.skipTest(command[0] + " is not installed")
        directory = self.enterContext(tempfile.TemporaryDirectory())
        path = os.path.join(directory, name)
        subprocess.run([*command, "-o", path], check=True, timeout=LIMIT_S,
                       stdout=subprocess.DEVNULL)
        return path

    def start_built(self, path, *arguments):
        target = self.start_command([path, *map(str, arguments)])
        wait_until(lambda: reads_stdin(target.pid), path + " to wait")
        return target

    def musl(self, name, *options):
        return self.build(name, "musl-gcc", "-g", "-O2", "-D_GNU_SOURCE", *options,
                          *(os.path.join(SOURCE, "targets", source + ".c")
                            for source in (name, "target")))

    def test_where_a_global_was_taken(self):
        """The function that took a global lock has its address in its code."""
        source = os.path.join(SOURCE, "targets", "deadlock.c")
        sources = [source, os.path.join(SOURCE, "targets", "target.c")]
        for options in (("-O2",), ("-O0",), ("-O2", "-no-pie"), ("-O1", "-static"),
                        ("-O2", "-fno-plt")):
            path = self.build("deadlock", "gcc", "-g", "-pthread", "-D_GNU_SOURCE", *options,
                              *sources)
            target = self.start_built(path, "globals")
            snapshot = self.snap(target.pid, mode="stop")
            self.assertEqual(len(snapshot.data["deadlocks"]), 1, options)
            for waiter, holder, function, lock in (
                    ("locker-0", "locker-1", "second_then_first", "&second"),
                    ("locker-1", "locker-0", "first_then_second", "&first")):
                with self.subTest(options=options, waiter=waiter):
                    owner, = snapshot.thread(waiter)["wait"]["owner_frames"]
                    frame = snapshot.thread(holder)["frames"][owner["frame"]]
                    self.assertEqual(frame["symbol"], function)
                    self.assertEqual(owner["file"], source)
                    self.assertEqual(owner["line"], line_after(source, "void " + function, lock))
            text = self.run_tool(target.pid).stdout.decode()
            self.assertRegex(text, r"    referred to by first_then_second at \S*deadlock.c:%d\n" %
                             line_after(source, "void first_then_second", "&first"))
            target.kill()

    def test_musl_deadlocks(self):
        kinds = (("errorcheck", True), ("recursive", True), ("robust", True), ("normal", False))
        for options, wanted in (((), kinds), (("-static",), kinds[:1])):
            path = self.musl("deadlock", *options)
            for kind, known in wanted:
                target = self.start_built(path, kind, 3, 1)
                # musl has no unwind information, so that frames are guesses
                snapshot = self.snap(target.pid, mode="stop", status=(0, 1))
                with self.subTest(kind=kind, options=options):
                    owner = snapshot.thread("locker-1")["tid"] if known else None
                    wait = snapshot.thread("locker-0")["wait"]
                    self.assertRegex(wait["text"], r"mutex mutexes\+0x28 ")
                    self.assertEqual(wait["owner_tid"], owner)
                    self.assertEqual([len(d["tids"]) for d in snapshot.data["deadlocks"]],
                                     [3] if known else [])
                    if not known:
                        self.assertEqual(wait["owner_unknown"], "not-recorded")
                target.kill()

    def test_musl_waits(self):
        snapshot = self.snap(self.start_built(self.musl("lockwaits")).pid, mode="stop",
                             status=(0, 1))
        self.check_waits(snapshot, {
            "wants-read": ("rwlock", r"^read access to rwlock held_shared .*not record its owner", None),
            "wants-read-held": ("rwlock", r"read_shared .*held by 1 reader", None),
            "sem-waiter": ("semaphore", r"^semaphore empty_sem .*, value 0$", None),
            "joins-reader": ("join", r"^thread \d+ \(.* to end$", "reads-pipe"),
            "join-a": ("join", r"^thread \d+ \(.* to end$", "join-b"),
            "join-b": ("join", r"^thread \d+ \(.* to end$", "join-a"),
        })
        self.assertEqual(snapshot.thread("nobody-signals")["wait"]["kind"], "condvar")
        self.assertEqual(snapshot.thread("barrier-waiter")["wait"]["kind"], "barrier")

    def test_rust(self):
        path = self.build("rustlocks", "rustc", "-O", "-g",
                          os.path.join(SOURCE, "targets", "rustlocks.rs"))
        snapshot = self.snap(self.start_built(path).pid, mode="stop")
        no_owner = "this type of lock does not record its owner$"
        self.check_waits(snapshot, {
            "ab": ("mutex", "^Rust Mutex at 0x.*" + no_owner, None),
            "ba": ("mutex", "^Rust Mutex at 0x.*" + no_owner, None),
            "reader": ("rwlock", "^read access to Rust RwLock .*" + no_owner, None),
            "writer": ("rwlock", "^write access to Rust RwLock .*" + no_owner, None),
            "condvar": ("condvar", "Rust Condvar", None),
            "parked": ("futex", "unpark", None),
        })
        self.assertEqual(snapshot.data["deadlocks"], [])


class Deadlocks(EndToEnd):
    def names(self, snapshot, tids):
        return [snapshot.thread(tid)["name"] for tid in tids]

    def check(self, snapshot, cycle, behind):
        """Checks that the only deadlock is this cycle, listed from any of its members on."""
        self.assertEqual(len(snapshot.data["deadlocks"]), 1, snapshot.data["deadlocks"])
        deadlock = snapshot.data["deadlocks"][0]
        names = self.names(snapshot, deadlock["tids"])
        first = cycle.index(names[0])
        self.assertEqual(names, cycle[first:] + cycle[:first])
        self.assertEqual((deadlock["behind"], deadlock["timed"]), (behind, False))

    def test_cycles(self):
        for kind, count, behind in (("normal", 2, 1), ("normal", 5, 3), ("normal", 1, 2),
                                    ("errorcheck", 2, 0), ("recursive", 3, 1),
                                    ("robust", 2, 1), ("robust", 1, 0), ("shared", 2, 1),
                                    ("c11", 2, 0), ("adaptive", 2, 1)):
            target = self.start("deadlock", kind, count, behind)
            modes = ("stop", "live", "auto") if kind == "normal" else ("stop", "auto")
            for mode in modes:
                with self.subTest(kind=kind, count=count, mode=mode):
                    for _ in range(TORN_TRIES):  # until those behind have come to wait
                        snapshot = self.snap(target.pid, "--mode=" + mode)
                        if sum(thread["wait"] is not None and thread["wait"]["owner_tid"] is not None
                               for thread in snapshot.threads) == count + behind and (
                                   snapshot.data["capture"]["consistent"]):
                            break
                    self.check(snapshot, ["locker-%d" % i for i in range(count)], behind)
            target.kill()

    def test_no_deadlock(self):
        """A thread that locks its own mutex again: these types refuse or allow it."""
        for kind in ("errorcheck", "recursive"):
            target = self.start("deadlock", kind, 1, 2)
            snapshot = self.snap(target.pid, mode="stop")
            self.assertEqual(snapshot.data["deadlocks"], [])
            self.assertEqual(snapshot.data["blockers"], [
                {"tid": snapshot.thread("locker-0")["tid"], "waiting": 2, "locks": 1}])
            target.kill()

    def test_joins_and_blockers(self):
        target = self.start("lockwaits")
        snapshot = self.snap(target.pid, mode="stop")
        self.check(snapshot, ["join-a", "join-b"], 0)
        blockers = [(snapshot.thread(b["tid"])["name"], b["waiting"], b["locks"])
                    for b in snapshot.data["blockers"]]
        # wants-mutex, -timed, -read, -write, -behind, joins-reader; two locks and second_lock
        self.assertEqual(blockers, [("reads-pipe", 6, 3), ("once-first", 1, 1), ("locks-stream", 1, 1)])

    def test_threads_that_stop_late(self):
        """One of them gets so little CPU time that the others are released before it has
        stopped. Then all of them are checked again."""
        cpus = os.sched_getaffinity(0)
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        except PermissionError:
            self.skipTest("only a process with CAP_SYS_NICE can take a CPU from others")
        if len(cpus) < 2 or read_text("/proc/sys/kernel/sched_rt_runtime_us").startswith("-1"):
            self.skipTest("there is no CPU for anything else")
        target = self.start("lockwaits")
        tid = self.snap(target.pid, mode="no-stop", status=(0, 1)).thread("join-a")["tid"]
        os.sched_setaffinity(tid, {max(cpus)})
        self.start_command([sys.executable, "-c", HOG, str(max(cpus))])
        self.addCleanup(os.sched_setaffinity, 0, cpus)
        os.sched_setaffinity(0, cpus - {max(cpus)})  # the tool's, too
        proven = 0
        for _ in range(TORN_TRIES):
            wait_until(lambda: task_states(target.pid)[tid] == "S", "the thread to wait")
            snapshot = self.snap(target.pid, mode="stop")
            torn = not snapshot.data["capture"]["consistent"]
            # it may not be back in its wait when the tool gives up
            if not torn or snapshot.data["deadlocks"]:
                self.check(snapshot, ["join-a", "join-b"], 0)
                proven += torn
            if proven == 2:
                return
        self.fail("of %d snapshots only %d were inconsistent and showed the deadlock" % (
            TORN_TRIES, proven))

    def start_in_namespace(self, *arguments):
        self.need_namespaces()
        outer = self.start_command(["unshare", "--pid", "--fork", "--kill-child",
                                    "--mount-proc", os.path.join(TARGETS, "deadlock"),
                                    *arguments])
        children = read_text("/proc/%d/task/%d/children" % (outer.pid, outer.pid)).split()
        self.assertEqual(len(children), 1)
        pid = int(children[0])
        wait_until(lambda: reads_stdin(pid), "the target to wait")
        return pid

    def test_in_a_pid_namespace(self):
        """Lock words contain thread ids of the namespace."""
        for kind in ("normal", "robust", "shared", "pi"):
            snapshot = self.snap(self.start_in_namespace(kind, "2", "1"), mode="stop")
            if kind != "pi":  # the kernel may refuse one of the two
                self.check(snapshot, ["locker-0", "locker-1"], 1)
            self.assertTrue(snapshot.thread("behind-0")["wait"]["owner_tid"], kind)
            for thread in snapshot.threads:
                self.assertNotEqual(thread["tid"], thread["inner_tid"])

    def test_selected_threads(self):
        """Owners and deadlocks are those of the whole process, whichever threads are shown."""
        target = self.start("deadlock", "normal", 2, 3)
        whole = self.snap(target.pid)
        for name, words in (("locker-0", ["--thread=%d"]), ("behind-1", ["--thread=%d"]),
                            ("behind-0", ["--thread=^behind-0$"])):
            thread = whole.thread(name)
            words = [word % thread["tid"] if "%" in word else word for word in words]
            one = self.snap(target.pid, *words)
            self.assertEqual([t["name"] for t in one.threads], [name])
            self.assertEqual(one.threads[0]["wait"], thread["wait"])
            self.assertEqual([set(d["tids"]) for d in one.data["deadlocks"]],
                             [set(d["tids"]) for d in whole.data["deadlocks"]])
            text = self.run_tool(*words, target.pid).stdout.decode()
            self.assertIn("\nDEADLOCK: 2 threads wait for each other", text)
            self.assertEqual(text.count("sleeping, not paused: "), 1, text)
            graph = self.run_tool("-f", "dot", *words, target.pid).stdout.decode()
            self.assertIn("t%d -> t%d" % (thread["tid"], thread["wait"]["owner_tid"]), graph)
        target = self.start("deadlock", "normal", 1, 1)
        tid = self.snap(target.pid).thread("locker-0")["tid"]
        self.assertIn("Self-deadlock, unless another thread unlocks it",
                      self.run_tool("--thread=%d" % tid, target.pid).stdout.decode())

    def text_of_one_moment(self, pid, *words, status=(0,)):
        """On a machine under load a thread may not stop in time. Then those that wait for the lock of
        another one are not known to have waited at the same time."""
        for _ in range(TORN_TRIES):
            text = self.run_tool(*words, pid, status=status).stdout.decode()
            if "not atomic" not in text:
                break
        return text

    def test_text(self):
        target = self.start("deadlock", "normal", 2, 3)
        text = self.text_of_one_moment(target.pid, "--mode=stop")
        self.assertRegex(text, r"(?s)^[^\n]*\n[^\n]*\n\nDEADLOCK: 2 threads wait for each "
                         r"other in a cycle; 3 more wait for them:\n  \d+ \(locker-0\) waits "
                         r"for mutex mutexes\+0x28 \(0x[0-9a-f]+\), held by \d+ "
                         r"\(locker-1\)\n    in take at [^\n]*deadlock.c:\d+\n    called from "
                         r"take_next at [^\n]*\n    holds mutex mutexes \(0x[0-9a-f]+\)\n"
                         r"  \d+ \(locker-1\) waits for .*\n    holds mutex mutexes\+0x28 ")
        target = self.start("lockwaits")
        text = self.text_of_one_moment(target.pid, "--mode=stop")
        self.assertRegex(text, r"\n6 threads wait, through 3 locks, for thread \d+ "
                         r"\(reads-pipe\), which waits for ")

    def test_text_of_a_self_deadlock(self):
        """Any other thread may unlock a normal mutex."""
        target = self.start("deadlock", "normal", 1, 1)
        heading = (r"\n\nSelf-deadlock, unless another thread unlocks it: a thread "
                   r"waits for a lock that it holds; 1 more waits for them:\n  \d+ \(locker-0\)")
        for words, status in ((("--mode=stop",), 0), (("hang", "--for=300ms"), 3)):
            text = self.text_of_one_moment(target.pid, *words, status=(status,))
            self.assertRegex(text, heading)
            self.assertNotIn("DEADLOCK", text)

    def test_text_of_a_cycle_with_time_limits(self):
        target = self.start("deadlock", "timed", 2, 1)
        for word, *words in (("Contention with a time limit", "--mode=stop"),
                             ("Contention with a time limit",),
                             ("Stuck, although a time limit ends each wait", "hang", "--for=300ms")):
            text = self.text_of_one_moment(target.pid, *words, status=(0, 4))
            self.assertRegex(text, r"\n\n" + word + ": 2 threads wait for each "
                             r"other in a cycle; 1 more waits for them:\n  \d+ \(locker-0\)")
            self.assertNotIn("DEADLOCK", text)

    def test_color(self):
        """On a terminal the owner of a lock is highlighted."""
        target = self.start("deadlock", "normal", 2, 1)
        for words, status in ((("--mode=stop",), 0), (("hang", "--for=100ms"), 3)):
            ours, theirs = open_terminal(self)
            environment = {**os.environ, "TERM": "xterm"}
            environment.pop("NO_COLOR", None)
            tool = subprocess.Popen([STACKSNAP, *words, str(target.pid)], stdout=theirs,
                                    stdin=subprocess.DEVNULL, env=environment)
            os.close(theirs)
            with os.fdopen(ours, "rb", buffering=0) as terminal:
                text = b""
                try:
                    while part := terminal.read(4096):
                        text += part
                except OSError:  # the other end was closed
                    pass
            self.assertEqual(tool.wait(LIMIT_S), status)
            owned = re.findall(r"held by \033\[33m\d+ \((\S+)\)\033\[0m", text.decode())
            self.assertGreaterEqual(len(owned), 4, text)
            self.assertEqual(set(owned), {"locker-0", "locker-1"})

    def test_graph(self):
        """Graphviz accepts it, even with a thread name that tries to end its string."""
        target = self.start("lockwaits", '"];a->b[\\"\n')
        graph = self.run_tool("-f", "dot", "--mode=stop", target.pid).stdout
        self.assertEqual(graph.count(b'", color=red];'), 2, graph)
        if not shutil.which("dot"):
            self.skipTest("Graphviz is not installed")
        svg = subprocess.run(["dot", "-Tsvg"], input=graph, stdout=subprocess.PIPE,
                             check=True, timeout=60).stdout.decode()
        self.assertEqual(len(re.findall(r'class="edge"', svg)), 10, svg)
        self.assertIn("a&#45;&gt;b[", svg)


if __name__ == "__main__":
    main()
