"""Hooks before each request and after its end, in both eras, over stdio and HTTP, waited for and submitted."""

from __future__ import annotations

import logging
import threading
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest

import mcpsync
from mcpsync import ConfigError, Hook, RequestCancelled, RequestTimeout, RpcError
from mcpsync.connection.hooks import HookedRequest, Outcome
from tests.peers.http import Exchange, HttpPeer
from tests.peers.http_servers import Legacy, Modern, Older
from tests.peers.scripted import peer

WHERE: ContextVar[str] = ContextVar("where", default="nowhere")
PATIENCE = 10.0

Ask = Callable[..., Any]
WAYS: Dict[str, Ask] = {
    "waited for": lambda client, name, arguments=None, **more: client.call_tool(name, arguments, **more),
    "submitted": lambda client, name, arguments=None, **more: client.submit(name, arguments, **more).result(PATIENCE),
}


@pytest.fixture(params=sorted(WAYS))
def ask(request: pytest.FixtureRequest) -> Ask:
    return WAYS[request.param]


class Watching(Hook):
    """Keeps what it is told.

    :ivar requests: before each
    :ivar ends: after each
    """

    def __init__(self, **adds: Any) -> None:
        self.adds = adds
        self.requests: List[HookedRequest] = []
        self.ends: List[Tuple[HookedRequest, Outcome]] = []
        self.threads: List[str] = []
        self.contexts: List[str] = []
        self._told = threading.Condition()

    def before(self, request: HookedRequest) -> Any:
        assert request.request_id is None
        request.meta.update(self.adds.get("meta", {}))
        request.headers.update(self.adds.get("headers", {}))
        self.contexts.append(WHERE.get())
        self.threads.append(threading.current_thread().name)
        self.requests.append(request)
        return len(self.requests)

    def after(self, request: HookedRequest, outcome: Outcome, kept: Any) -> None:
        assert self.requests[kept - 1] is request and outcome.seconds >= 0
        self.threads.append(threading.current_thread().name)
        with self._told:
            self.ends.append((request, outcome))
            self._told.notify_all()

    def wait_for(self, count: int) -> List[Tuple[HookedRequest, Outcome]]:
        """The ends, as soon as there are so many."""
        with self._told:
            assert self._told.wait_for(lambda: len(self.ends) >= count, PATIENCE), self.ends
        return self.ends


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_over_stdio_each_request_of_a_call_is_told(tmp_path: Path, era: str, ask: Ask) -> None:
    server = peer(tmp_path, era=era)
    hook = Watching(meta={"com.example/trace": "t1"}, headers={"X-A": "goes nowhere"})
    with mcpsync.connect(server.command, hooks=[hook], name="peer") as client:
        assert hook.requests == []
        assert ask(client, "echo", {"text": "on"}, meta={"com.example/own": 1}).text == "on"
        ((request, outcome),) = hook.wait_for(1)
        assert (request.server, request.method, request.over_http) == ("peer", "tools/call", False)
        assert request.params == {"name": "echo", "arguments": {"text": "on"}}
        assert request.protocol_version == client.protocol_version
        assert outcome.error is None and outcome.result is not None and outcome.result["content"][0]["text"] == "on"
        (received,) = server.received("tools/call")
        assert received["id"] == request.request_id
        assert {received["params"]["_meta"][key] for key in ("com.example/trace",)} == {"t1"}
        assert received["params"]["_meta"]["com.example/own"] == 1
        client.list_tools()
        assert hook.requests[-1].method == "tools/list"
    assert not [name for name in hook.threads if "reader" in name or "watchdog" in name]


@pytest.mark.parametrize("server", [Modern, Legacy, Older])
def test_over_http_headers_travel(server: Any, ask: Ask) -> None:
    hook = Watching(headers={"X-Trace": "t1"}, meta={"traceparent": "00-x"})
    with HttpPeer(server()) as at, mcpsync.connect(at.url, hooks=[hook], headers={"X-Own": "o"}) as client:
        assert ask(client, "work").text == "done"
        (request, _) = hook.wait_for(1)[0]
        assert request.over_http and request.headers == {"X-Trace": "t1"}
        (sent,) = (each for each in at.requests if each.method == "POST" and each.message.get("method") == "tools/call")
        assert (sent.headers["x-trace"], sent.headers["x-own"]) == ("t1", "o")
        assert sent.message["params"]["_meta"]["traceparent"] == "00-x"
        others = [each for each in at.requests if each is not sent]
        assert others and not any("x-trace" in each.headers for each in others)


def test_each_round_is_a_request_of_its_own(tmp_path: Path, ask: Ask) -> None:
    server = peer(tmp_path, era="modern")
    hook = Watching()
    with mcpsync.connect(server.command, hooks=[hook], elicitation=lambda request: True) as client:
        ask(client, "rounds", {"count": 2})
        ends = hook.wait_for(3)
        kinds = [outcome.result["resultType"] for _, outcome in ends if outcome.result is not None]
        assert kinds == ["input_required", "input_required", "complete"]
        assert ["requestState" in request.params for request, _ in ends] == [False, True, True]


def test_a_request_that_is_made_again_is_told_again(ask: Ask) -> None:
    server = Legacy()
    hook = Watching()
    with HttpPeer(server) as at, mcpsync.connect(at.url, protocol="legacy", hooks=[hook]) as client:
        server.forget_sessions()
        assert ask(client, "work").text == "done"
        ends = hook.wait_for(2)
        assert [outcome.result is None for _, outcome in ends] == [True, False]
        assert ends[0][0].request_id != ends[1][0].request_id


def test_how_a_request_ended_otherwise(tmp_path: Path, ask: Ask) -> None:
    server = peer(tmp_path)
    hook = Watching()
    with mcpsync.connect(server.command, hooks=[hook]) as client:
        with pytest.raises(RpcError):
            ask(client, "error", {"code": -32000})
        with pytest.raises(RequestTimeout):
            ask(client, "silent", timeout=0.05)
        with pytest.raises(mcpsync.ConnectionLost):
            ask(client, "die")
        kinds = {type(outcome.error) for _, outcome in hook.wait_for(3)}
        assert kinds == {RpcError, RequestTimeout, mcpsync.ProcessExited}
        assert all(outcome.result is None for _, outcome in hook.ends)


def test_a_cancelled_call_is_over_for_its_hooks_too(tmp_path: Path) -> None:
    server = peer(tmp_path)
    hook = Watching()
    with mcpsync.connect(server.command, hooks=[hook]) as client:
        call = client.submit("silent")
        server.wait_for("tools/call")
        assert call.cancel() and call.cancelled()
        ((_, outcome),) = hook.wait_for(1)
        assert isinstance(outcome.error, RequestCancelled)


@pytest.mark.parametrize("over_http", [False, True])
def test_the_context_is_that_of_the_caller(tmp_path: Path, over_http: bool, ask: Ask) -> None:
    hook = Watching()
    with HttpPeer(Modern()) as at:
        target: Any = at.url if over_http else peer(tmp_path).command
        with mcpsync.connect(target, hooks=[hook]) as client:
            token = WHERE.set("here")
            try:
                ask(client, "work" if over_http else "echo")
            finally:
                WHERE.reset(token)
    assert hook.contexts == ["here"]


def test_several_hooks_are_told_in_order_and_back(tmp_path: Path) -> None:
    told: List[str] = []

    class Named(Hook):
        def __init__(self, name: str) -> None:
            self.name = name

        def before(self, request: HookedRequest) -> str:
            told.append("before " + self.name)
            return self.name

        def after(self, request: HookedRequest, outcome: Outcome, kept: str) -> None:
            told.append("after " + kept)

    with mcpsync.connect(peer(tmp_path).command, hooks=[Named("a"), Named("b")]) as client:
        client.call_tool("echo")
    assert told == ["before a", "before b", "after b", "after a"]


class Failing(Hook):
    """Raises."""

    def __init__(self, when: str) -> None:
        self.when = when

    def before(self, request: HookedRequest) -> None:
        if self.when == "before":
            raise ZeroDivisionError("of the user's")

    def after(self, request: HookedRequest, outcome: Outcome, kept: Any) -> None:
        if self.when == "after":
            raise ZeroDivisionError("of the user's")


@pytest.mark.parametrize("over_http", [False, True])
def test_what_is_raised_before_ends_the_call_and_nothing_is_sent(tmp_path: Path, over_http: bool, ask: Ask) -> None:
    server = peer(tmp_path)
    first = Watching()
    with HttpPeer(Modern()) as at:
        target: Any = at.url if over_http else server.command
        with mcpsync.connect(target, hooks=[first, Failing("before")]) as client:
            with pytest.raises(ZeroDivisionError):
                ask(client, "echo")
            assert isinstance(first.wait_for(1)[0][1].error, ZeroDivisionError)
            assert client.state == "ready"
        assert not any(b"tools/call" in each.body for each in at.requests)
    assert server.received("tools/call") == []


def test_what_is_raised_after_is_logged_and_costs_no_result(
    tmp_path: Path, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    last = Watching()
    with mcpsync.connect(peer(tmp_path).command, hooks=[last, Failing("after")], name="peer") as client:
        assert ask(client, "echo", {"text": "on"}).text == "on"
        last.wait_for(1)
    (record,) = (each for each in caplog.records if each.levelno == logging.ERROR)
    assert "'peer': a hook failed after tools/call" in record.getMessage()


@pytest.mark.parametrize(
    "headers", [{"Mcp-Session-Id": "x"}, {"content-type": "x"}, {"A": "b\r\nC: d"}, {"A": 5}, {"": "x"}]
)
def test_headers_that_a_hook_cannot_give(headers: Dict[str, Any]) -> None:
    hooks = [Watching(headers=headers)]
    with HttpPeer(Modern()) as at, mcpsync.connect(at.url, hooks=hooks) as client, pytest.raises(ValueError) as error:
        client.call_tool("work")
    assert "a hook gave" in str(error.value)


def test_a_secret_in_a_hooks_header_is_masked_in_what_the_server_answers() -> None:
    def tell(exchange: Exchange, message: Dict[str, Any]) -> None:
        said = "no: %s" % exchange.request.headers["x-api-key"]
        exchange.respond(200, {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -1, "message": said}})

    hooks = [Watching(headers={"X-Api-Key": "hidden-key"})]
    with HttpPeer(Modern(tell)) as at, mcpsync.connect(at.url, hooks=hooks) as client:
        with pytest.raises(RpcError) as error:
            client.call_tool("work")
        assert "hidden" not in str(error.value)


def test_wrong_hooks() -> None:
    for wrong in (5, Watching(), [print], None):
        with pytest.raises(ConfigError, match="hooks takes"):
            mcpsync.Client(["true"], hooks=wrong)


def test_a_hook_keeps_no_client_open(tmp_path: Path) -> None:
    server = peer(tmp_path)

    class Owning(Hook):
        client: Any = None

    hook = Owning()
    hook.client = mcpsync.connect(server.command, hooks=[hook])
    hook.client.call_tool("echo")
    with pytest.warns(ResourceWarning, match="never closed"):
        del hook
        import gc

        gc.collect()
        server.wait_ended()
