"""JavaScript functions in the stacks: equal to those that V8 itself reports at the same moment, frame
by frame; in threads that run, too; and native frames with a reason where that is not possible.

Packages: node, node-express. NODES: more programs, separated by colons; MOMENTS: how many random moments are
compared for each (default: 10)."""

# ctest: long-with-sanitizers real

import collections
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

import harness
from harness import snapshot_of as snapshot
from test_on_cpu import may_sample_cpus

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.path.join(HERE, "v8_target.js")
SERVER = os.path.join(HERE, "v8_server.js")
MOMENTS = int(os.environ.get("MOMENTS", "5"))
ENOUGH = 20  # samples, to compare those with and without functions


def nodes():
    named = os.environ.get("NODES")
    for path in named.split(":") if named else [shutil.which("node")]:
        if path and os.path.exists(path):
            yield os.path.realpath(path)


def record(target, seconds, path, options):
    """Records a target, and ends it."""
    subprocess.run([harness.STACKSNAP, "record", "-d", seconds, "-o", path, *options,
                    str(target.pid)], capture_output=True, check=True, timeout=harness.LIMIT_S)
    target.stop()


def javascript(thread):
    return [(f["symbol"], f["file"], f["line"]) for f in thread["frames"]
            if f["kind"] == "javascript"]


def show(thread):
    return "\n".join(f"{f['kind']} {f['symbol']} {f['file']} {f['line']}"
                     for f in thread["frames"]) + f"\n{thread.get('native_reason')}"


# Calls at any moment, while the garbage collector moves functions: from the outside in. Where V8
# has inlined a function, it may be missing.
DEPTHS = {"loop": 1, "top": 2, "middle": 3, "leaf": 4, "young": 4, "toJSON": 5, "compare": 5,
          "each": 5}
INSIDE = {"toJSON": "leaf", "compare": "leaf", "each": "young"}
LATE = """
const { Worker } = require("worker_threads");
function work() { let sum = 0; for (let i = 0; i < 1e5; i++) sum += i % 7; return sum; }
console.log("ready");
setInterval(work, 1);
setTimeout(() => new Worker("function spin() { for (;;) Math.sqrt(Math.random()); } spin();",
                            { eval: true }), 1000);
"""

RUNNING = """
function loop() { for (;;) top(); }
function top() { let sum = 0; for (let i = 0; i < 2000; i++) sum += middle(i); return sum; }
function middle(i) {
    const young = function young(n) { const each = (x) => [x, n, {}]; return [n, n].map(each).length; };
    return leaf(i) + young(i);
}
function leaf(i) {
    return JSON.stringify({ toJSON() { return "x".repeat(i % 50); } }).length +
        [3, i, 2].sort(function compare(a, b) { return a - b; })[0];
}
console.log("ready");
loop();
"""


# Each function has a copy of the interpreter's entry, so that a perf map can name it.
ENTRIES = "--interpreted-frames-native-stack"

# Builtins that search have no frame of their own.
SEARCHING = """
let array = [1, 2, 3];
function search() { return array.indexOf(-1); }
function many() { let n = 0; for (let i = 0; i < 1000; i++) n += search(); return n; }
for (let i = 0; i < 3000; i++) many();
array = Array.from({ length: 300000 }, (_, i) => i);
for (let i = 0; i < 3; i++) many();
console.log("ready");
for (;;) many();
"""


# run, inner, imported: the outer two are of WebAssembly.
WASM = """
const bytes = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 2, 7, 1, 1, 109, 1, 102, 0, 0, 3,
    3, 2, 0, 0, 7, 7, 1, 3, 114, 117, 110, 0, 1, 10, 11, 2, 4, 0, 16, 2, 11, 4, 0, 16, 0, 11]);
function imported() { require("fs").readSync(0, Buffer.alloc(1), 0, 1); }
const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), { m: { f: imported } });
console.log("ready");
(function caller() { instance.exports.run(); })();
"""


# Calls that block the thread.
BLOCKING = {
    "wait": "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
    "read": "require('fs').readSync(0, Buffer.alloc(1), 0, 1)",
    "execute": "require('child_process').execSync('sleep 100')",
}


class Target:
    def __init__(self, test, node, *arguments, **options):
        self.process = subprocess.Popen([node, *arguments], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, **options)
        self.pid = self.process.pid
        self.children = set()
        test.addCleanup(self.stop)

    def stop(self):
        while self.children:
            try:
                os.kill(self.children.pop(), signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.kill()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def main_thread(self, *options):
        return next(t for t in snapshot(self.pid, *options)["threads"] if t["tid"] == self.pid)

    def moments(self):
        """What the program says about each of them; meanwhile it is blocked."""
        for line in self.process.stdout:
            if line == "done\n":
                return
            yield json.loads(line)
            self.process.stdin.write("x")
            self.process.stdin.flush()
        raise AssertionError("the program ended")


class Moments(unittest.TestCase):
    def compare(self, node, moment, thread):
        found = javascript(thread)
        # A name that is computed is a property of the object, and not in the source.
        expected = [("(anonymous)" if not name or name.startswith("[") else name, file or None,
                     line) for name, file, line in moment["stack"]]
        if [f[0] for f in found[:2]] != ["readSync", "moment"] or found[2:] != expected:
            self.fail(f"{node}, {moment['label']}: found\n" + show(thread) + "\nexpected\n"
                      + "\n".join(map(str, expected)))

    def compare_all(self, node, *options):
        target = Target(self, node, *options, TARGET, "1", str(MOMENTS))
        count = 0
        for moment in target.moments():
            harness.wait_until(lambda: harness.reads_stdin(target.pid), "the program reads")
            with self.subTest(node=node, label=moment["label"], count=count):
                self.compare(node, moment, target.main_thread())
            count += 1
        print(f"{node} {options}: {count} moments")
        self.assertGreater(count, MOMENTS)

    def test_moments(self):
        for node, options in itertools.product(nodes(), ((), (ENTRIES,))):
            self.compare_all(node, *options)


class Server(Moments):
    """express, as Debian has it from npm, with several clients."""

    def request(self, port, number):
        path, data = [("/items/%d?q=1" % number, None), ("/items", b'{"a":1}'),
                      ("/items/1?deny=1", None)][number % 3]
        request = urllib.request.Request(
            "http://127.0.0.1:%d%s" % (port, path), data=data,
            headers={"Content-Type": "application/json"})
        try:
            urllib.request.urlopen(request, timeout=harness.LIMIT_S).read()
        except OSError:
            pass  # it is denied, or the server has ended

    def test_moments(self):
        modules = "/usr/share/nodejs"
        if not os.path.exists(modules + "/express"):
            self.skipTest("needs express (Debian: node-express)")
        for node in nodes():
            target = Target(self, node, SERVER, env=dict(os.environ, NODE_PATH=modules))
            port = int(target.process.stdout.readline())
            clients = [threading.Thread(target=self.request, args=(port, number), daemon=True)
                       for number in range(3 * MOMENTS)]
            for client in clients:
                client.start()
            seen = set()
            for count, moment in enumerate(target.moments()):
                harness.wait_until(lambda: harness.reads_stdin(target.pid), "the server reads")
                with self.subTest(node=node, label=moment["label"], count=count):
                    self.compare(node, moment, target.main_thread())
                seen.add(moment["label"])
                if count >= 4 * MOMENTS - 1 or count >= 2 * MOMENTS and len(seen) == 4:
                    break  # there are two moments of a post
            target.stop()
            for client in clients:
                client.join(harness.LIMIT_S)
            self.assertEqual(seen, {"get", "post", "after await", "error"})


class Running(unittest.TestCase):
    def check(self, node, thread):
        found = [f[0] for f in javascript(thread) if f[1] == "[eval]"]
        names = found[::-1][1:]
        depths = [DEPTHS.get(name, 0) for name in names]
        wrong = [inner for outer, inner in zip(names, names[1:])
                 if DEPTHS.get(outer) == 4 and INSIDE.get(inner) != outer]
        if found[-1:] != ["(anonymous)"] or depths[:1] != [1] or wrong or \
                any(inner <= outer for outer, inner in zip(depths, depths[1:])):
            self.fail(f"{node}: {names}\n{show(thread)}")

    def test_running(self):
        for node in nodes():
            target = Target(self, node, "-e", RUNNING)
            self.assertEqual(target.process.stdout.readline(), "ready\n")
            reasons = 0
            for moment in range(MOMENTS):
                thread = target.main_thread("--mode=" + ("auto", "stop")[moment % 2])
                if thread["native_reason"] or not javascript(thread):
                    reasons += 1
                    print(thread["native_reason"], thread["end"], thread["reason"],
                          [f["symbol"] for f in thread["frames"]][:6])
                else:
                    self.check(node, thread)
            print(f"{node}: {MOMENTS} moments, {reasons} without functions")
            self.assertLessEqual(reasons, MOMENTS // 3)
            self.check_series(node, target)

    def check_series(self, node, target):
        """The same in each snapshot of a series."""
        result = subprocess.run([harness.STACKSNAP, "-f", "json", "-i", "10ms", "-c", "5",
                                 str(target.pid)], capture_output=True, check=False)
        stacks = [stack for stack in json.loads(result.stdout)["stacks"]
                  if target.pid in [thread["tid"] for thread in stack["threads"]]]
        named = [stack for stack in stacks if javascript(stack)]
        self.assertTrue(named, stacks)
        for stack in named:
            self.check(node, stack)

    def test_atomics(self):
        """An address beside the builtins that V8 maps once more is no variable of node."""
        program = ("const { Worker } = require('worker_threads');\n"
                   "new Worker('Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)', "
                   "{ eval: true });\nsetTimeout(() => console.log('ready'), 500);"
                   "setInterval(() => 0, 1e6);")
        for node in nodes():
            target = Target(self, node, "-e", program)
            self.assertEqual(target.process.stdout.readline(), "ready\n")
            waits = [thread["wait"] for thread in snapshot(target.pid)["threads"]
                     if "Atomics.wait" in str(javascript(thread)) or
                     any("FutexEmulation" in str(f.get("symbol")) for f in thread["frames"])]
            self.assertEqual({(wait["kind"], wait["symbol"]) for wait in waits}, {("condvar", None)})

    def test_workers(self):
        """Each worker thread has a heap of its own, and V8 maps its builtins once more for each."""
        program = ("const { Worker } = require('worker_threads');\n"
                   "for (let i = 0; i < 2; i++) new Worker('function work(n) { for (;;) n = step(n); } "
                   "function step(n) { return Math.sqrt(n + 1); } work(1)', { eval: true });\n"
                   "setTimeout(function timer() {" + RUNNING + "}, 100);")
        for node in nodes():
            target = Target(self, node, "-e", program)
            self.assertEqual(target.process.stdout.readline(), "ready\n")
            named = 0
            for _ in range(4):
                shown = snapshot(target.pid)
                for thread in shown["threads"]:
                    found = [f[0] for f in javascript(thread)]
                    if thread["native_reason"] or not found:
                        continue
                    named += 1
                    if thread["tid"] == target.pid:
                        names = [name for name in found if name in DEPTHS or name == "timer"]
                        self.assertEqual(names[-2:], ["loop", "timer"], show(thread))
                        self.assertIn(names[-3:-2], ([], ["top"]), show(thread))
                    else:  # it may not have begun
                        names = [name for name in found if name in ("work", "step")]
                        self.assertIn(names, ([], ["work"], ["step", "work"]), show(thread))
            self.assertGreater(named, 4, shown["threads"])

    def test_recording(self):
        """In a recording, too; the report needs neither the process nor the script."""
        modes = [(), ("--on-cpu", )] if may_sample_cpus() and harness.may_load_programs() else [()]
        for node, options in itertools.product(nodes(), modes):
            for seconds in "1", "4", "16":  # on a busy machine, the thread mostly waits for a CPU
                target = Target(self, node, "-e", RUNNING)
                self.assertEqual(target.process.stdout.readline(), "ready\n")
                with tempfile.TemporaryDirectory(prefix="stacksnap-") as directory:
                    path = os.path.join(directory, "recording")
                    record(target, seconds, path, options)
                    named, native = self.check_recording(node, target.pid, path)
                if named + native >= ENOUGH:
                    break
            self.assertGreater(named, 2 * native, options)

    @unittest.skipUnless(may_sample_cpus() and harness.may_load_programs(), "bpf(2) is not allowed")
    def test_recording_with_perf_map(self):
        """A native frame of JavaScript, which V8 names in a perf map, is that of the function that was
        copied at the same sample."""
        for node in nodes():
            counts = collections.Counter()
            with tempfile.TemporaryDirectory(prefix="stacksnap-") as directory:
                # Which writes a log to its directory.
                target = Target(self, node, "--perf-basic-prof", ENTRIES, "-e", RUNNING, cwd=directory)
                self.addCleanup(lambda pid=target.pid: os.unlink("/tmp/perf-%d.map" % pid))
                self.assertEqual(target.process.stdout.readline(), "ready\n")
                path = os.path.join(directory, "recording")
                record(target, "3", path, ("--on-cpu",))
                for thread, frames, count in harness.report_stacks(path, "--native"):
                    if thread["tid"] != target.pid:
                        continue
                    counts["functions" if javascript({"frames": [
                        dict(frame, symbol=frame["name"]) for frame in frames]}) else "none"] += count
                    self.check_names(frames, counts, count)
            print(node, counts)
            self.assertGreater(counts["equal"], 30, (node, counts))
            self.assertGreater(counts["functions"], 3 * counts["none"], (node, counts))

    def check_names(self, frames, counts, count):
        """Functions are in front of the native frame that executes them, the outermost one last."""
        for inner, native in zip(frames, frames[1:]):
            named = re.match(r"(?:JS|LazyCompile|Function):[~^*+]+'?(\w+) \S+:\d+", native["name"])
            if not named or native["kind"] == "javascript":
                continue
            if inner["kind"] == "javascript":
                self.assertEqual(inner["name"].split(".")[-1], named.group(1), frames)
                counts["equal"] += count
            else:
                counts["innermost, or without a frame"] += count

    @unittest.skipUnless(may_sample_cpus() and harness.may_load_programs(), "bpf(2) is not allowed")
    def test_recording_of_new_threads(self):
        """A worker that begins after the recorder has planned what to copy."""
        for node, options in itertools.product(nodes(), ((), ("--on-cpu", ))):
            target = Target(self, node, "-e", LATE)
            self.assertEqual(target.process.stdout.readline(), "ready\n")
            with tempfile.TemporaryDirectory(prefix="stacksnap-") as directory:
                path = os.path.join(directory, "recording")
                record(target, "3", path, options)
                named = native = 0
                for thread, frames, count in harness.report_stacks(path):
                    names = [frame["name"] for frame in frames]
                    if thread["tid"] == target.pid or "Builtins_JSEntry" not in names:
                        continue
                    named += count * ("spin" in names)
                    native += count * ("spin" not in names)
                self.assertGreater(named, 2 * native, options)

    def check_recording(self, node, pid, path):
        named = native = 0
        for thread, frames, count in harness.report_stacks(path):
            if thread["tid"] != pid or not any("Builtins_JSEntry" == f["name"] for f in frames):
                continue
            for frame in frames:
                frame["symbol"] = frame["name"]
            if not javascript({"frames": frames}):
                native += count
                continue
            named += count
            self.check(node, {"frames": frames, "native_reason": None})
        print(f"{node}: {named} samples, {native} without functions")
        for name, text in harness.report_formats(path) if named >= ENOUGH else ():
            self.assertTrue("middle" in text, f"{node}: {name}")
        return named, native

    def test_recording_blocked(self):
        """Threads that are blocked below JavaScript, which are not stopped."""
        for node in nodes():
            for name, statement in BLOCKING.items():
                target = Target(self, node, "-e", "function handler() { %s; }\n"
                                "console.log('ready');\nhandler();" % statement)
                self.assertEqual(target.process.stdout.readline(), "ready\n")
                harness.wait_until(lambda: "handler" in [
                    f[0] for f in javascript(target.main_thread())], "the call")
                with tempfile.TemporaryDirectory(prefix="stacksnap-") as directory:
                    path = os.path.join(directory, "recording")
                    result = subprocess.run(
                        [harness.STACKSNAP, "record", "-d", "1", "-o", path, str(target.pid)],
                        capture_output=True, check=True, timeout=harness.LIMIT_S)
                    target.stop()
                    self.check_blocked(f"{node}: {name}", target.pid, path, result.stderr)

    def check_blocked(self, label, pid, path, messages):
        counts = {True: 0, False: 0}
        stacks = harness.report_stacks(path)
        for thread, frames, count in stacks:
            if thread["tid"] == pid:
                counts["handler" in [frame["name"] for frame in frames]] += count
        print(label, counts)
        self.assertGreater(counts[True], 3 * counts[False], (label, messages, stacks))

    def test_wasm(self):
        """Functions of WebAssembly are named as such, between those of JavaScript."""
        for node in nodes():
            target = Target(self, node, "-e", WASM)
            self.assertEqual(target.process.stdout.readline(), "ready\n")
            harness.wait_until(lambda: harness.reads_stdin(target.pid), "the program reads")
            thread = target.main_thread()
            self.assertEqual([f["symbol"] for f in thread["frames"] if f["kind"] == "javascript" or
                              f["symbol"] == "[wasm]"][:5],
                             ["readSync", "imported", "[wasm]", "[wasm]", "caller"], show(thread))

    def test_cluster(self):
        """The main program and a worker process of a cluster, with a snapshot of both."""
        program = ("const cluster = require('cluster');\n"
                   "function outer() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); }\n"
                   "if (cluster.isPrimary) { cluster.fork(); cluster.on('message', function come() {"
                   " console.log('ready'); outer(); }); }\n"
                   "else { process.send('x', function sent() { outer(); }); }")
        with tempfile.NamedTemporaryFile("w", suffix=".js") as file:
            file.write(program)
            file.flush()
            for node in nodes():
                target = Target(self, node, file.name)
                self.assertEqual(target.process.stdout.readline(), "ready\n")
                for wanted in "come", "sent":
                    harness.wait_until(lambda: wanted in self.tree_functions(target), wanted)

    def tree_functions(self, target):
        """Functions that call outer(), of all processes."""
        done = subprocess.run([harness.STACKSNAP, "--tree", "-f", "json", str(target.pid)],
                              capture_output=True, text=True, timeout=harness.LIMIT_S, check=False)
        found = []
        for line in done.stdout.splitlines():
            shown = json.loads(line)
            if shown["process"]["pid"] != target.pid:
                target.children.add(shown["process"]["pid"])
            for thread in shown["threads"]:
                names = [f[0] for f in javascript(thread)]
                found += names[1:2] if names[:1] == ["outer"] else []
        return found

    def test_builtin(self):
        """The function that calls a builtin without a frame is not lost."""
        for node in nodes():
            target = Target(self, node, "-e", SEARCHING)
            self.assertEqual(target.process.stdout.readline(), "ready\n")
            for _ in range(3):
                thread = target.main_thread()
                with self.subTest(node=node):
                    found = [f[0] for f in javascript(thread) if f[1] == "[eval]"]
                    self.assertIn(found[-2:], ([], ["many", "(anonymous)"]),
                                  show(thread))
                    self.assertTrue(found or thread["native_reason"] or not thread["frames"],
                                    show(thread))


if __name__ == "__main__":
    if not any(nodes()):
        sys.exit(77)
    harness.main()
