"""F1, F2, F4 and F6 over HTTP: a call ends exactly once, the server hears of it once, and all limits hold."""

from __future__ import annotations

import logging
import ssl
import threading
from typing import Any, Iterator, List, Optional

import pytest

import mcpsync
from mcpsync import ConnectionLost, RequestCancelled, RequestTimeout, Timeouts
from tests.faults.watch import Seen, took
from tests.peers.authority import Authority
from tests.peers.http import Exchange, HttpPeer
from tests.peers.http_servers import Older
from tests.peers.http_tools import ERAS, serving

WAYS = ["plain", "tls"]


def context(way: str, authority: Authority) -> Optional[ssl.SSLContext]:
    return authority.server() if way == "tls" else None


@pytest.fixture(params=[(era, way) for era in ERAS for way in WAYS], ids="-".join)
def served(request: pytest.FixtureRequest, authority: Authority) -> Iterator[Any]:
    """Tools of a server of each era, plain and over TLS, and the options to connect to it."""
    era, way = request.param
    tools = serving(era)
    with HttpPeer(tools.server, context(way, authority)) as peer:
        yield tools, peer, {"protocol": era, "verify": authority.ca, "name": "peer"}


# -- F1 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("how", ["timeout", "total", "idle", "cancel", "submitted timeout"])
def test_f1_exactly_one_cancel_with_the_right_id(served: Any, how: str, streams: bool) -> None:
    tools, peer, options = served
    arguments = {"streams": streams}
    with mcpsync.connect(peer.url, **options) as client:
        with took() as measured:
            if how == "timeout":
                with pytest.raises(RequestTimeout, match=r"within 0\.3 s"):
                    client.call_tool("silent", arguments, timeout=0.3)
            elif how == "total":
                with pytest.raises(RequestTimeout):
                    client.call_tool("silent", arguments, timeout=Timeouts(call=60, total=0.3))
            elif how == "idle":
                with pytest.raises(RequestTimeout):
                    client.call_tool("silent", arguments, timeout=Timeouts(idle=0.3))
            elif how == "submitted timeout":
                assert isinstance(client.submit("silent", arguments, timeout=0.3).exception(5), RequestTimeout)
            else:
                call = client.submit("silent", arguments)
                tools.wait_begun(1)
                assert call.cancel() and call.cancelled()
                with pytest.raises(RequestCancelled):
                    call.result()
        assert measured.seconds < 1.2
        (ended,) = tools.wait_ended()
        if options["protocol"] == "legacy":
            assert tools.server.cancelled.get(timeout=10) == ended
        assert client.call_tool("echo", {"text": "usable"}).text == "usable"
    assert tools.server.cancelled.empty()  # modern: the end of the stream is the signal, and the only one


def test_f1_initialize_is_never_cancelled() -> None:
    def hang(exchange: Exchange, message: Any) -> None:
        exchange.wait_closed()

    with HttpPeer(serving("legacy", initialize=hang).server) as peer:
        with pytest.raises(mcpsync.ConnectTimeout):
            mcpsync.connect(peer.url, protocol="legacy", timeouts=Timeouts(connect=0.3))
        assert [request.message["method"] for request in peer.requests] == ["initialize"]


def test_f1_a_late_answer_is_dropped_and_harms_no_other(served: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    _, peer, options = served
    with mcpsync.connect(peer.url, **options) as client:
        for _ in range(3):
            with pytest.raises(RequestTimeout):
                client.call_tool("late", {"seconds": 0.2}, timeout=0.1)
            assert client.call_tool("echo", {"text": "own"}).text == "own"
    assert [record for record in caplog.records if record.name == "mcpsync"] == []


def test_f1_the_older_transport_is_told_by_notification() -> None:
    begun = threading.Event()
    server = Older(lambda exchange, message: begun.set())
    with HttpPeer(server) as peer, mcpsync.connect(peer.url, transport="sse") as client:
        call = client.submit("work")
        assert begun.wait(10)
        assert call.cancel()
        with pytest.raises(RequestTimeout):
            client.call_tool("work", timeout=0.2)
        cancelled = [server.cancelled.get(timeout=10) for _ in range(2)]
        server.work = None
        assert client.call_tool("work").text == "done"
    calls = [
        each.message["id"]
        for each in peer.of("POST")
        if each.path != "/mcp" and each.message.get("method") == "tools/call"
    ]
    assert cancelled == calls[:2] and server.cancelled.empty()


# -- F2, F4 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["dies", "dies_later"])
def test_f2_a_lost_answer_is_never_asked_for_again(served: Any, tool: str) -> None:
    tools, peer, options = served
    with mcpsync.connect(peer.url, **options) as client:
        for ask in (client.call_tool, lambda name: client.submit(name).result(10)):
            tools.begun.clear()
            with pytest.raises(ConnectionLost) as caught:
                ask(tool)
            assert caught.value.maybe_executed
            assert "may have executed" in str(caught.value)
            assert tools.begun == [tool]
        assert client.call_tool("echo", {"text": "on"}).text == "on"


def test_f2_a_connection_that_the_server_closed_meanwhile_costs_no_call(served: Any) -> None:
    tools, peer, options = served
    with mcpsync.connect(peer.url, **options) as client:
        for number in range(5):
            assert client.call_tool("echo", {"text": str(number)}).text == str(number)
            peer.drop_connections()
        assert tools.begun == ["echo"] * 5


def test_f4_one_tool_times_out_in_an_agents_run(served: Any) -> None:
    _, peer, options = served
    with mcpsync.connect(peer.url, **options) as client:
        outcomes: List[str] = []
        for name in ("echo", "silent", "echo", "dies", "echo"):
            try:
                outcomes.append(client.call_tool(name, timeout=0.3).text or name)
            except mcpsync.McpError as error:
                outcomes.append(type(error).__name__)
        assert outcomes == ["echo", "RequestTimeout", "echo", "ConnectionLost", "echo"]


def test_f4_dead_calls_never_delay_anothers_deadline(served: Any) -> None:
    _, peer, options = served
    late = Seen()
    with mcpsync.connect(peer.url, **options) as client:

        def call() -> None:
            with took() as measured, pytest.raises(RequestTimeout):
                client.call_tool("silent", timeout=0.5)
            late(measured.seconds - 0.5)

        threads = [threading.Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(late.items) == 8 and max(late.items) < 0.4


# -- F6 --------------------------------------------------------------------------------------------------------


def test_f6_progress_extends_an_idle_timeout_and_never_the_total(served: Any) -> None:
    _, peer, options = served
    seen = Seen()
    with mcpsync.connect(peer.url, **options) as client:
        with took() as measured, pytest.raises(RequestTimeout):
            limits = Timeouts(idle=0.5, total=1.2)
            client.call_tool("chatty", timeout=limits, on_progress=seen)
        assert 1.1 < measured.seconds < 2
        assert len(seen.items) > 5
        with took() as measured, pytest.raises(RequestTimeout):
            client.call_tool("chatty", timeout=0.4, on_progress=seen)
        assert measured.seconds < 1


def test_f6_a_question_that_nobody_answers_is_cancelled_after_ask(served: Any) -> None:
    _, peer, options = served
    hold = threading.Event()
    try:
        timeouts = Timeouts(ask=0.3, call=5)
        with mcpsync.connect(
            peer.url, elicitation=lambda request: hold.wait(20), timeouts=timeouts, **options
        ) as client:
            with took() as measured:
                try:
                    text = client.call_tool("asks").text
                except mcpsync.McpError as error:
                    text = str(error)
            assert measured.seconds < 3
            assert "cancel" in text
            hold.set()
            assert client.call_tool("echo", {"text": "on"}).text == "on"
    finally:
        hold.set()


def test_f6_the_clock_stands_still_while_a_person_is_asked(served: Any) -> None:
    _, peer, options = served

    def think(request: Any) -> bool:
        threading.Event().wait(0.6)
        return True

    with mcpsync.connect(peer.url, elicitation=think, **options) as client:
        assert '"accept"' in client.call_tool("asks", timeout=0.5).text


def test_f6_a_server_that_asks_without_end() -> None:
    tools = serving("modern")
    with HttpPeer(tools.server) as peer, mcpsync.connect(peer.url, elicitation=lambda request: True) as client:
        with pytest.raises(mcpsync.McpError, match="10"):
            client.call_tool("asks", {"times": 1000})
        assert len(tools.begun) <= 12


def test_f6_a_legacy_server_that_asks_without_end_is_held_to_the_total() -> None:
    tools = serving("legacy")
    with HttpPeer(tools.server) as peer, mcpsync.connect(peer.url, elicitation=lambda request: True) as client:
        with took() as measured, pytest.raises(RequestTimeout):
            client.call_tool("asks", {"times": 10**6}, timeout=Timeouts(call=60, total=1))
        assert measured.seconds < 2
