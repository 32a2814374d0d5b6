"""Goroutines of Go programs: the same ones, with the same status, frames and lines, as in the
runtime's own dump of the same parked moment; none of them is disturbed.

Debian packages: golang-go, gcc, gdb, caddy, prometheus, etcd-server; esbuild from npm. STACKSNAP_GO: paths of more versions of go, separated by colons.
"""
# ctest: long-with-sanitizers real tries=1

import atexit
import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

from recording import Recording, ZSTD
from harness import EndToEnd, LIMIT_S, Snapshot, main, wait_until

sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests", "report"))
import npm  # noqa: E402

# Each build mode compiles Go's library once more.
COMPILES_ALL = "STACKSNAP_TRIES" in os.environ
TAKES_LONG = "compiles for long: ctest -R e2e/goroutines.long"
COMPILERS = ["go"] + [path for path in os.environ.get("STACKSNAP_GO", "").split(":") if path]
with open(os.path.join(os.environ["SOURCE"], "targets", "goroutines.go"), encoding="utf-8") as park:
    PARK = park.read()
# Without the connection that one of its goroutines waits for, as another one waits for a pipe: the build mode
# would compile all about networks.
PARK_IN_MODE = re.sub(r".*\b(net|listener)\b.*\n", "", PARK)

LIBRARY = """
package main

import "C"

//go:noinline
func wait(from chan int) { <-from }

//export Start
func Start(count C.int) {
	from := make(chan int)
	for i := 0; i < int(count); i++ {
		go func() { wait(from) }()
	}
}

func main() {}
"""
PYTHON = """
import ctypes, sys, time
def sleeper():
    time.sleep(1000)
ctypes.CDLL(sys.argv[1]).Start(7)
print("ready", flush=True)
sleeper()
"""


PYTHON_TWO = """
import ctypes, sys, time
libraries = [ctypes.CDLL(path) for path in sys.argv[1:]]
for library in libraries:
    library.Start(3)
print("ready", flush=True)
time.sleep(1000)
"""

PLUGIN = """
package main

func spin() {
	for {
	}
}

func Run() { go spin() }
"""
HOST = """
package main

import (
	"fmt"
	"os"
	"plugin"
)

func main() {
	loaded, _ := plugin.Open(os.Args[1])
	run, _ := loaded.Lookup("Run")
	run.(func())()
	fmt.Println("ready")
	os.Stdin.Read(make([]byte, 1))
}
"""

# AB-BA, and who waits behind them; who waits in the function that has got the lock; a goroutine that works; with "turns", goroutines that hold a
# lock in turns in place of the deadlock.
LOCKS = """
package main

import (
	"fmt"
	"os"
	"sync"
	"time"
)

var a, b sync.Mutex
var c sync.RWMutex

func both(x, y *sync.Mutex) {
	x.Lock()
	time.Sleep(100 * time.Millisecond)
	y.Lock()
	fmt.Println("never")
}

var d sync.Mutex
var none chan int

func held() {
	d.Lock()
	<-none
}

func turns() {
	for {
		a.Lock()
		time.Sleep(2 * time.Millisecond)
		a.Unlock()
	}
}

func main() {
	if len(os.Args) > 1 {
		for i := 0; i < 4; i++ {
			go turns()
		}
	} else {
		go both(&a, &b)
		go both(&b, &a)
		c.Lock()
		for i := 0; i < 5; i++ {
			go func() { c.RLock(); fmt.Println("never") }()
		}
		for i := 0; i < 3; i++ {
			go held()
		}
	}
	time.Sleep(300 * time.Millisecond)
	fmt.Println("ready")
	for {
		time.Sleep(10 * time.Millisecond)
	}
}
"""


# Goroutines that stay, and more and more others; on a line of input those in leave() end, and
# those in arrive() begin.
CHANGES = """
package main

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

var never, end = make(chan int), make(chan int)

func stay()   { <-never }
func leave()  { <-end }
func arrive() { <-never }
func leak()   { <-never }

func main() {
	for i := 0; i < 7; i++ {
		go stay()
	}
	for i := 0; i < 5; i++ {
		go leave()
	}
	if len(os.Args) > 1 {
		go func() {
			for {
				go leak()
				time.Sleep(2 * time.Millisecond)
			}
		}()
	}
	time.Sleep(100 * time.Millisecond)
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		close(end)
		for i := 0; i < 3; i++ {
			go arrive()
		}
		time.Sleep(100 * time.Millisecond)
		fmt.Println("changed")
	}
}
"""


class Dumped:
    """A goroutine of a dump: id, status, and frames as (name, file:line, inlined)."""

    def __init__(self, block):
        head = re.match(r"goroutine (\d+) .*?\[([^\],]*)", block)
        self.id, self.status = int(head.group(1)), head.group(2)
        self.frames = []
        for name, arguments, place in re.findall(
                r"^([^\t\n].*)\((.*)\)\n\t(\S+)", block.split("\ncreated by ")[0], re.M):
            self.frames.append((plain(name), place, arguments == "..."))


def plain(name):
    """Without type arguments and the name of the ABI."""
    return re.sub(r"\[.*\]|\.abi\d$|\.abiinternal$", "", name)


def remove_sections(path):
    """The section headers and what refers to them; they are at the end, or between other data."""
    with open(path, "r+b") as file:
        file.seek(0x28) # e_shoff
        file.write(bytes(8))
        file.seek(0x3c) # e_shnum, e_shstrndx
        file.write(bytes(4))


def parse_dump(text):
    found = [Dumped(block) for block in text.split("\n\n") if block.startswith("goroutine ")]
    return {goroutine.id: goroutine for goroutine in found if goroutine.id}


@functools.lru_cache(maxsize=None)
def build(compiler, flags, text):
    """A program, which the tests that look at it share."""
    directory = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, directory)
    source = os.path.join(directory, "main.go")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    program = os.path.join(directory, "park")
    subprocess.run([compiler, "build", *flags, "-o", program, source], check=True,
                   timeout=5 * LIMIT_S, cwd=directory,
                   env=dict(os.environ, HOME=directory, GOFLAGS="-mod=mod", GOTOOLCHAIN="local"))
    return program


def version_of(compiler):
    text = subprocess.run([compiler, "env", "GOVERSION"], capture_output=True, check=True, timeout=LIMIT_S,
                          env=dict(os.environ, GOTOOLCHAIN="local")).stdout.decode()
    return tuple(map(int, re.match(r"go(\d+)\.(\d+)", text).groups()))


# Goroutines of functions "lost..." cannot be woken, those of functions "kept..." can: by what is in the comments.
LEAKS = """
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

type holder struct {
	before [3]int
	c      chan int
	wait   sync.WaitGroup
	lock   sync.RWMutex
	after  int
}

var channels = map[int]chan int{}
var queue = make(chan chan int, 10)
var holders []*holder
var inner []*int
var condition *sync.Cond

//go:noinline
func deeper(depth int, then func()) int {
	var room [40]int
	room[depth%40] = depth
	if depth == 0 {
		then()
		return room[3]
	}
	return deeper(depth-1, then) + room[7]
}

func lostSend(c chan int)               { c <- 1 }
func lostRange(c chan *int)             { for range c { } }
func lostSelect(a chan int, b chan int) { select { case <-a: case b <- 1: } }
func lostWait(h *holder)                { h.wait.Wait() }
func lostLock(h *holder)                { h.lock.Lock() }
func lostRead(h *holder)                { h.lock.RLock() }
func lostCond(c *sync.Cond)             { c.L.Lock(); c.Wait() }
func lostContext(ctx context.Context)   { <-ctx.Done() }
func lostCircle(a, b chan int)          { <-a; b <- 1 }
func lostPipe(r io.Reader)              { r.Read(make([]byte, 1)) }
func lostDeep(c chan int)               { deeper(200, func() { <-c }) }

func keptMap(c chan int)              { <-c }
func keptQueue(c chan int)            { c <- 1 }
func keptHolder(h *holder)            { h.wait.Wait() }
func keptInner(h *holder)             { h.lock.Lock() }
func keptTimer()                      { <-time.After(time.Hour) }
func keptFunction(c chan int)         { <-c } // of a timer
func keptContext(ctx context.Context) { <-ctx.Done() }
func keptSleep(c chan int)            { <-c } // a goroutine that sleeps
func sleeps(c chan int)               { deeper(300, func() { time.Sleep(time.Hour) }); close(c) }
func keptCall(c chan int)             { <-c } // one in a system call
func calls(fd int, c chan int)        { syscall.Read(fd, make([]byte, 1)); close(c) }
func keptChain(a, b chan int)         { <-a; close(b) } // one that waits, and can be woken
func keptOne(a, b chan int)           { select { case <-a: case <-b: } } // one of two channels
func keptFinalizer(c chan int)        { <-c } // an object that nothing else refers to
func keptSignal(c chan os.Signal)     { <-c }
func keptMapped(c chan int)           { <-c } // memory that is not Go's
func keptCond(c *sync.Cond)           { c.L.Lock(); c.Wait() } // a variable
func keptPurpose()                    { select {} } // on purpose

func lost() {
	go lostSend(make(chan int))
	go lostRange(make(chan *int, 3))
	go lostSelect(make(chan int), make(chan int))
	h := &holder{}
	h.wait.Add(1)
	go lostWait(h)
	h = &holder{}
	h.lock.Lock()
	go lostLock(h)
	h = &holder{}
	h.lock.Lock()
	go lostRead(h)
	go lostCond(sync.NewCond(&sync.Mutex{}))
	ctx, _ := context.WithCancel(context.Background())
	go lostContext(ctx)
	a, b := make(chan int), make(chan int)
	go lostCircle(a, b)
	go lostCircle(b, a)
	r, _ := io.Pipe()
	go lostPipe(r)
	go lostDeep(make(chan int))
}

func kept() {
	channels[1] = make(chan int)
	go keptMap(channels[1])
	c := make(chan int)
	queue <- c
	go keptQueue(c)
	h := &holder{}
	h.wait.Add(1)
	holders = append(holders, h)
	go keptHolder(h)
	h = &holder{}
	h.lock.Lock()
	inner = append(inner, &h.after)
	go keptInner(h)
	go keptTimer()
	c2 := make(chan int)
	time.AfterFunc(time.Hour, func() { close(c2) })
	go keptFunction(c2)
	ctx, _ := context.WithTimeout(context.Background(), time.Hour)
	go keptContext(ctx)
	c = make(chan int)
	go sleeps(c)
	go keptSleep(c)
	c = make(chan int)
	var fds [2]int
	syscall.Pipe(fds[:])
	go calls(fds[0], c)
	go keptCall(c)
	channels[2] = make(chan int)
	last := channels[2]
	for i := 0; i < 5; i++ {
		next := make(chan int)
		go keptChain(last, next)
		last = next
	}
	channels[3] = make(chan int)
	go keptOne(make(chan int), channels[3])
	h = &holder{c: make(chan int)}
	runtime.SetFinalizer(h, func(h *holder) { close(h.c) })
	go keptFinalizer(h.c)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	go keptSignal(signals)
	c = make(chan int)
	page, _ := syscall.Mmap(-1, 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	*(*uintptr)(unsafe.Pointer(&page[64])) = *(*uintptr)(unsafe.Pointer(&c))
	go keptMapped(c)
	condition = sync.NewCond(&sync.Mutex{})
	go keptCond(condition)
	go keptPurpose()
}

func main() {
	lost()
	kept()
	time.Sleep(100 * time.Millisecond)
	deeper(200, func() {})
	fmt.Println("ready")
	os.Stdin.Read(make([]byte, 1))
}
"""


class Goroutines(EndToEnd):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)

    def build(self, compiler, *flags, text=PARK):
        if not shutil.which(compiler):
            self.skipTest("needs " + compiler)
        return build(compiler, flags, text)

    def run_program(self, program, count):
        target = self.start_command([program, str(count)], stderr=subprocess.PIPE,
                                    env=dict(os.environ, GOTRACEBACK="system"))
        self.addCleanup(target.process.stderr.close)
        return target

    def dump(self, target):
        """The runtime's dump, with all frames; the program ends."""
        os.kill(target.pid, signal.SIGQUIT)
        return parse_dump(target.process.stderr.read().decode())

    def await_read(self, target):
        """Waits until main reads, and all others are parked."""
        wait_until(lambda: any(thread["wait"] and thread["wait"]["kind"] == "read" for thread in
                               self.snap(target.pid, status=(0, 1)).threads),
                   "main to read")

    def goroutines(self, snapshot):
        """By id: the group and the frames without what began the goroutine."""
        found = {}
        for group in snapshot.data["goroutines"]:
            frames = group["frames"]
            if group["on_thread"]:
                self.assertEqual(frames, snapshot.thread(group["tid"])["frames"])
            for number in group["ids"]:
                self.assertNotIn(number, found)
                found[number] = (group, frames)
        return found

    def check_frames(self, dumped, frames):
        ours = [(plain(frame["symbol"] or "?"),
                 "%s:%s" % (frame["file"], frame["line"]), frame["inlined"]) for frame in frames]
        self.assertEqual(ours, dumped.frames, dumped.id)

    def compare(self, compiler, *flags, count=50, sections=True):
        in_mode = any(flag.startswith("-buildmode") for flag in flags)
        program = self.build(compiler, *flags, text=PARK_IN_MODE if in_mode else PARK)
        if not sections:
            program = shutil.copy(program, self.directory)
            remove_sections(program)
        target = self.run_program(program, count)
        self.await_read(target)
        snapshot = self.snap(target.pid, status=(0, 1))
        found = self.goroutines(snapshot)
        dumped = self.dump(target)
        self.assertIsNone(snapshot.data["goroutines_problem"])
        self.assertEqual(snapshot.data["goroutines_unread"], 0)
        # The garbage collector may still work.
        ours = {number for number, (group, _) in found.items()
                if not str(group["wait_reason"]).startswith("GC worker")}
        theirs = {number for number, goroutine in dumped.items()
                  if not goroutine.status.startswith("GC worker")}
        self.assertEqual(ours, theirs, (sorted(ours - theirs), sorted(theirs - ours)))
        compared = 0
        for number in ours:
            group, frames = found[number]
            if any(frame["symbol"] == "runtime.bgscavenge" for frame in group["frames"]):
                continue  # it works from time to time, too
            self.assertEqual(group["wait_reason"] or group["status"], dumped[number].status,
                             group)
            self.assertEqual(group["on_thread"], number == 1, group)
            self.assertEqual(group["end"], "root", group)
            if number == 1: # the runtime leaves out what follows its preparation for the call
                dumped[1].frames = dumped[1].frames[1:]
                frames = frames[-len(dumped[1].frames):]
            self.check_frames(dumped[number], frames)
            compared += 1
        self.assertGreaterEqual(compared, count + 13 - in_mode)
        return snapshot, found

    def test_like_the_runtime(self):
        for compiler in COMPILERS:
            with self.subTest(compiler):
                snapshot, _ = self.compare(compiler)
                largest = max(snapshot.data["goroutines"], key=lambda group: group["count"])
                self.assertEqual(largest["count"], 50)
                self.assertGreater(largest["waiting_ns"], 0)
                names = [frame["symbol"] for frame in largest["frames"]]
                self.assertEqual(names[-3:-1], ["main.inner", "main.outer"], names)
                self.assertEqual(plain(names[-1]), "runtime.goexit")

    def test_stripped(self):
        for compiler in COMPILERS:
            with self.subTest(compiler):
                self.compare(compiler, "-ldflags=-s -w")

    def test_position_independent(self):
        for compiler in COMPILERS:
            with self.subTest(compiler):
                self.compare(compiler, "-buildmode=pie", "-ldflags=-s -w")

    def test_without_sections(self):
        """Programs without section headers, as sstrip(1) leaves them, linked in each way."""
        for flags in ([], ["-buildmode=pie"],
                      ["-buildmode=pie", "-ldflags=-linkmode=external"]):
            with self.subTest(flags):
                self.compare("go", *flags, sections=False)

    @unittest.skipUnless(COMPILES_ALL, TAKES_LONG)
    def test_linked_by_c(self):
        """The linker of C puts the function table of such programs between other data."""
        self.compare("go", "-buildmode=pie", "-ldflags=-linkmode=external -s -w")

    def test_library(self):
        """A stripped library of Go in a process of Python: its goroutines, and Python's functions."""
        library = self.build("go", "-buildmode=c-shared", "-ldflags=-s -w", text=LIBRARY)
        target = self.start_command(["/usr/bin/python3", "-c", PYTHON, library])
        wait_until(lambda: sum(group["count"] for group in
                               self.snap(target.pid, status=(0, 1)).data["goroutines"]
                               if group["wait_reason"] == "chan receive") == 7,
                   "goroutines to wait")
        snapshot = self.snap(target.pid, status=(0, 1))
        groups = [group for group in snapshot.data["goroutines"]
                  if group["wait_reason"] == "chan receive"]
        self.assertEqual([group["count"] for group in groups], [7], snapshot.data)
        names = [plain(frame["symbol"]) for frame in groups[0]["frames"]]
        self.assertEqual(names[-3:], ["main.wait", "main.Start.func1", "runtime.goexit"], names)
        names = [frame["symbol"] for frame in snapshot.thread(target.pid)["frames"]
                 if frame["kind"] == "python"]
        self.assertEqual(names, ["sleeper", "<module>"], snapshot.thread(target.pid))

    def test_libraries(self):
        """Two libraries of Go in one process: the goroutines of both, which have the same ids."""
        program = self.build("go", "-buildmode=c-shared", "-ldflags=-s -w", text=LIBRARY)
        libraries = [os.path.join(self.directory, name) for name in ("liba.so", "libb.so")]
        shutil.copy(program, libraries[0])
        # Another file: dlopen() loads none twice.
        shutil.copy(program, libraries[1])
        target = self.start_command(["/usr/bin/python3", "-c", PYTHON_TWO, *libraries])

        def waiting(data):
            return {os.path.basename(group["runtime"]): group for group in data["goroutines"]
                    if group["wait_reason"] == "chan receive"}
        wait_until(lambda: [group["count"] for group in
                            waiting(self.snap(target.pid, status=(0, 1)).data).values()] ==
                   [3, 3], "goroutines to wait")
        snapshot = self.snap(target.pid, status=(0, 1))
        self.assertIsNone(snapshot.data["goroutines_problem"])
        groups, modules = waiting(snapshot.data), snapshot.data["modules"]
        self.assertEqual(set(groups), {"liba.so", "libb.so"}, snapshot.data)
        for name, group in groups.items():
            names = [(plain(frame["symbol"]), os.path.basename(modules[frame["module"]]["path"]))
                     for frame in group["frames"]]
            self.assertEqual(names[-3:], [("main.wait", name), ("main.Start.func1", name),
                                          ("runtime.goexit", name)], names)
        every = {name: {number for group in snapshot.data["goroutines"] for number in group["ids"]
                        if os.path.basename(group["runtime"]) == name} for name in groups}
        self.assertTrue(every["liba.so"] & every["libb.so"], every)
        text = self.run_tool(target.pid, status=(0, 1)).stdout.decode()
        self.assertRegex(text, r"\n3 goroutines of liba\.so, chan receive")
        self.assertRegex(text, r"\n3 goroutines of libb\.so, chan receive")
        # The functions have the same names, but the groups are two in a series, too.
        series = json.loads(self.run_tool("-f", "json", "-i", "100ms", "-c", "2", target.pid,
                                          status=(0, 1)).stdout)
        merged = waiting(series)
        for name, group in groups.items():
            self.assertEqual((merged[name]["count_same"], merged[name]["ids"]), (3, group["ids"]),
                             merged)
        path = os.path.join(self.directory, "rec")
        self.run_tool("-f", "recording", "-o", path, target.pid, status=(0, 1))
        folded = self.run_tool("report", "-f", "folded", path, status=(0, 1)).stdout.decode()
        self.assertEqual(sum(int(count) for count in re.findall(
            r"(?m);goroutine_\(chan_receive\);.*;main\.wait;.* (\d+)$", folded)), 6, folded)
        again = json.loads(self.run_tool("diff", "-f", "json", path, path, status=(0, 1)).stdout)
        self.assertEqual({name: group["change"] for name, group in waiting(again).items()},
                         {"liba.so": "unchanged", "libb.so": "unchanged"}, again)
        if ZSTD:
            self.assertEqual({os.path.basename(goroutine["runtime"])
                              for goroutine in Recording(path).tasks},
                             {"liba.so", "libb.so"})
        target.kill()
        for name in "libx.so", "liby.so", "libz.so":
            libraries.append(os.path.join(self.directory, name))
            shutil.copy(program, libraries[-1])
        target = self.start_command(["/usr/bin/python3", "-c", PYTHON_TWO, *libraries])
        data = self.snap(target.pid, status=(0, 1)).data
        self.assertEqual(len({group["runtime"] for group in data["goroutines"]}), 4, data)
        self.assertEqual(data["goroutines_problem"], "goroutines of further libraries are not "
                         "shown: at most 4 runtimes of Go are read")

    @unittest.skipUnless(COMPILES_ALL, TAKES_LONG)
    def test_plugin(self):
        """A plugin uses the runtime of its program: there is only one, and no reason for a second one."""
        plugin = self.build("go", "-buildmode=plugin", text=PLUGIN)
        program = self.build("go", text=HOST)
        target = self.start_command([program, plugin])
        wait_until(lambda: "main.main" in json.dumps(self.snap(target.pid, status=(0, 1)).data),
                   "main to read")
        data = self.snap(target.pid, status=(0, 1)).data
        self.assertIsNone(data["goroutines_problem"], data)
        self.assertEqual({group["runtime"] for group in data["goroutines"]}, {program}, data)

    def test_caddy(self):
        """A server that nobody here wrote, without symbols, is as the runtime's dump says. It handles
        SIGQUIT itself."""
        self.compare_server(["caddy", "file-server", "--root", self.directory, "--listen"])

    def test_prometheus(self):
        with open(os.path.join(self.directory, "prometheus.yml"), "w", encoding="ascii"):
            pass
        self.compare_server(["prometheus", "--config.file=prometheus.yml",
                             "--storage.tsdb.path=data", "--web.listen-address"])

    def test_etcd(self):
        self.compare_server(["etcd", "--data-dir=data", "--listen-peer-urls=http://127.0.0.1:0",
                             "--advertise-client-urls=http://127.0.0.1:1",
                             "--listen-client-urls"], "http://")

    def test_esbuild(self):
        """Of Go 1.26, and without its version, which its makers have removed."""
        path = os.path.join(npm.package("@esbuild/linux-x64"), "bin", "esbuild")
        program = shutil.copy(path, self.directory)
        os.chmod(program, 0o755)
        self.compare_server([program, "--servedir=."], "--serve=", least=4)

    def compare_server(self, command, prefix="", least=6):
        """The command is completed by an address."""
        if not shutil.which(command[0]):
            self.skipTest("needs " + command[0])
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = "127.0.0.1:%d" % server.getsockname()[1]
        with open(os.path.join(self.directory, "index.html"), "w", encoding="ascii") as file:
            file.write("hello\n")
        log = os.path.join(self.directory, "log")
        with open(log, "wb") as file:
            process = subprocess.Popen(
                command + [prefix + address], stdin=subprocess.PIPE, stdout=file, stderr=file,
                cwd=self.directory,
                env=dict(os.environ, HOME=self.directory, GOTRACEBACK="system"))
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.wait, LIMIT_S)
        self.addCleanup(process.kill)

        def answers():
            try:
                return urllib.request.urlopen("http://" + address, timeout=LIMIT_S).read()
            except urllib.error.HTTPError:
                return True
            except OSError:
                return None
        wait_until(answers, command[0])
        snapshot = self.snap(process.pid, status=(0, 1))
        process.send_signal(signal.SIGABRT)
        process.wait(LIMIT_S)
        with open(log, encoding="utf-8", errors="replace") as file:
            text = file.read()
        dumped = parse_dump(text[text.index("SIGABRT"):])
        compared = 0
        for number, (group, frames) in self.goroutines(snapshot).items():
            reason = group["wait_reason"]
            if number not in dumped or group["on_thread"] or not reason or \
                    dumped[number].status != reason or reason.startswith("GC "):
                continue
            self.check_frames(dumped[number], frames)
            self.assertEqual(group["end"], "root", group)
            compared += 1
        self.assertGreaterEqual(compared, least, text)

    def test_text(self):
        target = self.run_program(self.build("go"), 1000)
        self.await_read(target)
        text = self.run_tool("-a", target.pid, status=(0, 1)).stdout.decode()
        self.assertRegex(text, r"\n1,0\d\d goroutines, 1 on a thread, "
                               r"the others in \d+ groups\n")
        self.assertRegex(text, r"\n1,000 goroutines, chan receive, for about [^:\n]*: \d")
        self.assertRegex(text, r"\n  goroutine 1, syscall")
        few = self.run_tool("--goroutines=1", target.pid, status=(0, 1)).stdout.decode()
        self.assertRegex(few, r"\n[\d,]+ more goroutines in \d+ groups; --goroutines=all shows them")
        self.assertEqual(len(re.findall(r"^[\d,]+ goroutines?, .*: \d", few, re.M)), 1, few)
        every = self.run_tool("--goroutines=all", target.pid, status=(0, 1)).stdout.decode()
        self.assertNotIn("more goroutines", every)
        folded = self.run_tool("-f", "folded", target.pid, status=(0, 1)).stdout.decode()
        self.assertRegex(folded, r"(?m)^park;goroutine;runtime\.goexit[^;]*;main\.outer;"
                                 r"main\.inner;[^ ]* 1000$")
        none = self.run_tool("--goroutines=0", target.pid, status=(0, 1)).stdout.decode()
        self.assertNotRegex(none, r"goroutines?[, ]")
        self.assertIsNone(self.snap(target.pid, "--goroutines=0").data["goroutines"])

    def test_undisturbed(self):
        """Nothing is stopped for them: no thread is scheduled because of a snapshot."""
        target = self.run_program(self.build("go"), 10000)
        self.await_read(target)
        snapshot = self.snap(target.pid, mode="no-stop", status=(0, 1))
        self.assertEqual(snapshot.data["capture"]["threads_stopped"], 0)
        groups = snapshot.data["goroutines"]
        self.assertEqual(max(group["count"] for group in groups), 10000)
        self.assertFalse([group for group in groups if group["changed"]])

    def test_core(self):
        """A core file shows the same goroutines; since when they wait is not known."""
        if not shutil.which("gcore"):
            self.skipTest("needs gcore")
        target = self.run_program(self.build("go"), 20)
        self.await_read(target)
        live = self.goroutines(self.snap(target.pid, status=(0, 1)))
        subprocess.run(["gcore", "-o", os.path.join(self.directory, "core"), str(target.pid)],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=LIMIT_S)
        core = Snapshot(self.run_tool("core", "-f", "json", os.path.join(
            self.directory, "core.%d" % target.pid), status=(0, 1)))
        dumped = self.goroutines(core)
        self.assertEqual(set(dumped), set(live))
        for number, (group, frames) in dumped.items():
            other, wanted = live[number]
            if str(other["wait_reason"]).startswith(("GC ", "sleep")):
                continue
            for key in ("status", "wait_reason", "on_thread", "end"):
                self.assertEqual(group[key], other[key], (key, group, other))
            self.assertEqual([frame["symbol"] for frame in frames],
                             [frame["symbol"] for frame in wanted])
            self.assertIsNone(group["waiting_ns"])

    def test_locks(self):
        """A deadlock of mutexes is no idle process, although no thread waits for a lock."""
        for compiler, *flags in [[compiler] for compiler in COMPILERS] + [["go", "-ldflags=-s -w"]]:
            program = self.build(compiler, *flags, text=LOCKS)
            target = self.start_command([program])
            result = self.run_tool("hang", "--for=500ms", target.pid, status=(4,))
            text = result.stdout.decode()
            self.assertRegex(text, r"pid \d+: blocked\n")
            self.assertRegex(text, r"\n9 goroutines made no progress, waiting for a lock")
            self.assertRegex(text, r"\n1 goroutine cannot continue: the channel is nil\n")
            holder = re.search(r"\n1 goroutine, chan receive \(nil chan\)[^:\n]*, for ever: (\d+)\n", text)[1]
            self.assertRegex(text, r"\n2 goroutines, [^\n]*sync\.\(\*Mutex\)\.[^\n]*, probably held by "
                                   r"goroutine %s[:,]" % holder)
            self.assertEqual(text.count("probably held"), 1, text)
            self.assertRegex(text, r"\n[12] goroutines?, [^\n]*, waits for an application lock: "
                                   r"(internal/)?sync\.\(\*Mutex\)\.")
            self.assertRegex(text, r"\n5 goroutines, [^\n]*, waits for an application lock: "
                                   r"sync\.(\(\*RWMutex\)|runtime_SemacquireRWMutexR|"
                                   r"runtime_SemacquireMutex)")
            data = json.loads(self.run_tool("hang", "--for=500ms", "-f", "json", target.pid,
                                            status=(4,)).stdout)
            self.assertEqual(data["verdict"], "blocked")
            self.assertEqual(sum(group["count"] for group in data["goroutines"]), 10, data)
            self.assertEqual([group["wait_reason"] for group in data["goroutines"]
                              if group["endless"] == "nil_channel"], ["chan receive (nil chan)"], data)
            target.kill()

    def test_turns(self):
        """Goroutines that get their lock are not blocked."""
        target = self.start_command([self.build("go", text=LOCKS), "turns"])
        result = self.run_tool("hang", target.pid, status=(0, 1, 2, 3))
        self.assertNotIn(b"made no progress, waiting", result.stdout, result.stdout.decode())

    def for_ever(self, data):
        """The functions of the program whose goroutines wait for ever, and those whose do not."""
        functions = {True: [], False: []}
        for group in data["goroutines"]:
            names = [name for name in (frame["symbol"] for frame in group["frames"])
                     if re.match(r"main\.(lost|kept)[A-Z]\w+$", name or "")]
            if names:
                functions[group["endless"] is not None] += names[-1:] * group["count"]
        return sorted(functions[True]), sorted(functions[False])

    def check_for_ever(self, data):
        found, others = self.for_ever(data)
        self.assertFalse([name for name in found if "lost" not in name], found)
        self.assertEqual(len(others) - len([name for name in others if "lost" in name]), 20, others)
        # A stack may still have a word of a function that has returned.
        self.assertGreaterEqual(len(found), 9, (found, others))
        return set(found)

    def check_complete(self, find):
        """That of lostDeep may have left its channel in the stack of another one. Numbers may look
        like addresses: of all others, one is missing in one of forty processes."""
        wanted = {"main." + name for name in re.findall(r"func (lost[A-Z]\w+)", LEAKS)}
        for _ in range(3):
            target, found = find()
            if wanted - found <= {"main.lostDeep"}:
                return target
            target.kill()
        return self.fail(wanted - found)

    def test_for_ever(self):
        """Those that nobody can wake, in all commands; never one that something can wake."""
        def find(program):
            target = self.start_command([program])
            # The runtime's own threads run from time to time.
            wait_until(lambda: self.for_ever(self.snap(target.pid, status=(0, 1)).data)[0],
                       "a moment in which no thread runs")
            found = set()
            for _ in range(5):
                snapshot = self.snap(target.pid, status=(0, 1)).data
                if self.for_ever(snapshot)[0]:
                    found |= self.check_for_ever(snapshot)
            return target, found

        for go, flags in [*((go, []) for go in COMPILERS), ("go", ["-ldflags=-s -w", "-buildmode=pie"])]:
            with self.subTest(go, flags=flags):
                program = self.build(go, *flags, text=LEAKS)
                target = self.check_complete(lambda: find(program))
        for _ in range(10):
            result = self.run_tool("hang", "--for=500ms", target.pid, status=(0, 1, 2, 3, 4))
            text = result.stdout.decode()
            if ", for ever: " in text:
                break
        self.assertEqual(result.returncode, 4, text)
        self.assertRegex(text, r"pid \d+: blocked\n")
        self.assertRegex(text, r"\n\d+ goroutines wait for ever, as only goroutines that wait could wake "
                               r"them: \d+, ")
        self.assertRegex(text, r"\n1 goroutine, select, for ever: \d+\n(  .*\n)*.*main\.lostSelect")
        self.assertNotRegex(text, r", for ever: [\d,]+\n(  .*\n)*  .*main\.kept")

    def test_leak_profile(self):
        """What Go's own collector finds, from Go 1.27 on, is what is found from outside before: but for
        the two that it takes for leaks, see LEAKS."""
        compilers = [go for go in COMPILERS if shutil.which(go) and version_of(go) >= (1, 27)]
        if not compilers:
            self.skipTest("needs Go 1.27")
        program = self.build(compilers[-1], text=LEAKS.replace('"runtime"\n', '"runtime"\n\t"runtime/pprof"\n').replace(
            "make([]byte, 1))", "make([]byte, 1))\n\tpprof.Lookup(\"goroutineleak\").WriteTo(os.Stdout, 2)"))
        compared = set()
        for _ in range(5):
            target = self.start_command([program])
            wait_until(lambda: self.for_ever(self.snap(target.pid, status=(0, 1)).data)[0],
                       "a moment in which no thread runs")
            groups = self.snap(target.pid, status=(0, 1)).data["goroutines"]
            found = {number for group in groups if group["endless"] for number in group["ids"]}
            target.process.stdin.write(b"\n")
            target.process.stdin.close()
            profile = target.process.stdout.read().decode()
            leaked = set(map(int, re.findall(r"^goroutine (\d+) \[[^]]*leaked", profile, re.M)))
            self.assertLessEqual(found, leaked, profile)
            compared |= {len(leaked - found)} if found else set()
        self.assertIn(2, compared)

    def test_for_ever_in_core(self):
        """In a core file all memory is of one moment, but a part of it may be missing."""
        if not shutil.which("gcore"):
            self.skipTest("needs gdb")
        program = self.build("go", text=LEAKS)
        core = os.path.join(self.directory, "core")

        def find():
            target = self.start_command([program])
            subprocess.run(["gcore", "-o", core, str(target.pid)], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_S)
            return target, self.check_for_ever(json.loads(self.run_tool(
                "core", "-f", "json", "%s.%d" % (core, target.pid), status=(0, 1)).stdout))

        self.check_complete(find)

    def groups_of(self, data):
        """By the function of the program: the groups of a document with several snapshots."""
        found = {}
        for group in data["goroutines"]:
            for frame in group["frames"]:
                if (frame["symbol"] or "").startswith("main.") and not group["on_thread"]:
                    found[frame["symbol"]] = group
        return found

    def test_series(self):
        """How many of them each snapshot has."""
        target = self.start_command([self.build("go", "-ldflags=-s -w", text=CHANGES), "leak"])
        arguments = "-i", "100ms", "-c", "4", target.pid
        data = json.loads(self.run_tool("-f", "json", *arguments, status=(0, 1)).stdout)
        self.assertIsNone(data["goroutines_problem"], data)
        groups = self.groups_of(data)
        stay, leak = groups["main.stay"], groups["main.leak"]
        self.assertEqual((stay["snapshots"], stay["least"], stay["most"], stay["count_same"]),
                         (4, 7, 7, 7), stay)
        self.assertEqual((stay["status"], stay["wait_reason"]), ("waiting", "chan receive"))
        self.assertEqual(leak["snapshots"], 4, leak)
        self.assertLess(leak["count_first"], leak["count_last"], leak)
        self.assertEqual((leak["least"], leak["most"], leak["count_same"]),
                         (leak["count_first"], leak["count_last"], leak["count_first"]), leak)
        self.assertEqual(len(leak["ids"]), leak["count_last"])
        text = self.run_tool(*arguments, "--goroutines=2", status=(0, 1)).stdout.decode()
        self.assertRegex(text, r"\nin all snapshots, [\d,]+ to [\d,]+: [\d,]+ goroutines, chan receive")
        self.assertRegex(text, r"\nin all snapshots: 7 goroutines, chan receive[^:\n]*: \d")
        self.assertIn("; --goroutines=all shows them\n", text)
        each = self.run_tool(*arguments, "--each", status=(0, 1)).stdout.decode()
        self.assertEqual(len(re.findall(r"\n7 goroutines, chan receive", each)), 4, each)
        none = json.loads(self.run_tool("-f", "json", *arguments, "--goroutines=0",
                                        status=(0, 1)).stdout)
        self.assertIsNone(none["goroutines"], none)

    def test_diff(self):
        """Which of them stay, and which are more."""
        target = self.start_command([self.build("go", text=CHANGES), "leak"])
        arguments = "diff", "--after=300ms", target.pid
        data = json.loads(self.run_tool(*arguments, "-f", "json", status=(0, 1)).stdout)
        groups = self.groups_of(data)
        stay, leak = groups["main.stay"], groups["main.leak"]
        self.assertEqual((stay["change"], stay["count_first"], stay["count_last"],
                          stay["count_same"]), ("unchanged", 7, 7, 7), stay)
        self.assertEqual((leak["change"], leak["count_same"]), ("grown", leak["count_first"]),
                         leak)
        text = self.run_tool(*arguments, status=(0, 1)).stdout.decode()
        self.assertRegex(text, r"\ngrown from [\d,]+: [\d,]+ goroutines, chan receive")
        self.assertRegex(text, r"\nunchanged: \d+ goroutines in \d+ groups; -a shows them\n")
        text = self.run_tool(*arguments, "-a", status=(0, 1)).stdout.decode()
        self.assertRegex(text, r"\nunchanged: 7 goroutines, chan receive[^:\n]*: \d")

    def test_recordings(self):
        """Snapshots keep them: compared later, and as profiles."""
        target = self.start_command([self.build("go", "-ldflags=-B 0x1234567890abcdef", text=CHANGES)])
        # The function of the program, and the one of Go's library that it has called.
        brief = self.run_tool("-f", "brief", target.pid, status=(0, 1)).stdout.decode()
        self.assertRegex(brief, r"\n    in bufio\.\(\*Scanner\)\.Scan at .*\n    called from main\.main at ")
        before, after = (os.path.join(self.directory, name) for name in ("a.rec", "b.rec"))
        live = self.snap(target.pid, status=(0, 1))
        self.run_tool("-f", "recording", "-o", before, target.pid, status=(0, 1))
        target.process.stdin.write(b"\n")
        target.process.stdin.flush()
        self.assertEqual(target.process.stdout.readline(), b"changed\n")
        self.run_tool("-f", "recording", "-o", after, target.pid, status=(0, 1))
        data = json.loads(self.run_tool("diff", "-f", "json", before, after,
                                        status=(0, 1)).stdout)
        changes = {name: (group["change"], group["count_first"], group["count_last"],
                          group["count_same"]) for name, group in self.groups_of(data).items()}
        self.assertEqual(changes.get("main.stay"), ("unchanged", 7, 7, 7), changes)
        self.assertEqual(changes.get("main.leave"), ("gone", 5, 0, 0), changes)
        self.assertEqual(changes.get("main.arrive"), ("new", 0, 3, 0), changes)
        text = self.run_tool("diff", before, after, status=(0, 1)).stdout.decode()
        self.assertRegex(text, r"\ngone: 5 goroutines, chan receive[^:\n]*: \d")
        self.assertRegex(text, r"\nnew: 3 goroutines, chan receive[^:\n]*: \d")
        without = os.path.join(self.directory, "without.rec")
        self.run_tool("-f", "recording", "--goroutines=0", "-o", without, target.pid, status=(0, 1))
        text = self.run_tool("diff", before, without, status=(0, 1)).stdout.decode()
        self.assertIn("\ngoroutines are not compared: they were not read in the second snapshot\n",
                      text)
        self.assertNotIn("gone: ", text)
        text = self.run_tool("diff", "--goroutines=0", before, after, status=(0, 1)).stdout.decode()
        self.assertNotIn("goroutine", text)
        none = json.loads(self.run_tool("diff", "--goroutines=0", "-f", "json", before, after,
                                        status=(0, 1)).stdout)
        self.assertIsNone(none["goroutines"], none)
        folded = self.run_tool("report", "-f", "folded", before, status=(0, 1)).stdout.decode()
        self.assertRegex(folded, r"(?m);goroutine_\(chan_receive\);.*;main\.stay;.* 7$")
        self.assertRegex(folded, r"(?m);goroutine_\(chan_receive\);.*;main\.leave;.* 5$")
        text = self.run_tool("report", before, status=(0, 1)).stdout.decode()
        self.assertRegex(text, r"\n\d+ samples of \d+ threads and \d+ goroutines\n")
        both = json.loads(self.run_tool("report", "-f", "json", before, after,
                                        status=(0, 1)).stdout)
        ids = [thread["goroutine"] for thread in both["threads"] if thread["goroutine"]]
        wanted = {number for group in live.data["goroutines"] for number in group["ids"]
                  if not group["on_thread"]}
        self.assertLessEqual({number for group in live.data["goroutines"]
                              for number in group["ids"] if group["count"] >= 5}, set(ids))
        self.assertGreaterEqual(len(set(ids)), len(wanted) + 3 - 2, (ids, wanted))
        if ZSTD:
            self.check_recording(before, self.groups_of(data))

    def check_recording(self, path, groups):
        """As the manual page says."""
        recording = Recording(path)
        found = {goroutine["id"]: goroutine for goroutine in recording.tasks}
        for name in "main.stay", "main.leave":
            for number in groups[name]["ids"]:
                goroutine = found[number]
                self.assertEqual((goroutine["tick"], goroutine["status"],
                                  goroutine["wait_reason"], goroutine["thread"],
                                  goroutine["end"]),
                                 (0, "waiting", "chan receive", None, "root"), goroutine)
                self.assertFalse(goroutine["on_thread"] or goroutine["changed"])

    def test_unknown_version(self):
        """One line says why there are none, and nothing is made up."""
        program = os.path.join(self.directory, "park.99")
        shutil.copy(self.build("go"), program)
        with open(program, "rb") as file:
            bytes_ = file.read()
        changed = re.sub(rb"(\xff Go buildinf:.{18}.go1\.)\d\d", rb"\g<1>99", bytes_, flags=re.S)
        self.assertNotEqual(bytes_, changed)
        with open(program, "wb") as file:
            file.write(changed)
        target = self.run_program(program, 5)
        snapshot = self.snap(target.pid, status=(0, 1))
        self.assertIsNone(snapshot.data["goroutines"])
        self.assertRegex(snapshot.data["goroutines_problem"],
                         r"^goroutines are not shown: the layout .* not known \(go1\.99")
        text = self.run_tool(target.pid, status=(0, 1)).stdout.decode()
        self.assertIn("goroutines are not shown: ", text)


if __name__ == "__main__":
    main()
