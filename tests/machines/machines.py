#!/usr/bin/env python3
"""Boots Debian's kernels in virtual machines, with the root directory of this machine, read-only, and
runs the checks of checks.py there with the static binary.

Environment: STATIC is the static binary, BUILD, TARGETS and SOURCE as in tests/e2e."""

import argparse
import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
import time

import kernels
import page
import userlands
from checks import BOOTS, CAPABILITIES, NOT_FOREIGN

SOURCE = os.environ["SOURCE"]
PLACE = os.path.join(SOURCE, "build", "machines")
HERE = os.path.dirname(os.path.abspath(__file__))
QEMU = "qemu-system-x86_64"
QEMU_FOREIGN = "qemu-system-aarch64"
BUILD_FOREIGN = os.path.join(SOURCE, "build", "aarch64")
BUSYBOX = "/bin/busybox"
VIRTIOFSD = "/usr/lib/qemu/virtiofsd"  # for kernels without 9p
BOOT_LIMIT_S = 40  # with KVM
LIMIT_S = 3 * 3600
MEMORY_MIB = 3072
PROCESSORS = 2
# What a kernel boots with
PARAMETERS = "quiet panic=-1 mitigations=off tsc=reliable clocksource=tsc"
# What tests expect of a machine
USUAL = {"kernel.yama.ptrace_scope": "0", "kernel.core_pattern": "core", "kernel.perf_event_paranoid": "1"}


def say(text):
    print("machines: " + text, file=sys.stderr, flush=True)


class Archive:
    """A cpio archive in the format "newc" (Documentation/driver-api/early-userspace/buffer-format)."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.count = 0

    def add(self, name, mode, content=b""):
        self.count += 1
        name = name.encode() + b"\0"
        fields = (self.count, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
        self._write(b"070701" + b"".join(b"%08x" % field for field in fields) + name)
        self._write(content)

    def _write(self, data):
        self.file.write(data + bytes(-len(data) % 4))

    def close(self):
        self.add("TRAILER!!!", 0)
        self.file.close()


def read(path):
    with open(path, "rb") as file:
        return file.read()


def make_initramfs(kernel, path):
    archive = Archive(path)
    for name in ("bin", "dev", "proc", "sys", "root", "modules"):
        archive.add(name, stat.S_IFDIR | 0o755)
    archive.add("bin/busybox", stat.S_IFREG | 0o755, read(
        os.path.join(kernel.place, "usr/bin/busybox") if kernel.name == kernels.FOREIGN else
        os.path.realpath(BUSYBOX)))
    archive.add("bin/sh", stat.S_IFLNK | 0o777, b"busybox")
    archive.add("init", stat.S_IFREG | 0o755, read(os.path.join(HERE, "init.sh")))
    modules = kernel.modules
    for name, content in modules.items():
        archive.add("modules/" + name, stat.S_IFREG | 0o644, content)
    archive.add("modules/list", stat.S_IFREG | 0o644, "".join(name + "\n" for name in modules).encode())
    archive.close()


class Machine:
    accelerator = None  # the one that works here

    def __init__(self, kernel, parameters="", root="/", init=""):
        """init: what is the first process of that root directory; "": guest.py."""
        self.kernel = kernel
        self.parameters = parameters
        self.foreign = kernel.name == kernels.FOREIGN
        self.root = kernel.place if self.foreign else root
        self.init = init
        self.share = os.path.join(PLACE, "run", kernel.name)
        shutil.rmtree(self.share, ignore_errors=True)
        os.makedirs(self.share)
        self.results = os.path.join(self.share, "results")
        self.console = os.path.join(self.share, "console")

    def write_job(self, tests, settings):
        environment = {name: os.environ[name] for name in ("SOURCE", "BUILD", "TARGETS")}
        static = os.environ["STATIC"]
        if self.foreign:
            environment |= {"BUILD": BUILD_FOREIGN, "TARGETS": BUILD_FOREIGN + "/targets"}
            static = BUILD_FOREIGN + "/static/stacksnap"
        environment |= {"STACKSNAP": static, "STATIC": static, "CC": "cc",
                        "XDG_CACHE_HOME": "/proc/nonexistent", "PYTHONDONTWRITEBYTECODE": "1",
                        "GOCACHE": os.path.join(SOURCE, "build", "go-cache"), "HOME": "/root",
                        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                        "PYTHONPATH": os.path.join(SOURCE, "tests", "e2e"), "LIMIT_S": "400",
                        "LC_ALL": "C.UTF-8"}
        with open(os.path.join(self.share, "job.json"), "w", encoding="utf-8") as file:
            json.dump({"tests": tests, "settings": settings, "environment": environment,
                       "init": self.init}, file)
        with open(os.path.join(self.share, "environment"), "w", encoding="utf-8") as file:
            file.write("export SOURCE=%s PATH=%s INIT=%s\n" % (
                shlex.quote(SOURCE), environment["PATH"], self.init))
        with open(os.path.join(self.share, "guest.service"), "w", encoding="utf-8") as file:
            file.write("[Service]\nExecStart=/usr/bin/python3 %s/guest.py\n" % HERE)

    def command(self, accelerator):
        initramfs = os.path.join(self.share, "initramfs")
        make_initramfs(self.kernel, initramfs)

        def shared(tag, path, access):
            if "9p" in self.kernel.modules:
                return ["-fsdev", "local,id=%s,path=%s,security_model=none,multidevs=remap%s" % (
                    tag, path, access), "-device", "virtio-9p-pci,fsdev=%s,mount_tag=%s" % (tag, tag)]
            socket = os.path.join(self.share, "%s.%s" % (tag, accelerator))
            subprocess.Popen([VIRTIOFSD, "--socket-path=" + socket, "-o", "source=" + path, "-o",
                              "cache=always,sandbox=chroot"],
                             stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # ends with the machine
            while not os.path.exists(socket):
                time.sleep(0.1)
            return ["-chardev", "socket,id=%s,path=%s" % (tag, socket),
                    "-device", "vhost-user-fs-pci,chardev=%s,tag=%s" % (tag, tag)]
        computer = ([QEMU_FOREIGN, "-cpu", "max,pauth-impdef=on"] if self.foreign else
                    [QEMU, "-cpu", "host" if accelerator == "kvm" else "max"])
        kind, console = ("virt,", "ttyAMA0") if self.foreign else ("", "ttyS0")
        return [*computer, "-accel", accelerator,
                "-smp", str(PROCESSORS), "-m", str(MEMORY_MIB),
                "-object", "memory-backend-memfd,id=memory,size=%dM,share=on" % MEMORY_MIB,
                "-machine", kind + "memory-backend=memory", "-nic", "none", "-display", "none",
                "-no-reboot", "-serial", "file:" + self.console, "-monitor", "none",
                "-device", "virtio-rng-pci",
                "-kernel", self.kernel.image, "-initrd", initramfs,
                "-append", "console=%s %s %s" % (console, PARAMETERS, self.parameters),
                *shared("root", self.root, ",readonly=on"), *shared("source", SOURCE, ",readonly=on"),
                *shared("job", self.share, "")]

    def boots(self, process):
        """Whether the first process has written a line in time."""
        deadline = time.monotonic() + BOOT_LIMIT_S
        while time.monotonic() < deadline and process.poll() is None:
            if os.path.exists(self.results):
                return True
            time.sleep(0.2)
        return os.path.exists(self.results)

    def run(self, tests, settings=None):
        """Yields what the machine writes: a line about the kernel, and one for each test."""
        self.write_job(tests, {**USUAL, **(settings or {})})
        known = "tcg" if self.foreign else Machine.accelerator
        for accelerator in [known] if known else ["kvm", "tcg"]:
            process = subprocess.Popen(self.command(accelerator), stdin=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            try:
                if accelerator == "kvm" and not self.boots(process):
                    say("no machine boots with KVM here: emulation, which is slow")
                    continue
                if not self.foreign:
                    Machine.accelerator = accelerator
                yield from self.follow(process)
                return
            finally:
                process.kill()
                process.wait()

    def follow(self, process):
        deadline = time.monotonic() + LIMIT_S
        at = 0
        ended = False
        while not ended and time.monotonic() < deadline:
            ended = process.poll() is not None  # what it has written until then is read below
            lines = read(self.results).split(b"\n")[:-1] if os.path.exists(self.results) else []
            for line in lines[at:]:
                yield json.loads(line)
            at = max(at, len(lines))
            time.sleep(0.5)


def why_not():
    """Why no machine can run here, or None."""
    for program, package in ((QEMU, "qemu-system-x86"), (BUSYBOX, "busybox-static")):
        if not shutil.which(program):
            return "no %s (%s)" % (program, package)
    if os.geteuid() != 0:
        return "only root can share all files of this machine"
    if not os.path.exists(os.environ.get("STATIC", "")):
        return "no static binary"
    return None


def file_of(name):
    """The file of a test FILE.CLASS.METHOD, and CLASS.METHOD."""
    file, test = name.split(".", 1)
    here = os.path.join(HERE, file + ".py")
    return [here if os.path.exists(here) else
            os.path.join(SOURCE, "tests", "e2e", "test_%s.py" % file), test]


def check(kernel, table, **options):
    """Runs a table in a machine. Returns its version and {capability: (result, text)}."""
    tests = [test for tests in table.values() for test in tests]
    found, version = {}, None
    for line in Machine(kernel, **options).run({test: file_of(test) for test in tests}):
        if "kernel" in line:
            version = line["version"]
            continue
        found[line["test"]] = line
        say("%s: %s: %s (%d s)" % (kernel.name, line["test"], line["result"], line["seconds"]))
        if line["text"]:
            print(line["text"], flush=True)
    rows = {}
    for capability, tests in table.items():
        results = [found.get(test, {"result": "failed", "text": "no answer"}) for test in tests]
        worst = max(results, key=lambda one: ("ok", "skipped", "failed").index(one["result"]))
        rows[capability] = (worst["result"], worst["text"])
    return version, rows


def save(kind, name, result):
    """What docs/machines.md is written from. A later run replaces the part that it has checked."""
    path = os.path.join(PLACE, "results")
    os.makedirs(path, exist_ok=True)
    path = os.path.join(path, "%s-%s.json" % (kind, name))
    before = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            before = json.load(file)
    rows = {**before.get("rows", {}), **result.pop("rows")}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**result, "date": time.strftime("%Y-%m-%d", time.gmtime()), "rows": rows}, file)


def check_kernels(names, only):
    """Whether nothing failed."""
    good = True
    for name in names:
        kernel = kernels.Kernel(PLACE, name)
        if not kernel.image:
            say(name + ": not downloaded")
            continue
        if name == kernels.FOREIGN and not (shutil.which(QEMU_FOREIGN) and
                                            os.path.exists(BUILD_FOREIGN + "/targets")):
            say("%s: no %s, or not built" % (name, QEMU_FOREIGN))
            continue
        for options, table in (BOOTS if name == kernels.OF_SETTINGS else BOOTS[:1]):
            table = {row: tests for row, tests in table.items() if
                     any(text in row for text in only or [""]) and
                     (name == kernels.OF_SETTINGS or row in CAPABILITIES) and
                     not (name == kernels.FOREIGN and row in NOT_FOREIGN)}
            release = options.get("root")
            root = userlands.make(PLACE, release, say) if table and release else "/"
            if not table or not root:
                continue
            version, rows = check(kernel, table, **{**options, "root": root})
            if not version:
                say("%s does not start: see %s" % (name, os.path.join(PLACE, "run", name, "console")))
                good = False
                continue
            save("kernel", name, {"version": version, "rows": rows})
            good &= all(result != "failed" for result, _ in rows.values())
    return good


def check_userlands(names):
    good = True
    for name in names:
        root = userlands.make(PLACE, name, say)
        if not root:
            say(name + ": cannot be made")
            continue
        rows = userlands.check(root)
        for program, (version, lacking) in rows.items():
            say("%s: %s: %s" % (name, version or program, lacking or "ok"))
            good &= userlands.is_right(name, program, lacking)
        save("userland", name, {"rows": rows})
    return good


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="kernels and releases (default: all): "
                        + ", ".join([*kernels.KERNELS, *userlands.SUITES]))
    parser.add_argument("--fetch", action="store_true", help="download the kernels, and no more")
    parser.add_argument("--no-fetch", action="store_true", help="download nothing")
    parser.add_argument("--only", action="append", help="only capabilities that contain this text")
    parser.add_argument("--page", help="write the tables to this file")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in kernels.KERNELS and name not in userlands.SUITES:
            parser.error("unknown kernel or release '%s'" % name)
    names = options.names or [*kernels.KERNELS, *userlands.SUITES]
    reason = why_not()
    if reason:
        say(reason)
        return 77
    booted = [name for name in names if name in kernels.KERNELS]
    if booted and not options.no_fetch:
        kernels.fetch(PLACE, booted, say)
    if options.fetch:
        return 0
    if options.no_fetch and not any(kernels.Kernel(PLACE, name).image for name in booted):
        say("no kernels: ./dev machines downloads them")
        return 77
    good = check_kernels(booted, options.only)
    good &= check_userlands([name for name in names if name in userlands.SUITES and
                             (not options.no_fetch or userlands.exists(PLACE, name))])
    if options.page:
        page.write(options.page, PLACE)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
