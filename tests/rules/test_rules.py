"""This tree follows the rules of the design, and each rule can fail."""
# ctest: release-only

import os
import re
import shutil
import subprocess
import tempfile
import unittest
import unittest.mock

import rules

SOURCE = os.environ["SOURCE"]
BUILD = os.environ["BUILD"]

OVER_SOURCES = [rules.check_rooms, rules.check_includes, rules.check_folders,
                rules.check_third_party,
                rules.check_processor, rules.check_host, rules.check_proc_paths, rules.check_include_cycles, rules.check_users]
OVER_OBJECTS = [rules.check_process_calls, rules.check_forks, rules.check_frozen, rules.check_frozen_calls,
                rules.check_manners,
                rules.check_texts, rules.check_globals, rules.check_names, rules.check_circles,
                rules.check_components]


class ThisTree(unittest.TestCase):
    def setUp(self):
        names = ("ss_objects", "ss_tool_objects", "stacksnap")
        self.tree = rules.Tree(SOURCE, [os.path.join(BUILD, "CMakeFiles", name + ".dir", "src")
                                        for name in names])

    def test_rules(self):
        for rule in OVER_SOURCES + OVER_OBJECTS:
            with self.subTest(rule.__name__, says=rule.__doc__):
                self.assertEqual(rule(self.tree), [])

    def test_document(self):
        self.assertEqual(rules.check_document(SOURCE), [])
        self.assertEqual(rules.check_mentions(SOURCE), [])
        self.assertEqual(rules.check_length(SOURCE), [])
        self.assertEqual(rules.check_cmake(SOURCE), [])

    def test_last_ones(self):
        """The changes that ARCHITECTURE.md shows as examples exist."""
        git = ["git", "-C", SOURCE]
        if not shutil.which("git") or subprocess.run(
                git + ["rev-parse", "--is-shallow-repository"], stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, check=False).stdout.strip() != b"false":
            self.skipTest("this is no repository with its whole history")
        with open(os.path.join(SOURCE, "ARCHITECTURE.md"), encoding="utf-8") as file:
            changes = re.findall(r"`([0-9a-f]{8})`", file.read())
        self.assertGreater(len(changes), 5)
        for change in changes:
            subprocess.run(git + ["cat-file", "-e", change + "^{commit}"], check=True)

    def test_calls(self):
        public = rules.public_functions(SOURCE)
        doors = rules.declared_functions(self.tree, rules.DOORS)
        # what both declare for functions of all rooms
        doors |= rules.declared_functions(self.tree, {"data/pipeline.h", "data/heap.h"})
        self.assertGreater(len(public), 15)
        self.assertGreater(len(doors), 15)
        self.assertEqual(rules.check_calls(self.tree, public, doors), [])

    def test_the_objects_were_read(self):
        """Rules over symbols could not fail if no symbols were read."""
        symbols = list(self.tree.symbols())
        self.assertIn(("capture", "ptrace", "U"), [(room, name, letter)
                                                   for room, _, name, letter, _ in symbols])
        self.assertGreater(len([1 for entry in symbols if entry[3] == "T"]), 100)


class BadTrees(unittest.TestCase):
    """For each rule a small tree that violates it, and one that almost does."""

    def make(self, files, objects=False):
        top = tempfile.TemporaryDirectory()
        self.addCleanup(top.cleanup)
        for path, text in files.items():
            path = os.path.join(top.name, "src", path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            if objects and path.endswith(".c"):
                subprocess.run([os.environ.get("CC", "cc"), "-O1", "-fPIC", "-w", "-c", path,
                                "-o", path + ".o"], check=True)
        return rules.Tree(top.name, [os.path.join(top.name, "src")])

    def complain(self, rule, files, part, *arguments):
        objects = rule in OVER_OBJECTS or rule is rules.check_calls
        complaints = rule(self.make(files, objects), *arguments)
        self.assertEqual(len(complaints), 1, complaints)
        self.assertIn(part, complaints[0])

    def accept(self, rule, files, *arguments):
        objects = rule in OVER_OBJECTS or rule is rules.check_calls
        self.assertEqual(rule(self.make(files, objects), *arguments), [])

    def test_document(self):
        with open(os.path.join(SOURCE, "ARCHITECTURE.md"), encoding="utf-8") as file:
            text = file.read()
        for change in (("| `base/` |", "| `cellar/` |"), ("| base, data |", "| base |")):
            with tempfile.TemporaryDirectory() as top:
                with open(os.path.join(top, "ARCHITECTURE.md"), "w", encoding="utf-8") as file:
                    file.write(text.replace(*change, 1))
                self.assertNotEqual(rules.check_document(top), [])

    def test_cmake(self):
        lines = "cmake_minimum_required(VERSION 3.%d)\nset(CMAKE_C_STANDARD 17)\n"
        for minor, preset, complaints in ((18, '{ "version": 3, }', 1), (21, "{\n  \"version\": 3,\n}", 0),
                                          (20, "{\n  \"version\": 3,\n}", 2)):
            with tempfile.TemporaryDirectory() as top:
                for name, text in (("CMakeLists.txt", lines % minor), ("CMakePresets.json", preset)):
                    with open(os.path.join(top, name), "w", encoding="utf-8") as file:
                        file.write(text)
                self.assertEqual(len(rules.check_cmake(top)), complaints)

    def mention(self, text):
        files = {"README.md": text, "docs/more.md": "# The sandbox: more\n",
                 "src/base/a.c": "void ss_f(void) {}\n", "tests/e2e/test_b.py": "",
                 "share/sql/c.sql": ""}
        with tempfile.TemporaryDirectory() as top:
            for path, content in files.items():
                path = os.path.join(top, path)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(content)
            return rules.check_mentions(top)

    def test_mentions(self):
        for text in ("`src/base/b.c`", "`base/b.h`", "`capture/`", "`b.c`", "`ss_g()`",
                     "`struct ss_g`", "`tests/e2e/test_a.py`", "`ctest -R e2e/a`",
                     "`share/stacksnap/d.sql`", "[more](docs/less.md)", "[more](docs/more.md#sandbox)"):
            with self.subTest(text=text):
                self.assertEqual(len(self.mention(text)), 1, self.mention(text))
        self.assertEqual(self.mention(
            "`src/base/a.c`, `base/`, `a.c`, `base/a`, `ss_f()`, `src/base/NAME.c`, `e2e/b.long`, "
            "`ctest -R e2e/b`, `share/stacksnap/sql/c.sql`, `pid.c or so`, [more](docs/more.md), "
            "[more](docs/more.md#the-sandbox-more), [far](https://example.org/a#b)\n"
            "```\n`src/base/b.c` [more](docs/less.md)\n```\n"), [])

    def test_length(self):
        for count, complaints in ((15000, 0), (15001, 1)):
            with tempfile.TemporaryDirectory() as top:
                with open(os.path.join(top, "ARCHITECTURE.md"), "w", encoding="utf-8") as file:
                    file.write("word " * count)
                self.assertEqual(len(rules.check_length(top)), complaints)

    def test_rooms(self):
        self.complain(rules.check_rooms, {"cellar/a.c": ""}, "cellar")

    def test_includes(self):
        self.complain(rules.check_includes, {"base/a.c": '#include "data/module.h"\n'},
                      "base may not use data")
        self.complain(rules.check_includes, {"report/a.c": '#include "unwind/walk.h"\n'},
                      "report may not use unwind")
        self.complain(rules.check_includes, {"report/a.c": '#include <unwind/walk.h>\n'},
                      "report may not use unwind")
        self.complain(rules.check_includes, {"process/a.c": ' # include "maps.h"\n'},
                      "write ROOM/FILE.h")
        self.accept(rules.check_includes, {
            "unwind/a.c": '#include <sys/mman.h>\n#include "stacksnap.h"\n'
                          '#include "unwind/a.h"\n#include "arch/arch.h"\n'})

    def test_folders(self):
        self.complain(rules.check_folders,
                      {"runtime/python/a.c": '#include "runtime/v8/v8.h"\n'}, "another folder")
        self.accept(rules.check_folders, {
            "runtime/python/a.c": '#include "runtime/python/b.h"\n#include "runtime/c.h"\n',
            "runtime/all.c": '#include "runtime/v8/v8.h"\n',
            "unwind/a.c": '#include "runtime/v8/v8.h"\n'})

    def test_third_party(self):
        self.complain(rules.check_third_party, {"capture/freeze.c": "#include <libelf.h>\n"},
                      "libelf.h")
        self.complain(rules.check_third_party,
                      {"capture/freeze.c": "#include <libunwind.h>\n"}, "live.c")
        self.complain(rules.check_third_party, {"report/a.c": "#include <elfutils/libdw.h>\n"},
                      "libdw.h")
        self.accept(rules.check_third_party, {
            "capture/live.c": "#include <libunwind.h>\n",
            "capture/regs.c": "#include <elf.h>\n", "unwind/a.c": "#include <libunwind.h>\n"})

    def test_processor(self):
        bad = "#if defined(__x86_64__)\n#endif\n"
        self.complain(rules.check_processor, {"unwind/a.c": bad}, "__x86_64__")
        self.complain(rules.check_processor, {"base/a.h": "# ifdef __aarch64__\n# endif\n"},
                      "__aarch64__")
        self.accept(rules.check_processor, {"arch/a.c": bad})

    def test_host(self):
        bad = "static unsigned ss_n(void) { return ss_arch_host.reg_count; }\n"
        self.complain(rules.check_host, {"unwind/a.c": bad}, "ss_arch_host")
        self.complain(rules.check_host, {"diagnose/a.c": bad}, "ss_arch_host")
        self.accept(rules.check_host, {"capture/a.c": bad, "unwind/libunwind.c": bad})

    def test_proc_paths(self):
        bad = 'const char *ss_p = "/proc/%d/maps";\n'
        self.complain(rules.check_proc_paths, {"unwind/a.c": bad}, "/proc/%d/maps")
        self.accept(rules.check_proc_paths, {"capture/a.c": bad,
                                             "process/a.h": "/* /proc/PID/maps */\n"})

    def test_process_calls(self):
        bad = "long ptrace();\nlong ss_f(void) { return ptrace(0); }\n"
        self.complain(rules.check_process_calls, {"unwind/a.c": bad}, "calls ptrace")
        number = "#define N SYS_ptrace\n"
        call = number + "long syscall(long n); void ss_f(void) { syscall(101); }\n"
        self.complain(rules.check_process_calls, {"data/a.c": call}, "SYS_ptrace")
        self.accept(rules.check_process_calls, {"data/a.c": number})
        self.accept(rules.check_process_calls, {"capture/a.c": bad})

    def test_forks(self):
        bad = "int fork(); int ss_f(void) { return fork(); }\n"
        self.complain(rules.check_forks, {"capture/a.c": bad}, "calls fork")
        self.complain(rules.check_forks, {"cli/a.c": bad.replace("fork", "posix_spawnp")},
                      "calls posix_spawnp")
        self.complain(rules.check_forks, {"process/a.c": bad.replace("fork", "waitpid")},
                      "calls waitpid")
        self.complain(rules.check_forks, {
            "process/a.c": "long syscall(long n); void ss_f(void) { syscall(57); /* SYS_fork */ }"},
            "SYS_fork")
        self.accept(rules.check_forks, {"base/child.c": bad, "process/a.c": "/* fork() */"})

    def test_frozen(self):
        bad = "void *malloc();\nvoid *ss_f(void) { return malloc(9); }\n"
        self.complain(rules.check_frozen, {"capture/freeze.c": bad}, "malloc")
        self.accept(rules.check_frozen, {"capture/result.c": bad})

    def test_frozen_calls(self):
        """Through a function of another file, a static one, and one that is handed over."""
        allocates = ("void *malloc();\n"
                     "static __attribute__((noinline, noclone)) void *make(int n)\n"
                     "{ return malloc(n); }\n"
                     "void *ss_help(int n) { return make(n + 1); }\n")
        root = "void *ss_help(int n);\nvoid *ss_arena_copy(int n) { return ss_help(n); }\n"
        hands = ("void *ss_help(int n);\nvoid *ss_call(void *(*f)(int));\n"
                 "void *ss_arena_copy(void) { return ss_call(ss_help); }\n")
        for code in (root, hands):
            self.complain(rules.check_frozen_calls,
                          {"capture/stacks.c": code, "process/a.c": allocates}, "malloc")
        self.accept(rules.check_frozen_calls,
                    {"capture/stacks.c": root.replace("ss_arena_copy", "ss_arena_give"),
                     "process/a.c": allocates})
        self.accept(rules.check_frozen_calls,
                    {"capture/stacks.c": root.replace("ss_help", "ss_target_peek_state"),
                     "process/a.c": allocates.replace("ss_help", "ss_target_peek_state")})

    def test_manners(self):
        for room in ("base", "symbolize"):
            for call in ("printf", "exit", "abort", "sigaction", "__printf_chk", "signal"):
                code = "int %s();\nint ss_f(int n) { return %s(n, \"%%d\") + 1; }\n"
                self.complain(rules.check_manners, {room + "/a.c": code % (call, call)}, call)
        self.complain(rules.check_manners, {
            "base/a.c": "#include <stdio.h>\nFILE *ss_f(void) { return stderr; }\n"}, "stderr")
        self.accept(rules.check_manners, {
            "report/a.c": "#include <stdio.h>\nint ss_f(void) { return puts(\"\"); }\n"})

    def test_texts(self):
        search = ("#include <string.h>\n"
                  "int ss_f(const char *a, const char *b) { return strstr(a, b) != 0; }\n")
        format = ("#include <stdio.h>\n"
                  "int ss_f(char *a, int b) { return snprintf(a, 9, \"%d\", b) + 1; }\n")
        for room in ("report", "cli"):
            self.complain(rules.check_texts, {room + "/a.c": search}, "strstr")
        self.complain(rules.check_texts, {"diagnose/a.c": format}, "snprintf")
        self.accept(rules.check_texts, {"diagnose/a.c": search, "cli/completion.c": search,
                                        "report/a.c": format})

    def test_globals(self):
        for code in ("int ss_count = 1;", "static int n; int ss_f(void) { return n++; }",
                     "int ss_f(void) { static int n = 2; return n++; }",
                     "_Thread_local int ss_n;", "char *ss_name = \"\";"):
            self.complain(rules.check_globals, {"data/a.c": code + "\n"}, " is in ")
        self.accept(rules.check_globals, {
            "data/a.c": "const char *const ss_names[] = { \"a\", \"b\" };\nconst int ss_n = 3;\n",
            "cli/a.c": "int ss_count = 1;\n"})

    def test_names(self):
        self.complain(rules.check_names, {"report/a.c": "void render(void) {}\n"}, "render")
        self.complain(rules.check_names, {"base/a.c": "const int table = 1;\n"}, "table")
        self.accept(rules.check_names, {"cli/main.c": "int main(void) { return 0; }\n",
                                        "base/a.c": "void ss_f(void) {}\nstatic int f;\n"})

    def test_calls(self):
        files = {"trace/a.c": "int ss_f(void) { return 1; }\n",
                 "report/a.c": "int ss_f(void);\nint ss_g(void) { return ss_f(); }\n"}
        self.complain(rules.check_calls, files, "report may not use trace (ss_f)", set())
        self.accept(rules.check_calls, files, {"ss_f"})
        self.accept(rules.check_calls, files, set(), {"ss_f"})
        files = {path.replace("report/", "unwind/"): text
                 for path, text in files.items()}
        self.complain(rules.check_calls, files, "unwind may not use trace (ss_f)", {"ss_f"},
                      {"ss_f"})

    def test_components(self):
        files = {"crash/cli/a.c": "int ss_f(void) { return 1; }\n",
                 "cli/a.c": "int ss_f(void);\nint ss_g(void) { return ss_f(); }\n"}
        self.complain(rules.check_components, files, "cli/a.c: needs ss_f, which SS_CRASH may leave out")
        files["cli/a.c"] = "#define SS_CRASH 1\n#if SS_CRASH\n" + files["cli/a.c"] + "#endif\n"
        self.accept(rules.check_components, files)

    def test_include_cycles(self):
        self.complain(rules.check_include_cycles, {
            "base/a.h": '#include "base/b.h"\n', "base/b.h": '#include "base/a.h"\n'},
            "base/a.h > base/b.h > base/a.h")
        self.accept(rules.check_include_cycles, {
            "base/a.h": '#include "base/b.h"\n', "base/b.h": "",
            "base/b.c": '#include "base/a.h"\n#include "base/b.h"\n'})

    def test_users(self):
        header = {"base/a.h": "", "base/a.c": '#include "base/a.h"\n',
                  "base/b.c": '#include "base/a.h"\n'}
        self.complain(rules.check_users, header, "base/a.h: only base/b.c uses it")
        self.accept(rules.check_users, {**header, "base/c.c": '#include "base/a.h"\n'})
        self.accept(rules.check_users,
                    {**header, "../tests/unit/test_a.c": '#include "base/a.h"\n'})

    def test_circles(self):
        """Of two files, and of three; a table of functions that refers back is none."""
        call = "void ss_%s(void);\nvoid ss_%s(void) { ss_%s(); }\n"
        self.complain(rules.check_circles, {"base/a.c": call % ("b", "a", "b"),
                                            "data/b.c": call % ("a", "b", "a")},
                      "base/a.c, data/b.c")
        self.complain(rules.check_circles, {"base/a.c": call % ("b", "a", "b"),
                                            "base/b.c": call % ("c", "b", "c"),
                                            "base/c.c": call % ("a", "c", "a")},
                      "base/a.c, base/b.c, base/c.c")
        self.accept(rules.check_circles, {
            "base/a.c": "extern const int ss_b;\nconst int *ss_a(void) { return &ss_b; }\n",
            "base/b.c": "void ss_a(void);\nconst int ss_b = 1;\nvoid ss_f(void) { ss_a(); }\n"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
