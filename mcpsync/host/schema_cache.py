"""The tools that servers had the last time, so that they can be shown before a slow one is up.

Memory first; a file per connection in the state folder where memory has nothing. A file's name is a fingerprint of all
that the connection is made of, so a changed entry never gets the tools of the old one, and nothing of the entry can be
read from it. What cannot be read or written costs the cache and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from contextlib import suppress
from threading import RLock
from typing import Any, Dict, List, Optional, Sequence, Tuple

from mcpsync.auth.store import state_folder
from mcpsync.config import ServerConfig
from mcpsync.errors import McpError
from mcpsync.types import Tool

__all__ = ["SchemaCache", "fingerprint"]

logger = logging.getLogger("mcpsync")

_FORMAT = 1
_MOST_BYTES = 16 * 1024 * 1024


def fingerprint(server: ServerConfig) -> str:
    """Stands for all that decides whom the connection leads to and as whom; the server's name does not."""
    parts = [
        list(server.command),
        sorted(server.env.items()),
        server.cwd,
        server.url,
        sorted(server.headers.items()),
        None if server.auth is None else sorted((name, repr(value)) for name, value in server.auth.items()),
        server.transport,
        server.protocol,
        server.env_mode,
        server.headers_command,
    ]
    text = json.dumps(parts, ensure_ascii=True)
    # slow on purpose: the files lie on disk, and a short secret must not be found by trying
    return hashlib.pbkdf2_hmac("sha256", text.encode(), b"mcpsync schema cache", 1000)[:16].hex()


class SchemaCache:
    """Tools by fingerprint.

    :param on_disk: keep files too
    :param folder: for them; by default ``schemas`` in the state folder
    """

    def __init__(self, on_disk: bool = True, folder: Optional[str] = None) -> None:
        self._on_disk = on_disk
        self._given = folder
        self._memory: Dict[str, Tuple[Tool, ...]] = {}
        self.after_fork()

    def after_fork(self) -> None:
        """In a forked child, and at first."""
        self._lock = RLock()  # guards the memory

    def recall(self, key: str) -> Optional[Sequence[Tool]]:
        """The tools; None if nothing is known of them."""
        with self._lock:
            known = self._memory.get(key)
        if known is not None or not self._on_disk:
            return known
        try:
            tools = _read(self._path(key))
        except FileNotFoundError:
            return None
        except (OSError, LookupError, ValueError, TypeError, RecursionError, McpError) as error:
            logger.info("mcpsync: host: a file of the schema cache is of no use (%s)", type(error).__name__)
            return None
        with self._lock:
            return self._memory.setdefault(key, tuple(tools))

    def remember(self, key: str, tools: Sequence[Tool]) -> None:
        """Keep them."""
        with self._lock:
            if self._memory.get(key) == tuple(tools):
                return
            self._memory[key] = tuple(tools)
        if self._on_disk:
            try:
                _write(self._path(key), tools)
            except (OSError, ValueError, RecursionError, McpError) as error:
                logger.info("mcpsync: host: the schema cache cannot be written (%s)", error)

    def forget(self, key: str) -> None:
        """Keep them no longer."""
        with self._lock:
            self._memory.pop(key, None)
        if self._on_disk:
            with suppress(OSError, McpError):
                os.unlink(self._path(key))

    def _path(self, key: str) -> str:
        return os.path.join(self._given or os.path.join(state_folder(), "schemas"), key + ".json")


def _read(path: str) -> List[Tool]:
    with open(path, "rb") as file:
        data = file.read(_MOST_BYTES + 1)
    document: Any = json.loads(data)
    if len(data) > _MOST_BYTES or not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise ValueError("no file of this cache")
    return [Tool.from_wire(tool) for tool in document["tools"]]


def _write(path: str, tools: Sequence[Tool]) -> None:
    data = json.dumps({"format": _FORMAT, "tools": [tool.to_wire() for tool in tools]})
    folder = os.path.dirname(path)
    for level in (os.path.dirname(folder), folder):  # a new folder's mode is not that of the folders above it
        os.makedirs(level, mode=0o700, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=folder)  # 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
