"""What still has to be told when a connection is closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mcpsync
from tests.peers.scripted import peer


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("attempt", range(5))
def test_a_call_interrupted_right_before_close_is_cancelled_at_the_server(
    tmp_path: Path, era: str, attempt: int
) -> None:
    def interrupt(progress: Any) -> None:
        raise KeyboardInterrupt

    server = peer(tmp_path, era=era)
    client = mcpsync.connect(server.command, callbacks="caller")
    with pytest.raises(KeyboardInterrupt):
        client.call_tool("endless_progress", on_progress=interrupt)
    client.close()
    (call,) = server.received("tools/call")
    (cancelled,) = server.received("notifications/cancelled")
    assert cancelled["params"]["requestId"] == call["id"]


def test_close_waits_a_bounded_time_for_a_server_that_does_not_read(tmp_path: Path) -> None:
    server = peer(tmp_path, era="legacy")
    client = mcpsync.connect(server.command)
    client.call_tool("stop_reading")
    futures = [client.submit("echo", {"text": "x" * 100_000}) for _ in range(5)]
    assert all(future.cancel() for future in futures)
    client.close(timeout=3)
    assert client.state == "closed"
    server.wait_ended()
