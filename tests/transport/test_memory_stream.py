"""The stream-like in-memory transport: the contract, and what only it has."""

from __future__ import annotations

import json
import logging
import queue
import threading
from typing import Any, Dict, List

import pytest

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectFailed, ConnectionLost, Overloaded, ProcessExited
from mcpsync.transport.base import Frame, Transport
from mcpsync.transport.memory import ServerEnd, StreamServer
from tests.transport.contract import PATIENCE, Connected, StreamContract, connected, in_threads


def echo(client: ServerEnd) -> None:
    notes: List[Any] = []
    for data in client:
        message = json.loads(data)
        if "id" not in message:
            notes.append(message["params"])
        elif message["method"] == "die":
            return
        else:
            client.send(json.dumps(answer(message, notes)).encode())


def answer(message: Dict[str, Any], notes: List[Any]) -> Dict[str, Any]:
    return {"id": message["id"], "result": {"params": message["params"], "notes": notes}}


def deaf(client: ServerEnd) -> None:
    client.wait_closed()


class TestContract(StreamContract):
    def echoing(self) -> Transport:
        return StreamServer(echo)()

    def deaf(self) -> Transport:
        return StreamServer(deaf, capacity=3)()

    def gated(self) -> Transport:
        self.gate = threading.Event()

        def wait(client: ServerEnd) -> None:
            assert self.gate.wait(PATIENCE)
            echo(client)

        return StreamServer(wait, capacity=3)()

    def open_gate(self, transport: Transport) -> None:
        self.gate.set()


def test_a_server_that_fails_loses_its_client_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    def fail(client: ServerEnd) -> None:
        client.receive()
        client.send(b'{"method": "last words"}')
        raise ValueError("no such thing")

    with connected(StreamServer(fail, server_name="inside")()) as connection:
        connection.note(1)
        assert connection.sink.next() == {"method": "last words"}
        loss = connection.sink.losses.get(timeout=PATIENCE)
    assert isinstance(loss, ConnectionLost)
    assert loss.maybe_executed
    assert str(loss).startswith("server 'inside': the in-memory server failed: ValueError: no such thing")
    assert "no such thing" in caplog.text


def test_a_server_that_speaks_to_a_closed_client_just_ends(caplog: pytest.LogCaptureFixture) -> None:
    refused: queue.SimpleQueue[str] = queue.SimpleQueue()

    def speak(client: ServerEnd) -> None:
        assert client.wait_closed(PATIENCE)
        try:
            client.send(b"{}")
        except ConnectionLost as error:
            refused.put(error.message)
            raise

    with caplog.at_level(logging.DEBUG, "mcpsync"):
        connection = Connected(StreamServer(speak)())
        connection.close()
    assert refused.get(timeout=PATIENCE) == "the connection was closed"
    assert not caplog.records


def test_the_server_reads_what_was_sent_before_the_client_closed() -> None:
    got: queue.SimpleQueue[object] = queue.SimpleQueue()
    go = threading.Event()

    def slow(client: ServerEnd) -> None:
        assert go.wait(PATIENCE)
        got.put(client.receive())
        got.put(client.receive(PATIENCE))

    connection = Connected(StreamServer(slow)())
    connection.note(1)
    connection.transport.close(Deadline(0))
    go.set()
    assert got.get(timeout=PATIENCE) == b'{"method": "note", "params": 1}'
    assert got.get(timeout=PATIENCE) is None


def test_the_client_gets_what_was_sent_before_the_server_closed() -> None:
    def talk(client: ServerEnd) -> None:
        for number in range(10):
            client.send(json.dumps({"method": str(number)}).encode())
        client.close()
        client.close()
        with pytest.raises(ConnectionLost):
            client.send(b"{}")
        client.wait_closed()

    with connected(StreamServer(talk)()) as connection:
        assert [connection.sink.next()["method"] for _ in range(10)] == [str(number) for number in range(10)]
        assert connection.sink.losses.get(timeout=PATIENCE).message == "the server closed the connection"


def test_receive_and_send_on_the_server_end_keep_their_timeouts() -> None:
    outcome: queue.SimpleQueue[object] = queue.SimpleQueue()

    def serve(client: ServerEnd) -> None:
        with pytest.raises(TimeoutError):
            client.receive(0.05)
        with pytest.raises(Overloaded):
            for _ in range(3):
                client.send(b"{}", timeout=0.05)
        outcome.put(client.wait_closed(0.05))

    transport = StreamServer(serve, capacity=2)()
    transport.open(Deadline(PATIENCE))  # nobody reads
    assert outcome.get(timeout=PATIENCE) is False
    transport.close(Deadline(PATIENCE))


def test_a_request_that_was_retired_before_it_was_sent_is_not_sent() -> None:
    with connected(StreamServer(echo)()) as connection:
        retired = connection.request()
        assert connection.transport.abort(retired, "timed out") is False
        retired.answered = True
        connection.send(retired)
        connection.ask("next")
        assert connection.sink.next()["result"]["params"] == "next"


def test_the_next_connects_fail_on_demand() -> None:
    server = StreamServer(echo, server_name="inside")
    server.fail_next()
    server.fail_next(ProcessExited("it died", exit_code=3))
    with pytest.raises(ConnectFailed, match="told to refuse"):
        Connected(server())
    with pytest.raises(ProcessExited) as caught:
        Connected(server())
    assert caught.value.exit_code == 3
    with connected(server()) as connection:
        connection.ask("hello")
        assert connection.sink.next()["result"]["params"] == "hello"
    assert server.connects == 1


def test_open_connections_are_lost_on_demand() -> None:
    server = StreamServer(echo, server_name="inside")
    with connected(server()) as first, connected(server()) as second:
        cause = ProcessExited("it died", exit_code=3)
        server.lose(cause)
        server.lose()
        for connection in (first, second):
            loss = connection.sink.losses.get(timeout=PATIENCE)
            assert isinstance(loss, ProcessExited)
            assert loss is not cause
            with pytest.raises(ProcessExited):
                connection.ask()
            assert connection.sink.losses.empty()
    with connected(server()) as third:
        server.lose()
        assert isinstance(third.sink.losses.get(timeout=PATIENCE), ConnectionLost)


def test_a_server_that_does_not_end_is_named_and_left(caplog: pytest.LogCaptureFixture) -> None:
    stubborn = threading.Event()

    def serve(client: ServerEnd) -> None:
        assert stubborn.wait(PATIENCE)

    connection = Connected(StreamServer(serve, server_name="stubborn")())
    connection.transport.close(Deadline(0.05))
    assert "'stubborn' goes on after its client has closed" in caplog.text
    stubborn.set()
    connection.reader.join(PATIENCE)


def test_a_server_may_close_its_own_client() -> None:
    transports: queue.SimpleQueue[Transport] = queue.SimpleQueue()
    closed = threading.Event()

    def close_it(client: ServerEnd) -> None:
        transport = transports.get(timeout=PATIENCE)
        transport.close(Deadline(PATIENCE))
        transport.close(Deadline(PATIENCE))
        closed.set()

    connection = Connected(StreamServer(close_it)())
    transports.put(connection.transport)
    assert closed.wait(PATIENCE)
    connection.close()


def test_a_sink_may_close_the_transport_that_feeds_it() -> None:
    class Closing:
        def __init__(self, transport: Transport) -> None:
            self.transport = transport

        def frame(self, data: bytes, stream: object) -> None:
            self.transport.close(Deadline(PATIENCE))

        def lost(self, cause: object) -> None:
            raise AssertionError("it was closed, not lost")

        def alive(self, stream: object) -> None: ...
        def warn(self, kind: str, detail: str) -> None: ...

    def talk(client: ServerEnd) -> None:
        client.send(b"{}")
        client.wait_closed()

    transport = StreamServer(talk)()
    transport.open(Deadline(PATIENCE))
    transport.run(Closing(transport))
    transport.close(Deadline(PATIENCE))


def test_run_without_a_connection_returns() -> None:
    transport = StreamServer(echo)()
    connection = Connected(transport)
    connection.close()
    transport.run(connection.sink)
    assert connection.sink.losses.empty()


def test_a_capacity_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="capacity must be at least one message, not 0"):
        StreamServer(echo, capacity=0)()


def test_many_connections_to_one_server() -> None:
    server = StreamServer(echo)

    def use(number: int) -> object:
        with connected(server()) as connection:
            connection.note(number)
            connection.ask("mine")
            return connection.sink.next()["result"]["notes"]

    assert in_threads(8, use) == [[number] for number in range(8)]
    assert server.connects == 8


def test_send_of_bytes_is_what_the_server_gets() -> None:
    got: queue.SimpleQueue[object] = queue.SimpleQueue()
    with connected(StreamServer(lambda client: got.put(client.receive()))()) as connection:
        connection.transport.send(Frame("é\n".encode(), "x"), None, Deadline(PATIENCE))
        assert got.get(timeout=PATIENCE) == "é\n".encode()
        assert connection.sink.losses.get(timeout=PATIENCE).message == "the server closed the connection"


def no_thread(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_no_thread_for_the_server_is_a_failed_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    server = StreamServer(echo)
    transport = server()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(ConnectFailed, match="no thread can be started for the in-memory server: can't start"):
            transport.open(Deadline(PATIENCE))
    with pytest.raises(ConnectionLost):
        transport.send(Frame(b"{}"), None, Deadline(PATIENCE))
    transport.close(Deadline(PATIENCE))
