"""The target of test_python.py: its threads are in known calls, and the main thread works, so that
it can be stopped at any moment. SIGUSR1 dumps the stacks of all threads by faulthandler, in the
main thread and before that goes on. Arguments: the file for dumps, and what the main thread does.
Runs with CPython from 3.8 on."""

import asyncio
import contextlib
import faulthandler
import functools
import queue
import re
import signal
import sys
import threading
import time


class Worker:
    def __init__(self):
        self.queue = queue.Queue()

    def run(self):
        for item in self.items():
            print(item)

    def items(self):
        while True:
            yield self.queue.get()


def recurse(depth, then):
    if depth == 0:
        return then()
    return recurse(depth - 1, then)


def generate(depth):
    if depth == 0:
        yield spin(20)
    else:
        yield from generate(depth - 1)


@contextlib.contextmanager
def entered():
    spin(5)
    yield 1
    spin(5)


async def leaf():
    spin(20)
    await asyncio.sleep(0)


async def middle():
    await leaf()


def spin(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


def naïve_функция_名前_𝒳(depth):
    return spin(30) if depth == 0 else naïve_функция_名前_𝒳(depth - 1)


class Meta(type):
    def __call__(cls, *args):
        spin(5)
        return super().__call__(*args)


class Thing(metaclass=Meta):
    def __init__(self, n):
        self.n = n
        spin(5)

    def __lt__(self, other):
        spin(3)
        return self.n < other.n

    @property
    def value(self):
        return [spin(k) for k in range(3)]

    def __del__(self):
        spin(3)


def raises(depth):
    try:
        if depth == 0:
            raise ValueError("x")
        raises(depth - 1)
    except ValueError:
        spin(10)
        raise
    finally:
        spin(5)


def long_function(n):
    total = 0

    if n > 0:
        total += sum(
            spin(i)
            for i in range(10)
        )


    for i in range(n):
        with entered() as e:
            total += e
    return (lambda x: spin(x))(n)


def work():
    sorted([Thing(n) for n in (3, 1, 2, 5, 4)])
    re.sub("a", lambda m: str(spin(20)), "banana")
    functools.reduce(lambda a, b: spin(a % 7) + b, range(20))
    list(generate(8))
    recurse(30, lambda: spin(40))
    naïve_функция_名前_𝒳(3)
    long_function(4)
    eval("spin(30)")
    exec("def inner():\n\n    return spin(30)\ninner()", globals())
    Thing(1).value
    with contextlib.suppress(ValueError):
        raises(5)


def work_asyncio():
    async def main():
        await asyncio.gather(middle(), middle())
    asyncio.run(main())


def report():
    for thread in threading.enumerate():
        print(hex(thread.ident), thread.native_id, thread.name)
    print("ready", flush=True)


def main():
    dump, what = sys.argv[1:3]
    faulthandler.register(signal.SIGUSR1, open(dump, "w"), all_threads=True)
    lock = threading.Lock()
    lock.acquire()
    event = threading.Event()
    for target, args in ((Worker().run, ()), (recurse, (40, event.wait)),
                         (lock.acquire, ()), (time.sleep, (1000,))):
        threading.Thread(target=target, args=args, daemon=True).start()
    report()
    while what == "work":
        work()
    while what == "asyncio":
        work_asyncio()
    while what == "deep":
        sys.setrecursionlimit(20000)
        threading.stack_size(512 << 20)
        recurse(10000 if sys.version_info >= (3, 11) else 5000, lambda: time.sleep(1000))
    time.sleep(1000)


main()
