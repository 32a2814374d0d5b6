"""deep: 50,000 frames, and the limits on frames and bytes. other_stack: stacks in several
mappings."""
# ctest: quick long-with-sanitizers

from harness import CANCELLATION, EndToEnd, MAIN_STACK, MODES, Named, THREAD_END, main


def descent(depth):
    names = ("sink_a", "sink_b", "sink_c")
    return [names[i % 3] for i in range(depth)]


def whole(depth):
    return [Named("poll"), "target_block"] + descent(depth) + ["thread_routine"] + THREAD_END


class Deep(EndToEnd):
    def test_fifty_thousand_frames(self):
        """Stacks of some mebibytes are whole. With a lower limit the output says that the stack
        is truncated."""
        target = self.start("deep", 50000)
        for mode in ("auto", "stop"):
            with self.subTest(mode=mode, limit="default"):
                snapshot = self.snap(target.pid, "-n", 0, mode=mode)
                self.assert_stack(snapshot, "recursion", whole(50000))
        snapshot = self.snap(target.pid, "-n", 0, "--max-stack=256", mode="stop", status=(1,))
        thread = snapshot.thread("recursion")
        count = len(snapshot.frames(thread))
        self.assertGreater(count, 1000)
        self.assert_stack(snapshot, "recursion", whole(50000)[:count], end="limit")
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, "-n", 0, "--max-stack=16384", mode=mode)
                self.assert_stack(snapshot, "recursion", whole(50000))

    def test_total(self):
        """Of many deep stacks each gets its share, and the limit holds for all of them."""
        target = self.start("deep", 5000, 40)
        for mode in ("auto", "stop"):
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, "-n", 0, "--max-total=1", mode=mode, status=(1,))
                threads = [t for t in snapshot.threads if t["name"] == "recursion"]
                self.assertEqual(len(threads), 40)
                for thread in threads:
                    self.assertGreater(len(thread["frames"]), 100, thread)
                    if thread["end"] != "root":
                        self.assertIn("--max-total", thread["reason"], thread["end"])
                self.assertLessEqual(snapshot.data["capture"]["copied_bytes"], 1 << 20)
        snapshot = self.snap(target.pid, "-n", 0)
        self.assertEqual({t["end"] for t in snapshot.threads}, {"root"})

    def test_frames_per_thread(self):
        below = len(CANCELLATION)
        target = self.start("deep", 3000)
        for mode in MODES:
            for words, count in (((), 1024 - below), (("-n", 7 + below), 7),
                                 (("--max-frames=%d" % (1 + below), ), 1)):
                with self.subTest(mode=mode, count=count):
                    snapshot = self.snap(target.pid, "--thread=^recursion$", *words,
                                         mode=mode, status=(1,))
                    # A recursion that is cut is followed by the functions that began it.
                    begin = whole(3000)[-4:] if count > 7 and mode != "live" else []
                    thread = self.assert_stack(snapshot, "recursion",
                                               whole(3000)[:count] + begin, end="frames")
                    frames = snapshot.frames(thread)
                    self.assertEqual(len(frames), count + len(begin))
                    omitted = len(whole(3000)) - count - len(begin) if begin else 0
                    self.assertEqual([f["omitted"] for f in frames if f["omitted"]],
                                     [omitted] if omitted else [])
            with self.subTest(mode=mode, count="all"):
                snapshot = self.snap(target.pid, "-n", 0, mode=mode)
                self.assert_stack(snapshot, "recursion", whole(3000))

    def test_exactly_as_many_as_the_limit(self):
        """With glibc 2.36, poll, target_block, thread_routine, target_thread_main, start_thread, clone3
        are six: with 1,018 more the stack is complete at 1,024 frames."""
        count = 1018 - len(CANCELLATION)
        target = self.start("deep", count)
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode)
                thread = self.assert_stack(snapshot, "recursion", whole(count))
                self.assertEqual(len(thread["all_frames"]), 1024)


class OtherStack(EndToEnd):
    """Stacks in several mappings."""

    descent = 500 * ["descend"]

    def test_whole(self):
        target = self.start("other_stack")
        for mode in ("auto", "stop"):
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, "-n", 0, mode=mode)
                self.assert_stack(snapshot, "sleeper", [Named("poll"), "target_block"] +
                                  self.descent + ["run_there", "call_on_stack",
                                                  "thread_routine"] + THREAD_END)
                self.assert_stack(snapshot, "runner", ["spin"] + self.descent +
                                  ["deep_routine"] + THREAD_END)
                self.assert_stack(snapshot, "leaf", ["spin_leaf", "call_on_stack",
                                                     "leaf_routine"] + THREAD_END)
                self.assert_stack(snapshot, target.pid, [Named("read"), "target_wait",
                                                         "wait_there", "call_on_stack"] +
                                  MAIN_STACK[2:])

    def test_limit(self):
        """A given limit holds."""
        target = self.start("other_stack")
        snapshot = self.snap(target.pid, "-n", 0, "--max-stack=128", status=(1,))
        self.assertEqual(snapshot.thread("sleeper")["end"], "limit")
        self.assertEqual(snapshot.thread("runner")["end"], "limit")


if __name__ == "__main__":
    main()
