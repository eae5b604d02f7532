"""FAULTS.md B1, B2, B13: the server dies, and everybody learns it at once, with the reason."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from pathlib import Path
from typing import Any, Dict

import pytest

import mcpsync
from mcpsync import ConnectFailed, ConnectionLost, ProcessExited
from tests.faults.watch import took, wait_until_full
from tests.peers.scripted import peer

ERAS = ["legacy", "modern"]


@pytest.mark.timed
@pytest.mark.parametrize("era", ERAS)
def test_b1_child_kills_itself_with_three_calls_pending(tmp_path: Path, era: str) -> None:
    server = peer(tmp_path, era=era)
    with mcpsync.connect(server.command, name="mortal") as client:
        pending = [client.submit("silent") for _ in range(2)]
        server.wait_for("tools/call", 2)
        with took() as lost, pytest.raises(ProcessExited) as killed:
            client.call_tool("kill", {"name": "SIGKILL", "stderr": "out of luck\n"})
        errors = [killed.value] + [future.exception(timeout=1) for future in pending]
        assert lost.seconds < 1
        for error in errors:
            assert isinstance(error, ProcessExited)
            assert (error.exit_code, error.stderr_tail) == (-9, "out of luck")
            assert error.maybe_executed
            assert (error.server, error.method) == ("mortal", "tools/call")
            assert "SIGKILL" in str(error) and "out of luck" in str(error)
        assert len({error.request_id for error in errors if isinstance(error, ProcessExited)}) == 3
        copied = pickle.loads(pickle.dumps(errors[0]))
        assert (str(copied), copied.exit_code) == (str(errors[0]), -9)


@pytest.mark.timed
def test_b1_exit_code_of_a_child_that_exits_with_a_call_pending(tmp_path: Path) -> None:
    server = peer(tmp_path)
    with mcpsync.connect(server.command) as client:
        with took() as lost, pytest.raises(ProcessExited) as error:
            client.call_tool("die", {"code": 7, "stderr": "disk full\nbye\n"})
        assert lost.seconds < 1
        assert (error.value.exit_code, error.value.stderr_tail) == (7, "disk full\nbye")


def test_b1_answer_written_right_before_the_death_is_delivered(tmp_path: Path) -> None:
    server = peer(tmp_path)
    with mcpsync.connect(server.command) as client:
        for _ in range(10):
            assert client.call_tool("die", {"answer": True}).text == "dying"
            client.reconnect()


def test_b1_call_whose_frame_never_began_to_travel_was_not_executed(tmp_path: Path) -> None:
    server = peer(tmp_path)
    with mcpsync.connect(server.command) as client:
        client.call_tool("stop_reading")
        begun = client.submit("length", {"text": "x" * 1_000_000})
        behind_it = client.submit("length", {"text": "y"})
        (pid,) = server.pids()
        wait_until_full(pid)
        os.kill(pid, signal.SIGKILL)
        first, second = begun.exception(timeout=5), behind_it.exception(timeout=5)
        assert isinstance(first, ProcessExited) and first.maybe_executed
        assert isinstance(second, ProcessExited) and not second.maybe_executed


def test_b1_blocking_call_whose_frame_never_began_to_travel_was_not_executed(tmp_path: Path) -> None:
    server = peer(tmp_path)
    with mcpsync.connect(server.command) as client:
        client.call_tool("stop_reading")
        begun = client.submit("length", {"text": "x" * 1_000_000})
        (pid,) = server.pids()
        wait_until_full(pid)
        killer = threading.Timer(0.3, os.kill, (pid, signal.SIGKILL))
        killer.start()
        with pytest.raises(ProcessExited) as error:
            client.call_tool("length", {"text": "y"})
        killer.join()
        assert not error.value.maybe_executed and error.value.next_attempt is not None
        first = begun.exception(timeout=5)
        assert isinstance(first, ProcessExited) and first.maybe_executed


@pytest.mark.timed
@pytest.mark.parametrize("protocol", ["auto", "legacy", "modern"])
def test_b2_reason_on_stderr_and_exit_2_at_start(tmp_path: Path, protocol: str) -> None:
    server = peer(tmp_path, stderr=b"cannot read config.toml: no such file\n", exit_at_start=2)
    with took() as refused, pytest.raises(ProcessExited) as error:
        mcpsync.connect(server.command, name="broken", protocol=protocol)
    assert refused.seconds < 1
    assert isinstance(error.value, ConnectFailed)
    assert error.value.exit_code == 2
    assert "cannot read config.toml: no such file" in str(error.value)
    assert "broken" in str(error.value)
    server.wait_ended()


@pytest.mark.timed
def test_b2_reason_on_stdout(tmp_path: Path) -> None:
    server = peer(tmp_path, banner=b"Usage: server --port N\n", exit_at_start=64)
    with took() as refused, pytest.raises(ProcessExited, match="Usage: server --port N") as error:
        mcpsync.connect(server.command)
    assert refused.seconds < 1
    assert error.value.exit_code == 64


@pytest.mark.timed
def test_b2_dies_of_each_message_of_the_handshake(tmp_path: Path) -> None:
    opening: Dict[str, Any] = {"server/discover": {"exit": 3}, "initialize": {"exit": 4}}
    server = peer(tmp_path, opening=opening)
    with took() as refused, pytest.raises(ProcessExited) as error:
        mcpsync.connect(server.command)
    assert refused.seconds < 2
    assert error.value.exit_code == 4
    assert len(server.pids()) == 2
    server.wait_ended()


@pytest.mark.timed
@pytest.mark.parametrize("grandchild", ["fork", "setsid", "double-fork"])
def test_b13_server_dies_while_a_grandchild_keeps_its_pipes(tmp_path: Path, grandchild: str) -> None:
    server = peer(tmp_path, grandchild=grandchild)
    with mcpsync.connect(server.command) as client:
        pending = client.submit("silent")
        with took() as lost, pytest.raises(ProcessExited) as error:
            client.call_tool("die", {"code": 5, "stderr": "gone\n"})
        assert isinstance(pending.exception(timeout=1), ProcessExited)
        assert lost.seconds < 1
        assert (error.value.exit_code, error.value.stderr_tail) == (5, "gone")
    server.wait_ended()


@pytest.mark.timed
def test_b13_server_closes_its_output_and_lives_on(tmp_path: Path) -> None:
    server = peer(tmp_path, ignore_eof=True)
    with mcpsync.connect(server.command) as client:
        assert client.call_tool("close_stdout").text == "the last word"
        with took() as lost, pytest.raises(ConnectionLost, match="closed its standard output"):
            client.call_tool("silent")
        assert lost.seconds < 2
