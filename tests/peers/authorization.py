"""An authorization server and a server that trusts it, on real sockets, strict where it matters and scriptable.

::

    with AuthorizationServer() as server, ProtectedServer(server) as resource:
        ...  # sign in at resource.url; server.browse(url) is the person who says yes

It holds clients to what the specifications ask: registered redirect URIs, PKCE, one-use codes, the client's own way to
prove itself, the resource on every request, refresh tokens that turn. ``server.refused`` says what it did not accept.
A function in ``routes`` replaces what a path does; it may return True to leave the request to the server after all.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import secrets
import ssl
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

from tests.peers.http import Behaviour, Exchange, HttpPeer

__all__ = ["AuthorizationServer", "ProtectedServer", "browse", "follow"]

Route = Callable[[Exchange], Optional[bool]]


def browse(url: str, context: Optional[ssl.SSLContext] = None) -> str:
    """Open a URL as a browser does, and say where it is sent to."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=20, context=context)
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
    try:
        connection.request("GET", parts._replace(scheme="", netloc="", fragment="").geturl())
        response = connection.getresponse()
        body = response.read().decode()
        location = response.getheader("Location")
    finally:
        connection.close()
    assert location is not None, "no redirect: %d %s" % (response.status, body)
    return location


def follow(url: str) -> Tuple[int, Dict[str, str], str]:
    """Open a URL as a browser does: status, headers by lower-case name, body."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
    try:
        connection.request("GET", parts._replace(scheme="", netloc="", fragment="").geturl())
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read().decode()
    finally:
        connection.close()


class Refused(Exception):
    """The request is not right; the argument is the OAuth error code."""


class AuthorizationServer(HttpPeer):
    """An authorization server.

    :param path: of its issuer, as ``/tenant``
    :param well_known: where its metadata is: ``oauth``, ``openid`` or ``appended``; None: nowhere
    :param registration: whether clients may register
    :param clients: known ones, id to secret; None as secret: public
    :param auth_methods: how clients prove themselves; the first one is given to who registers without a wish
    :param sends_issuer: answers carry ``iss``, and the metadata says so
    :param rotates: each refresh token works once; a second use takes the whole family back
    :param asks_resource: a request without ``resource`` is refused
    :param metadata: replaces fields of the metadata; None removes one
    :param answers: replaces parameters of the redirect back to the client; None removes one
    :param tokens: replaces fields of the answers of the token endpoint; None removes one
    :param routes: what a path does instead
    """

    def __init__(
        self,
        *,
        path: str = "",
        well_known: Optional[str] = "oauth",
        registration: bool = True,
        clients: Optional[Mapping[str, Optional[str]]] = None,
        auth_methods: Sequence[str] = ("none",),
        sends_issuer: bool = True,
        rotates: bool = True,
        asks_resource: bool = True,
        expires_in: Optional[int] = 3600,
        gives_refresh: bool = True,
        scopes: Optional[Sequence[str]] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        answers: Optional[Mapping[str, Optional[str]]] = None,
        tokens: Optional[Mapping[str, Any]] = None,
        routes: Optional[Mapping[str, Route]] = None,
        tls: Optional[ssl.SSLContext] = None,
    ) -> None:
        self._path = path
        self._well_known = well_known
        self._registration = registration
        self.auth_methods = list(auth_methods)
        self.sends_issuer = sends_issuer
        self.rotates = rotates
        self.asks_resource = asks_resource
        self.expires_in = expires_in
        self.gives_refresh = gives_refresh
        self._scopes = scopes
        self._metadata = dict(metadata or {})
        self._answers = dict(answers or {})
        self._tokens = dict(tokens or {})
        self.routes: Dict[str, Route] = dict(routes or {})
        self._lock = threading.RLock()
        self.clients: Dict[str, Dict[str, Any]] = {}
        for client_id, secret in (clients or {}).items():
            self.clients[client_id] = {"secret": secret, "redirect_uris": None, "method": None}
        self.registrations: List[Dict[str, Any]] = []
        self.authorizations: List[Dict[str, str]] = []
        self.token_requests: List[Dict[str, str]] = []
        self.revoked: List[str] = []
        self.refused: List[str] = []
        self.codes: Dict[str, Dict[str, str]] = {}
        self.access: Dict[str, Dict[str, str]] = {}
        self.refresh: Dict[str, Dict[str, str]] = {}
        self.used: Dict[str, str] = {}
        super().__init__(self._answer, tls)

    def __enter__(self) -> AuthorizationServer:
        return self

    @property
    def origin(self) -> str:
        return self.url.rpartition("/")[0]

    @property
    def issuer(self) -> str:
        return self.origin + self._path

    @property
    def secrets(self) -> List[str]:
        """Everything secret that it gave out or was sent: codes, verifiers, tokens, secrets of clients."""
        with self._lock:
            sent = [request.get(name, "") for request in self.token_requests for name in ("code", "code_verifier")]
            kept = [client["secret"] or "" for client in self.clients.values()]
            given = [*self.codes, *self.access, *self.refresh, *self.used]
            return [secret for secret in [*sent, *kept, *given] if secret]

    def document(self) -> Dict[str, Any]:
        """Its metadata."""
        found = {
            "issuer": self.issuer,
            "authorization_endpoint": self.issuer + "/authorize",
            "token_endpoint": self.issuer + "/token",
            "registration_endpoint": self.issuer + "/register" if self._registration else None,
            "revocation_endpoint": self.issuer + "/revoke",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": self.auth_methods,
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": self.sends_issuer or None,
            "scopes_supported": None if self._scopes is None else list(self._scopes),
        }
        return _merged(found, self._metadata)

    # -- paths -------------------------------------------------------------------------------------------------

    def _places(self) -> Dict[str, str]:
        return {
            "oauth": "/.well-known/oauth-authorization-server" + self._path,
            "openid": "/.well-known/openid-configuration" + self._path,
            "appended": self._path + "/.well-known/openid-configuration",
        }

    def _answer(self, exchange: Exchange) -> None:
        path = exchange.request.path.partition("?")[0]
        if path in self.routes and not self.routes[path](exchange):
            return
        own = path[len(self._path) :] if path.startswith(self._path) else path
        if self._well_known is not None and path == self._places()[self._well_known]:
            exchange.respond(200, self.document())
        elif own == "/authorize" and exchange.request.method == "GET":
            self._authorize(exchange)
        elif own == "/token" and exchange.request.method == "POST":
            self._token(exchange)
        elif own == "/register" and exchange.request.method == "POST" and self._registration:
            self._register(exchange)
        elif own == "/revoke" and exchange.request.method == "POST":
            self._revoke(exchange)
        else:
            exchange.respond(404, b"<html>not here</html>", content_type="text/html")

    # -- endpoints ---------------------------------------------------------------------------------------------

    def _register(self, exchange: Exchange) -> None:
        wanted = exchange.request.message
        with self._lock:
            self.registrations.append(wanted)
            method = wanted.get("token_endpoint_auth_method", "client_secret_basic")
            if method not in self.auth_methods:
                self._refuse(exchange, "invalid_client_metadata")
                return
            client_id = "client-" + secrets.token_hex(4)
            secret = None if method == "none" else secrets.token_hex(16)
            self.clients[client_id] = {"secret": secret, "redirect_uris": wanted["redirect_uris"], "method": method}
        answer = {**wanted, "client_id": client_id, "token_endpoint_auth_method": method}
        if secret is not None:
            answer.update(client_secret=secret, client_secret_expires_at=0)
        exchange.respond(201, answer)

    def _authorize(self, exchange: Exchange) -> None:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(exchange.request.path).query).items()}
        with self._lock:
            self.authorizations.append(asked)
            client = self.clients.get(asked.get("client_id", ""))
            known = client is not None or asked.get("client_id", "").startswith("https://")
            uris = client["redirect_uris"] if client else None
            if not known or (uris is not None and asked.get("redirect_uri") not in uris):
                self._refuse(exchange, "invalid_request")
                return
            answer: Dict[str, Any] = {"state": asked.get("state"), "iss": self.issuer if self.sends_issuer else None}
            right = (
                asked.get("response_type") == "code"
                and asked.get("code_challenge_method") == "S256"
                and len(asked.get("code_challenge", "")) == 43
                and ("resource" in asked or not self.asks_resource)
            )
            if right:
                answer["code"] = "code-" + secrets.token_hex(8)
                self.codes[answer["code"]] = asked
            else:
                self.refused.append("invalid_request")
                answer["error"] = "invalid_request"
        answer = _merged(answer, self._answers)
        exchange.respond(302, b"", Location=asked["redirect_uri"] + "?" + urlencode(answer))

    def _token(self, exchange: Exchange) -> None:
        form = {name: values[0] for name, values in parse_qs(exchange.request.body.decode()).items()}
        with self._lock:
            self.token_requests.append(form)
            try:
                client_id = self._client_of(exchange, form)
                granted = self._grant(form, client_id)
                answer = self._issue(granted, form)
            except Refused as refusal:
                code = str(refusal)
                self._refuse(exchange, code, 401 if code == "invalid_client" else 400)
                return
        exchange.respond(200, _merged(answer, self._tokens), Cache_Control="no-store")

    def _client_of(self, exchange: Exchange, form: Mapping[str, str]) -> str:
        header = exchange.request.headers.get("authorization", "")
        client_id, secret, method = form.get("client_id", ""), form.get("client_secret"), "none"
        if header.startswith("Basic "):
            pair = base64.b64decode(header[6:]).decode().partition(":")
            client_id, secret, method = unquote_plus(pair[0]), unquote_plus(pair[2]), "client_secret_basic"
        elif secret is not None:
            method = "client_secret_post"
        client = self.clients.get(client_id)
        if client is None and client_id.startswith("https://") and method == "none":
            return client_id
        wanted = None if client is None else client["method"] or (method if method in self.auth_methods else "?")
        if client is None or client["secret"] != secret or wanted != method:
            raise Refused("invalid_client")
        return client_id

    def _grant(self, form: Mapping[str, str], client_id: str) -> Dict[str, str]:
        if self.asks_resource and "resource" not in form:
            raise Refused("invalid_target")
        if form.get("grant_type") == "authorization_code":
            granted = self.codes.pop(form.get("code", ""), None)
            digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
            if (
                granted is None
                or granted["client_id"] != client_id
                or granted["redirect_uri"] != form.get("redirect_uri")
                or granted["code_challenge"] != base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
                or granted.get("resource") != form.get("resource")
            ):
                raise Refused("invalid_grant")
            return {**granted, "family": secrets.token_hex(4)}
        if form.get("grant_type") == "refresh_token":
            token = form.get("refresh_token", "")
            if token in self.used:
                family = self.used[token]
                self.refresh = {key: value for key, value in self.refresh.items() if value["family"] != family}
                raise Refused("invalid_grant")
            found = self.refresh.get(token)
            if found is None or found["client_id"] != client_id:
                raise Refused("invalid_grant")
            if self.rotates:
                self.used[token] = self.refresh.pop(token)["family"]
            return found
        raise Refused("unsupported_grant_type")

    def _issue(self, granted: Dict[str, str], form: Mapping[str, str]) -> Dict[str, Any]:
        access = "access-" + secrets.token_hex(8)
        self.access[access] = granted
        refresh = None
        if self.gives_refresh and (self.rotates or form["grant_type"] == "authorization_code"):
            refresh = "refresh-" + secrets.token_hex(8)
            self.refresh[refresh] = granted
        answer = {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": self.expires_in,
            "refresh_token": refresh,
            "scope": granted.get("scope"),
        }
        return _merged(answer, {})

    def _revoke(self, exchange: Exchange) -> None:
        form = {name: values[0] for name, values in parse_qs(exchange.request.body.decode()).items()}
        with self._lock:
            try:
                self._client_of(exchange, form)
            except Refused as refusal:
                self._refuse(exchange, str(refusal), 401)
                return
            token = form["token"]
            self.revoked.append(token)
            family = (self.refresh.get(token) or self.access.get(token) or {}).get("family")
            self.refresh = {key: value for key, value in self.refresh.items() if value["family"] != family}
            self.access = {key: value for key, value in self.access.items() if value["family"] != family}
        exchange.respond(200, b"", content_type=None)

    def _refuse(self, exchange: Exchange, error: str, status: int = 400) -> None:
        self.refused.append(error)
        exchange.respond(status, {"error": error, "error_description": "not with this server"})

    def expire_access(self) -> None:
        """Every access token is worth nothing from now on."""
        with self._lock:
            self.access.clear()

    def revoke_all(self) -> None:
        """Every token is worth nothing from now on."""
        with self._lock:
            self.access.clear()
            self.refresh.clear()


class ProtectedServer(HttpPeer):
    """An MCP server that wants a token.

    :param trusted: whose tokens it takes; the first is named first
    :param behaviour: what it does with a request that has one; by default 200 and an empty object
    :param metadata_at: where its metadata is: ``path``, ``root`` or another path; None: nowhere
    :param announces: the challenge names where the metadata is
    :param challenge_scope: what the challenge asks for
    :param metadata: replaces fields of the metadata; None removes one
    :param needs: a function from a request to the scopes that it needs
    :param routes: what a path does instead
    """

    def __init__(
        self,
        *trusted: AuthorizationServer,
        behaviour: Optional[Behaviour] = None,
        metadata_at: Optional[str] = "path",
        announces: bool = True,
        challenge_scope: Optional[str] = None,
        scopes: Optional[Sequence[str]] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        needs: Optional[Callable[[Any], Sequence[str]]] = None,
        routes: Optional[Mapping[str, Route]] = None,
        tls: Optional[ssl.SSLContext] = None,
    ) -> None:
        self.trusted = list(trusted)
        self._then = behaviour or (lambda exchange: exchange.respond(200, {}))
        self._metadata_at = metadata_at
        self._announces = announces
        self._challenge_scope = challenge_scope
        self._scopes = scopes
        self._metadata = dict(metadata or {})
        self._needs = needs
        self.routes: Dict[str, Route] = dict(routes or {})
        super().__init__(self._answer, tls)

    def __enter__(self) -> ProtectedServer:
        return self

    @property
    def origin(self) -> str:
        return self.url.rpartition("/")[0]

    @property
    def metadata_path(self) -> Optional[str]:
        places = {
            "path": "/.well-known/oauth-protected-resource/mcp",
            "root": "/.well-known/oauth-protected-resource",
        }
        return None if self._metadata_at is None else places.get(self._metadata_at, self._metadata_at)

    @property
    def challenge(self) -> str:
        """Its WWW-Authenticate."""
        parts = []
        if self._announces and self.metadata_path is not None:
            parts.append('resource_metadata="%s"' % (self.origin + self.metadata_path))
        if self._challenge_scope is not None:
            parts.append('scope="%s"' % self._challenge_scope)
        return "Bearer " + ", ".join(parts)

    def document(self) -> Dict[str, Any]:
        """Its metadata."""
        found = {
            "resource": self.url,
            "authorization_servers": [server.issuer for server in self.trusted],
            "scopes_supported": None if self._scopes is None else list(self._scopes),
        }
        return _merged(found, self._metadata)

    def _answer(self, exchange: Exchange) -> None:
        path = exchange.request.path.partition("?")[0]
        if path in self.routes and not self.routes[path](exchange):
            return
        if path == self.metadata_path:
            exchange.respond(200, self.document())
        elif path != "/mcp":
            exchange.respond(404, b"<html>not here</html>", content_type="text/html")
        else:
            self._guard(exchange)

    def _guard(self, exchange: Exchange) -> None:
        token = exchange.request.headers.get("authorization", "").partition("Bearer ")[2]
        granted = next((server.access[token] for server in self.trusted if token in server.access), None)
        if granted is None:
            exchange.respond(401, {"error": "invalid_token"}, WWW_Authenticate=self.challenge)
            return
        message = json.loads(exchange.request.body) if exchange.request.body else None
        needed = self._needs(message) if self._needs is not None else ()
        if not set(needed) <= set(granted.get("scope", "").split()):
            more = 'error="insufficient_scope", scope="%s"' % " ".join(needed)
            separator = "" if self.challenge == "Bearer " else ", "
            challenge = "Bearer " + more + separator + self.challenge[len("Bearer ") :]
            exchange.respond(403, {"error": "insufficient_scope"}, WWW_Authenticate=challenge)
            return
        self._then(exchange)


def _merged(data: Mapping[str, Any], changes: Mapping[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in {**data, **changes}.items() if value is not None}
