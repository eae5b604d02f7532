"""Who the client is to a server: the order of preference, and what is never used elsewhere."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from mcpsync.auth.credentials import ClientIdentity
from mcpsync.auth.identity import IdentityOptions, check_identity_options, identify
from mcpsync.auth.web import Web
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError, ConfigError, IssuerMismatch, RegistrationRejected
from tests.auth.signing import SOON, find
from tests.peers.authorization import AuthorizationServer, ProtectedServer

URI = "http://127.0.0.1:7777/callback"
DOCUMENT = "https://client.example/mcpsync.json"


def identify_at(resource, options=None, saved=None, uri=URI, scopes=()):
    web = Web(resource.url)
    return identify(find(resource, web), options or IdentityOptions(), saved, uri, scopes, web, Deadline(SOON))


def test_what_the_user_registered_comes_first():
    with AuthorizationServer(metadata={"client_id_metadata_document_supported": True}) as server:
        with ProtectedServer(server) as resource:
            made = identify_at(resource, IdentityOptions("mine", metadata_url=DOCUMENT))
        assert (made.client_id, made.source, made.issuer) == ("mine", "configured", server.issuer)
        assert server.registrations == []


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        (None, "client_secret_basic"),
        (["client_secret_post"], "client_secret_post"),
        (["client_secret_post", "client_secret_basic"], "client_secret_basic"),
    ],
)
def test_a_secret_is_used_as_the_server_prefers(offered, expected):
    changes = {"token_endpoint_auth_methods_supported": offered}
    with AuthorizationServer(metadata=changes) as server, ProtectedServer(server) as resource:
        assert identify_at(resource, IdentityOptions("mine", "s")).auth_method == expected
        forced = identify_at(resource, IdentityOptions("mine", "s", auth_method="client_secret_post"))
        assert forced.auth_method == "client_secret_post"


def test_a_server_that_wants_what_this_client_cannot_do():
    changes = {"token_endpoint_auth_methods_supported": ["tls_client_auth"]}
    with AuthorizationServer(metadata=changes) as server, ProtectedServer(server) as resource:
        with pytest.raises(AuthError, match="tls_client_auth"):
            identify_at(resource, IdentityOptions("mine", "s"))
        with pytest.raises(AuthError, match="tls_client_auth"):
            identify_at(resource)
        assert server.registrations == []


def test_a_public_client_sends_no_secret():
    with AuthorizationServer() as server, ProtectedServer(server) as resource:
        made = identify_at(resource, IdentityOptions("mine"))
        assert (made.auth_method, made.client_secret) == ("none", None)


@pytest.mark.parametrize("named", [True, False])
def test_what_the_user_registered_is_used_with_its_issuer_only(named):
    """Named by the user, or learned when it was first used."""
    with AuthorizationServer() as server, ProtectedServer(server) as resource:
        elsewhere = "https://first.example"
        options = IdentityOptions("mine", "SECRET", client_issuer=elsewhere if named else None)
        saved = None if named else ClientIdentity("mine", "SECRET", "client_secret_basic", elsewhere)
        with pytest.raises(IssuerMismatch, match=r"registered with https://first\.example") as caught:
            identify_at(resource, options, saved)
        assert "SECRET" not in str(caught.value)


def test_a_metadata_document_comes_before_registration_where_it_is_taken():
    with AuthorizationServer() as server, ProtectedServer(server) as resource:
        options = IdentityOptions(metadata_url=DOCUMENT)
        assert identify_at(resource, options).source == "registered"
        server._metadata["client_id_metadata_document_supported"] = True
        made = identify_at(resource, options)
        assert (made.client_id, made.source, made.auth_method) == (DOCUMENT, "metadata_document", "none")
        assert len(server.registrations) == 1


def test_what_was_registered_before_is_used_while_it_is_good():
    with AuthorizationServer() as server, ProtectedServer(server) as resource:
        first = identify_at(resource)
        assert identify_at(resource, saved=first) == first
        for worthless in (
            replace(first, issuer="https://other.example"),
            replace(first, redirect_uris=("http://127.0.0.1:1/callback",)),
            replace(first, secret_expires_at=time.time() - 1),
            replace(first, source="configured"),
        ):
            assert identify_at(resource, saved=worthless).client_id != first.client_id


def test_a_step_up_beyond_what_was_registered_registers_for_all_of_it():
    """Some servers hold a client to the scopes of its registration."""
    with AuthorizationServer() as server, ProtectedServer(server) as resource:
        first = identify_at(resource, scopes=["read"])
        assert identify_at(resource, saved=first, scopes=["read"]) == first
        second = identify_at(resource, saved=first, scopes=["write"])
        assert second.client_id != first.client_id
        assert [each.get("scope") for each in server.registrations] == ["read", "read write"]
        assert identify_at(resource, saved=second, scopes=["write"]) == second


def test_a_registration_says_what_the_client_is():
    with AuthorizationServer(scopes=["a", "b", "offline_access"]) as server:
        with ProtectedServer(server, scopes=["a", "z"]) as resource:
            identify_at(resource, IdentityOptions(client_name="A host"), scopes=["b", "offline_access"])
        assert server.registrations == [
            {
                "client_name": "A host",
                "redirect_uris": [URI],
                "grant_types": ["authorization_code", "refresh_token"],
                "response_types": ["code"],
                "token_endpoint_auth_method": "none",
                "application_type": "native",
                "scope": "b offline_access a",
            }
        ]


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        (None, "none"),
        (["client_secret_basic", "none"], "none"),
        (["client_secret_basic", "client_secret_post"], "client_secret_post"),
        (["client_secret_basic", "private_key_jwt"], "client_secret_basic"),
    ],
)
def test_a_registration_asks_for_what_the_server_offers(offered, expected):
    methods = ["none", "client_secret_post", "client_secret_basic"]
    changes = {"token_endpoint_auth_methods_supported": offered}
    with AuthorizationServer(metadata=changes, auth_methods=methods) as server, ProtectedServer(server) as resource:
        assert identify_at(resource).auth_method == expected
        assert server.registrations[0]["token_endpoint_auth_method"] == expected


def test_a_registration_asks_for_no_grant_that_is_not_there():
    changes = {"grant_types_supported": ["authorization_code"]}
    with AuthorizationServer(metadata=changes) as server, ProtectedServer(server) as resource:
        identify_at(resource)
        assert server.registrations[0]["grant_types"] == ["authorization_code"]
        assert "scope" not in server.registrations[0]


def answered(status, body):
    def route(exchange):
        exchange.respond(status, body)

    return AuthorizationServer(routes={"/register": route}, auth_methods=["client_secret_basic", "none"])


def test_what_the_server_registered_is_what_counts():
    body = {
        "client_id": "x",
        "client_secret": "s",
        "token_endpoint_auth_method": "client_secret_post",
        "client_secret_expires_at": 5000000000,
    }
    with answered(201, body) as server, ProtectedServer(server) as resource:
        made = identify_at(resource)
    assert (made.auth_method, made.client_secret, made.secret_expires_at) == ("client_secret_post", "s", 5e9)


def test_a_secret_that_expires_in_no_time_that_can_be_told_never_does():
    body = {"client_id": "x", "client_secret": "s", "client_secret_expires_at": 10**400}
    with answered(201, body) as server, ProtectedServer(server) as resource:
        assert identify_at(resource).secret_expires_at is None


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (400, {"error": "invalid_redirect_uri", "error_description": "no \x1b[2Jloopback"}, "invalid_redirect_uri"),
        (403, b"<html>", "403"),
        (201, b"<html>", "201"),
        (201, {}, "client_id"),
        (201, {"client_id": 7}, "client_id"),
        (201, {"client_id": "x", "token_endpoint_auth_method": "private_key_jwt"}, "private_key_jwt"),
        (201, {"client_id": "x", "token_endpoint_auth_method": "client_secret_basic"}, "cannot prove itself"),
    ],
)
def test_a_registration_that_was_refused_or_cannot_be_used(status, body, says):
    with (
        answered(status, body) as server,
        ProtectedServer(server) as resource,
        pytest.raises(RegistrationRejected, match=says) as caught,
    ):
        identify_at(resource)
    assert "\x1b" not in str(caught.value)


def test_a_refused_registration_names_the_remedy():
    remedy = "with the redirect URI %s, and set client_id" % URI
    with (
        answered(400, {}) as server,
        ProtectedServer(server) as resource,
        pytest.raises(RegistrationRejected, match=remedy),
    ):
        identify_at(resource)


@pytest.mark.parametrize(("takes", "says"), [(False, "set client_id$"), (True, "or set client_metadata_url")])
def test_a_server_that_registers_nobody_says_what_to_do(takes, says):
    changes = {"client_id_metadata_document_supported": takes}
    with (
        AuthorizationServer(registration=False, metadata=changes) as server,
        ProtectedServer(server) as resource,
        pytest.raises(AuthError, match=says),
    ):
        identify_at(resource)


@pytest.mark.parametrize(
    "options",
    [
        IdentityOptions(client_secret="SECRET"),
        IdentityOptions("x", auth_method="client_secret_basic"),
        IdentityOptions("x", "SECRET", auth_method="guess"),
        IdentityOptions(metadata_url="http://client.example/x"),
        IdentityOptions(metadata_url="https://client.example"),
        IdentityOptions(metadata_url="client.json"),
    ],
)
def test_options_that_cannot_work_are_refused_at_once(options):
    with pytest.raises(ConfigError) as caught:
        check_identity_options(options)
    assert "SECRET" not in str(caught.value)
    assert "SECRET" not in repr(options)


def test_options_that_can_work():
    check_identity_options(IdentityOptions("x", "s", auth_method="client_secret_post", metadata_url=DOCUMENT))
    check_identity_options(IdentityOptions())
