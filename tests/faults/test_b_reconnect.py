"""FAULTS.md B9, B12: a lost connection comes back by itself, in a bounded series, one process at a time."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any, List

import pytest

import mcpsync
from mcpsync import Backoff, ConnectionLost, McpError, ProcessExited, Timeouts
from tests.faults.watch import Seen, open_descriptors, took
from tests.peers.scripted import Peer, peer

FIVE_SOON = Backoff((0.05,) * 5)


def every_second_fails(server: Any, request: Any, **params: Any) -> Any:
    """``initialize``: the process dies of it, or answers, in turn."""
    import os

    with open(os.path.join(os.path.dirname(server._bell), "turns"), "ab+") as turns:
        turns.seek(0)
        turn = len(turns.read())
        turns.write(b".")
    if turn % 2:
        os._exit(9)
    server._session = True
    return server.initialized(params)


def dies_after_the_handshake(server: Any, request: Any, **params: Any) -> None:
    """``initialize``: answered from the second life on, and the process is gone a moment later."""
    import os

    mark = os.path.join(os.path.dirname(server._bell), "lived")
    server.result(request, server.initialized(params))
    if os.path.exists(mark):
        server.after(0.02, lambda: os._exit(1))
    else:
        open(mark, "w").close()


def _kill(server: Peer) -> None:
    os.kill(server.alive()[-1], signal.SIGKILL)


def test_b9_fifty_reconnects_half_of_them_failing(tmp_path: Path) -> None:
    server = peer(tmp_path, handlers={"initialize": every_second_fails})
    most: List[int] = []
    with mcpsync.connect(server.command, protocol="legacy") as client:
        client.call_tool("echo")
        threads, descriptors = threading.active_count(), open_descriptors()
        failed = 0
        for _ in range(50):
            try:
                client.reconnect()
                client.call_tool("echo")
            except McpError as error:
                assert isinstance(error, ProcessExited) and error.exit_code == 9
                failed += 1
            most.append(len(server.alive()))
        assert failed == 25
        assert max(most) <= 1
        assert len(server.pids()) == 51
        # one more thread may be at work or idle for each of the pools
        assert threading.active_count() <= threads + 2
        assert open_descriptors() <= descriptors
    assert server.alive() == []


def test_b9_at_most_one_child_when_the_old_one_is_slow_to_end(tmp_path: Path) -> None:
    def linger(server: Any, request: Any) -> str:
        """Takes its time at the end, and looks around for others at the start."""
        return "lingers"

    server = peer(tmp_path, linger, ignore_eof=True)
    with mcpsync.connect(server.command, timeouts=Timeouts(close=1)) as client:
        for _ in range(3):
            client.call_tool("linger")
            client.reconnect()
            client.call_tool("echo")
            assert len(server.alive()) == 1


@pytest.mark.timed
def test_b12_server_killed_between_calls(tmp_path: Path) -> None:
    server = peer(tmp_path)
    states = Seen()
    with mcpsync.connect(server.command, on_state=states) as client:
        client.call_tool("echo")
        _kill(server)
        states.wait_for("waiting", seconds=1)
        assert client.state == "waiting"
        with took() as failed, pytest.raises(ConnectionLost, match="next attempt to connect in") as error:
            client.call_tool("echo")
        assert failed.seconds < 0.1
        assert error.value.next_attempt is not None and 0 < error.value.next_attempt <= 1
        assert not error.value.maybe_executed
        assert "SIGKILL" in str(error.value)
        assert isinstance(client.last_error, ConnectionLost)
        states.wait_for("ready", 2)
        assert client.call_tool("echo", {"text": "back"}).text == "back"
        assert client.last_error is None
        assert client.sessions == 2
    assert states.items == ["connecting", "ready", "waiting", "connecting", "ready", "closed"]


def test_b12_down_after_five_failures_and_the_next_call_starts_a_new_series(tmp_path: Path) -> None:
    server = peer(tmp_path)
    states = Seen()
    with mcpsync.connect(server.command, on_state=states, backoff=FIVE_SOON, protocol="modern") as client:
        broken = Path(server.command[-1]) / "config.json"
        good = broken.read_text()
        broken.write_text(good.replace("{", '{"exit_at_start": 2, ', 1))
        _kill(server)
        states.wait_for("down")
        assert client.state == "down"
        assert states.items == ["connecting", "ready"] + ["waiting", "connecting"] * 5 + ["down"]
        assert isinstance(client.last_error, ProcessExited) and client.last_error.exit_code == 2
        with pytest.raises(ProcessExited):
            client.call_tool("echo")  # an attempt of its own: the first of a new series
        states.wait_for("down", 2)
        assert states.items[13:] == ["connecting"] + ["waiting", "connecting"] * 5 + ["down"]
        broken.write_text(good)
        assert client.call_tool("echo", {"text": "back"}).text == "back"
        assert client.state == "ready"
    assert server.alive() == []


def test_b12_reconnect_ends_the_wait_and_starts_a_new_series(tmp_path: Path) -> None:
    server = peer(tmp_path)
    states = Seen()
    with mcpsync.connect(server.command, on_state=states, backoff=Backoff((60.0,))) as client:
        _kill(server)
        states.wait_for("waiting")
        client.reconnect()
        assert client.call_tool("echo", {"text": "back"}).text == "back"
        _kill(server)
        states.wait_for("waiting", 2)
        with pytest.raises(ConnectionLost, match="next attempt"):
            client.call_tool("echo")


def test_b12_a_server_that_dies_right_after_each_start_is_given_up(tmp_path: Path) -> None:
    server = peer(tmp_path, era="legacy", handlers={"initialize": dies_after_the_handshake})
    states = Seen()
    five = Backoff((0.3,) * 5)
    with mcpsync.connect(server.command, on_state=states, backoff=five, protocol="legacy") as client:
        client.call_tool("echo")
        _kill(server)
        states.wait_for("down")
        assert len(server.pids()) == 6
        assert isinstance(client.last_error, ProcessExited)


@pytest.mark.timed
def test_b12_a_call_that_finds_it_down_waits_within_its_own_deadline(tmp_path: Path) -> None:
    server = peer(tmp_path)
    states = Seen()
    with mcpsync.connect(server.command, on_state=states, backoff=Backoff(()), protocol="modern") as client:
        config = Path(server.command[-1]) / "config.json"
        config.write_text(config.read_text().replace("{", '{"deaf": true, ', 1))
        _kill(server)
        states.wait_for("down")
        with took() as refused, pytest.raises(TimeoutError):
            client.call_tool("echo", timeout=0.5)
        assert refused.seconds < 1


@pytest.mark.timed
def test_b12_the_time_to_connect_is_the_calls_time(tmp_path: Path) -> None:
    server = peer(tmp_path, era="modern", opening={"server/discover": {"delay": 0.6}})
    with mcpsync.Client(server.command, protocol="modern") as client:
        client.close()
    client = mcpsync.Client(server.command, protocol="modern")
    try:
        with took() as late, pytest.raises(mcpsync.RequestTimeout):
            client.call_tool("silent", timeout=1)
        assert 1 <= late.seconds < 1.25
    finally:
        client.close()


def test_b12_many_callers_share_one_attempt(tmp_path: Path) -> None:
    server = peer(tmp_path, exit_at_start=2, stderr=b"no\n")
    client = mcpsync.Client(server.command, protocol="modern")
    gate = threading.Barrier(8)
    errors = Seen()

    def call() -> None:
        gate.wait()
        try:
            client.call_tool("echo")
        except McpError as error:
            errors(error)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close()
    assert len(errors.items) == 8
    assert len({id(error) for error in errors.items}) == 8
    assert all("no" in str(error) for error in errors.items)
    assert len(server.pids()) < 8


def test_b12_log_level_and_subscriptions_are_restored(tmp_path: Path) -> None:
    server = peer(tmp_path, era="legacy")
    states = Seen()
    with mcpsync.connect(server.command, on_state=states, log_level="warning", backoff=FIVE_SOON) as client:
        client.set_logging_level("error")
        client.subscribe_resource("file:///a")
        client.subscribe_resource("file:///b")
        client.unsubscribe_resource("file:///a")
        _kill(server)
        states.wait_for("ready", 2)
        server.wait_for("resources/subscribe", 3)
        client.call_tool("echo")
        second = server.events("started")[1]["pid"]
        restored = [event["data"] for event in server.events("message") if event["pid"] == second]
        (level,) = [each for each in restored if each.get("method") == "logging/setLevel"]
        (subscribed,) = [each for each in restored if each.get("method") == "resources/subscribe"]
        assert level["params"] == {"level": "error"}
        assert subscribed["params"] == {"uri": "file:///b"}
    assert [each["params"]["uri"] for each in server.received("resources/unsubscribe")] == ["file:///a"]


def test_b12_the_log_level_travels_with_each_request_after_a_reconnect(tmp_path: Path) -> None:
    server = peer(tmp_path, era="modern")
    with mcpsync.connect(server.command, protocol="modern") as client:
        client.set_logging_level("error")
        client.reconnect()
        client.call_tool("echo")
        (call,) = server.received("tools/call")
        assert call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] == "error"
        assert server.received("logging/setLevel") == []


def test_b12_a_server_that_asks_while_the_session_is_restored(tmp_path: Path) -> None:
    """Its question must not wait behind what waits for its answer."""

    def level_needs_roots(server: Any, request: Any, level: str) -> None:
        server.ask("roots/list", {}, lambda answer: server.result(request, {}), "before-the-level")

    def ping_first(server: Any, request: Any, **params: Any) -> None:
        def answered(answer: Any) -> None:
            server.result(request, server.initialized(params))

        server.ask("ping", {}, answered, "before-the-session")

    server = peer(tmp_path, era="legacy", handlers={"logging/setLevel": level_needs_roots, "initialize": ping_first})
    states = Seen()
    with mcpsync.connect(
        server.command, protocol="legacy", roots=["/"], log_level="info", on_state=states, backoff=FIVE_SOON
    ) as client:
        began = time.monotonic()
        _kill(server)
        states.wait_for("ready", 2)
        server.wait_for("logging/setLevel", 2)
        assert client.call_tool("echo", {"text": "back"}).text == "back"
        assert time.monotonic() - began < 10
