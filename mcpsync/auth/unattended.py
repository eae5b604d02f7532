"""Staying signed in where nobody signs in: new tokens are got in the way that the first were.

Specification: the extensions `oauth-client-credentials` and `enterprise-managed-authorization`.
"""

from __future__ import annotations

import copy
import time
from dataclasses import replace
from typing import Callable, NoReturn, Optional, Tuple

from mcpsync.auth.challenge import BearerChallenge
from mcpsync.auth.credentials import Credentials, Tokens
from mcpsync.auth.nonces import Nonces
from mcpsync.auth.session import RENEW_SECONDS, Refusal, Session
from mcpsync.auth.signed import Signed
from mcpsync.auth.urls import Url
from mcpsync.auth.vault import Vault
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError, InsufficientScope, McpError

__all__ = ["UnattendedSession"]

_HOLD_OFF = 5.0  # after an attempt that failed; what is asked for meanwhile fails in the same way


class UnattendedSession(Session):
    """Signs the requests of a program.

    :param obtain: gets credentials, in one attempt
    """

    def __init__(self, vault: Vault, obtain: Callable[[Deadline], Credentials], name: str, nonces: Nonces) -> None:
        super().__init__(vault, _no_refresher, name, nonces)
        self._obtain = obtain
        self._failed: Tuple[float, Optional[McpError]] = (0.0, None)

    def _renewable(self, tokens: Tokens) -> bool:
        return True

    def _unsigned_refused(self, sent: str, deadline: Deadline) -> bool:
        self._fly(sent).wait(deadline)
        return self._is_newer(sent)

    def _renew(self, token: str) -> None:
        if self._signed is not None:
            super()._renew(token)
            return
        deadline = Deadline(RENEW_SECONDS)
        with self.vault.lock(self.vault.key, deadline):  # so that of several processes one asks
            if not self._look():
                self.adopt(self._obtained(deadline))

    def _exchanged(
        self, signed: Signed, current: Credentials, tokens: Tokens, deadline: Deadline
    ) -> Optional[Credentials]:
        return self._obtained(deadline)

    def _obtained(self, deadline: Deadline) -> Credentials:
        until, error = self._failed
        if error is not None and time.monotonic() < until:
            raise copy.copy(error)
        try:
            made = self._obtain(deadline)
        except McpError as failure:
            self._failed = (time.monotonic() + _HOLD_OFF, failure)
            raise
        finally:
            self.wanted_scopes = ()  # also where they are refused: else nothing could be got from now on
        return replace(made, identity=replace(made.identity, key=None))

    def _forbidden(self, bearer: BearerChallenge, challenge: Refusal, sent: str, deadline: Deadline) -> bool:
        try:
            return super()._forbidden(bearer, challenge, sent, deadline)
        except InsufficientScope:
            credentials = self.credentials
            asked = () if credentials is None else credentials.requested
            before = any(each.status == 403 for each in challenge.earlier)
            if before or set(self.wanted_scopes) <= set(asked):
                self.wanted_scopes = ()
                raise
        self._fly(sent).wait(deadline)
        return self._is_newer(sent)

    def _refused_fresh(self, token: str) -> NoReturn:
        raise AuthError(
            "the server refuses a token that was just got for it (%s)%s"
            % (Url.parse(self.vault.key.resource, "the server's URL").shown, self._said_of(token))
        )


def _no_refresher(credentials: Credentials, deadline: Deadline) -> Tokens:
    raise AuthError("machines get new tokens, and refresh none")
