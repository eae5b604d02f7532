"""Frames over Unix sockets, TCP, a given socket and pipes: the contract, and what only they have."""

from __future__ import annotations

import json
import os
import select
import socket
import ssl
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectFailed, ConnectionLost, ConnectTimeout, MessageTooLarge
from mcpsync.transport.base import Transport
from mcpsync.transport.sockets import SocketTransport, dial_unix
from tests.peers.sockets import LineServer
from tests.transport import harness
from tests.transport.contract import PATIENCE, Connected, StreamContract, connected

SMALL = 256 * 1024
"""Bytes that may wait here, so that a deaf peer is soon one that has no room."""


def echo(incoming: Any, outgoing: Any) -> None:
    notes: List[Any] = []
    for line in incoming:
        message = json.loads(line)
        if "id" not in message:
            notes.append(message["params"])
        elif message["method"] == "die":
            return
        else:
            answer = {"id": message["id"], "result": {"params": message["params"], "notes": notes}}
            outgoing.write(json.dumps(answer).encode() + b"\n")
            outgoing.flush()


def echo_on(connection: socket.socket) -> None:
    with connection.makefile("rb") as incoming, connection.makefile("wb") as outgoing:
        echo(incoming, outgoing)


class SocketContract(StreamContract):
    """The contract; a subclass says what kind of connection it is."""

    tcp = False
    settles = 0.1

    @pytest.fixture(autouse=True)
    def peers(self) -> Iterator[None]:
        self.gate = threading.Event()
        self.over = threading.Event()
        self.servers: List[LineServer] = []
        yield
        self.over.set()
        self.gate.set()
        for server in self.servers:
            server.__exit__(None, None, None)

    def to(self, serve: Any) -> Transport:
        server = LineServer(serve, tcp=self.tcp)
        self.servers.append(server)
        if self.tcp:
            return SocketTransport(
                lambda deadline: socket.create_connection(server.address, deadline.remaining()), "s", backlog=SMALL
            )
        return SocketTransport(dial_unix(server.path), "s", backlog=SMALL)

    def echoing(self) -> Transport:
        return self.to(echo_on)

    def deaf(self) -> Transport:
        return self.to(lambda connection: self.over.wait(PATIENCE))

    def gated(self) -> Transport:
        def serve(connection: socket.socket) -> None:
            assert self.gate.wait(PATIENCE)
            echo_on(connection)

        return self.to(serve)

    def open_gate(self, transport: Transport) -> None:
        self.gate.set()


class TestUnix(SocketContract):
    """A Unix socket."""


class TestTcp(SocketContract):
    """A socket that may take a part of a small frame."""

    tcp = True


class TestPipes(SocketContract):
    """A pair of file objects."""

    def to(self, serve: Any) -> Transport:
        threads: List[threading.Thread] = []

        def dial(deadline: Deadline) -> Tuple[Any, Any]:
            (their_in, our_out), (our_in, their_out) = os.pipe(), os.pipe()

            def run() -> None:
                with open(their_in, "rb") as incoming, open(their_out, "wb") as outgoing, suppress(OSError):
                    serve(incoming, outgoing)

            threads.append(threading.Thread(target=run, name="piped", daemon=True))
            threads[-1].start()
            return open(our_in, "rb", buffering=0), open(our_out, "wb", buffering=0)

        return SocketTransport(dial, "s", backlog=SMALL)

    def echoing(self) -> Transport:
        return self.to(echo)

    def deaf(self) -> Transport:
        return self.to(lambda incoming, outgoing: self.over.wait(PATIENCE))

    def gated(self) -> Transport:
        def serve(incoming: Any, outgoing: Any) -> None:
            assert self.gate.wait(PATIENCE)
            echo(incoming, outgoing)

        return self.to(serve)


def given() -> Tuple[harness.Connected, socket.socket]:
    """A connection over one end of a socket pair, and the other end."""
    ours, theirs = socket.socketpair()
    theirs.settimeout(PATIENCE)
    return harness.Connected(SocketTransport(lambda deadline: ours, "s", max_message=1000)), theirs


def test_frames_that_come_in_pieces_and_many_at_a_time() -> None:
    connection, theirs = given()
    with theirs:
        for piece in (b'{"a', b'":1}', b'\n{"b":2}\r\n\n{"c', b'":3}\n'):
            theirs.sendall(piece)
        assert [connection.sink.next() for _ in range(3)] == [b'{"a":1}', b'{"b":2}', b'{"c":3}']
        connection.close()
        connection.reader.join(PATIENCE)
        assert connection.sink.losses.empty()


def test_the_end_of_the_stream_is_a_loss_that_says_what_was_left() -> None:
    for rest, told in ((b"", "closed the connection"), (b'{"id":1,"res', "in the middle of a message")):
        connection, theirs = given()
        theirs.sendall(b'{"id":0}\n' + rest)
        theirs.close()
        assert connection.sink.next() == b'{"id":0}'
        loss = connection.sink.loss()
        assert isinstance(loss, ConnectionLost) and told in str(loss) and loss.server == "s"
        with pytest.raises(ConnectionLost, match="closed the connection"):
            connection.send(b"{}")
        connection.reader.join(PATIENCE)
        connection.close()


def test_what_is_no_message_is_skipped_and_quoted() -> None:
    connection, theirs = given()
    theirs.sendall(b"Welcome!\n")
    theirs.sendall(b'{"id":0}\n')
    assert connection.sink.next() == b'{"id":0}'
    theirs.close()
    assert "the stream: Welcome!" in str(connection.sink.loss())
    assert [kind for kind, _ in connection.sink.warnings] == ["noise"]
    connection.close()


def test_a_message_that_is_too_long_ends_the_connection() -> None:
    connection, theirs = given()
    with theirs:
        theirs.sendall(b"{" * 1001)
        assert isinstance(connection.sink.loss(), MessageTooLarge)
        connection.close()


def test_a_server_that_speaks_http_is_told_apart() -> None:
    connection, theirs = given()
    with theirs:
        theirs.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        loss = connection.sink.loss()
        assert isinstance(loss, ConnectFailed) and "unix:///path/to.sock#/mcp" in str(loss)
        connection.close()


def test_close_sends_what_waits_and_then_the_end_of_the_stream() -> None:
    connection, theirs = given()
    big = b"x" * 500_000
    connection.send(b'{"last":"' + big + b'"}')
    read: List[bytes] = []

    def drain() -> None:
        while True:
            chunk = theirs.recv(65536)
            if not chunk:
                break
            read.append(chunk)
        theirs.close()

    reader = threading.Thread(target=drain, name="drain")
    reader.start()
    connection.close()
    reader.join(PATIENCE)
    assert b"".join(read) == b'{"last":"' + big + b'"}\n'
    assert connection.sink.losses.empty()


def test_what_the_server_says_at_the_end_of_the_stream_is_still_read() -> None:
    connection, theirs = given()

    def answer_the_end() -> None:
        while theirs.recv(65536):
            pass
        theirs.sendall(b'{"last":1}\n')
        theirs.close()

    answering = threading.Thread(target=answer_the_end, name="answering")
    answering.start()
    connection.send(b"{}")
    connection.close()
    answering.join(PATIENCE)
    assert connection.sink.next() == b'{"last":1}'


def test_close_does_not_wait_long_for_a_server_that_stays() -> None:
    connection, theirs = given()
    with theirs:
        assert connection.close(0.2) < 2
        assert connection.close(5) < 0.2
        connection.reader.join(PATIENCE)
        assert not connection.reader.is_alive()
        assert theirs.recv(10) == b""


def test_descriptors_are_given_back() -> None:
    before = harness.descriptors()
    for _ in range(20):
        connection, theirs = given()
        connection.send(b"{}")
        connection.close(0)
        connection.reader.join(PATIENCE)
        theirs.close()
        ours, theirs = socket.socketpair()
        unread = SocketTransport(lambda deadline, ours=ours: ours)  # type: ignore[misc]
        unread.open(Deadline(PATIENCE))
        unread.close(Deadline(PATIENCE))
        theirs.close()
    assert harness.descriptors() == before


def test_a_socket_that_is_not_there(tmp_path: Any) -> None:
    path = str(tmp_path / "none.sock")
    transport = SocketTransport(dial_unix(path), "s")
    with pytest.raises(ConnectFailed, match=r"cannot connect to the socket .*none.sock: No such file") as caught:
        transport.open(Deadline(PATIENCE))
    assert caught.value.server == "s" and not caught.value.permanent
    transport = SocketTransport(dial_unix(str(tmp_path / ("x" * 200))), "s")
    with pytest.raises(ConnectFailed, match="too long"):
        transport.open(Deadline(PATIENCE))


def test_a_server_that_accepts_nothing(tmp_path: Any) -> None:
    path = str(tmp_path / "full.sock")
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(path)
        listener.listen(0)
        first.connect(path)
        start = time.monotonic()
        with pytest.raises(ConnectTimeout, match="accepts no connection"):
            SocketTransport(dial_unix(path), "s").open(Deadline(0.2))
        assert 0.2 <= time.monotonic() - start < 5


def test_a_tls_socket_is_refused() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        wrapped = ssl.create_default_context().wrap_socket(ours, server_hostname="x", do_handshake_on_connect=False)
        with pytest.raises(ConnectFailed, match="TLS"):
            SocketTransport(lambda deadline: wrapped).open(Deadline(PATIENCE))


def test_what_a_dial_raises_is_a_failed_connection() -> None:
    def refused(deadline: Deadline) -> socket.socket:
        raise ConnectionRefusedError(111, "Connection refused")

    with pytest.raises(ConnectFailed, match="cannot connect: Connection refused"):
        SocketTransport(refused).open(Deadline(PATIENCE))


def test_a_quiet_connection_does_not_wake_its_reader() -> None:
    connection, theirs = given()
    with theirs:
        connection.send(b"{}")
        theirs.recv(10)
        before = time.thread_time_ns(), time.process_time_ns()
        select.select([], [], [], 0.2)
        assert time.process_time_ns() - before[1] < 100_000_000
        connection.close()


@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_a_forked_child_leaves_the_connection_to_its_parent(kind: str) -> None:
    with LineServer(echo_on, tcp=kind == "tcp") as server:

        def dial(deadline: Deadline) -> socket.socket:
            if kind == "tcp":
                return socket.create_connection(server.address, deadline.remaining())
            return dial_unix(server.path)(deadline)  # type: ignore[return-value]

        connection = Connected(SocketTransport(dial, "s"))
        child = os.fork()
        if child == 0:
            with suppress(BaseException):
                connection.transport.after_fork()
                try:
                    connection.note("from the child")
                except ConnectionLost as error:
                    connection.transport.close(Deadline(1))
                    os._exit(0 if "parent process" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        connection.ask("after the fork")
        answer: Dict[str, Any] = connection.sink.next()
        assert answer["result"] == {"params": "after the fork", "notes": []}
        connection.close()
        assert connection.sink.losses.empty()


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_a_forked_child_has_no_end_of_the_connection() -> None:
    ours, theirs = socket.socketpair()
    inode = os.readlink("/proc/self/fd/%d" % ours.fileno())
    connection = harness.Connected(SocketTransport(lambda deadline: ours))
    with theirs:
        child = os.fork()
        if child == 0:
            code = 2
            try:
                connection.transport.after_fork()
                left = [os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
                code = left.count(inode)
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        connection.close()


def test_the_contract_runs_over_a_connection_that_is_given() -> None:
    ours, theirs = socket.socketpair()
    serving = threading.Thread(target=lambda: echo_on(theirs), name="given", daemon=True)
    serving.start()
    with connected(SocketTransport(lambda deadline: ours)) as connection:
        connection.ask(7)
        assert connection.sink.next()["result"]["params"] == 7
    serving.join(PATIENCE)
    theirs.close()
