"""Tokens for programs that nobody signs in for.

Specification: RFC 6749, 4.4; RFC 7523, 2.1; RFC 8693, 2; the extensions `oauth-client-credentials` and
`enterprise-managed-authorization`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Dict, Optional, Sequence

from mcpsync.auth.credentials import ClientIdentity, Credentials
from mcpsync.auth.discovery import Discovery, server_of
from mcpsync.auth.jwt import audiences_of, claims_of
from mcpsync.auth.metadata import ServerMetadata
from mcpsync.auth.sources import text_of
from mcpsync.auth.token_endpoint import post, refusal, request_tokens
from mcpsync.auth.urls import Url
from mcpsync.auth.web import Web
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError

if TYPE_CHECKING:
    from mcpsync.auth.oauth import OAuth
    from mcpsync.auth.proof import Prover

__all__ = ["obtain"]

_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"
_ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
_METHODS = ("client_secret_basic", "client_secret_post")


def obtain(
    oauth: OAuth,
    discovery: Discovery,
    identity: ClientIdentity,
    scopes: Sequence[str],
    prover: Optional[Prover],
    web_for: Callable[[str], Web],
    deadline: Deadline,
    *,
    account: str,
) -> Credentials:
    """Get tokens in the one way that the user chose: once, and in no other way if that fails.

    :param web_for: what reaches the site of a URL that the user named
    :raises TokenRefused: a server said no
    :raises AuthError: there is nothing to ask with, or no answer that can be used
    """
    server, web = discovery.server, web_for("")
    resource = discovery.resource if discovery.names_resource else None
    form: Dict[str, str] = {"scope": " ".join(scopes)} if scopes else {}
    if oauth.grant == "client_credentials":
        form["grant_type"] = "client_credentials"
    elif oauth.grant == "jwt_bearer":
        assertion = text_of(oauth.assertion or "", "assertion")
        _check_audience(assertion, server, pinned=oauth.issuer is not None)
        form.update(grant_type=_JWT_BEARER, assertion=assertion)
    else:
        granted = _identity_assertion(oauth, discovery, scopes, web_for, deadline)
        form, resource = {"grant_type": _JWT_BEARER, "assertion": granted}, None  # it says all of the rest
    tokens = request_tokens(server.token_endpoint, identity, form, resource, tuple(scopes), web, deadline, prover)
    return Credentials(
        issuer=server.issuer,
        resource=discovery.resource,
        account=account,
        identity=identity,
        token_endpoint=server.token_endpoint,
        revocation_endpoint=server.revocation_endpoint,
        tokens=tokens,
        requested=tuple(scopes),
        names_resource=discovery.names_resource,
        grant=oauth.grant,
        proof_key=None if prover is None else prover.to_pem(),
    )


def _check_audience(assertion: str, server: ServerMetadata, *, pinned: bool) -> None:
    """Send it to nobody whom it is not for: they could use it where it is for.

    :param pinned: whether the user named the authorization server
    """
    if pinned:
        return
    claims = claims_of(assertion)
    issuer = server.issuer.rstrip("/")
    if claims is None or not {issuer, issuer + "/", server.token_endpoint} & set(audiences_of(claims)):
        raise AuthError(
            "the assertion does not say that it is for %s (aud), where the server sends this client: it is not sent "
            "there; if it is meant to be, set issuer" % server.issuer
        )


# -- enterprise-managed authorization ----------------------------------------------------------------------------------


def _identity_assertion(
    oauth: OAuth, discovery: Discovery, scopes: Sequence[str], web_for: Callable[[str], Web], deadline: Deadline
) -> str:
    """What the identity provider of the organization says to the authorization server of this resource (ID-JAG)."""
    web = web_for(oauth.idp_token_endpoint or oauth.idp_issuer or "")
    endpoint, method = _provider(oauth, web, deadline)
    form = {
        "grant_type": _EXCHANGE,
        "requested_token_type": _ID_JAG,
        "audience": discovery.issuer,
        "resource": discovery.resource,
        "subject_token": text_of(oauth.id_token or "", "id_token"),
        "subject_token_type": _ID_TOKEN,
    }
    if scopes:
        form["scope"] = " ".join(scopes)
    client = ClientIdentity(oauth.idp_client_id or "", oauth.idp_client_secret, method, oauth.idp_issuer or "")
    answer = post(endpoint, client, form, web, deadline)
    if answer.status != 200:
        raise refusal(endpoint, answer)
    said = answer.data or {}
    granted, kind = said.get("access_token"), said.get("issued_token_type")
    where = Url.parse(endpoint, "it").shown
    if not isinstance(granted, str) or not granted or kind != _ID_JAG:
        raise AuthError("%s gave no ID-JAG, which it was asked for" % where)
    claims = claims_of(granted) or {}
    if "aud" in claims and discovery.issuer not in audiences_of(claims):
        raise AuthError("%s gave an ID-JAG for another authorization server than %s" % (where, discovery.issuer))
    return granted


def _provider(oauth: OAuth, web: Web, deadline: Deadline) -> Sequence[str]:
    """The token endpoint of the identity provider, and how the client proves itself there."""
    endpoint, offered = oauth.idp_token_endpoint, None
    if endpoint is None:
        server = server_of(oauth.idp_issuer or "", web, deadline)
        server.check(web.allows, for_people=False)
        endpoint, offered = server.token_endpoint, server.token_endpoint_auth_methods_supported
    if oauth.idp_client_secret is None:
        return endpoint, "none"
    return endpoint, next((each for each in _METHODS if offered is None or each in offered), _METHODS[0])
