"""The protocol revisions, as one table.

*Legacy* revisions open with an ``initialize`` handshake. *Modern* ones (2026-07-28) have none: each request
carries revision, client and capabilities in its ``_meta``. Everything else that differs between revisions is a
column here; code asks the column, never the name.

Specification: `basic/versioning` (2026-07-28), "Backward Compatibility"; `basic/lifecycle` of the others.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional

__all__ = [
    "CAPABILITIES_KEY",
    "CLIENT_INFO_KEY",
    "LATEST_LEGACY",
    "LATEST_MODERN",
    "LEGACY",
    "LOG_LEVEL_KEY",
    "MODERN",
    "REVISIONS",
    "SERVER_INFO_KEY",
    "SUBSCRIPTION_KEY",
    "VERSION_KEY",
    "Revision",
    "declared",
    "newest_common",
]

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"


class Revision(NamedTuple):
    """What one revision of the protocol does in its own way.

    :ivar name: the revision's date
    :ivar handshake: it opens with ``initialize`` and ``notifications/initialized``
    :ivar metadata: each request carries revision, client and capabilities in ``_meta``
    :ivar headers: HTTP headers that repeat parts of the body: none, the revision, or all of them
    :ivar server_requests: the server sends requests of its own; otherwise results ask for input
    :ivar http_cancel: over HTTP the end of the stream cancels; otherwise (and always on stdio) a notification
    :ivar listen: notifications are asked for with ``subscriptions/listen``; otherwise ``resources/subscribe``
    :ivar batching: JSON-RPC batches exist
    :ivar resumption: an SSE stream can be resumed by event id
    :ivar log_per_request: the log level travels in ``_meta``; otherwise ``logging/setLevel``
    :ivar result_type: results carry ``resultType``
    :ivar not_found: the error code for a resource that does not exist
    :ivar tasks: long-running tasks: none, experimental in the core, or an extension
    :ivar completions_declared: a server that completes arguments says so in its capabilities
    :ivar ping: ``ping`` exists
    :ivar roots_changed: ``notifications/roots/list_changed`` exists
    :ivar elicitation: none, forms, or forms and URLs
    :ivar url_elicitation_error: error -32042 asks to visit a URL first
    :ivar caching: results say how long they stay fresh, and for whom
    """

    name: str
    handshake: bool = True
    metadata: bool = False
    headers: str = "none"
    server_requests: bool = True
    http_cancel: bool = False
    listen: bool = False
    batching: bool = False
    resumption: bool = True
    log_per_request: bool = False
    result_type: bool = False
    not_found: int = -32002
    tasks: str = "none"
    completions_declared: bool = True
    ping: bool = True
    roots_changed: bool = True
    elicitation: str = "none"
    url_elicitation_error: bool = False
    caching: bool = False


_TABLE = (
    Revision("2024-11-05", resumption=False, completions_declared=False),
    Revision("2025-03-26", batching=True),
    Revision("2025-06-18", headers="revision", elicitation="form"),
    Revision(
        "2025-11-25",
        headers="revision",
        tasks="experimental",
        elicitation="form and url",
        url_elicitation_error=True,
    ),
    Revision(
        "2026-07-28",
        handshake=False,
        metadata=True,
        headers="all",
        server_requests=False,
        http_cancel=True,
        listen=True,
        resumption=False,
        log_per_request=True,
        result_type=True,
        not_found=-32602,
        tasks="extension",
        ping=False,
        roots_changed=False,
        elicitation="form and url",
        caching=True,
    ),
)

REVISIONS: Dict[str, Revision] = {revision.name: revision for revision in _TABLE}
"""All revisions that this library speaks, by name, oldest first."""
LEGACY: List[str] = [revision.name for revision in _TABLE if revision.handshake]
MODERN: List[str] = [revision.name for revision in _TABLE if not revision.handshake]
LATEST_LEGACY = LEGACY[-1]
LATEST_MODERN = MODERN[-1]


def declared(capabilities: Mapping[str, Any], revision: Optional[Revision]) -> Dict[str, Any]:
    """A client's capabilities as a revision has them: what it does not know is left out."""
    shaped = dict(capabilities)
    if revision is None:
        return shaped
    if not revision.roots_changed and "roots" in shaped:
        shaped["roots"] = {}
    modes = shaped.get("elicitation")
    if modes is not None and revision.elicitation == "none":
        del shaped["elicitation"]
    elif modes is not None and revision.elicitation == "form":  # the modes came later
        del shaped["elicitation"]
        if "form" in modes or "url" not in modes:
            shaped["elicitation"] = {}
    return shaped


def newest_common(ours: List[str], theirs: object) -> Optional[str]:
    """The newest revision that both lists name; None if there is none, or if theirs is no list."""
    offered = theirs if isinstance(theirs, list) else []
    return next((name for name in reversed(ours) if name in offered), None)
