"""The format "brief": what is wrong in the first line, in at most 2,048 bytes."""
# ctest: quick

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

from harness import EndToEnd, main, wait_until


class Brief(EndToEnd):
    def brief(self, *arguments, status=(0,)):
        data = self.run_tool(*arguments, status=status).stdout
        self.assertLessEqual(len(data), 2048, data)
        return data.decode()

    def test_deadlock(self):
        target = self.start("deadlock", "normal")
        for command, status in [((), (0,)), (("hang", "--for=200ms"), (3,))]:
            text = self.brief(*command, "-f", "brief", target.pid, status=status)
            lines = text.splitlines()
            self.assertRegex(lines[0], r"^deadlock, pid %d: deadlock: 2 threads in a deadlock, " % target.pid)
            self.assertTrue(lines[1].startswith("DEADLOCK: 2 threads"), text)
            self.assertIn(" waits for ", lines[2])
            self.assertNotIn("", lines)
            again = self.brief(*command, "-f", "brief", target.pid, status=status)
            self.assertEqual(again, text)

    def test_many_threads(self):
        target = self.start("threads", 200)  # of each of five kinds
        text = self.brief("-f", "brief", target.pid)
        self.assertRegex(text, r"\A\S+, pid %d: 1,001 threads idle\n" % target.pid)

    def start_program(self, command, **options):
        if not shutil.which(command[0]):
            self.skipTest("needs " + command[0])
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.kill)
        return process.pid

    def test_runtime(self):
        """Threads of a runtime are counted, and no more."""
        pid = self.start_program(["node", "-e", "setInterval(() => {}, 60000)"])
        texts = [""]
        while ": 1 thread idle, " not in texts[-1]:  # until all of them wait
            texts.append(self.brief("-f", "brief", pid, status=(0, 1)))
            self.assertLess(len(texts), 200, texts[-1])
        lines = texts[-1].splitlines()
        self.assertRegex(lines[0], r"^node, pid %d: 1 thread idle, \d+ of the runtime$" % pid)
        self.assertRegex(lines[1], r"^1 thread idle: %d \(\S+\)$" % pid)
        self.assertFalse([line for line in lines[2:] if "thread" in line], lines)

    def test_goroutines(self):
        """They are the program: they come before threads."""
        home = self.enterContext(tempfile.TemporaryDirectory())
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = "%s:%d" % free.getsockname()
        pid = self.start_program(["caddy", "file-server", "--root", home, "--listen", address],
                                 env=dict(os.environ, HOME=home))
        pattern = r"\A\S+, pid %d: .*\d+ of the runtime\n\d+ goroutines, " % pid
        wait_until(lambda: re.search(pattern, self.brief("-f", "brief", pid, status=(0, 1))), pattern)

    def test_asyncio(self):
        program = ("import asyncio\n"
                   "async def consume(queue): await queue.get()\n"
                   "async def main():\n"
                   "    tasks = [asyncio.create_task(consume(asyncio.Queue())) for _ in range(3)]\n"
                   "    print('ready', flush=True)\n"
                   "    await tasks[0]\n"
                   "asyncio.run(main())\n")
        target = self.start_command([sys.executable, "-c", program])
        text = self.brief("-f", "brief", target.pid)
        self.assertLess(text.index("consume at <string>:2"), text.index("thread idle: "), text)


if __name__ == "__main__":
    main()
