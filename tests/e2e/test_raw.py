"""--raw: module, offset and build-id, which eu-addr2line resolves to the same names."""
# ctest: quick

import os
import re
import subprocess

from harness import CANCELLATION, EndToEnd, MODES, canonical, main

LINE = re.compile(r"^ *#\d+ +(\S+)\+(0x[0-9a-f]+) \[([0-9a-f]+)\]$")


def resolve(path, offsets):
    """The names of ELF virtual addresses of a file, from eu-addr2line: of the functions
    that have machine code of their own there ("read inlined at FILE in read")."""
    text = subprocess.run(["eu-addr2line", "-f", "-e", path] + offsets, check=True,
                          timeout=60, stdout=subprocess.PIPE).stdout.decode()
    return [canonical(re.sub(r"^.* inlined at .* in ", "", name))
            for name in text.splitlines()[::2]]


class Raw(EndToEnd):
    def same_names(self, target):
        for mode in MODES:
            with self.subTest(mode=mode, target=target.command[0]):
                named = self.snap(target.pid, "--no-inlines", "--no-demangle", mode=mode)
                raw = self.snap(target.pid, "--raw", mode=mode)
                for thread in named.threads:
                    self.compare(named, thread, raw, raw.thread(thread["tid"]))

    def compare(self, named, thread, raw, raw_thread):
        self.assertEqual(len(raw_thread["frames"]), len(thread["all_frames"]))
        by_path = {}
        for frame, raw_frame in zip(thread["all_frames"], raw_thread["frames"]):
            self.assertIsNone(raw_frame["symbol"])
            self.assertEqual(raw_frame["offset"], frame["offset"])
            by_path.setdefault(raw.module(raw_frame)["path"], []).append(
                (raw_frame["lookup_offset"], canonical(frame["symbol"])))
        for path, pairs in by_path.items():
            if not path.startswith("/"):
                continue
            names = resolve(path, [offset for offset, _ in pairs])
            for (offset, name), resolved in zip(pairs, names):
                if name is not None:
                    self.assertEqual(name, resolved, "%s+%s" % (path, offset))

    def test_threads(self):
        self.same_names(self.start("threads", 1, 5))

    def test_fixed_address(self):
        self.same_names(self.start("threads_nopie", 1, 5))

    def test_static_pie(self):
        self.same_names(self.start("threads_static_pie", 1, 5))

    def test_signal_handlers(self):
        """The only frames whose pc is not decremented."""
        target = self.start("sighandler")
        for mode in MODES:
            with self.subTest(mode=mode):
                raw = self.snap(target.pid, "--raw", mode=mode, status=(0, 1))
                frame = raw.thread("first-insn")["frames"][4 + len(CANCELLATION)]
                self.assertEqual(resolve(raw.module(frame)["path"],
                                         [frame["lookup_offset"]]), ["fault_at_once"])

    def test_printed_lines(self):
        """Each line of the text, as a user would paste it."""
        target = self.start("noreturn")
        paths = {}
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode)
                for module in snapshot.modules:
                    paths[os.path.basename(module["path"])] = module
                text = self.run_tool("--raw", "--mode=" + mode, target.pid).stdout.decode()
                names = []
                for line in text.splitlines():
                    if line.lstrip().startswith("#"):
                        found = LINE.match(line)
                        self.assertTrue(found, line)
                        module = paths[found.group(1)]
                        self.assertEqual(module["build_id"], found.group(3))
                        names += resolve(module["path"], [found.group(2)])
                at = names.index("never_returns")
                self.assertEqual(names[at:at + 5], [
                    "never_returns", "calls_last", "calls_first", "thread_routine",
                    "target_thread_main"])


if __name__ == "__main__":
    main()
