"""threads, linked by four linkers in the ways that change where its code and its unwind
tables are: the stacks must be complete, and eu-addr2line must find each frame's function by
its offset in the file.
"""
# ctest: long

import os
import shutil
import subprocess
import tempfile

from harness import EndToEnd, Library, THREAD_END, main

KINDS = ("poll", "nanosleep", "cond", "futex", "read")
OWN = ["descend_even", "descend_odd", "descend_even", "thread_routine", "target_thread_main"]
LINKERS = {"bfd": "ld.bfd", "gold": "ld.gold", "lld": "ld.lld", "mold": "mold"}
SOURCES = os.path.join(os.environ.get("SOURCE", "."), "targets")
COMPILER = os.environ.get("CC", "cc")
COMPILE = ["-O2", "-g", "-D_GNU_SOURCE", "-fno-optimize-sibling-calls", "-fomit-frame-pointer"]
NO_TABLES = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]


class Linking(EndToEnd):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="stacksnap-link-")
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        cls.objects = {}

    def run_command(self, *command):
        result = subprocess.run(command, cwd=self.directory, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        self.assertEqual(result.returncode, 0, "%s\n%s" % (command, result.stdout.decode()))

    def compiled(self, *options, program="threads"):
        """Compiles the objects of a target with these options, once."""
        key = (program, ) + options
        if key not in self.objects:
            name = "objects%d" % len(self.objects)
            os.mkdir(os.path.join(self.directory, name))
            paths = []
            for source in (program, "target"):
                paths.append("%s/%s.o" % (name, source))
                self.run_command(COMPILER, *COMPILE, *options, "-c", "-o", paths[-1],
                                 "%s/%s.c" % (SOURCES, source))
            self.objects[key] = paths
        return self.objects[key]

    def link(self, name, *options, compile_options=("-fPIE", ), objects=None):
        objects = objects or self.compiled(*compile_options)
        self.run_command(COMPILER, "-o", name, *objects, "-pthread", "-Wl,--build-id",
                         *options)
        return os.path.join(self.directory, name)

    def check(self, path, names_from=None):
        target = self.start(path, 1, 3)
        snapshot = self.snap(target.pid)
        self.assert_stack(snapshot, target.pid, [
            Library(1), "target_wait", "main", Library(3), "_start"])
        frames = []
        for kind in KINDS:
            thread = self.assert_stack(snapshot, kind + "-0",
                                       [Library(4), "wait_in_" + kind] + OWN + THREAD_END[1:])
            self.assertNotIn("return-address", [f["source"] for f in thread["frames"]])
            frames += [f for f in thread["frames"] if not f["inlined"] and
                       snapshot.module(f)["path"].endswith("/" + os.path.basename(path))]
        self.assertGreaterEqual(len(frames), len(KINDS) * 6)
        lines = subprocess.run(["eu-addr2line", "-f", "-s", "-e", names_from or path] +
                               [f["lookup_offset"] for f in frames], check=True, timeout=60,
                               stdout=subprocess.PIPE).stdout.decode().splitlines()
        found = [line.split()[0] for line in lines[::2]]
        for frame, name in zip(frames, found):
            if frame["symbol"].startswith(("wait_in_", "descend_", "thread_routine", "target_")):
                self.assertEqual(frame["symbol"], name)

    def use(self, linker):
        if not shutil.which(LINKERS[linker]):
            self.skipTest("%s is missing: install binutils, lld, mold" % LINKERS[linker])
        return "-fuse-ld=" + linker


def linked_by(linker):
    class LinkedBy(Linking):
        def test_pie(self):
            self.check(self.link("pie", self.use(linker), "-pie"))

        def test_static(self):
            self.check(self.link("static", self.use(linker), "-static", "-no-pie",
                                 compile_options=("-fno-pie", )))

        if linker != "gold":  # which does not support --no-dynamic-linker
            def test_static_pie(self):
                self.check(self.link("static_pie", self.use(linker), "-static-pie"))

        def test_without_search_table(self):
            for kind in ("-pie", "-static"):
                with self.subTest(kind=kind):
                    self.check(self.link(
                        "no_table" + kind, self.use(linker), kind, "-Wl,--no-eh-frame-hdr",
                        compile_options=("-fPIE", ) if kind == "-pie" else ("-fno-pie", )))

        def test_two_code_segments(self):
            """One function far away, in a segment of its own."""
            self.use(linker)
            objects = self.compiled("-fPIE", "-ffunction-sections")
            self.run_command("objcopy", "--rename-section", ".text.descend_odd=far_code",
                             objects[0], "far.o")
            options = ["-Wl,--section-start=far_code=0x10000000"]
            self.check(self.link("two", self.use(linker), "-pie", *options,
                                 objects=["far.o", objects[1]]))

    LinkedBy.__name__ = LinkedBy.__qualname__ = linker.capitalize()
    return LinkedBy


Bfd, Gold, Lld, Mold = [linked_by(name) for name in ("bfd", "gold", "lld", "mold")]


class Layouts(Linking):
    def test_one_segment_of_code_and_data(self):
        self.check(self.link("noseparate", "-pie", "-Wl,-z,noseparate-code"))
        for linker in ("gold", "lld"):
            with self.subTest(linker=linker):
                self.check(self.link("norosegment_" + linker, "-pie", self.use(linker),
                                     "-Wl,--no-rosegment"))

    def test_separate_segments(self):
        self.check(self.link("separate", "-pie", "-Wl,-z,separate-code"))

    def test_not_at_zero(self):
        """Linked at a nonzero address, as prelink does."""
        self.check(self.link("high", "-pie", "-Wl,-Ttext-segment=0x3000000000"))
        self.check(self.link("fixed", "-no-pie", "-Wl,-Ttext-segment=0x40000000",
                             compile_options=("-fno-pie", )))


class DebugFrame(Linking):
    """.debug_frame and no .eh_frame: the program was compiled with -g and without tables."""

    def link_debug_frame(self, name, *options, pie=True):
        return self.link(name, *options, compile_options=tuple(NO_TABLES) + (
            ("-fPIE", ) if pie else ("-fno-pie", )))

    def test_dynamic(self):
        self.check(self.link_debug_frame("df", "-pie"))

    def test_static(self):
        self.check(self.link_debug_frame("df_static", "-static", "-no-pie", pie=False))

    def test_compressed(self):
        self.check(self.link_debug_frame("df_packed", "-pie",
                                         "-Wl,--compress-debug-sections=zlib"))

    def test_in_a_separate_file(self):
        whole = self.link_debug_frame("df_whole", "-pie")
        self.run_command("objcopy", "--only-keep-debug", "df_whole", "df_apart.debug")
        self.run_command("objcopy", "--strip-all", "--add-gnu-debuglink=df_apart.debug",
                         "df_whole", "df_apart")
        self.check(os.path.join(self.directory, "df_apart"), names_from=whole)

    def test_older_versions_of_dwarf(self):
        """CIEs of DWARF 2 and 3 have a different version than those of 4 and 5."""
        for version in (2, 3, 4):
            with self.subTest(version=version):
                self.check(self.link("df%d" % version, "-pie", compile_options=tuple(
                    NO_TABLES) + ("-fPIE", "-gdwarf-%d" % version)))

    def test_realigned_stack(self):
        """Expressions in the tables, of both kinds of section."""
        for options in (["-fPIE"], NO_TABLES + ["-fPIE"]):
            with self.subTest(options=options):
                target = self.start(self.link("realigned", "-pie", objects=self.compiled(
                    *options, program="realigned")))
                snapshot = self.snap(target.pid)
                thread = self.assert_stack(snapshot, "aligned", [
                    Library(1), "target_block"] + ["align"] * 3 + ["thread_routine"] +
                    THREAD_END)
                self.assertEqual({f["source"] for f in thread["frames"] if not f["inlined"]},
                                 {"registers", "cfi"})
                target.finish()

    def test_no_tables_at_all(self):
        """Neither tables nor frame pointers: heuristic frames are marked, and no such stack
        counts as complete."""
        self.link("bare_whole", "-pie", compile_options=tuple(NO_TABLES) + ("-fPIE", ))
        self.run_command("objcopy", "--strip-all", "bare_whole", "bare")
        target = self.start(os.path.join(self.directory, "bare"), 1, 3)
        snapshot = self.snap(target.pid, status=(0, 1))
        for kind in KINDS:
            thread = snapshot.thread(kind + "-0")
            guessed = "return-address" in [f["source"] for f in thread["frames"]]
            last = snapshot.frames(thread)[-1]
            libc = "libc" in (snapshot.module(last) or {"path": ""})["path"]
            self.assertTrue(guessed, thread)
            self.assertTrue(libc or thread["end"] != "root", thread)


if __name__ == "__main__":
    del Linking
    main()
