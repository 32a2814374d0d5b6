"""The layouts that other programs read, parsed by the rules of the usual scripts.

gdb: pt-pmp and stackcollapse-gdb take "Thread N" at the beginning of a line for the next
thread, and of a line "#N ..." the word after " in ", or the second word where there is none.
eu: stackcollapse-elfutils takes "TID N:" for the next thread, and of "#N  0xPC NAME" the
rest of the line after the address.
folded: flame graph tools take the last word for the count and split the rest at ";".
"""

import collections
import re

from harness import EndToEnd, MODES, canonical, main

DEPTH = 4


def parse_gdb_pt_pmp(text):
    """As pt-pmp: a thread's line begins with "Thread"; the name is the field after "in",
    else the second field. Returns for each thread its names, innermost first."""
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
    "#N [0xPC in ]NAME (ARGUMENTS) ...", its name whatever is before " (" or "@"."""
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
            raise AssertionError("what is this? " + line)
    return stacks


def parse_folded(text):
    stacks = []
    for line in text.splitlines():
        names, _, count = line.rpartition(" ")
        parts = names.split(";")
        stacks.append((parts[0], parts[1], parts[2:], int(count)))
    return stacks


def descent():
    return ["descend_odd" if i % 2 else "descend_even" for i in range(DEPTH)]


class Formats(EndToEnd):
    """The inner frames are the libc's and may be inlined: from wait_in_... on the names
    are compared; the rest by the JSON of the same, unchanging process."""

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
        """The same stacks as in the JSON, and the ones that are promised."""
        self.assertEqual(collections.Counter(tuple(map(canonical, s)) for s in stacks),
                         collections.Counter(map(tuple, expected)))
        for kind in ("poll", "nanosleep", "cond", "futex", "read"):
            promised = ["wait_in_" + kind] + descent() + [
                "thread_routine", "target_thread_main"]
            found = [s for s in stacks if promised[0] in s]
            self.assertEqual(len(found), 2, kind)
            for stack in found:
                at = stack.index(promised[0])
                self.assertEqual(stack[at:at + len(promised)], promised)

    def test_gdb_as_pt_pmp_reads_it(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                self.check_names(parse_gdb_pt_pmp(self.text("gdb", mode)),
                                 self.expected(mode).values())

    def test_gdb_as_stackcollapse_reads_it(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                self.check_names(parse_gdb_collapse(self.text("gdb", mode)),
                                 self.expected(mode).values())

    def test_gdb_threads(self):
        """Every thread, also where stacks are equal; its LWP and its name."""
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

    def test_eu_as_stackcollapse_reads_it(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                stacks = parse_eu(self.text("eu", mode, "--no-inlines"))
                expected = self.expected(mode, "--no-inlines")
                self.assertEqual(set(stacks), set(expected))
                for tid, names in stacks.items():
                    self.assertEqual(list(map(canonical, names)), expected[tid])
                self.check_names(stacks.values(), expected.values())

    def test_eu_has_no_inlined_calls(self):
        """eu-stack shows them with -i only, and cli.md says: as without options."""
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
        """Equal stacks are merged (and so may be the names), and every thread is there."""
        for mode in MODES:
            with self.subTest(mode=mode):
                text = self.text("text", mode)
                snapshot = self.snap(self.target.pid, mode=mode)
                self.assertEqual(len(re.findall(r"^ +#0 ", text, re.M)), 6)
                for thread in snapshot.threads:
                    self.assertRegex(text, r"\b%d\b" % thread["tid"])
                apart = self.text("text", mode, "--no-group")
                self.assertEqual(len(re.findall(r"^ +#0 ", apart, re.M)), 11)
                for thread in snapshot.threads:
                    self.assertIn(thread["name"], apart)


if __name__ == "__main__":
    main()
