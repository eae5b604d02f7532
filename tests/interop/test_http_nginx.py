"""The official SDK 2.x behind nginx: TLS from a private CA, buffering off and on, and the moment of an idle timeout."""

from __future__ import annotations

import itertools
import os
import threading
import time
from pathlib import Path
from typing import Iterator, List, NamedTuple, Tuple

import pytest

import mcpsync
from tests.interop.http_peers import HttpPeer, by_many_threads, cancelled_there, each_once, node_peer, python_peer
from tests.interop.nginx import IDLE_SECONDS, PATHS, Nginx, program
from tests.interop.peers import PeerUnavailable
from tests.interop.side import Side
from tests.peers.authority import Authority

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

LEGACY, MODERN = "2025-11-25", "2026-07-28"
AROUND = [round(-0.05 + step * 0.01, 2) for step in range(11)]
"""Seconds before and after the idle timeout."""
unique = itertools.count()


class Front(NamedTuple):
    """nginx and what is behind it.

    :ivar ca: path of the authority's certificate
    """

    nginx: Nginx
    peer: HttpPeer
    ca: str


@pytest.fixture(scope="module")
def front(mcp2_command: List[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    try:
        program()
    except PeerUnavailable as missing:
        if os.environ.get("MCPSYNC_REQUIRE_INTEROP") == "1":
            pytest.fail("interop peer missing: %s" % missing, pytrace=False)
        pytest.skip("interop peer missing: %s" % missing)
    files: Path = tmp_path_factory.mktemp("authority")
    authority = Authority(files)
    with python_peer(mcp2_command) as peer:
        behind = peer.url.rpartition("/")[0]
        folder = tmp_path_factory.mktemp("nginx")
        with Nginx(folder, behind, str(files / "server.pem"), str(files / "server.key")) as nginx:
            yield Front(nginx, peer, authority.ca)


@pytest.fixture
def side() -> Side:
    return Side()


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["legacy", MODERN])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(front: Front, path: str, protocol: str, side: Side) -> Iterator[mcpsync.Client]:
    with side.connect(front.nginx.url(path), protocol=protocol, verify=front.ca) as client:
        yield client


def test_a_certificate_that_nobody_vouches_for(front: Front, path: str) -> None:
    with pytest.raises(mcpsync.ConnectFailed, match="certificate"):
        mcpsync.connect(front.nginx.url(path))


def test_the_era_is_found(front: Front, path: str) -> None:
    with mcpsync.connect(front.nginx.url(path), verify=front.ca) as client:
        assert client.protocol_version == MODERN


def test_tools_progress_and_questions(client: mcpsync.Client, path: str, protocol: str, side: Side) -> None:
    assert client.protocol_version == (LEGACY if protocol == "legacy" else MODERN)
    assert "tally" in {tool.name for tool in client.list_tools()}
    assert client.call_tool("echo", {"text": "hé\u2028\U0001f40d" * 20_000}).text == "hé\u2028\U0001f40d" * 20_000
    assert client.call_tool("count", {"steps": 500}, on_progress=side.tell("step")).text == "counted to 500"
    assert [side.next("step").progress for _ in range(500)] == list(range(1, 501))
    if protocol == MODERN or path == "unbuffered":
        assert client.call_tool("ask").text == "accept Ada False"
        assert client.call_tool("sample", {"prompt": "ping"}).text == "m1: pong"
    else:  # the question waits in nginx for the end of an answer that waits for the question's
        with pytest.raises(mcpsync.RequestTimeout):
            client.call_tool("ask", timeout=0.5)


def test_cancel(client: mcpsync.Client, path: str, side: Side) -> None:
    marks = ["nginx %d" % next(unique), "nginx %d" % next(unique)]
    if path == "unbuffered":
        slow = client.submit("slow", {"mark": marks[0], "seconds": 20}, on_progress=side.tell("started"))
        side.next("started")
        assert slow.cancel()
    else:
        marks = marks[1:]
    with pytest.raises(mcpsync.RequestTimeout):
        client.call_tool("slow", {"mark": marks[-1], "seconds": 20}, timeout=0.5)
    assert cancelled_there(client, marks)


def test_many_threads(front: Front, client: mcpsync.Client) -> None:
    def tally(mark: str) -> None:
        assert client.call_tool("tally", {"mark": mark}).text == "1"

    before = front.nginx.requests_on()
    each_once(front.peer, by_many_threads(client, tally, "nginx %d" % next(unique)))
    on_new = [count for connection, count in front.nginx.requests_on().items() if connection not in before]
    assert len(on_new) < 30  # connections are kept: more than 200 requests came


def test_the_moment_when_idle_connections_are_closed(front: Front, everything_command: List[str]) -> None:
    """A call that meets the end of an idle connection is neither lost nor made twice.

    Through nginx on either path, and straight to uvicorn and Node, which close at five seconds too.
    """
    with node_peer(everything_command) as node:
        targets: List[Tuple[str, HttpPeer]] = [
            *((front.nginx.url(path), front.peer) for path in PATHS),
            (front.peer.url, front.peer),
            (node.url, node),
        ]
        plan = [(url, peer, around) for around in AROUND for url, peer in targets]
        wrong: List[str] = []

        def idle(mark: str, url: str, around: float, protocol: str) -> None:
            try:
                with mcpsync.connect(url, protocol=protocol, verify=front.ca) as client:
                    assert client.call_tool("tally", {"mark": mark}).text == "1"
                    time.sleep(IDLE_SECONDS + around)  # the passing of time is what is tested
                    assert client.call_tool("tally", {"mark": mark}).text == "2"
                    time.sleep(IDLE_SECONDS + around)
                    assert "tally" in {tool.name for tool in client.list_tools()}
            except (mcpsync.McpError, AssertionError) as error:
                wrong.append("%s: %r" % (mark, error))

        threads, marks = [], []
        for number, (url, peer, around) in enumerate(plan):
            mark = "idle %d: %s %+.2f" % (number, url, around)
            marks.append((mark, peer))
            protocol = ("legacy", MODERN)[number // len(targets) % 2]
            threads.append(threading.Thread(target=idle, args=(mark, url, around, protocol)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert {mark: peer.counts("executed").get(mark) for mark, peer in marks} == {mark: 2 for mark, _ in marks}
