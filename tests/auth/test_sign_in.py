"""Whole sign-ins, against an authorization server that holds the client to everything."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from mcpsync.auth.authorization_code import choose_scopes
from mcpsync.auth.browser import Browser, OwnWay, Paste
from mcpsync.auth.identity import IdentityOptions
from mcpsync.auth.token_endpoint import TokenRefused, refresh, revoke
from mcpsync.auth.web import Web
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError, IssuerMismatch
from tests.auth.signing import SOON, find, sign_in_at
from tests.peers.authorization import AuthorizationServer, ProtectedServer, browse, follow


@pytest.mark.parametrize("path", ["", "/tenant/1"])
@pytest.mark.parametrize("place", ["oauth", "openid"])
def test_a_person_signs_in(path, place):
    with AuthorizationServer(path=path, well_known=place) as server, ProtectedServer(server, scopes=["a"]) as resource:
        made = sign_in_at(resource)
        assert server.refused == []
        assert made.tokens.access_token in server.access
        assert made.tokens.refresh_token in server.refresh
        assert (made.issuer, made.resource, made.account) == (server.issuer, resource.url, "test")
        assert made.tokens.scope == made.requested == ("a",)
        assert made.identity.source == "registered"
        (asked,) = server.authorizations
        assert asked["resource"] == server.token_requests[0]["resource"] == resource.url


@pytest.mark.parametrize("method", ["none", "client_secret_basic", "client_secret_post"])
@pytest.mark.parametrize("known", [False, True])
def test_each_way_to_prove_who_the_client_is(method, known):
    secret = None if method == "none" else "s e+c%r:et/ü"
    clients = {"my id:1": secret} if known else {}
    options = IdentityOptions("my id:1", secret) if known else IdentityOptions()
    with (
        AuthorizationServer(auth_methods=[method], registration=not known, clients=clients) as server,
        ProtectedServer(server) as resource,
    ):
        made = sign_in_at(resource, options=options)
        assert made.identity.auth_method == method
        again = refresh(made, Web(resource.url), Deadline(SOON))
        assert again.access_token in server.access
        assert revoke(made, Web(resource.url), Deadline(SOON))
        assert server.refused == []


def test_a_browser_here():
    opened = []

    def opener(url):
        opened.append(url)
        threading.Thread(target=lambda: pages.append(follow(browse(url)))).start()
        return True

    pages = []
    with AuthorizationServer() as server, ProtectedServer(server) as resource:
        made = sign_in_at(resource, way=Browser(opener=opener))
        assert made.tokens.access_token in server.access
    assert len(opened) == 1


def test_a_browser_elsewhere():
    with AuthorizationServer() as server, ProtectedServer(server) as resource:
        made = sign_in_at(resource, way=Paste(ask=lambda url: "  %s\n" % browse(url)))
        assert made.tokens.access_token in server.access


def test_a_second_sign_in_registers_nothing_new():
    with AuthorizationServer() as server, ProtectedServer(server) as resource:
        first = sign_in_at(resource)
        second = sign_in_at(resource, saved=first.identity)
        assert second.identity == first.identity
        assert len(server.registrations) == 1


def test_a_registration_is_known_even_if_nobody_comes_back():
    told = []
    with AuthorizationServer() as server, ProtectedServer(server) as resource:
        with pytest.raises(AuthError, match="given up"):
            sign_in_at(resource, way=OwnWay(lambda url: None), identified=told.append)
        (known,) = told
        assert known.tokens is None
        assert known.identity.client_id in server.clients


def test_a_registration_that_the_server_forgot():
    with AuthorizationServer() as server, ProtectedServer(server) as resource:
        first = sign_in_at(resource)

        def forgetful(url):
            back = browse(url)
            server.clients.clear()
            return back

        with pytest.raises(AuthError, match="no longer knows the client"):
            sign_in_at(resource, saved=first.identity, way=OwnWay(forgetful))


@pytest.mark.parametrize("reused", [True, False])
def test_nobody_comes_back_from_a_server_that_may_have_forgotten_the_registration(reused):
    with AuthorizationServer() as server, ProtectedServer(server) as resource:
        first = sign_in_at(resource)
        if reused:
            server.clients.clear()  # it shows an error to the person, and sends nobody back
        way = Browser(opener=lambda url: True)
        saved = replace(first.identity, redirect_uris=()) if not reused else first.identity
        with pytest.raises(AuthError, match="nobody came back") as caught:
            sign_in_at(resource, saved=saved, way=way, seconds=2)
        assert ("does not know the client" in str(caught.value)) is reused


def test_a_code_that_is_refused_says_so_and_nothing_else():
    with AuthorizationServer() as server, ProtectedServer(server) as resource:

        def late(url):
            back = browse(url)
            server.codes.clear()
            return back

        with pytest.raises(TokenRefused, match="invalid_grant") as caught:
            sign_in_at(resource, way=OwnWay(late))
        assert caught.value.error == "invalid_grant"
        assert not [secret for secret in server.secrets if secret in str(caught.value)]


def test_a_step_up_asks_for_the_union():
    with AuthorizationServer() as server, ProtectedServer(server, challenge_scope="read") as resource:
        first = sign_in_at(resource)
        scopes = choose_scopes(find(resource), challenged=["write"], before=first.requested)
        second = sign_in_at(resource, saved=first.identity, scopes=scopes)
        assert [asked["scope"] for asked in server.authorizations] == ["read", "read write"]
        assert second.tokens.scope == ("read", "write")


def test_a_server_of_2025_03_26_is_not_told_the_resource():
    with AuthorizationServer(well_known=None, asks_resource=False, sends_issuer=False) as server:
        server.challenge = "Bearer"
        made = sign_in_at(server)
        assert not made.names_resource
        assert "resource" not in server.authorizations[0]
        refresh(made, Web(server.url), Deadline(SOON))
        assert ["resource" in request for request in server.token_requests] == [False, False]


def test_another_server_than_the_one_that_was_asked_answers():
    with AuthorizationServer(answers={"iss": "https://other.example"}) as server, ProtectedServer(server) as resource:
        with pytest.raises(IssuerMismatch):
            sign_in_at(resource)
        assert server.token_requests == []


def test_parameters_that_a_provider_wants():
    with AuthorizationServer() as server, ProtectedServer(server) as resource:
        sign_in_at(resource, parameters={"audience": "x", "prompt": "login"})
        assert server.authorizations[0]["audience"] == "x"
        for ours in ("state", "resource", "redirect_uri", "code_challenge"):
            with pytest.raises(AuthError, match=ours):
                sign_in_at(resource, parameters={ours: "x"})
