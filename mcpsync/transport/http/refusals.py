"""HTTP answers that are no MCP answers, and what they say all the same."""

from __future__ import annotations

import email.utils
import json
import re
import time
from typing import Any, Callable, Mapping, Optional

from mcpsync.core import jsonrpc
from mcpsync.errors import HttpError
from mcpsync.transport.http.response import Response

__all__ = [
    "Declined",
    "error_answer",
    "excerpt",
    "may_be_older",
    "not_an_answer",
    "refusal",
    "says_no_session",
]

Masked = Callable[[str], str]

_EXCERPT = 300
_LOOKED_THROUGH = 65536
_LONGEST_WAIT = 86400.0
_DIGITS = re.compile(r"\s*[0-9]+\s*\Z")  # what isdigit() admits is no number always: a superscript is none

_OLDER = (400, 404, 405)
_MODERN_ERRORS = (jsonrpc.UNSUPPORTED_VERSION, jsonrpc.HEADER_MISMATCH, jsonrpc.MISSING_CAPABILITY)

_MEANINGS: Mapping[int, str] = {
    401: " (not signed in: see the options auth and headers)",
    403: " (forbidden)",
    404: " (there is no MCP endpoint at this URL)",
    405: " (this URL does not take the request)",
    429: " (too many requests)",
    503: " (unavailable)",
}


class Declined(HttpError):
    """``initialize`` was refused as by a server that only has the older transport.

    :ivar answer: the JSON-RPC error that the refusal carried all the same
    """

    def __init__(self, refused: HttpError, answer: Optional[bytes]) -> None:
        super().__init__(
            refused.message,
            status=refused.status,
            excerpt=refused.excerpt,
            retry_after=refused.retry_after,
            server=refused.server,
        )
        self.answer = answer


def may_be_older(status: int, body: bytes) -> bool:
    """Whether a refusal of ``initialize`` leaves it open that the server has the older transport.

    Modern servers say which they are: for a method that they do not know with 404 and -32601.
    """
    if status not in _OLDER:
        return False
    message = _message(body)
    error = None if message is None else message.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code not in _MODERN_ERRORS and not (status == 404 and code == jsonrpc.METHOD_NOT_FOUND)


def refusal(response: Response, body: bytes, server: str, masked: Masked) -> HttpError:
    """The error for a status of 400 and above.

    :param masked: hides secrets
    """
    text = excerpt(body, masked)
    return HttpError(
        "HTTP %d%s%s" % (response.status, _MEANINGS.get(response.status, ""), ": " + text if text else ""),
        status=response.status,
        excerpt=text,
        retry_after=_retry_after(response.headers.get("retry-after")),
        server=server,
    )


def not_an_answer(status: int, what: str, body: bytes, server: str, masked: Masked) -> HttpError:
    """The error for a good status with something else than was asked for.

    :param masked: hides secrets
    """
    text = excerpt(body, masked)
    return HttpError(
        "HTTP %d with %s%s" % (status, what, ": " + text if text else ""), status=status, excerpt=text, server=server
    )


def excerpt(body: bytes, masked: Masked) -> str:
    """The start of a body as a line of text, without secrets: those are hidden before one could be cut in two."""
    text = masked(body[:_LOOKED_THROUGH].decode("utf-8", "replace"))[:_EXCERPT]
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def error_answer(body: bytes, request_id: Optional[int]) -> Optional[bytes]:
    """A JSON-RPC error in the body of a refusal, as the answer to the request that was refused.

    Whoever refuses before it reads the id leaves it out, or puts something of its own there.
    """
    message = _message(body)
    error = None if message is None else message.get("error")
    if message is None or not isinstance(error, dict) or not isinstance(error.get("code"), int):
        return None
    message["id"] = request_id
    message.setdefault("jsonrpc", "2.0")
    return json.dumps(message).encode()


def says_no_session(body: bytes) -> bool:
    """Whether a 400 means what 404 should say: many servers answer so for a session that they do not know."""
    message = _message(body)
    error = None if message is None else message.get("error")
    if message is None or message.get("id") is not None or not isinstance(error, dict):
        return False
    return "session" in str(error.get("message")).lower()


def _message(body: bytes) -> Any:
    try:
        message: Any = json.loads(body)
    except (ValueError, RecursionError):  # nested deeply, which is no answer either
        return None
    return message if isinstance(message, dict) else None


def _retry_after(value: Optional[str]) -> Optional[float]:
    if not value:
        return None
    if _DIGITS.match(value):
        return min(float(value), _LONGEST_WAIT)
    moment = email.utils.parsedate_tz(value)
    try:
        return None if moment is None else min(max(0.0, email.utils.mktime_tz(moment) - time.time()), _LONGEST_WAIT)
    except (ValueError, OverflowError):  # it looks like a date, and is none
        return None
