"""Debug information that is made to harm its reader: its lines and inlined calls are not used, or
the analysis stays within its limits. Names come from the symbol table."""
# ctest: long-without-sanitizers

import os
import shutil
import struct
import subprocess
import tempfile
import zlib

from harness import TARGETS, EndToEnd, Snapshot, main

COMPRESSED = 0x800  # SHF_COMPRESSED
MIB = 1 << 20


class Elf:
    """The bytes of a 64-bit file, and where its section headers are."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = bytearray(file.read())
        offset, = struct.unpack_from("<Q", self.bytes, 0x28)
        size, count, names = struct.unpack_from("<HHH", self.bytes, 0x3a)
        self.headers = [offset + i * size for i in range(count)]
        strings = self.place(self.headers[names])[0]
        self.sections = {}
        for header in self.headers:
            at = strings + struct.unpack_from("<I", self.bytes, header)[0]
            self.sections[self.bytes[at:self.bytes.index(0, at)].decode()] = header

    def place(self, header):
        return struct.unpack_from("<QQ", self.bytes, header + 0x18)

    def replace(self, name, content, flags):
        """Appends the content of a section, which moves there."""
        struct.pack_into("<Q", self.bytes, self.sections[name] + 8, flags)
        struct.pack_into("<QQ", self.bytes, self.sections[name] + 0x18, len(self.bytes),
                         len(content))
        self.bytes += content


def zeros(size):
    """A section of so many zeros."""
    packer = zlib.compressobj(9)
    packed = [packer.compress(bytes(MIB)) for _ in range(size // MIB)]
    return struct.pack("<IIQQ", 1, 0, size, 1) + b"".join(packed) + packer.flush()


class HostileDwarf(EndToEnd):
    def start_changed(self, change):
        elf = Elf(os.path.join(TARGETS, "threads"))
        change(elf)
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        path = os.path.join(directory, "threads")
        with open(path, "wb") as file:
            file.write(elf.bytes)
        os.chmod(path, 0o755)
        return self.start_command([path, "1", "3"])

    def take(self, target):
        """Returns the frames of the program, and the memory of the largest process."""
        command = [os.environ["STACKSNAP"], "-f", "json", str(target.pid)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            output, errors = process.stdout.read(), process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            result = subprocess.CompletedProcess(command, process.returncode, output, errors)
        self.assertEqual(result.returncode, 0, errors)
        snapshot = Snapshot(result)
        self.assertIsNone(snapshot.data["problem"])
        own = [frame for thread in snapshot.threads for frame in thread["frames"]
               if os.path.basename(snapshot.module(frame)["path"]) == "threads"]
        self.assertIn("target_wait", [frame["symbol"] for frame in own])
        return own, usage.ru_maxrss

    def assert_no_lines(self, target):
        frames, memory = self.take(target)
        self.assertEqual({frame["file"] for frame in frames}, {None})
        return memory

    def test_unchanged(self):
        frames, _ = self.take(self.start_changed(lambda elf: None))
        self.assertIn("threads.c", {os.path.basename(frame["file"] or "") for frame in frames})

    def test_strings_that_do_not_end(self):
        """libdw 0.188 reads beyond the end of such a section."""
        for name in (".debug_line_str", ".debug_str"):
            with self.subTest(name=name):
                def change(elf, name=name):
                    offset, size = elf.place(elf.sections[name])
                    elf.bytes[offset + size - 1] = ord("x")
                self.assert_no_lines(self.start_changed(change))

    def test_compressed_strings_that_do_not_end(self):
        def change(elf):
            offset, size = elf.place(elf.sections[".debug_line_str"])
            content = bytes(elf.bytes[offset:offset + size - 1]) + b"x"
            elf.replace(".debug_line_str",
                        struct.pack("<IIQQ", 1, 0, size, 1) + zlib.compress(content), COMPRESSED)
        self.assert_no_lines(self.start_changed(change))

    def test_compressed_zeros(self):
        """300 KiB that stand for 300 MiB."""
        content = zeros(300 * MIB)
        self.assertLess(len(content), MIB)
        memory = self.assert_no_lines(self.start_changed(
            lambda elf: elf.replace(".debug_str", content, COMPRESSED)))
        if not os.environ.get("SANITIZED"):
            self.assertLess(memory, 200 << 10)  # KiB

    def test_compressed_zeros_within_the_limit(self):
        content = zeros(64 * MIB)
        frames, _ = self.take(self.start_changed(
            lambda elf: elf.replace(".debug_str", content, COMPRESSED)))
        self.assertIn("threads.c", {os.path.basename(frame["file"] or "") for frame in frames})


if __name__ == "__main__":
    main()
