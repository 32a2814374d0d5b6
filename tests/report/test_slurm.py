"""A Slurm job of eight ranks of Open MPI, of which one is stuck: one line with `srun --overlap`
names it, whether mpirun or srun started the ranks. A cluster of one node, in namespaces of its own:
nothing survives the test. Debian packages: slurm-wlm, munge, openmpi-bin, libpmix-dev."""
# ctest: real release-only slow

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests/e2e"))

import databases  # noqa: E402
from harness import STACKSNAP  # noqa: E402
from test_fleet import JOB, RANKS, STUCK, write  # noqa: E402

LIMIT_S = 120
PROGRAMS = "slurmctld slurmd munged srun salloc mpirun runuser unshare".split()
CONFIGURATION = """ClusterName=test
SlurmctldHost=node1(127.0.0.1)
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket={0}/munge/socket
SlurmUser=root
SlurmdUser=root
SlurmctldPort={1}
SlurmdPort={2}
StateSaveLocation={0}/state
SlurmdSpoolDir={0}/spool
SlurmctldPidFile={0}/slurmctld.pid
SlurmdPidFile={0}/slurmd.pid
SlurmctldLogFile={0}/slurmctld.log
SlurmdLogFile={0}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
SlurmdParameters=config_overrides
ReturnToService=2
NodeName=node1 NodeAddr=127.0.0.1 CPUs={3} State=UNKNOWN
PartitionName=main Nodes=node1 Default=YES
"""
# The ranks need a moment: the snapshot is repeated until they are in the barrier.
SCRIPT = """
hostname node1
export SLURM_CONF=$1/slurm.conf
runuser -u munge -- munged --force --socket=$1/munge/socket --key-file=$1/munge/key \\
	--log-file=$1/munge/log --pid-file=$1/munge/pid --seed-file=$1/munge/seed
slurmctld -c
slurmd -N node1
for i in $(seq 100); do sinfo -h -o %t | grep -q idle && break; sleep 0.2; done
export OMPI_MCA_btl=tcp,self OMPI_MCA_mpi_yield_when_idle=1
$5 -n $2 $1/$3 </dev/null >$1/salloc.log 2>&1 &
for i in $(seq 60); do
	srun --overlap --jobid=1 --ntasks=1 "$STACKSNAP" "--name=^$3\\$" -f rows \\
		--env=$6 --env=SLURM_JOB_ID </dev/null >$1/rows.ndjson 2>$1/srun.log
	test "$(grep -c PMPI_Barrier $1/rows.ndjson)" -gt 0 &&
		test "$(grep -c '"table":"snapshots"' $1/rows.ndjson)" = $2 &&
		grep -q be_stuck $1/rows.ndjson && python3 "$4" $1/rows.ndjson $6 && break
	sleep 0.5
done
"""


def ranks(path, variable):
    """{function: ranks that are in it}"""
    names, stacks, labels, found = {}, {}, {}, {"PMPI_Barrier": [], "be_stuck": []}
    threads = []
    with open(path, encoding="ascii") as file:
        for row in map(json.loads, file):
            if row["table"] == "frames":
                names[row["frame"]] = row["names"]
            elif row["table"] == "stacks":
                stacks[row["stack"]] = row["frames"]
            elif row["table"] == "snapshots":
                labels[row["snapshot"]] = dict(one.split("=") for one in row["labels"])
            else:
                threads.append(row)
    for row in threads:
        calls = [name for frame in stacks.get(row["stack"], []) for name in names.get(frame, [])]
        for function, members in found.items():
            if function in calls:
                members.append(int(labels[row["snapshot"]][variable]))
    return {function: sorted(members) for function, members in found.items()}


@unittest.skipUnless(os.geteuid() == 0, "only root makes a cluster")
class Slurm(unittest.TestCase):
    def test_ranks_of_mpirun(self):
        self.check("salloc -n %d mpirun --allow-run-as-root --oversubscribe" % RANKS,
                   "OMPI_COMM_WORLD_RANK")

    def test_ranks_of_srun(self):
        if not (glob.glob("/usr/lib/*/libpmix.so") and
                glob.glob("/usr/lib/*/slurm*/mpi_pmix.so")):
            self.skipTest("missing: PMIx for Slurm")
        self.check("srun --mpi=pmix", "SLURM_PROCID")

    def check(self, launcher, variable):
        path = os.environ["PATH"] + ":/usr/sbin:/sbin"
        missing = [name for name in PROGRAMS if not shutil.which(name, path=path)]
        libraries = glob.glob("/usr/lib/*/libmpi.so.40")
        if missing or not libraries:
            self.skipTest("missing: %s" % (missing or "the library of Open MPI"))
        top = self.enterContext(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        os.chmod(top, 0o755)
        for name in "munge", "state", "spool":
            os.mkdir(os.path.join(top, name))
        key = os.path.join(top, "munge", "key")
        with open(key, "wb") as file:
            file.write(os.urandom(1024))
        os.chmod(key, 0o400)
        for name in os.path.join(top, "munge"), key:
            shutil.chown(name, "munge", "munge")
        write(os.path.join(top, "slurm.conf"),
              CONFIGURATION.format(top, databases.free_port(), databases.free_port(), RANKS))
        write(os.path.join(top, "mpi.conf"), "PMIxCliTmpDirBase=%s\n" % top)
        write(os.path.join(top, "job.c"), JOB)
        write(os.path.join(top, "script"), SCRIPT)
        name = "rank-%d" % os.getpid()
        subprocess.run([os.environ.get("CC", "cc"), "-g", "-O1", "-o", os.path.join(top, name),
                        os.path.join(top, "job.c"), libraries[0]], check=True, timeout=LIMIT_S)
        rows = os.path.join(top, "rows.ndjson")
        environment = dict(os.environ, PATH=path, STACKSNAP=STACKSNAP)
        done = subprocess.run(["unshare", "-u", "-p", "--mount-proc", "--kill-child", "sh",
                               os.path.join(top, "script"), top, str(RANKS), name,
                               os.path.abspath(__file__), launcher, variable], env=environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)
        logs = done.stdout.decode()
        for log in "srun.log", "salloc.log", "slurmd.log":
            if os.path.exists(os.path.join(top, log)):
                with open(os.path.join(top, log), encoding="utf-8", errors="replace") as file:
                    logs += "\n%s: %s" % (log, file.read()[-2000:])
        self.assertTrue(os.path.exists(rows), logs)
        self.assertEqual(ranks(rows, variable), {
            "be_stuck": [STUCK], "PMPI_Barrier": [rank for rank in range(RANKS) if rank != STUCK]},
            logs)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1].endswith(".ndjson"):
        sys.exit(len(ranks(*sys.argv[1:])["PMPI_Barrier"]) != RANKS - 1)
    unittest.main(verbosity=2)
