"""The token endpoint: what is sent, what is believed, and what is said when it goes wrong."""

from __future__ import annotations

import base64
import pickle
import time
from urllib.parse import parse_qs

import pytest

from mcpsync.auth.credentials import ClientIdentity, Credentials, Tokens
from mcpsync.auth.token_endpoint import TokenRefused, exchange_code, refresh, revoke
from mcpsync.auth.web import Web
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError
from tests.peers.http import HttpPeer

SOON = 10
GOOD = {"access_token": "new", "token_type": "Bearer"}


def answers(body, status=200):
    return HttpPeer(lambda exchange: exchange.respond(status, body))


def credentials(peer, method="none", tokens=None, **changes):
    secret = None if method == "none" else "s%:+"
    return Credentials(
        issuer=peer.url,
        resource="https://mcp.example/mcp",
        account="x",
        identity=ClientIdentity("me:1", secret, method, peer.url),
        token_endpoint=peer.url,
        revocation_endpoint=peer.url,
        tokens=tokens or Tokens("old", "Bearer", 1.0, "SECRET-refresh", ("a", "b"), {"kept": 1}),
        **changes,
    )


def refreshed(peer, **options):
    return refresh(credentials(peer, **options), Web(peer.url), Deadline(SOON))


def form(request):
    return {name: values[0] for name, values in parse_qs(request.body.decode(), keep_blank_values=True).items()}


def exchanged(peer, requested=("a",)):
    return exchange_code(
        peer.url,
        ClientIdentity("me", issuer=peer.url),
        code="SECRET-code",
        verifier="SECRET-verifier",
        redirect_uri="http://127.0.0.1:7/callback",
        resource="https://mcp.example/mcp",
        requested=requested,
        web=Web(peer.url),
        deadline=Deadline(SOON),
    )


def test_a_code_is_sent_with_all_that_belongs_to_it():
    with answers(GOOD) as peer:
        exchanged(peer)
        assert form(peer.requests[0]) == {
            "grant_type": "authorization_code",
            "code": "SECRET-code",
            "code_verifier": "SECRET-verifier",
            "redirect_uri": "http://127.0.0.1:7/callback",
            "client_id": "me",
            "resource": "https://mcp.example/mcp",
        }


@pytest.mark.parametrize("named", [True, False])
def test_the_resource_is_named_where_it_is_published(named):
    with answers(GOOD) as peer:
        refreshed(peer, names_resource=named)
        assert form(peer.requests[0]).get("resource") == ("https://mcp.example/mcp" if named else None)


def test_the_three_ways_to_prove_oneself():
    with answers(GOOD) as peer:
        for method in ("none", "client_secret_basic", "client_secret_post"):
            refreshed(peer, method=method)
        nothing, basic, post = peer.requests
    assert "authorization" not in nothing.headers
    assert "client_secret" not in form(nothing)
    assert {form(request)["client_id"] for request in (nothing, basic, post)} == {"me:1"}
    assert base64.b64decode(basic.headers["authorization"].partition(" ")[2]) == b"me%3A1:s%25%3A%2B"
    assert "client_secret" not in form(basic)
    assert "authorization" not in post.headers
    assert form(post)["client_secret"] == "s%:+"


def test_a_refresh_token_is_kept_until_there_is_another():
    with answers(GOOD) as peer:
        made = refreshed(peer)
    assert (made.access_token, made.refresh_token, made.scope) == ("new", "SECRET-refresh", ("a", "b"))
    assert made.extra == {"kept": 1}
    with answers({**GOOD, "refresh_token": "another", "scope": "a"}) as peer:
        made = refreshed(peer)
    assert (made.refresh_token, made.scope) == ("another", ("a",))


def test_without_a_refresh_token_nothing_is_sent():
    with answers(GOOD) as peer:
        with pytest.raises(AuthError, match="no refresh token"):
            refreshed(peer, tokens=Tokens("old"))
        assert not peer.requests


@pytest.mark.parametrize(
    ("expires_in", "seconds"),
    [
        (60, 60),
        ("60", 60),
        (0, 0),
        (-5, 0),
        (1e300, 3.15e8),
        pytest.param(10**400, 3.15e8, id="huge"),
        pytest.param(-(10**400), 0, id="-huge"),
        (None, None),
        (True, None),
        ("soon", None),
        ("nan", None),
    ],
)
def test_expiry(expires_in, seconds):
    with answers({**GOOD, "expires_in": expires_in}) as peer:
        before = time.time()
        made = exchanged(peer)
    if seconds is None:
        assert made.expires_at is None
    else:
        assert before + seconds <= made.expires_at <= before + seconds * 1.1 + SOON


@pytest.mark.parametrize(
    "change",
    [
        {"access_token": None},
        {"access_token": ""},
        {"access_token": 7},
        {"access_token": "SECRET\r\nX: y"},
        {"access_token": "SECRET with spaces"},
        {"access_token": "SECRET\u00e4"},
        {"token_type": None},
        {"token_type": "mac"},
        {"refresh_token": ["SECRET"]},
    ],
)
def test_answers_that_cannot_be_used(change):
    with answers({**GOOD, **change}) as peer, pytest.raises(AuthError, match="the token endpoint gave") as caught:
        exchanged(peer)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("kind", ["bearer", "BEARER"])
def test_kinds_of_tokens(kind):
    with answers({**GOOD, "token_type": kind}) as peer:
        assert exchanged(peer).token_type == kind


def test_an_answer_that_is_no_json():
    with answers(b"access_token=SECRET") as peer, pytest.raises(AuthError, match="no JSON object") as caught:
        exchanged(peer)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (400, {"error": "invalid_grant", "error_description": "SECRET-refresh is used"}, "invalid_grant"),
        (401, {"error": "invalid_client"}, "invalid_client"),
        (500, b"<html>SECRET", "no error code"),
        (400, {"error": "SECRET code"}, "no error code"),
        (400, {"error": 7}, "no error code"),
    ],
)
def test_a_refusal_says_its_code_and_repeats_nothing(status, body, code):
    with answers(body, status) as peer, pytest.raises(TokenRefused) as caught:
        refreshed(peer)
    assert (caught.value.error, caught.value.status) == (code, status)
    assert code in str(caught.value)
    assert "SECRET" not in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.error, str(again)) == (code, str(caught.value))


def test_both_tokens_are_revoked():
    with answers(b"") as peer:
        assert revoke(credentials(peer, "client_secret_basic"), Web(peer.url), Deadline(SOON))
        first, second = map(form, peer.requests)
        assert "authorization" in peer.requests[0].headers
    assert first == {"token": "SECRET-refresh", "token_type_hint": "refresh_token", "client_id": "me:1"}
    assert second == {"token": "old", "token_type_hint": "access_token", "client_id": "me:1"}


def test_a_server_that_cannot_take_back_access_tokens():
    with answers({"error": "unsupported_token_type"}, 400) as peer:
        assert revoke(credentials(peer, tokens=Tokens("old")), Web(peer.url), Deadline(SOON))
        with pytest.raises(TokenRefused):
            revoke(credentials(peer), Web(peer.url), Deadline(SOON))


def test_nothing_to_revoke_and_nowhere_to_do_so():
    with answers(b"") as peer:
        signed_out = Credentials.from_dict({**credentials(peer).to_dict(), "tokens": None})
        nowhere = Credentials.from_dict({**credentials(peer).to_dict(), "revocation_endpoint": None})
        assert not revoke(signed_out, Web(peer.url), Deadline(SOON))
        assert not revoke(nowhere, Web(peer.url), Deadline(SOON))
        assert not peer.requests
