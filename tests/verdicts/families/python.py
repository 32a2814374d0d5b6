"""Threads and processes of Python, and asyncio. Each case is one script of Debian's python3."""

from cases import ALARM, DEADLOCK, PYTHON, child_named, hang

PRELUDE = """import threading, queue, time, sys, os, signal, concurrent.futures as cf
Lock, Thread, both = threading.Lock, threading.Thread, threading.Barrier(2)
def ready(): print("ready", flush=True)
def go(*functions):
    threads = [Thread(target=f, name=f.__name__) for f in functions]
    for t in threads: t.start()
    ready()
    for t in threads: t.join()
"""


def case(title, truth, source, expect, family="python", prelude=PRELUDE, child=None, **options):
    def start(lab):
        process = lab.run(PYTHON, "-u", lab.path("program.py", prelude + source))
        return child_named(process.pid, child) if child else process
    hang(family, title, truth, start, expect, **options)


TWO = r"2 threads wait for each other"
case("two locks in opposite order", "pay holds a and wants b, refund holds b and wants a", """
a, b = Lock(), Lock()
def pay():
    with a:
        both.wait()
        with b: pass
def refund():
    with b:
        both.wait()
        with a: pass
go(pay, refund)
""", ["DEADLOCK", "in pay", "in refund"], alarm=DEADLOCK)
case("two RLocks in opposite order", "pay and refund hold one each", """
a, b = threading.RLock(), threading.RLock()
def pay():
    with a:
        both.wait()
        with b: pass
def refund():
    with b:
        both.wait()
        with a: pass
go(pay, refund)
""", ["DEADLOCK", "in pay", "in refund"], alarm=DEADLOCK)
case("a Lock taken twice", "main waits in log for the lock it took in request", """
a = Lock()
def log():
    with a: pass
def request():
    with a: log()
ready(); request()
""", ["in log", "Lock", "DEADLOCK|itself|stuck"], alarm=ALARM)
case("join under a lock", "main holds a in stop and joins worker, which wants a in flush", """
a = Lock()
def flush():
    both.wait()
    with a: pass
def stop():
    t = Thread(target=flush, name="worker")
    with a:
        t.start(); both.wait(); ready(); t.join()
stop()
""", ["flush", "stop", "join", "DEADLOCK"], alarm=DEADLOCK)
case("threads that join each other", "first joins second and second first", """
threads = {}
def first(): both.wait(); threads["second"].join()
def second(): both.wait(); threads["first"].join()
threads = {f.__name__: Thread(target=f, name=f.__name__) for f in (first, second)}
for t in threads.values(): t.start()
ready(); threads["first"].join()
""", ["in.* first|first at", "second", "Thread.join", "DEADLOCK"], alarm=DEADLOCK)
case("Queue.get whose producers have ended", "consumer waits in Queue.get in consume; nobody puts", """
q = queue.Queue()
def consume(): q.get()
go(consume)
""", ["consume", "Queue.get"], alarm=ALARM)
case("Queue.join without task_done", "main waits in Queue.join in finish; worker waits for the next job", """
q = queue.Queue()
def worker():
    while True: q.get()
def finish(): q.join()
Thread(target=worker, name="worker").start(); q.put(1); ready(); finish()
""", ["finish", "Queue.join", "worker", "Queue.get"], alarm=ALARM)
case("two full queues", "left waits to put to b, right waits to put to a; each reads only after that", """
a, b = queue.Queue(1), queue.Queue(1)
def left():
    a.put(1); both.wait(); a.put(2); b.get()
def right():
    b.put(1); both.wait(); b.put(2); a.get()
go(left, right)
""", ["left", "right", "Queue.put"], alarm=ALARM)
case("an Event that nobody sets", "main waits for loaded in start_up; loader waits for the lock that main holds", """
loaded, a = threading.Event(), Lock()
def load():
    with a: loaded.set()
def start_up():
    with a:
        Thread(target=load, name="loader").start(); ready(); loaded.wait()
start_up()
""", ["start_up", "Event.wait", "in load", "Lock"], alarm=ALARM)
case("a notify before the wait", "consumer waits in Condition.wait in take", """
c = threading.Condition()
def take():
    with c: c.wait()
with c: c.notify()
go(take)
""", ["take", "Condition.wait"], alarm=ALARM)
case("a semaphore whose holders want one more", "both wait in second_permit and hold one permit each", """
s = threading.Semaphore(2)
def second_permit(): s.acquire()
def one():
    s.acquire(); both.wait(); second_permit()
def two():
    s.acquire(); both.wait(); second_permit()
go(one, two)
""", ["second_permit", "Semaphore", "one|two"], alarm=ALARM)
case("two RLocks in opposite order, with time limits in a loop", "pay holds a and wants b, refund holds b and wants a", """
a, b = threading.RLock(), threading.RLock()
def get(lock):
    while not lock.acquire(timeout=0.05): pass
def pay():
    with a: both.wait(); get(b)
def refund():
    with b: both.wait(); get(a)
go(pay, refund)
""", ["pay", "refund", TWO, "RLock"], never=["DEADLOCK", "being taken or released"], alarm=ALARM, still=False)
case("a Barrier with one thread too few", "early waits in Barrier.wait; late waits for a lock that early holds", """
a, bar = Lock(), threading.Barrier(2)
def early():
    with a: both.wait(); bar.wait()
def late():
    both.wait()
    with a: bar.wait()
go(early, late)
""", ["early", "late", "Barrier.wait", "Lock"], alarm=ALARM)
case("a pool whose tasks wait for tasks", "both workers wait in nested for a future of their own pool, main for one of them", """
pool = cf.ThreadPoolExecutor(2)
def nested():
    both.wait()
    return pool.submit(int).result()
def total(): return [f.result() for f in [pool.submit(nested), pool.submit(nested)]]
ready(); total()
""", ["nested", "Future.result", "total"], alarm=ALARM)
case("a pool that is shut down by its own task", "the worker joins itself in close, main waits for its future", """
pool = cf.ThreadPoolExecutor(1)
started = threading.Event()
def task():
    f = pool.submit(int); started.set(); f.result()
def close():
    pool.submit(task); started.wait(); ready(); pool.shutdown(wait=True)
close()
""", ["close", "task", "shutdown", "Future.result"], alarm=ALARM)
case("a future that nobody completes", "main waits in await_answer for a Future without a task", """
def await_answer(): return cf.Future().result()
ready(); await_answer()
""", ["await_answer", "Future.result"], alarm=ALARM)
case("a lock held across fork", "the child waits in child_work for a lock whose owner exists only in the parent", """
a = Lock()
def holder():
    with a: both.wait(); threading.Event().wait()
def child_work():
    with a: pass
Thread(target=holder, daemon=True).start(); both.wait()
pid = os.fork()
if not pid:
    child_work(); os._exit(0)
print("fact child", pid, flush=True); ready(); os.waitpid(pid, 0)
""", ["{child}", "waitpid|end of|exit of|child process"], alarm=ALARM)
case("an import that waits for a thread that imports", "main imports slow, which joins a thread that waits in import for the same module", """
sys.path.insert(0, os.path.dirname(__file__))
open(os.path.join(os.path.dirname(__file__), "slow.py"), "w").write('''
import threading
def helper():
    from slow import value
t = threading.Thread(target=helper, name="helper"); t.start()
print("ready", flush=True); t.join()
value = 1
''')
import slow
""", ["helper", "slow.py", "import|_ModuleLock", "join"], alarm=ALARM)
case("a signal handler that wants the interrupted lock", "on_signal waits for the lock that update holds in the same thread", """
a = Lock()
def on_signal(*_):
    ready()
    with a: pass
signal.signal(signal.SIGALRM, on_signal)
def update():
    with a: signal.setitimer(signal.ITIMER_REAL, 0.1); time.sleep(1000)
update()
""", ["on_signal", "update", "Lock"], alarm=ALARM)
case("an exit that waits for a thread", "main has ended and waits in threading._shutdown for poller, which waits for an Event", """
stop = threading.Event()
def poller(): stop.wait()
Thread(target=poller, name="poller").start(); ready()
""", ["poller", "_shutdown|exit", "Event.wait"], alarm=ALARM)
case("the interpreter lock, held by C code", "main calls read(2) by ctypes.PyDLL in busy_c, with the GIL; worker waits for the GIL in count", """
import ctypes
def count():
    while True: time.sleep(0.01)
def busy_c():
    r, w = os.pipe(); c = ctypes.PyDLL(None); b = ctypes.create_string_buffer(1); ready(); c.read(r, b, 1)
Thread(target=count, name="worker").start(); busy_c()
""", ["busy_c", "global interpreter lock|GIL", "count", "pipe"], alarm=ALARM, still=False)
case("a pool of processes whose worker was killed", "main waits in get_all for a result of a worker that was killed", """
import multiprocessing as mp
def die(_): os.kill(os.getpid(), 9)
def get_all(): return pool.map_async(die, range(1)).get()
pool = mp.Pool(1); ready(); get_all()
""", ["get_all", "ApplyResult.(get|wait)|MapResult"], still=False)
case("a process that is joined before its queue is read", "main joins child in collect; its feeder thread waits to write to a full pipe that main has to read", """
import multiprocessing as mp
q = mp.Queue()
def produce(): q.put("x" * 1000000)
def collect():
    p = mp.Process(target=produce); p.start(); print("fact child", p.pid); ready(); p.join(); q.get()
collect()
""", ["collect", "{child}", "pipe"], alarm=ALARM)
case("a multiprocessing.Lock whose owner was killed", "main waits in enter for a semaphore that a killed process held", """
import multiprocessing as mp
l = mp.Lock()
def die(): l.acquire(); os.kill(os.getpid(), 9)
def enter(): l.acquire()
p = mp.Process(target=die); p.start(); p.join(); ready(); enter()
""", ["enter", "semaphore|Lock"], alarm=ALARM)
case("a server that does not answer", "main waits in fetch to receive from a server that has accepted and is silent", """
import socket, urllib.request
s = socket.create_server(("127.0.0.1", 0))
def silent(): c = s.accept(); threading.Event().wait()
def fetch(): urllib.request.urlopen("http://127.0.0.1:%d/" % s.getsockname()[1])
Thread(target=silent, name="server", daemon=True).start(); ready(); fetch()
""", ["fetch", r"127\.0\.0\.1:\d+|TCP|socket", "silent"])
case("a destructor that wants a lock that is held", "collect_garbage holds a; __del__ waits for it in the same thread", """
a = Lock()
class Node:
    def __del__(self):
        with a: pass
def replace():
    n = Node()
    with a: n = None
ready(); replace()
""", ["__del__", "replace", "Lock"], alarm=ALARM)
case("greenlets and one lock", "greenlet writer waits in write for the lock that greenlet reader holds; both are of one thread", """
import greenlet
a = Lock()
def reader():
    with a: writer_g.switch()
def write(): a.acquire()
writer_g, reader_g = greenlet.greenlet(write), greenlet.greenlet(reader)
ready(); reader_g.switch()
""", ["in write", "Lock", "reader"], alarm=ALARM)

GEVENT = """from gevent import monkey; monkey.patch_all()
import gevent, gevent.lock, gevent.queue, gevent.event
def go(*functions):
    gevent.spawn_later(0.1, lambda: print("ready", flush=True))
    gevent.spawn_later(3600, int) # or gevent itself finds that nothing can happen any more
    gevent.joinall([gevent.spawn(f) for f in functions])
"""
case("gevent: a semaphore whose holder waits for an event", "report waits for the semaphore that import_all holds, which waits for loaded", """
s, loaded = gevent.lock.Semaphore(), gevent.event.Event()
def import_all():
    with s: loaded.wait()
def report():
    with s: loaded.set()
go(import_all, report)
""", ["in import_all|import_all at", "report at", "greenlet"], prelude=GEVENT)
case("gevent: two queues, each waits for the other", "left takes from b, right from a, before either puts", """
a, b = gevent.queue.Queue(), gevent.queue.Queue()
def left(): a.put(b.get())
def right(): b.put(a.get())
go(left, right)
""", ["left at", "right at", "2 greenlets|3 greenlets"], prelude=GEVENT)
case("gevent: a call that blocks the hub", "crunch waits in a read of a pipe outside gevent, answer waits for its turn", """
import os
r, w = os.pipe()
def crunch(): gevent.sleep(0.3); os.read(r, 1)
def answer(): gevent.sleep(0.5)
go(crunch, answer)
""", ["crunch", "answer at", "pipe"], prelude=GEVENT)

AIO = """import asyncio, threading, time, concurrent.futures as cf
def ready(): print("ready", flush=True)
async def serve():
    s = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    return s
"""


def task(title, truth, source, expect, server=True, **options):
    """A program with an idle server beside the tasks, so that the loop has a descriptor to wait for."""
    case(title, truth, source + "\nasync def main():\n    s = " + ("await serve()" if server else "None") +
         "\n    ready()\n    await run()\nasyncio.run(main())\n", expect, family="asyncio", prelude=AIO, **options)


task("two asyncio locks in opposite order", "pay holds a and wants b, refund holds b and wants a", """
async def take(x, y):
    async with x:
        await asyncio.sleep(0.1)
        async with y: pass
async def pay(): await take(a, b)
async def refund(): await take(b, a)
async def run():
    global a, b
    a, b = asyncio.Lock(), asyncio.Lock()
    await asyncio.gather(asyncio.create_task(pay(), name="pay"), asyncio.create_task(refund(), name="refund"))
""", ["pay", "refund", "Lock", "take"], alarm=ALARM)
task("an asyncio lock taken twice", "log waits for the lock that request holds", """
async def log():
    async with a: pass
async def request():
    async with a: await log()
async def run():
    global a
    a = asyncio.Lock(); await request()
""", ["log", "request", "Lock"], alarm=ALARM)
task("tasks that await each other", "first awaits second and second awaits first", """
tasks = {}
async def first():
    await asyncio.sleep(0.1); await tasks["second"]
async def second():
    await asyncio.sleep(0.1); await tasks["first"]
async def run():
    for f in (first, second): tasks[f.__name__] = asyncio.create_task(f(), name=f.__name__)
    await asyncio.sleep(0.3); await asyncio.Event().wait()
""", ["first", "second", "[Dd]eadlock|cycle|each other"], alarm=ALARM)
task("a queue that nobody fills", "consumer waits in Queue.get in consume", """
async def consume(): await asyncio.Queue().get()
async def run(): await asyncio.create_task(consume(), name="consumer")
""", ["consume", "Queue.get", "consumer"], alarm=ALARM)
task("a full queue that nobody reads", "produce waits in Queue.put, and run for it", """
async def produce():
    q = asyncio.Queue(1)
    while True: await q.put(1)
async def run(): await asyncio.create_task(produce(), name="producer")
""", ["produce", "Queue.put"], alarm=ALARM)
task("a future that nobody sets", "main awaits a future in await_answer", """
async def await_answer(): await asyncio.get_running_loop().create_future()
async def run(): await asyncio.create_task(await_answer(), name="answer")
""", ["await_answer", "answer", "[Ff]uture"], alarm=ALARM)
task("an event that nobody sets", "watcher waits in Event.wait in watch", """
async def watch(): await asyncio.Event().wait()
async def run(): await asyncio.create_task(watch(), name="watcher")
""", ["watch", "Event.wait"], alarm=ALARM)
task("a semaphore whose holders want one more", "both tasks wait in more", """
async def more(): await s.acquire()
async def work():
    await s.acquire(); await asyncio.sleep(0.1); await more()
async def run():
    global s
    s = asyncio.Semaphore(2); await asyncio.gather(work(), work())
""", ["more", "work", "Semaphore.acquire"], alarm=ALARM)
task("Queue.join without task_done", "run waits in Queue.join in finish", """
async def finish():
    q = asyncio.Queue(); q.put_nowait(1); await q.get(); await q.join()
async def run(): await finish()
""", ["finish", "Queue.join"], alarm=ALARM)
task("a blocking call in a coroutine", "the loop's thread waits in handle for a threading.Lock that a thread holds in hold", """
a = threading.Lock(); got = threading.Event()
def hold():
    with a: got.set(); threading.Event().wait()
async def handle(): a.acquire()
async def run():
    threading.Thread(target=hold, name="holder").start(); got.wait(); await asyncio.create_task(handle(), name="handler")
""", ["handle", "Lock", "hold", "event loop|task|handler"], alarm=ALARM)
task("result() of a coroutine in its own loop's thread", "the loop's thread waits in Future.result in ask for a coroutine that only this loop can run", """
async def answer(): return 1
def ask(loop): return asyncio.run_coroutine_threadsafe(answer(), loop).result()
async def run(): ask(asyncio.get_running_loop())
""", ["ask", "Future.result", "event loop|run_forever|task"], alarm=ALARM)
task("run_in_executor whose threads all wait", "the only thread of the executor waits in first for what second would set; main awaits both", """
go = threading.Event()
def first(): go.wait()
def second(): go.set()
async def run():
    loop = asyncio.get_running_loop(); loop.set_default_executor(cf.ThreadPoolExecutor(1))
    await asyncio.gather(loop.run_in_executor(None, first), loop.run_in_executor(None, second))
""", [r"in first|first at", "Event.wait", "run "], alarm=ALARM)
task("a subprocess whose output is not read", "run waits for a child in wait_child; the child waits to write to a pipe that main does not read", """
async def wait_child():
    p = await asyncio.create_subprocess_exec("sh", "-c", "yes | head -c 10000000", stdout=asyncio.subprocess.PIPE, limit=1)
    print("fact child", p.pid, flush=True)
    await p.wait()
async def run(): await wait_child()
""", ["wait_child", "Process.wait|{child}", "pipe"], alarm=ALARM)
task("a stream that stays silent", "reader waits in StreamReader.readline for a server that sends nothing", """
async def read_line():
    async def silent(r, w): await asyncio.Event().wait()
    s = await asyncio.start_server(silent, "127.0.0.1", 0)
    r, w = await asyncio.open_connection(*s.sockets[0].getsockname())
    await r.readline()
async def run(): await read_line()
""", ["read_line", "StreamReader.readline|readuntil"])
task("an endless loop in a coroutine", "the loop's thread is busy in spin; other tasks do not run", """
async def spin():
    while True: pass
async def run(): await asyncio.create_task(spin(), name="spinner")
""", ["spin", "busy|running"], still=False)
task("a timer beside tasks that wait for each other", "pay and refund wait for each other's lock while tick runs every 10 ms", """
async def take(x, y):
    async with x:
        await asyncio.sleep(0.1)
        async with y: pass
async def pay(): await take(a, b)
async def refund(): await take(b, a)
async def tick():
    while True: await asyncio.sleep(0.01)
async def run():
    global a, b
    a, b = asyncio.Lock(), asyncio.Lock()
    await asyncio.gather(*[asyncio.create_task(f(), name=f.__name__) for f in (pay, refund, tick)])
""", ["pay", "refund", "Lock"], alarm=ALARM, still=False)
for title, truth, source, expect in (
        ("a future that nobody sets", "main awaits answer, which awaits a future in await_answer", """
async def await_answer(): await pending
async def run():
    global pending
    pending = asyncio.get_running_loop().create_future(); await asyncio.create_task(await_answer(), name="answer")
""", ["await_answer", "answer", "[Ff]uture", "for ever"]),
        ("a semaphore whose holders want one more", "both tasks wait in more", """
async def more(): await s.acquire()
async def work():
    await s.acquire(); await asyncio.sleep(0.1); await more()
async def run():
    global s
    s = asyncio.Semaphore(2); await asyncio.gather(work(), work())
""", ["more", "work", "Semaphore.acquire", "for ever"]),
        ("a queue of the program that nobody fills", "consumers wait in Queue.get in consume; an executor's thread is idle", """
async def consume(): await q.get()
async def run():
    global q
    q = asyncio.Queue(); await asyncio.get_running_loop().run_in_executor(None, int); await asyncio.gather(consume(), consume())
""", ["consume", "Queue.get", "for ever"]),
        ("an event whose task wants a lock", "starter holds a in start_up and waits for loaded, which loader sets once it has a", """
async def load():
    async with a: loaded.set()
async def start_up():
    async with a:
        t = asyncio.create_task(load(), name="loader"); await loaded.wait()
async def run():
    global a, loaded
    a, loaded = asyncio.Lock(), asyncio.Event(); await asyncio.create_task(start_up(), name="starter")
""", ["load", "start_up", "Lock, held by task starter", "for ever"])):
    task(title + ", without a server", truth, source, expect, server=False, alarm=ALARM)
