"""What must not be lost or held up among callbacks, and which threads they never run on."""

from __future__ import annotations

import json
import queue
import signal
import threading
import time
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from typing import Any, Callable, Dict, List

import pytest

from mcpsync.connection.backoff import Backoff
from mcpsync.connection.call import Wanted
from mcpsync.connection.connection import Connection
from mcpsync.connection.settings import Limits
from mcpsync.deadline import Timeouts
from mcpsync.errors import RequestCancelled
from mcpsync.transport.memory import ServerEnd, StreamServer
from tests.connection.memory_servers import CLIENT, PATIENCE, Peer, connected, settings

FLOOD = 40_000


def submit(connection: Connection, name: str, wanted: Any = None) -> Any:
    return connection.submit("tools/call", {"name": name, "arguments": {}}, lambda result: result, wanted)


def test_a_done_callback_waits_for_a_busy_loop_after_a_cancel() -> None:
    """The call is cancelled while its question waits for the loop: what goes on with it must not drop the callback."""
    loop: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    done: List[Any] = []
    handlers = {"elicitation/create": lambda params: {"action": "cancel"}}
    limits = Limits(submitted=1)
    with connected(Peer("stream", "modern"), handlers=handlers, callbacks=loop.put, limits=limits) as connection:
        future = submit(connection, "ask")
        question = loop.get(timeout=PATIENCE)
        future.add_done_callback(done.append)
        assert future.cancel()
        told = loop.get(timeout=PATIENCE)
        with pytest.raises(RequestCancelled):
            future.result(PATIENCE)
        gone_on = threading.Event()
        connection.background(gone_on.set)  # there is one thread for this and for what goes on with the call
        assert gone_on.wait(PATIENCE)
        question()
        told()
        assert done == [future]


def test_every_done_callback_runs_however_much_progress_waits() -> None:
    release = threading.Event()
    done: queue.SimpleQueue[int] = queue.SimpleQueue()
    seen: List[Any] = []

    def on_progress(params: Dict[str, Any]) -> None:
        release.wait(PATIENCE)
        seen.append(params["progress"])

    with connected(Peer("stream", "legacy"), limits=Limits(waiting=1)) as connection:
        future = submit(connection, "count", Wanted(connection.timeouts, on_progress))
        for number in (1, 2, 3):
            future.add_done_callback(lambda _, number=number: done.put(number))
        assert future.result(PATIENCE)["counted"] == 3
        release.set()
        assert [done.get(timeout=PATIENCE) for _ in range(3)] == [1, 2, 3]
        assert seen[-1] == 2 and len(seen) <= 2  # one runs, perhaps, and one waits: the latest


def test_a_session_that_is_made_in_the_background_runs_no_callbacks_on_its_thread() -> None:
    peer = Peer("stream", "legacy")
    threads: queue.SimpleQueue[str] = queue.SimpleQueue()

    def serve(client: ServerEnd) -> None:
        for data in client:
            message = json.loads(data)
            if message.get("method") == "initialize":
                result = {"protocolVersion": "2025-11-25", "capabilities": {"logging": {}}, "serverInfo": CLIENT}
                peer.script.answer(message, client.send, result)
            elif message.get("method") == "logging/setLevel":
                client.send(b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":""}}')
                peer.script.answer(message, client.send, {})

    def notified(method: str, params: Dict[str, Any]) -> None:
        connection.dispatch.callback(lambda: threads.put(threading.current_thread().name))

    peer.server = StreamServer(serve, server_name="peer")
    connection = Connection(
        settings(peer, callbacks="caller", log_level="info", notified=notified, backoff=Backoff((0.01,)))
    )
    try:
        connection.open()
        first = threads.get(timeout=PATIENCE)
        peer.server.lose()
        second = threads.get(timeout=PATIENCE)
        assert {first, second} <= {"mcpsync-peer-callback", "mcpsync-peer-handler"}
    finally:
        connection.close()


@pytest.mark.timed
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_sign_of_life_does_not_wait_behind_calls_that_hang(era: str) -> None:
    peer = Peer("exchange", era)
    timeouts = Timeouts(connect=PATIENCE, call=PATIENCE, keepalive=0.1)
    with connected(peer, limits=Limits(submitted=1), timeouts=timeouts) as connection:
        future = submit(connection, "never")
        peer.script.next("call")
        with pytest.raises(NotYet):
            future.result(1.0)
        assert connection.state == "ready"


def test_answers_that_a_server_does_not_read_do_not_pile_up() -> None:
    peer = Peer("stream", "legacy")

    def serve(client: ServerEnd) -> None:
        for data in client:
            message = json.loads(data)
            if message.get("method") != "tools/call":
                peer.script.take(data, client.send, client.send)
                continue
            for number in range(FLOOD):
                client.send(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % number)
            client.send(b'{"jsonrpc":"2.0","id":"last","method":"roots/list"}')
            answered = 0
            with suppress(TimeoutError):
                while client.receive(timeout=0.5) is not None:
                    answered += 1
            peer.script.answer(message, client.send, {"answered": answered})

    peer.server = StreamServer(serve, server_name="peer")
    with connected(peer) as connection:
        answered = connection.request("tools/call", {"name": "flood"})["answered"]
        assert 1_000 < answered < FLOOD / 2


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals of POSIX")
def test_a_signal_that_another_thread_gets_ends_the_wait_for_a_future() -> None:
    class Struck(Exception):
        pass

    def strike(number: int, frame: object) -> None:
        raise Struck

    before = signal.signal(signal.SIGALRM, strike)
    try:
        with connected(Peer("stream", "legacy")) as connection:
            future = submit(connection, "never")
            # as when it strikes right before this thread sleeps: the sleep goes on
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            start = time.monotonic()
            with pytest.raises(Struck):
                future.result(PATIENCE)
            assert time.monotonic() - start < 2
            assert not future.done()
            with pytest.raises(TimeoutError):
                future.result(0.01)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
        signal.signal(signal.SIGALRM, before)
