"""The first process of a virtual machine, after init.sh, or a unit of one that has systemd: runs the tests
that /mnt/job.json lists, and writes a line about each to /mnt/results."""

import json
import os
import re
import signal
import subprocess
import time

TEST_LIMIT_S = 1200
TAIL = 6000

MOUNTS = [("devpts", "/dev/pts", "gid=5,mode=620"), ("tmpfs", "/dev/shm", "mode=1777"),
          ("mqueue", "/dev/mqueue", ""), ("tracefs", "/sys/kernel/tracing", ""),
          ("debugfs", "/sys/kernel/debug", ""), ("securityfs", "/sys/kernel/security", ""),
          ("fusectl", "/sys/fs/fuse/connections", ""), ("bpf", "/sys/fs/bpf", ""),
          ("cgroup2", "/sys/fs/cgroup", "")]


def prepare(job):
    for kind, path, options in () if job["init"] else MOUNTS:
        try:
            os.makedirs(path, exist_ok=True)
        except OSError:
            continue  # a kernel without it
        subprocess.run(["mount", "-t", kind, *(["-o", options] if options else []), kind, path],
                       stderr=subprocess.DEVNULL, check=False)
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        if not os.path.lexists("/dev/" + name):
            os.symlink("/proc/self/fd" + target, "/dev/" + name)
    for name, value in job["settings"].items():
        path = "/proc/sys/" + name.replace(".", "/")
        if os.path.exists(path):  # else the kernel has no such setting
            with open(path, "w", encoding="ascii") as file:
                file.write(value)
    # go links against what was compiled before, and writes to its cache
    cache = os.environ["GOCACHE"]
    if os.path.isdir(cache):
        subprocess.run(["cp", "-r", cache, "/tmp/go-cache"], check=True)
    os.environ["GOCACHE"] = "/tmp/go-cache"


def run(name, file, test):
    """One test: its result, and what it printed if that is a failure or a reason."""
    begin = time.monotonic()
    # SIGABRT: Python prints where it is
    done = subprocess.run(["timeout", "-s", "ABRT", "-k", "20", str(TEST_LIMIT_S), "python3", "-X",
                           "faulthandler", file, test], cwd=os.path.dirname(file),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    text, status = done.stdout.decode("utf-8", "replace"), done.returncode
    skipped = re.findall(r"\.\.\. skipped (['\"])(.*)\1$", text, re.M)
    if status == 77 or (status == 0 and skipped):
        result, text = "skipped", "; ".join(reason for _, reason in skipped) or text[-TAIL:]
    elif status == 0 and re.search(r"^OK$", text, re.M):
        result, text = "ok", ""
    else:
        result, text = "failed", text[-TAIL:]
    return {"test": name, "result": result, "text": text, "seconds": time.monotonic() - begin}


def work():
    with open("/mnt/job.json", encoding="utf-8") as file:
        job = json.load(file)
    os.environ.update(job["environment"])
    prepare(job)
    with open("/mnt/results", "a", encoding="utf-8") as file:
        print(json.dumps({"kernel": os.uname().release, "version": os.uname().version}), file=file,
              flush=True)
        for name, (path, test) in job["tests"].items():
            print(json.dumps(run(name, path, test)), file=file, flush=True)


def main():
    """A first process waits for all orphans, and a machine that has no more to do is powered off."""
    worker = os.fork()
    if worker == 0:
        work()
        os._exit(0)
    while os.wait()[0] != worker:
        pass
    os.sync()
    with open("/proc/sys/kernel/sysrq", "w", encoding="ascii") as file:
        file.write("1")
    with open("/proc/sysrq-trigger", "w", encoding="ascii") as file:
        file.write("o")
    signal.pause()


if __name__ == "__main__":
    main()
