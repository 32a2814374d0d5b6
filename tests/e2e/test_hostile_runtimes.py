"""Names of functions, files and tasks that a program of an interpreter made up, in every output
format; and structures of an interpreter that are forged, and change while they are read.

Debian packages: python3 (3.11 or later).
"""
# ctest: timeout=300 long-without-sanitizers

import gzip
import json
import os
import re
import shutil
import sys
import tempfile

from harness import EndToEnd, main

EVIL = ("\x1b]0;title\x07\x1b[31m</script><script>alert(1)</script>\r\n\"\\;\t\x7f\x9b31m"
        "\u202e\ud800&amp;")

# The first thread waits in functions, and has a task, with such names; the second one in a function
# whose name has a million characters.
SCRIPT = """
import asyncio, sys, threading
EVIL = %r
def block():
    sys.stdin.read()
def evil(function):
    code = function.__code__
    function.__code__ = code.replace(co_name=EVIL, co_qualname=EVIL, co_filename="/tmp/" + EVIL)
    return function
def long():
    threading.Event().wait()
long.__code__ = long.__code__.replace(co_name="x" * 1000000, co_qualname="x" * 1000000)
async def forever():
    await asyncio.Event().wait()
@evil
def blocks():
    print("ready", flush=True)
    block()
async def run():
    tasks = [asyncio.create_task(forever(), name=EVIL) for i in range(2)]
    await asyncio.sleep(0)
    blocks()
threading.Thread(target=long, daemon=True).start()
asyncio.run(run())
""" % EVIL

# What terminals obey, but for newlines.
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")


# Formats with tabs of their own.
TABS = ("html", "perf", "dot")


class HostileNames(EndToEnd):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="stacksnap-")
        cls.addClassCleanup(shutil.rmtree, cls.directory)

    def path(self, name):
        return os.path.join(self.directory, name)

    def output(self, *arguments):
        """To a file, as binary formats want it."""
        path = self.path("output")
        self.run_tool(*arguments, "-o", path, status=(0, 1))
        with open(path, "rb") as file:
            content = file.read()
        os.unlink(path)
        return content

    def check(self, form, content, wanted=True):
        """Shows the name, and lets it do nothing."""
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
            self.assertIn(b"alert(1)", content, form)
            return
        text = content.decode("utf-8")
        found = CONTROL.search(text.replace("\t", "") if form in TABS else text)
        self.assertIsNone(found, (form, found, text[:3000]))
        self.assertNotIn("alert(1)</script>\n", text)
        if form == "html":
            self.assertNotIn("alert(1)", text)
            return
        if wanted:
            self.assertIn("alert(1)", text, form)
        if form in ("json", "speedscope"):
            json.loads(text)
        if form in ("folded", "perf"):
            self.assertNotRegex(text, r"(?m)^\W*31m", form)
        if form == "folded":
            for line in text.splitlines():
                self.assertRegex(line, r" \d+$")
        if form == "rows":
            for line in text.splitlines():
                json.loads(line)

    def start_script(self):
        if sys.version_info < (3, 11):
            self.skipTest("code objects of this Python have no qualified name")
        return self.start_command(["/usr/bin/python3", "-S", "-c", SCRIPT])

    def test_snapshots(self):
        target = self.start_script()
        snapshot = self.snap(target.pid, status=(0, 1))
        # The main thread has the name; a name of a million characters is not one.
        symbols = [frame["symbol"] for frame in snapshot.thread(target.pid)["frames"]]
        self.assertIn("block", symbols)
        self.assertTrue(any("alert(1)" in (symbol or "") for symbol in symbols), symbols)
        text = json.dumps(snapshot.data)
        self.assertLess(len(text), 1 << 20)
        self.assertNotIn("x" * 5000, text)
        for form in ("text", "json", "gdb", "eu", "folded", "dot", "rows"):
            with self.subTest(form=form):
                self.check(form, self.output("-f", form, target.pid), form != "dot")
        for form in ("text", "json", "folded", "html", "speedscope", "pprof", "perf"):
            with self.subTest(form=form, series=True):
                self.check(form, self.output("-i", "100ms", "-c", "2", "-f", form, target.pid))
        for form in ("text", "json"):
            with self.subTest(form=form, diff=True):
                self.check(form, self.output("diff", "-a", "-f", form, target.pid))
        with self.subTest(form="text", hang=True):
            self.check("text", self.run_tool("hang", target.pid, status=(0, 1, 3, 4)).stdout, False)
        with self.subTest(form="text", top=True):
            self.check("text", self.run_tool("top", "--once", target.pid, status=(0, 1)).stdout,
                       False)

    def test_recordings(self):
        target = self.start_script()
        path = self.path("names.rec")
        self.run_tool("record", "-d", "500ms", "-o", path, target.pid)
        for form in ("text", "json", "folded", "html", "speedscope", "pprof", "perf", "rows"):
            with self.subTest(form=form):
                self.check(form, self.output("report", "-f", form, path), form != "rows")


class Forged(EndToEnd):
    """A program that claims to be CPython: what it changes meanwhile is never shown mixed with
    garbage, and every snapshot ends."""

    def check_names(self, symbol, file, what):
        """Those of one function. A length that is changed cuts them."""
        self.assertTrue(any(name.startswith(symbol or "") and path.startswith(file or "")
                            for name, path in (("forged_a", "a.py"), ("forged_b", "b.py"))), what)

    def calls(self, frames):
        return [(frame["symbol"], frame["file"], frame["line"]) for frame in frames
                if frame["kind"] == "python"]

    def test_valid(self):
        target = self.start("forged_python")
        snapshot = self.snap(target.pid)
        frames = snapshot.thread(target.pid)["frames"]
        self.assertEqual(self.calls(frames), [("forged_a", "a.py", 7)], json.dumps(snapshot.data))

    def test_moving(self):
        target = self.start("forged_python", "moving", settle=False)
        shown = 0
        for mode in ("auto", "stop", "no-stop"):
            for _ in range(4):
                snapshot = self.snap(target.pid, mode=mode, status=(0, 1))
                calls = self.calls(snapshot.thread(target.pid)["frames"])
                shown += bool(calls)
                self.assertLessEqual(len(calls), 1, (mode, snapshot.stderr))
                for symbol, file, _line in calls:
                    self.check_names(symbol, file, (mode, calls))
        path = os.path.join(tempfile.mkdtemp(prefix="stacksnap-"), "forged.rec")
        self.addCleanup(shutil.rmtree, os.path.dirname(path))
        self.run_tool("record", "-d", "1s", "-o", path, target.pid, status=(0, 1))
        text = self.run_tool("report", "-f", "json", path, status=(0, 1)).stdout
        for frame in json.loads(text)["frames"]:
            if frame.get("kind") == "python":
                self.check_names(frame["name"], frame["file"], frame)
        self.run_tool("hang", target.pid, status=(0, 1, 3, 4))
        print("%d of 12 snapshots show the function" % shown)


if __name__ == "__main__":
    main()
