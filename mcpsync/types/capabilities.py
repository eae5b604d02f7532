"""What the two sides can do, as they declared it."""

from __future__ import annotations

from collections.abc import Mapping as AbstractMapping
from typing import Any, Mapping

from mcpsync.types.raw import RawView

__all__ = ["ClientCapabilities", "ServerCapabilities"]

_NOTHING: Mapping[str, Any] = {}


class _Capabilities(RawView):
    __slots__ = ()

    def has(self, *path: str) -> bool:
        """Whether a capability is declared, as ``has("tools")`` or ``has("tasks", "requests", "tools", "call")``.

        An empty object declares it; ``false`` and ``null`` do not.
        """
        at: Any = self.raw
        for name in path:
            at = at.get(name) if isinstance(at, AbstractMapping) else None
        return at is not None and at is not False

    def _mapping(self, name: str) -> Mapping[str, Any]:
        value = self.raw.get(name)
        return value if isinstance(value, AbstractMapping) else _NOTHING

    @property
    def extensions(self) -> Mapping[str, Any]:
        """The declared extensions by identifier, each with its settings (since 2026-07-28)."""
        return self._mapping("extensions")

    @property
    def experimental(self) -> Mapping[str, Any]:
        """Declared capabilities outside the specification."""
        return self._mapping("experimental")


class ServerCapabilities(_Capabilities):
    """What a server offers (specification: basic/lifecycle, Capability Negotiation)."""

    __slots__ = ()

    @property
    def tools(self) -> bool:
        """It has tools."""
        return self.has("tools")

    @property
    def tools_list_changed(self) -> bool:
        """It tells when its tools change."""
        return self.has("tools", "listChanged")

    @property
    def resources(self) -> bool:
        """It has resources."""
        return self.has("resources")

    @property
    def resources_list_changed(self) -> bool:
        """It tells when its list of resources changes."""
        return self.has("resources", "listChanged")

    @property
    def resources_subscribe(self) -> bool:
        """It tells when a single resource changes, if asked to."""
        return self.has("resources", "subscribe")

    @property
    def prompts(self) -> bool:
        """It has prompts."""
        return self.has("prompts")

    @property
    def prompts_list_changed(self) -> bool:
        """It tells when its prompts change."""
        return self.has("prompts", "listChanged")

    @property
    def logging(self) -> bool:
        """It sends log messages."""
        return self.has("logging")

    @property
    def completions(self) -> bool:
        """It completes arguments (declared since 2025-03-26)."""
        return self.has("completions")


class ClientCapabilities(_Capabilities):
    """What a client handles (specification: basic/lifecycle, Capability Negotiation)."""

    __slots__ = ()

    @property
    def roots(self) -> bool:
        """It names roots."""
        return self.has("roots")

    @property
    def roots_list_changed(self) -> bool:
        """It tells when its roots change (2025-11-25 and earlier)."""
        return self.has("roots", "listChanged")

    @property
    def sampling(self) -> bool:
        """It asks its model."""
        return self.has("sampling")

    @property
    def sampling_tools(self) -> bool:
        """It lets the model use the server's tools while sampling (since 2025-11-25)."""
        return self.has("sampling", "tools")

    @property
    def sampling_context(self) -> bool:
        """It honours ``includeContext``."""
        return self.has("sampling", "context")

    @property
    def elicitation_form(self) -> bool:
        """It asks the user to fill in forms. An empty ``elicitation`` means that too."""
        return self.has("elicitation") and (self.has("elicitation", "form") or not self.has("elicitation", "url"))

    @property
    def elicitation_url(self) -> bool:
        """It sends the user to a URL (since 2025-11-25)."""
        return self.has("elicitation", "url")
