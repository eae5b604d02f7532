"""What a server says of the secrets that it was given is shown without them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import mcpsync
from mcpsync import HttpError, InvalidMessage, McpError, RpcError
from tests.peers.http import Exchange, HttpPeer
from tests.peers.http_servers import Legacy, Modern
from tests.peers.scripted import peer

SECRET = "sekret-value-1"


def assert_hidden(error: McpError) -> None:
    for shown in (str(error), repr(error), error.message, str(pickle.loads(pickle.dumps(error)))):
        assert SECRET not in shown
    assert "***" in str(error)


def refuse(server: Any, request: Any) -> None:
    import json
    import os

    error = {"code": -32000, "message": "the key %s is not accepted" % os.environ["API_KEY"]}
    server.write((json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}) + "\n").encode())


def mumble(server: Any, request: Any) -> None:
    import os

    head = '{"jsonrpc":"2.0","id":%d,"result":{"key":"%s"' % (request["id"], os.environ["API_KEY"])
    server.write(head.encode() + b"\n")


def test_an_error_of_a_server_over_stdio(tmp_path: Path) -> None:
    server = peer(tmp_path, refuse, mumble)
    with mcpsync.connect(server.command, env={"API_KEY": SECRET}) as client:
        with pytest.raises(RpcError, match="is not accepted") as refused:
            client.call_tool("refuse")
        with pytest.raises(InvalidMessage) as broken:
            client.call_tool("mumble")
        submitted = client.submit("refuse").exception(10)
    for error in (refused.value, broken.value, submitted):
        assert isinstance(error, McpError)
        assert_hidden(error)


def said_back(exchange: Exchange, message: Any) -> None:
    given = exchange.request.headers["authorization"]
    if message["params"]["name"] == "http":
        exchange.respond(500, "cannot deal with " + given, "text/plain")
    elif message["params"]["name"] == "text":
        exchange.respond(200, "cannot deal with " + given, "text/plain")
    else:
        error = {"code": -32000, "message": "cannot deal with " + given}
        exchange.respond(200, {"jsonrpc": "2.0", "id": message["id"], "error": error})


@pytest.mark.parametrize("kind", ["http", "text", "rpc"])
@pytest.mark.parametrize("how", ["mapping", "function"])
@pytest.mark.parametrize("server", [Legacy, Modern])
def test_an_error_of_a_server_over_http(server: Any, how: str, kind: str) -> None:
    headers = {"Authorization": "Bearer " + SECRET}
    given: Any = headers if how == "mapping" else lambda: headers
    with HttpPeer(server(said_back)) as served, mcpsync.connect(served.url, headers=given) as client:
        with pytest.raises((HttpError, RpcError), match="cannot deal with") as error:
            client.call_tool(kind)
        assert_hidden(error.value)
        assert SECRET not in str(getattr(error.value, "excerpt", ""))
