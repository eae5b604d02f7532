"""What a client wants to be notified of, as the filter of ``subscriptions/listen``.

Specification: `basic/patterns/subscriptions` (2026-07-28).
"""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple

__all__ = ["LIST_CHANGES", "Filter", "acknowledged", "announced"]

LIST_CHANGES: Dict[str, str] = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}
"""The notifications that a listing changed, each with its key in the filter."""


class Filter(NamedTuple):
    """The union of all that is wanted from one server.

    :ivar lists: keys of :data:`LIST_CHANGES` values, as ``toolsListChanged``
    :ivar uris: resources whose updates are wanted
    """

    lists: FrozenSet[str] = frozenset()
    uris: FrozenSet[str] = frozenset()

    def to_wire(self) -> Dict[str, Any]:
        """As it travels."""
        wire: Dict[str, Any] = dict.fromkeys(sorted(self.lists), True)
        if self.uris:
            wire["resourceSubscriptions"] = sorted(self.uris)
        return wire

    def missing_from(self, granted: Filter) -> List[str]:
        """What was wanted and is not granted, in words."""
        return sorted(self.lists - granted.lists) + sorted(self.uris - granted.uris)


def acknowledged(params: Mapping[str, Any]) -> Filter:
    """What an acknowledgement grants; tolerant of anything."""
    granted = params.get("notifications")
    if not isinstance(granted, dict):
        return Filter()
    uris = granted.get("resourceSubscriptions")
    return Filter(
        frozenset(key for key in LIST_CHANGES.values() if granted.get(key) is True),
        frozenset(uri for uri in uris if isinstance(uri, str)) if isinstance(uris, list) else frozenset(),
    )


def announced(capabilities: object, wanted: FrozenSet[str]) -> FrozenSet[str]:
    """Those of the wanted list changes that a server says it notifies of."""
    if not isinstance(capabilities, dict):
        return frozenset()
    offered = {key: capabilities.get(key[: -len("ListChanged")]) for key in wanted}
    return frozenset(key for key, value in offered.items() if isinstance(value, dict) and value.get("listChanged"))
