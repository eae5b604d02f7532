"""FAULTS.md B14 and its neighbours: keepalive, idleness, age."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

import mcpsync
from mcpsync import ConnectionLost, RequestTimeout, Timeouts
from tests.faults.watch import Seen, took
from tests.peers.scripted import peer

ERAS = ["legacy", "modern"]


@pytest.mark.timed
@pytest.mark.parametrize("era", ERAS)
def test_b14_single_threaded_server_busy_for_many_keepalive_intervals(tmp_path: Path, era: str) -> None:
    server = peer(tmp_path, era=era)
    states = Seen()
    with mcpsync.connect(server.command, timeouts=Timeouts(keepalive=0.1), on_state=states) as client:
        assert client.call_tool("busy", {"seconds": 1.2}).text == "was busy"
        assert client.call_tool("echo", {"text": "still there"}).text == "still there"
        assert client.sessions == 1
    assert states.items == ["connecting", "ready", "closed"]


@pytest.mark.timed
@pytest.mark.parametrize("era", ERAS)
def test_b14_silent_server_without_calls_is_declared_dead_after_three_misses(tmp_path: Path, era: str) -> None:
    server = peer(tmp_path, era=era)
    states = Seen()
    with mcpsync.connect(
        server.command, timeouts=Timeouts(keepalive=0.2), on_state=states, on_tools_changed=print
    ) as client:
        client.call_tool("stop_reading")
        with took() as noticed:
            states.wait_for("waiting")
        assert 0.6 <= noticed.seconds < 2
        assert isinstance(client.last_error, ConnectionLost)
        assert "no sign of life" in str(client.last_error)
        states.wait_for("ready", 2)


@pytest.mark.timed
def test_b14_an_error_to_ping_is_a_sign_of_life(tmp_path: Path) -> None:
    def refuse(server: Any, request: Any) -> None:
        server.error(request, -32601, "no ping here")

    server = peer(tmp_path, era="legacy", handlers={"ping": refuse})
    with mcpsync.connect(server.command, timeouts=Timeouts(keepalive=0.05)) as client:
        server.wait_for("ping", 8)
        client.call_tool("echo")
        assert client.sessions == 1


@pytest.mark.timed
def test_b14_no_pings_while_the_server_talks(tmp_path: Path) -> None:
    server = peer(tmp_path, era="legacy")
    with mcpsync.connect(server.command, timeouts=Timeouts(keepalive=0.3)) as client:
        with pytest.raises(RequestTimeout):
            client.call_tool("endless_progress", {"every": 0.05}, on_progress=lambda progress: None, timeout=1.0)
        assert len(server.received("ping")) <= 1  # none came before the first progress, at most


@pytest.mark.timed
def test_b14_a_cancel_does_not_wait_behind_a_ping(tmp_path: Path) -> None:
    server = peer(tmp_path, era="legacy", handlers={"ping": "silent_method"})
    with mcpsync.connect(server.command, timeouts=Timeouts(keepalive=1.0)) as client:
        pending = client.submit("silent")
        server.wait_for("ping")
        assert pending.cancel()
        server.wait_for("notifications/cancelled", timeout=0.5)


@pytest.mark.timed
@pytest.mark.parametrize("era", ERAS)
def test_b14_an_unused_connection_is_closed_and_the_next_call_opens_it(tmp_path: Path, era: str) -> None:
    server = peer(tmp_path, era=era)
    states = Seen()
    with mcpsync.connect(
        server.command, timeouts=Timeouts(idle_disconnect=0.2), on_state=states, on_tools_changed=print
    ) as client:
        states.wait_for("dormant", seconds=2)
        server.wait_ended()
        assert client.state == "dormant"
        assert client.call_tool("echo", {"text": "again"}).text == "again"
        assert client.sessions == 2


@pytest.mark.timed
def test_b14_a_connection_is_not_idle_during_a_call(tmp_path: Path) -> None:
    server = peer(tmp_path)
    with mcpsync.connect(server.command, timeouts=Timeouts(idle_disconnect=0.1)) as client:
        assert client.call_tool("sleep", {"seconds": 0.6}).text == "slept"
        assert client.sessions == 1


@pytest.mark.timed
def test_b14_an_old_connection_is_replaced_without_harming_calls(tmp_path: Path) -> None:
    server = peer(tmp_path)
    failures = Seen()
    with mcpsync.connect(server.command, timeouts=Timeouts(max_lifetime=0.3)) as client:
        until = time.monotonic() + 2.0

        def call() -> None:
            while time.monotonic() < until:
                try:
                    client.call_tool("echo")
                except mcpsync.McpError as error:
                    failures(error)

        threads = [threading.Thread(target=call) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures.items == []
        assert client.call_tool("echo", {"text": "fine"}).text == "fine"


@pytest.mark.timed
def test_b14_an_unanswered_probe_is_no_call(tmp_path: Path) -> None:
    """A server that ignores ``server/discover`` for good is neither busy nor in use because of it."""
    server = peer(tmp_path, era="legacy", opening={"server/discover": "silent"})
    states = Seen()
    with mcpsync.connect(server.command, timeouts=Timeouts(idle_disconnect=0.2), on_state=states) as client:
        assert client.protocol_version == "2025-11-25"
        states.wait_for("dormant", seconds=2)
