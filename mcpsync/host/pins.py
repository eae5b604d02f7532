"""Which definitions of tools somebody has agreed to, kept across runs.

A *pin* is the hash of a tool's definition under its server and name. A tool whose definition changed has another hash,
and so no pin. The file is private to the user, replaced whole, and written under a lock between processes. One that
cannot be read approves nothing and is not replaced: whoever damaged it may have wanted that.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from contextlib import suppress
from threading import RLock
from typing import Any, Dict, Optional, Tuple

from mcpsync.auth.lock import locked_file
from mcpsync.auth.store import state_folder
from mcpsync.config.model import ServerConfig
from mcpsync.deadline import Deadline
from mcpsync.errors import ApprovalRefused, AuthError
from mcpsync.types import Tool

__all__ = ["PinStore", "definition_hash", "pin_key"]

logger = logging.getLogger("mcpsync")

_FORMAT = 1
_MOST_BYTES = 16 * 1024 * 1024
_LOCK_SECONDS = 10.0
_NOT_DEFINING = ("_meta", "icons")

Stamp = Tuple[int, int, int]


def definition_hash(tool: Tool) -> str:
    """SHA-256 of what a tool says of itself, whatever the order of keys; metadata and icons do not count."""
    wire = {key: value for key, value in tool.to_wire().items() if key not in _NOT_DEFINING}
    text = json.dumps(wire, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def pin_key(server: ServerConfig, tool: str) -> str:
    """What a pin stands under: server, where it leads, and tool; hashed, as a command line may hold secrets."""
    parts = [server.name, server.url or "", *server.command, tool]
    return hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()


class PinStore:
    """The pins of a user.

    :param path: the file; by default ``pins.json`` in the state folder, which is looked up for each access
    """

    def __init__(self, path: Optional[str] = None) -> None:
        self._given = path
        self._unwritten: Dict[str, str] = {}
        self.after_fork()

    def after_fork(self) -> None:
        """In a forked child, and at first: nobody holds the lock."""
        self._lock = RLock()  # guards what was read last; reentrant, as a finalizer may call a tool at any moment
        self._read: Optional[Tuple[str, Stamp, Dict[str, str]]] = None

    @property
    def path(self) -> str:
        """Where the pins are."""
        return self._given or os.path.join(state_folder(), "pins.json")

    def find(self, key: str) -> Optional[str]:
        """The hash of the definition that was approved; None: none ever was.

        :raises ApprovalRefused: the file cannot be trusted
        """
        with self._lock:
            return self._unwritten.get(key) or self._pins().get(key)

    def add(self, key: str, digest: str) -> None:
        """Remember that this definition was approved, in place of any other of the same tool.

        Where nothing can be written it is remembered for the life of this object, with a warning.

        :raises ApprovalRefused: what is there cannot be trusted
        """
        try:
            path = self.path
            _make_private(os.path.dirname(path))
            with locked_file(path + ".lock", Deadline(_LOCK_SECONDS)), self._lock:
                self._read = None  # two writes within one tick of the clock look the same from outside
                pins = {**self._pins(), key: digest}
                _write(path, json.dumps({"format": _FORMAT, "pins": pins}, indent=1, sort_keys=True))
            return
        except AuthError as error:
            why = error.message
        except OSError as error:
            why = error.strerror or str(error)
        logger.warning("mcpsync: host: an approval is kept for this run alone: %s", why)
        with self._lock:
            self._unwritten[key] = digest

    def _pins(self) -> Dict[str, str]:
        """What is in the file, read anew if it changed."""
        path = self.path
        try:
            about = os.stat(path)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise _untrusted(path, error.strerror or str(error)) from None
        stamp = (about.st_mtime_ns, about.st_size, about.st_ino)
        if self._read is not None and self._read[:2] == (path, stamp):
            return self._read[2]
        if os.name == "posix" and (about.st_uid != os.geteuid() or about.st_mode & 0o022):
            raise _untrusted(path, "others can write to it")
        pins = _parsed(path)
        self._read = (path, stamp, pins)
        return pins


def _make_private(folder: str) -> None:
    if not os.path.isdir(folder):
        _make_private(os.path.dirname(folder))
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)


def _parsed(path: str) -> Dict[str, str]:
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
        content: Any = json.loads(data)
    except OSError as error:
        raise _untrusted(path, error.strerror or str(error)) from None
    except (ValueError, RecursionError):
        raise _untrusted(path, "it is no JSON") from None
    pins = content.get("pins") if isinstance(content, dict) and content.get("format") == _FORMAT else None
    if not isinstance(pins, dict) or not all(isinstance(digest, str) for digest in pins.values()):
        raise _untrusted(path, "it is of no format that this version knows")
    return pins


def _untrusted(path: str, why: str) -> ApprovalRefused:
    return ApprovalRefused(
        "the approvals in %s cannot be trusted (%s), so nothing that needs one is called: "
        "mend the file, or remove it to be asked again" % (path, why)
    )


def _write(path: str, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=os.path.dirname(path))  # 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
