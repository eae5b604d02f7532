"""B18: a machine that slept, by a clock that is moved; and links that outlive their session."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

import mcpsync
from mcpsync import Client, ConnectionLost, Timeouts
from tests.faults.watch import WAIT_SECONDS, Seen
from tests.peers.http import Exchange, HttpPeer, tool_result
from tests.peers.http_servers import Legacy
from tests.peers.scripted import peer

ERAS = ["legacy", "modern"]
NIGHT = 8 * 3_600.0


def sleep(client: Client, seconds: float = NIGHT) -> None:
    """The machine sleeps for so long; returns when that has been noticed."""
    watchdog = client._connection.watchdog
    before = watchdog.elapsed
    watchdog.elapsed = lambda: before() + seconds
    for _ in range(2):  # what it notices at the first it has dealt with by the second
        turned = threading.Event()
        watchdog.post(turned.set)
        assert turned.wait(WAIT_SECONDS)


@pytest.mark.parametrize("limit", ["idle_disconnect", "max_lifetime"])
@pytest.mark.parametrize("era", ERAS)
def test_b18_what_got_too_old_in_a_sleep_is_closed_and_the_next_call_opens_it(
    tmp_path: Path, era: str, limit: str
) -> None:
    server = peer(tmp_path, era=era)
    states = Seen()
    limits: Dict[str, Any] = {limit: 3_600}
    with mcpsync.connect(server.command, timeouts=Timeouts(**limits), on_state=states) as client:
        client.call_tool("echo")  # used a moment before the lid is shut
        sleep(client, 3_000)
        assert client.state == "ready"
        sleep(client)
        assert client.state == "dormant"
        assert client.call_tool("echo", {"text": "good morning"}).text == "good morning"
        assert client.sessions == 2


@pytest.mark.parametrize("era", ERAS)
def test_b18_a_call_on_its_way_sleeps_too(tmp_path: Path, era: str) -> None:
    server = peer(tmp_path, era=era)
    limits = Timeouts(call=60, total=60, keepalive=30, idle_disconnect=60, max_lifetime=60)
    with mcpsync.connect(server.command, timeouts=limits) as client:
        pending = client.submit("sleep", {"seconds": 0.1})
        server.wait_for("tools/call")
        sleep(client)
        assert pending.result(WAIT_SECONDS).text == "slept"


@pytest.mark.parametrize("era", ERAS)
def test_b18_one_ping_is_asked_after_a_sleep_and_its_answer_is_enough(tmp_path: Path, era: str) -> None:
    server = peer(tmp_path, era=era)
    asked = "ping" if era == "legacy" else "server/discover"
    with mcpsync.connect(server.command, protocol=era, timeouts=Timeouts(keepalive=3_600)) as client:
        before = len(server.received(asked))
        sleep(client)
        server.wait_for(asked, before + 1)
        assert client.call_tool("echo", {"text": "here"}).text == "here"
        sleep(client)
        server.wait_for(asked, before + 2)
        assert client.call_tool("echo", {"text": "here"}).text == "here"
        assert len(server.received(asked)) == before + 2
        assert client.sessions == 1


@pytest.mark.timed
def test_b18_after_a_sleep_one_interval_of_silence_is_enough(tmp_path: Path) -> None:
    server = peer(tmp_path, era="legacy")
    states = Seen()
    interval = 0.3
    with mcpsync.connect(server.command, timeouts=Timeouts(keepalive=interval), on_state=states) as client:
        client.call_tool("stop_reading")
        sleep(client)
        began = time.monotonic()
        states.wait_for("waiting")
        # three misses are three intervals, and the first ping of them is sent an interval after the last sign of life
        assert time.monotonic() - began < 3 * interval
        assert isinstance(client.last_error, ConnectionLost)
        states.wait_for("ready", 2)


def _readers() -> List[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.endswith("-reader")]


def _soon(condition: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.005)
    return condition()


def test_b18_a_link_whose_session_is_gone_ends_with_its_last_call() -> None:
    held, go = threading.Semaphore(0), threading.Event()

    def work(exchange: Exchange, message: Dict[str, Any]) -> None:
        if message["params"].get("arguments"):
            held.release()
            go.wait(WAIT_SECONDS)
        exchange.result(tool_result())

    server = Legacy(work)
    with HttpPeer(server) as http, mcpsync.connect(http.url, protocol="legacy") as client:
        slow = []
        for session in range(1, 6):
            slow.append(client.submit("work", {"slow": True}))
            assert held.acquire(timeout=WAIT_SECONDS)
            server.forget_sessions()
            assert client.call_tool("work").text == "done"
            assert client.sessions == session + 1
            assert len(_readers()) == session + 1  # those of the slow calls linger
        go.set()
        assert [each.result(WAIT_SECONDS).text for each in slow] == ["done"] * 5
        assert _soon(lambda: len(_readers()) == 1, 3.0), _readers()
