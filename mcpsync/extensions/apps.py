"""MCP Apps: user interfaces that a server brings along, for programs that render them.

::

    from mcpsync.extensions import apps

    with mcpsync.connect(url, extensions=apps.EXTENSION) as client:    # declares that this program renders them
        for tool in client.list_tools():
            ui = apps.ui_of(tool)
            if ui.resource_uri is not None:
                page = apps.read(client, ui.resource_uri)              # HTML, and what it asks for

A host takes the same option. It hides tools that are for an app alone from the model, whether it renders apps or not.
To show a page safely (a sandbox with an origin of its own, and a policy of what it may load) is the program's part.

Specification: the extension ``io.modelcontextprotocol/ui`` (SEP-1865), 2026-01-26.
"""

from __future__ import annotations

from collections.abc import Mapping as AbstractMapping
from typing import TYPE_CHECKING, Any, FrozenSet, Mapping, NamedTuple, Optional

from mcpsync.client.features import DEFAULT
from mcpsync.errors import ProtocolError

if TYPE_CHECKING:
    from mcpsync.client.client import Client
    from mcpsync.client.features import Timeout
    from mcpsync.types import ResourceContents, Tool

__all__ = ["EXTENSION", "MIME_TYPE", "NAME", "AppPage", "ToolUi", "read", "ui_of"]

NAME = "io.modelcontextprotocol/ui"
MIME_TYPE = "text/html;profile=mcp-app"

EXTENSION: Mapping[str, Mapping[str, Any]] = {NAME: {"mimeTypes": [MIME_TYPE]}}
"""For the option ``extensions`` of a client or host: it declares that the program renders apps."""

_SCHEME = "ui://"
_EVERYBODY = frozenset(("model", "app"))


class ToolUi(NamedTuple):
    """What a tool says of user interfaces.

    :ivar resource_uri: of the page that shows its results; None: it has none
    :ivar visibility: who may call it: ``model``, ``app``, or both
    """

    resource_uri: Optional[str] = None
    visibility: FrozenSet[str] = _EVERYBODY

    @property
    def for_model(self) -> bool:
        """Whether a model may see and call it."""
        return "model" in self.visibility

    @property
    def for_app(self) -> bool:
        """Whether an app of the same server may call it."""
        return "app" in self.visibility


def ui_of(tool: Tool) -> ToolUi:
    """What a tool says of user interfaces; what cannot be read counts as unsaid."""
    meta = tool.meta or {}
    ui = meta.get("ui")
    ui = ui if isinstance(ui, AbstractMapping) else {}
    uri = ui.get("resourceUri", meta.get("ui/resourceUri"))  # the latter is how it was written at first
    visibility = ui.get("visibility")
    return ToolUi(
        uri if isinstance(uri, str) and uri.startswith(_SCHEME) else None,
        frozenset(who for who in visibility if isinstance(who, str)) if isinstance(visibility, list) else _EVERYBODY,
    )


class AppPage(NamedTuple):
    """A page of an app.

    :ivar uri: of the resource
    :ivar html: the document: text of a stranger, to be shown in a sandbox
    :ivar meta: what it asks for, as the server said it: ``csp``, ``permissions``, ``domain``, ``prefersBorder``
    """

    uri: str
    html: str
    meta: Mapping[str, Any]


def read(client: Client, uri: str, *, timeout: Timeout = DEFAULT) -> AppPage:
    """Read a page.

    :param uri: as :attr:`ToolUi.resource_uri` has it
    :raises ProtocolError: it is no page of an app
    :raises RpcError: what the server answered
    """
    if not uri.startswith(_SCHEME):
        raise ProtocolError("%.200r is no page of an app: its URI begins with ui://" % uri, server=client.name)
    for content in client.read_resource(uri, timeout=timeout).contents:
        if "".join((content.mime_type or "").lower().split()) == MIME_TYPE:
            said = (content.meta or {}).get("ui")
            return AppPage(uri, _html(content, client.name), said if isinstance(said, AbstractMapping) else {})
    raise ProtocolError("%.200r is no page of an app: it has no %s" % (uri, MIME_TYPE), server=client.name)


def _html(content: ResourceContents, server: str) -> str:
    if content.text is not None:
        return content.text
    try:
        return content.data_bytes.decode("utf-8")
    except UnicodeDecodeError:
        raise ProtocolError("%.200r is no text in UTF-8" % content.uri, server=server) from None
