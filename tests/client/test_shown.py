"""What of a server, and of the user's options, reaches logs and reprs."""

from __future__ import annotations

import json
import logging
from typing import Any, Dict

import pytest

import mcpsync
from mcpsync.cli.arguments import parse
from mcpsync.client.options import Options
from mcpsync.transport.command import Launch
from mcpsync.transport.masking import Mask
from mcpsync.transport.memory import ServerEnd, StreamServer
from mcpsync.transport.stdio_server import Prepared

SECRET = "hunter2hunter2"


def logging_server(*messages: Dict[str, Any]) -> StreamServer:
    """Logs these once it is asked for a sign of life, and answers after that."""

    def serve(client: ServerEnd) -> None:
        for data in client:
            message = json.loads(data)
            result: Dict[str, Any] = {}
            if message.get("method") == "initialize":
                info = {"name": "test", "version": "1"}
                result = {"protocolVersion": "2025-11-25", "capabilities": {"logging": {}}, "serverInfo": info}
            elif message.get("method") == "ping":
                for params in messages:
                    raw = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
                    client.send(raw.replace('"DEEP"', "[" * 400 + "]" * 400).encode())
            if "id" in message:
                client.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())

    return StreamServer(serve, server_name="peer")


def test_what_a_server_logs_is_bounded_whatever_it_is(caplog: pytest.LogCaptureFixture) -> None:
    server = logging_server(
        {"level": "warning", "data": {"text": "x" * 1_000_000}},
        {"level": ["warning"], "data": "DEEP"},
        {"level": "error", "logger": "disk", "data": "full"},
    )
    caplog.set_level(logging.DEBUG, "mcpsync.server.peer")
    with mcpsync.connect(server, name="peer", protocol="legacy") as client:
        client.ping()
    told = [
        (record.levelname, record.getMessage()) for record in caplog.records if record.name == "mcpsync.server.peer"
    ]
    assert [level for level, _ in told] == ["WARNING", "INFO", "ERROR"]
    assert told[0][1].startswith('log: {"text":"xxx') and len(told[0][1]) < 2_100
    assert told[2][1] == "disk: full"


def test_no_repr_shows_a_secret() -> None:
    options = Options(env={"TOKEN": SECRET}, headers={"Authorization": SECRET}, page_limit=3)
    prepared = Prepared(Launch(["server", SECRET], "server"), {"TOKEN": SECRET}, None, Mask({}))
    invocation = parse(["tools", "--env", "TOKEN=" + SECRET, "--", "server"])
    for shown in map(repr, (options, prepared, invocation)):
        assert SECRET not in shown
    assert repr(options) == "Options(page_limit, headers, env)"
