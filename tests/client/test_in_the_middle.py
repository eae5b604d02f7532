"""Code that runs in the middle of the library's own: signal handlers, and ``__del__`` at the collector's pleasure."""

from __future__ import annotations

import sys
from typing import Any, List, Set, Tuple

import pytest

import mcpsync
from mcpsync.connection.settings import Limits
from mcpsync.transport.http import clock, exchange, gate, life, streamable
from tests.peers.http import HttpPeer
from tests.peers.http_tools import ERAS, serving

FILES = frozenset(module.__file__ for module in (clock, exchange, gate, life, streamable))
CALLS = 48


@pytest.mark.parametrize("era", ERAS)
def test_calls_are_cancelled_at_every_line_of_a_call_over_http(era: str) -> None:
    tools = serving(era)
    under_way: List[Any] = []
    seen: Set[Tuple[str, int]] = set()

    def at_each_line(frame: Any, event: str, argument: Any) -> Any:
        where = (frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and where not in seen and under_way:
            seen.add(where)
            under_way.pop().cancel()  # as a signal handler might, wherever this thread is
        return at_each_line

    def at_each_call(frame: Any, event: str, argument: Any) -> Any:
        return at_each_line if frame.f_code.co_filename in FILES else None

    with (
        HttpPeer(tools.server) as peer,
        mcpsync.connect(peer.url, protocol=era, max_connections=1000, limits=Limits(submitted=CALLS)) as client,
    ):
        for turn in range(1, 4):
            under_way += [client.submit("silent") for _ in range(CALLS)]
            tools.wait_begun(turn * (CALLS + 1) - 1)
            traced = sys.gettrace()
            sys.settrace(at_each_call)
            try:
                assert client.call_tool("echo", {"text": "on"}).text == "on"
            finally:
                sys.settrace(traced)
            while under_way:
                under_way.pop().cancel()
        assert len(seen) > 60
