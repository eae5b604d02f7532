"""What becomes of notifications: logs, changed listings, updated resources.

A changed listing is fetched first and then handed over whole, some time after the last of a burst of
notifications, on a thread of the library. None of this holds the client, so that a forgotten one can be closed.
"""

from __future__ import annotations

import logging
from threading import RLock
from typing import TYPE_CHECKING, Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional

from mcpsync.client.paging import PROMPTS, RESOURCES, TOOLS, Listing, pages
from mcpsync.connection.watchdog import Timer
from mcpsync.core.subscriptions import LIST_CHANGES
from mcpsync.errors import McpError

if TYPE_CHECKING:
    from mcpsync.connection.connection import Connection

__all__ = ["ChangeListener", "Listeners"]

logger = logging.getLogger("mcpsync")

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "alert": logging.CRITICAL,
    "emergency": logging.CRITICAL,
}
LOG_LEVELS = tuple(_LEVELS)
"""The levels of MCP, the least severe first."""


class ChangeListener(NamedTuple):
    """Who wants to know of a listing that changed.

    :ivar function: the user's; gets the whole new list
    :ivar read: makes an item
    """

    function: Callable[[List[Any]], Any]
    read: Callable[[Any], Any]


_LISTINGS: Dict[str, Listing] = {
    "toolsListChanged": TOOLS,
    "promptsListChanged": PROMPTS,
    "resourcesListChanged": RESOURCES,
}


_NOTHING: FrozenSet[str] = frozenset()
_TOOLS: FrozenSet[str] = frozenset(("toolsListChanged",))


class Listeners:
    """The callbacks for notifications of one client.

    :param changes: by the key of the listing in the ``subscriptions/listen`` filter
    :param on_log: gets a :class:`~mcpsync.types.LogMessage`; without it, logs go to the logger ``mcpsync.server``
    :param on_notification: gets method and params of every notification
    :param debounce: seconds of quiet before a changed listing is fetched
    :param page_limit: the most pages of it
    :param tools_changed: called at once when the tools may be others; quick
    """

    def __init__(
        self,
        changes: Mapping[str, ChangeListener],
        on_log: Optional[Callable[[Any], Any]],
        on_notification: Optional[Callable[[str, Dict[str, Any]], Any]],
        debounce: float,
        page_limit: int,
        tools_changed: Optional[Callable[[], None]] = None,
    ) -> None:
        self.lists: FrozenSet[str] = frozenset(changes) | (_NOTHING if tools_changed is None else _TOOLS)
        self._tools_changed = tools_changed
        self._changes = changes
        self._on_log = on_log
        self._on_notification = on_notification
        self._debounce = debounce
        self._page_limit = page_limit
        self._connection: Optional[Connection] = None
        self._lock = RLock()  # guards the two tables
        self._timers: Dict[str, Timer] = {}
        self._updates: Dict[str, List[Callable[[str], Any]]] = {}

    def attach(self, connection: Connection) -> None:
        """The connection that they listen to."""
        self._connection = connection

    def after_fork(self) -> None:
        """In a forked child: the lock may have been held, and the timers are the parent's."""
        self._lock = RLock()
        self._timers = {}

    # -- on the reader's thread: quick -------------------------------------------------------------------------

    def notified(self, method: str, params: Dict[str, Any]) -> None:
        """A notification came in."""
        connection = self._connection
        assert connection is not None
        on_notification = self._on_notification
        if on_notification is not None:
            connection.dispatch.callback(lambda: on_notification(method, params))
        if method == "notifications/message":
            self._log(connection, params)
        elif method == "notifications/resources/updated":
            self._updated(connection, params.get("uri"))
        elif method in LIST_CHANGES:
            self._changed(connection, LIST_CHANGES[method])

    def _log(self, connection: Connection, params: Dict[str, Any]) -> None:
        on_log = self._on_log
        if on_log is None:
            level = _LEVELS.get(str(params.get("level")), logging.INFO)
            name = "mcpsync.server.%s" % connection.name
            logging.getLogger(name).log(level, "%s: %.2000s", params.get("logger") or "log", params.get("data"))
            return

        def tell() -> None:
            from mcpsync.types import LogMessage

            on_log(LogMessage.from_wire(params))

        connection.dispatch.callback(tell)

    def _updated(self, connection: Connection, uri: Any) -> None:
        with self._lock:
            functions = list(self._updates.get(uri, ())) if isinstance(uri, str) else []
        for function in functions:
            connection.dispatch.callback(_bound(function, uri))

    def _changed(self, connection: Connection, key: str) -> None:
        if key not in self.lists:
            return
        with self._lock:
            waiting = self._timers.get(key)
            if waiting is not None:
                waiting.cancel()
            self._timers[key] = connection.watchdog.later(self._debounce, lambda: self._quiet(connection, key))

    def _quiet(self, connection: Connection, key: str) -> None:
        if self._tools_changed is not None and key in _TOOLS:
            self._tools_changed()
        if key in self._changes:
            connection.background(lambda: self._refresh(connection, key))

    # -- elsewhere ---------------------------------------------------------------------------------------------

    def gap(self, lists: FrozenSet[str]) -> None:
        """Notifications may have been missed: as good as one of each."""
        connection = self._connection
        assert connection is not None
        for key in lists & self.lists:
            self._changed(connection, key)

    def _refresh(self, connection: Connection, key: str) -> None:
        function, read = self._changes[key]
        items: List[Any] = []
        try:
            for page in pages(connection, _LISTINGS[key], read, self._page_limit, connection.timeouts):
                items += page
        except McpError as error:
            logger.warning("mcpsync: server %r: a changed listing could not be fetched: %s", connection.name, error)
            return
        connection.dispatch.callback(lambda: function(items))

    def add_update(self, uri: str, function: Callable[[str], Any]) -> None:
        """Call ``function(uri)`` when the resource was updated."""
        with self._lock:
            self._updates.setdefault(uri, []).append(function)

    def remove_updates(self, uri: str) -> int:
        """Forget the callbacks of a resource; gives how many there were."""
        with self._lock:
            return len(self._updates.pop(uri, ()))


def _bound(function: Callable[[str], Any], uri: str) -> Callable[[], None]:
    return lambda: function(uri)
