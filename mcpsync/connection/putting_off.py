"""Requests that a server puts off (``Retry-After``), where making them again can do no harm."""

from __future__ import annotations

from time import monotonic
from typing import Optional

from mcpsync.connection.call import Wanted
from mcpsync.errors import HttpError

__all__ = ["HARMLESS", "MOST_DELAYS", "delay_for"]

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
        "tools/list",
    )
)
"""Methods that change nothing."""

MOST_DELAYS = 5
_TOO_MANY = 429
_SERVER_ERROR = 500


def delay_for(error: HttpError, method: str, wanted: Wanted, began: float) -> Optional[float]:
    """Seconds after which the request is to be made again; None: not at all, or not within the call's time.

    :param began: when the call did, on the monotonic clock
    """
    delay = error.retry_after
    if delay is None or method not in HARMLESS or not (error.status == _TOO_MANY or error.status >= _SERVER_ERROR):
        return None
    spent, total = monotonic() - began, wanted.timeouts.total
    left = float("inf") if wanted.length is None else wanted.length - spent
    if total is not None:
        left = min(left, total - wanted.spent - spent)
    return delay if delay < left else None
