"""stacksnap record in typical use: of a program that forks and executes others, of a shell
script, with a selection that matches nothing, on a terminal; and stacksnap -f recording. Checks
what stacksnap report shows."""
# ctest: long-with-sanitizers

import json
import os
import re
import resource
import signal
import subprocess
import tempfile
import time

import recording
from harness import (EndToEnd, LIMIT_S, STACKSNAP, main, open_terminal, report_stacks, task_states,
                     wait_until)

# The shell says "ready" when both are there; each reads a line that never comes.
FAMILY = "cat <&3 & cat <&3 & echo ready; wait"


class Use(EndToEnd):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, "recording")

    def record(self, *arguments, status=(0,)):
        return self.run_tool("record", "-o", self.path, *arguments,
                             status=status).stderr.decode()

    def report(self, *arguments, status=(0, 1)):
        return self.run_tool("report", *arguments, self.path, status=status).stdout.decode()

    def json(self, *arguments):
        return json.loads(self.report("-f", "json", *arguments))

    def family(self):
        """Starts a shell with children, all in a session of their own."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, writer)
        script = "exec 3<&%d; %s" % (reader, FAMILY)
        target = self.start_command(["sh", "-c", script], start_new_session=True,
                                    pass_fds=(reader,))
        os.close(reader)
        self.addCleanup(lambda: os.killpg(target.pid, signal.SIGKILL))
        return target

    def test_children_only_on_request(self):
        target = self.family()
        self.record("-d", "200ms", target.pid)
        self.assertEqual([p["pid"] for p in self.json()["processes"]], [target.pid])
        os.unlink(self.path)
        self.record("-d", "200ms", "--children", target.pid)
        processes = self.json()["processes"]
        self.assertEqual(processes[0]["pid"], target.pid)
        self.assertEqual(sorted(p["name"] for p in processes), ["cat", "cat", "sh"])
        text = self.report()
        pipe = r"read fd 0( \((mostly )?pipe[^\n]*\))?: cat"
        self.assertRegex(text, r"\n +66\.7 %%  %s \(\d threads\)|"
                               r"\n +33\.3 %%  %s \d+\n +33\.3 %%  %s \d+" % (3 * (pipe,)))

    def application_locks(self, *arguments):
        """The rows of the text, and the functions in JSON."""
        section = self.report(*arguments).split("\nWaits for application locks\n")[1:]
        rows = section[0].split("\n\n")[0].splitlines() if section else []
        return [row.strip() for row in rows], [
            lock["function"] for lock in self.json(*arguments)["application_locks"]]

    def test_application_locks(self):
        """Which functions wait for locks of the application is stored in the recording."""
        target = self.start("pools", "job", 0)
        with tempfile.NamedTemporaryFile("w") as functions:
            functions.write("# a comment\nlock wait_for_job   a job of mine\n")
            functions.flush()
            option = "--wait-functions=" + functions.name
            self.record("-d", "300ms", option, target.pid)
            snapshot = self.run_tool("-f", "recording", option, target.pid).stdout
        leader = self.snap(target.pid).thread("leader")["tid"]
        expected = (["50.0 %%  wait_for_job (a job of mine): leader %d" % leader],
                    ["wait_for_job"])
        self.assertEqual(recording.Recording(self.path).wait_functions,
                         "lock wait_for_job a job of mine\n")
        self.assertEqual(self.application_locks(), expected)
        self.assertIn("\nBlocking system calls\n  50.0 %  read fd ", self.report())
        with tempfile.NamedTemporaryFile("w") as functions:
            functions.write("event wait_for_job\n")
            functions.flush()
            self.assertEqual(self.application_locks("--wait-functions=" + functions.name),
                             ([], []))
        with open(self.path, "wb") as file:
            file.write(snapshot)
        self.assertEqual(self.application_locks(), expected)
        os.unlink(self.path)
        self.record("-d", "300ms", target.pid)
        self.assertEqual(self.application_locks(), ([], []))

    def test_shell_script(self):
        """A command that starts others and ends: its children appear by their names."""
        script = "i=0; while [ $i -lt 4 ]; do sleep 0.15; i=$((i + 1)); done; exit 0"
        text = self.record("-r", 200, "--children", "--", "sh", "-c", script)
        self.assertIn("the process has ended", text)
        data = self.json()
        names = [p["name"] for p in data["processes"]]
        self.assertIn("sh", names)
        self.assertIn("sleep", names)
        recorded = {data["processes"][data["threads"][s["thread"]]["process"]]["name"]
                    for s in data["samples"]}
        self.assertLessEqual({"sh", "sleep"}, recorded)

    def test_exec(self):
        """One pid, two programs: each with its own name and modules, in one recording."""
        script = "read line; exec cat"
        target = self.start_command(["sh", "-c", "echo ready; " + script])
        process = subprocess.Popen([STACKSNAP, "record", "-r", "200", "-o", self.path,
                                    str(target.pid)], stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)

        def has(name):
            if not os.path.exists(self.path) or os.path.getsize(self.path) < 100:
                return False
            result = self.run_tool("report", "-f", "json", self.path, status=None)
            return result.stdout and name in [
                os.path.basename(p["executable"] or "")
                for p in json.loads(result.stdout)["processes"]]
        wait_until(lambda: has(os.path.basename(os.path.realpath("/bin/sh"))), "the shell")
        target.process.stdin.write(b"go on\n")
        wait_until(lambda: has("cat"), "the other program")
        process.send_signal(signal.SIGINT)
        process.wait(LIMIT_S)
        data = self.json()
        self.assertEqual({p["pid"] for p in data["processes"]}, {target.pid})
        for index, process in enumerate(data["processes"]):
            paths = {data["modules"][life["module"]]["path"] for life in data["lifetimes"]
                     if life["process"] == index}
            self.assertIn(process["executable"], paths)

    def test_standard_output(self):
        """A recording like any other, but --last is refused: nothing can be dropped there."""
        target = self.start("threads")
        result = self.run_tool("record", "-d", "200ms", "-o", "-", target.pid)
        with open(self.path, "wb") as file:
            file.write(result.stdout)
        self.assertGreater(sum(s["count"] for s in self.json()["samples"]), 0)
        result = self.run_tool("record", "--last=1s", "-o", "-", target.pid, status=(64,))
        self.assertIn(b"--last needs a file", result.stderr)

    def test_nothing_to_record(self):
        """Both record and report say so, and fail."""
        target = self.start("threads")
        text = self.record("-d", "400ms", "-t", "^no such thread$", target.pid, status=(2,))
        self.assertIn("nothing was recorded: the selection matched no thread at any tick", text)
        result = self.run_tool("report", self.path, status=(2,))
        self.assertIn(b"has no samples: the selection matched no thread at any tick", result.stderr)
        self.assertNotIn(b"--from", result.stderr)

    def test_few_files(self):
        """With too few descriptors there is no recording, instead of one in which threads seem to
        have ended."""
        target = self.start("threads")
        refused = 0
        for limit in (12, 18, 19, 20, 21, 22, 32):
            result = self.run_tool("record", "-d", "500ms", "-r", "20", "-o", self.path, target.pid,
                                   status=(0, 2), preexec_fn=lambda: resource.setrlimit(
                                       resource.RLIMIT_NOFILE, (limit, limit)))
            said = (limit, result.stderr.decode())
            if result.returncode == 2:
                self.assertRegex(said[1], "(?m)^stacksnap: (?!perf events).*(Too many open files|"
                                 "limit of open files|before the first tick)", said)
                refused += 1
            else:
                counts = {}
                for thread, _, count in report_stacks(self.path):
                    counts[thread["tid"]] = counts.get(thread["tid"], 0) + count
                self.assertEqual(set(counts), set(task_states(target.pid)), said)
                self.assertEqual(len(set(counts.values())), 1, (said, counts))
            if os.path.exists(self.path):
                os.unlink(self.path)
        self.assertLess(0, refused)

    def test_progress_on_a_terminal(self):
        """A line that is overwritten, and removed at the end. In a pipe there is none."""
        target = self.start("threads")
        leader, follower = open_terminal(self)
        self.addCleanup(os.close, leader)
        process = subprocess.Popen([STACKSNAP, "record", "-o", self.path, str(target.pid)],
                                   stderr=follower)
        os.close(follower)
        text = b""
        while b"recording: " not in text:
            text += os.read(leader, 1 << 16)
        process.send_signal(signal.SIGHUP)
        process.wait(LIMIT_S)
        try:
            while True:
                text += os.read(leader, 1 << 16)
        except OSError:
            pass  # EIO: the last writer is gone
        self.assertEqual(process.returncode, 0, text)
        self.assertRegex(text.decode(), r"\rrecording: \d+\.\d s, [\d,]+ samples, \d+ threads?, "
                                        r"\d+ stacks?, [\d.]+ \w+, \d+ ticks? missed\x1b\[K")
        self.assertRegex(text.decode(), r"\r\x1b\[Kstacksnap: stopped, ")

    def test_a_snapshot_as_a_recording(self):
        """The report shows what the snapshot would."""
        target = self.start("threads")
        self.run_tool("-f", "recording", "-o", self.path, target.pid)
        shown = self.run_tool("-f", "folded", target.pid).stdout.decode()
        self.assertEqual(sorted(self.report("-f", "folded", status=(0,)).splitlines()),
                         sorted(shown.splitlines()))
        self.assertRegex(self.report(), r": \d{4}-.*, 1 tick\n")

    def test_last_part(self):
        """The report shows all that was kept, which is the last part of the recording."""
        target = self.start("threads")
        process = subprocess.Popen([STACKSNAP, "record", "--last=300ms", "-r", "300", "-o",
                                    self.path, str(target.pid)], stderr=subprocess.PIPE)
        self.addCleanup(process.kill)

        def begin():
            """Returns the beginning of what is kept now; 0: the file cannot be shown yet."""
            result = self.run_tool("report", "-f", "json", self.path, status=None)
            return json.loads(result.stdout)["time_ns"] if result.stdout else 0
        wait_until(begin, "samples")
        first = begin()
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.2)  # misses ticks, in a part that is dropped
        stopped = time.time_ns()
        process.send_signal(signal.SIGCONT)
        # the first tick after SIGCONT has the missed ones
        wait_until(lambda: begin() > max(first, stopped + 100 * 10 ** 6),
                   "the first part to be dropped")
        process.send_signal(signal.SIGINT)
        text = process.communicate(timeout=LIMIT_S)[1].decode()
        self.assertEqual(process.returncode, 0, text)
        data = self.json()
        self.assertGreater(data["time_ns"], first)
        missed = int(re.search(r"ticks?, ([\d,]+) missed", text).group(1).replace(",", ""))
        self.assertLess(data["recordings"][0]["missed"], missed)
        kept = sum(sample["count"] for sample in data["samples"])
        made = int(re.search(r"([\d,]+) samples", text).group(1).replace(",", ""))
        self.assertLess(kept, made)

    def test_missed_ticks_are_counted(self):
        """The recorder is stopped for a while: the summary, the file and the report count the
        ticks of that time as missed."""
        target = self.start("threads")
        process = subprocess.Popen([STACKSNAP, "record", "-r", "1000", "-o", self.path,
                                    str(target.pid)], stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        wait_until(lambda: os.path.exists(self.path) and os.path.getsize(self.path) > 500,
                   "the file")
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.2)  # what is measured, not a way to wait
        process.send_signal(signal.SIGCONT)
        size = os.path.getsize(self.path)
        wait_until(lambda: os.path.getsize(self.path) > size, "more of it")
        process.send_signal(signal.SIGINT)
        text = process.communicate(timeout=LIMIT_S)[1].decode()
        found = re.search(r"([\d,]+) ticks, ([\d,]+) missed", text)
        ticks, missed = [int(number.replace(",", "")) for number in found.groups()]
        # An interval is at most 1.25 periods, and eight ticks may be taken late.
        self.assertGreaterEqual(missed, 150, text)
        recording = self.json()["recordings"][0]
        self.assertEqual((len(recording["ticks_ns"]), recording["missed"]), (ticks, missed))
        steps = [b - a for a, b in zip(recording["ticks_ns"], recording["ticks_ns"][1:])]
        self.assertGreaterEqual(max(steps), 180_000_000)
        result = self.run_tool("report", self.path)
        self.assertIn("%d ticks were missed" % missed, result.stdout.decode())

    def test_ticks_are_random(self):
        """Ticks are spread over the first quarter of their periods."""
        target = self.start("threads")
        self.record("-r", 50, "-d", "800ms", target.pid)
        ticks = self.json()["recordings"][0]["ticks_ns"]
        places = sorted((tick - ticks[0]) % 20_000_000 for tick in ticks)
        gaps = [b - a for a, b in zip(places, places[1:] + [places[0] + 20_000_000])]
        self.assertGreater(20_000_000 - max(gaps), 1_500_000, places)


if __name__ == "__main__":
    main()
