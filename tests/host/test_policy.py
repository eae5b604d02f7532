"""Profiles, lists of names and the network policy: what starts, and what may be called."""

from __future__ import annotations

from typing import Optional

import pytest

from mcpsync.config import ServerConfig
from mcpsync.config.model import Policy
from mcpsync.errors import ConfigError
from mcpsync.host.policy import check_policy, server_obstacle, tool_obstacle

READ, WRITE = "mcp__files__read", "mcp__files__write"
PROGRAM = ServerConfig("files", "stdio", command=("files-server",))
REMOTE = ServerConfig("web", "http", url="https://mcp.example.com/mcp")
SOCKET = ServerConfig("local", "http", url="unix:///run/mcp.sock")


@pytest.mark.parametrize(
    ("policy", "reads", "writes"),
    [
        (Policy(), True, True),
        (Policy(profile="daemon"), False, False),
        (Policy(profile="public_gateway"), False, False),
        (Policy(profile="something else"), False, False),
        (Policy(profile="daemon", allow=(READ,)), True, False),
        (Policy(profile="public_gateway", allow=("mcp__files__*",)), True, True),
        (Policy(allow=(READ,)), True, True),
        (Policy(allow=(READ,), exclusive=True), True, False),
        (Policy(deny=(WRITE,)), True, False),
        (Policy(deny=("mcp__*",), allow=(READ,)), False, False),
        (Policy(profile="daemon", allow=("mcp__files__rea",)), False, False),
    ],
)
def test_tools(policy: Policy, reads: bool, writes: bool) -> None:
    assert (tool_obstacle(policy, READ) is None, tool_obstacle(policy, WRITE) is None) == (reads, writes)


@pytest.mark.parametrize("profile", ["daemon", "public_gateway"])
@pytest.mark.parametrize("name", ["mcp_resources", "mcp_prompts"])
def test_the_context_tools_are_denied_as_any_other(profile: str, name: str) -> None:
    said = tool_obstacle(Policy(profile=profile), name)
    assert said == "the profile %s denies all tools that are not allowed by name: add %s to tools.allow" % (
        profile,
        name,
    )
    assert tool_obstacle(Policy(profile=profile, allow=(name,)), name) is None


@pytest.mark.parametrize(
    ("policy", "server", "said"),
    [
        (Policy(), PROGRAM, None),
        (Policy(), REMOTE, None),
        (Policy(network="deny"), PROGRAM, None),
        (Policy(network="deny"), SOCKET, None),
        (Policy(network="deny"), REMOTE, "execution.networkPolicy"),
        (Policy(profile="public_gateway"), PROGRAM, "permissions.elevated"),
        (Policy(profile="public_gateway", elevated=True), PROGRAM, None),
        (Policy(profile="public_gateway"), REMOTE, None),
        (Policy(profile="daemon"), PROGRAM, None),
    ],
)
def test_servers(policy: Policy, server: ServerConfig, said: Optional[str]) -> None:
    obstacle = server_obstacle(policy, server)
    assert (obstacle is None) if said is None else (obstacle is not None and said in obstacle)


@pytest.mark.parametrize("wrong", [{"suspicious": "maybe"}, {"network": "yes"}, {"profile": ""}])
def test_settings_that_there_are_not(wrong: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="policy.%s" % next(iter(wrong))):
        check_policy(Policy(**wrong))  # type: ignore[arg-type]
