"""When a request that failed is made again, unchanged, as part of the same call.

Either nothing was executed, which the failure proves, or the method changes nothing. Everything else fails: what was
sent is not sent again on its own.

Specification: `basic/transports/streamable-http` (2026-07-28), "Server Validation", and `changelog`, 9;
`basic/transports` (2025-11-25), "Session Management".
"""

from __future__ import annotations

from typing import NamedTuple, Optional

from mcpsync.core.jsonrpc import HEADER_MISMATCH
from mcpsync.errors import ConnectionLost, HttpError, McpError, RpcError, SessionLost

__all__ = ["HARMLESS", "Again", "Repeats", "repeat"]

HARMLESS = frozenset(
    (
        "completion/complete",
        "ping",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "server/discover",
        "tasks/get",
        "tasks/list",
        "tasks/result",
        "tools/list",
    )
)
"""Methods that change nothing."""

_MOST_DELAYS = 5
_TOO_MANY = 429
_SERVER_ERROR = 500


class Again(NamedTuple):
    """Make the request once more.

    :ivar failure: what the call ends with if that cannot be done
    :ivar reason: ``"session"``: the session is gone, and a new one is needed first; ``"tools"``: this tool wants other
        headers now, so list the tools first; ``"delay"``: the server put it off; ``"lost"``: the answer was lost
    :ivar delay: seconds to wait first
    """

    failure: McpError
    reason: str
    delay: float = 0.0


class Repeats:
    """The repeated requests of one call: one for each reason, and a few for a server that puts it off.

    :param method: of the call
    """

    def __init__(self, method: str) -> None:
        self._method = method
        self._left = {"session": 1, "tools": 1, "lost": 1, "delay": _MOST_DELAYS}

    def step(self, failure: McpError, unused: bool, stateless: bool) -> Optional[Again]:
        """What to do after a failure; None: it is the call's.

        :param unused: the channel was closed because nobody needed it, so what never left it can go over the next
        :param stateless: each request has an exchange of its own, and no session is behind it
        """
        again = repeat(self._method, failure, unused, stateless)
        if again is None:
            return None
        self._left[again.reason] -= 1
        return again if self._left[again.reason] >= 0 else None


def repeat(method: str, failure: McpError, unused: bool, stateless: bool) -> Optional[Again]:
    """How a request is made again after its first failure; None: not at all. See :meth:`Repeats.step`."""
    if isinstance(failure, ConnectionLost):
        if isinstance(failure, SessionLost) or (unused and not failure.maybe_executed):
            return Again(failure, "session")
        if stateless and failure.maybe_executed and method in HARMLESS:
            return Again(failure, "lost")
    elif isinstance(failure, HttpError):
        put_off = failure.status == _TOO_MANY or failure.status >= _SERVER_ERROR
        if put_off and failure.retry_after is not None and method in HARMLESS:
            return Again(failure, "delay", failure.retry_after)
    elif isinstance(failure, RpcError) and failure.code == HEADER_MISMATCH and method == "tools/call":
        return Again(failure, "tools")
    return None
