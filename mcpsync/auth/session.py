"""Staying signed in at one server: a header for each request, and a new token before the old one fails.

What a person is needed for is not done here, see :mod:`mcpsync.auth.login`; it is asked for with
:class:`~mcpsync.NeedsLogin`.

Specification: `basic/authorization`, "Access Token Usage", "Token Handling" and "Step-Up Authorization Flow".
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Deque, Dict, Iterator, Mapping, Optional, Protocol, Tuple

from mcpsync.auth.challenge import BearerChallenge, bearer_challenge
from mcpsync.auth.credentials import Credentials, Tokens
from mcpsync.auth.flight import Flight
from mcpsync.auth.nonces import Nonces, wants_nonce
from mcpsync.auth.signed import DPOP, Signed, is_stale, skew_of, stamped, token_in
from mcpsync.auth.vault import Vault
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError, InsufficientScope, McpError, NeedsLogin

if TYPE_CHECKING:
    from mcpsync.auth.proof import Prover

__all__ = ["RENEW_SECONDS", "Refresher", "Refusal", "Session", "SignInEnded"]

logger = logging.getLogger("mcpsync")

RENEW_SECONDS = 30.0  # for a refresh, the wait for the lock included; whoever waits for it has a deadline of its own
_HOLD_OFF = 5.0  # between attempts to refresh a token that is still good
_REMEMBERED = 16
_NEVER = float("inf")
_UNSIGNED: Mapping[str, str] = {}


class Refusal(Protocol):
    """What the transport tells of a request that was refused (``Challenge`` of ``transport.http.authorization``)."""

    @property
    def status(self) -> int: ...

    @property
    def url(self) -> str: ...

    @property
    def method(self) -> str: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def sent(self) -> Mapping[str, str]: ...

    @property
    def earlier(self) -> Tuple[Any, ...]: ...


class SignInEnded(NeedsLogin):
    """The authorization server wants the refresh token no more.

    :ivar client_gone: nor the client that was registered there
    """

    def __init__(self, message: str, *, client_gone: bool = False) -> None:
        super().__init__(message)
        self.client_gone = client_gone


Refresher = Callable[[Credentials, Deadline], Tokens]
"""Exchanges a refresh token; raises :class:`SignInEnded` if that is the end of it."""


class Session:
    """Signs the requests to one server. Any number of threads may use it; fits ``Auth`` of the HTTP transports.

    :param vault: the credentials of that server
    :param refresher: exchanges refresh tokens
    :param name: of the server, for errors and the names of threads
    :param nonces: for proofs of possession
    :ivar challenge: of the server's last refusal
    :ivar wanted_scopes: that the server asked for and the token did not have
    :ivar changed: told when signing in becomes necessary, and when it no longer is; must be quick
    """

    def __init__(self, vault: Vault, refresher: Refresher, name: str, nonces: Optional[Nonces] = None) -> None:
        self.vault = vault
        self.name = name
        self._refresher = refresher
        self._nonces = Nonces() if nonces is None else nonces
        self.challenge = BearerChallenge()
        self.wanted_scopes: Tuple[str, ...] = ()
        self.changed: Optional[Callable[[], None]] = None
        self._signed: Optional[Signed] = None  # replaced as a whole
        self._reason: Optional[str] = None  # why signing in is necessary
        self._looked = False
        self._unsaved = False
        self._dead: Deque[str] = deque(maxlen=_REMEMBERED)  # the last tokens that were refused for good
        self._replaced: Tuple[str, str] = ("", "")
        self._held_until = 0.0
        self.renew_locks()
        _sessions.add(self)

    def renew_locks(self) -> None:
        """At first, and in a forked child, where no flight goes on."""
        self._lock = threading.RLock()  # guards the flight
        self._flight: Optional[Flight] = None

    def __repr__(self) -> str:
        return "<Session %r>" % self.name

    # -- for the transport -------------------------------------------------------------------------------------

    def headers(self, method: str, url: str, deadline: Deadline) -> Mapping[str, str]:
        """The headers for one request; none as long as nobody has signed in.

        :raises NeedsLogin: somebody has to sign in again
        :raises AuthError: the token is expired and could not be refreshed
        """
        signed = self._signed
        if signed is not None and time.time() < signed.fresh_until:
            return signed.headers if signed.prover is None else signed.headers_for(method, url)
        return self._headers_otherwise(method, url, deadline)

    def challenged(self, challenge: Refusal, deadline: Deadline) -> bool:
        """A request was refused. True: there is another token now.

        :raises NeedsLogin: somebody has to sign in
        :raises InsufficientScope: somebody has to sign in for more
        """
        if challenge.status == 401 and DPOP in challenge.sent and wants_nonce(challenge.headers):
            return self._nonce_wanted(challenge)
        if challenge.method == "DELETE":
            return False  # the end of a session is worth no refresh
        bearer = bearer_challenge(challenge.headers.get("www-authenticate"))
        if challenge.status == 403:
            return self._forbidden(bearer, challenge, token_in(challenge.sent), deadline)
        self.challenge = bearer
        return self._unauthorized(challenge, token_in(challenge.sent), deadline)

    def observed(self, url: str, headers: Mapping[str, str]) -> None:
        """The headers of an answer: of no interest for tokens that are not bound to a key."""
        signed = self._signed
        if signed is not None and signed.prover is not None:
            self._nonces.observed(url, headers)

    # -- for whoever manages it --------------------------------------------------------------------------------

    @property
    def needs_login(self) -> bool:
        """Whether somebody has to sign in; looks whether another process has."""
        return self._reason is not None and not self.look()

    @property
    def signed_out(self) -> bool:
        """Whether somebody had to sign in when that was looked at last."""
        return self._reason is not None

    @property
    def token(self) -> Optional[str]:
        """The access token that requests are signed with at the moment."""
        signed = self._signed
        return None if signed is None else signed.token

    @property
    def credentials(self) -> Optional[Credentials]:
        """What requests are signed with at the moment."""
        signed = self._signed
        return None if signed is None else signed.credentials

    def look(self) -> bool:
        """Look into the store. True: there are tokens that have not been refused. What cannot be looked into is a
        warning."""
        try:
            return self._look()
        except AuthError as error:
            logger.warning("mcpsync: server %r: %s", self.name, error.message)
            return False

    def _look(self) -> bool:
        self._looked = True
        found = self.vault.current()
        if found is None or found.tokens is None or found.tokens.access_token in self._dead:
            return False
        if not self._renewable(found.tokens) and found.tokens.expires_within(0):
            return False
        self._adopt(found)
        return True

    def adopt(self, credentials: Credentials) -> None:
        """Somebody has signed in: keep that and use it.

        :raises AuthError: it cannot be kept
        """
        with self.vault.lock(credentials.key, Deadline(RENEW_SECONDS)):
            made = stamped(credentials)
            self._unsaved = True
            self._adopt(made)
            self.vault.keep(made)
            self._unsaved = False

    def forget(self) -> Optional[Credentials]:
        """Drop the credentials here and in the store; gives what there was.

        :raises AuthError: the store cannot be changed
        """
        current = self.vault.current() or self.credentials
        if current is None:
            return None
        with self.vault.lock(current.key, Deadline(RENEW_SECONDS)):
            stored = self.vault.at(current.key) or current
            self.vault.remove(stored)
        self._need_login("somebody signed out")
        return stored

    def close(self, deadline: Deadline) -> None:
        """Wait for a refresh that is under way, so that what it brings is kept."""
        flight = self._flight
        if flight is not None:
            with suppress(McpError):
                flight.wait(deadline)

    # -- headers -----------------------------------------------------------------------------------------------

    def _headers_otherwise(self, method: str, url: str, deadline: Deadline) -> Mapping[str, str]:
        """There is no token, or it is time for another."""
        if self._signed is None and (self._reason is not None or not self._looked) and not self._look():
            self._raise_reason()
        signed = self._signed
        if signed is None:
            return _UNSIGNED  # so that the server says where to sign in
        now = time.time()
        if now < signed.fresh_until:
            return signed.headers_for(method, url)
        ending = method == "DELETE"
        if now < signed.good_until:
            if not ending and time.monotonic() >= self._held_until:
                self._fly(signed.token)  # meanwhile the old one will do
            return signed.headers_for(method, url)
        tokens = signed.credentials.tokens
        if tokens is not None and self._renewable(tokens) and not ending:
            self._fly(signed.token).wait(deadline)
        else:
            self._look()
        before, signed = signed, self._signed
        # what has just come is used, however short its life: it may have passed while this thread was waiting
        if signed is not None and (signed.token != before.token or time.time() < signed.good_until):
            return signed.headers_for(method, url)
        self._raise_reason()
        if not ending:
            self._signed = None  # nothing more can come of it
        return _UNSIGNED

    def _raise_reason(self) -> None:
        reason = self._reason
        if reason is not None:
            raise self._needs_login(reason)

    @staticmethod
    def _needs_login(reason: str) -> NeedsLogin:
        return NeedsLogin("%s; sign in with login() or `mcpsync login`" % reason)

    # -- refusals ----------------------------------------------------------------------------------------------

    def _unauthorized(self, challenge: Refusal, sent: str, deadline: Deadline) -> bool:
        if self._is_newer(sent):
            return True
        if self._reason is not None:
            self._raise_reason()
        if not sent or self._signed is None:
            if self._look() and self._is_newer(sent):
                return True
            return self._unsigned_refused(sent, deadline)
        old, new = self._replaced
        if new == sent and any(token_in(each.sent) == old for each in challenge.earlier):
            self._refused_fresh(sent)
        flight = self._fly(sent)
        flight.wait(deadline)
        if flight.subject != sent and not self._is_newer(sent):
            self._fly(sent).wait(deadline)  # that one brought the very token that was refused since
        if self._is_newer(sent):
            return True
        self._raise_reason()
        self._refused_fresh(sent)
        return False

    def _unsigned_refused(self, sent: str, deadline: Deadline) -> bool:
        """The server wants a token and there is none."""
        self._need_login("the server wants that somebody signs in (HTTP 401)")
        self._raise_reason()
        return False

    def _nonce_wanted(self, challenge: Refusal) -> bool:
        """The server wants another nonce in the proof; what it gave was observed."""
        if any(wants_nonce(each.headers) for each in challenge.earlier):
            raise AuthError("the server refuses a proof of possession with the nonce that it gave (use_dpop_nonce)")
        if not self._nonces.observed(challenge.url, challenge.headers):
            raise AuthError("the server wants a nonce in proofs of possession, and gives none that can be used")
        return True

    def _refused_fresh(self, token: str) -> None:
        self._dead.append(token)
        raise NeedsLogin(
            "the server refuses a token that is not expired%s; signing in again may help" % self._said_of(token)
        )

    def _said_of(self, token: str) -> str:
        """Why the server refused it, for an error: not what repeats the token."""
        for said in (self.challenge.error_description, self.challenge.error):
            if said and token not in said:
                return ": %s" % said
        return ""

    def _forbidden(self, bearer: BearerChallenge, challenge: Refusal, sent: str, deadline: Deadline) -> bool:
        if bearer.error != "insufficient_scope":
            return False
        self.challenge = bearer
        wanted = bearer.scope or ()
        if self._is_newer(sent) or (self._look() and self._is_newer(sent)):
            signed = self._signed
            tokens = None if signed is None else signed.credentials.tokens
            if tokens is not None and set(wanted) <= set(tokens.scope):
                return True  # somebody has signed in for more
        self.wanted_scopes = tuple(dict.fromkeys((*self.wanted_scopes, *wanted)))
        raise InsufficientScope(
            "the token lacks a scope%s: login() asks for it"
            % (" that the server names, %r" % " ".join(wanted) if wanted else "")
        )

    def _is_newer(self, sent: str) -> bool:
        signed = self._signed
        return signed is not None and signed.token != sent

    # -- refreshing --------------------------------------------------------------------------------------------

    def _fly(self, token: str) -> Flight:
        """The refresh that is under way, or a new one."""
        with self._lock:
            flight = self._flight
            if flight is None or flight.over:
                flight = self._flight = Flight("refreshing the access token", token, lambda: self._renew(token))
        flight.start("mcpsync-%s-refresh" % self.name)
        return flight

    def _renew(self, token: str) -> None:
        signed = self._signed
        if signed is None or signed.token != token:
            return  # it was replaced before this began
        try:
            self._renew_locked(signed)
        except NeedsLogin as error:
            if self._is_newer(signed.token):
                return  # somebody has signed in meanwhile
            self._need_login(error.message)
            raise self._needs_login(error.message) from None
        except McpError:
            self._held_until = time.monotonic() + _HOLD_OFF
            raise

    def _renew_locked(self, signed: Signed) -> None:
        deadline = Deadline(RENEW_SECONDS)
        key = signed.credentials.key
        with self.vault.lock(key, deadline):
            if self._is_newer(signed.token):
                return
            current = signed.credentials if self._unsaved else self.vault.at(key)
            if current is None or current.tokens is None:
                if self._found_newer(signed):
                    return
                raise NeedsLogin("the tokens are no longer in the store: somebody signed out")
            tokens = current.tokens
            if tokens.access_token != signed.token and tokens.access_token not in self._dead and not is_stale(tokens):
                self._adopt(current)  # another process was quicker
                return
            if not self._renewable(tokens):
                if self._found_newer(signed):
                    return
                self._dead.append(signed.token)
                raise NeedsLogin("the access token is no longer good, and there is no refresh token")
            fresh = self._exchanged(signed, current, tokens, deadline)
            if fresh is not None:
                self._replace(signed, fresh)

    def _found_newer(self, signed: Signed) -> bool:
        """Whether somebody has signed in elsewhere."""
        return self._look() and self._is_newer(signed.token)

    def _renewable(self, tokens: Tokens) -> bool:
        """Whether there is a way to others, without anybody."""
        return tokens.refresh_token is not None

    def _exchanged(
        self, signed: Signed, current: Credentials, tokens: Tokens, deadline: Deadline
    ) -> Optional[Credentials]:
        """With fresh tokens; None: others were found. The lock is held."""
        try:
            fresh = self._refresher(current, deadline)
        except SignInEnded as ended:
            again = self.vault.at(current.key)
            if again is not None and again.tokens is not None and again.tokens.refresh_token != tokens.refresh_token:
                self._adopt(again)  # by one that does not know the lock
                return None
            self._dead.extend((signed.token, tokens.access_token))
            if self._found_newer(signed):
                return None
            with self._kept_in_memory_at_least():
                if ended.client_gone:
                    self.vault.remove(current)
                else:
                    self.vault.store.save(current.key, replace(current, tokens=None))
            raise
        again_with, scope = fresh.refresh_token or tokens.refresh_token, fresh.scope or tokens.scope
        return replace(current, tokens=replace(fresh, refresh_token=again_with, scope=scope))

    def _replace(self, signed: Signed, fresh: Credentials) -> None:
        # the lock is held
        renewed = stamped(fresh)
        assert renewed.tokens is not None
        if not self._is_newer(signed.token):  # nobody has signed in elsewhere meanwhile
            self._replaced = (signed.token, renewed.tokens.access_token)
            self._unsaved = True
            self._adopt(renewed)
        with self._kept_in_memory_at_least():
            if renewed.key == signed.credentials.key:
                self.vault.store.save(renewed.key, renewed)
            else:
                self.vault.keep(renewed)
            self._unsaved = False

    @contextmanager
    def _kept_in_memory_at_least(self) -> Iterator[None]:
        try:
            yield
        except AuthError as error:
            logger.warning("mcpsync: server %r: %s; what is new is kept in memory only", self.name, error.message)

    # -- state -------------------------------------------------------------------------------------------------

    def _adopt(self, credentials: Credentials) -> None:
        assert credentials.tokens is not None
        self._signed = self._signed_with(credentials, credentials.tokens)
        self._looked = True
        self._tell(None)

    def _signed_with(self, credentials: Credentials, tokens: Tokens) -> Signed:
        good_until = _NEVER if tokens.expires_at is None else tokens.expires_at
        fresh_until = good_until - skew_of(tokens) if self._renewable(tokens) else good_until
        prover = self._prover_of(credentials)
        scheme = "Bearer " if prover is None else DPOP + " "
        headers: Dict[str, str] = {"Authorization": scheme + tokens.access_token}
        return Signed(credentials, tokens.access_token, headers, fresh_until, good_until, prover)

    def _prover_of(self, credentials: Credentials) -> Optional[Prover]:
        if credentials.proof_key is None:
            return None
        before = self._signed
        if before is not None and before.credentials.proof_key == credentials.proof_key:
            return before.prover
        from mcpsync.auth.proof import Prover

        return Prover.from_pem(credentials.proof_key, self._nonces)

    def _need_login(self, reason: str) -> None:
        self._signed = None
        self._tell(reason)

    def _tell(self, reason: Optional[str]) -> None:
        differs = (reason is None) != (self._reason is None)
        self._reason = reason
        changed = self.changed
        if differs and changed is not None:
            changed()


_sessions: weakref.WeakSet[Any] = weakref.WeakSet()


def _after_fork() -> None:
    for session in list(_sessions):
        session.renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
