"""What the server is asked to notify of, in both eras, kept over reconnects.

Modern: one stream for all of it, see :mod:`mcpsync.connection.listening`. Legacy: ``resources/subscribe`` for each
resource; list changes come unasked.

Specification: `basic/patterns/subscriptions` (2026-07-28); `server/resources`, "Subscriptions" (earlier).
"""

from __future__ import annotations

import logging
from threading import RLock
from typing import Any, Callable, Dict, FrozenSet, Optional

from mcpsync.connection.backoff import Backoff
from mcpsync.connection.call import Wanted
from mcpsync.connection.calls import Calls
from mcpsync.connection.endings import Endings
from mcpsync.connection.link import Link
from mcpsync.connection.listening import Listening
from mcpsync.connection.threads import Workers
from mcpsync.connection.watchdog import Watchdog
from mcpsync.core.subscriptions import Filter
from mcpsync.deadline import Deadline, Timeouts
from mcpsync.errors import McpError, ProtocolError, RequestTimeout

__all__ = ["Subscriptions"]

logger = logging.getLogger("mcpsync")


class Subscriptions:
    """The subscriptions of one connection.

    :param name: of the server
    :param calls: makes the requests
    :param endings: ends streams
    :param watchdog: waits before a stream that ended is opened again
    :param links: opens it
    :param gap: called when notifications may have been missed, with the lists concerned
    :param ended: called at once when a stream ended, from which on they may be; must be quick
    :param backoff: when a stream that ended is opened again
    """

    def __init__(
        self,
        name: str,
        calls: Calls,
        endings: Endings,
        watchdog: Watchdog,
        links: Workers,
        gap: Callable[[FrozenSet[str]], None],
        ended: Callable[[], None],
        backoff: Backoff,
    ) -> None:
        self._name = name
        self._calls = calls
        self._lock = RLock()  # guards the two fields below
        self._lists: FrozenSet[str] = frozenset()
        self._uris: FrozenSet[str] = frozenset()
        self._listening = Listening(
            name, calls, endings, watchdog, links, self._wanted, lambda: gap(self._lists), ended, backoff
        )

    def want_lists(self, lists: FrozenSet[str]) -> None:
        """From the next :meth:`restore` on, be told of these list changes."""
        with self._lock:
            self._lists = lists

    @property
    def uris(self) -> FrozenSet[str]:
        """The resources that are subscribed to."""
        return self._uris

    def inherit(self, uris: FrozenSet[str]) -> None:
        """In a forked child: what the parent had is asked for again on the first link."""
        self._uris = uris

    def add(self, link: Link, uri: str, deadline: Deadline) -> None:
        """Be told when a resource changes.

        :raises McpError: the server refuses, or does not answer in time
        """
        with self._lock:
            new = uri not in self._uris
            self._uris |= {uri}
        try:
            if self._listens_on(link):
                if uri not in self._listening.update(link, deadline).uris:
                    raise ProtocolError("the server grants no subscription to %s" % uri, server=self._name)
            elif new:
                self._request(link, "resources/subscribe", uri, deadline)
        except BaseException:
            if new:
                self._forget(uri)
            raise

    def remove(self, link: Optional[Link], uri: str, deadline: Deadline) -> None:
        """Undo :meth:`add`."""
        if self._forget(uri) and link is not None:
            if self._listens_on(link):
                self._listening.update(link, deadline)
            else:
                self._request(link, "resources/unsubscribe", uri, deadline)

    def wanted_on(self, link: Link) -> bool:
        """Whether there is anything to ask for again on this link."""
        wanted = self._wanted()
        return bool(wanted.uris) or (bool(wanted.lists) and self._listens_on(link))

    def restore(self, link: Link, deadline: Deadline) -> None:
        """On a new link, ask again for all that is wanted. What the server refuses is logged."""
        if self._listens_on(link):
            try:
                self._listening.update(link, deadline)
            except McpError as error:
                logger.warning("mcpsync: server %r: no notifications: %s", self._name, error)
            return
        for uri in sorted(self._uris):
            try:
                self._request(link, "resources/subscribe", uri, deadline)
            except McpError as error:
                logger.warning("mcpsync: server %r: a subscription was not restored: %s", self._name, error)

    def acknowledged(self, params: Dict[str, Any]) -> None:
        """The server acknowledged a stream; on the reader's thread."""
        self._listening.acknowledged(params)

    def brings(self, params: Dict[str, Any]) -> bool:
        """Whether a notification is one to be told: it belongs to no stream, or to one that is wanted still."""
        return self._listening.brings(params)

    def _wanted(self) -> Filter:
        with self._lock:
            return Filter(self._lists, self._uris)

    def _forget(self, uri: str) -> bool:
        with self._lock:
            known = uri in self._uris
            self._uris -= {uri}
        return known

    @staticmethod
    def _listens_on(link: Link) -> bool:
        revision = link.session.revision
        return revision is not None and revision.listen

    def _request(self, link: Link, method: str, uri: str, deadline: Deadline) -> None:
        remaining = deadline.remaining()
        if remaining is not None and remaining <= 0:
            raise RequestTimeout("no time left", server=self._name, method=method)
        self._calls.run(link, method, {"uri": uri}, Wanted(Timeouts(call=remaining)))
