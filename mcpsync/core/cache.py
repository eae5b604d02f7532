"""Results that may be used again, for as long as their server says that they stay fresh.

Each page of a listing and each resource that was read is an entry of its own. What makes entries unusable is counted,
so that an answer to a question that was asked before such an event is not kept after it: whoever asks takes a
:class:`Ticket` before the request is sent, and the answer is kept only if nothing has happened since.

Moments are seconds of one clock that goes on while the machine sleeps, given by the caller.

Specification: `server/utilities/caching` (2026-07-28).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Dict, FrozenSet, NamedTuple, Optional, Tuple

__all__ = ["CACHEABLE", "UNKNOWN", "USES", "Key", "ResponseCache", "Responses", "Ticket", "lifetime"]

USES = ("use", "refresh", "bypass")
"""What one call wants of the cache: an entry if there is a fresh one; a new entry; nothing."""

Key = Tuple[str, Optional[str]]
"""A method, and the one parameter that its result depends on: the cursor of a listing, the URI of a resource."""

CACHEABLE: FrozenSet[str] = frozenset(
    ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")
)
"""The methods whose results are kept. (``server/discover`` is asked once per connection.)"""

UNKNOWN: Any = object()
"""The identity of who cannot say under which authorization a request will travel: gets public results alone."""

_READ = "resources/read"
_UPDATED = "notifications/resources/updated"
_DROPPED_BY: Dict[str, Tuple[str, ...]] = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    # a resource that is listed no longer, or for the first time, reads otherwise, too
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list", _READ),
}
_PUBLIC: Any = object()


class ResponseCache(NamedTuple):
    """Bounds of the response cache of one client.

    :ivar entries: the most pages and resources that are kept; those that were not used for longest go first
    :ivar bytes: about the most memory that they take; a result above that is not kept
    :ivar longest: seconds that a result is used for at most, whatever the server says
    :ivar stale_if_error: seconds that a result which is no longer fresh is still given for, when it cannot be had anew
        since the server is not reached or does not answer. 0: never
    :ivar listen: have the server tell of changed listings, as ``on_tools_changed`` and its like do. Over HTTP that
        takes a stream that stays open

    Specification: `server/utilities/caching` (2026-07-28).
    """

    entries: int = 512
    bytes: int = 16 * 1024 * 1024
    longest: float = 24 * 3600.0
    stale_if_error: float = 0.0
    listen: bool = False


class Ticket(NamedTuple):
    """Taken before a request is sent, shown when its answer is to be kept.

    :ivar serial: of later tickets it is higher
    :ivar identity: under which the request travels
    """

    key: Key
    serial: int
    generation: Tuple[int, int]
    identity: Any


class _Entry:
    __slots__ = ("fresh_until", "identity", "received", "serial", "size", "stale_until", "value")

    def __init__(
        self, value: Any, size: int, identity: Any, received: float, fresh: float, stale: float, serial: int
    ) -> None:
        self.value = value
        self.size = size
        self.identity = identity
        self.received = received
        self.fresh_until = received + fresh
        self.stale_until = self.fresh_until + stale
        self.serial = serial


def lifetime(ttl_ms: Any, longest: float) -> float:
    """Seconds that a result with this ``ttlMs`` is fresh for: none if that is no positive, finite number."""
    if type(ttl_ms) is not int and type(ttl_ms) is not float:
        return 0.0
    if not 0 < ttl_ms < float("inf"):  # not a number among them
        return 0.0
    return min(ttl_ms, longest * 1000.0) / 1000.0  # of an integer beyond floats, the latter


class Responses:
    """The entries of one client. Not for several threads at a time.

    An *identity* is any value that compares: it says under which authorization a request travels. A private result is
    given to the identity that it was got with, and when another one appears, those of the one before are dropped.
    """

    def __init__(self, options: ResponseCache) -> None:
        self._options = options
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._taken = 0
        self._epoch = 0  # counts what concerns all methods
        self._generations: Dict[str, int] = dict.fromkeys(CACHEABLE, 0)
        self._serial = 0
        self._identity: Any = UNKNOWN

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def taken(self) -> int:
        """Bytes that the entries take."""
        return self._taken

    # -- using -------------------------------------------------------------------------------------------------

    def fresh(self, key: Key, identity: Any, now: float) -> Any:
        """The value under a key, if it is fresh; None otherwise."""
        entry = self._entries.get(key)
        if identity != self._identity:
            entry = self._another(key, identity)
        # a clock that went back says nothing about what was received later
        if entry is None or not entry.received <= now < entry.fresh_until:
            return None
        self._entries.move_to_end(key)
        return entry.value

    def stale(self, key: Key, identity: Any, now: float) -> Any:
        """The value under a key, if it is fresh or stale for no longer than allowed; None otherwise."""
        entry = self._entries.get(key)
        if identity != self._identity:
            entry = self._another(key, identity)
        if entry is None or not entry.received <= now < entry.stale_until:
            return None
        return entry.value

    def begin(self, key: Key, identity: Any) -> Ticket:
        """Before a request is sent."""
        if identity != self._identity:
            self._another(key, identity)
        self._serial += 1
        return Ticket(key, self._serial, (self._epoch, self._generations[key[0]]), identity)

    def may_keep(self, ttl_ms: Any, scope: Any, identity: Any) -> bool:
        """Whether an answer is worth the trouble of preparing it."""
        return lifetime(ttl_ms, self._options.longest) > 0 and (scope == "public" or identity is not UNKNOWN)

    def keep(self, ticket: Ticket, value: Any, size: int, ttl_ms: Any, scope: Any, identity: Any, now: float) -> bool:
        """The answer is here.

        :param ttl_ms: as the server sent it
        :param scope: as the server sent it; anything but ``public`` is private
        :param identity: as it is now: a request that it changed during may have travelled under either
        :returns: whether it is kept
        """
        key = ticket.key
        if ticket.generation != (self._epoch, self._generations[key[0]]):
            return False
        if not identity == ticket.identity == self._identity:
            return False
        before = self._entries.get(key)
        if before is not None and before.serial > ticket.serial:
            return False  # that request was sent later
        fresh = lifetime(ttl_ms, self._options.longest)
        public = scope == "public"
        self._drop(key)  # what it takes the place of
        if size > self._options.bytes or not self.may_keep(ttl_ms, scope, identity):
            return False
        self._entries[key] = _Entry(
            value, size, _PUBLIC if public else identity, now, fresh, self._options.stale_if_error, ticket.serial
        )
        self._taken += size
        while len(self._entries) > self._options.entries or self._taken > self._options.bytes:
            self._drop(next(iter(self._entries)))
        return True

    # -- dropping ----------------------------------------------------------------------------------------------

    def notified(self, method: str, params: Dict[str, Any]) -> None:
        """A notification came in: what it concerns is dropped, and what is being asked for will not be kept."""
        if method == _UPDATED:
            self._generations[_READ] += 1
            uri = params.get("uri")
            for key in [key for key in self._entries if key[0] == _READ and _related(key[1], uri)]:
                self._drop(key)
            return
        for each in _DROPPED_BY.get(method, ()):
            self.drop(each)

    def missed(self, now: float) -> None:
        """Notifications may have been missed: nothing is fresh any more."""
        self._epoch += 1
        if not self._options.stale_if_error:
            self.clear()
        for entry in self._entries.values():
            if now < entry.fresh_until:
                entry.fresh_until = now
                entry.stale_until = now + self._options.stale_if_error

    def drop(self, method: str) -> None:
        """Drop all results of a method."""
        self._generations[method] += 1
        for key in [key for key in self._entries if key[0] == method]:
            self._drop(key)

    def clear(self) -> None:
        """Drop everything."""
        self._epoch += 1
        self._entries.clear()
        self._taken = 0

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._taken -= entry.size

    def _another(self, key: Key, identity: Any) -> Optional[_Entry]:
        """Another identity appears; gives what is left under a key."""
        self._identity = identity
        for each in [each for each, entry in self._entries.items() if entry.identity is not _PUBLIC]:
            self._drop(each)
        return self._entries.get(key)


def _related(kept: Optional[str], updated: Any) -> bool:
    """Whether a resource that was updated is, holds, or is part of the one that is kept.

    Specification: `server/resources`, "Subscriptions": the update may be that of a sub-resource.
    """
    if not isinstance(updated, str) or kept is None:
        return True
    return kept.startswith(updated) or updated.startswith(kept)
