"""What every transport promises (``mcpsync/transport/base.py``), as test classes to be run against each.

A subclass gives the peer. It takes each frame as a message and knows: ``{"id": n, "method": "echo", "params": p}`` is
answered with ``{"id": n, "result": {"params": p, "notes": [...]}}``, where ``notes`` are the params of the
notifications (messages without id) that came so far on this connection; the method ``die`` ends the connection.
"""

from __future__ import annotations

import itertools
import json
import queue
import threading
import time
from contextlib import contextmanager, suppress
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectFailed, McpError, Overloaded, RequestTimeout, TransportError
from mcpsync.transport.base import Frame, StreamId, Transport

PATIENCE = 20.0
SOON = 5.0
"""Seconds within which something happens that takes milliseconds on an idle machine."""


BIG = "x" * 3000
"""The params of a request for which there is no room where :meth:`StreamContract.fill` has been."""


class Request:
    """A request as a transport sees it; answered by the sink."""

    def __init__(self, request_id: int) -> None:
        self.request_id = request_id
        self.answered = False


class RecordingSink:
    """A sink that keeps what it gets, and retires the requests that are answered."""

    def __init__(self) -> None:
        self.messages: queue.SimpleQueue[Tuple[Dict[str, Any], StreamId]] = queue.SimpleQueue()
        self.losses: queue.SimpleQueue[McpError] = queue.SimpleQueue()
        self.requests: Dict[int, Request] = {}

    def frame(self, data: bytes, stream: StreamId) -> None:
        message = json.loads(data)
        if "method" not in message:
            self.requests[message["id"]].answered = True
        self.messages.put((message, stream))

    def alive(self, stream: StreamId) -> None:
        """Says nothing."""

    def lost(self, cause: McpError) -> None:
        self.losses.put(cause)

    def warn(self, kind: str, detail: str) -> None:
        raise AssertionError("warned of %s: %s" % (kind, detail))

    def next(self) -> Dict[str, Any]:
        """The next message of any stream."""
        return self.messages.get(timeout=PATIENCE)[0]

    def next_of(self) -> Tuple[Dict[str, Any], StreamId]:
        """The next message, with its stream."""
        return self.messages.get(timeout=PATIENCE)


class Connected:
    """An open transport with its reader."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.sink = RecordingSink()
        self._ids = itertools.count(1)
        self._ids_lock = threading.Lock()
        transport.open(Deadline(PATIENCE))
        self.reader = threading.Thread(target=transport.run, args=(self.sink,), name="mcpsync-test-reader", daemon=True)
        self.reader.start()

    def request(self) -> Request:
        """A new request, which the sink knows."""
        with self._ids_lock:
            request = Request(next(self._ids))
        self.sink.requests[request.request_id] = request
        return request

    def ask(self, params: Any = None, *, seconds: float = PATIENCE, method: str = "echo") -> Request:
        """Send a request."""
        request = self.request()
        self.send(request, params, seconds=seconds, method=method)
        return request

    def send(self, request: Request, params: Any = None, *, seconds: float = PATIENCE, method: str = "echo") -> None:
        """Send a request made before."""
        message = {"id": request.request_id, "method": method, "params": params}
        self.transport.send(Frame(json.dumps(message).encode(), method), request, Deadline(seconds))

    def note(self, params: Any) -> None:
        """Send a notification."""
        data = json.dumps({"method": "note", "params": params}).encode()
        self.transport.send(Frame(data, "note"), None, Deadline(PATIENCE))

    def close(self) -> None:
        """Close, and see the reader end."""
        self.transport.close(Deadline(PATIENCE))
        self.reader.join(PATIENCE)
        assert not self.reader.is_alive()


@contextmanager
def connected(transport: Transport) -> Iterator[Connected]:
    """A transport, open until the block ends."""
    connection = Connected(transport)
    try:
        yield connection
    finally:
        connection.close()


def in_threads(count: int, body: Callable[[int], object]) -> List[object]:
    """What each of so many threads gave or raised, in order, once all have ended."""
    outcomes: List[object] = [None] * count

    def run(number: int) -> None:
        try:
            outcomes[number] = body(number)
        except BaseException as error:
            outcomes[number] = error

    threads = [threading.Thread(target=run, args=(number,), name="mcpsync-test") for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    return outcomes


class TransportContract:
    """For every transport."""

    def echoing(self) -> Transport:
        """A transport to the peer described above."""
        raise NotImplementedError

    def deaf(self) -> Transport:
        """A transport to a peer that never reads or answers, with room for few messages."""
        raise NotImplementedError

    def block(self, connection: Connected) -> None:
        """Bring a connection to a deaf peer to where the next request blocks its sender."""
        raise NotImplementedError

    def test_frames_arrive_whole_and_in_order(self) -> None:
        with connected(self.echoing()) as connection:
            for number in range(50):
                connection.note(number)
            for number in range(50):
                connection.ask({"number": number, "text": "é\u2028" * 2000})
            answers = [connection.sink.next() for _ in range(50)]
        assert [answer["result"]["params"]["number"] for answer in answers] == list(range(50))
        assert {answer["result"]["params"]["text"] for answer in answers} == {"é\u2028" * 2000}
        assert answers[0]["result"]["notes"] == list(range(50))

    def test_concurrent_senders_neither_lose_nor_mix_anything(self) -> None:
        with connected(self.echoing()) as connection:

            def ask(sender: int) -> List[Tuple[int, int]]:
                return [(connection.ask([sender, turn]).request_id, turn) for turn in range(25)]

            sent = in_threads(8, ask)
            answers = {message["id"]: message["result"]["params"] for message in self.take(connection, 200)}
        for sender, mine in enumerate(sent):
            assert isinstance(mine, list), mine
            for request_id, turn in mine:
                assert answers[request_id] == [sender, turn]

    @staticmethod
    def take(connection: Connected, count: int) -> List[Dict[str, Any]]:
        return [connection.sink.next() for _ in range(count)]

    def test_abort_of_what_was_never_sent_or_is_answered_harms_nothing(self) -> None:
        with connected(self.echoing()) as connection:
            connection.transport.abort(connection.request(), "timed out")
            answered = connection.ask("first")
            connection.sink.next()
            connection.transport.abort(answered, "timed out")
            connection.ask("second")
            assert connection.sink.next()["result"]["params"] == "second"
            assert connection.sink.losses.empty()

    def test_a_blocked_sender_returns_at_its_deadline(self) -> None:
        with connected(self.deaf()) as connection:
            self.block(connection)
            start = time.monotonic()
            with pytest.raises((Overloaded, RequestTimeout)):
                connection.ask(BIG, seconds=0.2)
            assert 0.2 <= time.monotonic() - start < SOON
            assert connection.sink.losses.empty()

    def test_close_frees_a_blocked_sender(self) -> None:
        connection = Connected(self.deaf())
        self.block(connection)
        sending = threading.Event()
        outcome: queue.SimpleQueue[object] = queue.SimpleQueue()

        def send() -> None:
            sending.set()
            try:
                outcome.put(connection.ask(BIG))
            except McpError as error:
                outcome.put(error)

        sender = threading.Thread(target=send, name="mcpsync-test-sender")
        sender.start()
        assert sending.wait(PATIENCE)
        connection.close()
        assert isinstance(outcome.get(timeout=SOON), TransportError)
        sender.join(PATIENCE)

    def test_a_loss_is_reported_once_and_later_senders_are_told(self) -> None:
        connection = Connected(self.echoing())
        with suppress(TransportError):  # the sender of an exchange hears of it too
            connection.ask(method="die")
        assert isinstance(connection.sink.losses.get(timeout=PATIENCE), TransportError)
        connection.reader.join(SOON)
        assert not connection.reader.is_alive()
        for _ in range(2):
            with pytest.raises(TransportError):
                connection.ask()
        connection.close()
        assert connection.sink.losses.empty()

    def test_close_from_three_threads_at_once(self) -> None:
        connection = Connected(self.echoing())
        connection.ask()
        connection.sink.next()
        together = threading.Barrier(3)

        def close(number: int) -> None:
            together.wait(PATIENCE)
            connection.transport.close(Deadline(PATIENCE))

        start = time.monotonic()
        assert in_threads(3, close) == [None, None, None]
        connection.close()
        assert time.monotonic() - start < SOON
        assert connection.sink.losses.empty()

    def test_close_ends_an_idle_connection_at_once(self) -> None:
        connection = Connected(self.echoing())
        connection.ask()
        connection.sink.next()
        start = time.monotonic()
        connection.close()
        assert time.monotonic() - start < SOON

    def test_nothing_is_sent_before_open_or_after_close(self) -> None:
        transport = self.echoing()
        with pytest.raises(TransportError):
            transport.send(Frame(b"{}"), None, Deadline(PATIENCE))
        connection = Connected(transport)
        connection.close()
        with pytest.raises(TransportError):
            connection.note(1)
        with pytest.raises(TransportError):
            connection.ask()
        assert not connection.transport.abort(connection.request(), "timed out") or transport.exchange_like

    def test_one_object_makes_one_connection(self) -> None:
        transport = self.echoing()
        with connected(transport), pytest.raises(ConnectFailed):
            transport.open(Deadline(PATIENCE))
        with pytest.raises(ConnectFailed):
            transport.open(Deadline(PATIENCE))

    def test_closed_before_it_was_opened(self) -> None:
        transport = self.echoing()
        transport.close(Deadline(PATIENCE))
        transport.close(Deadline(PATIENCE))
        with pytest.raises(ConnectFailed):
            transport.open(Deadline(PATIENCE))

    def test_no_time_left_to_open(self) -> None:
        transport = self.echoing()
        with pytest.raises(ConnectFailed) as caught:
            transport.open(Deadline(0))
        assert isinstance(caught.value, TimeoutError)
        transport.close(Deadline(PATIENCE))


class StreamContract(TransportContract):
    """For transports that hand a frame over and return.

    :cvar settles: seconds after which a transport that has no room by then has none for good
    """

    settles = 0.0

    def gated(self) -> Transport:
        """A transport to the peer described above, which does not read before :meth:`open_gate`; with little room."""
        raise NotImplementedError

    def open_gate(self, transport: Transport) -> None:
        """Have the peer read from now on."""
        raise NotImplementedError

    def fill(self, connection: Connected) -> List[Request]:
        """Send until there is no room; gives what was sent."""
        sent: List[Request] = []
        while True:
            request = connection.request()
            try:
                connection.send(request, BIG, seconds=self.settles)
            except Overloaded:
                return sent
            sent.append(request)

    def block(self, connection: Connected) -> None:
        self.fill(connection)

    def test_it_is_stream_like(self) -> None:
        transport = self.echoing()
        assert not transport.exchange_like
        with connected(transport) as connection, pytest.raises(TransportError):
            connection.transport.listen(Frame(b""), Deadline(PATIENCE))

    def test_frames_are_sent_before_anyone_reads(self) -> None:
        transport = self.echoing()
        transport.open(Deadline(PATIENCE))
        transport.send(Frame(b'{"method":"note","params":1}'), None, Deadline(PATIENCE))
        transport.close(Deadline(PATIENCE))

    def test_what_is_left_of_a_full_queue_is_delivered_without_what_was_aborted(self) -> None:
        with connected(self.gated()) as connection:
            sent = self.fill(connection)
            aborted = sent.pop()
            assert connection.transport.abort(aborted, "timed out")
            assert not connection.transport.abort(aborted, "timed out")
            late = connection.ask("there is room again")
            self.open_gate(connection.transport)
            answers = self.take(connection, len(sent) + 1)
        assert [answer["id"] for answer in answers] == [request.request_id for request in [*sent, late]]

    def test_abort_of_what_was_read_says_that_the_peer_knows(self) -> None:
        with connected(self.echoing()) as connection:
            request = connection.ask()
            connection.sink.next()
            assert connection.transport.abort(request, "timed out") is False

    def test_room_that_is_made_lets_a_blocked_sender_go_on(self) -> None:
        with connected(self.gated()) as connection:
            sent = self.fill(connection)
            sender = threading.Thread(target=connection.ask, args=(BIG,), name="mcpsync-test-sender")
            sender.start()
            self.open_gate(connection.transport)
            answers = self.take(connection, len(sent) + 1)
            sender.join(PATIENCE)
        assert answers[-1]["result"]["params"] == BIG and answers[-1]["id"] > sent[-1].request_id
