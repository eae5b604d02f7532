"""FAULTS.md F5, F6: deadlines cost nothing while they are not due, and hold when they are; idleness costs nothing."""

from __future__ import annotations

import gc
import threading
import time
import tracemalloc
from contextlib import ExitStack
from pathlib import Path

import pytest

import mcpsync
from mcpsync import RequestTimeout, Timeouts
from tests.faults.watch import Seen, sleeps, took
from tests.peers.scripted import peer

ERAS = ["legacy", "modern"]


def _many_calls(tmp_path: Path, count: int) -> None:
    server = peer(tmp_path, era="legacy")
    with mcpsync.connect(server.command, timeouts=Timeouts(call=120)) as client:
        for _ in range(200):
            client.call_tool("echo")
        gc.collect()
        tracemalloc.start()
        before, woken = tracemalloc.get_traced_memory()[0], sum(sleeps("watchdog").values())
        for _ in range(count):
            client.call_tool("echo")
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert grown < 64 * 1024
        # one stale wake-up for each 120 s that it ran is allowed
        assert sum(sleeps("watchdog").values()) - woken <= 1


@pytest.mark.alone
@pytest.mark.timed
@pytest.mark.unrecorded  # what is kept for the schema check would count
def test_f5_twenty_thousand_calls_with_a_long_timeout(tmp_path: Path) -> None:
    _many_calls(tmp_path, 20_000)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_f5_a_million_calls_with_a_long_timeout(tmp_path: Path) -> None:
    server = peer(tmp_path, era="legacy", lifetime=3_600)
    with mcpsync.connect(server.command, timeouts=Timeouts(call=120)) as client:
        for _ in range(1_000):
            client.call_tool("echo")
        gc.collect()
        before, woken, began = _resident(), sum(sleeps("watchdog").values()), time.monotonic()
        for _ in range(1_000_000):
            client.call_tool("echo")
        assert _resident() - before < 4 * 1024 * 1024
        allowed = (time.monotonic() - began) / 120 + 2
        assert sum(sleeps("watchdog").values()) - woken <= allowed


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.timed
@pytest.mark.unrecorded  # what is kept for the schema check would count
def test_f5_many_timeouts_of_different_lengths_leave_nothing(tmp_path: Path) -> None:
    server = peer(tmp_path, era="legacy")
    with mcpsync.connect(server.command) as client:

        def calls(count: int) -> None:
            for number in range(count):
                client.call_tool("echo", timeout=100 + number / 1_000)
                client.call_tool("echo", timeout=Timeouts(idle=100 + number / 1_000, total=500))

        calls(300)
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        calls(1_000)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert grown < 64 * 1024


@pytest.mark.timed
def test_f5_an_idle_connection_wakes_nobody(tmp_path: Path) -> None:
    """Ten seconds after the last armed deadline there has been no wake-up of any thread of ours, at all."""
    with ExitStack() as stack:
        for era in ERAS:
            (tmp_path / era).mkdir()
            server = peer(tmp_path / era, era=era)
            client = stack.enter_context(mcpsync.connect(server.command, timeouts=Timeouts(call=0.5)))
            for _ in range(20):
                client.call_tool("echo")
        threading.Event().wait(0.7)  # the last deadline passes: the one stale wake-up
        before = sleeps("mcpsync-")
        assert len(before) == 2 * len(ERAS)
        threading.Event().wait(10)
        assert sleeps("mcpsync-") == before


@pytest.mark.timed
@pytest.mark.parametrize("era", ERAS)
def test_f6_progress_extends_an_idle_timeout(tmp_path: Path, era: str) -> None:
    server = peer(tmp_path, era=era)
    with mcpsync.connect(server.command) as client:
        with took() as ended, pytest.raises(RequestTimeout):
            client.call_tool(
                "endless_progress",
                {"every": 0.1},
                on_progress=lambda progress: None,
                timeout=Timeouts(idle=0.3, total=1.2),
            )
        assert 1.2 <= ended.seconds < 1.4
        server.wait_event("stopped")
        with took() as ended, pytest.raises(RequestTimeout, match=r"no sign of life within 0\.3 s"):
            client.call_tool("silent", timeout=Timeouts(idle=0.3))
        assert 0.3 <= ended.seconds < 0.5


@pytest.mark.timed
def test_f6_progress_does_not_extend_a_call_timeout(tmp_path: Path) -> None:
    server = peer(tmp_path)
    with mcpsync.connect(server.command) as client:
        with took() as ended, pytest.raises(RequestTimeout):
            client.call_tool("endless_progress", {"every": 0.05}, on_progress=lambda progress: None, timeout=0.5)
        assert 0.5 <= ended.seconds < 0.7


@pytest.mark.timed
def test_f6_progress_after_the_timeout_is_dropped(tmp_path: Path) -> None:
    server = peer(tmp_path)
    seen = Seen()
    with mcpsync.connect(server.command) as client:
        with pytest.raises(RequestTimeout):
            client.call_tool("endless_progress", {"every": 0.01}, on_progress=seen, timeout=0.3)
        server.wait_event("stopped")
        client.call_tool("echo")
        count = len(seen.items)
        assert count > 0
        client.call_tool("sleep", {"seconds": 0.2})
        assert len(seen.items) == count


@pytest.mark.timed
def test_f6_idle_extension_of_a_submitted_call(tmp_path: Path) -> None:
    server = peer(tmp_path)
    with mcpsync.connect(server.command) as client:
        call = client.submit(
            "endless_progress", {"every": 0.1}, on_progress=lambda progress: None, timeout=Timeouts(idle=0.4, total=1.0)
        )
        with took() as ended, pytest.raises(RequestTimeout):
            call.result(timeout=5)
        assert 0.9 <= ended.seconds < 1.3
