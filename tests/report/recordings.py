"""Shared by the tests of stacksnap report: a small library with known functions, and
recordings with known samples of it."""

import os
import re
import subprocess
import sys
import tempfile

BUILD = os.environ["BUILD"]
SOURCE = os.environ["SOURCE"]
sys.path.insert(0, os.path.join(SOURCE, "tests", "e2e"))

from harness import EndToEnd, LIMIT_S, STACKSNAP, main  # noqa: E402

MAKE = os.path.join(BUILD, "tests", "report", "make_recording")
WALL = 1795260000 * 10**9  # start of recordings in these tests
PERIOD = 10_000_000  # 100 Hz
FUNCTIONS = ("start", "serve", "parse", "wait_for_work", "hash", "step")
SHOP = "".join("__attribute__((noinline)) int shop_%s(int n)\n{\n"
               "\t__asm__ volatile(\"\" : \"+r\"(n));\n\treturn n * %d;\n}\n" % (name, i + 3)
               for i, name in enumerate(FUNCTIONS))
ROOT, LIMIT = 0, 2


def quote(text):
    """Encodes a string for make_recording."""
    if text is None:
        return "-"
    data = text if isinstance(text, bytes) else text.encode()
    return "".join(chr(b) if 0x21 <= b < 0x7f and b not in b"%-" else "%%%02x" % b
                   for b in data)


def build_library(path, source=SHOP, options=("-g",)):
    """Compiles the library. Returns {function: address inside it} and the build-id."""
    with tempfile.TemporaryDirectory() as directory:
        file = os.path.join(directory, "shop.c")
        with open(file, "w", encoding="utf-8") as out:
            out.write(source)
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC",
                        "-Wl,--build-id=sha1", *options, "-o", path, file], check=True)
    symbols = subprocess.run(["nm", path], stdout=subprocess.PIPE, check=True, text=True,
                             stderr=subprocess.DEVNULL)  # "no symbols"
    notes = subprocess.run(["readelf", "-n", path], stdout=subprocess.PIPE, check=True,
                           text=True)
    addresses = {name: int(value, 16) + 1 for value, name in
                 re.findall(r"^([0-9a-f]+) T shop_(\w+)$", symbols.stdout, re.M)}
    return addresses, re.search(r"Build ID: ([0-9a-f]+)", notes.stdout).group(1)


class Description:
    """The lines of a recording for make_recording. Methods return the numbers of objects."""

    def __init__(self, host="alpha", wall=WALL, monotonic=5 * 10**9, period=PERIOD,
                 machine="x86_64", scope=0, boot=None):
        self.lines = ["begin %d %d %d %d %s %s %s" % (monotonic, wall, period, scope, quote(host),
                                                      quote(machine), quote(boot))]
        self.wall, self.monotonic, self.period = wall, monotonic, period
        self.counts = {}
        self.ticks = 0

    def _add(self, kind, *words):
        self.lines.append(" ".join([kind] + [str(word) for word in words]))
        self.counts[kind] = self.counts.get(kind, -1) + 1
        return self.counts[kind]

    def process(self, pid=100, name="shop", executable="/opt/shop", begin=0):
        return self._add("process", pid, quote(name), quote(executable), begin)

    def thread(self, process, tid, name):
        return self._add("thread", process, tid, quote(name))

    def module(self, process, path, build_id, bias=0x7f0000000000, size=0x100000, loaded=0):
        return self._add("module", process, quote(path), quote(build_id), bias, size, bias,
                         self.monotonic + loaded if loaded else 0)

    def unload(self, module, time):
        self._add("unload", module, self.monotonic + time)

    def stack(self, *frames, end=ROOT):
        """Frames are (module, offset) or (None, address), innermost first."""
        return self._add("stack", end, *["%s:%#x" % ("-" if m is None else m, offset)
                                         for m, offset in frames])

    def set_clock(self, by):
        """Sets the wall clock from the next tick on."""
        self.wall += by

    def tick(self, missed=0, step=None):
        if self.ticks:
            self.now += self.period if step is None else step
        else:
            self.now = 0
        self.ticks += 1
        self._add("tick", self.monotonic + self.now, self.wall + self.now, missed)

    def sample(self, thread, stack, state="S", cpu_us=0, call=-1, argument=0, owner=-1):
        """owner: the id of the thread that has the mutex that the sample waits for."""
        self._add("sample", thread, stack, state, cpu_us, call, argument, owner)

    def wait(self, thread, owner, symbol, deadlock=False):
        """For a mutex. owner: a thread, or None."""
        self._add("wait", thread, -1 if owner is None else owner, int(deadlock), quote(symbol))

    def cut(self):
        self._add("cut")

    def end(self, reason):
        self._add("end", reason)

    def write(self, path):
        subprocess.run([MAKE, path], input="".join(line + "\n" for line in self.lines).encode(),
                       check=True, timeout=LIMIT_S)
        return path


class ReportTest(EndToEnd):
    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.TemporaryDirectory(prefix="stacksnap-report-")
        cls.addClassCleanup(cls.top.cleanup)
        cls.library = cls.path("libshop.so")
        cls.at, cls.build_id = build_library(cls.library)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.top.name, name)

    def report(self, *arguments, status=(0,), **options):
        return self.run_tool("report", *arguments, status=status, **options)

    def stack_of(self, description, module, *names, end=ROOT):
        """names: innermost first. Return addresses point behind the call."""
        return description.stack(*[(module, self.at[name] + (1 if i else 0))
                                   for i, name in enumerate(names)], end=end)

    def shop(self, name="alpha.ss", host="alpha", ticks=10, bias=0x7f0000000000, wall=WALL,
             pid=100):
        """Thread "worker" hashes at 3 of 10 ticks (R) and waits at the others (S, in futex);
        thread "main" always waits (S, in epoll_wait)."""
        if os.path.exists(self.path(name)):
            return self.path(name)  # written by another test
        d = Description(host=host, wall=wall)
        process = d.process(pid=pid)
        module = d.module(process, self.library, self.build_id, bias=bias)
        main = d.thread(process, pid, "main")
        worker = d.thread(process, pid + 1, "worker")
        idle = self.stack_of(d, module, "wait_for_work", "start")
        busy = self.stack_of(d, module, "hash", "parse", "serve", "start")
        for tick in range(ticks):
            d.tick()
            d.sample(main, idle, "S", call=232, argument=5)
            if tick % 10 in (2, 3, 4):
                d.sample(worker, busy, "R", cpu_us=9000)
            else:
                d.sample(worker, idle, "S", call=202, argument=0x1000)
        return d.write(self.path(name))


__all__ = ["BUILD", "LIMIT", "LIMIT_S", "PERIOD", "ROOT", "SHOP", "SOURCE", "STACKSNAP", "WALL",
           "Description", "ReportTest", "build_library", "main"]
