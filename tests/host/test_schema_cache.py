"""The tools of the last time, shown before a server is up."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from mcpsync import Host
from mcpsync.config import ServerConfig
from mcpsync.host.schema_cache import SchemaCache, fingerprint
from mcpsync.types import Tool
from tests.host.watching import DEMO, entry, names, row
from tests.peers.scripted import peer

SERVER = ServerConfig("a", transport="stdio", command=("server", "--key", "secret-value"), env={"TOKEN": "t0ken"})
TOOLS = [
    Tool.from_wire({"name": "x", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}, "y": 1})
]


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.json"))


def written(state_folder: Path) -> list[Path]:
    """The files of the cache, once there are some: they are written after all who wait have been told."""
    while not files(state_folder / "schemas"):
        pass
    return files(state_folder / "schemas")


def test_memory_first_then_the_disk(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "schemas"
    key = fingerprint(SERVER)
    cache = SchemaCache(folder=str(folder))
    assert cache.recall(key) is None
    cache.remember(key, TOOLS)
    (file,) = files(folder)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert SchemaCache(folder=str(folder)).recall(key) == tuple(TOOLS)
    file.unlink()
    assert cache.recall(key) == tuple(TOOLS)
    cache.forget(key)
    assert cache.recall(key) is None


def test_forgotten_on_the_disk_too(tmp_path: Path) -> None:
    cache = SchemaCache(folder=str(tmp_path))
    cache.remember("k", TOOLS)
    cache.forget("k")
    assert files(tmp_path) == []
    cache.forget("k")


@pytest.mark.parametrize(
    "damage",
    ["", "{", "[]", "{}", '{"format": 2, "tools": []}', '{"format": 1}', '{"format": 1, "tools": [{}]}', "\udc80"],
)
def test_a_damaged_file_is_none(tmp_path: Path, damage: str) -> None:
    (tmp_path / "k.json").write_text(damage, errors="surrogateescape")
    cache = SchemaCache(folder=str(tmp_path))
    assert cache.recall("k") is None
    cache.remember("k", TOOLS)
    assert SchemaCache(folder=str(tmp_path)).recall("k") == tuple(TOOLS)


def test_a_folder_that_cannot_be_written_costs_the_cache_alone(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    cache = SchemaCache(folder=str(blocked / "schemas"))
    cache.remember("k", TOOLS)
    assert cache.recall("k") == tuple(TOOLS)


def test_nothing_on_the_disk_if_it_is_switched_off(tmp_path: Path) -> None:
    cache = SchemaCache(on_disk=False, folder=str(tmp_path))
    cache.remember("k", TOOLS)
    assert cache.recall("k") == tuple(TOOLS)
    cache.forget("k")
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    "change",
    [
        {"command": ("server",)},
        {"env": {"TOKEN": "other"}},
        {"cwd": "/"},
        {"url": "https://example.com"},
        {"headers": {"A": "b"}},
        {"auth": {"scope": "x"}},
        {"transport": "http"},
        {"protocol": "legacy"},
        {"env_mode": "none"},
    ],
)
def test_another_connection_has_another_fingerprint(change: dict) -> None:  # type: ignore[type-arg]
    assert fingerprint(replace(SERVER, **change)) != fingerprint(SERVER)


def test_what_is_no_part_of_the_connection_is_no_part_of_the_fingerprint() -> None:
    other = replace(SERVER, name="b", timeout=5.0, tools_include=("x",), trust_level="trusted")
    assert fingerprint(other) == fingerprint(SERVER)
    assert fingerprint(SERVER).isalnum()


def test_a_host_shows_the_tools_of_the_last_time(tmp_path: Path, state_folder: Path) -> None:
    server = peer(tmp_path)
    gate = tmp_path / "gate"
    script = 'test -e "$0" || exit 5; exec "$@"'
    servers = {"peer": entry(["/bin/sh", "-c", script, str(gate), *server.command], tools_exclude=["changed"])}
    gate.touch()
    with Host.from_config({"mcpServers": servers}) as host:
        listed = names(host)
        assert len(written(state_folder)) == 1
    gate.unlink()
    with Host.from_config({"mcpServers": servers}) as host:
        assert [tool.name for tool in host.tools()] == listed
        assert names(host) == []
        assert host.export_tools("openai") == []
        assert [each["function"]["name"] for each in host.export_tools("openai", ready_only=False)] == listed
        assert row(host, "peer").tools == len(listed)
        host.disconnect("peer")
        assert files(state_folder / "schemas") == []
    with Host.from_config({"mcpServers": servers}) as host:
        assert host.tools() == []


def test_reconnect_forgets_and_learns_anew(state_folder: Path) -> None:
    with Host.from_config({"mcpServers": {"demo": DEMO}}) as host:
        (file,) = written(state_folder)
        os.utime(file, (1, 1))
        host.reconnect("demo")
        host.close()
    assert file.stat().st_mtime > 1
    assert "echo" in json.dumps(json.loads(file.read_text()))


def test_the_cache_can_be_switched_off(state_folder: Path) -> None:
    with Host.from_config({"mcpServers": {"demo": DEMO}}, schema_cache=False) as host:
        assert names(host)
    assert not (state_folder / "schemas").exists()
