"""Listings: page by page, bounded.

Specification: `server/utilities/pagination` of every revision: cursors are opaque, an empty one is a cursor.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, TypeVar

from mcpsync.client.caching import Page
from mcpsync.connection.call import Wanted
from mcpsync.core.headers import mirrors_of
from mcpsync.deadline import Deadline, Timeouts
from mcpsync.errors import InvalidMessage, InvalidParams, MethodNotFound, PageLimit, RequestTimeout

if TYPE_CHECKING:
    from mcpsync.client.caching import Caching
    from mcpsync.connection.connection import Connection

__all__ = ["PROMPTS", "RESOURCES", "TEMPLATES", "TOOLS", "Listing", "list_tools_anew", "pages"]

logger = logging.getLogger("mcpsync")

T = TypeVar("T")


class Listing:
    """What can be listed, and how.

    :ivar method: of the request
    :ivar key: of the items in the result
    :ivar capability: of the server that stands for it; None: the server is asked in any case
    :ivar params: of the request, beside the cursor
    """

    def __init__(
        self, method: str, key: str, capability: Optional[str] = None, params: Optional[Mapping[str, Any]] = None
    ) -> None:
        self.method = method
        self.key = key
        self.capability = capability
        self.params = dict(params or {})


TOOLS = Listing("tools/list", "tools", "tools")
PROMPTS = Listing("prompts/list", "prompts", "prompts")
RESOURCES = Listing("resources/list", "resources", "resources")
TEMPLATES = Listing("resources/templates/list", "resourceTemplates", "resources")


def pages(
    connection: Connection,
    listing: Listing,
    read: Callable[[Any], T],
    limit: int,
    timeouts: Timeouts,
    caching: Optional[Caching] = None,
    use: bool = False,
) -> Iterator[Sequence[T]]:
    """The pages of a listing, each fetched when it is asked for.

    A server without the capability has nothing to list, and neither has one that declares it and does not know
    the method.

    :param read: makes an item; one that it refuses is left out, with a warning
    :param limit: the most pages
    :param timeouts: ``call`` for each page, ``total`` for all of them
    :param caching: keeps the pages
    :param use: take those from there that are fresh
    :raises PageLimit: there are more pages, or a cursor came back
    :raises RequestTimeout: the total time is over
    """
    link = connection.ready_link(listing.method)
    if listing is TOOLS and link.transport.exchange_like:
        read = _mirrored(connection, read)
    capabilities = connection.server.get("capabilities")
    if listing.capability is not None and not (isinstance(capabilities, dict) and listing.capability in capabilities):
        return
    deadline = Deadline(timeouts.total)
    collected: List[T] = []
    cursor: Any = None
    seen: Set[str] = set()
    for _ in range(limit):
        page = caching.fresh((listing.method, cursor)) if use and caching is not None else None
        if page is None:
            wanted = _wanted(connection, listing, timeouts, deadline)
            try:
                page = _fetch(connection, listing, read, cursor, wanted, caching)
            except MethodNotFound:
                if seen or listing.capability is None:
                    raise
                return
        collected += page.items
        yield page.items
        cursor = page.cursor
        if cursor is None:
            return
        if not isinstance(cursor, str):
            raise InvalidMessage(
                "nextCursor is %.100r, which is no text" % (cursor,), server=connection.name, method=listing.method
            )
        if cursor in seen:
            raise PageLimit(
                "the cursor %.100r came back after %d pages, which would never end" % (cursor, len(seen) + 1),
                partial=collected,
                server=connection.name,
                method=listing.method,
            )
        seen.add(cursor)
    raise PageLimit(
        "there are more than %d pages; raise page_limit if that is right" % limit,
        partial=collected,
        server=connection.name,
        method=listing.method,
    )


def list_tools_anew(connection: Connection, limit: int, caching: Optional[Caching], timeouts: Timeouts) -> None:
    """Fetch the tools for what they say of headers alone."""
    from mcpsync.types import Tool

    for _ in pages(connection, TOOLS, Tool.from_wire, limit, timeouts, caching):
        pass


def _fetch(
    connection: Connection,
    listing: Listing,
    read: Callable[[Any], T],
    cursor: Optional[str],
    wanted: Wanted,
    caching: Optional[Caching],
) -> Page:
    """Request one page."""
    params = listing.params if cursor is None else {**listing.params, "cursor": cursor}
    if caching is None:
        return _read_page(connection, listing, connection.request(listing.method, params, wanted), read)
    ticket = caching.begin((listing.method, cursor), wanted)
    try:
        result = connection.request(listing.method, params, wanted)
    except InvalidParams:
        if cursor is not None:
            caching.drop(listing.method)  # the page that named the cursor, and those beside it
        raise
    page = _read_page(connection, listing, result, read)
    if not isinstance(page.cursor, (str, type(None))):
        return page  # which the caller refuses
    return caching.keep(connection, ticket, wanted, result, page)  # type: ignore[no-any-return]


def _read_page(connection: Connection, listing: Listing, result: Dict[str, Any], read: Callable[[Any], T]) -> Page:
    return Page(tuple(_items(connection, listing, result, read)), result.get("nextCursor"))


def _wanted(connection: Connection, listing: Listing, timeouts: Timeouts, deadline: Deadline) -> Wanted:
    if timeouts.total is None:
        return Wanted(timeouts)
    remaining = deadline.remaining()
    if not remaining:
        raise RequestTimeout(
            "the pages did not all come within %g s" % timeouts.total,
            after=timeouts.total,
            server=connection.name,
            method=listing.method,
        )
    return Wanted(timeouts.override(total=remaining))


def _items(connection: Connection, listing: Listing, result: Dict[str, Any], read: Callable[[Any], T]) -> List[T]:
    raw = result.get(listing.key)
    if not isinstance(raw, list):
        raise InvalidMessage("the result has no list %r" % listing.key, server=connection.name, method=listing.method)
    items = []
    for entry in raw:
        try:
            items.append(read(entry))
        except InvalidMessage as error:
            logger.warning("mcpsync: server %r: an entry of %s is left out: %s", connection.name, listing.key, error)
    return items


def _mirrored(connection: Connection, read: Callable[[Any], T]) -> Callable[[Any], T]:
    """Where headers travel, a tool says which parameters it wants there; one that says it wrongly must not be used.

    Specification: `basic/transports/streamable-http` (2026-07-28), "Schema Extension".
    """

    def read_tool(wire: Any) -> T:
        tool = read(wire)
        try:
            connection.mirrors[wire["name"]] = mirrors_of(wire.get("inputSchema"))
        except ValueError as error:
            raise InvalidMessage("tool %.100r: %s" % (wire["name"], error)) from None
        return tool

    return read_tool
