"""The systemd unit that watches another unit: its commands as systemd would execute them, with a systemctl
that names a target. systemd itself only checks the unit."""

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
import unittest

from harness import EndToEnd, LIMIT_S, STACKSNAP, main, read_text, wait_until

SYSTEMD = os.path.join(os.environ["SOURCE"], "share", "systemd")
UNIT = "stacksnap-hang@.service"


def settings(name):
    """The settings of a unit file: (name, value), with continued lines joined."""
    with open(os.path.join(SYSTEMD, name), encoding="utf-8") as file:
        text = re.sub(r"\\\n\s*", " ", file.read())
    return re.findall(r"(?m)^(\w+)=(.*)$", text)


class WatchUnit(EndToEnd):
    def setUp(self):
        super().setUp()
        self.prefix = tempfile.mkdtemp(prefix="stacksnap-unit-")
        self.addCleanup(shutil.rmtree, self.prefix)
        self.state = os.path.join(self.prefix, "state")
        os.makedirs(os.path.join(self.prefix, "share", "stacksnap"))
        shutil.copytree(SYSTEMD, os.path.join(self.prefix, "share", "stacksnap", "systemd"))
        os.mkdir(os.path.join(self.prefix, "bin"))
        os.mkdir(self.state)
        os.symlink(shutil.which(STACKSNAP), os.path.join(self.prefix, "bin", "stacksnap"))

    def add_program(self, name, script):
        path = os.path.join(self.prefix, "bin", name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(path, 0o755)

    def expand(self, word):
        """The specifiers of the unit."""
        found = {"%i": "nginx", "%S": self.prefix, "%%": "%"}
        return re.sub(r"%.", lambda match: found[match[0]], word).replace(
            self.prefix + "/stacksnap-hang", self.state)

    def watch(self, pid, *drop_ins, **more):
        """Executes the command of the unit until it has reported a hang."""
        self.add_program("systemctl", '[ "$*" = "show -P MainPID nginx.service" ] && echo %d\n' % pid)
        lines = [each for name in (UNIT, *drop_ins) for each in settings(name)]
        env = dict(os.environ, PATH=os.path.join(self.prefix, "bin") + ":" + os.environ["PATH"], **more)
        for name, value in lines:
            if name == "Environment":
                env.update(word.split("=", 1) for word in shlex.split(self.expand(value)))
        command = [self.expand(word).replace("$$", "$")
                   for word in shlex.split(dict(lines)["ExecStart"])]
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, umask=0o077)

        def end():
            process.kill()
            return process.communicate(timeout=LIMIT_S)[0]
        self.addCleanup(end)
        return process, end

    def test_kept(self):
        """Without a drop-in, a snapshot of each hang is kept, for its owner only."""
        target = self.start("deadlock")
        _, end = self.watch(target.pid)
        wait_until(lambda: any("DEADLOCK" in read_text(os.path.join(self.state, name))
                               for name in os.listdir(self.state)), "a snapshot")
        name, = os.listdir(self.state)
        self.assertRegex(name, r"^nginx\..*\.%d\.txt$" % target.pid)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.state, name)).st_mode), 0o600)
        end()

    def test_sent(self):
        """With the drop-in, rows of it are sent, with the token on no command line; what cannot be sent stays."""
        target = self.start("deadlock")
        sent = os.path.join(self.prefix, "sent")
        self.add_program("curl", 'printf "%%s\\n" "$@" > %s.words\ncat > %s.config\n'
                                 'for each; do case $each in @*) cp "${each#@}" %s.part; mv %s.part %s;; esac; done\n'
                                 'exit $CURL_STATUS\n' % ((sent,) * 5))
        for status, left in (("0", 0), ("22", 1)):
            _, end = self.watch(target.pid, "push.conf", URL="https://db/?q", TOKEN="secret",
                                CURL_STATUS=status)
            wait_until(lambda: os.path.exists(sent), "the rows")
            with open(sent, encoding="utf-8") as file:
                rows = [json.loads(line) for line in file]
            self.assertIn("nginx", json.dumps(rows))
            self.assertIn("deadlock", json.dumps(rows))
            self.assertIn("secret", read_text(sent + ".config"))
            self.assertNotIn("secret", read_text(sent + ".words"))
            os.unlink(sent)
            wait_until(lambda: len(os.listdir(self.state)) == left, "what is left")
            end()

    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze")
    def test_verified(self):
        """systemd knows each setting, and finds nothing wrong."""
        units = os.path.join(self.prefix, "units")
        os.makedirs(os.path.join(units, UNIT + ".d"))
        shutil.copy(os.path.join(SYSTEMD, UNIT), units)
        shutil.copy(os.path.join(SYSTEMD, "push.conf"), os.path.join(units, UNIT + ".d"))
        with open(os.path.join(units, "sleeps.service"), "w", encoding="utf-8") as file:
            file.write("[Service]\nExecStart=/bin/sleep 1\n")
        done = subprocess.run(["systemd-analyze", "--man=no", "verify",
                               os.path.join(units, UNIT.replace("@", "@sleeps"))],
                              env=dict(os.environ, SYSTEMD_UNIT_PATH=units + ":"),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S,
                              text=True, check=False)
        wrong = [line for line in done.stdout.splitlines() if "stacksnap" in line]
        self.assertEqual(wrong, [], done.stdout)


if __name__ == "__main__":
    main()
