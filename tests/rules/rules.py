"""The rules of the design that a program can check. Each function takes a Tree (sources and,
if needed, objects) and returns violations, one line each."""

import functools
import glob
import os
import re
import subprocess

LIBRARY = {"base", "arch", "data", "elf", "process", "capture", "sample", "unwind", "runtime",
           "symbolize", "diagnose", "sandbox", "core", "crash", "trace", "heap", "interpret"}
TOOL = {"report", "cli", "crash/cli", "trace/cli", "heap/cli"}

# What a room may include besides itself and system headers.
MAY_USE = {
    "base": set(),
    "arch": {"base"},
    "data": {"base", "arch"},
    "elf": {"base", "arch", "data"},
    "process": {"base", "arch", "data"},
    "sandbox": {"base", "data"},
    "capture": {"base", "arch", "data", "process"},
    "core": {"base", "arch", "data", "elf"},
    "crash": {"base", "arch", "data", "process", "core"},
    "runtime": {"base", "arch", "data", "elf"},
    "unwind": {"base", "arch", "data", "elf", "runtime"},
    "symbolize": {"base", "data", "elf"},
    "diagnose": {"base", "arch", "data"},
    "sample": {"base", "arch", "data", "process", "capture", "sandbox", "diagnose"},
    "trace": {"base", "arch", "data", "process", "sample", "sandbox"},
    "heap": {"base", "data", "runtime"},
    "interpret": {"base", "arch", "data", "elf", "sandbox", "process", "capture", "unwind",
                  "symbolize", "diagnose"},
    "report": {"base", "data"},
    "cli": {"base", "data", "report"},
    # The tool's part of a component that can be left out.
    "crash/cli": {"base", "data", "report", "cli"},
    "trace/cli": {"base", "data", "report", "cli"},
    "heap/cli": {"base", "data", "report", "cli"},
}

# The headers with which the tool (TOOL) uses rooms below those of MAY_USE, besides the public ones.
DOORS = {"interpret/interpret.h", "sandbox/sandbox.h", "process/process_list.h", "process/spawn.h",
         "core/core_capture.h", "crash/dump.h", "crash/supervisor.h", "diagnose/progress.h",
         "diagnose/wait_table.h", "elf/elffile.h", "sample/recorder.h", "trace/trace.h"}
PUBLIC = {"stacksnap.h", "stacksnap/record.h", "stacksnap/trace.h"}

# Files that run in a child without rights may use more than the rest of their room: the
# rooms that read ELF files and unwind tables.
CONFINED = {"sample/unwind_server.c": {"elf", "unwind", "symbolize"},
            "sample/build_ids_child.c": {"elf"},
            "trace/resolve_child.c": {"elf", "symbolize"},
            "trace/stacks_child.c": {"unwind", "symbolize"}}

# The table of commands, where components register theirs.
REGISTERS = {"cli/command.c": {"crash/cli", "trace/cli", "heap/cli"}}

# The options that leave out a component, and its files, as in CMakeLists.txt.
COMPONENTS = {"SS_CRASH": r"crash/|report/minidump\.c$", "SS_TRACE": "trace/", "SS_HEAP": "heap/"}

# Who may include headers of other projects. A key that ends in "/" is a directory.
THIRD_PARTY = {
    "libunwind.h": {"unwind", "arch/unwind_table.h", "capture/live.c"},
    "elfutils/": {"symbolize", "elf"},
    "libelf.h": {"symbolize", "elf/cfi_table.c"},
    "gelf.h": {"symbolize", "elf"},
    "dwarf.h": {"symbolize", "unwind", "elf"},  # numbers only
    "demangle.h": {"symbolize"},
    "libiberty/": {"symbolize"},
    "lzma.h": {"symbolize", "elf", "core"},
    "jansson.h": {"crash/cli/groups.c"},  # reads; report/json.h writes
    "argp.h": {"cli", "crash/cli", "trace/cli", "heap/cli"},
    "xxhash.h": {"base", "data", "symbolize", "elf", "report"},
    "zstd.h": {"data", "symbolize", "core"},
    "seccomp.h": {"report", "cli", "diagnose", "sandbox"},
    "zlib.h": {"report", "symbolize", "core"},
    "lz4frame.h": {"core"},
    "libdeflate.h": {"symbolize"},
    "curses.h": {"report", "cli"},
    "ncurses.h": {"output", "cli"},
}

# The only rooms that access other processes.
PRIVILEGED = {"process", "capture", "sample", "crash"}
PROCESS_SYMBOLS = {"ptrace", "process_vm_readv", "process_vm_writev", "waitpid", "wait",
                   "wait3", "wait4", "waitid", "kill", "tgkill", "pidfd_open"}
# The exception: calls on own children.
OWN_CHILD = {"base/child.c": {"kill", "wait4"}}
PROCESS_CALLS = re.compile(r"\b(SYS|__NR)_(ptrace|process_vm_\w+|wait4|waitid|kill|tgkill|"
                           r"pidfd_\w+)\b")

# Processes are started, and waited for, in one place. The others wait for tracees.
FORKS = {"fork", "_Fork", "vfork", "clone", "clone3", "posix_spawn", "posix_spawnp", "system",
         "popen", "daemon"}
WAITS = {"waitpid", "wait", "wait3", "wait4", "waitid"}
MAY_FORK = {"base/child.c": FORKS | WAITS,
            "process/own_thread.c": {"clone"},  # a thread
            "process/spawn.c": {"waitpid"},     # the stop at exec
            "capture/stop.c": WAITS, "crash/supervisor.c": WAITS}
FORK_CALLS = re.compile(r"\b(SYS|__NR)_(v?fork|clone3?|wait4|waitid)\b")

# What a library must not do to its program.
NOT_IN_A_LIBRARY = {
    "prints": {"printf", "vprintf", "fprintf", "vfprintf", "dprintf", "vdprintf", "puts",
               "fputs", "putchar", "putc", "fputc", "fwrite", "perror", "psignal", "stdout",
               "stderr", "warn", "warnx", "err", "errx", "error", "syslog"},
    "exits": {"exit", "_exit", "_Exit", "quick_exit", "abort", "atexit", "on_exit"},
    "installs handlers": {"signal", "sigaction", "sigset", "bsd_signal", "sysv_signal"},
}

# What a confined child may do nevertheless.
IN_A_CHILD = {"base/child.c": {"_exit"}, "sandbox/worker.c": {"_exit"}}

# Files that run while the target is stopped.
FROZEN = {"capture/freeze.c", "capture/stop.c", "data/gather_run.c"}
NOT_FROZEN = {"malloc", "calloc", "realloc", "reallocarray", "free", "mmap", "strdup",
              "open", "openat", "fopen", "snprintf", "sprintf", "asprintf", "vasprintf"}
# Functions that are called while threads stand still, and so is everything that they call.
FROZEN_ROOTS = {"ss_freeze_stop", "ss_freeze_stop_late", "ss_freeze_release", "ss_freeze_each",
                "ss_arena_copy", "ss_gather_run", "copy_stopped", "ss_address_space_query"}
# The freeze waits for a late thread anyway, or waitid(2) is refused.
MAY_OPEN = {"ss_target_peek_state"}

# What finds a part of a text: nobody parses what another part of the program has written.
SEARCHES = {"strstr", "strcasestr", "memmem", "sscanf"}
# The synopsis of a command's arguments; the package manager's lists of files.
MAY_SEARCH = {"cli/completion.c", "report/advice.c",
              "report/top.c"}  # what the user types into the filter
# What makes a text of data: diagnose/ makes none, report/ does.
FORMATS = {"sprintf", "snprintf", "vsnprintf", "asprintf", "vasprintf", "open_memstream",
           "ss_buffer_printf"}

PROCESSOR = re.compile(r"^[ \t]*#[ \t]*(?:el)?if.*\b(__x86_64\w*|__amd64\w*|__i386\w*|i386|"
                       r"__aarch64\w*|__arm\w*|__riscv\w*|__powerpc\w*|__s390\w*|"
                       r"__mips\w*|__loongarch\w*|__ILP32__|__LP64__)\b", re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)


def room_of(path):
    """ROOM of ROOM/FILE; the tool's part of a component is a room of its own."""
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) == 3 and parts[1] == "cli" else parts[0]


class Tree:
    """Sources below root/src and their objects below OBJECTS/ROOM/FILE.c.o."""

    def __init__(self, root, objects=None):
        self.root = root
        self.src = os.path.join(root, "src")
        self.objects = objects
        self.rooms = sorted(name for name in os.listdir(self.src)
                            if os.path.isdir(os.path.join(self.src, name)))

    def files(self, *endings):
        for room in self.rooms:
            for folder, _, names in sorted(os.walk(os.path.join(self.src, room))):
                for name in sorted(names):
                    if name.endswith(endings or (".c", ".h")):
                        path = os.path.relpath(os.path.join(folder, name), self.src)
                        yield room_of(path), path

    def text(self, path):
        with open(os.path.join(self.src, path), encoding="utf-8") as file:
            return file.read()

    def object(self, path):
        found = [os.path.join(top, path + ".o") for top in self.objects
                 if os.path.exists(os.path.join(top, path + ".o"))]
        if not found:
            raise FileNotFoundError("no object of %s: build first" % path)
        return found[0]

    def symbols(self):
        """(room, path, name, type letter, section) of each object's symbols."""
        for room, path in self.files(".c"):
            for name, letter, section in read_symbols(self.object(path)):
                yield room, path, name, letter, section

    def references(self, path):
        """{function of the file: names that its code refers to}"""
        return read_references(self.object(path))


@functools.lru_cache(maxsize=None)
def read_symbols(path):
    """Name, letter and section of each symbol. Letters: U undefined, T function, D object; lower
    case if local."""
    output = subprocess.run(["readelf", "-W", "-S", "-s", path], stdout=subprocess.PIPE,
                            check=True, text=True).stdout
    sections = dict(re.findall(r"^ *\[ *(\d+)\] (\S*)", output, re.M))
    symbol = re.compile(r"^ *\d+: \S+ +\S+ (\w+) +(\w+) +\w+ +(?:\[.*\] +)?(\w+) (\S+)$", re.M)
    found = []
    for kind, binding, index, name in symbol.findall(output):
        if kind not in ("NOTYPE", "FUNC", "OBJECT", "TLS", "IFUNC", "COMMON"):
            continue
        if index == "UND":
            letter = "U"
        else:
            letter = "T" if kind in ("FUNC", "IFUNC") else "D"
            letter = letter.lower() if binding == "LOCAL" else letter
        found.append((name.split("@")[0], letter, sections.get(index, index)))
    return found


def read_references(path):
    """Names that the code of each function refers to: what it calls, and functions that it
    hands out. A part that the compiler has split off counts as a function."""
    output = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", path],
                            stdout=subprocess.PIPE, check=True, text=True).stdout
    found = {}
    names, shown = set(), []
    for line in [*output.splitlines(), ""]:
        relocation = re.match(r"\s*[0-9a-f]+: R_\w+\s+([A-Za-z_][\w.$]*)", line)
        # Before a relocation, objdump shows what follows the instruction.
        names.update([relocation.group(1)] if relocation else shown)
        shown = re.findall(r"<([A-Za-z_][\w.$]*)>", line)
        heading = re.match(r"[0-9a-f]+ <([^>]+)>:$", line)
        if heading:
            names, shown = found.setdefault(heading.group(1), set()), []
    return found


def plain(name):
    """The plain name of a fortified function: printf for __printf_chk."""
    match = re.fullmatch(r"__(\w+)_chk", name)
    return match.group(1) if match else re.sub(r"^__isoc\d+_", "", name)


def may_use(room, path):
    return MAY_USE.get(room, set()) | CONFINED.get(path, set()) | REGISTERS.get(path, set())


def check_rooms(tree):
    """MAY_USE has every room."""
    return ["src/%s: room is missing in MAY_USE" % room for room in tree.rooms
            if room not in MAY_USE]


def check_includes(tree):
    """Rooms include only what MAY_USE permits, our headers by their path below src/."""
    complaints = []
    for room, path in tree.files():
        for quote, header in INCLUDE.findall(tree.text(path)):
            other = room_of(header) if "/" in header else None
            if header in PUBLIC or (room in TOOL and header in DOORS) or (quote == "<" and other not in MAY_USE):
                continue
            if other not in MAY_USE:
                complaints.append('%s: include "%s": write ROOM/FILE.h' % (path, header))
            elif other != room and other not in may_use(room, path):
                complaints.append('%s: %s may not use %s ("%s")' % (path, room, other, header))
    return complaints


def check_folders(tree):
    """A folder of a room uses its own files and those right in the room, but no other folder: what
    is in one is a part that can be taken away, such as a runtime."""
    complaints = []
    for room, path in tree.files():
        for _, header in INCLUDE.findall(tree.text(path)):
            parts = header.split("/")
            if (path.count("/") == 2 and len(parts) == 3 and parts[0] == room and
                    parts[1] != path.split("/")[1]):
                complaints.append('%s: uses another folder of its room ("%s")' % (path, header))
    return complaints


def check_third_party(tree):
    """Headers of other projects are included only where THIRD_PARTY permits it."""
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


# Who may ask which processor this program runs on. All others take that of the capture,
# snapshot or image at hand, which may be of another machine.
HOST_USERS = {"data/capture.c", "data/snapshot.c", "unwind/libunwind.c",
              "trace/code.c"}  # a live process


def check_host(tree):
    """What interprets a capture does not assume the processor of the host."""
    return ["%s: ss_arch_host" % path
            for room, path in tree.files()
            if room not in PRIVILEGED | {"arch"} and path not in HOST_USERS and
            "ss_arch_host" in tree.text(path)]


def check_proc_paths(tree):
    """Only the privileged rooms open files of /proc, except a process its own and those of
    its children. (The settings of the kernel are not those of a process.)"""
    return ["%s: %s" % (path, match.group(0))
            for room, path in tree.files()
            if room not in PRIVILEGED and path not in OWN_CHILD
            for match in re.finditer(
                r'"/proc["/](?!self/(?:oom_score_adj"|exe"|fd/%d"|task["/])|sys/)[^"]*',
                tree.text(path))]


def check_process_calls(tree):
    """Only the privileged rooms call functions on processes. Others may use the numbers of
    such system calls, to name them, if they do not call syscall()."""
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


def check_forks(tree):
    """One place starts processes and waits for them."""
    callers = {path for _, path, name, letter, _ in tree.symbols()
               if letter == "U" and name == "syscall"}
    complaints = ["%s: %s" % (path, match.group(0))
                  for _, path in tree.files(".c") if path in callers and path not in MAY_FORK
                  for match in FORK_CALLS.finditer(tree.text(path))]
    return complaints + ["%s: calls %s" % (path, name)
                         for _, path, name, letter, _ in tree.symbols()
                         if letter == "U" and
                         plain(name) in (FORKS | WAITS) - MAY_FORK.get(path, set())]


def check_frozen(tree):
    """Code that runs during a freeze does not allocate, format or open files."""
    return ["%s: calls %s while the target is stopped" % (path, name)
            for _, path, name, letter, _ in tree.symbols()
            if path in FROZEN and letter == "U" and plain(name) in NOT_FROZEN]


def check_frozen_calls(tree):
    """Nor does any function that such code calls."""
    own = {path: tree.references(path) for room, path in tree.files(".c")
           if room in PRIVILEGED | {"base", "arch", "data"}}
    home = {name: path for path, functions in own.items() for name in functions}
    complaints = []
    done = set()
    left = [(path, root, root) for path, functions in own.items()
            for root in functions if root in FROZEN_ROOTS]
    while left:
        path, name, way = left.pop()
        if (path, name) in done or name in MAY_OPEN:
            continue
        done.add((path, name))
        for other in sorted(own[path][name]):
            target = path if other in own[path] else home.get(other)
            if target:
                left.append((target, other, way + " > " + other))
            elif plain(other) in NOT_FROZEN:
                complaints.append("%s: %s > %s while the target is stopped" % (path, way, other))
    return complaints


def check_manners(tree):
    """The library does not print, exit or install signal handlers."""
    return ["%s: %s (%s)" % (path, what, name)
            for room, path, name, letter, _ in tree.symbols()
            if room in LIBRARY and letter == "U"
            for what, names in NOT_IN_A_LIBRARY.items()
            if plain(name) in names - IN_A_CHILD.get(path, set())]


def check_texts(tree):
    """A wait is data from diagnose/ to report/, which alone makes words of it."""
    complaints = []
    for room, path, name, letter, _ in tree.symbols():
        if letter != "U":
            continue
        if room in TOOL and plain(name) in SEARCHES and path not in MAY_SEARCH:
            complaints.append("%s: %s: nothing searches what the program wrote" % (path, name))
        if room == "diagnose" and plain(name) in FORMATS:
            complaints.append("%s: %s: sentences are made in output" % (path, name))
    return complaints


def check_globals(tree):
    """The library has no mutable global or thread-local variables."""
    return ["%s: %s is in %s" % (path, name, section)
            for room, path, name, letter, section in tree.symbols()
            if room in LIBRARY and letter in "Dd" and
            re.match(r"\.(data(?!\.rel\.ro)|bss|tdata|tbss)|COM", section)]


def check_names(tree):
    """Names with external linkage start with ss_, except main."""
    return ["%s: %s has external linkage but does not start with ss_" % (path, name)
            for _, path, name, letter, _ in tree.symbols()
            if letter in "TD" and not name.startswith("ss_") and
            not (path == "cli/main.c" and name == "main")]


def check_calls(tree, public, doors=frozenset()):
    """Rooms call only what MAY_USE permits; the tool also public functions, and doors."""
    symbols = list(tree.symbols())
    home = {name: room for room, _, name, letter, _ in symbols if letter in "TD"}
    complaints = []
    for room, path, name, letter, _ in symbols:
        other = home.get(name)
        if letter != "U" or other in (None, room) or other in may_use(room, path):
            continue
        if not (room in TOOL and name in public | doors):
            complaints.append("%s: %s may not use %s (%s)" % (path, room, other, name))
    return complaints


def check_components(tree):
    """Nothing refers to what can be left out but files that ask whether it is there."""
    symbols = list(tree.symbols())
    complaints = []
    for option, files in COMPONENTS.items():
        own = {name for _, path, name, letter, _ in symbols
               if letter in "TD" and re.match(files, path)}
        complaints += ["%s: needs %s, which %s may leave out" % (path, name, option)
                       for _, path, name, letter, _ in symbols
                       if letter == "U" and name in own and not re.match(files, path) and
                       not re.search(r"\b%s\b" % option, tree.text(path))]
    return complaints


def public_functions(root):
    """The names of the functions that the public headers declare."""
    names = set()
    for header in PUBLIC:
        with open(os.path.join(root, "include", header), encoding="utf-8") as file:
            names.update(re.findall(r"^SS_API [^;(]*?\b(ss_\w+)\(", file.read(), re.M))
    return names


def declared_functions(tree, headers):
    """The names of the functions that headers declare."""
    return {name for header in headers
            for name in re.findall(r"\b(ss_\w+)\([^;{}]*\);",
                                   re.sub(r"/\*.*?\*/", "", tree.text(header), flags=re.S))}


def check_include_cycles(tree):
    """No cycles of includes between headers."""
    includes = {path: [header for quote, header in INCLUDE.findall(tree.text(path))
                       if quote == '"' and header.split("/")[0] in MAY_USE]
                for _, path in tree.files(".h")}
    complaints = []
    done = set()

    def visit(path, chain):
        if path in chain:
            cycle = chain[chain.index(path):] + [path]
            complaints.append("includes in a cycle: " + " > ".join(cycle))
            return
        if path in done:
            return
        for other in includes.get(path, ()):
            visit(other, chain + [path])
        done.add(path)

    for path in includes:
        visit(path, [])
    return complaints


def check_users(tree):
    """A header exists because two files need it, or one and a unit test."""
    users = {path: set() for _, path in tree.files(".h")}
    for _, path in tree.files():
        for _, header in INCLUDE.findall(tree.text(path)):
            if header in users and header[:-2] != path[:-2]:
                users[header].add(path)
    for folder, _, names in os.walk(os.path.join(tree.root, "tests")):
        for name in names:
            if name.endswith((".c", ".h")):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    for _, header in INCLUDE.findall(file.read()):
                        if header in users:
                            users[header].add(name)
    return ["%s: only %s uses it: put it there" % (header, "".join(found) or "its own file")
            for header, found in sorted(users.items()) if len(found) < 2]


def check_circles(tree):
    """No circle of files, by the functions that they call. Tables do not count: that of commands
    names all commands, that of runtimes all runtimes."""
    symbols = list(tree.symbols())
    home = {name: path for _, path, name, letter, _ in symbols if letter == "T"}
    uses = {path: set() for _, path in tree.files(".c")}
    for _, path, name, letter, _ in symbols:
        if letter == "U" and home.get(name, path) != path:
            uses[path].add(home[name])

    def reached(path):
        seen, left = set(), [path]
        while left:
            new = uses[left.pop()] - seen
            seen |= new
            left += new
        return seen

    reach = {path: reached(path) for path in uses}
    circles = {frozenset(other for other in reach[path] if path in reach[other])
               for path in uses if path in reach[path]}
    return ["files in a circle: " + ", ".join(sorted(circle))
            for circle in sorted(circles, key=sorted)]


def check_document(root):
    """The table of rooms in ARCHITECTURE.md has the rooms and arrows of MAY_USE."""
    with open(os.path.join(root, "ARCHITECTURE.md"), encoding="utf-8") as file:
        rows = re.findall(r"^\| `([\w/]+)/` \| .* \| ([^|]*) \|$", file.read(), re.M)
    written = {room: set(re.findall(r"\b[a-z]+\b", uses.replace("`stacksnap.h`", ""))) - {"libc"}
               for room, uses in rows}
    return ["ARCHITECTURE.md: %s may use %s, not %s" %
            (room, sorted(MAY_USE.get(room, ())), sorted(written.get(room, ())))
            for room in sorted(MAY_USE.keys() | written.keys())
            if MAY_USE.get(room) != written.get(room)]


DOCUMENTS = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/*.md")
FOLDERS = {"src", "include", "tests", "targets", "man", "docs", "share"}
# How CTest calls the files of tests/FOLDER/.
TEST_FOLDERS = {"e2e", "cli", "report", "library", "static", "fuzz"}
FILE_NAME = r"[\w.-]+\.(?:c|h|cc|rs|py|sh|js|txt|cmake|sql|css|html)"


def exists(root, pattern):
    return bool(glob.glob(os.path.join(root, pattern)))


def mentioned_path(root, path):
    """Whether a path that a document mentions exists: from the root, or from src/; without the
    ending of a source, or of a test."""
    top = path.split("/")[0]
    if top in FOLDERS:  # share/stacksnap: where share/ is installed
        return exists(root, path.replace("share/stacksnap/", "share/"))
    found = top in MAY_USE and (exists(root, "src/" + path) or exists(root, "src/" + path + ".c"))
    return found or (top in TEST_FOLDERS and (
        exists(root, "tests/%s.*" % path) or
        exists(root, "tests/" + re.sub(r"/([\w-]+)(\..*)?$", r"/test_\1.py", path))))


def anchors(text):
    """The anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_mentions(root):
    """Documents mention only paths, files, functions and types that exist, and link to files and
    headings that exist. A name in capitals, as in src/report/NAME.c, stands for any."""
    names = set()
    words = set()
    for folder in sorted(FOLDERS):
        for top, _, files in os.walk(os.path.join(root, folder)):
            names |= set(files)
            for name in files if folder in ("src", "include") else ():
                if name.endswith((".c", ".h")):
                    with open(os.path.join(top, name), encoding="utf-8") as file:
                        words |= set(re.findall(r"\b(?:ss|SS)_\w+", file.read()))
    complaints = []
    for document in sorted(sum((glob.glob(os.path.join(root, name)) for name in DOCUMENTS), [])):
        with open(document, encoding="utf-8") as file:
            text = re.sub(r"^```.*?^```", "", file.read(), flags=re.M | re.S)
        wrong = []
        for code in re.findall(r"`([^`\n]+)`", text):
            paths = [path for path in re.findall(r"(?<![\w/.<~-])(?:[\w.*-]+/)+[\w.*-]*", code)
                     if path.split("/")[0] in FOLDERS | set(MAY_USE) | TEST_FOLDERS and
                     not re.search(r"\b[A-Z]+\b", path)]
            wrong += [path for path in paths if not mentioned_path(root, path)]
            if re.fullmatch(FILE_NAME, code) and code not in names and not code[0].isupper():
                wrong.append(code)
            wrong += [word for word in re.findall(r"\b(?:ss|SS)_\w+", code) if word not in words]
        for path, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text):
            target = os.path.join(os.path.dirname(document), path) if path else document
            if not os.path.exists(target):
                wrong.append(path)
            elif anchor:
                with open(target, encoding="utf-8") as file:
                    if anchor not in anchors(file.read()):
                        wrong.append("%s#%s" % (path, anchor))
        complaints += ["%s: %s does not exist" % (os.path.relpath(document, root), what)
                       for what in wrong]
    return complaints


# The first CMake that knows what a line asks for.
CMAKE_NEEDS = (
    ("CMakeLists.txt", r"C_STANDARD (?:17|23)\b", (3, 21)),
    ("CMakePresets.json", r'^\s*"version": 3,', (3, 21)),
)


def check_cmake(root):
    """The oldest CMake that is accepted knows what is used."""
    texts = {}
    for name in ("CMakeLists.txt", "CMakePresets.json"):
        with open(os.path.join(root, name), encoding="utf-8") as file:
            texts[name] = file.read()
    least = re.search(r"^cmake_minimum_required\(VERSION (\d+)\.(\d+)", texts["CMakeLists.txt"])
    least = tuple(map(int, least.groups()))
    return ["CMakeLists.txt: %s of %s needs CMake %d.%d" % (pattern, name, *needs)
            for name, pattern, needs in CMAKE_NEEDS
            if least < needs and re.search(pattern, texts[name], re.M)]


WORDS_MAX = 15000  # of the documents besides README.md and the manual pages


def check_length(root):
    """Documents stay short."""
    words = 0
    for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "docs/*.md"):
        for path in glob.glob(os.path.join(root, name)):
            with open(path, encoding="utf-8") as file:
                words += len(file.read().split())
    return [] if words <= WORDS_MAX else ["documents have %d words" % words]
