"""Starts a MariaDB server for tests, and speaks the part of its protocol that they need."""

import os
import shutil
import socket
import struct
import subprocess
import tempfile

from harness import LIMIT_S, wait_until


class Connection:
    """A minimal client of the server's protocol, version 10."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT_S)
        try:
            self.socket.connect(path)
        except OSError:
            self.socket.close()
            raise
        self._packet()  # the greeting
        protocol_41, secure_connection, plugin_auth = 0x200, 0x8000, 0x80000
        self._send(1, struct.pack("<IIB23x", protocol_41 | secure_connection | plugin_auth,
                                  1 << 24, 33) + b"root\0\0mysql_native_password\0")
        answer = self._packet()
        if answer[:1] != b"\0":
            raise AssertionError("the server refuses: %r" % answer)

    def _packet(self):
        header = self._exactly(4)
        return self._exactly(int.from_bytes(header[:3], "little"))

    def _exactly(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise AssertionError("the server has closed the connection")
            data += part
        return data

    def _send(self, number, payload):
        self.socket.sendall(struct.pack("<I", len(payload))[:3] + bytes([number]) + payload)

    def query(self, text):
        """Does not wait for the answer."""
        self._send(0, b"\x03" + text.encode())

    def done(self):
        """Waits for the answer to a statement that returns no rows."""
        answer = self._packet()
        if answer[:1] != b"\0":
            raise AssertionError("the server refuses: %r" % answer)

    def rows(self, text):
        """Returns the rows of a query as lists of strings. Values of more than 250 bytes and
        NULL are not supported."""
        self.query(text)
        columns = self._packet()[0]
        for _ in range(columns + 1):  # what the columns are, and the end of that
            self._packet()
        rows = []
        while True:
            packet = self._packet()
            if packet[:1] == b"\xfe":
                return rows
            row, at = [], 0
            while at < len(packet):
                row.append(packet[at + 1:at + 1 + packet[at]].decode())
                at += 1 + packet[at]
            rows.append(row)


class MariaDbServer:
    """A mixin for test cases."""

    def setUp(self):
        super().setUp()
        self.server = shutil.which("mariadbd", path=os.environ["PATH"] + ":/usr/sbin")
        self.install = shutil.which("mariadb-install-db")
        if not self.server or not self.install:
            self.skipTest("mariadbd is missing: install mariadb-server")
        self.directory = tempfile.mkdtemp(prefix="stacksnap-mariadb-")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def start_server(self):
        data = os.path.join(self.directory, "data")
        common = ["--no-defaults", "--datadir=" + data]
        if os.geteuid() == 0:
            common.append("--user=root")
        subprocess.run([self.install] + common + ["--auth-root-authentication-method=normal",
                                                  "--skip-test-db", "--force"],
                       check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=2 * LIMIT_S)
        self.path = os.path.join(self.directory, "socket")
        log = open(os.path.join(self.directory, "log"), "wb")
        self.addCleanup(log.close)
        process = subprocess.Popen(
            [self.server] + common + [
                "--skip-networking", "--skip-grant-tables", "--socket=" + self.path,
                "--pid-file=" + os.path.join(self.directory, "pid"),
                "--max-connections=500", "--innodb-buffer-pool-size=16M"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(process.wait, LIMIT_S)
        self.addCleanup(process.kill)
        wait_until(lambda: self.answers(process), "mariadbd")
        return process

    def answers(self, process):
        if process.poll() is not None:
            with open(os.path.join(self.directory, "log"), errors="replace") as file:
                raise AssertionError("mariadbd ended: " + file.read()[-2000:])
        try:
            Connection(self.path).socket.close()
        except OSError:
            return False
        return True
