"""Runtimes that use signals themselves, under observation on a busy machine: each must end as it
does without it, with its own exit status. STACKSNAP_TRIES is the number of JVMs; there are a third
as many node and Go programs each; without it there are a few of each."""
# ctest: tries=300 release-only timeout=7200 real

import glob
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from harness import EndToEnd, LIMIT_S, STACKSNAP, main

TRIES = int(os.environ.get("STACKSNAP_TRIES", "3"))
COMMANDS = 4
SPAN = "1s" if "STACKSNAP_TRIES" in os.environ else "300ms"
# Threads that run, and processes under observation, at the same time
LOAD, AT_ONCE = (50, 16) if "STACKSNAP_TRIES" in os.environ else (8, 4)
STATUS = 7
JAVA = sorted(set(map(os.path.realpath, glob.glob("/usr/lib/jvm/*/bin/java"))))
# C2 without the tiers before it, the interpreter alone, both
JVM_OPTIONS = (["-XX:-TieredCompilation"], ["-Xint"], [])
NODE = """
let n = 0;
const turn = () => {
    for (let i = 0; i < 1e6; i++) n += Math.sqrt(i);
    timer = setTimeout(turn, 1);
};
let timer = setTimeout(turn, 1);
process.stdin.on("end", () => { clearTimeout(timer); process.exit(7); });
process.stdin.resume();
console.log("ready");
"""
GO = """package main

import ("fmt"; "io"; "os")

type node struct { value int }

func read(n *node) (v int) {
	defer func() { if recover() != nil { v = 1 } }()
	return n.value
}

func work() {
	for i := 0; ; i++ {
		n := &node{i}
		if i%97 == 0 { n = nil }
		read(n)
	}
}

func main() {
	for i := 0; i < 4; i++ { go work() }
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	os.Exit(7)
}
"""


class Runtimes(EndToEnd):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.directory = directory.name

    def start_load(self, running):
        """What is missing to LOAD, besides the threads of the targets."""
        for _ in range(max(LOAD - running, 2)):
            process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)

    def look(self, targets, turn, signals):
        """All targets meet one of the commands, and in each turn another one."""
        commands = (["hang", "--for=" + SPAN], ["--mode=stop"],
                    ["record", "-d", SPAN, "-o", "-"], ["top", "--once"])
        tools = []
        for target in targets:
            tools.append(subprocess.Popen([STACKSNAP, *commands[turn], str(target.pid)],
                                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.PIPE))
            for name in signals:
                os.kill(target.pid, name)
        for tool in tools:
            text = tool.communicate(timeout=10 * LIMIT_S)[1]
            # A number of hang's is its verdict.
            self.assertIn(tool.returncode, range(0, 16), text)

    def observe(self, programs, running, signals=()):
        """Starts each program, of which so many threads run, observes it with all commands, and
        ends it."""
        statuses = []
        for i in range(0, len(programs), AT_ONCE):
            targets = [subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)
                       for program in programs[i:i + AT_ONCE]]
            for target in targets:
                self.addCleanup(target.wait)
                self.addCleanup(target.kill)
                self.assertEqual(target.stdout.readline(), b"ready\n")
            if i == 0:  # what starts needs no load
                self.start_load(running * len(targets))
            for turn in range(COMMANDS):
                self.look(targets, turn, signals)
            for target in targets:
                text = target.communicate(timeout=10 * LIMIT_S)[0]
                statuses.append((target.args[:3], target.returncode, text[-2000:]))
        bad = [status for status in statuses if status[1] != STATUS]
        print("%d ended with their status, %d otherwise" % (len(statuses) - len(bad), len(bad)),
              flush=True)
        self.assertEqual(bad, [])

    def test_java(self):
        if not JAVA or not shutil.which("javac"):
            self.skipTest("no JDK")
        oldest = min(JAVA, key=lambda java: int((re.findall(r"\d+", java) or ["0"])[0]))
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "RuntimeTarget.java")
        javac = os.path.join(os.path.dirname(oldest), "javac")
        subprocess.run([javac, "-d", self.directory, source], check=True, timeout=10 * LIMIT_S)
        kinds = itertools.cycle(itertools.product(JAVA, JVM_OPTIONS))
        common = ["-Xmx64m", "-XX:+UseSerialGC", "-cp", self.directory, "RuntimeTarget"]
        programs = [[java, *options, *common]
                    for java, options in itertools.islice(kinds, TRIES)]
        self.observe(programs, 3, [signal.SIGQUIT])

    def test_node(self):
        if not shutil.which("node"):
            self.skipTest("no node")
        self.observe([["node", "-e", NODE]] * max(TRIES // 3, 1), 1)

    def test_go(self):
        if not shutil.which("go"):
            self.skipTest("no go")
        source = os.path.join(self.directory, "runtime_target.go")
        with open(source, "w") as file:
            file.write(GO)
        program = os.path.join(self.directory, "runtime_target")
        subprocess.run(["go", "build", "-o", program, source], check=True, timeout=20 * LIMIT_S)
        self.observe([[program]] * max(TRIES // 3, 1), 4)


if __name__ == "__main__":
    unittest.installHandler()
    main()
