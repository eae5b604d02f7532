"""Real servers that are killed, and real servers under many threads."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any, Callable, Dict, List, Tuple

import pytest

import mcpsync
from mcpsync import Backoff
from mcpsync.types import ToolResult
from tests.conftest import child_processes
from tests.interop.side import Side

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

QUICK = Backoff((0.05, 0.1, 0.5, 1.0, 2.0))
Add = Tuple[str, Callable[[ToolResult], float]]
ADD: Dict[str, Add] = {
    "everything": ("get-sum", lambda result: float(result.text.rstrip(".").split()[-1])),
    "mcp2": ("add", lambda result: float(result.text)),
    "mcp1": ("add", lambda result: float(result.text)),
    "fastmcp4": ("add", lambda result: float(result.text)),
}
"""How each adds two numbers."""


def kill(command: List[str]) -> int:
    """SIGKILL for the one process that runs this command."""
    (pid,) = [key[0] for key, line in child_processes().items() if line == " ".join(command)]
    os.kill(pid, signal.SIGKILL)
    return pid


@pytest.mark.parametrize(
    ("peer", "protocol"),
    [("everything", "auto"), ("mcp2", "2026-07-28"), ("mcp2", "legacy"), ("mcp1", "auto"), ("fastmcp4", "2026-07-28")],
)
def test_a_killed_server_comes_back(peer: str, protocol: str, request: pytest.FixtureRequest) -> None:
    side, (tool, total) = Side(), ADD[peer]
    command = list(request.getfixturevalue("%s_command" % peer))
    slow = ("trigger-long-running-operation", {"duration": 60, "steps": 600})
    if peer != "everything":
        slow = ("slow", {"mark": "m", "seconds": 60})
    uri = "demo://resource/dynamic/text/1" if peer == "everything" else "note://greeting"
    with side.connect(command, protocol=protocol, name=peer, on_state=side.tell("state"), backoff=QUICK) as client:
        subscribes = client.capabilities.resources_subscribe
        if subscribes:
            client.subscribe_resource(uri, side.tell("updated"))
        side.next("state", lambda state: state == "ready")
        pending = client.submit(*slow, on_progress=side.tell("started"))
        side.next("started")
        killed = kill(command)
        with pytest.raises(mcpsync.ProcessExited) as caught:
            pending.result(timeout=10)
        assert (caught.value.exit_code, caught.value.server) == (-signal.SIGKILL, peer)
        side.next("state", lambda state: state == "ready")
        assert client.sessions == 2
        assert total(client.call_tool(tool, {"a": 1, "b": 2})) == 3
        if subscribes:  # kept over the death
            if peer == "everything":
                client.call_tool("toggle-subscriber-updates")
            else:
                client.call_tool("touch", {"uri": uri})
            assert side.next("updated") == uri
        assert kill(command) != killed


@pytest.mark.parametrize(
    ("peer", "protocol"),
    [("everything", "auto"), ("mcp2", "2026-07-28"), ("mcp2", "legacy"), ("mcp1", "auto"), ("fastmcp4", "2026-07-28")],
)
def test_many_threads(peer: str, protocol: str, request: pytest.FixtureRequest) -> None:
    """8 threads with 25 calls each, every other one submitted; each gets its own answers."""
    tool, total = ADD[peer]
    wrong: List[Any] = []
    with mcpsync.connect(request.getfixturevalue("%s_command" % peer), protocol=protocol) as client:

        def calls(thread: int) -> None:
            try:
                for number in range(25):
                    arguments = {"a": thread * 1000, "b": number}
                    submitted = client.submit(tool, arguments) if number % 2 else None
                    result = client.call_tool(tool, arguments) if submitted is None else submitted.result(timeout=60)
                    if total(result) != thread * 1000 + number:
                        wrong.append((arguments, result.text))
            except Exception as error:  # whatever it is, the test has to see it
                wrong.append(error)

        threads = [threading.Thread(target=calls, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert client.sessions == 1
