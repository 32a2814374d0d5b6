"""Programs that are idle, busy, or wait for each other in turns: none of them is stuck."""

import os
import time

import test_verdicts as idle  # what e2e/verdicts judges
from cases import PYTHON, child_named, children, healthy, wait_until
from families import databases, go, java, native, servers


def command(name, words):
    def start(lab):
        lab.path("tcl", "socket -server puts 0\nvwait forever\n")
        port = str(lab.port())
        process = lab.run(*[word.replace("{port}", port).replace("{directory}", lab.directory) for word in words], ready=None)
        time.sleep(1)
        return [process.pid] + children(process.pid)
    healthy(name, start)


for title, argv in idle.COMMANDS.items():
    command(title, argv)
for title, text in idle.PYTHON.items():
    command("python " + title, [PYTHON, "-c", text])


def script(title, source, words=(PYTHON, "-u"), name="program.py", child=None, ready="ready"):
    def start(lab):
        lab.fifo()
        process = lab.run(*words, lab.path(name, source.replace("@DIR@", lab.directory)), ready=ready)
        return child_named(process.pid, child) if child else process
    healthy(title, start)


PRELUDE = """
import threading, queue, time, socket, os, asyncio, concurrent.futures as cf, fcntl, subprocess, signal, sys
def go(*functions):
    for f in functions: threading.Thread(target=f, name=f.__name__).start()
    print("ready", flush=True)
"""
for title, text in {
    "python: a lock held for half a second in turns": """
a = threading.Lock()
def one():
    while True:
        with a: time.sleep(0.5)
go(one, one, one)
""",
    "python: a lock with a time limit in a loop, whose holder computes": """
a = threading.RLock()
def holder():
    with a:
        while True: pass
def waiter():
    while not a.acquire(timeout=0.05): pass
go(holder, waiter)
""",
    "python: RLocks in opposite order that are released and tried again": """
a, b = threading.RLock(), threading.RLock()
def work(first, second):
    while True:
        with first:
            time.sleep(0.001)
            if second.acquire(timeout=0.1): second.release()
def pay(): work(a, b)
def refund(): work(b, a)
go(pay, refund)
""",
    "python: RLocks in opposite order with a limit of a second, released and tried again": """
a, b = threading.RLock(), threading.RLock()
def work(first, second):
    while True:
        with first:
            time.sleep(0.001)
            if second.acquire(timeout=1): second.release()
        time.sleep(0.01)
def pay(): work(a, b)
def refund(): work(b, a)
go(pay, refund)
""",
    "python: a worker that waits a second for each answer": """
a = threading.Lock()
s = socket.create_server(("127.0.0.1", 0))
def server():
    c = s.accept()[0]
    while c.recv(1): time.sleep(0.7); c.send(b"x")
def client():
    c = socket.create_connection(s.getsockname())
    while True:
        with a: c.send(b"x"); c.recv(1)
def waits():
    while True:
        with a: pass
        time.sleep(0.001)
go(server, client, waits)
""",
    "python: a timer thread and an idle queue": """
q = queue.Queue()
def worker():
    while True: q.get()
def timer():
    while True: time.sleep(1); q.put(1)
go(worker, worker, timer)
""",
    "python: an Event with a time limit": """
e = threading.Event()
def poll():
    while not e.wait(0.5): pass
go(poll)
""",
    "python: a main thread that joins busy workers": """
def work():
    n = 0
    while True: n += 1
t = [threading.Thread(target=work) for _ in range(2)]
for x in t: x.start()
print("ready", flush=True)
for x in t: x.join()
""",
    "python: an executor that is idle": """
pool = cf.ThreadPoolExecutor(4)
list(pool.map(str, range(50)))
print("ready", flush=True); signal.pause()
""",
    "python: a subprocess that computes": """
p = subprocess.Popen(["sh", "-c", "while :; do :; done"]); print("ready", flush=True); p.wait()
""",
    "python: a file lock in turns of two processes": """
p = os.fork(); print("ready", flush=True)
while True:
    f = open("@DIR@/l", "w"); fcntl.flock(f, fcntl.LOCK_EX); time.sleep(0.3); f.close(); time.sleep(0.001)
""",
    "python: a file lock whose holder computes": """
r, w = os.pipe(); p = os.fork()
if not p:
    f = open("@DIR@/l", "w"); fcntl.flock(f, fcntl.LOCK_EX); os.write(w, b"x")
    while True: pass
os.read(r, 1); print("ready", flush=True); fcntl.flock(open("@DIR@/l", "w"), fcntl.LOCK_EX)
""",
    "python: a pipe with a slow writer": """
p = subprocess.Popen(["sh", "-c", "while sleep 0.7; do echo x; done"], stdout=-1); print("ready", flush=True)
for line in p.stdout: pass
""",
    "asyncio: locks in turns": """
async def turn(l):
    while True:
        async with l: await asyncio.sleep(0.3)
async def main():
    l = asyncio.Lock(); print("ready", flush=True); await asyncio.gather(*[turn(l) for _ in range(4)])
asyncio.run(main())
""",
    "asyncio: queue workers without work": """
async def worker(q):
    while True: await q.get()
async def main():
    q = asyncio.Queue(); t = [asyncio.create_task(worker(q)) for _ in range(5)]
    s = await asyncio.start_server(print, "127.0.0.1", 0); print("ready", flush=True); await s.serve_forever()
asyncio.run(main())
""",
    "asyncio: timers": """
async def tick(t):
    while True: await asyncio.sleep(t)
async def main(): print("ready", flush=True); await asyncio.gather(tick(0.01), tick(1), tick(100))
asyncio.run(main())
""",
    "asyncio: servers that wait for an event or a future that nobody sets": """
async def serve(forever):
    s = await asyncio.start_server(print, "127.0.0.1", 0); await forever()
async def future(): await asyncio.get_running_loop().create_future()
async def event(): await asyncio.Event().wait()
async def main(): print("ready", flush=True); await asyncio.gather(serve(future), serve(event))
asyncio.run(main())
""",
    "asyncio: nothing but an event that nobody sets": """
async def main(): print("ready", flush=True); await asyncio.Event().wait()
asyncio.run(main())
""",
    "asyncio: a queue that a signal handler fills": """
async def consume(q): await q.get()
async def main():
    q = asyncio.Queue(); signal.signal(signal.SIGUSR1, lambda *_: q.put_nowait(1))
    print("ready", flush=True); await asyncio.gather(consume(q), consume(q))
asyncio.run(main())
""",
    "asyncio: a queue that a thread fills": """
def fill(loop, q): signal.pause if sys.stdin.read(1) else None; loop.call_soon_threadsafe(q.put_nowait, 1)
async def consume(q): await q.get()
async def main():
    q = asyncio.Queue(); threading.Thread(target=fill, args=(asyncio.get_running_loop(), q)).start()
    print("ready", flush=True); await asyncio.gather(consume(q), consume(q))
asyncio.run(main())
""",
    "asyncio: a queue that a timer fills": """
async def consume(q): await q.get()
async def main():
    q = asyncio.Queue(); asyncio.get_running_loop().call_later(1000, q.put_nowait, 1)
    print("ready", flush=True); await asyncio.create_task(consume(q))
asyncio.run(main())
""",
    "asyncio: a lock with a time limit": """
async def take(x, y):
    while True:
        async with x:
            try: await asyncio.wait_for(y.acquire(), 100)
            except asyncio.TimeoutError: continue
            y.release()
async def main():
    a, b = asyncio.Lock(), asyncio.Lock(); print("ready", flush=True)
    async def later(): await asyncio.sleep(0); await take(b, a)
    async with b:
        t = asyncio.create_task(take(a, b)); await asyncio.sleep(0.1)
        await asyncio.wait_for(a.acquire(), 100)
asyncio.run(main())
""",
    "asyncio: a lock whose holder waits for a socket": """
async def hold(l, r):
    async with l: await r.read()
async def main():
    l = asyncio.Lock()
    async def silent(r, w): await r.read()
    s = await asyncio.start_server(silent, "127.0.0.1", 0)
    r, w = await asyncio.open_connection(*s.sockets[0].getsockname())
    h = asyncio.create_task(hold(l, r)); await asyncio.sleep(0); print("ready", flush=True); await l.acquire()
asyncio.run(main())
""",
    "asyncio: an executor that works": """
async def main():
    print("ready", flush=True)
    while True: await asyncio.get_running_loop().run_in_executor(None, time.sleep, 0.4)
asyncio.run(main())
""",
}.items():
    script(title, PRELUDE + text)


def threads(word, title, source):
    """A case of the program of C++; it is not a hang."""
    native.SOURCES[word] = source
    healthy("C++: " + title, lambda lab: native.start(lab, word))


threads("turns", "a mutex in turns, held for 300 ms",
        "std::mutex m; void work() { for (;;) { std::lock_guard l(m); usleep(300000); } }"
        "void run() { for (int i = 0; i < 4; i++) std::thread(work).detach(); ready(); pause(); }")
threads("short_turns", "a mutex that 8 threads take for microseconds",
        "std::mutex m; void work() { for (;;) { std::lock_guard l(m); usleep(10); } }"
        "void run() { for (int i = 0; i < 8; i++) std::thread(work).detach(); ready(); pause(); }")
threads("idle_pool", "an idle pool of threads on a condition variable",
        "std::mutex m; std::condition_variable c; void work() { std::unique_lock l(m); c.wait(l, [] { return false; }); }"
        "void run() { for (int i = 0; i < 4; i++) std::thread(work).detach(); ready(); getchar(); }")
threads("busy_holder", "a mutex whose holder computes",
        "std::mutex m; std::atomic<int> n; void hold() { std::lock_guard l(m); meet(); for (;;) n++; } void wait() { std::lock_guard l(m); }"
        "void run() { std::thread(hold).detach(); meet(); std::thread(wait).detach(); ready(); pause(); }")
threads("futures", "futures of tasks that compute",
        "std::atomic<int> n; int work() { for (;;) n++; } void run() { auto f = std::async(std::launch::async, work); ready(); f.get(); }")
threads("rounds", "a barrier that is passed three times a second",
        "std::barrier<> b(3); void work() { for (;;) { usleep(300000); b.arrive_and_wait(); } }"
        "void run() { for (int i = 0; i < 3; i++) std::thread(work).detach(); ready(); pause(); }")
threads("reading", "readers and a writer in turns",
        "std::shared_mutex m; void read() { for (;;) { { std::shared_lock l(m); usleep(2000); } usleep(20000); } } void write() { for (;;) { { std::unique_lock l(m); usleep(2000); } usleep(100000); } }"
        "void run() { for (int i = 0; i < 3; i++) std::thread(read).detach(); std::thread(write).detach(); ready(); pause(); }")
threads("timed", "a timed wait for a condition in a loop",
        "std::mutex m; std::condition_variable c; void run() { ready(); for (;;) { std::unique_lock l(m); c.wait_for(l, std::chrono::milliseconds(200)); } }")
threads("yielding", "timed locks in opposite order that are released and tried again",
        "std::timed_mutex a, b; void work(std::timed_mutex &x, std::timed_mutex &y) { for (;;) { std::unique_lock l(x); usleep(1000); if (y.try_lock_for(std::chrono::milliseconds(100))) { usleep(1000); y.unlock(); } } }"
        "void run() { std::thread([] { work(a, b); }).detach(); std::thread([] { work(b, a); }).detach(); ready(); pause(); }")
threads("hesitating", "timed locks in opposite order with a limit of a second, released and tried again",
        "std::timed_mutex a, b; void work(std::timed_mutex &x, std::timed_mutex &y) { for (;;) { { std::unique_lock l(x); usleep(1000); if (y.try_lock_for(std::chrono::seconds(1))) { usleep(1000); y.unlock(); } } usleep(10000); } }"
        "void run() { std::thread([] { work(a, b); }).detach(); std::thread([] { work(b, a); }).detach(); ready(); pause(); }")
threads("served", "a semaphore that another thread posts twice a second",
        "std::counting_semaphore<> s(0); void run() { std::thread([] { for (;;) { usleep(500000); s.release(); } }).detach(); ready(); for (;;) s.acquire(); }")
threads("gate", "std::atomic::wait for what a client may ask for",
        "std::atomic<int> open{0}; void run() { std::thread([] { for (;;) open.wait(0); }).detach(); ready(); getchar(); }")
threads("answers", "futures that are set three times a second",
        "void run() { ready(); for (;;) { std::promise<int> p; std::thread t([&] { usleep(300000); p.set_value(1); }); p.get_future().get(); t.join(); } }")
threads("asked", "a future that a signal handler sets",
        "std::promise<int> p; void run() { signal(SIGUSR1, [](int) { p.set_value(1); }); ready(); p.get_future().get(); }")
threads("gathering", "a latch whose last thread waits for input",
        "std::latch l(2); void run() { std::thread([] { getchar(); l.count_down(); }).detach(); ready(); l.count_down(); l.wait(); }")
threads("slow_start", "call_once whose routine computes",
        "std::once_flag f; std::atomic<int> n; void load() { meet(); for (;;) n++; } void use() { std::call_once(f, load); }"
        "void run() { std::thread(use).detach(); meet(); std::thread(use).detach(); ready(); pause(); }")
threads("child_ends", "a semaphore that the handler of SIGCHLD posts",
        "sem_t s; void run() { sem_init(&s, 0, 0); signal(SIGCHLD, [](int) { sem_post(&s); }); if (!fork()) { pause(); _exit(0); } ready(); while (sem_wait(&s)) ; }")
threads("named", "a named semaphore that a client may post",
        "void run() { char n[40]; snprintf(n, sizeof n, \"/verdict-%d\", getpid()); sem_t *s = sem_open(n, O_CREAT, 0600, 0); ready(); sem_wait(s); }")
threads("kept", "a semaphore in shared memory that a child keeps for a while",
        "void run() { auto s = static_cast<sem_t *>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)); sem_init(s, 1, 0);"
        " if (!fork()) { sleep(1000); sem_post(s); _exit(0); } ready(); sem_wait(s); }")
native.SOURCES["across"] = """
void run() { auto open = new (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) std::atomic<int>(0);
	pid_t child = fork(); if (!child) for (;;) open->wait(0);
	printf("fact child %d\\n", child); ready(); getchar(); open->store(1); }
"""


def across(lab):
    native.start(lab, "across")
    return int(lab.facts["child"])


healthy("C++: std::atomic::wait in memory that processes share", across)


def goroutines(word, title, source):
    go.SOURCES[word] = source
    healthy("Go: " + title, lambda lab: go.start(lab, word))


goroutines("calmTurns", "a mutex held for 400 ms in turns", """
var calmTurnsM sync.Mutex
func calmTurns() { for i := 0; i < 4; i++ { go func() { for { calmTurnsM.Lock(); time.Sleep(400 * time.Millisecond); calmTurnsM.Unlock() } }() } }
""")
goroutines("calmPool", "idle workers on a channel", """
func calmPool() { c := make(chan int); for i := 0; i < 4; i++ { go func() { for range c { } }() }; for { time.Sleep(time.Hour); c <- 1 } }
""")
goroutines("calmWaits", "waits for timers, for a goroutine that sleeps, and for what variables refer to", """
var calmWaitsC = map[int]chan int{1: make(chan int)}
func calmWaitsSleep(c chan int) { time.Sleep(time.Hour); close(c) }
func calmWaits() { c := make(chan int); go calmWaitsSleep(c); go func() { <-c }(); go func() { <-calmWaitsC[1] }(); ctx, cancel := context.WithTimeout(context.Background(), time.Hour); defer cancel(); go func() { select {} }(); <-ctx.Done() }
""")
goroutines("calmTicker", "a ticker and a WaitGroup of workers", """
func calmTicker() { var w sync.WaitGroup; w.Add(2); for i := 0; i < 2; i++ { go func() { for range time.Tick(300 * time.Millisecond) { } }() }; w.Wait() }
""")
goroutines("calmBusy", "a mutex whose holder computes", """
var calmBusyM sync.Mutex
func calmBusy() { calmBusyM.Lock(); go calmBusyM.Lock(); for i := 0; ; i++ { } }
""")
goroutines("calmHot", "a mutex that eight goroutines take for microseconds", """
var calmHotM sync.Mutex
func calmHot() { for i := 0; i < 8; i++ { go func() { for { calmHotM.Lock(); time.Sleep(10 * time.Microsecond); calmHotM.Unlock() } }() } }
""")


def virtual_machine(word, title, source):
    java.SOURCES[word] = source
    healthy("Java: " + title, lambda lab: java.start(lab, word))


virtual_machine("CalmService", "a service whose main thread waits for a latch", """
static void run() throws Exception { ExecutorService pool = Executors.newFixedThreadPool(3); for (int i = 0; i < 3; i++) pool.submit(() -> 1).get(); ready(); new CountDownLatch(1).await(); }
""")
virtual_machine("CalmHook", "a main thread that waits for a shutdown hook", """
static void run() throws Exception { CountDownLatch stop = new CountDownLatch(1); Runtime.getRuntime().addShutdownHook(new Thread(stop::countDown)); ready(); stop.await(); }
""")
virtual_machine("CalmSignal", "a main thread that waits for the handler of a signal", """
static void run() throws Exception { CountDownLatch stop = new CountDownLatch(1); sun.misc.Signal.handle(new sun.misc.Signal("HUP"), s -> stop.countDown()); ready(); stop.await(); }
""")
virtual_machine("CalmDaemon", "a main thread that waits for a latch beside a thread that accepts connections", """
static void run() throws Exception { java.net.ServerSocket s = new java.net.ServerSocket(0); Thread t = new Thread(() -> { try { for (;;) s.accept(); } catch (Exception e) { } }, "acceptor"); t.setDaemon(true); t.start(); ready(); new CountDownLatch(1).await(); }
""")
virtual_machine("CalmLater", "a CompletableFuture with a time limit", """
static void run() throws Exception { ready(); new CompletableFuture<Integer>().orTimeout(1000000, TimeUnit.SECONDS).join(); }
""")
virtual_machine("CalmChild", "a main thread that waits for a child that sleeps", """
static void run() throws Exception { Process p = new ProcessBuilder("sleep", "100000").start(); ready(); p.waitFor(); }
""")
virtual_machine("CalmReader", "a main thread that waits for a thread that reads what a child will write", """
static void run() throws Exception { Process p = new ProcessBuilder("sleep", "100000").start(); Thread t = go("reader", () -> p.getInputStream().read()); ready(); t.join(); }
""")
virtual_machine("CalmTurns", "a monitor held for 300 ms in turns", """
static Object m = new Object();
static void run() { for (int i = 0; i < 4; i++) go("t" + i, () -> { for (;;) synchronized (m) { Thread.sleep(300); } }); ready(); }
""")
virtual_machine("CalmLocks", "a ReentrantLock held for 300 ms in turns", """
static ReentrantLock m = new ReentrantLock(true);
static void run() { for (int i = 0; i < 4; i++) go("t" + i, () -> { for (;;) { m.lock(); try { Thread.sleep(300); } finally { m.unlock(); } } }); ready(); }
""")
virtual_machine("CalmTimer", "a scheduled executor and a blocking queue", """
static void run() throws Exception { BlockingQueue<Integer> q = new LinkedBlockingQueue<>(); Executors.newScheduledThreadPool(2).scheduleAtFixedRate(() -> q.add(1), 200, 200, TimeUnit.MILLISECONDS); ready(); for (;;) q.take(); }
""")
virtual_machine("CalmBusy", "a monitor whose holder computes", """
static Object m = new Object(); static volatile int n;
static void run() throws Exception { go("holder", () -> { synchronized (m) { meet(); for (;;) n++; } }); meet(); go("waiter", () -> { synchronized (m) { } }); ready(); }
""")
virtual_machine("CalmCommon", "parallel streams", """
static void run() { ready(); for (;;) IntStream.range(0, 1000000).parallel().sum(); }
""")
virtual_machine("CalmSelector", "a server that is idle in a selector", """
static void run() throws Exception { java.nio.channels.Selector s = java.nio.channels.Selector.open(); ready(); for (;;) s.select(); }
""")

for title, text in {
    "node: timers": "setInterval(() => {}, 200); console.log('ready')",
    "node: a worker that computes": "const { Worker } = require('worker_threads'); new Worker('for (;;) ;', { eval: true }); console.log('ready')",
    "node: a busy pool": "const c = require('crypto'); function f() { c.pbkdf2('a', 'b', 200000, 20, 'sha1', f); } for (let i = 0; i < 8; i++) f(); console.log('ready')",
}.items():
    script(title, text, ("node",), "program.js")
for title, text, seen in (
    ("make -j2 that compiles", "printf 'all: a b\\na b:\\n\\t@sh -c \"while :; do :; done\"\\n' > Makefile; exec make -j2", None),
    ("a pipeline of gzip", "cat /dev/zero | gzip -1 | cat > /dev/null", "gzip"),
    ("a pipeline with a slow reader", "cat /dev/zero | while sleep 0.2 && head -c 100000 > /dev/null; do :; done", "cat"),
    ("flock in turns", "while :; do flock l sleep 0.3; done & while :; do flock l sleep 0.3; done", None),
    ("xargs -P", "yes 0.1 | xargs -P 2 -n 1 sleep", "xargs"),
    ("find that reads the file system", "while :; do find /usr -name x; done", "find"),
):
    def start_shell(lab, text=text, seen=seen):
        process = lab.shell(text)
        time.sleep(0.5)
        return child_named(process.pid, seen) if seen else process
    healthy(title, start_shell)


def apache(mpm):
    def start(lab):
        path = lab.path("conf", idle.APACHE.format(root="/usr/lib/apache2", directory=lab.directory, mpm=mpm, port=lab.port(), port2=lab.port()))
        process = lab.run("apache2", "-f", path, "-DFOREGROUND", ready=None)
        wait_until(lambda: len(children(process.pid)) >= 2, "the children")
        return [process.pid] + children(process.pid)
    return start


for title, text, seen in (
    ("sh: commands from a FIFO", "mkfifo f; while read c < f; do :; done", None),
    ("sh: a service below a supervisor that reads commands from a FIFO", "mkfifo f; sh -c 'while read c < f; do :; done'; true", None),
    ("a FIFO whose other end is open", "mkfifo f; sleep 100000 > f & exec cat f", "cat"),
    ("a shell whose two jobs sleep", "sleep 100000 & sleep 100000 & wait", None),
    ("a shell with a job that waits for the lock of another one, which sleeps", "flock l sleep 100000 & sleep 0.1; flock l true & wait", None),
    ("a tool below a shell that takes a lock in turns", "sh -c 'while :; do flock l sleep 0.2; done' & while :; do flock l sleep 0.3; done", None),
    ("make above locks in turns", "printf 'all: a b\na b:\n\t@while :; do flock l sleep 0.2; done\n' > Makefile; exec make -j2", None),
    ("a pipeline whose reader sleeps", "yes | sleep 100000", "yes"),
):
    healthy(title, lambda lab, text=text, seen=seen: start_shell(lab, text, seen))
script("python: a pipe to itself, filled by a signal handler", PRELUDE + """
r, w = os.pipe(); signal.signal(signal.SIGUSR1, lambda *_: os.write(w, b"x")); print("ready", flush=True); os.read(r, 1)
""")
script("python: a multiprocessing.Lock whose owner sleeps", PRELUDE + """
import multiprocessing as mp
l = mp.Lock(); held = mp.Event()
def own(): l.acquire(); held.set(); time.sleep(100000)
p = mp.Process(target=own); p.start(); held.wait(); print("ready", flush=True); l.acquire()
""")
script("python: a process that is joined and works", PRELUDE + """
import multiprocessing as mp
p = mp.Process(target=time.sleep, args=(100000,)); p.start(); print("ready", flush=True); p.join()
""")
script("python: a queue of processes whose producer sleeps", PRELUDE + """
import multiprocessing as mp
q = mp.Queue()
def produce(): time.sleep(100000); q.put(1)
p = mp.Process(target=produce); p.start(); print("ready", flush=True); q.get()
""")
script("python: a pool of processes that works", PRELUDE + """
import multiprocessing as mp
with mp.Pool(2) as pool: r = pool.map_async(time.sleep, [100000]); print("ready", flush=True); r.get()
""")
script("python: a UNIX socket that is accepted late", PRELUDE + """
l = socket.socket(socket.AF_UNIX); l.bind("@DIR@/s"); l.listen(0)
if not os.fork():
    while True: time.sleep(0.3); l.accept()
print("ready", flush=True)
while True: s = socket.socket(socket.AF_UNIX); s.connect("@DIR@/s"); s.close()
""")
for mpm in ("worker", "prefork", "event"):
    healthy("apache2 " + mpm, apache(mpm))
healthy("MariaDB: idle connections", lambda lab: databases.MariaDb(lab).process)


def maria_row(lab):
    """Four connections that change one row for some milliseconds each."""
    server = databases.MariaDb(lab)
    lab.path("update.py", """
import sys; sys.path.insert(0, %r)
from mariadb import Connection
import threading
def work():
    c = Connection(%r)
    while True:
        for text in ("begin", "update d.t set j = j + 1 where i = 1", "do sleep(0.01)", "commit"): c.query(text); c.done()
for _ in range(4): threading.Thread(target=work).start()
""" % (os.path.dirname(idle.__file__), server.socket))
    lab.run(PYTHON, lab.path("update.py"), ready=None)
    time.sleep(1)
    return server.process


healthy("MariaDB: a hot row", maria_row)
healthy("PostgreSQL: idle", lambda lab: databases.Postgres(lab).process)


def pgbench(*options):
    def start(lab):
        server = databases.Postgres(lab)
        bench = [server.bin + "/pgbench", "-h", lab.directory, "-U", "tester", "postgres"]
        lab.command(*bench, "-i", "-q")
        lab.run(*bench, "-c", "6", "-T", "1000", *options, ready=None)
        time.sleep(2)
        return children(server.process.pid)
    return start


healthy("PostgreSQL: pgbench, TPC-B with one hot row", pgbench())
healthy("PostgreSQL: pgbench -N", pgbench("-N"))
healthy("PostgreSQL: pgbench -S", pgbench("-S"))


def redis_busy(lab):
    server, _ = databases.redis(lab)
    lab.run("redis-benchmark", "-s", lab.path("redis"), "-l", "-q", "-t", "set,get", ready=None)
    return server


healthy("redis under load", redis_busy)
for words in (("cpu", "--threads=3"), ("threads", "--threads=8"), ("mutex", "--threads=8", "--mutex-loops=1000000"), ("memory", "--threads=2")):
    healthy("sysbench " + words[0], lambda lab, words=words: lab.run("sysbench", words[0], "--time=1000", "--events=0", *words[1:], "run", ready=None))
healthy("gunicorn with threads, idle", lambda lab: served(lab, "--threads", "3"))
healthy("gunicorn sync, idle", lambda lab: served(lab))


def served(lab, *options):
    lab.path("program.py", servers.APP)
    process = lab.run("gunicorn", "-b", "127.0.0.1:%d" % lab.port(), *options, "program:app", ready="Booting worker",
                      env={"PYTHONPATH": lab.directory})
    return [process.pid] + children(process.pid)


healthy("caddy, idle", lambda lab: lab.run("caddy", "file-server", "--listen", "127.0.0.1:%d" % lab.port(), ready=None))
healthy("etcd, idle", lambda lab: lab.run("etcd", "--data-dir", lab.path("etcd"), "--listen-client-urls", "http://127.0.0.1:%d" % (one := lab.port()),
                                          "--advertise-client-urls", "http://127.0.0.1:%d" % one, "--listen-peer-urls",
                                          "http://127.0.0.1:%d" % lab.port(), ready="serving client|ready to serve"))
healthy("tmux, idle", lambda lab: [lab.command("tmux", "-S", lab.path("t"), "-f", "/dev/null", "new-session", "-d", "sleep 100000"),
                                   child_named(os.getpid(), "tmux: server")][1])
