"""What the server is asked to notify of, in both eras, kept over reconnects.

Modern: one ``subscriptions/listen`` with the union of all that is wanted. When the union changes, a successor is
opened and, once it is acknowledged, takes over from the one before it. Legacy: ``resources/subscribe`` for each
resource; list changes come unasked.

Specification: `basic/patterns/subscriptions` (2026-07-28); `server/resources`, "Subscriptions" (earlier).
"""

from __future__ import annotations

import logging
from threading import Lock, RLock
from typing import Any, Callable, Dict, FrozenSet, List, Optional

from mcpsync.connection.call import Call, ContinuedCall, Wanted
from mcpsync.connection.calls import Calls
from mcpsync.connection.link import Link
from mcpsync.connection.threads import Workers
from mcpsync.connection.watchdog import Watchdog
from mcpsync.core.era import SUBSCRIPTION_KEY
from mcpsync.core.subscriptions import Filter, acknowledged
from mcpsync.deadline import Deadline, Timeouts
from mcpsync.errors import McpError, ProtocolError, RequestCancelled, RequestTimeout, RpcError

__all__ = ["Subscriptions"]

logger = logging.getLogger("mcpsync")

_ENDLESS = Timeouts(call=None)
_RETRY_SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0)
_ACK_SECONDS = 30.0


class _Listen:
    """One ``subscriptions/listen`` while it stands or is being opened."""

    def __init__(self, wanted: Filter, serial: int) -> None:
        self.wanted = wanted
        self.serial = serial
        self.call: Optional[Call] = None
        self.granted: Optional[Filter] = None
        self.settled = Lock()  # released once it is acknowledged or over
        self.settled.acquire()
        self._once: List[None] = [None]

    def settle(self) -> None:
        """It is acknowledged, or over."""
        try:
            self._once.pop()
        except IndexError:
            return
        self.settled.release()


class Subscriptions:
    """The subscriptions of one connection.

    :param name: of the server
    :param calls: opens and ends the requests
    :param watchdog: waits before a lost stream is opened again
    :param control: opens it
    :param gap: called when notifications may have been missed; on the control worker
    """

    def __init__(
        self, name: str, calls: Calls, watchdog: Watchdog, control: Workers, gap: Callable[[FrozenSet[str]], None]
    ) -> None:
        self._name = name
        self._calls = calls
        self._watchdog = watchdog
        self._control = control
        self._gap = gap
        self._lock = RLock()  # guards all fields below
        self._lists: FrozenSet[str] = frozenset()
        self._uris: Dict[str, int] = {}
        self._serial = 0
        self._listens: Dict[int, _Listen] = {}
        self._failures = 0

    def want_lists(self, lists: FrozenSet[str]) -> None:
        """From the next :meth:`restore` on, be told of these list changes."""
        with self._lock:
            self._lists = lists

    @property
    def uris(self) -> Dict[str, int]:
        """The resources that are subscribed to, and how often."""
        return dict(self._uris)

    def inherit(self, uris: Dict[str, int]) -> None:
        """In a forked child: what the parent had is asked for again on the first link."""
        self._uris = uris

    def add(self, link: Link, uri: str, deadline: Deadline) -> None:
        """Be told when a resource changes; each call needs one :meth:`remove`.

        :raises McpError: the server refuses, or does not answer in time
        """
        with self._lock:
            known = uri in self._uris
            self._uris[uri] = self._uris.get(uri, 0) + 1
        if known:
            return
        try:
            if self._listens_on(link):
                granted = self._listen(link, deadline)
                if uri not in granted.uris:
                    raise ProtocolError("the server does not grant a subscription to %s" % uri, server=self._name)
            else:
                self._request(link, "resources/subscribe", uri, deadline)
        except BaseException:
            self._forget(uri)
            raise

    def remove(self, link: Optional[Link], uri: str, deadline: Deadline) -> None:
        """Undo one :meth:`add`."""
        if self._forget(uri) and link is not None:
            if self._listens_on(link):
                self._listen(link, deadline)
            else:
                self._request(link, "resources/unsubscribe", uri, deadline)

    def restore(self, link: Link, deadline: Deadline) -> None:
        """On a new link, ask again for all that is wanted. What the server refuses is logged."""
        with self._lock:
            uris = sorted(self._uris)
            self._listens.clear()
        try:
            if self._listens_on(link):
                self._listen(link, deadline)
            else:
                for uri in uris:
                    self._request(link, "resources/subscribe", uri, deadline)
        except McpError as error:
            logger.warning("mcpsync: server %r: subscriptions could not be restored: %s", self._name, error)

    def _forget(self, uri: str) -> bool:
        with self._lock:
            left = self._uris.get(uri, 0) - 1
            if left > 0:
                self._uris[uri] = left
                return False
            return self._uris.pop(uri, None) is not None

    @staticmethod
    def _listens_on(link: Link) -> bool:
        revision = link.session.revision
        return revision is not None and revision.listen

    def _request(self, link: Link, method: str, uri: str, deadline: Deadline) -> None:
        remaining = deadline.remaining()
        if remaining is not None and remaining <= 0:
            raise RequestTimeout("no time left", server=self._name, method=method)
        self._calls.run(link, method, {"uri": uri}, Wanted(Timeouts(call=remaining)))

    # -- modern ------------------------------------------------------------------------------------------------

    def _listen(self, link: Link, deadline: Deadline) -> Filter:
        """Open a stream for all that is wanted now, and let it take over; gives what the server granted."""
        with self._lock:
            self._serial += 1
            listen = _Listen(Filter(self._lists, frozenset(self._uris)), self._serial)
            listens_now = bool(listen.wanted.lists or listen.wanted.uris)
        if not listens_now:
            self._take_over(listen)
            return listen.wanted

        def over(call: ContinuedCall) -> None:
            self._over(link, listen, call)

        call = ContinuedCall("subscriptions/listen", Wanted(_ENDLESS), over)
        listen.call = call
        with self._lock:
            self._listens[listen.serial] = listen
        try:
            self._calls.send(link, call, {"notifications": listen.wanted.to_wire()}, deadline)
            remaining = deadline.remaining()
            settled = listen.settled.acquire(timeout=-1 if remaining is None else remaining)
        except BaseException:
            self._end(listen)
            raise
        if not settled:
            self._end(listen)
            raise RequestTimeout("the subscription was not acknowledged in time", server=self._name, method=call.method)
        if listen.granted is None:
            raise call.failure or ProtocolError("the subscription ended before it was acknowledged", server=self._name)
        missing = listen.wanted.missing_from(listen.granted)
        if missing:
            logger.info("mcpsync: server %r does not notify of: %s", self._name, ", ".join(missing))
        self._take_over(listen)
        return listen.granted

    def acknowledged(self, params: Dict[str, Any]) -> None:
        """The server acknowledged a stream; on the reader's thread."""
        meta = params.get("_meta")
        request_id = meta.get(SUBSCRIPTION_KEY) if isinstance(meta, dict) else None
        with self._lock:
            found = [each for each in self._listens.values() if each.call and each.call.request_id == request_id]
        for listen in found:
            listen.granted = acknowledged(params)
            listen.settle()

    def _take_over(self, listen: _Listen) -> None:
        with self._lock:
            older = [each for serial, each in self._listens.items() if serial < listen.serial]
            self._failures = 0
        for each in older:
            self._end(each)

    def _end(self, listen: _Listen) -> None:
        with self._lock:
            self._listens.pop(listen.serial, None)
        if listen.call is not None:
            self._calls.end(listen.call, RequestCancelled("replaced"), "replaced")

    def _over(self, link: Link, listen: _Listen, call: Call) -> None:
        """A stream ended; on whatever thread noticed."""
        with self._lock:
            current = self._listens.pop(listen.serial, None) is not None
        listen.settle()
        if current and listen.granted is not None and link.cause is None and not isinstance(call.failure, RpcError):
            with self._lock:
                delay = _RETRY_SECONDS[min(self._failures, len(_RETRY_SECONDS) - 1)]
                self._failures += 1
            logger.info("mcpsync: server %r ended the subscription; it is opened again in %g s", self._name, delay)
            self._watchdog.later(delay, lambda: self._control.submit(lambda: self._reopen(link)))

    def _reopen(self, link: Link) -> None:
        if link.cause is None:
            self.restore(link, Deadline(_ACK_SECONDS))
            with self._lock:
                lists = self._lists
            self._gap(lists)
