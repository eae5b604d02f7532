"""Commands that do one thing on one server: call, read, prompt."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, Iterable, List, TypeVar

from mcpsync.cli.arguments import Invocation, closest
from mcpsync.cli.exits import OK, TOOL_ERROR, code_of
from mcpsync.cli.exposed import is_exposed, likely, resolved
from mcpsync.cli.listings import error_document
from mcpsync.cli.output import Output
from mcpsync.cli.progress import progress_bar
from mcpsync.cli.servers import Server, closed_after, find_servers, the_one
from mcpsync.cli.text import inline, printable
from mcpsync.cli.values import prompt_arguments, tool_arguments
from mcpsync.errors import ConfigError, McpError
from mcpsync.host.render import render_result
from mcpsync.types import Prompt, Tool, ToolResult

__all__ = ["ACTIONS", "run_action"]

T = TypeVar("T", Tool, Prompt)
Action = Callable[[Server, Invocation, Output], int]


def run_action(invocation: Invocation, output: Output) -> int:
    """Do it, show what came of it, and give the exit code."""
    servers = find_servers(invocation, output)
    by_exposed_name = is_exposed(invocation)
    if by_exposed_name:
        servers = likely(servers, invocation.words[0])
    else:
        the_one(servers, invocation)
    server = servers[0]
    with closed_after([each.client for each in servers if each.client is not None]):
        try:
            if by_exposed_name:
                server, name = resolved(servers, invocation.words[0])
                invocation = invocation._replace(words=[name, *invocation.words[1:]])
            return ACTIONS[invocation.command](server, invocation, output)
        except McpError as error:
            if not by_exposed_name:
                error.located(server.name)
            output.note(str(error))
            output.document({**_subject(server, invocation), "error": error_document(error)})
            return code_of(error)


def _subject(server: Server, invocation: Invocation) -> Dict[str, Any]:
    noun = {"call": "tool", "read": "uri", "prompt": "prompt"}[invocation.command]
    return {"server": server.name, noun: invocation.words[0]}


def _call(server: Server, invocation: Invocation, output: Output) -> int:
    client = server.open()
    name, *words = invocation.words
    tool = _named(name, "tool", client.iter_tools())
    if not server.tools.allows(name):
        raise ConfigError("tool %r is not among those that the config file lets through" % name, server=server.name)
    arguments = tool_arguments(name, tool.input_schema, words, invocation.args)
    bar = progress_bar(output)
    if bar is not None and server.asker is not None:
        server.asker.before = bar.end
    try:
        result = client.call_tool(name, arguments, on_progress=bar, check=False)
    finally:
        if bar is not None:
            bar.end()
    output.document({**_subject(server, invocation), "is_error": result.is_error, "result": result.raw})
    text = render_result(result, limit=sys.maxsize)
    if result.is_error:
        output.errors("mcpsync: tool %r reported an error: %s\n" % (name, printable(text)))
        return TOOL_ERROR
    output.lines(text)
    return OK


def _named(name: str, noun: str, offered: Iterable[T]) -> T:
    """The one of that name.

    :raises ConfigError: there is none
    """
    names: List[str] = []
    for each in offered:
        if each.name == name:
            return each
        names.append(each.name)
    raise ConfigError("the server has no %s %r" % (noun, name), nearest=closest(name, names))


def _read(server: Server, invocation: Invocation, output: Output) -> int:
    result = server.open().read_resource(invocation.words[0])
    texts = [
        "[%s: %d bytes]" % (part.mime_type or "bytes", len(part.data_bytes)) if part.text is None else part.text
        for part in result.contents
    ]
    output.document({**_subject(server, invocation), "result": result.to_wire()})
    output.lines("\n".join(texts))
    return OK


def _prompt(server: Server, invocation: Invocation, output: Output) -> int:
    client = server.open()
    name, *words = invocation.words
    prompt = _named(name, "prompt", client.iter_prompts())
    known = {each.name: bool(each.required) for each in prompt.arguments or ()}
    result = client.get_prompt(name, prompt_arguments(name, known, words))
    output.document({**_subject(server, invocation), "result": result.to_wire()})
    for message in result.messages:
        text = render_result(ToolResult({"content": [message.content.to_wire()]}), limit=sys.maxsize)
        output.lines("[%s]\n%s" % (inline(message.role), text))
    return OK


ACTIONS: Dict[str, Action] = {"call": _call, "read": _read, "prompt": _prompt}
