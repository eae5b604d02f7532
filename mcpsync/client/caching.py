"""The response cache of one client: its clock, whose results are whose, and what makes them out of date.

A look takes no lock beyond its own and sends nothing, so it costs a few microseconds whatever the size of a page: those
who are given a page share it, and it is frozen (:mod:`mcpsync.types.frozen`).

Specification: `server/utilities/caching` (2026-07-28).
"""

from __future__ import annotations

import logging
from threading import RLock
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

from mcpsync.core.cache import UNKNOWN, USES, Key, ResponseCache, Responses, Ticket
from mcpsync.deadline import elapsed
from mcpsync.errors import ClientClosed, ConfigError, HttpError, McpError, RequestTimeout, TransportError

if TYPE_CHECKING:
    from mcpsync.client.options import Options
    from mcpsync.client.signing import Signing
    from mcpsync.connection.call import Wanted
    from mcpsync.connection.connection import Connection

__all__ = ["Caching", "Page", "caching_for", "check_use"]

logger = logging.getLogger("mcpsync")


class Page(NamedTuple):
    """One page of a listing.

    :ivar cursor: of the next, as the server gave it; None: it is the last
    """

    items: Tuple[Any, ...]
    cursor: Any


def check_use(cache: str) -> None:
    """
    :raises ConfigError: it is none of ``use``, ``refresh`` and ``bypass``
    """
    if cache not in USES:
        raise ConfigError("cache takes 'use', 'refresh' or 'bypass', not %.100r" % (cache,))


class Caching:
    """The response cache of one client. Any number of threads may use it.

    :param identity: gives under which authorization a request would travel now; quick
    :param now: gives the moment, in seconds; by default of a clock that goes on while the machine sleeps
    """

    def __init__(
        self, options: ResponseCache, identity: Callable[[], Any], now: Optional[Callable[[], float]] = None
    ) -> None:
        self._identity = identity
        self._now = now or elapsed
        self._stale_allowed = options.stale_if_error > 0
        self._lock = RLock()  # guards the responses; taken last, under whatever lock
        self._responses = Responses(options)

    # -- what makes entries out of date; see mcpsync.connection.observer.Keeper --------------------------------

    def notified(self, method: str, params: Dict[str, Any]) -> None:
        """A notification came in; on the reader's thread."""
        if method == "notifications/subscriptions/acknowledged":
            self.missed()  # what changed before this side was told of changes
            return
        with self._lock:
            self._responses.notified(method, params)

    def missed(self) -> None:
        """Notifications may have been missed."""
        with self._lock:
            self._responses.missed(self._now())

    def after_fork(self) -> None:
        """In a forked child: the lock may have been held, and notifications are the parent's."""
        self._lock = RLock()
        self._responses.clear()

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._responses.clear()

    def drop(self, method: str) -> None:
        """Drop all results of a method."""
        with self._lock:
            self._responses.drop(method)

    # -- looking -----------------------------------------------------------------------------------------------

    def fresh(self, key: Key) -> Any:
        """What is kept under a key, if it is fresh; None otherwise."""
        identity = self._identity()
        with self._lock:
            return self._responses.fresh(key, identity, self._now())

    def listed(self, method: str, limit: int) -> Optional[List[Any]]:
        """All items of a listing, if each of its pages is fresh; None otherwise.

        :param limit: the most pages
        """
        return self._listed(self._responses.fresh, method, limit)

    def _listed(self, look: Callable[[Key, Any, float], Any], method: str, limit: int) -> Optional[List[Any]]:
        identity, now = self._identity(), self._now()
        items: List[Any] = []
        cursor: Optional[str] = None
        with self._lock:  # for all pages, so that they go together
            for _ in range(limit):
                page: Optional[Page] = look((method, cursor), identity, now)
                if page is None:
                    return None
                items += page.items
                cursor = page.cursor
                if cursor is None:
                    return items
        return None

    def stale_list(self, error: McpError, method: str, limit: int) -> Optional[List[Any]]:
        """In place of an error: all items of a listing, as long as they are not older than allowed."""
        if not self._stale_allowed or not _is_outage(error):
            return None
        items = self._listed(self._responses.stale, method, limit)
        _tell(error, method, items)
        return items

    def stale(self, error: McpError, key: Key) -> Any:
        """In place of an error: what is kept under a key, as long as it is not older than allowed."""
        if not self._stale_allowed or not _is_outage(error):
            return None
        identity = self._identity()
        with self._lock:
            found = self._responses.stale(key, identity, self._now())
        _tell(error, key[0], found)
        return found

    # -- keeping -----------------------------------------------------------------------------------------------

    def begin(self, key: Key, wanted: Wanted) -> Ticket:
        """Before a request is sent."""
        wanted.further = []
        identity = self._identity()
        with self._lock:
            return self._responses.begin(key, identity)

    def keep(
        self, connection: Connection, ticket: Ticket, wanted: Wanted, result: Mapping[str, Any], value: Any
    ) -> Any:
        """The answer is here, and is kept if it may be; gives the value to hand out.

        :param result: as it came
        :param value: what was made of it, and has been given to nobody yet
        """
        revision = connection.revision
        ttl_ms = result.get("ttlMs")
        # what was got by input, or by anything else than one request, is an answer to that
        if revision is None or not revision.caching or wanted.further:
            return value
        scope = result.get("cacheScope")
        size = 0
        if self._responses.may_keep(ttl_ms, scope, ticket.identity):
            from mcpsync.types.frozen import freeze

            try:
                value, size = freeze(value)
            except RecursionError:
                ttl_ms = 0
        identity, now = self._identity(), self._now()
        with self._lock:
            self._responses.keep(ticket, value, size, ttl_ms, scope, identity, now)
        return value


def _is_outage(error: McpError) -> bool:
    """Whether the server was not reached, or did not answer; not, if it answered or this side ended it."""
    if isinstance(error, HttpError):
        return error.status >= 500 or error.status in (408, 429)
    return isinstance(error, (TransportError, RequestTimeout)) and not isinstance(error, ClientClosed)


def _tell(error: McpError, method: str, found: Any) -> None:
    if found is not None:
        logger.info("mcpsync: server %r: %s: a stale result is used: %s", error.server, method, error.message)


def caching_for(options: Options, signing: Signing) -> Optional[Caching]:
    """The cache that a client is to have; None: none."""
    wanted = options.cache
    if wanted is False:
        return None
    return Caching(ResponseCache() if wanted is True else wanted, _identity_for(options, signing))


def _identity_for(options: Options, signing: Signing) -> Callable[[], Any]:
    account = signing.account
    headers, env = options.headers, options.env
    if (
        callable(headers)
        or options.hooks
        or options.session is not None
        or (signing.auth is not None and account is None)
    ):
        # code of the user's, or a session that others may change, decides with each request whose it is
        return lambda: UNKNOWN
    if account is not None:
        session = account.session

        def token() -> Any:
            return session.token, None if headers is None else tuple(headers.items())

        return token
    if headers is not None:
        return lambda: tuple(headers.items())
    if env is not None:
        return lambda: tuple(env.items())
    return lambda: None
