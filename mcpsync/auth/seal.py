"""The keys that entries of an encrypted store are encrypted with, themselves encrypted with what locks the store.

So the lock is changed by writing one small file, and after that the entries, one by one: whatever is interrupted,
each entry is under a key that the file holds.

Specification: NIST SP 800-38D (AES-GCM).
"""

from __future__ import annotations

import base64
import json
import os
from typing import Any, Dict, List, NamedTuple, Tuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mcpsync.auth.store import StoreLocked
from mcpsync.auth.store_keys import KEY_BYTES, Lock

__all__ = ["Seal", "decrypted", "encrypted"]

_FORMAT = 1
_NONCE = 12
_SALT = 16
_WHAT = b"mcpsync seal"


class Seal(NamedTuple):
    """The keys of entries; the first is the one that is used, others are for entries from before."""

    keys: Tuple[bytes, ...]

    def __repr__(self) -> str:
        return "<Seal with %d keys>" % len(self.keys)

    @classmethod
    def new(cls, *older: bytes) -> Seal:
        """With a new key before older ones."""
        return cls((AESGCM.generate_key(KEY_BYTES * 8), *older))

    def locked(self, lock: Lock) -> bytes:
        """As it is kept.

        :raises AuthError: the lock has no key
        """
        salt = os.urandom(_SALT)
        keys = json.dumps([base64.b64encode(key).decode() for key in self.keys]).encode()
        sealed = encrypted(lock.key(salt), _WHAT + lock.kind.encode() + salt, keys)
        texts = {"salt": base64.b64encode(salt).decode(), "keys": base64.b64encode(sealed).decode()}
        return json.dumps({"format": _FORMAT, "kind": lock.kind, **texts}).encode()

    @classmethod
    def unlocked(cls, data: bytes, lock: Lock, where: str) -> Seal:
        """As it was kept.

        :raises StoreLocked: with another lock, or it is damaged
        :raises AuthError: the lock has no key
        """
        try:
            said: Dict[str, Any] = json.loads(data)
            form, kind = said["format"], said["kind"]
            salt, sealed = base64.b64decode(said["salt"]), base64.b64decode(said["keys"])
        except (ValueError, TypeError, LookupError, RecursionError):
            raise StoreLocked("%s is damaged: without it the entries cannot be read; bring it back" % where) from None
        if form != _FORMAT:
            raise StoreLocked("%s is of a format that this version does not know" % where)
        if kind != lock.kind:
            raise StoreLocked("the store of %s is locked with %.40s, and not with %s" % (where, kind, lock.kind))
        try:
            opened = decrypted(lock.key(salt), _WHAT + lock.kind.encode() + salt, sealed)
        except InvalidTag:
            raise StoreLocked(
                "the store of %s is locked with another one than %s that was given; nothing was changed"
                % (where, lock.kind)
            ) from None
        found: List[str] = json.loads(opened)
        return cls(tuple(base64.b64decode(key) for key in found))


def encrypted(key: bytes, about: bytes, data: bytes) -> bytes:
    """With a nonce before it.

    :param about: what the result cannot be separated from
    """
    nonce = os.urandom(_NONCE)
    return nonce + AESGCM(key).encrypt(nonce, data, about)


def decrypted(key: bytes, about: bytes, data: bytes) -> bytes:
    """
    :raises InvalidTag: it is of another key, about something else, or was changed
    """
    if len(data) <= _NONCE:
        raise InvalidTag
    return AESGCM(key).decrypt(data[:_NONCE], data[_NONCE:], about)
