"""Roots: the folders that a client lets a server work in (specification: client/roots)."""

from __future__ import annotations

from typing import Optional

from mcpsync.types.wire import MetaWire

__all__ = ["Root"]


class Root(MetaWire):
    """A folder or file.

    :ivar uri: a ``file://`` URI
    """

    uri: str
    name: Optional[str] = None
