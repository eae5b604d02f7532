"""What a sign-in leaves behind: values that pickle, go to plain data and back, and show no secret."""

from __future__ import annotations

import json
import pickle
import time

import pytest

from mcpsync.auth.credentials import ClientIdentity, Credentials, StoreKey, Tokens
from mcpsync.errors import AuthError

TOKENS = Tokens("SECRET-access", "Bearer", 1e10, "SECRET-refresh", ("a", "b"), {"id_token": "SECRET-id"})
IDENTITY = ClientIdentity(
    "me", "SECRET-client", "client_secret_basic", "https://as.example", "registered", ("u",), 5.0, ("a",)
)
CREDENTIALS = Credentials(
    "https://as.example", "https://mcp.example/mcp", "work", IDENTITY, "https://as.example/t", tokens=TOKENS
)


@pytest.mark.parametrize("value", [TOKENS, IDENTITY, CREDENTIALS], ids=["tokens", "identity", "credentials"])
def test_values_survive_the_trip_and_show_no_secret(value):
    assert type(value).from_dict(json.loads(json.dumps(value.to_dict()))) == value
    assert pickle.loads(pickle.dumps(value)) == value
    assert "SECRET" not in repr(value)
    assert "SECRET" not in str(value)


def test_unknown_keys_are_kept():
    data = CREDENTIALS.to_dict()
    data["dpop_key"] = "later"
    data["tokens"]["binding"] = {"jkt": "x"}
    data["identity"]["assertion"] = 3
    assert Credentials.from_dict(data).to_dict() == data


def test_credentials_know_their_key():
    assert CREDENTIALS.key == StoreKey("https://as.example", "https://mcp.example/mcp", "work")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"issuer": None}, "issuer is missing"),
        ({"tokens": "SECRET"}, "tokens is a str, not an object"),
        ({"tokens": {"access_token": 7}}, "access_token is a int"),
        ({"tokens": {"access_token": "SECRET", "expires_at": "SECRET"}}, "expires_at is a str, not a number"),
        ({"tokens": {"access_token": "SECRET", "scope": "SECRET"}}, "scope is a str, not a list of texts"),
        ({"identity": []}, "identity is a list"),
        ({"names_resource": "no"}, "names_resource is a str, not true or false"),
    ],
)
def test_what_is_not_ours_is_refused_by_key_and_without_its_value(change, named):
    with pytest.raises(AuthError) as caught:
        Credentials.from_dict({**CREDENTIALS.to_dict(), **change})
    assert named in str(caught.value)
    assert "SECRET" not in str(caught.value)


def test_credentials_that_are_no_object_are_refused():
    with pytest.raises(AuthError, match="a list, not an object"):
        Credentials.from_dict([])  # type: ignore[arg-type]


def test_expiry_with_skew():
    now = time.time()
    assert Tokens("x", expires_at=now + 20).expires_within(30)
    assert not Tokens("x", expires_at=now + 60).expires_within(30)
    assert not Tokens("x").expires_within(1e9)
