"""Where credentials are kept if nobody says otherwise: in files, encrypted where the environment says with what."""

from __future__ import annotations

import os

from mcpsync.auth.store import FileStore
from mcpsync.errors import ConfigError

__all__ = ["default_store"]

_VARIABLES = ("MCPSYNC_STORE_KEY", "MCPSYNC_STORE_PASSPHRASE", "MCPSYNC_STORE_KEYRING")


def default_store() -> FileStore:
    """The store of this user.

    :raises ConfigError: the environment names several locks
    """
    named = [name for name in _VARIABLES if os.environ.get(name)]
    if not named:
        return FileStore()
    if len(named) > 1:
        raise ConfigError("%s are both set: the store has one lock" % " and ".join(named[:2]))
    from mcpsync.auth.encrypted_store import EncryptedStore
    from mcpsync.auth.store_keys import Key, Keyring, Passphrase

    kinds = dict(zip(_VARIABLES, (Key, Passphrase, Keyring)))
    return EncryptedStore(kinds[named[0]]())
