"""A server on FastMCP 4: both eras, over stdio.

A question to the client is a request of the server's own in the legacy era; in the modern one the tool returns
an ``input_required`` result and is called again with the answers. The tools are listed in ``servers/README.md``.
"""

from __future__ import annotations

from typing import Any, Union

import anyio
from fastmcp import Context, FastMCP
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListRootsRequest,
    PromptReference,
    SamplingMessage,
    TextContent,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

NAMES = ["Ada", "Adele", "Alan", "Grace"]
VISITOR = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "Your name"},
        "newsletter": {"type": "boolean", "default": False, "description": "Send the newsletter"},
    },
    "required": ["name"],
}

server = FastMCP("fastmcp4-peer", version="4.2.3", instructions="A peer of the interop tests.")
cancelled: list[str] = []


def modern(ctx: Context) -> bool:
    return ctx.request_context.protocol_version in MODERN_PROTOCOL_VERSIONS


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool
async def count(steps: int, ctx: Context) -> str:
    """Count, with a progress notification for each step."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, "step %d" % step)
    return "counted to %d" % steps


@server.tool
async def slow(mark: str, seconds: float, ctx: Context) -> str:
    """Wait; progress tells that the wait began, and a cancellation is written down under the mark."""
    try:
        await ctx.report_progress(0, seconds, "started")
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        cancelled.append(mark)
        raise
    return "waited %s" % mark


@server.tool
def cancellations() -> list[str]:
    """The marks of the ``slow`` calls that were cancelled."""
    return cancelled


def told(action: str, content: Any) -> str:
    return "accept %s %s" % (content["name"], content.get("newsletter", False)) if action == "accept" else action


@server.tool(output_schema=None)
async def ask(ctx: Context) -> Union[str, InputRequiredResult]:
    """Ask the user who they are, with a form."""
    if not modern(ctx):
        answer = await ctx.session.elicit("Who are you?", VISITOR, ctx.request_id)
        return told(answer.action, answer.content)
    if ctx.input_responses is None:
        params = ElicitRequestFormParams(message="Who are you?", requested_schema=VISITOR)
        return InputRequiredResult(
            input_requests={"visitor": ElicitRequest(params=params)}, request_state="asked for a visitor"
        )
    if ctx.request_state != "asked for a visitor":
        raise ValueError("the request state did not come back")
    answer = ctx.input_responses["visitor"]
    return told(answer.action, answer.content)


@server.tool(output_schema=None)
async def sample(prompt: str, ctx: Context) -> Union[str, InputRequiredResult]:
    """Ask the client's model."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    if not modern(ctx):
        answer = await ctx.session.create_message([message], max_tokens=50, system_prompt="Be brief.")
    elif ctx.input_responses is None:
        params = CreateMessageRequestParams(messages=[message], max_tokens=50, system_prompt="Be brief.")
        return InputRequiredResult(input_requests={"model": CreateMessageRequest(params=params)})
    else:
        answer = ctx.input_responses["model"]
    return "%s: %s" % (answer.model, getattr(answer.content, "text", ""))


@server.tool(output_schema=None)
async def roots(ctx: Context) -> Union[str, InputRequiredResult]:
    """The client's roots, one a line."""
    if not modern(ctx):
        answer = await ctx.session.list_roots()
    elif ctx.input_responses is None:
        return InputRequiredResult(input_requests={"roots": ListRootsRequest()})
    else:
        answer = ctx.input_responses["roots"]
    return "\n".join(str(root.uri) for root in answer.roots)


@server.tool
async def log(level: str, text: str, ctx: Context) -> str:
    """Send a log message."""
    await ctx.log(text, level=level, logger_name="peer")
    return "logged"


@server.tool
async def grow(name: str, ctx: Context) -> str:
    """Add a tool of that name, and tell."""

    def grown() -> str:
        """Grown on request."""
        return name

    server.tool(grown, name=name)
    if not modern(ctx):
        await ctx.session.send_tool_list_changed()
    return "added %s" % name


@server.tool
def fail(text: str) -> str:
    """Fail with that text."""
    raise ValueError(text)


@server.resource("note://greeting", mime_type="text/plain")
def greeting() -> str:
    """A fixed note."""
    return "hello"


@server.resource("note://named/{name}", mime_type="text/plain")
def named(name: str) -> str:
    """A note for a name."""
    return "hello %s" % name


@server.prompt
def greet(name: str) -> str:
    """A prompt that greets."""
    return "Say hello to %s." % name


@server.completion
def complete(ref: Any, argument: Any, context: Any) -> list[str]:
    if isinstance(ref, PromptReference) and ref.name != "greet":
        return []
    return [name for name in NAMES if name.lower().startswith(argument.value.lower())]


if __name__ == "__main__":
    server.run("stdio", show_banner=False)
