"""stacksnap heap: compared with what glibc itself counts."""

import json
import os
import shutil
import signal
import subprocess
import tempfile

from harness import EndToEnd, main, wait_until

MIB = 1 << 20
# A Python process prints glibc's counters of itself.
PYTHON = """
import ctypes, json, sys
class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost")]
values = [str(i) * 40 for i in range(20000)]
large = [bytearray(300000) for _ in range(5)]
mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Info
bytearray(100000)  # what is printed below needs no more from the kernel
info = mallinfo2()
print(info.uordblks, info.fordblks, info.fsmblks, info.hblks, info.hblkhd, flush=True)
print("ready", flush=True)
sys.stdin.read()
"""


class Heap(EndToEnd):
    def heap(self, pid, *arguments, status=(0,)):
        result = self.run_tool("heap", "-f", "json", *arguments, pid, status=status)
        document = json.loads(result.stdout)
        self.assertEqual(document["schema"], "stacksnap-heap/1")
        self.assert_free(pid)
        return document

    def assert_equals_glibc(self, target, document, slack=0):
        """used, free, fastbins, mappings and their bytes, as struct mallinfo2 has them."""
        used, free, fast, maps, mapped = map(int, target.lines[0].split())
        arenas = document["arenas"]
        message = "%s\n%s" % (target.lines, json.dumps(document, indent=1)[:6000])
        total = {key: sum(arena[key] for arena in arenas) for key in (
            "size", "used_bytes", "cached_bytes", "free_bytes", "top_bytes", "unread_bytes")}
        self.assertEqual(total["unread_bytes"], 0, message)
        own = total.pop("size") - sum(total.values())  # of the arenas themselves
        self.assertGreaterEqual(own, 0, message)
        self.assertLess(own, 4096 * len(arenas), message)
        # glibc counts the caches of threads as in use, and fastbins as free.
        in_use = total["used_bytes"] + total["cached_bytes"] + own
        self.assertLessEqual(abs(in_use - fast - used), slack, message)
        self.assertLessEqual(abs(total["free_bytes"] + total["top_bytes"] + fast - free), slack,
                             message)
        self.assertEqual((document["mapped_count"], document["mapped_bytes"]), (maps, mapped),
                         message)
        self.assertEqual((document["counted_maps"], document["counted_map_bytes"]),
                         (maps, mapped), message)

    def assert_classes(self, document):
        counts = {one["name"]: one["count"] for one in document["classes"]}
        self.assertEqual(counts.get("shop::Item"), 10000, counts)
        self.assertEqual(counts.get("shop::Priced<long>"), 500, counts)

    def test_counts(self):
        target = self.start("heap")
        document = self.heap(target.pid)
        self.assert_equals_glibc(target, document)
        self.assert_classes(document)
        self.assertEqual(len(document["arenas"]), 3)
        sizes = {(size["min"], size["max"]): size["count"] for size in document["sizes"]}
        self.assertEqual(sizes[489, 504], 4000, sizes)  # of two threads
        self.assertEqual(sizes[185, 200], 1000, sizes)
        self.assertGreater(document["arenas"][0]["cached_count"], 100)
        before = document["before"]
        self.assertEqual(before["used_bytes"], document["used_bytes"])

    def test_class_names_without_symbols(self):
        """By their type information."""
        target = self.start("heap_stripped")
        document = self.heap(target.pid)
        self.assert_equals_glibc(target, document)
        self.assert_classes(document)

    def test_static_program(self):
        target = self.start("heap_static")
        document = self.heap(target.pid)
        self.assert_equals_glibc(target, document)
        self.assert_classes(document)

    def test_while_it_changes(self):
        """A thread allocates all the time: the same within the difference of two readings, and
        what could not be read is small."""
        target = self.start("heap", "churn", settle=False)
        for _ in range(10):
            document = self.heap(target.pid, status=(0, 1))
            used = document["used_bytes"]
            self.assertLess(sum(arena["unread_bytes"] for arena in document["arenas"]),
                            MIB, document["arenas"])
            self.assertGreater(used, 6 * MIB)
            self.assertLess(used, 10 * MIB)
            self.assert_classes(document)

    def test_stopped_process(self):
        target = self.start("heap")
        os.kill(target.pid, signal.SIGSTOP)
        result = self.run_tool("heap", target.pid)
        text = result.stdout.decode()
        self.assertIn("shop::Item", text)
        self.assertIn("found the same.", text)
        os.kill(target.pid, signal.SIGCONT)

    def test_python(self):
        """A program that nobody here wrote."""
        target = self.start_command(["/usr/bin/python3", "-c", PYTHON])
        # The print of the counters itself allocates a little.
        self.assert_equals_glibc(target, self.heap(target.pid), slack=16384)

    def test_other_allocator(self):
        """redis-server of Debian uses jemalloc, and hardly any of glibc's heap."""
        if not shutil.which("redis-server"):
            self.skipTest("redis-server is not installed")
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "socket")
            target = self.start_command(["redis-server", "--port", "0", "--unixsocket", path,
                                         "--dir", directory, "--save", ""], ready=b"",
                                        stderr=subprocess.DEVNULL)
            wait_until(lambda: os.path.exists(path), "redis-server to start")
            result = self.run_tool("heap", target.pid, status=None)
        said = (result.stdout + result.stderr).decode()
        self.assertIn("libjemalloc", said)

    def test_refusals(self):
        result = self.run_tool("heap", status=(64,))
        self.assertIn(b"expected a pid or the name of a process", result.stderr)
        result = self.run_tool("heap", 999999999, status=(2,))
        self.assertIn(b"there is no process 999999999", result.stderr)
        result = self.run_tool("heap", "-f", "folded", os.getpid(), status=(64,))
        self.assertIn(b"text, json", result.stderr)


if __name__ == "__main__":
    main()
