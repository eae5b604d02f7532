"""FAULTS.md B3, B5, B7, B8: the end comes in time, and nothing is left. The process tree's own tests show B15."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

import mcpsync
from mcpsync import ClientClosed, ConnectTimeout, Timeouts
from tests.faults.watch import took
from tests.peers.scripted import peer


@pytest.mark.timed
@pytest.mark.parametrize("protocol", ["auto", "legacy", "modern"])
@pytest.mark.parametrize("stubborn", [False, True])
def test_b3_child_never_answers(tmp_path: Path, protocol: str, stubborn: bool) -> None:
    server = peer(tmp_path, deaf=True, ignore_eof=stubborn, ignore_term=stubborn)
    with took() as refused, pytest.raises(ConnectTimeout, match="in time") as error:
        mcpsync.connect(server.command, name="mute", protocol=protocol, timeouts=Timeouts(connect=0.5))
    assert 0.5 <= refused.seconds < 1
    assert isinstance(error.value, TimeoutError)
    assert "mute" in str(error.value)
    assert server.alive() == []


@pytest.mark.timed
def test_b3_child_that_is_no_server_at_all() -> None:
    with took() as refused, pytest.raises(ConnectTimeout):
        mcpsync.connect(["sleep", "60"], timeouts=Timeouts(connect=0.5))
    assert refused.seconds < 1


@pytest.mark.timed
def test_b3_initialize_is_never_cancelled(tmp_path: Path) -> None:
    server = peer(tmp_path, era="legacy", opening={"initialize": "silent"})
    with pytest.raises(ConnectTimeout):
        mcpsync.connect(server.command, protocol="legacy", timeouts=Timeouts(connect=0.5))
    server.wait_ended()
    assert [message["method"] for message in server.received()] == ["initialize"]


@pytest.mark.timed
@pytest.mark.parametrize("calls", [0, 10])
def test_b5_close_while_the_reader_is_stuck_in_a_read(tmp_path: Path, calls: int) -> None:
    server = peer(tmp_path, ignore_eof=True, ignore_term=True)
    client = mcpsync.connect(server.command)
    pending = [client.submit("silent") for _ in range(calls)]
    server.wait_for("tools/call", calls)
    with took() as closed:
        client.close(timeout=1)
    assert closed.seconds < 1.5
    for future in pending:
        assert isinstance(future.exception(timeout=0), ClientClosed)
    assert server.alive() == []


@pytest.mark.timed
def test_b5_close_while_a_handler_of_the_user_blocks(tmp_path: Path) -> None:
    begun, release = threading.Event(), threading.Event()

    def block(request: object) -> bool:
        begun.set()
        return release.wait(30)

    server = peer(tmp_path, era="legacy")
    client = mcpsync.connect(server.command, elicitation=block)
    pending = client.submit(
        "ask", {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object"}}}
    )
    assert begun.wait(10)
    with took() as closed:
        client.close(timeout=1)
    release.set()
    assert closed.seconds < 1.5
    assert isinstance(pending.exception(timeout=0), ClientClosed)


@pytest.mark.timed
def test_b7_child_ignores_eof_and_sigterm(tmp_path: Path) -> None:
    server = peer(tmp_path, ignore_eof=True, ignore_term=True)
    client = mcpsync.connect(server.command, timeouts=Timeouts(close=4))
    with took() as closed:
        client.close()
    assert closed.seconds < 4.5
    kinds = [event["kind"] for event in server.events() if event["kind"] in ("eof", "signal")]
    assert kinds == ["eof", "signal"]
    assert server.events("signal")[0]["number"] == signal.SIGTERM
    assert server.alive() == []


@pytest.mark.timed
def test_b7_child_that_heeds_eof_is_not_signalled(tmp_path: Path) -> None:
    server = peer(tmp_path, ignore_term=True)
    client = mcpsync.connect(server.command)
    with took() as closed:
        client.close()
    assert closed.seconds < 1
    assert [event["kind"] for event in server.events() if event["kind"] in ("eof", "signal")] == ["eof"]


@pytest.mark.parametrize("stubborn", [False, True])
@pytest.mark.parametrize("grandchild", ["fork", "setsid"])
def test_b8_grandchild_ends_with_the_server(tmp_path: Path, grandchild: str, stubborn: bool) -> None:
    server = peer(tmp_path, grandchild=grandchild, stubborn=stubborn)
    with mcpsync.connect(server.command, timeouts=Timeouts(close=2)) as client:
        assert client.call_tool("echo", {"text": "hello"}).text == "hello"
    assert server.alive() == []


@pytest.mark.parametrize("stubborn", [False, True])
def test_b8_shell_wrapper_and_a_server_that_ignores_eof(tmp_path: Path, stubborn: bool) -> None:
    server = peer(tmp_path, ignore_eof=True, ignore_term=stubborn)
    with mcpsync.connect(server.through_sh, timeouts=Timeouts(close=2)) as client:
        client.call_tool("echo")
    assert server.alive() == []


def test_b8_wrapper_dies_and_its_server_is_swept(tmp_path: Path) -> None:
    server = peer(tmp_path, ignore_eof=True)
    with mcpsync.connect(server.through_sh, timeouts=Timeouts(close=2)) as client:
        client.call_tool("echo")
        (started,) = server.events("started")
        os.kill(started["parent"], signal.SIGKILL)
        with pytest.raises(mcpsync.ProcessExited):
            client.call_tool("silent")
    assert server.alive() == []


def test_b8_wrapper_that_dies_at_once(tmp_path: Path) -> None:
    server = peer(tmp_path, ignore_eof=True)
    with pytest.raises(mcpsync.ProcessExited):
        mcpsync.connect(server.orphaned_by_sh, timeouts=Timeouts(close=2))
    assert server.alive() == []


@pytest.mark.timed
def test_b8_server_that_restarts_itself_under_the_probe_leaves_one_life(tmp_path: Path) -> None:
    server = peer(tmp_path, era="legacy", opening={"server/discover": {"exit": 1}}, grandchild="setsid", stubborn=True)
    with mcpsync.connect(server.command, timeouts=Timeouts(close=2)) as client:
        assert client.protocol_version == "2025-11-25"
    assert len(server.pids()) == 4
    assert server.alive() == []
