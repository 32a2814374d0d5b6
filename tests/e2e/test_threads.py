"""threads, in five kinds of wait; busy threads; a frame at the end of its function."""
# ctest: quick

from harness import (EndToEnd, Library, MAIN_STACK, MODES, Named, THREAD_END, main)

WAITS = {
    "poll": [Named("poll")],
    "nanosleep": [Named("clock_nanosleep"), Named("nanosleep")],
    "cond": [Library(3), Named("pthread_cond_wait")],
    "futex": [Named("syscall")],
    "read": [Named("read")],
}


def descent(depth):
    """The innermost is descend_even, and they alternate."""
    return ["descend_odd" if i % 2 else "descend_even" for i in range(depth)]


def thread_stack(kind, depth):
    return (WAITS[kind] + ["wait_in_" + kind] + descent(depth) + ["thread_routine"] +
            THREAD_END)


class Threads(EndToEnd):
    def check(self, snapshot, per_kind, depth):
        self.assertEqual(len(snapshot.threads), 1 + per_kind * len(WAITS))
        self.assert_stack(snapshot, "threads", MAIN_STACK)
        for kind in WAITS:
            for index in range(per_kind):
                thread = self.assert_stack(snapshot, "%s-%d" % (kind, index),
                                           thread_stack(kind, depth))
                self.assertEqual(thread["state"], "S")

    def test_every_wait_at_many_depths(self):
        for depth in (0, 1, 2, 5, 100, 900):
            target = self.start("threads", 2, depth)
            for mode in MODES:
                with self.subTest(mode=mode, depth=depth):
                    self.check(self.snap(target.pid, mode=mode), 2, depth)
            self.assertEqual(target.finish()[0], 0)

    def test_five_hundred_threads(self):
        target = self.start("threads", 100, 10)
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode)
                self.assertEqual(snapshot.data["capture"]["threads_stopped"], 501)
                self.check(snapshot, 100, 10)

    def test_snapshots_are_atomic(self):
        """Not if other work keeps a thread from its stop for 20 ms, but that does not happen
        twenty times in a row."""
        target = self.start("threads", 2, 3)
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshots = (self.snap(target.pid, mode=mode) for _ in range(20))
                self.assertTrue(any(snapshot.data["capture"]["consistent"]
                                    for snapshot in snapshots))

    def test_source_lines(self):
        target = self.start("threads", 1, 1)
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode)
                for frame in snapshot.thread("poll-0")["frames"]:
                    if frame["symbol"] in ("wait_in_poll", "descend_even",
                                           "thread_routine"):
                        self.assertTrue(frame["file"].endswith("targets/threads.c"))
                        with open(frame["file"]) as file:
                            line = file.readlines()[frame["line"] - 1]
                        self.assertRegex(line, r"poll\(NULL|place->wait\(|descend_even\(")

    def test_only_some_threads(self):
        target = self.start("threads", 2, 3)
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, "--thread=^futex-", mode=mode)
                self.assertEqual(sorted(t["name"] for t in snapshot.threads),
                                 ["futex-0", "futex-1"])
                tid = snapshot.threads[0]["tid"]
                one = self.snap(target.pid, "--thread=%d" % tid, mode=mode)
                self.assertEqual([t["tid"] for t in one.threads], [tid])
                self.assert_stack(one, tid, thread_stack("futex", 3))


class Busy(EndToEnd):
    def test_spinning_threads(self):
        """More of them than processors; each is interrupted at its depth."""
        target = self.start("busy", 20, 7)
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode)
                for index in range(20):
                    thread = self.assert_stack(
                        snapshot, "busy-%d" % index,
                        ["spin"] + ["descend"] * 7 + ["thread_routine"] + THREAD_END)
                    self.assertEqual(thread["state"], "R")


class NoReturn(EndToEnd):
    def test_call_as_the_last_instruction(self):
        target = self.start("noreturn")
        for mode in MODES:
            with self.subTest(mode=mode):
                self.assert_stack(self.snap(target.pid, mode=mode), "caller", [
                    Named("poll"), "target_block", "never_returns", "calls_last",
                    "calls_first", "thread_routine"] + THREAD_END)


class PauseMeter(EndToEnd):
    def test_blocked_threads_beside_a_spinning_one(self):
        target = self.start("pause_meter", 10, 20)
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode)
                for index in range(10):
                    self.assert_stack(snapshot, "blocked-%d" % index,
                                      [Named("poll"), "target_block"] + ["descend"] * 20 +
                                      ["block_routine"] + THREAD_END)
                # inlined: what measure calls in its own file
                self.assert_stack(snapshot, "meter", [
                    Library(4), "measure", "thread_routine"] + THREAD_END)

    def test_frames_of_the_vdso(self):
        """The thread spends most of its time there: some of the snapshots must show it."""
        target = self.start("pause_meter", 0, 0)
        for mode in MODES:
            with self.subTest(mode=mode):
                for _ in range(100):
                    snapshot = self.snap(target.pid, "--thread=^meter$", mode=mode)
                    thread = snapshot.thread("meter")
                    self.assertEqual(thread["end"], "root")
                    module = snapshot.module(thread["frames"][0])
                    if module and module["path"] == "[vdso]":
                        self.assertIn("clock_gettime", thread["frames"][0]["symbol"])
                        break
                else:
                    self.fail("not once in 100 snapshots")


if __name__ == "__main__":
    main()
