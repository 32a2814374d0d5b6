"""Every command says the same of one thread: what it waits for, on which object, who owns it, whether
it is in a deadlock, and which functions it is in. Programs that stand still are looked at by a
snapshot, a series, hang, diff, a recording and its report, and several processes at once."""
# ctest: long-with-sanitizers slow timeout=600

import json
import os
import shutil
import sys
import tempfile

from harness import EndToEnd, TARGETS, main

# Where the stack of a thread continues on another one, later captures of a series, and both of
# diff, copy only its beginning: "limit".
CUT_LATER = ("other_stack",)
# Targets that move, end, or need a tracer of their own are left out.
TARGET_NAMES = ("threads", "lockwaits", "cpplocks", "deep", "sighandler", "other_stack", "noreturn",
                "long_names", "cplusplus", "heap", "realigned", "threads_fp")
PYTHON = {
    "locks": "import threading, sys\na, b = threading.RLock(), threading.RLock()\n"
             "ready = threading.Barrier(3)\n"
             "def take(x, y):\n    with x:\n        ready.wait()\n        y.acquire()\n"
             "for pair in ((a, b), (b, a)):\n"
             "    threading.Thread(target=take, args=pair, daemon=True).start()\n"
             "ready.wait()\nprint('ready', flush=True)\nsys.stdin.read()\n",
    "queue": "import threading, queue, sys\nq = queue.Queue()\n"
             "for i in range(3):\n    threading.Thread(target=q.get, daemon=True).start()\n"
             "print('ready', flush=True)\nsys.stdin.read()\n",
    "asyncio": "import asyncio, sys, threading\n"
               "async def sleeps():\n    await asyncio.sleep(1e6)\n"
               "async def everything():\n"
               "    tasks = [asyncio.create_task(sleeps()) for _ in range(3)]\n"
               "    await asyncio.sleep(0.1)\n    print('ready', flush=True)\n"
               "    await asyncio.gather(*tasks)\nasyncio.run(everything())\n",
}
NODE = "console.log('ready'); setTimeout(() => {}, 1e8)"
WAIT_KEYS = ("kind", "syscall", "lock", "address", "symbol", "owner_tid", "owner_pid",
             "owner_unknown", "fd", "purpose", "purpose_function", "timed")


def facts(wait):
    return wait and {key: wait.get(key) for key in WAIT_KEYS}


def functions(frames):
    return [frame.get("symbol") for frame in frames]


def cycles(data):
    return sorted(sorted(deadlock["tids"]) for deadlock in data["deadlocks"])


class Agreement(EndToEnd):
    def read(self, *arguments):
        result = self.run_tool(*arguments, status=(0, 1, 3, 4))
        return [json.loads(line) for line in result.stdout.decode().splitlines() if line]

    def recorded(self, pid):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "recording")
            self.run_tool("-f", "recording", "-o", path, pid, status=(0, 1))
            result = self.run_tool("report", "-f", "json", path, status=(0, 1))
            return json.loads(result.stdout)

    def compare(self, pid, cut_later):
        """Twice: of a program that moved in between, nothing is known."""
        first, = self.read("-f", "json", pid)
        seen = {
            "series": self.read("-c", "2", "-i", "20ms", "--each", "-f", "json", pid)[-1],
            "hang": self.read("hang", "--for=200ms", "-f", "json", pid)[0],
            "diff": self.read("diff", "--after=50ms", "-f", "json", pid)[0],
            "merged": self.read("-c", "2", "-i", "20ms", "-f", "json", pid)[0],
            "report": self.recorded(pid),
        }
        last, = self.read("-f", "json", pid)
        if [facts(thread["wait"]) for thread in first["threads"]] != \
                [facts(thread["wait"]) for thread in last["threads"]] or \
                [functions(thread["frames"]) for thread in first["threads"]] != \
                [functions(thread["frames"]) for thread in last["threads"]]:
            return False
        for thread in first["threads"]:
            self.compare_thread(thread, seen, cut_later)
        for command in ("series", "hang", "merged"):
            self.assertEqual(cycles(seen[command]), cycles(first), command)
            self.assertEqual(seen[command]["blockers"], first["blockers"], command)
        deadlocked = {seen["report"]["threads"][wait["thread"]]["tid"]
                      for wait in seen["report"]["waits"] if wait["deadlock"]}
        self.assertEqual(sorted(deadlocked), sorted(tid for cycle in cycles(first)
                                                    for tid in cycle))
        return True

    def compare_thread(self, thread, seen, cut_later):
        tid = thread["tid"]
        by_tid = {command: {other["tid"]: other for other in seen[command]["threads"]}
                  for command in ("series", "hang", "diff")}
        self.assertEqual(facts(by_tid["series"][tid]["wait"]), facts(thread["wait"]), tid)
        self.assertEqual(facts(by_tid["hang"][tid]["wait_data"]), facts(thread["wait"]), tid)
        self.assertEqual(by_tid["hang"][tid]["wait"],
                         thread["wait"] and by_tid["hang"][tid]["wait_data"]["text"], tid)
        self.assertEqual(facts(by_tid["diff"][tid]["wait"]), facts(thread["wait"]), tid)
        for command in ("series", "diff"):
            if cut_later and functions(by_tid[command][tid]["frames"]) != \
                    functions(thread["frames"]):
                continue
            self.assertEqual(functions(by_tid[command][tid]["frames"]),
                             functions(thread["frames"]), (command, tid))
        for wait in seen["report"]["waits"]:
            if seen["report"]["threads"][wait["thread"]]["tid"] == tid:
                self.assertEqual(facts(wait["data"]), facts(thread["wait"]), tid)

    def compare_program(self, target, cut_later=False):
        self.assertTrue(any(self.compare(target.pid, cut_later) for _ in range(3)),
                        "it never stood still")

    def test_targets(self):
        compared = 0
        for name in TARGET_NAMES:
            if not os.access(os.path.join(TARGETS, name), os.X_OK):
                continue
            with self.subTest(target=name):
                target = self.start(name, settle=False)
                self.compare_program(target, name in CUT_LATER)
                target.kill()
                compared += 1
        self.assertGreater(compared, 8)

    def test_python(self):
        for name, program in PYTHON.items():
            with self.subTest(program=name):
                self.compare_program(self.start_command([sys.executable, "-c", program]))

    def test_node(self):
        if not shutil.which("node"):
            self.skipTest("node is not installed")
        self.compare_program(self.start_command(["node", "-e", NODE]))

    def test_several(self):
        """Merged or apart, the text of several processes has the waits of each."""
        targets = [self.start("lockwaits", settle=False) for _ in range(2)]
        alone = [self.read("-f", "json", target.pid)[0] for target in targets]
        together = self.read("-f", "json", *(target.pid for target in targets))
        for one, other in zip(alone, together):
            self.assertEqual([facts(thread["wait"]) for thread in one["threads"]],
                             [facts(thread["wait"]) for thread in other["threads"]])
            self.assertEqual(cycles(one), cycles(other))
        text = self.run_tool("-a", *(target.pid for target in targets), status=(0, 1))
        for thread in alone[0]["threads"]:
            symbol = thread["wait"] and thread["wait"].get("symbol")
            if symbol:
                self.assertIn(symbol, text.stdout.decode())


if __name__ == "__main__":
    main()
