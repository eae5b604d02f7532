"""What servers write into WWW-Authenticate, the odd ones included."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsync.auth.challenge import BearerChallenge, bearer_challenge, parse_challenges

URL = "https://mcp.example/.well-known/oauth-protected-resource"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", []),
        ("Bearer", [("bearer", {})]),
        ('Bearer realm="a, b", error="invalid_token"', [("bearer", {"realm": "a, b", "error": "invalid_token"})]),
        ('bearer scope="a b" error="x"', [("bearer", {"scope": "a b", "error": "x"})]),
        ("Bearer resource_metadata=%s, scope=a" % URL, [("bearer", {"resource_metadata": URL, "scope": "a"})]),
        ('Basic realm="x", Bearer scope="a"', [("basic", {"realm": "x"}), ("bearer", {"scope": "a"})]),
        ('Negotiate, Bearer error="e"', [("negotiate", {}), ("bearer", {"error": "e"})]),
        ('NTLM TlRMTVNTUAAB, Bearer error="e"', [("ntlm", {}), ("bearer", {"error": "e"})]),
        ('Bearer realm="a \\"quoted\\" word"', [("bearer", {"realm": 'a "quoted" word'})]),
        ('Bearer realm="never ends', [("bearer", {"realm": "never ends"})]),
        ('Bearer SCOPE = "a"', [("bearer", {"scope": "a"})]),
        ('Bearer scope="first", scope="second"', [("bearer", {"scope": "first"})]),
        (',, Bearer ,error="e",,', [("bearer", {"error": "e"})]),
        ('Bearer (odd) error="e"', [("bearer", {"error": "e"})]),
        ('realm="of no scheme", Bearer', [("bearer", {})]),
        ('Bearer scope="", error=', [("bearer", {"scope": "", "error": ""})]),
    ],
)
def test_challenges_are_read_as_they_are_written(header, expected):
    assert parse_challenges(header) == expected


def test_the_challenge_that_names_metadata_is_taken():
    header = 'Bearer realm="old", DPoP algs="ES256", resource_metadata="%s", scope="a b a"' % URL
    assert bearer_challenge(header) == BearerChallenge("dpop", URL, ("a", "b"))


def test_an_empty_scope_is_said_and_a_missing_one_is_not():
    assert bearer_challenge('Bearer scope=""').scope == ()
    assert bearer_challenge("Bearer").scope is None


@pytest.mark.parametrize("header", [None, "", 'Basic realm="Bearer"'])
def test_a_server_that_asks_for_no_token(header):
    assert bearer_challenge(header) == BearerChallenge()


@given(st.text(max_size=200))
def test_nothing_that_a_server_writes_is_an_error(header):
    bearer_challenge("Bearer " + header)
