"""All five servers from one config file, and a scripted model that calls a tool of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from mcpsync import Host
from mcpsync.host import approve_all
from tests.interop.side import Side

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

Message = Dict[str, Any]


@pytest.fixture
def config(
    tmp_path: Path,
    everything_command: List[str],
    filesystem_command: Callable[[Path], List[str]],
    mcp2_command: List[str],
    mcp1_command: List[str],
    fastmcp4_command: List[str],
) -> Path:
    """A config file that names them all."""
    folder = tmp_path.resolve() / "folder"
    folder.mkdir()
    commands = {
        "everything": everything_command,
        "files": filesystem_command(folder),
        "mcp2": mcp2_command,
        "mcp1": mcp1_command,
        "fastmcp4": fastmcp4_command,
    }
    servers = {name: {"command": command[0], "args": command[1:]} for name, command in commands.items()}
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    return file


class ScriptedModel:
    """A model that does one step after the other, each with what the one before it brought."""

    def __init__(self, *steps: Callable[[str], Any]) -> None:
        self._steps = list(steps)

    def answer(self, messages: List[Message], tools: List[Message]) -> Message:
        """The next assistant message: a tool call, or the last words."""
        brought = messages[-1]["content"]
        if not self._steps:
            return {"role": "assistant", "content": brought}
        name, arguments = self._steps.pop(0)(brought)
        offered = {tool["function"]["name"]: tool["function"] for tool in tools}
        assert set(offered[name]["parameters"].get("required", [])) <= set(arguments)
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {"role": "assistant", "tool_calls": [{"id": "call", "type": "function", "function": function}]}


def test_a_model_uses_a_tool_of_each(config: Path) -> None:
    note = str(config.parent.resolve() / "folder" / "note.txt")
    model = ScriptedModel(
        lambda question: ("mcp__everything__get-sum", {"a": 1, "b": 2}),
        lambda text: ("mcp__mcp2__add", {"a": int(text.rstrip(".").split()[-1]), "b": 10}),
        lambda text: ("mcp__mcp1__echo", {"text": "it is %d" % int(text)}),
        lambda text: ("mcp__fastmcp4__sample", {"prompt": text}),
        lambda text: ("mcp__files__write_file", {"path": note, "content": text}),
        lambda text: ("mcp__files__read_text_file", {"path": note}),
        lambda text: ("mcp__mcp2__ask", {}),
    )
    side, messages = Side(), [{"role": "user", "content": "What is 1 + 2 + 10?"}]
    with Host.from_config(
        config,
        sampling=side.sampling,
        elicitation=side.elicitation,
        approve=approve_all,
        approve_request=lambda request: True,
    ) as host:
        rows = {row.name: row for row in host.status()}
        assert {name: (row.state, row.error) for name, row in rows.items()} == dict.fromkeys(rows, ("ready", None))
        assert len(rows) == 5
        revisions = {name: host.client(name).protocol_version for name in rows}
        modern, legacy = "2026-07-28", "2025-11-25"
        expected = {"everything": legacy, "files": legacy, "mcp2": modern, "mcp1": legacy, "fastmcp4": modern}
        assert revisions == expected
        while True:
            answer = model.answer(messages, host.export_tools("openai"))
            messages.append(answer)
            if "content" in answer:
                break
            messages += [host.dispatch("openai", call) for call in answer["tool_calls"]]
    contents = [message["content"] for message in messages if message["role"] == "tool"]
    assert Path(note).read_text() == "m1: pong"
    assert side.sampled[0].messages[0].text == contents[2]
    assert "it is 13" in contents[2]
    assert "m1: pong" in contents[-2]
    assert "accept Ada False" in answer["content"]
    assert not [content for content in contents if content.startswith("Error")]
