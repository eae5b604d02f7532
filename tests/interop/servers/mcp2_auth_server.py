"""The official SDK's own authorization server and the MCP server that it guards, on one port of 127.0.0.1.

``mcp2_auth_server.py [--port N] [--access-seconds N] [--sse]``; it prints the URL of the MCP server when it listens.
The pages where people sign in and consent are of this file, the OAuth endpoints are the SDK's. Beside them:
``GET /counts``, with ``events`` (how often what happened) and ``alive`` (how many tokens are good); and
``POST /control/expire`` (the access tokens are no longer good), ``/control/revoke`` (nor the refresh tokens).
"""

from __future__ import annotations

import argparse
import collections
import html
import secrets
import socket
import time
from dataclasses import dataclass, field

import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

SCOPE = "notes"
PAGE = "<!doctype html><title>Notes</title><h1>%s</h1><form method='post'>%s</form>"


@dataclass
class Visit:
    """Somebody on the way through the pages."""

    client: OAuthClientInformationFull
    params: AuthorizationParams
    person: str = ""


@dataclass
class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Keeps all in memory. Refresh tokens are good for one use; one that comes again ends the sign-in."""

    issuer: str
    access_seconds: int
    events: collections.Counter[str] = field(default_factory=collections.Counter)
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    visits: dict[str, Visit] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    access: dict[str, AccessToken] = field(default_factory=dict)
    refresh: dict[str, RefreshToken] = field(default_factory=dict)

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id is not None
        self.events["registered"] += 1
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        self.events["asked"] += 1
        ticket = secrets.token_urlsafe(20)
        self.visits[ticket] = Visit(client, params)
        return "%s/sign-in/%s" % (self.issuer, ticket)

    def decide(self, ticket: str, allow: bool) -> str:
        """Where the browser goes once the person has decided."""
        visit = self.visits.pop(ticket)
        params = visit.params
        back = {"state": params.state, "iss": self.issuer}
        if not allow:
            self.events["denied"] += 1
            return construct_redirect_uri(str(params.redirect_uri), error="access_denied", **back)
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=visit.client.client_id or "",
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
            subject=visit.person,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, **back)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        self.events["exchanged"] += 1
        del self.codes[authorization_code.code]
        return self._issue(authorization_code)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self.refresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        self.events["refreshed"] += 1
        return self._issue(refresh_token)

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self.access.get(token)
        if found is None or (found.expires_at is not None and found.expires_at < time.time()):
            self.events["refused"] += 1
            return None
        return found

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.events["revoked"] += 1
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def _issue(self, source: AuthorizationCode | RefreshToken) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        granted = {
            "client_id": source.client_id,
            "scopes": source.scopes,
            "resource": source.resource,
            "subject": source.subject,
        }
        expires_at = int(time.time()) + self.access_seconds + 1
        self.access[access] = AccessToken(token=access, expires_at=expires_at, **granted)
        self.refresh[refresh] = RefreshToken(token=refresh, **granted)
        return OAuthToken(
            access_token=access,
            refresh_token=refresh,
            expires_in=self.access_seconds,
            scope=" ".join(source.scopes),
        )


def server_of(provider: Provider, path: str) -> MCPServer:
    """The MCP server at that path, with the pages."""
    settings = AuthSettings(
        issuer_url=provider.issuer,  # as text: AnyHttpUrl would add a slash, and it were another issuer
        resource_server_url=provider.issuer + path,
        required_scopes=[SCOPE],
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=[SCOPE], default_scopes=[SCOPE]
        ),
        revocation_options=RevocationOptions(enabled=True),
        validate_token_resource=True,
    )
    server = MCPServer("mcp2-auth-peer", auth_server_provider=provider, auth=settings)

    @server.tool()
    def whoami() -> str:
        """Who signed in, and what the token is for."""
        token = get_access_token()
        assert token is not None
        return "%s at %s for %s" % (token.subject, token.resource, " ".join(token.scopes))

    @server.custom_route("/sign-in/{ticket}", methods=["GET", "POST"])
    async def sign_in(request: Request) -> Response:
        ticket = request.path_params["ticket"]
        if request.method == "GET":
            return HTMLResponse(PAGE % ("Sign in to Notes", "<input name='person'><button>Sign in</button>"))
        provider.visits[ticket].person = str((await request.form())["person"])
        return RedirectResponse("/consent/" + ticket, status_code=302)

    @server.custom_route("/consent/{ticket}", methods=["GET", "POST"])
    async def consent(request: Request) -> Response:
        ticket = request.path_params["ticket"]
        if request.method == "GET":
            visit = provider.visits[ticket]
            asks = "%s asks %s for %s" % (visit.client.client_name, visit.person, " ".join(visit.params.scopes or []))
            buttons = "".join("<button name='say' value='%s'>%s</button>" % (say, say) for say in ("Allow", "Deny"))
            return HTMLResponse(PAGE % (html.escape(asks), buttons))
        return RedirectResponse(provider.decide(ticket, (await request.form())["say"] == "Allow"), status_code=302)

    @server.custom_route("/counts", methods=["GET"])
    async def counts(request: Request) -> Response:
        alive = {"access": len(provider.access), "refresh": len(provider.refresh)}
        return JSONResponse({"events": provider.events, "alive": alive})

    @server.custom_route("/control/{what}", methods=["POST"])
    async def control(request: Request) -> Response:
        provider.access.clear()
        if request.path_params["what"] == "revoke":
            provider.refresh.clear()
        return Response(status_code=204)

    return server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--access-seconds", type=int, default=3600)
    parser.add_argument("--sse", action="store_true")
    asked = parser.parse_args()
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", asked.port))
    listening.listen(128)
    issuer = "http://127.0.0.1:%d" % listening.getsockname()[1]
    path = "/sse" if asked.sse else "/mcp"
    server = server_of(Provider(issuer, asked.access_seconds), path)
    app = server.sse_app() if asked.sse else server.streamable_http_app()
    print(issuer + path, flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)).run(sockets=[listening])


if __name__ == "__main__":
    main()
