"""Sampling: a server asks the client's model (specification: client/sampling)."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional, Union

from mcpsync.types.common import Role
from mcpsync.types.content import SamplingContentBlock, TextContent
from mcpsync.types.tools import Tool
from mcpsync.types.wire import JsonObject, MetaWire, Wire

__all__ = ["ModelHint", "ModelPreferences", "SamplingMessage", "SamplingRequest", "SamplingResult", "ToolChoice"]


class _Spoken:
    """What has content: one block, or (since 2025-11-25) a list of them."""

    if TYPE_CHECKING:  # each class has the field in its own order
        content: Union[SamplingContentBlock, List[SamplingContentBlock]]

    @property
    def blocks(self) -> List[SamplingContentBlock]:
        """The content as a list, however it was given."""
        return list(self.content) if isinstance(self.content, (list, tuple)) else [self.content]

    @property
    def text(self) -> str:
        """The text blocks, joined with line ends."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, TextContent))


class SamplingMessage(_Spoken, MetaWire):
    """A message of the conversation that the model is to continue."""

    role: Role
    content: Union[SamplingContentBlock, List[SamplingContentBlock]]


class ModelHint(Wire):
    """A model that the server would like.

    :ivar name: a part of the model's name
    """

    name: Optional[str] = None


class ModelPreferences(Wire):
    """What matters to the server in the choice of a model; each priority is from 0 to 1.

    :ivar hints: the first that fits counts
    """

    hints: Optional[List[ModelHint]] = None
    cost_priority: Optional[float] = None
    speed_priority: Optional[float] = None
    intelligence_priority: Optional[float] = None


class ToolChoice(Wire):
    """Whether the model may use tools (since 2025-11-25).

    :ivar mode: ``auto``, ``required`` or ``none``; absent means auto
    """

    mode: Optional[str] = None


class SamplingRequest(MetaWire):
    """The parameters of ``sampling/createMessage``.

    :ivar max_tokens: the most tokens to generate
    :ivar include_context: ``none``, ``thisServer`` or ``allServers``
    :ivar metadata: for the provider of the model
    :ivar tools: what the model may use (since 2025-11-25)
    """

    messages: List[SamplingMessage]
    max_tokens: int
    system_prompt: Optional[str] = None
    model_preferences: Optional[ModelPreferences] = None
    include_context: Optional[str] = None
    temperature: Optional[float] = None
    stop_sequences: Optional[List[str]] = None
    metadata: Optional[JsonObject] = None
    tools: Optional[List[Tool]] = None
    tool_choice: Optional[ToolChoice] = None


class SamplingResult(_Spoken, MetaWire):
    """What the model said: the answer to a :class:`SamplingRequest`.

    :ivar content: one block; a list of them only for a server of 2025-11-25 or later
    :ivar model: the name of the model that was used
    :ivar stop_reason: ``endTurn``, ``stopSequence``, ``maxTokens``, ``toolUse``, or another word
    """

    content: Union[SamplingContentBlock, List[SamplingContentBlock]]
    model: str
    role: Role = "assistant"
    stop_reason: Optional[str] = None
