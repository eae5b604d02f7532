"""A server on the official SDK, version 1: the legacy era alone, over stdio.

The tools are listed in ``servers/README.md``.
"""

from __future__ import annotations

from typing import Any, Optional

import anyio
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server
from mcp.types import Completion, PromptReference, SamplingMessage, TextContent
from pydantic import AnyUrl, BaseModel, Field

NAMES = ["Ada", "Adele", "Alan", "Grace"]

server = FastMCP("mcp1-peer", instructions="A peer of the interop tests.")
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


@server.tool()
async def ask(ctx: Context) -> str:
    """Ask the user who they are, with a form."""
    answer = await ctx.elicit("Who are you?", Visitor)
    if answer.action == "accept":
        return "accept %s %s" % (answer.data.name, answer.data.newsletter)
    return answer.action


@server.tool()
async def ask_url(ctx: Context) -> str:
    """Ask the user to open a page."""
    answer = await ctx.elicit_url("Sign in, please.", "https://example.com/sign-in", "peer-1")
    if answer.action == "accept":
        await ctx.session.send_elicit_complete("peer-1", ctx.request_id)
    return answer.action


@server.tool()
async def sample(prompt: str, ctx: Context) -> str:
    """Ask the client's model."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    answer = await ctx.session.create_message([message], max_tokens=50, system_prompt="Be brief.")
    return "%s: %s" % (answer.model, getattr(answer.content, "text", ""))


@server.tool()
async def roots(ctx: Context) -> list[str]:
    """The client's roots."""
    return [str(root.uri) for root in (await ctx.session.list_roots()).roots]


@server.tool()
async def log(level: str, text: str, ctx: Context) -> str:
    """Send a log message."""
    await ctx.session.send_log_message(level, text, logger="peer", related_request_id=ctx.request_id)
    return "logged"


@server.tool()
async def grow(name: str, ctx: Context) -> str:
    """Add a tool of that name, and tell."""

    def grown() -> str:
        return name

    server.add_tool(grown, name=name, description="Grown on request.")
    await ctx.session.send_tool_list_changed()
    return "added %s" % name


@server.tool()
async def touch(uri: str, ctx: Context) -> str:
    """Tell those who subscribed that the resource changed."""
    if uri in subscribed:
        await ctx.session.send_resource_updated(AnyUrl(uri))
    return "touched"


@server.tool()
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


@server.prompt()
def greet(name: str) -> str:
    """A prompt that greets."""
    return "Say hello to %s." % name


@server.completion()
async def complete(ref: Any, argument: Any, context: Any) -> Optional[Completion]:
    if isinstance(ref, PromptReference) and ref.name != "greet":
        return None
    values = [name for name in NAMES if name.lower().startswith(argument.value.lower())]
    return Completion(values=values, total=len(values), hasMore=False)


async def main() -> None:
    low = server._mcp_server

    @low.subscribe_resource()
    async def subscribe(uri: AnyUrl) -> None:
        subscribed.add(str(uri))

    @low.unsubscribe_resource()
    async def unsubscribe(uri: AnyUrl) -> None:
        subscribed.discard(str(uri))

    @low.set_logging_level()
    async def set_level(level: str) -> None:
        del level

    changes = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
    async with stdio_server() as (read, write):
        await low.run(read, write, low.create_initialization_options(changes))


if __name__ == "__main__":
    anyio.run(main)
