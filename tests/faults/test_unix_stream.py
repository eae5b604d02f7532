"""Servers on a Unix socket that take messages as on stdio: the faults of A, B and F that a socket can have."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, List, Tuple

import pytest

import mcpsync
from mcpsync import (
    Backoff,
    ClientClosed,
    ConfigError,
    ConnectFailed,
    ConnectionLost,
    Overloaded,
    RequestCancelled,
    RequestTimeout,
)
from tests.faults.program import start
from tests.faults.watch import took
from tests.host.watching import QUICK, Watch, host_of, names, row
from tests.peers.http import HttpPeer
from tests.peers.http_servers import Modern
from tests.peers.scripted import Peer, peer
from tests.peers.sockets import LineServer, echoes_in_a_child, scripted_behind

ERAS = ["legacy", "modern"]


@contextmanager
def behind(tmp_path: Path, *functions: Any, **options: Any) -> Iterator[Tuple[LineServer, Peer]]:
    """A scripted peer per connection to a socket."""
    server = peer(tmp_path, *functions, **options)
    with LineServer(scripted_behind(server.command)) as at:
        yield at, server


@pytest.mark.parametrize("era", ERAS)
def test_it_is_a_server_like_any_other(tmp_path: Path, era: str) -> None:
    with behind(tmp_path, era=era) as (at, server):
        heard: List[str] = []
        with mcpsync.connect(at.url, elicitation=lambda request: {"name": "Ada"}, on_log=print) as client:
            assert client.name == "s.sock" and client.protocol_version == {"legacy": "2025-11-25"}.get(
                era, "2026-07-28"
            )
            assert client.list_tools()
            assert client.call_tool("echo", {"text": "on"}).text == "on"
            assert client.submit("echo", {"text": "é" * 100_000}).result(10).text == "é" * 100_000
            client.call_tool("flood", {"count": 50, "progress": True}, on_progress=lambda p: heard.append("p"))
        assert client.state == "closed" and server.events("torn") == []
        server.wait_ended()
        with pytest.raises(ClientClosed):
            client.call_tool("echo")


@pytest.mark.parametrize("era", ERAS)
def test_b1_the_connection_ends_with_three_calls_pending(tmp_path: Path, era: str) -> None:
    with behind(tmp_path, era=era) as (at, server), mcpsync.connect(at.url, name="mortal") as client:
        pending = [client.submit("silent") for _ in range(2)]
        server.wait_for("tools/call", 2)
        with took() as lost, pytest.raises(ConnectionLost) as cut:
            client.call_tool("die")
        assert lost.seconds < 5
        for error in [cut.value] + [future.exception(timeout=5) for future in pending]:
            assert isinstance(error, ConnectionLost) and error.maybe_executed
            assert (error.server, error.method) == ("mortal", "tools/call")
            assert "closed the connection" in str(error)


def test_b12_a_fresh_socket_is_made_when_the_server_is_back(tmp_path: Path) -> None:
    states: List[str] = []
    back, waiting = threading.Event(), threading.Event()

    def on_state(state: str) -> None:
        states.append(state)
        if state == "ready" and len(states) > 2:
            back.set()
        if state == "waiting":
            waiting.set()

    options: Any = {"backoff": Backoff((60.0,)), "on_state": on_state}
    with behind(tmp_path) as (at, _), mcpsync.connect(at.url, **options) as client:
        at.stop_listening()
        with pytest.raises(ConnectionLost):
            client.call_tool("die")
        assert waiting.wait(10)
        with took() as measured, pytest.raises(ConnectionLost) as lost:
            client.call_tool("echo")
        assert measured.seconds < 2 and lost.value.next_attempt is not None
        with pytest.raises(ConnectFailed, match="cannot connect to the socket"):
            client.reconnect()
        at.start()
        client.reconnect()
        assert back.wait(10)
        assert client.call_tool("echo", {"text": "on"}).text == "on"
        assert (at.accepted, client.sessions) == (2, 2)


def test_a_server_that_dies_of_the_probe_is_asked_again(tmp_path: Path) -> None:
    with behind(tmp_path, era="legacy", opening={"server/discover": {"exit": 1}}) as (at, server):
        with mcpsync.connect(at.url) as client:
            assert client.protocol_version == "2025-11-25"
        assert at.accepted == 2 and len(server.received("server/discover")) == 1


def test_a4_many_threads_each_get_their_own_answers(tmp_path: Path) -> None:
    with behind(tmp_path) as (at, server), mcpsync.connect(at.url) as client:

        def ask(thread: int) -> List[str]:
            texts = ["%d/%d" % (thread, turn) for turn in range(20)]
            return [text for text in texts if client.call_tool("jumbled", {"text": text, "within": 0.001}).text != text]

        with ThreadPoolExecutor(16) as pool:
            assert list(pool.map(ask, range(16))) == [[]] * 16
        assert server.events("torn") == []


def test_a6_closed_while_calls_wait(tmp_path: Path) -> None:
    with behind(tmp_path) as (at, server):
        client = mcpsync.connect(at.url)
        waiting = [client.submit("silent") for _ in range(10)]
        server.wait_for("tools/call", 10)
        with took() as measured:
            client.close()
        assert measured.seconds < 5
        assert {type(future.exception(timeout=0)) for future in waiting} == {ClientClosed}


def test_a8_a_forked_child_connects_anew(tmp_path: Path) -> None:
    with behind(tmp_path) as (at, _), mcpsync.connect(at.url) as client:
        assert echoes_in_a_child(client)
        assert client.call_tool("echo", {"text": "parent"}).text == "parent"
        assert (client.sessions, at.accepted) == (1, 2)


@pytest.mark.parametrize("era", ERAS)
def test_f1_one_cancel_with_the_right_id(tmp_path: Path, era: str) -> None:
    with behind(tmp_path, era=era) as (at, server), mcpsync.connect(at.url) as client:
        with pytest.raises(RequestTimeout):
            client.call_tool("silent", timeout=0.1)
        call = client.submit("silent")
        server.wait_for("tools/call", 2)
        assert call.cancel()
        with pytest.raises(RequestCancelled):
            call.result(5)
        told = server.wait_for("notifications/cancelled", 2)
        ids = [request["id"] for request in server.received("tools/call")]
        assert [each["params"]["requestId"] for each in told] == ids
        assert client.call_tool("echo", {"text": "on"}).text == "on"


def test_c13_a_server_that_stops_reading_tears_nothing(tmp_path: Path) -> None:
    with behind(tmp_path) as (at, server), mcpsync.connect(at.url) as client:
        assert client.call_tool("stop_reading", {"seconds": 1.0}).text
        with took() as measured, pytest.raises((RequestTimeout, Overloaded)):
            client.call_tool("length", {"text": "x" * 3_000_000}, timeout=0.2)
        assert measured.seconds < 1
        assert client.call_tool("length", {"text": "y" * 50_000}, timeout=20).text == "50000"
        assert server.events("torn") == []


def interrupted(folder: str, url: str) -> None:
    import mcpsync

    client = mcpsync.connect(url)
    print("waiting", flush=True)
    try:
        client.call_tool("silent", timeout=60)
    except KeyboardInterrupt:
        assert client.call_tool("echo", {"text": "on"}).text == "on"
        client.close()
        print("went on", flush=True)


def test_b11_ctrl_c(tmp_path: Path) -> None:
    with behind(tmp_path) as (at, server):
        program = start(interrupted, str(tmp_path), at.url)
        assert program.line() == "waiting"
        server.wait_for("tools/call")
        program.interrupt()
        program.end().check("went on")
        (told,) = server.received("notifications/cancelled")
        assert told["params"]["requestId"] == server.received("tools/call")[0]["id"]


def test_a_path_after_the_url_is_http_and_so_is_the_option(tmp_path: Path) -> None:
    path = str(tmp_path / "s.sock")
    with HttpPeer(Modern(), path=path):
        for target, options in (("unix://%s#/mcp" % path, {}), ("unix://%s" % path, {"transport": "http"})):
            with mcpsync.connect(target, **options) as client:
                assert client.call_tool("work").text == "done"
        with pytest.raises(ConnectFailed, match=r"speaks HTTP|closed the connection"):
            mcpsync.connect("unix://" + path)


@pytest.mark.parametrize(
    ("target", "options", "told"),
    [
        ("unix:///s.sock", {"auth": "oauth"}, "over HTTP"),
        ("unix:///s.sock", {"headers": {"A": "b"}}, "over HTTP"),
        ("unix:///s.sock#/mcp", {"transport": "stream"}, "takes the URL of a Unix socket"),
        ("https://a.example/", {"transport": "stream"}, "takes the URL of a Unix socket"),
        (["true"], {"transport": "stream"}, "goes with a URL"),
        ("unix://host/s.sock", {}, "absolute path"),
    ],
)
def test_options_that_do_not_go_together(target: Any, options: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        mcpsync.Client(target, **options)


def test_a_host_has_it_by_its_url(tmp_path: Path) -> None:
    watch = Watch()
    with behind(tmp_path) as (at, _):
        at.stop_listening()  # it comes later, as a daemon may
        with host_of({"local": {"url": at.url}}, watch, backoff=QUICK, auth="oauth") as host:
            assert row(host, "local").transport == "stream" and row(host, "local").target == at.url
            at.start()
            host.reconnect("local")
            watch.until(lambda: "mcp__local__echo" in names(host))
            assert host.call_tool("mcp__local__echo", {"text": "on"}).text == "on"
