"""G4, G6 and G7: signing in where the client is registered by hand, people do odd things, and servers point inside."""

from __future__ import annotations

import logging
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import Any, Callable, Iterator, List, Tuple

import pytest

import mcpsync
from mcpsync import AuthError, Client, IssuerMismatch, OAuth
from mcpsync.auth.browser import Browser
from mcpsync.auth.store import MemoryStore
from tests.conftest import our_threads
from tests.peers.authorization import AuthorizationServer, ProtectedServer, browse, follow
from tests.peers.http_servers import Legacy, Modern

ERAS = {"legacy": Legacy, "2026-07-28": Modern}
PATIENCE = 20.0


@contextmanager
def serving(era: str = "2026-07-28", **how: Any) -> Iterator[Tuple[AuthorizationServer, ProtectedServer]]:
    with AuthorizationServer(**how) as server, ProtectedServer(server, behaviour=ERAS[era]()) as resource:
        yield server, resource


def connect(resource: ProtectedServer, era: str = "2026-07-28", way: Any = browse, **more: Any) -> Client:
    oauth = OAuth(way=way, store=more.pop("store", None) or MemoryStore(), **more)
    return mcpsync.connect(resource.url, protocol=era, auth=oauth)


def person(url: str) -> bool:
    """A browser with a person who says yes, on a thread of its own."""
    threading.Thread(target=lambda: follow(browse(url))).start()
    return True


def port_in(url: str) -> int:
    return int(url.partition("redirect_uri=http%3A%2F%2F127.0.0.1%3A")[2].partition("%2F")[0])


# -- G4 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_g4_a_client_that_was_registered_by_hand(era: str, method: str) -> None:
    known = {"by-hand": "s+e %:c/ret"}
    with serving(era, registration=False, clients=known, auth_methods=[method]) as (server, resource):
        with connect(resource, era, client_id="by-hand", client_secret="s+e %:c/ret") as client:
            client.list_tools()
            server.expire_access()
            client.list_tools()
        assert server.refused == []
        kinds = [request["grant_type"] for request in server.token_requests]
        assert kinds == ["authorization_code", "refresh_token"]
        assert all(
            ("client_secret" in request) == (method == "client_secret_post") for request in server.token_requests
        )


def test_g4_nobody_registered_the_client() -> None:
    with serving(registration=False) as (_, resource), pytest.raises(AuthError, match="set client_id"):
        connect(resource)


# -- G6 --------------------------------------------------------------------------------------------------------------


def test_g6_the_port_of_the_callback_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, serving() as (server, resource):
        port = taken.getsockname()[1]
        with pytest.raises(AuthError, match="port %d for the callback is taken" % port):
            connect(resource, way=Browser(port, opener=person))
        assert server.registrations == []
        taken.close()
        with connect(resource, way=Browser(port, opener=person)) as client:
            client.list_tools()
        assert port_in_uris(server) == [port]


def port_in_uris(server: AuthorizationServer) -> List[int]:
    return [int(uri.split(":")[2].split("/")[0]) for each in server.registrations for uri in each["redirect_uris"]]


def test_g6_there_is_no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME"):
        monkeypatch.delenv(name, raising=False)
    with serving() as (_, resource):
        with pytest.raises(AuthError, match=r"no browser can be opened here; .*way='paste'"):
            connect(resource, way="browser")
        with connect(resource, way=browse) as client:
            client.list_tools()


@pytest.mark.parametrize("change", [("state=", "state=x"), ("iss=http", "iss=https")], ids=["state", "iss"])
def test_g6_the_answer_is_not_the_right_one(change: Tuple[str, str]) -> None:
    with serving() as (server, resource):
        with pytest.raises(AuthError):
            connect(resource, way=lambda url: browse(url).replace(*change))
        assert server.token_requests == []
        with connect(resource) as client:
            client.list_tools()


def test_g6_stray_requests_come_to_the_callback() -> None:
    stray: List[int] = []

    def opener(url: str) -> bool:
        callback = "http://127.0.0.1:%d/callback" % port_in(url)
        for request in ("?code=x&state=wrong", "?error=access_denied&state=", "", "/favicon.ico"):
            stray.append(follow(callback + request)[0])
        return person(url)

    with serving() as (server, resource), connect(resource, way=Browser(opener=opener)) as client:
        client.list_tools()
        assert stray == [400, 400, 400, 404]
        assert len(server.token_requests) == 1


def test_g6_the_person_says_no() -> None:
    with serving(answers={"error": "access_denied", "code": None}) as (server, resource):
        with pytest.raises(AuthError, match="access_denied: the person said no"):
            connect(resource, way=Browser(opener=person))
        assert server.token_requests == []


def test_g6_the_person_never_returns() -> None:
    with serving() as (server, resource):
        began = time.monotonic()
        with pytest.raises(AuthError, match="nobody came back from the browser in time"):
            connect(resource, way=Browser(opener=lambda url: True), timeout=0.3)
        assert time.monotonic() - began < 10
        assert server.token_requests == []
    assert not [thread for thread in our_threads() if "sign-in" in thread.name]


def test_g6_two_sign_ins_at_once_are_one() -> None:
    """Threads that are refused at the same time share one browser window."""
    opened: List[str] = []

    def opener(url: str) -> bool:
        opened.append(url)
        return person(url)

    with serving() as (server, resource):
        oauth = OAuth(way=Browser(opener=opener), store=MemoryStore())
        client = Client(resource.url, protocol="2026-07-28", auth=oauth)
        at_once(lambda: client.login(PATIENCE), 4)
        with client:
            client.list_tools()
        assert len(opened) == len(server.token_requests) == 1


def test_g6_two_clients_sign_in_at_once() -> None:
    """Each has a callback of its own, and none takes the other's code."""
    with serving() as (server, resource):
        made = at_once(lambda: connect(resource, way=Browser(opener=person)), 3)
        for client in made:
            with client:
                client.list_tools()
        assert len(set(port_in_uris(server))) == 3
        assert server.refused == []


def at_once(work: Callable[[], Any], times: int) -> List[Any]:
    results: List[Any] = []
    barrier = threading.Barrier(times)

    def run() -> None:
        barrier.wait(PATIENCE)
        try:
            results.append(work())
        except Exception as error:  # shown by whoever looks at the results
            results.append(error)

    threads = [threading.Thread(target=run) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(results) == times
    assert not [each for each in results if isinstance(each, Exception)], results
    return results


# -- G7 --------------------------------------------------------------------------------------------------------------

SECRET = "the-clients-own-" + "secret"


@pytest.mark.parametrize(
    "place",
    [
        "https://169.254.169.254/latest",
        "https://10.0.0.1",
        "https://192.168.1.1:{port}",
        "https://[fd00::1]",
        "https://[::ffff:10.0.0.1]",
        "https://inside.example:{port}",
        "https://changes.example:{port}",
        "http://inside.example:{port}",
    ],
)
@pytest.mark.parametrize("where", ["authorization_servers", "challenge"])
def test_g7_metadata_points_inside(place: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """``inside.example`` has a private address; ``changes.example`` has one from the second question on."""
    real, asked = socket.getaddrinfo, []

    def answer(host: Any, port: Any, *more: Any, **options: Any) -> Any:
        if str(host).endswith(".example"):
            asked.append(host)
            address = "192.0.2.1" if host == "changes.example" and asked.count(host) == 1 else "127.0.0.1"
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port or 0))]
        return real(host, port, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    with AuthorizationServer() as listener, serving(clients={"mine": SECRET}) as (_, resource):
        inside = place.format(port=listener.port)
        if where == "challenge":
            resource._announces = False
            resource._challenge_scope = 'a", resource_metadata="%s/metadata' % inside
        else:
            resource._metadata["authorization_servers"] = [inside]
        with pytest.raises(AuthError) as caught:
            connect(resource, client_id="mine", client_secret=SECRET, timeout=1 if "changes" in place else PATIENCE)
        assert listener.connections == 0
        assert asked.count("changes.example") <= 1
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("moment", ["code", "refresh", "revocation"])
def test_g7_an_endpoint_redirects(status: int, moment: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    known = {"mine": SECRET}
    with (
        AuthorizationServer(clients=known) as listener,
        serving(clients=known, auth_methods=["client_secret_post"]) as (
            server,
            resource,
        ),
        ExitStack() as stack,
    ):

        def elsewhere(exchange: Any) -> None:
            exchange.respond(status, b"", Location=listener.issuer + exchange.request.path)

        def go() -> Client:
            return stack.enter_context(connect(resource, client_id="mine", client_secret=SECRET))

        if moment == "code":
            server.routes["/token"] = elsewhere
            with pytest.raises(AuthError, match="redirects"):
                go()
        elif moment == "refresh":
            client = go()
            server.routes["/token"] = elsewhere
            server.expire_access()
            with pytest.raises(AuthError, match="redirects"):
                client.list_tools()
        else:
            client = go()
            server.routes["/revoke"] = elsewhere
            assert client.logout() is False
        assert listener.requests == []
        assert not [secret for secret in (SECRET, *server.secrets) if secret in caplog.text]


def test_g7_a_client_that_was_registered_by_hand_is_not_taken_elsewhere() -> None:
    """The server names another authorization server from one day on."""
    store, known = MemoryStore(), {"mine": SECRET}
    methods = ["client_secret_post"]
    with (
        AuthorizationServer(clients=known, auth_methods=methods) as other,
        serving(clients=known, auth_methods=methods) as (server, resource),
    ):
        connect(resource, client_id="mine", client_secret=SECRET, store=store).close()
        server.revoke_all()
        resource._metadata["authorization_servers"] = [other.issuer]
        with pytest.raises(IssuerMismatch, match="registered with"):
            connect(resource, client_id="mine", client_secret=SECRET, store=store)
        assert not other.authorizations
        assert not other.token_requests


# -- Ctrl-C ----------------------------------------------------------------------------------------------------------

WAITS_FOR_A_PERSON = """
import sys
import mcpsync
from mcpsync.auth.browser import Browser
from mcpsync.auth.store import MemoryStore

way = Browser(opener=lambda url: print(url, flush=True) or True)
mcpsync.connect(sys.argv[1], protocol="2026-07-28", auth=mcpsync.OAuth(way=way, store=MemoryStore()))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT")
def test_g6_ctrl_c_while_the_browser_is_waited_for() -> None:
    with (
        serving() as (server, resource),
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", WAITS_FOR_A_PERSON, resource.url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        port = port_in(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
        assert errors.rstrip().endswith("KeyboardInterrupt")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 5)
        assert server.token_requests == []
