"""The exchange-like in-memory transport: the contract, and what the shape of HTTP adds to it."""

from __future__ import annotations

import json
import queue
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List

import pytest

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectFailed, ConnectionLost, McpError, Overloaded, RequestTimeout
from mcpsync.transport.base import Frame, Transport
from mcpsync.transport.memory import Exchange, ExchangeServer
from tests.transport.contract import PATIENCE, SOON, Connected, Request, TransportContract, connected, in_threads

if TYPE_CHECKING:
    Outcomes = queue.SimpleQueue[object]


def encoded(message: Dict[str, Any]) -> bytes:
    return json.dumps(message).encode()


def result_for(exchange: Exchange, result: object) -> bytes:
    return encoded({"id": json.loads(exchange.request.data)["id"], "result": result})


def silent(exchange: Exchange) -> None:
    exchange.wait_ended(PATIENCE)


def echo(exchange: Exchange) -> None:
    exchange.send(result_for(exchange, json.loads(exchange.request.data)["params"]))


def echoing() -> ExchangeServer:
    notes: List[Any] = []

    def serve(exchange: Exchange) -> None:
        message = json.loads(exchange.request.data)
        if "id" not in message:
            notes.append(message["params"])
        elif message["method"] == "die":
            server.lose()
        else:
            exchange.send(encoded({"id": message["id"], "result": {"params": message["params"], "notes": notes}}))

    server = ExchangeServer(serve)
    return server


def asking(connection: Connected, outcomes: Outcomes, request: Request, method: str = "echo") -> threading.Thread:
    """Send a request on a thread; what became of the send goes into the queue: None or the error."""

    def ask() -> None:
        try:
            connection.send(request, method=method)
        except McpError as error:
            outcomes.put(error)
        else:
            outcomes.put(None)

    thread = threading.Thread(target=ask, name="mcpsync-test-sender")
    thread.start()
    return thread


class TestContract(TransportContract):
    def echoing(self) -> Transport:
        return echoing()()

    def deaf(self) -> Transport:
        return ExchangeServer(silent)()

    def block(self, connection: Connected) -> None:
        """Any request does."""


def test_it_is_exchange_like() -> None:
    assert ExchangeServer(silent)().exchange_like


def test_send_returns_when_the_request_is_answered_whatever_else_the_server_does() -> None:
    let_go = threading.Event()

    def serve(exchange: Exchange) -> None:
        for number in range(3):
            exchange.send(encoded({"method": "progress", "params": number}))
        echo(exchange)
        assert exchange.wait_ended(PATIENCE)
        with pytest.raises(ConnectionLost):
            exchange.send(b"{}")
        let_go.set()

    with connected(ExchangeServer(serve)()) as connection:
        request = connection.ask("x")
        assert request.answered
        messages = [connection.sink.next_of() for _ in range(4)]
        assert let_go.wait(PATIENCE)
    assert [message.get("params") for message, _ in messages] == [0, 1, 2, None]
    assert messages[3][0]["result"] == "x"
    assert len({stream for _, stream in messages}) == 1
    assert messages[0][1] is not None


def test_the_server_gets_the_frame_as_it_was_sent() -> None:
    got: queue.SimpleQueue[Frame] = queue.SimpleQueue()
    frame = Frame(b'{"method": "note"}', "note", {"Mcp-Method": "note"})
    with connected(ExchangeServer(lambda exchange: got.put(exchange.request))()) as connection:
        connection.transport.send(frame, None, Deadline(PATIENCE))
    assert got.get(timeout=PATIENCE) == frame


def test_concurrent_exchanges_have_streams_of_their_own() -> None:
    together = threading.Barrier(4)

    def serve(exchange: Exchange) -> None:
        together.wait(PATIENCE)
        echo(exchange)

    with connected(ExchangeServer(serve)()) as connection:
        in_threads(4, connection.ask)
        assert len({connection.sink.next_of()[1] for _ in range(4)}) == 4


def server_that_asks(by: Callable[[Exchange, bytes], object]) -> ExchangeServer:
    """A server that answers a request with the answer to a question of its own."""
    answers: queue.SimpleQueue[Dict[str, Any]] = queue.SimpleQueue()

    def serve(exchange: Exchange) -> None:
        message = json.loads(exchange.request.data)
        if "result" in message:
            answers.put(message)
        else:
            by(exchange, encoded({"id": "q", "method": "roots/list"}))
            exchange.send(result_for(exchange, answers.get(timeout=PATIENCE)))

    return ExchangeServer(serve)


@pytest.mark.parametrize("by", [Exchange.send, Exchange.push], ids=["own stream", "long stream"])
def test_a_question_is_answered_while_its_exchange_blocks(by: Callable[[Exchange, bytes], object]) -> None:
    outcomes: Outcomes = queue.SimpleQueue()
    answer = {"id": "q", "result": {"roots": []}}
    with connected(server_that_asks(by)()) as connection:
        connection.transport.listen(Frame(b""), Deadline(PATIENCE))
        sender = asking(connection, outcomes, connection.request())
        question, stream = connection.sink.next_of()
        assert question == {"id": "q", "method": "roots/list"}
        assert (stream is None) == (by is Exchange.push)
        connection.transport.send(Frame(encoded(answer)), None, Deadline(PATIENCE))
        assert connection.sink.next()["result"] == answer
        assert outcomes.get(timeout=PATIENCE) is None
        sender.join(PATIENCE)


def test_an_answer_on_the_long_stream_ends_its_exchange_and_no_other() -> None:
    outcomes: Outcomes = queue.SimpleQueue()
    arrived: queue.SimpleQueue[Exchange] = queue.SimpleQueue()

    def serve(exchange: Exchange) -> None:
        arrived.put(exchange)
        assert exchange.wait_ended(PATIENCE)

    with connected(ExchangeServer(serve)()) as connection:
        connection.transport.listen(Frame(b""), Deadline(PATIENCE))
        first, second = connection.request(), connection.request()
        asking(connection, outcomes, first)
        one = arrived.get(timeout=PATIENCE)
        asking(connection, outcomes, second)
        two = arrived.get(timeout=PATIENCE)
        assert one.push(result_for(one, "elsewhere"))
        assert outcomes.get(timeout=PATIENCE) is None
        assert connection.sink.next_of() == ({"id": first.request_id, "result": "elsewhere"}, None)
        assert one.wait_ended(PATIENCE)
        assert not two.ended
        two.send(result_for(two, "here"))
        assert outcomes.get(timeout=PATIENCE) is None


def test_an_answer_on_the_stream_of_another_exchange_ends_its_own() -> None:
    outcomes: Outcomes = queue.SimpleQueue()
    arrived: queue.SimpleQueue[Exchange] = queue.SimpleQueue()

    def serve(exchange: Exchange) -> None:
        arrived.put(exchange)
        assert exchange.wait_ended(PATIENCE)

    with connected(ExchangeServer(serve)()) as connection:
        asking(connection, outcomes, connection.request())
        one = arrived.get(timeout=PATIENCE)
        asking(connection, outcomes, connection.request())
        two = arrived.get(timeout=PATIENCE)
        two.send(result_for(one, "for one"))
        assert outcomes.get(timeout=PATIENCE) is None
        assert one.wait_ended(PATIENCE)
        assert not two.ended
        two.send(result_for(two, "for two"))
        assert outcomes.get(timeout=PATIENCE) is None


def test_an_exchange_that_ends_without_an_answer_loses_its_own_call_only() -> None:
    outcomes: Outcomes = queue.SimpleQueue()
    waiting: queue.SimpleQueue[Exchange] = queue.SimpleQueue()

    def serve(exchange: Exchange) -> None:
        if exchange.request.method == "wait":
            waiting.put(exchange)
            exchange.wait_ended(PATIENCE)
            return
        exchange.send(encoded({"method": "progress"}))
        exchange.end()
        exchange.end()
        assert exchange.ended

    with connected(ExchangeServer(serve, server_name="inside")()) as connection:
        asking(connection, outcomes, connection.request(), method="wait")
        exchange = waiting.get(timeout=PATIENCE)
        with pytest.raises(ConnectionLost, match="'inside': the exchange ended without an answer") as caught:
            connection.ask()
        assert caught.value.maybe_executed
        assert connection.sink.next() == {"method": "progress"}
        exchange.send(result_for(exchange, 1))
        assert outcomes.get(timeout=PATIENCE) is None
        assert connection.sink.losses.empty()


def test_a_server_that_fails_loses_the_one_exchange_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    def serve(exchange: Exchange) -> None:
        if exchange.request.method == "fail":
            raise ValueError("no such thing")
        echo(exchange)

    with connected(ExchangeServer(serve)()) as connection:
        with pytest.raises(ConnectionLost, match="the in-memory server failed: ValueError: no such thing"):
            connection.ask(method="fail")
        with pytest.raises(ConnectionLost, match="no such thing"):
            connection.transport.send(Frame(b"{}", "fail"), None, Deadline(PATIENCE))
        assert connection.ask().answered
    assert "no such thing" in caplog.text


@pytest.mark.parametrize("ending_cancels", [True, False])
def test_abort_ends_the_exchange_at_once(ending_cancels: bool) -> None:
    outcomes: Outcomes = queue.SimpleQueue()
    arrived: queue.SimpleQueue[Exchange] = queue.SimpleQueue()

    def serve(exchange: Exchange) -> None:
        arrived.put(exchange)
        assert exchange.wait_ended(PATIENCE)

    with connected(ExchangeServer(serve, ending_cancels=ending_cancels)()) as connection:
        request = connection.request()
        asking(connection, outcomes, request)
        exchange = arrived.get(timeout=PATIENCE)
        request.answered = True
        start = time.monotonic()
        assert connection.transport.abort(request, "cancelled") is ending_cancels
        assert outcomes.get(timeout=PATIENCE) is None
        assert exchange.wait_ended(PATIENCE)
        assert time.monotonic() - start < SOON
        assert connection.transport.abort(request, "cancelled") is ending_cancels


def test_a_request_that_was_retired_before_it_was_sent_is_not_sent() -> None:
    arrived: queue.SimpleQueue[Exchange] = queue.SimpleQueue()
    with connected(ExchangeServer(arrived.put)()) as connection:
        request = connection.request()
        connection.transport.abort(request, "timed out")
        request.answered = True
        connection.send(request)
    assert arrived.empty()


def test_the_deadline_ends_the_exchange() -> None:
    ended = threading.Event()

    def serve(exchange: Exchange) -> None:
        if exchange.wait_ended(PATIENCE):
            ended.set()

    with connected(ExchangeServer(serve)()) as connection:
        with pytest.raises(RequestTimeout, match="no answer came in time"):
            connection.ask(seconds=0.05)
        with pytest.raises(RequestTimeout):
            connection.transport.send(Frame(b"{}"), None, Deadline(0.05))
        assert ended.wait(PATIENCE)


def test_an_exchange_waits_for_somebody_to_read_the_connection() -> None:
    transport = ExchangeServer(echo)()
    transport.open(Deadline(PATIENCE))
    with pytest.raises(RequestTimeout, match="nobody reads the connection"):
        transport.send(Frame(b"{}"), None, Deadline(0.05))
    outcomes: Outcomes = queue.SimpleQueue()

    def send() -> None:
        try:
            transport.send(Frame(b"{}"), None, Deadline(PATIENCE))
        except McpError as error:
            outcomes.put(error)

    sender = threading.Thread(target=send, name="mcpsync-test-sender")
    sender.start()
    transport.close(Deadline(PATIENCE))
    assert isinstance(outcomes.get(timeout=PATIENCE), ConnectionLost)
    sender.join(PATIENCE)


def test_the_long_stream_is_there_once_the_client_listens() -> None:
    server = ExchangeServer(silent)
    assert server.push(b"{}") == 0
    with connected(server()) as deaf, connected(server()) as connection:
        assert server.push(b"{}") == 0
        connection.transport.listen(Frame(b""), Deadline(PATIENCE))
        assert server.push(encoded({"method": "news"})) == 1
        assert connection.sink.next_of() == ({"method": "news"}, None)
        assert deaf.sink.messages.empty()
    assert server.push(b"{}") == 0
    with pytest.raises(ConnectionLost):
        connection.transport.listen(Frame(b""), Deadline(PATIENCE))


def test_a_request_that_opens_the_long_stream_is_answered_on_it() -> None:
    listening: queue.SimpleQueue[Exchange] = queue.SimpleQueue()

    def serve(exchange: Exchange) -> None:
        exchange.send(encoded({"method": "acknowledged"}))
        listening.put(exchange)
        exchange.end()

    server = ExchangeServer(serve)
    with connected(server()) as connection:
        connection.transport.listen(Frame(b'{"id": 1}', "subscriptions/listen"), Deadline(PATIENCE))
        assert connection.sink.next_of() == ({"method": "acknowledged"}, None)
        exchange = listening.get(timeout=PATIENCE)
        assert exchange.request.method == "subscriptions/listen"
        assert not exchange.ended
        assert exchange.push(encoded({"method": "news"}))
        assert connection.sink.next_of() == ({"method": "news"}, None)
    assert exchange.ended


def test_a_full_stream_holds_the_server_and_keeps_its_timeout() -> None:
    overloaded: queue.SimpleQueue[object] = queue.SimpleQueue()
    go = threading.Event()

    class SlowSink:
        def frame(self, data: bytes, stream: object) -> None:
            assert go.wait(PATIENCE)

        def lost(self, cause: object) -> None: ...
        def alive(self, stream: object) -> None: ...
        def warn(self, kind: str, detail: str) -> None: ...

    def serve(exchange: Exchange) -> None:
        with pytest.raises(Overloaded):
            for _ in range(4):
                exchange.send(b"{}", timeout=0.05)
        overloaded.put(True)
        go.set()

    transport = ExchangeServer(serve, capacity=1)()
    transport.open(Deadline(PATIENCE))
    reader = threading.Thread(target=transport.run, args=(SlowSink(),), name="mcpsync-test-reader")
    reader.start()
    transport.send(Frame(b"{}"), None, Deadline(PATIENCE))
    assert overloaded.get(timeout=PATIENCE)
    transport.close(Deadline(PATIENCE))
    reader.join(PATIENCE)


def test_a_loss_ends_every_exchange_with_its_cause() -> None:
    outcomes: Outcomes = queue.SimpleQueue()
    arrived: queue.SimpleQueue[Exchange] = queue.SimpleQueue()

    def serve(exchange: Exchange) -> None:
        arrived.put(exchange)
        exchange.wait_ended(PATIENCE)

    server = ExchangeServer(serve)
    with connected(server()) as connection:
        for _ in range(3):
            asking(connection, outcomes, connection.request())
            arrived.get(timeout=PATIENCE)
        server.lose(ConnectionLost("the cable was cut"))
        errors = [outcomes.get(timeout=PATIENCE) for _ in range(3)]
        assert [getattr(error, "message", None) for error in errors] == ["the cable was cut"] * 3
        assert len({id(error) for error in errors}) == 3
        assert connection.sink.losses.get(timeout=PATIENCE).message == "the cable was cut"


def test_the_next_connect_fails_on_demand_and_the_one_after_works() -> None:
    server = ExchangeServer(echo)
    server.fail_next(times=2)
    for _ in range(2):
        with pytest.raises(ConnectFailed):
            Connected(server())
    with connected(server()) as connection:
        assert connection.ask().answered


def test_abort_raced_against_the_answer() -> None:
    """The outcome is one of the two, and whichever it is, the next exchange is none the worse."""
    with connected(ExchangeServer(echo)()) as connection:
        for _ in range(100):
            outcomes: Outcomes = queue.SimpleQueue()
            request = connection.request()
            sender = asking(connection, outcomes, request)
            connection.transport.abort(request, "cancelled")
            request.answered = True
            assert outcomes.get(timeout=PATIENCE) is None
            sender.join(PATIENCE)
        assert connection.ask("last").answered


def test_no_thread_for_the_server_fails_the_one_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with connected(ExchangeServer(echo)()) as connection:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", no_thread)
            with pytest.raises(Overloaded, match="no thread can be started for the in-memory server: can't start"):
                connection.ask()
        assert connection.ask().answered
