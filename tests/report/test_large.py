"""Recordings that exceed the limits, or claim to: stacksnap report shows the part within the
limits and reports that the rest is too large, not that the file is corrupted. A small file
cannot exhaust memory or time."""
# ctest: long release-only

import os
import resource
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from recordings import STACKSNAP, Description, ReportTest, main  # noqa: E402
from recording import XXH, ZSTD  # noqa: E402
from test_specification import (START, WALL, chunk, fields, header, number, numbers, record,  # noqa: E402
                                segment, signed)

FRAMES = (1 << 20) - 1  # one less than the limit of one stack
STACKS = 70  # of so many frames: more than 64 million in all
TOO_LARGE = "exceeds the size limits of this reader; the rest is skipped"
STRING, PROCESS, THREAD, MODULE, FRAME, STACK, CALL = 1, 2, 3, 4, 5, 6, 7
TASK, GOROUTINE = 19, 1
PROCESS_RECORD = record(PROCESS, fields(f1=100, f2=1))
THREAD_RECORD = record(THREAD, fields(f2=100, f3=1))


def begin():
    """A process with a thread, frames 0 to STACKS, and stack 0 with one frame."""
    out = record(STRING, b"deep") + PROCESS_RECORD + THREAD_RECORD
    out += b"".join(record(FRAME, 0, 0x1000 * (i + 1), 0, 0, 0) for i in range(STACKS + 1))
    return definitions(out, record(STACK, 0, 0, 0, 1, 0))


def definitions(*records):
    return chunk(b"DEFS", b"".join(records), packed=True)


def sample(sequence, stack):
    tick = bytes([0]) + number(0) + bytes([3 | (1 | 2 | 4) << 3]) + numbers(0, stack) + b"S"
    return chunk(b"SMPL", numbers(sequence, 1, 1, START) + signed(WALL - START) +
                 numbers(0, 0, 0) + tick)


def summary(samples):
    return chunk(b"SUMM", numbers(samples, samples, 0, 0, 0, 0, 0, 2))


@unittest.skipUnless(ZSTD and XXH, "libzstd or libxxhash cannot be loaded")
class Large(ReportTest):
    def write(self, *parts):
        path = self.path(self.id())
        with open(path, "wb") as file:
            file.write(b"".join(parts))
        return path

    def count(self, *parts, status, note=None):
        """Returns the number of samples; the report has at most one note."""
        result = self.report("-f", "folded", self.write(*parts), status=(status,))
        text = result.stderr.decode()
        self.assertEqual(text.count("\n"), 1 if note else 0, text)
        if note:
            self.assertIn(note, text)
        return sum(int(line.rsplit(b" ", 1)[1]) for line in result.stdout.splitlines())

    def deep_stacks(self):
        """Stacks that differ only in the innermost frame are not truncated."""
        parts = [definitions(record(STACK, 0, 0, 0, FRAMES, bytes(FRAMES)))]
        parts += [definitions(*[record(STACK, 0, 0, FRAMES, 1, i + 1) for i in range(STACKS)])]
        return parts

    def test_many_frames(self):
        parts = [header(), segment(0), begin(), sample(0, 0), *self.deep_stacks(),
                 sample(1, 0), summary(2)]
        self.assertEqual(self.count(*parts, status=1, note=TOO_LARGE), 1)

    def test_many_frames_of_a_large_file(self):
        """The limit grows with the size of the recording."""
        parts = [header(), segment(0), chunk(b"NOTE", os.urandom(1 << 20)), begin(),
                 sample(0, 0), *self.deep_stacks(), sample(1, 0), summary(2)]
        self.assertEqual(self.count(*parts, status=0), 2)

    def test_many_segments(self):
        """Each segment defines what it needs; definitions of earlier ones do not count
        towards the limit."""
        many = record(FRAME, 0, 0x1000, 0, 0, 0) * (1 << 20)
        parts = [header(), segment(0), chunk(b"NOTE", os.urandom(3 << 20))]
        for i in range(17):
            parts += [segment(i), begin(), definitions(many), sample(i, 0)]
        self.assertEqual(self.count(*parts, summary(17), status=0), 17)

    def test_many_definitions(self):
        many = record(FRAME, 0, 0x1000, 0, 0, 0) * (1 << 21)
        parts = [header(), segment(0), begin(), sample(0, 0), *[definitions(many)] * 8,
                 sample(1, 0), summary(2)]
        self.assertEqual(self.count(*parts, status=1, note=TOO_LARGE), 1)

    def test_equal_stacks(self):
        """A few bytes each, but a million frames to join: without a limit, hours of work."""
        same = definitions(record(STACK, 0, 0, FRAMES, 0) * 3_000_000)
        parts = [header(), segment(0), begin(), sample(0, 0), *self.deep_stacks()[:1], same,
                 sample(1, 0), summary(2)]
        self.assertEqual(self.count(*parts, status=1, note=TOO_LARGE), 1)

    def test_replaced_perf_maps(self):
        """A replaced map is freed."""
        processes = 40
        more = definitions(*[record(PROCESS, fields(f1=200 + i, f2=1)) for i in range(processes)])
        parts = [header(), segment(0), chunk(b"NOTE", os.urandom(20 << 20)), begin(), more]
        text = bytes((32 << 20) - 16)
        for i in range(processes):
            parts += [chunk(b"PMAP", numbers(i + 1, 0, 0) + text, packed=True),
                      chunk(b"PMAP", numbers(i + 1, 0, 5))]
        path = self.write(*parts, sample(0, 0), summary(1))
        self.assert_bounded(path, 768, status=0)  # all maps have 1.25 GiB

    def assert_bounded(self, path, most_mib, status=1, form="folded"):
        """The report takes at most so much memory in any of its processes, and 20 seconds of
        processor time; more with sanitizers."""
        seconds = 120 if os.environ.get("SANITIZED") else 20

        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        with subprocess.Popen([STACKSNAP, "report", "-f", form, path], preexec_fn=limit,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            stderr = process.stderr.read().decode()
            _, code, usage = os.wait4(process.pid, 0)
            process.returncode = code
        self.assertEqual(os.waitstatus_to_exitcode(code), status, stderr)
        self.assertNotRegex(stderr, "memory|timed out|processor time|crashed")
        if not os.environ.get("SANITIZED"):
            self.assertLess(usage.ru_maxrss, most_mib << 10)
        return stderr

    def bomb(self, *parts, size, most_mib):
        """A recording with one sample, then parts, and another sample."""
        path = self.write(header(), segment(0), begin(), sample(0, 0), *parts, sample(1, 0),
                          summary(2))
        self.assertLess(os.path.getsize(path), size)
        self.assertIn(TOO_LARGE, self.assert_bounded(path, most_mib))

    def test_small_file_with_a_large_result(self):
        """Terabytes of names, of samples with deep stacks, or of changes from one deep stack to
        another. The limit grows with the file."""
        depth, ticks = 1000, 1 << 20
        name = record(STRING, b"/opt/" + b"name" * 10_000)
        module = record(MODULE, fields(f2=fields(f1=2, f3=1 << 40, f4=1 << 20), f3=1 << 40))
        frames = b"".join(record(FRAME, 1, i, 0) for i in range(1, 65))
        stacks = b"".join(record(STACK, 0, 0, 0, depth, bytes([i] * depth)) for i in range(64))
        def tick(operation):
            return bytes([0]) + number(1000) + operation
        first = bytes([0]) + number(0) + bytes([3 | (1 | 2 | 4) << 3]) + numbers(0, 0) + b"S"
        same = tick(bytes([1])) * (ticks - 1)
        other = b"".join(tick(bytes([3 | 2 << 3]) + number((i + 1) % 64)) for i in range(64)) * (
            ticks // 64)
        define = definitions(record(STRING, b"deep") + name + PROCESS_RECORD + THREAD_RECORD +
                             module + frames + stacks)
        for form, operations, count, more in (
                ("perf", same, ticks, 0), ("perf", same, ticks, 1 << 20),
                ("speedscope", other, ticks + 1, 0), ("folded", other, ticks + 1, 0)):
            with self.subTest(form=form, more=more):
                samples = chunk(b"SMPL", numbers(0, count, count, START) + signed(WALL - START) +
                                numbers(count * 1000, 0, 0) + first + operations, packed=True)
                path = self.write(header(), segment(0), chunk(b"NOTE", os.urandom(more)), define,
                                  samples, summary(count))
                self.assertLess(os.path.getsize(path), 30_000 + more)
                stderr = self.assert_bounded(path, 300, status=2, form=form)
                self.assertRegex(stderr, "the result is larger than %d MiB\n  [a-z]+: select less, "
                                         "or choose another format" % (320 if more else 192))

    def test_small_file_with_many_records(self):
        for many in (record(STRING, b""), THREAD_RECORD, record(CALL, 0, 0),
                     record(FRAME, 0, 0x1000, 0, 0, 0), PROCESS_RECORD,
                     record(TASK, fields(f3=GOROUTINE))):
            with self.subTest(kind=many[0]):
                many = definitions(many * ((32 << 20) // len(many)))
                self.bomb(*[many] * 8, size=40_000, most_mib=160)

    def test_small_file_with_deep_stacks(self):
        self.bomb(*self.deep_stacks(), size=40_000, most_mib=512)

    def test_many_recordings_as_perf(self):
        """The ticks of a recording are not those of the threads of others."""
        count, ticks = 100, 20_000
        d = Description()
        process = d.process()
        threads = [d.thread(process, 100 + i, "t") for i in range(count)]
        stack = d.stack((None, 0x10))
        for tick in range(ticks):
            d.tick()
            for thread in threads if tick in (0, ticks - 1) else ():
                d.sample(thread, stack)
        path = d.write(self.path("ticks.ss"))

        def lower():
            resource.setrlimit(resource.RLIMIT_CPU, (15, 15))
        events = self.report("-f", "perf", *[path] * count, preexec_fn=lower).stdout
        self.assertEqual(events.count(b" wall-clock:"), 2 * count * count)

    def test_difference_of_a_deep_stack(self):
        """Of many different functions: they are not compared with one another."""
        depth = 200_000
        frames = b"".join(record(FRAME, 0, 0x1000 * (i + 1), 0, 0, 0) for i in range(depth))
        path = self.write(header(), segment(0), definitions(
            record(STRING, b"deep"), record(PROCESS, 100, 1, 1, 0, 0), record(THREAD, 0, 100, 1, 0),
            frames, record(STACK, 0, 0, 0, depth, numbers(*range(depth)))), sample(0, 0), summary(1))

        def lower():
            resource.setrlimit(resource.RLIMIT_CPU, (15, 15))
        text = self.report("--diff", path, path, preexec_fn=lower).stdout.decode()
        self.assertIn("1 unchanged", text)

    def test_small_file_with_large_chunks(self):
        for type_ in (b"DEFS", b"PMAP"):
            with self.subTest(type=type_):
                many = chunk(type_, record(99, bytes((32 << 20) - 64)) if type_ == b"DEFS" else
                             numbers(0, 0, 0) + bytes((32 << 20) - 64), packed=True)
                self.bomb(*[many] * 2000, size=8_000_000, most_mib=160)

    def test_chunks_of_unknown_types(self):
        """They are not even unpacked."""
        many = chunk(b"MORE", bytes(32 << 20), packed=True)
        path = self.write(header(), segment(0), begin(), sample(0, 0), *[many] * 4000, summary(1))
        self.assert_bounded(path, 64, status=0)

    def test_small_file_with_many_samples(self):
        """Billions of samples, or millions of ticks, in a few kilobytes."""
        for threads, ticks in ((200, 4_000_000), (1, 5_000_000)):
            with self.subTest(threads=threads):
                samples = threads * (ticks + 1)
                first = bytes([0]) + number(0) + b"".join(
                    bytes([3 | (1 | 2 | 4) << 3]) + numbers(i, 0) + b"S" for i in range(threads))
                again = bytes([0]) + number(1000) + (
                    bytes([1 | 31 << 3]) + number(threads - 32) if threads > 31 else
                    bytes([1 | (threads - 1) << 3]))
                more = definitions(*[record(THREAD, 0, 101 + i, 1, 0) for i in range(threads)])
                path = self.write(
                    header(), segment(0), begin(), more,
                    chunk(b"SMPL", numbers(0, samples, ticks + 1, START) + signed(WALL - START) +
                          numbers(ticks * 1000, 0, 0) + first + again * ticks, packed=True),
                    summary(samples))
                self.assertLess(os.path.getsize(path), 10_000)
                self.assertIn("too large, shown only in part", self.assert_bounded(path, 160))


if __name__ == "__main__":
    main()
