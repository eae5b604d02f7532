"""Completion of arguments (specification: server/utilities/completion)."""

from __future__ import annotations

from typing import List, Literal, Optional

from mcpsync.types.wire import MetaWire, Wire, constant

__all__ = ["Completion", "CompletionResult", "PromptReference", "ResourceTemplateReference"]


class PromptReference(Wire):
    """The prompt whose argument is to be completed."""

    type: Literal["ref/prompt"] = constant(default="ref/prompt")
    name: str
    title: Optional[str] = None


class ResourceTemplateReference(Wire):
    """The resource template whose variable is to be completed.

    :ivar uri: the URI or URI template
    """

    type: Literal["ref/resource"] = constant(default="ref/resource")
    uri: str


class Completion(Wire):
    """The suggestions for one argument.

    :ivar values: at most 100
    :ivar total: how many there are, if known
    :ivar has_more: whether there are more than ``values``
    """

    values: List[str]
    total: Optional[int] = None
    has_more: Optional[bool] = None


class CompletionResult(MetaWire):
    """The result of ``completion/complete``."""

    completion: Completion
