"""Threads that sleep in calls of the C library, which Python would make again if they returned early,
beside threads that compute and hand the GIL to each other. Prints "ready", and, at the end of its
standard input, the names of the calls that returned."""

import ctypes
import os
import sys
import threading

FOREVER_S = 100000


class Operation(ctypes.Structure):
    _fields_ = [("number", ctypes.c_ushort), ("operation", ctypes.c_short), ("flags", ctypes.c_short)]


class Time(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


libc = ctypes.CDLL(None)
buffer = ctypes.create_string_buffer(64)
pipe = os.pipe()
epoll = libc.epoll_create1(0)
semaphores = libc.semget(0, 1, 0o600 | 0o1000)
CALLS = {
    "epoll_wait": lambda: libc.epoll_wait(epoll, buffer, 1, -1),
    "epoll_timed": lambda: libc.epoll_wait(epoll, buffer, 1, FOREVER_S * 1000),
    "semop": lambda: libc.semop(semaphores, ctypes.byref(Operation(0, -1, 0)), 1),
    "read_pipe": lambda: libc.read(pipe[0], buffer, 1),
    "read_eventfd": lambda: libc.read(libc.eventfd(0, 0), buffer, 8),
    "poll": lambda: libc.poll(None, 0, -1),
    "poll_timed": lambda: libc.poll(None, 0, FOREVER_S * 1000),
    "select": lambda: libc.select(0, None, None, None, None),
    "nanosleep": lambda: libc.nanosleep(ctypes.byref(Time(FOREVER_S, 0)), None),
    "nanosleep_rem": lambda: libc.nanosleep(ctypes.byref(Time(FOREVER_S, 0)), buffer),
    "pause": libc.pause,
}
returned = []


def sleep(name):
    CALLS[name]()
    returned.append(name)


def square(n):
    return sum(i * i for i in range(n))


def compute():
    while True:
        square(300)


for routine, argument in [(sleep, (name,)) for name in CALLS] + [(compute, ())] * 4:
    threading.Thread(target=routine, args=argument, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
print("returned", *returned, flush=True)
libc.semctl(semaphores, 0, 0)  # its semop returns
os._exit(0)
