"""Answers about JSON values, remembered by what the values are.

Servers list the same tools again whenever they are connected anew or say that their tools changed, and the schemas of
many tools are alike. What is asked of a value must depend on the value alone: then an answer that is remembered is the
one that looking again would give.
"""

from __future__ import annotations

import marshal
from typing import Any, Callable, Dict, Generic, Optional, TypeVar

__all__ = ["Remembered"]

T = TypeVar("T")

_VERSION = 2
"""Of the format: later ones depend on how often a text is in use, so that equal values differ."""


class Remembered(Generic[T]):
    """A function of a JSON value, with a memory. Any thread may call it.

    :param function: depends on the value alone, its order of keys included; what it raises is not remembered
    :param entries: the most answers that are remembered
    :param largest: bytes of the largest value that is
    """

    def __init__(self, function: Callable[[Any], T], entries: int = 2048, largest: int = 4096) -> None:
        self._function = function
        self._entries = entries
        self._largest = largest
        # Each access is one operation of a dict: the worst that threads can do to one another is to look twice.
        self._known: Dict[bytes, T] = {}

    def __call__(self, value: Any) -> T:
        packed = self._packed(value)
        if packed is None:
            return self._function(value)
        try:
            return self._known[packed]
        except KeyError:
            answer = self._function(value)
            if len(self._known) >= self._entries:
                self._known.clear()
            self._known[packed] = answer
            return answer

    def _packed(self, value: Any) -> Optional[bytes]:
        """The value and nothing else, types and order included; None for what is none of JSON, or too large."""
        try:
            packed = marshal.dumps(value, _VERSION)
        except ValueError:  # a mapping of another kind, or nested more deeply than it goes
            return None
        return packed if len(packed) <= self._largest else None
