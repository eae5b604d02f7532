"""Programs that nobody signs in for, from ``connect()`` to the end of a token."""

from __future__ import annotations

import threading
import time
from typing import Any, Dict, List

import pytest

import mcpsync
from mcpsync.auth.sources import FromFile
from mcpsync.auth.store import FileStore, MemoryStore
from mcpsync.auth.token_endpoint import TokenRefused
from mcpsync.errors import AuthError, InsufficientScope, McpError, NeedsLogin
from tests.peers.authorization import ProtectedServer
from tests.peers.http_servers import Modern
from tests.peers.machines import IdentityProvider, MachineServer, new_key, new_pem, public_of, signed

SECRET = "SECRET: 100% & more"
NOBODY = "nobody is to be asked"


def nobody(url: str) -> str:
    raise AssertionError(NOBODY)


def connected(resource: Any, **options: Any) -> mcpsync.Client:
    options = {"way": nobody, "store": MemoryStore(), "client_id": "agent", **options}
    return mcpsync.connect(resource.url, auth=mcpsync.OAuth(**options), protocol="2026-07-28")


def basic(**more: Any) -> Dict[str, Any]:
    return {"grant": "client_credentials", "client_secret": SECRET, **more}


@pytest.fixture
def server():
    methods = ("client_secret_basic", "client_secret_post")
    with MachineServer(clients={"agent": SECRET}, auth_methods=methods, registration=False) as server:
        yield server


@pytest.fixture
def resource(server):
    with ProtectedServer(server, behaviour=Modern(), challenge_scope="a") as resource:
        yield resource


def grants(server: MachineServer) -> List[str]:
    return [request["grant_type"] for request in server.token_requests]


def test_client_credentials_with_a_secret(server, resource):
    with connected(resource, **basic()) as client:
        assert client.call_tool("work").text == "done"
        credentials = client.credentials
    (asked,) = server.token_requests
    assert asked == {
        "grant_type": "client_credentials",
        "client_id": "agent",
        "scope": "a",
        "resource": resource.url,
    }
    assert server.authorizations == []
    assert (credentials.grant, credentials.issuer) == ("client_credentials", server.issuer)


@pytest.mark.parametrize("algorithm", ["ES256", "RS256", "EdDSA"])
def test_client_credentials_with_a_key(algorithm, tmp_path):
    file = tmp_path / "key.pem"
    file.write_text(new_pem(algorithm))
    keys = {"agent": (public_of(file.read_text()), algorithm)}
    options = {"grant": "client_credentials", "private_key": FromFile(str(file)), "signing_algorithm": algorithm}
    with MachineServer(keys=keys) as server, ProtectedServer(server, behaviour=Modern()) as resource:
        with connected(resource, **options) as client:
            assert client.call_tool("work").text == "done"
        assert "client_secret" not in server.token_requests[0]
        file.write_text(new_pem(algorithm))  # which the server does not know
        with pytest.raises(TokenRefused, match="invalid_client"):
            connected(resource, **options)


def test_a_server_without_a_page_for_people_is_good_enough(server, resource):
    server._metadata.update(authorization_endpoint=None, code_challenge_methods_supported=None)
    with connected(resource, **basic()) as client:
        assert client.call_tool("work").text == "done"


def test_a_token_that_ends_is_replaced_in_the_same_way(server, resource):
    server.expires_in = 1
    with connected(resource, **basic()) as client:
        end = time.monotonic() + 3
        while time.monotonic() < end:
            assert client.call_tool("work").text == "done"
    assert 2 <= len(server.token_requests) <= 12
    assert set(grants(server)) == {"client_credentials"}


def test_a_token_that_is_refused_is_replaced(server, resource):
    with connected(resource, **basic()) as client:
        server.expire_access()
        assert client.call_tool("work").text == "done"
    assert len(server.token_requests) == 2


def test_a_server_that_refuses_every_token_gets_two_of_them(server, resource):
    issue = server._issue

    def useless(granted, form):
        answer = issue(granted, form)
        server.access.clear()
        return answer

    server._issue = useless
    options = mcpsync.OAuth(way=nobody, store=MemoryStore(), client_id="agent", **basic())
    with pytest.raises(AuthError, match="refuses a token that was just got for it") as caught:
        mcpsync.connect(resource.url + "?key=SECRET", auth=options, protocol="2026-07-28")
    assert not isinstance(caught.value, NeedsLogin)
    assert "SECRET" not in str(caught.value)
    assert len(server.token_requests) <= 2


def test_threads_share_one_request(server, resource):
    with connected(resource, **basic()) as client:
        server.expire_access()
        texts: List[str] = []
        threads = [threading.Thread(target=lambda: texts.append(client.call_tool("work").text)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert texts == ["done"] * 8
    assert len(server.token_requests) == 2


def test_programs_share_what_is_kept(server, resource, tmp_path):
    for _ in range(2):
        with connected(resource, **basic(store=FileStore(str(tmp_path)))) as client:
            assert client.call_tool("work").text == "done"
    assert len(server.token_requests) == 1
    with connected(resource, **basic(store=FileStore(str(tmp_path)), issuer=server.issuer)) as client:
        assert client.call_tool("work").text == "done"
    assert len(server.token_requests) == 1


def test_what_a_person_left_is_not_used(server, resource, tmp_path):
    from tests.peers.authorization import browse

    store = FileStore(str(tmp_path))
    with connected(resource, way=browse, store=store, client_secret=SECRET) as client:
        assert client.credentials.grant == "authorization_code"
    with connected(resource, **basic(store=store)) as client:
        assert client.credentials.grant == "client_credentials"
    assert grants(server) == ["authorization_code", "client_credentials"]


def test_more_scopes_are_asked_for_once(server):
    def needs(message: Any) -> Any:
        return ["b"] if (message or {}).get("method") == "tools/call" else []

    with ProtectedServer(server, behaviour=Modern(), challenge_scope="a", needs=needs) as resource:
        with connected(resource, **basic()) as client:
            assert client.call_tool("work").text == "done"
            assert set(client.credentials.tokens.scope) == {"a", "b"}
        assert [set(request["scope"].split()) for request in server.token_requests] == [{"a"}, {"a", "b"}]


def test_scopes_that_are_not_given_are_an_error(server):
    server._tokens["scope"] = "a"
    grant = server._grant
    server._grant = lambda form, client_id: {**grant(form, client_id), "scope": "a"}

    def needs(message: Any) -> Any:
        return ["b"] if (message or {}).get("method") == "tools/call" else []

    with ProtectedServer(server, behaviour=Modern(), challenge_scope="a", needs=needs) as resource:
        with connected(resource, **basic()) as client:
            for _ in range(2):
                with pytest.raises(InsufficientScope):
                    client.call_tool("work")
            assert client.list_tools()
        assert len(server.token_requests) == 2


def test_a_refusal_is_the_error_of_the_call_and_not_repeated_at_once(server, resource):
    with pytest.raises(TokenRefused, match="invalid_client") as caught:
        connected(resource, **basic(client_secret="SECRET-wrong"))
    assert "SECRET" not in str(caught.value)
    assert len(server.token_requests) == 1


def test_failures_are_not_repeated_for_a_while(server, resource):
    with connected(resource, **basic()) as client:
        server.clients.clear()
        server.expire_access()
        for _ in range(3):
            with pytest.raises(AuthError, match="invalid_client"):
                client.call_tool("work")
        assert len(server.token_requests) == 2
        with pytest.raises(AuthError, match="invalid_client"):
            client.login()
        assert len(server.token_requests) == 3


def test_logout_lasts_until_login(server, resource):
    with connected(resource, **basic()) as client:
        assert client.logout()
        assert len(server.revoked) == 1
        with pytest.raises(NeedsLogin):
            client.call_tool("work")
        client.login()
        assert client.call_tool("work").text == "done"


def test_the_extension_is_declared(server, resource):
    with connected(resource, **basic()):
        pass
    messages = [each.message for each in resource.requests if each.path == "/mcp" and each.body]
    declared = messages[-1]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"]
    assert declared == {"io.modelcontextprotocol/oauth-client-credentials": {}}


# -- assertions ------------------------------------------------------------------------------------------------------


@pytest.fixture
def platform():
    return new_key()


@pytest.fixture
def believing(platform):
    with MachineServer(clients={"agent": None}, trusts=platform.public_key()) as server:
        yield server


def assertion(key: Any, audience: str, seconds: int = 60) -> str:
    claims = {"iss": "platform", "sub": "job", "aud": audience, "exp": int(time.time()) + seconds}
    return signed({"alg": "ES256"}, claims, key)


def test_what_the_platform_says_of_a_program(platform, believing, tmp_path):
    file = tmp_path / "token"
    file.write_text(assertion(platform, believing.issuer) + "\n")
    with (
        ProtectedServer(believing, behaviour=Modern()) as resource,
        connected(resource, grant="jwt_bearer", assertion=FromFile(str(file))) as client,
    ):
        assert client.call_tool("work").text == "done"
        file.write_text(assertion(platform, believing.issuer, 120))  # as the platform does now and then
        believing.expire_access()
        assert client.call_tool("work").text == "done"
        assert client.credentials.grant == "jwt_bearer"
    first, second = believing.token_requests
    assert first["assertion"] != second["assertion"]


def test_an_assertion_is_tried_once_and_nothing_else_is(platform, believing):
    with ProtectedServer(believing, behaviour=Modern()) as resource, pytest.raises(TokenRefused, match="invalid_grant"):
        connected(resource, grant="jwt_bearer", assertion=assertion(platform, believing.issuer, -5))
    assert len(believing.token_requests) == 1
    assert believing.authorizations == believing.registrations == []


def test_the_organization_decides(platform):
    pem = new_pem()
    with (
        MachineServer(
            clients={"agent": SECRET}, auth_methods=["client_secret_basic"], trusts=platform.public_key()
        ) as server,
        IdentityProvider(
            platform, "SECRET-id-token", clients={"agent-at-idp": "SECRET-idp"}, auth_methods=["client_secret_post"]
        ) as provider,
        ProtectedServer(server, behaviour=Modern(), challenge_scope="a") as resource,
    ):
        options = {
            "grant": "enterprise",
            "client_secret": SECRET,
            "id_token": lambda: "SECRET-id-token",
            "idp_issuer": provider.issuer,
            "idp_client_id": "agent-at-idp",
            "idp_client_secret": "SECRET-idp",
        }
        with connected(resource, **options) as client:
            assert client.call_tool("work").text == "done"
            assert client.credentials.tokens.scope == ("a",)
        (exchanged,) = provider.token_requests
        assert (exchanged["audience"], exchanged["resource"]) == (server.issuer, resource.url)
        (asked,) = server.token_requests
        assert set(asked) == {"grant_type", "assertion", "client_id"}
        with pytest.raises(TokenRefused) as caught:
            connected(resource, **{**options, "id_token": "SECRET-other"})
        assert "SECRET" not in str(caught.value)
        assert pem not in str(caught.value)
        assert len(server.token_requests) == 1


def test_no_thread_is_left(server, resource):
    with connected(resource, **basic()):
        pass
    assert [thread.name for thread in threading.enumerate() if "refresh" in thread.name] == []


def test_a_file_that_is_not_there_is_the_error_of_connect(server, resource):
    with pytest.raises(McpError, match="/no/such/key cannot be read"):
        connected(resource, grant="client_credentials", private_key=FromFile("/no/such/key"))
    assert server.token_requests == []


def test_a_host_goes_on_when_the_authorization_server_is_back(server, resource, tmp_path, monkeypatch):
    monkeypatch.setenv("MCPSYNC_HOME", str(tmp_path))
    monkeypatch.setattr("mcpsync.auth.unattended._HOLD_OFF", 0.1)
    refused = threading.Event()

    def down(exchange: Any) -> None:
        refused.set()
        exchange.respond(503, {})

    server.routes["/token"] = down
    oauth = {"grant": "client_credentials", "clientId": "agent", "clientSecret": SECRET}
    entry = {"type": "http", "url": resource.url, "oauth": oauth}
    with mcpsync.Host.from_config({"mcpServers": {"web": entry}}) as host:
        assert refused.wait(20)
        del server.routes["/token"]
        end = time.monotonic() + 30
        while not host.status()[0].ready:
            assert time.monotonic() < end, host.status()
            time.sleep(0.05)
        assert host.client("web").call_tool("work").text == "done"


@pytest.mark.parametrize(("status", "passing"), [(400, False), (401, False), (429, True), (500, True), (503, True)])
def test_failures_that_may_pass(server, resource, status, passing):
    server.routes["/token"] = lambda exchange: exchange.respond(status, {"error": "invalid_client"})
    with pytest.raises(AuthError) as caught:
        connected(resource, **basic())
    assert caught.value.passing is passing
