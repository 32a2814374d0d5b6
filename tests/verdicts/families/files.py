"""Files: FUSE, locks, FIFOs, what the kernel waits for."""

import os
import time

from cases import ALARM, HERE, PYTHON, Unavailable, built, hang, read_text, task_states, wait_until

FAMILY = "files"


def listing(*words):
    """A command on a FUSE file system whose server does not answer (targets/hungfuse.c)."""
    def start(lab):
        if not os.path.exists("/dev/fuse"):
            raise Unavailable("/dev/fuse")
        with open(os.path.join(HERE, "..", "..", "targets", "hungfuse.c"), encoding="utf-8") as file:
            program = built("hungfuse.c", file.read(), "cc", "-D_GNU_SOURCE", "-o", "{program}", "{source}")
        os.mkdir(lab.path("mount"))
        server = lab.run(program, lab.path("mount"), "/bin/true")
        if "refused" in read_text(server.log):
            raise Unavailable("mounting")
        server.stdin.write(b"hang\n")
        server.stdin.flush()
        lab.await_text(server, "^hang")
        lab.facts["server"] = server.pid
        process = lab.run(*words, lab.path("mount/program"), ready=None)
        time.sleep(0.3)
        wait_until(lambda: set(task_states(process.pid).values()) & set("DS"), "the answer")
        return process
    return start


def case(title, truth, source, expect, **options):
    def start(lab):
        lab.fifo()
        return lab.run(PYTHON, "-u", lab.path("program.py", "import os, fcntl, sys, time, signal, threading\n"
                                              "def ready(): print('ready', flush=True)\n"
                                              "D = os.path.dirname(os.path.abspath(__file__))\n" + source))
    hang(FAMILY, title, truth, start, expect, **options)


case("a read of a FIFO that nobody writes", "main waits in load to open a FIFO for reading", """
def load(): return open(D + "/fifo").read()
ready(); load()
""", ["load", "fifo", "FIFO|open"], alarm=ALARM)
case("truncation of a FIFO by creat", "main waits in save, in open with O_CREAT, for a reader", """
def save(): os.open(D + "/fifo", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
ready(); save()
""", ["save", "fifo", "FIFO|open"], alarm=ALARM)
case("two open file descriptions with locks in one process", "main waits in second_open for the flock of its own other descriptor", """
a = open(D + "/l", "w"); fcntl.flock(a, fcntl.LOCK_EX)
def second_open(): fcntl.flock(open(D + "/l"), fcntl.LOCK_EX)
ready(); second_open()
""", ["second_open", "/l\\b", "{pid}.*{pid}|itself|this process|its own process"], alarm=ALARM)
case("open file description locks in opposite order", "two threads hold ranges of one file and want each other's", """
import struct
both = threading.Barrier(2)
def lock(f, start): fcntl.fcntl(f, 38, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, start, 10, 0))
def left(): f = open(D + "/data", "r+"); lock(f, 0); both.wait(); lock(f, 100)
def right(): f = open(D + "/data", "r+"); lock(f, 100); both.wait(); lock(f, 0)
open(D + "/data", "w").close()
t = [threading.Thread(target=x) for x in (left, right)]
[x.start() for x in t]; ready(); t[0].join()
""", ["left", "right", "data", "lock"], alarm=ALARM)
case("an eventfd that nobody signals", "main waits in await_event to read an eventfd", """
import ctypes
def await_event(): os.read(ctypes.CDLL(None).eventfd(0, 0), 8)
ready(); await_event()
""", ["await_event", "eventfd"], alarm=ALARM)
case("an eventfd that is full", "main waits in notify to write to an eventfd", """
import ctypes
def notify(fd): os.write(fd, (1).to_bytes(8, "little"))
fd = ctypes.CDLL(None).eventfd(0, 0); os.write(fd, (2**64 - 2).to_bytes(8, "little")); ready(); notify(fd)
""", ["notify", "eventfd", "write|full"], alarm=ALARM)
case("an epoll of a socket whose data was not read, edge-triggered", "main waits in next_event in epoll; a byte lies in the socket", """
import select, socket
a, b = socket.socketpair(); a.setblocking(False)
p = select.epoll(); p.register(a, select.EPOLLIN | select.EPOLLET)
b.send(b"xyz"); p.poll(); a.recv(1)
def next_event(): p.poll()
ready(); next_event()
""", ["next_event", "epoll", "unread|3 bytes|2 bytes|edge"], alarm=ALARM)
case("a terminal that nobody types into", "main waits in confirm to read from a pseudoterminal", """
import pty
m, s = pty.openpty()
def confirm(): return os.read(s, 1)
ready(); confirm()
""", ["confirm", "pts|tty|terminal"])
case("an inotify that sees nothing", "main waits in watch for a change in the directory", """
import ctypes
c = ctypes.CDLL(None); fd = c.inotify_init(); c.inotify_add_watch(fd, D.encode(), 0x400)
def watch(): os.read(fd, 100)
ready(); watch()
""", ["watch", "inotify"])
case("a directory of a FUSE file system that is its own server's", "main waits in list_files for a FUSE mount that this process serves and does not", """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("/dev/fuse", os.O_RDWR); os.mkdir(D + "/mnt")
if libc.mount(b"verdict", (D + "/mnt").encode(), b"fuse.verdict", 0, ("fd=%d,rootmode=40000,user_id=0,group_id=0" % fd).encode()): sys.exit("no mount")
import struct
r = os.read(fd, 1 << 17); unique = struct.unpack_from("<IIQ", r)[2]
os.write(fd, struct.pack("<IiQ", 80, 0, unique) + struct.pack("<IIIIHHI", 7, 31, 0, 0, 0, 0, 4096) + bytes(40))
def list_files(): os.listdir(D + "/mnt")
ready(); list_files()
""", ["list_files", "FUSE|fuse", "mnt", "{pid}"], alarm=ALARM)
for words in (("cat",), ("ls", "-l"), ("cp", "/etc/passwd"), (PYTHON, "-c", "import os, sys; os.open(sys.argv[1], 0)")):
    hang(FAMILY, "FUSE: %s of a file whose server does not answer" % os.path.basename(words[0]),
         "the process waits for hungfuse to answer", listing(*words),
         ["FUSE|fuse", "mount", "hungfuse|{server}"], alarm=ALARM)
