"""Servers of databases with sessions that wait for each other, and SQLite."""

import fcntl
import glob
import os
import pwd
import shutil
import time

from cases import ALARM, PYTHON, SCRATCH, Unavailable, hang, wait_until
from mariadb import Connection

FAMILY = "databases"


def installed(lab):
    """The directory of an empty database, made once."""
    template = os.path.join(SCRATCH, "mariadb")
    lock = os.open(SCRATCH, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    if not os.path.exists(template):
        lab.command("mariadb-install-db", "--no-defaults", "--datadir=" + template + ".new", "--user=root",
                    "--tmpdir=" + lab.directory, "--auth-root-authentication-method=normal", "--skip-test-db",
                    "--force")
        os.rename(template + ".new", template)
    os.close(lock)
    return template


class MariaDb:
    """A server, and connections that wait; the database d has a table t with the rows 1 to 3."""

    def __init__(self, lab, *options):
        self.data, self.socket = lab.path("data"), lab.path("socket")
        common = ["--no-defaults", "--datadir=" + self.data, "--user=root"]
        shutil.copytree(installed(lab), self.data)
        self.process = lab.run("mariadbd", *common, "--skip-networking", "--tmpdir=" + lab.directory, "--skip-grant-tables",
                               "--socket=" + self.socket, "--innodb-buffer-pool-size=16M",
                               "--innodb-lock-wait-timeout=100000", *options, ready=None)
        self.lab = lab
        wait_until(self.answers, "mariadbd")
        self.asker = self.connect()
        self.do(self.asker, "create database d", "create table d.t (i int primary key, j int) "
                "engine=innodb", "insert into d.t values (1, 1), (2, 2), (3, 3)")

    def answers(self):
        if self.process.poll() is not None:
            raise Unavailable("mariadbd ended")
        try:
            Connection(self.socket).socket.close()
        except OSError:
            return False
        return True

    def connect(self):
        connection = Connection(self.socket)
        self.lab.keep.append(connection)
        return connection

    def do(self, connection, *texts):
        for text in texts:
            connection.query(text)
            connection.done()

    def wait_for(self, count):
        wait_until(lambda: int(self.asker.rows(
            "select count(*) from information_schema.processlist where command = 'Query' and "
            "time_ms > 200 and id <> connection_id()")[0][0]) >= count, "%d queries to wait" % count)


def maria(title, truth, sessions, waits, expect, options=(), **more):
    """sessions: the statements of each connection; the last one of the last `waits` of them waits."""
    def start(lab):
        server = MariaDb(lab, *options)
        pending = []
        for number, texts in enumerate(sessions):
            connection = server.connect()
            last = number >= len(sessions) - waits
            server.do(connection, *(texts[:-1] if last else texts))
            if last:
                pending.append((connection, texts[-1]))
        for connection, text in pending:
            connection.query(text)
            time.sleep(0.1)
        server.wait_for(waits)
        return server.process
    hang(FAMILY, "MariaDB: " + title, truth, start, expect, still=False, **more)


maria("a row that an idle transaction has changed", "a query waits for a row lock of a connection without a query",
      [["begin", "update d.t set j = 5 where i = 1"], ["update d.t set j = 6 where i = 1"]], 1,
      ["row lock|ha_index_read_map", "1 thread", "held by|client", "do_command"], alarm=ALARM)
maria("an ALTER TABLE behind an idle transaction", "ALTER waits for a metadata lock of an idle transaction, and a SELECT behind it",
      [["begin", "update d.t set j = 5 where i = 1"], ["alter table d.t add k int"], ["select * from d.t"]], 2,
      ["metadata lock|MDL", "2 threads", "held by|client"], alarm=ALARM)
maria("two transactions in opposite order, without detection", "two queries wait for each other's row locks",
      [["begin", "update d.t set j = 5 where i = 1", "update d.t set j = 5 where i = 2"],
       ["begin", "update d.t set j = 5 where i = 2", "update d.t set j = 5 where i = 1"]], 2,
      ["row lock|ha_index_read_map", "2 threads", "each other|each may hold|one of these|one of the"], alarm=ALARM,
      options=("--innodb-deadlock-detect=OFF",))
maria("FLUSH TABLES WITH READ LOCK", "an INSERT waits for the global read lock of an idle connection",
      [["flush tables with read lock"], ["insert into d.t values (9, 9)"]], 1,
      ["metadata lock|MDL|global read lock", "1 thread", "held by|client"], alarm=ALARM)
maria("LOCK TABLES", "a SELECT waits for a table that an idle connection has locked for writing",
      [["lock tables d.t write"], ["select * from d.t"]], 1,
      ["metadata lock|MDL|table lock", "1 thread", "held by|client"], alarm=ALARM)
maria("a lock by GET_LOCK", "a query waits in GET_LOCK for a lock of an idle connection",
      [["do get_lock('x', 100000)"], ["do get_lock('x', 100000)"]], 1,
      ["GET_LOCK|[Uu]ser.level|MDL|metadata", "1 thread", "held by|client"], alarm=ALARM)
maria("DROP TABLE behind a long query", "DROP waits for the query that sleeps in the table, and a SELECT for the DROP",
      [["do 0"], ["select sleep(100000) from d.t"], ["drop table d.t"], ["select * from d.t"]], 3,
      ["metadata lock|MDL", "2 threads", "held by", "Item_func_sleep|sleep"], alarm=ALARM)


class Postgres:
    def __init__(self, lab, *options):
        path = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not path:
            raise Unavailable("postgresql")
        self.bin, self.lab = path[-1], lab
        nobody = pwd.getpwnam("nobody")
        os.chown(lab.directory, nobody.pw_uid, nobody.pw_gid)
        self.user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
        lab.command(self.bin + "/initdb", "-D", lab.path("data"), "-U", "tester", "-A", "trust", "--no-sync",
                    cwd="/", **self.user)
        self.process = lab.run(self.bin + "/postgres", "-D", lab.path("data"), "-k", lab.directory, "-F", "-c",
                               "listen_addresses=", "-c", "deadlock_timeout=1h", *options, ready="ready to accept",
                               **self.user)
        self.ask("create table t (i int primary key, j int); insert into t values (1, 1), (2, 2)")

    def ask(self, text):
        return self.lab.command(self.bin + "/psql", "-h", self.lab.directory, "-U", "tester", "-d", "postgres", "-XqAt",
                                "-c", text).strip()

    def session(self, text):
        """A client whose last statement may wait."""
        client = self.lab.run(self.bin + "/psql", "-h", self.lab.directory, "-U", "tester", "-d", "postgres", "-XqAt",
                              ready=None)
        client.stdin.write(("\\echo session\n" + text + "\n").encode())
        client.stdin.flush()
        self.lab.await_text(client, "^session")
        return client


def postgres(title, truth, sessions, expect, options=(), waiting=1, whole=False, **more):
    """Each session is a list of statements that may wait; the first backend that waits for a lock is
    looked at."""
    def start(lab):
        server = Postgres(lab, *options)
        for text in sessions:
            server.session(text)
            time.sleep(0.3)
        query = ("select pid from pg_stat_activity where wait_event_type in ('Lock', 'IPC') and backend_type = "
                 "'client backend' order by pid")
        wait_until(lambda: len(server.ask(query).split()) >= waiting, "a lock")
        waiter = int(server.ask(query).split()[0])
        holder = server.ask("select unnest(pg_blocking_pids(%d)) limit 1" % waiter)
        lab.facts.update(holder=holder or "postgres", waiter=waiter)
        return server.process.pid if whole else waiter
    hang(FAMILY, "PostgreSQL: " + title, truth, start, expect, **more)


LOCKS = ["LockAcquire|ProcSleep|lock of PostgreSQL|application lock", "lock"]
HELD = [*LOCKS, "{holder}"]
postgres("a row that an idle transaction has changed", "the backend waits in ProcSleep for the transaction of another one",
         ["begin; update t set j = 2 where i = 1;", "update t set j = 3 where i = 1;"], HELD, alarm=ALARM)
postgres("two transactions in opposite order, with a late detection", "two backends wait for each other's rows",
         ["begin; update t set j = 2 where i = 1; select pg_sleep(1); update t set j = 2 where i = 2;",
          "begin; update t set j = 2 where i = 2; update t set j = 2 where i = 1;"], HELD, waiting=2, alarm=ALARM)
postgres("an advisory lock", "the backend waits for an advisory lock of an idle session",
         ["select pg_advisory_lock(5);", "select pg_advisory_lock(5);"], HELD, alarm=ALARM)
postgres("an ALTER TABLE behind an idle transaction", "ALTER waits for a relation lock",
         ["begin; select * from t;", "alter table t add k int;"], HELD, alarm=ALARM)
postgres("a SELECT behind an ALTER TABLE that waits", "the SELECT waits behind the ALTER",
         ["begin; select * from t;", "alter table t add k int;", "select * from t;"], HELD, waiting=2, alarm=ALARM)
postgres("CREATE INDEX CONCURRENTLY beside an old transaction", "it waits for the old transaction to end",
         ["begin; update t set j = 2 where i = 1;", "create index concurrently x on t (j);"],
         ["LockAcquire|ProcSleep|WaitForLockers|VirtualXactLock", "lock"], alarm=ALARM)
postgres("a commit without its synchronous standby", "the backend waits in SyncRepWaitForLSN for a standby that does not exist",
         ["alter system set synchronous_standby_names = 'x'; select pg_reload_conf();", "insert into t values (7, 7);"],
         ["SyncRep", "standby|replication|latch|epoll"])
postgres("the postmaster of backends that wait", "a child of the server waits for a row",
         ["begin; update t set j = 2 where i = 1;", "update t set j = 3 where i = 1;"], ["{waiter}", "lock"], whole=True)


def sqlite(title, truth, source, expect, **options):
    def start(lab):
        return lab.run(PYTHON, "-u", lab.path("program.py", """
import sqlite3, os, threading, signal, time
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "db")
def ready(): print("ready", flush=True)
def connect(): return sqlite3.connect(path, timeout=100000, isolation_level=None, check_same_thread=False)
c = connect(); c.execute("create table t (i)")
""" + source))
    hang(FAMILY, "SQLite: " + title, truth, start, expect, **options)


sqlite("a write behind another process's transaction", "main waits in save, in the busy handler; the child has begun immediate", """
r, w = os.pipe(); p = os.fork()
if not p:
    d = connect(); d.execute("begin immediate"); os.write(w, b"x"); signal.pause()
def save(): c.execute("insert into t values (1)")
os.read(r, 1); print("fact child", p); ready(); save()
""", ["save", "sqlite|database", "busy|lock", "{child}"], alarm=ALARM, still=False)
sqlite("a write behind another connection of the process", "worker waits in save in the busy handler; main has a transaction and joins worker", """
d = connect(); d.execute("begin exclusive")
def save(): c.execute("insert into t values (1)")
t = threading.Thread(target=save, name="worker"); t.start(); ready(); t.join()
""", ["save", "sqlite|database", "busy|lock", "join"], alarm=ALARM, still=False)


def sqlite_shell(lab):
    database = lab.path("db")
    lab.command("sqlite3", database, "create table t (i)")
    holder = lab.run("stdbuf", "-oL", "sqlite3", database, ready=None)
    holder.stdin.write(b"begin exclusive;\n.print ready\n")
    holder.stdin.flush()
    lab.await_text(holder, "ready")
    lab.facts["holder"] = holder.pid
    return lab.run("stdbuf", "-oL", "sqlite3", "-cmd", ".timeout 100000000", "-cmd", ".print ready", database, "insert into t values (1)")


hang(FAMILY, "SQLite: the shell behind another shell", "sqlite3 sleeps in its busy handler for a lock of the other sqlite3", sqlite_shell,
     ["sqlite3", "busy|lock", "{holder}"], alarm=ALARM, still=False)


def redis(lab, *clients):
    path = lab.path("redis")
    server = lab.run("redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", lab.directory,
                     ready="Ready to accept|ready to accept")
    found = [lab.run("redis-cli", "-s", path, *words, ready=None) for words in clients]
    time.sleep(0.3)
    return server, found


hang(FAMILY, "redis: a client that pops from an empty list", "redis-cli waits for an answer of redis-server",
     lambda lab: redis(lab, ("blpop", "list", "0"))[1][0], ["redis-cli|redisGetReply|read|poll", "redis-server|redis\\b|socket"])
hang(FAMILY, "redis: an endless script", "the main thread of the server runs Lua", lambda lab: redis(lab, ("eval", "while true do end", "0"))[0],
     ["busy|running", "lua|script|eval"], still=False)
hang(FAMILY, "redis: DEBUG SLEEP beside another client", "the main thread of the server sleeps in a command",
     lambda lab: redis(lab, ("debug", "sleep", "100000"), ("ping",))[0], ["debugCommand|debug", "sleep"])
