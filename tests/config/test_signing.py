"""What config files say of signing in, in the spellings of several programs."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import pytest

from mcpsync.auth.oauth import OAuth
from mcpsync.config import load

URL = "https://mcp.example/mcp"


def auth_of(entry: Dict[str, Any], **environ: str) -> Any:
    config = load({"mcpServers": {"web": {"type": "http", "url": URL, **entry}}}, environ=environ)
    server = config.servers["web"]
    assert server.error is None, server.error
    assert config.diagnostics == ()
    return server.auth


def remarks(entry: Dict[str, Any], severity: str) -> List[str]:
    config = load({"mcpServers": {"web": {"type": "http", "url": URL, **entry}}}, environ={})
    return [str(each.as_error()) for each in config.diagnostics if each.severity == severity]


@pytest.mark.parametrize(
    ("entry", "options"),
    [
        ({}, {}),
        ({"auth": "oauth"}, {}),
        ({"oauth": True}, {}),
        ({"oauth": {}}, {}),
        ({"auth": "none"}, None),
        ({"oauth": False}, None),
        ({"oauth": {"enabled": False, "clientId": "x"}}, None),
        ({"headers": {"authorization": "Bearer x"}}, None),
        (
            {"oauth": {"clientId": "c", "callbackPort": 8080, "authServerMetadataUrl": URL, "scopes": "a b"}},
            {"client_id": "c", "callback_port": 8080, "server_metadata_url": URL, "scopes": ["a", "b"]},
        ),
        ({"oauth": {"clientId": "c"}}, {"client_id": "c"}),
        (
            {"auth": {"CLIENT_ID": "c", "CLIENT_SECRET": "s", "scopes": ["a", "b"]}},
            {"client_id": "c", "client_secret": "s", "scopes": ["a", "b"]},
        ),
        ({"oauth": {"client_id": "c", "client_secret": "s"}}, {"client_id": "c", "client_secret": "s"}),
        (
            {"oauth": {"enabled": True, "redirectUri": "http://127.0.0.1:1/x", "authorizationParams": {"a": "b"}}},
            {"redirect_uri": "http://127.0.0.1:1/x", "parameters": {"a": "b"}},
        ),
        ({"auth": "oauth", "oauth": {"issuer": "https://as.example"}}, {"issuer": "https://as.example"}),
        (
            {"oauth": {"allow_hosts": ["as.example"], "account": "me", "clientName": "x", "auth_method": "none"}},
            {"allow_hosts": ["as.example"], "account": "me", "client_name": "x", "auth_method": "none"},
        ),
        (
            {
                "oauth": {
                    "grant": "client_credentials",
                    "clientId": "c",
                    "privateKeyFile": "key.pem",
                    "signingAlgorithm": "ES256",
                    "keyId": "k",
                    "dpop": True,
                }
            },
            {
                "grant": "client_credentials",
                "client_id": "c",
                "private_key": {"file": "key.pem"},
                "signing_algorithm": "ES256",
                "key_id": "k",
                "dpop": True,
            },
        ),
        (
            {"oauth": {"grant": "jwt_bearer", "clientId": "c", "assertion_file": "/run/token"}},
            {"grant": "jwt_bearer", "client_id": "c", "assertion": {"file": "/run/token"}},
        ),
        (
            {
                "oauth": {
                    "grant": "enterprise",
                    "clientId": "c",
                    "clientSecret": "s",
                    "idToken": "t",
                    "idpIssuer": "https://idp.example",
                    "idpClientId": "d",
                }
            },
            {
                "grant": "enterprise",
                "client_id": "c",
                "client_secret": "s",
                "id_token": "t",
                "idp_issuer": "https://idp.example",
                "idp_client_id": "d",
            },
        ),
    ],
)
def test_spellings(entry: Dict[str, Any], options: Optional[Dict[str, Any]]) -> None:
    assert auth_of(entry) == options
    if options is not None:
        OAuth.of(options)


def test_secrets_come_from_variables_and_are_not_shown() -> None:
    entry = {"url": URL, "type": "http", "oauth": {"clientId": "c", "clientSecret": "${SECRET}"}}
    config = load({"mcpServers": {"web": entry}}, environ={"SECRET": "hush"})
    server = config.servers["web"]
    assert server.auth == {"client_id": "c", "client_secret": "hush"}
    assert "hush" not in repr(server) + repr(config)


def test_a_token_is_sent_as_it_is() -> None:
    config = load({"mcpServers": {"web": {"type": "http", "url": URL, "auth": "${T}"}}}, environ={"T": "tok"})
    server = config.servers["web"]
    assert (server.auth, server.headers) == (None, {"Authorization": "Bearer tok"})


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"auth": 7}, "must be 'oauth', 'none' or a map"),
        ({"oauth": "yes please"}, "must be 'oauth', 'none' or a map"),
        ({"auth": "a\nb"}, "line break"),
        ({"oauth": {"callbackPort": "x"}}, "number of a port"),
        ({"oauth": {"callbackPort": 70000}}, "number of a port"),
        ({"oauth": {"authorizationParams": 1}}, "must be a map"),
        ({"oauth": {"clientId": ["x"]}}, "must be a string"),
        ({"oauth": {"clientSecret": "x"}}, "without the client id"),
        ({"oauth": {"clientId": "x", "auth_method": "tls_client_auth"}}, "auth_method must be one of"),
        ({"oauth": {"clientId": "x", "auth_method": "private_key_jwt"}}, "needs a private key"),
        ({"oauth": {"clientId": "x", "grant": "client_credentials"}}, "needs a client_secret or a private_key"),
        ({"oauth": {"clientId": "x", "grant": "password"}}, "grant must be one of"),
        ({"oauth": {"dpop": "yes"}}, "true or false"),
        ({"oauth": {"clientId": "x", "auth_method": "client_secret_post"}}, "needs a client secret"),
        ({"oauth": {"clientMetadataUrl": "http://x.example/a"}}, "https URL"),
        ({"oauth": {"clientId": "${MISSING}"}}, "MISSING"),
    ],
)
def test_what_is_wrong_is_said_for_that_server(entry: Dict[str, Any], text: str) -> None:
    (found,) = remarks(entry, "error")
    assert text in found
    assert found.startswith("mcpServers.web.")


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"oauth": {"audiences": ["x"]}}, "mcpServers.web.oauth.audiences: is known, but not used"),
        ({"oauth": {"clientIdd": "x"}}, "did you mean 'clientId'?"),
        ({"headers": {"Authorization": "x"}, "oauth": {}}, "there is an Authorization header"),
    ],
)
def test_what_is_odd_is_remarked(entry: Dict[str, Any], text: str) -> None:
    (found,) = remarks(entry, "warning")
    assert text in found


def test_a_command_signs_in_nowhere() -> None:
    config = load({"mcpServers": {"web": {"command": "x", "auth": "oauth"}}}, environ={})
    assert config.servers["web"].auth is None
    assert "signing in is for a url only" in str(config.diagnostics[0])


def test_the_other_layouts_have_it_too() -> None:
    for root in (
        {"tools": {"mcp_servers": {"web": {"url": URL, "auth": "oauth"}}}},
        {"servers": {"web": {"url": URL}}},
    ):
        assert load(root, environ={}).servers["web"].auth == {}
