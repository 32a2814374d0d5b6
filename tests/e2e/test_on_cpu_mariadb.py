"""stacksnap record --on-cpu of MariaDB under sysbench: its functions have the same order by self
time as those of perf record, at the same time.

Debian packages: mariadb-server, sysbench, linux-perf."""
# ctest: real timeout=600 release-only tries=1

import collections
import json
import os
import re
import shutil
import subprocess
import unittest

from harness import EndToEnd, LIMIT_S, STACKSNAP, main
from mariadb import Connection, MariaDbServer
from test_on_cpu import PERF, may_sample_cpus

RATE, TOP = 999, 20
SECONDS = 25 if "STACKSNAP_TRIES" in os.environ else 6


def plain(name):
    """Without versions, arguments and what distinguishes aliases."""
    name = re.sub(r"(@|\(|\+0x).*$", "", name)
    name = re.sub(r"^(__GI_)?_*(libc_)?", "", name)
    return re.sub("^memcpy_", "memmove_", name)  # one function of the C library


def pairs(counts):
    """The pairs of functions of which the first one has clearly more samples: by a third, and by
    more than chance makes likely (four standard deviations). The order of the others is chance: two
    halves of the same samples do not agree on it either."""
    names = [name for name, _ in counts.most_common(TOP)]
    return [(one, other) for one in names for other in names
            if counts[one] > 1.33 * counts[other] and
            counts[one] - counts[other] > 4 * (counts[one] + counts[other]) ** 0.5]


@unittest.skipUnless(PERF and may_sample_cpus(), "perf events are not allowed")
@unittest.skipUnless(shutil.which("sysbench"), "sysbench is missing")
class OnCpuMariaDb(MariaDbServer, EndToEnd):
    def sysbench(self, *arguments):
        return ["sysbench", "oltp_read_only", "--mysql-user=root", "--tables=2",
                "--mysql-socket=" + self.path, "--table-size=10000", *arguments]

    def perf_counts(self, path):
        """By the innermost function in user space: there are no frames of the kernel in
        recordings."""
        text = subprocess.run([PERF, "script", "-i", path, "-F", "tid,ip,sym,dso"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              timeout=4 * LIMIT_S).stdout.decode("utf-8", "replace")
        counts = collections.Counter()
        for block in text.split("\n\n"):
            for address, name, dso in re.findall(r"^\s+([0-9a-f]+) (.*) \((.*)\)$", block, re.M):
                if len(address) == 16 and address[0] == "f":
                    continue
                if name == "[unknown]":
                    name = os.path.basename(dso)
                counts[plain(name)] += 1
                break
        return counts

    def test_order(self):
        server = self.start_server()
        connection = Connection(self.path)
        self.addCleanup(connection.socket.close)
        connection.query("CREATE DATABASE sbtest")
        connection.done()
        subprocess.run(self.sysbench("prepare"), check=True, stdout=subprocess.DEVNULL,
                       timeout=4 * LIMIT_S)
        load = subprocess.Popen(self.sysbench("--threads=8", "--time=600", "run"),
                                stdout=subprocess.DEVNULL)
        self.addCleanup(load.wait, LIMIT_S)
        self.addCleanup(load.kill)
        data, path = (os.path.join(self.directory, name) for name in ("data.perf", "recording"))
        perf = subprocess.Popen([PERF, "record", "-q", "-g", "-e", "cpu-clock", "-F", str(RATE),
                                 "-p", str(server.pid), "-o", data, "sleep", str(SECONDS)],
                                stderr=subprocess.DEVNULL)
        subprocess.run([STACKSNAP, "record", "--on-cpu", "-r", str(RATE), "-d", str(SECONDS),
                        "-o", path, str(server.pid)], check=True, timeout=LIMIT_S + SECONDS,
                       stderr=subprocess.DEVNULL)
        perf.wait(LIMIT_S)
        report = json.loads(self.run_tool("report", "-f", "json", path, status=(0, 1)).stdout)
        ours = collections.Counter()
        for sample in report["samples"]:
            if sample["call"] is not None:
                frame = report["frames"][report["calls"][sample["call"]][1]]
                ours[plain(frame["name"])] += sample["count"]
        theirs = self.perf_counts(data)
        clear = pairs(theirs)
        wrong = [pair for pair in clear if ours[pair[0]] <= ours[pair[1]]]
        if os.environ.get("STACKSNAP_VERBOSE"):
            print("%d of %d pairs in another order" % (len(wrong), len(clear)))
        note = wrong, [(name, theirs[name], ours[name]) for name, _ in theirs.most_common(TOP)]
        self.assertGreater(len(clear), TOP, note)
        # perf attributes more to what is near a switch of threads (test_on_cpu.py).
        self.assertLess(len(wrong), 0.1 * len(clear), note)


if __name__ == "__main__":
    main()
