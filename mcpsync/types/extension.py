"""An extension of the protocol, as a client declares it."""

from __future__ import annotations

from typing import Any, Callable, Mapping, NamedTuple, Optional

__all__ = ["Extension"]

_NOTHING: Mapping[str, Any] = {}


class Extension(NamedTuple):
    """An extension that a client declares: ``connect(..., extensions=[Extension("com.example/x", ...)])``.

    A function of ``result_types`` gets a result of that type, and a :class:`~mcpsync.connection.open_call.OpenCall`
    to make further requests with; what it gives is the result of the call. It runs on the thread that waits for the
    call, or, for one that was submitted, on a thread of the library that may block. None in place of a function: the
    caller gets the result as it came.

    Specification: `basic/index`, "Extension Negotiation" and "ResultType" (2026-07-28); SEP-2133.

    :ivar name: its identifier, with a prefix: ``com.example/my-extension``
    :ivar settings: what is declared with it; its meaning is the extension's
    :ivar result_types: values of ``resultType`` that it adds, each with what makes the result of the call of it
    """

    name: str
    settings: Mapping[str, Any] = _NOTHING
    result_types: Mapping[str, Optional[Callable[..., Mapping[str, Any]]]] = _NOTHING
