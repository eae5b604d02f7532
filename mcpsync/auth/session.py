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
from typing import Any, Callable, Deque, Dict, Iterator, Mapping, NamedTuple, Optional, Protocol, Tuple

from mcpsync.auth.challenge import BearerChallenge, bearer_challenge
from mcpsync.auth.credentials import Credentials, Tokens
from mcpsync.auth.flight import Flight
from mcpsync.auth.vault import Vault
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError, InsufficientScope, McpError, NeedsLogin

__all__ = ["Refresher", "Refusal", "Session", "SignInEnded"]

logger = logging.getLogger("mcpsync")

_RENEW_SECONDS = 30.0  # for a refresh, the wait for the lock included; whoever waits for it has a deadline of its own
_SKEW = 60.0
_SKEW_SHARE = 0.2  # of a token's life, where that is short
_SKEW_UNKNOWN = 30.0
_HOLD_OFF = 5.0  # between attempts to refresh a token that is still good
_REMEMBERED = 16
_NEVER = float("inf")
_OBTAINED_AT = "obtained_at"
_UNSIGNED: Mapping[str, str] = {}


class Refusal(Protocol):
    """What the transport tells of a request that was refused (``Challenge`` of ``transport.http.authorization``)."""

    @property
    def status(self) -> int: ...

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


class _Signed(NamedTuple):
    """What requests are signed with, computed once for each token.

    :ivar fresh_until: seconds of ``time.time()`` from which it is time for another
    :ivar good_until: seconds of ``time.time()`` from which it is expired
    """

    credentials: Credentials
    token: str
    headers: Mapping[str, str]
    fresh_until: float
    good_until: float


class Session:
    """Signs the requests to one server. Any number of threads may use it; fits ``Auth`` of the HTTP transports.

    :param vault: the credentials of that server
    :param refresher: exchanges refresh tokens
    :param name: of the server, for errors and the names of threads
    :ivar challenge: of the server's last refusal
    :ivar wanted_scopes: that the server asked for and the token did not have
    :ivar changed: told when signing in becomes necessary, and when it no longer is; must be quick
    """

    def __init__(self, vault: Vault, refresher: Refresher, name: str) -> None:
        self.vault = vault
        self.name = name
        self._refresher = refresher
        self.challenge = BearerChallenge()
        self.wanted_scopes: Tuple[str, ...] = ()
        self.changed: Optional[Callable[[], None]] = None
        self._signed: Optional[_Signed] = None  # replaced as a whole
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
        self._lock = threading.Lock()  # guards the flight
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
            return signed.headers
        return self._headers_otherwise(method, deadline)

    def challenged(self, challenge: Refusal, deadline: Deadline) -> bool:
        """A request was refused. True: there is another token now.

        :raises NeedsLogin: somebody has to sign in
        :raises InsufficientScope: somebody has to sign in for more
        """
        if challenge.method == "DELETE":
            return False  # the end of a session is worth no refresh
        bearer = bearer_challenge(challenge.headers.get("www-authenticate"))
        if challenge.status == 403:
            return self._forbidden(bearer, _token_in(challenge.sent))
        self.challenge = bearer
        return self._unauthorized(challenge, _token_in(challenge.sent), deadline)

    def observed(self, url: str, headers: Mapping[str, str]) -> None:
        """The headers of an answer: of no interest for bearer tokens."""

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
    def credentials(self) -> Optional[Credentials]:
        """What requests are signed with at the moment."""
        signed = self._signed
        return None if signed is None else signed.credentials

    def look(self) -> bool:
        """Look into the store. True: there are tokens that have not been refused."""
        self._looked = True
        found = self.vault.current()
        if found is None or found.tokens is None or found.tokens.access_token in self._dead:
            return False
        if found.tokens.refresh_token is None and found.tokens.expires_within(0):
            return False
        self._adopt(found)
        return True

    def adopt(self, credentials: Credentials) -> None:
        """Somebody has signed in: keep that and use it.

        :raises AuthError: it cannot be kept
        """
        with self.vault.lock(credentials.key, Deadline(_RENEW_SECONDS)):
            stamped = _stamped(credentials)
            self._unsaved = True
            self._adopt(stamped)
            self.vault.keep(stamped)
            self._unsaved = False

    def forget(self) -> Optional[Credentials]:
        """Drop the credentials here and in the store; gives what there was.

        :raises AuthError: the store cannot be changed
        """
        current = self.vault.current() or self.credentials
        if current is None:
            return None
        with self.vault.lock(current.key, Deadline(_RENEW_SECONDS)):
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

    def _headers_otherwise(self, method: str, deadline: Deadline) -> Mapping[str, str]:
        """There is no token, or it is time for another."""
        if self._signed is None and (self._reason is not None or not self._looked) and not self.look():
            self._raise_reason()
        signed = self._signed
        if signed is None:
            return _UNSIGNED  # so that the server says where to sign in
        now = time.time()
        if now < signed.fresh_until:
            return signed.headers
        ending = method == "DELETE"
        if now < signed.good_until:
            if not ending and time.monotonic() >= self._held_until:
                self._fly(signed.token)  # meanwhile the old one will do
            return signed.headers
        tokens = signed.credentials.tokens
        if tokens is not None and tokens.refresh_token is not None and not ending:
            self._fly(signed.token).wait(deadline)
        else:
            self.look()
        signed = self._signed
        if signed is not None and time.time() < signed.good_until:
            return signed.headers
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
            if self.look() and self._is_newer(sent):
                return True
            self._need_login("the server wants that somebody signs in (HTTP 401)")
            self._raise_reason()
        old, new = self._replaced
        if new == sent and any(_token_in(each.sent) == old for each in challenge.earlier):
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

    def _refused_fresh(self, token: str) -> None:
        said = self.challenge.error_description or self.challenge.error
        self._dead.append(token)
        raise NeedsLogin(
            "the server refuses a token that is not expired%s; signing in again may help"
            % (": %s" % said if said else "")
        )

    def _forbidden(self, bearer: BearerChallenge, sent: str) -> bool:
        if bearer.error != "insufficient_scope":
            return False
        self.challenge = bearer
        wanted = bearer.scope or ()
        if self._is_newer(sent) or (self.look() and self._is_newer(sent)):
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
            if flight is not None and not flight.over:
                return flight
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

    def _renew_locked(self, signed: _Signed) -> None:
        deadline = Deadline(_RENEW_SECONDS)
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
            if tokens.access_token != signed.token and tokens.access_token not in self._dead and not _is_stale(tokens):
                self._adopt(current)  # another process was quicker
                return
            if tokens.refresh_token is None:
                if self._found_newer(signed):
                    return
                self._dead.append(signed.token)
                raise NeedsLogin("the access token is no longer good, and there is no refresh token")
            fresh = self._exchanged(signed, current, tokens, deadline)
            if fresh is not None:
                self._replace(signed, current, fresh)

    def _found_newer(self, signed: _Signed) -> bool:
        """Whether somebody has signed in elsewhere."""
        return self.look() and self._is_newer(signed.token)

    def _exchanged(self, signed: _Signed, current: Credentials, tokens: Tokens, deadline: Deadline) -> Optional[Tokens]:
        """Fresh tokens; None: others were found. The lock is held."""
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
        return replace(
            fresh, refresh_token=fresh.refresh_token or tokens.refresh_token, scope=fresh.scope or tokens.scope
        )

    def _replace(self, signed: _Signed, current: Credentials, fresh: Tokens) -> None:
        # the lock is held
        renewed = _stamped(replace(current, tokens=fresh))
        if not self._is_newer(signed.token):  # nobody has signed in elsewhere meanwhile
            self._replaced = (signed.token, fresh.access_token)
            self._unsaved = True
            self._adopt(renewed)
        with self._kept_in_memory_at_least():
            self.vault.store.save(renewed.key, renewed)
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
        self._signed = _signed_with(credentials, credentials.tokens)
        self._looked = True
        self._tell(None)

    def _need_login(self, reason: str) -> None:
        self._signed = None
        self._tell(reason)

    def _tell(self, reason: Optional[str]) -> None:
        differs = (reason is None) != (self._reason is None)
        self._reason = reason
        changed = self.changed
        if differs and changed is not None:
            changed()


def _signed_with(credentials: Credentials, tokens: Tokens) -> _Signed:
    good_until = _NEVER if tokens.expires_at is None else tokens.expires_at
    fresh_until = good_until if tokens.refresh_token is None else good_until - _skew(tokens)
    headers: Dict[str, str] = {"Authorization": "Bearer " + tokens.access_token}
    return _Signed(credentials, tokens.access_token, headers, fresh_until, good_until)


def _skew(tokens: Tokens) -> float:
    """How many seconds before its end a token is replaced."""
    obtained_at = tokens.extra.get(_OBTAINED_AT)
    if tokens.expires_at is None or not isinstance(obtained_at, (int, float)):
        return _SKEW_UNKNOWN
    return min(_SKEW, max(0.0, (tokens.expires_at - obtained_at) * _SKEW_SHARE))


def _is_stale(tokens: Tokens) -> bool:
    return tokens.expires_within(_skew(tokens))


def _stamped(credentials: Credentials) -> Credentials:
    """With the time at which the tokens came, from which others learn how long they live."""
    tokens = credentials.tokens
    if tokens is None:
        return credentials
    return replace(credentials, tokens=replace(tokens, extra={**tokens.extra, _OBTAINED_AT: time.time()}))


def _token_in(headers: Mapping[str, str]) -> str:
    return headers.get("Authorization", "").partition(" ")[2]


_sessions: weakref.WeakSet[Any] = weakref.WeakSet()


def _after_fork() -> None:
    for session in list(_sessions):
        session.renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
