"""Ways to lead the client elsewhere. In each, somebody else listens and would take anything: they get no secret.

The listener is a whole authorization server of its own, more obliging than any real one, so that a client that lets
itself be led there leaves something behind. What is secret here: what the user gave, what was stored, and every code,
verifier and token of the sign-in. None may reach the listener, an error's text or the log.
"""

from __future__ import annotations

import json
import logging
from typing import Any, Callable, List, NamedTuple

import pytest

from mcpsync.auth.browser import Browser, OwnWay
from mcpsync.auth.credentials import ClientIdentity, Credentials, Tokens
from mcpsync.auth.identity import IdentityOptions
from mcpsync.auth.token_endpoint import refresh, revoke
from mcpsync.auth.web import Web
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError, McpError
from tests.auth.signing import SOON, sign_in_at
from tests.peers.authorization import AuthorizationServer, ProtectedServer, browse, follow

SECRETS = ["SECRET-client", "SECRET-access", "SECRET-refresh"]
OPENID = "/.well-known/openid-configuration"
SERVER = "/.well-known/oauth-authorization-server"
RESOURCE = "/.well-known/oauth-protected-resource/mcp"


class Scene(NamedTuple):
    """An honest authorization server, the server that trusts it, and a listener who is neither."""

    honest: AuthorizationServer
    resource: ProtectedServer
    listener: AuthorizationServer

    @property
    def options(self) -> IdentityOptions:
        """A client that the user registered with the honest server."""
        return IdentityOptions("mine", "SECRET-client", client_issuer=self.honest.issuer)

    @property
    def stored(self) -> Credentials:
        """An earlier sign-in."""
        return Credentials(
            issuer=self.honest.issuer,
            resource=self.resource.url,
            account="test",
            identity=ClientIdentity("mine", "SECRET-client", "client_secret_post", self.honest.issuer),
            token_endpoint=self.honest.issuer + "/token",
            revocation_endpoint=self.honest.issuer + "/revoke",
            tokens=Tokens("SECRET-access", refresh_token="SECRET-refresh"),
        )

    def sign_in(self, **more: Any) -> Credentials:
        return sign_in_at(self.resource, options=more.pop("options", self.options), **more)

    def answered(self, **changes: Any) -> None:
        """A sign-in whose answer the honest server, or somebody on the way, changed."""
        self.honest._answers.update(changes)
        self.sign_in()


@pytest.fixture
def scene():
    known = {"mine": "SECRET-client"}
    methods = ["client_secret_basic", "client_secret_post", "none"]
    with (
        AuthorizationServer(clients=known, auth_methods=methods) as honest,
        AuthorizationServer(clients=known, auth_methods=methods, asks_resource=False) as listener,
        ProtectedServer(honest) as resource,
    ):
        yield Scene(honest, resource, listener)


# -- the ways --------------------------------------------------------------------------------------------------------


def redirect(status: int, to: str) -> Callable[[Any], None]:
    return lambda exchange: exchange.respond(status, b"", Location=to)


def metadata_of_another_resource(scene):
    scene.resource._metadata["resource"] = "http://127.0.0.1:%d/mcp" % scene.listener.port
    scene.sign_in()


def metadata_of_a_neighbour(scene):
    scene.resource._metadata["resource"] = scene.resource.origin + "/other"
    scene.sign_in()


def metadata_of_a_host_that_begins_alike(scene):
    scene.resource._metadata["resource"] = scene.resource.origin + ".evil.example/mcp"
    scene.sign_in()


def metadata_announced_elsewhere(scene):
    document = json.dumps({"resource": scene.listener.url, "authorization_servers": [scene.listener.issuer]})
    scene.listener.routes[RESOURCE] = lambda exchange: exchange.respond(200, document)
    sign_in_at(Announcing(scene.resource, scene.listener.origin + RESOURCE), options=scene.options)


def metadata_announced_elsewhere_for_this_resource(scene):
    """The listener is made the authorization server: what was registered with the honest one is not for it."""
    document = json.dumps({"resource": scene.resource.url, "authorization_servers": [scene.listener.issuer]})
    scene.listener.routes[RESOURCE] = lambda exchange: exchange.respond(200, document)
    sign_in_at(Announcing(scene.resource, scene.listener.origin + RESOURCE), options=scene.options)


def metadata_that_was_announced_and_is_gone(scene):
    """Nothing else is tried, which somebody else could have put there."""
    scene.resource.routes["/gone"] = lambda exchange: exchange.respond(404, b"")
    lure = json.dumps({"resource": scene.resource.url, "authorization_servers": [scene.listener.issuer]})
    scene.resource.routes[RESOURCE] = lambda exchange: exchange.respond(200, lure)
    sign_in_at(Announcing(scene.resource, scene.resource.origin + "/gone"), options=IdentityOptions())


def metadata_that_redirects(scene):
    lure = json.dumps({"resource": scene.resource.url, "authorization_servers": [scene.listener.issuer]})
    scene.listener.routes[RESOURCE] = lambda exchange: exchange.respond(200, lure)
    scene.resource.routes[RESOURCE] = redirect(302, scene.listener.origin + RESOURCE)
    scene.sign_in(options=IdentityOptions())


def another_authorization_server(scene):
    scene.resource._metadata["authorization_servers"] = [scene.listener.issuer]
    scene.sign_in()


def another_authorization_server_for_a_client_bound_by_use(scene):
    scene.resource._metadata["authorization_servers"] = [scene.listener.issuer]
    scene.sign_in(options=IdentityOptions("mine", "SECRET-client"), saved=scene.stored.identity)


def an_issuer_that_is_no_place(scene):
    scene.resource._metadata["authorization_servers"] = ["javascript:fetch('%s')" % scene.listener.origin]
    scene.sign_in()


def an_issuer_with_a_query(scene):
    scene.resource._metadata["authorization_servers"] = [scene.honest.issuer + "?x=" + scene.listener.origin]
    scene.sign_in()


def an_issuer_with_a_name_before_it(scene):
    scene.resource._metadata["authorization_servers"] = [
        "http://127.0.0.1:%d@127.0.0.1:%d" % (scene.honest.port, scene.listener.port)
    ]
    scene.sign_in()


def a_mix_up(scene):
    """The listener says that it is the honest server, and where to bring the codes."""
    scene.resource._metadata["authorization_servers"] = [scene.listener.issuer]
    scene.listener._metadata.update(
        issuer=scene.honest.issuer, authorization_endpoint=scene.honest.issuer + "/authorize"
    )
    scene.sign_in()


def a_mix_up_that_the_honest_server_gives_away(scene):
    """The listener uses the honest server's page for people; the answer says who gave the code."""
    scene.resource._metadata["authorization_servers"] = [scene.listener.issuer]
    scene.listener._metadata["authorization_endpoint"] = scene.honest.issuer + "/authorize"
    web = Web(scene.resource.url, allow_hosts=["127.0.0.1"])
    sign_in_at(scene.resource, web=web, options=IdentityOptions("mine"))


def metadata_of_another_issuer(scene):
    scene.honest._metadata["issuer"] = scene.listener.issuer
    scene.sign_in()


def metadata_of_another_issuer_with_the_right_one_at_the_next_place(scene):
    scene.honest._metadata["issuer"] = scene.listener.issuer
    scene.honest.routes[OPENID] = lambda exchange: exchange.respond(200, scene.listener.document())
    scene.sign_in()


def metadata_of_the_server_that_redirects(scene):
    scene.listener.routes[SERVER] = lambda exchange: exchange.respond(200, scene.honest.document())
    scene.honest.routes[SERVER] = redirect(307, scene.listener.origin + SERVER)
    scene.sign_in()


def endpoint_elsewhere(name):
    def way(scene):
        scene.honest._metadata[name] = "%s/%s" % (scene.listener.issuer, name)
        scene.sign_in(options=None if name == "registration_endpoint" else scene.options)

    way.__name__ = name + "_elsewhere"
    return way


def an_endpoint_with_a_name_before_it(scene):
    scene.honest._metadata["token_endpoint"] = "http://127.0.0.1:%d@127.0.0.1:%d/token" % (
        scene.honest.port,
        scene.listener.port,
    )
    scene.sign_in()


def an_endpoint_with_a_backslash(scene):
    scene.honest._metadata["token_endpoint"] = "http://127.0.0.1:%d\\@127.0.0.1:%d/token" % (
        scene.listener.port,
        scene.honest.port,
    )
    scene.sign_in()


def an_endpoint_with_a_line_break(scene):
    scene.honest._metadata["token_endpoint"] = scene.honest.issuer + "/token\r\nHost: 127.0.0.1:%d" % (
        scene.listener.port
    )
    scene.sign_in()


def an_endpoint_without_encryption(scene):
    scene.honest._metadata["token_endpoint"] = "http://as.example/token"
    scene.sign_in()


def an_endpoint_that_is_a_script(scene):
    scene.honest._metadata["authorization_endpoint"] = "javascript:alert(1)//" + scene.listener.origin
    scene.sign_in()


def pkce_is_gone(scene):
    scene.honest._metadata["code_challenge_methods_supported"] = None
    scene.sign_in()


def pkce_is_made_plain(scene):
    scene.honest._metadata["code_challenge_methods_supported"] = ["plain"]
    scene.sign_in()


def the_token_endpoint_redirects(status):
    def way(scene):
        scene.honest.routes["/token"] = redirect(status, scene.listener.issuer + "/token")
        scene.sign_in()

    way.__name__ = "the_token_endpoint_redirects_with_%d" % status
    return way


def a_refresh_is_redirected(scene):
    scene.honest.routes["/token"] = redirect(307, scene.listener.issuer + "/token")
    refresh(scene.stored, Web(scene.resource.url), Deadline(SOON))


def a_revocation_is_redirected(scene):
    scene.honest.routes["/revoke"] = redirect(308, scene.listener.issuer + "/revoke")
    revoke(scene.stored, Web(scene.resource.url), Deadline(SOON))


def a_registration_is_redirected(scene):
    scene.honest.routes["/register"] = redirect(307, scene.listener.issuer + "/register")
    scene.sign_in(options=IdentityOptions())


def the_wrong_state(scene):
    scene.answered(state="of-somebody-else")


def no_state(scene):
    scene.answered(state=None)


def the_wrong_issuer_in_the_answer(scene):
    scene.answered(iss=scene.listener.issuer)


def an_issuer_in_the_answer_that_is_almost_right(scene):
    scene.answered(iss=scene.honest.issuer + "/")


def no_issuer_in_the_answer_of_a_server_that_always_names_it(scene):
    scene.answered(iss=None)


def an_error_of_another_issuer(scene):
    scene.answered(iss=scene.listener.issuer, error="access_denied", error_description="call 555-0100", code=None)


def a_code_is_injected(scene):
    """Somebody put a code of their own before the right one."""
    scene.sign_in(way=OwnWay(lambda url: browse(url).replace("?", "?code=code-of-somebody-else&")))


def a_code_of_another_sign_in_is_injected(scene):
    """Their own code and our state: the server sees that the verifier is not theirs."""
    theirs: List[str] = []
    scene.sign_in(way=OwnWay(lambda url: theirs.append(browse(url)) or theirs[0]))
    code = scene.honest.codes.popitem() if scene.honest.codes else None
    assert code is None, "used codes are gone"
    other = sign_in_code(scene)
    scene.sign_in(way=OwnWay(lambda url: _with_code(browse(url), other)))


def a_token_that_would_split_headers(scene):
    scene.honest._tokens["access_token"] = "x\r\nX-Forwarded-To: " + scene.listener.origin
    scene.sign_in()


def metadata_that_is_too_large(scene):
    scene.honest._metadata["padding"] = "x" * 1_000_000
    scene.sign_in()


def metadata_that_is_too_deep(scene):
    scene.honest.routes[SERVER] = lambda exchange: exchange.respond(200, b'{"issuer": ' + b"[" * 200_000)
    scene.sign_in()


def metadata_that_does_not_come(scene):
    scene.resource.routes[RESOURCE] = lambda exchange: exchange.wait_closed()
    scene.sign_in(seconds=0.5)


def metadata_that_dribbles(scene):
    def dribble(exchange):
        exchange.start(content_type="application/json", framing="100000")
        exchange.dribble(b" " * 100_000)

    scene.honest.routes[SERVER] = dribble
    scene.sign_in(seconds=0.5)


class Announcing:
    """A server whose challenge names its metadata somewhere else."""

    def __init__(self, resource, announced):
        self.url = resource.url
        self.challenge = 'Bearer resource_metadata="%s"' % announced


def sign_in_code(scene):
    """A code that the honest server gave to somebody else."""
    codes: List[str] = []

    def keep(url):
        codes.append(browse(url))

    with pytest.raises(AuthError, match="given up"):
        scene.sign_in(way=OwnWay(keep))
    return codes[0].partition("code=")[2].partition("&")[0]


def _with_code(url: str, code: str) -> str:
    before, _, rest = url.partition("code=")
    return before + "code=" + code + "".join(rest.partition("&")[1:])


WAYS: List[Callable[[Scene], Any]] = [
    metadata_of_another_resource,
    metadata_of_a_neighbour,
    metadata_of_a_host_that_begins_alike,
    metadata_announced_elsewhere,
    metadata_announced_elsewhere_for_this_resource,
    metadata_that_was_announced_and_is_gone,
    metadata_that_redirects,
    another_authorization_server,
    another_authorization_server_for_a_client_bound_by_use,
    an_issuer_that_is_no_place,
    an_issuer_with_a_query,
    an_issuer_with_a_name_before_it,
    a_mix_up,
    a_mix_up_that_the_honest_server_gives_away,
    metadata_of_another_issuer,
    metadata_of_another_issuer_with_the_right_one_at_the_next_place,
    metadata_of_the_server_that_redirects,
    endpoint_elsewhere("token_endpoint"),
    endpoint_elsewhere("authorization_endpoint"),
    endpoint_elsewhere("registration_endpoint"),
    endpoint_elsewhere("revocation_endpoint"),
    an_endpoint_with_a_name_before_it,
    an_endpoint_with_a_backslash,
    an_endpoint_with_a_line_break,
    an_endpoint_without_encryption,
    an_endpoint_that_is_a_script,
    pkce_is_gone,
    pkce_is_made_plain,
    the_token_endpoint_redirects(302),
    the_token_endpoint_redirects(307),
    the_token_endpoint_redirects(308),
    a_refresh_is_redirected,
    a_revocation_is_redirected,
    a_registration_is_redirected,
    the_wrong_state,
    no_state,
    the_wrong_issuer_in_the_answer,
    an_issuer_in_the_answer_that_is_almost_right,
    no_issuer_in_the_answer_of_a_server_that_always_names_it,
    an_error_of_another_issuer,
    a_code_is_injected,
    a_code_of_another_sign_in_is_injected,
    a_token_that_would_split_headers,
    metadata_that_is_too_large,
    metadata_that_is_too_deep,
    metadata_that_does_not_come,
    metadata_that_dribbles,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_nobody_else_gets_a_secret(way, scene, caplog):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(McpError) as caught:
        way(scene)
    check_silence(scene, caught.value, caplog.text)


def check_silence(scene, error, log):
    """Hold listener, error and log to know no secret."""
    secrets = [*SECRETS, *scene.honest.secrets]
    for request in scene.listener.requests:
        heard = "%s %s %s" % (request.path, request.headers, request.body.decode("latin-1"))
        assert "authorization" not in request.headers
        assert "code_verifier=" not in heard
        assert [secret for secret in secrets if secret in heard] == []
    text = ""
    while error is not None:
        text += "%s %r %r" % (error, error, error.__dict__)
        error = error.__cause__ or error.__context__
    assert [secret for secret in secrets if secret in text] == []
    assert [secret for secret in secrets if secret in log] == []
    assert "555-0100" not in text


# -- where the client goes on, and the listener still gets nothing ---------------------------------------------------


def test_a_registration_is_not_taken_to_another_server(scene):
    """The server moved to another authorization server: the client is a new one there, without the old secret."""
    first = scene.sign_in(options=IdentityOptions(auth_method="client_secret_post"))
    scene.resource._metadata["authorization_servers"] = [scene.listener.issuer]
    second = scene.sign_in(options=IdentityOptions(), saved=first.identity)
    assert second.identity.client_id != first.identity.client_id
    for request in scene.listener.requests:
        heard = request.path + request.body.decode()
        assert first.identity.client_id not in heard
        assert first.identity.client_secret not in heard
        assert first.tokens.access_token not in heard
        assert first.tokens.refresh_token not in heard


def test_codes_that_somebody_else_sends_to_the_callback_are_not_used(scene):
    def opener(url):
        callback = url.partition("redirect_uri=")[2].partition("%2Fcallback")[0]
        port = callback.rpartition("%3A")[2]
        for state in ("", "of-somebody-else"):
            assert follow("http://127.0.0.1:%s/callback?code=theirs&state=%s" % (port, state))[0] == 400
        assert follow(browse(url))[0] == 200
        return True

    made = scene.sign_in(way=Browser(opener=opener))
    assert made.tokens.access_token in scene.honest.access
    assert [request["code"] for request in scene.honest.token_requests] != ["theirs"]


# -- from the internet into this network -----------------------------------------------------------------------------

INSIDE = [
    "https://127.0.0.1:{port}/x",
    "http://127.0.0.1:{port}/x",
    "http://localhost:{port}/x",
    "https://[::1]:{port}/x",
    "https://[::ffff:127.0.0.1]:{port}/x",
    "https://0.0.0.0:{port}/x",
    "https://169.254.169.254/latest/meta-data",
    "https://[fe80::1]/x",
    "https://10.0.0.1/x",
    "https://192.168.0.1/x",
    "https://[fd00::1]/x",
    "https://inside.example:{port}/x",
    "https://changes.example:{port}/x",
]


@pytest.mark.parametrize("url", INSIDE)
@pytest.mark.parametrize("place", ["challenge", "authorization_servers"])
def test_metadata_leads_nowhere_inside(url, place, authority, caplog):
    """``inside.example`` has a private address, ``changes.example`` has one from the second question on."""
    caplog.set_level(logging.DEBUG)
    asked: List[str] = []

    def resolver(host):
        asked.append(host)
        if host == "mcp.example.org" or host == "inside.example" or asked.count("changes.example") > 1:
            return ["127.0.0.1"]
        return ["192.0.2.1"]  # goes nowhere

    with AuthorizationServer(tls=authority.server()) as listener, ProtectedServer(tls=authority.server()) as resource:
        there = url.format(port=listener.port)
        resource._metadata["authorization_servers"] = [there.rpartition("/")[0]]
        announced = Announcing(resource, there if place == "challenge" else resource.origin + RESOURCE)
        announced.url = "https://mcp.example.org:%d/mcp" % resource.port
        announced.challenge = announced.challenge.replace("127.0.0.1:%d" % resource.port, announced.url[8:-4])
        resource._metadata["resource"] = announced.url
        web = Web(announced.url, verify=authority.ca, resolver=resolver)
        with pytest.raises(AuthError):
            sign_in_at(announced, web=web, seconds=0.5 if "changes" in url else SOON)
        assert listener.connections == 0
        assert asked.count("changes.example") <= 1
