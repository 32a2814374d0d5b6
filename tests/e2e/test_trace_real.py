"""stacksnap trace on programs from Debian: redis, counted by bpftrace, too, and the probes that
PostgreSQL's authors have placed (USDT)."""

# ctest: real release-only

import glob
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import unittest

import tracefs
from harness import EndToEnd, LIMIT_S, STACKSNAP, read_text, wait_until

QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL,
         "stderr": subprocess.DEVNULL}


class RealTraces(EndToEnd):
    def setUp(self):
        if not tracefs.mount():
            self.skipTest("needs root, and tracefs with uprobe_events")
        # not below TMPDIR, which other users may not be able to read
        self.directory = tempfile.mkdtemp(prefix="stacksnap-trace-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def observe(self, name, command, begins):
        """Starts a program that observes; returns it and its output when it has begun."""
        path = os.path.join(self.directory, name)
        with open(path, "wb") as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_until(lambda: begins in read_text(path) or process.poll() is not None, name)
        return process, path

    def trace(self, pid, *arguments):
        return self.observe("trace", [STACKSNAP, "trace", str(pid), "-f", "json", *arguments],
                            '"begin"')

    def end(self, process, path):
        process.send_signal(signal.SIGINT)
        process.wait(LIMIT_S)
        return read_text(path)

    def test_redis_and_bpftrace(self):
        for program in "redis-server", "redis-cli", "bpftrace":
            if not shutil.which(program):
                self.skipTest(program + " is missing")
        path = os.path.join(self.directory, "socket")
        server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", path,
                                   "--save", "", "--dir", self.directory], **QUIET)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        wait_until(lambda: os.path.exists(path), "redis-server")
        with open("/proc/%d/maps" % server.pid, encoding="latin-1") as maps:
            libc = next(line.split()[-1] for line in maps if "/libc.so.6" in line)
        bpftrace = self.observe("bpftrace", [
            "bpftrace", "-p", str(server.pid), "-e",
            'uprobe:%s:accept4 { printf("%%llu pid %%d tid %%d cpu %%d\\n", nsecs, pid, tid, cpu); } ' % libc +
            'BEGIN { printf("begun\\n"); }'], "begun")
        if bpftrace[0].poll() is not None:
            self.skipTest(read_text(bpftrace[1]))
        trace = self.trace(server.pid, "-p", "libc:accept4", "--stack")

        def ping():
            subprocess.run(["redis-cli", "-s", path, "ping"], check=True, timeout=LIMIT_S,
                           **QUIET)

        def times():
            return [int(line.split()[0]) for line in read_text(bpftrace[1]).splitlines() if line[:1].isdigit()]

        # It says that it has begun before it places its probe.
        wait_until(lambda: ping() or times(), "a hit that bpftrace sees")
        for _ in range(20):
            ping()
        events = [json.loads(line) for line in self.end(*trace).splitlines()]
        self.end(*bpftrace)
        hits = [event for event in events if event["event"] == "hit"]
        self.assertEqual((events[-1]["hits"], events[-1]["lost"]), (len(hits), 0), events[-1])
        found = [hit["monotonic_ns"] for hit in hits]
        count = min(len(times()), len(found))
        self.assertGreaterEqual(count, 40)  # two for each of the last
        found, expected = found[-count:], times()[-count:]
        # Both see a hit before the next one.
        for mine, other in (found, expected), (expected, found):
            self.assertTrue(all(time < later for time, later in zip(mine, other[1:])),
                            (found, expected, read_text(bpftrace[1]), events[-1]))
        # Stripped, but unwound to the beginning.
        stacks = [event for event in events if event["event"] == "stack"]
        self.assertEqual({stack["frames"][0]["symbol"] for stack in stacks}, {"accept4"})
        self.assertEqual({stack["end"] for stack in stacks}, {"root"}, stacks)
        self.assertIn("main", {frame["symbol"] or "main" for frame in stacks[0]["frames"]})

    def test_postgresql(self):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin")) + sorted(
            glob.glob("/usr/libexec/postgresql*"))
        if not found or not os.path.exists(os.path.join(found[-1], "postgres")):
            self.skipTest("PostgreSQL is missing: install postgresql")
        nobody = pwd.getpwnam("nobody")  # it refuses to run as root
        user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [], "cwd": "/"}
        os.chown(self.directory, nobody.pw_uid, nobody.pw_gid)
        data = os.path.join(self.directory, "data")
        subprocess.run([os.path.join(found[-1], "initdb"), "-D", data, "-U", "tester", "-A",
                        "trust", "--no-sync"], check=True, timeout=2 * LIMIT_S, **QUIET, **user)
        server = subprocess.Popen([os.path.join(found[-1], "postgres"), "-D", data, "-k",
                                   self.directory, "-F", "-c", "listen_addresses="], **QUIET,
                                  **user)
        self.addCleanup(server.wait, LIMIT_S)
        self.addCleanup(server.send_signal, signal.SIGQUIT)  # ends its children, too
        command = [os.path.join(found[-1], "psql"), "-h", self.directory, "-U", "tester", "-d",
                   "postgres", "-X", "-q", "-At"]
        wait_until(lambda: subprocess.run(command + ["-c", "select 1"], **QUIET).returncode == 0,
                   "PostgreSQL")
        client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True)
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        self.addCleanup(client.stdin.close)
        self.addCleanup(client.stdout.close)

        def ask(query):
            client.stdin.write(query + ";\n")
            client.stdin.flush()
            return client.stdout.readline().strip()

        pid = int(ask("select pg_backend_pid()"))
        listed = self.run_tool("trace", pid, "--list", "-p", "postgresql:query__start",
                               status=(0, 2))
        if listed.returncode:
            self.skipTest("this PostgreSQL has no probes: " + listed.stderr.decode())
        self.assertIn("[usdt]", listed.stdout.decode())
        trace = self.trace(pid, "-p", "postgresql:query__start", "postgresql:query__done")
        for number in range(7):
            self.assertEqual(ask("select %d" % number), str(number))
        events = [json.loads(line) for line in self.end(*trace).splitlines()]
        counts = {probe["function"]: probe["hits"] for probe in events[-1]["probes"]}
        self.assertEqual(counts, {"postgresql:query__start": 7, "postgresql:query__done": 7},
                         events[-1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
