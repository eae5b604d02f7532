"""A limit on calls at a time: who waits, in which order, and who never does."""

from __future__ import annotations

import threading
from typing import Any, List

import pytest

import mcpsync
from mcpsync import ConfigError, RequestCancelled, RequestTimeout
from tests.faults.watch import took
from tests.peers.http import Exchange, HttpPeer
from tests.peers.http_tools import ERAS, Tools, serving


class Counting(Tools):
    """How many of the calls are there at a time."""

    def __init__(self, server: Any) -> None:
        super().__init__(server)
        self.now = self.most = 0

    def __call__(self, exchange: Exchange, message: Any) -> None:
        with self.changed:
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            super().__call__(exchange, message)
        finally:
            with self.changed:
                self.now -= 1


@pytest.mark.parametrize("era", ERAS)
def test_no_more_than_that_at_a_time_and_all_get_their_turn(era: str) -> None:
    tools = Counting(ERAS[era]())
    with HttpPeer(tools.server) as peer, mcpsync.connect(peer.url, protocol=era, max_connections=2) as client:
        texts: List[str] = []

        def use(number: int) -> None:
            for _ in range(5):
                texts.append(client.call_tool("echo", {"text": str(number), "slow": True}).text)

        threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        futures = [client.submit("echo", {"text": "s", "slow": True}) for _ in range(8)]
        for thread in threads:
            thread.join()
        assert [future.result(10).text for future in futures] == ["s"] * 8
        assert sorted(texts) == sorted(str(number) for number in range(8) for _ in range(5))
        assert tools.most == 2


@pytest.mark.parametrize("era", ERAS)
def test_a_call_that_waits_for_its_turn_ends_in_time_and_is_never_sent(era: str) -> None:
    tools = serving(era)
    with HttpPeer(tools.server) as peer, mcpsync.connect(peer.url, protocol=era, max_connections=1) as client:
        held = client.submit("silent")
        tools.wait_begun(1)
        with took() as measured, pytest.raises(RequestTimeout):
            client.call_tool("echo", timeout=0.3)
        assert measured.seconds < 1
        waiting = client.submit("echo", {"text": "never"})
        assert waiting.cancel()
        with pytest.raises(RequestCancelled):
            waiting.result()
        assert held.cancel()
        assert client.call_tool("echo", {"text": "next"}, timeout=5).text == "next"
        assert tools.begun == ["silent", "echo"]


@pytest.mark.parametrize("mode", ["pool", "caller"])
@pytest.mark.parametrize("era", ERAS)
def test_a12_answers_never_wait_for_a_turn(era: str, mode: str) -> None:
    tools = serving(era)
    options: Any = {"protocol": era, "max_connections": 1, "callbacks": mode, "elicitation": lambda request: True}
    with HttpPeer(tools.server) as peer, mcpsync.connect(peer.url, **options) as client:
        futures = [client.submit("asks", {"times": 2}, timeout=20) for _ in range(8)]
        assert '"accept"' in client.call_tool("asks", timeout=20).text
        assert all('"accept"' in future.result(20).text for future in futures)


@pytest.mark.parametrize("era", ERAS)
def test_pings_never_wait_for_a_turn(era: str) -> None:
    tools = serving(era)
    timeouts = mcpsync.Timeouts(keepalive=0.1)
    options: Any = {"protocol": era, "max_connections": 1, "timeouts": timeouts}
    with HttpPeer(tools.server) as peer, mcpsync.connect(peer.url, **options) as client:
        held = client.submit("silent")
        tools.wait_begun(1)
        pings = "ping" if era == "legacy" else "server/discover"
        before = len(peer.requests)
        peer.wait_for(lambda: [each for each in peer.requests[before:] if each.message.get("method") == pings][2:])
        assert client.state == "ready" and held.cancel()


def test_what_is_no_number() -> None:
    with pytest.raises(ConfigError, match="max_connections takes a positive whole number, not 0"):
        mcpsync.Client("http://127.0.0.1:9/", max_connections=0)
