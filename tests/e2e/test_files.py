"""The output about changed files and namespaces, with and without privileges.
test_situations.py checks the names."""
# ctest: long-with-sanitizers

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "survive"))

import situations  # noqa: E402
from harness import (EndToEnd, LIMIT_S, MODES, STACKSNAP, Snapshot, TARGETS,  # noqa: E402
                     canonical, for_everyone, main, read_text, status_field,
                     task_states, wait_until)
from recording import Recording, ZSTD  # noqa: E402
from subjects import Lab, Unavailable  # noqa: E402

NOBODY = 65534
WHOLE = ["target_block", "right_inner", "right_outer", "worker_routine",
         "target_thread_main"]


class Names(EndToEnd):
    def own_names(self, snapshot, key="worker"):
        thread = snapshot.thread(key)
        self.assertEqual(thread["end"], "root")
        return [canonical(frame["symbol"]) for frame in snapshot.frames(thread)]


class Files(Names):
    def subject(self, make):
        lab = Lab()
        self.enterContext(lab)
        try:
            return next(make(lab))
        except Unavailable as reason:
            return self.skipTest(str(reason))

    def test_deleted_executable_is_reported(self):
        subject = self.subject(situations.deleted_executable)
        for mode in MODES:
            snapshot = self.snap(subject.pid, mode=mode)
            module, = [each for each in snapshot.modules
                       if os.path.basename(each["path"]) == "program"]
            self.assertEqual((module["deleted"], module["problem"]), (True, None))

    def test_paths_are_those_inside(self):
        """In another root the paths are those that the process itself knows."""
        for make in (situations.mount_namespace, situations.changed_root):
            with self.subTest(make=make.__name__):
                subject = self.subject(make)
                inside = subject.target.command[0]
                snapshot = self.snap(subject.pid)
                paths = {module["path"] for module in snapshot.modules}
                self.assertEqual(snapshot.data["process"]["executable"], inside)
                self.assertLessEqual({inside, subject.target.command[1]}, paths)
                for path in paths:
                    self.assertNotIn("/root/", path)

    def test_ids_of_a_pid_namespace(self):
        subject = self.subject(situations.pid_namespace)
        for mode in MODES:
            snapshot = self.snap(subject.pid, mode=mode)
            process = snapshot.data["process"]
            self.assertEqual((process["pid"], process["inner_pid"]), (subject.pid, 1))
            for tid in task_states(subject.pid):
                inner = int(status_field(tid, "NSpid").split()[-1])
                self.assertEqual(snapshot.thread(tid)["inner_tid"], inner)
            text = self.run_tool("--mode=" + mode, subject.pid).stdout.decode()
            self.assertIn("pid %d[1 in its pid namespace]" % subject.pid, text)
            self.assertIn("%d[1]" % subject.pid, text)

    def test_ids_without_a_pid_namespace(self):
        target = self.start("swap_right")
        snapshot = self.snap(target.pid)
        for thread in snapshot.threads:
            self.assertEqual(thread["inner_tid"], thread["tid"])
        self.assertNotIn("[", self.run_tool(target.pid).stdout.decode().splitlines()[0])


class Late(Names):
    def test_another_program_before_files_are_opened(self):
        """The same addresses are then in another file, with other functions. strace delays the
        tool at each file that it opens."""
        if not shutil.which("strace"):
            self.skipTest("strace is missing")
        program = os.path.join(TARGETS, "swap_right_static")
        other = os.path.join(TARGETS, "swap_wrong_static")
        for delay_ms in range(100, 1300, 40):  # after the check, and before the last file
            target = self.start_command([program, other, str(delay_ms)])
            snapshot = Snapshot(subprocess.run(
                ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=openat", "-e",
                 "inject=openat:delay_enter=40000", STACKSNAP, "-f", "json", str(target.pid)],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                timeout=LIMIT_S, env=dict(os.environ, ASAN_OPTIONS=os.environ.get(
                    "ASAN_OPTIONS", "") + ":detect_leaks=0")))  # it would have to ptrace
            # What is read of a running thread is delayed, too: of another program, it is guessed.
            if snapshot.thread(target.pid)["end"] != "root":
                continue
            if "await_tracer" not in self.own_names(snapshot, target.pid):
                continue  # the other one was there before: it is what is shown
            names = self.own_names(snapshot)
            self.assertTrue(names[1:6] == WHOLE or None in names[1:6], names)
            self.assertFalse({"wrong_inner", "wrong_outer"}.intersection(names), names)
            self.assertEqual(os.path.basename(snapshot.data["process"]["executable"]),
                             "swap_right_static")
            self.assertEqual(snapshot.data["process"]["name"], "swap_right_stat")
            break
        else:
            self.fail("the program never changed in between")


@unittest.skipIf(os.geteuid() != 0, "only root can become another user")
class WithoutPrivileges(Names):
    """Only a privileged process can open the very file that is mapped."""

    def unprivileged(self, *arguments, strip=None):
        def drop():
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)

        lab = Lab()
        self.enterContext(lab)
        os.chmod(lab.directory, 0o755)
        program = lab.copy("swap_right", "program")
        if strip:
            subprocess.run(["objcopy", "--remove-section=.note.gnu.%s" % strip, program],
                           check=True)
        words = [lab.copy("libswap_right.so", name) for name in arguments]
        target = lab.start_file(program, *words, preexec_fn=drop)
        return lab, target, {"user": NOBODY, "group": NOBODY, "extra_groups": []}

    def snap_as(self, pid, options):
        result = self.run_tool("-f", "json", pid, status=(0, 1),
                               executable=for_everyone(STACKSNAP), **options)
        self.assert_free(pid)
        return Snapshot(result)

    def test_as_it_was(self):
        _, target, options = self.unprivileged()
        self.assertEqual(self.own_names(self.snap_as(target.pid, options))[1:6], WHOLE)

    @unittest.skipUnless(ZSTD, "libzstd cannot be loaded")
    @unittest.skipUnless(shutil.which("objcopy"), "objcopy is missing: install binutils")
    def test_recording(self):
        """Files are opened: what is known of one without a build-id is from the file."""
        lab, target, options = self.unprivileged(strip="build-id")
        path = os.path.join(lab.directory, "recording")
        os.chmod(lab.directory, 0o777)
        result = self.run_tool("record", "-d", "200ms", "-o", path, target.pid, status=(0, 1),
                               executable=for_everyone(STACKSNAP), **options)
        modules = {module.path: module for module in Recording(path).modules}
        program = os.path.join(lab.directory, "program")
        self.assertIn(program, modules, result.stderr)
        self.assertFalse(modules[program].build_id, result.stderr)
        self.assertIsNotNone(modules[program].file, result.stderr)
        self.assertEqual(modules[program].file[0], os.stat(program).st_size)

    def test_replaced_executable(self):
        """Its stack is read from its memory. Names are right or there are none."""
        lab, target, options = self.unprivileged()
        lab.replace("swap_wrong", "program")
        snapshot = self.snap_as(target.pid, options)
        names = self.own_names(snapshot)
        self.assertEqual(len([name for name in names if name is None]), 5, names)
        module, = [each for each in snapshot.modules
                   if os.path.basename(each["path"]) == "program"]
        self.assertTrue(module["problem"])

    def test_replaced_library(self):
        lab, target, options = self.unprivileged("library.so")
        lab.replace("libswap_wrong.so", "library.so")
        names = self.own_names(self.snap_as(target.pid, options))
        self.assertNotIn("wrong_deep", names)
        self.assertNotIn("wrong_deeper", names)
        # it calls the program, whose names are there, and is called by it
        self.assertEqual(names[1], "target_block")
        self.assertEqual(names[4:8], WHOLE[1:])


@unittest.skipIf(os.environ.get("SANITIZED"), "a sanitizer reports SIGBUS itself")
@unittest.skipIf(os.geteuid() != 0, "only root can stop the child that reads files")
class Truncated(EndToEnd):
    TRIES = 40

    def reads(self, pid, path):
        """The child of the tool that has mapped the file, or None."""
        try:
            for tid in os.listdir("/proc/%d/task" % pid):
                for child in read_text("/proc/%d/task/%s/children" % (pid, tid)).split():
                    if path in read_text("/proc/%s/maps" % child):
                        return int(child)
        except OSError:
            pass
        return None

    def test_debug_file_is_truncated(self):
        """While it is read: then its functions have no names, which is said, and the others do."""
        directory = tempfile.mkdtemp(prefix="stacksnap-files-")
        self.addCleanup(shutil.rmtree, directory)
        program, debug = (os.path.join(directory, name) for name in ("prog", "prog.debug"))
        for command in (["--only-keep-debug", STACKSNAP, debug],
                        ["--strip-all", "--add-gnu-debuglink=" + debug, STACKSNAP, program]):
            if not shutil.which("objcopy") or subprocess.run(["objcopy", *command]).returncode:
                self.skipTest("objcopy cannot separate debug information")
        target = subprocess.Popen([program, "run", "--", "sleep", "300"], cwd=directory,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(target.wait)
        self.addCleanup(target.terminate)  # is forwarded to the command
        wait_until(lambda: read_text("/proc/%d/syscall" % target.pid).startswith("128 "),
                   "the program to wait")
        with open(debug, "rb") as file:
            contents = file.read()
        for _ in range(self.TRIES):
            with open(debug, "wb") as file:
                file.write(contents)
            tool = subprocess.Popen([STACKSNAP, "--native", str(target.pid)], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True)
            child = None
            while not child and tool.poll() is None:
                child = self.reads(tool.pid, debug)
            if child:
                try:
                    os.kill(child, signal.SIGSTOP)
                    os.truncate(debug, 0)
                    os.kill(child, signal.SIGCONT)
                except ProcessLookupError:
                    pass
            output, errors = tool.communicate(timeout=LIMIT_S)
            self.assertIn("libc_start_call_main", output, errors)
            if "SIGBUS" in errors:
                self.assertEqual(tool.returncode, 1, errors)
                self.assertRegex(errors, "the analysis of prog crashed .SIGBUS.*, module skipped")
                self.assertRegex(output, r"prog\+0x")
                return
            self.assertIn(tool.returncode, (0, 1), errors)
        self.skipTest("the file was never truncated in time")


if __name__ == "__main__":
    main()
