"""Programs of 32 bits (i386), which a tool of 64 bits reads."""

import os
import shutil
import subprocess
import tempfile
import unittest

from core_dump import CoreDump
from harness import LIMIT_S, Snapshot, canonical, main

FLAGS = ["-m32", "-D_GNU_SOURCE", "-g", "-O2", "-fno-optimize-sibling-calls",
         "-fomit-frame-pointer", "-pthread"]
SOURCE = os.environ.get("SOURCE", ".")
PLACE = None


def compile_target(name, *flags):
    """The path of a program of targets/, compiled with 32 bits. Without gcc-multilib, which
    conflicts with cross compilers, gcc-12-multilib does it too."""
    path = os.path.join(PLACE, name)
    if os.path.exists(path):
        return path
    sources = [os.path.join(SOURCE, "targets", name + ".c"),
               os.path.join(SOURCE, "targets", "target.c")]
    for compiler in (["gcc"], ["gcc-12", "-I/usr/include/x86_64-linux-gnu"]):
        try:
            done = subprocess.run(compiler + FLAGS + ["-o", path] + sources + list(flags),
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  timeout=LIMIT_S, text=True)
        except FileNotFoundError:
            continue
        if done.returncode == 0:
            return path
    raise unittest.SkipTest("no 32-bit programs can be made: install gcc-multilib or "
                            "gcc-12-multilib")


def setUpModule():
    global PLACE
    PLACE = tempfile.mkdtemp(prefix="stacksnap-i386-")
    compile_target("crash")


def tearDownModule():
    shutil.rmtree(PLACE)


def names(thread):
    return [canonical(frame["symbol"]) for frame in thread["frames"] if frame["symbol"]]


class Cores(CoreDump):
    def core(self, *arguments):
        return Snapshot(self.run_tool("core", "-f", "json", *arguments))

    def test_fault(self):
        snapshot = self.core(self.dump(compile_target("crash"), "segv"))
        crash = snapshot.data["capture"]["crash"]
        pid = snapshot.data["process"]["pid"]
        self.assertEqual((crash["name"], crash["tid"], crash["code"], crash["address"]),
                         ("SIGSEGV", pid, 1, "0x10"))
        self.assertEqual(names(snapshot.thread(pid))[:3], ["read_address", "fail", "main"])

    def test_waits(self):
        snapshot = self.core(self.dump(compile_target("crash"), "abort"))
        pid = snapshot.data["process"]["pid"]
        waiters = [thread for thread in snapshot.threads if thread["wait"]]
        self.assertEqual(len(waiters), 2)
        for thread in waiters:
            self.assertEqual(thread["wait"]["kind"], "mutex")
            self.assertEqual(thread["wait"]["symbol"], "stock")
            self.assertEqual(thread["wait"]["owner_tid"], pid)
        self.assertIn("abort", names(snapshot.thread(pid)))
        self.assertIn("fail", names(snapshot.thread(pid)))


if __name__ == "__main__":
    main()
