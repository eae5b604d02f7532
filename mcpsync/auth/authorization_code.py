"""The authorization code flow without its waiting: what a person is sent to, and what comes back.

Specification: `basic/authorization`, authorization response validation and scope selection strategy; RFC 7636;
RFC 9207.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import Collection, Mapping, Optional, Sequence, Tuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from mcpsync.auth.credentials import ClientIdentity
from mcpsync.auth.discovery import Discovery
from mcpsync.errors import AuthError, IssuerMismatch

__all__ = ["AuthorizationRequest", "answer_of", "choose_scopes", "code_of", "prepare"]

_OFFLINE = "offline_access"
_ERROR_CODE = re.compile(r"[a-z_]{1,60}\Z")
_OURS = frozenset(
    (
        "client_id",
        "code_challenge",
        "code_challenge_method",
        "redirect_uri",
        "resource",
        "response_type",
        "scope",
        "state",
        "dpop_jkt",
    )
)


@dataclass(frozen=True)
class AuthorizationRequest:
    """One sign-in that was begun.

    :ivar url: that the person is sent to
    :ivar state: what the answer has to repeat
    :ivar verifier: secret; proves to the token endpoint that the code is for us
    :ivar issuer: who has to answer
    :ivar needs_issuer: whether the answer has to name it
    """

    url: str = field(repr=False)
    state: str = field(repr=False)
    verifier: str = field(repr=False)
    redirect_uri: str = ""
    issuer: str = ""
    needs_issuer: bool = False
    scopes: Tuple[str, ...] = ()


def prepare(
    discovery: Discovery,
    identity: ClientIdentity,
    scopes: Sequence[str],
    redirect_uri: str,
    parameters: Optional[Mapping[str, str]] = None,
    thumbprint: Optional[str] = None,
) -> AuthorizationRequest:
    """Begin a sign-in.

    :param parameters: more of them, which a provider wants; none of ours can be replaced
    :param thumbprint: of the key that the tokens will be bound to: the code is of no use without it (RFC 9449, 10)
    :raises AuthError: a parameter is one of ours
    """
    taken = _OURS & set(parameters or ())
    if taken:
        raise AuthError("the authorization parameter %r is not for the user to set" % min(taken))
    server = discovery.server
    verifier = secrets.token_urlsafe(48)
    state = secrets.token_urlsafe(32)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    asked = {
        "response_type": "code",
        "client_id": identity.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    if scopes:
        asked["scope"] = " ".join(scopes)
    if discovery.names_resource:
        asked["resource"] = discovery.resource
    if thumbprint is not None:
        asked["dpop_jkt"] = thumbprint
    if _OFFLINE in scopes:
        asked["prompt"] = "consent"  # without it, OpenID providers leave it out (OpenID Connect Core, 11)
    asked.update(parameters or {})
    endpoint = server.authorization_endpoint
    parts = urlsplit(endpoint)
    query = "&".join(filter(None, (parts.query, urlencode(asked))))
    return AuthorizationRequest(
        url=parts._replace(query=query, fragment="").geturl(),
        state=state,
        verifier=verifier,
        redirect_uri=redirect_uri,
        issuer=server.issuer,
        needs_issuer=server.sends_issuer,
        scopes=tuple(scopes),
    )


def choose_scopes(
    discovery: Discovery,
    *,
    configured: Optional[Sequence[str]] = None,
    challenged: Optional[Sequence[str]] = None,
    before: Collection[str] = (),
    lasting: bool = True,
) -> Tuple[str, ...]:
    """What to ask for: what the user set, else the challenge, else all that the server's metadata names, else nothing.

    :param configured: by the user; they are asked for in any case
    :param challenged: by the challenge of the moment; None: that of discovery
    :param before: asked for earlier: a step-up keeps them
    :param lasting: whether a refresh token is of use
    """
    said = discovery.challenged_scope if challenged is None else challenged
    metadata = discovery.resource_metadata
    if configured is not None:
        wanted = [*before, *configured, *(said or () if before else ())]
    elif said is not None:
        wanted = [*before, *said]
    else:
        wanted = [*before, *((metadata.scopes_supported if metadata is not None else None) or ())]
    if _OFFLINE in (discovery.server.scopes_supported or ()) and configured is None and wanted and lasting:
        wanted.append(_OFFLINE)
    return tuple(dict.fromkeys(wanted))


def answer_of(url: str) -> Mapping[str, str]:
    """The parameters that a redirect back carries.

    :param url: whole, or what follows its question mark
    :raises AuthError: a parameter comes twice, or it is no URL
    """
    try:
        query = urlsplit(url).query if "?" in url else url
    except ValueError:
        raise AuthError("what came back from the sign-in is no URL") from None
    pairs = parse_qsl(query, keep_blank_values=True)
    found = dict(pairs)
    if len(found) != len(pairs):
        raise AuthError("the answer of the authorization server has a parameter twice: it is not used")
    return found


def code_of(request: AuthorizationRequest, answer: Mapping[str, str]) -> str:
    """The code of an answer, once everything about it is right.

    :raises IssuerMismatch: another authorization server answered, or this one does not say who it is and should
    :raises AuthError: it does not belong to this request, or says that there is no code
    """
    if not matches(request.state, answer):
        raise AuthError("the answer does not belong to this sign-in: its state is another one")
    issuer = answer.get("iss")
    if issuer is None and request.needs_issuer:
        raise IssuerMismatch(
            "the answer does not say that it comes from %s, which says it always does" % request.issuer
        )
    if issuer is not None and issuer != request.issuer:  # by plain comparison (RFC 9207, 2.4)
        raise IssuerMismatch("the answer comes from another authorization server than %s" % request.issuer)
    if "error" in answer:
        error = answer["error"]
        named = error if _ERROR_CODE.match(error) else "an unreadable error"
        hint = ": the person said no" if error == "access_denied" else ""
        raise AuthError("%s did not sign in: %s%s" % (request.issuer, named, hint))
    code = answer.get("code")
    if not code:
        raise AuthError("the answer of %s holds no code" % request.issuer)
    return code


def matches(state: str, answer: Mapping[str, str]) -> bool:
    """Whether an answer repeats the state, compared in constant time."""
    return hmac.compare_digest(state.encode(), answer.get("state", "").encode())
