"""threads, linked in other ways: static, static-pie, without symbols, with the symbols in
another file, without unwind tables."""
# ctest: quick

import shutil
import subprocess
import tempfile

import os

from harness import EndToEnd, Library, MODES, Named, TARGETS, THREAD_END, main

KINDS = ("poll", "nanosleep", "cond", "futex", "read")
OWN = ["descend_even", "descend_odd", "descend_even", "thread_routine", "target_thread_main"]


def stack(kind):
    return [Library(4), "wait_in_" + kind] + OWN + THREAD_END[1:]


class Linked(EndToEnd):
    def check(self, name):
        target = self.start(name, 1, 3)
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode)
                self.assert_stack(snapshot, target.pid, [
                    Library(1), "target_wait", "main", Library(3), "_start"])
                for kind in KINDS:
                    thread = self.assert_stack(snapshot, kind + "-0", stack(kind))
                    if name.startswith("threads_static"):
                        # the libc is linked in, and its names are
                        self.assertTrue(all(f["symbol"] for f in snapshot.frames(thread)))
        return target

    def test_static(self):
        self.check("threads_static")

    def test_static_pie(self):
        self.check("threads_static_pie")

    def test_fixed_address(self):
        self.check("threads_nopie")

    def test_symbols_by_debuglink(self):
        self.check("threads_debuglink")

    def test_symbols_in_gnu_debugdata(self):
        self.check("threads_minidebug")

    def test_frame_pointers_only(self):
        target = self.check("threads_nocfi")
        snapshot = self.snap(target.pid, mode="stop")
        for frame in snapshot.thread("poll-0")["frames"]:
            if frame["symbol"] in ("descend_even", "descend_odd"):
                self.assertEqual(frame["source"], "frame-pointer")


class Stripped(EndToEnd):
    def names(self, snapshot, thread, program):
        """The names of the same addresses in the unstripped program."""
        names = []
        for frame in snapshot.frames(thread):
            module = snapshot.module(frame)
            if os.path.basename(module["path"]) == "threads_stripped":
                self.assertIsNone(frame["symbol"])
                text = subprocess.run(["eu-addr2line", "-f", "-e", program,
                                       frame["lookup_offset"]], check=True, timeout=60,
                                      stdout=subprocess.PIPE).stdout.decode()
                names.append(text.split()[0])
        return names

    def test_offsets_lead_to_the_names(self):
        target = self.start("threads_stripped", 1, 3)
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode)
                for kind in KINDS:
                    thread = snapshot.thread(kind + "-0")
                    self.assertEqual(thread["end"], "root")
                    self.assertEqual(
                        self.names(snapshot, thread, os.path.join(TARGETS, "threads")),
                        ["wait_in_" + kind] + OWN)

    def test_printed_as_module_and_offset(self):
        """Never as a bare address, in any format."""
        target = self.start("threads_stripped", 1, 3)
        for mode in MODES:
            for form in ("text", "gdb", "eu", "folded"):
                with self.subTest(mode=mode, form=form):
                    text = self.run_tool("-f", form, "--mode=" + mode,
                                         target.pid).stdout.decode()
                    self.assertRegex(text, r"threads_stripped\+0x[0-9a-f]+")
                    self.assertNotIn("wait_in_", text)


class Moved(EndToEnd):
    def test_deleted_program(self):
        """The file is gone: the kernel still has it."""
        with tempfile.TemporaryDirectory() as directory:
            program = os.path.join(directory, "gone")
            shutil.copy(os.path.join(TARGETS, "threads"), program)
            target = self.start_command([program, "1", "3"])
            os.unlink(program)
            self.check(target)

    def test_replaced_program(self):
        """Another program is at its path now: its names would be wrong."""
        with tempfile.TemporaryDirectory() as directory:
            program = os.path.join(directory, "replaced")
            shutil.copy(os.path.join(TARGETS, "threads"), program)
            target = self.start_command([program, "1", "3"])
            os.unlink(program)
            shutil.copy(os.path.join(TARGETS, "cplusplus"), program)
            self.check(target)

    def check(self, target):
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode)
                for kind in KINDS:
                    self.assert_stack(snapshot, kind + "-0", stack(kind))


if __name__ == "__main__":
    main()
