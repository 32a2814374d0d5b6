"""The kernel's definitions of probes, for tests of stacksnap trace."""

import ctypes
import os
import subprocess

EVENTS = "/sys/kernel/tracing/uprobe_events"
CLONE_NEWNS = 0x20000


def mount():
    """Whether probes can be defined. Where tracefs is not mounted, this process and its children
    get a mount namespace in which it is."""
    if os.geteuid() != 0:
        return False
    if not os.access(EVENTS, os.W_OK) and ctypes.CDLL(None).unshare(CLONE_NEWNS) == 0:
        for command in (["mount", "--make-rprivate", "/"],
                        ["mount", "-t", "tracefs", "nodev", os.path.dirname(EVENTS)]):
            subprocess.run(command, check=False, stdin=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    return os.access(EVENTS, os.W_OK)
