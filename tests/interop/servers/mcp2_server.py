"""A server on the official SDK, version 2: both eras, over stdio.

Questions to the client are resolvers, so the SDK asks them as the era wants it: a request of the server's own
in the legacy era, an ``input_required`` round in the modern one. The tools are listed in ``servers/README.md``.
"""

from __future__ import annotations

from typing import Annotated, Any, Optional

import anyio
from mcp.server.lowlevel import NotificationOptions
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, ListRoots, MCPServer, Resolve, Sample
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server
from mcp_types import (
    Completion,
    CreateMessageResult,
    EmptyResult,
    ListRootsResult,
    PromptReference,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    UnsubscribeRequestParams,
)
from pydantic import BaseModel, Field

NAMES = ["Ada", "Adele", "Alan", "Grace"]

server = MCPServer("mcp2-peer", version="2.3.0", instructions="A peer of the interop tests.")
cancelled: list[str] = []
subscribed: set[str] = set()


class Visitor(BaseModel):
    """What ``ask`` wants to know."""

    name: str = Field(description="Your name")
    newsletter: bool = Field(default=False, description="Send the newsletter")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool()
async def count(steps: int, ctx: Context) -> str:
    """Count, with a progress notification for each step."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, "step %d" % step)
    return "counted to %d" % steps


@server.tool()
async def slow(mark: str, seconds: float, ctx: Context) -> str:
    """Wait; progress tells that the wait began, and a cancellation is written down under the mark."""
    try:
        await ctx.report_progress(0, seconds, "started")
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        cancelled.append(mark)
        raise
    return "waited %s" % mark


@server.tool()
def cancellations() -> list[str]:
    """The marks of the ``slow`` calls that were cancelled."""
    return cancelled


async def visitor() -> Elicit[Visitor]:
    return Elicit("Who are you?", Visitor)


@server.tool()
async def ask(answer: Annotated[ElicitationResult[Visitor], Resolve(visitor)]) -> str:
    """Ask the user who they are, with a form."""
    if answer.action == "accept":
        return "accept %s %s" % (answer.data.name, answer.data.newsletter)
    return answer.action


@server.tool()
async def ask_url(ctx: Context) -> str:
    """Ask the user to open a page (legacy era only)."""
    answer = await ctx.elicit_url("Sign in, please.", "https://example.com/sign-in", "peer-1")
    if answer.action == "accept":
        await ctx.session.send_elicit_complete("peer-1", ctx.request_id)
    return answer.action


async def sampled(prompt: str) -> Sample:
    content = TextContent(type="text", text=prompt)
    return Sample([SamplingMessage(role="user", content=content)], max_tokens=50, system_prompt="Be brief.")


@server.tool()
async def sample(prompt: str, answer: Annotated[CreateMessageResult, Resolve(sampled)]) -> str:
    """Ask the client's model."""
    return "%s: %s" % (answer.model, getattr(answer.content, "text", ""))


async def listed_roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def roots(answer: Annotated[ListRootsResult, Resolve(listed_roots)]) -> list[str]:
    """The client's roots."""
    return [str(root.uri) for root in answer.roots]


@server.tool()
async def log(level: str, text: str, ctx: Context) -> str:
    """Send a log message."""
    await ctx.log(level, text, logger_name="peer")
    return "logged"


@server.tool()
async def grow(name: str, ctx: Context) -> str:
    """Add a tool of that name, and tell."""

    def grown() -> str:
        return name

    server.add_tool(grown, name=name, description="Grown on request.")
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "added %s" % name


@server.tool()
async def touch(uri: str, ctx: Context) -> str:
    """Tell those who subscribed that the resource changed."""
    await ctx.notify_resource_updated(uri)
    if uri in subscribed:
        await ctx.session.send_resource_updated(uri)
    return "touched"


@server.tool()
def fail(text: str) -> str:
    """Fail with that text."""
    raise ToolError(text)  # what else a tool raises, the SDK keeps to itself


@server.resource("note://greeting", mime_type="text/plain")
def greeting() -> str:
    """A fixed note."""
    return "hello"


@server.resource("note://named/{name}", mime_type="text/plain")
def named(name: str) -> str:
    """A note for a name."""
    return "hello %s" % name


@server.prompt()
def greet(name: str) -> str:
    """A prompt that greets."""
    return "Say hello to %s." % name


@server.completion()
async def complete(ref: Any, argument: Any, context: Any) -> Optional[Completion]:
    if isinstance(ref, PromptReference) and ref.name != "greet":
        return None
    values = [name for name in NAMES if name.lower().startswith(argument.value.lower())]
    return Completion(values=values, total=len(values), has_more=False)


async def _subscribe(_: Any, params: SubscribeRequestParams) -> EmptyResult:
    subscribed.add(str(params.uri))
    return EmptyResult()


async def _unsubscribe(_: Any, params: UnsubscribeRequestParams) -> EmptyResult:
    subscribed.discard(str(params.uri))
    return EmptyResult()


async def _set_level(_: Any, params: SetLevelRequestParams) -> EmptyResult:
    return EmptyResult()


async def main() -> None:
    low = server._lowlevel_server
    low.add_request_handler("resources/subscribe", SubscribeRequestParams, _subscribe)
    low.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, _unsubscribe)
    low.add_request_handler("logging/setLevel", SetLevelRequestParams, _set_level)
    changes = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
    async with stdio_server() as (read, write):
        await low.run(read, write, low.create_initialization_options(changes))


if __name__ == "__main__":
    anyio.run(main)
