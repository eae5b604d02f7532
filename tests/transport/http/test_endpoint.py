"""One URL and how it is reached: certificates, proxies, headers, cookies, redirects, sessions of the user's."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any, Dict, List

import pytest
import requests
import requests.adapters
from requests.auth import HTTPBasicAuth, HTTPDigestAuth
from urllib3.util.wait import wait_for_read

import mcpsync
from mcpsync.deadline import Deadline
from mcpsync.errors import (
    ConfigError,
    ConnectFailed,
    ConnectionLost,
    HttpError,
    McpError,
    RequestTimeout,
    TransportError,
)
from mcpsync.transport.base import Frame
from mcpsync.transport.http.endpoint import Endpoint
from tests.peers.authority import Authority
from tests.peers.http import Exchange, HttpPeer, Proxy
from tests.transport.http.wired import LEGACY, PATIENCE, until, wired


def echo(exchange: Exchange) -> None:
    if exchange.request.method == "POST":
        exchange.result(exchange.request.message.get("params"))
    else:
        exchange.respond(405)


def with_session(exchange: Exchange) -> None:
    """Answers a POST, opens a GET, takes a DELETE."""
    if exchange.request.method == "POST":
        exchange.result("x", Mcp_Session_Id="s")
    elif exchange.request.method == "GET":
        exchange.start()
        exchange.event({"jsonrpc": "2.0", "method": "hello"})
        exchange.wait_closed()
    else:
        exchange.respond(200)


def all_three(url: str, **options: Any) -> None:
    """A POST, a GET and a DELETE."""
    with wired(url, headers_sent=LEGACY, **options) as client:
        client.ask(method="initialize")
        client.transport.listen(Frame(b""), Deadline(PATIENCE))
        client.sink.next()
        client.sink.next()


# -- certificates ----------------------------------------------------------------------------------------------


def test_a_private_authority(authority: Authority) -> None:  # D15
    with HttpPeer(echo, tls=authority.server()) as peer:
        with wired(peer.url) as client:
            start = time.monotonic()
            with pytest.raises(ConnectFailed) as caught:
                client.ask()
            assert time.monotonic() - start < 2
            assert "certificate" in str(caught.value)
            assert peer.requests == []
        with wired(peer.url, verify=authority.ca) as client:
            assert [client.ask(number) for number in range(3)] == [0, 1, 2]
            assert len({request.connection for request in peer.requests}) == 1


@pytest.mark.filterwarnings("ignore:Unverified")
def test_without_verification(authority: Authority) -> None:
    with HttpPeer(echo, tls=authority.server()) as peer, wired(peer.url, verify=False) as client:
        assert client.ask(1) == 1


def test_a_client_certificate(authority: Authority) -> None:  # D15
    with HttpPeer(echo, tls=authority.server(asks_clients=True)) as peer:
        with wired(peer.url, verify=authority.ca) as client, pytest.raises((ConnectFailed, ConnectionLost)):
            client.ask()
        with wired(peer.url, verify=authority.ca, cert=authority.client) as client:
            assert client.ask(1) == 1


def test_a_certificate_for_another_host(authority: Authority) -> None:
    with HttpPeer(echo, tls=authority.server()) as peer:
        url = peer.url.replace("127.0.0.1", "127.0.0.2")
        with wired(url, verify=authority.ca) as client, pytest.raises(ConnectFailed):
            client.ask()


def test_the_environment_names_an_authority_and_what_is_given_wins(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    wrong = Authority(other)
    with HttpPeer(echo, tls=authority.server()) as peer:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", authority.ca)
        with wired(peer.url) as client:
            assert client.ask(1) == 1
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", wrong.ca)
        with wired(peer.url) as client, pytest.raises(ConnectFailed):
            client.ask(1)
        with wired(peer.url, verify=authority.ca) as client:
            assert client.ask(1) == 1
        for auth in (None, HTTPBasicAuth("a", "b")):  # straight, and through the session
            session = requests.Session()
            session.verify = authority.ca
            session.auth = auth
            with session, wired(peer.url, session=session) as client:
                assert client.ask(1) == 1


# -- proxies ---------------------------------------------------------------------------------------------------


def test_loopback_is_reached_directly(monkeypatch: pytest.MonkeyPatch) -> None:  # D14
    with HttpPeer(echo) as peer, Proxy(("127.0.0.1", peer.port)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        for auth in (None, HTTPBasicAuth("a", "b")):
            session = requests.Session()
            session.auth = auth
            with session, wired(peer.url, session=session) as client:
                assert client.ask(1) == 1
        assert proxy.asked == []


@pytest.mark.parametrize("through_session", [False, True])
@pytest.mark.parametrize(
    ("no_proxy", "proxied"),
    [
        ("", True),
        ("192.0.2.7", False),
        ("192.0.2.0/24", False),
        ("192.0.2.7:8080", False),
        ("192.0.2.8,198.51.100.0/24", True),
    ],
)
def test_the_environment_names_a_proxy(
    no_proxy: str, proxied: bool, through_session: bool, monkeypatch: pytest.MonkeyPatch
) -> None:  # D14
    with HttpPeer(echo) as peer, Proxy(("127.0.0.1", peer.port)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", no_proxy)
        real = socket.socket.connect
        direct: List[Any] = []

        def connect(self: socket.socket, address: Any) -> None:
            if address[0] == "192.0.2.7":
                direct.append(address)
                address = ("127.0.0.1", peer.port)
            real(self, address)

        monkeypatch.setattr(socket.socket, "connect", connect)
        session = requests.Session()
        session.auth = HTTPBasicAuth("a", "b") if through_session else None
        with session, wired("http://192.0.2.7:8080/mcp", session=session) as client:
            assert [client.ask(1), client.ask(2)] == [1, 2]
        assert bool(proxy.asked) == proxied
        assert bool(direct) != proxied
        if proxied:
            assert proxy.asked == ["POST http://192.0.2.7:8080/mcp HTTP/1.1"]


@pytest.mark.parametrize("through_session", [False, True])
def test_a_proxy_for_https(authority: Authority, through_session: bool) -> None:
    with HttpPeer(echo, tls=authority.server()) as peer, Proxy(("127.0.0.1", peer.port)) as proxy:
        session = requests.Session()
        session.auth = HTTPBasicAuth("a", "b") if through_session else None
        options: Dict[str, Any] = {"verify": authority.ca, "proxies": {"https": proxy.url}, "session": session}
        with session, wired("https://mcp.example.org/mcp", **options) as client:
            assert [client.ask(1), client.ask(2)] == [1, 2]
        assert proxy.asked == ["CONNECT mcp.example.org:443 HTTP/1.1"] or proxy.asked == [
            "CONNECT mcp.example.org:443 HTTP/1.0"
        ]


def test_given_proxies_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with HttpPeer(echo) as peer, Proxy(("127.0.0.1", peer.port)) as given, Proxy(("127.0.0.1", 1)) as other:
        monkeypatch.setenv("http_proxy", other.url)
        monkeypatch.setenv("no_proxy", "*")
        with wired("http://mcp.example.org/mcp", proxies={"all": given.url}) as client:
            assert client.ask(1) == 1
        assert len(given.asked) == 1
        assert other.asked == []


def test_a_proxy_that_is_not_there() -> None:
    with HttpPeer(echo) as peer:
        url = "http://127.0.0.1:%d" % peer.port
    with wired("http://mcp.example.org/mcp", proxies={"http": url}) as client, pytest.raises(ConnectFailed) as caught:
        client.ask()
    assert "proxy" in str(caught.value)


# -- headers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("through_session", [False, True])
def test_headers_from_a_function_are_fresh_each_time(through_session: bool) -> None:  # D16
    asked: List[int] = []

    def headers() -> Dict[str, str]:
        asked.append(1)
        return {"Authorization": "Bearer %d" % len(asked), "X-Mine": "é"}

    session = requests.Session()
    if through_session:
        session.hooks["response"].append(lambda response, **more: response)
    with session, HttpPeer(with_session) as peer:
        all_three(peer.url, headers=headers, session=session)
        seen = {request.method: request.headers["authorization"] for request in peer.requests}
        assert seen == {"POST": "Bearer 1", "GET": "Bearer 2", "DELETE": "Bearer 3"}
        assert peer.requests[0].headers["x-mine"] == "é"


@pytest.mark.parametrize("through_session", [False, True])
def test_netrc_never_wins_over_what_is_given(
    through_session: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login a password b\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    for headers, expected in (
        ({"authorization": "Bearer mine"}, "Bearer mine"),
        (lambda: {"Authorization": "Bearer made"}, "Bearer made"),
        (None, "Basic YTpi"),
    ):
        session = requests.Session()
        if through_session:
            session.hooks["response"].append(lambda response, **more: response)
        with session, HttpPeer(echo) as peer, wired(peer.url, headers=headers, session=session) as client:
            client.ask()
            assert peer.requests[0].headers["authorization"] == expected


def test_headers_of_the_protocol_win() -> None:
    given = {"accept": "*/*", "MCP-PROTOCOL-VERSION": "1", "Content-Length": "7", "X-Other": "yes"}
    with HttpPeer(echo) as peer, wired(peer.url, headers=given) as client:
        client.ask("x")
        headers = peer.requests[0].headers
    assert headers["accept"] == "application/json, text/event-stream"
    assert headers["mcp-protocol-version"] == "2026-07-28"
    assert headers["x-other"] == "yes"


@pytest.mark.parametrize("headers", [{"X": "a\r\nB: c"}, {"X\n": "a"}, {"X": 7}, {"X": "\u2028"}, {"": "a"}])
def test_headers_that_cannot_be_sent(headers: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        Endpoint("http://127.0.0.1/mcp", headers=headers)
    assert "header" in str(caught.value)
    with HttpPeer(echo) as peer, wired(peer.url, headers=lambda: headers) as client:
        with pytest.raises(ConfigError):
            client.ask()
        assert peer.requests == []


NO_URLS = ["http://[]/mcp", "https://[::1/mcp", "http://[zz]:80/", "http://user:pass@a\N{ACCOUNT OF}b/mcp"]


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "http:///mcp",
        "http://user:pass@example.org/",
        "http://a:b/",
        "unix://host/x",
        "/mcp",
        *NO_URLS,
    ],
)
def test_urls_that_cannot_be_used(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Endpoint(url)
    assert "pass" not in str(caught.value)


@pytest.mark.parametrize("auth", [None, "oauth"])
@pytest.mark.parametrize("url", NO_URLS)
def test_what_is_no_url_is_a_config_error_of_the_client(url: str, auth: Any) -> None:
    with pytest.raises(McpError) as caught:
        mcpsync.connect(url, auth=auth)
    assert "pass" not in str(caught.value)


@pytest.mark.parametrize("through_session", [False, True])
def test_cookies_are_kept(through_session: bool) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.result(exchange.request.headers.get("cookie"), Set_Cookie="route=b7; Path=/; HttpOnly")

    session = requests.Session()
    if through_session:
        session.hooks["response"].append(lambda response, **more: response)
    with session, HttpPeer(answer) as peer, wired(peer.url, session=session) as client:
        assert [client.ask(), client.ask()] == [None, "route=b7"]


def test_a_cookie_that_cannot_be_sent_fails_the_request() -> None:
    session = requests.Session()
    with session, HttpPeer(echo) as peer, wired(peer.url, session=session) as client:
        session.cookies.set("name", "\N{EURO SIGN}")
        with pytest.raises(TransportError, match="characters that cannot be sent"):
            client.ask()
        session.cookies.clear()
        assert client.ask("again") == "again"


# -- redirects -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [307, 308])
def test_redirects_that_keep_everything(status: int) -> None:  # D10
    def answer(exchange: Exchange) -> None:
        if exchange.request.path == "/mcp":
            exchange.respond(status, b"over there", "text/plain", Location="/mcp/?a=b")
        else:
            echo(exchange)

    with HttpPeer(answer) as peer, wired(peer.url, headers={"Authorization": "Bearer x"}) as client:
        assert [client.ask("one"), client.ask("two")] == ["one", "two"]
        followed = [request for request in peer.requests if request.path != "/mcp"]
        assert [request.method for request in followed] == ["POST", "POST"]
        assert {request.headers["authorization"] for request in followed} == {"Bearer x"}
        assert len(peer.requests) == (4 if status == 307 else 3)
        assert peer.connections == 1


@pytest.mark.parametrize(
    ("status", "location"),
    [
        (301, "/mcp/"),
        (302, "/mcp/"),
        (303, "/mcp/"),
        (307, "http://localhost:{port}/mcp/"),
        (308, "http://127.0.0.1:{other}/mcp"),
        (308, "https://127.0.0.1:{port}/mcp"),
        (307, "http://127.0.0.1:bad/"),
        (307, "http://[bad/"),
        (307, ""),
    ],
)
def test_redirects_that_are_refused(status: int, location: str) -> None:  # D10
    def answer(exchange: Exchange) -> None:
        where = location.format(port=peer.port, other=peer.port + 1)
        exchange.respond(status, Location=where + ("?token=secret" if where else ""))

    with HttpPeer(answer) as peer, wired(peer.url, headers={"Authorization": "Bearer x"}) as client:
        with pytest.raises(HttpError) as caught:
            client.ask()
        assert caught.value.status == status
        assert "redirected (%d)" % status in str(caught.value)
        assert "secret" not in str(caught.value)
        assert len(peer.requests) == 1


def test_a_loop_of_redirects() -> None:  # D10
    with HttpPeer(lambda exchange: exchange.respond(307, Location="/mcp")) as peer, wired(peer.url) as client:
        with pytest.raises(HttpError) as caught:
            client.ask()
        assert "redirects" in str(caught.value)
        assert len(peer.requests) == 5


# -- what the user brings --------------------------------------------------------------------------------------


class Adapter(requests.adapters.HTTPAdapter):
    def __init__(self) -> None:
        super().__init__()
        self.seen: List[str] = []

    def send(self, request: Any, *arguments: Any, **keywords: Any) -> Any:
        self.seen.append(request.method)
        request.headers["X-Signed"] = "by the adapter"
        return super().send(request, *arguments, **keywords)


def test_an_adapter_of_the_user_sees_everything() -> None:  # D23
    adapter = Adapter()
    session = requests.Session()
    session.mount("http://", adapter)
    with session, HttpPeer(with_session) as peer:
        all_three(peer.url, session=session)
        assert adapter.seen == ["POST", "GET", "DELETE"]
        assert {request.headers["x-signed"] for request in peer.requests} == {"by the adapter"}


def test_auth_of_the_session_sees_everything() -> None:  # D23
    calls: List[str] = []

    def auth(request: Any) -> Any:
        calls.append(request.method)
        request.headers["Authorization"] = "Token %d" % len(calls)
        return request

    session = requests.Session()
    session.auth = auth
    with session, HttpPeer(with_session) as peer:
        all_three(peer.url, session=session)
        assert calls == ["POST", "GET", "DELETE"]
        assert [request.headers["authorization"] for request in peer.requests] == ["Token 1", "Token 2", "Token 3"]


def test_hooks_of_the_session_see_everything() -> None:  # D23
    seen: List[Any] = []
    session = requests.Session()
    session.hooks["response"].append(
        lambda response, **more: seen.append((response.request.method, response.status_code))
    )
    with session, HttpPeer(with_session) as peer:
        all_three(peer.url, session=session)
    assert seen == [("POST", 200), ("GET", 200), ("DELETE", 200)]


def test_hooks_that_read_or_raise() -> None:  # D23
    def answer(exchange: Exchange) -> None:
        if exchange.request.message["params"] == "bad":
            exchange.respond(503, "closed", "text/plain")
        else:
            echo(exchange)

    session = requests.Session()
    session.hooks["response"].append(lambda response, **more: response.content and None)
    session.hooks["response"].append(lambda response, **more: response.raise_for_status())
    with session, HttpPeer(answer) as peer, wired(peer.url, session=session) as client:
        assert client.ask("good") == "good"
        with pytest.raises(HttpError) as caught:
            client.ask("bad")
        assert caught.value.status == 503


def test_digest_auth() -> None:
    def answer(exchange: Exchange) -> None:
        if "authorization" in exchange.request.headers:
            echo(exchange)
        else:
            challenge = 'Digest realm="r", nonce="n", qop="auth", algorithm=MD5'
            exchange.respond(401, WWW_Authenticate=challenge)

    session = requests.Session()
    session.auth = HTTPDigestAuth("a", "b")
    with session, HttpPeer(answer) as peer, wired(peer.url, session=session) as client:
        assert [client.ask(1), client.ask(2)] == [1, 2]


def test_the_session_of_the_user_stays_open_and_its_connections_too() -> None:
    with requests.Session() as session, HttpPeer(echo) as peer:
        session.post(peer.url, json={"id": 1})
        with wired(peer.url, session=session) as client:
            client.ask()
        session.post(peer.url, json={"id": 1})
        assert len(peer.requests) == 3


@pytest.mark.parametrize("block", [False, True])
def test_the_pool_of_the_user_is_used_and_bounds(block: bool) -> None:
    session = requests.Session()
    session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=2, pool_block=block))
    busy: List[int] = []
    most: List[int] = []
    lock = threading.Lock()

    def answer(exchange: Exchange) -> None:
        with lock:
            busy.append(1)
            most.append(len(busy))
        exchange.peer.closing.wait(0.02)
        with lock:
            busy.pop()
        echo(exchange)

    with session, HttpPeer(answer) as peer, wired(peer.url, session=session) as client:
        askings = [client.asking(client.new_call(), params=number) for number in range(6)]
        assert [asking.join() for asking in askings] == list(range(6))
        if block:
            assert max(most) <= 2


def test_a_full_pool_of_the_user_does_not_hold_back_a_deadline() -> None:
    session = requests.Session()
    session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=1, pool_block=True))
    peer = HttpPeer(lambda exchange: exchange.wait_closed() and None)
    with session, peer, wired(peer.url, session=session) as client:
        first = client.asking(client.new_call(), seconds=1)
        peer.wait_requests(1)
        start = time.monotonic()
        with pytest.raises(RequestTimeout):
            client.ask(seconds=0.2)
        assert time.monotonic() - start < 0.45
        assert isinstance(first.join(), RequestTimeout)


def test_a_session_that_is_closed_meanwhile_makes_new_connections() -> None:
    with requests.Session() as session, HttpPeer(echo) as peer, wired(peer.url, session=session) as client:
        client.ask()
        session.close()
        assert client.ask(1) == 1


@pytest.mark.parametrize("has_raw", [True, False])
def test_an_adapter_that_answers_by_itself(has_raw: bool) -> None:
    class Own(requests.adapters.BaseAdapter):
        def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
            message = json.loads(request.body or b"")
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": message.get("params")}).encode()
            response = requests.Response()
            response.status_code = 200
            response.headers["Content-Type"] = "application/json"
            if has_raw:
                response.raw = io.BytesIO(body)
            else:
                response._content = body
            return response

        def close(self) -> None:
            pass

    with requests.Session() as session:
        session.mount("http://", Own())
        with wired("http://127.0.0.1:1/mcp", session=session) as client:
            assert [client.ask("one"), client.ask("two")] == ["one", "two"]


def test_retries_of_an_adapter_end_with_the_exchange() -> None:
    from urllib3 import Retry

    retry = Retry(total=5, backoff_factor=30, status_forcelist=[503], allowed_methods=None)
    session = requests.Session()
    session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retry))
    with session, HttpPeer(lambda exchange: exchange.respond(503)) as peer, wired(peer.url, session=session) as client:
        call = client.new_call()
        asking = client.asking(call)
        peer.wait_requests(2)
        start = time.monotonic()
        assert until(lambda: client.transport.abort(call, "cancelled"), 1)
        asking.join()
        assert time.monotonic() - start < 1
    assert type(retry) is Retry


# -- kept-alive connections ------------------------------------------------------------------------------------


def test_a_connection_that_the_server_closed_is_not_used() -> None:
    with HttpPeer(echo) as peer, wired(peer.url) as client:
        for number in range(5):
            assert client.ask(number) == number
            peer.drop_connections()
            (idle,) = filter(None, client.transport._endpoint._pool._pool.pool.queue)
            assert wait_for_read(idle.sock, PATIENCE)  # the closing has come
        assert peer.connections == 5


def test_an_old_connection_is_replaced_before_the_server_closes_it() -> None:  # D22, with all times a tenth
    with HttpPeer(echo, idle_seconds=0.5) as peer, wired(peer.url) as client:
        client.transport._life.max_idle = 0.4
        for number in range(6):
            assert client.ask(number) == number
            time.sleep(0.497 + 0.001 * number)
        assert len(peer.requests) == 6
        assert peer.connections == 6


def test_what_the_server_says_of_keeping_alive_is_heeded() -> None:
    def answer(exchange: Exchange) -> None:
        exchange.result(1, Keep_Alive="timeout=0, max=100")

    with HttpPeer(answer) as peer, wired(peer.url) as client:
        client.ask()
        client.ask()
        assert peer.connections == 2


# -- Unix sockets ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["unix://{path}#/mcp?x=1", "http+unix://{quoted}/mcp?x=1"])
def test_a_unix_socket(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "s"
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with HttpPeer(echo, path=str(path)) as peer:
        url = form.format(path=path, quoted=str(path).replace("/", "%2F"))
        with wired(url) as client:
            assert [client.ask(number) for number in range(5)] == list(range(5))
        assert peer.connections == 1
        assert {(request.path, request.headers["host"]) for request in peer.requests} == {("/mcp?x=1", "localhost")}


def test_a_unix_socket_that_is_not_there(tmp_path: Path) -> None:
    with wired("unix://%s/none#/mcp" % tmp_path) as client, pytest.raises(ConnectFailed) as caught:
        client.ask()
    assert "no such file" in str(caught.value)


def test_a_silent_unix_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with HttpPeer(None, path=path), wired("unix://%s" % path) as client:
        start = time.monotonic()
        with pytest.raises(RequestTimeout):
            client.ask(seconds=0.1)
        assert time.monotonic() - start < 0.2


def test_threads_that_come_first_at_the_same_time_share_one_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lingers in a second one would never be closed."""
    looked_up = Endpoint._urllib3_pool
    entered: List[None] = []
    second = threading.Event()

    def looks_up(self: Endpoint) -> Any:
        entered.append(None)
        if len(entered) == 1:
            second.wait(0.2)  # the other thread has the time to come here too
        else:
            second.set()
        return looked_up(self)

    monkeypatch.setattr(Endpoint, "_urllib3_pool", looks_up)
    with HttpPeer(echo) as peer, wired(peer.url) as client:
        asking = [client.asking(client.new_call(), params=number) for number in range(2)]
        assert [each.join() for each in asking] == [0, 1]
    assert len(entered) == 1


def test_what_comes_to_linger_in_a_pool_that_was_closed_is_closed() -> None:
    with HttpPeer(echo) as peer, wired(peer.url) as client:
        client.ask()
        pool = client.transport._endpoint._pool
        connection = pool._take()
        connection.tail = io.BytesIO()
        pool.forget()
        pool._give_back(connection, True)
        assert connection.sock is None and not pool._lingering
