"""Ten servers in one config file: five over stdio, three over HTTP, one that is missing, one that hangs."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Set

import pytest

from mcpsync import Backoff, ConnectionLost, Host
from tests.conftest import child_processes
from tests.host.watching import Watch, row
from tests.interop.http_peers import node_peer, python_peer

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

DEADLINE = 30.0
STDIO = ("everything", "files", "mcp2", "mcp1", "fastmcp4")
HTTP = ("mcp2-http", "mcp1-http", "node2-http")
AT_ONCE = 0.1


def children(part: str) -> List[int]:
    """The ids of the children of this process whose command line has this in it."""
    return [pid for (pid, _), command in child_processes().items() if part in command]


@pytest.fixture
def config(
    tmp_path: Path,
    everything_command: List[str],
    filesystem_command: Callable[[Path], List[str]],
    mcp2_command: List[str],
    mcp1_command: List[str],
    fastmcp4_command: List[str],
) -> Iterator[Path]:
    """The file."""
    commands = (
        everything_command,
        filesystem_command(tmp_path.resolve()),
        mcp2_command,
        mcp1_command,
        fastmcp4_command,
    )
    servers: Dict[str, Any] = {name: {"command": each[0], "args": each[1:]} for name, each in zip(STDIO, commands)}
    servers["missing"] = {"command": "no-such-program-anywhere"}
    servers["hanging"] = {
        "command": sys.executable,
        "args": ["-c", "import sys; sys.stdin.read()"],
        "connect_timeout": DEADLINE / 2,
    }
    with ExitStack() as stack:
        started = (python_peer(mcp2_command), python_peer(mcp1_command), node_peer(everything_command))
        for name, peer in zip(HTTP, started):
            servers[name] = {"url": stack.enter_context(peer).url}
        for server in servers.values():
            server["trust_level"] = "trusted"
        file = tmp_path / "mcp.json"
        file.write_text(json.dumps({"mcpServers": servers}))
        yield file


def test_ten_servers(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPSYNC_HOME", str(tmp_path))
    watch = Watch()
    started = time.monotonic()
    with Host.from_config(
        config, connect_timeout=DEADLINE, backoff=Backoff((1, 1, 1, 1, 1)), on_tools_changed=watch
    ) as host:
        assert time.monotonic() - started < DEADLINE + 1
        rows = {each.name: each for each in host.status()}
        assert {name for name, each in rows.items() if each.ready} == {*STDIO, *HTTP}
        assert "command 'no-such-program-anywhere' not found" in str(rows["missing"].error)
        assert not rows["hanging"].ready
        assert "hanging" in str(rows["hanging"].error)

        # One is killed: its tools go, and calls fail at once, until it is back by itself.
        (killed,) = children("server-everything")
        before = names(host)
        os.kill(killed, signal.SIGKILL)
        watch.until(lambda: not row(host, "everything").ready)
        assert names(host) == {name for name in before if not name.startswith("mcp__everything__")}
        called = time.monotonic()
        with pytest.raises(ConnectionLost):
            host.call_tool("mcp__everything__echo", {"message": "x"})
        assert time.monotonic() - called < AT_ONCE
        watch.until(lambda: names(host) == before, timeout=DEADLINE)
        assert "hello" in host.call_tool("mcp__everything__echo", {"message": "hello"}).text
        assert killed not in children("server-everything")

        # One entry changes: no other connection is touched.
        processes = {name: set(children(part)) for name, part in PARTS.items()}
        document = json.loads(config.read_text())
        document["mcpServers"]["files"]["timeout"] = 77
        config.write_text(json.dumps(document))
        changes = host.apply_config()
        assert (changes.added, changes.changed, changes.removed) == ((), ("files",), ())
        assert len(changes.kept) == 9
        after = {name: set(children(part)) for name, part in PARTS.items()}
        assert after.pop("files").isdisjoint(processes.pop("files"))
        assert after == processes
        assert names(host) == before


PARTS = {
    "everything": "server-everything",
    "files": "server-filesystem",
    "mcp2": "mcp2_server",
    "mcp1": "mcp1_server",
    "fastmcp4": "fastmcp4_server",
}


def names(host: Host) -> Set[str]:
    """Of the tools that are ready."""
    return {tool.name for tool in host.tools(ready_only=True)}
