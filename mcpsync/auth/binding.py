"""Whether tokens are bound to the key that they should be bound to.

Specification: RFC 9449, 5 and 6.1.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

from mcpsync.auth.credentials import Tokens
from mcpsync.auth.jwt import claims_of
from mcpsync.errors import AuthError

__all__ = ["check_binding", "is_bound"]


def is_bound(tokens: Tokens) -> bool:
    """Whether they need a proof with each request."""
    return tokens.token_type.lower() == "dpop"


def check_binding(tokens: Tokens, thumbprint: Optional[str]) -> None:
    """Hold the tokens to be of the kind that was asked for, and bound to the key that proved the request.

    :param thumbprint: of that key; None: nothing was proved
    :raises AuthError: they are not, and so not to be used
    """
    if thumbprint is None:
        if is_bound(tokens):
            raise AuthError("the authorization server gave a token that is bound to a key, and was shown none")
        return
    if not is_bound(tokens):
        raise AuthError(
            "the authorization server gave a token that is not bound to this client's key: whoever sees it could use "
            "it; dpop=False takes such tokens"
        )
    claims: Mapping[str, Any] = claims_of(tokens.access_token) or {}
    confirmed = claims.get("cnf")
    named = confirmed.get("jkt") if isinstance(confirmed, Mapping) else None
    if named is not None and named != thumbprint:
        raise AuthError("the authorization server gave a token that is bound to another key")
