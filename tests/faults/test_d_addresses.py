"""D21: a host with several addresses, of which the first leads nowhere."""

from __future__ import annotations

import socket
from typing import Any, Iterator, List, Tuple

import pytest

import mcpsync
from mcpsync import ConnectTimeout, RequestTimeout, Timeouts
from tests.faults.watch import took
from tests.peers.authority import Authority
from tests.peers.http import HttpPeer, Proxy, blackhole
from tests.peers.http_tools import serving

HOST = "mcp.example.org"


class Names:
    """What the host's name leads to; the port of each address is its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.addresses: List[Tuple[str, int]] = []
        self._real = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._look_up)

    def _look_up(self, host: Any, *arguments: Any, **keywords: Any) -> Any:
        if host != HOST:
            return self._real(host, *arguments, **keywords)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in self.addresses]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    return Names(monkeypatch)


@pytest.fixture
def nowhere() -> Iterator[Tuple[str, int]]:
    with blackhole() as port:
        yield "127.0.0.1", port


@pytest.mark.parametrize("way", ["plain", "tls", "session"])
def test_d21_the_second_address_is_reached_within_the_time_of_a_call(
    way: str, names: Names, nowhere: Any, authority: Authority
) -> None:
    import requests

    with HttpPeer(serving("modern").server, authority.server() if way == "tls" else None) as peer:
        names.addresses = [nowhere, nowhere, ("127.0.0.1", peer.port)]
        options: Any = {"verify": authority.ca, "timeouts": Timeouts(connect=15)}
        if way == "session":
            options["session"] = requests.Session()
            options["session"].hooks["response"].append(lambda response, **more: None)
        url = "%s://%s:%d/mcp" % ("https" if way == "tls" else "http", HOST, peer.port)
        with took() as measured, mcpsync.connect(url, **options) as client:
            assert client.call_tool("echo", {"text": "there"}).text == "there"
        assert measured.seconds < 5
        if way == "session":
            options["session"].close()


def test_d21_by_way_of_a_proxy_with_such_a_name(names: Names, nowhere: Any, authority: Authority) -> None:
    with HttpPeer(serving("modern").server, authority.server()) as peer, Proxy(("127.0.0.1", peer.port)) as proxy:
        names.addresses = [nowhere, ("127.0.0.1", proxy.port)]
        options: Any = {"verify": authority.ca, "proxies": {"https": "http://%s:%d" % (HOST, proxy.port)}}
        with took() as measured, mcpsync.connect("https://localhost:%d/mcp" % peer.port, **options) as client:
            assert client.call_tool("echo", {"text": "there"}).text == "there"
        assert measured.seconds < 3
        assert {asked.rpartition(" ")[0] for asked in proxy.asked} == {"CONNECT localhost:%d" % peer.port}


def test_d21_a_slow_server_gets_all_the_time_that_there_is(names: Names, authority: Authority) -> None:
    import threading

    first = threading.Event()

    class Slow(HttpPeer):
        def serve(self, sock: Any, number: int) -> None:
            if not first.is_set():
                first.set()
                self.closing.wait(5)  # its handshake takes longer than the first turn
                return
            self.closing.wait(1.5)
            super().serve(sock, number)

    with Slow(serving("modern").server, authority.server()) as peer:
        names.addresses = [("127.0.0.1", peer.port)]
        with mcpsync.connect("https://%s:%d/mcp" % (HOST, peer.port), verify=authority.ca) as client:
            assert client.call_tool("echo", {"text": "there"}).text == "there"


def test_d21_all_of_them_lead_nowhere(names: Names, nowhere: Any) -> None:
    names.addresses = [nowhere, nowhere]
    with took() as measured, pytest.raises(ConnectTimeout):
        mcpsync.connect("http://%s:1/mcp" % HOST, timeouts=Timeouts(connect=1.5))
    assert measured.seconds < 2.2


def test_d21_a_call_that_needs_a_new_connection_ends_in_its_own_time(names: Names, nowhere: Any) -> None:
    with HttpPeer(serving("modern").server) as peer:
        names.addresses = [("127.0.0.1", peer.port)]
        with mcpsync.connect("http://%s:%d/mcp" % (HOST, peer.port)) as client:
            assert client.call_tool("echo", {"text": "there"}).text == "there"
            names.addresses = [nowhere]
            peer.drop_connections()
            with took() as measured, pytest.raises(RequestTimeout):
                client.call_tool("echo", timeout=0.4)
            assert measured.seconds < 0.8
            names.addresses = [nowhere, ("127.0.0.1", peer.port)]
            with took() as measured:
                assert client.call_tool("echo", {"text": "on"}, timeout=3).text == "on"
            assert measured.seconds < 2
