"""Compiles programs of targets/ with 32 bits."""

import os
import subprocess

FLAGS = ["-m32", "-D_GNU_SOURCE", "-g", "-O2", "-fno-optimize-sibling-calls",
         "-fomit-frame-pointer", "-pthread"]
TARGETS = os.path.join(os.environ.get("SOURCE", "."), "targets")


def compile_i386(directory, name, *flags):
    """The path of the program; None: no 32-bit programs can be made."""
    path = os.path.join(directory, name)
    command = FLAGS + ["-o", path] + [os.path.join(TARGETS, source + ".c")
                                      for source in (name, "target")] + list(flags)
    for compiler in ("gcc", "gcc-12"):
        try:
            if subprocess.run([compiler, "-I/usr/include/x86_64-linux-gnu"] + command, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=60).returncode == 0:
                return path
        except FileNotFoundError:
            pass
    return None
