"""A person signs in, with a browser, at npm ``oidc-provider``, which holds clients to everything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

import pytest

import mcpsync
from mcpsync.auth.browser import Browser
from mcpsync.deadline import Deadline
from mcpsync.errors import IssuerMismatch
from tests.interop.chromium import Chromium, opener
from tests.interop.http_peers import HttpPeer
from tests.interop.signing import PROCESS_SECONDS, User, control, token_request
from tests.peers.authority import Authority
from tests.peers.http import Exchange
from tests.peers.http import HttpPeer as ScriptedPeer

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

READS = "ada for read"
WRITES = "ada for read write"
SECRET = "a secret: 100% of it & more + a / and = signs"
Start = Callable[..., HttpPeer]


@pytest.fixture(scope="module")
def start(oidc_command: List[str], everything_command: List[str]) -> Start:
    """Starts one with these settings."""
    packages = str(Path(everything_command[1]).parents[3])

    def started(env: Optional[Dict[str, str]] = None, **settings: Any) -> HttpPeer:
        return HttpPeer([*oidc_command, "--settings", json.dumps(settings)], {"NODE_PATH": packages, **(env or {})})

    return started


@pytest.fixture(scope="module")
def peer(start: Start) -> Iterator[HttpPeer]:
    with start() as peer:
        yield peer


def signs_in(chromium: Chromium) -> None:
    """What a person does who is signed in nowhere."""
    chromium.fill("login", "ada")
    chromium.fill("password", "any")
    chromium.press("Sign-in")
    consents(chromium)


def consents(chromium: Chromium) -> None:
    """What a person does who is signed in there."""
    chromium.press("Continue")
    assert "&iss=http%3A%2F%2F127.0.0.1" in chromium.sees("You can close this page")


def refuses(chromium: Chromium) -> None:
    """What a person does who wants none of it."""
    chromium.press("Cancel")
    chromium.sees("You can close this page")


def oauth(
    chromium: Chromium, steps: Sequence[Callable[[Chromium], None]] = (signs_in,), **options: Any
) -> mcpsync.OAuth:
    """With a person who does one of the steps each time that a page opens."""
    left = iter(steps)
    return mcpsync.OAuth(way=Browser(opener=opener(chromium, lambda: next(left)(chromium))), **options)


def wrongs(peer: HttpPeer) -> Dict[str, int]:
    """The errors of the authorization server."""
    return {event: number for event, number in peer.counts("events").items() if event.startswith("error")}


def events(peer: HttpPeer, *names: str) -> List[int]:
    """How often these have happened."""
    counted = peer.counts("events")
    return [counted.get(name, 0) for name in names]


@pytest.mark.parametrize("method", ["none", "client_secret_post", "client_secret_basic"])
def test_a_client_that_registers_itself(method: str, start: Start, chromium: Chromium, user: User) -> None:
    with start(authMethods=[method]) as peer:
        with mcpsync.connect(peer.url, auth=oauth(chromium)) as client:
            assert client.call_tool("read").text == READS
            control(peer, "expire")
            assert user.another_process(peer.url, "read") == READS
            assert client.call_tool("read").text == READS
            assert user.credentials().identity.auth_method == method
            assert client.logout()
        assert events(peer, "registered", "authorization_code", "refresh_token") == [1, 1, 1]
        assert wrongs(peer) in ({}, {"error: unsupported_token_type": 1})  # it cannot take a JWT back


@pytest.mark.parametrize("method", ["client_secret_post", "client_secret_basic"])
def test_a_client_that_was_registered_by_hand(method: str, start: Start, chromium: Chromium, user: User) -> None:
    by_hand = {
        "client_id": "by hand: 1",
        "client_secret": SECRET,
        "token_endpoint_auth_method": method,
        "application_type": "native",
        "redirect_uris": ["http://127.0.0.1/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
    }
    with start(clients=[by_hand], registration=False, authMethods=[method], path="/tenants/1") as peer:
        with pytest.raises(mcpsync.AuthError, match="registers no clients on its own"):
            mcpsync.connect(peer.url, auth=oauth(chromium))
        known: Dict[str, Any] = {"client_id": "by hand: 1", "client_secret": SECRET}
        with pytest.raises(IssuerMismatch):
            mcpsync.connect(peer.url, auth=oauth(chromium, **known, issuer="https://elsewhere.example"))
        with mcpsync.connect(peer.url, auth=oauth(chromium, **known)) as client:
            assert client.call_tool("read").text == READS
            assert user.credentials().issuer.endswith("/tenants/1")
            control(peer, "expire")
            assert client.call_tool("read").text == READS
            assert client.logout()
        assert events(peer, "authorization_code", "refresh_token") == [1, 1]
        assert set(wrongs(peer)) <= {"error: unsupported_token_type"}


def test_a_client_that_is_a_metadata_document(start: Start, chromium: Chromium, user: User, tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    def document(exchange: Exchange) -> None:
        exchange.respond(
            body={
                "client_id": published.url,
                "client_name": "mcpsync",
                "redirect_uris": ["http://127.0.0.1/callback"],
                "grant_types": ["authorization_code", "refresh_token"],
                "response_types": ["code"],
                "token_endpoint_auth_method": "none",
                "application_type": "native",
            }
        )

    trusting = {"NODE_EXTRA_CA_CERTS": authority.ca}
    with ScriptedPeer(document, tls=authority.server()) as published, start(trusting, documents=True) as peer:
        auth = oauth(chromium, client_metadata_url=published.url)
        with mcpsync.connect(peer.url, auth=auth) as client:
            assert client.call_tool("read").text == READS
            control(peer, "expire")
            assert client.call_tool("read").text == READS
        assert user.credentials().identity.client_id == published.url
        assert events(peer, "registered", "authorization_code", "refresh_token") == [0, 1, 1]
        assert wrongs(peer) == {}


@pytest.mark.parametrize("names_scopes", [True, False])
def test_more_scopes(names_scopes: bool, start: Start, chromium: Chromium, user: User) -> None:
    with start(namesScopes=names_scopes) as peer:
        with mcpsync.connect(peer.url, auth=oauth(chromium, (signs_in, consents))) as client:
            assert client.call_tool("read").text == READS
            with pytest.raises(mcpsync.InsufficientScope, match="write"):
                client.call_tool("write")
            assert client.call_tool("read").text == READS
            client.login()
            assert client.call_tool("write").text == WRITES
            control(peer, "expire")
            assert client.call_tool("write").text == WRITES
        assert user.another_process(peer.url, "write") == WRITES
        assert events(peer, "authorization_code", "refused with 403") == [2, 1]
        assert wrongs(peer) == {}


def test_refresh_tokens_are_used_once(start: Start, chromium: Chromium, user: User) -> None:
    with start(accessSeconds=5) as peer, mcpsync.connect(peer.url, auth=oauth(chromium)) as client:
        first = user.credentials()
        with user.processes(3, peer.url, "read") as answers:
            deadline = Deadline(PROCESS_SECONDS)
            while events(peer, "refresh_token") < [2] and not deadline.expired:
                assert client.call_tool("read").text == READS
        assert answers == {READS}
        assert events(peer, "refresh_token") >= [2]
        assert wrongs(peer) == {}

        # somebody who had stolen the first one
        assert first.tokens is not None
        stolen = {"grant_type": "refresh_token", "refresh_token": first.tokens.refresh_token or ""}
        assert token_request(first, stolen).json()["error"] == "invalid_grant"
        control(peer, "expire")
        with pytest.raises(mcpsync.NeedsLogin, match="invalid_grant"):
            client.call_tool("read")
        assert client.state == "needs_login"


def test_a_sign_in_that_was_revoked(peer: HttpPeer, chromium: Chromium, user: User) -> None:
    before = events(peer, "registered", "authorization_code")
    with mcpsync.connect(peer.url, auth=oauth(chromium, (signs_in, consents))) as client:
        control(peer, "revoke")
        with pytest.raises(mcpsync.NeedsLogin, match="invalid_grant"):
            client.call_tool("read")
        client.login()
        assert client.call_tool("read").text == READS
    assert events(peer, "registered", "authorization_code") == [before[0] + 1, before[1] + 2]


def test_signing_out(peer: HttpPeer, chromium: Chromium, user: User) -> None:
    with mcpsync.connect(peer.url, auth=oauth(chromium)) as client:
        had = user.credentials()
        assert had.tokens is not None
        assert client.logout()
        assert user.signed_in() == []
        again = {"grant_type": "refresh_token", "refresh_token": had.tokens.refresh_token or ""}
        assert token_request(had, again).json()["error"] == "invalid_grant"
        with pytest.raises(mcpsync.NeedsLogin):
            client.call_tool("read")


def test_a_person_who_says_no(peer: HttpPeer, chromium: Chromium, user: User) -> None:
    with pytest.raises(mcpsync.AuthError, match="access_denied"):
        mcpsync.connect(peer.url, auth=oauth(chromium, (refuses,)))
    assert user.signed_in() == []
