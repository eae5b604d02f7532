"""Servers in this process, as a host takes them: quick, and as many as one likes."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Optional

from mcpsync.transport.memory import ServerEnd, StreamServer

Answer = Callable[[Dict[str, Any]], Any]


def tool(name: str, **more: Any) -> Dict[str, Any]:
    """A tool as a server lists it."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {"name": name, "description": "Does %s." % name, "inputSchema": schema, **more}


def inside(
    tools: Any = ("echo",), answers: Optional[Dict[str, Answer]] = None, capabilities: Optional[Dict[str, Any]] = None
) -> StreamServer:
    """A server of the legacy era with these tools, each of which answers with its name and arguments.

    :param tools: names, or definitions
    :param answers: by method, what else it answers: a function of the params gives the result, or raises KeyError for
        ``-32601``
    """
    listed = [tool(each) if isinstance(each, str) else each for each in tools]
    known: Dict[str, Answer] = {
        "initialize": lambda params: {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}, **(capabilities or {})},
            "serverInfo": {"name": "inside", "version": "1"},
        },
        "ping": lambda params: {},
        "tools/list": lambda params: {"tools": listed},
        "tools/call": lambda params: {"content": [{"type": "text", "text": json.dumps(params, sort_keys=True)}]},
        **(answers or {}),
    }

    def serve(client: ServerEnd) -> None:
        for data in client:
            message = json.loads(data)
            if "id" not in message:
                continue
            answer: Dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
            try:
                answer["result"] = known[message["method"]](message.get("params") or {})
            except KeyError:
                answer["error"] = {"code": -32601, "message": "no such method"}
            client.send(json.dumps(answer).encode())

    return StreamServer(serve, server_name="inside")


def resources(count: int, **more: Any) -> List[Dict[str, Any]]:
    """So many resources as a server lists them."""
    return [{"uri": "mem://%d" % index, "name": "resource %d" % index, **more} for index in range(count)]
