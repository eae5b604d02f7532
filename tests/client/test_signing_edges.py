"""Staying signed in when things go wrong: slow renewals, calls that run out of time, stores that fail, forks."""

from __future__ import annotations

import logging
import os
import ssl
import threading
import time
from functools import partial
from typing import Any, Iterator, List

import pytest
import requests

import mcpsync
from mcpsync import AuthError, Client, NeedsLogin, OAuth, RequestTimeout
from mcpsync.auth.credentials import Credentials, StoreKey
from mcpsync.auth.flight import Flight
from mcpsync.auth.store import FileStore, MemoryStore
from mcpsync.deadline import FOREVER, Deadline
from tests.client.test_signing_in import (
    PATIENCE,
    change_tokens,
    no_person,
    oauth,
    refreshes,
    signed_in,
    signing,
    stored,
)
from tests.peers.authority import Authority
from tests.peers.authorization import AuthorizationServer, ProtectedServer, browse
from tests.peers.http import Exchange
from tests.peers.http_servers import Legacy, Modern, Older


class SlowRefresh:
    """A token endpoint whose refreshes wait until they may go on."""

    def __init__(self) -> None:
        self.asked, self.go = threading.Event(), threading.Event()

    def __call__(self, exchange: Exchange) -> bool:
        if b"grant_type=refresh_token" in exchange.request.body:
            self.asked.set()
            assert self.go.wait(PATIENCE)
        return True


@pytest.fixture
def slow() -> Iterator[SlowRefresh]:
    found = SlowRefresh()
    yield found
    found.go.set()


def flights() -> List[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.endswith("-refresh")]


def test_a_call_that_runs_out_of_time_leaves_the_refresh_to_the_others(slow: SlowRefresh) -> None:
    store = MemoryStore()
    with signing(routes={"/token": slow}) as (server, resource):
        with mcpsync.connect(resource.url, auth=oauth(store)) as client:
            server.expire_access()
            began = time.monotonic()
            with pytest.raises(RequestTimeout):
                client.call_tool("work", timeout=0.2)
            assert time.monotonic() - began < 2
            future = client.submit("work")
            assert slow.asked.wait(PATIENCE)
            assert future.cancel()
            slow.go.set()
            assert client.call_tool("work").text == "done"
        assert len(refreshes(server)) == 1
        assert server.refused == []


def test_close_is_not_held_up_for_longer_than_it_may_take(slow: SlowRefresh) -> None:
    store = MemoryStore()
    with signing(routes={"/token": slow}) as (server, resource):
        client = mcpsync.connect(resource.url, auth=oauth(store))
        server.expire_access()
        outcome: List[BaseException] = []

        def call() -> None:
            try:
                client.call_tool("work")
            except mcpsync.McpError as error:
                outcome.append(error)

        caller = threading.Thread(target=call)
        caller.start()
        assert slow.asked.wait(PATIENCE)
        began = time.monotonic()
        client.close(0.3)
        assert time.monotonic() - began < 2
        caller.join(PATIENCE)
        assert isinstance(outcome[0], mcpsync.ClientClosed)
        (flight,) = flights()
        slow.go.set()
        flight.join(PATIENCE)
        assert not flight.is_alive()
        tokens = stored(store, resource).tokens
        assert tokens is not None
        assert tokens.refresh_token in server.refresh  # what came after the close was kept


class FailingStore(MemoryStore):
    """Cannot keep anything any more once it is told so."""

    full = False
    error: Exception = AuthError("no space is left")

    def save(self, key: StoreKey, value: Credentials) -> None:
        if self.full:
            raise self.error
        super().save(key, value)


def test_tokens_that_cannot_be_kept_are_used_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    store = FailingStore()
    with signing() as (server, resource), mcpsync.connect(resource.url, auth=oauth(store)) as client:
        store.full = True
        for number in (1, 2):
            server.expire_access()
            with caplog.at_level(logging.WARNING, "mcpsync"):
                assert client.call_tool("work").text == "done"
            assert len(refreshes(server)) == number
        assert "no space is left" in caplog.text
        assert server.refused == []


def test_a_store_that_breaks_is_an_error_of_the_call() -> None:
    store = FailingStore()
    store.error = KeyError("secret-detail")
    with signing() as (server, resource), mcpsync.connect(resource.url, auth=oauth(store)) as client:
        store.full = True
        server.expire_access()
        with pytest.raises(AuthError, match="KeyError") as caught:
            client.call_tool("work")
        assert "secret-detail" not in str(caught.value)


def test_threads_that_connect_at_the_same_time_ask_once() -> None:
    store = MemoryStore()
    begin = threading.Barrier(4, timeout=PATIENCE)

    def slowly(url: str) -> str:
        # the others are refused meanwhile, and wait for their turn
        assert resource.wait_for(lambda: sum("authorization" not in each.headers for each in resource.of("POST")) == 4)
        return browse(url)

    texts: List[str] = []
    with signing() as (server, resource):

        def use() -> None:
            begin.wait()
            with mcpsync.connect(resource.url, auth=oauth(store, slowly)) as client:
                texts.append(client.call_tool("work").text)

        threads = [threading.Thread(target=use) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(PATIENCE)
        assert texts == ["done"] * 4
        assert len(server.authorizations) == 1


def test_the_long_stream_is_opened_again_after_a_sign_in() -> None:
    opened = threading.Semaphore(0)

    class Streaming(Legacy):
        def _get(self, exchange: Exchange) -> None:
            opened.release()
            super()._get(exchange)

    store = MemoryStore()
    with (
        signing(Streaming(stream=True)) as (server, resource),
        mcpsync.connect(resource.url, auth=oauth(store), protocol="legacy") as client,
    ):
        assert opened.acquire(timeout=PATIENCE)
        server.revoke_all()
        with pytest.raises(NeedsLogin):
            client.call_tool("work")
        client.login()
        assert opened.acquire(timeout=PATIENCE)
        assert client.call_tool("work").text == "done"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_refreshes_for_itself(tmp_path: Any) -> None:
    store = FileStore(str(tmp_path))
    with signing() as (server, resource):
        signed_in(resource, store)
        with mcpsync.connect(resource.url, auth=oauth(store, no_person)) as client:
            server.expire_access()
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    code = 0 if client.call_tool("work", timeout=PATIENCE).text == "done" else 2
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
            assert client.call_tool("work").text == "done"
        assert len(refreshes(server)) == 1  # the parent finds what the child has stored
        assert server.refused == []


def test_a_client_that_was_never_opened_pickles_with_its_options() -> None:
    import pickle

    client = Client("http://127.0.0.1:1/mcp", auth=OAuth(client_id="x", scopes=["a"]))
    again = pickle.loads(pickle.dumps(client))
    assert again._options.auth == OAuth(client_id="x", scopes=["a"])
    client.close()
    again.close()


def test_options_show_no_secret() -> None:
    options = OAuth(client_id="x", client_secret="hush", parameters={"key": "hush"})
    assert "hush" not in repr(options)
    assert "hush" not in repr(Client("http://127.0.0.1:1/mcp", auth=options)._options)


def test_a_token_without_an_end_is_used_until_it_is_refused() -> None:
    store = MemoryStore()
    with (
        signing(expires_in=None, gives_refresh=False) as (server, resource),
        mcpsync.connect(resource.url, auth=oauth(store)) as client,
    ):
        assert client.call_tool("work").text == "done"
        server.expire_access()
        with pytest.raises(NeedsLogin, match="no refresh token"):
            client.call_tool("work")
        assert client.state == "needs_login"


def test_an_expired_token_without_a_refresh_token_is_not_sent() -> None:
    store = MemoryStore()
    with signing(gives_refresh=False) as (_, resource):
        signed_in(resource, store)
        change_tokens(store, resource, expires_at=time.time() - 1)
        count = len(resource.requests)
        with pytest.raises(NeedsLogin):
            mcpsync.connect(resource.url, auth=oauth(store, no_person, interactive=False))
        assert ["authorization" in each.headers for each in resource.requests[count:]] == [False]


def test_a_flight_is_one_run_for_all_and_its_error_is_each_ones_own() -> None:
    landing = threading.Event()
    runs: List[int] = []

    def run() -> None:
        runs.append(1)
        assert landing.wait(PATIENCE)
        raise AuthError("no luck")

    flight = Flight("a try", "", run)
    flight.start("mcpsync-test-refresh")
    with pytest.raises(RequestTimeout, match="a try"):
        flight.wait(Deadline(0.01))
    errors: List[AuthError] = []

    def wait() -> None:
        try:
            flight.wait(FOREVER)
        except AuthError as error:
            errors.append(error)

    waiting = [threading.Thread(target=wait) for _ in range(3)]
    for each in waiting:
        each.start()
    landing.set()
    for each in waiting:
        each.join(PATIENCE)
    assert [str(each) for each in errors] == ["no luck"] * 3
    assert len({id(each) for each in errors}) == 3
    assert runs == [1]
    assert flight.over
    with pytest.raises(AuthError):
        flight.wait(Deadline(0))


class GuardedOlder(ProtectedServer):
    """HTTP+SSE, with a token for the stream and for each message."""

    def _answer(self, exchange: Exchange) -> None:
        if exchange.request.path.startswith("/messages/"):
            self._guard(exchange)
        else:
            super()._answer(exchange)


def test_the_older_transport_is_found_and_signed() -> None:
    store = MemoryStore()
    with AuthorizationServer() as server, GuardedOlder(server, behaviour=Older()) as resource:
        with mcpsync.connect(resource.url, auth=oauth(store)) as client:
            assert client.protocol_version == "2024-11-05"
            server.expire_access()
            assert client.call_tool("work").text == "done"
        assert len(refreshes(server)) == len(server.authorizations) == 1
        messages = [each for each in resource.of("POST") if each.path.startswith("/messages/")]
        assert all("authorization" in each.headers for each in messages)


def test_a_sign_out_that_the_server_does_not_take_is_one_here(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    with signing(routes={"/revoke": lambda exchange: exchange.respond(503)}) as (_, resource):
        signed_in(resource, store)
        client = Client(resource.url, auth=oauth(store))
        assert client.logout() is False
        assert "were not revoked" in caplog.text
        assert store.keys() == []
        client.close()


def test_whoever_waits_for_another_ones_sign_in_does_so_within_its_time() -> None:
    begun, go = threading.Event(), threading.Event()

    def slowly(url: str) -> str:
        begun.set()
        assert go.wait(PATIENCE)
        return browse(url)

    store = MemoryStore()
    with signing() as (_, resource):
        client = Client(resource.url, auth=oauth(store, slowly))
        first = threading.Thread(target=client.login)
        first.start()
        assert begun.wait(PATIENCE)
        with pytest.raises(AuthError, match="another thread is signing in"):
            client.login(timeout=0.05)
        go.set()
        first.join(PATIENCE)
        assert client.call_tool("work").text == "done"
        client.close()


def test_what_a_session_of_the_users_says_of_the_network_holds_for_signing_in(authority: Authority) -> None:
    with (
        AuthorizationServer(tls=authority.server()) as server,
        ProtectedServer(server, behaviour=Modern(), tls=authority.server()) as resource,
        requests.Session() as session,
    ):
        context = ssl.create_default_context(cafile=str(authority.ca))
        way = partial(browse, context=context)
        with pytest.raises(mcpsync.McpError, match="certificate"):
            mcpsync.connect(resource.url, auth=oauth(MemoryStore(), way))
        session.verify = str(authority.ca)
        with mcpsync.connect(resource.url, session=session, auth=oauth(MemoryStore(), way)) as client:
            assert client.call_tool("work").text == "done"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"callback_port": 70000}, "callback_port"),
        ({"timeout": 0}, "timeout"),
        ({"allow_hosts": "as.example"}, "allow_hosts"),
        ({"way": "pigeon"}, "way"),
    ],
)
def test_options_that_mean_nothing(options: Any, text: str) -> None:
    with pytest.raises(mcpsync.ConfigError, match=text):
        OAuth(**options)


@pytest.mark.parametrize("expires_in", [0, -5, 0.001])
def test_a_token_that_is_expired_when_it_comes_is_used_until_it_is_refused(expires_in: float) -> None:
    with (
        AuthorizationServer(tokens={"expires_in": expires_in}) as issuer,
        ProtectedServer(issuer, behaviour=Modern()) as resource,
        mcpsync.connect(resource.url, auth=OAuth(way=browse, store=MemoryStore())) as client,
    ):
        assert [client.call_tool("work").text for _ in range(3)] == ["done"] * 3
        issuer.expire_access()
        assert client.call_tool("work").text == "done"
        assert expires_in > 0 or len(issuer.token_requests) == 2  # the sign-in, and the renewal after the refusal
