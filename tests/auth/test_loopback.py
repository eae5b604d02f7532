"""The callback on this machine: the one right answer is taken, whatever else comes."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

import pytest

from mcpsync.auth.loopback import Loopback
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError, ConfigError
from tests.peers.authorization import follow

SOON = 10


@pytest.fixture
def loopback():
    with Loopback() as made:
        made.expect("right")
        yield made


def send(port, data, host="127.0.0.1"):
    """Send bytes and read until the end."""
    with socket.create_connection((host, port), SOON) as sock:
        sock.sendall(data)
        received = b""
        while True:
            piece = sock.recv(65536)
            if not piece:
                return received
            received += piece


def test_it_listens_before_anything_is_expected():
    with Loopback() as loopback:
        socket.create_connection(("127.0.0.1", loopback.port), SOON).close()
        assert loopback.redirect_uri == "http://127.0.0.1:%d/callback" % loopback.port


def test_the_right_answer(loopback):
    status, headers, page = follow(loopback.redirect_uri + "?code=c%20d&state=right&iss=x")
    assert loopback.wait(Deadline(SOON)) == {"code": "c d", "state": "right", "iss": "x"}
    assert status == 200
    assert "close this page" in page
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/callback?code=SECRET&state=wrong<script>", 400),
        ("/callback?code=SECRET", 400),
        ("/callback", 400),
        ("/callback?code=SECRET&state=right&state=right", 400),
        ("/favicon.ico", 404),
        ("/", 404),
        ("/callback/x?code=SECRET&state=right", 404),
    ],
)
def test_other_requests_are_not_the_answer_and_the_right_one_still_is(loopback, target, status):
    found, _, page = follow("http://127.0.0.1:%d%s" % (loopback.port, target))
    assert found == status
    assert "SECRET" not in page
    assert "script" not in page
    with pytest.raises(AuthError, match="in time"):
        loopback.wait(Deadline(0.05))
    follow(loopback.redirect_uri + "?code=c&state=right")
    assert loopback.wait(Deadline(SOON))["code"] == "c"


@pytest.mark.parametrize(
    "request_head",
    [
        b"POST /callback?code=c&state=right HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",
        b"GET /callback?code=c&state=right HTTP/1.1\r\nHost: evil.example:%d\r\n\r\n",
        b"GET /callback?code=c&state=right HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nHost: evil.example\r\n\r\n",
        b"GET /callback?code=c&state=right HTTP/1.1\r\nX-Not-Host: 127.0.0.1:%d\r\n\r\n",
        b"\x16\x03\x01 %d TLS\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",
    ],
)
def test_requests_that_no_redirect_makes(loopback, request_head):
    assert b" 404 " in send(loopback.port, request_head % loopback.port).partition(b"\r\n")[0]
    assert not loopback._done.is_set()


def test_a_second_right_answer_changes_nothing(loopback):
    assert follow(loopback.redirect_uri + "?code=first&state=right")[0] == 200
    assert follow(loopback.redirect_uri + "?code=second&state=right")[0] == 400
    assert loopback.wait(Deadline(SOON))["code"] == "first"


def test_connections_that_say_nothing_hold_nobody_up(loopback):
    silent = [socket.create_connection(("127.0.0.1", loopback.port), SOON) for _ in range(50)]
    try:
        with socket.create_connection(("127.0.0.1", loopback.port), SOON) as slow:
            slow.sendall(b"GET /callback?co")
            assert follow(loopback.redirect_uri + "?code=c&state=right")[0] == 200
    finally:
        for sock in silent:
            sock.close()
    assert loopback.wait(Deadline(SOON))["code"] == "c"


def test_a_connection_that_says_nothing_is_closed(monkeypatch):
    monkeypatch.setattr("mcpsync.auth.loopback._IDLE_SECONDS", 0.1)
    with Loopback() as loopback:
        loopback.expect("right")
        with socket.create_connection(("127.0.0.1", loopback.port), SOON) as silent:
            assert silent.recv(1) == b""


def test_a_request_that_does_not_end_is_cut_off(loopback):
    with suppress(ConnectionError):  # where it is cut off while it still sends
        assert send(loopback.port, b"GET /" + b"x" * 40_000) == b""
    assert follow(loopback.redirect_uri + "?code=c&state=right")[0] == 200


def test_a_request_in_pieces(loopback):
    with socket.create_connection(("127.0.0.1", loopback.port), SOON) as sock:
        head = b"GET /callback?code=c&state=right HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % loopback.port
        for position in range(0, len(head), 20):
            sock.sendall(head[position : position + 20])
        assert sock.recv(100).startswith(b"HTTP/1.1 200 ")


def test_nobody_comes_back():
    with Loopback() as loopback:
        loopback.expect("right")
        began = time.monotonic()
        with pytest.raises(AuthError, match="nobody came back from the browser in time"):
            loopback.wait(Deadline(0.1))
        assert time.monotonic() - began < 5
    assert not [thread for thread in threading.enumerate() if "sign-in" in thread.name]


def test_a_port_that_is_taken_is_said_and_one_that_is_preferred_is_not_needed():
    with Loopback() as first:
        with pytest.raises(AuthError, match="port %d for the callback is taken" % first.port):
            Loopback(first.redirect_uri)
        with Loopback(preferred=[first.port]) as second:
            assert second.port != first.port
    with Loopback(preferred=[first.port]) as again:
        assert again.redirect_uri == first.redirect_uri


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_hosts_of_this_machine(host):
    try:
        loopback = Loopback("http://%s:0/back/here" % host)
    except AuthError:
        pytest.skip("there is no IPv6 here")
    with loopback:
        loopback.expect("right")
        assert loopback.redirect_uri == "http://%s:%d/back/here" % (host, loopback.port)
        assert follow(loopback.redirect_uri + "?code=c&state=right")[0] == 200
        assert loopback.wait(Deadline(SOON))["code"] == "c"


@pytest.mark.parametrize(
    "uri", ["https://127.0.0.1:1/x", "http://0.0.0.0:0/x", "http://me.example:0/", "app://x", "http://127.0.0.1:x/"]
)
def test_what_cannot_be_listened_on(uri):
    with pytest.raises(ConfigError, match="redirect URI"):
        Loopback(uri)


def test_closing_twice_and_while_somebody_is_connected():
    loopback = Loopback()
    loopback.expect("right")
    with socket.create_connection(("127.0.0.1", loopback.port), SOON):
        loopback.close()
    loopback.close()
