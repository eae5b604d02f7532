"""What an encrypted store is locked with: a key of the environment, a passphrase, or what the system's keyring keeps.

Specification: RFC 7914 (scrypt).
"""

from __future__ import annotations

import base64
import secrets
from importlib import import_module
from typing import Any, NoReturn, Optional, Protocol

from mcpsync.auth.sources import FromEnvironment, Source, text_of
from mcpsync.errors import AuthError, ConfigError

__all__ = ["KEY_BYTES", "Key", "Keyring", "Lock", "Passphrase", "new_key"]

KEY_BYTES = 32
_N, _R, _P = 2**15, 8, 3  # 32 MB and about a quarter of a second


class Lock(Protocol):
    """What a store is locked with.

    :ivar kind: for errors
    """

    kind: str

    def key(self, salt: bytes) -> bytes:
        """32 bytes, the same for the same salt.

        :raises AuthError: there is none
        """


class _Secret:
    """Never pickled and never shown."""

    kind = ""

    def __repr__(self) -> str:
        return "%s()" % type(self).__name__

    def __reduce__(self) -> NoReturn:
        raise TypeError("what a store is locked with is not pickled")


class Key(_Secret):
    """A key as :func:`new_key` makes it.

    :param source: the text, or what gives it; by default the environment variable ``MCPSYNC_STORE_KEY``
    """

    kind = "a key"

    def __init__(self, source: Optional[Source] = None) -> None:
        self._source = FromEnvironment("MCPSYNC_STORE_KEY") if source is None else source

    def key(self, salt: bytes) -> bytes:
        """The same for any salt.

        :raises AuthError: it is none
        """
        return _decoded(text_of(self._source, "the key of the store"))


class Passphrase(_Secret):
    """A passphrase, which scrypt makes a key of.

    :param source: the text, or what gives it; by default the environment variable ``MCPSYNC_STORE_PASSPHRASE``
    """

    kind = "a passphrase"

    def __init__(self, source: Optional[Source] = None) -> None:
        self._source = FromEnvironment("MCPSYNC_STORE_PASSPHRASE") if source is None else source

    def key(self, salt: bytes) -> bytes:
        """Takes its time.

        :raises AuthError: there is no passphrase
        """
        from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

        text = text_of(self._source, "the passphrase of the store")
        return Scrypt(salt=salt, length=KEY_BYTES, n=_N, r=_R, p=_P).derive(text.encode())


class Keyring(_Secret):
    """A key in the keyring of the system, which makes one when there is none. Needs ``mcpsync[keyring]``.

    :param service: under which it is there
    :param user: under which it is there
    """

    kind = "a key in the keyring"

    def __init__(self, service: str = "mcpsync", user: str = "credentials") -> None:
        self._service = service
        self._user = user

    def key(self, salt: bytes) -> bytes:
        """The same for any salt.

        :raises AuthError: the keyring cannot be used
        """
        try:
            keyring: Any = import_module("keyring")
        except ImportError:
            raise ConfigError("the keyring of the system needs `pip install mcpsync[keyring]`") from None
        try:
            text = keyring.get_password(self._service, self._user)
            if text is None:
                keyring.set_password(self._service, self._user, new_key())
                text = keyring.get_password(self._service, self._user)
        except Exception as error:
            # its backends raise what they like; their texts may hold what they were given
            raise AuthError("the keyring of the system cannot be used: %s" % type(error).__name__) from None
        return _decoded(text or "")


def new_key() -> str:
    """A key for :class:`Key`; secret."""
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def _decoded(text: str) -> bytes:
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise AuthError("the key of the store is not %d bytes in base64, as new_key() makes it" % KEY_BYTES)
    return key
