"""report, snap and hang with --debuginfod, and a local server of debug files. Debian package:
libdebuginfod1, a dependency of gdb."""
# ctest: long-without-sanitizers

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from file_server import Server  # noqa: E402
from recordings import LIMIT_S, STACKSNAP, Description, ReportTest, main  # noqa: E402
from harness import EndToEnd, TARGETS  # noqa: E402


class Debuginfod(ReportTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        try:
            ctypes.CDLL("libdebuginfod.so.1")
        except OSError as error:
            raise unittest.SkipTest(str(error)) from None
        d = Description()
        process = d.process()
        module = d.module(process, "/no/such/place/libshop.so", cls.build_id)
        thread = d.thread(process, 1, "t")
        stack = d.stack((module, cls.at["hash"]))
        d.tick()
        d.sample(thread, stack, "R")
        cls.recording = d.write(cls.path("elsewhere.ss"))
        with open(cls.library, "rb") as file:
            cls.data = file.read()

    def serve(self, files):
        server = Server(files)
        self.addCleanup(server.close)
        return server

    def ask(self, urls, *options, status):
        cache = self.path("cache-" + self.id())
        os.makedirs(cache, exist_ok=True)
        environment = dict(os.environ, DEBUGINFOD_URLS=urls, DEBUGINFOD_CACHE_PATH=cache,
                           HOME=cache, no_proxy="*")
        return self.report("-f", "folded", *options, self.recording, status=(status,),
                           env=environment)

    def address(self, kind):
        return "/buildid/%s/%s" % (self.build_id, kind)

    def test_debug_file(self):
        server = self.serve({self.address("debuginfo"): self.data})
        result = self.ask(server.url, "--debuginfod", status=0)
        self.assertEqual(result.stdout, b"shop;t;shop_hash 1\n")
        self.assertEqual(server.asked, [self.address("debuginfo")])

    def test_executable(self):
        server = self.serve({self.address("executable"): self.data})
        result = self.ask(server.url, "--debuginfod", status=0)
        self.assertEqual(result.stdout, b"shop;t;shop_hash 1\n")

    def test_only_with_the_option(self):
        server = self.serve({self.address("debuginfo"): self.data})
        self.assertNotIn(b"shop_hash", self.ask(server.url, status=1).stdout)
        self.assertEqual(server.asked, [])

    def test_server_with_wrong_files(self):
        """Ignores what is not an ELF file, or has another build-id."""
        id_bytes = bytes.fromhex(self.build_id)
        other = self.data.replace(id_bytes, b"\x00" + id_bytes[1:])
        self.assertNotEqual(other, self.data)
        for name, data in (("other", other), ("text", b"hello" * 999)):
            server = self.serve({self.address("debuginfo"): data})
            result = self.ask(server.url, "--debuginfod", status=1)
            self.assertNotIn(b"shop_hash", result.stdout, name)

    def test_no_server(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            url = "http://127.0.0.1:%d" % closed.getsockname()[1]
            result = self.ask(url, "--debuginfod", status=1)
        self.assertIn(self.build_id.encode(), result.stderr)
        result = self.ask("", "--debuginfod", status=2)
        self.assertIn(b"DEBUGINFOD_URLS", result.stderr)

    def listen(self):
        """A server that reads requests and never answers."""
        silent = socket.socket()
        self.addCleanup(silent.close)
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        silent.settimeout(LIMIT_S)
        return silent, "http://127.0.0.1:%d" % silent.getsockname()[1]

    def test_silent_server(self):
        """The time limit of five seconds applies once, not for each of the two modules."""
        d = Description()
        process = d.process()
        modules = [d.module(process, "/no/such/place/lib%d.so" % i, "abab%02x" % i,
                            bias=0x7f0000000000 + i * 0x1000000) for i in range(2)]
        thread = d.thread(process, 1, "t")
        stack = d.stack(*[(module, 0x10) for module in modules])
        d.tick()
        d.sample(thread, stack, "R")
        silent, url = self.listen()
        self.recording = d.write(self.path("silent.ss"))
        result = self.ask(url, "--debuginfod", status=1)
        self.assertEqual(result.stderr.count(b"do not answer in time"), 1, result.stderr)
        self.assertIn(b"lib0.so+0x10 [abab00]", result.stdout)
        silent.accept()[0].close()
        silent.setblocking(False)
        with self.assertRaises(BlockingIOError):  # only one file was requested
            silent.accept()

    def test_interrupted(self):
        """Ctrl-C ends the wait for a server, and leaves no file."""
        silent, url = self.listen()
        cache = self.path("cache-interrupted")
        out = os.path.join(cache, "out.json")
        os.makedirs(cache)
        environment = dict(os.environ, DEBUGINFOD_URLS=url, DEBUGINFOD_CACHE_PATH=cache + "/c",
                           HOME=cache, no_proxy="*", DEBUGINFOD_TIMEOUT="9999",
                           DEBUGINFOD_MAXTIME="9999")
        process = subprocess.Popen(
            [STACKSNAP, "report", "--debuginfod", "-f", "json", "-o", out, self.recording],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            connection, _ = silent.accept()
            self.addCleanup(connection.close)
            connection.recv(1)  # wait for the request
            process.send_signal(signal.SIGINT)
            output = process.communicate(timeout=LIMIT_S)
        finally:
            process.kill()
            process.communicate()
        self.assertEqual(process.returncode, -signal.SIGINT, output)
        self.assertEqual([name for name in os.listdir(cache) if name.startswith("out")], [])


class Live(EndToEnd):
    """A stripped program, whose debug file is on the server only."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        try:
            ctypes.CDLL("libdebuginfod.so.1")
        except OSError as error:
            raise unittest.SkipTest(str(error)) from None

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="stacksnap-debuginfod-")
        self.addCleanup(shutil.rmtree, self.directory)
        whole = os.path.join(TARGETS, "deadlock")
        program = os.path.join(self.directory, "deadlock")
        subprocess.run(["objcopy", "--strip-all", whole, program], check=True)
        os.chmod(self.directory, 0o755)
        self.target = self.start_command([program])
        snapshot = self.snap(self.target.pid)
        self.build_id = next(module["build_id"] for module in snapshot.modules
                             if module["path"] == program)
        with open(whole, "rb") as file:
            self.server = Server({"/buildid/%s/debuginfo" % self.build_id: file.read()})
        self.addCleanup(self.server.close)

    def ask(self, *words, status):
        cache = os.path.join(self.directory, "cache")
        environment = dict(os.environ, DEBUGINFOD_URLS=self.server.url,
                           DEBUGINFOD_CACHE_PATH=cache, HOME=cache, no_proxy="*")
        return self.run_tool(*words, self.target.pid, status=(status,),
                             env=environment).stdout.decode()

    def test_snap(self):
        for mode in ("auto", "stop"):
            text = self.ask("--mode=" + mode, status=0)
            self.assertNotIn("take_next", text)
            self.assertRegex(text, r"\n\nmissing: names in deadlock \(build-id %s\)"
                             r"[^\n]*, or use --debuginfod\n\Z" % self.build_id)
            text = self.ask("--debuginfod", "--mode=" + mode, status=0)
            self.assertIn("    called from take_next", text)
            self.assertNotIn("deadlock (build-id", text)

    def test_hang(self):
        self.assertNotIn("take_next", self.ask("hang", "--for=100ms", status=3))
        self.assertIn("    called from take_next",
                      self.ask("hang", "--for=100ms", "--debuginfod", status=3))

    def test_no_server(self):
        result = self.run_tool("--debuginfod", self.target.pid, status=(2,),
                               env=dict(os.environ, DEBUGINFOD_URLS=""))
        self.assertIn(b"DEBUGINFOD_URLS", result.stderr)


if __name__ == "__main__":
    main()
