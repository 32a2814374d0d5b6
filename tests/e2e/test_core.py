"""Core files: the stacks, waits and names in them, compared with eu-stack; truncated and damaged
ones; those of gcore."""
# ctest: long-with-sanitizers slow

import ctypes
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "report"))

from core_dump import CoreDump, eu_stack  # noqa: E402
from file_server import Server  # noqa: E402
from harness import (LIMIT_S, MAIN_STACK, STACKSNAP, Snapshot, TARGETS,  # noqa: E402
                     UnopenedFifo, canonical, main)

TRUNCATED = 12
SANITIZED = bool(os.environ.get("SANITIZED"))
DAMAGED = 8


class Core(CoreDump):
    def core(self, *arguments, status=(0,)):
        return Snapshot(self.run_tool("core", "-f", "json", *arguments, status=status))

    def assert_same(self, snapshot, core, program):
        """Without inlined calls, all stacks are those of eu-stack."""
        expected = eu_stack(core, program)
        self.assertEqual({thread["tid"] for thread in snapshot.threads}, set(expected))
        for thread in snapshot.threads:
            pcs = [int(frame["pc"], 16) for frame in thread["all_frames"]
                   if not frame["inlined"] and frame["kind"] == "native"]
            self.assertEqual(pcs, expected[thread["tid"]])

    def test_fault(self):
        core = self.crash("segv")
        snapshot = self.core(core)
        crash = snapshot.data["capture"]["crash"]
        pid = snapshot.data["process"]["pid"]
        self.assertEqual((crash["name"], crash["tid"], crash["code"], crash["address"]),
                         ("SIGSEGV", pid, 1, "0x10"))
        self.assertEqual(snapshot.data["capture"]["mode"], "core")
        self.assert_stack(snapshot, pid, ["read_address", "fail", "main"] + MAIN_STACK[3:])
        self.assert_same(snapshot, core, os.path.join(TARGETS, "crash"))
        text = self.run_tool("core", core).stdout.decode()
        self.assertIn("killed by SIGSEGV in thread %d: no memory is mapped at 0x10\n" % pid, text)
        self.assertLess(text.index("read_address"), text.index("waiter"))

    def test_waits(self):
        """Locks and their owners, as in a live process."""
        snapshot = self.core(self.crash("abort"))
        pid = snapshot.data["process"]["pid"]
        waiters = [thread for thread in snapshot.threads if thread["wait"]]
        self.assertEqual(len(waiters), 2)
        for thread in waiters:
            self.assertEqual(thread["wait"]["kind"], "mutex")
            self.assertEqual(thread["wait"]["symbol"], "stock")
            self.assertEqual(thread["wait"]["owner_tid"], pid)
        crash = snapshot.data["capture"]["crash"]
        self.assertEqual((crash["name"], crash["sender"]), ("SIGABRT", pid))
        names = [canonical(frame["symbol"]) for frame in snapshot.thread(pid)["frames"]]
        self.assertIn("abort", names)
        self.assertIn("fail", names)
        text = self.run_tool("core", self.crash("abort")).stdout.decode()
        self.assertIn("held by ", text)
        self.assertNotIn(" ()", text)  # a core file has no names of threads
        snapshot = self.core("--no-waits", self.crash("abort"))
        self.assertEqual([t["wait"] for t in snapshot.threads], [None] * 3)

    def test_stack_overflow(self):
        """The stack pointer is below the stack."""
        core = self.crash("overflow")
        snapshot = self.core("--max-frames=0", core)
        pid = snapshot.data["process"]["pid"]
        names = [frame["symbol"] for frame in snapshot.thread(pid)["frames"]]
        self.assertEqual(snapshot.thread(pid)["end"], "root")
        self.assertGreater(names.count("recurse"), 5000)
        self.assertIn("main", names)
        text = self.run_tool("core", core, status=(0, 1)).stdout.decode()
        self.assertIn("killed by SIGSEGV in thread %d: stack overflow at 0x" % pid, text)

    def test_signature(self):
        """The same for the same crash, whatever ASLR does; the readable part leaves out how the
        process ends."""
        found = {}
        for how, names in (("segv", "read_address"), ("abort", "fail"), ("overflow", "recurse"),
                           ("turns", "even | odd")):
            crashes = [self.core("--no-waits", self.crash(how), status=(0, 1)).data["capture"]
                       ["crash"] for _ in range(6 if how == "turns" else 3)]
            self.assertEqual({crash["signature"] for crash in crashes}, {names}, crashes)
            hashes = {crash["stack_hash"] for crash in crashes}
            self.assertEqual(len(hashes), 1, crashes)
            found[hashes.pop()] = how
            for crash in crashes:
                self.assertEqual(crash["stack_overflow"], how in ("overflow", "turns"), crash)
        self.assertEqual(len(found), 4)

    def test_formats(self):
        core = self.crash("segv")
        for name in ("text", "json", "gdb", "eu", "folded", "dot"):
            with self.subTest(format=name):
                out = self.run_tool("core", "-f", name, core).stdout.decode()
                self.assertIn("waiter" if name != "dot" else "stock", out)
        raw = self.core("--raw", core)
        self.assertEqual({f["symbol"] for t in raw.threads for f in t["frames"]}, {None})
        path = os.path.join(self.directory, "r.rec")
        self.run_tool("core", "-f", "recording", "-o", path, core)
        self.assertIn("waiter", self.run_tool("report", path).stdout.decode())
        few = self.core("--thread=%d" % raw.threads[0]["tid"], core)
        self.assertEqual(len(few.threads), 1)

    def test_program(self):
        """A file is used only if it has the build-id of the one in the core file."""
        core = self.crash("segv")
        moved = os.path.join(self.directory, "moved")
        shutil.copy(os.path.join(TARGETS, "crash"), moved)
        self.core(core, moved)
        result = self.run_tool("core", core, "/bin/true")
        self.assertIn(b"'/bin/true' is not used: it is not the same build", result.stderr)
        self.assertIn(b"read_address", result.stdout)

    def dump_elsewhere(self):
        """The core file of a program whose file is not on this machine, but another one at its
        path, as of a container; and where its file is kept."""
        program = os.path.join(self.directory, "in", "app")
        os.makedirs(os.path.dirname(program))
        shutil.copy(os.path.join(TARGETS, "crash"), program)
        core = self.dump(program, "segv")
        kept = os.path.join(self.directory, "image") + program
        os.makedirs(os.path.dirname(kept))
        os.rename(program, kept)
        shutil.copy("/bin/true", program)
        return core, kept

    def assert_named(self, result, named):
        self.assertEqual(b"read_address" in result.stdout, named, result)
        self.assertEqual(b"no file on this machine has its build-id" in result.stderr, not named, result)

    def test_sysroot(self):
        core, _ = self.dump_elsewhere()
        self.assert_named(self.run_tool("core", core, status=(1,)), False)
        image = os.path.join(self.directory, "image")
        self.assert_named(self.run_tool("core", "--sysroot=" + image, core, status=(0, 1)), True)

    def test_debuginfod(self):
        try:
            ctypes.CDLL("libdebuginfod.so.1")
        except OSError as error:
            self.skipTest(str(error))
        core, kept = self.dump_elsewhere()
        build_id = next(module["build_id"] for module in self.core(core, status=(1,)).data["modules"]
                        if module["path"].endswith("/in/app"))
        with open(kept, "rb") as file:
            server = Server({"/buildid/%s/executable" % build_id: file.read()})
        self.addCleanup(server.close)
        environment = dict(os.environ, DEBUGINFOD_URLS=server.url, no_proxy="*",
                           DEBUGINFOD_CACHE_PATH=self.directory, HOME=self.directory)
        result = self.run_tool("core", core, status=(1,), env=environment)
        self.assert_named(result, False)
        self.assertEqual(server.asked, [])
        result = self.run_tool("core", "--debuginfod", core, status=(0, 1), env=environment)
        self.assert_named(result, True)

    def test_no_output(self):
        """A failure leaves no file."""
        path = os.path.join(self.directory, "output")
        self.run_tool("core", "-o", path, "/bin/true", status=(2,))
        self.assertFalse(os.path.exists(path))

    def test_no_core(self):
        empty = os.path.join(self.directory, "empty")
        open(empty, "w").close()
        for path, words in ((empty, "it is empty"), ("/bin/true", "it is a program"),
                            (__file__, "it is not an ELF file"), (self.directory, "is a directory"),
                            (empty + "x", "No such file")):
            with self.subTest(path=path):
                result = self.run_tool("core", path, status=(2,))
                self.assertIn(words, result.stderr.decode())

    def certain(self, thread):
        """The program counters of a stack up to the first frame that is a guess. Inlined calls
        are known only if the file of their module is."""
        pcs = []
        for frame in thread["frames"]:
            if frame["source"] == "return-address":
                break
            if not frame["inlined"]:
                pcs.append(frame["pc"])
        return pcs

    def test_truncated(self):
        """What is there of each stack is right, and what is missing is said."""
        core = self.crash("segv")
        whole = {thread["tid"]: self.certain(thread) for thread in self.core("--raw", core).threads}
        size = os.path.getsize(core)
        generator = random.Random(1)
        shown = 0
        for _ in range(TRUNCATED):
            os.truncate(shutil.copy(core, core + ".part"), generator.randrange(size))
            result = self.run_tool("core", "--raw", "-f", "json", core + ".part",
                                   status=(0, 1, 2))
            if result.returncode == 2:
                self.assertIn(b"truncated", result.stderr)
                continue
            shown += 1
            snapshot = Snapshot(result)
            self.assertTrue(snapshot.data["capture"]["truncated"])
            for thread in snapshot.threads:
                pcs = self.certain(thread)
                self.assertEqual(pcs, whole[thread["tid"]][:len(pcs)])
                if thread["end"] == "unreadable":
                    self.assertEqual(thread["reason"], "not in the core file")
        self.assertGreater(shown, 0)

    def peak_kib(self, *arguments):
        """Runs the tool; returns its document, and the most memory of it and its children."""
        code = ("import json, resource, subprocess, sys\n"
                "result = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, timeout=%d)\n"
                "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss\n"
                "sys.stderr.write('\\nPEAK %%d STATUS %%d' %% (peak, result.returncode))\n"
                "sys.stdout.buffer.write(result.stdout)" % (3 * LIMIT_S))
        result = subprocess.run(["python3", "-c", code, STACKSNAP, "core", "-f", "json",
                                 *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                timeout=4 * LIMIT_S, check=True)
        peak, status = re.search(rb"PEAK (\d+) STATUS (\d+)$", result.stderr).groups()
        self.assertIn(int(status), (0, 1), result.stderr)
        return json.loads(result.stdout), int(peak)

    def widen(self, core, size):
        """A copy of the core file with a hole of that size, as of untouched memory, in front of
        its last segment, the stack of the main thread."""
        path = os.path.join(self.directory, "sparse.core")
        shutil.copy(core, path)
        with open(path, "r+b") as file:
            head = bytearray(file.read(64))
            offset, entry, count = struct.unpack("<Q", head[32:40])[0], 56, head[56]
            file.seek(offset)
            headers = bytearray(file.read(entry * count))
            fields = [list(struct.unpack("<IIQQQQQQ", headers[i * entry:(i + 1) * entry]))
                      for i in range(count)]
            moved = [f for f in fields if f[0] == 1 and f[6] > 0][-2:]
            hole = [1, 6, os.path.getsize(path), 0x100000000000, 0, size, size, 4096]
            end = hole[2] + size
            for field in moved:
                file.seek(field[2])
                content = file.read(field[5])
                file.seek(end)
                file.write(content)
                field[2], end = end, end + len(content)
            # The program headers need room for one more: what is not needed makes it.
            fields[-1 if fields[-1] not in moved else -3] = hole
            file.seek(offset)
            file.write(b"".join(struct.pack("<IIQQQQQQ", *f) for f in fields))
        self.assertEqual(os.path.getsize(path), end)
        return path

    def stacks(self, document):
        return {thread["tid"]: [frame["pc"] for frame in thread["frames"]]
                for thread in document["threads"]}

    def test_large(self):
        """Of a core file of 100 GB only what is needed is read."""
        core = self.crash("segv")
        sparse = self.widen(core, 100 << 30)
        document, peak = self.peak_kib(sparse)
        self.assertEqual(self.stacks(document), self.stacks(self.core(core).data))
        if not SANITIZED:
            self.assertLess(peak, 200 << 10, "KiB")

    def compressed(self, core, program):
        path = core + "." + program
        if not shutil.which(program):
            self.skipTest("there is no " + program)
        with open(core, "rb") as source, open(path, "wb") as to:
            subprocess.run([program, "-c", "-1"], stdin=source, stdout=to, timeout=LIMIT_S,
                           check=True)
        return path

    def test_compressed(self):
        """Compressed core files, also with a large hole, give what the others give."""
        core = self.crash("segv")
        whole = self.stacks(self.core(core).data)
        sparse = self.widen(core, 512 << 20)
        for program in ("zstd", "lz4", "xz", "gzip"):
            with self.subTest(program=program):
                path = self.compressed(core, program)
                snapshot = self.core(path)
                self.assertEqual(self.stacks(snapshot.data), whole)
                self.assertFalse(snapshot.data["capture"]["truncated"])
                self.assertEqual([thread["wait"]["owner_tid"] for thread in snapshot.threads
                                  if thread["wait"]], [snapshot.data["process"]["pid"]] * 2)
        with self.subTest("sparse"):
            document, peak = self.peak_kib(self.compressed(sparse, "zstd"))
            self.assertEqual(self.stacks(document), whole)
            if not SANITIZED:
                self.assertLess(peak, 200 << 10, "KiB")

    def test_compressed_truncated(self):
        """What is there of each stack is right, and what is missing is said."""
        core = self.crash("segv")
        whole = {thread["tid"]: self.certain(thread) for thread in self.core("--raw", core).threads}
        generator = random.Random(3)
        shown = 0
        for program in ("zstd", "lz4", "xz", "gzip"):
            path = self.compressed(core, program)
            size = os.path.getsize(path)
            for _ in range(TRUNCATED // 3):
                os.truncate(shutil.copy(path, path + ".part"), generator.randrange(size))
                result = self.run_tool("core", "--raw", "-f", "json", path + ".part",
                                       status=(0, 1, 2))
                self.assertNotIn(b"crashed", result.stderr)
                if result.returncode == 2:
                    self.assertRegex(result.stderr, b"truncated|no ELF file|ends within")
                    continue
                shown += 1
                snapshot = Snapshot(result)
                # The last bytes of a stream are checksums: nothing is lost without them.
                for thread in snapshot.threads:
                    pcs = self.certain(thread)
                    self.assertEqual(pcs, whole[thread["tid"]][:len(pcs)])
                    if pcs != whole[thread["tid"]]:
                        self.assertTrue(snapshot.data["capture"]["truncated"])
        self.assertGreater(shown, 0)

    def test_damaged(self):
        """Any bytes of headers and notes may be wrong: an answer or an error, and no crash of the
        analysis."""
        with open(self.crash("segv"), "rb") as file:
            good = file.read()
        path = os.path.join(self.directory, "bad.core")
        generator = random.Random(2)
        for _ in range(DAMAGED):
            bad = bytearray(good)
            for _ in range(generator.randrange(1, 20)):
                bad[generator.randrange(8192)] = generator.randrange(256)
            with open(path, "wb") as file:
                file.write(bad)
            result = self.run_tool("core", path, status=(0, 1, 2))
            self.assertNotIn(b"crashed", result.stderr)

    def test_no_device(self):
        """Opening the device or FIFO that a core file names as a module would have side effects:
        it starts a watchdog, rewinds a tape, and lets a writer go on."""
        program = os.path.join(TARGETS, "crash").encode()
        core = self.crash("segv")
        fifo = os.path.join(self.directory, "f").encode()
        fifo += b"f" * (len(program) - len(fifo))
        if len(fifo) != len(program):
            self.skipTest("the path of the targets is too short")
        with open(core, "rb") as file:
            contents = file.read()
        self.assertIn(program + b"\0", contents)
        with open(core, "wb") as file:
            file.write(contents.replace(program + b"\0", fifo + b"\0"))
        unopened = UnopenedFifo(self, fifo)
        result = self.run_tool("core", core, status=(0, 1))
        self.assertTrue(unopened.was_left_alone(), result)

    def test_python(self):
        """A real program, dumped by the kernel."""
        python = os.path.realpath("/usr/bin/python3")
        if not os.path.exists(python):
            self.skipTest("there is no Debian python3")
        core = self.dump(python, "-c", "import os, threading, time\n"
                         "for _ in range(3): threading.Thread(target=time.sleep, args=(99,), "
                         "daemon=True).start()\nos.abort()")
        snapshot = self.core("--native", core)
        self.assertEqual(len(snapshot.threads), 4)
        self.assert_same(snapshot, core, python)
        for thread in snapshot.threads:
            functions = [frame["symbol"] for frame in thread["frames"]
                         if frame["kind"] == "python"]
            main = thread["tid"] == snapshot.data["process"]["pid"]
            self.assertEqual([name.split(".")[-1] for name in functions],
                             ["<module>"] if main else
                             ["run", "_bootstrap_inner", "_bootstrap"])

    def test_compressed_python(self):
        """Functions of Python are in compressed core files, too, or it is said why not."""
        python = os.path.realpath("/usr/bin/python3")
        if not os.path.exists(python):
            self.skipTest("there is no Debian python3")
        for large in (0, 150):
            core = self.dump(python, "-c", "import os\nx = os.urandom(1 << 20) * %d\n"
                             "def f(): os.abort()\nf()" % large)
            found = []
            for path in (core, self.compressed(core, "zstd")):
                snapshot = self.core(path, status=(0, 1))
                found.append([frame["symbol"] for frame in snapshot.threads[0]["frames"]
                              if frame["kind"] == "python"])
            self.assertEqual(found, [["f", "<module>"], [] if large else ["f", "<module>"]])
            text = self.run_tool("core", path, status=(0, 1)).stdout
            self.assertEqual(b"compressed and large: decompress it first" in text, large > 0, text)

    def test_gcore(self):
        """A core file of a process that goes on has no signal. gdb leaves out what is in files."""
        target = self.start("crash", "stop")
        prefix = os.path.join(self.directory, "g")
        subprocess.run(["gcore", "-o", prefix, str(target.pid)], check=True, timeout=LIMIT_S,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        core = "%s.%d" % (prefix, target.pid)
        snapshot = self.core(core)
        self.assertIsNone(snapshot.data["capture"]["crash"])
        self.assert_stack(snapshot, target.pid, MAIN_STACK)
        self.assert_same(snapshot, core, os.path.join(TARGETS, "crash"))


if __name__ == "__main__":
    main()
