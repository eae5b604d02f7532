"""Requests to an authorization server's token and revocation endpoints.

Specification: `basic/authorization`; RFC 6749, 2.3 and 5; RFC 7009; RFC 8707.
"""

from __future__ import annotations

import base64
import math
import re
import time
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Tuple
from urllib.parse import quote_plus

from mcpsync.auth.assertion import METHOD as _BY_KEY
from mcpsync.auth.binding import check_binding
from mcpsync.auth.credentials import ClientIdentity, Credentials, Tokens
from mcpsync.auth.nonces import WANTED as _WANTS_NONCE
from mcpsync.auth.urls import Url
from mcpsync.auth.web import Answer, Web
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError, flat

if TYPE_CHECKING:
    from mcpsync.auth.proof import Prover

__all__ = ["TokenRefused", "exchange_code", "post", "refresh", "refusal", "request_tokens", "revoke"]

_CODE = re.compile(r"[a-z_]{1,60}\Z")
_SENDABLE = re.compile(r"[\x21-\x7e]+\Z")  # what a header can carry
_TYPES = ("bearer", "dpop")
_LONGEST_LIFE = 10 * 365 * 86400.0  # seconds; some servers mean "never" by a very large number


class TokenRefused(AuthError):
    """The authorization server answered with an error.

    :ivar error: its code (RFC 6749, 5.2): ``invalid_grant`` says that the refresh token or code is worth nothing
    :ivar status: of HTTP
    """

    def __init__(self, message: str, *, error: str, status: int) -> None:
        super().__init__(message)
        self.error = error
        self.status = status


def exchange_code(
    token_endpoint: str,
    identity: ClientIdentity,
    *,
    code: str,
    verifier: str,
    redirect_uri: str,
    resource: Optional[str],
    requested: Tuple[str, ...],
    web: Web,
    deadline: Deadline,
    prover: Optional[Prover] = None,
) -> Tokens:
    """Turn a code into tokens.

    :param resource: what they are for, exactly as published; None: it is not named
    :param requested: the scopes that were asked for: what is granted if the server does not say
    :param prover: has the key that the tokens are to be bound to; None: they are not
    :raises TokenRefused: the server said no
    :raises AuthError: there was no answer that can be used
    """
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "code_verifier": verifier,
        "redirect_uri": redirect_uri,
    }
    return request_tokens(token_endpoint, identity, form, resource, requested, web, deadline, prover)


def refresh(credentials: Credentials, web: Web, deadline: Deadline, prover: Optional[Prover] = None) -> Tokens:
    """Fresh tokens for old ones. The old refresh token is kept where the server gives no new one.

    :param prover: has the key that the old ones are bound to
    :raises TokenRefused: the server said no; ``error`` is ``invalid_grant`` if the refresh token is worth nothing
    :raises AuthError: there is no refresh token, or no answer that can be used
    """
    old = credentials.tokens
    if old is None or old.refresh_token is None:
        raise AuthError("there is no refresh token for %s" % credentials.resource)
    made = request_tokens(
        credentials.token_endpoint,
        credentials.identity,
        {"grant_type": "refresh_token", "refresh_token": old.refresh_token},
        credentials.resource if credentials.names_resource else None,
        old.scope,
        web,
        deadline,
        prover,
    )
    if made.refresh_token is None:
        return Tokens(made.access_token, made.token_type, made.expires_at, old.refresh_token, made.scope, old.extra)
    return made


def revoke(credentials: Credentials, web: Web, deadline: Deadline) -> bool:
    """Make the tokens worthless at the server. False: it has no endpoint for that, or there are none.

    :raises TokenRefused: the server said no
    :raises AuthError: it could not be asked
    """
    endpoint, tokens = credentials.revocation_endpoint, credentials.tokens
    if endpoint is None or tokens is None:
        return False
    both = (("refresh_token", tokens.refresh_token), ("access_token", tokens.access_token))
    for kind, token in both:
        if token is not None:
            form = {"token": token, "token_type_hint": kind}
            answer = post(endpoint, credentials.identity, form, web, deadline)
            code = str((answer.data or {}).get("error"))
            # a server may not be able to take back an access token; it lives a short time
            if answer.status != 200 and not (kind == "access_token" and code == "unsupported_token_type"):
                raise refusal(endpoint, answer)
    return True


def request_tokens(
    token_endpoint: str,
    identity: ClientIdentity,
    form: Mapping[str, str],
    resource: Optional[str],
    requested: Tuple[str, ...],
    web: Web,
    deadline: Deadline,
    prover: Optional[Prover] = None,
) -> Tokens:
    """Any grant.

    :param prover: has the key that the tokens are to be bound to; None: they are not
    :raises TokenRefused: the server said no
    :raises AuthError: there was no answer that can be used
    """
    asked_at = time.time()
    whole = dict(form)
    if resource is not None:
        whole["resource"] = resource
    answer = post(token_endpoint, identity, whole, web, deadline, prover)
    if answer.status != 200:
        raise refusal(token_endpoint, answer)
    if answer.data is None:
        raise AuthError("%s answered with no JSON object" % Url.parse(token_endpoint, "it").shown)
    tokens = _tokens(answer.data, asked_at, requested)
    check_binding(tokens, None if prover is None else prover.thumbprint)
    return tokens


def post(
    endpoint: str,
    identity: ClientIdentity,
    form: Mapping[str, str],
    web: Web,
    deadline: Deadline,
    prover: Optional[Prover] = None,
) -> Answer:
    """A request of this client, which proves itself; once more with a nonce that the server wants to see in a proof.

    :raises AuthError: it could not be sent, must not be, or was redirected
    """
    answer = _post_once(endpoint, identity, form, web, deadline, prover)
    if prover is None:
        return answer
    given = prover.nonces.observed(endpoint, answer.headers)
    if given and answer.status in (400, 401) and (answer.data or {}).get("error") == _WANTS_NONCE:
        answer = _post_once(endpoint, identity, form, web, deadline, prover)  # a refusal: the code was not used up
        prover.nonces.observed(endpoint, answer.headers)
    return answer


def _post_once(
    endpoint: str,
    identity: ClientIdentity,
    form: Mapping[str, str],
    web: Web,
    deadline: Deadline,
    prover: Optional[Prover],
) -> Answer:
    headers: Dict[str, str] = {}
    form = {**form, "client_id": identity.client_id}  # with Basic too: servers made with the official SDK look there
    if identity.auth_method == "client_secret_basic":
        pair = "%s:%s" % (quote_plus(identity.client_id), quote_plus(identity.client_secret or ""))
        headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    elif identity.auth_method == "client_secret_post":
        form["client_secret"] = identity.client_secret or ""
    elif identity.auth_method == _BY_KEY:
        if identity.key is None:
            raise AuthError("client %r proves itself with a key: set private_key" % identity.client_id)
        form.update(identity.key.parameters(identity.client_id, identity.issuer))
    if prover is not None:
        headers["DPoP"] = prover.proof("POST", endpoint)
    return web.post_form(endpoint, form, headers, deadline)


def refusal(endpoint: str, answer: Answer) -> TokenRefused:
    """What the server said, as far as it can be shown: a description may repeat what it was sent."""
    said = (answer.data or {}).get("error")
    code = said if isinstance(said, str) and _CODE.match(said) else "no error code"
    where = Url.parse(endpoint, "it").shown
    made = TokenRefused(flat("%s refused: %s (%d)" % (where, code, answer.status)), error=code, status=answer.status)
    made.passing = answer.status >= 500 or answer.status == 429
    return made


def _tokens(data: Mapping[str, Any], asked_at: float, requested: Tuple[str, ...]) -> Tokens:
    access, kind, again = data.get("access_token"), data.get("token_type"), data.get("refresh_token")
    if not isinstance(access, str) or not _SENDABLE.match(access):
        raise AuthError("the token endpoint gave no access token that can be sent")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise AuthError("the token endpoint gave a token of a type that is not known")
    if again is not None and not isinstance(again, str):
        raise AuthError("the token endpoint gave a refresh token that is no text")
    scope = data.get("scope")
    granted = tuple(dict.fromkeys(scope.split())) if isinstance(scope, str) else requested
    return Tokens(access, kind, _expiry(data.get("expires_in"), asked_at), again or None, granted)


def _expiry(seconds: Any, asked_at: float) -> Optional[float]:
    """When it expires, counted from the request, so that it is never taken for longer than it lives."""
    try:
        life = float(seconds)
    except (TypeError, ValueError):
        return None
    except OverflowError:  # an integer of hundreds of digits
        life = math.inf if seconds > 0 else 0.0
    if isinstance(seconds, bool) or math.isnan(life):
        return None
    return asked_at + min(max(0.0, life), _LONGEST_LIFE)
