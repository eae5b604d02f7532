"""What becomes of notifications: logs, changed listings, updated resources.

A changed listing is fetched first and then handed over whole, some time after the last of a burst of
notifications, on a thread of the library. None of this holds the client, so that a forgotten one can be closed.
"""

from __future__ import annotations

import logging
import time
from threading import RLock
from typing import TYPE_CHECKING, Any, Callable, Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Set

from mcpsync.client.paging import PROMPTS, RESOURCES, TOOLS, Listing, pages
from mcpsync.core.jsonrpc import encode, excerpt
from mcpsync.core.subscriptions import LIST_CHANGES
from mcpsync.errors import ClientClosed, InvalidMessage, McpError, flat

if TYPE_CHECKING:
    from mcpsync.client.validating import Definitions
    from mcpsync.connection.connection import Connection
    from mcpsync.connection.dispatch import Lane

__all__ = ["ChangeListener", "Listeners", "skipped"]

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


_LEAST_WAIT = 0.01  # seconds
_MOST_RESTLESS = 10  # times the debounce: after that a list is fetched although it still changes


class _Restless:
    """A listing that changes.

    :ivar first: the moment of the first notification that nothing was done about yet
    :ivar last: that of the last
    """

    __slots__ = ("first", "last")

    def __init__(self, now: float) -> None:
        self.first = self.last = now


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
    :param on_stderr: gets each line that the server writes to stderr
    :param definitions: is told at once when the tools may be others
    """

    def __init__(
        self,
        changes: Mapping[str, ChangeListener],
        on_log: Optional[Callable[[Any], Any]],
        on_notification: Optional[Callable[[str, Dict[str, Any]], Any]],
        debounce: float,
        page_limit: int,
        tools_changed: Optional[Callable[[], None]] = None,
        on_stderr: Optional[Callable[[str], Any]] = None,
        definitions: Optional[Definitions] = None,
    ) -> None:
        wants_tools = tools_changed is not None or definitions is not None
        self.lists: FrozenSet[str] = frozenset(changes) | (_TOOLS if wants_tools else _NOTHING)
        self._definitions = definitions
        self._tools_changed = tools_changed
        self._changes = changes
        self._on_log = on_log
        self._on_notification = on_notification
        self._on_stderr = on_stderr
        self._stderr_lane: Optional[Lane] = None
        self._debounce = debounce
        self._page_limit = page_limit
        self._connection: Optional[Connection] = None
        self._lock = RLock()  # guards the tables
        self._restless: Dict[str, _Restless] = {}
        self._fetching: Set[str] = set()
        self._updates: Dict[str, List[Callable[[str], Any]]] = {}

    def watch_tools(self, definitions: Definitions) -> Definitions:
        """Tell it of changes, as far as the server tells of them; gives what is told already, if there is that."""
        if self._definitions is None:
            self._definitions = definitions
        return self._definitions

    def attach(self, connection: Connection) -> None:
        """The connection that they listen to."""
        self._connection = connection

    def after_fork(self) -> None:
        """In a forked child: the lock may have been held, and the timers are the parent's."""
        self._lock = RLock()
        self._restless = {}
        self._fetching = set()
        self._stderr_lane = None

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

    @property
    def stderr_line(self) -> Optional[Callable[[str], None]]:
        """Takes a line that the server wrote to stderr; None if nobody wants them."""
        on_stderr = self._on_stderr
        if on_stderr is None:
            return None

        def take(line: str) -> None:
            connection = self._connection
            assert connection is not None
            lane = self._stderr_lane
            if lane is None:  # its own, so that a flood of lines pushes nothing else out
                lane = self._stderr_lane = connection.dispatch.lane()
            connection.dispatch.callback(lambda: on_stderr(line), lane)

        return take

    def _log(self, connection: Connection, params: Dict[str, Any]) -> None:
        on_log = self._on_log
        if on_log is None:
            said = params.get("level")
            level = _LEVELS.get(said, logging.INFO) if isinstance(said, str) else logging.INFO
            log = logging.getLogger("mcpsync.server.%s" % connection.name)
            if log.isEnabledFor(level):
                text = "%s: %s" % (_shown(params.get("logger") or "log", 100), _shown(params.get("data"), 2_000))
                link = connection.link
                log.log(level, "%s", flat(text if link is None else link.masked(text)))
            return

        def tell() -> None:
            from mcpsync.types import LogMessage

            try:
                message = LogMessage.from_wire(params)
            except InvalidMessage as error:
                skipped(connection, "log message", error)
            else:
                on_log(message)

        connection.dispatch.callback(tell)

    def _updated(self, connection: Connection, uri: Any) -> None:
        with self._lock:
            functions = list(self._updates.get(uri, ())) if isinstance(uri, str) else []
        for function in functions:
            connection.dispatch.callback(_bound(function, uri))

    def _changed(self, connection: Connection, key: str) -> None:
        if self._definitions is not None and key in _TOOLS:
            self._definitions.changed()
        if key not in self.lists:
            return
        now = time.monotonic()
        with self._lock:
            restless = self._restless.get(key)
            if restless is not None:
                restless.last = now
                return
            self._restless[key] = _Restless(now)
        connection.watchdog.later(self._debounce, lambda: self._look(connection, key))

    def _look(self, connection: Connection, key: str) -> None:
        """Whether it is quiet by now, or has been restless for too long; on the watchdog."""
        with self._lock:
            restless = self._restless.get(key)
            if restless is None:  # in a forked child
                return
            until = min(restless.last + self._debounce, restless.first + _MOST_RESTLESS * self._debounce)
            wait = until - time.monotonic()
            fetching = key in self._fetching
            if wait <= 0 and not fetching:
                del self._restless[key]
                if key in self._changes:
                    self._fetching.add(key)
        if wait > 0 or fetching:
            # what changes while a list is fetched is fetched after that, so that the newest list comes last
            connection.watchdog.later(max(wait, self._debounce / 2, _LEAST_WAIT), lambda: self._look(connection, key))
            return
        if self._tools_changed is not None and key in _TOOLS:
            self._tools_changed()
        if key in self._changes and not connection.background(lambda: self._refresh(connection, key)):
            self._fetching.discard(key)

    # -- elsewhere ---------------------------------------------------------------------------------------------

    def gap(self, lists: FrozenSet[str]) -> None:
        """Notifications may have been missed: as good as one of each."""
        connection = self._connection
        assert connection is not None
        for key in lists & self.lists:
            self._changed(connection, key)

    def _refresh(self, connection: Connection, key: str) -> None:
        function, read = self._changes[key]
        try:
            fetched = pages(connection, _LISTINGS[key], read, self._page_limit, connection.timeouts)
            listing: Iterator[Any] = (item for page in fetched for item in page)
            if self._definitions is not None and key in _TOOLS:
                listing = self._definitions.noted(listing, connection)
            items = list(listing)
            connection.dispatch.callback(lambda: function(items))
        except ClientClosed:
            pass
        except McpError as error:
            logger.warning("mcpsync: server %r: a changed listing could not be fetched: %s", connection.name, error)
        finally:
            self._fetching.discard(key)  # atomic

    def add_update(self, uri: str, function: Callable[[str], Any]) -> None:
        """Call ``function(uri)`` when the resource was updated."""
        with self._lock:
            self._updates.setdefault(uri, []).append(function)

    def remove_update(self, uri: str, function: Callable[[str], Any]) -> None:
        """Undo one :meth:`add_update`."""
        with self._lock:
            functions = self._updates.get(uri, [])
            if function in functions:
                functions.remove(function)
            if not functions:
                self._updates.pop(uri, None)

    def remove_updates(self, uri: str) -> int:
        """Forget the callbacks of a resource; gives how many there were."""
        with self._lock:
            return len(self._updates.pop(uri, ()))


def skipped(connection: Connection, kind: str, error: InvalidMessage) -> None:
    """A notification that cannot be read: a warning for the first of its kind, as for all that a server does oddly."""
    link = connection.link
    if link is not None:
        link.warn(kind, error.message)


def _shown(said: Any, limit: int) -> str:
    """A value of a server, bounded. As JSON, since the ``repr`` of a deep one fails."""
    if isinstance(said, str):
        return said[:limit]
    try:
        return excerpt(encode(said), limit)
    except ValueError:
        return "(nested too deeply to be shown)"


def _bound(function: Callable[[str], Any], uri: str) -> Callable[[], None]:
    return lambda: function(uri)
