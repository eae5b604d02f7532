"""Tokens that are worth nothing without a key, with servers that verify every proof."""

from __future__ import annotations

import timeit
from typing import Any

import pytest

import mcpsync
from mcpsync.auth.nonces import Nonces
from mcpsync.auth.proof import Prover
from mcpsync.auth.session import Session
from mcpsync.auth.store import FileStore, MemoryStore
from mcpsync.auth.vault import Vault
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError, McpError
from tests.auth.test_keys import BOUND
from tests.auth.test_machines import SECRET, assertion
from tests.peers.authorization import ProtectedServer, browse
from tests.peers.http_servers import Modern
from tests.peers.machines import BoundServer, MachineServer, decoded, new_key

MOST_MICROSECONDS = 150.0


def connected(resource: Any, **options: Any) -> mcpsync.Client:
    options = {"way": browse, "store": MemoryStore(), **options}
    return mcpsync.connect(resource.url, auth=mcpsync.OAuth(**options), protocol="2026-07-28")


@pytest.fixture
def server():
    methods = ("none", "client_secret_basic")
    with MachineServer(bound=True, clients={"agent": SECRET}, auth_methods=methods) as server:
        yield server


@pytest.fixture
def resource(server):
    with BoundServer(server, behaviour=Modern()) as resource:
        yield resource


def test_every_request_has_a_proof_of_its_own(server, resource):
    with connected(resource) as client:
        for _ in range(3):
            assert client.call_tool("work").text == "done"
        credentials = client.credentials
    assert resource.refusals == []
    assert len(resource.proofs.accepted) >= 4
    assert len({each["jti"] for each in resource.proofs.accepted}) == len(resource.proofs.accepted)
    assert server.authorizations[0]["dpop_jkt"] == server.access[credentials.tokens.access_token]["jkt"]
    assert credentials.tokens.token_type == "DPoP"
    assert "PRIVATE" not in repr(credentials)


def test_the_key_is_kept_with_the_tokens(server, resource, tmp_path):
    for _ in range(2):
        with connected(resource, store=FileStore(str(tmp_path))) as client:
            assert client.call_tool("work").text == "done"
    assert len(server.token_requests) == 1
    store = FileStore(str(tmp_path))
    assert sorted((bool(key.issuer), store.load(key).proof_key is None) for key in store.keys()) == [  # noqa: SIM118
        (False, True),
        (True, False),
    ]


def test_the_same_key_proves_a_refresh(server, resource):
    with connected(resource) as client:
        key = client.credentials.proof_key
        server.expire_access()
        assert client.call_tool("work").text == "done"
        assert client.credentials.proof_key == key
        assert client.logout()
    assert [each["grant_type"] for each in server.token_requests] == ["authorization_code", "refresh_token"]


def test_nonces_of_both_servers_are_remembered(server, resource):
    server.proofs.nonce, resource.proofs.nonce = "of-the-authorization-server", "of-the-resource"
    with connected(resource) as client:
        for _ in range(3):
            assert client.call_tool("work").text == "done"
        assert resource.refusals == ["use_dpop_nonce"]
        assert server.refused == ["use_dpop_nonce"]
        server.expire_access()
        assert client.call_tool("work").text == "done"
        assert server.refused == ["use_dpop_nonce"]
        resource.proofs.nonce = "another"
        for _ in range(3):
            assert client.call_tool("work").text == "done"
        assert resource.refusals == ["use_dpop_nonce"] * 2
    assert len(server.codes) == 0


def test_a_nonce_that_comes_with_an_answer_is_used(server):
    modern = Modern()

    def behaviour(exchange: Any) -> None:
        respond = exchange.respond
        exchange.respond = lambda *args, **named: respond(*args, **{**named, "DPoP_Nonce": "fresh"})
        modern(exchange)

    with BoundServer(server, behaviour=behaviour) as resource, connected(resource) as client:
        client.call_tool("work")
        resource.proofs.nonce = "fresh"
        client.call_tool("work")
        assert resource.refusals == []


def test_a_server_that_is_never_content_with_a_nonce(server, resource):
    with connected(resource) as client:
        numbers = iter(range(1000))
        resource.proofs.nonce = "first"
        thumbprint = resource.proofs.thumbprint

        def never(*args: Any) -> str:
            resource.proofs.nonce = "nonce-%d" % next(numbers)
            return thumbprint(*args)

        resource.proofs.thumbprint = never
        with pytest.raises(AuthError, match="use_dpop_nonce"):
            client.call_tool("work")
        assert resource.refusals == ["use_dpop_nonce"] * 2


@pytest.mark.parametrize("nonce", ["", "with space", 'with"quote', "x" * 600])
def test_nonces_that_cannot_be_used(server, nonce):
    wants = {"WWW_Authenticate": 'DPoP error="use_dpop_nonce"', "DPoP_Nonce": nonce}
    modern = Modern(lambda exchange, message: exchange.respond(401, {}, **wants))
    with BoundServer(server, behaviour=modern) as resource, connected(resource) as client:
        with pytest.raises(AuthError, match="gives none that can be used"):
            client.call_tool("work")
        assert client.list_tools()


@pytest.mark.parametrize("grant", ["client_credentials", "jwt_bearer"])
def test_machines_prove_it_too(grant):
    platform = new_key()
    with (
        MachineServer(
            bound=True, clients={"agent": SECRET}, auth_methods=["client_secret_basic"], trusts=platform.public_key()
        ) as server,
        BoundServer(server, behaviour=Modern(), nonce="n") as resource,
    ):
        server.proofs.nonce = "m"
        more = {"assertion": assertion(platform, server.issuer)} if grant == "jwt_bearer" else {}
        with connected(resource, grant=grant, client_id="agent", client_secret=SECRET, dpop=True, **more) as client:
            assert client.call_tool("work").text == "done"
            server.expire_access()
            assert client.call_tool("work").text == "done"
        assert server.refused == ["use_dpop_nonce"]
        assert resource.refusals == ["use_dpop_nonce"]


def test_bound_tokens_where_the_server_did_not_ask(server):
    with ProtectedServer(server) as unaware, pytest.raises(McpError):
        connected(unaware, dpop=True)  # it takes bearer tokens only, but got what it was promised
    assert server.proofs.accepted


def test_servers_that_cannot(resource, server):
    server._metadata["dpop_signing_alg_values_supported"] = ["PS512"]
    with pytest.raises(AuthError, match="signed with PS512, and not with ES256"):
        connected(resource)
    assert server.token_requests == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"token_type": "Bearer"}, "not bound to this client's key"),
        ({"access_token": "e30.eyJjbmYiOnsiamt0Ijoib3RoZXIifX0.x"}, "bound to another key"),
    ],
)
def test_tokens_that_are_not_bound_are_not_used(server, resource, answer, said):
    server._tokens.update(answer)
    with pytest.raises(AuthError, match=said):
        connected(resource)
    assert all("authorization" not in each.headers for each in resource.requests)


def test_a_token_for_a_key_that_was_not_shown():
    with (
        MachineServer(tokens={"token_type": "DPoP"}) as server,
        ProtectedServer(server) as resource,
        pytest.raises(AuthError, match="was shown none"),
    ):
        connected(resource)


def test_a_choice_that_changed_asks_anew(server, resource, tmp_path):
    with connected(resource, store=FileStore(str(tmp_path))):
        pass
    with pytest.raises(McpError):
        connected(resource, store=FileStore(str(tmp_path)), dpop=False)
    assert len(server.authorizations) == 2


def test_a_proof_says_what_the_specification_wants():
    prover = Prover.generate(Nonces())
    header, claims = decoded(prover.proof("POST", "https://mcp.example:443/mcp?a=b#c"))
    assert set(header) == {"typ", "alg", "jwk"}
    assert (claims["htm"], claims["htu"]) == ("POST", "https://mcp.example/mcp")
    assert set(claims) == {"jti", "htm", "htu", "iat"}
    assert "nonce" not in claims


def test_nonces_are_of_their_origin():
    nonces = Nonces()
    assert nonces.observed("https://a.example/x", {"dpop-nonce": "a"})
    prover = Prover.generate(nonces)
    assert decoded(prover.proof("POST", "https://a.example/y"))[1]["nonce"] == "a"
    assert "nonce" not in decoded(prover.proof("POST", "https://b.example/y"))[1]
    for number in range(1000):
        nonces.observed("https://%d.example/" % number, {"dpop-nonce": "x"})
    assert nonces.of("https://999.example") is None


@pytest.mark.alone
@pytest.mark.timed
def test_what_a_proof_costs():
    session = Session(Vault(MemoryStore(), BOUND.resource, "me"), lambda *_: BOUND.tokens, "x")
    session.adopt(BOUND)
    deadline = Deadline(5)

    def headers() -> None:
        session.headers("POST", BOUND.resource, deadline)

    best = min(timeit.repeat(headers, number=200, repeat=25)) / 200 * 1e6
    assert best <= MOST_MICROSECONDS, "%.0f microseconds" % best
