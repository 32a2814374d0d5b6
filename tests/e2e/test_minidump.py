"""Minidumps of core files and of processes: the streams, and what lldb reads from them. Environment
and command line are in them only if they are wanted."""
# ctest: slow

import os
import re
import shutil
import struct
import subprocess

from core_dump import CoreDump
from harness import LIMIT_S, Snapshot, TARGETS, canonical, main

SECRET = "t0ken-of-a-user"


class Minidump:
    """The streams of a minidump, as minidumpapiset.h has them."""

    def __init__(self, data):
        self.data = data
        signature, version, count, at = struct.unpack_from("<4sIII", data)
        assert (signature, version) == (b"MDMP", 0xa793), (signature, version)
        self.streams = {}
        for i in range(count):
            kind, size, where = struct.unpack_from("<III", data, at + 12 * i)
            assert kind not in self.streams and where + size <= len(data)
            self.streams[kind] = data[where:where + size]

    def string(self, at):
        size, = struct.unpack_from("<I", self.data, at)
        return self.data[at + 4:at + 4 + size].decode("utf-16-le")

    def threads(self):
        stream = self.streams[3]
        threads = {}
        for i in range(struct.unpack_from("<I", stream)[0]):
            (tid, _, _, _, _, stack, stack_size, stack_at, size,
             at) = struct.unpack_from("<IIIIQQIIII", stream, 4 + 48 * i)
            rsp, = struct.unpack_from("<Q", self.data, at + 152)
            rip, = struct.unpack_from("<Q", self.data, at + 248)
            threads[tid] = {"stack": stack, "stack_size": stack_size, "size": size, "sp": rsp,
                            "pc": rip, "bytes": self.data[stack_at:stack_at + stack_size]}
        return threads

    def names(self):
        stream = self.streams[24]
        entries = [struct.unpack_from("<IQ", stream, 4 + 12 * i)
                   for i in range(struct.unpack_from("<I", stream)[0])]
        return {tid: self.string(at) for tid, at in entries}

    def modules(self):
        stream = self.streams[4]
        modules = {}
        for i in range(struct.unpack_from("<I", stream)[0]):
            base, size, _, _, name = struct.unpack_from("<QIIII", stream, 4 + 108 * i)
            id_size, at = struct.unpack_from("<II", stream, 4 + 108 * i + 76)
            record = self.data[at:at + id_size]
            assert id_size == 0 or record[:4] == b"LEpB", record
            modules[self.string(name)] = (base, size, record[4:].hex())
        return modules


class MinidumpTest(CoreDump):
    def minidump(self, *arguments):
        path = os.path.join(self.directory, "minidump")
        if os.path.exists(path):
            os.unlink(path)
        self.run_tool(*arguments[:1], "-f", "minidump", "-o", path, *arguments[1:], status=(0, 1))
        with open(path, "rb") as file:
            data = file.read()
        self.assertNotIn(SECRET.encode(), data)
        return path, Minidump(data)

    def lldb(self, path):
        if not shutil.which("lldb"):
            self.skipTest("there is no lldb")
        result = subprocess.run(["lldb", "-b", "-o", "target create --core '%s'" % path, "-o",
                                 "bt all", "-o", "image list"], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, timeout=3 * LIMIT_S, text=True)
        return result.stdout

    def assert_modules(self, snapshot, minidump):
        modules = minidump.modules()
        self.assertEqual({m["path"]: m["build_id"] for m in snapshot.data["modules"]},
                         {path: modules[path][2] or None for path in modules})

    def test_core(self):
        core = self.dump(os.path.join(TARGETS, "crash"), "segv",
                         environment={"PASSWORD": SECRET})
        with open(core, "rb") as file:
            self.assertIn(SECRET.encode(), file.read())
        snapshot = Snapshot(self.run_tool("core", "-f", "json", core))
        path, minidump = self.minidump("core", core)
        threads = minidump.threads()
        self.assertEqual(set(threads), {thread["tid"] for thread in snapshot.threads})
        for thread in snapshot.threads:
            mine = threads[thread["tid"]]
            self.assertEqual(hex(mine["pc"]), thread["frames"][0]["pc"])
            self.assertTrue(mine["stack"] <= mine["sp"] < mine["stack"] + mine["stack_size"])
        pid = snapshot.data["process"]["pid"]
        self.assertEqual(minidump.names()[pid], "crash")
        tid, _, code, flags, _, address = struct.unpack_from("<IIIIQQ", minidump.streams[6])
        self.assertEqual((tid, code, flags, address), (pid, 11, 1, 16))
        self.assertEqual(struct.unpack_from("<H18xI", minidump.streams[7]), (9, 0x8201))
        self.assert_modules(snapshot, minidump)
        text = self.lldb(path)
        self.assertIn("stop reason = signal SIGSEGV", text)
        stacks = [re.findall(r"frame #\d+: 0x0*([0-9a-f]+)", part)
                  for part in re.split(r"thread #\d+", text)[1:]]
        names = [re.findall(r"frame #\d+: \S+ [^`]*`([^ (]+)", part)
                 for part in re.split(r"thread #\d+", text)[1:]]
        self.assertEqual(len(stacks), 3, text)
        self.assertEqual(names[0][:3], ["read_address", "fail", "main"], text)
        # lldb numbers inlined calls, too.
        ours = {tuple(dict.fromkeys(f["pc"] for f in t["frames"] if not f["inlined"]))
                for t in snapshot.threads}
        for stack in stacks:
            found = ["0x" + pc for pc in stack]
            self.assertTrue(any(all(pc in found for pc in one) for one in ours), text)
        build_id = next(m["build_id"] for m in snapshot.data["modules"]
                        if m["path"].endswith("/crash"))
        self.assertIn(build_id, text.replace("-", "").lower())

    def test_process(self):
        target = self.start("threads", "3", "2")
        path, minidump = self.minidump("snap", "--mode=stop", str(target.pid))
        snapshot = Snapshot(self.run_tool("-f", "json", str(target.pid)))
        self.assertEqual(set(minidump.threads()), {t["tid"] for t in snapshot.threads})
        self.assertNotIn(6, minidump.streams)
        self.assert_modules(snapshot, minidump)
        self.assertEqual(set(minidump.names().values()),
                         {thread["name"] for thread in snapshot.threads})
        text = self.lldb(path)
        names = re.findall(r"frame #\d+: \S+ [^`]*`([^ (]+)", text)
        for name in ("target_wait", "main", "start_thread"):
            self.assertIn(name, [canonical(found) for found in names], text)

    def test_environment(self):
        """If it is wanted; then they are those of procfs."""
        target = self.start("threads", "3", "2", env={**os.environ, "PASSWORD": SECRET})
        path = os.path.join(self.directory, "whole")
        self.run_tool("snap", "--mode=stop", "-f", "minidump", "--environment", "-o", path,
                      str(target.pid), status=(0, 1))
        with open(path, "rb") as file:
            minidump = Minidump(file.read())
        for stream, name in ((0x47670006, "cmdline"), (0x47670007, "environ")):
            with open("/proc/%d/%s" % (target.pid, name), "rb") as file:
                self.assertEqual(minidump.streams.get(stream), file.read(), name)
        _, without = self.minidump("snap", "--mode=stop", str(target.pid))
        self.assertFalse({0x47670006, 0x47670007} & set(without.streams))
        core = self.dump(os.path.join(TARGETS, "crash"), "segv",
                         environment={"PASSWORD": SECRET})
        self.run_tool("core", "-f", "minidump", "--environment", "-o", path + ".core", core)
        with open(path + ".core", "rb") as file:
            minidump = Minidump(file.read())
        self.assertIn(b"PASSWORD=%s\0" % SECRET.encode(), minidump.streams[0x47670007])
        self.assertTrue(minidump.streams[0x47670006].endswith(b"/crash\0segv\0"),
                        minidump.streams[0x47670006])

    def test_run(self):
        """Of a command that a signal ends."""
        path = os.path.join(self.directory, "run")
        environment = {**os.environ, "PASSWORD": SECRET}
        self.run_tool("run", "-f", "minidump", "-o", path, "--",
                      os.path.join(TARGETS, "crash"), "segv", status=(-11,), env=environment)
        with open(path, "rb") as file:
            data = file.read()
        self.assertNotIn(SECRET.encode(), data)
        minidump = Minidump(data)
        self.assertEqual(len(minidump.threads()), 3)
        tid, _, code, _, _, address = struct.unpack_from("<IIIIQQ", minidump.streams[6])
        self.assertEqual((minidump.names()[tid], code, address), ("crash", 11, 16))
        text = self.lldb(path)
        self.assertIn("stop reason = signal SIGSEGV", text)
        self.assertIn("`read_address", text)

    def test_large_environment(self):
        """More than the part of a stack that is copied first."""
        environment = {"V%d" % i: SECRET * 6000 for i in range(8)}
        target = self.start("threads", "1", "2", env={**os.environ, **environment})
        _, minidump = self.minidump("snap", "--mode=stop", str(target.pid))
        self.assertIn(target.pid, minidump.threads())


if __name__ == "__main__":
    main()
