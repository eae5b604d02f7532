"""``@modelcontextprotocol/server-everything``: each of its tools, and all that it has beside tools."""

from __future__ import annotations

import gzip
import json
from typing import Any, Iterator, List

import pytest

import mcpsync
from mcpsync.types import EmbeddedResource, ImageContent, PromptReference, ResourceLink, ResourceTemplateReference, Root
from tests.interop.side import ROOT, Side

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

PNG = b"\x89PNG\r\n"
TEXT = "demo://resource/dynamic/text/%d"
BLOB = "demo://resource/dynamic/blob/%d"


@pytest.fixture
def side() -> Side:
    return Side()


@pytest.fixture
def client(everything_command: List[str], side: Side) -> Iterator[mcpsync.Client]:
    with side.connect(everything_command, name="everything") as client:
        # it asks for the roots a while after the start; were its stdin to end before, it would wait for them in vain
        side.next("log", lambda log: "Roots updated: 1 root(s)" in log.data)
        yield client


def raw_result(text: str) -> Any:
    """What the server got, as it says below its own words."""
    return json.loads(text[text.index("{") :])


def test_what_it_is(client: mcpsync.Client) -> None:
    assert client.protocol_version == "2025-11-25"
    assert client.server_info is not None and client.server_info.name == "mcp-servers/everything"
    assert client.instructions is not None and "Everything" in client.instructions
    offers = client.capabilities
    assert offers.tools and offers.prompts and offers.resources_subscribe and offers.logging and offers.completions
    client.ping()


# -- tools -----------------------------------------------------------------------------------------------------


def test_plain_tools(client: mcpsync.Client) -> None:
    assert client.call_tool("echo", {"message": "hé\u2028"}).text == "Echo: hé\u2028"
    assert client.call_tool("get-sum", {"a": 1.5, "b": 2}).text == "The sum of 1.5 and 2 is 3.5."
    with pytest.raises(mcpsync.ToolError, match="message"):
        client.call_tool("echo", {})
    with pytest.raises((mcpsync.ToolError, mcpsync.InvalidParams), match="not found"):
        client.call_tool("no-such-tool")


def test_all_tools_are_listed_with_what_they_declare(client: mcpsync.Client) -> None:
    tools = {tool.name: tool for tool in client.list_tools()}
    assert len(tools) == 17  # those that tests/interop/test_peers.py names
    assert tools["echo"].annotations is not None and tools["echo"].annotations.read_only_hint
    assert tools["get-structured-content"].output_schema is not None
    research = tools["simulate-research-query"].execution
    assert research is not None and research.task_support == "required"


def test_contents(client: mcpsync.Client) -> None:
    image = client.call_tool("get-tiny-image").content[1]
    assert isinstance(image, ImageContent) and image.data_bytes.startswith(PNG)

    message, picture = client.call_tool("get-annotated-message", {"messageType": "error", "includeImage": True}).content
    assert message.annotations.priority == 1.0 and message.annotations.audience == ["user", "assistant"]
    assert isinstance(picture, ImageContent) and picture.mime_type == "image/png"

    weather = client.call_tool("get-structured-content", {"location": "Chicago"}, validate="strict")
    assert weather.structured == {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}
    assert json.loads(weather.text) == weather.structured

    _, *links = client.call_tool("get-resource-links", {"count": 4}).content
    assert all(isinstance(link, ResourceLink) for link in links)
    assert [link.uri for link in links] == [BLOB % 1, TEXT % 2, BLOB % 3, TEXT % 4]

    _, embedded, _ = client.call_tool("get-resource-reference", {"resourceType": "Blob", "resourceId": 3}).content
    assert isinstance(embedded, EmbeddedResource)
    assert embedded.resource.data_bytes.startswith(b"Resource 3: This is a base64 blob")


def test_the_environment_that_it_gets(everything_command: List[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET_TOKEN", "s3cret")
    with mcpsync.connect(everything_command, env={"GIVEN": "yes"}) as client:
        environment = json.loads(client.call_tool("get-env").text)
    assert environment["GIVEN"] == "yes" and environment["PATH"]
    assert "SOME_SECRET_TOKEN" not in environment


def test_a_file_becomes_a_resource_of_the_session(client: mcpsync.Client, side: Side) -> None:
    arguments = {"name": "hello.gz", "data": "data:text/plain,hello%20there"}
    (link,) = client.call_tool("gzip-file-as-resource", arguments).content
    assert isinstance(link, ResourceLink) and link.uri == "demo://resource/session/hello.gz"
    assert link.uri in [resource.uri for resource in client.list_resources()]
    (contents,) = client.read_resource(link.uri).contents
    assert gzip.decompress(contents.data_bytes) == b"hello there"
    side.next("notification", lambda news: news[0] == "notifications/resources/list_changed")

    (embedded,) = client.call_tool("gzip-file-as-resource", {**arguments, "outputType": "resource"}).content
    assert isinstance(embedded, EmbeddedResource) and embedded.resource.mime_type == "application/gzip"


def test_a_tool_that_is_a_task(client: mcpsync.Client, side: Side) -> None:
    """Tasks are not in the client; its way down reaches them. The question comes while the result is waited for."""
    with pytest.raises(mcpsync.ToolError, match="requires task augmentation"):
        client.call_tool("simulate-research-query", {"topic": "python"})
    side.answer = {"interpretation": "snake"}
    arguments = {"topic": "python", "ambiguous": True}
    params = {"name": "simulate-research-query", "arguments": arguments, "task": {"ttl": 60_000}}
    task = client.request("tools/call", params)["task"]
    assert client.request("tasks/get", {"taskId": task["taskId"]})["status"] in ("working", "input_required")
    result = mcpsync.types.ToolResult(client.request("tasks/result", {"taskId": task["taskId"]}))
    assert "Research Report: python (snake)" in result.text
    assert [question.mode for question in side.questions] == ["form"]
    assert client.request("tasks/get", {"taskId": task["taskId"]})["status"] == "completed"


# -- questions -------------------------------------------------------------------------------------------------


def test_a_form(client: mcpsync.Client, side: Side) -> None:
    side.answer = {"name": "Ada", "check": True, "email": "ada@example.com", "integer": 7}
    text = client.call_tool("trigger-elicitation-request").text
    got = raw_result(text)
    assert got["action"] == "accept"
    assert got["content"] == {
        **side.answer,
        "firstLine": "It was a dark and stormy night.",
        "number": 3.14,
        "untitledSingleSelectEnum": "Monica",
        "untitledMultipleSelectEnum": ["Guitar"],
        "titledSingleSelectEnum": "hero-1",
        "titledMultipleSelectEnum": ["fish-1"],
        "legacyTitledEnum": "pet-1",
    }
    schema = side.questions[0].requested_schema
    assert schema is not None and schema["required"] == ["name"]


@pytest.mark.parametrize(("answer", "action"), [(False, "decline"), ("decline", "decline"), ("cancel", "cancel")])
def test_a_form_that_nobody_fills_in(client: mcpsync.Client, side: Side, answer: Any, action: str) -> None:
    side.answer = answer
    assert raw_result(client.call_tool("trigger-elicitation-request").text) == {"action": action}


def test_a_form_filled_in_wrongly(client: mcpsync.Client, side: Side, caplog: pytest.LogCaptureFixture) -> None:
    side.answer = {"name": "Ada", "integer": 1000}
    with pytest.raises((mcpsync.ToolError, mcpsync.RpcError), match="integer"):
        client.call_tool("trigger-elicitation-request")
    assert "the handler for elicitation/create failed" in caplog.text


def test_a_url(client: mcpsync.Client, side: Side) -> None:
    arguments = {"url": "https://example.com/sign-in", "elicitationId": "e1"}
    assert "completed the URL elicitation" in client.call_tool("trigger-url-elicitation", arguments).text
    (question,) = side.questions
    assert (question.mode, question.url, question.elicitation_id) == ("url", arguments["url"], "e1")
    side.answer = False
    assert "declined" in client.call_tool("trigger-url-elicitation", arguments).text


def test_a_url_that_an_error_asks_for(everything_command: List[str], side: Side) -> None:
    """-32042: the URL is visited, and the call is made once more. This server never says that it is done with it, so
    the client goes on after the time for an answer."""
    arguments = {"url": "https://example.com/next", "errorPath": True}
    with side.connect(everything_command, timeouts=mcpsync.Timeouts(ask=1.0)) as client:
        text = client.call_tool("trigger-url-elicitation", arguments).text
        assert "completed the URL elicitation" in text
        assert [question.url for question in side.questions] == ["https://modelcontextprotocol.io", arguments["url"]]
        side.answer = False
        with pytest.raises(mcpsync.UrlElicitationRequired, match="browser-based authorization"):
            client.call_tool("trigger-url-elicitation", arguments)


def test_sampling(client: mcpsync.Client, side: Side) -> None:
    text = client.call_tool("trigger-sampling-request", {"prompt": "ping", "maxTokens": 17}).text
    content = {"type": "text", "text": "pong"}
    assert raw_result(text) == {"model": "m1", "stopReason": "endTurn", "role": "assistant", "content": content}
    (request,) = side.sampled
    assert request.max_tokens == 17 and request.system_prompt == "You are a helpful test server."
    assert request.messages[0].text.endswith("context: ping")


def test_roots_and_their_change(client: mcpsync.Client, side: Side) -> None:
    assert "1. data\n   URI: %s" % ROOT in client.call_tool("get-roots-list").text
    side.roots = [Root("file:///srv/other", name="other"), Root("file:///srv/third")]
    client.roots_changed()
    side.next("log", lambda log: "2 root(s) received" in str(log.data))
    text = client.call_tool("get-roots-list").text
    assert "1. other\n   URI: file:///srv/other" in text and "2. Unnamed Root" in text


def test_what_is_not_offered_is_not_asked_for(everything_command: List[str]) -> None:
    with mcpsync.connect(everything_command) as client:
        names = {tool.name for tool in client.list_tools()}
    asking = {"trigger-elicitation-request", "trigger-url-elicitation", "trigger-sampling-request", "get-roots-list"}
    assert not names & asking
    with mcpsync.connect(everything_command, elicitation=lambda request: True, elicitation_modes=["form"]) as client:
        assert {tool.name for tool in client.list_tools()} & asking == {"trigger-elicitation-request"}


# -- resources and prompts -------------------------------------------------------------------------------------


def test_resources(client: mcpsync.Client) -> None:
    resources = {resource.name: resource for resource in client.list_resources()}
    features = resources["features.md"]
    assert features.mime_type == "text/markdown"
    assert client.read_resource(features.uri).text.startswith("# Everything Server")
    templates = {template.uri_template for template in client.list_resource_templates()}
    assert templates == {TEXT.replace("%d", "{resourceId}"), BLOB.replace("%d", "{resourceId}")}
    assert "plaintext resource" in client.read_resource(TEXT % 7).text
    assert b"base64 blob" in client.read_resource(BLOB % 8).contents[0].data_bytes
    with pytest.raises(mcpsync.RpcError, match="demo://nothing"):
        client.read_resource("demo://nothing")


def test_updates_of_what_is_subscribed_to(client: mcpsync.Client, side: Side) -> None:
    client.subscribe_resource(TEXT % 1, side.tell("updated"))
    client.subscribe_resource(BLOB % 2, side.tell("updated"))
    assert "Started" in client.call_tool("toggle-subscriber-updates").text
    assert {side.next("updated"), side.next("updated")} == {TEXT % 1, BLOB % 2}
    assert "Stopped" in client.call_tool("toggle-subscriber-updates").text
    client.unsubscribe_resource(BLOB % 2)
    assert "Started" in client.call_tool("toggle-subscriber-updates").text
    assert side.next("updated") == TEXT % 1
    client.ping()
    assert side.heard("updated") == []


def test_prompts(client: mcpsync.Client) -> None:
    prompts = {prompt.name: prompt for prompt in client.list_prompts()}
    assert set(prompts) == {"simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"}
    city, state = prompts["args-prompt"].arguments or []
    assert (city.name, city.required, state.name, state.required) == ("city", True, "state", False)
    (simple,) = client.get_prompt("simple-prompt").messages
    assert simple.role == "user" and simple.content.text == "This is a simple prompt without arguments."
    (weather,) = client.get_prompt("args-prompt", {"city": "Turin", "state": "TO"}).messages
    assert weather.content.text == "What's weather in Turin, TO?"
    _, embedded = client.get_prompt("resource-prompt", {"resourceType": "Text", "resourceId": "3"}).messages
    assert isinstance(embedded.content, EmbeddedResource) and embedded.content.resource.uri == TEXT % 3
    with pytest.raises(mcpsync.RpcError, match="city"):
        client.get_prompt("args-prompt")


def test_completion(client: mcpsync.Client) -> None:
    team = PromptReference(name="completable-prompt")
    assert client.complete(team, "department", "S").values == ["Sales", "Support"]
    assert client.complete(team, "name", "", {"department": "Sales"}).values == ["David", "Eve", "Frank"]
    assert client.complete(team, "name", "E", {"department": "Sales"}).values == ["Eve"]
    texts = ResourceTemplateReference(uri=TEXT.replace("%d", "{resourceId}"))
    assert client.complete(texts, "resourceId", "12").values == ["12"]
    assert client.complete(texts, "resourceId", "x").values == []


# -- logging, progress, cancellation ---------------------------------------------------------------------------


def test_log_levels(client: mcpsync.Client, side: Side) -> None:
    """Each subscription makes the server log at ``info``."""
    client.set_logging_level("warning")
    client.subscribe_resource(TEXT % 1)
    client.set_logging_level("info")
    client.subscribe_resource(TEXT % 2)
    assert TEXT % 2 in side.next("log", lambda log: "Received Subscribe" in log.data).data
    assert not [log for log in side.heard("log") if TEXT % 1 in log.data]


def test_simulated_logging(client: mcpsync.Client, side: Side) -> None:
    client.set_logging_level("debug")
    assert "Started simulated" in client.call_tool("toggle-simulated-logging").text
    log = side.next("log", lambda log: log.data.lower().startswith(log.level))
    assert log.level in ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
    assert "Stopped simulated" in client.call_tool("toggle-simulated-logging").text


def test_the_level_from_the_start(everything_command: List[str], side: Side) -> None:
    with side.connect(everything_command, log_level="error") as client:
        client.subscribe_resource(TEXT % 1)
        client.call_tool("get-roots-list")
        assert side.heard("log") == []


def test_progress(client: mcpsync.Client, side: Side) -> None:
    arguments = {"duration": 0.5, "steps": 5}
    done = client.submit("trigger-long-running-operation", arguments, on_progress=side.tell("step"))
    assert "Duration: 0.5 seconds, Steps: 5" in done.result(timeout=30).text
    steps = [side.next("step") for _ in range(5)]
    assert [(step.progress, step.total) for step in steps] == [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]


def test_a_long_call_is_cancelled(client: mcpsync.Client, side: Side) -> None:
    arguments = {"duration": 60, "steps": 600}
    long = client.submit("trigger-long-running-operation", arguments, on_progress=side.tell("progress"))
    side.next("progress")
    assert long.cancel() and long.cancelled()
    assert client.call_tool("echo", {"message": "still there"}, timeout=20).text == "Echo: still there"
    with pytest.raises(mcpsync.RequestTimeout, match=r"no answer within 0\.3 s"):
        client.call_tool("trigger-long-running-operation", arguments, timeout=0.3)
    assert client.call_tool("echo", {"message": "and now"}, timeout=20).text == "Echo: and now"


def test_progress_keeps_a_call_alive(client: mcpsync.Client) -> None:
    """``idle`` is shorter than the call and longer than a step."""
    timeouts = mcpsync.Timeouts(idle=1.0)
    arguments = {"duration": 1.6, "steps": 8}
    done = client.call_tool(
        "trigger-long-running-operation", arguments, timeout=timeouts, on_progress=lambda step: None
    )
    assert "completed" in done.text
