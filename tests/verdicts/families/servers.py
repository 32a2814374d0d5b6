"""Web servers whose requests wait."""

import os
import shutil
import socket
import time

from cases import ALARM, PYTHON, Unavailable, children, hang, wait_until

FAMILY = "servers"
APP = """
import os, socket, sys, threading, time, urllib.request
a, b, both = threading.Lock(), threading.Lock(), threading.Barrier(2)
D = os.path.dirname(os.path.abspath(__file__))
silent = socket.create_server(("127.0.0.1", 0))
def ask_backend(): return urllib.request.urlopen("http://127.0.0.1:%d/" % silent.getsockname()[1]).read()
def transfer(x, y):
    with x:
        both.wait()
        with y: pass
def handle(path):
    if path == "/pay": transfer(a, b)
    if path == "/refund": transfer(b, a)
    if path == "/backend": ask_backend()
    if path == "/log":
        with a: log()
    if path == "/fifo": open(D + "/fifo").read()
    if path == "/spin": spin()
    return b"ok"
def log():
    with a: pass
def spin():
    while True: pass
def app(environment, start):
    body = handle(environment["PATH_INFO"])
    start("200 OK", [("Content-Type", "text/plain")])
    return [body]
"""
FLASK = "\nimport flask\napp = flask.Flask('x')\n@app.route('/<path:p>')\ndef view(p): return handle('/' + p)\n"
DJANGO = """
from django.conf import settings
settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="x")
import django; from django.urls import re_path; from django.http import HttpResponse
urlpatterns = [re_path("^(.*)$", lambda request, p: HttpResponse(handle("/" + p)))]
django.setup()
from django.core.wsgi import get_wsgi_application; app = get_wsgi_application()
"""


def ask(lab, port, *paths):
    """Sends requests whose answers nobody reads."""
    def connect():
        try:
            lab.keep.append(socket.create_connection(("127.0.0.1", port), 5))
        except OSError:
            return False
        return True
    for path in paths:
        wait_until(connect, "the port")
        lab.keep[-1].sendall(("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path).encode())
        time.sleep(0.1)
    time.sleep(0.5)


def python(server, title, truth, paths, expect, app=APP, **options):
    """A request of each path to a server with threads."""
    def start(lab):
        lab.path("program.py", app)
        lab.fifo()
        port = lab.port()
        words = {"gunicorn": ["gunicorn", "-b", "127.0.0.1:%d" % port, "--threads", "3", "-w", "1", "program:app", "-t", "10000"],
                 "gunicorn sync": ["gunicorn", "-b", "127.0.0.1:%d" % port, "-w", "1", "program:app", "-t", "10000"],
                 "uwsgi": ["uwsgi", "--plugin", "python3", "--http-socket", "127.0.0.1:%d" % port, "--threads", "3",
                           "--master", "--processes", "1", "--wsgi-file", "program.py", "--callable", "app"],
                 "flask": [PYTHON, "-c", "import program; program.app.run(port=%d, threaded=True)" % port],
                 "wsgiref": [PYTHON, "-c", "import program, wsgiref.simple_server as s; s.make_server('127.0.0.1', %d, "
                             "program.app).serve_forever()" % port]}[server]
        process = lab.run(*words, ready=None, env={"PYTHONPATH": lab.directory})
        ask(lab, port, *paths)
        if server in ("flask", "wsgiref"):
            return process
        wait_until(lambda: children(process.pid), "a worker")
        return children(process.pid)[0]
    hang(FAMILY, "%s: %s" % (server, title), truth, start, expect, **options)


CYCLE = ["DEADLOCK", "transfer", "2 threads"]
python("gunicorn", "two requests with locks in opposite order", "two requests wait for each other's lock in transfer", ["/pay", "/refund"], CYCLE, alarm="deadlock")
python("gunicorn", "a request that takes a lock twice", "the request waits in log for the lock of its caller", ["/log"], ["in log", "Lock", "DEADLOCK|itself|stuck"], alarm=ALARM)
python("gunicorn sync", "a worker whose backend does not answer", "the worker waits in ask_backend", ["/backend"], ["ask_backend", r"127\.0\.0\.1:\d+"])
python("gunicorn sync", "a worker that opens a FIFO", "the worker waits in handle to open a FIFO", ["/fifo"], ["handle", "fifo", "FIFO|open"], alarm=ALARM)
python("gunicorn sync", "a worker in an endless loop", "the worker computes in spin", ["/spin"], ["spin", "busy|running"], still=False)
python("uwsgi", "two requests with locks in opposite order", "two requests wait for each other's lock in transfer", ["/pay", "/refund"], CYCLE, alarm="deadlock")
python("uwsgi", "a request whose backend does not answer", "a thread waits in ask_backend", ["/backend"], ["ask_backend", r"127\.0\.0\.1:\d+"])
python("flask", "two requests with locks in opposite order", "two requests wait for each other's lock in transfer", ["/pay", "/refund"], CYCLE, app=APP + FLASK, alarm="deadlock")
python("gunicorn", "Django: two requests with locks in opposite order", "two requests wait for each other's lock in transfer", ["/pay", "/refund"], CYCLE, app=APP + DJANGO, alarm="deadlock")
python("wsgiref", "a request whose backend does not answer", "the only thread waits in ask_backend", ["/backend"], ["ask_backend", r"127\.0\.0\.1:\d+"])


def silent_backend(lab):
    server = socket.create_server(("127.0.0.1", 0))
    lab.keep.append(server)
    lab.facts["backend"] = server.getsockname()[1]
    return server.getsockname()[1]


def nginx(lab):
    port = lab.port()
    path = lab.path("nginx.conf", "daemon off; worker_processes 1; pid %s/pid; error_log /dev/null; events {} http { access_log off; "
                    "server { listen 127.0.0.1:%d; location / { proxy_pass http://127.0.0.1:%d; } } }" %
                    (lab.directory, port, silent_backend(lab)))
    process = lab.run("nginx", "-p", lab.directory, "-c", path, ready=None)
    ask(lab, port, "/a", "/b")
    return children(process.pid)[0]


hang(FAMILY, "nginx: a backend that does not answer", "the worker's two requests wait for the backend; it waits in epoll", nginx,
     ["epoll", r"127\.0\.0\.1:{backend}"])


def haproxy(lab):
    port = lab.port()
    path = lab.path("haproxy.cfg", "global\n  nbthread 2\ndefaults\n  mode tcp\n  timeout connect 1h\n  timeout client 1h\n  timeout server 1h\n"
                    "listen a\n  bind 127.0.0.1:%d\n  server b 127.0.0.1:%d\n" % (port, silent_backend(lab)))
    process = lab.run("haproxy", "-db", "-f", path, ready=None)
    ask(lab, port, "/a", "/b")
    return process


hang(FAMILY, "haproxy: a backend that does not answer", "two connections wait for the backend", haproxy, ["epoll", r"127\.0\.0\.1:{backend}"])


def apache(lab):
    port = lab.port()
    path = lab.path("conf", """ServerRoot /usr/lib/apache2
%s
PidFile %s/pid
ErrorLog %s/log
ServerName localhost
Listen 127.0.0.1:%d
StartServers 1
ServerLimit 1
ThreadsPerChild 4
MaxRequestWorkers 4
User www-data
Group www-data
ProxyPass / http://127.0.0.1:%d/
""" % ("\n".join("LoadModule %s_module modules/mod_%s.so" % (name, name) for name in
                 ("mpm_worker", "authz_core", "proxy", "proxy_http")), lab.directory, lab.directory, port, silent_backend(lab)))
    process = lab.run("apache2", "-f", path, "-DFOREGROUND", ready=None)
    wait_until(lambda: children(process.pid), "the child")
    ask(lab, port, "/a", "/b", "/c", "/d")
    return children(process.pid)[0]


hang(FAMILY, "apache: all threads wait for a backend", "four threads wait in mod_proxy_http for the backend", apache,
     ["4 threads", r"127\.0\.0\.1:{backend}", "proxy"])

JSP = """<%@ page import="java.util.concurrent.*" %>
<%! static final Object a = new Object(), b = new Object(); static final CyclicBarrier both = new CyclicBarrier(2);
static void transfer(Object x, Object y) throws Exception { synchronized (x) { both.await(); synchronized (y) { } } }
static void queue() throws Exception { new LinkedBlockingQueue<Integer>().take(); } %>
<% String p = request.getParameter("p"); if (p.equals("pay")) transfer(a, b); if (p.equals("refund")) transfer(b, a); if (p.equals("queue")) queue(); %>ok
"""
XML = """<Server port="-1"><Service name="Catalina"><Connector port="%d" address="127.0.0.1" minSpareThreads="3" maxThreads="5"/>
<Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps" autoDeploy="true"/></Engine></Service></Server>"""


def tomcat(*paths):
    def start(lab):
        home = "/usr/share/tomcat10"
        if not os.path.exists(home):
            raise Unavailable("tomcat10")
        port = lab.port()
        for name in ("conf", "webapps/ROOT", "logs", "temp", "work"):
            os.makedirs(lab.path(name), exist_ok=True)
        shutil.copy(home + "/etc/web.xml", lab.path("conf/web.xml"))
        lab.path("conf/server.xml", XML % port)
        lab.path("webapps/ROOT/a.jsp", JSP)
        process = lab.run("java", "-Xmx128m", "-Dcatalina.home=" + home, "-Dcatalina.base=" + lab.directory, "-Djava.io.tmpdir=" + lab.path("temp"),
                          "-cp", home + "/bin/bootstrap.jar:" + home + "/bin/tomcat-juli.jar", "org.apache.catalina.startup.Bootstrap", "start",
                          ready="startup in")
        ask(lab, port, "/a.jsp?p=compile")
        lab.keep[-1].settimeout(60)
        lab.keep[-1].recv(100)
        ask(lab, port, *paths)
        return process
    return start


hang(FAMILY, "tomcat: two requests with monitors in opposite order", "two requests wait for each other's monitor in transfer of a.jsp",
     tomcat("/a.jsp?p=pay", "/a.jsp?p=refund"), ["DEADLOCK", "transfer"], alarm="deadlock")
hang(FAMILY, "tomcat: a request that takes from an empty queue", "a request waits in queue of a.jsp", tomcat("/a.jsp?p=queue"),
     ["a_jsp.queue", "LinkedBlockingQueue.take"])
