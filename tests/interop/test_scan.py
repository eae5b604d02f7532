"""The scan and the check of schemas leave real servers alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

import mcpsync
from mcpsync.host.scan import scan, scan_tool
from mcpsync.host.schema_check import schema_problem

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

PEERS = ["everything_command", "filesystem_command", "mcp2_command", "mcp1_command", "fastmcp4_command"]

# They want these to be there before they list their tools; none is used.
KEYS = (
    *(
        "GITHUB_PERSONAL_ACCESS_TOKEN",
        "GITLAB_PERSONAL_ACCESS_TOKEN",
        "SLACK_BOT_TOKEN",
        "SLACK_TEAM_ID",
        "NOTION_TOKEN",
    ),
    *("GOOGLE_MAPS_API_KEY", "BRAVE_API_KEY", "EVERART_API_KEY", "TAVILY_API_KEY", "AIRTABLE_API_KEY"),
    "PERPLEXITY_API_KEY",
)
AT_ONCE = 2


def _looked_through(command: List[str]) -> Tuple[int, List[Any]]:
    """How many tools a server has, and everything that is found in it."""
    timeouts = mcpsync.Timeouts(connect=60)
    with mcpsync.connect(command, name="peer", env=dict.fromkeys(KEYS, "none"), timeouts=timeouts) as client:
        tools = client.list_tools()
        found: List[Any] = [(tool.name, scan_tool(tool)) for tool in tools if scan_tool(tool)]
        found += [(tool.name, schema_problem(tool.input_schema)) for tool in tools if schema_problem(tool.input_schema)]
        for listing in (client.list_prompts(), client.list_resources(), client.list_resource_templates()):
            found += scan([each.to_wire() for each in listing])
        return len(tools), found


@pytest.mark.parametrize("peer", PEERS)
def test_real_servers_have_no_finding(peer: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    command: Any = request.getfixturevalue(peer)
    count, found = _looked_through(command(tmp_path) if callable(command) else command)
    assert count
    assert found == []


def test_servers_of_npm_and_pypi_have_no_finding(scanned_commands: Dict[str, List[str]]) -> None:
    assert len(scanned_commands) >= 20
    with ThreadPoolExecutor(AT_ONCE) as pool:
        seen = dict(zip(scanned_commands, pool.map(_looked_through, scanned_commands.values())))
    assert {package: found for package, (_, found) in seen.items() if found} == {}
    assert [package for package, (count, _) in seen.items() if not count] == []
    assert sum(count for count, _ in seen.values()) > 150
