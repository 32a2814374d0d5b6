"""Debian's releases, and musl, as root directories: the static binary reads their programs, from outside
and from inside."""

import contextlib
import json
import os
import shutil
import subprocess

from harness import LIMIT_S, Target, canonical, reads_stdin, wait_until
from kernels import KEYS, MIRROR

SUITES = ("bullseye", "bookworm", "trixie", "sid")
PACKAGES = "python3,nodejs,fzf,default-jre-headless,musl,systemd-sysv"
JAVA = """
class Sleeper {
	static void inner() throws Exception { System.out.println("ready"); Thread.sleep(1000000); }
	static void outer() throws Exception { inner(); }
	public static void main(String[] arguments) throws Exception { outer(); }
}
"""
JAVASCRIPT = ("function inner() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); }\n"
              "function outer() { inner(); }\nrequire('fs').writeSync(1, 'ready\\n');\nouter();")
PYTHON = ("import time\ndef inner():\n print('ready', flush=True); time.sleep(1000)\n"
          "def outer(): inner()\nouter()")
VERSION = {"Python": ["python3", "--version"], "node": ["node", "--version"],
           "Java": ["sh", "-c", "java -version 2>&1"], "Go (fzf)": ["sh", "-c", "fzf --version"]}

# program: its command, kind of frames, functions from the innermost one on
PROGRAMS = {
    "C": (["sh", "-c", "echo ready; read line"], "native", ["read"]),
    "musl": (["/musl"], "native", ["in_poll", "descend", "thread_routine"]),
    "Python": (["python3", "-c", PYTHON], "python", ["inner", "outer", "<module>"]),
    "node": (["node", "-e", JAVASCRIPT], "javascript", ["inner", "outer"]),
    "Java": (["java", "-Xmx64m", "-cp", "/", "Sleeper"], "java", ["inner", "outer", "main"]),
    "Go (fzf)": (["sh", "-c", "echo ready; exec fzf --filter=x"], "native", ["ReadSource", "goexit"]),
}


# Versions that are not supported: they say so.
OLD = {("bullseye", "node"), ("bullseye", "Go (fzf)")}
SAID = "is not known"


def is_right(suite, program, lacking):
    """Whether the result is what it should be."""
    return SAID in (lacking or "") if (suite, program) in OLD else not lacking


def exists(directory, suite):
    return os.path.exists(os.path.join(directory, "userlands", suite, "stacksnap-made"))


def make(directory, suite, say):
    """A root directory of that release, or the one that is there; None if it cannot be made."""
    root = os.path.join(directory, "userlands", suite)
    if os.path.exists(os.path.join(root, "stacksnap-made")):
        return root
    if os.path.exists(root):  # debootstrap has failed, or was killed, and mounts /proc there
        subprocess.run(["umount", "--quiet", "--recursive", os.path.join(root, "proc")], check=False)
        subprocess.run(["rm", "-rf", "--one-file-system", root], check=True)
    os.makedirs(root)
    log = root + ".log"
    say("debootstrap %s (log: %s)" % (suite, log))
    with open(log, "wb") as file:
        done = subprocess.run(["debootstrap", "--variant=minbase", "--include=" + PACKAGES,
                               "--keyring=" + KEYS, suite, root, MIRROR], stdin=subprocess.DEVNULL,
                              stdout=file, stderr=file, check=False)
    if done.returncode:
        return None
    with open(os.path.join(root, "stacksnap-made"), "w", encoding="ascii"):
        pass
    return root


@contextlib.contextmanager
def mounted(root):
    """With /proc, and what is read and run there."""
    shutil.copy(os.environ["STATIC"], os.path.join(root, "stacksnap"))
    targets = os.path.join(os.environ["SOURCE"], "targets")
    subprocess.run(["musl-gcc", "-O2", "-g", "-pthread", "-o", os.path.join(root, "musl"),
                    os.path.join(targets, "musl.c"), os.path.join(targets, "target.c")], check=True)
    if not os.path.exists(os.path.join(root, "Sleeper.class")):
        with open(os.path.join(root, "Sleeper.java"), "w", encoding="ascii") as file:
            file.write(JAVA)
        subprocess.run(["javac", "--release", "8", "-d", root, os.path.join(root, "Sleeper.java")],
                       stderr=subprocess.DEVNULL, check=True)
    subprocess.run(["mount", "-t", "proc", "proc", os.path.join(root, "proc")], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", os.path.join(root, "proc")], check=True)


def version(root, program):
    if program not in VERSION:
        return ""
    done = subprocess.run(["chroot", root, *VERSION[program]], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)
    return done.stdout.split("\n")[0]


def judge(command, kind, functions):
    """What a snapshot lacks, or None; and why, if it says so."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S,
                          check=False)
    try:
        document = json.loads(done.stdout)
    except ValueError:
        return done.stderr.decode("utf-8", "replace")
    threads = document["threads"]
    for thread in threads + (document["goroutines"] or []):
        names = [canonical(frame["symbol"] or "").split(".")[-1]
                 for frame in thread["frames"] or () if frame["kind"] == kind]
        rest = iter(names)
        if all(function in rest for function in functions):
            return document["goroutines_problem"]
    reasons = {runtime["problem"] for runtime in document["runtimes"]} - {None}
    return "; ".join(sorted(reasons)) or "no thread has %s" % " ".join(functions)


def check(root):
    """{program: (its version, what is lacking or None)}"""
    found = {}
    with mounted(root):
        for program, (command, kind, functions) in PROGRAMS.items():
            try:
                target = Target(["chroot", root, *command])
            except AssertionError as error:
                found[program] = version(root, program), str(error)
                continue
            try:
                if program == "Go (fzf)":  # which has said so before it was executed
                    wait_until(lambda: reads_stdin(target.pid), "fzf to read")
                options = ["-f", "json", str(target.pid)]
                lacking = judge([os.environ["STATIC"], *options], kind, functions)
                inside = judge(["chroot", root, "/stacksnap", *options], kind, functions)
                found[program] = version(root, program), lacking or inside
            finally:
                target.kill()
    return found
