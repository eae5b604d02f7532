"""The host: many servers at once, what is told of them, names, filters, options, pickling."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
import time
from pathlib import Path
from typing import Any, Dict, List

import pytest

import mcpsync
from mcpsync import ClientClosed, ConfigError, Host, Timeouts, ToolError
from mcpsync.config import load
from tests.host.watching import DEMO, QUICK, entry, host_of, names, row
from tests.peers.scripted import peer

HANGING = entry([sys.executable, "-S", "-c", "import sys; sys.stdin.read()"])


def test_lists_and_calls_the_tools_of_two_servers() -> None:
    with host_of({"one": DEMO, "two": DEMO}) as host:
        tools = host.tools()
        assert {tool.server for tool in tools} == {"one", "two"}
        assert [tool.tool for tool in tools if tool.server == "one"] == [
            tool.tool for tool in tools if tool.server == "two"
        ]
        echo = next(tool for tool in tools if tool.tool == "echo" and tool.server == "two")
        assert echo.name == "mcp__two__echo"
        assert echo.ready
        assert echo.definition.description == "Say the text again."
        assert host.call_tool("mcp__two__echo", {"text": "hello"}).text == "hello"
        assert host.call_tool("mcp__one__add", {"a": 1, "b": 2}).structured == {"sum": 3}
        assert host.client("one").read_resource("demo://hello").contents
        for status in host.status():
            assert (status.state, status.ready, status.tools) == ("ready", True, len(tools) // 2)
            assert status.error is None
            assert status.protocol_version == "2026-07-28"


def test_tools_stand_in_the_order_of_the_config_whoever_is_first() -> None:
    late = entry([sys.executable, "-c", "import time; time.sleep(0.5); from mcpsync.demo.__main__ import main; main()"])
    with host_of({"late": late, "early": DEMO}) as host:
        assert [tool.server for tool in host.tools()] == ["late"] * 10 + ["early"] * 10


@pytest.mark.timed
def test_h1_three_good_one_missing_one_hanging() -> None:
    servers = {"a": DEMO, "missing": {"command": "no-such-program"}, "b": DEMO, "hanging": HANGING, "c": DEMO}
    started = time.monotonic()
    with host_of(servers, connect_timeout=3) as host:
        assert time.monotonic() - started < 3.5
        assert {tool.server for tool in host.tools(ready_only=True)} == {"a", "b", "c"}
        missing, hanging = row(host, "missing"), row(host, "hanging")
        assert missing.state == "down"
        assert missing.next_attempt is None  # nothing but the user can mend it
        assert "'missing'" in str(missing.error)
        assert "'no-such-program' not found" in str(missing.error)
        assert hanging.state == "connecting"
        assert "'hanging'" in str(hanging.error)
        assert "not connected within 3 s" in str(hanging.error)
        assert host.call_tool("mcp__c__echo", {"text": "here"}).text == "here"


@pytest.mark.timed
def test_a_hanging_server_costs_its_own_connect_timeout_and_says_so() -> None:
    servers = {"good": DEMO, "hanging": {**HANGING, "connect_timeout": 0.5}}
    with host_of(servers, timeouts=Timeouts(connect=5)) as host:
        status = row(host, "hanging")
        assert not status.ready
        assert status.error is not None
        assert "did not answer" in status.error


def test_servers_that_are_not_started_have_rows_too() -> None:
    servers = {
        "good": DEMO,
        "off": {**DEMO, "disabled": True},
        "wrong": {"args": ["x"]},
        "unset": {**DEMO, "env": {"TOKEN": "${NO_SUCH_VARIABLE}"}},
        "remote": {"url": "https://user:secret@example.com/mcp?key=secret"},
        "elsewhere": {"url": "https://example.com/secret?key=secret", "disabled": True},
    }
    with host_of(servers, environ={}) as host:
        rows = {status.name: status for status in host.status()}
        assert list(rows) == list(servers)
        states = ["ready", "disabled", "invalid", "invalid", "invalid", "disabled"]
        assert [status.state for status in rows.values()] == states
        assert rows["off"].error is None
        assert "needs 'command'" in str(rows["wrong"].error)
        assert "NO_SUCH_VARIABLE" in str(rows["unset"].error)
        assert "credentials do not belong into a URL" in str(rows["remote"].error)
        assert rows["elsewhere"].target == "https://example.com"
        assert "secret" not in repr(rows)
        assert {tool.server for tool in host.tools()} == {"good"}
        with pytest.raises(ConfigError, match=r"'wrong' is not started: .*needs 'command'"):
            host.client("wrong")
        with pytest.raises(ConfigError, match="'off' is not started: disabled"):
            host.client("off")
        with pytest.raises(ConfigError, match=r"no server 'godo' \(did you mean 'good'\?\)"):
            host.client("godo")


def test_a_host_without_servers_is_of_no_use_and_no_harm() -> None:
    with host_of({}) as host:
        assert host.status() == host.tools() == host.export_tools("openai") == []


def test_from_a_file(tmp_path: Any) -> None:
    file = tmp_path / "mcp.yaml"
    file.write_text("servers:\n  demo:\n    command: ${PY}\n    args: [-m, mcpsync.demo]\n    timeout: 7\n")
    with Host.from_config(str(file), environ={"PY": sys.executable}, approve=lambda _: "once") as host:
        status = row(host, "demo")
        assert status.ready
        assert status.file == str(file)
        assert status.config.timeout == 7


def test_the_timeout_of_the_config_holds_for_calls() -> None:
    with host_of({"demo": {**DEMO, "timeout": 0.3}}) as host:
        with pytest.raises(mcpsync.RequestTimeout, match=r"0\.3 s"):
            host.call_tool("mcp__demo__slow", {"seconds": 30})
        assert host.call_tool("mcp__demo__slow", {"seconds": 0.4}, timeout=10).text == "slept for 0.4 seconds"


def test_call_tool_passes_progress_and_check() -> None:
    seen: List[float] = []
    with host_of({"demo": DEMO}, callbacks="caller") as host:
        host.call_tool(
            "mcp__demo__count", {"n": 3, "delay": 0}, on_progress=lambda progress: seen.append(progress.progress)
        )
        assert seen == [1, 2, 3]
        assert host.call_tool("mcp__demo__fail", check=False).is_error
        with pytest.raises(ToolError, match="always fails"):
            host.call_tool("mcp__demo__fail")


def test_an_unknown_tool_is_refused_with_the_nearest_names() -> None:
    with host_of({"demo": DEMO}) as host:
        with pytest.raises(ConfigError, match="'echo'; did you mean mcp__demo__echo"):
            host.call_tool("echo", {"text": "x"})
        with pytest.raises(ConfigError, match="did you mean mcp__demo__toggle"):
            host.call_tool("mcp__demo__togle")


# --- names and filters


def test_config_filters_by_own_names_and_the_host_by_exposed_ones() -> None:
    servers = {
        "one": {**DEMO, "tools_include": ["e*", "add"], "tools_exclude": ["echo"]},
        "two": {**DEMO, "tools_include": ["echo", "add"]},
    }
    with host_of(servers, exclude=["mcp__two__add", lambda name: name.endswith("never")]) as host:
        assert names(host) == ["mcp__one__add", "mcp__two__echo"]
        assert [status.tools for status in host.status()] == [1, 1]
    with host_of(servers, include="mcp__two__*") as host:
        assert names(host) == ["mcp__two__add", "mcp__two__echo"]


def test_a_rule_that_raises_costs_no_more_than_the_server() -> None:
    def rule(name: str) -> bool:
        if name.startswith("mcp__bad__"):
            raise KeyError("oops")
        return False

    with host_of({"bad": DEMO, "good": DEMO}, exclude=rule) as host:
        assert row(host, "bad").error is not None
        assert "KeyError: 'oops'" in str(row(host, "bad").error)
        assert {tool.server for tool in host.tools()} == {"good"}


def test_duplicates_and_reserved_names_are_refused_and_say_so(tmp_path: Any) -> None:
    def doubled(server: Any, request: Any, cursor: Any = None) -> Any:
        tool = {"name": "twice", "inputSchema": {"type": "object"}}
        return {"tools": [tool, tool, {**tool, "name": "mine"}, {**tool, "name": "ok"}]}

    server = peer(tmp_path, handlers={"tools/list": doubled})
    with host_of({"peer": entry(server.command)}, reserved=iter(["mcp__peer__mine"])) as host:
        assert names(host) == ["mcp__peer__twice", "mcp__peer__ok"]
        status = row(host, "peer")
        assert status.tools == 2
        assert status.refused == (
            "twice: the server lists a tool of this name twice",
            "mine: the name mcp__peer__mine is reserved by the host",
        )


def test_odd_names_get_a_hash_and_are_called_by_it(tmp_path: Any) -> None:
    def odd(server: Any, request: Any, cursor: Any = None) -> Any:
        listed = ["echo", "größe__%s" % ("x" * 80)]
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in listed]}

    def called(server: Any, request: Any, name: str, arguments: Any = None, **more: Any) -> Any:
        return {"content": [{"type": "text", "text": name}], "resultType": "complete"}

    server = peer(tmp_path, handlers={"tools/list": odd, "tools/call": called})
    with host_of({"a peer": entry(server.command)}) as host:
        found = names(host)
        assert len(set(found)) == 2
        for tool in host.tools():
            assert len(tool.name) <= 64
            assert host.call_tool(tool.name).text == tool.tool


# --- options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"elicitaton": print}, r"unknown option 'elicitaton' \(did you mean 'elicitation'\?\)"),
        ({"name": "x"}, "'name' is not for a host"),
        ({"observer": None}, "unknown option 'observer'"),
        ({"on_state": print}, "'on_state' must know its server: give it by for_server"),
        ({"connect_timeout": -1}, "connect_timeout must be a positive number"),
        ({"connect_timeout": "soon"}, "connect_timeout must be a positive number"),
        ({"timeouts": 5}, "timeouts takes a mcpsync.Timeouts, not int"),
        ({"elicitation_modes": [1]}, "elicitation_modes takes a list of strings, not a list of other things"),
        ({"log_level": "loud"}, "a log level is one of"),
        ({"for_server": lambda name: {"cwd": "/"}}, "'cwd' is not for a host"),
    ],
)
def test_wrong_options_are_named(options: Dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        host_of({"demo": DEMO}, **options)


def test_what_is_no_config_is_named() -> None:
    with pytest.raises(ConfigError, match=r"a host takes a mcpsync.config.Config, not dict: see Host.from_config"):
        Host({"mcpServers": {}})  # type: ignore[arg-type]


def test_a_root_may_begin_with_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    with host_of({"demo": DEMO}, roots=["~/project"]) as host:
        assert host.call_tool("mcp__demo__roots").text == (tmp_path / "project").as_uri()


def test_client_options_reach_the_servers_and_for_server_knows_which() -> None:
    states: Dict[str, List[str]] = {"one": [], "two": []}

    def for_server(name: str) -> Dict[str, Any]:
        return {"on_state": states[name].append, "elicitation": lambda request: {"name": "of " + name}}

    host = host_of(
        {"one": DEMO, "two": DEMO},
        for_server=for_server,
        roots=["file:///shared"],
        callbacks="caller",
        protocol="legacy",
    )
    with host:
        assert host.call_tool("mcp__one__greet").text == "Good day, of one!"
        assert host.call_tool("mcp__two__greet").text == "Good day, of two!"
        assert host.call_tool("mcp__two__roots").text == "file:///shared"
        assert row(host, "one").protocol_version == "2025-11-25"
    assert all("ready" in seen for seen in states.values())


# --- life


def test_the_first_use_opens_it() -> None:
    for use in (
        lambda host: host.tools(),
        lambda host: host.export_tools("openai"),
        lambda host: host.call_tool("mcp__demo__echo", {"text": "x"}),
        lambda host: host.dispatch("openai", {"id": "1", "function": {"name": "mcp__demo__echo"}}),
    ):
        host = host_of({"demo": DEMO})
        try:
            assert row(host, "demo").state == "new"
            use(host)
            assert row(host, "demo").ready
        finally:
            host.close()


def test_after_close_everything_says_so() -> None:
    host = host_of({"demo": DEMO})
    with host:
        assert repr(host) == "<mcpsync.Host: 1 of 1 servers ready>"
    assert repr(host) == "<mcpsync.Host: closed>"
    assert row(host, "demo").state == "closed"
    host.close()
    for use in (
        host.open,
        host.tools,
        lambda: host.export_tools("openai"),
        lambda: host.call_tool("mcp__demo__echo"),
        lambda: host.dispatch("openai", {"id": "1", "function": {"name": "mcp__demo__echo"}}),
        lambda: host.client("demo").ping(),
    ):
        with pytest.raises(ClientClosed):
            use()


def test_two_hosts_of_one_config_have_servers_of_their_own(tmp_path: Any) -> None:
    server = peer(tmp_path)
    config = load({"mcpServers": {"peer": entry(server.command)}})
    with Host(config, approve=lambda _: "once") as one, Host(config, approve=lambda _: "once") as two:
        assert len(server.alive()) == 2
        assert names(one) == names(two)
        one.close()
        assert two.call_tool("mcp__peer__echo", {"text": "still here"}).text == "still here"


def test_a10_pickles_while_it_is_new() -> None:
    host = host_of({"demo": {**DEMO, "tools_include": ["echo"]}}, reserved={"mcp__demo__bonus"}, backoff=QUICK)
    copy = pickle.loads(pickle.dumps(host))
    with copy:
        assert names(copy) == ["mcp__demo__echo"]
        with pytest.raises(TypeError, match="has been opened"):
            pickle.dumps(copy)
    with pytest.raises(TypeError, match="has been opened"):
        pickle.dumps(copy)
    host.close()


def _use_there(host: Host, answers: Any) -> None:
    with host:
        answers.put(host.call_tool("mcp__demo__echo", {"text": "from afar"}).text)


def test_a10_is_used_in_a_spawned_process() -> None:
    context = multiprocessing.get_context("spawn")
    answers = context.SimpleQueue()
    process = context.Process(target=_use_there, args=(host_of({"demo": DEMO}), answers))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert answers.get() == "from afar"
    process.close()
    answers.close()


def test_status_pickles() -> None:
    with host_of({"demo": DEMO, "missing": {"command": "no-such-program"}, "wrong": {}}) as host:
        rows = host.status()
        assert [status.error for status in pickle.loads(pickle.dumps(rows))] == [status.error for status in rows]
