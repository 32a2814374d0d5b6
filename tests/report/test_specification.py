"""Writes a recording according to stacksnap-recording(5), and checks what stacksnap report
reads. (tests/e2e/recording.py is the counterpart: it reads what stacksnap record writes.)"""
# ctest: quick

import ctypes
import json
import os
import struct
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from recordings import ReportTest, main  # noqa: E402
from recording import MAGIC, XXH, ZSTD, checksum  # noqa: E402

START, WALL = 7_000_000_000, 1_795_260_000_000_000_000


def number(value):
    out = b""
    while value > 0x7f:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def numbers(*values):
    return b"".join(number(value) for value in values)


def signed(value):
    return number(value * 2 if value >= 0 else -value * 2 - 1)


def text(value):
    return number(len(value)) + value


def pack(data):
    size = len(data) + 1000
    out = ctypes.create_string_buffer(size)
    ZSTD.ZSTD_compress.restype = ctypes.c_size_t
    got = ZSTD.ZSTD_compress(out, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)), 3)
    return ctypes.string_at(out, got)


def chunk(kind, contents, packed=False):
    """A compressed segment must not be larger."""
    stored = pack(contents) if packed else contents
    if len(stored) > len(contents):
        stored, packed = contents, False
    head = kind + struct.pack("<III", packed, len(stored), len(contents))
    return head + struct.pack("<Q", checksum(head, stored)) + stored


def header(version=2, order=0x01020304):
    return MAGIC + struct.pack("<HHI", version, 0, order)


def segment(first, begin=START):
    return chunk(b"SEGM", numbers(first, begin, WALL + begin - START, 10_000_000, 0) +
                 text(b"x86_64") + text(b"paper") + text(b"a second writer"))


def record(kind, *parts):
    contents = b"".join(part if isinstance(part, bytes) else number(part) for part in parts)
    return numbers(kind, len(contents)) + contents


def fields(**values):
    """Fields f1, f2 and so on: numbers, or bytes, which are fields."""
    return b"".join(number(int(name[1:]) << 1 | 1) + text(value) if isinstance(value, bytes)
                    else numbers(int(name[1:]) << 1, value) for name, value in values.items())


def definitions(module_path, build_id):
    """Strings 1 to 6, a process, two threads, a module, three frames, three stacks, a call."""
    names = [b"shop", b"/opt/shop", b"main", b"worker", module_path, build_id]
    out = b"".join(record(1, name) for name in names)
    out += record(2, fields(f1=100, f2=1, f3=2, f5=12345))
    out += record(3, fields(f2=100, f3=3))
    out += record(3, fields(f1=0, f2=101, f3=4, f4=START + 5, f99=b"of a later version"))
    out += record(99, b"of a later version")
    out += record(4, fields(f2=fields(f1=5, f2=6, f3=0x7f0000000000, f4=0x100000),
                            f3=0x7f0000000000))
    out += record(5, 1, 0x1000, 2, b"and more fields")  # a return address, module 0
    out += record(5, 1, 0x2000, 4)  # by CFI, an exact address
    out += record(5, 0, 0xdead0, 0, 0)  # in no module
    out += record(6, 0, 0, 0, 2, 0, 1)  # root: outermost frame 0, innermost frame 1
    out += record(6, 2, 0, 1, 1, 2)  # limit: the outermost one shared, then frame 2
    out += record(6, 0, 0, 2, 0)  # as the one before, but whole
    return out + record(7, signed(202), 0xabc0)


def samples(first=0):
    """Four ticks, 10 ms apart. The wall clock is set between the last two, and a tick was
    missed before them."""
    out = bytes([0]) + number(0)
    out += bytes([3 | (1 | 2 | 4 | 16) << 3]) + numbers(0, 0) + b"S" + number(1)
    out += bytes([3 | (1 | 2 | 4 | 8) << 3]) + numbers(1, 1) + b"R" + number(9000)
    out += bytes([0]) + number(10_000_000)
    out += bytes([1 | 1 << 3])  # both again
    out += bytes([0 | 2 << 3]) + numbers(20_000_000, 1)
    out += bytes([2 | 0 << 3])  # main is gone
    out += bytes([3 | (2 | 4) << 3]) + number(2) + b"D"
    out += bytes([0 | (1 | 4) << 3]) + number(10_000_000) + signed(-5_000_000_000) + number(777)
    out += bytes([1 | 0 << 3])
    return chunk(b"SMPL", numbers(first, 6, 4, START) + signed(WALL - START) +
                 numbers(40_000_000, 1, 777) + out, packed=True)


def summary():
    return chunk(b"SUMM", numbers(6, 4, 1, 777, 777, 3, 50_000_000, 2))


@unittest.skipUnless(ZSTD and XXH, "libzstd or libxxhash cannot be loaded")
class Specification(ReportTest):
    def write(self, *parts):
        path = self.path(self.id())
        with open(path, "wb") as file:
            file.write(b"".join(parts))
        return path

    def whole(self, packed=False):
        data = definitions(b"/no/such/library.so", b"abcd")
        return [header(), segment(0), chunk(b"NOTE", b"of a later version"),
                chunk(b"DEFS", data, packed=packed), samples(), summary()]

    def read(self, path, *messages, status=(1,)):
        result = self.report("-f", "json", path, status=status)
        for words in messages:
            self.assertIn(words, result.stderr.decode())
        return json.loads(result.stdout)

    def stacks(self, data):
        found = []
        for sample in data["samples"]:
            names, call = [], sample["call"]
            while call is not None:
                call, frame = data["calls"][call]
                names.append(data["frames"][frame]["name"])
            found.append((data["threads"][sample["thread"]]["name"], sample["tick"],
                          sample["count"], sample["state"], sample["wait"], names))
        return found

    def test_documented_format(self):
        outer, inner = "library.so+0xfff [abcd]", "library.so+0x2000 [abcd]"
        for packed in (False, True):
            parts = self.whole(packed)
            self.assertEqual(parts[3][4], packed)
            data = self.read(self.write(*parts), "1 tick was missed",
                             "the clock was set, or the machine slept, during the recording (-5.0 s")
            self.assertEqual(self.stacks(data), [
                ("main", 0, 2, "S", "futex", [inner, outer]),
                ("worker", 0, 2, "R", None, ["[unmapped]+0xdead0", outer, "[limit]"]),
                ("worker", 2, 2, "D", None, ["[unmapped]+0xdead0", outer])])
            self.assertEqual([s["cpu_ns"] for s in data["samples"]], [0, 9_000_000, 0])
            recording = data["recordings"][0]
            self.assertEqual((recording["host"], recording["missed"], recording["time_ns"]),
                             ("paper", 1, WALL))
            self.assertEqual(recording["ticks_ns"], [0, 10_000_000, 30_000_000, 40_000_000])
            self.assertEqual([(p["pid"], p["name"], p["executable"])
                              for p in data["processes"]], [(100, "shop", "/opt/shop")])

    def test_two_segments(self):
        """An object that a segment defines again is the same object."""
        parts = self.whole()[:-1] + [segment(6, START + 50_000_000)] + self.whole()[3:4]
        tick = bytes([0]) + number(0) + bytes([3 | 7 << 3]) + numbers(1, 0) + b"R"
        parts += [chunk(b"SMPL", numbers(6, 1, 1, START + 50_000_000) + signed(WALL - START) +
                        numbers(0, 0, 0) + tick), summary()]
        data = self.read(self.write(*parts))
        self.assertEqual(len(data["processes"]), 1)
        self.assertEqual(len(data["threads"]), 2)
        self.assertEqual(len(data["modules"]), 1)
        self.assertEqual(sum(s["count"] for s in data["samples"]), 7)

    def test_perf_maps(self):
        """Two processes with different code at the same addresses; that of the second changes."""
        def part(process, stable_size, offset, lines):
            return chunk(b"PMAP", numbers(process, stable_size, offset) + lines)
        data = definitions(b"/no/such/library.so", b"abcd")
        data += record(1, b"[jit]") + record(2, fields(f1=200, f2=1, f3=2))
        data += record(3, fields(f1=1, f2=200, f3=3))
        for process in (0, 1):
            for address in (0x5010, 0x6000, 0x7020):
                data += record(5, 0, address, 2, 7, process)
        data += record(6, 0, 0, 0, 3, 3, 4, 5) + record(6, 0, 0, 0, 3, 6, 7, 8)
        tick = bytes([0]) + number(0)
        for thread, stack in ((0, 3), (2, 4)):
            tick += bytes([3 | (1 | 2 | 4) << 3]) + numbers(thread, stack) + b"S"
        first = b"7000 100 half\n5000 100 one\n5f00 100 two\n7000 10 not.here\n"
        second = b"5000 100 a\n7000 100 c\n"
        parts = [header(), segment(0), chunk(b"DEFS", data),
                 chunk(b"SMPL", numbers(0, 2, 1, START) + signed(WALL - START) +
                       numbers(0, 0, 0) + tick),
                 part(0, 1000, 90, first[:20]), part(0, 1000, 110, first[20:]),
                 part(1, 0, 0, b"5000 3000 void\n"),  # begins anew:
                 part(1, len(second), 0, second),
                 part(1, len(second), len(second), b"5f80 100 b\n7010 20 d\n"),
                 chunk(b"SUMM", numbers(2, 1, 0, 0, 0, 0, 0, 2))]
        data = self.read(self.write(*parts), status=(0,))
        self.assertEqual([names for *_, names in self.stacks(data)],
                         [["[jit]", "two", "one"], ["[jit]", "b", "a"]])

    def test_corrupted(self):
        """Read up to the damage, with a note."""
        parts = self.whole()
        wrong_sum = bytearray(parts[4])
        wrong_sum[20] ^= 1
        no_sequence = samples(first=1)
        for name, broken in (("sum", bytes(wrong_sum)), ("sequence", no_sequence),
                             ("cut", parts[4][:-1])):
            path = self.write(*parts[:4], broken)
            result = self.report(path, status=(2,))
            self.assertRegex(result.stderr.decode(), "corrupted|truncated", name)
        data = self.read(self.write(*parts[:5]), "no end marker: the recorder is still running")
        self.assertEqual(sum(s["count"] for s in data["samples"]), 6)


if __name__ == "__main__":
    main()
