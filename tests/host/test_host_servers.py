"""Servers that are added, taken away, started anew, and changed by a new config, one without the others."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

from mcpsync import ClientClosed, ConfigError, Host
from mcpsync.config import ServerConfig, load
from tests.host.inside import inside
from tests.host.watching import DEMO, QUICK, Watch, entry, names, row
from tests.peers.scripted import peer


def empty(**options: Any) -> Host:
    """A host without servers."""
    return Host.from_config({"mcpServers": {}}, approve=lambda _: "once", **options)


# --- connect_all, and where servers come from


def test_servers_of_three_sources() -> None:
    with Host.from_config({"mcpServers": {"mine": DEMO}}, approve=lambda _: "once") as host:
        assert [each.name for each in host.connect_all({"tools": inside()}, "host", namespace="app")] == ["app__tools"]
        host.connect_all({"tools": inside()}, "plugin", namespace="weather")
        found = {each.name: (each.source, each.state) for each in host.status()}
        assert found == {
            "mine": ("user", "ready"),
            "app__tools": ("host", "ready"),
            "weather__tools": ("plugin", "ready"),
        }
        app, weather = (tool.name for tool in host.tools() if tool.server != "mine")
        assert app.startswith("mcp__app__tools__echo_")
        assert json.loads(host.call_tool(weather, {"text": "x"}).text) == {"name": "echo", "arguments": {"text": "x"}}


def test_a_file_cannot_say_where_its_servers_come_from() -> None:
    with Host.from_config(
        {"mcpServers": {"mine": {**DEMO, "source": "host", "enabled": False}}}, approve=lambda _: "once"
    ) as host:
        assert row(host, "mine").source == "user"


@pytest.mark.parametrize(
    ("servers", "source", "namespace", "message"),
    [
        ({"a": inside()}, "vendor", None, "source must be one of user, host, plugin, not 'vendor'"),
        ({"a": inside()}, "host", None, "servers of the source 'host': needs a namespace"),
        ({"a": inside()}, "user", "mine", "servers of the source 'user': takes no namespace"),
        ({"a": inside()}, "plugin", "a:b", "a namespace is made of letters, digits, '_' and '-', and this is 'a:b'"),
        ({"a.b": inside()}, "plugin", "p", "the name of a server of the source 'plugin' is made of letters"),
    ],
)
def test_wrong_sources_and_names(servers: Any, source: str, namespace: Any, message: str) -> None:
    host = empty()
    with pytest.raises(ConfigError, match=message):
        host.connect_all(servers, source, namespace=namespace)
    assert host.status() == []
    host.close()


def test_a_name_that_another_source_has() -> None:
    with empty() as host:
        host.connect_all({"b": inside()}, "plugin", namespace="a")
        for take in (host.connect_all, host.apply_config):
            with pytest.raises(ConfigError, match="the name 'a__b' is taken by a server of the source 'plugin'"):
                take({"a__b": inside()})
        assert [each.source for each in host.status()] == ["plugin"]


def test_all_that_servers_can_be_given_as(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"file": DEMO}}))
    typed = ServerConfig("x", transport="stdio", command=(DEMO["command"], *DEMO["args"]))
    with empty() as host:
        host.connect_all(file)
        host.connect_all(load({"mcpServers": {"config": DEMO}}))
        host.connect_all({"bare": DEMO, "typed": typed, "inside": inside()})
        host.connect_all({"mcpServers": {"layout": DEMO}})
        assert [(each.name, each.state, each.file) for each in host.status()] == [
            ("file", "ready", str(file)),
            ("config", "ready", None),
            ("bare", "ready", None),
            ("typed", "ready", None),
            ("inside", "ready", None),
            ("layout", "ready", None),
        ]


def test_a_server_that_cannot_be_started_costs_its_own_row() -> None:
    with empty() as host:
        rows = host.connect_all({"good": inside(), "bad": {"command": "no-such-program-anywhere"}})
        assert [(each.name, each.state) for each in rows] == [("good", "ready"), ("bad", "down")]
        assert "command 'no-such-program-anywhere' not found" in str(rows[1].error)


def test_the_first_servers_open_the_host() -> None:
    host = empty()
    try:
        assert [each.state for each in host.connect_all({"a": inside()})] == ["ready"]
        assert names(host) == ["mcp__a__echo"]
    finally:
        host.close()
    with pytest.raises(ClientClosed):
        host.connect_all({"b": inside()})


# --- disconnect, reconnect, config_of


def test_disconnect_takes_one_server_away(tmp_path: Path) -> None:
    server, watch = peer(tmp_path), Watch()
    servers = {"peer": entry(server.command), "demo": DEMO}
    with Host.from_config({"mcpServers": servers}, on_tools_changed=watch, approve=lambda _: "once") as host:
        before = host.revision
        host.disconnect("peer")
        with pytest.raises(ProcessLookupError):
            os.kill(server.pids()[0], 0)
        assert [each.name for each in host.status()] == ["demo"]
        assert all(name.startswith("mcp__demo__") for name in names(host))
        assert host.revision == before + 1
        watch.until(lambda: host.revision in watch.revisions)
        with pytest.raises(ConfigError, match="there is no tool 'mcp__peer__echo'"):
            host.call_tool("mcp__peer__echo")
        for ask in (host.disconnect, host.reconnect, host.config_of, host.client):
            with pytest.raises(ConfigError, match="there is no server 'peer'"):
                ask("peer")
        assert host.call_tool("mcp__demo__echo", {"text": "still"}).text == "still"


def test_reconnect_starts_it_anew(tmp_path: Path) -> None:
    server = peer(tmp_path)
    with Host.from_config(
        {"mcpServers": {"peer": entry(server.command), "demo": DEMO}}, approve=lambda _: "once"
    ) as host:
        other = host.client("demo")
        assert host.reconnect("peer").state == "ready"
        assert len(server.pids()) == 2
        assert host.client("demo") is other
        assert host.config_of("peer").command == tuple(server.command)
        assert host.call_tool("mcp__peer__echo", {"text": "x"}).text == "x"
        assert [each.name for each in host.status()] == ["peer", "demo"]


def test_reconnect_of_one_that_is_down(tmp_path: Path) -> None:
    program = tmp_path / "server"
    with Host.from_config({"mcpServers": {"late": {"command": str(program)}}}, approve=lambda _: "once") as host:
        assert row(host, "late").state == "down"
        program.write_text("#!/bin/sh\nexec '%s' -m mcpsync.demo\n" % sys.executable)
        program.chmod(0o755)
        assert host.reconnect("late").state == "ready"


# --- apply_config


def test_apply_config_touches_only_what_changed(tmp_path: Path) -> None:
    kept, changed, gone = (peer(tmp_path) for _ in range(3))
    file = tmp_path / "mcp.json"

    def write(**servers: Dict[str, Any]) -> None:
        file.write_text(json.dumps({"mcpServers": servers}))

    write(kept=entry(kept.command), changed=entry(changed.command), gone=entry(gone.command))
    with Host.from_config(file, approve=lambda _: "once") as host:
        host.connect_all({"plug": inside()}, "plugin", namespace="p")
        assert host.apply_config().kept == ("kept", "changed", "gone", "p__plug")
        write(new=DEMO, changed=entry(changed.command, timeout=7), kept=entry(kept.command))
        changes = host.apply_config()
        assert (changes.added, changes.changed, changes.removed) == (("new",), ("changed",), ("gone",))
        assert [len(server.pids()) for server in (kept, changed, gone)] == [1, 2, 1]
        assert {each.name: each.state for each in host.status()} == dict.fromkeys(
            ["p__plug", "new", "changed", "kept"], "ready"
        )
        assert host.config_of("changed").timeout == 7
        with pytest.raises(ProcessLookupError):
            os.kill(gone.pids()[0], 0)
        assert host.call_tool("mcp__kept__echo", {"text": "x"}).text == "x"


def test_apply_config_that_cannot_be_read_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"demo": DEMO}}))
    with Host.from_config(file, approve=lambda _: "once") as host:
        file.write_text("{")
        with pytest.raises(ConfigError):
            host.apply_config()
        assert row(host, "demo").ready


def test_apply_config_switches_a_server_off_and_on() -> None:
    with Host.from_config({"mcpServers": {"demo": DEMO}}, approve=lambda _: "once") as host:
        with pytest.raises(ConfigError, match="the host was not made of a file"):
            host.apply_config()
        host.apply_config({"mcpServers": {"demo": {**DEMO, "disabled": True}}})
        assert row(host, "demo").state == "disabled"
        assert host.tools() == []
        assert host.apply_config({"mcpServers": {"demo": DEMO}}).changed == ("demo",)
        assert row(host, "demo").ready


def test_two_threads_change_at_the_same_time() -> None:
    from threading import Barrier, Thread

    with empty() as host:
        start = Barrier(8)

        def add(number: int) -> None:
            start.wait()
            host.connect_all({"s%d" % number: inside()})

        threads = [Thread(target=add, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(names(host)) == ["mcp__s%d__echo" % number for number in range(8)]


# --- preflight


def test_what_can_be_known_beforehand_starts_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    script = tmp_path / "server"
    script.write_text("#!/bin/sh\ntouch '%s'\n" % mark)
    servers = {
        "npx": {"command": "npx", "args": ["-y", "x"], "env": {"PATH": str(tmp_path)}},
        "plain": {"command": str(script)},
        "folder": {"command": "sh", "cwd": str(tmp_path / "none")},
    }
    with Host.from_config({"mcpServers": servers}, backoff=QUICK, approve=lambda _: "once") as host:
        errors: List[str] = [str(each.error) for each in host.status()]
        assert [each.state for each in host.status()] == ["down"] * 3
    assert "command 'npx' not found; install Node.js (https://nodejs.org), which brings npx" in errors[0]
    assert "is not executable" in errors[1]
    assert "its working directory" in errors[2]
    assert not mark.exists()


def test_folders_that_a_program_brings_come_first_on_the_path(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "npx"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec '%s' -m mcpsync.demo\n" % sys.executable)
    program.chmod(0o755)
    servers = {"demo": {"command": "npx", "args": ["-y", "some-server"]}}
    with Host.from_config(
        {"mcpServers": servers}, path_prepend=[str(program.parent)], approve=lambda _: "once"
    ) as host:
        assert row(host, "demo").ready
