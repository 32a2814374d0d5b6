"""cplusplus: names, inlined calls and exceptions, against the stacks in its comment."""
# ctest: quick

import re

from harness import EndToEnd, Library, MAIN_STACK, MODES, Named, THREAD_END, main

TOP = [Named("poll"), "target_block"]
END = ["thread_routine(void*)"] + THREAD_END
STACKS = {
    "template": ["void shapes::descend<%d, int>(int)" % level for level in range(4)] + [
        "shapes::stack<char, 8ul>::run() const", "run_template()"],
    "destructor": ["guard::~guard()", "hold_guard()", "run_destructor()"],
    "handler": ["handle(std::exception const&)", "run_handler()"],
    "terminate": ["on_terminate()", Library(8), Named("__cxa_throw"), "throw_it()",
                  "never_throws()", "run_terminate()"],
    "lambda": ["run_lambda()::{lambda(int)#1}::operator()(int) const",
               "std::_Function_handler<void (int), run_lambda()::{lambda(int)#1}>::"
               "_M_invoke(std::_Any_data const&, int&&)",
               "call_function(std::function<void (int)> const&)", "run_lambda()"],
}
INLINED = ["inner_inlined", "middle_inlined", "outer_inlined"]


class CPlusPlus(EndToEnd):
    def test_stacks(self):
        target = self.start("cplusplus")
        for mode in MODES:
            snapshot = self.snap(target.pid, mode=mode)
            for name, middle in STACKS.items():
                with self.subTest(mode=mode, thread=name):
                    self.assert_stack(snapshot, name, TOP + middle + END)
            with self.subTest(mode=mode, thread="main"):
                self.assert_stack(snapshot, "cplusplus", MAIN_STACK)

    def test_long_names(self):
        """Complete in JSON; the text truncates them and says by how much."""
        target = self.start("cplusplus")
        snapshot = self.snap(target.pid)
        frames = [frame for frame in snapshot.frames(snapshot.thread("long-names"))
                  if not (frame["symbol"] or "").startswith("void call_listed")]
        names = [frame["symbol"] for frame in frames]
        self.assertEqual(names[2], "void listed<%s>()" % ", ".join(map(str, range(900))))
        pair = "int"
        for _ in range(13):
            pair = "names::pair<%s, %s%s>" % (pair, pair, " " if pair[-1] == ">" else "")
        self.assertGreater(len(pair), 100000)
        self.assertEqual(names[3], "void doubled<%s >()" % pair)
        self.assertEqual(names[4], "run_long_names()")
        text = self.run_tool("-a", target.pid).stdout.decode()
        self.assertRegex(text, r"void listed<0, 1, [0-9, ]+\.\.\.\(\d+ more\)\+0x")
        self.assertIn(names[3], self.run_tool("-v", target.pid).stdout.decode())

    def test_inlined_calls(self):
        target = self.start("cplusplus")
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode)
                frames = snapshot.frames(snapshot.thread("inline"))
                names = [re.sub(r"\(\)$", "", frame["symbol"]) for frame in frames[2:6]]
                self.assertEqual(names, INLINED + ["run_inline"])
                self.assertEqual([frame["inlined"] for frame in frames[2:6]],
                                 [True, True, True, False])
                # one machine frame: the same pc, and a line for each function
                self.assertEqual(len({frame["pc"] for frame in frames[2:6]}), 1)
                for frame, callee in zip(frames[2:6], ["target_block"] + INLINED):
                    with open(frame["file"]) as file:
                        line = file.readlines()[frame["line"] - 1]
                    # the line of a return address minus one is that of the call
                    self.assertIn(callee + "()", line)

    def test_without_inlined_calls(self):
        target = self.start("cplusplus")
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, "--no-inlines", mode=mode)
                self.assert_stack(snapshot, "inline", TOP + ["run_inline()"] + END)
                for thread in snapshot.threads:
                    self.assertFalse(any(f["inlined"] for f in thread["frames"]))

    def test_without_demangling(self):
        target = self.start("cplusplus")
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, "--no-demangle", mode=mode)
                self.assert_stack(snapshot, "template", TOP + [
                    "_ZN6shapes7descendILi%dEiEEvT0_" % level for level in range(4)] + [
                    "_ZNK6shapes5stackIcLm8EE3runEv", "_Z12run_templatev",
                    "_Z14thread_routinePv"] + THREAD_END)

    def test_without_source(self):
        target = self.start("cplusplus")
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, "--no-source", mode=mode)
                for thread in snapshot.threads:
                    for frame in thread["frames"]:
                        self.assertIsNone(frame["file"])
                        self.assertIsNone(frame["line"])


if __name__ == "__main__":
    main()
