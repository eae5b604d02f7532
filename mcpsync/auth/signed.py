"""What requests are signed with, and when it is time for another token."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Mapping, NamedTuple, Optional

from mcpsync.auth.credentials import Credentials, Tokens

if TYPE_CHECKING:
    from mcpsync.auth.proof import Prover

__all__ = ["DPOP", "Signed", "is_stale", "skew_of", "stamped", "token_in"]

DPOP = "DPoP"
"""A scheme, and the header that holds a proof."""

_SKEW = 60.0
_SKEW_SHARE = 0.2  # of a token's life, where that is short
_SKEW_LEAST = 1.0  # servers count in whole seconds, so a token may die that much before its end
_SKEW_UNKNOWN = 30.0
_OBTAINED_AT = "obtained_at"


class Signed(NamedTuple):
    """What requests are signed with, computed once for each token.

    :ivar fresh_until: seconds of ``time.time()`` from which it is time for another
    :ivar good_until: seconds of ``time.time()`` from which it is expired
    :ivar prover: has the key that the token is bound to; None: it is not bound
    """

    credentials: Credentials
    token: str
    headers: Mapping[str, str]
    fresh_until: float
    good_until: float
    prover: Optional[Prover] = None

    def headers_for(self, method: str, url: str) -> Mapping[str, str]:
        """Of one request, with a proof of its own where the token is bound."""
        if self.prover is None:
            return self.headers
        return {**self.headers, DPOP: self.prover.proof(method, url, self.token)}


def skew_of(tokens: Tokens) -> float:
    """How many seconds before its end a token is replaced."""
    obtained_at = tokens.extra.get(_OBTAINED_AT)
    if tokens.expires_at is None or not isinstance(obtained_at, (int, float)):
        return _SKEW_UNKNOWN
    life = max(0.0, tokens.expires_at - obtained_at)
    return min(_SKEW, max(life * _SKEW_SHARE, min(_SKEW_LEAST, life / 2)))


def is_stale(tokens: Tokens) -> bool:
    """Whether it is time for others."""
    return tokens.expires_within(skew_of(tokens))


def stamped(credentials: Credentials) -> Credentials:
    """With the time at which the tokens came, from which others learn how long they live. One that was expired when it
    came is used until it is refused: servers write ``expires_in: 0`` where they mean that it has no end."""
    tokens = credentials.tokens
    if tokens is None:
        return credentials
    now = time.time()
    ends = tokens.expires_at is not None and tokens.expires_at > now
    came = replace(tokens, expires_at=tokens.expires_at if ends else None, extra={**tokens.extra, _OBTAINED_AT: now})
    return replace(credentials, tokens=came)


def token_in(headers: Mapping[str, str]) -> str:
    """The token among the headers of a request; empty: there is none."""
    return headers.get("Authorization", "").partition(" ")[2]
