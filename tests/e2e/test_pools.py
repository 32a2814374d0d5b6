"""Locks and pools that only the program knows: exhausted pools of connections in Apache and in Java,
pools of threads whose tasks wait for further tasks, Java's ReentrantLock."""
# ctest: real release-only

import atexit
import base64
import functools
import hashlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile

from harness import EndToEnd, LIMIT_S, all_sleep, main, read_text, task_states, wait_until

APACHE = """
ServerRoot /usr/lib/apache2
{modules}
PidFile {directory}/pid
ErrorLog {directory}/log
ServerName localhost
Listen 127.0.0.1:{port}
StartServers 1
ServerLimit 1
ThreadsPerChild 8
MaxRequestWorkers 8
User www-data
Group www-data
DBDriver sqlite3
DBDParams {directory}/users
DBDMin 1
DBDKeep 1
DBDMax 1
<Location />
AuthType Basic
AuthName test
AuthBasicProvider dbd
AuthDBDUserPWQuery "select password from users where name = %s"
Require valid-user
ProxyPass http://127.0.0.1:{backend}/
</Location>
"""
MODULES = ("mpm_worker", "authn_core", "authz_core", "authz_user", "auth_basic", "authn_dbd",
           "dbd", "proxy", "proxy_http")
REQUEST = (b"GET / HTTP/1.1\r\nHost: test\r\nAuthorization: Basic " +
           base64.b64encode(b"tester:secret") + b"\r\n\r\n")

JAVA = """
import java.util.concurrent.*;
import java.util.concurrent.locks.*;
public class Waits {
    static final ReentrantLock A = new ReentrantLock(), B = new ReentrantLock();
    static final CyclicBarrier both = new CyclicBarrier(2);
    static void take(Lock x, Lock y) {
        x.lock();
        meet();
        y.lock();
    }
    static void meet() {
        try { both.await(); } catch (Exception e) { throw new Error(e); }
    }
    public static void main(String[] words) throws Exception {
        if (words[0].equals("pool")) {
            ExecutorService pool = Executors.newFixedThreadPool(2);
            Callable<Integer> task = () -> { meet(); return pool.submit(() -> 1).get(); };
            Future<Integer> one = pool.submit(task), two = pool.submit(task);
            System.out.println("ready");
            one.get();
        }
        if (words[0].equals("tasks") || words[0].equals("spare") || words[0].equals("events")) {
            ExecutorService pool = Executors.newFixedThreadPool(words[0].equals("spare") ? 3 : 2);
            Callable<Integer> task = () -> {
                meet();
                if (words[0].equals("events"))
                    return new CompletableFuture<Integer>().get();
                return words[0].equals("tasks") ? pool.submit(() -> 1).get()
                                                : new FutureTask<Integer>(() -> 1).get();
            };
            pool.submit(task);
            pool.submit(task);
            if (words[0].equals("spare"))
                pool.submit(() -> 1).get();
            System.out.println("ready");
            System.in.read();
        }
        if (words[0].equals("many")) {
            B.lock();
            for (int i = 0; i < 200; i++)
                new Thread(() -> { B.lock(); B.unlock(); A.lock(); }).start();
            new Thread(() -> { A.lock(); for (;;) LockSupport.park(); }, "java-owner").start();
            while (!A.isLocked())
                Thread.sleep(1);
            B.unlock();
            while (A.getQueueLength() < 200)
                Thread.sleep(1);
            System.out.println("ready");
            System.in.read();
        }
        if (words[0].equals("latch") || words[0].equals("hook")) {
            CountDownLatch latch = new CountDownLatch(1);
            if (words[0].equals("hook"))
                Runtime.getRuntime().addShutdownHook(new Thread(latch::countDown));
            System.out.println("ready");
            latch.await();
        }
        Thread a = new Thread(() -> take(A, B), "java-ab");
        Thread b = new Thread(() -> take(B, A), "java-ba");
        a.start();
        b.start();
        while (!A.hasQueuedThreads() || !B.hasQueuedThreads())
            Thread.sleep(1);
        System.out.println("ready");
        if (words[0].equals("join"))
            a.join();
        System.in.read();
    }
}
"""

JARS = ["/usr/share/java/%s.jar" % name for name in
        ("HikariCP", "h2", "slf4j-api", "slf4j-nop", "commons-dbcp2", "commons-pool2",
         "commons-logging")]
CONNECTIONS = """
import java.util.concurrent.*;
public class Connections {
    static void serve(javax.sql.DataSource source) {
        try {
            source.getConnection();
            Thread.sleep(1000000000);
        } catch (Exception e) {
            throw new Error(e);
        }
    }
    public static void main(String[] words) throws Exception {
        com.zaxxer.hikari.HikariConfig config = new com.zaxxer.hikari.HikariConfig();
        config.setJdbcUrl("jdbc:h2:mem:a");
        config.setMaximumPoolSize(1);
        config.setConnectionTimeout(1000000);
        org.apache.commons.dbcp2.BasicDataSource basic =
            new org.apache.commons.dbcp2.BasicDataSource();
        basic.setUrl("jdbc:h2:mem:b");
        basic.setMaxTotal(1);
        javax.sql.DataSource[] sources = {new com.zaxxer.hikari.HikariDataSource(config), basic};
        ExecutorService pool = Executors.newFixedThreadPool(6);
        for (int i = 0; i < 6; i++) {
            javax.sql.DataSource source = sources[i % 2];
            pool.submit(() -> serve(source));
        }
        System.out.println("ready");
        new java.net.ServerSocket(0).accept();
    }
}
"""

PYTHON = """
import concurrent.futures, threading
pool = concurrent.futures.ThreadPoolExecutor(2)
both = threading.Barrier(2)
def task():
    both.wait()
    return pool.submit(str, 1).result()
futures = [pool.submit(task) for _ in range(2)]
print("ready", flush=True)
%s
"""

COROUTINES = """
import asyncio, concurrent.futures, threading
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
pool = concurrent.futures.ThreadPoolExecutor(2)
both = threading.Barrier(2)
def task():
    both.wait()
    return asyncio.run_coroutine_threadsafe(asyncio.sleep(1000000), loop).result()
futures = [pool.submit(task) for _ in range(2)]
print("ready", flush=True)
input()
"""


# A lock whose owner is killed, or sleeps; a process that is joined before its queue is read.
PROCESSES = """
import ctypes, multiprocessing, os, sys, time
mode = sys.argv[1]
lock, queue, held = multiprocessing.Lock(), multiprocessing.Queue(), multiprocessing.Event()
def work():
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG
    if mode == "queue":
        return queue.put("x" * 1000000)
    lock.acquire()
    held.set()
    if mode == "killed":
        os.kill(os.getpid(), 9)
    time.sleep(100000)
process = multiprocessing.get_context("fork").Process(target=work)
process.start()
if mode != "queue":
    held.wait()
if mode == "killed":
    process.join()
print("ready", flush=True)
process.join() if mode == "queue" else lock.acquire()
"""


@functools.lru_cache(maxsize=None)
def classes(name, text):
    """The directory of a program's classes; it is compiled once."""
    directory = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, directory)
    source = os.path.join(directory, name + ".java")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    subprocess.run(["javac", "-cp", ":".join(JARS), "-d", directory, source], check=True,
                   timeout=2 * LIMIT_S)
    return directory


class Pools(EndToEnd):
    def setUp(self):
        # not below TMPDIR, which other users may not be able to read
        self.directory = tempfile.mkdtemp(prefix="stacksnap-pools-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        os.chmod(self.directory, 0o755)

    def path(self, name):
        return os.path.join(self.directory, name)

    def hang(self, pid, status):
        result = self.run_tool("hang", "--for=1s", "--json", pid, status=status)
        self.assert_free(pid)
        return json.loads(result.stdout)

    def add_user(self):
        database = sqlite3.connect(self.path("users"))
        database.execute("create table users (name text, password text)")
        password = base64.b64encode(hashlib.sha1(b"secret").digest()).decode()
        database.execute("insert into users values ('tester', ?)", ("{SHA}" + password,))
        database.commit()
        database.close()
        os.chmod(self.path("users"), 0o644)

    def start_apache(self, backend):
        """Returns its port and the process with the threads."""
        program = shutil.which("apache2", path=os.environ["PATH"] + ":/usr/sbin")
        if not program or os.geteuid() != 0:
            self.skipTest("apache2 is missing (install apache2-bin), or not root")
        with socket.create_server(("127.0.0.1", 0)) as one:
            port = one.getsockname()[1]
        with open(self.path("conf"), "w") as file:
            modules = "\n".join("LoadModule %s_module modules/mod_%s.so" % (module, module)
                                for module in MODULES)
            file.write(APACHE.format(directory=self.directory, port=port, backend=backend,
                                     modules=modules))
        process = subprocess.Popen([program, "-f", self.path("conf"), "-DFOREGROUND"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(process.wait, LIMIT_S)
        self.addCleanup(os.killpg, process.pid, signal.SIGKILL)
        children = "/proc/%d/task/%d/children" % (process.pid, process.pid)

        def serves():
            if process.poll() is not None:
                if "apr_dbd_sqlite3" in read_text(self.path("log")):
                    self.skipTest("no SQLite driver: install libaprutil1-dbd-sqlite3")
                raise AssertionError(read_text(self.path("log"))[-2000:])
            found = read_text(children).split()
            return found and len(task_states(int(found[0]))) == 10
        wait_until(serves, "apache2")
        return port, int(read_text(children).split()[0])

    def test_connections(self):
        """A request has the only connection to the database, and waits for a server that does not
        answer. Three others wait for the connection."""
        self.add_user()
        backend = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(backend.close)
        port, pid = self.start_apache(backend.getsockname()[1])

        def request():
            client = socket.create_connection(("127.0.0.1", port), LIMIT_S)
            self.addCleanup(client.close)
            client.sendall(REQUEST)
        request()
        answer, _ = backend.accept()
        self.addCleanup(answer.close)
        for _ in range(3):
            request()

        def in_pool():
            threads = self.snap(pid).threads
            return sum((thread["wait"] or {}).get("purpose_function") == "apr_reslist_acquire"
                       for thread in threads) == 3
        wait_until(in_pool, "three requests to wait")
        report = self.hang(pid, (4,))
        self.assertEqual(report["verdict"], "blocked", report)
        self.assertEqual(sum(thread["blocked"] for thread in report["threads"]), 3, report)
        lock, = report["application_locks"]
        self.assertEqual((lock["function"], lock["waiting"], lock["suspects_total"]),
                         ("apr_reslist_acquire", 3, 1), lock)
        holder = self.snap(pid).thread(lock["suspects"][0])
        self.assertEqual(holder["wait"]["descriptor"]["remote"]["port"],
                         backend.getsockname()[1], holder["wait"])

    def test_python_threads(self):
        """Each task waits for another one, for which the pool has no thread."""
        target = self.start_command([sys.executable, "-c", PYTHON % "futures[0].result()"])
        wait_until(lambda: all_sleep(target.pid, 3), "all to sleep")
        report = self.hang(target.pid, (4,))
        self.assertEqual((report["verdict"], report["closed"]), ("stuck", True), report)

    def test_python_server(self):
        """The same where the main thread reads input."""
        target = self.start_command([sys.executable, "-c", PYTHON % "input()"])
        wait_until(lambda: all_sleep(target.pid, 3), "all to sleep")
        if not (3, 8) <= sys.version_info < (3, 15):
            self.skipTest("the functions of this python3 are not known")
        report = self.hang(target.pid, (4,))
        self.assertEqual(report["verdict"], "blocked", report)
        lock, = report["application_locks"]
        self.assertEqual(lock["waiting"], 2, lock)
        self.assertRegex(lock["function"], "result$")

    def test_python_coroutines(self):
        """Each task waits for a coroutine, which an event loop executes."""
        target = self.start_command([sys.executable, "-c", COROUTINES])
        wait_until(lambda: all_sleep(target.pid, 4), "all to sleep")
        report = self.hang(target.pid, (0,))
        self.assertEqual((report["verdict"], report["application_locks"]), ("idle", []), report)

    def test_java_connections(self):
        """Two pools of connections to databases, in each of which three tasks want the only one."""
        if not shutil.which("javac") or not all(map(os.path.exists, JARS)):
            self.skipTest("install default-jdk-headless, libhikaricp-java, libh2-java, "
                          "libcommons-dbcp2-java")
        path = ":".join([classes("Connections", CONNECTIONS), *JARS])
        target = self.start_command(["java", "-Xmx64m", "-XX:+UseSerialGC", "-cp", path,
                                     "Connections"])

        def functions():
            return sorted((thread["wait"] or {}).get("purpose_function") or "" for thread in
                          self.snap(target.pid, status=(0, 1)).threads
                          if (thread["wait"] or {}).get("purpose") == "lock")

        expected = ["com.zaxxer.hikari.util.ConcurrentBag.borrow",
                    "org.apache.commons.pool2.impl.GenericObjectPool.borrowObject"]
        wait_until(lambda: functions() == sorted(2 * expected), "four tasks to wait")
        report = self.hang(target.pid, (4,))
        self.assertEqual(report["verdict"], "blocked", report)
        self.assertEqual([(lock["function"], lock["waiting"]) for lock in
                          report["application_locks"]], [(name, 2) for name in expected], report)
        for lock in report["application_locks"]:  # the two that have a connection
            self.assertEqual(lock["common_function"], "Connections.serve", lock)
            self.assertEqual(lock["suspects_total"], 2, lock)

    def start_java(self, mode, *options):
        if not shutil.which("javac"):
            self.skipTest("no JDK: install default-jdk-headless")
        return self.start_command(["java", "-Xmx64m", "-XX:+UseSerialGC", *options, "-cp",
                                   classes("Waits", JAVA), "Waits", mode])

    libjvm_has_symbols = None

    def has_symbols(self, pid):
        """Whether functions have names that libjvm does not export: its own thread is in such
        ones, whatever the program does."""
        if Pools.libjvm_has_symbols is None:
            Pools.libjvm_has_symbols = self.names_functions_of_libjvm(pid)
        return Pools.libjvm_has_symbols

    def names_functions_of_libjvm(self, pid):
        snapshot = self.snap(pid, status=(0, 1))
        return any(frame["symbol"] and "libjvm" in snapshot.module(frame)["path"]
                   for thread in snapshot.threads if thread["name"] == "VM Thread"
                   for frame in snapshot.frames(thread) if snapshot.module(frame))

    def count_waiting(self, pid, function):
        """How many frames are of that function."""
        return sum(function in (frame["symbol"] or "")
                   for thread in self.snap(pid, status=(0, 1)).threads
                   for frame in thread["frames"])

    def test_java_closed(self):
        """Two threads deadlock, and the main thread waits for one of them; tasks of a pool wait for
        tasks: each thread of the program waits for another."""
        for mode in ("join", "pool"):
            with self.subTest(mode):
                target = self.start_java(mode)
                if not self.has_symbols(target.pid):
                    self.skipTest("this libjvm has no symbols")
                if mode == "pool":
                    wait_until(lambda pid=target.pid: self.count_waiting(
                        pid, "FutureTask.get") == 3, "all threads to wait")
                report = self.hang(target.pid, (3,) if mode == "join" else (4,))
                self.assertEqual((report["verdict"], report["closed"]),
                                 ("deadlock" if mode == "join" else "stuck", True), report)
                if mode == "join":
                    stuck = {thread["name"] for thread in report["threads"] if thread["stuck"]}
                    self.assertEqual(stuck, {"main", "java-ab", "java-ba"}, report)
                target.kill()

    def test_java_signals(self):
        """The main thread waits for a latch: nobody counts it down, or a shutdown hook may."""
        for mode, verdict in (("latch", "stuck"), ("hook", "idle")):
            with self.subTest(mode):
                target = self.start_java(mode)
                if not self.has_symbols(target.pid):
                    self.skipTest("this libjvm has no symbols")
                wait_until(lambda pid=target.pid: self.count_waiting(
                    pid, "CountDownLatch.await"), "the main thread to wait")
                report = self.hang(target.pid, (4 if verdict == "stuck" else 0,))
                self.assertEqual(report["closed"], verdict == "stuck", report)
                target.kill()

    def test_python_processes(self):
        """What other processes could end: they are gone, wait for this one, or sleep."""
        for mode, status in (("killed", 4), ("queue", 4), ("sleep", 0)):
            with self.subTest(mode):
                target = self.start_command([sys.executable, "-c", PROCESSES, mode])
                wait_until(lambda pid=target.pid: all_sleep(pid, 1), "it to sleep")
                report = self.hang(target.pid, (status,))
                self.assertEqual(report["closed"], mode == "killed", report)
                wait = self.snap(target.pid, status=(0, 1)).threads[0]["wait"]
                self.assertEqual(wait.get("owner_unknown") == "alone", mode == "killed", wait)
                target.kill()

    def test_java_tasks(self):
        """The main thread reads input. All threads of a pool wait for the results of tasks; not so
        if one of them is free, or if events complete the results."""
        for mode, count in (("tasks", 2), ("spare", 0), ("events", 0)):
            with self.subTest(mode):
                target = self.start_java(mode)
                if not self.has_symbols(target.pid):
                    self.skipTest("this libjvm has no symbols")
                name = "CompletableFuture.get" if mode == "events" else "FutureTask.get"
                wait_until(lambda pid=target.pid, name=name: self.count_waiting(pid, name) == 2,
                           "both tasks to wait")
                report = self.hang(target.pid, (4 if count else 0,))
                self.assertIn(report["verdict"], ("blocked",) if count else ("idle", "moving"),
                              report)
                blocked = {thread["name"] for thread in report["threads"] if thread["blocked"]}
                self.assertEqual(len(blocked), count, report)
                self.assertEqual([(lock["function"], lock["waiting"])
                                  for lock in report["application_locks"]],
                                 [("java.util.concurrent.FutureTask.get", 2)][:count])
                target.kill()

    def test_java_lock(self):
        """The main thread reads input. The locks of the others have owners."""
        target = self.start_java("input")
        if not self.has_symbols(target.pid):
            self.skipTest("this libjvm has no symbols")
        report = self.hang(target.pid, (3,))
        self.assertEqual(report["verdict"], "deadlock", report)
        stuck = {thread["name"] for thread in report["threads"] if thread["stuck"]}
        self.assertEqual(stuck, {"java-ab", "java-ba"}, report)

    def test_java_waiters(self):
        """Many threads wait for one lock, whose owner is the last thread: it is not searched for each."""
        target = self.start_java("many")
        if not self.has_symbols(target.pid):
            self.skipTest("this libjvm has no symbols")
        snapshot = self.snap(target.pid, status=(0, 1))
        owner, = [thread["tid"] for thread in snapshot.threads if thread["name"] == "java-owner"]
        owners = [(thread["wait"] or {}).get("owner_tid") for thread in snapshot.threads]
        self.assertEqual(owners.count(owner), 200, owners)


if __name__ == "__main__":
    main()
