"""A call in the hands of an extension ends when its time is over, whatever the extension makes of that."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict

import pytest

import mcpsync
from mcpsync import Client, Extension, RequestTimeout, Timeouts
from mcpsync.transport.memory import ServerEnd, StreamServer

DISCOVERED = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}


def serve(client: ServerEnd) -> None:
    for data in client:
        message = json.loads(data)
        if "id" in message and message["method"] != "tools/list":
            result: Dict[str, Any] = {"resultType": "com.example/later"}
            if message["method"] == "server/discover":
                result = {"resultType": "complete", **DISCOVERED}
            client.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())


@pytest.mark.parametrize(
    "ask", [lambda client: client.call_tool("t"), lambda client: client.submit("t").result()], ids=["call", "submit"]
)
def test_a_timeout_that_is_swallowed_ends_the_call_all_the_same(ask: Callable[[Client], Any]) -> None:
    swallowed = []

    def swallows(result: Any, call: Any) -> Dict[str, Any]:
        try:
            call.request("tools/list")
        except RequestTimeout:
            swallowed.append(True)
        return {"content": []}

    later = Extension("com.example/later", {}, {"com.example/later": swallows})
    server = StreamServer(serve, server_name="peer")
    options: Dict[str, Any] = {"extensions": [later], "timeouts": Timeouts(call=0.1)}
    with mcpsync.connect(server, protocol="modern", **options) as client, pytest.raises(RequestTimeout):
        ask(client)
    assert swallowed == [True]
