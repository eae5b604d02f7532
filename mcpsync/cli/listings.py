"""Commands that ask every server that is meant: tools, resources, prompts, ping, info."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from mcpsync.cli.arguments import Invocation
from mcpsync.cli.exits import OK, code_of
from mcpsync.cli.output import Output
from mcpsync.cli.servers import Server, closed_after, find_servers, for_each
from mcpsync.errors import McpError, RpcError

__all__ = ["LISTINGS", "error_document", "run_listing"]


class Found(NamedTuple):
    """What one server answered.

    :ivar document: its members in the JSON document
    :ivar heading: the same for people, in a few words
    :ivar rows: and as a table
    """

    document: Dict[str, Any]
    heading: str
    rows: List[Sequence[str]]


def run_listing(invocation: Invocation, output: Output) -> int:
    """Ask each server, show what each said, and give the exit code of the first that failed."""
    ask = LISTINGS[invocation.command]
    servers = find_servers(invocation, output)
    with closed_after([server.client for server in servers if server.client is not None]):
        outcomes = for_each(servers, ask)
    documents: List[Dict[str, Any]] = []
    code = OK
    for server, outcome in zip(servers, outcomes):
        if isinstance(outcome, McpError):
            code = code or code_of(outcome)
            output.note(str(outcome))
            documents.append({"server": server.name, "error": error_document(outcome)})
        else:
            output.lines("%s: %s" % (server.name, outcome.heading))
            output.table(outcome.rows)
            documents.append({"server": server.name, **outcome.document})
    output.document({"servers": documents})
    return code


def error_document(error: BaseException) -> Dict[str, Any]:
    """An error in the JSON document."""
    document: Dict[str, Any] = {"type": type(error).__name__, "message": str(error), "exit_code": code_of(error)}
    if isinstance(error, RpcError):
        document.update(code=error.code, data=error.data)
    return document


def _tools(server: Server) -> Found:
    tools = [tool for tool in server.open().list_tools() if server.tools.allows(tool.name)]
    rows = [(tool.name + _signature(tool.input_schema), _first_line(tool.description, tool.title)) for tool in tools]
    return Found({"tools": [tool.to_wire() for tool in tools]}, _count(len(tools), "tool"), list(rows))


def _resources(server: Server) -> Found:
    client = server.open()
    resources, templates = client.list_resources(), client.list_resource_templates()
    rows = [(each.uri, each.name, each.mime_type or "", _first_line(each.description)) for each in resources]
    rows += [(each.uri_template, each.name, each.mime_type or "", _first_line(each.description)) for each in templates]
    document = {
        "resources": [each.to_wire() for each in resources],
        "resource_templates": [each.to_wire() for each in templates],
    }
    heading = "%s, %s" % (_count(len(resources), "resource"), _count(len(templates), "template"))
    return Found(document, heading, list(rows))


def _prompts(server: Server) -> Found:
    prompts = server.open().list_prompts()
    rows: List[Sequence[str]] = []
    for prompt in prompts:
        names = ["%s%s" % (each.name, "" if each.required else "?") for each in prompt.arguments or ()]
        rows.append(("%s(%s)" % (prompt.name, ", ".join(names)), _first_line(prompt.description, prompt.title)))
    return Found({"prompts": [prompt.to_wire() for prompt in prompts]}, _count(len(prompts), "prompt"), rows)


def _ping(server: Server) -> Found:
    client = server.open()
    began = time.perf_counter()
    client.ping()
    milliseconds = (time.perf_counter() - began) * 1_000
    return Found({"ms": round(milliseconds, 3)}, "answered in %.1f ms" % milliseconds, [])


def _info(server: Server) -> Found:
    began = time.perf_counter()
    client = server.open()
    milliseconds = (time.perf_counter() - began) * 1_000
    info, capabilities = client.server_info, client.capabilities
    document = {
        "protocol": client.protocol_version,
        "server_info": None if info is None else info.to_wire(),
        "capabilities": dict(capabilities.to_wire()),
        "instructions": client.instructions,
        "connect_ms": round(milliseconds, 3),
    }
    rows = [
        ("protocol", client.protocol_version or ""),
        ("offers", ", ".join(capabilities.to_wire()) or "nothing"),
        ("connected in", "%.0f ms" % milliseconds),
    ]
    if client.instructions:
        rows.append(("instructions", client.instructions))
    named = "a server that gives no name" if info is None else "%s %s" % (info.title or info.name, info.version)
    return Found(document, named, list(rows))


LISTINGS: Dict[str, Callable[[Server], Found]] = {
    "tools": _tools,
    "resources": _resources,
    "prompts": _prompts,
    "ping": _ping,
    "info": _info,
}


def _count(number: int, noun: str) -> str:
    return "%d %s%s" % (number, noun, "" if number == 1 else "s")


def _signature(schema: Any) -> str:
    """``(needed, optional?)``, from a schema that nobody trusts."""
    properties, required = schema.get("properties"), schema.get("required")
    names = properties if isinstance(properties, dict) else {}
    needed = required if isinstance(required, list) else []
    return "(%s)" % ", ".join(name if name in needed else name + "?" for name in names)


def _first_line(*texts: Optional[str]) -> str:
    text = next((text.strip() for text in texts if text and text.strip()), "")
    return text.splitlines()[0] if text else ""
