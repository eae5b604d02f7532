"""From a server and its challenge to the authorization server, and what is refused on the way."""

from __future__ import annotations

import pytest

from mcpsync.auth.challenge import BearerChallenge, bearer_challenge
from mcpsync.auth.discovery import discover, well_known_urls
from mcpsync.auth.web import Web
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError, IssuerMismatch
from tests.peers.authorization import AuthorizationServer, ProtectedServer

SOON = 10


def find(resource, allow_hosts=(), url=None, **options):
    web = Web(resource.url, allow_hosts=allow_hosts)
    return discover(url or resource.url, bearer_challenge(resource.challenge), web, Deadline(SOON), **options)


def paths(peer):
    return [request.path for request in peer.requests]


# -- where documents are looked for ---------------------------------------------------------------------------------


def test_the_challenge_says_where_to_look():
    with (
        AuthorizationServer() as server,
        ProtectedServer(server, metadata_at="/custom/where", challenge_scope="a b", scopes=["a", "b", "c"]) as resource,
    ):
        found = find(resource)
        assert paths(resource) == ["/custom/where"]
    assert found.issuer == server.issuer
    assert found.resource == resource.url
    assert found.challenged_scope == ("a", "b")
    assert found.resource_metadata.scopes_supported == ("a", "b", "c")
    assert found.server.token_endpoint == server.issuer + "/token"


@pytest.mark.parametrize(
    ("place", "asked"),
    [
        ("path", ["/.well-known/oauth-protected-resource/mcp"]),
        ("root", ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"]),
    ],
)
def test_without_a_challenge_path_and_root_are_tried(place, asked):
    with AuthorizationServer() as server, ProtectedServer(server, metadata_at=place, announces=False) as resource:
        assert find(resource).issuer == server.issuer
        assert paths(resource) == asked


@pytest.mark.parametrize(
    ("path", "place", "asked"),
    [
        ("", "oauth", ["/.well-known/oauth-authorization-server"]),
        ("", "openid", ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]),
        ("/t/1", "oauth", ["/.well-known/oauth-authorization-server/t/1"]),
        (
            "/t/1",
            "openid",
            ["/.well-known/oauth-authorization-server/t/1", "/.well-known/openid-configuration/t/1"],
        ),
        (
            "/t/1",
            "appended",
            [
                "/.well-known/oauth-authorization-server/t/1",
                "/.well-known/openid-configuration/t/1",
                "/t/1/.well-known/openid-configuration",
            ],
        ),
    ],
)
def test_the_authorization_server_is_asked_in_the_specified_order(path, place, asked):
    with AuthorizationServer(path=path, well_known=place) as server, ProtectedServer(server) as resource:
        assert find(resource).issuer == server.issuer
        assert paths(server) == asked


def test_a_last_slash_of_an_issuer_is_not_part_of_the_well_known_url():
    assert well_known_urls("https://as.example/")[0] == "https://as.example/.well-known/oauth-authorization-server"
    assert well_known_urls("https://as.example/t/")[2] == "https://as.example/t/.well-known/openid-configuration"


@pytest.mark.parametrize("issuer", ["https://as.example/?x=1", "https://as.example/#x", "as.example"])
def test_an_issuer_is_a_plain_url(issuer):
    with pytest.raises(AuthError):
        well_known_urls(issuer)


def test_a_page_for_people_is_no_document():
    def page(exchange):
        exchange.respond(200, b"<html>", content_type="text/html")

    routes = {"/.well-known/oauth-protected-resource/mcp": page}
    pages = {"/.well-known/oauth-authorization-server": page}
    with (
        AuthorizationServer(routes=pages, well_known="openid") as server,
        ProtectedServer(server, metadata_at="root", announces=False, routes=routes) as resource,
    ):
        assert find(resource).issuer == server.issuer


# -- servers before 2025-06-18 --------------------------------------------------------------------------------------


def test_a_server_without_metadata_is_its_own_authorization_server():
    with AuthorizationServer() as server:
        found = discover(server.url, BearerChallenge("bearer"), Web(server.url), Deadline(SOON))
    assert found.server.authorization_endpoint == server.origin + "/authorize"
    assert found.server.source
    assert found.resource == server.url
    assert not found.names_resource


def test_without_any_metadata_the_endpoints_have_their_default_places():
    with AuthorizationServer(well_known=None) as server:
        found = discover(server.url, BearerChallenge("bearer"), Web(server.url), Deadline(SOON))
    assert found.server.authorization_endpoint == server.origin + "/authorize"
    assert found.server.token_endpoint == server.origin + "/token"
    assert found.server.registration_endpoint == server.origin + "/register"


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    ],
)
def test_a_server_that_fails_is_not_taken_for_one_without_metadata(path):
    def fails(exchange):
        exchange.respond(503, b"later")

    routes = {path: fails}
    with AuthorizationServer(routes=routes, well_known=None) as server:
        with pytest.raises(AuthError, match="503; try again later") as caught:
            discover(server.url, BearerChallenge("bearer"), Web(server.url), Deadline(SOON))
        assert caught.value.passing


# -- several, and what the user says --------------------------------------------------------------------------------


def test_of_several_the_first_is_taken_unless_one_is_known_or_wanted():
    with AuthorizationServer() as first, AuthorizationServer() as second, ProtectedServer(first, second) as resource:
        assert find(resource).issuer == first.issuer
        assert find(resource, known_issuers=[second.issuer]).issuer == second.issuer
        assert find(resource, issuer=second.issuer).issuer == second.issuer
        with pytest.raises(IssuerMismatch, match=r"and not https://other\.example"):
            find(resource, issuer="https://other.example")


def test_the_user_knows_how_an_issuer_writes_itself():
    """A server that writes the issuer without its last slash is a mistake that only its user may forgive."""
    with AuthorizationServer() as server, ProtectedServer(server) as resource:
        server._metadata["issuer"] = server.issuer + "/"
        with pytest.raises(IssuerMismatch):
            find(resource)
        assert find(resource, issuer=server.issuer + "/").issuer == server.issuer + "/"


def test_the_user_knows_the_issuer_of_a_server_without_metadata():
    with AuthorizationServer(path="/t") as server, ProtectedServer(server, metadata_at=None) as resource:
        assert find(resource, issuer=server.issuer).issuer == server.issuer


def test_the_user_knows_where_the_metadata_is():
    with AuthorizationServer(path="/t") as server, ProtectedServer(metadata_at=None) as resource:
        url = server.origin + "/.well-known/oauth-authorization-server/t"
        assert find(resource, server_metadata_url=url).issuer == server.issuer
        with pytest.raises(IssuerMismatch):
            find(resource, server_metadata_url=url, issuer="https://other.example")
        with pytest.raises(AuthError, match="no metadata"):
            find(resource, server_metadata_url=server.origin + "/nowhere")


def test_metadata_where_the_user_said_is_still_of_its_issuer():
    with (
        AuthorizationServer(metadata={"issuer": "https://other.example"}) as server,
        ProtectedServer(server) as resource,
        pytest.raises(IssuerMismatch),
    ):
        find(resource, server_metadata_url=server.origin + "/.well-known/oauth-authorization-server")


# -- the resource ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resource_of", ["{origin}", "{origin}/", "{origin}/mcp", "{origin}/mcp/", "{upper}/mcp"])
def test_a_resource_that_the_server_is_in_is_named_as_it_is_published(resource_of):
    with AuthorizationServer() as server, ProtectedServer(server) as resource:
        named = resource_of.format(origin=resource.origin, upper=resource.origin.replace("http", "HTTP"))
        resource._metadata["resource"] = named
        assert find(resource).resource == named


@pytest.mark.parametrize(
    "named",
    [
        "https://evil.example/mcp",
        "{origin}/other",
        "{origin}/mcp/below",
        "{origin}/mc",
        "{origin}/mcp?tenant=other",
        "{origin}/mcp#part",
        "{origin}.evil.example/mcp",
        "http://127.0.0.1:1/mcp",
        "https://user@evil.example",
        "urn:mcp",
        "",
        7,
        None,
    ],
)
def test_metadata_of_another_resource_is_refused(named):
    with AuthorizationServer() as server, ProtectedServer(server) as resource:
        resource._metadata["resource"] = named if not isinstance(named, str) else named.format(origin=resource.origin)
        with pytest.raises(AuthError):
            find(resource)
        assert not server.requests


@pytest.mark.parametrize("servers", [None, [], "https://as.example", [7], {"a": 1}, ["a"] * 2000])
def test_a_resource_names_its_authorization_servers(servers):
    with (
        AuthorizationServer() as server,
        ProtectedServer(server, metadata={"authorization_servers": servers}) as resource,
        pytest.raises(AuthError, match="authorization_servers"),
    ):
        find(resource)


def test_metadata_that_was_announced_and_is_not_there_is_an_error():
    with AuthorizationServer() as server, ProtectedServer(server, metadata_at="/there") as resource:
        resource.routes["/there"] = lambda exchange: exchange.respond(404, b"")
        with pytest.raises(AuthError, match="answers with 404"):
            find(resource)
        assert paths(resource) == ["/there"]


# -- the authorization server ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("issuer", ["https://attacker.example", "{issuer}/", "{issuer}/t", "{upper}", "", None, 7])
def test_metadata_of_another_issuer_is_not_used(issuer):
    with AuthorizationServer() as server, ProtectedServer(server) as resource:
        written = issuer
        if isinstance(issuer, str):
            written = issuer.format(issuer=server.issuer, upper=server.issuer.replace("http", "HTTP"))
        server._metadata["issuer"] = written
        with pytest.raises(AuthError):
            find(resource)
        assert len(server.requests) == 1, "no other place is tried"


def test_no_token_is_asked_for_that_would_be_sent_in_the_clear():
    with AuthorizationServer() as server, ProtectedServer(server) as resource:
        # as somebody on the way would announce it
        challenge = BearerChallenge("bearer", resource.url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp"))
        resource._metadata = {"resource": "http://mcp.example/mcp", "authorization_servers": [server.issuer]}
        with pytest.raises(AuthError, match=r"http://mcp.example/mcp .*not https"):
            discover("http://mcp.example/mcp", challenge, Web(resource.url), Deadline(SOON))
        assert not server.requests


@pytest.mark.parametrize(
    "name", ["authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"]
)
@pytest.mark.parametrize(
    ("endpoint", "says"),
    [
        ("https://other.example/x", "'other.example' in allow_hosts"),
        ("http://other.example/x", "not https"),
        ("http://127.0.0.1:1/x", "'127.0.0.1:1' in allow_hosts"),
        ("https://127.0.0.1/x", "in allow_hosts"),
        ("javascript:alert(1)", "no https URL"),
        ("file:///etc/passwd", "no https URL"),
        ("/relative", "no https URL"),
        ("https://a@other.example/x", "credentials"),
        (7, "is a int"),
    ],
)
def test_endpoints_are_where_the_issuer_is(name, endpoint, says):
    with (
        AuthorizationServer(metadata={name: endpoint}) as server,
        ProtectedServer(server) as resource,
        pytest.raises(AuthError) as caught,
    ):
        find(resource)
    assert says in str(caught.value)
    assert name in str(caught.value) or "not https" in says


def test_a_provider_that_splits_its_endpoints_can_be_allowed():
    endpoint = "https://other.example/token"
    with AuthorizationServer(metadata={"token_endpoint": endpoint}) as server, ProtectedServer(server) as resource:
        assert find(resource, allow_hosts=["other.example"]).server.token_endpoint == endpoint


@pytest.mark.parametrize("methods", [None, [], ["plain"], "S256"])
def test_a_server_without_pkce_is_refused(methods):
    with (
        AuthorizationServer(metadata={"code_challenge_methods_supported": methods}) as server,
        ProtectedServer(server) as resource,
        pytest.raises(AuthError, match="code_challenge_methods_supported"),
    ):
        find(resource)


def test_a_server_without_the_code_flow_is_refused():
    with (
        AuthorizationServer(metadata={"response_types_supported": ["token"]}) as server,
        ProtectedServer(server) as resource,
        pytest.raises(AuthError, match="authorization code flow"),
    ):
        find(resource)


def test_an_authorization_server_without_metadata_is_an_error():
    with AuthorizationServer(well_known=None) as server, ProtectedServer(server) as resource:
        with pytest.raises(AuthError, match="no metadata of the authorization server"):
            find(resource)
        assert len(server.requests) == 2
