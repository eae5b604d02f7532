"""The user's handlers, as the connection calls them.

Each turns the params of a request into the type that the user's function takes, and what the function gives into
the result object. A capability is declared for the handlers that are given, and for no other.

Specification: `client/elicitation`, `client/sampling`, `client/roots` of every revision.
"""

from __future__ import annotations

import os
from collections import abc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Union

from mcpsync.connection.questions import Handler
from mcpsync.core import jsonrpc
from mcpsync.errors import ConfigError, InvalidMessage, RpcError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from mcpsync.types import ElicitationRequest, ElicitationResult, Root, SamplingRequest, SamplingResult

    ElicitationAnswer = Union[ElicitationResult, Mapping[str, Any], bool]
    ElicitationHandler = Callable[[ElicitationRequest], Union[ElicitationAnswer, "Future[ElicitationAnswer]"]]
    SamplingAnswer = Union[SamplingResult, str]
    SamplingHandler = Callable[[SamplingRequest], Union[SamplingAnswer, "Future[SamplingAnswer]"]]
    RootLike = Union[str, "os.PathLike[str]", Root]
    Roots = Union[Sequence[RootLike], Callable[[], Iterable[RootLike]]]

__all__ = ["elicitation_handler", "roots_handler", "sampling_handler"]

_MODES = ("form", "url")


def _readable(method: str, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except InvalidMessage as error:
        raise RpcError.of(jsonrpc.INVALID_PARAMS, "%s: %s" % (method, error.message)) from None


def elicitation_handler(function: ElicitationHandler, modes: Sequence[str]) -> Handler:
    """
    :param function: gets an :class:`~mcpsync.types.ElicitationRequest` and gives an
        :class:`~mcpsync.types.ElicitationResult`, a mapping (accept, with this content), True (accept) or False
        (decline)
    :param modes: those that it can deal with
    """
    unknown = sorted(set(modes) - set(_MODES))
    if unknown or not modes:
        raise ConfigError("elicitation_modes takes 'form' and 'url', not %s" % (unknown or "nothing"))

    def ask(params: Dict[str, Any]) -> Any:
        from mcpsync.types import ElicitationRequest

        request = _readable("elicitation/create", lambda: ElicitationRequest.from_wire(params))
        if request.mode not in modes:
            raise RpcError.of(jsonrpc.INVALID_PARAMS, "this client does not deal with the mode %r" % request.mode)
        return function(request)

    return Handler(ask, _elicitation_result)


def _elicitation_result(answer: Any, params: Dict[str, Any]) -> Dict[str, Any]:
    from mcpsync.core.elicitation import check, fill_defaults
    from mcpsync.types import ElicitationResult

    if answer is True or answer is False:
        answer = ElicitationResult.accept(None) if answer else ElicitationResult.decline()
    elif isinstance(answer, Mapping):
        answer = ElicitationResult.accept(dict(answer))
    if not isinstance(answer, ElicitationResult):
        raise TypeError(
            "an elicitation handler gives an ElicitationResult, a mapping or a bool, not %s" % type(answer).__name__
        )
    if answer.action != "accept" or params.get("mode") == "url":
        return {"action": answer.action}
    schema = params.get("requestedSchema")
    content = fill_defaults(schema, answer.content or {})
    problems = check(schema, content)
    if problems:
        raise ValueError("the answer does not fit what was asked for: %s" % "; ".join(problems))
    return {"action": "accept", "content": content}


def sampling_handler(function: SamplingHandler) -> Handler:
    """
    :param function: gets a :class:`~mcpsync.types.SamplingRequest` and gives a
        :class:`~mcpsync.types.SamplingResult`, or the text of the answer
    """

    def ask(params: Dict[str, Any]) -> Any:
        from mcpsync.types import SamplingRequest

        return function(_readable("sampling/createMessage", lambda: SamplingRequest.from_wire(params)))

    return Handler(ask, _sampling_result)


def _sampling_result(answer: Any, params: Dict[str, Any]) -> Dict[str, Any]:
    from mcpsync.types import SamplingResult, TextContent

    if isinstance(answer, str):
        answer = SamplingResult(content=TextContent(text=answer), model="unknown", stop_reason="endTurn")
    if not isinstance(answer, SamplingResult):
        raise TypeError("a sampling handler gives a SamplingResult or a str, not %s" % type(answer).__name__)
    return answer.to_wire()


def roots_handler(roots: Roots) -> Handler:
    """
    :param roots: paths, ``file:`` URIs or :class:`~mcpsync.types.Root`, or a function that gives them
    """

    def ask(params: Dict[str, Any]) -> Any:
        return roots() if callable(roots) else roots

    def wire(answer: Any, params: Dict[str, Any]) -> Dict[str, Any]:
        return {"roots": roots_to_wire(answer)}

    if not callable(roots):
        roots_to_wire(roots)  # a mistake is better found here than when a server asks
    return Handler(ask, wire)


def roots_to_wire(roots: Iterable[RootLike]) -> List[Dict[str, Any]]:
    """The roots as they travel.

    :raises ConfigError: one is none
    """
    from mcpsync.types import Root

    if isinstance(roots, (str, bytes, os.PathLike)):
        raise ConfigError("roots takes a list of paths, URIs or Root, not a single %s" % type(roots).__name__)
    if not isinstance(roots, abc.Iterable):
        raise ConfigError("roots takes a list of paths, URIs or Root, or a function, not %s" % type(roots).__name__)
    listed = []
    for root in roots:
        if isinstance(root, Root):
            listed.append(root.to_wire())
        elif isinstance(root, str) and root.startswith("file:"):
            listed.append({"uri": root})
        elif isinstance(root, (str, os.PathLike)):
            path = Path(os.path.abspath(os.path.expanduser(os.fspath(root))))
            listed.append({"uri": path.as_uri(), "name": path.name or str(path)})
        else:
            raise ConfigError("a root is a path, a file: URI or a Root, not %s" % type(root).__name__)
    return listed


def capabilities_for(
    handlers: Mapping[str, Handler],
    modes: Sequence[str],
    sampling_tools: bool,
    extensions: Optional[Mapping[str, Mapping[str, Any]]],
) -> Dict[str, Any]:
    """The client's capabilities: what there is a handler for."""
    capabilities: Dict[str, Any] = {}
    if "roots/list" in handlers:
        capabilities["roots"] = {"listChanged": True}
    if "sampling/createMessage" in handlers:
        capabilities["sampling"] = {"tools": {}} if sampling_tools else {}
    if "elicitation/create" in handlers:
        capabilities["elicitation"] = {mode: {} for mode in modes}
    if extensions:
        capabilities["extensions"] = {name: dict(settings) for name, settings in extensions.items()}
    return capabilities
