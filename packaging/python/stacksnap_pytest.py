"""Stacks of pytest and of what it started, when a test takes too long: --stacksnap-timeout=SECONDS."""

import ctypes
import os
import subprocess
import sysconfig
import threading

import pytest

PR_SET_PTRACER = 0x59616D61
LIMIT_S = 60

def pytest_addoption(parser):
    parser.addoption("--stacksnap-timeout", type=float, metavar="SECONDS",
                     help="print the stacks of all threads if a test takes longer, and go on")


def program():
    """That of this wheel, or another."""
    path = os.path.join(sysconfig.get_path("scripts"), "stacksnap")
    return path if os.path.exists(path) else "stacksnap"


def show(name, stderr):
    # Yama allows a parent to trace its children, but not the reverse.
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PTRACER, ctypes.c_long(-1))
    try:
        text = subprocess.run([program(), "--tree", str(os.getpid())], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        text = b"no stacks: %s\n" % str(error).encode()
    finally:
        libc.prctl(PR_SET_PTRACER, ctypes.c_long(0))
    os.write(stderr, b"\nstacksnap: %s is slow\n%s" % (name.encode(), text))


def pytest_configure(config):
    # pytest does not capture output yet.
    config.stacksnap_stderr = os.dup(2)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    seconds = item.config.getoption("--stacksnap-timeout")
    if not seconds:
        yield
        return
    timer = threading.Timer(seconds, show, [item.nodeid, item.config.stacksnap_stderr])
    timer.daemon = True
    timer.start()
    yield
    timer.cancel()
