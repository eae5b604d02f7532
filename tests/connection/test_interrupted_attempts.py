"""Ctrl-C, and calls of the user's own code, in the middle of an attempt to connect and of leaving a link."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import suppress
from typing import Any, List, Set, Tuple

import pytest

import mcpsync
from mcpsync import ConnectFailed, McpError
from mcpsync.connection import leaving, link, linked, opening
from tests.faults.watch import took
from tests.peers.http import Exchange, HttpPeer
from tests.peers.http_servers import Legacy, Modern

FILES = frozenset(module.__file__ for module in (leaving, link, linked, opening))
ROUNDS = 400


def readers() -> int:
    return sum(thread.name.endswith("-reader") for thread in threading.enumerate())


def test_a_link_that_is_interrupted_while_it_comes_or_goes_is_closed() -> None:
    server = Legacy()
    seen: Set[Tuple[str, int]] = set()
    struck: List[Tuple[str, int]] = []

    def at_each_line(frame: Any, event: str, argument: Any) -> Any:
        where = (frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and not struck and where not in seen:
            seen.add(where)
            struck.append(where)
            raise KeyboardInterrupt
        return at_each_line

    def at_each_call(frame: Any, event: str, argument: Any) -> Any:
        return at_each_line if frame.f_code.co_filename in FILES else None

    with HttpPeer(server) as peer, mcpsync.connect(peer.url, protocol="legacy") as client:
        before = readers()
        for _ in range(ROUNDS):
            server.forget_sessions()
            traced = sys.gettrace()
            sys.settrace(at_each_call)
            try:
                with suppress(KeyboardInterrupt):
                    client.call_tool("work")
            finally:
                sys.settrace(traced)
            assert client.call_tool("work").text == "done", struck
            if not struck:
                break
            struck.clear()
        client.close()
        assert len(seen) > 60
        assert readers() <= before - 1, "a link was forgotten"


@pytest.mark.skipif(sys.platform == "win32", reason="no signal to a thread")
def test_a_call_in_the_middle_of_connecting_does_not_wait_for_itself() -> None:
    failures: List[Exception] = []
    answered, main = threading.Event(), threading.get_ident()

    def answer(exchange: Exchange, message: Any) -> None:
        signal.pthread_kill(main, signal.SIGUSR1)
        assert answered.wait(20)
        exchange.result(server.discovered())

    def call(number: int, frame: Any) -> None:
        with took() as measured:
            try:
                client.call_tool("work", timeout=10)
            except McpError as error:
                failures.append(error)
        assert measured.seconds < 2
        answered.set()

    server = Modern(server__discover=answer)
    before = signal.signal(signal.SIGUSR1, call)
    try:
        with HttpPeer(server) as peer:
            client = mcpsync.Client(peer.url)
            with client:
                assert client.call_tool("work").text == "done"
    finally:
        signal.signal(signal.SIGUSR1, before)
    (failure,) = failures
    assert isinstance(failure, ConnectFailed) and "in the middle of connecting" in str(failure)
