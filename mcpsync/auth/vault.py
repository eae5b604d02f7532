"""What of a store concerns one server.

Credentials are kept by issuer, and who starts knows only the server's URL. So there is a second entry, without
secrets, under the URL and an empty issuer, which says whose credentials are the current ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, ContextManager, Optional

from mcpsync.auth.credentials import ClientIdentity, Credentials, StoreKey, TokenStore
from mcpsync.deadline import Deadline

__all__ = ["Vault"]


class Vault:
    """The credentials for one server and account.

    :param store: where they are kept
    :param url: of the server
    :param account: whose
    :param accepts: whether credentials are of the kind that is wanted; others are left where they are
    :ivar key: of the entry that says which are the current ones
    """

    def __init__(
        self, store: TokenStore, url: str, account: str, accepts: Optional[Callable[[Credentials], bool]] = None
    ) -> None:
        self.store = store
        self.account = account
        self.key = StoreKey("", url, account)
        self._accepts = accepts

    def current(self) -> Optional[Credentials]:
        """The credentials of the last sign-in, in whatever process it was."""
        pointer = self.store.load(self.key)
        return None if pointer is None else self.at(pointer.key)

    def at(self, key: StoreKey) -> Optional[Credentials]:
        """Those of one authorization server and resource."""
        found = self.store.load(key)
        return found if found is None or self._accepts is None or self._accepts(found) else None

    def lock(self, key: StoreKey, deadline: Deadline) -> ContextManager[None]:
        """For whoever is going to replace them."""
        return self.store.lock(key, deadline)

    def keep(self, credentials: Credentials) -> None:
        """Keep them, and as the current ones."""
        self.store.save(credentials.key, credentials)
        pointer = self.store.load(self.key)
        if pointer is None or pointer.key != credentials.key:
            identity = credentials.identity
            nameless = ClientIdentity(identity.client_id, issuer=identity.issuer, source=identity.source)
            self.store.save(self.key, replace(credentials, identity=nameless, tokens=None, proof_key=None))

    def remove(self, credentials: Credentials) -> None:
        """Forget them, the client's registration with them."""
        self.store.delete(credentials.key)
        self.store.delete(self.key)
