"""Waits and deadlocks of recorded snapshots in the text and the JSON of a report: of target
programs with locks, and of recordings with arbitrary wait-for graphs."""
# ctest: quick

import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from recordings import LIMIT, SOURCE, Description, ReportTest, main  # noqa: E402
from harness import libc_has_debug_file  # noqa: E402

HEADING = "\n\nWaits: what threads wait for, and who holds it\n"


class Links(ReportTest):
    def recording_of(self, name, *arguments):
        path = self.path("-".join([name, *map(str, arguments)]) + ".ss")
        if os.path.exists(path):
            return path  # written by another test
        target = self.start(name, *arguments)
        self.run_tool("--mode=stop", "-f", "recording", "-o", path, target.pid)
        return path

    def require_libc_symbols(self):
        if not libc_has_debug_file():
            self.skipTest("pthread_join is not recognised without libc6-dbg")

    def text(self, *arguments):
        return self.report(*arguments).stdout.decode()

    def waits(self, text):
        """The lines of the section "Waits"."""
        found = re.search(HEADING + r"((?:  .+\n)*)", text)
        return found.group(1).splitlines() if found else []

    def graph(self, name, count, links, **options):
        """A recording of count threads, t0 and so on; links: (thread, owner, deadlock)."""
        d = Description(period=0, **options)
        process = d.process()
        threads = [d.thread(process, 100 + i, "t%d" % i) for i in range(count)]
        stack = d.stack((None, 0x10))
        for thread, owner, deadlock in links:
            d.wait(threads[thread], owner, "lock%d" % (-1 if owner is None else owner),
                   deadlock=deadlock)
        d.tick()
        for thread in threads:
            d.sample(thread, stack)
        path = self.path(name)
        if os.path.exists(path):
            os.unlink(path)
        return d.write(path)

    def cycles(self, text):
        """For each deadlock: its heading, and the names of its threads."""
        return [(heading, re.findall(r"^  \d+ \((.*?)\) waits for ", lines, re.M))
                for heading, lines in re.findall(
                    r"^((?:DEADLOCK|Contention|Self-deadlock).*):\n((?:  .+\n)*)", text, re.M)]


class Processes(Links):
    def test_deadlock(self):
        path = self.recording_of("deadlock", "normal", 3, 2)
        text = self.text(path)
        lock = r"mutex mutexes%s \(0x[0-9a-f]+\), held by \d+ \(locker-%d\)"
        lines = ["DEADLOCK: 3 threads wait for each other in a cycle; 2 more wait for them:"]
        for i in range(3):
            lines += [r"  \d+ \(locker-%d\) waits for " % i + lock % (
                r"\+0x%x" % ((i + 1) % 3 * 0x28) if (i + 1) % 3 else "", (i + 1) % 3),
                      r"    in take at \S+deadlock\.c:\d+",
                      r"    called from take_next at \S+deadlock\.c:\d+",
                      r"    holds mutex mutexes.*"]
        self.assertRegex(text, r"6 threads\n\n" + "\n".join(lines) + r"\n\n    self +total")
        behind, = self.waits(text)
        self.assertRegex(behind, r"^  \d+ \(behind-0\), \d+ \(behind-1\) wait for %s$"
                         % (lock % ("", 0)))
        self.assertEqual(len(re.findall(r"\(locker-\d\) waits for", text)), 3)

    def test_time_limits(self):
        """A cycle of waits with time limits ends: it is no deadlock."""
        text = self.text(self.recording_of("deadlock", "timed", 2, 1))
        self.assertNotIn("DEADLOCK", text)
        self.assertEqual(self.cycles(text), [
            ("Contention with a time limit: 2 threads wait for each other in a cycle; 1 more "
             "waits for them", ["locker-0", "locker-1"])])

    def test_several_processes(self):
        self.require_libc_symbols()
        two = [self.recording_of("deadlock", "normal", 2, 0), self.recording_of("lockwaits")]
        text = self.text(*two)
        self.assertRegex(text, r"\nThreads of deadlock \d+ in %s:\n\nDEADLOCK: 2 threads wait for "
                         r"each other in a cycle:\n  \d+ \(locker-0\)" % re.escape(two[0]))
        self.assertRegex(text, r"\nThreads of lockwaits \d+ in %s:\n\nDEADLOCK: 2 threads wait for "
                         r"each other in a cycle:\n  \d+ \(join-a\)" % re.escape(two[1]))
        self.assertRegex("\n".join(self.waits(text)),
                         r"\(reads-pipe\) of lockwaits \d+ in %s waits" % re.escape(two[1]))

    def test_waits_without_a_deadlock(self):
        self.require_libc_symbols()
        text = self.text("-v", self.recording_of("lockwaits"))
        self.assertEqual([names for _, names in self.cycles(text)], [["join-a", "join-b"]])
        held = r"^  \d+ \(%s\) waits for %s.*held (?:for writing )?by \d+ \(%s\)"
        lines = self.waits(text)
        for thread, lock, owner in (("wants-mutex", "mutex held_lock", "reads-pipe"),
                                    ("wants-behind", "mutex second_lock", "wants-mutex"),
                                    ("wants-write", "write access to rwlock held_shared", "reads-pipe"),
                                    ("writes-stream", "lock of a stdio stream", "locks-stream")):
            pattern = held % (thread, lock, owner)
            self.assertEqual(len([one for one in lines if re.search(pattern, one)]), 1, pattern)
        for thread, words in (("ended-lock", "mutex .*, owner unknown: "), ("ended-pi", "PI mutex .*"),
                              ("wants-read-held", "write access to rwlock read_shared .*, held by 1 reader, "),
                              ("nobody-signals", "condition variable "), ("sem-waiter", "semaphore ")):
            pattern = r"^  \d+ \(%s\) waits for %s" % (thread, words)
            self.assertEqual(len([one for one in lines if re.search(pattern, one)]), 1, (pattern, lines))
        self.assertLess(max(number for number, one in enumerate(lines) if "held by" in one and "unknown" not in one),
                        min(number for number, one in enumerate(lines) if "unknown" in one), lines)
        self.assertTrue(any("(reads-pipe) waits for input from fd" in one for one in lines))
        self.assertFalse(any("(join-" in one for one in lines), lines)

    def test_json(self):
        data = json.loads(self.report("-f", "json", self.recording_of(
            "deadlock", "normal", 2, 1)).stdout)
        names = [thread["name"] for thread in data["threads"]]
        waits = {names[wait["thread"]]: wait for wait in data["waits"] if wait["owner"] is not None}
        self.assertEqual({name: (names[w["owner"]], w["kind"], w["deadlock"])
                          for name, w in waits.items()},
                         {"locker-0": ("locker-1", "mutex", True),
                          "locker-1": ("locker-0", "mutex", True),
                          "behind-0": ("locker-0", "mutex", False)})
        self.assertRegex(waits["locker-0"]["text"], r"^mutex mutexes\+0x28 .*\(locker-1\)$")
        with open(os.path.join(SOURCE, "man", "stacksnap-report-json.5"),
                  encoding="utf-8") as file:
            page = file.read()
        for member in ("waits", *data["waits"][0]):
            self.assertRegex(page, r"\n\.BR? %s\b" % member)

    def test_nothing_waits(self):
        path = self.recording_of("threads", 2, 3)
        text = self.text(path)
        self.assertEqual(self.cycles(text), [])
        wait, = self.waits(text)
        self.assertRegex(wait, r"^  \d+ \(cond-0\), \d+ \(cond-1\) wait for condition variable cond \(")
        waits = json.loads(self.report("-f", "json", path).stdout)["waits"]
        self.assertEqual({(wait["owner"], wait["deadlock"]) for wait in waits}, {(None, False)}, waits)


class ArbitraryGraphs(Links):
    def test_where_in_the_program(self):
        """Shows callers outside of the waiting library; the end of a stack is not a caller."""
        d = Description(period=0)
        process = d.process()
        module = d.module(process, self.library, self.build_id)
        stacks = [self.stack_of(d, module, "hash", "parse", "serve"),
                  d.stack((None, 0x10), (module, self.at["parse"] + 1)),
                  d.stack((None, 0x10), end=LIMIT), d.stack(),
                  d.stack(*[(module, self.at["hash"] + i % 2) for i in range(999)],
                          (None, 0x10))]
        threads = [d.thread(process, i + 1, "t%d" % i) for i in range(len(stacks))]
        d.tick()
        for thread, stack in zip(threads, stacks):
            d.wait(thread, thread, "itself", deadlock=True)
            d.sample(thread, stack)
        text = self.text(d.write(self.path("where.ss")))
        found = re.findall(r"waits for mutex itself.*\n((?:    .+\n)*)", text)
        self.assertEqual([re.sub(r" at \S+", "", lines).splitlines() for lines in found], [
            ["    in shop_hash", "    called from shop_parse"],
            ["    in shop_parse"], ["    in [unmapped]+0x10"], [],
            ["    in shop_hash", "    called from shop_hash"]])

    def test_threads_that_are_not_selected(self):
        path = self.graph("part.ss", 3, [(0, 1, True), (1, 0, True), (2, 0, False)])
        self.assertEqual(len(self.cycles(self.text(path))), 1)
        text = self.text("-t", "100", path)
        self.assertEqual(self.cycles(text), [])
        self.assertEqual(self.waits(text), ["  100 (t0) waits for mutex lock1 (0x10); a DEADLOCK with "
                                            "threads that are not shown"])

    def test_thread_waits_for_itself(self):
        text = self.text(self.graph("itself.ss", 2, [(0, 0, True), (1, 0, False)]))
        self.assertEqual(self.cycles(text), [
            ("Self-deadlock, unless another thread unlocks it: a thread waits for a lock "
             "that it holds; 1 more waits for them", ["t0"])])
        self.assertEqual(self.waits(text), ["  101 (t1) waits for mutex lock0 (0x10)"])

    def test_a_cycle_that_is_not_a_deadlock(self):
        """A cycle is no proven deadlock if the threads were not seen at the same time."""
        for flags in ((False, False, False), (True, True, False), (False, True, True)):
            links = [(i, (i + 1) % 3, flags[i]) for i in range(3)]
            text = self.text(self.graph("loose.ss", 3, links))
            self.assertEqual(self.cycles(text), [])
            self.assertEqual(len(self.waits(text)), 3)

    def test_tails_and_several_cycles(self):
        links = [(3, 1, True), (1, 2, True), (2, 1, True), (0, 3, False), (4, 4, True),
                 (5, 6, True), (6, None, False), (1, 5, True), (7, 8, False), (8, 7, False)]
        text = self.text(self.graph("tails.ss", 9, links))
        self.assertEqual([names for _, names in self.cycles(text)], [["t1", "t2"], ["t4"]])
        self.assertIn("in a cycle; 2 more wait for them:", text)
        lines = self.waits(text)
        self.assertEqual(len(lines), 6)  # without the second wait of a thread

    def test_many(self):
        count = 20_000
        ring = [(i, (i + 1) % count, True) for i in range(count)]
        text = self.text(self.graph("ring.ss", count, ring))
        (heading, names), = self.cycles(text)
        self.assertTrue(heading.startswith("DEADLOCK: %d threads wait" % count))
        self.assertEqual(names, ["t%d" % i for i in range(16)])
        self.assertIn("\n  ... and %d more threads (-v lists them)\n" % (count - 16), text)
        selves = [(i, i, True) for i in range(count)]
        text = self.text(self.graph("selves.ss", count, selves))
        self.assertEqual(len(self.cycles(text)), 8)
        self.assertIn("\n... and %d more deadlocks (-v lists them)\n" % (count - 8), text)
        chain = [(i, i + 1, False) for i in range(count - 1)]
        lines = self.waits(self.text(self.graph("chain.ss", count, chain)))
        self.assertEqual(lines[-1], "  and %d more (-v lists them)" % (count - 21))

    def test_many_threads_with_one_wait(self):
        links = [(i, 0, False) for i in range(1, 8)]
        path = self.graph("same.ss", 8, links)
        self.assertEqual(self.waits(self.text(path)), [
            "  101 (t1), 102 (t2), 103 (t3) and 4 more wait for mutex lock0 (0x10)"])
        self.assertIn("106 (t6), 107 (t7) wait for mutex lock0 (0x10)", self.text("-v", path))

    def test_hostile_strings(self):
        evil = b"</script><script>alert(1)</script>\x1b[31m\xff;\n\"\\"
        d = Description(period=0)
        process = d.process(name=evil)
        other = d.process(pid=7, name=evil)
        stack = d.stack((None, 0x10))
        threads = [d.thread(p, i + 1, evil) for i, p in enumerate((process, process, other))]
        for i, thread in enumerate(threads):
            d.wait(thread, threads[1 - i] if i < 2 else None, evil, deadlock=i < 2)
        d.tick()
        for thread in threads:
            d.sample(thread, stack)
        path = d.write(self.path("evil.ss"))
        out = self.report(path).stdout
        self.assertNotIn(b"\x1b", out)
        self.assertIn("\\x1b[31m", out.decode("utf-8"))
        self.assertEqual(len(self.cycles(out.decode())), 1)
        out = self.report("-f", "json", path).stdout
        self.assertTrue(all(0x20 <= byte < 0x7f or byte == 10 for byte in out))
        self.assertEqual([wait["owner"] for wait in json.loads(out)["waits"]], [1, 0, None], out)


if __name__ == "__main__":
    main()
