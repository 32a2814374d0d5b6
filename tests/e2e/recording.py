"""A reader of recordings made from stacksnap-recording(5) alone, so that the page and the
writer are checked against each other. It trusts the file, and reads all of it at once."""

import ctypes
import ctypes.util
import functools
import os
import struct

MAGIC = b"\x89SSREC\r\n"
TASK_KINDS = ["thread", "goroutine", "asyncio-task"]
STATUS = ["unknown", "runnable", "running", "syscall", "waiting", "preempted", "copystack"]
KINDS = {1: "python", 2: "javascript", 3: "java", 4: "jit"}
ENDS = ["root", "frames", "limit", "no-unwind-info", "bad-unwind-info", "unreadable", "loop",
        "register", "gone", "running", "not-stopped", "traced", "denied", "runnable", "guessed"]


def library(name):
    path = ctypes.util.find_library(name)
    return ctypes.CDLL(path) if path else None


ZSTD = library("zstd")
XXH = library("xxhash")


def unpack(data, size):
    out = ctypes.create_string_buffer(size)
    ZSTD.ZSTD_decompress.restype = ctypes.c_size_t
    got = ZSTD.ZSTD_decompress(out, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)))
    if got != size:
        raise ValueError("zstd: %d instead of %d" % (got, size))
    return out.raw


def checksum(head, stored):
    """Returns None if the hash library is missing."""
    if not XXH:
        return None
    XXH.XXH3_64bits_withSeed.restype = ctypes.c_uint64
    first = XXH.XXH3_64bits_withSeed(head, ctypes.c_size_t(len(head)), ctypes.c_uint64(0))
    return XXH.XXH3_64bits_withSeed(stored, ctypes.c_size_t(len(stored)),
                                    ctypes.c_uint64(first))


def file_hash(path):
    """The hash that identifies a file without a build-id; None without the hash library."""
    if not XXH:
        return None
    with open(path, "rb") as file:
        data = file.read()
    headers, names = elf_sections(data)
    parts = [data[:64], elf_table(data, 0x20, 0x38, 56), elf_table(data, 0x28, 0x3c, 64)]
    for section in headers[1:]:
        name, kind, _, _, offset, size = struct.unpack_from("<IIQQQQ", section)
        name = data[names + name:].split(b"\0", 1)[0]
        if kind in (2, 3, 7, 11) or kind == 1 and name in (
                b".gopclntab", b".data.rel.ro.gopclntab", b".gnu_debugdata", b".gnu_debuglink"):
            parts.append(data[offset:offset + size])
    whole = b"".join(parts)[:128 << 20]

    class Hash(ctypes.Structure):
        _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]
    XXH.XXH3_128bits.restype = Hash
    value = XXH.XXH3_128bits(whole, ctypes.c_size_t(len(whole)))
    return "%016x%016x" % (value.high, value.low)


def elf_table(data, at, count_at, size):
    """The bytes of the program or section headers."""
    offset, = struct.unpack_from("<Q", data, at)
    count, = struct.unpack_from("<H", data, count_at)
    return data[offset:offset + count * size]


def elf_sections(data):
    """The section headers, and the offset of their names."""
    table = elf_table(data, 0x28, 0x3c, 64)
    headers = [table[at:at + 64] for at in range(0, len(table), 64)]
    index, = struct.unpack_from("<H", data, 0x3e)
    return headers, struct.unpack_from("<Q", headers[index], 24)[0]


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def left(self):
        return len(self.data) - self.at

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def number(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7f) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def signed(self):
        value = self.number()
        return -((value + 1) // 2) if value & 1 else value // 2

    def take(self, size):
        self.at += size
        return self.data[self.at - size:self.at]

    def text(self):
        return self.take(self.number()).decode("utf-8", "replace")


class Module:
    def __init__(self, **fields):
        self.__dict__.update(fields)


class Call(Module):
    """The call of a runtime."""


class Fields:
    """Numbered fields."""

    def __init__(self, c, strings=(), **members):
        self._fields, self._strings = {}, strings
        self.__dict__.update(members)
        while c.left():
            key = c.number()
            self._fields.setdefault(key >> 1, []).append(
                c.take(c.number()) if key & 1 else c.number())

    def get(self, field, absent=None):
        return self._fields.get(field, [absent])[-1]

    def number(self, field):
        return self.get(field, 0)

    def numbers(self, *fields):
        return [self.get(field, 0) for field in fields]

    def all(self, field):
        return self._fields.get(field, [])

    def string(self, field):
        return self._strings[self.get(field)] if field in self._fields else None

    def signed(self, field):
        value = self.get(field, 1)
        return -((value + 1) // 2) if value & 1 else value // 2

    def text(self, field):
        return self.get(field, b"").decode("utf-8", "replace")

    def nested(self, field):
        return Fields(Cursor(self.get(field, b"")), self._strings)


class Recording:
    """samples: dicts with sequence, tick, time, monotonic, pid, tid, name, state, cpu_us, call,
    argument, wait, repeated, missed, stopped, end, frames: (Module or None, value, flags, area or
    Call)."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        if self.data[:8] != MAGIC:
            raise ValueError("no recording")
        self.version, _, order = struct.unpack_from("<HHI", self.data, 8)
        if order != 0x01020304:
            raise ValueError("byte order")
        self.samples, self.modules, self.threads, self.processes = [], [], [], []
        self.waits, self.coverage, self.tasks = [], [], []
        self.perf_maps = {}  # process: bytes
        self.segments, self.ticks, self.missed, self.stopped = [], 0, 0, 0
        self.summary = None
        self.events, self.trace = [], None  # events: one for each sample
        self.cut = False
        self._chunks()

    def _chunks(self):
        at = 16
        while at < len(self.data):
            head = self.data[at:at + 24]
            if len(head) < 24:
                self.cut = True
                return
            kind, packed, size, raw = struct.unpack_from("<4sIII", head)
            stored = self.data[at + 24:at + 24 + size]
            if len(stored) < size:
                self.cut = True
                return
            if checksum(head[:16], stored) not in (None, struct.unpack_from("<Q", head, 16)[0]):
                raise ValueError("checksum at %d" % at)
            self.summary = None
            body = Cursor(unpack(stored, raw) if packed else stored)
            {b"SEGM": self._segment, b"DEFS": self._definitions, b"SMPL": self._samples,
             b"EVNT": self._events, b"PMAP": self._perf_map, b"SUMM": self._summary}[kind](body)
            at += 24 + size

    def _segment(self, c):
        self.segments.append([c.number() for _ in range(5)])
        self.machine, self.host, self.writer = c.text(), c.text(), c.text()
        self.scope = c.number() if c.left() else 0
        self.wait_functions = c.text() if c.left() else ""
        self._strings = [None]
        self._processes, self._threads, self._modules = [], [], []
        self._frames, self._stacks, self._calls, self._probes = [], [], [], []

    def _same(self, table, key, thing):
        """Returns the equal object of an earlier segment, or else this one."""
        for other in table:
            if other.key == key:
                return other
        thing.key = key
        table.append(thing)
        return thing

    def _definitions(self, c):
        while c.left():
            kind, size = c.number(), c.number()
            self._define(kind, Cursor(c.take(size)))

    def _define(self, kind, c):
        if kind == 1:
            self._strings.append(c.data.decode("utf-8", "replace"))
        elif kind == 2:
            f = Fields(c, self._strings)
            pid, begin, start = f.numbers(1, 4, 5)
            self._processes.append(self._same(self.processes, (pid, start, begin), Module(
                pid=pid, name=f.string(2) or "", executable=f.string(3), begin=begin, end=0)))
        elif kind == 3:
            f = Fields(c, self._strings)
            process, tid, begin = f.numbers(1, 2, 4)
            process = self._processes[process]
            self._threads.append(self._same(self.threads, (process.key, tid, begin), Module(
                process=process, tid=tid, name=f.string(3) or "", begin=begin, end=0)))
        elif kind == 4:
            f = Fields(c, self._strings)
            m, file = f.nested(2), f.nested(2).nested(7)
            process, (bias, begin) = self._processes[f.number(1)], f.numbers(3, 4)
            path, build_id, (base, size) = m.string(1), m.string(2), m.numbers(3, 4)
            self._modules.append(self._same(
                self.modules, (process.key, path, build_id, base, size, bias, begin), Module(
                    path=path, build_id=build_id, base=base, size=size, bias=bias, begin=begin,
                    end=0, deleted=m.number(5),
                    file=file.numbers(1, 2, 3) + [file.string(4)] if m.get(7) else None)))
        elif kind == 5:
            module, value, flags = [c.number() for _ in range(3)]
            if flags >> 2 & 7 == 5:
                kind, function, file, line = [c.number() for _ in range(4)]
                assert not module and not value
                self._frames.append((None, 0, flags, Call(
                    kind=KINDS[kind], function=self._strings[function],
                    file=self._strings[file], line=line)))
                return
            area = None if module else self._strings[c.number()]
            process = None if module else self._processes[c.number()]
            assert module or process
            self._frames.append((self._modules[module - 1] if module else None, value, flags,
                                 area))
        elif kind == 6:
            end, reason, shared, count = [c.number() for _ in range(4)]
            outer = self._stacks[-1][2][-shared:] if shared else []
            listed = [self._frames[c.number()] for _ in range(count)]
            self._stacks.append((ENDS[end], self._strings[reason], listed[::-1] + outer))
        elif kind == 7:
            self._calls.append((c.signed(), c.number(), Fields(c) if c.left() else None))
        elif kind in (8, 9, 11):
            table = {8: self._threads, 9: self._modules, 11: self._processes}[kind]
            ended = table[c.number()]
            ended.end = c.number()
        elif kind == 10:
            thread, _, name = [c.number() for _ in range(3)]
            self._threads[thread].name = self._strings[name]
        elif kind == 12:
            thread, owner, flags = [c.number() for _ in range(3)]
            self.waits.append(Fields(c, thread=self._threads[thread], deadlock=bool(flags & 1),
                                     owner=self._threads[owner - 1] if owner else None))
        elif kind == 13:
            f = Fields(c, self._strings)
            module = f.get(1)
            self._probes.append(Module(
                module=None if module is None else self._modules[module], offset=f.number(2),
                name=f.string(3), flags=f.number(4) | f.number(5) << 1 | f.number(6) << 2))
        elif kind == 14:
            names = ("hits", "read", "lost", "skipped", "unpaired", "ended")
            self.trace = dict(zip(names, Fields(c).numbers(1, 2, 3, 4, 5, 6)))
        elif kind == 18:
            f = Fields(c, self._strings)
            known = f.nested(4)
            self.coverage.append({
                "tick": f.number(1), "process": self._processes[f.number(2)],
                "kind": TASK_KINDS[f.number(3)], "changed": known.number(2),
                "unread": known.number(3), "problem": known.string(4)})
        elif kind == 19:
            f = Fields(c, self._strings)
            thread, stack, task = f.get(9), self._stacks[f.number(10)], f.nested(20)
            self.tasks.append({
                "tick": f.number(1), "process": self._processes[f.number(2)],
                "kind": TASK_KINDS[f.number(3)], "id": task.number(16), "name": task.string(2),
                "status": STATUS[task.number(17)], "wait_reason": task.string(18),
                "waiting_ns": task.number(20), "runtime": task.string(26),
                "thread": None if thread is None else self._threads[thread],
                "end": stack[0], "frames": stack[2], "on_thread": bool(task.number(21)),
                "changed": bool(task.number(22)), "lock_function": task.string(23),
                "awaits_all": bool(task.number(31)),
                "cycle_next": task.number(33) if task.number(32) else None, "awaited": task.all(30),
                "object": task.string(38), "endless": (None, "object", "loop", "nil_channel")[task.number(39)],
                "probable_holder": task.number(41) or None, "greenlet": bool(task.number(42))})

    def _events(self, c):
        assert c.number() == len(self.events)
        while c.left():
            head = c.number()
            kind, args, depth = head & 7, head >> 3 & 7, head >> 6
            if kind < 2:
                self.events.append({"kind": ["hit", "enter"][kind], "depth": depth,
                                    "probe": self._probes[c.number()], "duration": 0,
                                    "arguments": [c.number() for _ in range(args)]})
            else:
                event = self.events[-c.number()]
                assert event["kind"] == "enter", event
                event["kind"] = {2: "exit", 3: "left", 4: "open"}[kind]
                event["duration"] = c.number()

    def _samples(self, c):
        first, count, ticks, begin = [c.number() for _ in range(4)]
        distance, _, missed, stopped = c.signed(), c.number(), c.number(), c.number()
        self.missed += missed
        self.stopped += stopped
        if self.samples and self.samples[-1]["sequence"] + 1 != first:
            raise ValueError("a gap before %d" % first)
        self._ready = 0
        before, made, at, now, tick, end = [], [], 0, begin, {}, first + count
        while c.left():
            byte = c.byte()
            kind, bits = byte & 7, byte >> 3
            if kind == 0:
                before, made, at = made, [], 0
                now += c.number()
                distance += c.signed() if bits & 1 else 0
                tick = {"tick": self.ticks, "monotonic": now, "time": now + distance,
                        "missed": c.number() if bits & 2 else 0,
                        "stopped": c.number() if bits & 4 else 0}
                self.ticks += 1
                ticks -= 1
            elif kind in (1, 2):
                number = bits + 1 if bits < 31 else c.number() + 32
                for _ in range(number):
                    if kind == 1:
                        self._sample(first, tick, before[at], 0, True)
                        first += 1
                        made.append(before[at])
                    at += 1
            elif kind == 3:
                thread, stack, state, call = (c.number(), None, None, None) if bits & 1 else \
                    before[at]
                at += not bits & 1
                stack = c.number() if bits & 2 else stack
                state = chr(c.byte()) if bits & 4 else state
                cpu = c.number() if bits & 8 else 0
                if bits & 16:
                    call = c.number()
                ready, self._ready = self._ready, 0
                made.append((thread, stack, state, call))
                self._sample(first, tick, made[-1], cpu, False, ready)
                first += 1
            elif kind == 4:
                self._ready = c.number()
            else:
                raise ValueError("operation %d" % kind)
        if ticks or first != end:
            raise ValueError("the chunk's head counts wrong")

    def _sample(self, sequence, tick, entry, cpu, repeated, ready=0):
        thread, stack, state, call = entry
        thread, stack = self._threads[thread], self._stacks[stack]
        number, argument, wait = self._calls[call - 1] if call else (-1, 0, None)
        self.samples.append(dict(
            tick, sequence=sequence, pid=thread.process.pid, tid=thread.tid, thread=thread,
            state=state, cpu_us=cpu, ready_us=ready, repeated=repeated, end=stack[0], reason=stack[1],
            frames=stack[2], call=number, argument=argument, wait=wait))

    def _perf_map(self, c):
        process, _, offset = self._processes[c.number()], c.number(), c.number()
        before = self.perf_maps.get(process.key, b"")
        if offset != len(before):
            before = b""
        self.perf_maps[process.key] = before + c.take(c.left())

    def _summary(self, c):
        names = ("samples", "ticks", "missed", "stopped", "stopped_max", "thread_stops",
                 "duration", "reason")
        self.summary = dict(zip(names, [c.number() for _ in names]))
        self.summary["lost"] = c.number() if c.left() else 0
        self.summary["loss"] = c.text() if c.left() else ""


@functools.lru_cache(maxsize=1)
def read_state(path, *_):
    """The recording, or None if it cannot be read; once for each state of the file."""
    try:
        return Recording(path)
    except (OSError, ValueError, IndexError):
        return None


def read_growing(path):
    """A recording that is being written, or None if it cannot be read yet. The file grows once a
    second, and is decoded again only then."""
    try:
        state = os.stat(path)
    except OSError:
        return None
    return read_state(path, state.st_ino, state.st_size, state.st_mtime_ns)


def count_samples(path):
    """How many a recording that is being written has so far."""
    growing = read_growing(path)
    return len(growing.samples) if growing else 0
