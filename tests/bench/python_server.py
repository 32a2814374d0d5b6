"""
A server to be recorded: 50 threads, each with one connection, serve a process that sends the next
request when it has an answer, so they always wait for the GIL. Counts the requests in a file.
"""

import mmap
import os
import socketserver
import struct
import subprocess
import sys

CLIENT = """
import os, select, socket
connections = {}
poll = select.epoll()
for i in range(50):
    connection = socket.create_connection(("127.0.0.1", %d))
    connections[connection.fileno()] = connection
    poll.register(connection, select.EPOLLIN)
    connection.sendall(b"r")
parent = os.getppid()
while os.getppid() == parent:
    for fd, _ in poll.poll(1):
        if connections[fd].recv(100):
            connections[fd].sendall(b"r")
"""

with open(sys.argv[1], "w+b") as counter_file:
    counter_file.write(bytes(8))
    counter_file.flush()
    COUNTER = mmap.mmap(counter_file.fileno(), 8)
COUNT = 0


def respond(depth):
    return respond(depth - 1) if depth else sum(i * i for i in range(400))


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        global COUNT
        while self.request.recv(100):
            respond(20)
            self.request.sendall(b"ok")
            COUNT += 1
            COUNTER[:] = struct.pack("<Q", COUNT)


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    request_queue_size = 100


with Server(("127.0.0.1", 0), Handler) as server:
    with subprocess.Popen([sys.executable, "-c", CLIENT % server.server_address[1]],
                          stderr=subprocess.DEVNULL):
        print("ready", flush=True)
        server.serve_forever()
