"""A machine whose first process is systemd: what the package installs works there."""

import glob
import os
import shutil
import signal
import stat
import subprocess
import unittest

from harness import EndToEnd, LIMIT_S, STACKSNAP, TARGETS, main, read_text, wait_until

UNITS = "/etc/systemd/system"
PATTERN = "/proc/sys/kernel/core_pattern"
INPUT = "/run/input"  # that never ends


def systemctl(*words):
    return subprocess.run(["systemctl", *words], stdout=subprocess.PIPE, timeout=LIMIT_S, text=True,
                          check=True).stdout.strip()


@unittest.skipUnless(read_text("/proc/1/comm") == "systemd\n" and os.path.exists("/mnt/job.json"),
                     "not in a machine of tests/machines with systemd")
class Booted(EndToEnd):
    @classmethod
    def setUpClass(cls):
        shutil.copy(STACKSNAP, "/usr/bin/stacksnap")
        if not os.path.exists(INPUT):
            os.mkfifo(INPUT)
            os.chmod(INPUT, 0o666)

    def start_service(self, command):
        """Returns its main process."""
        subprocess.run(["systemd-run", "--quiet", "--unit=served", "sh", "-c", "exec %s <>%s" % (command, INPUT)], check=True)
        self.addCleanup(subprocess.run, ["systemctl", "stop", "served"], check=False)
        pid = int(systemctl("show", "-P", "MainPID", "served"))
        wait_until(lambda: read_text("/proc/%d/comm" % pid).strip() == command.split()[0][-15:].split("/")[-1],
                   "the program")
        return pid

    def test_pattern(self):
        """The handler is there after what each boot does, and reports a crash."""
        subprocess.run(["stacksnap", "core", "--install"], check=True)
        self.addCleanup(subprocess.run, ["stacksnap", "core", "--uninstall"], check=True)
        with open(PATTERN, "w", encoding="ascii") as file:
            file.write("core")
        systemctl("restart", "systemd-sysctl")
        self.assertIn("stacksnap", read_text(PATTERN))
        done = subprocess.run([os.path.join(TARGETS, "crash"), "segv"], timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, -signal.SIGSEGV)
        wait_until(lambda: "read_address" in subprocess.run(
            ["stacksnap", "report", "/var/lib/stacksnap"], stdout=subprocess.PIPE, text=True,
            stderr=subprocess.DEVNULL, check=False).stdout, "the report")

    def test_unit(self):
        """A snapshot of a service that hangs is kept, for root only."""
        shutil.copy(os.path.join(os.environ["SOURCE"], "share", "systemd", "stacksnap-hang@.service"), UNITS)
        self.start_service(os.path.join(TARGETS, "deadlock") + " globals")
        systemctl("daemon-reload")
        systemctl("start", "stacksnap-hang@served")
        self.addCleanup(systemctl, "stop", "stacksnap-hang@served")
        reports = "/var/lib/stacksnap-hang/served.*.txt"
        wait_until(lambda: any("DEADLOCK" in read_text(path) for path in glob.glob(reports)), "a snapshot")
        self.assertEqual(stat.S_IMODE(os.stat(glob.glob(reports)[0]).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(reports)).st_mode), 0o700)

    def test_first_process(self):
        snapshot = self.snap(1)
        names = [frame["symbol"] for frame in snapshot.thread(1)["frames"]]
        self.assertIn("epoll_wait", names)
        systemctl("daemon-reload")  # it still answers


if __name__ == "__main__":
    main()
