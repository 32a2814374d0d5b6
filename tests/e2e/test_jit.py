"""Code without a file: of a program that generates it, of node and of java. Its frames are
unwound by frame pointers and named by the perf map of the process, /tmp/perf-PID.map, where PID
is the pid in its own namespace; maps that others have written are rejected."""
# ctest: real long-without-sanitizers

import os
import re
import shutil
import signal
import subprocess
import tempfile

from harness import (EndToEnd, LIMIT_S, Library, MODES, STACKSNAP, TARGETS, THREAD_END, main,
                     read_text, status_field, wait_until)
from recording import count_samples

OUTER = ["call_jit"] + THREAD_END
INNER = [Library(2), "target_block", "called_from_jit"]
UNNAMED = INNER + [None] * 3 + OUTER


def map_path(pid):
    return "/tmp/perf-%d.map" % pid


class OwnCode(EndToEnd):
    def start_jit(self):
        target = self.start("jit")
        self.area = target.fact("area")
        self.addCleanup(self.remove, map_path(target.pid))
        return target

    def remove(self, path):
        if os.path.lexists(path):
            os.unlink(path)

    def write_map(self, path, text=None):
        with open(path, "w") as file:
            file.write(text or self.map_text())

    def map_text(self):
        """With lines that must be ignored: code from before, and an incomplete line."""
        return ("%x 1000 older\n" % self.area +
                "".join("0x%x 20 int made.Up%d(long)\n" % (self.area + n * 0x100, n)
                        for n in (1, 2, 3)) +
                "%x 1000 still being wr" % self.area)

    named = INNER + ["int made.Up%d(long)" % n for n in (3, 2, 1)] + OUTER

    def test_without_a_map(self):
        target = self.start_jit()
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode)
                thread = self.assert_stack(snapshot, "jitted", UNNAMED)
                made = [f for f in thread["frames"] if f["symbol"] is None and
                        f["area"] == "[jit]"]
                # the return address: after the 17 bytes up to the call
                self.assertEqual([f["area_offset"] for f in made],
                                 ["0x311", "0x211", "0x111"])
                self.assertEqual({f["module"] for f in made}, {None})
        for form in ("text", "folded", "gdb", "eu"):
            with self.subTest(form=form):
                text = self.run_tool("-f", form, target.pid).stdout.decode()
                self.assertIn("[jit]+0x311", text)
        raw = self.run_tool("--raw", target.pid).stdout.decode()
        self.assertIn("[jit]+0x311", raw)

    def test_with_a_map(self):
        target = self.start_jit()
        self.write_map(map_path(target.pid))
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode)
                thread = self.assert_stack(snapshot, "jitted", self.named)
                made = [f for f in thread["frames"] if "made" in (f["symbol"] or "")]
                self.assertEqual([f["symbol_offset"] for f in made], [0x11] * 3)
        text = self.run_tool(target.pid).stdout.decode()
        self.assertIn("int made.Up3(long)+0x11 ([jit])", text)
        raw = self.run_tool("--raw", target.pid).stdout.decode()
        self.assertNotIn("made.Up", raw)

    def record(self, target, meanwhile=lambda: None):
        lines = [line.rsplit(" ", 1)[0].split(";") for line in record(self, target, meanwhile)]
        stack, = [names for names in lines if "call_jit" in names]
        at = stack.index("call_jit")
        return stack[at + 1:at + 4]

    def test_recorded(self):
        target = self.start_jit()
        self.write_map(map_path(target.pid))
        self.assertEqual(self.record(target), ["int made.Up%d(long)" % n for n in (1, 2, 3)])

    def test_recorded_when_it_changed(self):
        """An address that had two names during the recording gets none."""
        target = self.start_jit()
        self.write_map(map_path(target.pid), self.map_text().rsplit("\n", 1)[0] + "\n")

        def change():
            with open(map_path(target.pid), "a") as file:
                file.write("%x 10 other\n%x 20 int made.Up1(long)\n"
                           % (self.area + 0x208, self.area + 0x100))
        self.assertEqual(self.record(target, change),
                         ["int made.Up1(long)", "[jit]", "int made.Up3(long)"])

    def test_recorded_with_a_late_map(self):
        """There was no map when such code was first seen, so all its lines count as added."""
        target = self.start_jit()

        def late():
            lines = self.map_text().split("\n", 1)[1]
            self.write_map(map_path(target.pid), "%x 20 moved\n" % (self.area + 0x200) + lines)
        self.assertEqual(self.record(target, late),
                         ["int made.Up1(long)", "[jit]", "int made.Up3(long)"])

    def test_recorded_until_the_end(self):
        """The recording has the map even if the process and its file are gone."""
        target = self.start_jit()
        self.write_map(map_path(target.pid))
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "recording")
            process = subprocess.Popen([STACKSNAP, "record", "-o", path, str(target.pid)],
                                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(lambda: process.poll() is None and process.kill())
            wait_until(lambda: count_samples(path), "samples")
            self.remove(map_path(target.pid))
            target.finish()
            self.assertEqual(process.wait(LIMIT_S), 0)
            text = self.run_tool("report", "-f", "folded", path, status=(0, 1)).stdout.decode()
        self.assertIn(";int made.Up1(long);int made.Up2(long);int made.Up3(long);", text)

    def test_a_snapshot_as_a_recording(self):
        target = self.start_jit()
        self.write_map(map_path(target.pid))
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "snapshot")
            self.run_tool("-f", "recording", "-o", path, target.pid)
            self.remove(map_path(target.pid))
            text = self.run_tool("report", "-f", "folded", path, status=(0, 1)).stdout.decode()
        self.assertIn(";int made.Up1(long);int made.Up2(long);int made.Up3(long);", text)

    def test_harmful_names_are_escaped(self):
        target = self.start_jit()
        self.write_map(map_path(target.pid), "%x 1000 \x1b]0;x\x07%s\n" % (
            self.area, "long" * 100000))
        text = self.run_tool(target.pid).stdout.decode()
        self.assertIn("\\x1b]0;x\\x07longlong", text)
        self.assertNotIn("\x1b", text)

    def assert_not_taken(self, target):
        snapshot = self.snap(target.pid)
        self.assert_stack(snapshot, "jitted", UNNAMED)

    def test_a_link_is_rejected(self):
        target = self.start_jit()
        path = map_path(target.pid)
        directory = tempfile.mkdtemp(dir="/tmp", prefix="stacksnap-jit-")
        self.addCleanup(shutil.rmtree, directory)
        self.write_map(directory + "/map")
        os.symlink(directory + "/map", path)
        self.assert_not_taken(target)
        os.unlink(path)
        os.link(directory + "/map", path)
        self.assert_not_taken(target)

    def test_a_special_file_is_rejected(self):
        target = self.start_jit()
        path = map_path(target.pid)
        os.mkfifo(path)
        self.assert_not_taken(target)  # and does not wait for a writer
        os.unlink(path)
        os.mkdir(path)
        self.addCleanup(os.rmdir, path)
        self.addCleanup(setattr, self, "remove", lambda path: None)
        self.assert_not_taken(target)

    def test_an_earlier_process_with_this_pid(self):
        target = self.start_jit()
        self.write_map(map_path(target.pid))
        os.utime(map_path(target.pid), (1000000000, 1000000000))
        self.assert_not_taken(target)

    def test_a_map_of_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give a file away")
        target = self.start_jit()
        self.write_map(map_path(target.pid))
        os.chown(map_path(target.pid), 4711, 4711)
        self.assert_not_taken(target)

    def test_namespaces(self):
        """In a pid and mount namespace with its own /tmp, the name of the map has the inner pid;
        a file of that name outside belongs to another process."""
        if os.geteuid() != 0:
            self.skipTest("only root can make these namespaces")
        command = ["unshare", "--fork", "--pid", "--kill-child", "--mount-proc", "sh", "-c",
                   'mount -t tmpfs none /tmp && exec "$0"']
        if subprocess.run(command + ["true"], stderr=subprocess.DEVNULL,
                          timeout=LIMIT_S).returncode:
            self.skipTest("namespaces cannot be made here")
        program = os.path.join(TARGETS, "jit")
        if os.path.realpath(program).startswith("/tmp/"):  # which is hidden
            directory = tempfile.TemporaryDirectory(dir="/var/tmp")
            self.addCleanup(directory.cleanup)
            program = shutil.copy(program, directory.name)
        outer = self.start_command(command + [program])
        self.area = outer.fact("area")
        pid = int(read_text("/proc/%d/task/%d/children" % (outer.pid, outer.pid)))
        inner = int(status_field(pid, "NSpid").split()[-1])
        self.assertNotEqual(inner, pid)
        self.assertEqual(os.listdir("/proc/%d/root/tmp" % pid), [])
        self.assert_stack(self.snap(pid), "jitted", UNNAMED)
        self.write_map("/proc/%d/root/tmp/perf-%d.map" % (pid, inner))
        self.assert_stack(self.snap(pid), "jitted", self.named)


NODE = """
const cell = new Int32Array(new SharedArrayBuffer(4));
function innermost(depth) {
	if (depth === 0) {
		console.log('ready');
		return Atomics.wait(cell, 0, 0);
	}
	return innermost(depth - 1) + 1;
}
innermost(5);
"""


class Node(EndToEnd):
    """--native: the runtime, which is known, wins over a map."""

    def test_names_of_functions(self):
        node = shutil.which("node")
        if not node:
            self.skipTest("node is missing: install nodejs")
        directory = tempfile.mkdtemp(prefix="stacksnap-node-")
        self.addCleanup(shutil.rmtree, directory)
        target = self.start_command([node, "--perf-basic-prof",
                                     "--interpreted-frames-native-stack", "-e", NODE],
                                    cwd=directory)
        self.addCleanup(os.unlink, map_path(target.pid))
        wait_until(lambda: "innermost" in read_text(map_path(target.pid)), "the perf map")
        thread = self.snap(target.pid, "--native").thread(target.pid)
        self.assertEqual(thread["end"], "root")
        names = [f["symbol"] or "" for f in thread["frames"] if f["area"] == "[jit]"]
        self.assertEqual(len([n for n in names if re.match(r"(JS|LazyCompile):.?innermost ", n)]), 6, names)
        self.assertTrue(all(names), names)

    def test_recorded(self):
        node = shutil.which("node")
        if not node:
            self.skipTest("node is missing: install nodejs")
        directory = self.enterContext(tempfile.TemporaryDirectory())  # node writes a log there
        target = self.start_command([node, "--perf-basic-prof",
                                     "--interpreted-frames-native-stack", "-e", NODE],
                                    cwd=directory)
        wait_until(lambda: "innermost" in read_text(map_path(target.pid)), "the perf map")
        lines = record(self, target, options=["--native"])
        found = [re.findall(r"(?:JS|LazyCompile):.?innermost ", line) for line in lines]
        self.assertIn(6, map(len, found), lines)


JAVA = """
public class Stack {
	static final Object lock = new Object();
	static int descend(int depth) throws Exception {
		if (depth == 0) {
			synchronized (lock) {
				System.out.println("ready");
				for (;;)
					lock.wait();
			}
		}
		return descend(depth - 1) + 1;
	}
	public static void main(String[] words) throws Exception {
		Thread thread = new Thread(() -> {
			try {
				descend(20);
			} catch (Exception e) {
			}
		}, "descends");
		thread.start();
		thread.join();
	}
}
"""


# Everything is compiled before its first call, so that each method has a frame.
JAVA_OPTIONS = ["-XX:+PreserveFramePointer", "-Xcomp", "-XX:TieredStopAtLevel=1",
                "-XX:-Inline", "-XX:CompileOnly=Stack.descend"]


def record(test, target, meanwhile=lambda: None, options=()):
    """The folded report after the process and its map are gone."""
    directory = test.enterContext(tempfile.TemporaryDirectory())
    path = os.path.join(directory, "recording")
    process = subprocess.Popen([STACKSNAP, "record", "-o", path, str(target.pid)],
                               stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    test.addCleanup(lambda: process.poll() is None and process.kill())
    wait_until(lambda: count_samples(path), "samples")
    meanwhile()
    process.send_signal(signal.SIGINT)
    test.assertEqual(process.wait(LIMIT_S), 0)
    target.kill()
    os.unlink(map_path(target.pid))
    return test.run_tool("report", "-f", "folded", *options, path, status=(0, 1)).stdout.decode().splitlines()


class Java(EndToEnd):
    def test_names_of_methods(self):
        """The runtime, which is known, wins over a map, as jcmd writes it."""
        java, jcmd = shutil.which("java"), shutil.which("jcmd")
        if not java or not jcmd:
            self.skipTest("java is missing: install default-jdk-headless")
        directory = tempfile.mkdtemp(prefix="stacksnap-java-")
        self.addCleanup(shutil.rmtree, directory)
        with open(directory + "/Stack.java", "w") as file:
            file.write(JAVA)
        target = self.start_command([java, *JAVA_OPTIONS, directory + "/Stack.java"])
        thread = self.java_thread(self.snap(target.pid, status=(0, 1)))
        self.assertEqual(thread["end"], "root")
        names = [f["symbol"] for f in thread["frames"]]
        subprocess.run([jcmd, str(target.pid), "Compiler.perfmap"], check=True,
                       timeout=LIMIT_S, stdout=subprocess.DEVNULL)
        self.addCleanup(os.unlink, map_path(target.pid))
        snapshot = self.snap(target.pid)
        thread = self.java_thread(snapshot)
        self.assertEqual([f["symbol"] for f in thread["frames"]], names)
        self.assertEqual(names.count("Stack.descend"), 21, names)
        for thread in snapshot.threads:
            self.assertEqual(thread["end"], "root", thread["name"])

    def test_recorded(self):
        """The map is requested just before the recording ends."""
        java, jcmd = shutil.which("java"), shutil.which("jcmd")
        if not java or not jcmd:
            self.skipTest("java is missing: install default-jdk-headless")
        directory = self.enterContext(tempfile.TemporaryDirectory())
        with open(directory + "/Stack.java", "w") as file:
            file.write(JAVA)
        target = self.start_command([java, *JAVA_OPTIONS, directory + "/Stack.java"])
        self.addCleanup(lambda: os.path.exists(map_path(target.pid)) and
                        os.unlink(map_path(target.pid)))

        def ask():
            subprocess.run([jcmd, str(target.pid), "Compiler.perfmap"], check=True,
                           timeout=LIMIT_S, stdout=subprocess.DEVNULL)
        lines = [line for line in record(self, target, ask) if ";descends;" in line]
        self.assertTrue(lines)
        for line in lines:
            # Without parameters if they are not from the map, but from the VM itself.
            self.assertEqual(len(re.findall(r"Stack\.descend\b", line)), 21, line)

    def java_thread(self, snapshot):
        return snapshot.thread("descends")


if __name__ == "__main__":
    main()
