"""Keys: what they sign is what others verify, and nothing shows them."""

from __future__ import annotations

import json
import pickle
import time

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

import mcpsync
from mcpsync.auth.assertion import ClientKey
from mcpsync.auth.credentials import ClientIdentity, Credentials, Tokens
from mcpsync.auth.keys import PrivateKey
from mcpsync.auth.nonces import Nonces
from mcpsync.auth.proof import Prover
from mcpsync.auth.sources import FromEnvironment, FromFile, text_of
from mcpsync.errors import AuthError, ConfigError
from tests.peers.machines import decoded, new_pem, public_of, verified

PEM = new_pem()
ALGORITHMS = ("ES256", "RS256", "EdDSA")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_is_signed_can_be_verified(algorithm):
    pem = new_pem(algorithm)
    key = PrivateKey.from_pem(pem, algorithm=algorithm)
    for number in range(20):  # a number of a signature is short now and then
        header, claims = verified(key.token({"typ": "JWT"}, {"n": number}), public_of(pem), algorithm)
        assert (header, claims) == ({"typ": "JWT", "alg": algorithm}, {"n": number})
    assert PrivateKey.from_pem(key.to_pem()).thumbprint() == key.thumbprint()


def test_a_thumbprint_is_that_of_the_specification():
    """RFC 7638, 3.1, over the key of RFC 9449, 4.1 would need its private half; so its rule is applied anew here."""
    import base64
    import hashlib

    key = PrivateKey.from_pem(PEM)
    jwk = key.public_jwk()
    text = '{"crv":"P-256","kty":"EC","x":"%s","y":"%s"}' % (jwk["x"], jwk["y"])
    expected = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    assert key.thumbprint() == expected
    assert set(jwk) == {"crv", "kty", "x", "y"}


@pytest.mark.parametrize("form", [serialization.PrivateFormat.PKCS8, serialization.PrivateFormat.TraditionalOpenSSL])
def test_forms_of_pem(form):
    assert PrivateKey.from_pem("\n" + new_pem(form=form)).algorithm == "ES256"


def pem_of(key, protection=None):
    protection = protection or serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection).decode()


@pytest.mark.parametrize(
    ("pem", "said"),
    [
        ("SECRET", "no private key in PEM"),
        (PEM.replace("M", "N", 1), "no private key in PEM"),
        (PEM[:80], "no private key in PEM"),
        (pem_of(ec.generate_private_key(ec.SECP384R1())), "of a kind that is not used"),
        (pem_of(rsa.generate_private_key(65537, 1024)), "needs 2048 bits"),
        (
            pem_of(ec.generate_private_key(ec.SECP256R1()), serialization.BestAvailableEncryption(b"x")),
            "is encrypted",
        ),
    ],
    ids=["no PEM", "damaged", "cut off", "other curve", "too short", "encrypted"],  # keys differ from run to run
)
def test_what_is_no_key_is_an_error_that_does_not_show_it(pem, said):
    with pytest.raises(AuthError, match=said) as caught:
        PrivateKey.from_pem(pem)
    for line in pem.splitlines():
        assert line not in str(caught.value) or line.startswith("-----")


def test_a_key_for_something_else():
    with pytest.raises(AuthError, match="is for ES256, and not for RS256"):
        PrivateKey.from_pem(PEM, algorithm="RS256")


def test_a_client_says_who_it_is_and_to_whom():
    given = ClientKey(PEM, "ES256", "key-1").parameters("agent", "https://as.example")
    header, claims = verified(given["client_assertion"], public_of(PEM), "ES256")
    assert header == {"typ": "JWT", "kid": "key-1", "alg": "ES256"}
    assert (claims["iss"], claims["sub"], claims["aud"]) == ("agent", "agent", "https://as.example")
    assert claims["iat"] <= time.time() < claims["exp"] <= claims["iat"] + 300
    again = ClientKey(PEM).parameters("agent", "https://as.example")
    assert decoded(again["client_assertion"])[1]["jti"] != claims["jti"]


def test_where_texts_come_from(tmp_path, monkeypatch):
    file = tmp_path / "key"
    file.write_text(" text\n")
    monkeypatch.setenv("A_KEY", "of the environment")
    assert text_of(FromFile(str(file)), "x") == "text"
    assert text_of({"file": str(file)}, "x") == "text"
    assert text_of(FromEnvironment("A_KEY"), "x") == "of the environment"
    assert text_of(lambda: "of a function", "x") == "of a function"
    assert pickle.loads(pickle.dumps(FromFile("~/x"))) == FromFile("~/x")


def raises():
    raise ValueError("SECRET")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (FromFile("/no/such/file"), "private_key: /no/such/file cannot be read: No such file"),
        (FromEnvironment("NO_SUCH_VARIABLE"), "private_key: the environment variable NO_SUCH_VARIABLE is not set"),
        (raises, "private_key: the function that gives it failed: ValueError"),
        (lambda: b"bytes", "private_key is no text"),
        (lambda: " ", "private_key is no text, or an empty one"),
    ],
)
def test_where_no_text_comes_from(source, said):
    with pytest.raises(AuthError, match=said) as caught:
        text_of(source, "private_key")
    assert "SECRET" not in str(caught.value)


BOUND = Credentials(
    "https://as.example",
    "https://mcp.example/mcp",
    "me",
    ClientIdentity("agent", issuer="https://as.example", key=ClientKey(PEM)),
    "https://as.example/token",
    tokens=Tokens("access", "DPoP"),
    proof_key=PEM,
)


@pytest.mark.parametrize(
    "holder",
    [
        PrivateKey.from_pem(PEM),
        ClientKey(PEM),
        Prover.from_pem(PEM, Nonces()),
        BOUND,
        BOUND.identity,
        mcpsync.OAuth(client_id="agent", private_key=PEM),
        mcpsync.OAuth(client_id="agent", private_key=PEM).identity_options,
    ],
    ids=lambda holder: type(holder).__name__,
)
def test_no_repr_and_no_pickle_holds_a_key(holder):
    secret = PEM.splitlines()[1]
    assert secret not in repr(holder)
    assert secret not in str(holder)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(holder)


def test_what_keeps_credentials_keeps_the_key_of_the_tokens_and_not_that_of_the_client():
    data = json.loads(json.dumps(BOUND.to_dict()))
    assert Credentials.from_dict(data) == BOUND
    assert Credentials.from_dict(data).identity.key is None
    data["proof_key"] = None
    assert PEM.splitlines()[1] not in json.dumps(data)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"grant": "password"}, "grant is one of"),
        ({"grant": "client_credentials"}, "needs a client_id"),
        ({"grant": "client_credentials", "client_id": "x"}, "needs a client_secret or a private_key"),
        ({"grant": "jwt_bearer", "client_id": "x"}, "needs an assertion"),
        ({"grant": "enterprise", "client_id": "x", "id_token": "x"}, "needs id_token, idp_client_id"),
        ({"assertion": "x"}, "assertion is for grant='jwt_bearer'"),
        ({"idp_client_secret": "x"}, "idp_client_secret is for grant='enterprise'"),
        ({"dpop": "yes"}, "dpop is True, False or None"),
        ({"signing_algorithm": "none"}, "signing_algorithm is ES256, RS256 or EdDSA"),
    ],
)
def test_options_that_do_not_go_together(options, said):
    with pytest.raises(ConfigError, match=said):
        mcpsync.OAuth(**options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"private_key": PEM}, "needs the client_id"),
        ({"client_id": "x", "client_secret": "s", "private_key": PEM}, "give one"),
        ({"client_id": "x", "auth_method": "private_key_jwt"}, "needs a private_key"),
    ],
)
def test_keys_that_do_not_go_with_the_rest(options, said):
    with pytest.raises(ConfigError, match=said):
        mcpsync.connect("http://127.0.0.1:1/mcp", auth=mcpsync.OAuth(**options))
