"""What several types carry: icons, annotations, and who a program is."""

from __future__ import annotations

from typing import List, Optional

from mcpsync.types.wire import Wire

__all__ = ["Annotations", "Icon", "Implementation", "Role"]

Role = str
"""``user`` or ``assistant``. What a server sends is not checked against these two."""


class Icon(Wire):
    """An icon to show for its owner (since 2025-11-25).

    :ivar src: an ``https:`` or ``data:`` URI
    :ivar sizes: as ``48x48``, or ``any``
    :ivar theme: ``light`` or ``dark``: the background it is made for
    """

    src: str
    mime_type: Optional[str] = None
    sizes: Optional[List[str]] = None
    theme: Optional[str] = None


class Annotations(Wire):
    """Hints on how to use or show something (specification: server/resources, Annotations).

    :ivar audience: for whom it is
    :ivar priority: from 0, optional, to 1, required
    :ivar last_modified: in ISO 8601
    """

    audience: Optional[List[Role]] = None
    priority: Optional[float] = None
    last_modified: Optional[str] = None


class Implementation(Wire):
    """Name and version of a client or a server, as it tells them itself: for display, never for trust."""

    name: str
    version: str
    title: Optional[str] = None
    description: Optional[str] = None
    website_url: Optional[str] = None
    icons: Optional[List[Icon]] = None
