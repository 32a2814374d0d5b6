"""No false verdicts: programs that are idle or busy, as Debian has them, are neither stuck nor
blocked for stacksnap hang. Each program that is installed is judged STACKSNAP_TRIES times; a
table of them is printed at the end (docs/how-we-know.md has the sums)."""
# ctest: real release-only timeout=900 tries=12

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from harness import EndToEnd, LIMIT_S, main, read_text, task_states, wait_until

TRIES = int(os.environ.get("STACKSNAP_TRIES", "1"))
FOR = "--for=300ms"
PATH = os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin"

APACHE = """
ServerRoot {root}
PidFile {directory}/pid
ErrorLog {directory}/log
ServerName localhost
Listen 127.0.0.1:{port}
Listen 127.0.0.1:{port2}
LoadModule mpm_{mpm}_module modules/mod_mpm_{mpm}.so
LoadModule authz_core_module modules/mod_authz_core.so
StartServers 2
User www-data
Group www-data
DocumentRoot {directory}
"""

PYTHON = {
    "signal": "import signal, threading\ne = threading.Event()\n"
              "signal.signal(signal.SIGTERM, lambda *_: e.set())\ne.wait()\n",
    "pool": "import signal, concurrent.futures as f\np = f.ThreadPoolExecutor(4)\n"
            "list(p.map(str, range(100)))\nsignal.pause()\n",
    "queue": "import queue, signal, socket, threading\nq = queue.Queue()\n"
             "[threading.Thread(target=q.get, daemon=True).start() for _ in range(3)]\n"
             "s = socket.create_server(('127.0.0.1', 0))\ns.accept()\n",
    "asyncio": "import asyncio\nasync def f():\n"
               "    s = await asyncio.start_server(print, '127.0.0.1', 0)\n"
               "    await s.serve_forever()\nasyncio.run(f())\n",
    "processes": "import multiprocessing as m, signal\np = m.Pool(2)\n"
                 "p.map(str, range(10))\nsignal.pause()\n",
    "busy threads": "import threading\ndef f():\n    while True: pass\n"
                    "[threading.Thread(target=f).start() for _ in range(2)]\nf()\n",
    "locks": "import threading, time\nl = threading.Lock()\ndef f():\n    while True:\n"
             "        with l: time.sleep(0.001)\n"
             "[threading.Thread(target=f).start() for _ in range(4)]\nf()\n",
}

PERL = ("use IO::Socket; my $s = IO::Socket::INET->new(Listen => 5, "
        "LocalAddr => '127.0.0.1'); use Fcntl ':flock'; open(my $l, '>', '{directory}/lock'); "
        "fork; fork; open($l, '>', '{directory}/lock'); flock($l, LOCK_EX); $s->accept")

JAVA = """
import java.util.concurrent.*;
public class Idle {
    public static void main(String[] words) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        for (int i = 0; i < 4; i++)
            pool.submit(() -> 1).get();
        ScheduledExecutorService timer = Executors.newScheduledThreadPool(1);
        timer.scheduleAtFixedRate(() -> { }, 1, 1, TimeUnit.HOURS);
        new java.net.ServerSocket(0).accept();
    }
}
"""

GO = """
package main
import ("net"; "sync"; "time")
func main() {
    var m sync.Mutex
    for i := 0; i < 8; i++ {
        go func() { for { m.Lock(); time.Sleep(time.Millisecond); m.Unlock() } }()
    }
    l, _ := net.Listen("tcp", "127.0.0.1:0")
    l.Accept()
}
"""

# Programs that need nothing but arguments. {port} is free.
COMMANDS = {
    "redis": ["redis-server", "--port", "{port}", "--dir", "{directory}", "--save", ""],
    "memcached": ["memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", "{port}"],
    "beanstalkd": ["beanstalkd", "-l", "127.0.0.1", "-p", "{port}"],
    "mosquitto": ["mosquitto", "-p", "{port}"],
    "dnsmasq": ["dnsmasq", "-k", "-C", "/dev/null", "-p", "{port}", "-u", "nobody",
                "--pid-file={directory}/pid"],
    "socat": ["socat", "TCP-LISTEN:{port},bind=127.0.0.1", "-"],
    "php": ["php", "-S", "127.0.0.1:{port}", "-t", "{directory}"],
    "ruby": ["ruby", "-e", "q = Queue.new; 3.times { Thread.new { q.pop } }; "
             "require 'socket'; TCPServer.new('127.0.0.1', 0).accept"],
    "node": ["node", "-e", "require('http').createServer().listen(0)"],
    "uwsgi": ["uwsgi", "--plugin", "python3", "--http-socket", "127.0.0.1:{port}", "--master",
              "--processes", "2", "--threads", "4"],
    "tclsh": ["tclsh", "{directory}/tcl"],
    "dbus-daemon": ["dbus-daemon", "--session", "--nofork", "--address=unix:path={directory}/b"],
    "openssl s_server": ["openssl", "s_server", "-nocert", "-psk", "1a", "-accept", "{port}"],
    "ssh-agent": ["ssh-agent", "-D"],
    "openssl speed": ["openssl", "speed", "-seconds", "100", "sha256"],
    "gzip": ["sh", "-c", "exec gzip -c < /dev/zero > /dev/null"],
    "sleep": ["sleep", "1000"],
    "bash": ["bash", "-c", "while :; do sleep 0.01; done"],
    "cat": ["sh", "-c", "mkfifo {directory}/fifo && exec cat {directory}/fifo"],
    "tail": ["tail", "-f", "/dev/null"],
    "dd": ["dd", "if=/dev/zero", "of=/dev/null"],
    "xz": ["sh", "-c", "exec xz -T2 -c < /dev/zero > /dev/null"],
    "perl": ["perl", "-e", PERL],
    "python http.server": [sys.executable, "-m", "http.server", "{port}",
                           "--bind", "127.0.0.1"],
}


def children(pid):
    words = read_text("/proc/%d/task/%d/children" % (pid, pid)).split()
    return [int(word) for word in words]


def free_port(given=set()):
    """Another one each time: two programs run at the same time."""
    while True:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        if port not in given:
            given.add(port)
            return port


class Verdicts(EndToEnd):
    verdicts = {}  # by program

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="stacksnap-verdicts-", dir="/tmp")
        os.chmod(self.directory, 0o755)
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    @classmethod
    def tearDownClass(cls):
        print("%d verdicts on %d programs" % (sum(map(len, cls.verdicts.values())),
                                              len(cls.verdicts)))
        for name, found in sorted(cls.verdicts.items()):
            words = ["%d %s" % (found.count(verdict), verdict) for verdict in sorted(set(found))]
            print("| %s | %d | %s |" % (name, len(found), ", ".join(words)))

    def end(self, process):
        """With all processes that it has started: they are of its group."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait(LIMIT_S)

    def run_program(self, *words):
        program = shutil.which(words[0], path=PATH)
        if not program:
            return None
        process = subprocess.Popen([program, *words[1:]], stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True,  # apache2 signals its group
                                   cwd=self.directory, env=dict(os.environ, HOME=self.directory))
        self.addCleanup(process.stdin.close)
        self.addCleanup(self.end, process)
        process.begin = time.monotonic()
        return process

    def judge(self, name, process, tries=TRIES):
        """Waits until it has started, which is when it sleeps or has used some CPU time."""
        def started():
            if process.poll() is not None:
                raise AssertionError("%s ended with %s" % (name, process.returncode))
            times = read_text("/proc/%d/stat" % process.pid).rsplit(")", 1)[1].split()
            return "S" in task_states(process.pid).values() or int(times[11]) > 20
        wait_until(started, name)
        try:
            process.wait(max(0, process.begin + 1 - time.monotonic()))
            raise AssertionError("%s ended with %s" % (name, process.returncode))
        except subprocess.TimeoutExpired:
            pass
        for _ in range(tries):
            for pid in [process.pid] + children(process.pid):
                result = self.run_tool("hang", FOR, "--json", pid, status=None)
                if result.returncode == 2 and not os.path.exists("/proc/%d" % pid):
                    continue  # a child that has ended
                report = json.loads(result.stdout)
                Verdicts.verdicts.setdefault(name, []).append(report["verdict"])
                with self.subTest(name, pid=pid):
                    self.assertIn(report["verdict"], ("idle", "moving", "busy"),
                                  json.dumps(report)[:20000])

    def test_commands(self):
        with open(os.path.join(self.directory, "tcl"), "w") as file:
            file.write("socket -server puts 0\nvwait forever\n")
        commands = {}
        for name, words in COMMANDS.items():
            port = str(free_port())
            commands[name] = [word.replace("{port}", port).replace("{directory}", self.directory)
                              for word in words]
        self.judge_each(commands)

    def judge_each(self, commands):
        """Each program starts while the one before it is judged."""
        before = None
        for name, words in [*commands.items(), (None, None)]:
            process = self.run_program(*words) if name else None
            if before:
                self.judge(*before)
                self.end(before[1])
            before = (name, process) if process else None

    def test_python(self):
        self.judge_each({"python " + name: [sys.executable, "-c", program]
                         for name, program in PYTHON.items()})

    def test_apache(self):
        root = "/usr/lib/apache2"
        if not shutil.which("apache2", path=PATH):
            self.skipTest("apache2 is not installed")
        for mpm in ("worker", "prefork", "event"):
            path = os.path.join(self.directory, mpm)
            with open(path, "w") as file:
                file.write(APACHE.format(root=root, directory=self.directory, mpm=mpm,
                                         port=free_port(), port2=free_port()))
            process = self.run_program("apache2", "-f", path, "-DFOREGROUND")
            wait_until(lambda: len(children(process.pid)) >= 2, "the children")
            self.judge("apache2 " + mpm, process)
            process.terminate()
            process.wait(LIMIT_S)

    def test_nginx(self):
        path = os.path.join(self.directory, "nginx.conf")
        with open(path, "w") as file:
            file.write("daemon off; worker_processes 2; pid %s/pid; error_log /dev/null; "
                       "events {} http { access_log off; server { listen 127.0.0.1:%d; } }"
                       % (self.directory, free_port()))
        process = self.run_program("nginx", "-p", self.directory, "-c", path)
        if not process:
            self.skipTest("nginx is not installed")
        self.judge("nginx", process)
        process.terminate()
        process.wait(LIMIT_S)

    def test_haproxy(self):
        path = os.path.join(self.directory, "haproxy.cfg")
        with open(path, "w") as file:
            file.write("global\n  nbthread 2\ndefaults\n  mode tcp\n  timeout connect 1s\n"
                       "  timeout client 1s\n  timeout server 1s\n"
                       "listen a\n  bind 127.0.0.1:%d\n" % free_port())
        process = self.run_program("haproxy", "-db", "-f", path)
        if not process:
            self.skipTest("haproxy is not installed")
        self.judge("haproxy", process)

    def test_java(self):
        path = os.path.join(self.directory, "Idle.java")
        with open(path, "w") as file:
            file.write(JAVA)
        process = self.run_program("java", "-Xmx64m", path)
        if not process:
            self.skipTest("java is not installed")
        wait_until(lambda: len(task_states(process.pid)) > 15, "its threads")
        self.judge("java", process)

    def test_go(self):
        path = os.path.join(self.directory, "idle.go")
        with open(path, "w") as file:
            file.write(GO)
        if not shutil.which("go", path=PATH):
            self.skipTest("go is not installed")
        subprocess.run(["go", "build", "-o", self.directory + "/idle", path], check=True,
                       env=dict(os.environ, HOME=self.directory, GOFLAGS="-modcacherw",
                                GO111MODULE="off"), timeout=4 * LIMIT_S)
        self.judge("go", self.run_program(self.directory + "/idle"))


if __name__ == "__main__":
    main()
