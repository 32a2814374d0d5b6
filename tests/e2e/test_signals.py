"""sighandler: handlers on both kinds of stack, faults, and handlers in handlers."""
# ctest: quick

from harness import AnyOf, EndToEnd, MAIN_STACK, MODES, Named, THREAD_END, main

HANDLER = [Named("poll"), "target_block", "on_signal", AnyOf("__restore_rt", None)]
END = ["thread_routine"] + THREAD_END
STACKS = {
    "normal": HANDLER + ["spin", "run_normal"] + END,
    "altstack": HANDLER + ["spin", "run_altstack"] + END,
    "first-insn": HANDLER + ["fault_at_once", "run_first_insn"] + END,
    "null-call": HANDLER + [AnyOf(None), "run_null_call"] + END,
    "nested": HANDLER + ["spin", "on_outer_signal", AnyOf("__restore_rt", None), "spin",
                         "run_nested"] + END,
}


class Signals(EndToEnd):
    def test_handlers(self):
        target = self.start("sighandler")
        for mode in MODES:
            snapshot = self.snap(target.pid, "--strict", mode=mode, status=(0, 1))
            for name, stack in STACKS.items():
                with self.subTest(mode=mode, thread=name):
                    thread = self.assert_stack(snapshot, name, stack)
                    marked = [frame["signal_frame"] for frame in snapshot.frames(thread)]
                    self.assertEqual(marked, [
                        isinstance(step, AnyOf) and "restore_rt" in step.names
                        for step in stack])
            with self.subTest(mode=mode, thread="main"):
                self.assert_stack(snapshot, "sighandler", MAIN_STACK)
            # "null-call": the caller is found on the stack, without unwind information
            self.assertEqual(snapshot.status, 1)
            self.assertIn("not certain", snapshot.stderr)

    def test_null_pc_is_shown(self):
        target = self.start("sighandler")
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode, status=(0, 1))
                frame = snapshot.frames(snapshot.thread("null-call"))[4]
                self.assertEqual(int(frame["pc"], 16), 0)
                self.assertIsNone(frame["module"])


if __name__ == "__main__":
    main()
