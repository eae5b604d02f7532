"""The scan and the check of schemas leave real servers alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List

import pytest

import mcpsync
from mcpsync.host.scan import scan, scan_tool
from mcpsync.host.schema_check import schema_problem

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

PEERS = ["everything_command", "filesystem_command", "mcp2_command", "mcp1_command", "fastmcp4_command"]


@pytest.mark.parametrize("peer", PEERS)
def test_real_servers_have_no_finding(peer: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    found: Any = request.getfixturevalue(peer)
    command: List[str] = found(tmp_path) if callable(found) else found
    with mcpsync.connect(command, name="peer") as client:
        tools = client.list_tools()
        assert tools
        assert [(tool.name, scan_tool(tool)) for tool in tools if scan_tool(tool)] == []
        problems = [(tool.name, schema_problem(tool.input_schema)) for tool in tools]
        assert [each for each in problems if each[1]] == []
        for listing in (client.list_prompts(), client.list_resources(), client.list_resource_templates()):
            assert scan([each.to_wire() for each in listing]) == []
