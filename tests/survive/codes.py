"""More situations of the table: how a program is linked, how its code was generated, and
corrupted stacks. tests/e2e/test_linkers.py, test_musl.py, test_jit.py and
test_corrupted_stacks.py test the same in more detail; here every tool can be judged."""

import os
import random
import re
import subprocess

from situations import BLOCKED, MAIN, descent, situation
from subjects import Subject, require
from harness import LIMIT_S, status_field, task_states, wait_until
from test_crafted import Elf, compile_library
from test_jit import JAVA, NODE

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
        require(program)
        path = compiled(lab, "-pie", "-fPIE", "-fuse-ld=" + linker)
        yield threads(lab.start_file(path, 1, 3), "threads")


@situation("without `.eh_frame_hdr`, dynamic and static")
def no_search_table(lab):
    for options in (("-pie", "-fPIE"), ("-static", "-fno-pie")):
        path = compiled(lab, *options, "-Wl,--no-eh-frame-hdr")
        yield threads(lab.start_file(path, 1, 3), "threads")


@situation("linked at another base address, as by prelink; code in two segments")
def other_layouts(lab):
    path = compiled(lab, "-pie", "-fPIE", "-Wl,-Ttext-segment=0x3000000000")
    yield threads(lab.start_file(path, 1, 3), "threads")
    objects = compiled(lab, "-fPIE", "-ffunction-sections", "-r")
    subprocess.run([require("objcopy"), "--rename-section", ".text.descend_odd=far_code", objects,
                    lab.path("far.o")], check=True, timeout=LIMIT_S)
    subprocess.run([os.environ.get("CC", "cc"), "-pie", "-pthread", "-Wl,--build-id",
                    "-Wl,--section-start=far_code=0x10000000", "-o", objects,
                    lab.path("far.o")], check=True, timeout=LIMIT_S)
    yield threads(lab.start_file(objects, 1, 3), "threads")


@situation("musl, dynamic and static", status=(0, 1))  # no unwind information
def musl(lab):
    for options in (("-pie", "-fPIE"), ("-static", )):
        path = compiled(lab, *options, source="musl", compiler=require("musl-gcc"))
        target = lab.start_file(path)
        yield Subject(target, {
            "polls": ["in_poll", "descend", "descend", "descend", "thread_routine"],
            "waits": ["in_cond", "descend", "descend", "descend", "thread_routine"],
            "threads": MAIN})


@situation("code generated at run time, without unwind tables: through it to its caller")
def generated_code(lab):
    any_name = re.compile("")
    yield Subject(lab.start("jit"), {
        "jitted": ["called_from_jit", any_name, any_name, any_name, "call_jit",
                   "target_thread_main"]})


@situation("JavaScript of node, without preparation")
def node(lab):
    target = lab.start_file(require("node"), "-e", NODE, cwd=lab.directory, settle=False)
    yield Subject(target, {target.pid: [re.compile(r"innermost\b")] * 6})


@situation("methods of java, interpreted and compiled, without preparation", limit_s=30)
def java(lab):
    with open(lab.path("Stack.java"), "w", encoding="utf-8") as file:
        file.write(JAVA)
    for options in ([], ["-Xcomp", "-XX:-Inline", "-XX:CompileOnly=Stack.descend"]):
        target = lab.start_file(require("java"), *options, lab.path("Stack.java"), settle=False)
        yield Subject(target, {"descends": [re.compile(r"Stack\.descend\b")] * 21})


@situation("traced by another process (`strace`)")
def traced(lab):
    target = lab.start("fates", "wait")
    tracer = lab.run([require("strace"), "-f", "-o", "/dev/null", "-p", str(target.pid)])
    wait_until(lambda: all(status_field(tid, "TracerPid") == str(tracer.pid)
                           for tid in task_states(target.pid)), "strace to attach")
    wait_until(lambda: set(task_states(target.pid).values()) == {"S"}, "its threads to sleep")
    yield Subject(target, {"sleeper-.*": BLOCKED + ["sleeper_routine"], "fates": MAIN})


@situation("after a call through a bad pointer: its caller", status=(1, ))
def bad_pointer(lab):
    target = lab.start("corrupted_stacks")
    yield Subject(target, {"bad-.*": ["call_pointer", "thread_routine",
                                      "target_thread_main"]})


@situation("in signal handlers, also on an alternate stack (`sigaltstack`), and after faults",
           status=(0, 1))
def handlers(lab):
    end = ["thread_routine", "target_thread_main"]
    yield Subject(lab.start("sighandler"), {
        "normal": ["spin", "run_normal"] + end,
        "altstack": ["spin", "run_altstack"] + end,
        "nested": ["spin", "run_nested"] + end,
        "first-insn": ["fault_at_once", "run_first_insn"] + end,
        "null-call": ["run_null_call"] + end, "sighandler": MAIN})


@situation("coroutines (`makecontext`), stacks from `mmap`", status=(1, ))
def coroutines(lab):
    target = lab.start("corrupted_stacks")
    yield Subject(target, {"coroutine": ["in_coroutine", "coroutine"],
                           "mapped-stack": ["in_coroutine", "coroutine"]})


@situation("smashed stacks, unwind tables with cycles: the frames up to the corrupted one, "
           "and the other threads", status=(1, ))
def corrupted(lab):
    target = lab.start("corrupted_stacks")
    yield Subject(target, {"smashed": ["target_block", "block", "smash"],
                           "self-frame": ["target_block", "block", "self_frame"],
                           "cfi-loop": ["target_block", "block", "cfi_loop"],
                           "cfi-far": ["target_block", "block", "cfi_far"],
                           "sp-nowhere": ["sp_nowhere"], "corrupted_stack": MAIN})


def noise(section):
    def craft(elf):
        elf.fill(section, random.Random(1).randbytes(1 << 16))

    return craft


@situation("a library crafted to break tools: what it calls, and the other threads",
           status=(0, 1), limit_s=30)
def crafted(lab):
    os.mkdir(lab.path("chain"))
    for index in (0, 2):
        lab.copy("chain/libchain_%d.so" % index, "chain", "libchain_%d.so" % index)
    library = lab.path("chain", "libchain_1.so")
    for escape, craft in (
            (".cfi_escape 0x0f, 3, 0x2f, 0xfd, 0xff", None),  # a jump to itself
            ("", noise(".eh_frame")), ("", noise(".eh_frame_hdr")),
            ("", lambda elf: elf.change(".symtab", size=1 << 63)),
            ("", lambda elf: elf.change(".strtab", offset=(1 << 64) - 1, size=2))):
        if os.path.exists(library):
            os.unlink(library)  # the previous process has it mapped
        compile_library(library, escape=escape)
        if craft:
            elf = Elf(library)
            craft(elf)
            elf.save()
        target = lab.start("dlchain", 3, lab.path("chain"))
        yield Subject(target, {"chain": ["chain_2"], "dlchain": MAIN})
