"""One of the Python servers beside this file, over Streamable HTTP on 127.0.0.1.

``http_server.py PEER [--port N] [--stateless] [--json]``; it prints its URL when it listens. Beside ``/mcp`` there is
``GET /counts``: how often each method came (``requests``) and how often ``tally`` ran for each mark (``executed``).
"""

from __future__ import annotations

import argparse
import collections
import importlib
import json
import socket
from typing import Any

import uvicorn


class Counting:
    """An ASGI application before another: it counts the methods of the requests and tells them."""

    def __init__(self, app: Any, executed: collections.Counter[str]) -> None:
        self._app = app
        self._executed = executed
        self._requests: collections.Counter[str] = collections.Counter()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"] == "/counts":
            body = json.dumps({"requests": self._requests, "executed": self._executed}).encode()
            headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body})
        elif scope["method"] != "POST":
            self._requests[scope["method"]] += 1
            await self._app(scope, receive, send)
        else:
            await self._app(scope, await self._counted(receive), send)

    async def _counted(self, receive: Any) -> Any:
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        self._requests[str(json.loads(body).get("method", "answer"))] += 1
        whole = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Any:
            return whole.pop() if whole else await receive()

        return again


def app_of(peer: str, stateless: bool, as_json: bool, executed: collections.Counter[str]) -> Any:
    """The ASGI application of a peer, with the tool ``tally`` beside its own."""
    server = importlib.import_module("%s_server" % peer).server

    def tally(mark: str) -> int:
        """Count the calls with that mark."""
        executed[mark] += 1
        return executed[mark]

    server.tool()(tally)
    if peer == "mcp1":
        server.settings.stateless_http = stateless
        server.settings.json_response = as_json
        return server.streamable_http_app()
    if peer == "mcp2":
        return server.streamable_http_app(json_response=as_json, stateless_http=stateless)
    return server.http_app(json_response=as_json, stateless_http=stateless)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("peer")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--stateless", action="store_true")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    executed: collections.Counter[str] = collections.Counter()
    app = Counting(app_of(asked.peer, asked.stateless, asked.json, executed), executed)
    # The protocol is named because asyncio turns Nagle's algorithm off only where it is: 40 ms a call.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", asked.port))
    listening.listen(128)
    print("http://127.0.0.1:%d/mcp" % listening.getsockname()[1], flush=True)
    # Five seconds are uvicorn's own: how long it keeps an idle connection.
    config = uvicorn.Config(app, log_level="warning", lifespan="on", timeout_keep_alive=5, timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
