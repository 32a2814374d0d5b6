"""Settings of a machine that restrict stacksnap: what it shows with them, and that it names the setting
where that is the reason. They are changed for good, some until the next boot: only the machines of
machines.py run this."""

import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import EndToEnd, LIMIT_S, MAIN_STACK, STACKSNAP, TARGETS, main, read_text, wait_until

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all",
          "--bounding-set=-all"]
DENY = os.path.join(TARGETS, "deny_syscalls")
SCOPE = "kernel.yama.ptrace_scope"
LOCKDOWN = "/sys/kernel/security/lockdown"
BPF, PERF_EVENT_OPEN = "321", "298"


def path_of(setting):
    return "/proc/sys/" + setting.replace(".", "/")


@unittest.skipUnless(os.path.exists("/mnt/job.json"), "not in a machine of tests/machines")
class Settings(EndToEnd):
    def set(self, setting, value, restore=True):
        if not os.path.exists(path_of(setting)):
            self.skipTest("no " + setting)
        before = read_text(path_of(setting))

        def write(text):
            with open(path_of(setting), "w", encoding="ascii") as file:
                file.write(text)
        if restore:
            self.addCleanup(write, before)
        write(str(value))

    def tool(self, *words, user=False, prefix=()):
        done = subprocess.run([*prefix, *(NOBODY if user else []), STACKSNAP, *map(str, words)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=LIMIT_S, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def threads(self, user=False):
        command = [*(NOBODY if user else []), os.path.join(TARGETS, "threads"), "2", "5"]
        return self.start_command(command)

    def assert_refused(self, reason, *words, user=False):
        """Nothing is shown, or threads without stacks, and the reason is one line."""
        status, output, errors = self.tool(*words, user=user)
        self.assertIn(status, (1, 2), (output, errors))
        self.assertEqual([line for line in errors.splitlines() if reason in line][1:], [], errors)
        self.assertIn(reason, errors)

    def assert_whole(self):
        """Root's snapshot and recording of a process show all of it."""
        target = self.start("threads", 2, 5)
        for mode in (None, "stop", "no-stop"):
            snapshot = self.snap(target.pid, mode=mode)
            self.assert_stack(snapshot, target.pid, MAIN_STACK)
        self.record(target.pid)

    def record(self, pid, *options, prefix=()):
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        path = os.path.join(directory, "recording")
        status, _, errors = self.tool("record", "-d", "1s", *options, "-o", path, pid, prefix=prefix)
        self.assertEqual(status, 0, errors)
        status, output, errors = self.tool("report", path)
        self.assertEqual(status, 0, errors)
        self.assertIn("target_wait", output)
        return output


class Yama(Settings):
    def test_1(self):
        """A user sees what he starts himself; root sees all."""
        self.set(SCOPE, 1)
        # not one of targets/: they allow it (PR_SET_PTRACER)
        target = self.start_command([*NOBODY, "sh", "-c", "echo ready; read line"])
        self.assert_refused("only its own ancestors may trace process %d (%s is 1)" % (
            target.pid, SCOPE), target.pid, user=True)
        self.assert_whole()
        status, output, errors = self.tool("run", "--", os.path.join(TARGETS, "crash"), "segv", user=True)
        self.assertEqual(status, -signal.SIGSEGV)
        self.assertIn("read_address", output + errors)

    def test_2(self):
        """Only root sees anything."""
        self.set(SCOPE, 2)
        target = self.threads(user=True)
        self.assert_refused("only root may trace (%s is 2)" % SCOPE, target.pid, user=True)
        self.assert_whole()

    def test_3(self):
        """Nobody sees stacks."""
        self.set(SCOPE, 3, restore=False)
        target = self.start("threads", 2, 5, settle=False)
        for words in ([], ["--mode=no-stop"], ["hang"], ["top", "--once"], ["heap"]):
            with self.subTest(words=words):
                self.assert_refused("ptrace is disabled on this machine (%s is 3)" % SCOPE, *words,
                                    target.pid)
        with self.subTest(words="run"):
            status, output, errors = self.tool("run", "--", os.path.join(TARGETS, "crash"), "segv")
            self.assertEqual(status, -signal.SIGSEGV, (output, errors))
            self.assertIn(SCOPE, errors)

    def test_3_handler(self):
        """The handler reports a crash, and --install says what is different."""
        self.set(SCOPE, 3, restore=False)
        directory = tempfile.mkdtemp(dir="/var/lib")
        self.addCleanup(shutil.rmtree, directory)
        program = os.path.join(directory, "s")
        shutil.copy(STACKSNAP, program)
        done = subprocess.run([program, "core", "--install", "--directory=" + directory + "/r"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
        self.assertIn(SCOPE + " is 3", done.stderr)
        done = subprocess.run([os.path.join(TARGETS, "crash"), "segv"], timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, -signal.SIGSEGV)
        wait_until(lambda: self.tool("report", directory + "/r")[0] == 0, "the report")
        output = self.tool("report", directory + "/r")[1]
        self.assertIn("read_address", output)


class Perf(Settings):
    def test_paranoid(self):
        """Without events of the kernel, users still get snapshots and recordings by stops."""
        for value in ("3", "4"):
            self.set("kernel.perf_event_paranoid", value)
            self.assert_whole()
        target = self.threads(user=True)
        status, output, errors = self.tool(target.pid, user=True)
        self.assertEqual(status, 0, errors)
        self.assertIn("target_wait", output)

    def test_no_perf(self):
        target = self.start("threads", 2, 5)
        self.record(target.pid, prefix=(DENY, PERF_EVENT_OPEN))

    def test_no_bpf(self):
        target = self.start("threads", 2, 5)
        self.record(target.pid, prefix=(DENY, BPF))

    def test_unprivileged_bpf(self):
        self.set("kernel.unprivileged_bpf_disabled", 1, restore=False)
        self.assert_whole()


class Namespaces(Settings):
    def test_no_user_namespaces(self):
        self.set("user.max_user_namespaces", 0)
        self.assert_whole()
        target = self.threads(user=True)
        status, output, errors = self.tool(target.pid, user=True)
        self.assertEqual(status, 0, errors)
        self.assertIn("target_wait", output)

    def test_hidden_processes(self):
        """hidepid=2: a process of another user is as if it were not there."""
        subprocess.run(["mount", "-o", "remount,hidepid=2", "/proc"], check=True)
        self.addCleanup(subprocess.run, ["mount", "-o", "remount,hidepid=0", "/proc"], check=True)
        self.assert_whole()
        target = self.start("threads", 2, 5)
        self.assert_refused("there is no process %d" % target.pid, target.pid, user=True)

    def test_cgroup_1(self):
        """A frozen process in a hierarchy of version 1."""
        place = "/sys/fs/cgroup"
        subprocess.run(["umount", place], check=False)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], check=True)
        self.addCleanup(subprocess.run, ["umount", "-R", place], check=False)
        freezer = os.path.join(place, "freezer")
        os.mkdir(freezer)
        if subprocess.run(["mount", "-t", "cgroup", "-o", "freezer", "freezer", freezer],
                          stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("no freezer of version 1")
        self.assert_whole()
        target = self.start("threads", 2, 5)
        group = os.path.join(freezer, "one")
        os.mkdir(group)

        def write(name, text):
            with open(os.path.join(group, name), "w", encoding="ascii") as file:
                file.write(text)
        write("cgroup.procs", str(target.pid))
        write("freezer.state", "FROZEN")
        wait_until(lambda: "FROZEN" in read_text(os.path.join(group, "freezer.state")), "the freezer")
        try:
            snapshot = self.snap(target.pid, status=(0, 1))
            self.assert_stack(snapshot, target.pid, MAIN_STACK)
        finally:
            write("freezer.state", "THAWED")


class SecurityModules(Settings):
    def test_apparmor(self):
        """A profile that denies ptrace: its name is not known, but what kind of thing denies it."""
        if read_text("/sys/module/apparmor/parameters/enabled") != "Y\n":
            self.skipTest("no AppArmor")
        if not shutil.which("apparmor_parser"):
            self.skipTest("no apparmor_parser")
        profile = "profile restricted { file, capability, deny ptrace, signal, unix, network, }"
        subprocess.run(["apparmor_parser", "-r"], input=profile, text=True, check=True)
        target = self.start("threads", 2, 5)
        status, output, errors = self.tool(target.pid, prefix=("aa-exec", "-p", "restricted", "--"))
        self.assertIn(status, (1, 2), output)
        self.assertIn("AppArmor", errors)

    def test_lockdown(self):
        """Snapshots and recordings are whole; uprobes are refused, and the reason is named."""
        if "confidentiality" not in read_text(LOCKDOWN):
            self.skipTest("no lockdown")
        for level in ("integrity", "confidentiality"):
            if "[%s]" % level not in read_text(LOCKDOWN):
                with open(LOCKDOWN, "w", encoding="ascii") as file:
                    file.write(level)
            self.assert_whole()
        target = self.start("threads", 2, 5)
        self.assert_refused("lockdown", "trace", "-d", "1s", "-p", "target_wait", target.pid)


if __name__ == "__main__":
    main()
