"""Servers with a URL in a host, of every transport, beside those with a command."""

from __future__ import annotations

import logging
import pickle
from contextlib import ExitStack
from typing import Any, Dict, List

import pytest

import mcpsync
from mcpsync import ConfigError, Host
from mcpsync.config import load
from tests.host.watching import DEMO, QUICK, Watch, host_of, names, row
from tests.peers.authority import Authority
from tests.peers.http import Exchange, HttpPeer
from tests.peers.http_servers import Legacy, Modern, Older


def told(peer: HttpPeer, header: str) -> List[Any]:
    return [request.headers.get(header) for request in peer.requests]


@pytest.mark.parametrize(
    ("server", "entry", "transport", "revision"),
    [
        (Modern, {}, "auto", "2026-07-28"),
        (Legacy, {}, "auto", "2025-11-25"),
        (Older, {}, "auto", "2024-11-05"),
        (Older, {"type": "sse"}, "sse", "2024-11-05"),
        (Older, {"transport": "sse", "type": "http"}, "sse", "2024-11-05"),
        (Legacy, {"type": "http"}, "http", "2025-11-25"),
        (Legacy, {"type": "streamable-http"}, "http", "2025-11-25"),
        (Legacy, {"transport": "streamable_http"}, "http", "2025-11-25"),
        (Modern, {"type": "streamableHttp"}, "http", "2026-07-28"),
        (Modern, {"type": "remote"}, "http", "2026-07-28"),
    ],
)
def test_every_transport_by_every_name(server: Any, entry: Dict[str, Any], transport: str, revision: str) -> None:
    with HttpPeer(server()) as peer, host_of({"web": {"url": peer.url, **entry}}) as host:
        status = row(host, "web")
        assert (status.state, status.transport, status.protocol_version) == ("ready", transport, revision)
        assert names(host) == ["mcp__web__work"]
        assert host.call_tool("mcp__web__work").text == "done"


def test_beside_a_command_and_a_server_that_is_not_there() -> None:
    with ExitStack() as stack:
        web, older = (stack.enter_context(HttpPeer(server)) for server in (Modern(), Older()))
        gone = stack.enter_context(HttpPeer(None))
        gone.close()
        servers = {"demo": DEMO, "web": {"url": web.url}, "old": {"url": older.url}, "gone": {"url": gone.url}}
        host = stack.enter_context(host_of(servers, backoff=mcpsync.Backoff((60.0,))))
        assert [status.ready for status in host.status()] == [True, True, True, False]
        lost = row(host, "gone")
        assert "cannot connect to 127.0.0.1:%d: connection refused" % gone.port in str(lost.error)
        assert (lost.state, lost.next_attempt is not None) == ("waiting", True)


def test_headers_of_the_entry_travel_and_are_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with HttpPeer(Legacy()) as peer:
        entry = {"url": peer.url + "/hidden-path?key=hidden-key", "headers": {"Authorization": "Bearer ${TOKEN}"}}
        with host_of({"web": entry}, environ={"TOKEN": "hidden-token"}) as host:
            assert host.call_tool("mcp__web__work").text == "done"
            status = row(host, "web")
            assert status.target == "http://127.0.0.1:%d" % peer.port
            assert "hidden" not in repr(host.status()) + repr(host) + repr(host.client("web"))
        assert set(told(peer, "authorization")) == {"Bearer hidden-token"}
        assert "DELETE" in [request.method for request in peer.requests]
    assert "hidden" not in caplog.text


def test_headers_for_one_server_are_laid_over_those_of_its_entry() -> None:
    counted: List[str] = []

    def fresh() -> Dict[str, str]:
        counted.append("token-%d" % len(counted))
        return {"authorization": counted[-1]}

    def for_server(name: str) -> Dict[str, Any]:
        return {"headers": {"one": {"X-Team": "red"}, "two": fresh}.get(name)}

    said = {"headers": {"Authorization": "said", "X-Team": "blue"}}
    with ExitStack() as stack:
        peers = {name: stack.enter_context(HttpPeer(Modern())) for name in ("one", "two", "three")}
        servers = {name: {"url": peer.url, **said} for name, peer in peers.items()}
        host = stack.enter_context(host_of(servers, for_server=for_server))
        assert all(status.ready for status in host.status())
    assert set(told(peers["one"], "x-team")) == {"red"} and set(told(peers["one"], "authorization")) == {"said"}
    assert told(peers["two"], "authorization") == counted and set(told(peers["two"], "x-team")) == {"blue"}
    assert set(told(peers["three"], "authorization")) == {"said"}


@pytest.mark.parametrize("option", [{"headers": {"Authorization": "x"}}, {"transport": "sse"}])
def test_what_belongs_to_one_server_is_not_given_to_all(option: Any) -> None:
    with pytest.raises(ConfigError, match=r"for_server|config says it"):
        Host.from_config({"mcpServers": {"demo": DEMO}}, **option)


def test_a_private_authority_for_all_servers(authority: Authority) -> None:
    with HttpPeer(Modern(), authority.server()) as peer:
        with host_of({"web": {"url": peer.url}}, verify=authority.ca) as host:
            assert row(host, "web").ready
        with host_of({"web": {"url": peer.url}}, backoff=QUICK) as host:
            assert "certificate is not accepted" in str(row(host, "web").error)


def test_credentials_that_are_refused_are_not_tried_again() -> None:
    def refuse(exchange: Exchange) -> None:
        exchange.respond(403, "no", "text/plain")

    with HttpPeer(refuse) as peer, host_of({"web": {"url": peer.url}}, backoff=QUICK) as host:
        status = row(host, "web")
        assert (status.state, status.next_attempt) == ("down", None)
        assert "HTTP 403" in str(status.error)


def test_a_server_that_comes_later_is_found() -> None:
    up: List[bool] = []
    server, watch = Legacy(), Watch()

    def serve(exchange: Exchange) -> None:
        if up:
            server(exchange)
        else:
            exchange.respond(503, b"")

    with HttpPeer(serve) as peer, host_of({"web": {"url": peer.url}}, watch, backoff=QUICK) as host:
        up.append(True)
        watch.until(lambda: names(host) == ["mcp__web__work"])


def test_times_of_the_entry() -> None:
    def hang(exchange: Exchange, message: Any) -> None:
        exchange.wait_closed()

    with HttpPeer(Modern(hang)) as peer:
        entry = {"url": peer.url, "timeout": 0.2}
        with host_of({"web": entry}) as host, pytest.raises(mcpsync.RequestTimeout):
            host.call_tool("mcp__web__work")


def test_an_untyped_url_has_a_note_and_a_typed_one_none() -> None:
    config = load(
        {"mcpServers": {"a": {"url": "https://a.example/mcp"}, "b": {"url": "https://b.example", "type": "sse"}}}
    )
    assert [(found.severity, found.path) for found in config.diagnostics] == [("note", "mcpServers.a.url")]
    assert "Streamable HTTP, then as the older HTTP+SSE" in config.diagnostics[0].message


def test_a_unix_socket(tmp_path: Any) -> None:
    path = str(tmp_path / "s.sock")
    with HttpPeer(Modern(), path=path), host_of({"web": {"url": "unix://%s#/mcp" % path}}) as host:
        assert host.call_tool("mcp__web__work").text == "done"
        assert row(host, "web").target == "unix://" + path


def test_a_host_with_urls_pickles() -> None:
    with HttpPeer(Legacy()) as peer:
        host = pickle.loads(pickle.dumps(host_of({"web": {"url": peer.url, "headers": {"X-A": "b"}}})))
        with host:
            assert host.call_tool("mcp__web__work").text == "done"
        assert set(told(peer, "x-a")) == {"b"}
