"""The command lines of docs/fleet.md for launchers, as they are written there: hosts are an sshd each, in
namespaces of their own (UTS, pid, mount). And the command that kubectl debug runs in a pod. Debian
packages: clustershell, pdsh, ansible-core, openssh-server."""
# ctest: real release-only slow

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests/e2e"))

import databases  # noqa: E402
from harness import LIMIT_S, STACKSNAP, makes_namespaces, wait_until  # noqa: E402

HOSTS = 3
PROCESSES = 2
# A host: arguments are its name, its address, the port and the directory of the test. Each has a /tmp of
# its own, in which only that directory and the tool are.
HOST = """
set -e
hostname $1
mount --bind "$4" /mnt
mount -t tmpfs none /tmp
mkdir -p "$4"
mount --bind /mnt "$4"
for i in $(seq %d); do "$4/bin/app" 1000 & done
mkdir -p /run/sshd
exec /usr/sbin/sshd -D -e -f /dev/null -o Port=$3 -o ListenAddress=$2 -o HostKey="$4/host" \\
	-o AuthorizedKeysFile="$4/user.pub" -o StrictModes=no -o UsePAM=no -o PidFile=none \\
	-o PermitRootLogin=yes -o Subsystem="sftp internal-sftp" -o SetEnv=PATH="$4/bin:/usr/bin:/bin"
""" % PROCESSES
SSH = """Host *
User root
Port {port}
IdentityFile {top}/user
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
LogLevel ERROR
"""


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def command(word):
    """The command line of fleet.md that begins with a word; it may have several lines."""
    with open(os.path.join(os.environ["SOURCE"], "docs/fleet.md"), encoding="utf-8") as file:
        return re.search(r"^(%s .*(\n    .*)*)" % word, file.read(), re.MULTILINE).group(1)


@unittest.skipUnless(os.geteuid() == 0 and makes_namespaces(), "only root makes hosts")
class Launchers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not os.path.exists("/usr/sbin/sshd"):
            raise unittest.SkipTest("missing: sshd")
        top = cls.enterClassContext(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        cls.top, cls.port = top, databases.free_port()
        os.chmod(top, 0o755)
        os.mkdir(os.path.join(top, "bin"))
        shutil.copy(STACKSNAP, os.path.join(top, "bin/stacksnap"))
        shutil.copy("/bin/sleep", os.path.join(top, "bin/app"))
        for name in "host", "user":
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                            os.path.join(top, name)], check=True)
        config = SSH.format(port=cls.port, top=top)
        for number in range(1, HOSTS + 1):
            config += "Host node%d\nHostName 127.0.0.%d\n" % (number, number)
        write(os.path.join(top, "ssh"), config)
        write(os.path.join(top, "home/.config/clustershell/clush.conf"),
              "[Main]\nssh_options: -F %s/ssh\n" % top)
        write(os.path.join(top, "inventory"), "[app]\n%s[app:vars]\nansible_ssh_common_args=-F %s/ssh\n"
              "ansible_python_interpreter=/usr/bin/python3\n" %
              ("".join("node%d\n" % (i + 1) for i in range(HOSTS)), top))
        cls.environment = dict(os.environ, HOME=os.path.join(top, "home"), B="batch",
                               PDSH_RCMD_TYPE="ssh", PDSH_SSH_ARGS_APPEND="-F %s/ssh" % top,
                               ANSIBLE_INVENTORY=os.path.join(top, "inventory"))
        for number in range(1, HOSTS + 1):
            cls.start_host(number)

    @classmethod
    def start_host(cls, number):
        name = "node%d" % number
        log = cls.enterClassContext(open(os.path.join(cls.top, name + ".log"), "wb"))
        host = subprocess.Popen(["unshare", "-m", "-u", "-p", "-f", "--mount-proc", "--kill-child", "sh",
                                 "-c", HOST, "sh", name, "127.0.0.%d" % number, str(cls.port),
                                 cls.top], stdin=subprocess.DEVNULL, stderr=log)
        cls.addClassCleanup(host.wait)
        cls.addClassCleanup(host.kill)
        wait_until(lambda: subprocess.run(
            ["ssh", "-F", os.path.join(cls.top, "ssh"), name, "pgrep -cx app"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=LIMIT_S,
            check=False).stdout == b"%d\n" % PROCESSES, name)

    def check(self, word, result):
        """Runs the command of fleet.md; result is the pattern of the files with its rows."""
        if not shutil.which(word):
            self.skipTest("missing: " + word)
        directory = os.path.join(self.top, word)
        os.mkdir(directory)
        line = command(word).replace("[1-99]", "[1-%d]" % HOSTS)
        done = subprocess.run(["sh", "-c", line], cwd=directory, env=self.environment, timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        said = "%s\n%s" % (line, done.stdout.decode()[-3000:])
        self.assertEqual(done.returncode, 0, said)
        rows = []
        for path in (os.path.join(directory, name) for name in result):
            self.assertTrue(os.path.exists(path), said)
            with open(path, encoding="ascii") as file:
                rows += map(json.loads, file)
        snapshots = [row for row in rows if row["table"] == "snapshots"]
        self.assertEqual(sorted(row["host"] for row in snapshots),
                         sorted("node%d" % (i // PROCESSES + 1) for i in range(HOSTS * PROCESSES)), said)
        self.assertEqual({(row["process"], row["batch"], row["problem"]) for row in snapshots},
                         {("app", "batch", "")}, said)
        self.assertEqual(sum(row["threads"] for row in snapshots),
                         sum(row["table"] == "threads" for row in rows), said)

    def test_clush(self):
        self.check("clush", ["rows.ndjson"])

    def test_pdsh(self):
        self.check("pdsh", ["rows.ndjson"])

    def test_ansible(self):
        self.check("ansible", ["rows/node%d/tmp/batch.ndjson" % (i + 1) for i in range(HOSTS)])

    def test_pod(self):
        """What kubectl debug --target runs: in the pid namespace of the container, but not in its file
        system, the process is number 1."""
        line = command("kubectl debug").split(" -- ")[1]
        container = subprocess.Popen(["unshare", "-m", "-p", "-f", "--mount-proc", "--kill-child",
                                      os.path.join(self.top, "bin/app"), "1000"])
        self.addCleanup(container.wait)
        self.addCleanup(container.kill)
        children = "/proc/%d/task/%d/children" % (container.pid, container.pid)

        def app():
            with open(children, encoding="ascii") as file:
                found = file.read().split()
            return found and os.path.basename(os.readlink("/proc/%s/exe" % found[0])) == "app" and found[0]
        wait_until(app, "the container")
        done = subprocess.run(["unshare", "-m", "nsenter", "-t", app(), "-p", "sh", "-c",
                               "mount -t proc proc /proc && " + line],
                              env=dict(self.environment, PATH=self.top + "/bin:/usr/bin:/bin:/usr/sbin"),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, 0, (line, done))
        last = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual((last["pid"], last["process"], last["labels"], last["problem"]),
                         (1, "app", ["pod=POD"], ""), last)


if __name__ == "__main__":
    unittest.main(verbosity=2)
