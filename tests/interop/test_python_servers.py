"""Servers on the official SDK 2.x, on 1.x and on FastMCP 4, in each era that they have.

What a server has, and what it does in which era, is in ``servers/README.md``.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

import pytest

import mcpsync
from mcpsync.deadline import Deadline
from mcpsync.types import Progress, PromptReference
from tests.interop.side import ROOT, Side

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

LEGACY, MODERN = "2025-11-25", "2026-07-28"
ERAS: Dict[Tuple[str, str], str] = {
    ("mcp2", "legacy"): LEGACY,
    ("mcp2", "2026-07-28"): MODERN,
    ("mcp2", "auto"): MODERN,
    ("mcp1", "legacy"): LEGACY,
    ("mcp1", "auto"): LEGACY,
    ("fastmcp4", "legacy"): LEGACY,
    ("fastmcp4", "2026-07-28"): MODERN,
    ("fastmcp4", "auto"): MODERN,
}
"""What is asked of whom, and what it comes to."""
FORCED = [pair for pair in ERAS if pair[1] != "auto"]


def command_of(peer: str, request: pytest.FixtureRequest) -> List[str]:
    return list(request.getfixturevalue("%s_command" % peer))


@pytest.fixture
def side() -> Side:
    return Side()


@pytest.fixture(params=FORCED, ids="-".join)
def client(request: pytest.FixtureRequest, side: Side) -> Iterator[mcpsync.Client]:
    """A client of each server in each of its eras."""
    peer, protocol = request.param
    tools_changed = side.tell("tools")
    with side.connect(
        command_of(peer, request), name=peer, protocol=protocol, on_tools_changed=tools_changed
    ) as client:
        yield client


@pytest.mark.parametrize(("peer", "protocol"), [pytest.param(*pair, id="-".join(pair)) for pair in ERAS])
def test_what_is_agreed_on(peer: str, protocol: str, request: pytest.FixtureRequest) -> None:
    with mcpsync.connect(command_of(peer, request), protocol=protocol) as client:
        assert client.protocol_version == ERAS[peer, protocol]
        assert client.server_info is not None and client.server_info.name == "%s-peer" % peer
        assert client.instructions == "A peer of the interop tests."
        assert client.capabilities.tools
        client.ping()
        assert client.call_tool("add", {"a": 1, "b": 2}).text == "3"


def test_an_era_that_it_does_not_have(mcp1_command: List[str]) -> None:
    with pytest.raises(mcpsync.VersionMismatch, match="does not speak 2026-07-28, only an earlier revision"):
        mcpsync.connect(mcp1_command, protocol="modern")


# -- one client for each server and era; few tests, since the servers are slow to start ------------------------


def test_tools_and_their_progress(client: mcpsync.Client, side: Side) -> None:
    result = client.call_tool("add", {"a": 19, "b": 23}, validate=mcpsync.Validation("strict", arguments=True))
    assert (result.text, result.structured) == ("42", {"result": 42})
    assert client.call_tool("echo", {"text": "hé\u2028\U0001f40d"}).text == "hé\u2028\U0001f40d"
    with pytest.raises(mcpsync.ToolError, match="boom") as caught:
        client.call_tool("fail", {"text": "boom"})
    assert caught.value.server == client.name
    with pytest.raises((mcpsync.ToolError, mcpsync.RpcError), match="nothing"):
        client.call_tool("nothing")
    with pytest.raises((mcpsync.ToolError, mcpsync.RpcError), match="text"):
        client.call_tool("echo")

    counted = client.submit("count", {"steps": 4}, on_progress=side.tell("step"))
    assert counted.result(timeout=30).text == "counted to 4"
    steps: List[Progress] = [side.next("step") for _ in range(4)]
    assert [(step.progress, step.total) for step in steps] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [step.message for step in steps] == ["step 1", "step 2", "step 3", "step 4"]

    before = {tool.name for tool in client.list_tools()}
    assert client.call_tool("grow", {"name": "grown"}).text == "added grown"
    if (client.name, client.protocol_version) != ("fastmcp4", MODERN):  # which does not tell
        assert {tool.name for tool in side.next("tools")} == before | {"grown"}
    assert client.call_tool("grown").text == "grown"


def test_a_cancelled_call_is_cancelled_there(client: mcpsync.Client, side: Side) -> None:
    slow = client.submit("slow", {"mark": "by hand", "seconds": 60}, on_progress=side.tell("started"))
    side.next("started")
    assert slow.cancel()
    with pytest.raises(mcpsync.RequestTimeout):
        client.call_tool("slow", {"mark": "too late", "seconds": 60}, timeout=1)
    assert marks(client, 2) == ["by hand", "too late"]


def marks(client: mcpsync.Client, count: int) -> List[str]:
    """The marks that the server has written down, once there are so many: a cancelled call may end a moment later."""
    found: List[str] = []
    deadline = Deadline(30)
    while len(found) < count and (deadline.remaining() or 0) > 0:
        found = client.call_tool("cancellations").structured["result"]
    return found


def test_questions(client: mcpsync.Client, side: Side) -> None:
    assert client.call_tool("ask").text == "accept Ada False"  # the form's default is filled in
    side.answer = {"name": "Grace", "newsletter": True}
    assert client.submit("ask").result(timeout=30).text == "accept Grace True"
    for action in ("decline", "cancel"):
        side.answer = action
        assert client.call_tool("ask").text == action
    assert {(question.mode, question.message) for question in side.questions} == {("form", "Who are you?")}

    assert client.call_tool("sample", {"prompt": "ping"}).text == "m1: pong"
    (asked,) = side.sampled
    assert (asked.messages[0].text, asked.max_tokens, asked.system_prompt) == ("ping", 50, "Be brief.")

    assert ROOT in client.call_tool("roots").text
    side.roots = ["file:///srv/other"]
    client.roots_changed()
    text = client.call_tool("roots").text
    assert "file:///srv/other" in text and ROOT not in text

    side.answer = {"name": "Ada"}
    given = {"sample": {"prompt": "ping"}}
    at_once = [(tool, client.submit(tool, given.get(tool, {}))) for tool in ["ask", "sample", "roots"] * 3]
    says = {"ask": "accept Ada False", "sample": "m1: pong", "roots": "file:///srv/other"}
    for tool, future in at_once:
        assert says[tool] in future.result(timeout=60).text


def test_resources_prompts_and_logs(client: mcpsync.Client, side: Side) -> None:
    assert [resource.uri for resource in client.list_resources()] == ["note://greeting"]
    assert client.read_resource("note://greeting").text == "hello"
    assert [each.uri_template for each in client.list_resource_templates()] == ["note://named/{name}"]
    (contents,) = client.read_resource("note://named/Ada").contents
    assert (contents.text, contents.mime_type) == ("hello Ada", "text/plain")
    with pytest.raises(mcpsync.RpcError, match=r"note://nothing|[Nn]ot found|[Uu]nknown"):
        client.read_resource("note://nothing")

    (prompt,) = client.list_prompts()
    assert prompt.name == "greet" and [argument.name for argument in prompt.arguments or []] == ["name"]
    (message,) = client.get_prompt("greet", {"name": "Ada"}).messages
    assert message.content.text == "Say hello to Ada."
    greet = PromptReference(name="greet")
    assert client.complete(greet, "name", "A").values == ["Ada", "Adele", "Alan"]
    assert client.complete(greet, "name", "G", {"other": "x"}).values == ["Grace"]

    if client.protocol_version == MODERN:  # the level travels with each request
        client.call_tool("log", {"level": "error", "text": "oh"}, log_level="warning")
    else:
        client.set_logging_level("warning")
        client.call_tool("log", {"level": "error", "text": "oh"})
    log = side.next("log")
    assert (log.level, log.logger) == ("error", "peer")
    assert "oh" in str(log.data)


# -- what only some have ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("peer", ["mcp2", "mcp1"])
def test_a_url(peer: str, request: pytest.FixtureRequest, side: Side) -> None:
    with side.connect(command_of(peer, request), protocol="legacy") as client:
        assert client.call_tool("ask_url").text == "accept"
        (question,) = side.questions
        assert (question.mode, question.url, question.elicitation_id) == (
            "url",
            "https://example.com/sign-in",
            "peer-1",
        )
        side.next("notification", lambda news: news[0] == "notifications/elicitation/complete")
        side.answer = False
        assert client.call_tool("ask_url").text == "decline"


@pytest.mark.parametrize(("peer", "protocol"), [pytest.param(*pair, id="-".join(pair)) for pair in FORCED])
def test_what_is_not_offered_cannot_be_asked(peer: str, protocol: str, request: pytest.FixtureRequest) -> None:
    with mcpsync.connect(command_of(peer, request), protocol=protocol) as client:
        for tool, arguments in (("ask", {}), ("sample", {"prompt": "x"}), ("roots", {})):
            with pytest.raises((mcpsync.ToolError, mcpsync.RpcError)):
                client.call_tool(tool, arguments, timeout=30)
        assert client.call_tool("add", {"a": 1, "b": 2}).text == "3"


def test_the_level_from_now_on(mcp2_command: List[str], side: Side) -> None:
    with side.connect(mcp2_command, protocol=MODERN) as client:
        client.set_logging_level("warning")
        client.call_tool("log", {"level": "info", "text": "unheard"})
        client.call_tool("log", {"level": "error", "text": "heard"})
        assert side.next("log").data == "heard"
        assert side.heard("log") == []


@pytest.mark.parametrize("protocol", ["legacy", "2026-07-28"])
def test_subscriptions(mcp2_command: List[str], protocol: str, side: Side) -> None:
    """``resources/subscribe`` in the legacy era, one ``subscriptions/listen`` after the other in the modern one."""

    def touched(uri: str) -> Any:
        client.call_tool("touch", {"uri": uri})
        return side.next("updated")

    tools_changed = side.tell("tools")
    with side.connect(mcp2_command, protocol=protocol, on_tools_changed=tools_changed) as client:
        client.subscribe_resource("note://greeting", side.tell("updated"))
        assert touched("note://greeting") == "note://greeting"
        client.subscribe_resource("note://named/Ada", side.tell("updated"))
        assert touched("note://named/Ada") == "note://named/Ada"
        assert touched("note://greeting") == "note://greeting"
        client.unsubscribe_resource("note://greeting")
        client.call_tool("touch", {"uri": "note://greeting"})
        assert touched("note://named/Ada") == "note://named/Ada"
        client.call_tool("grow", {"name": "grown"})
        assert "grown" in {tool.name for tool in side.next("tools")}
        client.unsubscribe_resource("note://named/Ada")
        client.call_tool("touch", {"uri": "note://named/Ada"})
        client.call_tool("grow", {"name": "grown again"})
        assert "grown again" in {tool.name for tool in side.next("tools", has("grown again"))}
        assert side.heard("updated") == []


def has(name: str) -> Any:
    return lambda tools: name in {tool.name for tool in tools}


def test_subscriptions_that_a_server_has_without_saying_so(mcp1_command: List[str], side: Side) -> None:
    """The SDK 1.x always declares ``subscribe: false``. A client goes by that; its way down does not."""
    with side.connect(mcp1_command) as client:
        with pytest.raises(mcpsync.MethodNotFound, match="offers no subscriptions"):
            client.subscribe_resource("note://greeting")
        client.request("resources/subscribe", {"uri": "note://greeting"})
        client.call_tool("touch", {"uri": "note://greeting"})
        side.next("notification", lambda news: news == ("notifications/resources/updated", {"uri": "note://greeting"}))


@pytest.mark.parametrize("protocol", ["legacy", "2026-07-28"])
def test_no_subscriptions_where_there_are_none(fastmcp4_command: List[str], protocol: str) -> None:
    client = mcpsync.connect(fastmcp4_command, protocol=protocol)
    with client, pytest.raises(mcpsync.MethodNotFound, match="offers no subscriptions"):
        client.subscribe_resource("note://greeting")
