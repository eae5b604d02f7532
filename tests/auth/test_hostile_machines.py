"""Ways to lead a program that nobody watches elsewhere. As in ``test_hostile``, somebody else listens, takes anything,
and is to hear no secret: no client secret, no key, no assertion, no identity token, nothing that is good elsewhere.
"""

from __future__ import annotations

import logging
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Callable, Dict, Iterator, List, NamedTuple

import pytest

import mcpsync
from mcpsync.auth.store import MemoryStore
from mcpsync.errors import IssuerMismatch, McpError
from tests.auth.test_machines import assertion
from tests.peers.authorization import ProtectedServer
from tests.peers.http import Exchange
from tests.peers.http_servers import Modern
from tests.peers.machines import IdentityProvider, MachineServer, decoded, new_key, new_pem, public_of, signed

SECRETS = ["SECRET-client", "SECRET-id-token", "SECRET-idp"]
SERVER = "/.well-known/oauth-authorization-server"
PEM = new_pem()
PLATFORM = new_key()
GRANTS = ("secret", "key", "assertion", "enterprise")


class Listener(MachineServer):
    """Takes anything."""

    def _client_of(self, exchange: Exchange, form: Any) -> str:
        return str(form.get("client_id"))

    def _grant(self, form: Any, client_id: str) -> Dict[str, str]:
        return {"client_id": client_id, "scope": "", "family": "machine"}


class Scene(NamedTuple):
    """An honest authorization server, an identity provider, the server that trusts the former, and a listener."""

    honest: MachineServer
    provider: IdentityProvider
    resource: ProtectedServer
    listener: Listener
    store: MemoryStore

    def options(self, grant: str) -> Dict[str, Any]:
        """What the user says, with an assertion that is good for the honest server."""
        if grant == "secret":
            return {"grant": "client_credentials", "client_secret": "SECRET-client"}
        if grant == "key":
            return {"grant": "client_credentials", "private_key": PEM, "client_id": "by-key"}
        if grant == "assertion":
            good = assertion(PLATFORM, self.honest.issuer)
            return {"grant": "jwt_bearer", "client_secret": "SECRET-client", "assertion": good}
        return {
            "grant": "enterprise",
            "client_secret": "SECRET-client",
            "id_token": "SECRET-id-token",
            "idp_issuer": self.provider.issuer,
            "idp_client_id": "agent-at-idp",
            "idp_client_secret": "SECRET-idp",
        }

    def connect(self, grant: str, **more: Any) -> None:
        options = {"client_id": "agent", "store": self.store, **self.options(grant), **more}
        with mcpsync.connect(self.resource.url, auth=mcpsync.OAuth(**options), protocol="2026-07-28") as client:
            client.call_tool("work")


@pytest.fixture
def scene() -> Iterator[Scene]:
    methods = ["client_secret_basic", "client_secret_post"]
    with (
        MachineServer(
            clients={"agent": "SECRET-client"},
            keys={"by-key": (public_of(PEM), "ES256")},
            trusts=PLATFORM.public_key(),
            auth_methods=methods,
        ) as honest,
        IdentityProvider(
            PLATFORM, "SECRET-id-token", clients={"agent-at-idp": "SECRET-idp"}, auth_methods=methods
        ) as provider,
        Listener(asks_resource=False, auth_methods=["none", *methods, "private_key_jwt"]) as listener,
        ProtectedServer(honest, behaviour=Modern()) as resource,
    ):
        yield Scene(honest, provider, resource, listener, MemoryStore())


@pytest.mark.parametrize("grant", GRANTS)
def test_all_of_them_work_while_nobody_is_hostile(grant, scene):
    scene.connect(grant)
    assert scene.listener.requests == []


# -- the ways --------------------------------------------------------------------------------------------------------


def another_authorization_server(scene, grant):
    scene.resource._metadata["authorization_servers"] = [scene.listener.issuer]
    scene.connect(grant, issuer=scene.honest.issuer)


def another_authorization_server_after_the_first_use(scene, grant):
    scene.connect(grant)
    scene.resource._metadata["authorization_servers"] = [scene.listener.issuer]
    scene.honest.expire_access()
    scene.connect(grant)


def metadata_of_another_issuer(scene, grant):
    def lie(exchange):
        exchange.respond(200, scene.listener.document())

    scene.honest.routes[SERVER] = lie
    scene.connect(grant)


def the_right_issuer_with_another_token_endpoint(scene, grant):
    scene.honest._metadata["token_endpoint"] = scene.listener.issuer + "/token"
    scene.connect(grant)


def a_token_endpoint_without_encryption(scene, grant):
    scene.honest._metadata["token_endpoint"] = "http://as.example/token"
    scene.connect(grant)


def a_token_endpoint_that_redirects(status):
    def way(scene, grant):
        scene.honest.routes["/token"] = lambda exchange: exchange.respond(
            status, b"", Location=scene.listener.issuer + "/token"
        )
        scene.connect(grant)

    way.__name__ = "a_token_endpoint_that_redirects_with_%d" % status
    return way


def a_refusal_that_repeats_what_it_was_sent(scene, grant):
    def repeat(exchange):
        sent = "%s %s" % (exchange.request.body.decode(), exchange.request.headers.get("authorization"))
        exchange.respond(400, {"error": sent, "error_description": sent})

    scene.honest.routes["/token"] = repeat
    scene.connect(grant)


def a_token_that_would_split_headers(scene, grant):
    scene.honest._tokens["access_token"] = "SECRET-idp\r\nX: y"
    scene.connect(grant)


WAYS: List[Callable[[Scene, str], Any]] = [
    another_authorization_server,
    another_authorization_server_after_the_first_use,
    metadata_of_another_issuer,
    the_right_issuer_with_another_token_endpoint,
    a_token_endpoint_without_encryption,
    a_token_endpoint_that_redirects(302),
    a_token_endpoint_that_redirects(307),
    a_refusal_that_repeats_what_it_was_sent,
    a_token_that_would_split_headers,
]


@pytest.mark.parametrize("grant", GRANTS)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_nobody_else_gets_a_secret(way, grant, scene, caplog):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(McpError) as caught:
        way(scene, grant)
    assert scene.listener.token_requests == []
    check_silence(scene, caught.value, caplog.text)


def check_silence(scene, error, log):
    """Hold listener, error and log to know no secret."""
    secrets = [*SECRETS, PEM.splitlines()[1], *scene.honest.access]
    secrets += [request["assertion"] for request in scene.honest.token_requests if "assertion" in request]
    heard = "".join("%s %s %s" % (each.path, each.headers, each.body) for each in scene.listener.requests)
    text = ""
    while error is not None:
        text += "%s %r %r" % (error, error, error.__dict__)
        error = error.__cause__ or error.__context__
    for place in (heard, text, log):
        assert [secret for secret in secrets if secret in place] == []


# -- where the user named no authorization server --------------------------------------------------------------------


def test_an_assertion_goes_to_nobody_whom_it_is_not_for(scene, caplog):
    scene.resource._metadata["authorization_servers"] = [scene.listener.issuer]
    with pytest.raises(McpError, match="does not say that it is for") as caught:
        scene.connect("assertion")
    assert scene.listener.token_requests == []
    check_silence(scene, caught.value, caplog.text)


@pytest.mark.parametrize("text", ["opaque-SECRET-client", "e30.e30.x", "e30.W10.x", "a.b.c"])
def test_an_assertion_that_does_not_say_for_whom_it_is_needs_an_issuer(text, scene):
    with pytest.raises(McpError, match="if it is meant to be, set issuer") as caught:
        scene.connect("assertion", assertion=text)
    assert text not in str(caught.value)
    assert scene.honest.token_requests == []
    with pytest.raises(McpError, match="invalid_grant"):
        scene.connect("assertion", assertion=text, issuer=scene.honest.issuer)
    assert len(scene.honest.token_requests) == 1


def test_what_a_client_says_to_the_listener_is_no_good_elsewhere(scene):
    scene.resource.trusted[:] = [scene.listener]
    scene.connect("key")
    (heard,) = scene.listener.token_requests
    assert decoded(heard["client_assertion"])[1]["aud"] == scene.listener.issuer
    again = {**heard, "resource": scene.resource.url}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with pytest.raises(urllib.error.HTTPError) as caught:
        opener.open(scene.honest.issuer + "/token", urllib.parse.urlencode(again).encode(), timeout=20)
    assert caught.value.code == 401
    caught.value.close()


# -- an identity provider, and who stands in for it ------------------------------------------------------------------


def test_an_identity_token_goes_to_the_identity_provider_alone(scene):
    scene.resource.trusted[:] = [scene.listener]
    scene.connect("enterprise", client_secret=None)
    (exchanged,) = scene.provider.token_requests
    assert exchanged["audience"] == scene.listener.issuer  # whether that may be had is the provider's to say
    assert "SECRET" not in str([each.body for each in scene.listener.requests])


def other_audience(scene):
    claims = {"aud": scene.honest.issuer + "x", "exp": time.time() + 60}
    return {"access_token": signed({"alg": "ES256"}, claims, PLATFORM)}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda scene: {"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}, "gave no ID-JAG"),
        (lambda scene: {"issued_token_type": None}, "gave no ID-JAG"),
        (lambda scene: {"access_token": ""}, "gave no ID-JAG"),
        (lambda scene: {"access_token": ["x"]}, "gave no ID-JAG"),
        (other_audience, "for another authorization server"),
    ],
)
def test_answers_of_the_identity_provider_that_are_not_passed_on(answer, said, scene):
    scene.provider._tokens.update(answer(scene))
    with pytest.raises(McpError, match=said):
        scene.connect("enterprise")
    assert scene.honest.token_requests == []


@pytest.mark.parametrize("status", [302, 307])
def test_an_identity_provider_that_redirects(status, scene, caplog):
    scene.provider.routes["/token"] = lambda exchange: exchange.respond(
        status, b"", Location=scene.listener.issuer + "/token"
    )
    with pytest.raises(McpError, match="not followed with secrets") as caught:
        scene.connect("enterprise")
    assert scene.listener.requests == []
    check_silence(scene, caught.value, caplog.text)


def test_an_identity_provider_that_is_another(scene):
    scene.provider._metadata["issuer"] = scene.listener.issuer
    with pytest.raises(IssuerMismatch):
        scene.connect("enterprise")
    scene.provider._metadata.update(issuer=None, token_endpoint=scene.listener.issuer + "/token")
    scene.provider._metadata.pop("issuer")
    with pytest.raises(McpError, match="is elsewhere"):
        scene.connect("enterprise")
    assert scene.listener.requests == []


# -- proofs ----------------------------------------------------------------------------------------------------------


def test_a_server_that_asks_for_proofs_gets_none_where_the_authorization_server_knows_none(scene):
    """A challenge alone makes nobody use a key: the token would be one that is not bound."""

    class Asking(ProtectedServer):
        challenge = "DPoP algs=ES256"

    scene.resource.__class__ = Asking
    scene.connect("secret")
    assert "dpop" not in scene.honest.requests[-1].headers


def test_a_key_of_tokens_is_in_no_error_and_no_log(scene, caplog):
    caplog.set_level(logging.DEBUG)
    scene.honest.bound = True
    with pytest.raises(McpError) as caught:
        scene.connect("secret", dpop=True)  # the server takes bearer tokens alone
    kept = [scene.store.load(key) for key in scene.store.keys()]  # noqa: SIM118
    keys = [each.proof_key.splitlines()[1] for each in kept if each is not None and each.proof_key]
    assert keys
    text = "%s %r %s" % (caught.value, caught.value, caplog.text)
    assert [key for key in keys if key in text] == []
