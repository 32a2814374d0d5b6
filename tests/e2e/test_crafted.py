"""A library of the process was crafted to break its readers: its unwind tables, symbols, debug
information or compressed sections. The tool must end soon and without an error, stay within its
memory limit, and show everything outside of that library correctly.
"""
# ctest: timeout=600 long-without-sanitizers

import lzma
import os
import random
import re
import resource
import shutil
import struct
import subprocess
import tempfile

from harness import EndToEnd, MAIN_STACK, STACKSNAP, Snapshot, TARGETS, main

CC = os.environ.get("CC", "cc")
SANITIZED = bool(os.environ.get("SANITIZED"))
MEBIBYTE = 1 << 20

# As targets/dlchain_link.c has it; ESCAPE are instructions of its unwind table.
SOURCE = """
#include <stddef.h>
typedef void chain_function(void *chain, void (*arrive)(void));
void chain_1(void *chain, void (*arrive)(void))
{
	chain_function **next = (chain_function **)chain + 1;

	__asm__ volatile("ESCAPE" ::: "memory");
	(*next)(next, arrive);
	__asm__ volatile("" ::: "memory");
}
"""

# One unit of DWARF 4 that covers chain_1: CHILDREN are its entries, LINES its line program.
DWARF = r"""
	.section .debug_abbrev,"",@progbits
	.uleb128 1, 0x11; .byte 1; .uleb128 0x10, 0x17, 0x11, 0x01, 0x12, 0x07, 0, 0
	.uleb128 2, 0x0b; .byte 1; .uleb128 0, 0
	.uleb128 3, 0x1d; .byte 1; .uleb128 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0, 0
	.uleb128 4, 0x2e; .byte 1; .uleb128 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0, 0
	.byte 0
	.section .debug_info,"",@progbits
unit:	.long unit_end - . - 4; .value 4; .long 0; .byte 8
	.byte 1; .long 0; .quad chain_1; .quad 256
CHILDREN
	.byte 0
unit_end:
	.section .debug_line,"",@progbits
	.long line_end - . - 4; .value 4; .long line_code - . - 4
	.byte 1, 1, 1, -5, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1
	.byte 0
	.asciz "a.c"
	.byte 0, 0, 0, 0
line_code:
	.byte 0, 9, 2; .quad chain_1
LINES
	.byte 2, 128, 1, 0, 1, 1
line_end:
"""


def dwarf(children="", lines=""):
    return DWARF.replace("CHILDREN", children).replace("LINES", lines)


def compile_library(path, escape="", assembly=None, flags=()):
    directory = tempfile.mkdtemp()
    try:
        with open(directory + "/a.c", "w") as file:
            file.write(SOURCE.replace("ESCAPE", escape))
        sources = [directory + "/a.c"]
        if assembly:
            with open(directory + "/b.s", "w") as file:
                file.write(assembly + '\t.section .note.GNU-stack,"",@progbits\n')
            sources.append(directory + "/b.s")
        subprocess.run([CC, "-O1", "-shared", "-fPIC", "-fno-omit-frame-pointer", "-Wl,--build-id",
                        *flags, "-o", path, *sources], check=True)
    finally:
        shutil.rmtree(directory)


class Elf:
    """The section headers of a file, to be changed in place."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            self.bytes = bytearray(file.read())
        self.table, = struct.unpack_from("<Q", self.bytes, 40)
        self.count, names = struct.unpack_from("<HH", self.bytes, 60)
        headers = [self.header(i) for i in range(self.count)]
        strings = headers[names][4]
        self.index = {}
        for i, header in enumerate(headers):
            name = self.bytes[strings + header[0]:].split(b"\0", 1)[0].decode()
            self.index[name] = i

    def header(self, index):
        return list(struct.unpack_from("<IIQQQQIIQQ", self.bytes, self.table + 64 * index))

    def change(self, name, **fields):
        header = self.header(self.index[name])
        for field, value in fields.items():
            header[("name", "type", "flags", "addr", "offset", "size", "link", "info", "align",
                    "entsize").index(field)] = value
        struct.pack_into("<IIQQQQIIQQ", self.bytes, self.table + 64 * self.index[name], *header)

    def fill(self, name, content):
        header = self.header(self.index[name])
        content = (content * (header[5] // len(content) + 1))[:header[5]]
        self.bytes[header[4]:header[4] + header[5]] = content

    def section(self, name):
        header = self.header(self.index[name])
        return self.bytes[header[4]:header[4] + header[5]]

    def save(self):
        with open(self.path, "wb") as file:
            file.write(self.bytes)


class Crafted(EndToEnd):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)
        for index in (0, 2):
            shutil.copy("%s/chain/libchain_%d.so" % (TARGETS, index), self.directory)
        self.library = self.directory + "/libchain_1.so"
        self.limit = None

    def limit_memory(self):
        if self.limit:
            resource.setrlimit(resource.RLIMIT_DATA, (self.limit, self.limit))

    def run_measured(self, *words):
        """A snapshot, and the peak memory of the tool's processes."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen([STACKSNAP, *map(str, words)], stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err, preexec_fn=self.limit_memory)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            result = subprocess.CompletedProcess(process.args, process.returncode, out.read(),
                                                 err.read())
        self.assertIn(result.returncode, (0, 1), result.stderr.decode())
        return result, usage.ru_maxrss * 1024

    def check(self, complete=True, dies=None, memory=256 * MEBIBYTE, words=()):
        """complete: the stack is complete; dies: the reason why the sandbox dies."""
        target = self.start("dlchain", 3, self.directory)
        result, peak = self.run_measured("-f", "json", *words, target.pid)
        snapshot = Snapshot(result)
        self.assert_free(target.pid)
        self.assert_stack(snapshot, "dlchain", MAIN_STACK)
        thread = snapshot.thread("chain")
        names = [frame["symbol"] for frame in snapshot.frames(thread)]
        self.assertEqual(names[1], "chain_2", names)
        self.assertEqual(os.path.basename(snapshot.module(snapshot.frames(thread)[2])["path"]),
                         "libchain_1.so")
        if complete:
            self.assertEqual(thread["end"], "root", thread["reason"])
            self.assertEqual(names[3:5], ["chain_0", "thread_routine"])
        if dies:
            self.assertRegex(snapshot.data["problem"], dies)
        else:
            self.assertIsNone(snapshot.data["problem"])
        self.assertEqual(snapshot.status, int(bool(dies) or thread["end"] != "root"))
        if not SANITIZED:
            self.assertLess(peak, memory)

    def test_nothing_crafted(self):
        """The baseline that the other tests are compared with."""
        compile_library(self.library, assembly=dwarf())
        self.check()

    def test_frames(self):
        """CFA expressions that never end or make no sense."""
        for name, escape in (
                ("a jump to itself", ".cfi_escape 0x0f, 3, 0x2f, 0xfd, 0xff"),
                ("a conditional one", ".cfi_escape 0x0f, 5, 0x31, 0x28, 0xfc, 0xff, 0x30"),
                ("a stack that grows", ".cfi_escape 0x0f, 4, 0x12, 0x2f, 0xfc, 0xff"),
                ("no operands", ".cfi_escape 0x0f, 2, 0x22, 0x22"),
                ("division by zero", ".cfi_escape 0x0f, 3, 0x31, 0x30, 0x1b"),
                ("address zero", ".cfi_escape 0x0f, 2, 0x30, 0x06"),
                ("a length beyond the end", ".cfi_escape 0x0f, 0xff, 0xff, 0xff, 0xff, 0x0f"),
                ("itself", ".cfi_escape 0x0c, 7, 0"),
                ("a register that is none", ".cfi_escape 0x0c, 0xff, 0xff, 0x7f, 8"),
                ("states without end", ".rept 3000; .cfi_remember_state; .endr")):
            with self.subTest(escape=name):
                compile_library(self.library, escape=escape)
                self.check(complete=False)

    def test_live(self):
        """Live unwinding of an endless expression ends at the time limit, and says so. (The
        watchdog, which is later, would end the tool with status 2.)"""
        compile_library(self.library, escape=".cfi_escape 0x0f, 3, 0x2f, 0xfd, 0xff")
        target = self.start("dlchain", 3, self.directory)
        snapshot = self.snap(target.pid, mode="live", timeout_ms=400, status=(0, 1))
        self.assert_stack(snapshot, "dlchain", MAIN_STACK)
        self.assertIn("--timeout", snapshot.thread("chain")["reason"])

    def test_live_is_for_trusted_targets(self):
        text = re.sub(r"\s+", " ", self.run_tool("snap", "--help").stdout.decode())
        self.assertIn("live parses files of the process with privileges: use it for trusted targets "
                      "only", text)

    def test_unwind_tables(self):
        noise = random.Random(1).randbytes(1 << 16)
        for section in (".eh_frame", ".eh_frame_hdr"):
            for name, content in (("ones", b"\xff"), ("zeros", b"\0"), ("noise", noise),
                                  ("one entry after another", b"\x01\0\0\0\0")):
                with self.subTest(section=section, content=name):
                    compile_library(self.library)
                    elf = Elf(self.library)
                    elf.fill(section, content)
                    elf.save()
                    self.check(complete=False)
        compile_library(self.library)
        elf = Elf(self.library)
        header = elf.section(".eh_frame_hdr")
        struct.pack_into("<I", header, 8, 0x7fffffff)  # entries
        elf.fill(".eh_frame_hdr", bytes(header))
        elf.save()
        self.check(complete=False)

    def test_section_headers(self):
        for name, section, fields in (
                ("symbols of 2^63 bytes", ".symtab", {"size": 1 << 63}),
                ("symbols behind the end", ".symtab", {"offset": 1 << 40}),
                ("symbols of no size", ".symtab", {"entsize": 0}),
                ("names that are symbols", ".symtab", {"link": 0xffffffff}),
                ("names that end nowhere", ".strtab", {"size": 3}),
                ("names elsewhere", ".strtab", {"offset": (1 << 64) - 1, "size": 2}),
                ("packed symbols", ".symtab", {"flags": 0x800}),
                ("names of sections", ".shstrtab", {"size": (1 << 64) - 1}),
                ("a build-id of 4 GiB", ".note.gnu.build-id", {"size": 1 << 32}),
                ("packed debug information", ".debug_info", {"flags": 0x800}),
                ("overlapping tables", ".debug_abbrev", {"offset": 0, "size": 1 << 20})):
            with self.subTest(header=name):
                compile_library(self.library, assembly=dwarf())
                elf = Elf(self.library)
                elf.change(section, **fields)
                elf.save()
                self.check()

    def test_many_sections(self):
        """With more than 65,279 sections the count is in the first header."""
        compile_library(self.library)
        elf = Elf(self.library)
        struct.pack_into("<H", elf.bytes, 60, 0)
        elf.index[""] = 0
        elf.change("", size=1 << 40)
        elf.save()
        self.check()

    def test_packed_symbols(self):
        """.gnu_debugdata of a few kilobytes that expands beyond the limit."""
        packed = self.directory + "/packed"
        compressor = lzma.LZMACompressor(preset=0)
        with open(packed, "wb") as file:
            for _ in range(260):
                file.write(compressor.compress(bytes(MEBIBYTE)))
            file.write(compressor.flush())
        compile_library(self.library)
        subprocess.run(["objcopy", "--strip-all", "--add-section", ".gnu_debugdata=" + packed,
                        self.library], check=True)
        # twice the limit on unpacked bytes, because a buffer grows by doubling
        self.check(memory=640 * MEBIBYTE)

    def test_entries(self):
        """Blocks nested without end, and countless siblings."""
        for name, children in (("depth", ".fill 20000000, 1, 2"),
                               ("siblings", ".fill 1000000, 2, 2"),
                               ("ends", ".fill 1000000, 1, 0"),
                               ("no such entry", ".fill 100000, 1, 0x7f")):
            with self.subTest(entries=name):
                compile_library(self.library, assembly=dwarf(children=children),
                                flags=["-Wl,--compress-debug-sections=zlib"])
                self.check()

    def test_entries_that_take_forever(self):
        """Without DW_AT_sibling libdw skips all descendants once for each level."""
        compile_library(self.library, assembly=dwarf(
            children=".fill 100, 1, 2; .fill 10000000, 2, 2"),
                        flags=["-Wl,--compress-debug-sections=zlib"])
        self.check(dies=r"^the analysis of libchain_1.so timed out during symbolization, "
                   "module skipped(;|$)", words=["--interpret-timeout=8"])

    def test_cycles_of_origins(self):
        """Inlined calls whose origins form a cycle."""
        one = ".byte %d; .long origin - unit; .quad chain_1; .quad 64\n"
        compile_library(self.library, assembly=dwarf(
            children="origin:\n" + one % 4 + (one % 3) * 100))
        self.check()

    def test_countless_lines(self):
        """A compressed line program that needs eighty bytes of memory for each byte. The tool
        inherits the memory limit of the test, to save time. (With sanitizers there is none.)"""
        count = 1000000 if SANITIZED else 100000000
        compile_library(self.library, assembly=dwarf(lines=".fill %d, 1, 0x20" % count),
                        flags=["-Wl,--compress-debug-sections=zlib"])
        self.assertLess(os.path.getsize(self.library), 4 * MEBIBYTE)
        self.limit = None if SANITIZED else 512 * MEBIBYTE
        self.check(memory=576 * MEBIBYTE)

    def test_noise(self):
        """Random changes of bytes that are not needed to run the library."""
        for seed in range(6):
            with self.subTest(seed=seed):
                compile_library(self.library, assembly=dwarf(children=".byte 2, 0, 2, 0"),
                                flags=["-g"])
                elf = Elf(self.library)
                numbers = random.Random(seed)
                for name in (".debug_info", ".debug_abbrev", ".debug_line", ".symtab",
                             ".strtab", ".eh_frame", ".eh_frame_hdr", ".debug_str"):
                    if name not in elf.index:
                        continue
                    content = elf.section(name)
                    for _ in range(max(len(content) // 16, 1)):
                        content[numbers.randrange(len(content))] = numbers.randrange(256)
                    elf.fill(name, bytes(content))
                elf.save()
                self.check_noise()

    def check_noise(self):
        """Names in that library may be anything; everything else is unchanged."""
        target = self.start("dlchain", 3, self.directory)
        result, _ = self.run_measured("-f", "json", target.pid)
        snapshot = Snapshot(result)
        self.assert_stack(snapshot, "dlchain", MAIN_STACK)
        frames = snapshot.frames(snapshot.thread("chain"))
        self.assertEqual(frames[1]["symbol"], "chain_2")
        self.assert_free(target.pid)


if __name__ == "__main__":
    main()
