"""A program's own code before each request of a call and after its answer: headers, tracing, recording.

It runs on the thread that makes the request, or on one of the library's that may block, never on a reader or watchdog.
What is the library's own is not shown: the negotiation, signs of life, cancellations, streams of notifications.
"""

from __future__ import annotations

import logging
import time
from contextvars import Context
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from mcpsync.errors import McpError

if TYPE_CHECKING:
    from mcpsync.connection.call import Call
    from mcpsync.connection.link import Link

__all__ = ["Hook", "HookedRequest", "Hooks", "Outcome", "Running"]

logger = logging.getLogger("mcpsync")

_OF_THE_PROTOCOL = frozenset(
    ("accept", "connection", "content-length", "content-type", "host", "last-event-id", "transfer-encoding")
)


class HookedRequest:
    """A request of a call, as hooks see it.

    :ivar server: name of the server
    :ivar method: MCP method
    :ivar params: that travel with it, without ``_meta``; not to be changed
    :ivar meta: further keys for ``_meta``, at first those of the call's caller; a hook may add to them
    :ivar headers: further HTTP headers, at first none; a hook may add to them. Other transports have none, and those of
        the client's options, tokens among them, are never here
    :ivar over_http: whether headers travel
    :ivar request_id: JSON-RPC id; None before it has one
    :ivar protocol_version: the revision that is spoken
    """

    def __init__(self, link: Link, call: Call, params: Mapping[str, Any]) -> None:
        revision = link.session.revision
        self.server = link.name
        self.method = call.method
        self.params = params
        self.meta: Dict[str, Any] = dict(call.wanted.meta or {})
        self.headers: Dict[str, str] = {}
        self.over_http = link.transport.exchange_like
        self.request_id: Optional[int] = None
        self.protocol_version = "" if revision is None else revision.name

    def __repr__(self) -> str:
        return "<HookedRequest %s to %r>" % (self.method, self.server)


class Outcome(NamedTuple):
    """How a request ended.

    :ivar result: the result object, if there is one
    :ivar error: why there is none: what the server answered, a timeout, a cancel, a loss
    :ivar seconds: from before the request to its end
    """

    result: Optional[Mapping[str, Any]]
    error: Optional[BaseException]
    seconds: float


class Hook:
    """For ``connect(..., hooks=[...])``: told of each request before it is sent, and of how it ended.

    A call may take several requests: each page of a listing, each round of questions, one that is made again. Methods
    must not make calls to the same server, for these would be told to them as well.
    """

    def before(self, request: HookedRequest) -> Any:
        """A request is about to be sent. What is raised here ends the call, and nothing is sent.

        :returns: anything; ``after`` gets it
        """

    def after(self, request: HookedRequest, outcome: Outcome, kept: Any) -> None:
        """It is over. What is raised here is logged, and changes nothing.

        For a call that was submitted this may be a moment after its future is done.

        :param kept: what ``before`` gave
        """


Pair = Tuple[Callable[[HookedRequest], Any], Callable[[HookedRequest, Outcome, Any], Any]]
"""The two methods of a hook."""


class Hooks:
    """The hooks of one connection, in their order; after a request it is the other way round.

    :param pairs: their methods
    """

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._pairs = pairs

    def begin(self, link: Link, call: Call, params: Mapping[str, Any]) -> Running:
        """Tell them of a request.

        :raises ValueError: one wants a header that cannot be, or is the protocol's
        """
        request = HookedRequest(link, call, params)
        running = Running(call, request)
        context: Optional[Context] = call.context
        try:
            for before, after in self._pairs:
                kept = before(request) if context is None else context.run(before, request)
                running.begun.append((after, kept))
            _check(request.headers)
        except BaseException as error:
            running.over(None, error)
            raise
        return running


class Running:
    """A request that hooks were told of, until they know how it ended.

    :ivar begun: those that want to know
    """

    def __init__(self, call: Call, request: HookedRequest) -> None:
        self.request = request
        self.begun: List[Tuple[Callable[..., Any], Any]] = []
        self._call = call
        self._started = time.monotonic()

    def over(self, result: Optional[Mapping[str, Any]], error: Optional[BaseException]) -> None:
        """Tell them."""
        request = self.request
        request.request_id = self._call.request_id or None
        if isinstance(error, McpError):
            error.located(request.server, request.method, request.request_id)
        outcome = Outcome(result if error is None else None, error, time.monotonic() - self._started)
        for after, kept in reversed(self.begun):
            try:
                after(request, outcome, kept)
            except Exception:  # the user's code: an answer that is here is not lost for what becomes of its record
                logger.exception("mcpsync: server %r: a hook failed after %s", request.server, request.method)


def _check(headers: Mapping[Any, Any]) -> None:
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str) or not name:
            raise ValueError("a hook gave a header that is no string: %.100r" % (name,))
        if name.lower() in _OF_THE_PROTOCOL or name.lower().startswith("mcp-"):
            raise ValueError("a hook gave the header %s, which is the protocol's own" % name)
        if any(character in name + value for character in "\r\n\0"):
            raise ValueError("a hook gave the header %.100r with a line break in it" % name)
