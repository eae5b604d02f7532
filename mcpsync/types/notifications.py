"""What a server tells while it works: progress and log messages (specification: basic/utilities/progress,
server/utilities/logging)."""

from __future__ import annotations

from typing import Any, Literal, Optional

from mcpsync.types.wire import MetaWire

__all__ = ["LogMessage", "LoggingLevel", "Progress"]

LoggingLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""The levels of syslog (RFC 5424), from the least to the most severe."""


class Progress(MetaWire):
    """How far a call is: the parameters of ``notifications/progress``.

    :ivar progress: grows with each notification
    :ivar total: what ``progress`` reaches at the end, if known
    :ivar message: what is being done (since 2025-03-26)
    :ivar progress_token: the token of the request, a string or a number
    """

    progress: float
    total: Optional[float] = None
    message: Optional[str] = None
    progress_token: Any = None


class LogMessage(MetaWire):
    """A log message: the parameters of ``notifications/message``.

    :ivar level: one of :data:`LoggingLevel`, not checked
    :ivar data: any JSON value
    :ivar logger: name of the logger
    """

    level: str
    data: Any
    logger: Optional[str] = None
