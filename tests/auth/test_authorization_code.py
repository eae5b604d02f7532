"""What a person is sent to, what to ask for, and which answers count."""

from __future__ import annotations

import base64
import hashlib
from urllib.parse import parse_qs, urlsplit

import pytest

from mcpsync.auth.authorization_code import answer_of, choose_scopes, code_of, prepare
from mcpsync.auth.credentials import ClientIdentity
from mcpsync.auth.discovery import Discovery
from mcpsync.auth.metadata import ResourceMetadata, ServerMetadata
from mcpsync.errors import AuthError, IssuerMismatch

ISSUER = "https://as.example"
URI = "http://127.0.0.1:7777/callback"
ME = ClientIdentity("me", issuer=ISSUER)


def discovery(challenged=None, supported=None, offered=None, sends_issuer=False, endpoint="/authorize"):
    server = ServerMetadata(
        ISSUER, ISSUER + endpoint, ISSUER + "/token", scopes_supported=offered, sends_issuer=sends_issuer
    )
    return Discovery("https://mcp.example/mcp", server, ResourceMetadata("r", (ISSUER,), supported), challenged)


def test_what_a_person_is_sent_to():
    request = prepare(discovery(endpoint="/authorize?tenant=1"), ME, ["a", "b"], URI)
    asked = {name: values[0] for name, values in parse_qs(urlsplit(request.url).query).items()}
    challenge = base64.urlsafe_b64encode(hashlib.sha256(request.verifier.encode()).digest()).rstrip(b"=").decode()
    assert request.url.startswith(ISSUER + "/authorize?tenant=1&")
    assert asked == {
        "tenant": "1",
        "response_type": "code",
        "client_id": "me",
        "redirect_uri": URI,
        "state": request.state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "scope": "a b",
        "resource": "https://mcp.example/mcp",
    }
    assert 43 <= len(request.verifier) <= 128
    assert request.verifier not in repr(request)
    assert request.state not in repr(request)


def test_no_two_requests_are_alike():
    first, second = (prepare(discovery(), ME, [], URI) for _ in range(2))
    assert first.state != second.state
    assert first.verifier != second.verifier
    assert "scope" not in parse_qs(urlsplit(first.url).query)


def test_offline_access_needs_consent():
    asked = parse_qs(urlsplit(prepare(discovery(), ME, ["offline_access"], URI).url).query)
    assert asked["prompt"] == ["consent"]


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ({}, ()),
        ({"supported": ("a", "b")}, ("a", "b")),
        ({"supported": ("a", "b"), "challenged": ("c",)}, ("c",)),
        ({"supported": ("a",), "challenged": ()}, ()),
        ({"supported": ("a",), "offered": ("a", "offline_access")}, ("a", "offline_access")),
        ({"supported": ("a",), "offered": ("a", "b")}, ("a",)),
        ({"offered": ("a", "offline_access")}, ()),
    ],
)
def test_scopes_are_those_of_the_challenge_or_of_the_metadata(given, chosen):
    assert choose_scopes(discovery(**given)) == chosen


def test_scopes_of_the_user_come_first():
    found = discovery(challenged=("c",), supported=("a",), offered=("offline_access",))
    assert choose_scopes(found, configured=["x"]) == ("x",)
    assert choose_scopes(found, configured=[]) == ()


def test_a_step_up_asks_for_what_was_and_what_is_missing():
    found = discovery(challenged=("c",), supported=("a",))
    assert choose_scopes(found, challenged=["write", "read"], before=["read"]) == ("read", "write")
    assert choose_scopes(found, configured=["x"], challenged=["write"], before=["x"]) == ("x", "write")


@pytest.mark.parametrize("url", ["?a=1&b=%20&c=", "x://y/z?a=1&b=%20&c=#f", "a=1&b=+&c="])
def test_answers_are_read_from_what_a_browser_ends_at(url):
    assert answer_of(url) == {"a": "1", "b": " ", "c": ""}


def test_an_answer_that_is_no_url_is_refused():
    with pytest.raises(AuthError, match="no URL"):
        answer_of("http://[x?code=mine&state=s")


def test_an_answer_with_a_parameter_twice_is_refused():
    with pytest.raises(AuthError, match="twice"):
        answer_of("?code=mine&state=s&code=theirs")


@pytest.mark.parametrize("sends_issuer", [True, False])
def test_the_right_answer(sends_issuer):
    request = prepare(discovery(sends_issuer=sends_issuer), ME, [], URI)
    assert code_of(request, {"code": "c", "state": request.state, "iss": ISSUER}) == "c"


def test_an_issuer_that_is_not_announced_need_not_come():
    request = prepare(discovery(), ME, [], URI)
    assert code_of(request, {"code": "c", "state": request.state}) == "c"


@pytest.mark.parametrize("sends_issuer", [True, False])
@pytest.mark.parametrize("issuer", ["https://other.example", ISSUER + "/", ISSUER.upper(), ISSUER + ":443", ""])
@pytest.mark.parametrize("said", [{"code": "SECRET"}, {"error": "access_denied", "error_description": "call 555"}])
def test_the_wrong_issuer_is_refused_and_not_listened_to(sends_issuer, issuer, said):
    request = prepare(discovery(sends_issuer=sends_issuer), ME, [], URI)
    with pytest.raises(IssuerMismatch) as caught:
        code_of(request, {**said, "state": request.state, "iss": issuer})
    assert not any(word in str(caught.value) for word in ("SECRET", "access_denied", "555"))


def test_an_issuer_that_is_announced_and_does_not_come():
    request = prepare(discovery(sends_issuer=True), ME, [], URI)
    with pytest.raises(IssuerMismatch, match="always does"):
        code_of(request, {"code": "c", "state": request.state})


@pytest.mark.parametrize("state", [None, "", "x", "\u00e4"])
def test_the_wrong_state(state):
    request = prepare(discovery(), ME, [], URI)
    answer = {"code": "SECRET"} if state is None else {"code": "SECRET", "state": state}
    with pytest.raises(AuthError, match="does not belong to this sign-in") as caught:
        code_of(request, answer)
    assert "SECRET" not in str(caught.value)
    assert request.state not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"error": "access_denied"}, "the person said no"),
        ({"error": "server_error", "error_description": "<script>"}, "server_error$"),
        ({"error": "\x1b]0;x\x07"}, "an unreadable error"),
        ({}, "holds no code"),
        ({"code": ""}, "holds no code"),
        ({"error": "access_denied", "code": "SECRET"}, "the person said no"),
    ],
)
def test_an_answer_that_says_no(answer, says):
    request = prepare(discovery(), ME, [], URI)
    with pytest.raises(AuthError, match=says) as caught:
        code_of(request, {**answer, "state": request.state})
    assert "SECRET" not in str(caught.value)
    assert "script" not in str(caught.value)
