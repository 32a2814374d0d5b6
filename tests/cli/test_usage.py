"""The command line: wrong usage, invalid input, every public option, output files.

Runs the program named by STACKSNAP against processes of its own.
"""
# ctest: long-with-sanitizers
import json
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

STACKSNAP = os.environ["STACKSNAP"]
WHOLE, PARTIAL, NOTHING, USAGE = 0, 1, 2, 64

# Starts three threads with distinct names, then prints "ready".
TARGET = r"""
import ctypes, sys, threading, time
libc = ctypes.CDLL(None)
def work(name):
    libc.prctl(15, name, 0, 0, 0)
    started.release()
    time.sleep(1000)
started = threading.Semaphore(0)
names = [b"worker-1", b"worker-2", b"odd\x1b[31m\xff;x"]
for name in names:
    threading.Thread(target=work, args=(name,), name=name.decode("latin-1"), daemon=True).start()
for name in names:
    started.acquire()
print("ready", flush=True)
time.sleep(1000)
"""


def snap(*arguments, **keywords):
    keywords.setdefault("stdout", subprocess.PIPE)
    keywords.setdefault("stderr", subprocess.PIPE)
    return subprocess.run([STACKSNAP, *map(str, arguments)], timeout=60, **keywords)


def comm(tid_path):
    with open(tid_path + "/comm", "rb") as file:
        return file.read()


class Target(unittest.TestCase):
    """Starts a target process for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        cls.process = subprocess.Popen([sys.executable, "-c", TARGET],
                                       stdout=subprocess.PIPE)
        cls.pid = cls.process.pid
        assert cls.process.stdout.readline() == b"ready\n"
        cls.tids = sorted(map(int, os.listdir(f"/proc/{cls.pid}/task")))
        cls.workers = [tid for tid in cls.tids
                       if comm(f"/proc/{cls.pid}/task/{tid}").startswith(b"worker-")]

    @classmethod
    def tearDownClass(cls):
        cls.process.kill()
        cls.process.wait()
        cls.process.stdout.close()

    def good(self, *arguments):
        result = snap(*arguments)
        self.assertEqual(result.returncode, WHOLE, result.stderr)
        return result.stdout.decode()

    def document(self, *arguments):
        return json.loads(self.good("-f", "json", *arguments, self.pid))

    def bad(self, status, *arguments, says=None, **keywords):
        result = snap(*arguments, **keywords)
        message = result.stderr.decode()
        self.assertEqual(result.returncode, status, message)
        self.assertTrue(message.startswith("stacksnap: "), message)
        if says:
            self.assertIn(says, message)
        return message


class WrongUsage(Target):
    def test_pids(self):
        for pid, says in [("0", "from 1"), ("-5", "negative"), ("12x", "not a number"),
                          ("99999999999999999999999", "from 1"), ("+5", "not a number"),
                          ("4294967297", "from 1"), ("", "not a number"),
                          (" 5", "not a number"), ("0x5", "not a number")]:
            self.bad(USAGE, pid, says=says)
            self.bad(USAGE, "snap", pid)

    def test_tids(self):
        for tids in ["", "0", "x", "1,", ",1", "1/2", "-1"]:
            self.bad(USAGE, f"{self.pid}/{tids}", says="tid")

    def test_one_invalid_pid_is_an_error(self):
        self.assertEqual(snap(self.pid, "0").stdout, b"")

    def test_no_pid(self):
        for command in [[], ["snap"], ["hang"], ["record"], ["modules"]]:
            self.bad(USAGE, *command, says="expected a pid")

    def test_unknown_command(self):
        for word in ["frobnicate", "recordings"]:
            message = self.bad(NOTHING, word, self.pid, says="neither a command nor the name")
            self.assertIn(repr(word), message)
            self.assertIn("\n  hint: stacksnap --help", message)
            self.assertEqual(snap(word, self.pid).stdout, b"")

    def test_hint(self):
        """Wrong usage is one line, and a hint with the name of the command."""
        for command in ["snap", "hang", "record", "report", "modules"]:
            for arguments in [["--frobnicate"], ["--help=x"], []]:
                lines = self.bad(USAGE, command, *arguments).splitlines()
                self.assertEqual(lines[1:], [f"  hint: stacksnap {command} --help lists the options"])

    def test_one_process_only(self):
        for command in ["modules"]:
            for arguments in [[1, 2], ["-p", 1, 2], ["--name=x", "-p1"], ["x", "y"]]:
                self.bad(USAGE, command, *arguments, says="expected one process")

    def test_unknown_option(self):
        self.bad(USAGE, "--frobnicate", self.pid, says="frobnicate")
        self.bad(USAGE, "-q", self.pid)

    def test_values(self):
        for option in ["--format=xml", "--max-frames=x", "--max-frames=-1", "-n",
                       "--max-frames=4294967296", "--thread=(", "--thread=0",
                       "--state=", "--state=Q", "--mode=fast", "--timeout=0",
                       "--timeout=1s", "--max-stack=0", "--max-total=0",
                       "--max-stack=99999999999", "--debug-dir=/nonexistent",
                       "--sysroot=/etc/passwd", "--output=", "--output=a%z",
                       "--output=a%", "--completion=tcsh", "--color=blue", "--color=",
                       "--name=(", "--pid=x", "-p0", "-p"]:
            with self.subTest(option):
                self.bad(USAGE, str(self.pid), option)

    def test_unknown_format_lists_known_formats(self):
        for command, known in [("snap", "text, json, brief, folded, gdb, eu, dot, recording, minidump, "
                                        "satyr, apport, rows"),
                               ("hang", "text, json, brief, rows"),
                               ("report", "text, json, folded, html, speedscope, pprof, perf, rows")]:
            for name in ["xml", "", "gdb2"] + (["gdb"] if command != "snap" else []):
                self.bad(USAGE, command, "-f", name, self.pid,
                             says=f"--format: unknown format '{name}'; known formats: {known}\n")

    def test_format_of_several_snapshots(self):
        for name in ["html", "speedscope", "pprof", "perf"]:
            self.bad(USAGE, "-f", name, self.pid,
                     says=f"--format: '{name}' shows several snapshots: add --interval, or give a recording to "
                          "stacksnap report\n")


class WhatWasMeant(Target):
    """Errors that say what to do instead."""

    def hint(self, status, *arguments):
        return self.bad(status, *arguments).splitlines()[1].removeprefix("  hint: ")

    def test_similar_words(self):
        for status, arguments, word in [
                (NOTHING, ["snpa", self.pid], "stacksnap snap"), (USAGE, ["help", "tpo"], "stacksnap help top"),
                (USAGE, ["--jsn", self.pid], "--json"), (USAGE, ["hang", "--interval=1s", "--fro=5s", self.pid], "--for"),
                (USAGE, ["-f", "jsno", self.pid], "-f json"), (USAGE, ["report", "-fhtlm", "x"], "-f html"),
                (USAGE, ["modules", "-f", "jso", self.pid], "-f json")]:
            self.assertEqual(self.hint(status, *arguments), f"did you mean {word}?")

    def test_processes_and_files(self):
        self.assertIn("snap PID PID", self.hint(USAGE, "diff", self.pid, os.getpid()))
        self.assertIn(f"stacksnap {self.pid}", self.hint(NOTHING, "core", self.pid))
        self.assertIn(f"stacksnap record {self.pid}", self.hint(NOTHING, "report", self.pid))
        with tempfile.NamedTemporaryFile(suffix=".dmp") as file:
            file.write(b"MDMP" + bytes(60))
            file.flush()
            for command in ["report", "core"]:
                self.bad(NOTHING, command, file.name, says="minidump-stackwalk")
        self.bad(NOTHING, "report", sys.executable, says="stacksnap core")

    def test_commands_that_cannot_start(self):
        for command in ["record", "run"]:
            for program, status in [("/nonexistent", 127), ("/etc/passwd", 126)]:
                self.bad(status, command, "--", program, says=program)

    def test_devices_and_directories(self):
        self.good("-o", "/dev/null", self.pid)
        result = snap("record", "-d", "100ms", "-o", "/dev/null", self.pid)
        self.assertLess(result.returncode, NOTHING, result.stderr)
        self.assertNotIn("remove it", self.bad(NOTHING, "-o", "/tmp", self.pid))
        with tempfile.TemporaryDirectory() as directory:
            os.mkdir(directory + "/out")
            for name in ["out/", directory + "/out/"]:
                self.bad(NOTHING, "record", "-o", name, "--", "touch", "started", cwd=directory, says="name a file in it")
            self.bad(NOTHING, "record", "-o", "new/", "--", "touch", "started", cwd=directory, says="cannot create")
            self.assertEqual(os.listdir(directory), ["out"])

    def test_variable_that_is_not_set(self):
        result = snap("-f", "rows", "--env=NOPE", self.pid)
        self.assertEqual(result.returncode, WHOLE)
        self.assertIn(f"process {self.pid} has no variable NOPE".encode(), result.stderr)

    def test_json(self):
        """--json is -f json, also where a command has formats of its own."""
        for command, *options in [["snap"], ["hang", "--for=100ms"], ["diff", "--after=100ms"], ["modules"]]:
            document = json.loads(self.good(command, *options, "--json", self.pid))
            self.assertRegex(document["schema"], "^stacksnap-[a-z]+/1$")
        modules = json.loads(self.good("modules", "-f", "json", self.pid))["modules"]
        text = self.good("modules", self.pid)
        self.assertEqual([module["path"] for module in modules],
                         [line.split(None, 3)[3] for line in text.splitlines()])
        with tempfile.TemporaryDirectory() as directory:
            self.good("modules", "-o", directory + "/%p", self.pid)
            with open(f"{directory}/{self.pid}", encoding="utf-8") as file:
                self.assertEqual(file.read(), text)
            self.bad(NOTHING, "modules", "-o", f"{directory}/{self.pid}", self.pid)


class BadTargets(Target):
    def test_no_such_process(self):
        self.bad(NOTHING, "4000000", says="4000000")

    def test_kernel_thread(self):
        if not os.path.exists("/proc/2/comm") or comm("/proc/2") != b"kthreadd\n":
            self.skipTest("no kernel threads are visible in this pid namespace")
        self.bad(NOTHING, "2", says="kernel thread")

    def test_itself(self):
        shell = subprocess.run(["sh", "-c", 'exec "$0" $$', STACKSNAP],
                               capture_output=True)
        self.assertEqual(shell.returncode, NOTHING)
        self.assertIn(b"itself", shell.stderr)

    def test_zombie(self):
        child = subprocess.Popen(["true"])
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        self.bad(NOTHING, child.pid)
        child.wait()

    def test_one_of_two(self):
        result = snap(self.pid, "4000000")
        self.assertEqual(result.returncode, PARTIAL)
        self.assertIn(b"4000000", result.stderr)
        self.assertIn(b"main thread", result.stdout)

    def test_the_target_keeps_running(self):
        self.good(self.pid)
        with open(f"/proc/{self.pid}/status") as file:
            text = file.read()
        self.assertIn("TracerPid:\t0\n", text)
        self.assertNotIn("State:\tT", text)
        self.assertNotIn("State:\tt", text)


class Options(Target):
    def test_formats(self):
        self.assertIn("main thread, sleeping", self.good(self.pid))
        self.assertIn("main thread, sleeping", self.good("--format=text", self.pid))
        self.assertIn("\nThread 1 (Thread 0x", self.good("-f", "gdb", self.pid))
        stacks = self.good("-feu", self.pid)
        self.assertTrue(stacks.startswith(f"PID {self.pid} - process\nTID "), stacks)
        self.assertIn(f"\nTID {self.pid}:\n#0  0x0000", stacks)
        self.assertRegex(self.good("snap", "-f", "folded", self.pid), r"(?m)^.* 1$")
        self.assertEqual(self.document()["schema"], "stacksnap-snapshot/1")

    def test_several_processes_in_json_are_one_line_each(self):
        lines = self.good("-f", "json", self.pid, os.getpid()).splitlines()
        self.assertEqual([json.loads(line)["process"]["pid"] for line in lines],
                         [self.pid, os.getpid()])

    def test_a_tid_selects_its_process(self):
        document = json.loads(self.good("-f", "json", self.workers[0]))
        self.assertEqual(document["process"]["pid"], self.pid)
        self.assertEqual(len(document["threads"]), len(self.tids))

    def test_arguments_are_escaped(self):
        """Messages quote arguments without their control characters."""
        bad = "a\x1b[31mb["
        for words in (["-f", bad], ["-t", bad], ["--mode", bad], ["--timeout=" + bad],
                      ["--unknown=" + bad], ["-\x1b"], ["--" + bad], [bad], ["report", bad],
                      ["report", "--rows=" + bad, "x"], ["report", "--from=" + bad, "x"],
                      ["record", "-d", bad, "1"], ["record", "--", "/" + bad],
                      ["hang", "--for=" + bad, "1"], ["modules", bad], ["-o", "/no/" + bad, "1"],
                      ["--debug-dir=" + bad, "1"]):
            with self.subTest(words=words):
                result = snap(*words)
                self.assertNotEqual(result.returncode, WHOLE)
                self.assertNotIn(b"\x1b", result.stdout + result.stderr)
                self.assertIn(b"\\x1b", result.stderr)

    def test_names_are_escaped(self):
        for arguments in [["-a"], ["-f", "gdb"], ["-f", "folded"], ["-v"]]:
            text = self.good(*arguments, self.pid)
            self.assertIn(r"odd\x1b[31m", text)
            self.assertNotIn("\x1b", text)
        names = [thread["comm"] for thread in self.document()["threads"]]
        self.assertIn("odd\x1b[31m\\xff;x", names)

    def test_max_frames(self):
        result = snap("-f", "json", "--no-inlines", "-n", 2, self.pid)
        self.assertEqual(result.returncode, PARTIAL)
        self.assertIn(b"[frames]", result.stderr)
        for thread in json.loads(result.stdout)["threads"]:
            self.assertEqual(len(thread["frames"]), 2)
            self.assertEqual(thread["end"], "frames")
        whole = self.document("--max-frames=0")
        self.assertTrue(all(t["end"] == "root" for t in whole["threads"]))

    def test_thread_by_pattern(self):
        document = self.document("--mode=stop", "-t", "^work.*[12]$")
        self.assertEqual([t["tid"] for t in document["threads"]], self.workers)
        self.assertEqual(document["capture"]["threads_stopped"], 2)

    def test_thread_by_id_may_be_repeated(self):
        document = self.document("-t", self.pid, "--thread", self.workers[1])
        self.assertEqual([t["tid"] for t in document["threads"]],
                         sorted([self.pid, self.workers[1]]))

    def test_tids_in_the_target(self):
        both = ",".join(map(str, self.workers))
        document = json.loads(self.good("-f", "json", f"{self.pid}/{both}"))
        self.assertEqual([t["tid"] for t in document["threads"]], self.workers)
        result = snap("-f", "json", f"{self.pid}/{self.pid},4000000")
        self.assertEqual(result.returncode, PARTIAL)
        self.assertIn(b"no thread 4000000", result.stderr)

    def test_no_thread_matches(self):
        for arguments in [["-t", "nobody"], ["-t", 4000000], ["--state=S", "-t", "nobody"]]:
            self.bad(NOTHING, *arguments, self.pid, says="thread")

    def test_no_thread_in_a_state_is_an_answer(self):
        for arguments in [["--state=Z"], ["--state=D", "-t", "worker"], ["-c2", "-i10ms", "--state=Z"]]:
            self.assertIn("\nnone of its threads is in a state that was asked for\n",
                          self.good(*arguments, self.pid))
        self.assertEqual(self.document("--state=Z")["threads"], [])
        self.assertEqual(self.good("--state=Z", "-f", "folded", self.pid), "")

    def test_state(self):
        document = self.document("--state=SR")
        self.assertEqual(len(document["threads"]), len(self.tids))

    def test_raw(self):
        text = self.good("--raw", self.pid)
        self.assertRegex(text, r"#0  libc\S*\+0x[0-9a-f]+ \[([0-9a-f]{40}|no build-id)\]")
        for thread in self.document("--raw")["threads"]:
            for frame in thread["frames"]:
                self.assertIsNone(frame["symbol"])
                self.assertIsNone(frame["file"])

    def test_raw_output_works_with_addr2line(self):
        thread = self.document("--raw", "-t", self.pid)["threads"][0]
        named = self.document("--no-inlines", "-t", self.pid)
        # Debian's python3 is stripped: use the first caller that has a name.
        index, symbol = next((i, frame["symbol"])
                             for i, frame in enumerate(named["threads"][0]["frames"])
                             if i > 0 and frame["symbol"])
        frame = thread["frames"][index]
        path = named["modules"][frame["module"]]["path"]
        lines = subprocess.run(["eu-addr2line", "-S", "-e", path, frame["lookup_offset"]],
                               capture_output=True, text=True).stdout.splitlines()
        self.assertEqual(lines[0].split("@")[0].split("+")[0], symbol.split("@")[0])

    def test_no_waits(self):
        with_waits = self.document()
        without = self.document("--no-waits")
        self.assertTrue(all(thread["wait"] for thread in with_waits["threads"]))
        self.assertEqual({str(thread["wait"]) for thread in without["threads"]}, {"None"})
        self.assertEqual([thread["frames"] for thread in without["threads"]],
                         [thread["frames"] for thread in with_waits["threads"]])

    def test_no_inlines_no_source(self):
        for thread in self.document("--no-inlines", "--no-source")["threads"]:
            for frame in thread["frames"]:
                self.assertFalse(frame["inlined"])
                if frame["kind"] == "native":
                    self.assertIsNone(frame["file"], frame)

    def test_paths_of_python_keep_their_packages(self):
        with tempfile.TemporaryDirectory() as directory:
            package = os.path.join(directory, "venv/lib/python3.11/site-packages/shop/orders")
            os.makedirs(package)
            with open(package + "/queue.py", "w", encoding="utf-8") as file:
                file.write("import time\ndef wait():\n    print(flush=True)\n    time.sleep(1000)\n")
            process = subprocess.Popen(
                [sys.executable, "-c", "from shop.orders import queue; queue.wait()"],
                env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(package))},
                stdout=subprocess.PIPE)
            self.addCleanup(process.stdout.close)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            process.stdout.readline()
            self.assertIn("wait at shop/orders/queue.py:4 ", self.good(process.pid))

    def test_no_demangle(self):
        self.document("--no-demangle")

    def test_no_group(self):
        text = self.good("--no-group", self.pid)
        self.assertEqual(len(re.findall(r"(?m)^(main thread|1 thread),", text)),
                         len(self.tids))

    def test_modes(self):
        for mode in ["auto", "stop", "live", "no-stop"]:
            with self.subTest(mode):
                done = self.document("--mode=" + mode)["capture"]["mode"]
                self.assertEqual(done, mode)

    def test_limits(self):
        self.document("--timeout=5000", "--max-stack=512", "--max-total=64")

    def test_directories(self):
        self.document("--debug-dir=/usr/lib", "--sysroot=/")

    def test_verbose(self):
        result = snap("-v", self.pid)
        self.assertEqual(result.returncode, WHOLE)
        self.assertRegex(result.stderr, b"open .*capture .*unwind .*symbolize .*render")
        self.assertIn(b"copied", result.stderr)

    def test_version_and_help(self):
        text = self.good("--version")
        self.assertRegex(text, r"^stacksnap \d+\.\d+\.\d+\nbuild-id: [0-9a-f]{16,}\n"
                               r"built with: .*\d.*, libunwind \d.*, elfutils \d.*\n$")
        notes = subprocess.run(["readelf", "-n", STACKSNAP], stdout=subprocess.PIPE, text=True, check=True)
        self.assertIn("Build ID: " + re.search("build-id: (.*)", text)[1] + "\n", notes.stdout)
        for arguments in [["snap", "--help"], ["snap", "-h"], ["-h", "--mode=stop"]]:
            text = self.good(*arguments)
            self.assertTrue(text.startswith("Usage: stacksnap snap [OPTION...] "), text)
            for word in ["snap ", "folded", "--max-frames=N", "Exit status"]:
                self.assertIn(word, text)
        for command in ["hang", "record", "report", "modules"]:
            for option in ["-h", "--help"]:
                self.assertTrue(self.good(command, option).startswith(
                    f"Usage: stacksnap {command} [OPTION...] "))

    def test_headings(self):
        """Options stand below their own heading: argp sorts those of one number by name."""
        for command in re.findall(r"^  (\w+) ", self.good("--help").split("Examples")[0], re.M):
            if command == "help":
                continue
            text = self.good(command, "--help")
            self.assertNotRegex(text, r"(?m)^ \S.*:\n\n")

    def test_overview_is_a_screen(self):
        text = self.good("--help")
        self.assertEqual({self.good(*arguments) for arguments in [["-h"], ["help"]]}, {text})
        lines = text.splitlines()
        self.assertLessEqual(len(lines), 36)
        self.assertLessEqual(max(map(len, lines)), 80)
        examples = text.split("Examples:\n")[1].split("\n\n")[0].splitlines()
        self.assertEqual(len(examples), 5)

    def test_words(self):
        """The words of the output are explained on one screen, and in the manual page."""
        lines = self.good("help", "words").splitlines()
        words = [line.split()[0] for line in lines[1:]]
        self.assertEqual(sorted(words), ["atomic", "blocked", "busy", "deadlock", "idle", "moving",
                                         "sample", "stuck"])
        self.assertLessEqual(max(map(len, lines)), 80)
        page = os.path.join(os.path.dirname(__file__), "..", "..", "man", "stacksnap.1")
        with open(page, encoding="utf-8") as file:
            section = file.read().split(".SS Words\n")[1].split("\n.S")[0]
        self.assertEqual(re.findall(r"(?m)^\.TP\n\.B (\w+)$", section), words)
    def test_help_opens_the_manual_page(self):
        """Man is given the page; without man, or without the page, --help is printed."""
        with tempfile.TemporaryDirectory() as directory:
            script = os.path.join(directory, "man")
            with open(script, "w") as file:
                file.write('#!/bin/sh\n[ "$1" = -w ] && { echo path; exit ${NO_PAGE:-0}; }\n'
                           'echo "man $*"\n')
            os.chmod(script, 0o755)
            environment = {**os.environ, "PATH": directory + ":/usr/bin:/bin"}
            for command, page in [("snap", "stacksnap"), ("hang", "stacksnap-hang")]:
                result = snap("help", command, env=environment)
                self.assertEqual((result.returncode, result.stdout.decode()),
                                 (WHOLE, f"man {page}\n"))
                for change in [{"NO_PAGE": "16"}, {"PATH": "/nonexistent"}]:
                    result = snap("help", command, env={**environment, **change})
                    self.assertEqual(result.returncode, WHOLE)
                    self.assertEqual(result.stdout.decode(), self.good(command, "--help"))
        self.bad(USAGE, "help", "frobnicate", says="not a command")
        self.bad(USAGE, "help", "snap", "hang", says="one command")

    def test_no_colours_in_a_pipe(self):
        self.assertNotIn("\033", self.good(self.pid))
        self.assertNotIn("\033", self.good("--color=never", self.pid))

    def test_colours_always(self):
        for arguments in [[], ["hang", "--for=10ms"]]:
            result = snap(*arguments, "--color=always", self.pid,
                          env={**os.environ, "NO_COLOR": "1"})
            self.assertIn(b"\033[", result.stdout)
            self.assertNotIn(b"odd\033", result.stdout)
        self.assertNotIn("\033", self.good("--color=always", "-f", "gdb", self.pid))


class Names(unittest.TestCase):
    """Processes by name: copies of sleep(1) with names of their own."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def start(self, name, *arguments):
        program = os.path.join(self.directory.name, name)
        if not os.path.exists(program):
            shutil.copy("/bin/sleep", program)
        process = subprocess.Popen([program, "1000", *arguments])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        while comm(f"/proc/{process.pid}") != name[:15].encode() + b"\n":
            time.sleep(0.01)
        return process.pid

    def pid_of(self, *arguments):
        result = snap("-f", "json", *arguments)
        self.assertEqual(result.returncode, WHOLE, result.stderr)
        return json.loads(result.stdout)["process"]["pid"]

    def test_one_match(self):
        name = f"nap{os.getpid()}"
        pid = self.start(name)
        for arguments in [[name], [f"--name=^{name}$"], ["--name", name[1:]], ["-p", pid],
                          [f"--pid={pid}"]]:
            self.assertEqual(self.pid_of(*arguments), pid)
        for command in [["hang", "--for=10ms"], ["modules"],
                        ["record", "-d", "200ms", "-o", self.directory.name + "/rec"]]:
            result = snap(*command, name)
            self.assertEqual(result.returncode, WHOLE, result.stderr)

    def test_the_name_of_the_program_counts(self):
        """Also where the kernel cuts the name of the thread after 15 bytes."""
        name = f"a-very-long-program-name-{os.getpid()}"
        pid = self.start(name)
        self.assertEqual(self.pid_of(name), pid)

    def test_several_matches_are_listed(self):
        name = f"nap{os.getpid()}"
        pids = [self.start(name, f"0.{i}") for i in range(2)]
        for arguments in [[name], ["modules", "--name=" + name], ["hang", name],
                          [os.getpid(), name]]:
            result = snap(*arguments)
            self.assertEqual((result.returncode, result.stdout), (NOTHING, b""))
            lines = result.stderr.decode().splitlines()
            self.assertRegex(lines[0], rf"stacksnap: 2 processes (are named|match) '{name}':")
            self.assertEqual([line.split() for line in lines[1:3]],
                             [[str(pid), self.directory.name + "/" + name, "1000", f"0.{i}"]
                              for i, pid in enumerate(pids)])
            self.assertIn(lines[3:], (["  hint: choose one by its pid"],
                                      [f"  hint: choose one by its pid, or take all of them "
                                       f"with --name='^{name}$'"]))

    def test_no_match(self):
        for arguments in [[f"nap{os.getpid()}"], [f"--name=^nap{os.getpid()}"]]:
            result = snap(*arguments)
            self.assertEqual(result.returncode, NOTHING)
            self.assertIn(b"\n  hint: ", result.stderr)


class Output(Target):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.file = os.path.join(self.directory.name, "out")

    def test_new_file_is_private_to_its_owner(self):
        self.assertEqual(self.good("-o", self.file, self.pid), "")
        self.assertEqual(stat.S_IMODE(os.stat(self.file).st_mode), 0o600)
        with open(self.file) as file:
            self.assertIn("main thread", file.read())

    def test_an_existing_file_is_refused(self):
        with open(self.file, "w") as file:
            file.write("precious")
        self.bad(NOTHING, "-o", self.file, self.pid, says="exists")
        with open(self.file) as file:
            self.assertEqual(file.read(), "precious")

    def test_links_are_refused(self):
        os.symlink(self.file, self.file + ".link")
        self.bad(NOTHING, "-o", self.file + ".link", self.pid, says="exists")
        self.assertFalse(os.path.exists(self.file))

    def test_pid_and_time_in_the_name(self):
        self.good("-o", self.file + "-%p-%t-%%", self.pid, os.getpid())
        names = sorted(os.listdir(self.directory.name))
        expected = sorted(rf"out-{pid}-\d{{8}}T\d{{6}}-%$"
                          for pid in [self.pid, os.getpid()])
        for name, pattern in zip(names, expected, strict=True):
            self.assertRegex(name, pattern)

    def test_a_report_has_no_pid(self):
        """A report may merge recordings of several processes."""
        self.bad(USAGE, "report", "-o", self.file + "-%p", "x.rec", says="%p")

    def test_no_file_is_left_after_a_failure(self):
        self.bad(NOTHING, "-o", self.file, "4000000")
        self.assertFalse(os.path.exists(self.file))

    def test_no_directory(self):
        self.bad(NOTHING, "-o", self.file + "/x/y", self.pid, says="cannot create")

    def test_dash_means_stdout(self):
        self.assertIn("main thread", self.good("-o", "-", self.pid))

    def test_full_disk(self):
        for arguments in [[self.pid], ["-f", "json", self.pid], ["--help"],
                          ["--version"], ["--completion=bash"]]:
            with open("/dev/full", "w") as full:
                self.bad(NOTHING, *arguments, stdout=full, says="standard output")

    def test_file_size_limit_leaves_no_partial_file(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

        self.bad(NOTHING, "-f", "json", "-o", self.file, self.pid, preexec_fn=limit)
        self.assertFalse(os.path.exists(self.file))

    def test_stdout_closed(self):
        for arguments in [[self.pid], ["--help"]]:
            self.bad(NOTHING, *arguments, stdout=None, preexec_fn=lambda: os.close(1),
                     says="standard output")

    def test_all_streams_closed(self):
        result = snap(self.pid, stdout=None, stderr=None,
                      preexec_fn=lambda: os.closerange(0, 3))
        self.assertEqual(result.returncode, NOTHING)

    def test_broken_pipe(self):
        for handling in [signal.SIG_DFL, signal.SIG_IGN]:
            reader, writer = os.pipe()
            os.close(reader)
            result = snap("-f", "json", self.pid, stdout=writer, restore_signals=False,
                          preexec_fn=lambda h=handling: signal.signal(signal.SIGPIPE, h))
            os.close(writer)
            self.assertNotEqual(result.returncode, 0)

    def open_terminal(self):
        try:
            return os.openpty()
        except OSError as error:
            return self.skipTest("no pseudoterminal: %s" % error)

    def terminal(self, environment):
        leader, follower = self.open_terminal()
        snap(self.pid, stdout=follower, env={**os.environ, "TERM": "xterm", **environment})
        os.close(follower)
        with open(leader, "rb", closefd=True) as file:
            return file.read1(1 << 16)

    def test_no_binary_format_on_a_terminal(self):
        leader, follower = self.open_terminal()
        for command, name in [("snap", "recording"), ("report", "pprof")]:
            self.bad(USAGE, command, "-f", name, self.pid, stdout=follower,
                     says=f"--format={name} is binary and cannot be written to a terminal: use -o FILE")
        os.close(follower)
        os.close(leader)

    def test_colours_on_a_terminal(self):
        self.assertIn(b"\033[", self.terminal({"NO_COLOR": ""}))
        self.assertNotIn(b"\033", self.terminal({"NO_COLOR": "1"}))
        self.assertNotIn(b"\033", self.terminal({"NO_COLOR": "", "TERM": "dumb"}))


class Help(unittest.TestCase):
    """Each command takes every option that its help lists."""

    # What each command looks at; nothing of it exists.
    ARGUMENTS = {"report": ["x.rec"], "core": ["x.core"], "run": ["/nonexistent/command"],
                 "names": ["x"], "trace": ["4000000", "-p", "main"]}
    # What an option needs besides, in place of these arguments.
    NEEDS = {"trace --alloc": ["4000000"], "trace --leaks": ["4000000", "--alloc"],
             "core --dry-run": ["--install"], "trace --rows": ["4000000", "--alloc"], "report --diff": ["x.rec", "y.rec"],
             "snap --each": ["--count=2", "4000000"]}
    # These change the machine, read standard input, or wait: they are only parsed.
    PARSED = ["--install", "--uninstall", "--handler", "--at"]
    VALUES = {"FILE": "new", "DIR": ".", "DIRECTORY": ".", "NAME": "text", "FORMAT": "text",
              "WHEN": "never", "MODE": "stop", "SHELL": "bash", "LETTERS": "S", "TIME": "1s",
              "KEY=VALUE": "a=b", "WHAT": "host", "WEIGHT": "hits", "KEY": "own",
              "PID": "4000000", "REGEX": "no-such-process", "PATH": "/nonexistent",
              "--wait-functions": "/dev/null", "--pid-file": "/dev/null",
              "--at": "2099-01-01 00:00:00"}

    def commands(self):
        text = snap("--help").stdout.decode()
        return re.findall(r"(?m)^  ([a-z]+) {2,}\S", text)

    def options(self, command):
        text = snap(command, "--help").stdout.decode()
        return re.findall(r"(?m)^ {2,6}(?:-\w, )?(--[a-z-]+)(?:(\[)?=([^\s\]]+))?", text)

    def test_commands_take_the_options_that_they_list(self):
        with tempfile.TemporaryDirectory() as directory:
            for command in self.commands():
                for option, optional, value in self.options(command):
                    word = option
                    if value and not optional:
                        word += "=" + self.VALUES.get(option, self.VALUES.get(value, "1"))
                    rest = self.NEEDS.get(f"{command} {option}",
                                          self.ARGUMENTS.get(command, ["4000000"]))
                    if option in self.PARSED:
                        rest = ["--help"]
                    elif option in ("--pid", "--name"):
                        rest = []
                    with self.subTest(command=command, option=word):
                        result = snap(command, word, *rest, cwd=directory,
                                      stdin=subprocess.DEVNULL)
                        self.assertNotEqual(result.returncode, USAGE, result.stderr)

    def test_options_that_a_command_lacks(self):
        """The verdict and the comparison depend on all threads; the verdict on waits, too."""
        for command, option in [("hang", "--thread=1"), ("hang", "--state=S"),
                                ("hang", "--no-waits"), ("diff", "--thread=1"),
                                ("diff", "--state=S"), ("names", "--raw")]:
            result = snap(command, option, "4000000")
            self.assertEqual(result.returncode, USAGE, (command, option))
            self.assertIn(b"unrecognized option", result.stderr)


class Completion(unittest.TestCase):
    def options(self):
        text = snap("snap", "--help").stdout.decode() + snap("report", "--help").stdout.decode()
        return sorted(set(re.findall(r"--([a-z-]+)", text)))

    def test_every_option_is_in_every_script(self):
        for shell in ["bash", "zsh", "fish"]:
            script = snap("--completion=" + shell).stdout.decode()
            for option in self.options():
                dashes = "-l " if shell == "fish" else "--"
                self.assertIn(dashes + option, script, shell)

    def complete(self, *words):
        script = snap("--completion=bash").stdout.decode()
        quoted = " ".join(f"'{word}'" for word in words)
        result = subprocess.run(
            ["bash", "-c", f"{script}\nCOMP_WORDS=({quoted}); "
             f"COMP_CWORD={len(words) - 1}; _stacksnap 2>/dev/null; "
             "printf '%s\\n' \"${COMPREPLY[@]}\""], capture_output=True, text=True)
        return result.stdout.split()

    def test_bash(self):
        self.assertEqual(self.complete("stacksnap", "--no-g"), ["--no-group"])
        self.assertEqual(self.complete("stacksnap", "-f", "fo"), ["folded"])
        self.assertEqual(self.complete("stacksnap", "--mode", "=", "no"), ["no-stop"])
        self.assertEqual(self.complete("stacksnap", "sn"), ["snap"])
        self.assertIn(str(os.getpid()), self.complete("stacksnap", ""))

    def test_bash_after_a_command(self):
        self.assertEqual(self.complete("stacksnap", "report", "-f", "pp"), ["pprof"])
        self.assertEqual(self.complete("stacksnap", "report", "--thresh"), ["--threshold="])
        self.assertEqual(self.complete("stacksnap", "--thresh"), [])
        self.assertIn(__file__, self.complete("stacksnap", "report", __file__[:-1]))

    def test_bash_completes_files(self):
        """Also those whose names have spaces."""
        with tempfile.TemporaryDirectory() as directory:
            file = os.path.join(directory, "a file")
            open(file, "w").close()
            for words in (["-o"], ["record", "-o"], ["--output", "="], ["hang", "--pid-file", "="]):
                self.assertEqual(" ".join(self.complete("stacksnap", *words, directory + "/a")),
                                 file)

    def test_scripts_are_accepted_by_their_shells(self):
        for shell in ["bash", "zsh", "fish"]:
            with self.subTest(shell):
                script = snap("--completion=" + shell).stdout
                try:
                    result = subprocess.run([shell, "-n", "/dev/stdin"], input=script,
                                            capture_output=True)
                except FileNotFoundError:
                    continue  # the shell is not installed
                self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
