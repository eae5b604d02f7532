"""Odd answers to methods other than ``tools/call``, for the option ``handlers`` of ``tests/peers/scripted.py``.

A handler is ``name(server, request, **params)``; what it returns is the result, with None it answers itself or never.
The listings serve tools, resources, templates and prompts alike.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

Message = Dict[str, Any]


def silent_method(server: Any, request: Message, **ignored: Any) -> None:
    """Never answers."""


# --- listings


def three_pages(server: Any, request: Message, cursor: Optional[str] = None) -> Message:
    """Three pages of two items: ``item-0`` to ``item-5``."""
    page = int(cursor or "0")
    return _page(request, range(2 * page, 2 * page + 2), str(page + 1) if page < 2 else None)


def repeated_cursor(server: Any, request: Message, cursor: Optional[str] = None) -> Message:
    """Every page names the same next one."""
    return _page(request, range(1), "same")


def endless_pages(server: Any, request: Message, cursor: Optional[str] = None) -> Message:
    """There is always one more."""
    page = int(cursor or "0")
    return _page(request, range(page, page + 1), str(page + 1))


def empty_cursor(server: Any, request: Message, cursor: Optional[str] = None) -> Message:
    """The second page's cursor is the empty string, which is a cursor."""
    return _page(request, range(1), "") if cursor is None else _page(request, range(1, 2), None)


def null_cursor(server: Any, request: Message, cursor: Optional[str] = None) -> Message:
    """One page, whose next cursor is null, as some servers write "no more"."""
    return {**_page(request, range(1), None), "nextCursor": None}


def ten_thousand(server: Any, request: Message, cursor: Optional[str] = None) -> Message:
    """Ten pages of a thousand items."""
    page = int(cursor or "0")
    return _page(request, range(page * 1_000, page * 1_000 + 1_000), str(page + 1) if page < 9 else None)


def page_two_hangs(server: Any, request: Message, cursor: Optional[str] = None) -> Optional[Message]:
    """The second page never comes."""
    return _page(request, range(1), "1") if cursor is None else None


def _page(request: Message, numbers: range, next_cursor: Optional[str]) -> Message:
    names = ["item-%d" % number for number in numbers]
    method = request["method"]
    items: Dict[str, List[Message]] = {
        "tools/list": [{"name": name, "inputSchema": {"type": "object"}} for name in names],
        "prompts/list": [{"name": name} for name in names],
        "resources/list": [{"name": name, "uri": "item:" + name} for name in names],
        "resources/templates/list": [{"name": name, "uriTemplate": name + "{x}"} for name in names],
    }
    key = "resourceTemplates" if method == "resources/templates/list" else method.split("/")[0]
    return {key: items[method], **({} if next_cursor is None else {"nextCursor": next_cursor})}


# --- subscriptions/listen


def listen_to_less(server: Any, request: Message, notifications: Message) -> None:
    """Acknowledges, but none of the filters."""
    server.acknowledge(request, {})


def listen_and_end(server: Any, request: Message, notifications: Message) -> None:
    """Acknowledges and ends the subscription at once, gracefully."""
    server.acknowledge(request, notifications)
    server.end_subscription(request["id"])


def listen_too_early(server: Any, request: Message, notifications: Message) -> None:
    """Sends a notification before the acknowledgement, which is forbidden."""
    server.subscriptions[request["id"]] = request["params"]
    server.announce("notifications/tools/list_changed")
    server.acknowledge(request, notifications)
