#!/bin/sh
# Creates the seeds in corpus/. Run it again when a format changes. Inputs that once failed
# are added by hand and kept.
set -eu
cd "$(dirname "$0")/corpus"
mkdir -p maps stat status syscall cfi unwind symtab elf demangle segments perfmap recording report dwarf cgroup gather goroutines hotspot lookups v8 probe resolve waits
made=$(mktemp -d)
sleep 60 &
pid=$!
trap 'kill "$pid"; rm -rf "$made"' EXIT
cp "/proc/$pid/maps" maps/sleep
cp /proc/self/maps maps/self
cat >maps/odd <<'END'
00400000-00401000 r-xp 00000000 00:00 0
00401000-00402000 r--p 00001000 08:01 99 /tmp/a name with\012a newline (deleted)
7f0000000000-7f0000001000 rw-s 00000000 00:01 1024 /memfd:x (deleted)
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]
zz-1 r
100-50 ---p 0 0:0 0 [backwards]
ffffffffffffffff0-1 rwxp 0 0:0 0
END
cp "/proc/$pid/stat" stat/sleep
printf '7 (a) b) c) R 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 1 2' >stat/parentheses
printf '7 ()' >stat/short
cp "/proc/$pid/status" status/sleep
printf 'Tgid:\t7\nTracerPid:\t9\nUid:\t0\t0\t0\t0\nGid:\t1\nCapEff:\tffffffffffffffff\n' \
	>status/few
cp "/proc/$pid/syscall" syscall/sleep
printf 'nstd::vector<int>::push_back\nstd::vector<int, std::allocator<int> >::push_back(int const&)' >probe/template
printf 'nlibc*:f(int)\nvoid ns::f[abi:cxx11](int) const' >probe/scope
printf 'nprogram+0x10\na' >probe/offset
# endbr64; push %rbp; jump over a nop of five bytes; leave; ret; a jump out of the function
printf 'c\363\017\036\372\125\353\005\017\037\104\000\000\311\303\351\000\001\000\000' >probe/code
# A jump into an instruction.
printf 'c\353\001\270\220\220\220\220\303' >probe/inside
printf '12:freezer:/x\n1:name=systemd:/user.slice\n0::/user.slice/a b/..c\n' >cgroup/both
printf '0::/../../outside' >cgroup/outside
printf 'populated 1\nfrozen 1\n' >cgroup/events
printf '1\n4711\n99999999999999999999999\n' >cgroup/threads
echo running >syscall/running
echo '-1 0x7ffc00000000 0x7f0000000000' >syscall/outside

cat >"$made/seed.c" <<'END'
struct big { long words[40]; };
long leaf(long a) { return a * 3; }
long alloca_frame(long n) { volatile char a[n]; a[0] = 1; return a[n - 1]; }
long many(long a, long b, long c, long d, long (*f)(long))
{
	struct big big = { { a, b, c, d } };
	long sum = 0;

	for (int i = 0; i < 40; i++)
		sum += f(big.words[i] + a) * f(b) + f(c) * f(d);
	return sum;
}
static long hidden(long a) { return many(a, 1, 2, 3, leaf) + alloca_frame(a); }
long (*table[])(long) = { leaf, hidden };
END
small='-O1 -shared -fPIC -nostdlib -Wl,--build-id,-z,noseparate-code,-z,norelro'
# shellcheck disable=SC2086 # words
gcc $small -o "$made/plain" "$made/seed.c"
# shellcheck disable=SC2086 # words
gcc $small -fno-omit-frame-pointer -Wl,--hash-style=gnu -o "$made/pointers" "$made/seed.c"
strip --strip-all -o "$made/stripped" "$made/plain"
objcopy --strip-all "$made/plain" "$made/mini"
objcopy --strip-debug "$made/plain" "$made/names"
xz -k "$made/names"
objcopy --add-section .gnu_debugdata="$made/names.xz" "$made/mini"
# shellcheck disable=SC2086 # words
gcc $small -g -fno-asynchronous-unwind-tables -o "$made/debug" "$made/seed.c"
objcopy --strip-all --keep-section=.debug_frame "$made/debug" "$made/debug_frame"
cat >"$made/inlined.c" <<'END'
static inline __attribute__((always_inline)) long inner(long a) { return a * a + 3; }
static inline __attribute__((always_inline)) long outer(long a) { return inner(a) + inner(a + 1); }
long called(long a)
{
	long sum = outer(a);

	for (long i = 0; i < a; i++) {
		long more = inner(i);
		sum += more;
	}
	return sum;
}
END
nowhere="-fdebug-prefix-map=$PWD=/src -fdebug-prefix-map=$made=/src"
for version in 3 4 5; do
	# shellcheck disable=SC2086 # words
	gcc $small $nowhere -O2 -gdwarf-$version -gstrict-dwarf -o "$made/dwarf-$version" "$made/inlined.c"
done
if command -v clang >/dev/null; then
	# shellcheck disable=SC2086 # words
	clang $small $nowhere -O2 -gdwarf-5 -o "$made/dwarf-clang" "$made/inlined.c"
fi
for file in "$made"/dwarf-*; do
	python3 - "$file" "dwarf/${file##*/dwarf-}" <<'END'
import struct, subprocess, sys
from os import path, unlink
source, target = sys.argv[1:]
with open(target, "wb") as out:
    for name in "abbrev info line str line_str aranges ranges rnglists".split():
        copy = source + "." + name
        subprocess.run(["objcopy", "-O", "binary", "--only-section=.debug_" + name,
                        "--set-section-flags", ".debug_%s=alloc" % name, source, copy],
                       stderr=subprocess.DEVNULL)
        content = b""
        if path.exists(copy):
            with open(copy, "rb") as file:
                content = file.read()
            unlink(copy)
        out.write(struct.pack("<H", len(content)) + content)
    names = subprocess.run(["nm", source], stdout=subprocess.PIPE, text=True).stdout
    start = [int(line.split()[0], 16) for line in names.splitlines() if line.endswith(" called")]
    out.write(struct.pack("<H", start[0] & 0xffff))
END
done
# Probes: a file with symbols, lines, inlined calls and a USDT probe; what a child answers about it.
cat >"$made/usdt.c" <<'END'
static inline __attribute__((always_inline)) long inlined(long a) { return a * 3; }
unsigned short counter __attribute__((section(".probes")));
__attribute__((noinline)) long step(long a)
{
	__asm__ volatile("990: nop\n"
			 ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n"
			 ".4byte 992f-991f,994f-993f,3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"
			 "993: .8byte 990b,_.stapsdt.base,counter\n"
			 ".asciz \"seed\"\n.asciz \"point\"\n.asciz \"-8@(x)\"\n994: .balign 4\n"
			 ".popsection\n.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
			 ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n.popsection\n"
			 ::"r"(a), "m"(counter));
	return inlined(a) + 1;
}
long seed(long a) { return a > 7 ? step(a) + 1 : step(a - 1) * inlined(a); }
long also(long a) { return seed(a); }
END
# shellcheck disable=SC2086 # words
gcc $small $nowhere -O2 -g1 -gdwarf-5 -o "$made/usdt" "$made/usdt.c"
objcopy --strip-debug "$made/usdt" "$made/usdt-symbols"
{ echo 'seed:point'; cat "$made/usdt"; } >resolve/usdt
{ echo 'usdt.c:15'; cat "$made/usdt"; } >resolve/line
{ echo 'inlined'; cat "$made/usdt"; } >resolve/inlined
{ echo 's*'; cat "$made/usdt-symbols"; } >resolve/symbols
{ echo 'fuzz+0x307'; cat "$made/usdt-symbols"; } >resolve/offset
# A probe with an address, an offset, a name and a return; a note: see src/data/schema.h
printf 'answer\n\3\17\10\200\40\12\200\40\17\4seed\20\210\40\5\10\7\6a note' >resolve/answer
cp "$made/stripped" cfi/plain
cp "$made/debug_frame" cfi/debug_frame
cp "$made/pointers" symtab/plain
cp "$made/stripped" symtab/stripped
# Flags, addresses, and symbols: value, size, name, binding and type, section, empty ones before
python3 - >symtab/table <<'END'
import struct, sys
addresses = [0, 0x120, 0x148, 0x150, 0x1ff, 0x300, 0x7000, 0xfff0, 0xffff]
symbols = [(0x100, 0x40, 4, 0x12, 1, 0), (0x100, 0x40, 8, 0x22, 1, 200), (0x148, 0, 12, 0x02, 1, 1),
           (0x140, 0x20, 16, 0x02, 1, 255), (0x200, 0, 20, 0x10, 1, 0), (0x300, 8, 32, 0x02, 1, 255),
           (0x2f0, 0xffff, 24, 0x12, 1, 0), (0xfff0, 0xfff0, 124, 0x12, 2, 255)]
sys.stdout.buffer.write(bytes([0, len(addresses)]) + struct.pack("<9H", *addresses) +
                        b"".join(struct.pack("<2H4B", *symbol) for symbol in symbols))
END
cp "$made/mini" elf/embedded

# stacks FILE-OF-SYMBOLS STRIPPED-FILE PREFIX: the stack of three functions in that file
stacks() {
	python3 - "$1" "$2" "$3" <<'END'
import struct, subprocess, sys
symbols, stripped, prefix = sys.argv[1:]
names = subprocess.run(["readelf", "-sW", symbols], stdout=subprocess.PIPE, text=True).stdout
at = {line.split()[7]: int(line.split()[1], 16) for line in names.splitlines()
      if len(line.split()) == 8 and line.split()[1] != "Value"}
words = [at["many"] + 60 + 0x10000000, at["hidden"] + 20 + 0x10000000, 0x7ffff0000080] * 20
stack = struct.pack("<%dQ" % len(words), *words)[:464] + bytes(16)
with open(stripped, "rb") as file:
    elf = file.read()
for name, pc, fp in (("leaf", "leaf", 0), ("many", "many", 64), ("alloca", "alloca_frame", 32)):
    with open("unwind/" + prefix + name, "wb") as file:
        file.write(struct.pack("<4H", at[pc] + 8, 0, fp, len(stack) // 16) + stack + elf)
END
}
stacks "$made/plain" "$made/stripped" ""
if command -v clang >/dev/null && command -v ld.lld >/dev/null; then
	clang --target=aarch64-linux-gnu -nostdlib -shared -fPIC -fuse-ld=lld -O2 -fno-inline \
		-mbranch-protection=pac-ret -fno-stack-protector -Wl,-z,max-page-size=4096 \
		-Wl,--no-rosegment -o "$made/aarch64" "$made/seed.c"
	stacks "$made/aarch64" "$made/aarch64" aarch64-
	cp "$made/aarch64" cfi/aarch64
fi

printf '_ZNSt6vectorISt4pairIiSsESaIS1_EE9push_backERKS1_' >demangle/cplusplus
printf '_RNvMs_NtCs1_5alloc3vecINtB4_3VechE4push' >demangle/rust
printf '_ZN4core3fmt9Formatter3pad17h0123456789abcdefE' >demangle/rust-legacy
printf '_D3std5stdio7writelnFZv' >demangle/d
printf 'memcpy@@GLIBC_2.14' >demangle/version
# libiberty passes an empty piece, which is NULL
printf '_RNvC0stt' >demangle/empty-piece
printf '\001\020\002\010\004\005\000\377\004\006' >segments/nested
printf '\010\020\010\014\010\011\020\001' >segments/equal
printf '100 200 outer\n180 20 inner\n0x1c0 0x100 java.lang.Object.wait()\n110 300 again\nx y z\n' \
	>perfmap/overlaps
printf '1f0 ffffffffffffffff far\n' >>perfmap/overlaps
printf '7 8 a\0b\n8 1 c' >perfmap/zero
# Recordings without the file header, uncompressed, so that fuzzers can change their contents.
stacksnap=${STACKSNAP:-../../../build/release/stacksnap}
"$stacksnap" -f recording -o "$made/single" "$pid"
"$stacksnap" record -d 500ms -o "$made/calls" "$pid"
"$stacksnap" record -r 300 --children -o "$made/ticks" -- \
	sh -c 'for i in 1 2 3; do sleep 0.1; done'
"${stacksnap%/*}/tests/report/make_recording" "$made/waits" <<'END'
begin 5000000000 1795260000000000000 0 0 host x86_64
process 100 shop -
thread 0 100 one
thread 0 101 two
thread 0 102 behind
thread 0 103 itself
stack 0 -:0x10
wait 0 1 1 mutex lock%20b
wait 1 0 1 mutex lock%20a
wait 2 0 0 mutex lock%20a
wait 3 3 1 join its%20end
tick 5000000000 1795260000000000000 0
sample 0 0 S 0 -1 0
sample 1 0 S 0 -1 0
sample 2 0 S 0 -1 0
sample 3 0 S 0 -1 0
END
for name in single calls ticks waits; do
	../uncompress.py "$made/$name" "recording/$name"
	cp "recording/$name" "report/$name"
done
# Code without a file, and a perf map in two parts. Numbers below 128 are one byte.
python3 - recording/perfmap <<'END'
import struct, sys
def chunk(kind, *parts):
    body = b"".join(p if isinstance(p, bytes) else bytes([p]) for p in parts)
    return kind + struct.pack("<IIIQ", 0, len(body), len(body), 0) + body
def record(kind, *parts):
    body = b"".join(p if isinstance(p, bytes) else bytes([p]) for p in parts)
    return bytes([kind, len(body)]) + body
def fields(*pairs):  # number, value
    return b"".join(bytes([n << 1, v]) if isinstance(v, int) else bytes([n << 1 | 1, len(v)]) + v
                    for n, v in pairs)
defs = record(1, b"[jit]") + record(1, b"node") + record(2, fields((1, 7), (2, 2), (3, 2)))
defs += record(3, fields((2, 7), (3, 2)))
defs += b"".join(record(5, 0, at, 2, 1, 0) for at in (16, 32, 48))
defs += record(6, 0, 0, 0, 3, 0, 1, 2)
with open(sys.argv[1], "wb") as file:
    file.write(chunk(b"SEGM", 0, 0, 0, 0, 0, 0, 0, 0) + chunk(b"DEFS", defs) +
               chunk(b"SMPL", 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 3 | 7 << 3, 0, 0, b"S") +
               chunk(b"PMAP", 0, 8, 0, b"8 20 one") + chunk(b"PMAP", 0, 8, 8, b"\n1c 8 a\n1e 20 b\n") +
               chunk(b"SUMM", 1, 1, 0, 0, 0, 0, 0, 2))
END
cp recording/perfmap report/perfmap
# A trace: a hit with an argument, and two scopes, of which one ends in a chunk of its own.
python3 - recording/trace <<'END'
import struct, sys
def chunk(kind, *parts):
    body = b"".join(p if isinstance(p, bytes) else bytes([p]) for p in parts)
    return kind + struct.pack("<IIIQ", 0, len(body), len(body), 0) + body
def record(kind, *parts):
    body = b"".join(p if isinstance(p, bytes) else bytes([p]) for p in parts)
    return bytes([kind, len(body)]) + body
def fields(*pairs):  # number, value
    return b"".join(bytes([n << 1, v]) if isinstance(v, int) else bytes([n << 1 | 1, len(v)]) + v
                    for n, v in pairs)
defs = record(1, b"f()") + record(1, b"server") + record(2, fields((1, 7), (2, 2), (3, 2))) + record(3, fields((2, 7), (3, 2)))
defs += record(5, 0, 16, 0, 1, 0) + record(6, 0, 0, 0, 1, 0)
defs += record(13, fields((2, 16), (3, 1), (6, 1)))
defs += record(13, fields((2, 32), (3, 1), (4, 1), (5, 1)))
tick = (0, 1, 3 | 7 << 3, 0, 0, b"R")
with open(sys.argv[1], "wb") as file:
    file.write(chunk(b"SEGM", 0, 0, 0, 0, 0, 0, 0, 0, 3) + chunk(b"DEFS", defs) +
               chunk(b"SMPL", 0, 3, 3, 0, 0, 3, 0, 0, *tick, *tick, *tick) +
               chunk(b"EVNT", 0, 0 | 1 << 3, 1, 42, 1, 0, 1 | 1 << 6, 0, 2 | 1 << 6, 1, 9) +
               chunk(b"EVNT", 3, 3, 2, 20) + chunk(b"DEFS", record(14, fields((1, 5), (2, 5), (6, 1)))) +
               chunk(b"SUMM", 3, 3, 0, 0, 0, 0, 0, 3))
END
cp recording/trace report/trace
# Calls of a runtime: two functions, and the native frame for which they stand; a kind of a newer writer.
python3 - recording/runtime <<'END'
import struct, sys
def chunk(kind, *parts):
    body = b"".join(p if isinstance(p, bytes) else bytes([p]) for p in parts)
    return kind + struct.pack("<IIIQ", 0, len(body), len(body), 0) + body
def record(kind, *parts):
    body = b"".join(p if isinstance(p, bytes) else bytes([p]) for p in parts)
    return bytes([kind, len(body)]) + body
def fields(*pairs):  # number, value
    return b"".join(bytes([n << 1, v]) if isinstance(v, int) else bytes([n << 1 | 1, len(v)]) + v
                    for n, v in pairs)
defs = record(1, b"run") + record(1, b"/srv/a.py") + record(1, b"python3") + record(2, fields((1, 7), (2, 3), (3, 3)))
defs += record(3, fields((2, 7), (3, 3))) + record(5, 0, 0, 20, 1, 1, 2, 41) + record(5, 0, 0, 20, 1, 1, 0, 0)
defs += record(5, 0, 16, 2 | 32, 0, 0) + record(5, 0, 0, 20, 127, 1, 2, 3)
defs += record(6, 0, 0, 0, 4, 2, 1, 0, 3)
with open(sys.argv[1], "wb") as file:
    file.write(chunk(b"SEGM", 0, 0, 0, 0, 0, 0, 0, 0) + chunk(b"DEFS", defs) +
               chunk(b"SMPL", 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 3 | 7 << 3, 0, 0, b"S") +
               chunk(b"SUMM", 1, 1, 0, 0, 0, 0, 0, 2))
END
cp recording/runtime report/runtime
# Tasks of asyncio that wait for each other, and one that waits for a task that there is not.
python3 - recording/tasks <<'END'
import struct, sys
def chunk(kind, *parts):
    body = b"".join(p if isinstance(p, bytes) else bytes([p]) for p in parts)
    return kind + struct.pack("<IIIQ", 0, len(body), len(body), 0) + body
def record(kind, *parts):
    body = b"".join(p if isinstance(p, bytes) else bytes([p]) for p in parts)
    return bytes([kind, len(body)]) + body
def fields(*pairs):  # number, value
    return b"".join(bytes([n << 1, v]) if isinstance(v, int) else bytes([n << 1 | 1, len(v)]) + v
                    for n, v in pairs)
defs = record(1, b"run") + record(1, b"/srv/a.py") + record(1, b"python3") + record(1, b"Task")
defs += record(2, fields((1, 7), (2, 3), (3, 3))) + record(3, fields((2, 7), (3, 3))) + record(5, 0, 0, 20, 1, 1, 2, 41)
defs += record(6, 0, 0, 0, 1, 0) + record(18, fields((3, 2), (4, fields((1, 1), (2, 2), (3, 1)))))
for address, cycle, awaited in (16, 1, 1), (32, 0, 0), (48, None, 9):
    ring = () if cycle is None else ((32, 1), (33, cycle))
    task = fields((2, 1), (16, address), (17, 4), (18, 1), (22, 1), (30, awaited), (30, 0), *ring, (42, 1))
    defs += record(19, fields((3, 2), (9, 0), (20, task)))
with open(sys.argv[1], "wb") as file:
    file.write(chunk(b"SEGM", 0, 0, 0, 0, 0, 0, 0, 0) + chunk(b"DEFS", defs) +
               chunk(b"SMPL", 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 3 | 7 << 3, 0, 0, b"S") +
               chunk(b"SUMM", 1, 1, 0, 0, 0, 0, 0, 2))
END
cp recording/tasks report/tasks
# A heap of HotSpot's code with one compiled method, in the layout of fuzz_hotspot.c: by pointers, and
# by offsets.
python3 - hotspot <<'END'
import struct, sys
BASE, BLOB = 0x10000, 0x108
def make(offsets):
    memory = bytearray(0x600)
    def put(at, form, *values):
        struct.pack_into("<" + form, memory, at, *values)
    def pointer(at, to):
        put(at, "Q", BASE + to)
    pointer(0, 0x10)
    put(0x10, "I", 1)
    pointer(0x18, 0x20)
    pointer(0x20, 0x30)
    put(0x30, "QQQ", BASE + 0x100, BASE + 0x300, BASE + 0x80)
    put(0x50, "I", 7)
    memory[0x60:0x68] = b"nmethod\0"
    memory[0x80:0x84] = bytes([0, 1, 2, 3])
    memory[0x104] = 1
    pointer(BLOB, 0x60)
    put(BLOB + 8, "IiI", 0x1f0, 4, 4)
    pointer(BLOB + 48, 0x400)
    put(BLOB + 60, "I", 0x180)
    if offsets:
        put(BLOB + 12, "h", 4)
        put(BLOB + 20, "II", 0x80, 0xc0)
        put(BLOB + 32, "QII", BASE + BLOB + 0x120, 8, 0)
        put(BLOB + 60, "I", 0)
        put(BLOB + 72, "I", 24)
        put(BLOB + 80, "I", 0xb0)
        put(BLOB + 88, "QI", BASE + BLOB + 0x180, 40)
        scopes = 0x180 + 24
    else:
        put(BLOB + 24, "QQ", BASE + BLOB + 0x80, BASE + BLOB + 0xc0)
        put(BLOB + 60, "III", 0x180, 0x198, 0x120)
        put(BLOB + 72, "QQ", BASE + BLOB + 0x140, BASE + BLOB + 0xb0)
        scopes = 0x140
    put(BLOB + 0x180, "iiiiii", -1, 0, 8, 1, 100, 0)
    pointer(BLOB + 0x120, 0x400)
    memory[BLOB + scopes:BLOB + scopes + 4] = bytes([1, 1, 2, 6] if offsets else [0, 0, 1, 5])
    pointer(0x400, 0x440)
    pointer(0x440, 0x4a0)
    put(0x448, "IHHHH", 8, 1, 8, 1, 0)
    memory[0x460:0x464] = bytes([0x1b, 0x12, 0xff, 0])
    pointer(0x4a0, 0x500)
    put(0x4a8, "II", 3, 2)
    pointer(0x4b8, 0x568)
    pointer(0x4c0, 0x578)
    pointer(0x500, 0x558)
    pointer(0x508, 0x540)
    pointer(0x510, 0x4a0)
    put(0x540, "I", 1)
    pointer(0x548, 0x400)
    for at, text in ((0x558, b"a/B$C+0x1"), (0x568, b"run"), (0x578, b"B.java")):
        put(at, "H", len(text))
        memory[at + 2:at + 2 + len(text)] = text
    return bytes([3 if offsets else 0]) + bytes(7) + bytes(memory)
for name in ("pointers", "offsets"):
    with open(sys.argv[1] + "/" + name, "wb") as file:
        file.write(make(name == "offsets"))
END
# Gather plans and the memory that they are executed over, which begins at 0x1000.
python3 - lookups <<'END'
import os
import sys


def uleb(number):
    out = b""
    while number >= 128:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def strings(*texts):
    return uleb(len(texts)) + b"".join(uleb(len(text)) + text + b"\0" for text in texts)


def numbers(*values):
    return b"".join(uleb(value) for value in values)


two = (strings(b"outer", b"a.c", b"inner") + numbers(2, 0, 16, 8, 1, 2, 5, 1, 1, 3, 2, 9, 0) +
       numbers(3, 19, 0, 0, 0, 0, 0, 0))
seeds = {
    "two": two,
    "cut": two[:-9],
    "none": strings() + numbers(0),
    "bad-string": strings(b"f") + numbers(1, 0, 1, 1, 7, 0, 0, 0, 0),
    "many-inlines": strings(b"f") + numbers(1, 0, 1, 1, 1, 1, 1, 1, 64, *[1] * 256),
    "twice": strings() + numbers(2, *[0, 1, 1, 0, 0, 0, 0, 0] * 2),
}
for name, seed in seeds.items():
    with open(os.path.join(sys.argv[1], name), "wb") as file:
        file.write(seed)
END
python3 - gather <<'END'
import struct, sys
ALL = (1 << 64) - 1
def step(base=0, parent=0, mask=ALL, offset=0, size=16, field=0, stride=0, count_size=0,
         count_field=0, element=0, max_nodes=1, next=0, end_field=None, check=0):
    return struct.pack("<IIQQqIIIIIIIIIIII", base, parent, 0x1000, mask, offset, size, field,
                       stride, count_size, count_field, element, max_nodes, next,
                       8 if end_field is not None else 0, end_field or 0, check, 0)
def write(name, steps, memory, nodes=100, size=65536, reads=50):
    body = b"".join(steps).ljust(80 * 32, b"\0")
    with open(sys.argv[1] + "/" + name, "wb") as file:
        file.write(struct.pack("<IIIIII", 24 + len(body), len(steps), nodes, size, reads, 0) +
                   body + struct.pack("<%dQ" % len(memory), *memory))
write("list", [step(max_nodes=50)], [0x1020, 1, 0, 0, 0x1010, 3, 0])
write("cycle", [step(max_nodes=65536)], [0x1010, 1, 0x1020, 2, 0x1010, 3],
      nodes=65536, reads=4096)
write("array", [step(), step(4, count_size=8, count_field=8, element=8, size=4096),
                step(4, 1, stride=8, max_nodes=9)],
      [0x1010, 1 << 60, 0x1000, 0x1020, 0, 0x1040, 0x1048])
write("threads", [step(1, 3, max_nodes=5), step(2), step(3, 1, ALL - 7, -8)],
      [0x1009, 0x1019, 0x1021, 0x1030, 5, 6, 7])
write("stride", [step(size=1 << 20)] + [step(4, i, stride=8, size=4096) for i in range(31)],
      [0x1000] * 2000, nodes=65536, size=(1 << 20) - 1, reads=4096)
write("end", [step(check=16), step(4, end_field=8, size=64), step(4, offset=8, end_field=8)],
      [0x1010, 0x1028, 5, 6, 7, 8, 9])
END
python3 - goroutines <<'END'
import struct, sys
def write(name, version, statuses, slice_=None):
    # The offsets of Go 1.19 and 1.24.
    status, id_ = (144, 152) if version == 19 else (152, 160)
    memory = bytearray(0x200 + len(statuses) * 0x100)
    struct.pack_into("<QQQ", memory, 0, *(slice_ or (0x1020, len(statuses), len(statuses))))
    for i, value in enumerate(statuses):
        at = 0x200 + i * 0x100
        low = 0x100000 + i * 0x800
        struct.pack_into("<Q", memory, 0x20 + i * 8, 0x1000 + at)
        struct.pack_into("<QQ", memory, at, low, low + 0x800)
        struct.pack_into("<QQQ", memory, at + 56, low + 0x700, 0x401000, 0x1000 + at)
        struct.pack_into("<I", memory, at + status, value)
        struct.pack_into("<QQQB", memory, at + id_, i + 1, 0, 1000, 2)
    with open(sys.argv[1] + "/" + name, "wb") as file:
        file.write(bytes([version - 19]) + bytes(7) + memory)
write("1_19", 19, [4, 4, 1, 6])
write("1_24", 24, [4, 0x1004, 3, 2, 9])
write("torn", 24, [4, 4, 99, 4])
write("long", 19, [4], (0x1020, 1 << 62, 1 << 63))
# A heap as Go 1.26 lays it out, in spans of a page: goroutines, sudogs, channels, stacks. The first
# goroutine waits for a channel that nothing else refers to, the second one for one on the stack of the
# third, the fourth for a semaphore.
memory = bytearray(0x9000)
def put(at, *words):
    struct.pack_into("<%dQ" % len(words), memory, at - 0x1000, *(word % 2**64 for word in words))
put(0x1000, 0x1020, 4, 4, 0x1400 - 0x1000000)
put(0x1400, 0x1500)
for page, (size, kind, state) in enumerate(((512, 10, 1), (112, 12, 1), (96, 11, 1), (2048, 0, 2))):
    span, start = 0x1600 + page * 0xa0, 0x2000 * (page + 1)
    put(0x1508 + page * 8, span)
    put(span + 24, start, 1, 0, 8192 // size << 16)
    put(span + 96, kind << 16 | state << 24, size, start + 8192 // size * size)
put(0x1600 + 128, 0x1f00)
put(0x1f00, 0, 1536, 2)
for i, (reason, waiting, sudog) in enumerate(((19, 0x4000, (0, 0x6000)), (19, 0x4070, (0, 0x6060)),
                                              (14, 0, (0, 0)), (13, 0, (0x60c8, 0)))):
    g, low = 0x2000 + i * 512, 0x8000 + i * 0x800
    put(0x1020 + i * 8, g)
    put(g, low, low + 0x800)
    put(g + 56, low + 0x700, 0x401000, g)
    put(g + 144, 4, i + 1, 0, 1000, reason)
    put(g + 320, waiting)
    put(0x4000 + i * 112, g, 0, 0, sudog[0], sudog[0])
    put(0x4000 + i * 112 + 88, sudog[1], sudog[1])
    put(low + 0x710, 0x4000 + i * 112, 0x6060 if i == 2 else 0)
with open(sys.argv[1] + "/heap", "wb") as file:
    file.write(bytes([26 - 19]) + bytes(7) + memory)
# The stack of the first one has odd bounds, and it continues above them.
put(0x2000, 0x7fff, 0x87ff)
put(0x2000 + 56, 0x8800, 0)
with open(sys.argv[1] + "/bounds", "wb") as file:
    file.write(bytes([26 - 19]) + bytes(7) + memory)
END
python3 - <<'END'
# Objects of V8, as node 18, 20, 22 and 24 lay them out: a function with a name, a script of
# three lines, and optimised code with an inlined call; that of node 24 is by Maglev.
import struct
BASE = 0x10000
def number(value):
    out = []
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out + [value])
def build(version):
    new_layout = version == 3
    out, at = bytearray(4096), [64]
    def put(where, fmt, *values):
        struct.pack_into("<" + fmt, out, where, *values)
    def new(kind, size):
        here = at[0]
        at[0] += (size + 15) // 8 * 8
        put(here, "Q", maps[kind] + BASE + 1)
        return here
    maps = {}
    for kind in (40, 32, 167, 261, 262, 191, 245, 2066, 175, 190, 252) + (195,) * new_layout:
        maps[kind] = at[0]
        put(at[0] + 12, "H", kind)
        at[0] += 16
    def tag(where):
        return where + BASE + 1
    def string(text):
        wide = any(ord(c) > 255 for c in text)
        data = text.encode("utf-16le" if wide else "latin-1")
        here = new(32 if wide else 40, 16 + len(data))
        put(here + 12, "I", len(data) // (2 if wide else 1))
        out[here + 16:here + 16 + len(data)] = data
        return here
    def table(data):
        here = new(190, 16 + len(data))
        put(here + 8, "Q", len(data) << 32)
        out[here + 16:here + 16 + len(data)] = data
        return here
    def array(words):
        here = new(175, 16 + 8 * len(words))
        put(here + 8, "Q", len(words) << 32)
        put(here + 16, "%dQ" % len(words), *words)
        return here
    source, path = string("a\nb\r\nc\u2028d"), string("/srv/a.js")
    script = new(167, 112)
    put(script + 8, "QQ", tag(source), tag(path))
    scope = new(261, 64)
    flags = 1 << 14 | 1 << 12
    put(scope + 8, "QQQQ", flags if new_layout else flags << 32, 0, 0, tag(string("name")))
    bytecode = new(191, 96)
    put(bytecode + 8, "Q", 8 << 32)
    positions = table(bytes([1, 4, 6, 8]))
    put(bytecode + (24 if version >= 2 else 32), "Q", tag(positions))
    shared = new(262, 64)
    put(shared + 8, "Q", tag(bytecode))
    put(shared + (24 if new_layout else 16), "Q", tag(scope))
    put(shared + (40 if new_layout else 32), "Q", tag(script))
    inlining = table(struct.pack("<QiI", 3 << 1, 0, 0))
    literals = tag(array([tag(shared)]))
    if new_layout:
        wrapper = new(195, 16)
        put(wrapper + 8, "Q", tag(shared))
        # Two frames; a second translation takes the last instruction of the first one
        frames = table(bytes([14, 0, 4, 4, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0,
                              14, 14, 4, 4, 1, 0, 0, 0, 0, 46]))
        data = array([tag(frames), 1 << 32, 0, literals, 0, 0, 0, tag(wrapper), tag(inlining), 0,
                      0, 1 << 32, 0, 14 << 32, 40 << 32])
    else:
        data = array([0, 1 << 32, literals, 0, 0, 0, tag(shared), tag(inlining), 0,
                      0, 1 << 32, 0, 0, 8 << 32])
    table_of_code = table(bytes([1]) + number((1 << 31 | 1 << 1) * 2))
    at[0] = (at[0] + 63) // 64 * 64
    header = (128, 16, 32, 32)[version]
    start = at[0] + (128 if header == 128 else 64)
    if version == 0:
        code = start - header
        put(code, "Q", maps[245] + BASE + 1)
        put(code + 40, "I", 64)
    else:
        at[0] = start + 128
        code = new(245, 96)
        put(start - header, "QQ", tag(maps[252]), tag(code))
        put(code + 40, "Q", start + BASE)
        put(code + (56, 52, 56)[version - 1], "I", 64)
    put(code + (8 if version >= 2 else 16), "QQ", tag(data), tag(table_of_code))
    put(code + (52 if new_layout else 48), "I", 12 if new_layout else 13)
    if new_layout: # a safepoint at 8
        put(start + 64, "IIIIHBHB", 0, 1, 1 | 2 << 4 | 1 << 7, 0, 8, 1, 41, 0)
    return bytes([4 if new_layout else version, 3]) + bytes(6) + bytes(out[:max(at[0], start + 128)])
for version in range(4):
    with open("v8/node%d" % (18 + 2 * version), "wb") as file:
        file.write(build(version))
END
# Fields of waits (src/data/recording_waits.c): a mutex, a socket with peers, an epoll that watches.
python3 - <<'END'
def uleb(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])
def number(field, value):
    return uleb(field << 1) + uleb(value)
def data(field, value):
    return uleb(field << 1 | 1) + uleb(len(value)) + value
def process(pid, name):
    return number(1, pid) + data(2, name) + number(3, ord("S"))
def address(port, raw):
    return number(1, port) + data(2, raw)
socket = (number(1, 14) + number(2, 3) + data(3, b"socket:[1]") + data(5, process(11, b"cat")) +
          data(5, process(12, b"")) + data(10, b"TCP") + number(12, 1) +
          data(13, address(80, b"\177\0\0\1")) + data(14, address(65535, bytes(16))))
watched = number(1, 6) + number(2, 1) + data(4, socket)
epoll = number(2, 5) + data(3, b"[eventpoll]") + data(26, watched) + data(26, number(1, 8))
for name, seed in {
        "mutex": number(1, 2) + data(2, b"futex") + number(3, 404) + number(11, 1 << 40) +
                 data(12, b"cache") + number(14, 1) + number(20, 77) + data(22, b"holder"),
        "socket": number(1, 1) + number(30, 14) + data(31, socket),
        "epoll": number(6, 9) + data(31, epoll) + data(32, watched) + data(32, watched),
        "children": number(50, 1) + data(52, process(9, b"sh")) + number(53, 3) + number(200, 1) +
                    data(201, b"later")}.items():
    with open("waits/" + name, "wb") as file:
        file.write(seed)
END
find . -type f -exec chmod 644 {} +
