"""Where credentials are kept: in files that all processes of a user share, or in memory."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import stat
import tempfile
import threading
import time
import weakref
from contextlib import contextmanager, suppress
from typing import Any, ContextManager, Dict, Iterator, List, Optional, Set, Tuple

from mcpsync.auth.credentials import Credentials, StoreKey
from mcpsync.auth.lock import locked_file
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError

__all__ = ["FileStore", "MemoryStore", "StoreLocked", "read_private", "state_folder"]

logger = logging.getLogger("mcpsync")

_FORMAT = 1
_MOST_BYTES = 1024 * 1024
_PASSING = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_READINGS = 5  # of an entry that others replace meanwhile


class StoreLocked(AuthError):
    """The store is encrypted, and not with what was given."""


def state_folder() -> str:
    """The folder for what has to last: ``MCPSYNC_HOME``, by default ``~/.mcpsync``, and in it that of the profile that
    ``MCPSYNC_PROFILE`` names.

    :raises AuthError: the name of the profile is none for a folder
    """
    home = os.environ.get("MCPSYNC_HOME") or os.path.join("~", ".mcpsync")
    home = os.path.abspath(os.path.expanduser(home))
    profile = os.environ.get("MCPSYNC_PROFILE")
    if not profile:
        return home
    if profile in (".", "..") or os.path.basename(profile) != profile or "\0" in profile:
        raise AuthError("MCPSYNC_PROFILE is to be the name of a folder, not %.60r" % profile)
    return os.path.join(home, "profiles", profile)


class FileStore:
    """A folder with a file for each entry, private to the user and safe with any number of processes.

    What cannot be read, or is no entry, is set aside under another name, with a warning.

    :param folder: by default ``credentials`` in the state folder, which is looked up for each access
    """

    def __init__(self, folder: Optional[str] = None) -> None:
        self._given = None if folder is None else os.path.abspath(os.path.expanduser(folder))

    def __repr__(self) -> str:
        return "FileStore(%r)" % (self._given or "")

    @property
    def folder(self) -> str:
        """Where the files are."""
        return self._given or os.path.join(state_folder(), "credentials")

    def load(self, key: StoreKey) -> Optional[Credentials]:
        """What is kept under this key; None if that cannot be read, with a warning.

        :raises StoreLocked: it is encrypted with another key
        :raises AuthError: this process can open no file at the moment
        """
        path = self._path(key)
        for _ in range(_READINGS):
            try:
                about = os.lstat(path)
            except OSError:
                return None
            value, reason = self._value_at(path, key)
            if reason is None:
                return value
            if _is_still(path, about):
                _set_aside(path, about, reason)
                return None
        return None

    def _value_at(self, path: str, key: StoreKey) -> Tuple[Optional[Credentials], Optional[str]]:
        """The entry, and if it is none, why."""
        try:
            found, value = _parsed(self._opened(os.path.basename(path), read_private(path)[0]))
            return (value, None) if found == key else (None, "it is the entry of another key")
        except FileNotFoundError:
            return None, None
        except OSError as error:
            if error.errno in _PASSING:  # nothing is wrong with the entry
                failed = AuthError("credentials in %s cannot be read: %s" % (path, error.strerror))
                failed.passing = True
                raise failed from None
            return None, "it cannot be read (%s)" % (error.strerror or error)
        except StoreLocked:
            raise
        except AuthError as error:
            return None, str(error)
        except (ValueError, TypeError, RecursionError):
            return None, "it is no entry of this store"

    def save(self, key: StoreKey, value: Credentials) -> None:
        """Keep it; whoever reads meanwhile finds the old entry or the new one.

        :raises AuthError: it cannot be written
        """
        data = json.dumps({"format": _FORMAT, "key": list(key), "credentials": value.to_dict()}, indent=1)
        path = self._path(key)
        self._write(path, self._sealed(os.path.basename(path), data.encode()))

    def _write(self, path: str, data: bytes) -> None:
        """As a whole or not at all.

        :raises AuthError: it cannot be written
        """
        try:
            self._make_folder()
            descriptor, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=os.path.dirname(path))
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())  # a refresh token that was used up must not come back after a crash
                _replace(temporary, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise
        except OSError as error:
            raise AuthError("credentials cannot be kept in %s: %s" % (path, error.strerror or error)) from None

    def delete(self, key: StoreKey) -> None:
        """Forget it.

        :raises AuthError: it cannot be removed
        """
        path = self._path(key)
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise AuthError("%s cannot be removed: %s" % (path, error.strerror or error)) from None

    def lock(self, key: StoreKey, deadline: Deadline) -> ContextManager[None]:
        """Held by at most one thread of one process at a time.

        :raises AuthError: it was not free by the deadline
        """
        self._make_folder_or_say_why()
        return locked_file(self._path(key)[: -len("json")] + "lock", deadline)

    def keys(self) -> List[StoreKey]:
        """The keys of all entries, in no order; what is none is passed over."""
        found: List[StoreKey] = []
        try:
            names = os.listdir(self.folder)
        except OSError:
            return []
        for name in names:
            path = os.path.join(self.folder, name)
            if name.endswith(".json"):
                with suppress(OSError, AuthError, ValueError, TypeError, RecursionError):
                    key, _ = _parsed(self._opened(name, read_private(path)[0]))
                    if self._path(key) == path:
                        found.append(key)
        return found

    # -- for a store that encrypts -----------------------------------------------------------------------------

    def _sealed(self, name: str, data: bytes) -> bytes:
        """An entry as it is written, under this name."""
        return data

    def _opened(self, name: str, data: bytes) -> bytes:
        """An entry that was written."""
        return data

    # -- files -------------------------------------------------------------------------------------------------

    def _path(self, key: StoreKey) -> str:
        digest = hashlib.sha256("\0".join(key).encode("utf-8", "surrogatepass")).hexdigest()
        return os.path.join(self.folder, digest[:40] + ".json")

    def _make_folder_or_say_why(self) -> None:
        try:
            self._make_folder()
        except OSError as error:
            raise AuthError("%s cannot be used: %s" % (self.folder, error.strerror or error)) from None

    def _make_folder(self) -> None:
        folder = self.folder
        missing = []
        while not os.path.isdir(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for each in reversed(missing):
            with suppress(FileExistsError):
                os.mkdir(each, 0o700)
        if os.name == "posix" and not missing and os.stat(self.folder).st_mode & 0o077:
            os.chmod(self.folder, 0o700)


def read_private(path: str) -> Tuple[bytes, os.stat_result]:
    """A file of this user's, which is made private if it is not.

    :raises OSError: it cannot be opened: a link, say
    :raises AuthError: it is none of this user's files
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise AuthError("it is no file")
        if os.name == "posix":
            if about.st_uid != os.geteuid():
                raise AuthError("it belongs to another user")
            if about.st_mode & 0o077:
                os.fchmod(descriptor, 0o600)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(_MOST_BYTES), about
    finally:
        os.close(descriptor)


def _is_still(path: str, about: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.lstat(path), about)
    except OSError:
        return False


def _set_aside(path: str, about: os.stat_result, reason: str) -> None:
    aside = "%s.%d.aside" % (path[: -len(".json")], time.time_ns())
    try:
        if not os.path.samestat(os.lstat(path), about):
            return  # another process has replaced it
        os.rename(path, aside)
        if not os.path.samestat(os.lstat(aside), about):
            os.link(aside, path)  # it was replaced in this very moment
            os.unlink(aside)
            return
    except OSError as error:
        aside = "it is (%s)" % (error.strerror or error)
    logger.warning("mcpsync: credentials in %s cannot be used: %s; kept as %s", path, reason, aside)


_in_memory: weakref.WeakSet[Any] = weakref.WeakSet()


class MemoryStore:
    """Credentials for the life of this object."""

    def __init__(self) -> None:
        self._entries: Dict[StoreKey, Credentials] = {}
        self.renew()
        _in_memory.add(self)

    def renew(self) -> None:
        """In a forked child: nobody holds a lock there."""
        self._guard = threading.Condition()  # guards the entries and the set
        self._locked: Set[StoreKey] = set()

    def __repr__(self) -> str:
        return "MemoryStore()"

    def load(self, key: StoreKey) -> Optional[Credentials]:
        """What is kept under this key."""
        with self._guard:
            return self._entries.get(key)

    def save(self, key: StoreKey, value: Credentials) -> None:
        """Keep it."""
        with self._guard:
            self._entries[key] = value

    def delete(self, key: StoreKey) -> None:
        """Forget it."""
        with self._guard:
            self._entries.pop(key, None)

    @contextmanager
    def lock(self, key: StoreKey, deadline: Deadline) -> Iterator[None]:
        """Held by at most one thread at a time.

        :raises AuthError: it was not free by the deadline
        """
        with self._guard:
            if not self._guard.wait_for(lambda: key not in self._locked, deadline.remaining()):
                raise AuthError("another thread holds the credentials and did not let go in time")
            self._locked.add(key)
        try:
            yield
        finally:
            with self._guard:
                self._locked.discard(key)
                self._guard.notify_all()

    def keys(self) -> List[StoreKey]:
        """The keys of all entries."""
        with self._guard:
            return list(self._entries)


def _after_fork() -> None:
    for store in list(_in_memory):
        store.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _parsed(data: bytes) -> Tuple[StoreKey, Credentials]:
    entry: Any = json.loads(data)
    if not isinstance(entry, dict) or entry.get("format") != _FORMAT:
        raise AuthError("it is of no format that this version knows")
    key = entry.get("key")
    if not isinstance(key, list) or len(key) != 3 or not all(isinstance(each, str) for each in key):
        raise AuthError("it names no key")
    return StoreKey(*key), Credentials.from_dict(entry.get("credentials") or {})


def _replace(temporary: str, path: str) -> None:
    if os.name != "nt":
        os.replace(temporary, path)
        return
    for attempt in range(20):  # there, a file that somebody reads at this moment cannot be replaced
        try:
            os.replace(temporary, path)
            return
        except PermissionError:
            if attempt == 19:
                raise
            time.sleep(0.01)
