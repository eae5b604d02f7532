"""Credentials in files that are worth nothing without a key."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Iterator, List, Optional, Tuple

from cryptography.exceptions import InvalidTag

from mcpsync.auth.credentials import Credentials, StoreKey
from mcpsync.auth.lock import locked_file
from mcpsync.auth.seal import Seal, decrypted, encrypted
from mcpsync.auth.store import FileStore, StoreLocked, read_private, state_folder
from mcpsync.auth.store_keys import Lock
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError

__all__ = ["EncryptedStore"]

_PATIENCE = 30.0  # seconds, for another process that is writing; one that changes the lock writes every entry


class EncryptedStore(FileStore):
    """As :class:`~mcpsync.auth.store.FileStore`, with every entry encrypted and authenticated (AES-256-GCM).

    Each access looks whether the lock is still the same, so that processes go on, or stop with a clear error, when
    another one changes it.

    :param lock: what it is locked with, see :mod:`mcpsync.auth.store_keys`
    :param folder: by default ``credentials.encrypted`` in the state folder
    """

    def __init__(self, lock: Lock, folder: Optional[str] = None) -> None:
        super().__init__(folder)
        self._lock = lock
        self._known: Optional[Tuple[bytes, Seal]] = None  # replaced as a whole: the seal as it is kept, and opened

    def __repr__(self) -> str:
        return "EncryptedStore(%r)" % self.folder

    @property
    def folder(self) -> str:
        """Where the files are."""
        return self._given or os.path.join(state_folder(), "credentials.encrypted")

    def save(self, key: StoreKey, value: Credentials) -> None:
        """Keep it; whoever reads meanwhile finds the old entry or the new one.

        :raises StoreLocked: with another key
        :raises AuthError: it cannot be written
        """
        with self._writing():
            super().save(key, value)

    def delete(self, key: StoreKey) -> None:
        """Forget it.

        :raises AuthError: it cannot be removed
        """
        with self._writing():
            super().delete(key)

    def change_lock(self, lock: Lock) -> None:
        """Lock it with something else, and encrypt every entry anew. If that is interrupted, it is locked either way,
        and every entry is there.

        :raises StoreLocked: it is not locked with what this object was made with; nothing was changed
        :raises AuthError: it cannot be written
        """
        with self._writing():
            old = self._seal()
            new = Seal.new(*old.keys)
            self._write(self._seal_path, new.locked(lock))
            self._lock, self._known = lock, None
            done = set()
            for key in self.keys():
                value = self.load(key)
                if value is not None:
                    super().save(key, value)
                    done.add(self._path(key))
            entries = (os.path.join(self.folder, name) for name in os.listdir(self.folder) if name.endswith(".json"))
            if done.issuperset(
                entries
            ):  # one that cannot be read at the moment still needs the key it was written with
                self._write(self._seal_path, Seal(new.keys[:1]).locked(lock))

    def take_over(self, plain: FileStore) -> int:
        """Move the entries of a store here that is not encrypted; gives their number.

        :raises AuthError: an entry cannot be written or removed
        """
        keys = plain.keys()
        for key in keys:
            with plain.lock(key, Deadline(_PATIENCE)):
                value = plain.load(key)
                if value is not None:
                    self.save(key, value)
                    plain.delete(key)
        return len(keys)

    def keys(self) -> List[StoreKey]:
        """The keys of all entries, in no order; what is none is passed over.

        :raises StoreLocked: with another key
        """
        if self._has_entries():
            self._seal()
        return super().keys()

    # -- entries -----------------------------------------------------------------------------------------------

    def _sealed(self, name: str, data: bytes) -> bytes:
        return encrypted(self._seal().keys[0], name.encode(), data)

    def _opened(self, name: str, data: bytes) -> bytes:
        for key in self._seal().keys:
            try:
                return decrypted(key, name.encode(), data)
            except InvalidTag:
                continue
        raise AuthError("it is encrypted with no key of this store, or damaged")

    # -- the seal ----------------------------------------------------------------------------------------------

    @property
    def _seal_path(self) -> str:
        return os.path.join(self.folder, "seal")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One at a time, so that nothing is written with a key that is about to go."""
        self._make_folder_or_say_why()
        with locked_file(self._seal_path + ".lock", Deadline(_PATIENCE)):
            yield

    def _seal(self) -> Seal:
        """What entries are encrypted with; a new one where there are no entries."""
        try:
            data = read_private(self._seal_path)[0]
        except FileNotFoundError:
            return self._first_seal()
        except OSError as error:
            raise StoreLocked("%s cannot be read: %s" % (self._seal_path, error.strerror or error)) from None
        known = self._known
        if known is None or known[0] != data:
            known = self._known = (data, Seal.unlocked(data, self._lock, self._seal_path))
        return known[1]

    def _first_seal(self) -> Seal:
        if self._has_entries():
            raise StoreLocked(
                "%s is missing: without it the entries cannot be read; bring it back, or remove the folder and sign "
                "in again" % self._seal_path
            )
        seal = Seal.new()
        data = seal.locked(self._lock)
        self._write(self._seal_path, data)
        self._known = (data, seal)
        return seal

    def _has_entries(self) -> bool:
        try:
            return any(name.endswith(".json") for name in os.listdir(self.folder))
        except OSError:
            return False
