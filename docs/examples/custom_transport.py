"""A transport of one's own, whole: newline-delimited messages over TCP. What each method owes: docs/transports.md."""

import select
import socket
import sys
import threading
from contextlib import suppress

import mcpsync
from mcpsync.errors import ConnectFailed, ConnectionLost, Overloaded


class Tcp:
    exchange_like = False  # send() hands the bytes over and returns; what comes back goes to the sink of run()

    def __init__(self, host, port):
        self.address, self.sending = (host, port), threading.Lock()

    def open(self, deadline):
        try:
            self.sock = socket.create_connection(self.address, deadline.remaining())
        except OSError as error:
            raise ConnectFailed("cannot connect to %s:%d: %s" % (*self.address, error)) from error
        self.sock.setblocking(False)

    def run(self, sink):
        rest = b""
        with self.sock:
            while select.select([self.sock], [], []):
                try:
                    chunk = self.sock.recv(65536)
                except OSError:
                    break
                if not chunk:
                    break
                *lines, rest = (rest + chunk).split(b"\n")
                for line in filter(bytes.strip, lines):
                    sink.frame(line, None)
        sink.lost(ConnectionLost("the server closed the connection"))

    def send(self, frame, request, deadline):
        data, sent, left = frame.data + b"\n", 0, deadline.remaining()
        if not self.sending.acquire(timeout=-1 if left is None else left):
            raise Overloaded("the server does not read")
        try:
            while sent < len(data):
                if not select.select([], [self.sock], [], deadline.remaining())[1]:
                    raise Overloaded("the server does not read")
                sent += self.sock.send(data[sent:])
        except (OSError, ValueError) as error:
            raise ConnectionLost("the connection is gone: %s" % error) from error
        finally:
            if 0 < sent < len(data):  # its deadline, or Ctrl-C: half a message is no message
                self.close(deadline)
            self.sending.release()

    def listen(self, frame, deadline, request=None):
        raise ConnectionLost("a TCP connection has no stream of its own to listen on")

    def abort(self, request, reason):
        return False  # the server has the request, and has to be told that it is no longer wanted

    def close(self, deadline):
        with suppress(OSError, AttributeError):
            self.sock.shutdown(socket.SHUT_RDWR)  # wakes run(), which closes the socket

    def after_fork(self):
        self.sock.close()  # the child's copy; the parent's connection goes on


if __name__ == "__main__":
    host, port = sys.argv[1:]
    with mcpsync.connect(lambda: Tcp(host, int(port)), name="tcp") as client:
        print(*(tool.name for tool in client.list_tools()), sep="\n")
