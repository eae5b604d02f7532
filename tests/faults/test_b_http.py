"""B1, B3, B5, B9, B11, B12 and B16 over HTTP: start, stop, exit."""

from __future__ import annotations

import ssl
import threading
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

import pytest

import mcpsync
from mcpsync import Backoff, ClientClosed, ConnectFailed, ConnectionLost, Timeouts
from tests.conftest import our_threads
from tests.faults.program import Finished, Running, start
from tests.faults.test_b_interrupt import wait_until_it_waits
from tests.faults.watch import Seen, open_descriptors, took
from tests.peers.authority import Authority
from tests.peers.http import Exchange, HttpPeer
from tests.peers.http_servers import Legacy, Older, refuse
from tests.peers.http_tools import ERAS, serving

WAYS = ["plain", "tls"]
DEV = ("-X", "dev", "-W", "error")


def context(way: str, authority: Authority) -> Optional[ssl.SSLContext]:
    return authority.server() if way == "tls" else None


@pytest.fixture(params=[(era, way) for era in ERAS for way in WAYS], ids="-".join)
def served(request: pytest.FixtureRequest, authority: Authority) -> Iterator[Any]:
    """Tools of a server of each era, plain and over TLS, and the options to connect to it."""
    era, way = request.param
    tools = serving(era)
    with HttpPeer(tools.server, context(way, authority)) as peer:
        yield tools, peer, {"protocol": era, "verify": authority.ca, "name": "peer"}


# -- B1 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streams", [False, True])
def test_b1_three_calls_pending_when_the_server_dies(served: Any, streams: bool) -> None:
    tools, peer, options = served
    with mcpsync.connect(peer.url, **options) as client:
        futures = [client.submit("silent", {"streams": streams}) for _ in range(3)]
        tools.wait_begun(3)
        with took() as measured:
            peer.drop_connections()
            for future in futures:
                error = future.exception(5)
                assert isinstance(error, ConnectionLost) and error.maybe_executed
                assert "server 'peer': tools/call" in str(error)
                assert "it was closed" in str(error) or "reset" in str(error) or "ended" in str(error), str(error)
        assert measured.seconds < 1
        assert client.call_tool("echo", {"text": "on"}).text == "on"


def test_b1_an_older_server_that_dies_takes_the_connection_with_it() -> None:
    server, states = Older(), Seen()
    begun = threading.Semaphore(0)
    server.work = lambda exchange, message: begun.release()
    with HttpPeer(server) as peer:
        options: Dict[str, Any] = {"on_state": states, "backoff": Backoff((0.05, 1, 1, 1, 1))}
        with mcpsync.connect(peer.url, transport="sse", **options) as client:
            futures = [client.submit("work") for _ in range(3)]
            for _ in range(3):
                assert begun.acquire(timeout=10)
            with took() as measured:
                server.streams[0].put(None)
                errors = [future.exception(5) for future in futures]
            assert measured.seconds < 1
            assert all(isinstance(error, ConnectionLost) and error.maybe_executed for error in errors)
            states.wait_for("ready", 2)
            server.work = None
            assert client.call_tool("work").text == "done"


# -- B3, B5 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["auto", "legacy", "modern"])
@pytest.mark.parametrize("way", WAYS)
def test_b3_a_server_that_never_answers(way: str, protocol: str, authority: Authority) -> None:
    def never(exchange: Exchange) -> None:
        exchange.wait_closed()

    with HttpPeer(never, context(way, authority)) as peer:
        with took() as measured, pytest.raises(mcpsync.ConnectTimeout):
            mcpsync.connect(peer.url, protocol=protocol, verify=authority.ca, timeouts=Timeouts(connect=0.5))
        assert measured.seconds < 1


@pytest.mark.parametrize("way", WAYS)
def test_b3_a_server_that_accepts_and_is_silent(way: str, authority: Authority) -> None:
    with HttpPeer(None, context(way, authority)) as peer:
        with took() as measured, pytest.raises(mcpsync.ConnectTimeout):
            mcpsync.connect(peer.url, verify=authority.ca, timeouts=Timeouts(connect=0.5))
        assert measured.seconds < 1


@pytest.mark.parametrize("kind", ["get", "call", "older"])
@pytest.mark.parametrize("way", WAYS)
def test_b5_close_while_a_stream_is_read(way: str, kind: str, authority: Authority) -> None:
    server: Any = Older() if kind == "older" else serving("legacy", stream=kind == "get").server
    with HttpPeer(server, context(way, authority)) as peer:
        client = mcpsync.connect(peer.url, verify=authority.ca)
        future = client.submit("silent", {"streams": True}) if kind == "call" else None
        with took() as measured:
            client.close(timeout=1)
        assert measured.seconds < 1.5
        assert future is None or isinstance(future.exception(5), ClientClosed)


def test_b5_close_of_a_server_that_takes_its_time_over_the_goodbye() -> None:
    class Slow(Legacy):
        def __call__(self, exchange: Exchange) -> None:
            if exchange.request.method == "DELETE":
                exchange.wait_closed()
            else:
                super().__call__(exchange)

    with HttpPeer(Slow()) as peer:
        client = mcpsync.connect(peer.url, protocol="legacy")
        with took() as measured:
            client.close(timeout=1)
        assert measured.seconds < 1.5


# -- B9, B12 ---------------------------------------------------------------------------------------------------


def test_b9_fifty_reconnects_half_of_them_failing() -> None:
    server, states = Older(), Seen()
    turns = iter(range(10**6))

    def serve(exchange: Exchange) -> None:
        if exchange.request.method == "GET" and next(turns) % 2:
            exchange.respond(503, b"")
        else:
            server(exchange)

    with HttpPeer(serve) as peer:
        options: Dict[str, Any] = {"on_state": states, "backoff": Backoff((0.001, 0.001, 0.001, 0.001, 0.001))}
        with mcpsync.connect(peer.url, transport="sse", **options) as client:
            threads, descriptors = [], []
            for number in range(1, 26):
                assert client.call_tool("work").text == "done"
                threads.append(len(our_threads()))
                descriptors.append(open_descriptors())
                server.streams[-1].put(None)
                states.wait_for("ready", number + 1)
            assert states.items.count("connecting") >= 50
            assert max(threads[10:]) <= max(threads[:10]) + 3
            assert max(descriptors[10:]) <= max(descriptors[:10]) + 8


@pytest.mark.parametrize("era", ERAS)
def test_b12_a_server_that_is_away_between_calls(era: str) -> None:
    tools = serving(era)
    away: List[bool] = []

    def serve(exchange: Exchange) -> None:
        if away:
            exchange.reset()
        tools.server(exchange)

    with HttpPeer(serve) as peer, mcpsync.connect(peer.url, protocol=era) as client:
        assert client.call_tool("echo", {"text": "a"}).text == "a"
        away.append(True)
        peer.drop_connections()
        for _ in range(3):
            with took() as measured, pytest.raises((ConnectionLost, ConnectFailed)):
                client.call_tool("echo", {"text": "b"})
            assert measured.seconds < 1
        away.clear()
        assert client.call_tool("echo", {"text": "c"}).text == "c"
        assert tools.begun == ["echo", "echo"]


def test_b12_an_older_server_that_stays_away_is_down_and_comes_back_with_the_next_call() -> None:
    server, states = Older(), Seen()
    away: List[bool] = []

    def serve(exchange: Exchange) -> None:
        (refuse(503) if away else server)(exchange)

    with HttpPeer(serve) as peer:
        options: Dict[str, Any] = {"on_state": states, "backoff": Backoff((0.01, 0.01, 0.3))}
        with mcpsync.connect(peer.url, transport="sse", **options) as client:
            away.append(True)
            server.streams[0].put(None)
            states.wait_for("waiting", 3)
            with took() as measured, pytest.raises(ConnectionLost, match=r"next attempt|HTTP 503"):
                client.call_tool("work")
            assert measured.seconds < 0.5
            states.wait_for("down")
            with pytest.raises(ConnectFailed, match="HTTP 503"):
                client.call_tool("work")
            states.wait_for("down", 2)  # a new series, which ended like the first
            away.clear()
            assert client.call_tool("work").text == "done"


# -- B11 -------------------------------------------------------------------------------------------------------


def is_interrupted(folder: str, url: str, ca: str, era: str, mode: str, what: str, streams: bool) -> None:
    """Waits in some way until Ctrl-C, which has to arrive soon, and goes on with the same client."""
    import signal
    import threading
    import time

    import mcpsync

    struck: List[float] = []

    def strike(number: int, frame: Any) -> None:
        struck.append(time.monotonic())
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, strike)

    def wait_in_handler(request: Any) -> bool:
        threading.Event().wait()
        return True

    client = mcpsync.connect(url, verify=ca, protocol=era, callbacks=mode, elicitation=wait_in_handler)
    arguments = {"streams": streams}
    if what == "result":
        future = client.submit("silent", arguments, timeout=60)
    print("waiting", flush=True)
    try:
        if what == "result":
            future.result(60)
        elif what == "progress":
            client.call_tool("silent", arguments, timeout=60, on_progress=print)
        else:
            client.call_tool("silent", arguments, timeout=60)
        raise AssertionError
    except KeyboardInterrupt:
        assert time.monotonic() - struck[0] < 1
    if what == "result":
        assert future.cancel()
    for number in range(5):
        assert client.call_tool("echo", {"text": str(number)}, timeout=10).text == str(number)
    assert client.submit("echo", {"text": "on"}).result(10).text == "on"
    client.close()
    print("went on", flush=True)


@pytest.mark.timed
@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(
    ("mode", "what"), [("pool", "call"), ("caller", "call"), ("pool", "progress"), ("pool", "result")]
)
def test_b11_during_a_call(
    served: Any, tmp_path: Path, authority: Authority, mode: str, what: str, streams: bool
) -> None:
    tools, peer, options = served
    era = options["protocol"]
    program: Running = start(
        is_interrupted, str(tmp_path), peer.url, authority.ca, era, mode, what, streams, options=DEV
    )
    assert program.line() == "waiting"
    tools.wait_begun(1)
    wait_until_it_waits(program)
    program.interrupt()
    program.end().check("went on")
    (ended,) = tools.wait_ended()
    if era == "legacy":
        assert tools.server.cancelled.get(timeout=10) == ended
    assert tools.server.cancelled.empty()


def is_interrupted_while_it_connects(folder: str, url: str, transport: str) -> None:
    import time

    import mcpsync

    print("waiting", flush=True)
    try:
        mcpsync.connect(url, transport=transport)
        raise AssertionError
    except KeyboardInterrupt:
        print("interrupted %s" % (time.monotonic() > 0), flush=True)


@pytest.mark.timed
@pytest.mark.parametrize("transport", ["auto", "http", "sse"])
def test_b11_during_connect(tmp_path: Path, transport: str) -> None:
    def never(exchange: Exchange) -> None:
        exchange.wait_closed()

    with HttpPeer(never) as peer:
        program = start(is_interrupted_while_it_connects, str(tmp_path), peer.url, transport, options=DEV)
        assert program.line() == "waiting"
        peer.wait_requests(1)
        wait_until_it_waits(program)
        program.interrupt()
        with took() as measured:
            program.end().check("interrupted True")
        assert measured.seconds < 2


# -- B16 -------------------------------------------------------------------------------------------------------


def never_closes(folder: str, url: str, ca: str, era: str, how: str) -> None:
    import atexit
    import builtins
    import sys
    import threading

    import mcpsync

    def at_the_end() -> None:
        try:
            client.call_tool("echo", {"text": "late"}, timeout=5)
        except mcpsync.McpError as error:
            assert isinstance(error, (mcpsync.ClientClosed, mcpsync.TransportError)), error

    if how == "atexit":
        atexit.register(at_the_end)
    client = mcpsync.connect(url, verify=ca, protocol=era)
    builtins.kept = client  # type: ignore[attr-defined]
    client.call_tool("echo", {"text": "x"})
    if how == "submitted":
        builtins.future = client.submit("silent", {"streams": True})  # type: ignore[attr-defined]
    elif how == "daemon":
        begun = threading.Event()

        def loop() -> None:
            while True:
                begun.set()
                client.call_tool("echo", {"text": "y"})

        threading.Thread(target=loop, daemon=True).start()
        begun.wait()
    print("ending", flush=True)
    if how == "submitted":
        input()  # the server has it
    elif how == "exit":
        sys.exit(7)


@pytest.mark.timed
@pytest.mark.parametrize("how", ["end", "exit", "submitted", "daemon", "atexit"])
def test_b16_never_closed(served: Any, tmp_path: Path, authority: Authority, how: str) -> None:
    tools, peer, options = served
    era = options["protocol"]
    program = start(never_closes, str(tmp_path), peer.url, authority.ca, era, how, options=DEV)
    assert program.line() == "ending", program.end()
    if how == "submitted":
        tools.wait_begun(2)
        program.say("go on")
    with took() as measured:
        finished: Finished = program.end()
    errors = finished.err
    if how == "daemon":  # its thread may be in the middle of a call, whose error is its own
        assert "Fatal" not in errors
    else:
        assert errors == ""
    assert finished.code == (7 if how == "exit" else 0)
    assert measured.seconds < 3
    if how == "submitted":
        tools.wait_ended()
