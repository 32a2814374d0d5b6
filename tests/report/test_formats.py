"""The formats of stacksnap report, on recordings with known samples. The HTML page and
speedscope have tests of their own, which need a browser."""
# ctest: quick long-with-sanitizers

import gzip
import json
import os
import re
import resource
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import npm  # noqa: E402
from parsers import parse_folded, parse_perf  # noqa: E402
from recordings import (LIMIT, PERIOD, ROOT, SOURCE, WALL, Description, ReportTest,  # noqa: E402
                        build_library, main)

IDLE = ["shop_start", "shop_wait_for_work"]
BUSY = ["shop_start", "shop_serve", "shop_parse", "shop_hash"]


DECODE = """
const { Profile } = require(process.argv[1]);
const fs = require('fs'), zlib = require('zlib');
const profile = Profile.decode(zlib.gunzipSync(fs.readFileSync(process.argv[2])));
const plain = (key, value) => typeof value === 'bigint' ? Number(value) : value;
process.stdout.write(JSON.stringify(profile, plain));
"""


class Pprof:
    """A file, decoded by pprof-format of npm."""

    def __init__(self, path):
        command = ["node", "-e", DECODE, npm.package("pprof-format"), path]
        result = subprocess.run(command, stdout=subprocess.PIPE, timeout=60, check=True)
        self.data = json.loads(result.stdout)
        self.texts = self.data["stringTable"]["strings"]
        self.functions = {f["id"]: f for f in self.data["function"]}
        self.locations = {one["id"]: one for one in self.data["location"]}
        self.mappings = {m["id"]: m for m in self.data["mapping"]}

    def text(self, number):
        return self.texts[number]

    def labels(self, sample):
        return {self.text(one["key"]): self.text(one["str"]) if one["str"] else one["num"]
                for one in sample["label"]}

    def names(self, sample):
        """Outermost first."""
        names = []
        for number in sample["locationId"]:
            for line in self.locations[number]["line"]:
                names.append(self.text(self.functions[line["functionId"]]["name"]))
        return names[::-1]

    def types(self):
        return [(self.text(one["type"]), self.text(one["unit"]))
                for one in self.data["sampleType"]]


class Formats(ReportTest):
    def test_owner_of_most_samples(self):
        """A wait that was looked up for few of the samples is not that of all."""
        for known, text in ((2, None), (6, "mostly held by owner 100:"), (10, "held by owner 100:")):
            d = Description()
            process = d.process(pid=100)
            module = d.module(process, self.library, self.build_id, bias=0x7f0000000000)
            d.thread(process, 100, "main")
            worker = d.thread(process, 101, "worker")
            stack = self.stack_of(d, module, "wait_for_work", "start")
            for tick in range(10):
                d.tick()
                d.sample(worker, stack, call=202, argument=0x1000, owner=100 if tick < known else -1)
            path = d.write(self.path("owner%d.ss" % known))
            rows = map(json.loads, self.report("-f", "rows", path).stdout.splitlines())
            row, = (row for row in rows if row["table"] == "threads")
            self.assertEqual((row["samples"], row["owner_tid"]), (10, 100 if text else 0), row)
            report = self.report(path).stdout.decode()
            self.assertEqual(re.findall(r"(?:mostly )?held by owner 100:", report),
                             [text] if text else [], report)

    def test_folded(self):
        text = self.report("-f", "folded", self.shop()).stdout.decode()
        self.assertEqual(parse_folded(text), {
            ("shop", "main", *IDLE): 10, ("shop", "worker", *IDLE): 7,
            ("shop", "worker", *BUSY): 3})

    def test_several_recordings_are_merged(self):
        """Functions are merged across recordings of two machines with different addresses."""
        one = self.shop("one.ss", "alpha", bias=0x7f0000000000)
        two = self.shop("two.ss", "beta", bias=0x550000000000, wall=WALL + 3 * 10**9, pid=700)
        data = json.loads(self.report("-f", "json", one, two).stdout)
        self.assertEqual([r["host"] for r in data["recordings"]], ["alpha", "beta"])
        self.assertEqual(len(data["modules"]), 1)
        self.assertEqual(data["modules"][0]["build_id"], self.build_id)
        self.assertEqual(len(data["lifetimes"]), 2)
        self.assertEqual(len(data["frames"]), 5)
        self.assertEqual(data["recordings"][1]["ticks_ns"][0], 3 * 10**9)
        text = self.report("-f", "folded", one, two).stdout.decode()
        self.assertEqual(parse_folded(text)["shop", "worker", *BUSY], 6)

    def test_json(self):
        data = json.loads(self.report("-f", "json", self.shop()).stdout)
        self.assertEqual(data["schema"], "stacksnap-report/1")
        stacks = {}
        for sample in data["samples"]:
            names, call = [], sample["call"]
            while call is not None:
                parent, frame = data["calls"][call]
                names.append(data["frames"][frame]["name"])
                call = parent
            key = (data["threads"][sample["thread"]]["name"], sample["state"], sample["wait"],
                   *names[::-1])
            stacks[key] = stacks.get(key, 0) + sample["count"]
        self.assertEqual(stacks, {("main", "S", "epoll_wait", *IDLE): 10,
                                  ("worker", "S", "futex", *IDLE): 7,
                                  ("worker", "R", None, *BUSY): 3})
        self.assertEqual({(s["wait"], s["fd"], s["address"]) for s in data["samples"]},
                         {("epoll_wait", 5, None), ("futex", None, "0x1000"),
                          (None, None, None)})
        self.assertEqual(data["recordings"][0]["machine"], "x86_64")
        self.assertEqual(sum(s["cpu_ns"] for s in data["samples"]), 27_000_000)
        self.assertEqual(data["recordings"][0]["ticks_ns"], [i * PERIOD for i in range(10)])
        frame = next(f for f in data["frames"] if f["name"] == "shop_hash")
        self.assertEqual((frame["named"], frame["module"], frame["inlined"]), (True, 0, False))
        self.assertTrue(frame["file"].endswith("shop.c"), frame)

    def python(self, *options):
        """A thread in two Python functions of one name, which the first native frame executes."""
        path = self.path("python.ss")
        if os.path.exists(path):
            return self.report(*options, path).stdout
        made = Description()
        process = made.process(name="server")
        module = made.module(process, self.library, self.build_id)
        thread = made.thread(process, 100, "main")
        at = self.at
        stack = made._add("stack", ROOT, "%d:%d" % (module, at["wait_for_work"]),
                          "python:run:/srv/b%2epy:7", "python:run:/srv/a.py:41",
                          "%d:%d" % (module, at["serve"]), "%d:%d" % (module, at["start"]))
        made.tick()
        made.sample(thread, stack, "S")
        return self.report(*options, made.write(path)).stdout

    def test_python(self):
        """The calls of a runtime stand for the native frame that executes them."""
        names = ["shop_start", "run", "run", "shop_wait_for_work"]
        native = ["shop_start", "shop_serve", "run", "run", "shop_wait_for_work"]
        text = self.python("-f", "folded").decode()
        self.assertEqual(parse_folded(text), {("server", "main", *names): 1}, text)
        text = self.python("-f", "folded", "--native").decode()
        self.assertEqual(parse_folded(text), {("server", "main", *native): 1}, text)
        frames = json.loads(self.python("-f", "json"))["frames"]
        self.assertEqual([(f["kind"], f["name"], f["file"], f["line"], f["module"])
                          for f in frames if f["kind"] != "native"],
                         [("python", "run", "/srv/a.py", 41, None),
                          ("python", "run", "/srv/b.py", 7, None)], frames)
        text = self.python("-f", "perf").decode()
        self.assertIn(" run (/srv/b.py)\n", text)
        frames = json.loads(self.python("-f", "speedscope"))["shared"]["frames"]
        self.assertIn({"name": "run", "file": "/srv/a.py"}, frames)
        self.assertIn({"name": "run", "file": "/srv/b.py"}, frames)
        text = self.python().decode()
        self.assertNotIn("shop_serve", text)

    def test_json_is_documented(self):
        with open(os.path.join(SOURCE, "man", "stacksnap-report-json.5"),
                  encoding="utf-8") as file:
            page = file.read().replace("\\-", "-")
        data = json.loads(self.report("-f", "json", self.shop()).stdout)
        members = set(data)
        for rows in data.values():
            members |= {key for row in rows if isinstance(row, dict) for key in row} \
                if isinstance(rows, list) else set()
        self.assertGreater(len(members), 40)
        for member in members:
            self.assertRegex(page, r"\b%s\b" % member)

    def test_rows(self):
        """One row for each process, also if its threads were first seen among those of others, and
        for each program of a process that executed another one."""
        d = Description()
        pids = (100, 200, 100)
        processes = [d.process(pid, begin=i + 1) for i, pid in enumerate(pids)]
        stack = d._add("stack", ROOT, "python:two%0alines:/srv/a%0ab.py:7", "-:0x10")
        threads = [(process, pids[process] + late) for late in (0, 1) for process in processes]
        for process, tid in threads:
            d.tick()
            d.sample(d.thread(process, tid, "t"), stack)
        rows = [json.loads(line) for line in
                self.report("-f", "rows", d.write(self.path("rows.ss"))).stdout.splitlines()]
        snapshots = [row for row in rows if row["table"] == "snapshots"]
        self.assertEqual([(row["pid"], row["threads"]) for row in snapshots],
                         [(pid, 2) for pid in pids])
        self.assertEqual(len({row["snapshot"] for row in snapshots}), 3, snapshots)
        frame = {row["frame"]: row["names"] for row in rows if row["table"] == "frames"}
        self.assertEqual(frame, {"two lines@/srv/a b.py": ["two\nlines"]})
        self.assertEqual({row["frames"][-1] for row in rows if row["table"] == "stacks"}, set(frame))
        for row in snapshots:
            self.assertEqual([other["tid"] for other in rows if other["table"] == "threads" and
                              other["snapshot"] == row["snapshot"]], [row["pid"], row["pid"] + 1])

    def test_perf(self):
        stacks = parse_perf(self.report("-f", "perf", self.shop()).stdout.decode())
        self.assertEqual(stacks, {("main", *IDLE): [PERIOD] * 10,
                                  ("worker", *IDLE): [PERIOD] * 7,
                                  ("worker", *BUSY): [PERIOD] * 3})

    def test_perf_is_sorted_by_time(self):
        text = self.report("-f", "perf", self.shop()).stdout.decode()
        times = [float(t) for t in re.findall(r" (\d+\.\d+): \d+ wall-clock:$", text, re.M)]
        self.assertEqual(len(times), 20)
        self.assertEqual(times, sorted(times))

    def test_pprof(self):
        path = self.path("shop.pb.gz")
        self.report("-f", "pprof", "-o", path, self.shop())
        profile = Pprof(path)
        self.assertEqual(profile.types(), [("samples", "count"), ("wall", "nanoseconds"),
                                           ("cpu", "nanoseconds")])
        found = {}
        for sample in profile.data["sample"]:
            labels = profile.labels(sample)
            key = (labels["process"], labels["thread"], labels["state"],
                   *profile.names(sample))
            self.assertNotIn(key, found)
            found[key] = sample["value"]
        self.assertEqual(found, {
            ("shop", "main", "S", *IDLE): [10, 10 * PERIOD, 0],
            ("shop", "worker", "S", *IDLE): [7, 7 * PERIOD, 0],
            ("shop", "worker", "R", *BUSY): [3, 3 * PERIOD, 27_000_000]})
        self.assertEqual(profile.data["timeNanos"], WALL)
        self.assertEqual(profile.data["durationNanos"], 10 * PERIOD)
        self.assertEqual(profile.data["period"], PERIOD)

    def test_pprof_mappings(self):
        path = self.path("mappings.pb.gz")
        self.report("-f", "pprof", "-o", path, self.shop())
        profile = Pprof(path)
        self.assertEqual([(profile.text(m["filename"]), profile.text(m["buildId"]))
                          for m in profile.data["mapping"]], [(self.library, self.build_id)])
        mapping = profile.data["mapping"][0]
        offsets = set()
        for location in profile.data["location"]:
            self.assertEqual(location["mappingId"], mapping["id"])
            self.assertLessEqual(mapping["memoryStart"], location["address"])
            self.assertLess(location["address"], mapping["memoryLimit"])
            offsets.add(location["address"] - mapping["memoryStart"])
        self.assertEqual(offsets, {self.at[n] for n in
                                   ("start", "wait_for_work", "hash", "parse", "serve")})

    def test_text(self):
        text = self.report(self.shop()).stdout.decode()
        # What runs is the first table, and does not count what waits.
        self.assertRegex(text, r"threads\n\n +self +total  function, of 3 samples on a CPU \(15\.0 %\)\n"
                               r" +100\.0 % +100\.0 %  shop_hash \(libshop\.so\)\n\n"
                               r" +self +total  function, of 17 samples that waited\n"
                               r" +100\.0 % +100\.0 %  shop_wait_for_work \(libshop\.so\)\n\n")
        self.assertRegex(text, r"States\n +15\.0 %  R  running; 100 % in shop_hash .*\n"
                               r" +85\.0 %  S  sleeping; 100 % in shop_wait_for_work ")
        self.assertRegex(text, r"Blocking system calls\n +50\.0 %  epoll_wait fd 5: main 100\n"
                               r" +35\.0 %  futex 0x1000: worker 101\n")
        self.assertRegex(text, r"\n +30\.0 % of +10  worker 101, CPU time 27\.00 ms; "
                               r"100 % in shop_hash \(libshop\.so\)\n")
        self.assertRegex(text, r"Calls\n +100\.0 %  shop_start .*\n +85\.0 %    shop_wait_for_work"
                               r".*\n +15\.0 %    shop_serve .*\n +15\.0 %    shop_parse .*\n"
                               r" +15\.0 %    shop_hash ")

    def unsampled(self, name, cpu_us, missed=0, ticks=400, threads=1):
        """Samples of CPUs at every second tick, and the CPU time that was counted with each."""
        d = Description(scope=1)
        process = d.process()
        module = d.module(process, self.library, self.build_id)
        of = [d.thread(process, tid, "t%d" % tid) for tid in range(1, threads + 1)]
        stack = self.stack_of(d, module, "hash", "start")
        for i in range(ticks):
            skipped = missed if i == 2 else 0
            d.tick(missed=skipped, step=d.period * (1 + skipped))
            if i % 2:
                for thread in of:
                    d.sample(thread, stack, "R", cpu_us=cpu_us)
        d.tick()
        return d.write(self.path("unsampled-%s.ss" % name))

    def test_unsampled(self):
        """CPU time that is in no sample has samples of its own, if there is more than by chance:
        shares are of the CPU time."""
        for name, cpu_us, missed, ticks, share in (
                ("all", 10000, 0, 400, 0), ("less", 7000, 0, 400, 0), ("part", 14000, 0, 400, 28.6),
                ("chance", 14000, 0, 8, 0), ("few", 11000, 0, 400, 7.0),
                ("fewer", 11000, 0, 100, 0), ("missed", 17000, 101, 400, 26.4)):
            path = self.unsampled(name, cpu_us, missed, ticks)
            text = self.report(path).stdout.decode()
            found = re.search(r"\n +([\d.]+) % +CPU time in no sample", text)
            self.assertAlmostEqual(float(found.group(1)) if found else 0, share, delta=1, msg=text)
            counts = dict(line.rsplit(" ", 1) for line in
                          self.report("-f", "folded", path).stdout.decode().splitlines())
            numbers = {stack.split(";")[-1]: int(count) for stack, count in counts.items()}
            self.assertEqual(numbers["shop_hash"], ticks // 2, counts)
            self.assertAlmostEqual(100 * numbers.get("[not sampled]", 0) / sum(numbers.values()),
                                   share, delta=1, msg=counts)

    def test_unsampled_selection(self):
        """Of selected stacks or states it is not known which part of that time is theirs; of
        threads it is."""
        path = self.unsampled("selection", 14000, threads=2)
        for options in (("--module=libshop.so",), ("--state=R",)):
            self.assertNotIn("not sampled", self.report("-f", "folded", *options, path)
                             .stdout.decode(), options)
        text = self.report("-f", "folded", "--thread=1", path).stdout.decode()
        self.assertRegex(text, r"\[not sampled\] 79\n")

    def test_unsampled_formats(self):
        """At ticks at which the thread has no sample; its CPU time is divided among all."""
        path = self.unsampled("formats", 14000)
        document = json.loads(self.report("-f", "json", path).stdout)
        self.assertEqual(document["recordings"][0]["unsampled"], 79)
        runs = document["samples"]
        self.assertEqual(sum(run["count"] for run in runs), 279, runs)
        at = []
        for run in runs:
            at += range(run["tick"], run["tick"] + run["count"])
        self.assertEqual(len(at), len(set(at)))
        self.assertAlmostEqual(sum(run["cpu_ns"] for run in runs) / 1e9, 2.8, 2, runs)

    def test_text_threshold(self):
        shop = self.shop()
        text = self.report("--threshold", 50, shop).stdout.decode()
        calls = text[text.index("\nCalls\n"):]
        self.assertIn("shop_wait_for_work", calls)
        self.assertNotIn("shop_hash", calls)
        self.assertIn("\n  and 1 more (-v lists them)", self.report("--rows", 1, shop).stdout.decode())
        # Of two functions that run
        d = Description()
        process = d.process()
        module = d.module(process, self.library, self.build_id)
        thread = d.thread(process, 100, "main")
        stacks = [self.stack_of(d, module, name, "start") for name in ("hash", "parse")]
        for i in range(10):
            d.tick()
            d.sample(thread, stacks[i % 3 == 0], "R")
        path = d.write(self.path("two-run.ss"))
        for rows, shown in ((1, False), (2, True)):
            table = self.report("--rows", rows, path).stdout.decode().split("\n\n")[1]
            self.assertIn("shop_hash", table)
            self.assertEqual("shop_parse" in table, shown, table)

    def test_text_merges_addresses_without_symbols(self):
        """Addresses without symbols are one line per module in the table, and one below each
        caller, with their number; a single one is shown itself. So does -v with all, as do
        the other formats."""
        bare = self.path("libbare.so")
        _, build_id = build_library(bare, options=("-s", "-fvisibility=hidden"))
        d = Description()
        process = d.process()
        shop = d.module(process, self.library, self.build_id)
        module = d.module(process, bare, build_id, bias=0x7e0000000000)
        thread = d.thread(process, 1, "t")
        outer = self.at["start"] + 1
        stacks = [d.stack((module, 0x11000 + i), (module, 0x12000 + i % 3), (shop, outer))
                  for i in range(40)]
        stacks += [d.stack((None, 0x5000 + i), (shop, self.at["serve"] + 1)) for i in range(10)]
        stacks += [d.stack((module, 0x13000), (shop, self.at["parse"] + 1))] * 50
        for stack in stacks:
            d.tick()
            d.sample(thread, stack, "R")
        path = d.write(self.path("places.ss"))
        text = self.report("--threshold=0", path).stdout.decode()
        calls = text[text.index("\nCalls\n"):].splitlines()[2:]
        self.assertRegex(calls[-2], "^Modules without symbols .*--debug-dir, --debuginfod")
        self.assertEqual(calls[-1], "  44 addresses in %s [%s]" % (bare, build_id))
        self.assertEqual([" ".join(line.split()) for line in calls[:-3]], [
            "50.0 % shop_parse (libshop.so)", "50.0 % libbare.so+0x13000",
            "40.0 % shop_start (libshop.so)", "40.0 % libbare.so (no symbols: 43 addresses)",
            "10.0 % shop_serve (libshop.so)", "10.0 % [unmapped] (no symbols: 10 addresses)"])
        self.assertRegex(text, r"\n +90\.0 % +90\.0 %  libbare\.so \(no symbols: 44 addresses\)\n"
                               r" +10\.0 % +10\.0 %  \[unmapped\] \(no symbols: 10 addresses\)\n")
        self.assertRegex(text, r"\n 100\.0 % of +100  t 1; 50 % in shop_parse ")
        for words in (["-v"], ["--raw"], ["-f", "folded"], ["-f", "json"], ["-f", "perf"]):
            whole = self.report(*words, path).stdout.decode()
            self.assertNotIn("no symbols:", whole, words)
            self.assertIn("libbare.so", whole, words)
        data = json.loads(self.report("-f", "json", path).stdout)
        self.assertEqual(sum(not frame["named"] for frame in data["frames"]), 54)

    def test_functions_without_a_name(self):
        """Unwind tables tell where they start: all their addresses are one function, with its
        own row in the text."""
        whole, bare = self.path("libwhole.so"), self.path("libhidden.so")
        _, build_id = build_library(whole, options=("-fvisibility=hidden",))
        subprocess.run(["objcopy", "--strip-all", whole, bare], check=True)
        symbols = subprocess.run(["nm", whole], stdout=subprocess.PIPE, check=True, text=True)
        starts = {name: int(value, 16) for value, name in re.findall(
            r"^([0-9a-f]+) t shop_(\w+)$", symbols.stdout, re.M)}
        d = Description()
        process = d.process()
        module = d.module(process, bare, build_id)
        thread = d.thread(process, 1, "shop")
        for name, count in (("hash", 3), ("parse", 2)):
            for i in range(count):
                stack = d.stack((module, starts[name] + 1 + i))
                d.tick()
                d.sample(thread, stack, "R")
        path = d.write(self.path("functions.ss"))
        names = ["libhidden.so+0x%x" % starts[name] for name in ("hash", "parse")]
        folded = self.report("-f", "folded", path).stdout.decode()
        self.assertEqual(sorted(folded.splitlines()),
                         sorted("shop;shop;%s %d" % pair for pair in zip(names, (3, 2))))
        stacks = parse_perf(self.report("-f", "perf", path).stdout.decode())
        self.assertEqual({stack: len(periods) for stack, periods in stacks.items()},
                         {("shop", name): count for name, count in zip(names, (3, 2))})
        text = self.report(path).stdout.decode()
        for name, share in zip(names, ("60.0", "40.0")):
            self.assertRegex(text, r"\n +%s %% +%s %%  %s\n" % (share, share, re.escape(name)))
        self.assertNotIn("no symbols:", text)
        self.assertIn("\n  2 functions in %s [%s]\n" % (bare, build_id), text)
        data = json.loads(self.report("-f", "json", path).stdout)
        self.assertEqual(sum(not frame["named"] for frame in data["frames"]), 5)
        raw = self.report("-f", "folded", "--raw", path).stdout.decode()
        self.assertEqual(len(raw.splitlines()), 5)

    def test_text_futexes(self):
        """By the functions that wait, in the library and in the program."""
        d = Description()
        process = d.process()
        shop = d.module(process, self.library, self.build_id)
        program = d.module(process, "/opt/program", "ab" * 20, bias=0x7e0000000000)
        wait = (shop, self.at["wait_for_work"])
        one = d.stack((shop, self.at["hash"]), wait, (program, 0x3000))
        other = d.stack(wait, (program, 0x4000))
        d.tick()
        for i in range(4):
            thread = d.thread(process, 10 + i, "worker")
            d.sample(thread, other if i == 3 else one, "S", call=202, argument=0x1000 * (i + 1))
        text = self.report(d.write(self.path("futexes.ss")), status=(1,)).stdout.decode()
        waits = text.split("\nBlocking system calls")[1].split("\n\n")[0].splitlines()[1:]
        label = "program+0x%x [" + "ab" * 20 + "]"
        self.assertEqual([" ".join(line.split()) for line in waits], [
            "75.0 %% 3 futexes, shop_wait_for_work in %s: worker (3 threads)" % (label % 0x2fff),
            "25.0 %% futex 0x4000, shop_wait_for_work in %s: worker 13" % (label % 0x3fff)])

    def test_text_blocking_system_calls(self):
        """Threads on the same futex are merged, but not those of another process. A call that
        continues after a stop is resolved from other samples at the same address."""
        d = Description()
        threads, stacks = [], []
        for pid in (100, 200):
            process = d.process(pid=pid, name="shop%d" % pid)
            module = d.module(process, self.library, self.build_id)
            stacks.append(self.stack_of(d, module, "wait_for_work", "start"))
            threads.append([d.thread(process, pid + i, "worker" if i else "main")
                            for i in range(6)])
        other = self.stack_of(d, module, "hash")
        for tick in range(2):
            d.tick()
            for stack, mine in zip(stacks, threads):
                for i, thread in enumerate(mine):
                    call = 219 if tick and i == 1 else 202 if i else 230
                    d.sample(thread, stack if i else other, "S", call=call,
                             argument=0xabc0 if i else 0x7ffd0000)
        text = self.report(d.write(self.path("waits.ss"))).stdout.decode()
        waits = text.split("\nBlocking system calls")[1].split("\n\n")[0].splitlines()[1:]
        self.assertEqual([" ".join(line.split()) for line in waits], [
            "41.7 % futex 0xabc0: worker (5 threads)", "41.7 % futex 0xabc0: worker (5 threads)",
            "16.7 % clock_nanosleep: main (2 threads)"])

    def test_text_shows_what_is_omitted(self):
        """Omitted branches are one line, after their siblings."""
        d = Description()
        process = d.process()
        module = d.module(process, self.library, self.build_id)
        thread = d.thread(process, 1, "t")
        stacks = [self.stack_of(d, module, name, "start")
                  for name in ("hash", "parse", "serve", "step")]
        for i in range(20):
            d.tick()
            d.sample(thread, stacks[0 if i < 11 else i % 4], "R")
        text = self.report("--threshold=30", d.write(self.path("rest.ss"))).stdout.decode()
        calls = text[text.index("\nCalls\n"):].splitlines()[2:]
        self.assertEqual([" ".join(line.split()) for line in calls],
                         ["100.0 % shop_start (libshop.so)", "65.0 % shop_hash (libshop.so)",
                          "35.0 % [below the threshold]"])

    def test_recursion_counts_once(self):
        d = Description()
        process = d.process()
        module = d.module(process, self.library, self.build_id)
        thread = d.thread(process, 1, "deep")
        stack = self.stack_of(d, module, *["step"] * 9, "start")
        for _ in range(4):
            d.tick()
            d.sample(thread, stack, "R")
        text = self.report(d.write(self.path("deep.ss"))).stdout.decode()
        self.assertRegex(text, r"\n +100\.0 % +100\.0 %  shop_step")

    def test_inlined_calls(self):
        source = ("static inline __attribute__((always_inline)) int inner(int n)\n{\n"
                  "\t__asm__ volatile(\"nop; nop; nop; nop; nop; nop; nop; nop\");\n"
                  "\treturn n + 1;\n}\n"
                  "int shop_outer(int n);\nint shop_outer(int n)\n{\n\treturn inner(n);\n}\n")
        library = self.path("libinline.so")
        at, build_id = build_library(library, source)
        d = Description()
        process = d.process()
        module = d.module(process, library, build_id)
        thread = d.thread(process, 1, "t")
        stack = d.stack((module, at["outer"] + 4))
        d.tick()
        d.sample(thread, stack, "R")
        path = d.write(self.path("inline.ss"))
        self.assertEqual(parse_folded(self.report("-f", "folded", path).stdout.decode()),
                         {("shop", "t", "shop_outer", "inner"): 1})
        self.assertEqual(parse_folded(self.report("-f", "folded", "--no-inlines", path)
                                      .stdout.decode()), {("shop", "t", "shop_outer"): 1})
        out = self.path("inline.pb.gz")
        self.report("-f", "pprof", "-o", out, path)
        profile = Pprof(out)
        self.assertEqual([len(one["line"]) for one in profile.data["location"]], [2])
        self.assertEqual(profile.names(profile.data["sample"][0]), ["shop_outer", "inner"])

    def test_incomplete_stacks(self):
        d = Description()
        process = d.process()
        module = d.module(process, self.library, self.build_id)
        thread = d.thread(process, 1, "t")
        stack = self.stack_of(d, module, "hash", end=LIMIT)
        nowhere = d.stack((None, 0x1234))
        empty = d.stack(end=9)
        for one in (stack, nowhere, empty):
            d.tick()
            d.sample(thread, one, "R")
        path = d.write(self.path("ends.ss"))
        self.assertEqual(parse_folded(self.report("-f", "folded", path).stdout.decode()), {
            ("shop", "t", "[limit]", "shop_hash"): 1, ("shop", "t", "[unmapped]+0x1234"): 1,
            ("shop", "t", "[running]"): 1})
        for name in ("text", "json", "perf", "speedscope", "html"):
            self.report("-f", name, path)


class Lifetimes(ReportTest):
    def test_one_address_two_modules(self):
        """A module is unloaded, another one loaded at its address, the first one elsewhere."""
        other = self.path("libother.so")
        at, build_id = build_library(other, "int shop_other(int n);\nint shop_other(int n)\n"
                                            "{\n\treturn n * 7 + 1;\n}\n")
        d = Description()
        process = d.process()
        first = d.module(process, self.library, self.build_id, bias=0x10000000)
        thread = d.thread(process, 1, "t")
        stacks = [d.stack((first, self.at["hash"]))]
        d.unload(first, 1)
        second = d.module(process, other, build_id, bias=0x10000000, loaded=PERIOD - 1)
        stacks.append(d.stack((second, at["other"])))
        third = d.module(process, self.library, self.build_id, bias=0x20000000,
                         loaded=PERIOD * 2 - 1)
        stacks.append(d.stack((third, self.at["hash"])))
        for stack in stacks:
            d.tick()
            d.sample(thread, stack, "R")
        path = d.write(self.path("lives.ss"))
        data = json.loads(self.report("-f", "json", path).stdout)
        names = [data["frames"][data["calls"][s["call"]][1]]["name"] for s in data["samples"]]
        self.assertEqual(names, ["shop_hash", "shop_other", "shop_hash"])
        self.assertEqual(data["samples"][0]["call"], data["samples"][2]["call"])
        self.assertEqual(len(data["modules"]), 2)
        self.assertEqual([(life["base"], life["unloaded_ns"]) for life in data["lifetimes"]],
                         [("0x10000000", 1), ("0x10000000", None), ("0x20000000", None)])


class Files(ReportTest):
    def test_sysroot_and_debug_dir(self):
        """The recorded path does not exist: the file is below the sysroot, or found by build-id."""
        d = Description()
        process = d.process()
        module = d.module(process, "/no/such/place/libshop.so", self.build_id)
        thread = d.thread(process, 1, "t")
        stack = self.stack_of(d, module, "hash")
        d.tick()
        d.sample(thread, stack, "R")
        path = d.write(self.path("elsewhere.ss"))
        bare = self.report("-f", "folded", path, status=(1,))
        place = "libshop.so+%#x [%s]" % (self.at["hash"], self.build_id)
        self.assertEqual(parse_folded(bare.stdout.decode()), {("shop", "t", place): 1})
        self.assertIn("/no/such/place/libshop.so [%s]" % self.build_id, bare.stderr.decode())
        text = self.report(path, status=(1,)).stdout.decode()
        self.assertIn("Missing", text)
        self.assertIn(self.build_id, text.split("Missing")[1])
        root = self.path("root")
        os.makedirs(root + "/no/such/place", exist_ok=True)
        os.link(self.library, root + "/no/such/place/libshop.so")
        store = self.path("store")
        os.makedirs("%s/.build-id/%s" % (store, self.build_id[:2]))
        os.link(self.library, "%s/.build-id/%s/%s.debug" % (store, self.build_id[:2],
                                                           self.build_id[2:]))
        for option in ("--sysroot=" + root, "--debug-dir=" + store):
            named = self.report("-f", "folded", option, path)
            self.assertEqual(parse_folded(named.stdout.decode()),
                             {("shop", "t", "shop_hash"): 1}, option)

    def test_a_file_of_another_build_is_ignored(self):
        d = Description()
        process = d.process()
        other = "00" + self.build_id[2:]
        module = d.module(process, self.library, other)
        thread = d.thread(process, 1, "t")
        stack = self.stack_of(d, module, "hash")
        d.tick()
        d.sample(thread, stack, "R")
        result = self.report("-f", "folded", d.write(self.path("newer.ss")), status=(1,))
        self.assertNotIn(b"shop_hash", result.stdout)
        self.assertIn(("libshop.so+%#x [%s]" % (self.at["hash"], other)).encode(),
                      result.stdout)
        self.assertIn(other.encode(), result.stderr)

    def test_raw(self):
        text = self.report("-f", "folded", "--raw", self.shop()).stdout.decode()
        self.assertIn("libshop.so+%#x [%s]" % (self.at["hash"], self.build_id), text)


class Selections(ReportTest):
    def folded(self, *arguments):
        return parse_folded(self.report("-f", "folded", *arguments).stdout.decode())

    def test_by_thread_state_and_module(self):
        shop = self.shop()
        self.assertEqual(sum(self.folded("-t", "work", shop).values()), 10)
        self.assertEqual(sum(self.folded("-t", "100", shop).values()), 10)
        self.assertEqual(self.folded("--state=R", shop), {("shop", "worker", *BUSY): 3})
        self.assertEqual(sum(self.folded("--module=libshop", shop).values()), 20)
        none = self.report("--module=nothing", shop, status=(2,))
        self.assertIn(b"the selection matches no sample", none.stderr)

    def test_no_samples(self):
        """The message has the recorded reason, and only options that were given."""
        reasons = {1: "it was stopped before the first tick",
                   2: "its duration elapsed before the first tick",
                   3: "the process had ended before the first tick",
                   4: "the process could no longer be observed",
                   5: "it is a snapshot without threads"}
        for end, reason in reasons.items():
            d = Description()
            d.thread(d.process(), 1, "t")
            d.end(end)
            path = d.write(self.path("nothing-%d.ss" % end))
            for options in ((), ("-t", "shop", "--from", "1")):
                result = self.report(*options, path, status=(2,))
                self.assertEqual(result.stderr.decode(),
                                 "stacksnap: '%s' has no samples: %s\n" % (path, reason))
        d = Description()
        d.cut()
        cut = self.report(d.write(self.path("nothing.ss")), status=(2,)).stderr.decode()
        self.assertRegex(cut, "has no samples: it is truncated before the first sample\n$")
        both = self.report(path, self.path("nothing-3.ss"), status=(2,)).stderr.decode()
        self.assertIn("nothing-3.ss' has no samples: the process had ended", both)
        self.assertIn("none of the 2 recordings has samples", both)

    def test_no_selected_sample(self):
        shop = self.shop()
        for option, value in (("--thread", "nobody"), ("--thread", "1"), ("--state", "Z"),
                              ("--from", "99"), ("--to", "0"), ("--module", "none")):
            text = self.report(option, value, shop, status=(2,)).stderr.decode()
            self.assertIn("\n  hint: there are samples without %s\n" % option, text)
        text = self.report("--state", "Z", "-t", "main", shop, status=(2,)).stderr.decode()
        self.assertIn("\n  hint: there are samples without --thread, --state\n", text)

    def test_by_time(self):
        shop = self.shop()
        busy = ("shop", "worker", *BUSY)
        self.assertEqual(self.folded("--from=0.02", "--to=0.04", shop)[busy], 2)
        self.assertEqual(self.folded("--from", "0.04s", shop)[busy], 1)
        self.assertNotIn(busy, self.folded("--from=0.05", shop))
        clock = subprocess.run(["date", "-d", "@%d" % (WALL // 10**9), "+%F %T|%T|%FT%T"],
                               stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
        for text in clock.split("|"):
            self.assertEqual(self.folded("--from=" + text + ".03", shop)[busy], 2, text)
        data = json.loads(self.report("-f", "json", "--from=0.03", shop).stdout)
        self.assertEqual(data["time_ns"], WALL + 30_000_000)
        self.assertEqual(data["recordings"][0]["ticks_ns"], [i * PERIOD for i in range(7)])

    def test_missed_ticks(self):
        """They are a note; those outside of the selected time do not count."""
        d = Description()
        process = d.process(100, "app", "/usr/bin/app")
        module = d.module(process, self.library, self.build_id)
        stack = self.stack_of(d, module, "hash", "start")
        thread = d.thread(process, 100, "main")
        for tick in range(30):  # ticks 10 and 20 come late
            d.tick(missed=99 if tick in (10, 20) else 0,
                   step=100 * PERIOD if tick in (10, 20) else None)
            d.sample(thread, stack, "R")
        d.end(2)
        path = d.write(self.path("missed.ss"))
        for options, expected in [([], 198), (["--to=0.05"], 0), (["--from=0.5", "--to=1.1"], 58),
                                  (["--to=1.1"], 99), (["--from=1.5", "--to=2.19"], 67),
                                  (["--from=2.2"], 0)]:
            with self.subTest(options=options):
                result = self.report("-f", "json", *options, path)
                data = json.loads(result.stdout)
                self.assertEqual(data["recordings"][0]["missed"], expected)
                self.assertEqual(any("missed" in note for note in data["notes"]), expected > 0)
        self.report("-f", "pprof", "-o", self.path("missed.pb.gz"), path)
        self.assertIn(b"198 ticks were missed", self.report("-f", "folded", path).stderr)

    def test_missed_ticks_before_ticks_without_samples(self):
        d = Description()
        process = d.process(100, "app", "/usr/bin/app")
        module = d.module(process, self.library, self.build_id)
        stack = self.stack_of(d, module, "hash", "start")
        thread = d.thread(process, 100, "main")
        for tick in range(10):
            d.tick(missed=9 if tick == 5 else 0, step=10 * PERIOD if tick == 5 else None)
            if tick in (0, 9):
                d.sample(thread, stack, "R")
        d.end(2)
        result = self.report("-f", "json", "--from=0", d.write(self.path("gap.ss")))
        self.assertEqual(json.loads(result.stdout)["recordings"][0]["missed"], 9)

    def test_snapshots_of_one_process(self):
        """They are ticks of one recording, in the order of their times; another process is not."""
        paths = []
        for i, (pid, host, boot, tids) in enumerate([
                (100, "alpha", "a", [100, 101]), (100, "alpha", "a", [100, 102]),
                (200, "alpha", "a", [200]), (100, "beta", "b", [100]), (100, "alpha", "c", [100])]):
            d = Description(host=host, wall=WALL + i * 10**9, period=0, boot=boot)
            process = d.process(pid, "app", "/usr/bin/app")
            module = d.module(process, self.library, self.build_id)
            stack = self.stack_of(d, module, "hash", "start")
            threads = [d.thread(process, tid, "t%d" % tid) for tid in tids]
            d.tick()
            for thread in threads:
                d.sample(thread, stack, "S")
            for thread in threads[1:]:
                d.wait(thread, threads[0], "lock%d" % i)
            d.end(5)
            paths.append(d.write(self.path("snapshot-%d.ss" % i)))
        for order in (paths, paths[::-1]):
            data = json.loads(self.report("-f", "json", *order).stdout)
            self.assertEqual([(r["host"], r["ticks_ns"]) for r in data["recordings"]],
                             [("alpha", [0, 10**9]), ("alpha", [2 * 10**9]), ("beta", [3 * 10**9]),
                              ("alpha", [4 * 10**9])])
            self.assertEqual([p["pid"] for p in data["processes"]], [100, 200, 100, 100])
            self.assertEqual([t["tid"] for t in data["threads"]], [100, 101, 102, 200, 100, 100])
        text = self.report(*paths[:2]).stdout.decode()
        self.assertIn("snapshot-0.ss and 1 later snapshot: ", text)
        self.assertIn("4 samples of 3 threads", text)
        self.assertNotIn("lock0", text)
        self.assertIn("lock1", text)

    def test_by_host(self):
        """A host is not a function: no thread is in it, calls from it, or waits in it."""
        d = Description(host="MDL_context::acquire_lock")
        process = d.process()
        module = d.module(process, self.library, self.build_id)
        threads = [d.thread(process, 100 + i, "t") for i in range(3)]
        for thread, stack in zip(threads, [d.stack((None, 0x10))] * 2 +
                                 [self.stack_of(d, module, "wait_for_work", "start")]):
            if thread == threads[0]:
                d.tick()
            d.sample(thread, stack, call=202, argument=0x1000)
        for i in (0, 1):
            d.wait(threads[i], threads[1 - i], "lock", True)
        path = d.write(self.path("host.ss"))
        text = self.report("--by=host", path).stdout.decode()
        for words in "DEADLOCK", "futex 0x1000: t (3 threads)":
            self.assertIn(words, text)
        for part in (r" on \S+ \(x86_64\)", r" %  MDL_\S+"):
            text = re.sub(part, "", text)
        self.assertNotIn("MDL_", text)

    def test_difference(self):
        """Nothing is compared with nothing, and text and json have no time of scopes."""
        d = Description()
        process = d.process()
        other = d.thread(process, 100, "other")
        d.tick()
        d.sample(other, d.stack((None, 0x10)))
        shop, other = self.shop(), d.write(self.path("other.ss"))
        empty = self.path("empty")
        os.mkdir(empty)
        self.report("--diff", shop, other)
        for words, name in ((["-t", "worker", shop, other], other), ([empty, shop], empty),
                            ([shop, self.path("no")], self.path("no"))):
            result = self.report("--diff", *words, status=(2,))
            self.assertIn(b"'%s' has no samples to compare" % name.encode(), result.stderr)
        for name in "text", "json":
            self.assertIn(b"the format is folded", self.report(
                "--diff", "--weight=time", "-f", name, shop, shop, status=(64,)).stderr)
        self.assertIn(b"no recording has scopes", self.report(
            "--diff", "--weight=time", "-f", "folded", shop, shop, status=(2,)).stderr)

    def test_by_module(self):
        """Selects whole stacks with a frame anywhere in the module."""
        other = self.path("libsecond.so")
        at, build_id = build_library(other, "int shop_second(int n);\nint shop_second(int n)\n"
                                            "{\n\treturn n * 9 + 2;\n}\n")
        d = Description()
        process = d.process()
        shop = d.module(process, self.library, self.build_id)
        second = d.module(process, other, build_id, bias=0x7e0000000000)
        thread = d.thread(process, 1, "t")
        stacks = [d.stack((shop, self.at["hash"])),
                  d.stack((shop, self.at["hash"]), (second, at["second"] + 1)),
                  d.stack((second, at["second"]))]
        for stack in stacks:
            d.tick()
            d.sample(thread, stack, "R")
        path = d.write(self.path("modules.ss"))
        self.assertEqual(set(self.folded("--module=second", path)),
                         {("shop", "t", "shop_second", "shop_hash"), ("shop", "t", "shop_second")})
        self.assertEqual(sum(self.folded("--module=second", "--module=libshop", path).values()), 3)
        self.assertEqual(sum(self.folded("--module=/libshop.so$", path).values()), 2)

    def test_every_option_is_in_the_manual(self):
        with open(os.path.join(SOURCE, "man", "stacksnap-report.1"), encoding="utf-8") as file:
            page = file.read().replace("\\-", "-")
        options = set(re.findall(r"--([a-z-]+)", self.report("--help").stdout.decode()))
        self.assertGreater(len(options), 15)
        for option in options - {"help", "usage"}:
            self.assertRegex(page, r"--%s\b" % option)

    def test_wrong_usage(self):
        shop = self.shop()
        for words in (["--from=yesterday", shop], ["--format=what", shop], ["--module=(", shop],
                      ["--state=Q", shop], [], ["--threshold=101", shop]):
            self.report(*words, status=(64,))


class Bad(ReportTest):
    def test_wall_clock_is_set(self):
        """Set forward by an hour, then back by two: no sample moves, and a note reports it."""
        d = Description()
        process = d.process()
        thread = d.thread(process, 1, "t")
        stack = d.stack((None, 0x10))
        for tick in range(10):
            if tick in (3, 6):
                d.set_clock({3: 3600, 6: -7200}[tick] * 10**9)
            d.tick()
            d.sample(thread, stack, "R")
        path = d.write(self.path("clock.ss"))
        result = self.report("-f", "json", path, status=(1,))
        data = json.loads(result.stdout)
        self.assertEqual(data["recordings"][0]["ticks_ns"], [i * PERIOD for i in range(10)])
        self.assertIn(b"the clock was set, or the machine slept, during the recording (-3600.0 s, "
                      b"in 2 steps)", result.stderr)
        part = self.report("-f", "folded", "--from=0.02", "--to=0.07", path, status=(1,))
        self.assertEqual(sum(parse_folded(part.stdout.decode()).values()), 5)
        self.assertIn(b"clock was set", self.report(path, status=(1,)).stdout)

    def test_another_processor(self):
        """System calls have the numbers of the recorded machine. The text names host and
        machine of each recording."""
        d = Description(host="board", machine="aarch64")
        process = d.process(pid=900, name="shop", executable="/opt/shop")
        module = d.module(process, "/opt/libarm.so", "a64a64")
        thread = d.thread(process, 900, "main")
        stack = d.stack((module, 0x10))
        d.tick()
        d.sample(thread, stack, "S", call=98, argument=0x2000)  # futex there, getrusage here
        arm = d.write(self.path("arm.ss"))
        unknown = Description(host="strange", machine="pdp11")
        process = unknown.process()
        thread = unknown.thread(process, 1, "t")
        stack = unknown.stack((None, 0x10))
        unknown.tick()
        unknown.sample(thread, stack, "S", call=98)
        odd = unknown.write(self.path("pdp.ss"))
        text = self.report(arm, self.shop(), odd, status=(1,)).stdout.decode()
        self.assertRegex(text, r"arm\.ss: .* on board \(aarch64\), 1 tick")
        self.assertRegex(text, r"alpha\.ss: .* on alpha \(x86_64\), 10 ticks")
        self.assertRegex(text, r"\n +4\.5 %  futex 0x2000: main 900\n")
        self.assertRegex(text, r"\n +31\.8 %  futex 0x1000: worker 101\n")
        self.assertRegex(text, r"\n +4\.5 %  syscall 98: t 1\n")
        self.assertIn("/opt/libarm.so [a64a64]", text.split("Missing")[1])

    def test_other_versions(self):
        """Unknown versions of the format, and another byte order."""
        with open(self.shop("right.ss"), "rb") as file:
            data = file.read()
        for name, bytes_, message in (
                ("newer", data[:8] + b"\x03\0" + data[10:], b"version 3"),
                ("swapped", data[:12] + data[15:11:-1] + data[16:], b"byte order|swapped"),
                ("mangled", data[:6] + b"\n" + data[8:], b"not a recording")):
            path = self.path(name)
            with open(path, "wb") as file:
                file.write(bytes_)
            result = self.report(path, status=(2,))
            self.assertRegex(result.stderr, message)
            self.assertEqual(result.stdout, b"")
            self.assertLessEqual(result.stderr.count(b"\n"), 2, result.stderr)

    def test_hostile_names(self):
        evil = b"</script><script>alert(1)</script>\x1b[31m\xff;\n\"\\"
        d = Description(host=evil)
        process = d.process(name=evil, executable=evil)
        module = d.module(process, b"/tmp/" + evil, "abcdef")
        thread = d.thread(process, 1, evil)
        stack = d.stack((module, 0x10))
        d.tick()
        d.sample(thread, stack, "R")
        path = d.write(self.path("evil.ss"))
        for name in ("text", "folded", "perf", "html"):
            out = self.report("-f", name, path, status=(1,)).stdout
            self.assertNotIn(b"\x1b", out, name)
            self.assertNotIn(b"\xff", out, name)
            self.assertNotIn(b"alert(1)", out if name == "html" else b"")
            out.decode("utf-8")
        self.assertEqual(len(parse_folded(self.report("-f", "folded", path, status=(1,))
                                          .stdout.decode())), 1)
        self.assertEqual(len(parse_perf(self.report("-f", "perf", path, status=(1,))
                                        .stdout.decode())), 1)
        for name in ("json", "speedscope"):
            out = self.report("-f", name, path, status=(1,)).stdout
            self.assertTrue(all(0x20 <= byte < 0x7f or byte == 10 for byte in out), name)
            json.loads(out)
        packed = self.path("evil.pb.gz")
        self.report("-f", "pprof", "-o", packed, path, status=(1,))
        self.assertIn(b"alert(1)", gzip.decompress(open(packed, "rb").read()))
        Pprof(packed)

    def test_unusual_file_names(self):
        """Without a symbol, the name of the module is escaped once and shown once."""
        d = Description()
        module = d.module(d.process(), b"/lib/a\\b\x01\xff.so", "abcdef")
        d.tick()
        d.sample(d.thread(0, 1, "main"), d.stack((module, 0x10)), "R")
        path = d.write(self.path("backslash.ss"))
        text = self.report("-f", "text", path, status=(1,)).stdout.decode()
        self.assertRegex(text, r"(?m) a\\\\b\\x01\\xff\.so\+0x10 \[abcdef\]$")
        self.assertIn("a\\\\b\\x01\\xff.so+0x10", self.report("-f", "folded", path, status=(1,))
                      .stdout.decode())
        data = json.loads(self.report("-f", "json", path, status=(1,)).stdout)
        self.assertEqual([frame["name"] for frame in data["frames"]],
                         ["a\\b\x01\\xff.so+0x10 [abcdef]"])

    def test_a_thread_twice_at_one_tick(self):
        d = Description()
        d.process()
        d.module(0, "/lib/a.so", "abcdef")
        d.tick()
        d.sample(d.thread(0, 1, "main"), d.stack((0, 0x10)), "R")
        d.sample(0, 0, "R")
        result = self.report("-f", "html", d.write(self.path("twice.ss")), status=(1, 2))
        self.assertIn(b"its samples can no longer be read", result.stderr)

    def test_many_modules(self):
        """Lookups have to be hashed: a linear search would take minutes."""
        d = Description()
        process = d.process()
        d.tick()
        for i in range(100000):
            d.module(process, "/lib/%d" % i, "%040x" % i)
        d.sample(d.thread(process, 1, "main"), d.stack((99999, 0x10)), "R")
        path = d.write(self.path("modules.ss"))

        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
        data = json.loads(self.report("-f", "json", path, status=(1,), preexec_fn=limit).stdout)
        self.assertEqual(len(data["modules"]), 100000)

    def test_implausible_values(self):
        """A valid recording with implausible values: every format handles it."""
        d = Description(host="", period=0)
        process = d.process(pid=2**31 - 2, name="", executable=None)
        module = d.module(process, "", None, bias=2**63, size=2**63 - 1, loaded=2**62)
        threads = [d.thread(process, tid, name) for tid, name in
                   ((2**31 - 2, ""), (0, " "), (1, "#"), (1, "7/8 9.0: x:"))]
        stacks = [d.stack((module, 2**64 - 1), (module, 0), (None, 2**64 - 1), end=11),
                  d.stack(*[(module, i % 3) for i in range(5000)]), d.stack()]
        for step in (0, 2**40, 1, 2**62):
            d.tick(missed=2**40, step=step)
            for i, thread in enumerate(threads):
                d.sample(thread, stacks[i % 3], "?RtZ"[i], cpu_us=2**50, call=[-1, 9999][i % 2])
        path = d.write(self.path("odd.ss"))
        for name in ("text", "folded", "perf", "html", "json", "speedscope"):
            out = self.report("-f", name, path, status=(1,)).stdout
            if name in ("json", "speedscope"):
                json.loads(out)
        out = self.path("odd.pb.gz")
        self.report("-f", "pprof", "-o", out, path, status=(1,))
        Pprof(out)

    def test_truncated_and_other_files(self):
        d = Description()
        process = d.process()
        thread = d.thread(process, 1, "t")
        stack = d.stack((None, 0x10))
        d.tick()
        d.sample(thread, stack, "R")
        d.cut()
        cut = self.report(d.write(self.path("cut.ss")), status=(1, 2))
        self.assertTrue(cut.stderr or b"Missing" in cut.stdout)
        for name, data in (("empty", b""), ("text", b"hello\n" * 99)):
            with open(self.path(name), "wb") as file:
                file.write(data)
            result = self.report(self.path(name), status=(2,))
            self.assertRegex(result.stderr, b"recording|empty")
        self.report(self.path("not-there"), status=(2,))
        reader, writer = os.pipe()
        os.close(writer)
        piped = self.report("/dev/stdin", status=(2,), stdin=reader)
        os.close(reader)
        self.assertIn(b"is a pipe or device: a recording must be a regular file", piped.stderr)
        nothing = self.path("nothing")
        os.mkdir(nothing)
        self.assertIn(b"has neither recordings nor crash reports",
                      self.report(nothing, status=(2,)).stderr)
        shop = self.shop("good.ss")
        both = self.report("-f", "folded", self.path("empty"), shop, status=(1,))
        self.assertEqual(sum(parse_folded(both.stdout.decode()).values()), 20)

    def test_every_prefix(self):
        """A recording truncated anywhere is shown in part or refused; never a crash."""
        with open(self.shop("whole.ss"), "rb") as file:
            data = file.read()
        path = self.path("prefix.ss")
        for size in range(0, len(data), max(len(data) // 40, 1)):
            with open(path, "wb") as file:
                file.write(data[:size])
            self.report("-f", "json", path, status=(1, 2))


if __name__ == "__main__":
    main()
