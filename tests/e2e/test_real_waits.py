"""The waits of real programs, compared with what the programs report: MariaDB's process list,
PostgreSQL's pg_locks, jstack; and idle servers. (python3's locks are in test_hang.py.)"""
# ctest: real release-only

import glob
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile

from harness import EndToEnd, LIMIT_S, main, read_text, task_states, wait_until
from mariadb import Connection, MariaDbServer

FOR = "--for=300ms"


class RealWaits(EndToEnd):
    def hang(self, pid, time=FOR, status=(0,)):
        result = self.run_tool("hang", time, "--json", pid, status=status)
        self.assert_free(pid)
        return json.loads(result.stdout)

    def assert_no_claim(self, snapshot):
        """The output names no owner of a lock, and no cycle."""
        self.assertEqual(snapshot.data["deadlocks"], [])
        self.assertEqual(snapshot.data["blockers"], [])
        for thread in snapshot.threads:
            if thread["wait"] and thread["wait"]["kind"] != "join":
                self.assertIsNone(thread["wait"]["owner_tid"], thread["wait"])


def names(thread):
    return " ".join(frame["symbol"] or "" for frame in thread["frames"])


class MariaDb(MariaDbServer, RealWaits):
    def connect(self):
        connection = Connection(self.path)
        self.addCleanup(connection.socket.close)
        return connection

    def states(self, connection):
        """State of each thread that serves a connection."""
        return {int(tid): state for tid, state in connection.rows(
            "select tid, ifnull(state, '') from information_schema.processlist")}

    def test_metadata_locks(self):
        """One transaction has read a table, one waits to alter it, one waits behind that."""
        process = self.start_server()
        reader, changer, behind, sleeper, asker = (self.connect() for _ in range(5))
        for text in ("create database d", "create table d.t (i int)", "begin"):
            reader.query(text)
            reader.done()
        self.assertEqual(reader.rows("select count(*) from d.t"), [["0"]])
        changer.query("alter table d.t add column j int")
        waits = "Waiting for table metadata lock"
        wait_until(lambda: waits in self.states(asker).values(), "the first to wait")
        behind.query("select * from d.t")
        sleeper.query("select sleep(100000)")
        wait_until(lambda: sorted(self.states(asker).values())[-3:] ==
                   ["User sleep", waits, waits], "all three to wait")
        states = self.states(asker)
        snapshot = self.snap(process.pid, mode="stop")
        threads = {thread["tid"]: thread for thread in snapshot.threads}
        for tid, state in states.items():
            wait = threads[tid]["wait"]
            if state in (waits, "User sleep"):
                # the server builds this lock on a condition variable, which has no owner
                self.assertEqual(wait["kind"], "condvar", wait)
                self.assertTrue(wait["timed"], wait)
                self.assertTrue(0 < wait["left_ns"] <= 86400 * 10 ** 9, wait)
                inside = "MDL_wait" if state == waits else "Item_func_sleep"
                if "do_command" in names(threads[tid]):  # a server with symbols
                    self.assertIn(inside, names(threads[tid]))
            else:
                self.assertIn(wait["kind"], ("poll", "receive", "read"), wait)
        self.assert_no_claim(snapshot)
        report = self.hang(process.pid, "--for=1s", status=(4,))
        self.assertEqual(report["verdict"], "blocked")
        self.assertEqual({thread["tid"] for thread in report["threads"] if thread["blocked"]},
                         {tid for tid, state in states.items() if state == waits})
        lock, = report["application_locks"]
        self.assertEqual((lock["function"], lock["waiting"]), ("MDL_context::acquire_lock", 2))
        # of the other connections, the one that sleeps is nearest to those that wait
        self.assertEqual(lock["suspects"], [tid for tid, state in states.items()
                                            if state == "User sleep"])
        # the one that has read the table holds the lock, and waits for its client
        holder, = reader.rows("select tid from information_schema.processlist "
                              "where id = connection_id()")
        self.assertIn(int(holder[0]), lock["client_suspects"], lock)
        # the example of the README: thirty queries behind the ALTER
        more = [self.connect() for _ in range(29)]
        for connection in more:
            connection.query("select * from d.t")
        wait_until(lambda: list(self.states(asker).values()).count(waits) == 31, "all to wait")
        text = self.run_tool("hang", FOR, process.pid, status=(4,)).stdout.decode()
        self.assertRegex(text, r"^mariadbd, pid \d+: blocked\n")
        self.assertRegex(text, r"\n31 threads wait for an application lock: "
                         r"MDL_context::acquire_lock \(metadata lock; .*\)\n"
                         r"  probably held by \d+ \(\w+\), the only other thread in .*\n(    .*\n)+"
                         r"  or by one of 2 threads in do_command.* that wait for their clients: "
                         r"\d+ \(\w+\), \d+ \(\w+\)\n")
        self.assertRegex(text, r"\n31 threads blocked: ")

    def test_row_lock(self):
        """Five updates of a row that a transaction without a statement has changed."""
        process = self.start_server()
        holder, asker = self.connect(), self.connect()
        for text in ("create database d", "create table d.t (i int primary key) engine=innodb",
                     "insert into d.t values (1)", "begin", "update d.t set i = 2"):
            holder.query(text)
            holder.done()
        for _ in range(5):
            self.connect().query("update d.t set i = 3 where i = 1 or i = 2")
        # not innodb_trx: it is a cache that frequent reads keep from being renewed
        waits = "show global status like 'Innodb_row_lock_current_waits'"
        wait_until(lambda: asker.rows(waits)[0][1] == "5", "five waits")
        own, = asker.rows("select tid from information_schema.processlist "
                          "where id = connection_id()")
        report = self.hang(process.pid, "--for=1s", status=(4,))
        self.assertEqual(report["verdict"], "blocked")
        self.assertEqual(sum(thread["blocked"] for thread in report["threads"]), 5)
        lock, = report["application_locks"]
        self.assertEqual((lock["waiting"], lock["suspects_total"]), (5, 2))
        self.assertIn(int(own[0]), lock["suspects"])
        text = self.run_tool("hang", FOR, process.pid, status=(4,)).stdout.decode()
        self.assertRegex(text, r"\n5 threads wait for an application lock: \S+ \(.*row lock")
        self.assertRegex(text, r"\n  probably held by one of 2 other threads in do_command")

    def test_first_screen(self):
        """The text begins with those that wait for a row; idle connections are one line."""
        process = self.start_server()
        holder = self.connect()
        for text in ("create database d", "create table d.r (i int primary key, j int) "
                     "engine=innodb", "insert into d.r values (1, 1)", "begin",
                     "update d.r set j = 2"):
            holder.query(text)
            holder.done()
        waiters = [self.connect() for _ in range(5)]
        idle = [self.connect() for _ in range(10)]
        for waiter in waiters:
            waiter.query("update d.r set j = 3 where i = 1")
        wait_until(lambda: sum(state == "Updating" for state in
                               self.states(idle[0]).values()) == 5, "the row lock")
        text = self.run_tool(process.pid).stdout.decode()
        if "ha_index_read_map" not in text:
            self.skipTest("this server has no symbols")
        screen = text.splitlines()[:24]
        groups = [line for line in screen if re.match(r"(main|\d+) thread", line)
                  and ": mariadbd" in line]
        self.assertRegex(groups[0], r"^5 threads, sleeping")
        at = screen.index(groups[0])
        self.assertRegex(screen[at + 1], r"^  wait for an application lock: "
                         r"handler::ha_index_read_map, through condition variable")
        self.assertRegex(text, r"\n\d+ idle threads in \d+ groups; -a shows them\n")
        self.assertNotIn("vio_io_wait", text)
        self.assertIn("vio_io_wait", self.run_tool("-a", process.pid).stdout.decode())

    def test_stopped(self):
        process = self.start_server()
        os.kill(process.pid, signal.SIGSTOP)
        wait_until(lambda: set(task_states(process.pid).values()) == {"T"}, "the stop")
        result = self.run_tool("hang", FOR, "--json", process.pid, status=(4,))
        self.assertEqual(json.loads(result.stdout)["verdict"], "stuck")
        self.assertEqual(set(task_states(process.pid).values()), {"T"})
        os.kill(process.pid, signal.SIGCONT)


class PostgreSql(RealWaits):
    def setUp(self):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin")) + sorted(
            glob.glob("/usr/libexec/postgresql*"))
        path = os.pathsep.join(found[-1:] + [os.environ["PATH"]])
        self.initdb = shutil.which("initdb", path=path)
        self.postgres = shutil.which("postgres", path=path)
        self.psql = shutil.which("psql", path=path)
        if not (self.initdb and self.postgres and self.psql):
            self.skipTest("PostgreSQL is missing: install postgresql")
        # not below TMPDIR, which other users may not be able to read
        self.directory = tempfile.mkdtemp(prefix="stacksnap-postgres-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.user = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            nobody = pwd.getpwnam("nobody")
            self.user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self.directory, nobody.pw_uid, nobody.pw_gid)

    def start_server(self):
        data = os.path.join(self.directory, "data")
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL,
                 "stderr": subprocess.DEVNULL, "cwd": "/", **self.user}
        subprocess.run([self.initdb, "-D", data, "-U", "tester", "-A", "trust", "--no-sync"],
                       check=True, timeout=2 * LIMIT_S, **quiet)
        process = subprocess.Popen([self.postgres, "-D", data, "-k", self.directory, "-F",
                                    "-c", "listen_addresses="], **quiet)
        self.addCleanup(process.wait, LIMIT_S)
        self.addCleanup(process.send_signal, signal.SIGQUIT)  # ends its children, too
        wait_until(lambda: self.ask("select 1", status=None) == "1", "PostgreSQL")
        return process

    def command(self, *words):
        return [self.psql, "-h", self.directory, "-U", "tester", "-d", "postgres", "-X",
                "-q", "-At", *words]

    def ask(self, query, status=0):
        result = subprocess.run(self.command("-c", query), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                timeout=LIMIT_S)
        if status is not None:
            self.assertEqual(result.returncode, status)
        return result.stdout.decode().strip()

    def session(self, text):
        client = subprocess.Popen(self.command(), stdin=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        self.addCleanup(client.stdin.close)
        client.stdin.write(text.encode())
        client.stdin.flush()
        return client

    def test_row_lock(self):
        """PostgreSQL keeps its locks in its own memory and waits in epoll: a function on the
        stack tells that it waits for a lock, and its memory who holds it."""
        server = self.start_server()
        self.ask("create table t (i int); insert into t values (1)")
        self.session("begin; update t set i = 2;\n")
        wait_until(lambda: self.ask("select count(*) from pg_stat_activity where "
                                    "state = 'idle in transaction'") == "1", "the holder")
        self.session("update t set i = 3;\n")
        blocked = "select pid, pg_blocking_pids(pid) from pg_locks where not granted"
        wait_until(lambda: self.ask(blocked), "the row lock")
        match = re.fullmatch(r"(\d+)\|\{(\d+)\}", self.ask(blocked))
        waiter, holder = (int(word) for word in match.groups())
        for pid in (waiter, holder, server.pid):
            snapshot = self.snap(pid, mode="stop")
            self.assert_no_claim(snapshot)
            wait = snapshot.thread(pid)["wait"]
            if pid == waiter:
                self.assertEqual(wait["owner_pid"], holder)
                self.assertRegex(wait["text"], r"ProcSleep, held by %d \(postgres\), through " % holder)
            self.assertIn(wait["kind"], ("epoll", "semaphore", "select", "poll"), wait)
            blocked = pid == waiter
            report = self.hang(pid, "--for=3s", status=(4 if blocked else 0,))
            self.assertEqual(report["verdict"], "blocked" if blocked else "idle")
            self.assertEqual([lock["function"] for lock in report["application_locks"]],
                             ["ProcSleep"] if blocked else [])
        if "WaitEventSetWait" in names(self.snap(waiter, mode="stop").thread(waiter)):
            self.assertIn("LockAcquire", names(self.snap(waiter, mode="stop").thread(waiter)))


JAVA = """
public class Locks {
    static final Object A = new Object(), B = new Object();
    static final java.util.concurrent.CyclicBarrier both =
        new java.util.concurrent.CyclicBarrier(2);
    static void take(Object x, Object y) {
        synchronized (x) {
            try { both.await(); } catch (Exception e) { throw new Error(e); }
            synchronized (y) { }
        }
    }
    public static void main(String[] words) throws Exception {
        Thread[] threads = { new Thread(() -> take(A, B), "java-ab"),
                             new Thread(() -> take(B, A), "java-ba") };
        for (Thread t : threads)
            t.start();
        for (Thread t : threads)
            while (t.getState() != Thread.State.BLOCKED)
                Thread.sleep(1);
        System.out.println("ready");
        System.in.read();
    }
}
"""


class Java(RealWaits):
    def test_monitors(self):
        """jstack reports the deadlock, and the tool, too, unless a thread wakes just then, as those
        that wait for a monitor do every second."""
        java, jstack = shutil.which("java"), shutil.which("jstack")
        if not java or not jstack:
            self.skipTest("no JDK: install default-jdk-headless")
        with tempfile.TemporaryDirectory() as directory:
            source = os.path.join(directory, "Locks.java")
            with open(source, "w") as file:
                file.write(JAVA)
            target = self.start_command([java, "-XX:+UseSerialGC", "-Xmx64m",
                                         "-XX:TieredStopAtLevel=1", source])
            theirs = subprocess.run([jstack, str(target.pid)], stdout=subprocess.PIPE,
                                    check=True, timeout=LIMIT_S).stdout.decode()
            snapshot = self.snap(target.pid, mode="stop")
            report = self.hang(target.pid, "--for=2s", status=(3, 4))
        self.assertIn("Found one Java-level deadlock", theirs)
        others = {"java-ab": "java-ba", "java-ba": "java-ab"}
        for name, other in others.items():
            self.assertRegex(theirs, r'"%s"[^"]*\n[^"]*BLOCKED \(on object monitor\)' % name)
            thread = snapshot.thread(name)
            if "ObjectMonitor::" not in names(thread):
                self.skipTest("this libjvm has no symbols")
            wait = thread["wait"]
            self.assertEqual((wait["kind"], wait["lock"]), ("mutex", "java-monitor"), wait)
            self.assertIn(wait["owner_tid"], (None, snapshot.thread(other)["tid"]), wait)
        self.assertIn(report["verdict"], ("deadlock", "stuck"), report)
        self.assertEqual(sorted(thread["name"] for thread in report["threads"]
                                if thread["stuck"]), ["java-ab", "java-ba"])


class Idle(RealWaits):
    """Servers without clients."""

    def serve(self, name, socket_path, *words):
        program = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")
        if not program:
            self.skipTest(name + " is missing")
        process = subprocess.Popen([program, *words], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait, LIMIT_S)
        self.addCleanup(process.terminate)
        wait_until(lambda: os.path.exists(socket_path), name)
        return process

    def check(self, pid):
        snapshot = self.snap(pid, mode="stop")
        self.assert_no_claim(snapshot)
        self.assertIn(self.hang(pid)["verdict"], ("idle", "moving"))
        return snapshot

    def test_redis(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "socket")
            server = self.serve("redis-server", path, "--port", "0", "--unixsocket", path,
                                "--save", "", "--dir", directory)
            self.check(server.pid)

    def test_nginx(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "socket")
            config = os.path.join(directory, "nginx.conf")
            with open(config, "w") as file:
                file.write("daemon off; worker_processes 1; pid %s/pid;\n"
                           "error_log /dev/null; events {}\n"
                           "http { access_log off; server { listen unix:%s; } }\n"
                           % (directory, path))
            server = self.serve("nginx", path, "-p", directory, "-c", config)
            children = "/proc/%d/task/%d/children" % (server.pid, server.pid)
            wait_until(lambda: read_text(children), "the worker")
            worker = int(read_text(children).split()[0])
            wait_until(lambda: read_text("/proc/%d/syscall" % worker).startswith("232 "),
                       "the worker to wait in epoll")
            self.check(server.pid)
            wait = self.check(worker).thread(worker)["wait"]
            self.assertEqual(wait["kind"], "epoll")
            watched = [one["descriptor"] for one in wait["descriptor"]["watches"]]
            self.assertIn((path, True), [(one["path"], one["listening"]) for one in watched
                                         if one and one["kind"] == "socket"])

    def test_uwsgi(self):
        """Its threads take turns in accepting: that is no claim about who waits for whom."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "socket")
            server = self.serve("uwsgi", path, "--plugin", "python3", "--http-socket", path, "--threads", "3",
                                "--die-on-term")
            wait_until(lambda: [state for _, state in sorted(task_states(server.pid).items())] == 3 * ["S"],
                       "its threads to sleep")
            data = self.run_tool("--json", server.pid)
            blocker, = json.loads(data.stdout)["blockers"]
            self.assertEqual(blocker["waiting"], 2)
            for arguments in ([server.pid], ["hang", "--for=300ms", server.pid]):
                text = self.run_tool(*arguments).stdout.decode()
                self.assertNotIn(" through 1 lock", text)
                self.assertRegex(text, r"\bwaits? for mutex ")
            self.assertIn(" through 1 lock", self.run_tool("-v", server.pid).stdout.decode())


if __name__ == "__main__":
    main()
