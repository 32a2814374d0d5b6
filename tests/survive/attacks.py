"""
The attacks that docs/how-we-know.md sums up: hard and hostile circumstances, how often each was tried, and
how often something did not hold. disturbances.py is about what a look does to a process; this is about
whether the tool copes, and leaves the process as it was.

./dev attack [-- [--only=NAME]... [--tries=N]]

To add one: a function with @attack that yields for each try what went wrong, or None.
"""

import argparse
import contextlib
import fcntl
import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

from subjects import Lab, Unavailable, require, require_namespaces
import killing
from disturbances import MODES, NOBODY, finish, numbers
from survive import circumstances, say
from harness import LIMIT_S, STACKSNAP, TARGETS, for_everyone, read_text, task_states, wait_until
from test_core_handler import order_like_kernel

SNAPS = [mode for mode in MODES if mode.name in ("auto", "no-stop", "stop", "live")]
DENY = os.path.join(TARGETS, "deny_syscalls")
WHOLE = (0,)
SAID = (0, 1)  # 1: what is missing is said
WAIT_MAX_S = 5  # far above what a loaded machine takes, below the tool's time limits

ATTACKS = []


def attack(title, tries=1):
    """tries: how often the whole is repeated, if --tries does not say it."""
    def add(function):
        ATTACKS.append((function.__name__, title, tries, function))
        return function
    return add


def look(lab, mode, pid, status=WHOLE, prefix=(), tool=STACKSNAP, threads=None, limit_s=LIMIT_S,
         silent=False, perf_events=True, **options):
    """Runs the tool. What is wrong with its result, or with the process afterwards; or None.
    threads: a snapshot must have so many. silent: what is missing cannot be said.
    perf_events: they are allowed; otherwise trace --alloc has nothing."""
    command = [*prefix, *mode.command(lab.directory, 5 if mode.name == "series" else 20, tool),
               str(pid)]
    options.setdefault("stdout", subprocess.PIPE)
    try:
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                timeout=limit_s, check=False, **options)
    except subprocess.TimeoutExpired:
        return "%s: no result in %d s" % (mode.name, limit_s)
    finally:
        for name in os.listdir(lab.directory):
            if name.startswith("recording-"):
                os.unlink(lab.path(name))
    words = result.stderr.decode("utf-8", "replace")[:300]
    expected = (*status, *((3, 4) if mode.name == "hang" else ()),
                *((2,) if mode.name == "alloc" and not perf_events else ()))
    if result.returncode not in expected:
        return "%s: status %d: %s" % (mode.name, result.returncode, words)
    if result.returncode in (1, 2) and not words and not silent:
        return "%s: status %d without a word" % (mode.name, result.returncode)
    if threads and mode in SNAPS:
        found = len(json.loads(result.stdout)["threads"])
        if found != threads:
            return "%s: %d of %d threads" % (mode.name, found, threads)
    if not killing.is_free(pid, LIMIT_S):
        return "%s: the process is not free afterwards" % mode.name
    return None


def looks(lab, pid, modes=None, **options):
    for mode in modes or MODES:
        yield look(lab, mode, pid, **options)


# Truth ---------------------------------------------------------------------------------------

@attack("threads pass a baton: two hold it in a snapshot that calls itself atomic", 2500)
def baton(lab, tries):
    target = lab.start("ring", 30, settle=False)
    for mode in SNAPS:
        atomic = 0
        if mode.name not in ("auto", "stop"):
            continue
        while atomic < tries:
            result = subprocess.run([STACKSNAP, "--mode=" + mode.name, "-f", "json", "--no-inlines",
                                     "--no-source", "--no-waits", str(target.pid)],
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                    timeout=LIMIT_S, check=False)
            snapshot = json.loads(result.stdout)
            if not snapshot["capture"]["consistent"]:
                continue
            atomic += 1
            holders = [thread["tid"] for thread in snapshot["threads"]
                       if any(frame["symbol"] == "hold" for frame in thread["frames"])]
            yield None if len(holders) < 2 else "%s: %s hold it" % (mode.name, holders)


# Size ----------------------------------------------------------------------------------------

@attack("8,000 threads")
def many_threads(lab, _):
    target = lab.start("threads", 1600, 3)
    yield from looks(lab, target.pid, status=SAID, threads=len(task_states(target.pid)))


@attack("100,000 mappings")
def many_mappings(lab, _):
    path = "/proc/sys/vm/max_map_count"
    limit = read_text(path)
    if int(limit) < 110000:
        if os.geteuid() != 0:
            raise Unavailable("needs root to raise vm.max_map_count")
        lab.callback(set_text, path, limit)
        set_text(path, "110000")
    yield from looks(lab, lab.start("areas", 100000).pid)


@attack("5,000 modules, a frame in each")
def many_modules(lab, _):
    chain = lab.path("chain")
    os.mkdir(chain)
    for index in range(5000):
        shutil.copy(os.path.join(TARGETS, "chain", "libchain_%d.so" % (index % 200)),
                    os.path.join(chain, "libchain_%d.so" % index))
    target = lab.start("dlchain", 5000, chain)
    yield from looks(lab, target.pid, status=SAID)


def set_text(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


# Hostile contents ----------------------------------------------------------------------------

KINDS = ("expression", "states", "length", "nowhere", "itself", "cycle")


@attack("JIT code is registered with hostile unwind information: endless expressions, cycles, wrong sizes "
        "and addresses")
def hostile_frames(lab, _):
    if not os.path.exists(os.path.join(TARGETS, "hostile_frames")):
        raise Unavailable("its code is of x86-64")
    for kind in KINDS:
        target = lab.start("hostile_frames", kind)
        yield from looks(lab, target.pid, status=SAID, threads=3, limit_s=20)
        target.kill()


@attack("2,000 deep stacks, more than `--max-total`")
def deep_stacks(lab, _):
    target = lab.start("deep", 3000, 2000)
    for mode in SNAPS:
        yield look(lab, mode, target.pid, status=SAID, threads=2001)


@attack("core files with random changes in headers and notes: the analysis dies", 300)
def damaged_cores(lab, tries):
    target = lab.start("threads", 2, 5)
    subprocess.run([require("gcore"), "-o", lab.path("core"), str(target.pid)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_S)
    path = lab.path("core.%d" % target.pid)
    with open(path, "rb") as file:
        good = file.read(1 << 14)
    generator = random.Random(11)
    for _ in range(tries):
        bad = bytearray(good)
        for _ in range(generator.randrange(1, 30)):
            bad[generator.randrange(len(bad))] = generator.randrange(256)
        with open(path, "r+b") as file:
            file.write(bad)
        result = subprocess.run([STACKSNAP, "core", path], stdin=subprocess.DEVNULL, timeout=20,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        good_status = result.returncode in (0, 1, 2)
        yield None if good_status and b"the analysis" not in result.stderr else result.stderr[:200]


# A child that was taken over -------------------------------------------------------------------

HOSTILE = os.path.join(os.path.dirname(STACKSNAP), "tests", "hostile", "hostile_child")
LANDLOCK = "444"  # landlock_create_ruleset(2)


def taken_over(mode, pid, prefix=(), tool=HOSTILE):
    """What a snapshot prints to standard error if its children do what mode says."""
    if not os.path.exists(HOSTILE):
        raise Unavailable("needs a build with tests")
    return subprocess.run([*prefix, tool, "--no-cache", str(pid)], stdin=subprocess.DEVNULL, check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=LIMIT_S,
                          env=dict(os.environ, SS_HOSTILE=mode)).stderr.decode("utf-8", "replace")


@attack("a sandboxed child that was taken over requests a program and a core dump that only root may read", 100)
def requested_files(lab, tries):
    if os.geteuid() != 0:
        raise Unavailable("needs root")
    target = lab.start("threads", 2, 5)
    generator = random.Random(29)
    for core in (False, True):
        path = lab.path("secret")
        shutil.copy(os.path.join(TARGETS, "threads"), path)
        os.chmod(path, 0o600)
        if core:
            with open(path, "r+b") as file:
                file.seek(16)
                file.write(b"\4\0")  # ET_CORE
        for _ in range(tries):
            proof = generator.choice(("", "b%040x", "b%016x", "b%02x", "c%08x", "g%032x"))
            if proof:
                proof %= generator.getrandbits(4 * int(proof[2:4]))
            words = taken_over("request:P%s %s" % (proof, path), target.pid)
            yield words if "got inode %d\n" % os.stat(path).st_ino in words else None


@attack("with and without Landlock, a sandboxed child that was taken over opens the memory of another process of its "
        "user, of nobody as that of root, and of root", 10)
def memory_of_others(lab, tries):
    if os.geteuid() != 0:
        raise Unavailable("needs root")
    os.chmod(lab.directory, 0o777)
    program = lab.copy("threads", "threads")
    root = [lab.start("threads", 2, 5) for _ in range(2)]
    nobody = [lab.start_file(*NOBODY, program, 2, 5) for _ in range(2)]
    for _ in range(tries):
        for prefix in ((), (for_everyone(DENY), LANDLOCK)):
            for rights, pair in (((), root), ((), nobody), (NOBODY, nobody)):
                words = taken_over("open:/proc/%d/mem" % pair[0].pid, pair[1].pid, (*rights, *prefix),
                                   for_everyone(HOSTILE))
                yield None if words == "could not open it\n" else words


def signal_children(pid, user):
    """Sends SIGKILL to what a tool has started, as a user, until it ends. How often that was allowed."""
    killer = subprocess.run(["setpriv", "--reuid=%d" % user, "--clear-groups", sys.executable, "-c", """
import os, sys
sent = 0
try:
    while True:
        for child in open("/proc/%s/task/%s/children" % (sys.argv[1], sys.argv[1])).read().split():
            try:
                os.kill(int(child), 9)
                sent += 1
            except OSError:
                pass
except OSError:
    print(sent)
""", str(pid)], stdout=subprocess.PIPE, check=True, timeout=LIMIT_S)
    return int(killer.stdout)


@attack("the user of the process sends `SIGKILL` to the children of root's stacksnap, all the time", 5)
def killed_children(lab, tries):
    if os.geteuid() != 0:
        raise Unavailable("needs root")
    os.chmod(lab.directory, 0o777)
    target = lab.start_file(*NOBODY, lab.copy("threads", "threads"), 2, 5)
    for _ in range(tries):
        for mode in MODES:
            tool = subprocess.Popen([*mode.command(lab.directory), str(target.pid)], stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            words = []
            reader = threading.Thread(target=lambda: words.append(tool.stderr.read()))
            reader.start()
            waiter = threading.Thread(target=tool.wait)
            waiter.start()
            sent = signal_children(tool.pid, 65534)
            waiter.join()
            reader.join()
            expected = (0, 1, 3, 4)
            yield "%s: %d signals were sent, status %d: %s" % (mode.name, sent, tool.returncode, words) \
                if sent or tool.returncode not in expected else None
            for name in os.listdir(lab.directory):
                if name.startswith("recording-"):
                    os.unlink(lab.path(name))


# Scheduling and memory -----------------------------------------------------------------------

def cgroup(lab, controller):
    """A new group of cgroup version 1 or 2."""
    for base in ("/sys/fs/cgroup/" + controller, "/sys/fs/cgroup"):
        path = os.path.join(base, os.path.basename(lab.directory))
        if os.path.isdir(base) and (base.endswith(controller) or controller in read_text(
                base + "/cgroup.subtree_control")):
            with contextlib.suppress(OSError):
                os.mkdir(path)
                lab.callback(remove_group, path)
                return path
    raise Unavailable("no cgroup with the controller " + controller)


def remove_group(path):
    with contextlib.suppress(OSError, AssertionError):
        wait_until(lambda: not read_text(path + "/cgroup.procs"), "the group to be empty")
        os.rmdir(path)


def join(path):
    return lambda: set_text(path + "/cgroup.procs", "0")


@attack("a CPU quota of 2 %, busy threads")
def cpu_quota(lab, _):
    path = cgroup(lab, "cpu")
    if os.path.exists(path + "/cpu.max"):
        set_text(path + "/cpu.max", "2000 100000")
    else:
        set_text(path + "/cpu.cfs_period_us", "100000")
        set_text(path + "/cpu.cfs_quota_us", "2000")
    target = lab.start("busy", 4, 10, settle=False, preexec_fn=join(path))
    yield from looks(lab, target.pid, status=SAID)


@attack("a memory limit with 2 MiB left, for the process and the tool")
def memory_limit(lab, _):
    path = cgroup(lab, "memory")
    target = lab.start("threads", 20, 10, preexec_fn=join(path))
    version2 = os.path.exists(path + "/memory.current")
    used = int(read_text(path + ("/memory.current" if version2 else "/memory.usage_in_bytes")))
    set_text(path + ("/memory.max" if version2 else "/memory.limit_in_bytes"),
             str(used + (2 << 20)))
    for mode in MODES:
        # The kernel kills the tool, or its child first: never the process.
        wrong = look(lab, mode, target.pid, status=(0, 1, 2, -signal.SIGKILL), preexec_fn=join(path))
        yield wrong or (None if target.process.poll() is None else mode.name + ": it was killed")


@attack("the address space of the tool is limited to 16, 32, 64, 128 and 512 MiB")
def address_space(lab, _):
    target = lab.start("threads", 20, 10)
    for mib in (16, 32, 64, 128, 512):
        yield from looks(lab, target.pid, status=(0, 1, 2), preexec_fn=lambda size=mib << 20:
                         resource.setrlimit(resource.RLIMIT_AS, (size, size)))


@attack("a thread at SCHED_FIFO spins, others beside it")
def fifo(lab, _):
    if os.geteuid() != 0:
        raise Unavailable("needs root")
    yield from looks(lab, lab.start_file(require("chrt"), "-f", "50", os.path.join(TARGETS, "busy"), 1, 10,
                                         settle=False).pid, status=SAID)


@attack("threads at SCHED_IDLE beside busy ones on each CPU")
def idle(lab, _):
    for _ in range(os.cpu_count()):
        lab.start("busy", 1, 1, settle=False)
    yield from looks(lab, lab.start_file(require("chrt"), "-i", "0", os.path.join(TARGETS, "busy"), 4, 10,
                                         settle=False).pid, status=SAID)


# Storms ----------------------------------------------------------------------------------------

@attack("a timer of 1 kHz: no expiration is lost", 20)
def timer(lab, tries):
    target = lab.start("timer", settle=False)
    begin = time.monotonic()
    for _ in range(tries):
        yield from looks(lab, target.pid, status=SAID)
    expected = int((time.monotonic() - begin) * 1000)
    _, expired = numbers(finish(target) or "signals 0 0")
    yield None if expired >= expected else "%d of %d expirations" % (expired, expected)


@attack("nginx, running and stopped by `SIGSTOP` in turn: a snapshot waits for more than 5 s", 2000)
def needless_waits(lab, tries):
    config = lab.path("nginx.conf")
    set_text(config, "daemon off; worker_processes 2; error_log stderr; pid %s; events { }\n"
             "http { access_log off; server { listen unix:%s; } }\n"
             % (lab.path("pid"), lab.path("socket")))
    server = lab.run([require("nginx"), "-p", lab.directory, "-c", config])
    children = "/proc/%d/task/%d/children" % (server.pid, server.pid)
    wait_until(lambda: len(read_text(children).split()) == 2, "the workers of nginx")
    pids = [server.pid, *map(int, read_text(children).split())]
    longest = 0
    try:
        for i in range(tries):
            for pid in pids:
                os.kill(pid, signal.SIGSTOP if i // 10 % 2 else signal.SIGCONT)
            mode = SNAPS[i % len(SNAPS)]
            begin = time.monotonic()
            result = subprocess.run([*mode.command(lab.directory), str(pids[i % 3])],
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, check=False)
            spent = time.monotonic() - begin
            longest = max(longest, spent)
            if result.returncode not in SAID:
                yield "%s: status %d: %s" % (mode.name, result.returncode, result.stderr[:300])
            else:
                yield "%s: %.1f s" % (mode.name, spent) if spent > WAIT_MAX_S else None
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        server.terminate()  # it ends its workers, too
        server.wait()
    say("needless_waits: the longest run took %.2f s, the load is %.0f now"
        % (longest, os.getloadavg()[0]))


@attack("storms of exec, vfork and threads", 10)
def storms(lab, tries):
    targets = [lab.start("exec_loop", settle=False), lab.start("churn", settle=False),
               lab.start("vfork_parent", settle=False)]
    for _ in range(tries):
        for target in targets:
            # Of a program that lives for a millisecond there may be nothing to show.
            yield from looks(lab, target.pid, status=(0, 1, 2))


@attack("the recorder is killed (`SIGKILL`) at a random moment: a signal is lost, or a thread stays stopped", 500)
def killed_recorder(lab, tries):
    target = lab.start("sigcount")
    generator = random.Random(7)
    mode = next(mode for mode in MODES if mode.name == "record")
    for _ in range(tries):
        tool = subprocess.Popen([*mode.command(lab.directory, 200), "-r", "999", str(target.pid)],
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        time.sleep(generator.uniform(0, 0.2))  # a random moment
        os.kill(target.pid, signal.SIGRTMIN)
        tool.kill()
        tool.wait(LIMIT_S)
        yield None if killing.is_free(target.pid, LIMIT_S) else "left stopped"
        for name in os.listdir(lab.directory):
            os.unlink(lab.path(name))
    wait_until(lambda: read_text("/proc/%d/status" % target.pid).count("\nShdPnd:\t0000000000000000"),
               "the signals to arrive")
    received = numbers(finish(target) or "signals 0")[-1]
    yield None if received == tries else "%d signals were lost" % (tries - received)


PYTHON_STORMS = {
    "fork": "pid = os.fork()\n    if pid == 0: os._exit(square(999) % 1)\n    os.waitpid(pid, 0)",
    "exec": "pid = os.fork()\n    if pid == 0: os.execv('/bin/true', ['true'])\n    os.waitpid(pid, 0)",
    "vfork": "subprocess.run(['/bin/true'], close_fds=False)",
    "threads": "new = [threading.Thread(target=square, args=(999,)) for _ in range(9)]\n"
               "    [t.start() for t in new], [t.join() for t in new]",
}
PYTHON_STORM = """
import os, subprocess, threading
def square(n):
    return sum(i * i for i in range(n))
def compute():
    while True: square(300)
threading.Thread(target=compute, daemon=True).start()
print("ready", flush=True)
while True:
    %s
"""


@attack("Python that forks, executes, calls vfork or starts threads all the time", 10)
def python_storms(lab, tries):
    targets = [lab.start_file(sys.executable, "-c", PYTHON_STORM % text, settle=False)
               for text in PYTHON_STORMS.values()]
    modes = [mode for mode in MODES if mode.name in ("series", "record", "top")]
    for _ in range(tries):
        for target in targets:
            yield from looks(lab, target.pid, modes, status=SAID)


# Rights and limits of the tool -------------------------------------------------------------------

@attack("a seccomp filter without `ptrace`, `process_vm_readv`, both, `pidfd_open`, `perf_event_open`, "
        "`openat2`, `io_uring` or `memfd_create`")
def container(lab, _):
    target = lab.start("threads", 2, 5)
    for calls in ("101", "310", "101,310", "434", "298", "437", "425,426,427", "319"):
        yield from looks(lab, target.pid, status=(0, 1, 2) if "101" in calls else SAID,
                         prefix=[DENY, calls], perf_events=calls != "298")


@attack("`RLIMIT_NOFILE` of 64, 32, 16 and 8")
def few_files(lab, _):
    target = lab.start("threads", 2, 5)
    for files in (64, 32, 16, 8):
        yield from looks(lab, target.pid, status=(0, 1, 2), preexec_fn=lambda limit=files:
                         resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))


PYTHON_BUSY = """
import threading
def square(n):
    return sum(i * i for i in range(n))
def compute():
    while True: square(300)
for _ in range(10): threading.Thread(target=compute).start()
print("ready", flush=True)
"""


@attack("Python: `RLIMIT_NOFILE` of 64, and no `CAP_BPF`, no `CAP_PERFMON`, neither of them", 3)
def python_rights(lab, tries):
    target = lab.start_file(sys.executable, "-c", PYTHON_BUSY, settle=False)
    modes = [mode for mode in MODES if mode.name in ("record", "top")]

    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    for _ in range(tries):
        yield from looks(lab, target.pid, modes, status=SAID, preexec_fn=few)
        for missing in ("-bpf", "-perfmon", "-bpf,-perfmon"):
            yield from looks(lab, target.pid, modes, status=SAID,
                             prefix=["setpriv", "--bounding-set=%s,-sys_admin" % missing])


@attack("each subset of standard input, output and error is closed")
def closed_streams(lab, _):
    target = lab.start("threads", 2, 5)
    for closed in range(1, 8):
        def close(which=closed):
            for fd in range(3):
                if which >> fd & 1:
                    os.close(fd)
        for mode in MODES:
            # Without standard output there is nowhere to print a result to.
            yield look(lab, mode, target.pid, status=(0, 1, 2), silent=True, preexec_fn=close)


@attack("the disk is full")
def full_disk(lab, _):
    require_namespaces()
    target = lab.start("threads", 2, 5)
    disk = lab.path("disk")
    os.mkdir(disk)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], check=True)
    lab.callback(subprocess.run, ["umount", "-l", disk], check=False)
    with contextlib.suppress(OSError), open(os.path.join(disk, "filler"), "wb", 0) as filler:
        while True:
            filler.write(bytes(4096))
    for mode in MODES:
        if mode.name not in ("top", "alloc"):
            yield full_file(mode, target.pid, os.path.join(disk, "output"))
        with open("/dev/full", "wb") as full:
            if mode.name != "record":
                yield look(lab, mode, target.pid, status=(2,), stdout=full)


def full_file(mode, pid, output):
    """Writes to a file on a full disk."""
    tool = mode.command(os.path.dirname(output)) if mode.name != "record" else [
        STACKSNAP, *mode.arguments, "-d", "2s", "-r", "999"]
    result = subprocess.run([*tool, "-o", output, str(pid)], stdin=subprocess.DEVNULL, check=False,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=LIMIT_S)
    said = result.returncode in (1, 2) and b"No space left" in result.stderr
    left = os.path.exists(output) and mode.name != "record"  # a part of a recording is of use
    with contextlib.suppress(FileNotFoundError):
        os.unlink(output)
    if said and not left and killing.is_free(pid, LIMIT_S):
        return None
    return "%s: status %d, %s%s" % (mode.name, result.returncode, result.stderr[:200],
                                    ", an incomplete file" if left else "")


@attack("user namespaces: the process in one, and the tool in another one")
def user_namespaces(lab, _):
    require("unshare")
    inner = lab.start_file("unshare", "--user", "--map-root-user", os.path.join(TARGETS, "threads"), 2, 5)
    yield from looks(lab, inner.pid)
    target = lab.start("threads", 2, 5)
    yield from looks(lab, target.pid, status=(0, 1, 2), prefix=["unshare", "--user", "--map-root-user"])


@attack("`/proc` with `hidepid=2`, for the own process of a user and for one of root")
def hidepid(lab, _):
    require_namespaces()
    tool = for_everyone(STACKSNAP)
    os.chmod(lab.directory, 0o777)
    own = lab.start_file(*NOBODY, lab.copy("threads", "threads"), 2, 5)
    prefix = ["unshare", "--mount", "sh", "-c", 'mount -t proc -o hidepid=2 none /proc && exec "$@"',
              "sh", *NOBODY]
    yield from looks(lab, own.pid, prefix=prefix, tool=tool, status=SAID, perf_events=False)
    target = lab.start("threads", 2, 5)
    yield from looks(lab, target.pid, prefix=prefix, tool=tool, status=(2,))


@attack("started by a set-user-ID program: real and effective user differ")
def set_uid_caller(lab, _):
    if os.geteuid() != 0:
        raise Unavailable("needs root")
    target = lab.start("threads", 2, 5)
    os.chmod(lab.directory, 0o777)
    # SS: real user nobody, effective user root, as of a set-user-ID program
    yield from looks(lab, target.pid, prefix=["setpriv", "--ruid=65534", "--euid=0"], status=SAID)
    # no rights are left but the saved user id
    yield from looks(lab, target.pid, prefix=["setpriv", "--ruid=0", "--euid=65534"], tool=for_everyone(STACKSNAP),
                     status=(2,))


# The kernel's crash handler -------------------------------------------------------------------------

class Crash:
    """A process of a user, its dump, and a directory of reports: the handler is run as the kernel
    runs it."""

    def __init__(self, lab, user=0):
        if os.geteuid() != 0:
            raise Unavailable("needs root")
        require("gcore")
        self.directory = tempfile.mkdtemp(prefix="sh-", dir="/var/lib")
        lab.callback(shutil.rmtree, self.directory)
        os.chmod(self.directory, 0o711)
        self.reports = os.path.join(self.directory, "reports")
        program = shutil.copy(os.path.join(TARGETS, "crash"), self.directory)
        self.target = lab.start_file("setpriv", "--reuid=%d" % user, "--regid=%d" % user,
                                     "--clear-groups", program, "stop")
        core = os.path.join(self.directory, "core")
        subprocess.run([require("gcore"), "-o", core, str(self.target.pid)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_S)
        self.core = "%s.%d" % (core, self.target.pid)
        order_like_kernel(self.core)
        self.time = 0

    def start(self, *options, prefix=(), pidfd=-1, directory=None):
        self.time += 1
        pid = str(self.target.pid)
        with open(self.core, "rb") as core:
            return subprocess.Popen(
                [*prefix, STACKSNAP, "core", "--handler", "--directory=" + (directory or self.reports),
                 *options, pid, pid, "11", str(self.time), "1", str(pidfd) if pidfd >= 0 else ""],
                stdin=core, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                pass_fds=(pidfd,) if pidfd >= 0 else ())

    def handle(self, *options, **more):
        process = self.start(*options, **more)
        _, errors = process.communicate(timeout=LIMIT_S)
        self.settle()
        return process.returncode, errors.decode()

    def settle(self):
        """Until no handler holds a slot."""
        def is_idle():
            with open(os.path.join(self.reports, ".handler"), "r+b") as file, \
                    contextlib.suppress(BlockingIOError):
                fcntl.fcntl(file, 37, struct.pack("hhxxxxqqixxxx", fcntl.F_WRLCK, 0, 1, 16, 0))
                return True
        if os.path.exists(os.path.join(self.reports, ".handler")):
            wait_until(is_idle, "the end of the handlers")

    def list(self):
        return [name for name in os.listdir(self.reports) if name.startswith("crash-crash-")]

    def forge(self, name, size=0, user=65534, when=None):
        os.makedirs(self.reports, exist_ok=True)
        path = os.path.join(self.reports, name)
        with open(path, "wb") as file:
            file.truncate(size)
        os.chown(path, user, user)
        if when:
            os.utime(path, (when, when))
        return path


@attack("crash handler: a user makes his reports 4 GiB sparse, or dates them 2096: others are lost", 10)
def handler_files(lab, tries):
    crash = Crash(lab)
    old = crash.forge("crash-old-0-1-1.json", user=0, when=1000)
    for index in range(10):
        crash.forge("crash-crash-%d-1.json" % index, 4 << 30, when=4000000000)
    before = len(crash.list())
    for index in range(tries):
        crash.handle("--rate=1000")
        yield None if os.path.exists(old) and len(crash.list()) == before + index + 1 else "a report is missing"


@attack("crash handler: 60 at once, `--rate=10`: more than 10 write, or one is refused and not counted", 3)
def handler_flood(lab, tries):
    for _ in range(tries):
        crash = Crash(lab, 65534)
        handlers = [crash.start("--rate=10") for _ in range(60)]
        codes = [(process.communicate(timeout=LIMIT_S), process.returncode)[1] for process in handlers]
        crash.settle()
        made = len(crash.list())
        with open(os.path.join(crash.reports, ".handler"), "rb") as file:
            refused, = struct.unpack_from("<Q", file.read(), 8)
        yield None if made <= 10 and codes.count(0) == made and refused == 60 - made else \
            "%d reports, %d refused" % (made, refused)


@attack("crash handler: a user fills the quota: reports of another user or of the system are lost", 30)
def handler_quota(lab, tries):
    crash = Crash(lab, 65534)
    others = [crash.forge("crash-x-%d-1-1.json" % user, 100 << 10, user=0, when=1000) for user in (0, 4711)]
    for _ in range(tries):
        crash.handle("--quota=1", "--rate=1000")
        yield None if all(map(os.path.exists, others)) else "the report of another one is gone"
    size = sum(os.path.getsize(os.path.join(crash.reports, name)) for name in crash.list())
    yield None if 0 < size <= 128 << 10 else "%d bytes are left" % size


@attack("crash handler: the number of the process is that of another one, with and without `pidfd_open`", 20)
def handler_pid(lab, tries):
    crash = Crash(lab)
    for index in range(tries):
        gone = subprocess.Popen(["true"])
        pidfd = os.pidfd_open(gone.pid)
        gone.wait()
        status, errors = crash.handle(prefix=(DENY, "434") if index % 2 else (), pidfd=pidfd)
        os.close(pidfd)
        yield None if status == 2 and not crash.list() else "a report of the wrong process: " + errors


@attack("crash handler: a user puts reports into the directory, or writes to his own: they are counted", 10)
def handler_forgery(lab, tries):
    crash = Crash(lab, 65534)
    for _ in range(tries):
        crash.handle("--rate=1000")
        own = [os.path.join(crash.reports, name) for name in crash.list()]
        code = "import os, sys\nfor path in sys.argv[1:]:\n    for act in (os.truncate, os.utime, os.chmod, os.unlink):\n" \
               "        try: act(path, *((0,) if act in (os.truncate, os.chmod) else ()))\n        except OSError: continue\n" \
               "        sys.exit(act.__name__)"
        user = subprocess.run([*NOBODY, "/usr/bin/python3", "-c", code, *own], stderr=subprocess.PIPE, check=False)
        crash.forge("crash-sshd-0-%d-1.json" % crash.time)
        report = subprocess.run([STACKSNAP, "report", "-f", "json", crash.reports], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, check=False)
        # gcore's dumps have no signal: the own reports are not of crashes
        said = json.loads(report.stdout) if report.stdout else {"foreign": crash.time, "crashes": 0}
        yield None if user.returncode == 0 and said["foreign"] == crash.time and not said["crashes"] else \
            "%s %s" % (user.stderr[:200], said)


@attack("crash handler: a component of `--directory` is a link, a magic link, or writable by others")
def handler_directory(lab, _):
    crash = Crash(lab)
    os.mkdir(crash.reports)
    link = os.path.join(crash.directory, "link")
    os.symlink(crash.directory, link)
    shared = os.path.join(crash.directory, "shared")
    os.mkdir(shared)
    os.chmod(shared, 0o1777)
    owned = os.path.join(crash.directory, "owned")
    os.mkdir(owned)
    os.chown(owned, 65534, 65534)
    for directory in (link, link + "/reports", "/proc/self/cwd", "/proc/self/root/var/lib", shared + "/r",
                      owned, owned + "/r", "reports"):
        status, errors = crash.handle(directory=directory)
        yield None if status == 2 and ("link" in errors or "others may write" in errors or "begin with /" in errors) \
            else "%s: %s" % (directory, errors)


# The list ----------------------------------------------------------------------------------------

def measure(name, title, tries, function):
    count, wrong = 0, []
    begin = time.monotonic()
    with Lab() as lab:
        try:
            for problem in function(lab, tries):
                count += 1
                if problem:
                    wrong.append(problem)
                    say("%s: %s" % (name, problem))
        except Unavailable as reason:
            say("%s: %s" % (name, reason))
            return None
    say("%s: %d tries, %d failed, %d s" % (name, count, len(wrong), time.monotonic() - begin))
    return "- %s: %s%d" % (title, "**%d** of " % len(wrong) if wrong else "", count), wrong


def main():
    parser = argparse.ArgumentParser(description="Try hard and hostile circumstances.")
    parser.add_argument("--only", action="append", metavar="NAME",
                        help="try only this one; may be repeated")
    parser.add_argument("--tries", type=int, help="how often (default: as the list says)")
    arguments = parser.parse_args()
    lines = []
    failed = False
    for name, title, tries, function in ATTACKS:
        if arguments.only and name not in arguments.only:
            continue
        result = measure(name, title, arguments.tries or tries, function)
        if result:
            lines.append(result[0])
            failed = failed or bool(result[1])
    print("\n".join(lines) + "\n\n" + circumstances(None))
    sys.exit(failed)


if __name__ == "__main__":
    main()
