"""Functions with frame pointers, in threads that sleep: the kernel does not tell the frame pointer of
a thread that is not stopped, so stacksnap finds it. Random programs leave frames of earlier calls
on their stacks, also of the same functions, push arguments, and have arrays of variable size. Where
the frame pointer is found without a stop, the stack is the one that a stop shows.

STACKSNAP_TRIES: how many programs (default: 8)."""
# ctest: long release-only timeout=600 tries=200

import os
import platform
import random
import subprocess
import tempfile
import unittest

from harness import EndToEnd, all_sleep, main, wait_until

TRIES = int(os.environ.get("STACKSNAP_TRIES", "8"))
WALKS = 6  # of each program
COMPILERS = (os.environ.get("CC", "cc"), "clang")
BEGIN = """
#include <poll.h>
#include <stdlib.h>
static unsigned state;
static long left;
static volatile long sink;
static unsigned next(void) { state = state * 1103515245u + 12345u; return state >> 16 & 0x7fff; }
#define NOINLINE __attribute__((noinline))
NOINLINE static void block(void) { poll(0, 0, -1); sink++; }
"""


def parameters(count):
    return "".join(", long a%d" % i for i in range(count))


def arguments(count):
    return "(depth - 1%s)" % "".join(", sink + %d" % i for i in range(count))


def function(index, counts, plain):
    """A function that calls others at random, directly or not, and sleeps some day."""
    number = counts[index]
    lines = ["NOINLINE long f%d(int depth%s)" % (index, parameters(number)), "{"]
    size = random.choice((0, 0, 1, 2, 4, 8, 16, 40, 100))
    if size:
        lines.append("volatile long locals[%d];" % size)
        lines.append("locals[%d] = %s;" % (random.randrange(size), "a0" if number else "7"))
    kind = 1 if plain else random.random()
    if kind < 0.15:
        lines.append("volatile char *room = __builtin_alloca(next() % 200 + 1); room[0] = 1;")
    elif kind < 0.22:
        lines.append("char aligned[64] __attribute__((aligned(64)));")
        lines.append("aligned[next() & 63] = 1; sink += aligned[3];")
    lines.append("if (depth <= 0) { if (--left <= 0) block(); return sink; }")
    for _ in range(random.randint(1, 3)):
        callee = random.randrange(len(counts))
        condition = "if (next() % 4) " if random.random() < 0.6 else ""
        name = random.choice("ffp") + str(callee)
        lines.append("%ssink += %s%s;" % (condition, name, arguments(counts[callee])))
    if random.random() < 0.3:  # perhaps a jump
        callee = random.randrange(len(counts))
        lines.append("return f%d%s;" % (callee, arguments(counts[callee])))
    else:
        lines.append("return sink + %s;" % ("locals[0]" if size else "1"))
    return "\n".join(lines + ["}"])


def program(plain):
    counts = [random.choice((0, 1, 2, 5, 6, 7, 8, 9, 10, 13))
              for _ in range(random.randint(4, 14))]
    text = [BEGIN]
    for i, count in enumerate(counts):
        text.append("long f%d(int depth%s);" % (i, parameters(count)))
        text.append("long (*volatile p%d)(int%s) = f%d;" % (i, ", long" * count, i))
    text += [function(i, counts, plain) for i in range(len(counts))]
    text.append("int main(int argc, char **argv)\n{\nint depth = 0;\nstate = atoi(argv[argc - 1]);"
                "\nleft = 1 + next() % 60;\nfor (;;) {\ndepth = 4 + next() % 6;\n" +
                "f0%s;\n}\n}" % arguments(counts[0]))
    return "\n".join(text)


def stack(snapshot):
    thread = snapshot.threads[0]
    return [(frame["module"], frame["offset"]) for frame in thread["frames"]], thread["end"]


@unittest.skipUnless(platform.machine() == "x86_64", "finds frame pointers on x86-64 only")
class FramePointers(EndToEnd):
    def compile(self, plain):
        path = os.path.join(self.directory, "program")
        command = [random.choice(COMPILERS), random.choice(("-O0", "-O1", "-O2", "-Os", "-O3")),
                   "-fno-omit-frame-pointer", "-w", "-x", "c", "-", "-o", path,
                   random.choice(("-fno-stack-protector", "-fstack-protector-all")),
                   random.choice(("-fno-inline", "-momit-leaf-frame-pointer"))]
        if plain:
            command.append("-fno-optimize-sibling-calls")
        try:
            subprocess.run(command, input=program(plain).encode(), check=True)
        except FileNotFoundError as error:
            self.skipTest("%s is missing" % error.filename)
        return path

    def walk(self, path, counts):
        walk = str(random.randrange(1 << 30))
        target = subprocess.Popen([path, walk], stdin=subprocess.DEVNULL)
        try:
            wait_until(lambda: all_sleep(target.pid, 1), "it to sleep")
            found = self.snap(target.pid, mode="no-stop", status=(0, 1))
            auto = self.snap(target.pid, mode="auto")
            truth = self.snap(target.pid, mode="stop")
        finally:
            target.kill()
            target.wait()
        self.assertEqual(stack(auto), stack(truth), (path, walk))
        known = stack(found)[1] == "root"
        if known:
            self.assertEqual(stack(found), stack(truth), (path, walk))
        self.assertEqual(auto.data["capture"]["threads_stopped"], 0 if known else 1)
        counts[known] += 1

    def check(self, plain):
        counts = {False: 0, True: 0}
        with tempfile.TemporaryDirectory() as self.directory:
            for seed in range(TRIES):
                random.seed(2 * seed + plain)
                path = self.compile(plain)
                for _ in range(WALKS):
                    self.walk(path, counts)
        return counts

    def test_fixed_frames(self):
        """Without arrays of variable size and jumps to functions, hardly any thread is stopped."""
        counts = self.check(True)
        self.assertLessEqual(counts[False], counts[True] / 20, counts)

    def test_all_frames(self):
        counts = self.check(False)
        self.assertGreater(counts[True], counts[False], counts)


if __name__ == "__main__":
    main()
