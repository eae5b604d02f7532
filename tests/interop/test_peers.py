"""Each peer starts and offers what the interop tests rely on: bare JSON-RPC, none of our code."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from tests.interop.raw import ANSWER_SECONDS, CAPABILITIES, RawPeer

pytestmark = [pytest.mark.interop, pytest.mark.timeout(ANSWER_SECONDS * 3)]

LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
COMMON = {"add", "echo", "count", "slow", "cancellations", "ask", "sample", "roots", "log", "grow", "fail"}
EVERYTHING = {
    "echo",
    "get-annotated-message",
    "get-env",
    "get-resource-links",
    "get-resource-reference",
    "get-roots-list",
    "get-structured-content",
    "get-sum",
    "get-tiny-image",
    "gzip-file-as-resource",
    "simulate-research-query",
    "toggle-simulated-logging",
    "toggle-subscriber-updates",
    "trigger-elicitation-request",
    "trigger-long-running-operation",
    "trigger-sampling-request",
    "trigger-url-elicitation",
}
Answers = Dict[str, Callable[[Dict[str, Any]], Dict[str, Any]]]
ANSWERS: Answers = {
    "elicitation/create": lambda params: {"action": "accept", "content": {"name": "Ada"}},
    "sampling/createMessage": lambda params: {
        "role": "assistant",
        "model": "m1",
        "content": {"type": "text", "text": "pong"},
    },
    "roots/list": lambda params: {"roots": [{"uri": "file:///srv/data", "name": "data"}]},
}


@pytest.fixture(params=["mcp2", "mcp1", "fastmcp4"])
def python_command(request: pytest.FixtureRequest) -> List[str]:
    return list(request.getfixturevalue("%s_command" % request.param))


@pytest.fixture(params=["mcp2", "fastmcp4"])
def modern_command(request: pytest.FixtureRequest) -> List[str]:
    return list(request.getfixturevalue("%s_command" % request.param))


def tool_names(answer: Dict[str, Any]) -> List[str]:
    names = [tool["name"] for tool in answer["result"]["tools"]]
    print("tools:", ", ".join(names))
    return names


def text(answer: Dict[str, Any]) -> str:
    assert "result" in answer, answer
    return "\n".join(block["text"] for block in answer["result"]["content"])


def call(tool: str, /, **arguments: Any) -> Dict[str, Any]:
    return {"name": tool, "arguments": arguments}


@pytest.fixture(params=["everything", "filesystem", "mcp2", "mcp1", "fastmcp4"])
def any_command(request: pytest.FixtureRequest, tmp_path: Path) -> List[str]:
    command = request.getfixturevalue("%s_command" % request.param)
    return list(command(tmp_path) if callable(command) else command)


@pytest.mark.parametrize("revision", LEGACY)
def test_each_legacy_revision_is_negotiated(revision: str, any_command: List[str]) -> None:
    with RawPeer(any_command) as peer:
        assert peer.initialize(revision)["protocolVersion"] == revision


def test_everything(everything_command: List[str]) -> None:
    with RawPeer(everything_command, ANSWERS) as peer:
        print("capabilities:", sorted(peer.initialize("2025-11-25")["capabilities"]))
        assert set(tool_names(peer.request("tools/list"))) == EVERYTHING
        answer = peer.request("server/discover")
        assert answer["error"]["code"] == -32601, "it has become modern: test it as such"


def test_filesystem(filesystem_command: Callable[[Path], List[str]], tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello")
    with RawPeer(filesystem_command(tmp_path)) as peer:
        client = {"name": "raw", "version": "1"}
        peer.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        peer.notify("notifications/initialized")
        assert {"read_text_file", "write_file", "list_directory"} <= set(tool_names(peer.request("tools/list")))
        answer = peer.request("tools/call", call("read_text_file", path=str(tmp_path / "note.txt")))
        assert text(answer) == "hello"


def test_python_peers_in_the_legacy_era(python_command: List[str]) -> None:
    with RawPeer(python_command, ANSWERS) as peer:
        print("capabilities:", peer.initialize("2025-11-25")["capabilities"])
        assert set(tool_names(peer.request("tools/list"))) >= COMMON
        for name, arguments, says in EXCHANGES:
            assert text(peer.request("tools/call", call(name, **arguments))) == says
        asked = {message["method"] for message in peer.heard if "id" in message}
        assert asked == {"elicitation/create", "sampling/createMessage", "roots/list"}
        peer.request("tools/call", {**call("count", steps=2), "_meta": {"progressToken": "p"}})
        progress = [message["params"] for message in peer.heard if message["method"] == "notifications/progress"]
        assert [params["progress"] for params in progress] == [1, 2]
        assert {params["progressToken"] for params in progress} == {"p"}
        peer.request("tools/call", call("log", level="error", text="oh"))
        assert any(message["method"] == "notifications/message" for message in peer.heard)
        peer.request("tools/call", call("grow", name="grown"))
        assert any(message["method"] == "notifications/tools/list_changed" for message in peer.heard)
        assert "grown" in tool_names(peer.request("tools/list"))
        common_offers(peer.request)


def test_python_peers_write_down_a_cancellation(python_command: List[str]) -> None:
    with RawPeer(python_command) as peer:
        peer.initialize("2025-11-25")
        slow = peer.begin("tools/call", {**call("slow", mark="m", seconds=60), "_meta": {"progressToken": 1}})
        peer.wait_for("notifications/progress")
        peer.notify("notifications/cancelled", {"requestId": slow, "reason": "test"})
        assert text(peer.request("tools/call", call("cancellations"))) in ("m", '["m"]')


def test_modern_peers(modern_command: List[str]) -> None:
    with RawPeer(modern_command) as peer:
        discovered = peer.modern("server/discover")["result"]
        assert discovered["supportedVersions"] == ["2026-07-28"]
        print("capabilities:", discovered["capabilities"])
        assert set(tool_names(peer.modern("tools/list"))) >= COMMON
        for name, arguments, says in EXCHANGES:
            assert text(rounds(peer, call(name, **arguments))) == says
        common_offers(peer.modern)


def test_mcp1_refuses_discovery(mcp1_command: List[str]) -> None:
    with RawPeer(mcp1_command) as peer:
        assert peer.modern("server/discover")["error"]["code"] == -32602


def test_mcp2_listens(mcp2_command: List[str]) -> None:
    with RawPeer(mcp2_command) as peer:
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["note://greeting"]}
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
        }
        peer.begin("subscriptions/listen", {"notifications": wanted, "_meta": meta})
        granted = peer.wait_for("notifications/subscriptions/acknowledged")["params"]
        assert granted["notifications"] == wanted
        peer.modern("tools/call", call("grow", name="grown"))
        peer.modern("tools/call", call("touch", uri="note://greeting"))
        told = [message["method"] for message in peer.heard]
        for method in ("notifications/tools/list_changed", "notifications/resources/updated"):
            if method not in told:
                peer.wait_for(method)


@pytest.mark.parametrize("peer_name", ["mcp2", "mcp1"])
def test_subscriptions_of_the_legacy_era(peer_name: str, request: pytest.FixtureRequest) -> None:
    with RawPeer(request.getfixturevalue("%s_command" % peer_name)) as peer:
        peer.initialize("2025-11-25")
        assert "result" in peer.request("resources/subscribe", {"uri": "note://greeting"})
        peer.request("tools/call", call("touch", uri="note://greeting"))
        assert any(message["method"] == "notifications/resources/updated" for message in peer.heard)


EXCHANGES = [
    ("add", {"a": 1, "b": 2}, "3"),
    ("echo", {"text": "hé"}, "hé"),
    ("ask", {}, "accept Ada False"),
    ("sample", {"prompt": "ping"}, "m1: pong"),
    ("roots", {}, "file:///srv/data"),
]


def common_offers(send: Callable[..., Dict[str, Any]]) -> None:
    """What every one of our servers has beside tools."""
    failed = send("tools/call", call("fail", text="boom"))["result"]
    assert failed["isError"] and "boom" in failed["content"][0]["text"]
    assert [item["uri"] for item in send("resources/list")["result"]["resources"]] == ["note://greeting"]
    templates = send("resources/templates/list")["result"]["resourceTemplates"]
    assert [item["uriTemplate"] for item in templates] == ["note://named/{name}"]
    read = send("resources/read", {"uri": "note://named/Ada"})["result"]["contents"]
    assert [item["text"] for item in read] == ["hello Ada"]
    assert [item["name"] for item in send("prompts/list")["result"]["prompts"]] == ["greet"]
    messages = send("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}})["result"]["messages"]
    assert messages[0]["content"]["text"] == "Say hello to Ada."
    wanted = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": "A"}}
    assert send("completion/complete", wanted)["result"]["completion"]["values"] == ["Ada", "Adele", "Alan"]


def rounds(peer: RawPeer, params: Dict[str, Any]) -> Dict[str, Any]:
    """A modern call with its ``input_required`` rounds."""
    answer = peer.modern("tools/call", params)
    while answer["result"].get("resultType") == "input_required":
        result = answer["result"]
        given = {key: ANSWERS[asked["method"]](asked) for key, asked in result["inputRequests"].items()}
        state = {"requestState": result["requestState"]} if "requestState" in result else {}
        answer = peer.modern("tools/call", {**params, **state, "inputResponses": given})
    return answer
