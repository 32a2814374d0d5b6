"""Threads of C and C++: pthread, the C++ library, GLib's locks. All cases are in one program, each in a
namespace with a function run()."""

from cases import ALARM, DEADLOCK, built, hang

FAMILY = "native"
SOURCES = {}
PRELUDE = """
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <fcntl.h>
#include <functional>
#include <future>
#include <latch>
#include <map>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <semaphore.h>
#include <semaphore>
#include <shared_mutex>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>
#define KEEP __attribute__((noinline))
static pthread_barrier_t both;
static void name(const char *word)
{
	pthread_setname_np(pthread_self(), word);
	printf("fact %s %ld\\n", word, syscall(SYS_gettid));
}
static void meet() { pthread_barrier_wait(&both); }
static void ready() { puts("ready"); fflush(stdout); }
"""
MAIN = """
int main(int, char **words)
{
	std::map<std::string, void (*)()> all{%s};
	pthread_barrier_init(&both, nullptr, 2);
	setlinebuf(stdout);
	all.at(words[1])();
	pause();
}
"""


def start(lab, word):
    text = PRELUDE + "".join("namespace %s {\n%s\n}\n" % item for item in SOURCES.items()) + \
        MAIN % ", ".join('{"%s", %s::run}' % (name, name) for name in SOURCES)
    program = built("native.cc", text, "g++", "-std=c++20", "-g", "-O1", "-pthread",
                    "-fno-optimize-sibling-calls", "-o", "{program}", "{source}",
                    "-l:libglib-2.0.so.0")
    return lab.run(program, word)


def case(word, title, truth, source, expect, **options):
    SOURCES[word] = source
    hang(FAMILY, title, truth, lambda lab: start(lab, word), expect, **options)


def two(first, second):
    """Two threads with names; run() waits for both."""
    return """
KEEP void first() { name("first"); %s }
KEEP void second() { name("second"); %s }
void run() { ready(); std::thread a(first), b(second); a.join(); b.join(); }
""" % (first, second)


CYCLE = ["first", "second", "DEADLOCK"]

case("abba", "std::mutex in opposite order", "first holds a and wants b, second holds b and wants a",
     "std::mutex a, b;" + two("std::lock_guard x(a); meet(); std::lock_guard y(b);",
                              "std::lock_guard x(b); meet(); std::lock_guard y(a);"),
     CYCLE + [r"abba::a\b", r"abba::b\b"], alarm=DEADLOCK)
case("ring", "five philosophers", "each holds its left fork and waits for the right one",
     """
std::mutex fork[5];
std::barrier<> all(5);
KEEP void eat(int i) { name(("phil-" + std::to_string(i)).c_str());
	std::lock_guard x(fork[i]); all.arrive_and_wait(); std::lock_guard y(fork[(i + 1) % 5]); }
void run() { ready(); std::vector<std::thread> t; for (int i = 0; i < 5; i++) t.emplace_back(eat, i);
	for (auto &one : t) one.join(); }
""", ["DEADLOCK: 5", "phil-0", "phil-4", "ring::fork"], alarm=DEADLOCK)
case("self", "a mutex locked twice", "the main thread waits in log_line for a mutex that it took in request",
     "std::mutex m; KEEP void log_line() { std::lock_guard x(m); } "
     "KEEP void request() { std::lock_guard x(m); ready(); log_line(); } void run() { request(); }",
     ["self::m", "log_line", "itself|DEADLOCK"], alarm=DEADLOCK)
case("recursive", "a recursive lock, three deep, and a plain one",
     "first holds the recursive mutex three times and wants the plain one of second, which wants it",
     "std::recursive_mutex a; std::mutex b;" +
     two("a.lock(); a.lock(); a.lock(); meet(); std::lock_guard y(b);",
         "std::lock_guard x(b); meet(); a.lock();"), CYCLE + ["recursive::a"], alarm=DEADLOCK)
case("timed_abba", "timed locks in a loop, in opposite order",
     "first and second retry try_lock_for(100 ms) without end, each holds what the other wants",
     "std::timed_mutex a, b;" +
     two("std::lock_guard x(a); meet(); while (!b.try_lock_for(std::chrono::milliseconds(100))) { }",
         "std::lock_guard x(b); meet(); while (!a.try_lock_for(std::chrono::milliseconds(100))) { }"),
     ["first", "second", "2 threads wait for each other in a cycle", "timed_abba::a"], never="DEADLOCK",
     alarm=ALARM, still=False)
case("timed_one", "a timed lock in a loop whose holder reads a pipe",
     "main holds a and reads a pipe that nobody writes, waiter retries try_lock_for(2 s) without end",
     """
std::timed_mutex a;
KEEP void waiter() { name("waiter"); while (!a.try_lock_for(std::chrono::seconds(2))) { } }
void run() { int p[2]; char c; a.lock(); std::thread x(waiter); ready(); if (pipe(p) || read(p[0], &c, 1)) x.join(); }
""", ["waiter", "timed_one::a", "pipe"], alarm=ALARM, still=False)
case("pi", "two priority-inheriting mutexes in opposite order", "first and second hold one each",
     """
pthread_mutex_t a, b;
void make(pthread_mutex_t *m) { pthread_mutexattr_t t; pthread_mutexattr_init(&t);
	pthread_mutexattr_setprotocol(&t, PTHREAD_PRIO_INHERIT); pthread_mutex_init(m, &t); }
KEEP void first() { name("first"); pthread_mutex_lock(&a); meet(); pthread_mutex_lock(&b); }
KEEP void second() { name("second"); pthread_mutex_lock(&b); meet(); pthread_mutex_lock(&a); }
void run() { make(&a); make(&b); ready(); std::thread x(first), y(second); x.join(); y.join(); }
""", ["first", "second", r"pi::[ab]\b"])
case("robust", "two robust mutexes in opposite order", "first and second hold one each",
     """
pthread_mutex_t a, b;
void make(pthread_mutex_t *m) { pthread_mutexattr_t t; pthread_mutexattr_init(&t);
	pthread_mutexattr_setrobust(&t, PTHREAD_MUTEX_ROBUST); pthread_mutex_init(m, &t); }
KEEP void first() { name("first"); pthread_mutex_lock(&a); meet(); pthread_mutex_lock(&b); }
KEEP void second() { name("second"); pthread_mutex_lock(&b); meet(); pthread_mutex_lock(&a); }
void run() { make(&a); make(&b); ready(); std::thread x(first), y(second); x.join(); y.join(); }
""", CYCLE + ["robust::a"], alarm=DEADLOCK)
case("promise", "a promise that a thread will set once it has the lock",
     "main holds m in checkout and waits in future::get for worker, which waits for m in charge",
     """
std::mutex m; std::promise<int> done;
KEEP void charge() { name("worker"); std::lock_guard x(m); done.set_value(1); }
KEEP void checkout() { std::lock_guard x(m); std::thread t(charge); ready(); done.get_future().get(); t.join(); }
void run() { checkout(); }
""", ["checkout", "charge", "promise::m", "future"], alarm=ALARM)
case("async", "std::async under a lock", "main holds m in total and waits for an async task that wants m in part",
     """
std::mutex m; KEEP int part() { std::lock_guard x(m); return 1; }
KEEP int total() { std::lock_guard x(m); auto f = std::async(std::launch::async, part); ready(); return f.get(); }
void run() { total(); }
""", ["total", "part", "async::m", "future"], alarm=ALARM)
case("forgotten", "a promise that nobody sets", "main waits in await_answer for a promise; the thread that had to set it is in its next loop, accepting jobs",
     """
std::promise<int> *answer = new std::promise<int>; std::mutex m; std::condition_variable jobs;
KEEP void serve() { name("server"); std::unique_lock l(m); jobs.wait(l, [] { return false; }); }
KEEP int await_answer() { std::thread(serve).detach(); ready(); return answer->get_future().get(); }
void run() { await_answer(); }
""", ["await_answer", "future"], alarm=ALARM)
case("starved", "a pool whose tasks wait for tasks", "both workers wait in nested for a future of a task that is queued in the same pool",
     """
std::mutex m; std::condition_variable some; std::deque<std::packaged_task<int()>> queue;
std::future<int> submit(std::function<int()> f) { std::packaged_task<int()> t(f); auto r = t.get_future();
	std::lock_guard l(m); queue.push_back(std::move(t)); some.notify_one(); return r; }
KEEP int nested() { meet(); return submit([] { return 1; }).get(); }
KEEP void worker() { name("pool"); for (;;) { std::packaged_task<int()> t;
	{ std::unique_lock l(m); some.wait(l, [] { return !queue.empty(); }); t = std::move(queue.front()); queue.pop_front(); } t(); } }
void run() { std::thread(worker).detach(); std::thread(worker).detach(); ready();
	auto a = submit(nested), b = submit(nested); a.get(); b.get(); }
""", ["nested", "future", "starved::run|main"], alarm=ALARM)
case("lost", "a signal that came before the wait", "consumer waits for a condition variable in take; nobody signals it any more, main waits in join",
     """
std::mutex m; std::condition_variable filled;
KEEP void take() { name("consumer"); std::unique_lock l(m); filled.wait(l); }
void run() { filled.notify_one(); ready(); std::thread t(take); t.join(); }
""", ["take", "condition variable", "lost::filled|consumer"], alarm=ALARM)
case("both_wait", "producer and consumer wait for each other's signal",
     "put waits for room, get waits for items, each on its own condition variable",
     "std::mutex m; std::condition_variable room, items;"
     "KEEP void put() { std::unique_lock l(m); room.wait(l); } KEEP void get() { std::unique_lock l(m); items.wait(l); }" +
     two("put();", "get();"), ["put", "get", "condition variable"], alarm=ALARM)
case("holds_cv", "a wait for a signal under a second lock", "consumer waits for ready_cv and holds config, which producer wants before it signals",
     "std::mutex m, config; std::condition_variable ready_cv;" +
     two("std::lock_guard c(config); std::unique_lock l(m); meet(); ready_cv.wait(l);",
         "meet(); std::lock_guard c(config); ready_cv.notify_one();"),
     ["second", "holds_cv::config", r"held by \d+ \(first\)", "condition variable|ready_cv"], alarm=ALARM)
case("missing", "a barrier with one thread too few", "two of three threads wait in the barrier; the third waits for a mutex that one of them holds",
     """
std::mutex m; pthread_barrier_t three;
KEEP void early() { name("early"); pthread_barrier_wait(&three); }
KEEP void holder() { name("holder"); std::lock_guard l(m); meet(); pthread_barrier_wait(&three); }
KEEP void late() { name("late"); meet(); std::lock_guard l(m); pthread_barrier_wait(&three); }
void run() { pthread_barrier_init(&three, nullptr, 3); ready(); std::thread a(early), b(holder), c(late); a.join(); b.join(); c.join(); }
""", ["late", "missing::m", r"held by \d+ \(holder\)", "barrier"], alarm=ALARM)
case("join_held", "join under a lock that the thread needs", "main holds m in stop and joins worker, which waits for m in flush",
     """
std::mutex m; KEEP void flush() { name("worker"); meet(); std::lock_guard l(m); }
KEEP void stop() { std::thread t(flush); std::lock_guard l(m); meet(); ready(); t.join(); } void run() { stop(); }
""", ["stop|pthread_join", "flush", "join_held::m", "DEADLOCK"], alarm=DEADLOCK)
case("join_cycle", "two threads that join each other", "first joins second and second joins first",
     """
pthread_t a, b;
void *first(void *) { name("first"); meet(); pthread_join(b, nullptr); return nullptr; }
void *second(void *) { name("second"); meet(); pthread_join(a, nullptr); return nullptr; }
void run() { pthread_create(&a, nullptr, first, nullptr); pthread_create(&b, nullptr, second, nullptr); ready(); }
""", ["first", "second", "join|to end", "DEADLOCK"], alarm=DEADLOCK)
case("rw", "a reader that waits for what a writer holds", "reader holds rw for reading and wants m; writer holds m and wants rw for writing",
     "std::shared_mutex rw; std::mutex m;" +
     two("std::shared_lock r(rw); meet(); std::lock_guard l(m);", "std::lock_guard l(m); meet(); std::unique_lock w(rw);"),
     ["first", "second", "rw::rw", "rw::m", "read"], alarm=ALARM)
case("upgrade", "two readers that both want to write", "first and second hold rw for reading and wait in modify to write",
     "pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER; KEEP void modify() { pthread_rwlock_wrlock(&rw); }" +
     two("pthread_rwlock_rdlock(&rw); meet(); modify();", "pthread_rwlock_rdlock(&rw); meet(); modify();"),
     ["first", "second", "modify", "upgrade::rw", "write"], alarm=ALARM)
case("statics", "initialisation of a static variable that waits for a thread that uses it",
     "main is in the constructor Config and joins loader, which waits for the same static in instance",
     """
struct Config; Config &instance();
KEEP void load() { name("loader"); instance(); }
struct Config { Config() { ready(); std::thread t(load); t.join(); } };
KEEP Config &instance() { static Config one; return one; }
void run() { instance(); }
""", ["loader", "Config", "initiali|guard", "DEADLOCK"], alarm=DEADLOCK)
case("once", "std::call_once that waits for a thread in call_once", "main is in call_once and joins other, which waits for the same flag",
     """
std::once_flag flag; KEEP void other() { name("other"); std::call_once(flag, [] {}); }
KEEP void setup() { ready(); std::thread t(other); t.join(); } void run() { std::call_once(flag, setup); }
""", ["other", "setup", "once::flag|call_once|pthread_once", "DEADLOCK"], alarm=DEADLOCK)
case("permits", "a semaphore whose holders want one more", "first and second hold the two permits and each waits in more for another",
     "sem_t permits; KEEP void more() { sem_wait(&permits); }"
     "KEEP void work() { sem_wait(&permits); meet(); more(); }"
     "void run() { sem_init(&permits, 0, 2); ready(); std::thread a(work), b(work); a.join(); b.join(); }",
     ["more", "semaphore", "permits::permits"], alarm=ALARM)
case("handler", "malloc in a signal handler that has interrupted malloc", "the handler waits in malloc for the arena that the interrupted malloc holds",
     """
void *volatile sink; KEEP void on_alarm(int) { sink = malloc(100000); free(sink); }
KEEP void churn() { for (;;) { for (int i = 0; i < 64; i++) { sink = malloc(20000 + i * 512); free(sink); } } }
void run() { std::thread([] { pause(); }).detach(); usleep(10000); mallopt_all(); }
""".replace("mallopt_all();", "signal(SIGALRM, on_alarm); ualarm(1000, 500); ready(); churn();"),
     ["on_alarm", "malloc", "signal|interrupted"], alarm=ALARM)
case("forked", "a child that was forked while another thread held a lock", "the child waits in child_work for m, whose owner exists only in the parent",
     """
std::mutex m; KEEP void child_work() { std::lock_guard l(m); }
KEEP void holder() { std::lock_guard l(m); meet(); pause(); }
void run() { std::thread(holder).detach(); meet(); pid_t p = fork(); if (!p) { child_work(); _exit(0); }
	printf("fact child %d\\n", p); ready(); waitpid(p, nullptr, 0); }
""", ["child|{child}", "waitpid|wait4|end of|child process"], alarm=ALARM)
case("ended", "a thread that ended with a lock", "main waits in next for m; the thread that took it has ended",
     "std::mutex m; KEEP void quits() { m.lock(); } KEEP void next() { std::lock_guard l(m); }"
     "void run() { std::thread(quits).join(); ready(); next(); }",
     ["next", "ended::m", "ended|exited|no longer|does not exist|gone"], alarm=ALARM)
case("cancelled", "a thread that was cancelled with a lock", "main waits in commit for m; the cancelled thread had it",
     """
std::mutex m; void *victim(void *) { m.lock(); meet(); for (;;) pause(); }
KEEP void commit() { std::lock_guard l(m); }
void run() { pthread_t t; pthread_create(&t, nullptr, victim, nullptr); meet(); pthread_cancel(t); pthread_join(t, nullptr); ready(); commit(); }
""", ["commit", "cancelled::m", "ended|exited|no longer|does not exist|gone"], alarm=ALARM)
case("stdio", "a locked stream and a mutex", "first holds stderr's lock and wants m, second holds m and writes to stderr in report",
     "std::mutex m; FILE *out; KEEP void report() { fputs(\"x\", out); }" +
     two("flockfile(out); meet(); std::lock_guard l(m);", "std::lock_guard l(m); meet(); report();").replace(
         "ready();", "out = fopen(\"/dev/null\", \"w\"); ready();"),
     ["first", "second", "stdio::m", "stream|FILE|fputs"], alarm=DEADLOCK)
case("spin", "a spin lock whose holder sleeps", "spinner spins in pthread_spin_lock in update; keeper holds the lock and reads from a pipe",
     "pthread_spinlock_t s; KEEP void update() { pthread_spin_lock(&s); }"
     "KEEP void keep() { name(\"keeper\"); pthread_spin_lock(&s); meet(); int p[2]; pipe(p); char c; read(p[0], &c, 1); }"
     "void run() { pthread_spin_init(&s, 0); std::thread t(keep); meet(); ready(); update(); }",
     ["update", "busy|running"], still=False)
case("word", "std::atomic::wait", "waiter waits in until_open for an atomic that nobody sets",
     "std::atomic<int> open{0}; KEEP void until_open() { name(\"waiter\"); open.wait(0); }"
     "void run() { ready(); std::thread t(until_open); t.join(); }",
     ["until_open", "waiter", "atomic"], alarm=ALARM)
case("latch", "std::latch with one arrival too few", "main waits in gather for a latch of 3; two threads have arrived, the third waits in stuck for a semaphore",
     """
std::latch done(3); std::counting_semaphore<> go(0);
KEEP void stuck() { name("third"); go.acquire(); done.count_down(); } KEEP void gather() { done.wait(); }
void run() { std::thread([] { done.count_down(); }).detach(); std::thread([] { done.count_down(); }).detach();
	std::thread(stuck).detach(); ready(); gather(); }
""", ["gather", "stuck", "std::latch|semaphore|atomic"], alarm=ALARM)
case("own_pipe", "a thread that fills a pipe that it reads itself", "main waits in send to write to a pipe whose only reader is this thread",
     """
int p[2]; KEEP void send() { char block[70000] = {}; write(p[1], block, sizeof block); }
void run() { pipe(p); ready(); send(); }
""", ["send", r"\bpipe\b", "write|output", "itself|same process|this process|{pid}.*{pid}"], alarm=ALARM)
case("glib", "GMutex in opposite order", "first and second hold one each",
     'extern "C" void g_mutex_lock(void *); void *a[1], *b[1];' +
     two("g_mutex_lock(a); meet(); g_mutex_lock(b);", "g_mutex_lock(b); meet(); g_mutex_lock(a);"),
     ["first", "second", "g_mutex_lock|GMutex"], alarm=ALARM)
case("gcond", "a GAsyncQueue that nobody fills", "consumer waits in take_job for g_async_queue_pop; main joins it",
     'extern "C" void *g_async_queue_new(); extern "C" void *g_async_queue_pop(void *); '
     "KEEP void take_job() { name(\"consumer\"); g_async_queue_pop(g_async_queue_new()); }"
     "void run() { ready(); std::thread t(take_job); t.join(); }",
     ["take_job", "g_async_queue_pop", "consumer"], alarm=ALARM)
case("loader", "dlopen under a lock that a constructor's thread needs", "main holds m in load_plugin and waits in dlopen for the loader's lock; inside holds that, in dl_iterate_phdr's callback, and wants m",
     """
std::mutex m; int visit(dl_phdr_info *, size_t, void *);
KEEP void inside() { name("walker"); dl_iterate_phdr(visit, nullptr); }
KEEP void grab() { std::lock_guard l(m); }
int visit(dl_phdr_info *, size_t, void *) { static int once; if (!once++) { meet(); grab(); } return 0; }
KEEP void load_plugin() { std::lock_guard l(m); meet(); dlopen("libz.so.1", RTLD_NOW); }
void run() { std::thread t(inside); ready(); load_plugin(); }
""".replace("std::mutex m;", "", 1).replace("int visit", "}\n#include <link.h>\nnamespace loader {\nstd::mutex m; int visit", 1),
     ["load_plugin", "grab", "loader::m", "DEADLOCK"], alarm=DEADLOCK)
case("shared", "a mutex in shared memory, held by another process", "the parent waits in enter for m; the child holds it and waits to read from a pipe",
     """
KEEP void enter(pthread_mutex_t *m) { pthread_mutex_lock(m); }
void run() { auto m = (pthread_mutex_t *)mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t t; pthread_mutexattr_init(&t); pthread_mutexattr_setpshared(&t, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(m, &t); int p[2], q[2]; pipe(p); pipe(q); pid_t child = fork(); char c;
	if (!child) { pthread_mutex_lock(m); write(q[1], "x", 1); read(p[0], &c, 1); _exit(0); }
	read(q[0], &c, 1); printf("fact child %d\\n", child); ready(); enter(m); }
""", ["enter", r"held by.*{child}"], alarm=ALARM)
