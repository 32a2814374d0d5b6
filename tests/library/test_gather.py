"""A gather plan that describes CPython 3.11 (python_frames.c), executed while
threads of a real interpreter run."""

import os
import platform
import subprocess
import sys
import unittest

LIMIT_S = 60
PROGRAM_PATH = os.path.join(os.environ["BUILD"], "tests", "python_frames")
PROGRAM = """
import ctypes, sys, threading, time
print("%#x" % ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime")))
ready, stop, done = threading.Barrier(4), threading.Lock(), False
stop.acquire()
def wait_here():
    ready.wait()
    with stop:
        pass
def calls_wait():
    wait_here()
def generate():
    yield calls_wait()
def uses_generator():
    list(generate())
def deep(depth):
    return deep(depth - 1) if depth else calls_wait()
def spin():
    ready.wait()
    while not done:
        pass
threads = [threading.Thread(target=uses_generator), threading.Thread(target=deep, args=(700,)),
           threading.Thread(target=spin)]
[thread.start() for thread in threads]
ready.wait()
for thread in threads[:2]:
    while sys._current_frames()[thread.ident].f_code is not wait_here.__code__:
        time.sleep(0.001)  # it is still in ready.wait()
for thread in threads:
    print(thread.native_id)
print("ready", flush=True)
sys.stdin.read()
done = True
stop.release()
"""


@unittest.skipUnless(sys.version_info[:2] == (3, 11) and platform.machine() == "x86_64",
                     "the example knows CPython 3.11 on x86-64 only")
class Python(unittest.TestCase):
    def setUp(self):
        sys.setrecursionlimit(5000)
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.replace("import", "import sys; "
                                                   "sys.setrecursionlimit(5000)\nimport", 1)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.process.communicate)
        lines = iter(self.process.stdout.readline, "ready\n")
        self.address, self.users, self.deep, self.spins = (line.strip() for line in lines)

    def gather(self, *arguments):
        result = subprocess.run([PROGRAM_PATH, str(self.process.pid), self.address,
                                 *arguments], timeout=LIMIT_S, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return {words[0]: words[1:] for words in map(str.split, result.stdout.splitlines())}

    def test_functions(self):
        threads = self.gather()
        self.assertEqual(set(threads),
                         {str(self.process.pid), self.users, self.deep, self.spins})
        outer = ["run", "_bootstrap_inner", "_bootstrap"]
        inner = ["wait_here", "calls_wait"]
        self.assertEqual(threads[self.users][1:], inner + ["generate", "uses_generator"] + outer)
        self.assertEqual(threads[self.deep][1:], inner + ["deep"] * 701 + outer)
        self.assertEqual(threads[self.spins][-4:], ["spin"] + outer)
        self.assertEqual(threads[str(self.process.pid)][-1], "<module>")

    def test_thread_pointers(self):
        """They are known of the thread that ran, and was stopped; it is the one that the
        interpreter has them for."""
        for _ in range(20):
            threads = self.gather()
            self.assertNotIn("different", [words[0] for words in threads.values()])
            if threads[self.spins][0] == "same":
                return
        self.fail("the spinning thread was never stopped")

    def test_whole_stacks(self):
        """The interpreter's own stacks, copied in one piece each, have the same frames."""
        threads = self.gather("chunks")
        self.assertEqual(len(threads), 4)
        codes = threads[self.deep][1:]
        self.assertEqual(len(codes), 2 + 701 + 3)
        self.assertEqual(len(set(codes[2:703])), 1)
        # a generator's frame lies in the generator, not on the stack: it ends there
        self.assertEqual(threads[self.users][1:3], codes[:2])


if __name__ == "__main__":
    unittest.main(verbosity=2)
