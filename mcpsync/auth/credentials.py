"""What a sign-in leaves behind, and the interface of what keeps it.

All of these are values: they are never changed, only replaced. None shows a secret in its ``repr``; all pickle and
go to and from plain dictionaries, where keys that this version does not know are kept for the one that wrote them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ContextManager, Dict, Mapping, NamedTuple, Optional, Protocol, Tuple

from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError

if TYPE_CHECKING:
    from mcpsync.auth.assertion import ClientKey

__all__ = ["ClientIdentity", "Credentials", "StoreKey", "TokenStore", "Tokens"]


class StoreKey(NamedTuple):
    """Under what credentials are kept: never used with another issuer, resource or account.

    :ivar issuer: the authorization server's issuer, exactly as it names itself
    :ivar resource: the protected resource, exactly as its metadata names it
    :ivar account: whose; by default the server's name
    """

    issuer: str
    resource: str
    account: str


@dataclass(frozen=True)
class Tokens:
    """What a token endpoint answered (RFC 6749, 5.1).

    :ivar access_token: secret
    :ivar token_type: as the server writes it; ``Bearer`` in any case of letters, or ``DPoP``
    :ivar expires_at: seconds of ``time.time()``; None: the server did not say
    :ivar refresh_token: secret; None: there is none
    :ivar scope: what was granted
    :ivar extra: what this version does not know, kept as it came
    """

    access_token: str = field(repr=False)
    token_type: str = "Bearer"
    expires_at: Optional[float] = None
    refresh_token: Optional[str] = field(default=None, repr=False)
    scope: Tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def expires_within(self, seconds: float) -> bool:
        """Whether the access token is expired then; False where the server did not say when it expires."""
        return self.expires_at is not None and time.time() + seconds >= self.expires_at

    def to_dict(self) -> Dict[str, Any]:
        """As plain data; holds the secrets."""
        return {
            **self.extra,
            "access_token": self.access_token,
            "token_type": self.token_type,
            "expires_at": self.expires_at,
            "refresh_token": self.refresh_token,
            "scope": list(self.scope),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Tokens:
        """From plain data.

        :raises AuthError: it is not what :meth:`to_dict` writes
        """
        read = _Reader(data, "tokens")
        return cls(
            access_token=read.text("access_token"),
            token_type=read.optional_text("token_type") or "Bearer",
            expires_at=read.optional_number("expires_at"),
            refresh_token=read.optional_text("refresh_token"),
            scope=read.texts("scope"),
            extra=read.rest(),
        )


@dataclass(frozen=True)
class ClientIdentity:
    """Who this client is to one authorization server.

    :ivar client_id: public
    :ivar client_secret: secret; None for a public client
    :ivar auth_method: how it proves itself at the token endpoint: ``none``, ``client_secret_basic``,
        ``client_secret_post`` or ``private_key_jwt``
    :ivar issuer: the only authorization server that it is used with
    :ivar source: ``configured`` by the user, ``metadata_document`` (the id is a URL) or ``registered`` dynamically
    :ivar redirect_uris: those that it was registered with; empty where nobody here knows
    :ivar scope: that it was registered for; some servers hold it to that
    :ivar key: for ``private_key_jwt``; never kept
    :ivar secret_expires_at: seconds of ``time.time()``; None: never
    :ivar extra: what this version does not know, kept as it came
    """

    client_id: str
    client_secret: Optional[str] = field(default=None, repr=False)
    auth_method: str = "none"
    issuer: str = ""
    source: str = "configured"
    redirect_uris: Tuple[str, ...] = ()
    secret_expires_at: Optional[float] = None
    scope: Tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)
    key: Optional[ClientKey] = field(default=None, repr=False, compare=False)

    def to_dict(self) -> Dict[str, Any]:
        """As plain data; holds the secret."""
        return {
            **self.extra,
            "client_id": self.client_id,
            "client_secret": self.client_secret,
            "auth_method": self.auth_method,
            "issuer": self.issuer,
            "source": self.source,
            "redirect_uris": list(self.redirect_uris),
            "secret_expires_at": self.secret_expires_at,
            "scope": list(self.scope),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ClientIdentity:
        """From plain data.

        :raises AuthError: it is not what :meth:`to_dict` writes
        """
        read = _Reader(data, "client identity")
        return cls(
            client_id=read.text("client_id"),
            client_secret=read.optional_text("client_secret"),
            auth_method=read.optional_text("auth_method") or "none",
            issuer=read.text("issuer"),
            source=read.optional_text("source") or "configured",
            redirect_uris=read.texts("redirect_uris"),
            secret_expires_at=read.optional_number("secret_expires_at"),
            scope=read.texts("scope"),
            extra=read.rest(),
        )


@dataclass(frozen=True)
class Credentials:
    """All that is needed to stay signed in at one resource, without discovery.

    :ivar issuer: the authorization server's issuer, exactly as it names itself
    :ivar resource: the protected resource, exactly as its metadata names it, or else the server's URL
    :ivar account: whose; by default the server's name
    :ivar identity: who this client is there
    :ivar token_endpoint: where tokens are refreshed
    :ivar revocation_endpoint: where they are revoked; None: the server has none
    :ivar tokens: None: registered, but not signed in
    :ivar requested: the scopes that were asked for; a step-up asks for these and more
    :ivar names_resource: whether token requests name the resource: servers before 2025-06-18 publish none
    :ivar grant: how the tokens were got: ``authorization_code`` by a person, or another of
        :data:`~mcpsync.auth.oauth.GRANTS`
    :ivar proof_key: secret; PEM of the key that the tokens are bound to (DPoP); None: whoever has them can use them
    :ivar extra: what this version does not know, kept as it came
    """

    issuer: str
    resource: str
    account: str
    identity: ClientIdentity
    token_endpoint: str
    revocation_endpoint: Optional[str] = None
    tokens: Optional[Tokens] = None
    requested: Tuple[str, ...] = ()
    names_resource: bool = True
    grant: str = "authorization_code"
    proof_key: Optional[str] = field(default=None, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> Any:
        if self.proof_key is not None:
            raise TypeError("credentials with a private key are not pickled; to_dict() is for what keeps them")
        return super().__reduce__()

    @property
    def key(self) -> StoreKey:
        """Under what these are kept."""
        return StoreKey(self.issuer, self.resource, self.account)

    def to_dict(self) -> Dict[str, Any]:
        """As plain data; holds the secrets."""
        return {
            **self.extra,
            "issuer": self.issuer,
            "resource": self.resource,
            "account": self.account,
            "identity": self.identity.to_dict(),
            "token_endpoint": self.token_endpoint,
            "revocation_endpoint": self.revocation_endpoint,
            "tokens": None if self.tokens is None else self.tokens.to_dict(),
            "requested": list(self.requested),
            "names_resource": self.names_resource,
            "grant": self.grant,
            "proof_key": self.proof_key,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Credentials:
        """From plain data.

        :raises AuthError: it is not what :meth:`to_dict` writes
        """
        read = _Reader(data, "credentials")
        tokens = read.optional_mapping("tokens")
        return cls(
            issuer=read.text("issuer"),
            resource=read.text("resource"),
            account=read.text("account"),
            identity=ClientIdentity.from_dict(read.optional_mapping("identity") or {}),
            token_endpoint=read.text("token_endpoint"),
            revocation_endpoint=read.optional_text("revocation_endpoint"),
            tokens=None if tokens is None else Tokens.from_dict(tokens),
            requested=read.texts("requested"),
            names_resource=read.flag("names_resource", True),
            grant=read.optional_text("grant") or "authorization_code",
            proof_key=read.optional_text("proof_key"),
            extra=read.rest(),
        )


class TokenStore(Protocol):
    """What keeps credentials; a host may give its own. Methods are called from any thread."""

    def load(self, key: StoreKey) -> Optional[Credentials]:
        """What is kept under this key now, also if another process wrote it."""

    def save(self, key: StoreKey, value: Credentials) -> None:
        """Keep it, replacing what was there, as a whole or not at all."""

    def delete(self, key: StoreKey) -> None:
        """Forget it; no error if it is not there."""

    def lock(self, key: StoreKey, deadline: Deadline) -> ContextManager[None]:
        """Held by at most one thread of one process at a time; raises AuthError when the deadline passes."""


class _Reader:
    """Plain data, read key by key; errors name the key and never a value, which may be a secret."""

    def __init__(self, data: Mapping[str, Any], what: str) -> None:
        if not isinstance(data, Mapping):
            raise AuthError("stored %s are a %s, not an object" % (what, type(data).__name__))
        self._left = dict(data)
        self._what = what

    def _wrong(self, key: str, expected: str, value: Any) -> AuthError:
        found = "missing" if value is None else "a %s" % type(value).__name__
        return AuthError("stored %s: %s is %s, not %s" % (self._what, key, found, expected))

    def optional_text(self, key: str) -> Optional[str]:
        value = self._left.pop(key, None)
        if value is not None and not isinstance(value, str):
            raise self._wrong(key, "a text", value)
        return value

    def text(self, key: str) -> str:
        value = self.optional_text(key)
        if value is None:
            raise self._wrong(key, "a text", None)
        return value

    def optional_number(self, key: str) -> Optional[float]:
        value = self._left.pop(key, None)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._wrong(key, "a number", value)
        try:
            return float(value)
        except OverflowError:
            raise self._wrong(key, "a number of seconds", value) from None

    def texts(self, key: str) -> Tuple[str, ...]:
        value = self._left.pop(key, None)
        if value is None:
            return ()
        if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
            raise self._wrong(key, "a list of texts", value)
        return tuple(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self._left.pop(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false", value)
        return value

    def optional_mapping(self, key: str) -> Optional[Mapping[str, Any]]:
        value = self._left.pop(key, None)
        if value is not None and not isinstance(value, Mapping):
            raise self._wrong(key, "an object", value)
        return value

    def rest(self) -> Dict[str, Any]:
        return self._left
