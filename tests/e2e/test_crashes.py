"""The stacks of real crashes, frame by frame as eu-stack and gdb find them in the same core file."""
# ctest: long-with-sanitizers slow

import itertools
import json
import os
import re
import shutil
import subprocess
import tempfile

from core_dump import CoreDump, eu_stack
from harness import LIMIT_S, Snapshot, TARGETS, canonical, main

PROGRAM = os.path.join(TARGETS, "fatal_signals")
FRAMES = 64  # compared of each thread

GDB = """
import gdb, json
stacks = {}
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frame, pcs = gdb.newest_frame(), []
    while frame is not None and len(pcs) < %d:
        if frame.type() != gdb.INLINE_FRAME:
            pcs.append(frame.pc())
        try:
            frame = frame.older()
        except gdb.error:
            break
    while pcs and pcs[-1] == 0:  # gdb does not know that this was the outermost frame
        pcs.pop()
    stacks[thread.ptid[1] or thread.ptid[0]] = pcs
print("STACKS " + json.dumps(stacks))
""" % FRAMES


def gdb(core, program):
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(GDB)
        script.flush()
        text = subprocess.run(
            ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex",
             "set auto-load off", "-ex", "set backtrace past-main on", "-ex",
             "set backtrace past-entry on", "-x", script.name, program, core],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=2 * LIMIT_S,
            text=True).stdout
    found = re.search("^STACKS (.*)$", text, re.M)
    return {int(tid): pcs for tid, pcs in json.loads(found.group(1)).items()} if found else {}


class Crashes(CoreDump):
    def compare(self, core, program, few=0):
        """Every thread has the stack that eu-stack or gdb finds, except `few` at most; of those
        the others' frames are the first ones of ours, or ours end earlier at a function that is
        known to be the outermost one. Returns the snapshot."""
        snapshot = Snapshot(self.run_tool("core", "-f", "json", "-n", str(FRAMES), "--native", core,
                                          program, status=(0, 1)))
        others = [eu_stack(core, program, FRAMES), gdb(core, program)]
        different = []
        for thread in snapshot.threads:
            # A recursion that is cut ends the others.
            frames = list(itertools.takewhile(lambda frame: not frame["omitted"],
                                              thread["all_frames"]))
            pcs = [int(frame["pc"], 16) for frame in frames
                   if not frame["inlined"] and frame["kind"] == "native"]
            theirs = [other.get(thread["tid"], []) for other in others]
            if not any(pcs == other for other in theirs):
                different.append((thread["tid"], thread["end"],
                                  [(f["pc"], f["symbol"], f["source"]) for f in thread["all_frames"]
                                   if not f["inlined"]],
                                  [["0x%x" % pc for pc in other] for other in theirs]))
        self.assertLessEqual(len(different), few, json.dumps(different[:3], indent=1))
        for _, end, frames, theirs in different:
            pcs = [frame[0] for frame in frames]
            self.assertTrue(any(other == pcs[:len(other)] or
                                end == "root" and pcs == other[:len(pcs)] for other in theirs),
                            json.dumps(different, indent=1))
        return snapshot

    def crashed(self, snapshot):
        """Names of the frames of the thread that crashed."""
        tid = snapshot.data["capture"]["crash"]["tid"]
        return [canonical(frame["symbol"]) for frame in snapshot.thread(tid)["frames"]]

    def test_crashes(self):
        for how, signal, names in (
                ("nowhere", "SIGSEGV", [None, "fail_nowhere", "main"]),
                ("assertion", "SIGABRT", ["abort", "fail_assertion", "main"]),
                ("double_free", "SIGABRT", ["abort", "free", "fail_double_free", "main"]),
                ("mapping", "SIGBUS", ["fail_mapping", "main"]),
                ("filter", "SIGSYS", ["syscall", "fail_filter", "main"]),
                ("overflow", "SIGSEGV", ["raise_again", "recurse"]),
                ("handler", "SIGSEGV", ["read_null", "read_null_in_handler", "raise",
                                        "fail_handler"]),
                ("malloc", "SIGSEGV", ["read_null", "fail_malloc", "main"]),
                ("vfork", "SIGSEGV", ["read_null", "fail_vfork", "main"]),
                ("many", "SIGSEGV", ["read_null", "fail_many", "main"])):
            with self.subTest(how=how):
                core = self.dump(PROGRAM, how, may_live=how == "vfork")
                snapshot = self.compare(core, PROGRAM)
                self.assertEqual(snapshot.data["capture"]["crash"]["name"], signal)
                stack = [name and name.partition("(")[0] for name in self.crashed(snapshot)]
                rest = iter(stack)
                self.assertTrue(all(name in rest for name in names), stack)
                self.assertEqual(len(snapshot.threads), {"malloc": 4, "many": 501}.get(how, 1))

    def test_exception(self):
        snapshot = self.compare(self.dump(PROGRAM, "exception"), PROGRAM)
        self.assertRegex(snapshot.data["capture"]["crash"]["signature"], r"^fail_exception\([^|]*$")

    def test_python(self):
        """In an extension module: ctypes."""
        python = os.path.realpath("/usr/bin/python3")
        if not os.path.exists(python):
            self.skipTest("there is no Debian python3")
        snapshot = self.compare(self.dump(python, "-c", "import ctypes; ctypes.string_at(1)"),
                                python)
        self.assertEqual(snapshot.data["capture"]["crash"]["name"], "SIGSEGV")

    def test_go(self):
        if not shutil.which("go"):
            self.skipTest("there is no go")
        source = os.path.join(self.directory, "crash.go")
        with open(source, "w") as file:
            file.write("package main\n\nvar sum int\n\ntype node struct{ next *node; value int }\n\n"
                       "//go:noinline\nfunc read(n *node) int {\n\tm := n.next\n\tsum = 7\n"
                       "\treturn m.value\n}\n\nfunc main() { println(read(&node{})) }\n")
        program = os.path.join(self.directory, "crash")
        stripped = os.path.join(self.directory, "stripped")
        environment = {**os.environ, "GOCACHE": os.environ.get("GOCACHE", self.directory + "/cache"),
                       "GO111MODULE": "off",
                       "CGO_ENABLED": "0"}
        for path, options in ((program, []), (stripped, ["-ldflags=-s -w"])):
            subprocess.run(["go", "build", *options, "-o", path, source], check=True,
                           timeout=4 * LIMIT_S, env=environment)
        # gdb and eu-stack end at the frame of a signal. Go's tables lead on,
        # and say that mstart is the outermost function of a thread.
        snapshot = self.compare(self.dump(program, environment={"GOTRACEBACK": "crash"}), program,
                                few=99)
        self.assertEqual(snapshot.data["capture"]["crash"]["name"], "SIGABRT")
        self.assertEqual(snapshot.data["capture"]["crash"]["signature"], "main.read")
        stack = self.crashed(snapshot)
        functions = ["main.read", "main.main", "runtime.main"]
        self.assertEqual(stack[stack.index("main.read"):][:3], functions)
        lines = [frame["line"] for thread in snapshot.threads for frame in thread["frames"]
                 if frame["symbol"] == "main.read"]
        self.assertEqual(lines, [11], stack)  # and not 10, of the instruction before
        # Without debug information, Go's tables lead to the fault.
        core = self.dump(stripped, environment={"GOTRACEBACK": "crash"})
        snapshot = Snapshot(self.run_tool("core", "-f", "json", core, stripped, status=(0, 1)))
        stack = self.crashed(snapshot)
        self.assertIn("main.read", stack)
        self.assertEqual(stack[stack.index("main.read"):][:3], functions)

    def test_java(self):
        if not shutil.which("java"):
            self.skipTest("there is no java")
        source = os.path.join(self.directory, "Crash.java")
        with open(source, "w") as file:
            file.write("import java.lang.reflect.Field;\npublic class Crash {\n"
                       "  public static void main(String[] a) throws Exception {\n"
                       "    Field f = sun.misc.Unsafe.class.getDeclaredField(\"theUnsafe\");\n"
                       "    f.setAccessible(true);\n"
                       "    ((sun.misc.Unsafe) f.get(null)).putAddress(16, 1);\n  }\n}\n")
        core = self.dump("java", "-Xmx64m", "-Xint", "-XX:+UseSerialGC",
                         "-XX:+CreateCoredumpOnCrash", "-XX:ErrorFile=/dev/null", source)
        snapshot = self.compare(core, os.path.realpath(shutil.which("java")), few=99)
        self.assertEqual(snapshot.data["capture"]["crash"]["name"], "SIGABRT")


if __name__ == "__main__":
    main()
