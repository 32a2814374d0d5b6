"""Several processes: pipes, sockets, FIFOs, locks of files, System V, make, git, ssh."""

import os
import time

from cases import (ALARM, DEADLOCK, PYTHON, built, child_named, descendants, hang, read_text,
                   wait_until)

FAMILY = "processes"


def case(title, truth, start, expect, **options):
    hang(FAMILY, title, truth, start, expect, **options)


def script(title, truth, source, expect, child=None, **options):
    """A Python program; child: the name of the process to look at."""
    def start(lab):
        process = lab.run(PYTHON, "-u", lab.path("program.py", "import os, sys, socket, subprocess, "
                                                 "fcntl, time, signal\ndef ready(): print('ready', "
                                                 "flush=True)\n" + source))
        return child_named(process.pid, child) if child else process
    case(title, truth, start, expect, **options)


def shell(title, truth, text, expect, look=None, flocks=0, **options):
    """A shell script with {dir}; look: the name of the process to look at (default: the shell); flocks:
    so many commands flock run when it hangs."""
    def start(lab):
        lab.fifo()
        process = lab.shell(text.replace("{dir}", lab.directory), **{"cwd": lab.directory})
        time.sleep(0.3)
        wait_until(lambda: sum(read_text("/proc/%d/comm" % pid) == "flock\n"
                               for pid in descendants(process.pid)) >= flocks, "flock")
        found = child_named(process.pid, look) if look else process.pid
        lab.facts["shell"] = process.pid
        return found
    case(title, truth, start, expect, **options)


script("a child that fills stderr while the parent reads stdout",
       "the parent reads stdout in collect to its end; the child waits to write to stderr, which only the parent reads", """
def collect():
    p = subprocess.Popen(["sh", "-c", "head -c 1000000 /dev/zero >&2; echo done"], stdout=-1, stderr=-1)
    print("fact child", p.pid); ready(); return p.stdout.read()
collect()
""", ["collect", "pipe", "{child}|head", "cycle|each other|DEADLOCK|writ"], alarm=ALARM)
script("a child whose stdout nobody reads", "the parent waits in wait_child for a child that waits to write to the parent's pipe", """
def wait_child():
    p = subprocess.Popen(["head", "-c", "1000000", "/dev/zero"], stdout=-1); print("fact child", p.pid); ready(); p.wait()
wait_child()
""", ["wait_child", "{child}", "pipe", "head"], alarm=ALARM)
script("a filter that is fed without being read", "the parent waits in feed to write to cat, cat waits to write to the parent", """
def feed():
    p = subprocess.Popen(["cat"], stdin=-1, stdout=-1); print("fact child", p.pid); ready(); p.stdin.write(b"x" * 1000000); p.stdin.flush()
feed()
""", ["feed", "{child}", "cat", "pipe", "DEADLOCK|each other|cycle"], alarm=ALARM)
script("a pipe whose other end a grandchild has", "the parent reads in collect; the child has ended, a sleep that it started has the pipe", """
def collect():
    p = subprocess.Popen(["sh", "-c", "sleep 100000 & exit 0"], stdout=-1); p.wait(); ready(); return p.stdout.read()
collect()
""", ["collect", "pipe", "sleep"], alarm=None)
script("two processes with full sockets", "parent and child both wait in sendall to a socket whose peer does not read", """
a, b = socket.socketpair()
def flood(s): s.sendall(b"x" * 10000000)
if not os.fork():
    a.close(); flood(b)
else:
    b.close(); ready(); flood(a)
""", ["flood", "socket", "python3", "DEADLOCK|each other|cycle"], alarm=ALARM)
script("two processes with full TCP connections", "parent and child both wait in flood to send to each other by TCP", """
l = socket.create_server(("127.0.0.1", 0))
def flood(s): s.sendall(b"x" * 100000000)
p = os.fork()
if not p:
    flood(socket.create_connection(l.getsockname()))
else:
    print("fact child", p); s = l.accept()[0]; ready(); flood(s)
""", ["flood", "127.0.0.1", "{child}", "DEADLOCK|each other|cycle"], alarm=ALARM)
script("client and server that both wait to read", "the client waits in answer for a line, the server waits for the rest of the request", """
l = socket.create_server(("127.0.0.1", 0))
p = os.fork()
if not p:
    c = l.accept()[0]; c.recv(100, socket.MSG_WAITALL)
else:
    def answer(s): s.send(b"x"); return s.recv(10)
    print("fact child", p); s = socket.create_connection(l.getsockname()); l.close(); ready(); answer(s)
""", ["answer", "127.0.0.1", "{child}", "DEADLOCK|each other|cycle"], alarm=ALARM)
script("a listening socket whose backlog is full", "the client waits in join_queue to connect to a server that does not accept", """
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "s")
l = socket.socket(socket.AF_UNIX); l.bind(path); l.listen(0)
def join_queue(): s = socket.socket(socket.AF_UNIX); s.connect(path); return s
p = os.fork()
if not p: signal.pause()
print("fact child", p); l.close(); first = join_queue(); ready(); second = join_queue()
""", ["join_queue", "connect|accept", "socket|/s\\b", "{child}"], alarm=ALARM)
script("a listening TCP socket whose backlog is full", "the client waits in join_queue for a connection to a server that does not accept", """
l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen(0); address = l.getsockname()
p = os.fork()
if not p: signal.pause()
def join_queue(): s = socket.socket(); s.connect(address); return s
print("fact child", p); l.close(); first = join_queue(); ready(); second = join_queue()
""", ["join_queue", "accept", "127.0.0.1", "{child}"])
script("two file locks in opposite order", "parent and child hold one flock each and want the other's", """
d = os.path.dirname(os.path.abspath(__file__))
def take(name): f = open(d + "/" + name, "w"); fcntl.flock(f, fcntl.LOCK_EX); return f
r, w = os.pipe(); r2, w2 = os.pipe()
p = os.fork()
if not p:
    b = take("b"); os.write(w, b"x"); os.read(r2, 1); take("a")
else:
    a = take("a"); os.write(w2, b"x"); os.read(r, 1); print("fact child", p); ready(); take("b")
""", ["take", "/b\\b", "{child}", "DEADLOCK|each other|cycle"], alarm=ALARM)
script("a record lock that another process holds", "the parent waits in update for a byte range that the child has locked", """
f = open(os.path.dirname(os.path.abspath(__file__)) + "/data", "w+")
r, w = os.pipe()
def update(): fcntl.lockf(f, fcntl.LOCK_EX, 10, 5)
p = os.fork()
if not p:
    fcntl.lockf(f, fcntl.LOCK_EX, 100, 0); os.write(w, b"x"); signal.pause()
os.read(r, 1); print("fact child", p); ready(); update()
""", ["update", "data", "held by.*{child}|{child}"], alarm=ALARM)
script("a lock whose owner is stopped", "the parent waits in enter for a flock of the child, which is stopped by SIGSTOP", """
name = os.path.dirname(os.path.abspath(__file__)) + "/lock"
r, w = os.pipe()
def enter(): fcntl.flock(open(name, "w"), fcntl.LOCK_EX)
p = os.fork()
if not p:
    f = open(name, "w"); fcntl.flock(f, fcntl.LOCK_EX); os.write(w, b"x"); os.kill(os.getpid(), signal.SIGSTOP)
os.read(r, 1); print("fact child", p); ready(); enter()
""", ["enter", "lock", "{child}", "stopped|SIGSTOP"], alarm=ALARM)
script("a child that waits for the parent's lock", "the parent holds a flock and waits in reap for the child, which wants it", """
name = os.path.dirname(os.path.abspath(__file__)) + "/lock"
f = open(name, "w"); fcntl.flock(f, fcntl.LOCK_EX)
p = os.fork()
if not p: f.close(); fcntl.flock(open(name, "w"), fcntl.LOCK_EX)
def reap(): os.waitpid(p, 0)
print("fact child", p); ready(); reap()
""", ["reap", "{child}", "lock"], alarm=DEADLOCK)
script("a FIFO that nobody opens for reading", "main waits in report to open a FIFO for writing", """
os.mkfifo(os.path.dirname(os.path.abspath(__file__)) + "/progress")
def report(): open(os.path.dirname(os.path.abspath(__file__)) + "/progress", "w")
ready(); report()
""", ["report", "progress", "FIFO|fifo|open"], alarm=ALARM)
script("two FIFOs opened in opposite order", "the parent opens a for reading, the child b for reading; each would write to the other one after that", """
d = os.path.dirname(os.path.abspath(__file__))
os.mkfifo(d + "/a"); os.mkfifo(d + "/b")
def talk(mine, other): open(d + mine).read(); open(d + other, "w")
p = os.fork()
if not p: talk("/b", "/a")
print("fact child", p); ready(); talk("/a", "/b")
""", ["talk", "/a\\b", "FIFO|fifo|open"], alarm=ALARM)

SYSV = """
#include <errno.h>
#include <mqueue.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>
static int sems;
static void down(int n) { struct sembuf b = {n, -1, 0}; semop(sems, &b, 1); }
static void up(int n) { struct sembuf b = {n, 1, 0}; semop(sems, &b, 1); }
static void start(pid_t child) { printf("fact child %d\\nready\\n", child); fflush(stdout); }
__attribute__((noinline)) static void transfer(int from, int to) { down(from); usleep(100000); down(to); }
static void semaphores(void)
{
	sems = semget(IPC_PRIVATE, 2, 0600); up(0); up(1);
	pid_t p = fork();
	if (!p) { transfer(1, 0); _exit(0); }
	start(p); transfer(0, 1);
}
__attribute__((noinline)) static void post(int q) { struct { long t; char s[4000]; } m = {1, ""}; for (;;) msgsnd(q, &m, sizeof m.s, 0); }
static void queues(void)
{
	int a = msgget(IPC_PRIVATE, 0600), b = msgget(IPC_PRIVATE, 0600);
	pid_t p = fork();
	if (!p) { post(b); _exit(0); }
	start(p); post(a);
}
__attribute__((noinline)) static void take(mqd_t q) { char s[8192]; mq_receive(q, s, sizeof s, 0); }
static void posix(void)
{
	char name[50]; sprintf(name, "/verdict-%d", getpid());
	mqd_t q = mq_open(name, O_RDWR | O_CREAT, 0600, 0); mq_unlink(name); start(0); take(q);
}
int main(int n, char **w)
{
	(void)n;
	if (!strcmp(w[1], "semaphores")) semaphores();
	if (!strcmp(w[1], "queues")) queues();
	if (!strcmp(w[1], "posix")) posix();
	return 0;
}
""".replace("#include <mqueue.h>", "#include <fcntl.h>\n#include <mqueue.h>")


def sysv(word):
    return lambda lab: lab.run(built("sysv.c", SYSV, "cc", "-g", "-O1", "-fno-optimize-sibling-calls", "-o",
                                     "{program}", "{source}", "-lrt"), word)


case("two System V semaphores in opposite order", "parent and child hold one each and wait in transfer",
     sysv("semaphores"), ["transfer", "semaphore|semop", "{child}"], alarm=ALARM)
case("two full System V message queues", "parent and child wait in post to queues that nobody reads",
     sysv("queues"), ["post", "message queue|msgsnd"], alarm=ALARM)
case("an empty POSIX message queue", "main waits in take for a message that nobody sends", sysv("posix"),
     ["take", "message queue|mq_"])

shell("make: a recipe that reads a FIFO", "make waits for sh, which waits for cat, which waits to open a FIFO",
      "printf 'all:\\n\\t@cat {dir}/fifo; true\\n' > Makefile; exec make", ["cat", "fifo|FIFO", "child|wait"], alarm=ALARM)
shell("make -j: two recipes that wait for each other's file lock", "two recipes hold a and b and want b and a",
      "printf 'all: x y\\nx:\\n\\tflock a sh -c \"sleep 0.5; flock b true\"\\ny:\\n\\tflock b sh -c \"sleep 0.5; flock a true\"\\n' > Makefile; exec make -j2",
      ["flock", "DEADLOCK|each other|cycle"], alarm=ALARM, flocks=4)
GIT = ("git init -q r && cd r && git config user.email a@b && git config user.name a && echo 1 > f && git add f && ")
shell("git: a hook that reads a FIFO", "git commit waits for its pre-commit hook, which waits to open a FIFO",
      GIT + "printf '#!/bin/sh\\ncat {dir}/fifo\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && exec git commit -qm x",
      ["pre-commit|cat", "fifo|FIFO", "git"], look="git", alarm=ALARM)
shell("git: an editor that waits", "git commit waits for its editor, a shell that reads a FIFO",
      GIT + "GIT_EDITOR='cat {dir}/fifo #' exec git commit -q", ["cat|sh", "fifo|FIFO", "git"], look="git", alarm=ALARM)
shell("git: a filter that does not read", "git add waits to write to its clean filter, which sleeps",
      GIT + "git config filter.x.clean 'sleep 100000' && echo '* filter=x' > .gitattributes && head -c 1000000 /dev/zero > g && exec git add g",
      ["sleep", "pipe", "git"], look="git")
shell("flock: a script that starts itself under its own lock", "the inner flock waits for the lock of the outer one, which waits for it",
      "exec flock {dir}/l flock {dir}/l true", ["flock", "/l\\b", "DEADLOCK|each other|cycle|held by"], alarm=ALARM)
shell("flock: two scripts with locks in opposite order", "two flock commands hold a and b and want b and a",
      "flock a sh -c 'sleep 0.4; flock b true' & flock b sh -c 'sleep 0.4; flock a true' & wait",
      ["flock", "DEADLOCK|each other|cycle"], alarm=ALARM, flocks=4)
shell("a pipeline whose reader is stopped", "head waits to write to a pipe whose reader, cat, is stopped",
      "exec head -c 1000000 /dev/zero | (kill -STOP $(sh -c 'echo $PPID'); cat > /dev/null)",
      ["pipe", "stopped|SIGSTOP|state T", "sh|{shell}"], look="head", alarm=ALARM)
shell("a loop of two cats over FIFOs", "two cats copy to each other; both pipes are full",
      "mkfifo a b; cat < a > b & cat < b > a & (head -c 400000 /dev/zero > a) & wait",
      ["cat", "pipe|FIFO|fifo", "DEADLOCK|each other|cycle"], look="cat", alarm=ALARM, still=False)
shell("tee into two FIFOs that are read one after the other", "tee waits to write to b; the reader of a waits for its end before it reads b",
      "mkfifo a b; (cat a > /dev/null; cat b > /dev/null) & head -c 1000000 /dev/zero | tee a b > /dev/null; wait",
      ["tee", "fifo|FIFO|pipe|/b\\b", "open|writ"], look="tee", alarm=ALARM)
shell("xargs: a command that reads a FIFO", "xargs waits for cat, which waits to open a FIFO",
      "echo {dir}/fifo | xargs cat; true", ["cat", "fifo|FIFO"], look="xargs", alarm=ALARM)
shell("find -exec: a command that waits for a lock", "find waits for flock, which waits for a lock that a sleeping shell holds",
      "(flock 9; sleep 100000) 9> l & sleep 0.3; find Makefile fifo -exec flock l true \\; ; true",
      ["flock", "/l\\b", "sleep|sh"], look="find", alarm=ALARM)
shell("tar to a program that does not read", "tar waits to write to gzip's pipe, whose reader sleeps",
      "head -c 1000000 /dev/urandom > f; tar cf - f | sleep 100000", ["tar|write", "pipe", "sleep"], look="tar", alarm=None)


def sshd(lab):
    """ssh to a server of our own, whose command reads a FIFO."""
    lab.fifo()
    key, port = lab.path("key"), lab.port()
    lab.command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
    os.makedirs("/run/sshd", exist_ok=True)
    lab.command("cp", key + ".pub", lab.path("authorized"))
    lab.run("/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", "-h", key, "-p", port, "-o", "ListenAddress=127.0.0.1",
            "-o", "StrictModes=no", "-o", "AuthorizedKeysFile=" + lab.path("authorized"), "-o", "PidFile=none",
            "-o", "PermitRootLogin=yes", ready="listening")
    client = lab.run("ssh", "-F", "/dev/null", "-p", port, "-i", key, "-o", "StrictHostKeyChecking=no", "-o",
                     "UserKnownHostsFile=/dev/null", "127.0.0.1", "echo ready; cat " + lab.path("fifo"))
    return client


case("ssh: a remote command that reads a FIFO", "ssh waits for its server's answer; the command cat waits on the same machine", sshd,
     [r"127\.0\.0\.1|sshd|TCP", "ssh", "idle|waits|poll"])
