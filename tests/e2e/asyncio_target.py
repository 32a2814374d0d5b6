"""The target of test_asyncio.py: tasks of all kinds, which change. Argument "moments": a task that is
chosen at random reads a byte from standard input, so that the process stands still while it runs;
then it prints all tasks as asyncio and their coroutines have them, as JSON. Argument "idle": the
event loop sleeps, and prints them at SIGUSR1. Argument "busy": tasks run all the time. Argument
"crowd": many tasks wait, a few run all the time, and one makes others that end at once. Argument
"deadlock": tasks await each other. Argument "locks": tasks wait for locks and queues. Argument "step": after a byte from standard input, one task has moved, one
begun and one ended, and one runs, in a call that blocks. Runs with CPython from 3.8 on."""

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import types

PICK = random.Random(7)
CROWD, RUNNERS = 2000, 20


def awaited_by(coroutine):
    """What a coroutine, generator or asynchronous generator awaits."""
    for attribute in ("cr_await", "gi_yieldfrom", "ag_await"):
        if hasattr(coroutine, attribute):
            return getattr(coroutine, attribute)
    return None


def frame_of(coroutine):
    for attribute in ("cr_frame", "gi_frame", "ag_frame"):
        if hasattr(coroutine, attribute):
            return getattr(coroutine, attribute)
    return None


def is_running(coroutine):
    return any(getattr(coroutine, name, False) for name in ("cr_running", "gi_running"))


def referenced(wrapper):
    """The generator or coroutine in an object that Python code cannot look into."""
    import gc
    for item in gc.get_referents(wrapper):
        if frame_of(item) is not None:
            return item
    return None


def describe(task):
    frames, coroutine = [], task.get_coro()
    running = is_running(coroutine)
    while coroutine is not None:
        frame = frame_of(coroutine)
        if frame is None:
            coroutine = referenced(coroutine)
            continue
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        frames.insert(0, [name, code.co_filename, 0 if running else frame.f_lineno])
        if running:
            break
        coroutine = awaited_by(coroutine)
    waiter = task._fut_waiter
    return {"name": task.get_name(), "frames": frames,
            "status": "running" if running else "waiting" if waiter is not None else "runnable",
            "wait_reason": None if running or waiter is None else type(waiter).__name__,
            "awaited": sorted(other.get_name() for other in known_of(task, waiter) if not other.done())}


def known_of(task, waiter):
    """The tasks that a task waits for, as the program below knows them."""
    if isinstance(waiter, asyncio.Task):
        return [waiter]
    if hasattr(waiter, "_children"):
        return [child for child in waiter._children if isinstance(child, asyncio.Task)]
    return WAITED.get(task.get_name(), ()) if waiter is not None else ()


WAITED = {}  # by name of a task: those for which it is in asyncio.wait() and so on


def dump():
    tasks = asyncio.all_tasks(LOOP)
    print(json.dumps([describe(task) for task in tasks]), flush=True)


def moment():
    if MOMENTS and PICK.random() < 0.25:
        byte = os.read(0, 1)
        if not byte:
            os._exit(0)
        dump()


async def leaf(n):
    moment()
    if n % 3 == 0:
        await asyncio.sleep(0)
    elif n % 3 == 1:
        await asyncio.sleep(0.0001)
    else:
        await EVENT.wait()
    moment()


async def nested(depth):
    if depth == 0:
        await leaf(PICK.randrange(3))
    else:
        await nested(depth - 1)


class Client:
    async def __aenter__(self):
        await leaf(0)
        return self

    async def __aexit__(self, *exc):
        await leaf(1)

    async def ask(self):
        async with LOCK:
            await leaf(PICK.randrange(3))

    def __await__(self):
        moment()
        yield from asyncio.sleep(0.0001).__await__()
        return self


@types.coroutine
def old_style():
    for _ in (i for i in range(2)):
        yield
    yield from asyncio.sleep(0.0001).__await__()


async def produce(n):
    for i in range(n):
        await leaf(i)
        yield i


async def consume():
    async for item in produce(3):
        moment()
        await asyncio.sleep(0)
    async with Client() as client:
        await client.ask()
    await Client()
    await old_style()


async def naïve_задача_名前_𝒳():
    await nested(3)


def own_task(coroutine):
    return asyncio.ensure_future(coroutine)


async def gathers():
    await asyncio.gather(nested(2), leaf(1), consume())


async def waits():
    name = asyncio.current_task().get_name()
    WAITED[name] = [own_task(nested(1)), own_task(leaf(2))]
    await asyncio.wait(WAITED.pop(name) if False else WAITED[name])
    del WAITED[name]


async def awaits_task():
    await own_task(nested(1))


async def in_group():
    if sys.version_info < (3, 11):
        return await awaits_task()
    name = asyncio.current_task().get_name()
    async with asyncio.TaskGroup() as group:
        WAITED[name] = [group.create_task(nested(i)) for i in range(3)]
        # What it waits for is known only when it leaves the group.
    del WAITED[name]


async def queues(queue):
    while True:
        item = await queue.get()
        await leaf(item)


async def forever(kind):
    while True:
        await kind()
        await asyncio.sleep(0)


async def tick():
    while True:
        EVENT.set()
        EVENT.clear()
        await asyncio.sleep(0.0001)


async def first():
    await TASKS["second"]


async def second():
    await asyncio.gather(TASKS["third"])


async def third():
    await TASKS["first"]


async def outside():
    await TASKS["first"]


async def stands():
    await EVENT.wait()


async def runs(depth):
    while True:
        await (asyncio.sleep(0) if depth == 0 else nested_sleep(depth))


async def nested_sleep(depth):
    await (asyncio.sleep(0) if depth == 0 else nested_sleep(depth - 1))


async def makes():
    while True:
        await own_task(nested_sleep(1))


async def crowd():
    tasks = [own_task(function(*arguments)) for count, function, arguments in (
        (CROWD, stands, ()), (RUNNERS, runs, (0,)), (RUNNERS, runs, (3,)), (1, makes, ()))
             for _ in range(count)]
    for _ in range(3):
        await asyncio.sleep(0)
    print("ready", flush=True)
    await asyncio.gather(*tasks)


async def here():
    await EVENT.wait()


async def there():
    await asyncio.Event().wait()


async def moves():
    for place in here, there:
        await place()


async def ends():
    await here()


async def stays():
    await there()


async def blocks():
    await here()
    await asyncio.sleep(0.05)  # until the others have done their step
    print("stepped", flush=True)
    os.read(0, 1)


async def begins():
    await there()


def step():
    os.read(0, 1)
    LOOP.remove_reader(0)
    EVENT.set()
    named(begins)


def named(function, *arguments, name=None):
    name = name or function.__name__
    TASKS[name] = own_task(function(*arguments))
    TASKS[name].set_name(name)


async def takes(first_lock, second_lock):
    async with first_lock:
        await asyncio.sleep(0.01)
        async with second_lock:
            pass


async def acquires(lock):
    await lock.acquire()
    await asyncio.sleep(1000)


async def limited(lock):
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(lock.acquire(), 1000)


async def queue_of_its_own():
    await asyncio.Queue().get()


async def locks():
    """LOCK is free at last: nobody waits for it."""
    a, b, c, d, e = [asyncio.Lock() for _ in range(5)]
    condition = asyncio.Condition(e)
    await LOCK.acquire()
    for name, function, *arguments in (
            ("pay", takes, a, b), ("refund", takes, b, a), ("twice", takes, c, c),
            ("holder", acquires, d), ("fifth", takes, condition, LOCK)):
        named(function, *arguments, name=name)
    del a, b, c
    await asyncio.sleep(0.05)
    named(takes, d, LOCK, name="behind")
    named(limited, d)
    named(takes, condition, d, name="sixth")
    named(queue_of_its_own)
    named(there)
    LOOP.add_reader(0, step)
    await asyncio.sleep(0.05)
    print("ready", flush=True)
    await there()


async def main():
    global LOOP, EVENT, LOCK
    LOOP = asyncio.get_running_loop()
    EVENT, LOCK = asyncio.Event(), asyncio.Lock()
    if WHAT == "crowd":
        return await crowd()
    if WHAT == "locks":
        return await locks()
    if WHAT == "step":
        for function in (stays, moves, ends, blocks):
            named(function)
        LOOP.add_reader(0, step)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        print("ready", flush=True)
        await there()
    queue = asyncio.Queue()
    loop_tasks = [queues(queue), queues(queue)]
    if WHAT == "deadlock":
        for function in (first, second, third, outside):
            TASKS[function.__name__] = own_task(function())
            if sys.version_info >= (3, 8):
                TASKS[function.__name__].set_name(function.__name__)
    else:
        loop_tasks += [forever(kind) for kind in (consume, naïve_задача_名前_𝒳, gathers, waits,
                                                  awaits_task, in_group)]
        loop_tasks.append(tick())
    tasks = [own_task(coroutine) for coroutine in loop_tasks]
    if WHAT == "idle":
        await asyncio.sleep(0.05)
        for task in tasks[2:]:
            task.cancel()
        await asyncio.wait(tasks[2:])
        tasks = tasks[:2] + [own_task(asyncio.sleep(1000)), own_task(asyncio.sleep(1000)),
                             own_task(awaits_task_forever())]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        LOOP.add_signal_handler(signal.SIGUSR1, dump)
    print("ready", flush=True)
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.gather(*tasks)


async def awaits_task_forever():
    await own_task(asyncio.sleep(1000))


WHAT = sys.argv[1]
MOMENTS = WHAT == "moments"
TASKS = {}
asyncio.run(main())
