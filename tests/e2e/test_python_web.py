"""Servers of Debian that nobody here wrote: Flask and Django under gunicorn. While a request is served,
the Python stacks of all threads are those that faulthandler prints, frame by frame; recordings
have the handler at its lines.

Debian packages: python3, python3-flask, python3-django, gunicorn"""
# ctest: release-only

import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

import harness
from test_python import escaped, python_frames, recorded_chains, snapshot

FLASK = '''
import faulthandler, os, signal
import flask

faulthandler.register(signal.SIGUSR2, open("dump", "w"), all_threads=True)
app = flask.Flask("app")
TEMPLATE = """<ul>
{% for row in rows() %}<li>{{ row }}</li>
{% endfor %}</ul>"""

def rows():
    with open("fifo") as fifo:
        yield from fifo

@app.route("/wait")
def wait():
    return flask.render_template_string(TEMPLATE, rows=rows)

def crunch(n):
    return sum(i * i for i in range(n))

@app.route("/busy")
def busy():
    return str(crunch(200000))
'''

DJANGO = '''
import faulthandler, signal
from django.conf import settings
from django.http import HttpResponse
from django.urls import path
from django.views import View

settings.configure(ROOT_URLCONF="app", SECRET_KEY="-", ALLOWED_HOSTS=["*"], MIDDLEWARE=[
    "django.middleware.security.SecurityMiddleware", "django.middleware.common.CommonMiddleware"])
faulthandler.register(signal.SIGUSR2, open("dump", "w"), all_threads=True)

class Wait(View):
    def get(self, request):
        return HttpResponse(self.read())

    def read(self):
        with open("fifo") as fifo:
            return fifo.read()

def crunch(n):
    return sum(i * i for i in range(n))

def busy(request):
    return HttpResponse(str(crunch(200000)))

urlpatterns = [path("wait", Wait.as_view()), path("busy", busy)]
from django.core.wsgi import get_wsgi_application
app = get_wsgi_application()
'''


class Server:
    """gunicorn with one worker process that has several threads."""

    def __init__(self, test, program):
        directory = tempfile.TemporaryDirectory(prefix="stacksnap-")
        test.addCleanup(directory.cleanup)
        self.path = os.path.realpath(directory.name)
        with open(os.path.join(self.path, "app.py"), "w", encoding="ascii") as file:
            file.write(program)
        os.mkfifo(os.path.join(self.path, "fifo"))
        self.log = os.path.join(self.path, "log")
        self.process = subprocess.Popen(
            ["/usr/bin/gunicorn", "--chdir", self.path, "--bind", "unix:" + self.path + "/socket",
             "--workers", "1", "--threads", "3", "--timeout", "0", "--log-file", self.log,
             "app:app"], cwd=self.path)
        self.pid = self.process.pid
        test.addCleanup(self.stop)
        harness.wait_until(lambda: os.path.exists(self.log) and
                           "Booting worker with pid" in harness.read_text(self.log), "it starts")
        self.pid = int(re.search(r"Booting worker with pid: (\d+)",
                                 harness.read_text(self.log)).group(1))
        self.get("/busy")

    def stop(self):
        """At once: gunicorn would wait for the request, and its worker would survive it."""
        self.process.kill()
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait()

    def connect(self, path):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self.path + "/socket")
        connection.sendall(f"GET {path} HTTP/1.0\r\nHost: x\r\n\r\n".encode())
        return connection

    def get(self, path):
        with self.connect(path) as connection:
            answer = connection.makefile("rb").read()
        if b" 200 " not in answer.splitlines()[0]:
            raise AssertionError((answer, harness.read_text(self.log)))

    def dump(self):
        """The stacks that faulthandler prints."""
        os.kill(self.pid, signal.SIGUSR2)
        path = os.path.join(self.path, "dump")
        text = ""

        def is_whole():
            nonlocal text
            text = harness.read_text(path)
            return len(re.findall(r"^(?:Current t|T)hread ", text, re.M)) == \
                len(harness.task_states(self.pid)) and text.endswith("in <module>\n")
        try:
            harness.wait_until(is_whole, "faulthandler prints")
        except AssertionError as error:
            raise AssertionError(f"{error}: {text}") from error
        stacks = []
        for line in text.splitlines():
            frame = re.match(r'  File "(.*)", line (\d+) in (.*)', line)
            if frame:
                stacks[-1].append((frame.group(1), int(frame.group(2)), frame.group(3)))
            elif re.match("(Current t|T)hread ", line):
                stacks.append([])
        return sorted(stacks)


class Web(unittest.TestCase):
    def check(self, program, function, framework):
        if not os.access("/usr/bin/gunicorn", os.X_OK):
            self.skipTest("gunicorn is not installed")
        if subprocess.run(["/usr/bin/python3", "-c", f"import {framework}"],
                          stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest(f"python3-{framework} is not installed")
        server = Server(self, program)
        lines = program.splitlines()
        connection = server.connect("/wait")
        self.addCleanup(connection.close)

        def is_serving():
            return any((frame["symbol"] or "").endswith(function)
                       for thread in snapshot(server.pid)["threads"] for frame in thread["frames"])
        harness.wait_until(is_serving, "it serves the request")
        taken = snapshot(server.pid)
        self.assertEqual(taken["capture"]["threads_stopped"], 0, taken)
        self.assertEqual([thread["native_reason"] for thread in taken["threads"]],
                         [None] * len(taken["threads"]), taken)
        found = sorted(python_frames(thread) for thread in taken["threads"])
        expected = server.dump()
        self.assertEqual([stack[:100] for stack in found], expected, (found, expected))
        frames, = [stack for stack in found
                   if any(name == function.split(".")[-1] for _, _, name in stack)]
        place = frames[[name for _, _, name in frames].index(function.split(".")[-1])]
        self.assertEqual(place[0], server.path + "/app.py", frames)
        self.assertIn("open(" if '"fifo"' in lines[place[1] - 1] else "fifo", lines[place[1] - 1],
                      frames)
        self.assertTrue(any(f"/{framework}/" in escaped(file) for file, _, _ in frames), frames)
        print(framework, len(frames), "frames, innermost", frames[0])
        self.record(server, lines, framework)

    def record(self, server, lines, framework):
        stop = threading.Event()

        def ask():
            while not stop.is_set():
                server.get("/busy")
        client = threading.Thread(target=ask)
        client.start()
        path = os.path.join(server.path, "web.rec")
        try:
            subprocess.run([harness.STACKSNAP, "record", "-d", "2", "-o", path, str(server.pid)],
                           capture_output=True, timeout=harness.LIMIT_S, check=True)
        finally:
            stop.set()
            client.join()
        first = 1 + next(i for i, line in enumerate(lines) if line.startswith("def crunch"))
        counted = 0
        for _, frames, count in recorded_chains(path):
            names = [frame["name"] for frame in frames]
            if "crunch" not in names:
                continue
            counted += count
            frame = frames[names.index("crunch")]
            self.assertEqual((frame["file"], frame["line"]), (server.path + "/app.py", first + 1),
                             frames)
            self.assertIn("busy", names, frames)
            self.assertTrue(any(f"/{framework}/" in (frame["file"] or "") for frame in frames),
                            frames)
        print(framework, counted, "samples in the handler")
        self.assertGreater(counted, 3)

    def test_flask(self):
        self.check(FLASK, "rows", "flask")

    def test_django(self):
        self.check(DJANGO, "Wait.read", "django")


if __name__ == "__main__":
    unittest.main(verbosity=2)
