"""Schemas say the same few words over and over: each is kept once, however many tools there are."""

from __future__ import annotations

import sys
from typing import Any, List

__all__ = ["share_texts"]

_LONGEST = 64


def share_texts(schema: Any) -> None:
    """Replace short texts in a JSON value that nobody else has yet by the interpreter's one copy of each."""
    waiting: List[Any] = [schema]
    while waiting:
        value = waiting.pop()
        pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in pairs:  # only values of keys that are there change: that is no change of the dict's shape
            if type(inner) is str:
                if len(inner) <= _LONGEST:
                    value[key] = sys.intern(inner)
            elif isinstance(inner, (dict, list)):
                waiting.append(inner)
