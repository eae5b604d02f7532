"""Answers that cannot be decoded: whose they are, so that one call fails at once instead of in its own time.

Only what leaves no doubt is taken for an answer: a wrong guess would fail a call whose answer is still to come.
"""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["answered_id"]

_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"\s*,\s*'
_HEAD = re.compile(
    rb'\s*\{\s*(?:%s)?"id"\s*:\s*([0-9]{1,18})\s*,\s*(?:%s)?"(?:result|error)"\s*:' % (_VERSION, _VERSION)
)
"""The start of an answer that names its request first, whatever becomes of it later."""

_DECODER = json.JSONDecoder()


def answered_id(data: bytes) -> Any:
    """The id of the request that a message which cannot be decoded was to answer; None where that cannot be told."""
    head = _HEAD.match(data)
    if head is not None:
        return int(head.group(1))
    try:
        # with what is no UTF-8 replaced, and without what comes behind it, it may be one
        message, _ = _DECODER.raw_decode(data.decode("utf-8", "replace").lstrip("\ufeff \t\r\n"))
    except (ValueError, RecursionError):
        return None
    if type(message) is not dict or "method" in message or not ("result" in message or "error" in message):
        return None
    return message.get("id")
