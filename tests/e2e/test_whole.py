"""Real programs whose stacks are deep, in several mappings, or in code without a file: every
thread's stack is whole, and has the same return addresses as in eu-stack's.

Debian packages: elfutils, gdb, ruby, sbcl, fp-compiler, chromium, qemu-user, php-cli, golang-go, postgresql.
"""
# ctest: real long-with-sanitizers

import os
import re
import shutil
import signal
import subprocess
import tempfile

from harness import EndToEnd, LIMIT_S, Snapshot, all_sleep, describe, main, task_states, wait_until
import test_real_waits
from test_real import parse

RUBY = """
8.times { Thread.new { sleep } }
puts "ready"
$stdout.flush
sleep
"""

LISP = """
(defun deep (n)
  (if (= n 0)
      (progn (format t "ready~%") (finish-output) (read-line) 0)
      (+ 1 (deep (1- n)))))
(sb-thread:make-thread (lambda () (sb-thread:wait-on-semaphore (sb-thread:make-semaphore))))
(deep 100)
"""

GO = """
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

var mutex sync.Mutex

func spin() {
	for i := 1; i != 0; i += 2 {
	}
}

func main() {
	mutex.Lock()
	go spin()
	go mutex.Lock()
	go func() { runtime.LockOSThread(); time.Sleep(time.Hour) }()
	go func() {
		runtime.LockOSThread()
		fmt.Println("ready")
		os.Stdin.Read(make([]byte, 1))
	}()
	select {}
}
"""

PASCAL = """
program hold;
uses cthreads, sysutils;
procedure inner(n: longint);
begin
  if n > 0 then begin inner(n - 1); write(''); exit; end;
  writeln('ready'); flush(output);
  sleep(1000000);
  writeln(n);
end;
procedure outer;
begin
  inner(5);
  writeln('end');
end;
begin
  outer;
end.
"""

PHP = """<?php
function inner($n) { $x = 0; for ($i = 0; $i < 100000000000; $i++) { $x = ($x + $i * $n) % 1000003; } return $x; }
echo "ready\\n";
echo inner(3);
"""

# Where Go's own tracebacks end.
GO_ROOTS = {"runtime.goexit", "runtime.mstart", "runtime.mcall", "runtime.rt0_go",
            "runtime.systemstack", "runtime.morestack"}


class Whole(EndToEnd):
    def require(self, *programs):
        for program in programs:
            if not shutil.which(program):
                self.skipTest("%s is missing" % program)

    def script(self, text, suffix):
        """A file with that text."""
        directory = tempfile.mkdtemp(prefix="stacksnap-")
        self.addCleanup(shutil.rmtree, directory)
        path = os.path.join(directory, "test" + suffix)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def settle(self, pid, count):
        """Waits until it has that many threads, and all of them sleep."""
        wait_until(lambda: all_sleep(pid, count), "%d threads to sleep" % count)

    def compare(self, pid):
        """All stacks are whole, without stopping the threads if that is possible, and equal to
        eu-stack's."""
        snapshot = self.snap(pid, "-n", 0, status=(0,))
        theirs = parse(subprocess.run(["eu-stack", "-n", "0", "-p", str(pid)],
                                      timeout=LIMIT_S, stdout=subprocess.PIPE, text=True,
                                      stderr=subprocess.DEVNULL).stdout)
        self.assertEqual(set(theirs), {thread["tid"] for thread in snapshot.threads})
        for thread in snapshot.threads:
            seen = "%s\neu-stack: %s" % (describe(snapshot, thread), theirs[thread["tid"]])
            self.assertEqual(thread["end"], "root", seen)
            frames = [int(frame["pc"], 0) for frame in thread["all_frames"]
                      if not frame["inlined"]]
            self.assertEqual(frames, [pc for pc, _ in theirs[thread["tid"]]], seen)
            self.assertGreater(len(frames), 2, seen)
        return snapshot


class Ruby(Whole):
    def test_threads(self):
        """Each thread has a mebibyte for its virtual machine in the middle of its stack."""
        self.require("ruby", "eu-stack")
        target = self.start_command(["ruby", self.script(RUBY, ".rb")])
        self.settle(target.pid, 9)
        snapshot = self.compare(target.pid)
        for thread in snapshot.threads:
            self.assertEqual(thread["stopped_ns"], 0)


class Sbcl(Whole):
    def test_main_thread(self):
        """The stack of the Lisp program is in another mapping than that of the C program which
        has called it."""
        self.require("sbcl", "eu-stack")
        target = self.start_command(["sbcl", "--script", self.script(LISP, ".lisp")])
        self.settle(target.pid, 3)
        names = [frame["symbol"] for frame in
                 self.compare(target.pid).thread(target.pid)["frames"]]
        self.assertIn("call_into_lisp_", names)
        self.assertIn("main", names)

    def test_call_that_a_stop_would_change(self):
        """Of a sleeper with a place for the time that is left, the frame pointer is not read: the
        output does not name a mode that would."""
        self.require("sbcl")
        target = self.start_command(["sbcl", "--script", self.script(
            '(format t "ready~%") (finish-output) (sleep 1000)', ".lisp")])
        wait_until(lambda: (self.snap(target.pid, status=(0, 1)).thread(target.pid)["wait"]
                            or {}).get("kind") == "sleep",
                   "it to sleep")
        for mode, words in (("stop", 'see "Interrupted system calls"'), ("no-stop", "--mode=auto")):
            seen = self.run_tool("--mode=" + mode, "-a", target.pid, status=(1,)).stdout.decode()
            self.assertRegex(seen, r"required register is unknown \[register\]; .*" + words)


    def test_stopped(self):
        """Of a process that is stopped all registers are read at once: nothing is disturbed by that."""
        self.require("sbcl", "eu-stack")
        target = self.start_command(["sbcl", "--script", self.script(LISP, ".lisp")])
        self.settle(target.pid, 3)
        running = [[frame["pc"] for frame in thread["frames"]] for thread in self.compare(target.pid).threads]
        os.kill(target.pid, signal.SIGSTOP)
        wait_until(lambda: set(task_states(target.pid).values()) == {"T"}, "all threads to stop")
        for mode in "auto", "stop":
            stopped = Snapshot(self.run_tool("-f", "json", "-n", 0, "--mode=" + mode, target.pid))
            self.assertEqual([[frame["pc"] for frame in thread["frames"]] for thread in stopped.threads], running)
            self.assertEqual(set(task_states(target.pid).values()), {"T"})


class Pascal(Whole):
    """Code without unwind tables: return addresses are guessed, and every function is a true one."""

    def test_frames(self):
        self.require("fpc")
        source = self.script(PASCAL, ".pas")
        for flags in ["-gl"], ["-O2", "-Xs-"]:
            program = source + "".join(flags) + ".out"
            subprocess.run(["fpc", *flags, "-o" + program, source], check=True, timeout=LIMIT_S,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            target = self.start_command([program])
            wait_until(lambda: (self.snap(target.pid, status=(0, 1)).thread(target.pid)["wait"]
                                or {}).get("kind") == "sleep", "it to sleep")
            snapshot = self.snap(target.pid, status=(0, 1))
            thread = snapshot.thread(target.pid)
            names = [frame["symbol"] for frame in thread["frames"]]
            self.assertEqual(names[:11], ["SYSTEM.FPSYSCALL", "SYSTEM.FPNANOSLEEP", "SYSUTILS.SLEEP"]
                             + 6 * ["HOLD.INNER"] + ["HOLD.OUTER", "main"], describe(snapshot, thread))
            self.assertLessEqual(set(names[11:]), {"SYSTEM.SYSENTRY", "SI_C.MAIN_STUB", "__libc_start_call_main"})
            self.assertNotEqual(thread["end"], "root")  # after a guess nothing is sure


def session_of(pid):
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


class Chromium(Whole):
    """Programs of 200 MB without symbols."""

    def processes(self, session):
        found = [int(pid) for pid in os.listdir("/proc") if pid.isdigit()]
        return [pid for pid in found if session_of(pid) == session]

    def test_processes(self):
        """Each thread that does not run meanwhile has the frames that eu-stack shows."""
        self.require("chromium", "eu-stack")
        directory = tempfile.mkdtemp(prefix="stacksnap-")
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        browser = subprocess.Popen(["chromium", "--headless", "--no-sandbox", "--disable-gpu",
                                    "--remote-debugging-port=0", "--user-data-dir=" + directory, "about:blank"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(browser.wait)
        self.addCleanup(os.killpg, browser.pid, signal.SIGKILL)
        wait_until(lambda: len(self.processes(browser.pid)) >= 4, "its processes")
        wait_until(lambda: os.path.exists(os.path.join(directory, "DevToolsActivePort")), "the browser")
        equal = 0
        for pid in self.processes(browser.pid):
            snapshot = self.snap(pid, "-n", 0, status=(0, 1))
            theirs = parse(subprocess.run(["eu-stack", "-n", "0", "-p", str(pid)], timeout=LIMIT_S,
                                          stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL).stdout)
            for thread in snapshot.threads:
                frames = [int(frame["pc"], 0) for frame in thread["all_frames"] if not frame["inlined"]]
                wanted = [pc for pc, _ in theirs.get(thread["tid"], [])]
                if wanted[:2] == frames[:2]:  # else it has run meanwhile
                    self.assertEqual(frames, wanted, describe(snapshot, thread))
                    equal += 1
        self.assertGreater(equal, 20)  # the others ran


class Compilers(Whole):
    """Code that a compiler describes for debuggers, in images from __jit_debug_descriptor on."""

    def test_qemu(self):
        """Each stack goes through translated code to main(), as in gdb."""
        self.require("qemu-x86_64", "gdb")
        program = subprocess.Popen(["qemu-x86_64", shutil.which("dash"), "-c", "while :; do :; done"])
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        wait_until(lambda: "cpu_exec" in self.symbols(program.pid), "the program to run")
        through = set()
        for _ in range(20):
            names = self.symbols(program.pid)
            self.assertEqual(names[-6:], ["cpu_exec", "cpu_loop", "main", "__libc_start_call_main",
                                          "__libc_start_main", "_start"], names)
            through.add("code_gen_buffer" in names)
        self.assertIn(True, through)
        theirs = subprocess.run(["gdb", "-nx", "-batch", "-p", str(program.pid), "-ex", "thread apply 1 bt"],
                                timeout=LIMIT_S, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL).stdout
        self.assertIn("in cpu_exec", theirs)

    def symbols(self, pid):
        thread = self.snap(pid, status=(0, 1)).thread(pid)
        if thread["end"] != "root":
            return []  # in code that qemu has just begun, or left
        return [frame["symbol"] for frame in thread["frames"]]

    def test_php(self):
        """Its compiled code is in anonymous shared memory."""
        self.require("php")
        options = ["-d", "opcache.enable_cli=1", "-d", "opcache.jit=1205",
                   "-d", "opcache.jit_buffer_size=64M", "-d", "opcache.jit_debug=256",
                   "-d", "opcache.file_update_protection=0"]
        if subprocess.run(["php", *options, "-r", "exit(extension_loaded('Zend OPcache') ? 0 : 1);"],
                          timeout=LIMIT_S, capture_output=True, check=False).returncode:
            self.skipTest("opcache is missing")
        target = self.start_command(["php", *options, self.script(PHP, ".php")], stderr=subprocess.DEVNULL)
        wait_until(lambda: any("inner" in (frame["symbol"] or "") for frame in
                               self.snap(target.pid, status=(0, 1)).thread(target.pid)["frames"]),
                   "compiled code")


class Go(Whole):
    """Stacks end at the functions that begin them: there are leftovers further out."""

    def build(self, *flags):
        self.require("go", "gdb")
        source = self.script(GO, ".go")
        program = source + ".out"
        environment = dict(os.environ, HOME=os.path.dirname(source), GOFLAGS="-mod=mod",
                           GOCACHE=os.environ.get("GOCACHE", os.path.dirname(source) + "/cache"))
        subprocess.run(["go", "build", *flags, "-o", program, source], check=True,
                       env=environment, timeout=5 * LIMIT_S)
        target = self.start_command([program], stderr=subprocess.PIPE,
                                    env=dict(os.environ, GOTRACEBACK="system"))
        self.addCleanup(target.process.stderr.close)
        wait_until(lambda: "R" in task_states(target.pid).values(), "a running goroutine")
        wait_until(lambda: any(thread["wait"] and thread["wait"]["kind"] == "read"
                               for thread in self.snap(target.pid, status=(0, 1)).threads),
                   "a goroutine to read")
        return target

    def names(self, thread):
        return [re.sub(r"\.abi\d$", "", frame["symbol"]) for frame in thread["frames"]]

    def check(self, pid):
        """All stacks are whole. Returns the names of each thread's frames, with those that
        spin and read first."""
        for mode in ("stop", *["auto"] * 10):
            snapshot = self.snap(pid, mode=mode)
            for thread in snapshot.threads:
                self.assertEqual(thread["end"], "root")
                self.assertNotIn("return-address",
                                 {frame["source"] for frame in thread["frames"]}, thread)
                names = self.names(thread)
                self.assertIn(names[-1], GO_ROOTS)
                self.assertFalse(set(names[:-1]) & GO_ROOTS, names)
            spinning = [self.names(t) for t in snapshot.threads
                        if self.names(t)[0] == "main.spin"]
            if mode == "auto" and spinning:
                break  # else the scheduler has just taken its CPU away
        self.assertEqual(spinning, [["main.spin", "runtime.goexit"]])
        reading, = [thread for thread in snapshot.threads if thread["wait"] and
                    thread["wait"]["kind"] == "read"]
        return snapshot, reading

    def test_like_go_and_gdb(self):
        target = self.build()
        snapshot, reading = self.check(target.pid)
        output = subprocess.run(
            ["gdb", "-p", str(target.pid), "-batch", "-nx", "-ex", "thread apply all bt"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=LIMIT_S).stdout
        theirs, stack = {}, []
        for line in output.splitlines():
            thread = re.match(r"Thread \d+ \(.*?LWP (\d+)", line)
            frame = re.match(r"#(\d+) +(?:0x[0-9a-f]+ in )?([^ ]+)", line)
            if thread:
                stack = theirs.setdefault(int(thread.group(1)), [])
            elif frame:
                stack.append(frame.group(2))
        for thread in snapshot.threads:
            if thread["state"] == "S" and thread["wait"]["kind"] in ("read", "futex"):
                names = self.names(thread)
                self.assertEqual([re.sub(r"\.abi\d$", "", name) for name in
                                  theirs[thread["tid"]][:len(names)]], names)
        os.kill(target.pid, signal.SIGQUIT)
        trace = target.process.communicate(timeout=LIMIT_S)[1].decode()
        part = [block for block in trace.split("\n\n") if "main.main.func2" in block and
                block.startswith("goroutine ")][0]
        calls = re.findall(r"^([^\t\n].*)\((?:.*)\)$", part, re.M)
        names = self.names(reading)
        self.assertEqual(names[-len(calls):], calls)

    def test_stripped(self):
        target = self.build("-ldflags=-s -w")
        _, reading = self.check(target.pid)
        # os.(*File).read is inlined: Go's own table says so.
        self.assertEqual(self.names(reading)[-5:],
                         ["internal/poll.(*FD).Read", "os.(*File).read", "os.(*File).Read",
                          "main.main.func2", "runtime.goexit"])


JIT = """
set jit_above_cost = 0; set jit_optimize_above_cost = 0; set jit_inline_above_cost = 0;
set max_parallel_workers_per_gather = 0;
select sum((i * 3 + 1) % 7), max(length(md5(i::text))) from generate_series(1, 100000000) i
where (i * 5) % 11 <> 2 and i::text like '%1%';
"""


class PostgreSqlJit(test_real_waits.PostgreSql):
    """Code that LLVM compiles has unwind information, which it registers with libgcc."""

    test_row_lock = None

    def test_query(self):
        self.start_server()
        if self.ask("select pg_jit_available()") != "t":
            self.skipTest("PostgreSQL has no JIT")
        self.session(JIT)
        query = "select pid from pg_stat_activity where query like '%md5(i::%' and pid <> " \
                "pg_backend_pid() and state = 'active'"
        wait_until(lambda: self.ask(query), "the query")
        pid = int(self.ask(query))
        found = []

        def runs_code():
            snapshot = self.snap(pid, "-n", 0, mode="stop", status=(0, 1))
            if snapshot.thread(pid)["end"] in ("running", "runnable", "not-stopped"):
                return False  # it did not get a CPU, so it may be in a call: spared
            if snapshot.thread(pid)["stopped_ns"] == 0:
                return False  # it waited for the disk, so it was read without its registers
            frames = snapshot.thread(pid)["frames"]
            self.assertEqual(snapshot.status, 0,  # each is whole
                             "%s\n%s" % (snapshot.stderr, describe(snapshot, snapshot.thread(pid))))
            self.assertEqual(frames[-1]["symbol"], "_start")
            if any(frame["area"] == "[jit]" for frame in frames):
                found.append(frames)
            return len(found) == 5

        wait_until(runs_code, "compiled code to run")
        for frames in found:
            jit = [frame["area"] == "[jit]" for frame in frames].index(True)
            self.assertEqual(frames[jit + 1]["source"], "cfi", frames[jit:jit + 3])


if __name__ == "__main__":
    main()
