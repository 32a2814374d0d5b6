"""stacksnap trace: hits and scopes, of threads and processes that start later, counted exactly;
and that the target is as before in the end, whatever ends the trace."""

# ctest: long-with-sanitizers timeout=600 tries=4200

import gzip
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import tracefs
from harness import EndToEnd, LIMIT_S, STACKSNAP, for_everyone, read_text, wait_until
from recording import Recording

HELD_S = 0.5
CROWD = int(os.environ.get("STACKSNAP_TRIES", "20"))


class Trace:
    """A trace that runs: its lines of JSON are in a file."""

    def __init__(self, test, pid, *arguments):
        self.test = test
        self.path = os.path.join(test.directory(), "trace.%d" % pid)
        self.errors = self.path + ".errors"
        with open(self.path, "wb") as out, open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                [STACKSNAP, "trace", str(pid), "-f", "json"] + list(arguments),
                stdout=out, stderr=errors)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)
        wait_until(lambda: self.process.poll() is not None or "\n" in read_text(self.path),
                   "the trace to begin")

    def text(self):
        return read_text(self.path)[-3000:] + read_text(self.errors)

    def end(self, number=signal.SIGINT, status=(0,)):
        """Ends it; returns its events."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(LIMIT_S)
        self.test.assertIn(self.process.returncode, status, self.text())
        return [json.loads(line) for line in read_text(self.path).splitlines()]


class TraceTest(EndToEnd):
    def setUp(self):
        if not tracefs.mount():
            self.skipTest("needs root, and tracefs with uprobe_events")

    def directory(self):
        path = tempfile.mkdtemp(prefix="stacksnap-")
        self.addCleanup(shutil.rmtree, path)
        return path

    def traced(self, **options):
        self.last = self.start("traced", **options)
        return self.last

    def tell(self, target, line):
        """Sends a line; returns what the target prints up to "done"."""
        target.process.stdin.write(line.encode() + b"\n")
        text = b""
        while not text.endswith(b"done\n"):
            byte = target.process.stdout.read(4096)
            self.assertTrue(byte, "the target has ended: %r" % text)
            text += byte
        return text.decode()

    def trace(self, target, *arguments):
        return Trace(self, target.pid, *arguments)

    def kinds(self, events, *kinds):
        return [event for event in events if event["event"] in kinds]

    def test_every_hit_is_counted(self):
        target = self.traced()
        trace = self.trace(target, "-p", "checkpoint", "--max-rate=10")
        calls = 2000 if os.environ.get("SANITIZED") else 125000
        self.tell(target, "many 8 %d" % calls)
        events = trace.end(status=(0, 1))
        end = events[-1]
        expected = 8 * calls
        self.assertEqual(end["hits"], expected, end)
        self.assertEqual(end["read"] + end["lost"], expected, end)
        self.assertEqual(trace.process.returncode, 1 if end["lost"] else 0, end)
        hits = self.kinds(events, "hit")
        self.assertGreater(len(hits), 0)
        self.assertEqual([hit["sequence"] for hit in hits], list(range(1, len(hits) + 1)))
        times = [hit["monotonic_ns"] for hit in hits]
        self.assertEqual(times, sorted(times))
        self.assertEqual(end["skipped"], end["read"] - len(hits), end)

    def test_threads_and_processes_that_start_later(self):
        # As another user: what the target starts must not need our rights.
        nobody = pwd.getpwnam("nobody")
        target = self.start_command(
            [for_everyone(os.path.join(os.environ["TARGETS"], "traced"))],
            preexec_fn=lambda: (os.setgid(nobody.pw_gid), os.setuid(nobody.pw_uid)))
        trace = self.trace(target, "-p", "checkpoint", "--args=1")
        self.tell(target, "many 2 10")
        self.assertNotIn("failed", self.tell(target, "fork 10"))
        self.tell(target, "name")
        events = trace.end()
        hits = self.kinds(events, "hit")
        self.assertEqual(len(hits), 31, hits)
        self.assertEqual(events[-1]["lost"], 0)
        self.assertEqual(len({hit["tid"] for hit in hits}), 4)
        self.assertEqual(len({hit["pid"] for hit in hits}), 2)
        self.assertEqual(hits[-1]["thread"], "renamed")
        self.assertEqual({hit["thread"] for hit in hits[:30]}, {"traced"})
        for tid in {hit["tid"] for hit in hits[:30]}:
            self.assertEqual([int(hit["arguments"][0], 16) for hit in hits
                              if hit["tid"] == tid], list(range(10)))

    def scopes(self, events):
        return [(event["event"], event["function"], event["depth"])
                for event in self.kinds(events, "enter", "exit", "left", "open")]

    def test_scopes(self):
        target = self.traced()
        trace = self.trace(target, "--scope", "-p", "outer", "inner")
        self.tell(target, "nest")
        self.tell(target, "jump")
        self.tell(target, "nest")
        events = trace.end()
        nest = [("enter", "outer", 0), ("enter", "inner", 1), ("exit", "inner", 1),
                ("enter", "inner", 1), ("exit", "inner", 1), ("exit", "outer", 0)]
        jump = [("enter", "outer", 0), ("enter", "inner", 1), ("left", "inner", 1),
                ("left", "outer", 0)]
        self.assertEqual(self.scopes(events), nest + jump + nest, trace.text())
        by_sequence = {event.get("sequence"): event for event in events}
        for event in self.kinds(events, "exit", "left"):
            entry = by_sequence[event["entry"]]
            self.assertEqual((entry["event"], entry["function"]),
                             ("enter", event["function"]))
            self.assertEqual(event["duration_ns"],
                             event["monotonic_ns"] - entry["monotonic_ns"])
        duration = events[-1]["probes"][0]["duration"]
        self.assertEqual(duration["count"], 2, events[-1])
        self.assertLessEqual(duration["min_ns"], duration["p50_ns"])
        self.assertLessEqual(duration["p50_ns"], duration["max_ns"])

    def test_stacks(self):
        target = self.traced()
        trace = self.trace(target, "--stack", "-p", "inner", "checkpoint")
        self.tell(target, "nest")
        self.tell(target, "many 1 3")
        self.tell(target, "fork 1")
        events = trace.end()
        stacks = {event["stack"]: event for event in self.kinds(events, "stack")}
        hits = self.kinds(events, "hit")
        functions = [[frame["symbol"] for frame in stacks[hit["stack"]]["frames"]]
                     for hit in hits]
        self.assertEqual([names[:3] for names in functions[:2]],
                         [["inner", "outer", "main"]] * 2, trace.text())
        for names in functions[2:5]:
            self.assertEqual(names[:3], ["checkpoint", "scope", "run"], trace.text())
        self.assertEqual(functions[5][:3], ["checkpoint", "scope", "main"], trace.text())
        # inner() is called at two places; checkpoint() by a thread and by a child process.
        self.assertEqual(len({hit["stack"] for hit in hits}), 4, trace.text())
        self.assertEqual({stack["end"] for stack in stacks.values()}, {"root"})

    def profile(self, name):
        """What a format says of seven hits of a function."""
        target = self.traced()
        path = os.path.join(self.directory(), name)
        with open(path, "wb") as out:
            process = subprocess.Popen([STACKSNAP, "trace", str(target.pid), "-f", name,
                                        "-p", "checkpoint", "--count=7"], stdout=out)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        before = self.tell(target, "text")
        wait_until(lambda: self.tell(target, "text") != before or process.poll() is not None,
                   "the probe")
        wait_until(lambda: self.tell(target, "many 1 1") and process.poll() is not None,
                   "the end of the trace")
        self.assertEqual(process.returncode, 0)
        with open(path, "rb") as file:
            return file.read()

    def test_folded(self):
        self.assertRegex(self.profile("folded").decode(), r"^\S.*;run;scope;checkpoint 7\n$")

    def test_pprof(self):
        """One sample, of seven hits; as a field of profile.proto, that is 12 01 07."""
        profile = gzip.decompress(self.profile("pprof"))
        for name in b"hits", b"checkpoint", b"scope", b"run":
            self.assertIn(name, profile)
        self.assertEqual(profile.count(b"\x12\x01\x07"), 1, profile)

    def test_folded_scopes(self):
        """The time of a scope is without that of the scopes in it."""
        target = self.traced()
        path = os.path.join(self.directory(), "folded")
        with open(path, "wb") as out:
            process = subprocess.Popen([STACKSNAP, "trace", str(target.pid), "-f", "folded",
                                        "--scope", "-p", "outer", "inner"], stdout=out)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        before = self.tell(target, "text")
        wait_until(lambda: self.tell(target, "text") != before or process.poll() is not None,
                   "the probes")
        for _ in range(3):  # the probes may not yet be enabled the first time
            target.process.stdin.write(b"hold\n")
            target.process.stdin.flush()
            time.sleep(HELD_S)
            self.tell(target, "")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(LIMIT_S), 0, read_text(path))
        weights = {line.rsplit(" ", 1)[0].rsplit(";", 1)[1]: int(line.rsplit(" ", 1)[1])
                   for line in read_text(path).splitlines()}
        self.assertGreaterEqual(weights.get("inner", 0), HELD_S * 500000, read_text(path))
        self.assertLess(weights.get("outer", 0), weights["inner"] / 2, read_text(path))

    def recorded(self, *arguments, lines=("nest", "jump", "nest", "many 2 3"), number=signal.SIGINT,
                 wait=lambda path: True):
        """Records a trace of the target; returns the file."""
        target = self.traced()
        path = os.path.join(self.directory(), "trace.rec")
        process = subprocess.Popen([STACKSNAP, "trace", str(target.pid), "-o", path, *arguments],
                                   stderr=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_until(lambda: os.path.exists(path) or process.poll() is not None, "the recording")
        for line in lines:
            self.tell(target, line)
        wait_until(lambda: wait(path), "the events in the file")
        process.send_signal(number)
        errors = process.communicate(timeout=LIMIT_S)[1].decode()
        self.assertEqual(process.returncode, 0 if number == signal.SIGINT else -number, errors)
        return path

    def report(self, path, *arguments, status=(0,)):
        return self.run_tool("report", *arguments, path, status=status).stdout

    def test_recording(self):
        path = self.recorded("--scope", "--args=1", "-p", "outer", "inner", "scope")
        recording = Recording(path)
        found = [(e["kind"], e["probe"].name, e["depth"]) for e in recording.events]
        self.assertEqual(found[:5], [
            ("exit", "outer", 0), ("exit", "inner", 1), ("exit", "inner", 1),
            ("left", "outer", 0), ("left", "inner", 1)], found)
        self.assertEqual(found[5:], found[:3] + [("exit", "scope", 0)] * 2, found)
        self.assertEqual(recording.scope, 3)
        self.assertEqual(len(recording.samples), 10)
        self.assertEqual([e["arguments"] for e in recording.events[8:]], [[3], [3]])
        self.assertEqual((recording.trace["hits"], recording.trace["lost"]), (18, 0),
                         recording.trace)
        # Without stacks: the scopes that the thread is in.
        self.assertEqual([len(s["frames"]) for s in recording.samples], [1, 2, 2, 1, 2, 1, 2, 2, 1, 1])
        text = self.report(path).decode()
        self.assertRegex(text, r"10 hits of traced functions")
        self.assertRegex(text, r"3 hits of outer \(traced\), 1 left without a return\n"
                               r" +sum .* p99\.9 .*\n +up to ")
        self.assertIn("18 hits counted by the kernel, 18 read, 0 lost", text)
        folded = self.report(path, "-f", "folded").decode()
        self.assertEqual(sorted(folded.splitlines()), [
            "traced;traced;outer 3", "traced;traced;outer;inner 5", "traced;traced;scope 2"])
        data = json.loads(self.report(path, "-f", "json"))
        self.assertEqual(data["recordings"][0]["scope"], "events")
        self.assertEqual(data["traces"][0]["hits"], 18)
        self.assertEqual([p["function"] for p in data["probes"]], ["outer", "inner", "scope"])
        self.assertEqual(data["probes"][1]["duration"]["count"], 4)
        events = [s["event"] for s in data["samples"]]
        # The time of outer() without its two calls of inner().
        self.assertEqual(events[0]["self_ns"], events[0]["duration_ns"] -
                         events[1]["duration_ns"] - events[2]["duration_ns"], events)
        self.assertEqual([e["duration_ns"] for e in events],
                         [e["duration"] for e in recording.events])
        self.check_timeline(path, recording)
        by_time = self.report(path, "-f", "folded", "--weight=time").decode()
        sums = dict(line.rsplit(" ", 1) for line in by_time.splitlines())
        self.assertEqual(int(sums["traced;traced;scope"]),
                         sum(e["duration"] for e in recording.events[8:]) // 1000, by_time)
        for name in "html", "perf", "pprof":
            self.assertTrue(self.report(path, "-f", name, "--weight=time"), name)

    def check_timeline(self, path, recording):
        """The profiles of speedscope: each opens and closes scopes in order."""
        data = json.loads(self.report(path, "-f", "speedscope"))
        names = [frame["name"] for frame in data["shared"]["frames"]]
        opened = 0
        for profile in data["profiles"]:
            self.assertEqual(profile["type"], "evented", profile)
            stack, now = [], profile["startValue"]
            for event in profile["events"]:
                self.assertGreaterEqual(event["at"], now, profile)
                now = event["at"]
                name = names[event["frame"]]
                if event["type"] == "C":
                    self.assertEqual(stack.pop(), name, profile)
                    continue
                if name == "inner":
                    self.assertEqual(stack, ["outer"], profile)
                stack.append(name)
                opened += 1
            self.assertEqual((stack, now), ([], profile["endValue"]), profile)
        self.assertEqual(opened, len(recording.events))

    def test_recording_with_stacks_of_a_killed_trace(self):
        path = self.recorded("--stack", "--scope", "-p", "inner", number=signal.SIGKILL,
                             lines=["nest"], wait=self.is_written)
        recording = Recording(path)
        self.assertIsNone(recording.summary)
        self.assertRegex(self.report(path, "-f", "folded", status=(1,)).decode(),
                         r"main;outer;inner \d+\n")

    def is_written(self, path):
        """Chunks are written about once a second, with an event."""
        self.tell(self.last, "nest")
        return Recording(path).events

    def test_recording_and_options(self):
        target = self.traced()
        result = self.run_tool("trace", target.pid, "-p", "inner", "-o", "-", status=(64,))
        self.assertIn("file", result.stderr.decode())
        path = self.recorded("-p", "inner", lines=["nest"])
        result = self.run_tool("report", "--weight=time", path, status=(2,))
        self.assertIn("no recording has scopes", result.stderr.decode())
        path = self.recorded("-p", "inner", lines=[])
        result = self.run_tool("report", path, status=(2,))
        self.assertIn("no traced function was called", result.stderr.decode())

    def test_open_at_the_end(self):
        target = self.traced()
        trace = self.trace(target, "--scope", "-p", "outer")
        target.process.stdin.write(b"hold\n")
        wait_until(lambda: '"enter"' in read_text(trace.path), "the entry")
        events = trace.end()
        self.assertEqual(self.scopes(events), [("enter", "outer", 0), ("open", "outer", 0)])
        self.tell(target, "go on")

    def test_return_of_a_call_from_before(self):
        target = self.traced()
        target.process.stdin.write(b"hold\n")
        trace = self.trace(target, "--scope", "-p", "outer")
        self.tell(target, "go on")
        events = trace.end()
        self.assertEqual(self.scopes(events), [], trace.text())
        self.assertEqual(events[-1]["unpaired"], 1, events[-1])

    def test_end_of_the_target(self):
        target = self.traced()
        trace = self.trace(target, "--scope", "-p", "outer")
        target.process.stdin.write(b"hold\n")
        wait_until(lambda: '"enter"' in read_text(trace.path), "the entry")
        target.process.kill()
        target.process.wait()
        trace.process.wait(LIMIT_S)
        events = trace.end()
        self.assertTrue(events[-1]["process_ended"], events[-1])
        self.assertEqual(self.scopes(events), [("enter", "outer", 0), ("left", "outer", 0)])

    def test_exec(self):
        target = self.traced()
        trace = self.trace(target, "-p", "checkpoint")
        target.process.stdin.write(b"exec\n")
        text = b""
        while not text.endswith(b"ready\n"):
            text += target.process.stdout.read(4096)
        self.tell(target, "name")
        events = trace.end()
        self.assertEqual(len(self.kinds(events, "hit")), 1, trace.text())

    def test_child_executes_another_program(self):
        """Its threads have no stacks, because they have another address space; a child that executes nothing has."""
        target = self.traced()
        trace = self.trace(target, "-p", "checkpoint", "--stack")
        for line in "fork 1", "spawn 2", "fork 1":
            self.tell(target, line)
        hits = self.kinds(trace.end(), "hit")
        tids = [hit["tid"] for hit in hits]
        self.assertEqual([tids.count(tid) for tid in dict.fromkeys(tids)], [1, 2, 2, 1], trace.text())
        self.assertEqual(["stack" in hit for hit in hits], [True] + 4 * [False] + [True], trace.text())

    def test_many_processes(self):
        """However many processes execute other programs, their threads have no stacks, and ours have."""
        target = self.traced()
        trace = self.trace(target, "-p", "checkpoint", "--stack")
        for line in "crowd %d" % CROWD, "fork 1", "name", "disperse", "fork 1":
            self.tell(target, line)
        events = trace.end()
        hits = self.kinds(events, "hit")
        self.assertEqual((len(hits), events[-1]["lost"]), (2 * CROWD + 3, 0), events[-1])
        self.assertEqual(["stack" in hit for hit in hits], 2 * CROWD * [False] + 3 * [True], trace.text())
        self.assertEqual(len({hit["pid"] for hit in hits[:-3]}), CROWD, trace.text())

    def test_module_is_unloaded_and_loaded_again(self):
        """The library that is loaded in its place is not hit."""
        target = self.start("modules")
        trace = self.trace(target, "-p", "module_b:plugin_b", "module_b:no_such", "--stack")
        for number in (2, 3):
            target.process.stdin.write(b"x")
            line = target.process.stdout.readline()
            while b"step %d" % number not in line:
                self.assertTrue(line, "the target has ended")
                line = target.process.stdout.readline()
        wait_until(lambda: '"hit"' in read_text(trace.path), "the hit")
        events = trace.end(status=(1,))
        self.assertIn("module_b:no_such: no such function", trace.text())
        self.assertEqual([event["function"] for event in self.kinds(events, "hit")], ["plugin_b"],
                         trace.text())
        stack = self.kinds(events, "stack")[-1]
        self.assertEqual([frame["symbol"] for frame in stack["frames"]][:3],
                         ["plugin_b", "step", "main"], trace.text())

    def test_code_is_restored(self):
        target = self.traced()
        before = self.tell(target, "text")
        for number in (signal.SIGINT, signal.SIGKILL):
            trace = self.trace(target, "--scope", "-p", "checkpoint", "outer")
            self.assertNotEqual(self.tell(target, "text"), before)
            trace.process.send_signal(number)
            trace.process.wait(LIMIT_S)
            self.assertEqual(self.tell(target, "text"), before, "after signal %d" % number)
            self.tell(target, "nest")
        # What the killed one has left is removed by the next one.
        pid = trace.process.pid
        self.trace(target, "-p", "checkpoint").end()
        self.assertNotIn("stacksnap_%d/" % pid, read_text(tracefs.EVENTS))

    def test_every_and_count(self):
        target = self.traced()
        trace = self.trace(target, "-p", "checkpoint", "--every=100")
        self.tell(target, "many 1 1000")
        events = trace.end()
        self.assertEqual(events[-1]["hits"], 1000, events[-1])
        self.assertIn(len(self.kinds(events, "hit")), range(8, 11), trace.text())
        trace = self.trace(target, "-p", "checkpoint", "--count=5")
        self.tell(target, "many 1 1000")
        trace.process.wait(LIMIT_S)
        self.assertEqual(len(self.kinds(trace.end(), "hit")), 5)
        trace = self.trace(target, "--scope", "-p", "inner", "--every=2")
        for _ in range(3):
            self.tell(target, "nest")
        events = trace.end()
        self.assertEqual([kind for kind, _, _ in self.scopes(events)], ["enter", "exit"] * 3)

    def list(self, target, *specs, status=(0,)):
        result = self.run_tool("trace", target.pid, "--list",
                               *["--probe=" + spec for spec in specs], status=status)
        return result.stdout.decode(), result.stderr.decode()

    def instructions(self, start):
        """Where instructions begin, by objdump."""
        text = subprocess.run(
            ["objdump", "-d", "--no-show-raw-insn", "--start-address=0x%x" % start,
             "--stop-address=0x%x" % (start + 32),
             os.path.join(os.environ["TARGETS"], "traced")],
            stdout=subprocess.PIPE, check=True, text=True).stdout
        return {int(found, 16) for found in re.findall(r"^ +([0-9a-f]+):", text, re.M)}

    def test_list(self):
        target = self.traced()
        self.assertRegex(self.list(target, "traced:check*")[0],
                         r"^0x[0-9a-f]+ checkpoint \(traced\)\n$")
        offset = self.list(target, "outer")[0].split()[0]
        text = self.list(target, "traced+" + offset)[0]
        self.assertIn("traced+" + offset, text)
        self.assertNotIn("not probed", text)
        # Not within an instruction.
        middle = ["traced+0x%x" % (int(offset, 16) + i) for i in range(1, 16)]
        out, errors = self.list(target, *middle, status=(1,))
        starts = self.instructions(int(offset, 16))
        for spec, line in zip(middle, out.splitlines()):
            inside = int(spec.split("+")[1], 16) not in starts
            self.assertEqual("not probed" in line, inside, out + errors)
            self.assertEqual(spec + " cannot be probed" in errors, inside, out + errors)
        self.assertRegex(self.list(target, "libc:malloc")[0], r"malloc \(libc")
        errors = self.list(target, "no_such_function", status=(2,))[1]
        self.assertIn("no such function", errors)
        self.assertEqual(self.list(target, "outer", "no_such_function", status=(1,))[0].count(
            "\n"), 1)

    def test_lines_and_inlined_functions(self):
        target = self.traced()
        source = os.path.join(os.environ["SOURCE"], "targets", "traced.c")
        lines = read_text(source).splitlines()
        line = next(i for i, text in enumerate(lines, 1) if "checkpoint(i);" in text)
        trace = self.trace(target, "-p", "traced.c:%d" % line)
        self.tell(target, "many 1 7")
        events = trace.end()
        self.assertEqual(len(self.kinds(events, "hit")), 7, trace.text())
        out, errors = self.list(target, "always_inlined", status=(2,))
        self.assertIn("inlined", errors)
        self.assertIn("traced.c:", errors)
        errors = self.list(target, "traced.c:1", status=(2,))[1]
        self.assertIn("has no code", errors)

    def test_text(self):
        target = self.traced()
        result = self.run_tool("trace", target.pid, "--scope", "-p", "outer", "-d", "100ms")
        self.assertIn("0 hits counted by the kernel, 0 read, 0 lost", result.stdout.decode())

    def summary(self, *arguments, lines):
        target = self.traced()
        path = os.path.join(self.directory(), "summary")
        process = subprocess.Popen([STACKSNAP, "trace", str(target.pid), "-o", path, "-f", "text",
                                    *arguments])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_until(lambda: os.path.exists(path), "the trace to begin")
        for line in lines:
            self.tell(target, line)
        process.send_signal(signal.SIGINT)
        process.wait(LIMIT_S)
        self.assertEqual(process.returncode, 0)
        return read_text(path)

    def test_summary(self):
        text = self.summary("-p", "checkpoint", lines=["many 2 100"])
        self.assertRegex(text, r"(?m)^200 hits of checkpoint \(traced\)")
        self.assertRegex(text, r"(?m)^ +200 100 % \w+\+0x[0-9a-f]+ at \S*traced\.c:\d+ \(traced\)$")
        self.assertNotIn(" hit checkpoint", text)

    def test_summary_of_scopes(self):
        text = self.summary("--scope", "-p", "outer", "-p", "inner", lines=["nest", "nest"])
        for function, places in (("inner", ["outer", "outer"]), ("outer", ["main"])):
            hits, part = re.search(r"(?ms)^(\d+) hits of %s \(traced\)(.*?)\n\n" % function,
                                   text).groups()
            callers = re.findall(r"(?m)^ +(\d+) +(\d+) %  \S+ \ws  (\w+)\+0x[0-9a-f]+ at "
                                 r"\S*traced\.c:\d+ \(traced\)$", part)
            self.assertEqual([caller[2] for caller in callers], places, part)
            self.assertEqual(sum(int(caller[0]) for caller in callers), int(hits), part)
            self.assertEqual(sum(int(caller[1]) for caller in callers), 100, part)
            self.assertRegex(part, r"\n  sum .*, p50 .*, p99 .*, max ")
            longest = re.search(r", max (.*)\n", part)[1]
            self.assertRegex(part, r"\n  slowest %s, began \d\d:\d\d:\d\d\.\d{6} tid \d+ traced\n"
                             % re.escape(longest))

    def test_summary_with_stacks(self):
        text = self.summary("--stack", "-p", "inner", lines=["nest"])
        self.assertRegex(text, r"\n +1  50 % outer\+0x.*\n {22}main\+0x")

    def test_each_hit(self):
        text = self.summary("-v", "-p", "checkpoint", lines=["many 1 5"])
        self.assertEqual(len(re.findall(r" hit checkpoint \(traced\)\n", text)), 5, text)
        self.assertIn("5 hits of checkpoint (traced)\n", text)
        self.assertIn(" hit checkpoint (traced) 0x", self.summary("--args=1", "-p", "checkpoint",
                                                                  lines=["many 1 5"]))

    def test_nobody_reads(self):
        """The definition of the probe is removed, and the trace ends like other programs; a
        standard output that cannot be written is reported once."""
        target = self.traced()
        process = subprocess.Popen(
            [STACKSNAP, "trace", str(target.pid), "-p", "checkpoint", "-f", "json"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        self.assertIn(b'"begin"', process.stdout.readline())
        process.stdout.close()
        self.tell(target, "many 1 10")
        process.wait(LIMIT_S)
        errors = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.returncode, -signal.SIGPIPE, errors)
        self.assertNotIn("stacksnap_%d/" % process.pid, read_text(tracefs.EVENTS))
        with open("/dev/full", "wb") as full:
            done = subprocess.run([STACKSNAP, "trace", str(target.pid), "-p", "checkpoint", "-d",
                                   "100ms"], stdin=subprocess.DEVNULL, stdout=full,
                                  stderr=subprocess.PIPE, timeout=LIMIT_S)
        self.assertEqual((done.returncode, done.stderr),
                         (2, b"stacksnap: cannot write to standard output\n"))
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([STACKSNAP, "trace", "--help"], stdin=subprocess.DEVNULL, stdout=write,
                              stderr=subprocess.PIPE, timeout=LIMIT_S)
        os.close(write)
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, b""))

    def test_stripped(self):
        path = os.path.join(self.directory(), "stripped")
        subprocess.run(["strip", "-o", path, os.path.join(os.environ["TARGETS"], "traced")],
                       check=True)
        whole = self.traced()
        offset = self.list(whole, "checkpoint")[0].split()[0]
        target = self.start_command([path])
        self.assertIn("no such function", self.list(target, "checkpoint", status=(2,))[1])
        trace = self.trace(target, "-p", "stripped+" + offset)
        self.tell(target, "many 1 5")
        self.assertEqual(len(self.kinds(trace.end(), "hit")), 5, trace.text())

    def test_kernel_without_uprobes(self):
        """As it looks without tracefs, and without the kernel's support."""
        target = self.traced()
        hide = "mount -t tmpfs none /sys/kernel/tracing && mount -t tmpfs none /sys/kernel/debug"
        devices = " && mount -t tmpfs none /sys/bus/event_source/devices"
        for command, expected in (("mount -t tmpfs none /sys", "/sys is not mounted.*mount -t sysfs"),
                                  (hide, "tracefs is not mounted.*mount -t tracefs"),
                                  (hide + devices, "uprobes need Linux 4.17 or later")):
            done = subprocess.run(
                ["unshare", "--mount", "sh", "-c", command + ' && exec "$@"', "sh", STACKSNAP,
                 "trace", str(target.pid), "-p", "checkpoint"], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S)
            text = done.stdout.decode()
            if "mount: " in text or "unshare: " in text:
                self.skipTest("cannot mount: " + text)
            self.assertEqual(done.returncode, 2, text)
            self.assertRegex(text.replace("\n", " "), expected)

    def test_refused_to_root(self):
        """What a locked kernel says, and a container without rights: the advice is not to be root."""
        target = self.traced()
        events = "/sys/kernel/tracing/uprobe_events"
        lockdown = ("mount -t tmpfs none /sys/kernel/security && "
                    "echo none integrity [confidentiality] > /sys/kernel/security/lockdown && ")
        for command, expected in (("", "root may not set uprobes here.*privileged container"),
                                  (lockdown, "locked down .confidentiality.")):
            done = subprocess.run(
                ["unshare", "--mount", "sh", "-c",
                 command + "mount -t tmpfs none /sys/kernel/tracing && mount -t tmpfs none "
                 "/sys/kernel/debug && : > %s && chmod 0 %s && exec "
                 'setpriv --bounding-set=-dac_override --inh-caps=-all "$@"' % (events, events),
                 "sh", STACKSNAP, "trace", str(target.pid), "-p", "checkpoint"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                timeout=LIMIT_S)
            text = done.stdout.decode()
            if "mount: " in text or "unshare: " in text or "setpriv: " in text:
                self.skipTest("cannot mount: " + text)
            self.assertEqual(done.returncode, 2, text)
            self.assertRegex(text.replace("\n", " "), expected)
            self.assertNotIn("as root", text)

    def test_without_rights(self):
        nobody = pwd.getpwnam("nobody")
        target = self.start_command(
            [for_everyone(os.path.join(os.environ["TARGETS"], "traced"))],
            preexec_fn=lambda: (os.setgid(nobody.pw_gid), os.setuid(nobody.pw_uid)))
        result = subprocess.run(
            [for_everyone(STACKSNAP), "trace", str(target.pid), "-p", "checkpoint"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S,
            preexec_fn=lambda: (os.setgid(nobody.pw_gid), os.setuid(nobody.pw_uid)))
        errors = result.stderr.decode()
        self.assertEqual(result.returncode, 2, errors)
        self.assertRegex(errors, "uprobe_events|CAP_PERFMON|tracefs")
        self.assertTrue(re.search("sudo|mount", errors), errors)


# These read the debug information of all libraries several times.
if os.environ.get("SANITIZED"):
    for name in ("test_list", "test_lines_and_inlined_functions", "test_stripped",
                 "test_every_and_count"):
        delattr(TraceTest, name)

if __name__ == "__main__":
    unittest.main(verbosity=2)
