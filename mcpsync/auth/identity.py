"""Who this client is to an authorization server.

In this order: what the user registered; the URL of the client's own metadata document, where the server takes one;
what was registered here before; a new registration. Each is bound to its issuer.

Specification: `basic/authorization`, client registration; RFC 7591.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

from mcpsync.auth.assertion import METHOD as _BY_KEY
from mcpsync.auth.assertion import ClientKey
from mcpsync.auth.credentials import ClientIdentity
from mcpsync.auth.discovery import Discovery
from mcpsync.auth.metadata import ServerMetadata
from mcpsync.auth.urls import Url
from mcpsync.auth.web import Answer, Web
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError, ConfigError, IssuerMismatch, RegistrationRejected

__all__ = ["IdentityOptions", "check_identity_options", "identify"]

_PUBLIC = "none"
# in the order in which they are asked for; servers made with the official SDK revoke nothing for clients with Basic
_METHODS = (_PUBLIC, "client_secret_post", "client_secret_basic")
_CODE = re.compile(r"[a-z_]{1,60}\Z")
_NEVER = 1e12  # seconds of ``time.time()``; what is said to expire later does not


class IdentityOptions(NamedTuple):
    """What the user says about the client.

    :ivar client_id: registered with the authorization server by the user
    :ivar client_secret: that came with it; secret
    :ivar client_issuer: the authorization server that the two are of; None: the one that they are first used with
    :ivar auth_method: how the client proves itself; None: as the server prefers
    :ivar metadata_url: https URL of the client's own metadata document
    :ivar client_name: shown to the person who signs in, where the server does so
    :ivar application_type: ``native`` or ``web``
    :ivar key: in place of a secret
    """

    client_id: Optional[str] = None
    client_secret: Optional[str] = None
    client_issuer: Optional[str] = None
    auth_method: Optional[str] = None
    metadata_url: Optional[str] = None
    client_name: str = "mcpsync"
    application_type: str = "native"
    key: Optional[ClientKey] = None

    def __repr__(self) -> str:
        return "IdentityOptions(client_id=%r, metadata_url=%r)" % (self.client_id, self.metadata_url)


def check_identity_options(options: IdentityOptions) -> None:
    """Say what cannot work before anything is sent.

    :raises ConfigError: it cannot
    """
    if options.client_secret is not None and options.client_id is None:
        raise ConfigError("a client_secret needs the client_id that it is of", path="client_secret")
    if options.key is not None:
        if options.client_id is None and options.metadata_url is None:
            raise ConfigError("a private_key needs the client_id that it is of", path="private_key")
        if options.client_secret is not None or options.auth_method not in (None, _BY_KEY):
            raise ConfigError("both a private_key and another way to prove the client: give one", path="private_key")
    elif options.auth_method == _BY_KEY:
        raise ConfigError("auth_method %s needs a private_key" % _BY_KEY, path="auth_method")
    elif options.auth_method is not None and options.auth_method not in _METHODS:
        raise ConfigError("auth_method is one of %s" % ", ".join((*_METHODS, _BY_KEY)), path="auth_method")
    elif options.auth_method not in (None, _PUBLIC) and options.client_id is not None and options.client_secret is None:
        raise ConfigError("auth_method %s needs a client_secret" % options.auth_method, path="auth_method")
    if options.metadata_url is not None:
        try:
            url = Url.parse(options.metadata_url, "client_metadata_url")
        except AuthError as error:
            raise ConfigError(error.message, path="client_metadata_url") from None
        if url.scheme != "https" or url.path == "/":
            raise ConfigError("client_metadata_url is an https URL with a path", path="client_metadata_url")


def identify(
    discovery: Discovery,
    options: IdentityOptions,
    saved: Optional[ClientIdentity],
    redirect_uri: str,
    scopes: Sequence[str],
    web: Web,
    deadline: Deadline,
) -> ClientIdentity:
    """Who this client is there; registers it if nothing else is known.

    :param saved: used before, of whatever issuer
    :param redirect_uri: where the sign-in will come back to
    :param scopes: that will be asked for
    :raises IssuerMismatch: what the user registered is of another authorization server
    :raises RegistrationRejected: the server did not register it
    :raises AuthError: there is no way, or the server could not be asked
    """
    server = discovery.server
    if options.client_id is not None:
        return _configured(options, saved, server)
    if options.metadata_url is not None and server.takes_metadata_documents:
        method = _PUBLIC if options.key is None else _BY_KEY
        return ClientIdentity(options.metadata_url, None, method, server.issuer, "metadata_document", key=options.key)
    registering = _registered_scopes(discovery, scopes)
    if saved is not None and _still_good(saved, server, redirect_uri, registering):
        return saved
    if server.registration_endpoint is not None:
        known = saved.scope if saved is not None and saved.issuer == server.issuer else ()
        scope = tuple(dict.fromkeys((*known, *registering)))
        return _register(server, options, redirect_uri, scope, web, deadline)
    raise AuthError(
        "%s registers no clients on its own: register one there, with the redirect URI %s, and set client_id%s"
        % (server.issuer, redirect_uri, "; or set client_metadata_url" if server.takes_metadata_documents else "")
    )


def _configured(options: IdentityOptions, saved: Optional[ClientIdentity], server: ServerMetadata) -> ClientIdentity:
    client_id = options.client_id or ""
    bound = options.client_issuer
    if bound is None and saved is not None and saved.source == "configured" and saved.client_id == client_id:
        bound = saved.issuer
    if bound is not None and bound != server.issuer:
        raise IssuerMismatch(
            "client_id %r is registered with %s, and the server now wants %s: it is not used there; register a client "
            "with that one, or ask the server's operator" % (client_id, bound, server.issuer)
        )
    method = options.auth_method
    if options.key is not None:
        return ClientIdentity(client_id, None, _BY_KEY, server.issuer, "configured", key=options.key)
    if options.client_secret is None:
        method = _PUBLIC
    elif method is None:
        method = _preferred(server, ("client_secret_basic", "client_secret_post"))
    secret = None if method == _PUBLIC else options.client_secret
    return ClientIdentity(client_id, secret, method, server.issuer, "configured")


def _still_good(saved: ClientIdentity, server: ServerMetadata, redirect_uri: str, scope: Sequence[str]) -> bool:
    return (
        saved.source == "registered"
        and saved.issuer == server.issuer
        and redirect_uri in saved.redirect_uris
        and set(scope) <= set(saved.scope)
        and (saved.secret_expires_at is None or time.time() < saved.secret_expires_at)
    )


def _preferred(server: ServerMetadata, methods: Sequence[str]) -> str:
    offered = server.token_endpoint_auth_methods_supported
    if offered is None:
        return methods[0]
    for method in methods:
        if method in offered:
            return method
    raise AuthError(
        "%s wants clients to prove themselves by %s, and this one can do %s"
        % (server.issuer, ", ".join(offered), ", ".join(methods))
    )


# -- registration ----------------------------------------------------------------------------------------------------


def _register(
    server: ServerMetadata,
    options: IdentityOptions,
    redirect_uri: str,
    scope: Tuple[str, ...],
    web: Web,
    deadline: Deadline,
) -> ClientIdentity:
    method = options.auth_method or _preferred(server, _METHODS)
    wanted: Dict[str, Any] = {
        "client_name": options.client_name,
        "redirect_uris": [redirect_uri],
        "grant_types": _grants(server),
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": options.application_type,
    }
    if scope:
        wanted["scope"] = " ".join(scope)
    endpoint = server.registration_endpoint or ""
    answer = web.post_json(endpoint, wanted, deadline)
    if answer.status not in (200, 201) or answer.data is None:
        raise RegistrationRejected(_rejection(server.issuer, answer, wanted))
    return replace(_registered(answer.data, server, method, redirect_uri), scope=scope)


def _grants(server: ServerMetadata) -> Sequence[str]:
    wanted = ["authorization_code"]
    if server.grant_types_supported is None or "refresh_token" in server.grant_types_supported:
        wanted.append("refresh_token")
    return wanted


def _registered_scopes(discovery: Discovery, scopes: Sequence[str]) -> Sequence[str]:
    """All that is likely to be asked for: some servers hold a client to what it registered for."""
    metadata, offered = discovery.resource_metadata, discovery.server.scopes_supported
    wanted = [*scopes, *((metadata.scopes_supported if metadata is not None else None) or ())]
    return [scope for scope in dict.fromkeys(wanted) if offered is None or scope in offered]


def _registered(data: Dict[str, Any], server: ServerMetadata, asked_method: str, redirect_uri: str) -> ClientIdentity:
    client_id, secret = data.get("client_id"), data.get("client_secret")
    method = data.get("token_endpoint_auth_method")
    expires = data.get("client_secret_expires_at")
    if not isinstance(client_id, str) or not client_id or not isinstance(secret, (str, type(None))):
        raise RegistrationRejected("%s registered a client without a client_id that can be used" % server.issuer)
    if method is None:
        method = asked_method
    if method not in _METHODS or (method != _PUBLIC and secret is None):
        raise RegistrationRejected("%s registered a client that cannot prove itself: %.60r" % (server.issuer, method))
    limited = isinstance(expires, (int, float)) and not isinstance(expires, bool) and 0 < expires < _NEVER
    return ClientIdentity(
        client_id=client_id,
        client_secret=None if method == _PUBLIC else secret,
        auth_method=method,
        issuer=server.issuer,
        source="registered",
        redirect_uris=(redirect_uri,),
        secret_expires_at=float(expires or 0) if limited else None,
    )


def _rejection(issuer: str, answer: Answer, wanted: Dict[str, Any]) -> str:
    data = answer.data or {}
    error, description = data.get("error"), data.get("error_description")
    parts: Tuple[str, ...] = ("%s did not register this client (%d)" % (issuer, answer.status),)
    if isinstance(error, str) and _CODE.match(error):
        parts += (error,)
    if isinstance(description, str):
        parts += ("it says %.200r" % description,)  # nothing secret was sent
    remedy = "register one there, with the redirect URI %s, and set client_id" % wanted["redirect_uris"][0]
    return "; ".join((*parts, remedy))
