"""The layouts that other programs read, parsed with the rules of common scripts.

gdb: pt-pmp and stackcollapse-gdb start a thread at a line "Thread N". A name in a
line "#N ..." is the word after " in ", or else the second word.
eu: stackcollapse-elfutils starts a thread at "TID N:". A name in "#N  0xPC NAME" is the
rest of the line after the address.
folded: flame graph tools take the last word as the count and split the rest at ";".
"""
# ctest: quick

import collections
import re

from harness import CANCELLATION, EndToEnd, MODES, canonical, main

DEPTH = 4


def parse_gdb_pt_pmp(text):
    """As pt-pmp: a thread's line begins with "Thread"; the name is the field after "in",
    else the second field. Returns the names of each thread, innermost first."""
    stacks, stack = [], None
    for line in text.splitlines():
        if re.match(r"^Thread ", line):
            stack = []
            stacks.append(stack)
        elif re.match(r"^#", line) and stack is not None:
            fields = line.split()
            stack.append(fields[3] if len(fields) > 3 and fields[2] == "in" else fields[1])
    return stacks


def parse_gdb_collapse(text):
    """As stackcollapse-gdb: from "Thread" to the empty line; a frame is
    "#N [0xPC in ]NAME (ARGUMENTS) ...", its name the text before " (" or "@"."""
    stacks, stack = [], None
    for line in text.splitlines():
        if re.match(r"^Thread (\d+)", line):
            stack = []
            stacks.append(stack)
        elif not line.strip():
            stack = None
        elif stack is not None:
            found = re.match(r"^#(\d+)\s+(?:0x[0-9a-f]+ in )?(.+?)(?:@\S*)? \(", line)
            if found:
                if int(found.group(1)) != len(stack):
                    raise AssertionError("frame out of order: " + line)
                stack.append(found.group(2))
    return stacks


def parse_eu(text):
    """As stackcollapse-elfutils."""
    stacks, stack = {}, None
    for line in text.splitlines():
        thread = re.match(r"^TID (\d+):$", line)
        frame = re.match(r"^#(\d+)\s+0x[0-9a-f]{16}(?: - 1)? ?(.*)$", line)
        if thread:
            stack = stacks.setdefault(int(thread.group(1)), [])
        elif frame:
            if int(frame.group(1)) != len(stack):
                raise AssertionError("frame out of order: " + line)
            stack.append(frame.group(2).split("@")[0])
        elif not re.match(r"^PID \d+ - process$", line):
            raise AssertionError("unexpected line: " + line)
    return stacks


def parse_folded(text):
    stacks = []
    for line in text.splitlines():
        names, _, count = line.rpartition(" ")
        parts = names.split(";")
        stacks.append((parts[0], parts[1], parts[2:], int(count)))
    return stacks


def known(name):
    """None for module+0xoffset and ??, which stand for frames without a symbol."""
    return None if re.search(r"^\?\?$|\+0x[0-9a-f]+$", name) else canonical(name)


def below_calls(names):
    return [name for name in map(known, names) if name not in CANCELLATION]


def descent():
    return ["descend_odd" if i % 2 else "descend_even" for i in range(DEPTH)]


class Formats(EndToEnd):
    """Compares names with the JSON of the same process, which does not change. The expected
    stacks start at wait_in_...: the inner frames are in libc and may be inlined."""

    def setUp(self):
        self.target = self.start("threads", 2, DEPTH)

    def text(self, form, mode, *words):
        return self.run_tool("-f", form, "--mode=" + mode, *words,
                             self.target.pid).stdout.decode()

    def expected(self, mode, *words):
        """tid: all names, innermost first."""
        snapshot = self.snap(self.target.pid, *words, mode=mode)
        return {thread["tid"]: [canonical(f["symbol"]) for f in thread["frames"]]
                for thread in snapshot.threads}

    def check_names(self, stacks, expected):
        """Checks for the same stacks as in the JSON, and for the expected ones."""
        self.assertEqual(collections.Counter(tuple(below_calls(s)) for s in stacks),
                         collections.Counter(map(tuple, expected)))
        for kind in ("poll", "nanosleep", "cond", "futex", "read"):
            promised = ["wait_in_" + kind] + descent() + [
                "thread_routine", "target_thread_main"]
            found = [s for s in stacks if promised[0] in s]
            self.assertEqual(len(found), 2, kind)
            for stack in found:
                at = stack.index(promised[0])
                self.assertEqual(stack[at:at + len(promised)], promised)

    def test_gdb_parsed_like_pt_pmp(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                self.check_names(parse_gdb_pt_pmp(self.text("gdb", mode)),
                                 self.expected(mode).values())

    def test_gdb_parsed_like_stackcollapse(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                self.check_names(parse_gdb_collapse(self.text("gdb", mode)),
                                 self.expected(mode).values())

    def test_gdb_threads(self):
        """Every thread is listed with its LWP and name, even if stacks are equal."""
        for mode in MODES:
            with self.subTest(mode=mode):
                found = re.findall(
                    r'^Thread (\d+) \(Thread 0x[0-9a-f]+ \(LWP (\d+)\) "([^"]*)"\):$',
                    self.text("gdb", mode), re.M)
                snapshot = self.snap(self.target.pid, mode=mode)
                self.assertEqual({(int(tid), name) for _, tid, name in found},
                                 {(t["tid"], t["name"]) for t in snapshot.threads})
                self.assertEqual([int(number) for number, _, _ in found],
                                 list(range(len(found), 0, -1)))

    def test_eu_parsed_like_stackcollapse(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                stacks = parse_eu(self.text("eu", mode, "--no-inlines"))
                expected = self.expected(mode, "--no-inlines")
                self.assertEqual(set(stacks), set(expected))
                for tid, names in stacks.items():
                    self.assertEqual(below_calls(names), expected[tid])
                self.check_names(stacks.values(), expected.values())

    def test_eu_has_no_inlined_calls(self):
        """eu-stack shows them only with -i; the layout is that without options."""
        for mode in MODES:
            with self.subTest(mode=mode):
                self.assertEqual(self.text("eu", mode),
                                 self.text("eu", mode, "--no-inlines"))

    def test_folded(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                stacks = parse_folded(self.text("folded", mode))
                self.assertEqual({process for process, _, _, _ in stacks}, {"threads"})
                self.assertEqual(sum(count for _, _, _, count in stacks), 11)
                self.check_names([names[::-1] for _, _, names, _ in stacks],
                                 self.expected(mode).values())

    def test_text(self):
        """Equal stacks, and perhaps names, are merged; every thread is listed."""
        for mode in MODES:
            with self.subTest(mode=mode):
                text = self.text("text", mode, "--all")
                snapshot = self.snap(self.target.pid, mode=mode)
                self.assertEqual(len(re.findall(r"^ +#0 ", text, re.M)), 6)
                for thread in snapshot.threads:
                    self.assertRegex(text, r"\b%d\b" % thread["tid"])
                apart = self.text("text", mode, "--no-group")
                self.assertEqual(len(re.findall(r"^ +#0 ", apart, re.M)), 11)
                for thread in snapshot.threads:
                    self.assertIn(thread["name"], apart)

    def test_idle_threads_are_one_line(self):
        """All are idle: the main thread is shown, and how many others there are."""
        idle = r"\n\n10 idle threads in 5 groups; -a shows them\n\Z"
        text = self.text("text", "auto")
        self.assertRegex(text, idle)
        self.assertEqual(len(re.findall(r"^ +#0 ", text, re.M)), 1)
        self.assertIn("\nmain thread, ", text)
        for words in (["-a"], ["-v"], ["--no-group"], ["-t", "^"], ["--state=S"]):
            self.assertNotIn("idle", self.text("text", "auto", *words))
        self.assertEqual(self.text("json", "auto").count('"tid"'),
                         self.text("json", "auto", "-a").count('"tid"'))

    def test_no_symbol_versions(self):
        """Debug files name symbols with a version: pthread_cond_wait@@GLIBC_2.3.2."""
        for form in ("text", "json", "gdb", "eu", "folded"):
            self.assertNotRegex(self.text(form, "auto"), r"@@?GLIBC")

    def second_line(self, mode, *words):
        """A running thread that gets no CPU cannot stop in time: then again, a few times."""
        for _ in range(10):
            line = self.text("text", mode, *words).splitlines()[1]
            if "not atomic" not in line:
                break
        return line

    def test_second_line_all_threads_sleep(self):
        self.assertRegex(self.second_line("stop"),
                         r"^11 threads; paused [\d.]+ ms \(all threads\), atomic$")
        self.assertEqual(self.second_line("auto"), "11 threads; no thread was paused, atomic")
        self.assertEqual(self.second_line("no-stop"),
                         "11 threads; no thread was paused, atomic")
        self.assertRegex(self.second_line("live"), r"^11 threads; paused [\d.]+ ms "
                         r"\(all threads\), including unwinding, atomic$")

    def test_second_line_one_thread_runs(self):
        """Mode auto pauses only the running thread; mode no-stop has no stack of it."""
        self.target = self.start("pause_meter", 5)
        self.assertRegex(self.second_line("auto"),
                         r"^7 threads; paused [\d.]+ ms \(1 of 7 threads\), atomic$")
        self.assertRegex(self.second_line("stop"),
                         r"^7 threads; paused [\d.]+ ms \(all threads, running ones at "
                         r"most [\d.]+ ms\), atomic$")


if __name__ == "__main__":
    main()
