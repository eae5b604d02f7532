"""Waiting for a host without sleeping: its ``on_tools_changed`` is the event."""

from __future__ import annotations

import sys
import threading
from typing import Any, Callable, Dict, List, Optional

from mcpsync import Backoff, Host
from mcpsync.host import ServerStatus, approve_all

DEMO = {"command": sys.executable, "args": ["-m", "mcpsync.demo"]}
QUICK = Backoff((0.02, 0.02, 0.05, 0.05, 0.05))
WAIT_SECONDS = 15.0


def entry(command: List[str], **more: Any) -> Dict[str, Any]:
    """A server of a config."""
    return {"command": command[0], "args": command[1:], **more}


class Watch:
    """What a host has told so far.

    :ivar revisions: in the order in which they were told
    """

    def __init__(self) -> None:
        self.revisions: List[int] = []
        self._changed = threading.Condition()

    def __call__(self, revision: int) -> None:
        with self._changed:
            self.revisions.append(revision)
            self._changed.notify_all()

    def until(self, predicate: Callable[[], Any], timeout: float = WAIT_SECONDS) -> None:
        """Return when it holds; it is looked at after each change of the host."""
        with self._changed:
            if not self._changed.wait_for(predicate, timeout):
                raise AssertionError("not within %g s; told: %s" % (timeout, self.revisions))


def host_of(servers: Dict[str, Any], watch: Optional[Watch] = None, **options: Any) -> Host:
    """A host of these servers that tells the watch; whoever tests approvals gives ``approve``."""
    options.setdefault("approve", approve_all)
    return Host.from_config({"mcpServers": servers}, on_tools_changed=watch, **options)


def row(host: Host, server: str) -> ServerStatus:
    """The status of one server."""
    return next(status for status in host.status() if status.name == server)


def names(host: Host) -> List[str]:
    """The names of the tools that are ready."""
    return [tool.name for tool in host.tools(ready_only=True)]
