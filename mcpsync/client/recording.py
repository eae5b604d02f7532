"""A hook that writes each request and how it ended, one JSON object to a line."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from typing import Any, Dict, Union

from mcpsync.connection.hooks import Hook, HookedRequest, Outcome
from mcpsync.errors import RpcError, flat
from mcpsync.transport.masking import HIDDEN, looks_secret

__all__ = ["Recording"]

_DEEPEST = 64


class Recording(Hook):
    """Appends to a file that only its owner can read: for finding out what happened, and for tests.

    Values whose names say that they are secrets (``token``, ``api_key``, ``password``) are written as ``***``, in
    parameters and results; what a text says is written as it is.

    :param path: of the file
    :param headers: whether the headers that other hooks add are written too, those before this one; names that say that
        they are secrets are masked all the same
    :param results: whether results are written, or only that there was one
    """

    def __init__(self, path: Union[str, os.PathLike[str]], *, headers: bool = False, results: bool = True) -> None:
        self.path = os.fspath(path)
        self._headers = headers
        self._results = results

    def __reduce__(self) -> Any:
        return _unpickled, (self.path, self._headers, self._results)

    def after(self, request: HookedRequest, outcome: Outcome, kept: Any) -> None:
        """Write a line."""
        line: Dict[str, Any] = {
            "at": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            "server": request.server,
            "revision": request.protocol_version,
            "id": request.request_id,
            "method": request.method,
            "params": _masked(request.params, _DEEPEST),
            "seconds": round(outcome.seconds, 6),
        }
        if request.meta:
            line["meta"] = _masked(request.meta, _DEEPEST)
        if self._headers and request.headers:
            line["headers"] = _masked(request.headers, _DEEPEST)
        if outcome.error is not None:
            line["error"] = {"type": type(outcome.error).__name__, "message": flat(str(outcome.error))}
            if isinstance(outcome.error, RpcError):
                line["error"]["code"] = outcome.error.code
        elif outcome.result is not None:
            line["result"] = _masked(outcome.result, _DEEPEST) if self._results else HIDDEN
        data = json.dumps(line, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace") + b"\n"
        # One write at the end of the file, whoever else writes there: threads and forked processes need no lock.
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with open(descriptor, "ab", buffering=0) as file:
            file.write(data)


def _unpickled(path: str, headers: bool, results: bool) -> Recording:
    return Recording(path, headers=headers, results=results)


def _masked(value: Any, depth: int) -> Any:
    """A copy without the values whose names say that they are secrets."""
    if isinstance(value, (dict, list, tuple)) and depth == 0:
        return HIDDEN  # nested deeper than anybody reads
    if isinstance(value, dict):
        return {key: HIDDEN if _names_a_secret(key, each) else _masked(each, depth - 1) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_masked(each, depth - 1) for each in value]
    return value


def _names_a_secret(key: Any, value: Any) -> bool:
    if not isinstance(key, str) or key == "progressToken" or isinstance(value, dict):
        return False
    return value is not None and looks_secret(key)
