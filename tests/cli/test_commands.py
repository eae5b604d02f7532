"""Every command on the demo server, for people and for machines."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import DEMO, config, document, mcpsync

SERVER = [sys.executable, "-m", "mcpsync.demo"]


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["tools"], ["python: 10 tools", "  count(n, delay?)     Count to n and tell the progress"]),
        (["call", "add", "a=1", "b=2.5"], ['{"sum": 3.5}']),
        (["call", "echo", "text=5"], ["5"]),
        (["call", "echo", "--args", '{"text": "a\\nb"}'], ["a", "b"]),
        (["resources"], ["python: 4 resources, 1 template", "  demo://greeting/{language}  greeting  text/plain"]),
        (["read", "demo://hello"], ["Hello from a server in plain Python."]),
        (["read", "demo://dot"], ["[image/png: 70 bytes]"]),
        (["prompts"], ["python: 1 prompt", "  story(hero, mood?)  Ask for a short story."]),
        (["prompt", "story", "hero=5"], ["[user]", "Tell a calm story about 5."]),
        (["ping"], ["python: answered in "]),
        (["info", "--protocol", "2025-06-18"], ["python: mcpsync-demo 1.0.0", "  protocol      2025-06-18"]),
    ],
)
def test_what_people_see(arguments: Any, lines: Any) -> None:
    done = mcpsync(*arguments, *DEMO)
    assert (done.returncode, done.stderr) == (0, "")
    shown = done.stdout.splitlines()
    for line in lines:
        assert any(each.startswith(line) for each in shown), shown
    assert not any(line.endswith(" ") for line in shown)


def test_what_machines_see_of_a_listing() -> None:
    (entry,) = document("tools", *DEMO)["servers"]
    assert entry["server"] == "python"
    assert entry["tools"][1] == {
        "name": "echo",
        "description": "Say the text again.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    }
    (entry,) = document("resources", *DEMO)["servers"]
    assert [len(entry["resources"]), len(entry["resource_templates"])] == [4, 1]
    (entry,) = document("prompts", *DEMO)["servers"]
    assert entry["prompts"][0]["name"] == "story"
    (entry,) = document("ping", *DEMO)["servers"]
    assert entry["ms"] > 0
    (entry,) = document("info", *DEMO)["servers"]
    assert set(entry) == {"server", "protocol", "server_info", "capabilities", "instructions", "connect_ms"}
    assert entry["server_info"] == {"name": "mcpsync-demo", "version": "1.0.0"}


def test_what_machines_see_of_an_action() -> None:
    found = document("call", "add", "a=1", "b=2", *DEMO)
    assert (found["server"], found["tool"], found["is_error"]) == ("python", "add", False)
    assert found["result"]["structuredContent"] == {"sum": 3}
    found = document("call", "fail", *DEMO, code=1)
    assert found["is_error"] is True
    assert found["result"]["content"] == [{"type": "text", "text": "this tool always fails"}]
    found = document("read", "demo://dot", *DEMO)
    assert found["uri"] == "demo://dot"
    assert found["result"]["contents"][0]["blob"].startswith("iVBOR")
    found = document("prompt", "story", "hero=Ada", *DEMO)
    assert found["prompt"] == "story"
    assert found["result"]["messages"][0]["role"] == "user"


def test_what_machines_see_of_an_error() -> None:
    found = document("read", "demo://nope", "--protocol", "legacy", *DEMO, code=4)
    assert found["uri"] == "demo://nope"
    assert found["error"]["type"] == "ResourceNotFound"
    assert (found["error"]["code"], found["error"]["data"]) == (-32002, {"uri": "demo://nope"})
    assert document("call", "ad", *DEMO, code=2)["error"]["message"].endswith("(did you mean 'add'?)")
    assert document("tools", code=2)["error"]["type"] == "ConfigError"


def test_args_come_from_stdin() -> None:
    done = mcpsync("call", "add", "--args", "-", *DEMO, input='{"a": 1, "b": 1}')
    assert (done.returncode, done.stdout) == (0, '{"sum": 2}\n')


def test_verbose_tells_on_stderr_what_the_server_logs() -> None:
    done = mcpsync("call", "count", "n=1", "delay=0", "--verbose", *DEMO)
    assert done.stdout == "counted to 1\n"
    assert "logs (info): counting to 1" in done.stderr


def test_an_elicitation_is_declined_where_nobody_can_be_asked() -> None:
    done = mcpsync("call", "greet", *DEMO)
    assert (done.returncode, done.stdout) == (0, "No name, no greeting.\n")
    assert done.stderr == "mcpsync: server 'python' asks: What is your name? (declined: no terminal)\n"


def test_all_servers_of_a_file_are_listed_and_one_that_fails_takes_no_other_down(tmp_path: Path) -> None:
    servers = {"good": SERVER, "bad": ["no-such-program"], "off": SERVER, "few": SERVER}
    file = config(tmp_path, servers, off={"disabled": True}, few={"tools_include": ["e*"]})
    done = mcpsync("tools", "--config", file)
    assert done.returncode == 3
    shown = done.stdout.splitlines()
    assert [line for line in shown if not line.startswith(" ")] == ["good: 10 tools", "few: 1 tool"]
    assert done.stderr.startswith("mcpsync: server 'bad': cannot start the server: command 'no-such-program' not found")

    entries = document("tools", "--config", file, code=3)["servers"]
    assert [entry["server"] for entry in entries] == ["good", "bad", "few"]
    assert entries[1]["error"]["exit_code"] == 3
    assert [tool["name"] for tool in entries[2]["tools"]] == ["echo"]

    for words in (["ping", "--server", "good"], ["call", "echo", "text=a", "--server", "few"]):
        assert mcpsync(*words, "--config", file).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["call", "add"], "mcp.json: call needs one server: say which with --server NAME (one, two)"),
        (["ping", "--server", "tow"], "mcp.json: has no server 'tow' (did you mean 'two'?)"),
        (["ping", "--server", "off"], "mcp.json: server 'off' is disabled"),
        (["call", "add", "--server", "two"], "tool 'add' is not among those that the config file lets through"),
    ],
)
def test_the_wrong_server_of_a_file(tmp_path: Path, arguments: Any, message: str) -> None:
    servers = {"one": SERVER, "two": SERVER, "off": SERVER}
    file = config(tmp_path, servers, off={"disabled": True}, two={"tools_exclude": ["add"]})
    done = mcpsync(*arguments, "--config", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


def test_a_config_file_is_heard_out_about_what_is_odd_in_it(tmp_path: Path) -> None:
    file = config(tmp_path, {"one": SERVER, "two": SERVER}, one={"timout": 5}, two={"timout": 5, "alwaysAllow": []})
    done = mcpsync("ping", "--config", file, "--server", "two")
    assert done.returncode == 0
    assert done.stderr == (
        "mcpsync: warning: %s:1: mcpServers.two.timout: unknown key (did you mean 'timeout'?)\n" % file
    )


def test_a_server_with_an_error_in_the_file_is_named(tmp_path: Path) -> None:
    file = config(tmp_path, {"one": SERVER, "two": ["x", "${NOT_SET_ANYWHERE}"], "web": ["x"]})
    data = json.loads(Path(file).read_text(encoding="utf-8"))
    data["mcpServers"]["web"] = {"url": "https://example.com/mcp"}
    Path(file).write_text(json.dumps(data), encoding="utf-8")
    entries = document("ping", "--config", file, code=2)["servers"]
    assert "ms" in entries[0]
    assert "NOT_SET_ANYWHERE" in entries[1]["error"]["message"]
    assert entries[2]["error"]["type"] == "ConnectFailed"


def test_a_file_without_servers(tmp_path: Path) -> None:
    done = mcpsync("tools", "--config", config(tmp_path, {}))
    assert done.returncode == 2
    assert done.stderr.endswith("no server is enabled\n")
    done = mcpsync("tools", "--config", str(tmp_path / "none.json"))
    assert done.returncode == 2
    assert done.stderr.endswith("none.json: there is no such file\n")


def test_timeouts_of_the_file_hold_and_the_option_wins(tmp_path: Path) -> None:
    file = config(tmp_path, {"one": SERVER}, one={"timeout": 0.5})
    done = mcpsync("call", "slow", "seconds=20", "--config", file)
    assert (done.returncode, "within 0.5 s" in done.stderr) == (5, True)
    done = mcpsync("call", "slow", "seconds=0.7", "--config", file, "--timeout", "9")
    assert (done.returncode, done.stdout) == (0, "slept for 0.7 seconds\n")


def test_a_result_is_held_against_its_schema_if_wanted() -> None:
    pytest.importorskip("jsonschema_specifications")
    done = mcpsync("call", "add", "a=1", "b=2.5", "--validate", *DEMO)
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"sum": 3.5}\n', "")
    done = mcpsync("call", "add", "--validate", "--args", '{"a": "x", "b": 2}', *DEMO)
    assert (done.returncode, done.stdout) == (2, "")
    assert "tool 'add': the arguments at /a: type: expected number, got a string of 1 character" in done.stderr
