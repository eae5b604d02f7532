"""Programs and keys at npm ``oidc-provider``, which verifies what they sign, and refuses what the test forges."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest
import requests

import mcpsync
from mcpsync.auth.keys import PrivateKey
from mcpsync.auth.store import MemoryStore
from tests.interop.http_peers import HttpPeer
from tests.interop.peers import SERVERS
from tests.peers.machines import b64, new_pem

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

SECRET = "a secret: 100% of it & more + a / and = signs"
ALGORITHMS = ("ES256", "RS256", "EdDSA")
PEMS = {algorithm: new_pem(algorithm) for algorithm in ALGORITHMS}
Start = Callable[..., HttpPeer]


def clients() -> List[Dict[str, Any]]:
    """Those that the provider knows."""
    machine = {"grant_types": ["client_credentials"], "redirect_uris": [], "response_types": [], "scope": "read"}
    known = [
        {**machine, "client_id": method, "client_secret": SECRET, "token_endpoint_auth_method": method}
        for method in ("client_secret_basic", "client_secret_post")
    ]
    for algorithm, pem in PEMS.items():
        jwk = {**PrivateKey.from_pem(pem).public_jwk(), "alg": algorithm, "kid": algorithm, "use": "sig"}
        by_key = {"token_endpoint_auth_method": "private_key_jwt", "token_endpoint_auth_signing_alg": algorithm}
        known.append({**machine, **by_key, "client_id": algorithm, "jwks": {"keys": [jwk]}})
    return known


@pytest.fixture(scope="module")
def start(oidc_command: List[str], everything_command: List[str]) -> Start:
    """Starts one with these settings."""
    packages = str(Path(everything_command[1]).parents[3])
    command = [oidc_command[0], str(SERVERS / "oidc_machine_server.cjs"), "--settings"]

    def started(**settings: Any) -> HttpPeer:
        return HttpPeer([*command, json.dumps({"clients": clients(), **settings})], {"NODE_PATH": packages})

    return started


@pytest.fixture(scope="module")
def peer(start: Start) -> Iterator[HttpPeer]:
    with start() as peer:
        yield peer


@pytest.fixture(scope="module")
def strict(start: Start) -> Iterator[HttpPeer]:
    """Bound tokens alone, and nonces in every proof."""
    with start(bound=True, nonces=True) as peer:
        yield peer


@pytest.fixture(scope="module")
def bound(start: Start) -> Iterator[HttpPeer]:
    """Bound tokens alone."""
    with start(bound=True) as peer:
        yield peer


def connected(peer: HttpPeer, client_id: str = "client_secret_basic", **options: Any) -> mcpsync.Client:
    how = {"private_key": PEMS[client_id]} if client_id in PEMS else {"client_secret": SECRET}
    options = {"grant": "client_credentials", "client_id": client_id, "store": MemoryStore(), **how, **options}
    return mcpsync.connect(peer.url, auth=mcpsync.OAuth(**options))


def events(peer: HttpPeer) -> Dict[str, int]:
    with session() as web:
        return dict(web.get(peer.url.rpartition("/")[0] + "/counts", timeout=30).json()["events"])


def session() -> requests.Session:
    web = requests.Session()
    web.trust_env = False
    return web


@pytest.mark.parametrize("client_id", ["client_secret_basic", "client_secret_post"])
def test_a_secret(peer: HttpPeer, client_id: str) -> None:
    with connected(peer, client_id, auth_method=client_id) as client:
        assert client.call_tool("read").text == "%s for read" % client_id


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_key(peer: HttpPeer, algorithm: str) -> None:
    with connected(peer, algorithm) as client:
        assert client.call_tool("read").text == "%s for read" % algorithm


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_another_key(peer: HttpPeer, algorithm: str) -> None:
    with pytest.raises(mcpsync.McpError, match="invalid_client"):
        connected(peer, algorithm, private_key=new_pem(algorithm))


@pytest.mark.parametrize("client_id", ["client_secret_basic", "ES256"])
def test_bound_tokens_with_nonces(strict: HttpPeer, client_id: str) -> None:
    before = events(strict)
    with connected(strict, client_id) as client:
        for _ in range(3):
            assert client.call_tool("read").text == "%s for read" % client_id
        assert client.credentials is not None
        assert client.credentials.proof_key is not None
    after = events(strict)
    added = {name: number - before.get(name, 0) for name, number in after.items() if number != before.get(name, 0)}
    assert added["error: use_dpop_nonce"] == 1
    assert added["refused: use_dpop_nonce"] == 1
    assert "refused: invalid_dpop_proof" not in added


def test_a_bound_token_where_bearer_tokens_would_do(peer: HttpPeer) -> None:
    with connected(peer, dpop=True) as client:
        assert client.call_tool("read").text == "client_secret_basic for read"
        assert client.credentials is not None and client.credentials.proof_key is not None


# -- what the test forges --------------------------------------------------------------------------------------------


def forged(key: PrivateKey, method: str, url: str, **changes: Any) -> str:
    """A proof that is right but for the changes."""
    claims = {"jti": secrets.token_hex(16), "htm": method, "htu": url, "iat": int(time.time()), **changes}
    return key.token({"typ": "dpop+jwt", "jwk": key.public_jwk()}, claims)


def token_answer(peer: HttpPeer, issuer: str, proof: str) -> Tuple[int, Any]:
    form = {"grant_type": "client_credentials", "scope": "read", "resource": peer.url}
    form.update(client_id="client_secret_post", client_secret=SECRET)
    with session() as web:
        answer = web.post(issuer + "/token", data=form, headers={"DPoP": proof}, timeout=30)
    return answer.status_code, answer.json().get("error")


@pytest.fixture
def issuer(bound: HttpPeer) -> str:
    with connected(bound) as client:
        assert client.credentials is not None
        return client.credentials.issuer


def test_the_token_endpoint_refuses_forged_proofs(bound: HttpPeer, issuer: str) -> None:
    key = PrivateKey.generate()
    where = ("POST", issuer + "/token")
    good = forged(key, *where)
    assert token_answer(bound, issuer, good) == (200, None)
    stranger = forged(PrivateKey.generate(), *where)
    refused = {
        "replayed": good,
        "stale": forged(key, *where, iat=int(time.time()) - 3600),
        "of another method": forged(key, "GET", where[1]),
        "for another place": forged(key, "POST", bound.url),
        "signed by another": forged(key, *where).rpartition(".")[0] + "." + stranger.rpartition(".")[2],
    }
    for what, proof in refused.items():
        status, error = token_answer(bound, issuer, proof)
        assert (status, error) in ((400, "invalid_dpop_proof"), (400, "invalid_grant")), what


def test_the_mcp_server_refuses_forged_proofs(bound: HttpPeer) -> None:
    with connected(bound) as client:
        credentials = client.credentials
    assert credentials is not None and credentials.tokens is not None and credentials.proof_key is not None
    token, key = credentials.tokens.access_token, PrivateKey.from_pem(credentials.proof_key)
    ath = b64(hashlib.sha256(token.encode()).digest())
    where = ("POST", bound.url)

    def status(proof: str, scheme: str = "DPoP") -> int:
        headers = {
            "Authorization": "%s %s" % (scheme, token),
            "DPoP": proof,
            "Accept": "application/json, text/event-stream",
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        with session() as web:
            return web.post(bound.url, json=body, headers=headers, timeout=30).status_code

    good = forged(key, *where, ath=ath)
    assert status(good) != 401
    assert status(good) == 401  # replayed
    assert status(forged(key, *where, ath=ath, iat=int(time.time()) - 3600)) == 401
    assert status(forged(PrivateKey.generate(), *where, ath=ath)) == 401
    assert status(forged(key, *where, ath=b64(hashlib.sha256(b"another").digest()))) == 401
    assert status(forged(key, *where)) == 401
    assert status(forged(key, *where, ath=ath), "Bearer") == 401
