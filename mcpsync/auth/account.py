"""One account at one server: signs in, stays signed in, signs out."""

from __future__ import annotations

import logging
from typing import Mapping, Optional, Union

from mcpsync.auth.challenge import BearerChallenge, bearer_challenge
from mcpsync.auth.credentials import Credentials, StoreKey, Tokens
from mcpsync.auth.identity import check_identity_options
from mcpsync.auth.oauth import OAuth
from mcpsync.auth.session import Session, SignInEnded
from mcpsync.auth.store import FileStore
from mcpsync.auth.turns import turn_for
from mcpsync.auth.vault import Vault
from mcpsync.auth.web import Web
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError

__all__ = ["Account"]

logger = logging.getLogger("mcpsync")

_REVOKE_SECONDS = 10.0
_PROBE_SECONDS = 10.0
_FINAL = ("invalid_grant", "invalid_client", "unauthorized_client")


class Account:
    """Somebody's access to one server.

    :param oauth: the user's options
    :param url: of the server
    :param name: of the server, for errors, the names of threads, and as the account's name if the options give none
    :param verify: as for requests to the server itself
    :param proxies: as for requests to the server itself
    :ivar session: signs requests
    """

    def __init__(
        self,
        oauth: OAuth,
        url: str,
        name: str,
        *,
        verify: Union[bool, str, None] = None,
        proxies: Optional[Mapping[str, str]] = None,
    ) -> None:
        self.oauth = oauth
        self.name = name
        self._url = url
        self._verify = verify
        self._proxies = proxies
        check_identity_options(oauth.identity_options)
        store = FileStore() if oauth.store is None else oauth.store
        self.session = Session(Vault(store, url, oauth.account or name), self._refresh, name)

    def __repr__(self) -> str:
        return "<Account %r>" % self.name

    # -- signing in --------------------------------------------------------------------------------------------

    def login(self, deadline: Optional[Deadline] = None) -> None:
        """Have a person sign in. One thread does; others that want it too, also by other clients, wait for that one.

        :param deadline: for all of it; that of the options if not given
        :raises AuthError: it failed, or took too long
        """
        deadline = Deadline(self.oauth.timeout) if deadline is None else deadline
        turn = turn_for(self.session.vault)
        times = turn.times
        left = deadline.remaining()
        if not turn.lock.acquire(timeout=-1 if left is None else left):
            raise AuthError("another thread is signing in, and was not done in time")
        try:
            if turn.times != times and self.session.look():
                return
            self.session.adopt(self._sign_in(deadline))
            self.session.wanted_scopes = ()
            turn.times += 1
        finally:
            turn.lock.release()

    def _sign_in(self, deadline: Deadline) -> Credentials:
        from mcpsync.auth.authorization_code import choose_scopes
        from mcpsync.auth.discovery import discover
        from mcpsync.auth.sign_in import sign_in

        oauth, session, web = self.oauth, self.session, self._web()
        vault = session.vault
        current = vault.current()
        discovery = discover(
            self._url,
            session.challenge if session.challenge.scheme else self._challenge(web, deadline),
            web,
            deadline,
            issuer=oauth.issuer,
            known_issuers=() if current is None else (current.issuer,),
            server_metadata_url=oauth.server_metadata_url,
        )
        before = vault.at(StoreKey(discovery.issuer, discovery.resource, vault.account))
        known = before or current
        more = session.wanted_scopes
        return sign_in(
            discovery,
            oauth.identity_options,
            None if known is None else known.identity,
            choose_scopes(
                discovery,
                configured=oauth.wanted_scopes,
                challenged=more or None,
                before=before.requested if more and before is not None else (),
            ),
            oauth.chosen_way,
            web,
            deadline,
            account=vault.account,
            identified=vault.keep if before is None or before.tokens is None else None,
            parameters=oauth.parameters,
        )

    def _challenge(self, web: Web, deadline: Deadline) -> BearerChallenge:
        """What the server says to a request that nobody signed: where it is told, discovery need not guess."""
        try:
            answer = web.get_json(self._url, deadline.sooner(_PROBE_SECONDS))
        except AuthError:
            return BearerChallenge()
        return bearer_challenge(answer.headers.get("www-authenticate") if answer.status == 401 else None)

    def logout(self, deadline: Optional[Deadline] = None) -> bool:
        """Forget the tokens, and have the authorization server forget them.

        :returns: whether it was told; it need not have a way to
        :raises AuthError: the store cannot be changed
        """
        from mcpsync.auth.token_endpoint import revoke

        had = self.session.forget()
        if had is None or had.tokens is None:
            return False
        try:
            return revoke(had, self._web(), deadline or Deadline(_REVOKE_SECONDS))
        except AuthError as error:
            logger.warning("mcpsync: server %r: the tokens were not revoked: %s", self.name, error.message)
            return False

    # -- for the session ---------------------------------------------------------------------------------------

    def _refresh(self, credentials: Credentials, deadline: Deadline) -> Tokens:
        from mcpsync.auth.token_endpoint import TokenRefused, refresh

        try:
            return refresh(credentials, self._web(), deadline)
        except TokenRefused as error:
            if error.error in _FINAL:
                raise SignInEnded(
                    "the authorization server ended the sign-in (%s)" % error.error,
                    client_gone=error.error == "invalid_client" and credentials.identity.source == "registered",
                ) from None
            raise

    def _web(self) -> Web:
        return Web(self._url, allow_hosts=self.oauth.allow_hosts, verify=self._verify, proxies=self._proxies)
