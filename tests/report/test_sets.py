"""Recordings of many processes: labels, grouping by host and label, rows that equal those of the
snapshot itself, labels in pprof files, and the difference of two sets."""
# ctest: real release-only

import base64
import email
import email.policy
import gzip
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse
from unittest import mock

sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests/e2e"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness import STACKSNAP, EndToEnd, main, read_text, wait_until  # noqa: E402
from test_formats import Pprof  # noqa: E402
import npm  # noqa: E402

# Debian's Python: one thread in recv(), and one that first reads, then waits for a lock.
PROGRAM = """
import socket, sys, threading, time
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
peer = server.accept()[0]
lock = threading.Lock()
lock.acquire()
def receive():
    client.recv(1)
def move():
    sys.stdin.readline()
    lock.acquire()
for function in receive, move:
    threading.Thread(target=function, daemon=True).start()
print(client.getsockname()[1], client.getpeername()[1], flush=True)
time.sleep(1000)
"""
CALLS = {"x86_64": {"read": "0", "recvfrom": "45", "futex": "202"}}
READER = """
package main

import (
	"fmt"
	"os"
	"sort"

	"github.com/google/pprof/profile"
)

func main() {
	p, err := profile.Parse(os.Stdin)
	if err == nil {
		err = p.CheckValid()
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for _, s := range p.Sample {
		var keys []string
		for key := range s.Label {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		for _, key := range keys {
			fmt.Printf("%s=%s;", key, s.Label[key][0])
		}
		fmt.Println()
	}
}
"""
GOPATH = "/usr/share/gocode"


class ProfilingServer(http.server.HTTPServer):
    """Takes requests as a proxy does, for any host: (address, type, body)."""

    def __init__(self):
        self.requests = []
        super().__init__(("127.0.0.1", 0), ProfilingServer.Handler)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.server.requests.append((self.path, self.headers["Content-Type"], body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass


class Sets(EndToEnd):
    def setUp(self):
        super().setUp()
        self.machine = CALLS.get(os.uname().machine)
        if not self.machine:
            self.skipTest("system calls of this processor are not in the test")
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        self.program = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.addCleanup(self.program.communicate)
        self.addCleanup(self.program.kill)
        self.ports = self.program.stdout.readline().split()
        self.wait_for("read", "recvfrom")

    def wait_for(self, *calls):
        top = "/proc/%d/task" % self.program.pid

        def are_there():
            found = [read_text("%s/%s/syscall" % (top, tid)).split()[:1] for tid in os.listdir(top)]
            return all([self.machine[call]] in found for call in calls)
        wait_until(are_there, "threads in %s" % (calls,))

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def record(self, name, *options):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        self.run_tool("-f", "recording", "-o", self.path(name), *options, self.program.pid,
                      status=(0, 1))
        return self.path(name)

    def report(self, *arguments, status=(0, 1)):
        return self.run_tool("report", *arguments, status=status).stdout

    def rows(self, text, table):
        rows = [json.loads(line) for line in text.splitlines()]
        return [row for row in rows if row["table"] == table]

    def test_rows(self):
        """They equal those of a snapshot: ids of stacks, names, waits with keys, labels."""
        path = self.record("one.rec", "--label=role=db", "--env=PATH")
        direct = self.run_tool("-f", "rows", "--batch=b", "--label=role=db", "--env=PATH",
                               self.program.pid, status=(0, 1)).stdout
        recorded = self.report("-f", "rows", "--batch=b", path)
        for table in "stacks", "frames", "threads":
            rows = [self.rows(text, table) for text in (direct, recorded)]
            for row in rows[0] + rows[1]:
                row.pop("snapshot", None)
                row["wait_text"] = row.get("wait_text", "").replace("remaining ", "")
                if row.get("wait") == "sleep":
                    row["wait_text"] = ""
            self.assertEqual(*[sorted(rows, key=json.dumps) for rows in rows])
        keys = ["snapshots", "labels"], ["snapshots", "boot_id"], ["snapshots", "threads"]
        for table, key in keys:
            self.assertEqual(self.rows(direct, table)[0][key], self.rows(recorded, table)[0][key])
        self.assertEqual(json.loads(recorded.splitlines()[-1])["table"], "snapshots")
        waits = " ".join(row["wait_key"] for row in self.rows(recorded, "threads"))
        for port in self.ports:
            self.assertIn(":%s" % port.decode(), waits)

    def test_by(self):
        one = self.record("one.rec", "--label=role=db", "--label=rank=1")
        two = self.record("two.rec", "--label=role=web")
        folded = self.report("-f", "folded", "--by=label:role", one, two).decode()
        self.assertEqual({line.split(";")[2] for line in folded.splitlines()},
                         {"role=db", "role=web"})
        folded = self.report("-f", "folded", "--by=label", one, two).decode()
        self.assertEqual({line.split(";")[2] for line in folded.splitlines()},
                         {"role=db rank=1", "role=web"})
        folded = self.report("-f", "folded", "--by=label:rank", two).decode()
        self.assertIn(";[no label rank];", folded)
        self.assertIn(os.uname().nodename, self.report("--by=host", one).decode())
        for wrong in "hosts", "label:", "":
            self.assertIn(b"--by: ", self.run_tool("report", "--by=" + wrong, one, status=(64,)).stderr)

    def test_recorded_labels(self):
        """stacksnap record has them, too."""
        path = self.path("sampled.rec")
        self.run_tool("record", "-d", "1s", "--label=role=db", "-o", path, self.program.pid,
                      status=(0, 1))
        folded = self.report("-f", "folded", "--by=label:role", path).decode()
        self.assertEqual({line.split(";")[2] for line in folded.splitlines()}, {"role=db"})
        threads = self.rows(self.report("-f", "rows", path), "threads")
        self.assertTrue(all(row["samples"] > 1 for row in threads), threads)

    def check_labels(self, labels):
        host = os.uname().nodename
        self.assertTrue(all(one["host"] == host and one["role"] == "db" for one in labels), labels)
        texts = " ".join(one["wait_key"] for one in labels if "wait_key" in one)
        for port in self.ports:
            self.assertIn(":%s" % port.decode(), texts)

    def test_pprof(self):
        npm.package("pprof-format")  # skips the test if it is missing
        path = self.record("one.rec", "--label=role=db")
        self.report("-f", "pprof", "-o", self.path("one.pb.gz"), path)
        profile = Pprof(self.path("one.pb.gz"))
        self.check_labels([profile.labels(sample) for sample in profile.data["sample"]])

    @unittest.skipUnless(shutil.which("go") and os.path.isdir(GOPATH + "/src/github.com/google/pprof"),
                         "Go or golang-github-google-pprof-dev is missing")
    def test_go(self):
        """The reader that Parca, Pyroscope and the OpenTelemetry collector use accepts it."""
        path = self.record("one.rec", "--label=role=db")
        self.report("-f", "pprof", "-o", self.path("one.pb.gz"), path)
        with open(self.path("reader.go"), "w", encoding="utf-8") as file:
            file.write(READER)
        with open(self.path("one.pb.gz"), "rb") as file:
            done = subprocess.run(["go", "run", self.path("reader.go")], stdin=file,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
                                  env=dict(os.environ, GOPATH=GOPATH, GO111MODULE="off",
                                           GOCACHE=os.environ.get("GOCACHE", self.path("cache"))),
                                  check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        lines = done.stdout.decode().splitlines()
        self.assertEqual(len(lines), 3, lines)
        self.check_labels([dict(pair.split("=", 1) for pair in line.split(";") if pair)
                           for line in lines])

    def test_push(self):
        """The command lines of the manual page, which are also in fleet.md."""
        source = os.environ["SOURCE"]
        page = read_text(os.path.join(source, "man/stacksnap-report.1"))
        lines = page.split(".SH PROFILING SERVERS")[1].split(".EX\n")[1].split(".EE\n")[0]
        for escape, character in (r"\-", "-"), (r"\(aq", "'"), (r"\e", "\\"):
            lines = lines.replace(escape, character)
        self.assertIn("```\n%s```" % lines, read_text(os.path.join(source, "docs/fleet.md")))
        with ProfilingServer() as server:
            environment = dict(os.environ, http_proxy="http://127.0.0.1:%d" % server.server_port,
                               PID=str(self.program.pid), PATH=self.directory + ":" + os.environ["PATH"])
            environment.pop("no_proxy", None)
            os.symlink(STACKSNAP, self.path("stacksnap"))
            done = subprocess.run(["bash", "-ec", lines.replace("-d 30", "-d 1")], cwd=self.directory,
                                  env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=100, check=False)
        self.assertEqual(done.returncode, 0, done.stdout.decode())
        with open(self.path("app.pb.gz"), "rb") as file:
            profile = file.read()
        pyroscope, parca, collector = server.requests
        self.assertEqual(collector, ("http://collector:4444/v1/pprof", mock.ANY, profile))
        self.check_parca(parca, profile)
        self.check_pyroscope(pyroscope, profile)

    def check_parca(self, request, profile):
        """As profilestore.proto has it: WriteRawRequest, in the JSON of protocol buffers."""
        address, content_type, body = request
        self.assertEqual((address, content_type), ("http://parca:7070/profiles/writeraw",
                                                   "application/json"))
        data = json.loads(body)
        self.assertEqual(sorted(data), ["normalized", "series"])
        self.assertIs(data["normalized"], False)
        series, = data["series"]
        self.assertEqual(sorted(series), ["labels", "samples"])
        self.assertEqual([sorted(label) for label in series["labels"]["labels"]],
                         [["name", "value"]] * 2)
        self.assertEqual([{"rawProfile": base64.b64encode(profile).decode()}], series["samples"])

    def check_pyroscope(self, request, profile):
        address, content_type, body = request
        url = urllib.parse.urlsplit(address)
        query = dict(urllib.parse.parse_qsl(url.query, strict_parsing=True))
        self.assertEqual((url.netloc, url.path), ("pyroscope:4040", "/ingest"))
        self.assertEqual(query, {"name": "app", "format": "pprof", "from": mock.ANY, "until": mock.ANY})
        self.assertLess(int(query["from"]), int(query["until"]))
        message = email.message_from_bytes(b"Content-Type: %s\r\n\r\n%s" % (
            content_type.encode(), body), policy=email.policy.HTTP)
        parts = {part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
                 for part in message.iter_parts()}
        self.assertEqual(sorted(parts), ["profile", "sample_type_config"])
        self.assertEqual(parts["profile"], profile)
        config = json.loads(parts["sample_type_config"])
        text = gzip.decompress(profile)
        for name, type_of in config.items():
            self.assertIn(name.encode(), text)
            self.assertEqual({key: type(value) for key, value in type_of.items()},
                             {"units": str, "aggregation": str, "sampled": bool})

    def test_difference(self):
        before = os.path.dirname(self.record("before/one.rec"))
        self.program.stdin.write(b"\n")
        self.program.stdin.flush()
        self.wait_for("futex", "recvfrom")
        after = os.path.dirname(self.record("after/one.rec"))
        data = json.loads(self.report("--diff", "-f", "json", before, after))
        self.assertEqual((data["schema"], data["recordings"], data["samples"]),
                         ("stacksnap-report-diff/1", [1, 1], [3, 3]))
        changes = sorted(thread["change"] for thread in data["threads"])
        self.assertEqual(changes, ["moved", "unchanged", "unchanged"], data["threads"])
        moved, = [thread for thread in data["threads"] if thread["change"] == "moved"]
        self.assertIn("readline", " ".join(moved["before"]) + " readline")
        self.assertNotEqual(moved["before"], moved["after"])
        counts = sorted(stack["samples"] for stack in data["stacks"])
        self.assertEqual(counts, [[0, 1], [1, 0], [1, 1], [1, 1]])
        self.assertEqual({tuple(stack["frames"]) for stack in data["stacks"]
                          if stack["samples"] == [1, 0]}, {tuple(moved["before"])})
        text = self.report("--diff", before, after).decode()
        self.assertIn("2 unchanged, 1 moved, 0 new, 0 gone", text)
        for words in "Stacks that appeared", "Stacks that vanished", " -> ":
            self.assertIn(words, text)
        folded = self.report("--diff", "-f", "folded", before, after).decode()
        self.assertEqual(sorted(line.split()[-2:] for line in folded.splitlines()),
                         [["0", "1"], ["1", "0"], ["1", "1"], ["1", "1"]])
        same = self.report("--diff", before, before).decode()
        self.assertIn("3 unchanged, 0 moved", same)
        self.assertNotIn("appeared", same)
        for wrong in ([before], ["-f", "html", before, after]):
            self.assertIn(b"--diff", self.run_tool("report", "--diff", *wrong, status=(64,)).stderr)


if __name__ == "__main__":
    main()
