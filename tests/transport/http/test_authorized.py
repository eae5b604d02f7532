"""Signed requests over real sockets: every kind of them is signed, and sent again when a refusal could be mended."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

import pytest
import requests

from mcpsync.deadline import Deadline
from mcpsync.errors import ConfigError, ConnectFailed, ConnectionLost, HttpError, NeedsLogin, RequestTimeout
from mcpsync.transport.http.authorization import Challenge
from mcpsync.transport.http.authorized import AuthorizedEndpoint
from mcpsync.transport.http.legacy_sse import LegacySse
from mcpsync.transport.http.streamable import StreamableHttp
from tests.peers.http import Exchange, HttpPeer
from tests.transport.http.wired import LEGACY, MODERN, PATIENCE, Wired


class Signer:
    """Signs with numbered tokens; what a refusal leads to is a function."""

    def __init__(self, on_challenge: Optional[Callable[[Challenge, Deadline], bool]] = None) -> None:
        self.number = 1
        self.challenges: List[Challenge] = []
        self.asked: List[str] = []
        self.seen: List[str] = []
        self._on_challenge = on_challenge

    def headers(self, method: str, url: str, deadline: Deadline) -> Mapping[str, str]:
        self.asked.append("%s %s" % (method, url))
        return {"Authorization": "Bearer t%d" % self.number}

    def challenged(self, challenge: Challenge, deadline: Deadline) -> bool:
        self.challenges.append(challenge)
        if self._on_challenge is not None:
            return self._on_challenge(challenge, deadline)
        self.number += 1
        return True

    def observed(self, url: str, headers: Mapping[str, str]) -> None:
        self.seen.append(headers.get("x-nonce", ""))


@contextmanager
def signed(url: str, signer: Any, headers_sent: Mapping[str, str] = MODERN, **options: Any) -> Iterator[Wired]:
    connection = Wired(StreamableHttp(AuthorizedEndpoint(url, signer, **options)), headers_sent)
    try:
        yield connection
    finally:
        connection.close()


def accepts(token: str, then: Optional[Callable[[Exchange], None]] = None, status: int = 401) -> Any:
    """Refuses all that is not signed with this token."""

    def answer(exchange: Exchange) -> None:
        if exchange.request.headers.get("authorization") != "Bearer " + token:
            exchange.respond(status, {"error": "no"}, WWW_Authenticate='Bearer scope="x"', X_Nonce="n")
        elif then is not None:
            then(exchange)
        else:
            exchange.result("fine")

    return answer


def test_a_refused_post_is_sent_again_with_new_headers() -> None:
    signer = Signer()
    with HttpPeer(accepts("t2")) as peer, signed(peer.url, signer) as connection:
        assert connection.ask() == "fine"
        assert [each.headers["authorization"] for each in peer.requests] == ["Bearer t1", "Bearer t2"]
        assert {each.connection for each in peer.requests} == {1}
    (challenge,) = signer.challenges
    assert (challenge.status, challenge.method, challenge.url) == (401, "POST", peer.url)
    assert challenge.headers["www-authenticate"] == 'Bearer scope="x"'
    assert json.loads(challenge.body) == {"error": "no"}
    assert challenge.sent == {"Authorization": "Bearer t1"}
    assert challenge.earlier == ()
    assert "t1" not in repr(challenge)
    assert signer.seen == ["n", ""]


@pytest.mark.parametrize("status", [401, 403])
def test_a_request_is_challenged_three_times_at_most(status: int) -> None:
    signer = Signer()
    with HttpPeer(accepts("never", status=status)) as peer, signed(peer.url, signer) as connection:
        with pytest.raises(HttpError) as caught:
            connection.ask()
        assert caught.value.status == status
        assert len(peer.requests) == 4
    assert [len(each.earlier) for each in signer.challenges] == [0, 1, 2]


def test_a_refusal_that_cannot_be_mended_goes_to_the_caller_with_its_body() -> None:
    def forbid(exchange: Exchange) -> None:
        error = {"code": -32003, "message": "not for you"}
        exchange.respond(403, {"jsonrpc": "2.0", "id": exchange.request.message["id"], "error": error})

    with HttpPeer(forbid) as peer, signed(peer.url, Signer(lambda *_: False)) as connection:
        assert connection.ask()["message"] == "not for you"
        assert len(peer.requests) == 1


def test_other_failures_are_no_challenges() -> None:
    signer = Signer()
    with HttpPeer(lambda exchange: exchange.respond(500)) as peer, signed(peer.url, signer) as connection:
        with pytest.raises(HttpError):
            connection.ask()
        assert len(peer.requests) == 1
    assert signer.challenges == []


def test_an_error_of_the_signer_is_the_error_of_the_call() -> None:
    def give_up(challenge: Challenge, deadline: Deadline) -> bool:
        raise NeedsLogin("sign in")

    with HttpPeer(accepts("never")) as peer, signed(peer.url, Signer(give_up)) as connection:
        with pytest.raises(NeedsLogin):
            connection.ask()
        assert len(peer.requests) == 1


def test_without_headers_nothing_is_sent() -> None:
    class Unsigned(Signer):
        def headers(self, method: str, url: str, deadline: Deadline) -> Mapping[str, str]:
            raise NeedsLogin("sign in")

    with HttpPeer(accepts("t1")) as peer, signed(peer.url, Unsigned()) as connection:
        with pytest.raises(NeedsLogin):
            connection.ask()
        assert peer.requests == []


def test_headers_that_cannot_be_sent_are_refused() -> None:
    class Odd(Signer):
        def headers(self, method: str, url: str, deadline: Deadline) -> Mapping[str, str]:
            return {"Authorization": "Bearer x\r\nX-Other: 1"}

    with HttpPeer(accepts("t1")) as peer, signed(peer.url, Odd()) as connection:
        with pytest.raises(ConfigError):
            connection.ask()
        assert peer.requests == []


def test_a_notification_and_the_end_of_the_session_are_signed() -> None:
    def serve(exchange: Exchange) -> None:
        if exchange.request.method == "DELETE":
            exchange.respond(204, content_type=None)
        elif "id" in exchange.request.message:
            exchange.result("fine", Mcp_Session_Id="s1")
        else:
            exchange.respond(202, content_type=None)

    signer = Signer()
    with HttpPeer(accepts("t2", serve)) as peer:
        with signed(peer.url, signer, LEGACY) as connection:
            connection.ask(method="initialize")
            signer.number = 1
            connection.note()
            signer.number = 1
        delete = peer.of("DELETE")
    assert [each.headers["authorization"] for each in delete] == ["Bearer t1", "Bearer t2"]
    assert all(each.headers["mcp-session-id"] == "s1" for each in delete)


def test_the_long_stream_and_a_resumed_one_are_signed() -> None:
    from mcpsync.transport.base import Frame

    def serve(exchange: Exchange) -> None:
        if exchange.request.method == "GET" and "last-event-id" not in exchange.request.headers:
            exchange.start()
            exchange.event({"jsonrpc": "2.0", "method": "notifications/long"})
            exchange.wait_closed()
        elif exchange.request.method == "GET":
            exchange.start()
            exchange.event({"jsonrpc": "2.0", "id": 1, "result": "resumed"})
            exchange.end()
        else:
            exchange.start()
            exchange.event("", event_id="e1", retry=1)
            exchange.end()

    def again(challenge: Challenge, deadline: Deadline) -> bool:
        signer.number = 2
        return True

    signer = Signer(again)
    with HttpPeer(accepts("t2", serve)) as peer, signed(peer.url, signer, LEGACY) as connection:
        connection.transport.listen(Frame(b""), Deadline(PATIENCE))
        assert connection.sink.next()["method"] == "notifications/long"
        signer.number = 1
        assert connection.ask() == "resumed"
        gets = peer.of("GET")
        assert [each.headers["authorization"] for each in gets[:2]] == ["Bearer t1", "Bearer t2"]
        assert gets[-1].headers["last-event-id"] == "e1"
        assert all("authorization" in each.headers for each in peer.requests)


def test_each_redirect_is_signed_for_its_own_url() -> None:
    def serve(exchange: Exchange) -> None:
        if exchange.request.path == "/mcp":
            exchange.respond(307, Location="/mcp/")
        else:
            accepts("t2")(exchange)

    signer = Signer()
    with HttpPeer(serve) as peer, signed(peer.url.rsplit("/", 1)[0] + "/mcp", signer) as connection:
        assert connection.ask() == "fine"
        base = peer.url.rsplit("/", 1)[0]
    assert signer.asked == ["POST %s/mcp" % base, "POST %s/mcp/" % base, "POST %s/mcp/" % base]
    assert [each.url for each in signer.challenges] == [base + "/mcp/"]


def test_the_older_transport_is_signed() -> None:
    answers: List[Dict[str, Any]] = []
    came = threading.Event()

    def serve(exchange: Exchange) -> None:
        if exchange.request.method == "GET":
            exchange.start()
            exchange.event("/messages", event="endpoint")
            came.wait(PATIENCE)
            exchange.event(answers[0], event="message")
            exchange.wait_closed()
        else:
            exchange.respond(202, content_type=None)
            answers.append({"jsonrpc": "2.0", "id": exchange.request.message["id"], "result": "fine"})
            came.set()

    signer = Signer()
    with HttpPeer(accepts("t2", serve)) as peer:
        connection = Wired(LegacySse(AuthorizedEndpoint(peer.url, signer)), {})
        try:
            signer.number = 1
            connection.ask()
            assert connection.sink.next()["result"] == "fine"
        finally:
            connection.close()
        signs = [(each.method, each.headers["authorization"]) for each in peer.requests]
    assert signs == [
        *(("GET", "Bearer t1"), ("GET", "Bearer t2")),
        *(("POST", "Bearer t1"), ("POST", "Bearer t2")),
    ]


def test_a_signer_that_waits_is_ended_with_the_request_or_the_connection() -> None:
    waiting = threading.Event()

    def wait(challenge: Challenge, deadline: Deadline) -> bool:
        waiting.set()
        return deadline.wait(threading.Event())

    with HttpPeer(accepts("never")) as peer:
        with signed(peer.url, Signer(wait)) as connection:
            call = connection.new_call()
            asking = connection.asking(call)
            assert waiting.wait(PATIENCE)
            began = time.monotonic()
            connection.transport.abort(call, "cancelled")
            assert isinstance(asking.join(), ConnectionLost)
            assert asking.over_at - began < PATIENCE / 4
            with pytest.raises(RequestTimeout):
                connection.ask(seconds=0.05)
            waiting.clear()
            asking = connection.asking(connection.new_call())
            assert waiting.wait(PATIENCE)
        assert isinstance(asking.join(), ConnectionLost)


def test_what_fails_after_a_refusal_was_not_executed() -> None:
    def server_goes(challenge: Challenge, deadline: Deadline) -> bool:
        peer.close()
        return True

    with HttpPeer(accepts("never")) as peer, signed(peer.url, Signer(server_goes)) as connection:
        with pytest.raises(ConnectFailed):
            connection.ask()
        assert len(peer.requests) == 1


def test_there_is_one_authorization() -> None:
    with pytest.raises(ConfigError, match="Authorization"):
        AuthorizedEndpoint("http://127.0.0.1:1/mcp", Signer(), headers={"authorization": "Basic x"})
    with requests.Session() as session:
        session.auth = ("name", "password")
        with pytest.raises(ConfigError, match="session"):
            AuthorizedEndpoint("http://127.0.0.1:1/mcp", Signer(), session=session)


def test_a_session_of_the_users_sends_signed_requests_too() -> None:
    signer = Signer()
    with requests.Session() as session:
        session.hooks["response"].append(lambda response, *_, **__: response)
        with HttpPeer(accepts("t2")) as peer, signed(peer.url, signer, session=session) as connection:
            assert connection.ask() == "fine"
    assert [each.status for each in signer.challenges] == [401]
