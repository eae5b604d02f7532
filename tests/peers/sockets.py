"""Servers that listen on a socket and take messages line by line: functions on threads, or scripted peers."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any, Callable, List, Optional, Sequence, Type

import mcpsync

__all__ = ["LineServer", "echoes_in_a_child", "scripted_behind"]

Serve = Callable[[socket.socket], None]


class LineServer:
    """Listens on a Unix socket in a folder of its own, or on TCP, and serves each connection on a thread.

    :param serve: gets the accepted socket; it is closed afterwards
    :param tcp: listen on a loopback port instead
    :ivar path: of the Unix socket
    :ivar accepted: how many connections there have been
    """

    def __init__(self, serve: Serve, *, tcp: bool = False, backlog: int = 16) -> None:
        self._serve = serve
        self._folder = tempfile.TemporaryDirectory(prefix="mcpsync-")
        self.path = os.path.join(self._folder.name, "s.sock")
        self.accepted = 0
        self._backlog = backlog
        self._tcp = tcp
        self._connections: List[socket.socket] = []
        self._threads: List[threading.Thread] = []
        self._lock = threading.Lock()
        self.listener: Any = None
        self.start()

    def start(self) -> None:
        """Listen, for the first time or again."""
        if self._tcp:
            self.listener = socket.create_server(("127.0.0.1", 0))
        else:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(self.path)
            self.listener.listen(self._backlog)
        accepting = threading.Thread(target=self._accept, args=(self.listener,), name="line-server", daemon=True)
        accepting.start()
        self._threads.append(accepting)

    @property
    def url(self) -> str:
        """How a client names it."""
        return "unix://" + self.path

    @property
    def address(self) -> Any:
        """Of the TCP port."""
        return self.listener.getsockname()

    def stop_listening(self) -> None:
        """As a server that has ended: its socket is gone, the connections stay."""
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with suppress(FileNotFoundError):
            os.unlink(self.path)

    def cut(self) -> None:
        """End every connection that is served by a function of this process."""
        with self._lock:
            connections, self._connections = self._connections, []
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                self.accepted += 1
                self._connections.append(connection)
            serving = threading.Thread(target=self._run, args=(connection,), name="line-server", daemon=True)
            self._threads.append(serving)
            serving.start()

    def _run(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            self._serve(connection)

    def __enter__(self) -> LineServer:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.stop_listening()
        self.cut()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()
        self._folder.cleanup()


def scripted_behind(command: Sequence[str]) -> Serve:
    """Serves each connection by a process of its own, whose standard input and output are the socket."""

    def serve(connection: socket.socket) -> None:
        process = subprocess.Popen(command, stdin=connection, stdout=connection)
        connection.close()  # the process has it: its end is the end of the connection
        process.wait()

    return serve


def echoes_in_a_child(client: mcpsync.Client) -> bool:
    """Whether a forked child gets its answer by a connection of its own, and can close that."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if client.call_tool("echo", {"text": "child"}).text == "child" else 2
            client.close()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
