"""The rules of the design that a machine can check. Each function takes a Tree (sources,
and objects where it needs them) and returns complaints, one line each; none is good."""

import os
import re
import subprocess

LIBRARY = {"base", "arch", "proc", "model", "target", "objects", "capture", "unwind",
           "symbolize", "diagnose", "record"}
TOOL = {"view", "report", "cli"}

# What a room may include besides itself and the C library.
MAY_USE = {
    "base": set(),
    "arch": {"base"},
    "proc": {"base"},
    "model": {"base", "arch", "proc"},
    "target": {"base", "arch", "proc", "model"},
    "objects": {"base", "arch", "proc", "model", "target"},
    "capture": {"base", "arch", "proc", "model", "target", "objects"},
    "unwind": {"base", "arch", "model", "symbolize"},  # the files that both read
    "symbolize": {"base", "model"},
    "diagnose": {"base", "arch", "proc", "model"},
    "record": {"base", "model", "target", "capture", "unwind"},
    "view": {"base"},
    "report": {"base", "view"},
    "cli": {"base", "view", "report"},
}

# Headers of other projects: who may include them. A key that ends in "/" is a directory.
THIRD_PARTY = {
    "libunwind.h": {"unwind", "arch/unwind_table.h"},
    "libunwind-ptrace.h": {"capture/live.c"},
    "elfutils/": {"symbolize"},
    "libelf.h": {"symbolize", "unwind/debug_frame.c"},
    "gelf.h": {"symbolize"},
    "dwarf.h": {"symbolize", "unwind"},  # numbers only
    "demangle.h": {"symbolize"},
    "libiberty/": {"symbolize"},
    "lzma.h": {"symbolize"},
    "jansson.h": {"view", "report"},
    "argp.h": {"cli"},
    "xxhash.h": {"base", "model", "symbolize", "record", "report"},
    "zstd.h": {"record"},
    "seccomp.h": {"view", "cli", "diagnose", "report"},
    "zlib.h": {"report"},
    "curses.h": {"view", "cli"},
    "ncurses.h": {"view", "cli"},
}

# The only rooms that touch a process.
PRIVILEGED = {"target", "objects", "capture"}
PROCESS_SYMBOLS = {"ptrace", "process_vm_readv", "process_vm_writev", "waitpid", "wait",
                   "wait3", "wait4", "waitid", "kill", "tgkill", "pidfd_open"}
# What a room may call nevertheless: on a child of its own.
OWN_CHILD = {"cli/sandbox.c": {"kill", "waitpid"}, "cli/hang_watch.c": {"waitpid"}}
PROCESS_CALLS = re.compile(r"\b(SYS|__NR)_(ptrace|process_vm_\w+|wait4|waitid|kill|tgkill|"
                           r"pidfd_\w+)\b")

# What a library does not do to the program it is part of.
NOT_IN_A_LIBRARY = {
    "prints": {"printf", "vprintf", "fprintf", "vfprintf", "dprintf", "vdprintf", "puts",
               "fputs", "putchar", "putc", "fputc", "fwrite", "perror", "psignal", "stdout",
               "stderr", "warn", "warnx", "err", "errx", "error", "syslog"},
    "exits": {"exit", "_exit", "_Exit", "quick_exit", "abort", "atexit", "on_exit"},
    "installs handlers": {"signal", "sigaction", "sigset", "bsd_signal", "sysv_signal"},
}

# Files that run while the target stands still.
FROZEN = {"capture/freeze.c", "capture/stop.c"}
NOT_FROZEN = {"malloc", "calloc", "realloc", "reallocarray", "free", "mmap", "strdup",
              "open", "openat", "fopen", "snprintf", "sprintf", "asprintf", "vasprintf"}

FUNCTION_LINES = 60
FILE_LINES = 400
ROOM_FILES = 8
# One file for each processor, format, command.
GROWING_ROOMS = {"arch": (1, 8), "view": (2, 24), "report": (2, 24), "cli": (2, 36)}
# Holding a process still in several ways, words for each kind of wait and of lock, and
# reading DWARF, for rows of registers and for names, take more than a room should hold; and
# a file format has many small parts, each written and read. The model has a file for each
# kind of data that travels.
LARGER_ROOMS = {"model": (2, 9), "capture": (2, 16), "diagnose": (2, 20), "objects": (2, 10),
                "record": (2, 28), "symbolize": (2, 14), "target": (2, 12),
                "unwind": (2, 15)}

PROCESSOR = re.compile(r"^[ \t]*#[ \t]*(?:el)?if.*\b(__x86_64\w*|__amd64\w*|__i386\w*|i386|"
                       r"__aarch64\w*|__arm\w*|__riscv\w*|__powerpc\w*|__s390\w*|"
                       r"__mips\w*|__loongarch\w*|__ILP32__|__LP64__)\b", re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)


class Tree:
    """Sources below root/src, and their objects below objects/ROOM/FILE.c.o."""

    def __init__(self, root, objects=None):
        self.src = os.path.join(root, "src")
        self.objects = objects
        self.rooms = sorted(name for name in os.listdir(self.src)
                            if os.path.isdir(os.path.join(self.src, name)))

    def files(self, *endings):
        for room in self.rooms:
            for name in sorted(os.listdir(os.path.join(self.src, room))):
                if name.endswith(endings or (".c", ".h")):
                    yield room, room + "/" + name

    def text(self, path):
        with open(os.path.join(self.src, path), encoding="utf-8") as file:
            return file.read()

    def symbols(self):
        """(room, path, name, type letter, section) of each object's symbols."""
        for room, path in self.files(".c"):
            found = [os.path.join(top, path + ".o") for top in self.objects
                     if os.path.exists(os.path.join(top, path + ".o"))]
            if not found:
                raise FileNotFoundError("no object of %s: build first" % path)
            for name, letter, section in read_symbols(found[0]):
                yield room, path, name, letter, section


def read_symbols(path):
    """Name, U (undefined), T/t (function) or D/d (object), section; small: local."""
    output = subprocess.run(["readelf", "-W", "-S", "-s", path], stdout=subprocess.PIPE,
                            check=True, text=True).stdout
    sections = dict(re.findall(r"^ *\[ *(\d+)\] (\S*)", output, re.M))
    symbol = re.compile(r"^ *\d+: \S+ +\S+ (\w+) +(\w+) +\w+ +(?:\[.*\] +)?(\w+) (\S+)$", re.M)
    for kind, binding, index, name in symbol.findall(output):
        if kind not in ("NOTYPE", "FUNC", "OBJECT", "TLS", "IFUNC", "COMMON"):
            continue
        if index == "UND":
            letter = "U"
        else:
            letter = "T" if kind in ("FUNC", "IFUNC") else "D"
            letter = letter.lower() if binding == "LOCAL" else letter
        yield name.split("@")[0], letter, sections.get(index, index)


def plain(name):
    """printf of __printf_chk, and read of __read_chk."""
    match = re.fullmatch(r"__(\w+)_chk", name)
    return match.group(1) if match else re.sub(r"^__isoc\d+_", "", name)


def check_rooms(tree):
    """Every room is one that the design knows."""
    return ["src/%s: a room that no rule knows" % room for room in tree.rooms
            if room not in MAY_USE]


def check_includes(tree):
    """A room includes what it may use; headers of ours by their path below src/."""
    complaints = []
    for room, path in tree.files():
        for quote, header in INCLUDE.findall(tree.text(path)):
            other = header.split("/")[0] if "/" in header else None
            if header == "stacksnap.h" or (quote == "<" and other not in MAY_USE):
                continue
            if other not in MAY_USE:
                complaints.append('%s: include "%s": write ROOM/FILE.h' % (path, header))
            elif other != room and other not in MAY_USE.get(room, ()):
                complaints.append('%s: %s may not use %s ("%s")' % (path, room, other, header))
    return complaints


def check_third_party(tree):
    """Headers of other libraries are included where the design has them."""
    complaints = []
    for room, path in tree.files():
        for _, header in INCLUDE.findall(tree.text(path)):
            for prefix, users in THIRD_PARTY.items():
                hit = header.startswith(prefix) if prefix.endswith("/") else header == prefix
                if hit and room not in users and path not in users:
                    complaints.append("%s: %s is for %s" % (path, header,
                                                            ", ".join(sorted(users))))
    return complaints


def check_processor(tree):
    """No #if on the processor outside arch/."""
    return ["%s: #if on %s" % (path, match.group(1))
            for room, path in tree.files() if room != "arch"
            for match in PROCESSOR.finditer(tree.text(path))]


def check_proc_paths(tree):
    """Only the privileged rooms open files of /proc; a process may open its own."""
    return ["%s: %s" % (path, match.group(0))
            for room, path in tree.files() if room not in PRIVILEGED
            for match in re.finditer(r'"/proc["/](?!self/oom_score_adj")[^"]*',
                                     tree.text(path))]


def check_process_calls(tree):
    """Only the privileged rooms look at or hold processes. Others may know the numbers of
    such calls, to say what a thread is in, if they make no call by number."""
    callers = {path for _, path, name, letter, _ in tree.symbols()
               if letter == "U" and name == "syscall"}
    complaints = ["%s: %s" % (path, match.group(0))
                  for room, path in tree.files() if room not in PRIVILEGED and path in callers
                  for match in PROCESS_CALLS.finditer(tree.text(path))]
    complaints += ["%s: calls %s" % (path, name)
                   for room, path, name, letter, _ in tree.symbols()
                   if room not in PRIVILEGED and letter == "U" and
                   plain(name) in PROCESS_SYMBOLS - OWN_CHILD.get(path, set())]
    return complaints


def check_frozen(tree):
    """No allocation, no formatting, no opening of files in what runs during a freeze."""
    return ["%s: calls %s while the target stands still" % (path, name)
            for _, path, name, letter, _ in tree.symbols()
            if path in FROZEN and letter == "U" and plain(name) in NOT_FROZEN]


def check_manners(tree):
    """The library never prints, never exits, installs no handler."""
    return ["%s: %s (%s)" % (path, what, name)
            for room, path, name, letter, _ in tree.symbols()
            if room in LIBRARY and letter == "U"
            for what, names in NOT_IN_A_LIBRARY.items() if plain(name) in names]


def check_globals(tree):
    """The library keeps no mutable global, of threads or of the process."""
    return ["%s: %s is in %s" % (path, name, section)
            for room, path, name, letter, section in tree.symbols()
            if room in LIBRARY and letter in "Dd" and
            re.match(r"\.(data(?!\.rel\.ro)|bss|tdata|tbss)|COM", section)]


def check_names(tree):
    """What has external linkage is called ss_something; only main is not."""
    return ["%s: %s is external and not ss_..." % (path, name)
            for _, path, name, letter, _ in tree.symbols()
            if letter in "TD" and not name.startswith("ss_") and
            not (path == "cli/main.c" and name == "main")]


def check_calls(tree, public):
    """A room calls rooms that it may use; the tool calls the public functions."""
    symbols = list(tree.symbols())
    home = {name: room for room, _, name, letter, _ in symbols if letter in "TD"}
    complaints = []
    for room, path, name, letter, _ in symbols:
        other = home.get(name)
        if letter != "U" or other in (None, room) or other in MAY_USE.get(room, ()):
            continue
        if name not in public:
            complaints.append("%s: %s may not use %s (%s)" % (path, room, other, name))
    return complaints


def public_functions(header):
    """Names of the functions that stacksnap.h declares."""
    with open(header, encoding="utf-8") as file:
        return set(re.findall(r"^SS_API [^;(]*?\b(ss_\w+)\(", file.read(), re.M))


def check_function_length(tree):
    """No function is longer than FUNCTION_LINES, its braces included."""
    complaints = []
    for _, path in tree.files():
        opened = None
        for number, line in enumerate(tree.text(path).split("\n"), 1):
            if line.startswith("{"):
                opened = number
            elif line.startswith("}") and opened:
                if number - opened + 1 > FUNCTION_LINES:
                    complaints.append("%s:%d: a function of %d lines"
                                      % (path, opened, number - opened + 1))
                opened = None
    return complaints


def check_file_length(tree):
    """No file is longer than FILE_LINES."""
    lengths = [(path, tree.text(path).count("\n")) for _, path in tree.files()]
    return ["%s: %d lines" % pair for pair in lengths if pair[1] > FILE_LINES]


def check_room_size(tree):
    """A room has a handful of files."""
    complaints = []
    for room in tree.rooms:
        least, most = {**GROWING_ROOMS, **LARGER_ROOMS}.get(room, (2, ROOM_FILES))
        count = sum(1 for _, path in tree.files(".c") if path.startswith(room + "/"))
        if not least <= count <= most:
            complaints.append("src/%s: %d files, not %d to %d" % (room, count, least, most))
    return complaints
