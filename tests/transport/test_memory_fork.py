"""A forked child must neither use nor end the in-memory connection of its parent, and can make its own."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from typing import Callable

import pytest

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectionLost
from mcpsync.transport.base import Frame, Transport
from mcpsync.transport.memory import Exchange, ExchangeServer, MemoryServer, ServerEnd, StreamServer
from tests.transport.contract import PATIENCE, Connected, connected

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

ANSWER = b'{"id": 1, "result": {}}'


def answer_stream(client: ServerEnd) -> None:
    for _ in client:
        client.send(ANSWER)


def answer_exchange(exchange: Exchange) -> None:
    exchange.send(ANSWER)


def in_child(body: Callable[[], int]) -> int:
    """The exit code of a forked child; what the body gives, or 99 if it raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking beside threads
        pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = body()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def refused(transport: Transport) -> bool:
    try:
        transport.send(Frame(b"{}"), None, Deadline(1))
    except ConnectionLost as error:
        return "belongs to the parent" in str(error)
    return False


def works(server: MemoryServer) -> bool:
    with connected(server()) as connection:
        connection.ask()
        return bool(connection.sink.next()["result"] == {})


@pytest.mark.parametrize(
    "server", [StreamServer(answer_stream), ExchangeServer(answer_exchange)], ids=["stream", "exchange"]
)
def test_the_child_of_a_fork(server: MemoryServer) -> None:
    with connected(server()) as parents:
        # as if another thread had been at work at the moment of the fork
        locked = threading.Event()
        release = threading.Event()

        def hold() -> None:
            with parents.transport._state, parents.transport._incoming._changed:  # type: ignore[attr-defined]
                locked.set()
                assert release.wait(PATIENCE)

        holder = threading.Thread(target=hold)
        holder.start()
        assert locked.wait(PATIENCE)

        def child() -> int:
            transport = parents.transport
            transport.after_fork()
            transport.after_fork()
            if not refused(transport):
                return 10
            transport.close(Deadline(1))
            transport.run(parents.sink)
            return 0 if works(server) else 11

        def untold_child() -> int:
            parents.transport.close(Deadline(1))
            return 0 if refused(parents.transport) else 12

        try:
            assert in_child(child) == 0
            assert in_child(untold_child) == 0
        finally:
            release.set()
            holder.join(PATIENCE)
        parents.transport.after_fork()  # in the parent it does nothing
        parents.ask()
        assert parents.sink.next()["result"] == {}
        assert parents.sink.losses.empty()


def test_the_registry_of_servers_is_free_in_the_child() -> None:
    server = StreamServer(answer_stream)
    module = sys.modules["mcpsync.transport.memory_transport"]
    with module._servers_lock:
        code = in_child(lambda: 0 if works(server) else 10)
    assert code == 0
    connection = Connected(server())
    connection.close()
