"""What a user may say about signing in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, Union

from mcpsync.auth.credentials import TokenStore
from mcpsync.auth.sources import Source
from mcpsync.errors import ConfigError

if TYPE_CHECKING:
    from mcpsync.auth.browser import Way
    from mcpsync.auth.identity import IdentityOptions

__all__ = ["GRANTS", "OAuth"]

GRANTS = ("authorization_code", "client_credentials", "jwt_bearer", "enterprise")
"""The ways to tokens; all but the first need nobody."""

_WAYS = ("browser", "paste")
_ONLY_FOR = {  # option: the grant that it is of
    "assertion": "jwt_bearer",
    "id_token": "enterprise",
    "idp_issuer": "enterprise",
    "idp_token_endpoint": "enterprise",
    "idp_client_id": "enterprise",
    "idp_client_secret": "enterprise",
}


@dataclass(frozen=True)
class OAuth:
    """How to sign in to one server. All of it is optional: servers that follow the specification need nothing.

    :ivar scopes: to ask for; None: what the server says, which is mostly right
    :ivar client_id: of a client that was registered beforehand
    :ivar client_secret: of that client; secret
    :ivar issuer: the only authorization server that may be used; None: the one that the server names, and that one only
        from then on where there is a ``client_id``
    :ivar server_metadata_url: of the authorization server's metadata, where that is at no place that is specified
    :ivar auth_method: how the client proves itself at the token endpoint: ``none``, ``client_secret_basic``,
        ``client_secret_post`` or ``private_key_jwt``; None: what the server prefers
    :ivar private_key: in place of a secret: PEM, or a function that gives it, as
        :class:`~mcpsync.auth.sources.FromFile`; secret
    :ivar signing_algorithm: that the key has to be for: ``ES256``, ``RS256`` or ``EdDSA``; None: that of the key
    :ivar key_id: under which the authorization server knows the key
    :ivar grant: one of :data:`GRANTS`
    :ivar assertion: for ``jwt_bearer``: what the platform says of this program, or a function that gives it; secret
    :ivar id_token: for ``enterprise``: the user's, or a function that gives it; secret
    :ivar idp_issuer: the identity provider of the organization
    :ivar idp_token_endpoint: of that, where its metadata need not be asked
    :ivar idp_client_id: of this client there
    :ivar idp_client_secret: of this client there; secret
    :ivar dpop: whether tokens are bound to a key of this client; None: where the server asks for it
    :ivar client_metadata_url: URL of a Client ID Metadata Document, the client's id where the server takes such
    :ivar client_name: under which this client registers itself
    :ivar application_type: under which it does: ``native`` or ``web``
    :ivar callback_port: of the callback on this machine; 0: any that is free. A registered client needs the one that it
        was registered with.
    :ivar redirect_uri: in place of the callback on this machine, for ways of the host's own
    :ivar way: how a person signs in: ``"browser"``; ``"paste"`` (the URL is shown on the terminal, and the address
        that a browser elsewhere ends at is pasted); a function of the host's that gets the URL and gives that address;
        or an object of :mod:`mcpsync.auth.browser`
    :ivar parameters: more of them for the authorization endpoint, which a provider wants
    :ivar store: where credentials are kept; None: files of the user's that all processes share
    :ivar account: whose credentials; None: the server's name
    :ivar allow_hosts: hosts that may be asked although they are elsewhere than the issuer, or private
    :ivar interactive: ``connect()`` may ask a person to sign in; False: only ``login()`` does
    :ivar timeout: seconds for a person to sign in
    :raises ConfigError: they do not go together
    """

    scopes: Union[Sequence[str], str, None] = None
    client_id: Optional[str] = None
    client_secret: Optional[str] = field(default=None, repr=False)
    issuer: Optional[str] = None
    server_metadata_url: Optional[str] = None
    auth_method: Optional[str] = None
    client_metadata_url: Optional[str] = None
    client_name: str = "mcpsync"
    application_type: str = "native"
    callback_port: int = 0
    redirect_uri: Optional[str] = None
    way: Union[str, Callable[[str], str], Way] = "browser"
    parameters: Optional[Mapping[str, str]] = field(default=None, repr=False)
    store: Optional[TokenStore] = field(default=None, repr=False)
    account: Optional[str] = None
    allow_hosts: Sequence[str] = ()
    interactive: bool = True
    timeout: float = 300.0
    private_key: Optional[Source] = field(default=None, repr=False)
    signing_algorithm: Optional[str] = None
    key_id: Optional[str] = None
    grant: str = GRANTS[0]
    assertion: Optional[Source] = field(default=None, repr=False)
    id_token: Optional[Source] = field(default=None, repr=False)
    idp_issuer: Optional[str] = None
    idp_token_endpoint: Optional[str] = None
    idp_client_id: Optional[str] = None
    idp_client_secret: Optional[str] = field(default=None, repr=False)
    dpop: Optional[bool] = None

    def __reduce__(self) -> Any:
        if isinstance(self.private_key, (str, bytes)):
            raise TypeError("options with a private key are not pickled; FromFile and FromEnvironment are")
        return super().__reduce__()

    def __post_init__(self) -> None:
        if not callable(self.way) and not hasattr(self.way, "begin") and self.way not in _WAYS:
            raise ConfigError("way is 'browser', 'paste', a function or an object of mcpsync.auth.browser")
        if isinstance(self.callback_port, bool) or not 0 <= self.callback_port < 65536:
            raise ConfigError("callback_port is a port, or 0 for any")
        if not self.timeout > 0:
            raise ConfigError("timeout is a positive number of seconds")
        if isinstance(self.allow_hosts, str):
            raise ConfigError("allow_hosts is a list of hosts")
        if self.dpop not in (None, True, False):
            raise ConfigError("dpop is True, False or None")
        if self.signing_algorithm not in (None, "ES256", "RS256", "EdDSA"):
            raise ConfigError("signing_algorithm is ES256, RS256 or EdDSA")
        self._check_grant()

    def _check_grant(self) -> None:
        if self.grant not in GRANTS:
            raise ConfigError("grant is one of %s" % ", ".join(GRANTS))
        for option, grant in _ONLY_FOR.items():
            if getattr(self, option) is not None and self.grant != grant:
                raise ConfigError("%s is for grant=%r" % (option, grant))
        if not self.unattended:
            return
        if self.client_id is None and self.client_metadata_url is None:
            raise ConfigError("grant %s needs a client_id" % self.grant)
        if self.grant == "client_credentials" and self.client_secret is None and self.private_key is None:
            raise ConfigError("grant client_credentials needs a client_secret or a private_key")
        if self.grant == "jwt_bearer" and self.assertion is None:
            raise ConfigError("grant jwt_bearer needs an assertion")
        if self.grant == "enterprise" and (
            self.id_token is None or self.idp_client_id is None or not (self.idp_issuer or self.idp_token_endpoint)
        ):
            raise ConfigError("grant enterprise needs id_token, idp_client_id, and idp_issuer or idp_token_endpoint")

    @property
    def unattended(self) -> bool:
        """Whether tokens are got without anybody."""
        return self.grant != GRANTS[0]

    @property
    def wanted_scopes(self) -> Optional[Sequence[str]]:
        """The scopes, one by one."""
        return self.scopes.split() if isinstance(self.scopes, str) else self.scopes

    @property
    def identity_options(self) -> IdentityOptions:
        """What concerns the client."""
        from mcpsync.auth.assertion import ClientKey
        from mcpsync.auth.identity import IdentityOptions

        key = self.private_key
        return IdentityOptions(
            client_id=self.client_id,
            client_secret=self.client_secret,
            client_issuer=self.issuer,
            auth_method=self.auth_method,
            metadata_url=self.client_metadata_url,
            client_name=self.client_name,
            application_type=self.application_type,
            key=None if key is None else ClientKey(key, self.signing_algorithm, self.key_id),
        )

    @property
    def chosen_way(self) -> Way:
        """How a person signs in."""
        from mcpsync.auth.browser import Browser, OwnWay, Paste

        if self.way == "browser":
            return Browser(self.callback_port, self.redirect_uri)
        if self.way == "paste":
            return Paste(None, self.callback_port, self.redirect_uri)
        if callable(self.way):
            return OwnWay(self.way, self.redirect_uri, self.callback_port)
        way: Any = self.way  # checked when it was given
        return way  # type: ignore[no-any-return]

    @classmethod
    def of(cls, given: Any) -> OAuth:
        """From ``"oauth"``, a mapping as config files have it, or an object of this class.

        :raises ConfigError: it is none of them
        """
        if isinstance(given, cls):
            return given
        if given in ("oauth", True):
            return cls()
        if isinstance(given, Mapping):
            unknown = sorted(set(given) - set(cls.__dataclass_fields__))
            if unknown:
                raise ConfigError("unknown option %.60r for signing in" % unknown[0])
            return cls(**given)
        raise ConfigError("auth is 'oauth', an OAuth(...) or an object with the Auth interface")
