"""Elicitation: a server asks the user (specification: client/elicitation)."""

from __future__ import annotations

from typing import Literal, Optional

from mcpsync.errors import InvalidMessage
from mcpsync.types.wire import JsonObject, MetaWire

__all__ = ["ElicitationRequest", "ElicitationResult"]


class ElicitationRequest(MetaWire):
    """The parameters of ``elicitation/create`` (since 2025-06-18).

    :ivar message: what to tell the user
    :ivar mode: ``form``: fill in a form; ``url``: visit a URL (since 2025-11-25)
    :ivar requested_schema: in form mode: a flat JSON Schema of the answer
    :ivar url: in URL mode: where to go; ask for consent before opening it
    :ivar elicitation_id: in URL mode: what a completion notification refers to (2025-11-25)
    """

    message: str
    mode: str = "form"
    requested_schema: Optional[JsonObject] = None
    url: Optional[str] = None
    elicitation_id: Optional[str] = None

    @classmethod
    def from_wire(cls, wire: JsonObject) -> ElicitationRequest:
        """Read the JSON object of the protocol. A mode unknown to this library is kept as it is.

        :raises InvalidMessage: it is no object, or lacks what its mode requires
        """
        made = super().from_wire(wire)
        if made.mode == "form" and made.requested_schema is None:
            raise InvalidMessage("ElicitationRequest.requestedSchema: required in form mode: an object")
        if made.mode == "url" and made.url is None:
            raise InvalidMessage("ElicitationRequest.url: required in URL mode: a string")
        return made


class ElicitationResult(MetaWire):
    """The user's answer to an :class:`ElicitationRequest`.

    :ivar content: with ``accept`` in form mode: what the user filled in
    """

    action: Literal["accept", "decline", "cancel"]
    content: Optional[JsonObject] = None

    @classmethod
    def accept(cls, content: Optional[JsonObject] = None) -> ElicitationResult:
        """The user agreed, and filled in ``content`` in form mode."""
        return cls("accept", content)

    @classmethod
    def decline(cls) -> ElicitationResult:
        """The user said no."""
        return cls("decline")

    @classmethod
    def cancel(cls) -> ElicitationResult:
        """The user made no choice."""
        return cls("cancel")
