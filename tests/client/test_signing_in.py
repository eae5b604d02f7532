"""Clients that sign in, stay signed in and sign out, at an authorization server on real sockets."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Callable, Iterator, List, Mapping, Tuple

import pytest

import mcpsync
from mcpsync import AuthError, Client, ConfigError, HttpError, InsufficientScope, NeedsLogin, OAuth
from mcpsync.auth.credentials import Credentials
from mcpsync.auth.store import FileStore, MemoryStore
from mcpsync.auth.vault import Vault
from tests.peers.authorization import AuthorizationServer, ProtectedServer, browse
from tests.peers.http import Exchange
from tests.peers.http_servers import Legacy, Modern

PATIENCE = 20.0


def no_person(url: str) -> str:
    raise AssertionError("nobody is to be asked")


@contextmanager
def signing(behaviour: Any = None, **how: Any) -> Iterator[Tuple[AuthorizationServer, ProtectedServer]]:
    """An authorization server and an MCP server that trusts it."""
    resource_options = {name: how.pop(name) for name in ("challenge_scope", "scopes", "needs") if name in how}
    with (
        AuthorizationServer(**how) as server,
        ProtectedServer(server, behaviour=behaviour or Modern(), **resource_options) as resource,
    ):
        yield server, resource


def oauth(store: Any, way: Callable[[str], str] = browse, **more: Any) -> OAuth:
    return OAuth(way=way, store=store, **more)


def stored(store: Any, resource: ProtectedServer, account: str = "127.0.0.1") -> Credentials:
    found = Vault(store, resource.url, account).current()
    assert found is not None
    return found


def change_tokens(store: Any, resource: ProtectedServer, **fields: Any) -> None:
    found = stored(store, resource)
    assert found.tokens is not None
    store.save(found.key, replace(found, tokens=replace(found.tokens, **fields)))


def refreshes(server: AuthorizationServer) -> List[Mapping[str, str]]:
    return [each for each in server.token_requests if each["grant_type"] == "refresh_token"]


def signed_posts(resource: ProtectedServer) -> List[bool]:
    return ["authorization" in each.headers for each in resource.of("POST")]


def signed_in(resource: ProtectedServer, store: Any) -> None:
    """Leave a sign-in in the store."""
    mcpsync.connect(resource.url, auth=oauth(store)).close()


@pytest.mark.parametrize("behaviour", [Modern, Legacy])
def test_connect_signs_in_and_later_ones_need_nobody(behaviour: Any) -> None:
    store = MemoryStore()
    with signing(behaviour()) as (server, resource):
        with mcpsync.connect(resource.url, auth=oauth(store)) as client:
            assert client.state == "ready"
            assert client.call_tool("work").text == "done"
        assert len(server.authorizations) == 1
        assert signed_posts(resource)[0] is False
        assert all(signed_posts(resource)[1:])
        count = len(resource.requests)
        with mcpsync.connect(resource.url, auth=oauth(store, no_person)) as client:
            assert client.call_tool("work").text == "done"
        assert all("authorization" in each.headers for each in resource.requests[count:])
        assert len(server.token_requests) == 1
        assert server.refused == []


def test_whoever_may_not_ask_is_told_so() -> None:
    store = MemoryStore()
    with signing() as (server, resource):
        with pytest.raises(NeedsLogin, match="sign in"):
            mcpsync.connect(resource.url, auth=oauth(store, no_person, interactive=False))
        states: List[str] = []
        client = Client(resource.url, auth=oauth(store), on_state=states.append)
        try:
            with pytest.raises(NeedsLogin):
                client.open()
            assert client.state == "needs_login"
            assert isinstance(client.last_error, NeedsLogin)
            with pytest.raises(NeedsLogin):
                client.call_tool("work")
            assert server.authorizations == []
            client.login()
            assert client.call_tool("work").text == "done"
            assert client.state == "ready"
            assert "needs_login" in states
        finally:
            client.close()


def test_one_sign_in_for_all_who_want_it() -> None:
    store = MemoryStore()
    begun, go_on = threading.Event(), threading.Event()

    def slowly(url: str) -> str:
        begun.set()
        assert go_on.wait(PATIENCE)
        return browse(url)

    with signing() as (server, resource):
        client = Client(resource.url, auth=oauth(store, slowly))
        threads = [threading.Thread(target=client.login) for _ in range(4)]
        for each in threads:
            each.start()
        assert begun.wait(PATIENCE)
        go_on.set()
        for each in threads:
            each.join(PATIENCE)
        assert client.call_tool("work").text == "done"
        client.close()
        assert len(server.authorizations) == 1


def test_login_finds_out_what_the_server_says() -> None:
    with signing(challenge_scope="mcp:basic", scopes=["mcp:basic", "mcp:other"]) as (server, resource):
        client = Client(resource.url, auth=oauth(MemoryStore()))
        client.login()
        client.close()
        assert server.authorizations[0]["scope"] == "mcp:basic"


def test_a_refused_token_is_refreshed_once_for_all_threads() -> None:
    store = MemoryStore()
    with signing() as (server, resource), mcpsync.connect(resource.url, auth=oauth(store)) as client:
        server.expire_access()
        results: List[str] = []
        threads = [threading.Thread(target=lambda: results.append(client.call_tool("work").text)) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(PATIENCE)
        assert results == ["done"] * 8
        assert len(refreshes(server)) == 1
        assert server.refused == []
        assert len(server.authorizations) == 1
        assert stored(store, resource).tokens == client._signing.account.session.credentials.tokens  # type: ignore


def test_an_expired_token_is_refreshed_before_anything_is_sent() -> None:
    """FAULTS G1."""
    store = MemoryStore()
    with signing() as (server, resource):
        signed_in(resource, store)
        change_tokens(store, resource, expires_at=time.time() - 5)
        server.expire_access()
        count = len(resource.requests)
        with mcpsync.connect(resource.url, auth=oauth(store, no_person)) as client:
            assert client.call_tool("work").text == "done"
        assert len(refreshes(server)) == 1
        assert all("authorization" in each.headers for each in resource.requests[count:])
        assert len(resource.requests[count:]) == 2


def test_a_token_is_replaced_before_it_fails_and_nobody_waits_for_that() -> None:
    store = MemoryStore()
    asked, answer = threading.Event(), threading.Event()

    def slow_refresh(exchange: Exchange) -> bool:
        if b"refresh_token" in exchange.request.body:
            asked.set()
            assert answer.wait(PATIENCE)
        return True

    with signing(routes={"/token": slow_refresh}) as (server, resource):
        signed_in(resource, store)
        change_tokens(store, resource, expires_at=time.time() + 10, extra={"obtained_at": time.time() - 300})
        with mcpsync.connect(resource.url, auth=oauth(store, no_person)) as client:
            assert client.call_tool("work").text == "done"  # with the old one
            assert asked.wait(PATIENCE)
            assert client.call_tool("work").text == "done"
            assert len(refreshes(server)) == 0
            answer.set()
        assert len(refreshes(server)) == 1  # close() waits, so that what it brings is kept
        kept = stored(store, resource).tokens
        assert kept is not None
        assert kept.refresh_token in server.refresh


def test_a_sign_in_that_was_ended_needs_another_and_says_so_without_asking_again() -> None:
    store = MemoryStore()
    with signing() as (server, resource), mcpsync.connect(resource.url, auth=oauth(store)) as client:
        server.revoke_all()
        with pytest.raises(NeedsLogin, match="invalid_grant"):
            client.call_tool("work")
        assert client.state == "needs_login"
        asked = len(refreshes(server)), len(resource.requests)
        for _ in range(3):
            with pytest.raises(NeedsLogin):
                client.call_tool("work")
        assert (len(refreshes(server)), len(resource.requests)) == asked
        assert stored(store, resource).tokens is None
        assert len(server.authorizations) == 1
        client.login()
        assert client.state == "ready"
        assert client.call_tool("work").text == "done"
        assert len(server.registrations) == 1  # the client is still who it was


def test_one_tool_that_refuses_every_token_takes_nothing_else_down() -> None:
    """FAULTS G5."""

    def work(exchange: Exchange, message: Any) -> None:
        if message["params"]["name"] == "forbidden":
            exchange.respond(401, WWW_Authenticate='Bearer error="invalid_token", error_description="not this one"')
        else:
            exchange.result({"resultType": "complete", "content": [{"type": "text", "text": "done"}]})

    store = MemoryStore()
    with signing(Modern(work)) as (server, resource), mcpsync.connect(resource.url, auth=oauth(store)) as client:
        for number in range(1, 4):
            count = len(resource.requests)
            with pytest.raises(NeedsLogin, match="not this one"):
                client.call_tool("forbidden")
            assert len(resource.requests) - count == 2
            assert len(refreshes(server)) == number
            assert client.call_tool("work").text == "done"
            assert client.state == "ready"
        assert len(server.authorizations) == 1


def scope_for(message: Any) -> List[str]:
    if message is None or message.get("method") != "tools/call":
        return ["mcp:basic"]
    return ["mcp:write"] if message["params"]["name"] == "write" else ["mcp:basic"]


def test_more_scopes_are_asked_for_by_login_with_those_that_were_there() -> None:
    """FAULTS G5."""
    store = MemoryStore()
    with (
        signing(challenge_scope="mcp:basic", needs=scope_for) as (server, resource),
        mcpsync.connect(resource.url, auth=oauth(store)) as client,
    ):
        assert client.call_tool("work").text == "done"
        count = len(resource.requests)
        with pytest.raises(InsufficientScope, match="mcp:write"):
            client.call_tool("write")
        assert len(resource.requests) - count == 1
        assert client.state == "ready"
        assert client.call_tool("work").text == "done"
        client.login()
        assert client.call_tool("write").text == "done"
        assert [each["scope"].split() for each in server.authorizations] == [
            ["mcp:basic"],
            ["mcp:basic", "mcp:write"],
        ]


def test_connect_steps_up_once() -> None:
    with signing(challenge_scope="a", needs=lambda message: ["a", "b"]) as (server, resource):
        with mcpsync.connect(resource.url, auth=oauth(MemoryStore())) as client:
            assert client.call_tool("work").text == "done"
        assert [each["scope"] for each in server.authorizations] == ["a", "a b"]


def test_a_server_that_is_never_content_is_not_asked_for_ever() -> None:
    class Never(Modern):
        def __call__(self, exchange: Exchange) -> None:
            exchange.respond(403, WWW_Authenticate='Bearer error="insufficient_scope", scope="more"')

    with signing(Never()) as (server, resource):
        with pytest.raises(InsufficientScope):
            mcpsync.connect(resource.url, auth=oauth(MemoryStore()))
        assert len(server.authorizations) == 2


def test_a_plain_403_is_the_servers_own_answer() -> None:
    def work(exchange: Exchange, message: Any) -> None:
        exchange.respond(403, "not on Sundays", "text/plain")

    with signing(Modern(work)) as (server, resource):
        with mcpsync.connect(resource.url, auth=oauth(MemoryStore())) as client:
            with pytest.raises(HttpError, match="Sundays") as caught:
                client.call_tool("work")
            assert caught.value.status == 403
        assert len(server.token_requests) == 1


def test_a_server_that_moves_to_another_authorization_server() -> None:
    store = MemoryStore()
    with AuthorizationServer() as first, AuthorizationServer() as second:
        with ProtectedServer(first, behaviour=Modern()) as resource:
            with mcpsync.connect(resource.url, auth=oauth(store)) as client:
                resource.trusted = [second]
                with pytest.raises(NeedsLogin):
                    client.call_tool("work")
                client.login()
                assert client.call_tool("work").text == "done"
            assert stored(store, resource).issuer == second.issuer
        client_ids = {each["client_id"] for each in (*second.authorizations, *second.token_requests)}
        assert client_ids == set(second.clients)
        assert len(first.authorizations) == len(second.authorizations) == 1


def test_an_authorization_server_that_is_down_for_a_while() -> None:
    store = MemoryStore()
    down = threading.Event()

    def perhaps(exchange: Exchange) -> bool:
        if down.is_set():
            exchange.respond(503)
            return False
        return True

    with (
        signing(routes={"/token": perhaps}) as (server, resource),
        mcpsync.connect(resource.url, auth=oauth(store)) as client,
    ):
        down.set()
        server.expire_access()
        with pytest.raises(AuthError) as caught:
            client.call_tool("work")
        assert not isinstance(caught.value, NeedsLogin)
        assert stored(store, resource).tokens is not None
        down.clear()
        assert client.call_tool("work").text == "done"


def test_logout_is_for_all_processes_and_tells_the_authorization_server() -> None:
    store = MemoryStore()
    with (
        signing() as (server, resource),
        mcpsync.connect(resource.url, auth=oauth(store)) as client,
        Client(resource.url, auth=oauth(store)) as other,
    ):
        had = stored(store, resource).tokens
        assert had is not None
        assert client.logout() is True
        assert server.revoked[0] == had.refresh_token
        assert store.keys() == []
        for each in (client, other):
            with pytest.raises(NeedsLogin, match="signed out"):
                each.call_tool("work")
            assert each.state == "needs_login"
        assert client.logout() is False


def test_what_another_process_signed_in_for_is_used() -> None:
    store = MemoryStore()
    with signing() as (server, resource):
        client = Client(resource.url, auth=oauth(store, no_person))
        other = Client(resource.url, auth=oauth(store))
        try:
            with pytest.raises(NeedsLogin):
                client.open()
            other.login()
            assert client.call_tool("work").text == "done"
            server.revoke_all()
            with pytest.raises(NeedsLogin):
                client.call_tool("work")
            assert client.state == "needs_login"
            other.login()
            assert client.state == "ready"
            assert client.call_tool("work").text == "done"
        finally:
            client.close()
            other.close()


def test_a_connection_that_waits_for_a_sign_in_goes_on_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpsync.connection.awaiting_login._GAP", 0.05)
    store = MemoryStore()
    ready = threading.Event()
    with signing() as (_, resource):
        waiting = Client(
            resource.url, auth=oauth(store, no_person), on_state=lambda state: ready.set() if state == "ready" else None
        )
        try:
            with pytest.raises(NeedsLogin):
                waiting.open()
            assert not ready.wait(0.2)
            signed_in(resource, store)
            assert ready.wait(PATIENCE)
        finally:
            waiting.close()


def test_tokens_of_another_account_are_not_used() -> None:
    store = MemoryStore()
    with signing() as (_, resource):
        signed_in(resource, store)
        with pytest.raises(NeedsLogin):
            mcpsync.connect(resource.url, name="other", auth=oauth(store, interactive=False))
        with mcpsync.connect(resource.url, name="other", auth=oauth(store, no_person, account="127.0.0.1")) as client:
            assert client.state == "ready"


def test_an_auth_of_the_users_own() -> None:
    class Key:
        def headers(self, method: str, url: str, deadline: Any) -> Mapping[str, str]:
            return {"Authorization": "Bearer mine"}

        def challenged(self, challenge: Any, deadline: Any) -> bool:
            raise NeedsLogin("the key is no longer good")

        def observed(self, url: str, headers: Mapping[str, str]) -> None:
            pass

    with signing() as (server, resource):
        with pytest.raises(NeedsLogin, match="no longer good"):
            mcpsync.connect(resource.url, auth=Key())
        server.access["mine"] = {}
        with mcpsync.connect(resource.url, auth=Key()) as client:
            assert client.call_tool("work").text == "done"
            with pytest.raises(ConfigError, match="no way to sign in"):
                client.login()


@pytest.mark.parametrize(
    ("target", "options", "text"),
    [
        (["server"], {"auth": "oauth"}, "over HTTP"),
        ("http://127.0.0.1:1/mcp", {"auth": "basic"}, "auth is 'oauth'"),
        ("http://127.0.0.1:1/mcp", {"auth": {"client_Id": "x"}}, "client_Id"),
        ("http://127.0.0.1:1/mcp", {"auth": {"client_secret": "x"}}, "client_id"),
        ("http://127.0.0.1:1/mcp", {"auth": {"way": "pigeon"}}, "way"),
    ],
)
def test_options_that_do_not_go_together(target: Any, options: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        Client(target, **options)


def test_no_secret_is_shown(tmp_path: Any, caplog: pytest.LogCaptureFixture) -> None:
    store = FileStore(str(tmp_path))
    shown: List[str] = []
    with (
        caplog.at_level(logging.DEBUG),
        signing(auth_methods=["client_secret_post"]) as (
            server,
            resource,
        ),
        mcpsync.connect(resource.url, auth=oauth(store)) as client,
    ):
        server.expire_access()
        client.call_tool("work")
        shown += [repr(client), repr(client._signing), repr(client._options), repr(stored(store, resource))]
        secrets = server.secrets
        server.revoke_all()
        with pytest.raises(NeedsLogin) as caught:
            client.call_tool("work")
        shown += [str(caught.value), repr(caught.value), repr(caught.value.__dict__)]
    assert len(secrets) > 5
    for text in (*shown, caplog.text):
        assert not [secret for secret in secrets if secret in text]
