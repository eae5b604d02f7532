"""A link: one transport, one session, one reader thread. A connection has one after the other.

The link is the transport's sink: it turns bytes into events, completes calls, and hands everything else to the
connection that owns it.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Set

from mcpsync.connection import lifetime
from mcpsync.connection.call import Call
from mcpsync.connection.threads import inner_thread
from mcpsync.core.headers import Mirror, request_headers
from mcpsync.core.session import Answered, Event, Oddity, Session
from mcpsync.deadline import FOREVER, Deadline
from mcpsync.errors import (
    ClientClosed,
    ConnectFailed,
    ConnectionLost,
    HttpError,
    LimitOverrun,
    McpError,
    MessageTooLarge,
    ProcessExited,
    described,
)
from mcpsync.transport.base import Frame, Request

if TYPE_CHECKING:
    from mcpsync.transport.base import StreamId, Transport

__all__ = ["Link", "Owner"]

logger = logging.getLogger("mcpsync")

_NO_PARAMS: Dict[Any, Any] = {}
_QUIET = frozenset(("late answer", "progress", "cancelled"))  # expected after a cancel: not worth a warning


class Owner:
    """What a link needs of its connection."""

    def on_event(self, link: Link, event: Event) -> None:
        """Anything but an answer; on the reader's thread, quick."""
        raise NotImplementedError

    def on_lost(self, link: Link, cause: McpError) -> None:
        """The link is gone; on the thread that noticed, quick."""
        raise NotImplementedError


class Link:
    """One transport with the session that runs over it.

    :ivar name: of the server
    :ivar transport: the channel
    :ivar session: what has been agreed, and the calls in flight
    :ivar cause: why the link is gone; None while it stands
    :ivar heard: something came in since whoever looks last cleared it
    :ivar mirrors: by tool, the parameters that travel in headers too
    :ivar released: it was closed because nobody needed it; a call that finds it so takes the next one
    """

    def __init__(
        self,
        owner: Owner,
        name: str,
        transport: Transport,
        session: Session[Call],
        mirrors: Mapping[Any, Mirror] = _NO_PARAMS,
    ) -> None:
        self.name = name
        self.transport = transport
        self.mirrors = mirrors
        self.session = session
        self.cause: Optional[McpError] = None
        self.heard = False
        self.released = False
        self._owner = owner
        self._lock = threading.RLock()  # guards cause against two reports at once
        self._warned: Set[str] = set()
        self._thread: Optional[threading.Thread] = None

    def open(self, deadline: Deadline) -> None:
        """Open the transport and start reading.

        :raises ConnectFailed: it cannot be opened; nothing is left behind
        """
        lifetime.register_channel(self)
        self.transport.open(deadline)
        self._thread = inner_thread("mcpsync-%s-reader" % self.name, self._read)
        try:
            self._thread.start()
        except RuntimeError as error:
            self.transport.close(Deadline(1))
            raise ConnectFailed("no reader thread can be started: %s" % error) from None

    def close(self, deadline: Deadline) -> None:
        """Close the transport and wait for the reader, as long as the deadline allows."""
        self._close_transport(deadline)
        thread = self._thread
        if thread is not None and thread.ident is not None and thread is not threading.current_thread():
            thread.join(deadline.remaining())
        lifetime.unregister_channel(self)

    def at_exit(self, seconds: float) -> None:
        """End the server, and leave calls in flight alone: their threads end with the process."""
        self.cause = self.cause or ClientClosed("the interpreter is shutting down", server=self.name)
        self._close_transport(Deadline(seconds))

    def _close_transport(self, deadline: Deadline) -> None:
        try:
            self.transport.close(deadline)
        except Exception:  # the transport may be the user's, and there is more to end than this one
            logger.exception("mcpsync: server %r: the transport could not be closed", self.name)

    def after_fork(self) -> None:
        """In a forked child: the server is the parent's. A call that this very thread is in the middle of ends."""
        self._lock = threading.RLock()
        self.transport.after_fork()
        self.cause = ConnectionLost("the connection belongs to the parent process", server=self.name)
        for call in self.session.retire_all():
            call.after_fork(loss_for(self.cause, server=self.name, method=call.method, request_id=call.request_id))

    def _read(self) -> None:
        try:
            self.transport.run(self)
        except McpError as error:
            self.lost(error)
        except BaseException as error:
            # a bug in a transport, ours or the user's, or an exit of the thread that it asks for, must end in errors
            # of the calls and not in their silence
            logger.exception("mcpsync: server %r: the transport failed", self.name)
            self.lost(ConnectionLost("the transport failed: %s" % described(error)))
        else:
            self.lost(ConnectionLost("the connection ended"))

    # -- the transport's sink ----------------------------------------------------------------------------------

    def frame(self, data: bytes, stream: StreamId) -> None:
        """One message came in."""
        self.heard = True
        for event in self.session.receive(data):
            if type(event) is Answered:
                failure = event.failure
                if failure is not None:
                    self._mask(failure)
                event.call.complete(event.result, failure)
            elif type(event) is Oddity:
                self.warn(event.kind, event.detail)
            else:
                self._owner.on_event(self, event)

    def alive(self, stream: StreamId) -> None:
        """The peer lives."""
        self.heard = True

    def lost(self, cause: McpError) -> None:
        """The channel is gone: every call in flight fails now."""
        with self._lock:
            if self.cause is not None:
                return
            self.cause = cause
        self._owner.on_lost(self, cause)

    def broken(self, request: Request, cause: McpError) -> None:
        """The exchange of one request ended without an answer."""
        call: Any = request  # what travels as a request is a call of ours
        if isinstance(cause, HttpError):
            self.heard = True  # an error is an answer, if to nothing else than to the question whether it lives
        if self.session.retire(call):
            call.complete(None, cause)

    def warn(self, kind: str, detail: str) -> None:
        """The peer did something odd: a warning for the first of each kind, the rest for the debug log."""
        level = logging.DEBUG if kind in _QUIET or kind in self._warned else logging.WARNING
        self._warned.add(kind)
        if logger.isEnabledFor(level):
            logger.log(level, "mcpsync: server %r: %s: %s", self.name, kind, self.masked(detail))

    def masked(self, text: str) -> str:
        """A text of the peer's without the secrets that a transport was given for it."""
        masked = getattr(self.transport, "masked", None)
        shown: str = text if masked is None else masked(text)
        return shown

    def _mask(self, failure: McpError) -> None:
        """Keep the secrets out of an error whose text is the peer's."""
        failure.message = self.masked(failure.message)
        failure.args = (failure.message,)

    def working(self) -> List[Call]:
        """The calls that wait for an answer: no streams, no pings, nothing that belongs to the opening."""
        return [call for call in self.session.in_flight() if isinstance(call, Call) and not call.background]

    # -- what goes out -----------------------------------------------------------------------------------------

    def send(self, data: bytes, method: Optional[str], request: Optional[Request], deadline: Deadline) -> None:
        """Send one message."""
        self.transport.send(self.outgoing(data, method), request, deadline)

    def outgoing(self, data: bytes, method: Optional[str], params: Mapping[str, Any] = _NO_PARAMS) -> Frame:
        """A message as it goes to the transport: with the headers that its revision wants, if headers travel.

        :raises ValueError: an argument does not fit into the header that its tool wants it in
        """
        revision = self.session.revision
        if not self.transport.exchange_like or revision is None or revision.headers == "none":
            return Frame(data, method)
        headers = {"MCP-Protocol-Version": revision.name}
        if revision.headers == "all" and method is not None:
            headers.update(request_headers(method, params, self.mirrors.get(params.get("name"))))
        return Frame(data, method, headers)

    def drive(self, frame: Frame, call: Any) -> None:
        """Drive the exchange of a request on a thread that nobody waits for: its failure goes to the call."""
        try:
            self.transport.send(frame, call, FOREVER)
        except McpError as error:
            self.broken(call, error)
        except BaseException as error:
            # as in _read(): the call must not wait for what a bug has ended
            logger.exception("mcpsync: server %r: the transport failed", self.name)
            self.broken(call, ConnectionLost("the transport failed: %s" % described(error)))

    def fail_all(self, make: Callable[[Call], McpError]) -> None:
        """Complete every call in flight with an error of its own."""
        for call in self.session.retire_all():
            call.complete(None, make(call))


def loss_for(cause: McpError, **named: Any) -> McpError:
    """The error of one call for the loss of its link."""
    if isinstance(cause, ClientClosed):
        return ClientClosed(cause.message).located(named["server"], named["method"], named["request_id"])
    if isinstance(cause, ProcessExited):
        return ProcessExited(cause.message, exit_code=cause.exit_code, stderr_tail=cause.stderr_tail, **named)
    if isinstance(cause, MessageTooLarge):
        return LimitOverrun(cause.message, limit=cause.limit, **named)
    return ConnectionLost(cause.message, **named)
