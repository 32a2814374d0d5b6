"""What a snapshot must not do to its target: wake it up, or break its calls. (Calls that sleep are
in test_eintr.py; signals, stops and ends of processes in test_killed.py, test_races.py and
test_survive.py.)"""
# ctest: release-only

import os
import signal
import socket
import subprocess
import sys
import tempfile

from harness import EndToEnd, MODES, main, read_text, task_states, wait_until


class Stopped(EndToEnd):
    def test_stacks_of_a_stopped_process(self):
        target = self.start("threads", 1, 2)
        os.kill(target.pid, signal.SIGSTOP)
        wait_until(lambda: set(task_states(target.pid).values()) == {"T"}, "the stop")
        for mode in MODES:
            with self.subTest(mode=mode):
                result = self.run_tool("-f", "folded", "--mode=" + mode, target.pid)
                text = result.stdout.decode()
                for kind in ("poll", "nanosleep", "cond", "futex", "read"):
                    self.assertRegex(text, r";target_thread_main;thread_routine;"
                                     r"descend_odd;descend_even;wait_in_%s;" % kind)


class Calls(EndToEnd):
    def test_a_handler_still_interrupts(self):
        """A real signal must still end a call with EINTR."""
        script = ("import select, signal\n"
                  "class Woken(Exception): pass\n"
                  "def handler(number, frame): raise Woken\n"
                  "signal.signal(signal.SIGUSR1, handler)\n"
                  "poll = select.epoll()\n"
                  "print('ready', flush=True)\n"
                  "try:\n"
                  "    poll.poll()\n"
                  "except Woken:\n"
                  "    print('woken', flush=True)\n")
        for mode in MODES:
            with self.subTest(mode=mode):
                target = self.start_command(["/usr/bin/python3", "-c", script])
                wait_until(lambda: set(task_states(target.pid).values()) == {"S"}, "epoll")
                for _ in range(8):
                    self.snap(target.pid, mode=mode)
                os.kill(target.pid, signal.SIGUSR1)
                self.assertEqual(target.finish(), (0, "woken\n"))


BYTES = 1 << 20
# Each waits in a call that returns early if its thread is stopped, and says what it returned.
# fd 3 is one end of a pair, of which the test has the other; of connect(), the listener.
PARTIAL = {
    "write": ("pipe", "os.write(3, bytes(BYTES))", BYTES),
    "writev": ("pair", "os.writev(3, [bytes(BYTES // 4)] * 4)", BYTES),
    "send": ("pair", "socket.socket(fileno=3).send(bytes(BYTES))", BYTES),
    "recv": ("pair", "len(socket.socket(fileno=3).recv(100, socket.MSG_WAITALL))", 100),
    "connect": ("listener", "connect()", None),
}
def as_fd_3(fd):
    """Options for a process that has this descriptor as 3."""
    return {"pass_fds": [3], "preexec_fn": lambda: os.dup2(fd, 3)}


PROGRAM = """
import os, socket, struct
BYTES = %d
def connect():
    name = socket.socket(fileno=3).getsockname()
    clients = [socket.socket(socket.AF_UNIX) for _ in range(3)]
    clients[0].connect(name)
    clients[1].setblocking(False)
    while clients[1].connect_ex(name) == 0:
        clients.append(clients[1])
        clients[1] = socket.socket(socket.AF_UNIX)
        clients[1].setblocking(False)
    clients[2].setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 600, 0))
    print("ready", flush=True)
    return clients[2].connect_ex(name)
%s
print(%s, flush=True)
"""


class Partial(EndToEnd):
    def ends(self, kind):
        """Returns two connected descriptors: one for the program, and one for the test."""
        if kind == "pipe":
            ends = os.pipe()[::-1]
        elif kind == "pair":
            ends = [end.detach() for end in socket.socketpair()]
        else:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind("")
            listener.listen(0)
            ends = [os.dup(listener.fileno()), listener.detach()]
        self.addCleanup(os.close, ends[1])
        return ends

    def finish(self, kind, end):
        """Lets the call end as it would have without us."""
        if kind == "recv":
            os.write(end, bytes(95))
        elif kind == "connect":
            listener = socket.socket(fileno=os.dup(end))
            self.addCleanup(listener.close)
            listener.accept()[0].close()
            return
        left = 0 if kind == "recv" else BYTES
        while left:
            left -= len(os.read(end, left))

    def test_partial_calls_are_not_ended(self):
        for kind, (pair, call, wanted) in PARTIAL.items():
            theirs, ours = self.ends(pair)
            ready = "" if kind == "connect" else "print('ready', flush=True)"
            program = PROGRAM % (BYTES, ready, call)
            target = self.start_command([sys.executable, "-c", program], **as_fd_3(theirs))
            os.close(theirs)
            if kind == "recv":
                os.write(ours, bytes(5))
            number = {"write": 1, "writev": 20, "send": 44, "recv": 45, "connect": 42}[kind]
            wait_until(lambda: read_text("/proc/%d/syscall" % target.pid).startswith(
                "%d " % number), "it to wait in " + kind)
            for mode in ("stop", "live", "auto", "no-stop"):
                with self.subTest(kind=kind, mode=mode):
                    for _ in range(5):
                        snapshot = self.snap(target.pid, mode=mode)
                        self.assertEqual(snapshot.threads[0]["stopped_ns"], 0)
            self.finish(kind, ours)
            self.assertEqual(target.process.stdout.readline().strip(),
                             b"%d" % (0 if wanted is None else wanted), kind)
            target.kill()


HALF_WRITTEN = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) static long put(int fd, char *bytes, size_t size)
{
	volatile char room[4096];
	room[size %% 4096] = 1;
	return write(fd, bytes, size) + room[size %% 4096] - 1;
}
int main(void)
{
	char *bytes = calloc(1, %d);
	puts("ready");
	fflush(stdout);
	printf("%%ld\\n", put(3, bytes, %d));
	return 0;
}
""" % (BYTES, BYTES)


class HalfWritten(EndToEnd):
    def test_stack_and_recording(self):
        """Functions with a frame pointer, which is unknown for threads that are not stopped."""
        directory = self.enterContext(tempfile.TemporaryDirectory())
        path = os.path.join(directory, "half_written")
        for options in (["-O0"], ["-O2", "-fno-omit-frame-pointer"]):
            subprocess.run([os.environ.get("CC", "cc"), "-g", *options, "-x", "c", "-", "-o", path],
                           input=HALF_WRITTEN.encode(), check=True)
            ours, theirs = os.pipe()
            target = self.start_command([path], **as_fd_3(theirs))
            os.close(theirs)
            wait_until(lambda: read_text("/proc/%d/syscall" % target.pid).startswith("1 0x3 "),
                       "it to write")
            for mode in ("stop", "live"):
                thread, = self.snap(target.pid, mode=mode, status=(0, 1)).threads
                names = [frame["symbol"].split(".")[0] for frame in thread["frames"]
                         if not frame["inlined"]]
                self.assertEqual((names[1:3], names[-1]), (["put", "main"], "_start"),
                                 (options, mode))
                # The frame pointer was searched for, or it is where it must be.
                self.assertIn(thread["end"], ("root", "guessed"), (options, mode))
            recording = os.path.join(directory, "recording" + options[0])
            self.run_tool("record", "-d", "500ms", "-o", recording, target.pid)
            left = BYTES
            while left:
                left -= len(os.read(ours, left))
            os.close(ours)
            self.assertEqual(target.process.stdout.readline().strip(), b"%d" % BYTES, options)
            target.kill()


if __name__ == "__main__":
    main()
