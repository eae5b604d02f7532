"""Ending exchanges: in every phase, on every way, against completion; and what is left afterwards."""

from __future__ import annotations

import gc
import itertools
import random
import socket
import threading
import time
from contextlib import ExitStack
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import pytest

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectFailed, ConnectionLost, McpError, RequestTimeout
from mcpsync.transport.http import abortable
from tests.peers.authority import Authority
from tests.peers.http import Exchange, HttpPeer, Proxy, blackhole
from tests.transport.http.wired import PATIENCE, SOON, Call, Wired, descriptors, until, wired

BIG = "x" * 10_000_000

library_warns = pytest.mark.filterwarnings(
    "ignore:unclosed <ssl.SSLSocket:ResourceWarning", r"ignore:unclosed <socket.socket \[closed\]:ResourceWarning"
)
"""Python's own ssl.SSLSocket, made of a socket that was reset, and in 3.9 its http.client, when a proxy's answer to
CONNECT breaks off, leave their sockets to the garbage collector. Descriptors are counted instead."""


def echo(exchange: Exchange) -> None:
    exchange.result(exchange.request.message["params"])


def wait(exchange: Exchange) -> None:
    exchange.wait_closed()


def status_dribbles(exchange: Exchange) -> None:
    exchange.dribble(b"HTTP/1.1 200 OK\r\n" * 100)


def headers_dribble(exchange: Exchange) -> None:
    exchange.raw(b"HTTP/1.1 200 OK\r\n")
    exchange.dribble(b"X-More: and more\r\n" * 100)


def headers_stall(exchange: Exchange) -> None:
    exchange.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
    exchange.wait_closed()


def chunks_stall(exchange: Exchange) -> None:
    exchange.start()
    exchange.event({"jsonrpc": "2.0", "method": "m"})
    exchange.wait_closed()


def chunk_dribbles(exchange: Exchange) -> None:
    exchange.start()
    exchange.dribble(b"fffff\r\ndata: " + b"x" * 1000)


def length_stalls(exchange: Exchange) -> None:
    exchange.start(content_type="application/json", framing="1000")
    exchange.write(b'{"jsonrpc": "2.0"')
    exchange.wait_closed()


def close_stalls(exchange: Exchange) -> None:
    exchange.start(framing="close")
    exchange.write(b"data: {}\n\n")
    exchange.wait_closed()


def compressed_stalls(exchange: Exchange) -> None:
    exchange.start(Content_Encoding="gzip")
    exchange.write(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03")
    exchange.wait_closed()


PHASES: Dict[str, Tuple[Callable[[Exchange], None], bool]] = {
    "waiting for headers": (wait, True),
    "the status line dribbles": (status_dribbles, True),
    "headers dribble": (headers_dribble, True),
    "headers stall": (headers_stall, True),
    "chunks stall": (chunks_stall, True),
    "a chunk dribbles": (chunk_dribbles, True),
    "a body of known length stalls": (length_stalls, True),
    "a body until the close stalls": (close_stalls, True),
    "a compressed body stalls": (compressed_stalls, True),
    "the upload is not read": (lambda exchange: exchange.peer.closing.wait() and None, False),
}
WAYS = ("plain", "tls", "proxy", "connect")


class Way:
    """A peer and how it is reached."""

    def __init__(self, way: str, authority: Authority, behaviour: Any, stack: ExitStack, **options: Any) -> None:
        tls = authority.server() if way in ("tls", "connect") else None
        self.peer = stack.enter_context(HttpPeer(behaviour, tls=tls, **options))
        more: Dict[str, Any] = {"verify": authority.ca} if tls else {}
        url = self.peer.url
        if way in ("proxy", "connect"):
            self.proxy = stack.enter_context(Proxy(("127.0.0.1", self.peer.port)))
            more["proxies"] = {"all": self.proxy.url}
            url = url.replace("127.0.0.1:%d" % self.peer.port, "mcp.example.org")
        self.client: Wired = stack.enter_context(wired(url, **more))


def abort_times(client: Wired, call: Call, asking: Any) -> float:
    start = time.monotonic()
    client.transport.abort(call, "cancelled")
    asking.join()
    over: float = asking.over_at
    return over - start


@pytest.mark.timed
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("phase", PHASES)
def test_an_exchange_ends_at_once(phase: str, way: str, authority: Authority) -> None:  # D18, D21
    behaviour, reads = PHASES[phase]

    def serve(exchange: Exchange) -> None:
        if reads and exchange.request.message["params"] == "good":
            echo(exchange)
        else:
            behaviour(exchange)

    with ExitStack() as stack:
        reached = Way(way, authority, serve, stack, reads_bodies=reads)
        client = reached.client
        times = []
        for fresh in (True, False):
            if reads and not fresh:
                assert client.ask("good") == "good"  # what follows is on a used connection
            before = len(reached.peer.requests)
            call = client.new_call()
            asking = client.asking(call, params="bad" if reads else BIG)
            reached.peer.wait_requests(before + 1)
            time.sleep(0.03)  # it is somewhere within the phase
            times.append(abort_times(client, call, asking))
            assert isinstance(asking.outcome, ConnectionLost), asking.outcome
            assert not client.transport.abort(call, "again")
        assert max(times) < SOON
        if reads:
            assert client.ask("good") == "good"
            assert until(lambda: reached.peer.of("POST")[-1].message["params"] == "good")


def resolver_hangs(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    go = threading.Event()
    real = socket.getaddrinfo

    def hang(host: Any, *arguments: Any, **keywords: Any) -> Any:
        if host == "mcp.example.org":
            go.wait(PATIENCE)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return real(host, *arguments, **keywords)

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    return go.set


CONNECTING = ("dns", "blackhole", "tls handshake", "proxy blackhole", "connect silent", "tls behind connect")


def connecting(kind: str, authority: Authority, stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> Wired:
    """A client whose attempts to connect do not end."""
    options: Dict[str, Any] = {"verify": authority.ca, "connect_timeout": 1.0}
    if kind == "dns":
        stack.callback(resolver_hangs(monkeypatch))
        url = "https://mcp.example.org/mcp"
    elif kind == "blackhole":
        url = "http://127.0.0.1:%d/mcp" % stack.enter_context(blackhole())
    elif kind == "tls handshake":
        url = "https://127.0.0.1:%d/mcp" % stack.enter_context(HttpPeer(None)).port
    else:
        url = "https://mcp.example.org/mcp"
        if kind == "proxy blackhole":
            proxy = "http://127.0.0.1:%d" % stack.enter_context(blackhole())
        elif kind == "connect silent":
            proxy = stack.enter_context(Proxy(("127.0.0.1", 9), silent=True)).url
        else:
            peer = stack.enter_context(HttpPeer(None))
            proxy = stack.enter_context(Proxy(("127.0.0.1", peer.port))).url
        options["proxies"] = {"https": proxy}
    client: Wired = stack.enter_context(wired(url, **options))
    return client


@pytest.fixture
def no_helpers_left() -> Iterator[None]:
    """What was left behind while it connected ends by its own timeout, which these tests make short."""
    yield
    assert until(lambda: not connects(), 5)


def connects() -> bool:
    """Whether an attempt to connect is under way."""
    return any(each.name == "mcpsync-connecting" for each in threading.enumerate())


@library_warns
@pytest.mark.timed
@pytest.mark.parametrize("kind", CONNECTING)
def test_an_attempt_to_connect_ends_at_once(
    kind: str, authority: Authority, monkeypatch: pytest.MonkeyPatch, no_helpers_left: None
) -> None:  # D21
    with ExitStack() as stack:
        client = connecting(kind, authority, stack, monkeypatch)
        call = client.new_call()
        asking = client.asking(call)
        assert until(connects)
        start = time.monotonic()
        assert client.transport.abort(call, "cancelled")  # nothing was sent: nobody has to be told
        asking.join()
        assert asking.over_at - start < SOON
        assert isinstance(asking.outcome, ConnectionLost)


@library_warns
@pytest.mark.timed
@pytest.mark.parametrize("kind", CONNECTING)
def test_a_deadline_holds_while_it_connects(
    kind: str, authority: Authority, monkeypatch: pytest.MonkeyPatch, no_helpers_left: None
) -> None:  # D21
    with ExitStack() as stack:
        client = connecting(kind, authority, stack, monkeypatch)
        start = time.monotonic()
        with pytest.raises((RequestTimeout, ConnectFailed)):
            client.ask(seconds=0.3)
        assert 0.29 <= time.monotonic() - start < 0.3 + SOON


@pytest.mark.timed
def test_attempts_that_are_left_behind_are_few(monkeypatch: pytest.MonkeyPatch, no_helpers_left: None) -> None:
    release = resolver_hangs(monkeypatch)
    with wired("http://mcp.example.org/mcp") as client:
        while sum(abortable._hanging.values()) < 16:
            with pytest.raises(RequestTimeout):
                client.ask(seconds=0.02)
        start = time.monotonic()
        with pytest.raises(ConnectFailed) as caught:
            client.ask(seconds=5)
        assert time.monotonic() - start < 1
        assert "16 earlier attempts" in str(caught.value)
        release()
        assert until(lambda: not any(abortable._hanging.values()))
        with pytest.raises(ConnectFailed) as caught:
            client.ask(seconds=5)
        assert "resolved" in str(caught.value)


@pytest.mark.timed
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("phase", PHASES)
def test_a_deadline_holds(phase: str, way: str, authority: Authority) -> None:  # D18, D21
    behaviour, reads = PHASES[phase]
    with ExitStack() as stack:
        client = Way(way, authority, behaviour, stack, reads_bodies=reads).client
        with pytest.raises(RequestTimeout):
            client.ask("bad" if reads else BIG, seconds=0.25)
        assert 0.25 <= time.monotonic() - client.sent_at < 0.25 + SOON


@pytest.mark.timed
@pytest.mark.parametrize("way", WAYS)
def test_closing_ends_all(way: str, authority: Authority) -> None:  # D18
    before = descriptors()
    behaviours = itertools.cycle([wait, headers_stall, chunks_stall, close_stalls])

    def serve(exchange: Exchange) -> None:
        next(behaviours)(exchange)

    with ExitStack() as stack:
        reached = Way(way, authority, serve, stack)
        askings = [reached.client.asking(reached.client.new_call()) for _ in range(8)]
        reached.peer.wait_requests(8)
        assert reached.client.close() < 0.2
        for asking in askings:
            assert isinstance(asking.join(), ConnectionLost)
    # Python leaves some TLS sockets to the collector, see above; the last may be let go of after a first collection
    assert until(lambda: gc.collect() >= 0 and descriptors() <= before, 2)


@pytest.mark.timed
def test_a_dead_server_delays_nobody() -> None:  # D20
    with HttpPeer(wait) as peer, wired(peer.url) as client:
        start = time.monotonic()
        askings = [client.asking(client.new_call(), seconds=0.3) for _ in range(8)]

        def note() -> None:
            with pytest.raises(ConnectionLost):  # when it is closed
                client.note(seconds=PATIENCE)

        notes = [threading.Thread(target=note, name="mcpsync-test") for _ in range(4)]
        for each in notes:
            each.start()
        for asking in askings:
            assert isinstance(asking.join(), RequestTimeout)
            assert asking.over_at - start < 0.3 + 0.25
        client.transport.close(Deadline(1))
        for each in notes:
            each.join(PATIENCE)


# -- against completion ----------------------------------------------------------------------------------------


def harmless(exchange: Exchange) -> None:
    """Answers with what was asked, in one of several ways, after up to two milliseconds."""
    chance = random.random()
    exchange.peer.closing.wait(random.random() * 0.002)
    answer = exchange.request.message["params"]
    if chance < 0.4:
        exchange.result(answer)
    elif chance < 0.8:
        exchange.start()
        exchange.event({"jsonrpc": "2.0", "method": "progress", "params": "y" * 100})
        exchange.event_result(answer)
        exchange.end()
    else:
        exchange.start(framing="close")
        exchange.event_result(answer)


@pytest.mark.once
@library_warns
@pytest.mark.parametrize("way", ["plain", "tls", "connect"])
def test_an_abort_races_with_completion(way: str, authority: Authority) -> None:  # D19
    """Whatever is aborted, an answer is the right one, and who was not aborted has one."""
    rounds, callers = 250, 6
    before = descriptors()
    with ExitStack() as stack:
        client = Way(way, authority, harmless, stack).client
        wrong: List[str] = []
        aborted = [0] * callers
        answered = [0] * callers

        def run(number: int) -> None:
            chance = random.Random(number)
            for turn in range(rounds):
                call = client.new_call()
                expected = "%d-%d-%s" % (number, turn, "z" * chance.randrange(3000))
                timer: Optional[threading.Timer] = None
                told: List[bool] = []
                if number % 2:
                    timer = threading.Timer(
                        chance.random() * 0.006,
                        lambda call=call, told=told: told.append(client.transport.abort(call, "cancelled")),
                    )
                    timer.start()
                try:
                    got = client.send(call, expected, seconds=None)
                    if got != expected:
                        wrong.append("got %.80r for %.80r" % (got, expected))
                    answered[number] += 1
                except McpError as error:
                    if timer is not None:
                        timer.join()
                    if not told or "cancelled" not in str(error):
                        wrong.append("%s: %s" % (type(error).__name__, error))
                    aborted[number] += 1
                if timer is not None:
                    timer.cancel()
                    timer.join()

        threads = [threading.Thread(target=run, args=(number,), name="mcpsync-test") for number in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(100)
        assert wrong == []
        assert sum(answered[::2]) == rounds * callers // 2
        assert sum(aborted) > 20
        assert sum(answered[1::2]) > 20
    # Python leaves some TLS sockets to the collector, see above; the last may be let go of after a first collection
    assert until(lambda: gc.collect() >= 0 and descriptors() <= before, 2)


@pytest.mark.parametrize("way", ["plain", "tls"])
def test_an_abort_while_a_body_streams_leaves_no_cut_body_for_an_answer(way: str, authority: Authority) -> None:  # D19
    def stream(exchange: Exchange) -> None:
        kind = exchange.request.message["params"]
        if kind == "close":
            exchange.start(content_type="application/json", framing="close")
        else:
            exchange.start(content_type="application/json", framing="40000000")
        exchange.write(b'{"jsonrpc": "2.0", "id": %d, "result": 1}' % exchange.request.message["id"])
        while not exchange.peer.closing.is_set():
            exchange.write(b" " * 65536)

    with ExitStack() as stack:
        reached = Way(way, authority, stream, stack)
        client = reached.client
        for turn in range(20):
            call = client.new_call()
            before = len(client.sink.answers)
            asking = client.asking(call, params="close" if turn % 2 else "length")
            reached.peer.wait_requests(turn + 1, "POST")  # so that it is connected
            time.sleep(0.001 + turn * 0.001)  # any moment of an exchange that has no end
            client.transport.abort(call, "cancelled")
            asking.join()
            assert isinstance(asking.outcome, ConnectionLost)
            assert len(client.sink.answers) == before


def test_an_abort_before_and_after() -> None:
    with HttpPeer(echo) as peer, wired(peer.url) as client:
        early = client.new_call()
        assert client.transport.abort(early, "cancelled") is False
        early.answered = True  # as the connection has it: retired first, then aborted
        client.send(early)
        assert peer.requests == []
        late = client.new_call()
        client.send(late, 1)
        assert client.transport.abort(late, "cancelled") is False
        assert client.ask(2) == 2
        assert peer.connections == 1


def test_an_abort_tells_the_server_or_says_that_it_does_not() -> None:
    ended = threading.Event()

    def serve(exchange: Exchange) -> None:
        exchange.start()
        assert exchange.wait_closed()
        ended.set()

    for headers, tells in (({"Mcp-Method": "tools/call"}, True), ({"MCP-Protocol-Version": "2025-11-25"}, False)):
        ended.clear()
        with HttpPeer(serve) as peer, wired(peer.url, headers_sent=headers) as client:
            call = client.new_call()
            asking = client.asking(call)
            peer.wait_requests(1)
            assert client.transport.abort(call, "cancelled") is tells
            asking.join()
            assert ended.wait(PATIENCE)


def test_an_interrupt_leaves_the_transport_usable(authority: Authority) -> None:
    """Whatever interrupts the thread that drives an exchange."""

    class Interrupt(BaseException):
        pass

    with HttpPeer(echo, tls=authority.server()) as peer, wired(peer.url, verify=authority.ca) as client:
        before = client.sink.frame

        def interrupted(data: bytes, stream: Any) -> None:
            raise Interrupt

        client.sink.frame = interrupted  # type: ignore[method-assign]
        with pytest.raises(Interrupt):
            client.ask()
        client.sink.frame = before  # type: ignore[method-assign]
        assert client.ask(1) == 1
