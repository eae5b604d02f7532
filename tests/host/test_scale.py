"""Two hundred servers with fifty tools each."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from mcpsync import ConfigError, Host
from mcpsync.export import FORMATS
from mcpsync.host.catalog import Shelf, Table
from mcpsync.transport.memory import StreamServer
from mcpsync.types import Tool
from tests.host.inside import inside

SERVERS, TOOLS = 200, 50
pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")


def resident() -> float:
    """Megabytes of this process in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def a_tool(server: int, number: int) -> Dict[str, Any]:
    return {
        "name": "tool_%d" % number,
        "description": "Does thing %d of server %d, with care." % (number, server),
        "inputSchema": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "where"},
                "count": {"type": "integer"},
                "flags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["path"],
        },
    }


def servers() -> Dict[str, StreamServer]:
    return {
        "server%d" % server: inside([a_tool(server, number) for number in range(TOOLS)]) for server in range(SERVERS)
    }


def best_of(times: int, work: Callable[[], Any]) -> float:
    """Seconds of the quickest run: what others do on the machine only slows it down."""
    found: List[float] = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        found.append(time.perf_counter() - started)
    return min(found)


def measure() -> None:
    """Print what it costs; in a process of its own, whose memory nothing else has used."""
    with Host.from_config(
        {"mcpServers": {}}, protocol="2025-06-18", schema_cache=False, approve=lambda _: "once"
    ) as host:
        host.export_tools("openai")
        inner = servers()
        before = resident()
        started = time.perf_counter()
        host.connect_all(inner, "host", namespace="big")
        connected = time.perf_counter() - started
        tools = len(host.tools(ready_only=True))
        while any(thread.name.startswith("mcpsync-host-connect") for thread in threading.enumerate()):
            threading.Event().wait(0.1)  # threads that connected end when they have been idle for a while
        memory = resident() - before
        exports = {}
        for form in sorted(FORMATS):
            assert len(host.export_tools(form)) == SERVERS * TOOLS
            exports[form] = best_of(7, partial(host.export_tools, form))
        print(json.dumps({"connected": connected, "tools": tools, "memory": memory, "exports": exports}))


CREDIBLE = 2.0
"""A busy machine takes so many times as long: what takes longer still is a regression. Whether the promise itself (2 s,
50 ms) is kept is measured on a quiet machine: docs/performance.md."""


@pytest.mark.alone
@pytest.mark.timed
def test_a_table_of_ten_thousand_tools() -> None:
    """The better of two runs: what else the machine does only makes it worse."""
    command = [sys.executable, "-c", "from tests.host.test_scale import measure; measure()"]
    runs = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(2)]
    assert {run["tools"] for run in runs} == {SERVERS * TOOLS}
    assert min(run["connected"] for run in runs) < 2 * CREDIBLE
    assert min(run["memory"] for run in runs) <= 60
    assert {
        form: seconds for form in FORMATS if (seconds := min(run["exports"][form] for run in runs)) >= 0.05 * CREDIBLE
    } == {}


def table_of(count: int) -> Table:
    tools = [Tool.from_wire(a_tool(0, number)) for number in range(TOOLS)]
    names = ["server%d" % number for number in range(count)]
    return Table({name: Shelf(name, tools, ()) for name in names})


@pytest.mark.alone
@pytest.mark.timed
def test_looking_a_name_up_does_not_depend_on_how_many_there_are() -> None:
    small, large = table_of(2), table_of(SERVERS)

    def look(table: Table) -> Callable[[], None]:
        def often() -> None:
            for _ in range(5000):
                table.find("mcp__server1__tool_7")

        return often

    look(large)()
    assert best_of(7, look(large)) < 2 * best_of(7, look(small))


def test_one_change_costs_one_shelf() -> None:
    shelves = {name: Shelf(name, [Tool.from_wire(a_tool(0, 1))], ()) for name in ("a", "b")}
    one, other = Table(shelves), Table({**shelves, "c": Shelf("c", [], ())})
    assert [shelf for shelf, _ in one.shelves()] == [shelf for shelf, _ in other.shelves()][:2]


def test_a_wrong_name_among_many() -> None:
    with Host.from_config({"mcpServers": {}}, protocol="2025-06-18", approve=lambda _: "once") as host:
        host.connect_all({"s%d" % number: inside([a_tool(number, 1), a_tool(number, 2)]) for number in range(5)})
        with pytest.raises(ConfigError, match="did you mean mcp__s3__tool_2"):
            host.call_tool("mcp__s3__tol_2")


def test_what_was_exported_is_the_callers(tmp_path: Path) -> None:
    with Host.from_config({"mcpServers": {}}, protocol="2025-06-18", approve=lambda _: "once") as host:
        host.connect_all({"s": inside([a_tool(0, 0)])})
        first = host.export_tools("anthropic")
        before = json.dumps(first)
        first[0]["cache_control"] = {"type": "ephemeral"}
        first[0]["input_schema"]["properties"]["path"]["type"] = "number"
        assert json.dumps(host.export_tools("anthropic")) == before
        assert host.tools()[0].definition.input_schema["properties"]["path"]["type"] == "string"


def test_names_that_collide_across_servers_are_given_to_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpsync.host.names.exposed_name", lambda server, tool: "mcp__" + tool)
    tools = [Tool.from_wire({"name": name, "inputSchema": {"type": "object"}}) for name in ("same", "own")]
    table = Table({"a": Shelf("a", tools[:1], ()), "b": Shelf("b", tools, ())})
    assert [row.name for row in table.rows({"a": True, "b": True})] == ["mcp__own"]
    assert table.find("mcp__same") is None
    assert (table.count("a"), table.count("b"), len(table)) == (0, 1, 1)
    for server in ("a", "b"):
        assert table.refused(server) == ("same: another tool has the same name mcp__same for the model",)
