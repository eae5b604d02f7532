"""The host's own tools: resources and prompts for a model, compact, bounded, one at a time."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterator, List

import pytest

from mcpsync import ConfigError, Host, ToolError
from tests.host.inside import inside, resources
from tests.host.watching import DEMO

BOTH: Dict[str, Any] = {"resources": {}, "prompts": {}}


def host_of(servers: Dict[str, Any], **options: Any) -> Host:
    host = Host.from_config({"mcpServers": {}}, **{"approve": lambda _: "once", "context_tools": True, **options})
    host.connect_all(servers)
    return host


def of(count: int, **more: Any) -> Any:
    """A server with so many resources."""
    return inside([], {"resources/list": lambda params: {"resources": resources(count, **more)}}, BOTH)


def ask(host: Host, tool: str, **arguments: Any) -> str:
    return host.call_tool(tool, arguments).text


def refusal(host: Host, tool: str, **arguments: Any) -> str:
    with pytest.raises(ToolError) as caught:
        host.call_tool(tool, arguments)
    return str(caught.value.result.text)


@pytest.fixture(scope="module")
def demo() -> Iterator[Host]:
    with Host.from_config(
        {"mcpServers": {"demo": DEMO}}, context_tools="all", schema_cache=False, approve=lambda _: "once"
    ) as host:
        yield host


# --- which there are


def test_none_unless_asked_for() -> None:
    with host_of({"a": of(1)}, context_tools=False) as host:
        assert host.tools() == []
        with pytest.raises(ConfigError, match="there is no tool 'mcp_resources'"):
            host.call_tool("mcp_resources", {"action": "list"})


def test_the_shared_ones_are_there_once_and_not_without_a_server() -> None:
    with host_of({}) as host:
        assert host.tools() == []
        host.connect_all({"a": of(1), "b": of(1)})
        shared = [tool for tool in host.tools() if tool.server == ""]
        assert [tool.name for tool in shared] == ["mcp_resources", "mcp_prompts", "mcp_result"]
        assert all(tool.ready and tool.definition.annotations.read_only_hint for tool in shared)
        for name in ("a", "b"):
            host.disconnect(name)
        assert host.tools() == []


def test_a_pair_for_each_server_with_resources() -> None:
    with host_of({"a": of(2), "b": inside()}, context_tools="per_server") as host:
        names = [tool.name for tool in host.tools()]
        assert names == ["mcp__b__echo", "mcp__a__list_resources", "mcp__a__read_resource"]
        assert '"uri": "mem://1"' in ask(host, "mcp__a__list_resources")
        assert [each["name"] for each in host.export_tools("anthropic")] == names


def test_their_names_are_given_to_no_other_tool() -> None:
    with host_of({"a": inside(["list_resources", "echo"])}, context_tools="per_server") as host:
        assert [tool.name for tool in host.tools()] == ["mcp__a__echo"]
        assert "reserved" in host.status()[0].refused[0]


@pytest.mark.parametrize("wrong", ["some", 1.5, ["shared"], None])
def test_a_wrong_option(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="context_tools takes True, False, 'shared', 'per_server' or 'all'"):
        Host.from_config({"mcpServers": {}}, context_tools=wrong)


# --- which server


def test_the_server_has_to_be_named_if_there_are_several() -> None:
    with host_of({"b": of(1), "a": of(2)}) as host:
        assert refusal(host, "mcp_resources", action="list") == (
            "Several servers are connected: name one as 'server': a, b."
        )
        assert refusal(host, "mcp_prompts", action="list", server="c") == (
            "There is no server 'c' connected. Available: a, b."
        )
        assert "mem://1" in ask(host, "mcp_resources", action="list", server="a")
        host.disconnect("b")
        assert "mem://1" in ask(host, "mcp_resources", action="list")
        assert "mem://1" in ask(host, "mcp_resources", action="list", server="a")


def test_nobody_is_connected() -> None:
    with Host.from_config(
        {"mcpServers": {"x": {"command": "no-such-program"}}}, context_tools=True, approve=lambda _: "once"
    ) as host:
        assert [tool.ready for tool in host.tools()] == [False] * 3
        assert refusal(host, "mcp_resources", action="list") == "No MCP server is connected now."


# --- resources


def test_a_listing_is_compact() -> None:
    more = {"title": "T", "description": "d", "mimeType": "text/plain", "size": 5, "_meta": {"x": 1}, "icons": []}
    with host_of({"a": of(1, **more)}) as host:
        assert json.loads(ask(host, "mcp_resources", action="list")) == [
            {"uri": "mem://0", "name": "resource 0", "title": "T", "description": "d", "mimeType": "text/plain"}
        ]


def test_a_long_listing_says_how_many_are_left_out() -> None:
    with host_of({"a": of(250)}) as host:
        text = ask(host, "mcp_resources", action="list")
        assert text.endswith("[50 more resources not shown; 250 in all]")
        assert '"mem://199"' in text
        assert '"mem://200"' not in text


def test_long_fields_and_long_listings_are_bounded() -> None:
    with host_of({"a": of(100, description="x" * 5000)}) as host:
        text = ask(host, "mcp_resources", action="list")
        assert len(text) < 62_000
        assert "x... [5000 characters in all]" in text
        assert "more resources not shown; 100 in all]" in text


def test_a_server_without_resources_and_one_that_only_claims_them() -> None:
    with host_of({"none": inside(), "claims": inside([], None, BOTH)}) as host:
        for server in ("none", "claims"):
            assert ask(host, "mcp_resources", action="list", server=server) == "There are no resources."
            assert ask(host, "mcp_resources", action="templates", server=server) == "There are no resource templates."
            assert ask(host, "mcp_prompts", action="list", server=server) == "There are no prompts."


def test_more_pages_than_are_read_is_a_note() -> None:
    pages = iter(range(100))

    def page(params: Any) -> Any:
        return {"resources": resources(1), "nextCursor": str(next(pages))}

    with host_of({"a": inside([], {"resources/list": page}, BOTH)}, page_limit=3) as host:
        text = ask(host, "mcp_resources", action="list")
        assert text.count("mem://0") == 3
        assert "[the listing is not whole: there are more than 3 pages" in text


def test_reading() -> None:
    def read(params: Any) -> Any:
        parts: List[Dict[str, Any]] = [
            {"uri": params["uri"], "mimeType": "text/plain", "text": "hello"},
            {"uri": "mem://b", "mimeType": "image/png", "blob": "AAAA"},
        ]
        return {"contents": [] if params["uri"] == "mem://empty" else parts}

    with host_of({"a": inside([], {"resources/read": read}, BOTH)}) as host:
        assert ask(host, "mcp_resources", action="read", uri="mem://x") == (
            "[resource: mem://x (text/plain)]\nhello\n\n[resource: mem://b (image/png), 4 base64 characters, not shown]"
        )
        assert refusal(host, "mcp_resources", action="read", uri="mem://empty") == (
            "The resource mem://empty has no contents."
        )
        assert refusal(host, "mcp_resources", action="read") == "'uri' is needed: a string."
        assert refusal(host, "mcp_resources", action="delete") == "'action' must be one of list, read, templates."
        assert refusal(host, "mcp_resources") == "'action' must be one of list, read, templates."


def test_what_a_server_answers_comes_through(demo: Host) -> None:
    call = {"type": "tool_use", "id": "c", "name": "mcp__demo__read_resource", "input": {"uri": "mem://nowhere"}}
    assert demo.dispatch("anthropic", call)["is_error"] is True


def test_of_a_real_server(demo: Host) -> None:
    listed = json.loads(ask(demo, "mcp_resources", action="list").partition("\n[")[0])
    text = ask(demo, "mcp__demo__read_resource", uri=listed[0]["uri"])
    assert text.startswith("[resource: %s" % listed[0]["uri"])
    assert "uriTemplate" in ask(demo, "mcp_resources", action="templates")


# --- prompts


def prompts(params: Any) -> Any:
    arguments = [{"name": "code", "description": "the code", "required": True}, {"name": "style"}]
    return {"prompts": [{"name": "review", "description": "Reviews.", "arguments": arguments}, {"name": "plain"}]}


def got(params: Any) -> Any:
    messages = [
        {"role": "user", "content": {"type": "text", "text": json.dumps(params.get("arguments"))}},
        {"role": "assistant", "content": {"type": "image", "data": "AA==", "mimeType": "image/png"}},
    ]
    return {"description": "Reviews.", "messages": [] if params["name"] == "plain" else messages}


def with_prompts() -> Any:
    return inside([], {"prompts/list": prompts, "prompts/get": got}, BOTH)


def test_prompts_with_their_arguments_and_roles() -> None:
    with host_of({"a": with_prompts()}) as host:
        assert json.loads(ask(host, "mcp_prompts", action="list")) == [
            {
                "name": "review",
                "description": "Reviews.",
                "arguments": [{"name": "code", "description": "the code", "required": True}, {"name": "style"}],
            },
            {"name": "plain"},
        ]
        assert ask(host, "mcp_prompts", action="get", name="review", arguments={"code": "x", "n": 5}) == (
            '[prompt: review] Reviews.\n\n[user]\n{"code": "x", "n": "5"}\n\n[assistant]\n[image: image/png]'
        )
        assert refusal(host, "mcp_prompts", action="get", name="plain") == "The prompt plain has no messages."
        assert refusal(host, "mcp_prompts", action="get") == "'name' is needed: a string."
        wrong = refusal(host, "mcp_prompts", action="get", name="review", arguments="x")
        assert wrong == "'arguments' must be an object."


def test_prompts_for_the_program() -> None:
    broken = inside([], {"prompts/list": lambda params: {"prompts": 5}}, BOTH)
    with host_of({"a": with_prompts(), "b": with_prompts(), "broken": broken, "none": inside()}) as host:
        listed = [(row.server, row.prompt.name) for row in host.list_prompts()]
        assert listed == [("a", "review"), ("a", "plain"), ("b", "review"), ("b", "plain")]
        assert len(host.list_prompts("b")) == 2
        assert host.get_prompt("review", {"code": "x"}, server="a").messages[0].content.text == '{"code": "x"}'
        with pytest.raises(ConfigError, match="servers a, b have a prompt 'review'; say which server"):
            host.get_prompt("review")
        with pytest.raises(ConfigError, match="no server has a prompt 'none'"):
            host.get_prompt("none")
        for call in (lambda: host.get_prompt("x", server="z"), lambda: host.list_prompts("z")):
            with pytest.raises(ConfigError, match="there is no server 'z' connected"):
                call()
        host.disconnect("b")
        assert host.get_prompt("review").description == "Reviews."
