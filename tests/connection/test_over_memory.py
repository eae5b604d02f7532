"""A connection over both shapes of transport, in both eras: the two shapes must not differ to the one who calls."""

from __future__ import annotations

import queue
import threading
import time
from typing import Any, Callable, Dict, List

import pytest

from mcpsync.connection.call import Wanted
from mcpsync.connection.connection import Connection
from mcpsync.deadline import Deadline, Timeouts
from mcpsync.errors import ClientClosed, ConnectFailed, ConnectionLost, MethodNotFound, RequestCancelled, RequestTimeout
from mcpsync.transport.base import Frame
from tests.connection.memory_servers import PATIENCE, Peer, connected

SOON = 5.0
ACCEPTED = {"action": "accept", "content": {}}


@pytest.fixture(params=["stream", "exchange"])
def shape(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["legacy", "modern"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def peer(shape: str, era: str) -> Peer:
    return Peer(shape, era)


def call(connection: Connection, name: str, wanted: Any = None, **arguments: Any) -> Dict[str, Any]:
    return connection.request("tools/call", {"name": name, "arguments": arguments}, wanted)


def submit(connection: Connection, name: str, **arguments: Any) -> Any:
    return connection.submit("tools/call", {"name": name, "arguments": arguments}, lambda result: result)


def in_threads(count: int, body: Callable[[int], object]) -> List[object]:
    outcomes: List[object] = [None] * count

    def run(number: int) -> None:
        try:
            outcomes[number] = body(number)
        except Exception as error:
            outcomes[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    return outcomes


@pytest.mark.own_methods("no/such")
def test_a_request_and_its_answer(peer: Peer) -> None:
    with connected(peer) as connection:
        assert call(connection, "echo", text="é")["echo"] == {"text": "é"}
        with pytest.raises(MethodNotFound) as caught:
            connection.request("no/such", {})
        assert caught.value.server == "peer"
        assert caught.value.method == "no/such"
        assert connection.state == "ready"


def test_many_callers_at_once(peer: Peer) -> None:
    with connected(peer) as connection:

        def use(number: int) -> object:
            return [call(connection, "echo", turn=[number, turn])["echo"]["turn"] for turn in range(10)]

        assert in_threads(8, use) == [[[number, turn] for turn in range(10)] for number in range(8)]


def test_the_server_is_found_out(shape: str, era: str) -> None:
    with connected(Peer(shape, era), protocol="auto") as connection:
        assert connection.revision is not None
        assert connection.revision.handshake == (era == "legacy")


@pytest.mark.parametrize("callbacks", ["pool", "caller"])
def test_progress(peer: Peer, callbacks: str) -> None:
    seen: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threads = set()

    def on_progress(params: Dict[str, Any]) -> None:
        threads.add(threading.get_ident())
        seen.put(params["progress"])

    with connected(peer, callbacks=callbacks) as connection:
        wanted = Wanted(connection.timeouts, on_progress)
        assert call(connection, "count", wanted)["counted"] == 3
        assert [seen.get(timeout=PATIENCE) for _ in range(3)] == [0, 1, 2]
        assert (threading.get_ident() in threads) == (callbacks == "caller")


@pytest.mark.parametrize("callbacks", ["pool", "caller"])
def test_a_question_is_answered_while_the_call_blocks(peer: Peer, callbacks: str) -> None:
    threads: List[int] = []

    def answer(params: Dict[str, Any]) -> Dict[str, Any]:
        threads.append(threading.get_ident())
        return ACCEPTED

    with connected(peer, handlers={"elicitation/create": answer}, callbacks=callbacks) as connection:
        assert call(connection, "ask")["answer"] == ACCEPTED
        assert (threads == [threading.get_ident()]) == (callbacks == "caller")


def test_a_handler_calls_the_server_again(peer: Peer) -> None:
    def answer(params: Dict[str, Any]) -> Dict[str, Any]:
        return {"action": "accept", "content": call(connection, "echo", inner=1)["echo"]}

    with connected(peer, handlers={"elicitation/create": answer}) as connection:
        assert call(connection, "ask")["answer"]["content"] == {"inner": 1}


def test_a_question_on_the_long_stream_while_the_exchange_blocks() -> None:
    with connected(Peer("exchange", "legacy"), handlers={"elicitation/create": lambda params: ACCEPTED}) as connection:
        listen(connection)
        assert call(connection, "ask_elsewhere")["answer"] == ACCEPTED


def listen(connection: Connection) -> None:
    assert connection.link is not None
    connection.link.transport.listen(Frame(b""), Deadline(PATIENCE))


def test_an_answer_on_the_long_stream_ends_the_exchange() -> None:
    peer = Peer("exchange", "legacy")
    with connected(peer) as connection:
        listen(connection)
        assert call(connection, "elsewhere")["came"] == "elsewhere"
        assert peer.script.next("ended") == last_id(connection)
        assert submit(connection, "elsewhere").result(PATIENCE)["came"] == "elsewhere"
        assert peer.script.next("ended") == last_id(connection)


def last_id(connection: Connection) -> int:
    assert connection.link is not None
    return connection.link.session.last_id


def test_submitted_calls(peer: Peer) -> None:
    with connected(peer, handlers={"elicitation/create": lambda params: ACCEPTED}) as connection:
        futures = [submit(connection, "echo", number=number) for number in range(20)]
        assert [future.result(PATIENCE)["echo"]["number"] for future in futures] == list(range(20))
        assert submit(connection, "ask").result(PATIENCE)["answer"] == ACCEPTED


def assert_told_of_the_end(peer: Peer, request_id: int) -> None:
    """The server learns once, in the way of its shape and era, that a request is cancelled."""
    kind = "ended" if peer.ends_exchanges else "cancelled"
    assert peer.script.next(kind) == request_id


def test_timeout(peer: Peer) -> None:
    with connected(peer) as connection:
        start = time.monotonic()
        with pytest.raises(RequestTimeout) as caught:
            call(connection, "never", Wanted(Timeouts(call=0.2)))
        assert 0.2 <= time.monotonic() - start < SOON
        assert caught.value.after == 0.2
        assert_told_of_the_end(peer, last_id(connection))
        assert call(connection, "echo")["echo"] == {}
        assert not any(kind == "cancelled" for kind, _ in peer.script.rest())


def test_timeout_while_a_callback_runs_on_the_calling_thread(peer: Peer) -> None:
    with connected(peer, callbacks="caller") as connection:
        with pytest.raises(RequestTimeout):
            call(connection, "never", Wanted(Timeouts(call=0.2)))
        assert_told_of_the_end(peer, last_id(connection))


def test_idle_timeout_is_longer_than_the_first_deadline(peer: Peer) -> None:
    """Progress moves the deadline; a transport that drives the exchange must not hold on to the first one."""
    with connected(peer) as connection:
        outcome: queue.SimpleQueue[object] = queue.SimpleQueue()
        extended = threading.Event()

        def on_progress(params: Dict[str, Any]) -> None:
            extended.set()

        def run() -> None:
            start = time.monotonic()
            try:
                call(connection, "slow_count", Wanted(Timeouts(idle=1.0), on_progress))
            except RequestTimeout:
                outcome.put(time.monotonic() - start)

        caller = threading.Thread(target=run)
        caller.start()
        progress = peer.script.slow.get(timeout=PATIENCE)
        time.sleep(0.3)  # well into the first second, and far from its end on a slow machine too
        progress()
        assert extended.wait(PATIENCE)
        seconds = outcome.get(timeout=PATIENCE)
        caller.join(PATIENCE)
    assert isinstance(seconds, float)
    assert seconds >= 1.25


def test_the_clock_stands_still_while_a_person_is_asked(peer: Peer) -> None:
    asked = threading.Event()
    answered = threading.Event()

    def answer(params: Dict[str, Any]) -> Dict[str, Any]:
        asked.set()
        assert not answered.wait(0.6)  # longer than the call may take
        return ACCEPTED

    with connected(peer, handlers={"elicitation/create": answer}) as connection:
        assert call(connection, "ask", Wanted(Timeouts(call=0.3)))["answer"] == ACCEPTED
    assert asked.is_set()


def test_cancel_of_a_submitted_call(peer: Peer) -> None:
    with connected(peer) as connection:
        future = submit(connection, "never")
        request_id = peer.script.next("call")
        assert future.cancel()
        with pytest.raises(RequestCancelled):
            future.result(PATIENCE)
        assert_told_of_the_end(peer, request_id)
        assert call(connection, "echo")["echo"] == {}
        assert not any(kind == "cancelled" for kind, _ in peer.script.rest())


def test_cancel_before_the_request_has_gone_out(peer: Peer) -> None:
    with connected(peer) as connection:
        for _ in range(50):
            future = submit(connection, "never")
            assert future.cancel()
            with pytest.raises(RequestCancelled):
                future.result(PATIENCE)
        assert call(connection, "echo")["echo"] == {}


def test_close_fails_what_is_in_flight(peer: Peer) -> None:
    outcomes: List[object] = []
    with connected(peer) as connection:
        callers = threading.Thread(target=lambda: outcomes.extend(in_threads(4, lambda _: call(connection, "never"))))
        callers.start()
        future = submit(connection, "never")
        for _ in range(5):
            peer.script.next("call")
        start = time.monotonic()
        connection.close()
        callers.join(PATIENCE)
        assert time.monotonic() - start < SOON
        with pytest.raises(ClientClosed):
            future.result(PATIENCE)
        with pytest.raises(ClientClosed):
            call(connection, "echo")
    assert [type(outcome) for outcome in outcomes] == [ClientClosed] * 4


def test_a_loss_fails_what_is_in_flight_and_the_connection_comes_back(peer: Peer) -> None:
    states: queue.SimpleQueue[str] = queue.SimpleQueue()
    outcomes: List[object] = []
    with connected(peer, on_state=states.put) as connection:
        assert [states.get(timeout=PATIENCE) for _ in range(2)] == ["connecting", "ready"]
        callers = threading.Thread(target=lambda: outcomes.extend(in_threads(4, lambda _: call(connection, "never"))))
        callers.start()
        for _ in range(4):
            peer.script.next("call")
        peer.server.lose(ConnectionLost("the cable was cut"))
        callers.join(PATIENCE)
        assert states.get(timeout=PATIENCE) == "waiting"
        connection.reconnect()
        assert call(connection, "echo")["echo"] == {}
        assert peer.server.connects == 2
    assert [type(outcome) for outcome in outcomes] == [ConnectionLost] * 4
    for outcome in outcomes:
        assert isinstance(outcome, ConnectionLost)
        assert outcome.message == "the cable was cut"
        assert outcome.maybe_executed
        assert outcome.method == "tools/call"


def test_a_refused_connect_says_why_and_the_next_one_works(peer: Peer) -> None:
    peer.server.fail_next()
    with pytest.raises(ConnectFailed, match="told to refuse"), connected(peer):
        pass
    with connected(peer) as connection:
        assert call(connection, "echo")["echo"] == {}


def test_an_exchange_that_ends_without_an_answer_loses_one_call(era: str) -> None:
    peer = Peer("exchange", era)
    with connected(peer) as connection:
        with pytest.raises(ConnectionLost, match="ended without an answer") as caught:
            call(connection, "give_up")
        assert caught.value.maybe_executed
        with pytest.raises(ConnectionLost, match="ended without an answer"):
            submit(connection, "give_up").result(PATIENCE)
        assert connection.state == "ready"
        assert call(connection, "echo")["echo"] == {}
        assert peer.server.connects == 1
