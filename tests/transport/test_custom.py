"""The transport of the docs that a program might bring: run as it stands there, against real servers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Callable, Iterator, Tuple

import pytest

import mcpsync
from mcpsync import Backoff, ClientClosed, ConnectFailed, ConnectionLost, Overloaded, RequestTimeout
from tests.faults.watch import took
from tests.peers.scripted import Peer, peer
from tests.peers.sockets import LineServer, echoes_in_a_child, scripted_behind

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "custom_transport.py"


@pytest.fixture(scope="module")
def tcp() -> Any:
    spec = spec_from_file_location("custom_transport", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Tcp


@contextmanager
def served(tmp_path: Path, tcp: Any, **options: Any) -> Iterator[Tuple[LineServer, Peer, Callable[[], Any]]]:
    server = peer(tmp_path, **options)
    with LineServer(scripted_behind(server.command), tcp=True) as at:
        address = at.address
        yield at, server, lambda: tcp(*address)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_client_over_it(tmp_path: Path, tcp: Any, era: str) -> None:
    with served(tmp_path, tcp, era=era) as (_, server, factory):
        with mcpsync.connect(factory, name="tcp", elicitation=lambda request: True) as client:
            assert client.call_tool("echo", {"text": "é" * 300_000}).text == "é" * 300_000
            calls = [client.submit("jumbled", {"text": str(number)}) for number in range(50)]
            assert [call.result(10).text for call in calls] == [str(number) for number in range(50)]
            with pytest.raises(RequestTimeout):
                client.call_tool("silent", timeout=0.1)
            server.wait_for("notifications/cancelled")
            waiting = client.submit("silent")
            client.close()
            assert isinstance(waiting.exception(5), ClientClosed)
        assert server.events("torn") == []
        server.wait_ended()


def test_a_lost_connection_is_made_anew(tmp_path: Path, tcp: Any) -> None:
    with served(tmp_path, tcp) as (at, _, factory), mcpsync.connect(factory, backoff=Backoff((60.0,))) as client:
        with pytest.raises(ConnectionLost):
            client.call_tool("die")
        client.reconnect()
        assert client.call_tool("echo", {"text": "on"}).text == "on"
        assert (at.accepted, client.sessions) == (2, 2)


def test_a_forked_child_connects_anew(tmp_path: Path, tcp: Any) -> None:
    with served(tmp_path, tcp) as (at, _, factory), mcpsync.connect(factory) as client:
        assert echoes_in_a_child(client)
        assert client.call_tool("echo", {"text": "parent"}).text == "parent"
        assert (client.sessions, at.accepted) == (1, 2)


def test_a_server_that_does_not_read_holds_nobody(tmp_path: Path, tcp: Any) -> None:
    with served(tmp_path, tcp) as (_, _server, factory), mcpsync.connect(factory, backoff=Backoff((60.0,))) as client:
        client.call_tool("stop_reading", {"seconds": 1.0})
        with took() as measured, pytest.raises((RequestTimeout, Overloaded, ConnectionLost)):
            client.call_tool("length", {"text": "x" * 20_000_000}, timeout=0.3)
        assert measured.seconds < 5


def test_nobody_listens(tcp: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    with pytest.raises(ConnectFailed, match="cannot connect to"):
        mcpsync.connect(lambda: tcp(*address))


def test_as_a_program(tmp_path: Path, tcp: Any) -> None:
    with served(tmp_path, tcp) as (at, _, _factory):
        host, port = at.address
        environ = {**os.environ, "PYTHONPATH": str(EXAMPLE.parents[2])}
        command = [sys.executable, "-W", "error", str(EXAMPLE), host, str(port)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=30, env=environ, check=True)
        assert "echo" in ended.stdout.splitlines() and ended.stderr == ""


def test_it_is_short_enough_to_be_read() -> None:
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    start, end = lines.index("class Tcp:"), lines.index('if __name__ == "__main__":')
    assert len([line for line in lines[start:end] if line.strip()]) <= 52
