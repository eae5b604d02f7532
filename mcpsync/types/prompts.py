"""Prompts, and what getting one returns (specification: server/prompts)."""

from __future__ import annotations

from typing import List, Optional

from mcpsync.types.common import Icon, Role
from mcpsync.types.content import ContentBlock
from mcpsync.types.wire import MetaWire, Wire

__all__ = ["Prompt", "PromptArgument", "PromptMessage", "PromptResult"]


class PromptArgument(Wire):
    """An argument that a prompt takes; its value is a string."""

    name: str
    title: Optional[str] = None
    description: Optional[str] = None
    required: Optional[bool] = None


class Prompt(MetaWire):
    """A prompt that a server offers."""

    name: str
    title: Optional[str] = None
    description: Optional[str] = None
    arguments: Optional[List[PromptArgument]] = None
    icons: Optional[List[Icon]] = None


class PromptMessage(Wire):
    """A message of a prompt."""

    role: Role
    content: ContentBlock


class PromptResult(MetaWire):
    """The result of ``prompts/get``."""

    messages: List[PromptMessage]
    description: Optional[str] = None
