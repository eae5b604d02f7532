"""The ``auth`` option of a client: who signs its requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Optional

from mcpsync.client.target import is_http
from mcpsync.errors import ConfigError, InsufficientScope, NeedsLogin

if TYPE_CHECKING:
    from mcpsync.auth.account import Account
    from mcpsync.client.options import Options
    from mcpsync.client.target import Target
    from mcpsync.connection.connection import Connection
    from mcpsync.transport.http.authorization import Auth

__all__ = ["NOBODY", "Signing", "signing_for"]

_EXTENSIONS = {
    "client_credentials": "io.modelcontextprotocol/oauth-client-credentials",
    "enterprise": "io.modelcontextprotocol/enterprise-managed-authorization",
}


class Signing(NamedTuple):
    """Who signs.

    :ivar auth: what the transport asks; None: nobody signs
    :ivar account: what can sign in and out; None: nothing here can
    """

    auth: Optional[Auth] = None
    account: Optional[Account] = None

    @property
    def extensions(self) -> Mapping[str, Mapping[str, Any]]:
        """Extensions of the protocol that signing needs, to declare."""
        grant = None if self.account is None else self.account.oauth.grant
        return {_EXTENSIONS[grant]: {}} if grant in _EXTENSIONS else {}

    def attach(self, connection: Connection) -> None:
        """From now on the connection is told when signing in becomes necessary, and when it no longer is."""
        if self.account is not None:
            session = self.account.session
            session.changed = lambda: connection.login_changed(session.signed_out)

    def open(self, connection: Connection) -> None:
        """Open a connection, and have a person sign in for that if necessary: once, and once for more scopes.

        :raises McpError: why it failed
        """
        for helps in (NeedsLogin, InsufficientScope):
            try:
                connection.open()
                return
            except (NeedsLogin, InsufficientScope) as error:
                account = self.account
                if account is None or not account.oauth.interactive or not isinstance(error, (NeedsLogin, helps)):
                    raise
            account.login()
        connection.open()

    def state_of(self, connection: Connection) -> str:
        """The state of a connection, with a look into the store if signing in is necessary."""
        state = connection.state
        if self.account is None or state not in ("ready", "needs_login"):
            return state
        if state == "ready":
            return "needs_login" if self.account.session.needs_login else state
        connection.login.look()
        return connection.state

    def required_account(self, name: str) -> Account:
        """What can sign in and out.

        :raises ConfigError: nothing here can
        """
        if self.account is None:
            raise ConfigError("there is no way to sign in: the client was made without auth='oauth'", server=name)
        return self.account


NOBODY = Signing()


def signing_for(target: Target, name: str, options: Options) -> Signing:
    """Who signs the requests to a server.

    :raises ConfigError: ``auth`` is nothing that could
    """
    given = options.auth
    if given is None:
        return NOBODY
    if not isinstance(target, str) or not is_http(target, options.transport):
        raise ConfigError("auth is for servers that are reached over HTTP", server=name)
    if _signs(given):
        return Signing(given)
    from mcpsync.auth.account import Account
    from mcpsync.auth.oauth import OAuth

    session = options.session
    verify, proxies = options.verify, options.proxies
    if session is not None:  # what it says of the network holds for the authorization server, too
        verify = session.verify if verify is None and session.verify is not True else verify
        proxies = dict(session.proxies) if proxies is None and session.proxies else proxies
    account = Account(OAuth.of(given), target, name, verify=verify, proxies=proxies)
    return Signing(account.session, account)


def _signs(given: Any) -> bool:
    return all(callable(getattr(given, method, None)) for method in ("headers", "challenged", "observed"))
