"""Threads of Java. Each case is a class with main(); they are compiled together."""

from cases import ALARM, DEADLOCK, Unavailable, built, find, hang, os

SOURCES = {}
JARS = ["/usr/share/java/%s.jar" % name for name in ("HikariCP", "h2", "slf4j-api", "slf4j-nop")]
PRELUDE = """
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.locks.*;
import java.util.stream.*;
class All {
    static void ready() { System.out.println("ready"); }
    static final CyclicBarrier both = new CyclicBarrier(2);
    static void meet() { try { both.await(); } catch (Exception e) { throw new Error(e); } }
    interface Task { void run() throws Exception; }
    static Thread go(String name, Task task) {
        Thread t = new Thread(() -> { try { task.run(); } catch (Exception e) { throw new Error(e); } }, name);
        t.start();
        return t;
    }
}
"""


def start(lab, word, *options):
    if "Hikari" in word and not all(map(os.path.exists, JARS)):
        raise Unavailable("libhikaricp-java, libh2-java")
    text = PRELUDE + "".join("class %s extends All {\n%s\npublic static void main(String[] w) throws "
                             "Exception { run(); }\n}\n" % item for item in SOURCES.items())
    path = ":".join(JARS)
    program = built("hangs.java", text, "sh", "-c", "cp {source} {directory}/All.java && "
                    "javac -g -cp " + path + " -d {directory} {directory}/All.java")
    return lab.run(find("java"), "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *options,
                   "-cp", os.path.dirname(program) + ":" + path, word)


def case(word, title, truth, source, expect, options=(), **more):
    """The source is the body of a class of that name, with static void run()."""
    SOURCES[word] = source
    hang("java", title, truth, lambda lab: start(lab, word, *options), expect, **more)


BOTH = 'static void run() throws Exception { Thread a = go("payer", %s::pay), b = go("refunder", %s::refund); ready(); a.join(); }'
case("Monitors", "two monitors in opposite order", "payer holds a and wants b, refunder holds b and wants a", """
static Object a = new Object(), b = new Object();
static void pay() { synchronized (a) { meet(); synchronized (b) { } } }
static void refund() { synchronized (b) { meet(); synchronized (a) { } } }
""" + BOTH % ("Monitors", "Monitors"), ["Monitors.pay", "Monitors.refund", "DEADLOCK"], alarm=DEADLOCK)
case("Timed", "two locks in opposite order, with time limits in a loop", "payer holds a and wants b, refunder holds b and wants a", """
static java.util.concurrent.locks.ReentrantLock a = new java.util.concurrent.locks.ReentrantLock(), b = new java.util.concurrent.locks.ReentrantLock();
static void get(java.util.concurrent.locks.ReentrantLock l) throws Exception { while (!l.tryLock(50, java.util.concurrent.TimeUnit.MILLISECONDS)) { } }
static void pay() throws Exception { a.lock(); meet(); get(b); }
static void refund() throws Exception { b.lock(); meet(); get(a); }
""" + BOTH % ("Timed", "Timed"), ["Timed.pay", "Timed.refund", "2 threads wait for each other"], never="DEADLOCK", alarm=ALARM, still=False)
case("BusyMonitors", "two monitors in opposite order beside four busy threads", "payer and refunder deadlock, four threads compute", """
static Object a = new Object(), b = new Object();
static volatile int n;
static void pay() { synchronized (a) { meet(); synchronized (b) { } } }
static void refund() { synchronized (b) { meet(); synchronized (a) { } } }
static void spin() { for (;;) n++; }
static void run() throws Exception { for (int i = 0; i < 4; i++) go("spin", BusyMonitors::spin); go("payer", BusyMonitors::pay); go("refunder", BusyMonitors::refund); ready(); }
""", ["BusyMonitors.pay", "BusyMonitors.refund", "DEADLOCK"], alarm=DEADLOCK, still=False)
case("Locks", "two ReentrantLocks in opposite order", "payer and refunder hold one each", """
static ReentrantLock a = new ReentrantLock(), b = new ReentrantLock();
static void pay() { a.lock(); meet(); b.lock(); }
static void refund() { b.lock(); meet(); a.lock(); }
""" + BOTH % ("Locks", "Locks"), ["Locks.pay", "Locks.refund", "DEADLOCK"], alarm=DEADLOCK)
case("Mixed", "a monitor and a ReentrantLock in opposite order", "payer holds the monitor, refunder the lock", """
static ReentrantLock a = new ReentrantLock(); static Object b = new Object();
static void pay() { synchronized (b) { meet(); a.lock(); } }
static void refund() { a.lock(); meet(); synchronized (b) { } }
""" + BOTH % ("Mixed", "Mixed"), ["Mixed.pay", "Mixed.refund", "DEADLOCK"], alarm=DEADLOCK)
case("Classes", "two classes that initialise each other", "payer initialises A and waits for B, refunder initialises B and waits for A", """
static class A { static int x; static { meet(); x = B.x; } } static class B { static int x; static { meet(); x = A.x; } }
static void pay() { int x = A.x; }
static void refund() { int x = B.x; }
""" + BOTH % ("Classes", "Classes"), [r"Classes\$A", r"Classes\$B", "initiali|<clinit>", "DEADLOCK|stuck|blocked"], alarm=ALARM)
case("Joins", "threads that join each other", "payer joins refunder and refunder payer", """
static Thread p, r;
static void pay() throws Exception { meet(); r.join(); }
static void refund() throws Exception { meet(); p.join(); }
static void run() throws Exception { p = new Thread(() -> { try { pay(); } catch (Exception e) { } }, "payer"); r = new Thread(() -> { try { refund(); } catch (Exception e) { } }, "refunder"); p.start(); r.start(); ready(); }
""", ["Joins.pay", "Joins.refund", "Thread.join"], alarm=ALARM)
case("Exit", "System.exit that waits for a thread that calls System.exit", "main is in System.exit and waits for the hook, which joins worker, which waits in System.exit", """
static void quit() { meet(); System.exit(1); }
static void run() throws Exception { Thread w = go("worker", Exit::quit);
  Runtime.getRuntime().addShutdownHook(new Thread(() -> { meet(); try { w.join(); } catch (Exception e) { } }, "hook")); ready(); System.exit(0); }
""", ["Exit.quit", "Exit.run", "hook", "exit"], alarm=ALARM)
case("Party", "a Phaser with one party too few", "first waits in arriveAndAwaitAdvance; the second party waits for a monitor that first holds", """
static Phaser p = new Phaser(2); static Object m = new Object();
static void first() { synchronized (m) { meet(); p.arriveAndAwaitAdvance(); } }
static void second() { meet(); synchronized (m) { p.arrive(); } }
static void run() throws Exception { go("first", Party::first); go("second", Party::second); ready(); }
""", ["Party.first", "Party.second", "Phaser", "monitor|held by"], alarm=ALARM)
case("Permits", "a Semaphore whose holders want one more", "both wait in more", """
static Semaphore s = new Semaphore(2);
static void more() throws Exception { s.acquire(); }
static void pay() throws Exception { s.acquire(); meet(); more(); }
static void refund() throws Exception { s.acquire(); meet(); more(); }
""" + BOTH % ("Permits", "Permits"), ["Permits.more", "Semaphore.acquire", "Permits.(pay|refund)"], alarm=ALARM)
case("Latch", "a CountDownLatch that nobody counts down", "main waits in start_up; loader died of an exception", """
static CountDownLatch l = new CountDownLatch(1);
static void startUp() throws Exception { l.await(); }
static void run() throws Exception { Thread t = new Thread(() -> { throw new IllegalStateException(); }, "loader"); t.start(); t.join(); ready(); startUp(); }
""", ["Latch.startUp", "CountDownLatch.await"], alarm=ALARM)
case("Barrier", "a CyclicBarrier with one thread too few", "early waits in await with lock m, late waits for m", """
static CyclicBarrier c = new CyclicBarrier(2); static ReentrantLock m = new ReentrantLock();
static void early() throws Exception { m.lock(); meet(); c.await(); }
static void late() throws Exception { meet(); m.lock(); c.await(); }
static void run() throws Exception { go("early", Barrier::early); go("late", Barrier::late); ready(); }
""", ["Barrier.early", "Barrier.late", "CyclicBarrier", "ReentrantLock|held by"], alarm=ALARM)
case("Swap", "an Exchanger without a partner", "main waits in Exchanger.exchange in offer", """
static void offer() throws Exception { new Exchanger<Integer>().exchange(1); }
static void run() throws Exception { ready(); offer(); }
""", ["Swap.offer", "Exchanger.exchange"], alarm=ALARM)
case("HandOff", "a SynchronousQueue without a taker", "producer waits in put in deliver", """
static SynchronousQueue<Integer> q = new SynchronousQueue<>();
static void deliver() throws Exception { q.put(1); }
static void run() throws Exception { Thread t = go("producer", HandOff::deliver); ready(); t.join(); }
""", ["HandOff.deliver", "SynchronousQueue.put"], alarm=ALARM)
case("Empty", "a queue whose producer has died", "consumer waits in take in consume; main joins it", """
static LinkedBlockingQueue<Integer> q = new LinkedBlockingQueue<>();
static void consume() throws Exception { q.take(); }
static void run() throws Exception { Thread t = go("consumer", Empty::consume); ready(); t.join(); }
""", ["Empty.consume", "LinkedBlockingQueue.take"], alarm=ALARM)
case("Full", "two full queues", "payer waits to put to b, refunder waits to put to a", """
static ArrayBlockingQueue<Integer> a = new ArrayBlockingQueue<>(1), b = new ArrayBlockingQueue<>(1);
static void pay() throws Exception { b.put(1); b.put(2); a.take(); }
static void refund() throws Exception { a.put(1); a.put(2); b.take(); }
""" + BOTH % ("Full", "Full"), ["Full.pay", "Full.refund", "ArrayBlockingQueue.put"], alarm=ALARM)
case("Stamped", "a StampedLock locked twice", "main holds the write lock in outer and wants it in inner", """
static StampedLock s = new StampedLock();
static void inner() { s.writeLock(); }
static void outer() { s.writeLock(); ready(); inner(); }
static void run() { outer(); }
""", ["Stamped.inner", "Stamped.outer", "StampedLock.writeLock"], alarm=ALARM)
case("Upgrade", "a write lock under a read lock", "main holds the read lock in check and wants to write in update", """
static ReentrantReadWriteLock l = new ReentrantReadWriteLock();
static void update() { l.writeLock().lock(); }
static void check() { l.readLock().lock(); ready(); update(); }
static void run() { check(); }
""", ["Upgrade.update", "Upgrade.check", "WriteLock.lock"], alarm=ALARM)
case("Starved", "a pool whose tasks wait for tasks", "both workers wait in nested for FutureTask.get of a queued task", """
static ExecutorService pool = Executors.newFixedThreadPool(2);
static int nested() throws Exception { meet(); return pool.submit(() -> 1).get(); }
static void run() throws Exception { Future<Integer> a = pool.submit(Starved::nested), b = pool.submit(Starved::nested); ready(); a.get(); b.get(); }
""", ["Starved.nested", "FutureTask.get", "pool|stuck|blocked"], alarm=ALARM)
case("Common", "tasks of the common pool that wait for a latch", "all workers of commonPool wait in gate for what a queued task would do", """
static CountDownLatch open = new CountDownLatch(1);
static void gate() { try { open.await(); } catch (Exception e) { } }
static void run() throws Exception { int n = ForkJoinPool.getCommonPoolParallelism(); CompletableFuture<?>[] f = new CompletableFuture[n + 1];
  for (int i = 0; i < n; i++) f[i] = CompletableFuture.runAsync(Common::gate); f[n] = CompletableFuture.runAsync(open::countDown); ready(); CompletableFuture.allOf(f).join(); }
""", ["Common.gate", "CountDownLatch.await", "commonPool|ForkJoin", "Common.run"], options=["-Djava.util.concurrent.ForkJoinPool.common.parallelism=2"], alarm=ALARM)
case("Uncompleted", "a CompletableFuture that nobody completes", "main waits in await_answer", """
static void awaitAnswer() { new CompletableFuture<Integer>().join(); }
static void run() { ready(); awaitAnswer(); }
""", ["Uncompleted.awaitAnswer", "CompletableFuture.join"], alarm=ALARM)
case("Notify", "a notify before the wait", "consumer waits in Object.wait in take; main joins it", """
static Object m = new Object();
static void take() throws Exception { synchronized (m) { m.wait(); } }
static void run() throws Exception { synchronized (m) { m.notify(); } Thread t = go("consumer", Notify::take); ready(); t.join(); }
""", ["Notify.take", "Object.wait"], alarm=ALARM)
case("Nested", "a wait under another monitor", "consumer waits in m.wait and holds outer, which producer wants before it notifies", """
static Object outer = new Object(), m = new Object();
static void take() throws Exception { synchronized (outer) { synchronized (m) { meet(); m.wait(); } } }
static void give() { meet(); synchronized (outer) { synchronized (m) { m.notify(); } } }
static void run() throws Exception { go("consumer", Nested::take); go("producer", Nested::give); ready(); }
""", ["Nested.take", "Nested.give", "Object.wait", r"held by .*\(?(java|consumer)"], alarm=ALARM)
case("Hikari", "a connection pool that is exhausted by nested use", "both threads hold a connection and wait in inner for another one", """
static com.zaxxer.hikari.HikariDataSource pool;
static void inner() throws Exception { pool.getConnection(); }
static void pay() throws Exception { pool.getConnection(); meet(); inner(); }
static void refund() throws Exception { pool.getConnection(); meet(); inner(); }
static void run() throws Exception { com.zaxxer.hikari.HikariConfig c = new com.zaxxer.hikari.HikariConfig(); c.setJdbcUrl("jdbc:h2:mem:a"); c.setMaximumPoolSize(2); c.setConnectionTimeout(1000000); pool = new com.zaxxer.hikari.HikariDataSource(c);
  Thread a = go("payer", Hikari::pay); go("refunder", Hikari::refund); ready(); a.join(); }
""", ["Hikari.inner", "ConcurrentBag.borrow|getConnection|HikariPool"], alarm=ALARM)
case("Child", "a child whose output is not read", "main waits in waitChild for a child that waits to write to a pipe that this process does not read", """
static void waitChild() throws Exception { Process p = new ProcessBuilder("head", "-c", "1000000", "/dev/zero").start(); System.out.println("fact child " + p.pid()); ready(); p.waitFor(); }
static void run() throws Exception { waitChild(); }
""", ["Child.waitChild", "waitFor", "{child}", "pipe"], alarm=ALARM)
case("Monitor100", "a hundred threads behind one that waits for a server", "holder holds m in a read of a socket in fetch; 100 threads want m in handle", """
static Object m = new Object();
static void fetch() throws Exception { java.net.ServerSocket s = new java.net.ServerSocket(0); java.net.Socket c = new java.net.Socket("127.0.0.1", s.getLocalPort()); synchronized (m) { meet(); c.getInputStream().read(); } }
static void handle() { synchronized (m) { } }
static void run() throws Exception { go("holder", Monitor100::fetch); meet(); for (int i = 0; i < 100; i++) go("http-" + i, Monitor100::handle); ready(); }
""", ["100 threads", "Monitor100.handle", "held by", "Monitor100.fetch|socket|TCP"], alarm=ALARM)
