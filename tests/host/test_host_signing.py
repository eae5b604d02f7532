"""Servers of a host that want that somebody signs in."""

from __future__ import annotations

from typing import Any

import mcpsync
from mcpsync import OAuth
from mcpsync.auth.store import MemoryStore
from tests.host.watching import Watch, host_of, names, row
from tests.peers.authorization import AuthorizationServer, ProtectedServer, browse
from tests.peers.http import HttpPeer
from tests.peers.http_servers import Modern


def nobody(url: str) -> str:
    raise AssertionError("a host asks nobody")


def signed_in(url: str, store: Any, account: str) -> None:
    mcpsync.connect(url, auth=OAuth(way=browse, store=store, account=account)).close()


def test_a_server_that_wants_a_sign_in_says_so_and_goes_on_after_it(monkeypatch: Any) -> None:
    monkeypatch.setattr("mcpsync.connection.awaiting_login._GAP", 0.05)
    store = MemoryStore()
    watch = Watch()
    with (
        AuthorizationServer() as server,
        ProtectedServer(server, behaviour=Modern()) as web,
        HttpPeer(Modern()) as free,
    ):
        servers = {"web": {"url": web.url}, "free": {"url": free.url}}
        with host_of(servers, watch, auth=OAuth(way=nobody, store=store)) as host:
            assert row(host, "free").ready
            waiting = row(host, "web")
            assert (waiting.state, waiting.ready, waiting.next_attempt) == ("needs_login", False, None)
            assert "sign in" in str(waiting.error)
            assert names(host) == ["mcp__free__work"]
            count = len(web.requests)
            assert row(host, "web").state == "needs_login"
            assert len(web.requests) == count
            signed_in(web.url, store, "web")
            watch.until(lambda: row(host, "web").ready)
            assert host.call_tool("mcp__web__work").text == "done"


def test_what_was_signed_in_for_is_used_from_the_start() -> None:
    store = MemoryStore()
    with AuthorizationServer() as server, ProtectedServer(server, behaviour=Modern()) as web:
        signed_in(web.url, store, "web")
        with host_of({"web": {"url": web.url}}, auth=OAuth(way=nobody, store=store)) as host:
            assert row(host, "web").ready
            assert host.call_tool("mcp__web__work").text == "done"


def test_an_entry_that_wants_nobody_to_sign_in_gets_the_refusal() -> None:
    with AuthorizationServer() as server, ProtectedServer(server) as web:
        servers = {"web": {"url": web.url, "auth": "none"}}
        with host_of(servers) as host:
            refused = row(host, "web")
            assert refused.state == "down"
            assert "401" in str(refused.error)


def test_a_program_signs_in_with_its_own_way() -> None:
    watch = Watch()
    auth = OAuth(way=browse, store=MemoryStore())
    with AuthorizationServer() as server, ProtectedServer(server, behaviour=Modern()) as web:
        servers = {"web": {"url": web.url}}
        with host_of(servers, watch, auth=auth) as host:
            assert row(host, "web").state == "needs_login"
            assert server.authorizations == []
            host.client("web").login()
            watch.until(lambda: row(host, "web").ready)
            assert host.call_tool("mcp__web__work").text == "done"
            assert host.client("web").logout()
            assert row(host, "web").state == "needs_login"
            assert names(host) == []
