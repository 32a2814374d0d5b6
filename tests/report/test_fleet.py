"""A fleet: 100 hosts, simulated by UTS namespaces, push their rows with curl over TLS and a token to
ClickHouse, and the same files are read by DuckDB; and an MPI job of which one rank is stuck.
Debian packages: clickhouse-server, curl, openssl, openmpi-bin."""
# ctest: real release-only

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import databases

sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests/e2e"))

from harness import STACKSNAP, read_text, wait_until  # noqa: E402

HOSTS = 100
AT_ONCE = 8
RANKS = 8
STUCK = 5
LIMIT_S = 300
HOST = """
hostname "$1" || exit 77
"$STACKSNAP" -f rows --batch=all --label="rank=$2" -o "$1.ndjson" "$3" || exit 1
exec sh ./push "$1.ndjson" token
"""
PUSH = """
exec curl -sS --fail --cacert cert -H "X-ClickHouse-User: writer" -H "X-ClickHouse-Key: $2" \\
    --data-binary @"$1" "https://localhost:$PORT/?query=INSERT+INTO+rows+FORMAT+JSONEachRow"
"""
JOB = """
#include <unistd.h>
extern char ompi_mpi_comm_world[];
int MPI_Init(int *, char ***), MPI_Comm_rank(void *, int *), MPI_Barrier(void *);
__attribute__((noinline)) static void be_stuck(void)
{
	for (;;)
		pause();
}
int main(int argc, char **argv)
{
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(ompi_mpi_comm_world, &rank);
	if (rank == 5)
		be_stuck();
	return MPI_Barrier(ompi_mpi_comm_world);
}
"""


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Fleet(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        os.environ["XDG_CACHE_HOME"] = self.enterContext(tempfile.TemporaryDirectory())

    def path(self, name):
        return os.path.join(self.directory, name)

    def run_shell(self, *words, status=0):
        done = subprocess.run(words, cwd=self.directory, env=self.environment, timeout=LIMIT_S,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual(done.returncode == 0, status == 0, done.stdout.decode())
        return done.stdout.decode()

    @unittest.skipUnless(os.geteuid() == 0, "only root makes hosts")
    @unittest.skipUnless(shutil.which("curl") and shutil.which("openssl"), "no curl or openssl")
    def test_hosts(self):
        port = databases.free_port()
        self.environment = dict(os.environ, PORT=str(port), STACKSNAP=STACKSNAP, no_proxy="*")
        self.run_shell("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key",
                       "-out", "cert", "-days", "2", "-subj", "/CN=localhost",
                       "-addext", "subjectAltName=DNS:localhost")
        os.chmod(self.directory, 0o755)
        server = databases.ClickHouse(self, (port, self.path("cert"), self.path("key"), "token"))
        write(self.path("host"), HOST)
        write(self.path("push"), PUSH)
        target = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        wait_until(lambda: read_text("/proc/%d/syscall" % target.pid)[:1].isdigit(), "it to sleep")
        self.run_shell("sh", "-c", "seq %d | xargs -P %d -I{} unshare -u sh ./host h{} {} %d" %
                       (HOSTS, AT_ONCE, target.pid))
        one = [[str(HOSTS)] * 3]
        query = "SELECT count(*), count(DISTINCT host), count(DISTINCT labels) FROM snapshots"
        self.assertEqual(server.rows(query), one)
        # again, after a lost answer; with a wrong token; to a server that is down; cut
        self.run_shell("sh", "./push", "h7.ndjson", "token")
        self.assertIn("401", self.run_shell("sh", "./push", "h7.ndjson", "wrong", status=22))
        rows = databases.read(self.path("h7.ndjson")).replace("h7", "cut").replace(
            "/%d/" % target.pid, "/1/")
        lines = rows.splitlines(keepends=True)
        write(self.path("cut.ndjson"), "".join(lines[:-1]))
        self.run_shell("sh", "./push", "cut.ndjson", "token")
        write(self.path("middle"), rows[:-20])
        self.run_shell("sh", "./push", "middle", "token", status=22)
        self.environment["PORT"] = str(databases.free_port())
        self.run_shell("sh", "./push", "h7.ndjson", "token", status=7)
        self.assertEqual(server.rows(query), one)
        incomplete = "SELECT host FROM incomplete"
        self.assertEqual(server.rows(incomplete), [["cut"]])
        groups = databases.query_path("groups")
        expected = server.rows(databases.read(groups))
        self.assertEqual([row[:4] for row in expected], [["100", "100", "100", "h1"]])
        self.assertEqual(databases.duckdb(self, self.path("*.ndjson"), [query, incomplete, groups]),
                         [one, [["cut"]], expected])
        # a full disk is an error, and leaves no file that looks complete
        if os.path.exists("/dev/full"):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([STACKSNAP, "-f", "rows", str(target.pid)], stdout=full,
                                      stderr=subprocess.PIPE, timeout=LIMIT_S, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(b"No space left", done.stderr)

    @unittest.skipUnless(shutil.which("mpirun"), "mpirun is missing")
    def test_mpi(self):
        """One command line names the rank that the others wait for."""
        libraries = glob.glob("/usr/lib/*/libmpi.so.40") + glob.glob("/usr/lib*/openmpi/lib/libmpi.so.40")
        if not libraries:
            self.skipTest("no library of Open MPI")
        write(self.path("job.c"), JOB)
        name = "job-%d" % os.getpid()
        subprocess.run([os.environ.get("CC", "cc"), "-g", "-O1", "-o", self.path(name),
                        self.path("job.c"), libraries[0]], check=True, timeout=LIMIT_S)
        job = subprocess.Popen(["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl",
                                "tcp,self", "--mca", "mpi_yield_when_idle", "1",
                                "-n", str(RANKS), self.path(name)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(job.wait)
        self.addCleanup(job.terminate)  # which ends the ranks
        rows = []

        def is_stuck():
            """All ranks but one are in the barrier."""
            done = subprocess.run([STACKSNAP, "--name=^%s$" % name, "-f", "rows",
                                   "--env=OMPI_COMM_WORLD_RANK"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, timeout=LIMIT_S, check=False)
            rows[:] = done.stdout.splitlines(keepends=True)
            names = {}
            for row in map(json.loads, rows):
                if row["table"] == "frames":
                    names[row["frame"]] = row["names"]
            barriers = [row["stack"] for row in map(json.loads, rows) if row["table"] == "stacks"
                        and any("PMPI_Barrier" in names.get(frame, []) for frame in row["frames"])]
            return sum(row["table"] == "threads" and row["stack"] in barriers
                       for row in map(json.loads, rows)) == RANKS - 1
        wait_until(is_stuck, "the ranks to wait", LIMIT_S)
        with open(self.path("job.ndjson"), "wb") as file:
            file.writelines(rows)
        tree, = databases.duckdb(self, self.path("job.ndjson"), [databases.query_path("tree")])
        ranks = {row[2]: json.loads(row[6]) for row in tree if row[1] in ("5", "6")}
        self.assertEqual(ranks["be_stuck"], [str(STUCK)], tree)
        self.assertEqual(ranks["PMPI_Barrier"],
                         [str(rank) for rank in range(RANKS) if rank != STUCK], tree)


if __name__ == "__main__":
    unittest.main(verbosity=2)
