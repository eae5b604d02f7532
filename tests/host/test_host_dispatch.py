"""A model's tool calls through the host: one message for each, whatever went wrong."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, Iterator, List

import pytest

from mcpsync import Host, Timeouts
from mcpsync.config import load
from mcpsync.export import reading
from tests.host.inside import inside, tool
from tests.host.watching import DEMO, QUICK, entry, host_of, row
from tests.peers.scripted import peer


def tool_call(name: str, arguments: Any = None, id: str = "call_1") -> Dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return {"id": id, "type": "function", "function": {"name": name, "arguments": text}}


@pytest.fixture
def demo() -> Iterator[Host]:
    with host_of({"demo": DEMO}) as host:
        yield host


def test_a_scripted_model_reaches_its_answer(demo: Host) -> None:
    """The loop that an agent runs: tools out, calls in, messages back, until the model has an answer."""

    def model(messages: List[Dict[str, Any]], tools: List[Dict[str, Any]]) -> Dict[str, Any]:
        offered = {tool["function"]["name"]: tool["function"] for tool in tools}
        results = [message["content"] for message in messages if message["role"] == "tool"]
        if not results:
            assert offered["mcp__demo__add"]["parameters"]["required"] == ["a", "b"]
            calls = [tool_call("mcp__demo__add", {"a": 19, "b": 23}), tool_call("mcp__demo__fail", id="call_2")]
            return {"role": "assistant", "tool_calls": calls}
        if len(results) == 2:
            total = json.loads(results[0])["sum"]
            return {"role": "assistant", "tool_calls": [tool_call("mcp__demo__echo", {"text": "it is %d" % total})]}
        return {"role": "assistant", "content": results[-1]}

    messages: List[Dict[str, Any]] = [{"role": "user", "content": "19 + 23?"}]
    while True:
        answer = model(messages, demo.export_tools("openai"))
        messages.append(answer)
        if "content" in answer:
            break
        messages += [demo.dispatch("openai", call) for call in answer["tool_calls"]]
    assert answer["content"] == "it is 42"
    assert messages[3] == {"role": "tool", "tool_call_id": "call_2", "content": "Error: this tool always fails"}


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (tool_call("mcp__demo__nothing"), "Error: there is no tool 'mcp__demo__nothing'"),
        (tool_call("echo"), "Error: there is no tool 'echo'; did you mean mcp__demo__echo"),
        (tool_call("mcp__demo__echo", '{"text": '), "Error: The arguments of mcp__demo__echo are not valid JSON"),
        (tool_call("mcp__demo__echo", "[]"), "Error: The arguments of mcp__demo__echo are valid JSON, but no object"),
        (tool_call("mcp__demo__echo", {"txet": "x"}), "Error: the argument 'text' is missing"),
        (tool_call("x" * 100_000), "Error: there is no tool 'xxx"),
    ],
)
def test_what_the_model_does_wrong_becomes_a_message(demo: Host, call: Dict[str, Any], answer: str) -> None:
    message = demo.dispatch("openai", call)
    assert message["role"] == "tool"
    assert message["tool_call_id"] == "call_1"
    assert message["content"].startswith(answer)
    assert len(message["content"]) < 500


def test_a_lone_surrogate_travels_and_comes_back(demo: Host) -> None:
    assert demo.dispatch("openai", tool_call("mcp__demo__echo", '{"text": "\\ud800"}'))["content"] == "\ud800"


def test_arguments_nested_too_deeply_are_the_models_mistake(demo: Host) -> None:
    deep = '{"text": %s1%s}' % ("[" * 100_000, "]" * 100_000)
    assert demo.dispatch("openai", tool_call("mcp__demo__echo", deep))["content"].startswith("Error: The arguments")


def test_arguments_that_can_be_read_and_not_written_are_the_models_mistake(
    demo: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the limits of reading and writing are differs by interpreter: here writing is the narrower one."""
    circle: Dict[str, Any] = {}
    circle["text"] = circle
    monkeypatch.setattr(reading.json, "loads", lambda text, **options: circle)
    assert demo.dispatch("openai", tool_call("mcp__demo__echo"))["content"].startswith(
        "Error: The arguments cannot be sent:"
    )


def test_f4_a_tool_that_takes_too_long_is_told_and_the_next_call_works(demo: Host) -> None:
    slow = demo.dispatch("openai", tool_call("mcp__demo__slow", {"seconds": 60}), timeout=0.2)
    assert slow["content"].startswith("Error: server 'demo': tools/call")
    assert slow["content"].endswith("; the call was cancelled")
    assert demo.dispatch("openai", tool_call("mcp__demo__echo", {"text": "next"}))["content"] == "next"


def test_what_the_server_does_wrong_becomes_a_message(tmp_path: Any) -> None:
    server = peer(tmp_path)
    with host_of({"peer": entry(server.command)}, backoff=QUICK) as host:

        def content(name: str, **arguments: Any) -> str:
            return str(host.dispatch("openai", tool_call("mcp__peer__" + name, arguments))["content"])

        assert content("error", code=-32000, message="out of paper").startswith("Error: server 'peer': tools/call")
        assert "out of paper" in content("error", code=-32000, message="out of paper")
        assert content("result_type", value="odd").startswith("Error: server 'peer'")
        died = content("die", code=3, stderr="no more ink")
        assert died.startswith("Error: server 'peer'")
        assert "3" in died
        assert "the server may have executed it" in died


def test_a_server_that_is_gone_is_told_at_once(tmp_path: Any) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    server = peer(tmp_path)
    guarded = ["/bin/sh", "-c", 'test -e "$0" || exit 5; exec "$@"', str(gate), *server.command]
    with host_of({"peer": entry(guarded)}) as host:
        gate.unlink()
        host.dispatch("openai", tool_call("mcp__peer__die"))
        message = host.dispatch("openai", tool_call("mcp__peer__echo", {"text": "x"}))
        assert message["content"].startswith("Error: server 'peer': tools/call: not connected: ")
        assert host.export_tools("openai") == []
        assert row(host, "peer").state in ("waiting", "connecting")


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda host: host.dispatch("opanai", tool_call("x")), ValueError),
        (lambda host: host.export_tools("opanai"), ValueError),
        (lambda host: host.dispatch("openai", {"id": "1"}), TypeError),
        (lambda host: host.dispatch("openai", [tool_call("x")]), TypeError),
        (lambda host: host.dispatch("openai", tool_call("mcp__demo__echo"), timeout=-1), ValueError),
    ],
)
def test_what_the_program_does_wrong_is_raised(demo: Host, use: Callable[[Host], Any], error: type) -> None:
    with pytest.raises(error):
        use(demo)


def test_timeouts_may_be_given_whole_or_lifted(demo: Host) -> None:
    call = tool_call("mcp__demo__slow", {"seconds": 0.1})
    assert demo.dispatch("openai", call, timeout=None)["content"] == "slept for 0.1 seconds"
    assert demo.dispatch("openai", call, timeout=Timeouts(call=5))["content"] == "slept for 0.1 seconds"


def test_results_are_rendered_for_the_model(tmp_path: Any) -> None:
    def show(server: Any, request: Any) -> Any:
        blocks = [{"type": "text", "text": "look:"}, {"type": "image", "data": "", "mimeType": "image/png"}]
        return {"content": blocks, "structuredContent": {"n": 1}, "resultType": "complete"}

    with host_of({"peer": entry(peer(tmp_path, show).command)}) as host:
        message = host.dispatch("openai", tool_call("mcp__peer__show"))
        assert message["content"] == 'look:\n[image: image/png]\n[structuredContent]\n{\n  "n": 1\n}'


def test_annotations_and_titles_are_passed_on() -> None:
    hints = {"title": "Files, all", "readOnlyHint": True, "openWorldHint": False}
    with Host(load({"mcpServers": {}})) as host:
        host.connect_all({"files": inside([tool("list", title="List files", annotations=hints)])})
        listed = host.tools()[0]
        assert (listed.name, listed.definition.title) == ("mcp__files__list", "List files")
        assert listed.definition.annotations is not None
        assert listed.definition.annotations.to_wire() == hints
        assert listed.risk == "exec"  # a stranger's hint lowers nothing
