"""Signatures of many crashes of a seeded program under ASLR: the same for the same path through
its functions, different for different ones. For comparison: sums and CRCs of the same stacks.
COUNT=150 prints the figures of docs/how-we-know.md. A directory of reports is grouped by them."""
# ctest: long-with-sanitizers slow

import json
import os
import re
import shutil
import subprocess
import zlib

from core_dump import CoreDump
from harness import LIMIT_S, TARGETS, main

COUNT = int(os.environ.get("COUNT", "24"))
PROGRAM = os.path.join(TARGETS, "crash_paths")


def collapse(path):
    """Without repeated parts, as of recursion, which count once. The innermost step calls the
    end, which is another call site than the one of the next step."""
    steps = []
    for step in path[:-2] + [path[-2] + "!", path[-1]]:
        steps.append(step)
        for period in range(1, 9):
            if 2 * period <= len(steps) and steps[-period:] == steps[-2 * period:-period]:
                del steps[-period:]
                break
    return " ".join(steps)


def methods(document):
    """Signatures of the thread that crashed, by how they are made."""
    crash = document["capture"]["crash"]
    thread = next(t for t in document["threads"] if t["tid"] == crash["tid"])
    frames = [frame for frame in thread["frames"] if not frame["inlined"]]
    pcs = [int(frame["pc"], 16) for frame in frames]
    offsets = [int(frame["offset"] or "0", 16) for frame in frames]
    crc = 0
    for pc in pcs:
        crc ^= zlib.crc32(pc.to_bytes(8, "little"))
    return {
        "stack_hash": crash["stack_hash"],
        "sum of addresses": sum(pcs),
        "sum of offsets": sum(offsets),
        "XOR of CRCs of addresses": crc,
        "CRC of offsets, in order": zlib.crc32(b"".join(o.to_bytes(8, "little")
                                                        for o in offsets)),
    }


class Signatures(CoreDump):
    def report(self, seed):
        core = self.dump(PROGRAM, str(seed))
        result = self.run_tool("core", "-f", "json", core)
        os.unlink(core)
        return json.loads(result.stdout)

    def path(self, seed):
        text = subprocess.run([PROGRAM, str(seed)], stdout=subprocess.PIPE, timeout=LIMIT_S,
                              text=True, cwd=self.directory).stdout
        return text.split()

    def test_signatures(self):
        """Each of COUNT crashes twice."""
        found = {}
        for seed in range(COUNT):
            truth = collapse(self.path(seed))
            for _ in range(2):
                for method, value in methods(self.report(seed)).items():
                    found.setdefault(method, []).append((truth, value))
        truths = {truth for truth, _ in found["stack_hash"]}
        for method, pairs in found.items():
            values = {}
            split = {}
            for truth, value in pairs:
                values.setdefault(value, set()).add(truth)
                split.setdefault(truth, set()).add(value)
            merged = sum(len(same) - 1 for same in values.values())
            several = sum(len(same) > 1 for same in split.values())
            print("| %s | %d | %d | %d | %d |" % (method, len(truths), len(values), merged,
                                                  several))
            if method == "stack_hash":
                self.assertEqual((merged, several), (0, 0),
                                 [pair for pair in pairs if len(split[pair[0]]) > 1 or
                                  len(values[pair[1]]) > 1])

    def test_groups(self):
        """report of a directory counts them, with hosts and times; what is no report is said."""
        directory = os.path.join(self.directory, "reports")
        os.mkdir(directory)
        documents = {}
        for seed in (0, 0, 0, 1, 1, 2):
            document = self.report(seed)
            count = documents.setdefault(seed, [])
            document["capture"]["time_ns"] = (1000 * seed + len(count) + 1) * 10 ** 9
            document["process"]["host"] = "host%d" % (len(count) % 2)
            count.append(document)
            with open("%s/%d.%d.json" % (directory, seed, len(count)), "w") as file:
                json.dump(document, file)
        out = json.loads(self.run_tool("report", "-f", "json", directory).stdout)
        self.assertEqual((out["schema"], out["crashes"], out["skipped"]),
                         ("stacksnap-crashes/1", 6, 0))
        self.assertEqual([group["count"] for group in out["groups"]], [3, 2, 1])
        group = out["groups"][0]
        crash = documents[0][0]["capture"]["crash"]
        self.assertEqual((group["stack_hash"], group["signature"], group["signal"]),
                         (crash["stack_hash"], crash["signature"], crash["name"]))
        self.assertEqual((group["first_ns"], group["last_ns"]), (1 * 10 ** 9, 3 * 10 ** 9))
        self.assertEqual(group["hosts"], [{"name": "host0", "count": 2},
                                          {"name": "host1", "count": 1}])
        build = next(m["build_id"] for m in documents[0][0]["modules"]
                     if m["path"].endswith("/crash_paths"))
        self.assertEqual([(b["build_id"], b["count"]) for b in group["builds"]], [(build, 3)])
        fd = os.open(directory, os.O_RDONLY)
        for _ in range(20):  # a path that is too long to be opened
            os.mkdir(250 * "d", dir_fd=fd)
            outer, fd = fd, os.open(250 * "d", os.O_RDONLY, dir_fd=fd)
            os.close(outer)
        os.close(fd)
        result = self.run_tool("report", directory, status=(1,))
        self.assertIn(b"cannot open '", result.stderr)
        shutil.rmtree(os.path.join(directory, 250 * "d"))
        with open(directory + "/other.txt", "w") as file:
            file.write("{\"schema\":")
        os.mkfifo(directory + "/fifo")
        result = self.run_tool("report", directory, status=(1,))
        text = result.stdout.decode()
        self.assertIn("6 crashes, 3 different", text)
        self.assertIn("hosts: host0 (2), host1 (1)", text)
        self.assertIn("from 1970-01-01T00:00:01Z to 1970-01-01T00:00:03Z", text)
        self.assertRegex(text, "2 files are not crash reports")
        result = self.run_tool("report", "-f", "html", directory, status=(2,))
        self.assertIn(b"as text or json", result.stderr)
        documents[0][0]["modules"] = [{"path": documents[0][0]["process"]["executable"],
                                       "build_id": "\x1b]0;title\x07"}]
        with open(directory + "/hostile.json", "w", encoding="utf-8") as file:
            json.dump(documents[0][0], file)
        result = self.run_tool("report", directory, status=(1,))
        self.assertIn(b"build-id \\x1b]0;title", result.stdout)
        self.assertNotIn(b"\x1b", result.stdout)
        shutil.rmtree(directory)
        os.mkdir(directory)
        result = self.run_tool("report", directory, status=(2,))
        self.assertIn(b"has neither recordings nor crash reports", result.stderr)

    def test_apport(self):
        """As apport makes it, from the addresses and mappings that gdb shows."""
        python = os.path.realpath("/usr/bin/python3")
        if not os.path.exists(python) or not shutil.which("gdb"):
            self.skipTest("there is no gdb, or no Debian python3")
        core = self.dump(python, "-c", "import os; os.abort()")
        text = subprocess.run(["gdb", "-batch", "-nx", "-iex", "set debug-file-directory /nonexistent",
                               "-ex", "info proc mappings", "-ex", "bt", python, core],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              timeout=LIMIT_S, text=True).stdout
        mappings = [(int(start, 16), int(end, 16), path) for start, end, path in
                    re.findall(r"^ +0x(\w+) +0x(\w+) .* (/.*)$", text, re.M)]
        expected = []
        stack = text[text.rindex("\n#0 "):]  # gdb shows the innermost frame twice
        for pc in re.findall(r"^#\d+ +0x(\w+) in", stack, re.M)[:15]:
            pc = int(pc, 16)
            expected += ["%s+%x" % (path, pc - start) for start, end, path in mappings
                         if start <= pc < end]
        self.assertGreater(len(expected), 5, text)
        out = self.run_tool("core", "-f", "apport", core, status=(0, 1)).stdout.decode()
        fields = dict(line.split(": ", 1) for line in out.splitlines())
        self.assertEqual((fields["ProblemType"], fields["ExecutablePath"], fields["Signal"]),
                         ("Crash", python, "6"))
        self.assertEqual(fields["StacktraceAddressSignature"],
                         ":".join([python, "6"] + expected), text)
        again = self.dump(python, "-c", "import os; os.abort()")
        self.assertEqual(self.run_tool("core", "-f", "apport", again, status=(0, 1)).stdout,
                         out.encode())
        result = self.run_tool("snap", "-f", "apport", str(os.getpid()), status=(2,))
        self.assertIn(b"no signal has ended the process", result.stderr)

    def test_satyr_of_python(self):
        """Has native frames, all of them."""
        python = os.path.realpath("/usr/bin/python3")
        if not os.path.exists(python):
            self.skipTest("there is no Debian python3")
        core = self.dump(python, "-c", "import os\ndef f(): os.abort()\nf()")
        raw = json.loads(self.run_tool("core", "-f", "json", "--raw", core).stdout)
        out = json.loads(self.run_tool("core", "-f", "satyr", core, status=(0, 1)).stdout)
        self.assertEqual([frame["address"] for frame in out["stacktrace"][0]["frames"]],
                         [int(frame["pc"], 16) for frame in raw["threads"][0]["frames"]], out)

    def test_satyr(self):
        """The fields of satyr, in one thread."""
        core = self.dump(PROGRAM, "0")
        snapshot = json.loads(self.run_tool("core", "-f", "json", core).stdout)
        out = json.loads(self.run_tool("core", "-f", "satyr", core).stdout)
        self.assertEqual(out["signal"], snapshot["capture"]["crash"]["signal"])
        self.assertTrue(out["executable"].endswith("/crash_paths"))
        thread, = out["stacktrace"]
        self.assertIs(thread["crash_thread"], True)
        frames = [f for f in snapshot["threads"][0]["frames"] if not f["inlined"]]
        modules = snapshot["modules"]
        self.assertEqual(
            [(f["address"], f["build_id"], f["build_id_offset"], f.get("function_name"),
              f["file_name"]) for f in thread["frames"]],
            [(int(f["pc"], 16), modules[f["module"]]["build_id"],
              int(f["pc"], 16) - int(modules[f["module"]]["base"], 16), f["symbol"],
              modules[f["module"]]["path"]) for f in frames])


if __name__ == "__main__":
    main()
