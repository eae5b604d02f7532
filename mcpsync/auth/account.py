"""One account at one server: signs in, stays signed in, signs out."""

from __future__ import annotations

import logging
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Mapping, Optional, Union

from mcpsync.auth.challenge import BearerChallenge, bearer_challenge
from mcpsync.auth.credentials import Credentials, StoreKey, Tokens
from mcpsync.auth.default_store import default_store
from mcpsync.auth.identity import check_identity_options
from mcpsync.auth.nonces import Nonces
from mcpsync.auth.oauth import OAuth
from mcpsync.auth.session import Session, SignInEnded
from mcpsync.auth.turns import turn_for
from mcpsync.auth.vault import Vault
from mcpsync.auth.web import Web
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError

if TYPE_CHECKING:
    from mcpsync.auth.discovery import Discovery
    from mcpsync.auth.proof import Prover

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
        store = default_store() if oauth.store is None else oauth.store
        self._nonces = Nonces()
        vault = Vault(store, url, oauth.account or name, self._accepts)
        self.session = self._session(vault)

    def __repr__(self) -> str:
        return "<Account %r>" % self.name

    def _session(self, vault: Vault) -> Session:
        if not self.oauth.unattended:
            return Session(vault, self._refresh, self.name, self._nonces)
        from mcpsync.auth.unattended import UnattendedSession

        # now, and not on the thread of the first renewal: a fork in the middle of an import leaves half a module
        for name in ("discovery", "machine", "proof"):
            import_module("mcpsync.auth." + name)
        return UnattendedSession(vault, self._sign_in, self.name, self._nonces)

    def _accepts(self, credentials: Credentials) -> bool:
        """Whether stored credentials are what the options would lead to."""
        oauth = self.oauth
        if credentials.grant != oauth.grant or (oauth.unattended and not self._same_client(credentials)):
            return False
        return credentials.tokens is None or oauth.dpop in (None, credentials.proof_key is not None)

    def _same_client(self, credentials: Credentials) -> bool:
        oauth = self.oauth
        return credentials.identity.client_id == (oauth.client_id or oauth.client_metadata_url) and oauth.issuer in (
            None,
            credentials.issuer,
        )

    # -- signing in --------------------------------------------------------------------------------------------

    def login(self, deadline: Optional[Deadline] = None) -> None:
        """Sign in, through a person where the grant needs one. One thread does; others that want it too, also by other
        clients, wait for that one.

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
            made = self._sign_in(deadline)
            self.session.adopt(replace(made, identity=replace(made.identity, key=None)))
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
        challenge = session.challenge if session.challenge.scheme else self._challenge(web, deadline)
        discovery = discover(
            self._url,
            challenge,
            web,
            deadline,
            issuer=oauth.issuer,
            known_issuers=() if current is None else (current.issuer,),
            server_metadata_url=oauth.server_metadata_url,
            for_people=not oauth.unattended,
        )
        before = vault.at(StoreKey(discovery.issuer, discovery.resource, vault.account))
        known = before or current
        more = session.wanted_scopes
        scopes = choose_scopes(
            discovery,
            configured=oauth.wanted_scopes,
            challenged=more or None,
            before=before.requested if more and before is not None else (),
            lasting=not oauth.unattended,
        )
        saved = None if known is None else known.identity
        prover = self._prover(discovery, challenge)
        if oauth.unattended:
            from mcpsync.auth.identity import identify
            from mcpsync.auth.machine import obtain

            identity = identify(discovery, oauth.identity_options, saved, "", scopes, web, deadline)
            return obtain(oauth, discovery, identity, scopes, prover, self._web, deadline, account=vault.account)
        return sign_in(
            discovery,
            oauth.identity_options,
            saved,
            scopes,
            oauth.chosen_way,
            web,
            deadline,
            account=vault.account,
            identified=vault.keep if before is None or before.tokens is None else None,
            parameters=oauth.parameters,
            prover=prover,
        )

    def _prover(self, discovery: Discovery, challenge: BearerChallenge) -> Optional[Prover]:
        """A new key for the tokens to come; None: they need none.

        :raises AuthError: they should be bound to one, and the authorization server cannot do that
        """
        wanted, metadata = self.oauth.dpop, discovery.resource_metadata
        offered = discovery.server.proof_algorithms
        if wanted is None:
            asked = challenge.scheme == "dpop" or (metadata is not None and metadata.wants_proof)
            wanted = asked and offered is not None
        if not wanted:
            return None
        from mcpsync.auth.proof import ALGORITHM, Prover

        if offered is not None and ALGORITHM not in offered:
            raise AuthError(
                "%s takes proofs of possession signed with %s, and not with %s; dpop=False does without, if the server "
                "allows it" % (discovery.issuer, ", ".join(offered), ALGORITHM)
            )
        return Prover.generate(self._nonces)

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
            return revoke(self._with_key(had), self._web(), deadline or Deadline(_REVOKE_SECONDS))
        except AuthError as error:
            logger.warning("mcpsync: server %r: the tokens were not revoked: %s", self.name, error.message)
            return False

    # -- for the session ---------------------------------------------------------------------------------------

    def _refresh(self, credentials: Credentials, deadline: Deadline) -> Tokens:
        from mcpsync.auth.token_endpoint import TokenRefused, refresh

        prover: Optional[Prover] = None
        if credentials.proof_key is not None:
            from mcpsync.auth.proof import Prover as ProverWithKey

            prover = ProverWithKey.from_pem(credentials.proof_key, self._nonces)
        try:
            return refresh(self._with_key(credentials), self._web(), deadline, prover)
        except TokenRefused as error:
            if error.error in _FINAL:
                raise SignInEnded(
                    "the authorization server ended the sign-in (%s)" % error.error,
                    client_gone=error.error == "invalid_client" and credentials.identity.source == "registered",
                ) from None
            raise

    def _with_key(self, credentials: Credentials) -> Credentials:
        """With the client's key, which is not kept."""
        identity, key = credentials.identity, self.oauth.identity_options.key
        return credentials if key is None else replace(credentials, identity=replace(identity, key=key))

    def _web(self, url: str = "") -> Web:
        """What reaches the authorization server.

        :param url: of another site, which the user named
        """
        return Web(url or self._url, allow_hosts=self.oauth.allow_hosts, verify=self._verify, proxies=self._proxies)
