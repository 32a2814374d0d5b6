"""Modules without a build-id: a report uses the file at their path only if it has the recorded
size, time of modification, inode, and hash of headers and symbol tables."""
# ctest: long-with-sanitizers

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from recordings import Description, ReportTest, main  # noqa: E402
from harness import LIMIT_S, read_text, wait_until  # noqa: E402
from recording import Recording, XXH, ZSTD, file_hash  # noqa: E402
from test_specification import (START, WALL, chunk, fields, header, number, numbers, record,  # noqa: E402
                                segment, signed)

SOURCE = """
#include <unistd.h>
char c;
__attribute__((noinline)) int %s(void) { int n = (int)read(0, &c, 1); c++; return n; }
int main(void) { (void)!write(1, "ready\\n", 6); return %s() + c; }
"""
GO = ("/usr/bin/gofmt", "/usr/local/bin/terraform")
RESTS = "names rely on the size, headers and symbols of"


def notes_of(path):
    return subprocess.run(["readelf", "-n", path], stdout=subprocess.PIPE, check=True, text=True,
                          stderr=subprocess.DEVNULL, timeout=LIMIT_S).stdout


@unittest.skipUnless(ZSTD and XXH, "libzstd or libxxhash cannot be loaded")
class FileIdentity(ReportTest):
    def build(self, name, function="wait_here", *options):
        path = self.path(name)
        with open(path + ".c", "w", encoding="utf-8") as file:
            file.write(SOURCE % (function, function))
        subprocess.run([os.environ.get("CC", "cc"), "-g", "-O1", "-Wl,--build-id=none", *options,
                        "-o", path, path + ".c"], check=True, timeout=LIMIT_S)
        self.assertNotIn("Build ID", notes_of(path))
        return path

    def record(self, program, name="recording"):
        """Records the program, as a snapshot and as samples. Returns both paths."""
        target = self.start_command([program])
        snapshot, samples = "%s.%s.snap" % (program, name), "%s.%s.rec" % (program, name)
        self.run_tool("-f", "recording", "-o", snapshot, target.pid)
        self.run_tool("record", "--duration=200ms", "-o", samples, target.pid,
                      status=(0, 1))
        target.finish()
        return snapshot, samples

    def json(self, path, *arguments, status=(0, 1)):
        return json.loads(self.report("-f", "json", *arguments, path, status=status).stdout)

    def module_of(self, data, path):
        found = [module for module in data["modules"] if module["path"] == path]
        self.assertEqual(len(found), 1, data["modules"])
        return found[0]

    def names(self, data):
        return {frame["name"] for frame in data["frames"] if frame["named"]}

    def assert_unnamed(self, recording, program, why, *arguments):
        data = self.json(recording, *arguments, status=(1,))
        module = self.module_of(data, program)
        self.assertFalse(module["by_file"])
        self.assertIn(why, module["problem"])
        self.assertNotIn("wait_here", self.names(data))
        self.assertTrue([note for note in data["notes"] if why in note], data["notes"])
        text = self.report(recording, status=(1,)).stdout.decode()
        self.assertIn(why, text)
        self.assertNotIn(RESTS, text)

    def test_recorded_identity(self):
        """The fields of the recording, computed anew from the manual page."""
        program = self.build("fields")
        status = os.stat(program)
        for path in self.record(program):
            recording = Recording(path)
            found = [module for module in recording.modules if module.path == program]
            self.assertEqual(len(found), 1)
            self.assertFalse(found[0].build_id)
            self.assertEqual(found[0].file[:3],
                             [status.st_size, status.st_mtime_ns, status.st_ino])
            self.assertEqual(found[0].file[3], file_hash(program))
            for module in recording.modules:
                self.assertFalse(module.build_id and module.file, module.path)

    def test_names(self):
        program = self.build("same")
        for path in self.record(program):
            data = self.json(path)
            self.assertIn("wait_here", self.names(data))
            module = self.module_of(data, program)
            self.assertTrue(module["by_file"])
            self.assertIsNone(module["problem"])
            self.assertRegex(module["file_hash"], "^[0-9a-f]{32}$")
            self.assertTrue([frame for frame in data["frames"] if frame["name"] == "wait_here" and
                             frame["file"] and frame["file"].endswith("same.c")])
            text = self.report(path, status=(0, 1)).stdout.decode()
            self.assertIn("%s the files)\n  %s [file %s]\n" %
                          (RESTS, program, module["file_hash"]), text)
            folded = self.report("-f", "folded", path, status=(0, 1))
            self.assertIn(b"wait_here", folded.stdout)
            self.assertIn("%s: no build-id: %s the file" % (program, RESTS),
                          folded.stderr.decode())
        self.report(program + ".recording.snap", status=(0,))

    def test_mismatch(self):
        """Each of the four alone, and a file that is gone."""
        program = self.build("other")
        status = os.stat(program)
        with open(program, "rb") as file:
            contents = file.read()
        recordings = self.record(program)

        def rewrite(new):
            """In place: the inode and the time stay."""
            with open(program, "r+b") as file:
                file.truncate()
                file.write(new)
            os.utime(program, ns=(status.st_atime_ns, status.st_mtime_ns))

        for recording in recordings:
            self.assertIn("wait_here", self.names(self.json(recording)))
            rewrite(contents + b"\0")
            self.assert_unnamed(recording, program, "has another size now")
            rewrite(contents.replace(b"wait_here", b"went_away"))
            self.assert_unnamed(recording, program, "has other headers or symbols now")
            rewrite(b"no ELF file")
            self.assert_unnamed(recording, program, "no ELF file at its path now")
            rewrite(contents)
            self.assertIn("wait_here", self.names(self.json(recording)))
            os.utime(program, ns=(status.st_atime_ns, status.st_mtime_ns + 1000000))
            self.assert_unnamed(recording, program, "was modified since")
            rewrite(contents)
        shutil.copy2(program, program + ".copy")
        os.rename(program + ".copy", program)
        for recording in recordings:
            self.assert_unnamed(recording, program, "(its inode differs)")
            os.rename(program, program + ".away")
            self.assert_unnamed(recording, program, "no ELF file at its path now")
            os.rename(program + ".away", program)

    def test_copy_below_sysroot(self):
        """A copy below --sysroot needs size, headers and symbols only."""
        program = self.build("copied")
        recordings = self.record(program)
        root = self.path("root")
        os.makedirs(os.path.dirname(root + program))
        shutil.copy(program, root + program)
        os.unlink(program)
        for recording in recordings:
            data = self.json(recording, "--sysroot", root)
            self.assertIn("wait_here", self.names(data))
            self.assertTrue(self.module_of(data, program)["by_file"])
        self.build("copied", "came_here")
        os.rename(program, root + program)
        for recording in recordings:
            data = self.json(recording, "--sysroot", root)
            self.assertFalse({"wait_here", "came_here"} & self.names(data))

    def test_without_sections(self):
        """The whole file is hashed; there are dynamic symbols only."""
        program = self.build("bare", "wait_here", "-rdynamic", "-s")
        with open(program, "r+b") as file:
            contents = bytearray(file.read())
            contents[0x28:0x30] = bytes(8)
            contents[0x3c:0x40] = bytes(4)
            file.seek(0)
            file.write(contents)
        recordings = self.record(program)
        for recording in recordings:
            module = self.module_of(self.json(recording), program)
            self.assertTrue(module["by_file"])

    def test_not_identified(self):
        """An older recording has no identity."""
        d = Description()
        module = d.module(d.process(), "/usr/bin/env", "")
        thread = d.thread(0, 100, "shop")
        stack = d.stack((module, 0x10))
        for _ in range(3):
            d.tick()
            d.sample(thread, stack)
        path = d.write(self.path("old.rec"))
        data = self.json(path, status=(1,))
        self.assertEqual(data["modules"][0]["problem"], "it has no build-id to identify its file")
        self.assertIsNone(data["modules"][0]["file_hash"])

    def test_many_large_files(self):
        """A small recording cannot ask for hours of hashing."""
        program, count = self.build("large"), 3000
        with open(program, "r+b") as file:
            file.seek(0x28)
            file.write(bytes(8))  # no sections: the file is hashed, up to 128 MiB
            file.seek(0x3c)
            file.write(bytes(4))
            file.truncate(256 << 20)
        status = os.stat(program)
        names = [b"large", program.encode()] + [b"%032x" % i for i in range(count)]
        out = b"".join(record(1, name) for name in names)
        out += record(2, fields(f1=100, f2=1)) + record(3, fields(f2=100, f3=1))
        for i in range(count):
            file = fields(f1=status.st_size, f2=status.st_mtime_ns, f3=status.st_ino, f4=3 + i)
            out += record(4, fields(f2=fields(f1=2, f3=i << 30, f4=1 << 20, f7=file),
                                    f3=i << 30))
        out += b"".join(record(5, 1 + i, 0x1000, 0) for i in range(count))
        out += record(6, 0, 0, 0, count, b"".join(number(i) for i in range(count)))
        path = self.path("large.rec")
        with open(path, "wb") as file:
            file.write(header() + segment(0) + chunk(b"DEFS", out, packed=True) + chunk(
                b"SMPL", numbers(0, 1, 1, START) + signed(WALL - START) + numbers(0, 0, 0) +
                bytes([0, 0, 3 | (1 | 2 | 4) << 3]) + numbers(0, 0) + b"S") +
                       chunk(b"SUMM", numbers(1, 1, 0, 0, 0, 0, 0, 2)))

        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
        result = self.report("-f", "json", path, status=(1,), preexec_fn=limit)
        problems = {module["problem"] for module in json.loads(result.stdout)["modules"]}
        self.assertEqual(problems, {
            "it has no build-id, and the file at its path has other headers or symbols now",
            "it has no build-id, and too many large files were compared already"})

    def test_merged(self):
        """Two builds at one path are two modules."""
        program = self.build("twice")
        first = self.record(program)[1]
        self.build("twice", "came_here")
        second = self.record(program, "second")[1]
        data = json.loads(self.report("-f", "json", first, second, status=(1,)).stdout)
        found = [module for module in data["modules"] if module["path"] == program]
        self.assertEqual({module["by_file"] for module in found}, {True, False})
        self.assertEqual(len({module["file_hash"] for module in found}), 2)
        self.assertIn("came_here", self.names(data))
        self.assertNotIn("wait_here", self.names(data))

    def test_go(self):
        """Go's linker stores an id of its own, and no build-id."""
        programs = [os.path.realpath(path) for path in GO if os.access(path, os.X_OK)]
        programs = [path for path in programs if "Build ID" not in notes_of(path)]
        if not programs:
            self.skipTest("no program of Go without a build-id: install golang-go")
        for program in programs:
            process = subprocess.Popen([program, *(["console"] if "terraform" in program else [])],
                                       stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, cwd=self.top.name)
            self.addCleanup(lambda p=process: (p.kill(), p.wait(), p.stdin.close()))
            pid = process.pid
            wait_until(lambda pid=pid: re.search(
                r"^0 0x0 ", "\n".join(read_text("/proc/%d/task/%s/syscall" % (pid, task))
                                      for task in os.listdir("/proc/%d/task" % pid)), re.M),
                       "%s to read" % program)
            path = self.path(os.path.basename(program) + ".snap")
            self.run_tool("-f", "recording", "-o", path, pid, status=(0, 1))
            data = self.json(path)
            self.assertTrue(self.module_of(data, program)["by_file"])
            self.assertLess({"os.(*File).Read", "internal/poll.(*FD).Read", "syscall.read"},
                            self.names(data))
            path += ".rec"
            self.run_tool("record", "--duration=200ms", "-o", path, pid, status=(0, 1))
            self.assertIn("runtime.futex", self.names(self.json(path)))


if __name__ == "__main__":
    main()
