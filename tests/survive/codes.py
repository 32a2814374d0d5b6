"""More situations of the table: how a program is linked, what made its code, and stacks that
are damaged. tests/e2e/test_linkers.py, test_musl.py, test_jit.py and test_wrecked.py look at
the same more closely; here they are such that every tool can be judged by them."""

import os
import re
import subprocess

from situations import BLOCKED, MAIN, descent, situation
from subjects import Subject, need
from harness import LIMIT_S, read_text, status_field, task_states, wait_until

SOURCES = os.path.join(os.environ.get("SOURCE", os.path.join(os.path.dirname(
    os.path.abspath(__file__)), "..", "..")), "targets")
COMPILE = ["-O2", "-g", "-D_GNU_SOURCE", "-fno-optimize-sibling-calls",
           "-fomit-frame-pointer", "-Wl,--build-id", "-pthread"]
NO_TABLES = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]
KINDS = ("poll", "nanosleep", "cond", "futex", "read")


def threads(target, name, kinds=KINDS):
    return Subject(target, {**{kind + "-0": descent(kind, 3) for kind in kinds},
                            re.escape(name): MAIN})


def compiled(lab, *options, source="threads", compiler=None):
    path = lab.path("threads")
    subprocess.run([compiler or os.environ.get("CC", "cc"), *COMPILE, *options, "-o", path] +
                   ["%s/%s.c" % (SOURCES, name) for name in (source, "target")], check=True,
                   stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_S)
    return path


@situation("static, static-pie")
def static(lab):
    for name in ("threads_static", "threads_static_pie"):
        yield threads(lab.start(name, 1, 3), name[:15])


@situation("stripped, with symbols in `.gnu_debugdata`")
def minidebug(lab):
    yield threads(lab.start("threads_minidebug", 1, 3), "threads_minideb")


@situation("frame pointers and no unwind tables")
def no_tables(lab):
    yield threads(lab.start("threads_nocfi", 1, 3), "threads_nocfi")


@situation("`.debug_frame` only, plain and compressed")
def debug_frame(lab):
    for options in ((), ("-Wl,--compress-debug-sections=zlib", )):
        path = compiled(lab, "-pie", "-fPIE", *NO_TABLES, *options)
        yield threads(lab.start_file(path, 1, 3), "threads")


@situation("linked by gold, lld, mold")
def linkers(lab):
    for linker, program in (("gold", "ld.gold"), ("lld", "ld.lld"), ("mold", "mold")):
        need(program)
        path = compiled(lab, "-pie", "-fPIE", "-fuse-ld=" + linker)
        yield threads(lab.start_file(path, 1, 3), "threads")


@situation("musl, dynamic and static")
def musl(lab):
    for options in (("-pie", "-fPIE"), ("-static", )):
        path = compiled(lab, *options, source="musl", compiler=need("musl-gcc"))
        target = lab.start_file(path)
        yield Subject(target, {
            "polls": ["in_poll", "descend", "descend", "descend", "thread_routine"],
            "waits": ["in_cond", "descend", "descend", "descend", "thread_routine"],
            "threads": MAIN})


NODE = """
const cell = new Int32Array(new SharedArrayBuffer(4));
function innermost(depth) {
	if (depth === 0) {
		console.log('ready');
		return Atomics.wait(cell, 0, 0);
	}
	return innermost(depth - 1) + 1;
}
innermost(3);
"""


@situation("JavaScript of node, with `--perf-basic-prof`")
def node(lab):
    target = lab.start_file(need("node"), "--perf-basic-prof",
                            "--interpreted-frames-native-stack", "-e", NODE,
                            cwd=lab.directory, settle=False)
    path = "/tmp/perf-%d.map" % target.pid
    lab.callback(lambda: os.path.exists(path) and os.unlink(path))
    wait_until(lambda: "innermost" in read_text(path), "the perf map")
    yield Subject(target, {target.pid: [re.compile(r"JS:.?innermost ")] * 4})


@situation("held by another tracer (`strace`)")
def traced(lab):
    target = lab.start("fates", "wait")
    tracer = lab.run([need("strace"), "-f", "-o", "/dev/null", "-p", str(target.pid)])
    wait_until(lambda: all(status_field(tid, "TracerPid") == str(tracer.pid)
                           for tid in task_states(target.pid)), "strace to attach")
    wait_until(lambda: set(task_states(target.pid).values()) == {"S"}, "them to sleep")
    yield Subject(target, {"sleeper-.*": BLOCKED + ["sleeper_routine"], "fates": MAIN})


@situation("after a call through a bad pointer: its caller", status=(1, ))
def bad_pointer(lab):
    target = lab.start("wrecked")
    yield Subject(target, {"bad-.*": ["call_pointer", "thread_routine",
                                      "target_thread_main"]})


@situation("coroutines (`makecontext`), stacks made by `mmap`", status=(1, ))
def coroutines(lab):
    target = lab.start("wrecked")
    yield Subject(target, {"coroutine": ["in_coroutine", "coroutine"],
                           "mapped-stack": ["in_coroutine", "coroutine"]})


@situation("smashed stacks, unwind tables that lead in a circle: what is below the damage, "
           "and the other threads", status=(1, ))
def damaged(lab):
    target = lab.start("wrecked")
    yield Subject(target, {"smashed": ["target_block", "block", "smash"],
                           "self-frame": ["target_block", "block", "self_frame"],
                           "cfi-loop": ["target_block", "block", "cfi_loop"],
                           "cfi-far": ["target_block", "block", "cfi_far"],
                           "sp-nowhere": ["sp_nowhere"], "wrecked": MAIN})
