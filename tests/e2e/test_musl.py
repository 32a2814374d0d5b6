"""musl, whose libc has no unwind tables at all, linked dynamically and statically: its frames
are found by plausible return addresses and marked as heuristic. There may be an extra frame, of
a call that has returned. An address without a symbol has no name, not that of the function
before."""
# ctest: quick

import os
import re
import shutil
import subprocess
import tempfile

from harness import EndToEnd, LIMIT_S, Library, main

SOURCES = os.path.join(os.environ.get("SOURCE", "."), "targets")
OPTIONS = ["-O2", "-g", "-D_GNU_SOURCE", "-fno-optimize-sibling-calls",
           "-fomit-frame-pointer", "-Wl,--build-id"]
DESCENT = ["descend"] * 3 + ["thread_routine", "target_thread_main", Library(2)]
STACKS = {"polls": [Library(8), "in_poll"] + DESCENT,
          "waits": [Library(8), "in_cond"] + DESCENT,
          "sorts": [Library(8), "in_poll", "compare", Library(8), "in_sort"] + DESCENT}


class Musl(EndToEnd):
    def build(self, *options):
        compiler = shutil.which("musl-gcc")
        if not compiler:
            self.skipTest("musl-gcc is missing: install musl-tools")
        directory = tempfile.mkdtemp(prefix="stacksnap-musl-")
        self.addCleanup(shutil.rmtree, directory)
        path = os.path.join(directory, "musl")
        subprocess.run([compiler, *OPTIONS, *options, "-o", path] + [
            "%s/%s.c" % (SOURCES, name) for name in ("musl", "target")], check=True,
            stdin=subprocess.DEVNULL, timeout=LIMIT_S)
        return path

    def check(self, *options):
        target = self.start_command([self.build(*options)])
        # a stack with a guess is not known to be whole, which matters where a thread is not idle
        snapshot = self.snap(target.pid, "--strict", status=(1,))
        text = self.run_tool("--strict", target.pid, status=(1,)).stdout.decode()
        self.assertRegex("\n".join(text.splitlines()[:24]), "incomplete: thread .*: not certain")
        guessed = {thread["tid"] for thread in snapshot.threads if thread["incomplete"]}
        self.assertEqual(guessed, set(map(int, re.search("incomplete: thread ([0-9, ]+):", text)[1].split(", "))))
        idle = self.snap(target.pid, "--thread=polls")
        self.assertIn("not certain", idle.threads[0]["incomplete"])
        self.assertEqual(len(snapshot.threads), 4)
        for name, stack in STACKS.items():
            with self.subTest(thread=name):
                # musl's clone() calls through a register, and has no CFI.
                thread = self.assert_stack(snapshot, name, stack, end="guessed")
                sources = [frame["source"] for frame in thread["frames"]]
                # heuristic frames lead out of the libc, then unwind tables are used
                self.assertIn("return-address", sources)
                self.assertGreaterEqual(sources.count("cfi"), 4)
        self.assert_stack(snapshot, target.pid,
                          [Library(8), "target_wait", "main", Library(2), "_start"],
                          end="guessed")
        return snapshot

    def test_dynamic(self):
        snapshot = self.check("-pie", "-fPIE")
        for thread in snapshot.threads:
            for frame in thread["frames"]:
                self.assertNotIn(frame["symbol"], ("memset", "memcpy"), thread)

    def test_static(self):
        snapshot = self.check("-static")
        for thread in snapshot.threads:
            self.assertTrue(all(frame["symbol"] for frame in thread["frames"]), thread)


if __name__ == "__main__":
    main()
