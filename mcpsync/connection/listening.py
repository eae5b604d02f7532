"""The stream of notifications of the modern era: one ``subscriptions/listen`` with the union of all that is wanted.

When the union changes, a successor is opened, and when it is acknowledged it takes over from the one before it, so
that nothing is missed in between. A stream that the server ends is opened again after a while.

Specification: `basic/patterns/subscriptions` (2026-07-28).
"""

from __future__ import annotations

import logging
import time
from threading import Lock, RLock
from typing import Any, Callable, Dict, List, Optional, Tuple

from mcpsync.connection.backoff import Backoff
from mcpsync.connection.call import Call, ContinuedCall, Wanted
from mcpsync.connection.calls import Calls
from mcpsync.connection.endings import Endings
from mcpsync.connection.link import Link
from mcpsync.connection.threads import Workers
from mcpsync.connection.watchdog import Watchdog
from mcpsync.core.era import SUBSCRIPTION_KEY
from mcpsync.core.subscriptions import Filter, acknowledged
from mcpsync.deadline import Deadline, Timeouts
from mcpsync.errors import McpError, ProtocolError, RequestCancelled, RequestTimeout, RpcError

__all__ = ["Listening"]

logger = logging.getLogger("mcpsync")

_METHOD = "subscriptions/listen"
_ENDLESS = Wanted(Timeouts(call=None))
_ACK_SECONDS = 30.0


class _Stream:
    """One ``subscriptions/listen`` while it is being opened or stands.

    :ivar wanted: what was asked for
    :ivar granted: what was acknowledged; None before that
    :ivar since: when
    :ivar dropped: this side ended it
    :ivar failure: why it ended otherwise
    """

    def __init__(self, link: Link, wanted: Filter, serial: int) -> None:
        self.link = link
        self.wanted = wanted
        self.serial = serial
        self.call: Optional[Call] = None
        self.granted: Optional[Filter] = None
        self.since = 0.0
        self.dropped = False
        self.failure: Optional[McpError] = None
        self._settled = Lock()  # released once it is acknowledged or over, and by each who found it so
        self._settled.acquire()
        self._once: List[None] = [None]

    def settle(self) -> None:
        """It is acknowledged, or over."""
        try:
            self._once.pop()  # atomic: one thread gets the item
        except IndexError:
            return
        self._settled.release()

    def wait(self, deadline: Deadline) -> bool:
        """Wait until it is either. False: not in time."""
        remaining = deadline.remaining()
        if not self._settled.acquire(timeout=-1 if remaining is None else remaining):
            return False
        self._settled.release()
        return True


class Listening:
    """The streams of one connection, of which one stands at a time.

    :param name: of the server
    :param calls: opens the requests
    :param endings: ends them
    :param watchdog: waits before a stream that ended is opened again
    :param links: opens it
    :param wanted: gives what is wanted at the moment
    :param reopened: called when a stream was opened again, on the worker: something may have been missed
    :param ended: called at once when a stream ended, on whatever thread noticed; must be quick
    :param backoff: when that is tried
    """

    def __init__(
        self,
        name: str,
        calls: Calls,
        endings: Endings,
        watchdog: Watchdog,
        links: Workers,
        wanted: Callable[[], Filter],
        reopened: Callable[[], None],
        ended: Callable[[], None],
        backoff: Backoff,
    ) -> None:
        self._name = name
        self._calls = calls
        self._endings = endings
        self._watchdog = watchdog
        self._links = links
        self._wanted = wanted
        self._reopened = reopened
        self._ended = ended
        self._backoff = backoff
        self._lock = RLock()  # guards all fields below
        self._serial = 0
        self._streams: Dict[int, _Stream] = {}
        self._failures = 0

    def update(self, link: Link, deadline: Deadline) -> Filter:
        """See to it that a stream stands for all that is wanted now; gives what the server granted.

        :raises RpcError: the server refuses
        :raises RequestTimeout: no acknowledgement in time
        :raises ConnectionLost: the link is gone
        """
        while True:
            stream, own = self._newest(link)
            if stream is None:
                return Filter()
            if own:
                self._open(stream, deadline)
            if not stream.wait(deadline):
                if own:
                    self._drop(stream)
                raise RequestTimeout("the subscription was not acknowledged in time", server=self._name, method=_METHOD)
            if stream.granted is not None:
                return stream.granted
            if not stream.dropped:
                if stream.failure is not None:
                    raise stream.failure
                raise ProtocolError("the subscription ended before it was acknowledged", server=self._name)
            # a successor took over, or whoever opened it gave up: look again

    def brings(self, params: Dict[str, Any]) -> bool:
        """False for a notification on a stream that has been replaced: its successor brings the same."""
        request_id = _stream_of(params)
        if request_id is None:
            return True
        with self._lock:
            return any(each.call and each.call.request_id == request_id for each in self._streams.values())

    def acknowledged(self, params: Dict[str, Any]) -> None:
        """The server acknowledged a stream; on the reader's thread."""
        request_id = _stream_of(params)
        with self._lock:
            found = [each for each in self._streams.values() if each.call and each.call.request_id == request_id]
            older: List[_Stream] = []
            for stream in found:
                stream.granted = acknowledged(params)
                stream.since = time.monotonic()
                older += [each for each in self._streams.values() if each.serial < stream.serial]
        for stream in older:
            self._drop(stream)
        for stream in found:
            stream.settle()
            missing = stream.wanted.missing_from(stream.granted or Filter())
            if missing:
                logger.info("mcpsync: server %r does not notify of: %s", self._name, ", ".join(missing))

    def _newest(self, link: Link) -> Tuple[Optional[_Stream], bool]:
        """The stream for what is wanted now, and whether the caller has to open it. None: nothing is wanted."""
        with self._lock:
            wanted = self._wanted()
            streams = [each for each in self._streams.values() if each.link is link]
            if wanted.lists or wanted.uris:
                if streams and _serves(streams[-1], wanted):
                    return streams[-1], False
                self._serial += 1
                stream = self._streams[self._serial] = _Stream(link, wanted, self._serial)
                return stream, True
        for each in streams:
            self._drop(each)
        return None, False

    def _open(self, stream: _Stream, deadline: Deadline) -> None:
        def over(call: ContinuedCall) -> None:
            self._over(stream, call)

        stream.call = call = ContinuedCall(_METHOD, _ENDLESS, over, background=True)
        try:
            self._calls.listen(stream.link, call, {"notifications": stream.wanted.to_wire()}, deadline)
        except BaseException:
            self._drop(stream)
            raise
        if stream.dropped:  # a successor took over before the request was there to be ended
            self._drop(stream)

    def _drop(self, stream: _Stream) -> None:
        """End it from this side."""
        with self._lock:
            self._streams.pop(stream.serial, None)
            stream.dropped = True
        if stream.call is not None:
            self._endings.end(stream.call, RequestCancelled("replaced"), "replaced")
        stream.settle()

    def _over(self, stream: _Stream, call: Call) -> None:
        """It ended; on whatever thread noticed."""
        stream.failure = call.failure
        with self._lock:
            standing = self._streams.pop(stream.serial, None) is not None and stream.granted is not None
            successors = any(each.link is stream.link for each in self._streams.values())
            if standing and time.monotonic() - stream.since >= max(self._backoff.delays, default=0.0):
                self._failures = 0
        stream.settle()
        if standing:
            self._ended()
        if standing and not successors:
            self._reopen_later(stream.link, "the server ended the subscription")

    def _reopen_later(self, link: Link, why: str) -> None:
        with self._lock:
            delay = self._backoff.delay(self._failures)
            self._failures += 1
        if link.cause is not None:
            return
        if delay is None:
            logger.warning("mcpsync: server %r: %s again and again; it is not asked any more", self._name, why)
            return
        logger.info("mcpsync: server %r: %s; it is opened again in %g s", self._name, why, delay)
        self._watchdog.later(delay, lambda: self._links.submit(lambda: self._reopen(link)))

    def _reopen(self, link: Link) -> None:
        if link.cause is not None or link.released:
            return
        try:
            self.update(link, Deadline(_ACK_SECONDS))
        except RpcError as error:
            logger.warning("mcpsync: server %r: the subscription was refused: %s", self._name, error)
        except McpError as error:
            self._reopen_later(link, "the subscription could not be opened (%s)" % error.message)
        else:
            self._reopened()


def _stream_of(params: Dict[str, Any]) -> Any:
    meta = params.get("_meta")
    return meta.get(SUBSCRIPTION_KEY) if isinstance(meta, dict) else None


def _serves(stream: _Stream, wanted: Filter) -> bool:
    """Whether it is as good as a new one; a resource that was refused is worth another question."""
    return stream.wanted == wanted and (stream.granted is None or wanted.uris <= stream.granted.uris)
