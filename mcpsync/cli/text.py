"""Text of strangers, made harmless for a terminal.

A server's text may hold escape sequences that move the cursor, set the window's title or paste into the shell, and
characters that make text read other than it is. They are shown as Python would write them: ``\\x1b``, ``\\u202e``.
"""

from __future__ import annotations

import re
from typing import Match

__all__ = ["inline", "printable", "shorten"]

# Controls of C0 and C1; what sets the direction of writing; line separators; invisible tags; halves of surrogates.
_UNSAFE_CLASS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufeff\U000e0000-\U000e007f"
)
_UNSAFE = re.compile("[%s]" % _UNSAFE_CLASS)
_UNSAFE_INLINE = re.compile("[\t\n%s]" % _UNSAFE_CLASS)
_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _escaped(match: Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if character in _NAMED:
        return _NAMED[character]
    return "\\x%02x" % code if code < 0x100 else "\\u%04x" % code if code < 0x10000 else "\\U%08x" % code


def printable(text: str) -> str:
    """The text with line ends and tabs as they are, and everything else that is unsafe escaped."""
    return _UNSAFE.sub(_escaped, text.replace("\r\n", "\n"))


def inline(text: str) -> str:
    """The same on one line: line ends and tabs are escaped too."""
    return _UNSAFE_INLINE.sub(_escaped, text)


def shorten(text: str, width: int) -> str:
    """The text, or its beginning and ``...``, in at most so many characters."""
    return text if len(text) <= width else text[: max(0, width - 3)] + "..."
